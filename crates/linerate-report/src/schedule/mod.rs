//! What a schedule measured over days and months: its tasks, its series on one time axis, gaps with
//! their reasons, and what happened.

mod pages;
mod sentences;
mod smoke;

pub(crate) use pages::span_in_words;
pub use pages::{calendar, document, plan_page};
pub(crate) use sentences::{change_in_words, utc_date_time};
pub use sentences::{change_sentence, no_data_sentence, value_with_unit};
pub use smoke::smoke_rows;

use linerate_core::schedule::EventKind;
use linerate_core::stats::Sketch;
use serde::Serialize;

/// A schedule's plan with its results at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScheduleView {
    /// Name of the plan.
    pub plan: String,
    /// Now, seconds since 1970-01-01 UTC.
    pub now_s: i64,
    /// From when on series, gaps and events are shown.
    pub from_s: i64,
    /// True while a program runs the schedule.
    pub running: bool,
    /// Its tasks, as the plan has them.
    pub tasks: Vec<TaskView>,
    /// Events, the oldest first.
    pub events: Vec<EventView>,
    /// Alerts that are open now, each in a sentence.
    pub alerts: Vec<String>,
}

/// A task as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskView {
    /// Name of the task.
    pub name: String,
    /// Its command without `linerate`.
    pub run: String,
    /// Begin of its last run, seconds since 1970-01-01 UTC.
    pub last_s: Option<i64>,
    /// Begin of the last one with a result.
    pub last_good_s: Option<i64>,
    /// Begin of the next one by the calendar.
    pub next_s: Option<i64>,
    /// Runs with a result in the time that is shown.
    pub good: usize,
    /// Runs without a result in the time that is shown.
    pub without: usize,
    /// Spans of runs without a result that follow one another for the same reason.
    pub gaps: Vec<Gap>,
    /// Values of its figures over time.
    pub series: Vec<SeriesView>,
    /// How all samples of its runs are spread.
    pub spreads: Vec<SampleSpread>,
    /// True while an alert of the task is open.
    pub alert: bool,
}

/// Runs without a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Begin of the first, seconds since 1970-01-01 UTC.
    pub from_s: i64,
    /// Begin of the last.
    pub until_s: i64,
    /// Number of runs in it.
    pub runs: usize,
    /// Reason why they have no result.
    pub reason: String,
}

/// The values of one figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesView {
    /// Key of the figure: `goodput_bps/down`.
    pub metric: String,
    /// Seconds since 1970-01-01 UTC and the value, the oldest first.
    pub points: Vec<(f64, f64)>,
}

/// How all samples of a figure are spread over a time: the probes of its runs, or its runs' rates.
/// Percentiles are those of RFC 2330 §11.3, at most 1/128 above the true ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SampleSpread {
    /// Key of the figure: `rtt_ns`.
    pub metric: String,
    /// From when on, seconds since 1970-01-01 UTC.
    pub from_s: i64,
    /// Number of samples added up.
    pub n: u64,
    /// The smallest sample, in the figure's unit.
    pub min: u64,
    /// The median of the samples.
    pub p50: u64,
    /// The 90th percentile of the samples.
    pub p90: u64,
    /// The 99th percentile of the samples.
    pub p99: u64,
    /// The 99.9th percentile of the samples.
    pub p999: u64,
    /// The largest sample, in the figure's unit.
    pub max: u64,
}

impl SampleSpread {
    /// The spread of a sketch's samples; none without samples.
    pub fn from_sketch(metric: &str, from_s: i64, sketch: &Sketch) -> Option<Self> {
        let at = |share| sketch.quantile(share);
        Some(Self {
            metric: metric.to_owned(),
            from_s,
            n: sketch.count(),
            min: sketch.min()?,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            p999: at(0.999)?,
            max: sketch.max()?,
        })
    }
}

/// An event of a schedule: a change, an alert or its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventView {
    /// When it was seen, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// The time on the axis: of a change that of the first value after it.
    pub since_s: f64,
    /// Its task; empty for the whole plan.
    pub task: String,
    /// Kind of the event.
    pub kind: EventKind,
    /// The event in a sentence.
    pub sentence: String,
    /// Verdict of the survey that the event led to.
    pub verdict: Option<String>,
    /// The figures that changed.
    pub metrics: Vec<String>,
}

/// One run of a calendar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalendarEntry {
    /// Begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Latest end, in the same seconds.
    pub until_s: i64,
    /// Name of its task.
    pub task: String,
    /// Its command without `linerate`.
    pub run: String,
    /// The most bytes that it moves; none where nothing bounds it.
    pub bytes: Option<u64>,
}
