//! Control messages. Fields are added, never renamed; unknown ones are ignored.

use std::time::Duration;

use linerate_core::record::{
    DatagramsSent, Direction, End, EndReport, Finish, Means, ReceiveWith, SearchNews, SendWith,
    TcpDirections,
};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

use super::{UdpRequest, UdpSample};

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
    UdpRequest(UdpRequest),
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
            Self::UdpRequest(_) => "udp_request",
            Self::UdpInterval { .. } => "udp_interval",
            Self::UdpSent { .. } => "udp_sent",
            Self::UdpSearch(_) => "udp_search",
            Self::Abort { .. } => "abort",
            Self::Bye => "bye",
        }
    }
}

/// Optional parts of requests by name: a server of this version heeds them all.
pub const FEATURES: [&str; 7] = [READ_BYTES, BACKGROUND, MEANS, VERIFY, MPTCP, ROUNDS, SEARCH];
/// The name of a search in [`FEATURES`].
pub const SEARCH: &str = "search";
const READ_BYTES: &str = "read_bytes";
const BACKGROUND: &str = "background";
const MEANS: &str = "means";
const VERIFY: &str = "verify";
const MPTCP: &str = "mptcp";
const ROUNDS: &str = "rounds";

/// Processors that a request may name for one end.
const CPUS_MAX: usize = 1024;
/// Longest time that the rounds of one connection may be planned for.
const FOLLOW_NS_MAX: u64 = 2 * 86_400_000_000_000;

/// The test that a client wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which ways data goes.
    pub directions: TcpDirections,
    /// Connections in each direction, 1 … 128.
    pub streams: u16,
    /// When senders end.
    pub finish: Finish,
    /// Span at the start that does not count.
    pub omit_ns: u64,
    /// Between interval messages, at least 10 ms.
    pub interval_ns: u64,
    /// Bytes given to one write(), 1 … 16 MiB.
    pub buffer_bytes: u32,
    /// Socket buffers to ask for.
    pub window_bytes: Option<u64>,
    /// Segment size to ask for.
    pub mss_bytes: Option<u32>,
    /// TCP_NODELAY on sending sockets.
    pub nodelay: bool,
    /// Congestion control of sending sockets.
    pub congestion_control: Option<String>,
    /// Pace of each stream in payload bit/s.
    pub pace_bps: Option<u64>,
    /// Code point of sent packets.
    pub dscp: Option<u8>,
    /// Send by sendfile.
    pub zero_copy: bool,
    /// Bytes that one read() of a receiver may take.
    #[serde(default)]
    pub read_bytes: Option<u32>,
    /// Payload bit/s of a flow against the direction of the test.
    #[serde(default)]
    pub background_bps: Option<u64>,
    /// How both ends move data.
    #[serde(default, skip_serializing_if = "Means::is_default")]
    pub means: Means,
    /// Further requests follow on the same connection, in the same place, and are planned to take
    /// this long together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_ns: Option<u64>,
    /// Names the client's running kernel, so that the server notices both ends on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
}

/// The plainest test: one stream to the server for ten seconds, in the kernel's own manner.
impl Default for Request {
    fn default() -> Self {
        Self {
            directions: TcpDirections::Up,
            streams: 1,
            finish: Finish::TimeNs(10_000_000_000),
            omit_ns: 0,
            interval_ns: 1_000_000_000,
            buffer_bytes: 512 << 10,
            window_bytes: None,
            mss_bytes: None,
            nodelay: false,
            congestion_control: None,
            pace_bps: None,
            dscp: None,
            zero_copy: false,
            read_bytes: None,
            background_bps: None,
            means: Means::default(),
            follow_ns: None,
            host_id: None,
        }
    }
}

/// A request outside the protocol's own bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} of {value} is outside {bounds}")]
pub struct RequestError {
    /// Which field.
    pub field: &'static str,
    /// What was asked, with its unit.
    pub value: String,
    /// What is allowed.
    pub bounds: &'static str,
}

impl Request {
    /// Holds every field against the bounds of the protocol; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), RequestError> {
        let within = |field, value: u64, low: u64, high: u64, bounds| {
            let fits = (low..=high).contains(&value);
            let spans = ["interval", "omitted span", "time"];
            let value = match spans.contains(&field) {
                true => print_span(Duration::from_nanos(value)),
                false => value.to_string(),
            };
            if fits { Ok(()) } else { Err(RequestError { field, value, bounds }) }
        };
        const DAY_NS: u64 = 86_400_000_000_000;
        within("streams", self.streams.into(), 1, 128, "1 … 128")?;
        within("buffer", self.buffer_bytes.into(), 1, 16 << 20, "1 byte … 16 MiB")?;
        within("interval", self.interval_ns, 10_000_000, DAY_NS, "10 ms … 1 day")?;
        within("omitted span", self.omit_ns, 0, 600_000_000_000, "0 … 600 s")?;
        within("window", self.window_bytes.unwrap_or(1), 1, 2 << 30, "1 byte … 2 GiB")?;
        within("segment size", self.mss_bytes.unwrap_or(536).into(), 48, 65_495, "48 … 65495")?;
        within("code point", self.dscp.unwrap_or(0).into(), 0, 63, "0 … 63")?;
        within("read size", self.read_bytes.unwrap_or(1).into(), 1, 16 << 20, "1 byte … 16 MiB")?;
        let background = self.background_bps;
        within("background", background.unwrap_or(1), 1, u64::MAX, "1 bit/s … 18 Ebit/s")?;
        if background.is_some() && self.directions == TcpDirections::Both {
            let value = "a test both ways".to_owned();
            let bounds = "a test with one direction";
            return Err(RequestError { field: "background", value, bounds });
        }
        self.check_means()?;
        within("pace", self.pace_bps.unwrap_or(1), 1, u64::MAX, "1 bit/s … 18 Ebit/s")?;
        match self.finish {
            Finish::TimeNs(ns) => within("time", ns, 1_000_000, DAY_NS, "1 ms … 1 day"),
            Finish::Bytes(bytes) => within("bytes", bytes, 1, 1 << 60, "1 byte … 1 EiB"),
            Finish::Buffers(count) => within("buffers", count, 1, 1 << 44, "1 … 2^44"),
        }
    }

    fn check_means(&self) -> Result<(), RequestError> {
        let error = |field, value: String, bounds| Err(RequestError { field, value, bounds });
        let cpus = self.means.client_cpus.len().max(self.means.server_cpus.len());
        if cpus > CPUS_MAX {
            return error("processors", cpus.to_string(), "at most 1024");
        }
        let call = self.send_bytes();
        if !(1..=16 << 20).contains(&call) {
            return error("sending call", call.to_string(), "1 byte … 16 MiB");
        }
        let follow = self.follow_ns.filter(|ns| *ns > FOLLOW_NS_MAX);
        if let Some(ns) = follow {
            let value = print_span(Duration::from_nanos(ns));
            return error("time of the rounds that follow", value, "0 … 2 days");
        }
        let (send, receive) = (self.send_with(), self.means.receive_with);
        let plain = send == SendWith::Write && receive == ReceiveWith::Read;
        if self.means.verify_seed.is_some() && !plain {
            let value = format!("{send} and {receive}");
            return error("check of contents", value, "write and read, which touch every byte");
        }
        Ok(())
    }

    /// Bytes of one sending call.
    pub fn send_bytes(&self) -> u32 {
        self.means.send_bytes.unwrap_or(self.buffer_bytes)
    }

    /// How the sending end hands over its bytes.
    pub const fn send_with(&self) -> SendWith {
        if self.zero_copy { SendWith::Sendfile } else { self.means.send_with }
    }

    /// The directions that the test has.
    pub const fn each_direction(&self) -> &'static [Direction] {
        match self.directions {
            TcpDirections::Up => &[Direction::Up],
            TcpDirections::Down => &[Direction::Down],
            TcpDirections::Both => &[Direction::Up, Direction::Down],
        }
    }

    /// The test that the flow in the background is by itself: one stream against the direction of
    /// the test, paced, with buffers of the kernel's choice, that goes on until it is stopped.
    pub fn background(&self) -> Option<Self> {
        let pace_bps = Some(self.background_bps?);
        let directions = match self.directions {
            TcpDirections::Up => TcpDirections::Down,
            TcpDirections::Down => TcpDirections::Up,
            TcpDirections::Both => return None,
        };
        Some(Self {
            directions,
            streams: 1,
            finish: Finish::TimeNs(u64::MAX),
            window_bytes: None,
            mss_bytes: None,
            pace_bps,
            zero_copy: false,
            read_bytes: None,
            background_bps: None,
            means: Means::default(),
            follow_ns: None,
            ..self.clone()
        })
    }

    /// Names of the optional parts that the test has and that older servers pass over.
    pub fn features(&self) -> impl Iterator<Item = &'static str> {
        let read = self.read_bytes.is_some() && self.directions != TcpDirections::Down;
        let background = self.background_bps.is_some();
        let means = &self.means;
        let asked = [
            (read, READ_BYTES),
            (background, BACKGROUND),
            (means.moves_otherwise(), MEANS),
            (means.verify_seed.is_some(), VERIFY),
            (means.mptcp, MPTCP),
            (self.follow_ns.is_some(), ROUNDS),
        ];
        asked.into_iter().filter_map(|(has, name)| has.then_some(name))
    }

    /// Bytes that each direction sends, where that ends the test.
    pub const fn byte_budget(&self) -> Option<u64> {
        match self.finish {
            Finish::TimeNs(_) => None,
            Finish::Bytes(bytes) => Some(bytes),
            Finish::Buffers(count) => Some(count.saturating_mul(self.buffer_bytes as u64)),
        }
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
}

/// Why a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefuseCode {
    /// Other tests are running.
    Busy,
    /// The request is beyond the server's limits.
    Limit,
    /// The request is outside the protocol.
    Malformed,
    /// The server's host cannot do it.
    Unable,
}

/// One stream at one end at one moment. Counters run from the start of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
}
