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
/// So many times as far off as any before, a value leans on none of them.
const FAR: f64 = 3.0;
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
pub struct LevelChange {
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

impl LevelChange {
    /// The level since over the level before.
    pub fn level_ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// What a value did to what is known of its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeriesFinding {
    /// It varies as before, or too little is known yet.
    Steady,
    /// Further values at once would tell whether this lasts.
    Suspected,
    /// It changed.
    Changed(LevelChange),
}

/// A value of a watched series.
#[derive(Clone, Copy, Debug)]
struct WatchedValue {
    at_s: f64,
    /// Natural logarithm of the value.
    log: f64,
    /// Number of the level that it belongs to.
    level: u64,
}

/// A watched series. The same values in the same order give the same findings, so that a program
/// that was started anew reads the stored series again.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The last values, the oldest first.
    window: VecDeque<WatchedValue>,
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
    pub fn add(&mut self, point: Point) -> SeriesFinding {
        let Point { at_s, value } = point;
        if !(value > 0.0 && value.is_finite()) {
            return SeriesFinding::Steady;
        }
        self.since = self.since.min(at_s);
        self.look_back(at_s);
        let score = self.value_score(at_s, value.ln());
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(WatchedValue { at_s, log: value.ln(), level: self.level });
        let Some(score) = score else { return SeriesFinding::Steady };
        self.up = (self.up + score - REFERENCE).max(0.0);
        self.down = (self.down - score - REFERENCE).max(0.0);
        let counted = |sum: f64, open: usize| if sum > 0.0 { open + 1 } else { 0 };
        self.open = (counted(self.up, self.open.0), counted(self.down, self.open.1));
        match self.up.max(self.down) {
            sum if sum >= CHANGED => self.changed(),
            sum if sum >= SUSPECT => SeriesFinding::Suspected,
            _ => SeriesFinding::Steady,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 24")]
    fn hour_of_day(at_s: f64) -> usize {
        ((at_s.rem_euclid(DAY_S) / 3600.0) as usize).min(23)
    }

    fn offset(&self, at_s: f64) -> f64 {
        self.season[Self::hour_of_day(at_s)]
    }

    /// The median of the first `count` values, those that are of a level, without the hour.
    fn level_of(&self, level: u64, count: usize) -> Option<f64> {
        let mine = self.window.iter().take(count).filter(|value| value.level == level);
        median(mine.map(|value| value.log - self.offset(value.at_s)).collect())
    }

    /// The normal score of a value among what varies; none while too little is known.
    fn value_score(&mut self, at_s: f64, log: f64) -> Option<f64> {
        if self.window.len() < VALUES_MIN || at_s - self.since < self.learn_s {
            return None;
        }
        let settled = self.settled();
        let mut numbers: Vec<u64> =
            self.window.iter().take(settled).map(|value| value.level).collect();
        numbers.dedup();
        let known =
            numbers.iter().filter_map(|number| Some((*number, self.level_of(*number, settled)?)));
        self.levels = known.collect();
        let now = self.known_level(self.level)?;
        let before = || self.window.iter().take(settled);
        let count = before().filter(|value| value.level == self.level).count() as f64;
        let residuals: Vec<f64> = before().filter_map(|value| self.value_residual(value)).collect();
        // A level that few values show is not known better than they are (the variance of a
        // median is pi/2 of that of a mean).
        let off = (log - self.offset(at_s) - now) / (1.0 + 1.57 / count).sqrt();
        let below = residuals.iter().filter(|residual| **residual < off).count() as f64;
        let equal = residuals.iter().filter(|residual| **residual == off).count() as f64;
        let rank = (below + equal / 2.0 + 0.5) / (residuals.len() as f64 + 1.0);
        // What lies thrice as far off as anything before leans on none of it.
        let farthest = residuals.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        let leaning = if off.abs() > FAR * farthest { 1.0 } else { self.leaning };
        Some(normal_score(rank) / leaning)
    }

    /// How many of the values tell how the path was: all but those of a sum that has not come back
    /// to 0. Among its own kind the tenth value of a step would be nothing special.
    fn settled(&self) -> usize {
        let open = if self.up >= self.down { self.open.0 } else { self.open.1 };
        let settled = self.window.len().saturating_sub(open);
        let of_level = self.window.iter().take(settled).any(|value| value.level == self.level);
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
        let rests: Vec<f64> =
            self.window.iter().filter_map(|value| self.value_residual(value)).collect();
        self.leaning = leaning(&rests);
    }

    /// The level of a number that the window has values of.
    fn known_level(&self, level: u64) -> Option<f64> {
        self.levels.iter().find(|(of, _)| *of == level).map(|(_, value)| *value)
    }

    /// The logarithm of a value without its level and its hour.
    fn value_residual(&self, value: &WatchedValue) -> Option<f64> {
        let level = self.known_level(value.level)?;
        Some(value.log - self.offset(value.at_s) - level)
    }

    /// True if the hour of the day tells anything of a value, by the ranks of eight parts of the
    /// day. Where it does not, the offset of an hour would be noise of forty values that all values
    /// of the hour share, and the short tail of skewed values lies within it.
    fn cycles(&self) -> bool {
        let part = |value: &WatchedValue| {
            let level = self.known_level(value.level)?;
            Some((Self::hour_of_day(value.at_s) * PARTS / 24, value.log - level))
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
        let apart = seen.map(|(seen, sum)| seen * (sum / seen - (count + 1.0) / 2.0).powi(2));
        let between = 12.0 / (count * (count + 1.0)) * apart.sum::<f64>();
        // Values that lean on those before tell less than as many that do not.
        between / self.leaning.powi(2) > CYCLES
    }

    fn seasons(&self) -> [f64; 24] {
        let mut hours: [Vec<f64>; 24] = std::array::from_fn(|_| Vec::new());
        for value in &self.window {
            let Some(level) = self.known_level(value.level) else { continue };
            hours[Self::hour_of_day(value.at_s)].push(value.log - level);
        }
        std::array::from_fn(|hour| {
            let near = [23, 0, 1].iter().flat_map(|by| hours[(hour + by) % 24].iter().copied());
            let near: Vec<f64> = near.collect();
            let enough = near.len() >= HOUR_MIN;
            enough.then(|| median(near)).flatten().unwrap_or_default()
        })
    }

    /// Dates the change and begins a new level with it.
    fn changed(&mut self) -> SeriesFinding {
        let Some(before) = self.known_level(self.level) else { return SeriesFinding::Steady };
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
        let Some((first, most)) = best else { return SeriesFinding::Steady };
        let near =
            told.iter().filter(|(_, tells)| *tells >= most - DATE_SLACK).map(|place| place.0);
        let (earliest, latest) =
            near.fold((first, first), |(low, high), place| (low.min(place), high.max(place)));
        self.level += 1;
        let level = self.level;
        self.window.iter_mut().skip(first).for_each(|value| value.level = level);
        let Some(after) = self.level_of(level, WINDOW) else { return SeriesFinding::Steady };
        let at = |place: usize| self.window[place].at_s;
        let change = LevelChange {
            at_s: at(first),
            between_s: (at(earliest), at(latest)),
            before: before.exp(),
            after: after.exp(),
            values: self.window.len() - first,
        };
        if (after - before).abs() < self.least {
            return SeriesFinding::Steady;
        }
        SeriesFinding::Changed(change)
    }

    /// The places of the last values of this level, with their scores against the level before.
    fn recent_scores(&self, before: f64) -> Vec<(usize, f64)> {
        let mut residuals: Vec<f64> =
            self.window.iter().filter_map(|value| self.value_residual(value)).collect();
        residuals.sort_unstable_by(f64::total_cmp);
        let places = (0..self.window.len()).rev().take(DATED_WITHIN);
        let mine = places.take_while(|place| self.window[*place].level == self.level);
        let mut scored: Vec<(usize, f64)> = mine
            .map(|place| {
                let value = self.window[place];
                let off = value.log - self.offset(value.at_s) - before;
                let below = residuals.partition_point(|residual| *residual < off) as f64;
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
mod tests;
