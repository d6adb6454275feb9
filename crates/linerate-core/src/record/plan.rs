//! What is to be measured, with every default filled in. A plan alone repeats a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named::named;
use super::{BenchPlan, Direction, Means, SimulatePlan, UdpPlan};
use crate::units::BitRate;

/// One measurement to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plan {
    /// TCP throughput.
    Tcp(TcpPlan),
    /// Round-trip times.
    Ping(PingPlan),
    /// UDP throughput.
    Udp(UdpPlan),
    /// TCP throughput by a model in virtual time: no packet is sent.
    Simulate(SimulatePlan),
    /// A benchmark of a device by raw frames.
    Bench(BenchPlan),
}

impl Plan {
    /// Whether it asks two hosts to exchange packets; a model does not.
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Simulate(_))
    }
}

/// Internet Protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IP version 4.
    V4,
    /// IP version 6.
    V6,
}

/// When a throughput test ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// After this time (after the omitted span).
    TimeNs(u64),
    /// After this many payload bytes of all streams of a direction together.
    Bytes(u64),
    /// After this many buffers of `buffer_bytes`, all streams of a direction together.
    Buffers(u64),
}

/// Which ways data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TcpDirections {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
    /// Both at once, on separate connections.
    Both,
}

impl TcpDirections {
    /// Each of them.
    pub const fn each(self) -> &'static [Direction] {
        match self {
            Self::Up => &[Direction::Up],
            Self::Down => &[Direction::Down],
            Self::Both => &[Direction::Up, Direction::Down],
        }
    }
}

/// A TCP throughput test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpPlan {
    /// Whose protocol the server speaks; null is this program's own.
    #[serde(default)]
    pub via: Option<Via>,
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Only this address family.
    pub family: Option<Family>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// Which ways data goes.
    pub directions: TcpDirections,
    /// Connections in each direction.
    pub streams: u16,
    /// When it ends.
    pub finish: Finish,
    /// Span at the start that is left out of the result.
    pub omit_ns: u64,
    /// Length of a reporting interval.
    pub interval_ns: u64,
    /// Bytes given to one write().
    pub buffer_bytes: u32,
    /// Socket buffer to ask for at both ends (SO_SNDBUF and SO_RCVBUF); null leaves the kernel's
    /// autotuning on.
    pub window_bytes: Option<u64>,
    /// Maximum segment size to ask for.
    pub mss_bytes: Option<u32>,
    /// Set TCP_NODELAY.
    pub nodelay: bool,
    /// Congestion control to ask for at the sending end.
    pub congestion_control: Option<String>,
    /// Pace of each stream in payload bit/s; null is as fast as possible.
    pub pace: Option<BitRate>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// Send from the page cache (sendfile) instead of copying: as `means.send_with` sendfile.
    pub zero_copy: bool,
    /// Bytes that one read() may take; null is the program's own choice, which wakes up rarely.
    #[serde(default)]
    pub read_bytes: Option<u32>,
    /// Payload bit/s of a flow that goes against the test's direction while it runs; null is none.
    #[serde(default)]
    pub background: Option<BitRate>,
    /// How both ends move data.
    #[serde(default)]
    pub means: Means,
    /// Choose how data is moved, and where the data threads run, from short trials.
    #[serde(default)]
    pub fast: bool,
    /// How long to wait for the server to answer.
    pub connect_timeout_ns: u64,
}

impl Default for TcpPlan {
    fn default() -> Self {
        Self {
            via: None,
            host: "localhost".to_owned(),
            port: DEFAULT_PORT,
            family: None,
            bind: None,
            directions: TcpDirections::Up,
            streams: 1,
            finish: Finish::TimeNs(10_000_000_000),
            omit_ns: 0,
            interval_ns: 1_000_000_000,
            buffer_bytes: 512 * 1024,
            window_bytes: None,
            mss_bytes: None,
            nodelay: false,
            congestion_control: None,
            pace: None,
            dscp: None,
            zero_copy: false,
            read_bytes: None,
            background: None,
            means: Means::default(),
            fast: false,
            connect_timeout_ns: 5_000_000_000,
        }
    }
}

/// Port of `linerate serve`, for TCP control and data and for UDP echo.
pub const DEFAULT_PORT: u16 = 5210;

/// Another program whose protocol this one speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// iperf 3.
    Iperf3,
    /// iperf 2.
    Iperf2,
    /// nuttcp.
    Nuttcp,
    /// ttcp and its descendants without a protocol of their own.
    Ttcp,
}

named!(Via { Iperf3 = "iperf3", Iperf2 = "iperf2", Nuttcp = "nuttcp", Ttcp = "ttcp" });

impl Via {
    /// The port where its servers listen unless told otherwise (of nuttcp, the control port).
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Iperf3 => 5201,
            Self::Iperf2 | Self::Ttcp => 5001,
            Self::Nuttcp => 5000,
        }
    }
}

/// How probes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PingTransport {
    /// ICMP echo, answered by the peer's kernel.
    Icmp,
    /// UDP, answered by `linerate serve`.
    Udp,
}

/// When the next probe leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PingMode {
    /// One every `interval_ns`, whether or not the last was answered.
    Paced,
    /// As soon as the last was answered or given up (stop and wait).
    Flood,
    /// As soon as fewer than this many are unanswered.
    Window(u16),
}

/// How the prober waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Spin while flooding, sleep while pacing.
    Auto,
    /// Ask again and again without sleeping: lowest noise, one core busy.
    Spin,
    /// Sleep until the kernel wakes the prober.
    Block,
}

/// A measurement of round-trip times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingPlan {
    /// Name or address of the target.
    pub host: String,
    /// How probes travel.
    pub transport: PingTransport,
    /// UDP port of the responder.
    pub port: u16,
    /// Only this address family.
    pub family: Option<Family>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// Payload bytes, one run for each (as `ping -s`: the ICMP or UDP header is not counted).
    pub sizes_bytes: Vec<u32>,
    /// Probes of each size; null goes on until stopped.
    pub count: Option<u64>,
    /// Time between probes when paced.
    pub interval_ns: u64,
    /// When the next probe leaves.
    pub mode: PingMode,
    /// After this long a probe counts as lost.
    pub timeout_ns: u64,
    /// Each size ends after this long, whatever its count; null has no such end.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Probes sent and thrown away first, so that address resolution is not measured.
    pub warmup: u32,
    /// How to wait for an answer.
    pub wait: WaitMode,
    /// Ask the kernel for its own send and receive times.
    pub kernel_stamps: bool,
    /// Time to live of the probes.
    pub ttl: Option<u8>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// Keep every sample in order, not only their distribution.
    pub keep_samples: bool,
}

impl Default for PingPlan {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            transport: PingTransport::Icmp,
            port: DEFAULT_PORT,
            family: None,
            bind: None,
            sizes_bytes: vec![56],
            count: None,
            interval_ns: 1_000_000_000,
            mode: PingMode::Paced,
            timeout_ns: 1_000_000_000,
            deadline_ns: None,
            warmup: 2,
            wait: WaitMode::Auto,
            kernel_stamps: true,
            ttl: None,
            dscp: None,
            dont_fragment: false,
            keep_samples: false,
        }
    }
}
