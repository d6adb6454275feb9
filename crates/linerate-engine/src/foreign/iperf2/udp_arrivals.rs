//! Watches what a server sends: asks again while nothing comes, and notices an end that was lost.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{DatagramsSent, Direction, Failure, Fault};
use linerate_core::time::MonoTime;

use crate::flow::Sample;
use crate::flow::udp::endpoint::Endpoint;

/// While nothing comes the server is asked again this often.
pub(super) const AGAIN: Duration = Duration::from_millis(250);
/// The first datagram has this long to come.
pub(super) const FIRST: Duration = Duration::from_secs(3);
/// After the planned end silence of this length means that the end was lost.
const QUIET: Duration = Duration::from_secs(1);
/// A server whose last datagram came this long before the planned end, and three gaps of its pace,
/// was gone by then. Both ends count the time by themselves, and a host may be late.
const EARLY: Duration = Duration::from_millis(500);
/// Before it, silence of this length means that the server is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The streams that a server sends, as a client follows them.
pub(super) struct Arrivals {
    begin: MonoTime,
    planned: Option<MonoTime>,
    /// What the last datagram may be away from the planned end.
    early: Duration,
    server: SocketAddr,
    asked: MonoTime,
    moved: MonoTime,
    datagrams: u64,
    stopping: bool,
    over: bool,
}

impl Arrivals {
    pub(super) const fn new(
        begin: MonoTime,
        planned: Option<MonoTime>,
        server: SocketAddr,
        gap: Duration,
    ) -> Self {
        let (asked, moved) = (begin, begin);
        let (stopping, over) = (false, false);
        let early = EARLY.saturating_add(gap.saturating_mul(3));
        Self { begin, planned, early, server, asked, moved, datagrams: 0, stopping, over }
    }

    /// The user does not want more.
    pub(super) const fn stop(&mut self) {
        self.stopping = true;
    }

    /// Looks at what came; the streams on which to ask again.
    /// # Errors
    /// When the server does not send, or sends no longer.
    pub(super) fn look(&mut self, endpoint: &Endpoint, now: MonoTime) -> Result<Vec<u16>, Failure> {
        if self.over {
            return Ok(Vec::new());
        }
        let samples = endpoint.sample(now);
        let downs = samples.iter().filter(|sample| sample.direction == Direction::Down);
        let downs: Vec<&Sample> = downs.collect();
        if downs.is_empty() || endpoint.is_done() {
            self.over = true;
            return Ok(Vec::new());
        }
        let datagrams = downs.iter().map(|sample| sample.counts().datagrams).sum();
        if datagrams != self.datagrams {
            (self.datagrams, self.moved) = (datagrams, now);
        }
        let silent = now.since(self.moved);
        let planned = self.planned.is_none_or(|end| now >= end);
        let quiet = datagrams > 0 && planned && silent >= QUIET;
        if quiet && !self.stopping && self.ended_early() {
            return Err(self.gone());
        }
        if self.stopping || quiet {
            self.over = true;
            endpoint.told_sent(&downs.iter().map(|sample| until_now(sample)).collect::<Vec<_>>());
        } else if datagrams == 0 && now.since(self.begin) >= FIRST {
            return Err(no_data(self.server));
        } else if silent >= SILENCE_MAX {
            return Err(self.gone());
        }
        if self.over || now.since(self.asked) < AGAIN {
            return Ok(Vec::new());
        }
        self.asked = now;
        let dry = downs.iter().filter(|sample| sample.counts().datagrams == 0);
        Ok(dry.map(|sample| sample.flow).collect())
    }

    /// Whether the last datagram came so long before the planned end that more were to come.
    fn ended_early(&self) -> bool {
        self.planned.is_some_and(|end| end.since(self.moved) > self.early)
    }

    fn gone(&self) -> Failure {
        let reason = "the server fell silent";
        Failure::new(Fault::Unreachable, "hear from", self.server.to_string(), reason)
            .advise("the results so far are kept")
    }
}

/// A server that was asked to send did not.
pub(super) fn no_data(server: SocketAddr) -> Failure {
    Failure::new(Fault::Unreachable, "hear from", server.to_string(), "no data came")
        .advise("over UDP iperf sends since 2.1, `iperf -s -u`")
}

/// All that the server is known to have sent.
fn until_now(sample: &Sample) -> DatagramsSent {
    DatagramsSent {
        direction: sample.direction,
        flow: sample.flow,
        datagrams: sample.counts().next,
        measured: sample.counts().next,
        span_ns: 0,
    }
}
