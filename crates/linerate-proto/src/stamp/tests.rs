//! Packets made here against octets that the standards' layouts give by hand, and that the
//! program stamp-suite 1.0 accepted and produced.

use std::net::SocketAddr;

use linerate_core::time::MonoTime;

use super::packet::{BYTES_AUTHENTICATED, BYTES_OPEN};
use super::probe::sign_extensions;
use super::tlv::push;
use super::*;

const T1_NS: u64 = 1_700_000_000_123_456_789;
const T2_NS: u64 = T1_NS + 150_000;
const T3_NS: u64 = T2_NS + 20_000;

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let text = |pair: &[u8]| String::from_utf8(pair.to_vec()).expect("digits");
    digits.chunks(2).map(|pair| u8::from_str_radix(&text(pair), 16).expect("hex")).collect()
}

fn key() -> StampKey {
    let hex: String = (0..32u8).map(|octet| format!("{octet:02x}")).collect();
    StampKey::from_hex(&hex).expect("32 octets")
}

fn ntp(error_ns: u64) -> ErrorEstimate {
    ErrorEstimate::from_error_ns(error_ns, true, TimeFormat::Ntp)
}

fn options(bytes: usize, key: Option<StampKey>) -> ProbeOptions {
    ProbeOptions {
        bytes,
        ssid: 0x1234,
        key,
        error: ntp(100_000),
        first_sequence: 7,
        reply_dscp: None,
    }
}

fn probe(bytes: usize, key: Option<StampKey>) -> StampProbe {
    StampProbe::new(options(bytes, key)).expect("room for the base")
}

fn arrived() -> Arrived {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    Arrived {
        source: address("192.0.2.1:50000"),
        local: address("192.0.2.2:862"),
        at_ns: T2_NS,
        ttl: Some(64),
        tos: Some(46 << 2 | 1),
        by_ptp: false,
    }
}

const NOW: MonoTime = MonoTime::from_nanos(1_000_000_000_000);

/// What a reflector makes of a request.
fn reflect(reflector: &mut Reflector, request: &[u8]) -> Result<Vec<u8>, StampRefusal> {
    let mut buffer = request.to_vec();
    buffer.resize(request.len().max(BYTES_AUTHENTICATED), 0);
    let prepared = reflector.prepare(&mut buffer, request.len(), &arrived(), ntp(1_000), NOW)?;
    reflector.finish(&mut buffer, &prepared, T3_NS);
    buffer.truncate(prepared.len);
    Ok(buffer)
}

fn reflector(key: Option<StampKey>, stateless: bool) -> Reflector {
    Reflector::new(ReflectorOptions { key, stateless, ..ReflectorOptions::default() })
}

#[test]
fn times_of_both_formats_are_those_of_the_vector_and_come_back() {
    let near = T1_NS + 3_000_000_000;
    for (format, hex) in
        [(TimeFormat::Ntp, "e8fe6f801f9add37"), (TimeFormat::Ptp, "6553f100075bcd15")]
    {
        assert_eq!(format.encode(T1_NS).as_slice(), octets(hex));
        assert_eq!(format.decode(format.encode(T1_NS), near), Some(T1_NS));
        for ns in [0, 1, 499_999_999, 999_999_999] {
            let time = 1_700_000_000_000_000_000 + ns;
            assert_eq!(format.decode(format.encode(time), near), Some(time), "{format:?} {ns}");
        }
        assert_eq!(format.decode([0; 8], near), None, "no time");
    }
    assert_eq!(
        TimeFormat::Ptp.decode(*octets("6553f1003b9aca00").first_chunk().expect("8"), near),
        None
    );
}

/// NTP's seconds wrap at 2036-02-07T06:28:16Z = 2085978496 (RFC 5905 figure 4: 2^32 − 2208988800).
#[test]
fn the_wrap_of_2036_is_none() {
    let wrap_ns = 2_085_978_496_000_000_000;
    for time in [wrap_ns - 1, wrap_ns + 1, wrap_ns + 5_000_000_000] {
        let octets = TimeFormat::Ntp.encode(time);
        assert_eq!(TimeFormat::Ntp.decode(octets, wrap_ns - 2_000_000_000), Some(time));
        assert_eq!(TimeFormat::Ntp.decode(octets, wrap_ns + 2_000_000_000), Some(time));
    }
    assert_eq!(TimeFormat::Ntp.encode(wrap_ns), [0; 8], "the one time that cannot be said");
}

#[test]
fn error_estimates_are_those_of_the_vector() {
    for (ns, hex) in [
        (1, "8005"),
        (1_000, "8587"),
        (100_000, "8bd2"),
        (1_000_000, "8f84"),
        (500_000_000, "9880"),
        (16_000_000_000, "9d80"),
    ] {
        let estimate = ntp(ns);
        assert_eq!(estimate.octets().as_slice(), octets(hex), "{ns} ns");
        assert_eq!(ErrorEstimate::read(estimate.octets()), estimate);
        let back = estimate.error_ns().expect("a multiplier");
        assert!(back >= ns && back <= ns + ns / 100 + 1, "{ns} ns came back as {back}");
    }
    assert_eq!(ErrorEstimate::read([0x80, 0]).error_ns(), None, "multiplier 0");
    assert_eq!(
        ErrorEstimate::from_error_ns(u64::MAX, false, TimeFormat::Ptp).octets()[0] & 0xC0,
        0x40
    );
}

#[test]
fn open_packets_are_those_of_the_vector() {
    let request = probe(BYTES_OPEN, None).request(0, T1_NS).to_vec();
    let mut expected = octets("00000007 e8fe6f801f9add37 8bd2 1234");
    expected.resize(44, 0);
    assert_eq!(request, expected);
    let request = StampRequest::read(false, &request).expect("44 octets");
    let reply = Reply {
        sequence: 42,
        t3: TimeFormat::Ntp.encode(T3_NS),
        error: ntp(1_000),
        ssid: 0x1234,
        t2: TimeFormat::Ntp.encode(T2_NS),
        request,
        ttl: Some(64),
    };
    let mut packet = [0xFF; 44];
    reply.write(false, &mut packet);
    let expected = "0000002a e8fe6f801fa60158 8587 1234 e8fe6f801fa4b1cc \
                    00000007 e8fe6f801f9add37 8bd2 0000 40 000000";
    assert_eq!(packet.as_slice(), octets(expected));
    assert_eq!(Reply::read(false, &packet), Some(reply));
    let mut packet = [0xFF; 112];
    reply.write(true, &mut packet);
    key().sign_packet(&mut packet);
    assert_eq!(packet[96..], octets("d137ebde3e98a21b8dde74a5fe12263e"));
}

#[test]
fn an_authenticated_request_and_its_tlvs_have_the_tags_of_the_vector() {
    let mut packet = probe(BYTES_AUTHENTICATED, Some(key())).request(0, T1_NS).to_vec();
    assert_eq!(packet[96..], octets("f89cc52b6591cfc2102438559ba7c30f"));
    push(&mut packet, TlvKind::ExtraPadding, &[0; 4]);
    push(&mut packet, TlvKind::TimestampInformation, &[0; 4]);
    push(&mut packet, TlvKind::ClassOfService, &[46 << 2, 0, 0, 0]);
    push(&mut packet, TlvKind::DirectMeasurement, &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    push(&mut packet, TlvKind::FollowUp, &[0; 16]);
    push(&mut packet, TlvKind::Hmac, &[0; 16]);
    sign_extensions(&key(), &mut packet);
    let expected = "80010004 00000000 80030004 00000000 80040004 b8000000 \
                    8005000c 00000008 00000000 00000000 80070010 \
                    00000000 00000000 00000000 00000000 \
                    80080010 67dc233072a0900f11791018a5dc2df3";
    assert_eq!(packet[112..], octets(expected));
}

#[test]
fn a_reply_tells_the_four_times_and_follows_up_the_one_before() {
    for signed in [None, Some(key())] {
        let bytes = StampProbe::usual_bytes(signed.is_some());
        let mut probe = probe(bytes, signed.clone());
        let mut reflector = reflector(signed, false);
        let first = probe.request(0, T1_NS).to_vec();
        assert_eq!(first.len(), bytes);
        let reply = reflect(&mut reflector, &first).expect("answered");
        let (sequence, told) = probe.answered(&reply, 0, T3_NS).expect("ours");
        assert_eq!((sequence, told.reply_sequence, told.ttl), (0, 0, Some(64)));
        assert_eq!((told.t1_ns, told.t2_ns, told.t3_ns), (Some(T1_NS), Some(T2_NS), Some(T3_NS)));
        assert_eq!((told.synchronised, told.error_ns), (true, Some(1_006)), "135 / 2^27 s");
        assert_eq!(told.follow_up, None);
        let session =
            SessionId { source: arrived().source, local: arrived().local.ip(), ssid: 0x1234 };
        reflector.note_departure(&session, 0, T3_NS + 700);
        let second = probe.request(1, T1_NS).to_vec();
        let reply = reflect(&mut reflector, &second).expect("answered");
        let (sequence, told) = probe.answered(&reply, 1, T3_NS).expect("ours");
        assert_eq!((sequence, told.reply_sequence), (1, 1));
        assert_eq!(told.follow_up, Some((0, T3_NS + 700)));
    }
}

#[test]
fn a_sender_is_told_the_class_of_service_with_which_its_packet_arrived() {
    for (signed, arrives) in [(None, 46), (Some(key()), 46), (None, 0), (None, 63)] {
        let asked = ProbeOptions { reply_dscp: Some(10), ..options(200, signed.clone()) };
        let mut probe = StampProbe::new(asked).expect("room");
        let mut buffer = probe.request(0, T1_NS).to_vec();
        let arrived = Arrived { tos: Some(arrives << 2 | 1), ..arrived() };
        let mut reflector = reflector(signed, false);
        let prepared = reflector.prepare(&mut buffer, 200, &arrived, ntp(1_000), NOW);
        reflector.finish(&mut buffer, &prepared.expect("answered"), T3_NS);
        let told = probe.answered(&buffer, 0, T3_NS).map(|(_, told)| told.dscp);
        assert_eq!(told, Some(Some(arrives)));
    }
}

#[test]
fn a_stateful_reflector_counts_for_each_session_and_begins_anew_with_number_0() {
    let numbers = |stateless: bool, sent: &[(u32, u16)]| -> Vec<u32> {
        let mut reflector = reflector(None, stateless);
        let each = sent.iter().map(|(sequence, ssid)| {
            let request =
                StampRequest { sequence: *sequence, t1: [0; 8], error: ntp(1), ssid: *ssid };
            let mut packet = [0; 44];
            request.write(false, &mut packet);
            let reply = reflect(&mut reflector, &packet).expect("answered");
            Reply::read(false, &reply).expect("a reply").sequence
        });
        each.collect()
    };
    let sent = [(5, 1), (6, 1), (5, 2), (9, 1), (0, 1), (1, 1)];
    assert_eq!(numbers(false, &sent), [0, 1, 0, 2, 0, 1]);
    assert_eq!(numbers(true, &sent), [5, 6, 5, 9, 0, 1]);
}

fn for_short() -> Reflector {
    Reflector::new(ReflectorOptions { short: true, ..ReflectorOptions::default() })
}

#[test]
fn a_reply_is_as_long_as_its_request_and_the_base_only_where_that_was_allowed() {
    // Exact; then by RFC 8762 §4.6.
    for (len, exact, short) in [
        (13, None, None),
        (14, None, Some(44)),
        (40, None, Some(44)),
        (41, Some(41), Some(44)),
        (43, Some(43), Some(44)),
        (44, Some(44), Some(44)),
        (1472, Some(1472), Some(1472)),
    ] {
        let mut request = probe(len.max(44), None).request(0, T1_NS).to_vec();
        request.truncate(len);
        for (mut reflector, expected) in [(reflector(None, false), exact), (for_short(), short)] {
            let reply = reflect(&mut reflector, &request).ok();
            assert_eq!(reply.as_ref().map(Vec::len), expected, "{len} octets");
            // RFC 5357 §4.2.1: a reply of TWAMP ends with the time to live of the request.
            let ttl = reply.map(|reply| Reply::read(false, &reply).expect("a reply").ttl);
            assert_eq!(ttl, expected.map(|_| arrived().ttl), "{len} octets");
        }
    }
    let short = probe(BYTES_OPEN, None).request(0, T1_NS).to_vec();
    assert_eq!(reflect(&mut reflector(Some(key()), false), &short), Err(StampRefusal::Short));
}

#[test]
fn short_replies_of_other_reflectors_are_read() {
    let mut probe = probe(BYTES_OPEN, None);
    let request = probe.request(3, T1_NS).to_vec();
    let reply = reflect(&mut reflector(None, false), &request).expect("answered");
    for len in 0..=44 {
        let read = probe.answered(&reply[..len], 3, T3_NS);
        assert_eq!(read.is_some(), len >= 36, "{len} octets");
        assert_eq!(read.and_then(|(_, told)| told.ttl).is_some(), len >= 41, "{len} octets");
    }
    let mut zero = reply.clone();
    zero[14..16].fill(0);
    assert!(probe.answered(&zero, 3, T3_NS).is_some(), "a reflector of RFC 8762");
    zero[15] = 9;
    assert_eq!(probe.answered(&zero, 3, T3_NS), None, "another session's");
}

#[test]
fn numbers_on_the_wire_wrap_and_probes_do_not() {
    let options = ProbeOptions { first_sequence: u32::MAX - 1, ..options(BYTES_OPEN, None) };
    let mut probe = StampProbe::new(options).expect("room");
    for sequence in [0u64, 1, 2, 3] {
        let request = probe.request(sequence, T1_NS).to_vec();
        let reply = reflect(&mut reflector(None, true), &request).expect("answered");
        assert_eq!(probe.answered(&reply, 3, T3_NS).map(|(probe, _)| probe), Some(sequence));
    }
    let early = StampRequest { sequence: u32::MAX - 2, t1: [0; 8], error: ntp(1), ssid: 0x1234 };
    let mut packet = [0; 44];
    early.write(false, &mut packet);
    let reply = reflect(&mut reflector(None, true), &packet).expect("answered");
    assert_eq!(probe.answered(&reply, 3, T3_NS), None, "from before this run");
}

#[test]
fn wrong_tags_are_dropped_and_counted() {
    let mut reflector = reflector(Some(key()), false);
    let mut probe = probe(StampProbe::usual_bytes(true), Some(key()));
    let good = probe.request(0, T1_NS).to_vec();
    for at in [0, 16, 95, 96, 111] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(reflect(&mut reflector, &bad), Err(StampRefusal::Tag), "octet {at}");
    }
    assert_eq!(reflector.refusals(), Refusals { tag: 5, ..Refusals::default() });
    let mut reply = reflect(&mut reflector, &good).expect("answered");
    reply[60] ^= 1;
    assert_eq!(probe.answered(&reply, 0, T3_NS), None);
    assert!(StampKey::from_hex("00112233").is_none(), "4 octets are no secret");
    assert!(StampKey::from_hex(&"0g".repeat(16)).is_none());
}

/// Flags and values of the reply's TLVs.
fn answered_tlvs(
    key: Option<StampKey>,
    change: impl FnOnce(&mut Vec<u8>),
) -> Vec<(u8, u8, Vec<u8>)> {
    let authenticated = key.is_some();
    let base = if authenticated { BYTES_AUTHENTICATED } else { BYTES_OPEN };
    let mut packet = probe(base, key.clone()).request(0, T1_NS).to_vec();
    change(&mut packet);
    let reply = reflect(&mut reflector(key, false), &packet).expect("answered");
    assert_eq!(reply.len(), packet.len());
    let tlvs = Tlvs::new(&reply[base..]);
    tlvs.map(|tlv| (tlv.flags, tlv.kind.number(), tlv.value.to_vec())).collect()
}

#[test]
fn known_tlvs_are_answered_and_unknown_ones_flagged() {
    let tlvs = answered_tlvs(None, |packet| {
        push(packet, TlvKind::Location, &[0; 4]);
        push(packet, TlvKind::TimestampInformation, &[0; 4]);
        push(packet, TlvKind::ClassOfService, &[10 << 2, 0, 0, 0]);
        push(packet, TlvKind::DirectMeasurement, &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        push(packet, TlvKind::AccessReport, &[0; 4]);
        push(packet, TlvKind::Other(200), &[1, 2, 3]);
        push(packet, TlvKind::ExtraPadding, &[0; 9]);
    });
    let expected = [
        (0, 2, octets("035e c350")),
        (0, 3, octets("01020102")),
        // DSCP1 10 is 001010, DSCP2 46 is 101110, ECN 01, RP 00.
        (0, 4, octets("2a e4 0000")),
        (0, 5, octets("00000008 00000001 00000001")),
        (flags::UNKNOWN, 6, vec![0; 4]),
        (flags::UNKNOWN, 200, vec![1, 2, 3]),
        (0, 1, vec![0; 9]),
    ];
    assert_eq!(tlvs, expected);
}

/// RFC 8972 §4.3: 2 is PTP, 5 free-running.
#[test]
fn a_clock_that_ptp_keeps_is_said_to_be_kept_by_it() {
    let mut packet = probe(BYTES_OPEN, None).request(0, T1_NS).to_vec();
    packet.truncate(BYTES_OPEN);
    push(&mut packet, TlvKind::TimestampInformation, &[0; 4]);
    for (synchronised, source) in [(true, 2), (false, 5)] {
        let mut buffer = packet.clone();
        let error = ErrorEstimate::from_error_ns(1_000, synchronised, TimeFormat::Ntp);
        let arrived = Arrived { by_ptp: true, ..arrived() };
        let prepared =
            reflector(None, false).prepare(&mut buffer, packet.len(), &arrived, error, NOW);
        assert_eq!(prepared.map(|prepared| prepared.len), Ok(packet.len()));
        assert_eq!(buffer[48..52], [source, 2, source, 2]);
    }
}

#[test]
fn malformed_and_untrustworthy_tlvs_are_flagged() {
    let tlvs = answered_tlvs(None, |packet| push(packet, TlvKind::FollowUp, &[0; 15]));
    assert_eq!(tlvs[0].0, flags::MALFORMED, "a length that its type does not have");
    let mut packet = probe(BYTES_OPEN, None).request(0, T1_NS).to_vec();
    packet.extend([flags::UNKNOWN, 1, 0, 200, 0]);
    let reply = reflect(&mut reflector(None, false), &packet).expect("answered");
    assert_eq!(reply[44], flags::UNKNOWN | flags::MALFORMED, "a length beyond the packet");
    let tlvs = answered_tlvs(Some(key()), |packet| {
        push(packet, TlvKind::FollowUp, &[0; 16]);
        push(packet, TlvKind::Hmac, &[9; 16]);
    });
    assert!(tlvs.iter().all(|(flags, ..)| flags & flags::INTEGRITY != 0), "{tlvs:?}");
    let zeros = answered_tlvs(None, |packet| packet.resize(100, 0));
    assert!(zeros.iter().all(|(flags, ..)| *flags == 0), "a sender's filler comes back as it was");
}

#[test]
fn a_source_has_its_rate() {
    let mut reflector = for_short();
    let short = &probe(BYTES_OPEN, None).request(0, T1_NS)[..14].to_vec();
    let answers = (0..1_500).filter(|_| reflect(&mut reflector, short).is_ok()).count();
    assert_eq!((answers, reflector.refusals().rate), (1_000, 500));
}

/// What a reflector answers to a packet of `request` from a source.
fn answers(reflector: &mut Reflector, request: &[u8], from: (SocketAddr, u16)) -> Option<Vec<u8>> {
    let (source, port) = from;
    let arrived = Arrived { source, local: ([192, 0, 2, 2], port).into(), ..arrived() };
    let mut buffer = request.to_vec();
    buffer.resize(request.len().max(BYTES_AUTHENTICATED), 0);
    let prepared = reflector.prepare(&mut buffer, request.len(), &arrived, ntp(1_000), NOW).ok()?;
    reflector.finish(&mut buffer, &prepared, T3_NS);
    buffer.truncate(prepared.len);
    Some(buffer)
}

#[test]
fn a_million_forged_sources_take_less_than_a_megabyte_and_keep_nobody_without_an_answer() {
    let mut reflector = reflector(None, false);
    let whole = probe(BYTES_OPEN, None).request(1, T1_NS).to_vec();
    let sender: SocketAddr = ([198, 51, 100, 7], 5000).into();
    let mut numbers = Vec::new();
    for number in 0..1_000_000_u32 {
        // Most send one packet, as many as have room four: those go on.
        let packets = if number < 10_000 { 4 } else { 1 };
        let source = (std::net::Ipv4Addr::from(0x0A00_0000 + number), 5000).into();
        for _ in 0..packets {
            assert!(answers(&mut reflector, &whole, (source, 862)).is_some(), "{number}");
        }
        // A sender with one packet for each 500 of others keeps its counter.
        if number % 500 == 0 {
            let reply = answers(&mut reflector, &whole, (sender, 862)).expect("answered");
            numbers.push(u32::from_be_bytes(*reply.first_chunk().expect("a number")));
        }
    }
    assert!(numbers.iter().copied().eq(0..2_000), "one after the other: {numbers:?}");
    assert!(reflector.sessions() <= SESSIONS_MAX + 800, "{}", reflector.sessions());
    let bytes = reflector.memory_bytes();
    assert!(bytes <= 1_000_000, "{bytes}");
}

#[test]
fn reflectors_do_not_answer_each_other() {
    let ports = [(862, 862), (862, 8620), (8620, 862), (8620, 8620), (8620, 8621), (50_000, 862)];
    for (key, bytes) in [(None, BYTES_OPEN), (None, 1344), (Some(key()), BYTES_AUTHENTICATED)] {
        for (one, other) in ports {
            let mut ends =
                [(reflector(key.clone(), false), one), (reflector(key.clone(), false), other)];
            // It says that it comes from the first one, and arrives at the second.
            let mut packet = probe(bytes, key.clone()).request(0, T1_NS).to_vec();
            let mut answered = 0;
            for turn in 0..100 {
                let [near, far] = &mut ends;
                let (from, at) = if turn % 2 == 0 { (near, far) } else { (far, near) };
                let source = ([192, 0, 2, 1], from.1).into();
                let Some(reply) = answers(&mut at.0, &packet, (source, at.1)) else { break };
                (packet, answered) = (reply, answered + 1);
            }
            let forged_from_a_reflector = one == 862 || one == other;
            assert_eq!(answered, u32::from(!forged_from_a_reflector), "{one} {other} {bytes}");
        }
    }
}

#[test]
fn ports_of_services_are_answered_where_the_operator_says_so() {
    let request = probe(BYTES_OPEN, None).request(0, T1_NS).to_vec();
    for (port, usual, allowed) in
        [(7, false, true), (862, false, false), (1023, false, true), (1024, true, true)]
    {
        for (low_ports, expected) in [(false, usual), (true, allowed)] {
            let options = ReflectorOptions { low_ports, ..ReflectorOptions::default() };
            let source = ([192, 0, 2, 1], port).into();
            let mut reflector = Reflector::new(options);
            let answer = answers(&mut reflector, &request, (source, 8620));
            assert_eq!(answer.is_some(), expected, "{port} {low_ports}");
            assert_eq!(reflector.refusals().port, u64::from(!expected));
        }
    }
}
