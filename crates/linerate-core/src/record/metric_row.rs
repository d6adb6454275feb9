//! The row of the table of metrics that a key names, and the key as text; the rows are in `metric`.

use std::fmt;

use super::metric::{METRICS, Metric, MetricId};

impl MetricId {
    /// Row of the metric in the table.
    pub fn table_row(self) -> &'static Metric {
        METRICS.iter().find(|row| row.id == self).expect("the macro makes a row for every id")
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_end_in_their_unit() {
        let mut keys: Vec<&str> = METRICS.iter().map(|row| row.id.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), METRICS.len());
        for row in METRICS {
            let suffix = match row.unit {
                "bit/s" => "_bps",
                "ns" => "_ns",
                "s/GB" => "_s_per_gb",
                "bytes" => "_bytes",
                "frames/s" => "_frames_per_sec",
                _ => continue,
            };
            assert!(row.id.key().ends_with(suffix), "{} is in {}", row.id, row.unit);
        }
    }

    #[test]
    fn a_key_survives_json() {
        for row in METRICS {
            let json = crate::tree::to_json(&row.id).expect("an identifier serialises");
            assert_eq!(json, format!("\"{}\"", row.id.key()));
            assert_eq!(crate::tree::from_json::<MetricId>(&json).expect("and parses"), row.id);
        }
    }
}
