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

/// Longest mark, and the length of those that are sent.
pub const MARK_BYTES: usize = 4;

/// Marks after the data: one, and four more in case it was lost.
pub const END_MARKS: u32 = 5;

/// How many of the last marks come after the sender's clock has stopped.
pub const fn marks_end_after() -> u32 {
    END_MARKS - 1
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
