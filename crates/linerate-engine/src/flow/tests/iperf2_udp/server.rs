//! The server of the simulated test: it takes a client by its first datagram, and runs the machine
//! of each until its end has been answered.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use linerate_core::record::Failure;
use linerate_core::time::{Clock, MonoTime, SimClock};
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf2::{
    Mode, PROOF_BYTES, Stamp, UDP_SILENCE_MAX, UdpBack, UdpReport, UdpServer, UdpServerNews,
    UdpTally, UdpTerms, cookie, cookie_answer, end_datagram,
};

use super::{COOKIE, GAP, INTERVAL, Pipe, SIZE, Shared, datagrams};
use crate::flow::net::Net;
use crate::flow::session::{Flows, FlowsAnswer, TestSession};
use crate::foreign::iperf2::address_validation::SendLimit;
use crate::foreign::iperf2::udp_arrivals::state_of;

/// A client at the server.
pub(super) struct Served {
    session: TestSession<ServerData>,
    tally: Rc<RefCell<UdpTally>>,
    lingers: bool,
}

/// What the server sends to it.
struct ServerData {
    world: Shared,
    flow: u16,
    tally: Rc<RefCell<UdpTally>>,
    limit: SendLimit,
    back: Option<UdpBack>,
    /// Datagrams to send, those that the machine sends before them, and those sent.
    planned: u64,
    before: u64,
    sent: u64,
    opening: bool,
    began: Option<MonoTime>,
    told: bool,
    stopping: bool,
    samples: u64,
}

impl ServerData {
    /// Sends what is due by now; how much was sent, once that is all.
    fn step(&mut self, now: MonoTime) -> Option<u64> {
        let began = self.began.filter(|_| !self.told)?;
        let granted = self.limit.granted(self.tally.borrow().arrivals(now), SIZE as u64);
        let most = granted.unwrap_or(u64::MAX).min(self.planned - self.before);
        let due = 1 + (now.duration_since(began).as_millis() / GAP.as_millis()) as u64;
        while self.sent < due && !self.told {
            self.told = self.sent >= most || self.stopping;
            if !self.told {
                self.sent += 1;
                let number = self.before + self.sent;
                let mut datagram = end_datagram(&[], SIZE, number, 1);
                Stamp { number: number as i64, sent_us: 1 }.write(&mut datagram);
                self.world.borrow_mut().pass(now, self.pipe(), self.flow, &datagram);
            }
        }
        self.told.then_some(self.before + self.sent)
    }

    /// Where it goes.
    fn pipe(&self) -> Pipe {
        let own = self.back.is_some_and(|back| back.has_own_stream());
        if own { Pipe::ToListener } else { Pipe::ToClient }
    }
}

impl Flows for ServerData {
    type Machine = UdpServer;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<UdpServer>,
    ) -> Result<Option<FlowsAnswer<UdpServer>>, Failure> {
        let mut world = self.world.borrow_mut();
        let stream = &mut world.server[usize::from(self.flow)];
        match output {
            Output::Open => {
                drop(world);
                self.opening = true;
                return self.answer(now);
            }
            Output::Start => self.began = Some(now),
            Output::Sample => self.samples += 1,
            Output::StopSending => self.stopping = true,
            Output::Peer(report) => stream.back.report = Some(*report),
            Output::Ended => {
                (stream.back.sent, stream.back.ended) = (self.before + self.sent, true)
            }
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<UdpServer>>, Failure> {
        let mut news = Vec::new();
        if std::mem::take(&mut self.world.borrow_mut().server[usize::from(self.flow)].refused) {
            news.push(UdpServerNews::Refused);
        }
        news.extend(self.step(now).map(UdpServerNews::Sent));
        let came = self.tally.borrow().arrivals(now);
        if self.opening && self.limit.bounds(came, SIZE as u64).is_some() {
            self.opening = false;
            return Ok(Some(FlowsAnswer::Opened));
        }
        Ok((!news.is_empty()).then_some(FlowsAnswer::Tell(news)))
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        state_of(&self.tally.borrow(), now)
    }

    fn peer_name(&self) -> String {
        unreachable!("it has no way to fail")
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
        let here = self.world.borrow_mut().arrived(Pipe::ToServer, now);
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
                (!sends, tally.has_ended(), tally.last)
            };
            if forward && ended && !served.lingers && now.duration_since(last) > GAP * 3 {
                return Err("a server sees the end");
            }
            let mut net = Beside {
                world: Rc::clone(&self.world),
                clock: Rc::clone(&self.clock),
                flow: at as u16,
                pipe: served.session.flows.pipe(),
            };
            if served.session.run_turn(&mut net, false).is_some() {
                continue;
            }
            let tally = Rc::clone(&served.tally);
            let data = &served.session.flows;
            let span = now.nanos_since(tally.borrow().begin) / INTERVAL.as_nanos() as u64;
            if !served.lingers && !(span.saturating_sub(1)..=span + 1).contains(&data.samples) {
                return Err("the server's samples are kept");
            }
            let ended = tally.borrow().has_ended();
            let silent = now.duration_since(tally.borrow().last) >= UDP_SILENCE_MAX;
            let reverse = tally.borrow().header().is_some_and(|it| it.mode == Mode::Reverse);
            if !served.lingers && !ended && !silent && !reverse {
                return Err("a server waits for an end or for silence");
            }
            if std::mem::replace(&mut served.lingers, true) {
                *slot = None;
                continue;
            }
            let machine = UdpServer::lingering(now, &tally.borrow());
            let data = data_of(&self.world, at as u16, &tally, None);
            served.session = TestSession::new(machine, data);
        }
        Ok(())
    }

    /// Takes a datagram, of a client that may be new.
    fn take(&mut self, now: MonoTime, flow: u16, datagram: &[u8]) {
        let now_us = now.as_nanos() / 1000;
        let at = usize::from(flow);
        let mut world = self.world.borrow_mut();
        world.server[at].all_bytes += datagram.len() as u64;
        if let Some(served) = &self.served[at] {
            let mut tally = served.tally.borrow_mut();
            if !tally.has_ended() {
                world.server[at].bytes += datagram.len() as u64;
            }
            if let Some(report) = tally.count_datagram(datagram, now, now_us) {
                world.server[at].reported = UdpReport::parse(&report);
                world.pass(now, Pipe::ToClient, flow, &report);
            }
            return;
        }
        let told = cookie(datagram).filter(|_| datagram.len() >= PROOF_BYTES);
        if world.trouble.proof && told.is_some_and(|told| told != COOKIE) {
            return world.pass(now, Pipe::ToClient, flow, &cookie_answer(COOKIE));
        }
        let mut tally = UdpTally::from_first_datagram(datagram, now);
        tally.count_datagram(datagram, now, now_us);
        let back = back_of(&tally, world.trouble.mirrors);
        let terms = UdpTerms {
            mode: tally.header().map_or(Mode::Forward, |header| header.mode),
            silence_max: UDP_SILENCE_MAX,
            interval: Some(INTERVAL),
            back,
        };
        let tally = Rc::new(RefCell::new(tally));
        world.server[at].bytes += datagram.len() as u64;
        world.server[at].clients.push(Rc::clone(&tally));
        drop(world);
        let data = data_of(&self.world, flow, &tally, back);
        let session = TestSession::new(UdpServer::new(now, terms), data);
        self.served[at] = Some(Served { session, tally, lingers: false });
    }
}

/// What a client is sent that wants data.
fn back_of(tally: &UdpTally, mirrors: bool) -> Option<UdpBack> {
    let header = tally.header().filter(|header| header.mode != Mode::Forward)?;
    let most = limit_of(Some(header.mode), mirrors).beside_max();
    Some(UdpBack { header, size_bytes: SIZE, most, wall_offset_ns: 0 })
}

fn limit_of(mode: Option<Mode>, mirrors: bool) -> SendLimit {
    if mirrors && mode != Some(Mode::Reverse) { SendLimit::Mirrored } else { SendLimit::Whole }
}

fn data_of(
    world: &Shared,
    flow: u16,
    tally: &Rc<RefCell<UdpTally>>,
    back: Option<UdpBack>,
) -> ServerData {
    let mirrors = world.borrow().trouble.mirrors;
    let before = u64::from(back.is_some_and(|back| back.has_own_stream()));
    ServerData {
        world: Rc::clone(world),
        flow,
        tally: Rc::clone(tally),
        limit: limit_of(back.map(|back| back.header.mode), mirrors),
        back,
        // A damaged header may ask for any amount.
        planned: back.map_or(before, |back| datagrams(back.header.amount).clamp(before, 1000)),
        before,
        sent: 0,
        opening: false,
        began: None,
        told: false,
        stopping: false,
        samples: 0,
    }
}

/// What goes beside data on the stream that the server sends.
struct Beside {
    world: Shared,
    clock: Rc<SimClock>,
    flow: u16,
    pipe: Pipe,
}

impl Net for Beside {
    fn now(&self) -> MonoTime {
        self.clock.now()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        let Some(said) = world.take(Pipe::FromListener, self.flow, self.clock.now()) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        // A refusal of the kernel comes as an error.
        if said.is_empty() {
            world.server[usize::from(self.flow)].refused = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        bytes[..said.len()].copy_from_slice(&said);
        Ok(said.len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        world.server[usize::from(self.flow)].back.beside += 1;
        world.pass(self.clock.now(), self.pipe, self.flow, bytes);
        Ok(bytes.len())
    }

    fn wait(&mut self, _: MonoTime, _: bool) {
        unreachable!("whoever plays moves the clock");
    }
}
