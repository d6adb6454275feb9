//! The server's side of a test, from the parameters on: its steps and time-outs. The cookie is
//! read by whoever accepts the connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::client::{COUNTED_MAX, LEAVE_MAX};
use super::{
    ErrorCode, Params, Protocol, Results, ServerEvent, ServerOrder, State, WireError, frame,
    server_error, stream_id,
};
use crate::dialect::{
    Beat, FlowState, Input, LOOK_AT_END, Machine, Output, Reason, Settling, Wants,
};

/// A client has this long for each step of the set-up and of the end.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// After its planned end a test may take this much longer: the client's clock started later, and
/// what is in its buffers has to arrive.
pub const GRACE: Duration = Duration::from_secs(10);
/// What is on the way when the client ends has this long to arrive.
pub const DRAIN_MAX: Duration = Duration::from_secs(4);
/// A test by bytes that is not done at its longest time may take this until its last ones arrive.
const OVERTIME: Duration = Duration::from_millis(500);
/// A client that was told that its test is over has this long to leave: its data is taken until
/// then, else the end of its streams would be all that it hears.
const DISMISSED_MAX: Duration = Duration::from_secs(3);
/// Where the client does not tell how much it sent, the end is when nothing came for this long.
const QUIET: Duration = Duration::from_millis(100);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// On which terms a test runs.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The longest that it may send.
    pub span_max: Duration,
    /// Time between samples.
    pub interval: Duration,
}

/// Why a test is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another one is running.
    Busy,
    /// What is wrong with it.
    For(ErrorCode),
}

#[derive(Clone, Copy, Debug)]
enum Stage {
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
    /// The client was told that its test is over, before its end.
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

/// The server's machine.
pub struct Server {
    order: ServerOrder,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    params: Params,
    terms: Terms,
    beat: Option<Beat>,
}

impl Server {
    /// Begins at `now`, on a connection whose cookie has been read.
    pub fn new(now: MonoTime) -> Self {
        Self {
            order: ServerOrder::default(),
            stage: Stage::AwaitParams { until: now + STEP_TIMEOUT },
            out: VecDeque::from([Output::Send(vec![State::ParamExchange.to_byte()])]),
            params: Params::default(),
            terms: Terms { span_max: Duration::ZERO, interval: Duration::ZERO },
            beat: None,
        }
    }

    /// Takes the messages that are of use now.
    fn read(&mut self, now: MonoTime) {
        while self.reads() {
            match self.order.next_event() {
                Ok(Some(event)) => self.event(now, event),
                Ok(None) => return,
                Err(error) => self.fail(Reason::Peer(error)),
            }
        }
    }

    fn event(&mut self, now: MonoTime, event: ServerEvent) {
        if matches!(self.stage, Stage::Dismissed { .. }) {
            return self.fail(Reason::Overdue);
        }
        match event {
            ServerEvent::Params(params) => {
                self.params = (*params).clone();
                self.stage = Stage::Deciding;
                self.out.push_back(Output::Decide(params));
            }
            ServerEvent::Ended => {
                self.out.extend([Output::StopSending, Output::Ended]);
                self.send_state(State::ExchangeResults);
                self.stage = Stage::AwaitResults { until: now + STEP_TIMEOUT };
            }
            ServerEvent::Results(results) => {
                self.stage = self.settle(now, &results);
                self.out.extend([Output::Peer(results), Output::Settle]);
            }
            ServerEvent::Finished => self.finish(),
            ServerEvent::Terminated => self.fail(Reason::Left),
        }
    }

    /// The end of the data, once the client has told what it sent. A test by time counts what had
    /// come when it ended; one by an amount, and one of this program's own client, takes what is on
    /// the way.
    fn settle(&self, now: MonoTime, of_client: &Results) -> Stage {
        if self.params.protocol == Protocol::Udp {
            return Stage::Settling(Settling::new(now, COUNTED_MAX, None));
        }
        if self.params.counts_as_it_ended() {
            return Stage::Settling(Settling::new(now, Duration::ZERO, None));
        }
        let ways = if self.params.bidirectional { 2 } else { 1 };
        let streams = u32::try_from(self.params.parallel * ways).unwrap_or(0);
        // Receivers that wait for a processor are silent, too, so what is told counts more.
        let tells = self.params.omit_s == 0
            && !self.params.reverse
            && (0..streams).all(|at| of_client.stream(stream_id(at)).is_some());
        Stage::Settling(Settling::new(now, DRAIN_MAX, (!tells).then_some(QUIET)))
    }

    /// Goes on as far as time and data allow.
    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        // Data of a client that was told to leave is taken and counted like any other.
        if let (Stage::Running { .. } | Stage::Dismissed { .. }, Some(beat)) =
            (&self.stage, &mut self.beat)
        {
            beat.due(now, &mut self.out);
        }
        if self.settling().is_some_and(|wait| wait.is_over(now, flow)) {
            self.waited(now);
        }
        let silent = |awaited| Reason::Silent { awaited, within: STEP_TIMEOUT };
        match &self.stage {
            Stage::AwaitParams { until } if now >= *until => self.fail(silent("the parameters")),
            Stage::Opening { until } if now >= *until => self.fail(silent("the streams")),
            Stage::AwaitResults { until } if now >= *until => self.fail(silent("the results")),
            // The client has its result; whether it says so changes nothing.
            Stage::AwaitDone { until } if now >= *until => self.finish(),
            Stage::Running { until } if now >= *until => {
                let code = self.code();
                self.out.push_back(Output::StopSending);
                self.send(server_error(code, 0).to_vec());
                self.stage = Stage::Dismissed { until: now + DISMISSED_MAX };
            }
            Stage::Dismissed { until } if now >= *until => self.fail(Reason::Overdue),
            _ => {}
        }
    }

    fn decided(&mut self, now: MonoTime, decided: Result<Terms, Refusal>) {
        match decided {
            Ok(terms) => {
                self.terms = terms;
                self.order.accepted();
                self.stage = Stage::Opening { until: now + STEP_TIMEOUT };
                self.send_state(State::CreateStreams);
                self.out.push_back(Output::Open);
                self.read(now);
            }
            Err(refusal) => {
                match refusal {
                    Refusal::Busy => self.send_state(State::AccessDenied),
                    Refusal::For(code) => self.send(server_error(code, 0).to_vec()),
                }
                self.finish();
            }
        }
    }

    fn opened(&mut self, now: MonoTime) {
        self.send_state(State::TestStart);
        self.order.running();
        self.out.extend([Output::Begin, Output::Start]);
        self.send_state(State::TestRunning);
        let omit = Duration::from_secs(self.params.omit_s);
        self.beat = Some(Beat::new(now, self.terms.interval, omit));
        // A client's clock ends a test by time, and this end's one by bytes.
        let late = if self.params.time_s > 0 { GRACE } else { OVERTIME };
        self.stage = Stage::Running { until: now + self.terms.span_max + late };
        self.read(now);
    }

    fn settling(&mut self) -> Option<&mut Settling> {
        match &mut self.stage {
            Stage::Settling(wait) | Stage::Leaving(wait) => Some(wait),
            _ => None,
        }
    }

    /// What was on the way has come, or has had its time.
    fn waited(&mut self, now: MonoTime) {
        match self.stage {
            Stage::Settling(_) if self.params.protocol == Protocol::Tcp => {
                self.out.push_back(Output::StopReceiving);
                self.stage = Stage::Leaving(Settling::new(now, LEAVE_MAX, None));
            }
            _ => {
                self.out.push_back(Output::Count);
                self.stage = Stage::Counting;
            }
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.out.push_back(Output::Send(bytes));
    }

    fn send_state(&mut self, state: State) {
        self.send(vec![state.to_byte()]);
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, reason: Reason<WireError>) {
        match self.stage {
            Stage::Over => return,
            Stage::AwaitDone { .. } => return self.finish(),
            Stage::Dismissed { .. } => {
                self.out.push_back(Output::Failed(Reason::Overdue));
                self.stage = Stage::Over;
                return;
            }
            _ => {}
        }
        match reason {
            Reason::Closed | Reason::Left => {}
            Reason::Stopped => self.send_state(State::ServerTerminate),
            _ => self.send(server_error(self.code(), 0).to_vec()),
        }
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }

    /// iperf3's number for a failure at this stage.
    fn code(&self) -> ErrorCode {
        match self.stage {
            Stage::AwaitParams { .. } | Stage::Deciding => ErrorCode::RECEIVE_PARAMS,
            Stage::Opening { .. } => ErrorCode::CREATE_STREAM,
            Stage::Running { .. } => self.params.expired(),
            _ => ErrorCode::MESSAGE,
        }
    }

    /// While the server decides or waits for streams, it notices a client that leaves.
    fn reads(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Settling(_) | Stage::Leaving(_) | Stage::Counting | Stage::Over
        )
    }
}

impl Machine for Server {
    type Request = Params;
    type Terms = Terms;
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
            Input::Closed => self.fail(Reason::Closed),
            Input::Decided(decided) => self.decided(now, decided),
            Input::Opened => self.opened(now),
            Input::Counted(results) => {
                self.send(frame(&results.to_json()));
                self.send_state(State::DisplayResults);
                self.stage = Stage::AwaitDone { until: now + STEP_TIMEOUT };
                self.read(now);
            }
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => self.fail(Reason::Stopped),
            Input::Tell(never) => match never {},
            Input::GiveUp(_) => {
                if !matches!(self.stage, Stage::Over) {
                    let of_streams = matches!(self.stage, Stage::Opening { .. });
                    let named = of_streams && self.params.congestion.is_some();
                    let code = if named { ErrorCode::CONGESTION } else { self.code() };
                    self.send(server_error(code, 0).to_vec());
                    self.stage = Stage::Over;
                }
            }
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let (wake_at, look) = match &self.stage {
            Stage::AwaitParams { until }
            | Stage::AwaitResults { until }
            | Stage::AwaitDone { until } => (Some(*until), LOOK),
            Stage::Opening { until } => (Some(*until), LOOK_AT_END),
            Stage::Running { until } | Stage::Dismissed { until } => {
                let beat = self.beat.map_or(*until, |beat| beat.next());
                (Some(beat.min(*until)), LOOK)
            }
            Stage::Settling(wait) | Stage::Leaving(wait) => (Some(wait.end()), LOOK_AT_END),
            Stage::Deciding | Stage::Counting => (None, LOOK_AT_END),
            Stage::Over => (None, LOOK),
        };
        Wants { wake_at, look, reads: self.reads() }
    }
}
