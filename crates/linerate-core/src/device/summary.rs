//! From what a benchmark found to the rows of its record's summary.
//!
//! Left out: what has no single value (loss curve, distributions, trials); it stays in the result.

use crate::record::{
    BackToBack, BenchLatency, BenchResult, GoalFound, LoadPoint, MetricId, Reset, Soak, Stat,
    Summary, Tester,
};

use crate::stats::median;

impl GoalFound {
    /// The forwarding rate at the lower bound, or that bound where no trial has the rate; none
    /// where the search did not end.
    pub fn throughput_fps(&self) -> Option<f64> {
        self.conditional_fps.or(self.lower_fps).filter(|_| self.unfinished.is_none())
    }

    /// Name of the goal without the changes to it: `strict` of `strict / 10`, `typical` of
    /// `typical, 0.1 s`.
    pub fn base_name(&self) -> &str {
        self.goal.split(['/', ',']).next().unwrap_or(&self.goal).trim_end()
    }
}

impl BenchResult {
    /// The goal of that name, or its quick form.
    pub fn find_goal(&self, name: &str) -> Option<&GoalFound> {
        self.goals.iter().find(|found| found.base_name() == name)
    }

    /// Every load at which the forwarding rate of all ports was measured by one trial.
    pub fn load_points(&self) -> impl Iterator<Item = &LoadPoint> {
        self.flood.iter().chain(&self.loss_curve).chain(&self.overload)
    }

    /// The largest of their forwarding rates (RFC 2285 §3.6.3); `None` without a load.
    pub fn forwarding_rate_max_fps(&self) -> Option<f64> {
        self.load_points().map(|point| point.forwarded_fps).reduce(f64::max)
    }

    /// The rows of the record's summary; quantities that were not measured have none.
    pub fn summary(&self) -> Vec<Summary> {
        let mut rows = Vec::new();
        let value = |metric, value: Option<f64>| {
            value.map(|value| Summary::from_value(metric, STAT, value))
        };
        rows.extend(value(MetricId::TheoreticalFrames, self.theoretical_fps));
        rows.extend(self.tester.iter().flat_map(tester_rows));
        rows.extend(self.goals.iter().filter_map(goal_row));
        rows.extend(value(MetricId::ForwardingRateMax, self.forwarding_rate_max_fps()));
        rows.extend(value(
            MetricId::FloodOffered,
            self.flood.as_ref().map(|flood| flood.offered_fps),
        ));
        rows.extend(value(
            MetricId::FloodForwarded,
            self.flood.as_ref().map(|flood| flood.forwarded_fps),
        ));
        rows.extend(value(MetricId::Stalls, self.stalls_per_sec.map(|stalls| stalls.value)));
        rows.extend(self.latency.first().into_iter().flat_map(latency_rows));
        rows.extend(self.back_to_back.iter().flat_map(burst_rows));
        let recovery = self
            .recovery
            .iter()
            .flat_map(|recovery| repetition_rows(MetricId::Recovery, &recovery.times_ns));
        rows.extend(recovery);
        rows.extend(self.reset.iter().flat_map(reset_rows));
        if let Some(caching) = &self.caching {
            rows.extend(value(MetricId::AddressesCached, Some(caching.addresses as f64)));
            rows.extend(value(MetricId::AddressRate, caching.learning_fps));
        }
        rows.extend(value(
            MetricId::BlockedLoss,
            self.blocking.as_ref().map(|blocking| blocking.loss_ratio),
        ));
        rows.extend(self.soak.iter().flat_map(soak_rows));
        if let Some(found) = &self.contract {
            rows.extend(value(MetricId::ContractCir, found.cir_bps.map(|cir| cir.value)));
            rows.extend(value(MetricId::ContractCbs, found.cbs_bytes.map(|cbs| cbs.value)));
        }
        rows
    }
}

/// One value for the whole benchmark.
const STAT: Stat = Stat::Value;

fn tester_rows(tester: &Tester) -> impl Iterator<Item = Summary> {
    let rate = Summary::from_value(MetricId::TesterFrames, STAT, tester.frames_per_sec);
    let latency = tester.latency_p50_ns;
    let latency = latency.map(|ns| Summary::from_value(MetricId::TesterLatency, Stat::P50, ns));
    [Some(rate), latency].into_iter().flatten()
}

/// Row of a goal that has a metric of its own; others are in the result only.
fn goal_row(found: &GoalFound) -> Option<Summary> {
    let metric = match found.base_name() {
        "strict" => MetricId::ThroughputStrict,
        "typical" => MetricId::ThroughputTypical,
        "verified" => MetricId::ThroughputVerified,
        _ => return None,
    };
    let row = Summary::from_value(metric, STAT, found.throughput_fps()?);
    Some(row.with_n(u64::from(found.trials)))
}

fn latency_rows(found: &BenchLatency) -> Vec<Summary> {
    let stats = [
        (Stat::Min, found.min_ns as f64),
        (Stat::Mean, found.mean_ns),
        (Stat::P50, found.p50_ns),
        (Stat::P90, found.p90_ns),
        (Stat::P99, found.p99_ns),
        (Stat::P999, found.p999_ns),
        (Stat::Max, found.max_ns as f64),
    ];
    let rows = stats.map(|(stat, ns)| Summary::from_value(MetricId::FrameLatency, stat, ns));
    let pdv = Summary::from_value(MetricId::FramePdv, STAT, found.pdv_ns);
    rows.into_iter().chain([pdv]).map(|row| row.with_n(found.frames)).collect()
}

fn burst_rows(found: &BackToBack) -> Vec<Summary> {
    let stats = [
        (Stat::Min, found.min_frames as f64),
        (Stat::Mean, found.mean_frames),
        (Stat::Max, found.max_frames as f64),
        (Stat::Stddev, found.stddev_frames),
    ];
    let n = found.runs.len() as u64;
    let row = |(stat, frames)| Summary::from_value(MetricId::BurstFrames, stat, frames).with_n(n);
    let time = found.corrected_buffer_ns;
    let time =
        time.map(|ns| Summary::from_value(MetricId::BurstBufferTime, Stat::Mean, ns).with_n(n));
    stats.into_iter().map(row).chain(time).collect()
}

fn reset_rows(found: &Reset) -> Vec<Summary> {
    let mut rows = repetition_rows(MetricId::ResetByLoss, &found.by_loss_ns);
    rows.extend(repetition_rows(MetricId::ResetByStamps, &found.by_stamps_ns));
    rows
}

/// Least, median and most of repetitions; nothing without any.
fn repetition_rows(metric: MetricId, times_ns: &[u64]) -> Vec<Summary> {
    let times: Vec<f64> = times_ns.iter().map(|ns| *ns as f64).collect();
    let least = times.iter().copied().reduce(f64::min);
    let most = times.iter().copied().reduce(f64::max);
    let stats = [(Stat::Min, least), (Stat::P50, median(&times)), (Stat::Max, most)];
    let n = times.len() as u64;
    let row = |stat, ns| Summary::from_value(metric, stat, ns).with_n(n);
    stats.into_iter().filter_map(|(stat, ns)| Some(row(stat, ns?))).collect()
}

fn soak_rows(found: &Soak) -> [Summary; 2] {
    [
        Summary::from_value(MetricId::SoakLoss, STAT, found.point.loss_ratio),
        Summary::from_value(MetricId::SoakErroredSeconds, STAT, found.errored_seconds as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Caching, OverloadRecovery};

    fn goal_found(name: &str, conditional_fps: Option<f64>) -> GoalFound {
        GoalFound {
            goal: name.to_owned(),
            lower_fps: Some(100.0),
            upper_fps: None,
            conditional_fps,
            trials: 9,
            spent_ns: 0,
            tester_limited: false,
            loss_ratio_below: None,
            held_frames: None,
            scattered: None,
            unfinished: None,
        }
    }

    fn summary_value(result: &BenchResult, metric: MetricId, stat: Stat) -> Option<f64> {
        let rows = result.summary();
        rows.iter().find(|row| row.metric == metric && row.stat == stat).map(|row| row.value)
    }

    #[test]
    fn nothing_measured_gives_no_rows() {
        assert_eq!(BenchResult::default().summary(), []);
    }

    #[test]
    fn each_goal_has_its_metric_and_a_quick_one_keeps_it() {
        let result = BenchResult {
            goals: vec![
                goal_found("strict / 10", None),
                goal_found("typical", Some(99.0)),
                goal_found("mine", Some(98.0)),
            ],
            ..BenchResult::default()
        };
        assert_eq!(summary_value(&result, MetricId::ThroughputStrict, STAT), Some(100.0));
        assert_eq!(summary_value(&result, MetricId::ThroughputTypical, STAT), Some(99.0));
        assert_eq!(result.summary().len(), 2);
        assert_eq!(result.find_goal("strict").map(|goal| goal.goal.as_str()), Some("strict / 10"));
    }

    #[test]
    fn repeated_times_give_least_median_and_most() {
        let recovery = OverloadRecovery {
            overload_fps: 11.0,
            after_fps: 5.0,
            times_ns: vec![30, 10, 20],
            not_recovered_ns: Vec::new(),
            without_overload: 0,
        };
        let result = BenchResult { recovery: Some(recovery), ..BenchResult::default() };
        let got = [Stat::Min, Stat::P50, Stat::Max]
            .map(|stat| summary_value(&result, MetricId::Recovery, stat));
        assert_eq!(got, [Some(10.0), Some(20.0), Some(30.0)]);
    }

    #[test]
    fn the_maximum_forwarding_rate_is_over_every_load() {
        let point = |forwarded_fps| LoadPoint {
            intended_fps: None,
            offered_fps: 9.0,
            forwarded_fps,
            loss_ratio: 0.0,
            sent: 0,
            received: 0,
        };
        let result = BenchResult {
            flood: Some(point(4.0)),
            loss_curve: vec![point(6.0)],
            overload: vec![point(5.0)],
            caching: Some(Caching { addresses: 256, unbounded: false, learning_fps: None }),
            ..BenchResult::default()
        };
        assert_eq!(summary_value(&result, MetricId::ForwardingRateMax, STAT), Some(6.0));
        assert_eq!(summary_value(&result, MetricId::FloodForwarded, STAT), Some(4.0));
        assert_eq!(summary_value(&result, MetricId::AddressesCached, STAT), Some(256.0));
        assert_eq!(summary_value(&result, MetricId::AddressRate, STAT), None);
    }
}
