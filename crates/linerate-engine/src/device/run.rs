//! One benchmark from its plan to its record.

use linerate_core::device::latency::frame_time_ns;
use linerate_core::device::medium::{Medium, is_tester_limited};
use linerate_core::record::{
    BenchPlan, BenchResult, BenchTest, BenchTrial, Caveat, CaveatCode, Event, Failure, Fault,
    GoalFound, InvalidTrialReason, Overload, Plan, Record, RecordStatus,
};
use linerate_core::units::{BitRate, FrameLen};
use linerate_sys::clock::{monotonic, record_id, wall_time};

use super::bounds::Bounds;
use super::forwarding;
use super::measure;
use super::namespaces::Namespaces;
use super::self_test;
use super::setup::{TestSetup, TrialAbort};
use super::tester::BenchTester;
use super::{addresses, blocking, burst, cells, contract, reset, search};
use crate::context::Context;
use crate::environment::local_end;

/// Measures as planned, on interfaces of `namespaces`. The record always exists: when
/// something fails it says so, and keeps what was measured before.
pub fn run(plan: &BenchPlan, namespaces: &dyn Namespaces, context: &mut Context<'_>) -> Record {
    let begin = monotonic();
    let tool = context.tool.clone();
    let mut record = Record::from_plan(record_id(), tool, Plan::Bench(plan.clone()), wall_time());
    (context.watch)(&Event::Plan(record.plan.clone()));
    record.ends = vec![local_end(None)];
    let mut found = BenchResult::default();
    match measure_all(plan, namespaces, context, &mut found) {
        Ok(()) => {
            record.failure = without_result(&found);
            if record.failure.is_some() {
                let any = found.trials.iter().any(|trial| trial.invalid.is_none());
                record.status = if any { RecordStatus::Partial } else { RecordStatus::Error };
            }
        }
        Err(TrialAbort::Stopped) => record.status = RecordStatus::Interrupted,
        Err(TrialAbort::Failed(failure)) => {
            let nothing = found.flood.is_none() && found.goals.is_empty();
            record.status = if nothing { RecordStatus::Error } else { RecordStatus::Partial };
            record.failure = Some(failure);
        }
    }
    record.caveats = caveats(&found);
    record.summary = found.summary();
    record.bench = Some(Box::new(found));
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// The failure of a benchmark that the tester kept from having a result: a search that came to no
/// end, or a test of which every trial was spoilt.
fn without_result(found: &BenchResult) -> Option<Failure> {
    let undecided = found.goals.iter().find_map(|goal| Some((goal, goal.unfinished.as_ref()?)));
    if let Some((goal, reason)) = undecided {
        let failure = Failure::new(
            Fault::Instrument,
            "search for",
            format!("the {} rate", goal.goal),
            reason,
        );
        return Some(failure.advise(LEAVE_ALONE));
    }
    for trial in &found.trials {
        let mut same = found.trials.iter().filter(|other| other.test == trial.test);
        if same.all(tells_nothing) {
            let reason = trial.invalid.as_ref().map_or("", |reason| reason.detail());
            let count = found.trials.iter().filter(|other| other.test == trial.test).count();
            let reason = format!("all of its trials ({count}) say nothing of the device: {reason}");
            let failure = Failure::new(Fault::Instrument, "measure", trial.test.name(), reason);
            return Some(failure.advise(LEAVE_ALONE));
        }
    }
    None
}

/// True where a trial says nothing of the device. One that was to show loss or delay at a load says
/// something where all of less than that load came through.
fn tells_nothing(trial: &BenchTrial) -> bool {
    let shows_less = matches!(trial.test, BenchTest::Soak | BenchTest::Latency)
        && matches!(trial.invalid, Some(InvalidTrialReason::GeneratorShort { .. }))
        && trial.ports.iter().all(|port| port.sent > 0 && port.lost_frames() == 0);
    trial.invalid.is_some() && !shows_less
}

const LEAVE_ALONE: &str = "stop other work on the tester, and repeat";

fn measure_all(
    plan: &BenchPlan,
    namespaces: &dyn Namespaces,
    context: &mut Context<'_>,
    found: &mut BenchResult,
) -> Result<(), TrialAbort> {
    check_plan(plan)?;
    let (generator, counter, mtu, facts) = {
        let mut tester = BenchTester::open_ports(plan, namespaces, context)?;
        forwarding::check_forwarding(&mut tester, plan)?;
        let mtu = tester.ports.iter().map(|port| port.facts.mtu_bytes).min().unwrap_or(0);
        (tester.generator, tester.counter, mtu, tester.port_facts())
    };
    found.ports = facts;
    let speed_bps = found.ports.iter().filter_map(|facts| facts.speed_bps).min();
    let line = plan.line.or_else(|| speed_bps.map(BitRate::from_bits_per_sec));
    found.theoretical_fps = theoretical(plan, line);
    (context.watch)(&Event::BenchStep("the tester alone, over a virtual cable".to_owned()));
    let own = self_test::over_own_cable(plan, generator, counter, mtu, context)?;
    let bounds = Bounds {
        tester_fps: own.frames_per_sec,
        theoretical_fps: found.theoretical_fps,
        asked_max: plan.frames_per_sec_max,
    };
    found.tester = Some(own);
    let frame = FrameLen::from_bytes(plan.frames.size_bytes).ok();
    let frame_ns = line.zip(frame).and_then(|(line, frame)| frame_time_ns(frame, line));
    let mut tester = BenchTester::open_ports(plan, namespaces, context)?;
    let outcome = run_tests(plan, &bounds, frame_ns, &mut tester, found);
    found.trials = std::mem::take(&mut tester.trials);
    outcome
}

fn run_tests(
    plan: &BenchPlan,
    bounds: &Bounds,
    frame_ns: Option<u64>,
    setup: &mut dyn TestSetup,
    found: &mut BenchResult,
) -> Result<(), TrialAbort> {
    for test in &plan.tests {
        setup.announce(&format!("{} of {} bytes", test.name(), plan.frames.size_bytes));
        let throughput = throughput_of(plan, bounds, found);
        match test {
            BenchTest::Flood => found.flood = Some(measure::measure_flood(setup, plan)?),
            BenchTest::Throughput => search::throughput(setup, plan, bounds, found)?,
            BenchTest::LossCurve => {
                measure::loss_curve(setup, plan, bounds, &mut found.loss_curve)?;
            }
            BenchTest::Overload => {
                measure::overload(setup, plan, bounds, throughput, &mut found.overload)?;
                let senders = plan.way.senders(plan.ports.len()) as f64;
                let known = found.goals.iter().find_map(|goal| goal.lower_fps);
                let all = found.load_points().filter(|_| !found.overload.is_empty());
                found.overloaded = Overload::from_points(all, known.map(|fps| fps * senders));
            }
            BenchTest::Latency => {
                for fps in [throughput, self_test::LATENCY_FPS.min(throughput / 10.0)] {
                    found.latency.extend(measure::latency(setup, plan, fps, frame_ns)?);
                }
            }
            BenchTest::BackToBack => {
                let known = (!found.goals.is_empty()).then_some(throughput);
                found.back_to_back = burst::back_to_back(setup, plan, known)?;
            }
            BenchTest::Recovery => {
                let max_fps = bounds.max_fps();
                found.recovery = Some(burst::recovery(setup, plan, throughput, max_fps)?);
            }
            BenchTest::Soak => found.soak = measure::measure_soak(setup, plan, throughput)?,
            BenchTest::Reset => found.reset = Some(reset::measure_reset(setup, plan, throughput)?),
            BenchTest::Addresses => {
                let max_fps = bounds.max_fps();
                found.caching = Some(addresses::addresses(setup, plan, throughput, max_fps)?);
            }
            BenchTest::Blocking => {
                let load = found.theoretical_fps.unwrap_or(throughput);
                let (free, congestion) = blocking::blocking(setup, plan, load)?;
                (found.blocking, found.congestion) = (Some(free), Some(congestion));
            }
            BenchTest::Contract => {
                let most = bounds.max_fps();
                found.contract = Some(match &plan.cell_contract {
                    Some(ordered) => cells::measure_cell_contract(setup, plan, ordered, most)?,
                    None => contract::contract(setup, plan, most)?,
                });
            }
        }
    }
    Ok(())
}

/// The load that other tests are made at: the lower bound of the first goal that has one, else
/// what the flood forwarded, else half of what the tester can do.
fn throughput_of(plan: &BenchPlan, bounds: &Bounds, found: &BenchResult) -> f64 {
    let goal = found.goals.iter().find_map(|goal| goal.lower_fps);
    let flood = || found.flood.as_ref().map(|point| point.forwarded_fps / 2.0);
    let most = plan.frames_per_sec_max.map_or(f64::INFINITY, |fps| fps as f64);
    goal.or_else(flood).unwrap_or(bounds.tester_fps / 2.0).min(most).max(1.0)
}

fn check_plan(plan: &BenchPlan) -> Result<(), Failure> {
    let refuse =
        |object: &str, reason: &str| Err(Failure::new(Fault::Usage, "bench", object, reason));
    if plan.ports.len() < 2 {
        return refuse("one port", "frames go in at one port and come out at another: name two");
    }
    for (at, port) in plan.ports.iter().enumerate() {
        let twice = |it: &linerate_core::record::BenchPort| {
            it.interface == port.interface && it.host == port.host
        };
        if plan.ports[..at].iter().any(twice) {
            return refuse(&port.interface, "the same interface is there twice");
        }
    }
    Ok(())
}

/// Frames per second of a port that fill its medium.
/// Frames per second of the slowest of the tester's medium and the link that the user told.
fn theoretical(plan: &BenchPlan, line: Option<BitRate>) -> Option<f64> {
    let length = FrameLen::from_bytes(plan.frames.size_bytes).ok()?;
    let medium = line.and_then(|line| Medium::Ethernet(line).frames_per_s(length));
    // A packet is the frame without its header of 14 bytes and its check sequence of 4.
    let packet = length.bytes().saturating_sub(18);
    let known = plan.known.as_ref().and_then(|known| known.packets_per_s(packet));
    medium.into_iter().chain(known).reduce(f64::min)
}

fn caveats(found: &BenchResult) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let invalid = found.trials.iter().filter(|trial| trial.invalid.is_some()).count();
    if invalid > 0 {
        let first = found.trials.iter().find_map(|trial| trial.invalid.as_ref());
        let first = first.map_or("", |reason| reason.detail());
        let detail = format!(
            "{invalid} of {} trials say nothing of the device: {first}",
            found.trials.len()
        );
        caveats.push(Caveat::new(CaveatCode::TesterDisturbed, detail, LEAVE_ALONE));
    }
    caveats.extend(flow_control(found));
    caveats.extend(length_changed(found));
    let limited = found.goals.iter().find(|goal| goal.tester_limited);
    let own_fps = found.tester.as_ref().map(|tester| tester.frames_per_sec);
    caveats.extend(limited.map(|goal| tester_limited(goal, own_fps)));
    caveats
}

/// A goal that the tester limits: by its own rate, or by larger loads that it could not send well.
fn tester_limited(goal: &GoalFound, own_fps: Option<f64>) -> Caveat {
    let name = &goal.goal;
    let (detail, advice) = match goal.throughput_fps().zip(own_fps) {
        Some((fps, own)) if !is_tester_limited(fps, own) => (
            format!(
                "larger loads than the result for {name} could not be sent well enough to count; \
                 it is {:.1} % of the tester's own rate",
                fps * 100.0 / own
            ),
            LEAVE_ALONE,
        ),
        _ => (
            format!("the result for {name} is as much the tester's as the device's"),
            "it is close to the limit of generator and counter on this machine",
        ),
    };
    Caveat::new(CaveatCode::TesterLimited, detail, advice)
}

/// A device that sends PAUSE frames.
fn flow_control(found: &BenchResult) -> Option<Caveat> {
    let frames: u64 = found.trials.iter().filter_map(|trial| trial.pause_frames).sum();
    (frames > 0).then(|| {
        let detail = format!(
            "{frames} PAUSE frames came from the device: its throughput is that of flow control"
        );
        Caveat::new(CaveatCode::FlowControl, detail, "disable it at the device and at the ports")
    })
}

/// A device that adds or takes something (RFC 2544 §10 has the length checked).
fn length_changed(found: &BenchResult) -> Option<Caveat> {
    let ports = || found.trials.iter().flat_map(|trial| &trial.ports);
    let frames: u64 = ports().filter_map(|port| port.other_length).sum();
    let all: u64 = ports().map(|port| port.received).sum();
    (frames > 0).then(|| {
        let detail =
            format!("{frames} of {all} frames came out longer or shorter than they went in");
        let advice = "expected if the device adds or removes a tag; otherwise it corrupts frames";
        Caveat::new(CaveatCode::LengthChanged, detail, advice)
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{BenchTrial, TrialPort};

    use super::*;

    #[test]
    fn frames_of_another_length_are_said() {
        let port = |received, other_length| TrialPort {
            sent: 100,
            received,
            other_length,
            ..TrialPort::default()
        };
        let trial = |ports| BenchTrial {
            test: BenchTest::Flood,
            at_ns: 0,
            duration_ns: 1,
            intended_fps: None,
            ports,
            stolen_ns: None,
            pause_frames: None,
            invalid: None,
            why: None,
        };
        let found = |ports| BenchResult { trials: vec![trial(ports)], ..BenchResult::default() };
        assert!(caveats(&found(vec![port(100, Some(0)), port(100, None)])).is_empty());
        let caveats = caveats(&found(vec![port(100, Some(7)), port(90, None)]));
        assert_eq!(caveats[0].code, CaveatCode::LengthChanged);
        assert!(caveats[0].detail.starts_with("7 of 190 frames"), "{}", caveats[0].detail);
    }
}
