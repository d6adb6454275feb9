//! Driver name, speed, duplex, PAUSE and offloads of a link (SIOCETHTOOL, linux/ethtool.h).
//!
//! ```text
//! struct ethtool_value       0  u32 cmd   4  u32 data
//! struct ethtool_drvinfo     0  u32 cmd   4  char driver[32]  …  196 bytes
//! struct ethtool_cmd         0  u32 cmd  12  u16 speed (Mbit/s, low)  14  u8 duplex
//!                                        28  u16 speed (high) … 44 bytes
//! struct ethtool_pauseparam  0  u32 cmd   4  u32 autoneg   8  u32 rx  12  u32 tx
//! ```

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
/// Flags of GFLAGS and SFLAGS.
const ETH_FLAG_TXVLAN: u32 = 1 << 7;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETH_FLAG_LRO: u32 = 1 << 15;
/// Bytes of an interface name with the closing zero (IFNAMSIZ, linux/if.h).
const NAME_BYTES: usize = 16;
/// Words of a buffer for the largest structure used here; words, so that it is aligned.
pub(crate) const BUFFER_WORDS: usize = 64;

/// struct ifreq as SIOCETHTOOL uses it; 40 bytes on 64-bit hosts.
#[repr(C)]
struct EthtoolRequest {
    name: [u8; NAME_BYTES],
    data: *mut c_void,
    rest: [u8; 16],
}

/// Switches off TCP segmentation, generic segmentation and receive coalescing of a link in the
/// namespace of the calling thread, so that every segment is a packet.
/// # Errors
/// When the link does not exist, or without CAP_NET_ADMIN.
pub fn offloads_off(ifname: &str) -> Result<()> {
    let all = [Offload::TcpSegmentation, Offload::Segmentation, Offload::Receive];
    all.into_iter().try_for_each(|offload| set_offload(ifname, offload, false))
}

/// Offload of a link: work that the NIC does instead of the processor, or the stack once for many
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Receive checksum offload, which verifies checksums.
    ReceiveChecksum,
    /// Transmit checksum offload, which computes checksums.
    SendChecksum,
    /// TCP segmentation offload (TSO).
    TcpSegmentation,
    /// Generic segmentation offload (GSO), before the driver.
    Segmentation,
    /// Generic receive offload (GRO). A veth end has NAPI while it is on.
    Receive,
    /// Large receive offload (LRO), which merges segments irreversibly.
    LargeReceive,
    /// Removal of VLAN tags from received frames.
    ReceiveVlan,
    /// Insertion of VLAN tags into sent frames.
    SendVlan,
}

impl Offload {
    /// All eight offloads.
    pub const ALL: [Self; 8] = [
        Self::ReceiveChecksum,
        Self::SendChecksum,
        Self::TcpSegmentation,
        Self::Segmentation,
        Self::Receive,
        Self::LargeReceive,
        Self::ReceiveVlan,
        Self::SendVlan,
    ];

    /// Commands that get and set the offload, and its flag where they are for several.
    const fn commands(self) -> (u32, u32, Option<u32>) {
        match self {
            Self::ReceiveChecksum => (0x14, 0x15, None),
            Self::SendChecksum => (0x16, 0x17, None),
            Self::TcpSegmentation => (0x1e, 0x1f, None),
            Self::Segmentation => (0x23, 0x24, None),
            Self::Receive => (0x2b, 0x2c, None),
            Self::LargeReceive => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, Some(ETH_FLAG_LRO)),
            Self::ReceiveVlan => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, Some(ETH_FLAG_RXVLAN)),
            Self::SendVlan => (ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, Some(ETH_FLAG_TXVLAN)),
        }
    }
}

/// True if an offload of a link in the namespace of the calling thread is on.
/// # Errors
/// When the link does not exist.
pub fn offload(ifname: &str, offload: Offload) -> Result<bool> {
    let (get, _, flag) = offload.commands();
    Ok(query_value(ifname, get)? & flag.unwrap_or(u32::MAX) != 0)
}

/// Switches an offload on or off, unless it is already in that state.
/// # Errors
/// When the link does not exist, its driver does not support it, or without CAP_NET_ADMIN.
pub fn set_offload(ifname: &str, offload: Offload, on: bool) -> Result<()> {
    let (get, set, flag) = offload.commands();
    let now = query_value(ifname, get)?;
    let mask = flag.unwrap_or(1);
    let wanted = if on { now | mask } else { now & !mask };
    if wanted == now {
        return Ok(());
    }
    let mut buffer = [0; BUFFER_WORDS];
    (buffer[0], buffer[1]) = (set, wanted);
    call_ethtool("switch offloads of", ifname, &mut buffer)
}

fn query_value(ifname: &str, command: u32) -> Result<u32> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = command;
    call_ethtool("ask the offloads of", ifname, &mut buffer)?;
    Ok(buffer[1])
}

/// True for a full-duplex link, as its driver reports it; `None` when it is unknown.
/// # Errors
/// When the link does not exist or its driver does not support the call.
pub fn is_full_duplex(ifname: &str) -> Result<Option<bool>> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GSET;
    call_ethtool("ask the duplex mode of", ifname, &mut buffer)?;
    Ok(match buffer[3].to_ne_bytes()[2] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    })
}

/// Flow control of a link by PAUSE frames (IEEE 802.3 annex 31B), which stop a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPauseSettings {
    /// True if both directions are auto-negotiated with the other end.
    pub negotiated: bool,
    /// The link stops sending on received PAUSE frames.
    pub obeyed: bool,
    /// The link sends PAUSE frames.
    pub sent: bool,
}

/// Flow control of a link; `None` where its driver does not support PAUSE frames.
/// # Errors
/// When the link does not exist.
pub fn pause_settings(ifname: &str) -> Result<Option<LinkPauseSettings>> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GPAUSEPARAM;
    match call_ethtool("ask the flow control of", ifname, &mut buffer) {
        Ok(()) => {
            let [negotiated, obeyed, sent] = [1, 2, 3].map(|at| buffer[at] != 0);
            Ok(Some(LinkPauseSettings { negotiated, obeyed, sent }))
        }
        Err(error) if error.source.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Name of the driver of a link.
/// # Errors
/// When the link does not exist or its driver does not support the call.
pub fn driver(ifname: &str) -> Result<String> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GDRVINFO;
    call_ethtool("ask the driver of", ifname, &mut buffer)?;
    let bytes: Vec<u8> = buffer[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Speed of a link, as its driver reports it; `None` when it is unknown.
/// # Errors
/// When the link does not exist or its driver does not support the call.
pub fn speed_bps(ifname: &str) -> Result<Option<u64>> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GSET;
    call_ethtool("ask the speed of", ifname, &mut buffer)?;
    let half = |word: u32| {
        let bytes = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
    };
    let mbit = half(buffer[3]) | half(buffer[7]) << 16;
    // SPEED_UNKNOWN is all ones; some drivers report 0 or 65535 instead.
    let known = mbit != u32::MAX && mbit != 0 && mbit != 0xffff;
    Ok(known.then(|| u64::from(mbit) * 1_000_000))
}

/// Calls SIOCETHTOOL with a structure whose first word is the command.
pub(crate) fn call_ethtool(
    attempt: &'static str,
    ifname: &str,
    buffer: &mut [u32; BUFFER_WORDS],
) -> Result<()> {
    interface_ioctl(SIOCETHTOOL, attempt, ifname, buffer)
}

/// Calls an ioctl that takes struct ifreq with a pointer to at most [`BUFFER_WORDS`].
pub(crate) fn interface_ioctl(
    number: libc::c_ulong,
    attempt: &'static str,
    ifname: &str,
    buffer: &mut [u32; BUFFER_WORDS],
) -> Result<()> {
    let failed = |source: io::Error| Error::new(attempt, ifname, source);
    if ifname.len() >= NAME_BYTES {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    // Any socket of the namespace serves; this one is never bound.
    let socket = any_socket().map_err(failed)?;
    let mut request =
        EthtoolRequest { name: [0; NAME_BYTES], data: buffer.as_mut_ptr().cast(), rest: [0; 16] };
    request.name[..ifname.len()].copy_from_slice(ifname.as_bytes());
    // SAFETY: `request` lives through the call and has the size of struct ifreq; its data points
    // to `buffer`, 256 bytes borrowed for writing, more than any command used here writes (196).
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut request) };
    if done < 0 { Err(failed(io::Error::last_os_error())) } else { Ok(()) }
}

fn any_socket() -> io::Result<socket2::Socket> {
    socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_not_there_and_a_name_too_long_are_errors() {
        assert!(driver("none0").is_err());
        assert!(driver("a-name-of-sixteen").is_err());
    }
}
