//! The document of a TCP throughput test: a section a direction, with its streams, processor use
//! and ceiling, and the goodput over time.

use linerate_core::record::{
    Asked, Direction, Flow, FlowEnd, FlowSide, MetricId, Plan, Record, Stat, TcpPlan,
};

use super::goodput;
use super::streams::{self, Column, STREAMS_MAX, flows_in_direction, measured_bps};
use super::tcp_means::direction_lines;
use crate::document::{Block, Document, ReportSection, ReportTable, Tile};
use crate::number::{self, NONE, or_dash};
use crate::{ceiling, words};

/// The metrics that a page defines.
const METRICS: &[MetricId] = &[
    MetricId::Goodput,
    MetricId::Bytes,
    MetricId::Retransmits,
    MetricId::TcpRtt,
    MetricId::Cwnd,
    MetricId::CpuSender,
    MetricId::CpuReceiver,
];

/// The figures of the test.
pub(super) fn document(record: &Record, plan: &TcpPlan) -> Document {
    let mut sections: Vec<ReportSection> = goodput::figure(record).into_iter().collect();
    for &direction in words::each_direction(plan.test.directions) {
        let mut remarks = direction_lines(record, plan, direction);
        remarks.extend(sent_back(record, direction));
        remarks.extend(ceilings(record, direction));
        let processors = Block::Lines(vec![processors(record, direction)]);
        let table = Block::Table(streams_table(record, direction));
        let blocks = [table, processors, Block::Remarks(remarks)];
        sections.push(ReportSection::without_blank_line(words::direction(direction), blocks));
    }
    let background = background(record, plan).map(|line| [Block::Text(line)]);
    sections.extend(background.map(|blocks| ReportSection::without_blank_line("", blocks)));
    Document {
        title: title_line(plan),
        tiles: result_tiles(record, plan),
        sections,
        metrics: METRICS.to_vec(),
        ..Document::default()
    }
}

fn result_tiles(record: &Record, plan: &TcpPlan) -> Vec<Tile> {
    let goodput = |direction| {
        let goodput = record.summary_value(MetricId::Goodput, Stat::Value, Some(direction));
        let way = format!("payload, {}", words::direction(direction));
        let ceiling = ceiling::brief_share(record.ceiling_of(direction));
        Tile::new(or_dash(goodput, number::rate_with_unit), way, ceiling)
    };
    let retransmits = record.summary_value(MetricId::Retransmits, Stat::Value, None);
    let retransmits = or_dash(retransmits, |n| format!("{n:.0}"));
    let ways = words::each_direction(plan.test.directions).iter();
    let goodputs = ways.map(|&direction| goodput(direction));
    goodputs.chain([Tile::new(retransmits, "segments retransmitted", "")]).collect()
}

/// Segments that the receiver sent back, in all and for each data segment; `None` where its kernel
/// does not count them.
fn sent_back(record: &Record, direction: Direction) -> Option<String> {
    let segments = direction_value(record, MetricId::ReturnSegments, direction)?;
    let ratio = direction_value(record, MetricId::ReturnRatio, direction)
        .map(|ratio| format!(", {} per data segment", number::significant(ratio, 3)));
    let segments = words::counted(segments as u64, "segment");
    Some(format!("return traffic: {segments}{}", ratio.unwrap_or_default()))
}

/// The flow against the test's direction, in one line; none without one.
fn background(record: &Record, plan: &TcpPlan) -> Option<String> {
    let flow = record.background.as_ref()?;
    let rate = or_dash(
        direction_value(record, MetricId::Background, flow.direction),
        number::rate_with_unit,
    );
    let asked = plan.test.background.map(|rate| {
        format!(" of {} asked for", number::rate_with_unit(rate.bits_per_sec() as f64))
    });
    let way = words::direction(flow.direction);
    Some(format!("background, {way}: {rate}{}", asked.unwrap_or_default()))
}

/// The one line that says what was asked.
fn title_line(plan: &TcpPlan) -> String {
    let via = plan.server.via.map_or_else(String::new, |via| format!(" via {via}"));
    let mut text = format!(
        "TCP with {} port {}{via}: {}, {}, {}, writes of {}",
        plan.server.host,
        plan.server.port,
        words::directions(plan.test.directions),
        words::counted(plan.test.streams.into(), "stream"),
        words::finish(plan.test.finish),
        number::memory(plan.test.buffer_bytes.into()),
    );
    if let Some(pace) = plan.test.pace {
        let pace = number::rate_with_unit(pace.bits_per_sec() as f64);
        text.push_str(&format!(", paced at {pace} a stream"));
    }
    text
}

/// One row per stream, the slowest and the fastest of many, and the sum of several.
fn streams_table(record: &Record, direction: Direction) -> ReportTable {
    let flows: Vec<&Flow> = flows_in_direction(record, direction).collect();
    let mut named = Vec::new();
    let mut sum = "sum".to_owned();
    if flows.len() > STREAMS_MAX {
        sum = format!("sum of {}", flows.len());
        let rates = flows.iter().filter_map(|flow| Some((goodput(record, flow)?, *flow)));
        let mut rates: Vec<(f64, &Flow)> = rates.collect();
        rates.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        named.extend(rates.first().map(|(_, flow)| ("slowest", *flow)));
        named.extend(rates.last().map(|(_, flow)| ("fastest", *flow)));
    }
    let all = |metric| direction_value(record, metric, direction);
    let bytes = all(MetricId::Bytes).map(|bytes| bytes as u64).or_else(|| {
        let each = flows.iter().map(|flow| Some(flow.receiver.as_ref()?.bytes_measured));
        each.collect::<Option<Vec<u64>>>().filter(|all| !all.is_empty()).map(|b| b.iter().sum())
    });
    let info = |flow: &Flow| flow.sender.as_ref().and_then(|end| end.tcp_info);
    let counted = |flow: &Flow| counting(record, flow).map(|end| end.bytes_measured);
    let rtt = |flow: &Flow| {
        let kernel = || info(flow)?.rtt_us.map(|us| f64::from(us) * 1e3);
        flow_value(record, flow, MetricId::TcpRtt).or_else(kernel)
    };
    let cwnd = |flow: &Flow| {
        let seen = flow_value(record, flow, MetricId::Cwnd).map(|bytes| bytes as u64);
        seen.or_else(|| info(flow)?.cwnd_bytes())
    };
    let sent_again = |flow: &Flow| info(flow).and_then(|info| info.total_retrans);
    let none = || NONE.to_owned();
    let columns: [Column<'_>; 8] = [
        ("stream", &|flow| flow.flow.to_string(), sum),
        ("bytes", &|flow| or_dash(counted(flow), number::amount), or_dash(bytes, number::amount)),
        (
            "goodput",
            &|flow| or_dash(goodput(record, flow), number::measured_rate),
            or_dash(all(MetricId::Goodput), number::measured_rate),
        ),
        (
            "retransmits",
            &|flow| or_dash(sent_again(flow), |n| n.to_string()),
            or_dash(all(MetricId::Retransmits), |n| format!("{n:.0}")),
        ),
        (
            "RTT ms",
            &|flow| or_dash(rtt(flow), number::ms_to_microsecond),
            or_dash(all(MetricId::TcpRtt), number::ms_to_microsecond),
        ),
        (
            "cwnd",
            &|flow| or_dash(cwnd(flow), number::memory),
            or_dash(all(MetricId::Cwnd), |bytes| number::memory(bytes as u64)),
        ),
        ("window asked/set/advertised", &windows, none()),
        ("cc asked/got", &congestion_control, none()),
    ];
    streams::flows_table(&flows, &named, &columns).dropping(&[7, 5, 6, 1])
}

/// A stream's goodput: its summary row, or its count over its span.
fn goodput(record: &Record, flow: &Flow) -> Option<f64> {
    flow_value(record, flow, MetricId::Goodput).or_else(|| measured_bps(counting(record, flow)?))
}

/// The end whose count is the result: the receiver, or the sender where the other end is a program
/// that tells no count.
fn counting<'a>(record: &Record, flow: &'a Flow) -> Option<&'a FlowEnd> {
    let foreign = matches!(&record.plan, Plan::Tcp(plan) if plan.server.via.is_some());
    flow.receiver.as_ref().or_else(|| flow.sender.as_ref().filter(|_| foreign))
}

fn flow_value(record: &Record, flow: &Flow, metric: MetricId) -> Option<f64> {
    let mut rows = record.summary.iter().filter(|row| row.metric == metric);
    rows.find(|row| row.flow == Some(flow.flow) && row.direction == Some(flow.direction))
        .map(|row| row.value)
}

/// The row of a metric about a whole direction; how an engine sums streams up is the metric's
/// business, so any of these statistics will do.
fn direction_value(record: &Record, metric: MetricId, direction: Direction) -> Option<f64> {
    let stats = [Stat::Value, Stat::Mean, Stat::Max];
    stats.into_iter().find_map(|stat| record.summary_value(metric, stat, Some(direction)))
}

/// The receiver's window: SO_RCVBUF asked and set, and the most that it advertised.
fn windows(flow: &Flow) -> String {
    let receiver = flow.receiver.as_ref();
    let asked = receiver.map(|end| &end.rcvbuf_bytes);
    let sender = flow.sender.as_ref();
    let advertised = receiver
        .and_then(|end| end.window_advertised_bytes_max)
        .or_else(|| sender?.window_offered_bytes_max);
    let show = |bytes: Option<u64>| or_dash(bytes, number::memory);
    format!(
        "{}/{}/{}",
        asked.and_then(|window| window.asked).map_or_else(|| "auto".to_owned(), number::memory),
        show(asked.and_then(|window| window.got)),
        show(advertised)
    )
}

fn congestion_control(flow: &Flow) -> String {
    let none = Asked::default();
    let name = flow.sender.as_ref().map_or(&none, |end| &end.congestion_control);
    format!(
        "{}/{}",
        name.asked.as_deref().unwrap_or("default"),
        name.got.as_deref().unwrap_or(NONE)
    )
}

/// Processor time of both ends for one direction, in one line.
pub(super) fn processors(record: &Record, direction: Direction) -> String {
    let value = |metric| direction_value(record, metric, direction);
    let several = flows_in_direction(record, direction).count() > 1;
    let end = |side, cost, share| {
        let cost = or_dash(value(cost), |s| format!("{} s/GB", number::significant(s, 3)));
        let all = streams::cpu_cores(record, direction, side).map(number::whole_percent);
        let busiest = value(share).map(number::whole_percent);
        let share = match (all, busiest) {
            (Some(all), Some(busiest)) if several => {
                format!(" ({all} of a core, busiest thread {busiest})")
            }
            (None, Some(busiest)) if several => format!(" (busiest thread {busiest} of a core)"),
            (all, busiest) => {
                all.or(busiest).map_or_else(String::new, |share| format!(" ({share} of a core)"))
            }
        };
        cost + &share
    };
    format!(
        "CPU: sender {}, receiver {}",
        end(FlowSide::Sender, MetricId::CpuSender, MetricId::CpuShareSender),
        end(FlowSide::Receiver, MetricId::CpuReceiver, MetricId::CpuShareReceiver),
    )
}

/// The ceiling of one direction and its further bounds, one remark each.
pub(super) fn ceilings(record: &Record, direction: Direction) -> Vec<String> {
    let measured = ceiling::measured(record, direction);
    let found = record.ceiling_of(direction);
    found.map(|found| ceiling::remark_lines(found, measured)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{RecordId, Summary, TcpTest, Tool};
    use linerate_core::time::WallTime;
    use linerate_core::units::BitRate;

    use super::*;

    fn record() -> Record {
        let rate = BitRate::from_bits_per_sec(31_000_000);
        let plan = TcpPlan {
            test: TcpTest { background: Some(rate), ..TcpTest::default() },
            ..TcpPlan::default()
        };
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        Record::from_plan(id, tool, Plan::Tcp(plan), WallTime::from_unix_nanos(0))
    }

    #[test]
    fn what_came_back_and_what_went_beside_have_a_line_each_where_they_are_known() {
        let mut record = record();
        let text = crate::record::document(&record).text(None);
        assert!(!text.contains("return traffic") && !text.contains("background"), "{text}");
        let row =
            |metric, value, way| Summary::from_value(metric, Stat::Value, value).in_direction(way);
        record.summary = vec![
            row(MetricId::ReturnSegments, 1234.0, Direction::Up),
            row(MetricId::ReturnRatio, 0.517, Direction::Up),
            row(MetricId::Background, 30_900_000.0, Direction::Down),
        ];
        record.background = Some(Flow {
            flow: 0,
            direction: Direction::Down,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: None,
            receiver: None,
            syn: None,
        });
        let text = crate::record::document(&record).text(None);
        let back = "\n  return traffic: 1234 segments, 0.517 per data segment\n";
        assert!(text.contains(back), "{text}");
        let beside = "\nbackground, server to client: 30.9 Mbit/s of 31 Mbit/s asked for\n";
        assert!(text.contains(beside), "{text}");
    }
}
