//! The server's side of a test, from the parameters on: its steps and time-outs. The acceptor of
//! the connection has read the cookie.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::client::{COUNTED_MAX, LEAVE_MAX};
use super::{
    ErrorCode, Params, Protocol, Results, ServerEvent, ServerOrder, State, WireError, frame_json,
    server_error, stream_id,
};
use crate::dialect::{
    FlowState, Input, LOOK_AT_END, Machine, Output, Settling, TestFailureReason, TestIntervalTimer,
    Wants,
};

/// Time-out for each of the client's steps during set-up and end.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a test may take after its planned end: the client's clock started later, and the data
/// in its buffers has to arrive.
pub const GRACE: Duration = Duration::from_secs(10);
/// Longest wait for data in flight after the client's `test end`.
pub const DRAIN_MAX: Duration = Duration::from_secs(4);
/// Time that a test by bytes may take after its longest time, for its last bytes to arrive.
const OVERTIME: Duration = Duration::from_millis(500);
/// Time for a client to leave after the server's error. Its data is read until then; otherwise it
/// would see a reset of its streams before it reads the error.
const DISMISSED_MAX: Duration = Duration::from_secs(3);
/// Silence from which the data counts as complete, where the client's results do not state the
/// amount.
const QUIET: Duration = Duration::from_millis(100);
/// Interval of checks of the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// Limits of a test at the server.
#[derive(Clone, Copy, Debug)]
pub struct Iperf3ServerTerms {
    /// Longest time of sending.
    pub span_max: Duration,
    /// Time between two samples.
    pub interval: Duration,
}

/// Reason for which the server refuses a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another test is running.
    Busy,
    /// The parameters are not allowed: iperf3's number.
    For(ErrorCode),
}

#[derive(Clone, Copy, Debug)]
enum Iperf3ServerStage {
    AwaitParams {
        until: MonoTime,
    },
    Deciding,
    Opening {
        until: MonoTime,
    },
    Running {
        until: MonoTime,
    },
    /// The server has ended the test with an error and waits for the client to leave.
    Dismissed {
        until: MonoTime,
    },
    AwaitResults {
        until: MonoTime,
    },
    Settling(Settling),
    Leaving(Settling),
    Counting,
    AwaitDone {
        until: MonoTime,
    },
    Over,
}

/// State machine of the server of a test.
pub struct Iperf3ServerMachine {
    order: ServerOrder,
    stage: Iperf3ServerStage,
    out: VecDeque<Output<Self>>,
    params: Params,
    terms: Iperf3ServerTerms,
    beat: Option<TestIntervalTimer>,
}

impl Iperf3ServerMachine {
    /// A server that starts at `now`, on a connection whose cookie has been read.
    pub fn new(now: MonoTime) -> Self {
        Self {
            order: ServerOrder::default(),
            stage: Iperf3ServerStage::AwaitParams { until: now + STEP_TIMEOUT },
            out: VecDeque::from([Output::Send(vec![State::ParamExchange.to_byte()])]),
            params: Params::default(),
            terms: Iperf3ServerTerms { span_max: Duration::ZERO, interval: Duration::ZERO },
            beat: None,
        }
    }

    /// Handles the buffered messages that the current step expects.
    fn read(&mut self, now: MonoTime) {
        while self.reads_control() {
            match self.order.next_event() {
                Ok(Some(event)) => self.handle_event(now, event),
                Ok(None) => return,
                Err(error) => self.fail_with(TestFailureReason::Peer(error)),
            }
        }
    }

    fn handle_event(&mut self, now: MonoTime, event: ServerEvent) {
        if matches!(self.stage, Iperf3ServerStage::Dismissed { .. }) {
            return self.fail_with(TestFailureReason::Overdue);
        }
        match event {
            ServerEvent::Params(params) => {
                self.params = (*params).clone();
                self.stage = Iperf3ServerStage::Deciding;
                self.out.push_back(Output::Decide(params));
            }
            ServerEvent::Ended => {
                self.out.extend([Output::StopSending, Output::Ended]);
                self.send_state(State::ExchangeResults);
                self.stage = Iperf3ServerStage::AwaitResults { until: now + STEP_TIMEOUT };
            }
            ServerEvent::Results(results) => {
                self.stage = self.settle(now, &results);
                self.out.extend([Output::Peer(results), Output::Settle]);
            }
            ServerEvent::Finished => self.finish(),
            ServerEvent::Terminated => self.fail_with(TestFailureReason::Left),
        }
    }

    /// The wait for data in flight, after the client's results. A test by time counts the bytes
    /// received at its end; a test by an amount, or of this program's client, also those in flight.
    fn settle(&self, now: MonoTime, of_client: &Results) -> Iperf3ServerStage {
        if self.params.protocol == Protocol::Udp {
            return Iperf3ServerStage::Settling(Settling::new(now, COUNTED_MAX, None));
        }
        if self.params.counts_as_it_ended() {
            return Iperf3ServerStage::Settling(Settling::new(now, Duration::ZERO, None));
        }
        let ways = if self.params.bidirectional { 2 } else { 1 };
        let streams = u32::try_from(self.params.parallel * ways).unwrap_or(0);
        // A receiver that waits for a processor is silent, too, so stated amounts have precedence.
        let tells = self.params.omit_s == 0
            && !self.params.reverse
            && (0..streams).all(|at| of_client.stream(stream_id(at)).is_some());
        Iperf3ServerStage::Settling(Settling::new(now, DRAIN_MAX, (!tells).then_some(QUIET)))
    }

    /// Checks time-outs and the state of the streams.
    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        // Data that arrives after the server's error is still counted.
        if let (
            Iperf3ServerStage::Running { .. } | Iperf3ServerStage::Dismissed { .. },
            Some(beat),
        ) = (&self.stage, &mut self.beat)
        {
            beat.push_due_outputs(now, &mut self.out);
        }
        if self.settling().is_some_and(|wait| wait.is_over(now, flow)) {
            self.end_wait(now);
        }
        let silent = |awaited| TestFailureReason::Silent { awaited, within: STEP_TIMEOUT };
        match &self.stage {
            Iperf3ServerStage::AwaitParams { until } if now >= *until => {
                self.fail_with(silent("the parameters"))
            }
            Iperf3ServerStage::Opening { until } if now >= *until => {
                self.fail_with(silent("the streams"))
            }
            Iperf3ServerStage::AwaitResults { until } if now >= *until => {
                self.fail_with(silent("the results"))
            }
            // The client has its results, so its last message is not needed.
            Iperf3ServerStage::AwaitDone { until } if now >= *until => self.finish(),
            Iperf3ServerStage::Running { until } if now >= *until => {
                let code = self.stage_error_code();
                self.out.push_back(Output::StopSending);
                self.send_control_bytes(server_error(code, 0).to_vec());
                self.stage = Iperf3ServerStage::Dismissed { until: now + DISMISSED_MAX };
            }
            Iperf3ServerStage::Dismissed { until } if now >= *until => {
                self.fail_with(TestFailureReason::Overdue)
            }
            _ => {}
        }
    }

    fn accept_or_refuse(&mut self, now: MonoTime, decision: Result<Iperf3ServerTerms, Refusal>) {
        match decision {
            Ok(terms) => {
                self.terms = terms;
                self.order.note_accepted();
                self.stage = Iperf3ServerStage::Opening { until: now + STEP_TIMEOUT };
                self.send_state(State::CreateStreams);
                self.out.push_back(Output::Open);
                self.read(now);
            }
            Err(refusal) => {
                match refusal {
                    Refusal::Busy => self.send_state(State::AccessDenied),
                    Refusal::For(code) => self.send_control_bytes(server_error(code, 0).to_vec()),
                }
                self.finish();
            }
        }
    }

    fn start_test(&mut self, now: MonoTime) {
        self.send_state(State::TestStart);
        self.order.note_running();
        self.out.extend([Output::Begin, Output::Start]);
        self.send_state(State::TestRunning);
        let omit = Duration::from_secs(self.params.omit_s);
        self.beat = Some(TestIntervalTimer::new(now, self.terms.interval, omit));
        // The client's clock ends a test by time, the server's clock one by bytes.
        let late = if self.params.time_s > 0 { GRACE } else { OVERTIME };
        self.stage = Iperf3ServerStage::Running { until: now + self.terms.span_max + late };
        self.read(now);
    }

    fn settling(&mut self) -> Option<&mut Settling> {
        match &mut self.stage {
            Iperf3ServerStage::Settling(wait) | Iperf3ServerStage::Leaving(wait) => Some(wait),
            _ => None,
        }
    }

    /// Goes to the next step after a wait for data in flight.
    fn end_wait(&mut self, now: MonoTime) {
        match self.stage {
            Iperf3ServerStage::Settling(_) if self.params.protocol == Protocol::Tcp => {
                self.out.push_back(Output::StopReceiving);
                self.stage = Iperf3ServerStage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            _ => {
                self.out.push_back(Output::Count);
                self.stage = Iperf3ServerStage::Counting;
            }
        }
    }

    fn send_control_bytes(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send(bytes));
    }

    fn send_state(&mut self, state: State) {
        self.send_control_bytes(vec![state.to_byte()]);
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Iperf3ServerStage::Over;
    }

    fn fail_with(&mut self, reason: TestFailureReason<WireError>) {
        match self.stage {
            Iperf3ServerStage::Over => return,
            Iperf3ServerStage::AwaitDone { .. } => return self.finish(),
            Iperf3ServerStage::Dismissed { .. } => {
                self.out.push_back(Output::Failed(TestFailureReason::Overdue));
                self.stage = Iperf3ServerStage::Over;
                return;
            }
            _ => {}
        }
        match reason {
            TestFailureReason::Closed | TestFailureReason::Left => {}
            TestFailureReason::Stopped => self.send_state(State::ServerTerminate),
            _ => self.send_control_bytes(server_error(self.stage_error_code(), 0).to_vec()),
        }
        self.out.push_back(Output::Failed(reason));
        self.stage = Iperf3ServerStage::Over;
    }

    /// iperf3's number for a failure at this stage.
    fn stage_error_code(&self) -> ErrorCode {
        match self.stage {
            Iperf3ServerStage::AwaitParams { .. } | Iperf3ServerStage::Deciding => {
                ErrorCode::RECEIVE_PARAMS
            }
            Iperf3ServerStage::Opening { .. } => ErrorCode::CREATE_STREAM,
            Iperf3ServerStage::Running { .. } => self.params.expired(),
            _ => ErrorCode::MESSAGE,
        }
    }

    /// True while control bytes are read, also while the server decides or waits for streams, so
    /// that it notices a client that leaves.
    fn reads_control(&self) -> bool {
        !matches!(
            self.stage,
            Iperf3ServerStage::Settling(_)
                | Iperf3ServerStage::Leaving(_)
                | Iperf3ServerStage::Counting
                | Iperf3ServerStage::Over
        )
    }
}

impl Machine for Iperf3ServerMachine {
    type Request = Params;
    type Terms = Iperf3ServerTerms;
    type Refusal = Refusal;
    type Report = Results;
    type News = Infallible;
    type PeerFault = WireError;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.order.push(bytes);
                self.read(now);
            }
            Input::Closed => self.fail_with(TestFailureReason::Closed),
            Input::Decided(decision) => self.accept_or_refuse(now, decision),
            Input::Opened => self.start_test(now),
            Input::Counted(results) => {
                self.send_control_bytes(frame_json(&results.to_json()));
                self.send_state(State::DisplayResults);
                self.stage = Iperf3ServerStage::AwaitDone { until: now + STEP_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.fail_with(TestFailureReason::Stopped),
            Input::Tell(never) => match never {},
            Input::GiveUp(_) => {
                if !matches!(self.stage, Iperf3ServerStage::Over) {
                    let of_streams = matches!(self.stage, Iperf3ServerStage::Opening { .. });
                    let named = of_streams && self.params.congestion.is_some();
                    let code = if named { ErrorCode::CONGESTION } else { self.stage_error_code() };
                    self.send_control_bytes(server_error(code, 0).to_vec());
                    self.stage = Iperf3ServerStage::Over;
                }
            }
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Iperf3ServerStage::AwaitParams { until }
            | Iperf3ServerStage::AwaitResults { until }
            | Iperf3ServerStage::AwaitDone { until } => (Some(*until), LOOK),
            Iperf3ServerStage::Opening { until } => (Some(*until), LOOK_AT_END),
            Iperf3ServerStage::Running { until } | Iperf3ServerStage::Dismissed { until } => {
                let beat = self.beat.map_or(*until, |beat| beat.next());
                (Some(beat.min(*until)), LOOK)
            }
            Iperf3ServerStage::Settling(wait) | Iperf3ServerStage::Leaving(wait) => {
                (Some(wait.latest_end()), LOOK_AT_END)
            }
            Iperf3ServerStage::Deciding | Iperf3ServerStage::Counting => (None, LOOK_AT_END),
            Iperf3ServerStage::Over => (None, LOOK),
        };
        Wants { wake_at, look, reads: self.reads_control() }
    }
}
