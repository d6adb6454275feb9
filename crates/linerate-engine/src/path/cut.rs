//! Cuts a run of segments out of a super-packet: the header that the run has as a super-packet of
//! its own, or, for a run of one, as a packet.
//!
//! What changes: IPv4 total length, identification (RFC 6864 allows any for DF, the kernel counts
//! up) and header checksum, IPv6 payload length, TCP sequence number, FIN and PSH in the last
//! segment alone, CWR in the first alone (RFC 3168 §6.1.2), UDP length, and the transport
//! checksum field, which holds the sum over the pseudo-header for the receiver to go on from
//! (virtio 1.2 §5.1.6.2). The payload stays where it is.

use linerate_core::path::Ecn;
use linerate_sys::tun::HEADER_BYTES;

use super::frame::{
    EmulatedFrame, GSO_ECN, MAX_HEADER_BYTES, NEEDS_CSUM, SegmentedTransport, Super,
};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Consecutive segments of one super-packet that leave together and alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRun {
    pub(super) first: u16,
    pub(super) last: u16,
    /// The path set Congestion Experienced.
    pub(super) marked: bool,
}

/// Room for the header of a run.
pub(super) type Header = [u8; MAX_HEADER_BYTES];

/// Writes the header of a run; its length. `bytes` begin with the virtio header.
pub(super) fn header(
    bytes: &[u8],
    frame: &EmulatedFrame,
    parts: &Super,
    run: SegmentRun,
    out: &mut Header,
) -> usize {
    let length = usize::from(parts.payload_at);
    let header = &mut out[..length];
    header.copy_from_slice(&bytes[..length]);
    let payload = frame.payload(parts, run.first, run.last).len();
    virtio_header(header, parts, run, payload);
    let at = usize::from(parts.transport_at);
    let transport_bytes = length - at + payload;
    match parts.transport {
        SegmentedTransport::Tcp => tcp_header(&mut header[at..], frame, parts, run),
        SegmentedTransport::Udp => write_be16(&mut header[at..], 4, transport_bytes as u16),
    }
    ip_header(&mut header[usize::from(frame.ip_at)..], frame, run, payload);
    if run.marked {
        mark_congestion(header, frame);
    }
    let sum = pseudo_header(header, frame, parts, transport_bytes);
    write_be16(&mut header[at..], parts.transport.checksum_at(), sum);
    length
}

fn virtio_header(header: &mut [u8], parts: &Super, run: SegmentRun, payload: usize) {
    if run.first > 0 {
        header[1] &= !GSO_ECN;
    }
    let mut segment_bytes = parts.segment_bytes;
    if payload <= usize::from(segment_bytes) {
        header[1] = 0;
        segment_bytes = 0;
    }
    let bytes = header.len() - HEADER_BYTES;
    header[2..4].copy_from_slice(&(bytes as u16).to_ne_bytes());
    header[4..6].copy_from_slice(&segment_bytes.to_ne_bytes());
}

fn tcp_header(tcp: &mut [u8], frame: &EmulatedFrame, parts: &Super, run: SegmentRun) {
    let before = u32::from(run.first) * u32::from(parts.segment_bytes);
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(before);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if run.first > 0 {
        tcp[13] &= !CWR;
    }
    if run.last + 1 < frame.segments {
        tcp[13] &= !(FIN | PSH);
    }
}

fn ip_header(ip: &mut [u8], frame: &EmulatedFrame, run: SegmentRun, payload: usize) {
    let bytes = ip.len() + payload;
    if frame.version == 6 {
        write_be16(ip, 4, (bytes - 40) as u16);
        return;
    }
    let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(run.first);
    write_be16(ip, 2, bytes as u16);
    write_be16(ip, 4, identification);
    ipv4_checksum(ip);
}

fn ipv4_checksum(ip: &mut [u8]) {
    let length = usize::from(ip[0] & 15) * 4;
    write_be16(ip, 10, 0);
    let sum = fold_checksum(add(0, &ip[..length.min(ip.len())]));
    write_be16(ip, 10, !sum);
}

/// Sets Congestion Experienced in the IP header of a whole packet or a header.
pub(super) fn mark_congestion(bytes: &mut [u8], frame: &EmulatedFrame) {
    let ip = &mut bytes[usize::from(frame.ip_at)..];
    match frame.version {
        4 => {
            ip[1] |= 3;
            ipv4_checksum(ip);
        }
        6 => ip[1] |= 0x30,
        _ => {}
    }
}

/// True where the path set Congestion Experienced in a packet that came without it.
pub(super) fn is_marked(frame: &EmulatedFrame, ecn: Ecn) -> bool {
    ecn == Ecn::Experienced && frame.ecn != Ecn::Experienced
}

/// The sum over addresses, protocol and length, not complemented (RFC 9293 §3.1, RFC 8200 §8.1).
fn pseudo_header(
    header: &[u8],
    frame: &EmulatedFrame,
    parts: &Super,
    transport_bytes: usize,
) -> u16 {
    let ip = &header[usize::from(frame.ip_at)..];
    let addresses = if frame.version == 6 { &ip[8..40] } else { &ip[12..20] };
    let start = u64::from(parts.transport.protocol()) + transport_bytes as u64;
    fold_checksum(add(start, addresses))
}

/// Changes one bit of a packet, as noise does that the link did not catch: the receiver's checksum
/// finds it. `which` chooses the byte.
pub(super) fn corrupt(packet: &mut [u8], which: u64) {
    let first = complete(packet);
    // Behind the checksum, where there is something; else the last byte.
    let room = packet.len().saturating_sub(first) as u64;
    let place = if room > 0 { first + (which % room) as usize } else { packet.len() - 1 };
    packet[place] ^= 0x10;
}

/// Makes it one packet with its checksum filled in, as on a wire. Gives the place behind the
/// checksum.
pub(super) fn complete(packet: &mut [u8]) -> usize {
    let mut first = HEADER_BYTES;
    if packet[0] & NEEDS_CSUM != 0 {
        let start = HEADER_BYTES + usize::from(super::frame::read_ne16(packet, 6));
        let at = start + usize::from(super::frame::read_ne16(packet, 8));
        if at + 2 <= packet.len() {
            let sum = !fold_checksum(add(0, &packet[start..]));
            // A UDP checksum of 0 says that there is none (RFC 768).
            write_be16(packet, at, if sum == 0 { 0xffff } else { sum });
            first = at + 2;
        }
    }
    packet[..HEADER_BYTES].fill(0);
    first
}

/// Adds 16-bit words in network order to a sum of one's complement (RFC 1071 §1).
pub(super) fn add(start: u64, bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |&last| u64::from(last) << 8);
    let words = pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    start + odd + words.sum::<u64>()
}

pub(super) fn fold_checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

pub(super) fn write_be16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
