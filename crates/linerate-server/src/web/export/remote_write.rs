//! A request of Prometheus' remote write: each sample as a series with its labels in order of their
//! names, and an end for each series that is no more.
//!
//! # Source
//! Prometheus Remote-Write 1.0 (prometheus.io/docs/specs/remote_write_spec), prompb/remote.proto
//! and types.proto; the wire format of Protocol Buffers. Left out: metadata, and native histograms.

use std::collections::BTreeMap;

use linerate_core::time::WallTime;

use super::super::open_metrics::{Exemplar, Labels, OpenMetrics};

/// The number that is none and says that a series is over (prometheus/model/value, StaleNaN).
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Series that were written, so that each is ended once it is gone.
#[derive(Debug, Default)]
pub(super) struct Writer {
    known: BTreeMap<Labels, ()>,
}

impl Writer {
    /// The message for the figures of a time: `WriteRequest { repeated TimeSeries timeseries = 1;
    /// }`.
    pub(super) fn request(&mut self, found: &OpenMetrics, now: WallTime) -> Vec<u8> {
        let at_ms = now.unix_millis();
        let mut message = Vec::new();
        let mut now_known = BTreeMap::new();
        for family in &found.0 {
            for sample in &family.samples {
                let mut labels = sample.labels.clone();
                // An empty label is the same as none.
                labels.retain(|(_, value)| !value.is_empty());
                labels.push(("__name__".to_owned(), format!("{}{}", family.name, sample.suffix)));
                labels.sort_unstable();
                let series = series(&labels, sample.value, at_ms, sample.exemplar.as_ref());
                put_bytes_field(&mut message, 1, &series);
                now_known.insert(labels, ());
            }
        }
        for labels in self.known.keys().filter(|labels| !now_known.contains_key(*labels)) {
            put_bytes_field(&mut message, 1, &series(labels, f64::from_bits(STALE), at_ms, None));
        }
        self.known = now_known;
        message
    }
}

/// `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar
/// exemplars = 3; }`, `Sample { double value = 1; int64 timestamp = 2; }`, `Exemplar { repeated
/// Label labels = 1; double value = 2; int64 timestamp = 3; }`.
fn series(labels: &Labels, value: f64, at_ms: u64, exemplar: Option<&Exemplar>) -> Vec<u8> {
    let mut message = Vec::new();
    put_labels(&mut message, labels);
    let mut sample = Vec::new();
    double(&mut sample, 1, value);
    number(&mut sample, 2, at_ms);
    put_bytes_field(&mut message, 2, &sample);
    if let Some(Exemplar { labels, value, at_s }) = exemplar {
        let mut exemplar = Vec::new();
        put_labels(&mut exemplar, labels);
        double(&mut exemplar, 2, *value);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "since 1970")]
        number(&mut exemplar, 3, (at_s * 1000.0).max(0.0) as u64);
        put_bytes_field(&mut message, 3, &exemplar);
    }
    message
}

/// `Label { string name = 1; string value = 2; }`.
fn put_labels(message: &mut Vec<u8>, labels: &Labels) {
    for (name, value) in labels {
        let mut label = Vec::new();
        put_bytes_field(&mut label, 1, name.as_bytes());
        put_bytes_field(&mut label, 2, value.as_bytes());
        put_bytes_field(message, 1, &label);
    }
}

pub(super) fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    message.push(value.to_le_bytes()[0]);
}

/// A field of a varint: wire type 0.
fn number(message: &mut Vec<u8>, field: u8, value: u64) {
    message.push(field << 3);
    varint(message, value);
}

/// A field of eight bytes: wire type 1.
fn double(message: &mut Vec<u8>, field: u8, value: f64) {
    message.push(field << 3 | 1);
    message.extend(value.to_bits().to_le_bytes());
}

/// A field of a length and as many bytes: wire type 2.
fn put_bytes_field(message: &mut Vec<u8>, field: u8, value: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, value.len() as u64);
    message.extend(value);
}

#[cfg(test)]
mod tests {
    use super::super::super::open_metrics::labels;
    use super::*;

    fn time_at_ms(ms: u64) -> WallTime {
        WallTime::from_unix_nanos(u128::from(ms) * 1_000_000)
    }

    #[test]
    fn a_request_is_the_one_that_was_made_by_hand() {
        let mut found = OpenMetrics::default();
        found.gauge("up", "It is.", &[(labels(&[("z", "1"), ("a", "b"), ("none", "")]), 1.5)]);
        // By hand, from the .proto files: WriteRequest.timeseries (0x0a) of 45 bytes. Labels
        // (0x0a) in order: __name__ (8) = up (2), a = b, z = 1; sample (0x12) of 12 bytes: value
        // (0x09) 1.5 = 0x3ff8000000000000, timestamp (0x10) 300 = 0xac 0x02.
        let mut expected = vec![0x0a, 44];
        expected.extend([0x0a, 14, 0x0a, 8]);
        expected.extend(b"__name__");
        expected.extend([0x12, 2, b'u', b'p']);
        expected.extend([0x0a, 6, 0x0a, 1, b'a', 0x12, 1, b'b']);
        expected.extend([0x0a, 6, 0x0a, 1, b'z', 0x12, 1, b'1']);
        expected.extend([0x12, 12, 0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x10, 0xac, 0x02]);
        expected[1] = u8::try_from(expected.len() - 2).expect("short");
        let mut writer = Writer::default();
        assert_eq!(writer.request(&found, time_at_ms(300)), expected);
        // Once it is gone it is ended, and then there is nothing.
        let ended = writer.request(&OpenMetrics::default(), time_at_ms(300));
        let place = expected.len() - 11;
        expected[place..place + 8].copy_from_slice(&[2, 0, 0, 0, 0, 0, 0xf0, 0x7f]);
        assert_eq!(ended, expected);
        assert_eq!(writer.request(&OpenMetrics::default(), time_at_ms(400)), Vec::<u8>::new());
    }

    #[test]
    fn an_exemplar_goes_with_its_bucket() {
        let exemplar = Exemplar { labels: labels(&[("r", "7")]), value: 0.5, at_s: 0.001 };
        let message = series(&labels(&[]), 0.0, 0, Some(&exemplar));
        // Sample: 0x12, 11 bytes, value 0, timestamp 0. Exemplar: 0x1a; label r = 7 of 6 bytes;
        // value (0x11) 0.5 = 0x3fe0000000000000; timestamp (0x18) 1.
        let expected: Vec<u8> = [
            &[0x12, 11, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0][..],
            &[0x1a, 19, 0x0a, 6, 0x0a, 1, b'r', 0x12, 1, b'7'],
            &[0x11, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0x18, 1],
        ]
        .concat();
        assert_eq!(message, expected);
    }
}
