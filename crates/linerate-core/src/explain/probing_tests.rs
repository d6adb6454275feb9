//! A tester in virtual time: sends trains over an emulated path and stamps them as a virtual
//! machine does, so that what is found can be held to what was planted.

use std::time::Duration;

use super::mechanism::mechanism;
use crate::path::{Ecn, Outlet, Packet, Pipeline, Random};
use crate::record::{DatagramTrain, Direction, PathPlan};
use crate::time::MonoTime;

/// Sizes of the IP packets: full ones, and 200 bytes of payload.
pub(super) const LONG: u32 = 1500;
const SHORT: u32 = 228;
/// Packets of a train back to back.
const TRAIN_PACKETS: u32 = 64;
/// Paced packets at the most.
const PACED_MAX: f64 = 20_000.0;
/// The receiver's clock is behind, and drifts.
const OFFSET_NS: f64 = -3.7e9;
const DRIFT: f64 = 8e-6;

/// Which trains are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) trains: u32,
    pub(super) paced: Duration,
    /// The highest load over the rate that trains left at.
    over: f64,
}

impl Schedule {
    /// Two sorts of trains and paced probes: about ten seconds.
    pub(super) const WHOLE: Self =
        Self { trains: 5, paced: Duration::from_millis(1500), over: 1.3 };
    pub(super) const SHORT: Self = Self { trains: 5, paced: Duration::from_millis(700), over: 1.3 };
    /// A quick survey: what it sends above the rate is a few dozen packets.
    pub(super) const QUICK: Self = Self { trains: 5, paced: Duration::from_millis(300), over: 1.1 };
    /// A quick survey of a far path: it has no time for paced probes.
    pub(super) const TRAINS: Self = Self { trains: 5, paced: Duration::ZERO, over: 1.0 };
}

/// Sends what a diagnosis sends over one direction of a path.
pub(super) fn probe(path: &PathPlan, backward: bool, schedule: Schedule) -> Vec<DatagramTrain> {
    let [there, back] = path.build_pipelines(MonoTime::default()).expect("a sound path");
    let pipeline = if backward { back } else { there };
    let mut tester = Tester {
        pipeline,
        now: 1e6,
        random: Random::new(path.seed.unwrap_or(1), 5_000_000),
        stall_ns: 0.0,
        stalls: Stalls::default(),
        out: Outlet::default(),
        direction: if backward { Direction::Down } else { Direction::Up },
    };
    let mut trains = Vec::new();
    for ip_bytes in [LONG, SHORT] {
        for _ in 0..schedule.trains {
            trains.push(tester.train(ip_bytes, TRAIN_PACKETS, None));
        }
    }
    if schedule.paced.is_zero() {
        return trains;
    }
    let found = mechanism(&trains, tester.direction).expect("packets");
    let bps = found.capacity.first().map_or(10e6, |capacity| capacity.bps);
    for (ip_bytes, share) in [(LONG, 0.5), (LONG, 0.9), (LONG, schedule.over), (SHORT, 0.5)] {
        let packets_per_s = share * bps / 8.0 / f64::from(ip_bytes);
        let count = (packets_per_s * schedule.paced.as_secs_f64()).min(PACED_MAX);
        trains.push(tester.train(ip_bytes, count_of(count), Some(share * bps)));
    }
    trains
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn count_of(value: f64) -> u32 {
    value as u32
}

struct Tester {
    pipeline: Pipeline,
    /// Nanoseconds; exact below 2^53.
    now: f64,
    random: Random,
    /// The sender stands still until then.
    stall_ns: f64,
    stalls: Stalls,
    out: Outlet,
    direction: Direction,
}

/// Times at which the receiver stands still.
#[derive(Debug, Default)]
struct Stalls {
    from: f64,
    to: f64,
}

impl Stalls {
    /// When what arrives at `at` is stamped: ten times a second the receiver stands still, for
    /// 0.7 ms in the mean; else it is woken within 20 µs.
    fn stamp(&mut self, at: f64, random: &mut Random) -> f64 {
        while self.to < at {
            self.from = self.to + 1e8 * random.exponential();
            self.to = self.from + 0.7e6 * random.exponential();
        }
        let woken = at + 2e4 * random.next_uniform() * random.next_uniform();
        if at >= self.from { woken.max(self.to) } else { woken }
    }
}

impl Tester {
    fn train(&mut self, ip_bytes: u32, count: u32, offered_bps: Option<f64>) -> DatagramTrain {
        let started = self.now;
        // A gigabit, and 2 µs of the sender's time.
        let least = f64::from((ip_bytes + 38) * 8).max(2000.0);
        let gap = offered_bps.map_or(least, |bps| f64::from(ip_bytes) * 8e9 / bps);
        let mut sent = Vec::new();
        for number in 0..count {
            let due = started + f64::from(number) * gap;
            self.now = due.max(self.now + least).max(self.stall_ns);
            // Twice a second it stands still, for 1 ms in the mean; one stamp of a hundred such is
            // taken before and not after.
            let stamp = if self.random.chance(gap * 2e-9) {
                let before = self.now;
                self.now += 1e6 * self.random.exponential();
                if self.random.chance(0.01) { before } else { self.now }
            } else {
                self.now
            };
            sent.push(stamp);
            self.take(ip_bytes, u64::from(number));
        }
        self.drain();
        self.received(ip_bytes, started, offered_bps, &sent)
    }

    fn take(&mut self, ip_bytes: u32, tag: u64) {
        let packet = Packet {
            number: 0,
            ip_bytes,
            flow: 7,
            hosts: [1, 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag,
        };
        self.pipeline.receive(at(self.now), packet, &mut self.out);
    }

    /// Waits until nothing has arrived for 100 ms: what a train left in a queue is no part of the
    /// next.
    fn drain(&mut self) {
        for _ in 0..200 {
            let before = self.out.departures.len();
            self.now += 1e8;
            self.pipeline.release(at(self.now), &mut self.out);
            if self.out.departures.len() == before {
                return;
            }
        }
    }

    fn received(
        &mut self,
        ip_bytes: u32,
        started: f64,
        offered_bps: Option<f64>,
        sent: &[f64],
    ) -> DatagramTrain {
        let mut arrived = vec![None; sent.len()];
        for departure in self.out.departures.drain(..) {
            let stamp = self.stalls.stamp(departure.at.as_nanos() as f64, &mut self.random);
            let place = usize::try_from(departure.packet.tag).expect("a small number");
            arrived[place] = Some(whole(stamp * (1.0 + DRIFT) + OFFSET_NS - sent[0]));
        }
        self.out.lost.clear();
        DatagramTrain {
            direction: self.direction,
            ip_bytes,
            offered_bps,
            started_ns: unsigned(started),
            sent_ns: sent.iter().map(|&at| unsigned(at - sent[0])).collect(),
            arrived_ns: arrived,
            socket_drops: None,
        }
    }
}

fn at(ns: f64) -> MonoTime {
    MonoTime::from_nanos(unsigned(ns))
}

#[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
const fn whole(ns: f64) -> i64 {
    ns as i64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^53")]
const fn unsigned(ns: f64) -> u64 {
    ns as u64
}
