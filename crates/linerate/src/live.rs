//! Live lines of a throughput test: one an interval and stream, and their sum; the sum alone where
//! there are too many streams to follow.

use linerate_core::record::{BenchTrial, Event, TrialPort};
use linerate_core::units::PacketRate;
use linerate_report::live::Rows;

use crate::command::measure::Output;
use crate::output;

/// More streams than this in a direction are shown as their sum.
const STREAMS_MAX: u16 = 16;

/// Prints the lines of a TCP test during the test.
pub(crate) struct TcpLines(Lines);

/// Prints the lines of a UDP test during the test: of its intervals, or of a search's
/// sub-intervals.
pub(crate) struct UdpLines {
    lines: Lines,
    searches: bool,
}

impl TcpLines {
    /// Lines for people, or none.
    pub(crate) fn new(flags: &Output, streams: u16) -> Self {
        Self(Lines::new(flags, streams, Rows::tcp))
    }

    /// Prints the line of an event.
    pub(crate) fn event(&mut self, event: &Event) {
        self.0.event(event);
    }
}

impl UdpLines {
    /// Lines for people, or none.
    pub(crate) fn new(flags: &Output, streams: u16) -> Self {
        Self { lines: Lines::new(flags, streams, Rows::udp), searches: false }
    }

    /// Lines of a search.
    pub(crate) fn of_search(flags: &Output) -> Self {
        Self { lines: Lines::new(flags, 1, Rows::search), searches: true }
    }

    /// Prints the line of an event.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::SubInterval(row) if self.lines.live => {
                output::line(&self.lines.rows.sub_interval(row));
            }
            // Those of the control connection cover the same time by other clocks.
            Event::Interval(_) if self.searches => {}
            other => self.lines.event(other),
        }
    }
}

/// One trial of a benchmark in 80 columns: time, test, load, length, frames forwarded, and the
/// verdict; the reason why it does not count is on a line of its own.
pub(crate) fn bench_line(trial: &BenchTrial) -> String {
    let sum = |of: fn(&TrialPort) -> u64| trial.ports.iter().map(of).sum::<u64>();
    let (sent, lost) = (sum(|port| port.sent), sum(TrialPort::lost));
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

struct Lines {
    live: bool,
    sums_only: bool,
    rows: Rows,
}

impl Lines {
    fn new(flags: &Output, streams: u16, rows: fn(Option<usize>) -> Rows) -> Self {
        let sums_only = streams > STREAMS_MAX && !flags.amount.verbose;
        Self { live: flags.live(), sums_only, rows: rows(output::width()) }
    }

    fn event(&mut self, event: &Event) {
        if !self.live {
            return;
        }
        match event {
            Event::Connected(line) => output::folded(line),
            Event::Interval(row) if self.sums_only && row.flow.is_some() => {}
            Event::Interval(row) => output::line(&self.rows.interval(row)),
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

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
