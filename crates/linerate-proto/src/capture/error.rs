//! Errors of a capture, with the byte at which they are.

use super::{BLOCK_MAX_BYTES, INTERFACES_MAX};

/// Error after which a capture cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub struct CaptureError {
    /// Offset in bytes from the start of the capture.
    pub offset: u64,
    /// Expected and found content at that offset.
    pub problem: CaptureProblem,
}

impl CaptureError {
    pub(super) const fn new(offset: u64, problem: CaptureProblem) -> Self {
        Self { offset, problem }
    }

    /// True when the capture ends within a record: all packets before it are complete.
    pub const fn is_cut(&self) -> bool {
        matches!(self.problem, CaptureProblem::Cut { .. })
    }
}

/// Description of the first bytes for an error message, as text where they are printable.
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

/// Expected and found content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureProblem {
    /// The file is empty.
    #[error("expected a pcap or pcapng capture, found nothing: the file is empty")]
    Empty,
    /// The first bytes are of no known format.
    #[error("expected a pcap or pcapng capture, found {}", beginning(*.0))]
    NotACapture([u8; 4]),
    /// A compressed file, with the name of its format.
    #[error("expected a pcap or pcapng capture, found {0} data; decompress it first")]
    Compressed(&'static str),
    /// A variant of pcap whose record headers have another length.
    #[error("expected pcap or pcapng, found {0}; `editcap OLD NEW` may convert it")]
    Dialect(&'static str),
    /// An unsupported version of the format.
    #[error("expected {expected}, found version {major}.{minor}")]
    Version {
        /// The format and its supported versions.
        expected: &'static str,
        /// Major version of the file.
        major: u16,
        /// Minor version of the file.
        minor: u16,
    },
    /// A section without its byte order mark.
    #[error("expected the byte order mark 1a2b3c4d of a section, found {0:02x?}")]
    ByteOrder([u8; 4]),
    /// A block shorter than its fixed fields.
    #[error("expected at least {least} bytes for {what}, found a length of {found}")]
    TooShort {
        /// Name of the record or block.
        what: &'static str,
        /// Shortest allowed length.
        least: u32,
        /// Length that the file states.
        found: u32,
    },
    /// A block beyond the limit.
    #[error("expected at most {most} bytes for {what}, found a length of {found}")]
    TooLong {
        /// Name of the record or block.
        what: &'static str,
        /// Longest allowed length.
        most: u32,
        /// Length that the file states.
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
    /// A packet of an interface that is not described in the section.
    #[error("expected an interface below {known}, found interface {found}")]
    Interface {
        /// Number of interfaces described so far.
        known: u32,
        /// Interface of the packet.
        found: u32,
    },
    /// More interfaces than a section may have.
    #[error("expected at most {INTERFACES_MAX} interfaces in a section, found one more")]
    Interfaces,
    /// An option that ends after its block.
    #[error("expected an option of at most {room} bytes, found a length of {found}")]
    OptionLength {
        /// Bytes left in the block.
        room: u32,
        /// Length that the file states.
        found: u32,
    },
    /// A timestamp out of range.
    #[error("expected a time from 1970 to 2554, found {units} units of the interface's clock")]
    Time {
        /// The timestamp in units of the interface's clock.
        units: u64,
    },
    /// The capture ends within a record.
    #[error("the capture is cut: expected {expected} bytes or more, found {found}")]
    Cut {
        /// Least bytes of the record.
        expected: u32,
        /// Bytes left in the capture.
        found: u32,
    },
}

/// [`BLOCK_MAX_BYTES`] in the type of the formats' length fields.
pub(super) const BLOCK_MAX: u32 = BLOCK_MAX_BYTES as u32;
