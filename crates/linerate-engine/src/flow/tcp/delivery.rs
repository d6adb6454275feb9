//! What a sender alone can say of its stream: which bytes the other end's kernel acknowledged.
//!
//! A write returns when the bytes are in the socket's buffer, so the end of the last write is not
//! the end of the transfer; the acknowledgement of the end of the stream is. Left out: whether the
//! application there read the bytes.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::TcpInfo;
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp;

use super::span::MeasuredSpan;

/// The time that written bytes have to be acknowledged in after the last write.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first look for the acknowledgement, and the longest pause between two.
const LOOK_FIRST: Duration = Duration::from_micros(50);
const LOOK_MAX: Duration = Duration::from_millis(1);

/// Follows one stream at its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// The kernel's count before the first byte: it counts the SYN (RFC 4898 counts sequence
    /// numbers).
    before: u64,
    /// Where the measured span begins, once the omitted one is over.
    begin: Option<(MonoTime, u64)>,
    /// Where it ends, if that is not the last acknowledgement.
    end: Option<(MonoTime, u64)>,
    /// A span that begins after an omitted one ends with the last write.
    steady: bool,
}

impl Delivery {
    /// The count of a connection that has sent nothing yet.
    pub(crate) fn from_stream(stream: &TcpStream) -> Self {
        let before = acknowledged(stream).unwrap_or(0);
        Self { before, begin: None, end: None, steady: false }
    }

    /// The same, whose span ends with the last write where its begin was omitted.
    pub(crate) const fn steady(self, steady: bool) -> Self {
        Self { steady, ..self }
    }

    /// Payload bytes acknowledged so far, of `written`; all of them where the kernel does not tell.
    pub(crate) fn acknowledged_bytes(&self, acknowledged: Option<u64>, written: u64) -> u64 {
        let counted = acknowledged.map(|count| count.saturating_sub(self.before));
        counted.map_or(written, |count| count.min(written))
    }

    /// Begins the measured span, once the omitted one is over.
    pub(crate) fn begin_measured_span(&mut self, now: MonoTime, stream: &TcpStream) {
        self.begin = Some((now, self.acknowledged_bytes(acknowledged(stream), u64::MAX)));
    }

    /// The last write was made: the end of a steady span.
    pub(crate) fn written(&mut self, now: MonoTime, stream: &TcpStream) {
        if self.steady && self.begin.is_some() {
            self.end = Some((now, self.acknowledged_bytes(acknowledged(stream), u64::MAX)));
        }
    }

    /// Waits until what was `sent` is acknowledged, and tells what was.
    pub(crate) fn finish(
        self,
        stream: &TcpStream,
        sent: MeasuredSpan,
        halt: impl Fn() -> bool,
    ) -> MeasuredSpan {
        let give_up = monotonic() + PATIENCE;
        let mut pause = LOOK_FIRST;
        let end = loop {
            let now = monotonic();
            if is_delivered(stream) || halt() || now >= give_up {
                break now;
            }
            sleep(pause);
            pause = (pause * 3 / 2).min(LOOK_MAX);
        };
        let bytes_total = self.acknowledged_bytes(acknowledged(stream), sent.bytes_total);
        let (begin, before) = self.begin.unwrap_or((sent.begin, 0));
        let (end, counted) = self.end.unwrap_or((end, bytes_total));
        MeasuredSpan {
            begin,
            span_ns: end.nanos_since(begin),
            bytes: counted.saturating_sub(before),
            bytes_total: sent.bytes_total,
        }
    }
}

/// How far what an end wrote has come, all streams together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outstanding {
    /// Written, not sent yet.
    pub(crate) unsent_bytes: u64,
    /// Segments sent, not acknowledged.
    pub(crate) unacknowledged: u64,
    /// Bytes acknowledged so far.
    pub(crate) acknowledged_bytes: u64,
    /// Windows that the peer offers; they grow while it reads on.
    pub(crate) offered_bytes: u64,
    /// Segments retransmitted so far.
    pub(crate) retransmits: u64,
    /// The longest smoothed round-trip time.
    pub(crate) rtt_ns: u64,
    /// The longest of the streams' smallest round-trip times.
    pub(crate) rtt_min_ns: u64,
}

impl Outstanding {
    /// With one more stream.
    pub(crate) fn with_stream(self, info: &TcpInfo) -> Self {
        let count = |count: Option<u32>| u64::from(count.unwrap_or(0));
        Self {
            unsent_bytes: self.unsent_bytes + count(info.notsent_bytes),
            unacknowledged: self.unacknowledged + count(info.unacked),
            acknowledged_bytes: self.acknowledged_bytes + info.bytes_acked.unwrap_or(0),
            offered_bytes: self.offered_bytes + count(info.snd_wnd_bytes),
            retransmits: self.retransmits + count(info.total_retrans),
            rtt_ns: self.rtt_ns.max(count(info.rtt_us) * 1000),
            rtt_min_ns: self.rtt_min_ns.max(count(info.min_rtt_us) * 1000),
        }
    }
}

fn acknowledged(stream: &TcpStream) -> Option<u64> {
    tcp::tcp_info(stream.as_fd())?.bytes_acked
}

/// True where the end of the stream is acknowledged: FIN-WAIT-2, TIME-WAIT or CLOSED (RFC 9293
/// §3.3.2; 5, 6 and 7 of Linux tcp_states.h).
fn is_delivered(stream: &TcpStream) -> bool {
    let state = tcp::tcp_info(stream.as_fd()).and_then(|info| info.state);
    state.is_none_or(|state| matches!(state, 5..=7))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};

    use super::*;

    #[test]
    fn the_span_of_a_sender_ends_when_the_reader_has_made_room_for_the_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut stream = TcpStream::connect(address).expect("loopback");
        let (mut reader, _) = listener.accept().expect("it is there");
        let delivery = Delivery::from_stream(&stream);
        let begin = monotonic();
        stream.write_all(&[7; 1000]).expect("room for it");
        stream.shutdown(Shutdown::Write).expect("open");
        let sent = MeasuredSpan { begin, span_ns: 1, bytes: 1000, bytes_total: 1000 };
        let measured = delivery.finish(&stream, sent, || false);
        assert_eq!((measured.bytes, measured.bytes_total), (1000, 1000));
        assert!(measured.span_ns > 1, "until the acknowledgement");
        let mut all = Vec::new();
        assert_eq!(reader.read_to_end(&mut all).ok(), Some(1000));
    }

    #[test]
    fn a_kernel_that_does_not_count_acknowledgements_leaves_what_was_written() {
        let delivery = Delivery { before: 1, begin: None, end: None, steady: false };
        assert_eq!(delivery.acknowledged_bytes(None, 500), 500);
        // The end of the stream takes a sequence number too.
        assert_eq!(delivery.acknowledged_bytes(Some(502), 500), 500);
        assert_eq!(delivery.acknowledged_bytes(Some(301), 500), 300);
        assert_eq!(delivery.acknowledged_bytes(Some(0), 500), 0);
    }
}
