//! What a server sends over UDP, on the client's stream (`-R`, `--full-duplex`), where nobody
//! reports, or on one of its own to the port where the client listens (`-d`, `-r`), where the
//! client does: its first datagram and its end. The data between them is the sender's own.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    ClientHeader, END_AGAIN, FIRST_BYTES_MIN, Mode, REPORT_TIMEOUT, Stamp, UdpReport, UdpSender,
    end, pattern,
};
use crate::dialect::{Machine, Output};

/// A client may listen as much later than it sends.
pub const LISTENING: Duration = Duration::from_secs(1);
/// A refusal of the first datagram has this long to come.
pub const REFUSAL: Duration = Duration::from_millis(20);
/// The end is said so often to a client that does not answer it.
const ENDS: u64 = 3;

/// What a client is sent.
#[derive(Clone, Copy, Debug)]
pub struct UdpBack {
    /// What the client asked for.
    pub header: ClientHeader,
    /// Payload of a datagram.
    pub size_bytes: usize,
    /// First datagrams, and ends, that may be sent at most.
    pub most: u64,
    /// The wall clock less the monotonic one, in nanoseconds.
    pub wall_offset_ns: i64,
}

impl UdpBack {
    /// Whether it goes to a stream of its own.
    pub const fn has_own_stream(&self) -> bool {
        matches!(self.header.mode, Mode::Dual | Mode::TradeOff)
    }

    /// What the datagrams of a stream that begins at `now` begin with: digits, and with trip times
    /// a header that says so.
    pub fn head(&self, now: MonoTime) -> Vec<u8> {
        if self.header.trip_times.is_none() {
            return pattern(FIRST_BYTES_MIN);
        }
        let full = self.header.mode == Mode::FullDuplex;
        let mode = if full { Mode::FullDuplex } else { Mode::Forward };
        let trip_times = Some(self.wall_us(now));
        UdpSender::new(ClientHeader { trip_times, mode, ..self.header }).head()
    }

    const fn wall_us(&self, now: MonoTime) -> u64 {
        now.nanos().saturating_add_signed(self.wall_offset_ns) / 1000
    }
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The first datagram is sent again for a while where it is refused: a client listens from a
    /// thread of its own, which may come to it later than its header came here.
    Beginning {
        until: MonoTime,
        next: MonoTime,
        left: u64,
        sent: bool,
    },
    Sending,
    /// After so many datagrams the end is said until the client's report comes, or a few times.
    Ending {
        until: MonoTime,
        next: MonoTime,
        sent: u64,
        times: u64,
    },
    Over,
}

/// The stream to a client.
pub(super) struct Back<M: Machine> {
    terms: UdpBack,
    head: Vec<u8>,
    stage: Stage,
    /// It is to end.
    ends: bool,
    /// What the machine is to want.
    pub(super) out: VecDeque<Output<M>>,
}

impl<M: Machine<Report = UdpReport>> Back<M> {
    /// Its socket is there.
    pub(super) fn new(now: MonoTime, terms: UdpBack) -> Self {
        let head = terms.head(now);
        let (stage, ends, out) = (Stage::Sending, false, VecDeque::new());
        let mut back = Self { terms, head, stage, ends, out };
        if terms.has_own_stream() {
            let (until, next, left) = (now + LISTENING, now, terms.most);
            back.stage = Stage::Beginning { until, next, left, sent: false };
            back.look(now);
        } else {
            back.out.push_back(Output::Start);
        }
        back
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Whether what the client says on this stream is of use.
    pub(super) const fn reads(&self) -> bool {
        let waits = matches!(self.stage, Stage::Beginning { .. } | Stage::Ending { .. });
        waits && self.terms.has_own_stream()
    }

    pub(super) fn wake_at(&self) -> Option<MonoTime> {
        match self.stage {
            Stage::Beginning { until, next, .. } | Stage::Ending { until, next, .. } => {
                Some(next.min(until))
            }
            Stage::Sending | Stage::Over => None,
        }
    }

    pub(super) fn look(&mut self, now: MonoTime) {
        match self.stage {
            Stage::Beginning { until, next, left, sent } if now >= next => {
                if sent || left == 0 || now >= until {
                    return self.start();
                }
                let mut first = end(&self.head, self.terms.size_bytes, 0, 0);
                Stamp { number: 1, sent_us: self.terms.wall_us(now) }.write(&mut first);
                self.out.push_back(Output::Send(first));
                let (next, left, sent) = (now + REFUSAL, left - 1, true);
                self.stage = Stage::Beginning { until, next, left, sent };
            }
            Stage::Ending { until, .. } if now >= until => self.finish(),
            Stage::Ending { next, .. } if now >= next => self.say_end(now),
            Stage::Beginning { .. } | Stage::Ending { .. } | Stage::Sending | Stage::Over => {}
        }
    }

    /// Says the end, as often as the client may be told.
    fn say_end(&mut self, now: MonoTime) {
        let Stage::Ending { until, next, sent, times } = self.stage else { return };
        let reported = self.terms.has_own_stream();
        let most = self.terms.most.min(if reported { u64::MAX } else { ENDS });
        if times < most {
            // One that asks for a report again has the next number, as iperf 2.1 does it.
            let before = sent + if reported { times } else { 0 };
            let sent_us = self.terms.wall_us(now);
            self.out.push_back(Output::Send(end(
                &self.head,
                self.terms.size_bytes,
                before,
                sent_us,
            )));
        }
        self.stage =
            Stage::Ending { until, next: next.max(now) + END_AGAIN, sent, times: times + 1 };
        if !reported && times + 1 >= most {
            self.finish();
        }
    }

    fn start(&mut self) {
        self.stage = Stage::Sending;
        self.out.push_back(Output::Start);
        if self.ends {
            self.out.push_back(Output::StopSending);
        }
    }

    fn finish(&mut self) {
        self.stage = Stage::Over;
        self.out.push_back(Output::Ended);
    }

    /// The client's port refused the first datagram.
    pub(super) fn refused(&mut self, now: MonoTime) {
        if let Stage::Beginning { until, left, sent: true, .. } = self.stage {
            let next = now + END_AGAIN;
            self.stage = Stage::Beginning { until, next, left, sent: false };
        }
    }

    /// Sends no more data.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ends, true) && matches!(self.stage, Stage::Sending) {
            self.out.push_back(Output::StopSending);
        }
    }

    /// All data is sent: so many datagrams with the first.
    pub(super) fn sent(&mut self, now: MonoTime, sent: u64) {
        if matches!(self.stage, Stage::Sending) {
            let until = now + REPORT_TIMEOUT;
            self.stage = Stage::Ending { until, next: now, sent, times: 0 };
            self.look(now);
        }
    }

    /// Takes what the client says.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if let (Stage::Ending { .. }, Some(report)) = (self.stage, UdpReport::parse(bytes)) {
            self.out.push_back(Output::Peer(Box::new(report)));
            self.finish();
        }
    }
}
