//! Control messages. Fields are added, never renamed; unknown ones are ignored.

use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramsSent, Direction, End, EndReport, SearchNews, TcpDirections, TcpTest,
    TestError, Trace, UdpTest,
};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

use super::{Nonce, Proof, TraceRequest, TrainReport, TrainRound, TrainsRequest};

/// One control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Client: the test it wants.
    Request(Request),
    /// Server: it may; connect the data streams.
    Accept(Box<Accept>),
    /// Server: it may not.
    Refuse(Refuse),
    /// Server: every data stream has arrived.
    Ready,
    /// Client: both ends begin now.
    Start,
    /// Server: what its streams look like at the end of an interval.
    Interval {
        /// One sample per stream.
        samples: Vec<FlowSample>,
    },
    /// Client: stop sending before the planned end.
    Stop,
    /// Server: the test is over; its account of every stream.
    Result {
        /// One report per stream.
        reports: Vec<EndReport>,
    },
    /// Client: the UDP test it wants.
    UdpRequest {
        /// What both ends have to know of it.
        #[serde(flatten)]
        test: UdpTest,
        /// The client shows a token.
        #[serde(default, skip_serializing_if = "is_false")]
        login: bool,
    },
    /// Server: show the token by this.
    Challenge {
        /// Random, for this login alone.
        nonce: Nonce,
    },
    /// Client: the token, covered.
    Proof(Proof),
    /// Server: what its UDP streams look like at the end of an interval.
    UdpInterval {
        /// One sample per stream.
        samples: Vec<UdpSample>,
    },
    /// Either end: its UDP senders are done, and what they sent.
    UdpSent {
        /// One entry per stream that it sent.
        streams: Vec<DatagramsSent>,
    },
    /// Server: what its end of a search has to add.
    UdpSearch(SearchNews),
    /// Client: it wants to send and to get trains of probe datagrams.
    TrainsRequest(TrainsRequest),
    /// Client: the next trains; both ends begin at once.
    TrainRound(TrainRound),
    /// Server: what its end saw of one of them.
    TrainReport(TrainReport),
    /// Client: it wants to know the path from the server to it.
    TraceRequest(TraceRequest),
    /// Server: what it found of that path.
    TraceFound {
        /// The hops with their samples.
        trace: Box<Trace>,
    },
    /// Either end: the test cannot go on.
    Abort {
        /// Why.
        reason: String,
    },
    /// Client: nothing more follows.
    Bye,
}

impl Message {
    /// Its name on the wire.
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

    /// The same, where it is a request, with the word that the client shows a token.
    #[must_use]
    pub(super) fn with_login(mut self) -> Self {
        match &mut self {
            Self::Request(Request { login, .. })
            | Self::UdpRequest { login, .. }
            | Self::TrainsRequest(TrainsRequest { login, .. })
            | Self::TraceRequest(TraceRequest { login, .. }) => *login = true,
            _ => {}
        }
        self
    }
}

pub(super) const fn is_false(it: &bool) -> bool {
    !*it
}

/// The name of a request for trains: a server from before them does not know it, and says so with
/// this word.
pub const TRAINS_REQUEST: &str = "trains_request";

/// Optional parts of requests by name: a server of this version heeds them all.
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

/// Longest time that the rounds of one connection may be planned for.
const FOLLOW_NS_MAX: u64 = 2 * 86_400_000_000_000;

/// The test that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What both ends have to know of it.
    #[serde(flatten)]
    pub test: TcpTest,
    /// Further requests follow on the same connection, in the same place, and are planned to take
    /// this long together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_ns: Option<u64>,
    /// Names the client's running kernel, so that the server notices both ends on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// The client shows a token.
    #[serde(default, skip_serializing_if = "is_false")]
    pub login: bool,
}

impl Request {
    /// Holds every field against the bounds of the protocol; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), TestError> {
        self.test.check()?;
        let Some(ns) = self.follow_ns.filter(|ns| *ns > FOLLOW_NS_MAX) else { return Ok(()) };
        let (field, bounds) = ("time of the rounds that follow", "0 … 2 days");
        Err(TestError { field, value: print_span(Duration::from_nanos(ns)), bounds })
    }

    /// Names of the optional parts that the test has and that older servers pass over.
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

/// The server's yes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accept {
    /// 32 hexadecimal digits for the data hellos.
    pub token: String,
    /// Where to connect data streams.
    pub data_port: u16,
    /// Where to open the streams of a UDP test, one port each, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp_ports: Vec<u16>,
    /// Names the running kernel, so that both ends on one host are noticed.
    pub host_id: Option<String>,
    /// What the server's host is.
    pub end: End,
    /// Optional parts of requests that this server heeds.
    #[serde(default)]
    pub features: Vec<String>,
}

/// The server's no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// Why, for programs.
    pub code: RefuseCode,
    /// Why, for people.
    pub reason: String,
    /// When another try may succeed.
    pub retry_after_ms: Option<u64>,
    /// A test of this kind that would keep the client's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<Fitting>,
}

impl Refuse {
    /// A no with its reason alone.
    pub const fn new(code: RefuseCode, reason: String) -> Self {
        Self { code, reason, retry_after_ms: None, fits: None }
    }
}

/// The flags of a test that keeps all limits of a client at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fitting {
    /// Over UDP, else over TCP.
    pub over_udp: bool,
    /// Data goes both ways.
    pub both_ways: bool,
    /// Time of sending, where the client has a longest one.
    pub time_ms: Option<u64>,
    /// Rate of each stream, where the client has a highest one.
    pub stream_bps: Option<u64>,
    /// Streams of each direction.
    pub streams: u16,
}

/// Why a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefuseCode {
    /// Other tests are running.
    Busy,
    /// The request is beyond the server's limits.
    Limit,
    /// The server's policy does not let this client do it.
    Policy,
    /// The request is outside the protocol.
    Malformed,
    /// The server's host cannot do it.
    Unable,
}

/// [`DatagramCounts`] of one stream, with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSample {
    /// Which way the stream's data goes.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// What was counted.
    pub counts: DatagramCounts,
    /// Processor time of the stream's data thread so far.
    pub cpu_ns: Option<u64>,
    /// Time so far that this thread waited for a processor.
    pub run_queue_wait_ns: Option<u64>,
}

/// One stream at one end at one moment. Counters run from the start of the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Which way the stream's data goes.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// Payload bytes so far: written by a sender, read by a receiver.
    pub bytes: u64,
    /// Segments retransmitted so far.
    pub retransmits: Option<u64>,
    /// Congestion window.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// Window that the peer offers.
    pub send_window_bytes: Option<u64>,
    /// Window that this end advertises.
    pub receive_window_bytes: Option<u64>,
    /// Delivery rate.
    pub delivery_rate_bps: Option<u64>,
    /// Mean deviation of the round-trip time.
    #[serde(default)]
    pub rtt_var_ns: Option<u64>,
    /// Path MTU.
    #[serde(default)]
    pub pmtu_bytes: Option<u32>,
    /// Processor time of the stream's data thread so far.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Time so far that this thread waited for a processor.
    #[serde(default)]
    pub run_queue_wait_ns: Option<u64>,
    /// Time so far that this thread waited in a call that writes or reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<u64>,
    /// Time so far that it slept to keep a pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_ns: Option<u64>,
    /// What else the kernel tells of the connection, in the order of spec/native.md: that of a
    /// sender or of a receiver. An older end tells fewer, a newer one more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Option<u64>>,
}
