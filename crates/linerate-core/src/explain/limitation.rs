//! The limit of a result as a value: which part limited it, in which direction, and the figure that
//! shows it.
//!
//! Left out: words for people; `report` has them.

use super::device::DeviceLimit;
use crate::record::{Cause, Caveat, Direction, FlowSide, LimitedBy};

/// Limit of a result, and the ground for naming it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limitation {
    /// The part that limited it.
    pub by: LimitedBy,
    /// The direction that it limited; none for the whole result.
    pub way: Option<Direction>,
    /// Ground for naming this limit.
    pub ground: Ground,
}

/// Ground for naming a limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Ground {
    /// Nothing does, or nothing has to.
    Nothing,
    /// The cause and the figures of the direction's diagnosis.
    Diagnosis(Cause),
    /// All causes that agree with the evidence, where the diagnosis leaves several.
    Between(Vec<Cause>),
    /// The rate over what the link carries.
    LinkFull {
        /// Measured rate over the bound.
        ratio: f64,
    },
    /// More was measured than the bound allows, so that one of the two is wrong.
    AboveCeiling,
    /// The pace that was asked for, in bit/s.
    Pace(f64),
    /// A window or buffer of TCP and the rate that it allows.
    Window {
        /// The bound's kind: `receive_window`, `send_buffer`.
        kind: String,
        /// Its size, where it is known.
        bytes: Option<u64>,
        /// The rate that it allows.
        bps: f64,
    },
    /// Computing of the busiest data thread, over the time.
    Computed(FlowSide, f64),
    /// Waiting of a data thread for a core, over the time.
    WaitedForCore(FlowSide, f64),
    /// A caveat of the engine: another program's end has no counters of its own.
    Caveat(Caveat),
    /// Time that the sender's kernel waited for the receiver's window, over its busy time.
    WaitedForWindow(f64),
    /// Time that the sender's kernel waited for its send buffer, over its busy time.
    WaitedForBuffer(f64),
    /// A queue that stood under load.
    Queue {
        /// The least round trip, in nanoseconds.
        least_ns: f64,
        /// The round trip under load, in nanoseconds.
        loaded_ns: f64,
    },
    /// Share of the segments that were sent again.
    SentAgain(f64),
    /// Segments that were sent again in a model.
    SegmentsAgain(u64),
    /// Both ends run on one host.
    OneHost,
    /// Datagrams lost at the receiver's own socket, of all that were lost.
    LostAtSocket(f64, f64),
    /// Datagrams lost at the sender's own interface, of all that were lost.
    LostAtInterface(f64, f64),
    /// Datagrams were lost on the path.
    LostOnPath,
    /// A sender without a pace of which hardly anything was lost.
    SendsNoFaster,
    /// A search whose rate was still rising at its end.
    StillRising,
    /// A search that found a rate above which more is lost or delayed.
    MoreLost,
    /// A search whose highest rate passed.
    HighestPassed,
    /// Share of a round trip that passed within this host.
    WithinHost(f64),
    /// A device benchmark's limit; none without a throughput.
    Device(Option<DeviceLimit>),
}

impl Limitation {
    /// A limit with what shows it.
    pub(super) const fn new(by: LimitedBy, ground: Ground) -> Self {
        Self { by, way: None, ground }
    }

    /// Nothing limits what was measured: it is no rate, or its parts have limits of their own.
    pub(super) const fn nothing() -> Self {
        Self::new(LimitedBy::Nothing, Ground::Nothing)
    }

    /// The same of one direction.
    pub(super) fn of_way(self, way: Direction) -> Self {
        Self { way: Some(way), ..self }
    }

    /// True when both name the same part, whatever their figures and directions.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let alike = match (&self.ground, &other.ground) {
            (Ground::Diagnosis(one), Ground::Diagnosis(two)) => one == two,
            (Ground::Between(one), Ground::Between(two)) => one == two,
            (one, two) => std::mem::discriminant(one) == std::mem::discriminant(two),
        };
        self.by == other.by && (self.by.is_host() || self.by == LimitedBy::Link || alike)
    }
}

/// The part that a cause belongs to.
pub(super) fn part_of(cause: Cause, way: Option<Direction>) -> LimitedBy {
    let down = way == Some(Direction::Down);
    let host = |local: bool| if local { LimitedBy::ThisHost } else { LimitedBy::OtherEnd };
    match cause {
        Cause::ReceiveWindow | Cause::SendBuffer => LimitedBy::Window,
        Cause::SendingApplication => LimitedBy::Pace,
        Cause::SendingHost => host(!down),
        Cause::ReceivingHost | Cause::ReceivingApplication => host(down),
        Cause::Tester => LimitedBy::ThisHost,
        Cause::Link | Cause::LinkFallback => LimitedBy::Link,
        Cause::StartUp => LimitedBy::Time,
        _ => LimitedBy::Path,
    }
}
