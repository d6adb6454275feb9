//! Whether a trial says anything about the device: loops, links, the tester's own losses.
//!
//! A trial that lost nothing stands in any case where only the machine was disturbed; one that
//! lost is not held against the device when the tester may have been the cause.

use linerate_core::bench::Foreign;
use linerate_core::record::{BenchTrial, Invalid, TrialPort};
use linerate_sys::netlink::LinkCounters;

/// A generator that sends less than this share of what it was asked for fell short.
pub(super) const SHORT: f64 = 0.995;

/// Stolen share of the processors' time in which losses are the host's as likely as the device's.
const STOLEN: f64 = 0.01;

/// Share of late frames at which losses may be of the bursts that make up for them.
const LATE: f64 = 0.05;

/// While a processor is away for a share of the time, a device that runs on it loses at most as
/// many frames, and the burst that follows may cost as many again.
const ACCOUNTED: f64 = 2.0;

/// A burst of late frames may cost a few on time behind them their place in a buffer.
const PER_LATE: u64 = 4;

/// The tester's own drops matter above one in so many of the lost frames.
const EXPLAINED: u64 = 10;

/// Below so many frames, a last one that is late by so many ns is no shortfall.
const FEW: u64 = 1000;
const LATE_NS: f64 = 5e6;

/// A port at one moment.
#[derive(Clone, Debug)]
pub(super) struct PortNow {
    pub name: String,
    pub running: bool,
    pub counters: LinkCounters,
}

/// What was seen around a trial: ports before and after, foreign frames and own drops of each
/// port's counter.
pub(super) struct Seen<'a> {
    pub before: &'a [PortNow],
    pub after: &'a [PortNow],
    pub counted: &'a [(Foreign, u64)],
}

impl Seen<'_> {
    fn risen(&self, of: fn(&LinkCounters) -> u64, at: usize) -> u64 {
        of(&self.after[at].counters).saturating_sub(of(&self.before[at].counters))
    }

    fn ports(&self) -> std::ops::Range<usize> {
        0..self.after.len()
    }
}

/// Puts the interfaces' own counts beside ours.
pub(super) fn fill_interfaces(trial: &mut BenchTrial, seen: &Seen<'_>, senders: &[usize]) {
    for (port, &at) in trial.ports.iter_mut().zip(senders) {
        port.interface_sent = Some(seen.risen(|it| it.tx_packets, at));
        let others = seen.ports().filter(|other| *other != at);
        let received = others.map(|other| seen.risen(|it| it.rx_packets, other)).sum();
        // Of several senders nobody knows whose frames an interface counted.
        port.interface_received = (senders.len() == 1 || seen.after.len() == 2).then_some(received);
    }
}

/// Why a trial is no witness against the device; `expected` frames of each port, where a number
/// was asked for.
pub(super) fn invalid(
    trial: &BenchTrial,
    seen: &Seen<'_>,
    expected: Option<u64>,
) -> Option<Invalid> {
    let lost: u64 = trial.ports.iter().map(|port| port.lost()).sum();
    link_down(seen)
        .or_else(|| looped(trial, seen))
        .or_else(|| (lost > 0).then(|| counter_drops(seen, lost)).flatten())
        .or_else(|| short(trial, expected))
        .or_else(|| (lost > 0).then(|| disturbed(trial)).flatten())
        .or_else(|| disagree(trial))
}

fn link_down(seen: &Seen<'_>) -> Option<Invalid> {
    let down = seen.after.iter().find(|port| !port.running)?;
    Some(Invalid::LinkDown { detail: format!("{} lost its link", down.name) })
}

fn looped(trial: &BenchTrial, seen: &Seen<'_>) -> Option<Invalid> {
    for at in seen.ports() {
        let own = seen.counted[at].0.own;
        if own > 0 {
            let name = &seen.after[at].name;
            let detail = format!("{own} frames came back to {name}, which had sent them");
            return Some(Invalid::Loop { detail });
        }
    }
    let port = trial.ports.iter().find(|port| port.received > port.sent)?;
    let detail = format!("{} different frames came of {} sent", port.received, port.sent);
    Some(Invalid::Loop { detail })
}

/// Frames that the tester dropped itself, where they are enough of the lost ones to matter.
fn counter_drops(seen: &Seen<'_>, lost: u64) -> Option<Invalid> {
    for at in seen.ports() {
        let own = seen.counted[at].1;
        let interface = seen.risen(|it| it.rx_dropped + it.rx_errors, at);
        let name = &seen.after[at].name;
        if own > lost / EXPLAINED {
            let detail = format!("the counter on {name} dropped {own} frames");
            return Some(Invalid::CounterDrops { detail });
        }
        if interface > lost / EXPLAINED {
            let detail = format!("the tester's {name} dropped {interface} frames on receipt");
            return Some(Invalid::CounterDrops { detail });
        }
    }
    None
}

fn short(trial: &BenchTrial, expected: Option<u64>) -> Option<Invalid> {
    let intended = trial.intended_fps?;
    let expected = expected?;
    for port in &trial.ports {
        // One frame has no rate, and few have one that a late frame decides.
        let late_ns = if expected < FEW { LATE_NS } else { 0.0 };
        let span_ns = expected.saturating_sub(1) as f64 * 1e9 / intended;
        let allowed = span_ns / (span_ns + late_ns).max(1.0) * SHORT;
        let slow = expected > 1 && port.offered_fps < intended * allowed;
        let missing = 1.0 - (port.offered_fps / intended).min(1.0);
        // What lost frames at less than the load does not carry the load either, unless they were
        // lost in the bursts after pauses: these are late frames.
        let lossy = port.lost() as f64 > missing * ACCOUNTED * port.sent as f64
            || port.lost() > port.late.saturating_mul(PER_LATE);
        if (port.sent < expected || slow) && (port.lost() == 0 || !lossy) {
            let detail = format!(
                "{} of {expected} frames were sent, at {:.0} of {intended:.0} frames/s",
                port.sent, port.offered_fps
            );
            return Some(Invalid::GeneratorShort { detail });
        }
    }
    None
}

/// Losses that the host's absence or late bursts may have made. Where more was lost than these can
/// account for, the device lost it.
fn disturbed(trial: &BenchTrial) -> Option<Invalid> {
    let (sent, lost) = trial
        .ports
        .iter()
        .fold((0, 0), |(sent, lost), port| (sent + port.sent, lost + port.lost()));
    stolen(trial, lost as f64 / sent.max(1) as f64).or_else(|| in_bursts(trial, lost))
}

fn stolen(trial: &BenchTrial, lost_share: f64) -> Option<Invalid> {
    let processors = f64::from(linerate_sys::host::cpus().unwrap_or(1));
    let taken = trial.stolen_ns? as f64 / trial.duration_ns.max(1) as f64;
    // The kernel counts stolen time in ticks: one alone says little.
    let ticks = trial.stolen_ns > Some(10_000_000);
    if ticks && taken / processors > STOLEN && lost_share < taken * ACCOUNTED {
        let share = taken / processors * 100.0;
        let detail = format!("the host took {share:.1} % of the processors' time");
        return Some(Invalid::StolenTime { detail });
    }
    None
}

fn in_bursts(trial: &BenchTrial, lost: u64) -> Option<Invalid> {
    let intended = trial.intended_fps?;
    // A generator that is behind all the time sends evenly and makes no bursts.
    let in_bursts = |port: &&TrialPort| {
        port.late as f64 > port.sent as f64 * LATE && port.offered_fps >= intended * SHORT
    };
    let late = trial.ports.iter().find(in_bursts)?;
    let accounted = lost < late.late;
    let detail = format!("{} of {} frames were late", late.late, late.sent);
    accounted.then_some(Invalid::GeneratorShort { detail })
}

fn disagree(trial: &BenchTrial) -> Option<Invalid> {
    for port in &trial.ports {
        if let Some(interface) = port.interface_received.filter(|it| *it < port.received) {
            let detail =
                format!("{} frames were counted, {interface} by the interface", port.received);
            return Some(Invalid::CountsDisagree { detail });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use linerate_core::record::BenchTest;

    use super::*;

    /// Half a second of 100,000 frames at 200,000 frames/s.
    fn trial(received: u64, late: u64, offered_fps: f64) -> BenchTrial {
        let port = TrialPort { sent: 100_000, received, late, offered_fps, ..TrialPort::default() };
        BenchTrial {
            test: BenchTest::Throughput,
            at_ns: 0,
            duration_ns: 500_000_000,
            intended_fps: Some(200_000.0),
            ports: vec![port],
            stolen_ns: None,
            pause_frames: None,
            invalid: None,
            why: None,
        }
    }

    fn invalid_of(trial: &BenchTrial) -> Option<Invalid> {
        let seen = Seen { before: &[], after: &[], counted: &[] };
        invalid(trial, &seen, Some(100_000))
    }

    #[test]
    fn losses_that_late_bursts_account_for_are_the_generators_with_or_without_stolen_time() {
        for stolen_ns in [None, Some(0)] {
            let trial = BenchTrial { stolen_ns, ..trial(82_765, 67_789, 200_000.0) };
            let found = invalid_of(&trial);
            assert!(matches!(found, Some(Invalid::GeneratorShort { .. })), "{found:?}");
        }
    }

    #[test]
    fn losses_that_late_frames_cannot_account_for_are_the_devices() {
        // More lost than late.
        assert_eq!(invalid_of(&trial(50_000, 20_000, 200_000.0)), None);
        // Behind all the time, so evenly at 150,000 frames/s, of which most were lost.
        assert_eq!(invalid_of(&trial(40_000, 99_900, 150_000.0)), None);
        // Never in bursts, at a fifth less than asked: a tenth was lost there already.
        assert_eq!(invalid_of(&trial(90_000, 300, 160_000.0)), None);
        // On time.
        assert_eq!(invalid_of(&trial(99_000, 0, 200_000.0)), None);
    }

    #[test]
    fn a_generator_that_fell_short_in_pauses_may_have_made_its_losses() {
        let found = invalid_of(&trial(99_000, 300, 160_000.0));
        assert!(matches!(found, Some(Invalid::GeneratorShort { .. })), "{found:?}");
    }

    #[test]
    fn a_trial_without_loss_stands_however_late_its_frames_were() {
        assert_eq!(invalid_of(&trial(100_000, 60_000, 200_000.0)), None);
    }
}
