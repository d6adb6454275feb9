//! The figures of a record that stand beside its document, for lists.

use linerate_core::record::{MetricId, Record, Stat};

/// The figures that are kept beside a document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RecordFigures {
    pub(super) rate_bps: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) rtt_ns: Option<f64>,
}

impl RecordFigures {
    /// Takes the figures from a record, as steps 3 and 9 of the tables do from its document.
    pub(super) fn from_record(record: &Record) -> Self {
        let first = |wanted: &[(MetricId, Option<Stat>)]| {
            let row = record.summary.iter().find(|row| {
                let is_wanted = wanted.iter().any(|(metric, stat)| {
                    *metric == row.metric && stat.is_none_or(|stat| stat == row.stat)
                });
                row.flow.is_none() && is_wanted
            });
            row.map(|row| row.value)
        };
        Self {
            rate_bps: first(&[(MetricId::Goodput, None)]),
            loss: first(&[(MetricId::LossRatio, None), (MetricId::DatagramLossRatio, None)]),
            rtt_ns: record
                .typical_round_trip(None)
                .map(|row| row.value)
                .or_else(|| first(&[(MetricId::TcpRttMin, None)])),
        }
    }
}
