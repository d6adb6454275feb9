//! From flags to a study: every default filled in.

use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    BenchFrames, BenchGoal, BenchPlan, BenchPort, BenchProtocol, BenchTimes, BenchWay, Failure,
};
use linerate_core::study::{
    self, Measure, OrderedCells, OrderedContract, StudyPlan, Test, TestKind, Topology,
};
use linerate_core::units::print_span;

use super::check;
use super::contract::ContractArg;
use super::defaults;
use super::device::DeviceArg;
use super::device_lab::DeviceLab;
use super::flags::Args;
use crate::command::flags::span_nanos;

/// Factor by which `--quick` shortens trials of a minute, and shorter ones.
const QUICK_OF_MINUTES: u64 = 100;
const QUICK: u64 = 10;

/// Study that the flags ask for: a topology for each state of the device, a test with the lengths.
pub(super) fn from_flags(args: &Args) -> Result<StudyPlan, Failure> {
    check::check_flags(args)?;
    let plan = bench_plan(args, frames(args));
    let topologies = match &args.made.device {
        Some(device) => {
            DeviceLab { device, args, longest_bytes: defaults::longest(args) }.topologies()
        }
        None => vec![outside(&plan)],
    };
    Ok(StudyPlan {
        name: NAME.to_owned(),
        title: study_title(args),
        source: None,
        purpose: None,
        shuffle_seed: None,
        retries: None,
        topologies,
        tests: vec![Test {
            id: "frames".to_owned(),
            on: None,
            kind: TestKind::Bench(frames_sweep(args, plan)),
            repetitions: 1,
        }],
        questions: Vec::new(),
    })
}

/// Name of the studies that this command makes.
pub(super) const NAME: &str = "bench";

fn frames_sweep(args: &Args, plan: BenchPlan) -> study::FramesSweep {
    let mix = defaults::frame_mix(args).map(|mix| mix.flag_text());
    study::FramesSweep {
        frame_sizes: mix.is_none().then(|| defaults::frame_sizes(args)),
        mix,
        measures: plan.tests.iter().copied().map(Measure).collect(),
        frames: BenchFrames { vlans: plan.frames.vlans.clone(), ..BenchFrames::default() },
        contract: plan.contract.as_ref().map(|contract| OrderedContract {
            cir: contract.cir.to_string(),
            cbs_bytes: contract.cbs_bytes,
            eir: contract.eir.map(|rate| rate.to_string()),
            ebs_bytes: contract.ebs_bytes,
        }),
        cell_contract: plan.cell_contract.as_ref().map(|contract| OrderedCells {
            pcr: contract.pcr_per_sec,
            cdvt: contract.cdvt_ns.map(|ns| print_span(Duration::from_nanos(ns))),
            scr: contract.scr_per_sec,
            mbs: contract.mbs_cells,
        }),
        plan: Some(Box::new(plan)),
        ..study::FramesSweep::default()
    }
}

/// Interfaces of this host, with a device between them of which nothing is known.
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

/// Title of the study: `Benchmark of the router made here, a quick look`.
fn study_title(args: &Args) -> String {
    let what = match &args.made.device {
        Some(DeviceArg::Planted(_)) => "a planted device".to_owned(),
        Some(device) => format!("the {} made here", device.name()),
        None => {
            let names: Vec<_> = args.ports.iter().map(|port| port.interface.as_str()).collect();
            format!("the device between {}", names.join(", "))
        }
    };
    let quick = if args.what.quick { ", a quick look" } else { "" };
    format!("Benchmark of {what}{quick}")
}

/// The ports of the flags. Where no address is given and no router is on the way, each has one of
/// the test addresses (RFC 2544 appendix C.2.2, RFC 5180 §5.2.2): a bridge reads none, and the
/// interfaces need none.
fn ports_of(args: &Args, frames: &BenchFrames) -> Vec<BenchPort> {
    let mut ports: Vec<BenchPort> = args.ports.iter().map(|port| port.bench_port()).collect();
    let network = match frames.protocol {
        BenchProtocol::Udp4 | BenchProtocol::Tcp4 => "198.18.0.",
        BenchProtocol::Udp6 | BenchProtocol::Tcp6 => "2001:2::",
        _ => return ports,
    };
    if ports.iter().all(|port| port.address.is_none() && port.gateway.is_none()) {
        for (number, port) in (1..).zip(&mut ports) {
            port.address = Some(format!("{network}{number}"));
        }
    }
    ports
}

/// The plan of every length; it has ports only where they are interfaces of this host.
fn bench_plan(args: &Args, frames: BenchFrames) -> BenchPlan {
    BenchPlan {
        ports: ports_of(args, &frames),
        frames,
        way: match (args.frames.dual, args.frames.mesh) {
            (true, _) => BenchWay::Dual,
            (_, true) => BenchWay::Mesh,
            _ => BenchWay::Single,
        },
        tests: defaults::tests_to_run(args),
        goals: search_goals(args),
        times: bench_times(args),
        generator: args.tester.generator,
        counter: args.tester.counter,
        line: args.tester.line_rate,
        known: args.tester.known.known_path().map(Box::new),
        // Checked to be one or more.
        frames_per_sec_max: args.tester.rate_max.map(|rate| rate.per_sec().round() as u64),
        filters: None,
        contract: match &args.what.contract {
            Some(ContractArg::Bits(contract)) => Some(contract.clone()),
            _ => None,
        },
        cell_contract: match &args.what.contract {
            Some(ContractArg::Cells(contract, _)) => Some(contract.clone()),
            _ => None,
        },
        reset_command: args.what.reset_command.clone(),
        seed: args.tester.seed,
    }
}

fn search_goals(args: &Args) -> Vec<BenchGoal> {
    let goals = args.what.goals.0.iter().cloned();
    if args.what.quick { goals.map(shorten_goal).collect() } else { goals.collect() }
}

fn shorten_goal(goal: BenchGoal) -> BenchGoal {
    let is_long = goal.final_trial_ns >= 60_000_000_000;
    goal.with_short_trials(if is_long { QUICK_OF_MINUTES } else { QUICK })
}

fn bench_times(args: &Args) -> BenchTimes {
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
            *to = span_nanos(span);
        }
    };
    set(&mut times.trial_ns, args.what.trial_time);
    set(&mut times.latency_ns, args.what.trial_time);
    set(&mut times.soak_ns, args.what.soak_time);
    set(&mut times.before_ns, args.what.before);
    set(&mut times.after_ns, args.what.wait);
    set(&mut times.settle_ns, args.what.settle);
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use linerate_core::record::BenchTest;
    use linerate_core::record::Plan;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn study_from_flags(flags: &[&str]) -> StudyPlan {
        let words = ["bench"].iter().chain(flags);
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
        from_flags(&cli.args).unwrap_or_else(|failure| panic!("{flags:?}: {failure}"))
    }

    fn bench_plans(study: &StudyPlan) -> Vec<BenchPlan> {
        let cells = study.cell_plans().into_iter();
        let plan = |plan| if let Plan::Bench(plan) = plan { plan } else { panic!("a bench") };
        cells.map(|cell| plan(cell.plan)).collect()
    }

    #[test]
    fn every_device_is_a_sound_study_and_comes_back_from_its_text() {
        for (flags, cells) in [
            (&["--device", "cable", "--sizes", "64,9018"][..], 2),
            (&["--device", "bridge", "--protocol", "decnet", "--vlan", "5"], 7),
            (&["--device", "router", "--filters", "0,1,10", "--placement", "threaded"], 21),
            (&["--device", "xdp-router", "--protocol", "udp6", "--imix"], 1),
            (&["--device", "forwarder", "--rfc2544", "--goals", "verified"], 7),
            (
                &[
                    "--device",
                    "planted:frames_per_sec=100k,buffer_frames=64,latency=10us,loss=1e-5,\
                     stall=20s/5ms",
                    "--quick",
                ],
                7,
            ),
            (&["--device", "cable", "--contract", "cir=10M,cbs=64K", "--dual"], 7),
            (&["--device", "cable", "--contract", "pcr=1k,cdvt=4ms,scr=250,mbs=32,cell=128"], 1),
            (&["--device", "bridge", "--mesh", "--ports", "5"], 7),
            (&["--device", "router", "--mesh", "--protocol", "udp6"], 7),
            (&["--device", "bridge", "--tests", "flood,blocking"], 7),
        ] {
            let study = study_from_flags(flags);
            assert_eq!(study.check_runnable(), Ok(()), "{flags:?}");
            assert_eq!(study.cell_plans().len(), cells, "{flags:?}");
            let text = linerate_core::tree::to_json(&study).expect("JSON");
            assert_eq!(linerate_core::tree::from_json::<StudyPlan>(&text).expect("a study"), study);
        }
    }

    #[test]
    fn ports_of_this_host_reach_every_plan_with_all_that_the_flags_say() {
        let flags = [
            "e1,gateway=198.18.0.1",
            "e2,gateway=198.19.0.1",
            "--sizes",
            "64,1518",
            "--dscp",
            "46",
            "--flows",
            "16",
            "--many-hosts",
            "--shuffle",
            "--burst",
            "4",
            "--dual",
            "--tests",
            "throughput,soak",
            "--goals",
            "typical",
            "--trial-time",
            "2s",
            "--soak-time",
            "1h",
            "--before",
            "3s",
            "--drain",
            "1s",
            "--settle",
            "4s",
            "--repeat",
            "5",
            "--rate-max",
            "14.88k",
            "--line-rate",
            "10M",
            "--link",
            "oc3-atm",
            "--seed",
            "9",
            "--generator",
            "packet",
            "--counter",
            "xdp",
        ];
        let plans = bench_plans(&study_from_flags(&flags));
        let sizes: Vec<u32> = plans.iter().map(|plan| plan.frames.size_bytes).collect();
        assert_eq!(sizes, [64, 1518]);
        let plan = &plans[1];
        let gateways: Vec<_> =
            plan.ports.iter().filter_map(|port| port.gateway.as_deref()).collect();
        assert_eq!(gateways, ["198.18.0.1", "198.19.0.1"]);
        assert!(plan.ports.iter().all(|port| port.host.is_none()));
        let frames = &plan.frames;
        assert_eq!((frames.dscp, frames.flows, frames.burst), (46, 16, 4));
        assert!(frames.many_hosts && frames.shuffled);
        assert_eq!((plan.way, plan.seed), (BenchWay::Dual, 9));
        assert_eq!(plan.tests, [BenchTest::Throughput, BenchTest::Soak]);
        assert_eq!(plan.goals, [BenchGoal::typical()]);
        let times = &plan.times;
        assert_eq!((times.trial_ns, times.after_ns), (2_000_000_000, 1_000_000_000));
        assert_eq!((times.before_ns, times.settle_ns), (3_000_000_000, 4_000_000_000));
        assert_eq!((times.soak_ns, times.repetitions), (3_600_000_000_000, 5));
        assert_eq!(plan.frames_per_sec_max, Some(14_880));
        assert_eq!(plan.line.map(|rate| rate.bits_per_sec()), Some(10_000_000));
        let known = plan.known.as_ref().expect("a link is told");
        assert_eq!((known.link.as_deref(), known.source.as_str()), (Some("oc3-atm"), "--link"));
    }

    #[test]
    fn a_bridge_made_here_has_as_many_ports_as_are_asked_for() {
        for (flags, ports) in [
            (&["--mesh"][..], 4),
            (&["--mesh", "--ports", "8"], 8),
            (&["--tests", "addresses"], 3),
            (&["--tests", "flood"], 2),
        ] {
            let flags = [&["--device", "bridge"], flags].concat();
            assert_eq!(bench_plans(&study_from_flags(&flags))[0].ports.len(), ports, "{flags:?}");
        }
    }

    #[test]
    fn a_quick_look_says_so_and_has_trials_of_a_tenth_and_less() {
        let study = study_from_flags(&["--device", "cable", "--quick"]);
        assert!(study.title.ends_with("a quick look"), "{}", study.title);
        let plan = &bench_plans(&study)[0];
        let goals: Vec<_> = plan
            .goals
            .iter()
            .map(|goal| (goal.name.as_str(), goal.final_trial_ns / 1_000_000))
            .collect();
        // 60 s over 100 and 1 s over 10.
        assert_eq!(goals, [("strict / 100", 600), ("typical / 10", 100)]);
        assert_eq!(plan.times.trial_ns, BenchTimes::default().trial_ns / 10);
    }

    #[test]
    fn lengths_that_nobody_asked_for_hold_the_headers() {
        // 14 + 8 of tags + 40 + 8 + 2 + 16 + 4 = 92; the longest grows by two tags.
        let flags = ["e1", "e2", "--protocol", "udp6", "--vlan", "200,100"];
        let sizes: Vec<u32> = bench_plans(&study_from_flags(&flags))
            .iter()
            .map(|plan| plan.frames.size_bytes)
            .collect();
        assert_eq!(sizes, [92, 128, 256, 512, 1024, 1280, 1526]);
        let mix = bench_plans(&study_from_flags(&["e1", "e2", "--imix"]));
        assert_eq!(mix[0].frames.mix.as_deref(), Some("64:7,594:4,1518:1"));
    }
}
