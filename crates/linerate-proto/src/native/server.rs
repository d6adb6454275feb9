//! The server's side of the tests on one connection: their steps and time-outs.
//!
//! A client can occupy the server for a bounded time only: each wait has a deadline, and a test
//! that does not end is stopped.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::record::{EndReport, Fault, UdpTest};
use linerate_core::time::MonoTime;

use super::client::{NativePeerFault, STALLED};
use super::{
    Accept, Decoder, Message, NativeTcpTestRequest, NativeWireError, Nonce, Refuse, TrainsRequest,
    encode,
};
use crate::dialect::{
    FlowState, Input, LOOK, LOOK_AT_END, Machine, Output, Settling, TestFailureReason,
    TestIntervalTimer, Wants,
};

/// Time-out for each of the client's steps during set-up.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a client to leave after the server's abort. Its data is read until then; otherwise it
/// would see a reset of its streams before it reads the abort.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// Test that a client requests.
#[derive(Clone, Debug)]
pub enum TestRequest {
    /// A test over TCP.
    Tcp(NativeTcpTestRequest),
    /// A test over UDP.
    Udp(UdpTest),
    /// Rounds of trains of probe datagrams.
    Trains(TrainsRequest),
}

/// Limits and answer of an accepted test.
#[derive(Clone, Debug)]
pub struct NativeServerTerms {
    /// The answer to the client.
    pub accept: Box<Accept>,
    /// Time between two samples.
    pub interval: Duration,
    /// Time after which senders are stopped.
    pub span_max: Duration,
    /// Time from which streams without data count as stalled; `None` where stalls are detected
    /// otherwise.
    pub stall_after: Option<Duration>,
    /// Longest time of the whole test.
    pub end: Duration,
    /// Reason sent to a client whose test by an amount is not done by `span_max`.
    pub overdue: Option<String>,
    /// Time-out for each of the client's steps.
    pub step: Duration,
    /// Name of the streams in error messages.
    pub streams: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum NativeServerStage {
    AwaitRequest {
        until: MonoTime,
    },
    AwaitProof {
        until: MonoTime,
    },
    Deciding,
    Opening {
        until: MonoTime,
    },
    AwaitStart {
        until: MonoTime,
    },
    Running,
    /// The server has aborted the test and waits for the client to leave.
    Dismissed {
        until: MonoTime,
    },
    /// The client has its result.
    AwaitBye {
        until: MonoTime,
    },
    /// The test has failed, and the client has not been told yet.
    Failed,
    Over,
}

/// State machine of the server of a connection.
pub struct NativeServerMachine {
    decoder: Decoder,
    stage: NativeServerStage,
    out: VecDeque<Output<Self>>,
    terms: Option<NativeServerTerms>,
    run: Option<NativeStartedTest>,
    /// Nonce for a client that logs in.
    challenge: Option<Nonce>,
    /// Request of a client that has not logged in yet.
    asked: Option<Box<TestRequest>>,
}

/// A test that has been started.
#[derive(Clone, Copy, Debug)]
struct NativeStartedTest {
    beat: TestIntervalTimer,
    /// Time at which senders are stopped.
    due: MonoTime,
    stopped: bool,
    /// Time at which all threads are stopped.
    end: MonoTime,
    /// Time from which stalls are checked, and the wait that detects them.
    stall: Option<(MonoTime, Settling)>,
}

impl NativeServerMachine {
    /// A server that starts at `now`, on a connection whose hellos have been exchanged.
    pub fn new(now: MonoTime) -> Self {
        Self {
            decoder: Decoder::default(),
            stage: NativeServerStage::AwaitRequest { until: now + STEP_TIMEOUT },
            out: VecDeque::new(),
            terms: None,
            run: None,
            challenge: None,
            asked: None,
        }
    }

    /// The same server, which sends `nonce` to a client that logs in. The client's proof is output
    /// as news before its request.
    #[must_use]
    pub fn challenging(self, nonce: Nonce) -> Self {
        Self { challenge: Some(nonce), ..self }
    }

    /// Handles the buffered messages that the current step expects.
    fn read(&mut self, now: MonoTime) {
        while self.reads_control() {
            match self.decoder.next_message() {
                Ok(Some(message)) => self.handle_message(now, message),
                Ok(None) => return,
                Err(error) => self.fail_with(TestFailureReason::Peer(NativePeerFault::Wire(error))),
            }
        }
    }

    fn handle_message(&mut self, now: MonoTime, message: Message) {
        match (self.stage, message) {
            (NativeServerStage::AwaitRequest { .. }, Message::Request(request)) => {
                self.challenge_or_decide(now, request.login, TestRequest::Tcp(request));
            }
            // The next round of the same client follows a result; the client keeps its slot.
            (NativeServerStage::AwaitBye { .. }, Message::Request(request)) => {
                self.decide(Box::new(TestRequest::Tcp(request)));
            }
            (NativeServerStage::AwaitRequest { .. }, Message::UdpRequest { test, login }) => {
                self.challenge_or_decide(now, login, TestRequest::Udp(test));
            }
            (NativeServerStage::AwaitRequest { .. }, Message::TrainsRequest(request)) => {
                self.challenge_or_decide(now, request.login, TestRequest::Trains(request));
            }
            (NativeServerStage::AwaitProof { .. }, proof @ Message::Proof(_)) => {
                self.out.push_back(Output::News(proof));
                if let Some(asked) = self.asked.take() {
                    self.decide(asked);
                }
            }
            (NativeServerStage::AwaitStart { .. }, Message::Start) => {
                self.out.extend([Output::Begin, Output::Start]);
                (self.stage, self.run) = (NativeServerStage::Running, None);
            }
            (NativeServerStage::Running, Message::Stop) => self.out.push_back(Output::StopSending),
            (
                NativeServerStage::Running,
                news @ (Message::UdpSent { .. } | Message::TrainRound(_)),
            ) => {
                self.out.push_back(Output::News(news));
            }
            // These messages can cross the result on the wire.
            (
                NativeServerStage::AwaitBye { .. },
                Message::Stop | Message::UdpSent { .. } | Message::TrainRound(_),
            ) => {}
            (
                NativeServerStage::AwaitRequest { .. }
                | NativeServerStage::AwaitProof { .. }
                | NativeServerStage::AwaitBye { .. },
                Message::Bye | Message::Abort { .. },
            ) => self.finish(),
            (NativeServerStage::Dismissed { .. }, Message::Bye | Message::Abort { .. }) => {
                self.fail_with(TestFailureReason::Overdue);
            }
            (NativeServerStage::Dismissed { .. }, _) => {}
            (_, Message::Bye | Message::Abort { .. }) => self.fail_with(TestFailureReason::Left),
            (stage, message) => {
                let error =
                    NativeWireError::State { got: message.name(), expected: stage.awaits() };
                self.fail_with(TestFailureReason::Peer(NativePeerFault::Wire(error)));
            }
        }
    }

    /// Outputs a request for decision, or first challenges a client that logs in.
    fn challenge_or_decide(&mut self, now: MonoTime, login: bool, asked: TestRequest) {
        let asked = Box::new(asked);
        match self.challenge.take().filter(|_| login) {
            Some(nonce) => {
                self.asked = Some(asked);
                self.stage = NativeServerStage::AwaitProof { until: now + STEP_TIMEOUT };
                self.send_message(&Message::Challenge { nonce });
            }
            None => self.decide(asked),
        }
    }

    fn decide(&mut self, asked: Box<TestRequest>) {
        self.stage = NativeServerStage::Deciding;
        self.out.push_back(Output::Decide(asked));
    }

    fn accept_or_refuse(&mut self, now: MonoTime, decision: Result<NativeServerTerms, Refuse>) {
        // The client has left meanwhile, or violated the protocol.
        if !matches!(self.stage, NativeServerStage::Deciding) {
            return;
        }
        match decision {
            Ok(terms) => {
                self.stage = NativeServerStage::Opening { until: now + terms.step };
                self.send_message(&Message::Accept(terms.accept.clone()));
                self.terms = Some(terms);
                self.out.push_back(Output::Open);
                self.read(now);
            }
            Err(refuse) => {
                self.send_message(&Message::Refuse(refuse));
                self.finish();
            }
        }
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        let within = self.step_timeout();
        let silent = |awaited| TestFailureReason::Silent { awaited, within };
        match self.stage {
            NativeServerStage::AwaitRequest { until } if now >= until => {
                self.fail_with(silent("a request"))
            }
            NativeServerStage::AwaitProof { until } if now >= until => {
                self.fail_with(silent("its token"))
            }
            NativeServerStage::Opening { until } if now >= until => {
                let streams = self.terms.as_ref().map_or("the streams", |terms| terms.streams);
                self.fail_with(silent(streams));
            }
            NativeServerStage::AwaitStart { until } if now >= until => {
                self.fail_with(silent("start"))
            }
            // A client that leaves without a bye has its result.
            NativeServerStage::AwaitBye { until } if now >= until => self.finish(),
            NativeServerStage::Running => self.check_streams(now, flow),
            NativeServerStage::Dismissed { until } if now >= until => {
                self.fail_with(TestFailureReason::Overdue)
            }
            _ => {}
        }
    }

    /// Checks the limits of the running streams, and ends the test once all are done.
    fn check_streams(&mut self, now: MonoTime, flow: &FlowState) {
        let Some(terms) = &self.terms else { return };
        let run = self.run.get_or_insert_with(|| NativeStartedTest {
            beat: TestIntervalTimer::new(now, terms.interval, Duration::ZERO),
            due: now + terms.span_max,
            stopped: false,
            end: now + terms.end,
            stall: terms
                .stall_after
                .map(|due| (now + due, Settling::new(now, Duration::MAX, Some(STALLED)))),
        });
        if flow.done {
            self.out.extend([Output::Sample, Output::Count]);
            self.stage = NativeServerStage::Deciding;
            return;
        }
        run.beat.push_due_outputs(now, &mut self.out);
        if now >= run.due && !run.stopped {
            run.stopped = true;
            self.out.push_back(Output::StopSending);
            if let Some(reason) = terms.overdue.clone() {
                self.send_message(&Message::Abort { reason });
                self.stage = NativeServerStage::Dismissed { until: now + LEAVE_MAX };
                return;
            }
        }
        let stalled =
            run.stall.as_mut().is_some_and(|(due, stall)| now >= *due && stall.is_over(now, flow));
        if now >= run.end || stalled {
            self.out.push_back(Output::Halt);
            run.end = now + Duration::MAX;
            run.stall = None;
        }
    }

    fn step_timeout(&self) -> Duration {
        self.terms.as_ref().map_or(STEP_TIMEOUT, |terms| terms.step)
    }

    fn send_message(&mut self, message: &Message) {
        match encode(message) {
            Ok(bytes) => self.out.push_back(Output::Send(bytes)),
            Err(error) => self.fail_with(TestFailureReason::Peer(NativePeerFault::Wire(error))),
        }
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = NativeServerStage::Over;
    }

    fn fail_with(&mut self, reason: TestFailureReason<NativePeerFault>) {
        match self.stage {
            NativeServerStage::Over | NativeServerStage::Failed => {}
            // The client has its result; later messages change nothing.
            NativeServerStage::AwaitBye { .. } => self.finish(),
            NativeServerStage::Dismissed { .. } => {
                self.out.push_back(Output::Failed(TestFailureReason::Overdue));
                self.stage = NativeServerStage::Over;
            }
            _ => {
                self.out.push_back(Output::Failed(reason));
                self.stage = NativeServerStage::Failed;
            }
        }
    }

    /// True while messages are read, also while the server decides or waits for streams, so that
    /// it notices a client that leaves.
    const fn reads_control(&self) -> bool {
        !matches!(self.stage, NativeServerStage::Failed | NativeServerStage::Over)
    }
}

impl Machine for NativeServerMachine {
    type Request = TestRequest;
    type Terms = NativeServerTerms;
    type Refusal = Refuse;
    type Report = Vec<EndReport>;
    type News = Message;
    type PeerFault = NativePeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.decoder.push(bytes);
                self.read(now);
            }
            Input::Closed => self.fail_with(TestFailureReason::Closed),
            Input::Decided(decision) => self.accept_or_refuse(now, decision),
            Input::Opened if matches!(self.stage, NativeServerStage::Opening { .. }) => {
                self.send_message(&Message::Ready);
                self.stage = NativeServerStage::AwaitStart { until: now + self.step_timeout() };
                self.read(now);
            }
            Input::Tell(news) if self.reads_control() => self.send_message(&news),
            Input::Counted(reports) if matches!(self.stage, NativeServerStage::Deciding) => {
                self.send_message(&Message::Result { reports: *reports });
                self.stage = NativeServerStage::AwaitBye { until: now + STEP_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.check_state(now, &flow),
            // A running test ends early; one that has not started fails.
            Input::Stop if matches!(self.stage, NativeServerStage::Running) => {
                self.out.push_back(Output::StopSending);
            }
            Input::Stop => self.fail_with(TestFailureReason::Stopped),
            Input::GiveUp(failure) => {
                if !matches!(self.stage, NativeServerStage::Over)
                    && failure.fault != Fault::Unreachable
                {
                    self.send_message(&Message::Abort { reason: failure.to_string() });
                }
                self.stage = NativeServerStage::Over;
            }
            // The test has failed or ended.
            Input::Opened | Input::Tell(_) | Input::Counted(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            NativeServerStage::AwaitRequest { until }
            | NativeServerStage::AwaitProof { until }
            | NativeServerStage::AwaitStart { until }
            | NativeServerStage::Dismissed { until }
            | NativeServerStage::AwaitBye { until } => (Some(*until), LOOK),
            NativeServerStage::Opening { until } => (Some(*until), LOOK_AT_END),
            NativeServerStage::Running => {
                let next = |run: NativeStartedTest| {
                    let wake_at = run.beat.next().min(run.end);
                    if run.stopped { wake_at } else { wake_at.min(run.due) }
                };
                // Only a check of the streams shows that they are done.
                let near = self.run.is_some_and(|run| run.stopped);
                (self.run.map(next), if near { LOOK_AT_END } else { LOOK })
            }
            NativeServerStage::Deciding => (None, LOOK_AT_END),
            NativeServerStage::Failed | NativeServerStage::Over => (None, LOOK),
        };
        Wants { wake_at, look, reads: self.reads_control() }
    }
}

impl NativeServerStage {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitRequest { .. } => "request",
            Self::AwaitProof { .. } => "proof",
            Self::Deciding | Self::Opening { .. } => "the data streams",
            Self::AwaitStart { .. } => "start",
            Self::Running | Self::Dismissed { .. } => "the end of the test",
            Self::AwaitBye { .. } => "bye or the next request",
            Self::Failed | Self::Over => "nothing",
        }
    }
}
