//! The server's side of a test: its steps and time-outs.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    LineError, Lines, NuttcpRole, NuttcpServerReport, NuttcpVersion, Parameters, WIRE_VERSION,
    report_lines, shortened,
};
use crate::dialect::{
    FlowState, Input, Machine, Output, Settling, TestFailureReason, TestIntervalTimer, Wants,
};

/// Time-out for the client's greeting and parameters.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time-out of a test in which no data moves.
pub const IDLE: Duration = Duration::from_secs(60);
/// Longest time for late datagrams after the first mark of the end.
pub const END_MAX: Duration = Duration::from_secs(2);
/// Longest wait for the first datagram after the client has closed the control connection, which it
/// may do once it has sent its last datagram.
const LAST_SEEN: Duration = Duration::from_millis(200);
/// Silence from which datagrams are over after the client has closed the control connection.
const QUIET: Duration = Duration::from_millis(50);
/// Interval of checks of the streams, and of the stop flag before the streams are open.
const LOOK: Duration = Duration::from_millis(2);
const LOOK_AT_STOP: Duration = Duration::from_millis(20);

/// Time that a test may take after its longest time, for its last bytes to arrive.
const OVERTIME: Duration = Duration::from_millis(500);

/// Limits of a test at the server.
#[derive(Clone, Copy, Debug)]
pub struct NuttcpServerTerms {
    /// Time-out for opening the streams.
    pub open_max: Duration,
    /// Longest time of sending.
    pub span_max: Duration,
    /// Time between two samples.
    pub interval: Duration,
}

#[derive(Clone, Copy, Debug)]
enum NuttcpServerStage {
    AwaitHello { until: MonoTime },
    AwaitParameters { until: MonoTime },
    Deciding,
    Opening { until: MonoTime },
    Running { until: MonoTime },
    Settling(Settling),
    Counting,
    Over,
}

/// State machine of the server of a test.
pub struct NuttcpServerMachine {
    lines: Lines,
    stage: NuttcpServerStage,
    out: VecDeque<Output<Self>>,
    /// Parameters of the client, once received.
    parameters: Option<Parameters>,
    terms: NuttcpServerTerms,
    beat: Option<TestIntervalTimer>,
    /// Amount moved, and the time of the last change.
    moved: (u64, MonoTime),
    /// Time without any datagram, where none arrived.
    waited: Option<Duration>,
    halted: bool,
    /// The test was halted because it took too long.
    overdue: bool,
    closed: bool,
    /// The summary or the reason for its absence has been sent.
    told: bool,
}

impl NuttcpServerMachine {
    /// A server that starts at `now`, on a new connection.
    pub fn new(now: MonoTime) -> Self {
        let none = Duration::ZERO;
        Self {
            lines: Lines::default(),
            stage: NuttcpServerStage::AwaitHello { until: now + ASK_TIMEOUT },
            out: VecDeque::new(),
            parameters: None,
            terms: NuttcpServerTerms { open_max: none, span_max: none, interval: none },
            beat: None,
            moved: (0, now),
            waited: None,
            halted: false,
            overdue: false,
            closed: false,
            told: false,
        }
    }

    /// Handles the greeting and the parameters; a client sends no later lines.
    fn read(&mut self) {
        while matches!(
            self.stage,
            NuttcpServerStage::AwaitHello { .. } | NuttcpServerStage::AwaitParameters { .. }
        ) {
            let read = match self.lines.next_line() {
                Ok(Some(line)) => self.handle_line(&line),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                self.fail_with(TestFailureReason::Peer(error));
            }
        }
    }

    /// Handles one line. The oldest clients send their parameters without a greeting.
    fn handle_line(&mut self, line: &str) -> Result<(), LineError> {
        let greeting = line.strip_prefix("HELO nuttcp ").and_then(NuttcpVersion::parse);
        match (self.stage, greeting) {
            (NuttcpServerStage::AwaitHello { until }, Some(_)) => {
                self.send_text(format!("HELO nuttcp v{WIRE_VERSION}\n"));
                self.stage = NuttcpServerStage::AwaitParameters { until };
                Ok(())
            }
            (_, None) if line.starts_with("buflen") => {
                let parameters = Parameters::parse(line).map_err(LineError::Parameters)?;
                self.parameters = Some(parameters.clone());
                self.out.push_back(Output::Decide(Box::new(parameters)));
                self.stage = NuttcpServerStage::Deciding;
                Ok(())
            }
            (stage, _) => {
                let greets = matches!(stage, NuttcpServerStage::AwaitHello { .. });
                let expected = if greets { "HELO" } else { "parameters" };
                Err(LineError::State { got: shortened(line), expected })
            }
        }
    }

    fn accept(&mut self, now: MonoTime, terms: NuttcpServerTerms) {
        (self.terms, self.moved) = (terms, (0, now));
        self.send_text(format!("OK v{WIRE_VERSION}\n"));
        self.out.push_back(Output::Open);
        self.stage = NuttcpServerStage::Opening { until: now + terms.open_max };
    }

    fn start_test(&mut self, now: MonoTime) {
        self.out.extend([Output::Begin, Output::Start]);
        self.beat = Some(TestIntervalTimer::new(now, self.terms.interval, Duration::ZERO));
        self.moved = (0, now);
        self.stage = NuttcpServerStage::Running { until: now + self.terms.span_max + OVERTIME };
    }

    /// Handles the client's close of the control connection, which a client that sends datagrams
    /// may do once all have left.
    fn end_control(&mut self, now: MonoTime) {
        self.closed = true;
        match self.stage {
            NuttcpServerStage::Opening { until } if self.receives_datagrams() => {
                self.stage = NuttcpServerStage::Opening { until: until.min(now + LAST_SEEN) };
            }
            NuttcpServerStage::AwaitHello { .. }
            | NuttcpServerStage::AwaitParameters { .. }
            | NuttcpServerStage::Deciding
            | NuttcpServerStage::Opening { .. } => self.fail_with(TestFailureReason::Closed),
            // The running test ends by its data.
            NuttcpServerStage::Running { .. }
            | NuttcpServerStage::Settling(_)
            | NuttcpServerStage::Counting
            | NuttcpServerStage::Over => {}
        }
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        if let NuttcpServerStage::Settling(wait) = &mut self.stage
            && wait.is_over(now, flow)
        {
            return self.request_counters();
        }
        let silent = |awaited, within| TestFailureReason::Silent { awaited, within };
        match &self.stage {
            NuttcpServerStage::AwaitHello { until }
            | NuttcpServerStage::AwaitParameters { until }
                if now >= *until =>
            {
                self.fail_with(silent("parameters", ASK_TIMEOUT));
            }
            // 6.1.2 gives the client a summary of nothing after 5 s, as observed.
            NuttcpServerStage::Opening { until } if now >= *until && self.receives_datagrams() => {
                self.waited = Some(now.duration_since(self.moved.1));
                self.request_counters();
            }
            NuttcpServerStage::Opening { until } if now >= *until => {
                self.fail_with(silent("data stream", self.terms.open_max));
            }
            NuttcpServerStage::Running { until } => {
                let until = *until;
                if let Some(beat) = &mut self.beat {
                    beat.push_due_outputs(now, &mut self.out);
                }
                self.run(now, until, flow);
            }
            _ => {}
        }
    }

    /// Checks if the data is over, by its end, its time or silence.
    fn run(&mut self, now: MonoTime, until: MonoTime, flow: &FlowState) {
        if flow.moved != self.moved.0 || self.transmits_datagrams() {
            self.moved = (flow.moved, now);
        }
        if flow.done {
            self.request_counters();
        } else if flow.complete {
            self.settle(Settling::new(now, END_MAX, None));
        } else if self.closed && self.receives_datagrams() {
            self.settle(Settling::new(now, END_MAX, Some(QUIET)));
        } else if self.closed {
            self.fail_with(TestFailureReason::Closed);
        } else if now >= until || now.duration_since(self.moved.1) >= IDLE {
            self.overdue |= now >= until && !self.halted;
            self.halt_streams();
        }
    }

    fn settle(&mut self, wait: Settling) {
        self.out.extend([Output::Ended, Output::Settle]);
        self.stage = NuttcpServerStage::Settling(wait);
    }

    /// Stops the streams; the amount moved so far is the result.
    fn halt_streams(&mut self) {
        if !std::mem::replace(&mut self.halted, true) {
            self.out.push_back(Output::Halt);
        }
    }

    /// Outputs a last sample and asks for the counters.
    fn request_counters(&mut self) {
        self.out.extend([Output::Sample, Output::Count]);
        self.stage = NuttcpServerStage::Counting;
    }

    fn send_summary(&mut self, report: &NuttcpServerReport) {
        let Some(parameters) = &self.parameters else { return };
        let role =
            if parameters.client_sends { NuttcpRole::Receiver } else { NuttcpRole::Transmitter };
        let intervals = parameters.interval_s > 0.0 && !self.transmits_datagrams();
        let done = if intervals { "DONE\n" } else { "" };
        let seconds = self.waited.map_or(report.seconds, |waited| waited.as_secs_f64());
        let report = &NuttcpServerReport { seconds, ..report.clone() };
        let summary = report_lines(role, parameters, report);
        let most = self.terms.span_max.as_secs_f64();
        let failed = report.failure.as_deref().map(refuse).unwrap_or_default();
        self.send_text(match self.overdue {
            // A summary would present the cut test as a complete one.
            true => refuse(&format!("a test sends no longer than {most} s")),
            false => format!("{done}{summary}{failed}"),
        });
        self.told = true;
        self.out.push_back(Output::Finished);
        self.stage = NuttcpServerStage::Over;
    }

    fn receives_datagrams(&self) -> bool {
        self.parameters.as_ref().is_some_and(|asked| asked.udp && asked.client_sends)
    }

    fn transmits_datagrams(&self) -> bool {
        self.parameters.as_ref().is_some_and(|asked| asked.udp && !asked.client_sends)
    }

    fn send_text(&mut self, text: String) {
        self.out.push_back(Output::Send(text.into_bytes()));
    }

    fn fail_with(&mut self, reason: TestFailureReason<LineError>) {
        if !matches!(self.stage, NuttcpServerStage::Over) {
            self.out.push_back(Output::Failed(reason));
            self.stage = NuttcpServerStage::Over;
        }
    }
}

/// Lines that refuse a test or report its failure.
fn refuse(reason: &str) -> String {
    let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("KO\nnuttcp-r: v{WIRE_VERSION}: Error: {reason}\nKO\n")
}

impl Machine for NuttcpServerMachine {
    type Request = Parameters;
    type Terms = NuttcpServerTerms;
    type Refusal = Infallible;
    type Report = NuttcpServerReport;
    /// An interval line, without its newline.
    type News = String;
    type PeerFault = LineError;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.lines.push(bytes);
                self.read();
            }
            Input::Closed => self.end_control(now),
            Input::Decided(Ok(terms)) => self.accept(now, terms),
            Input::Decided(Err(never)) => match never {},
            Input::Opened if matches!(self.stage, NuttcpServerStage::Opening { .. }) => {
                self.start_test(now)
            }
            Input::Opened => {}
            Input::Counted(report) => self.send_summary(&report),
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => match self.stage {
                NuttcpServerStage::Running { .. } => self.halt_streams(),
                NuttcpServerStage::Settling(_) | NuttcpServerStage::Counting => {}
                _ => self.fail_with(TestFailureReason::Stopped),
            },
            Input::Tell(line) => self.send_text(line + "\n"),
            // A client that waits for its answer reads this as a refusal; others ignore the line.
            Input::GiveUp(failure) => {
                if self.parameters.is_some() && !std::mem::replace(&mut self.told, true) {
                    self.send_text(refuse(&failure.reason));
                }
                self.stage = NuttcpServerStage::Over;
            }
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            NuttcpServerStage::AwaitHello { until }
            | NuttcpServerStage::AwaitParameters { until } => (Some(*until), LOOK_AT_STOP),
            NuttcpServerStage::Opening { until } => (Some(*until), LOOK),
            NuttcpServerStage::Running { until } => {
                let beat = self.beat.map_or(*until, |beat| beat.next());
                (Some(beat.min(*until)), LOOK)
            }
            NuttcpServerStage::Settling(wait) => (Some(wait.latest_end()), LOOK),
            NuttcpServerStage::Deciding => (None, LOOK_AT_STOP),
            NuttcpServerStage::Counting | NuttcpServerStage::Over => (None, LOOK),
        };
        Wants {
            wake_at,
            look,
            reads: !self.closed && !matches!(self.stage, NuttcpServerStage::Over),
        }
    }
}
