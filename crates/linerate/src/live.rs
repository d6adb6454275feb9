//! Live lines of a throughput test: one an interval and stream, and their sum; the sum alone where
//! there are too many streams to follow.

use linerate_core::record::{BenchTrial, Event, TrialPort};
use linerate_core::units::PacketRate;
use linerate_report::live::Rows;

use crate::command::measure::OutputFlags;
use crate::output;

/// More streams than this in a direction are shown as their sum.
const STREAMS_MAX: u16 = 16;

/// Prints the lines of a TCP test during the test.
pub(crate) struct TcpLines(IntervalLines);

/// Prints the lines of a UDP test during the test: of its intervals, or of a search's
/// sub-intervals.
pub(crate) struct UdpLines {
    lines: IntervalLines,
    searches: bool,
}

impl TcpLines {
    /// Lines for people, or none.
    pub(crate) fn new(flags: &OutputFlags, streams: u16) -> Self {
        Self(IntervalLines::new(flags, streams, Rows::tcp))
    }

    /// Prints the line of an event.
    pub(crate) fn print_event(&mut self, event: &Event) {
        self.0.print_event(event);
    }
}

impl UdpLines {
    /// Lines for people, or none.
    pub(crate) fn new(flags: &OutputFlags, streams: u16) -> Self {
        Self { lines: IntervalLines::new(flags, streams, Rows::udp), searches: false }
    }

    /// Lines of a search.
    pub(crate) fn of_search(flags: &OutputFlags) -> Self {
        Self { lines: IntervalLines::new(flags, 1, Rows::search), searches: true }
    }

    /// Prints the line of an event.
    pub(crate) fn print_event(&mut self, event: &Event) {
        match event {
            Event::SubInterval(row) if self.lines.live => {
                output::print_line(&self.lines.rows.sub_interval(row));
            }
            // Those of the control connection cover the same time by other clocks.
            Event::Interval(_) if self.searches => {}
            other => self.lines.print_event(other),
        }
    }
}

/// One trial of a benchmark in 80 columns: time, test, load, length, frames forwarded, and the
/// verdict; the reason why it does not count is on a line of its own.
pub(crate) fn bench_line(trial: &BenchTrial) -> String {
    let sum = |of: fn(&TrialPort) -> u64| trial.ports.iter().map(of).sum::<u64>();
    let (sent, lost) = (sum(|port| port.sent), sum(TrialPort::lost_frames));
    let offered: f64 = trial.ports.iter().map(|port| port.offered_fps).sum();
    let load = PacketRate::from_per_sec(offered).unwrap_or_default();
    let verdict = match (&trial.invalid, lost) {
        (Some(invalid), _) => format!("does not count:\n{:10}{}", "", invalid.detail()),
        (None, 0) => "nothing lost".to_owned(),
        (None, lost) => format!("{:.2} % lost", lost as f64 * 100.0 / sent.max(1) as f64),
    };
    format!(
        "{:>6.1} s  {:<12} {:>11} {:>6.2} s, sent {sent:>10}  {verdict}",
        seconds(trial.at_ns),
        trial.test.name(),
        load.to_string(),
        seconds(trial.duration_ns),
    )
}

struct IntervalLines {
    live: bool,
    sums_only: bool,
    rows: Rows,
}

impl IntervalLines {
    fn new(flags: &OutputFlags, streams: u16, rows: fn(Option<usize>) -> Rows) -> Self {
        let sums_only = streams > STREAMS_MAX && !flags.amount.verbose;
        Self { live: flags.shows_live_lines(), sums_only, rows: rows(output::output_columns()) }
    }

    fn print_event(&mut self, event: &Event) {
        if !self.live {
            return;
        }
        match event {
            Event::Connected(line) => output::folded(line),
            Event::Interval(row) if self.sums_only && row.flow.is_some() => {}
            Event::Interval(row) => output::print_line(&self.rows.interval(row)),
            Event::Note(line) => output::print_note(line),
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

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
