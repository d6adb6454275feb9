//! One test of a study: what is measured, the parameter that it varies, and the table of the TOML
//! file that it comes from.
//!
//! The parameter's name and unit and the label of each value are here, so that tables, legends
//! and progress lines name every test alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::parameter::{Parameter, TestStep, Value};
use super::{
    Background, FramesSweep, GoalWord, Measure, OfferedRate, OrderedCells, OrderedContract,
    SimulateSweep, TcpSweep, Topology, UdpSweep,
};
use crate::record::{
    BenchPlan, BenchProtocol, BenchWay, CounterKind, GeneratorKind, LossRecovery, PingMode,
    PingPlan, Plan,
};
use crate::simulate::Stack;

/// One test of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "TestTable")]
pub struct Test {
    /// Identifier within the study: `ping`, `tcp`.
    pub id: String,
    /// The topologies that it belongs to; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// What is measured, and the values of its parameter.
    #[serde(flatten)]
    pub kind: TestKind,
    /// How often each value is measured.
    pub repetitions: u32,
}

/// What a test measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a study has a handful of tests")]
pub enum TestKind {
    /// Flood ping by payload size.
    Ping {
        /// Payload bytes.
        sizes_bytes: Vec<u32>,
        /// Probes of each size.
        count: u64,
    },
    /// TCP throughput by one of its parameters.
    Tcp(TcpSweep),
    /// TCP throughput of a model, in virtual time.
    Simulate(SimulateSweep),
    /// UDP throughput by offered rate or by size of datagrams.
    Udp(UdpSweep),
    /// Raw frames through a device, by their length.
    Bench(FramesSweep),
}

impl Test {
    /// Whether it belongs to the topology of this identifier.
    pub fn is_on(&self, topology: &str) -> bool {
        self.on.as_ref().is_none_or(|on| on.iter().any(|id| id == topology))
    }

    /// The parameter that it varies.
    pub fn parameter(&self) -> Parameter {
        match &self.kind {
            TestKind::Ping { .. } => {
                Parameter { key: "sizes_bytes", name: "payload", unit: Some("bytes") }
            }
            TestKind::Tcp(tcp) => tcp.parameter(),
            TestKind::Simulate(simulate) => simulate.parameter(),
            TestKind::Udp(udp) => udp.parameter(),
            TestKind::Bench(bench) => bench.parameter(),
        }
    }

    /// A value of the parameter in words, by its label: `window 32 KiB`, `ping of 56 bytes`.
    pub fn named(&self, label: &str) -> String {
        match &self.kind {
            TestKind::Ping { .. } => format!("ping of {label} bytes"),
            TestKind::Bench(_) => format!("frames of {label} bytes"),
            TestKind::Simulate(_) => format!("{} {label}, simulated", self.parameter().name),
            TestKind::Tcp(_) | TestKind::Udp(_) => format!("{} {label}", self.parameter().name),
        }
    }

    /// The values of the parameter, in the order of the plan.
    pub fn values(&self) -> Vec<Value> {
        match &self.kind {
            TestKind::Ping { sizes_bytes, .. } => {
                let value = |&size: &u32| Value { number: size.into(), label: size.to_string() };
                sizes_bytes.iter().map(value).collect()
            }
            TestKind::Tcp(tcp) => tcp.values(),
            TestKind::Simulate(simulate) => simulate.values(),
            TestKind::Udp(udp) => udp.values(),
            TestKind::Bench(bench) => bench.values(),
        }
    }

    /// What to measure for each value on `topology`, without a target.
    pub(super) fn steps(&self, topology: &Topology) -> Vec<TestStep> {
        match &self.kind {
            TestKind::Ping { sizes_bytes, count } => {
                let plan = |&size| Plan::Ping(flood_plan(size, *count));
                let steps = sizes_bytes.iter().map(plan).zip(self.values());
                steps.map(|(plan, value)| TestStep { value, plan, sack: None }).collect()
            }
            TestKind::Tcp(tcp) => tcp.steps(topology),
            TestKind::Simulate(simulate) => simulate.steps(topology),
            TestKind::Udp(udp) => udp.steps(),
            TestKind::Bench(bench) => bench.steps(topology),
        }
    }
}

fn flood_plan(size: u32, count: u64) -> PingPlan {
    PingPlan {
        host: String::new(),
        sizes_bytes: vec![size],
        count: Some(count),
        mode: PingMode::Flood,
        ..PingPlan::default()
    }
}

/// A test as its table in the file has it. A flattened enum would not know the place of a key that
/// is unknown or of a wrong type, so the keys of all kinds are listed here once.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestTable {
    id: String,
    kind: KindName,
    repetitions: u32,
    on: Option<Vec<String>>,
    sizes_bytes: Option<Vec<u32>>,
    count: Option<u64>,
    windows_bytes: Option<Vec<u64>>,
    streams: Option<Vec<u16>>,
    transfer_bytes: Option<Vec<u64>>,
    congestion_controls: Option<Vec<String>>,
    sack: Option<Vec<bool>>,
    read_bytes: Option<Vec<u32>>,
    seconds: Option<f64>,
    omit_seconds: Option<f64>,
    congestion_control: Option<String>,
    background: Option<Background>,
    tcp: Option<Stack>,
    recoveries: Option<Vec<LossRecovery>>,
    initial_window: Option<u32>,
    mss_bytes: Option<u32>,
    hystart: Option<bool>,
    start_spread_seconds: Option<f64>,
    rates: Option<Vec<OfferedRate>>,
    frame_sizes: Option<Vec<u32>>,
    mix: Option<String>,
    measures: Option<Vec<Measure>>,
    goals: Option<Vec<GoalWord>>,
    quick: Option<u64>,
    trial_seconds: Option<f64>,
    latency_seconds: Option<f64>,
    soak_seconds: Option<f64>,
    before_seconds: Option<f64>,
    after_seconds: Option<f64>,
    settle_seconds: Option<f64>,
    trials: Option<u32>,
    protocol: Option<BenchProtocol>,
    flows: Option<u32>,
    way: Option<BenchWay>,
    line: Option<String>,
    frames_per_sec_max: Option<u64>,
    contract: Option<OrderedContract>,
    cell_contract: Option<OrderedCells>,
    burst: Option<u32>,
    vlans: Option<Vec<u16>>,
    generator: Option<GeneratorKind>,
    counter: Option<CounterKind>,
    seed: Option<u64>,
    plan: Option<Box<BenchPlan>>,
}

/// The kinds of test by name.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindName {
    Ping,
    Tcp,
    Simulate,
    Udp,
    Bench,
}

impl TryFrom<TestTable> for Test {
    type Error = String;

    fn try_from(table: TestTable) -> Result<Self, String> {
        let text = |error: serde_json::Error| error.to_string();
        let mut keys = serde_json::to_value(&table).map_err(text)?;
        keys.as_object_mut().into_iter().for_each(|keys| keys.retain(|_, it| !it.is_null()));
        let name = format!("test '{}' of kind {}", table.id, keys["kind"].as_str().unwrap_or(""));
        // The kind takes the keys that it has; what it did not take belongs to another.
        let kind = TestKind::deserialize(&keys).map_err(|error| format!("{name}: {error}"))?;
        let taken = serde_json::to_value(&kind).map_err(text)?;
        let own = |key: &str| ["id", "on", "repetitions"].contains(&key);
        let left = |key: &&String| !own(key) && taken.get(key).is_none();
        if let Some(key) = keys.as_object().into_iter().flat_map(Map::keys).find(left) {
            return Err(format!("{name} has no key '{key}'"));
        }
        Ok(Self { id: table.id, on: table.on, kind, repetitions: table.repetitions })
    }
}
