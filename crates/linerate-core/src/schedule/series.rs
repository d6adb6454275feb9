//! The figures of a record that a schedule follows over months.

use crate::record::{Direction, MetricId, Record, RecordStatus, Stat, Summary};
use crate::stats::Sketch;

/// A loss of this share counts like none: a single packet of a thousand is no news.
const LOSS_FLOOR: f64 = 0.001;

/// Which figure of which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Followed {
    /// The metric.
    pub metric: MetricId,
    /// Its direction, where it has one.
    pub direction: Option<Direction>,
}

impl Followed {
    /// The metric's key, with the direction behind it: `goodput_bps/down`.
    pub fn series_key(self) -> String {
        match self.direction {
            Some(Direction::Up) => format!("{}/up", self.metric.key()),
            Some(Direction::Down) => format!("{}/down", self.metric.key()),
            None => self.metric.key().to_owned(),
        }
    }

    /// That of a key.
    pub fn from_key(key: &str) -> Option<Self> {
        let (metric, direction) = match key.split_once('/') {
            Some((metric, "up")) => (metric, Some(Direction::Up)),
            Some((metric, "down")) => (metric, Some(Direction::Down)),
            Some(_) => return None,
            None => (key, None),
        };
        let known = GROUPS.iter().flat_map(|group| group.iter().map(|(metric, _)| *metric));
        let metric = known.into_iter().find(|known| known.key() == metric)?;
        Some(Self { metric, direction })
    }

    /// The value that changes are looked for in: shares of loss begin above 0, where a ratio means
    /// something.
    pub fn watched(self, value: f64) -> f64 {
        if self.is_loss() { value + LOSS_FLOOR } else { value }
    }

    /// A value of it from one that was watched.
    pub fn unwatched(self, value: f64) -> f64 {
        if self.is_loss() { (value - LOSS_FLOOR).max(0.0) } else { value }
    }

    const fn is_loss(self) -> bool {
        matches!(
            self.metric,
            MetricId::LossRatio | MetricId::LossOneWay | MetricId::DatagramLossRatio
        )
    }
}

/// Metrics with the statistic that is followed, the first of a group that a record has.
const GROUPS: [&[(MetricId, Stat)]; 5] = [
    &[(MetricId::Goodput, Stat::Value)],
    &[
        (MetricId::RttKernel, Stat::P50),
        (MetricId::Rtt, Stat::P50),
        (MetricId::DelayIdle, Stat::P50),
    ],
    &[(MetricId::OneWayDelay, Stat::P50)],
    &[(MetricId::DelayLoaded, Stat::P50)],
    &[
        (MetricId::LossOneWay, Stat::Value),
        (MetricId::LossRatio, Stat::Value),
        (MetricId::DatagramLossRatio, Stat::Value),
    ],
];

/// What of a record is followed: goodput, round trip, one-way delay, delay under load and loss, of
/// each direction that it has. Nothing of one that failed.
pub fn followed(record: &Record) -> Vec<(Followed, f64)> {
    if record.status != RecordStatus::Ok {
        return Vec::new();
    }
    let whole = |row: &&Summary| row.flow.is_none();
    let mut found: Vec<(Followed, f64)> = Vec::new();
    for group in GROUPS {
        let rows_of = |metric: MetricId, stat: Stat| -> Vec<&Summary> {
            let rows = record.summary.iter().filter(whole);
            rows.filter(|row| row.metric == metric && row.stat == stat).collect()
        };
        let mut each = group.iter().map(|(metric, stat)| rows_of(*metric, *stat));
        let Some(rows) = each.find(|rows| !rows.is_empty()) else { continue };
        for row in rows {
            let followed = Followed { metric: row.metric, direction: row.direction };
            // Of several sizes of a ping the first.
            if row.value.is_finite() && found.iter().all(|(known, _)| *known != followed) {
                found.push((followed, row.value));
            }
        }
    }
    found
}

/// What of a record is added up over months, by the key of its figure: the delays of all its
/// probes, and its goodput as one sample. Of the kernel's and the program's round trip the
/// kernel's, of several sizes of a ping the first. Nothing of one that failed.
pub fn sketched(record: &Record) -> Vec<(String, Sketch)> {
    let mut found: Vec<(String, Sketch)> = Vec::new();
    for (what, value) in followed(record) {
        if what.metric == MetricId::Goodput && value >= 0.0 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bit/s")]
            let sketch = [value.round() as u64].into_iter().collect();
            found.push((what.series_key(), sketch));
        }
    }
    if record.status != RecordStatus::Ok {
        return found;
    }
    let has_kernel =
        record.distributions.iter().any(|distribution| distribution.metric == MetricId::RttKernel);
    for distribution in &record.distributions {
        let key = distribution.metric.key();
        let twice = distribution.metric == MetricId::Rtt && has_kernel;
        if twice || !key.ends_with("_ns") || found.iter().any(|(known, _)| known == key) {
            continue;
        }
        let mut sketch = Sketch::default();
        sketch.extend(distribution.value_counts());
        if sketch.count() > 0 {
            found.push((key.to_owned(), sketch));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Distribution, PingPlan, Plan, RecordId, Tool};
    use crate::time::WallTime;

    #[test]
    fn the_kernels_round_trip_goodput_and_loss_are_followed() {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let id = RecordId::from_parts(1, [0; 10]);
        let at = WallTime::from_unix_nanos(0);
        let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
        let up = Some(Direction::Up);
        record.summary = vec![
            Summary::from_value(MetricId::Rtt, Stat::P50, 2e6),
            Summary::from_value(MetricId::RttKernel, Stat::Min, 0.5e6),
            Summary::from_value(MetricId::RttKernel, Stat::P50, 1e6),
            Summary::from_value(MetricId::LossRatio, Stat::Value, 0.0),
            Summary { direction: up, ..Summary::from_value(MetricId::Goodput, Stat::Value, 9e8) },
            Summary { flow: Some(1), ..Summary::from_value(MetricId::Goodput, Stat::Value, 1e8) },
        ];
        let keys: Vec<(String, f64)> =
            followed(&record).into_iter().map(|(what, value)| (what.series_key(), value)).collect();
        let of = |key: &str, value| (key.to_owned(), value);
        let wanted = [of("goodput_bps/up", 9e8), of("rtt_kernel_ns", 1e6), of("loss_ratio", 0.0)];
        assert_eq!(keys, wanted);
        for (what, _) in followed(&record) {
            assert_eq!(Followed::from_key(&what.series_key()), Some(what));
        }
        assert_eq!(Followed::from_key("goodput_bps/sideways"), None);
        record.distributions = vec![
            Distribution::from_samples(MetricId::Rtt, &[7, 8]),
            Distribution::from_samples(MetricId::RttKernel, &[5, 5, 6]).at_payload(56),
            Distribution::from_samples(MetricId::RttKernel, &[9]).at_payload(1500),
        ];
        let sketch = |samples: &[u64]| samples.iter().copied().collect::<Sketch>();
        let wanted = [
            ("goodput_bps/up".to_owned(), sketch(&[900_000_000])),
            ("rtt_kernel_ns".to_owned(), sketch(&[5, 5, 6])),
        ];
        assert_eq!(sketched(&record), wanted);
        record.status = RecordStatus::Error;
        assert_eq!(followed(&record), Vec::new());
        assert_eq!(sketched(&record), Vec::new());
    }

    #[test]
    fn a_loss_of_a_thousandth_is_little_beside_none_and_two_hundredths_are_much() {
        let loss = Followed { metric: MetricId::LossRatio, direction: None };
        let ratio = |share: f64| loss.watched(share) / loss.watched(0.0);
        assert!(ratio(0.00002) < 1.05 && ratio(0.02) > 20.0);
        assert!((loss.unwatched(loss.watched(0.02)) - 0.02).abs() < 1e-12);
    }
}
