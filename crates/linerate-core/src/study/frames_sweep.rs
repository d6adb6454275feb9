//! A device benchmark of a study: raw frames of several lengths through what stands between the
//! client and the server of a topology.
//!
//! It varies the length of frames; a mix of lengths stands for one value. Ports come from the
//! layout of the topology's laboratory. The rules are in `check_bench`.

use serde::{Deserialize, Serialize};

use super::bench_words::{GoalWord, Measure, OrderedCells, OrderedContract};
use super::parameter::{Parameter, TestStep, Value};
use super::tcp_sweep::nanos;
use super::{Topology, embedded};
use crate::lab::Layout;
use crate::record::{
    self, BenchFrames, BenchGoal, BenchPlan, BenchPort, BenchProtocol, BenchTimes, BenchWay, Plan,
};
use crate::units::BitRate;

/// A benchmark of a device by length of frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FramesSweep {
    /// Lengths of frames with FCS and tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_sizes: Option<Vec<u32>>,
    /// A mix of lengths in their place: `imix` or `64:7,594:4,1518:1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
    /// What is measured, in this order.
    pub measures: Vec<Measure>,
    /// What searches go by, all at once; strict and typical when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<Vec<GoalWord>>,
    /// Trials of the goals are so many times as short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick: Option<u64>,
    /// Length of trials that no goal gives a length: flood, loss curve, overload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial_seconds: Option<f64>,
    /// Length of a trial of latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_seconds: Option<f64>,
    /// Length of a soak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak_seconds: Option<f64>,
    /// Wait before each trial, after learning frames (RFC 2544 §23 has 2 s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_seconds: Option<f64>,
    /// Wait after each trial for frames still on their way (2 s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_seconds: Option<f64>,
    /// Wait after that for the device to come to rest (5 s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<f64>,
    /// Trials of latency and of bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// Rate of the medium that theoretical frame rates are of; none when absent, because links of a
    /// laboratory have no medium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What was ordered, for the measure `contract`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<OrderedContract>,
    /// What was ordered in cells instead: frames of each length stand for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_contract: Option<OrderedCells>,
    /// Which frames, by the names of a plan: `protocol`, `flows`, `burst`, `vlans`, `dscp`.
    #[serde(flatten, with = "embedded")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "embedded::schema::<BenchFrames>"))]
    pub frames: BenchFrames,
    /// What holds for every run, by the names of a plan: `way`, `generator`, `counter`, `seed`. In
    /// a mesh every host of the laboratory is a port.
    #[serde(flatten, with = "embedded")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "embedded::schema::<BenchPlan>"))]
    pub base: BenchPlan,
    /// The whole plan but for the length of frames, as the flags of a command gave it: it stands in
    /// the place of all keys above but lengths and mix. Ports that it names are those of the host
    /// itself; without any they are the laboratory's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<BenchPlan>>,
}

const SIZES: Parameter = Parameter { key: "frame_sizes", name: "frame", unit: Some("bytes") };
const MIX: Parameter = Parameter { key: "mix", name: "mix", unit: None };

impl FramesSweep {
    /// The parameter that it varies.
    pub fn parameter(&self) -> Parameter {
        if self.mix.is_some() { MIX } else { SIZES }
    }

    /// The values of the parameter, in the order of the plan; a mix has the number of its mean
    /// length.
    pub fn values(&self) -> Vec<Value> {
        if let Some(mix) = &self.mix {
            let mean = mean_of_mix(mix).unwrap_or_default();
            return vec![Value { number: mean.into(), label: mix.clone() }];
        }
        let sizes = self.frame_sizes.iter().flatten();
        sizes.map(|&size| Value { number: size.into(), label: size.to_string() }).collect()
    }

    /// What searches go by.
    pub fn goals(&self) -> Vec<BenchGoal> {
        if let Some(plan) = &self.plan {
            return plan.goals.clone();
        }
        let all = match &self.goals {
            Some(words) => words.iter().map(GoalWord::goal).collect(),
            None => vec![BenchGoal::strict(), BenchGoal::typical()],
        };
        match self.quick {
            Some(divisor @ 2..) => all.into_iter().map(|goal| goal.quick(divisor)).collect(),
            _ => all,
        }
    }

    /// What its frames carry.
    pub fn protocol(&self) -> BenchProtocol {
        if let Some(plan) = &self.plan {
            return plan.frames.protocol;
        }
        self.frames.protocol
    }

    /// What to measure for each value on `topology`; nothing on one that has no ports for it.
    pub(super) fn steps(&self, topology: &Topology) -> Vec<TestStep> {
        let Ok(ports) = self.ports(topology) else { return Vec::new() };
        let layout = Layout::of(&topology.lab).ok();
        let made = || layout?.filters_between(&topology.client, &topology.server);
        let asked = self.plan.as_ref().and_then(|plan| plan.filters);
        let filters = asked.or_else(made);
        let step = |value: Value| {
            let plan = BenchPlan { ports: ports.clone(), filters, ..self.plan(&value) };
            TestStep { value, plan: Plan::Bench(plan), sack: None }
        };
        self.values().into_iter().map(step).collect()
    }

    /// The ports between which frames go on `topology`.
    pub(super) fn ports(&self, topology: &Topology) -> Result<Vec<BenchPort>, String> {
        if let Some(plan) = self.plan.as_ref().filter(|plan| !plan.ports.is_empty()) {
            return Ok(plan.ports.clone());
        }
        let layout = Layout::of(&topology.lab).map_err(|problem| problem.to_string())?;
        layout.bench_ports_of(&self.hosts(topology), self.protocol())
    }

    /// Hosts that have a port: client and server, and every other host where a mesh or a measure
    /// needs a third one.
    fn hosts<'a>(&self, topology: &'a Topology) -> Vec<&'a str> {
        let way = self.plan.as_ref().map_or(self.base.way, |plan| plan.way);
        let of_many = [record::BenchTest::Addresses, record::BenchTest::Blocking];
        let mut hosts = vec![topology.client.as_str(), topology.server.as_str()];
        let many = self.measures.iter().any(|measure| of_many.contains(&measure.0));
        if many || way == BenchWay::Mesh {
            let all = topology.lab.hosts.iter().map(|host| host.name.as_str());
            hosts.extend(all.filter(|name| *name != topology.client && *name != topology.server));
        }
        hosts
    }

    fn plan(&self, value: &Value) -> BenchPlan {
        let size_bytes = u32::try_from(value.number).unwrap_or(u32::MAX);
        if let Some(plan) = &self.plan {
            let mix = self.mix.clone();
            let frames = BenchFrames { size_bytes, mix, ..plan.frames.clone() };
            return BenchPlan { frames, ..plan.as_ref().clone() };
        }
        BenchPlan {
            frames: BenchFrames { size_bytes, mix: self.mix.clone(), ..self.frames.clone() },
            tests: self.measures.iter().map(|measure| measure.0).collect(),
            goals: self.goals(),
            times: self.times(),
            line: self.line.as_deref().and_then(|line| line.parse::<BitRate>().ok()),
            contract: self.contract.as_ref().and_then(|it| it.contract().ok()),
            cell_contract: self.cell_contract.as_ref().and_then(|it| it.contract().ok()),
            ..self.base.clone()
        }
    }

    fn times(&self) -> BenchTimes {
        let usual = BenchTimes::default();
        BenchTimes {
            trial_ns: self.trial_seconds.map_or(usual.trial_ns, nanos),
            latency_ns: self.latency_seconds.map_or(usual.latency_ns, nanos),
            soak_ns: self.soak_seconds.map_or(usual.soak_ns, nanos),
            before_ns: self.before_seconds.map_or(usual.before_ns, nanos),
            after_ns: self.after_seconds.map_or(usual.after_ns, nanos),
            settle_ns: self.settle_seconds.map_or(usual.settle_ns, nanos),
            repetitions: self.trials.unwrap_or(usual.repetitions),
        }
    }
}

/// Lengths of the simple Internet mix with their weights.
const IMIX: &str = "64:7,594:4,1518:1";

/// Lengths of a mix with their weights: `imix`, or `length:weight` with commas between.
pub(super) fn parse_mix(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let text = if text == "imix" { IMIX } else { text };
    let part = |part: &str| {
        let (length, weight) = part.split_once(':').unwrap_or((part, "1"));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
        number(length).zip(number(weight)).ok_or_else(|| {
            format!("`{part}` is no part of a mix; write imix, or for example {IMIX}")
        })
    };
    text.split(',').map(part).collect()
}

/// Mean length of a mix, rounded.
pub(super) fn mean_of_mix(text: &str) -> Result<u32, String> {
    let parts = parse_mix(text)?;
    let weights: u64 = parts.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let bytes: u64 =
        parts.iter().map(|(length, weight)| u64::from(*length) * u64::from(*weight)).sum();
    u32::try_from((bytes + weights / 2) / weights).map_err(|error| error.to_string())
}
