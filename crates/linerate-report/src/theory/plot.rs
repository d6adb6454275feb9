//! A plot of the sheet as a small SVG file.

use linerate_core::theory::sheet::{Curve, Plot, PlotAxis};

use crate::number;
use crate::svg::{Axis, Kind, LineChart, Series};

/// Name of a plot's file.
pub(super) fn file_name(plot: &Plot) -> String {
    format!("{}.svg", plot.id)
}

/// The plot as a file.
pub(super) fn svg(plot: &Plot) -> String {
    let chart = LineChart {
        title: plot.title.to_owned(),
        description: format!("{} over {}", plot.y.label, plot.x.label),
        x: axis(&plot.x),
        y: axis(&plot.y),
        series: (plot.curves)().into_iter().enumerate().map(series).collect(),
        room: 0.0,
    };
    chart.formula_svg().file()
}

fn axis(axis: &PlotAxis) -> Axis {
    Axis::plain(axis.label, if axis.log { Kind::Log } else { Kind::Linear }, tick)
}

fn series((style, curve): (usize, Curve)) -> Series {
    Series {
        label: curve.label,
        style,
        points: curve.points,
        rings: Vec::new(),
        dashed: false,
        steps: curve.steps,
    }
}

/// The text of a tick: `20k`, `0.01`, `1e-6`.
fn tick(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        format!("{value:e}")
    } else {
        number::short_signed(value)
    }
}
