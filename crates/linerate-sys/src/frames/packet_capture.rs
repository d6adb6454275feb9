//! Capturing live packets: a packet socket with a receive ring of blocks (packet(7), TPACKET_V3 of
//! Linux 3.2, Documentation/networking/packet_mmap.rst).
//!
//! Left out: filters other than a length, fanout, writing, hardware clocks. The kernel hands over a
//! block when it is full or 10 ms old, so one call returns some hundred packets, which are not
//! copied again: 1.5 µs of system call per 170 packets of 1,500 bytes.
//!
//! ```text
//! block   0 version  4 private  8 status  12 packets  16 first packet  20 length
//! packet  0 next  4 seconds  8 nanoseconds  12 captured  16 original  20 status
//!         24 link header (2)  32 VLAN tag  36 VLAN type (2)
//!         48 sockaddr_ll, of which 10 is the direction
//! ```
//!
//! Times are the kernel's, on CLOCK_REALTIME: of a received packet when the driver passed it to the
//! stack, of a sent packet when it was handed to the driver, after the queueing discipline.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::mm::{MapFlags, ProtFlags};
use socket2::{Domain, Socket, Type};

use crate::socket_option::{set_int, set_octets};
use crate::{Error, Result, icmp};

/// Bytes of a block: a power of two, so that the kernel allocates it in one piece, and longer than
/// any packet that Linux makes (512 KiB with BIG TCP only by `ip link set gso_max_size`).
const BLOCK_BYTES: usize = 256 << 10;

/// Age at which the kernel hands over a block that is not full. A capture that ends waits twice as
/// long for the last packets.
pub const BLOCK_AGE: Duration = Duration::from_millis(10);

/// Hardware type of cellular modems, which have no link layer (linux/if_arp.h).
const ARPHRD_RAWIP: u16 = 519;

/// Socket option of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Offset of the status in a block.
const STATUS: usize = 8;

/// Bytes of struct tpacket3_hdr, aligned; struct sockaddr_ll follows.
const PACKET_HEADER_BYTES: usize = 48;

/// Options of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Name of the interface, in the calling thread's network namespace.
    pub interface: String,
    /// Promiscuous mode: also packets for other hosts.
    pub promiscuous: bool,
    /// Without packets that this host sends (Linux 4.20).
    pub incoming_only: bool,
    /// Most bytes captured of each packet; all when absent.
    pub snaplen: Option<u32>,
    /// Bytes of the ring in the kernel: rounded up to blocks of 256 KiB, at least two.
    pub ring_bytes: usize,
}

impl CaptureOptions {
    /// Options for whole packets of one interface, with a ring of 32 MiB: 0.26 s at 1 Gbit/s.
    pub fn of_interface(name: &str) -> Self {
        let interface = name.to_owned();
        let (promiscuous, incoming_only) = (false, false);
        Self { interface, promiscuous, incoming_only, snaplen: None, ring_bytes: 32 << 20 }
    }
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// To this host, to a group or, on a promiscuous interface, to another host.
    Incoming,
    /// Sent by this host.
    Outgoing,
}

/// Header type of the interface's packets (ARPHRD values of linux/if_arp.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// An Ethernet header; loopback interfaces too.
    Ethernet,
    /// An IP header: tunnels and other interfaces without a link layer.
    RawIp,
    /// Another hardware type.
    Other(u16),
}

/// A captured packet, in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePacket<'a> {
    /// Time of capture, in ns since 1970 on CLOCK_REALTIME.
    pub at_ns: u64,
    /// Captured bytes of the packet.
    pub data: &'a [u8],
    /// Length of the packet, without its frame check sequence and a tag in `vlan`.
    pub original_len: u32,
    /// Direction of the packet.
    pub direction: PacketDirection,
    /// Outermost VLAN tag, which Linux removes from a received frame.
    pub vlan: Option<VlanTag>,
}

/// A VLAN tag that the kernel removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// EtherType of the tag: 0x8100 or 0x88a8.
    pub ether_type: u16,
    /// Priority (3 bits), drop eligibility, identifier (12 bits).
    pub control: u16,
}

/// Counts of packets since the capture was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets of the interface, including those in `dropped`.
    pub seen: u64,
    /// Packets dropped because the ring was full.
    pub dropped: u64,
}

/// An open capture.
#[derive(Debug)]
pub struct PacketCapture {
    socket: Socket,
    ring: CaptureRing,
    next: usize,
    name: String,
    hardware: u16,
    counts: CaptureCounts,
}

impl PacketCapture {
    /// Starts to capture.
    /// # Errors
    /// Without CAP_NET_RAW, without such an interface, or without memory for the ring.
    pub fn open(options: &CaptureOptions) -> Result<Self> {
        let name = &options.interface;
        // Protocol 0 receives nothing until the socket is bound.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None)
            .map_err(|source| Error::new("open packet socket on", name, explain(source)))?;
        let index = rustix::net::netdevice::name_to_index(&socket, name)
            .map_err(|errno| Error::new("capture on interface", name, errno))?;
        if let Some(snaplen) = options.snaplen {
            icmp::accept(socket.as_fd(), snaplen)
                .map_err(|source| Error::new("set snapshot length", snaplen, source))?;
        }
        let ring = CaptureRing::from_socket(&socket, options.ring_bytes)
            .map_err(|source| Error::new("map capture ring of", options.ring_bytes, source))?;
        if options.incoming_only {
            set_int(socket.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
                .map_err(|source| Error::new("leave out sent packets of", name, source))?;
        }
        if options.promiscuous {
            set_promiscuous(&socket, index)
                .map_err(|source| Error::new("set promiscuous mode on", name, source))?;
        }
        let hardware = bind_all_protocols(&socket, index)
            .map_err(|source| Error::new("capture on interface", name, source))?;
        let name = name.clone();
        Ok(Self { socket, ring, next: 0, name, hardware, counts: CaptureCounts::default() })
    }

    /// Header type of the packets.
    pub const fn link_kind(&self) -> LinkKind {
        match self.hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => LinkKind::Ethernet,
            libc::ARPHRD_NONE
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT
            | ARPHRD_RAWIP => LinkKind::RawIp,
            other => LinkKind::Other(other),
        }
    }

    /// Waits for a block of packets, at most `timeout`, and calls `each` with each packet. Returns
    /// their number: 0 after the time-out or a signal, so that a caller can check its stop flag. On
    /// loopback, where every packet is seen twice, only incoming ones are returned.
    /// # Errors
    /// When the interface goes down or is removed.
    pub fn take_packets(
        &mut self,
        timeout: Duration,
        mut each: impl FnMut(LivePacket<'_>),
    ) -> Result<usize> {
        if !self.ring.is_ready(self.next) {
            self.wait_for_block(timeout)
                .map_err(|s| Error::new("capture on interface", &self.name, s))?;
            if !self.ring.is_ready(self.next) {
                return Ok(0);
            }
        }
        let is_loopback = self.hardware == libc::ARPHRD_LOOPBACK;
        let mut count = 0;
        for packet in Packets::from_block(self.ring.ready_block(self.next)) {
            if !(is_loopback && packet.direction == PacketDirection::Outgoing) {
                each(packet);
                count += 1;
            }
        }
        self.ring.release(self.next);
        self.next = (self.next + 1) % self.ring.blocks;
        Ok(count)
    }

    fn wait_for_block(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_broken = fds[0].revents().contains(PollFlags::ERR);
        match is_broken.then(|| self.socket.take_error()).transpose()?.flatten() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Packets seen and dropped so far.
    /// # Errors
    /// The kernel's reason.
    pub fn counts(&mut self) -> Result<CaptureCounts> {
        let new = take_statistics(&self.socket)
            .map_err(|source| Error::new("read PACKET_STATISTICS of", &self.name, source))?;
        // The kernel counts from 0 after each reading.
        self.counts.seen += new.seen;
        self.counts.dropped += new.dropped;
        Ok(self.counts)
    }
}

/// Adds the remedy to the kernel's EPERM.
fn explain(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let text = "not permitted; capturing needs CAP_NET_RAW: run as root, \
                or `setcap cap_net_raw+ep` the program";
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// Switches promiscuous mode on while the socket is open (struct packet_mreq of packet(7)).
fn set_promiscuous(socket: &Socket, index: u32) -> io::Result<()> {
    let mut request = [0; 16];
    request[..4].copy_from_slice(&index.to_ne_bytes());
    request[4..6].copy_from_slice(&(libc::PACKET_MR_PROMISC as u16).to_ne_bytes());
    set_octets(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Binds to all protocols of the interface; returns its hardware type.
pub(super) fn bind_all_protocols(socket: &Socket, index: u32) -> io::Result<u16> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let mut len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` octets of `address` during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel writes at most `len` octets to `address` during the call.
    let result =
        unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) };
    if result == 0 { Ok(address.sll_hatype) } else { Err(io::Error::last_os_error()) }
}

/// Reads struct tpacket_stats_v3: packets, drops, freezes of the queue, since the last call.
fn take_statistics(socket: &Socket) -> io::Result<CaptureCounts> {
    let mut words = [0u32; 3];
    let mut len = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `words` during the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            words.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CaptureCounts { seen: words[0].into(), dropped: words[1].into() })
}

/// Receive ring shared with the kernel.
#[derive(Debug)]
struct CaptureRing {
    start: ptr::NonNull<u8>,
    blocks: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for CaptureRing {}

impl CaptureRing {
    fn from_socket(socket: &Socket, bytes: usize) -> io::Result<Self> {
        let blocks = bytes.div_ceil(BLOCK_BYTES).max(2);
        let version = libc::tpacket_versions::TPACKET_V3 as u32;
        let fd = socket.as_fd();
        set_octets(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version.to_ne_bytes())?;
        // struct tpacket_req3. Frames have no fixed size in this version, but the kernel requires
        // a size that divides a block, and their number.
        let frame_bytes = 2048;
        let frames = blocks * (BLOCK_BYTES / frame_bytes);
        let age_ms = BLOCK_AGE.as_millis() as usize;
        let request = [BLOCK_BYTES, blocks, frame_bytes, frames, age_ms, 0, 0];
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let mut octets = [0; 28];
        for (place, value) in octets.chunks_exact_mut(4).zip(request) {
            let value = u32::try_from(value).map_err(|_| too_large())?;
            place.copy_from_slice(&value.to_ne_bytes());
        }
        set_octets(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &octets)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses; `Drop` takes it away.
        let start = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                blocks * BLOCK_BYTES,
                access,
                MapFlags::SHARED,
                socket,
                0,
            )
        }?;
        let start = ptr::NonNull::new(start.cast()).ok_or_else(too_large)?;
        Ok(Self { start, blocks })
    }

    fn status(&self, block: usize) -> &AtomicU32 {
        debug_assert!(block < self.blocks, "a block of the ring");
        // SAFETY: within the mapping, aligned to 8, alive as long as `self`; the kernel and this
        // process both access it as an atomic word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(block * BLOCK_BYTES + STATUS).cast()) }
    }

    /// True if the kernel has handed the block over.
    fn is_ready(&self, block: usize) -> bool {
        self.status(block).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The block without its first 12 bytes, which include the status; only while it is ready.
    fn ready_block(&self, block: usize) -> &[u8] {
        assert!(self.is_ready(block), "the kernel has handed it over");
        let skipped = STATUS + 4;
        // SAFETY: within the mapping, which lives as long as `self`; the kernel does not write to
        // a block that it has handed over until `release`, which needs `&mut self`.
        unsafe {
            let start = self.start.as_ptr().add(block * BLOCK_BYTES + skipped);
            std::slice::from_raw_parts(start, BLOCK_BYTES - skipped)
        }
    }

    /// Returns the block to the kernel.
    fn release(&mut self, block: usize) {
        self.status(block).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

impl Drop for CaptureRing {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, and nothing borrows from it any more. An error would mean
        // that it is not mapped, which leaves nothing to do.
        let _ =
            unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.blocks * BLOCK_BYTES) };
    }
}

/// Iterator over the packets of a block, which is given from its byte 12 on.
struct Packets<'a> {
    block: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Packets<'a> {
    fn from_block(block: &'a [u8]) -> Self {
        let (left, first) = (read_u32(block, 0), read_u32(block, 4));
        Self { block, at: (first as usize).saturating_sub(STATUS + 4), left }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = LivePacket<'a>;

    fn next(&mut self) -> Option<LivePacket<'a>> {
        self.left = self.left.checked_sub(1)?;
        let header = self.block.get(self.at..)?;
        let captured = read_u32(header, 12) as usize;
        let link_header = read_u16(header, 24).into();
        let data = header.get(link_header..)?.get(..captured)?;
        let status = read_u32(header, 20);
        let packet_type = *header.get(PACKET_HEADER_BYTES + 10)?;
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let typed = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let ether_type = if typed { read_u16(header, 36) } else { libc::ETH_P_8021Q as u16 };
        let packet = LivePacket {
            at_ns: u64::from(read_u32(header, 4)) * 1_000_000_000 + u64::from(read_u32(header, 8)),
            data,
            original_len: read_u32(header, 16),
            direction: match packet_type {
                libc::PACKET_OUTGOING => PacketDirection::Outgoing,
                _ => PacketDirection::Incoming,
            },
            vlan: tagged.then_some(VlanTag { ether_type, control: read_u32(header, 32) as u16 }),
        };
        self.at += read_u32(header, 0) as usize;
        Some(packet)
    }
}

/// The 32-bit word at `at` in host byte order; 0 after the end.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let octets = bytes.get(at..).and_then(|rest| rest.first_chunk());
    octets.map_or(0, |octets| u32::from_ne_bytes(*octets))
}

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    let octets = bytes.get(at..).and_then(|rest| rest.first_chunk());
    octets.map_or(0, |octets| u16::from_ne_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet as the kernel lays it out: header, address, data at 68.
    fn packet(next: u32, packet_type: u8, vlan: bool, data: &[u8]) -> Vec<u8> {
        let status = libc::TP_STATUS_USER
            | if vlan { libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID } else { 0 };
        let words = [next, 1_700_000_000, 5, data.len() as u32, 1514, status];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend([68u16, 82, 0, 0].map(u16::to_ne_bytes).concat());
        bytes.extend(0x6007u32.to_ne_bytes());
        bytes.extend([0x88a8u16, 0].map(u16::to_ne_bytes).concat());
        bytes.resize(PACKET_HEADER_BYTES + 20, 0);
        bytes[PACKET_HEADER_BYTES + 10] = packet_type;
        bytes.extend_from_slice(data);
        bytes.resize(if next == 0 { bytes.len() } else { next as usize }, 0);
        bytes
    }

    fn sample_block() -> Vec<u8> {
        let mut block = [2u32, 48, 0].map(u32::to_ne_bytes).concat();
        block.resize(48 - (STATUS + 4), 0);
        block.extend(packet(80, libc::PACKET_OUTGOING, true, &[1, 2, 3]));
        block.extend(packet(0, 0, false, &[4, 5]));
        block
    }

    #[test]
    fn a_block_gives_its_packets() {
        let block = sample_block();
        let packets: Vec<_> = Packets::from_block(&block).collect();
        let first = LivePacket {
            at_ns: 1_700_000_000_000_000_005,
            data: &[1, 2, 3],
            original_len: 1514,
            direction: PacketDirection::Outgoing,
            vlan: Some(VlanTag { ether_type: 0x88a8, control: 0x6007 }),
        };
        let direction = PacketDirection::Incoming;
        assert_eq!(packets, [first, LivePacket { data: &[4, 5], direction, vlan: None, ..first }]);
    }

    #[test]
    fn a_block_cut_anywhere_ends_early() {
        let block = sample_block();
        for len in 0..block.len() {
            assert!(Packets::from_block(&block[..len]).count() < 2, "length {len}");
        }
    }
}
