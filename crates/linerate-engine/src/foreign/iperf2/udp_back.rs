//! What a server sends over UDP: the data of a stream whose first datagram and end are its
//! machine's (`iperf2::UdpServer`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_core::record::{Direction, Failure, Fault, Finish, FlowSide, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{FIRST_BYTES_MIN, UdpBack, UdpReport};
use linerate_proto::native::Token;
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::DatagramSocket;

use super::address_validation::SendBounds;
use super::udp_layout::{LAYOUT, LAYOUT_FROM_SECOND, sending};
use crate::flow::udp::endpoint::{Endpoint, StreamId};

/// A stream to a client.
pub(super) struct ReverseStream {
    endpoint: Endpoint,
    size_bytes: u32,
    begin: MonoTime,
    /// Datagrams that it is to send, where their number ends it.
    planned: Option<u64>,
    /// Datagrams that the machine sent before the data.
    before: u64,
    /// Datagrams of all that the client was granted, and those that are left of them; where it is
    /// sent in proportion to what comes.
    granted: Option<(u64, Arc<AtomicU64>)>,
    /// True once the machine was told that all is sent.
    told: bool,
}

/// The datagrams that a server sent to its client.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpSentBack {
    /// Datagrams, the end among them.
    pub datagrams: u64,
    /// Payload of the datagrams in bytes.
    pub bytes: u64,
    /// Time of sending in ns.
    pub span_ns: u64,
    /// The client's report of what it received, where it makes one that can be true.
    pub report: Option<UdpReport>,
    /// True where the client's report cannot be true: it says that it received more than was sent.
    pub contradicted: bool,
}

/// Ends of a test that come again have numbers of their own (iperf 2: ten).
const ENDS_MAX: u64 = 16;

/// True where a client can have received what it reports, of so many datagrams of a length; a path
/// may deliver one twice.
fn can_be(report: &UdpReport, datagrams: u64, size_bytes: u32) -> bool {
    let most = datagrams.saturating_mul(2).saturating_add(ENDS_MAX);
    let bytes_max = most.saturating_mul(size_bytes.max(FIRST_BYTES_MIN as u32).into());
    report.datagrams.max(report.lost) <= most && report.bytes <= bytes_max
}

impl ReverseStream {
    /// Begins to send what the client's header asks for.
    pub(super) fn start_sending(
        socket: &DatagramSocket,
        terms: &UdpBack,
        bounds: SendBounds,
        begin: MonoTime,
    ) -> Result<Self, Failure> {
        let mut request: UdpTest = sending(&terms.header)?;
        request.pace = request.pace.into_iter().chain(bounds.pace).min();
        let size_bytes = request.size_bytes;
        let before = u64::from(terms.has_own_stream());
        if let Finish::Bytes(bytes) = &mut request.finish {
            *bytes = bytes.saturating_sub(before * u64::from(size_bytes));
        }
        let layout = if before > 0 { LAYOUT_FROM_SECOND } else { LAYOUT };
        let planned = request.datagram_budget();
        let granted = bounds.granted.map(|granted| {
            let granted = granted.min(planned.unwrap_or(u64::MAX));
            (granted, Arc::new(AtomicU64::new(granted)))
        });
        let mut endpoint = Endpoint::with_layout(request, layout, None);
        if let Some((_, left)) = &granted {
            endpoint.allow_datagrams(Arc::clone(left));
        }
        endpoint.begin_with(&terms.first_bytes(begin));
        let fail = |error: linerate_sys::Error| crate::failure::system(&error);
        let own = socket.try_clone().map_err(fail)?;
        let direction = Direction::Down;
        let place =
            StreamId { direction, flow: 0, side: FlowSide::Sender, client_addr: String::new() };
        endpoint.add(own, place, Token([0; 16]));
        endpoint.start_senders(begin).map_err(fail)?;
        Ok(Self { endpoint, size_bytes, begin, planned, before, granted, told: false })
    }

    /// The datagrams sent until now.
    pub(super) fn so_far(&self) -> UdpSentBack {
        let now = monotonic();
        let samples = self.endpoint.sample(now);
        let datagrams = samples.first().map_or(0, |sample| sample.counts().datagrams) + self.before;
        UdpSentBack {
            datagrams,
            bytes: datagrams * u64::from(self.size_bytes),
            span_ns: now.nanos_since(self.begin),
            report: None,
            contradicted: false,
        }
    }

    /// Lets it send `all` datagrams, where it is sent what it is granted.
    pub(super) fn grant_datagrams(&mut self, all: u64) {
        let all = all.min(self.planned.unwrap_or(u64::MAX));
        if let Some((granted, left)) = &mut self.granted {
            left.fetch_add(all.saturating_sub(*granted), Ordering::Relaxed);
            *granted = all.max(*granted);
        }
    }

    /// Length of its datagrams.
    pub(super) const fn size_bytes(&self) -> u32 {
        self.size_bytes
    }

    /// Stops the senders of the stream.
    pub(super) fn stop_sending(&self) {
        self.endpoint.stop_sending();
    }

    /// Number of its datagrams, with those sent before them, once all are sent; told once.
    pub(super) fn all_sent(&mut self) -> Option<u64> {
        let done = !self.told && self.endpoint.is_done();
        self.told |= done;
        done.then(|| self.sent_totals().0)
    }

    fn sent_totals(&self) -> (u64, u64) {
        let sent = self.endpoint.datagrams_sent().unwrap_or_default();
        let (count, span_ns) = sent.first().map_or((0, 0), |sent| (sent.datagrams, sent.span_ns));
        (count + self.before, span_ns)
    }

    /// The datagrams that were sent, once the end is said; with the client's report where it made
    /// one.
    pub(super) fn finish(self, report: Option<UdpReport>) -> Result<UdpSentBack, Failure> {
        let (count, span_ns) = self.sent_totals();
        let failure = self.endpoint.finish().into_iter().find_map(|report| report.failure);
        if let Some(reason) = failure {
            return Err(Failure::new(
                Fault::Unreachable,
                "send UDP to",
                "an iperf 2 client",
                reason,
            ));
        }
        let datagrams = count + 1;
        let bytes = datagrams * u64::from(self.size_bytes);
        let believed = report.filter(|report| can_be(report, datagrams, self.size_bytes));
        let contradicted = report.is_some() && believed.is_none();
        Ok(UdpSentBack { datagrams, bytes, span_ns, report: believed, contradicted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_reports_no_more_than_was_sent_to_it() {
        let sound = UdpReport { bytes: 9_000, lost: 1, datagrams: 10, ..UdpReport::default() };
        assert!(can_be(&sound, 10, 1000));
        // Each came twice, and the end ten times.
        assert!(can_be(&UdpReport { bytes: 21_000, datagrams: 20, ..sound }, 11, 1000));
        for wrong in [
            UdpReport { bytes: u64::MAX, ..sound },
            UdpReport { lost: 1 << 40, ..sound },
            UdpReport { datagrams: 1 << 40, ..sound },
        ] {
            assert!(!can_be(&wrong, 10, 1000), "{wrong:?}");
        }
    }
}
