//! The server's side of a TCP connection to the port of iperf 2 and ttcp: what its first bytes ask
//! for, and the steps and time-outs of that; the latency test whole.
//!
//! There is no way to say no but to close.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{
    Answer, Bounce, ClientHeader, HEADER_BYTES_MAX, HeaderError, Mode, Opening, WIRE_VERSION,
    opening,
};
use crate::dialect::{Beat, FlowState, Input, Machine, Output, Reason, Wants};

/// A client has this long for the bytes that tell what it is.
pub const FIRST_BYTES: Duration = Duration::from_secs(5);
/// A client that is there but moves nothing for this long loses its place.
pub const IDLE: Duration = Duration::from_secs(60);
/// Its own connections to a client open within this time.
pub const OPENING_MAX: Duration = Duration::from_secs(10);
/// Streams that were told to leave are given this long.
pub const LEAVE_MAX: Duration = Duration::from_secs(2);
/// Longest time between request and reply of a latency test that a client may ask for.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// How often streams are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What a connection's first bytes ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// ttcp, PCATTCP, or an iperf that has nothing to ask: data from the client.
    Plain,
    /// What the header says.
    Header(ClientHeader),
    /// A latency test (`--bounceback`), by its first request.
    Bounce(Bounce),
}

impl Request {
    /// Who sends, and when; both ends in a latency test.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Plain => Mode::Forward,
            Self::Header(header) => header.mode,
            Self::Bounce(_) => Mode::FullDuplex,
        }
    }
}

/// On which terms a test runs.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// It is ended after so long.
    pub span_max: Duration,
    /// Time between samples.
    pub interval: Duration,
    /// The wall clock less the monotonic one, in nanoseconds.
    pub wall_offset_ns: i64,
}

/// What a latency test came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounced {
    /// Requests that were answered.
    pub replies: u64,
    /// Bytes of the requests.
    pub request_bytes: u64,
    /// From the begin to the last request.
    pub span_ns: u64,
}

/// `bounce-back: 10 requests of 100 bytes in 0.901 s`.
impl std::fmt::Display for Bounced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = self.request_bytes.checked_div(self.replies).unwrap_or(0);
        let seconds = self.span_ns as f64 / 1e9;
        write!(f, "bounce-back: {} requests of {each} bytes in {seconds:.3} s", self.replies)
    }
}

#[derive(Clone, Copy, Debug)]
enum Stage {
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
    /// The streams were told to leave.
    Leaving {
        until: MonoTime,
    },
    /// A request came then, and is answered at `due`.
    Bouncing {
        idle_at: MonoTime,
        held: Option<(MonoTime, MonoTime)>,
    },
    Over,
}

/// The server's machine.
pub struct Server {
    stage: Stage,
    out: VecDeque<Output<Self>>,
    /// Bytes of the client that are not used yet.
    bytes: Vec<u8>,
    request: Request,
    terms: Option<Terms>,
    begin: MonoTime,
    beat: Option<Beat>,
    moved: u64,
    bounced: Bounced,
    /// The server's stream of its own, after the client's, has begun.
    sends_back: bool,
}

impl Server {
    /// Begins at `now`, on a fresh connection.
    pub fn new(now: MonoTime) -> Self {
        Self {
            stage: Stage::FirstBytes { until: now + FIRST_BYTES },
            out: VecDeque::new(),
            bytes: Vec::new(),
            request: Request::Plain,
            terms: None,
            begin: now,
            beat: None,
            moved: 0,
            bounced: Bounced::default(),
            sends_back: false,
        }
    }

    /// Looks what the first bytes are; no more of them come once the client has `closed`.
    fn identify(&mut self, closed: bool) {
        let request = match opening(&self.bytes) {
            Ok(Opening::Header(header)) => Request::Header(header),
            Ok(Opening::Bounce(first)) => Request::Bounce(first),
            // Fewer bytes than a header, then the end: data all the same.
            Ok(_) if closed => Request::Plain,
            // A ttcp goes on or closes; a few letters and silence are no test, and take no place.
            Ok(Opening::Plain) if self.bytes.len() >= HEADER_BYTES_MAX => Request::Plain,
            Ok(Opening::Plain | Opening::Needs(_)) => return,
            Err(error) => return self.fail(Reason::Peer(error)),
        };
        self.request = request;
        self.out.push_back(Output::Decide(Box::new(request)));
        self.stage = Stage::Deciding;
    }

    fn decided(&mut self, now: MonoTime, terms: Terms) {
        (self.begin, self.terms) = (now, Some(terms));
        match self.request {
            Request::Bounce(_) => {
                self.stage = Stage::Bouncing { idle_at: now + IDLE, held: None };
                return self.bounce(now);
            }
            Request::Header(header)
                if header.wants_answer
                    && !matches!(header.mode, Mode::Reverse | Mode::FullDuplex) =>
            {
                let answer = Answer { version: WIRE_VERSION };
                self.out.push_back(Output::Send(answer.to_bytes().to_vec()));
            }
            _ => {}
        }
        self.out.push_back(Output::Open);
        self.stage = Stage::Opening { until: now + OPENING_MAX };
    }

    fn opened(&mut self, now: MonoTime) {
        self.out.extend([Output::Begin, Output::Start]);
        self.begin = now;
        self.beat = self.terms.map(|terms| Beat::new(now, terms.interval, Duration::ZERO));
        self.moved = 0;
        self.stage = Stage::Running { idle_at: now + IDLE };
    }

    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        match &mut self.stage {
            Stage::FirstBytes { until } if now >= *until => {
                let awaited = "first bytes of";
                self.fail(Reason::Silent { awaited, within: FIRST_BYTES });
            }
            Stage::Opening { until } if now >= *until => {
                let awaited = "open streams to";
                self.fail(Reason::Silent { awaited, within: OPENING_MAX });
            }
            Stage::Running { .. } | Stage::Leaving { .. } if flow.done => self.ended(now),
            Stage::Running { idle_at } => {
                if flow.moved != self.moved {
                    (self.moved, *idle_at) = (flow.moved, now + IDLE);
                }
                let over = now >= *idle_at || self.is_overdue(now);
                if let Some(beat) = &mut self.beat {
                    beat.due(now, &mut self.out);
                }
                if over {
                    self.leave(now);
                }
            }
            Stage::Leaving { until } if now >= *until => self.ended(now),
            Stage::Bouncing { idle_at, .. } => {
                if now >= *idle_at || self.is_overdue(now) {
                    return self.finish();
                }
                self.bounce(now);
            }
            _ => {}
        }
    }

    fn is_overdue(&self, now: MonoTime) -> bool {
        self.terms.is_some_and(|terms| now >= self.begin + terms.span_max)
    }

    /// Nobody waits for more of this test; what was counted is its result.
    fn leave(&mut self, now: MonoTime) {
        self.out.push_back(Output::Halt);
        self.sends_back = true;
        self.stage = Stage::Leaving { until: now + LEAVE_MAX };
    }

    /// Every stream is over.
    fn ended(&mut self, now: MonoTime) {
        self.out.extend([Output::Sample, Output::Ended]);
        if self.request.mode() == Mode::TradeOff && !std::mem::replace(&mut self.sends_back, true) {
            self.begin = now;
            self.out.push_back(Output::Open);
            self.stage = Stage::Opening { until: now + OPENING_MAX };
        } else {
            self.finish();
        }
    }

    /// Sends requests back, each once its time has come.
    fn bounce(&mut self, now: MonoTime) {
        let (Request::Bounce(first), Some(terms)) = (self.request, self.terms) else { return };
        let (length, reply) = (first.request_bytes as usize, first.reply_bytes as usize);
        while let Stage::Bouncing { held, .. } = self.stage {
            let Some((received, due)) = held else {
                if self.bytes.len() < length {
                    return;
                }
                if Bounce::parse(&self.bytes[..length]).is_none_or(|asked| asked.last) {
                    return self.finish();
                }
                let hold = Duration::from_micros(first.hold_us.into()).min(HOLD_MAX);
                self.stage = Stage::Bouncing { idle_at: now + IDLE, held: Some((now, now + hold)) };
                continue;
            };
            if now < due {
                return;
            }
            let mut request: Vec<u8> = self.bytes.drain(..length).collect();
            let wall_us =
                |at: MonoTime| at.nanos().saturating_add_signed(terms.wall_offset_ns) / 1000;
            request.resize(length.max(reply), 0);
            Bounce::stamp(&mut request, wall_us(received), wall_us(now));
            request.truncate(reply);
            self.out.push_back(Output::Send(request));
            self.bounced.replies += 1;
            self.bounced.request_bytes += length as u64;
            self.bounced.span_ns = received.nanos_since(self.begin);
            self.stage = Stage::Bouncing { idle_at: now + IDLE, held: None };
        }
    }

    fn finish(&mut self) {
        if matches!(self.stage, Stage::Bouncing { .. }) {
            self.out.push_back(Output::News(self.bounced));
        }
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, reason: Reason<HeaderError>) {
        self.out.push_back(Output::Failed(reason));
        self.stage = Stage::Over;
    }
}

impl Machine for Server {
    type Request = Request;
    type Terms = Terms;
    type Refusal = Infallible;
    type Report = Infallible;
    type News = Bounced;
    type PeerFault = HeaderError;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                match self.stage {
                    Stage::FirstBytes { .. } => self.identify(false),
                    _ => self.bounce(now),
                }
            }
            Input::Closed => match self.stage {
                Stage::FirstBytes { .. } => self.identify(true),
                Stage::Bouncing { .. } => self.finish(),
                _ => {}
            },
            Input::Decided(Ok(terms)) => self.decided(now, terms),
            Input::Opened => self.opened(now),
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => match self.stage {
                Stage::FirstBytes { .. } | Stage::Deciding | Stage::Opening { .. } => {
                    self.fail(Reason::Stopped);
                }
                Stage::Running { .. } => self.leave(now),
                Stage::Bouncing { .. } => self.finish(),
                Stage::Leaving { .. } | Stage::Over => {}
            },
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Tell(_) => {}
            Input::Decided(Err(never)) => match never {},
            Input::Counted(never) => match *never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let wake_at = match self.stage {
            Stage::FirstBytes { until } | Stage::Opening { until } | Stage::Leaving { until } => {
                Some(until)
            }
            Stage::Running { .. } => self.beat.map(|beat| beat.next()),
            Stage::Bouncing { held, .. } => held.map(|(_, due)| due),
            Stage::Deciding | Stage::Over => None,
        };
        let reads = match self.stage {
            Stage::FirstBytes { .. } => true,
            Stage::Bouncing { held, .. } => held.is_none(),
            _ => false,
        };
        // A latency test is woken by its requests.
        let look = if matches!(self.stage, Stage::Bouncing { .. }) { LOOK * 10 } else { LOOK };
        Wants { wake_at, look, reads }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
