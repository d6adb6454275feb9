//! Parser with a buffer, for a capture that is read piece by piece. The caller reads the bytes;
//! [`super::CaptureParser`] works without a buffer.

use super::BLOCK_MAX_BYTES;
use super::error::CaptureError;
use super::parser::CaptureParser;
use super::step::CaptureStep;
use super::{CaptureInterface, CapturedPacket, Format};

/// Initial bytes of the buffer: large enough that one read serves some hundred packets, small
/// enough that its bytes are still in the second-level cache.
const BUFFER_BYTES: usize = 256 << 10;

/// Result of [`Stream::next_packet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A packet, in the stream's buffer.
    Packet(CapturedPacket<'a>),
    /// No complete packet is buffered: fill [`Stream::free_space`], or call [`Stream::check_end`].
    NeedsInput,
}

/// Parser of a capture in bounded memory: 256 KiB, and up to [`BLOCK_MAX_BYTES`] for a longer
/// block.
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
///         Next::NeedsInput => match std::io::Read::read(&mut left, stream.free_space()) {
///             Ok(0) => break stream.check_end()?,
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
    parser: CaptureParser,
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

    /// A stream with an initial buffer of `bytes`, at least 1.
    pub fn with_buffer(bytes: usize) -> Self {
        let buffer = vec![0; bytes.clamp(1, BLOCK_MAX_BYTES)];
        Self { parser: CaptureParser::new(), buffer, start: 0, end: 0, wanted: 0 }
    }

    /// The next packet, or the request for more bytes.
    /// # Errors
    /// The errors of [`CaptureParser::parse_record`].
    #[inline]
    pub fn next_packet(&mut self) -> Result<Next<'_>, CaptureError> {
        loop {
            match self.parser.parse_record(&self.buffer[self.start..self.end])? {
                CaptureStep::Packet { packet, used } => {
                    self.start += used;
                    return Ok(Next::Packet(packet));
                }
                CaptureStep::Passed { used } => self.start += used,
                CaptureStep::Needs { bytes } => {
                    self.wanted = bytes;
                    return Ok(Next::NeedsInput);
                }
            }
        }
    }

    /// Free space of the buffer for the next bytes. Never empty after [`Next::NeedsInput`].
    pub fn free_space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // The buffer grows with the bytes received and not to a block's stated length at once, so
        // that a forged length does not take the memory of the longest block.
        if self.end == self.buffer.len() && self.wanted > self.end {
            self.buffer.resize((2 * self.end).min(BLOCK_MAX_BYTES), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Notes that `count` bytes were written to the start of [`Self::free_space`].
    /// # Panics
    /// When the space is smaller.
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.end, "no more than there was space for");
        self.end += count;
    }

    /// Checks that the capture may end here.
    /// # Errors
    /// The errors of [`CaptureParser::check_end`]: the capture is cut, or empty.
    pub fn check_end(&mut self) -> Result<(), CaptureError> {
        self.parser.check_end(&self.buffer[self.start..self.end])
    }

    /// Format of the capture, once its first bytes were parsed.
    pub const fn format(&self) -> Option<Format> {
        self.parser.format()
    }

    /// Interfaces of the current section described so far, in order.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        self.parser.interfaces()
    }

    /// Packets returned so far.
    pub const fn packets(&self) -> u64 {
        self.parser.packets()
    }

    /// Bytes parsed so far.
    pub const fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// Current bytes of the buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }
}
