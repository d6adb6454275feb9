//! The records of a run, sorted: by device and kind of frames, then length, filters, repetition.
//!
//! Filters are a state of a device and not another device: `router-10` with 10 filters and
//! `router` are one. Where a figure was measured several times, its median stands for it.

use linerate_core::record::{
    BenchLatency, BenchPlan, BenchProtocol, BenchResult, BenchTest, GoalFound, Plan, Record, Status,
};
use linerate_core::stats::median;

use super::{limit, words};

/// Length of frames: bytes with FCS, or the mix whose mean they are.
pub(crate) type Size = (u32, Option<String>);

/// A length in tables.
pub(crate) fn shown((bytes, mix): &Size) -> String {
    mix.clone().unwrap_or_else(|| bytes.to_string())
}

/// One record of a benchmark.
pub(crate) struct Case<'a> {
    /// The record.
    pub record: &'a Record,
    /// Its plan.
    pub plan: &'a BenchPlan,
    /// What it found.
    pub result: &'a BenchResult,
}

/// All records of one device with frames of one kind.
pub(crate) struct Group<'a> {
    /// The device.
    pub device: String,
    /// One or more, in the order of their start.
    pub cases: Vec<Case<'a>>,
}

/// The groups of a run.
pub(crate) struct Suite<'a> {
    /// In the order in which they come up.
    pub groups: Vec<Group<'a>>,
}

impl<'a> Suite<'a> {
    /// Sorts the records that ended well or in part; `name` gives a record's device, filters
    /// perhaps among the words.
    pub(crate) fn new(
        records: impl IntoIterator<Item = &'a Record>,
        name: impl Fn(&Record) -> String,
    ) -> Self {
        let mut suite = Self { groups: Vec::new() };
        let mut cases: Vec<Case<'a>> = records.into_iter().filter_map(Case::of).collect();
        cases.sort_by_key(|case| (case.record.started_at, case.record.id));
        for case in cases {
            let device = device(&name(case.record), case.filters());
            let group = suite
                .groups
                .iter_mut()
                .find(|group| group.device == device && of_one_kind(group.first().plan, case.plan));
            match group {
                Some(group) => group.cases.push(case),
                None => suite.groups.push(Group { device, cases: vec![case] }),
            }
        }
        suite
    }

    /// Whether there is no benchmark among the records.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Whether two plans send frames that differ in length alone.
fn of_one_kind(one: &BenchPlan, other: &BenchPlan) -> bool {
    let kind = |plan: &BenchPlan| {
        let frames = &plan.frames;
        (frames.protocol, plan.way, frames.flows, frames.burst, frames.vlans.clone())
    };
    kind(one) == kind(other)
}

impl<'a> Case<'a> {
    fn of(record: &'a Record) -> Option<Self> {
        let Plan::Bench(plan) = &record.plan else { return None };
        let result = record.bench.as_deref()?;
        let counts = matches!(record.status, Status::Ok | Status::Partial);
        counts.then_some(Self { record, plan, result })
    }

    /// Length of its frames.
    pub(crate) fn size(&self) -> Size {
        (self.plan.frames.size_bytes, self.plan.frames.mix.clone())
    }

    /// Filters in the device; 0 where the plan does not tell.
    pub(crate) fn filters(&self) -> u32 {
        self.plan.filters.unwrap_or(0)
    }

    /// Whether a rate without loss was looked for.
    pub(crate) fn is_searched(&self) -> bool {
        self.plan.tests.contains(&BenchTest::Throughput)
    }

    /// Highest rate without loss, of one sending port.
    pub(crate) fn max_fps(&self) -> Option<f64> {
        limit::lossless(self.result).and_then(GoalFound::throughput_fps)
    }

    /// The rate of a goal, of one sending port.
    pub(crate) fn goal_fps(&self, name: &str) -> Option<f64> {
        self.result.goal(name).and_then(GoalFound::throughput_fps)
    }

    /// What came out under flood, of one sending port.
    pub(crate) fn flood_fps(&self) -> Option<f64> {
        let senders = words::senders(self.plan) as f64;
        self.result.flood.as_ref().map(|point| point.forwarded_fps / senders)
    }

    /// The tester's own rate, of one port.
    pub(crate) fn tester_fps(&self) -> Option<f64> {
        self.result.tester.as_ref().map(|tester| tester.frames_per_sec)
    }

    /// The latency at the throughput.
    pub(crate) fn latency(&self) -> Option<&BenchLatency> {
        self.result.latency.first()
    }
}

impl<'a> Group<'a> {
    /// The record that came first.
    pub(crate) fn first(&self) -> &Case<'a> {
        self.cases.first().expect("a group begins with a case")
    }

    /// Device, frames, ports: a heading.
    pub(crate) fn title(&self) -> String {
        let plan = self.first().plan;
        let frames = &plan.frames;
        let mut title = format!(
            "{}: {}, {}",
            self.device,
            words::protocol(frames.protocol),
            words::way(plan.way)
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

    /// Lengths, rising; mixes behind the length that is their mean.
    pub(crate) fn sizes(&self) -> Vec<Size> {
        sorted(self.cases.iter().map(Case::size))
    }

    /// Numbers of filters, rising.
    pub(crate) fn filters(&self) -> Vec<u32> {
        sorted(self.cases.iter().map(Case::filters))
    }

    /// The fewest filters: the state that figures without a word on filters are of.
    pub(crate) fn bare(&self) -> u32 {
        self.cases.iter().map(Case::filters).min().unwrap_or(0)
    }

    /// The records of one length in one state.
    pub(crate) fn at(&self, size: &Size, filters: u32) -> impl Iterator<Item = &Case<'a>> {
        let size = size.clone();
        self.cases.iter().filter(move |case| case.size() == size && case.filters() == filters)
    }

    /// The median over repetitions of a figure.
    pub(crate) fn middle(
        &self,
        size: &Size,
        filters: u32,
        of: impl Fn(&Case<'a>) -> Option<f64>,
    ) -> Option<f64> {
        median(&self.at(size, filters).filter_map(of).collect::<Vec<f64>>())
    }

    /// A rate of a length in one state, marked where the tester limited a search for it.
    pub(crate) fn marked(&self, size: &Size, filters: u32, rate: String) -> String {
        let limited = |case: &Case<'_>| {
            let goals = [limit::usual(case.result), limit::lossless(case.result)];
            goals.into_iter().flatten().any(|goal| goal.tester_limited)
        };
        if self.at(size, filters).any(limited) { rate + "*" } else { rate }
    }

    /// What the medium carries of a length, whatever the state.
    pub(crate) fn theoretical_fps(&self, size: &Size) -> Option<f64> {
        self.cases
            .iter()
            .filter(|case| case.size() == *size)
            .find_map(|it| it.result.theoretical_fps)
    }

    /// Whether any length has a theoretical rate.
    pub(crate) fn has_medium(&self) -> bool {
        self.cases.iter().any(|case| case.result.theoretical_fps.is_some())
    }

    /// The most repetitions of one length in one state.
    pub(crate) fn repetitions(&self) -> usize {
        let each = |size: &Size| {
            self.filters().into_iter().map(|filters| self.at(size, filters).count()).max()
        };
        self.sizes().iter().filter_map(each).max().unwrap_or(0)
    }

    /// The protocol's name in Bradner's tables of 1990; `None` of what he did not send. Without
    /// the device's address on the way, frames are bridged.
    pub(crate) fn protocol_1990(&self) -> Option<&'static str> {
        let plan = self.first().plan;
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

/// A device's name outside of a study: what the user called it, else its place, else its ports.
pub(crate) fn plain_name(record: &Record) -> String {
    let place = || record.cell.as_ref().map(|cell| cell.topology.clone());
    record.name.clone().or_else(place).unwrap_or_else(|| match &record.plan {
        Plan::Bench(plan) => {
            let ports: Vec<&str> = plan.ports.iter().map(|it| it.interface.as_str()).collect();
            ports.join(" to ")
        }
        _ => String::new(),
    })
}

/// Words that go with a number of filters.
const FILTER_WORDS: [&str; 5] = ["filter", "filters", "rule", "rules", "with"];

/// A device's name without its number of filters: `router-10`, `router, 10 filters` and
/// `router with 10 rules` are `router`. A number that is not that of the filters stays.
pub(crate) fn device(name: &str, filters: u32) -> String {
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
    let spoken = |at: usize| beside(at + 1) || (at > 0 && beside(at - 1));
    let is_last = |at: usize| at > 0 && at + 1 == tokens.len();
    let found = (0..tokens.len()).rev().find(|&at| {
        is_number(tokens[at].1) && (spoken(at) || (tokens[at].1 == number && is_last(at)))
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
            assert_eq!(device(name, filters), expected, "{name}");
        }
    }
}
