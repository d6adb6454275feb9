//! A TCP test of a study: six lists of values, of which one is varied, and what holds for all runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::{
    Checked, check_number, check_seconds, fault_at_path, item_fault, key_fault, require,
};
use super::list::{List, check_lists, memory_label, pick_value};
use super::parameter::{Parameter, Value};
use super::{BackgroundFlow, Topology, embedded};
use crate::lab::is_congestion_control;
use crate::record::{DEFAULT_PORT, Finish, ServerPlan, TcpPlan, TcpTest};
use crate::units::Bytes;

/// TCP throughput by one parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpSweep {
    /// Socket buffers to ask for; 0 leaves the kernel's autotuning on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_bytes: Option<Vec<u64>>,
    /// Connections at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<u16>>,
    /// Payload of each run, all connections together, in place of a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_bytes: Option<Vec<u64>>,
    /// Congestion controls of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_controls: Option<Vec<String>>,
    /// Selective acknowledgements at both hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<Vec<bool>>,
    /// Bytes that one read() of the receiver may take; 0 is the program's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<Vec<u32>>,
    /// Time of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Span at the start of each run that is left out of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omit_seconds: Option<f64>,
    /// A flow from the server to the client while the test runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundFlow>,
    /// Options of every run, by the names of a plan: `congestion_control`, `nodelay`, `dscp`.
    #[serde(flatten, with = "embedded")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "embedded::schema::<TcpTest>"))]
    pub base: TcpTest,
}

const WINDOWS: Parameter = Parameter { key: "windows_bytes", name: "window", unit: Some("bytes") };
const STREAMS: Parameter = Parameter { key: "streams", name: "streams", unit: None };
const TRANSFERS: Parameter =
    Parameter { key: "transfer_bytes", name: "transfer", unit: Some("bytes") };
const CONTROLS: Parameter =
    Parameter { key: "congestion_controls", name: "congestion control", unit: None };
const SACK: Parameter = Parameter { key: "sack", name: "SACK", unit: None };
const READS: Parameter = Parameter { key: "read_bytes", name: "read size", unit: Some("bytes") };

/// Largest values that the lists of a TCP test may have.
pub(super) struct TcpLimits {
    pub(super) windows_bytes: u64,
    pub(super) streams: u64,
    pub(super) transfer_bytes: u64,
}

/// The most of the protocol; a window is an int (setsockopt(2), SO_RCVBUF).
const LIMITS: TcpLimits =
    TcpLimits { windows_bytes: i32::MAX as u64, streams: 128, transfer_bytes: 1 << 60 };
/// The protocol's bounds on reads and on the span that a test may leave out.
const READ_BYTES_MAX: u64 = 16 << 20;
const OMIT_SECONDS_MAX: f64 = 600.0;

impl TcpSweep {
    /// Payload of each run, where it is the same for all.
    pub fn transfer(&self) -> Option<u64> {
        let transfers = self.transfer_bytes.as_ref().filter(|transfers| transfers.len() == 1);
        pick_value(transfers, 0)
    }

    /// Every list that the plan may have, in the order that decides where nothing is varied.
    pub(super) fn value_lists(&self) -> Vec<List> {
        self.lists_within(&LIMITS)
    }

    /// The lists with the bounds of whoever measures or simulates them.
    pub(super) fn lists_within(&self, most: &TcpLimits) -> Vec<List> {
        let controls = self.congestion_controls.as_ref();
        let switch = |&on: &bool| {
            let label = if on { "on" } else { "off" };
            Value { number: on.into(), label: label.to_owned() }
        };
        let windows = self.windows_bytes.as_ref();
        let transfers = self.transfer_bytes.as_ref();
        let reads = self.read_bytes.as_ref();
        vec![
            List::from_numbers(WINDOWS, windows, 0..=most.windows_bytes, memory_label),
            List::from_numbers(STREAMS, self.streams.as_ref(), 1..=most.streams, count_label),
            List::from_numbers(TRANSFERS, transfers, 1..=most.transfer_bytes, amount_label),
            List::from_names(CONTROLS, controls, String::as_str),
            List::from_values(SACK, self.sack.as_ref(), switch),
            List::from_numbers(READS, reads, 0..=READ_BYTES_MAX, memory_label),
        ]
    }

    /// Refuses values and settings that the protocol cannot ask for.
    pub(super) fn check_values(&self) -> Checked {
        check_lists(&self.value_lists(), "windows_bytes or another list")?;
        self.check_controls(|name| {
            let unlike = format!("`{name}` is no name of a congestion control, as `cubic` is");
            (!is_congestion_control(name)).then_some(unlike)
        })?;
        self.check_end()?;
        embedded::check_each_key(&self.base, TcpTest::check)
    }

    /// Congestion controls are given one way, and `refusal` has a reason against none of them.
    pub(super) fn check_controls(&self, refusal: impl Fn(&str) -> Option<String>) -> Checked {
        let one = self.base.congestion_control.as_deref();
        if let Some(reason) = one.and_then(&refusal) {
            return key_fault("congestion_control", reason);
        }
        for (index, name) in self.congestion_controls.iter().flatten().enumerate() {
            if let Some(reason) = refusal(name) {
                return item_fault("congestion_controls", index, reason);
            }
        }
        let both = "congestion_control and congestion_controls; give one of them";
        require(one.is_none() || self.congestion_controls.is_none(), "congestion_control", both)
    }

    /// A run ends by its time or by its bytes.
    pub(super) fn check_end(&self) -> Checked {
        if self.seconds.is_none() && self.transfer_bytes.is_none() {
            return fault_at_path(&[], "it has no end; give it seconds or transfer_bytes");
        }
        let both = "seconds and transfer_bytes both end a run; give one of them";
        require(self.seconds.is_none() || self.transfer_bytes.is_none(), "seconds", both)?;
        check_seconds("seconds", self.seconds)?;
        check_omitted(self.omit_seconds)
    }

    /// Refuses a flow against the test that a topology cannot have.
    pub(super) fn check_background(&self, topology: &Topology) -> Checked {
        let rate = self.background.as_ref().map(|flow| flow.rate_on(topology)).transpose();
        rate.map(drop).or_else(|reason| key_fault("background", reason))
    }

    /// The test for the value at a place of the varied list.
    /// # Errors
    /// Why its background cannot be on this topology.
    pub(super) fn plan_for_value(&self, topology: &Topology, at: usize) -> Result<TcpPlan, String> {
        let (finish, span_ns) = match pick_value(self.transfer_bytes.as_ref(), at) {
            Some(bytes) => (Finish::Bytes(bytes), 0),
            None => {
                let span_ns = seconds_to_nanos(self.seconds.unwrap_or_default());
                (Finish::TimeNs(span_ns), span_ns)
            }
        };
        let test = TcpTest {
            finish,
            interval_ns: interval_ns(span_ns),
            omit_ns: seconds_to_nanos(self.omit_seconds.unwrap_or_default()),
            streams: pick_value(self.streams.as_ref(), at).unwrap_or(1),
            window_bytes: pick_value(self.windows_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
            read_bytes: pick_value(self.read_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
            congestion_control: self.control(at),
            background: self.background.as_ref().map(|flow| flow.rate_on(topology)).transpose()?,
            ..self.base.clone()
        };
        let server = ServerPlan::new(None, "", DEFAULT_PORT);
        Ok(TcpPlan { server, test, ..TcpPlan::default() })
    }

    /// Congestion control of the sender for the value at a place.
    pub(super) fn control(&self, at: usize) -> Option<String> {
        let varied = pick_value(self.congestion_controls.as_ref(), at);
        varied.or_else(|| self.base.congestion_control.clone())
    }
}

/// The span at the start of a run that does not count has the protocol's bounds.
pub(super) fn check_omitted(omit_seconds: Option<f64>) -> Checked {
    check_number("omit_seconds", omit_seconds, 0.0..=OMIT_SECONDS_MAX)
}

/// Reporting interval of a run: a tenth of its time, 0.1 s at least.
pub(super) fn interval_ns(span_ns: u64) -> u64 {
    (span_ns / 10).max(100_000_000)
}

pub(super) fn seconds_to_nanos(seconds: f64) -> u64 {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn count_label(count: u64) -> String {
    count.to_string()
}

/// An amount of data as the studies write it: `100 MB`, decimal where that is exact, and to three
/// digits from a megabyte on, so that transfers beside each other have units of one kind.
fn amount_label(bytes: u64) -> String {
    let decimal = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    let exact = decimal.iter().find(|(size, _)| bytes > 0 && bytes.is_multiple_of(*size));
    let rounded = || decimal[..2].iter().find(|(size, _)| bytes >= *size);
    match (exact, rounded()) {
        (Some((size, unit)), _) => format!("{} {unit}", bytes / size),
        (None, Some((size, unit))) => {
            let value = bytes as f64 / *size as f64;
            let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            format!("{value:.decimals$} {unit}")
        }
        (None, None) => Bytes::new(bytes).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::list::varied_list;

    fn labels(test: &TcpSweep) -> Vec<(u64, String)> {
        let values = varied_list(test.value_lists()).values().into_iter();
        values.map(|value| (value.number, value.label)).collect()
    }

    fn owned_labels(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
        pairs.iter().map(|&(number, label)| (number, label.to_owned())).collect()
    }

    #[test]
    fn the_list_with_several_values_is_the_parameter() {
        let one_window = || Some(vec![2_097_152]);
        let test = TcpSweep {
            windows_bytes: one_window(),
            streams: Some(vec![1, 2, 4, 8]),
            ..TcpSweep::default()
        };
        assert_eq!(varied_list(test.value_lists()).parameter.axis_title(), "streams");
        assert_eq!(labels(&test), owned_labels(&[(1, "1"), (2, "2"), (4, "4"), (8, "8")]));
        let test = TcpSweep { windows_bytes: one_window(), streams: Some(vec![4]), ..test };
        assert_eq!(varied_list(test.value_lists()).parameter.axis_title(), "window, bytes");
        assert_eq!(labels(&test), owned_labels(&[(2_097_152, "2 MiB")]));
    }

    #[test]
    fn every_value_has_a_number_for_keys_and_a_label_for_readers() {
        let test = TcpSweep { windows_bytes: Some(vec![0, 16_384]), ..TcpSweep::default() };
        assert_eq!(labels(&test), owned_labels(&[(0, "auto"), (16_384, "16 KiB")]));
        let sizes = vec![100_000_000, 10_000_000_000, 4096, 1_249_996_800];
        let test = TcpSweep { transfer_bytes: Some(sizes), ..TcpSweep::default() };
        let expected = [
            (100_000_000, "100 MB"),
            (10_000_000_000, "10 GB"),
            (4096, "4 KiB"),
            // The page of 2004 sent 20,345 writes of 61,440 bytes.
            (1_249_996_800, "1.25 GB"),
        ];
        assert_eq!(labels(&test), owned_labels(&expected));
        let names = vec!["reno".to_owned(), "cubic".to_owned()];
        let test = TcpSweep { congestion_controls: Some(names), ..TcpSweep::default() };
        assert_eq!(labels(&test), owned_labels(&[(1, "reno"), (2, "cubic")]));
        let test = TcpSweep { sack: Some(vec![true, false]), ..TcpSweep::default() };
        assert_eq!(labels(&test), owned_labels(&[(1, "on"), (0, "off")]));
        let test = TcpSweep { read_bytes: Some(vec![0, 1024]), ..TcpSweep::default() };
        assert_eq!(labels(&test), owned_labels(&[(0, "auto"), (1024, "1 KiB")]));
    }
}
