//! Samples of UDP streams. Fields are added, never renamed; unknown ones are ignored.

use linerate_core::record::{DatagramCounts, Direction};
use serde::{Deserialize, Serialize};

/// [`DatagramCounts`] of one stream, with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSample {
    /// Which way the stream's data goes.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// What was counted.
    pub counts: DatagramCounts,
    /// Processor time of the stream's data thread so far.
    pub cpu_ns: Option<u64>,
    /// Time so far that this thread waited for a processor.
    pub run_queue_wait_ns: Option<u64>,
}
