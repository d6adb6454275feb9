//! Two results side by side, metric by metric: how much the second differs from the first, which
//! is better by the metric table, and whether the difference is more than their own spread.
//!
//! The spread of a figure is the larger of the two sample standard deviations of what it is the
//! mean of: the intervals of a goodput, the probes of a round trip. Counts, shares and delays
//! without samples have a noise of their own (`noise`); a difference counts beyond
//! that alone. Limit and trust are those that were decided about each record. Left out:
//! repetitions; their intervals of confidence are a study's.

mod noise;

use linerate_core::record::{Better, Direction, MetricId, Record, Series, Stat, Summary};
use serde::Serialize;

use crate::document::{Block, Document, Fact, ReportSection, ReportTable};
use crate::headline::{Headline, LimitText, LimitedBy};
use crate::number::{self, NONE, or_dash};
use crate::{Align, csv, words};

/// One figure of the comparison: its value in both records, with their difference and verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDifference {
    /// The metric that both values are of.
    pub metric: MetricId,
    /// The statistic: the value itself, mean, percentile and so on.
    pub stat: Stat,
    /// Direction of the data, where either record has figures of both directions.
    pub direction: Option<Direction>,
    /// Payload length of a ping, for metrics that are kept for each length.
    pub payload_bytes: Option<u32>,
    /// Unit of the values.
    pub unit: &'static str,
    /// Value in the first record; null where the record has none.
    pub first: Option<f64>,
    /// Value in the second record; null where the record has none.
    pub second: Option<f64>,
    /// Second value divided by the first, less 1; null where one is absent or the first is 0.
    pub change_ratio: Option<f64>,
    /// The larger sample standard deviation of the two records' samples; null where there are none.
    pub spread: Option<f64>,
    /// The difference that two runs of the same measurement may have; null where either value is
    /// absent.
    pub noise: Option<f64>,
    /// `better`, `worse`, `same`, `inside the spread`, or null where the metric has no better
    /// direction.
    pub verdict: Option<&'static str>,
}

impl MetricDifference {
    const fn is_shared(&self) -> bool {
        self.first.is_some() && self.second.is_some()
    }

    /// True if the two values differ by more than their noise.
    fn counts(&self) -> bool {
        let apart = self.first.zip(self.second).map(|(one, other)| (other - one).abs());
        apart.zip(self.noise).is_some_and(|(apart, noise)| apart > noise)
    }

    fn is_telling(&self) -> bool {
        TELLING.contains(&(self.metric, self.stat))
    }
}

/// Every figure of a whole record, not of single flows, that either record has, in the order of the
/// first record's summary.
pub fn differences(first: &Record, second: &Record) -> Vec<MetricDifference> {
    let whole = |row: &&Summary| row.flow.is_none();
    // Two tests of one direction each are compared though these differ; the plans say so.
    let one_way = [first, second].iter().all(|record| direction_count(record) < 2);
    let way = |row: &Summary| row.direction.filter(|_| !one_way);
    let place = |row: &Summary| (row.metric, row.stat, way(row), row.payload_bytes);
    let mut rows: Vec<&Summary> = first.summary.iter().filter(whole).collect();
    for row in second.summary.iter().filter(whole) {
        if !rows.iter().any(|known| place(known) == place(row)) {
            rows.push(row);
        }
    }
    let value = |record: &Record, row: &Summary| {
        let mut all = record.summary.iter().filter(whole);
        all.find(|known| place(known) == place(row)).map(|known| known.value)
    };
    rows.into_iter()
        .map(|row| {
            let (one, other) = (value(first, row), value(second, row));
            let spreads = [spread(first, row), spread(second, row)].into_iter().flatten();
            let spread = spreads.reduce(f64::max);
            let pair = one.zip(other);
            let noise = pair.map(|pair| {
                spread.unwrap_or_else(|| noise::noise_between_runs([first, second], row, pair))
            });
            MetricDifference {
                metric: row.metric,
                stat: row.stat,
                direction: way(row),
                payload_bytes: row.payload_bytes,
                unit: row.metric.table_row().unit,
                first: one,
                second: other,
                change_ratio: one
                    .zip(other)
                    .filter(|(one, _)| *one != 0.0)
                    .map(|(one, other)| other / one - 1.0),
                spread,
                noise,
                verdict: pair.and_then(|(first, second)| {
                    verdict(row.metric.table_row().better, first, second, noise)
                }),
            }
        })
        .collect()
}

/// Number of directions that a record has figures of: 0, 1 or 2.
fn direction_count(record: &Record) -> usize {
    let has = |way: &&Direction| record.summary.iter().any(|row| row.direction == Some(**way));
    [Direction::Up, Direction::Down].iter().filter(has).count()
}

fn verdict(better: Better, first: f64, second: f64, noise: Option<f64>) -> Option<&'static str> {
    let is_better = match better {
        Better::Higher => second > first,
        Better::Lower => second < first,
        Better::Neither => return None,
    };
    Some(match is_better {
        _ if first == second => "same",
        _ if noise.is_some_and(|noise| (second - first).abs() <= noise) => "inside the spread",
        true => "better",
        false => "worse",
    })
}

/// The sample standard deviation of the samples whose mean a figure is.
fn spread(record: &Record, row: &Summary) -> Option<f64> {
    if !matches!(row.stat, Stat::Value | Stat::Mean) {
        return None;
    }
    let same = |summary: &&Summary| {
        summary.metric == row.metric
            && summary.stat == Stat::Stddev
            && summary.payload_bytes == row.payload_bytes
    };
    let deviation_row = record.summary.iter().find(same).map(|summary| summary.value);
    deviation_row.or_else(|| {
        let is_same_metric =
            |series: &&Series| series.metric == row.metric && series.direction == row.direction;
        let mut all = record.series.iter().filter(is_same_metric);
        // The sum of several streams, else the only stream.
        let series = all.clone().find(|series| series.flow.is_none()).or_else(|| {
            let one = all.next()?;
            all.next().is_none().then_some(one)
        })?;
        deviation(&series.values.iter().filter_map(|value| *value).collect::<Vec<_>>())
    })
}

fn deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt())
}

/// A comparison as text: the main figure in one line, the fields in which the plans differ, the
/// figures of both records. The long form adds caveats and the figures that one record alone has.
pub fn document(first: &Record, second: &Record) -> Document {
    let both = [("first", first), ("second", second)];
    let failed = both.iter().filter_map(|(name, record)| {
        let failure = record.failure.as_ref()?;
        Some(format!("{name} did not end well: {failure}"))
    });
    let rows = differences(first, second);
    let (shared, alone) = figures(&rows, |_| true);
    let (counting, _) = figures(&rows, |row| row.counts() || row.is_telling());
    let left_out = remarks(&rows);
    let (asked, none) = (plan_differences(first, second), Vec::new());
    let facts: Vec<Fact> =
        both.iter().map(|(name, record)| Fact::new(*name, 6, record_line(record))).collect();
    let table = (!counting.is_empty()).then_some(Block::Table(counting));
    let brief = [Block::Facts(facts.clone())].into_iter();
    let brief = brief.chain(asked.iter().flat_map(|section| {
        let title = Block::Lines(vec![section.title.clone()]);
        [title].into_iter().chain(section.blocks.clone())
    }));
    Document {
        headline: Some(headline(first, second)),
        brief: brief.chain(table).chain([Block::Remarks(left_out)]).collect(),
        head: vec![Block::Facts(facts)],
        limits: both
            .iter()
            .flat_map(|(name, record)| caveats(name, record, true))
            .chain(failed)
            .collect(),
        sections: asked
            .into_iter()
            .chain([ReportSection::from_tables("", [shared], Vec::new())])
            .chain(
                (!alone.is_empty())
                    .then(|| ReportSection::from_tables("Figures of one alone", [alone], none)),
            )
            .collect(),
        notes: both.iter().flat_map(|(name, record)| caveats(name, record, false)).collect(),
        ..Document::default()
    }
}

/// The number of figures that the brief table leaves out, as one remark.
fn remarks(rows: &[MetricDifference]) -> Vec<String> {
    let shared = rows.iter().filter(|row| row.is_shared());
    let even = shared.filter(|row| !row.counts() && !row.is_telling()).count();
    let alone = rows.iter().filter(|row| !row.is_shared()).count();
    let even = (even > 0).then(|| format!("{even} more do not differ by more than their noise"));
    let alone = (alone > 0).then(|| format!("{alone} more that one alone has"));
    let parts: Vec<String> = even.into_iter().chain(alone).collect();
    if parts.is_empty() { parts } else { vec![format!("{}: -v shows them", parts.join(", "))] }
}

/// One record in a line: kind, other end, direction, start, name, identifier, limit and trust.
fn record_line(record: &Record) -> String {
    let line = crate::history::HistoryLine::from_record(record);
    let answer = Headline::from_record(record).limit_and_trust();
    let named = line.name.map(|name| format!(", named {name}")).unwrap_or_default();
    let to = line.to.map(|to| format!(" {to}")).unwrap_or_default();
    let way = line.direction.map(|way| format!(" {way}")).unwrap_or_default();
    let at = line.started_at.get(..19).unwrap_or_default().replace('T', " ");
    let id = crate::headline::short_id(&line.id);
    format!("{}{to}{way}, {at} UTC{named}, {id}: {answer}", line.kind)
}

/// The caveats about what the host disturbed, or all others; each begins with the record's name.
fn caveats(name: &str, record: &Record, is_host: bool) -> Vec<String> {
    let (spoilt, others) = words::caveats(record);
    let all = if is_host { spoilt } else { others };
    all.into_iter().map(|caveat| format!("{name}: {caveat}")).collect()
}

/// Main figures of a record, the first of them that both records have makes the headline.
const TELLING: [(MetricId, Stat); 8] = [
    (MetricId::IpCapacity, Stat::Value),
    (MetricId::Goodput, Stat::Value),
    (MetricId::Rtt, Stat::Mean),
    (MetricId::ThroughputStrict, Stat::Value),
    (MetricId::ThroughputTypical, Stat::Value),
    (MetricId::ThroughputVerified, Stat::Value),
    (MetricId::FloodForwarded, Stat::Value),
    (MetricId::ForwardingRateMax, Stat::Value),
];

fn headline(first: &Record, second: &Record) -> Headline {
    let rows = differences(first, second);
    let main = TELLING.iter().find_map(|(metric, stat)| {
        let mut all = rows.iter().filter(|row| row.is_shared());
        all.find(|row| (row.metric, row.stat) == (*metric, *stat))
    });
    let result = main.map_or_else(
        || "nothing that both measured".to_owned(),
        |row| {
            let shown = |value: Option<f64>| or_dash(value, |value| value_text(row, value));
            let change = row.change_ratio.map(|ratio| format!(", {}", change_text(ratio)));
            let verdict = row.verdict.map(|verdict| format!(", {verdict}")).unwrap_or_default();
            let title = row.metric.table_row().title;
            let (one, other) = (shown(row.first), shown(row.second));
            format!("{title} {one} \u{2192} {other}{}{verdict}", change.unwrap_or_default())
        },
    );
    let [one, other] = [first, second].map(Headline::from_record);
    let doubts = match (one.reason(), other.reason()) {
        (Some(one), Some(other)) if one == other => vec![format!("both: {one}")],
        (one, other) => {
            let first = one.map(|why| format!("the first: {why}"));
            first.into_iter().chain(other.map(|why| format!("the second: {why}"))).collect()
        }
    };
    Headline {
        result,
        share: None,
        ceiling: String::new(),
        limit: LimitText::new(LimitedBy::Nothing, ""),
        quality: one.quality.max(other.quality),
        doubt: doubts.join("; "),
        id: String::new(),
    }
}

/// The figures that both records have, and those that one record alone has. Directions are named
/// where there are two.
fn figures(
    rows: &[MetricDifference],
    keep: impl Fn(&MetricDifference) -> bool,
) -> (ReportTable, ReportTable) {
    let right = Align::Right;
    let names = [("metric", Align::Left), ("first", right), ("second", right)];
    let mut shared = ReportTable::from_columns(
        names.into_iter().chain([("change", right), ("second is", Align::Left)]),
    );
    let mut alone = ReportTable::from_columns(names);
    let ways = [Direction::Up, Direction::Down];
    let two = ways.iter().all(|way| rows.iter().any(|row| row.direction == Some(*way)));
    for row in rows {
        let shown = |value: Option<f64>| or_dash(value, |value| value_text(row, value));
        let mut name = format!("{}{}", row.metric.table_row().title, stat_suffix(row.stat));
        name.push_str(match row.direction.filter(|_| two) {
            Some(Direction::Up) => ", up",
            Some(Direction::Down) => ", down",
            None => "",
        });
        let size = row.payload_bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
        let values = [name + &size, shown(row.first), shown(row.second)];
        if !row.is_shared() {
            alone.add_measured_row(values);
            continue;
        }
        if !keep(row) {
            continue;
        }
        let change = row.change_ratio.map(change_text);
        let verdict = row.verdict.unwrap_or_default().replace("inside the spread", "in its noise");
        let change = [change.unwrap_or_else(|| NONE.to_owned()), verdict];
        shared.add_measured_row(values.into_iter().chain(change));
    }
    (shared, alone)
}

/// A relative change: `+4.2 %`, or from ten times on `1008 times`.
fn change_text(ratio: f64) -> String {
    if ratio < 9.0 {
        return format!("{:+.1} %", ratio * 100.0);
    }
    format!("{} times", number::significant(1.0 + ratio, 3))
}

fn stat_suffix(stat: Stat) -> String {
    match stat {
        Stat::Value => String::new(),
        stat => format!(" {}", csv::variant_name(stat)),
    }
}

/// A value with its unit, in as many digits as its clock has: the kernel's TCP counts microseconds.
fn value_text(row: &MetricDifference, value: f64) -> String {
    let of_tcp = matches!(row.metric, MetricId::TcpRtt | MetricId::TcpRttMin);
    match row.unit {
        "bit/s" => number::measured_rate(value),
        "ns" => format!("{} ms", number::ms_of_clock(value, if of_tcp { 3 } else { 6 })),
        "1" => number::percent(value),
        "bytes" => number::amount(value.max(0.0) as u64),
        // The name of such a metric says what is counted.
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        unit => format!("{} {unit}", number::significant(value, 4)),
    }
}

/// The fields in which the two plans differ, a line for each.
fn plan_differences(first: &Record, second: &Record) -> Option<ReportSection> {
    let flat = |record: &Record| {
        let mut all = Vec::new();
        let plan = linerate_core::tree::to_value(&record.plan).unwrap_or_default();
        flatten(String::new(), &plan, &mut all);
        all
    };
    let (one, two) = (flat(first), flat(second));
    let value_of = |all: &[(String, String)], key: &str| {
        all.iter().find(|(name, _)| name == key).map_or("-", |(_, value)| value).to_owned()
    };
    let mut keys: Vec<&String> = one.iter().chain(&two).map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    let changed = keys.into_iter().filter(|key| value_of(&one, key) != value_of(&two, key));
    let lines =
        changed.map(|key| format!("{key}: {} / {}", value_of(&one, key), value_of(&two, key)));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty())
        .then(|| ReportSection::from_tables("Asked otherwise (first / second)", [], lines))
}

fn flatten(name: String, value: &serde_json::Value, out: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(inner, value, out);
            }
        }
        serde_json::Value::Null => {}
        value => out.push((name, value.to_string().trim_matches('"').to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{CaveatCode, PingPlan, Plan, RecordId, TcpPlan, TcpTest, Tool};
    use linerate_core::time::WallTime;

    use super::*;
    use crate::{Detail, Screen};

    fn tcp_record(streams: u16, bps: f64, intervals: &[f64]) -> Record {
        let plan = Plan::Tcp(TcpPlan {
            test: TcpTest { streams, ..TcpTest::default() },
            ..TcpPlan::default()
        });
        let mut record = record(plan);
        record.summary = vec![
            Summary::from_value(MetricId::Goodput, Stat::Value, bps).in_direction(Direction::Up),
            Summary::from_value(MetricId::Retransmits, Stat::Value, 5.0)
                .in_direction(Direction::Up),
            Summary::from_value(MetricId::Cwnd, Stat::Value, bps / 1e3).in_direction(Direction::Up),
        ];
        record.series = vec![Series {
            metric: MetricId::Goodput,
            direction: Some(Direction::Up),
            flow: Some(0),
            side: None,
            payload_bytes: None,
            t_ns: (1..).take(intervals.len()).collect(),
            values: intervals.iter().map(|value| Some(*value)).collect(),
        }];
        record
    }

    fn record(plan: Plan) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        Record::from_plan(
            RecordId::from_parts(0, [0; 10]),
            tool,
            plan,
            WallTime::from_unix_nanos(0),
        )
    }

    fn find_metric(all: &[MetricDifference], metric: MetricId) -> &MetricDifference {
        all.iter().find(|row| row.metric == metric).expect("a row")
    }

    #[test]
    fn the_metric_table_says_which_is_better_and_the_intervals_whether_it_counts() {
        // 90, 100, 110: the mean of the squares of 10, 0, 10 over n - 1 = 2 is 100, so 10.
        let first = tcp_record(1, 100e6, &[90e6, 100e6, 110e6]);
        let verdict = |bps, retransmits| {
            let mut second = tcp_record(1, bps, &[bps, bps]);
            second.summary[1].value = retransmits;
            let rows = differences(&first, &second);
            let goodput = find_metric(&rows, MetricId::Goodput).clone();
            assert_eq!(goodput.spread, Some(10e6));
            assert_eq!(find_metric(&rows, MetricId::Cwnd).verdict, None);
            (
                goodput.verdict,
                goodput.change_ratio,
                find_metric(&rows, MetricId::Retransmits).verdict,
            )
        };
        // 125 of 100. Counts of 5 and 12 differ by 7, less than 2 √17 = 8.2; 5 and 20 by more than
        // 2 √25 = 10.
        assert_eq!(verdict(125e6, 20.0), (Some("better"), Some(0.25), Some("worse")));
        assert_eq!(verdict(125e6, 12.0).2, Some("inside the spread"));
        assert_eq!(verdict(110e6, 4.0).0, Some("inside the spread"));
        assert_eq!(verdict(80e6, 5.0).0, Some("worse"));
        assert_eq!(verdict(80e6, 5.0).2, Some("same"));
    }

    #[test]
    fn whole_counts_are_told_whole_and_means_with_their_unit() {
        let rows = differences(&tcp_record(1, 1e6, &[]), &tcp_record(1, 1e6, &[]));
        let row = find_metric(&rows, MetricId::Retransmits);
        let text = [12.0, 0.0, 2.5].map(|count| value_text(row, count));
        assert_eq!(text, ["12", "0", "2.500 segments"]);
    }

    #[test]
    fn a_share_has_the_noise_of_the_count_that_it_is_made_of() {
        // 5 of 5000 and 12 of 5000: 7 more, and two standard deviations of both are 2 √17 = 8.2.
        let with = |count: f64| {
            let row = |metric, value| Summary::from_value(metric, Stat::Value, value);
            let mut record = record(Plan::Tcp(TcpPlan::default()));
            record.summary = vec![
                row(MetricId::Retransmits, count).in_direction(Direction::Up),
                row(MetricId::RetransmitRatio, count / 5000.0).in_direction(Direction::Up),
            ];
            record
        };
        let verdict = |first, second| {
            find_metric(&differences(&with(first), &with(second)), MetricId::RetransmitRatio)
                .verdict
        };
        for (first, second) in [(5.0, 12.0), (12.0, 5.0)] {
            assert_eq!(verdict(first, second), Some("inside the spread"), "{first} {second}");
        }
        // 2 √25 = 10 are fewer than 15.
        assert_eq!(verdict(5.0, 20.0), Some("worse"));
        assert_eq!(verdict(20.0, 5.0), Some("better"));
    }

    #[test]
    fn what_one_lacks_is_null_and_nothing_is_made_up() {
        let rows = differences(&tcp_record(1, 1e6, &[]), &record(Plan::Ping(PingPlan::default())));
        let goodput = find_metric(&rows, MetricId::Goodput);
        assert_eq!((goodput.second, goodput.change_ratio, goodput.verdict), (None, None, None));
    }

    #[test]
    fn the_trust_is_that_of_both_records_and_what_was_asked_otherwise_is_said() {
        let first = tcp_record(1, 100e6, &[]);
        let mut second = tcp_record(4, 200e6, &[]);
        let good = document(&first, &second).text(None);
        assert!(
            good.lines().next().is_some_and(|line| line.ends_with("better \u{b7} good")),
            "{good}"
        );
        let detail = "a sender thread waited 23 % of the time for a core";
        second.caveats.push(linerate_core::record::Caveat::new(
            CaveatCode::RunQueueWait,
            detail,
            "stop other work",
        ));
        let text = document(&first, &second).text(None);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
        let answer = "goodput 100.0 Mbit/s \u{2192} 200.0 Mbit/s, +100.0 %, better \u{b7} \
                      doubtful: the second: limited by this host: a sender thread waited";
        assert_eq!(at(answer), 0, "{text}");
        assert!(at("second: a sender thread waited 23 %") < at("streams: 1 / 4"), "{text}");
        assert!(at("streams: 1 / 4") < at("second is"), "{text}");
        let screen = Screen { width: Some(80), detail: Detail::Brief, ..Screen::default() };
        let brief = document(&first, &second).render_on_screen(&screen);
        assert!(brief.lines().all(|line| line.chars().count() <= 80), "{brief}");
        // Five segments sent again in both: no weight.
        assert!(!brief.contains("segments retransmitted"), "{brief}");
        assert!(brief.contains("1 more do not differ by more than their noise"), "{brief}");
    }

    #[test]
    fn a_difference_within_the_noise_of_a_queue_is_no_row_of_the_answer() {
        let with = |here_ns: f64| {
            let mut record = tcp_record(1, 100e6, &[100e6, 100e6]);
            let row = |metric, stat, value| {
                Summary::from_value(metric, stat, value).in_direction(Direction::Up)
            };
            record.summary.push(Summary::from_value(MetricId::DelayIdle, Stat::P50, 20e6));
            record.summary.push(row(MetricId::AddedHere, Stat::Value, here_ns));
            record
        };
        let rows = differences(&with(0.0), &with(-1420.0));
        assert_eq!(find_metric(&rows, MetricId::AddedHere).verdict, Some("inside the spread"));
        // 40 ms more in a queue is more than a tenth of the round trip at rest.
        let rows = differences(&with(0.0), &with(40e6));
        assert_eq!(find_metric(&rows, MetricId::AddedHere).verdict, Some("worse"));
    }
}
