//! The functions of the product that the sheet's examples and curves call, by name.
//!
//! Inputs are in SI units and bytes, and so are answers; the sheet says in which unit a figure is
//! shown.

mod contracts;
mod flows;
mod links;
mod published;
mod queues;

use super::inputs::Inputs;

/// A function with one answer; none where the formula has none.
type Rule = (&'static str, fn(&Inputs) -> Option<f64>);

/// A function whose answer is a whole curve, in the units of its plot. It knows the curve's label.
type Trace = (&'static str, fn(&str, &Inputs) -> Vec<(f64, f64)>);

const RULES: [&[Rule]; 5] =
    [links::RULES, flows::RULES, queues::RULES, contracts::RULES, published::RULES];

const TRACES: [&[Trace]; 3] = [links::TRACES, flows::TRACES, contracts::TRACES];

/// What the function of that name says to the inputs.
pub(super) fn answer(name: &str, inputs: &Inputs) -> Option<f64> {
    let rule = RULES.into_iter().flatten().find(|rule| rule.0 == name);
    let (_, rule) = rule.unwrap_or_else(|| panic!("there is no function {name}"));
    rule(inputs)
}

/// The curve that the function of that name draws.
pub(super) fn curve_of(name: &str, label: &str, inputs: &Inputs) -> Vec<(f64, f64)> {
    let trace = TRACES.into_iter().flatten().find(|trace| trace.0 == name);
    let (_, trace) = trace.unwrap_or_else(|| panic!("there is no curve {name}"));
    trace(label, inputs)
}
