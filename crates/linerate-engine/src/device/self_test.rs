//! What the tester can do by itself: the same generator and counter over a cable of its own, in a
//! laboratory of two hosts, so that no device is in the way.
//!
//! Over virtual links this is what the ports can do too. For hardware it bounds what generator and
//! counter can do; whether the interface keeps up shows in each trial by what it was offered.

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    BenchPlan, BenchTest, BenchWay, CounterKind, Failure, Fault, GeneratorKind, Tester as Found,
};
use linerate_sys::bpf::XdpLink;
use linerate_sys::xdp::hold_napi;

use super::namespaces::Namespaces;
use super::setup::{TestSetup, TrialAbort, TrialSpec};
use super::tester::BenchTester;
use crate::context::Context;
use crate::failure::system;
use crate::lab::Lab;

/// A flood this long shows the ceiling.
const FLOOD_NS: u64 = 300_000_000;

/// A run this long shows the pacing and the delay.
const PACED_NS: u64 = 300_000_000;

/// The load at which the delay is measured, frames per second, at most a tenth of the ceiling.
pub(super) const LATENCY_FPS: f64 = 100_000.0;

/// MTU of the cable: as much as the ports'.
const MTU_MIN: u32 = 1500;

/// Measures the tester over a cable of its own, by the kinds of generator and counter of its
/// ports.
pub(super) fn over_own_cable(
    plan: &BenchPlan,
    kind: GeneratorKind,
    counter: CounterKind,
    mtu_bytes: u32,
    context: &mut Context<'_>,
) -> Result<Found, TrialAbort> {
    let lab = cable(mtu_bytes.max(MTU_MIN))?;
    let ports = lab.layout().bench_ports("a", "b", plan.frames.protocol);
    let ports = ports.map_err(|error| Failure::new(Fault::System, "plan", "a cable", error))?;
    // A veth takes live frames only where a program is at its far end, which a counter may be.
    let _napi: Vec<XdpLink> = match (kind, counter) {
        (GeneratorKind::Live, CounterKind::Packet) => {
            ["a", "b"].map(|host| napi(&lab, host)).into_iter().collect::<Result<_, _>>()?
        }
        _ => Vec::new(),
    };
    let mut own = plan.clone();
    own.ports = ports;
    own.way = BenchWay::Single;
    (own.generator, own.counter) = (Some(kind), Some(counter));
    own.frames.vlans.clear();
    let mut tester = BenchTester::open_ports(&own, &lab as &dyn Namespaces, context)?;
    tester.senders = vec![0];
    let flood = tester.run_trial(&TrialSpec::new(BenchTest::Flood, None, FLOOD_NS))?;
    let (sent, received) = flood.totals();
    let point = flood.load_point();
    if sent == 0 || received == 0 {
        let reason = format!("{received} of {sent} frames came over the tester's own cable");
        return Err(Failure::new(Fault::Instrument, "check", "the tester", reason).into());
    }
    let ceiling = point.forwarded_fps;
    let fps = LATENCY_FPS.min(ceiling / 10.0).max(1.0);
    let paced =
        tester.run_trial(&TrialSpec::new(BenchTest::Latency, Some(fps as u64), PACED_NS))?;
    let port = &paced.trial.ports[0];
    let intended = (fps as u64) as f64;
    Ok(Found {
        generator: kind,
        counter: tester.counter,
        frames_per_sec: ceiling,
        over_own_cable: true,
        latency_p50_ns: port.latency_p50_ns.map(|ns| ns as f64),
        rate_error: Some(port.offered_fps / intended - 1.0),
        late_share: (port.sent > 0).then(|| port.late as f64 / port.sent as f64),
    })
}

fn napi(lab: &Lab, host: &str) -> Result<XdpLink, Failure> {
    let index = lab.link_facts(host, "eth0")?.index;
    lab.run_on(host, || hold_napi(index))?.map_err(|error| system(&error))
}

fn cable(mtu_bytes: u32) -> Result<Lab, Failure> {
    let text = format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"b\"], mtu_bytes = {mtu_bytes}, offload = false }}]\n"
    );
    let plan = LabPlan::from_toml(&text, "the tester's own cable");
    let plan =
        plan.map_err(|error| Failure::new(Fault::System, "plan", "a cable", error.reason))?;
    Lab::build_from_plan(&plan)
}
