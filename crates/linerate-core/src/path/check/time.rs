//! Delays and order: jitter's distributions, reordering, the members of a trunk.

use super::score::CheckSubject;
use super::{Check, delay_ns, packet, send_packets};
use crate::path::{
    Element, Framing, Jitter, Limit, Outlet, QueuedLink, Random, Spread, TailDrop, Trunk,
};
use crate::stats::{PacketArrival, StreamArrivals};
use crate::time::MonoTime;
use crate::units::BitRate;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Equally probable classes of delay.
const CLASSES: usize = 20;

pub(super) fn checks(packets: u64, seed: u64) -> Vec<Check> {
    let uniform = Spread::Uniform { most: Duration::from_millis(10) };
    let exponential = Spread::Exponential { mean: Duration::from_millis(3) };
    let even = CheckSubject {
        name: "jitter 0 ... 10 ms, delays",
        closed_form: "even, mean 5 ms",
        packets,
    };
    let long = CheckSubject {
        name: "jitter of mean 3 ms, delays",
        closed_form: "exponential, mean 3 ms",
        packets,
    };
    let mut all = vec![
        jitter(even, uniform, seed, |delay_ms| delay_ms / 10.0, 5.0),
        jitter(long, exponential, seed, |delay_ms| 1.0 - (-delay_ms / 3.0).exp(), 3.0),
    ];
    all.extend(reordering(packets, seed));
    all.push(trunk_check(packets, seed));
    all
}

/// Delays by the distribution function of their spread: even over 0 … 1.
fn jitter(
    subject: CheckSubject,
    spread: Spread,
    seed: u64,
    distribution: fn(f64) -> f64,
    mean_ms: f64,
) -> Check {
    let mut element = Jitter::new(spread, false, Random::new(seed, 11));
    let out = send_packets(&mut element, subject.packets, 1500, 1000);
    let mut counts = [0; CLASSES];
    let mut sum_ms = 0.0;
    for departure in &out.departures {
        let delay_ms = delay_ns(departure, 1000) as f64 / 1e6;
        sum_ms += delay_ms;
        let class = (distribution(delay_ms) * CLASSES as f64) as usize;
        counts[class.min(CLASSES - 1)] += 1;
    }
    let means = [sum_ms / out.departures.len() as f64, mean_ms];
    subject.classes(&counts, &[1.0 / CLASSES as f64; CLASSES], means)
}

/// One packet each 1 ms, of which a share p = 0.1 is 2.5 ms late, q = 0.9.
///
/// A late packet is reordered (RFC 4737 §3.3) unless both that follow are late, too: p (1 − p²).
/// Its extent (§4.2.1) counts from the first that overtook it. That is its follower (q), and then
/// one more for the follower after that (q) and one for a late packet just before it (p); or, when
/// the follower is late, the one after (pq), alone.
fn reordering(packets: u64, seed: u64) -> Vec<Check> {
    let spread = Spread::Some { share: 0.1, extra: Duration::from_micros(2500) };
    let mut element = Jitter::new(spread, false, Random::new(seed, 12));
    let out = send_packets(&mut element, packets, 1500, MS);
    let arrival = |departure: &super::Departure| PacketArrival {
        sequence: departure.packet.number,
        received_ns: departure.at.as_nanos(),
        delay_ns: i64::try_from(delay_ns(departure, MS)).unwrap_or(i64::MAX),
    };
    let arrivals: Vec<PacketArrival> = out.departures.iter().map(arrival).collect();
    let reordered = StreamArrivals::new(packets, &arrivals).reordered();
    let mut counts = [0; 3];
    for one in &reordered {
        let class = usize::try_from(one.extent.max(1) - 1).unwrap_or(usize::MAX);
        counts[class.min(2)] += 1;
    }
    let (p, q) = (0.1, 0.9);
    let shares = [q * q * p + p * q, q * (p * p + q * q), q * p * q].map(|share| share / 0.99);
    let mean = reordered.iter().map(|one| one.extent as f64).sum::<f64>() / reordered.len() as f64;
    let expected = shares[0] + 2.0 * shares[1] + 3.0 * shares[2];
    let ratio = CheckSubject { name: "reordered packets", closed_form: "p(1-p^2)", packets };
    let extent =
        CheckSubject { name: "reordering extent", closed_form: "1, 2, 3 by RFC 4737", packets };
    vec![
        ratio.binomial_check(reordered.len() as u64, p * (1.0 - p * p)),
        extent.classes(&counts, &shares, [mean, expected]),
    ]
}

/// Flows of random hashes over three members, which differ in the time that a packet takes.
fn trunk_check(packets: u64, seed: u64) -> Check {
    let member = |mbps: u64| -> Box<dyn Element> {
        let rate = BitRate::from_bits_per_sec(mbps * 1_000_000);
        Box::new(QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(10))))
    };
    let mut trunk = Trunk::new(vec![member(12), member(6), member(3)]);
    let mut random = Random::new(seed, 13);
    let mut out = Outlet::default();
    let mut counts = [0; 3];
    for number in 0..packets {
        let at = MonoTime::from_nanos(number * 5 * MS);
        let hash = (random.next_uniform() * f64::from(u32::MAX)) as u32;
        trunk.receive(at, packet(number, 1500, hash), &mut out);
        trunk.release(MonoTime::from_nanos(at.as_nanos() + 4 * MS), &mut out);
        for departure in out.departures.drain(..) {
            // 1500 bytes take 1, 2 or 4 ms.
            counts[(departure.at.nanos_since(at) / (2 * MS)).min(2) as usize] += 1;
        }
    }
    let share = counts[0] as f64 / packets as f64;
    CheckSubject { name: "trunk of 3, share of a member", closed_form: "1/3", packets }.classes(
        &counts,
        &[1.0 / 3.0; 3],
        [share, 1.0 / 3.0],
    )
}
