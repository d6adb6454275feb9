//! What stands under the headline of a record where nobody asks for more: what a user of iperf3,
//! iperf or ping looks for, in at most six lines of 80 columns.

use linerate_core::record::{
    Ceiling, Direction, FlowSide, LINK, MetricId, PingPlan, Plan, Record, Stat, TcpPlan, UdpPlan,
};
use linerate_core::time::decimals_of_ms;

use super::{datagrams, streams, trace};
use crate::document::{Block, Fact, ReportTable};
use crate::number::{self, or_dash};
use crate::{ceiling, compare, delay, examination, words};

/// Columns of the labels.
const LABEL: usize = 8;

/// The lines under the headline.
pub(super) fn lines_under_headline(record: &Record) -> Vec<Block> {
    let mut blocks = match &record.plan {
        Plan::Tcp(plan) => vec![Block::Facts(tcp_facts(record, plan))],
        Plan::Udp(plan) if plan.test.search.is_some() => vec![Block::Facts(search(record))],
        Plan::Udp(plan) => vec![Block::Facts(udp_facts(record, plan))],
        Plan::Ping(plan) => ping_blocks(record, plan),
        Plan::Simulate(_) => vec![Block::Facts(simulated(record))],
        Plan::Bench(_) => Vec::new(),
        Plan::Test(_) => return examination::brief_blocks(record),
        Plan::Compare(_) => return compare::brief_blocks(record),
        Plan::Trace(_) => {
            let notes = Block::Facts(notes_count_fact(record).into_iter().collect());
            return trace::brief_blocks(record).into_iter().chain([notes]).collect();
        }
    };
    let bounds = record.ceilings().filter_map(ceiling_source);
    let mut common: Vec<Fact> = bounds.map(|text| Fact::new("ceiling", LABEL, text)).collect();
    common.dedup_by(|one, other| one.says_as(other));
    common.extend(notes_count_fact(record));
    blocks.push(Block::Facts(common));
    blocks
}

/// How much there is to know beside the headline.
pub(crate) fn notes_count_fact(record: &Record) -> Option<Fact> {
    let count = record.caveats.len() as u64;
    let text = format!("{}: -v shows them", words::counted(count, "note"));
    let text = if count == 1 { "1 note: -v shows it".to_owned() } else { text };
    (count > 0).then(|| Fact::new("notes", LABEL, text))
}

/// Where the ceiling comes from, or what is missing for one; nothing on loopback.
fn ceiling_source(ceiling: &Ceiling) -> Option<String> {
    if ceiling.no_link.is_some() {
        return None;
    }
    let Some(value) = ceiling.value else {
        return Some(ceiling::wanting(&ceiling.unknown));
    };
    let inputs = ceiling::in_brackets(&ceiling.inputs);
    let smaller = ceiling.expected().filter(|bound| bound.kind != LINK);
    let smaller = smaller.map(|bound| {
        let name = ceiling::spoken(bound.kind);
        format!("; the {name} allows {}", number::measured_rate(bound.value))
    });
    Some(format!("{}{inputs}{}", number::measured_rate(value), smaller.unwrap_or_default()))
}

fn tcp_facts(record: &Record, plan: &TcpPlan) -> Vec<Fact> {
    let ways = words::each_direction(plan.test.directions);
    let mut facts = Vec::new();
    for &way in ways {
        let again = value_in_direction(record, MetricId::Retransmits, way)
            .map(|count| format!("{} sent again", words::counted(count as u64, "segment")));
        let streams = words::counted(plan.test.streams.into(), "stream");
        let loaded = value_in_direction(record, MetricId::TcpRtt, way)
            .map(|ns| format!("RTT {} ms", number::ms_of_clock(ns, 3)));
        let (streams, loaded) = match ways {
            [_] => (Some(streams), None),
            _ => (None, loaded),
        };
        let parts = [amount(record, way), streams, again, loaded];
        facts.push(direction_fact(ways, way, "received", joined(parts, ", ")));
    }
    facts.push(delays_of_path(record, ways));
    facts.extend(delay::queue_places(record).map(|text| Fact::new("queue", LABEL, text)));
    facts.extend(delay::delays_by_kind(record).map(|text| Fact::new("kinds", LABEL, text)));
    let rpm = delay::responsiveness(record);
    facts.extend(rpm.map(|text| Fact::new("draft", LABEL, text)));
    facts.push(Fact::new("CPU", LABEL, processors(record, ways)));
    without_empty_facts(facts)
}

/// `4.396 GB in 2.00 s`.
fn amount(record: &Record, way: Direction) -> Option<String> {
    let bytes = value_in_direction(record, MetricId::Bytes, way)?;
    let span = value_in_direction(record, MetricId::Span, way);
    let span = span.map_or_else(String::new, |ns| format!(" in {}", number::seconds(ns)));
    Some(format!("{}{span}", number::amount(bytes as u64)))
}

/// Delays of the probes beside the load; without an answer to them, the round trips of TCP's own
/// segments.
fn delays_of_path(record: &Record, ways: &[Direction]) -> Fact {
    match (delay::idle_and_loaded_line(record, None), ways) {
        (Some(text), _) => Fact::new("delay", LABEL, text),
        (None, [way]) => direction_fact(ways, *way, "RTT", round_trip(record, *way)),
        (None, _) => Fact::new("", LABEL, ""),
    }
}

/// Round trips with the path at rest and under this load, and what was in flight.
fn round_trip(record: &Record, way: Direction) -> String {
    let ms = |ns| format!("{} ms", number::ms_of_clock(ns, 3));
    let of = |metric, stat| record.summary_value(metric, stat, Some(way));
    // Records of before 2026-11 have the smallest and the last round trip of the stream alone.
    let idle = of(MetricId::IdleRtt, Stat::Min).map(|ns| format!("idle {}", ms(ns)));
    let least = || of(MetricId::TcpRttMin, Stat::Min).map(|ns| format!("{} at least", ms(ns)));
    let above = [(Stat::P95, 95), (Stat::P99, 99)].into_iter();
    let mut above = above.filter_map(|(stat, share)| Some((of(MetricId::LoadedRtt, stat)?, share)));
    let above =
        above.next().map_or_else(String::new, |(ns, share)| format!(" ({} at {share} %)", ms(ns)));
    let loaded = of(MetricId::LoadedRtt, Stat::P50)
        .or_else(|| value_in_direction(record, MetricId::TcpRtt, way));
    let parts = [
        idle.or_else(least),
        loaded.map(|ns| format!("loaded {}{above}", ms(ns))),
        value_in_direction(record, MetricId::Cwnd, way)
            .map(|bytes| format!("congestion window {}", number::buffer(bytes as u64))),
    ];
    joined(parts, ", ")
}

fn udp_facts(record: &Record, plan: &UdpPlan) -> Vec<Fact> {
    let ways = words::each_direction(plan.test.directions);
    let mut facts = Vec::new();
    for &way in ways {
        let value = |metric| value_in_direction(record, metric, way);
        let count = |metric| or_dash(value(metric), |count| format!("{count:.0}"));
        let (received, sent) = (count(MetricId::DatagramsReceived), count(MetricId::DatagramsSent));
        let of = format!("{received} of {sent} datagrams");
        let reordered = format!("{} reordered", count(MetricId::DatagramsReordered));
        let parts = [amount(record, way), Some(of), Some(reordered)];
        facts.push(direction_fact(ways, way, "received", joined(parts, ", ")));
        let lost = datagrams::losses(record, way).unwrap_or_default();
        facts.push(direction_fact(ways, way, "lost", lost.trim_start_matches("lost: ").to_owned()));
        facts.push(direction_fact(ways, way, "jitter", delays(record, way)));
    }
    facts.push(delays_of_path(record, ways));
    facts.push(match delay::queue_places(record) {
        // There is room for one of the two.
        Some(text) => Fact::new("queue", LABEL, text),
        None => Fact::new("CPU", LABEL, processors(record, ways)),
    });
    without_empty_facts(facts)
}

fn delays(record: &Record, way: Direction) -> String {
    let ms = |ns| format!("{} ms", number::ms_of_clock(ns, 3));
    let pdv = |stat| record.summary_value(MetricId::Pdv, stat, Some(way));
    let above = pdv(Stat::P99)
        .zip(pdv(Stat::Max))
        .map(|(p99, most)| format!("above the least delay: 99 % {}, most {}", ms(p99), ms(most)));
    joined([value_in_direction(record, MetricId::JitterRfc3550, way).map(ms), above], "; ")
}

fn search(record: &Record) -> Vec<Fact> {
    let Some((found, best)) =
        record.search.as_ref().and_then(|search| Some((search, search.best_interval()?)))
    else {
        return Vec::new();
    };
    let at = |ns: u64| number::significant(ns as f64 / 1e9, 3);
    let (start, end) = (best.span.start_ns(), best.span.end_ns());
    let parts = [
        Some(format!("{}-{} s", at(start), at(end))),
        best.loss_ratio.map(|ratio| format!("{} lost", number::percent(ratio))),
        best.delay_range_ns().map(|ns| format!("delay varied by {} ms", span_in_ms(ns))),
        best.rtt_min_ns
            .zip(best.rtt_max_ns)
            .map(|(least, most)| format!("RTT {}-{} ms", span_in_ms(least), span_in_ms(most))),
    ];
    let offered = found.trials.last().map_or_else(String::new, |last| {
        let rate = number::measured_rate(last.offered_bps as f64);
        let congested = found.confirmed_ns.map_or_else(
            || "the path showed no congestion".to_owned(),
            |ns| format!("congestion after {}", number::seconds(ns as f64)),
        );
        format!("{rate} at the end; {congested}")
    });
    let facts = [("best", joined(parts, ", ")), ("offered", offered)];
    let facts = facts.map(|(label, text)| Fact::new(label, LABEL, text));
    let cpu = Fact::new("CPU", LABEL, processors(record, &[found.direction]));
    without_empty_facts(facts.into_iter().chain([cpu]).collect())
}

fn span_in_ms(ns: u64) -> String {
    number::ms_of_clock(ns as f64, 3)
}

/// A median below so many times that of an echo on loopback is made by this host as much as by the
/// path.
const FLOORS: f64 = 3.0;

/// The time that this host adds to a round trip, where it is a good part of a ping's median.
fn calibration(record: &Record, median_ns: Option<f64>) -> Option<String> {
    let end = record.ends.first()?;
    let found = end.calibration.as_ref()?;
    let near = median_ns? < FLOORS * found.floor_ns?;
    near.then(|| words::calibration(found, end.clock_tick_ns))
}

/// The lines that ping prints; for several sizes a table with a column for each.
fn ping_blocks(record: &Record, plan: &PingPlan) -> Vec<Block> {
    let step = record.ends.first().and_then(|end| end.clock_tick_ns).unwrap_or(1.0);
    let ms = |ns| number::ms_of_clock(ns, decimals_of_ms(step));
    let sizes = plan.sizes_bytes.as_slice();
    let at = |metric, stat, size| super::ping_split::value_for_payload(record, metric, stat, size);
    if let [_, _, ..] = sizes {
        let head = sizes.iter().map(ToString::to_string);
        let mut table = ReportTable::new(std::iter::once("bytes".to_owned()).chain(head));
        let rows = [("min ms", Stat::Min), ("avg ms", Stat::Mean), ("max ms", Stat::Max)];
        for (name, stat) in rows {
            let cells = sizes.iter().map(|&size| or_dash(at(MetricId::Rtt, stat, size), ms));
            table.add_measured_row(std::iter::once(name.to_owned()).chain(cells));
        }
        let by_size = super::by_size::BySize::from_record(record, plan);
        let slope = by_size.map(|found| Fact::new("slope", LABEL, found.fit_in_words()));
        let slope = slope.map(|fact| Block::Facts(vec![fact]));
        return [Block::Table(table)].into_iter().chain(slope).collect();
    }
    let Some(&size) = sizes.first() else { return Vec::new() };
    let all = |metric, names: &[(&str, Stat)]| {
        let found = names.iter().filter_map(|(name, stat)| Some((*name, at(metric, *stat, size)?)));
        let (names, values): (Vec<&str>, Vec<String>) =
            found.map(|(name, ns)| (name, ms(ns))).unzip();
        (!names.is_empty()).then(|| format!("{} {} ms", names.join("/"), values.join("/")))
    };
    let spread =
        [("min", Stat::Min), ("avg", Stat::Mean), ("max", Stat::Max), ("stddev", Stat::Stddev)];
    let rate = at(MetricId::Pps, Stat::Value, size);
    let rate = rate.filter(|_| super::ping::has_rates(plan)).map(|pps| format!("{pps:.0} pings/s"));
    let split = super::ping_split::Split::from_record(record, size)
        .map(|split| split.parts_with_shares(ms));
    let facts = [
        ("RTT", joined([all(MetricId::Rtt, &spread), rate], ", ")),
        ("of it", split.unwrap_or_default()),
        ("outages", super::ping::outages(record, size).unwrap_or_default()),
        ("host", calibration(record, at(MetricId::Rtt, Stat::P50, size)).unwrap_or_default()),
    ];
    vec![Block::Facts(without_empty_facts(
        facts.map(|(label, text)| Fact::new(label, LABEL, text)).into(),
    ))]
}

fn simulated(record: &Record) -> Vec<Fact> {
    let count = |metric| {
        value_in_direction(record, metric, Direction::Up).map(|count| format!("{count:.0}"))
    };
    let parts = [
        count(MetricId::SegmentsSent).map(|count| format!("{count} segments sent")),
        count(MetricId::Retransmits).map(|count| format!("{count} sent again")),
        count(MetricId::LossEvents).map(|count| format!("{count} loss events")),
        count(MetricId::Timeouts).map(|count| format!("{count} time-outs")),
    ];
    without_empty_facts(vec![Fact::new("model", LABEL, joined(parts, ", "))])
}

/// Processor time of both ends, of the threads of all streams together.
fn processors(record: &Record, ways: &[Direction]) -> String {
    let [way] = ways else { return of_both_ways(record) };
    let end = |side, cost| {
        let share = number::whole_percent(streams::cpu_cores(record, *way, side)?);
        let cost = value_in_direction(record, cost, *way);
        let cost = cost.map(|s| format!(" ({} s/GB)", number::significant(s, 2)));
        Some((share, cost.unwrap_or_default()))
    };
    let sender = end(FlowSide::Sender, MetricId::CpuSender)
        .map(|(share, cost)| format!("sender {share} of a core{cost}"));
    let of = if sender.is_some() { "" } else { " of a core" };
    let receiver = end(FlowSide::Receiver, MetricId::CpuReceiver)
        .map(|(share, cost)| format!("receiver {share}{of}{cost}"));
    joined([sender, receiver], ", ")
}

/// Each host sends and receives.
fn of_both_ways(record: &Record) -> String {
    let host = |name, [up, down]: [FlowSide; 2]| {
        let up = streams::cpu_cores(record, Direction::Up, up)?;
        let all = up + streams::cpu_cores(record, Direction::Down, down)?;
        Some(format!("{name} {} of a core", number::whole_percent(all)))
    };
    let client = host("client", [FlowSide::Sender, FlowSide::Receiver]);
    joined([client, host("server", [FlowSide::Receiver, FlowSide::Sender])], ", ")
}

/// A metric's row about a direction, whichever statistic an engine sums it up by.
fn value_in_direction(record: &Record, metric: MetricId, way: Direction) -> Option<f64> {
    let stats = [Stat::Value, Stat::Mean, Stat::Max];
    stats.into_iter().find_map(|stat| record.summary_value(metric, stat, Some(way)))
}

/// A fact about a direction, which is named where there are two.
fn direction_fact(ways: &[Direction], way: Direction, label: &str, text: String) -> Fact {
    let arrow = match way {
        _ if ways.len() < 2 || text.is_empty() => "",
        Direction::Up => "up: ",
        Direction::Down => "down: ",
    };
    Fact::new(label, LABEL, format!("{arrow}{text}"))
}

fn joined(parts: impl IntoIterator<Item = Option<String>>, by: &str) -> String {
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<String>>().join(by)
}

/// The facts that say something.
fn without_empty_facts(mut facts: Vec<Fact>) -> Vec<Fact> {
    facts.retain(|fact| !fact.is_empty());
    facts
}
