//! The client's side of a test: its steps and time-outs.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    LineError, Lines, NuttcpInterval, NuttcpSummary, NuttcpVersion, Parameters, WIRE_VERSION,
    shortened,
};
use crate::dialect::{
    FlowState, Input, Machine, Output, Settling, TestFailureReason, TestIntervalTimer, Wants,
};

/// Time-out for each of the server's answers; a server may keep a client waiting during other
/// tests.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that a test has after its planned end for data in flight.
pub const GRACE: Duration = Duration::from_secs(15);
/// Time-out for the server's summary after the end of the data.
pub const SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time-out for the summary after the user stopped the test: the marks of its end take 0.55 s.
const STOPPED_TIMEOUT: Duration = Duration::from_millis(700);
/// Longest wait for data in flight after the server has closed; receivers that know the amount sent
/// stop earlier.
pub const LEAVE_MAX: Duration = Duration::from_secs(3);
/// Interval of checks of the streams, and of the stop flag before the streams are open.
const LOOK: Duration = Duration::from_millis(2);
const LOOK_AT_STOP: Duration = Duration::from_millis(50);
/// Most lines of a test: a day of intervals of 100 ms.
const LINES_MAX: usize = 1_000_000;
/// Most bytes of a refusal's reason that are kept.
const REASON_BYTES: usize = 400;

/// Parameters of a test at the client.
#[derive(Clone, Debug)]
pub struct NuttcpClientTest {
    /// Parameters sent to the server.
    pub parameters: Parameters,
    /// Duration of the test; `None` where an amount ends it.
    pub span: Option<Duration>,
    /// Time between two samples.
    pub interval: Duration,
}

/// News of the server before and during the data.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientNews {
    /// Version of the server, from its greeting.
    Greeted(NuttcpVersion),
    /// Results of an interval, and its line.
    Interval(NuttcpInterval, String),
}

/// Error of the server, or its violation of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NuttcpPeerFault {
    /// Lines that the protocol does not allow.
    Line(LineError),
    /// The server refused the test, with its reason.
    Refused(String),
    /// The server's version is too old for the requested jitter or one-way delay.
    NoTimes(NuttcpVersion),
}

#[derive(Clone, Copy, Debug)]
enum NuttcpClientStage {
    AwaitHello {
        until: MonoTime,
    },
    AwaitAnswer {
        until: MonoTime,
    },
    /// The server has refused; its reason follows.
    AwaitReason {
        until: MonoTime,
    },
    Opening,
    Running {
        until: Option<MonoTime>,
    },
    /// The server closed without a summary; data in flight is received.
    Leaving(Settling),
    AwaitSummary {
        until: MonoTime,
    },
    /// The summary has arrived; receivers stop once they have that amount.
    Closing(Settling),
    Over,
}

/// State machine of the client of a test.
pub struct NuttcpClientMachine {
    test: NuttcpClientTest,
    lines: Lines,
    taken: usize,
    stage: NuttcpClientStage,
    out: VecDeque<Output<Self>>,
    beat: Option<TestIntervalTimer>,
    reason: String,
    summary: NuttcpSummary,
    closed: bool,
    stop: bool,
}

impl NuttcpClientMachine {
    /// A client that starts at `now`, on a new connection.
    pub fn new(now: MonoTime, test: NuttcpClientTest) -> Self {
        let hello = format!("HELO nuttcp v{WIRE_VERSION}\n");
        Self {
            test,
            lines: Lines::default(),
            taken: 0,
            stage: NuttcpClientStage::AwaitHello { until: now + ANSWER_TIMEOUT },
            out: VecDeque::from([Output::Send(hello.into_bytes())]),
            beat: None,
            reason: String::new(),
            summary: NuttcpSummary::default(),
            closed: false,
            stop: false,
        }
    }

    /// Handles the complete lines received so far.
    fn read(&mut self, now: MonoTime) {
        while !matches!(self.stage, NuttcpClientStage::Over) {
            match self.lines.next_line() {
                Ok(Some(line)) => self.handle_line(now, line),
                Ok(None) => return,
                Err(error) => self.fail_with(TestFailureReason::Peer(NuttcpPeerFault::Line(error))),
            }
        }
    }

    fn handle_line(&mut self, now: MonoTime, line: String) {
        self.taken += 1;
        if self.taken > LINES_MAX {
            let error = LineError::TooMany(LINES_MAX);
            return self.fail_with(TestFailureReason::Peer(NuttcpPeerFault::Line(error)));
        }
        match self.stage {
            NuttcpClientStage::AwaitHello { .. } => {
                match line.strip_prefix("HELO nuttcp ").and_then(NuttcpVersion::parse) {
                    Some(version) => self.send_parameters(now, version),
                    None => self.out_of_order(&line, "HELO"),
                }
            }
            NuttcpClientStage::AwaitAnswer { .. } if line.starts_with("OK") => {
                self.out.push_back(Output::Open);
                self.stage = NuttcpClientStage::Opening;
            }
            NuttcpClientStage::AwaitAnswer { until } if line.starts_with("KO") => {
                self.stage = NuttcpClientStage::AwaitReason { until };
            }
            NuttcpClientStage::AwaitAnswer { .. } => self.out_of_order(&line, "OK or KO"),
            NuttcpClientStage::AwaitReason { .. } if line.starts_with("KO") => self.fail_refused(),
            NuttcpClientStage::AwaitReason { .. } => {
                self.reason += if self.reason.is_empty() { "" } else { "; " };
                self.reason += &shortened(&line);
                if self.reason.len() > REASON_BYTES {
                    self.fail_refused();
                }
            }
            // The server ended the test; its reason follows.
            NuttcpClientStage::Running { .. } | NuttcpClientStage::AwaitSummary { .. }
                if line.starts_with("KO") =>
            {
                self.stage = NuttcpClientStage::AwaitReason { until: now + ANSWER_TIMEOUT };
            }
            _ => {
                self.summary.read(&line);
                let interval = NuttcpInterval::parse(&line);
                let news =
                    interval.map(|interval| Output::News(ClientNews::Interval(interval, line)));
                self.out.extend(news);
            }
        }
    }

    fn send_parameters(&mut self, now: MonoTime, version: NuttcpVersion) {
        let parameters = &self.test.parameters;
        let times = parameters.jitter > 0 || parameters.delay > 0;
        if times && version < WIRE_VERSION {
            return self.fail_with(TestFailureReason::Peer(NuttcpPeerFault::NoTimes(version)));
        }
        let line = parameters.to_line(version).into_bytes();
        self.out.extend([Output::News(ClientNews::Greeted(version)), Output::Send(line)]);
        self.stage = NuttcpClientStage::AwaitAnswer { until: now + ANSWER_TIMEOUT };
    }

    /// Handles the server's close of the control connection. With it a server that transmits over
    /// UDP ends its test; over TCP the streams end by themselves.
    fn end_control(&mut self, now: MonoTime) {
        self.closed = true;
        let told = self.summary.megabytes.is_some();
        let Parameters { udp, client_sends, .. } = self.test.parameters;
        match self.stage {
            NuttcpClientStage::AwaitReason { .. } => self.fail_refused(),
            NuttcpClientStage::Running { .. } if told && udp && !client_sends => {
                self.start_closing(now)
            }
            NuttcpClientStage::Running { .. } if told && !udp => {}
            NuttcpClientStage::Running { .. } if !udp => {
                self.out.push_back(Output::StopSending);
                self.stage = NuttcpClientStage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            NuttcpClientStage::AwaitSummary { .. } if told || self.stop => self.start_closing(now),
            _ => self.fail_with(TestFailureReason::Closed),
        }
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        if let (NuttcpClientStage::Running { .. } | NuttcpClientStage::Leaving(_), Some(beat)) =
            (self.stage, &mut self.beat)
        {
            beat.push_due_outputs(now, &mut self.out);
        }
        if let NuttcpClientStage::Leaving(wait) | NuttcpClientStage::Closing(wait) = &mut self.stage
            && wait.is_over(now, flow)
        {
            return self.end_wait();
        }
        let silent = |awaited| TestFailureReason::Silent { awaited, within: ANSWER_TIMEOUT };
        match &self.stage {
            NuttcpClientStage::AwaitHello { until } if now >= *until => {
                self.fail_with(silent("greeting"))
            }
            NuttcpClientStage::AwaitAnswer { until } | NuttcpClientStage::AwaitReason { until }
                if now >= *until =>
            {
                self.fail_with(silent("answer"));
            }
            NuttcpClientStage::Running { .. } if flow.done => self.await_summary(now),
            NuttcpClientStage::Running { until: Some(until) } if now >= *until => {
                self.fail_with(TestFailureReason::Overdue)
            }
            NuttcpClientStage::AwaitSummary { until } if now >= *until => match self.stop {
                true => self.start_closing(now),
                false => {
                    let within = SUMMARY_TIMEOUT;
                    self.fail_with(TestFailureReason::Silent { awaited: "summary", within });
                }
            },
            _ => {}
        }
    }

    /// Ends the test after the wait for data in flight.
    fn end_wait(&mut self) {
        if let NuttcpClientStage::Leaving(_) = self.stage {
            self.out.push_back(Output::Ended);
            return self.fail_with(TestFailureReason::Closed);
        }
        self.out.push_back(Output::Finished);
        self.stage = NuttcpClientStage::Over;
    }

    fn start_test(&mut self, now: MonoTime) {
        self.out.extend([Output::Begin, Output::Start]);
        self.beat = Some(TestIntervalTimer::new(now, self.test.interval, Duration::ZERO));
        self.stage =
            NuttcpClientStage::Running { until: self.test.span.map(|span| now + span + GRACE) };
    }

    /// Waits for the summary after all streams have ended, if it has not arrived before.
    fn await_summary(&mut self, now: MonoTime) {
        self.out.extend([Output::Ended, Output::Settle]);
        let within = if self.stop { STOPPED_TIMEOUT } else { SUMMARY_TIMEOUT };
        self.stage = NuttcpClientStage::AwaitSummary { until: now + within };
        if self.closed {
            self.start_closing(now);
        }
    }

    /// Outputs the summary and waits for data in flight.
    fn start_closing(&mut self, now: MonoTime) {
        self.out.push_back(Output::Peer(Box::new(self.summary)));
        self.stage = NuttcpClientStage::Closing(Settling::new(now, LEAVE_MAX, None));
    }

    /// Ends the test early at the user's request. A sending server notices that its streams or the
    /// control connection are closed.
    fn stop_test(&mut self, now: MonoTime) {
        if std::mem::replace(&mut self.stop, true) {
            return;
        }
        let Parameters { udp, client_sends, .. } = self.test.parameters;
        match self.stage {
            NuttcpClientStage::Running { .. } if udp && !client_sends => self.start_closing(now),
            NuttcpClientStage::Running { .. } => {
                self.out.push_back(Output::StopSending);
                self.out.extend((!client_sends).then_some(Output::Halt));
                self.stage = NuttcpClientStage::Running { until: Some(now + GRACE) };
            }
            NuttcpClientStage::AwaitSummary { until } => {
                self.stage =
                    NuttcpClientStage::AwaitSummary { until: until.min(now + STOPPED_TIMEOUT) };
            }
            NuttcpClientStage::Leaving(_)
            | NuttcpClientStage::Closing(_)
            | NuttcpClientStage::Over => {}
            _ => self.fail_with(TestFailureReason::Stopped),
        }
    }

    fn fail_refused(&mut self) {
        let reason = std::mem::take(&mut self.reason);
        self.fail_with(TestFailureReason::Peer(NuttcpPeerFault::Refused(reason)));
    }

    fn out_of_order(&mut self, line: &str, expected: &'static str) {
        let error = LineError::State { got: shortened(line), expected };
        self.fail_with(TestFailureReason::Peer(NuttcpPeerFault::Line(error)));
    }

    fn fail_with(&mut self, reason: TestFailureReason<NuttcpPeerFault>) {
        if !matches!(self.stage, NuttcpClientStage::Over) {
            self.out.push_back(Output::Failed(reason));
            self.stage = NuttcpClientStage::Over;
        }
    }
}

impl Machine for NuttcpClientMachine {
    type Request = ();
    type Terms = ();
    type Refusal = ();
    type Report = NuttcpSummary;
    type News = ClientNews;
    type PeerFault = NuttcpPeerFault;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.lines.push(bytes);
                self.read(now);
            }
            Input::Closed => self.end_control(now),
            Input::Opened => self.start_test(now),
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.stop_test(now),
            Input::GiveUp(_) => self.stage = NuttcpClientStage::Over,
            Input::Decided(_) | Input::Counted(_) | Input::Tell(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            NuttcpClientStage::AwaitHello { until }
            | NuttcpClientStage::AwaitAnswer { until }
            | NuttcpClientStage::AwaitReason { until } => (Some(*until), LOOK_AT_STOP),
            NuttcpClientStage::Running { until } => (*until, LOOK),
            NuttcpClientStage::AwaitSummary { until } => (Some(*until), LOOK),
            NuttcpClientStage::Leaving(wait) | NuttcpClientStage::Closing(wait) => {
                (Some(wait.latest_end()), LOOK)
            }
            NuttcpClientStage::Opening | NuttcpClientStage::Over => (None, LOOK),
        };
        let runs =
            matches!(self.stage, NuttcpClientStage::Running { .. } | NuttcpClientStage::Leaving(_));
        let beat = self.beat.filter(|_| runs).map(|beat| beat.next());
        let wake_at = [wake_at, beat].into_iter().flatten().min();
        Wants {
            wake_at,
            look,
            reads: !self.closed && !matches!(self.stage, NuttcpClientStage::Over),
        }
    }
}
