//! Sends test frames by a packet socket (packet(7)), many a call (sendmmsg(2)), bypassing the
//! queueing discipline (PACKET_QDISC_BYPASS, Linux 3.14), which works on every interface.
//!
//! Cost: a frame of 64 bytes takes some 1.35 µs in calls of 64 and 1.84 µs alone, nearly all of it
//! in the stack; writing it takes 10 ns. The kernel blocks the sender while too many sent frames
//! are not yet freed (SO_SNDBUF); over veth the receiver's work runs in this thread. Left out: the
//! transmit ring, which is slower than sendmmsg.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use linerate_core::device::{FrameLoad, FrameTemplate, SendCounts};
use socket2::{Domain, Socket, Type};

use crate::frame_loop::{FrameLoadRun, Handed, Outlet};
use crate::frame_writer::{FrameBuffer, FrameSet, NOTHING};
use crate::netlink::{LinkFacts, RouteSocket};
use crate::socket_option::set_int;
use crate::stop::Stop;
use crate::{Error, Result};

pub use crate::frame_loop::{SendProgress, Window};

/// Frames of one call at full speed: above 64 the cost of the call is negligible.
const BATCH_MAX: usize = 64;

/// Longest wait in the kernel for room, so that the stop flag is checked.
const ROOM_WAIT: Duration = Duration::from_millis(100);

/// Bytes that an Ethernet header and a VLAN tag add to the MTU.
const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;

/// Options of a generator.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Index of the interface, in the calling thread's network namespace.
    pub ifindex: u32,
    /// Trial number in each signature.
    pub trial: u32,
    /// Stream number in each signature.
    pub stream: u8,
    /// Templates to which a load's mix refers.
    pub templates: Vec<FrameTemplate>,
    /// Processor to which a run is pinned; the current one when absent.
    pub cpu: Option<u32>,
}

/// A generator on a packet socket.
///
/// All frames of a call have the timestamp of its start. Each sequence number is tried once: a
/// frame that the interface refuses is counted and not repeated, so that `frames` and `refused` add
/// up to the load. The generator may move to another thread; its namespace stays.
#[derive(Debug)]
pub struct FrameSender {
    socket: Socket,
    link: LinkFacts,
    set: FrameSet,
    cpu: Option<u32>,
    batch: SendFrameBatch,
    next: u64,
    progress: SendProgress,
}

impl FrameSender {
    /// Opens a generator, which sends nothing before a run.
    /// # Errors
    /// Without CAP_NET_RAW, when the interface does not exist or is not up, when a frame is longer
    /// than its MTU allows, and for an invalid template.
    pub fn open(options: &SenderOptions) -> Result<Self> {
        let set = FrameSet::new(&options.templates, options.trial, options.stream)?;
        let link = usable_link(options.ifindex)?;
        check_lengths(&link, &options.templates)?;
        let name = &link.name;
        let failed = |source| Error::new("open packet socket to send on", name, explain(source));
        // Protocol 0 receives nothing.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).map_err(failed)?;
        bind_interface(&socket, options.ifindex).map_err(failed)?;
        set_int(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1).map_err(failed)?;
        socket.set_write_timeout(Some(ROOM_WAIT)).map_err(failed)?;
        let batch = SendFrameBatch::new(set.longest());
        let (cpu, progress) = (options.cpu, SendProgress::default());
        Ok(Self { socket, link, set, cpu, batch, next: 0, progress })
    }

    /// Starts another trial, with sequence numbers from 0.
    pub fn begin_trial(&mut self, trial: u32) {
        self.set.begin_trial(trial);
        self.next = 0;
    }

    /// Replaces the templates to which a load's mix refers.
    /// # Errors
    /// The errors of [`FrameSender::open`] for the templates.
    pub fn set_templates(&mut self, templates: &[FrameTemplate]) -> Result<()> {
        check_lengths(&self.link, templates)?;
        self.set = self.set.with_templates(templates)?;
        self.batch = SendFrameBatch::new(self.set.longest());
        Ok(())
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
    /// When the interface goes down or is removed, or the load is not possible. The frames sent so
    /// far are in the progress.
    pub fn run(&mut self, load: &FrameLoad, stop: &Stop) -> Result<SendCounts> {
        self.run_within(load, stop, Window::default())
    }

    /// Sends a load within a window of time.
    /// # Errors
    /// The errors of [`FrameSender::run`].
    pub fn run_within(
        &mut self,
        load: &FrameLoad,
        stop: &Stop,
        window: Window,
    ) -> Result<SendCounts> {
        let (set, cpu, progress, first) = (&self.set, self.cpu, &self.progress, self.next);
        let run = FrameLoadRun { set, load, first, window, cpu, stop, progress };
        let name = &self.link.name;
        let mut outlet = PacketOutlet { socket: &self.socket, batch: &mut self.batch, name };
        let sent = run.send_load(&mut outlet);
        self.next += sent.as_ref().map_or(load.frames, |sent| sent.frames + sent.refused);
        sent
    }
}

/// State of the link; an error unless it is up.
pub(crate) fn usable_link(ifindex: u32) -> Result<LinkFacts> {
    let link = RouteSocket::open()?.link_by_index(ifindex)?;
    if link.up {
        return Ok(link);
    }
    let source = io::Error::new(io::ErrorKind::NetworkDown, "it is down; set it up first");
    Err(Error::new("send frames on", link.name, source))
}

/// Checks that the frames are not too long for the link.
pub(crate) fn check_lengths(link: &LinkFacts, templates: &[FrameTemplate]) -> Result<()> {
    for template in templates {
        let tagged = matches!(template.bytes.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
        let header = ETHERNET_BYTES + if tagged { VLAN_BYTES } else { 0 };
        let (len, most) = (template.bytes.len(), link.mtu_bytes as usize + header);
        if len > most {
            let text = format!(
                "its MTU of {} allows {most}; `ip link set dev {} mtu {}` allows this length",
                link.mtu_bytes,
                link.name,
                len - header
            );
            let attempt = "send frames without FCS of";
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(Error::new(attempt, format!("{len} bytes on {}", link.name), source));
        }
    }
    Ok(())
}

/// Adds the remedy to the kernel's EPERM.
pub(crate) fn explain(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let text = "not permitted; raw frames need CAP_NET_RAW: run as root, \
                or `setcap cap_net_raw+ep` the program";
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

fn bind_interface(socket: &Socket, ifindex: u32) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex.cast_signed();
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` octets of `address` during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Buffers for the frames of one call.
struct SendFrameBatch {
    bytes: Box<[u8]>,
    /// Distance of two frames, in whole cache lines.
    stride: usize,
    held: [u8; BATCH_MAX],
    lens: [usize; BATCH_MAX],
    pieces: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `pieces` and `messages` are written anew before each call and followed by
// nobody afterwards; the value is not tied to a thread.
unsafe impl Send for SendFrameBatch {}

impl std::fmt::Debug for SendFrameBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("stride", &self.stride).finish_non_exhaustive()
    }
}

impl SendFrameBatch {
    fn new(longest: usize) -> Self {
        let stride = longest.next_multiple_of(64);
        // SAFETY: all-zero is a valid iovec (a null pointer with length 0).
        let piece = || unsafe { std::mem::zeroed::<libc::iovec>() };
        // SAFETY: all-zero is a valid mmsghdr (null pointers with zero lengths).
        let message = || unsafe { std::mem::zeroed::<libc::mmsghdr>() };
        Self {
            bytes: vec![0; stride * BATCH_MAX].into_boxed_slice(),
            stride,
            held: [NOTHING; BATCH_MAX],
            lens: [0; BATCH_MAX],
            pieces: std::iter::repeat_with(piece).take(BATCH_MAX).collect(),
            messages: std::iter::repeat_with(message).take(BATCH_MAX).collect(),
        }
    }

    /// Sends the frames from `first` up to `end` in one call; returns the number that the kernel
    /// accepted.
    fn send_frames(&mut self, socket: &Socket, first: usize, end: usize) -> io::Result<usize> {
        for index in first..end {
            let piece = &mut self.pieces[index];
            piece.iov_base = self.bytes[index * self.stride..].as_mut_ptr().cast();
            piece.iov_len = self.lens[index];
            self.messages[index].msg_hdr.msg_iov = piece;
            self.messages[index].msg_hdr.msg_iovlen = 1;
        }
        let messages = &mut self.messages[first..end];
        // SAFETY: each of the messages points to its piece and that to a frame in `bytes`, at
        // least `len` long; all are borrowed for the call, which only reads the frames.
        let taken = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, 0)
        };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }
}

struct PacketOutlet<'a> {
    socket: &'a Socket,
    batch: &'a mut SendFrameBatch,
    name: &'a str,
}

impl Outlet for PacketOutlet<'_> {
    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn reserve(&mut self, count: usize, _: &Stop) -> Result<usize> {
        Ok(count)
    }

    #[inline]
    fn put_frame(&mut self, index: usize, write: impl FnOnce(&mut FrameBuffer<'_>) -> usize) {
        let start = index * self.batch.stride;
        let bytes = &mut self.batch.bytes[start..start + self.batch.stride];
        let held = &mut self.batch.held[index];
        self.batch.lens[index] = write(&mut FrameBuffer { bytes, held });
    }

    fn send_frames(&mut self, count: usize, stop: &Stop) -> Result<Handed> {
        let mut handed = Handed::default();
        let mut first = 0;
        while first < count {
            match self.batch.send_frames(self.socket, first, count) {
                Ok(taken) => {
                    let bytes: usize = self.batch.lens[first..first + taken].iter().sum();
                    handed.frames += taken as u64;
                    handed.bytes += bytes as u64;
                    first += taken;
                }
                Err(error) => match error.raw_os_error() {
                    // The driver's queue is full, there is no carrier, or the veth peer is full:
                    // this frame is dropped.
                    Some(libc::ENOBUFS) => {
                        handed.refused += 1;
                        first += 1;
                    }
                    // The send buffer is full, or a signal arrived.
                    Some(libc::EAGAIN | libc::EINTR) if !stop.is_requested() => {}
                    Some(libc::EAGAIN | libc::EINTR) => break,
                    _ => return Err(Error::new("send frames on", self.name, error)),
                },
            }
        }
        Ok(handed)
    }

    fn finish(&mut self, _: &Stop) -> Result<()> {
        Ok(())
    }
}
