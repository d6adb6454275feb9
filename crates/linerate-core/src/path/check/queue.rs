//! Queues under Poisson arrivals: the wait of M/D/1, the loss of M/M/1/K.

use super::score::CheckSubject;
use super::{Check, packet};
use crate::path::{Element, Framing, Limit, Outlet, QueuedLink, Random, TailDrop};
use crate::time::MonoTime;
use crate::units::BitRate;

/// 1500 bytes take 12 µs.
const RATE: BitRate = BitRate::from_bits_per_sec(1_000_000_000);
const SERVICE_NS: f64 = 12_000.0;

pub(super) fn checks(packets: u64, seed: u64) -> Vec<Check> {
    vec![
        mean_wait_check(packets, seed, "wait at load 0.5 (M/D/1), µs", 0.5),
        mean_wait_check(packets, seed, "wait at load 0.8 (M/D/1), µs", 0.8),
        queue_loss_check(packets, seed, "loss of 5 places at load 0.8 (M/M/1/K)", 0.8, 5),
        queue_loss_check(packets, seed, "loss of 20 places at load 1.2 (M/M/1/K)", 1.2, 20),
    ]
}

/// Poisson arrivals at a load.
struct Source {
    random: Random,
    at_ns: f64,
    gap_ns: f64,
}

impl Source {
    const fn new(load: f64, random: Random) -> Self {
        Self { random, at_ns: 0.0, gap_ns: SERVICE_NS / load }
    }

    fn next(&mut self) -> MonoTime {
        self.at_ns += self.gap_ns * self.random.exponential();
        MonoTime::from_nanos(self.at_ns as u64)
    }
}

/// Pollaczek and Khinchine for constant service S: ρ S / (2 (1 − ρ)).
fn mean_wait_check(packets: u64, seed: u64, name: &'static str, load: f64) -> Check {
    let mut link = QueuedLink::new(RATE, Framing::Ip, TailDrop::new(Limit::Packets(u64::MAX)));
    let mut source = Source::new(load, Random::new(seed, 21));
    let (mut out, mut waits) = (Outlet::default(), Vec::new());
    let mut came = std::collections::VecDeque::new();
    for number in 0..packets {
        let at = source.next();
        came.push_back(at);
        link.release(at, &mut out);
        link.receive(at, packet(number, 1500, 0), &mut out);
        for departure in out.departures.drain(..) {
            let Some(at) = came.pop_front() else { break };
            waits.push((departure.at.nanos_since(at) as f64 - SERVICE_NS) / 1000.0);
        }
    }
    let expected = load * SERVICE_NS / 1000.0 / (2.0 * (1.0 - load));
    CheckSubject { name, closed_form: "ρS/(2(1-ρ))", packets }.batches(&waits, expected)
}

/// Exponential lengths and K places, one of them on the line: (1 − ρ) ρ^K / (1 − ρ^(K+1)).
fn queue_loss_check(packets: u64, seed: u64, name: &'static str, load: f64, places: i32) -> Check {
    let waiting = u64::from(places.unsigned_abs()) - 1;
    let mut link = QueuedLink::new(RATE, Framing::Ip, TailDrop::new(Limit::Packets(waiting)));
    let mut source = Source::new(load, Random::new(seed, 22));
    let mut lengths = Random::new(seed, 23);
    let (mut out, mut losses) = (Outlet::default(), Vec::new());
    for number in 0..packets {
        let at = source.next();
        link.release(at, &mut out);
        let ip_bytes = (1500.0 * lengths.exponential()).round().max(1.0) as u32;
        link.receive(at, packet(number, ip_bytes, 0), &mut out);
        losses.push(out.lost.len() as f64);
        out.lost.clear();
        out.departures.clear();
    }
    let expected = (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1));
    CheckSubject { name, closed_form: "(1-ρ)ρ^K/(1-ρ^(K+1))", packets }.batches(&losses, expected)
}
