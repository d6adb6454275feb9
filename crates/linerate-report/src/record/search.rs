//! A search for the capacity: a row a sub-interval, the result, what came of the whole, and the
//! rates over time.

use linerate_core::record::{
    CapacitySearch, HeaderLayer, Record, SearchDelay, SearchPlan, SubInterval, UdpPlan, UdpTest,
};

use super::datagrams;
use crate::document::{Block, ReportFigure, ReportSection, ReportTable};
use crate::number::{self, or_dash};
use crate::svg::{Axis, ChartSeries, LineChart};
use crate::words;

/// More sub-intervals than this are left to the JSON.
const ROWS_MAX: usize = 30;

/// The one line that says what was asked.
pub(super) fn title_line(plan: &UdpPlan, search: &SearchPlan) -> String {
    let size =
        plan.test.size_bytes.map_or_else(|| "usual size".to_owned(), |b| format!("{b} bytes"));
    let most = search.rate_max.map_or_else(String::new, |most| {
        format!(", at most {} offered", number::rate_with_unit(most.bits_per_sec() as f64))
    });
    format!(
        "UDP capacity search with {} port {}: {}, {} in sub-intervals of {}, datagrams of {size}\
         {most}",
        plan.server.host,
        plan.server.port,
        words::directions(plan.test.directions),
        words::finish(plan.test.finish),
        number::seconds(plan.test.interval_ns as f64),
    )
}

/// The rates over time, before all else on a page.
pub(super) fn figure(record: &Record, found: &CapacitySearch) -> ReportSection {
    let figure = ReportFigure::from_panel("The search", "", rates_chart(record, found).svg());
    ReportSection::without_blank_line("", [Block::Figure(figure)]).leading()
}

/// A row a sub-interval; of too many a terminal has their number.
pub(super) fn blocks(found: &CapacitySearch) -> Vec<Block> {
    match found.sub_intervals.len() {
        0..=ROWS_MAX => vec![Block::Table(sub_interval_table(found))],
        more => {
            let line = format!("{more} sub-intervals, one by one in the JSON");
            vec![Block::Lines(vec![line]), Block::Table(sub_interval_table(found).on_pages())]
        }
    }
}

/// Result, losses and ways of travel of the search's direction.
pub(super) fn result_lines(record: &Record, found: &CapacitySearch) -> Vec<String> {
    let direction = found.direction;
    let lines = [result(found), course(record, found), datagrams::losses(record, direction)];
    lines.into_iter().chain([datagrams::travel(record, direction)]).flatten().collect()
}

/// One row per sub-interval.
fn sub_interval_table(found: &CapacitySearch) -> ReportTable {
    let table = ReportTable::from_rows(
        &found.sub_intervals,
        &[
            ("sub-interval", &|row| {
                let best = if found.best == Some(row.span.index) { " *" } else { "" };
                format!("{}{best}", span_in_seconds(row))
            }),
            ("IP packets", &|row| number::measured_rate(row.ip_bps)),
            ("offered", &|row| or_dash(row.offered_bps, number::measured_rate)),
            ("loss", &|row| or_dash(row.loss_ratio, number::percent)),
            ("reordered", &|row| row.span.reordered.to_string()),
            ("delay above least ms", &|row| ms_range(row.span.delay_min_ns, row.span.delay_max_ns)),
            ("round trip ms", &|row| ms_range(row.rtt_min_ns, row.rtt_max_ns)),
        ],
    );
    table.dropping(&[4, 6, 2])
}

fn span_in_seconds(row: &SubInterval) -> String {
    let at = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
    format!("{}-{} s", at(row.span.start_ns()), at(row.span.end_ns()))
}

fn ms_range(least: Option<u64>, most: Option<u64>) -> String {
    or_dash(least.zip(most), |(least, most)| {
        format!("{}-{}", number::time_in_ms(least as f64), number::time_in_ms(most as f64))
    })
}

/// The result with what RFC 9097 wants beside it: loss, delay range and round trip of the same
/// sub-interval.
fn result(found: &CapacitySearch) -> Option<String> {
    let best = found.best_interval()?;
    let range_ms =
        or_dash(best.delay_range_ns(), |ns| format!("{} ms", number::time_in_ms(ns as f64)));
    Some(format!(
        "maximum IP capacity {} (*): packets of {} bytes, loss {}, range of one-way delay \
         {range_ms}, round trip {} ms",
        number::rate_with_unit(best.ip_bps),
        found.packet_bytes,
        or_dash(best.loss_ratio, number::percent),
        ms_range(best.rtt_min_ns, best.rtt_max_ns),
    ))
}

/// How the search went.
fn course(record: &Record, found: &CapacitySearch) -> Option<String> {
    let last = found.trials.last()?;
    let statuses = found.trials.len() as u64 + found.trials_left_out;
    let missed: u64 = found.trials.iter().map(|trial| u64::from(trial.missed)).sum();
    let delay = match &record.plan {
        linerate_core::record::Plan::Udp(UdpPlan {
            test: UdpTest { search: Some(plan), .. },
            ..
        }) => match plan.delay {
            SearchDelay::RoundTrip => ", by round trips",
            SearchDelay::OneWay => ", by one-way delays",
        },
        _ => "",
    };
    let congested = found.confirmed_ns.map_or_else(
        || "congestion never confirmed".to_owned(),
        |ns| format!("congestion confirmed after {}", number::seconds(ns as f64)),
    );
    let noun = if statuses == 1 { "status" } else { "statuses" };
    Some(format!(
        "{statuses} {noun}, {missed} missing{delay}; {congested}; at the end {} was offered",
        number::rate_with_unit(last.offered_bps as f64)
    ))
}

/// Offered and received rates over time, below the ceiling.
fn rates_chart(record: &Record, found: &CapacitySearch) -> LineChart {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let offered =
        found.trials.iter().map(|trial| (seconds(trial.t_ns), trial.offered_bps as f64)).collect();
    let rows = found.sub_intervals.iter();
    let arrived: Vec<(f64, f64)> = rows
        .flat_map(|row| {
            let (start, end) = (row.span.start_ns(), row.span.end_ns());
            [(seconds(start), row.ip_bps), (seconds(end), row.ip_bps)]
        })
        .collect();
    let last = arrived.last().map_or(1.0, |point| point.0);
    let ceiling =
        record.ceiling_of(found.direction).filter(|ceiling| ceiling.layer == HeaderLayer::Ip);
    let ceiling =
        ceiling.and_then(|ceiling| ceiling.value).map(|value| vec![(0.0, value), (last, value)]);
    let mut series = vec![
        ChartSeries::new("offered", 1, offered).in_steps(),
        ChartSeries::new("arrived, by sub-interval", 0, arrived),
    ];
    series.extend(ceiling.map(|points| ChartSeries::new("ceiling", 5, points).dashed()));
    let (statuses, rows) = (found.trials.len(), found.sub_intervals.len());
    let x = Axis::linear("seconds since the start", number::short_count);
    LineChart::new(
        "Rate of IP packets, offered and arrived",
        format!("{statuses} statuses and {rows} sub-intervals"),
        [x, Axis::linear("IP packets", number::rate_with_unit)],
        series,
    )
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Direction, MetricId, Plan, RecordId, SearchSpan, SearchStep, SearchTrial, ServerPlan, Stat,
        Summary, TcpDirections, Tool,
    };
    use linerate_core::time::WallTime;
    use linerate_core::units::BitRate;

    use super::*;

    const MS: u64 = 1_000_000;

    fn sub_interval(index: u32, received: u64, lost: i64) -> SubInterval {
        let span = SearchSpan {
            index,
            length_ns: 1000 * MS,
            received,
            lost,
            delay_min_ns: Some(2 * MS),
            delay_max_ns: Some(27 * MS),
            ..SearchSpan::default()
        };
        SubInterval {
            span,
            ip_bps: received as f64 * 12_000.0,
            loss_ratio: Some(lost as f64 / (received + lost as u64) as f64),
            offered_bps: Some(50e6),
            rtt_min_ns: Some(21 * MS),
            rtt_max_ns: Some(46 * MS),
        }
    }

    /// 3000 and 4000 packets of 1500 bytes in a second each: 36 and 48 Mbit/s.
    fn record() -> Record {
        let search = SearchPlan {
            rate_max: Some(BitRate::from_bits_per_sec(70_000_000)),
            ..SearchPlan::default()
        };
        let plan = UdpPlan {
            server: ServerPlan::new(None, "b", 5210),
            test: UdpTest {
                directions: TcpDirections::Up,
                size_bytes: Some(1472),
                search: Some(search),
                ..UdpTest::default()
            },
            ..UdpPlan::default()
        };
        let trial = |missed, step, t_ms: u64| SearchTrial {
            t_ns: t_ms * MS,
            missed,
            sequence_errors: 11,
            delay_ns: Some(0),
            rtt_ns: Some(21 * MS),
            sent: 1,
            step,
            confirmed: step == SearchStep::Back,
            row: 50,
            offered_bps: 50_000_000,
        };
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let at = WallTime::from_unix_nanos(0);
        let mut record = Record::from_plan(id, tool, Plan::Udp(plan), at);
        let value = Summary::from_value(MetricId::IpCapacity, Stat::Value, 48e6);
        record.summary = vec![value.in_direction(Direction::Up)];
        record.search = Some(CapacitySearch {
            direction: Direction::Up,
            packet_bytes: 1500,
            sub_intervals: vec![sub_interval(0, 3000, 0), sub_interval(1, 4000, 1000)],
            best: Some(1),
            confirmed_ns: Some(951 * MS),
            trials: vec![trial(2, SearchStep::Fast, 50), trial(1, SearchStep::Back, 951)],
            trials_left_out: 5,
        });
        record
    }

    #[test]
    fn the_result_stands_beside_what_belongs_to_it_and_the_course_below() {
        let text = crate::record::document(&record()).text(None);
        // Wherever lines are broken.
        let words = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        for part in [
            "UDP capacity search with b port 5210: client to server, 10.0 s in sub-intervals of \
             1.00 s, datagrams of 1472 bytes, at most 70 Mbit/s offered",
            "maximum IP capacity 48 Mbit/s (*): packets of 1500 bytes, loss 20.0 %, range of \
             one-way delay 25.00 ms, round trip 21.00-46.00 ms",
            "7 statuses, 3 missing, by round trips; congestion confirmed after 0.951 s; at the end \
             50 Mbit/s was offered",
            "48.00 Mbit/s of IP packets to b \u{b7} limited by the path: more was lost or delayed \u{b7} good",
        ] {
            assert!(words.contains(part), "'{part}' is not in {text}");
        }
        let cells = |begin: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(begin));
            line.expect(begin).split_whitespace().map(str::to_owned).collect::<Vec<String>>()
        };
        assert_eq!(
            cells("0.00-1.00"),
            "0.00-1.00 s 36.00 Mbit/s 50.00 Mbit/s 0 % 0 2.000-27.00 21.00-46.00"
                .split(' ')
                .collect::<Vec<&str>>()
        );
        assert_eq!(cells("1.00-2.00")[2], "*");
    }

    #[test]
    fn nothing_found_is_one_sentence_and_many_sub_intervals_are_a_count() {
        let mut record = record();
        let found = record.search.as_mut().expect("a search");
        (found.sub_intervals, found.best, found.trials) = (Vec::new(), None, Vec::new());
        let text = crate::record::document(&record).text(None);
        assert!(text.starts_with("no sub-interval was measured with b \u{b7} "), "{text}");
        let found = record.search.as_mut().expect("a search");
        found.sub_intervals = (0..31).map(|index| sub_interval(index, 1, 0)).collect();
        let text = crate::record::document(&record).text(None);
        assert!(text.contains("  31 sub-intervals, one by one in the JSON\n"), "{text}");
    }

    #[test]
    fn the_chart_has_what_was_offered_and_what_arrived() {
        let record = record();
        let chart = rates_chart(&record, record.search.as_ref().expect("a search"));
        let points: Vec<&[(f64, f64)]> =
            chart.series.iter().map(|series| series.points.as_slice()).collect();
        let arrived = [(0.0, 36e6), (1.0, 36e6), (1.0, 48e6), (2.0, 48e6)];
        assert_eq!(points, [&[(0.05, 50e6), (0.951, 50e6)][..], &arrived]);
    }
}
