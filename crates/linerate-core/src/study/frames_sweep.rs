//! A device benchmark of a study: raw frames of several lengths through what stands between the
//! client and the server of a topology.
//!
//! It varies the length of frames; a mix of lengths stands for one value. Ports come from the
//! layout of the topology's laboratory. The rules are in `check_bench`.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::bench_words::{GoalWord, Measure, OrderedCells, OrderedContract};
use super::list::{List, pick_value};
use super::parameter::{Parameter, Value};
use super::tcp_sweep::{count_label, seconds_to_nanos};
use super::{Topology, embedded};
use crate::lab::Layout;
use crate::record::{self, BenchFrames, BenchGoal, BenchPlan, BenchPort, BenchTimes, BenchWay};
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
    /// Measures to take, in this order.
    pub measures: Vec<Measure>,
    /// Goals of searches, all at once; strict and typical when absent.
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
    /// Contract of a policer or shaper, for the measure `contract`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<OrderedContract>,
    /// Contract in cells instead: frames of each length stand for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_contract: Option<OrderedCells>,
    /// Which frames, by the names of a plan: `protocol`, `flows`, `burst`, `vlans`, `dscp`.
    #[serde(flatten, with = "embedded")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "embedded::schema::<BenchFrames>"))]
    pub frames: BenchFrames,
    /// Options of every run, by the names of a plan: `way`, `generator`, `counter`, `seed`. In
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

/// Shortest Ethernet frame with FCS (IEEE 802.3 §3.2.6), and longest of RFC 5180 §5.1.
pub(super) const FRAME_BYTES: RangeInclusive<u32> = 64..=9216;

impl FramesSweep {
    /// Every list that the plan may have: a mix is one value with the number of its mean length.
    pub(super) fn value_lists(&self) -> Vec<List> {
        let mix = self.mix.as_ref().map(|mix| vec![mix.clone()]);
        let mean = |mix: &String| Value {
            number: mean_of_mix(mix).unwrap_or_default().into(),
            label: mix.clone(),
        };
        let bounds = (*FRAME_BYTES.start()).into()..=(*FRAME_BYTES.end()).into();
        vec![
            List::from_numbers(SIZES, self.frame_sizes.as_ref(), bounds, count_label),
            List::from_values(MIX, mix.as_ref(), mean),
        ]
    }

    /// Plan of the benchmark for the value at a place of the varied list.
    /// # Errors
    /// Why the topology has no ports for it.
    pub(super) fn plan_for_value(
        &self,
        topology: &Topology,
        at: usize,
    ) -> Result<BenchPlan, String> {
        let plan = self.whole_plan();
        let mean = self.mix.as_deref().map(|mix| mean_of_mix(mix).unwrap_or_default());
        let size_bytes =
            mean.or_else(|| pick_value(self.frame_sizes.as_ref(), at)).unwrap_or_default();
        let frames = BenchFrames { size_bytes, mix: self.mix.clone(), ..plan.frames.clone() };
        let ports = self.ports_on_topology(topology)?;
        let layout = Layout::from_plan(&topology.lab).ok();
        let filters = || layout?.filters_between(&topology.client, &topology.server);
        Ok(BenchPlan { frames, ports, filters: plan.filters.or_else(filters), ..plan })
    }

    /// The ports between which frames go on `topology`.
    pub(super) fn ports_on_topology(&self, topology: &Topology) -> Result<Vec<BenchPort>, String> {
        let plan = self.whole_plan();
        if !plan.ports.is_empty() {
            return Ok(plan.ports);
        }
        let third = [record::BenchTest::Addresses, record::BenchTest::Blocking];
        let is_many =
            plan.way == BenchWay::Mesh || third.iter().any(|test| plan.tests.contains(test));
        let Topology { client, server, .. } = topology;
        let mut hosts = vec![client.as_str(), server.as_str()];
        if is_many {
            let all = topology.lab.hosts.iter().map(|host| host.name.as_str());
            hosts.extend(all.filter(|name| *name != client && *name != server));
        }
        let layout = Layout::from_plan(&topology.lab).map_err(|problem| problem.to_string())?;
        layout.bench_ports_of(&hosts, plan.frames.protocol)
    }

    /// The plan of all runs but for the length of frames.
    pub(super) fn whole_plan(&self) -> BenchPlan {
        if let Some(plan) = &self.plan {
            return plan.as_ref().clone();
        }
        BenchPlan {
            frames: self.frames.clone(),
            tests: self.measures.iter().map(|measure| measure.0).collect(),
            goals: self.bench_goals(),
            times: self.bench_times(),
            line: self.line.as_deref().and_then(|line| line.parse::<BitRate>().ok()),
            contract: self.contract.as_ref().and_then(|ordered| ordered.contract().ok()),
            cell_contract: self.cell_contract.as_ref().and_then(|ordered| ordered.contract().ok()),
            ..self.base.clone()
        }
    }

    /// Goals of searches, shortened where the test is quick.
    fn bench_goals(&self) -> Vec<BenchGoal> {
        let all = match &self.goals {
            Some(words) => words.iter().map(GoalWord::bench_goal).collect(),
            None => vec![BenchGoal::strict(), BenchGoal::typical()],
        };
        match self.quick {
            Some(divisor @ 2..) => {
                all.into_iter().map(|goal| goal.with_short_trials(divisor)).collect()
            }
            _ => all,
        }
    }

    fn bench_times(&self) -> BenchTimes {
        let usual = BenchTimes::default();
        BenchTimes {
            trial_ns: self.trial_seconds.map_or(usual.trial_ns, seconds_to_nanos),
            latency_ns: self.latency_seconds.map_or(usual.latency_ns, seconds_to_nanos),
            soak_ns: self.soak_seconds.map_or(usual.soak_ns, seconds_to_nanos),
            before_ns: self.before_seconds.map_or(usual.before_ns, seconds_to_nanos),
            after_ns: self.after_seconds.map_or(usual.after_ns, seconds_to_nanos),
            settle_ns: self.settle_seconds.map_or(usual.settle_ns, seconds_to_nanos),
            repetitions: self.trials.unwrap_or(usual.repetitions),
        }
    }
}

/// Lengths of the simple Internet mix with their weights.
const IMIX: &str = "64:7,594:4,1518:1";

/// Part of a mix of lengths.
pub(super) struct MixPart {
    pub(super) length: u32,
    weight: u32,
}

/// Parts of a mix: `imix`, or `length:weight` with commas between.
pub(super) fn parse_mix(text: &str) -> Result<Vec<MixPart>, String> {
    let text = if text == "imix" { IMIX } else { text };
    let part = |part: &str| {
        let (length, weight) = part.split_once(':').unwrap_or((part, "1"));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let parsed = number(length).zip(number(weight));
        parsed.map(|(length, weight)| MixPart { length, weight }).ok_or_else(|| {
            format!("`{part}` is no part of a mix; write imix, or for example {IMIX}")
        })
    };
    text.split(',').map(part).collect()
}

/// Mean length of a mix, rounded.
fn mean_of_mix(text: &str) -> Result<u32, String> {
    let parts = parse_mix(text)?;
    let weights: u64 = parts.iter().map(|part| u64::from(part.weight)).sum();
    let bytes = parts.iter().map(|part| u64::from(part.length) * u64::from(part.weight));
    let mean = (bytes.sum::<u64>() + weights / 2) / weights;
    u32::try_from(mean).map_err(|error| error.to_string())
}
