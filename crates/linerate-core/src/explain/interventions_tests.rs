//! Runs by hand: the factors of docs/diagnosis.md (50 Mbit/s, 40 ms, CUBIC), and equal runs of
//! innocent paths that differ as short runs do.

use super::*;
use crate::explain::evidence::{Loss, RateEvidence, RoundTrips, TestOptions};
use crate::explain::judge_direction;
use crate::explain::mechanism::{Capacity, Findings, PacedLoad, Reordering};
use crate::record::{Caveat, CaveatCode, Direction, IpFamily, PathAdvice};
use crate::stats::Interval;
use crate::theory::ladder::Response;
use crate::units::BitRate;

fn runs(mbit: &[f64], lost: f64) -> Vec<ShortRun> {
    let run = |mbit: &f64| ShortRun {
        goodput_bps: mbit * 1e6,
        retransmit_ratio: Some(lost),
        rtt_ns: Some(40e6),
    };
    mbit.iter().map(run).collect()
}

fn made(change: Change, plain: &[f64], changed: &[f64], lost: (f64, f64)) -> Intervention {
    Intervention {
        direction: Direction::Up,
        change,
        plain: runs(plain, lost.0),
        changed: runs(changed, lost.1),
        ended: InterventionEnd::Clear,
    }
}

fn bbr() -> Change {
    Change::CongestionControl("bbr".to_owned())
}

/// A flow of CUBIC over 40 ms that loses without a queue.
fn lossy(mbit: f64) -> Evidence {
    Evidence {
        direction: Some(Direction::Up),
        flows: 1,
        rate: RateEvidence { mean_bps: Some(mbit * 1e6), ..RateEvidence::default() },
        rtt: RoundTrips {
            base_s: Some(0.040),
            base_is_idle: true,
            base_is_loaded: false,
            loaded_s: Some(0.0405),
            ..RoundTrips::default()
        },
        loss: Loss {
            retransmits: Some(80.0),
            ratio: Some(0.008),
            response: Some(Response::Cubic),
            control: Some("cubic".to_owned()),
            ..Loss::default()
        },
        mss_bytes: Some(1448),
        ..Evidence::default()
    }
}

fn rate_shift(plain: &[f64], changed: &[f64]) -> Option<RateShift> {
    estimate_effect(&runs(plain, 0.0), &runs(changed, 0.0)).expect("runs").moved
}

#[test]
fn one_pair_of_runs_is_never_clear() {
    assert!(!is_clear(&runs(&[10.0], 0.0), &runs(&[80.0], 0.0)));
    assert!(!is_clear(&[], &runs(&[80.0], 0.0)));
    assert!(is_clear(&runs(&[10.0, 10.2], 0.0), &runs(&[80.0, 79.0], 0.0)));
}

#[test]
fn a_factor_counts_only_beyond_what_equal_runs_differ_by() {
    assert_eq!(rate_shift(&[10.0, 10.1], &[20.0, 20.2]), Some(RateShift::Rises));
    assert_eq!(rate_shift(&[20.0, 20.2], &[10.0, 10.1]), Some(RateShift::Falls));
    assert_eq!(rate_shift(&[46.8, 46.9], &[47.3, 47.2]), Some(RateShift::Stays));
    // The same factor of 2 between runs of which equal ones differ three times.
    assert_eq!(rate_shift(&[6.0, 18.0], &[12.0, 34.0]), None);
    // A full link whose short runs have not recovered: neither the same nor a cause.
    assert_eq!(rate_shift(&[34.0, 36.0, 35.0, 34.5], &[47.0, 47.2, 47.1, 47.0]), None);
}

/// Log rates of a normal distribution with the spread of short runs over paths with losses, by a
/// linear congruential generator: 2,000 paths on which the change does nothing. Where equal runs
/// differ by a half the rule has the 5 % of errors that it was chosen for.
#[test]
fn equal_runs_of_an_innocent_path_are_hardly_ever_a_cause() {
    let mut state = 77_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    for (spread, most) in [(0.05, 0), (0.15, 10), (0.3, 40)] {
        let mut run = || {
            // Twelve uniform values less six have the variance 1.
            let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            20.0 * (spread * normal).exp()
        };
        let mut wrong = 0;
        for _ in 0..2000 {
            let (mut plain, mut changed) = (Vec::new(), Vec::new());
            for _ in 0..4 {
                plain.push(run());
                changed.push(run());
                if is_clear(&runs(&plain, 0.0), &runs(&changed, 0.0)) {
                    break;
                }
            }
            wrong +=
                usize::from(!matches!(rate_shift(&plain, &changed), None | Some(RateShift::Stays)));
        }
        assert!(wrong <= most, "{wrong} of 2000 with a spread of {spread}");
    }
}

#[test]
fn losses_that_bbr_does_not_add_to_and_streams_multiply_are_random() {
    let mut evidence = lossy(2.8);
    assert_eq!(judge_direction(&evidence).cause, None);
    // 2.8 -> 15.1 with four streams, 45.2 with BBR, as much lost (docs/diagnosis.md).
    evidence.interventions = vec![
        made(bbr(), &[2.6, 2.9], &[45.0, 45.2], (0.01, 0.0104)),
        made(Change::Streams(4), &[2.6, 2.9], &[15.1, 14.8], (0.01, 0.01)),
    ];
    let verdict = judge_direction(&evidence);
    assert_eq!(
        (verdict.cause, verdict.confidence),
        (Some(Cause::RandomLoss), Some(Confidence::High))
    );
    let tried = verdict.remedy.iter().find_map(|line| line.tried).expect("bbr was tried");
    assert!((tried.before_bps / 2.75e6 - 1.0).abs() < 1e-9, "{tried:?}");
    assert!((tried.after_bps / 45.1e6 - 1.0).abs() < 1e-9, "{tried:?}");
}

#[test]
fn more_losses_with_bbr_do_not_decide_what_overran() {
    let mut evidence = lossy(8.4);
    evidence.interventions = vec![made(bbr(), &[8.4, 8.3], &[18.9, 18.8], (0.008, 0.085))];
    let verdict = judge_direction(&evidence);
    assert_eq!(verdict.cause, None);
    assert!(verdict.between.contains(&Cause::Policer), "{:?}", verdict.between);
    assert!(verdict.between.contains(&Cause::SmallBuffer));
}

#[test]
fn a_pace_that_ends_losses_rules_random_ones_out() {
    let mut evidence = lossy(5.2);
    let pace = Change::Pace(BitRate::from_nearest(43e6).expect("a rate"));
    evidence.interventions = vec![made(pace, &[5.2, 5.3], &[11.1, 11.4], (0.0147, 0.001))];
    let between = judge_direction(&evidence).between;
    assert!(!between.contains(&Cause::RandomLoss) && !between.contains(&Cause::OtherTraffic));
    assert!(between.contains(&Cause::SmallBuffer) && between.contains(&Cause::Policer));
}

#[test]
fn runs_that_are_unlike_the_longer_test_decide_nothing() {
    let mut evidence = lossy(2.8);
    evidence.interventions = vec![
        made(bbr(), &[12.0, 12.1], &[45.0, 45.2], (0.01, 0.0104)),
        made(Change::Streams(4), &[12.0, 12.1], &[40.0, 41.0], (0.01, 0.01)),
    ];
    assert_eq!(judge_direction(&evidence).cause, None);
    let mut failed = made(bbr(), &[2.8, 2.8], &[45.0, 45.0], (0.01, 0.01));
    failed.ended = InterventionEnd::Failed;
    evidence.interventions = vec![failed];
    assert_eq!(judge_direction(&evidence).between, judge_direction(&lossy(2.8)).between);
}

#[test]
fn a_link_that_more_streams_do_not_load_further_is_sure_and_one_that_they_do_is_none() {
    let full = |interventions| {
        let mut evidence = lossy(46.8);
        evidence.rtt.loaded_s = Some(0.060);
        evidence.rate.delivery_bps = Some(47.0e6);
        evidence.interventions = interventions;
        judge_direction(&evidence)
    };
    assert_eq!(full(Vec::new()).confidence, Some(Confidence::Medium));
    let stays = made(Change::Streams(4), &[46.8, 46.7], &[47.3, 47.2], (1e-4, 1e-3));
    let verdict = full(vec![stays]);
    assert_eq!((verdict.cause, verdict.confidence), (Some(Cause::Link), Some(Confidence::High)));
    let rises = made(Change::Streams(4), &[46.8, 46.7], &[150.0, 149.0], (1e-4, 1e-3));
    let verdict = full(vec![rises]);
    assert_eq!((verdict.outcome, verdict.cause), (Outcome::Undetermined, None));
    assert!(!verdict.between.contains(&Cause::Link), "{:?}", verdict.between);
}

/// Nothing else to choose than congestion controls.
fn by(controls: &[String]) -> Choices<'_> {
    Choices { controls: Some(controls), ..Choices::default() }
}

/// A flow that is lossy, with trains of which nothing was lost at loads that pass.
fn lossy_among_probes(mbit: f64) -> Evidence {
    let load = |offered_bps| PacedLoad {
        offered_bps,
        ip_bytes: 1500,
        sent: 4000,
        lost: 0,
        received_bps: offered_bps,
        delay_ns: [0.0, 1e4, 2e4],
        growth_ns: 0.0,
    };
    let found = Findings {
        packets: 8000,
        lost: 0,
        capacity: vec![Capacity {
            ip_bytes: 1500,
            bps: 50e6,
            quartiles_bps: Interval { low: 49.9e6, high: 50.1e6 },
            at_least: false,
        }],
        sustained_bps: None,
        shaper: None,
        overflow: None,
        background: None,
        states: Vec::new(),
        first_lost: Vec::new(),
        loads: vec![load(25e6), load(45e6)],
        reordering: Reordering::default(),
        both_ways: None,
    };
    Evidence { trains: Some(found), capacity_bps: Some(50e6), ..lossy(mbit) }
}

#[test]
fn a_rate_that_rises_at_another_port_is_a_device_that_holds_one_port() {
    let mut evidence = lossy(4.0);
    let rises = made(Change::OtherPort, &[4.1, 4.0], &[44.0, 45.0], (0.008, 0.0));
    evidence.interventions = vec![rises];
    let verdict = judge_direction(&evidence);
    let said = (verdict.cause, verdict.confidence);
    assert_eq!(said, (Some(Cause::Policer), Some(Confidence::High)), "{verdict:?}");
    let rose = |note: &Note| matches!(note, Note::RateRose { change: Change::OtherPort, .. });
    assert!(verdict.notes.iter().any(rose), "{:?}", verdict.notes);
    assert!(verdict.remedy.iter().any(|line| line.tried.is_some()), "{:?}", verdict.remedy);
    // A queue of its own, and no losses: a class of a shaper.
    let mut queued = evidence.clone();
    queued.rtt.loaded_s = Some(0.090);
    assert_eq!(judge_direction(&queued).cause, Some(Cause::Shaper));
    // The same at either port rules nothing of the path out, and a policer of all ports least.
    let stays = made(Change::OtherPort, &[4.1, 4.0], &[4.0, 4.1], (0.008, 0.008));
    evidence.interventions = vec![stays];
    let verdict = judge_direction(&evidence);
    assert_eq!((verdict.cause, &verdict.between), (None, &judge_direction(&lossy(4.0)).between));
    assert!(verdict.notes.contains(&Note::RateStayed(Change::OtherPort)));
}

#[test]
fn another_family_parts_the_ends_from_the_path() {
    let of = |changed: &[f64]| {
        let made = made(Change::Family(IpFamily::V6), &[4.1, 4.0], changed, (0.008, 0.0));
        judge_direction(&Evidence { interventions: vec![made], ..lossy(4.0) })
    };
    let verdict = of(&[44.0, 45.0]);
    assert_eq!(verdict.cause, Some(Cause::AddressFamily), "{verdict:?}");
    let other = RemedyLine::on_path(PathAdvice::UseFamily { family: IpFamily::V6 }).remedy;
    assert!(verdict.remedy.iter().any(|line| line.remedy == other));
    // Over both the same, or over the other one less: not the family.
    assert_eq!(of(&[4.0, 4.1]).cause, None);
    assert_eq!(of(&[1.0, 1.1]).cause, None);
}

#[test]
fn larger_writes_that_raise_the_rate_show_a_sender_that_its_calls_hold() {
    // A window that is not full, no losses, no queue: an end holds it.
    let mut evidence = lossy(4.0);
    evidence.loss = Loss { retransmits: Some(0.0), ratio: Some(0.0), ..evidence.loss };
    evidence.window.flight_bytes = Some(20e3);
    evidence.window.cwnd_bytes = Some(200e3);
    evidence.window.offered_bytes = Some(3e6);
    evidence.asked.write_bytes = Some(100);
    let open = judge_direction(&evidence);
    assert!(open.cause.is_none() && open.between.contains(&Cause::SendBuffer), "{open:?}");
    let made = |changed: &[f64]| made(Change::Writes(1 << 20), &[4.1, 4.0], changed, (0.0, 0.0));
    evidence.interventions = vec![made(&[44.0, 45.0])];
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::SendingHost));
    evidence.interventions = vec![made(&[4.0, 4.1])];
    assert_eq!(judge_direction(&evidence).cause, None);
}

#[test]
fn a_change_is_tried_only_where_it_can_be_made_and_tells_something() {
    let tried = |evidence: &Evidence, choices: Choices<'_>| {
        let mut evidence = evidence.clone();
        let mut changes = Vec::new();
        // Whatever is proposed moves nothing, until nothing more is proposed.
        while let Some(change) = next_change(&evidence, &judge_direction(&evidence), choices) {
            let rate = [evidence.steady_bps().unwrap_or(0.0) / 1e6; 2];
            evidence.interventions.push(made(change.clone(), &rate, &rate, (0.008, 0.008)));
            changes.push(change);
        }
        changes
    };
    let all = Choices { other_port: true, other_family: Some(IpFamily::V6), ..Choices::default() };
    let has = |changes: &[Change], is: fn(&Change) -> bool| changes.iter().any(is);
    let port: fn(&Change) -> bool = |change| *change == Change::OtherPort;
    let family: fn(&Change) -> bool = |change| matches!(change, Change::Family(_));
    let writes: fn(&Change) -> bool = |change| matches!(change, Change::Writes(_));
    let of_path = tried(&lossy(4.0), all);
    assert!(has(&of_path, port) && !has(&of_path, writes), "{of_path:?}");
    // The other family has the same ends: it comes last where the path is left, and never else.
    assert!(of_path.last().is_some_and(family), "{of_path:?}");
    let held = Evidence { loss: Loss { ratio: Some(0.0), ..lossy(4.0).loss }, ..lossy(4.0) };
    let mut held = Evidence {
        asked: TestOptions { write_bytes: Some(100), ..TestOptions::default() },
        ..held
    };
    held.window.flight_bytes = Some(20e3);
    held.window.cwnd_bytes = Some(200e3);
    held.window.offered_bytes = Some(3e6);
    let of_ends = tried(&held, all);
    assert!(has(&of_ends, writes) && !has(&of_ends, family), "{of_ends:?}");
    let none = tried(&lossy(4.0), Choices::default());
    assert!(!has(&none, port) && !has(&none, family), "{none:?}");
    // Probes pass what the flow loses: the port comes right after the congestion control.
    let apart = tried(&lossy_among_probes(4.0), all);
    assert!(apart.iter().position(port) <= Some(1), "{apart:?}");
}

#[test]
fn the_change_that_separates_the_causes_best_comes_first() {
    let evidence = lossy(2.8);
    let open = judge_direction(&evidence);
    let all = ["reno", "bbr", "cubic"].map(str::to_owned);
    assert_eq!(next_change(&evidence, &open, by(&all)), Some(bbr()));
    // Whether a link is full: streams.
    let mut full = lossy(46.8);
    full.rtt.loaded_s = Some(0.060);
    full.rate.delivery_bps = Some(47.0e6);
    assert_eq!(next_change(&full, &judge_direction(&full), by(&all)), Some(Change::Streams(4)));
    // Where the sender's kernel has no BBR it is not proposed.
    let few = ["reno", "cubic"].map(str::to_owned);
    assert_eq!(next_change(&evidence, &open, by(&few)), Some(Change::Streams(4)));
    // Nothing is tried twice, and nothing against a verdict that the tester spoilt.
    let mut tried = lossy(2.8);
    tried.interventions = vec![made(bbr(), &[2.8, 2.8], &[2.9, 2.8], (0.008, 0.008))];
    assert_ne!(next_change(&tried, &judge_direction(&tried), by(&all)), Some(bbr()));
    let caveat = Caveat::new(CaveatCode::StolenTime, "9 % of its CPU time", "repeat");
    let spoilt = Evidence { spoilt: Some(caveat), ..lossy(2.8) };
    assert_eq!(next_change(&spoilt, &judge_direction(&spoilt), by(&all)), None);
}
