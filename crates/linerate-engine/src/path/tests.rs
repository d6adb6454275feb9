//! Cutting and keeping, without a kernel. Expected bytes are worked out by hand.

use linerate_core::path::{Ecn, Random};
use linerate_sys::tun::{HEADER_BYTES, TunKind};

use super::cut::{self, SegmentRun};
use super::frame::{EmulatedFrame, MAX_HEADER_BYTES, SegmentedTransport};
use super::hold::{PacketRing, READ_BYTES, segment_of};

/// IPv4 and TCP from 10.9.0.1 to 10.9.0.2 with 250 bytes of payload, 100 a segment: sequence
/// number 16 before its end, identification at its end, CWR, ACK, PSH and FIN set, ECT(0).
fn tcp_super_packet() -> Vec<u8> {
    let mut bytes = vec![1, 0x81];
    for field in [40_u16, 100, 20, 16] {
        bytes.extend(field.to_ne_bytes());
    }
    bytes.extend([0x45, 0x02, 0x01, 0x22, 0xff, 0xff, 0x40, 0x00, 64, 6, 0, 0]);
    bytes.extend([10, 9, 0, 1, 10, 9, 0, 2]);
    bytes.extend([0x9c, 0x40, 0x14, 0x51, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 1]);
    bytes.extend([0x50, 0x99, 0x01, 0x00, 0, 0, 0, 0]);
    bytes.extend((0..250).map(|place| place as u8));
    bytes
}

/// IPv6 and UDP from fd00::1 to fd00::2 with 250 bytes of payload, 100 a datagram.
fn udp_super_packet() -> Vec<u8> {
    let mut bytes = vec![1, 5];
    for field in [48_u16, 100, 40, 6] {
        bytes.extend(field.to_ne_bytes());
    }
    bytes.extend([0x60, 0, 0, 0, 0x01, 0x02, 17, 64]);
    for host in [1, 2] {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    bytes.extend([0x1b, 0x58, 0x1b, 0x58, 0x01, 0x02, 0, 0]);
    bytes.extend((0..250).map(|place| place as u8));
    bytes
}

fn header_of(bytes: &[u8], run: SegmentRun) -> Vec<u8> {
    let frame = EmulatedFrame::read(bytes, TunKind::Ip);
    let parts = frame.super_packet.expect("a super-packet");
    let mut header = [0; MAX_HEADER_BYTES];
    let length = cut::header(bytes, &frame, &parts, run, &mut header);
    header[..length].to_vec()
}

/// The sum of 16-bit words in one's complement (RFC 1071), the plain way.
fn ones_sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

#[test]
fn a_super_packet_is_as_many_packets_as_it_has_segments() {
    let frame = EmulatedFrame::read(&tcp_super_packet(), TunKind::Ip);
    assert_eq!(frame.segments, 3);
    assert_eq!([0, 1, 2].map(|index| frame.ip_bytes(index)), [140, 140, 90]);
    assert_eq!(frame.ecn, Ecn::Capable0);
    assert!(frame.dont_fragment);
    let frame = EmulatedFrame::read(&udp_super_packet(), TunKind::Ip);
    assert_eq!(frame.super_packet.expect("one").transport, SegmentedTransport::Udp);
    assert_eq!([0, 1, 2].map(|index| frame.ip_bytes(index)), [148, 148, 98]);
}

#[test]
fn the_first_segment_keeps_cwr_and_loses_fin_and_psh() {
    let header = header_of(&tcp_super_packet(), SegmentRun { first: 0, last: 0, marked: false });
    // A packet, no super-packet; 40 bytes of header; the checksum is still the receiver's.
    assert_eq!(header[..2], [1, 0]);
    assert_eq!(u16::from_ne_bytes([header[2], header[3]]), 40);
    assert_eq!(u16::from_ne_bytes([header[4], header[5]]), 0);
    let ip = &header[HEADER_BYTES..];
    assert_eq!(ip[2..6], [0, 140, 0xff, 0xff]);
    // 4502 + 008c + ffff + 4000 + 4006 + 0a09 + 0001 + 0a09 + 0002 = 1d9a8; d9a9; complement.
    assert_eq!(ip[10..12], [0x26, 0x56]);
    assert_eq!(ip[24..28], [0xff, 0xff, 0xff, 0xf0]);
    assert_eq!(ip[33], 0x90);
    // 0a09 + 0001 + 0a09 + 0002 + 0006 + 0078.
    assert_eq!(ip[36..38], [0x14, 0x93]);
}

#[test]
fn the_last_segments_count_on_from_the_first_and_end_the_stream() {
    let header = header_of(&tcp_super_packet(), SegmentRun { first: 1, last: 2, marked: false });
    // A super-packet of its own, without CWR in its first segment.
    assert_eq!(header[..2], [1, 1]);
    assert_eq!(u16::from_ne_bytes([header[4], header[5]]), 100);
    let ip = &header[HEADER_BYTES..];
    // 40 + 150 bytes; the identification and the sequence number went over their ends.
    assert_eq!(ip[2..6], [0, 190, 0, 0]);
    assert_eq!(ones_sum(&ip[..20]), 0xffff);
    assert_eq!(ip[24..28], [0, 0, 0, 0x54]);
    assert_eq!(ip[33], 0x19);
    // 20 + 150 = aa: 141b + 00aa.
    assert_eq!(ip[36..38], [0x14, 0xc5]);
    let frame = EmulatedFrame::read(&tcp_super_packet(), TunKind::Ip);
    let parts = frame.super_packet.expect("one");
    assert_eq!(frame.payload(&parts, 1, 2), 10 + 40 + 100..10 + 40 + 250);
}

#[test]
fn a_run_of_datagrams_has_the_lengths_of_the_run() {
    let header = header_of(&udp_super_packet(), SegmentRun { first: 0, last: 1, marked: false });
    assert_eq!(header[..2], [1, 5]);
    let ip = &header[HEADER_BYTES..];
    // 8 + 200 bytes.
    assert_eq!(ip[4..6], [0, 208]);
    assert_eq!(ip[44..46], [0, 208]);
    // fd00 + 0001 + fd00 + 0002 + 0011 + 00d0: 1fae4; fae5.
    assert_eq!(ip[46..48], [0xfa, 0xe5]);
    let header = header_of(&udp_super_packet(), SegmentRun { first: 2, last: 2, marked: false });
    assert_eq!(header[..2], [1, 0]);
    assert_eq!(header[HEADER_BYTES + 44..HEADER_BYTES + 46], [0, 58]);
}

#[test]
fn a_mark_of_congestion_is_in_the_header_and_in_its_checksum() {
    let marked = header_of(&tcp_super_packet(), SegmentRun { first: 0, last: 2, marked: true });
    let ip = &marked[HEADER_BYTES..];
    assert_eq!(ip[1], 3);
    assert_eq!(ones_sum(&ip[..20]), 0xffff);
    let marked = header_of(&udp_super_packet(), SegmentRun { first: 0, last: 2, marked: true });
    assert_eq!(marked[HEADER_BYTES..HEADER_BYTES + 2], [0x60, 0x30]);
}

#[test]
fn a_damaged_segment_has_one_wrong_bit_and_the_checksum_of_the_right_one() {
    let bytes = tcp_super_packet();
    let frame = EmulatedFrame::read(&bytes, TunKind::Ip);
    let parts = frame.super_packet.expect("one");
    let mut packet = header_of(&bytes, SegmentRun { first: 1, last: 1, marked: false });
    packet.extend(&bytes[frame.payload(&parts, 1, 1)]);
    let before = packet.clone();
    cut::corrupt(&mut packet, 50);
    assert_eq!(packet[..HEADER_BYTES], [0; HEADER_BYTES]);
    let changed: Vec<usize> =
        (HEADER_BYTES..packet.len()).filter(|&place| packet[place] != before[place]).collect();
    // The checksum, and a byte 50 behind it.
    assert_eq!(changed, [46, 47, 98]);
    packet[98] ^= 0x10;
    let pseudo = [10, 9, 0, 1, 10, 9, 0, 2, 0, 6, 0, 120];
    assert_eq!(ones_sum(&[&pseudo, &packet[30..]].concat()), 0xffff);
}

#[test]
fn packets_cut_short_or_changed_anywhere_are_read_without_harm() {
    for whole in [tcp_super_packet(), udp_super_packet()] {
        for kind in [TunKind::Ip, TunKind::Ethernet] {
            for length in HEADER_BYTES..whole.len() {
                use_frame(&whole[..length], kind);
            }
            for bit in 0..8 * 90 {
                let mut changed = whole.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                use_frame(&changed, kind);
            }
        }
    }
}

fn use_frame(bytes: &[u8], kind: TunKind) {
    let frame = EmulatedFrame::read(bytes, kind);
    assert!(frame.segments > 0);
    let mut header = [0; MAX_HEADER_BYTES];
    let last = frame.segments - 1;
    frame.ip_bytes(last);
    if let Some(parts) = frame.super_packet {
        let run = SegmentRun { first: last, last, marked: true };
        let length = cut::header(bytes, &frame, &parts, run, &mut header);
        let payload = frame.payload(&parts, last, last);
        let mut packet = [&header[..length], &bytes[payload]].concat();
        cut::corrupt(&mut packet, 3);
    }
}

#[test]
fn one_flow_has_one_number_and_its_fragments_another() {
    let bytes = tcp_super_packet();
    let flow = |bytes: &[u8]| EmulatedFrame::read(bytes, TunKind::Ip).flow;
    let mut later = bytes.clone();
    later[HEADER_BYTES + 27] ^= 1;
    assert_eq!(flow(&later), flow(&bytes), "the sequence number is not part of a flow");
    let mut other_port = bytes.clone();
    other_port[HEADER_BYTES + 21] ^= 1;
    assert_ne!(flow(&other_port), flow(&bytes));
    let mut fragment = bytes.clone();
    fragment[HEADER_BYTES + 6] = 0x20;
    let mut other_fragment = other_port;
    other_fragment[HEADER_BYTES + 6] = 0x20;
    assert_eq!(flow(&fragment), flow(&other_fragment), "later fragments have no ports");
}

#[test]
fn a_frame_of_ethernet_is_read_behind_its_header_and_others_are_one_packet() {
    let ip = tcp_super_packet();
    let mut frame = ip[..HEADER_BYTES].to_vec();
    frame[6..8].copy_from_slice(&34_u16.to_ne_bytes());
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame.extend(&ip[HEADER_BYTES..]);
    let read = EmulatedFrame::read(&frame, TunKind::Ethernet);
    assert_eq!((read.segments, read.ip_bytes(0)), (3, 140));
    // ARP: 28 bytes behind the header.
    let mut arp = frame[..HEADER_BYTES + 14 + 28].to_vec();
    arp[..HEADER_BYTES].fill(0);
    arp[HEADER_BYTES + 13] = 6;
    let read = EmulatedFrame::read(&arp, TunKind::Ethernet);
    assert_eq!((read.version, read.segments, read.ip_bytes(0)), (0, 1, 28));
}

#[test]
fn what_a_host_sends_for_itself_has_no_number_in_a_list() {
    // As tcpdump shows them when a device with IPv6 comes up: a report of groups (MLDv2, behind a
    // hop-by-hop header) and a router solicitation; beside them an echo request and a datagram.
    let v6 = |next: u8, rest: &[u8]| {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend([0x60, 0, 0, 0, 0, rest.len() as u8, next, 255]);
        bytes.extend([0xfe; 32]);
        bytes.extend(rest);
        bytes
    };
    let report = v6(0, &[58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0]);
    let solicitation = v6(58, &[133, 0, 0, 0, 0, 0, 0, 0]);
    let echo = v6(58, &[128, 0, 0, 0, 0, 1, 0, 1]);
    let counted = |bytes: &[u8]| {
        let packet = EmulatedFrame::read(bytes, TunKind::Ip).packet(0, 0);
        packet.number != linerate_core::path::Packet::UNNUMBERED
    };
    assert_eq!([&report, &solicitation].map(|it| counted(it)), [false; 2]);
    assert_eq!([&echo, &udp_super_packet(), &tcp_super_packet()].map(|it| counted(it)), [true; 3]);
    // The first packet of a program is number 0 whatever came before it.
    let lose = linerate_core::path::ListedLoss::new(vec![0]);
    let mut pipeline = linerate_core::path::Pipeline::new(vec![Box::new(lose)]);
    let mut out = linerate_core::path::Outlet::default();
    for bytes in [&report, &solicitation, &echo, &tcp_super_packet()] {
        let packet = EmulatedFrame::read(bytes, TunKind::Ip).packet(0, 0);
        pipeline.receive(linerate_core::time::MonoTime::default(), packet, &mut out);
    }
    let lost: Vec<u32> = out.lost.iter().map(|lost| lost.packet.ip_bytes).collect();
    assert_eq!((lost, out.departures.len()), (vec![48], 3), "the echo request alone");
}

#[test]
fn a_ring_keeps_every_packet_until_its_last_segment_is_let_go() {
    let mut random = Random::new(4, 0);
    let mut below = |limit: usize| (random.next_uniform() * limit as f64) as usize;
    let mut hold = PacketRing::new(5 * READ_BYTES).expect("some memory");
    let mut inside: Vec<(u64, u8, usize)> = Vec::new();
    let (mut kept, mut full) = (0, 0);
    for step in 0..20_000 {
        if let Some(room) = hold.space_for_read() {
            let length = if below(4) == 0 { 60 + below(60_000) } else { 60 + below(100) };
            let fill = step as u8;
            room[..length].fill(fill);
            room[..HEADER_BYTES].fill(0);
            let frame = EmulatedFrame::read(&room[..length], TunKind::Ip);
            inside.push((hold.keep_packet(frame), fill, length));
            kept += 1;
        } else {
            full += 1;
        }
        // Goes in any order, now faster and now slower than it comes.
        let leave = if step / 500 % 2 == 0 { 1 } else { below(3) };
        for _ in 0..leave.min(inside.len()) {
            let (tag, fill, length) = inside.swap_remove(below(inside.len().min(8)));
            let (_, bytes) = hold.get(tag).expect("it was not let go");
            assert_eq!(bytes.len(), length);
            assert!(bytes[HEADER_BYTES..].iter().all(|&byte| byte == fill), "packet of {step}");
            hold.release(tag, 1);
            assert!(hold.get(tag).is_none());
        }
    }
    assert!(kept > 5_000 && full > 0, "{kept} kept, {full} times full");
}

#[test]
fn what_a_full_queue_loses_takes_no_room_while_older_packets_wait() {
    // One packet in 50 is let in and leaves 100 later: an overload of 50 times. The ring has room
    // for 87 datagrams of 1500 bytes beside a read.
    let mut hold = PacketRing::new(3 * READ_BYTES).expect("some memory");
    let mut inside = std::collections::VecDeque::new();
    for step in 0..5000_u64 {
        let room = hold.space_for_read().unwrap_or_else(|| panic!("no room for packet {step}"));
        room[..1500].fill(0);
        room[HEADER_BYTES..1500].fill(step as u8);
        let frame = EmulatedFrame::read(&room[..1500], TunKind::Ip);
        let tag = hold.keep_packet(frame);
        if step % 50 > 0 {
            hold.release(tag, 1);
            continue;
        }
        inside.push_back((tag, step as u8));
        if inside.len() > 2 {
            let (tag, fill) = inside.pop_front().expect("three are inside");
            let (_, bytes) = hold.get(tag).expect("it was let in");
            assert!(bytes[HEADER_BYTES..].iter().all(|&byte| byte == fill), "packet {step}");
            hold.release(tag, 1);
        }
    }
}

#[test]
fn a_tag_names_a_segment_and_a_trimmed_packet_gives_its_bytes_back() {
    let mut hold = PacketRing::new(2 * READ_BYTES).expect("some memory");
    let mut put = || {
        let bytes = tcp_super_packet();
        let room = hold.space_for_read().expect("there is room");
        room[..bytes.len()].copy_from_slice(&bytes);
        let frame = EmulatedFrame::read(&room[..bytes.len()], TunKind::Ip);
        let start = room.as_ptr().addr();
        let tag = hold.keep_packet(frame);
        hold.trim_newest(tag, 0);
        (tag, start)
    };
    let (first, start) = put();
    let (second, next) = put();
    assert_eq!(segment_of(second + 2), 2);
    // 10 + 40 + 100 bytes in lines of 64.
    assert_eq!(next - start, 192);
    hold.release(first, 2);
    assert!(hold.get(first).is_some());
    hold.retain(first);
    hold.release(first, 1);
    assert!(hold.get(first).is_some(), "a copy is still on its way");
    hold.release(first, 1);
    assert!(hold.get(first).is_none());
    assert!(hold.get(second + 1).is_some());
}
