//! iperf 2's UDP client and server against each other over datagrams that are lost, doubled, late,
//! cut or damaged; where the client listens (`-d`, `-r`), it does so late or stops. What the server
//! sends back does what spec/iperf2.md says, within the limit of clients that prove no address.

mod listener;
mod server;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::record::Failure;
use linerate_core::time::{Clock, MonoTime, SimClock};
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf2::{
    ClientHeader, FIRST_DATA, Iperf2Amount, Iperf2DatagramLayout, LISTENING, Mode, REFUSAL,
    REPORT_TIMEOUT, Stamp, UDP_ENDED_MAX, UDP_GRACE, UDP_SILENCE_MAX, UdpClient, UdpClientTest,
    UdpCounted, UdpNews, UdpReport, UdpSender, UdpTally, answered_cookie, end_datagram,
};

use self::listener::Listener;
use self::server::SimServer;
use super::count;
use crate::flow::net::Net;
use crate::flow::session::{Flows, FlowsAnswer, TestSession};

/// From datagram to datagram.
const GAP: Duration = Duration::from_millis(5);
const SIZE: usize = 200;
const INTERVAL: Duration = Duration::from_millis(100);
const COOKIE: u64 = 77;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    /// Of each datagram: that it is lost, doubled, cut, or one of its bits turned.
    lost: f64,
    doubled: f64,
    cut: f64,
    turned: f64,
    /// The server is gone from then on.
    dies: Option<Duration>,
    /// The user stops the test.
    stop: Option<Duration>,
    /// A server of linerate wants a proof of the address.
    proof: bool,
    /// Who proves none is sent in proportion to what comes.
    mirrors: bool,
    /// A client that listens begins with that late, or is gone from then on.
    listens: Duration,
    deaf: Option<Duration>,
}

impl Trouble {
    fn of_seed(random: &mut Random) -> Self {
        let (proof, mirrors) = (random.chance(0.5), random.chance(0.5));
        let mut trouble = Self { proof, mirrors, ..Self::default() };
        let at = Duration::from_millis(count(random, 1500));
        match count(random, 8) {
            0 => {}
            1 => (trouble.lost, trouble.doubled) = (0.3 * random.next_uniform(), 0.1),
            2 => (trouble.lost, trouble.cut, trouble.turned) = (0.1, 0.1, 0.05),
            3 => trouble.dies = Some(at),
            4 => (trouble.dies, trouble.lost) = (Some(Duration::ZERO), 0.1),
            5 => trouble.listens = at,
            6 => trouble.deaf = Some(at),
            _ => trouble.stop = Some(at),
        }
        trouble
    }

    /// What was counted is what arrived.
    fn spares_contents(&self) -> bool {
        self.cut + self.turned == 0.0
    }
}

/// A datagram on its way: when it arrives, its stream.
type OnTheWay = (MonoTime, u16, Vec<u8>);

struct World {
    random: Random,
    trouble: Trouble,
    delay: Duration,
    pipes: [Vec<OnTheWay>; 4],
    server: Vec<Stream>,
    /// The client's streams: what was sent, and what came.
    sent: Vec<u64>,
    came: Vec<Came>,
}

/// Where a datagram goes. What comes from a listener is what it says on the stream that the server
/// sends; nothing of it a refusal of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    ToServer,
    ToClient,
    ToListener,
    FromListener,
}

/// What came of a stream to the client.
#[derive(Clone, Copy, Default)]
struct Came {
    datagrams: u64,
    highest: u64,
    ended: bool,
}

/// What the server saw of a stream.
#[derive(Default)]
struct Stream {
    /// Its clients, one after the other: what came of each.
    clients: Vec<Rc<RefCell<UdpTally>>>,
    /// Bytes that came, until the end, and that were sent to it.
    bytes: u64,
    all_bytes: u64,
    sent_bytes: u64,
    reported: Option<UdpReport>,
    back: SentBack,
    /// The client's port refused what was sent on a stream of its own.
    refused: bool,
}

/// What the server sent on its own.
#[derive(Clone, Copy, Debug, Default)]
struct SentBack {
    /// Its stream is over.
    ended: bool,
    /// Datagrams, first ones and ends, and all but the ends.
    beside: u64,
    sent: u64,
    /// What the client told of it.
    report: Option<UdpReport>,
    /// What it counted.
    counted: Option<UdpReport>,
}

impl Stream {
    fn counts(&self) -> Option<UdpReport> {
        match self.clients.first()?.borrow().counted() {
            UdpCounted::Iperf(counts) => Some(counts),
            UdpCounted::Ttcp { .. } => None,
        }
    }
}

impl World {
    fn pass(&mut self, now: MonoTime, pipe: Pipe, flow: u16, datagram: &[u8]) {
        if matches!(pipe, Pipe::ToClient | Pipe::ToListener) {
            self.server[usize::from(flow)].sent_bytes += datagram.len() as u64;
        }
        let copies = 1 + u32::from(self.random.chance(self.trouble.doubled));
        for _ in 0..copies {
            if self.random.chance(self.trouble.lost) {
                continue;
            }
            let mut datagram = datagram.to_vec();
            if self.random.chance(self.trouble.cut) {
                datagram.truncate(count(&mut self.random, SIZE as u64) as usize);
            }
            if self.random.chance(self.trouble.turned) && !datagram.is_empty() {
                let bit = count(&mut self.random, datagram.len() as u64 * 8) as usize;
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
            let late = if self.trouble.lost > 0.0 { count(&mut self.random, 12_000) } else { 0 };
            let late = Duration::from_micros(late);
            self.pipes[pipe as usize].push((now + self.delay + late, flow, datagram));
        }
    }

    /// Takes out what has arrived.
    fn arrived(&mut self, pipe: Pipe, now: MonoTime) -> Vec<OnTheWay> {
        let all = std::mem::take(&mut self.pipes[pipe as usize]);
        let (mut here, rest) = all.into_iter().partition::<Vec<_>, _>(|it| it.0 <= now);
        self.pipes[pipe as usize] = rest;
        here.sort_by_key(|it| it.0);
        here
    }

    /// Takes out one datagram of a stream that has arrived.
    fn take(&mut self, pipe: Pipe, flow: u16, now: MonoTime) -> Option<Vec<u8>> {
        let pipe = &mut self.pipes[pipe as usize];
        let at = pipe.iter().position(|it| it.0 <= now && it.1 == flow)?;
        Some(pipe.remove(at).2)
    }
}

fn datagrams(amount: Iperf2Amount) -> u64 {
    match amount {
        Iperf2Amount::Bytes(bytes) => u64::from(bytes) / SIZE as u64,
        Iperf2Amount::Centiseconds(count) => u64::from(count) * 10 / GAP.as_millis() as u64,
    }
}

type Shared = Rc<RefCell<World>>;

/// The client's sockets for what goes beside data.
struct Control {
    world: Shared,
    clock: Rc<SimClock>,
    peeks: bool,
}

impl Net for Control {
    fn now(&self) -> MonoTime {
        self.clock.now()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        let now = self.now();
        let pipe = &mut world.pipes[Pipe::ToClient as usize];
        let at = pipe.iter().position(|it| it.0 <= now);
        let Some(at) = at else { return Err(io::ErrorKind::WouldBlock.into()) };
        let (_, flow, datagram) = if self.peeks { pipe[at].clone() } else { pipe.remove(at) };
        let datagram = [&flow.to_be_bytes(), &datagram[..]].concat();
        bytes[..datagram.len()].copy_from_slice(&datagram);
        Ok(datagram.len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (flow, datagram) = bytes.split_first_chunk::<2>().expect("a stream's number");
        let flow = u16::from_be_bytes(*flow);
        self.world.borrow_mut().pass(self.now(), Pipe::ToServer, flow, datagram);
        Ok(bytes.len())
    }

    fn wait(&mut self, _: MonoTime, _: bool) {
        unreachable!("whoever plays moves the clock");
    }
}

/// The client's data.
struct Data {
    world: Shared,
    header: ClientHeader,
    head: Vec<u8>,
    /// Datagrams that end it.
    planned: u64,
    began: Option<MonoTime>,
    stopped: bool,
    settled: bool,
    reports: Option<Vec<Option<UdpReport>>>,
}

impl Data {
    fn sends(&self) -> bool {
        self.header.mode != Mode::Reverse
    }

    fn all_sent(&self) -> bool {
        let world = self.world.borrow();
        self.began.is_some() && (self.stopped || world.sent.iter().all(|it| *it >= self.planned))
    }

    /// Sends what is due, takes what came.
    fn step(&self, now: MonoTime) {
        let Some(began) = self.began else { return };
        let mut world = self.world.borrow_mut();
        let due = (now.duration_since(began).as_millis() / GAP.as_millis()) as u64;
        for flow in 0..world.sent.len() {
            while self.sends() && !self.stopped && world.sent[flow] < due.min(self.planned) {
                world.sent[flow] += 1;
                let mut datagram = end_datagram(&self.head, SIZE, 0, 0);
                let number = world.sent[flow] as i64;
                Stamp { number, sent_us: now.as_nanos() / 1000 }.write(&mut datagram);
                world.pass(now, Pipe::ToServer, flow as u16, &datagram);
            }
        }
        if !matches!(self.header.mode, Mode::Reverse | Mode::FullDuplex) {
            return;
        }
        for (_, flow, datagram) in world.arrived(Pipe::ToClient, now) {
            let Some(stamp) = Stamp::parse(&datagram, Iperf2DatagramLayout::Wide) else { continue };
            if stamp.number == 0 || answered_cookie(&datagram).is_some() {
                continue;
            }
            let came = &mut world.came[usize::from(flow)];
            came.datagrams += 1;
            came.highest = came.highest.max(stamp.number.unsigned_abs());
            came.ended |= stamp.number < 0;
        }
    }
}

impl Flows for Data {
    type Machine = UdpClient;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<UdpClient>,
    ) -> Result<Option<FlowsAnswer<UdpClient>>, Failure> {
        match output {
            Output::Open => return Ok(Some(FlowsAnswer::Opened)),
            Output::Start => self.began = Some(now),
            Output::StopSending => self.stopped = true,
            Output::Settle => self.settled = true,
            Output::Peer(reports) => self.reports = Some(*reports),
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<UdpClient>>, Failure> {
        self.step(now);
        let mut news = Vec::new();
        if self.sends() && self.all_sent() {
            news.push(UdpNews::Sent(self.world.borrow().sent.clone()));
        }
        let world = self.world.borrow();
        let dry = (0_u16..).zip(&world.came).filter(|(_, came)| came.datagrams == 0);
        news.push(UdpNews::Dry(dry.map(|(flow, _)| flow).collect()));
        Ok(Some(FlowsAnswer::Tell(news)))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        let world = self.world.borrow();
        let ended = self.settled || world.came.iter().all(|came| came.ended);
        let done = ended && (!self.sends() || self.all_sent());
        let received = world.came.iter().map(|came| came.datagrams).sum();
        let moved = world.came.iter().map(|came| came.highest).sum();
        FlowState { received, moved, done, ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        "the server".to_owned()
    }
}

/// A test of a seed: its client, the client's data, and how long it sends.
fn test_of(random: &mut Random, world: &Shared) -> (UdpClient, Data, Duration) {
    let modes = [Mode::Forward, Mode::Reverse, Mode::FullDuplex, Mode::Dual, Mode::TradeOff];
    let mode = modes[count(random, 5) as usize];
    let by_time = random.chance(0.5);
    let planned = 20 + count(random, 180);
    let span = GAP * planned as u32;
    let amount = match by_time {
        true => Iperf2Amount::Centiseconds((span.as_millis() / 10) as u32),
        false => Iperf2Amount::Bytes((planned * SIZE as u64) as u32),
    };
    let planned = datagrams(amount);
    let header = ClientHeader { listen_port: 5001, ..ClientHeader::new(mode, amount) };
    let streams = world.borrow().server.len();
    let test = UdpClientTest {
        header,
        amounts: vec![amount; streams],
        size_bytes: SIZE,
        span: by_time.then_some(span),
        interval: INTERVAL,
        gap: GAP,
        wall_offset_ns: 0,
    };
    let data = Data {
        world: Rc::clone(world),
        header,
        head: UdpSender::new(header).first_bytes(),
        planned,
        began: None,
        stopped: false,
        settled: false,
        reports: None,
    };
    (UdpClient::new(MonoTime::default(), test), data, span)
}

fn check(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed, 0);
    let trouble = Trouble::of_seed(&mut random);
    let streams = 1 + count(&mut random, 3) as usize;
    let delay = Duration::from_micros(20 + count(&mut random, 50_000));
    let world = Rc::new(RefCell::new(World {
        random: Random::new(seed, 1),
        trouble,
        delay,
        pipes: Default::default(),
        server: std::iter::repeat_with(Stream::default).take(streams).collect(),
        sent: vec![0; streams],
        came: vec![Came::default(); streams],
    }));
    let clock = Rc::new(SimClock::default());
    let (client, data, span) = test_of(&mut random, &world);
    let mode = data.header.mode;
    let peeks = mode == Mode::Reverse;
    let mut net = Control { world: Rc::clone(&world), clock: Rc::clone(&clock), peeks };
    let mut session = TestSession::new(client, data);
    let served = std::iter::repeat_with(|| None).take(streams).collect();
    let mut house = SimServer { world: Rc::clone(&world), clock: Rc::clone(&clock), served };
    let mut listener = Listener::of(&world, &clock);
    let broken = |law: &str| format!("seed {seed}: {law}: {mode:?} {streams} {trouble:?}");
    // To be answered, a test with its grace or silence, and the reports.
    let slack = FIRST_DATA + UDP_GRACE + REPORT_TIMEOUT + Duration::from_secs(1);
    let limit = MonoTime::default() + span + slack;
    let result = loop {
        let stopped = trouble.stop.is_some_and(|at| clock.now() >= MonoTime::default() + at);
        house.serve().map_err(broken)?;
        listener.serve();
        let next = session.run_turn(&mut net, stopped);
        if let Some(end) = session.take_outcome() {
            break end;
        }
        let soon = clock.now() + Duration::from_millis(1);
        let next = next.ok_or_else(|| format!("seed {seed}: neither over nor waiting"))?;
        clock.advance_to(next.max(soon).min(soon + GAP));
        if clock.now() > limit {
            return Err(format!("seed {seed}: within its time {mode:?} {trouble:?}"));
        }
    };
    // Silence, what is sent to one that is gone, its own end, and ends that may come again.
    let sends = LISTENING + GAP * 1010 + REPORT_TIMEOUT;
    let limit = clock.now() + UDP_SILENCE_MAX + sends + UDP_SILENCE_MAX + UDP_ENDED_MAX;
    let going = |world: &World| !world.pipes[Pipe::ToServer as usize].is_empty();
    while house.served.iter().any(Option::is_some) || going(&world.borrow()) {
        house.serve().map_err(broken)?;
        listener.serve();
        clock.advance_to(clock.now() + GAP);
        if clock.now() > limit {
            return Err(broken("the server is done with each client"));
        }
    }
    laws(&result, &session.flows, trouble, span)
        .map_err(|law| format!("{} {result:?}", broken(law)))
}

fn laws(
    result: &Result<(), Failure>,
    data: &Data,
    trouble: Trouble,
    span: Duration,
) -> Result<(), &'static str> {
    let law = |holds: bool, law| if holds { Ok(()) } else { Err(law) };
    let world = data.world.borrow();
    let early = trouble.dies.is_some_and(|at| at + Duration::from_millis(600) < span);
    let well = result.is_ok();
    law(
        well || trouble.dies.is_some() || trouble.stop.is_some() || trouble.cut > 0.0,
        "all is well",
    )?;
    law(!well || !early, "a dead server has no result")?;
    if let Some(failure) = result.as_ref().err() {
        law(failure.object == "the server", "who failed is named")?;
    }
    let reports = data.reports.iter().flatten();
    for (stream, report) in world.server.iter().zip(reports) {
        let Some(report) = report.filter(|_| trouble.spares_contents()) else { continue };
        law(Some(report) == stream.reported, "the report is the server's")?;
        law(report.bytes <= stream.bytes, "of what came alone")?;
    }
    let forward = data.header.mode == Mode::Forward;
    for (sent, stream) in world.sent.iter().zip(&world.server) {
        if trouble.lost + trouble.cut == 0.0 && trouble.stop.is_none() {
            law(stream.clients.len() <= 1, "a test is one client")?;
        }
        if trouble.mirrors && data.header.mode != Mode::Reverse {
            law(stream.sent_bytes <= 3 * stream.all_bytes, "who proves nothing gets no flood")?;
        }
        own_stream_laws(data, stream, &world)?;
        let Some(counted) = stream.counts() else { continue };
        if well && forward && trouble.spares_contents() && trouble.doubled == 0.0 {
            // The end counts as a datagram, and has a later number where it was said again.
            let came = counted.datagrams - counted.lost;
            law(came <= sent + 1 && counted.datagrams > *sent, "all numbers are known")?;
            law(came == sent + 1 || trouble.lost > 0.0, "nothing is lost by itself")?;
        }
    }
    Ok(())
}

/// What holds of a stream that the server sends to a client that listens.
fn own_stream_laws(data: &Data, stream: &Stream, world: &World) -> Result<(), &'static str> {
    let trouble = world.trouble;
    let law = |holds: bool, law| if holds { Ok(()) } else { Err(law) };
    let SentBack { ended, beside, sent, report, counted } = stream.back;
    if !matches!(data.header.mode, Mode::Dual | Mode::TradeOff) {
        return law(report.is_none(), "who does not listen reports nothing");
    }
    law(report.is_none() || ended, "a report ends the stream")?;
    if trouble.spares_contents() && trouble.doubled == 0.0 {
        law(report.is_none() || report == counted, "the report is the client's")?;
    }
    law(!trouble.mirrors || beside <= 6 * stream.clients.len() as u64, "few ends and beginnings")?;
    let well = trouble.lost + trouble.doubled + trouble.cut == 0.0
        && trouble.dies.is_none()
        && trouble.stop.is_none()
        && trouble.deaf.is_none();
    // Who proves nothing is not asked for long whether it listens.
    if !well || (trouble.mirrors && trouble.listens > Duration::ZERO) {
        return Ok(());
    }
    law(ended && sent > 0, "the client is sent data")?;
    law(trouble.mirrors || sent == data.planned, "as much as it asked for")?;
    // A refusal that takes longer than the server waits for one comes when data is on its way.
    let refused_in_time = world.delay * 2 < REFUSAL;
    if trouble.listens == Duration::ZERO || (refused_in_time && trouble.listens < LISTENING) {
        let report = report.ok_or("a client that listens reports")?;
        // An end counts as a datagram, and has the next number where it is said again.
        law(report.lost == 0 && report.datagrams > sent, "all of it arrives")?;
        law(report.bytes == (sent + 1) * SIZE as u64, "to the byte")?;
    }
    Ok(())
}

#[test]
fn udp_tests_end_as_they_should_whatever_happens_to_datagrams() {
    super::check_seeds(check);
}
