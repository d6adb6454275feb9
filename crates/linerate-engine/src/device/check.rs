//! Whether a trial says anything about the device: loops, links, the tester's own losses, and
//! whether the times at which it sent explain what was lost ([`linerate_core::device::blame`]).
//!
//! A trial that lost nothing stands in any case where only the machine was disturbed; one that
//! lost is not held against the device when the tester may have been the cause.

use linerate_core::device::ForeignFrames;
use linerate_core::device::blame::{Blame, assign_blame};
use linerate_core::record::{BenchTest, BenchTrial, InvalidTrialReason, TrialPort};
use linerate_sys::netlink::LinkCounters;

/// A generator that sends less than this share of what it was asked for fell short.
pub(super) const SHORT: f64 = 0.995;

/// A load that was sent at its rate, with pauses between, stands when this share of it was offered
/// and this share of the trial was without a pause: what a device holds back shows in that time.
pub(super) const NEARLY: f64 = 0.9;
const WITHOUT_PAUSE: f64 = 0.1;

/// Stolen share of the processors' time in which losses are the host's as likely as the device's.
const STOLEN: f64 = 0.01;

/// While a processor is away for a share of the time, a device that runs on it loses at most as
/// many frames, and the burst that follows may cost as many again.
const ACCOUNTED: f64 = 2.0;

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

/// The interfaces around a trial: the ports before and after, the foreign frames and the own drops
/// of each port's counter.
pub(super) struct TrialObservation<'a> {
    pub before: &'a [PortNow],
    pub after: &'a [PortNow],
    pub counted: &'a [(ForeignFrames, u64)],
}

impl TrialObservation<'_> {
    fn counter_increase(&self, of: fn(&LinkCounters) -> u64, at: usize) -> u64 {
        of(&self.after[at].counters).saturating_sub(of(&self.before[at].counters))
    }

    fn port_indexes(&self) -> std::ops::Range<usize> {
        0..self.after.len()
    }
}

/// Puts the interfaces' own counts beside ours.
pub(super) fn fill_interfaces(
    trial: &mut BenchTrial,
    seen: &TrialObservation<'_>,
    senders: &[usize],
) {
    for (port, &at) in trial.ports.iter_mut().zip(senders) {
        port.interface_sent = Some(seen.counter_increase(|counters| counters.tx_packets, at));
        let others = seen.port_indexes().filter(|other| *other != at);
        let received =
            others.map(|other| seen.counter_increase(|counters| counters.rx_packets, other)).sum();
        // Of several senders nobody knows whose frames an interface counted.
        port.interface_received = (senders.len() == 1 || seen.after.len() == 2).then_some(received);
    }
}

/// Why a trial is no witness against the device; `expected` frames of each port, where a number
/// was asked for.
pub(super) fn invalid(
    trial: &BenchTrial,
    seen: &TrialObservation<'_>,
    expected: Option<u64>,
) -> Option<InvalidTrialReason> {
    let lost: u64 = trial.ports.iter().map(|port| port.lost_frames()).sum();
    link_down(seen)
        .or_else(|| looped(trial, seen))
        .or_else(|| (lost > 0).then(|| counter_drops(seen, lost)).flatten())
        .or_else(|| (lost > 0).then(|| stolen(trial)).flatten())
        .or_else(|| testers(trial, expected))
        .or_else(|| disagree(trial))
}

/// The cause of a port's loss: the device, perhaps the tester, or none.
pub(super) fn blame_of(port: &TrialPort) -> Blame {
    assign_blame(port.lost_frames(), port.lost_explained, port.could_lose)
}

/// The tester's own fault in a trial, unless the device lost more than that explains: a device that
/// loses less than the tester did not send may lose it of the load, too.
fn testers(trial: &BenchTrial, expected: Option<u64>) -> Option<InvalidTrialReason> {
    if trial.ports.iter().any(|port| is_devices(trial, port)) {
        return None;
    }
    tester_fell_short(trial, expected).or_else(|| explained(trial))
}

fn link_down(seen: &TrialObservation<'_>) -> Option<InvalidTrialReason> {
    let down = seen.after.iter().find(|port| !port.running)?;
    Some(InvalidTrialReason::LinkDown { detail: format!("{} lost its link", down.name) })
}

fn looped(trial: &BenchTrial, seen: &TrialObservation<'_>) -> Option<InvalidTrialReason> {
    for at in seen.port_indexes() {
        let own = seen.counted[at].0.own;
        if own > 0 {
            let name = &seen.after[at].name;
            let detail = format!("{own} frames came back to {name}, which had sent them");
            return Some(InvalidTrialReason::Loop { detail });
        }
    }
    let port = trial.ports.iter().find(|port| port.received > port.sent)?;
    let detail = format!("{} different frames came of {} sent", port.received, port.sent);
    Some(InvalidTrialReason::Loop { detail })
}

/// Frames that the tester dropped itself, where they are enough of the lost ones to matter.
fn counter_drops(seen: &TrialObservation<'_>, lost: u64) -> Option<InvalidTrialReason> {
    for at in seen.port_indexes() {
        let own = seen.counted[at].1;
        let interface =
            seen.counter_increase(|counters| counters.rx_dropped + counters.rx_errors, at);
        let name = &seen.after[at].name;
        if own > lost / EXPLAINED {
            let detail = format!("the counter on {name} dropped {own} frames");
            return Some(InvalidTrialReason::CounterDrops { detail });
        }
        if interface > lost / EXPLAINED {
            let detail = format!("the tester's {name} dropped {interface} frames on receipt");
            return Some(InvalidTrialReason::CounterDrops { detail });
        }
    }
    None
}

/// True where a port's loss is the device's. A generator that is far from a load fills rings that
/// no load of the device would: what it lost has to be more than what it did not send.
fn is_devices(trial: &BenchTrial, port: &TrialPort) -> bool {
    let intended = trial.intended_fps.unwrap_or(0.0);
    let missing = port.steady_fps.map_or(0.0, |fps| (1.0 - fps / intended).max(0.0));
    let missing = if missing > 1.0 - SHORT { missing } else { 0.0 };
    blame_of(port) == Blame::Device
        && port.lost_elsewhere() as f64 > missing * ACCOUNTED * port.sent as f64
}

fn tester_fell_short(trial: &BenchTrial, expected: Option<u64>) -> Option<InvalidTrialReason> {
    let intended = trial.intended_fps?;
    let expected = expected?;
    for port in &trial.ports {
        // One frame has no rate, and few have one that a late frame decides.
        let late_ns = if expected < FEW { LATE_NS } else { 0.0 };
        let span_ns = expected.saturating_sub(1) as f64 * 1e9 / intended;
        let allowed = span_ns / (span_ns + late_ns).max(1.0) * SHORT;
        let slow = expected > 1 && port.offered_fps < intended * allowed;
        if (port.sent < expected || slow) && !is_steady(trial, port, intended) {
            let detail = format!(
                "the tester sent {:.0} frames/s instead of {intended:.0}, {} of {expected} frames",
                port.offered_fps, port.sent
            );
            return Some(InvalidTrialReason::GeneratorShort { detail });
        }
    }
    None
}

/// True where a load was offered at its rate but for pauses, for long enough: enough to search by,
/// and to see whether what is within a contract passes.
fn is_steady(trial: &BenchTrial, port: &TrialPort, intended: f64) -> bool {
    let long = trial.duration_ns as f64 * WITHOUT_PAUSE;
    matches!(trial.test, BenchTest::Throughput | BenchTest::Contract)
        && port.offered_fps >= intended * NEARLY
        && port.steady_fps.is_some_and(|fps| fps >= intended * SHORT)
        && port.steady_ns as f64 >= long
}

/// Losses that the times of the tester's own frames explain.
fn explained(trial: &BenchTrial) -> Option<InvalidTrialReason> {
    let of_port = |port: &TrialPort| match blame_of(port) {
        Blame::MayBeTester => Some(format!(
            "{} frames were lost, and {} that the tester sent too near to each other could be",
            port.lost_frames(),
            port.could_lose
        )),
        // A search leaves them out; other tests count every frame.
        Blame::Nobody if port.lost_frames() > 0 && trial.test != BenchTest::Throughput => {
            Some(format!(
                "{} frames were lost where the tester was late, {:.1} ms away in all",
                port.lost_frames(),
                port.away_ns as f64 / 1e6
            ))
        }
        _ => None,
    };
    let detail = trial.ports.iter().find_map(of_port)?;
    Some(InvalidTrialReason::GeneratorShort { detail })
}

fn stolen(trial: &BenchTrial) -> Option<InvalidTrialReason> {
    let (sent, lost) = trial
        .ports
        .iter()
        .fold((0, 0), |(sent, lost), port| (sent + port.sent, lost + port.lost_elsewhere()));
    let lost_share = lost as f64 / sent.max(1) as f64;
    let processors = f64::from(linerate_sys::host::usable_cpus().unwrap_or(1));
    let taken = trial.stolen_ns? as f64 / trial.duration_ns.max(1) as f64;
    // The kernel counts stolen time in ticks: one alone says little.
    let ticks = trial.stolen_ns > Some(10_000_000);
    if ticks && taken / processors > STOLEN && lost > 0 && lost_share < taken * ACCOUNTED {
        let share = taken / processors * 100.0;
        let detail = format!("the hypervisor took {share:.1} % of the CPU time");
        return Some(InvalidTrialReason::StolenTime { detail });
    }
    None
}

fn disagree(trial: &BenchTrial) -> Option<InvalidTrialReason> {
    for port in &trial.ports {
        if let Some(interface) =
            port.interface_received.filter(|received| *received < port.received)
        {
            let detail =
                format!("{} frames were counted, {interface} by the interface", port.received);
            return Some(InvalidTrialReason::CountsDisagree { detail });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second of 100,000 frames at 200,000 frames/s.
    fn half_second_trial(received: u64, could_lose: u64, offered_fps: f64) -> BenchTrial {
        let port = TrialPort {
            sent: 100_000,
            received,
            could_lose,
            offered_fps,
            steady_fps: Some(offered_fps),
            steady_ns: 500_000_000,
            ..TrialPort::default()
        };
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

    fn invalid_of(trial: &BenchTrial) -> Option<InvalidTrialReason> {
        let seen = TrialObservation { before: &[], after: &[], counted: &[] };
        invalid(trial, &seen, Some(100_000))
    }

    fn is_testers(trial: &BenchTrial) {
        let found = invalid_of(trial);
        assert!(matches!(found, Some(InvalidTrialReason::GeneratorShort { .. })), "{found:?}");
    }

    #[test]
    fn one_lost_frame_is_not_the_devices_when_one_late_frame_explains_it() {
        // Formerly a device's loss: 257 of 136,864 late, one lost.
        is_testers(&half_second_trial(99_999, 257, 200_000.0));
        is_testers(&half_second_trial(82_765, 67_789, 200_000.0));
    }

    #[test]
    fn losses_beyond_what_send_times_explain_are_the_devices() {
        assert_eq!(invalid_of(&half_second_trial(99_999, 0, 200_000.0)), None);
        assert_eq!(invalid_of(&half_second_trial(50_000, 20_000, 200_000.0)), None);
        // At a fifth less than asked: half of it was lost there already, and a tenth says little.
        assert_eq!(invalid_of(&half_second_trial(50_000, 300, 160_000.0)), None);
        is_testers(&half_second_trial(90_000, 300, 160_000.0));
    }

    #[test]
    fn a_trial_without_loss_stands_however_near_its_frames_were() {
        assert_eq!(invalid_of(&half_second_trial(100_000, 60_000, 200_000.0)), None);
    }

    #[test]
    fn pauses_spoil_no_load_that_was_sent_at_its_rate_between_them() {
        let paused = |offered_fps, steady_ns| {
            let mut paused = half_second_trial(100_000, 0, offered_fps);
            paused.ports[0].steady_fps = Some(199_900.0);
            paused.ports[0].steady_ns = steady_ns;
            paused
        };
        assert_eq!(invalid_of(&paused(190_000.0, 150_000_000)), None);
        is_testers(&paused(170_000.0, 150_000_000));
        is_testers(&paused(190_000.0, 40_000_000));
        // Slower all the time.
        is_testers(&half_second_trial(100_000, 0, 190_000.0));
        // A latency test has no use for another load.
        is_testers(&BenchTrial { test: BenchTest::Latency, ..paused(190_000.0, 150_000_000) });
    }

    #[test]
    fn losses_beside_shared_pauses_are_nobodys_in_a_search() {
        let mut shared = half_second_trial(99_990, 0, 199_000.0);
        shared.ports[0].lost_explained = 10;
        assert_eq!(invalid_of(&shared), None);
        is_testers(&BenchTrial { test: BenchTest::Soak, ..shared.clone() });
        shared.ports[0].received -= 1;
        assert_eq!(blame_of(&shared.ports[0]), Blame::Device);
    }
}
