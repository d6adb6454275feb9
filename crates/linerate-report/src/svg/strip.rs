//! A chart of repetitions: every run as a dot on the strip of its cell, as a share of the cell's
//! best run. The spread of a slow path and of a fast one can so be compared at a glance.

use super::axis::{AxisKind, AxisScale, linear_ticks};
use super::palette::{colour_class, light_colour};
use super::{Anchor, Area, Canvas, LINE_HEIGHT, Svg, WIDTH, coordinate_text, fitted, text_width};
use crate::escape;

/// The runs of one cell.
#[derive(Clone, Debug)]
pub(crate) struct StripRow {
    /// Its name: the window.
    pub label: String,
    /// Each run over the best one, 0 … 1.
    pub shares: Vec<f64>,
    /// The median run, as its share of the best one.
    pub median: Option<f64>,
    /// Text at the right of the row: the best run and the median.
    pub note: String,
}

/// Cells that belong together: a topology.
#[derive(Clone, Debug)]
pub(crate) struct StripGroup {
    /// Name of the topology.
    pub label: String,
    /// Number of its colour.
    pub style: usize,
    /// Rows from top to bottom.
    pub rows: Vec<StripRow>,
}

/// A chart of cells, one for each run of a row.
#[derive(Clone, Debug)]
pub(crate) struct StripChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// The description that screen readers get.
    pub description: String,
    /// Heading of the texts at the right.
    pub notes: String,
    /// Label of the axis under the chart.
    pub axis: String,
    /// Groups from top to bottom.
    pub groups: Vec<StripGroup>,
}

const ROW: f64 = 17.0;
const GROUP_GAP: f64 = 10.0;

impl StripChart {
    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let rows = || self.groups.iter().flat_map(|group| group.rows.iter());
        let shares = rows().flat_map(|row| row.shares.iter().copied()).filter(|s| s.is_finite());
        let Some(lowest) = shares.reduce(f64::min) else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let wide = |texts: Vec<f64>| texts.into_iter().fold(0.0, f64::max);
        let labels = wide(rows().map(|row| text_width(&row.label)).collect());
        let notes = wide(rows().map(|row| text_width(&row.note)).collect());
        let notes = notes.max(text_width(&self.notes));
        let height = |group: &StripGroup| ROW * (group.rows.len() as f64 + 1.0) + GROUP_GAP;
        let top = 2.6 * LINE_HEIGHT;
        let area = Area {
            left: (labels + 14.0).min(110.0),
            top,
            right: WIDTH - (notes + 10.0).min(220.0),
            bottom: top + self.groups.iter().map(height).sum::<f64>(),
        };
        let floor = (lowest.clamp(0.0, 0.9) * 10.0).floor() * 10.0;
        let scale =
            AxisScale::new(AxisKind::Linear, (floor, 100.0), (area.left + 6.0, area.right - 6.0));
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        canvas.draw_text(area.right + 8.0, top - 1.0, Anchor::Start, "soft", &self.notes);
        self.draw_axis(&mut canvas, area, &scale);
        let mut y = top;
        for group in &self.groups {
            draw_group(&mut canvas, area, &scale, group, y);
            y += height(group);
        }
        canvas.finish(&self.title, &self.description, area.bottom + 3.0 * LINE_HEIGHT)
    }

    fn draw_axis(&self, canvas: &mut Canvas, area: Area, scale: &AxisScale) {
        for tick in linear_ticks(scale.domain(), 5) {
            let Some(x) = scale.position_of(tick) else { continue };
            canvas.draw_line("grid", (x, area.top + 4.0), (x, area.bottom));
            let y = area.bottom + LINE_HEIGHT;
            canvas.draw_text(x, y, Anchor::Middle, "soft", &format!("{tick:.0} %"));
        }
        canvas.draw_axis_label(area, &self.axis);
    }
}

fn draw_group(canvas: &mut Canvas, area: Area, scale: &AxisScale, group: &StripGroup, top: f64) {
    let name = fitted(&group.label, WIDTH);
    // The ground behind the name keeps grid lines out of it.
    canvas.push_markup(&format!(
        "<rect class=\"ground\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>",
        coordinate_text(top + 3.0),
        coordinate_text(text_width(&name) * 1.1 + 4.0),
        coordinate_text(ROW)
    ));
    canvas.draw_text(0.0, top + ROW - 1.0, Anchor::Start, "strong", &name);
    for (index, row) in group.rows.iter().enumerate() {
        let y = top + ROW * (index as f64 + 1.5);
        canvas.draw_text(area.left - 4.0, y + 4.5, Anchor::End, "soft", &fitted(&row.label, 100.0));
        canvas.draw_text(
            area.right + 8.0,
            y + 4.5,
            Anchor::Start,
            "name",
            &fitted(&row.note, 212.0),
        );
        draw_row(canvas, scale, row, group.style, y);
    }
}

fn draw_row(canvas: &mut Canvas, scale: &AxisScale, row: &StripRow, style: usize, y: f64) {
    let (n, colour) = (colour_class(style), light_colour(style));
    let mut places: Vec<f64> =
        row.shares.iter().filter_map(|share| scale.position_of(share * 100.0)).collect();
    places.sort_by(f64::total_cmp);
    if let (Some(first), Some(last)) = (places.first(), places.last()) {
        canvas.draw_line("link", (*first, y), (*last, y));
    }
    if let Some(x) = row.median.and_then(|share| scale.position_of(share * 100.0)) {
        canvas.push_markup(&format!(
            "<line class=\"s{n}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\" stroke=\"{colour}\" \
             stroke-width=\"2.4\"/>",
            coordinate_text(y - 6.5),
            coordinate_text(y + 6.5),
            x = coordinate_text(x)
        ));
    }
    let best = places.pop();
    for x in places {
        canvas.push_markup(&format!(
            "<circle class=\"s{n}\" cx=\"{}\" cy=\"{}\" r=\"3.4\" fill=\"none\" \
             stroke=\"{colour}\" stroke-width=\"1.4\"/>",
            coordinate_text(x),
            coordinate_text(y)
        ));
    }
    if let Some(x) = best {
        canvas.push_markup(&format!(
            "<circle class=\"f{n}\" cx=\"{}\" cy=\"{}\" r=\"4.4\" fill=\"{colour}\">\
             <title>{}</title></circle>",
            coordinate_text(x),
            coordinate_text(y),
            escape::xml_escaped(&row.note)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_never_break_whatever_the_runs() {
        for shares in [vec![], vec![f64::NAN], vec![1.0], vec![0.0, 1.0], vec![0.97, 1.0, 2.0]] {
            let row = StripRow {
                label: "16K".to_owned(),
                median: shares.first().copied(),
                shares,
                note: "best".to_owned(),
            };
            let group = StripGroup { label: "a".to_owned(), style: 9, rows: vec![row] };
            let chart = StripChart {
                title: "t".to_owned(),
                description: "d".to_owned(),
                notes: "best, median".to_owned(),
                axis: "% of best".to_owned(),
                groups: vec![group],
            };
            let text = chart.svg().file_with_style();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
