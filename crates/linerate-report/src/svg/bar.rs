//! A chart of horizontal bars: of a row the bars stand under each other, as now and published, or
//! in one line, as the parts of a whole.

use super::axis::{AxisKind, AxisScale, linear_domain, linear_ticks};
use super::palette::{colour_class, light_colour};
use super::{
    Anchor, Area, Canvas, LINE_HEIGHT, Svg, WIDTH, broken, coordinate_text, fitted, text_width,
};
use crate::{escape, number};

/// One row; an absent value draws no bar and shows a dash.
#[derive(Clone, Debug)]
pub(crate) struct BarRow {
    /// Name of the row, at its left.
    pub label: String,
    /// One value for each name of the chart.
    pub values: Vec<Option<f64>>,
    /// Text at the end of each bar, such as its value.
    pub texts: Vec<String>,
}

/// A chart of horizontal bars, grouped in rows.
#[derive(Clone, Debug)]
pub(crate) struct BarChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// Accessible description of the chart (SVG `desc`).
    pub description: String,
    /// Title of the axis, with the unit.
    pub axis: String,
    /// Names of a row's bars, in their order.
    pub names: Vec<String>,
    /// Rows from top to bottom.
    pub rows: Vec<BarRow>,
    /// True if the bars of a row are parts of a whole and stand in one line; then the last text of
    /// a row is that of the whole.
    pub stacked: bool,
}

/// Rows in words, for readers who do not see them.
pub(crate) fn described_rows(rows: &[BarRow]) -> String {
    let each = rows.iter().map(|row| format!("{}: {}", row.label, row.texts.join(" and ")));
    each.collect::<Vec<String>>().join("; ")
}

const BAR: f64 = 13.0;
const ROW_GAP: f64 = 12.0;

/// Room for the names of rows at the most; longer ones are broken into lines.
const LABEL_MOST: f64 = 230.0;

impl BarChart {
    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let whole = |row: &BarRow| row.values.iter().flatten().sum::<f64>();
        let values: Vec<f64> = match self.stacked {
            true => self.rows.iter().map(whole).collect(),
            false => {
                self.rows.iter().flat_map(|row| row.values.iter().flatten().copied()).collect()
            }
        };
        let values = values.into_iter();
        let Some(domain) = linear_domain(values, 0.0, 5) else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let labels = self.rows.iter().map(|row| text_width(&row.label));
        let left = (labels.fold(0.0, f64::max) + 12.0).clamp(60.0, LABEL_MOST);
        let lines = self.rows.iter().map(|row| broken(&row.label, left - 12.0).len());
        let bars = if self.stacked { 1.0 } else { self.names.len() as f64 } * (BAR + 2.0);
        let row_height = bars.max(lines.max().unwrap_or(1) as f64 * LINE_HEIGHT) + ROW_GAP;
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        let top = self.draw_names(&mut canvas) + 1.2 * LINE_HEIGHT;
        // The widest figure stands beyond the end of its bar.
        let texts = self.rows.iter().flat_map(|row| match self.stacked {
            true => row.texts.last().map_or(&[][..], std::slice::from_ref),
            false => row.texts.as_slice(),
        });
        let texts = texts.map(|text| text_width(text));
        let area = Area {
            left,
            top,
            right: WIDTH - (texts.fold(0.0, f64::max) + 8.0).max(64.0),
            bottom: top + self.rows.len() as f64 * row_height,
        };
        let scale = AxisScale::new(AxisKind::Linear, domain, (area.left, area.right));
        self.draw_axis(&mut canvas, area, &scale);
        for (index, row) in self.rows.iter().enumerate() {
            let from = top + index as f64 * row_height;
            let span = RowSpan { top: from, bottom: from + row_height };
            draw_label(&mut canvas, area, row, span);
            match self.stacked {
                true => draw_stack(&mut canvas, &scale, row, span),
                false => draw_row(&mut canvas, area, &scale, row, span),
            }
        }
        canvas.finish(&self.title, &self.description, area.bottom + 3.0 * LINE_HEIGHT)
    }

    /// Draws the key with the bars' names on as many lines as it takes; returns the height at which
    /// it ends.
    fn draw_names(&self, canvas: &mut Canvas) -> f64 {
        let (mut x, mut y) = (0.0, 2.4 * LINE_HEIGHT);
        for (index, name) in self.names.iter().enumerate() {
            if x > 0.0 && x + 18.0 + text_width(name) > WIDTH {
                (x, y) = (0.0, y + LINE_HEIGHT + 2.0);
            }
            let filled = self.stacked || index == 0;
            let sample = Bar { index, filled, x, y: y - 10.0, width: 12.0, height: 12.0 };
            canvas.push_markup(&sample.markup(name));
            canvas.draw_text(x + 18.0, y, Anchor::Start, "name", name);
            x += text_width(name) + 44.0;
        }
        y
    }

    fn draw_axis(&self, canvas: &mut Canvas, area: Area, scale: &AxisScale) {
        for tick in linear_ticks(scale.domain(), 5) {
            let Some(x) = scale.position_of(tick) else { continue };
            canvas.draw_line("grid", (x, area.top), (x, area.bottom));
            let y = area.bottom + LINE_HEIGHT;
            canvas.draw_text(x, y, Anchor::Middle, "soft", &number::short_signed(tick));
        }
        canvas.draw_axis_label(area, &self.axis);
    }
}

/// Heights between which a row stands, as places on the canvas.
#[derive(Clone, Copy)]
struct RowSpan {
    top: f64,
    bottom: f64,
}

impl RowSpan {
    const fn middle(self) -> f64 {
        f64::midpoint(self.top, self.bottom)
    }
}

/// One bar, as places on the canvas.
struct Bar {
    /// Place of its name among the chart's names, which gives its colour.
    index: usize,
    /// Open where it is false, so that grey print tells the published one apart.
    filled: bool,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Bar {
    /// A rectangle in the colour of its name, with a hint.
    fn markup(&self, hint: &str) -> String {
        let (n, colour) = (colour_class(self.index), light_colour(self.index));
        let paint = if self.filled {
            format!("class=\"f{n}\" fill=\"{colour}\"")
        } else {
            format!("class=\"s{n}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"")
        };
        format!(
            "<rect {paint} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            coordinate_text(self.x),
            coordinate_text(self.y),
            coordinate_text(self.width),
            coordinate_text(self.height),
            escape::xml_escaped(hint)
        )
    }
}

/// Draws the name of a row in the middle of its height.
fn draw_label(canvas: &mut Canvas, area: Area, row: &BarRow, span: RowSpan) {
    let label = broken(&row.label, area.left - 12.0);
    let mut y = span.middle() + 4.5 - (label.len() as f64 - 1.0) * LINE_HEIGHT / 2.0;
    for line in label {
        canvas.draw_text(area.left - 8.0, y, Anchor::End, "name", &fitted(&line, area.left - 8.0));
        y += LINE_HEIGHT;
    }
}

/// Draws the parts of a whole one after the other, each with a hint that names it.
fn draw_stack(canvas: &mut Canvas, scale: &AxisScale, row: &BarRow, span: RowSpan) {
    let y = span.middle() - BAR / 2.0;
    let mut sum = 0.0;
    for (index, value) in row.values.iter().enumerate() {
        let from = scale.position_of(sum);
        sum += value.filter(|value| *value > 0.0).unwrap_or(0.0);
        let Some((from, to)) = from.zip(scale.position_of(sum)) else { continue };
        if to > from {
            let hint = format!("{}: {}", row.label, row.texts.get(index).map_or("", |t| t));
            let bar = Bar { index, filled: true, x: from, y, width: to - from, height: BAR };
            canvas.push_markup(&bar.markup(&hint));
        }
    }
    let zero = scale.position_of(0.0).unwrap_or(0.0);
    let text = row.texts.last().map_or(number::NONE, |text| text);
    let tip = scale.position_of(sum).unwrap_or(zero);
    canvas.draw_text(tip + 5.0, y + BAR - 2.5, Anchor::Start, "name", text);
    canvas.draw_line("axis", (zero, span.top), (zero, span.bottom));
}

/// Draws the bars of a row under each other.
fn draw_row(canvas: &mut Canvas, area: Area, scale: &AxisScale, row: &BarRow, span: RowSpan) {
    let height = row.values.len() as f64 * (BAR + 2.0);
    let middle = span.middle();
    let zero = scale.position_of(0.0).unwrap_or(area.left);
    for (index, value) in row.values.iter().enumerate() {
        let y = middle - height / 2.0 + index as f64 * (BAR + 2.0);
        let tip = value.and_then(|value| scale.position_of(value));
        if let Some(tip) = tip {
            let hint = format!("{}: {}", row.label, row.texts.get(index).map_or("", |t| t));
            let (x, width) = (tip.min(zero), (tip - zero).abs().max(1.0));
            let bar = Bar { index, filled: index == 0, x, y, width, height: BAR };
            canvas.push_markup(&bar.markup(&hint));
        }
        let x = tip.unwrap_or(zero).max(zero) + 5.0;
        let text = row.texts.get(index).map_or(number::NONE, |text| text);
        canvas.draw_text(x, y + BAR - 2.5, Anchor::Start, "name", text);
    }
    canvas.draw_line("axis", (zero, span.top), (zero, span.bottom));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_never_break_whatever_the_values() {
        for values in [
            vec![],
            vec![None, None],
            vec![Some(f64::NAN), Some(0.0)],
            vec![Some(-250.0), Some(80.0)],
            vec![Some(1e300), Some(-1e300)],
        ] {
            let row = BarRow { label: "a<b".to_owned(), values, texts: vec!["1".to_owned()] };
            let chart = BarChart {
                title: "t".to_owned(),
                description: "d".to_owned(),
                axis: "%".to_owned(),
                names: vec!["now".to_owned(), "2000".to_owned()],
                rows: vec![row],
                stacked: false,
            };
            for stacked in [false, true] {
                let text = BarChart { stacked, ..chart.clone() }.svg().file_with_style();
                assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("a<b"));
            }
        }
    }

    /// 10, 20 and 30 of 60, on an axis to 60 in steps of 20: the widths are as 1 : 2 : 3.
    #[test]
    fn parts_of_a_whole_stand_in_one_line_and_are_as_long_as_they_are_large() {
        let values = [10.0, 20.0, 30.0];
        let texts = values.iter().map(|value| format!("{value}")).chain(["60 in all".to_owned()]);
        let row = BarRow {
            label: "56".to_owned(),
            values: values.map(Some).to_vec(),
            texts: texts.collect(),
        };
        let chart = BarChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            axis: "ms".to_owned(),
            names: ["a", "b", "c"].map(str::to_owned).to_vec(),
            rows: vec![row],
            stacked: true,
        };
        let text = chart.svg().file_with_style();
        let of = |line: &str, name: &str| -> f64 {
            let value = line.split(name).nth(1).and_then(|rest| rest.split('"').next());
            value.and_then(|value| value.parse().ok()).expect("a number")
        };
        let bars = text.lines().filter(|line| line.contains("<title>56: "));
        let bars: Vec<[f64; 3]> =
            bars.map(|bar| [" x=\"", " y=\"", " width=\""].map(|name| of(bar, name))).collect();
        assert_eq!(bars.len(), 3, "{text}");
        for (bar, next) in bars.iter().zip(&bars[1..]) {
            assert!((bar[0] + bar[2] - next[0]).abs() <= 0.1 && bar[1] == next[1], "{bars:?}");
        }
        for (bar, times) in bars.iter().zip([1.0, 2.0, 3.0]) {
            assert!((bar[2] - times * bars[0][2]).abs() <= 0.3, "{bars:?}");
        }
        assert!(text.contains(">60 in all</text>"));
    }
}
