//! Echo probes by an AF_XDP socket (Linux 5.4): this process writes whole frames, which bypass the
//! kernel's IP; [`EchoFilter`] redirects the answers to the socket.
//!
//! ```text
//! memory   512 places: the first 256 for probes, the others for answers
//! ```
//! A probe costs one call, in which on a virtual link the answer of a reflector in XDP is already
//! delivered; a check for an answer costs none. Left out: fragments, VLAN tags, kernel timestamps.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use crate::netlink::RouteSocket;
use crate::socket_option::set_int;
use crate::xdp::EchoFilter;
use crate::xdp_rings::{
    Mapping, PLACES, XdpOptions, XdpRing, bind_queue, offsets, socket_with_memory, wake_kernel,
};
use crate::{Error, Result};

const PLACE_BYTES: usize = 4096;
/// Receive queue of the answers, and transmit queue of the probes.
const QUEUE: u32 = 0;
/// Most calls for one frame; after them it stays in the ring.
const KICKS: usize = 1000;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Default time to live.
const TTL: u8 = 64;

/// Header fields of the probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoHeaders {
    pub(crate) source: IpAddr,
    pub(crate) peer: IpAddr,
    pub(crate) ttl: Option<u8>,
    pub(crate) class: u8,
    /// Flow label of IPv6.
    pub(crate) flow_label: u32,
}

/// A received message: its length in the buffer, and fields of its IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedEchoMessage {
    pub(crate) len: usize,
    pub(crate) ttl: Option<u8>,
    pub(crate) class: Option<u8>,
}

/// A socket that sends ICMP messages to one host and receives its replies.
#[derive(Debug)]
pub(crate) struct XdpEcho {
    filter: EchoFilter,
    fd: OwnedFd,
    send: XdpRing,
    done: XdpRing,
    received: XdpRing,
    fill: XdpRing,
    memory: Mapping,
    headers: Vec<u8>,
    mtu_bytes: usize,
    free: Vec<u32>,
    submitted: u32,
}

impl XdpEcho {
    /// Opens the socket on the outgoing interface of the route to the peer, and resolves the MAC
    /// address of the next hop.
    /// # Errors
    /// For a peer on this host, when the next hop does not answer, when another XDP program is on
    /// the interface, or without CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
    pub(crate) fn open(headers: &EchoHeaders) -> Result<Self> {
        let mut routes = RouteSocket::open()?;
        let (ifindex, hop) = routes.next_hop(headers.peer)?;
        let link = routes.link_by_index(ifindex)?;
        let failed = |source| Error::new("open AF_XDP socket on", &link.name, source);
        let own = link.mac.filter(|mac| *mac != [0; 6]).ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::Unsupported, "it has no Ethernet address"))
        })?;
        let next = routes.resolve_neighbour(ifindex, hop)?;
        let filter = EchoFilter::attach(ifindex, headers.peer)?;
        let (fd, memory) = socket_with_memory(PLACE_BYTES, 2 * PLACES).map_err(failed)?;
        let [send, done, received, fill] = map_rings(&fd).map_err(failed)?;
        bind_queue(&fd, ifindex, XdpOptions { queue: QUEUE, ..XdpOptions::default() })
            .map_err(failed)?;
        filter.redirect_queue(QUEUE, &fd)?;
        let socket = Self {
            filter,
            fd,
            send,
            done,
            received,
            fill,
            memory,
            headers: [&next[..], &own[..], &headers.octets()].concat(),
            mtu_bytes: link.mtu_bytes as usize,
            free: (0..PLACES).collect(),
            submitted: 0,
        };
        (PLACES..2 * PLACES).for_each(|place| socket.offer_receive_place(place - PLACES, place));
        Ok(socket)
    }

    /// Sets the traffic class of the probes.
    pub(crate) fn use_class(&mut self, class: u8) {
        let header = &mut self.headers[ETHERNET_BYTES..];
        if header[0] >> 4 == 4 {
            header[1] = class;
        } else {
            header[0] = 0x60 | class >> 4;
            header[1] = class << 4 | header[1] & 0x0f;
        }
    }

    /// Receives only replies with this identifier from now on.
    pub(crate) fn show_only(&self, identifier: u16) {
        self.filter.show_only(identifier);
    }

    /// Sends one message.
    /// # Errors
    /// EMSGSIZE for a message too long for the link, EWOULDBLOCK when there is no room, or the
    /// kernel's reason.
    #[inline]
    pub(crate) fn send_message(&mut self, message: &[u8]) -> io::Result<()> {
        let len = self.headers.len() + message.len();
        if len > (self.mtu_bytes + ETHERNET_BYTES).min(PLACE_BYTES) {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        self.reclaim_sent();
        let place = self.free.pop().ok_or(io::ErrorKind::WouldBlock)?;
        let frame = self.frame_at_place(place);
        let (headers, rest) = frame.split_at_mut(self.headers.len());
        headers.copy_from_slice(&self.headers);
        finish(&mut headers[ETHERNET_BYTES..], message.len());
        rest[..message.len()].copy_from_slice(message);
        let addr = u64::from(place) * PLACE_BYTES as u64;
        // SAFETY: an entry of the ring of descriptors between producer and consumer + PLACES,
        // since no more than PLACES frames exist; the kernel reads it once the producer has moved
        // past it.
        unsafe {
            let entry = self.send.entry_ptr::<libc::xdp_desc>(self.submitted);
            entry.write(libc::xdp_desc { addr, len: len as u32, options: 0 });
        }
        self.submitted = self.submitted.wrapping_add(1);
        self.send.producer().store(self.submitted, Ordering::Release);
        for _ in 0..KICKS {
            match wake_kernel(&self.fd) {
                Ok(()) => return Ok(()),
                // The driver dropped the frame, which counts as a lost probe.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(()),
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // The frame stays in the ring until the call for a later probe.
        Ok(())
    }

    /// Receives a message if one is queued, an empty one for a damaged frame, without a system
    /// call.
    #[inline]
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedEchoMessage> {
        let at = self.received.consumer().load(Ordering::Relaxed);
        if self.received.producer().load(Ordering::Acquire) == at {
            return None;
        }
        // SAFETY: an entry of the ring of descriptors, which the kernel filled before it moved the
        // producer past it and leaves alone until the consumer has moved.
        let entry = unsafe { self.received.entry_ptr::<libc::xdp_desc>(at).read() };
        let place = (entry.addr / PLACE_BYTES as u64) as u32;
        let start = (entry.addr % PLACE_BYTES as u64) as usize;
        let frame =
            &self.frame_at_place(place)[start..(start + entry.len as usize).min(PLACE_BYTES)];
        let packet = copy_message(frame, buffer);
        self.received.consumer().store(at.wrapping_add(1), Ordering::Release);
        self.offer_receive_place(self.fill.producer().load(Ordering::Relaxed), place);
        Some(packet.unwrap_or_default())
    }

    /// Replies dropped for lack of room, where the kernel counts them.
    pub(crate) fn dropped_replies(&self) -> Option<u32> {
        // struct xdp_statistics: dropped for other reasons, invalid in either ring, receive ring
        // full, fill ring empty, send ring empty.
        let mut words = [0_u64; 6];
        let mut len = size_of_val(&words) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` octets to `words` during the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_XDP,
                libc::XDP_STATISTICS,
                words.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        (result == 0).then(|| u32::try_from(words[0] + words[3]).unwrap_or(u32::MAX))
    }

    /// Replies that arrived on another receive queue than the socket's.
    pub(crate) fn elsewhere(&self) -> u64 {
        self.filter.elsewhere()
    }

    /// Frees the places of sent probes.
    fn reclaim_sent(&mut self) {
        let end = self.done.producer().load(Ordering::Acquire);
        let mut at = self.done.consumer().load(Ordering::Relaxed);
        while at != end {
            // SAFETY: an entry of the ring of u64, which the kernel filled before it moved the
            // producer past it and leaves alone until the consumer has moved.
            let address = unsafe { self.done.entry_ptr::<u64>(at).read() };
            self.free.push((address / PLACE_BYTES as u64) as u32);
            at = at.wrapping_add(1);
        }
        self.done.consumer().store(at, Ordering::Release);
    }

    /// Adds a place for an answer to the fill ring, as entry `number`.
    fn offer_receive_place(&self, number: u32, place: u32) {
        // SAFETY: an entry of the ring of u64 between producer and consumer + PLACES, since no
        // more than PLACES places are for answers; the kernel reads it once the producer has moved
        // past it.
        unsafe {
            self.fill.entry_ptr::<u64>(number).write(u64::from(place) * PLACE_BYTES as u64);
        }
        self.fill.producer().store(number.wrapping_add(1), Ordering::Release);
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "the places are the kernel's and this socket's in turn"
    )]
    fn frame_at_place(&self, place: u32) -> &mut [u8] {
        let start = (place % (2 * PLACES)) as usize * PLACE_BYTES;
        // SAFETY: within the mapping, which lives as long as the socket; the place was taken from
        // the free ones or from a ring, so that neither the kernel nor another slice is at it.
        unsafe {
            let start = self.memory.start.as_ptr().add(start);
            std::slice::from_raw_parts_mut(start, PLACE_BYTES)
        }
    }
}

impl AsFd for XdpEcho {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for XdpEcho {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl EchoHeaders {
    /// The headers from the EtherType on, without the length.
    fn octets(&self) -> Vec<u8> {
        let ttl = self.ttl.unwrap_or(TTL);
        match (self.source, self.peer) {
            (IpAddr::V4(source), IpAddr::V4(peer)) => {
                // Don't Fragment: a message that is too long is refused before it is sent.
                let start = [8, 0, 0x45, self.class, 0, 0, 0, 0, 0x40, 0, ttl, 1, 0, 0];
                [&start[..], &source.octets(), &peer.octets()].concat()
            }
            (source, peer) => {
                let word = 6 << 28 | u32::from(self.class) << 20 | self.flow_label & 0xf_ffff;
                let octets = |addr| match addr {
                    IpAddr::V4(addr) => addr.to_ipv6_mapped().octets(),
                    IpAddr::V6(addr) => addr.octets(),
                };
                let (rest, source, peer) = ([0, 0, 58, ttl], octets(source), octets(peer));
                [&[0x86, 0xdd][..], &word.to_be_bytes(), &rest, &source, &peer].concat()
            }
        }
    }
}

/// Maps the four rings: fill, completion, receive and transmit.
fn map_rings(fd: &OwnedFd) -> io::Result<[XdpRing; 4]> {
    let kinds = [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_TX_RING,
        libc::XDP_RX_RING,
    ];
    for ring in kinds {
        set_int(fd.as_fd(), libc::SOL_XDP, ring, PLACES.cast_signed())?;
    }
    let at = offsets(fd)?;
    let frame = size_of::<libc::xdp_desc>();
    let place = size_of::<u64>();
    Ok([
        XdpRing::from_fd(fd, at.tx, libc::XDP_PGOFF_TX_RING as u64, frame)?,
        XdpRing::from_fd(fd, at.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING, place)?,
        XdpRing::from_fd(fd, at.rx, libc::XDP_PGOFF_RX_RING as u64, frame)?,
        XdpRing::from_fd(fd, at.fr, libc::XDP_UMEM_PGOFF_FILL_RING, place)?,
    ])
}

/// True for a temporary error, after which a later call can succeed.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR))
}

/// Writes the length and, in IPv4, the checksum of a header.
fn finish(header: &mut [u8], message: usize) {
    if header[0] >> 4 == 6 {
        header[4..6].copy_from_slice(&(message as u16).to_be_bytes());
        return;
    }
    header[2..4].copy_from_slice(&((IPV4_BYTES + message) as u16).to_be_bytes());
    let checksum = !sum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// One's complement sum (RFC 1071) of a header.
fn sum(header: &[u8]) -> u16 {
    let words = header.as_chunks::<2>().0;
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// Copies the ICMP message of a frame to `buffer`; `None` for a damaged header, or a packet longer
/// than the frame.
fn copy_message(frame: &[u8], buffer: &mut [u8]) -> Option<ReceivedEchoMessage> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    let (message, ttl, class) = if packet.first()? >> 4 == 4 {
        let header = packet.get(..IPV4_BYTES).filter(|header| sum(header) == 0xffff)?;
        let total = u16::from_be_bytes([header[2], header[3]]);
        (packet.get(IPV4_BYTES..total.into())?, header[8], header[1])
    } else {
        let header = packet.get(..IPV6_BYTES)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let class = header[0] << 4 | header[1] >> 4;
        (packet.get(IPV6_BYTES..IPV6_BYTES + length)?, header[7], class)
    };
    buffer.get_mut(..message.len())?.copy_from_slice(message);
    Some(ReceivedEchoMessage { len: message.len(), ttl: Some(ttl), class: Some(class) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_ipv4_are_those_of_the_standard_with_their_checksum() {
        // RFC 791 §3.1; the checksum summed by hand: 4500+005c+0000+4000+4001+c000+0201+c000+0202
        // = 24960, folded 4962, complement b69d.
        let headers = EchoHeaders {
            source: [192, 0, 2, 1].into(),
            peer: [192, 0, 2, 2].into(),
            ttl: None,
            class: 0,
            flow_label: 0,
        };
        let mut octets = headers.octets();
        finish(&mut octets[2..], 72);
        let whole = [
            0x08, 0x00, 0x45, 0, 0, 0x5c, 0, 0, 0x40, 0, 0x40, 0x01, 0xb6, 0x9d, 192, 0, 2, 1, 192,
            0, 2, 2,
        ];
        assert_eq!(octets, whole);
        let mut buffer = [0; 128];
        let mut frame = [&[0; 12][..], &octets, &[7; 72], &[0; 4]].concat();
        let packet = copy_message(&frame, &mut buffer).expect("a packet");
        assert_eq!((packet.len, packet.ttl, packet.class), (72, Some(64), Some(0)));
        assert_eq!(buffer[..72], [7; 72]);
        frame[20] ^= 1;
        assert_eq!(copy_message(&frame, &mut buffer), None, "a damaged header");
        assert_eq!(copy_message(&frame[..60], &mut buffer), None, "cut short");
    }

    #[test]
    fn class_and_flow_label_are_at_their_places_in_ipv6() {
        // RFC 8200 §3: version 4 bits, class 8, label 20.
        let headers = EchoHeaders {
            source: IpAddr::V6(1.into()),
            peer: IpAddr::V6(2.into()),
            ttl: Some(9),
            class: 0xb9,
            flow_label: 0x1_2345,
        };
        let mut octets = headers.octets();
        finish(&mut octets[2..], 64);
        assert_eq!(octets[..10], [0x86, 0xdd, 0x6b, 0x91, 0x23, 0x45, 0, 64, 58, 9]);
        let mut buffer = [0; 64];
        let frame = [&[0; 12][..], &octets, &[5; 64]].concat();
        let packet = copy_message(&frame, &mut buffer).expect("a packet");
        assert_eq!((packet.len, packet.ttl, packet.class), (64, Some(9), Some(0xb9)));
    }
}
