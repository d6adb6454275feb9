//! What a sender keeps about losses.

use crate::time::MonoTime;

/// State of the sender's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Fast recovery until this segment is acknowledged.
    Recovery {
        until: u64,
    },
    /// Recovery after a time-out, until this segment is acknowledged.
    Timeout {
        until: u64,
    },
}

/// Values that undo a reduction of the window, and counts that spread the reduction evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Retransmissions of which no duplicate was reported.
    pub(super) open: u64,
    pub(super) any: bool,
    /// Segments delivered and sent in this recovery (RFC 6937 §3).
    pub(super) delivered: u64,
    pub(super) sent_before: u64,
}

/// The probe of a tail (RFC 8985 §7).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    pub(super) due: Option<MonoTime>,
    /// Segment until whose acknowledgement no other probe is sent, and whether the probe is a
    /// retransmission.
    pub(super) out: Option<(u64, bool)>,
}
