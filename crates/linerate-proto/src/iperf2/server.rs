//! The server's side of a TCP connection to the port of iperf 2 and ttcp: detection of the request,
//! steps and time-outs, and the whole latency test.
//!
//! The protocol has no refusal: the server closes the connection instead.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    Bounce, ClientHeader, HEADER_BYTES_MAX, HeaderError, Iperf2Answer, Mode, Opening, WIRE_VERSION,
    opening,
};
use crate::dialect::{
    FlowState, Input, Machine, Output, TestFailureReason, TestIntervalTimer, Wants,
};

/// Time-out for the first bytes, by which the client's program is detected.
pub const FIRST_BYTES: Duration = Duration::from_secs(5);
/// Time-out of a connection on which no data moves.
pub const IDLE: Duration = Duration::from_secs(60);
/// Time-out for the server's connections to a client.
pub const OPENING_MAX: Duration = Duration::from_secs(10);
/// Time-out for streams that were told to stop.
pub const LEAVE_MAX: Duration = Duration::from_secs(2);
/// Longest wait between request and reply of a latency test.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// Interval of checks of the streams.
const LOOK: Duration = Duration::from_millis(5);

/// Test that the first bytes of a connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Data from the client without a header: ttcp, PCATTCP, or an iperf 2 without options.
    Plain,
    /// The test of an iperf 2 header.
    Header(ClientHeader),
    /// A latency test (`--bounceback`), by its first request.
    Bounce(Bounce),
}

impl Request {
    /// Direction of the data; both directions in a latency test.
    pub const fn test_mode(&self) -> Mode {
        match self {
            Self::Plain => Mode::Forward,
            Self::Header(header) => header.mode,
            Self::Bounce(_) => Mode::FullDuplex,
        }
    }
}

/// Limits and clock of a test at the server.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Longest time of the test.
    pub span_max: Duration,
    /// Time between two samples.
    pub interval: Duration,
    /// Wall clock minus monotonic clock, in nanoseconds.
    pub wall_offset_ns: i64,
}

/// Result of a latency test at the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BounceResult {
    /// Requests that were answered.
    pub replies: u64,
    /// Bytes of the requests.
    pub request_bytes: u64,
    /// Time from the begin to the last request, in nanoseconds.
    pub span_ns: u64,
}

/// `bounce-back: 10 requests of 100 bytes in 0.901 s`.
impl std::fmt::Display for BounceResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = self.request_bytes.checked_div(self.replies).unwrap_or(0);
        let seconds = self.span_ns as f64 / 1e9;
        write!(f, "bounce-back: {} requests of {each} bytes in {seconds:.3} s", self.replies)
    }
}

#[derive(Clone, Copy, Debug)]
enum Iperf2ServerStage {
    FirstBytes {
        until: MonoTime,
    },
    Deciding,
    Opening {
        until: MonoTime,
    },
    Running {
        idle_at: MonoTime,
    },
    /// The streams were told to stop.
    Leaving {
        until: MonoTime,
    },
    /// A latency test. `held` is the arrival of a request and the time to answer it.
    Bouncing {
        idle_at: MonoTime,
        held: Option<(MonoTime, MonoTime)>,
    },
    Over,
}

/// State machine of the server of a TCP connection.
pub struct Server {
    stage: Iperf2ServerStage,
    out: VecDeque<Output<Self>>,
    /// Received bytes that have not been parsed yet.
    bytes: Vec<u8>,
    request: Request,
    terms: Option<Terms>,
    begin: MonoTime,
    beat: Option<TestIntervalTimer>,
    moved: u64,
    bounced: BounceResult,
    /// The server's own stream, after the client's, has begun.
    sends_back: bool,
}

impl Server {
    /// A server on a connection accepted at `now`.
    pub fn new(now: MonoTime) -> Self {
        Self {
            stage: Iperf2ServerStage::FirstBytes { until: now + FIRST_BYTES },
            out: VecDeque::new(),
            bytes: Vec::new(),
            request: Request::Plain,
            terms: None,
            begin: now,
            beat: None,
            moved: 0,
            bounced: BounceResult::default(),
            sends_back: false,
        }
    }

    /// Detects the request by the bytes so far; no more arrive once the client has `closed`.
    fn identify(&mut self, closed: bool) {
        let request = match opening(&self.bytes) {
            Ok(Opening::Header(header)) => Request::Header(header),
            Ok(Opening::Bounce(first)) => Request::Bounce(first),
            // Fewer bytes than a header before the end of the connection count as data.
            Ok(_) if closed => Request::Plain,
            // ttcp continues to send or closes; a few bytes and then silence are no test, and must
            // not occupy a slot of the server.
            Ok(Opening::Plain) if self.bytes.len() >= HEADER_BYTES_MAX => Request::Plain,
            Ok(Opening::Plain | Opening::Needs(_)) => return,
            Err(error) => return self.fail_with(TestFailureReason::Peer(error)),
        };
        self.request = request;
        self.out.push_back(Output::Decide(Box::new(request)));
        self.stage = Iperf2ServerStage::Deciding;
    }

    fn start_test(&mut self, now: MonoTime, terms: Terms) {
        (self.begin, self.terms) = (now, Some(terms));
        match self.request {
            Request::Bounce(_) => {
                self.stage = Iperf2ServerStage::Bouncing { idle_at: now + IDLE, held: None };
                return self.answer_requests(now);
            }
            Request::Header(header)
                if header.wants_answer
                    && !matches!(header.mode, Mode::Reverse | Mode::FullDuplex) =>
            {
                let answer = Iperf2Answer { version: WIRE_VERSION };
                self.out.push_back(Output::Send(answer.to_bytes().to_vec()));
            }
            _ => {}
        }
        self.out.push_back(Output::Open);
        self.stage = Iperf2ServerStage::Opening { until: now + OPENING_MAX };
    }

    fn opened(&mut self, now: MonoTime) {
        self.out.extend([Output::Begin, Output::Start]);
        self.begin = now;
        self.beat =
            self.terms.map(|terms| TestIntervalTimer::new(now, terms.interval, Duration::ZERO));
        self.moved = 0;
        self.stage = Iperf2ServerStage::Running { idle_at: now + IDLE };
    }

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        match &mut self.stage {
            Iperf2ServerStage::FirstBytes { until } if now >= *until => {
                let awaited = "first bytes of";
                self.fail_with(TestFailureReason::Silent { awaited, within: FIRST_BYTES });
            }
            Iperf2ServerStage::Opening { until } if now >= *until => {
                let awaited = "open streams to";
                self.fail_with(TestFailureReason::Silent { awaited, within: OPENING_MAX });
            }
            Iperf2ServerStage::Running { .. } | Iperf2ServerStage::Leaving { .. } if flow.done => {
                self.end_streams(now)
            }
            Iperf2ServerStage::Running { idle_at } => {
                if flow.moved != self.moved {
                    (self.moved, *idle_at) = (flow.moved, now + IDLE);
                }
                let over = now >= *idle_at || self.is_overdue(now);
                if let Some(beat) = &mut self.beat {
                    beat.push_due_outputs(now, &mut self.out);
                }
                if over {
                    self.stop_streams(now);
                }
            }
            Iperf2ServerStage::Leaving { until } if now >= *until => self.end_streams(now),
            Iperf2ServerStage::Bouncing { idle_at, .. } => {
                if now >= *idle_at || self.is_overdue(now) {
                    return self.finish();
                }
                self.answer_requests(now);
            }
            _ => {}
        }
    }

    fn is_overdue(&self, now: MonoTime) -> bool {
        self.terms.is_some_and(|terms| now >= self.begin + terms.span_max)
    }

    /// Stops the streams; the counters so far are the result.
    fn stop_streams(&mut self, now: MonoTime) {
        self.out.push_back(Output::Halt);
        self.sends_back = true;
        self.stage = Iperf2ServerStage::Leaving { until: now + LEAVE_MAX };
    }

    /// Ends the test after its streams have ended, or opens the server's own stream (`-r`).
    fn end_streams(&mut self, now: MonoTime) {
        self.out.extend([Output::Sample, Output::Ended]);
        if self.request.test_mode() == Mode::TradeOff
            && !std::mem::replace(&mut self.sends_back, true)
        {
            self.begin = now;
            self.out.push_back(Output::Open);
            self.stage = Iperf2ServerStage::Opening { until: now + OPENING_MAX };
        } else {
            self.finish();
        }
    }

    /// Sends each request of a latency test back once its hold time has passed.
    fn answer_requests(&mut self, now: MonoTime) {
        let (Request::Bounce(first), Some(terms)) = (self.request, self.terms) else { return };
        let (length, reply) = (first.request_bytes as usize, first.reply_bytes as usize);
        while let Iperf2ServerStage::Bouncing { held, .. } = self.stage {
            let Some((received, due)) = held else {
                if self.bytes.len() < length {
                    return;
                }
                if Bounce::parse(&self.bytes[..length]).is_none_or(|asked| asked.last) {
                    return self.finish();
                }
                let hold = Duration::from_micros(first.hold_us.into()).min(HOLD_MAX);
                self.stage = Iperf2ServerStage::Bouncing {
                    idle_at: now + IDLE,
                    held: Some((now, now + hold)),
                };
                continue;
            };
            if now < due {
                return;
            }
            let mut request: Vec<u8> = self.bytes.drain(..length).collect();
            let wall_us =
                |at: MonoTime| at.as_nanos().saturating_add_signed(terms.wall_offset_ns) / 1000;
            request.resize(length.max(reply), 0);
            Bounce::write_server_times(&mut request, wall_us(received), wall_us(now));
            request.truncate(reply);
            self.out.push_back(Output::Send(request));
            self.bounced.replies += 1;
            self.bounced.request_bytes += length as u64;
            self.bounced.span_ns = received.nanos_since(self.begin);
            self.stage = Iperf2ServerStage::Bouncing { idle_at: now + IDLE, held: None };
        }
    }

    fn finish(&mut self) {
        if matches!(self.stage, Iperf2ServerStage::Bouncing { .. }) {
            self.out.push_back(Output::News(self.bounced));
        }
        self.out.push_back(Output::Finished);
        self.stage = Iperf2ServerStage::Over;
    }

    fn fail_with(&mut self, reason: TestFailureReason<HeaderError>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Iperf2ServerStage::Over;
    }
}

impl Machine for Server {
    type Request = Request;
    type Terms = Terms;
    type Refusal = Infallible;
    type Report = Infallible;
    type News = BounceResult;
    type PeerFault = HeaderError;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                match self.stage {
                    Iperf2ServerStage::FirstBytes { .. } => self.identify(false),
                    _ => self.answer_requests(now),
                }
            }
            Input::Closed => match self.stage {
                Iperf2ServerStage::FirstBytes { .. } => self.identify(true),
                Iperf2ServerStage::Bouncing { .. } => self.finish(),
                _ => {}
            },
            Input::Decided(Ok(terms)) => self.start_test(now, terms),
            Input::Opened => self.opened(now),
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => match self.stage {
                Iperf2ServerStage::FirstBytes { .. }
                | Iperf2ServerStage::Deciding
                | Iperf2ServerStage::Opening { .. } => {
                    self.fail_with(TestFailureReason::Stopped);
                }
                Iperf2ServerStage::Running { .. } => self.stop_streams(now),
                Iperf2ServerStage::Bouncing { .. } => self.finish(),
                Iperf2ServerStage::Leaving { .. } | Iperf2ServerStage::Over => {}
            },
            Input::GiveUp(_) => self.stage = Iperf2ServerStage::Over,
            Input::Tell(_) => {}
            Input::Decided(Err(never)) => match never {},
            Input::Counted(never) => match *never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let wake_at = match self.stage {
            Iperf2ServerStage::FirstBytes { until }
            | Iperf2ServerStage::Opening { until }
            | Iperf2ServerStage::Leaving { until } => Some(until),
            Iperf2ServerStage::Running { .. } => self.beat.map(|beat| beat.next()),
            Iperf2ServerStage::Bouncing { held, .. } => held.map(|(_, due)| due),
            Iperf2ServerStage::Deciding | Iperf2ServerStage::Over => None,
        };
        let reads = match self.stage {
            Iperf2ServerStage::FirstBytes { .. } => true,
            Iperf2ServerStage::Bouncing { held, .. } => held.is_none(),
            _ => false,
        };
        // A latency test is woken by its requests.
        let look =
            if matches!(self.stage, Iperf2ServerStage::Bouncing { .. }) { LOOK * 10 } else { LOOK };
        Wants { wake_at, look, reads }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
