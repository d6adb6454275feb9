//! What trains of probes tell apart, with figures of paths that were measured (`lab bank run
//! --whole-test`): rates in Mbit/s of IP packets, times in ms.

use super::evidence::{Evidence, Loss, RateEvidence, RoundTrips, Together};
use super::judge_direction;
use super::mechanism::{Background, Capacity, Estimate, Findings, FirstLost, Overflow, PacedLoad};
use crate::record::{
    AboveMtu, At, Cause, Confidence, Direction, NextBound, Outcome, PathMtu, RemedyCommand,
    RemedyLine,
};
use crate::stats::Interval;

fn capacity(ip_bytes: u32, mbps: f64) -> Capacity {
    let bps = mbps * 1e6;
    let quartiles_bps = Interval { low: bps, high: bps };
    Capacity { ip_bytes, bps, quartiles_bps, at_least: false }
}

/// Trains of 1500 and 228 bytes that left at these rates, and paced loads of 1500 bytes: offered,
/// what passed of it, median delay.
pub(super) fn found(rates: [f64; 2], loads: &[[f64; 3]]) -> Findings {
    let load = |&[offered, received, ms]: &[f64; 3]| PacedLoad {
        offered_bps: offered * 1e6,
        ip_bytes: 1500,
        sent: 2000,
        lost: 0,
        received_bps: received * 1e6,
        delay_ns: [0.3e6, ms * 1e6, ms * 1e6],
        growth_ns: 0.0,
    };
    Findings {
        packets: 6000,
        lost: 0,
        capacity: vec![capacity(1500, rates[0]), capacity(228, rates[1])],
        sustained_bps: None,
        shaper: None,
        overflow: None,
        background: None,
        states: Vec::new(),
        first_lost: vec![FirstLost { ip_bytes: 1500, trains: 5, with_loss: 0, index: None }],
        loads: loads.iter().map(load).collect(),
        reordering: Default::default(),
        both_ways: None,
    }
}

/// A CUBIC flow with its payload rate, round trips at rest and loaded, segments sent again.
pub(super) fn flow(mbps: f64, rtt_ms: [f64; 2], again: (f64, f64), found: Findings) -> Evidence {
    Evidence {
        direction: Some(Direction::Up),
        flows: 1,
        rate: RateEvidence {
            mean_bps: Some(mbps * 1e6),
            steady_bps: Some(mbps * 1e6),
            span_s: Some(3.5),
            ..RateEvidence::default()
        },
        rtt: RoundTrips {
            base_s: Some(rtt_ms[0] / 1e3),
            base_is_idle: true,
            base_is_loaded: false,
            loaded_s: Some(rtt_ms[1] / 1e3),
            loaded_p95_s: Some(rtt_ms[1] / 1e3),
            loaded_p10_s: Some(rtt_ms[1] / 1e3),
            intervals_s: Vec::new(),
        },
        loss: Loss { retransmits: Some(again.0), ratio: Some(again.1), ..Loss::default() },
        mss_bytes: Some(1448),
        packet_bytes: Some(1500),
        capacity_bps: found.capacity.first().map(|found| found.bps),
        trains: Some(found),
        ..Evidence::default()
    }
}

const QUIET: (f64, f64) = (0.0, 0.0);

#[test]
fn short_packets_that_leave_no_faster_than_long_ones_are_counted() {
    // 639 packets a second; and 30 Mbit/s with a device of 11,904, which is a full link.
    let counted = flow(6.74, [21.8, 93.5], QUIET, found([7.668, 1.1656], &[]));
    assert_eq!(judge_direction(&counted).cause, Some(Cause::PacketRate));
    let ample = flow(28.2, [30.1, 47.0], QUIET, found([29.26, 21.71], &[]));
    assert_eq!(judge_direction(&ample).outcome, Outcome::AtCeiling);
}

#[test]
fn segments_that_a_device_made_small_before_one_that_counts_packets_are_its_fault() {
    // An MSS of 524 where 1500 bytes pass, 4000 packets a second.
    let mut clamped = flow(16.5, [20.2, 60.0], QUIET, found([48.0, 7.3], &[]));
    clamped.mss_bytes = Some(524);
    clamped.mtu = Some(PathMtu {
        direction: Direction::Up,
        ip_bytes: 1500,
        lost_bytes: Some(1501),
        above: AboveMtu::Link,
        icmp_mtu_bytes: Some(1500),
    });
    assert_eq!(judge_direction(&clamped).cause, Some(Cause::Middlebox));
    // The user's own segment size is nobody's fault.
    clamped.asked.mss_bytes = Some(536);
    assert_eq!(judge_direction(&clamped).cause, Some(Cause::PacketRate));
}

#[test]
fn short_trains_that_leave_faster_than_long_ones_had_a_bucket() {
    // 7 Mbit/s with 15 kB of bucket before 30 Mbit/s, without a paced probe.
    let shaped = flow(6.72, [30.1, 79.5], QUIET, found([7.0, 25.71], &[]));
    let verdict = judge_direction(&shaped);
    assert_eq!(verdict.cause, Some(Cause::Shaper));
    // Without it the link is next: 30 Mbit/s less the framing are 28.2.
    let next = verdict.next.expect("the link is known").bps;
    assert!((next / 28.2e6 - 1.0).abs() < 0.01, "{next}");
}

#[test]
fn a_rate_that_grows_with_the_load_below_the_link_s_is_shared() {
    // 26 of 40 Mbit/s of other traffic; then 21 kB of buffer at 50, which drops bursts.
    let loads = [[17.8, 15.9, 30.3], [32.1, 24.4, 30.8], [39.2, 27.2, 30.9]];
    let crossed = flow(13.05, [30.3, 47.5], (10.0, 0.006), found([35.6, 18.0], &loads));
    assert_eq!(judge_direction(&crossed).cause, Some(Cause::OtherTraffic));
    let loads = [[24.4, 24.4, 0.23], [43.9, 36.8, 0.38], [53.7, 48.8, 3.45]];
    let mut small = found([48.8, 41.8], &loads);
    let room = |low, value, high| Estimate { value, interval: Interval { low, high } };
    small.overflow = Some(Overflow::ByteBuffer { bytes: room(21_000.0, 21_750.0, 22_500.0) });
    let small = flow(15.2, [50.0, 50.7], (23.0, 0.0039), small);
    assert_eq!(judge_direction(&small).cause, Some(Cause::SmallBuffer));
}

#[test]
fn losses_far_below_what_probes_pass_are_of_the_line() {
    // 0.2 % at 40 Mbit/s and 40 ms: three probes of 4550 lost below the link's rate.
    let loads = [[19.5, 19.5, 0.27], [35.1, 35.0, 0.36], [42.9, 38.75, 40.1]];
    let mut lossy = found([39.0, 33.96], &loads);
    (lossy.loads[0].lost, lossy.loads[1].lost) = (1, 2);
    let evidence = flow(9.06, [40.0, 40.8], (4.0, 0.0012), lossy.clone());
    let verdict = judge_direction(&evidence);
    assert_eq!(
        (verdict.cause, verdict.confidence),
        (Some(Cause::RandomLoss), Some(Confidence::High))
    );
    // What passes for long is the link's own rate, and no meter's.
    let next = verdict.next.expect("the link is known");
    assert_eq!(next.bound, NextBound::PathLink);
    assert!((next.bps / 37.65e6 - 1.0).abs() < 0.01, "{next:?}");
    // Seldom enough, it is the flow that fills the link.
    let full = flow(36.5, [50.0, 52.2], (212.0, 0.018), lossy);
    assert_eq!(judge_direction(&full).outcome, Outcome::AtCeiling);
}

#[test]
fn a_flow_behind_a_policer_is_held_by_it_unless_the_line_loses_too() {
    let estimate = |value| Estimate { value, interval: Interval { low: value, high: value } };
    let mut policed = found([39.0, 34.3], &[[19.5, 8.0, 0.3], [35.1, 8.0, 0.3]]);
    let (rate_bps, burst_bytes) = (estimate(8e6), estimate(40e3));
    policed.overflow = Some(Overflow::Policer { rate_bps, burst_bytes });
    let verdict = judge_direction(&flow(2.4, [40.0, 40.2], (60.0, 0.01), policed.clone()));
    assert_eq!(verdict.cause, Some(Cause::Policer));
    assert_eq!(verdict.next.map(|next| next.bound), Some(NextBound::PathLink));
    policed.background = Some(Background::Random { ratio: estimate(0.01) });
    let verdict = judge_direction(&flow(2.4, [40.0, 40.2], (60.0, 0.01), policed));
    assert_eq!(verdict.cause, Some(Cause::RandomLoss));
}

#[test]
fn several_flows_that_pass_what_one_link_carries_have_links_of_their_own() {
    // 9.4 of 10 Mbit/s a member of a trunk, four flows 36; and alone on a link of that rate.
    let mut trunk = flow(9.41, [50.2, 148.0], (8.0, 0.0022), found([9.7526, 8.5718], &[]));
    assert_eq!(judge_direction(&trunk).confidence, Some(Confidence::Medium));
    trunk.together = Some(Together { flows: 4, bps: 36e6 });
    assert_eq!(judge_direction(&trunk).cause, Some(Cause::UnequalPaths));
    trunk.together = Some(Together { flows: 4, bps: 9.4e6 });
    let verdict = judge_direction(&trunk);
    assert_eq!((verdict.outcome, verdict.confidence), (Outcome::AtCeiling, Some(Confidence::High)));
}

#[test]
fn a_host_that_waits_for_a_cpu_and_fills_the_path_is_not_accused() {
    let mut busy = flow(46.8, [50.1, 78.9], (23.0, 0.0033), found([48.7, 42.0], &[]));
    (busy.receiver.cpu, busy.receiver.waited) = (Some(0.03), Some(0.91));
    assert_eq!(judge_direction(&busy).outcome, Outcome::AtCeiling);
    busy.rate.steady_bps = Some(20e6);
    assert_eq!(judge_direction(&busy).cause, Some(Cause::ReceivingHost));
}

#[test]
fn trains_that_leave_the_sender_evenly_at_the_flow_s_rate_are_held_there() {
    // A class of 12 Mbit/s at the sender's own interface.
    let mut own = found([11.889, 11.35], &[]);
    own.capacity[0].at_least = true;
    let mut own = flow(11.43, [40.1, 44.8], QUIET, own);
    own.capacity_bps = None;
    assert_eq!(judge_direction(&own).cause, Some(Cause::Shaper));
    // An interface of that speed is a link.
    own.sender.speed_bps = Some(12e6);
    assert_eq!(judge_direction(&own).outcome, Outcome::AtCeiling);
}

#[test]
fn packets_that_vanish_below_a_full_segment_are_a_black_hole_once_tcp_stalls() {
    let mut hole = flow(0.2, [20.0, 20.3], (30.0, 0.1), found([39.0, 34.3], &[]));
    hole.mtu = Some(PathMtu {
        direction: Direction::Up,
        ip_bytes: 1400,
        lost_bytes: Some(1401),
        above: AboveMtu::Silent,
        icmp_mtu_bytes: None,
    });
    (hole.rate.bytes, hole.loss.timeouts) = (Some(1e5), Some(2.0));
    let verdict = judge_direction(&hole);
    let wanted = (Some(Cause::MtuBlackHole), Some(Confidence::High));
    assert_eq!((verdict.cause, verdict.confidence), wanted);
    // 1400 bytes less 40 of IPv4 and TCP (RFC 9293 §3.7.1).
    let clamp = RemedyLine::command(At::Path, RemedyCommand::ClampSegments { mss_bytes: 1360 });
    assert!(verdict.remedy.contains(&clamp));
    // A router that says so is heard; segments that fit are not held.
    let is_hole =
        |evidence: &Evidence| judge_direction(evidence).cause == Some(Cause::MtuBlackHole);
    let mut heard = hole.clone();
    heard.mtu.as_mut().expect("it is there").above = AboveMtu::Icmp;
    assert!(!is_hole(&heard));
    hole.mss_bytes = Some(1348);
    assert!(!is_hole(&hole));
}
