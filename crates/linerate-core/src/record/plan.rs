//! What is to be measured, with every default filled in. A plan alone repeats a measurement.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::known_path::KnownPath;
use super::named::named;
use super::{
    AccessToken, BenchPlan, DEFAULT_PORT, Direction, IpFamily, RecordId, SimulatePlan,
    TcpDirections, TcpTest, UdpTest, Via,
};
use crate::study::Topology;
use crate::units::BitRate;

/// One measurement to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plan {
    /// Test of TCP throughput.
    Tcp(TcpPlan),
    /// Measurement of round-trip times.
    Ping(PingPlan),
    /// Test of UDP throughput.
    Udp(UdpPlan),
    /// TCP throughput by a model in virtual time: no packet is sent.
    Simulate(SimulatePlan),
    /// A benchmark of a device by raw frames.
    Bench(BenchPlan),
    /// A survey of a path: its measurements are the record's parts.
    Test(TestPlan),
    /// The same measurement of several targets in turn: its measurements are the record's parts.
    Compare(ComparePlan),
    /// The way to a host, hop by hop.
    Trace(TracePlan),
}

impl Plan {
    /// True when it asks two hosts to exchange packets; a model does not.
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Simulate(_))
    }

    /// The kinds of all plans, as [`Plan::kind_name`] names them.
    pub const KINDS: [&str; 8] =
        ["tcp", "udp", "ping", "test", "trace", "compare", "bench", "simulate"];

    /// The kind, as it is tagged in records.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Ping(_) => "ping",
            Self::Udp(_) => "udp",
            Self::Simulate(_) => "simulate",
            Self::Bench(_) => "bench",
            Self::Test(_) => "test",
            Self::Compare(_) => "compare",
            Self::Trace(_) => "trace",
        }
    }

    /// The host that it measures to; none for a model and for ports of a device.
    pub const fn host_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Tcp(plan) => Some(&mut plan.server.host),
            Self::Ping(plan) => Some(&mut plan.host),
            Self::Udp(plan) => Some(&mut plan.server.host),
            Self::Test(plan) => Some(&mut plan.server.host),
            Self::Trace(plan) => Some(&mut plan.host),
            Self::Simulate(_) | Self::Bench(_) | Self::Compare(_) => None,
        }
    }

    /// The rate that the user gives as the bound of the path measured.
    pub const fn known_path(&self) -> Option<&KnownPath> {
        match self {
            Self::Tcp(plan) => plan.server.known.as_ref(),
            Self::Udp(plan) => plan.server.known.as_ref(),
            Self::Test(plan) => plan.server.known.as_ref(),
            Self::Ping(_)
            | Self::Simulate(_)
            | Self::Bench(_)
            | Self::Compare(_)
            | Self::Trace(_) => None,
        }
    }

    /// The names of the host measured, the one that the user knows best first: that of the
    /// configuration file, then the name or address that was connected to.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        let (profile, host) = match self {
            Self::Tcp(plan) => (&plan.server.profile, Some(&plan.server.host)),
            Self::Udp(plan) => (&plan.server.profile, Some(&plan.server.host)),
            Self::Test(plan) => (&plan.server.profile, Some(&plan.server.host)),
            Self::Ping(plan) => (&plan.profile, Some(&plan.host)),
            Self::Trace(plan) => (&plan.profile, Some(&plan.host)),
            Self::Compare(plan) => (&None, plan.candidates.first().map(|first| &first.name)),
            Self::Simulate(_) | Self::Bench(_) => (&None, None),
        };
        profile.iter().chain(host).map(String::as_str)
    }
}

impl TcpDirections {
    /// Each direction of the test.
    pub const fn each_direction(self) -> &'static [Direction] {
        match self {
            Self::Up => &[Direction::Up],
            Self::Down => &[Direction::Down],
            Self::Both => &[Direction::Up, Direction::Down],
        }
    }
}

/// The server of a flow test, and the way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerPlan {
    /// Protocol of the server; null is this program's own.
    #[serde(default)]
    pub via: Option<Via>,
    /// Name or address of the server.
    pub host: String,
    /// Port of the server for the control connection.
    pub port: u16,
    /// Only this address family.
    pub family: Option<IpFamily>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// Time to wait for the server to answer.
    pub connect_timeout_ns: u64,
    /// The host's name in the configuration file, where it is from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The rate that the user gives as the bound of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownPath>,
    /// Probes to send beside the load; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbePlan>,
    /// Access token that the server's policy checks; neither stored nor sent as it is.
    #[serde(skip)]
    pub token: Option<AccessToken>,
}

/// Probes to send beside a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbePlan {
    /// Time between two probes while the load runs, whether or not the last was answered.
    pub interval_ns: u64,
    /// Probes before the load, by which the path at rest is known; 0 where that is measured apart.
    pub idle_count: u32,
    /// Time between two probes before the load; null is 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_interval_ns: Option<u64>,
    /// DSCP of the probes; null is that of the load.
    pub dscp: Option<u8>,
    /// ECN field of the probes; null is 0, and nothing is reported of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<u8>,
    /// Probes that are sent at the same times, to be compared with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ProbeKind>,
}

/// Transport and marks in which some probes differ from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeKind {
    /// Transport of these probes; null is UDP where linerate serve answers, else ICMP.
    pub transport: Option<PingTransport>,
    /// DSCP of the probes; null is that of the load.
    pub dscp: Option<u8>,
    /// ECN field of the probes (RFC 3168 §5): 0 is not ECT, 1 ECT(1), 2 ECT(0); null is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<u8>,
}

impl ServerPlan {
    /// A server of a protocol at a port of a host, with defaults for the rest.
    pub fn new(via: Option<Via>, host: impl Into<String>, port: u16) -> Self {
        Self {
            via,
            host: host.into(),
            port,
            family: None,
            bind: None,
            connect_timeout_ns: 5_000_000_000,
            profile: None,
            known: None,
            probes: None,
            token: None,
        }
    }
}

impl Default for ServerPlan {
    fn default() -> Self {
        Self::new(None, "localhost", DEFAULT_PORT)
    }
}

/// A TCP throughput test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpPlan {
    /// The server of the test.
    #[serde(flatten)]
    pub server: ServerPlan,
    /// The parameters that both ends have to know.
    #[serde(flatten)]
    pub test: TcpTest,
    /// Choose how data is moved, and where the data threads run, from short trials.
    #[serde(default)]
    pub fast: bool,
}

/// A UDP throughput test: at one pace, or as a search for the capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpPlan {
    /// The server of the test.
    #[serde(flatten)]
    pub server: ServerPlan,
    /// The parameters that both ends have to know.
    #[serde(flatten)]
    pub test: UdpTest<Option<u32>>,
    /// The CPU that this end's first data thread is pinned to; the others take those after it.
    #[serde(default)]
    pub cpu: Option<u32>,
}

/// A survey of a path: round trips by size, then TCP by streams and windows, both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestPlan {
    /// A host that runs `linerate serve`.
    #[serde(flatten)]
    pub server: ServerPlan,
    /// Time of each TCP test that counts; null follows the round trip.
    pub tcp_time_ns: Option<u64>,
    /// Congestion control of the senders; null is each host's default.
    pub congestion_control: Option<String>,
    /// Most probes of each size.
    pub ping_count: u64,
    /// Tests that would not end within this are left out; null leaves none out.
    pub within_ns: Option<u64>,
    /// Rate that the path is asked to carry; null where none is.
    #[serde(default)]
    pub goal: Option<GoalPlan>,
}

/// A rate to hold over a round trip, which a farther path has (RFC 8337).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalPlan {
    /// Payload rate of a bulk transfer.
    pub rate: BitRate,
    /// Round trip that it goes over.
    pub rtt_ns: u64,
}

/// The same measurement of several targets, or of one target in several ways, interleaved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparePlan {
    /// The candidates; the others are compared with the first.
    pub candidates: Vec<ComparisonCandidate>,
    /// Number of rounds; each candidate is measured once in each, the first one twice.
    pub rounds: u32,
    /// Seed of the order within each round.
    pub seed: u64,
}

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonCandidate {
    /// Name as the user gave it.
    pub name: String,
    /// The measurement made in each round.
    pub plan: Plan,
    /// The laboratory in which it is measured; null is the network of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Box<Topology>>,
    /// The stored result that the rounds were cut from; null was measured for the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RecordId>,
}

impl ComparisonCandidate {
    /// A candidate that is measured over the network of this host.
    pub fn new(name: impl Into<String>, plan: Plan) -> Self {
        Self { name: name.into(), plan, topology: None, result: None }
    }
}

/// Port of UDP probes: the first one of the classic traceroute, where nothing listens.
pub const TRACE_PORT: u16 = 33_434;

/// Protocol of a trace's probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TraceProbes {
    /// UDP, each flow from a port of its own, all to one port.
    #[default]
    Udp,
    /// ICMP echo requests: one flow, and an end that limits no answers.
    Icmp,
    /// The first segment of a TCP connection (SYN), each flow from a port of its own: packets that
    /// filters let pass, answered by an end that limits no answers, with SYN-ACK or RST.
    Tcp,
}

named!(TraceProbes { Udp = "udp", Icmp = "icmp", Tcp = "tcp" });

/// A trace of the path to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracePlan {
    /// Name or address of the target.
    pub host: String,
    /// Protocol of the probes.
    pub probes: TraceProbes,
    /// Port that UDP or TCP probes go to.
    pub port: u16,
    /// Only this address family.
    pub family: Option<IpFamily>,
    /// Local address or interface to send from.
    pub bind: Option<String>,
    /// Differentiated services code point of all probes, 0 … 63.
    pub dscp: Option<u8>,
    /// Rounds: each sends one probe of every measured flow to every hop.
    pub count: u32,
    /// Flows that the rounds measure.
    #[serde(default = "one_flow")]
    pub flows: u16,
    /// Time between the starts of rounds.
    pub interval_ns: u64,
    /// Time after which a probe counts as unanswered.
    pub timeout_ns: u64,
    /// Largest time to live.
    pub hops_max: u8,
    /// Look for next hops that flows are spread over.
    pub paths: bool,
    /// Look for the largest packet that reaches each hop.
    pub mtu: bool,
    /// The test that loads the path for a second series of rounds; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Box<TcpPlan>>,
    /// Port of `linerate serve` at the target, which traces the path back; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<u16>,
    /// Access token that the target's policy checks; neither stored nor sent as it is.
    #[serde(skip)]
    pub token: Option<AccessToken>,
    /// The target's name in the configuration file, where it is from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Number of flows in records of versions that had one only.
const fn one_flow() -> u16 {
    1
}

impl Default for TracePlan {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            probes: TraceProbes::Udp,
            port: TRACE_PORT,
            family: None,
            bind: None,
            dscp: None,
            count: 10,
            flows: one_flow(),
            interval_ns: 500_000_000,
            timeout_ns: 1_000_000_000,
            hops_max: 30,
            paths: true,
            mtu: true,
            load: None,
            back: None,
            token: None,
            profile: None,
        }
    }
}

/// Transport of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PingTransport {
    /// ICMP echo, answered by the peer's kernel.
    Icmp,
    /// UDP, answered by `linerate serve`.
    Udp,
    /// STAMP (RFC 8762), answered by any reflector: routers, `linerate serve`.
    Stamp,
    /// The handshake of a new TCP connection to the server, which is closed at once; beside a load
    /// alone.
    Tcp,
    /// Messages on a WebSocket (RFC 6455), sent and timed by a page in a browser; beside a load
    /// alone. TCP sends lost ones again, so none is ever lost.
    WebSocket,
}

/// Settings of a measurement by STAMP beside its probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StampPlan {
    /// Packets are signed; the key is no part of the plan.
    pub authenticated: bool,
    /// DSCP that the answers should have, 0 … 63; null for the reflector's choice.
    pub reply_dscp: Option<u8>,
    /// Meeting of this host and the reflector through a hub, where both are behind NAT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<NatMeeting>,
}

/// Meeting of two hosts behind NAT through a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NatMeeting {
    /// The third host, at which they met.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: SocketAddr,
    /// Path of the probes: direct or relayed.
    pub way: MetWay,
    /// The UDP port that they leave from.
    pub local_port: u16,
}

/// The way between two hosts behind NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetWay {
    /// Directly from one to the other: each NAT lets through answers to its own host.
    Hole,
    /// Through the third, which passes it on.
    Relay,
}

/// Time at which the next probe leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PingMode {
    /// A probe every `interval_ns`, whether or not the last was answered.
    Paced,
    /// A probe as soon as the last was answered or given up (stop and wait).
    Flood,
    /// A probe as soon as fewer than this many are unanswered.
    Window(u16),
}

/// Way in which the prober waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Spin while flooding, sleep while pacing.
    Auto,
    /// Ask again and again without sleeping: lowest noise, one core busy.
    Spin,
    /// Sleep until the kernel wakes the prober.
    Block,
}

named!(WaitMode { Auto = "auto", Spin = "spin", Block = "block" });

/// ECN bits of an ECN-capable sender (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EcnCodepoint {
    /// ECT(0), 2: classic.
    Ect0,
    /// ECT(1), 1: L4S (RFC 9331).
    Ect1,
}

named!(EcnCodepoint { Ect0 = "ect0", Ect1 = "ect1" });

impl EcnCodepoint {
    /// The two bits of the field.
    pub const fn codepoint_bits(self) -> u8 {
        match self {
            Self::Ect0 => 2,
            Self::Ect1 => 1,
        }
    }
}

/// A measurement of round-trip times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingPlan {
    /// Name or address of the target.
    pub host: String,
    /// Transport of the probes.
    pub transport: PingTransport,
    /// UDP port of the responder.
    pub port: u16,
    /// Only this address family.
    pub family: Option<IpFamily>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// Payload bytes, one run for each (as `ping -s`: the ICMP or UDP header is not counted).
    pub sizes_bytes: Vec<u32>,
    /// Probes of each size; null goes on until stopped.
    pub count: Option<u64>,
    /// Time between probes when paced.
    pub interval_ns: u64,
    /// Time at which the next probe leaves.
    pub mode: PingMode,
    /// Time after which a probe counts as lost.
    pub timeout_ns: u64,
    /// Time after which a size ends, whatever its count; null has no such end.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Probes sent and thrown away first, so that address resolution is not measured.
    pub warmup: u32,
    /// Way of waiting for an answer.
    pub wait: WaitMode,
    /// Use the kernel's send and receive timestamps.
    pub kernel_stamps: bool,
    /// Time to live of the probes.
    pub ttl: Option<u8>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// ECN bits of the probes; null is Not-ECT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnCodepoint>,
    /// Flow label of IPv6, 20 bits; null is the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    /// Times between paced probes are exponential with `interval_ns` as mean, those of OWAMP's
    /// schedule (RFC 4656 §5) for the session identifier that is this number; null is one probe
    /// every `interval_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poisson_seed: Option<u64>,
    /// The prober runs with real-time priority.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real_time: bool,
    /// Probes go past the kernel's IP, by an AF_XDP socket.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xdp: bool,
    /// Forbid fragmentation of the probes.
    pub dont_fragment: bool,
    /// Keep every sample in order, not only their distribution.
    pub keep_samples: bool,
    /// Settings of STAMP; null for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<StampPlan>,
    /// The target's name in the configuration file, where it is from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
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
            ecn: None,
            flow_label: None,
            poisson_seed: None,
            real_time: false,
            xdp: false,
            dont_fragment: false,
            keep_samples: false,
            stamp: None,
            profile: None,
        }
    }
}
