//! From flags to a study: every default filled in.

use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    BenchFrames, BenchGoal, BenchPlan, BenchTest, BenchTimes, BenchWay, Failure,
};
use linerate_core::study::{self, Measure, OrderedContract, StudyPlan, Test, TestKind, Topology};

use super::check;
use super::device::Device;
use super::flags::Args;
use super::mix::MixArg;
use super::place::Place;
use crate::command::tcp::nanos;

/// Lengths of RFC 2544 §9.1, Ethernet.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// What is measured when the flags say nothing.
const TESTS: [BenchTest; 3] = [BenchTest::Flood, BenchTest::Throughput, BenchTest::Latency];

/// The tests of RFC 2544 §26 that need nobody at the device, in an order in which each has what it
/// builds on.
const TESTS_RFC2544: [BenchTest; 5] = [
    BenchTest::Throughput,
    BenchTest::Latency,
    BenchTest::LossCurve,
    BenchTest::BackToBack,
    BenchTest::Recovery,
];

/// How much shorter `--quick` makes trials of a minute, and shorter ones.
const QUICK_OF_MINUTES: u64 = 100;
const QUICK: u64 = 10;

/// What the flags ask for, as a study: a topology for each state of the device, a test with the
/// lengths.
/// # Errors
/// One line on what does not go together.
pub(super) fn of(args: &Args) -> Result<StudyPlan, Failure> {
    check::flags(args)?;
    let plan = plan(args, frames(args));
    let topologies = match &args.made.device {
        Some(device) => Place { device, args, longest_bytes: longest_bytes(args) }.topologies(),
        None => vec![outside(&plan)],
    };
    Ok(StudyPlan {
        name: NAME.to_owned(),
        title: title(args),
        source: None,
        purpose: None,
        shuffle_seed: None,
        retries: None,
        topologies,
        tests: vec![Test {
            id: "frames".to_owned(),
            on: None,
            kind: TestKind::Bench(test(args, plan)),
            repetitions: 1,
        }],
        questions: Vec::new(),
    })
}

/// Name of the studies that this command makes.
pub(super) const NAME: &str = "bench";

fn test(args: &Args, plan: BenchPlan) -> study::BenchTest {
    let mix = mix(args).map(|mix| mix.text());
    study::BenchTest {
        frame_sizes: mix.is_none().then(|| sizes(args)),
        mix,
        measures: plan.tests.iter().copied().map(Measure).collect(),
        vlans: Some(plan.frames.vlans.clone()).filter(|tags| !tags.is_empty()),
        contract: plan.contract.as_ref().map(|it| OrderedContract {
            cir: it.cir.to_string(),
            cbs_bytes: it.cbs_bytes,
            eir: it.eir.map(|rate| rate.to_string()),
            ebs_bytes: it.ebs_bytes,
        }),
        plan: Some(Box::new(plan)),
        ..study::BenchTest::default()
    }
}

/// Interfaces of this host, with a device between them that nobody here knows.
fn outside(plan: &BenchPlan) -> Topology {
    let name = |at: usize| plan.ports.get(at).map_or("", |port| &port.interface).to_owned();
    let names: Vec<_> = plan.ports.iter().map(|port| port.interface.as_str()).collect();
    Topology {
        id: "device".to_owned(),
        title: format!("device between {}", names.join(", ")),
        class: "device".to_owned(),
        lab: LabPlan::default(),
        client: name(0),
        server: name(1),
        l2_hops: 0,
        l3_hops: u32::from(plan.ports.iter().any(|port| port.gateway.is_some())),
        published: None,
    }
}

/// `Benchmark of the router made here, a quick look`.
fn title(args: &Args) -> String {
    let what = match &args.made.device {
        Some(Device::Planted(_)) => "a planted device".to_owned(),
        Some(device) => format!("the {} made here", device.name()),
        None => {
            let names: Vec<_> = args.ports.iter().map(|port| port.interface.as_str()).collect();
            format!("the device between {}", names.join(", "))
        }
    };
    let quick = if args.what.quick { ", a quick look" } else { "" };
    format!("Benchmark of {what}{quick}")
}

/// The plan of every length; it has ports only where they are interfaces of this host.
fn plan(args: &Args, frames: BenchFrames) -> BenchPlan {
    BenchPlan {
        ports: args.ports.iter().map(|port| port.plan()).collect(),
        frames,
        way: match (args.frames.dual, args.frames.mesh) {
            (true, _) => BenchWay::Dual,
            (_, true) => BenchWay::Mesh,
            _ => BenchWay::Single,
        },
        tests: tests(args),
        goals: goals(args),
        times: times(args),
        generator: args.tester.generator,
        counter: args.tester.counter,
        line: args.tester.line_rate,
        // Checked to be one or more.
        frames_per_sec_max: args.tester.rate_max.map(|rate| rate.per_sec().round() as u64),
        filters: None,
        contract: args.what.contract.as_ref().map(|contract| contract.0.clone()),
        seed: args.tester.seed,
    }
}

/// The tests, with that of a contract where there is one.
pub(super) fn tests(args: &Args) -> Vec<BenchTest> {
    let mut tests = match (args.what.tests.as_slice(), args.what.rfc2544) {
        ([], true) => TESTS_RFC2544.to_vec(),
        ([], false) if args.what.contract.is_some() => Vec::new(),
        ([], false) => TESTS.to_vec(),
        (asked, _) => asked.to_vec(),
    };
    if args.what.contract.is_some() && !tests.contains(&BenchTest::Contract) {
        tests.push(BenchTest::Contract);
    }
    tests
}

fn goals(args: &Args) -> Vec<BenchGoal> {
    let goals = args.what.goals.0.iter().cloned();
    if args.what.quick { goals.map(quick).collect() } else { goals.collect() }
}

fn quick(goal: BenchGoal) -> BenchGoal {
    let is_long = goal.final_trial_ns >= 60_000_000_000;
    goal.quick(if is_long { QUICK_OF_MINUTES } else { QUICK })
}

fn times(args: &Args) -> BenchTimes {
    let mut times = match (args.what.rfc2544, args.what.quick) {
        (true, _) => BenchTimes::rfc2544(),
        (false, true) => {
            let usual = BenchTimes::default();
            BenchTimes {
                trial_ns: usual.trial_ns / QUICK,
                latency_ns: usual.latency_ns / QUICK,
                soak_ns: usual.soak_ns / QUICK,
                ..usual
            }
        }
        (false, false) => BenchTimes::default(),
    };
    let set = |to: &mut u64, given: Option<Duration>| {
        if let Some(span) = given {
            *to = nanos(span);
        }
    };
    set(&mut times.trial_ns, args.what.trial_time);
    set(&mut times.latency_ns, args.what.trial_time);
    set(&mut times.soak_ns, args.what.soak_time);
    set(&mut times.after_ns, args.what.wait);
    times.repetitions = args.what.repeat.unwrap_or(times.repetitions);
    times
}

/// The frames of the plan; each value of the test has its own length.
fn frames(args: &Args) -> BenchFrames {
    let flags = &args.frames;
    BenchFrames {
        protocol: flags.protocol,
        vlans: flags.vlan.clone(),
        dscp: flags.dscp,
        flows: flags.flows,
        many_hosts: flags.many_hosts,
        shuffled: flags.shuffle,
        burst: flags.burst,
        ..BenchFrames::default()
    }
}

/// The longest frame.
fn longest_bytes(args: &Args) -> u32 {
    let mixed = mix(args).and_then(|mix| mix.lengths().max());
    mixed.or_else(|| sizes(args).into_iter().max()).unwrap_or(0)
}

/// The mix, where one is asked for.
pub(super) fn mix(args: &Args) -> Option<MixArg> {
    let (least, longest) = (shortest(args), 1518 + tag_bytes(args));
    if args.frames.imix { Some(MixArg::imix(least, longest)) } else { args.frames.mix.clone() }
}

/// The lengths. Those that nobody asked for are made long enough for the headers.
pub(super) fn sizes(args: &Args) -> Vec<u32> {
    if !args.frames.sizes.is_empty() {
        return args.frames.sizes.iter().map(|len| len.bytes()).collect();
    }
    // A tag makes the longest frame longer: 1522 with one (IEEE 802.3 §3.2.7).
    let with_tags = |size: u32| if size == 1518 { size + tag_bytes(args) } else { size };
    SIZES.into_iter().map(|size| with_tags(size).max(shortest(args))).collect()
}

fn shortest(args: &Args) -> u32 {
    check::shortest_bytes(args.frames.protocol, args.frames.vlan.len())
}

fn tag_bytes(args: &Args) -> u32 {
    4 * u32::try_from(args.frames.vlan.len()).unwrap_or(0)
}
