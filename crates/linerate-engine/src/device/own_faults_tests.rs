//! Tests on real links of what goes wrong in the tester: it is told as the tester's, and the
//! device, which loses nothing, is never blamed.
//!
//! Needs the privilege to make network namespaces and to load programs; says so and passes when it
//! is absent. No rate is judged: a busy machine may spoil any trial, and then it has to say so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    BenchPlan, BenchPort, BenchTest, BenchTimes, BenchTrial, CounterKind, Failure, GeneratorKind,
    InvalidTrialReason, Tool,
};
use linerate_sys::bpf::XdpLink;
use linerate_sys::ethtool::{self, Offload};
use linerate_sys::frame_counter::{CounterOptions, FrameCounter};
use linerate_sys::sched::{self, Pinned};
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{SinkExpected, hold_napi};
use linerate_sys::{bpf, clock, realtime, userns};

use super::counter::Counter;
use super::setup::{TestSetup, TrialAbort, TrialSpec};
use super::simulated;
use super::tester::BenchTester;
use crate::context::Context;
use crate::lab::Lab;

const MS: u64 = 1_000_000;

/// Whatever takes a processor gives it back after this long.
const HOG_MAX: Duration = Duration::from_secs(2);

/// No wait takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Forwards everything, at once.
const PERFECT: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
device = [{ name = "d", kind = "planted", latency = "10us", cut_through = true }]
link = [{ ends = ["a", "d"], offload = false }, { ends = ["d", "b"], offload = false }]
"#;

/// No program is on either end.
const CABLE: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], offload = false }]
"#;

/// A laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if let Err(error) = bpf::available() {
        println!("skipped: {error}");
        return None;
    }
    Some(Lab::build_from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap())
}

fn plan(lab: &Lab, generator: Option<GeneratorKind>, counter: CounterKind) -> BenchPlan {
    let port = |host: &str| BenchPort {
        interface: "eth0".to_owned(),
        host: Some(host.to_owned()),
        address: lab.address_of(host).map(|it| it.to_string()),
        gateway: None,
    };
    BenchPlan {
        ports: vec![port("a"), port("b")],
        times: BenchTimes { before_ns: MS, after_ns: 1000 * MS, settle_ns: MS, ..times() },
        generator,
        counter: Some(counter),
        ..simulated::bench_plan(100 * MS)
    }
}

fn times() -> BenchTimes {
    simulated::bench_plan(100 * MS).times
}

/// Opens a tester and does `work` with it.
fn with_tester<T>(
    lab: &Lab,
    plan: &BenchPlan,
    work: impl FnOnce(&mut BenchTester<'_, '_>) -> T,
) -> Result<T, Failure> {
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    let mut tester = BenchTester::open_ports(plan, lab, &mut context)?;
    Ok(work(&mut tester))
}

/// The processor that generators run on.
fn generators_cpu() -> Option<u32> {
    sched::allowed_cores().first().copied()
}

/// Does `work` while others take the generator's processor: one before all ordinary threads, where
/// that is allowed, and some ordinary ones.
fn without_processor<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    let spin = |ahead: bool| {
        let _pinned = generators_cpu().map(Pinned::on_cpu);
        let began = clock::monotonic();
        if ahead && let Err(error) = realtime::raise_priority() {
            println!("ordinary threads alone: {error}");
        }
        while !done.load(Ordering::Relaxed) && clock::monotonic().duration_since(began) < HOG_MAX {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        for ahead in [true, false, false, false] {
            scope.spawn(move || spin(ahead));
        }
        let value = work();
        done.store(true, Ordering::Relaxed);
        value
    })
}

/// Does `work` while somebody takes the generator's processor for 3 ms of every 10.
fn with_gaps<T>(work: impl FnOnce() -> T) -> T {
    let (done, began) = (AtomicBool::new(false), clock::monotonic());
    let now_and_then = || {
        let _pinned = generators_cpu().map(Pinned::on_cpu);
        // An ordinary thread that slept comes before one that worked, too.
        let _ = realtime::raise_priority();
        while !done.load(Ordering::Relaxed) && clock::monotonic().duration_since(began) < HOG_MAX {
            let woken = clock::monotonic();
            while clock::monotonic().duration_since(woken) < Duration::from_millis(3) {
                std::hint::spin_loop();
            }
            clock::sleep(Duration::from_millis(7));
        }
    };
    thread::scope(|scope| {
        scope.spawn(now_and_then);
        let value = work();
        done.store(true, Ordering::Relaxed);
        value
    })
}

fn show(trials: &[BenchTrial]) {
    for trial in trials {
        let port = &trial.ports[0];
        println!(
            "{} sent, {} received, {} refused, {} late; {:?}",
            port.sent, port.received, port.refused, port.late, trial.invalid
        );
    }
}

/// The device lost nothing, so a trial that lost says that it was the tester.
fn check(trials: &[BenchTrial]) {
    for trial in trials {
        let clean = trial.ports.iter().all(|port| port.lost_elsewhere() == 0);
        assert!(clean || trial.invalid.is_some(), "the device is blamed: {trial:?}");
    }
}

#[test]
fn a_load_above_what_the_generator_can_is_its_own_fault_and_no_loss() {
    for kind in [GeneratorKind::Live, GeneratorKind::Xdp, GeneratorKind::Packet] {
        let Some(lab) = lab(PERFECT) else { return };
        let plan = plan(&lab, Some(kind), CounterKind::Xdp);
        let trials = with_tester(&lab, &plan, |tester| {
            // A frame each 10 ns, by a generator without a processor.
            let spec = TrialSpec::new(BenchTest::Throughput, Some(100_000_000), 50 * MS);
            without_processor(|| tester.run_trial(&spec)).unwrap();
            std::mem::take(&mut tester.trials)
        });
        let trials = trials.unwrap();
        show(&trials);
        check(&trials);
        for trial in &trials {
            let ours = matches!(
                trial.invalid,
                Some(
                    InvalidTrialReason::GeneratorShort { .. }
                        | InvalidTrialReason::CounterDrops { .. }
                )
            );
            assert!(ours, "{kind}: {trial:?}");
        }
    }
}

#[test]
fn a_generator_whose_processor_is_taken_is_not_held_against_the_device() {
    for kind in [GeneratorKind::Live, GeneratorKind::Packet] {
        let Some(lab) = lab(PERFECT) else { return };
        let plan = plan(&lab, Some(kind), CounterKind::Xdp);
        let trials = with_tester(&lab, &plan, |tester| {
            let spec = |fps| TrialSpec::new(BenchTest::Throughput, Some(fps), 100 * MS);
            // All of it, and 3 ms of 10: frames that were due leave in a burst afterwards.
            without_processor(|| tester.run_trial(&spec(20_000))).unwrap();
            for fps in [2000, 50_000, 300_000] {
                with_gaps(|| tester.run_trial(&spec(fps))).unwrap();
            }
            std::mem::take(&mut tester.trials)
        });
        let trials = trials.unwrap();
        show(&trials);
        check(&trials);
    }
}

#[test]
fn frames_that_the_counters_own_ring_drops_are_the_testers_loss() {
    let Some(lab) = lab(CABLE) else { return };
    let mut plan = plan(&lab, Some(GeneratorKind::Packet), CounterKind::Packet);
    plan.frames.size_bytes = 1518;
    plan.times.after_ns = 50 * MS;
    let trials = with_tester(&lab, &plan, |tester| {
        // Two blocks of 256 KiB, some 330 frames, and the counter waits for the generator to pause.
        let cpu = generators_cpu();
        let options = CounterOptions { ring_bytes: 1, cpu, ..CounterOptions::of_interface("eth0") };
        let counter = lab.run_on("b", || FrameCounter::open(&options, SinkExpected::default()));
        tester.ports[1].set_counter(Counter::Packet(Box::new(counter.unwrap().unwrap())));
        let has_dropped = |trial: &BenchTrial| trial.ports[0].lost_frames() > 0;
        let began = clock::monotonic();
        while !tester.trials.iter().any(has_dropped) {
            assert!(clock::monotonic().duration_since(began) < PATIENCE, "the ring never fills");
            tester
                .run_trial(&TrialSpec::new(BenchTest::Throughput, Some(100_000), 50 * MS))
                .unwrap();
        }
        std::mem::take(&mut tester.trials)
    });
    let trials = trials.unwrap();
    show(&trials);
    for trial in trials.iter().filter(|trial| trial.ports[0].lost_frames() > 0) {
        let Some(InvalidTrialReason::CounterDrops { detail }) = &trial.invalid else {
            panic!("{trial:?}")
        };
        // On a cable nothing else loses.
        let own = format!("the counter on eth0 dropped {} frames", trial.ports[0].lost_frames());
        assert_eq!(detail, &own);
    }
}

/// Keeps NAPI on an interface of a host for as long as it is held.
fn napi(lab: &Lab, host: &str) -> XdpLink {
    let index = lab.link_facts(host, "eth0").unwrap().index;
    lab.run_on(host, || hold_napi(index)).unwrap().unwrap()
}

#[test]
fn a_veth_whose_other_end_has_no_napi_is_named_before_any_trial_with_what_to_do() {
    let Some(lab) = lab(CABLE) else { return };
    // By default another way is taken, and the reason is kept.
    let any = plan(&lab, None, CounterKind::Packet);
    let (kind, facts, trials) = with_tester(&lab, &any, |tester| {
        tester.run_trial(&TrialSpec::new(BenchTest::Throughput, Some(1000), 100 * MS)).unwrap();
        (tester.generator, tester.port_facts(), std::mem::take(&mut tester.trials))
    })
    .unwrap();
    assert_ne!(kind, GeneratorKind::Live);
    assert!(facts[0].notes.iter().any(|note| note.contains("needs NAPI")), "{facts:?}");
    show(&trials);
    check(&trials);
    // Frames to `a` are taken: each end is the other's way.
    let _napi = napi(&lab, "a");
    let live = plan(&lab, Some(GeneratorKind::Live), CounterKind::Packet);
    let failure = with_tester(&lab, &live, |_| ()).unwrap_err().to_string();
    println!("{failure}");
    assert!(failure.contains("the interface took 0 of 16 frames of a probe"), "{failure}");
    assert!(failure.contains("gro on") && failure.contains("--generator packet"), "{failure}");
    assert!(!failure.contains('\n'));
    // What it advises helps.
    lab.run_on("b", || ethtool::set_offload("eth0", Offload::Receive, true)).unwrap().unwrap();
    with_tester(&lab, &live, |_| ()).unwrap();
}

#[test]
fn frames_for_an_end_that_lost_its_napi_are_not_the_devices_loss() {
    let Some(lab) = lab(CABLE) else { return };
    let plan = plan(&lab, Some(GeneratorKind::Live), CounterKind::Packet);
    let _kept = napi(&lab, "a");
    let first = napi(&lab, "b");
    let trials = with_tester(&lab, &plan, |tester| {
        lose_napi_midway(&lab, tester, first);
        // And before the next ones begin.
        let Err(TrialAbort::Failed(flood)) =
            tester.run_trial(&TrialSpec::new(BenchTest::Flood, None, 20 * MS))
        else {
            panic!("a flood of nothing")
        };
        assert!(flood.to_string().contains("not one frame was taken"), "{flood}");
        std::mem::take(&mut tester.trials)
    });
    let trials = trials.unwrap();
    show(&trials);
    check(&trials);
    let last = trials.last().unwrap();
    assert!(met_no_napi(last), "{last:?}");
    // What waited in the ring (256 frames of a veth) when NAPI went is gone.
    let port = &last.ports[0];
    assert!(port.received <= port.sent && port.sent - port.received <= 256, "{port:?}");
}

/// Whether frames of a trial were refused for want of NAPI, and it says so.
fn met_no_napi(trial: &BenchTrial) -> bool {
    let Some(InvalidTrialReason::GeneratorShort { detail }) = &trial.invalid else { return false };
    detail.contains("needs NAPI")
}

/// Trials at a load, each with NAPI when it begins, until one was under way when it went: a busy
/// machine may take it away too late, and each trial is twice as long as the one before.
fn lose_napi_midway(lab: &Lab, tester: &mut BenchTester<'_, '_>, first: XdpLink) {
    let mut held = Some(first);
    let (mut length_ns, began) = (300 * MS, clock::monotonic());
    while !tester.trials.iter().any(met_no_napi) {
        assert!(
            clock::monotonic().duration_since(began) < PATIENCE,
            "no trial is under way when it goes"
        );
        let held = held.take().unwrap_or_else(|| napi(lab, "b"));
        let spec = TrialSpec::new(BenchTest::Throughput, Some(2000), length_ns);
        thread::scope(|scope| {
            scope.spawn(|| {
                let came = || lab.counters("b", "eth0").unwrap().rx_packets;
                let (before, began) = (came(), clock::monotonic());
                while came() < before + 100 && clock::monotonic().duration_since(began) < HOG_MAX {
                    clock::sleep(Duration::from_millis(1));
                }
                drop(held);
            });
            tester.run_trial(&spec).unwrap();
        });
        length_ns *= 2;
    }
}
