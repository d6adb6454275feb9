//! Strict and typical throughput side by side, and what stands between them.
//!
//! Losses at loads that the device mostly passes are either stalls (many frames in a row, so many
//! times a second) or scattered single frames (so many in a million). Counted are trials between
//! the strict and the typical result, by a width clear of this one where there are any: below, a
//! device may ride out its stalls; above, it is overloaded.

use serde::{Deserialize, Serialize};

use super::poisson::EventRate;
use super::search::{FinishedTrial, GoalResult, MultiSearch};
use crate::record::Scattered;
use crate::stats::{Z_95, wilson_interval};

/// Frames that are missing in a row, on average, from which on losses are stalls.
const STALL_FRAMES_MIN: f64 = 2.0;

/// Times the expected loss up to which a trial lost frames in the same way, and not by overload.
const ALIKE_MAX: f64 = 10.0;

/// Reason why the strict result is below the typical one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum LossCause {
    /// The strict result is not below the typical one, within the widths of the goals.
    None,
    /// Now and then the device stops for a moment.
    Stalls {
        /// Stalls per second, with their interval.
        rate: EventRate,
        /// Frames lost each time, on average.
        frames_each: f64,
        /// Length of a stall, s: its lost frames over the load of their trial.
        seconds_each: f64,
    },
    /// Single frames are lost at all times.
    Scattered {
        /// Lost frames over sent ones.
        loss_ratio: f64,
        /// Lower end of the 95 % interval (Wilson).
        low: f64,
        /// Upper end of the 95 % interval (Wilson).
        high: f64,
    },
    /// No trial between the two results lost a frame.
    Unexplained,
}

/// Both results with the cause of their difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThroughputPair {
    /// Result without disturbances: half of the short trials pass.
    pub typical: GoalResult,
    /// Result without a single loss in long trials.
    pub strict: GoalResult,
    /// Strict over typical; `None` when either has no result.
    pub ratio: Option<f64>,
    /// Cause of the difference between the two.
    pub cause: LossCause,
}

impl ThroughputPair {
    /// Compares the two goals of [`MultiSearch::side_by_side`]; `None` for a search of another
    /// number of goals.
    pub fn from_search(search: &MultiSearch) -> Option<Self> {
        let [typical, strict] = <[GoalResult; 2]>::try_from(search.results()).ok()?;
        Some(Self::compare(typical, strict, search.trials()))
    }

    /// Compares two results by the trials that led to them.
    pub fn compare(typical: GoalResult, strict: GoalResult, trials: &[FinishedTrial]) -> Self {
        let lower = |result: &GoalResult| result.lower_fps.map(|fps| fps as f64);
        let ratio = match (lower(&strict), lower(&typical)) {
            (Some(strict), Some(typical)) if typical > 0.0 => Some(strict / typical),
            _ => None,
        };
        let width = typical.goal.width + strict.goal.width;
        let cause = match (ratio, typical.lower_fps) {
            (Some(ratio), _) if ratio >= 1.0 - width => LossCause::None,
            (_, Some(most)) => {
                let least = strict.lower_fps.unwrap_or(0);
                // Nearer to the device's capacity than the search looks, losses are overload.
                let clear = most as f64 * (1.0 - typical.goal.width);
                match find_cause(least, clear, trials) {
                    LossCause::Unexplained => find_cause(least, most as f64, trials),
                    found => found,
                }
            }
            (_, None) => LossCause::Unexplained,
        };
        Self { typical, strict, ratio, cause }
    }
}

/// Cause of the losses at loads from `least` to `most` frames per second.
fn find_cause(least: u64, most: f64, trials: &[FinishedTrial]) -> LossCause {
    let mut sum = LossSums::default();
    let within = |load: u64| load >= least && load as f64 <= most;
    let between = |tried: &&FinishedTrial| tried.counts() && within(tried.trial.load_fps);
    trials.iter().filter(between).for_each(|tried| sum.add(tried));
    if sum.events == 0 {
        return LossCause::Unexplained;
    }
    let frames_each = sum.lost as f64 / sum.events as f64;
    if frames_each >= STALL_FRAMES_MIN {
        return match EventRate::new(sum.events, sum.seconds) {
            Some(rate) => {
                let seconds_each = sum.lost_seconds / sum.events as f64;
                LossCause::Stalls { rate, frames_each, seconds_each }
            }
            None => LossCause::Unexplained,
        };
    }
    scattered_cause(&sum, least, trials).unwrap_or(LossCause::Unexplained)
}

/// Scattered loss from all trials that are not overloaded. Loads between the two results are those
/// at which the search happened to see little loss; all others at the same ratio undo that.
fn scattered_cause(near: &LossSums, least: u64, trials: &[FinishedTrial]) -> Option<LossCause> {
    let ratio = near.lost as f64 / near.sent.max(1) as f64;
    let is_alike = |tried: &&FinishedTrial| {
        let expected = ratio * tried.outcome.sent as f64;
        let lost = tried.outcome.lost_frames() as f64;
        tried.counts() && tried.trial.load_fps >= least && lost <= ALIKE_MAX * expected.max(1.0)
    };
    let mut sum = LossSums::default();
    trials.iter().filter(is_alike).for_each(|tried| sum.add(tried));
    let interval = wilson_interval(sum.lost, sum.sent, Z_95)?;
    let loss_ratio = sum.lost as f64 / sum.sent as f64;
    Some(LossCause::Scattered { loss_ratio, low: interval.low, high: interval.high })
}

/// Load over a goal's upper bound from which a trial tells whether that bound failed by overload: a
/// device whose rate it exceeds loses the difference at such a load, and not a tenth of it.
const ABOVE: f64 = 1.02;
const SHARE_OF_OVERLOAD: f64 = 0.1;

/// Scattered loss that failed a goal's upper bound: single frames are lost at every load, and loads
/// above the bound lose no more. `None` when the bound failed by overload.
pub fn scattered_above(result: &GoalResult, trials: &[FinishedTrial]) -> Option<Scattered> {
    let upper = result.upper_fps?;
    let least = result.lower_fps.unwrap_or(0);
    let longest = result.goal.final_duration_ns;
    let mut near = LossSums::default();
    let is_near = |tried: &&FinishedTrial| {
        tried.counts() && tried.trial.load_fps == upper && tried.trial.duration_ns <= longest
    };
    trials.iter().filter(is_near).for_each(|tried| near.add(tried));
    let each = near.lost as f64 / near.events.max(1) as f64;
    if near.events == 0 || each >= STALL_FRAMES_MIN {
        return None;
    }
    let is_alike = |tried: &&FinishedTrial| {
        let load = tried.trial.load_fps as f64;
        let overload = 1.0 - upper as f64 / load;
        let ratio = tried.outcome.lost_frames() as f64 / tried.outcome.sent.max(1) as f64;
        tried.counts() && load >= upper as f64 * ABOVE && ratio <= overload * SHARE_OF_OVERLOAD
    };
    let up_to = trials.iter().filter(is_alike).map(|tried| tried.trial.load_fps).max()?;
    let Some(LossCause::Scattered { loss_ratio, low, high }) =
        scattered_cause(&near, least, trials)
    else {
        return None;
    };
    Some(Scattered { loss_ratio, low, high, up_to_fps: up_to as f64 })
}

#[derive(Default)]
struct LossSums {
    events: u64,
    lost: u64,
    sent: u64,
    seconds: f64,
    lost_seconds: f64,
}

impl LossSums {
    fn add(&mut self, tried: &FinishedTrial) {
        let outcome = &tried.outcome;
        let lost = outcome.lost_frames();
        // A counter that does not know runs at least knows that there was one.
        let runs = outcome.loss_runs.unwrap_or(1).max(1);
        self.events += if lost > 0 { runs } else { 0 };
        self.lost += lost;
        self.sent += outcome.sent;
        self.seconds += outcome.elapsed_ns as f64 / 1e9;
        self.lost_seconds += lost as f64 / tried.trial.load_fps.max(1) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{Goal, LoadTrial, Status, TrialOutcome, Why};
    use super::*;

    fn result(goal: Goal, lower_fps: u64) -> GoalResult {
        GoalResult {
            goal,
            status: Status::Regular,
            lower_fps: Some(lower_fps),
            upper_fps: Some(lower_fps + 1),
            conditional_fps: None,
            offered_fps: None,
            clean_frames: 0,
            is_tester_limit: false,
            trials: 0,
            sending_ns: 0,
        }
    }

    fn finished_trial(load_fps: u64, lost: u64, runs: u64) -> FinishedTrial {
        let trial = LoadTrial {
            load_fps,
            duration_ns: 10_000_000_000,
            stop_at_lost: None,
            goal: 0,
            why: Why::Repeat,
        };
        let sent = trial.frames();
        let outcome = TrialOutcome::complete(&trial, sent, sent - lost);
        let outcome = TrialOutcome { loss_runs: Some(runs), ..outcome };
        FinishedTrial { trial, outcome, bounds: Vec::new() }
    }

    fn cause_of(strict: u64, trials: &[FinishedTrial]) -> LossCause {
        let typical = result(Goal::typical(), 1_000_000);
        ThroughputPair::compare(typical, result(Goal::strict(), strict), trials).cause
    }

    #[test]
    fn stalls_are_counted_between_the_two_results() {
        // 40 s at loads between them with 2 stalls of 800 frames; overload and low loads are not
        // counted. At 800,000 frames/s each is 1 ms.
        let trials = [
            finished_trial(800_000, 1600, 2),
            finished_trial(900_000, 0, 0),
            finished_trial(990_000, 0, 0),
            finished_trial(600_000, 0, 0),
            // At the typical result itself a few frames are too many now and then.
            finished_trial(1_000_000, 40, 40),
            finished_trial(1_100_000, 1_000_000, 1),
            finished_trial(500_000, 0, 0),
        ];
        let LossCause::Stalls { rate, frames_each, seconds_each } = cause_of(600_000, &trials)
        else {
            panic!("stalls");
        };
        assert_eq!((rate.events, rate.seconds, rate.per_second), (2, 40.0, 0.05));
        assert_eq!((frames_each, seconds_each), (800.0, 0.001));
    }

    #[test]
    fn single_frames_are_a_loss_ratio() {
        // 10^7 frames, 100 lost one by one: 1e-5, Wilson 0.82e-5 to 1.22e-5.
        let LossCause::Scattered { loss_ratio, low, high } =
            cause_of(10_000, &[finished_trial(1_000_000, 100, 100)])
        else {
            panic!("scattered");
        };
        assert_eq!(loss_ratio, 1e-5);
        assert!((low - 8.22e-6).abs() < 1e-8 && (high - 1.216e-5).abs() < 1e-8, "{low} {high}");
    }

    #[test]
    fn a_goal_that_single_losses_end_is_told_from_one_that_the_rate_ends() {
        // 254,000 fails by one in 330,000; at 330,000 frames/s it is the same: no limit of rate.
        let goal = GoalResult {
            upper_fps: Some(255_000),
            ..result(Goal::typical().with_trial_duration(10_000_000_000), 254_000)
        };
        let scattered = [
            finished_trial(255_000, 8, 8),
            finished_trial(330_000, 11, 11),
            finished_trial(350_000, 170_000, 9),
        ];
        let found = scattered_above(&goal, &scattered).expect("scattered");
        // 19 of 5,850,000 frames.
        assert!((found.loss_ratio - 19.0 / 5_850_000.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.up_to_fps, 330_000.0);
        // A device of 254,500: at 330,000 frames/s 23 % are lost.
        let overload = [finished_trial(255_000, 5000, 5000), finished_trial(330_000, 755_000, 9)];
        assert_eq!(scattered_above(&goal, &overload), None);
        // Many at a time are stalls.
        assert_eq!(
            scattered_above(
                &goal,
                &[finished_trial(255_000, 80, 2), finished_trial(330_000, 90, 2)]
            ),
            None
        );
    }

    #[test]
    fn results_within_their_widths_need_no_cause() {
        assert_eq!(cause_of(991_000, &[finished_trial(1_000_000, 100, 1)]), LossCause::None);
        assert_eq!(cause_of(900_000, &[finished_trial(1_000_000, 0, 0)]), LossCause::Unexplained);
    }
}
