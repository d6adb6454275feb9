//! Result of a parser's step, and the parser's position.

use super::CapturedPacket;

/// Result of one step of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStep<'a> {
    /// A packet, which took `used` bytes of the input.
    Packet {
        /// The parsed packet.
        packet: CapturedPacket<'a>,
        /// Bytes used: at least 1, at most the length of the input.
        used: usize,
    },
    /// A header or block without a packet, which took `used` bytes of the input.
    Passed {
        /// Bytes used: at least 1, at most the length of the input.
        used: usize,
    },
    /// The input is too short: call again with at least `bytes` from the same offset.
    Needs {
        /// Bytes needed: more than the input had, at most [`super::BLOCK_MAX_BYTES`].
        bytes: usize,
    },
}

/// Position of a parser in its capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Bytes parsed.
    pub(super) offset: u64,
    /// Packets returned.
    pub(super) packets: u64,
}

impl Position {
    /// Advances by `used` bytes without a packet.
    pub(super) const fn advance_bytes<'a>(&mut self, used: usize) -> CaptureStep<'a> {
        self.offset += used as u64;
        CaptureStep::Passed { used }
    }

    /// Advances by a packet of `used` bytes and returns its number.
    #[inline]
    pub(super) const fn count_packet(&mut self, used: usize) -> u64 {
        self.offset += used as u64;
        self.packets += 1;
        self.packets
    }
}
