//! A plot of the sheet as a small SVG file.

use linerate_report::short_signed;
use linerate_report::svg::{Axis, AxisKind, ChartSeries, LineChart, linear_domain};

use super::sheet::{Plot, PlotAxis};

/// Name of a plot's file.
pub(super) fn file_name(plot: &Plot) -> String {
    format!("{}.svg", plot.id)
}

/// The plot as a file.
pub(super) fn svg(plot: &Plot) -> String {
    let curves = plot.curves();
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let axes = [
        axis(&plot.x, points().map(|point| point.0).collect()),
        axis(&plot.y, points().map(|point| point.1).collect()),
    ];
    let description = format!("{} over {}", plot.y.label, plot.x.label);
    let series = curves.into_iter().enumerate();
    let series = series.map(|(at, curve)| ChartSeries {
        steps: plot.steps,
        ..ChartSeries::new(curve.label, at, curve.points)
    });
    let chart = LineChart::new(&plot.title, description, axes, series.collect());
    chart.formula_svg().file_with_style()
}

/// A linear axis begins at 0, unless that would leave more than half of it empty.
fn axis(axis: &PlotAxis, values: Vec<f64>) -> Axis {
    let kind = if axis.log { AxisKind::Log } else { AxisKind::Linear };
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let far = kind == AxisKind::Linear && lowest > highest / 2.0 && lowest > 0.0;
    let domain = if far { linear_domain(values.into_iter(), lowest, 5) } else { None };
    Axis { kind, domain, ..Axis::linear(&axis.label, tick) }
}

/// The text of a tick: `20k`, `0.01`, `1e-6`.
fn tick(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { short_signed(value) }
}

mod tests {
    use super::*;

    fn domain(log: bool, values: &[f64]) -> Option<(f64, f64)> {
        axis(&PlotAxis { log, ..PlotAxis::default() }, values.to_vec()).domain
    }

    #[test]
    fn an_axis_far_from_0_begins_near_its_values() {
        assert_eq!(domain(false, &[910.0, 985.0]), Some((900.0, 1000.0)));
        assert_eq!(domain(false, &[0.0, 985.0]), None);
        assert_eq!(domain(false, &[400.0, 985.0]), None);
        assert_eq!(domain(true, &[910.0, 985.0]), None);
        assert_eq!(domain(false, &[-5.0, -4.0]), None);
        assert_eq!(domain(false, &[]), None);
    }

    #[test]
    fn ticks_below_a_thousandth_are_powers_of_ten() {
        let cases = [(1e-6, "1e-6"), (0.01, "0.01"), (20_000.0, "20k"), (0.0, "0")];
        for (value, expected) in cases {
            assert_eq!(tick(value), expected);
        }
    }
}
