//! What limited a result, by the evidence that its record has.
//!
//! In this order: a full link, a kept pace or a window that explains the rate; where datagrams were
//! lost; a host that was busy; what the sender's kernel waited for; queue and loss of the path.
//! Nothing is guessed: without evidence the limit is not known.

use std::fmt;

use linerate_core::record::{
    BenchPlan, CaveatCode, Ceiling, Direction, Expected, FlowEnd, LINK, MetricId, Plan, Record,
    SHARE_MAX, Side, Stat, UdpPlan, dropped_at_interface,
};

use super::result::directions;
use crate::device::limit::{self as device, Limit as DeviceLimit};
use crate::{ceiling, number, words};

/// What a result is the measure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The host that ran the test, or both ends on it.
    ThisHost,
    /// The host at the other end.
    OtherEnd,
    /// A link of the path: it was full.
    Link,
    /// The path, by losses or by its queue, while none of its links is known to be full.
    Path,
    /// The device under test.
    Device,
    /// A window or a buffer of TCP.
    Window,
    /// The rate that was asked for.
    Pace,
    /// The length of the test.
    Time,
    /// No evidence says.
    NotKnown,
    /// Nothing limits what was measured: it is no rate.
    Nothing,
}

impl LimitedBy {
    /// Whether a host is the limit: that is said before the number.
    pub const fn is_host(self) -> bool {
        matches!(self, Self::ThisHost | Self::OtherEnd)
    }

    /// The key in JSON and CSV.
    pub const fn key(self) -> &'static str {
        match self {
            Self::ThisHost => "this_host",
            Self::OtherEnd => "other_end",
            Self::Link => "link",
            Self::Path => "path",
            Self::Device => "device",
            Self::Window => "window",
            Self::Pace => "pace",
            Self::Time => "time",
            Self::NotKnown => "not_known",
            Self::Nothing => "nothing",
        }
    }
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ThisHost => "this host",
            Self::OtherEnd => "the other end",
            Self::Link => "the link",
            Self::Path => "the path",
            Self::Device => "the device",
            Self::Window => "the window",
            Self::Pace => "the pace",
            Self::Time => "the length of the test",
            Self::NotKnown => "what is not known",
            Self::Nothing => "nothing",
        })
    }
}

/// What limited a result, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What limited it.
    pub by: LimitedBy,
    /// What shows it, in words; may be empty.
    pub evidence: String,
    /// The direction that it limited, where the other one has another limit.
    pub way: Option<Direction>,
    /// That other limit.
    pub other: Option<Box<Self>>,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = self.way.map_or("", words::way);
        let space = if way.is_empty() { "" } else { " " };
        match (self.by, self.evidence.as_str()) {
            (LimitedBy::NotKnown, _) if way.is_empty() => f.write_str("limit not known"),
            (LimitedBy::NotKnown, _) => write!(f, "{way}: limit not known"),
            (by, "") => write!(f, "{way}{space}limited by {by}"),
            (by, evidence) => write!(f, "{way}{space}limited by {by}: {evidence}"),
        }
    }
}

impl Limit {
    /// A limit with its evidence.
    pub fn new(by: LimitedBy, evidence: impl Into<String>) -> Self {
        Self { by, evidence: evidence.into(), way: None, other: None }
    }

    /// Whether both are the same thing, whatever their figures and directions.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let named = |limit: &Self| limit.evidence.split(", ").next().map(str::to_owned);
        self.by == other.by && (self.by.is_host() || named(self) == named(other))
    }

    /// How much a reader has to know it: a host as the limit first of all.
    pub(super) const fn weight(&self) -> u8 {
        match self.by {
            LimitedBy::ThisHost | LimitedBy::OtherEnd => 2,
            LimitedBy::NotKnown | LimitedBy::Nothing => 0,
            _ => 1,
        }
    }
}

/// A link counts as full from this share of its ceiling on: TCP's own recovery and the ends of the
/// measured span take the rest.
pub(crate) const FULL_FROM: f64 = 0.95;
/// A pace or a window explains a rate from this share of what it allows on.
const EXPLAINS_FROM: f64 = 0.9;
/// The kernel counts what a sender waits for; from this share of its busy time on it is the limit.
const WAITS_FROM: f64 = 0.5;
/// From this share of segments or datagrams lost on, loss shapes the rate.
const LOSSY_FROM: f64 = 1e-3;
/// A loaded round trip of so many times the idle one, and so much above it, is a queue.
const QUEUE_TIMES: f64 = 2.0;
const QUEUE_NS: f64 = 2e6;

/// What limited a record's result.
pub(super) fn of(record: &Record) -> Limit {
    match &record.plan {
        Plan::Ping(_) => of_ping(record),
        Plan::Bench(plan) => of_device(record, plan),
        // Its parts have limits, each its own.
        Plan::Test(_) | Plan::Compare(_) | Plan::Trace(_) => Limit::new(LimitedBy::Nothing, ""),
        Plan::Udp(plan) if plan.test.search.is_some() => of_search(record),
        Plan::Tcp(_) | Plan::Udp(_) | Plan::Simulate(_) => {
            let each = directions(&record.plan).iter().map(|&way| of_direction(record, way));
            // Of both directions that which a reader must know first.
            let worst = each.rev().max_by_key(Limit::weight);
            worst.unwrap_or_else(|| Limit::new(LimitedBy::Nothing, ""))
        }
    }
}

/// Most of a round trip that passed in this host says little of the path.
fn of_ping(record: &Record) -> Limit {
    let mean = |metric| {
        let mut rows = record.summary.iter();
        rows.find(|row| row.metric == metric && row.stat == Stat::Mean).map(|row| row.value)
    };
    let (all, kernel) = (mean(MetricId::Rtt), mean(MetricId::RttKernel));
    let own = all.zip(kernel).map(|(all, kernel)| 1.0 - kernel / all);
    let evidence = own
        .filter(|share| *share >= WAITS_FROM)
        .map_or_else(String::new, |share| format!("{:.0} % of it within this host", share * 100.0));
    Limit::new(LimitedBy::Nothing, evidence)
}

fn of_device(record: &Record, plan: &BenchPlan) -> Limit {
    let limit = record.bench.as_deref().and_then(device::limit);
    Limit::new(
        match limit {
            Some(DeviceLimit::Tester) => LimitedBy::ThisHost,
            Some(DeviceLimit::Medium) => LimitedBy::Link,
            Some(DeviceLimit::Stalls | DeviceLimit::Device) => LimitedBy::Device,
            None => LimitedBy::Nothing,
        },
        device::evidence(record, plan),
    )
}

fn of_search(record: &Record) -> Limit {
    let has = |code| record.caveats.iter().find(|caveat| caveat.code == code);
    let Some(found) = record.search.as_ref().filter(|found| found.best().is_some()) else {
        return Limit::new(LimitedBy::NotKnown, "");
    };
    let full = record.ceiling_of(found.direction).and_then(full_link);
    if let Some(limit) = full {
        return limit;
    }
    if let Some(caveat) = has(CaveatCode::PaceNotKept) {
        let by = whose(record, found.direction, Side::Sender);
        return Limit::new(by, caveat.detail.clone());
    }
    let unfinished = has(CaveatCode::SearchUnfinished);
    match unfinished {
        Some(_) => Limit::new(LimitedBy::Time, "the rate was still rising"),
        None if found.confirmed_ns.is_some() => {
            Limit::new(LimitedBy::Path, "more was lost or delayed")
        }
        None => Limit::new(LimitedBy::Pace, "the highest rate allowed passed"),
    }
}

fn of_direction(record: &Record, way: Direction) -> Limit {
    let ceiling = record.ceiling_of(way);
    let limit = ceiling
        .and_then(|ceiling| full_link(ceiling).or_else(|| explained(record, ceiling, way)))
        .or_else(|| lost_datagrams(record, way))
        .or_else(|| busy_host(record, way))
        .or_else(|| waited(record, way))
        // Loss beside a standing queue is that queue's.
        .or_else(|| queue(record, way))
        .or_else(|| lossy_path(record, way))
        .or_else(|| no_path(record, ceiling));
    let measured = record.value(MetricId::Goodput, Stat::Value, Some(way)).is_some();
    let none = if measured { LimitedBy::NotKnown } else { LimitedBy::Nothing };
    limit.unwrap_or_else(|| Limit::new(none, ""))
}

fn full_link(ceiling: &Ceiling) -> Option<Limit> {
    let share = ceiling.share.filter(|share| *share >= FULL_FROM)?;
    let evidence =
        if share > SHARE_MAX { "more than it allows was measured" } else { "it is full" };
    Some(Limit::new(LimitedBy::Link, evidence))
}

/// The pace or the window that allows hardly more than was measured.
fn explained(record: &Record, ceiling: &Ceiling, way: Direction) -> Option<Limit> {
    let bound = ceiling.expected().filter(|bound| bound.kind != LINK && bound.value > 0.0)?;
    let share = ceiling::measured(record, way)? / bound.value;
    if !(EXPLAINS_FROM..=SHARE_MAX).contains(&share) {
        return None;
    }
    let Expected { kind, value } = bound;
    let rate = number::measured_rate(value);
    let rung = ceiling.rungs.iter().find(|rung| rung.kind == kind)?;
    let input = |name: &str| rung.inputs.iter().find(|input| input.name == name);
    Some(match (kind, input("window_bytes").or_else(|| input("send_buffer_bytes"))) {
        ("application", _) => Limit::new(LimitedBy::Pace, format!("{rate} asked for")),
        (kind, size) => {
            let size = size.map_or_else(String::new, |size| {
                format!(" of {}", number::memory(size.value as u64))
            });
            let name = ceiling::spoken(kind);
            Limit::new(LimitedBy::Window, format!("a {name}{size} allows {rate}"))
        }
    })
}

/// Where most of the lost datagrams were lost.
fn lost_datagrams(record: &Record, way: Direction) -> Option<Limit> {
    let Plan::Udp(plan) = &record.plan else { return None };
    let value = |metric| record.value(metric, Stat::Value, Some(way)).unwrap_or(0.0);
    let (lost, ratio) = (value(MetricId::DatagramsLost), value(MetricId::DatagramLossRatio));
    if ratio < LOSSY_FROM {
        return unpaced(record, plan, way);
    }
    let here = value(MetricId::DatagramsLostHere);
    let flows = record.flows.iter().filter(|flow| flow.direction == way);
    let dropped = dropped_at_interface(flows).unwrap_or(0) as f64;
    Some(if here * 2.0 > lost {
        let by = whose(record, way, Side::Receiver);
        Limit::new(by, format!("{here:.0} of {lost:.0} lost at the receiver's own socket"))
    } else if dropped * 2.0 > lost {
        let by = whose(record, way, Side::Sender);
        Limit::new(by, format!("{dropped:.0} of {lost:.0} lost at the sender's own interface"))
    } else {
        Limit::new(LimitedBy::Path, "it lost datagrams")
    })
}

/// A sender without a pace of which hardly anything is lost is the limit itself.
fn unpaced(record: &Record, plan: &UdpPlan, way: Direction) -> Option<Limit> {
    let arrived = record.value(MetricId::DatagramLossRatio, Stat::Value, Some(way)).is_some();
    (plan.test.pace.is_none() && arrived)
        .then(|| Limit::new(whose(record, way, Side::Sender), "the sender sends no faster"))
}

/// The end at which a data thread had no core left, or waited for one.
fn busy_host(record: &Record, way: Direction) -> Option<Limit> {
    let has = |code| record.caveats.iter().find(|caveat| caveat.code == code);
    let share = |side, of: fn(&FlowEnd) -> Option<u64>| {
        let flows = record.flows.iter().filter(|flow| flow.direction == way);
        let ends = flows.filter_map(move |flow| match side {
            Side::Sender => flow.sender.as_ref(),
            Side::Receiver => flow.receiver.as_ref(),
        });
        let shares = ends.filter_map(|end| {
            let span = end.span_start_ns + end.span_ns;
            (span > 0).then_some(of(end)? as f64 / span as f64)
        });
        shares.reduce(f64::max)
    };
    let worst = |of: fn(&FlowEnd) -> Option<u64>| {
        let each = [Side::Sender, Side::Receiver].into_iter();
        let each = each.filter_map(|side| Some((side, share(side, of)?)));
        each.max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let caveat = has(CaveatCode::CpuBound).or_else(|| has(CaveatCode::RunQueueWait))?;
    let used: fn(&FlowEnd) -> Option<u64> = |end| Some(end.cpu_user_ns? + end.cpu_system_ns?);
    let waited: fn(&FlowEnd) -> Option<u64> = |end| end.run_queue_wait_ns;
    let (of, verb, what) = match caveat.code {
        CaveatCode::CpuBound => (used, "used", "of a core"),
        _ => (waited, "waited", "for a core"),
    };
    // Another program's end has the engine's words alone.
    let Some((side, share)) = worst(of) else {
        return Some(Limit::new(LimitedBy::ThisHost, caveat.detail.clone()));
    };
    let end = match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
    };
    let evidence = format!("{end} {verb} {:.0} % {what}", share * 100.0);
    Some(Limit::new(whose(record, way, side), evidence))
}

/// What the sender's kernel says that it waited for.
fn waited(record: &Record, way: Direction) -> Option<Limit> {
    let flows = record.flows.iter().filter(|flow| flow.direction == way);
    let infos = flows.filter_map(|flow| flow.sender.as_ref()?.tcp_info);
    let times = infos.filter_map(|info| {
        Some([info.busy_time_us?, info.rwnd_limited_us?, info.sndbuf_limited_us?])
    });
    let [busy, window, buffer] =
        times.fold([0; 3], |sum, each| [sum[0] + each[0], sum[1] + each[1], sum[2] + each[2]]);
    let (held, what) = match window >= buffer {
        true => (window, "the receiver's window"),
        false => (buffer, "its send buffer"),
    };
    let share = held as f64 / busy.max(1) as f64;
    (share >= WAITS_FROM).then(|| {
        let evidence = format!("the sender waited {:.0} % of the time for {what}", share * 100.0);
        Limit::new(LimitedBy::Window, evidence)
    })
}

fn lossy_path(record: &Record, way: Direction) -> Option<Limit> {
    let ratio = record.value(MetricId::RetransmitRatio, Stat::Value, Some(way))?;
    let lossy = ratio >= LOSSY_FROM;
    lossy.then(|| {
        let share = number::percent(ratio);
        Limit::new(LimitedBy::Path, format!("{share} of the segments were sent again"))
    })
}

/// A round trip that grew under load: the sender fills a queue faster than the path empties it.
fn queue(record: &Record, way: Direction) -> Option<Limit> {
    let (idle, loaded) = round_trips(record, way).filter(|_| has_queue(record, way))?;
    let (idle, loaded) = (number::ms_of_clock(idle, 3), number::ms_of_clock(loaded, 3));
    let evidence = format!("its queue: RTT {loaded} ms, {idle} ms at the least");
    Some(Limit::new(LimitedBy::Path, evidence))
}

/// Whether a queue stood under load.
pub(super) fn has_queue(record: &Record, way: Direction) -> bool {
    round_trips(record, way)
        .is_some_and(|(idle, loaded)| loaded >= QUEUE_TIMES * idle && loaded - idle >= QUEUE_NS)
}

/// The round trip at rest and under load: TCP's own, else that of the probes beside the load.
fn round_trips(record: &Record, way: Direction) -> Option<(f64, f64)> {
    let stats = [Stat::Value, Stat::Mean, Stat::Max];
    let loaded = stats.into_iter().find_map(|it| record.value(MetricId::TcpRtt, it, Some(way)));
    let idle = record.value(MetricId::TcpRttMin, Stat::Min, Some(way));
    idle.zip(loaded).or_else(|| {
        let loaded = record.value(MetricId::DelayLoaded, Stat::P50, Some(way))?;
        Some((record.value(MetricId::DelayIdle, Stat::P50, None)?, loaded))
    })
}

/// Between two ends on one host there is no path.
fn no_path(record: &Record, ceiling: Option<&Ceiling>) -> Option<Limit> {
    let measured = record.value(MetricId::Goodput, Stat::Value, None).is_some();
    let alone = ceiling.is_some_and(|ceiling| ceiling.no_link.is_some());
    (measured && alone).then(|| Limit::new(LimitedBy::ThisHost, "both ends run on it"))
}

/// The host of an end of a direction.
fn whose(record: &Record, way: Direction, side: Side) -> LimitedBy {
    let one_host = record.caveats.iter().any(|caveat| caveat.code == CaveatCode::SameHost);
    match (way, side) {
        _ if one_host => LimitedBy::ThisHost,
        (Direction::Up, Side::Sender) | (Direction::Down, Side::Receiver) => LimitedBy::ThisHost,
        (Direction::Up, Side::Receiver) | (Direction::Down, Side::Sender) => LimitedBy::OtherEnd,
    }
}
