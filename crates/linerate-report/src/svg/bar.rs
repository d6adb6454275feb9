//! A chart of horizontal bars: for each row one bar now and one bar published.

use super::axis::{Kind, Scale, linear_domain, linear_ticks};
use super::palette::{class, light};
use super::{Anchor, Area, Canvas, LINE_HEIGHT, Svg, WIDTH, broken, fitted, px, text_width};
use crate::{escape, number};

/// One row; an absent value draws no bar and shows a dash.
#[derive(Clone, Debug)]
pub(crate) struct BarRow {
    /// Its name.
    pub label: String,
    /// One value for each name of the chart.
    pub values: Vec<Option<f64>>,
    /// What stands at the end of each bar.
    pub texts: Vec<String>,
}

/// The whole chart.
#[derive(Clone, Debug)]
pub(crate) struct BarChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// Its accessible description.
    pub description: String,
    /// What the bars show, with the unit.
    pub axis: String,
    /// What the bars of a row are.
    pub names: Vec<String>,
    /// Top to bottom.
    pub rows: Vec<BarRow>,
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
    /// Draws the chart.
    pub(crate) fn svg(&self) -> Svg {
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten().copied());
        let Some(domain) = linear_domain(values, 0.0, 5) else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let labels = self.rows.iter().map(|row| text_width(&row.label));
        let left = (labels.fold(0.0, f64::max) + 12.0).clamp(60.0, LABEL_MOST);
        let lines = self.rows.iter().map(|row| broken(&row.label, left - 12.0).len());
        let bars = self.names.len() as f64 * (BAR + 2.0);
        let row_height = bars.max(lines.max().unwrap_or(1) as f64 * LINE_HEIGHT) + ROW_GAP;
        let mut canvas = Canvas::new();
        canvas.title(&self.title);
        let top = self.draw_names(&mut canvas) + 1.2 * LINE_HEIGHT;
        // The widest figure stands beyond the end of its bar.
        let texts = self.rows.iter().flat_map(|row| &row.texts).map(|text| text_width(text));
        let area = Area {
            left,
            top,
            right: WIDTH - (texts.fold(0.0, f64::max) + 8.0).max(64.0),
            bottom: top + self.rows.len() as f64 * row_height,
        };
        let scale = Scale::new(Kind::Linear, domain, (area.left, area.right));
        self.draw_axis(&mut canvas, area, &scale);
        for (index, row) in self.rows.iter().enumerate() {
            let (from, to) = (top + index as f64 * row_height, row_height);
            draw_row(&mut canvas, area, &scale, row, (from, from + to));
        }
        canvas.finish(&self.title, &self.description, area.bottom + 3.0 * LINE_HEIGHT)
    }

    /// What the bars of a row are, on as many lines as they take; gives the last one's place.
    fn draw_names(&self, canvas: &mut Canvas) -> f64 {
        let (mut x, mut y) = (0.0, 2.4 * LINE_HEIGHT);
        for (index, name) in self.names.iter().enumerate() {
            if x > 0.0 && x + 18.0 + text_width(name) > WIDTH {
                (x, y) = (0.0, y + LINE_HEIGHT + 2.0);
            }
            canvas.raw(&bar(index, (x, y - 10.0), (12.0, 12.0), name));
            canvas.text(x + 18.0, y, Anchor::Start, "name", name);
            x += text_width(name) + 44.0;
        }
        y
    }

    fn draw_axis(&self, canvas: &mut Canvas, area: Area, scale: &Scale) {
        for tick in linear_ticks(scale.domain(), 5) {
            let Some(x) = scale.at(tick) else { continue };
            canvas.line("grid", (x, area.top), (x, area.bottom));
            let y = area.bottom + LINE_HEIGHT;
            canvas.text(x, y, Anchor::Middle, "soft", &number::short_signed(tick));
        }
        canvas.under(area, &self.axis);
    }
}

/// A row from the first height to the second.
fn draw_row(canvas: &mut Canvas, area: Area, scale: &Scale, row: &BarRow, (top, end): (f64, f64)) {
    let height = row.values.len() as f64 * (BAR + 2.0);
    let label = broken(&row.label, area.left - 12.0);
    let middle = f64::midpoint(top, end);
    let mut y = middle + 4.5 - (label.len() as f64 - 1.0) * LINE_HEIGHT / 2.0;
    for line in label {
        canvas.text(area.left - 8.0, y, Anchor::End, "name", &fitted(&line, area.left - 8.0));
        y += LINE_HEIGHT;
    }
    let zero = scale.at(0.0).unwrap_or(area.left);
    for (index, value) in row.values.iter().enumerate() {
        let y = middle - height / 2.0 + index as f64 * (BAR + 2.0);
        let tip = value.and_then(|value| scale.at(value));
        if let Some(tip) = tip {
            let hint = format!("{}: {}", row.label, row.texts.get(index).map_or("", |t| t));
            let size = ((tip - zero).abs().max(1.0), BAR);
            canvas.raw(&bar(index, (tip.min(zero), y), size, &hint));
        }
        let x = tip.unwrap_or(zero).max(zero) + 5.0;
        let text = row.texts.get(index).map_or(number::NONE, |text| text);
        canvas.text(x, y + BAR - 2.5, Anchor::Start, "name", text);
    }
    canvas.line("axis", (zero, top), (zero, end));
}

/// A bar in the colour of its name; the published one is open, so that grey print tells them apart.
fn bar(index: usize, (x, y): (f64, f64), (width, height): (f64, f64), hint: &str) -> String {
    let (n, colour) = (class(index), light(index));
    let paint = if index == 0 {
        format!("class=\"f{n}\" fill=\"{colour}\"")
    } else {
        format!("class=\"s{n}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"")
    };
    format!(
        "<rect {paint} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
        px(x),
        px(y),
        px(width),
        px(height),
        escape::xml(hint)
    )
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
            };
            let text = chart.svg().file();
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("a<b"));
        }
    }
}
