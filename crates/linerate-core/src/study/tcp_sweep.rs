//! A TCP test of a study: several lists of values, of which one at most has more than one value.
//! That one is varied; a list of one value holds for the whole test.
//!
//! With no list longer than one value, the first that is there, in the order of the fields, is
//! the parameter. The rules are in `check_tcp`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::list::{List, memory_label, varied_list};
use super::parameter::{Parameter, TestStep, Value};
use super::{Background, Topology, embedded};
use crate::record::{DEFAULT_PORT, Finish, Plan, ServerPlan, TcpPlan, TcpTest};
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
    pub background: Option<Background>,
    /// What holds for every run, by the names of a plan: `congestion_control`, `nodelay`, `dscp`.
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

impl TcpSweep {
    /// The parameter that it varies.
    pub fn parameter(&self) -> Parameter {
        varied_list(self.lists()).parameter
    }

    /// The values of the parameter, in the order of the plan.
    pub fn values(&self) -> Vec<Value> {
        varied_list(self.lists()).values.unwrap_or_default()
    }

    /// Payload of each run, where it is the same for all.
    pub fn transfer(&self) -> Option<u64> {
        only(self.transfer_bytes.as_ref())
    }

    /// Every list that the plan may have, in the order that decides where nothing is varied.
    pub(super) fn lists(&self) -> [List; 6] {
        let controls = self.congestion_controls.as_ref();
        let switch = |&on: &bool| Value {
            number: on.into(),
            label: if on { "on" } else { "off" }.to_owned(),
        };
        [
            List::from_numbers(WINDOWS, self.windows_bytes.as_ref(), memory_label),
            List::from_numbers(STREAMS, self.streams.as_ref(), |count| count.to_string()),
            List::from_numbers(TRANSFERS, self.transfer_bytes.as_ref(), amount),
            List::from_names(CONTROLS, controls, String::as_str),
            List::from_values(SACK, self.sack.as_ref(), switch),
            List::from_numbers(READS, self.read_bytes.as_ref(), memory_label),
        ]
    }

    /// What to measure for each value on `topology`.
    pub(super) fn steps(&self, topology: &Topology) -> Vec<TestStep> {
        let values = self.values().into_iter().enumerate();
        values.map(|(at, value)| self.step(topology, at, value)).collect()
    }

    fn step(&self, topology: &Topology, at: usize, value: Value) -> TestStep {
        let finish = match pick(self.transfer_bytes.as_ref(), at) {
            Some(bytes) => Finish::Bytes(bytes),
            None => Finish::TimeNs(nanos(self.seconds.unwrap_or_default())),
        };
        let named = pick(self.congestion_controls.as_ref(), at);
        let background = self.background.as_ref().and_then(|flow| flow.rate_on(topology).ok());
        let interval_ns = match finish {
            Finish::TimeNs(ns) => (ns / 10).max(INTERVAL_NS_MIN),
            _ => INTERVAL_NS_MIN,
        };
        let plan = TcpPlan {
            server: ServerPlan::new(None, "", DEFAULT_PORT),
            test: TcpTest {
                finish,
                interval_ns,
                omit_ns: nanos(self.omit_seconds.unwrap_or_default()),
                streams: pick(self.streams.as_ref(), at).unwrap_or(1),
                window_bytes: pick(self.windows_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
                read_bytes: pick(self.read_bytes.as_ref(), at).filter(|bytes| *bytes > 0),
                congestion_control: named.or_else(|| self.base.congestion_control.clone()),
                background,
                ..self.base.clone()
            },
            ..TcpPlan::default()
        };
        TestStep { value, plan: Plan::Tcp(plan), sack: pick(self.sack.as_ref(), at) }
    }
}

/// Shortest reporting interval of a study's runs.
const INTERVAL_NS_MIN: u64 = 100_000_000;

/// The value of a list at a place; of a list of one, that one.
pub(super) fn pick<T: Clone>(list: Option<&Vec<T>>, at: usize) -> Option<T> {
    list.and_then(|list| list.get(if list.len() > 1 { at } else { 0 }).cloned())
}

fn only<T: Copy>(list: Option<&Vec<T>>) -> Option<T> {
    list.filter(|list| list.len() == 1).and_then(|list| list.first().copied())
}

pub(super) fn nanos(seconds: f64) -> u64 {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// An amount of data as the studies write it: `100 MB`, decimal where that is exact, and to three
/// digits from a megabyte on, so that transfers beside each other have units of one kind.
fn amount(bytes: u64) -> String {
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

    fn labels(test: &TcpSweep) -> Vec<(u64, String)> {
        test.values().into_iter().map(|value| (value.number, value.label)).collect()
    }

    fn named(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
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
        assert_eq!(test.parameter().title(), "streams");
        assert_eq!(labels(&test), named(&[(1, "1"), (2, "2"), (4, "4"), (8, "8")]));
        let test = TcpSweep { windows_bytes: one_window(), streams: Some(vec![4]), ..test };
        assert_eq!(test.parameter().title(), "window, bytes");
        assert_eq!(labels(&test), named(&[(2_097_152, "2 MiB")]));
    }

    #[test]
    fn every_value_has_a_number_for_keys_and_a_label_for_readers() {
        let test = TcpSweep { windows_bytes: Some(vec![0, 16_384]), ..TcpSweep::default() };
        assert_eq!(labels(&test), named(&[(0, "auto"), (16_384, "16 KiB")]));
        let sizes = vec![100_000_000, 10_000_000_000, 4096, 1_249_996_800];
        let test = TcpSweep { transfer_bytes: Some(sizes), ..TcpSweep::default() };
        let expected = [
            (100_000_000, "100 MB"),
            (10_000_000_000, "10 GB"),
            (4096, "4 KiB"),
            // The page of 2004 sent 20,345 writes of 61,440 bytes.
            (1_249_996_800, "1.25 GB"),
        ];
        assert_eq!(labels(&test), named(&expected));
        let names = vec!["reno".to_owned(), "cubic".to_owned()];
        let test = TcpSweep { congestion_controls: Some(names), ..TcpSweep::default() };
        assert_eq!(labels(&test), named(&[(1, "reno"), (2, "cubic")]));
        let test = TcpSweep { sack: Some(vec![true, false]), ..TcpSweep::default() };
        assert_eq!(labels(&test), named(&[(1, "on"), (0, "off")]));
        let test = TcpSweep { read_bytes: Some(vec![0, 1024]), ..TcpSweep::default() };
        assert_eq!(labels(&test), named(&[(0, "auto"), (1024, "1 KiB")]));
    }
}
