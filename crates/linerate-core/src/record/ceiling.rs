//! The best that theory allows for a measurement, at which layer, from which inputs; and the other
//! bounds that the record itself knows.
//!
//! Left out: bounds that need measurements beside the test (capacity by packet trains, loss by
//! event); they are the ladder's, whose names of rungs are used here.

use serde::{Deserialize, Serialize};

use super::{Direction, HeaderLayer, MetricId};

/// Above this share of its ceiling a result and its ceiling contradict each other: more than the
/// hundredth that clocks and the ends of a span explain.
pub const SHARE_MAX: f64 = 1.01;

/// The kind of the bound that the ceiling itself is, in the ladder's words.
pub const LINK: &str = "local_link";

/// An upper bound of one metric, with the inputs it was computed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// Direction of the data that is bounded; null in records of versions that knew one direction
    /// only.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// The metric that the ceiling bounds.
    pub metric: MetricId,
    /// Layer of the bounded rate.
    pub layer: HeaderLayer,
    /// The bound in the metric's unit; null when an input is unknown.
    pub value: Option<f64>,
    /// The bound at every layer, from the payload down to the wire; empty without a value.
    #[serde(default)]
    pub layers: Vec<LayerRate>,
    /// Values from which it was computed.
    pub inputs: Vec<CeilingInput>,
    /// Inputs that this host could not read. Beside a value, the true bound may be lower.
    pub unknown: Vec<String>,
    /// The reason why no link bounds this path, where that is known: it is loopback.
    #[serde(default)]
    pub no_link: Option<String>,
    /// Measured over bound. Above 1 one of the two is wrong; a caveat says so above 1.01.
    pub share: Option<f64>,
    /// Further bounds, each computed on its own.
    #[serde(default)]
    pub rungs: Vec<Rung>,
}

/// A rate at one layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerRate {
    /// Headers that the rate includes.
    pub layer: HeaderLayer,
    /// Rate at the layer, bit/s.
    pub bps: f64,
}

/// One further bound of a ceiling's metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rung {
    /// Kind of the bound, in the ladder's words: `receive_window`, `send_buffer`, `application`.
    pub kind: String,
    /// The bound in the metric's unit at the ceiling's layer; null when an input is unknown.
    pub value: Option<f64>,
    /// Values from which it was computed.
    pub inputs: Vec<CeilingInput>,
    /// Inputs that this host could not read.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// The rule, with its source.
    pub source: String,
}

/// One input of a ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CeilingInput {
    /// Name of the value: `link_rate_bps`, `mtu_bytes`, `packet_bytes`, `header_bytes`,
    /// `rtt_min_ns`.
    pub name: String,
    /// Value in the unit that the name ends in.
    pub value: f64,
    /// Source of the value: `tbf qdisc on veth-a`, `ethtool speed of eth0`, `SYN options`.
    pub source: String,
}

/// The smallest of several bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected<'a> {
    /// The rung's kind; [`LINK`] is the ceiling itself.
    pub kind: &'a str,
    /// Value in the metric's unit.
    pub value: f64,
}

impl Ceiling {
    /// A ceiling of goodput without inputs, which the caller fills in.
    pub const fn of_goodput(direction: Direction) -> Self {
        Self {
            direction: Some(direction),
            metric: MetricId::Goodput,
            layer: HeaderLayer::Payload,
            value: None,
            layers: Vec::new(),
            inputs: Vec::new(),
            unknown: Vec::new(),
            no_link: None,
            share: None,
            rungs: Vec::new(),
        }
    }

    /// The smallest bound that is known, the link's among them: no more than this is to be
    /// expected. `None` when no bound is known.
    pub fn expected(&self) -> Option<Expected<'_>> {
        let link = self.value.map(|value| Expected { kind: LINK, value });
        let rungs = self.rungs.iter();
        let rungs =
            rungs.filter_map(|rung| Some(Expected { kind: &rung.kind, value: rung.value? }));
        link.into_iter().chain(rungs).min_by(|one, other| one.value.total_cmp(&other.value))
    }

    /// True when the measured value is above the ceiling by more than measurement errors.
    pub fn is_exceeded(&self) -> bool {
        self.share.is_some_and(|share| share > SHARE_MAX)
    }

    /// The input of a name.
    pub fn find_input(&self, name: &str) -> Option<&CeilingInput> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

impl CeilingInput {
    /// An input with its source.
    pub fn from_value(name: &str, value: f64, source: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value, source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_rung(kind: &str, value: Option<f64>) -> Rung {
        let (inputs, unknown, source) = (Vec::new(), Vec::new(), String::new());
        Rung { kind: kind.to_owned(), value, inputs, unknown, source }
    }

    #[test]
    fn the_smallest_known_bound_is_expected_and_has_its_name() {
        let mut ceiling = Ceiling::of_goodput(Direction::Up);
        assert_eq!(ceiling.expected(), None);
        ceiling.rungs =
            vec![test_rung("receive_window", Some(40e6)), test_rung("application", None)];
        assert_eq!(ceiling.expected(), Some(Expected { kind: "receive_window", value: 40e6 }));
        ceiling.value = Some(30e6);
        assert_eq!(ceiling.expected(), Some(Expected { kind: LINK, value: 30e6 }));
    }

    #[test]
    fn a_ceiling_of_the_first_version_is_read() {
        // As linerate.record/1 was written before the ways had a ceiling each.
        let text = r#"{"metric":"goodput_bps","layer":"payload","value":1e9,"inputs":[],
            "unknown":[],"share":0.5}"#;
        let ceiling: Ceiling = crate::tree::from_json(text).expect("fields were only added");
        assert_eq!((ceiling.direction, ceiling.share), (None, Some(0.5)));
        assert!(ceiling.layers.is_empty() && ceiling.rungs.is_empty());
    }

    #[test]
    fn a_hundredth_above_the_ceiling_is_a_contradiction() {
        let at = |share| Ceiling { share, ..Ceiling::of_goodput(Direction::Up) }.is_exceeded();
        assert!(at(Some(1.02)) && !at(Some(1.01)) && !at(Some(0.3)) && !at(None));
    }
}
