//! The page of one result: a TCP or UDP test with its intervals, a ping with its distribution.

use linerate_core::record::{
    Ceiling, Direction, Distribution, LINK, MetricId, PingMode, PingPlan, Plan, Record, Series,
    Stat, TcpDirections, TcpPlan, UdpPlan,
};

use super::page;
use crate::escape::xml;
use crate::number::{self, or_dash};
use crate::svg::{self, Axis, Kind, LineChart};
use crate::table::Table;
use crate::{ceiling, text, words};

/// Points of a distribution's curve at most; more than a screen can tell apart is left out.
const CURVE_POINTS: usize = 400;

/// One result as one self-contained HTML file.
pub fn record(record: &Record) -> String {
    let (title, tiles, body, metrics) = match &record.plan {
        Plan::Tcp(plan) => {
            let metrics = TCP_METRICS.to_vec();
            (text::tcp_title(plan), tcp_tiles(record, plan), tcp_body(record, plan), metrics)
        }
        Plan::Udp(plan) => {
            let metrics = UDP_METRICS.to_vec();
            (text::udp_title(plan), udp_tiles(record, plan), udp_body(record, plan), metrics)
        }
        Plan::Ping(plan) => (
            text::ping_title(plan),
            ping_tiles(record, plan),
            ping_body(record, plan),
            ping_metrics(plan),
        ),
        Plan::Bench(plan) => (
            text::bench_title(plan),
            super::bench::tiles(record),
            super::bench::body(record, plan),
            super::bench::METRICS.to_vec(),
        ),
        Plan::Simulate(plan) => (
            text::simulate_title(plan),
            super::simulated::tiles(record),
            super::simulated::body(record, plan),
            super::simulated::METRICS.to_vec(),
        ),
    };
    let mut out = page::title(&title);
    out.push_str(&page::leads(&facts(record)));
    let (own, others) = words::caveats(record);
    let lines = |caveats: Vec<&linerate_core::record::Caveat>| -> Vec<String> {
        caveats.into_iter().map(ToString::to_string).collect()
    };
    if !own.is_empty() {
        out.push_str("<h2>This host was the limit</h2>\n");
        out.push_str(&page::list(&lines(own)));
    }
    out.push_str(&page::headline(&tiles, &text::sentence(record)));
    if let Some(failure) = &record.failure {
        out.push_str(&format!(
            "<p><strong>Not all was measured:</strong> {}</p>\n",
            xml(&failure.to_string())
        ));
    }
    out.push_str(&body);
    if !others.is_empty() {
        out.push_str("<h2>What to know before believing the numbers</h2>\n");
        out.push_str(&page::list(&lines(others)));
    }
    out.push_str("<h2>How it was measured</h2>\n");
    out.push_str(&page::methods(&metrics));
    out.push_str(&page::plan_echo(&record.plan));
    let tool = &record.tool;
    out.push_str(&format!(
        "<footer>{} {}, record {}</footer>\n",
        xml(&tool.name),
        xml(&tool.version),
        record.id
    ));
    page::page(&title, &out)
}

const TCP_METRICS: &[MetricId] = &[
    MetricId::Goodput,
    MetricId::Bytes,
    MetricId::Retransmits,
    MetricId::TcpRtt,
    MetricId::Cwnd,
    MetricId::CpuSender,
    MetricId::CpuReceiver,
];

const UDP_METRICS: &[MetricId] = &[
    MetricId::IpCapacity,
    MetricId::Goodput,
    MetricId::DatagramsSent,
    MetricId::DatagramsReceived,
    MetricId::DatagramsLost,
    MetricId::DatagramLossRatio,
    MetricId::DatagramsLostHere,
    MetricId::DatagramsDroppedAtSender,
    MetricId::DatagramDuplicates,
    MetricId::DatagramsReordered,
    MetricId::JitterRfc3550,
    MetricId::Pdv,
    MetricId::BusiestMs,
];

const PING_METRICS: &[MetricId] = &[
    MetricId::Rtt,
    MetricId::RttKernel,
    MetricId::Pps,
    MetricId::PpsPaper,
    MetricId::LossRatio,
    MetricId::Duplicates,
    MetricId::Reordered,
    MetricId::Late,
];

/// The metrics that the page of a ping shows.
fn ping_metrics(plan: &PingPlan) -> Vec<MetricId> {
    let rate = |metric: &MetricId| matches!(metric, MetricId::Pps | MetricId::PpsPaper);
    PING_METRICS.iter().copied().filter(|metric| rates_tell(plan) || !rate(metric)).collect()
}

fn facts(record: &Record) -> Vec<String> {
    let span = number::seconds(record.duration_ns as f64);
    let mut out = vec![format!("started {}, took {span}", record.started_at)];
    out.extend(record.name.as_ref().map(|name| format!("name: {name}")));
    let ends = record.ends.iter().map(|end| (end, words::end(end)));
    out.extend(
        ends.filter(|(_, about)| !about.is_empty())
            .map(|(end, about)| format!("{}: {about}", end.role)),
    );
    out
}

fn tcp_tiles(record: &Record, plan: &TcpPlan) -> Vec<[String; 3]> {
    let mut tiles = Vec::new();
    for &direction in words::each_direction(plan.directions) {
        let goodput = record.value(MetricId::Goodput, Stat::Value, Some(direction));
        let ceiling = ceiling::brief(record.ceiling_of(direction));
        let way = format!("payload, {}", words::direction(direction));
        tiles.push([or_dash(goodput, number::rate), way, ceiling]);
    }
    let retransmits = record.value(MetricId::Retransmits, Stat::Value, None);
    tiles.push([
        or_dash(retransmits, |n| format!("{n:.0}")),
        "segments retransmitted".to_owned(),
        String::new(),
    ]);
    tiles
}

fn udp_tiles(record: &Record, plan: &UdpPlan) -> Vec<[String; 3]> {
    let mut tiles = Vec::new();
    for &direction in words::each_direction(plan.directions) {
        let value = |metric| record.value(metric, Stat::Value, Some(direction));
        let way = words::direction(direction);
        let mut ceiling = ceiling::brief(record.ceiling_of(direction));
        if plan.search.is_some() {
            let capacity = or_dash(value(MetricId::IpCapacity), number::rate);
            let ceiling = std::mem::take(&mut ceiling);
            tiles.push([capacity, format!("most IP packets, {way}"), ceiling]);
        }
        let goodput = or_dash(value(MetricId::Goodput), number::rate);
        tiles.push([goodput, format!("payload, {way}"), ceiling]);
        let sent = or_dash(value(MetricId::DatagramsSent), |n| format!("of {n:.0} sent"));
        let loss = or_dash(value(MetricId::DatagramLossRatio), number::percent);
        tiles.push([loss, format!("lost, {way}"), sent]);
    }
    tiles
}

fn udp_body(record: &Record, plan: &UdpPlan) -> String {
    let mut out = String::new();
    if let Some(found) = &record.search {
        out.push_str("<h2>The search</h2>\n<figure><div class=\"panels\">\n");
        out.push_str(&text::search_chart(record, found).svg().inline());
        out.push_str("</div></figure>\n");
        out.push_str(&text::search_table(found).html());
    }
    out + &body(record, plan.directions, |direction| text::udp_table(record, direction))
}

fn tcp_body(record: &Record, plan: &TcpPlan) -> String {
    body(record, plan.directions, |direction| text::tcp_table(record, direction))
}

fn body(record: &Record, directions: TcpDirections, table: impl Fn(Direction) -> Table) -> String {
    let mut out = String::new();
    if let Some(chart) = interval_chart(record) {
        out.push_str("<h2>Goodput over time</h2>\n<figure><div class=\"panels\">\n");
        out.push_str(&chart.svg().inline());
        out.push_str("</div></figure>\n");
    }
    out.push_str("<h2>Streams</h2>\n");
    for &direction in words::each_direction(directions) {
        out.push_str(&format!("<h3>{}</h3>\n", words::direction(direction)));
        out.push_str(&table(direction).html());
        out.push_str(&format!("<p>{}</p>\n", xml(text::tcp_processors(record, direction).trim())));
        out.push_str(&page::list(&text::tcp_ceilings(record, direction)));
    }
    out
}

/// Goodput of each interval; the streams one by one where no sum was kept, and the ceiling.
fn interval_chart(record: &Record) -> Option<LineChart> {
    let goodput = |series: &&Series| series.metric == MetricId::Goodput;
    let all: Vec<&Series> = record.series.iter().filter(goodput).collect();
    let sums: Vec<&Series> = all.iter().copied().filter(|series| series.flow.is_none()).collect();
    let shown = if sums.is_empty() { all } else { sums };
    let mut curves: Vec<svg::Series> = shown
        .iter()
        .enumerate()
        .map(|(style, series)| svg::Series {
            label: series_name(series),
            style,
            points: points(series),
            rings: vec![],
            dashed: false,
            steps: false,
        })
        .collect();
    let ends = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let last = ends.reduce(f64::max)?;
    let highest = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let highest = highest.fold(0.0, f64::max);
    curves.extend(bounds(record, highest).into_iter().map(|(label, style, value)| svg::Series {
        label,
        style,
        points: vec![(0.0, value), (last, value)],
        rings: vec![],
        dashed: true,
        steps: false,
    }));
    Some(LineChart {
        title: "Goodput of each interval".to_owned(),
        description: format!(
            "{} curves over {} seconds",
            curves.len(),
            number::significant(last, 3)
        ),
        x: Axis::plain("seconds since the start", Kind::Linear, number::short),
        y: Axis::plain("goodput", Kind::Linear, number::rate),
        series: curves,
        room: 0.0,
    })
}

/// Lines across the chart: each direction's ceiling, and its smallest bound where that is another
/// one and near enough to leave the curves their room.
fn bounds(record: &Record, highest: f64) -> Vec<(String, usize, f64)> {
    let goodput = |ceiling: &&Ceiling| ceiling.metric == MetricId::Goodput;
    let all: Vec<&Ceiling> = record.ceilings().filter(goodput).collect();
    let mut out = Vec::new();
    for (index, ceiling) in all.iter().enumerate() {
        let way = match ceiling.direction.filter(|_| all.len() > 1) {
            Some(Direction::Up) => " up",
            Some(Direction::Down) => " down",
            None => "",
        };
        let style = 5 + index;
        out.extend(ceiling.value.map(|value| (format!("ceiling{way}"), style, value)));
        let bound = ceiling.expected().filter(|bound| bound.kind != LINK);
        out.extend(
            bound
                .filter(|bound| bound.value <= 2.0 * highest)
                .map(|bound| (format!("{}{way}", ceiling::spoken(bound.kind)), style, bound.value)),
        );
    }
    out
}

fn series_name(series: &Series) -> String {
    let way = match series.direction {
        Some(Direction::Up) => "up",
        Some(Direction::Down) => "down",
        None => "goodput",
    };
    series.flow.map_or_else(|| way.to_owned(), |flow| format!("{way} {flow}"))
}

/// Seconds and values; a missing sample has no value and leaves a gap.
fn points(series: &Series) -> Vec<(f64, f64)> {
    let pairs = series.t_ns.iter().zip(&series.values);
    pairs.map(|(&t, &value)| (t as f64 / 1e9, value.unwrap_or(f64::NAN))).collect()
}

fn ping_tiles(record: &Record, plan: &PingPlan) -> Vec<[String; 3]> {
    let Some(&size) = plan.sizes_bytes.first() else { return Vec::new() };
    let value = |metric, stat| text::ping_value(record, metric, stat, size);
    let ms = |stat| or_dash(value(MetricId::Rtt, stat), |ns| format!("{} ms", number::ms(ns)));
    let of = |what: &str| format!("{what}, {size} bytes");
    let mut tiles = vec![
        [ms(Stat::P50), of("median round trip"), format!("smallest {}", ms(Stat::Min))],
        [ms(Stat::P99), of("99 % are below"), format!("largest {}", ms(Stat::Max))],
    ];
    if rates_tell(plan) {
        let pps = or_dash(value(MetricId::Pps, Stat::Value), |n| format!("{n:.0}/s"));
        tiles.push([pps, of("pings per second"), String::new()]);
    }
    tiles.push([
        or_dash(value(MetricId::LossRatio, Stat::Value), number::percent),
        of("lost"),
        or_dash(value(MetricId::Sent, Stat::Value), |n| format!("of {n:.0} sent")),
    ]);
    tiles
}

/// Whether pings per second tell of the path: a paced ping's are those that were asked for.
fn rates_tell(plan: &PingPlan) -> bool {
    plan.mode != PingMode::Paced
}

fn ping_body(record: &Record, plan: &PingPlan) -> String {
    let mut out = String::new();
    if let Some(chart) = distribution_chart(record) {
        out.push_str("<h2>Distribution of round-trip times</h2>\n<figure><div class=\"panels\">\n");
        out.push_str(&chart.svg().inline());
        out.push_str(
            "</div><figcaption>Share of the probes that were answered within a time. Lost probes \
             are not in it.</figcaption></figure>\n",
        );
    }
    out.push_str("<h2>Figures by size</h2>\n");
    out.push_str(&ping_table(record, plan).html());
    out
}

fn ping_table(record: &Record, plan: &PingPlan) -> Table {
    let stats = [
        ("min", Stat::Min),
        ("avg", Stat::Mean),
        ("max", Stat::Max),
        ("stddev", Stat::Stddev),
        ("p50", Stat::P50),
        ("p90", Stat::P90),
        ("p99", Stat::P99),
        ("p99.9", Stat::P999),
    ];
    let head = stats.iter().map(|(name, _)| format!("{name} ms"));
    let head = std::iter::once("size".to_owned()).chain(head);
    let rates: &[&str] = if rates_tell(plan) { &["pps", "1000/avg"] } else { &[] };
    let tail = rates.iter().chain(&["loss"]).map(|name| (*name).to_owned());
    let mut table = Table::new(head.chain(tail));
    for &size in &plan.sizes_bytes {
        let value = |metric, stat| text::ping_value(record, metric, stat, size);
        let mut row = vec![size.to_string()];
        row.extend(stats.iter().map(|(_, stat)| or_dash(value(MetricId::Rtt, *stat), number::ms)));
        let whole = |n: f64| format!("{n:.0}");
        if rates_tell(plan) {
            row.push(or_dash(value(MetricId::Pps, Stat::Value), whole));
            row.push(or_dash(text::ping_from_average(record, size), |n| whole(n.trunc())));
        }
        row.push(or_dash(value(MetricId::LossRatio, Stat::Value), number::percent));
        table.row(row);
    }
    table
}

/// The distribution function of the round-trip times of each size.
fn distribution_chart(record: &Record) -> Option<LineChart> {
    let rtt = |it: &&Distribution| it.metric == MetricId::Rtt;
    let curves: Vec<svg::Series> = record
        .distributions
        .iter()
        .filter(rtt)
        .enumerate()
        .map(|(style, distribution)| svg::Series {
            label: distribution
                .payload_bytes
                .map_or_else(|| "rtt".to_owned(), |b| format!("{b} bytes")),
            style,
            points: cumulated(distribution),
            rings: vec![],
            dashed: false,
            steps: true,
        })
        .filter(|curve| !curve.points.is_empty())
        .collect();
    (!curves.is_empty()).then(|| LineChart {
        title: "Share of answers within a time".to_owned(),
        description: "Cumulative distribution of round-trip times by payload size".to_owned(),
        x: Axis::plain("round-trip time, ms", Kind::Log, number::short_time),
        y: Axis {
            domain: Some((0.0, 100.0)),
            ..Axis::plain("% of answers", Kind::Linear, number::short)
        },
        series: curves,
        room: 0.0,
    })
}

/// Milliseconds and the share of values up to there, in percent.
fn cumulated(distribution: &Distribution) -> Vec<(f64, f64)> {
    let total: u64 = distribution.counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
    let pairs = distribution.values.iter().zip(&distribution.counts);
    let mut below = 0u64;
    let all: Vec<(f64, f64)> = pairs
        .map(|(&ns, &count)| {
            below = below.saturating_add(count);
            (ns as f64 / 1e6, below as f64 * 100.0 / total.max(1) as f64)
        })
        .collect();
    let every = all.len().div_ceil(CURVE_POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    kept.map(|(_, point)| *point).collect()
}
