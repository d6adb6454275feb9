//! What a server's log says of a test: each way with its streams, bytes, time and rate, as a line
//! for people and as figures for programs.

use std::time::Duration;

use linerate_core::record::{Direction, EndReport};
use linerate_core::units::{BitRate, Bytes};
use serde::Serialize;

/// The log text of a client: a line, and the figures of a test that came to its end. Where a
/// program's counts are of its own kind, the line alone has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogText {
    /// The line for people.
    pub line: String,
    /// The totals for programs.
    pub ways: Vec<DirectionTotals>,
}

impl LogText {
    /// The text of a test with these streams.
    pub(crate) fn from_reports(line: String, reports: &[EndReport]) -> Self {
        Self { line, ways: totals_by_direction(reports) }
    }

    /// The same with words before its line.
    #[must_use]
    pub(crate) fn with_prefix(mut self, words: &str) -> Self {
        self.line.insert_str(0, words);
        self
    }
}

impl From<String> for LogText {
    fn from(line: String) -> Self {
        Self { line, ways: Vec::new() }
    }
}

/// One direction of a test, as this end counted it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DirectionTotals {
    /// Up is from the client.
    pub direction: Direction,
    /// Number of streams.
    pub streams: usize,
    /// Payload of the measured span: received where the client sent, else sent.
    pub bytes: u64,
    /// The measured span, from the first stream's begin to the last one's end.
    pub seconds: f64,
    /// Bytes over that span.
    pub rate_bps: u64,
    /// Datagrams that this end sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_sent: Option<u64>,
    /// Datagrams that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_received: Option<u64>,
    /// Datagrams that were sent to this end and did not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_lost: Option<u64>,
}

impl DirectionTotals {
    /// The totals of so many bytes of so many streams in a span.
    pub(crate) fn from_transfer(
        direction: Direction,
        streams: usize,
        bytes: u64,
        span_ns: u64,
    ) -> Self {
        let rate = BitRate::from_bytes_over(Bytes::new(bytes), Duration::from_nanos(span_ns));
        Self {
            direction,
            streams,
            bytes,
            seconds: span_ns as f64 / 1e9,
            rate_bps: rate.map_or(0, BitRate::bits_per_sec),
            datagrams_sent: None,
            datagrams_received: None,
            datagrams_lost: None,
        }
    }
}

/// The ways of a test.
fn totals_by_direction(reports: &[EndReport]) -> Vec<DirectionTotals> {
    let of = |direction| {
        let of_way = |report: &&EndReport| report.direction == direction;
        let reports: Vec<&EndReport> = reports.iter().filter(of_way).collect();
        (!reports.is_empty()).then(|| direction_totals(direction, &reports))
    };
    [Direction::Up, Direction::Down].into_iter().filter_map(of).collect()
}

fn direction_totals(direction: Direction, reports: &[&EndReport]) -> DirectionTotals {
    let bytes: u64 = reports.iter().map(|report| report.end.bytes_measured).sum();
    let ends = reports.iter().map(|report| &report.end).filter(|end| end.span_ns > 0);
    let first = ends.clone().map(|end| end.span_start_ns).min();
    let last = ends.map(|end| end.span_start_ns + end.span_ns).max();
    let span_ns = first.zip(last).map_or(0, |(first, last)| last - first);
    // A server receives what goes up and sends what goes down.
    let is_up = direction == Direction::Up;
    let received = reports.iter().filter_map(|report| report.end.received_datagrams.as_ref());
    let sent = reports
        .iter()
        .filter_map(|report| report.end.sent_datagrams.as_ref())
        .map(|datagrams| datagrams.count);
    DirectionTotals {
        datagrams_sent: sent.reduce(u64::saturating_add).filter(|_| !is_up),
        datagrams_received: received
            .clone()
            .map(|datagrams| datagrams.all.received)
            .reduce(u64::saturating_add),
        datagrams_lost: received.map(|datagrams| datagrams.all.lost).reduce(u64::saturating_add),
        ..DirectionTotals::from_transfer(direction, reports.len(), bytes, span_ns)
    }
}

/// `up: 2 streams, 1.250 MB in 1.000 s, 10 Mbit/s; down: ...`, as this end counted: what it
/// received and what it sent in the measured span; of datagrams, how many, too.
pub(crate) fn log_line(reports: &[EndReport]) -> String {
    line_of(&totals_by_direction(reports))
}

/// The same of ways that were summed up already.
pub(crate) fn line_of(ways: &[DirectionTotals]) -> String {
    ways.iter().map(format_totals).collect::<Vec<_>>().join("; ")
}

/// `1.250 MB in 1.000 s, 10 Mbit/s`; of nothing, or in no time, the amount alone.
pub(crate) fn format_transfer(bytes: u64, span_ns: u64) -> String {
    let bytes = Bytes::new(bytes);
    let span = Duration::from_nanos(span_ns);
    match BitRate::from_bytes_over(bytes, span).filter(|rate| rate.bits_per_sec() > 0) {
        Some(rate) => format!("{} in {:.3} s, {rate}", bytes.transferred(), span.as_secs_f64()),
        None => bytes.transferred(),
    }
}

fn format_totals(way: &DirectionTotals) -> String {
    let name = if way.direction == Direction::Up { "up" } else { "down" };
    let noun = if way.streams == 1 { "stream" } else { "streams" };
    let span_ns = (way.seconds * 1e9).round() as u64;
    let mut line =
        format!("{name}: {} {noun}, {}", way.streams, format_transfer(way.bytes, span_ns));
    if let (Some(received), Some(lost)) = (way.datagrams_received, way.datagrams_lost) {
        line.push_str(&format!(", {received} datagrams received, {lost} lost"));
    }
    if let Some(sent) = way.datagrams_sent {
        line.push_str(&format!(", {sent} datagrams sent"));
    }
    line
}

#[cfg(test)]
mod tests {
    use linerate_core::record::FlowEnd;

    use super::*;

    fn report(direction: Direction, bytes: u64, start_ms: u64, ms: u64) -> EndReport {
        let (span_start_ns, span_ns) = (start_ms * 1_000_000, ms * 1_000_000);
        let end =
            FlowEnd { bytes, bytes_measured: bytes, span_start_ns, span_ns, ..FlowEnd::default() };
        EndReport::from_flow_end(direction, 0, end)
    }

    #[test]
    fn each_way_has_its_bytes_over_the_time_from_the_first_begin_to_the_last_end() {
        let up =
            [report(Direction::Up, 1_000_000, 0, 900), report(Direction::Up, 250_000, 100, 900)];
        let down = report(Direction::Down, 0, 0, 0);
        let said = log_line(&[up[0].clone(), down, up[1].clone()]);
        // 1.25 MB in one second are 10 Mbit/s.
        let expected = "up: 2 streams, 1.250 MB in 1.000 s, 10 Mbit/s; down: 1 stream, 0 B";
        assert_eq!(said, expected);
    }
}
