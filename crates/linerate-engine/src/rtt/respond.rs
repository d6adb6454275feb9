//! The answering end of UDP echo (`spec/udp-echo.md`), for `linerate serve`.
//!
//! It cannot be used as an amplifier: an answer is as long as its question, only questions of
//! ours are answered, answers are never answered, and there is a limit for each second.

use std::net::SocketAddr;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::echo::{PeerTimes, answer_in_place, class_asked, write_class};
use linerate_proto::meet::{MeetAction, Meetings};
use linerate_sys::answer_socket::{AnswerSocket, ReceivedUdpRequest};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::answering::{self, Admits, Answering};

/// Answers in one second: twice what one asker with a full window reached (250,000/s).
pub const ANSWERS_PER_SECOND_MAX: u64 = 500_000;
/// A responder to UDP probes whose socket is bound.
#[derive(Debug)]
pub struct UdpResponder {
    socket: AnswerSocket,
    answers_per_second_max: u64,
    meets: bool,
}

impl UdpResponder {
    /// Binds to `address`; an IPv6 wildcard answers IPv4 as well.
    /// # Errors
    /// When the address is not ours or the port is taken.
    pub fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let socket = AnswerSocket::bind(address).map_err(|error| {
            let reason = crate::failure::words_of(&error.source);
            Failure::new(Fault::System, "bind UDP", address.to_string(), reason)
                .advise("another server may hold the port: see `ss -ulpn`")
        })?;
        socket.take_arrival_times();
        socket.take_classes();
        Ok(Self { socket, answers_per_second_max: ANSWERS_PER_SECOND_MAX, meets: false })
    }

    /// The same responder with another limit.
    #[must_use]
    pub fn answering_at_most(mut self, per_second: u64) -> Self {
        self.answers_per_second_max = per_second;
        self
    }

    /// Lets hosts behind NAT meet here, too (`spec/meet.md`), and passes on what they send.
    pub fn let_meet(&mut self) {
        self.meets = true;
    }

    /// The bound address, with the port that the kernel chose where 0 was asked.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_address()
    }

    /// Answers until `stop` is asked; looks at it ten times a second when idle.
    pub fn run(&self, stop: &Stop) {
        self.run_for(stop, &|_| true);
    }

    /// The same for sources that `admits` takes; others get no answer.
    pub fn run_for(&self, stop: &Stop, admits: Admits<'_>) {
        let allowance = AnswerAllowance::new(self.answers_per_second_max);
        let meetings = self.meets.then(Meetings::default);
        let mut echo = EchoResponder { socket: &self.socket, allowance, admits, meetings };
        answering::run(&self.socket, &mut echo, stop);
    }
}

struct EchoResponder<'a> {
    socket: &'a AnswerSocket,
    allowance: AnswerAllowance,
    admits: Admits<'a>,
    meetings: Option<Meetings<ReceivedUdpRequest>>,
}

impl Answering for EchoResponder<'_> {
    fn answer(&mut self, question: &ReceivedUdpRequest, buffer: &mut [u8], now: MonoTime) -> bool {
        let datagram = &mut buffer[..question.len()];
        let source = question.source().filter(|source| (self.admits)(source.ip()));
        if let (Some(meetings), Some(source)) = (&mut self.meetings, source) {
            let back = || question.clone();
            match meetings.handle(datagram, source, back, now) {
                MeetAction::NotOurs => {}
                MeetAction::Drop => return false,
                _ if !self.allowance.take_answer(now) => return false,
                MeetAction::Answer(answer) => return self.socket.answer(question, &answer),
                MeetAction::PassOn(way) => return self.socket.answer(way, datagram),
            }
        }
        if source.is_none() || !answer_in_place(datagram) || !self.allowance.take_answer(now) {
            return false;
        }
        let class = class_asked(datagram);
        if PeerTimes::are_requested(datagram) {
            let sent_ns = clock::realtime_ns();
            // A stamp from before a step of the clock says nothing.
            let received_ns = question.arrival_fields().arrived_ns.filter(|ns| *ns <= sent_ns);
            PeerTimes { received_ns: received_ns.unwrap_or(sent_ns), sent_ns }.write(datagram);
        }
        match (class, question.arrival_fields().tos) {
            (Some(class), of_question) => {
                if let Some(of_question) = of_question {
                    write_class(datagram, of_question);
                }
                self.socket.answer_in_class(question, datagram, class);
            }
            (None, _) => {
                self.socket.answer(question, datagram);
            }
        }
        true
    }
}

/// A limit of answers in each second, counted from the first answer of that second.
#[derive(Clone, Copy, Debug)]
struct AnswerAllowance {
    per_second: u64,
    since: MonoTime,
    taken: u64,
}

impl AnswerAllowance {
    const fn new(per_second: u64) -> Self {
        Self { per_second, since: MonoTime::from_nanos(0), taken: 0 }
    }

    fn take_answer(&mut self, now: MonoTime) -> bool {
        if now.nanos_since(self.since) >= 1_000_000_000 {
            self.since = now;
            self.taken = 0;
        }
        self.taken += 1;
        self.taken <= self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_is_for_each_second() {
        let mut allowance = AnswerAllowance::new(3);
        let at = |ms: u64| MonoTime::from_nanos(10_000_000_000 + ms * 1_000_000);
        let taken: Vec<bool> = [0, 1, 2, 3, 999, 1000, 1001, 1002, 1003]
            .into_iter()
            .map(|ms| allowance.take_answer(at(ms)))
            .collect();
        assert_eq!(taken, [true, true, true, false, false, true, true, true, false]);
    }
}
