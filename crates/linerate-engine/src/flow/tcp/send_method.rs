//! How a sending thread hands its bytes to the kernel.
//!
//! What all streams of an end share is the [`Payload`]; what one thread has for itself, a pipe or a
//! place in a pattern, is its [`SendMethod`]. Pages that the kernel refers to are never written
//! again: they lie in a mapping of their own.

use std::io;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use linerate_core::record::{Contents, Direction, SendWith, TcpTest, ZeroCopySends};
use linerate_proto::native::Pattern;
use linerate_sys::arena::Arena;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::page_cache::PageCacheFile;
use linerate_sys::splice::SpliceSender;
use linerate_sys::zero_copy::ZeroCopySender;

/// A large page of most processors: pages that lie side by side make fewer pieces of a packet.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// The kernel has this long to tell the end of the last sends.
const SETTLE: Duration = Duration::from_secs(2);

/// The payload that every sending stream of an end sends: one buffer for all, so that it stays in
/// the cache.
pub(crate) enum Payload {
    /// A buffer that write() copies.
    Memory(Vec<u8>),
    /// Referred to by vmsplice() or send().
    Pages {
        /// The memory of the pages: whole large pages where the kernel has them.
        pages: Arena,
        /// Which of the two.
        with: SendWith,
        /// Bytes of one call.
        length: usize,
    },
    /// Referred to by sendfile().
    PageCache {
        /// The file in the page cache.
        file: PageCacheFile,
        /// Bytes of one call.
        length: usize,
    },
    /// A pattern of the stream's own, written as it goes.
    Pattern {
        /// The seed of the pattern.
        seed: u32,
        /// Bytes of one call.
        length: usize,
    },
}

impl Payload {
    /// The payload of a test's senders; `content` makes a buffer of a length. The bytes are never
    /// looked at, unless the test checks them: no compression on the way is assumed.
    pub(super) fn from_request(
        request: &TcpTest,
        content: fn(usize) -> Vec<u8>,
    ) -> linerate_sys::Result<Self> {
        let length = request.send_bytes() as usize;
        if let Some(seed) = request.means.verify_seed {
            return Ok(Self::Pattern { seed, length });
        }
        let bytes = content(length);
        Ok(match request.send_with() {
            SendWith::Write => Self::Memory(bytes),
            SendWith::Sendfile => {
                Self::PageCache { file: PageCacheFile::filled_with(&bytes)?, length }
            }
            with @ (SendWith::Vmsplice | SendWith::Zerocopy) => {
                let mut pages = Arena::new(length.next_multiple_of(LARGE_PAGE_BYTES))?;
                pages[..length].copy_from_slice(&bytes);
                Self::Pages { pages, with, length }
            }
        })
    }

    /// Bytes of one call without a pace.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Memory(buffer) => buffer.len(),
            Self::Pages { length, .. }
            | Self::PageCache { length, .. }
            | Self::Pattern { length, .. } => *length,
        }
    }

    /// True where the kernel copies each write, and does not only refer to the pages.
    pub(super) const fn is_copied(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Pattern { .. })
    }

    /// The method by which the thread of stream `flow` of `direction` sends.
    pub(super) fn send_method(
        &self,
        stream: &TcpStream,
        direction: Direction,
        flow: u16,
    ) -> linerate_sys::Result<SendMethod<'_>> {
        Ok(match self {
            Self::Memory(buffer) => SendMethod::Memory(buffer),
            Self::PageCache { file, .. } => SendMethod::PageCache(file),
            Self::Pages { pages, with: SendWith::Zerocopy, .. } => {
                SendMethod::ZeroCopy(pages, ZeroCopySender::new(stream)?)
            }
            Self::Pages { pages, .. } => SendMethod::Spliced(pages, SpliceSender::new()?),
            Self::Pattern { seed, length } => {
                let pattern = Pattern::new(*seed, direction, flow);
                SendMethod::Pattern(PatternWriter::new(pattern, *length))
            }
        })
    }
}

/// How one thread sends.
#[derive(Debug)]
pub(super) enum SendMethod<'a> {
    Memory(&'a [u8]),
    PageCache(&'a PageCacheFile),
    Spliced(&'a Arena, SpliceSender),
    ZeroCopy(&'a Arena, ZeroCopySender),
    Pattern(PatternWriter),
}

impl SendMethod<'_> {
    /// Sends up to `length` bytes; returns how many the socket took.
    #[inline]
    pub(super) fn send(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        match self {
            Self::Memory(buffer) => io::Write::write(&mut &*stream, &buffer[..length]),
            Self::PageCache(file) => file.send_file(stream, length),
            Self::Spliced(pages, pipe) => pipe.send_spliced(stream, pages, length),
            Self::ZeroCopy(pages, sender) => sender.send_zero_copy(stream, pages, length),
            Self::Pattern(writer) => writer.send(stream, length),
        }
    }

    /// Name of the method in records.
    pub(super) const fn technique(&self) -> &'static str {
        match self {
            Self::Memory(_) | Self::Pattern(_) => "write",
            Self::PageCache(_) => "sendfile",
            Self::Spliced(..) => "vmsplice",
            Self::ZeroCopy(..) => "zerocopy",
        }
    }

    /// The treatment of the bytes, as far as this end knows: where the kernel told that it copied
    /// what it was to refer to, they were copied.
    pub(super) const fn contents(&self) -> Contents {
        match self {
            Self::Memory(_) => Contents::Copied,
            Self::Pattern(_) => Contents::Checked,
            Self::ZeroCopy(_, sender) if sender.counts().1 > 0 => Contents::Copied,
            Self::PageCache(_) | Self::Spliced(..) | Self::ZeroCopy(..) => Contents::Untouched,
        }
    }

    /// Waits for what the kernel still has to tell of sends, where it tells.
    pub(super) fn settle(
        &mut self,
        stream: &TcpStream,
        halt: impl Fn() -> bool,
    ) -> Option<ZeroCopySends> {
        let Self::ZeroCopy(_, sender) = self else { return None };
        let end = monotonic() + SETTLE;
        while sender.read_completions(stream).is_ok()
            && !sender.is_settled()
            && monotonic() < end
            && !halt()
        {
            sleep(Duration::from_millis(1));
        }
        let (completed, copied) = sender.counts();
        Some(ZeroCopySends { completed, copied })
    }
}

/// Writes a pattern, always from where the socket stopped taking it.
#[derive(Debug)]
pub(super) struct PatternWriter {
    pattern: Pattern,
    buffer: Vec<u8>,
    /// The part of the buffer that is made and not yet written.
    ready: Range<usize>,
    /// Place in the stream of the end of what is made.
    made: u64,
}

impl PatternWriter {
    fn new(pattern: Pattern, length: usize) -> Self {
        Self { pattern, buffer: vec![0; length], ready: 0..0, made: 0 }
    }

    fn send(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        if self.ready.is_empty() {
            let length = length.min(self.buffer.len());
            self.pattern.fill_bytes(self.made, &mut self.buffer[..length]);
            self.made += length as u64;
            self.ready = 0..length;
        }
        let end = self.ready.end.min(self.ready.start + length);
        let sent = io::Write::write(&mut &*stream, &self.buffer[self.ready.start..end])?;
        self.ready.start += sent;
        Ok(sent)
    }
}
