//! Live lines of a throughput test: one an interval and stream, and their sum; the sum alone where
//! there are too many streams to follow.

use linerate_core::record::{
    BenchTrial, DatagramRow, Direction, Event, IntervalRow, SubInterval, TrialPort,
};
use linerate_core::units::{BitRate, PacketRate};

use crate::command::measure::Output;
use crate::output;

/// More streams than this in a direction are shown as their sum.
const STREAMS_MAX: u16 = 16;

/// Prints the lines of a TCP test as they come.
pub(crate) struct TcpLines(Lines);

/// Prints the lines of a UDP test as they come: of its intervals, or of a search's sub-intervals.
pub(crate) struct UdpLines {
    lines: Lines,
    searches: bool,
}

impl TcpLines {
    /// Lines for people, or none.
    pub(crate) const fn new(flags: &Output, streams: u16, verbose: bool) -> Self {
        Self(Lines::new(flags, streams, verbose, HEAD, interval_line))
    }

    /// Prints what an event says.
    pub(crate) fn event(&mut self, event: &Event) {
        self.0.event(event);
    }
}

impl UdpLines {
    /// Lines for people, or none.
    pub(crate) const fn new(flags: &Output, streams: u16, verbose: bool) -> Self {
        let lines = Lines::new(flags, streams, verbose, UDP_HEAD, udp_line);
        Self { lines, searches: false }
    }

    /// Lines of a search.
    pub(crate) const fn of_search(flags: &Output) -> Self {
        let lines = Lines::new(flags, 1, false, SEARCH_HEAD, udp_line);
        Self { lines, searches: true }
    }

    /// Prints what an event says.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::SubInterval(row) => self.lines.print(&search_line(row)),
            // Those of the control connection cover the same time by other clocks.
            Event::Interval(_) if self.searches => {}
            other => self.lines.event(other),
        }
    }
}

/// One trial of a benchmark: when, what for, the load and its length, what went out and came in,
/// and the verdict.
pub(crate) fn bench_line(trial: &BenchTrial) -> String {
    let sum = |of: fn(&TrialPort) -> u64| trial.ports.iter().map(of).sum::<u64>();
    let (sent, lost) = (sum(|port| port.sent), sum(TrialPort::lost));
    let offered: f64 = trial.ports.iter().map(|port| port.offered_fps).sum();
    let load = PacketRate::from_per_sec(offered).unwrap_or_default();
    let verdict = match (&trial.invalid, lost) {
        (Some(invalid), _) => format!("does not count: {}", invalid.detail()),
        (None, 0) => "nothing lost".to_owned(),
        (None, lost) => format!("lost {lost}, {:.3} %", lost as f64 * 100.0 / sent.max(1) as f64),
    };
    format!(
        "{:>8.1} s  {:<12} {:>12} for {:>7.2} s  sent {sent:>11}  received {:>11}  {verdict}",
        seconds(trial.at_ns),
        trial.test.name(),
        load.to_string(),
        seconds(trial.duration_ns),
        sum(|port| port.received),
    )
}

struct Lines {
    live: bool,
    sums_only: bool,
    headed: bool,
    head: &'static str,
    line: fn(&IntervalRow) -> String,
}

impl Lines {
    const fn new(
        flags: &Output,
        streams: u16,
        verbose: bool,
        head: &'static str,
        line: fn(&IntervalRow) -> String,
    ) -> Self {
        let sums_only = streams > STREAMS_MAX && !verbose;
        Self { live: flags.live(), sums_only, headed: false, head, line }
    }

    fn event(&mut self, event: &Event) {
        if !self.live {
            return;
        }
        match event {
            Event::Connected(line) => output::line(line),
            Event::Interval(row) if self.sums_only && row.flow.is_some() => {}
            Event::Interval(row) => self.print(&(self.line)(row)),
            Event::Note(line) => output::note(line),
            Event::Plan(_)
            | Event::Stream(_)
            | Event::SubInterval(_)
            | Event::Reply(_)
            | Event::Caveat(_)
            | Event::BenchTrial(_)
            | Event::BenchStep(_)
            | Event::Progress(_) => {}
        }
    }
}

impl Lines {
    /// Prints a line, the first one under the head.
    fn print(&mut self, line: &str) {
        if !self.live {
            return;
        }
        if !self.headed {
            self.headed = true;
            output::line(self.head);
        }
        output::line(line);
    }
}

const HEAD: &str =
    "stream     interval             payload        goodput   retr        cwnd         rtt";

/// Stream, direction, interval, payload and goodput of a row.
fn row_start(row: &IntervalRow) -> String {
    let stream = row.flow.map_or_else(|| "all".to_owned(), |flow| flow.to_string());
    let arrow = match row.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let interval = format!("{:.2}-{:.2} s", seconds(row.start_ns), seconds(row.end_ns));
    let rate = BitRate::from_bits_per_sec(row.goodput_bps as u64).to_string();
    let payload = format!("{:.2} MB", row.bytes as f64 / 1e6);
    format!("{stream:>3} {arrow:<5} {interval:<16} {payload:>12} {rate:>14}")
}

/// What is shown, or a dash.
fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn interval_line(row: &IntervalRow) -> String {
    let retransmits = or_dash(row.retransmits, |count| count.to_string());
    let cwnd = or_dash(row.cwnd_bytes, |bytes| format!("{} KiB", bytes / 1024));
    let rtt = or_dash(row.rtt_ns, milliseconds);
    let omitted = if row.omitted { "  (omitted)" } else { "" };
    format!("{} {retransmits:>6} {cwnd:>11} {rtt:>11}{omitted}", row_start(row))
}

const UDP_HEAD: &str = "stream     interval             payload        goodput     jitter          \
                        lost/sent       loss";

fn udp_line(row: &IntervalRow) -> String {
    let datagrams = row.datagrams.unwrap_or_default();
    let jitter = or_dash(datagrams.jitter_ns, milliseconds);
    // Another program's server reports what it received at the end alone.
    let lost = or_dash(row.datagrams, |it| format!("{}/{}", it.lost, it.sent));
    let loss = match datagrams.sent {
        0 => "-".to_owned(),
        sent => format!("{:.2} %", datagrams.lost as f64 * 100.0 / sent as f64),
    };
    let start = row_start(row);
    format!("{start} {jitter:>10} {lost:>18} {loss:>10}{}", remarks(row, &datagrams))
}

const SEARCH_HEAD: &str = "sub-interval             rate IP        offered       loss   \
                           delay above least      round trip";

fn search_line(row: &SubInterval) -> String {
    let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
    let range = |least: Option<u64>, most: Option<u64>| {
        or_dash(least.zip(most), |(least, most)| format!("{}-{} ms", ms(least), ms(most)))
    };
    let rate = |bps: f64| BitRate::from_bits_per_sec(bps as u64).to_string();
    let span = &row.span;
    let interval = format!("{:.2}-{:.2} s", seconds(span.start_ns()), seconds(span.end_ns()));
    format!(
        "{interval:<16} {:>15} {:>14} {:>10} {:>19} {:>15}",
        rate(row.ip_bps),
        or_dash(row.offered_bps, rate),
        or_dash(row.loss_ratio, |ratio| format!("{:.2} %", ratio * 100.0)),
        range(span.delay_min_ns, span.delay_max_ns),
        range(row.rtt_min_ns, row.rtt_max_ns),
    )
}

/// What an interval had beside losses.
fn remarks(row: &IntervalRow, datagrams: &DatagramRow) -> String {
    let counts = [
        (datagrams.lost_here, "lost at the receiver"),
        (datagrams.duplicates, "duplicates"),
        (datagrams.reordered, "reordered"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    parts.extend(row.omitted.then(|| "(omitted)".to_owned()));
    if parts.is_empty() { String::new() } else { format!("  {}", parts.join(", ")) }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
