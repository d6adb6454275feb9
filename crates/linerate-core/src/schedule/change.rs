//! Finds lasting changes of a series that is measured again and again: a rate, a delay.
//!
//! Each value is ranked among the values of two weeks before it, after the hour of the day (where
//! it tells anything) and the level of its time were taken out, and its rank becomes a normal
//! score. So heavy tails, units and the shape of the noise do not matter: of values that only vary,
//! the scores are those of a normal variable whatever the path. Two one-sided cumulative sums of
//! the scores (Page, Continuous Inspection Schemes, Biometrika 41, 1954) rise while values stay on
//! one side. A sum that reaches [`SUSPECT`] asks for further runs at once; one that reaches
//! [`CHANGED`] is a change. The change is dated where the scores since then speak loudest.
//!
//! Left out: cycles of a week, and slow drifts, which the level follows.

use std::collections::VecDeque;

/// Values that one is ranked among: two weeks of one an hour.
const WINDOW: usize = 336;
/// Nothing is suspected before so many values, and before [`SPAN_MIN_S`].
const VALUES_MIN: usize = 24;
/// A series has shown most of what it does by itself after two days.
const SPAN_MIN_S: f64 = 2.0 * DAY_S;
const DAY_S: f64 = 86_400.0;
/// The hour of the day is taken out once so long was seen.
const SEASON_MIN_S: f64 = 5.0 * DAY_S;
/// Fewest values that the offset of an hour rests on, its neighbours' included.
const HOUR_MIN: usize = 6;
/// Parts of the day that are looked at for a cycle.
const PARTS: usize = 8;
/// From this on they differ: one in a thousand days without a cycle looks so (chi-squared with
/// seven degrees of freedom, for the statistic of Kruskal and Wallis, J. Am. Stat. Assoc. 47,
/// 1952).
const CYCLES: f64 = 24.3;
/// What a score has to exceed to count: half of the smallest change that should be found soon
/// (Page's reference value), 1.6 standard deviations.
const REFERENCE: f64 = 0.8;
/// From this sum on a change is suspected: two further runs at once cost little.
pub const SUSPECT: f64 = 3.0;
/// Further runs for one suspicion.
pub const FURTHER_RUNS: u32 = 2;
/// From this sum on it is a change.
pub const CHANGED: f64 = 7.0;
/// Values that follow one another may lean the same way, up to so many apart.
const LAGS: usize = 6;
/// What this leaning is seen as where there is none.
const LEANS_BY_CHANCE: f64 = 0.2;
/// Values in which the begin of a change is looked for.
const DATED_WITHIN: usize = 96;
/// Twice the logarithm of the likelihood by which places of the begin may differ (95 % of a
/// chi-squared variable with one degree of freedom).
const DATE_SLACK: f64 = 3.84;

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since 1970-01-01 UTC.
    pub at_s: f64,
    /// The value, above 0.
    pub value: f64,
}

/// A lasting change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Time of the first value after it.
    pub at_s: f64,
    /// The earliest and the latest time that the first value after it may have.
    pub between_s: (f64, f64),
    /// The level before.
    pub before: f64,
    /// The level since.
    pub after: f64,
    /// Values since.
    pub values: usize,
}

impl Change {
    /// The level since over the level before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// What a value did to what is known of its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// It varies as before, or too little is known yet.
    Steady,
    /// Further values at once would tell whether this lasts.
    Suspected,
    /// It changed.
    Changed(Change),
}

/// A watched series. The same values in the same order give the same findings, so that a program
/// that was started anew reads the stored series again.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Logarithms, with the number of the level that each belongs to.
    window: VecDeque<(f64, f64, u64)>,
    /// The level now, and that before it.
    level: u64,
    levels: Vec<(u64, f64)>,
    season: [f64; 24],
    looked_at: f64,
    /// The standard deviation of a mean of values over what it were if none leant on another.
    leaning: f64,
    since: f64,
    up: f64,
    down: f64,
    /// Values since either sum left 0, which say nothing of how the path was before.
    open: (usize, usize),
    least: f64,
    /// Seconds before anything is suspected.
    learn_s: f64,
}

impl Watch {
    /// A series without values; changes by less than the share `least` (0.05: by 5 %) are taken in
    /// without a word.
    pub fn new(least: f64) -> Self {
        Self {
            window: VecDeque::with_capacity(WINDOW),
            level: 0,
            levels: Vec::new(),
            season: [0.0; 24],
            looked_at: f64::NEG_INFINITY,
            leaning: 1.0,
            since: f64::INFINITY,
            up: 0.0,
            down: 0.0,
            open: (0, 0),
            least: least.ln_1p(),
            learn_s: SPAN_MIN_S,
        }
    }

    /// The same that suspects nothing for so many seconds; two days are usual, for a series has
    /// shown most of what it does by itself by then.
    pub fn learning(self, learn_s: f64) -> Self {
        Self { learn_s, ..self }
    }

    /// Takes the next value; one that is not above 0 is none.
    pub fn add(&mut self, point: Point) -> Finding {
        let Point { at_s, value } = point;
        if !(value > 0.0 && value.is_finite()) {
            return Finding::Steady;
        }
        self.since = self.since.min(at_s);
        self.look_back(at_s);
        let score = self.score(at_s, value.ln());
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back((at_s, value.ln(), self.level));
        let Some(score) = score else { return Finding::Steady };
        self.up = (self.up + score - REFERENCE).max(0.0);
        self.down = (self.down - score - REFERENCE).max(0.0);
        let counted = |sum: f64, open: usize| if sum > 0.0 { open + 1 } else { 0 };
        self.open = (counted(self.up, self.open.0), counted(self.down, self.open.1));
        match self.up.max(self.down) {
            sum if sum >= CHANGED => self.changed(),
            sum if sum >= SUSPECT => Finding::Suspected,
            _ => Finding::Steady,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 24")]
    fn hour(at_s: f64) -> usize {
        ((at_s.rem_euclid(DAY_S) / 3600.0) as usize).min(23)
    }

    fn offset(&self, at_s: f64) -> f64 {
        self.season[Self::hour(at_s)]
    }

    /// The median of the first `count` values, those that are of a level, without the hour.
    fn level_of(&self, level: u64, count: usize) -> Option<f64> {
        let of = self.window.iter().take(count).filter(|(.., of)| *of == level);
        median(of.map(|(at_s, log, _)| log - self.offset(*at_s)).collect())
    }

    /// The normal score of a value among what varies; none while too little is known.
    fn score(&mut self, at_s: f64, log: f64) -> Option<f64> {
        if self.window.len() < VALUES_MIN || at_s - self.since < self.learn_s {
            return None;
        }
        let settled = self.settled();
        let mut numbers: Vec<u64> =
            self.window.iter().take(settled).map(|(.., level)| *level).collect();
        numbers.dedup();
        let known = numbers.iter().filter_map(|it| Some((*it, self.level_of(*it, settled)?)));
        self.levels = known.collect();
        let now = self.known_level(self.level)?;
        let before = || self.window.iter().take(settled);
        let count = before().filter(|(.., level)| *level == self.level).count() as f64;
        let residuals: Vec<f64> = before().filter_map(|it| self.rest(it)).collect();
        // A level that few values show is not known better than they are (the variance of a
        // median is pi/2 of that of a mean).
        let off = (log - self.offset(at_s) - now) / (1.0 + 1.57 / count).sqrt();
        let below = residuals.iter().filter(|it| **it < off).count() as f64;
        let equal = residuals.iter().filter(|it| **it == off).count() as f64;
        let rank = (below + equal / 2.0 + 0.5) / (residuals.len() as f64 + 1.0);
        Some(normal_score(rank) / self.leaning)
    }

    /// How many of the values tell how the path was: all but those of a sum that has not come back
    /// to 0. Among its own kind the tenth value of a step would be nothing special.
    fn settled(&self) -> usize {
        let open = if self.up >= self.down { self.open.0 } else { self.open.1 };
        let settled = self.window.len().saturating_sub(open);
        let of_level = self.window.iter().take(settled).any(|(.., level)| *level == self.level);
        if settled >= VALUES_MIN && of_level { settled } else { self.window.len() }
    }

    /// Once a day: what each hour of the day adds, and how much values lean on those before.
    fn look_back(&mut self, at_s: f64) {
        if self.levels.is_empty() || at_s - self.looked_at < DAY_S {
            return;
        }
        self.looked_at = at_s;
        if at_s - self.since >= SEASON_MIN_S {
            self.season = if self.cycles() { self.seasons() } else { [0.0; 24] };
        }
        let rests: Vec<f64> = self.window.iter().filter_map(|it| self.rest(it)).collect();
        self.leaning = leaning(&rests);
    }

    /// The level of a number that the window has values of.
    fn known_level(&self, level: u64) -> Option<f64> {
        self.levels.iter().find(|(of, _)| *of == level).map(|(_, value)| *value)
    }

    /// A value without its level and its hour.
    fn rest(&self, (at_s, log, level): &(f64, f64, u64)) -> Option<f64> {
        self.known_level(*level).map(|level| log - self.offset(*at_s) - level)
    }

    /// Whether the hour of the day tells anything of a value, by the ranks of eight parts of the
    /// day. Where it does not, the offset of an hour would be noise of forty values that all values
    /// of the hour share, and the short tail of skewed values lies within it.
    fn cycles(&self) -> bool {
        let part = |it: &(f64, f64, u64)| {
            Some((Self::hour(it.0) * PARTS / 24, it.1 - self.known_level(it.2)?))
        };
        let mut values: Vec<(usize, f64)> = self.window.iter().filter_map(part).collect();
        values.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        let mut parts = [(0.0, 0.0); PARTS];
        for (rank, (part, _)) in values.iter().enumerate() {
            parts[*part].0 += 1.0;
            parts[*part].1 += rank as f64 + 1.0;
        }
        let count = values.len() as f64;
        let seen = parts.iter().filter(|(seen, _)| *seen > 0.0);
        let apart = |(seen, sum): &(f64, f64)| seen * (sum / seen - (count + 1.0) / 2.0).powi(2);
        let between = 12.0 / (count * (count + 1.0)) * seen.map(apart).sum::<f64>();
        // Values that lean on those before tell less than as many that do not.
        between / self.leaning.powi(2) > CYCLES
    }

    fn seasons(&self) -> [f64; 24] {
        let mut hours: [Vec<f64>; 24] = std::array::from_fn(|_| Vec::new());
        for (at_s, log, level) in &self.window {
            let Some(level) = self.known_level(*level) else { continue };
            hours[Self::hour(*at_s)].push(log - level);
        }
        std::array::from_fn(|hour| {
            let near = [23, 0, 1].iter().flat_map(|by| hours[(hour + by) % 24].iter().copied());
            let near: Vec<f64> = near.collect();
            let enough = near.len() >= HOUR_MIN;
            enough.then(|| median(near)).flatten().unwrap_or_default()
        })
    }

    /// Dates the change and begins a new level with it.
    fn changed(&mut self) -> Finding {
        let Some(before) = self.known_level(self.level) else { return Finding::Steady };
        let scored = self.recent_scores(before);
        let (up, down) = (self.up, self.down);
        (self.up, self.down) = (0.0, 0.0);
        self.open = (0, 0);
        let sign = if up >= down { 1.0 } else { -1.0 };
        let mut sum = 0.0;
        let mut best: Option<(usize, f64)> = None;
        let mut told = Vec::new();
        for (count, (place, score)) in scored.iter().rev().enumerate() {
            sum += sign * score;
            let tells = if sum > 0.0 { sum * sum / (count + 1) as f64 } else { 0.0 };
            told.push((*place, tells));
            if best.is_none_or(|(_, most)| tells > most) {
                best = Some((*place, tells));
            }
        }
        let Some((first, most)) = best else { return Finding::Steady };
        let near = told.iter().filter(|(_, tells)| *tells >= most - DATE_SLACK).map(|it| it.0);
        let (earliest, latest) =
            near.fold((first, first), |(low, high), place| (low.min(place), high.max(place)));
        self.level += 1;
        let level = self.level;
        self.window.iter_mut().skip(first).for_each(|it| it.2 = level);
        let Some(after) = self.level_of(level, WINDOW) else { return Finding::Steady };
        let at = |place: usize| self.window[place].0;
        let change = Change {
            at_s: at(first),
            between_s: (at(earliest), at(latest)),
            before: before.exp(),
            after: after.exp(),
            values: self.window.len() - first,
        };
        if (after - before).abs() < self.least {
            return Finding::Steady;
        }
        Finding::Changed(change)
    }

    /// The places of the last values of this level, with their scores against the level before.
    fn recent_scores(&self, before: f64) -> Vec<(usize, f64)> {
        let mut residuals: Vec<f64> = self.window.iter().filter_map(|it| self.rest(it)).collect();
        residuals.sort_unstable_by(f64::total_cmp);
        let places = (0..self.window.len()).rev().take(DATED_WITHIN);
        let mine = places.take_while(|place| self.window[*place].2 == self.level);
        let mut scored: Vec<(usize, f64)> = mine
            .map(|place| {
                let (at, log, _) = self.window[place];
                let off = log - self.offset(at) - before;
                let below = residuals.partition_point(|it| *it < off) as f64;
                (place, normal_score((below + 0.5) / (residuals.len() as f64 + 1.0)))
            })
            .collect();
        scored.reverse();
        scored
    }
}

/// The square root of the sum of autocorrelations, with Bartlett's weights, of the ranks of these
/// values; 1 where they are independent (Newey and West, Econometrica 55, 1987).
fn leaning(values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut scores = vec![0.0; values.len()];
    for (rank, place) in order.into_iter().enumerate() {
        scores[place] = normal_score((rank as f64 + 0.5) / values.len() as f64);
    }
    let power: f64 = scores.iter().map(|score| score * score).sum();
    let at_lag = |lag: usize| -> f64 {
        scores.iter().zip(scores.iter().skip(lag)).map(|(a, b)| a * b).sum()
    };
    let weight = |lag: usize| 1.0 - lag as f64 / (LAGS + 1) as f64;
    let sum: f64 = (1..=LAGS).map(|lag| 2.0 * weight(lag) * at_lag(lag)).sum();
    let whole = if power > 0.0 { 1.0 + sum / power } else { 1.0 };
    (whole - LEANS_BY_CHANCE).max(1.0).sqrt()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(if odd { upper } else { (lower + upper) / 2.0 })
}

/// The value that a standard normal variable is below with this probability, to 4.5e-4
/// (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23).
fn normal_score(share: f64) -> f64 {
    let tail = share.min(1.0 - share).max(1e-12);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let score = t - above / below;
    if share < 0.5 { -score } else { score }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Random;

    const HOUR_S: f64 = 3600.0;
    const BEGIN_S: f64 = 1.8e9;

    /// What a value of a path differs by from its level, in standard deviations.
    type Noise = fn(&mut Random, f64) -> f64;

    fn normal(random: &mut Random) -> f64 {
        (2.0_f64 * random.exponential()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
    }

    fn plain(random: &mut Random, _: f64) -> f64 {
        normal(random)
    }

    /// Student's t with three degrees of freedom, whose variance is 3.
    fn heavy(random: &mut Random, _: f64) -> f64 {
        let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
        normal(random) / squares.sqrt()
    }

    /// The values are lognormal of lognormal: a tail to one side.
    fn skewed(random: &mut Random, _: f64) -> f64 {
        normal(random).exp()
    }

    fn daily(random: &mut Random, at_s: f64) -> f64 {
        normal(random) + 1.5 * (std::f64::consts::TAU * at_s / DAY_S).sin()
    }

    /// A path of 500 Mbit/s, values 10 % apart, with a step of so many standard deviations.
    struct Path {
        noise: Noise,
        random: Random,
        step: (f64, f64),
    }

    impl Path {
        fn measure(&mut self, at_s: f64) -> Point {
            let step = if at_s >= self.step.0 { self.step.1 } else { 0.0 };
            let off = (self.noise)(&mut self.random, at_s) + step;
            Point { at_s, value: 500e6 * (0.1 * off).exp() }
        }

        /// Measures once an hour, twice more at once where a change is suspected: the changes, each
        /// with the hour in which it was found.
        fn watched(mut self, hours: u32) -> (Vec<(u32, Change)>, u32) {
            let (mut found, mut suspected) = (Vec::new(), 0);
            let mut watch = Watch::new(0.0);
            for hour in 0..hours {
                let at_s = BEGIN_S + HOUR_S * f64::from(hour);
                let mut finding = watch.add(self.measure(at_s));
                if finding == Finding::Suspected {
                    suspected += 1;
                    finding = watch.add(self.measure(at_s + 60.0));
                    if finding == Finding::Suspected {
                        finding = watch.add(self.measure(at_s + 120.0));
                    }
                }
                if let Finding::Changed(change) = finding {
                    found.push((hour, change));
                }
            }
            (found, suspected)
        }
    }

    fn path(noise: Noise, seed: u64, step: (f64, f64)) -> Path {
        Path { noise, random: Random::new(seed, 0), step }
    }

    /// Days after which the step comes.
    const STEP_HOUR: u32 = 16 * 24;

    fn stepped(noise: Noise, seed: u64, size: f64) -> Option<(u32, Change)> {
        let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
        let (found, _) = path(noise, seed, (from_s, size)).watched(STEP_HOUR + 100);
        found.into_iter().find(|(hour, _)| *hour >= STEP_HOUR)
    }

    #[test]
    fn a_normal_score_is_that_of_the_tables() {
        for (share, score) in [(0.5, 0.0), (0.975, 1.959_96), (0.001, -3.090_23), (0.9, 1.281_55)] {
            assert!((normal_score(share) - score).abs() < 4.5e-4, "{share}");
        }
    }

    #[test]
    fn what_only_varies_changes_at_most_once_a_year() {
        // A quarter of a year of each shape; `figures` has the share of many years.
        for (noise, seed) in [(plain as Noise, 3), (heavy, 4), (daily, 5), (skewed, 6)] {
            let (found, suspected) = path(noise, seed, (f64::INFINITY, 0.0)).watched(2190);
            assert!(found.is_empty(), "{found:?}");
            assert!(suspected < 40, "{suspected} pairs of further runs");
        }
    }

    #[test]
    fn a_cycle_is_taken_out_where_there_is_one_and_noise_is_not_taken_for_one() {
        let after_two_weeks = |noise| {
            let mut path = path(noise, 7, (f64::INFINITY, 0.0));
            let mut watch = Watch::new(0.0);
            for hour in 0..14 * 24 {
                watch.add(path.measure(BEGIN_S + HOUR_S * f64::from(hour)));
            }
            watch.season
        };
        assert_eq!(after_two_weeks(skewed as Noise), [0.0; 24]);
        // A sine of 0.15 in the logarithm: its highest offset is that, to what forty values tell.
        let highest = after_two_weeks(daily).into_iter().fold(0.0, f64::max);
        assert!((0.1..0.22).contains(&highest), "{highest}");
    }

    #[test]
    fn a_step_of_two_deviations_is_found_in_five_values_and_dated() {
        for noise in [plain as Noise, heavy, daily] {
            let (mut values, mut dated) = (0, 0);
            for seed in 0..30 {
                let (hour, change) = stepped(noise, 100 + seed, -2.0).expect("a found step");
                values += hour - STEP_HOUR + 1;
                let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
                dated += u32::from(change.between_s.0 <= from_s && from_s <= change.between_s.1);
                let ratio = change.ratio();
                assert!((0.65..0.95).contains(&ratio), "{ratio} for {}", (-0.2_f64).exp());
            }
            assert!(values <= 150, "{values} values for thirty steps");
            assert!(dated >= 24, "{dated} of 30 dates hold the step");
        }
    }

    #[test]
    fn a_path_that_comes_back_is_found_too_and_small_changes_are_taken_in() {
        let mut watch = Watch::new(0.05);
        let mut random = Random::new(9, 0);
        let mut found = Vec::new();
        for hour in 0..700_u32 {
            let level = match hour {
                300..360 => 50e6,
                500.. => 97e6,
                _ => 100e6,
            };
            let value = level * (0.005 * normal(&mut random)).exp();
            let at_s = BEGIN_S + HOUR_S * f64::from(hour);
            if let Finding::Changed(change) = watch.add(Point { at_s, value }) {
                found.push((hour, change));
            }
        }
        let hours: Vec<u32> = found.iter().map(|(hour, _)| *hour).collect();
        assert_eq!(hours.len(), 2, "{hours:?}: there and back, and not the 3 %");
        assert!((300..306).contains(&hours[0]) && (360..366).contains(&hours[1]), "{hours:?}");
        let (there, back) = (found[0].1.ratio(), found[1].1.ratio());
        assert!((there - 0.5).abs() < 0.01 && (back - 2.0).abs() < 0.04, "{there} {back}");
    }

    #[test]
    fn a_large_step_after_few_values_is_found_in_ten() {
        let mut values = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed, 0);
            let mut watch = Watch::new(0.05).learning(180.0);
            let mut found = None;
            for run in 0..60_u32 {
                let level = if run < 36 { 50e6 } else { 10e6 };
                let value = level * (0.02 * normal(&mut random)).exp();
                let at_s = BEGIN_S + 10.0 * f64::from(run);
                if let Finding::Changed(change) = watch.add(Point { at_s, value }) {
                    found = found.or_else(|| Some((run, change.ratio())));
                }
            }
            let (run, ratio) = found.expect("a fifth of the rate is a change");
            assert!((36..46).contains(&run) && (ratio - 0.2).abs() < 0.02, "{run} {ratio}");
            values += run - 35;
        }
        assert!(values <= 240, "{values} values for 40 steps");
    }

    #[test]
    fn values_that_are_none_are_left_out() {
        let mut watch = Watch::new(0.05);
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(watch.add(Point { at_s: BEGIN_S, value }), Finding::Steady);
        }
        assert!(watch.window.is_empty());
    }

    /// The figures of many years: `cargo test --release -p linerate-core --lib
    /// schedule::change::tests::figures -- --ignored --nocapture`.
    #[test]
    #[ignore = "many years of values, a minute in a release build"]
    fn figures() {
        let names = [
            ("normal", plain as Noise, 1.0),
            ("heavy tails", heavy, 1.0),
            ("daily", daily, 1.0),
            ("lognormal of lognormal", skewed, 1.0),
        ];
        for (name, noise, allowed) in names {
            let years = 20;
            let runs = (0..years).map(|seed| path(noise, seed, (f64::INFINITY, 0.0)).watched(8760));
            let (found, suspected) = runs
                .fold((0, 0), |(found, suspected), run| (found + run.0.len(), suspected + run.1));
            let (found, suspected) = (found as f64 / 20.0, f64::from(suspected) / 20.0);
            println!("{name}: {found:.2} false alarms, {suspected:.0} suspicions a year");
            for size in [-1.0, -2.0, -5.0] {
                let steps = (0..200).map(|seed| stepped(noise, 1000 + seed, size));
                let mut values: Vec<u32> =
                    steps.flatten().map(|(hour, _)| hour - STEP_HOUR + 1).collect();
                values.sort_unstable();
                let mean = f64::from(values.iter().sum::<u32>()) / values.len() as f64;
                let (median, count) = (values[values.len() / 2], values.len());
                println!("  {size} sd: {count} of 200, mean {mean:.1}, median {median} values");
            }
            assert!(found <= allowed, "{name}");
        }
    }
    /// The series of `figures` as they come to any detector, one value an hour without further
    /// runs, and what this one finds in them: `bench/changes` holds another beside it. Files go to
    /// the directory that `LINERATE_SERIES` names.
    #[test]
    #[ignore = "writes files for bench/changes"]
    fn series_for_others() {
        let directory = std::env::var("LINERATE_SERIES").expect("LINERATE_SERIES: a directory");
        let number = |name: &str, usual: u64| {
            std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
        };
        let (years, steps) = (number("YEARS", 5), number("STEPS", 20));
        let write = |file: &str, lines: &[String]| {
            std::fs::write(format!("{directory}/{file}"), lines.join("\n")).expect("room");
        };
        let mut found = Vec::new();
        let shapes =
            [("normal", plain as Noise), ("heavy", heavy), ("daily", daily), ("lognormal", skewed)];
        for (name, noise) in shapes {
            let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
            let none = (0..years).map(|seed| (seed, 0.0, 8760));
            let sizes = [-1.0, -2.0, -5.0];
            let stepped = sizes
                .into_iter()
                .flat_map(|size| (0..steps).map(move |seed| (1000 + seed, size, STEP_HOUR + 100)));
            for (seed, size, hours) in none.chain(stepped) {
                let mut path = path(noise, seed, (from_s, size));
                let mut watch = Watch::new(0.0);
                let series = format!("{name}_{seed}_{}", size.abs());
                let mut values = Vec::new();
                for hour in 0..hours {
                    let point = path.measure(BEGIN_S + HOUR_S * f64::from(hour));
                    values.push(format!("{},{}", point.at_s, point.value));
                    if let Finding::Changed(change) = watch.add(point) {
                        let dated = (change.at_s - BEGIN_S) / HOUR_S;
                        found.push(format!("{series},{hour},{dated}"));
                    }
                }
                write(&format!("{series}.csv"), &values);
            }
        }
        write("ours.txt", &found);
    }
}
