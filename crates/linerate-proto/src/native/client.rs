//! The client's side of a test: its steps and time-outs.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::record::EndReport;
use linerate_core::time::MonoTime;

use super::{Accept, Decoder, Message, NativeCredentials, NativeWireError, Refuse, encode};
use crate::dialect::{
    FlowState, Input, LOOK, LOOK_AT_END, Machine, Output, Settling, TestFailureReason,
    TestIntervalTimer, Wants,
};

/// Time-out for the server's answers during set-up.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Time-out for the server's report after the planned end of a TCP test.
pub const REPORT_TIMEOUT: Duration = Duration::from_secs(15);
/// Time-out for the report of a UDP test, which is longer because the report can queue behind the
/// test's datagrams on a full path.
pub const REPORT_TIMEOUT_UDP: Duration = Duration::from_secs(20);
/// Silence from which data in flight counts as lost: longer than a TCP sender needs for two
/// retransmissions (RFC 6298: after 1 s, then 2 s).
pub(super) const STALLED: Duration = Duration::from_secs(5);
/// Silence from which the server of a TCP test by an amount counts as gone: no data and no message.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Longest wait for data in flight after the server's report.
const DRAIN_MAX: Duration = Duration::from_secs(600);

/// Parameters of a test at the client.
#[derive(Clone, Debug)]
pub struct NativeClientTest {
    /// A request over TCP or over UDP.
    pub request: Message,
    /// Planned time of sending, where it is known.
    pub span: Option<Duration>,
    /// Time between two samples.
    pub interval: Duration,
    /// No other test follows on this connection.
    pub last: bool,
    /// Access token of the client, where it has one.
    pub credentials: Option<NativeCredentials>,
}

/// Error of the other end, or its violation of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum NativePeerFault {
    /// Bytes that the protocol does not allow.
    Wire(NativeWireError),
    /// The server refuses the test.
    Refused(Refuse),
    /// The other end aborted the test, with its reason.
    Aborted(String),
}

#[derive(Clone, Copy, Debug)]
enum NativeClientStage {
    AwaitAnswer {
        until: MonoTime,
    },
    Deciding,
    Opening,
    AwaitReady {
        until: MonoTime,
    },
    Running,
    /// The server has reported; data is still in flight.
    Settling(Settling),
    Over,
}

/// State machine of the client of a test.
pub struct NativeClientMachine {
    test: NativeClientTest,
    decoder: Decoder,
    stage: NativeClientStage,
    out: VecDeque<Output<Self>>,
    /// Intervals since the start of the streams.
    beat: Option<TestIntervalTimer>,
    /// Planned time of the server's report, and the end of the wait for it.
    due: Option<(MonoTime, MonoTime)>,
    /// Bytes moved, and the time of the last change or message.
    alive: (u64, MonoTime),
    stopped: bool,
}

impl NativeClientMachine {
    /// A client that starts at `now`, on a connection whose hellos have been exchanged.
    pub fn new(now: MonoTime, test: NativeClientTest) -> Self {
        let mut client = Self {
            decoder: Decoder::default(),
            stage: NativeClientStage::AwaitAnswer { until: now + ANSWER_TIMEOUT },
            out: VecDeque::new(),
            beat: None,
            due: None,
            alive: (0, now),
            stopped: false,
            test,
        };
        let request = client.test.request.clone();
        let shows = client.test.credentials.is_some();
        client.send_message(&if shows { request.with_login() } else { request });
        client
    }

    fn is_udp(&self) -> bool {
        matches!(self.test.request, Message::UdpRequest { .. })
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
        self.alive.1 = now;
        match (self.stage, message) {
            (NativeClientStage::AwaitAnswer { .. }, Message::Accept(accept)) => {
                self.stage = NativeClientStage::Deciding;
                self.out.push_back(Output::Decide(accept));
            }
            (NativeClientStage::AwaitAnswer { .. }, Message::Refuse(refuse)) => {
                self.fail_with(TestFailureReason::Peer(NativePeerFault::Refused(refuse)));
            }
            // Only once: a server that repeats the challenge tries to collect proofs.
            (NativeClientStage::AwaitAnswer { .. }, Message::Challenge { nonce })
                if self.test.credentials.is_some() =>
            {
                if let Some(credentials) = self.test.credentials.take() {
                    self.send_message(&Message::Proof(credentials.answer_challenge(nonce)));
                }
            }
            (NativeClientStage::AwaitReady { .. }, Message::Ready) => {
                self.out.push_back(Output::Begin);
                self.send_message(&Message::Start);
                self.out.push_back(Output::Start);
                self.stage = NativeClientStage::Running;
            }
            (
                NativeClientStage::Running,
                news @ (Message::Interval { .. }
                | Message::UdpInterval { .. }
                | Message::UdpSent { .. }
                | Message::UdpSearch(_)
                | Message::TrainReport(_)),
            ) => self.out.push_back(Output::News(news)),
            (NativeClientStage::Running, Message::Result { reports }) => {
                self.out.extend([Output::Peer(Box::new(reports)), Output::Settle]);
                self.stage = NativeClientStage::Settling(match self.is_udp() {
                    true => Settling::new(now, REPORT_TIMEOUT_UDP, None),
                    false => Settling::new(now, DRAIN_MAX, Some(STALLED)),
                });
            }
            (_, Message::Abort { reason }) => {
                self.fail_with(TestFailureReason::Peer(NativePeerFault::Aborted(reason)));
            }
            (stage, message) => {
                let error =
                    NativeWireError::State { got: message.name(), expected: stage.awaits() };
                self.fail_with(TestFailureReason::Peer(NativePeerFault::Wire(error)));
            }
        }
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        let over = match &mut self.stage {
            NativeClientStage::AwaitAnswer { until } | NativeClientStage::AwaitReady { until } => {
                now >= *until
            }
            NativeClientStage::Running => {
                let interval = self.test.interval;
                let beat = self
                    .beat
                    .get_or_insert_with(|| TestIntervalTimer::new(now, interval, Duration::ZERO));
                beat.push_due_outputs(now, &mut self.out);
                let report = self.report_timeout();
                if self.due.is_none() {
                    self.due = self.test.span.map(|span| (now + span, now + span + report));
                }
                if self.alive.0 != flow.moved {
                    self.alive = (flow.moved, now);
                }
                match self.due {
                    Some((_, end)) => now >= end,
                    None => !self.is_udp() && now.duration_since(self.alive.1) >= SILENCE_MAX,
                }
            }
            NativeClientStage::Settling(wait) => {
                if wait.is_over(now, flow) {
                    if self.test.last {
                        // The server needs no bye, so its loss does no harm.
                        self.send_message(&Message::Bye);
                    }
                    self.out.push_back(Output::Finished);
                    self.stage = NativeClientStage::Over;
                }
                false
            }
            NativeClientStage::Deciding | NativeClientStage::Opening | NativeClientStage::Over => {
                false
            }
        };
        if over {
            self.fail_with(TestFailureReason::Silent {
                awaited: "its answer",
                within: ANSWER_TIMEOUT,
            });
        }
    }

    fn report_timeout(&self) -> Duration {
        if self.is_udp() { REPORT_TIMEOUT_UDP } else { REPORT_TIMEOUT }
    }

    /// Ends the test early at the user's request.
    fn stop_test(&mut self, now: MonoTime) {
        match self.stage {
            NativeClientStage::Running if !self.stopped => {
                self.stopped = true;
                self.out.push_back(Output::StopSending);
                self.send_message(&Message::Stop);
                self.due = Some((now, now + self.report_timeout()));
            }
            NativeClientStage::Running | NativeClientStage::Settling(_) => {}
            _ => self.fail_with(TestFailureReason::Stopped),
        }
    }

    fn send_message(&mut self, message: &Message) {
        match encode(message) {
            Ok(bytes) => self.out.push_back(Output::Send(bytes)),
            Err(error) => self.fail_with(TestFailureReason::Peer(NativePeerFault::Wire(error))),
        }
    }

    fn fail_with(&mut self, reason: TestFailureReason<NativePeerFault>) {
        if !matches!(self.stage, NativeClientStage::Over) {
            self.out.push_back(Output::Failed(reason));
            self.stage = NativeClientStage::Over;
        }
    }

    const fn reads_control(&self) -> bool {
        matches!(
            self.stage,
            NativeClientStage::AwaitAnswer { .. }
                | NativeClientStage::AwaitReady { .. }
                | NativeClientStage::Running
        )
    }
}

impl Machine for NativeClientMachine {
    type Request = Accept;
    type Terms = ();
    type Refusal = ();
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
            Input::Decided(_) if matches!(self.stage, NativeClientStage::Deciding) => {
                self.out.push_back(Output::Open);
                self.stage = NativeClientStage::Opening;
            }
            Input::Opened if matches!(self.stage, NativeClientStage::Opening) => {
                self.stage = NativeClientStage::AwaitReady { until: now + ANSWER_TIMEOUT };
                self.read(now);
            }
            Input::Tell(news) if matches!(self.stage, NativeClientStage::Running) => {
                self.send_message(&news)
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.stop_test(now),
            Input::GiveUp(_) => self.stage = NativeClientStage::Over,
            Input::Decided(_) | Input::Opened | Input::Tell(_) | Input::Counted(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            NativeClientStage::AwaitAnswer { until } => (Some(*until), LOOK),
            // Over UDP the streams are still being opened.
            NativeClientStage::AwaitReady { until } => {
                (Some(*until), if self.is_udp() { LOOK_AT_END } else { LOOK })
            }
            NativeClientStage::Running => {
                let wake_at = [self.beat.map(|beat| beat.next()), self.due.map(|(_, end)| end)];
                (wake_at.into_iter().flatten().min(), LOOK)
            }
            NativeClientStage::Settling(wait) => (Some(wait.latest_end()), LOOK_AT_END),
            NativeClientStage::Deciding | NativeClientStage::Opening => (None, LOOK_AT_END),
            NativeClientStage::Over => (None, LOOK),
        };
        Wants { wake_at, look, reads: self.reads_control() }
    }
}

impl NativeClientStage {
    const fn awaits(self) -> &'static str {
        match self {
            Self::AwaitAnswer { .. } | Self::Deciding => "accept or refuse",
            Self::Opening | Self::AwaitReady { .. } => "ready",
            Self::Running => "interval or result",
            Self::Settling(_) | Self::Over => "nothing",
        }
    }
}
