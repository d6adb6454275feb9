//! A UDP test of a study: lists of offered rates and of sizes of datagrams, of which one is varied.
//!
//! Left out: streams and directions. The result is goodput at the receiver, as of a TCP test.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::embedded;
use super::fault::{Checked, check_seconds, item_fault};
use super::list::{List, check_lists, pick_value};
use super::parameter::{Parameter, Value};
use super::tcp_sweep::{check_omitted, count_label, interval_ns, seconds_to_nanos};
use crate::record::{DEFAULT_PORT, Finish, ServerPlan, UdpPlan, UdpTest};
use crate::units::BitRate;

/// UDP throughput by offered rate or by size of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpSweep {
    /// Offered payload rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Vec<OfferedRate>>,
    /// Payload of a datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes_bytes: Option<Vec<u32>>,
    /// Time of each run.
    pub seconds: f64,
    /// Datagrams sent within this span at the start of each run are left out of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omit_seconds: Option<f64>,
    /// Options of every run, by the names of a plan: `dscp`, `window_bytes`, `joined`.
    #[serde(flatten, with = "embedded")]
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "embedded::schema::<UdpTest<Option<u32>>>")
    )]
    pub base: UdpTest<Option<u32>>,
}

/// A rate to send at, or as fast as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct OfferedRate(
    /// None is as fast as possible.
    pub Option<BitRate>,
);

impl FromStr for OfferedRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self(None));
        }
        match text.parse::<BitRate>() {
            Ok(rate) if rate.bits_per_sec() > 0 => Ok(Self(Some(rate))),
            Ok(_) => Err("a rate of 0 sends nothing; write max for as fast as possible".to_owned()),
            Err(error) => Err(format!("{error}; or write max for as fast as possible")),
        }
    }
}

impl TryFrom<String> for OfferedRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A plan is kept as its text, so the text has every digit of the rate.
impl fmt::Display for OfferedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.0 else { return f.write_str("max") };
        let short = rate.to_string();
        if short.parse().is_ok_and(|read: BitRate| read == rate) {
            f.write_str(&short)
        } else {
            f.write_str(&exact_text(rate))
        }
    }
}

/// `1.234567 Mbit/s`: as many decimals as the rate has.
fn exact_text(rate: BitRate) -> String {
    let bps = rate.bits_per_sec();
    let prefixes = [(1_000_000_000_000, 12, "T"), (1_000_000_000, 9, "G"), (1_000_000, 6, "M")];
    let all = prefixes.into_iter().chain([(1000, 3, "k")]);
    let Some((factor, digits, prefix)) = all.into_iter().find(|(factor, ..)| bps >= *factor) else {
        return format!("{bps} bit/s");
    };
    let decimals = format!("{:0digits$}", bps % factor);
    format!("{}.{} {prefix}bit/s", bps / factor, decimals.trim_end_matches('0'))
}

impl From<OfferedRate> for String {
    fn from(rate: OfferedRate) -> Self {
        rate.to_string()
    }
}

const RATES: Parameter = Parameter { key: "rates", name: "rate", unit: Some("bit/s") };
const SIZES: Parameter = Parameter { key: "sizes_bytes", name: "payload", unit: Some("bytes") };

/// The protocol's bounds on the payload of a datagram.
const SIZE_BYTES: RangeInclusive<u32> = 16..=65_507;

impl UdpSweep {
    /// Every list that the plan may have, in the order that decides where nothing is varied; as
    /// fast as possible is 0.
    pub(super) fn value_lists(&self) -> Vec<List> {
        let number = |rate: &OfferedRate| rate.0.map_or(0, BitRate::bits_per_sec);
        let value = |rate: &OfferedRate| Value { number: number(rate), label: rate.to_string() };
        let sizes = self.sizes_bytes.as_ref();
        vec![
            List::from_values(RATES, self.rates.as_ref(), value),
            List::from_numbers(SIZES, sizes, 0..=u64::MAX, count_label),
        ]
    }

    /// Refuses values and settings that the protocol cannot ask for.
    pub(super) fn check_values(&self) -> Checked {
        check_lists(&self.value_lists(), "rates or sizes_bytes")?;
        let (least, most) = (SIZE_BYTES.start(), SIZE_BYTES.end());
        for (index, size) in self.sizes_bytes.iter().flatten().enumerate() {
            if !SIZE_BYTES.contains(size) {
                let message = format!("{size} bytes; {least} to {most} are allowed");
                return item_fault("sizes_bytes", index, message);
            }
        }
        // The length is checked above; this one fits every packet.
        embedded::check_each_key(&self.base, |base| base.clone().with_size(*least).check())?;
        check_seconds("seconds", Some(self.seconds))?;
        check_omitted(self.omit_seconds)
    }

    /// The test for the value at a place of the varied list.
    pub(super) fn plan_for_value(&self, at: usize) -> UdpPlan {
        let span_ns = seconds_to_nanos(self.seconds);
        let test = UdpTest {
            finish: Finish::TimeNs(span_ns),
            omit_ns: seconds_to_nanos(self.omit_seconds.unwrap_or_default()),
            interval_ns: interval_ns(span_ns),
            size_bytes: pick_value(self.sizes_bytes.as_ref(), at),
            pace: pick_value(self.rates.as_ref(), at).and_then(|rate| rate.0),
            ..self.base.clone()
        };
        let server = ServerPlan::new(None, "", DEFAULT_PORT);
        UdpPlan { server, test, ..UdpPlan::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Plan;
    use crate::study::{StudyPlan, TestKind};

    /// A study of one host that measures itself, with this UDP test.
    fn study_from_keys(keys: &str) -> Result<StudyPlan, String> {
        let text = format!(
            "name = \"s\"\ntitle = \"t\"\n\
             [[topology]]\nid = \"a\"\ntitle = \"one\"\nclass = \"c\"\nclient = \"h\"\n\
             server = \"h\"\nl2_hops = 0\nl3_hops = 0\n\
             [topology.lab]\nhost = [{{ name = \"h\" }}]\n\
             [[test]]\nid = \"udp\"\nkind = \"udp\"\nrepetitions = 2\n{keys}\n"
        );
        StudyPlan::from_toml(&text).map_err(|error| error.reason)
    }

    fn udp_plans(keys: &str) -> Vec<(u64, Option<String>, UdpPlan)> {
        let cells = study_from_keys(keys).expect("a sound plan").cell_plans();
        let first = cells.into_iter().filter(|cell| cell.cell.repetition == 1);
        let udp = first.map(|cell| match cell.plan {
            Plan::Udp(udp) => (cell.cell.parameter, cell.cell.label, udp),
            other => panic!("{other:?}"),
        });
        udp.collect()
    }

    #[test]
    fn rates_are_varied_with_words_and_sizes_hold() {
        let keys = "rates = [\"100 Mbit/s\", \"max\"]\nsizes_bytes = [8972]\nseconds = 2.0\n\
                    omit_seconds = 0.5";
        let plans = udp_plans(keys);
        assert_eq!(plans.len(), 2);
        let (number, label, plan) = &plans[0];
        assert_eq!((*number, label.as_deref()), (100_000_000, Some("rate 100 Mbit/s")));
        assert_eq!((plan.test.size_bytes, plan.test.omit_ns), (Some(8972), 500_000_000));
        assert_eq!(plan.test.finish, Finish::TimeNs(2_000_000_000));
        let (number, label, plan) = &plans[1];
        assert_eq!((*number, label.as_deref(), plan.test.pace), (0, Some("rate max"), None));
        // What a study stores is read again.
        let study = study_from_keys(keys).expect("a sound plan");
        let TestKind::Udp(udp) = &study.tests[0].kind else { panic!("it is one of UDP") };
        let json = crate::tree::to_value(udp).expect("plain data");
        assert_eq!(json["rates"], serde_json::json!(["100 Mbit/s", "max"]));
    }

    #[test]
    fn a_rate_is_kept_to_its_last_digit() {
        for (bps, text) in [
            (1_234_567, "1.234567 Mbit/s"),
            (1_230_000, "1.23 Mbit/s"),
            (999_999, "999.999 kbit/s"),
            (1_000_001, "1.000001 Mbit/s"),
            (10_000_000_300, "10.0000003 Gbit/s"),
            (7, "7 bit/s"),
        ] {
            let rate = OfferedRate(Some(BitRate::from_bits_per_sec(bps)));
            assert_eq!(rate.to_string(), text);
            assert_eq!(text.parse(), Ok(rate));
        }
        let plans = udp_plans("rates = [\"1.234567 Mbit/s\", \"1.23 Mbit/s\"]\nseconds = 1.0");
        let asked = plans[0].2.test.pace.map(BitRate::bits_per_sec);
        assert_eq!(asked, Some(1_234_567), "the plan keeps it");
    }

    #[test]
    fn sizes_are_varied_at_one_rate() {
        let plans = udp_plans("rates = [\"max\"]\nsizes_bytes = [1472, 8972]\nseconds = 1.0");
        let sizes: Vec<u64> = plans.iter().map(|(number, ..)| *number).collect();
        assert_eq!(sizes, [1472, 8972]);
        assert_eq!(plans[1].2.test.size_bytes, Some(8972));
    }

    #[test]
    fn each_fault_is_named() {
        for (keys, expected) in [
            ("seconds = 1.0", "varies nothing"),
            ("rates = []\nseconds = 1.0", "rates is empty"),
            ("rates = [\"max\"]", "missing field `seconds`"),
            ("rates = [\"fast\"]\nseconds = 1.0", "write max"),
            ("rates = [\"0 bit/s\"]\nseconds = 1.0", "write max"),
            ("rates = [\"1M\", \"1 Mbit/s\"]\nseconds = 1.0", "1 Mbit/s is there twice"),
            ("sizes_bytes = [15]\nseconds = 1.0", "15 bytes; 16 to 65507"),
            ("rates = [\"max\"]\nseconds = 0.0", "seconds is 0"),
            ("rates = [\"max\"]\nseconds = 1.0\nomit_seconds = -1.0", "omit_seconds is -1"),
            ("rates = [\"max\"]\nseconds = 1.0\nstreams = [2]", "has no key 'streams'"),
            ("rates = [\"max\", \"1M\"]\nsizes_bytes = [16, 17]\nseconds = 1.0", "vary one"),
        ] {
            let message = study_from_keys(keys).expect_err(expected);
            assert!(message.contains(expected), "'{expected}' is not in: {message}");
        }
    }
}
