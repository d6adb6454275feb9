//! What the servers for ttcp, iperf 2 and nuttcp share.

use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure, Fault, Finish, TcpDirections, TcpTest};
use linerate_proto::iperf2::BounceResult;
use linerate_sys::stop::Stop;

use crate::flow::Sample;
use crate::flow::admission::Admission;

/// A receiver whose end comes from the sender alone: more than any test may send.
pub(crate) const UNTIL_CLOSED: Finish = Finish::Bytes(1 << 60);

/// The settings that a server gives every connection.
pub struct Serving<'a> {
    /// Decides which tests run.
    pub admission: &'a dyn Admission,
    /// Set when the server is to end.
    pub stop: &'a Stop,
    /// Time between two looks of the watcher.
    pub interval: Duration,
    /// Observer of the client, for those who print its events.
    pub watch: &'a mut dyn FnMut(&ServedEvent<'_>),
}

/// An event of a client that is served.
#[derive(Debug)]
pub enum ServedEvent<'a> {
    /// A stream is there: its socket, which way its data goes, its number.
    Stream(&'a TcpStream, Direction, u16),
    /// The streams after an interval.
    Interval(&'a [Sample]),
    /// The streams are done.
    Done(&'a [EndReport]),
    /// A latency test is done, in which this end sent requests back.
    Bounced(&'a BounceResult),
}

/// A test as the admission and the endpoint know it; the rest is as `linerate tcp` has it.
pub(crate) fn request(directions: TcpDirections, finish: Finish) -> TcpTest {
    TcpTest { directions, finish, ..TcpTest::default() }
}

/// The first stream that did not end well.
pub(crate) fn failure_of(reports: &[EndReport]) -> Option<Failure> {
    let report = reports.iter().find(|report| report.failure.is_some())?;
    let reason = report.failure.clone().unwrap_or_default();
    Some(Failure::new(Fault::Unreachable, "move data with", &report.client_addr, reason))
}
