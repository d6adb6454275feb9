//! Times at which the host handed packets to a TUN device: a packet socket with a ring of small
//! frames (packet(7), TPACKET_V2), since tun(4) has no timestamps.
//!
//! The kernel timestamps a packet before its device queues it, on CLOCK_REALTIME, and copies its
//! first [`KEY_BYTES`], by which the packet is recognised when it is read from the device. Both are
//! in the same order, but without the packets that the device dropped. Left out: packets with a
//! VLAN tag, which the device inserts later. A packet costs its sender some 0.2 µs, its reader a
//! comparison.
//!
//! ```text
//! frame   0 status  4 length  8 captured  12 link header (2)  16 seconds  20 nanoseconds
//! ```

use std::io;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use socket2::{Domain, Socket, Type};

use super::packet_capture::bind_all_protocols;
use crate::socket_option::set_octets;
use crate::{Error, Result, icmp};

/// Bytes kept of each packet, by whose IP and TCP headers packets are distinguished.
const KEY_BYTES: usize = 64;
/// Bytes of a frame: the header has at most 96 (TPACKET2_HDRLEN and a link header, aligned).
const FRAME_BYTES: usize = 192;
/// Bytes of a block of the ring; frames do not cross its end.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_FRAMES: usize = BLOCK_BYTES / FRAME_BYTES;
/// Blocks of the ring: 1 MiB for 5,456 packets, more than a device queues.
const BLOCKS: usize = 16;
const FRAMES: usize = BLOCKS * BLOCK_FRAMES;
/// Most frames that are searched for one packet; frames before it are of packets that the device
/// dropped, which are more than this only after thousands of drops.
const SEARCH_MAX: usize = 64;

/// Times of the packets that the host handed to one device, in order.
#[derive(Debug)]
pub struct HandoverStamps {
    // Open as long as the ring is mapped.
    _socket: Socket,
    ring: Ring,
    next: usize,
}

impl HandoverStamps {
    /// Starts to record times; the interface is in the calling thread's network namespace.
    /// # Errors
    /// Without CAP_NET_RAW, without such an interface, or without memory for the ring.
    pub fn open(name: &str) -> Result<Self> {
        let failed = |source: io::Error| Error::new("note times of packets on", name, source);
        // Protocol 0 receives nothing until the socket is bound.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None).map_err(failed)?;
        let index = rustix::net::netdevice::name_to_index(&socket, name)
            .map_err(|errno| failed(errno.into()))?;
        icmp::accept_outgoing(socket.as_fd(), KEY_BYTES as u32).map_err(failed)?;
        let ring = Ring::from_socket(&socket).map_err(failed)?;
        bind_all_protocols(&socket, index).map_err(failed)?;
        Ok(Self { _socket: socket, ring, next: 0 })
    }

    /// Time at which the host handed over a packet just read from the device, in ns since 1970 on
    /// CLOCK_REALTIME; `None` when it is unknown. The bytes start with the packet's link header, or
    /// with its IP header where the device has none.
    pub fn take_time(&mut self, packet: &[u8]) -> Option<u64> {
        for ahead in 0..SEARCH_MAX {
            let place = (self.next + ahead) % FRAMES;
            let frame = self.ring.filled_frame(place)?;
            if frame.is_of(packet) {
                let at_ns = frame.at_ns();
                self.release(ahead + 1);
                return Some(at_ns);
            }
        }
        // No frame matches; a later packet may match again.
        self.release(SEARCH_MAX);
        None
    }

    fn release(&mut self, count: usize) {
        for _ in 0..count {
            self.ring.release(self.next);
            self.next = (self.next + 1) % FRAMES;
        }
    }
}

/// A filled frame of the ring.
struct RingFrame<'a>(&'a [u8]);

impl RingFrame<'_> {
    fn read_u32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    fn at_ns(&self) -> u64 {
        u64::from(self.read_u32(16)) * 1_000_000_000 + u64::from(self.read_u32(20))
    }

    fn is_of(&self, packet: &[u8]) -> bool {
        let begin = (self.read_u32(12) & 0xffff) as usize;
        let captured = (self.read_u32(8) as usize).min(KEY_BYTES);
        self.read_u32(4) as usize == packet.len()
            && captured == packet.len().min(KEY_BYTES)
            && self.0.get(begin..begin + captured) == packet.get(..captured)
    }
}

/// Receive ring shared with the kernel, as that of
/// [`PacketCapture`](crate::packet_capture::PacketCapture), but with a status for each packet.
#[derive(Debug)]
struct Ring {
    start: ptr::NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    fn from_socket(socket: &Socket) -> io::Result<Self> {
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V2 as u32;
        set_octets(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version.to_ne_bytes())?;
        // struct tpacket_req.
        let mut request = [0; 16];
        let values = [BLOCK_BYTES, BLOCKS, FRAME_BYTES, FRAMES];
        for (place, value) in request.chunks_exact_mut(4).zip(values) {
            place.copy_from_slice(&(value as u32).to_ne_bytes());
        }
        set_octets(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses; `Drop` takes it away.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), BLOCKS * BLOCK_BYTES, access, flags, socket, 0)
        }?;
        let start = ptr::NonNull::new(start.cast())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start })
    }

    const fn offset(place: usize) -> usize {
        place / BLOCK_FRAMES * BLOCK_BYTES + place % BLOCK_FRAMES * FRAME_BYTES
    }

    fn status(&self, place: usize) -> &AtomicU32 {
        debug_assert!(place < FRAMES, "a frame of the ring");
        // SAFETY: within the mapping, aligned to 64, alive as long as `self`; the kernel and this
        // process both access it as an atomic word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(Self::offset(place)).cast()) }
    }

    /// A frame of the ring; `None` before the kernel has filled it.
    fn filled_frame(&self, place: usize) -> Option<RingFrame<'_>> {
        if self.status(place).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: within the mapping, which lives as long as `self`; the kernel does not write to
        // a frame that it has handed over until `release`, which needs `&mut self`.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().add(Self::offset(place)), FRAME_BYTES)
        };
        Some(RingFrame(bytes))
    }

    /// Returns the frame to the kernel.
    fn release(&mut self, place: usize) {
        self.status(place).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, and nothing borrows from it any more. An error would mean
        // that it is not mapped, which leaves nothing to do.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), BLOCKS * BLOCK_BYTES) };
    }
}
