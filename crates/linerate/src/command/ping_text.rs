//! What `linerate ping` prints: a line for each probe, and the summary in the shape of ping's,
//! with as many digits as the clock justifies. Pure: values in, text out.

use std::fmt::Write as _;

use linerate_core::record::{MetricId, PingPlan, PingProgress, PingReply, Plan, Record, Stat};
use linerate_engine::rtt::tick::decimals_of_ms;

/// Width of a column of the table by size.
const COLUMN: usize = 12;

/// Figures in ms with a fixed number of decimals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits(usize);

impl Digits {
    /// The digits that a clock with this step justifies; all of them where it is not known.
    pub(crate) fn of_step(step_ns: Option<f64>) -> Self {
        Self(decimals_of_ms(step_ns.unwrap_or(1.0)))
    }

    fn ms(self, ns: f64) -> String {
        format!("{:.*}", self.0, ns / 1e6)
    }
}

/// The line of one probe.
pub(crate) fn reply(reply: &PingReply, from: &str, digits: Digits) -> String {
    let ttl = reply.ttl.map_or_else(String::new, |ttl| format!(" ttl={ttl}"));
    let probe = format!("{} octets from {from}: seq={}{ttl}", reply.payload_bytes, reply.sequence);
    match reply.rtt_ns {
        Some(rtt_ns) => format!("{probe} time={} ms", digits.ms(rtt_ns as f64)),
        None if reply.duplicate => format!("{probe} again (DUP)"),
        None => {
            format!("{} octets to {from}: seq={} no answer", reply.payload_bytes, reply.sequence)
        }
    }
}

/// The state of a flood, on one line that the next one covers.
pub(crate) fn progress(progress: &PingProgress) -> String {
    let of = progress.count.map_or_else(String::new, |count| format!(" of {count}"));
    let seconds = progress.elapsed_ns as f64 / 1e9;
    let rate = if seconds > 0.0 { progress.answered as f64 / seconds } else { 0.0 };
    let open = progress.sent.saturating_sub(progress.answered);
    format!(
        "{} octets: {}{of} answered, {open} open or lost, {rate:.0}/s, {seconds:.1} s ",
        progress.payload_bytes, progress.answered
    )
}

/// The summary of a ping record.
pub(crate) fn summary(record: &Record) -> String {
    let Plan::Ping(plan) = &record.plan else { return String::new() };
    let step_ns = record.ends.first().and_then(|end| end.clock_tick_ns);
    let view = View { record, plan, digits: Digits::of_step(step_ns) };
    let sizes = view.measured_sizes();
    let mut out = String::new();
    match sizes.as_slice() {
        [] => {}
        [size] => view.one_size(&mut out, *size),
        sizes => view.table(&mut out, sizes),
    }
    for caveat in &record.caveats {
        let _ = writeln!(out, "note: {caveat}");
    }
    if !sizes.is_empty()
        && let Some(step_ns) = step_ns
    {
        let _ = writeln!(out, "the clock steps by {step_ns:.0} ns; no figure is printed finer");
    }
    out
}

struct View<'a> {
    record: &'a Record,
    plan: &'a PingPlan,
    digits: Digits,
}

impl View<'_> {
    fn value(&self, metric: MetricId, stat: Stat, size: u32) -> Option<f64> {
        self.record.value_at(metric, stat, size)
    }

    fn total(&self, metric: MetricId, size: u32) -> f64 {
        self.value(metric, Stat::Value, size).unwrap_or(0.0)
    }

    fn measured_sizes(&self) -> Vec<u32> {
        let sent = |size: &u32| self.value(MetricId::Sent, Stat::Value, *size).is_some();
        self.plan.sizes_bytes.iter().copied().filter(sent).collect()
    }

    fn one_size(&self, out: &mut String, size: u32) {
        let _ = writeln!(out, "--- {} ping statistics, {size} octets ---", self.plan.host);
        let _ = writeln!(out, "{}", self.counts(size));
        if let Some(line) = self.round_trip(size) {
            let _ = writeln!(out, "{line}");
        }
        if let Some(line) = self.percentiles(size) {
            let _ = writeln!(out, "{line}");
        }
        if let Some(line) = self.kernel_split(size) {
            let _ = writeln!(out, "{line}");
        }
    }

    fn counts(&self, size: u32) -> String {
        let count = |metric| self.total(metric, size);
        let mut line = format!(
            "{:.0} sent, {:.0} answered, {}",
            count(MetricId::Sent),
            count(MetricId::Received),
            self.loss(size)
        );
        for (metric, words) in [
            (MetricId::Duplicates, "duplicates"),
            (MetricId::Reordered, "reordered"),
            (MetricId::Late, "late"),
        ] {
            let _ = write!(line, ", {:.0} {words}", count(metric));
        }
        line
    }

    fn loss(&self, size: u32) -> String {
        let percent = |ratio: f64| ratio * 100.0;
        let Some(ratio) = self.value(MetricId::LossRatio, Stat::Value, size) else {
            return "nothing sent".to_owned();
        };
        let bound = self
            .value(MetricId::LossRatioHigh, Stat::Value, size)
            .map_or_else(String::new, |high| format!(" (95 %: at most {:.3} %)", percent(high)));
        format!("{:.3} % lost{bound}", percent(ratio))
    }

    /// Values of one metric joined by slashes, or `None` when one is not there.
    fn slashed(&self, metric: MetricId, stats: &[Stat], size: u32) -> Option<String> {
        let values: Option<Vec<String>> = stats
            .iter()
            .map(|stat| self.value(metric, *stat, size).map(|ns| self.digits.ms(ns)))
            .collect();
        Some(values?.join("/"))
    }

    /// One answer has no standard deviation, and then the line does without.
    fn spread(&self, metric: MetricId, size: u32) -> Option<String> {
        let whole = [Stat::Min, Stat::Mean, Stat::Max, Stat::Stddev];
        self.slashed(metric, &whole, size)
            .map(|values| format!("min/avg/max/stddev = {values} ms"))
            .or_else(|| {
                let values = self.slashed(metric, &whole[..3], size)?;
                Some(format!("min/avg/max = {values} ms"))
            })
    }

    fn round_trip(&self, size: u32) -> Option<String> {
        let mut line = format!("round-trip {}", self.spread(MetricId::Rtt, size)?);
        if let Some(pps) = self.value(MetricId::Pps, Stat::Value, size) {
            let _ = write!(line, ", {pps:.0} pings/s");
        }
        if let Some(paper) = self.value(MetricId::PpsPaper, Stat::Value, size) {
            let _ = write!(line, " (1000/avg: {paper:.0})");
        }
        Some(line)
    }

    fn percentiles(&self, size: u32) -> Option<String> {
        let stats = [Stat::P50, Stat::P90, Stat::P95, Stat::P99, Stat::P999];
        let values = self.slashed(MetricId::Rtt, &stats, size)?;
        Some(format!("percentiles 50/90/95/99/99.9 = {values} ms"))
    }

    /// The kernel's own round trip and, by the means, what the rest of this host adds.
    fn kernel_split(&self, size: u32) -> Option<String> {
        let spread = self.spread(MetricId::RttKernel, size)?;
        let kernel = self.value(MetricId::RttKernel, Stat::Mean, size)?;
        let whole = self.value(MetricId::Rtt, Stat::Mean, size)?;
        let percent = 100.0 * kernel / whole;
        Some(format!(
            "kernel {spread}; path and peer {} ms ({percent:.0} %), this host {} ms ({:.0} %)",
            self.digits.ms(kernel),
            self.digits.ms(whole - kernel),
            100.0 - percent,
        ))
    }

    /// Sizes as columns.
    fn table(&self, out: &mut String, sizes: &[u32]) {
        let _ = writeln!(out, "--- {} ping statistics by payload ---", self.plan.host);
        let heads: Vec<String> = sizes.iter().map(u32::to_string).collect();
        row(out, "payload, octets", &heads);
        let ms = |metric, stat| {
            move |view: &Self, size| view.value(metric, stat, size).map(|ns| view.digits.ms(ns))
        };
        let whole = |metric| {
            move |view: &Self, size| {
                view.value(metric, Stat::Value, size).map(|value| format!("{value:.0}"))
            }
        };
        let percent = |metric| {
            move |view: &Self, size| {
                let ratio = view.value(metric, Stat::Value, size)?;
                Some(format!("{:.3}", ratio * 100.0))
            }
        };
        self.row(out, "min, ms", sizes, ms(MetricId::Rtt, Stat::Min));
        self.row(out, "avg, ms", sizes, ms(MetricId::Rtt, Stat::Mean));
        self.row(out, "max, ms", sizes, ms(MetricId::Rtt, Stat::Max));
        self.row(out, "stddev, ms", sizes, ms(MetricId::Rtt, Stat::Stddev));
        self.row(out, "median, ms", sizes, ms(MetricId::Rtt, Stat::P50));
        self.row(out, "99 %, ms", sizes, ms(MetricId::Rtt, Stat::P99));
        self.row(out, "kernel avg, ms", sizes, ms(MetricId::RttKernel, Stat::Mean));
        self.row(out, "pings/s", sizes, whole(MetricId::Pps));
        self.row(out, "1000/avg", sizes, whole(MetricId::PpsPaper));
        self.row(out, "sent", sizes, whole(MetricId::Sent));
        self.row(out, "lost, %", sizes, percent(MetricId::LossRatio));
        for (name, metric) in [
            ("duplicates", MetricId::Duplicates),
            ("reordered", MetricId::Reordered),
            ("late", MetricId::Late),
        ] {
            if sizes.iter().any(|size| self.total(metric, *size) > 0.0) {
                self.row(out, name, sizes, whole(metric));
            }
        }
    }

    /// A row of the table; none when no size has a value.
    fn row(
        &self,
        out: &mut String,
        name: &str,
        sizes: &[u32],
        cell: impl Fn(&Self, u32) -> Option<String>,
    ) {
        let cells: Vec<Option<String>> = sizes.iter().map(|size| cell(self, *size)).collect();
        if cells.iter().any(Option::is_some) {
            let texts: Vec<String> =
                cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect();
            row(out, name, &texts);
        }
    }
}

fn row(out: &mut String, name: &str, cells: &[String]) {
    let _ = write!(out, "{name:<16}");
    for cell in cells {
        let _ = write!(out, "{cell:>COLUMN$}");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Caveat, CaveatCode, End, RecordId, Summary, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(sizes: &[u32]) -> Record {
        let plan = PingPlan {
            host: "192.0.2.1".to_owned(),
            sizes_bytes: sizes.to_vec(),
            ..PingPlan::default()
        };
        let tool = Tool { name: "linerate".to_owned(), version: "0.1.0".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::begin(id, tool, Plan::Ping(plan), WallTime::from_unix_nanos(0));
        record.ends = vec![End { clock_tick_ns: Some(10.04), ..End::default() }];
        record
    }

    fn fill(record: &mut Record, size: u32) {
        let value = |metric, value| Summary::of(metric, Stat::Value, value).at_payload(size);
        let rtt = |stat, ns| Summary::of(MetricId::Rtt, stat, ns).at_payload(size);
        let kernel = |stat, ns| Summary::of(MetricId::RttKernel, stat, ns).at_payload(size);
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

    #[test]
    fn one_size_reads_like_ping_with_the_clocks_digits() {
        let mut record = record(&[56]);
        fill(&mut record, 56);
        record.caveats.push(Caveat::new(CaveatCode::SameHost, "seen", "do"));
        let expected = "\
--- 192.0.2.1 ping statistics, 56 octets ---
10000 sent, 9999 answered, 0.010 % lost (95 %: at most 0.057 %), 0 duplicates, 0 reordered, 1 late
round-trip min/avg/max/stddev = 0.00599/0.00641/0.08321/0.00194 ms, 149731 pings/s (1000/avg: 155958)
percentiles 50/90/95/99/99.9 = 0.00630/0.00640/0.00650/0.00910/0.03100 ms
kernel min/avg/max/stddev = 0.00201/0.00213/0.00900/0.00011 ms; path and peer 0.00213 ms (33 %), this host 0.00428 ms (67 %)
note: seen; do
the clock steps by 10 ns; no figure is printed finer
";
        assert_eq!(summary(&record), expected);
    }

    #[test]
    fn several_sizes_are_columns_and_rows_without_values_are_left_out() {
        let mut record = record(&[56, 1500, 9000]);
        fill(&mut record, 56);
        fill(&mut record, 1500);
        record.summary.retain(|row| row.metric != MetricId::RttKernel);
        record.summary.push(Summary::of(MetricId::Sent, Stat::Value, 3.0).at_payload(9000));
        let text = summary(&record);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "payload, octets           56        1500        9000");
        assert_eq!(lines[2], "min, ms              0.00599     0.00599           -");
        assert!(!text.contains("kernel"), "{text}");
        assert!(
            text.contains("\nsent                   10000       10000           3\n"),
            "{text}"
        );
        assert!(
            text.contains("\nlate                       1           1           -\n"),
            "{text}"
        );
        assert!(!text.contains("duplicates"), "{text}");
    }

    #[test]
    fn one_answer_has_no_deviation_and_none_has_no_times() {
        let mut record = record(&[56]);
        fill(&mut record, 56);
        record.summary.retain(|row| row.stat != Stat::Stddev);
        assert!(summary(&record).contains("round-trip min/avg/max = 0.00599/0.00641/0.08321 ms"));
        record.summary.retain(|row| row.stat == Stat::Value);
        assert!(!summary(&record).contains("round-trip"));
        record.summary.clear();
        assert_eq!(summary(&record), "");
    }

    #[test]
    fn lines_of_probes_name_what_happened() {
        let digits = Digits::of_step(Some(1.0));
        let answered = PingReply {
            sequence: 7,
            payload_bytes: 56,
            rtt_ns: Some(6_412),
            ttl: Some(64),
            duplicate: false,
        };
        let cases = [
            (answered.clone(), "56 octets from h: seq=7 ttl=64 time=0.006412 ms"),
            (
                PingReply { rtt_ns: None, duplicate: true, ..answered.clone() },
                "56 octets from h: seq=7 ttl=64 again (DUP)",
            ),
            (PingReply { rtt_ns: None, ttl: None, ..answered }, "56 octets to h: seq=7 no answer"),
        ];
        for (event, line) in cases {
            assert_eq!(reply(&event, "h", digits), line);
        }
    }

    #[test]
    fn progress_names_the_rate_so_far() {
        let state = PingProgress {
            payload_bytes: 56,
            sent: 1001,
            answered: 1000,
            count: Some(10_000),
            elapsed_ns: 500_000_000,
        };
        let line = "56 octets: 1000 of 10000 answered, 1 open or lost, 2000/s, 0.5 s ";
        assert_eq!(progress(&state), line);
    }
}
