//! Begin and end of a UDP transfer.
//!
//! ```text
//! transmitter                          receiver
//!   4 bytes ----------------------------->    clock starts
//!   data, more than 4 bytes each -------->    counted
//!   4 bytes ----------------------------->    clock stops
//!   4 times 4 bytes --------------------->    in case the one before was lost
//! ```
//!
//! A datagram of up to 4 bytes is a mark, whatever it holds. Nothing is numbered: what was lost is
//! the difference of both ends' counts. A lost begin makes the first end a begin.

use std::time::Duration;

use linerate_core::time::MonoTime;

/// Longest mark, and the length of those that are sent.
pub const MARK_BYTES: usize = 4;

/// What a mark holds is the beginning of the data's pattern.
const MARK: [u8; MARK_BYTES] = *b" !\"#";

/// Marks with the milliseconds from the first.
pub type TimedMarks = &'static [(u64, [u8; MARK_BYTES])];

/// The mark before the data.
pub const BEGIN_MARKS: TimedMarks = &[(0, MARK)];

/// Marks after the data: one, and four more in case it was lost. A receiver that the data has
/// drowned takes one of them.
pub const END_MARKS: TimedMarks = &[(0, MARK), (50, MARK), (100, MARK), (150, MARK), (200, MARK)];

/// Marks before or after data, each to be sent at its time.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    from: MonoTime,
    left: TimedMarks,
}

impl Marks {
    /// These, the first of them at a time.
    pub const fn new(from: MonoTime, left: TimedMarks) -> Self {
        Self { from, left }
    }

    /// The next mark, if it is time for it.
    pub fn due(&mut self, now: MonoTime) -> Option<[u8; MARK_BYTES]> {
        let ((after_ms, mark), left) = self.left.split_first()?;
        if now < self.from + Duration::from_millis(*after_ms) {
            return None;
        }
        self.left = left;
        Some(*mark)
    }

    /// Whether all have been sent.
    pub const fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The clock starts.
    Begin,
    /// So many bytes of data; also before a begin that was lost.
    Data(usize),
    /// The transfer is over.
    End,
    /// A mark after the end.
    Late,
}

/// Follows the datagrams of one transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpReceiver {
    marks: u32,
    /// Data datagrams so far.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl UdpReceiver {
    /// Takes a datagram by its length.
    pub fn take(&mut self, length: usize) -> Received {
        if length > MARK_BYTES {
            self.datagrams += 1;
            self.bytes += length as u64;
            // A begin that was lost: what came is data all the same, and the next mark the end.
            self.marks = self.marks.max(1);
            return Received::Data(length);
        }
        self.marks += 1;
        match self.marks {
            1 => Received::Begin,
            2 => Received::End,
            _ => Received::Late,
        }
    }
}
