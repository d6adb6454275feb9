//! ICMP sockets (icmp(7), raw(7)): the datagram kind that needs no privilege, and the raw kind.
//!
//! A datagram socket is allowed to the groups of net.ipv4.ping_group_range, for both families; the
//! kernel chooses the identifier and computes the checksum. A raw socket needs CAP_NET_RAW.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use linerate_core::record::IpFamily;
use socket2::{Domain, Protocol, Socket, Type};

use crate::socket_option::set_octets;

/// Option of raw(7): bit mask of the ICMP types that the socket does not receive.
const ICMP_FILTER: i32 = 1;
/// Option of RFC 3542 §3.2: the mask for ICMPv6, 256 bits.
const ICMP6_FILTER: i32 = 1;
const ICMP_ECHO_REPLY: u32 = 0;
const ICMP6_ECHO_REPLY: usize = 129;

pub(crate) fn open_datagram(family: IpFamily) -> io::Result<Socket> {
    let (domain, protocol) = domain_and_protocol(family);
    Socket::new(domain, Type::DGRAM, Some(protocol))
}

/// Opens a raw socket that receives only echo replies.
pub(crate) fn open_raw(family: IpFamily) -> io::Result<Socket> {
    let (domain, protocol) = domain_and_protocol(family);
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    let fd: BorrowedFd<'_> = socket.as_fd();
    match family {
        IpFamily::V4 => {
            let blocked = !(1u32 << ICMP_ECHO_REPLY);
            set_octets(fd, libc::SOL_RAW, ICMP_FILTER, &blocked.to_ne_bytes())?;
        }
        IpFamily::V6 => {
            let mut blocked = [u32::MAX; 8];
            blocked[ICMP6_ECHO_REPLY / 32] &= !(1 << (ICMP6_ECHO_REPLY % 32));
            let octets: Vec<u8> = blocked.iter().flat_map(|word| word.to_ne_bytes()).collect();
            set_octets(fd, libc::IPPROTO_ICMPV6, ICMP6_FILTER, &octets)?;
        }
    }
    Ok(socket)
}

/// Opens a raw socket that receives only ICMP errors of routers: unreachable, too big, time
/// exceeded (3 and 11 in RFC 792; 1 to 3 in RFC 4443).
pub(crate) fn open_for_errors(family: IpFamily) -> io::Result<Socket> {
    let (domain, protocol) = domain_and_protocol(family);
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    match family {
        IpFamily::V4 => {
            let blocked = !(1u32 << 3 | 1 << 11);
            set_octets(socket.as_fd(), libc::SOL_RAW, ICMP_FILTER, &blocked.to_ne_bytes())?;
        }
        IpFamily::V6 => {
            let mut octets = [u8::MAX; 32];
            octets[..4].copy_from_slice(&(!0b1110u32).to_ne_bytes());
            set_octets(socket.as_fd(), libc::IPPROTO_ICMPV6, ICMP6_FILTER, &octets)?;
        }
    }
    Ok(socket)
}

/// Attaches a filter for this identifier to a raw socket, so that answers to other programs do not
/// fill its buffer. A later call replaces the filter. The identifier is at offset 4 (RFC 792, RFC
/// 4443 §4.1).
pub(crate) fn show_only(fd: BorrowedFd<'_>, family: IpFamily, identifier: u16) -> io::Result<()> {
    show_only_at(fd, family, 4, identifier)
}

/// Attaches a filter for packets with this value in network byte order at an offset after the IP
/// header.
///
/// Classic BPF (Linux Documentation/networking/filter.rst): a raw IPv4 socket's packets start with
/// the IP header, whose length in words is the low half of its first octet; those of an IPv6 socket
/// start after it.
pub(crate) fn show_only_at(
    fd: BorrowedFd<'_>,
    family: IpFamily,
    offset: u32,
    value: u16,
) -> io::Result<()> {
    let value = u32::from(value);
    match family {
        IpFamily::V4 => attach(
            fd,
            &mut [
                filter_instruction(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0),
                filter_instruction(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, offset),
                filter_instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, value),
                filter_instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
                filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
            ],
        ),
        IpFamily::V6 => attach(
            fd,
            &mut [
                filter_instruction(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, offset),
                filter_instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, value),
                filter_instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
                filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
            ],
        ),
    }
}

/// Attaches a filter that cuts every packet of a packet socket to its first `bytes`.
pub(crate) fn accept(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    attach(fd, &mut [filter_instruction(libc::BPF_RET | libc::BPF_K, 0, bytes)])
}

/// Attaches a filter for packets that the host sends, cut to `bytes`, to a packet socket.
pub(crate) fn accept_outgoing(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let kind = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let program = &mut [
        filter_instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, kind),
        filter_instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            1,
            libc::PACKET_OUTGOING.into(),
        ),
        filter_instruction(libc::BPF_RET | libc::BPF_K, 0, bytes),
        filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    attach(fd, program)
}

/// Attaches a filter for datagrams equal to one of these words to a UDP socket, whose filter also
/// sees the 8 octets of the UDP header (RFC 768).
pub(crate) fn show_words(fd: BorrowedFd<'_>, words: &[[u8; 4]]) -> io::Result<()> {
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = vec![
        filter_instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0),
        // A datagram of another length skips all words.
        filter_instruction(equal, 1 + 2 * words.len() as u8, 8 + 4),
        filter_instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 8),
    ];
    for word in words {
        program.push(filter_instruction(equal, 1, u32::from_be_bytes(*word)));
        program.push(filter_instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX));
    }
    program.push(filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0));
    attach(fd, &mut program)
}

/// Attaches a filter for this source address to a UDP socket. The source is at offset 12 (RFC 791
/// §3.1) or 8 (RFC 8200 §3) of the IP header (SKF_NET_OFF).
pub(crate) fn show_source(fd: BorrowedFd<'_>, source: IpAddr) -> io::Result<()> {
    let (first, words) = match source {
        IpAddr::V4(v4) => (12, vec![u32::from(v4)]),
        IpAddr::V6(v6) => (8, v6.octets().chunks(4).map(word_from_octets).collect()),
    };
    let mut program = Vec::new();
    for (at, value) in words.iter().enumerate() {
        let place = libc::SKF_NET_OFF.cast_unsigned().wrapping_add(first + 4 * at as u32);
        let others = (words.len() - at) as u8;
        program.push(filter_instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, place));
        // A differing word skips the other words, two instructions each, and the accept.
        program.push(filter_instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            2 * others - 1,
            *value,
        ));
    }
    program.push(filter_instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX));
    program.push(filter_instruction(libc::BPF_RET | libc::BPF_K, 0, 0));
    attach(fd, &mut program)
}

fn word_from_octets(octets: &[u8]) -> u32 {
    octets.iter().fold(0, |word, octet| word << 8 | u32::from(*octet))
}

/// One instruction; a failed comparison skips `skip` instructions.
const fn filter_instruction(code: u32, skip: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: skip, k }
}

fn attach(fd: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program =
        libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies `program` and the instructions that it points to, which outlive
    // the call; `len` is their number.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const fn domain_and_protocol(family: IpFamily) -> (Domain, Protocol) {
    match family {
        IpFamily::V4 => (Domain::IPV4, Protocol::ICMPV4),
        IpFamily::V6 => (Domain::IPV6, Protocol::ICMPV6),
    }
}

/// First and last group that may open ICMP datagram sockets in this network namespace. First above
/// last means none (icmp(7)). `None` when the setting cannot be read.
pub fn ping_group_range() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
