//! One test of a study: what is measured, the parameter that it varies, and the table of the TOML
//! file that it comes from.
//!
//! The parameter's name and unit and the label of each value are here, so that tables, legends
//! and progress lines name every test alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Background, BenchTest, GoalWord, Measure, OfferedRate, OrderedCells, OrderedContract,
    SimulateTest, TcpTest, Topology, UdpTest,
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    Tcp(TcpTest),
    /// TCP throughput of a model, in virtual time.
    Simulate(SimulateTest),
    /// UDP throughput by offered rate or by size of datagrams.
    Udp(UdpTest),
    /// Raw frames through a device, by their length.
    Bench(BenchTest),
}

/// What a test varies: words for headings and axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key that lists its values in the plan: `windows_bytes`.
    pub key: &'static str,
    /// Its name in headings: `window`.
    pub name: &'static str,
    /// Unit of its values; none for counts and names.
    pub unit: Option<&'static str>,
}

impl Parameter {
    /// The name with the unit, for the axis of a plot: `window, bytes`.
    pub fn title(&self) -> String {
        match self.unit {
            Some(unit) => format!("{}, {unit}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// One value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number that stands for it in cells and keys. For a name it is its place in the plan's
    /// list, from 1; for a choice 1 is yes.
    pub number: u64,
    /// How it is written in headings: `16 KiB`, `auto`, `reno`.
    pub label: String,
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

/// One value of a test with its plan.
pub(super) struct TestStep {
    pub(super) value: Value,
    pub(super) plan: Plan,
    /// Selective acknowledgements at both ends; none leaves them as the topology has them.
    pub(super) sack: Option<bool>,
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

/// A test as its table in the file has it. A flattened enum would accept any key beside its own,
/// so the keys are listed once more here, and the kind decides which of them belong.
#[derive(Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindName {
    Ping,
    Tcp,
    Simulate,
    Udp,
    Bench,
}

impl KindName {
    const fn word(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Tcp => "tcp",
            Self::Simulate => "simulate",
            Self::Udp => "udp",
            Self::Bench => "bench",
        }
    }
}

impl TryFrom<TestTable> for Test {
    type Error = String;

    fn try_from(mut table: TestTable) -> Result<Self, String> {
        let name = format!("test '{}'", table.id);
        let (id, repetitions, on) = (table.id.clone(), table.repetitions, table.on.take());
        if table.kind != KindName::Simulate {
            for (key, present) in table.keys_of_simulate() {
                foreign(&name, table.kind.word(), key, present)?;
            }
        }
        if table.kind != KindName::Bench {
            for (key, present) in table.keys_of_bench() {
                foreign(&name, table.kind.word(), key, present)?;
            }
        }
        if table.kind != KindName::Udp {
            foreign(&name, table.kind.word(), "rates", table.rates.is_some())?;
        }
        let kind = match table.kind {
            KindName::Ping => {
                for (key, present) in table.keys_of_tcp() {
                    foreign(&name, "ping", key, present)?;
                }
                TestKind::Ping {
                    sizes_bytes: needed(&name, "ping", "sizes_bytes", table.sizes_bytes)?,
                    count: needed(&name, "ping", "count", table.count)?,
                }
            }
            KindName::Tcp => {
                foreign(&name, "tcp", "sizes_bytes", table.sizes_bytes.is_some())?;
                foreign(&name, "tcp", "count", table.count.is_some())?;
                TestKind::Tcp(table.into_tcp())
            }
            KindName::Simulate => {
                foreign(&name, "simulate", "sizes_bytes", table.sizes_bytes.is_some())?;
                foreign(&name, "simulate", "count", table.count.is_some())?;
                foreign(&name, "simulate", "read_bytes", table.read_bytes.is_some())?;
                TestKind::Simulate(table.into_simulate())
            }
            KindName::Udp => {
                let shared = ["seconds", "omit_seconds"];
                let keys = table.keys_of_tcp().into_iter();
                for (key, present) in keys.filter(|(key, _)| !shared.contains(key)) {
                    foreign(&name, "udp", key, present)?;
                }
                foreign(&name, "udp", "count", table.count.is_some())?;
                TestKind::Udp(UdpTest {
                    rates: table.rates,
                    sizes_bytes: table.sizes_bytes,
                    seconds: needed(&name, "udp", "seconds", table.seconds)?,
                    omit_seconds: table.omit_seconds,
                })
            }
            KindName::Bench => {
                for (key, present) in table.keys_of_tcp() {
                    foreign(&name, "bench", key, present)?;
                }
                foreign(&name, "bench", "sizes_bytes", table.sizes_bytes.is_some())?;
                foreign(&name, "bench", "count", table.count.is_some())?;
                TestKind::Bench(table.into_bench(&name)?)
            }
        };
        Ok(Self { id, on, kind, repetitions })
    }
}

impl TestTable {
    fn keys_of_tcp(&self) -> [(&'static str, bool); 10] {
        [
            ("windows_bytes", self.windows_bytes.is_some()),
            ("streams", self.streams.is_some()),
            ("transfer_bytes", self.transfer_bytes.is_some()),
            ("congestion_controls", self.congestion_controls.is_some()),
            ("sack", self.sack.is_some()),
            ("read_bytes", self.read_bytes.is_some()),
            ("seconds", self.seconds.is_some()),
            ("omit_seconds", self.omit_seconds.is_some()),
            ("congestion_control", self.congestion_control.is_some()),
            ("background", self.background.is_some()),
        ]
    }

    /// Keys of a simulated test that one of TCP has not.
    fn keys_of_simulate(&self) -> [(&'static str, bool); 6] {
        [
            ("tcp", self.tcp.is_some()),
            ("recoveries", self.recoveries.is_some()),
            ("initial_window", self.initial_window.is_some()),
            ("mss_bytes", self.mss_bytes.is_some()),
            ("hystart", self.hystart.is_some()),
            ("start_spread_seconds", self.start_spread_seconds.is_some()),
        ]
    }

    /// Keys that only a device benchmark has.
    fn keys_of_bench(&self) -> [(&'static str, bool); 25] {
        [
            ("frame_sizes", self.frame_sizes.is_some()),
            ("mix", self.mix.is_some()),
            ("measures", self.measures.is_some()),
            ("goals", self.goals.is_some()),
            ("quick", self.quick.is_some()),
            ("trial_seconds", self.trial_seconds.is_some()),
            ("latency_seconds", self.latency_seconds.is_some()),
            ("soak_seconds", self.soak_seconds.is_some()),
            ("before_seconds", self.before_seconds.is_some()),
            ("after_seconds", self.after_seconds.is_some()),
            ("settle_seconds", self.settle_seconds.is_some()),
            ("trials", self.trials.is_some()),
            ("protocol", self.protocol.is_some()),
            ("flows", self.flows.is_some()),
            ("way", self.way.is_some()),
            ("line", self.line.is_some()),
            ("frames_per_sec_max", self.frames_per_sec_max.is_some()),
            ("contract", self.contract.is_some()),
            ("cell_contract", self.cell_contract.is_some()),
            ("burst", self.burst.is_some()),
            ("vlans", self.vlans.is_some()),
            ("generator", self.generator.is_some()),
            ("counter", self.counter.is_some()),
            ("seed", self.seed.is_some()),
            ("plan", self.plan.is_some()),
        ]
    }

    fn into_bench(self, name: &str) -> Result<BenchTest, String> {
        Ok(BenchTest {
            frame_sizes: self.frame_sizes,
            mix: self.mix,
            measures: needed(name, "bench", "measures", self.measures)?,
            goals: self.goals,
            quick: self.quick,
            trial_seconds: self.trial_seconds,
            latency_seconds: self.latency_seconds,
            soak_seconds: self.soak_seconds,
            before_seconds: self.before_seconds,
            after_seconds: self.after_seconds,
            settle_seconds: self.settle_seconds,
            trials: self.trials,
            protocol: self.protocol,
            flows: self.flows,
            way: self.way,
            line: self.line,
            frames_per_sec_max: self.frames_per_sec_max,
            contract: self.contract,
            cell_contract: self.cell_contract,
            burst: self.burst,
            vlans: self.vlans,
            generator: self.generator,
            counter: self.counter,
            seed: self.seed,
            plan: self.plan,
        })
    }

    fn into_simulate(mut self) -> SimulateTest {
        SimulateTest {
            tcp: self.tcp.take().unwrap_or_default(),
            recoveries: self.recoveries.take(),
            initial_window: self.initial_window,
            mss_bytes: self.mss_bytes,
            hystart: self.hystart,
            start_spread_seconds: self.start_spread_seconds,
            common: self.into_tcp(),
        }
    }

    fn into_tcp(self) -> TcpTest {
        TcpTest {
            windows_bytes: self.windows_bytes,
            streams: self.streams,
            transfer_bytes: self.transfer_bytes,
            congestion_controls: self.congestion_controls,
            sack: self.sack,
            read_bytes: self.read_bytes,
            seconds: self.seconds,
            omit_seconds: self.omit_seconds,
            congestion_control: self.congestion_control,
            background: self.background,
        }
    }
}

fn needed<T>(test: &str, kind: &str, key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{test} of kind {kind} lacks the key '{key}'"))
}

fn foreign(test: &str, kind: &str, key: &str, present: bool) -> Result<(), String> {
    if present { Err(format!("{test} of kind {kind} has no key '{key}'")) } else { Ok(()) }
}
