//! The server's UDP stream to a client: its first datagram and its end. It is the client's stream
//! (`-R`, `--full-duplex`), without a report of the client, or a separate stream to the port on
//! which the client listens (`-d`, `-r`), with a report. Another thread sends the data.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    ClientHeader, END_AGAIN, FIRST_BYTES_MIN, Mode, REPORT_TIMEOUT, Stamp, UdpReport, UdpSender,
    end_datagram, pattern,
};
use crate::dialect::{Machine, Output};

/// Longest delay with which a client starts to listen after its first datagram.
pub const LISTENING: Duration = Duration::from_secs(1);
/// Time to wait for a port unreachable after the first datagram.
pub const REFUSAL: Duration = Duration::from_millis(20);
/// Number of ends sent to a client that does not answer them.
const ENDS: u64 = 3;

/// Terms of the server's stream to a client.
#[derive(Clone, Copy, Debug)]
pub struct UdpBack {
    /// Header of the client's request.
    pub header: ClientHeader,
    /// Payload of a datagram, in bytes.
    pub size_bytes: usize,
    /// Most first datagrams, and most ends, that may be sent.
    pub most: u64,
    /// Wall clock minus monotonic clock, in nanoseconds.
    pub wall_offset_ns: i64,
}

impl UdpBack {
    /// True if the server sends on a separate stream (`-d`, `-r`).
    pub const fn has_own_stream(&self) -> bool {
        matches!(self.header.mode, Mode::Dual | Mode::TradeOff)
    }

    /// First bytes of the datagrams of a stream that starts at `now`: digits, or with trip times a
    /// header with the start time.
    pub fn first_bytes(&self, now: MonoTime) -> Vec<u8> {
        if self.header.trip_times.is_none() {
            return pattern(FIRST_BYTES_MIN);
        }
        let full = self.header.mode == Mode::FullDuplex;
        let mode = if full { Mode::FullDuplex } else { Mode::Forward };
        let trip_times = Some(self.wall_us(now));
        UdpSender::new(ClientHeader { trip_times, mode, ..self.header }).first_bytes()
    }

    const fn wall_us(&self, now: MonoTime) -> u64 {
        now.as_nanos().saturating_add_signed(self.wall_offset_ns) / 1000
    }
}

#[derive(Clone, Copy, Debug)]
enum Iperf2BackStage {
    /// The first datagram is repeated for a while after a port unreachable: a client listens in a
    /// separate thread, which may start after its header has arrived here.
    Beginning {
        until: MonoTime,
        next: MonoTime,
        left: u64,
        sent: bool,
    },
    Sending,
    /// After `sent` datagrams the end is repeated until the client's report arrives, or a few times
    /// without a report.
    Ending {
        until: MonoTime,
        next: MonoTime,
        sent: u64,
        times: u64,
    },
    Over,
}

/// State machine of the server's stream to a client.
pub(super) struct Back<M: Machine> {
    terms: UdpBack,
    head: Vec<u8>,
    stage: Iperf2BackStage,
    /// The stream was told to end.
    ends: bool,
    /// Outputs for the machine of the test.
    pub(super) out: VecDeque<Output<M>>,
}

impl<M: Machine<Report = UdpReport>> Back<M> {
    /// A stream whose socket is open at `now`.
    pub(super) fn new(now: MonoTime, terms: UdpBack) -> Self {
        let head = terms.first_bytes(now);
        let (stage, ends, out) = (Iperf2BackStage::Sending, false, VecDeque::new());
        let mut back = Self { terms, head, stage, ends, out };
        if terms.has_own_stream() {
            let (until, next, left) = (now + LISTENING, now, terms.most);
            back.stage = Iperf2BackStage::Beginning { until, next, left, sent: false };
            back.check_state(now);
        } else {
            back.out.push_back(Output::Start);
        }
        back
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Iperf2BackStage::Over)
    }

    /// True while datagrams of the client on this stream are read.
    pub(super) const fn reads_datagrams(&self) -> bool {
        let waits = matches!(
            self.stage,
            Iperf2BackStage::Beginning { .. } | Iperf2BackStage::Ending { .. }
        );
        waits && self.terms.has_own_stream()
    }

    pub(super) fn wake_at(&self) -> Option<MonoTime> {
        match self.stage {
            Iperf2BackStage::Beginning { until, next, .. }
            | Iperf2BackStage::Ending { until, next, .. } => Some(next.min(until)),
            Iperf2BackStage::Sending | Iperf2BackStage::Over => None,
        }
    }

    pub(super) fn check_state(&mut self, now: MonoTime) {
        match self.stage {
            Iperf2BackStage::Beginning { until, next, left, sent } if now >= next => {
                if sent || left == 0 || now >= until {
                    return self.start_sending();
                }
                let mut first = end_datagram(&self.head, self.terms.size_bytes, 0, 0);
                Stamp { number: 1, sent_us: self.terms.wall_us(now) }.write(&mut first);
                self.out.push_back(Output::Send(first));
                let (next, left, sent) = (now + REFUSAL, left - 1, true);
                self.stage = Iperf2BackStage::Beginning { until, next, left, sent };
            }
            Iperf2BackStage::Ending { until, .. } if now >= until => self.finish(),
            Iperf2BackStage::Ending { next, .. } if now >= next => self.send_end(now),
            Iperf2BackStage::Beginning { .. }
            | Iperf2BackStage::Ending { .. }
            | Iperf2BackStage::Sending
            | Iperf2BackStage::Over => {}
        }
    }

    /// Sends the end, at most as often as the terms allow.
    fn send_end(&mut self, now: MonoTime) {
        let Iperf2BackStage::Ending { until, next, sent, times } = self.stage else { return };
        let reported = self.terms.has_own_stream();
        let most = self.terms.most.min(if reported { u64::MAX } else { ENDS });
        if times < most {
            // A repeated end has the next number, as in iperf 2.1.
            let before = sent + if reported { times } else { 0 };
            let sent_us = self.terms.wall_us(now);
            self.out.push_back(Output::Send(end_datagram(
                &self.head,
                self.terms.size_bytes,
                before,
                sent_us,
            )));
        }
        self.stage = Iperf2BackStage::Ending {
            until,
            next: next.max(now) + END_AGAIN,
            sent,
            times: times + 1,
        };
        if !reported && times + 1 >= most {
            self.finish();
        }
    }

    fn start_sending(&mut self) {
        self.stage = Iperf2BackStage::Sending;
        self.out.push_back(Output::Start);
        if self.ends {
            self.out.push_back(Output::StopSending);
        }
    }

    fn finish(&mut self) {
        self.stage = Iperf2BackStage::Over;
        self.out.push_back(Output::Ended);
    }

    /// Repeats the first datagram later, after a port unreachable.
    pub(super) fn retry_first(&mut self, now: MonoTime) {
        if let Iperf2BackStage::Beginning { until, left, sent: true, .. } = self.stage {
            let next = now + END_AGAIN;
            self.stage = Iperf2BackStage::Beginning { until, next, left, sent: false };
        }
    }

    /// Stops sending data.
    pub(super) fn stop_sending(&mut self) {
        if !std::mem::replace(&mut self.ends, true)
            && matches!(self.stage, Iperf2BackStage::Sending)
        {
            self.out.push_back(Output::StopSending);
        }
    }

    /// Starts the end after all data has been sent: `sent` datagrams, including the first.
    pub(super) fn begin_end(&mut self, now: MonoTime, sent: u64) {
        if matches!(self.stage, Iperf2BackStage::Sending) {
            let until = now + REPORT_TIMEOUT;
            self.stage = Iperf2BackStage::Ending { until, next: now, sent, times: 0 };
            self.check_state(now);
        }
    }

    /// Handles a datagram of the client: its report ends the stream.
    pub(super) fn read_report(&mut self, bytes: &[u8]) {
        if let (Iperf2BackStage::Ending { .. }, Some(report)) =
            (self.stage, UdpReport::parse(bytes))
        {
            self.out.push_back(Output::Peer(Box::new(report)));
            self.finish();
        }
    }
}
