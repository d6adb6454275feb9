//! Words of a device benchmark in a study's file: measures and goals by name, goals as tables, and
//! what was ordered of a policer.
//!
//! The goals by name are those of `record::BenchGoal`; a table sets every number of its own.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::tcp_sweep::seconds_to_nanos;
use crate::record::{self, BenchContract, BenchGoal, CellContract};
use crate::units::{BitRate, parse_span};

/// One thing to measure, by its name: `loss-curve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Measure(
    /// The measure that it names.
    pub record::BenchTest,
);

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let told = |names| format!("`{text}` is no measure; {names}");
        text.parse().map(Self).map_err(told)
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> Self {
        measure.0.name().to_owned()
    }
}

/// Goal of a search: a name or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum GoalWord {
    /// `strict`, `typical` or `verified`.
    Named(NamedGoal),
    /// With every number of its own.
    Table(GoalTable),
}

/// The goals that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NamedGoal {
    /// Trials of 60 s, not one frame lost (RFC 2544 §24, §26.1).
    Strict,
    /// Half of the trials of 1 s, over 21 s, lose nothing.
    Typical,
    /// As strict, and a trial that lost is repeated (ETSI GS NFV-TST 009 §12.3.3).
    Verified,
}

/// A goal of a search in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GoalTable {
    /// For tables.
    pub name: String,
    /// Length of a trial that counts in full.
    pub trial_seconds: f64,
    /// Such trials at one load, added up, that decide; one trial when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_seconds: Option<f64>,
    /// Share of frames that a trial may lose, 0 … 1; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Share of the trials that may lose more, 0 … 1; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceed_ratio: Option<f64>,
    /// Relative distance of the two bounds at which the search ends, 0 … 1; 0.005 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
}

impl GoalWord {
    /// The goal.
    pub fn bench_goal(&self) -> BenchGoal {
        match self {
            Self::Named(NamedGoal::Strict) => BenchGoal::strict(),
            Self::Named(NamedGoal::Typical) => BenchGoal::typical(),
            Self::Named(NamedGoal::Verified) => BenchGoal::verified(),
            Self::Table(table) => BenchGoal {
                name: table.name.clone(),
                final_trial_ns: seconds_to_nanos(table.trial_seconds),
                duration_sum_ns: seconds_to_nanos(table.sum_seconds.unwrap_or(table.trial_seconds)),
                loss_ratio: table.loss_ratio.unwrap_or(0.0),
                exceed_ratio: table.exceed_ratio.unwrap_or(0.0),
                width: table.width.unwrap_or_else(|| BenchGoal::strict().width),
            },
        }
    }
}

impl<'de> Deserialize<'de> for GoalWord {
    /// Written by hand: an untagged enum would not say what is wrong with a table.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl<'de> Visitor<'de> for Word {
            type Value = GoalWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("strict, typical, verified or a table with name and trial_seconds")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GoalWord, E> {
                let named = match text {
                    "strict" => NamedGoal::Strict,
                    "typical" => NamedGoal::Typical,
                    "verified" => NamedGoal::Verified,
                    _ => {
                        let names = "strict, typical, verified, or a table";
                        return Err(E::custom(format!("`{text}` is no goal; {names}")));
                    }
                };
                Ok(GoalWord::Named(named))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GoalWord, A::Error> {
                GoalTable::deserialize(MapAccessDeserializer::new(map)).map(GoalWord::Table)
            }
        }
        deserializer.deserialize_any(Word)
    }
}

/// Contract of a policer or shaper, in bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OrderedContract {
    /// Committed information rate: `10 Mbit/s`.
    pub cir: String,
    /// Committed burst size, bytes of frames.
    pub cbs_bytes: u64,
    /// Excess information rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eir: Option<String>,
    /// Excess burst size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs_bytes: Option<u64>,
}

impl OrderedContract {
    /// The contract in numbers.
    pub(super) fn contract(&self) -> Result<BenchContract, (&'static str, String)> {
        let rate = |key: &'static str, text: &String| {
            text.parse::<BitRate>().map_err(|error| (key, error.to_string()))
        };
        let cir = rate("cir", &self.cir)?;
        if cir.bits_per_sec() == 0 {
            return Err(("cir", "a rate of 0".to_owned()));
        }
        Ok(BenchContract {
            cir,
            cbs_bytes: self.cbs_bytes,
            eir: self.eir.as_ref().map(|text| rate("eir", text)).transpose()?,
            ebs_bytes: self.ebs_bytes,
        })
    }
}

/// Contract of a policer or shaper in cells, or frames of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OrderedCells {
    /// Peak rate, cells per second.
    pub pcr: f64,
    /// Tolerance at the peak rate: `4ms`; nothing is checked against it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdvt: Option<String>,
    /// Sustainable rate, cells per second.
    pub scr: f64,
    /// Largest burst at the peak rate, cells.
    pub mbs: u64,
}

impl OrderedCells {
    /// The contract in numbers.
    pub(super) fn contract(&self) -> Result<CellContract, (&'static str, String)> {
        let span = |text: &String| parse_span(text).map_err(|error| ("cdvt", error.to_string()));
        let cdvt = self.cdvt.as_ref().map(span).transpose()?;
        let contract = CellContract {
            pcr_per_sec: self.pcr,
            cdvt_ns: cdvt.map(|span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
            scr_per_sec: self.scr,
            mbs_cells: self.mbs,
        };
        contract.check_parameters().map(|()| contract)
    }
}
