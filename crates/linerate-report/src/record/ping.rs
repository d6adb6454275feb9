//! The document of a ping: the lines that BSD's ping prints for one size, a table for several, with
//! as many digits as the clock justifies, and the distribution of round trips. The lines of single
//! probes are the program's.

use std::fmt::Write as _;

use linerate_core::record::{LostStretch, MetricId, PingMode, PingPlan, Record, Stat};
use linerate_core::time::decimals_of_ms;

use super::by_size::BySize;
use super::ping_split::{Split, value_for_payload};
use super::{ping_plots, stamp};
use crate::document::{Block, Document, ReportSection, ReportTable, Tile};
use crate::number::{self, or_dash};
use crate::words;

/// The metrics that a page defines.
const METRICS: &[MetricId] = &[
    MetricId::Rtt,
    MetricId::RttScheduled,
    MetricId::RttSend,
    MetricId::RttQueue,
    MetricId::RttKernel,
    MetricId::RttWake,
    MetricId::Pps,
    MetricId::PpsPaper,
    MetricId::LossRatio,
    MetricId::Outages,
    MetricId::OutageMax,
    MetricId::CongestionMarked,
    MetricId::Duplicates,
    MetricId::Reordered,
    MetricId::Late,
];

/// The figures of the ping.
pub(super) fn document(record: &Record, plan: &PingPlan) -> Document {
    let rates = has_rates(plan);
    let view = View { record, decimals: decimals(record), rates };
    let is_rate = |metric: &MetricId| matches!(metric, MetricId::Pps | MetricId::PpsPaper);
    let metrics = METRICS.iter().copied().filter(|metric| rates || !is_rate(metric));
    let stamped = if record.clocks.is_empty() { &[][..] } else { stamp::METRICS };
    let metrics = metrics.chain(stamped.iter().copied());
    let figures = ping_plots::figures(record, plan).into_iter().map(Block::Figure);
    let figures: Vec<Block> = figures.collect();
    let figures =
        (!figures.is_empty()).then(|| ReportSection::without_blank_line("", figures).leading());
    Document {
        title: title_line(plan),
        tiles: view.first_size_tiles(plan),
        sections: figures
            .into_iter()
            .chain([ReportSection::without_blank_line("", view.blocks(plan))])
            .collect(),
        metrics: metrics.collect(),
        ..Document::default()
    }
}

/// True if pings per second are a result: for a ping with a fixed interval they only repeat the
/// plan.
pub(super) fn has_rates(plan: &PingPlan) -> bool {
    plan.mode != PingMode::Paced
}

/// The one line that says what was asked.
fn title_line(plan: &PingPlan) -> String {
    let sizes: Vec<String> = plan.sizes_bytes.iter().map(u32::to_string).collect();
    format!(
        "{} of {} by {}: {} bytes of payload, {}, {}",
        if plan.stamp.is_some() { "delay" } else { "ping" },
        plan.host,
        words::transport(plan.transport),
        words::listed(&sizes),
        plan.count.map_or_else(
            || "until stopped".to_owned(),
            |count| if plan.sizes_bytes.len() > 1 {
                format!("{} of each size", words::counted(count, "probe"))
            } else {
                words::counted(count, "probe")
            }
        ),
        words::ping_mode(plan.mode, plan.interval_ns),
    )
}

/// Pings per second as the studies of 2000 compute them, from the stored row or the mean.
fn from_average(record: &Record, size: u32) -> Option<f64> {
    value_for_payload(record, MetricId::PpsPaper, Stat::Value, size).or_else(|| {
        let mean = value_for_payload(record, MetricId::Rtt, Stat::Mean, size)?;
        (mean > 0.0).then(|| 1e9 / mean)
    })
}

/// The step of the clock that read the times: the first end is the one that measured.
fn step_ns(record: &Record) -> Option<f64> {
    record.ends.first().and_then(|end| end.clock_tick_ns)
}

/// The decimals of a time in ms that this clock justifies; all of them where it is not known.
fn decimals(record: &Record) -> usize {
    decimals_of_ms(step_ns(record).unwrap_or(1.0))
}

/// A record as its figures are printed.
struct View<'a> {
    record: &'a Record,
    /// Decimals of a time in ms that the clock justifies.
    decimals: usize,
    /// True if pings per second are a result: for a ping with a fixed interval they only repeat the
    /// plan.
    rates: bool,
}

impl View<'_> {
    fn value_at_size(&self, metric: MetricId, stat: Stat, size: u32) -> Option<f64> {
        value_for_payload(self.record, metric, stat, size)
    }

    fn format_ms(&self, ns: f64) -> String {
        number::ms_exact(ns, self.decimals)
    }

    fn format_count(&self, metric: MetricId, size: u32) -> String {
        or_dash(self.value_at_size(metric, Stat::Value, size), whole_number)
    }

    /// The figures of the sizes that were measured, and what their digits are worth. Of one size a
    /// terminal has the lines that ping prints.
    fn blocks(&self, plan: &PingPlan) -> Vec<Block> {
        let measured =
            |size: &u32| self.value_at_size(MetricId::Sent, Stat::Value, *size).is_some();
        let sizes: Vec<u32> = plan.sizes_bytes.iter().copied().filter(measured).collect();
        let mut blocks = match sizes.as_slice() {
            [] => return Vec::new(),
            [size] => {
                let lines = [
                    Some(self.counts(*size)),
                    self.round_trip(*size),
                    self.percentiles(*size),
                    self.by_schedule(*size),
                    self.kernel(*size),
                    self.split_line(*size),
                    self.marked_replies(*size),
                    outages(self.record, *size),
                ];
                let two_way = lines.into_iter().flatten();
                let one_way = stamp::one_way_lines(self.record, *size, self.decimals);
                let lines = Block::Lines(two_way.chain(one_way).collect());
                vec![lines, Block::Table(self.sizes_table(&sizes).on_pages())]
            }
            sizes => {
                let one_way = sizes.iter().flat_map(|size| {
                    let lines = stamp::one_way_lines(self.record, *size, self.decimals);
                    lines.into_iter().map(move |line| format!("{size} bytes: {line}"))
                });
                let one_way: Vec<String> = one_way.collect();
                let by_size =
                    BySize::from_record(self.record, plan).map(|found| found.fit_in_words());
                let lines: Vec<String> = by_size.into_iter().chain(one_way).collect();
                let lines = (!lines.is_empty()).then_some(Block::Lines(lines));
                [Block::Table(self.sizes_table(sizes))].into_iter().chain(lines).collect()
            }
        };
        blocks.extend(step_ns(self.record).map(|step_ns| {
            let line = format!("the clock steps by {step_ns:.0} ns; no figure is printed finer");
            Block::Lines(vec![line])
        }));
        blocks
    }

    /// The figures of the first size in large type.
    fn first_size_tiles(&self, plan: &PingPlan) -> Vec<Tile> {
        let Some(&size) = plan.sizes_bytes.first() else { return Vec::new() };
        let value = |metric, stat| self.value_at_size(metric, stat, size);
        let ms = |stat| {
            or_dash(value(MetricId::Rtt, stat), |ns| format!("{} ms", number::time_in_ms(ns)))
        };
        let of = |what: &str| format!("{what}, {size} bytes");
        let (min, max) = (ms(Stat::Min), ms(Stat::Max));
        let mut tiles = vec![
            Tile::new(ms(Stat::P50), of("median round trip"), format!("smallest {min}")),
            Tile::new(ms(Stat::P99), of("99 % are below"), format!("largest {max}")),
        ];
        if self.rates {
            let pps = or_dash(value(MetricId::Pps, Stat::Value), |n| format!("{n:.0}/s"));
            tiles.push(Tile::new(pps, of("pings per second"), ""));
        }
        let lost = or_dash(value(MetricId::LossRatio, Stat::Value), number::percent);
        let sent = or_dash(value(MetricId::Sent, Stat::Value), |n| format!("of {n:.0} sent"));
        tiles.push(Tile::new(lost, of("lost"), sent));
        tiles
    }

    fn counts(&self, size: u32) -> String {
        let count = |metric| self.format_count(metric, size);
        let percent = |metric| self.value_at_size(metric, Stat::Value, size).map(percent);
        let bound = percent(MetricId::LossRatioHigh)
            .map_or_else(String::new, |high| format!(" (95 %: at most {high} %)"));
        format!(
            "{} sent, {} answered, {} % lost{bound}, {} duplicates, {} reordered, {} late",
            count(MetricId::Sent),
            count(MetricId::Received),
            or_dash(percent(MetricId::LossRatio), |percent| percent),
            count(MetricId::Duplicates),
            count(MetricId::Reordered),
            count(MetricId::Late),
        )
    }

    /// Values joined by slashes; `None` when none of them was measured.
    fn slashed(&self, metric: MetricId, stats: &[Stat], size: u32) -> Option<String> {
        let values: Vec<Option<f64>> =
            stats.iter().map(|&stat| self.value_at_size(metric, stat, size)).collect();
        values.iter().any(Option::is_some).then(|| {
            let texts: Vec<String> =
                values.into_iter().map(|value| or_dash(value, |ns| self.format_ms(ns))).collect();
            texts.join("/")
        })
    }

    /// One answer has no standard deviation, and then the line does without.
    fn spread(&self, metric: MetricId, size: u32) -> Option<String> {
        let names = ["min", "avg", "max", "stddev"];
        let stats = [Stat::Min, Stat::Mean, Stat::Max, Stat::Stddev];
        let count = if self.value_at_size(metric, Stat::Stddev, size).is_some() { 4 } else { 3 };
        let values = self.slashed(metric, &stats[..count], size)?;
        Some(format!("{} = {values} ms", names[..count].join("/")))
    }

    fn round_trip(&self, size: u32) -> Option<String> {
        let mut line = format!("round-trip {}", self.spread(MetricId::Rtt, size)?);
        if self.rates {
            if let Some(pps) = self.value_at_size(MetricId::Pps, Stat::Value, size) {
                let _ = write!(line, ", {pps:.0} pings/s");
            }
            if let Some(paper) = from_average(self.record, size) {
                let _ = write!(line, " (1000/avg: {})", whole_number(paper.trunc()));
            }
        }
        Some(line)
    }

    fn percentiles(&self, size: u32) -> Option<String> {
        Some(format!("percentiles {}", self.percentiles_of(MetricId::Rtt, size)?))
    }

    /// With what the prober itself was late.
    fn by_schedule(&self, size: u32) -> Option<String> {
        let values = self.percentiles_of(MetricId::RttScheduled, size)?;
        Some(format!("from the planned sending times {values}"))
    }

    /// Replies that a queue marked.
    fn marked_replies(&self, size: u32) -> Option<String> {
        let ratio = self.value_at_size(MetricId::CongestionMarked, Stat::Value, size)?;
        Some(format!("{} % of the replies came marked by a queue (CE)", percent(ratio)))
    }

    fn percentiles_of(&self, metric: MetricId, size: u32) -> Option<String> {
        let told: Vec<_> =
            PERCENTILES.iter().filter(|percentile| self.is_told(percentile.1, size)).collect();
        let stats: Vec<Stat> = told.iter().map(|percentile| percentile.1).collect();
        let names: Vec<&str> = told.iter().map(|percentile| percentile.0).collect();
        let values = self.slashed(metric, &stats, size)?;
        Some(format!("{} = {values} ms", names.join("/")))
    }

    /// True if there were answers enough for a percentile; with fewer it would equal the largest
    /// value.
    fn is_told(&self, stat: Stat, size: u32) -> bool {
        let needed = PERCENTILES
            .iter()
            .find(|percentile| percentile.1 == stat)
            .map_or(0.0, |percentile| percentile.2);
        self.value_at_size(MetricId::Received, Stat::Value, size)
            .is_none_or(|count| count >= needed)
    }

    /// The kernel's own round trip.
    fn kernel(&self, size: u32) -> Option<String> {
        Some(format!("kernel {}", self.spread(MetricId::RttKernel, size)?))
    }

    /// Where the mean round trip passed.
    fn split_line(&self, size: u32) -> Option<String> {
        let split = Split::from_record(self.record, size)?;
        Some(format!("split {}", split.parts_with_shares(|ns| self.format_ms(ns))))
    }

    /// The figures of several sizes, each size a column.
    fn sizes_table(&self, sizes: &[u32]) -> ReportTable {
        let head = sizes.iter().map(u32::to_string);
        let mut table = ReportTable::new(std::iter::once("payload, bytes".to_owned()).chain(head));
        for (name, metric, stat) in TIMES {
            let told =
                |size| self.value_at_size(metric, stat, size).filter(|_| self.is_told(stat, size));
            let cell = |size| told(size).map(|ns| self.format_ms(ns));
            push_stat_row(&mut table, name, sizes, cell);
        }
        if self.rates {
            let pps = |size| self.value_at_size(MetricId::Pps, Stat::Value, size).map(whole_number);
            push_stat_row(&mut table, "pings/s", sizes, pps);
            let paper = |size| from_average(self.record, size).map(|pps| whole_number(pps.trunc()));
            push_stat_row(&mut table, "1000/avg", sizes, paper);
        }
        let of = |metric| move |size| self.value_at_size(metric, Stat::Value, size);
        push_stat_row(&mut table, "sent", sizes, |size| of(MetricId::Sent)(size).map(whole_number));
        for (name, metric) in
            [("lost, %", MetricId::LossRatio), ("lost at most, %", MetricId::LossRatioHigh)]
        {
            push_stat_row(&mut table, name, sizes, |size| of(metric)(size).map(percent));
        }
        for (name, metric) in [
            ("duplicates", MetricId::Duplicates),
            ("reordered", MetricId::Reordered),
            ("late", MetricId::Late),
        ] {
            if sizes.iter().any(|&size| of(metric)(size).is_some_and(|count| count > 0.0)) {
                push_stat_row(&mut table, name, sizes, |size| of(metric)(size).map(whole_number));
            }
        }
        table
    }
}

/// Outages that a line has the times of.
const OUTAGES_TOLD: usize = 3;

/// When nothing was answered, and for how long.
pub(super) fn outages(record: &Record, size: u32) -> Option<String> {
    let count = value_for_payload(record, MetricId::Outages, Stat::Value, size)
        .filter(|count| *count > 0.0)?;
    let longest = value_for_payload(record, MetricId::OutageMax, Stat::Value, size)?;
    let here = record.outages.iter().filter(|stretch| stretch.payload_bytes == size);
    let of = |it: &LostStretch| {
        format!(
            "{} from {} on ({})",
            number::seconds(it.length_ns as f64),
            number::seconds(it.start_ns as f64),
            words::counted(it.probes_lost, "probe"),
        )
    };
    let mut told: Vec<String> = here.take(OUTAGES_TOLD).map(of).collect();
    if count > OUTAGES_TOLD as f64 {
        told.push(format!("and more; the longest {}", number::seconds(longest)));
    }
    Some(format!("{}: {}", words::counted(count as u64, "outage"), told.join(", ")))
}

/// Percentiles with the answers that each needs: one beyond it at least.
const PERCENTILES: [(&str, Stat, f64); 5] = [
    ("50", Stat::P50, 2.0),
    ("90", Stat::P90, 10.0),
    ("95", Stat::P95, 20.0),
    ("99", Stat::P99, 100.0),
    ("99.9", Stat::P999, 1000.0),
];

/// The times in the table by size.
const TIMES: [(&str, MetricId, Stat); 12] = [
    ("min, ms", MetricId::Rtt, Stat::Min),
    ("avg, ms", MetricId::Rtt, Stat::Mean),
    ("max, ms", MetricId::Rtt, Stat::Max),
    ("stddev, ms", MetricId::Rtt, Stat::Stddev),
    ("median, ms", MetricId::Rtt, Stat::P50),
    ("90 %, ms", MetricId::Rtt, Stat::P90),
    ("99 %, ms", MetricId::Rtt, Stat::P99),
    ("99.9 %, ms", MetricId::Rtt, Stat::P999),
    ("sending avg, ms", MetricId::RttSend, Stat::Mean),
    ("own queue avg, ms", MetricId::RttQueue, Stat::Mean),
    ("path and peer avg, ms", MetricId::RttKernel, Stat::Mean),
    ("waking up avg, ms", MetricId::RttWake, Stat::Mean),
];

/// A row of the table; none when no size has a value.
fn push_stat_row(
    table: &mut ReportTable,
    name: &str,
    sizes: &[u32],
    cell: impl Fn(u32) -> Option<String>,
) {
    let cells: Vec<Option<String>> = sizes.iter().map(|&size| cell(size)).collect();
    if cells.iter().any(Option::is_some) {
        let texts = cells.into_iter().map(|cell| or_dash(cell, |text| text));
        table.add_measured_row(std::iter::once(name.to_owned()).chain(texts));
    }
}

fn whole_number(value: f64) -> String {
    format!("{value:.0}")
}

/// A share as a percentage without its sign; counts of probes have no more than two digits of it.
fn percent(ratio: f64) -> String {
    number::significant(ratio * 100.0, 2)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Caveat, CaveatCode, MeasurementEnd, MetWay, NatMeeting, Plan, RecordId, StampPlan, Summary,
        Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;

    fn record(sizes: &[u32], mode: PingMode) -> Record {
        let plan = PingPlan {
            host: "192.0.2.1".to_owned(),
            sizes_bytes: sizes.to_vec(),
            count: Some(10_000),
            mode,
            ..PingPlan::default()
        };
        let tool = Tool { name: "linerate".to_owned(), version: "0.1.0".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record =
            Record::from_plan(id, tool, Plan::Ping(plan), WallTime::from_unix_nanos(0));
        record.duration_ns = 67_000_000;
        record.ends =
            vec![MeasurementEnd { clock_tick_ns: Some(10.04), ..MeasurementEnd::default() }];
        record
    }

    fn add_summary_rows(record: &mut Record, size: u32) {
        let value =
            |metric, value| Summary::from_value(metric, Stat::Value, value).at_payload(size);
        let rtt = |stat, ns| Summary::from_value(MetricId::Rtt, stat, ns).at_payload(size);
        let kernel = |stat, ns| Summary::from_value(MetricId::RttKernel, stat, ns).at_payload(size);
        record.summary.extend([
            rtt(Stat::Min, 5_988.0),
            rtt(Stat::Mean, 6_412.0),
            rtt(Stat::Max, 83_210.0),
            rtt(Stat::Stddev, 1_944.0),
            rtt(Stat::P50, 6_300.0),
            rtt(Stat::P90, 6_400.0),
            rtt(Stat::P95, 6_500.0),
            rtt(Stat::P99, 9_100.0),
            rtt(Stat::P999, 31_000.0),
            kernel(Stat::Min, 2_010.0),
            kernel(Stat::Mean, 2_130.0),
            kernel(Stat::Max, 9_000.0),
            kernel(Stat::Stddev, 110.0),
            value(MetricId::Pps, 149_731.2),
            value(MetricId::PpsPaper, 155_957.6),
            value(MetricId::Sent, 10_000.0),
            value(MetricId::Received, 9_999.0),
            value(MetricId::LossRatio, 0.0001),
            value(MetricId::LossRatioHigh, 0.000_566),
            value(MetricId::Duplicates, 0.0),
            value(MetricId::Reordered, 0.0),
            value(MetricId::Late, 1.0),
        ]);
    }

    fn report_text(record: &Record) -> String {
        crate::record::document(record).text(None)
    }

    #[test]
    fn one_size_reads_like_ping_with_the_clocks_digits() {
        let mut record = record(&[56], PingMode::Flood);
        add_summary_rows(&mut record, 56);
        record.caveats.push(Caveat::new(CaveatCode::SameHost, "seen", "do"));
        let expected = "\
RTT 0.00630 ms (median) to 192.0.2.1, 1 of 10000 lost \u{b7} 67 % of the program's RTT within this host \u{b7} good \u{b7} 00000000-0000
ping of 192.0.2.1 by ICMP echo: 56 bytes of payload, 10000 probes, flood (stop and wait)
  started 1970-01-01T00:00:00.000Z, took 0.0670 s, linerate 0.1.0
  10000 sent, 9999 answered, 0.010 % lost (95 %: at most 0.057 %), 0 duplicates, 0 reordered, 1 late
  round-trip min/avg/max/stddev = 0.00599/0.00641/0.08321/0.00194 ms, 149731 pings/s (1000/avg: 155957)
  percentiles 50/90/95/99/99.9 = 0.00630/0.00640/0.00650/0.00910/0.03100 ms
  kernel min/avg/max/stddev = 0.00201/0.00213/0.00900/0.00011 ms
  split path and peer 0.00213 ms (33 %), this host 0.00428 ms (67 %)
  the clock steps by 10 ns; no figure is printed finer
  note: seen; do
";
        assert_eq!(report_text(&record), expected);
    }

    #[test]
    fn the_split_names_its_parts_in_the_order_of_travel_and_the_probes_it_lacks() {
        let mut record = record(&[56], PingMode::Flood);
        add_summary_rows(&mut record, 56);
        let mut part = |metric, ns, n| {
            record
                .summary
                .push(Summary::from_value(metric, Stat::Mean, ns).with_n(n).at_payload(56));
        };
        part(MetricId::RttSend, 1_850.0, 9_000);
        part(MetricId::RttQueue, 410.0, 9_000);
        part(MetricId::RttWake, 2_022.0, 9_000);
        let rtt = record.summary.iter_mut().filter(|row| row.metric == MetricId::Rtt);
        rtt.for_each(|row| row.n = Some(9_999));
        // 1850 + 410 + 2130 + 2022 = 6412.
        let line = "  split sending 0.00185 ms (29 %), own queue 0.00041 ms (6 %), path and peer \
                    0.00213 ms (33 %), waking up 0.00202 ms (32 %); of 9000 probes\n";
        assert!(report_text(&record).contains(line), "{}", report_text(&record));
    }

    #[test]
    fn outages_are_told_with_their_times_and_marks_with_their_share() {
        let mut record = record(&[56], PingMode::Paced);
        add_summary_rows(&mut record, 56);
        let value = |metric, value| Summary::from_value(metric, Stat::Value, value).at_payload(56);
        let outage = |s: u64, length_s: u64, probes_lost| LostStretch {
            payload_bytes: 56,
            start_ns: s * 1_000_000_000,
            length_ns: length_s * 1_000_000_000,
            probes_lost,
        };
        record.summary.push(value(MetricId::CongestionMarked, 0.25));
        record.summary.push(value(MetricId::Outages, 5.0));
        record.summary.push(value(MetricId::OutageMax, 90e9));
        record.outages = vec![outage(12, 3, 4), outage(20, 2, 2), outage(30, 2, 2)];
        let line = "  5 outages: 3.00 s from 12.0 s on (4 probes), \
                    2.00 s from 20.0 s on (2 probes), 2.00 s from 30.0 s on (2 probes), \
                    and more; the longest 90.0 s\n";
        let text = report_text(&record);
        assert!(text.contains(line), "{text}");
        assert!(text.contains("  25 % of the replies came marked by a queue (CE)\n"), "{text}");
    }

    #[test]
    fn a_paced_ping_has_no_rate_for_it_was_asked_for() {
        for sizes in [&[56][..], &[56, 1500]] {
            for (mode, told) in
                [(PingMode::Paced, false), (PingMode::Flood, true), (PingMode::Window(4), true)]
            {
                let mut record = record(sizes, mode);
                sizes.iter().for_each(|&size| add_summary_rows(&mut record, size));
                let text = report_text(&record);
                assert_eq!(text.contains("pings/s"), told, "{text}");
                assert_eq!(text.contains("1000/avg"), told, "{text}");
            }
        }
    }

    #[test]
    fn several_sizes_are_columns_and_rows_without_values_are_left_out() {
        let mut record = record(&[56, 1500, 9000], PingMode::Flood);
        add_summary_rows(&mut record, 56);
        add_summary_rows(&mut record, 1500);
        record.summary.retain(|row| row.metric != MetricId::RttKernel);
        record.summary.push(Summary::from_value(MetricId::Sent, Stat::Value, 3.0).at_payload(9000));
        let text = report_text(&record);
        let has =
            |line: &str| assert!(text.lines().any(|other| other == line), "no {line:?} in {text}");
        has("  payload, bytes        56     1500  9000");
        has("  min, ms          0.00599  0.00599     \u{2014}");
        has("  1000/avg          155957   155957     \u{2014}");
        has("  sent               10000    10000     3");
        has("  lost, %            0.010    0.010     \u{2014}");
        has("  lost at most, %    0.057    0.057     \u{2014}");
        has("  late                   1        1     \u{2014}");
        assert!(!text.contains("kernel"), "{text}");
        assert!(!text.contains("duplicates"), "{text}");
    }

    #[test]
    fn one_answer_has_no_deviation_and_none_has_no_times() {
        let mut record = record(&[56], PingMode::Paced);
        add_summary_rows(&mut record, 56);
        record.summary.retain(|row| row.stat != Stat::Stddev);
        assert!(
            report_text(&record).contains("round-trip min/avg/max = 0.00599/0.00641/0.08321 ms\n")
        );
        record.summary.retain(|row| row.stat == Stat::Value);
        assert!(!report_text(&record).contains("round-trip"));
        record.summary.clear();
        assert!(!report_text(&record).contains("sent"), "{}", report_text(&record));
    }

    #[test]
    fn no_figure_is_finer_than_a_coarse_clock() {
        let mut record = record(&[56], PingMode::Flood);
        add_summary_rows(&mut record, 56);
        record.ends[0].clock_tick_ns = Some(1_000.0);
        let text = report_text(&record);
        assert!(text.contains("min/avg/max/stddev = 0.006/0.006/0.083/0.002 ms"), "{text}");
        assert!(text.starts_with("RTT 0.006 ms (median) to 192.0.2.1"), "{text}");
    }

    #[test]
    fn a_way_between_two_hosts_behind_nat_is_named() {
        let text_by = |way| {
            let mut record = record(&[56], PingMode::Flood);
            add_summary_rows(&mut record, 56);
            let at = "198.51.100.7:5210".parse().expect("an address");
            let met = Some(NatMeeting { at, way, local_port: 40_000 });
            if let Plan::Ping(plan) = &mut record.plan {
                plan.stamp = Some(StampPlan { authenticated: false, reply_dscp: None, met });
            }
            report_text(&record)
        };
        let hole = text_by(MetWay::Hole);
        assert!(
            hole.starts_with("RTT 0.00630 ms (median) to 192.0.2.1, through a punched hole, "),
            "{hole}"
        );
        let relay = text_by(MetWay::Relay);
        let said = "RTT 0.00630 ms (median) to a host behind NAT, passed on by 198.51.100.7, ";
        assert!(relay.starts_with(said), "{relay}");
    }

    #[test]
    fn what_was_not_counted_is_not_0() {
        let mut record = record(&[56], PingMode::Paced);
        record.summary.push(Summary::from_value(MetricId::Sent, Stat::Value, 2.0).at_payload(56));
        let line = "  2 sent, \u{2014} answered, \u{2014} % lost, \u{2014} duplicates, \
                    \u{2014} reordered, \u{2014} late\n";
        assert!(report_text(&record).contains(line), "{}", report_text(&record));
    }
}
