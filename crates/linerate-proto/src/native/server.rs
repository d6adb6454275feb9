//! The server's side of the tests on one connection: their steps and time-outs.
//!
//! Everything a client does or leaves out costs a bounded amount: each wait has a deadline, and a
//! test that does not end is ended.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::record::{EndReport, Fault, UdpTest};
use linerate_core::time::MonoTime;

use super::client::{PeerFault, STALLED};
use super::{Accept, Decoder, Message, Nonce, Refuse, Request, TrainsRequest, WireError, encode};
use crate::dialect::{
    Beat, FlowState, Input, LOOK, LOOK_AT_END, Machine, Output, Reason, Settling, Wants,
};

/// A client has this long for the next step of the set-up.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that was told that its test is over has this long to leave: its data is taken until
/// then, else the end of its streams would be all that it hears.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// What a client asks for.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A test over TCP.
    Tcp(Request),
    /// A test over UDP.
    Udp(UdpTest),
    /// Rounds of trains of probe datagrams.
    Trains(TrainsRequest),
}

/// On which terms a test runs.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The answer.
    pub accept: Box<Accept>,
    /// Time between samples.
    pub interval: Duration,
    /// Senders that have not ended by then are stopped.
    pub span_max: Duration,
    /// Streams that move nothing after so long have stalled; none where silence is told otherwise.
    pub stall_after: Option<Duration>,
    /// The test takes no longer than this.
    pub end: Duration,
    /// What a client is told whose test no time ends and which is not done by `span_max`.
    pub overdue: Option<String>,
    /// A client has this long for each step.
    pub step: Duration,
    /// What its streams are called.
    pub streams: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
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
    /// The client was told that its test is over, before its end.
    Dismissed {
        until: MonoTime,
    },
    /// The client has its result.
    AwaitBye {
        until: MonoTime,
    },
    /// It failed, and the client has not been told.
    Failed,
    Over,
}

/// The server's machine.
pub struct Server {
    decoder: Decoder,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    terms: Option<Terms>,
    run: Option<Run>,
    /// By what a client that wants to shows its token.
    challenge: Option<Nonce>,
    /// What it asked for, until it has.
    asked: Option<Box<Asked>>,
}

/// A test that has been started.
#[derive(Clone, Copy, Debug)]
struct Run {
    beat: Beat,
    /// When senders are due to be done, and whether they were stopped.
    due: MonoTime,
    stopped: bool,
    /// When everybody leaves.
    end: MonoTime,
    /// Nothing moved for too long, once the end was due.
    stall: Option<(MonoTime, Settling)>,
}

impl Server {
    /// Begins at `now`, on a connection whose hellos are done.
    pub fn new(now: MonoTime) -> Self {
        Self {
            decoder: Decoder::default(),
            stage: Stage::AwaitRequest { until: now + STEP_TIMEOUT },
            out: VecDeque::new(),
            terms: None,
            run: None,
            challenge: None,
            asked: None,
        }
    }

    /// Lets a client show its token by a random number of this connection's own. What it answers
    /// comes out as news before the request does.
    #[must_use]
    pub fn challenging(self, nonce: Nonce) -> Self {
        Self { challenge: Some(nonce), ..self }
    }

    /// Takes the messages that are of use now.
    fn read(&mut self, now: MonoTime) {
        while self.reads() {
            match self.decoder.next_message() {
                Ok(Some(message)) => self.message(now, message),
                Ok(None) => return,
                Err(error) => self.fail(Reason::Peer(PeerFault::Wire(error))),
            }
        }
    }

    fn message(&mut self, now: MonoTime, message: Message) {
        match (self.stage, message) {
            (Stage::AwaitRequest { .. }, Message::Request(request)) => {
                self.ask(now, request.login, Asked::Tcp(request));
            }
            // The next round of the same client comes after a result: the place is still its own.
            (Stage::AwaitBye { .. }, Message::Request(request)) => {
                self.decide(Box::new(Asked::Tcp(request)));
            }
            (Stage::AwaitRequest { .. }, Message::UdpRequest { test, login }) => {
                self.ask(now, login, Asked::Udp(test));
            }
            (Stage::AwaitRequest { .. }, Message::TrainsRequest(request)) => {
                self.ask(now, request.login, Asked::Trains(request));
            }
            (Stage::AwaitProof { .. }, proof @ Message::Proof(_)) => {
                self.out.push_back(Output::News(proof));
                if let Some(asked) = self.asked.take() {
                    self.decide(asked);
                }
            }
            (Stage::AwaitStart { .. }, Message::Start) => {
                self.out.extend([Output::Begin, Output::Start]);
                (self.stage, self.run) = (Stage::Running, None);
            }
            (Stage::Running, Message::Stop) => self.out.push_back(Output::StopSending),
            (Stage::Running, news @ (Message::UdpSent { .. } | Message::TrainRound(_))) => {
                self.out.push_back(Output::News(news));
            }
            // They may cross the result on the wire.
            (
                Stage::AwaitBye { .. },
                Message::Stop | Message::UdpSent { .. } | Message::TrainRound(_),
            ) => {}
            (
                Stage::AwaitRequest { .. } | Stage::AwaitProof { .. } | Stage::AwaitBye { .. },
                Message::Bye | Message::Abort { .. },
            ) => self.finish(),
            (Stage::Dismissed { .. }, Message::Bye | Message::Abort { .. }) => {
                self.fail(Reason::Overdue);
            }
            (Stage::Dismissed { .. }, _) => {}
            (_, Message::Bye | Message::Abort { .. }) => self.fail(Reason::Left),
            (stage, message) => {
                let error = WireError::State { got: message.name(), expected: stage.awaits() };
                self.fail(Reason::Peer(PeerFault::Wire(error)));
            }
        }
    }

    /// Takes a request: it is decided, or the client first shows its token.
    fn ask(&mut self, now: MonoTime, login: bool, asked: Asked) {
        let asked = Box::new(asked);
        match self.challenge.take().filter(|_| login) {
            Some(nonce) => {
                self.asked = Some(asked);
                self.stage = Stage::AwaitProof { until: now + STEP_TIMEOUT };
                self.send(&Message::Challenge { nonce });
            }
            None => self.decide(asked),
        }
    }

    fn decide(&mut self, asked: Box<Asked>) {
        self.stage = Stage::Deciding;
        self.out.push_back(Output::Decide(asked));
    }

    fn decided(&mut self, now: MonoTime, decided: Result<Terms, Refuse>) {
        // A client that left, or broke the order, meanwhile is not let in.
        if !matches!(self.stage, Stage::Deciding) {
            return;
        }
        match decided {
            Ok(terms) => {
                self.stage = Stage::Opening { until: now + terms.step };
                self.send(&Message::Accept(terms.accept.clone()));
                self.terms = Some(terms);
                self.out.push_back(Output::Open);
                self.read(now);
            }
            Err(refuse) => {
                self.send(&Message::Refuse(refuse));
                self.finish();
            }
        }
    }

    /// Goes on as far as time and data allow.
    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        let within = self.step();
        let silent = |awaited| Reason::Silent { awaited, within };
        match self.stage {
            Stage::AwaitRequest { until } if now >= until => self.fail(silent("a request")),
            Stage::AwaitProof { until } if now >= until => self.fail(silent("its token")),
            Stage::Opening { until } if now >= until => {
                let streams = self.terms.as_ref().map_or("the streams", |terms| terms.streams);
                self.fail(silent(streams));
            }
            Stage::AwaitStart { until } if now >= until => self.fail(silent("start")),
            // A client that leaves without a bye has its result all the same.
            Stage::AwaitBye { until } if now >= until => self.finish(),
            Stage::Running => self.follow(now, flow),
            Stage::Dismissed { until } if now >= until => self.fail(Reason::Overdue),
            _ => {}
        }
    }

    /// Runs the streams until all are done.
    fn follow(&mut self, now: MonoTime, flow: &FlowState) {
        let Some(terms) = &self.terms else { return };
        let run = self.run.get_or_insert_with(|| Run {
            beat: Beat::new(now, terms.interval, Duration::ZERO),
            due: now + terms.span_max,
            stopped: false,
            end: now + terms.end,
            stall: terms
                .stall_after
                .map(|due| (now + due, Settling::new(now, Duration::MAX, Some(STALLED)))),
        });
        if flow.done {
            self.out.extend([Output::Sample, Output::Count]);
            self.stage = Stage::Deciding;
            return;
        }
        run.beat.due(now, &mut self.out);
        if now >= run.due && !run.stopped {
            run.stopped = true;
            self.out.push_back(Output::StopSending);
            if let Some(reason) = terms.overdue.clone() {
                self.send(&Message::Abort { reason });
                self.stage = Stage::Dismissed { until: now + LEAVE_MAX };
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

    fn step(&self) -> Duration {
        self.terms.as_ref().map_or(STEP_TIMEOUT, |terms| terms.step)
    }

    fn send(&mut self, message: &Message) {
        match encode(message) {
            Ok(bytes) => self.out.push_back(Output::Send(bytes)),
            Err(error) => self.fail(Reason::Peer(PeerFault::Wire(error))),
        }
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, reason: Reason<PeerFault>) {
        match self.stage {
            Stage::Over | Stage::Failed => {}
            // It has its result; what it says afterwards changes nothing.
            Stage::AwaitBye { .. } => self.finish(),
            Stage::Dismissed { .. } => {
                self.out.push_back(Output::Failed(Reason::Overdue));
                self.stage = Stage::Over;
            }
            _ => {
                self.out.push_back(Output::Failed(reason));
                self.stage = Stage::Failed;
            }
        }
    }

    /// While the server decides or waits for streams, it notices a client that leaves.
    const fn reads(&self) -> bool {
        !matches!(self.stage, Stage::Failed | Stage::Over)
    }
}

impl Machine for Server {
    type Request = Asked;
    type Terms = Terms;
    type Refusal = Refuse;
    type Report = Vec<EndReport>;
    type News = Message;
    type PeerFault = PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.decoder.push(bytes);
                self.read(now);
            }
            Input::Closed => self.fail(Reason::Closed),
            Input::Decided(decided) => self.decided(now, decided),
            Input::Opened if matches!(self.stage, Stage::Opening { .. }) => {
                self.send(&Message::Ready);
                self.stage = Stage::AwaitStart { until: now + self.step() };
                self.read(now);
            }
            Input::Tell(news) if self.reads() => self.send(&news),
            Input::Counted(reports) if matches!(self.stage, Stage::Deciding) => {
                self.send(&Message::Result { reports: *reports });
                self.stage = Stage::AwaitBye { until: now + STEP_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.look(now, &flow),
            // A test that runs ends early; what comes before it does not begin.
            Input::Stop if matches!(self.stage, Stage::Running) => {
                self.out.push_back(Output::StopSending);
            }
            Input::Stop => self.fail(Reason::Stopped),
            Input::GiveUp(failure) => {
                if !matches!(self.stage, Stage::Over) && failure.fault != Fault::Unreachable {
                    self.send(&Message::Abort { reason: failure.to_string() });
                }
                self.stage = Stage::Over;
            }
            // It has failed, or ended.
            Input::Opened | Input::Tell(_) | Input::Counted(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Stage::AwaitRequest { until }
            | Stage::AwaitProof { until }
            | Stage::AwaitStart { until }
            | Stage::Dismissed { until }
            | Stage::AwaitBye { until } => (Some(*until), LOOK),
            Stage::Opening { until } => (Some(*until), LOOK_AT_END),
            Stage::Running => {
                let next = |run: Run| {
                    let wake_at = run.beat.next().min(run.end);
                    if run.stopped { wake_at } else { wake_at.min(run.due) }
                };
                // Nobody else says that the streams are done.
                let near = self.run.is_some_and(|run| run.stopped);
                (self.run.map(next), if near { LOOK_AT_END } else { LOOK })
            }
            Stage::Deciding => (None, LOOK_AT_END),
            Stage::Failed | Stage::Over => (None, LOOK),
        };
        Wants { wake_at, look, reads: self.reads() }
    }
}

impl Stage {
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
