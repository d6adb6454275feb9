//! Driver name, speed and segmentation offloads of a link (SIOCETHTOOL, linux/ethtool.h).
//!
//! ```text
//! struct ethtool_value    0  u32 cmd   4  u32 data
//! struct ethtool_drvinfo  0  u32 cmd   4  char driver[32]  …  196 bytes
//! struct ethtool_cmd      0  u32 cmd  12  u16 speed (Mbit/s, low)  28  u16 speed (high) … 44 bytes
//! ```

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
/// IFNAMSIZ with the closing zero (linux/if.h).
const NAME_BYTES: usize = 16;
/// Room for the largest structure used here, as words so that the kernel finds it aligned.
const BUFFER_WORDS: usize = 64;

/// struct ifreq as SIOCETHTOOL uses it; 40 bytes on 64-bit hosts.
#[repr(C)]
struct Request {
    name: [u8; NAME_BYTES],
    data: *mut c_void,
    rest: [u8; 16],
}

/// Switches off TCP segmentation, generic segmentation and receive coalescing of a link in the
/// namespace of the calling thread, so that every segment is a packet.
/// # Errors
/// When the link does not exist, or without CAP_NET_ADMIN.
pub fn offloads_off(ifname: &str) -> Result<()> {
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
        let mut buffer = [0; BUFFER_WORDS];
        buffer[0] = command;
        call("switch off offloads of", ifname, &mut buffer)?;
    }
    Ok(())
}

/// Name of the driver of a link.
/// # Errors
/// When the link does not exist or its driver tells nothing.
pub fn driver(ifname: &str) -> Result<String> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GDRVINFO;
    call("ask the driver of", ifname, &mut buffer)?;
    let bytes: Vec<u8> = buffer[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Speed of a link as its driver tells; none when it does not know.
/// # Errors
/// When the link does not exist or its driver tells nothing.
pub fn speed_bps(ifname: &str) -> Result<Option<u64>> {
    let mut buffer = [0; BUFFER_WORDS];
    buffer[0] = ETHTOOL_GSET;
    call("ask the speed of", ifname, &mut buffer)?;
    let half = |word: u32| {
        let bytes = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
    };
    let mbit = half(buffer[3]) | half(buffer[7]) << 16;
    // SPEED_UNKNOWN is all ones; some drivers say 0 or 65535 instead.
    let known = mbit != u32::MAX && mbit != 0 && mbit != 0xffff;
    Ok(known.then(|| u64::from(mbit) * 1_000_000))
}

fn call(attempt: &'static str, ifname: &str, buffer: &mut [u32; BUFFER_WORDS]) -> Result<()> {
    let failed = |source: io::Error| Error::new(attempt, ifname, source);
    if ifname.len() >= NAME_BYTES {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    // Any socket of the namespace will do; this one is never bound.
    let socket = any_socket().map_err(failed)?;
    let mut request =
        Request { name: [0; NAME_BYTES], data: buffer.as_mut_ptr().cast(), rest: [0; 16] };
    request.name[..ifname.len()].copy_from_slice(ifname.as_bytes());
    // SAFETY: `request` lives through the call and has the size of struct ifreq; its data points
    // to `buffer`, 256 bytes borrowed for writing, more than any command used here writes (196).
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
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
