//! The reflector of STAMP (`spec/stamp.md`), for `linerate serve`: requests and replies are
//! `linerate_proto::stamp`'s; here are the socket, the clocks, and the times at which replies
//! really left, which the next reply of their session brings.

use std::net::{IpAddr, SocketAddr};

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::stamp::{Arrived, Reflector, ReflectorOptions, Refusals, SessionId};
use linerate_sys::answer_socket::{AnswerSocket, ReceivedUdpRequest};
use linerate_sys::clock;
use linerate_sys::stop::Stop;
use linerate_sys::timestamps::Notice;

use super::answering::{self, Admits, Answering};
use super::civil_time::CivilTime;

/// Replies whose time of leaving may still come.
const LEAVING_MAX: usize = 4096;
/// A time of leaving is not later than this after the program gave the reply away.
const LEAVES_WITHIN_NS: u64 = 1_000_000_000;

/// A reflector of STAMP whose socket is bound.
#[derive(Debug)]
pub struct StampReflector {
    socket: AnswerSocket,
    options: ReflectorOptions,
}

impl StampReflector {
    /// Binds to `address`; an IPv6 wildcard answers IPv4 as well.
    /// # Errors
    /// When the address is not ours, the port is taken, or needs a privilege.
    pub fn bind(address: SocketAddr, options: ReflectorOptions) -> Result<Self, Failure> {
        let socket = AnswerSocket::bind_with_notes(address).map_err(|error| {
            let reason = crate::failure::words_of(&error.source);
            Failure::new(Fault::System, "bind UDP", address.to_string(), reason)
                .advise("choose a port with --stamp-port")
        })?;
        Ok(Self { socket, options })
    }

    /// The bound address, with the port that the kernel chose where 0 was asked.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_address()
    }

    /// Reflects until `stop` is asked; what was refused meanwhile.
    pub fn run(&self, stop: &Stop) -> Refusals {
        self.run_for(stop, &|_| true)
    }

    /// The same for sources that `admits` takes; others get no answer.
    pub fn run_for(&self, stop: &Stop, admits: Admits<'_>) -> Refusals {
        let mut running = RunningReflector {
            socket: &self.socket,
            port: self.local_address().map_or(0, |address| address.port()),
            reflector: Reflector::new(self.options.clone()),
            leaving: vec![None; LEAVING_MAX],
            sent: 0,
            civil_time: CivilTime::ask_clock_keepers(),
            admits,
        };
        answering::run(&self.socket, &mut running, stop);
        running.reflector.refusals()
    }
}

/// A reply that was given to the kernel.
#[derive(Clone, Copy, Debug)]
struct DepartingReply {
    key: u32,
    session: SessionId,
    sequence: u32,
    t3_ns: u64,
}

struct RunningReflector<'a> {
    socket: &'a AnswerSocket,
    port: u16,
    reflector: Reflector,
    leaving: Vec<Option<DepartingReply>>,
    /// Answers since the kernel began to number them.
    sent: u32,
    civil_time: CivilTime,
    admits: Admits<'a>,
}

impl Answering for RunningReflector<'_> {
    fn answer(&mut self, question: &ReceivedUdpRequest, buffer: &mut [u8], now: MonoTime) -> bool {
        self.send_reply(question, buffer, now);
        true
    }

    /// Unread notices would end every wait at once.
    fn before_sleep(&mut self) {
        self.read_notices();
    }
}

impl RunningReflector<'_> {
    fn send_reply(&mut self, question: &ReceivedUdpRequest, buffer: &mut [u8], now: MonoTime) {
        let user_ns = clock::realtime_ns();
        self.read_notices();
        let (notes, Some(source)) = (question.arrival_fields(), question.source()) else { return };
        if !(self.admits)(source.ip()) {
            return;
        }
        let local = notes.local.unwrap_or_else(|| IpAddr::from([0, 0, 0, 0]));
        let arrived = Arrived {
            source,
            local: SocketAddr::new(local, self.port),
            // A stamp after the program had the datagram is none.
            at_ns: notes.arrived_ns.filter(|at| *at <= user_ns).unwrap_or(user_ns),
            ttl: notes.ttl,
            tos: notes.tos,
            by_ptp: self.civil_time.is_kept_by_ptp4l(),
        };
        self.civil_time.refresh_if_due(now);
        let error = self.civil_time.of_stamps();
        let len = question.len();
        let Ok(prepared) = self.reflector.prepare(buffer, len, &arrived, error, now) else {
            return;
        };
        let reply = &mut buffer[..prepared.len];
        let t3_ns = clock::realtime_ns();
        self.reflector.finish(reply, &prepared, t3_ns);
        let sent = match prepared.dscp {
            Some(dscp) => self.socket.answer_in_class(question, reply, dscp << 2),
            None => self.socket.answer(question, reply),
        };
        if !sent {
            // The kernel may or may not have counted the failed send: number anew.
            self.leaving.fill(None);
            self.sent = 0;
            let _ = self.socket.restart_stamps();
            return;
        }
        let (session, sequence) = (prepared.session, prepared.sequence);
        let leaving = DepartingReply { key: self.sent, session, sequence, t3_ns };
        self.leaving[self.sent as usize % LEAVING_MAX] = Some(leaving);
        self.sent = self.sent.wrapping_add(1);
    }

    fn read_notices(&mut self) {
        for _ in 0..LEAVING_MAX {
            let Some(notice) = self.socket.next_notice() else { return };
            let Notice::Departed { key, at_ns } = notice else { continue };
            let place = &mut self.leaving[key as usize % LEAVING_MAX];
            let Some(left) = place.take_if(|leaving| leaving.key == key) else { continue };
            if (left.t3_ns..left.t3_ns + LEAVES_WITHIN_NS).contains(&at_ns) {
                self.reflector.note_departure(&left.session, left.sequence, at_ns);
            }
        }
    }
}
