//! What an example or a curve puts into its formula: values by the name of their symbol, in SI
//! units and bytes.
//!
//! A value that is absent or of another kind is a mistake of the data and panics with its name.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_core::units::{BitRate, Bytes};
use serde::Deserialize;

/// Values by symbol: numbers, quantities with a unit (`"100 ms"`), and words (`"OC-12"`).
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Inputs(BTreeMap<String, toml::Value>);

impl Inputs {
    /// Those of `self`, and these too.
    pub(super) fn and(&self, more: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(more.0.clone());
        all
    }

    /// With a number more.
    pub(super) fn with(&self, symbol: &str, value: f64) -> Self {
        let mut all = self.clone();
        all.0.insert(symbol.to_owned(), value.into());
        all
    }

    pub(super) fn has(&self, symbol: &str) -> bool {
        self.0.contains_key(symbol)
    }

    pub(super) fn number(&self, symbol: &str) -> f64 {
        match self.value(symbol) {
            toml::Value::Integer(number) => *number as f64,
            toml::Value::Float(number) => *number,
            toml::Value::String(text) => quantity(text),
            other => panic!("{symbol}: {other} is not a number"),
        }
    }

    pub(super) fn text(&self, symbol: &str) -> &str {
        self.value(symbol).as_str().unwrap_or_else(|| panic!("{symbol} is not a word"))
    }

    /// The items of a list.
    pub(super) fn list(&self, symbol: &str) -> &[toml::Value] {
        self.value(symbol).as_array().unwrap_or_else(|| panic!("{symbol} is not a list"))
    }

    /// To the nearest whole number.
    pub(super) fn whole(&self, symbol: &str) -> u64 {
        nearest(self.number(symbol))
    }

    /// As [`Self::whole`], below 2^32.
    pub(super) fn small(&self, symbol: &str) -> u32 {
        u32::try_from(self.whole(symbol)).unwrap_or_else(|_| panic!("{symbol} is too large"))
    }

    /// Bytes.
    pub(super) fn size(&self, symbol: &str) -> Bytes {
        Bytes::new(self.whole(symbol))
    }

    /// Bits per second.
    pub(super) fn rate(&self, symbol: &str) -> BitRate {
        BitRate::from_bits_per_sec(self.whole(symbol))
    }

    /// Seconds, to the nanosecond.
    pub(super) fn time(&self, symbol: &str) -> Duration {
        Duration::from_secs_f64(self.number(symbol))
    }

    fn value(&self, symbol: &str) -> &toml::Value {
        self.0.get(symbol).unwrap_or_else(|| panic!("{symbol} is not among {:?}", self.0.keys()))
    }
}

/// The nearest whole number.
pub(super) fn nearest(value: f64) -> u64 {
    let whole = BitRate::from_nearest(value).unwrap_or_else(|| panic!("{value} is no count"));
    whole.bits_per_sec()
}

/// `100 ms` in seconds.
fn quantity(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "1"));
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("'{text}' is not a quantity"));
    number * factor(unit)
}

/// What a unit is in SI units and bytes: `ms` is 0.001. A unit may be a multiple of one, such as
/// `10 Mbit/s`; what is counted in ones (packets, cells) is 1.
pub(super) fn factor(unit: &str) -> f64 {
    match unit {
        "Tbit·m/s" => 1e12,
        "Gbit/s" | "GB" => 1e9,
        "Mbit/s" | "MB" | "Mbit" => 1e6,
        "kbit/s" | "kB" | "km" => 1e3,
        "min" => 60.0,
        "%" => 1e-2,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        _ if unit.starts_with(|c: char| c.is_ascii_digit()) && unit.contains(' ') => quantity(unit),
        _ => 1.0,
    }
}
