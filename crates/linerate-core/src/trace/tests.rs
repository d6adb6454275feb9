//! Planted faults are found at their place, and nobody else is accused.

use super::*;
use crate::path::Random;
use crate::record::{ArrivedMarks, Hop, HopNode};

/// A path of `hops` hops, the last the end, whose routers all answer; a probe to hop h has
/// survived with 1 - `loss(h)`. Rounds 10 ms apart.
fn path(seed: u64, hops: u8, rounds: u64, loss: impl Fn(u8) -> f64) -> TraceResult {
    let mut random = Random::new(seed, 0);
    let mut trace = TraceResult { reached: true, ..TraceResult::default() };
    for ttl in 1..=hops {
        let samples = (0..rounds).map(|round| {
            let lost = random.next_uniform() < loss(ttl);
            // Noise of up to 0.1 ms in steps of 1 us.
            let noise = (0..100).filter(|_| random.next_uniform() < 0.5).count() as u64 * 1000;
            let rtt = 1_000_000 * u64::from(ttl) + noise;
            sample(round * 10_000_000, (!lost).then_some(rtt), TracePhase::Idle)
        });
        trace.hops.push(Hop {
            ttl,
            nodes: vec![HopNode { address: format!("10.0.{ttl}.1"), ..HopNode::default() }],
            is_end: ttl == hops,
            samples: samples.collect(),
            ..Hop::default()
        });
    }
    trace
}

fn sample(at_ns: u64, rtt_ns: Option<u64>, phase: TracePhase) -> HopSample {
    HopSample { at_ns, flow: 0, node: rtt_ns.map(|_| 0), rtt_ns, phase }
}

/// A bucket of 6 and 1 a second at a hop, as Linux has it.
fn limit(trace: &mut TraceResult, ttl: u8, per_second: f64) {
    let (mut tokens, mut last) = (6.0_f64, 0);
    for it in &mut trace.hops[usize::from(ttl) - 1].samples {
        tokens = (tokens + (it.at_ns - last) as f64 / 1e9 * per_second).min(6.0);
        last = it.at_ns;
        if tokens < 1.0 {
            it.rtt_ns = None;
        } else if it.rtt_ns.is_some() {
            tokens -= 1.0;
        }
    }
}

fn losses(trace: &TraceResult) -> Vec<(u8, u8)> {
    let places = trace.findings.iter().filter_map(|it| match it {
        Finding::Loss { after, at, .. } => Some((*after, *at)),
        _ => None,
    });
    places.collect()
}

#[test]
fn one_percent_at_hop_3_is_charged_to_hop_3() {
    let found = (0..50).filter(|&seed| {
        let mut trace = path(seed, 6, 1000, |ttl| if ttl >= 3 { 0.01 } else { 0.0 });
        fill_findings(&mut trace, None);
        losses(&trace) == [(2, 3)]
    });
    let found = found.count();
    assert!(found >= 48, "{found} of 50");
}

#[test]
fn routers_that_limit_their_answers_are_never_charged_with_loss() {
    for seed in 0..50 {
        // Rounds 10 ms apart: nine of ten probes of the slow ones are not answered.
        let mut trace = path(seed, 6, 500, |_| 0.0);
        for (ttl, per_second) in [(1, 1.0), (3, 10.0), (5, 50.0)] {
            limit(&mut trace, ttl, per_second);
        }
        fill_findings(&mut trace, None);
        assert_eq!(losses(&trace), [], "seed {seed}");
        let limited = trace.findings.iter().filter_map(|it| match it {
            Finding::RateLimited { at, per_second: Some(rate), .. } => Some((*at, *rate)),
            _ => None,
        });
        let limited: Vec<(u8, f64)> = limited.collect();
        let near = |(at, rate): (u8, f64), found: &(u8, f64)| {
            found.0 == at && (found.1 / rate - 1.0).abs() < 0.1
        };
        let expected = [(1, 1.0), (3, 10.0), (5, 50.0)];
        let all = limited.len() == 3 && expected.into_iter().zip(&limited).all(|(a, b)| near(a, b));
        assert!(all, "seed {seed}: {limited:?}");
    }
}

#[test]
fn a_limit_that_only_the_search_met_is_no_limit_of_the_rounds() {
    let mut trace = path(1, 3, 10, |_| 0.0);
    let bunch = (0..40).map(|n| sample(n * 1_000_000, (n < 6).then_some(1), TracePhase::Search));
    trace.hops[1].samples.splice(0..0, bunch.collect::<Vec<_>>());
    fill_findings(&mut trace, None);
    assert_eq!(trace.findings, []);
}

#[test]
fn loss_is_found_between_the_witnesses_around_a_limited_hop() {
    let found = (0..20).filter(|&seed| {
        let mut trace = path(seed, 6, 1000, |ttl| if ttl >= 3 { 0.02 } else { 0.0 });
        limit(&mut trace, 3, 1.0);
        fill_findings(&mut trace, None);
        losses(&trace) == [(2, 4)]
    });
    let found = found.count();
    assert!(found >= 19, "{found} of 20");
}

#[test]
fn a_router_that_answers_every_other_probe_loses_nothing() {
    let mut trace = path(1, 5, 200, |ttl| if ttl == 2 { 0.5 } else { 0.0 });
    fill_findings(&mut trace, None);
    assert_eq!(losses(&trace), []);
    assert!(matches!(trace.findings[..], [Finding::RateLimited { at: 2, per_second: None, .. }]));
    // Nor does the end where its echoes come back.
    let mut trace = path(1, 5, 200, |ttl| if ttl == 5 { 0.5 } else { 0.0 });
    trace.echoes = (0..200).map(|n| sample(n, Some(5_000_000), TracePhase::Idle)).collect();
    fill_findings(&mut trace, None);
    assert_eq!(losses(&trace), []);
}

#[test]
fn two_lossy_links_are_told_apart() {
    let loss = |ttl| {
        if ttl >= 5 {
            0.25
        } else if ttl >= 2 {
            0.05
        } else {
            0.0
        }
    };
    let found = (0..20).filter(|&seed| {
        let mut trace = path(seed, 6, 1000, loss);
        fill_findings(&mut trace, None);
        losses(&trace) == [(1, 2), (4, 5)]
    });
    let found = found.count();
    assert!(found >= 18, "{found} of 20");
}

#[test]
fn what_a_hop_adds_is_told_with_its_interval_and_not_below_its_noise() {
    let mut trace = path(3, 3, 40, |_| 0.0);
    // The third hop is as far as the second one.
    trace.hops[2].samples = trace.hops[1].samples.clone();
    fill_findings(&mut trace, None);
    let added = trace.hops[1].added.expect("1 ms is far above the noise of 0.1 ms");
    assert!(added.low_ns < 1e6 && added.high_ns > 1e6 && added.low_ns > 0.8e6, "{added:?}");
    assert_eq!((trace.hops[0].added, trace.hops[2].added), (None, None));
}

#[test]
fn the_queue_stands_before_the_first_hop_from_which_all_rise() {
    for at in 1..=6 {
        let mut trace = path(at.into(), 6, 10, |_| 0.0);
        for hop in &mut trace.hops {
            // A slow answer of hop 2 alone is its processor, not the path.
            let queue = if hop.ttl >= at { 20_000_000 } else { 0 };
            let slow = if hop.ttl == 2 && at > 2 { 40_000_000 } else { 0 };
            let loaded = hop.samples.clone().into_iter().map(|it| HopSample {
                rtt_ns: it.rtt_ns.map(|ns| ns + queue + slow),
                phase: TracePhase::Loaded,
                ..it
            });
            hop.samples.extend(loaded.collect::<Vec<_>>());
        }
        fill_findings(&mut trace, Some(Direction::Up));
        let Some(Finding::Queue { after, at: found, rise_ns, .. }) = trace.findings.first() else {
            panic!("no queue at {at}: {:?}", trace.findings)
        };
        // Where hop 2 is slow it is no witness, and the last one without the queue is hop 1.
        let before = if at == 3 { 1 } else { at - 1 };
        assert_eq!((*after, *found), (before, at));
        assert!((rise_ns / 2e7 - 1.0).abs() < 0.02, "{rise_ns}");
    }
}

#[test]
fn a_router_that_comes_again_and_again_is_a_loop_from_where_it_is_first() {
    let mut trace = path(1, 8, 1, |_| 0.0);
    trace.hops[7].is_end = false;
    for ttl in [4, 6, 8] {
        trace.hops[ttl - 1].nodes[0].address = "10.9.9.9".to_owned();
    }
    fill_findings(&mut trace, None);
    let expected = Finding::Loop { at: 4, address: "10.9.9.9".to_owned() };
    assert_eq!(trace.findings.first(), Some(&expected));
    // One that forwards a packet that it should have answered is there twice.
    trace.hops[7].nodes[0].address = "10.0.8.1".to_owned();
    fill_findings(&mut trace, None);
    assert!(trace.findings.is_empty(), "{:?}", trace.findings);
}

#[test]
fn changed_headers_and_parting_flows_are_placed() {
    let mut trace = path(1, 5, 1, |_| 0.0);
    (trace.dscp_sent, trace.ecn_sent) = (Some(10), Some(2));
    for hop in &mut trace.hops {
        let dscp = if hop.ttl >= 3 { 0 } else { 10 };
        let ecn = if hop.ttl >= 4 { 0 } else { 2 };
        let arrived = ArrivedMarks { dscp, ecn, translated: hop.ttl >= 2 };
        // One router in between does not quote.
        hop.arrived = (hop.ttl != 2).then_some(arrived);
    }
    let node = trace.hops[0].nodes[0].clone();
    trace.hops[2].nodes = vec![node.clone(); 4];
    fill_findings(&mut trace, None);
    assert_eq!(
        trace.findings,
        [
            Finding::Dscp { after: 1, at: 3, from: 10, to: 0 },
            Finding::Translated { after: 1, at: 3 },
            Finding::Ecn { after: 3, at: 4, from: 2, to: 0 },
            Finding::Spread { after: 2, at: 3, width: 4, until: Some(4) },
        ]
    );
}

/// Sixteen flows over four routers at hop 3 of six hops; `loss` of a flow at a hop, there and back.
fn spread_path(seed: u64, rounds: u64, loss: impl Fn(u16, u8) -> f64) -> TraceResult {
    let mut random = Random::new(seed, 0);
    let mut trace = TraceResult { reached: true, ..TraceResult::default() };
    for ttl in 1..=6 {
        let width = if ttl == 3 { 4 } else { 1 };
        let nodes = (0..width).map(|router| HopNode {
            address: format!("10.0.{ttl}.{}", router + 1),
            flows: (0..16).filter(|flow| flow % width == router).collect(),
            ..HopNode::default()
        });
        let mut samples = Vec::new();
        for round in 0..rounds {
            for flow in 0..16 {
                let lost = random.next_uniform() < loss(flow, ttl);
                let it = sample(round * 50_000_000, (!lost).then_some(1_000_000), TracePhase::Idle);
                samples.push(HopSample { flow, ..it });
            }
        }
        let nodes = nodes.collect();
        trace.hops.push(Hop { ttl, nodes, is_end: ttl == 6, samples, ..Hop::default() });
    }
    trace
}

#[test]
fn the_router_whose_flows_lose_is_named() {
    // Flows 2, 6, 10 and 14 pass 10.0.3.3; it loses 5 % of what comes in, or of what goes out.
    for at in [3, 4] {
        let found = (0..20).filter(|&seed| {
            let mut trace =
                spread_path(
                    seed,
                    100,
                    |flow, ttl| {
                        if flow % 4 == 2 && ttl >= at { 0.05 } else { 0.0 }
                    },
                );
            fill_findings(&mut trace, None);
            let [Finding::FlowLoss { after, at: place, ref flows, ref routers, ratio, of, .. }] =
                trace.findings[..1]
            else {
                return false;
            };
            assert_eq!(losses(&trace), [], "seed {seed}: what a few flows lose is not all loss");
            (after, place, of) == (at - 1, at, 16)
                && *flows == [2, 6, 10, 14]
                && *routers == ["10.0.3.3"]
                && (ratio / 0.05 - 1.0).abs() < 0.5
        });
        let found = found.count();
        assert!(found >= 19, "hop {at}: {found} of 20");
    }
}

#[test]
fn a_dead_member_is_a_loss_of_its_flows_alone() {
    let mut trace =
        spread_path(1, 20, |flow, ttl| if flow % 4 == 1 && ttl >= 4 { 1.0 } else { 0.0 });
    fill_findings(&mut trace, None);
    let [Finding::FlowLoss { after: 3, at: 4, ref flows, ref routers, ratio, .. }] =
        trace.findings[..1]
    else {
        panic!("{:?}", trace.findings)
    };
    assert_eq!((&flows[..], &routers[..]), (&[1, 5, 9, 13][..], &["10.0.3.2".to_owned()][..]));
    assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn loss_of_all_flows_is_charged_to_no_flow() {
    let placed = (0..50).filter(|&seed| {
        let mut trace = spread_path(seed, 100, |_, ttl| if ttl >= 3 { 0.02 } else { 0.0 });
        fill_findings(&mut trace, None);
        let of_flows = trace.findings.iter().any(|it| matches!(it, Finding::FlowLoss { .. }));
        assert!(!of_flows, "seed {seed}: {:?}", trace.findings);
        losses(&trace) == [(2, 3)]
    });
    let placed = placed.count();
    assert!(placed >= 46, "{placed} of 50");
    // Nor what a router with a bucket does not answer.
    for seed in 0..20 {
        let mut trace = spread_path(seed, 100, |_, _| 0.0);
        limit(&mut trace, 4, 10.0);
        fill_findings(&mut trace, None);
        let of_flows = trace.findings.iter().any(|it| matches!(it, Finding::FlowLoss { .. }));
        assert!(!of_flows, "seed {seed}: {:?}", trace.findings);
    }
}
