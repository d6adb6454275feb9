//! ICMP sockets (icmp(7), raw(7)): the datagram kind that needs no privilege, and the raw kind.
//!
//! A datagram socket is open to the groups of net.ipv4.ping_group_range, for both families; its
//! kernel chooses the identifier and the checksum. A raw socket needs CAP_NET_RAW.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_core::record::Family;
use socket2::{Domain, Protocol, Socket, Type};

use crate::socket_option::set_octets;

/// raw(7): a bit mask of ICMP types that are kept away from the reader.
const ICMP_FILTER: i32 = 1;
/// RFC 3542 §3.2: the same for ICMPv6, 256 bits.
const ICMP6_FILTER: i32 = 1;
const ICMP_ECHO_REPLY: u32 = 0;
const ICMP6_ECHO_REPLY: usize = 129;

pub(crate) fn open_datagram(family: Family) -> io::Result<Socket> {
    let (domain, protocol) = names(family);
    Socket::new(domain, Type::DGRAM, Some(protocol))
}

/// Opens a raw socket that is shown nothing but echo replies.
pub(crate) fn open_raw(family: Family) -> io::Result<Socket> {
    let (domain, protocol) = names(family);
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    let fd: BorrowedFd<'_> = socket.as_fd();
    match family {
        Family::V4 => {
            let blocked = !(1u32 << ICMP_ECHO_REPLY);
            set_octets(fd, libc::SOL_RAW, ICMP_FILTER, &blocked.to_ne_bytes())?;
        }
        Family::V6 => {
            let mut blocked = [u32::MAX; 8];
            blocked[ICMP6_ECHO_REPLY / 32] &= !(1 << (ICMP6_ECHO_REPLY % 32));
            let octets: Vec<u8> = blocked.iter().flat_map(|word| word.to_ne_bytes()).collect();
            set_octets(fd, libc::IPPROTO_ICMPV6, ICMP6_FILTER, &octets)?;
        }
    }
    Ok(socket)
}

const fn names(family: Family) -> (Domain, Protocol) {
    match family {
        Family::V4 => (Domain::IPV4, Protocol::ICMPV4),
        Family::V6 => (Domain::IPV6, Protocol::ICMPV6),
    }
}

/// The groups that may open ICMP datagram sockets in this network namespace, first and last.
/// First above last means nobody (icmp(7)). `None` when the kernel does not tell.
pub fn ping_group_range() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
