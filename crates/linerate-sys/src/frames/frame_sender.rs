//! Test frames by a packet socket (packet(7)), many a call (sendmmsg(2)), past the queueing
//! discipline (PACKET_QDISC_BYPASS, Linux 3.14): the way that every interface has.
//!
//! The sketch: a frame of 64 bytes costs some 1.35 µs in calls of 64 and 1.84 µs by itself, nearly
//! all of it in the stack; writing it costs 10 ns. The kernel holds the sender back when frames
//! that it sent are not yet freed (SO_SNDBUF): over veth the other end's work is on this thread's
//! account. Left out: the transmit ring, which is slower than sendmmsg.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use linerate_core::device::{FrameLoad, FrameTemplate, SendCounts};
use socket2::{Domain, Socket, Type};

use crate::frame_loop::{Handed, Outlet, Run};
use crate::frame_writer::{FrameBuffer, FrameSet, NOTHING};
use crate::netlink::{LinkFacts, RouteSocket};
use crate::socket_option::set_int;
use crate::stop::Stop;
use crate::{Error, Result};

pub use crate::frame_loop::{SendProgress, Window};

/// Frames of one call at full speed: beyond 64 the calls are no longer what costs.
const BATCH_MAX: usize = 64;

/// Longest wait in the kernel for room, so that a wish to stop is seen.
const ROOM_WAIT: Duration = Duration::from_millis(100);

/// What an Ethernet header and one VLAN tag add to the MTU.
const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;

/// What to send, and where.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// The interface, in the calling thread's network namespace.
    pub ifindex: u32,
    /// The trial and the stream in each signature.
    pub trial: u32,
    /// See `trial`.
    pub stream: u8,
    /// What a load's mix chooses from.
    pub templates: Vec<FrameTemplate>,
    /// The processor that a run is pinned to; where the thread is when absent.
    pub cpu: Option<u32>,
}

/// A generator on a packet socket.
///
/// All frames of a call have the stamp of its begin. Each number is tried once: what the interface
/// refuses is counted, and its number is not used again, so that `frames` and `refused` are all
/// frames of the load in the end. It may move to another thread; the namespace stays.
#[derive(Debug)]
pub struct FrameSender {
    socket: Socket,
    link: LinkFacts,
    set: FrameSet,
    cpu: Option<u32>,
    batch: Batch,
    next: u64,
    progress: SendProgress,
}

impl FrameSender {
    /// Opens a generator. Nothing is sent before a run.
    /// # Errors
    /// Without CAP_NET_RAW, when the interface is not there or not up, when a frame is longer than
    /// its MTU allows, and when a template cannot be.
    pub fn open(options: &SenderOptions) -> Result<Self> {
        let set = FrameSet::new(&options.templates, options.trial, options.stream)?;
        let link = usable_link(options.ifindex)?;
        check_lengths(&link, &options.templates)?;
        let name = &link.name;
        let failed = |source| Error::new("open packet socket to send on", name, explain(source));
        // Protocol 0 receives nothing.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).map_err(failed)?;
        bind(&socket, options.ifindex).map_err(failed)?;
        set_int(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1).map_err(failed)?;
        socket.set_write_timeout(Some(ROOM_WAIT)).map_err(failed)?;
        let batch = Batch::new(set.longest());
        let (cpu, progress) = (options.cpu, SendProgress::default());
        Ok(Self { socket, link, set, cpu, batch, next: 0, progress })
    }

    /// Begins another trial: numbers from 0 again.
    pub fn begin(&mut self, trial: u32) {
        self.set.begin(trial);
        self.next = 0;
    }

    /// Changes what a load's mix chooses from.
    /// # Errors
    /// As [`FrameSender::open`] for the templates.
    pub fn set_templates(&mut self, templates: &[FrameTemplate]) -> Result<()> {
        check_lengths(&self.link, templates)?;
        self.set = self.set.with(templates)?;
        self.batch = Batch::new(self.set.longest());
        Ok(())
    }

    /// The interface as it was at the opening.
    pub const fn link(&self) -> &LinkFacts {
        &self.link
    }

    /// Counts for other threads to look at while a run goes on.
    pub fn progress(&self) -> SendProgress {
        self.progress.clone()
    }

    /// Sends a load on the calling thread, from now on; ends early after a wish to stop. Numbers
    /// go on from the run before in the same trial.
    /// # Errors
    /// When the interface goes down or away, or the load is not possible. What was sent by then is
    /// in the progress.
    pub fn run(&mut self, load: &FrameLoad, stop: &Stop) -> Result<SendCounts> {
        self.run_within(load, stop, Window::default())
    }

    /// Sends a load that begins and ends at given times.
    /// # Errors
    /// As [`FrameSender::run`].
    pub fn run_within(
        &mut self,
        load: &FrameLoad,
        stop: &Stop,
        window: Window,
    ) -> Result<SendCounts> {
        let (set, cpu, progress, first) = (&self.set, self.cpu, &self.progress, self.next);
        let run = Run { set, load, first, window, cpu, stop, progress };
        let name = &self.link.name;
        let mut outlet = PacketOutlet { socket: &self.socket, batch: &mut self.batch, name };
        let sent = run.send_load(&mut outlet);
        self.next += sent.as_ref().map_or(load.frames, |sent| sent.frames + sent.refused);
        sent
    }
}

/// The link, when frames can be sent on it.
pub(crate) fn usable_link(ifindex: u32) -> Result<LinkFacts> {
    let link = RouteSocket::open()?.link_by_index(ifindex)?;
    if link.up {
        return Ok(link);
    }
    let source = io::Error::new(io::ErrorKind::NetworkDown, "it is down; set it up first");
    Err(Error::new("send frames on", link.name, source))
}

/// Refuses frames that the interface would.
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

/// The kernel's EPERM says what was refused and not what to do.
pub(crate) fn explain(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let text = "not permitted; raw frames need CAP_NET_RAW: run as root, \
                or `setcap cap_net_raw+ep` the program";
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

fn bind(socket: &Socket, ifindex: u32) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex.cast_signed();
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` octets of `address` during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Memory for the frames of one call.
struct Batch {
    bytes: Box<[u8]>,
    /// From one frame to the next: whole cache lines.
    stride: usize,
    held: [u8; BATCH_MAX],
    lens: [usize; BATCH_MAX],
    pieces: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `pieces` and `messages` are written anew before each call and followed by
// nobody afterwards; the value is not tied to a thread.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("stride", &self.stride).finish_non_exhaustive()
    }
}

impl Batch {
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

    /// Sends the frames from `first` up to `end` in one call; gives how many the kernel took.
    fn send(&mut self, socket: &Socket, first: usize, end: usize) -> io::Result<usize> {
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
    batch: &'a mut Batch,
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
    fn put(&mut self, index: usize, write: impl FnOnce(&mut FrameBuffer<'_>) -> usize) {
        let start = index * self.batch.stride;
        let bytes = &mut self.batch.bytes[start..start + self.batch.stride];
        let held = &mut self.batch.held[index];
        self.batch.lens[index] = write(&mut FrameBuffer { bytes, held });
    }

    fn send(&mut self, count: usize, stop: &Stop) -> Result<Handed> {
        let mut handed = Handed::default();
        let mut first = 0;
        while first < count {
            match self.batch.send(self.socket, first, count) {
                Ok(taken) => {
                    let bytes: usize = self.batch.lens[first..first + taken].iter().sum();
                    handed.frames += taken as u64;
                    handed.bytes += bytes as u64;
                    first += taken;
                }
                Err(error) => match error.raw_os_error() {
                    // The driver's queue is full, there is no carrier, or a veth's other end has
                    // no room: this one frame is gone.
                    Some(libc::ENOBUFS) => {
                        handed.refused += 1;
                        first += 1;
                    }
                    // The kernel waits to free what was sent; or a signal came.
                    Some(libc::EAGAIN | libc::EINTR) if !stop.asked() => {}
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
