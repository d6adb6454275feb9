//! Evidence from results of other programs: fewer signals, the same rules.
//!
//! Read: `iperf3 -J` (3.1 to 3.19), results of ndt7 servers, `ss -ti` of one socket or more. What
//! these do not hold is listed as not seen; nothing is put in its place.

mod iperf3;
mod ndt7;
mod ss;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::evidence::Evidence;
use super::of_record::quantile;

/// Evidence of each direction or socket of a foreign result, with the name of its program; `None`
/// for a text that is none of the kinds known.
pub fn foreign(text: &str) -> Option<(&'static str, Vec<Evidence>)> {
    if let Ok(json) = serde_json::from_str::<Value>(text) {
        return iperf3::read(&json)
            .map(|found| ("iperf3", found))
            .or_else(|| ndt7::read(&json).map(|found| ("ndt7", found)));
    }
    let found = ss::read(text);
    (!found.is_empty()).then_some(("ss", found))
}

/// A number under a path of keys.
fn number(json: &Value, keys: &[&str]) -> Option<f64> {
    keys.iter().try_fold(json, |json, key| json.get(key))?.as_f64()
}

/// A number that 0 means nothing for.
fn positive(json: &Value, keys: &[&str]) -> Option<f64> {
    number(json, keys).filter(|value| *value > 0.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole(value: f64) -> u64 {
    value as u64
}

fn small(value: f64) -> Option<u32> {
    u32::try_from(whole(value)).ok()
}

/// What none of these programs tells.
fn never_seen(more: &[&str]) -> Vec<String> {
    let always = ["round trip before the load", "send buffer in use", "what lies behind losses"];
    always.iter().chain(more).map(|what| (*what).to_owned()).collect()
}
