//! One step of a parser, and how far it has come.

use super::Packet;

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A packet; `used` bytes of the input are done with.
    Packet {
        /// The packet.
        packet: Packet<'a>,
        /// At least 1, at most the length of the input.
        used: usize,
    },
    /// Something else; `used` bytes of the input are done with.
    Passed {
        /// At least 1, at most the length of the input.
        used: usize,
    },
    /// The input is too short: call again with at least so many bytes from the same place.
    Needs {
        /// More than the input had, at most [`super::BLOCK_MAX_BYTES`].
        bytes: usize,
    },
}

/// How far a parser has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Bytes done with.
    pub(super) offset: u64,
    /// Packets given.
    pub(super) packets: u64,
}

impl Place {
    /// The step for something of `used` bytes that is no packet.
    pub(super) const fn pass<'a>(&mut self, used: usize) -> Step<'a> {
        self.offset += used as u64;
        Step::Passed { used }
    }

    /// The same for a packet; returns its number.
    #[inline]
    pub(super) const fn count(&mut self, used: usize) -> u64 {
        self.offset += used as u64;
        self.packets += 1;
        self.packets
    }
}
