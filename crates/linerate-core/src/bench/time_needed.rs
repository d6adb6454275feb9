//! How long a test will take, before it starts.
//!
//! Trials times sending and waiting. How many trials a search needs depends on the device: given
//! are the usual number, for a device that shows no whims between half of the largest load and
//! all of it, and the most that halving could need. Source: RFC 2544 §23 (waits).

use std::ops::Add;
use std::time::Duration;

use super::search::{Goal, Range};

/// Waits around the sending of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// After a routing update.
    pub routing: Duration,
    /// After learning frames.
    pub learning: Duration,
    /// For frames that are still under way.
    pub stragglers: Duration,
    /// Until the device is itself again.
    pub settle: Duration,
}

impl Waits {
    /// RFC 2544 §23 for a device without routing protocol: 2 s, 2 s and 5 s.
    pub const RFC_2544: Self = Self {
        routing: Duration::ZERO,
        learning: Duration::from_secs(2),
        stragglers: Duration::from_secs(2),
        settle: Duration::from_secs(5),
    };

    /// All of them together.
    pub fn total(self) -> Duration {
        self.routing + self.learning + self.stragglers + self.settle
    }
}

/// Trials and time of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Usual trials.
    pub trials: u64,
    /// Usual time.
    pub time: Duration,
    /// Most trials, short of repeated ones.
    pub trials_max: u64,
    /// Their time.
    pub time_max: Duration,
}

impl Needed {
    /// So many trials of one length.
    pub fn fixed(trials: u64, duration_ns: u64, waits: Waits) -> Self {
        Self::between((trials, trials), duration_ns, waits)
    }

    fn between((usual, most): (u64, u64), duration_ns: u64, waits: Waits) -> Self {
        let each = Duration::from_nanos(duration_ns) + waits.total();
        let time = |trials: u64| each.saturating_mul(u32::try_from(trials).unwrap_or(u32::MAX));
        Self { trials: usual, time: time(usual), trials_max: most, time_max: time(most) }
    }

    /// A binary search: the maximum and the halvings.
    pub fn binary(goal: &Goal, range: Range, waits: Waits) -> Self {
        let (good, bad) = decisions(goal);
        // From half of the range on, a width of the load is half a width of the range.
        let usual = halvings(2.0 / goal.width);
        let most = halvings(range.max_fps as f64 / (goal.width * range.min_fps as f64).max(1.0));
        let most = most.max(usual);
        // Half of the loads pass; at most each needs all trials.
        let usual_trials = bad + usual.div_ceil(2) * good + usual / 2 * bad;
        let trials = (usual_trials, (1 + most) * goal.trials_max().max(good).max(bad));
        Self::between(trials, goal.final_duration_ns, waits)
    }

    /// Several goals over one set of trials: one trial at the maximum, then for each goal a load
    /// that passes and one that fails, and one more.
    pub fn multi(goals: &[Goal], range: Range, waits: Waits) -> Self {
        let of = |goal: &Goal| {
            let (good, bad) = decisions(goal);
            let halvings = halvings(1.0 / goal.width)
                + halvings((range.max_fps as f64 / range.min_fps.max(1) as f64).log2().max(1.0));
            let most = (2 + halvings) * goal.trials_max().max(good).max(bad);
            Self::between((good + 2 * bad, most), goal.final_duration_ns, waits)
        };
        let first = goals.first().map_or(0, |goal| goal.final_duration_ns);
        goals.iter().map(of).fold(Self::fixed(1, first, waits), Self::add)
    }

    /// Steps down from the maximum, to the bottom at most.
    pub fn step_down(step_share: f64, clean: u64, duration_ns: u64, waits: Waits) -> Self {
        let steps = halved_count((1.0 / step_share).ceil());
        let most = steps + clean;
        Self::between(((steps / 2 + clean).min(most), most), duration_ns, waits)
    }
}

impl Add for Needed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            time: self.time + other.time,
            trials_max: self.trials_max + other.trials_max,
            time_max: self.time_max + other.time_max,
        }
    }
}

/// Trials that decide a load when all of them are good, and when all are bad.
fn decisions(goal: &Goal) -> (u64, u64) {
    let trials = goal.duration_sum_ns as f64 / goal.final_duration_ns.max(1) as f64;
    let good = halved_count((trials * (1.0 - goal.exceed_ratio)).ceil());
    let bad = halved_count((trials * goal.exceed_ratio).floor()) + 1;
    (good.max(1), bad)
}

/// Halvings that bring a ratio to 1.
fn halvings(ratio: f64) -> u64 {
    halved_count(ratio.max(1.0).log2().ceil())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts that are not negative; a cast keeps within the range of the type"
)]
fn halved_count(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { min_fps: 100, max_fps: 1_488_095 };

    #[test]
    fn the_waits_of_rfc_2544_are_nine_seconds() {
        assert_eq!(Waits::RFC_2544.total(), Duration::from_secs(9));
    }

    #[test]
    fn a_strict_binary_search_takes_eleven_minutes() {
        // The maximum and log2(2 / 0.005) = 8.6: 9 halvings, each 69 s: 690 s.
        let needed = Needed::binary(&Goal::strict(), RANGE, Waits::RFC_2544);
        assert_eq!((needed.trials, needed.time), (10, Duration::from_secs(690)));
        assert!(needed.trials_max >= needed.trials);
    }

    #[test]
    fn typical_loads_are_decided_by_eleven_trials() {
        assert_eq!(decisions(&Goal::typical()), (11, 11));
        assert_eq!(decisions(&Goal::strict()), (1, 1));
        assert_eq!(decisions(&Goal::verified()), (1, 2));
        // 1 + 11 + 22 trials of 1 s without waits.
        let needed = Needed::multi(
            &[Goal::typical()],
            RANGE,
            Waits { learning: Duration::ZERO, stragglers: Duration::ZERO, ..NONE },
        );
        assert_eq!((needed.trials, needed.time), (34, Duration::from_secs(34)));
    }

    const NONE: Waits = Waits {
        routing: Duration::ZERO,
        learning: Duration::ZERO,
        stragglers: Duration::ZERO,
        settle: Duration::ZERO,
    };

    #[test]
    fn a_loss_curve_in_tenths_has_at_most_twelve_points() {
        let needed = Needed::step_down(0.1, 2, 60_000_000_000, NONE);
        assert_eq!((needed.trials, needed.trials_max), (7, 12));
    }

    #[test]
    fn tests_add_up() {
        let each = Needed::fixed(20, 120_000_000_000, Waits::RFC_2544);
        assert_eq!((each + each).time, Duration::from_secs(2 * 20 * 129));
    }
}
