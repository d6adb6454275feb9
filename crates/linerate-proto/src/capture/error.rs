//! What is wrong with a capture, and at which byte of it.

use super::{BLOCK_MAX_BYTES, INTERFACES_MAX};

/// A capture that cannot be read on from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub struct CaptureError {
    /// Where, in bytes from the start of the capture.
    pub offset: u64,
    /// What was expected there and what came.
    pub problem: Problem,
}

impl CaptureError {
    pub(super) const fn new(offset: u64, problem: Problem) -> Self {
        Self { offset, problem }
    }

    /// True when the capture ends in the middle of a record: all packets before it are whole.
    pub const fn is_cut(&self) -> bool {
        matches!(self.problem, Problem::Cut { .. })
    }
}

/// The first bytes as a person would say them: text as text.
fn beginning(bytes: [u8; 4]) -> String {
    match std::str::from_utf8(&bytes) {
        Ok(text) if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) => {
            format!("a file that begins with the text \"{text}\"")
        }
        _ => {
            let bytes = bytes.map(|byte| format!("{byte:02x}")).join(" ");
            format!("a file that begins with the bytes {bytes}, which no format known here has")
        }
    }
}

/// What was expected and what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No byte at all.
    #[error("expected a pcap or pcapng capture, found nothing: the file is empty")]
    Empty,
    /// The first bytes are of no format known.
    #[error("expected a pcap or pcapng capture, found {}", beginning(*.0))]
    NotACapture([u8; 4]),
    /// A compressed file.
    #[error("expected a pcap or pcapng capture, found {0} data; decompress it first")]
    Compressed(&'static str),
    /// A dialect of pcap whose record headers are of another length.
    #[error("expected pcap or pcapng, found {0}; `editcap OLD NEW` may convert it")]
    Dialect(&'static str),
    /// A version that is not read.
    #[error("expected {expected}, found version {major}.{minor}")]
    Version {
        /// The format and its versions that are read.
        expected: &'static str,
        /// The file's.
        major: u16,
        /// The file's.
        minor: u16,
    },
    /// A section without its byte order mark.
    #[error("expected the byte order mark 1a2b3c4d of a section, found {0:02x?}")]
    ByteOrder([u8; 4]),
    /// A block shorter than its fixed fields.
    #[error("expected at least {least} bytes for {what}, found a length of {found}")]
    TooShort {
        /// Which record or block.
        what: &'static str,
        /// Its shortest length.
        least: u32,
        /// The length told.
        found: u32,
    },
    /// A block beyond the limit.
    #[error("expected at most {most} bytes for {what}, found a length of {found}")]
    TooLong {
        /// Which record or block.
        what: &'static str,
        /// The limit that it breaks.
        most: u32,
        /// The length told.
        found: u32,
    },
    /// A block whose length is no multiple of 4.
    #[error("expected a block length that is a multiple of 4, found {0}")]
    Unaligned(u32),
    /// A block whose last word differs from its second.
    #[error("expected the block length {head} again at the block's end, found {tail}")]
    Trailer {
        /// The length at the start.
        head: u32,
        /// The length at the end.
        tail: u32,
    },
    /// A packet of an interface that the section does not describe.
    #[error("expected an interface below {known}, found interface {found}")]
    Interface {
        /// Interfaces described so far.
        known: u32,
        /// The packet's.
        found: u32,
    },
    /// More interfaces than are kept.
    #[error("expected at most {INTERFACES_MAX} interfaces in a section, found one more")]
    Interfaces,
    /// An option that ends behind its block.
    #[error("expected an option of at most {room} bytes, found a length of {found}")]
    OptionLength {
        /// What is left of the block.
        room: u32,
        /// The length told.
        found: u32,
    },
    /// A time that no clock tells.
    #[error("expected a time from 1970 to 2554, found {units} units of the interface's clock")]
    Time {
        /// The time stamp as it stands.
        units: u64,
    },
    /// The end of the bytes in the middle of a record.
    #[error("the capture is cut: expected {expected} bytes or more, found {found}")]
    Cut {
        /// Bytes that the record has, or at least has.
        expected: u32,
        /// Bytes that are there.
        found: u32,
    },
}

/// The limit as the lengths of the formats are written.
pub(super) const BLOCK_MAX: u32 = BLOCK_MAX_BYTES as u32;
