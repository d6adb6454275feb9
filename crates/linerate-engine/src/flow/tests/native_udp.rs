//! This program's own client and server over UDP. Datagrams, of the opening as of the test, go over
//! elements of `core::path` that lose, double, delay and reorder them; some arrive cut short. What
//! both ends make of them is what they do live: opening, signs of life, counting, and the end.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use linerate_core::path::{
    Bernoulli, Delay, Duplication, Ecn, Element, Jitter, Outlet, Packet, Pipeline, Random, Spread,
};
use linerate_core::record::{
    DatagramsSent, Direction, End as HostEnd, EndReport, Failure, Fault, Finish, FlowEnd,
    ReceivedDatagrams, Side, TcpDirections, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output, Reason};
use linerate_proto::native::{
    Accept, Asked, Client, ClientTest, DatagramHeader, FEATURES, Message, PeerFault,
    REPORT_TIMEOUT_UDP, STEP_TIMEOUT, Server, Token, UdpTracker, stream_tag,
};

use super::world::{End, SimNet, World};
use super::{Left, Limits, Played, Trouble, check_seeds, count, judge, play};
use crate::flow::account::{client_side, server_side};
use crate::flow::served::GRACE;
use crate::flow::session::{Answer, Flows, Session};
use crate::flow::tcp::control::{client_failure, lost};
use crate::flow::tcp::session::server_failure;
use crate::flow::udp::layout::{Layout, Read};
use crate::flow::udp::opening::{Callee, Caller, Heard};
use crate::flow::udp::pulse::{Pulse, SILENCE_MAX};
use crate::flow::udp::receiver::is_drained;
use crate::flow::udp::terms;

const INTERVAL: Duration = Duration::from_millis(100);
/// Time between the datagrams of a stream.
const GAP: Duration = Duration::from_millis(10);
/// Threads look at their flags this often; at the end of a test more often.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_END: Duration = Duration::from_millis(10);
const SIZE_BYTES: usize = 64;
const TOKEN: Token = Token([7; 16]);
const SPAN_MAX: Duration = Duration::from_secs(10);

/// The datagrams of a test, and the threads that move them at both ends.
struct Wire {
    world: World,
    trouble: Trouble,
    random: Random,
    request: UdpTest,
    /// From each end.
    paths: [Pipeline; 2],
    /// Share of datagrams that arrive cut short.
    cut: f64,
    /// The stream of each datagram and its bytes, by its tag.
    sent: Vec<(usize, Vec<u8>)>,
    streams: Vec<Stream>,
    gone: [bool; 2],
    now: MonoTime,
}

/// One stream, at each end.
struct Stream {
    place: (Direction, u16),
    /// What came before there was a thread.
    waiting: [VecDeque<Vec<u8>>; 2],
    threads: [Option<Thread>; 2],
    /// Numbers of the datagrams that the path delivered whole.
    delivered: BTreeSet<u64>,
}

/// One thread of a stream.
struct Thread {
    side: Side,
    tag: u16,
    begin: MonoTime,
    pulse: Pulse,
    /// When it looks again.
    look: MonoTime,
    /// When the next datagram is due, of a sender.
    due: MonoTime,
    count: u64,
    stopped: bool,
    /// What the stream's sender has sent, and since when that is known.
    sent: Option<(DatagramsSent, MonoTime)>,
    tracker: UdpTracker,
    /// Numbers of whole datagrams that came, and how many came in all.
    came: (BTreeSet<u64>, u64),
    last: MonoTime,
    done: bool,
    failed: bool,
}

impl Wire {
    fn of_seed(seed: u64, world: &World, trouble: Trouble, request: &UdpTest) -> Self {
        let mut random = Random::new(seed, 2);
        let delay = Duration::from_micros(20 + count(&mut random, 100_000));
        // A third of the paths is clean.
        let harm = if random.chance(0.33) { 0.0 } else { random.unit() };
        let paths = [3_u64, 4].map(|stream| {
            let random = |number| Random::new(seed, stream * 10 + number);
            let spread = Spread::Some { share: 0.2 * harm, extra: Duration::from_millis(25) };
            let elements: Vec<Box<dyn Element>> = vec![
                Box::new(Bernoulli::new(0.15 * harm, random(0))),
                Box::new(Duplication::new(0.1 * harm, random(1))),
                Box::new(Delay::new(delay)),
                Box::new(Jitter::new(spread, false, random(2))),
            ];
            Pipeline::new(elements)
        });
        let streams = request.places().map(|place| Stream {
            place,
            waiting: Default::default(),
            threads: [None, None],
            delivered: BTreeSet::new(),
        });
        Self {
            streams: streams.collect(),
            world: world.clone(),
            trouble,
            random,
            request: request.clone(),
            paths,
            cut: 0.02 * harm,
            sent: Vec::new(),
            gone: [false; 2],
            now: MonoTime::default(),
        }
    }

    /// Everything that happens until `now`.
    fn advance(&mut self, now: MonoTime) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.deliver();
            self.work();
        }
        self.now = now;
        self.deliver();
    }

    fn next(&self) -> Option<MonoTime> {
        let threads = self.streams.iter().flat_map(|stream| stream.threads.iter().flatten());
        let threads = threads.filter(|thread| !thread.done || thread.side == Side::Sender);
        let looks = threads.map(|thread| match thread.side {
            Side::Sender if !thread.done => thread.due.min(thread.look),
            _ => thread.look,
        });
        looks.chain(self.paths.iter().filter_map(Pipeline::next)).min()
    }

    fn is_gone(&self, end: End) -> bool {
        self.gone[end as usize] || self.world.is_dead(end)
    }

    fn send(&mut self, from: End, stream: usize, bytes: Vec<u8>) {
        let blocked = match self.trouble {
            Trouble::NoStreams => true,
            Trouble::Blocked { of, from: since } => {
                of == from && self.now >= MonoTime::default() + since
            }
            _ => false,
        };
        if blocked {
            return;
        }
        let packet = Packet {
            number: 0,
            ip_bytes: bytes.len() as u32 + 28,
            flow: stream as u32,
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag: self.sent.len() as u64,
        };
        self.sent.push((stream, bytes));
        let mut out = Outlet::default();
        self.paths[from as usize].take(self.now, packet, &mut out);
        self.arrive(from.other(), &out);
    }

    fn deliver(&mut self) {
        for from in [End::Client, End::Server] {
            let mut out = Outlet::default();
            self.paths[from as usize].due(self.now, &mut out);
            self.arrive(from.other(), &out);
        }
    }

    fn arrive(&mut self, at: End, out: &Outlet) {
        for departure in &out.departures {
            let (stream, mut bytes) = self.sent[departure.packet.tag as usize].clone();
            if self.random.chance(self.cut) {
                bytes.truncate(count(&mut self.random, bytes.len() as u64) as usize);
            }
            if self.is_gone(at) {
                continue;
            }
            let stream = &mut self.streams[stream];
            let tag = stream_tag(TOKEN, stream.place.0, stream.place.1);
            if let Read::Data(head) = (Layout::OWN.read)(&bytes, tag)
                && bytes.len() == SIZE_BYTES
            {
                stream.delivered.insert(head.number);
            }
            match &mut stream.threads[at as usize] {
                Some(thread) => thread.take(&bytes, departure.at),
                None => stream.waiting[at as usize].push_back(bytes),
            }
        }
    }

    /// Every thread goes on that has something to do.
    fn work(&mut self) {
        for stream in 0..self.streams.len() {
            for end in [End::Client, End::Server] {
                let gone = self.is_gone(end);
                let thread = &mut self.streams[stream].threads[end as usize];
                let Some(thread) = thread else { continue };
                if gone {
                    thread.leave();
                    continue;
                }
                for bytes in thread.work(self.now, &self.request) {
                    self.send(end, stream, bytes);
                }
            }
        }
    }

    /// Begins the threads of an end's side.
    fn begin(&mut self, end: End, side: Side) {
        for stream in &mut self.streams {
            if side_of(end)(stream.place.0) == side {
                let mut thread = Thread::of(stream.place, side, self.now);
                for bytes in stream.waiting[end as usize].drain(..) {
                    thread.take(&bytes, self.now);
                }
                stream.threads[end as usize] = Some(thread);
            }
        }
    }

    fn threads(&mut self, end: End) -> impl Iterator<Item = ((Direction, u16), &mut Thread)> {
        self.streams.iter_mut().filter_map(move |stream| {
            let place = stream.place;
            stream.threads[end as usize].as_mut().map(|thread| (place, thread))
        })
    }
}

impl Thread {
    fn of(place: (Direction, u16), side: Side, now: MonoTime) -> Self {
        let tag = stream_tag(TOKEN, place.0, place.1);
        Self {
            side,
            tag,
            begin: now,
            pulse: Pulse::starting_at(tag, now),
            look: now,
            due: now,
            count: 0,
            stopped: false,
            sent: None,
            tracker: UdpTracker::new(0),
            came: (BTreeSet::new(), 0),
            last: now,
            done: false,
            failed: false,
        }
    }

    /// It does nothing any more.
    fn leave(&mut self) {
        self.done = true;
        self.look = MonoTime::from_nanos(u64::MAX);
    }

    /// A datagram came.
    fn take(&mut self, bytes: &[u8], now: MonoTime) {
        match (Layout::OWN.read)(bytes, self.tag) {
            Read::Alive => self.pulse.heard(now),
            Read::Data(head) if self.side == Side::Receiver && !self.done => {
                self.pulse.heard(now);
                if bytes.len() == SIZE_BYTES {
                    self.tracker.take(head.number, head.stamp_ns);
                    self.came.0.insert(head.number);
                    self.came.1 += 1;
                    self.last = now;
                }
            }
            _ => {}
        }
    }

    /// Goes on; what it sends.
    fn work(&mut self, now: MonoTime, request: &UdpTest) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if self.side == Side::Sender && !self.done && now >= self.due {
            let over = match request.finish {
                Finish::TimeNs(ns) => now.nanos_since(self.begin) >= ns,
                _ => self.count >= request.datagram_budget().unwrap_or(0),
            };
            if over || self.stopped {
                self.done = true;
            } else {
                let stamp_ns = now.nanos_since(self.begin);
                let header = DatagramHeader { number: self.count, tag: self.tag, stamp_ns };
                let mut bytes = header.to_bytes().to_vec();
                bytes.resize(SIZE_BYTES, 0);
                out.push(bytes);
                self.count += 1;
                self.due += GAP;
                self.pulse.told(now);
            }
        }
        if now >= self.look {
            self.look = now + if self.sent.is_some() { LOOK_AT_END } else { LOOK };
            if self.stopped {
                self.due = self.due.min(self.look);
            }
            out.extend(self.pulse.due(now).map(|bytes| bytes.to_vec()));
            let over = self.sent.is_some_and(|(sent, told)| {
                let complete = self.tracker.received() >= sent.datagrams;
                is_drained(now, told, self.last, complete)
            });
            self.done |= over;
            if !over && self.pulse.is_silent(now) {
                self.failed = true;
                self.leave();
            }
        }
        out
    }
}

fn side_of(end: End) -> fn(Direction) -> Side {
    match end {
        End::Client => client_side,
        End::Server => server_side,
    }
}

/// What both ends of a test do alike.
struct Ends {
    end: End,
    wire: Rc<RefCell<Wire>>,
    started: bool,
    told: bool,
    samples: u32,
    results: u32,
    ran: Option<MonoTime>,
    until: Option<MonoTime>,
    reports: Vec<EndReport>,
    of_peer: Vec<EndReport>,
}

impl Ends {
    fn of(end: End, wire: &Rc<RefCell<Wire>>) -> Self {
        Self {
            end,
            wire: Rc::clone(wire),
            started: false,
            told: false,
            samples: 0,
            results: 0,
            ran: None,
            until: None,
            reports: Vec::new(),
            of_peer: Vec::new(),
        }
    }

    fn start(&mut self, now: MonoTime) {
        self.started = true;
        self.ran = Some(now);
        self.wire.borrow_mut().begin(self.end, Side::Sender);
    }

    fn stop_sending(&self) {
        self.wire.borrow_mut().threads(self.end).for_each(|(_, thread)| {
            thread.stopped = true;
            thread.due = thread.look;
        });
    }

    /// Notes what the other end's senders have sent.
    fn hear(&self, told: &[DatagramsSent], now: MonoTime) {
        let mut wire = self.wire.borrow_mut();
        for (place, thread) in wire.threads(self.end) {
            let same = told.iter().find(|it| (it.direction, it.flow) == place);
            if let Some(sent) = same.filter(|_| thread.side == Side::Receiver) {
                thread.sent.get_or_insert((*sent, now));
                thread.look = now;
            }
        }
    }

    /// What its own senders have sent, once, when all are done.
    fn sent(&mut self) -> Option<Message> {
        let mut wire = self.wire.borrow_mut();
        let senders = wire.threads(self.end).filter(|(_, it)| it.side == Side::Sender);
        let sent = senders.map(|((direction, flow), it)| {
            let (datagrams, span_ns) = (it.count, it.due.nanos_since(it.begin));
            let measured = datagrams;
            it.done.then_some(DatagramsSent { direction, flow, datagrams, measured, span_ns })
        });
        let streams = sent.collect::<Option<Vec<_>>>().filter(|it| !it.is_empty() && !self.told)?;
        self.told = true;
        Some(Message::UdpSent { streams })
    }

    fn is_done(&self) -> bool {
        self.started && self.wire.borrow_mut().threads(self.end).all(|(_, it)| it.done)
    }

    fn check(&self) -> Result<(), Failure> {
        if !self.started || self.wire.borrow_mut().threads(self.end).all(|(_, it)| !it.failed) {
            return Ok(());
        }
        let reason = "nothing was heard";
        let attempt = "exchange datagrams with";
        Err(Failure::new(Fault::Unreachable, attempt, self.end.other().name(), reason))
    }

    /// Ends every thread; what each did.
    fn finish(&mut self, now: MonoTime) -> Vec<EndReport> {
        self.until.get_or_insert(now);
        let mut wire = self.wire.borrow_mut();
        let reports = wire.threads(self.end).map(|((direction, flow), it)| {
            it.leave();
            let sent = it.sent.map(|(sent, _)| (sent.datagrams, sent.measured));
            let (all, measured) = it.tracker.tallies(sent, None, 1);
            assert_eq!(all.received, it.came.0.len() as u64, "each number counts once");
            assert_eq!(all.received + all.duplicates, it.came.1, "and again as a duplicate");
            if let Some(sent) = all.sent {
                assert_eq!(sent, all.received + all.lost, "sent = received + lost");
            }
            let received = ReceivedDatagrams { all, measured, ..ReceivedDatagrams::default() };
            let receives = it.side == Side::Receiver;
            let bytes = if receives { all.received } else { it.count };
            let received_datagrams = receives.then_some(received);
            let end = FlowEnd { bytes, received_datagrams, ..FlowEnd::default() };
            EndReport::of(direction, flow, end)
        });
        reports.collect()
    }

    /// What was received in each direction, as far as this end knows: by its own threads and by
    /// what the other end told.
    fn received(&self) -> Option<[u64; 2]> {
        if self.reports.is_empty() {
            return None;
        }
        let all = || self.reports.iter().chain(&self.of_peer);
        Some([Direction::Up, Direction::Down].map(|way| {
            let of_way = all().filter(|it| it.direction == way);
            of_way.filter(|it| it.end.received_datagrams.is_some()).map(|it| it.end.bytes).sum()
        }))
    }

    fn leave(&self) {
        let mut wire = self.wire.borrow_mut();
        wire.gone[self.end as usize] = true;
    }

    fn left(self, end: Option<(Result<(), Failure>, MonoTime)>) -> Left {
        let (end, at) = end.unzip();
        let at = at.unwrap_or_default();
        let until = self.until.unwrap_or(at);
        let ran = self.ran.map(|begin| (begin, until.max(begin)));
        let counts = self.received();
        Left { end, at, samples: self.samples, ran, results: self.results, counts }
    }
}

struct UdpClient {
    ends: Ends,
    opening: Vec<Caller>,
    deadline: MonoTime,
}

impl Flows for UdpClient {
    type Machine = Client;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Client>,
    ) -> Result<Option<Answer<Client>>, Failure> {
        self.ends.wire.borrow_mut().advance(now);
        match output {
            Output::Decide(_) => return Ok(Some(Answer::Decided(Ok(())))),
            Output::Open => {
                let wire = self.ends.wire.borrow();
                let places = wire.request.places();
                self.opening = places.map(|place| Caller::new(place, TOKEN, now)).collect();
                self.deadline = now + SILENCE_MAX;
                return Ok(Some(Answer::Opened));
            }
            Output::Begin => {
                self.opening.clear();
                self.ends.wire.borrow_mut().begin(End::Client, Side::Receiver);
            }
            Output::Start => self.ends.start(now),
            Output::Sample => self.ends.samples += 1,
            Output::News(Message::UdpSent { streams }) => self.ends.hear(&streams, now),
            Output::StopSending => self.ends.stop_sending(),
            Output::Peer(reports) => {
                self.ends.until = Some(now);
                self.ends.of_peer = *reports;
            }
            Output::Finished => {
                self.ends.results += 1;
                self.ends.reports = self.ends.finish(now);
            }
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<Answer<Client>>, Failure> {
        let mut wire = self.ends.wire.borrow_mut();
        wire.advance(now);
        if !self.opening.is_empty() && now >= self.deadline {
            let reason = "no answer on UDP";
            return Err(Failure::new(
                Fault::Unreachable,
                "open UDP streams to",
                End::Server.name(),
                reason,
            ));
        }
        for (stream, caller) in self.opening.iter_mut().enumerate() {
            for bytes in std::mem::take(&mut wire.streams[stream].waiting[End::Client as usize]) {
                caller.read(&bytes, now);
            }
            let due = caller.due(now);
            due.iter().for_each(|bytes| wire.send(End::Client, stream, bytes.to_vec()));
        }
        drop(wire);
        self.ends.check()?;
        let sent = self.ends.sent().filter(|_| self.ends.started);
        Ok(sent.map(|sent| Answer::Tell(vec![sent])))
    }

    fn state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.ends.is_done(), ..FlowState::default() }
    }

    fn failure(&self, reason: Reason<PeerFault>) -> Failure {
        client_failure(End::Server.name(), reason)
    }

    fn lost(&self, attempt: &'static str, error: &io::Error) -> Failure {
        lost(End::Server.name(), attempt, error)
    }
}

impl Played for UdpClient {
    fn leave(&mut self) {
        self.ends.leave();
    }

    fn left(self, end: Option<(Result<(), Failure>, MonoTime)>) -> Left {
        self.ends.left(end)
    }
}

struct UdpServer {
    ends: Ends,
    opening: Vec<Callee>,
    open: Vec<bool>,
}

impl Flows for UdpServer {
    type Machine = Server;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Server>,
    ) -> Result<Option<Answer<Server>>, Failure> {
        self.ends.wire.borrow_mut().advance(now);
        match output {
            Output::Decide(asked) => {
                let request = self.ends.wire.borrow().request.clone();
                // A byte that was turned over may ask for something else.
                let same = matches!(*asked, Asked::Udp(asked) if asked == request);
                if !same {
                    let reason = "another test";
                    let peer = End::Client.name();
                    return Err(Failure::new(Fault::PeerMisbehaved, "serve", peer, reason));
                }
                let accept = Accept {
                    token: TOKEN.to_hex(),
                    data_port: 0,
                    udp_ports: vec![1; request.places().count()],
                    host_id: None,
                    end: HostEnd::default(),
                    features: FEATURES.map(str::to_owned).to_vec(),
                };
                let terms = terms(&request, accept, SPAN_MAX);
                return Ok(Some(Answer::Decided(Ok(terms))));
            }
            Output::Open => {
                let wire = self.ends.wire.borrow();
                let places = wire.request.places();
                self.opening = places.map(|place| Callee::new(place, TOKEN)).collect();
                self.open = vec![false; self.opening.len()];
            }
            Output::Start => self.ends.start(now),
            Output::Sample => {
                self.ends.samples += 1;
                let news = vec![Message::UdpInterval { samples: Vec::new() }];
                return Ok(Some(Answer::Tell(news)));
            }
            Output::News(Message::UdpSent { streams }) => self.ends.hear(&streams, now),
            Output::StopSending => self.ends.stop_sending(),
            Output::Halt => {
                let mut wire = self.ends.wire.borrow_mut();
                wire.threads(End::Server).for_each(|(_, thread)| thread.done = true);
            }
            Output::Count => {
                self.ends.check()?;
                self.ends.reports = self.ends.finish(now);
                return Ok(Some(Answer::Counted(Box::new(self.ends.reports.clone()))));
            }
            Output::Finished => self.ends.results += 1,
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<Answer<Server>>, Failure> {
        let mut wire = self.ends.wire.borrow_mut();
        wire.advance(now);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        for (stream, callee) in self.opening.iter_mut().enumerate() {
            let waiting = &mut wire.streams[stream].waiting[End::Server as usize];
            for bytes in std::mem::take(waiting) {
                match callee.read(&bytes, peer, || 77) {
                    Heard::Hello(answer) if !self.open[stream] => {
                        wire.send(End::Server, stream, answer.to_vec());
                    }
                    Heard::Proof => self.open[stream] = true,
                    Heard::Hello(_) | Heard::Stray => {}
                }
            }
        }
        if !self.opening.is_empty() {
            if self.open.iter().all(|open| *open) {
                self.opening.clear();
                wire.begin(End::Server, Side::Receiver);
                return Ok(Some(Answer::Opened));
            }
            return Ok(None);
        }
        drop(wire);
        self.ends.check()?;
        let sent = self.ends.sent().filter(|_| self.ends.started);
        Ok(sent.map(|sent| Answer::Tell(vec![sent])))
    }

    fn state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.ends.is_done(), ..FlowState::default() }
    }

    fn failure(&self, reason: Reason<PeerFault>) -> Failure {
        server_failure(End::Client.name(), reason)
    }

    fn lost(&self, attempt: &'static str, error: &io::Error) -> Failure {
        lost(End::Client.name(), attempt, error)
    }
}

impl Played for UdpServer {
    fn leave(&mut self) {
        self.ends.leave();
    }

    fn left(self, end: Option<(Result<(), Failure>, MonoTime)>) -> Left {
        // The client's own count of what came down does not come here.
        let mut wire = self.ends.wire.borrow_mut();
        let down = wire.streams.iter_mut().filter(|stream| stream.place.0 == Direction::Down);
        let came = down.filter_map(|it| it.threads[End::Client as usize].as_ref());
        let down = came.map(|thread| thread.tracker.received()).sum();
        drop(wire);
        let counts = self.ends.received().map(|[up, _]| [up, down]);
        Left { counts, ..self.ends.left(end) }
    }
}

fn check(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed, 0);
    let of = if random.chance(0.5) { End::Client } else { End::Server };
    let trouble = match random.chance(0.15) {
        true => Trouble::Blocked { of, from: Duration::from_millis(count(&mut random, 3000)) },
        false => Trouble::of_seed(&mut random),
    };
    let directions = [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both]
        [count(&mut random, 3) as usize];
    let by_amount = random.chance(0.4);
    let size = SIZE_BYTES as u32;
    let pace = BitRate::from_bits_per_sec(u64::from(size) * 8 * 1_000_000_000 / 10_000_000);
    let request = UdpTest {
        directions,
        streams: if by_amount { 1 } else { 1 + count(&mut random, 2) as u16 },
        finish: match by_amount {
            true => Finish::Buffers(1 + count(&mut random, 200)),
            false => Finish::TimeNs((1 + count(&mut random, 2)) * 1_000_000_000),
        },
        interval_ns: INTERVAL.as_nanos() as u64,
        pace: Some(pace),
        ..UdpTest::<Option<u32>>::default().with_size(size)
    };
    let world = World::new(seed, trouble);
    let wire = Rc::new(RefCell::new(Wire::of_seed(seed, &world, trouble, &request)));
    let test = ClientTest {
        span: request.planned_span(),
        interval: INTERVAL,
        request: Message::UdpRequest(request),
        last: true,
    };
    let begin = MonoTime::default();
    let ends = |end| Ends::of(end, &wire);
    let (opening, deadline) = (Vec::new(), begin);
    let client = UdpClient { ends: ends(End::Client), opening, deadline };
    let server = UdpServer { ends: ends(End::Server), opening: Vec::new(), open: Vec::new() };
    let nets = [SimNet::new(&world, End::Client, 0), SimNet::new(&world, End::Server, 0)];
    let client = Session::new(Client::new(begin, test), client);
    let left = play((&world, trouble), nets, client, Session::new(Server::new(begin), server));
    let (span, path) = (Duration::from_secs(2), Duration::from_secs(1));
    let limits = Limits {
        interval: INTERVAL,
        // An answer, open streams, a report, and what is on the way; a test of each end.
        client: 2 * linerate_proto::native::ANSWER_TIMEOUT + span + 2 * REPORT_TIMEOUT_UDP + path,
        server: 2 * STEP_TIMEOUT + 2 * SILENCE_MAX + span + GRACE + path,
        server_answers: true,
    };
    judge((seed, trouble), left, &limits)?;
    for stream in &wire.borrow().streams {
        let threads = stream.threads.iter().flatten();
        let counted = threads.filter(|thread| thread.side == Side::Receiver);
        let all = counted.map(|thread| &thread.came.0).all(|came| *came == stream.delivered);
        if trouble == Trouble::None && !all {
            return Err(format!("seed {seed}: what the path delivered is counted"));
        }
    }
    Ok(())
}

#[test]
fn udp_tests_end_as_they_should_whatever_happens() {
    check_seeds(check);
}
