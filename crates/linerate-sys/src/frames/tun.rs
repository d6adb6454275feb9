//! TUN and TAP devices with the virtio header (Documentation/networking/tuntap.rst,
//! linux/if_tun.h), by which super-packets are read and written without segmentation.
//!
//! Reads and writes have a virtio header of [`HEADER_BYTES`] and then a packet (TUN) or an Ethernet
//! frame without FCS (TAP). The device exists as long as its descriptor, so it ends with the
//! process. Left out: persistent devices, several queues and io_uring, which was not faster (Linux
//! 6.18).

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use crate::{Error, Result};

/// Path of the device node.
const NODE: &str = "/dev/net/tun";

/// Bytes of struct virtio_net_hdr (linux/virtio_net.h), in the byte order of this host:
/// ```text
/// 0 u8 flags      2 u16 hdr_len    6 u16 csum_start
/// 1 u8 gso_type   4 u16 gso_size   8 u16 csum_offset
/// ```
pub const HEADER_BYTES: usize = 10;

/// Offloads that the reader supports: checksums, TCP segmentation, with CWR in the first segment.
const OFFLOADS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// Offload of UDP segmentation (Linux 6.2).
const OFFLOADS_UDP: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// Payload of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunKind {
    /// IP packets: a point-to-point link.
    #[default]
    Ip,
    /// Ethernet frames: a link that can be a port of a bridge.
    Ethernet,
}

impl TunKind {
    /// Bytes before the IP packet.
    pub const fn link_bytes(self) -> usize {
        match self {
            Self::Ip => 0,
            Self::Ethernet => 14,
        }
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Length of header and packet.
    Packet(usize),
    /// No packet is queued.
    Nothing,
    /// The device was removed.
    Gone,
}

/// Result of a write.
#[derive(Debug)]
pub enum Written {
    /// The host accepted the packet.
    Whole,
    /// The host refused the packet: the link is down, or the packet is invalid.
    Refused(io::Error),
    /// The device was removed.
    Gone,
}

/// A TUN or TAP device, whose packets this process reads and writes.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    kind: TunKind,
    udp_segments: bool,
}

impl Tun {
    /// Creates a device of this name in the network namespace of the calling thread, down and
    /// without an address; threads of any namespace may use it.
    /// # Errors
    /// Without /dev/net/tun, without CAP_NET_ADMIN, or when the name is taken.
    pub fn create_device(name: &str, kind: TunKind) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(NODE, flags, Mode::empty())
            .map_err(|errno| Error::new("open", NODE, errno))?;
        let failed = |source: io::Error| Error::new("make tunnel device", name, source);
        let mut request = request(name).map_err(failed)?;
        let form = match kind {
            TunKind::Ip => libc::IFF_TUN,
            TunKind::Ethernet => libc::IFF_TAP,
        };
        let flags = form | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        // The flags are a short: IFF_TUN_EXCL is its sign bit.
        request.ifr_ifru.ifru_flags = (flags as u16).cast_signed();
        // SAFETY: `request` is a struct ifreq and outlives the call, which reads and writes it.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
            .map_err(failed)?;
        let header = HEADER_BYTES as libc::c_int;
        // SAFETY: `header` is the int that the call reads.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header) })
            .map_err(failed)?;
        let udp_segments = set_offloads(&fd, OFFLOADS | OFFLOADS_UDP).is_ok();
        if !udp_segments {
            set_offloads(&fd, OFFLOADS).map_err(failed)?;
        }
        Ok(Self { fd, name: name.to_owned(), kind, udp_segments })
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Payload of the device.
    pub const fn payload_kind(&self) -> TunKind {
        self.kind
    }

    /// True if UDP super-packets are passed without segmentation.
    pub const fn udp_segments(&self) -> bool {
        self.udp_segments
    }

    /// Reads one packet with its header, without waiting.
    /// # Errors
    /// The errors of read(2); a removed device is no error.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Read> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(length) => Ok(Read::Packet(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Read::Nothing),
            Err(rustix::io::Errno::BADFD) => Ok(Read::Gone),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes one packet with its header, from several pieces. The host's receive path runs within
    /// the call.
    #[inline]
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> Written {
        match rustix::io::writev(&self.fd, pieces) {
            Ok(_) => Written::Whole,
            Err(rustix::io::Errno::BADFD) => Written::Gone,
            Err(errno) => Written::Refused(errno.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn set_offloads(fd: &OwnedFd, offloads: u32) -> io::Result<()> {
    // SAFETY: the argument is a plain number.
    let done =
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) };
    checked(done)
}

/// Builds a struct ifreq for a device of this name.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq: characters and a union of plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name has 1 to 15 bytes"));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_is_refused_before_the_kernel_is_asked() {
        assert!(request("a-name-of-sixteen").is_err());
        assert!(request("").is_err());
        assert!(request("fifteen-bytes-x").is_ok());
    }
}
