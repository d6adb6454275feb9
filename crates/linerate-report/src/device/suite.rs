//! The records of a run, sorted: by device and kind of frames, then length, filters, repetition.
//!
//! Filters are a state of a device and not another device: `router-10` with 10 filters and
//! `router` are one. Where a figure was measured several times, its median stands for it.

use linerate_core::record::{
    BenchLatency, BenchPlan, BenchProtocol, BenchResult, BenchTest, GoalFound, Plan, Record,
    RecordStatus,
};
use linerate_core::stats::median;

use super::{limit, words};

/// Frame length of a case, in bytes with FCS; for a mix of lengths their mean, with the mix's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameSize {
    pub bytes: u32,
    pub mix: Option<String>,
}

impl FrameSize {
    /// The length of frames that are all `bytes` long, FCS included.
    pub(crate) const fn from_bytes(bytes: u32) -> Self {
        Self { bytes, mix: None }
    }
}

/// A frame length as tables print it: the mix's name, else the bytes.
pub(crate) fn size_text(size: &FrameSize) -> String {
    size.mix.clone().unwrap_or_else(|| size.bytes.to_string())
}

/// One record of a benchmark with its plan and its result.
pub(crate) struct BenchCase<'a> {
    pub record: &'a Record,
    pub plan: &'a BenchPlan,
    pub result: &'a BenchResult,
}

/// All benchmark records of one device that send frames of one kind: same protocol, direction,
/// flows, bursts and VLAN tags.
pub(crate) struct DeviceGroup<'a> {
    /// The device's name, without its number of filters.
    pub device: String,
    /// At least one record, in the order of their start.
    pub cases: Vec<BenchCase<'a>>,
}

/// The benchmark records of a run, grouped by device and kind of frames.
pub(crate) struct Suite<'a> {
    /// Groups in the order in which their first record was started.
    pub groups: Vec<DeviceGroup<'a>>,
}

impl<'a> Suite<'a> {
    /// Groups the records whose status is ok or partial. `name` gives the name of a record's
    /// device, which may contain its number of filters.
    pub(crate) fn new(
        records: impl IntoIterator<Item = &'a Record>,
        name: impl Fn(&Record) -> String,
    ) -> Self {
        let mut suite = Self { groups: Vec::new() };
        let mut cases: Vec<BenchCase<'a>> =
            records.into_iter().filter_map(BenchCase::from_record).collect();
        cases.sort_by_key(|case| (case.record.started_at, case.record.id));
        for case in cases {
            let device = name_without_filters(&name(case.record), case.filters());
            let group = suite.groups.iter_mut().find(|group| {
                group.device == device && sends_same_kind(group.first_case().plan, case.plan)
            });
            match group {
                Some(group) => group.cases.push(case),
                None => suite.groups.push(DeviceGroup { device, cases: vec![case] }),
            }
        }
        suite
    }

    /// True if none of the records is a benchmark.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// True if two plans send frames that differ at most in length.
fn sends_same_kind(one: &BenchPlan, other: &BenchPlan) -> bool {
    let kind = |plan: &BenchPlan| {
        let frames = &plan.frames;
        (frames.protocol, plan.way, frames.flows, frames.burst, frames.vlans.clone())
    };
    kind(one) == kind(other)
}

impl<'a> BenchCase<'a> {
    fn from_record(record: &'a Record) -> Option<Self> {
        let Plan::Bench(plan) = &record.plan else { return None };
        let result = record.bench.as_deref()?;
        let counts = matches!(record.status, RecordStatus::Ok | RecordStatus::Partial);
        counts.then_some(Self { record, plan, result })
    }

    /// Frame length of this case.
    pub(crate) fn frame_size(&self) -> FrameSize {
        FrameSize { bytes: self.plan.frames.size_bytes, mix: self.plan.frames.mix.clone() }
    }

    /// Number of filter rules in the device; 0 where the plan does not state it.
    pub(crate) fn filters(&self) -> u32 {
        self.plan.filters.unwrap_or(0)
    }

    /// True if the plan searches for the throughput, the highest rate without loss.
    pub(crate) fn is_searched(&self) -> bool {
        self.plan.tests.contains(&BenchTest::Throughput)
    }

    /// Highest rate without loss, in frames per second of one sending port.
    pub(crate) fn max_fps(&self) -> Option<f64> {
        limit::lossless(self.result).and_then(GoalFound::throughput_fps)
    }

    /// Rate found for the named goal, in frames per second of one sending port.
    pub(crate) fn goal_fps(&self, name: &str) -> Option<f64> {
        self.result.find_goal(name).and_then(GoalFound::throughput_fps)
    }

    /// Rate forwarded under flood, in frames per second of one sending port.
    pub(crate) fn flood_fps(&self) -> Option<f64> {
        let senders = words::senders(self.plan) as f64;
        self.result.flood.as_ref().map(|point| point.forwarded_fps / senders)
    }

    /// Rate of the tester measured without the device, in frames per second of one port.
    pub(crate) fn tester_fps(&self) -> Option<f64> {
        self.result.tester.as_ref().map(|tester| tester.frames_per_sec)
    }

    /// Frame latency measured at the throughput.
    pub(crate) fn latency(&self) -> Option<&BenchLatency> {
        self.result.latency.first()
    }
}

impl<'a> DeviceGroup<'a> {
    /// The record that was started first.
    pub(crate) fn first_case(&self) -> &BenchCase<'a> {
        self.cases.first().expect("a group begins with a case")
    }

    /// Heading of the group: device, protocol, direction of the streams, flows, bursts and VLAN
    /// tags.
    pub(crate) fn heading_text(&self) -> String {
        let plan = self.first_case().plan;
        let frames = &plan.frames;
        let mut title = format!(
            "{}: {}, {}",
            self.device,
            words::protocol(frames.protocol),
            words::direction(plan.way)
        );
        for (count, noun) in [(frames.flows, "flows"), (frames.burst, "back to back")] {
            if count > 1 {
                title.push_str(&format!(", {count} {noun}"));
            }
        }
        if !frames.vlans.is_empty() {
            title.push_str(&format!(", {} tags", frames.vlans.len()));
        }
        title
    }

    /// Frame lengths in rising order; a mix follows the single length that equals its mean.
    pub(crate) fn frame_sizes(&self) -> Vec<FrameSize> {
        sorted(self.cases.iter().map(BenchCase::frame_size))
    }

    /// Numbers of filters that were measured, in rising order.
    pub(crate) fn filters(&self) -> Vec<u32> {
        sorted(self.cases.iter().map(BenchCase::filters))
    }

    /// The smallest number of filters measured; figures that state no number of filters are for
    /// this one.
    pub(crate) fn fewest_filters(&self) -> u32 {
        self.cases.iter().map(BenchCase::filters).min().unwrap_or(0)
    }

    /// The records with one frame length and one number of filters.
    pub(crate) fn matching_cases(
        &self,
        size: &FrameSize,
        filters: u32,
    ) -> impl Iterator<Item = &BenchCase<'a>> {
        let size = size.clone();
        self.cases.iter().filter(move |case| case.frame_size() == size && case.filters() == filters)
    }

    /// Median of a figure over the repetitions of one frame length and number of filters.
    pub(crate) fn median_figure(
        &self,
        size: &FrameSize,
        filters: u32,
        figure: impl Fn(&BenchCase<'a>) -> Option<f64>,
    ) -> Option<f64> {
        median(&self.matching_cases(size, filters).filter_map(figure).collect::<Vec<f64>>())
    }

    /// A printed rate, with `*` where the tester itself limited a search at this frame length and
    /// number of filters.
    pub(crate) fn with_tester_mark(&self, size: &FrameSize, filters: u32, rate: String) -> String {
        let is_limited = |case: &BenchCase<'_>| {
            let goals = [limit::usual(case.result), limit::lossless(case.result)];
            goals.into_iter().flatten().any(|goal| goal.tester_limited)
        };
        if self.matching_cases(size, filters).any(is_limited) { rate + "*" } else { rate }
    }

    /// Frame rate that the medium carries at a frame length, whatever the number of filters.
    pub(crate) fn theoretical_fps(&self, size: &FrameSize) -> Option<f64> {
        self.cases
            .iter()
            .filter(|case| case.frame_size() == *size)
            .find_map(|case| case.result.theoretical_fps)
    }

    /// True if the medium's frame rate is known for at least one frame length.
    pub(crate) fn has_theoretical_rate(&self) -> bool {
        self.cases.iter().any(|case| case.result.theoretical_fps.is_some())
    }

    /// The largest number of repetitions of one frame length and number of filters.
    pub(crate) fn repetitions(&self) -> usize {
        let each = |size: &FrameSize| {
            self.filters()
                .into_iter()
                .map(|filters| self.matching_cases(size, filters).count())
                .max()
        };
        self.frame_sizes().iter().filter_map(each).max().unwrap_or(0)
    }

    /// The protocol's name in Bradner's tables of 1990; `None` for protocols that they lack. Frames
    /// whose plan gives no gateway are bridged.
    pub(crate) fn protocol_1990(&self) -> Option<&'static str> {
        let plan = self.first_case().plan;
        let routed = plan.ports.iter().any(|port| port.gateway.is_some());
        Some(match plan.frames.protocol {
            BenchProtocol::Udp4 if routed => "ip",
            BenchProtocol::Udp4 | BenchProtocol::Ethernet => "bridge",
            BenchProtocol::Decnet => "decnet",
            BenchProtocol::Appletalk => "appletalk2",
            BenchProtocol::Ipx => "ipx",
            BenchProtocol::Udp6 | BenchProtocol::Tcp4 | BenchProtocol::Tcp6 => return None,
        })
    }
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}

/// Name of a device in a record that belongs to no study: the user's name for it, else the
/// topology, else the interfaces of its ports.
pub(crate) fn plain_name(record: &Record) -> String {
    let place = || record.cell.as_ref().map(|cell| cell.topology.clone());
    record.name.clone().or_else(place).unwrap_or_else(|| match &record.plan {
        Plan::Bench(plan) => {
            let ports: Vec<&str> = plan.ports.iter().map(|port| port.interface.as_str()).collect();
            ports.join(" to ")
        }
        _ => String::new(),
    })
}

/// Words that stand beside a number of filters in a device's name.
const FILTER_WORDS: [&str; 5] = ["filter", "filters", "rule", "rules", "with"];

/// A device's name without its number of filters: `router-10`, `router, 10 filters` and `router
/// with 10 rules` are all `router`. A number other than `filters` stays.
pub(crate) fn name_without_filters(name: &str, filters: u32) -> String {
    let is_word = |c: char| c.is_alphanumeric();
    let mut tokens: Vec<(usize, &str)> = Vec::new();
    for (at, c) in name.char_indices().filter(|(_, c)| is_word(*c)) {
        match tokens.last_mut() {
            Some((start, word)) if *start + word.len() == at => {
                *word = &name[*start..at + c.len_utf8()];
            }
            _ => tokens.push((at, &name[at..at + c.len_utf8()])),
        }
    }
    let number = filters.to_string();
    let is_number = |word: &str| word == number || (filters == 0 && word == "no");
    let beside = |at: usize| tokens.get(at).is_some_and(|(_, word)| FILTER_WORDS.contains(word));
    let is_named = |at: usize| beside(at + 1) || (at > 0 && beside(at - 1));
    let is_last = |at: usize| at > 0 && at + 1 == tokens.len();
    let found = (0..tokens.len()).rev().find(|&at| {
        is_number(tokens[at].1) && (is_named(at) || (tokens[at].1 == number && is_last(at)))
    });
    let Some(found) = found else { return name.to_owned() };
    let first = (0..found).rev().take_while(|&at| beside(at)).last().unwrap_or(found);
    let last = (found + 1..tokens.len()).take_while(|&at| beside(at)).last().unwrap_or(found);
    let before = name[..tokens[first].0].trim_end_matches([' ', ',', '-', '_', '(', ':']);
    let after = name[tokens[last].0 + tokens[last].1.len()..].trim_start_matches(')');
    match format!("{before}{after}") {
        // `filters-10` keeps its word.
        bare if bare.is_empty() => tokens[first..=last]
            .iter()
            .map(|(_, word)| *word)
            .find(|word| *word != number)
            .unwrap_or(name)
            .to_owned(),
        bare => bare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_a_state_of_a_device_and_no_device() {
        let cases = [
            ("router-10", 10, "router"),
            ("router", 0, "router"),
            ("router-0", 0, "router"),
            ("Linux router, 10 filters", 10, "Linux router"),
            ("Linux router (no filters)", 0, "Linux router"),
            ("router with 1000 rules, nftables", 1000, "router, nftables"),
            ("rules-100", 100, "rules"),
            ("AGS 10", 1, "AGS 10"),
            ("10", 10, "10"),
            ("3com-1", 1, "3com"),
        ];
        for (name, filters, expected) in cases {
            assert_eq!(name_without_filters(name, filters), expected, "{name}");
        }
    }
}
