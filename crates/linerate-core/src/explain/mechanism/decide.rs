//! Which state explains the losses, and what that makes of the path.

use super::capacity::{self, is_overloaded, quantile};
use super::fates::{Fates, ProbeTrain};
use super::hazard::LossSamples;
use super::state::{
    Cost, FIRST_BELOW, LINK_BYTES, behind_link, excess_over_rate, queue_before_link, since_loss,
};
use super::{Background, Capacity, Estimate, LOSSES_MIN, Overflow, PacedLoad, State};
use crate::stats::{Interval, Z_95, wilson_interval};

/// Nats by which a state has to be likelier than none.
const MARGIN: f64 = 5.0;
/// Nats within which states foretell the first losses as well.
const AS_GOOD: f64 = 3.0;
/// Packets of a paced train that are foretold together.
const BLOCK: usize = 50;
/// Rates around one that was measured: what others send takes of it, and stamps are not exact.
const FACTORS: [f64; 9] = [0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.08, 1.16, 1.3];
/// Steps by which the likeliest rate is made exact. A rate that is wrong by a part in a thousand
/// moves the state by 15 kB within a second of 100 Mbit/s.
const STEPS: [f64; 4] = [0.02, 0.006, 0.002, 0.0006];
/// Tries of each step.
const TRIES: usize = 4;
/// Likelihood within which a rate is as good: 95 % of the interval by likelihood ratio, in nats.
const RATE_NATS: f64 = 1.92;
/// Packets that wait this share of what a queue would make them wait are in a queue.
const WAITING_SHARE: f64 = 0.5;
/// Paced packets for that, at least.
const PACED_MIN: usize = 30;
/// Below this share of the room nothing overflows.
const LOW_SHARE: f64 = 0.5;

/// The likeliest state and what it means.
#[derive(Clone, Debug, Default)]
pub(super) struct MechanismDecision {
    pub(super) overflow: Option<Overflow>,
    pub(super) background: Option<Background>,
    pub(super) states: Vec<(State, f64)>,
}

/// A state with its values before each packet, and how well it foretells.
#[derive(Clone, Debug)]
struct StateCandidate {
    state: State,
    values: Vec<f64>,
    likelihood: f64,
    /// Units each nanosecond, and the interval.
    rate: Option<Estimate>,
}

/// Model that a rate is replayed with.
#[derive(Clone, Copy, Debug)]
enum Replay {
    /// A bucket of bytes, or the room before a link that adds some to each packet.
    Bytes { added: f64 },
    /// A bucket of packets, or a device that takes the same time for each.
    Packets,
    /// Packets before a link.
    Link,
}

pub(super) fn decide(
    fates: &Fates,
    capacity: &[Capacity],
    loads: &[PacedLoad],
) -> MechanismDecision {
    let scored = scored(fates);
    if scored.lost < LOSSES_MIN {
        return MechanismDecision::default();
    }
    let waiting = queue_before_link(fates, link_bytes_per_ns(capacity));
    let shown = [
        candidate(&scored, State::BytesQueued, [waiting.own_bytes, waiting.all_bytes]),
        candidate(&scored, State::PacketsQueued, [waiting.own_packets, waiting.all_packets]),
    ];
    let contest = Contest { fates, capacity, loads, scored: &scored, shown };
    let nothing = scored.null_likelihood();
    let candidates = contest.candidates();
    let mut states: Vec<(State, f64)> =
        candidates.iter().map(|found| (found.state, found.likelihood - nothing)).collect();
    states.push((State::Nothing, 0.0));
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    let best = candidates.first().filter(|best| best.likelihood > nothing + MARGIN);
    let (overflow, background) = match best {
        None => (None, Some(random(&scored))),
        Some(best) if best.state == State::PreviousLoss => match contest.begins(&candidates) {
            Some(queue) => contest.overflow(queue, &candidates),
            None => (None, Some(bursts(&scored, best))),
        },
        Some(best) => contest.overflow(best, &candidates),
    };
    MechanismDecision { overflow, background, states }
}

/// Trains back to back of which nothing arrived met an outage: they tell of no state.
fn scored(fates: &Fates) -> LossSamples {
    let mut scored = LossSamples::default();
    let mut block = 0;
    let is_out = |run: &&ProbeTrain| {
        run.offered_bps.is_none() && fates.probes_of(run).iter().all(|probe| probe.delay.is_none())
    };
    for run in fates.runs.iter().filter(|run| !is_out(run)) {
        let length = if run.offered_bps.is_some() { BLOCK } else { usize::MAX };
        for (place, index) in run.probes.clone().enumerate() {
            block += usize::from(place == 0 || place % length == 0);
            scored.add(index, block, fates.probes[index].delay.is_none());
        }
    }
    scored
}

/// The likelier of several ways to see a state.
fn candidate<const N: usize>(
    scored: &LossSamples,
    state: State,
    values: [Vec<f64>; N],
) -> StateCandidate {
    let of = |values: Vec<f64>| {
        let likelihood = scored.likelihood(&values);
        StateCandidate { state, values, likelihood, rate: None }
    };
    values.into_iter().map(of).max_by(by_likelihood).expect("one at least")
}

/// Bytes on the link each nanosecond, by the largest packets.
fn link_bytes_per_ns(capacity: &[Capacity]) -> f64 {
    capacity.first().map_or(f64::INFINITY, |found| {
        let bytes = f64::from(found.ip_bytes);
        found.bps / 8e9 * (bytes + LINK_BYTES) / bytes
    })
}

struct Contest<'a> {
    fates: &'a Fates,
    capacity: &'a [Capacity],
    loads: &'a [PacedLoad],
    scored: &'a LossSamples,
    /// Queue that the delays themselves show, in bytes and in packets. Unlike a replayed rate it
    /// does not drift away from the real one.
    shown: [StateCandidate; 2],
}

impl Contest<'_> {
    fn candidates(&self) -> Vec<StateCandidate> {
        let mut candidates = self.shown.to_vec();
        candidates.push(self.since_loss());
        let with_bytes = [Replay::Bytes { added: 0.0 }, Replay::Bytes { added: LINK_BYTES }];
        candidates.extend(with_bytes.map(|replay| self.search(replay)).into_iter().flatten());
        candidates.extend(
            [Replay::Packets, Replay::Link].map(|replay| self.search(replay)).into_iter().flatten(),
        );
        let mut best: Vec<StateCandidate> = Vec::new();
        candidates.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
        for candidate in candidates {
            if best.iter().all(|before| before.state != candidate.state) {
                best.push(candidate);
            }
        }
        best
    }

    fn since_loss(&self) -> StateCandidate {
        candidate(self.scored, State::PreviousLoss, [since_loss(self.fates)])
    }

    /// The state that explains where losses begin, of those that a load fills. A queue that stays
    /// full loses all that follows, and after a loss it foretells no more than that loss does; of
    /// the first loss in a train bursts say nothing, and a queue says where it is.
    fn begins<'b>(&self, candidates: &'b [StateCandidate]) -> Option<&'b StateCandidate> {
        let since = since_loss(self.fates);
        let first = self.scored.with_state_below(&since, FIRST_BELOW);
        let least = first.null_likelihood() + MARGIN;
        let filled = candidates.iter().filter(|found| found.state != State::PreviousLoss);
        let scored: Vec<(&StateCandidate, f64)> =
            filled.map(|found| (found, first.likelihood(&found.values))).collect();
        let most = scored.iter().map(|found| found.1).fold(least, f64::max);
        // First losses are few: which of the states that foretell them is left to all packets.
        let near = scored.into_iter().filter(|found| found.1 > most - AS_GOOD && found.1 > least);
        near.map(|(found, _)| found).max_by(|a, b| by_likelihood(a, b))
    }

    /// The likeliest rate of a bucket that packets take `cost` of.
    fn search(&self, replay: Replay) -> Option<StateCandidate> {
        let mut tried: Vec<(f64, f64)> = Vec::new();
        let mut best: Option<StateCandidate> = None;
        for centre in self.candidate_rates(replay) {
            for factor in FACTORS {
                self.attempt(replay, centre * factor, &mut tried, &mut best);
            }
        }
        let mut step_last = 0.0;
        for step in STEPS {
            for _ in 0..TRIES {
                let before = best.as_ref()?.rate?.value;
                for rate in [before * (1.0 - step), before * (1.0 + step)] {
                    self.attempt(replay, rate, &mut tried, &mut best);
                }
                if best.as_ref()?.rate?.value == before {
                    break;
                }
            }
            step_last = step;
        }
        let mut best = best?;
        let rate = best.rate?.value;
        let least = best.likelihood - RATE_NATS;
        let near =
            tried.iter().filter(|(_, likelihood)| *likelihood >= least).map(|(rate, _)| *rate);
        let low = near.clone().fold(rate, f64::min) * (1.0 - step_last);
        let high = near.fold(rate, f64::max) * (1.0 + step_last);
        best.rate = Some(Estimate { value: rate, interval: Interval { low, high } });
        Some(best)
    }

    fn attempt(
        &self,
        replay: Replay,
        rate: f64,
        tried: &mut Vec<(f64, f64)>,
        best: &mut Option<StateCandidate>,
    ) {
        if tried.iter().any(|(before, _)| (before / rate - 1.0).abs() < 1e-4) {
            return;
        }
        let values = match replay {
            Replay::Bytes { added } => excess_over_rate(self.fates, Cost::Bytes { added }, rate),
            Replay::Packets => excess_over_rate(self.fates, Cost::Packets, rate),
            Replay::Link => behind_link(self.fates, rate),
        };
        let likelihood = self.scored.likelihood(&values);
        tried.push((rate, likelihood));
        if best.as_ref().is_none_or(|best| likelihood > best.likelihood) {
            let state = match replay {
                Replay::Bytes { .. } => State::TokenDeficit,
                Replay::Packets => State::PacketService,
                Replay::Link => State::PacketsQueued,
            };
            let rate = Estimate { value: rate, interval: Interval { low: rate, high: rate } };
            *best = Some(StateCandidate { state, values, likelihood, rate: Some(rate) });
        }
    }

    /// Rates that were measured, in units of a cost each nanosecond.
    fn candidate_rates(&self, replay: Replay) -> Vec<f64> {
        let of = |ip_bytes: u32, bps: f64| {
            let bytes = f64::from(ip_bytes);
            let packets = bps / 8e9 / bytes;
            match replay {
                Replay::Bytes { added } => packets * (bytes + added),
                Replay::Packets => packets,
                Replay::Link => packets * (bytes + LINK_BYTES),
            }
        };
        let passed =
            self.loads.iter().filter(|load| is_overloaded(load) && load.received_bps > 0.0);
        let mut rates: Vec<f64> = passed.map(|load| of(load.ip_bytes, load.received_bps)).collect();
        rates.extend(self.capacity.iter().map(|found| of(found.ip_bytes, found.bps)));
        let mut apart: Vec<f64> = Vec::new();
        for rate in rates {
            if apart.iter().all(|before| (before / rate - 1.0).abs() > 0.02) {
                apart.push(rate);
            }
        }
        apart
    }

    /// Buffer or policer that the likeliest state stands for, and packets lost while it had room.
    fn overflow(
        &self,
        best: &StateCandidate,
        candidates: &[StateCandidate],
    ) -> (Option<Overflow>, Option<Background>) {
        let queue = self.queue_at_losses();
        let per_packet = capacity::is_per_packet(self.capacity);
        let waits = match best.state {
            // A load above the rate that lost nothing shows no meter: trains overran a queue.
            State::TokenDeficit => {
                queue.unwrap_or_else(|| self.passes_paced() || self.is_queueing(best))
            }
            // Packets above a rate of packets that wait behind bytes are in a queue of the link.
            State::PacketService => queue == Some(true) && !per_packet,
            State::BytesQueued | State::PacketsQueued => true,
            State::PreviousLoss | State::Nothing => false,
        };
        let is_queue = |found: &&StateCandidate| {
            matches!(found.state, State::BytesQueued | State::PacketsQueued)
        };
        let queued = candidates.iter().find(is_queue).unwrap_or(&self.shown[0]);
        let full = match best.state {
            // Bytes above the link's own rate are those that wait, where no delay tells it better.
            State::TokenDeficit if waits && best.likelihood > queued.likelihood + AS_GOOD => best,
            State::TokenDeficit | State::PacketService if waits => queued,
            _ => best,
        };
        let Some(room) = room_estimate(self.scored, &full.values) else { return (None, None) };
        // The packet on the line does not wait: it is one of those that the delays show.
        let largest = f64::from(self.capacity.first().map_or(0, |found| found.ip_bytes));
        let overflow = match full.state {
            State::PacketsQueued if per_packet => self.packet_rate(None, room),
            // What waits for a device that takes as long for each packet, in its time.
            State::BytesQueued if per_packet => {
                self.packet_rate(None, scaled_by(room, 1.0 / largest.max(1.0)))
            }
            State::PacketsQueued => Overflow::PacketBuffer { packets: reduced_by(room, 1.5) },
            State::PacketService => self.packet_rate(best.rate, room),
            _ if waits => Overflow::ByteBuffer { bytes: reduced_by(room, largest) },
            _ => {
                let rate_bps = scaled_by(best.rate.unwrap_or(room), 8e9);
                Overflow::Policer { rate_bps, burst_bytes: room }
            }
        };
        let holds = waits || full.state != State::TokenDeficit;
        let crowded = if holds { self.crowded(&overflow) } else { Vec::new() };
        (Some(overflow), self.background(full, room.value, &crowded))
    }

    /// Which packets came while others waited that would fill this share of the room, by the delays
    /// of those before and after them in the train: a sender or a device that stood still lets
    /// pass at once what came meanwhile, and a queue overflows though the load is small.
    fn crowded(&self, overflow: &Overflow) -> Vec<bool> {
        let link = link_bytes_per_ns(self.capacity);
        let room_ns = |ip_bytes: f64| match *overflow {
            Overflow::ByteBuffer { bytes } => bytes.value / link,
            Overflow::PacketBuffer { packets } => packets.value * (ip_bytes + LINK_BYTES) / link,
            Overflow::PacketRate { packets_per_s, depth_packets } => {
                depth_packets.value * 1e9 / packets_per_s.value.max(1.0)
            }
            Overflow::Policer { .. } => f64::INFINITY,
        };
        let probes = &self.fates.probes;
        let mut crowded = vec![false; probes.len()];
        let mut mark = |indices: &mut dyn Iterator<Item = usize>| {
            let mut waited = 0.0;
            let mut run = usize::MAX;
            for index in indices {
                let probe = &probes[index];
                if probe.run != run {
                    (run, waited) = (probe.run, 0.0);
                }
                crowded[index] |= waited > LOW_SHARE * room_ns(probe.ip_bytes);
                waited = probe.delay.unwrap_or(waited);
            }
        };
        mark(&mut (0..probes.len()));
        mark(&mut (0..probes.len()).rev());
        crowded
    }

    fn packet_rate(&self, rate: Option<Estimate>, room: Estimate) -> Overflow {
        let shortest = self.capacity.last().map_or(0.0, |found| found.bps / 8e9)
            / f64::from(self.capacity.last().map_or(1, |found| found.ip_bytes));
        let by_gaps =
            Estimate { value: shortest, interval: Interval { low: shortest, high: shortest } };
        Overflow::PacketRate {
            packets_per_s: scaled_by(rate.unwrap_or(by_gaps), 1e9),
            depth_packets: reduced_by(room, 1.5),
        }
    }

    /// True when packets are lost at a queue, by the delay of the packet before each lost one: that
    /// of a full queue, or that of an idle path. `None` where this is not clear.
    fn queue_at_losses(&self) -> Option<bool> {
        let paced = || self.fates.runs.iter().filter(|run| run.offered_bps.is_some());
        let largest = self.capacity.first()?;
        let offer = |run: &&ProbeTrain| run.offered_bps.unwrap_or(f64::INFINITY);
        let quiet = paced()
            .filter(|run| run.ip_bytes == largest.ip_bytes)
            .min_by(|a, b| offer(a).total_cmp(&offer(b)))?;
        let delays = |probes: &[super::fates::TimedProbe]| {
            let mut delays: Vec<f64> = probes.iter().filter_map(|probe| probe.delay).collect();
            delays.sort_unstable_by(f64::total_cmp);
            delays
        };
        let quiet = delays(self.fates.probes_of(quiet));
        let mut before: Vec<f64> = paced()
            .flat_map(|run| self.fates.probes_of(run).windows(2))
            .filter(|pair| pair[1].delay.is_none())
            .filter_map(|pair| pair[0].delay)
            .collect();
        before.sort_unstable_by(f64::total_cmp);
        let enough = before.len() as u64 >= LOSSES_MIN;
        let at_losses = quantile(&before, 0.5).filter(|_| enough)?;
        let packet_ns = f64::from(largest.ip_bytes) * 8e9 / largest.bps;
        if at_losses > quantile(&quiet, 0.95)? + 3.0 * packet_ns {
            Some(true)
        } else if at_losses < quantile(&quiet, 0.5)? + packet_ns {
            Some(false)
        } else {
            None
        }
    }

    /// True when paced probes were sent and none of them was lost.
    fn passes_paced(&self) -> bool {
        let paced = || self.fates.runs.iter().filter(|run| run.offered_bps.is_some());
        let packets: usize = paced().map(|run| run.probes.len()).sum();
        let lost =
            |run: &ProbeTrain| self.fates.probes_of(run).iter().any(|probe| probe.delay.is_none());
        packets >= PACED_MIN && !paced().any(lost)
    }

    /// True when packets above the rate wait in a queue, up to its room.
    fn is_queueing(&self, best: &StateCandidate) -> bool {
        let Some((rate, room)) = best.rate.zip(room_estimate(self.scored, &best.values)) else {
            return true;
        };
        let room = room.value;
        let share_of = |run: &ProbeTrain| {
            let of = |index: usize| {
                let (above, delay) = (best.values[index], self.fates.probes[index].delay?);
                ((0.3 * room..room).contains(&above)).then(|| delay * rate.value / above)
            };
            run.probes.clone().filter_map(of).collect::<Vec<f64>>()
        };
        let of = |paced: bool| {
            let runs = self.fates.runs.iter().filter(|run| run.offered_bps.is_some() == paced);
            runs.flat_map(share_of).collect::<Vec<f64>>()
        };
        let mut shares = of(true);
        if shares.len() < PACED_MIN {
            shares.extend(of(false));
        }
        shares.sort_unstable_by(f64::total_cmp);
        quantile(&shares, 0.5).is_none_or(|share| share > WAITING_SHARE)
    }

    /// Losses while there was room. Where too few packets met a path at rest to show such losses,
    /// the state alone says where there was room.
    fn background(&self, full: &StateCandidate, room: f64, crowded: &[bool]) -> Option<Background> {
        let with_room = self.scored.with_state_below(&full.values, LOW_SHARE * room);
        let at_rest = with_room.without_marked(crowded);
        let expected = at_rest.len() as f64 * with_room.lost as f64 / with_room.len().max(1) as f64;
        let low = if expected >= (2 * LOSSES_MIN) as f64 { at_rest } else { with_room };
        if low.lost < LOSSES_MIN {
            return None;
        }
        let nothing = low.null_likelihood();
        let by_state = low.likelihood(&full.values);
        let since = self.since_loss();
        let by_loss = low.likelihood(&since.values);
        if by_state > nothing.max(by_loss) + MARGIN {
            return None;
        }
        Some(if by_loss > nothing + MARGIN { bursts(&low, &since) } else { random(&low) })
    }
}

fn by_likelihood(a: &StateCandidate, b: &StateCandidate) -> std::cmp::Ordering {
    a.likelihood.total_cmp(&b.likelihood)
}

/// The limit that parts lost packets from others with the fewest exceptions.
fn room_estimate(scored: &LossSamples, values: &[f64]) -> Option<Estimate> {
    let lost = scored.states_of(values, true);
    let arrived = scored.states_of(values, false);
    let wrong = |limit: f64| {
        let above = arrived.len() - arrived.partition_point(|&value| value < limit);
        above + lost.partition_point(|&value| value < limit)
    };
    // Every limit between two lost packets makes the same of them; the lowest state of either.
    let best = *lost.iter().min_by_key(|&&limit| wrong(limit))?;
    let under = arrived.partition_point(|&value| value < best);
    let below = under.checked_sub(1).map_or(best, |last| arrived[last]);
    let full: Vec<f64> = lost.iter().copied().filter(|&value| value >= best / 2.0).collect();
    Some(Estimate {
        value: f64::midpoint(best, below),
        interval: Interval { low: quantile(&full, 0.1)?.min(below), high: quantile(&full, 0.9)? },
    })
}

fn random(scored: &LossSamples) -> Background {
    Background::Random { ratio: loss_ratio(scored) }
}

fn bursts(scored: &LossSamples, since: &StateCandidate) -> Background {
    // One packet after a loss is what a burst goes on with.
    let lost = scored.states_of(&since.values, true);
    let begun = lost.iter().filter(|&&state| state != -1.0).count().max(1);
    Background::Bursts {
        ratio: loss_ratio(scored),
        burst_packets: lost.len() as f64 / begun as f64,
    }
}

fn loss_ratio(scored: &LossSamples) -> Estimate {
    let value = scored.lost as f64 / scored.len().max(1) as f64;
    let interval = wilson_interval(scored.lost, scored.len(), Z_95);
    Estimate { value, interval: interval.unwrap_or(Interval { low: 0.0, high: 1.0 }) }
}

fn reduced_by(estimate: Estimate, by: f64) -> Estimate {
    let Interval { low, high } = estimate.interval;
    let less = |value: f64| (value - by).max(0.0);
    Estimate {
        value: less(estimate.value),
        interval: Interval { low: less(low), high: less(high) },
    }
}

fn scaled_by(estimate: Estimate, by: f64) -> Estimate {
    let Interval { low, high } = estimate.interval;
    Estimate { value: estimate.value * by, interval: Interval { low: low * by, high: high * by } }
}
