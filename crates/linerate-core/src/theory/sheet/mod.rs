//! The formula sheet: each formula of `theory` with its symbols, range and source, with worked
//! examples that the code computes, and with a plot.
//!
//! `docs/theory.md` is made from this table and a test computes every example, so that the page
//! cannot say what the code does not do. Left out: text layout, which is the report's.

mod access;
mod bucket;
mod distance;
mod encapsulation;
mod ethernet;
mod ladder;
mod loss;
mod model_based;
mod parts;
mod plans;
mod policing;
mod published;
mod queue;
mod slow_start;
mod sonet_atm;
mod speed_record;
mod window;

/// A part of the sheet.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// What its formulas answer, in one or two sentences.
    pub purpose: &'static str,
    /// In the order of the page.
    pub formulas: &'static [Formula],
}

/// One formula.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// Anchor of the page and name in errors: lower case, words joined by hyphens.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// The formula in plain text: `R = W / RTT`.
    pub formula: &'static str,
    /// Every symbol of it.
    pub symbols: &'static [Symbol],
    /// Where it holds, and what it says nothing about.
    pub range: &'static str,
    /// Standard or paper, with its section.
    pub source: &'static str,
    /// True for a rule that reality is known to miss by more than a tenth.
    pub estimate: bool,
    /// At least one; each is a test.
    pub examples: &'static [Example],
    /// Its plot; formulas may share one.
    pub plot: &'static Plot,
}

/// One symbol of a formula.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// As the formula writes it.
    pub symbol: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// Unit, or `1` for a number without one.
    pub unit: &'static str,
}

/// A worked example.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The inputs, in words and figures: `1 Gbit/s, 21 ms`.
    pub given: &'static str,
    /// What the code says.
    pub computed: fn() -> f64,
    /// What somebody else says or a hand sum gives.
    pub expected: f64,
    /// The most by which the two may differ, relative to `expected`; absolute where that is 0.
    pub tolerance: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Where `expected` comes from: a standard's own example, a published figure, the hand sum.
    pub origin: &'static str,
}

/// A plot of one or more formulas.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Name of its file without the ending: lower case, words joined by hyphens.
    pub id: &'static str,
    /// Over the plot.
    pub title: &'static str,
    /// Horizontal axis.
    pub x: PlotAxis,
    /// Vertical axis.
    pub y: PlotAxis,
    /// The curves, computed by the code.
    pub curves: fn() -> Vec<Curve>,
}

/// One axis of a plot.
#[derive(Clone, Copy, Debug)]
pub struct PlotAxis {
    /// What it shows, with the unit.
    pub label: &'static str,
    /// Logarithmic.
    pub log: bool,
}

/// One curve of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name beside it.
    pub label: String,
    /// Points in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Joined by steps instead of straight lines.
    pub steps: bool,
}

/// The whole sheet, in the order of the page.
pub const SHEET: &[Section] = &[
    sonet_atm::SECTION,
    ethernet::SECTION,
    encapsulation::SECTION,
    access::SECTION,
    distance::SECTION,
    window::SECTION,
    loss::SECTION,
    slow_start::SECTION,
    queue::SECTION,
    policing::SECTION,
    model_based::SECTION,
    speed_record::SECTION,
    ladder::SECTION,
    published::SECTION,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_comes_out() {
        for formula in SHEET.iter().flat_map(|section| section.formulas) {
            assert!(!formula.examples.is_empty(), "{} has no example", formula.id);
            for example in formula.examples {
                let got = (example.computed)();
                let scale = if example.expected == 0.0 { 1.0 } else { example.expected.abs() };
                assert!(
                    (got - example.expected).abs() <= example.tolerance * scale,
                    "{}: {}: computed {got}, expected {} {} ({})",
                    formula.id,
                    example.given,
                    example.expected,
                    example.unit,
                    example.origin,
                );
            }
        }
    }

    #[test]
    fn every_plot_has_a_curve_of_finite_points() {
        for formula in SHEET.iter().flat_map(|section| section.formulas) {
            let curves = (formula.plot.curves)();
            assert!(!curves.is_empty(), "{}: no curve", formula.plot.id);
            for curve in curves {
                assert!(curve.points.len() > 1, "{}: {}", formula.plot.id, curve.label);
                let finite = curve.points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
                assert!(finite, "{}: {}", formula.plot.id, curve.label);
            }
        }
    }
}
