//! Flows that fare unlike probes, and unlike each other, with figures of paths that were measured
//! (`lab bank run --whole-test`): rates in Mbit/s, times in ms. What was not measured says so.

use super::evidence::{EachFlow, Evidence};
use super::judge_direction;
use super::mechanism::BothWays;
use super::trains_tests::{flow, found};
use crate::record::{Cause, Confidence, Outcome};
use crate::theory::ladder::Response;

fn cubic(mut evidence: Evidence, events: f64) -> Evidence {
    evidence.loss.response = Some(Response::Cubic);
    evidence.loss.events = Some(events);
    evidence
}

/// A link of 40 Mbit/s and 10 ms whose ends are half and full duplex: of 1625 probes one way none
/// was lost. The record is older than probes both ways at once: their counts, a third of them lost,
/// are set by hand.
#[test]
fn what_collides_only_with_the_other_way_busy_is_a_duplex_mismatch() {
    let loads = [[19.5, 19.5, 0.32], [35.1, 35.1, 0.75], [43.0, 39.0, 30.8]];
    let mut trains = found([39.1, 33.8], &loads);
    let both = BothWays {
        sent: 940,
        lost: 310,
        delay_ns: 0.5e6,
        tenths_with_loss: 10,
        alone_sent: 1625,
        alone_lost: 0,
    };
    trains.both_ways = Some(both);
    let mismatch = cubic(flow(9.3, [10.0, 11.6], (38.0, 0.0332), trains.clone()), 9.0);
    let verdict = judge_direction(&mismatch);
    assert_eq!(
        (verdict.cause, verdict.confidence),
        (Some(Cause::DuplexMismatch), Some(Confidence::High))
    );
    // Both ways at once lose no more than one way: the flow meets something else, and that no probe
    // was lost rules loss at random out (0.0332 of 4000 would be 133).
    trains.both_ways = Some(BothWays { lost: 2, ..both });
    let other = cubic(flow(9.3, [10.0, 11.6], (38.0, 0.0332), trains.clone()), 9.0);
    assert_eq!(judge_direction(&other).cause, None);
    // A path that stood still for a moment lost then, and at no other time.
    trains.both_ways = Some(BothWays { lost: 12, tenths_with_loss: 1, ..both });
    let still = cubic(flow(9.3, [10.0, 11.6], (38.0, 0.0332), trains.clone()), 9.0);
    assert_ne!(judge_direction(&still).cause, Some(Cause::DuplexMismatch));
    // As many lost one way, and it is loss.
    let lossy = BothWays { lost: 31, alone_lost: 150, ..both };
    trains.both_ways = Some(lossy);
    (trains.loads[0].lost, trains.loads[1].lost) = (60, 65);
    let random = cubic(flow(9.3, [10.0, 11.6], (38.0, 0.0332), trains), 9.0);
    assert_eq!(judge_direction(&random).cause, Some(Cause::RandomLoss));
}

/// A firewall that lets 50 Mbit/s of UDP pass and 7 of TCP to one port: 11.7 % sent again.
#[test]
fn an_even_rate_with_many_losses_and_no_queue_is_metered() {
    let loads = [[14.6, 14.6, 0.41], [26.3, 26.3, 0.39], [32.2, 29.3, 39.3]];
    let mut held =
        cubic(flow(6.8, [20.6, 21.0], (218.0, 0.1175), found([29.2, 21.0], &loads)), 12.0);
    let rates = [
        18.9, 27.9, 28.3, 21.6, 7.5, 8.3, 7.0, 7.0, 6.3, 6.4, 5.9, 7.9, 6.7, 6.9, 6.7, 7.3, 6.2,
        5.7,
    ];
    held.rate.intervals_bps = rates.map(|mbps| mbps * 1e6).to_vec();
    held.rate.interval_s = Some(0.1);
    let verdict = judge_direction(&held);
    assert_eq!(verdict.cause, Some(Cause::Policer));
    let bps = verdict.expected_bps.expect("it has a rate");
    assert!((bps / 6.8e6 - 1.0).abs() < 0.05, "{bps}");
    // A flow alone, without a probe, shows the same.
    (held.trains, held.capacity_bps) = (None, None);
    assert_eq!(judge_direction(&held).cause, Some(Cause::Policer));
    // Losses at random of that share leave less, and not evenly.
    held.loss.ratio = Some(0.021);
    assert_eq!(judge_direction(&held).cause, None);
    held.loss.ratio = Some(0.1175);
    for (place, rate) in held.rate.intervals_bps.iter_mut().enumerate() {
        *rate *= if place % 6 < 3 { 1.3 } else { 0.7 };
    }
    assert_eq!(judge_direction(&held).cause, None);
}

/// Eight flows over a trunk of two links of 20 Mbit/s, of which one loses 10 %; the figures of each
/// flow as they were measured.
#[test]
fn flows_that_lose_beside_others_that_do_not_have_a_bad_member() {
    let each = |sent: f64, again: f64, rtt_ms: f64| EachFlow {
        bps: sent * 1448.0 * 8.0 / 8.0,
        sent,
        again,
        rtt_s: rtt_ms / 1e3,
    };
    let mut flows = flow(21.0, [30.2, 60.0], (238.0, 0.018), found([20.0, 18.0], &[]));
    (flows.trains, flows.capacity_bps, flows.flows) = (None, None, 8);
    flows.each = vec![
        each(3689.0, 6.0, 89.2),
        each(2169.0, 5.0, 90.6),
        each(2283.0, 4.0, 33.6),
        each(2091.0, 3.0, 62.0),
        each(706.0, 51.0, 37.4),
        each(628.0, 55.0, 39.6),
        each(836.0, 60.0, 43.8),
        each(679.0, 54.0, 36.9),
    ];
    assert_eq!(judge_direction(&flows).cause, Some(Cause::UnequalPaths));
    // One queue drops of each: nobody is apart.
    for flow in &mut flows.each {
        flow.again = 0.02 * flow.sent;
    }
    assert_ne!(judge_direction(&flows).cause, Some(Cause::UnequalPaths));
}

/// Packets of the way back let go every 40 ms, before a buffer of 30 packets at 30 Mbit/s.
#[test]
fn acknowledgments_that_come_in_lumps_are_the_way_back_s() {
    let loads = [[14.65, 14.65, 0.4], [26.4, 26.4, 0.39], [32.2, 29.3, 12.4]];
    let mut lumps =
        cubic(flow(7.68, [16.5, 41.0], (63.0, 0.0286), found([29.35, 21.0], &loads)), 4.0);
    lumps.back_held_s = Some(0.041);
    assert_eq!(judge_direction(&lumps).cause, Some(Cause::AckPath));
    // A queue that others fill holds the probes of the same way too.
    lumps.back_held_s = Some(0.002);
    assert_eq!(judge_direction(&lumps).cause, None);
    for load in &mut lumps.trains.as_mut().expect("there are trains").loads {
        load.delay_ns = [18e6, 24e6, 40e6];
    }
    assert_eq!(judge_direction(&lumps).cause, Some(Cause::OtherTraffic));
    lumps.back_held_s = Some(0.041);
    assert_eq!(
        judge_direction(&lumps).cause,
        Some(Cause::OtherTraffic),
        "the way of the data is not free"
    );
    // What fills its link needs no other cause.
    let mut full = flow(28.1, [16.5, 41.0], (63.0, 0.0286), found([29.35, 21.0], &loads));
    full.back_held_s = Some(0.041);
    assert_eq!(judge_direction(&full).outcome, Outcome::AtCeiling);
}

/// Two CUBIC flows on a link of 40 Mbit/s: probes of 16 Mbit/s wait 23 to 41 ms, and BBR gets 31.
#[test]
fn a_queue_that_stands_at_less_than_half_of_the_rate_is_others() {
    let loads = [[16.05, 16.5, 37.9], [28.9, 28.8, 35.2], [35.3, 35.0, 40.4]];
    let mut rivals = found([24.7, 19.4], &loads);
    for (load, ms) in rivals.loads.iter_mut().zip([23.4, 29.7, 25.4]) {
        load.delay_ns[0] = ms * 1e6;
    }
    let mut evidence = flow(31.0, [46.0, 72.1], (667.0, 0.104), rivals.clone());
    evidence.loss.response = Some(Response::Bbr);
    assert_eq!(judge_direction(&evidence).cause, Some(Cause::OtherTraffic));
    // Jitter leaves some packets without delay; and trains leave at the rate of the link.
    for load in &mut rivals.loads {
        load.delay_ns[0] = 2e6;
    }
    evidence.trains = Some(rivals.clone());
    assert_ne!(judge_direction(&evidence).cause, Some(Cause::OtherTraffic));
    for load in &mut rivals.loads {
        load.delay_ns = [2e6, 4e6, 6e6];
    }
    rivals.capacity[0].bps = 39e6;
    evidence.trains = Some(rivals);
    assert_ne!(judge_direction(&evidence).cause, Some(Cause::OtherTraffic));
}

/// A managed queue that marks: 1 s of a flow that sent 32 segments again, and no probe of 5688 was
/// lost. That this was one event is set by hand.
#[test]
fn losses_of_one_moment_are_no_loss_at_random() {
    let loads = [[24.4, 24.4, 0.76], [41.8, 41.8, 1.71], [53.6, 48.8, 41.1]];
    let trains = found([48.7, 41.9], &loads);
    let marked = cubic(flow(33.4, [50.3, 61.9], (32.0, 0.0056), trains), 1.0);
    assert_ne!(judge_direction(&marked).cause, Some(Cause::RandomLoss));
}

/// One packet in forty is late by 20 ms, and the sender counts three duplicates (tcp_recovery 0).
/// The rate and the share sent again were measured; retransmissions, events, and the probes' counts
/// of order are set by hand (of 17,199 probes of that path 701 came late).
#[test]
fn packets_that_are_overtaken_and_never_lost_are_order() {
    let loads = [[24.4, 24.4, 0.3], [43.9, 43.9, 0.5], [53.6, 48.8, 41.1]];
    let mut trains = found([48.7, 41.9], &loads);
    trains.reordering.arrived = 12_000;
    trains.reordering.reordered = 300;
    trains.reordering.extent_packets = 70;
    let mut late = cubic(flow(27.6, [50.0, 53.5], (9.0, 0.00087), trains), 4.0);
    assert_eq!(judge_direction(&late).cause, Some(Cause::Reordering));
    // Where probes are lost too, it is loss.
    late.trains.as_mut().expect("there are trains").loads[0].lost = 3;
    assert_eq!(judge_direction(&late).cause, Some(Cause::RandomLoss));
}

/// A congestion window that stands at ten segments: 2.9 Mbit/s over 40 ms, by hand; no record of
/// such a path is stored.
#[test]
fn a_full_window_that_does_not_grow_without_a_loss_is_clamped() {
    let cwnd = 14_480.0;
    let mut clamped = cubic(flow(2.88, [40.1, 40.3], (0.0, 0.0), found([39.0, 33.9], &[])), 0.0);
    clamped.window.cwnd_bytes = Some(cwnd);
    clamped.window.cwnd_range = Some((cwnd, cwnd));
    clamped.window.flight_bytes = Some(cwnd);
    let verdict = judge_direction(&clamped);
    assert_eq!(verdict.cause, Some(Cause::CongestionControl));
    // 14,480 bytes each 40.1 ms.
    let bps = verdict.expected_bps.expect("it has a rate");
    assert!((bps / 2.889e6 - 1.0).abs() < 0.01, "{bps}");
    // A window that is not full waits for an end.
    clamped.window.flight_bytes = Some(cwnd / 2.0);
    assert_ne!(judge_direction(&clamped).cause, Some(Cause::CongestionControl));
    // BBR keeps its own.
    clamped.window.flight_bytes = Some(cwnd);
    clamped.loss.response = Some(Response::Bbr);
    assert_ne!(judge_direction(&clamped).cause, Some(Cause::CongestionControl));
}
