//! Datagrams taken apart and put together; the tracker against a plain list of everything that
//! came, in orders made by chance, and over an emulated path in virtual time.

use std::collections::HashSet;

use linerate_core::path::{Ecn, Outlet, Packet};
use linerate_core::record::{DatagramTally, Direction, Finish, PathPlan, TcpDirections, UdpTest};
use linerate_core::stats::{PacketArrival, StreamArrivals};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use proptest::prelude::*;

use super::*;

const TOKEN: Token = Token([0xab; 16]);

fn request() -> UdpTest {
    UdpTest {
        directions: TcpDirections::Both,
        streams: 2,
        finish: Finish::Bytes(10_000),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: 1472,
        pace: Some(BitRate::from_bits_per_sec(8_000_000)),
        window_bytes: None,
        dscp: None,
        joined: true,
        search: None,
        taken_singly: false,
    }
}

#[test]
fn a_header_has_the_bytes_of_the_specification() {
    let header = NativeDatagramHeader { number: 0x0102, tag: 0xbeef, stamp_ns: 0x0a0b_0c0d };
    let bytes = [0, 0, 0, 0, 0, 0, 1, 2, 0xbe, 0xef, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d];
    assert_eq!(header.to_bytes(), bytes);
    assert_eq!(NativeDatagramHeader::parse(&bytes), Some(header));
    (0..16).for_each(|cut| assert_eq!(NativeDatagramHeader::parse(&bytes[..cut]), None));
    let late = NativeDatagramHeader { stamp_ns: u64::MAX, ..header };
    let held = NativeDatagramHeader { stamp_ns: STAMP_NS_MAX, ..header };
    assert_eq!(NativeDatagramHeader::parse(&late.to_bytes()), Some(held), "held at 78 hours");
}

#[test]
fn an_opening_has_the_bytes_of_the_specification_and_one_length_for_all_steps() {
    let step = OpeningStep::Challenge(0x0102_0304_0506_0708);
    let opening = OpeningDatagram { step, token: TOKEN, stream: 258, direction: Direction::Down };
    let bytes = opening.to_bytes();
    assert_eq!(&bytes[..16], b"LINERUDP\x02\x02\x01\x02\x00\x00\x00\x00");
    assert_eq!(bytes[16..32], [0xab; 16]);
    assert_eq!(bytes[32..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    for step in [OpeningStep::Hello, step, OpeningStep::Answer(7)] {
        let opening = OpeningDatagram { step, ..opening };
        assert_eq!(OpeningDatagram::parse(&opening.to_bytes()), Some(opening));
    }
}

#[test]
fn a_cut_or_damaged_opening_is_none_or_another_but_never_the_same() {
    let opening = OpeningDatagram {
        step: OpeningStep::Hello,
        token: TOKEN,
        stream: 1,
        direction: Direction::Up,
    };
    let bytes = opening.to_bytes();
    (0..OPENING_BYTES).for_each(|cut| assert_eq!(OpeningDatagram::parse(&bytes[..cut]), None));
    assert_eq!(OpeningDatagram::parse(&[bytes.as_slice(), &[0]].concat()), None);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(OpeningDatagram::parse(&damaged), Some(opening), "bit {bit}");
    }
}

#[test]
fn streams_of_a_test_and_of_the_next_have_other_tags() {
    let mut tags = HashSet::new();
    for token in [TOKEN, Token([0xac; 16])] {
        for (direction, stream) in [(Direction::Up, 0), (Direction::Up, 1), (Direction::Down, 0)] {
            tags.insert(stream_tag(token, direction, stream));
        }
    }
    assert_eq!(tags.len(), 6);
}

#[test]
fn requests_out_of_bounds_are_refused_by_field() {
    assert_eq!(request().check(), Ok(()));
    type Spoil = fn(&mut UdpTest);
    let cases: [(Spoil, &str); 8] = [
        (|request| request.streams = 129, "streams of 129"),
        (|request| request.size_bytes = 15, "datagram size of 15"),
        (|request| request.size_bytes = 65_508, "datagram size of 65508"),
        (|request| request.interval_ns = 1, "interval of 1ns"),
        (|request| request.pace = Some(BitRate::from_bits_per_sec(0)), "pace of 0"),
        (|request| request.dscp = Some(64), "code point of 64"),
        (|request| request.finish = Finish::Buffers(0), "datagrams of 0"),
        (|request| request.omit_ns = u64::MAX, "omitted span of"),
    ];
    for (spoil, expected) in cases {
        let mut request = request();
        spoil(&mut request);
        let error = request.check().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn bytes_are_rounded_up_to_whole_datagrams_and_take_the_time_of_their_pace() {
    // 10,000 / 1472 = 6.8; 7 x 1472 x 8 bits at 2 x 8 Mbit/s are 5.152 ms.
    assert_eq!(request().datagram_budget(), Some(7));
    let span = request().planned_span().expect("a pace");
    assert_eq!(span.as_nanos(), 5_152_000);
    assert_eq!(UdpTest { pace: None, ..request() }.planned_span(), None);
}

#[test]
fn loss_duplicates_and_reordering_are_told_apart() {
    let mut tracker = UdpTracker::new(0);
    // 3 and 7 are lost, 5 comes late, 2 and 5 come twice. 9 is sent and lost at the end.
    let orders: Vec<UdpArrivalOrder> =
        [0, 1, 2, 2, 4, 6, 5, 5, 8].map(|number| tracker.count_datagram(number, 0)).to_vec();
    use UdpArrivalOrder::{Ahead, Behind, Duplicate};
    assert_eq!(orders, [Ahead, Ahead, Ahead, Duplicate, Ahead, Ahead, Behind, Duplicate, Ahead]);
    let (all, measured) = tracker.tallies(Some((10, 10)), None, 1);
    let expected = DatagramTally {
        sent: Some(10),
        received: 7,
        lost: 3,
        duplicates: 2,
        reordered: 1,
        ..DatagramTally::default()
    };
    assert_eq!((all, measured), (expected, expected));
    // Without the sender's word the last one is not missed.
    assert_eq!(tracker.tallies(None, None, 1).0.lost, 2);
}

#[test]
fn datagrams_belong_to_the_span_in_which_they_were_sent_however_late_they_come() {
    let mut tracker = UdpTracker::new(100);
    for (number, stamp) in [(0, 10), (2, 120), (1, 90), (4, 140)] {
        tracker.count_datagram(number, stamp);
    }
    // 0 and 1 were sent in the omitted span; of 2, 3 and 4 one is lost.
    let (all, measured) = tracker.tallies(Some((5, 3)), None, 1);
    assert_eq!((all.received, all.lost), (4, 1));
    assert_eq!((measured.received, measured.lost, measured.reordered), (2, 1, 0));
}

#[test]
fn how_many_were_sent_after_the_omitted_span_is_told_by_the_stamps_of_what_came() {
    let mut tracker = UdpTracker::new(100);
    assert_eq!(tracker.sent_after_omitted(7), None);
    for (number, stamp) in [(0, 10), (1, 90), (4, 140), (3, 120)] {
        tracker.count_datagram(number, stamp);
    }
    // 3 is the first that is known to be of the span; 3 to 6.
    assert_eq!(tracker.sent_after_omitted(7), Some(4));
    let whole = UdpTracker::new(0);
    assert_eq!(whole.sent_after_omitted(7), Some(7), "also where the first are lost");
}

#[test]
fn a_gap_where_the_kernel_dropped_is_this_hosts_and_no_larger_than_what_it_dropped() {
    let mut tracker = UdpTracker::new(0);
    tracker.count_datagram(0, 0);
    // 1 to 3 are missing and the kernel dropped 2; of 5 to 9 none was dropped here.
    for (drops, number) in [(2, 4), (2, 10)] {
        tracker.note_drops(drops, number, 0, 1);
        tracker.count_datagram(number, 0);
    }
    assert_eq!(tracker.tallies(None, None, 1).0.lost_here, 2);
    // The last three of 14 are missing, and one more was dropped.
    let (all, _) = tracker.tallies(Some((14, 14)), Some(3), 1);
    assert_eq!((all.lost, all.lost_here), (11, 3));
    // One drop of a joined buffer is up to 64 datagrams, but no more than are missing.
    assert_eq!(tracker.tallies(Some((14, 14)), Some(3), 64).0.lost_here, 5);
}

#[test]
fn a_drop_without_a_gap_is_nobodys_loss() {
    let mut tracker = UdpTracker::new(0);
    tracker.count_datagram(0, 0);
    tracker.note_drops(1, 1, 0, 1);
    tracker.count_datagram(1, 0);
    assert_eq!(tracker.tallies(Some((2, 2)), Some(1), 1).0.lost_here, 0);
}

#[test]
fn numbers_that_no_stream_sends_are_not_counted_and_cost_no_time() {
    let mut tracker = UdpTracker::new(0);
    tracker.count_datagram(0, 0);
    for number in [u64::MAX, u64::MAX - 1, 1 << 33] {
        assert_eq!(tracker.count_datagram(number, 0), UdpArrivalOrder::Implausible, "{number}");
    }
    assert_eq!(tracker.next_expected(), 1);
    assert_eq!(tracker.count_datagram(1 << 32, 0), UdpArrivalOrder::Ahead);
    assert_eq!(tracker.count_datagram(1, 0), UdpArrivalOrder::TooOld);
    let (all, _) = tracker.tallies(Some(((1 << 32) + 1, 0)), None, 1);
    assert_eq!((all.received, all.lost, all.too_old), (2, (1 << 32) - 1, 1));
}

#[test]
fn a_sender_that_tells_fewer_than_arrived_makes_no_negative_loss() {
    let mut tracker = UdpTracker::new(0);
    (0..5).for_each(|number| assert_eq!(tracker.count_datagram(number, 0), UdpArrivalOrder::Ahead));
    assert_eq!(tracker.tallies(Some((3, 3)), Some(9), 64).0.lost, 0);
}

/// What a path does to 20,000 datagrams, one each 100 µs.
fn over_path(json: &str) -> (Vec<PacketArrival>, usize, usize) {
    let plan: PathPlan = linerate_core::tree::from_json(json).expect("a plan");
    let [mut forward, _] = plan.build_pipelines(MonoTime::from_nanos(0)).expect("a path");
    let mut out = Outlet::default();
    for tag in 0..20_000 {
        let packet = Packet {
            number: 0,
            ip_bytes: 1228,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag,
        };
        let at = MonoTime::from_nanos(tag * 100_000);
        forward.release(at, &mut out);
        forward.receive(at, packet, &mut out);
    }
    forward.release(MonoTime::from_nanos(u64::MAX), &mut out);
    let arrivals = out.departures.iter().map(|departure| PacketArrival {
        sequence: departure.packet.tag,
        received_ns: departure.at.as_nanos(),
        delay_ns: 0,
    });
    (arrivals.collect(), out.lost.len(), out.copied.len())
}

#[test]
fn what_an_emulated_path_lost_doubled_and_delayed_is_counted_to_the_last_datagram() {
    let (arrivals, lost, copied) = over_path(
        r#"{ "seed": 7, "loss": "2%", "duplicate": "1%", "delay": "5 ms",
             "reorder": { "share": "3%", "extra": "1 ms" } }"#,
    );
    assert!(lost > 300 && copied > 100, "the path did something: {lost}, {copied}");
    let mut tracker = UdpTracker::new(0);
    arrivals.iter().for_each(|arrival| {
        tracker.count_datagram(arrival.sequence, arrival.sequence * 100_000);
    });
    let (all, _) = tracker.tallies(Some((20_000, 20_000)), None, 1);
    let expected = StreamArrivals::new(20_000, &arrivals);
    assert_eq!((all.lost, all.duplicates), (lost as u64, copied as u64));
    assert_eq!(all.received, 20_000 - lost as u64);
    assert_eq!(all.reordered, expected.reordered().len() as u64);
    assert!(all.reordered > 300, "{}", all.reordered);
}

/// The counts of a plain list, without a window: the definitions word for word.
fn plainly(arrivals: &[u64]) -> (u64, u64, u64, u64) {
    let (mut came, mut next) = (HashSet::new(), 0);
    let (mut duplicates, mut reordered) = (0, 0);
    for &number in arrivals {
        if !came.insert(number) {
            duplicates += 1;
        } else if number < next {
            reordered += 1;
        }
        next = next.max(number + 1);
    }
    (came.len() as u64, duplicates, reordered, next)
}

proptest! {
    #[test]
    fn the_window_counts_as_a_list_of_everything_would(
        steps in prop::collection::vec((0_u64..200, 0_u64..300), 1..400),
        begin in 0_u64..2_000_000,
    ) {
        // Jumps ahead and back, well within the window; long enough to go round it.
        let mut at = begin;
        let arrivals: Vec<u64> = steps
            .iter()
            .map(|&(ahead, back)| {
                at += ahead * ahead * 7;
                at.saturating_sub(back)
            })
            .collect();
        let mut tracker = UdpTracker::new(0);
        arrivals.iter().for_each(|&number| { tracker.count_datagram(number, 0); });
        let (all, _) = tracker.tallies(None, None, 1);
        let counts = (all.received, all.duplicates, all.reordered, tracker.next_expected());
        prop_assert_eq!(counts, plainly(&arrivals));
        prop_assert_eq!(all.received + all.lost, tracker.next_expected());
    }

    #[test]
    fn no_datagram_makes_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = OpeningDatagram::parse(&bytes);
        if let Some(header) = NativeDatagramHeader::parse(&bytes) {
            let mut tracker = UdpTracker::new(5);
            tracker.note_drops(header.stamp_ns as u32, header.number, header.stamp_ns, u64::MAX);
            tracker.count_datagram(header.number, header.stamp_ns);
            tracker.count_datagram(header.number.wrapping_add(header.stamp_ns), 0);
            tracker.tallies(Some((header.number, header.stamp_ns)), Some(1), u64::MAX);
        }
    }
}

#[test]
fn a_run_is_counted_as_its_datagrams_are_one_by_one() {
    // Runs of many lengths, some behind a gap, across the ends of words and of the window.
    let (mut runs, mut singles) = (UdpTracker::new(50), UdpTracker::new(50));
    let mut number = 0;
    for (turn, count) in
        [1, 63, 64, 65, 128, 1, 500, 127, 2].iter().cycle().take(18_000).enumerate()
    {
        let stamp_ns = turn as u64;
        let first = number + u64::from(turn % 7 == 3) * 5;
        if !runs.count_run(first, *count, stamp_ns) {
            assert_ne!(first, number, "only a gap is refused");
            assert_eq!(runs.count_datagram(first, stamp_ns), UdpArrivalOrder::Ahead);
            assert!(runs.count_run(first + 1, *count - 1, stamp_ns));
        }
        (first..first + count).for_each(|number| {
            assert_eq!(singles.count_datagram(number, stamp_ns), UdpArrivalOrder::Ahead)
        });
        number = first + count;
        assert_eq!(runs.tallies(None, None, 1), singles.tallies(None, None, 1));
    }
    assert!(number > 3 * WINDOW / 2, "{number}");
    for late in (number - WINDOW..number).step_by(37) {
        assert_eq!(runs.count_datagram(late, 60), singles.count_datagram(late, 60), "{late}");
    }
    assert!(!runs.count_run(number, u64::MAX - number, 60), "the number of a sign of life");
}

#[test]
fn a_sign_of_life_with_a_grant_is_one_for_those_who_know_no_grants() {
    let grant = Grant { next: 0x0102, limit: 0x0304_0506, most: 0x0708_090a };
    let bytes = grant.to_bytes(0xabcd);
    let mut expected = vec![0xff; 8];
    expected.extend([0xab, 0xcd, 0, 0, 0, 0, 0, 0]);
    expected.extend([0, 0, 0, 0, 0, 0, 1, 2]);
    expected.extend([0, 0, 0, 0, 3, 4, 5, 6]);
    expected.extend([0, 0, 0, 0, 7, 8, 9, 10]);
    assert_eq!(bytes.as_slice(), expected);
    assert_eq!(Grant::parse(&bytes), Some(grant));
    let header = NativeDatagramHeader::parse(&bytes).expect("it begins as any datagram");
    assert_eq!((header.number, header.tag, header.stamp_ns), (ALIVE, 0xabcd, 0));
    for length in 0..GRANT_BYTES {
        assert_eq!(Grant::parse(&bytes[..length]), None, "{length} bytes");
    }
    for (limit, most) in [(4, 6), (5, 4)] {
        let bytes = Grant { next: 5, limit, most }.to_bytes(1);
        assert_eq!(Grant::parse(&bytes), None, "it takes back");
    }
}
