//! What the servers for ttcp, iperf 2 and nuttcp share.

use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure, Fault, Finish, TcpDirections, TcpTest};
use linerate_core::units::BitRate;
use linerate_proto::iperf2::Bounced;
use linerate_sys::stop::Stop;

use crate::flow::Sample;
use crate::flow::tcp::Admission;

/// A receiver whose end comes from the sender alone: more than any test may send.
pub(crate) const UNTIL_CLOSED: Finish = Finish::Bytes(1 << 60);

/// What a server is given for every connection.
pub struct Serving<'a> {
    /// Decides which tests run.
    pub admission: &'a dyn Admission,
    /// Set when the server is to end.
    pub stop: &'a Stop,
    /// Time between two looks of the watcher.
    pub interval: Duration,
    /// Told of what is seen, for those who print it.
    pub watch: &'a mut dyn FnMut(&Seen<'_>),
}

/// What a server sees of a client.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A stream is there: its socket, which way its data goes, its number.
    Stream(&'a TcpStream, Direction, u16),
    /// The streams after an interval.
    Interval(&'a [Sample]),
    /// The streams are done.
    Done(&'a [EndReport]),
    /// A latency test is done, in which this end sent requests back.
    Bounced(&'a Bounced),
}

/// A test as the admission and the endpoint know it; the rest is as `linerate tcp` has it.
pub(crate) fn request(directions: TcpDirections, finish: Finish) -> TcpTest {
    TcpTest { directions, finish, ..TcpTest::default() }
}

/// `3 streams, 12345 bytes in 1.000 s, 98.8 Mbit/s`, for the log.
pub(crate) fn said(reports: &[EndReport]) -> String {
    let bytes: u64 = reports.iter().map(|report| report.end.bytes).sum();
    // Streams begin one after the other: over the longest span they had more than the path carried.
    let begin_ns = reports.iter().map(|report| report.end.span_start_ns).min().unwrap_or(0);
    let last = |report: &EndReport| report.end.span_start_ns + report.end.span_ns;
    let span_ns = reports.iter().map(last).max().unwrap_or(0).saturating_sub(begin_ns);
    let noun = if reports.len() == 1 { "stream" } else { "streams" };
    let seconds = span_ns as f64 / 1e9;
    let rate = if span_ns == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds };
    let rate = BitRate::from_bits_per_sec(rate as u64);
    format!("{} {noun}, {bytes} bytes in {seconds:.3} s, {rate}", reports.len())
}

/// The first stream that did not end well.
pub(crate) fn failure_of(reports: &[EndReport]) -> Option<Failure> {
    let report = reports.iter().find(|report| report.failure.is_some())?;
    let reason = report.failure.clone().unwrap_or_default();
    Some(Failure::new(Fault::Unreachable, "move data with", &report.client_addr, reason))
}
