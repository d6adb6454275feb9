//! Figures of one size of a ping, and where its mean round trip passed.

use linerate_core::record::{MetricId, Record, Stat};

use crate::words;

/// A value for one payload; a record of one size may leave the payload out of its rows.
pub(super) fn value_for_payload(
    record: &Record,
    metric: MetricId,
    stat: Stat,
    size: u32,
) -> Option<f64> {
    record.value_at(metric, stat, size).or_else(|| {
        let mut rows = record.summary.iter();
        rows.find(|row| row.metric == metric && row.stat == stat && row.payload_bytes.is_none())
            .map(|row| row.value)
    })
}

/// The parts of a round trip in the order of travel.
const PARTS: [(&str, MetricId); 4] = [
    ("sending", MetricId::RttSend),
    ("own queue", MetricId::RttQueue),
    ("path and peer", MetricId::RttKernel),
    ("waking up", MetricId::RttWake),
];

/// Where a mean round trip passed, as far as the kernel's timestamps tell.
pub(super) struct Split {
    parts: Vec<(&'static str, f64)>,
    /// Probes that it rests on, where not all answered ones.
    some: Option<u64>,
}

impl Split {
    pub(super) fn from_record(record: &Record, size: u32) -> Option<Self> {
        let mean = |metric| value_for_payload(record, metric, Stat::Mean, size);
        let counted = |metric| {
            let mut rows = record.summary.iter().filter(|row| row.metric == metric);
            let here = |payload: Option<u32>| payload.is_none_or(|payload| payload == size);
            rows.find(|row| row.stat == Stat::Mean && here(row.payload_bytes))?.n
        };
        let parts = PARTS.iter().map(|(name, metric)| Some((*name, mean(*metric)?)));
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
            let (kernel, all) = (mean(MetricId::RttKernel)?, mean(MetricId::Rtt)?);
            let parts = vec![("path and peer", kernel), ("this host", all - kernel)];
            return Some(Self { parts, some: None });
        };
        let (split, all) = (counted(MetricId::RttSend), counted(MetricId::Rtt));
        Some(Self { parts, some: split.filter(|_| split != all) })
    }

    /// The parts in the order of travel, with their times in ns.
    pub(super) fn timed_parts(&self) -> &[(&'static str, f64)] {
        &self.parts
    }

    /// True if it rests on some of the answered probes only.
    pub(super) const fn is_of_some(&self) -> bool {
        self.some.is_some()
    }

    /// Each part with its share of all.
    pub(super) fn parts_with_shares(&self, ms: impl Fn(f64) -> String) -> String {
        let all: f64 = self.parts.iter().map(|(_, ns)| ns).sum();
        let part = |name: &str, ns: f64| {
            format!("{name} {} ms ({:.0} %)", ms(ns), 100.0 * ns / all.max(f64::MIN_POSITIVE))
        };
        let parts: Vec<String> = self.parts.iter().map(|(name, ns)| part(name, *ns)).collect();
        let some = self.some.map(|count| format!("; of {}", words::counted(count, "probe")));
        format!("{}{}", parts.join(", "), some.unwrap_or_default())
    }
}
