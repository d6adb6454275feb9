//! How a receiving thread takes bytes from the kernel, and what it makes of them.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::TcpStream;

use linerate_core::record::{Contents, Direction, ReceiveWith, Verified};
use linerate_core::units::BitRate;
use linerate_proto::native::Pattern;
use linerate_sys::splice::SpliceSink;

use super::low_water::{MARK_UNREAD, MARKS};

/// Bytes that one recv() may take where the test names no size: of those that are copied, what
/// stays in the cache; of those that are not, all that a buffer may hold.
const READ_BYTES: usize = 512 << 10;
const DISCARD_BYTES: usize = 64 << 20;

/// Takes payload out of the messages that carry it.
pub(crate) trait Framing: Send {
    /// Reads what is there, into `buffer`, without a byte of the framing; 0 at the end. Once the
    /// test is `over` it tells the other end so where its protocol has a place for that.
    fn read_payload(
        &mut self,
        stream: &TcpStream,
        buffer: &mut [MaybeUninit<u8>],
        over: bool,
    ) -> io::Result<usize>;
}

/// How one thread receives.
pub(super) enum ReceiveMethod {
    /// Copied to the program, which takes the payload out of its framing.
    Framed(Box<dyn Framing>, Vec<MaybeUninit<u8>>),
    /// Copied to the program, which does not look at them.
    Copy(Vec<MaybeUninit<u8>>),
    /// Copied to the program and held against the pattern.
    Check(Box<PatternChecker>),
    /// Counted and dropped by the kernel, so many at most in a call.
    Discard(usize),
    /// Moved through a pipe to /dev/null.
    Sink(SpliceSink),
}

/// The treatment of received bytes by a receiving thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Treatment {
    pub(crate) with: ReceiveWith,
    /// Bytes of one call, where the test names them.
    pub(crate) read_bytes: Option<u32>,
    /// Pace of the calls together, in payload bit/s.
    pub(crate) read_pace: Option<BitRate>,
    /// Seed of the pattern that they are held against.
    pub(crate) verify_seed: Option<u32>,
    /// Which stream it is.
    pub(crate) place: (Direction, u16),
}

impl Treatment {
    /// Bytes of one call, where they are limited: what the test names, or 10 ms of its pace.
    pub(super) fn call_bytes(&self) -> Option<usize> {
        let paced = |pace: BitRate| (pace.bits_per_sec() / 800).clamp(1, READ_BYTES as u64);
        let paced = self.read_pace.map(paced);
        self.read_bytes.map(u64::from).or(paced).map(|bytes| bytes as usize)
    }
}

impl ReceiveMethod {
    pub(super) fn from_treatment(treatment: &Treatment) -> linerate_sys::Result<Self> {
        let asked = treatment.call_bytes();
        let read_bytes = asked.unwrap_or(READ_BYTES);
        Ok(match (treatment.with, treatment.verify_seed) {
            (ReceiveWith::Read, Some(seed)) => {
                let (direction, flow) = treatment.place;
                let pattern = Pattern::new(seed, direction, flow);
                Self::Check(Box::new(PatternChecker::new(pattern, read_bytes)))
            }
            (ReceiveWith::Read, None) => Self::Copy(vec![MaybeUninit::uninit(); read_bytes]),
            (ReceiveWith::Trunc, _) => Self::Discard(asked.unwrap_or(DISCARD_BYTES)),
            (ReceiveWith::Splice, _) => Self::Sink(SpliceSink::new()?),
        })
    }

    /// Takes payload out of `framing`.
    pub(super) fn framed(framing: Box<dyn Framing>) -> Self {
        Self::Framed(framing, vec![MaybeUninit::uninit(); READ_BYTES])
    }

    /// Takes what is there of a test that may be `over`; 0 at the end of the stream.
    #[inline]
    pub(super) fn receive_bytes(&mut self, stream: &TcpStream, over: bool) -> io::Result<usize> {
        match self {
            Self::Framed(framing, buffer) => framing.read_payload(stream, buffer, over),
            Self::Copy(buffer) => linerate_sys::tcp::receive(stream, buffer),
            Self::Check(checker) => checker.read_and_check(stream),
            Self::Discard(most) => linerate_sys::tcp::discard(stream, *most),
            Self::Sink(sink) => sink.receive(stream),
        }
    }

    /// The largest low-water mark that suits it.
    pub(super) const fn mark_max(&self) -> u32 {
        match self {
            Self::Framed(..) | Self::Copy(_) | Self::Check(_) => MARKS[0],
            Self::Discard(_) | Self::Sink(_) => MARK_UNREAD,
        }
    }

    /// Name of the method in records.
    pub(super) const fn technique(&self) -> &'static str {
        match self {
            Self::Framed(..) | Self::Copy(_) | Self::Check(_) => "read",
            Self::Discard(_) => "trunc",
            Self::Sink(_) => "splice",
        }
    }

    pub(super) const fn contents(&self) -> Contents {
        match self {
            Self::Framed(..) | Self::Copy(_) => Contents::Copied,
            Self::Check(_) => Contents::Checked,
            Self::Discard(_) | Self::Sink(_) => Contents::Untouched,
        }
    }

    /// The result of checking the bytes, where it was asked for.
    pub(super) fn verified(&self) -> Option<Verified> {
        match self {
            Self::Check(checker) => Some(checker.found),
            Self::Framed(..) | Self::Copy(_) | Self::Discard(_) | Self::Sink(_) => None,
        }
    }
}

/// Holds every byte of a stream against its pattern.
pub(super) struct PatternChecker {
    pattern: Pattern,
    buffer: Vec<u8>,
    found: Verified,
}

impl PatternChecker {
    fn new(pattern: Pattern, read_bytes: usize) -> Self {
        Self { pattern, buffer: vec![0; read_bytes], found: Verified::default() }
    }

    fn read_and_check(&mut self, mut stream: &TcpStream) -> io::Result<usize> {
        let count = stream.read(&mut self.buffer)?;
        self.check_bytes(count);
        Ok(count)
    }

    fn check_bytes(&mut self, count: usize) {
        if let Some(found) = self.pattern.compare(self.found.bytes, &self.buffer[..count]) {
            self.found.wrong_bytes += found.bytes;
            self.found.first_wrong_offset.get_or_insert(found.first_offset);
        }
        self.found.bytes += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_fault_is_found_at_its_place_in_the_stream() {
        let pattern = || Pattern::new(5, Direction::Up, 2);
        let mut checker = PatternChecker::new(pattern(), 100_000);
        for (count, planted) in [(100_000, None), (70_001, Some(4_321)), (9, None), (77, Some(76))]
        {
            pattern().fill_bytes(checker.found.bytes, &mut checker.buffer[..count]);
            if let Some(at) = planted {
                checker.buffer[at] ^= 0x20;
            }
            checker.check_bytes(count);
        }
        // 100,000 bytes in order, then the one 4,321 further; 170,010 + 76 is the second.
        let expected =
            Verified { bytes: 170_087, wrong_bytes: 2, first_wrong_offset: Some(104_321) };
        assert_eq!(checker.found, expected);
    }
}
