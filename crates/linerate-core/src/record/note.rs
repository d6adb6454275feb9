//! Remarks of a verdict as values: notes beside a cause, reasons why something is none, what was
//! not measured, the test that would decide, the limit that is met next.
//!
//! Left out: their words (`linerate-report`, `verdict/note.rs`); when they are made (`explain`).

use super::{Cause, Caveat, Change, FlowSide, Handshake, SignUnit};

/// A remark for the reader beside a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The tester spoilt the measurement, by this caveat of the engine.
    Spoilt(Caveat),
    /// Both ends run on one host, and no end whose CPU is known is the limit.
    OneHostIdle {
        /// The busiest of them, over the time; `None` where no CPU is known.
        cpu_most: Option<f64>,
    },
    /// Both ends run on one host: there is no path.
    OneHost,
    /// The rate of the path itself was not measured.
    PathNotMeasured,
    /// Two limits lie close together.
    CloseLimits {
        /// The one that is met next.
        next: NextBound,
    },
    /// Both hosts scale windows, and the connection does not.
    WindowScaleLost(ScaleLoss),
    /// The window that the receiver advertised is not the one that the sender was offered.
    WindowRewritten {
        /// The most that the receiver advertised.
        advertised_bytes: f64,
        /// The most that the sender was offered.
        offered_bytes: f64,
    },
    /// The receiver's socket held data that nobody read.
    UnreadAtReceiver,
    /// An end has window scaling off.
    ScalingOff(FlowSide),
    /// The rate is that of a slower Ethernet than the ports of both hosts have.
    SlowerEthernet {
        /// Speed of the Ethernet, in Mbit/s.
        mbits_per_s: u32,
    },
    /// Both hosts offer SACK, and the connection does not have it.
    SackLost {
        /// Segment that it was removed from, where that was seen.
        removed_from: Option<Handshake>,
    },
    /// Others fill a queue, and the window is the limit all the while.
    QueueOfOthers,
    /// Pings do not show which way loses them.
    PingsOfEitherWay,
    /// A device on the way makes segments small.
    SegmentsMadeSmall {
        /// Their size, in bytes.
        mss_bytes: u32,
    },
    /// Probes of UDP pass above this rate, TCP does not.
    HeldForTcp,
    /// The rate rose with one thing changed.
    RateRose {
        /// The thing.
        change: Change,
        /// Rate with the change over that without.
        factor: f64,
        /// Change of the losses.
        losses: LossShift,
    },
    /// The rate stayed with one thing changed.
    RateStayed(Change),
    /// One moment of a socket tells this.
    Socket(SocketNote),
    /// The file or the output tells this that a result of another program came in.
    Source(SourceNote),
}

/// A remark on one moment of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketNote {
    /// The program on this host does not read what has arrived.
    NotReadHere,
    /// The receiver's window is closed, and this host probes it.
    WindowClosed,
    /// A program that reads late offers a small window too.
    MayReadLate,
    /// The program had nothing more to send.
    NothingToSend,
}

/// A remark on the file or the output of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceNote {
    /// The test of another program ended early.
    EndedEarly {
        /// In that program's words.
        error: String,
    },
    /// The figures of a text are rounded to three digits.
    RoundedFigures,
    /// Further documents of a file are left out.
    DocumentsLeftOut {
        /// How many.
        count: usize,
        /// Why the last of them is.
        why: Option<String>,
    },
    /// A file goes on after its last whole document.
    FileGoesOn {
        /// Fault of the rest.
        fault: String,
    },
    /// Connections that moved below 1 % of the bytes are left out.
    SmallConnections(Vec<String>),
    /// The rate is over the time in which data was in flight.
    RateWhileInFlight,
    /// No rate: since when the connection is open is not known.
    AgeNotKnown,
}

/// Place at which the window scale option was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleLoss {
    /// Removed from this segment between the hosts.
    RemovedFrom(Handshake),
    /// The SYN arrived without it.
    BeforeSynArrived,
    /// The SYN arrived with it: it was lost from the SYN-ACK.
    AfterSynArrived,
    /// Somewhere on the way.
    NotKnown,
}

/// Change of the share of segments that were sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossShift {
    /// No more were lost.
    Same,
    /// More were lost.
    More,
    /// Neither is clear.
    Unclear,
}

/// Something that is there and costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Innocent {
    /// The cause that it would be if it cost anything.
    pub cause: Cause,
    /// Figure that was seen.
    pub seen: Harmless,
}

/// A figure that limits nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Harmless {
    /// Share of the segments that came out of order.
    OutOfOrder(f64),
    /// No segment was sent again.
    NoRetransmit,
    /// Segments were sent again, and the path was full all the same.
    RetransmitsOfFullPath {
        /// How many.
        count: f64,
        /// Share of those sent.
        ratio: f64,
    },
    /// Segments were sent again, too few to matter.
    FewRetransmits {
        /// How many.
        count: f64,
        /// Share of those sent.
        ratio: f64,
    },
    /// Seconds by which the delay varies at rest.
    Jitter(f64),
    /// Share of the window offered that was in flight.
    WindowUsed(f64),
    /// Share of a core that an end used.
    Cpu(f64),
}

/// A quantity that was not measured, so that what it would show is not ruled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmeasured {
    /// Round trip before the load.
    RoundTripAtRest,
    /// Round trips of any kind.
    RoundTrips,
    /// Round trips under load.
    RoundTripsUnderLoad,
    /// Window that the receiver offered.
    WindowOffered,
    /// The same, which newer versions of ss print.
    WindowOfferedBySs,
    /// Windows of both ends.
    Windows,
    /// Memory in use of the send buffer.
    SendBufferInUse,
    /// CPU of one end.
    Cpu(FlowSide),
    /// CPU of both hosts.
    BothCpus,
    /// Time for which threads of both hosts waited for a CPU.
    CpuWaits,
    /// Segments sent again.
    SegmentsAgain,
    /// Mechanism of the losses.
    LossMechanism,
    /// Everything at the other end.
    OtherEnd,
    /// Any moment but the one that was printed.
    OtherMoments,
}

/// A test that decides between the causes that are left, or confirms one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidingTest {
    /// The same on a quiet host.
    QuietHost,
    /// The same from another host.
    AnotherHost,
    /// The same with the other way idle.
    OneWay,
    /// Trains of UDP probes.
    ProbeTrains,
    /// Packets of all sizes both ways.
    PacketSizes,
    /// The rate up to which all datagrams arrive.
    LosslessRate,
    /// A test of linerate's own, which sees both hosts.
    BothHosts,
    /// The result of the receiving end.
    ReceiversResult,
    /// `ss` at the sender while data flows.
    SsAtSender,
    /// The same with the memory of the socket.
    SsWithMemory,
    /// `ss` several times at both ends.
    SsAtBothEnds,
}

/// The bound that is met once a cause is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextLimit {
    /// Which bound.
    pub bound: NextBound,
    /// The rate that it allows, payload bit/s.
    pub bps: f64,
}

/// A bound of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextBound {
    /// The link of an end.
    EndLink,
    /// The narrowest link of the path.
    PathLink,
    /// The rate that a policer or shaper lets through.
    RegulatedRate,
    /// The packets per second of a device.
    PacketRate,
    /// The receive window.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// Loss.
    Loss,
    /// The sending host.
    SendingHost,
    /// The receiving host.
    ReceivingHost,
    /// The start.
    StartUp,
    /// The pace asked for.
    Pace,
    /// The way back.
    WayBack,
    /// The window of a model.
    ModelWindow,
    /// Other traffic on the narrowest link of a model.
    ModelTraffic,
    /// The narrowest link of a model and its buffer.
    ModelBuffer,
}

/// Kind of a criterion that a goal sets for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CriterionKind {
    /// Payload that the path carries.
    PathPayload,
    /// Rate of the transfer, where the path's is not known.
    TransferRate,
    /// Packets between two losses.
    PacketsBetweenLosses,
    /// Window that the ends can open.
    WindowOfEnds,
}

impl CriterionKind {
    /// Unit of its figures.
    pub const fn figure_unit(self) -> SignUnit {
        match self {
            Self::PathPayload | Self::TransferRate => SignUnit::BitsPerSecond,
            Self::PacketsBetweenLosses => SignUnit::Packets,
            Self::WindowOfEnds => SignUnit::Bytes,
        }
    }
}
