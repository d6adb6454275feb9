//! A recipe with its values: what is built, and what a diagnosis should say of it.

use std::collections::BTreeMap;

use super::{Case, Half, Label, Setting};

/// A recipe at one level, with one congestion control and the values of one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the scenario's recipe.
    pub recipe: String,
    /// Name of the recipe's family.
    pub family: String,
    /// Level of the parameters, from 0.
    pub level: u8,
    /// Congestion control of the sender.
    pub congestion: String,
    /// Seed of the values.
    pub seed: u64,
    /// Half of the bank that the scenario belongs to.
    pub half: Half,
    /// The label that a diagnosis should give.
    pub expect: Label,
    /// Labels that are right too.
    pub accept: Vec<Label>,
    /// Values that were drawn for the recipe's parameters.
    pub drawn: BTreeMap<String, f64>,
    /// True when the path without the plant is another one.
    pub has_counterfactual: bool,
    /// The path with the plant.
    pub planted: Setting,
    /// The path without the plant.
    pub without: Setting,
}

impl Scenario {
    /// Name of the scenario: recipe, level from 1, congestion control.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.recipe, self.level + 1, self.congestion)
    }

    /// The scenario as a case that was not measured yet.
    pub fn unmeasured_case(&self, run: u32) -> Case {
        Case {
            recipe: self.recipe.clone(),
            family: self.family.clone(),
            level: self.level,
            congestion: self.congestion.clone(),
            seed: self.seed,
            run,
            half: self.half,
            expect: self.expect,
            accept: self.accept.clone(),
            drawn: self.drawn.clone(),
            ..Case::default()
        }
    }
}
