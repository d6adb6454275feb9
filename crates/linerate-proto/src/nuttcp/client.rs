//! The client's side of a test: its steps and time-outs.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{Interval, LineError, Lines, Parameters, Summary, Version, WIRE_VERSION, shown};
use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Settling, Wants};

/// The server has this long for each answer. It may keep a client waiting while others measure.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// After its planned end a test has this long for what is on the way.
pub const GRACE: Duration = Duration::from_secs(15);
/// The server has this long for its summary once the data is over.
pub const SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);
/// The same where the user stopped the test: the marks of its end take 0.55 s.
const STOPPED_TIMEOUT: Duration = Duration::from_millis(700);
/// What a server sent before it closed has this long to arrive; receivers that know how much was
/// sent leave within it.
pub const LEAVE_MAX: Duration = Duration::from_secs(3);
/// How often the streams are looked at, and the stop flag before there are any.
const LOOK: Duration = Duration::from_millis(2);
const LOOK_AT_STOP: Duration = Duration::from_millis(50);
/// Lines of one test that are looked at: a day of intervals of 100 ms.
const LINES_MAX: usize = 1_000_000;
/// Bytes of a refusal's reason that are kept.
const REASON_BYTES: usize = 400;

/// What the client wants of its test.
#[derive(Clone, Debug)]
pub struct ClientTest {
    /// What it asks of the server.
    pub parameters: Parameters,
    /// How long the test lasts; none where nobody can say.
    pub span: Option<Duration>,
    /// Time between samples.
    pub interval: Duration,
}

/// What a server tells before and while data flows.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientNews {
    /// Its version.
    Greeted(Version),
    /// An interval, and the line that told it.
    Interval(Interval, String),
}

/// What the server did or said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// Lines that the protocol does not allow.
    Line(LineError),
    /// It said no, for this reason.
    Refused(String),
    /// It is too old for jitter and one-way delay, which it was to be asked for.
    NoTimes(Version),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    AwaitHello {
        until: MonoTime,
    },
    AwaitAnswer {
        until: MonoTime,
    },
    /// The server said no; its reason comes.
    AwaitReason {
        until: MonoTime,
    },
    Opening,
    Running {
        until: Option<MonoTime>,
    },
    /// The server closed without a summary; what it sent before is taken.
    Leaving(Settling),
    AwaitSummary {
        until: MonoTime,
    },
    /// The summary is here; receivers learn from it when to end.
    Closing(Settling),
    Over,
}

/// The client's machine.
pub struct Client {
    test: ClientTest,
    lines: Lines,
    taken: usize,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    beat: Option<Beat>,
    reason: String,
    summary: Summary,
    closed: bool,
    stop: bool,
}

impl Client {
    /// Begins at `now`, on a fresh connection.
    pub fn new(now: MonoTime, test: ClientTest) -> Self {
        let hello = format!("HELO nuttcp v{WIRE_VERSION}\n");
        Self {
            test,
            lines: Lines::default(),
            taken: 0,
            stage: Stage::AwaitHello { until: now + ANSWER_TIMEOUT },
            out: VecDeque::from([Output::Send(hello.into_bytes())]),
            beat: None,
            reason: String::new(),
            summary: Summary::default(),
            closed: false,
            stop: false,
        }
    }

    /// Takes the lines that have come whole.
    fn read(&mut self, now: MonoTime) {
        while !matches!(self.stage, Stage::Over) {
            match self.lines.next_line() {
                Ok(Some(line)) => self.line(now, line),
                Ok(None) => return,
                Err(error) => self.fail(Reason::Peer(PeerFault::Line(error))),
            }
        }
    }

    fn line(&mut self, now: MonoTime, line: String) {
        self.taken += 1;
        if self.taken > LINES_MAX {
            let error = LineError::TooMany(LINES_MAX);
            return self.fail(Reason::Peer(PeerFault::Line(error)));
        }
        match self.stage {
            Stage::AwaitHello { .. } => {
                match line.strip_prefix("HELO nuttcp ").and_then(Version::parse) {
                    Some(version) => self.greeted(now, version),
                    None => self.out_of_order(&line, "HELO"),
                }
            }
            Stage::AwaitAnswer { .. } if line.starts_with("OK") => {
                self.out.push_back(Output::Open);
                self.stage = Stage::Opening;
            }
            Stage::AwaitAnswer { until } if line.starts_with("KO") => {
                self.stage = Stage::AwaitReason { until };
            }
            Stage::AwaitAnswer { .. } => self.out_of_order(&line, "OK or KO"),
            Stage::AwaitReason { .. } if line.starts_with("KO") => self.refused(),
            Stage::AwaitReason { .. } => {
                self.reason += if self.reason.is_empty() { "" } else { "; " };
                self.reason += &shown(&line);
                if self.reason.len() > REASON_BYTES {
                    self.refused();
                }
            }
            // The server ended the test, and says why.
            Stage::Running { .. } | Stage::AwaitSummary { .. } if line.starts_with("KO") => {
                self.stage = Stage::AwaitReason { until: now + ANSWER_TIMEOUT };
            }
            _ => {
                self.summary.read(&line);
                let interval = Interval::parse(&line);
                let news = interval.map(|it| Output::News(ClientNews::Interval(it, line)));
                self.out.extend(news);
            }
        }
    }

    fn greeted(&mut self, now: MonoTime, version: Version) {
        let parameters = &self.test.parameters;
        let times = parameters.jitter > 0 || parameters.delay > 0;
        if times && version < WIRE_VERSION {
            return self.fail(Reason::Peer(PeerFault::NoTimes(version)));
        }
        let line = parameters.to_line(version).into_bytes();
        self.out.extend([Output::News(ClientNews::Greeted(version)), Output::Send(line)]);
        self.stage = Stage::AwaitAnswer { until: now + ANSWER_TIMEOUT };
    }

    /// The server closed. One that transmits over UDP ends its test so; over TCP its streams end
    /// by themselves.
    fn closed(&mut self, now: MonoTime) {
        self.closed = true;
        let told = self.summary.megabytes.is_some();
        let Parameters { udp, client_sends, .. } = self.test.parameters;
        match self.stage {
            Stage::AwaitReason { .. } => self.refused(),
            Stage::Running { .. } if told && udp && !client_sends => self.close(now),
            Stage::Running { .. } if told && !udp => {}
            Stage::Running { .. } if !udp => {
                self.out.push_back(Output::StopSending);
                self.stage = Stage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            Stage::AwaitSummary { .. } if told || self.stop => self.close(now),
            _ => self.fail(Reason::Closed),
        }
    }

    /// Goes on as far as time and data allow.
    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        if let (Stage::Running { .. } | Stage::Leaving(_), Some(beat)) =
            (self.stage, &mut self.beat)
        {
            beat.due(now, &mut self.out);
        }
        if let Stage::Leaving(wait) | Stage::Closing(wait) = &mut self.stage
            && wait.is_over(now, flow)
        {
            return self.waited();
        }
        let silent = |awaited| Reason::Silent { awaited, within: ANSWER_TIMEOUT };
        match &self.stage {
            Stage::AwaitHello { until } if now >= *until => self.fail(silent("greeting")),
            Stage::AwaitAnswer { until } | Stage::AwaitReason { until } if now >= *until => {
                self.fail(silent("answer"));
            }
            Stage::Running { .. } if flow.done => self.ended(now),
            Stage::Running { until: Some(until) } if now >= *until => self.fail(Reason::Overdue),
            Stage::AwaitSummary { until } if now >= *until => match self.stop {
                true => self.close(now),
                false => {
                    let within = SUMMARY_TIMEOUT;
                    self.fail(Reason::Silent { awaited: "summary", within });
                }
            },
            _ => {}
        }
    }

    /// What the server sent has come, or has had its time.
    fn waited(&mut self) {
        if let Stage::Leaving(_) = self.stage {
            self.out.push_back(Output::Ended);
            return self.fail(Reason::Closed);
        }
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn opened(&mut self, now: MonoTime) {
        self.out.extend([Output::Begin, Output::Start]);
        self.beat = Some(Beat::new(now, self.test.interval, Duration::ZERO));
        self.stage = Stage::Running { until: self.test.span.map(|span| now + span + GRACE) };
    }

    /// Every stream has ended; the summary comes, or has come.
    fn ended(&mut self, now: MonoTime) {
        self.out.extend([Output::Ended, Output::Settle]);
        let within = if self.stop { STOPPED_TIMEOUT } else { SUMMARY_TIMEOUT };
        self.stage = Stage::AwaitSummary { until: now + within };
        if self.closed {
            self.close(now);
        }
    }

    /// Nothing more comes of the server.
    fn close(&mut self, now: MonoTime) {
        self.out.push_back(Output::Peer(Box::new(self.summary)));
        self.stage = Stage::Closing(Settling::new(now, LEAVE_MAX, None));
    }

    /// The user wants no more. A server that sends learns it when its streams or the control
    /// connection are closed.
    fn stop(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stop, true) {
            return;
        }
        let Parameters { udp, client_sends, .. } = self.test.parameters;
        match self.stage {
            Stage::Running { .. } if udp && !client_sends => self.close(now),
            Stage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.out.extend((!client_sends).then_some(Output::Halt));
                self.stage = Stage::Running { until: Some(now + GRACE) };
            }
            Stage::AwaitSummary { until } => {
                self.stage = Stage::AwaitSummary { until: until.min(now + STOPPED_TIMEOUT) };
            }
            Stage::Leaving(_) | Stage::Closing(_) | Stage::Over => {}
            _ => self.fail(Reason::Stopped),
        }
    }

    fn refused(&mut self) {
        let reason = std::mem::take(&mut self.reason);
        self.fail(Reason::Peer(PeerFault::Refused(reason)));
    }

    fn out_of_order(&mut self, line: &str, expected: &'static str) {
        let error = LineError::State { got: shown(line), expected };
        self.fail(Reason::Peer(PeerFault::Line(error)));
    }

    fn fail(&mut self, reason: Reason<PeerFault>) {
        if !matches!(self.stage, Stage::Over) {
            self.out.push_back(Output::Failed(reason));
            self.stage = Stage::Over;
        }
    }
}

impl Machine for Client {
    type Request = ();
    type Terms = ();
    type Refusal = ();
    type Report = Summary;
    type News = ClientNews;
    type PeerFault = PeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.lines.push(bytes);
                self.read(now);
            }
            Input::Closed => self.closed(now),
            Input::Opened => self.opened(now),
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => self.stop(now),
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Decided(_) | Input::Counted(_) | Input::Tell(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Stage::AwaitHello { until }
            | Stage::AwaitAnswer { until }
            | Stage::AwaitReason { until } => (Some(*until), LOOK_AT_STOP),
            Stage::Running { until } => (*until, LOOK),
            Stage::AwaitSummary { until } => (Some(*until), LOOK),
            Stage::Leaving(wait) | Stage::Closing(wait) => (Some(wait.end()), LOOK),
            Stage::Opening | Stage::Over => (None, LOOK),
        };
        let runs = matches!(self.stage, Stage::Running { .. } | Stage::Leaving(_));
        let beat = self.beat.filter(|_| runs).map(|beat| beat.next());
        let wake_at = [wake_at, beat].into_iter().flatten().min();
        Wants { wake_at, look, reads: !self.closed && !matches!(self.stage, Stage::Over) }
    }
}
