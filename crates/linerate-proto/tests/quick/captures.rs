//! Captures of other programs' making, held against what tcpdump printed of them
//! (`testdata/captures/README.md`), then cut at every length and with flipped bits.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_proto::capture::{
    BLOCK_MAX_BYTES, CaptureDirection, CaptureError, CaptureParser, CaptureProblem, CaptureStep,
    CapturedPacket, Decoded, Format, LengthFrom, LinkType, Next, NoIp, Ports, Stream, Vlans,
};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures")
}

fn capture(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(name)).expect("a capture of the tree")
}

fn captures() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("the captures of the tree");
    let names =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII"));
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".pcap") || name.ends_with(".pcapng")).collect();
    names.sort();
    assert!(names.len() > 20, "the captures are there");
    names
}

/// What is kept of a packet to compare it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    at_ns: Option<u64>,
    captured: Vec<u8>,
    original_len: u32,
    offset: u64,
    section: u32,
    interface: u32,
    link_type: LinkType,
    decoded: Decoded,
}

impl Seen {
    fn of(packet: &CapturedPacket<'_>) -> Self {
        Self {
            at_ns: packet.at_ns,
            captured: packet.data.to_vec(),
            original_len: packet.original_len,
            offset: packet.offset,
            section: packet.section,
            interface: packet.interface,
            link_type: packet.link_type,
            decoded: packet.decode(),
        }
    }
}

/// All packets from memory, and how it ended.
fn read(bytes: &[u8]) -> (Vec<Seen>, Result<(), CaptureError>) {
    let (mut parser, mut rest, mut seen) = (CaptureParser::new(), bytes, Vec::new());
    loop {
        match parser.parse_record(rest) {
            Ok(CaptureStep::Packet { packet, used }) => {
                assert!(used > 0 && used <= rest.len(), "progress");
                seen.push(Seen::of(&packet));
                assert_eq!(packet.number, seen.len() as u64);
                rest = &rest[used..];
            }
            Ok(CaptureStep::Passed { used }) => {
                assert!(used > 0 && used <= rest.len(), "progress");
                rest = &rest[used..];
            }
            Ok(CaptureStep::Needs { bytes }) => {
                assert!(bytes > rest.len() && bytes <= BLOCK_MAX_BYTES, "a need within the limit");
                return (seen, parser.check_end(rest));
            }
            Err(error) => {
                assert_eq!(parser.parse_record(rest), Err(error), "an error is final");
                return (seen, Err(error));
            }
        }
    }
}

/// The same through a stream that gets `piece` bytes at a time.
fn stream(bytes: &[u8], piece: usize) -> (Vec<Seen>, Result<(), CaptureError>) {
    let (mut stream, mut rest, mut seen) = (Stream::with_buffer(piece), bytes, Vec::new());
    loop {
        match stream.next_packet() {
            Ok(Next::Packet(packet)) => seen.push(Seen::of(&packet)),
            Ok(Next::NeedsInput) => {
                let space = stream.free_space();
                let count = space.len().min(rest.len()).min(piece);
                if count == 0 {
                    return (seen, stream.check_end());
                }
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                stream.filled(count);
                assert!(stream.buffer_bytes() <= BLOCK_MAX_BYTES);
            }
            Err(error) => return (seen, Err(error)),
        }
    }
}

/// What tcpdump printed of one packet, as far as it says.
#[derive(Debug, Default)]
struct Told {
    at_ns: Option<u64>,
    frame_bytes: Option<u32>,
    ip_bytes: Option<u32>,
    missing_bytes: u32,
    dscp: Option<u8>,
    ends: Option<(IpAddr, IpAddr)>,
    ports: Option<Ports>,
    vlan_ids: Vec<u16>,
    outgoing: Option<bool>,
}

/// Each packet; `None` for one that tcpdump counts and says nothing of (no captured byte).
fn told(text: &str) -> Vec<Option<Told>> {
    let mut packets: Vec<String> = Vec::new();
    for line in text.lines() {
        match packets.last_mut() {
            Some(packet) if line.starts_with([' ', '\t']) => packet.push_str(line),
            _ => packets.push(line.to_owned()),
        }
    }
    packets.iter().map(|packet| told_of(packet)).collect()
}

/// The number behind each `word`.
fn numbers<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.split(word).skip(1).filter_map(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
    })
}

fn told_of(text: &str) -> Option<Told> {
    let mut told = Told::default();
    let (time, rest) = text.split_once(' ').filter(|_| !text.starts_with('['))?;
    let (seconds, nanoseconds) = time.split_once('.').expect("seconds and nanoseconds");
    let at_ns = seconds.parse::<u64>().expect("seconds") * 1_000_000_000
        + nanoseconds.parse::<u64>().expect("nine digits");
    told.at_ns = (at_ns != 0).then_some(at_ns);
    told.frame_bytes = numbers(rest, ", length ").next();
    let v4 = rest.find(", proto ").and_then(|at| numbers(&rest[at..], "), length ").next());
    let v6 = numbers(rest, "payload length: ").next().map(|payload| payload + 40);
    let jumbo = numbers(rest, "(jumbo: ").next().map(|payload| payload + 40);
    told.ip_bytes = jumbo.or(v4).or(v6);
    told.missing_bytes = numbers(rest, "truncated-ip - ").next().unwrap_or(0);
    told.dscp = rest.split("(tos 0x").nth(1).map(|rest| {
        let digits = rest.split(',').next().expect("digits");
        u8::from_str_radix(digits, 16).expect("a byte") >> 2
    });
    let mut around = rest.split(" > ").peekable();
    while let (Some(left), Some(right)) = (around.next(), around.peek()) {
        let left = left.rsplit(' ').next().and_then(end_of);
        let right = right.split(' ').next().and_then(|word| end_of(word.trim_end_matches(':')));
        if let (Some((a, from)), Some((b, to))) = (left, right) {
            told.ends = Some((a, b));
            told.ports = from.zip(to).map(|(source, destination)| Ports { source, destination });
            break;
        }
    }
    told.vlan_ids = numbers(rest, "vlan ").map(|id| id as u16).collect();
    let directions = [("Out ", true), ("In ", false)];
    told.outgoing =
        directions.iter().find(|(word, _)| rest.contains(word)).map(|(_, outgoing)| *outgoing);
    Some(told)
}

/// An address, and a port behind its last dot.
fn end_of(word: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = word.parse() {
        return Some((address, None));
    }
    let (address, port) = word.rsplit_once('.')?;
    Some((address.parse().ok()?, Some(port.parse().ok()?)))
}

fn compare(name: &str, number: usize, seen: &Seen, told: &Told) {
    let place = format!("{name}, packet {number}: {told:?} beside {seen:?}");
    assert_eq!(seen.at_ns, told.at_ns, "{place}");
    let decoded = &seen.decoded;
    let is_ethernet = seen.link_type == LinkType::ETHERNET;
    // With the check sequence in the capture, tcpdump counts it and we do not; of an 802.3 frame it
    // prints the length field.
    let is_8023 = matches!(seen.captured.get(12..14), Some([0..=5, _]));
    if is_ethernet && !name.contains("fcs") && !is_8023 {
        assert_eq!(decoded.frame_bytes, told.frame_bytes.or(Some(0)), "{place}");
    }
    let ids = &decoded.vlans.ids[..usize::from(decoded.vlans.count).min(2)];
    assert_eq!(ids, told.vlan_ids, "{place}");
    if matches!(seen.link_type, LinkType::LINUX_SLL | LinkType::LINUX_SLL2) {
        assert_eq!(
            decoded.direction.map(|d| d == CaptureDirection::Outgoing),
            told.outgoing,
            "{place}"
        );
    }
    let Some(ip_bytes) = told.ip_bytes else { return };
    let ip = decoded.ip.expect(&place);
    assert_eq!(ip.ip_bytes, ip_bytes, "{place}");
    assert_eq!(ip.missing_bytes, told.missing_bytes, "{place}");
    assert_eq!((ip.source, ip.destination), told.ends.expect(&place), "{place}");
    if let Some(dscp) = told.dscp {
        assert_eq!(ip.dscp, dscp, "{place}");
    }
    // Behind a jumbo header tcpdump prints ports without addresses, behind RT6 nothing.
    if ip.header_bytes == 20 || ip.header_bytes == 40 {
        assert_eq!(ip.ports, told.ports, "{place}");
    }
}

#[test]
fn every_packet_is_what_tcpdump_says_it_is() {
    let mut compared = 0;
    for name in captures() {
        let Ok(text) = std::fs::read_to_string(directory().join(format!("{name}.txt"))) else {
            continue;
        };
        let (seen, end) = read(&capture(&name));
        assert_eq!(end, Ok(()), "{name}");
        let told = told(&text);
        assert_eq!(seen.len(), told.len(), "packets of {name}");
        for (at, (seen, told)) in seen.iter().zip(&told).enumerate() {
            if let Some(told) = told {
                compare(&name, at + 1, seen, told);
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "only {compared} packets were compared");
}

/// The instants that `write.py` wrote, by hand: half a second behind 1,700,000,000 s.
#[test]
fn one_instant_in_seven_clocks_is_one_instant() {
    for name in ["clocks_little_endian.pcapng", "clocks_big_endian.pcapng"] {
        let (seen, end) = read(&capture(name));
        assert_eq!(end, Ok(()));
        let times: Vec<_> = seen.iter().map(|packet| packet.at_ns).collect();
        assert_eq!(times, [Some(1_700_000_000_500_000_000); 7], "{name}");
        let interfaces: Vec<_> = seen.iter().map(|packet| packet.interface).collect();
        assert_eq!(interfaces, [0, 1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn every_kind_of_packet_block_is_read_and_the_others_are_passed() {
    for name in ["blocks_little_endian.pcapng", "blocks_big_endian.pcapng"] {
        let (seen, end) = read(&capture(name));
        assert_eq!(end, Ok(()));
        let rows: Vec<_> = seen
            .iter()
            .map(|p| (p.at_ns, p.captured.len(), p.original_len, p.decoded.direction))
            .collect();
        let at = |us: u64| Some(1_700_000_000_000_000_000 + us * 1_000);
        let expected = [
            (at(0), 40, 47, Some(CaptureDirection::Outgoing)),
            (at(1), 39, 47, Some(CaptureDirection::Incoming)),
            (None, 40, 47, None),
            (None, 33, 33, None),
            (at(2), 38, 38, None),
            (at(3), 0, 0, None),
        ];
        assert_eq!(rows, expected, "{name}");
    }
}

#[test]
fn an_interface_tells_its_name_speed_and_snaplen() {
    let bytes = capture("blocks_big_endian.pcapng");
    let (mut parser, mut rest) = (CaptureParser::new(), &bytes[..]);
    while let Ok(CaptureStep::Passed { used } | CaptureStep::Packet { used, .. }) =
        parser.parse_record(rest)
    {
        rest = &rest[used..];
    }
    assert_eq!(parser.format(), Some(Format::Pcapng));
    let [interface] = parser.interfaces() else { panic!("one interface") };
    assert_eq!(interface.name.as_deref(), Some("eth0"));
    assert_eq!(interface.speed_bps, Some(1_000_000_000));
    assert_eq!(interface.snaplen, Some(40));
    assert_eq!(interface.stamps_per_s(), Some(1_000_000));
}

#[test]
fn a_section_in_the_other_byte_order_follows() {
    let (seen, end) = read(&capture("sections.pcapng"));
    assert_eq!(end, Ok(()));
    let (first, _) = read(&capture("ethernet_us.pcap"));
    assert_eq!(seen.iter().map(|packet| packet.section).collect::<Vec<_>>(), [0, 1, 2]);
    for (ours, theirs) in seen.iter().zip(&first) {
        assert_eq!((ours.at_ns, &ours.captured), (theirs.at_ns, &theirs.captured));
    }
}

#[test]
fn every_link_type_may_be_in_one_section() {
    let (seen, end) = read(&capture("links.pcapng"));
    assert_eq!(end, Ok(()));
    let types: Vec<_> = seen.iter().map(|packet| packet.link_type.0).collect();
    assert_eq!(types, [0, 0, 108, 9, 50, 104, 228, 229]);
    for packet in &seen {
        let ip = packet.decoded.ip.expect("IP in each");
        // 20 or 40 and 13 bytes of UDP, by write.py.
        assert_eq!(ip.ip_bytes, if ip.source.is_ipv4() { 33 } else { 53 });
        assert_eq!(ip.ports, Some(Ports { source: 4000, destination: 4001 }));
    }
}

/// Lengths by hand from `odd_frames` of write.py.
#[test]
fn odd_frames_have_the_lengths_that_were_written() {
    let (seen, _) = read(&capture("odd_frames.pcap"));
    let ip = |at: usize| seen[at].decoded.ip.expect("IP");
    let rows: Vec<_> =
        (0..10).map(|at| (ip(at).ip_bytes, ip(at).header_bytes, ip(at).ports.is_some())).collect();
    let expected = [
        (33, 20, true),
        (37, 24, true),
        (70_040, 20, true),
        (33, 20, true),
        (70_040, 48, true),
        (77, 64, true),
        (33, 20, true),
        (33, 20, true),
        (53, 40, true),
        (33, 20, true),
    ];
    assert_eq!(rows, expected);
    assert_eq!(ip(2).length_from, LengthFrom::Frame);
    assert_eq!(ip(4).length_from, LengthFrom::Jumbo);
    assert_eq!((ip(0).length_from, ip(3).dscp), (LengthFrom::Header, 46));
    assert_eq!(seen[8].decoded.mpls_labels, 2);
    assert_eq!(seen[9].decoded.vlans, Vlans { count: 2, ids: [9, 7] });
    assert_eq!(seen[10].decoded.ip, Err(NoIp::Llc));
    assert_eq!(seen[11].decoded.ip, Err(NoIp::EtherType(0x88cc)));
}

#[test]
fn the_check_sequence_is_no_part_of_the_frame() {
    let (seen, _) = read(&capture("ethernet_fcs.pcap"));
    assert_eq!(seen[0].original_len, 64);
    assert_eq!(seen[0].decoded.frame_bytes, Some(60));
}

/// RFC 9293 segments by hand: 7,240 bytes in segments of 1,448 are five packets of 1,500.
#[test]
fn an_offloaded_packet_tells_the_packets_on_the_wire() {
    let (seen, _) = read(&capture("offload_snap96.pcap"));
    let long: Vec<_> = seen.iter().filter_map(|p| p.decoded.ip.ok()).collect();
    let first = long.iter().find(|ip| ip.is_offloaded(1500)).expect("an offloaded packet");
    let payload = first.ip_bytes - 52;
    let wire = first.on_wire(1500).expect("TCP");
    assert_eq!(wire.packets, payload.div_ceil(1448));
    assert_eq!(wire.ip_bytes, u64::from(payload + wire.packets * 52));
    let short = long.iter().find(|ip| !ip.is_offloaded(1500)).expect("an ordinary packet");
    assert_eq!(short.on_wire(1500).expect("itself").packets, 1);
    // 148,606 − 14 − 40 − 8 − 32 bytes of payload (tcpdump: tcp 148512) in segments of 1,428.
    let (seen, _) = read(&capture("big_tcp.pcap"));
    let big = seen.iter().find(|p| p.original_len == 148_606).expect("a long packet");
    let wire = big.decoded.ip.expect("IPv6").on_wire(1500).expect("TCP");
    assert_eq!((wire.packets, wire.ip_bytes), (104, 148_512 + 104 * 72));
}

/// Where each step of a whole capture ends, and whether it is a packet.
fn steps(bytes: &[u8]) -> Vec<(usize, bool)> {
    let (mut parser, mut at, mut ends) = (CaptureParser::new(), 0, Vec::new());
    loop {
        let is_packet = match parser.parse_record(&bytes[at..]) {
            Ok(CaptureStep::Packet { used, .. }) => {
                at += used;
                true
            }
            Ok(CaptureStep::Passed { used }) => {
                at += used;
                false
            }
            _ => return ends,
        };
        ends.push((at, is_packet));
    }
}

#[test]
fn a_capture_cut_anywhere_gives_its_whole_packets_and_says_where() {
    for name in captures().iter().filter(|name| !name.starts_with("ethernet_")) {
        let bytes = capture(name);
        let (whole, end) = read(&bytes);
        assert_eq!(end, Ok(()), "{name}");
        let steps = steps(&bytes);
        for len in 1..bytes.len() {
            let (seen, end) = read(&bytes[..len]);
            let done = steps.iter().take_while(|(end, _)| *end <= len);
            let packets = done.clone().filter(|(_, is_packet)| *is_packet).count();
            assert_eq!(seen[..], whole[..packets], "{name} at {len}");
            let offset = done.last().map_or(0, |(end, _)| *end);
            match end {
                Ok(()) => assert_eq!(offset, len, "{name} at {len}"),
                Err(error) => {
                    assert!(error.is_cut() && offset < len, "{name} at {len}: {error}");
                    assert_eq!(error.offset, offset as u64, "{name} at {len}");
                }
            }
        }
    }
}

#[test]
fn pieces_of_any_size_give_the_same_as_the_whole() {
    for name in captures() {
        let bytes = capture(&name);
        let whole = read(&bytes);
        for piece in [1, 2, 7, 16, 64, 333, 4096, 1 << 20] {
            assert_eq!(stream(&bytes, piece), whole, "{name} by {piece}");
        }
        let cut = &bytes[..bytes.len() - 3];
        assert_eq!(stream(cut, 100), read(cut), "{name}, cut");
    }
}

#[test]
fn flipped_bits_never_break_the_reader() {
    for name in captures().iter().filter(|name| capture(name).len() < 1000) {
        let whole = capture(name);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (seen, _) = read(&bytes);
            assert!(seen.len() <= whole.len() / 12, "{name}, bit {bit}");
        }
    }
}

fn check_refused(bytes: &[u8], text: &str) {
    let (seen, end) = read(bytes);
    assert_eq!(seen.len(), 0, "{text}");
    assert_eq!(end.expect_err(text).to_string(), text);
    assert_eq!(stream(bytes, 5).1.expect_err(text).to_string(), text);
}

#[test]
fn what_is_no_capture_is_refused_in_one_line() {
    let beginning = "byte 0: expected a pcap or pcapng capture, found";
    check_refused(b"", &format!("{beginning} nothing: the file is empty"));
    check_refused(
        b"GET / HTTP/1.1",
        &format!("{beginning} a file that begins with the text \"GET \""),
    );
    check_refused(
        b"\x7fELF",
        &format!(
            "{beginning} a file that begins with the bytes 7f 45 4c 46, which no format known \
             here has"
        ),
    );
    check_refused(&[0x1f, 0x8b, 8, 0, 0], &format!("{beginning} gzip data; decompress it first"));
    check_refused(
        &[0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0],
        "byte 0: expected pcap or pcapng, found pcap as modified by Kuznetzov's patch; \
         `editcap OLD NEW` may convert it",
    );
    check_refused(
        &[&0xa1b2_c3d4u32.to_le_bytes()[..], &[3, 0, 0, 0], &[0; 16]].concat(),
        "byte 4: expected pcap version 2.4 or older 2.x, found version 3.0",
    );
    check_refused(
        &[0xd4, 0xc3, 0xb2],
        "byte 0: the capture is cut: expected 4 bytes or more, found 3",
    );
}

/// A section header and an interface of Ethernet, little-endian.
fn pcapng_start() -> Vec<u8> {
    let mut bytes =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]]);
    bytes.extend(block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0]]));
    bytes
}

fn block(kind: u32, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

#[test]
fn hostile_blocks_are_refused_at_once_with_their_place() {
    let after = |tail: &[u8]| [&pcapng_start()[..], tail].concat();
    let word = |value: u32| value.to_le_bytes();
    let block_with = |length: u32| after(&[&word(6)[..], &word(length), &[0; 4]].concat());
    check_refused(
        &block_with(u32::MAX),
        "byte 52: expected at most 16777216 bytes for a block, found a length of 4294967295",
    );
    check_refused(
        &block_with(8),
        "byte 52: expected at least 12 bytes for a block, found a length of 8",
    );
    check_refused(
        &block_with(33),
        "byte 52: expected a block length that is a multiple of 4, found 33",
    );
    let mut trailer = block(9, &[&[0; 8]]);
    trailer[16] = 24;
    check_refused(
        &after(&trailer),
        "byte 64: expected the block length 20 again at the block's end, found 24",
    );
    let packet = |interface: u32, captured: u32| {
        after(&block(6, &[&word(interface), &[0; 8], &word(captured), &word(60), &[0; 40]]))
    };
    check_refused(&packet(1, 40), "byte 48: expected an interface below 1, found interface 1");
    check_refused(
        &packet(0, u32::MAX),
        "byte 48: expected at most 40 bytes for the data of a packet block, \
         found a length of 4294967295",
    );
    check_refused(
        &after(&block(6, &[&[0; 16]])),
        "byte 48: expected at least 32 bytes for a packet block, found a length of 28",
    );
    check_refused(
        &after(&block(6, &[&[0; 20], &[1, 0, 9, 0, 0, 0, 0, 0]])),
        "byte 48: expected an option of at most 4 bytes, found a length of 9",
    );
    check_refused(
        &after(&block(6, &[&[0; 4], &[0xff; 8], &[0; 8]])),
        "byte 48: expected a time from 1970 to 2554, \
         found 18446744073709551615 units of the interface's clock",
    );
    check_refused(
        &block(0x0a0d_0d0a, &[&[1, 2, 3, 4], &[0; 12]]),
        "byte 8: expected the byte order mark 1a2b3c4d of a section, found [01, 02, 03, 04]",
    );
}

#[test]
fn a_hostile_record_of_pcap_is_refused_and_costs_no_memory() {
    let mut head = 0xa1b2_3c4du32.to_be_bytes().to_vec();
    head.extend_from_slice(&[0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0, 1]);
    let with = |captured: u32| [&head[..], &[0; 8], &captured.to_be_bytes(), &[0; 4]].concat();
    check_refused(
        &with(262_145),
        "byte 24: expected at most 262144 bytes for the data of a packet record, \
         found a length of 262145",
    );
    check_refused(
        &with(1000),
        "byte 24: the capture is cut: expected 1016 bytes or more, found 16",
    );
    // A snaplen that is larger than all memory does not raise the limit beyond a block's.
    head[16..20].copy_from_slice(&[0xff; 4]);
    check_refused(
        &[&head[..], &[0; 8], &[1, 0, 0, 0], &[0; 4]].concat(),
        "byte 24: expected at most 16777200 bytes for the data of a packet record, \
         found a length of 16777216",
    );
}

#[test]
fn interfaces_are_limited() {
    let mut bytes = pcapng_start();
    let one = block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0]]);
    for _ in 0..65_536 {
        bytes.extend_from_slice(&one);
    }
    let (_, end) = read(&bytes);
    assert_eq!(end.expect_err("one too many").problem, CaptureProblem::Interfaces);
}

/// tcpdump up to 3.4 wrote the original length first (libpcap, sf-pcap.c).
#[test]
fn old_versions_have_their_lengths_the_other_way_round() {
    for (minor, first, second) in [(2, 60, 4), (3, 60, 4), (3, 4, 60), (4, 4, 60)] {
        let mut bytes = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[2, 0, minor, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0, 1, 0, 0, 0]);
        bytes.extend_from_slice(&[
            1, 0, 0, 0, 2, 0, 0, 0, first, 0, 0, 0, second, 0, 0, 0, 1, 2, 3, 4,
        ]);
        let (seen, end) = read(&bytes);
        assert_eq!((seen[0].captured.len(), seen[0].original_len, end), (4, 60, Ok(())));
        assert_eq!(seen[0].at_ns, Some(1_000_002_000));
    }
}
