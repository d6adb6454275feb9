//! Remedies as values, each with the figures of its path: lines to type at a host, and things to do
//! at an end or on the path.
//!
//! Left out: their words (`linerate-report`, `verdict/remedy.rs`); which cause has which remedy
//! (`explain`). A verdict is made anew from a record and is never stored.

use serde::{Deserialize, Serialize};

use super::IpFamily;
use crate::units::BitRate;

/// Place at which a remedy is to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The host that sends the data.
    Sender,
    /// The host that receives the data.
    Receiver,
    /// A device on the path.
    Path,
    /// The command that was run.
    Test,
}

/// One thing to do, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct RemedyLine {
    /// Place.
    pub at: At,
    /// The thing to do.
    pub remedy: Remedy,
    /// Rates without and with it, where it was tried on this path.
    pub tried: Option<Tried>,
}

/// A remedy that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// The rate without it, payload bit/s.
    pub before_bps: f64,
    /// The rate with it.
    pub after_bps: f64,
}

/// Share of the bottleneck's rate to which a shaper before it is set, so that the queue stands at
/// the shaper.
pub const SHAPED_SHARE: f64 = 0.95;

/// A thing to do against a cause.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// A line to type.
    Line(RemedyCommand),
    /// Something to do at an end, or with the next test.
    Advice(HostAdvice),
    /// Something to do on the path between the hosts.
    OnPath(PathAdvice),
}

/// A socket buffer of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketBuffer {
    /// The receiver's (`tcp_rmem`, `rmem_max`), which bounds the window that it offers.
    Receive,
    /// The sender's (`tcp_wmem`, `wmem_max`), which holds what is not acknowledged.
    Send,
}

/// A line to type at a host or at a router that runs Linux.
#[derive(Clone, Debug, PartialEq)]
pub enum RemedyCommand {
    /// Raises the most to which the kernel tunes a buffer (`tcp_rmem`, `tcp_wmem`); the other two
    /// figures of the setting stay.
    RaiseBuffer {
        /// Which buffer.
        buffer: SocketBuffer,
        /// First figure of the setting: the least.
        least_bytes: u64,
        /// Second figure: the default.
        default_bytes: u64,
        /// Third figure: the most, raised.
        bytes: u64,
    },
    /// Raises the most that a program may ask for (`rmem_max`, `wmem_max`).
    RaiseAskedMax {
        /// Which buffer.
        buffer: SocketBuffer,
        /// The most, raised.
        bytes: u64,
    },
    /// Turns window scaling on (`tcp_window_scaling`).
    ScaleWindows,
    /// Sets the congestion control of new connections.
    UseCongestionControl {
        /// Its name: `bbr`.
        name: String,
    },
    /// Makes fair queueing with pacing the default discipline (`default_qdisc`).
    FairQueue,
    /// Paces each flow of an interface by the discipline fq.
    Pace {
        /// Name of the interface, where it is known.
        interface: Option<String>,
        /// Rate of one flow, bit/s.
        bps: f64,
    },
    /// Replaces a discipline that shapes by fq_codel, which does not.
    ReplaceShaper {
        /// Name of the interface, where it is known.
        interface: Option<String>,
    },
    /// Keeps the clock of the CPU high.
    FullClock,
    /// Checks the host (`linerate doctor`).
    CheckHost,
    /// Keeps the congestion window of a connection that was idle (`tcp_slow_start_after_idle`).
    KeepWindowWhenIdle,
    /// Forgets the thresholds that the kernel kept of earlier connections (`ip tcp_metrics`).
    ForgetMetrics,
    /// Shows what a route or the kept metrics hold fixed.
    ShowFixedMetrics,
    /// Lets TCP search for the segment size that passes (`tcp_mtu_probing`).
    ProbeMtu,
    /// Clamps the segment size of forwarded connections.
    ClampSegments {
        /// The largest segment size, in bytes.
        mss_bytes: u32,
    },
}

/// Something to do at an end, or with the next test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAdvice {
    /// Leave out the buffer that was asked for (`-w`): it turns the kernel's own tuning off.
    LeaveOutWindow {
        /// The buffer that it fixes.
        asked_bytes: u64,
    },
    /// Reason for a larger buffer.
    BufferNeeded {
        /// Rate that needs it over this round trip.
        rate: BitRate,
        /// The buffer that the rate needs.
        bytes: u64,
        /// The most that the kernel gives today, where it is known.
        has_bytes: Option<u64>,
    },
    /// A CPU of its own for the program, no quota, larger reads and writes, more streams.
    FreeTheCpu,
    /// The receiving application reads sooner, or more at once.
    ReadSooner,
    /// A longer test, or one without its start.
    TestLonger,
    /// Connections that stay open and move more.
    KeepConnections,
    /// Leave out the pace that was asked for (`-b`), or raise it.
    LeaveOutPace,
    /// Leave out the pace of reading that was asked for (`--read-pace`), or raise it.
    LeaveOutReadPace,
    /// Raise the rate of datagrams until some are lost.
    RaiseRate,
    /// The program allows a higher pace (`SO_MAX_PACING_RATE`).
    AllowPace,
    /// Take a window that is locked off the route.
    UnlockWindow,
    /// Several connections at once (`-P`).
    SeveralStreams {
        /// How many were tried.
        count: u16,
    },
    /// Smaller segments (`-M`).
    SmallerSegments {
        /// The largest, in bytes.
        bytes: u32,
    },
    /// Buffers that are asked for (`-w`).
    AskForBuffers {
        /// Their size.
        bytes: u64,
    },
    /// More bytes in each write (`-l`).
    WriteMore {
        /// Bytes of one write.
        bytes: u32,
    },
}

/// Something to do on the path between the hosts.
#[derive(Clone, Debug, PartialEq)]
pub enum PathAdvice {
    /// The device keeps the window scale option of SYN segments (RFC 7323 §2.2).
    KeepWindowScale,
    /// The device keeps SACK of SYN segments (RFC 2018).
    KeepSack,
    /// Search for what damages packets.
    FindDamage,
    /// A contract with the rate and the burst that one flow needs.
    AskForBurst {
        /// Burst that lets one flow fill the rate, in bytes.
        bytes: f64,
    },
    /// ICMP "packet too big" passes, or segments are clamped.
    LetTooBigPass,
    /// Search for what interrupts the path.
    FindInterruption,
    /// A look at the way back of the data's path.
    ExamineWayBack,
    /// Load is shared over paths by flow, not by packet.
    ShareByFlow,
    /// A managed queue, shaped to a rate below the bottleneck's.
    ManageQueue {
        /// The rate on the wire, bit/s: [`SHAPED_SHARE`] of the bottleneck's, where it is known.
        shaped_bps: Option<f64>,
    },
    /// The member of a trunk that loses is found and taken out.
    TakeOutMember,
    /// Several flows, as one has one member of a trunk.
    UseSeveralFlows,
    /// Larger packets, or a device that forwards more of them.
    ForwardMore,
    /// The clamp of the segment size goes, or fits the path MTU.
    LiftClamp,
    /// A queue for each flow at the bottleneck.
    QueuePerFlow,
    /// A buffer at the bottleneck that one flow needs.
    Buffer {
        /// Its bytes: the bandwidth-delay product.
        bytes: f64,
    },
    /// Both ends of a link have the same duplex mode.
    SameDuplex,
    /// Search for the rule that treats the server's port apart.
    FindPortRule,
    /// One address family, until the other's path is mended.
    UseFamily {
        /// The family that has the better path.
        family: IpFamily,
    },
}

impl RemedyLine {
    /// A line to type.
    pub const fn command(at: At, command: RemedyCommand) -> Self {
        Self { at, remedy: Remedy::Line(command), tried: None }
    }

    /// Something to do at an end, or with the next test.
    pub const fn advice(at: At, advice: HostAdvice) -> Self {
        Self { at, remedy: Remedy::Advice(advice), tried: None }
    }

    /// Something to do on the path.
    pub const fn on_path(advice: PathAdvice) -> Self {
        Self { at: At::Path, remedy: Remedy::OnPath(advice), tried: None }
    }
}
