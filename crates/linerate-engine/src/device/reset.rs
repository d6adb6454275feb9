//! How long nothing is forwarded when the device or a link restarts (RFC 2544 §26.6).
//!
//! Frames run at the throughput, and midway something restarts: the link of the receiving port, or
//! whatever the plan's command restarts. The time is told by both methods of RFC 6201: frames lost
//! over the load, and time from last to first arrival. Power is left to the command.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_core::device::recovery::{ResetTime, outages_ns};
use linerate_core::record::{BenchPlan, BenchTest, Failure, Fault, Reset, TrialPort};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::stop::Stop;
use linerate_sys::{child, clock};

use super::burst::ROOM_FRAMES;
use super::namespaces::{Namespaces, inside};
use super::port::TesterPort;
use super::setup::{
    Restart, RestartTarget, SenderResult, TestSetup, TrialAbort, TrialCounts, TrialSpec,
};
use crate::failure::system;

/// How long the link is down, ns: long enough that the device notices.
const DOWN_NS: u64 = 100_000_000;

/// How often a command's end is looked for, and how long it may take.
const LOOK: Duration = Duration::from_millis(2);
const COMMAND_NS: u64 = 120_000_000_000;

/// Longest part of a command's complaint that is told.
const COMPLAINT_BYTES: u64 = 400;

/// Restarts midway at this load, once for each repetition.
pub(super) fn measure_reset(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    fps: f64,
) -> Result<Reset, TrialAbort> {
    let output = setup.port_names().len().min(2) - 1;
    let target = match &plan.reset_command {
        Some(command) => RestartTarget::Command(command.clone()),
        None => RestartTarget::Link(output, DOWN_NS),
    };
    let mut found = Reset {
        what: describe_restart(&target, &setup.port_names()),
        by_loss_ns: Vec::new(),
        by_stamps_ns: Vec::new(),
        outages: Vec::new(),
        partial: 0,
    };
    for _ in 0..plan.times.repetitions.max(1) {
        let length_ns = 2 * plan.times.trial_ns.max(DOWN_NS);
        let restart = Restart { after_ns: length_ns / 4, target: target.clone() };
        let load = fps.max(1.0) as u64;
        let frames = u128::from(load) * u128::from(length_ns) / 1_000_000_000;
        let spec = TrialSpec {
            restart: Some(restart),
            arrivals: frames <= u128::from(ROOM_FRAMES),
            ..TrialSpec::new(BenchTest::Reset, Some(load), length_ns)
        };
        let outcome = setup.run_trial(&spec)?;
        check_forwards_again(&outcome, &found.what)?;
        add_repetition(&mut found, &reset_times(&outcome));
    }
    Ok(found)
}

fn describe_restart(target: &RestartTarget, ports: &[String]) -> String {
    match target {
        RestartTarget::Command(command) => command.clone(),
        RestartTarget::Link(port, down_ns) => {
            let name = ports.get(*port).map_or("", String::as_str);
            format!("link {name}, down for {} ms", down_ns / 1_000_000)
        }
    }
}

/// Reset time of each sending port (RFC 6201). Where the counter tells no times of arrival, the
/// longest gap between two is the one outage.
fn reset_times(outcome: &TrialCounts) -> Vec<ResetTime> {
    let reset_time = |port: &TrialPort, result: &SenderResult| {
        let longest = result.received.iter().map(|(_, it)| it.gap.max_ns).max().unwrap_or(0);
        let outages = match result.arrivals.is_empty() {
            true if port.lost_frames() > 0 => vec![longest],
            true => Vec::new(),
            false => outages_ns(&result.arrivals),
        };
        ResetTime::new(port.lost_frames(), port.offered_fps, &outages)
    };
    let ports = outcome.trial.ports.iter().zip(&outcome.results);
    ports.filter_map(|(port, result)| reset_time(port, result)).collect()
}

/// Adds one more repetition: of several sending ports each figure is the worst.
fn add_repetition(found: &mut Reset, times: &[ResetTime]) {
    let worst = |of: fn(&ResetTime) -> Option<u64>| times.iter().filter_map(of).max();
    found.by_loss_ns.extend(worst(|time| Some(time.by_loss_ns)));
    found.by_stamps_ns.extend(worst(|time| time.by_stamps_ns));
    found.outages.extend(worst(|time| Some(time.outages)));
    found.partial += u32::from(times.iter().any(|time| time.is_partial));
}

/// A device that forwards nothing at the end of the trial takes longer than the trial.
fn check_forwards_again(outcome: &TrialCounts, what: &str) -> Result<(), Failure> {
    for (port, result) in outcome.trial.ports.iter().zip(&outcome.results) {
        let last = result.received.iter().map(|(_, it)| it.last_ns).max().unwrap_or(0);
        let silent_ns = result.sent.last_ns.saturating_sub(last);
        let lost_ns = port.lost_frames() as f64 * 1e9 / port.offered_fps.max(1.0);
        // All that was lost was lost at the end.
        if silent_ns >= DOWN_NS && silent_ns as f64 >= lost_ns * 0.9 {
            let silent_s = silent_ns as f64 / 1e9;
            let reason = format!("nothing came in the last {silent_s:.1} s of the trial");
            return Err(Failure::new(
                Fault::Unreachable,
                "see the end of a restart of",
                what,
                reason,
            )
            .advise("use longer trials (--trial-time)"));
        }
    }
    Ok(())
}

/// Something to restart, with all that is needed to do it beside a trial.
pub(super) enum RestartJob {
    Link { host: Option<String>, ifindex: u32, name: String, down_ns: u64 },
    Command(String),
}

impl RestartJob {
    /// The restart of the link of one of `ports`, or by a command.
    pub(super) fn from_target(target: &RestartTarget, ports: &[TesterPort]) -> Self {
        match target {
            RestartTarget::Command(command) => Self::Command(command.clone()),
            RestartTarget::Link(at, down_ns) => {
                let TesterPort { host, ifindex, name, .. } = &ports[*at];
                let (host, name) = (host.clone(), name.clone());
                Self::Link { host, ifindex: *ifindex, name, down_ns: *down_ns }
            }
        }
    }

    /// Restarts after a time, unless the user wants no more.
    pub(super) fn run_after(
        &self,
        ns: u64,
        namespaces: &dyn Namespaces,
        stop: &Stop,
    ) -> Result<(), Failure> {
        clock::sleep(Duration::from_nanos(ns));
        if stop.is_requested() { Ok(()) } else { self.run(namespaces, stop) }
    }

    /// Restarts the target now.
    pub(super) fn run(&self, namespaces: &dyn Namespaces, stop: &Stop) -> Result<(), Failure> {
        match self {
            Self::Command(command) => run_command(command, stop),
            Self::Link { host, ifindex, name, down_ns } => {
                let down = Duration::from_nanos(*down_ns);
                let done = inside(namespaces, host.as_deref(), || restart_link(*ifindex, down))?;
                done.map_err(|error| system(&error).advise(format!("set {name} up again")))
            }
        }
    }
}

fn restart_link(ifindex: u32, down: Duration) -> Result<(), linerate_sys::Error> {
    let mut links = RouteSocket::open()?;
    links.set_down(ifindex)?;
    clock::sleep(down);
    links.set_up(ifindex)
}

/// Runs the user's command by the shell, and waits for its end.
fn run_command(text: &str, stop: &Stop) -> Result<(), Failure> {
    let failed =
        |reason: String| Failure::new(Fault::System, "restart the device by", text, reason);
    let mut command = Command::new("sh");
    command.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let spawned = child::die_with_parent(&mut command).spawn();
    let mut running = spawned.map_err(|error| failed(error.to_string()))?;
    let began = clock::monotonic();
    let status = loop {
        match running.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        let is_over = clock::monotonic().nanos_since(began) > COMMAND_NS;
        if is_over || stop.is_requested() {
            // One that has ended meanwhile is none to kill.
            let _ = running.kill().and_then(|()| running.wait().map(|_| ()));
            let late = format!("it took longer than {} s", COMMAND_NS / 1_000_000_000);
            return if is_over { Err(failed(late)) } else { Ok(()) };
        }
        clock::sleep(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let mut complaint = String::new();
    if let Some(from) = running.stderr.take() {
        // What cannot be read is not told.
        let _ = from.take(COMPLAINT_BYTES).read_to_string(&mut complaint);
    }
    let line = complaint.lines().next().unwrap_or("no message").to_owned();
    Err(failed(format!("{status}: {line}")))
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Simulated, bench_plan};
    use super::*;

    #[test]
    fn a_link_that_is_down_for_100_ms_is_so_by_both_methods() {
        // 1000 frames/s: 100 are lost; the ones around them are 101 ms apart.
        let mut setup = Simulated::new(Device::default());
        let found = measure_reset(&mut setup, &bench_plan(500_000_000), 1000.0).unwrap();
        assert_eq!(found.what, "link eth1, down for 100 ms");
        assert_eq!(found.by_loss_ns, [100_000_000; 3]);
        assert_eq!(found.by_stamps_ns, [101_000_000; 3]);
        assert_eq!((found.outages, found.partial), (vec![1; 3], 0));
    }

    #[test]
    fn without_times_of_arrival_the_longest_gap_is_the_outage() {
        // More frames than are kept: 1,000,000 frames/s in 2 s; a gap is 1 us.
        let mut setup = Simulated::new(Device::default());
        let found = measure_reset(&mut setup, &bench_plan(1_000_000_000), 1e6).unwrap();
        assert_eq!(found.by_loss_ns, [100_000_000; 3]);
        assert_eq!(found.by_stamps_ns, [100_001_000; 3]);
        assert_eq!((found.outages, found.partial), (vec![1; 3], 0));
    }

    #[test]
    fn frames_that_pass_in_between_make_more_than_one_outage() {
        // Every 40th frame is lost besides: 1,000 frames of 1 s, 100 of them while the link is
        // down.
        let device = Device { lose_every: Some(40), ..Device::default() };
        let found =
            measure_reset(&mut Simulated::new(device), &bench_plan(500_000_000), 1000.0).unwrap();
        assert!(found.outages.iter().all(|outages| *outages > 20), "{found:?}");
        assert!(found.by_loss_ns.iter().all(|ns| *ns > 120_000_000), "{found:?}");
    }

    #[test]
    fn a_device_that_does_not_come_back_within_the_trial_is_said_to() {
        let outage = Some((300_000_000, u64::MAX));
        let mut setup = Simulated::new(Device { outage, ..Device::default() });
        let plan =
            BenchPlan { reset_command: Some("reboot".to_owned()), ..bench_plan(500_000_000) };
        let Err(TrialAbort::Failed(failure)) = measure_reset(&mut setup, &plan, 1000.0) else {
            panic!("it came back")
        };
        assert_eq!(failure.object, "reboot");
        assert!(failure.reason.contains("nothing came in the last 0.7 s"), "{failure}");
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_own_words() {
        let stop = Stop::new();
        run_command("true", &stop).unwrap();
        let failure = run_command("echo no such device >&2; exit 3", &stop).unwrap_err();
        assert!(failure.to_string().ends_with("exit status: 3: no such device"), "{failure}");
        stop.request_stop();
        run_command("sleep 1000", &stop).unwrap();
    }
}
