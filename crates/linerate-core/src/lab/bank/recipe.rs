//! Recipes: the text of a family, and the values drawn for its words.
//!
//! ```toml
//! title = "Receive window"
//!
//! [[recipe]]
//! id = "receive-buffer"
//! title = "the receiver's buffer is a fraction of the path's product"
//! expect = "receive_window"
//! congestion = ["cubic", "bbr"]
//! draw.buffer = [[65536, 98304], [131072, 196608]]
//! plant.receiver.rmem_max_bytes = "%buffer"
//! ```
//!
//! `base` is what both runs have, `plant` what the first has besides, `without` what the second
//! has instead of the plant. `$word` in a text is replaced by a value drawn from the word's range
//! of the level, and a text of `%word` by the number. Every recipe has `rate` in Mbit/s and `delay`
//! each way in ms, from the values below.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::half::hash;
use super::{Half, Label, Scenario, Setting};
use crate::path::Random;

/// Number of levels of each parameter.
pub(super) const LEVELS: u8 = 2;
/// Rates of the path in Mbit/s, and delays each way in ms, by level: few, so that many scenarios
/// share the path without its plant.
const RATES: [[f64; 2]; 2] = [[20.0, 30.0], [40.0, 50.0]];
const DELAYS: [[f64; 2]; 2] = [[10.0, 15.0], [20.0, 25.0]];

/// Recipes of related causes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Title of what the recipes have in common.
    pub title: String,
    /// Recipes in the order of the file.
    #[serde(rename = "recipe")]
    pub recipes: Vec<Recipe>,
}

/// One way to spoil a path, or not to spoil it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the recipe, unique in the bank.
    pub id: String,
    /// Title of the planted cause, in a few words.
    pub title: String,
    /// The label that a diagnosis should give.
    pub expect: Label,
    /// Labels that are right too.
    #[serde(default)]
    pub accept: Vec<Label>,
    /// Congestion controls of the sender.
    #[serde(default = "cubic")]
    pub congestion: Vec<String>,
    /// Values to draw: lowest and highest at either level.
    #[serde(default)]
    pub draw: BTreeMap<String, [[f64; 2]; 2]>,
    /// Settings with and without the plant.
    #[serde(default)]
    base: Map<String, Value>,
    /// Settings of the planted cause.
    #[serde(default)]
    plant: Map<String, Value>,
    /// Settings in place of the plant in the path without it.
    #[serde(default)]
    without: Map<String, Value>,
}

fn cubic() -> Vec<String> {
    vec!["cubic".to_owned()]
}

impl Family {
    /// Reads a family and draws each recipe once, so that errors are found at once.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let family: Self = crate::tree::from_toml(text).map_err(|error| one_line(&error))?;
        for recipe in &family.recipes {
            for level in 0..LEVELS {
                recipe
                    .scenario("", level, "cubic", 1)
                    .map_err(|why| format!("{}: {why}", recipe.id))?;
            }
        }
        Ok(family)
    }

    /// The scenarios of a seed.
    pub fn scenarios(&self, name: &str, seed: u64) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for recipe in &self.recipes {
            for congestion in &recipe.congestion {
                let levels =
                    (0..LEVELS).map(|level| recipe.scenario(name, level, congestion, seed));
                scenarios.extend(levels.filter_map(Result::ok));
            }
        }
        scenarios
    }
}

impl Recipe {
    /// The recipe with values of a level and a seed.
    fn scenario(
        &self,
        family: &str,
        level: u8,
        congestion: &str,
        seed: u64,
    ) -> Result<Scenario, String> {
        let drawn = self.draw_values(level, seed);
        let base = merged(default_path(&drawn), &self.base);
        let setting = |more: &Map<String, Value>| {
            let whole = filled(Value::Object(merged(base.clone(), more)), &drawn)?;
            crate::tree::from_value::<Setting>(whole).map_err(|error| one_line(&error))
        };
        let (planted, without) = (setting(&self.plant)?, setting(&self.without)?);
        let text = format!("{}/{level}/{congestion}/{drawn:?}", self.id);
        Ok(Scenario {
            recipe: self.id.clone(),
            family: family.to_owned(),
            level,
            congestion: congestion.to_owned(),
            seed,
            half: Half::from_identity(&text),
            expect: self.expect,
            accept: self.accept.clone(),
            drawn,
            has_counterfactual: !self.plant.is_empty(),
            planted,
            without,
        })
    }

    fn draw_values(&self, level: u8, seed: u64) -> BTreeMap<String, f64> {
        let at = usize::from(level.min(LEVELS - 1));
        let mut random = Random::new(seed, hash(&self.id) ^ u64::from(level));
        let mut drawn = BTreeMap::new();
        for (word, choices) in [("rate", RATES), ("delay", DELAYS)] {
            let second = usize::from(random.chance(0.5));
            drawn.insert(word.to_owned(), choices[at][second]);
        }
        for (word, ranges) in &self.draw {
            drawn.insert(word.clone(), between(ranges[at], random.next_uniform()));
        }
        drawn
    }
}

/// Path of a recipe that names none.
fn default_path(drawn: &BTreeMap<String, f64>) -> Map<String, Value> {
    let (rate, delay) = (drawn["rate"], drawn["delay"]);
    let path = json!({ "rate": format!("{rate} Mbit/s"), "delay": format!("{delay} ms") });
    Map::from_iter([("path".to_owned(), path)])
}

/// A value of a range, evenly spread over its logarithm, with three digits; whole where the ends
/// are.
fn between([low, high]: [f64; 2], at: f64) -> f64 {
    let value = if low > 0.0 { low * (high / low).powf(at) } else { low + (high - low) * at };
    if low.fract() == 0.0 && high.fract() == 0.0 {
        return value.round();
    }
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// A table with another one over it, key by key.
fn merged(mut base: Map<String, Value>, over: &Map<String, Value>) -> Map<String, Value> {
    for (key, value) in over {
        let value = match (base.remove(key), value) {
            (Some(Value::Object(below)), Value::Object(value)) => {
                Value::Object(merged(below, value))
            }
            (_, value) => value.clone(),
        };
        base.insert(key.clone(), value);
    }
    base
}

/// The value with drawn numbers in place of words.
fn filled(value: Value, drawn: &BTreeMap<String, f64>) -> Result<Value, String> {
    Ok(match value {
        Value::Object(table) => {
            let entries = table.into_iter().map(|(key, value)| Ok((key, filled(value, drawn)?)));
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
        Value::Array(values) => {
            let values = values.into_iter().map(|value| filled(value, drawn));
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        Value::String(text) => {
            if let Some(value) = text.strip_prefix('%').and_then(|word| drawn.get(word)) {
                return Ok(number(*value));
            }
            // Longer words first: `$rate` is the beginning of `$rate_after`.
            let text = drawn.iter().rev().fold(text, |text, (word, value)| {
                text.replace(&format!("${word}"), &value.to_string())
            });
            match text.contains('$') {
                true => return Err(format!("nothing is drawn for the word in `{text}`")),
                false => Value::String(text),
            }
        }
        other => other,
    })
}

fn number(value: f64) -> Value {
    value.to_string().parse::<i64>().map_or_else(|_| Value::from(value), Value::from)
}

fn one_line(error: &crate::tree::Error) -> String {
    crate::lab::one_line(error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"title = "t"
[[recipe]]
id = "x"
title = "a small buffer"
expect = "receive_window"
congestion = ["cubic", "bbr"]
draw.buffer = [[65536, 65536], [131072, 131072]]
draw.loss = [[0.001, 0.002], [0.003, 0.003]]
base.path.loss = "$loss"
plant.path.backward = { loss = "0" }
plant.receiver.rmem_max_bytes = "%buffer"
without.path.delay = "1 ms"
"#;

    #[test]
    fn a_recipe_has_a_scenario_for_each_level_and_congestion_control() {
        let family = Family::from_toml(TEXT).expect("a good family");
        let all = family.scenarios("f", 1);
        let names: Vec<_> =
            all.iter().map(|scenario| (scenario.level, scenario.congestion.as_str())).collect();
        assert_eq!(names, [(0, "cubic"), (1, "cubic"), (0, "bbr"), (1, "bbr")]);
        let second = &all[1];
        assert_eq!(second.planted.receiver.rmem_max_bytes, Some(131_072));
        assert_eq!(second.without.receiver.rmem_max_bytes, None);
        assert_eq!(second.planted.path.loss.as_deref(), Some("0.003"));
        assert_eq!(second.without.path.loss.as_deref(), Some("0.003"));
        assert_eq!(second.without.path.delay.as_deref(), Some("1 ms"));
        let rate = second.drawn["rate"];
        assert!([40.0, 50.0].contains(&rate), "{rate}");
        assert_eq!(second.planted.path.rate, Some(format!("{rate} Mbit/s")));
    }

    #[test]
    fn a_seed_draws_the_same_values_and_another_one_others() {
        let family = Family::from_toml(TEXT).expect("a good family");
        let loss = |seed| family.scenarios("f", seed)[0].drawn["loss"];
        assert_eq!(loss(7).to_bits(), loss(7).to_bits());
        assert_ne!(loss(7).to_bits(), loss(8).to_bits());
        assert!((0.001..=0.002).contains(&loss(7)));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_recipe() {
        let refused = |from: &str, to: &str| {
            Family::from_toml(&TEXT.replace(from, to)).expect_err("it does not fit")
        };
        assert!(refused("\"$loss\"", "\"$lost\"").contains("x: nothing is drawn for the word"));
        assert!(refused("path.loss", "path.lost").contains("unknown field `lost`"));
    }
}
