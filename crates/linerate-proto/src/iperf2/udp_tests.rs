//! UDP against recorded bytes: datagrams of a 2.1.8 client, reports of a 2.1.8 server for known
//! numbers, and a client in the manner of 2.0.5.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char]| {
        let text: String = pair.iter().collect();
        u8::from_str_radix(&text, 16).expect("two digits")
    };
    digits.chunks(2).map(byte).collect()
}

/// The first datagram of `iperf -c -u -n 30000 -b 10M` of 2.1.8, and its end (recorded).
const FIRST: &str = "00000001 6b02739b 00044ff2 00000000 48010098 00000001 0000d101 00000000 \
    00000000 00007530 0000000000000000 00000000 00020001 00080003 00000000 00a00000";
const END: &str = "ffffffea 6b02739b 0004a87c ffffffff 48010098 00000001 0000d101 00000000";

#[test]
fn recorded_datagrams_are_read() {
    let first = bytes(FIRST);
    assert_eq!(Iperf2DatagramLayout::from_first_datagram(&first), Iperf2DatagramLayout::Wide);
    let stamp = Stamp::parse(&first, Iperf2DatagramLayout::Wide).expect("long enough");
    // 0x6b02739b seconds and 0x44ff2 microseconds.
    assert_eq!((stamp.number, stamp.sent_us), (1, 1_795_322_779_282_610));
    let mut receiver = UdpReceiver::default();
    assert_eq!(receiver.count_datagram(&first, 1470, 0), UdpDatagramKind::Data);
    let header = receiver.header().expect("one of 2.1.8");
    assert_eq!((header.mode, header.amount), (Mode::Forward, Iperf2Amount::Bytes(30_000)));
    let end = Stamp::parse(&bytes(END), Iperf2DatagramLayout::Wide).expect("long enough");
    // 21 datagrams of 1470 bytes make 30,000: the end is the 22nd.
    assert_eq!(end.number, -22);
    assert_eq!(receiver.count_datagram(&bytes(END), 1470, 9), UdpDatagramKind::End);
}

/// A datagram of 100 bytes, in a layout, sent when it arrives.
fn datagram(number: i64, layout: Iperf2DatagramLayout, sent_us: u64) -> Vec<u8> {
    let header = ClientHeader::new(Mode::Forward, Iperf2Amount::Centiseconds(100));
    let mut wide = UdpSender::new(header).buffer(100);
    Stamp { number, sent_us }.write(&mut wide);
    match layout {
        Iperf2DatagramLayout::Wide | Iperf2DatagramLayout::Early => wide,
        Iperf2DatagramLayout::Narrow => {
            let mut narrow = wide;
            // 2.0.5: the number in 32 bits, no header's flags.
            narrow.drain(12..16);
            narrow[12..36].fill(0);
            narrow
        }
    }
}

fn check(numbers: &[i64], layout: Iperf2DatagramLayout, recorded: [u64; 4]) -> UdpReceiver {
    let mut receiver = UdpReceiver::default();
    for (&number, at) in numbers.iter().zip(0_u64..) {
        let us = 1_000_000 + at * 10_000;
        let taken = receiver.count_datagram(&datagram(number, layout, us), 100, us);
        assert_eq!(taken, if number < 0 { UdpDatagramKind::End } else { UdpDatagramKind::Data });
    }
    let counts = receiver.counts();
    let found = [counts.bytes, counts.lost, counts.out_of_order, counts.datagrams];
    assert_eq!(found, recorded, "{numbers:?}");
    receiver
}

#[test]
fn counts_are_those_that_a_server_of_2_1_8_reported_for_the_same_numbers() {
    let whole: Vec<i64> = (1..=18).chain([-19]).collect();
    check(&whole, Iperf2DatagramLayout::Wide, [1900, 0, 0, 19]);
    check(&[1, 2, 3, 5, 6, 4, 9, 10, -11], Iperf2DatagramLayout::Wide, [900, 2, 1, 11]);
    check(&[1, 2, 2, 3, -4], Iperf2DatagramLayout::Wide, [500, 0, 1, 4]);
}

#[test]
fn a_client_in_the_manner_of_2_0_5_is_counted_and_answered_in_its_own_layout() {
    // It counts from 0, and the end is the next number, negated.
    let whole: Vec<i64> = (0..=17).chain([-18]).collect();
    let receiver = check(&whole, Iperf2DatagramLayout::Narrow, [1900, 0, 0, 18]);
    let report = receiver.report();
    assert_eq!(report.len(), 12 + 40);
    assert_eq!(report[12..16], [0x80, 0, 0, 0]);
    assert_eq!(UdpReport::parse(&report), Some(receiver.counts()));
    // One lost in the middle, none at the start.
    check(&[0, 1, 3, -4], Iperf2DatagramLayout::Narrow, [400, 1, 0, 4]);
}

#[test]
fn an_end_that_comes_again_is_answered_again_and_changes_nothing() {
    let mut receiver = check(&[1, 2, -3], Iperf2DatagramLayout::Wide, [300, 0, 0, 3]);
    let before = receiver.report();
    assert_eq!(
        receiver.count_datagram(&datagram(-4, Iperf2DatagramLayout::Wide, 0), 100, 99),
        UdpDatagramKind::End
    );
    assert_eq!(receiver.report(), before);
}

/// The report of 2.1.8 for 1 2 3 5 6 4 9 10 and the end (recorded).
const REPORT: &str = "00000000 00000000 00000000 00000000 c8000000 00000000 00000384 00000000 \
    00013e10 00000002 00000001 0000000b 00000000 00000005 00000000 0000003a \
    00000000 00000053 00000000 00000292 00000000 00000049 00000191 00087a23 \
    00000000 ffffffef 00000009 00000087 00000001 00000000 00000000 00000000";

#[test]
fn a_recorded_report_is_read_and_the_same_figures_are_written_the_same() {
    let wire = bytes(REPORT);
    assert_eq!(wire.len(), REPORT_BYTES);
    let report = UdpReport::parse(&wire).expect("a report");
    let expected = UdpReport {
        bytes: 900,
        span_us: 81_424,
        lost: 2,
        out_of_order: 1,
        datagrams: 11,
        jitter_us: 5,
        // 15 words behind the first ten: 0.000058, 0.000083, 0.000658 and 0.000073 s, 401.555555
        // squares, 9 of them. Nine of 73.1 us are 658 us.
        transit: Some(Transit {
            n: 9,
            min_us: 58,
            max_us: 83,
            mean_us: 73.0,
            squares_us2: 401.555_555,
        }),
    };
    assert_eq!(report, expected);
    let made = report.to_bytes(Iperf2DatagramLayout::Wide);
    assert_eq!(made.len(), REPORT_BYTES);
    // The sum of the delays (9 times the mean) and what is behind the squares is not read.
    assert_eq!(made[..16 + 40 + 16], wire[..16 + 40 + 16]);
    assert_eq!(made[16 + 64..16 + 80], wire[16 + 64..16 + 80]);
    assert_eq!(made[16 + 88..16 + 92], wire[16 + 88..16 + 92]);
    for cut in 0..16 + 40 {
        assert_eq!(UdpReport::parse(&wire[..cut]), None, "cut at {cut}");
    }
}

#[test]
fn the_clients_own_end_is_no_report_where_a_server_sends_it_back() {
    // By 2.1.8 at load 25, four and eight streams: its port 5001 and its 700 bytes were read as
    // a span of 5001.0007 s.
    let words = [0xFFFF_FF43, 1_700_000_000, 5, u32::MAX, 0, 4, 5001, 700, 0, 0, 0, 0, 0, 0];
    let end: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    assert!(
        Stamp::parse(&end, Iperf2DatagramLayout::Wide).is_some_and(|stamp| stamp.number == -189)
    );
    assert_eq!(UdpReport::parse(&end), None);
}

#[test]
fn counts_beyond_32_bits_survive_the_wide_report() {
    let report = UdpReport {
        bytes: 1 << 40,
        span_us: 3_600_000_000,
        lost: 5 << 32 | 7,
        out_of_order: 1 << 33,
        datagrams: 9 << 32,
        jitter_us: 1_500_000,
        transit: None,
    };
    assert_eq!(UdpReport::parse(&report.to_bytes(Iperf2DatagramLayout::Wide)), Some(report));
}

#[test]
fn a_client_numbers_from_1_and_each_end_takes_the_next_number() {
    let header = ClientHeader::new(Mode::Forward, Iperf2Amount::Bytes(30_000));
    let mut sender =
        UdpSender::new(ClientHeader { listen_port: 0xd101, rate_bps: 10 << 20, ..header });
    let mut buffer = sender.buffer(1470);
    sender.stamp_datagram(&mut buffer, 1_795_322_779_282_610);
    let recorded = bytes(FIRST);
    assert_eq!(buffer[..recorded.len()], recorded);
    for number in [-2, -3] {
        sender.stamp_end(&mut buffer, 0);
        assert_eq!(
            Stamp::parse(&buffer, Iperf2DatagramLayout::Wide).map(|stamp| stamp.number),
            Some(number)
        );
    }
}

/// Recorded from 2.1.8 (testdata/iperf2).
const TRIP_TIMES: &[u8] = include_bytes!("../../../../testdata/iperf2/udp-trip-times.bin");
const TRIP_REPORT: &[u8] = include_bytes!("../../../../testdata/iperf2/udp-report-trip-times.bin");
const REVERSE: &[u8] = include_bytes!("../../../../testdata/iperf2/udp-reverse.bin");
const FULL_DUPLEX: &[u8] = include_bytes!("../../../../testdata/iperf2/udp-full-duplex.bin");
const DUAL: &[u8] = include_bytes!("../../../../testdata/iperf2/udp-dual.bin");
/// Made after the layout of 2.0.5.
const OLD_DUAL: &[u8] = include_bytes!("../../../../testdata/iperf2/old-dual.bin");
const OLD_REPORT: &[u8] = include_bytes!("../../../../testdata/iperf2/old-report.bin");

/// The header that a receiver finds in a datagram.
fn header_in(datagram: &[u8]) -> ClientHeader {
    let mut receiver = UdpReceiver::default();
    receiver.count_datagram(datagram, 1470, 0);
    receiver.header().expect("it has one")
}

#[test]
fn recorded_tests_in_which_the_server_sends_are_read_and_written_to_the_byte() {
    let half = Iperf2Amount::Centiseconds(30);
    let five = 5 << 30;
    let cases = [
        // -u -R -t 1; 1 Mbit/s of 2^20 by default.
        (REVERSE, Mode::Reverse, Iperf2Amount::Centiseconds(100), 1 << 20, 0, 0),
        // -u -t 0.3 -b 5G -l 1000, --full-duplex with -S 0x10, and -d.
        (FULL_DUPLEX, Mode::FullDuplex, half, five, 1000, 0x10),
        (DUAL, Mode::Dual, half, five, 1000, 0),
    ];
    for (recorded, mode, amount, rate_bps, buffer_bytes, service_type) in cases {
        let read = header_in(recorded);
        assert_eq!((read.mode, read.amount), (mode, amount), "{mode:?}");
        assert_eq!((read.rate_bps, read.buffer_bytes), (rate_bps, buffer_bytes), "{mode:?}");
        assert_eq!((read.service_type, read.trip_times), (service_type, None), "{mode:?}");
        assert_eq!(UdpSender::new(read).first_bytes()[16..], recorded[16..76], "{mode:?}");
    }
}

#[test]
fn a_start_time_stands_behind_the_room_for_isochronous_settings() {
    // 0x6b02a389 seconds and 0xadef0 microseconds, as in the stamp of the first datagram.
    let start_us = 0x6b02_a389 * 1_000_000 + 0xa_def0;
    let read = header_in(TRIP_TIMES);
    assert_eq!((read.mode, read.trip_times), (Mode::Forward, Some(start_us)));
    assert_eq!(UdpSender::new(read).first_bytes()[16..], TRIP_TIMES[16..120]);
    assert_eq!(TIMED_BYTES_MIN, 120);
}

#[test]
fn delays_are_counted_with_trip_times_whose_clocks_agree_and_told_in_the_report() {
    let start_us = 0x6b02_a389 * 1_000_000 + 0xa_def0;
    for (after_us, counted) in [(30, true), (600_000_001, false)] {
        let mut receiver = UdpReceiver::default();
        let mut datagram = TRIP_TIMES.to_vec();
        for (number, delay_us) in [(1, 30), (2, 50)] {
            let sent_us = start_us + number * 1000;
            Stamp { number: number as i64, sent_us }.write(&mut datagram);
            let delay_us = if counted { delay_us } else { after_us };
            receiver.count_datagram(&datagram, 1470, sent_us + delay_us);
        }
        let transit = receiver.counts().transit;
        assert_eq!(transit.is_some(), counted, "{after_us}");
        let Some(transit) = transit else { continue };
        assert_eq!((transit.n, transit.min_us, transit.max_us), (2, 30, 50));
        let told = UdpReport::parse(&receiver.report()).expect("a report");
        assert_eq!(told.transit, Some(transit), "mean 40, squares 10^2 + 10^2");
        assert!((transit.squares_us2 - 200.0).abs() < 1e-9);
    }
}

#[test]
fn a_recorded_report_with_trip_times_tells_the_delays_that_its_client_printed() {
    let report = UdpReport::parse(TRIP_REPORT).expect("a report");
    let transit = report.transit.expect("trip times");
    // 0.000004, 0.000077 and 0.000024 s; 4593.466666 squares of 30.
    assert_eq!((transit.n, transit.min_us, transit.max_us), (30, 4, 77));
    assert!((transit.mean_us - 24.0).abs() < 1e-9);
    assert!((transit.squares_us2 - 4_593.466_666).abs() < 1e-6);
    assert_eq!((report.datagrams, report.bytes, report.jitter_us), (30, 30 * 1470, 4));
}

#[test]
fn a_server_that_sends_has_digits_for_a_header_and_numbers_of_64_bits() {
    // As 2.1.8 sends it for -R: numbers, then 6789...
    let mut datagram = pattern(100);
    Stamp { number: 0x1_0000_0002, sent_us: 5 }.write(&mut datagram);
    assert_eq!(Iperf2DatagramLayout::from_first_datagram(&datagram), Iperf2DatagramLayout::Wide);
    let mut receiver = UdpReceiver::default();
    assert_eq!(receiver.count_datagram(&datagram, 100, 0), UdpDatagramKind::Data);
    assert_eq!(receiver.counts().datagrams, 0x1_0000_0002);
}

#[test]
fn a_client_of_2_0_5_asks_for_data_back_at_the_rate_in_the_place_of_the_window() {
    assert_eq!(Iperf2DatagramLayout::from_first_datagram(OLD_DUAL), Iperf2DatagramLayout::Narrow);
    let read = header_in(OLD_DUAL);
    assert_eq!((read.mode, read.listen_port, read.version), (Mode::Dual, 5001, None));
    assert_eq!((read.window, read.rate_bps), (1 << 20, 0));
    assert_eq!(read.amount, Iperf2Amount::Centiseconds(1000));
}

#[test]
fn a_report_of_2_0_5_is_read() {
    let report = UdpReport::parse(OLD_REPORT).expect("a report");
    assert_eq!((report.bytes, report.lost, report.datagrams), (19_200, 3, 50));
    assert_eq!((report.span_us, report.jitter_us, report.transit), (490_000, 12, None));
}

#[test]
fn steady_transit_has_no_jitter_and_a_change_counts_a_sixteenth() {
    let mut receiver = UdpReceiver::default();
    // Sent every 1000 us, the third 160 us late: D = 160 twice, J = 10, then 10 + 150 / 16.
    for (number, now_us) in [(1, 5000), (2, 6000), (3, 7160), (4, 8000)] {
        let sent = 1000 * u64::from(number as u32);
        receiver.count_datagram(&datagram(number, Iperf2DatagramLayout::Wide, sent), 100, now_us);
    }
    assert_eq!(receiver.counts().jitter_us, 19);
}

#[test]
fn a_datagram_without_a_time_counts_for_neither_jitter_nor_delay() {
    // A client that sends both ways begins with a header without a time: 1,795,376,317 s of delay.
    let mut receiver = UdpReceiver::default();
    let wall = 1_795_376_317_000_000;
    receiver.count_datagram(&datagram(1, Iperf2DatagramLayout::Wide, 0), 100, wall);
    for number in 2..10 {
        let at = wall + 1000 * u64::from(number as u32);
        receiver.count_datagram(&datagram(number, Iperf2DatagramLayout::Wide, at), 100, at + 30);
    }
    receiver.count_datagram(&datagram(10, Iperf2DatagramLayout::Wide, 0), 100, wall + 11_000);
    let counts = receiver.counts();
    assert_eq!((counts.jitter_us, counts.datagrams, counts.lost), (0, 10, 0));
}

#[test]
fn hostile_datagrams_neither_panic_nor_count_beyond_their_length() {
    let first = bytes(FIRST);
    for cut in 0..first.len() {
        let mut receiver = UdpReceiver::default();
        receiver.count_datagram(&first[..cut], cut, 0);
        receiver.count_datagram(&bytes(END), 1470, 1);
        let _ = receiver.report();
    }
    for number in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX] {
        let mut receiver = UdpReceiver::default();
        for at in [0, u64::MAX, 5] {
            receiver.count_datagram(&datagram(number, Iperf2DatagramLayout::Wide, at), 100, at);
            receiver.count_datagram(&datagram(3, Iperf2DatagramLayout::Wide, at), 100, at);
        }
        assert!(receiver.counts().bytes <= 600);
    }
    for bit in 0..first.len() * 8 {
        let mut damaged = first.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        UdpReceiver::default().count_datagram(&damaged, damaged.len(), 0);
    }
}

const EARLY_FIRST: &[u8] = include_bytes!("../../../../testdata/iperf2/early-first.bin");
const EARLY_END: &[u8] = include_bytes!("../../../../testdata/iperf2/early-end.bin");
const EARLY_REPORT: &[u8] = include_bytes!("../../../../testdata/iperf2/early-report.bin");

/// `iperf -u -n 30000` of 2.0.13a: 21 datagrams numbered from 0, the end is 21 with the highest bit
/// set. Its server reported 30870 bytes in 38.582 ms, 0 of 21 lost, 280 us of jitter.
#[test]
fn a_client_of_2_0_13a_gets_the_report_that_its_own_server_would_send() {
    assert_eq!(Iperf2DatagramLayout::from_first_datagram(EARLY_FIRST), Iperf2DatagramLayout::Early);
    let number = |bytes| {
        Stamp::parse(bytes, Iperf2DatagramLayout::from_first_datagram(EARLY_FIRST))
            .map(|stamp| stamp.number)
    };
    assert_eq!((number(EARLY_FIRST), number(EARLY_END)), (Some(0), Some(-21)));
    let mut receiver = UdpReceiver::default();
    for sequence in 0..21_u32 {
        let mut datagram = EARLY_FIRST.to_vec();
        datagram[..4].copy_from_slice(&sequence.to_be_bytes());
        let taken = receiver.count_datagram(&datagram, 1470, u64::from(sequence) * 1000);
        assert_eq!(taken, UdpDatagramKind::Data);
    }
    assert_eq!(receiver.count_datagram(EARLY_END, 1470, 21_000), UdpDatagramKind::End);
    assert_eq!(receiver.header(), None, "a header that asks for nothing is not written");
    let counts = receiver.counts();
    assert_eq!((counts.lost, counts.out_of_order, counts.datagrams), (0, 0, 21));
    // 16 bytes, 44 of counts with their high words, 60 of transit times: sizeof in that version.
    let sent = receiver.report();
    assert_eq!((sent.len(), UdpReport::parse(&sent)), (120, Some(counts)));
    let theirs = UdpReport::parse(EARLY_REPORT).expect("a report");
    let figures = (theirs.bytes, theirs.span_us, theirs.lost, theirs.datagrams, theirs.jitter_us);
    assert_eq!(figures, (30_870, 38_582, 0, 21, 280));
    assert_eq!(theirs.to_bytes(Iperf2DatagramLayout::Early)[16..60], EARLY_REPORT[16..60]);
}
