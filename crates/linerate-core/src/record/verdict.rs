//! What limited a result, as a diagnosis says it.
//!
//! Left out: how it is decided; words for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Direction;

/// What can limit a result: the rate of a transfer, or its delay under load.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The receiver's window: its buffer, its limits, or a window scale that was lost.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The application writes less than the path would carry.
    SendingApplication,
    /// The sender's CPU: quota, other work, small writes.
    SendingHost,
    /// The application reads late.
    ReceivingApplication,
    /// The receiver's CPU: quota, other work, small reads.
    ReceivingHost,
    /// The rate of a link: the result is what the path can give.
    Link,
    /// A link below what its ends can do: a negotiation that fell back, a slow segment.
    LinkFallback,
    /// A duplex mismatch: loss where both directions are active.
    DuplexMismatch,
    /// A shaper: a queue in front of a rate below the link's.
    Shaper,
    /// A policer: loss without a queue above a rate below the link's.
    Policer,
    /// Packets per second that a device forwards.
    PacketRate,
    /// Loss that does not depend on the load.
    RandomLoss,
    /// Other traffic on the bottleneck.
    OtherTraffic,
    /// A buffer of the path too small for the bursts of the sender.
    SmallBuffer,
    /// A standing queue: the rate is reached, the delay under load is not.
    StandingQueue,
    /// The start: the transfer ends before the window has grown.
    StartUp,
    /// Reordering that is taken for loss.
    Reordering,
    /// One of several parallel paths or trunk members.
    UnequalPaths,
    /// The way back of the acknowledgments.
    AckPath,
    /// Packets above some size vanish without a message.
    MtuBlackHole,
    /// Fragments: the path's MTU is below the packets of its ends.
    TunnelMtu,
    /// Segmentation offload or a driver.
    Offload,
    /// The delay itself: nothing else is at fault.
    LongDelay,
    /// Interruptions of the path and the time-outs that follow them.
    Outages,
    /// The congestion control: another one reaches more.
    CongestionControl,
    /// A middlebox that changes options or splits the connection.
    Middlebox,
    /// One address family has a worse path than the other.
    AddressFamily,
    /// The tester itself: its CPU, its clock, its emulator.
    Tester,
}

/// What a diagnosis came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// One cause limits the result.
    Limited,
    /// The result is the ceiling of its path.
    AtCeiling,
    /// More than one cause agrees with the evidence, or none does.
    Undetermined,
    /// The tester spoilt the measurement: no verdict.
    NoVerdict,
}

/// What limited one direction of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Which way the data went; null for the path as a whole.
    pub direction: Option<Direction>,
    /// What the diagnosis came to.
    pub outcome: Outcome,
    /// The one cause; null where undetermined or without a verdict.
    pub cause: Option<Cause>,
}
