//! Memory that AF_XDP sockets share with the kernel: frames, and rings of their descriptors (Linux
//! 5.4; Documentation/networking/af_xdp.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::socket_option::set_octets;

/// Number and interval of retries to bind a queue, which the kernel releases by a worker some time
/// after its socket was closed (xp_release_deferred of Linux net/xdp/xsk_buff_pool.c).
const RELEASE_WAITS: u32 = 50;
const RELEASE_WAIT: std::time::Duration = std::time::Duration::from_millis(20);

/// Places for frames of a direction, and entries of each ring; a power of two.
pub(super) const PLACES: u32 = 256;

/// Mode in which frames in the shared memory are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// Zero-copy: the NIC reads the shared memory.
    ZeroCopy,
    /// Copy: the kernel builds a packet of each frame.
    Copy,
}

/// Queue and mode of an AF_XDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// Number of the queue, which can have one socket of this kind.
    pub queue: u32,
    /// Preferred mode: with `ZeroCopy`, a driver without support is used in copy mode.
    pub mode: XdpMode,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self { queue: 0, mode: XdpMode::ZeroCopy }
    }
}

/// Opens a socket with shared memory for `places` frames.
pub(super) fn socket_with_memory(
    place_bytes: usize,
    places: u32,
) -> io::Result<(OwnedFd, Mapping)> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: a plain call without memory.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor, and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let memory = Mapping::anonymous(place_bytes * places as usize)?;
    // struct xdp_umem_reg: start, length, bytes of a place, headroom, flags.
    let mut region = (memory.start.as_ptr() as u64).to_ne_bytes().to_vec();
    region.extend((memory.len as u64).to_ne_bytes());
    region.extend([place_bytes as u32, 0, 0, 0].map(u32::to_ne_bytes).concat());
    set_octets(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
    Ok((fd, memory))
}

/// Wakes the kernel to send the frames in the ring.
pub(super) fn wake_kernel(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    let sent =
        unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero is a valid xdp_mmap_offsets: plain numbers.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&offsets) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `offsets` during the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (len as usize) < size_of_val(&offsets) {
        return Err(io::Error::other("rings without flags; Linux 5.4 or newer is needed"));
    }
    Ok(offsets)
}

pub(super) fn bind_queue(fd: &OwnedFd, ifindex: u32, options: XdpOptions) -> io::Result<()> {
    // Without a flag the kernel uses zero-copy where the driver supports it, else copy mode.
    let wish = if options.mode == XdpMode::Copy { libc::XDP_COPY } else { 0 };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP | wish,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: options.queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of_val(&address) as libc::socklen_t;
    let mut waits = 0..RELEASE_WAITS;
    let error = loop {
        // SAFETY: the kernel reads `len` octets of `address` during the call.
        let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || waits.next().is_none() {
            break error;
        }
        crate::clock::sleep(RELEASE_WAIT);
    };
    let text = match error.raw_os_error() {
        Some(libc::EBUSY) => "another AF_XDP socket has it",
        Some(libc::EINVAL) => "there is no such queue",
        _ => return Err(error),
    };
    Err(io::Error::new(error.kind(), format!("queue {}: {text}", options.queue)))
}

/// A ring shared with the kernel.
#[derive(Debug)]
pub(super) struct XdpRing {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    entry_bytes: usize,
}

impl XdpRing {
    pub(super) fn from_fd(
        fd: &OwnedFd,
        offsets: libc::xdp_ring_offset,
        at: u64,
        entry_bytes: usize,
    ) -> io::Result<Self> {
        let len = offsets.desc as usize + PLACES as usize * entry_bytes;
        Ok(Self { mapping: Mapping::from_fd(fd, len, at)?, offsets, entry_bytes })
    }

    fn word_at(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of an aligned word in the mapping, which lives as
        // long as `self`; both sides access it as an atomic.
        unsafe { AtomicU32::from_ptr(self.mapping.start.as_ptr().add(offset as usize).cast()) }
    }

    pub(super) fn producer(&self) -> &AtomicU32 {
        self.word_at(self.offsets.producer)
    }

    pub(super) fn consumer(&self) -> &AtomicU32 {
        self.word_at(self.offsets.consumer)
    }

    pub(super) fn wants_wakeup(&self) -> bool {
        self.word_at(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Entry of the ring with a running number.
    pub(super) fn entry_ptr<T>(&self, number: u32) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.entry_bytes);
        let at = self.offsets.desc as usize + (number % PLACES) as usize * self.entry_bytes;
        // SAFETY: within the mapping of `desc` bytes and PLACES entries.
        unsafe { self.mapping.start.as_ptr().add(at).cast() }
    }
}

/// A memory mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at a place that the kernel chooses; `Drop` takes it away.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, access, flags) }?;
        Self::from_start(start.cast(), len)
    }

    fn from_fd(fd: &OwnedFd, len: usize, offset: u64) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place that the kernel chooses; `Drop` takes it away.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), len, access, flags, fd, offset) }?;
        Self::from_start(start.cast(), len)
    }

    fn from_start(start: *mut u8, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, and nothing borrows from it any more. An error would mean
        // that it is not mapped, which leaves nothing to do.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
