//! The formula sheet as `docs/formulas` holds it: a file for each section, in the order of names.
//!
//! Left out: what the formulas compute, which is `formulas`, and how the page shows it.

use std::path::Path;

use serde::Deserialize;

use super::formulas::{answer, curve_of};
use super::inputs::{Inputs, factor};

/// A part of the sheet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub title: String,
    /// What its formulas answer, in one or two sentences.
    pub purpose: String,
    /// In the order of the page.
    #[serde(rename = "formula")]
    pub formulas: Vec<Formula>,
    #[serde(rename = "plot", default)]
    pub plots: Vec<Plot>,
}

/// One formula.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Formula {
    /// Anchor of the page: lower case, words joined by hyphens.
    pub id: String,
    pub title: String,
    /// In plain text: `R = W / RTT`.
    pub formula: String,
    /// Symbol, what it stands for, and its unit, or `1` for a number without one.
    pub symbols: Vec<[String; 3]>,
    /// Where it holds, and what it says nothing about.
    pub range: String,
    /// Standard or paper, with its section.
    pub source: String,
    /// True for a rule that reality is known to miss by more than a tenth.
    #[serde(default)]
    pub estimate: bool,
    /// The function that its examples call, where that is not of the formula's name.
    compute: Option<String>,
    #[serde(rename = "example")]
    pub examples: Vec<Example>,
    /// Name of its plot; formulas may share one.
    pub plot: String,
}

/// A worked example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    /// The inputs, in words and figures: `1 Gbit/s, 21 ms`.
    pub given: String,
    /// The function, where that is not the formula's.
    compute: Option<String>,
    #[serde(default)]
    inputs: Inputs,
    /// What somebody else says or a hand sum gives.
    pub expected: f64,
    /// The most by which the two may differ, relative to `expected`; absolute where that is 0.
    #[serde(default = "one_in_ten_thousand")]
    tolerance: f64,
    /// Instead of a tolerance: half the last digit of a figure that was rounded for printing.
    rounded_by: Option<f64>,
    /// Unit of both.
    pub unit: String,
    /// Where `expected` comes from: a standard's own example, a published figure, the hand sum.
    pub origin: String,
}

fn one_in_ten_thousand() -> f64 {
    1e-4
}

impl Formula {
    /// What the product says to an example, in the example's unit.
    pub(super) fn computed(&self, example: &Example) -> f64 {
        let name = example.compute.as_ref().or(self.compute.as_ref()).unwrap_or(&self.id);
        answer(name, &example.inputs).map_or(f64::NAN, |value| value / factor(&example.unit))
    }
}

impl Example {
    /// Whether `computed` agrees with what was expected.
    pub(super) fn agrees(&self, computed: f64) -> bool {
        let scale = if self.expected == 0.0 { 1.0 } else { self.expected.abs() };
        // A little more than the half digit, for a value that lies on the very edge.
        let most = self.rounded_by.map_or(self.tolerance * scale, |half| half * 1.0001);
        (computed - self.expected).abs() <= most
    }
}

/// A plot of one or more formulas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    /// Name of its file without the ending: lower case, words joined by hyphens.
    pub id: String,
    pub title: String,
    pub x: PlotAxis,
    pub y: PlotAxis,
    /// What changes along its curves, where they do not say it themselves.
    along: Option<Along>,
    /// The function of its curves, where they do not say it themselves.
    compute: Option<String>,
    /// Inputs of all its curves.
    #[serde(default)]
    inputs: Inputs,
    /// Joined by steps instead of straight lines.
    #[serde(default)]
    pub steps: bool,
    curves: Vec<PlotCurve>,
}

/// One axis of a plot.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlotAxis {
    /// What it shows, with the unit.
    pub label: String,
    /// Logarithmic.
    #[serde(default)]
    pub log: bool,
    /// The unit in which its values stand.
    #[serde(default)]
    pub unit: String,
}

/// One curve as the data give it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlotCurve {
    label: String,
    along: Option<Along>,
    compute: Option<String>,
    #[serde(default)]
    inputs: Inputs,
    /// Points that nothing computes.
    points: Option<Vec<(f64, f64)>>,
}

/// The input that changes along a curve.
#[derive(Debug, Deserialize)]
struct Along {
    input: String,
    #[serde(flatten)]
    values: Values,
}

/// Its values, in the unit of the horizontal axis.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    /// Spaced evenly on the axis.
    Spaced { from: f64, to: f64, steps: u32 },
    /// From the first number to below the second, by the third, of each range.
    Ranges { every: Vec<[u32; 3]> },
    /// These.
    These { values: Vec<f64> },
}

impl Values {
    fn list(&self, log: bool) -> Vec<f64> {
        let spaced = |from: f64, to: f64, steps: u32| {
            let at = move |step: u32| from + (to - from) * f64::from(step) / f64::from(steps);
            (0..=steps).map(at)
        };
        match self {
            Self::Spaced { from, to, steps } if log => {
                spaced(from.ln(), to.ln(), *steps).map(f64::exp).collect()
            }
            Self::Spaced { from, to, steps } => spaced(*from, *to, *steps).collect(),
            Self::Ranges { every } => {
                let range = |&[from, to, by]: &[u32; 3]| (from..to).step_by(by as usize);
                every.iter().flat_map(range).map(f64::from).collect()
            }
            Self::These { values } => values.clone(),
        }
    }
}

/// One curve as it is drawn.
#[derive(Debug)]
pub(crate) struct Curve {
    pub label: String,
    /// In the order in which they are joined; where the formula has no answer there is none.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    pub(super) fn curves(&self) -> Vec<Curve> {
        let drawn = |curve: &PlotCurve| Curve {
            label: curve.label.clone(),
            points: curve.points.clone().unwrap_or_else(|| self.points(curve)),
        };
        self.curves.iter().map(drawn).collect()
    }

    fn points(&self, curve: &PlotCurve) -> Vec<(f64, f64)> {
        let name = curve.compute.as_ref().or(self.compute.as_ref());
        let name = name.unwrap_or_else(|| panic!("{}: {} has no function", self.id, curve.label));
        let inputs = self.inputs.and(&curve.inputs);
        let Some(along) = curve.along.as_ref().or(self.along.as_ref()) else {
            return curve_of(name, &curve.label, &inputs);
        };
        let y = |x: f64| {
            let inputs = inputs.with(&along.input, x * factor(&self.x.unit));
            Some((x, answer(name, &inputs)? / factor(&self.y.unit)))
        };
        along.values.list(self.x.log).into_iter().filter_map(y).collect()
    }
}

/// The whole sheet, in the order of the page.
pub(crate) fn sheet() -> Vec<Section> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formulas");
    let entries = std::fs::read_dir(directory).expect("the folder of formulas");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let section = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("a file of formulas");
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().map(section).collect()
}

/// The plot of that name.
pub(super) fn plot_of<'a>(sheet: &'a [Section], id: &str) -> &'a Plot {
    let plot = sheet.iter().flat_map(|section| &section.plots).find(|plot| plot.id == id);
    plot.unwrap_or_else(|| panic!("there is no plot {id}"))
}
