//! Series whose clocks, paths and queues are made up: what was planted comes out.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;

fn probe(t1: i64, (there, back): (i64, i64), (ahead_there, ahead_back): (i64, i64)) -> FourStamps {
    let t2 = t1 + there;
    let t3 = t2 + MS / 10;
    let [t1_ns, t2_ns, t3_ns, t4_ns] =
        [t1, t2 + ahead_there, t3 + ahead_back, t3 + back].map(i64::cast_unsigned);
    FourStamps { t1_ns, t2_ns, t3_ns, t4_ns }
}

/// Probes every 10 ms over a path of 2 ms there and 1 ms back, with up to 0.7 ms of queue in
/// either, answered after 0.1 ms by a clock that is ahead by `offset(i)`.
fn probes(n: i64, offset: impl Fn(i64) -> i64) -> Vec<FourStamps> {
    let queue = |i: i64, step: i64| (i * step) % 8 * MS / 10;
    let delays = |i: i64| (2 * MS + queue(i, 3), MS + queue(i, 5));
    (0..n).map(|i| probe(START + i * 10 * MS, delays(i), (offset(i), offset(i)))).collect()
}

/// A path with queues of exponential length there and back, `queue_ns` on average, and a clock at
/// the far end that runs off.
struct Path {
    random: Xoshiro256PlusPlus,
    every_ns: i64,
    queue_ns: f64,
    ppm: f64,
}

impl Path {
    fn of(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let ppm = (random.next_u64() % 101) as f64 - 50.0;
        let queue_ns = (random.next_u64() % 100_000) as f64;
        // From one in 20 ms to one in a second.
        let every_ns = [20, 50, 100, 250, 1000][(random.next_u64() % 5) as usize] * MS;
        Self { random, every_ns, queue_ns, ppm }
    }

    fn queue(&mut self) -> i64 {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (-self.queue_ns * (1.0 - uniform).ln()).round() as i64
    }

    fn probes(&mut self, n: i64, mut plan: impl FnMut(i64) -> (i64, i64, i64)) -> Vec<FourStamps> {
        let mut probes = Vec::new();
        for i in 0..n {
            let (there, back, ahead) = plan(i);
            let after = i * self.every_ns;
            let ahead = ahead + (after as f64 * self.ppm * 1e-6).round() as i64;
            let delays = (there + self.queue(), back + self.queue());
            probes.push(probe(START + after, delays, (ahead, ahead)));
        }
        probes
    }
}

fn estimated(probes: &[FourStamps]) -> Offset {
    let offset = clock_offset(probes, ClockClaim::default()).expect("probes");
    assert_eq!(offset.state, ClockState::OffsetEstimated, "{offset:?}");
    offset
}

/// 2 ms there and 1 ms back: the estimate takes both for 1.5 ms and says ±1.5 ms.
#[test]
fn an_offset_is_estimated_within_the_error_that_is_named() {
    let offset = estimated(&probes(200, |_| 300 * MS));
    assert!((offset.pieces[0].offset_ns - 300.5e6).abs() < 1.0, "{offset:?}");
    assert_eq!((offset.error_ns, offset.refuted), (Some(1_500_000), false));
    let probe = probes(1, |_| 300 * MS)[0];
    assert_eq!((probe.forward_ns(), probe.backward_ns()), (302 * MS, -299 * MS));
    assert_eq!((probe.residence_ns(), probe.path_ns()), (MS / 10, 3 * MS));
}

#[test]
fn a_claim_holds_until_the_packets_refute_it() {
    let claim = ClockClaim { error_ns: Some(100_000), one_clock: false };
    // Of 2 ms there at least, the clock may be behind by 2 ms before a delay is negative.
    for (ahead_us, refuted) in [(0, false), (-2_050, false), (-2_150, true), (1_150, true)] {
        let offset = clock_offset(&probes(100, |_| ahead_us * 1_000), claim).expect("probes");
        let state = if refuted { ClockState::OffsetEstimated } else { ClockState::Synchronised };
        assert_eq!((offset.state, offset.refuted), (state, refuted), "{ahead_us} us");
        let error_ns = if refuted { 1_500_000 } else { 100_000 };
        assert_eq!(offset.error_ns, Some(error_ns), "{ahead_us} us");
    }
    let one = ClockClaim { one_clock: true, ..ClockClaim::default() };
    let offset = clock_offset(&probes(5, |_| 0), one).expect("probes");
    assert_eq!((offset.state, offset.error_ns), (ClockState::Synchronised, Some(0)));
    assert_eq!(clock_offset(&[], claim), None);
}

/// Of 20 wrong claims 20 are refuted, of 20 right ones none; whatever the label, no delay is wrong
/// by more than the error that is named.
#[test]
fn a_wrong_claim_is_refuted_and_no_error_is_named_too_small() {
    for seed in 0..40 {
        let mut path = Path::of(seed);
        let wrong = seed % 2 == 0;
        path.ppm = 0.0;
        let (there, back) = (MS * (1 + seed as i64 % 7), MS * (1 + seed as i64 % 3));
        let claim = MS / 2;
        let beyond = MS + 10 * path.queue_ns.round() as i64;
        let ahead = match seed % 4 {
            0 => -(there + claim + beyond),
            2 => back + claim + beyond,
            1 => claim,
            _ => -claim,
        };
        let probes = path.probes(100, |_| (there, back, ahead));
        let claim = ClockClaim { error_ns: Some(claim.cast_unsigned()), one_clock: false };
        let offset = clock_offset(&probes, claim).expect("probes");
        assert_eq!(offset.refuted, wrong, "seed {seed}: {offset:?}");
        let error = (offset.offset_at(0, probes[0].t1_ns) - ahead as f64).abs();
        assert!(error <= offset.error_ns.expect("a label") as f64, "seed {seed}: {error}");
    }
}

/// 100 ppm: 1 µs in 10 ms, 2 ms over all.
#[test]
fn a_drift_is_found_along_the_lower_hulls() {
    let all = probes(2_000, |i| i * 1_000);
    let offset = estimated(&all);
    assert!((offset.pieces[0].drift - 100e-6).abs() < 0.1e-6, "{offset:?}");
    for (i, probe) in all.iter().enumerate() {
        let error = (offset.offset_at(i, probe.t1_ns) - (i * 1_000) as f64).abs();
        assert!(error <= offset.error_ns.expect("known") as f64, "{i}: {error}");
    }
    // Too small to contradict one offset, and yet no delay variation: 5 ppm over 300 s are 1.5 ms.
    for seed in 0..20 {
        let mut path = Path { every_ns: 1000 * MS, queue_ns: 50_000.0, ..Path::of(seed) };
        path.ppm = if seed % 2 == 0 { 5.0 } else { -5.0 };
        let offset = estimated(&path.probes(300, |_| (20 * MS, 20 * MS, 0)));
        let found = offset.pieces[0].drift * 1e6;
        assert!((found - path.ppm).abs() < 0.2, "seed {seed}: {found} of {}", path.ppm);
        assert!(offset.changes.is_empty(), "seed {seed}: {offset:?}");
    }
}

#[test]
fn a_clock_that_is_set_cuts_the_series() {
    let step = |i: i64| if i < 177 { 0 } else { 40 * MS };
    let all = probes(400, step);
    let offset = estimated(&all);
    let firsts: Vec<usize> = offset.pieces.iter().map(|piece| piece.first).collect();
    assert_eq!(firsts, [0, 177], "{offset:?}");
    assert!(offset.changes[0].clock && (offset.changes[0].there_ns - 40e6).abs() < 1e5);
    assert_eq!(offset.error_ns, Some(1_500_000), "as without the step");
    for (i, probe) in all.iter().enumerate() {
        let error = (offset.offset_at(i, probe.t1_ns) - step(i as i64) as f64).abs();
        assert!(error <= 1.5e6, "{i}: {error}");
    }
    // Of two clocks that are right to 10 ms one was set by 40 ms: one of them was not right.
    let claim = |error_ns| ClockClaim { error_ns: Some(error_ns), one_clock: false };
    assert!(clock_offset(&all, claim(10_000_000)).expect("probes").refuted);
    assert!(!clock_offset(&all, claim(60_000_000)).expect("probes").refuted);
    // Too soon after the start to know what was before it.
    let early = |i: i64| if i < 7 { 0 } else { 40 * MS };
    let offset = clock_offset(&probes(200, early), ClockClaim::default()).expect("probes");
    assert_eq!((offset.state, offset.error_ns), (ClockState::Unsynchronised, None));
}

/// What is wrong with how a change of 1 ms is seen on the path of `seed`, from 20 probes, or those
/// of one second, behind it.
fn seen_wrongly(seed: u64) -> Option<String> {
    let mut path = Path::of(seed);
    let behind = (1000 * MS / path.every_ns).max(20);
    let at = (3000 * MS / path.every_ns).max(60);
    let grown = if seed.is_multiple_of(2) { MS } else { -MS };
    let on_way_there = seed % 4 < 2;
    let all = path.probes(at + behind, |i| {
        let grown = if i >= at { grown } else { 0 };
        let (there, back) = if on_way_there { (grown, 0) } else { (0, grown) };
        (9 * MS + there, 4 * MS + back, 70 * MS)
    });
    let changes = estimated(&all).changes;
    let about = format!("{} us queue, {} ppm: {changes:?}", path.queue_ns / 1e3, path.ppm);
    let [change] = changes[..] else { return Some(about) };
    let (moved, still) = match on_way_there {
        true => (change.there_ns, change.back_ns),
        false => (change.back_ns, change.there_ns),
    };
    let off = change.first as i64 - at;
    let right = (moved - grown as f64).abs() < 3e5 && still == 0.0 && !change.clock;
    (!right || !(-2..=5).contains(&off)).then(|| format!("{off} probes off, {about}"))
}

/// 40 paths with drifts up to 50 ppm and queues of up to 0.1 ms on average, in which the way there
/// or back becomes longer or shorter by 1 ms; and the same without a change. Of 1000 such paths 1
/// was missed, and none invented.
#[test]
fn a_change_of_1_ms_in_one_direction_is_found_within_20_probes_and_no_other() {
    let wrong: Vec<_> = (0..40).filter_map(|seed| Some((seed, seen_wrongly(seed)?))).collect();
    let quiet = |seed| Path::of(seed).probes(400, |_| (9 * MS, 4 * MS, 70 * MS));
    let invented: Vec<_> = (0..40)
        .map(|seed| (seed, delay_changes(&quiet(seed))))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    assert!(wrong.is_empty() && invented.is_empty(), "{wrong:#?} {invented:#?}");
}

/// The local clock is set forward by 3 s at probe 50 and back by 1 ms at probe 80.
#[test]
fn a_step_of_the_local_clock_is_taken_out() {
    let truth = probes(100, |_| 5 * MS);
    let set = |i: usize| match i {
        0..50 => 0,
        50..80 => 3_000 * MS,
        _ => 2_999 * MS,
    };
    let mut seen = truth.clone();
    for (i, probe) in seen.iter_mut().enumerate() {
        probe.t1_ns = probe.t1_ns.wrapping_add_signed(set(i));
        probe.t4_ns = probe.t4_ns.wrapping_add_signed(set(i));
    }
    // An interrupt between two readings, of 4 ms, is no step.
    let civil: Vec<i64> =
        (0..100).map(|i| START + set(i) + 30 + if i == 20 { 4 * MS } else { 0 }).collect();
    assert_eq!(take_out_steps(&mut seen, &civil), [(50, 3_000 * MS), (80, -MS)]);
    assert_eq!(seen, truth);
}
