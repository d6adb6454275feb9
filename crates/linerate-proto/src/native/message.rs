//! Control messages of the native protocol. Fields are added, never renamed; unknown fields are
//! ignored.

use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramsSent, Direction, EndReport, MeasurementEnd, SearchNews, TcpDirections,
    TcpTest, TestError, TraceResult, UdpTest,
};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

use super::{Nonce, Proof, TraceRequest, TrainReport, TrainRound, TrainsRequest};

/// A control message in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Client: request for a TCP test.
    Request(NativeTcpTestRequest),
    /// Server: the test is accepted; connect the data streams.
    Accept(Box<Accept>),
    /// Server: the test is refused.
    Refuse(Refuse),
    /// Server: every data stream is connected.
    Ready,
    /// Client: both ends start now.
    Start,
    /// Server: samples of its TCP streams at the end of an interval.
    Interval {
        /// One sample per stream.
        samples: Vec<FlowSample>,
    },
    /// Client: stop sending before the planned end.
    Stop,
    /// Server: the test is over; its counters of every stream.
    Result {
        /// One report per stream.
        reports: Vec<EndReport>,
    },
    /// Client: request for a UDP test.
    UdpRequest {
        /// Parameters of the test.
        #[serde(flatten)]
        test: UdpTest,
        /// True if the client will log in with a token.
        #[serde(default, skip_serializing_if = "is_false")]
        login: bool,
    },
    /// Server: nonce for the client's login.
    Challenge {
        /// Random number for this login only.
        nonce: Nonce,
    },
    /// Client: the encrypted token.
    Proof(Proof),
    /// Server: samples of its UDP streams at the end of an interval.
    UdpInterval {
        /// One sample per stream.
        samples: Vec<UdpSample>,
    },
    /// Either end: its UDP senders are done, with their counters.
    UdpSent {
        /// Datagrams of each stream that this end sent.
        streams: Vec<DatagramsSent>,
    },
    /// Server: news of its end of a rate search.
    UdpSearch(SearchNews),
    /// Client: request for trains of probe datagrams in both directions.
    TrainsRequest(TrainsRequest),
    /// Client: the trains of the next round; both ends start at once.
    TrainRound(TrainRound),
    /// Server: timestamps of one train at its end.
    TrainReport(TrainReport),
    /// Client: request to trace the path from the server to the client.
    TraceRequest(TraceRequest),
    /// Server: the trace of that path.
    TraceFound {
        /// The hops with their samples.
        trace: Box<TraceResult>,
    },
    /// Either end: the test is aborted.
    Abort {
        /// Reason for people.
        reason: String,
    },
    /// Client: no further request follows.
    Bye,
}

impl Message {
    /// Name of the message on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Request(_) => "request",
            Self::Accept(_) => "accept",
            Self::Refuse(_) => "refuse",
            Self::Ready => "ready",
            Self::Start => "start",
            Self::Interval { .. } => "interval",
            Self::Stop => "stop",
            Self::Result { .. } => "result",
            Self::UdpRequest { .. } => "udp_request",
            Self::Challenge { .. } => "challenge",
            Self::Proof(_) => "proof",
            Self::UdpInterval { .. } => "udp_interval",
            Self::UdpSent { .. } => "udp_sent",
            Self::UdpSearch(_) => "udp_search",
            Self::TrainsRequest(_) => TRAINS_REQUEST,
            Self::TrainRound(_) => "train_round",
            Self::TrainReport(_) => "train_report",
            Self::TraceRequest(_) => "trace_request",
            Self::TraceFound { .. } => "trace_found",
            Self::Abort { .. } => "abort",
            Self::Bye => "bye",
        }
    }

    /// The same message; a request announces that the client will log in with a token.
    #[must_use]
    pub(super) fn with_login(mut self) -> Self {
        match &mut self {
            Self::Request(NativeTcpTestRequest { login, .. })
            | Self::UdpRequest { login, .. }
            | Self::TrainsRequest(TrainsRequest { login, .. })
            | Self::TraceRequest(TraceRequest { login, .. }) => *login = true,
            _ => {}
        }
        self
    }
}

pub(super) const fn is_false(value: &bool) -> bool {
    !*value
}

/// Name of a request for trains. An older server does not know it and names it in its error.
pub const TRAINS_REQUEST: &str = "trains_request";

/// Names of the optional parts of requests that a server of this version supports.
pub const FEATURES: [&str; 10] =
    [READ_BYTES, READ_PACE, BACKGROUND, MEANS, VERIFY, MPTCP, ROUNDS, SEARCH, DSCPS, OTHER_PORT];
/// The name of a search in [`FEATURES`].
pub const SEARCH: &str = "search";
const READ_BYTES: &str = "read_bytes";
const READ_PACE: &str = "read_pace";
const DSCPS: &str = "dscps";
const BACKGROUND: &str = "background";
const MEANS: &str = "means";
const VERIFY: &str = "verify";
const MPTCP: &str = "mptcp";
const ROUNDS: &str = "rounds";
const OTHER_PORT: &str = "other_port";

/// Longest planned time of all rounds of one connection.
const FOLLOW_NS_MAX: u64 = 2 * 86_400_000_000_000;

/// Request for a TCP test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NativeTcpTestRequest {
    /// Parameters of the test.
    #[serde(flatten)]
    pub test: TcpTest,
    /// Planned time of the further rounds that follow on the same connection, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_ns: Option<u64>,
    /// Identifies the client's running kernel, so that the server detects both ends on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// True if the client will log in with a token.
    #[serde(default, skip_serializing_if = "is_false")]
    pub login: bool,
}

impl NativeTcpTestRequest {
    /// Checks every field against the bounds of the protocol; a server may have lower limits.
    /// # Errors
    /// The first field out of bounds.
    pub fn check_bounds(&self) -> Result<(), TestError> {
        self.test.check()?;
        let Some(ns) = self.follow_ns.filter(|ns| *ns > FOLLOW_NS_MAX) else { return Ok(()) };
        let (field, bounds) = ("time of the rounds that follow", "0 … 2 days");
        Err(TestError { field, value: print_span(Duration::from_nanos(ns)), bounds })
    }

    /// Names of the optional parts of the test, which older servers ignore.
    pub fn features(&self) -> impl Iterator<Item = &'static str> {
        let receives = self.test.directions != TcpDirections::Down;
        let read = self.test.read_bytes.is_some() && receives;
        let read_pace = self.test.read_pace.is_some() && receives;
        let background = self.test.background.is_some();
        let means = &self.test.means;
        let asked = [
            (read, READ_BYTES),
            (read_pace, READ_PACE),
            (!self.test.dscps.is_empty(), DSCPS),
            (background, BACKGROUND),
            (means.moves_otherwise(), MEANS),
            (means.verify_seed.is_some(), VERIFY),
            (means.mptcp, MPTCP),
            (self.test.other_port, OTHER_PORT),
            (self.follow_ns.is_some(), ROUNDS),
        ];
        asked.into_iter().filter_map(|(has, name)| has.then_some(name))
    }
}

/// The server's acceptance of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accept {
    /// 32 hexadecimal digits for the data hellos.
    pub token: String,
    /// TCP port for the data streams.
    pub data_port: u16,
    /// UDP ports of the streams of a UDP test, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp_ports: Vec<u16>,
    /// Identifies the server's running kernel, so that both ends on one host are detected.
    pub host_id: Option<String>,
    /// Facts of the server's host.
    pub end: MeasurementEnd,
    /// Optional parts of requests that this server supports.
    #[serde(default)]
    pub features: Vec<String>,
}

/// The server's refusal of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// Reason for programs.
    pub code: RefuseCode,
    /// Reason for people.
    pub reason: String,
    /// Time after which another try may succeed, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// A test of this kind within the client's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<Fitting>,
}

impl Refuse {
    /// A refusal with no more than its reason.
    pub const fn new(code: RefuseCode, reason: String) -> Self {
        Self { code, reason, retry_after_ms: None, fits: None }
    }
}

/// Flags of a test within all limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fitting {
    /// UDP, else TCP.
    pub over_udp: bool,
    /// Data in both directions.
    pub both_ways: bool,
    /// Time of sending in milliseconds, where the policy limits it.
    pub time_ms: Option<u64>,
    /// Rate of each stream in bit/s, where the policy limits it.
    pub stream_bps: Option<u64>,
    /// Streams in each direction.
    pub streams: u16,
}

/// Reason for which a server refuses a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefuseCode {
    /// Other tests are running.
    Busy,
    /// The request is beyond the server's limits.
    Limit,
    /// The server's policy does not allow it to this client.
    Policy,
    /// The request is outside the protocol.
    Malformed,
    /// The server's host cannot do it.
    Unable,
}

/// [`DatagramCounts`] of one stream at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSample {
    /// Direction of the stream's data.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// Counters so far.
    pub counts: DatagramCounts,
    /// Processor time of the stream's data thread so far.
    pub cpu_ns: Option<u64>,
    /// Time so far that the data thread waited in the run queue for a processor.
    pub run_queue_wait_ns: Option<u64>,
}

/// Counters of one TCP stream at one end at one time, from the start of the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Direction of the stream's data.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// Payload bytes so far: written by a sender, read by a receiver.
    pub bytes: u64,
    /// Segments retransmitted so far.
    pub retransmits: Option<u64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Receive window that the peer advertises.
    pub send_window_bytes: Option<u64>,
    /// Receive window that this end advertises.
    pub receive_window_bytes: Option<u64>,
    /// Delivery rate of the kernel in bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// Mean deviation of the round-trip time.
    #[serde(default)]
    pub rtt_var_ns: Option<u64>,
    /// Path MTU in bytes.
    #[serde(default)]
    pub pmtu_bytes: Option<u32>,
    /// Processor time of the stream's data thread so far.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Time so far that the data thread waited in the run queue for a processor.
    #[serde(default)]
    pub run_queue_wait_ns: Option<u64>,
    /// Time so far that the data thread was blocked in calls that write or read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// Time so far that the data thread slept to keep its pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_ns: Option<u64>,
    /// Further kernel counters of the connection, in the order of spec/native.md for a sender or a
    /// receiver. Older ends send fewer, newer ends more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Option<u64>>,
}
