//! Kernel timestamps of packets (SO_TIMESTAMPING, Documentation/networking/timestamping.rst), and
//! the error queue with timestamps of departure and ICMP errors (ip(7)).
//!
//! Only software timestamps; hardware clocks are left out. Two results of measurements (Linux
//! 6.18): timestamps of arrival start by deferred work some milliseconds after they are switched
//! on, and are absent until then; SO_TIMESTAMPNS then returns the time of reading instead, so it is
//! not used. A caller checks with real probes before it trusts the timestamps.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

use crate::control::{self, ControlBuffer};
use crate::socket_option::set_int;

/// Flags for the time of hand-over to the driver, the time of arrival, numbered sends, and no copy
/// of the payload.
const FLAGS: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// Flags as above, and the time of hand-over to the queueing discipline.
const FLAGS_WITH_QUEUE: u32 = FLAGS | libc::SOF_TIMESTAMPING_TX_SCHED;

/// Value of ee_info for a timestamp before the queueing discipline (SCM_TSTAMP_SCHED in Linux
/// include/uapi/linux/errqueue.h; 0 is SCM_TSTAMP_SND).
const BEFORE_QUEUE: u32 = 1;

/// Time that the kernel may take to start timestamps of arrival: twice the 10 ms within which its
/// work item ran in all measurements.
pub const START_DELAY: std::time::Duration = std::time::Duration::from_millis(20);

/// Switches timestamps on, on request also those before the queueing discipline. The kernel numbers
/// sends from 0 again.
pub(crate) fn switch_on(fd: BorrowedFd<'_>, with_queue: bool) -> io::Result<()> {
    let flags = if with_queue { FLAGS_WITH_QUEUE } else { FLAGS };
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
}

/// Switches on only the timestamps of received packets.
pub(crate) fn switch_on_arrivals(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
}

/// Switches all timestamps off.
pub(crate) fn switch_off(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0)
}

/// Software timestamp in an SCM_TIMESTAMPING message: three pairs of 64-bit seconds and
/// nanoseconds on CLOCK_REALTIME, of which the first is the software one. `None` when absent.
pub(crate) fn software_stamp(data: &[u8]) -> Option<u64> {
    let (words, _) = data.get(..48)?.as_chunks::<8>();
    let sec = u64::try_from(i64::from_ne_bytes(words[0])).ok()?;
    let nsec = u64::try_from(i64::from_ne_bytes(words[1])).ok()?;
    (sec != 0).then(|| sec * 1_000_000_000 + nsec)
}

/// A message from the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A packet was handed to the driver.
    Departed {
        /// Number of the packet since timestamps were switched on.
        key: u32,
        /// Time of CLOCK_REALTIME in ns.
        at_ns: u64,
    },
    /// A packet was handed to the queueing discipline of its interface.
    Queued {
        /// Number of the packet since timestamps were switched on.
        key: u32,
        /// Time of CLOCK_REALTIME in ns.
        at_ns: u64,
    },
    /// The network or this host could not deliver a packet.
    Undeliverable {
        /// The kernel's error number.
        errno: i32,
        /// Sender of the ICMP error; `None` when this host raised the error.
        from: Option<IpAddr>,
        /// Type of the ICMP error.
        kind: u8,
        /// Code of the ICMP error.
        code: u8,
        /// Largest allowed packet, where the packet was too big (EMSGSIZE).
        mtu_bytes: Option<u32>,
    },
}

/// Reads one notice; `None` when the queue is empty or its message is of another kind.
pub(crate) fn next_notice(fd: BorrowedFd<'_>) -> Option<Notice> {
    let mut data = [0; 64];
    let mut control = ControlBuffer::new();
    let taken = control::receive(fd, &mut data, &mut control, libc::MSG_ERRQUEUE).ok()??;
    read_notice(&control.0[..taken.control_len])
}

fn read_notice(control: &[u8]) -> Option<Notice> {
    let mut stamp = None;
    let mut error = None;
    control::messages(control, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => stamp = software_stamp(data),
        (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
            error = ExtendedError::read(data);
        }
        _ => {}
    });
    let error = error?;
    if error.origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
        let (key, at_ns) = (error.data, stamp?);
        return Some(match error.info {
            BEFORE_QUEUE => Notice::Queued { key, at_ns },
            _ => Notice::Departed { key, at_ns },
        });
    }
    Some(Notice::Undeliverable {
        errno: error.errno,
        from: error.from,
        kind: error.kind,
        code: error.code,
        mtu_bytes: (error.errno == libc::EMSGSIZE).then_some(error.info),
    })
}

/// Parsed struct sock_extended_err and the address after it (ip(7)):
/// errno (4), origin, type, code, pad (1 each), info (4), data (4), then a sockaddr.
pub(crate) struct ExtendedError {
    pub(crate) errno: i32,
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) info: u32,
    pub(crate) data: u32,
    pub(crate) from: Option<IpAddr>,
}

impl ExtendedError {
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let (head, offender) = data.split_first_chunk::<16>()?;
        Some(Self {
            errno: control::int_from_octets(head),
            origin: head[4],
            kind: head[5],
            code: head[6],
            info: control::int_from_octets(&head[8..]).cast_unsigned(),
            data: control::int_from_octets(&head[12..]).cast_unsigned(),
            from: read_address(offender),
        })
    }
}

/// Parses the address of a sockaddr_in (at offset 4) or sockaddr_in6 (at 8) (ip(7), ipv6(7)).
pub(crate) fn read_address(sockaddr: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(*sockaddr.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = sockaddr.get(4..8)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = sockaddr.get(8..24)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_seconds_and_nanoseconds_and_zero_is_absent() {
        let mut data = [0; 48];
        assert_eq!(software_stamp(&data), None);
        data[..8].copy_from_slice(&1_700_000_000i64.to_ne_bytes());
        data[8..16].copy_from_slice(&123_456_789i64.to_ne_bytes());
        assert_eq!(software_stamp(&data), Some(1_700_000_000_123_456_789));
        assert_eq!(software_stamp(&data[..47]), None);
    }

    #[test]
    fn an_extended_error_names_its_router() {
        let mut data = vec![0; 16];
        data[..4].copy_from_slice(&libc::EHOSTUNREACH.to_ne_bytes());
        (data[4], data[5], data[6]) = (libc::SO_EE_ORIGIN_ICMP, 3, 1);
        data.extend_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        data.extend_from_slice(&[0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let error = ExtendedError::read(&data).expect("a whole structure");
        assert_eq!(error.from, Some(IpAddr::from([192, 0, 2, 1])));
        assert_eq!((error.errno, error.kind, error.code), (libc::EHOSTUNREACH, 3, 1));
        for len in 0..data.len() {
            let _ = ExtendedError::read(&data[..len]);
        }
    }
}
