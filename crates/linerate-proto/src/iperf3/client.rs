//! The client's side of a test: its steps and time-outs.
//!
//! iperf3's own client sends `test end` while its send buffers are full, so that data in flight
//! counts at one end only; this client first waits until all is acknowledged, within
//! [`DELIVERY_MAX`]. Datagrams are not acknowledged, and the server's clock runs until it reads
//! `test end`: this client sends it once they have left, so that it queues behind them on the path.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    ClientEvent, ClientOrder, Cookie, ErrorCode, Params, Protocol, Results, State, WireError,
    frame_json,
};
use crate::dialect::{
    FlowState, Input, LOOK, LOOK_AT_END, Machine, Output, Settling, TestFailureReason,
    TestIntervalTimer, Wants,
};

/// Time-out for each of the server's answers during set-up and end.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for data in flight at the end of a test.
pub const DELIVERY_MAX: Duration = Duration::from_secs(2);
/// Silence after which a server that does not close its streams counts as done.
const QUIET_READING: Duration = Duration::from_millis(200);
/// Longest wait for receivers that were told to stop.
pub(super) const LEAVE_MAX: Duration = Duration::from_secs(1);
/// Time for the last datagrams to leave before `test end`, and for the server's last datagrams to
/// arrive after it.
const ARRIVAL: Duration = Duration::from_millis(100);
/// Longest wait for receivers that know the number of datagrams sent and stop at the last one.
pub(super) const COUNTED_MAX: Duration = Duration::from_secs(3);

/// Parameters of a test at the client.
#[derive(Clone, Debug)]
pub struct Iperf3ClientTest {
    /// Cookie at the start of every connection.
    pub cookie: Cookie,
    /// Parameters sent to the server.
    pub params: Params,
    /// Duration of the test with its omitted span; `None` where an amount ends it.
    pub span: Option<Duration>,
    /// Time between two samples.
    pub interval: Duration,
    /// Silence from which a receiving test fails.
    pub receive_max: Option<Duration>,
    /// Silence from which a test that receives an amount is complete, because its last datagrams
    /// may be lost.
    pub complete_after: Option<Duration>,
}

/// Error of the server, or its violation of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Iperf3PeerFault {
    /// Bytes that the protocol does not allow.
    Wire(WireError),
    /// The server is busy with another test.
    Denied,
    /// The server was interrupted.
    Terminated,
    /// The server failed, with iperf3's number and the kernel's; older versions send none.
    Failed(Option<(ErrorCode, i32)>),
}

#[derive(Clone, Copy, Debug)]
enum Iperf3ClientStage {
    /// Waiting for an answer of the server before the data starts.
    SetUp {
        until: MonoTime,
    },
    /// The streams are being connected.
    Opening,
    Running {
        begin: MonoTime,
    },
    /// Senders have stopped; their data is in flight.
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
    /// The server's counters have arrived; receivers stop once they have that number of datagrams.
    Closing(Settling),
    AwaitDisplay {
        until: MonoTime,
    },
    Over,
}

/// State machine of the client of a test.
pub struct Iperf3ClientMachine {
    test: Iperf3ClientTest,
    order: ClientOrder,
    stage: Iperf3ClientStage,
    out: VecDeque<Output<Self>>,
    /// Arrival of the server's `test start`.
    begin: MonoTime,
    beat: Option<TestIntervalTimer>,
    /// Bytes received, and the time of the last change.
    received: (u64, MonoTime),
    stop: bool,
}

impl Iperf3ClientMachine {
    /// A client that starts at `now`, on a new connection.
    pub fn new(now: MonoTime, test: Iperf3ClientTest) -> Self {
        let out = VecDeque::from([Output::Send(test.cookie.to_bytes().to_vec())]);
        Self {
            test,
            order: ClientOrder::default(),
            stage: Iperf3ClientStage::SetUp { until: now + ANSWER_TIMEOUT },
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

    /// Handles the buffered messages that the current step expects.
    fn read(&mut self, now: MonoTime) {
        while self.reads_control() {
            match self.order.next_event() {
                Ok(Some(event)) => self.handle_event(now, event),
                Ok(None) => return,
                Err(error) => self.fail_with(TestFailureReason::Peer(Iperf3PeerFault::Wire(error))),
            }
        }
    }

    fn handle_event(&mut self, now: MonoTime, event: ClientEvent) {
        let until = now + ANSWER_TIMEOUT;
        match event {
            ClientEvent::SendParams => {
                self.send_control_bytes(frame_json(&self.test.params.to_json()));
                self.stage = Iperf3ClientStage::SetUp { until };
            }
            ClientEvent::CreateStreams => {
                self.out.push_back(Output::Open);
                self.stage = Iperf3ClientStage::Opening;
            }
            ClientEvent::Starting => {
                // The server sends no data before this.
                (self.begin, self.received) = (now, (0, now));
                self.out.push_back(Output::Begin);
                self.stage = Iperf3ClientStage::SetUp { until };
            }
            ClientEvent::Running => {
                self.out.push_back(Output::Start);
                let omit = Duration::from_secs(self.test.params.omit_s);
                self.beat = Some(TestIntervalTimer::new(self.begin, self.test.interval, omit));
                self.stage = Iperf3ClientStage::Running { begin: self.begin };
            }
            ClientEvent::SendResults => {
                self.out.push_back(Output::Settle);
                self.stage = Iperf3ClientStage::Settling(match self.is_tcp() {
                    true => Settling::new(now, DELIVERY_MAX, Some(QUIET_READING)),
                    false => Settling::new(now, ARRIVAL, None),
                });
            }
            ClientEvent::Results(results) => {
                self.out.push_back(Output::Peer(results));
                self.stage = Iperf3ClientStage::Closing(Settling::new(now, COUNTED_MAX, None));
            }
            ClientEvent::Finished => {
                self.send_control_bytes(vec![State::IperfDone.to_byte()]);
                self.finish();
            }
            ClientEvent::Denied => self.fail_with(TestFailureReason::Peer(Iperf3PeerFault::Denied)),
            ClientEvent::Terminated => {
                self.fail_with(TestFailureReason::Peer(Iperf3PeerFault::Terminated))
            }
            ClientEvent::Failed(why) => {
                self.fail_with(TestFailureReason::Peer(Iperf3PeerFault::Failed(why)))
            }
        }
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        if self.settling().is_some_and(|wait| wait.is_over(now, flow)) {
            self.end_wait(now);
        }
        if let (
            Iperf3ClientStage::Running { .. } | Iperf3ClientStage::Delivering { .. },
            Some(beat),
        ) = (self.stage, &mut self.beat)
        {
            beat.push_due_outputs(now, &mut self.out);
        }
        let silent = |awaited| TestFailureReason::Silent { awaited, within: ANSWER_TIMEOUT };
        match &mut self.stage {
            Iperf3ClientStage::SetUp { until }
            | Iperf3ClientStage::AwaitExchange { until }
            | Iperf3ClientStage::AwaitResults { until }
                if now >= *until =>
            {
                self.fail_with(silent("its answer"));
            }
            // The results have arrived; later messages change nothing.
            Iperf3ClientStage::AwaitDisplay { until } if now >= *until => self.finish(),
            Iperf3ClientStage::Running { begin } => {
                let begin = *begin;
                self.run(now, begin, flow);
            }
            Iperf3ClientStage::Delivering { until } if flow.delivered || now >= *until => {
                self.out.push_back(Output::Ended);
                self.send_control_bytes(vec![State::TestEnd.to_byte()]);
                self.order.note_test_end();
                self.stage = Iperf3ClientStage::AwaitExchange { until: now + ANSWER_TIMEOUT };
            }
            _ => {}
        }
        self.read(now);
    }

    /// Checks if the test is over, by time, amount or silence.
    fn run(&mut self, now: MonoTime, begin: MonoTime, flow: &FlowState) {
        let mut silent = Duration::ZERO;
        if self.test.params.reverse || self.test.params.bidirectional {
            if flow.received != self.received.0 {
                self.received = (flow.received, now);
            }
            silent = now.duration_since(self.received.1);
            if let Some(max) = self.test.receive_max.filter(|max| silent >= *max) {
                return self.fail_with(TestFailureReason::NoData(max));
            }
        }
        let lost = self.test.complete_after.is_some_and(|patience| silent >= patience);
        let over =
            self.test.span.map_or(flow.complete || lost, |span| now.duration_since(begin) >= span);
        if over || self.stop {
            self.out.push_back(Output::StopSending);
            let max = match (self.is_tcp(), self.test.params.reverse) {
                (_, true) => Duration::ZERO,
                (true, _) => DELIVERY_MAX,
                (false, _) => ARRIVAL,
            };
            self.stage = Iperf3ClientStage::Delivering { until: now + max };
        }
    }

    fn settling(&mut self) -> Option<&mut Settling> {
        match &mut self.stage {
            Iperf3ClientStage::Settling(wait)
            | Iperf3ClientStage::Leaving(wait)
            | Iperf3ClientStage::Closing(wait) => Some(wait),
            _ => None,
        }
    }

    /// Goes to the next step after a wait for data in flight.
    fn end_wait(&mut self, now: MonoTime) {
        match self.stage {
            Iperf3ClientStage::Settling(_) if self.is_tcp() => {
                self.out.push_back(Output::StopReceiving);
                self.stage = Iperf3ClientStage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            Iperf3ClientStage::Closing(_) => {
                self.stage = Iperf3ClientStage::AwaitDisplay { until: now + ANSWER_TIMEOUT };
            }
            _ => {
                self.out.push_back(Output::Count);
                self.stage = Iperf3ClientStage::Counting;
            }
        }
    }

    fn send_control_bytes(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send(bytes));
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Iperf3ClientStage::Over;
    }

    fn fail_with(&mut self, reason: TestFailureReason<Iperf3PeerFault>) {
        match self.stage {
            Iperf3ClientStage::Over => {}
            Iperf3ClientStage::AwaitDisplay { .. } => self.finish(),
            _ => {
                // The server is then free for other clients at once.
                self.send_control_bytes(vec![State::ClientTerminate.to_byte()]);
                self.out.push_back(Output::Failed(reason));
                self.stage = Iperf3ClientStage::Over;
            }
        }
    }

    fn reads_control(&self) -> bool {
        matches!(
            self.stage,
            Iperf3ClientStage::SetUp { .. }
                | Iperf3ClientStage::Running { .. }
                | Iperf3ClientStage::Delivering { .. }
                | Iperf3ClientStage::AwaitExchange { .. }
                | Iperf3ClientStage::AwaitResults { .. }
                | Iperf3ClientStage::AwaitDisplay { .. }
        )
    }
}

impl Machine for Iperf3ClientMachine {
    type Request = Params;
    type Terms = ();
    type Refusal = ();
    type Report = Results;
    type News = Infallible;
    type PeerFault = Iperf3PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.order.push(bytes);
                self.read(now);
            }
            Input::Closed => match self.order.event_on_close() {
                Some(event) => self.handle_event(now, event),
                None => self.fail_with(TestFailureReason::Closed),
            },
            Input::Opened => {
                self.stage = Iperf3ClientStage::SetUp { until: now + ANSWER_TIMEOUT };
                self.read(now);
            }
            Input::Counted(results) => {
                self.send_control_bytes(frame_json(&results.to_json()));
                self.stage = Iperf3ClientStage::AwaitResults { until: now + ANSWER_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => {
                self.stop = true;
                if matches!(
                    self.stage,
                    Iperf3ClientStage::SetUp { .. } | Iperf3ClientStage::Opening
                ) {
                    self.fail_with(TestFailureReason::Stopped);
                }
            }
            Input::GiveUp(_) if !matches!(self.stage, Iperf3ClientStage::Over) => {
                self.send_control_bytes(vec![State::ClientTerminate.to_byte()]);
                self.stage = Iperf3ClientStage::Over;
            }
            Input::GiveUp(_) | Input::Decided(_) => {}
            Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Iperf3ClientStage::SetUp { until }
            | Iperf3ClientStage::AwaitExchange { until }
            | Iperf3ClientStage::AwaitResults { until }
            | Iperf3ClientStage::AwaitDisplay { until } => (Some(*until), LOOK),
            Iperf3ClientStage::Running { begin } => {
                let end = self.test.span.map(|span| *begin + span);
                let look = if end.is_some() { LOOK } else { LOOK_AT_END };
                (end, look)
            }
            Iperf3ClientStage::Delivering { until } => (Some(*until), LOOK_AT_END),
            Iperf3ClientStage::Settling(wait)
            | Iperf3ClientStage::Leaving(wait)
            | Iperf3ClientStage::Closing(wait) => (Some(wait.latest_end()), LOOK_AT_END),
            Iperf3ClientStage::Opening | Iperf3ClientStage::Counting => (None, LOOK_AT_END),
            Iperf3ClientStage::Over => (None, LOOK),
        };
        let runs = matches!(
            self.stage,
            Iperf3ClientStage::Running { .. } | Iperf3ClientStage::Delivering { .. }
        );
        let beat = self.beat.filter(|_| runs).map(|beat| beat.next());
        let wake_at = [wake_at, beat].into_iter().flatten().min();
        Wants { wake_at, look, reads: self.reads_control() }
    }
}
