//! A trace: a row for each hop, with all routers where flows part, and what follows of it.

use linerate_core::record::{
    Direction, Finding, Hop, HopNode, MetricId, Record, TracePhase, TracePlan, TraceProbes,
    TraceResult,
};
use linerate_core::stats::median;
use linerate_core::trace::round_trips;

use crate::document::{Align, Block, Document, Fact, ReportFigure, ReportSection, ReportTable};
use crate::number::{self, or_dash};
use crate::svg::{Axis, ChartSeries, LineChart};
use crate::words::{counted, listed};

/// Columns of the labels.
const LABEL: usize = 8;

/// Ticks of the axis of hops at the most.
const HOP_TICKS: u8 = 16;

/// The blocks that stand under the headline in the brief report.
pub(super) fn brief_blocks(record: &Record) -> Vec<Block> {
    record.trace.iter().flat_map(|trace| blocks(trace)).collect()
}

/// Hops and what follows, and the same of the way back where the target traced it.
fn blocks(trace: &TraceResult) -> Vec<Block> {
    let mut blocks = vec![Block::Table(hop_table(trace)), Block::Facts(finding_facts(trace))];
    if let Some(back) = &trace.back {
        let found = if back.reached { "" } else { ", which does not arrive here" };
        let hops = counted(back.hops.len() as u64, "hop");
        blocks.push(Block::Text(format!("The way back, as the target traced it: {hops}{found}")));
        blocks.push(Block::Table(hop_table(back)));
        let facts: Vec<Fact> = finding_facts(back);
        if !facts.is_empty() {
            blocks.push(Block::Facts(facts));
        }
    }
    blocks
}

/// The whole page of a trace.
pub(super) fn document(record: &Record, plan: &TracePlan) -> Document {
    let sections = record.trace.iter().map(|trace| {
        let caption = "Median round trip to each hop that answers.";
        let figure = ReportFigure::from_panel("Round trip by hop", caption, rtt_chart(trace).svg());
        let figure = (trace.hops.len() > 1).then_some(Block::Figure(figure));
        ReportSection::after_blank_line("Hops", blocks(trace).into_iter().chain(figure))
    });
    let probes = match plan.probes {
        TraceProbes::Udp => format!("UDP to port {}, each flow from a port of its own", plan.port),
        TraceProbes::Icmp => "ICMP echo".to_owned(),
        TraceProbes::Tcp => format!("TCP to port {}, each flow from a port of its own", plan.port),
    };
    let head = format!("{probes}, {}", counted(plan.count.into(), "round"));
    Document {
        title: format!("Trace to {}", plan.host),
        head: vec![Block::Lines(vec![head])],
        sections: sections.collect(),
        metrics: vec![MetricId::Rtt, MetricId::LossRatio],
        ..Document::default()
    }
}

/// True for findings that are printed before all others: loops, losses, queues, and an MTU limit
/// that no router reported.
pub(crate) const fn is_trouble(finding: &Finding) -> bool {
    match finding {
        Finding::Loop { .. }
        | Finding::Loss { .. }
        | Finding::FlowLoss { .. }
        | Finding::Queue { .. } => true,
        Finding::Mtu(limit) => !limit.reported,
        _ => false,
    }
}

/// A finding in words.
pub(crate) fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Loss { after, at, ratio, low, high, .. } => format!(
            "{} lost {} ({} to {})",
            number::percent(*ratio),
            between(*after, *at),
            number::percent(*low),
            number::percent(*high)
        ),
        Finding::FlowLoss { after, at, flows, of, routers, ratio, low, high, .. } => format!(
            "{} of {of} flows{} lose {} {} ({} to {})",
            flows.len(),
            through(routers),
            number::percent(*ratio),
            between(*after, *at),
            number::percent(*low),
            number::percent(*high)
        ),
        Finding::Loop { at, address } => {
            format!("packets go round: {address} of hop {at} comes again and again")
        }
        Finding::Queue { after, at, rise_ns, direction } => {
            let ms = number::short_time(rise_ns / 1e6);
            format!("queue of {ms} ms {}", queue_place(*after, *at, *direction))
        }
        Finding::Mtu(limit) if limit.reported => format!(
            "packets above {} bytes do not go on {}",
            limit.bytes,
            between(limit.after, limit.at)
        ),
        Finding::Mtu(limit) => {
            format!("packets above {} bytes vanish {}", limit.bytes, between(limit.after, limit.at))
        }
        Finding::Dscp { after, at, from, to } => {
            format!("DSCP {from} becomes {to} {}", between(*after, *at))
        }
        Finding::Ecn { after, at, from, to } => {
            format!(
                "ECN {} becomes {} {}",
                ecn_field_name(*from),
                ecn_field_name(*to),
                between(*after, *at)
            )
        }
        Finding::Translated { after, at } => {
            format!("addresses or ports are changed {}", between(*after, *at))
        }
        Finding::Spread { after, at, width, until } => {
            let from = if *after == 0 { "this host".to_owned() } else { format!("hop {after}") };
            let until = until.map_or_else(
                || "to the end".to_owned(),
                |until| format!("and meet again at hop {until}"),
            );
            format!("flows part after {from} over {width} routers at hop {at}, {until}")
        }
        Finding::RateLimited { at, per_second, sent, answered } => match per_second {
            Some(rate) => {
                format!("hop {at} answers at most {}/s: not loss", number::significant(*rate, 2))
            }
            None => format!("hop {at} answers {answered} of {sent}, later hops more: not loss"),
        },
    }
}

/// Routers that only these flows pass.
fn through(routers: &[String]) -> String {
    if routers.is_empty() { String::new() } else { format!(", those through {},", listed(routers)) }
}

fn between(after: u8, at: u8) -> String {
    match after {
        0 => format!("between this host and hop {at}"),
        _ => format!("between hop {after} and hop {at}"),
    }
}

/// Where a queue stands: before the link between two hops, at the one that sends into it.
fn queue_place(after: u8, at: u8, direction: Direction) -> String {
    match (direction, after) {
        (Direction::Up, 0) => format!("in the first hop (this host's uplink, towards hop {at})"),
        (Direction::Up, _) => format!("at hop {after}, towards hop {at}"),
        (Direction::Down, 0) => {
            format!("in the first hop on the way back (at hop {at}, this host's downlink)")
        }
        (Direction::Down, _) => format!("on the way back, at hop {at}, towards hop {after}"),
    }
}

/// Names of RFC 3168 §5.
const fn ecn_field_name(field: u8) -> &'static str {
    match field {
        0 => "not-ECT",
        1 => "ECT(1)",
        2 => "ECT(0)",
        _ => "CE",
    }
}

fn hop_table(trace: &TraceResult) -> ReportTable {
    let loaded = has_load(trace);
    let ms = number::ms_to_microsecond;
    let mut columns = vec![
        ("hop", Align::Right),
        ("router", Align::Left),
        ("answers", Align::Right),
        ("RTT ms", Align::Right),
    ];
    columns.push(if loaded { ("loaded ms", Align::Right) } else { ("adds ms", Align::Right) });
    columns.push(("", Align::Left));
    let mut table = ReportTable::from_columns(columns);
    for hop in &trace.hops {
        let typical = |phase| median(&round_trips(&hop.samples, phase));
        let last = match loaded {
            true => typical(TracePhase::Loaded),
            false => hop.added.map(|added| added.median_ns),
        };
        let rtt = or_dash(typical(TracePhase::Idle), ms);
        let last = last.map_or_else(String::new, ms);
        let mut nodes = hop.nodes.iter().enumerate();
        let first = nodes.next().map_or_else(|| "*".to_owned(), |(_, node)| name(hop, 0, node));
        let remark = remark(hop, hop.nodes.first());
        table.add_measured_row([hop.ttl.to_string(), first, answers(hop), rtt, last, remark]);
        for (index, node) in nodes {
            let blank = String::new;
            let row = [blank(), name(hop, index, node), blank(), blank(), blank()];
            table.add_measured_row(row.into_iter().chain([self::remark(hop, Some(node))]));
        }
    }
    table
}

/// Round trips by hop, without load and under it.
fn rtt_chart(trace: &TraceResult) -> LineChart {
    let of = |phase| {
        let median_of = |hop: &Hop| median(&round_trips(&hop.samples, phase));
        let points = trace.hops.iter().filter_map(|hop| Some((hop, median_of(hop)?)));
        points.map(|(hop, ns)| (f64::from(hop.ttl), ns / 1e6)).collect::<Vec<_>>()
    };
    let mut series = vec![ChartSeries::new("at rest", 0, of(TracePhase::Idle))];
    if has_load(trace) {
        series.push(ChartSeries::new("under load", 1, of(TracePhase::Loaded)));
    }
    let y = Axis::linear("round trip, ms", number::short_time);
    LineChart::new(
        "Median to each hop",
        "Median round trip to each hop.",
        [hop_axis(trace), y],
        series,
    )
}

/// One tick a hop, of many every second, fifth or tenth.
fn hop_axis(trace: &TraceResult) -> Axis {
    let last = trace.hops.iter().map(|hop| hop.ttl).max().unwrap_or(1).max(1);
    let step = [1, 2, 5].into_iter().find(|step| last / step <= HOP_TICKS).unwrap_or(10);
    let ticks = (1..=last).filter(|hop| *hop == 1 || hop % step == 0);
    let ticks = ticks.map(|hop| (f64::from(hop), hop.to_string())).collect();
    let domain = Some((1.0, f64::from(last)));
    Axis { ticks, domain, ..Axis::linear("hop", number::short_count) }
}

/// A router's address, with the shape of a diamond where flows part.
fn name(hop: &Hop, index: usize, node: &HopNode) -> String {
    let shape = match (hop.nodes.len(), index) {
        (1, _) => "",
        (_, 0) => "\u{250c} ",
        (all, index) if index + 1 == all => "\u{2514} ",
        _ => "\u{251c} ",
    };
    format!("{shape}{}", node.address)
}

/// Answers among probes of the rounds without load.
fn answers(hop: &Hop) -> String {
    let rounds = hop.samples.iter().filter(|sample| sample.phase == TracePhase::Idle);
    let answered = rounds.clone().filter(|sample| sample.rtt_ns.is_some()).count();
    format!("{answered}/{}", rounds.count())
}

/// Further facts about a router: its share of the flows, MPLS labels, a smaller MTU.
fn remark(hop: &Hop, node: Option<&HopNode>) -> String {
    let Some(node) = node else { return String::new() };
    let mut parts = Vec::new();
    if hop.nodes.len() > 1 {
        parts.push(counted(node.flows.len() as u64, "flow"));
    }
    if !node.labels.is_empty() {
        let labels = node.labels.iter().map(|label| label.label.to_string());
        parts.push(format!("MPLS {}", listed(&labels.collect::<Vec<_>>())));
    }
    parts.join(", ")
}

fn has_load(trace: &TraceResult) -> bool {
    let mut samples = trace.hops.iter().flat_map(|hop| &hop.samples);
    samples.any(|sample| sample.phase == TracePhase::Loaded)
}

fn finding_facts(trace: &TraceResult) -> Vec<Fact> {
    let fact = |label: &'static str, text: String| Fact::new(label, LABEL, text);
    let mut facts = Vec::new();
    for finding in &trace.findings {
        let label = match finding {
            Finding::Loop { .. } => "loop",
            Finding::Loss { .. } | Finding::FlowLoss { .. } => "loss",
            Finding::Queue { .. } => "queue",
            Finding::Mtu(_) => "size",
            Finding::Dscp { .. } | Finding::Ecn { .. } => "marks",
            Finding::Translated { .. } => "NAT",
            Finding::Spread { .. } => "paths",
            Finding::RateLimited { .. } => continue,
        };
        facts.push(fact(label, sentence(finding)));
        facts.extend(ports_of(trace, finding).map(|text| fact(label, text).indented()));
    }
    facts.extend(limited(trace).map(|text| fact("limits", text)));
    let goes = trace.mtu_bytes.filter(|_| trace.size_limits.is_empty());
    facts.extend(
        goes.map(|bytes| fact("size", format!("packets of {bytes} bytes come to the end"))),
    );
    if !trace.reads_quotes {
        let text = "changed headers are not read: that takes CAP_NET_RAW (run as root)";
        facts.push(fact("marks", text.to_owned()));
    }
    if let Some(reason) = &trace.back_refused {
        facts.push(fact("back", format!("the target does not trace the way back: {reason}")));
    }
    facts
}

/// The ports that the flows of a loss leave from, by which it can be seen again.
fn ports_of(trace: &TraceResult, finding: &Finding) -> Option<String> {
    let Finding::FlowLoss { flows, .. } = finding else { return None };
    let port = |flow: &u16| trace.flow_ports.get(usize::from(*flow));
    let ports: Vec<String> = flows.iter().filter_map(port).map(u16::to_string).collect();
    (!ports.is_empty()).then(|| format!("they leave from {}", listed(&ports)))
}

/// Routers that limit their answers, in one line: those alike together.
fn limited(trace: &TraceResult) -> Option<String> {
    let all: Vec<&Finding> = trace
        .findings
        .iter()
        .filter(|finding| matches!(finding, Finding::RateLimited { .. }))
        .collect();
    if let [one] = all[..] {
        return Some(sentence(one));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut groups: Vec<(String, Vec<u8>)> = Vec::new();
    for finding in all {
        match finding {
            Finding::RateLimited { at, per_second: Some(rate), .. } => {
                let rate = format!("at most {}/s", number::significant(*rate, 1));
                match groups.iter_mut().find(|(known, _)| *known == rate) {
                    Some((_, hops)) => hops.push(*at),
                    None => groups.push((rate, vec![*at])),
                }
            }
            Finding::RateLimited { at, sent, answered, .. } => {
                parts.push(format!("hop {at} answered {answered} of {sent}"));
            }
            _ => {}
        }
    }
    let groups = groups.iter().map(|(rate, hops)| format!("{} {rate}", answering(hops)));
    let parts: Vec<String> = groups.chain(parts).collect();
    (!parts.is_empty()).then(|| format!("{}: not loss", parts.join("; ")))
}

/// `hops 1 to 3, 5 answer` of numbers in order.
fn answering(hops: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for &hop in hops {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == hop => *last = hop,
            _ => runs.push((hop, hop)),
        }
    }
    let words = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    });
    let words: Vec<String> = words.collect();
    match hops.len() {
        1 => format!("hop {} answers", words.join(", ")),
        _ => format!("hops {} answer", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        HopSample, MplsLabel, Plan, RecordId, SizeLimit, Stat, Summary, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;
    use crate::headline::Headline;

    fn hop_node(address: &str, flows: u16, label: Option<u32>) -> HopNode {
        let labels = label.map(|label| MplsLabel { label, traffic_class: 0, ttl: 1 });
        let labels = labels.into_iter().collect();
        HopNode { address: address.to_owned(), flows: (0..flows).collect(), labels }
    }

    fn sample_hop(ttl: u8, nodes: Vec<HopNode>) -> Hop {
        let sample = |at_ns| HopSample {
            at_ns,
            rtt_ns: Some(1_000_000 * u64::from(ttl)),
            phase: TracePhase::Idle,
            ..HopSample::default()
        };
        Hop { ttl, nodes, samples: (0..4).map(sample).collect(), ..Hop::default() }
    }

    fn record(findings: Vec<Finding>) -> Record {
        let plan = TracePlan { host: "far".to_owned(), ..TracePlan::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let at = WallTime::from_unix_nanos(0);
        let mut record = Record::from_plan(id, tool, Plan::Trace(plan), at);
        let row = |metric, stat, value| Summary::from_value(metric, stat, value);
        record.summary = vec![
            row(MetricId::Rtt, Stat::P50, 3e6),
            row(MetricId::Sent, Stat::Value, 4.0),
            row(MetricId::Received, Stat::Value, 4.0),
        ];
        let mut hops = vec![
            sample_hop(1, vec![hop_node("10.0.1.1", 6, None)]),
            sample_hop(2, vec![hop_node("10.0.2.1", 5, Some(16)), hop_node("10.0.2.2", 6, None)]),
            sample_hop(3, vec![hop_node("10.0.3.1", 1, None)]),
        ];
        hops[2].is_end = true;
        let trace = TraceResult {
            reached: true,
            hops,
            findings,
            reads_quotes: true,
            ..TraceResult::default()
        };
        record.trace = Some(Box::new(trace));
        record
    }

    #[test]
    fn a_clean_path_is_hops_and_round_trip() {
        let clean = record(Vec::new());
        let line = Headline::from_record(&clean).summary_line();
        assert!(line.starts_with("3 hops to far, RTT 3.000 ms, no loss \u{b7} good"), "{line}");
        let text = crate::record::document(&clean).text(None);
        for part in ["\u{250c} 10.0.2.1", "\u{2514} 10.0.2.2", "5 flows, MPLS 16", "4/4"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_answer_is_what_is_wrong_and_where() {
        let black_hole = SizeLimit { after: 1, at: 2, bytes: 1400, reported: false };
        let loss =
            Finding::Loss { after: 0, at: 1, ratio: 0.01, low: 0.005, high: 0.02, sent: 1000 };
        let rise_ns = 2e7;
        let queue = Finding::Queue { after: 2, at: 3, rise_ns, direction: Direction::Up };
        let line = Headline::from_record(&record(vec![loss, queue, Finding::Mtu(black_hole)]))
            .summary_line();
        for part in [
            "1.00 % lost between this host and hop 1 (0.500 % to 2.00 %)",
            "queue of 20 ms at hop 2, towards hop 3",
            "packets above 1400 bytes vanish between hop 1 and hop 2",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("no loss"), "{line}");
    }

    #[test]
    fn flows_that_lose_are_named_with_their_router_and_ports() {
        let flows = Finding::FlowLoss {
            after: 1,
            at: 2,
            flows: vec![1, 3],
            of: 4,
            routers: vec!["10.0.2.2".to_owned()],
            ratio: 0.05,
            low: 0.04,
            high: 0.06,
            sent: 1000,
        };
        let mut record = record(vec![flows]);
        record.trace.as_mut().expect("it has one").flow_ports =
            vec![40_000, 40_001, 40_002, 40_003];
        let line = Headline::from_record(&record).summary_line();
        let expected = "2 of 4 flows, those through 10.0.2.2, lose 5.00 % between hop 1 and hop 2 \
                        (4.00 % to 6.00 %)";
        assert!(line.starts_with(expected), "{line}");
        let text = crate::record::document(&record).text(None);
        assert!(text.contains("they leave from 40001 and 40003"), "{text}");
    }

    #[test]
    fn the_way_back_stands_beside_the_way_there() {
        let mut there = record(Vec::new());
        let loss =
            Finding::Loss { after: 1, at: 2, ratio: 0.01, low: 0.005, high: 0.02, sent: 1000 };
        let mut back = record(vec![loss]).trace.expect("it has one");
        back.hops[0].nodes[0].address = "10.9.9.9".to_owned();
        there.trace.as_mut().expect("it has one").back = Some(back);
        let line = Headline::from_record(&there).summary_line();
        for part in ["on the way back 1.00 % lost between hop 1 and hop 2", "3 hops back"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let text = crate::record::document(&there).text(None);
        for part in ["The way back, as the target traced it: 3 hops", "10.9.9.9"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn routers_that_limit_alike_stand_together() {
        let limit = |at, per_second| Finding::RateLimited { at, per_second, sent: 9, answered: 7 };
        let all = [1, 2, 3, 5].map(|at| limit(at, Some(1.04)));
        let all = all.into_iter().chain([limit(6, Some(10.0)), limit(7, None)]);
        let text = crate::record::document(&record(all.collect())).text(None);
        let expected = "hops 1 to 3, 5 answer at most 1/s; hop 6 answers at most 10/s; \
                        hop 7 answered 7 of 9: not loss";
        assert!(text.contains(expected), "{text}");
    }
}
