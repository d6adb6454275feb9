//! The client's side of a test: its steps and time-outs.
//!
//! iperf3's own client says `test end` while its send buffers are full, and what was on the way
//! then counts on one side only; this one waits until all has arrived, within [`DELIVERY_MAX`].
//! Of datagrams nobody tells when they have, and until the server reads `test end` its time goes
//! on: this client says it once they have left, so that it queues behind them on the way.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    ClientEvent, ClientOrder, Cookie, ErrorCode, Params, Protocol, Results, State, WireError, frame,
};
use crate::dialect::{
    Beat, FlowState, Input, LOOK, LOOK_AT_END, Machine, Output, Reason, Settling, Wants,
};

/// The server has this long for each step of the set-up and of the end.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// What is on the way at the end has this long to arrive.
pub const DELIVERY_MAX: Duration = Duration::from_secs(2);
/// A server that closes nothing is done sending when nothing has come for this long.
const QUIET_READING: Duration = Duration::from_millis(200);
/// Receivers that were told to leave are given this long.
pub(super) const LEAVE_MAX: Duration = Duration::from_secs(1);
/// The last datagrams have this long to leave before the server is told that the test is over, and
/// those that it sent before it read that have as long to arrive.
const ARRIVAL: Duration = Duration::from_millis(100);
/// Receivers that know how many datagrams were sent leave by themselves within this.
pub(super) const COUNTED_MAX: Duration = Duration::from_secs(3);

/// What the client wants of its test.
#[derive(Clone, Debug)]
pub struct ClientTest {
    /// Begins every connection.
    pub cookie: Cookie,
    /// What it asks of the server.
    pub params: Params,
    /// How long the test lasts, the omitted span among it; none where an amount ends it.
    pub span: Option<Duration>,
    /// Time between samples.
    pub interval: Duration,
    /// A test that receives gives up when nothing has come for so long.
    pub receive_max: Option<Duration>,
    /// A test that receives an amount is done when nothing has come for so long: the last
    /// datagrams may be lost.
    pub complete_after: Option<Duration>,
}

/// What the server did or said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// Bytes that the protocol does not allow.
    Wire(WireError),
    /// It is busy with another test.
    Denied,
    /// It was interrupted.
    Terminated,
    /// It cannot go on; older ones do not say why.
    Failed(Option<(ErrorCode, i32)>),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Each answer has its own time, until data flows.
    SetUp {
        until: MonoTime,
    },
    /// The streams are being connected, each within its own time.
    Opening,
    Running {
        begin: MonoTime,
    },
    /// Senders have stopped; what they sent is on the way.
    Delivering {
        until: MonoTime,
    },
    AwaitExchange {
        until: MonoTime,
    },
    Settling(Settling),
    Leaving(Settling),
    Counting,
    AwaitResults {
        until: MonoTime,
    },
    /// The server's counts are here; receivers learn from them when to end.
    Closing(Settling),
    AwaitDisplay {
        until: MonoTime,
    },
    Over,
}

/// The client's machine.
pub struct Client {
    test: ClientTest,
    order: ClientOrder,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    /// When the server said that the test starts.
    begin: MonoTime,
    beat: Option<Beat>,
    /// What had come, and since when no more has.
    received: (u64, MonoTime),
    stop: bool,
}

impl Client {
    /// Begins at `now`, on a fresh connection.
    pub fn new(now: MonoTime, test: ClientTest) -> Self {
        let out = VecDeque::from([Output::Send(test.cookie.to_bytes().to_vec())]);
        Self {
            test,
            order: ClientOrder::default(),
            stage: Stage::SetUp { until: now + ANSWER_TIMEOUT },
            out,
            begin: now,
            beat: None,
            received: (0, now),
            stop: false,
        }
    }

    fn is_tcp(&self) -> bool {
        self.test.params.protocol == Protocol::Tcp
    }

    /// Takes the messages that are of use now.
    fn read(&mut self, now: MonoTime) {
        while self.reads() {
            match self.order.next_event() {
                Ok(Some(event)) => self.event(now, event),
                Ok(None) => return,
                Err(error) => self.fail(Reason::Peer(PeerFault::Wire(error))),
            }
        }
    }

    fn event(&mut self, now: MonoTime, event: ClientEvent) {
        let until = now + ANSWER_TIMEOUT;
        match event {
            ClientEvent::SendParams => {
                self.send(frame(&self.test.params.to_json()));
                self.stage = Stage::SetUp { until };
            }
            ClientEvent::CreateStreams => {
                self.out.push_back(Output::Open);
                self.stage = Stage::Opening;
            }
            ClientEvent::Starting => {
                // The server sends no data before this.
                (self.begin, self.received) = (now, (0, now));
                self.out.push_back(Output::Begin);
                self.stage = Stage::SetUp { until };
            }
            ClientEvent::Running => {
                self.out.push_back(Output::Start);
                let omit = Duration::from_secs(self.test.params.omit_s);
                self.beat = Some(Beat::new(self.begin, self.test.interval, omit));
                self.stage = Stage::Running { begin: self.begin };
            }
            ClientEvent::SendResults => {
                self.out.push_back(Output::Settle);
                self.stage = Stage::Settling(match self.is_tcp() {
                    true => Settling::new(now, DELIVERY_MAX, Some(QUIET_READING)),
                    false => Settling::new(now, ARRIVAL, None),
                });
            }
            ClientEvent::Results(results) => {
                self.out.push_back(Output::Peer(results));
                self.stage = Stage::Closing(Settling::new(now, COUNTED_MAX, None));
            }
            ClientEvent::Finished => {
                self.send(vec![State::IperfDone.to_byte()]);
                self.finish();
            }
            ClientEvent::Denied => self.fail(Reason::Peer(PeerFault::Denied)),
            ClientEvent::Terminated => self.fail(Reason::Peer(PeerFault::Terminated)),
            ClientEvent::Failed(why) => self.fail(Reason::Peer(PeerFault::Failed(why))),
        }
    }

    /// Goes on as far as time and data allow.
    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        if self.settling().is_some_and(|wait| wait.is_over(now, flow)) {
            self.waited(now);
        }
        if let (Stage::Running { .. } | Stage::Delivering { .. }, Some(beat)) =
            (self.stage, &mut self.beat)
        {
            beat.due(now, &mut self.out);
        }
        let silent = |awaited| Reason::Silent { awaited, within: ANSWER_TIMEOUT };
        match &mut self.stage {
            Stage::SetUp { until }
            | Stage::AwaitExchange { until }
            | Stage::AwaitResults { until }
                if now >= *until =>
            {
                self.fail(silent("its answer"));
            }
            // The results are here; what is said afterwards changes nothing.
            Stage::AwaitDisplay { until } if now >= *until => self.finish(),
            Stage::Running { begin } => {
                let begin = *begin;
                self.run(now, begin, flow);
            }
            Stage::Delivering { until } if flow.delivered || now >= *until => {
                self.out.push_back(Output::Ended);
                self.send(vec![State::TestEnd.to_byte()]);
                self.order.ended();
                self.stage = Stage::AwaitExchange { until: now + ANSWER_TIMEOUT };
            }
            _ => {}
        }
        self.read(now);
    }

    /// Looks whether the test is over.
    fn run(&mut self, now: MonoTime, begin: MonoTime, flow: &FlowState) {
        let mut silent = Duration::ZERO;
        if self.test.params.reverse || self.test.params.bidirectional {
            if flow.received != self.received.0 {
                self.received = (flow.received, now);
            }
            silent = now.since(self.received.1);
            if let Some(max) = self.test.receive_max.filter(|max| silent >= *max) {
                return self.fail(Reason::NoData(max));
            }
        }
        let lost = self.test.complete_after.is_some_and(|patience| silent >= patience);
        let over = self.test.span.map_or(flow.complete || lost, |span| now.since(begin) >= span);
        if over || self.stop {
            self.out.push_back(Output::StopSending);
            let max = match (self.is_tcp(), self.test.params.reverse) {
                (_, true) => Duration::ZERO,
                (true, _) => DELIVERY_MAX,
                (false, _) => ARRIVAL,
            };
            self.stage = Stage::Delivering { until: now + max };
        }
    }

    fn settling(&mut self) -> Option<&mut Settling> {
        match &mut self.stage {
            Stage::Settling(wait) | Stage::Leaving(wait) | Stage::Closing(wait) => Some(wait),
            _ => None,
        }
    }

    /// What was on the way has come, or has had its time.
    fn waited(&mut self, now: MonoTime) {
        match self.stage {
            Stage::Settling(_) if self.is_tcp() => {
                self.out.push_back(Output::StopReceiving);
                self.stage = Stage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            Stage::Closing(_) => {
                self.stage = Stage::AwaitDisplay { until: now + ANSWER_TIMEOUT };
            }
            _ => {
                self.out.push_back(Output::Count);
                self.stage = Stage::Counting;
            }
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send(bytes));
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, reason: Reason<PeerFault>) {
        match self.stage {
            Stage::Over => {}
            Stage::AwaitDisplay { .. } => self.finish(),
            _ => {
                // The server frees its place at once; one that went away does not care.
                self.send(vec![State::ClientTerminate.to_byte()]);
                self.out.push_back(Output::Failed(reason));
                self.stage = Stage::Over;
            }
        }
    }

    fn reads(&self) -> bool {
        matches!(
            self.stage,
            Stage::SetUp { .. }
                | Stage::Running { .. }
                | Stage::Delivering { .. }
                | Stage::AwaitExchange { .. }
                | Stage::AwaitResults { .. }
                | Stage::AwaitDisplay { .. }
        )
    }
}

impl Machine for Client {
    type Request = Params;
    type Terms = ();
    type Refusal = ();
    type Report = Results;
    type News = Infallible;
    type PeerFault = PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.order.push(bytes);
                self.read(now);
            }
            Input::Closed => match self.order.closed() {
                Some(event) => self.event(now, event),
                None => self.fail(Reason::Closed),
            },
            Input::Opened => {
                self.stage = Stage::SetUp { until: now + ANSWER_TIMEOUT };
                self.read(now);
            }
            Input::Counted(results) => {
                self.send(frame(&results.to_json()));
                self.stage = Stage::AwaitResults { until: now + ANSWER_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => {
                self.stop = true;
                if matches!(self.stage, Stage::SetUp { .. } | Stage::Opening) {
                    self.fail(Reason::Stopped);
                }
            }
            Input::GiveUp(_) if !matches!(self.stage, Stage::Over) => {
                self.send(vec![State::ClientTerminate.to_byte()]);
                self.stage = Stage::Over;
            }
            Input::GiveUp(_) | Input::Decided(_) => {}
            Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Stage::SetUp { until }
            | Stage::AwaitExchange { until }
            | Stage::AwaitResults { until }
            | Stage::AwaitDisplay { until } => (Some(*until), LOOK),
            Stage::Running { begin } => {
                let end = self.test.span.map(|span| *begin + span);
                let look = if end.is_some() { LOOK } else { LOOK_AT_END };
                (end, look)
            }
            Stage::Delivering { until } => (Some(*until), LOOK_AT_END),
            Stage::Settling(wait) | Stage::Leaving(wait) | Stage::Closing(wait) => {
                (Some(wait.end()), LOOK_AT_END)
            }
            Stage::Opening | Stage::Counting => (None, LOOK_AT_END),
            Stage::Over => (None, LOOK),
        };
        let runs = matches!(self.stage, Stage::Running { .. } | Stage::Delivering { .. });
        let beat = self.beat.filter(|_| runs).map(|beat| beat.next());
        let wake_at = [wake_at, beat].into_iter().flatten().min();
        Wants { wake_at, look, reads: self.reads() }
    }
}
