//! One test of a study: what is measured, the parameter that it varies, and the table of the TOML
//! file that it comes from.
//!
//! The parameter's name and unit and the label of each value are here, so that tables, legends
//! and progress lines name every test alike.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::embedded::{self, Embedded, Keys};
use super::list::{List, pick_value, varied_list};
use super::parameter::{Parameter, TestStep, Value};
use super::tcp_sweep::count_label;
use super::{
    BackgroundFlow, FramesSweep, GoalWord, Measure, OfferedRate, OrderedCells, OrderedContract,
    SimulateSweep, TcpSweep, Topology, UdpSweep,
};
use crate::record::{BenchFrames, BenchPlan, LossRecovery, PingPlan, Plan, TcpTest, UdpTest};
use crate::simulate::Stack;

/// One test of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "TestTable")]
pub struct Test {
    /// Identifier within the study: `ping`, `tcp`.
    pub id: String,
    /// The topologies that it belongs to; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// The kind of measurement, and the values of its parameter.
    #[serde(flatten)]
    pub kind: TestKind,
    /// How often each value is measured.
    pub repetitions: u32,
}

/// Kind of measurement of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a study has a handful of tests")]
pub enum TestKind {
    /// Flood ping by payload size.
    Ping {
        /// Payload bytes.
        sizes_bytes: Vec<u32>,
        /// Probes of each size.
        count: u64,
        /// Options of every run, by the names of a plan: `interval_ns`, `dscp`, `wait`.
        #[serde(flatten, with = "embedded")]
        #[cfg_attr(feature = "schema", schemars(schema_with = "embedded::schema::<PingPlan>"))]
        base: PingPlan,
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

impl TestKind {
    /// Flood ping with these payloads, so many probes of each.
    pub fn ping(sizes_bytes: Vec<u32>, count: u64) -> Self {
        Self::Ping { sizes_bytes, count, base: PingPlan::plan_without_keys() }
    }

    /// Every list that its plan may have, in the order that decides where nothing is varied.
    pub(super) fn lists(&self) -> Vec<List> {
        match self {
            Self::Ping { sizes_bytes, .. } => {
                vec![List::from_numbers(SIZES, Some(sizes_bytes), SIZE_BYTES, count_label)]
            }
            Self::Tcp(tcp) => tcp.value_lists(),
            Self::Simulate(simulate) => simulate.value_lists(),
            Self::Udp(udp) => udp.value_lists(),
            Self::Bench(bench) => bench.value_lists(),
        }
    }

    /// Plan of a measurement on `topology`, for the value at a place of the varied list; the target
    /// is left open.
    /// # Errors
    /// Why it cannot be measured there.
    fn plan(&self, topology: &Topology, at: usize) -> Result<Plan, String> {
        Ok(match self {
            Self::Ping { sizes_bytes, count, base } => Plan::Ping(PingPlan {
                sizes_bytes: sizes_bytes.get(at).copied().into_iter().collect(),
                count: Some(*count),
                ..base.clone()
            }),
            Self::Tcp(tcp) => Plan::Tcp(tcp.plan_for_value(topology, at)?),
            Self::Simulate(simulate) => Plan::Simulate(simulate.plan_for_value(topology, at)?),
            Self::Udp(udp) => Plan::Udp(udp.plan_for_value(at)),
            Self::Bench(bench) => Plan::Bench(bench.plan_for_value(topology, at)?),
        })
    }
}

const SIZES: Parameter = Parameter { key: "sizes_bytes", name: "payload", unit: Some("bytes") };
/// Payload of an IPv4 echo: 65,535 less 20 bytes of IP and 8 of ICMP (RFC 791, RFC 792).
const SIZE_BYTES: RangeInclusive<u64> = 0..=65_507;

impl Test {
    /// True for a topology, by its identifier, on which the test is measured.
    pub fn is_on(&self, topology: &str) -> bool {
        self.on.as_ref().is_none_or(|on| on.iter().any(|id| id == topology))
    }

    /// The parameter that it varies.
    pub fn parameter(&self) -> Parameter {
        varied_list(self.kind.lists()).parameter
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
        varied_list(self.kind.lists()).values()
    }

    /// Plans for all values on `topology`; none where it cannot be measured.
    pub(super) fn steps(&self, topology: &Topology) -> Vec<TestStep> {
        let step = |(at, value)| {
            let sack = match &self.kind {
                TestKind::Tcp(tcp) => pick_value(tcp.sack.as_ref(), at),
                _ => None,
            };
            Some(TestStep { value, plan: self.kind.plan(topology, at).ok()?, sack })
        };
        self.values().into_iter().enumerate().filter_map(step).collect()
    }
}

/// A test as its table in the file has it. A flattened enum would not know the place of a key of a
/// wrong type, so the keys of all kinds that no plan has are listed here once.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields))]
pub(super) struct TestTable {
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
    background: Option<BackgroundFlow>,
    tcp: Option<Stack>,
    recoveries: Option<Vec<LossRecovery>>,
    initial_window: Option<u32>,
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
    line: Option<String>,
    contract: Option<OrderedContract>,
    cell_contract: Option<OrderedCells>,
    plan: Option<Box<BenchPlan>>,
    /// The keys of the plan that the kind embeds.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "plans_schema"))]
    of_plan: Keys,
}

/// The keys of every plan that a kind of test embeds.
#[cfg(feature = "schema")]
fn plans_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let plans = [
        embedded::schema::<TcpTest>(generator),
        embedded::schema::<UdpTest<Option<u32>>>(generator),
        embedded::schema::<PingPlan>(generator),
        embedded::schema::<BenchFrames>(generator),
        embedded::schema::<BenchPlan>(generator),
    ];
    let properties = plans.iter().filter_map(|plan| plan.get("properties")?.as_object().cloned());
    let properties: Keys = properties.flatten().collect();
    schemars::json_schema!({ "type": "object", "properties": properties })
}

/// The kinds of test by name.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum KindName {
    Ping,
    Tcp,
    Simulate,
    Udp,
    Bench,
}

impl KindName {
    /// True for a key of the plan that this kind embeds; the value has to fit it.
    fn has(self, key: &str, value: &Json) -> Result<bool, crate::tree::Error> {
        match self {
            Self::Ping => embedded::plan_has_key::<PingPlan>(key, value),
            Self::Tcp | Self::Simulate => embedded::plan_has_key::<TcpTest>(key, value),
            Self::Udp => embedded::plan_has_key::<UdpTest<Option<u32>>>(key, value),
            Self::Bench => Ok(embedded::plan_has_key::<BenchFrames>(key, value)?
                || embedded::plan_has_key::<BenchPlan>(key, value)?),
        }
    }
}

/// Why a table is no test.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct TestFault {
    message: String,
    /// The key that is at fault, where it is one, and whether that is for its value.
    pub(super) key: Option<(String, bool)>,
}

impl TestTable {
    fn fault(&self, reason: String, key: Option<(&str, bool)>) -> TestFault {
        let kind = crate::tree::to_value(self.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        let key = key.map(|(key, is_value)| (key.to_owned(), is_value));
        TestFault { message: format!("test '{}' of kind {kind}{reason}", self.id), key }
    }

    fn unknown(&self, key: &str) -> TestFault {
        self.fault(format!(" has no key '{key}'"), Some((key, false)))
    }

    /// Refuses keys that the plan of the kind does not have.
    fn check_plan(&self) -> Result<(), TestFault> {
        self.of_plan.iter().try_for_each(|(key, value)| match self.kind.has(key, value) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.unknown(key)),
            Err(error) => Err(self.fault(format!(": {key}: {error}"), Some((key, true)))),
        })
    }
}

impl TryFrom<TestTable> for Test {
    type Error = TestFault;

    fn try_from(table: TestTable) -> Result<Self, TestFault> {
        table.check_plan()?;
        let mut keys = crate::tree::to_value(&table).unwrap_or_default();
        keys.as_object_mut().into_iter().for_each(|keys| keys.retain(|_, it| !it.is_null()));
        // The kind takes the keys that it has; what it did not take belongs to another.
        let kind = crate::tree::from_value::<TestKind>(keys.clone());
        let kind = kind.map_err(|error| table.fault(format!(": {error}"), None))?;
        let taken = crate::tree::to_value(&kind).unwrap_or_default();
        let own = |key: &str| ["id", "on", "repetitions"].contains(&key);
        let is_left = |key: &&String| {
            taken.get(*key).is_none() && !own(key) && !table.of_plan.contains_key(*key)
        };
        if let Some(key) = keys.as_object().into_iter().flat_map(Keys::keys).find(is_left) {
            return Err(table.unknown(key));
        }
        Ok(Self { id: table.id, on: table.on, kind, repetitions: table.repetitions })
    }
}
