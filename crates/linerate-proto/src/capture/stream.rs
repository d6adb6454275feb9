//! A parser with a buffer, for a capture that is read piece by piece.
//! It reads nothing itself; [`super::Parser`] does without the buffer.

use super::BLOCK_MAX_BYTES;
use super::error::CaptureError;
use super::parser::Parser;
use super::step::Step;
use super::{Format, Interface, Packet};

/// Bytes of the buffer to begin with: large enough that a read's cost is shared by some hundred
/// packets, small enough that what was just read is still in the second cache.
const BUFFER_BYTES: usize = 256 << 10;

/// What there is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A packet, in the stream's buffer.
    Packet(Packet<'a>),
    /// No whole packet is left: fill [`Stream::space`], or call [`Stream::end`].
    NeedsInput,
}

/// Reads a capture in constant memory: 256 KiB, and up to [`BLOCK_MAX_BYTES`] for a longer block.
///
/// ```
/// use linerate_proto::capture::{LinkType, Next, Stream};
///
/// // Little-endian pcap of raw IPv4 in microseconds, and a packet of 20 bytes.
/// let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 228].map(u32::to_le_bytes).concat();
/// let record = [1_700_000_000, 250_000, 20, 20].map(u32::to_le_bytes).concat();
/// let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
/// let capture = [&header[..], &record, &packet].concat();
///
/// let (mut stream, mut left, mut count) = (Stream::new(), &capture[..], 0);
/// loop {
///     match stream.next_packet()? {
///         Next::Packet(packet) => {
///             assert_eq!(packet.at_ns, Some(1_700_000_000_250_000_000));
///             assert_eq!(packet.link_type, LinkType::IPV4);
///             assert_eq!(packet.decode().ip.map(|ip| ip.ip_bytes), Ok(20));
///             count += 1;
///         }
///         Next::NeedsInput => match std::io::Read::read(&mut left, stream.space()) {
///             Ok(0) => break stream.end()?,
///             Ok(bytes) => stream.filled(bytes),
///             Err(error) => panic!("{error}"),
///         },
///     }
/// }
/// assert_eq!(count, 1);
/// # Ok::<(), linerate_proto::capture::CaptureError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    parser: Parser,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    wanted: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self::new()
    }
}

impl Stream {
    /// A stream at the start of a capture.
    pub fn new() -> Self {
        Self::with_buffer(BUFFER_BYTES)
    }

    /// A stream whose buffer has `bytes` to begin with, at least 1.
    pub fn with_buffer(bytes: usize) -> Self {
        let buffer = vec![0; bytes.clamp(1, BLOCK_MAX_BYTES)];
        Self { parser: Parser::new(), buffer, start: 0, end: 0, wanted: 0 }
    }

    /// The next packet, or the wish for bytes.
    /// # Errors
    /// As [`Parser::step`].
    #[inline]
    pub fn next_packet(&mut self) -> Result<Next<'_>, CaptureError> {
        loop {
            match self.parser.step(&self.buffer[self.start..self.end])? {
                Step::Packet { packet, used } => {
                    self.start += used;
                    return Ok(Next::Packet(packet));
                }
                Step::Passed { used } => self.start += used,
                Step::Needs { bytes } => {
                    self.wanted = bytes;
                    return Ok(Next::NeedsInput);
                }
            }
        }
    }

    /// Where to put the bytes that follow. Never empty after [`Next::NeedsInput`].
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // A block announces its length: its room grows with the bytes that have come, so that a few
        // of them do not take the memory of the longest block.
        if self.end == self.buffer.len() && self.wanted > self.end {
            self.buffer.resize((2 * self.end).min(BLOCK_MAX_BYTES), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Says that `count` bytes were put at the start of [`Self::space`].
    /// # Panics
    /// When the space is smaller.
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.end, "no more than there was space for");
        self.end += count;
    }

    /// Says that no more bytes come.
    /// # Errors
    /// As [`Parser::end`]: that the capture is cut, and where, or that it was empty.
    pub fn end(&mut self) -> Result<(), CaptureError> {
        self.parser.end(&self.buffer[self.start..self.end])
    }

    /// The format, once the first bytes were seen.
    pub const fn format(&self) -> Option<Format> {
        self.parser.format()
    }

    /// The interfaces of the present section that were described so far, in their order.
    pub fn interfaces(&self) -> &[Interface] {
        self.parser.interfaces()
    }

    /// Packets given so far.
    pub const fn packets(&self) -> u64 {
        self.parser.packets()
    }

    /// Bytes done with so far.
    pub const fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// Bytes of the buffer now.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }
}
