//! The clock test of the studies of 1995 to 2000, done for today's clocks: what the kernel
//! claims, the smallest step, the true step, what a reading costs, and how far the host itself
//! shifts a measurement (late wake-ups, stolen time, an echo on loopback, kernel timestamps).

use std::time::Duration;

use linerate_core::record::Calibration;
use linerate_core::stats::{Moments, Sorted};
use linerate_core::time::MonoTime;
use linerate_sys::clock_facts::{self, SyncState};
use linerate_sys::stop::Stop;
use linerate_sys::{clock, sched};
use serde::Serialize;

use super::host_floor;
pub use super::host_floor::{Floor, StampHealth};
use super::tick::{self, Tick};

/// Readings for a quick calibration: 4000 at about 60 ns are a quarter of a millisecond.
const QUICK_READINGS: usize = 4_000;
/// Readings of the whole test.
const READINGS: usize = 200_000;
/// Calls of the old tools' test.
const CLASSIC_CALLS: usize = 100;
/// Readings that are timed together to find the cost of one.
const COST_CALLS: u64 = 1_000;
const COST_BATCHES: u32 = 20;
const QUICK_BATCHES: u32 = 4;
const SLEEPS: usize = 100;
const QUICK_SLEEPS: usize = 10;
const SLEEP: Duration = Duration::from_micros(100);
/// A reading later than this after the one before was held up.
const GAP_NS: u64 = 1_000;
const LONG_GAP_NS: u64 = 10_000;
/// A system call costs three times and more what the vDSO costs; between them lies the verdict.
const VDSO_RATIO: f64 = 0.6;
const FLOOR_PINGS: u64 = 5_000;
/// At some 6 µs each, 5 ms.
const QUICK_PINGS: u64 = 800;

/// How long the test may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCheckExtent {
    /// A test of about 0.3 s.
    Short,
    /// A test of about 1 s.
    Whole,
}

/// The result of the clock test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockReport {
    /// The hardware behind the clock.
    pub clocksource: Option<String>,
    /// The resolution that clock_getres(2) tells, in ns.
    pub claimed_resolution_ns: u64,
    /// Smallest difference of successive readings that is not 0.
    pub step_min_ns: Option<u64>,
    /// Median difference of successive readings.
    pub step_p50_ns: Option<u64>,
    /// The 99th percentile of the steps, in ns.
    pub step_p99_ns: Option<u64>,
    /// The 99.99th percentile of the steps, in ns.
    pub step_p9999_ns: Option<u64>,
    /// The largest step, in ns.
    pub step_max_ns: Option<u64>,
    /// The true step, and how clearly it shows (0 … 1).
    pub tick_ns: Option<f64>,
    /// Length of the mean phase vector at the true step.
    pub tick_score: Option<f64>,
    /// Cost of one reading.
    pub reading_ns: f64,
    /// Cost of one reading by a real system call.
    pub syscall_ns: f64,
    /// Readings stay in user space.
    pub vdso: bool,
    /// Differences of successive microsecond readings, as the old tools saw their clock.
    pub classic: CallTimeSpread,
    /// How late a sleep of 100 µs ends, by the usual timer slack.
    pub oversleep_p50_ns: Option<u64>,
    /// The same, 99th percentile.
    pub oversleep_p99_ns: Option<u64>,
    /// The same with a timer slack of 1 ns.
    pub oversleep_short_p50_ns: Option<u64>,
    /// Time that the reading loop was held up, over its span.
    pub stolen_ratio: f64,
    /// Hold-ups longer than 1 µs.
    pub gaps: u64,
    /// Hold-ups longer than 10 µs.
    pub gaps_long: u64,
    /// The longest hold-up, in ns.
    pub gap_max_ns: u64,
    /// Stop-and-wait echo on loopback.
    pub floor: Option<Floor>,
    /// Why there is no floor.
    pub floor_missing: Option<String>,
    /// Kernel timestamps of echoes on loopback; none where this host may not be pinged.
    pub stamps: Option<StampHealth>,
    /// Something keeps civil time right.
    pub synchronised: Option<bool>,
    /// Largest possible error of civil time.
    pub error_max_us: Option<u64>,
}

impl ClockReport {
    /// The calibration that a record keeps beside every delay.
    pub fn calibration(&self) -> Calibration {
        Calibration {
            reading_ns: self.reading_ns,
            oversleep_ns: self.oversleep_short_p50_ns,
            floor_ns: self.floor.map(|floor| floor.p50_ns),
            floor_stddev_ns: self.floor.map(|floor| floor.stddev_ns),
            floor_difference_ns: self.floor.and_then(|floor| floor.difference_ns),
        }
    }
}

/// Differences of [`CLASSIC_CALLS`] successive calls, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallTimeSpread {
    /// The smallest time of a call.
    pub min_us: u64,
    /// The arithmetic mean.
    pub mean_us: f64,
    /// The largest time of a call.
    pub max_us: u64,
    /// Differences that are 0: calls within one microsecond.
    pub zeros: u64,
}

/// Finds the step of the monotonic clock in well under 20 ms.
pub fn calibrate() -> Option<Tick> {
    tick::find_tick(&irregular_steps(QUICK_READINGS))
}

/// The calibration that a record keeps beside every delay, in about 10 ms.
pub fn quick_calibration(stop: &Stop) -> Calibration {
    let _slack = sched::ShortSlack::shorten_slack();
    let floor = host_floor::measure_floor(QUICK_PINGS, stop).ok().flatten();
    Calibration {
        reading_ns: cost_of(QUICK_BATCHES, || clock::monotonic().as_nanos()),
        oversleep_ns: Sorted::new(oversleeps(QUICK_SLEEPS)).quantile(0.5),
        floor_ns: floor.map(|floor| floor.p50_ns),
        floor_stddev_ns: floor.map(|floor| floor.stddev_ns),
        floor_difference_ns: floor.and_then(|floor| floor.difference_ns),
    }
}

/// Runs the clock test.
pub fn examine(extent: ClockCheckExtent, stop: &Stop) -> ClockReport {
    let steps = Sorted::new(reading_steps(if extent == ClockCheckExtent::Whole {
        READINGS
    } else {
        50_000
    }));
    let moving = steps.samples().partition_point(|step| *step == 0);
    let tick = calibrate();
    let reading_ns = cost_of(COST_BATCHES, || clock::monotonic().as_nanos());
    let syscall_ns = cost_of(COST_BATCHES, || clock_facts::monotonic_by_syscall().as_nanos());
    let lateness = Sorted::new(oversleeps(SLEEPS));
    let lateness_short = {
        let _slack = sched::ShortSlack::shorten_slack();
        Sorted::new(oversleeps(SLEEPS))
    };
    let span = if extent == ClockCheckExtent::Whole { 700 } else { 100 };
    let stolen = Stolen::measure_over(Duration::from_millis(span));
    let sync = clock_facts::sync_state().ok();
    let (floor, floor_missing) = match host_floor::measure_floor(FLOOR_PINGS, stop) {
        Ok(Some(floor)) => (Some(floor), None),
        Ok(None) => (None, Some("127.0.0.1 does not answer".to_owned())),
        Err(failure) => (None, Some(failure.to_string())),
    };
    ClockReport {
        clocksource: clock_facts::clocksource(),
        claimed_resolution_ns: clock_facts::claimed_resolution_ns(),
        step_min_ns: steps.samples().get(moving).copied(),
        step_p50_ns: steps.quantile(0.5),
        step_p99_ns: steps.quantile(0.99),
        step_p9999_ns: steps.quantile(0.9999),
        step_max_ns: steps.quantile(1.0),
        tick_ns: tick.map(|tick| tick.step_ns),
        tick_score: tick.map(|tick| tick.score),
        reading_ns,
        syscall_ns,
        vdso: reading_ns < syscall_ns * VDSO_RATIO,
        classic: classic(),
        oversleep_p50_ns: lateness.quantile(0.5),
        oversleep_p99_ns: lateness.quantile(0.99),
        oversleep_short_p50_ns: lateness_short.quantile(0.5),
        stolen_ratio: stolen.lost_ns as f64 / stolen.span_ns.max(1) as f64,
        gaps: stolen.gaps,
        gaps_long: stolen.gaps_long,
        gap_max_ns: stolen.gap_max_ns,
        floor,
        floor_missing,
        stamps: host_floor::stamps(stop).ok(),
        synchronised: sync.map(|sync: SyncState| sync.synchronised),
        error_max_us: sync.map(|sync| sync.error_max_us),
    }
}

/// Differences of readings as fast as they can be made.
fn reading_steps(count: usize) -> Vec<u64> {
    let mut times = vec![MonoTime::default(); count + 1];
    for time in &mut times {
        *time = clock::monotonic();
    }
    differences(&times)
}

/// Differences of readings with work of irregular length between them, so that all phases of the
/// clock's step are met.
fn irregular_steps(count: usize) -> Vec<u64> {
    let mut times = vec![MonoTime::default(); count + 1];
    let mut state = 1u32;
    for time in &mut times {
        // Knuth's multiplicative generator; its high bits choose 0 to 31 rounds.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for round in 0..state >> 27 {
            std::hint::black_box(round);
        }
        *time = clock::monotonic();
    }
    differences(&times)
}

fn differences(times: &[MonoTime]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1].nanos_since(pair[0])).collect()
}

/// The cheapest of several batches: what else runs can only add to a batch.
fn cost_of(batches: u32, mut read: impl FnMut() -> u64) -> f64 {
    let batch = |_| {
        let start = clock::monotonic();
        for _ in 0..COST_CALLS {
            std::hint::black_box(read());
        }
        clock::monotonic().nanos_since(start) as f64 / COST_CALLS as f64
    };
    (0..batches).map(batch).fold(f64::INFINITY, f64::min)
}

fn classic() -> CallTimeSpread {
    let times: Vec<u64> = (0..=CLASSIC_CALLS).map(|_| clock_facts::wall_micros()).collect();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let moments: Moments = steps.iter().map(|step| *step as f64).collect();
    CallTimeSpread {
        min_us: steps.iter().copied().min().unwrap_or(0),
        mean_us: moments.mean().unwrap_or(0.0),
        max_us: steps.iter().copied().max().unwrap_or(0),
        zeros: steps.iter().filter(|step| **step == 0).count() as u64,
    }
}

fn oversleeps(count: usize) -> Vec<u64> {
    (0..count)
        .map(|_| {
            let end = clock::monotonic() + SLEEP;
            clock::sleep_until(end);
            clock::monotonic().nanos_since(end)
        })
        .collect()
}

/// The hold-ups that a loop saw that does nothing but read the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Stolen {
    span_ns: u64,
    lost_ns: u64,
    gaps: u64,
    gaps_long: u64,
    gap_max_ns: u64,
}

impl Stolen {
    fn measure_over(span: Duration) -> Self {
        let start = clock::monotonic();
        let end = start + span;
        let mut stolen = Self::default();
        let mut before = start;
        while before < end {
            let now = clock::monotonic();
            let step_ns = now.nanos_since(before);
            if step_ns > GAP_NS {
                stolen.gaps += 1;
                stolen.gaps_long += u64::from(step_ns > LONG_GAP_NS);
                stolen.lost_ns += step_ns;
                stolen.gap_max_ns = stolen.gap_max_ns.max(step_ns);
            }
            before = now;
        }
        stolen.span_ns = before.nanos_since(start);
        stolen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_calibration_finds_a_step_no_coarser_than_a_microsecond() {
        // Clocks of current hosts step by 0.3 to 84 ns (tsc, arch timer, kvm-clock, hpet 70 ns).
        let tick = calibrate().expect("4000 readings");
        assert!((1.0..1000.0).contains(&tick.step_ns), "{tick:?}");
    }

    #[test]
    fn the_report_is_consistent_with_itself() {
        let report = examine(ClockCheckExtent::Short, &Stop::new());
        assert!(report.step_min_ns <= report.step_p50_ns.max(Some(1)));
        assert!(report.step_p50_ns <= report.step_p99_ns);
        assert!(report.step_p99_ns <= report.step_max_ns);
        assert!(report.reading_ns > 0.0 && report.syscall_ns > 0.0);
        assert!((0.0..=1.0).contains(&report.stolen_ratio), "{report:?}");
        assert!(report.floor.is_some() != report.floor_missing.is_some(), "{report:?}");
        assert_eq!(report.floor.is_some(), report.stamps.is_some(), "{report:?}");
        if let Some(stamps) = report.stamps {
            assert!(stamps.split <= stamps.paired && stamps.paired <= stamps.answered);
        }
    }

    #[test]
    fn the_quick_one_agrees_with_the_whole_about_what_can_be_found() {
        let quick = quick_calibration(&Stop::new());
        assert!(quick.reading_ns > 0.0 && quick.oversleep_ns.is_some(), "{quick:?}");
        assert_eq!(quick.floor_ns.is_some(), quick.floor_difference_ns.is_some(), "{quick:?}");
    }
}
