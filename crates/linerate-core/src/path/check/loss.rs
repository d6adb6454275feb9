//! Losses: independent, in bursts, of cells and bits, by a policer, early by RED.

use super::score::CheckSubject;
use super::{Check, packet, send_packets};
use crate::path::{
    Bernoulli, BitErrors, Bucket, BurstLoss, BurstLossSettings, CellLoss, CellLossSettings,
    Framing, Limit, Outlet, Policer, Queue, Random, Red, RedSettings,
};
use crate::theory::red;
use crate::time::MonoTime;
use crate::units::{BitRate, Bytes};

/// Runs longer than this are one class.
const CLASSES: usize = 12;

pub(super) fn checks(packets: u64, seed: u64) -> Vec<Check> {
    let mut all = bernoulli(packets, seed);
    all.extend(gilbert(packets, seed));
    all.extend(damage(packets, seed));
    all.push(policer(packets));
    all.push(red_drop_check(packets, seed));
    all
}

/// Classes of lengths 1, 2, … of a geometric distribution that ends with probability `end`.
fn geometric(subject: CheckSubject, lengths: &[u64], end: f64, width: u64) -> Check {
    let mut counts = vec![0; CLASSES];
    for length in lengths {
        let class = usize::try_from((length - 1) / width).unwrap_or(usize::MAX);
        counts[class.min(CLASSES - 1)] += 1;
    }
    let stays = |classes: usize| (1.0 - end).powf(width as f64 * classes as f64);
    let mut shares: Vec<f64> = (0..CLASSES).map(|class| stays(class) - stays(class + 1)).collect();
    shares[CLASSES - 1] = stays(CLASSES - 1);
    let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
    subject.classes(&counts, &shares, [mean, 1.0 / end])
}

fn lost_numbers(out: &Outlet) -> Vec<u64> {
    out.lost.iter().map(|lost| lost.packet.number).collect()
}

fn bernoulli(packets: u64, seed: u64) -> Vec<Check> {
    let out = send_packets(&mut Bernoulli::new(0.01, Random::new(seed, 1)), packets, 1500, 1);
    let lost = lost_numbers(&out);
    let gaps: Vec<u64> = lost.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let ratio = CheckSubject { name: "independent loss, ratio", closed_form: "p", packets };
    let gap = CheckSubject {
        name: "independent loss, distances",
        closed_form: "geometric, mean 1/p",
        packets,
    };
    vec![ratio.binomial_check(lost.len() as u64, 0.01), geometric(gap, &gaps, 0.01, 25)]
}

fn gilbert(packets: u64, seed: u64) -> Vec<Check> {
    let settings = BurstLossSettings { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let out = send_packets(&mut BurstLoss::new(settings, Random::new(seed, 2)), packets, 1500, 1);
    let lost = lost_numbers(&out);
    let mut bursts = Vec::new();
    let mut length = 1;
    for pair in lost.windows(2) {
        if pair[1] == pair[0] + 1 {
            length += 1;
        } else {
            bursts.push(length);
            length = 1;
        }
    }
    let ratio = CheckSubject { name: "bursts (Gilbert), ratio", closed_form: "p/(p+q)", packets };
    let runs = CheckSubject {
        name: "bursts (Gilbert), lengths",
        closed_form: "geometric, mean 1/q",
        packets,
    };
    // A chain that stays with λ = 1 − p − q spreads (1 + λ)/(1 − λ) times as much.
    let stays: f64 = 1.0 - 0.01 - 0.25;
    let factor = (1.0 + stays) / (1.0 - stays);
    vec![
        ratio.share_spread(lost.len() as u64, 0.01 / 0.26, factor),
        geometric(runs, &bursts, 0.25, 1),
    ]
}

fn damage(packets: u64, seed: u64) -> Vec<Check> {
    let cells = |name, ip_bytes, count: i32, stream| {
        let settings = CellLossSettings { probability: 1e-4, burst_cells: 1, header_bytes: 8 };
        let mut element = CellLoss::new(settings, Random::new(seed, stream));
        let out = send_packets(&mut element, packets, ip_bytes, 1);
        let expected = 1.0 - (1.0 - 1e-4_f64).powi(count);
        CheckSubject { name, closed_form: "1-(1-p)^cells", packets }
            .binomial_check(out.lost.len() as u64, expected)
    };
    let mut bits = BitErrors::new(1e-6, Framing::Ip, Random::new(seed, 5));
    let out = send_packets(&mut bits, packets, 9000, 1);
    let expected = 1.0 - (1.0 - 1e-6_f64).powi(72_000);
    let subject =
        CheckSubject { name: "bit errors 1e-6, 9000 bytes", closed_form: "1-(1-b)^bits", packets };
    vec![
        cells("cell loss 1e-4, 9180 bytes", 9180, 192, 3),
        cells("cell loss 1e-4, 1500 bytes", 1500, 32, 4),
        subject.binomial_check(out.lost.len() as u64, expected),
    ]
}

/// Constant arrivals at 1.3 times the contract. The bucket's first fill and what it holds at the
/// end are two packets each.
fn policer(packets: u64) -> Check {
    let rate = BitRate::from_bits_per_sec(12_000_000);
    let bucket = Bucket { rate, burst: Bytes::new(3000), framing: Framing::Ip };
    let gap_ns = 769_231;
    let mut policer = Policer::new(bucket).expect("neither is 0");
    let out = send_packets(&mut policer, packets, 1500, gap_ns);
    let expected = 1.0 - gap_ns as f64 / 1e6;
    let measured = out.lost.len() as f64 / packets as f64;
    CheckSubject {
        name: "policer at 1.3 of its rate",
        closed_form: "1-1/1.3, by a packet",
        packets,
    }
    .exact_check(measured, expected, 1.0 / packets as f64)
}

/// A queue that stays at 60,000 bytes between thresholds of 30,000 and 90,000: 0.01 a packet.
fn red_drop_check(packets: u64, seed: u64) -> Check {
    let law = red::RedParameters::new(30_000.0, 90_000.0, red::MARK_MAX, red::WEIGHT);
    let law = law.expect("the thresholds follow each other");
    let settings = RedSettings { law, ecn: false, packet_time_ns: 1000 };
    let mut red = Red::new(settings, Limit::Packets(1000), Random::new(seed, 6));
    let (mut out, mut gaps, mut gap) = (Outlet::default(), Vec::new(), 0);
    for number in 0..packets {
        let at = MonoTime::from_nanos(number);
        red.enqueue(at, packet(number, 1000, 0), &mut out);
        gap += 1;
        if out.lost.is_empty() {
            if red.backlog().bytes > 60_000 {
                red.get(at, &mut out);
            }
        } else {
            out.lost.clear();
            gaps.push(gap);
            gap = 0;
        }
    }
    // 0.998^8000 of the empty queue is left in the average after 8000 packets. By the algorithm of
    // the paper (figure 2) the count is 1 at the first packet after a drop: 1 … 1/p - 1, evenly.
    let settled = gaps.iter().scan(0_u64, |sum, gap| Some((*sum, *sum += gap, *gap)));
    let gaps: Vec<u64> = settled.filter(|(sum, ..)| *sum > 8000).map(|(.., gap)| gap).collect();
    let mut counts = vec![0; 9];
    for gap in &gaps {
        let class = usize::try_from((gap - 1) / 11).unwrap_or(usize::MAX);
        counts[class.min(8)] += 1;
    }
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    CheckSubject { name: "RED, distances of drops", closed_form: "even on 1 ... 1/p-1", packets }
        .classes(&counts, &[1.0 / 9.0; 9], [mean, 50.0])
}
