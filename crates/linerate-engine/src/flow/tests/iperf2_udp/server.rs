//! The server of the simulated test: it takes a client by its first datagram, and runs the machine
//! of each until its end has been answered.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use linerate_core::record::Failure;
use linerate_core::time::{Clock, MonoTime, SimClock};
use linerate_proto::dialect::{FlowState, Output, Reason};
use linerate_proto::iperf2::{
    Mode, PROOF_BYTES, Stamp, UDP_SILENCE_MAX, UdpReport, UdpServer, UdpTally, UdpTerms, cookie,
    cookie_answer, end,
};

use super::{COOKIE, GAP, INTERVAL, SIZE, Shared, arrived, datagrams};
use crate::flow::net::Net;
use crate::flow::session::{Answer, Flows, Session};
use crate::foreign::iperf2::address_validation::SendLimit;
use crate::foreign::iperf2::udp_arrivals::state_of;

/// A client at the server.
pub(super) struct Served {
    session: Session<ServerData>,
    tally: Rc<RefCell<UdpTally>>,
    lingers: bool,
}

/// What the server sends to it.
struct ServerData {
    world: Shared,
    flow: u16,
    tally: Rc<RefCell<UdpTally>>,
    limit: SendLimit,
    planned: u64,
    opening: bool,
    began: Option<MonoTime>,
    sent: u64,
    ends: u64,
    stopping: bool,
    samples: u64,
}

impl ServerData {
    /// Sends what is due by now; its end is said three times.
    fn step(&mut self, now: MonoTime) {
        let Some(began) = self.began else { return };
        let granted = self.limit.granted(self.tally.borrow().came(now), SIZE as u64);
        let most = granted.unwrap_or(u64::MAX).min(self.planned);
        let due = 1 + (now.since(began).as_millis() / GAP.as_millis()) as u64;
        while self.sent + self.ends < due && self.ends < 3 {
            let data = self.ends == 0 && self.sent < most && !self.stopping;
            let mut datagram = end(&[], SIZE, self.sent, 1);
            if data {
                self.sent += 1;
                Stamp { number: self.sent as i64, sent_us: 1 }.write(&mut datagram);
            } else {
                self.ends += 1;
            }
            self.world.borrow_mut().pass(now, false, self.flow, &datagram);
        }
    }
}

impl Flows for ServerData {
    type Machine = UdpServer;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<UdpServer>,
    ) -> Result<Option<Answer<UdpServer>>, Failure> {
        match output {
            Output::Open => {
                self.opening = true;
                return self.answer(now);
            }
            Output::Sample => self.samples += 1,
            Output::StopSending => self.stopping = true,
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<Answer<UdpServer>>, Failure> {
        self.step(now);
        let came = self.tally.borrow().came(now);
        if !self.opening || self.limit.bounds(came, SIZE as u64).is_none() {
            return Ok(None);
        }
        (self.opening, self.began) = (false, Some(now));
        Ok(Some(Answer::Opened))
    }

    fn state(&mut self, now: MonoTime) -> FlowState {
        FlowState { done: self.ends == 3, ..state_of(&self.tally.borrow(), now) }
    }

    fn failure(&self, reason: Reason<Infallible>) -> Failure {
        unreachable!("{reason:?}")
    }

    fn lost(&self, _: &'static str, error: &io::Error) -> Failure {
        unreachable!("{error}")
    }
}

/// The server: its clients by their streams.
pub(super) struct SimServer {
    pub(super) world: Shared,
    pub(super) clock: Rc<SimClock>,
    pub(super) served: Vec<Option<Served>>,
}

impl SimServer {
    /// Takes what is there, and runs every client.
    pub(super) fn serve(&mut self) -> Result<(), &'static str> {
        let now = self.clock.now();
        let dies = self.world.borrow().trouble.dies;
        let dead = dies.is_some_and(|at| now >= MonoTime::default() + at);
        let here = arrived(&mut self.world.borrow_mut().to_server, now);
        if dead {
            self.served.iter_mut().for_each(|served| *served = None);
            return Ok(());
        }
        here.iter().for_each(|(_, flow, datagram)| self.take(now, *flow, datagram));
        for (at, slot) in self.served.iter_mut().enumerate() {
            let Some(served) = slot else { continue };
            let (forward, ended, last) = {
                let tally = served.tally.borrow();
                let sends = tally.header().is_some_and(|it| it.mode != Mode::Forward);
                (!sends, tally.ended(), tally.last)
            };
            if forward && ended && !served.lingers && now.since(last) > GAP * 3 {
                return Err("a server sees the end");
            }
            let mut net = Idle(Rc::clone(&self.clock));
            if served.session.turn(&mut net, false).is_some() {
                continue;
            }
            let tally = Rc::clone(&served.tally);
            let data = &served.session.flows;
            let span = now.nanos_since(tally.borrow().begin) / INTERVAL.as_nanos() as u64;
            if !served.lingers && !(span.saturating_sub(1)..=span + 1).contains(&data.samples) {
                return Err("the server's samples are kept");
            }
            let ended = tally.borrow().ended();
            let silent = now.since(tally.borrow().last) >= UDP_SILENCE_MAX;
            let reverse = tally.borrow().header().is_some_and(|it| it.mode == Mode::Reverse);
            if !served.lingers && !ended && !silent && !reverse {
                return Err("a server waits for an end or for silence");
            }
            if std::mem::replace(&mut served.lingers, true) {
                *slot = None;
                continue;
            }
            let machine = UdpServer::lingering(now, &tally.borrow());
            let data = data_of(&self.world, at as u16, &tally);
            served.session = Session::new(machine, data);
        }
        Ok(())
    }

    /// Takes a datagram, of a client that may be new.
    fn take(&mut self, now: MonoTime, flow: u16, datagram: &[u8]) {
        let now_us = now.nanos() / 1000;
        let at = usize::from(flow);
        let mut world = self.world.borrow_mut();
        world.server[at].all_bytes += datagram.len() as u64;
        if let Some(served) = &self.served[at] {
            let mut tally = served.tally.borrow_mut();
            if !tally.ended() {
                world.server[at].bytes += datagram.len() as u64;
            }
            if let Some(report) = tally.take(datagram, now, now_us) {
                world.server[at].reported = UdpReport::parse(&report);
                world.pass(now, false, flow, &report);
            }
            return;
        }
        let told = cookie(datagram).filter(|_| datagram.len() >= PROOF_BYTES);
        if world.trouble.proof && told.is_some_and(|told| told != COOKIE) {
            return world.pass(now, false, flow, &cookie_answer(COOKIE));
        }
        let mut tally = UdpTally::of(datagram, now);
        tally.take(datagram, now, now_us);
        let terms = UdpTerms {
            mode: tally.header().map_or(Mode::Forward, |header| header.mode),
            silence_max: UDP_SILENCE_MAX,
            interval: Some(INTERVAL),
        };
        let tally = Rc::new(RefCell::new(tally));
        world.server[at].bytes += datagram.len() as u64;
        world.server[at].clients.push(Rc::clone(&tally));
        drop(world);
        let session = Session::new(UdpServer::new(now, terms), data_of(&self.world, flow, &tally));
        self.served[at] = Some(Served { session, tally, lingers: false });
    }
}

fn data_of(world: &Shared, flow: u16, tally: &Rc<RefCell<UdpTally>>) -> ServerData {
    let header = tally.borrow().header();
    let reverse = header.is_some_and(|header| header.mode == Mode::Reverse);
    let mirrors = world.borrow().trouble.mirrors && !reverse;
    ServerData {
        world: Rc::clone(world),
        flow,
        tally: Rc::clone(tally),
        limit: if mirrors { SendLimit::Mirrored } else { SendLimit::Whole },
        // A damaged header may ask for any amount.
        planned: header.map_or(0, |header| datagrams(header.amount).min(1000)),
        opening: false,
        began: None,
        sent: 0,
        ends: 0,
        stopping: false,
        samples: 0,
    }
}

/// The clock, and no control connection.
struct Idle(Rc<SimClock>);

impl Net for Idle {
    fn now(&self) -> MonoTime {
        self.0.now()
    }

    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn wait(&mut self, _: MonoTime, _: bool) {
        unreachable!("whoever plays moves the clock");
    }
}
