//! Trains over emulated paths in simulated time: what is planted there shows in the fate of every
//! packet.

use std::time::Duration;

use linerate_core::path::{
    Bernoulli, Bucket, Delay, Ecn, Element, Framing, Limit, Outlet, Packet, Pipeline, Policer,
    QueuedLink, Random, TailDrop,
};
use linerate_core::record::Direction;
use linerate_core::time::MonoTime;
use linerate_core::units::{BitRate, Bytes};
use linerate_proto::native::{TrainHeader, TrainPlan, TrainRound};

use super::arrivals::TrainArrivals;
use super::departures::Departures;

const TAG: u16 = 9;
const HEADERS: u32 = 28;

/// Times of arrival of each packet of each train.
type Fates = Vec<Vec<Option<u64>>>;

/// Ten trains of 64 packets back to back, every other one of 228 bytes, 200 ms apart.
fn trains() -> Vec<TrainPlan> {
    let plan = |train: u64| TrainPlan {
        direction: Direction::Up,
        size_bytes: if train.is_multiple_of(2) { 1472 } else { 200 },
        count: 64,
        gap_ns: 0,
        at_ns: train * 200_000_000,
    };
    (0..10).map(plan).collect()
}

/// Sends trains over a path.
fn send(trains: Vec<TrainPlan>, elements: Vec<Box<dyn Element>>) -> Fates {
    let round = TrainRound { round: 0, quiet_ns: 0, trains };
    assert_eq!(round.check_bounds(), Ok(()));
    let mut path = Pipeline::new(elements);
    let mut arrivals = TrainArrivals::new(TAG);
    arrivals.begin_round(&round, Direction::Up, None);
    let mut departures = Departures::new(&round, Direction::Up);
    let mut out = Outlet::default();
    while let Some(due) = departures.next() {
        let packet = Packet {
            number: 0,
            ip_bytes: due.size_bytes + HEADERS,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag: u64::from(due.train) << 32 | u64::from(due.index),
        };
        path.receive(MonoTime::from_nanos(due.at_ns), packet, &mut out);
        departures.note_departure(due);
    }
    path.release(MonoTime::from_nanos(u64::MAX), &mut out);
    for departure in &out.departures {
        let tag = departure.packet.tag;
        let (train, index) = ((tag >> 32) as u16, tag as u32);
        let header = TrainHeader { round: 0, train, index, tag: TAG };
        assert!(arrivals.take_datagram(&header.to_bytes(), departure.at.as_nanos(), None));
    }
    arrivals.end_round(None).iter().map(|report| report.stamps()).collect()
}

/// The first packet of each large and of each small train that was lost, where one was.
fn first_lost(fates: &Fates) -> [Vec<Option<usize>>; 2] {
    let first = |stamps: &Vec<Option<u64>>| stamps.iter().position(Option::is_none);
    let of = |small: usize| fates.iter().skip(small).step_by(2).map(first).collect();
    [of(0), of(1)]
}

fn all(index: Option<usize>) -> Vec<Option<usize>> {
    vec![index; 5]
}

/// A link that counts IP packets alone.
fn link(bits_per_s: u64, buffer: Limit) -> Box<dyn Element> {
    let rate = BitRate::from_bits_per_sec(bits_per_s);
    Box::new(QueuedLink::new(rate, Framing::fixed_header(0), TailDrop::new(buffer)))
}

#[test]
fn a_buffer_of_20_packets_loses_what_follows_them_whatever_their_size() {
    let fates = send(trains(), vec![link(50_000_000, Limit::Packets(20))]);
    // One is on the line, and 20 wait: the 22nd is lost.
    assert_eq!(first_lost(&fates), [all(Some(21)), all(Some(21))]);
    // 1500 bytes at 50 Mbit/s are 240 us.
    let arrived: Vec<u64> = fates[0].iter().flatten().copied().collect();
    assert_eq!(arrived.len(), 21);
    assert!(arrived.windows(2).all(|pair| pair[1] - pair[0] == 240_000), "{arrived:?}");
}

#[test]
fn a_buffer_in_bytes_loses_by_bytes() {
    let fates = send(trains(), vec![link(50_000_000, Limit::Bytes(7_500))]);
    // 7,500 bytes are 5 packets of 1500 and 32 of 228, beside the one on the line.
    assert_eq!(first_lost(&fates), [all(Some(6)), all(Some(33))]);
}

#[test]
fn a_policer_lets_its_bucket_through_at_the_rate_of_the_line() {
    let rate = BitRate::from_bits_per_sec(20_000_000);
    let bucket = Bucket { rate, burst: Bytes::new(50_000), framing: Framing::fixed_header(0) };
    let policer = Policer::new(bucket).expect("a bucket of several packets");
    let fates = send(trains(), vec![Box::new(policer)]);
    // 33 packets of 1500 bytes are 49,500; 64 of 228 are 14,592. In 200 ms it fills again.
    assert_eq!(first_lost(&fates), [all(Some(33)), all(None)]);
    // No queue delays what passes.
    assert!(fates[0].iter().flatten().all(|at| *at == 0));
}

#[test]
fn a_limit_of_packets_per_second_shows_at_the_same_packet_in_both_sizes() {
    let device = QueuedLink::of_packets(2_000, TailDrop::new(Limit::Packets(7)));
    let fates = send(trains(), vec![Box::new(device)]);
    // One is handled, 7 wait: a depth of 8.
    assert_eq!(first_lost(&fates), [all(Some(8)), all(Some(8))]);
}

#[test]
fn random_loss_begins_anywhere_and_is_the_same_when_paced() {
    let loss = || -> Box<dyn Element> { Box::new(Bernoulli::new(0.01, Random::new(7, 0))) };
    let fates = send(trains(), vec![loss(), Box::new(Delay::new(Duration::from_millis(20)))]);
    let [large, _] = first_lost(&fates);
    assert!(large.iter().flatten().count() < 5, "1 % of 64 is no packet in half of the trains");
    let paced = TrainPlan {
        direction: Direction::Up,
        size_bytes: 1472,
        count: 4_000,
        gap_ns: 250_000,
        at_ns: 0,
    };
    let fates = send(vec![paced], vec![loss()]);
    let lost = fates[0].iter().filter(|stamp| stamp.is_none()).count();
    // 40 are expected; three standard deviations of sqrt(4000 x 0.01 x 0.99) = 6.3.
    assert!((21..=59).contains(&lost), "{lost}");
}

#[test]
fn paced_probes_above_a_buckets_rate_lose_the_difference() {
    let rate = BitRate::from_bits_per_sec(20_000_000);
    let bucket = Bucket { rate, burst: Bytes::new(50_000), framing: Framing::fixed_header(0) };
    let policer = Policer::new(bucket).expect("a bucket of several packets");
    // 26 Mbit/s in packets of 12,000 bits: one every 461.5 us, for 1.8 s.
    let paced = TrainPlan {
        direction: Direction::Up,
        size_bytes: 1472,
        count: 4_000,
        gap_ns: 461_538,
        at_ns: 0,
    };
    let fates = send(vec![paced], vec![Box::new(policer)]);
    let lost = fates[0].iter().filter(|stamp| stamp.is_none()).count() as f64;
    // 1 - 20/26 = 23.08 %, less the bucket's 33 packets.
    let expected = 4_000.0 * (1.0 - 20.0 / 26.0) - 33.3;
    assert!((lost - expected).abs() < 5.0, "{lost} for {expected}");
}
