//! A path plan that behaves as the path that was probed, for the emulator and for virtual time:
//! what a transfer reaches on it, and what it would reach after a change.
//!
//! Left out: jitter, which costs TCP of today little; other traffic's own reaction to a flow.

#[cfg(test)]
mod bank_tests;
mod promise;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trial_tests;

pub(super) use promise::measured;
pub use promise::{path_of, try_changes};

use std::time::Duration;

use super::mechanism::{Background, Capacity, Findings, Overflow};
use crate::path::Framing;
use crate::record::{
    BucketPlan, BurstLossPlan, CrossPlan, Finish, PathPlan, ReorderPlan, SimulatePlan, SimulatedTcp,
};
use crate::simulate::ScenarioError;
use crate::time::MonoTime;

/// Other traffic below this share of the link is within the error of what was measured.
const OTHER_MIN: f64 = 0.05;
/// Reordering below this share costs nothing, and stamps of one moment look like it.
const REORDERED_MIN: f64 = 0.01;
/// Virtual time of a run: a window grows and shrinks a few times.
const RUN: Duration = Duration::from_secs(8);
/// Seeds of the runs whose mean is taken: losses are few and come at random.
const SEEDS: u64 = 5;

/// The plan of a path with this round trip at rest, from what the probes said of one direction or
/// both. What no probe saw is left open: a link without a rate, the emulator's usual buffer.
pub fn fit_path(up: &Findings, down: Option<&Findings>, rtt: Duration) -> PathPlan {
    PathPlan {
        delay: Some(format!("{:.3} ms", rtt.as_secs_f64() * 500.0)),
        forward: Some(Box::new(direction(up))),
        backward: down.map(|found| Box::new(direction(found))),
        ..PathPlan::default()
    }
}

fn direction(found: &Findings) -> PathPlan {
    let mut plan = PathPlan {
        rate: link_bps(&found.capacity).map(format_rate),
        cross: other_traffic(found).into_iter().collect(),
        reorder: reordering(found),
        ..PathPlan::default()
    };
    match found.overflow {
        Some(Overflow::Policer { rate_bps, burst_bytes }) => {
            plan.policer = Some(bucket(rate_bps.value, burst_bytes.value));
        }
        Some(Overflow::PacketRate { packets_per_s, depth_packets }) => {
            // The device hides the rate of the link behind it.
            plan.rate = None;
            plan.packets_per_sec = Some(whole_units(packets_per_s.value).max(1));
            plan.buffer = Some(format!("{} packets", whole_units(depth_packets.value).max(1)));
        }
        // A shaper's own queue lies before the link's, which nothing fills then.
        Some(_) if found.shaper.is_some() => {}
        Some(Overflow::ByteBuffer { bytes }) => {
            plan.buffer = Some(format!("{} B", whole_units(bytes.value)));
        }
        Some(Overflow::PacketBuffer { packets }) => {
            plan.buffer = Some(format!("{} packets", whole_units(packets.value)));
        }
        None => {}
    }
    plan.shaper = found.shaper.map(|shaper| bucket(shaper.rate_bps, shaper.burst_bytes));
    match found.background {
        Some(Background::Random { ratio }) => plan.loss = Some(format_share(ratio.value)),
        Some(Background::Bursts { ratio, burst_packets }) => {
            let ratio = format_share(ratio.value);
            plan.burst_loss = Some(BurstLossPlan { ratio, burst_packets });
        }
        None => {}
    }
    plan
}

/// The rate of an Ethernet link, by the size of packets that it sends the most of.
fn link_bps(capacity: &[Capacity]) -> Option<f64> {
    let of = |found: &Capacity| {
        let line_bytes = Framing::ETHERNET.line_bytes(found.ip_bytes);
        found.bps * f64::from(line_bytes) / f64::from(found.ip_bytes)
    };
    // What arrived as fast as it was sent does not show the link.
    let shown = capacity.iter().filter(|found| !found.at_least);
    shown.map(of).max_by(f64::total_cmp)
}

/// Rate that other traffic takes of a full link, if a queue serves all in the order in which they
/// come. It is too low by up to half: probes at an even pace find the room that comes free before
/// others do.
fn other_traffic(found: &Findings) -> Option<CrossPlan> {
    let held = matches!(
        found.overflow,
        Some(Overflow::Policer { .. } | Overflow::PacketRate { .. }) | None
    );
    if held || found.shaper.is_some() {
        return None;
    }
    let full = found.sustained_bps?;
    let link = found.capacity.first()?;
    let offered = found.loads.iter().filter(|load| load.ip_bytes == link.ip_bytes);
    let top = offered.map(|load| load.offered_bps).fold(0.0, f64::max);
    let kept = match found.background {
        Some(Background::Random { ratio } | Background::Bursts { ratio, .. }) => 1.0 - ratio.value,
        None => 1.0,
    };
    let others = top * (link.bps * kept / full - 1.0);
    (others > OTHER_MIN * link.bps).then(|| CrossPlan {
        rate: format_rate(others),
        packet_bytes: None,
        poisson: true,
        on: None,
        off: None,
        flow: 0,
    })
}

fn reordering(found: &Findings) -> Option<ReorderPlan> {
    let seen = found.reordering;
    let part = seen.reordered as f64 / seen.arrived.max(1) as f64;
    (part > REORDERED_MIN).then(|| ReorderPlan {
        share: format_share(part),
        extra: format!("{:.3} ms", seen.extent_ns / 1e6),
    })
}

/// Payload bit/s that flows with this TCP reach on a path, in the mean of several seeds of eight
/// seconds of virtual time.
/// # Errors
/// A path that cannot be built, or on which everything takes no time.
pub fn goodput_bps(
    path: &PathPlan,
    tcp: &SimulatedTcp,
    streams: u32,
) -> Result<f64, ScenarioError> {
    goodput_bps_of(path, tcp, streams, [Duration::ZERO, RUN], SEEDS)
}

/// The same of a span after one that is left out, with seeds from 1 on.
fn goodput_bps_of(
    path: &PathPlan,
    tcp: &SimulatedTcp,
    streams: u32,
    [omit, span]: [Duration; 2],
    seeds: u64,
) -> Result<f64, ScenarioError> {
    let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let mut plan = SimulatePlan {
        path: Box::new(path.clone()),
        place: None,
        tcp: tcp.clone(),
        streams,
        finish: Finish::TimeNs(ns(span)),
        omit_ns: ns(omit),
        start_spread_ns: 0,
        time_max_ns: ns(omit + span),
        background: None,
    };
    let mut bytes = 0;
    for seed in 1..=seeds {
        plan.path.seed = Some(seed);
        let (mut simulation, _) = plan.start_simulation(false)?;
        simulation.advance(MonoTime::default() + omit);
        let before = simulation.acked_bytes();
        simulation.advance(plan.latest_end());
        bytes += simulation.acked_bytes() - before;
    }
    Ok(bytes as f64 * 8.0 / (span.as_secs_f64() * seeds as f64))
}

fn format_rate(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}

fn format_share(part: f64) -> String {
    format!("{part:.6}")
}

fn bucket(bps: f64, bytes: f64) -> BucketPlan {
    BucketPlan { rate: format_rate(bps), burst: format!("{} B", whole_units(bytes).max(1500)) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn whole_units(value: f64) -> u64 {
    value.round() as u64
}
