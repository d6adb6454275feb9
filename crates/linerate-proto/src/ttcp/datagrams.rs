//! Marks at the begin and end of a UDP transfer.
//!
//! ```text
//! transmitter                          receiver
//!   4 bytes ----------------------------->    clock starts
//!   data, more than 4 bytes each -------->    counted
//!   4 bytes ----------------------------->    clock stops
//!   4 times 4 bytes --------------------->    in case the one before was lost
//! ```
//!
//! A datagram of up to 4 bytes is a mark, whatever its content. Datagrams have no sequence: the
//! loss is the difference of both ends' counts. If the begin is lost, data stands in for it.

use std::time::Duration;

use linerate_core::time::MonoTime;

/// Bytes of the longest mark, and of every mark that is sent.
pub const MARK_BYTES: usize = 4;

/// Content of a mark: the beginning of the data's pattern.
const MARK: [u8; MARK_BYTES] = *b" !\"#";

/// Marks, each with its time after the first in milliseconds.
pub type TimedMarks = &'static [(u64, [u8; MARK_BYTES])];

/// The mark before the data.
pub const BEGIN_MARKS: TimedMarks = &[(0, MARK)];

/// Marks after the data: one, and four more in case it was lost, of which a receiver with a full
/// buffer gets one.
pub const END_MARKS: TimedMarks = &[(0, MARK), (50, MARK), (100, MARK), (150, MARK), (200, MARK)];

/// Marks before or after data, each to be sent at its time.
#[derive(Clone, Copy, Debug)]
pub struct TtcpMarks {
    from: MonoTime,
    left: TimedMarks,
}

impl TtcpMarks {
    /// Marks of which the first is sent at `from`.
    pub const fn new(from: MonoTime, left: TimedMarks) -> Self {
        Self { from, left }
    }

    /// The next mark, if it is due at `now`.
    pub fn next_due_mark(&mut self, now: MonoTime) -> Option<[u8; MARK_BYTES]> {
        let ((after_ms, mark), left) = self.left.split_first()?;
        if now < self.from + Duration::from_millis(*after_ms) {
            return None;
        }
        self.left = left;
        Some(*mark)
    }

    /// True once all marks have been sent.
    pub const fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

/// Meaning of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtcpDatagram {
    /// The mark before the data, at which the clock starts.
    Begin,
    /// Data of this many bytes; counted even if the begin was lost.
    Data(usize),
    /// The first mark after the data, at which the clock stops.
    End,
    /// A further mark after the end.
    Late,
}

/// Counts the datagrams of one transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TtcpUdpReceiver {
    marks: u32,
    /// Data datagrams received so far.
    pub datagrams: u64,
    /// Bytes of the data datagrams.
    pub bytes: u64,
}

impl TtcpUdpReceiver {
    /// Counts a datagram of this length and returns its meaning.
    pub fn count_datagram(&mut self, length: usize) -> TtcpDatagram {
        if length > MARK_BYTES {
            self.datagrams += 1;
            self.bytes += length as u64;
            // If the begin was lost, the data still counts, and the next mark is the end.
            self.marks = self.marks.max(1);
            return TtcpDatagram::Data(length);
        }
        self.marks += 1;
        match self.marks {
            1 => TtcpDatagram::Begin,
            2 => TtcpDatagram::End,
            _ => TtcpDatagram::Late,
        }
    }
}
