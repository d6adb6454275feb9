//! How well a state foretells fates: a chance of loss that only rises with the state, fitted to
//! some of the packets and tried on the others.

use std::ops::AddAssign;

/// Parts that packets are divided into; each is foretold from the others.
const FOLDS: usize = 5;
/// Edges of the histogram from the states of lost packets, and as many from those that arrived.
const EDGES: usize = 24;
/// States that edges are taken from, of either fate.
const SAMPLES: usize = 1200;
/// Packets at the overall chance that each pool of bins begins with.
const PRIOR: f64 = 1.0;
/// Limit on a fitted chance of loss, away from 0 and from 1: some packets are lost, or arrive, for
/// reasons that the modelled state does not hold.
const CHANCE_MIN: f64 = 1e-5;

/// Packets whose fates are foretold.
#[derive(Clone, Debug, Default)]
pub(super) struct LossSamples {
    packets: Vec<LossSample>,
    /// Samples that were lost.
    pub(super) lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct LossSample {
    index: usize,
    fold: usize,
    lost: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LossCount {
    all: f64,
    lost: f64,
}

impl AddAssign for LossCount {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.lost += other.lost;
    }
}

impl std::ops::Sub for LossCount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { all: self.all - other.all, lost: self.lost - other.lost }
    }
}

impl LossCount {
    fn chance(self) -> f64 {
        (self.lost / self.all.max(f64::MIN_POSITIVE)).clamp(CHANCE_MIN, 1.0 - CHANCE_MIN)
    }

    fn likelihood(self, chance: f64) -> f64 {
        self.lost * chance.ln() + (self.all - self.lost) * (1.0 - chance).ln()
    }
}

impl LossSamples {
    /// Adds a packet of the block number `block`: packets of one block are foretold together.
    pub(super) fn add(&mut self, index: usize, block: usize, lost: bool) {
        self.packets.push(LossSample { index, fold: block % FOLDS, lost });
        self.lost += u64::from(lost);
    }

    /// Samples whose state is below `limit`.
    pub(super) fn with_state_below(&self, states: &[f64], limit: f64) -> Self {
        self.subset(|index| states[index] < limit)
    }

    /// Samples that are not marked.
    pub(super) fn without_marked(&self, marked: &[bool]) -> Self {
        self.subset(|index| !marked.get(index).is_some_and(|&marked| marked))
    }

    fn subset(&self, wanted: impl Fn(usize) -> bool) -> Self {
        let packets: Vec<LossSample> =
            self.packets.iter().copied().filter(|packet| wanted(packet.index)).collect();
        let lost = packets.iter().filter(|packet| packet.lost).count() as u64;
        Self { packets, lost }
    }

    pub(super) fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    /// States of those with this fate, rising.
    pub(super) fn states_of(&self, states: &[f64], lost: bool) -> Vec<f64> {
        let with = self.packets.iter().filter(|packet| packet.lost == lost);
        let mut found: Vec<f64> = with.map(|packet| states[packet.index]).collect();
        found.sort_unstable_by(f64::total_cmp);
        found
    }

    /// Log-likelihood in nats of the fates, each packet foretold by the histogram of the folds that
    /// it is not in.
    pub(super) fn likelihood(&self, states: &[f64]) -> f64 {
        let edges = self.bin_edges(states);
        let mut counts = vec![[LossCount::default(); FOLDS]; edges.len() + 1];
        for packet in &self.packets {
            let bin = edges.partition_point(|&edge| edge < states[packet.index]);
            counts[bin][packet.fold] +=
                LossCount { all: 1.0, lost: f64::from(u8::from(packet.lost)) };
        }
        (0..FOLDS).map(|fold| fold_likelihood(&counts, fold)).sum()
    }

    /// Log-likelihood in nats under one chance of loss for all packets, the null model.
    pub(super) fn null_likelihood(&self) -> f64 {
        let nothing = vec![0.0; self.packets.last().map_or(0, |last| last.index + 1)];
        self.likelihood(&nothing)
    }

    fn bin_edges(&self, states: &[f64]) -> Vec<f64> {
        let mut edges = Vec::with_capacity(2 * EDGES);
        for lost in [false, true] {
            let count = if lost { self.lost } else { self.len() - self.lost };
            let every = (usize::try_from(count).unwrap_or(0) / SAMPLES).max(1);
            let with = self.packets.iter().filter(|packet| packet.lost == lost);
            let mut some: Vec<f64> =
                with.step_by(every).map(|packet| states[packet.index]).collect();
            some.sort_unstable_by(f64::total_cmp);
            let quantile = |part: usize| some.get(part * some.len() / (EDGES + 1)).copied();
            edges.extend((1..=EDGES).filter_map(quantile));
        }
        edges.sort_unstable_by(f64::total_cmp);
        edges.dedup();
        edges
    }
}

fn fold_likelihood(counts: &[[LossCount; FOLDS]], fold: usize) -> f64 {
    let sum = |bin: &[LossCount; FOLDS]| {
        let mut sum = LossCount::default();
        bin.iter().for_each(|count| sum += *count);
        sum - bin[fold]
    };
    let mut all = LossCount::default();
    let others: Vec<LossCount> = counts.iter().map(sum).collect();
    others.iter().for_each(|count| all += *count);
    let chance = all.chance();
    let rising = rising(others.into_iter(), chance);
    counts.iter().zip(rising).map(|(bin, chance)| bin[fold].likelihood(chance)).sum()
}

/// The chances that only rise and are the likeliest for these counts, by pooling neighbours (Ayer
/// and others 1955). Each pool begins with [`PRIOR`] packets at the overall `chance`: one for each
/// bin would cost a state with many values more than one with few, however well it parts the fates.
fn rising(counts: impl Iterator<Item = LossCount>, chance: f64) -> Vec<f64> {
    let mut pools: Vec<(LossCount, usize)> = Vec::new();
    for count in counts {
        let mut pool = (count, 1);
        while let Some(&(before, bins)) = pools.last() {
            if before.lost * pool.0.all < pool.0.lost * before.all {
                break;
            }
            pool.0 += before;
            pool.1 += bins;
            pools.pop();
        }
        pools.push(pool);
    }
    let prior = LossCount { all: PRIOR, lost: PRIOR * chance };
    let with_prior = |mut pool: LossCount, bins: usize| {
        pool += prior;
        std::iter::repeat_n(pool.chance(), bins)
    };
    pools.into_iter().flat_map(|(pool, bins)| with_prior(pool, bins)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_fall_are_pooled() {
        // 1/4, 3/4, 1/4, 3/4: the two in the middle become 4/8; each with one packet more at 1/2.
        let counts = [1.0, 3.0, 1.0, 3.0].map(|lost| LossCount { all: 4.0, lost });
        assert_eq!(rising(counts.into_iter(), 0.5), [0.3, 0.5, 0.5, 0.7]);
    }

    #[test]
    fn the_state_that_decides_is_likelier_than_one_that_does_not() {
        // Lost above 70 of 100; the other state is the number's last digit's complement.
        let mut scored = LossSamples::default();
        let state = |index: usize| (index * 37 % 101) as f64;
        for index in 0..2000 {
            scored.add(index, index / 20, state(index) > 70.0);
        }
        let right: Vec<f64> = (0..2000).map(state).collect();
        let wrong: Vec<f64> = (0..2000).map(|index| (index * 13 % 7) as f64).collect();
        let nothing = scored.null_likelihood();
        // 30 of 101 lost: 2000 (p ln p + q ln q) = -1216 nats.
        assert!((nothing + 1216.0).abs() < 5.0, "{nothing}");
        assert!(scored.likelihood(&right) > -100.0, "{}", scored.likelihood(&right));
        assert!(scored.likelihood(&wrong) < nothing + 3.0);
    }
}
