//! Caveats: what limits the trust in a number. Each code has a threshold in the engine that raises
//! it, and an advice.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::one_line;

/// The kind of a caveat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CaveatCode {
    /// A data thread ran at nearly all of one core: the host may be the limit.
    CpuBound,
    /// A data thread waited for a core: other work shared the machine.
    RunQueueWait,
    /// The kernel gave another buffer than was asked for.
    WindowNotGranted,
    /// The kernel gave another congestion control than was asked for.
    CongestionControlNotGranted,
    /// The kernel used another maximum segment size than was asked for.
    MssNotGranted,
    /// Both ends run on the same kernel, so the result says as much about placement as about a
    /// path.
    SameHost,
    /// Fewer than ten intervals or a span under a second: start-up weighs in the result.
    ShortRun,
    /// Kernel timestamps were requested but missing, or late.
    StampsMissing,
    /// Several probes were in flight: round trips include the queue that they made themselves.
    SelfLoad,
    /// A probe was larger than the path's MTU and travelled as fragments.
    Fragmented,
    /// Answers arrived for which the prober's receive buffer had no room: some losses are this
    /// host's.
    ReceiveDrops,
    /// The sender's own interface dropped datagrams: some losses are that host's.
    OwnInterfaceDrops,
    /// Probes left late by the instrument's own doing.
    LateSends,
    /// The clock is coarser than a tenth of the measured times.
    CoarseClock,
    /// Civil time was set during the measurement.
    ClockStepped,
    /// The sender could not keep the asked pace.
    PaceNotKept,
    /// A search ended while its rate was still rising: the path carries this much or more.
    SearchUnfinished,
    /// Datagrams travelled joined in large buffers that nothing on the way cut apart.
    UncutDatagrams,
    /// Stopped before the planned end.
    CutShort,
    /// The receiving end reported nothing: the acknowledged bytes stand in for its count.
    OneSided,
    /// More was measured than a bound of it allows: one of the two is wrong.
    AboveCeiling,
    /// An emulated path on the way fell behind its schedule, or dropped packets that its plan would
    /// have carried: the measurement is not of the planned path.
    EmulatorLate,
    /// The machine is virtual, and its host took CPU time from it during the measurement.
    StolenTime,
    /// MSG_ZEROCOPY was asked for, and the kernel copied all the same.
    ZeroCopyCopied,
    /// Multipath TCP was asked for and was not in use.
    MultipathNotUsed,
    /// The tester alone reaches no more than it measured of the device.
    TesterLimited,
    /// Trials of a device, or rounds of a comparison, were disturbed by the tester or its host;
    /// they do not count.
    TesterDisturbed,
    /// PAUSE frames arrived from a device: it held senders back.
    FlowControl,
    /// Frames arrived from a device longer or shorter than they were sent.
    LengthChanged,
    /// A survey could send no trains of probe datagrams: the figures that they give are missing.
    TrainsMissing,
    /// The result is a model's, in virtual time: no packet was sent.
    VirtualTime,
}

/// One caveat of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caveat {
    /// The kind of caveat.
    pub code: CaveatCode,
    /// The observation, with its figure.
    pub detail: String,
    /// Advice: the next step for the user.
    pub advice: String,
}

impl Caveat {
    /// A caveat of one kind, on one line ([`one_line`]): parts of it may be text from another end.
    pub fn new(code: CaveatCode, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        let (detail, advice) = (one_line(&detail.into()), one_line(&advice.into()));
        Self { code, detail, advice }
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.detail, self.advice)
    }
}
