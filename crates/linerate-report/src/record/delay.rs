//! Delay under load: what the probes beside a throughput test saw.

use linerate_core::record::{Direction, MetricId, ProbePhase, Probes, Record, Series};

use crate::delay::{
    delays_by_kind, idle_and_loaded_line, probe_kind_name, queue_places, responsiveness,
};
use crate::document::{Block, Fact, ReportFigure, ReportSection};
use crate::svg::{self, DelayChart, ProbeDrawing, Trail};
use crate::words;

/// The metrics that a page defines.
pub(super) const METRICS: [MetricId; 14] = [
    MetricId::DelayIdle,
    MetricId::DelayLoaded,
    MetricId::DelayAdded,
    MetricId::AddedHere,
    MetricId::AddedPath,
    MetricId::AddedThere,
    MetricId::AddedBack,
    MetricId::AddedPeer,
    MetricId::DelayLoss,
    MetricId::Responsiveness,
    MetricId::DelayHandshake,
    MetricId::ResponsivenessNew,
    MetricId::ResponsivenessLoaded,
    MetricId::ResponsivenessDraft,
];

/// The section of a page: the summary, how it was probed, the delay over time.
pub(super) fn section(record: &Record) -> Option<ReportSection> {
    let probes = record.probes.as_ref()?;
    let mut facts = vec![Fact::new("delay", 8, idle_and_loaded_line(record, None)?)];
    facts.extend(queue_places(record).map(|text| Fact::new("queue", 8, text)));
    facts.extend(delays_by_kind(record).map(|text| Fact::new("kinds", 8, text)));
    facts.extend(responsiveness(record).map(|text| Fact::new("draft", 8, text)));
    facts.push(Fact::new("probes", 8, probes_in_words(probes)));
    let figure = over_time_chart(record).map(|chart| {
        let caption = "Each answer at the time of its probe's sending; strokes at the foot are \
                       lost probes. Below, the goodput on the same time axis.";
        Block::Figure(ReportFigure::from_panel("Delay over time", caption, chart.svg()))
    });
    let blocks = [Block::Facts(facts)].into_iter().chain(figure);
    Some(ReportSection::without_blank_line("delay under load", blocks))
}

fn probes_in_words(probes: &Probes) -> String {
    let transport = words::transport(probes.transport);
    let count = |idle| probes.sent_in(|phase| (phase == ProbePhase::Idle) == idle).count();
    let class = probes.dscp.map_or_else(String::new, |dscp| format!(", DSCP {dscp}"));
    format!(
        "{transport} to {}, {} at rest and {} under load, {} of payload{class}",
        probes.target,
        count(true),
        count(false),
        words::counted(probes.payload_bytes.into(), "byte"),
    )
}

/// Delay over time of each kind of probes, over the load of each direction.
fn over_time_chart(record: &Record) -> Option<DelayChart> {
    let all: Vec<&Probes> =
        record.probes.iter().map(AsRef::as_ref).chain(&record.probes_beside).collect();
    let trail = |style: usize, probes: &Probes| {
        let sent = probes.sent_ns.iter().zip(&probes.rtt_ns);
        Trail {
            label: if all.len() == 1 { "delay".to_owned() } else { probe_kind_name(probes) },
            style: STYLES[style % STYLES.len()],
            probes: sent.map(|(&sent, rtt)| (sent as f64 / 1e9, *rtt)).collect(),
        }
    };
    let count: usize = all.iter().map(|probes| probes.sent_ns.len()).sum();
    let chart = DelayChart {
        title: "Round trip of each probe, and the load".to_owned(),
        description: format!("{count} probes"),
        since: "the load began",
        trails: all.iter().enumerate().map(|(style, probes)| trail(style, probes)).collect(),
        shown: ProbeDrawing::Probes,
        load: load_series(record),
    };
    chart.has_any().then_some(chart)
}

/// Colours of probes: not that of lost ones, nor those of the load.
const STYLES: [usize; 4] = [0, 3, 4, 5];

/// Goodput of each direction, all streams together.
fn load_series(record: &Record) -> Vec<svg::ChartSeries> {
    let goodput = |series: &&Series| series.metric == MetricId::Goodput;
    let all: Vec<&Series> = record.series.iter().filter(goodput).collect();
    let is_sum = |series: &&&Series| series.flow.is_none();
    let sums: Vec<&Series> = all.iter().filter(is_sum).copied().collect();
    // A test of one stream has no sum, nor has one from a browser.
    let shown = if sums.is_empty() { all } else { sums };
    let ways = [None, Some(Direction::Down), Some(Direction::Up)];
    let of = |way: Option<Direction>| {
        let mut streams: Vec<&Series> =
            shown.iter().copied().filter(|series| series.direction == way).collect();
        // Both ends may tell of one stream.
        let side = streams.first().and_then(|series| series.side);
        streams.retain(|series| series.side == side);
        let (name, style) = match way {
            Some(Direction::Down) => ("load down", 6),
            Some(Direction::Up) => ("load up", 2),
            None => ("load", 2),
        };
        (!streams.is_empty()).then(|| svg::ChartSeries::new(name, style, added_up(&streams)))
    };
    ways.into_iter().filter_map(of).collect()
}

/// Streams of one direction as one curve of steps: a value is that of the interval which ends at
/// its time, and a stream that has none there adds nothing; where none has any there is a gap.
fn added_up(streams: &[&Series]) -> Vec<(f64, f64)> {
    let mut ends: Vec<u64> =
        streams.iter().flat_map(|series| series.t_ns.iter().copied()).collect();
    ends.sort_unstable();
    ends.dedup();
    let value = |series: &&Series, end: u64| {
        let at = series.t_ns.partition_point(|t| *t < end);
        series.values.get(at).copied().flatten()
    };
    let sum = |end: u64| {
        let found = streams.iter().filter_map(|series| value(series, end));
        found.reduce(|all, one| all + one).unwrap_or(f64::NAN)
    };
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let steps = begins.zip(&ends);
    steps.flat_map(|(begin, &end)| [begin, end].map(|t| (t as f64 / 1e9, sum(end)))).collect()
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{PingTransport, Plan, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record::from_plan(id, tool, Plan::Tcp(TcpPlan::default()), at)
    }

    #[test]
    fn streams_of_a_direction_are_one_curve_of_their_sum() {
        let mut record = record();
        let stream = |flow: u16, t_ns: Vec<u64>, values: Vec<Option<f64>>| Series {
            metric: MetricId::Goodput,
            direction: Some(Direction::Up),
            flow: Some(flow),
            side: None,
            payload_bytes: None,
            t_ns,
            values,
        };
        let s = 1_000_000_000;
        record.series = vec![
            stream(0, vec![s, 2 * s], vec![Some(3.0), Some(5.0)]),
            stream(1, vec![s, 2 * s, 3 * s], vec![Some(4.0), None, Some(7.0)]),
        ];
        let curves = load_series(&record);
        assert_eq!(curves.len(), 1, "one name in the legend");
        let points = [(0.0, 7.0), (1.0, 7.0), (1.0, 5.0), (2.0, 5.0), (2.0, 7.0), (3.0, 7.0)];
        assert_eq!(curves[0].points, points);
    }

    #[test]
    fn probes_that_nobody_answered_say_why() {
        let mut record = record();
        let silent = "none of 20 probes by UDP echo to 192.0.2.1:5210 was answered";
        record.probes = Some(Box::new(Probes {
            silent: Some(silent.to_owned()),
            sent_ns: vec![-5],
            rtt_ns: vec![None],
            ..Probes::new(PingTransport::Udp, "192.0.2.1:5210".to_owned(), 40)
        }));
        assert_eq!(idle_and_loaded_line(&record, None).as_deref(), Some(silent));
        let text = crate::record::document(&record).text(None);
        assert!(text.contains(silent), "{text}");
    }
}
