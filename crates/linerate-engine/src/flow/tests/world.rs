//! The simulated network, and data that moves at a rate in place of threads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::record::{Failure, Fault};
use linerate_core::time::{Clock, MonoTime, SimClock};
use linerate_proto::dialect::{FlowState, Machine, Output};

use super::{Trouble, count};
use crate::flow::net::Net;
use crate::flow::session::{Flows, FlowsAnswer, Words};

/// An end of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client = 0,
    Server = 1,
}

impl End {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// What it is called in failures.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Client => "the client",
            Self::Server => "the server",
        }
    }
}

/// What both ends share.
#[derive(Clone)]
pub(super) struct World {
    pub(super) clock: Rc<SimClock>,
    state: Rc<RefCell<State>>,
    trouble: Trouble,
}

struct State {
    random: Random,
    /// Control bytes from each end.
    pipes: [Pipe; 2],
    /// What each end sends.
    senders: [Option<Sender>; 2],
    /// One way.
    delay: Duration,
    /// When the server sees the streams.
    opened: Option<MonoTime>,
    /// What each end has done so far.
    steps: [u64; 2],
    /// When the other end learns that this one has closed.
    closed_at: [Option<MonoTime>; 2],
}

#[derive(Default)]
struct Pipe {
    /// In order, each piece with its time of arrival.
    pieces: VecDeque<(MonoTime, Piece)>,
    last: MonoTime,
    sent: u64,
    closed: bool,
}

enum Piece {
    Byte(u8),
    End { reset: bool },
}

/// Data from one end, at a rate, from its begin to its end, up to an amount.
#[derive(Clone, Copy)]
struct Sender {
    begin: MonoTime,
    end: Option<MonoTime>,
    bytes_max: u64,
    /// Its host is gone: nobody learns of its end.
    gone: bool,
}

/// A kernel gives up a connection on which nothing is acknowledged for this long.
pub(super) const VANISHED: Duration = Duration::from_secs(30);

/// Bytes per millisecond of every sender.
pub(super) const RATE: u64 = 1000;

impl Sender {
    fn sent(&self, now: MonoTime) -> u64 {
        let until = self.end.map_or(now, |end| end.min(now));
        (until.nanos_since(self.begin) * RATE / 1_000_000).min(self.bytes_max)
    }
}

impl World {
    pub(super) fn new(seed: u64, trouble: Trouble) -> Self {
        let mut random = Random::new(seed, 1);
        let delay = Duration::from_micros(20 + count(&mut random, 100_000));
        let state = State {
            random,
            pipes: Default::default(),
            senders: [None; 2],
            delay,
            opened: None,
            steps: [0; 2],
            closed_at: [None; 2],
        };
        let clock = Rc::new(SimClock::default());
        Self { clock, state: Rc::new(RefCell::new(state)), trouble }
    }

    pub(super) fn now(&self) -> MonoTime {
        self.clock.now()
    }

    /// An end's process ends: its kernel closes the connection and its senders are gone.
    pub(super) fn close(&self, end: End) {
        let now = self.now();
        let mut state = self.state.borrow_mut();
        state.stop_sending(end, now);
        if !std::mem::replace(&mut state.pipes[end as usize].closed, true) {
            state.put(end, now, Piece::End { reset: false });
        }
    }

    /// Whether an end is gone; it takes its connection along where that is what happens.
    pub(super) fn is_dead(&self, end: End) -> bool {
        let Trouble::Dies { end: whose, after, closes } = self.trouble else { return false };
        let dead = whose == end && self.state.borrow().steps[end as usize] >= after;
        if dead {
            self.state.borrow_mut().stop_sending(end, self.now());
            if let Some(sender) = &mut self.state.borrow_mut().senders[end as usize] {
                sender.gone = !closes;
            }
            if closes {
                self.close(end);
            }
            let silent = self.now() + VANISHED;
            self.state.borrow_mut().closed_at[end as usize].get_or_insert(silent);
        }
        dead
    }

    fn step(&self, end: End) {
        self.state.borrow_mut().steps[end as usize] += 1;
    }
}

impl State {
    fn stop_sending(&mut self, end: End, now: MonoTime) {
        if let Some(sender) = &mut self.senders[end as usize] {
            sender.end.get_or_insert(now);
        }
    }

    /// Pieces never overtake each other.
    fn put(&mut self, from: End, now: MonoTime, piece: Piece) {
        // Most bytes arrive with the one before; some are the first of a later segment.
        let late = self.random.chance(0.03);
        let jitter = if late { count(&mut self.random, 30_000) } else { 0 };
        let pipe = &mut self.pipes[from as usize];
        let at = (now + self.delay + Duration::from_micros(jitter)).max(pipe.last);
        pipe.last = at;
        if matches!(piece, Piece::End { .. }) {
            self.closed_at[from as usize] = Some(at);
        }
        pipe.pieces.push_back((at, piece));
    }

    /// A byte sets off, and meets its trouble.
    fn send(&mut self, from: End, now: MonoTime, byte: u8, trouble: Trouble) {
        let number = self.pipes[from as usize].sent;
        self.pipes[from as usize].sent += 1;
        match trouble {
            Trouble::Cut { of, after, reset } if of == from && number >= after => {
                if !std::mem::replace(&mut self.pipes[from as usize].closed, true) {
                    self.put(from, now, Piece::End { reset });
                }
            }
            Trouble::Swallow { of, after } if of == from && number >= after => {}
            Trouble::Turn { of, at, to } if of == from && number == at => {
                self.put(from, now, Piece::Byte(to));
            }
            Trouble::Insert { of, at, count: more } if of == from && number == at => {
                for _ in 0..more {
                    let garbage = count(&mut self.random, 256) as u8;
                    self.put(from, now, Piece::Byte(garbage));
                }
                self.put(from, now, Piece::Byte(byte));
            }
            _ => self.put(from, now, Piece::Byte(byte)),
        }
    }
}

/// An end's control connection.
pub(super) struct SimNet {
    world: World,
    end: End,
    /// Bytes that whoever accepts the connection takes for itself.
    skips: usize,
}

impl SimNet {
    pub(super) fn new(world: &World, end: End, skips: usize) -> Self {
        Self { world: world.clone(), end, skips }
    }

    /// When the next byte is there to be read.
    pub(super) fn next_arrival(&self) -> Option<MonoTime> {
        let state = self.world.state.borrow();
        state.pipes[self.end.other() as usize].pieces.front().map(|(at, _)| *at)
    }
}

impl Net for SimNet {
    fn now(&self) -> MonoTime {
        self.world.now()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let now = self.world.now();
        let mut state = self.world.state.borrow_mut();
        // Any number of the bytes that are there, as a busy host would have it.
        let most = 1 + count(&mut state.random, 64) as usize;
        let pipe = &mut state.pipes[self.end.other() as usize];
        let mut read = 0;
        while read < most.min(bytes.len()) {
            match pipe.pieces.front() {
                Some((at, Piece::Byte(byte))) if *at <= now => bytes[read] = *byte,
                Some((at, Piece::End { reset })) if *at <= now && read == 0 => {
                    return if *reset { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(0) };
                }
                _ => break,
            }
            pipe.pieces.pop_front();
            match self.skips {
                0 => read += 1,
                _ => self.skips -= 1,
            }
        }
        if read == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(read) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = self.world.now();
        let trouble = self.world.trouble;
        let mut state = self.world.state.borrow_mut();
        // A full buffer takes a part.
        let room = if state.random.chance(0.2) { 1 + bytes.len() / 2 } else { bytes.len() };
        state.steps[self.end as usize] += 1;
        for byte in &bytes[..room.min(bytes.len())] {
            state.send(self.end, now, *byte, trouble);
        }
        Ok(room.min(bytes.len()))
    }

    fn wait(&mut self, _: MonoTime, _: bool) {
        unreachable!("whoever plays moves the clock");
    }
}

/// How much each end sends at most; none where it does not.
pub(super) type Sends = [Option<u64>; 2];
/// An answer, and what is sent then.
pub(super) type Decided<M> = (Result<<M as Machine>::Terms, <M as Machine>::Refusal>, Sends);

/// What a dialect makes of data.
pub(super) struct Model<M: Machine> {
    pub(super) interval: Duration,
    /// The ends that send, and how much at most; of a server once it has decided.
    pub(super) sends: Option<Sends>,
    /// Senders close their streams: receivers see the end, and count what was sent.
    pub(super) closes: bool,
    /// Streams are datagrams, and whoever sends some does not learn whether they arrive.
    pub(super) datagrams: bool,
    /// What the client's data begins with: control bytes, where there is no other connection.
    pub(super) head: Vec<u8>,
    /// Decides on a test.
    pub(super) decide: fn(&M::Request) -> Decided<M>,
    /// The account of what each end has sent and the other received.
    pub(super) report: fn([u64; 2]) -> M::Report,
    /// That of the other end, where it told one.
    pub(super) read: fn(&M::Report) -> Option<[u64; 2]>,
}

/// The data of one end.
pub(super) struct SimFlows<M: Machine> {
    end: End,
    world: World,
    model: Model<M>,
    opening: Option<MonoTime>,
    began: Option<MonoTime>,
    pub(super) ran_from: Option<MonoTime>,
    pub(super) stopped_running: Option<MonoTime>,
    reading_ended: Option<MonoTime>,
    pub(super) peer: Option<[u64; 2]>,
    pub(super) samples: u32,
    pub(super) results: u32,
    pub(super) counts: Option<[u64; 2]>,
}

impl<M: Machine> SimFlows<M> {
    pub(super) fn new(end: End, world: &World, model: Model<M>) -> Self {
        Self {
            end,
            world: world.clone(),
            model,
            opening: None,
            began: None,
            ran_from: None,
            stopped_running: None,
            reading_ended: None,
            peer: None,
            samples: 0,
            results: 0,
            counts: None,
        }
    }

    /// A sender of datagrams needs no answer to begin.
    fn sends_datagrams(&self) -> bool {
        self.model.datagrams
            && self.model.sends.is_some_and(|sends| sends[self.end as usize].is_some())
    }

    /// What each end has sent, as far as this one knows: of its own what the other has, for its
    /// kernel tells of acknowledgements, and of the other's what is here.
    fn arrived(&self, now: MonoTime) -> [u64; 2] {
        let state = self.world.state.borrow();
        let then = |at: MonoTime| {
            MonoTime::from_nanos(at.as_nanos().saturating_sub(state.delay.as_nanos() as u64))
        };
        let own = self.end as usize;
        let mut counts = [0; 2];
        for (at, sender) in state.senders.iter().enumerate() {
            let seen =
                if at == own { now } else { self.reading_ended.map_or(now, |end| end.min(now)) };
            let seen = if at == own && self.model.closes { now } else { then(seen) };
            let comes = at == own || self.world.trouble != Trouble::NoStreams;
            counts[at] = sender.filter(|_| comes).map_or(0, |sender| sender.sent(seen));
        }
        counts
    }
}

impl<M: Words> Flows for SimFlows<M> {
    type Machine = M;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<M>,
    ) -> Result<Option<FlowsAnswer<M>>, Failure> {
        self.world.step(self.end);
        match output {
            Output::Decide(ask) => {
                let (decided, sends) = (self.model.decide)(&ask);
                self.model.sends = Some(sends);
                return Ok(Some(FlowsAnswer::Decided(decided)));
            }
            Output::Open => self.opening = Some(now),
            Output::Begin => self.began = Some(now),
            Output::Start => {
                self.ran_from = self.began;
                let sends = self.model.sends.unwrap_or_default()[self.end as usize];
                let sender =
                    sends.map(|bytes_max| Sender { begin: now, end: None, bytes_max, gone: false });
                self.world.state.borrow_mut().senders[self.end as usize] = sender;
            }
            Output::Sample => self.samples += 1,
            Output::StopSending => {
                self.world.state.borrow_mut().stop_sending(self.end, now);
            }
            Output::Ended => self.stopped_running = Some(now),
            Output::StopReceiving => self.reading_ended = Some(now),
            Output::Count => {
                self.stopped_running.get_or_insert(now);
                let counts = self.arrived(now);
                self.counts = Some(counts);
                return Ok(Some(FlowsAnswer::Counted(Box::new((self.model.report)(counts)))));
            }
            Output::Peer(report) => {
                self.stopped_running.get_or_insert(now);
                self.peer = (self.model.read)(&report);
            }
            Output::Finished => {
                self.results += 1;
                let counts = self.arrived(now);
                self.counts.get_or_insert(counts);
            }
            Output::Halt => {
                self.world.state.borrow_mut().stop_sending(self.end, now);
                self.reading_ended.get_or_insert(now);
            }
            Output::OmitOver | Output::Settle | Output::News(_) => {}
            Output::Send(_) | Output::Failed(_) => unreachable!("the session's own"),
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<M>>, Failure> {
        let Some(since) = self.opening else { return Ok(None) };
        let mut state = self.world.state.borrow_mut();
        let open = match self.end {
            End::Client if self.world.trouble == Trouble::NoStreams && !self.sends_datagrams() => {
                self.opening = None;
                let reason = "connection timed out";
                return Err(Failure::new(Fault::Unreachable, "connect", "the streams", reason));
            }
            // A handshake is a round trip; the server sees it done half of one later.
            End::Client => now >= since + state.delay * 2,
            End::Server => state.opened.is_some_and(|at| now >= at),
        };
        if !open {
            return Ok(None);
        }
        if self.end == End::Client {
            state.opened = (self.world.trouble != Trouble::NoStreams).then_some(now + state.delay);
            for byte in std::mem::take(&mut self.model.head) {
                state.send(self.end, now, byte, self.world.trouble);
            }
        }
        self.opening = None;
        Ok(Some(FlowsAnswer::Opened))
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        let counts = self.arrived(now);
        let state = self.world.state.borrow();
        let (own, other) = (self.end as usize, self.end.other() as usize);
        let sent = state.senders[own].map_or(0, |sender| sender.sent(now));
        let sends = self.model.sends.unwrap_or_default();
        let stopped = state.senders[own]
            .map_or_else(|| sends[own].is_none(), |it| it.end.is_some() || sent >= it.bytes_max);
        let left = state.closed_at[other].is_some_and(|at| now >= at);
        let ended = state.senders[other].is_some_and(|it| {
            let ended = it.end.is_some() || it.sent(now) >= it.bytes_max;
            ended && !it.gone && counts[other] == it.sent(now)
        });
        let closed = self.model.closes && (left || ended);
        let has_all = |at: usize, has: u64| sends[at].is_none_or(|bytes| has >= bytes);
        FlowState {
            received: counts[other],
            moved: sent + counts[other],
            complete: has_all(own, sent) && has_all(other, counts[other]),
            delivered: stopped && counts[own] == sent,
            settled: stopped && self.peer.is_some_and(|peer| counts[other] >= peer[other]),
            done: stopped && (sends[other].is_none() || self.reading_ended.is_some() || closed),
        }
    }

    fn peer_name(&self) -> String {
        self.end.other().name().to_owned()
    }
}
