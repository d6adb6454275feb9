//! Small SVG charts: lines, bars, strips, numbered points. Deterministic text, no scripts, no
//! outside references.
//!
//! Every chart is `role="img"` with a title and a description (SVG 1.1 §5.4), and carries light
//! colours as attributes, so that a reader without style sheets shows it; a style sheet swaps
//! them in the dark. The palette is that of Okabe and Ito (2008), told apart by most colour-blind
//! readers, and each series has a marker shape of its own besides.

mod axis;
mod band;
mod bar;
mod delay;
mod line;
mod palette;
mod scatter;
mod strip;
mod trace;

pub(crate) use axis::log_domain;
pub use axis::{AxisKind, linear_domain};
pub(crate) use band::{Band, BandChart, BandMark};
pub(crate) use bar::{BarChart, BarRow, described_rows};
pub(crate) use delay::{DelayChart, ProbeDrawing, Trail};
pub use line::{Axis, ChartSeries, LineChart};
pub(crate) use line::{cumulated, described, thinned};
pub(crate) use palette::{OPEN, style_sheet};
pub(crate) use scatter::{ScatterChart, ScatterGroup, ScatterPoint};
pub(crate) use strip::{StripChart, StripGroup, StripRow};
pub(crate) use trace::{Mark, TraceChart, TracePoint};

use std::fmt::Write;

use crate::escape;

/// Width of every chart in user units; text is set for this width, so that a chart stays legible
/// on a telephone.
pub(crate) const WIDTH: f64 = 560.0;

/// Width that a line of a title may take by the estimate for plain letters; bold ones are wider.
const TITLE_MOST: f64 = 0.9 * WIDTH;

/// Height of a line of text in user units.
const LINE_HEIGHT: f64 = 16.0;

/// Size of text in user units.
const TEXT_SIZE: f64 = 13.0;

/// A finished chart, as a file of its own or inside a page.
#[derive(Clone, Debug)]
pub struct Svg {
    head: String,
    body: String,
}

impl Svg {
    /// A file that brings its style sheet along.
    pub fn file_with_style(&self) -> String {
        let style = format!("<style>{}</style>\n", style_sheet());
        format!("{}{style}{}</svg>\n", self.head, self.body)
    }

    /// For a page that has the style sheet already.
    pub(crate) fn inline(&self) -> String {
        format!("{}{}</svg>\n", self.head, self.body)
    }
}

/// A rectangle in user units; y grows downwards.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// Where a piece of text hangs on its point.
#[derive(Clone, Copy, Debug)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// The chart while it is drawn.
struct Canvas {
    body: String,
}

impl Canvas {
    const fn new() -> Self {
        Self { body: String::new() }
    }

    /// Draws text in the colour of its class.
    fn draw_text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let fill = if class == "soft" { "#595959" } else { "#1a1a1a" };
        let weight = if class == "strong" { " font-weight=\"600\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" \
             fill=\"{fill}\"{weight}>{}</text>",
            coordinate_text(x),
            coordinate_text(y),
            escape::xml_escaped(text)
        );
    }

    /// A straight line of a class: `grid`, `axis`.
    fn draw_line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let stroke = match class {
            "grid" => "#e3e3e3",
            "link" => "#9a9a9a",
            _ => "#707070",
        };
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{stroke}\"/>",
            coordinate_text(from.0),
            coordinate_text(from.1),
            coordinate_text(to.0),
            coordinate_text(to.1)
        );
    }

    /// The label under a chart's axis.
    fn draw_axis_label(&mut self, area: Area, label: &str) {
        let middle = f64::midpoint(area.left, area.right);
        self.draw_text(middle, area.bottom + 2.3 * LINE_HEIGHT, Anchor::Middle, "soft", label);
    }

    /// Anything else, already safe.
    fn push_markup(&mut self, markup: &str) {
        self.body.push_str(markup);
        self.body.push('\n');
    }

    /// The title over the chart; the first lines of a long one stand above it.
    fn draw_title(&mut self, title: &str) {
        let lines = broken(title, TITLE_MOST);
        for (above, line) in lines.iter().rev().enumerate() {
            let y = LINE_HEIGHT - above as f64 * LINE_HEIGHT;
            self.draw_text(0.0, y, Anchor::Start, "strong", line);
        }
    }

    /// The chart of a height; what of its title stands above it is added.
    fn finish(self, title: &str, description: &str, height: f64) -> Svg {
        let above = (broken(title, TITLE_MOST).len() as f64 - 1.0) * LINE_HEIGHT;
        let (width, top, height) =
            (coordinate_text(WIDTH), coordinate_text(-above), coordinate_text(height + above));
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 {top} {width} \
             {height}\" width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"{TEXT_SIZE}\">\n<title>{}</title>\n<desc>{}</desc>\n",
            escape::xml_escaped(title),
            escape::xml_escaped(description)
        );
        Svg { head, body: self.body }
    }

    /// The sentence that takes the place of a chart without points.
    fn nothing(title: &str, description: &str) -> Svg {
        let mut canvas = Self::new();
        let y = 4.0 * LINE_HEIGHT;
        canvas.draw_title(title);
        canvas.draw_text(WIDTH / 2.0, y, Anchor::Middle, "soft", "nothing was measured");
        canvas.finish(title, description, 6.0 * LINE_HEIGHT)
    }
}

/// A coordinate with at most one decimal; never `-0`.
fn coordinate_text(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    let tenths = if tenths == 0.0 { 0.0 } else { tenths };
    tenths.to_string()
}

/// Mean advance of a character over the size of the text, for the widest of the common sans-serif
/// faces (DejaVu Sans with capitals and figures).
const ADVANCE: f64 = 0.6;

/// Share by which the widest letters are wider than `ADVANCE`.
const WIDER: f64 = 0.4;

/// Estimated width of a text in user units.
pub(crate) fn text_width(text: &str) -> f64 {
    let wide = text.chars().filter(|c| matches!(c, 'M' | 'W' | 'm' | 'w' | '%')).count();
    (text.chars().count() as f64 + WIDER * wide as f64) * TEXT_SIZE * ADVANCE
}

/// The text broken at spaces into lines of a width, where it has some.
fn broken(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) + text_width(" ") <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text, cut to a width with an ellipsis.
fn fitted(text: &str, width: f64) -> String {
    // The small term keeps a text in the room that was made for it.
    let most = (width / (TEXT_SIZE * ADVANCE) + 0.01).floor().max(1.0) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_never_broken() {
        let cases: &[(f64, &str)] =
            &[(1.25, "1.3"), (-0.01, "0"), (f64::NAN, "0"), (300.0, "300"), (0.1 + 0.2, "0.3")];
        for (value, expected) in cases {
            assert_eq!(coordinate_text(*value), *expected);
        }
    }
}
