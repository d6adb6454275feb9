//! What a benchmark of a device is asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::known_path::KnownPath;
use crate::record::named::named;
use crate::units::BitRate;

/// A benchmark of one device with frames of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchPlan {
    /// The tester's interfaces, two or more: frames go from the first to the second.
    pub ports: Vec<BenchPort>,
    /// Protocol, length and addresses of the frames.
    pub frames: BenchFrames,
    /// Ports that send at once.
    pub way: BenchWay,
    /// The measurements, in the order in which they are made.
    pub tests: Vec<BenchTest>,
    /// Goals of the search, all searched at once.
    pub goals: Vec<BenchGoal>,
    /// Lengths of trials and waits.
    pub times: BenchTimes,
    /// Facility that sends frames; null is the fastest that a probe shows to work.
    #[serde(default)]
    pub generator: Option<GeneratorKind>,
    /// Facility that counts frames; null is the fastest that a probe shows to work.
    #[serde(default)]
    pub counter: Option<CounterKind>,
    /// Rate of the medium, which gives the theoretical frame rate; null is the interfaces' rate,
    /// and no medium where they report none (virtual links).
    #[serde(default)]
    pub line: Option<BitRate>,
    /// The rate that the user gives for the slowest link that the frames cross; null where none is
    /// given. The theoretical frame rate is the smallest of all.
    #[serde(default)]
    pub known: Option<Box<KnownPath>>,
    /// No load above this, in frames per second of each sending port.
    #[serde(default)]
    pub frames_per_sec_max: Option<u64>,
    /// Filter rules that the device was given, for the report; null is not known.
    #[serde(default)]
    pub filters: Option<u32>,
    /// The traffic contract that was ordered, for the test of it.
    #[serde(default)]
    pub contract: Option<BenchContract>,
    /// Ordered contract in cells: frames of the plan's length. Of both contracts, this one is
    /// compared.
    #[serde(default)]
    pub cell_contract: Option<CellContract>,
    /// Command of the shell that restarts the device, for the test of it; null restarts the link of
    /// the receiving port.
    #[serde(default)]
    pub reset_command: Option<String>,
    /// Seed of everything random: trial numbers, order of flows.
    pub seed: u64,
}

/// A plan before its ports and tests are known, which the caller fills in.
impl Default for BenchPlan {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            frames: BenchFrames::default(),
            way: BenchWay::default(),
            tests: Vec::new(),
            goals: Vec::new(),
            times: BenchTimes::default(),
            generator: None,
            counter: None,
            line: None,
            known: None,
            frames_per_sec_max: None,
            filters: None,
            contract: None,
            cell_contract: None,
            reset_command: None,
            seed: 1,
        }
    }
}

/// One interface of the tester.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchPort {
    /// Name of the interface.
    pub interface: String,
    /// Host of the laboratory that has it; null is this program's own network namespace.
    #[serde(default)]
    pub host: Option<String>,
    /// Address of the tester on this port; null is one of 198.18.0.0/15 or 2001:2::/48, a network
    /// a port.
    #[serde(default)]
    pub address: Option<String>,
    /// The device's address on this port, which is asked for its hardware address; null where
    /// frames go to the other port's own hardware address (bridges).
    #[serde(default)]
    pub gateway: Option<String>,
}

/// The headers and payload of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BenchProtocol {
    /// UDP packets in IPv4.
    Udp4,
    /// UDP packets in IPv6.
    Udp6,
    /// A TCP segment in IPv4.
    Tcp4,
    /// A TCP segment in IPv6.
    Tcp6,
    /// Ethernet alone (EtherType 0x88B5), for bridges.
    Ethernet,
    /// DECnet phase IV.
    Decnet,
    /// AppleTalk phase 2.
    Appletalk,
    /// Novell IPX.
    Ipx,
}

named!(BenchProtocol {
    Udp4 = "udp4",
    Udp6 = "udp6",
    Tcp4 = "tcp4",
    Tcp6 = "tcp6",
    Ethernet = "ethernet",
    Decnet = "decnet",
    Appletalk = "appletalk",
    Ipx = "ipx",
});

impl BenchProtocol {
    /// The shortest frame with its headers, the signature and so many VLAN tags, FCS included,
    /// bytes: without tags 64 at least.
    ///
    /// UDP over IPv6: 14 of Ethernet, 40 and 8, 2 that balance the checksum, 16 of signature, 4 of
    /// FCS: 84.
    pub fn shortest_frame_bytes(self, tags: usize) -> u32 {
        let headers = match self {
            Self::Udp4 => 20 + 8 + BALANCE_BYTES,
            Self::Udp6 => 40 + 8 + BALANCE_BYTES,
            Self::Tcp4 => 20 + 20 + BALANCE_BYTES,
            Self::Tcp6 => 40 + 20 + BALANCE_BYTES,
            Self::Ethernet => 0,
            // Length, long header of routing, header of a data segment.
            Self::Decnet => 2 + 21 + 7,
            // LLC with SNAP, long header of DDP.
            Self::Appletalk => 8 + 13,
            Self::Ipx => 30,
        };
        let shortest = 14 + headers + SIGNATURE_BYTES + 4;
        shortest.max(64) + u32::try_from(tags).unwrap_or(0) * 4
    }
}

/// Bytes of the payload that keep a transport checksum right whatever the signature is.
const BALANCE_BYTES: u32 = 2;

/// The signature at the end of each frame.
const SIGNATURE_BYTES: u32 = 16;

/// The frames that are sent: headers, length, addresses, flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchFrames {
    /// Headers and payload of each frame.
    pub protocol: BenchProtocol,
    /// Length with FCS (and tags); the mean of a mix, rounded.
    pub size_bytes: u32,
    /// A mix of lengths instead: `imix` or `64:7,594:4,1518:1`.
    #[serde(default)]
    pub mix: Option<String>,
    /// VLAN tags, the outer first.
    #[serde(default)]
    pub vlans: Vec<u16>,
    /// Differentiated services code point.
    #[serde(default)]
    pub dscp: u8,
    /// Number of different flows.
    pub flows: u32,
    /// Flows differ by addresses too, not by ports alone.
    #[serde(default)]
    pub many_hosts: bool,
    /// Flows follow each other in a pseudo-random order (RFC 4814).
    #[serde(default)]
    pub shuffled: bool,
    /// Frames back to back at a time (RFC 2544 §21).
    pub burst: u32,
}

impl Default for BenchFrames {
    fn default() -> Self {
        Self {
            protocol: BenchProtocol::Udp4,
            size_bytes: 64,
            mix: None,
            vlans: Vec::new(),
            dscp: 0,
            flows: 1,
            many_hosts: false,
            shuffled: false,
            burst: 1,
        }
    }
}

/// Ports that send at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BenchWay {
    /// The first sends to the second.
    #[default]
    Single,
    /// Two ports send to each other (RFC 2544 §14): both inputs at the rate, both outputs counted.
    Dual,
    /// Every port sends to every other in turn (RFC 2889 §5.1).
    Mesh,
}

impl BenchWay {
    /// Number of the `ports` that send at once: the first ones.
    pub fn senders(self, ports: usize) -> usize {
        match self {
            Self::Single => 1,
            Self::Dual => 2,
            Self::Mesh => ports,
        }
    }
}

/// One measurement of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BenchTest {
    /// Forwarding rate while the generator sends all that it can (Bradner's flood rate).
    Flood,
    /// The highest rate for each goal (RFC 2544 §26.1, RFC 1242 §3.17).
    Throughput,
    /// Loss against offered load (§26.3).
    LossCurve,
    /// Delay at the throughput (§26.2, RFC 8219 §7.2).
    Latency,
    /// The longest burst that loses nothing (§26.4, RFC 9004).
    BackToBack,
    /// Time from overload back to no loss (§26.5).
    Recovery,
    /// Time without forwarding after the link or the device restarts (§26.6, RFC 6201).
    Reset,
    /// Number of addresses a bridge remembers, and the rate at which it learns them (RFC 2889 §5.7,
    /// §5.8).
    Addresses,
    /// Forwarding beyond the throughput (RFC 2285 §3.6, RFC 2889 §5.6).
    Overload,
    /// Loss at a free output, or back pressure on the sender, while another output is full (RFC
    /// 2889 §5.5).
    Blocking,
    /// A long run at the typical throughput.
    Soak,
    /// The policer or shaper against the ordered contract.
    Contract,
}

named!(BenchTest {
    Flood = "flood",
    Throughput = "throughput",
    LossCurve = "loss-curve",
    Latency = "latency",
    BackToBack = "back-to-back",
    Recovery = "recovery",
    Reset = "reset",
    Addresses = "addresses",
    Overload = "overload",
    Blocking = "blocking",
    Soak = "soak",
    Contract = "contract",
});

/// Conditions for the highest rate that a search finds (the search goal of RFC 9971, MLRsearch).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchGoal {
    /// Name for tables: `strict`, `typical`.
    pub name: String,
    /// Length of a trial that counts in full.
    pub final_trial_ns: u64,
    /// Sum of the lengths of such trials at one load that decides.
    pub duration_sum_ns: u64,
    /// Share of frames that a trial may lose, 0 … 1.
    pub loss_ratio: f64,
    /// Share of the trials that may lose more, 0 … 1.
    pub exceed_ratio: f64,
    /// Relative distance of the two bounds at which the search ends, 0 … 1.
    pub width: f64,
}

impl BenchGoal {
    /// RFC 2544 §24 and §26.1: 60 s, not one frame lost.
    pub fn strict() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        Self {
            name: "strict".to_owned(),
            final_trial_ns: MINUTE,
            duration_sum_ns: MINUTE,
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            width: 0.005,
        }
    }

    /// The rate that most trials of 1 s carry without loss: half of them, over 21 s.
    pub fn typical() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            name: "typical".to_owned(),
            final_trial_ns: SECOND,
            duration_sum_ns: 21 * SECOND,
            loss_ratio: 0.0,
            exceed_ratio: 0.5,
            width: 0.005,
        }
    }

    /// ETSI GS NFV-TST 009 §12.3.3: a trial of 60 s that lost is repeated twice at most.
    pub fn verified() -> Self {
        let strict = Self::strict();
        Self {
            name: "verified".to_owned(),
            duration_sum_ns: 2 * strict.duration_sum_ns,
            exceed_ratio: 0.5,
            ..strict
        }
    }

    /// The same goal with trials `divisor` times as short, for a quick look, and with that in its
    /// name.
    pub fn with_short_trials(self, divisor: u64) -> Self {
        let divisor = divisor.max(1);
        Self {
            name: format!("{} / {divisor}", self.name),
            final_trial_ns: self.final_trial_ns / divisor,
            duration_sum_ns: self.duration_sum_ns / divisor,
            ..self
        }
    }
}

/// Lengths of trials and waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchTimes {
    /// Trials that no goal gives a length: flood, loss curve, overload.
    pub trial_ns: u64,
    /// A trial of latency.
    pub latency_ns: u64,
    /// Length of a soak test.
    pub soak_ns: u64,
    /// Wait before each trial, after learning frames (RFC 2544 §23 has 2 s).
    pub before_ns: u64,
    /// Wait after each trial, for frames still in flight (2 s).
    pub after_ns: u64,
    /// Wait after that, for the device to restabilize (5 s).
    pub settle_ns: u64,
    /// Repetitions of latency (§26.2 has 20) and bursts (50).
    pub repetitions: u32,
}

impl Default for BenchTimes {
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            trial_ns: SECOND,
            latency_ns: 2 * SECOND,
            soak_ns: 60 * SECOND,
            before_ns: SECOND / 100,
            after_ns: SECOND / 20,
            settle_ns: SECOND / 100,
            repetitions: 3,
        }
    }
}

impl BenchTimes {
    /// Seconds of a soak, each counted apart.
    pub fn soak_seconds(&self) -> u64 {
        self.soak_ns.div_ceil(1_000_000_000).max(1)
    }

    /// The lengths of RFC 2544 §23, §24 and §26.
    pub fn rfc2544() -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            trial_ns: 60 * SECOND,
            latency_ns: 120 * SECOND,
            soak_ns: 3600 * SECOND,
            before_ns: 2 * SECOND,
            after_ns: 2 * SECOND,
            settle_ns: 5 * SECOND,
            repetitions: 20,
        }
    }
}

/// Facility that sends frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GeneratorKind {
    /// Made by a program in the kernel and redirected to the interface (XDP live frames).
    Live,
    /// AF_XDP socket at the interface.
    Xdp,
    /// Packet socket, sendmmsg(2).
    Packet,
}

impl fmt::Display for GeneratorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "live frames",
            Self::Xdp => "AF_XDP",
            Self::Packet => "packet socket",
        })
    }
}

/// Facility that counts frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CounterKind {
    /// A program at the interface (XDP).
    Xdp,
    /// Packet socket with a ring.
    Packet,
}

/// Definition of latency that fits the device (RFC 1242).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Last bit in to first bit out (§3.8, store and forward devices).
    StoreAndForward,
    /// First bit in to first bit out (§3.8, bit forwarding devices).
    CutThrough,
}

/// A traffic contract that was ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchContract {
    /// Committed information rate.
    pub cir: BitRate,
    /// Committed burst size, bytes of frames.
    pub cbs_bytes: u64,
    /// Excess information rate.
    #[serde(default)]
    pub eir: Option<BitRate>,
    /// Excess burst size.
    #[serde(default)]
    pub ebs_bytes: Option<u64>,
}

/// A traffic contract that was ordered in cells, or frames of one length (ATM Forum TM 4.0 §4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellContract {
    /// Peak cell rate, cells per second.
    pub pcr_per_sec: f64,
    /// Cell delay variation tolerance: how early a cell may be at the peak rate; null when none was
    /// named, which holds nothing against the one that is found.
    #[serde(default)]
    pub cdvt_ns: Option<u64>,
    /// Sustainable cell rate.
    pub scr_per_sec: f64,
    /// Maximum burst size: cells at the peak rate.
    pub mbs_cells: u64,
}

impl CellContract {
    /// Checks that the parameters can be those of one contract; a refusal names the parameter and
    /// the reason.
    pub fn check_parameters(&self) -> Result<(), (&'static str, String)> {
        for (name, per_sec) in [("pcr", self.pcr_per_sec), ("scr", self.scr_per_sec)] {
            // A train of less than a cell a second would take a day.
            if !(per_sec.is_finite() && per_sec >= 1.0) {
                return Err((name, format!("{per_sec} cells/s; one or more are needed")));
            }
        }
        if self.scr_per_sec >= self.pcr_per_sec {
            return Err(("scr", "the sustained rate is not below the peak rate".to_owned()));
        }
        if self.mbs_cells == 0 {
            return Err(("mbs", "a burst of 0 cells".to_owned()));
        }
        Ok(())
    }
}
