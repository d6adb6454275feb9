//! Both ends of a test, around the machines of the protocol, and the seeds that are played.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::record::{
    DatagramsSent, Direction, EndReport, Failure, Fault, Finish, FlowEnd, FlowSide,
    MeasurementEnd as HostEnd, ReceivedDatagrams, TcpDirections, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Machine, Output};
use linerate_proto::native::{
    Accept, FEATURES, Message, NativeClientMachine, NativeClientTest, NativeServerMachine,
    REPORT_TIMEOUT_UDP, Refuse, STEP_TIMEOUT, TestRequest,
};

use super::{SIZE_BYTES, TOKEN, Wire};
use crate::flow::admission::{Admission, Demand, Permit};
use crate::flow::served::GRACE;
use crate::flow::session::{Flows, FlowsAnswer, TestSession};
use crate::flow::tests::world::{End, SimNet, World};
use crate::flow::tests::{Left, Limits, Played, Trouble, check_seeds, count, judge, play};
use crate::flow::udp::keep_alive::SILENCE_MAX;
use crate::flow::udp::opening::{Callee, Caller, Heard};
use crate::flow::udp::test_terms;

const INTERVAL: Duration = Duration::from_millis(100);
const SPAN_MAX: Duration = Duration::from_secs(10);

/// Takes every client.
struct Everybody;

impl Admission for Everybody {
    fn admit_test(&self, _: &Demand, _: SocketAddr) -> Result<Permit, Refuse> {
        Ok(Permit(Box::new(())))
    }

    fn duration_max(&self) -> Duration {
        SPAN_MAX
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
        self.wire.borrow_mut().begin(self.end, FlowSide::Sender);
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
            if let Some(sent) = same.filter(|_| thread.side == FlowSide::Receiver) {
                thread.sent.get_or_insert((*sent, now));
                thread.look = now;
            }
        }
    }

    /// What its own senders have sent, once, when all are done.
    fn answer<M: Machine<News = Message>>(&mut self) -> Result<Option<FlowsAnswer<M>>, Failure> {
        if !self.started {
            return Ok(None);
        }
        self.check()?;
        Ok(self.sent().map(|sent| FlowsAnswer::Tell(vec![sent])))
    }

    fn sent(&mut self) -> Option<Message> {
        let mut wire = self.wire.borrow_mut();
        let senders = wire.threads(self.end).filter(|(_, it)| it.side == FlowSide::Sender);
        let sent = senders.map(|((direction, flow), it)| {
            let (datagrams, span_ns) = (it.count, it.due.nanos_since(it.begin));
            let measured = datagrams;
            it.done.then_some(DatagramsSent { direction, flow, datagrams, measured, span_ns })
        });
        let streams = sent.collect::<Option<Vec<_>>>().filter(|it| !it.is_empty() && !self.told)?;
        self.told = true;
        Some(Message::UdpSent { streams })
    }

    fn state(&self) -> FlowState {
        let done = self.started && self.wire.borrow_mut().threads(self.end).all(|(_, it)| it.done);
        FlowState { done, ..FlowState::default() }
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
            let receives = it.side == FlowSide::Receiver;
            let bytes = if receives { all.received } else { it.count };
            let received_datagrams = receives.then_some(received);
            let end = FlowEnd { bytes, received_datagrams, ..FlowEnd::default() };
            EndReport::from_flow_end(direction, flow, end)
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
        let told = counts.filter(|_| !self.of_peer.is_empty());
        Left { end, at, samples: self.samples, ran, results: self.results, counts, told }
    }
}

struct UdpClient {
    ends: Ends,
    opening: Vec<Caller>,
    deadline: MonoTime,
}

impl Flows for UdpClient {
    type Machine = NativeClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeClientMachine>,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        self.ends.wire.borrow_mut().advance(now);
        match output {
            Output::Decide(_) => return Ok(Some(FlowsAnswer::Decided(Ok(())))),
            Output::Open => {
                let wire = self.ends.wire.borrow();
                let places = wire.request.places();
                self.opening = places
                    .map(|(direction, flow)| Caller::new(direction, flow, TOKEN, now))
                    .collect();
                self.deadline = now + SILENCE_MAX;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Begin => {
                self.opening.clear();
                self.ends.wire.borrow_mut().begin(End::Client, FlowSide::Receiver);
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

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
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
            let due = caller.due_datagram(now);
            due.iter().for_each(|bytes| wire.send(End::Client, stream, bytes.to_vec()));
        }
        drop(wire);
        self.ends.answer()
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        self.ends.state()
    }

    fn peer_name(&self) -> String {
        End::Server.name().to_owned()
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
    type Machine = NativeServerMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<Option<FlowsAnswer<NativeServerMachine>>, Failure> {
        self.ends.wire.borrow_mut().advance(now);
        match output {
            Output::Decide(asked) => {
                let request = self.ends.wire.borrow().request.clone();
                // A byte that was turned over may ask for something else.
                let same = matches!(*asked, TestRequest::Udp(asked) if asked == request);
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
                let terms = test_terms(&request, accept, &Everybody);
                return Ok(Some(FlowsAnswer::Decided(Ok(terms))));
            }
            Output::Open => {
                let wire = self.ends.wire.borrow();
                let places = wire.request.places();
                self.opening =
                    places.map(|(direction, flow)| Callee::new(direction, flow, TOKEN)).collect();
                self.open = vec![false; self.opening.len()];
            }
            Output::Start => self.ends.start(now),
            Output::Sample => {
                self.ends.samples += 1;
                let news = vec![Message::UdpInterval { samples: Vec::new() }];
                return Ok(Some(FlowsAnswer::Tell(news)));
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
                return Ok(Some(FlowsAnswer::Counted(Box::new(self.ends.reports.clone()))));
            }
            Output::Finished => self.ends.results += 1,
            _ => {}
        }
        Ok(None)
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeServerMachine>>, Failure> {
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
                wire.begin(End::Server, FlowSide::Receiver);
                return Ok(Some(FlowsAnswer::Opened));
            }
            return Ok(None);
        }
        drop(wire);
        self.ends.answer()
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        self.ends.state()
    }

    fn peer_name(&self) -> String {
        End::Client.name().to_owned()
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
    let test = NativeClientTest {
        span: request.planned_span(),
        interval: INTERVAL,
        request: Message::UdpRequest { test: request, login: false },
        last: true,
        credentials: None,
    };
    let begin = MonoTime::default();
    let ends = |end| Ends::of(end, &wire);
    let (opening, deadline) = (Vec::new(), begin);
    let client = UdpClient { ends: ends(End::Client), opening, deadline };
    let server = UdpServer { ends: ends(End::Server), opening: Vec::new(), open: Vec::new() };
    let nets = [SimNet::new(&world, End::Client, 0), SimNet::new(&world, End::Server, 0)];
    let client = TestSession::new(NativeClientMachine::new(begin, test), client);
    let left = play(
        &world,
        trouble,
        nets,
        client,
        TestSession::new(NativeServerMachine::new(begin), server),
    );
    let (span, path) = (Duration::from_secs(2), Duration::from_secs(1));
    let limits = Limits {
        interval: INTERVAL,
        // An answer, open streams, a report, and what is on the way; a test of each end.
        client: 2 * linerate_proto::native::ANSWER_TIMEOUT + span + 2 * REPORT_TIMEOUT_UDP + path,
        server: 2 * STEP_TIMEOUT + 2 * SILENCE_MAX + span + GRACE + path,
        server_answers: true,
    };
    judge(seed, trouble, &left, &limits)?;
    for stream in &wire.borrow().streams {
        let threads = stream.threads.iter().flatten();
        let counted = threads.filter(|thread| thread.side == FlowSide::Receiver);
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
