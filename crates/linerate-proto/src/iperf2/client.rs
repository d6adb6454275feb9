//! The client's side of a TCP test: its steps and time-outs.
//!
//! There is no control connection. Each stream begins with its header, which is payload and sent
//! with it; what a server says for itself is its [`Answer`], and that its streams end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{ANSWER_BYTES, Answer, Mode};
use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Wants};

/// After its planned end a test has this long for what is on the way.
pub const GRACE: Duration = Duration::from_secs(15);
/// After the last acknowledgement a server closes within this time, as far as anybody waits.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// A server that sends for a time closes this much before it at the earliest: it begins when it has
/// the header, and rounds to hundredths.
const EARLY: Duration = Duration::from_millis(200);
/// How often the streams and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What the client wants of its test.
#[derive(Clone, Copy, Debug)]
pub struct ClientTest {
    /// Who sends, and when.
    pub mode: Mode,
    /// How long senders send; none where an amount ends the test.
    pub span: Option<Duration>,
    /// Bytes of all streams that end the test.
    pub bytes: Option<u64>,
    /// Time between samples.
    pub interval: Duration,
}

/// A server whose streams ended before it had sent what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// Its time was not over by so much.
    Early(Duration),
    /// So many bytes of so many.
    Short(u64, u64),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Opening,
    Running {
        give_up: Option<MonoTime>,
    },
    /// All has arrived; the server answers and closes.
    Closing {
        until: MonoTime,
    },
    Over,
}

/// The client's machine.
pub struct Client {
    test: ClientTest,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    begin: MonoTime,
    beat: Option<Beat>,
    stopped: bool,
    answer: Vec<u8>,
}

impl Client {
    /// Begins at `now`; no stream is connected yet.
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

    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        match self.stage {
            Stage::Running { give_up } => {
                if let Some(beat) = &mut self.beat {
                    beat.due(now, &mut self.out);
                }
                if flow.done {
                    self.ended(now, flow);
                } else if give_up.is_some_and(|at| now >= at) {
                    self.fail(Reason::Overdue);
                }
            }
            Stage::Closing { until } if now >= until => self.finish(),
            _ => {}
        }
    }

    /// Every stream is over.
    fn ended(&mut self, now: MonoTime, flow: &FlowState) {
        self.out.extend([Output::Sample, Output::Ended]);
        if self.sends_alone() {
            self.stage = Stage::Closing { until: now + CLOSE_TIMEOUT };
            return;
        }
        // The end of its streams may also be that of the server.
        let early = self.test.span.map(|span| (self.begin + span).since(now));
        let fault = match (early, self.test.bytes) {
            (Some(early), _) if early > EARLY => Some(PeerFault::Early(early)),
            (None, Some(bytes)) if flow.received < bytes => {
                Some(PeerFault::Short(flow.received, bytes))
            }
            _ => None,
        };
        match fault.filter(|_| !self.stopped) {
            Some(fault) => self.fail(Reason::Peer(fault)),
            None => self.finish(),
        }
    }

    /// On these connections.
    const fn sends_alone(&self) -> bool {
        matches!(self.test.mode, Mode::Forward | Mode::Dual | Mode::TradeOff)
    }

    fn stop(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        match self.stage {
            Stage::Opening => self.fail(Reason::Stopped),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                if !self.sends_alone() {
                    // A server that sends has no other way to learn that nobody wants more.
                    self.out.push_back(Output::Halt);
                }
                self.stage = Stage::Running { give_up: Some(now + GRACE) };
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        let answer = Answer::parse(&self.answer);
        self.out.extend(answer.map(|answer| Output::Peer(Box::new(answer))));
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, reason: Reason<PeerFault>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }
}

impl Machine for Client {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    type Report = Answer;
    type News = Infallible;
    type PeerFault = PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                // More than its answer is of no use, and read all the same: a connection that is
                // closed with bytes unread is reset under the last data.
                let room = ANSWER_BYTES.saturating_sub(self.answer.len()).min(bytes.len());
                self.answer.extend_from_slice(&bytes[..room]);
            }
            Input::Closed if matches!(self.stage, Stage::Closing { .. }) => self.finish(),
            Input::Opened => {
                (self.begin, self.beat) =
                    (now, Some(Beat::new(now, self.test.interval, Duration::ZERO)));
                self.out.extend([Output::Begin, Output::Start]);
                let give_up = self.test.span.map(|span| now + span + GRACE);
                self.stage = Stage::Running { give_up };
            }
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => self.stop(now),
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Closed | Input::Counted(_) => {}
            Input::Decided(Ok(never) | Err(never)) | Input::Tell(never) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let wake_at = match self.stage {
            Stage::Running { .. } => self.beat.map(|beat| beat.next()),
            Stage::Closing { until } => Some(until),
            _ => None,
        };
        Wants { wake_at, look: LOOK, reads: matches!(self.stage, Stage::Closing { .. }) }
    }
}
