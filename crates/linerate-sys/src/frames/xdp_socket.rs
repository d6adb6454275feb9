//! Sends test frames by an AF_XDP socket (Linux 4.18; Documentation/networking/af_xdp.rst): frames
//! in memory shared with the kernel, a transmit ring and a completion ring.
//!
//! ```text
//! memory   256 places of 2,048 or 4,096 bytes, one frame each
//! send     struct xdp_desc   0 u64 place   8 u32 length   12 u32 options
//! done     u64 place
//! ```
//!
//! The NIC reads the shared memory where the driver supports it (zero-copy); otherwise the kernel
//! builds a packet of each frame (copy): some 0.94 µs for 64 bytes in calls of 32, 1.67 µs alone.
//! No XDP program is needed. Left out: receiving, several buffers a frame, transmit metadata.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_core::device::{FrameLoad, FrameTemplate, SendCounts};

use crate::frame_loop::{FrameLoadRun, Handed, Outlet, SendProgress, Window};
use crate::frame_sender::{SenderOptions, check_lengths, explain, usable_link};
use crate::frame_writer::{FrameBuffer, FrameSet, NOTHING};
use crate::netlink::LinkFacts;
use crate::socket_option::{get_int, set_int};
use crate::stop::Stop;
use crate::xdp_rings::{
    Mapping, PLACES, XdpRing, bind_queue, offsets, socket_with_memory, wake_kernel,
};
pub use crate::xdp_rings::{XdpMode, XdpOptions};
use crate::{Error, Result, clock};

/// Frames of one call at full speed: as many as the kernel sends in one call in copy mode
/// (TX_BATCH_SIZE of net/xdp/xsk.c).
const BATCH_MAX: usize = 32;

/// Bytes of the largest place for a frame, a page.
const PLACE_BYTES_MAX: usize = 4096;
const PLACE_BYTES_MIN: usize = 2048;

/// Time without any sent frame after which sending fails.
const PATIENCE: Duration = Duration::from_secs(1);

/// A generator on an AF_XDP socket, with the interface of [`crate::frame_sender::FrameSender`].
///
/// In copy mode a frame counts when the kernel hands it to the driver; with zero-copy when it is in
/// the driver's ring, and a run ends when the driver has sent all.
#[derive(Debug)]
pub struct XdpSender {
    socket: XdpSocket,
    link: LinkFacts,
    set: FrameSet,
    cpu: Option<u32>,
    next: u64,
    progress: SendProgress,
}

impl XdpSender {
    /// Opens a generator, which sends nothing before a run.
    /// # Errors
    /// Without CAP_NET_RAW, when the interface does not exist or is not up or its queue is in use,
    /// when a frame is longer than its MTU allows or than 4,096 bytes, and for an invalid template.
    pub fn open(options: &SenderOptions, xdp: XdpOptions) -> Result<Self> {
        let set = FrameSet::new(&options.templates, options.trial, options.stream)?;
        let link = usable_link(options.ifindex)?;
        check_lengths(&link, &options.templates)?;
        let place_bytes = place_bytes(set.longest())?;
        let socket = XdpSocket::open(options.ifindex, xdp, place_bytes)
            .map_err(|source| Error::new("open AF_XDP socket on", &link.name, explain(source)))?;
        let (cpu, progress) = (options.cpu, SendProgress::default());
        Ok(Self { socket, link, set, cpu, next: 0, progress })
    }

    /// Starts another trial, with sequence numbers from 0.
    pub fn begin_trial(&mut self, trial: u32) {
        self.set.begin_trial(trial);
        self.next = 0;
    }

    /// Replaces the templates to which a load's mix refers.
    /// # Errors
    /// The errors of [`XdpSender::open`] for the templates, and when a frame is longer than the
    /// places of the opened socket: 2,048 bytes, or 4,096 where a template needed them.
    pub fn set_templates(&mut self, templates: &[FrameTemplate]) -> Result<()> {
        check_lengths(&self.link, templates)?;
        let set = self.set.with_templates(templates)?;
        if set.longest() > self.socket.place_bytes {
            return Err(too_long(set.longest(), self.socket.place_bytes));
        }
        self.set = set;
        self.socket.held.fill(NOTHING);
        Ok(())
    }

    /// Mode in which frames are sent.
    pub const fn xdp_mode(&self) -> XdpMode {
        self.socket.mode
    }

    /// State of the interface when the generator was opened.
    pub const fn link_facts(&self) -> &LinkFacts {
        &self.link
    }

    /// Counts that other threads can read during a run.
    pub fn progress(&self) -> SendProgress {
        self.progress.clone()
    }

    /// Sends a load on the calling thread, from now on, until done or stopped. Sequence numbers
    /// continue from the previous run in the same trial.
    /// # Errors
    /// When the interface goes down, is removed or accepts no frame for a second, or the load is
    /// not possible. The frames sent so far are in the progress.
    pub fn run(&mut self, load: &FrameLoad, stop: &Stop) -> Result<SendCounts> {
        self.run_within(load, stop, Window::default())
    }

    /// Sends a load within a window of time.
    /// # Errors
    /// The errors of [`XdpSender::run`].
    pub fn run_within(
        &mut self,
        load: &FrameLoad,
        stop: &Stop,
        window: Window,
    ) -> Result<SendCounts> {
        let (set, cpu, progress, first) = (&self.set, self.cpu, &self.progress, self.next);
        let run = FrameLoadRun { set, load, first, window, cpu, stop, progress };
        let name = &self.link.name;
        let sent = run.send_load(&mut XdpOutlet { socket: &mut self.socket, name });
        self.next += sent.as_ref().map_or(load.frames, |sent| sent.frames + sent.refused);
        sent
    }
}

fn place_bytes(longest: usize) -> Result<usize> {
    let sizes = [PLACE_BYTES_MIN, PLACE_BYTES_MAX];
    let enough = sizes.into_iter().find(|size| longest <= *size);
    enough.ok_or_else(|| too_long(longest, PLACE_BYTES_MAX))
}

fn too_long(longest: usize, most: usize) -> Error {
    let text = format!("a place for a frame has {most} bytes; a packet socket sends longer ones");
    let source = io::Error::new(io::ErrorKind::InvalidInput, text);
    Error::new("send by AF_XDP frames of", format!("{longest} bytes"), source)
}

/// The socket with its memory and rings. Fields are dropped in order, the socket first.
#[derive(Debug)]
struct XdpSocket {
    fd: OwnedFd,
    send: XdpRing,
    done: XdpRing,
    memory: Mapping,
    place_bytes: usize,
    mode: XdpMode,
    /// Free places for frames.
    free: Vec<u32>,
    /// Template of the frame in each place.
    held: Box<[u8]>,
    /// Places and lengths of the frames of the next call.
    batch: [(u32, u32); BATCH_MAX],
    /// Frames added to the ring, and frames that the kernel sent or dropped, modulo 2^32.
    submitted: u32,
    handled: u32,
}

impl XdpSocket {
    fn open(ifindex: u32, options: XdpOptions, place_bytes: usize) -> io::Result<Self> {
        let (fd, memory) = socket_with_memory(place_bytes, PLACES)?;
        // The kernel requires a fill ring; this one stays empty.
        let rings = [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_TX_RING];
        for ring in rings {
            set_int(fd.as_fd(), libc::SOL_XDP, ring, PLACES.cast_signed())?;
        }
        let offsets = offsets(&fd)?;
        let (send_at, done_at) =
            (libc::XDP_PGOFF_TX_RING as u64, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let send = XdpRing::from_fd(&fd, offsets.tx, send_at, size_of::<libc::xdp_desc>())?;
        let done = XdpRing::from_fd(&fd, offsets.cr, done_at, size_of::<u64>())?;
        bind_queue(&fd, ifindex, options)?;
        let flags = get_int(fd.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS)?;
        let zero_copy = flags.cast_unsigned() & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(Self {
            fd,
            send,
            done,
            memory,
            place_bytes,
            mode: if zero_copy { XdpMode::ZeroCopy } else { XdpMode::Copy },
            free: (0..PLACES).collect(),
            held: vec![NOTHING; PLACES as usize].into_boxed_slice(),
            batch: [(0, 0); BATCH_MAX],
            submitted: 0,
            handled: 0,
        })
    }

    /// Frees the places of sent frames.
    fn reclaim_sent(&mut self) {
        let end = self.done.producer().load(Ordering::Acquire);
        let mut at = self.done.consumer().load(Ordering::Relaxed);
        while at != end {
            // SAFETY: an entry of the ring of u64, which the kernel filled before it moved the
            // producer past it and leaves alone until the consumer has moved.
            let address = unsafe { self.done.entry_ptr::<u64>(at).read() };
            self.free.push((address / self.place_bytes as u64) as u32);
            at = at.wrapping_add(1);
        }
        self.done.consumer().store(at, Ordering::Release);
    }

    /// Adds the first `count` frames of the batch to the ring.
    fn submit(&mut self, count: usize) {
        for (place, len) in &self.batch[..count] {
            let addr = u64::from(*place) * self.place_bytes as u64;
            // SAFETY: an entry of the ring of descriptors between producer and consumer + PLACES,
            // since no more than PLACES frames exist; the kernel reads it once the producer has
            // moved past it.
            unsafe {
                let entry = self.send.entry_ptr::<libc::xdp_desc>(self.submitted);
                entry.write(libc::xdp_desc { addr, len: *len, options: 0 });
            }
            self.submitted = self.submitted.wrapping_add(1);
        }
        self.send.producer().store(self.submitted, Ordering::Release);
    }

    /// Wakes the kernel to send the frames in the ring.
    fn wake_kernel(&self) -> io::Result<()> {
        wake_kernel(&self.fd)
    }

    /// Frames that the kernel has consumed since the last call; all but the last are certainly
    /// sent.
    fn count_consumed(&mut self, dropped: bool) -> u32 {
        // The kernel moves the consumer only when it sends a frame; a frame that the driver dropped
        // is not counted before that.
        let seen = self.send.consumer().load(Ordering::Acquire).wrapping_sub(self.handled);
        let seen = if seen > PLACES { 0 } else { seen };
        let taken = seen.max(u32::from(dropped));
        self.handled = self.handled.wrapping_add(taken);
        taken
    }

    const fn waiting(&self) -> u32 {
        self.submitted.wrapping_sub(self.handled)
    }

    fn has_leftovers(&self) -> bool {
        self.mode == XdpMode::Copy && self.waiting() > 0
    }
}

struct XdpOutlet<'a> {
    socket: &'a mut XdpSocket,
    name: &'a str,
}

impl XdpOutlet<'_> {
    fn failed(&self, source: io::Error) -> Error {
        let source = match source.raw_os_error() {
            Some(libc::ENXIO) if self.socket.mode == XdpMode::ZeroCopy => io::Error::new(
                source.kind(),
                "the driver sends by zero-copy only with an XDP program attached; use copy mode",
            ),
            _ => source,
        };
        Error::new("send frames on", self.name, source)
    }

    fn stuck_error(&self) -> Error {
        let text = "nothing was taken for a second; look at carrier and queue";
        self.failed(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Calls the kernel to send the frames in the ring; true if the driver dropped a frame.
    fn push(&mut self) -> Result<bool> {
        if self.socket.mode == XdpMode::ZeroCopy && !self.socket.send.wants_wakeup() {
            return Ok(false);
        }
        match self.socket.wake_kernel() {
            Ok(()) => Ok(false),
            Err(error) => match error.raw_os_error() {
                // In copy mode: the driver dropped one frame (NET_XMIT_DROP). With zero-copy: the
                // driver is busy.
                Some(libc::EBUSY) => Ok(self.socket.mode == XdpMode::Copy),
                // The driver's queue or the send buffer is full: tried again.
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(false),
                _ => Err(self.failed(error)),
            },
        }
    }

    /// Sends the ring in copy mode: each call continues until the ring is empty or a frame is
    /// dropped.
    fn send_in_copy_mode(&mut self, count: usize, stop: &Stop) -> Result<Handed> {
        let (mut handed, mut at) = (Handed::default(), 0);
        let mut progress_at = clock::monotonic();
        while at < count {
            let dropped = self.push()?;
            let taken = self.socket.count_consumed(dropped) as usize;
            let frames = &self.socket.batch[at..at + taken];
            let (refused, sent) = match frames.split_last() {
                Some((_, sent)) if dropped => (1, sent),
                _ => (0, frames),
            };
            handed.refused += refused;
            handed.frames += sent.len() as u64;
            handed.bytes += sent.iter().map(|(_, len)| u64::from(*len)).sum::<u64>();
            at += taken;
            if taken > 0 {
                progress_at = clock::monotonic();
                continue;
            }
            self.socket.reclaim_sent();
            if stop.is_requested() {
                break;
            }
            if clock::monotonic().duration_since(progress_at) > PATIENCE {
                return Err(self.stuck_error());
            }
        }
        Ok(handed)
    }
}

impl Outlet for XdpOutlet<'_> {
    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn reserve(&mut self, count: usize, stop: &Stop) -> Result<usize> {
        self.socket.reclaim_sent();
        let begin = clock::monotonic();
        // In copy mode the ring is empty between two calls, unless a stop ended one.
        while self.socket.free.is_empty() || self.socket.has_leftovers() {
            if stop.is_requested() {
                return Ok(0);
            }
            if clock::monotonic().duration_since(begin) > PATIENCE {
                return Err(self.stuck_error());
            }
            if self.socket.waiting() > 0 {
                let dropped = self.push()?;
                self.socket.count_consumed(dropped);
            }
            self.socket.reclaim_sent();
        }
        Ok(count.min(self.socket.free.len()))
    }

    #[inline]
    fn put_frame(&mut self, index: usize, write: impl FnOnce(&mut FrameBuffer<'_>) -> usize) {
        let socket = &mut *self.socket;
        let place = socket.free.pop().expect("the loop reserved a place for each frame");
        let start = place as usize * socket.place_bytes;
        // SAFETY: within the mapping, which lives as long as the socket; the place is free, so
        // that neither the kernel nor another slice is at it.
        let bytes = unsafe {
            let start = socket.memory.start.as_ptr().add(start);
            std::slice::from_raw_parts_mut(start, socket.place_bytes)
        };
        let held = &mut socket.held[place as usize];
        let len = write(&mut FrameBuffer { bytes, held });
        socket.batch[index] = (place, len as u32);
    }

    fn send_frames(&mut self, count: usize, stop: &Stop) -> Result<Handed> {
        self.socket.submit(count);
        if self.socket.mode == XdpMode::Copy {
            return self.send_in_copy_mode(count, stop);
        }
        self.push()?;
        self.socket.count_consumed(false);
        let bytes = self.socket.batch[..count].iter().map(|(_, len)| u64::from(*len)).sum();
        Ok(Handed { frames: count as u64, bytes, refused: 0 })
    }

    fn finish(&mut self, stop: &Stop) -> Result<()> {
        if self.socket.mode == XdpMode::Copy {
            return Ok(());
        }
        let begin = clock::monotonic();
        while self.socket.free.len() < PLACES as usize && !stop.is_requested() {
            self.push()?;
            self.socket.count_consumed(false);
            self.socket.reclaim_sent();
            if clock::monotonic().duration_since(begin) > PATIENCE {
                return Err(self.stuck_error());
            }
        }
        Ok(())
    }
}
