//! The client's side of a TCP test: its steps and time-outs.
//!
//! There is no control connection. Each stream begins with a header, which counts as payload. The
//! server sends nothing but its [`Iperf2Answer`], and closes its streams.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{ANSWER_BYTES, Iperf2Answer, Mode};
use crate::dialect::{
    FlowState, Input, Machine, Output, TestFailureReason, TestIntervalTimer, Wants,
};

/// Time that a test has after its planned end for data in flight.
pub const GRACE: Duration = Duration::from_secs(15);
/// Longest wait for the server to close after the last acknowledgement.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Most that a server that sends for a time may close too early: it starts its clock when it has
/// the header, and rounds to hundredths of a second.
const EARLY: Duration = Duration::from_millis(200);
/// Interval of checks of the streams and of the stop flag.
const LOOK: Duration = Duration::from_millis(2);

/// Parameters of a TCP test at the client.
#[derive(Clone, Copy, Debug)]
pub struct ClientTest {
    /// Direction of the data.
    pub mode: Mode,
    /// Time for which senders send; `None` where an amount ends the test.
    pub span: Option<Duration>,
    /// Sum of the bytes of all streams that ends the test.
    pub bytes: Option<u64>,
    /// Time between two samples.
    pub interval: Duration,
}

/// The server closed its streams before it had sent the requested time or amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// Time that was missing.
    Early(Duration),
    /// Bytes received, and bytes requested.
    Short(u64, u64),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Opening,
    Running {
        give_up: Option<MonoTime>,
    },
    /// All data is acknowledged; the server answers and closes.
    Closing {
        until: MonoTime,
    },
    Over,
}

/// State machine of the client of a TCP test.
pub struct Client {
    test: ClientTest,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    begin: MonoTime,
    beat: Option<TestIntervalTimer>,
    stopped: bool,
    answer: Vec<u8>,
}

impl Client {
    /// A client that starts at `now`, before its streams are connected.
    pub fn new(now: MonoTime, test: ClientTest) -> Self {
        Self {
            test,
            stage: Stage::Opening,
            out: VecDeque::from([Output::Open]),
            begin: now,
            beat: None,
            stopped: false,
            answer: Vec::new(),
        }
    }

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        match self.stage {
            Stage::Running { give_up } => {
                if let Some(beat) = &mut self.beat {
                    beat.push_due_outputs(now, &mut self.out);
                }
                if flow.done {
                    self.end_streams(now, flow);
                } else if give_up.is_some_and(|at| now >= at) {
                    self.fail_with(TestFailureReason::Overdue);
                }
            }
            Stage::Closing { until } if now >= until => self.finish(),
            _ => {}
        }
    }

    /// Ends the test after all its streams have ended.
    fn end_streams(&mut self, now: MonoTime, flow: &FlowState) {
        self.out.extend([Output::Sample, Output::Ended]);
        if self.sends_alone() {
            self.stage = Stage::Closing { until: now + CLOSE_TIMEOUT };
            return;
        }
        // The streams also end early when the server program was killed.
        let early = self.test.span.map(|span| (self.begin + span).duration_since(now));
        let fault = match (early, self.test.bytes) {
            (Some(early), _) if early > EARLY => Some(PeerFault::Early(early)),
            (None, Some(bytes)) if flow.received < bytes => {
                Some(PeerFault::Short(flow.received, bytes))
            }
            _ => None,
        };
        match fault.filter(|_| !self.stopped) {
            Some(fault) => self.fail_with(TestFailureReason::Peer(fault)),
            None => self.finish(),
        }
    }

    /// True if only the client sends on the client's connections.
    const fn sends_alone(&self) -> bool {
        matches!(self.test.mode, Mode::Forward | Mode::Dual | Mode::TradeOff)
    }

    fn stop_test(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            Stage::Opening => self.fail_with(TestFailureReason::Stopped),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                if !self.sends_alone() {
                    // A sending server stops only when its connection is closed.
                    self.out.push_back(Output::Halt);
                }
                self.stage = Stage::Running { give_up: Some(now + GRACE) };
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        let answer = Iperf2Answer::parse(&self.answer);
        self.out.extend(answer.map(|answer| Output::Peer(Box::new(answer))));
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail_with(&mut self, reason: TestFailureReason<PeerFault>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }
}

impl Machine for Client {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    type Report = Iperf2Answer;
    type News = Infallible;
    type PeerFault = PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                // Bytes after the answer are read and dropped: closing a connection with unread
                // bytes resets it, and the last data would be lost.
                let room = ANSWER_BYTES.saturating_sub(self.answer.len()).min(bytes.len());
                self.answer.extend_from_slice(&bytes[..room]);
            }
            Input::Closed if matches!(self.stage, Stage::Closing { .. }) => self.finish(),
            Input::Opened => {
                (self.begin, self.beat) =
                    (now, Some(TestIntervalTimer::new(now, self.test.interval, Duration::ZERO)));
                self.out.extend([Output::Begin, Output::Start]);
                let give_up = self.test.span.map(|span| now + span + GRACE);
                self.stage = Stage::Running { give_up };
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.stop_test(now),
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Closed | Input::Counted(_) => {}
            Input::Decided(Ok(never) | Err(never)) | Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let wake_at = match self.stage {
            Stage::Running { .. } => self.beat.map(|beat| beat.next()),
            Stage::Closing { until } => Some(until),
            _ => None,
        };
        Wants { wake_at, look: LOOK, reads: matches!(self.stage, Stage::Closing { .. }) }
    }
}
