//! Lines that show a measurement while it runs, as wide as their terminal: a row an interval of TCP
//! and UDP, a row a sub-interval of a search, a line a probe of a ping. Pure: values in, text out.

use linerate_core::record::{Direction, IntervalRow, PingProgress, PingReply, SubInterval};

use linerate_core::stats::LogHistogram;

use crate::number::{amount, buffer, measured_rate, ms_of_clock, significant};
use crate::words;

/// Printer of a table's rows while a measurement runs; the first row comes with the headings.
#[derive(Clone, Debug)]
pub struct Rows {
    columns: &'static [LiveColumn],
    cells: fn(&IntervalRow) -> Vec<String>,
    width: Option<usize>,
    headed: bool,
}

impl Rows {
    /// Rows of a TCP test for a terminal of `width` columns.
    pub const fn tcp(width: Option<usize>) -> Self {
        Self { columns: TCP, cells: tcp_cells, width, headed: false }
    }

    /// Rows of a UDP test for a terminal of `width` columns.
    pub const fn udp(width: Option<usize>) -> Self {
        Self { columns: UDP, cells: udp_cells, width, headed: false }
    }

    /// Rows of a capacity search for a terminal of `width` columns.
    pub const fn search(width: Option<usize>) -> Self {
        Self { columns: SEARCH, cells: udp_cells, width, headed: false }
    }

    /// The row of an interval of one stream or of all, with the headings before the first row.
    pub fn interval(&mut self, row: &IntervalRow) -> String {
        self.format_row(&(self.cells)(row), &remarks(row))
    }

    /// The row of a sub-interval of a capacity search.
    pub fn sub_interval(&mut self, row: &SubInterval) -> String {
        self.format_row(&search_cells(row), "")
    }

    fn format_row(&mut self, cells: &[String], remark: &str) -> String {
        let row = format_cells(self.columns, cells, remark, self.width);
        if std::mem::replace(&mut self.headed, true) {
            return row;
        }
        let heads: Vec<String> = self.columns.iter().map(|column| column.0.to_owned()).collect();
        format!("{}\n{row}", format_cells(self.columns, &heads, "", self.width))
    }
}

/// A column: heading, width in characters, and rank in which a narrow terminal leaves it out, the
/// highest first; a column of rank 0 always stays.
#[derive(Debug)]
struct LiveColumn(&'static str, usize, u8);

/// One row of cells, all right-aligned but the first. Columns that do not fit are left out; a
/// remark that does not fit stands on the next line.
fn format_cells(
    columns: &[LiveColumn],
    cells: &[String],
    remark: &str,
    width: Option<usize>,
) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let wide = |kept: &[usize]| kept.iter().map(|&at| columns[at].1 + 1).sum::<usize>() - 1;
    while wide(&kept) > width {
        let least = kept.iter().copied().max_by_key(|&at| columns[at].2);
        let Some(least) = least.filter(|&at| columns[at].2 > 0) else { break };
        kept.retain(|&at| at != least);
    }
    let cell = |&at: &usize| {
        let (cell, wide) = (&cells[at], columns[at].1);
        if at == 0 { format!("{cell:<wide$}") } else { format!("{cell:>wide$}") }
    };
    let text = kept.iter().map(cell).collect::<Vec<String>>().join(" ");
    let text = text.trim_end();
    match remark {
        "" => text.to_owned(),
        remark if text.chars().count() + 2 + remark.len() <= width => format!("{text}  {remark}"),
        remark => format!("{text}\n{}", words::wrapped(remark, 10, width).trim_end()),
    }
}

/// Columns of a TCP test, together 79 characters wide.
const TCP: &[LiveColumn] = &[
    LiveColumn("stream", 8, 0),
    LiveColumn("interval", 13, 0),
    LiveColumn("received", 9, 3),
    LiveColumn("goodput", 13, 0),
    LiveColumn("resent", 6, 1),
    LiveColumn("cwnd", 9, 2),
    LiveColumn("RTT", 10, 0),
];

fn tcp_cells(row: &IntervalRow) -> Vec<String> {
    let [stream, interval, bytes, goodput] = start_cells(row);
    let resent = or_dash(row.retransmits, |count| count.to_string());
    let cwnd = or_dash(row.cwnd_bytes, buffer);
    vec![stream, interval, bytes, goodput, resent, cwnd, or_dash(row.rtt_ns, milliseconds)]
}

/// Columns of a UDP test, together 80 characters wide.
const UDP: &[LiveColumn] = &[
    LiveColumn("stream", 8, 0),
    LiveColumn("interval", 13, 0),
    LiveColumn("received", 9, 3),
    LiveColumn("goodput", 13, 0),
    LiveColumn("jitter", 9, 2),
    LiveColumn("lost/sent", 15, 0),
    LiveColumn("loss", 7, 1),
];

fn udp_cells(row: &IntervalRow) -> Vec<String> {
    let datagrams = row.datagrams.unwrap_or_default();
    let [stream, interval, bytes, goodput] = start_cells(row);
    let jitter = or_dash(datagrams.jitter_ns, milliseconds);
    // What was passed over in an interval may have been sent in one before, so it is a part of what
    // became known in this one. Another program's server tells what it received at the end alone.
    let passed = datagrams.received.cast_signed().saturating_add(datagrams.lost);
    let lost = or_dash(row.datagrams, |counts| format!("{}/{}", counts.lost, passed));
    let loss = match passed {
        ..=0 => "-".to_owned(),
        passed => percent(datagrams.lost.max(0) as f64 / passed as f64),
    };
    vec![stream, interval, bytes, goodput, jitter, lost, loss]
}

/// Columns of a capacity search, together 79 characters wide.
const SEARCH: &[LiveColumn] = &[
    LiveColumn("interval", 13, 0),
    LiveColumn("IP packets", 13, 0),
    LiveColumn("offered", 13, 1),
    LiveColumn("loss", 7, 0),
    LiveColumn("delay above least", 17, 3),
    LiveColumn("RTT", 15, 2),
];

fn search_cells(row: &SubInterval) -> Vec<String> {
    let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
    let range = |least: Option<u64>, most: Option<u64>| {
        or_dash(least.zip(most), |(least, most)| format!("{}-{} ms", ms(least), ms(most)))
    };
    let span = &row.span;
    vec![
        interval(span.start_ns(), span.end_ns()),
        measured_rate(row.ip_bps),
        or_dash(row.offered_bps, measured_rate),
        or_dash(row.loss_ratio, percent),
        range(span.delay_min_ns, span.delay_max_ns),
        range(row.rtt_min_ns, row.rtt_max_ns),
    ]
}

/// The first cells of a row: stream and direction, interval, payload, goodput.
fn start_cells(row: &IntervalRow) -> [String; 4] {
    let stream = row.flow.map_or_else(|| "all".to_owned(), |flow| flow.to_string());
    let arrow = match row.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    [
        format!("{stream:>3} {arrow}"),
        interval(row.start_ns, row.end_ns),
        amount(row.bytes),
        measured_rate(row.goodput_bps),
    ]
}

fn interval(start_ns: u64, end_ns: u64) -> String {
    format!("{:.2}-{:.2} s", seconds(start_ns), seconds(end_ns))
}

/// The printed value, or a dash where it is absent.
fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn milliseconds(ns: u64) -> String {
    format!("{} ms", ms_of_clock(ns as f64, 3))
}

fn percent(ratio: f64) -> String {
    format!("{:.2} %", ratio * 100.0)
}

/// Datagrams lost at the receiver, duplicates, reordering, and the mark of an omitted interval.
fn remarks(row: &IntervalRow) -> String {
    let datagrams = row.datagrams.unwrap_or_default();
    let counts = [
        (datagrams.lost_here, "lost at the receiver"),
        (datagrams.duplicates, "duplicates"),
        (datagrams.reordered, "reordered"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    parts.extend(row.omitted.then(|| "omit".to_owned()));
    parts.join(", ")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The line of one probe; its round trip in ms has at most `decimals` decimals.
pub fn reply_line(reply: &PingReply, from: &str, decimals: usize) -> String {
    let ttl = reply.ttl.map_or_else(String::new, |ttl| format!(" ttl={ttl}"));
    let probe = format!("{} bytes from {from}: seq={}{ttl}", reply.payload_bytes, reply.sequence);
    match reply.rtt_ns {
        Some(rtt_ns) => format!("{probe} time={} ms", ms_of_clock(rtt_ns as f64, decimals)),
        None if reply.duplicate => format!("{probe} again (DUP)"),
        None => {
            format!("{} bytes to {from}: seq={} no answer", reply.payload_bytes, reply.sequence)
        }
    }
}

/// The state of a flood ping, printed over the line of the state before.
pub fn progress(progress: &PingProgress) -> String {
    let of = progress.count.map_or_else(String::new, |count| format!(" of {count}"));
    let seconds = progress.elapsed_ns as f64 / 1e9;
    let rate = if seconds > 0.0 { progress.answered as f64 / seconds } else { 0.0 };
    let open = progress.sent.saturating_sub(progress.answered);
    format!(
        "{} bytes: {}{of} answered, {open} open or lost, {rate:.0}/s, {seconds:.1} s ",
        progress.payload_bytes, progress.answered
    )
}

/// Running totals of a ping without end: probes sent and lost, last and median round trip.
#[derive(Clone, Debug, Default)]
pub struct PingTotals {
    sent: u64,
    lost: u64,
    last_ns: Option<u64>,
    times: LogHistogram,
}

impl PingTotals {
    /// Counts a probe that was answered or given up; a duplicate answer is not counted.
    pub fn count_probe(&mut self, reply: &PingReply) {
        if reply.duplicate {
            return;
        }
        self.sent += 1;
        self.lost += u64::from(reply.rtt_ns.is_none());
        self.last_ns = reply.rtt_ns;
        if let Some(ns) = reply.rtt_ns {
            self.times.record(ns);
        }
    }

    /// The totals in a line: `41 sent, 1 lost (2.4 %), last 0.094 ms, median 0.091 ms`, with as
    /// many decimals as the clock has.
    pub fn totals_line(&self, decimals: usize) -> String {
        let share = 100.0 * self.lost as f64 / self.sent.max(1) as f64;
        let ms = |ns: Option<u64>| {
            ns.map_or_else(
                || "none".to_owned(),
                |ns| format!("{} ms", ms_of_clock(ns as f64, decimals)),
            )
        };
        format!(
            "{} sent, {} lost ({} %), last {}, median {}",
            self.sent,
            self.lost,
            significant(share, 2),
            ms(self.last_ns),
            ms(self.times.quantile(0.5))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_probes_name_what_happened() {
        let answered = PingReply {
            sequence: 7,
            payload_bytes: 56,
            rtt_ns: Some(6_412),
            ttl: Some(64),
            duplicate: false,
        };
        let cases = [
            (answered.clone(), "56 bytes from h: seq=7 ttl=64 time=0.00641 ms"),
            (
                PingReply { rtt_ns: None, duplicate: true, ..answered.clone() },
                "56 bytes from h: seq=7 ttl=64 again (DUP)",
            ),
            (PingReply { rtt_ns: None, ttl: None, ..answered }, "56 bytes to h: seq=7 no answer"),
        ];
        for (event, line) in cases {
            assert_eq!(reply_line(&event, "h", 6), line);
        }
    }

    /// Of 1, 2 and 3 ms the median is 2 ms, within the three digits of the histogram.
    #[test]
    fn a_ping_without_end_says_where_it_stands() {
        let mut standing = PingTotals::default();
        assert_eq!(standing.totals_line(3), "0 sent, 0 lost (0 %), last none, median none");
        let reply = |rtt_ns, duplicate| PingReply {
            sequence: 0,
            payload_bytes: 56,
            rtt_ns,
            ttl: None,
            duplicate,
        };
        for ms in [1, 3, 2] {
            standing.count_probe(&reply(Some(ms * 1_000_000), false));
        }
        standing.count_probe(&reply(None, true));
        let line = standing.totals_line(3);
        assert!(line.starts_with("3 sent, 0 lost (0 %), last 2.000 ms, median 2.00"), "{line}");
        standing.count_probe(&reply(None, false));
        let line = standing.totals_line(3);
        assert!(line.starts_with("4 sent, 1 lost (25 %), last none, median 2.00"), "{line}");
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
        let line = "56 bytes: 1000 of 10000 answered, 1 open or lost, 2000/s, 0.5 s ";
        assert_eq!(progress(&state), line);
    }
}
