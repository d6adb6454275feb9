//! Series over days on one time axis, one panel under another: smoke of equal spans of time, the
//! gaps, and what happened.

use linerate_core::time::WallTime;

use super::axis::{AxisScale, linear_ticks};
use super::palette::light_colour;
use super::{
    Anchor, Area, AxisKind, Canvas, LINE_HEIGHT, Svg, WIDTH, coordinate_text, linear_domain,
    text_width,
};
use crate::escape;

/// Height of one panel in user units.
const PANEL: f64 = 110.0;
/// Spans of time along the axis.
const SPANS: usize = 120;

/// A chart of a task.
pub(crate) struct BandChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// First and last time, seconds since 1970-01-01 UTC.
    pub axis: (f64, f64),
    /// Panels from top to bottom.
    pub bands: Vec<Band>,
    /// Times without a result.
    pub gaps: Vec<(f64, f64)>,
}

/// One panel of a band chart.
pub(crate) struct Band {
    /// Name of the measured value.
    pub name: String,
    /// Times and values of the points.
    pub points: Vec<(f64, f64)>,
    /// Events that are marked in the panel.
    pub marks: Vec<BandMark>,
    /// The text of a value.
    pub show: Box<dyn Fn(f64) -> String>,
}

/// A line down a panel.
pub(crate) struct BandMark {
    /// Time of the event in seconds.
    pub at_s: f64,
    /// Number by which the text refers to the mark.
    pub name: String,
    /// Shown when a pointer rests on it.
    pub hint: String,
}

/// The values of a span of time: middle of the span, lowest, quarter, median, three quarters,
/// highest.
type Column = (f64, [f64; 5]);

impl BandChart {
    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let names: Vec<&str> = self.bands.iter().map(|band| band.name.as_str()).collect();
        let description = format!("{} over time, with gaps and changes", names.join(", "));
        let drawn: Vec<&Band> = self.bands.iter().filter(|band| !band.points.is_empty()).collect();
        if drawn.is_empty() || self.axis.1 <= self.axis.0 {
            return Canvas::nothing(&self.title, &description);
        }
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        let left = drawn.iter().map(|band| self.left_margin(band)).fold(0.0, f64::max).min(140.0);
        let mut top = 3.0 * LINE_HEIGHT;
        for band in &drawn {
            let area = Area { left, top, right: WIDTH - 12.0, bottom: top + PANEL };
            self.draw_panel(&mut canvas, area, band);
            top += PANEL + 2.2 * LINE_HEIGHT;
        }
        let bottom = top - 2.2 * LINE_HEIGHT;
        let area = Area { left, top: bottom, right: WIDTH - 12.0, bottom };
        self.draw_times(&mut canvas, area);
        canvas.finish(&self.title, &description, bottom + 3.4 * LINE_HEIGHT)
    }

    fn value_domain(band: &Band) -> Option<(f64, f64)> {
        linear_domain(band.points.iter().map(|point| point.1), 0.0, 3)
    }

    fn left_margin(&self, band: &Band) -> f64 {
        let ticks =
            Self::value_domain(band).map(|domain| linear_ticks(domain, 3)).unwrap_or_default();
        ticks.iter().map(|tick| text_width(&(band.show)(*tick))).fold(24.0, f64::max) + 10.0
    }

    fn draw_panel(&self, canvas: &mut Canvas, area: Area, band: &Band) {
        let Some(domain) = Self::value_domain(band) else { return };
        let x = AxisScale::new(AxisKind::Linear, self.axis, (area.left, area.right));
        let y = AxisScale::new(AxisKind::Linear, domain, (area.bottom, area.top));
        canvas.draw_text(area.left, area.top - 6.0, Anchor::Start, "soft", &band.name);
        for tick in linear_ticks(domain, 3) {
            let Some(at) = y.position_of(tick) else { continue };
            canvas.draw_line("grid", (area.left, at), (area.right, at));
            canvas.draw_text(area.left - 6.0, at + 4.5, Anchor::End, "soft", &(band.show)(tick));
        }
        for (from, until) in &self.gaps {
            let ends =
                (x.position_of(from.max(self.axis.0)), x.position_of(until.min(self.axis.1)));
            let (Some(from), Some(until)) = ends else { continue };
            canvas.push_markup(&format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#888\" \
                 fill-opacity=\"0.25\"><title>no result</title></rect>",
                coordinate_text(from),
                coordinate_text(area.top),
                coordinate_text((until - from).max(2.0)),
                coordinate_text(PANEL)
            ));
        }
        self.draw_smoke(canvas, band, &x, &y);
        for mark in &band.marks {
            let Some(at) = x.position_of(mark.at_s.clamp(self.axis.0, self.axis.1)) else {
                continue;
            };
            canvas.push_markup(&format!(
                "<g><title>{}</title><path class=\"s1\" fill=\"none\" stroke=\"{}\" \
                 stroke-width=\"1.5\" stroke-dasharray=\"4 3\" d=\"M{} {}V{}\"/></g>",
                escape::xml_escaped(&mark.hint),
                light_colour(1),
                coordinate_text(at),
                coordinate_text(area.top),
                coordinate_text(area.bottom)
            ));
            canvas.draw_text(at, area.top - 6.0, Anchor::Middle, "strong", &mark.name);
        }
    }

    fn columns(&self, band: &Band) -> Vec<Column> {
        let (from, until) = self.axis;
        let span = (until - from) / SPANS as f64;
        let mut columns = Vec::new();
        for at in 0..SPANS {
            let begin = from + span * at as f64;
            let last = at + 1 == SPANS;
            let within =
                |time: f64| time >= begin && (time < begin + span || last && time <= until);
            let mut values: Vec<f64> = band
                .points
                .iter()
                .filter(|(time, value)| within(*time) && value.is_finite())
                .map(|(_, value)| *value)
                .collect();
            if values.is_empty() {
                continue;
            }
            values.sort_by(f64::total_cmp);
            let most = values.len() - 1;
            let of = |part: usize| values[most * part / 4];
            columns.push((begin + span / 2.0, [of(0), of(1), of(2), of(3), of(4)]));
        }
        columns
    }

    /// Band, middle half and median of each span; spans without values part the line.
    fn draw_smoke(&self, canvas: &mut Canvas, band: &Band, x: &AxisScale, y: &AxisScale) {
        let half = (x.position_of(self.axis.1).unwrap_or(0.0)
            - x.position_of(self.axis.0).unwrap_or(0.0))
            / (2.0 * SPANS as f64);
        for (at, values) in self.columns(band) {
            let Some(at) = x.position_of(at) else { continue };
            let places: Vec<f64> =
                values.iter().filter_map(|value| y.position_of(*value)).collect();
            let [low, quarter, median, three, high] = places.as_slice() else { continue };
            for (top, bottom, opacity) in [(high, low, "0.25"), (three, quarter, "0.5")] {
                canvas.push_markup(&format!(
                    "<rect class=\"f0\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
                     fill=\"{}\" fill-opacity=\"{opacity}\"/>",
                    coordinate_text(at - half),
                    coordinate_text(*top),
                    coordinate_text(2.0 * half),
                    coordinate_text((bottom - top).max(1.0)),
                    light_colour(0)
                ));
            }
            canvas.push_markup(&format!(
                "<path class=\"s0\" stroke=\"{}\" stroke-width=\"2\" d=\"M{} {}H{}\"/>",
                light_colour(0),
                coordinate_text(at - half),
                coordinate_text(*median),
                coordinate_text(at + half)
            ));
        }
    }

    /// The times under the last panel.
    fn draw_times(&self, canvas: &mut Canvas, area: Area) {
        let x = AxisScale::new(AxisKind::Linear, self.axis, (area.left, area.right));
        canvas.draw_line("axis", (area.left, area.bottom), (area.right, area.bottom));
        let span = self.axis.1 - self.axis.0;
        let shape = match span {
            ..600.0 => "%H:%M:%S",
            ..172_800.0 => "%H:%M",
            _ => "%m-%d",
        };
        for part in 0..=4 {
            let time = self.axis.0 + span * f64::from(part) / 4.0;
            let Some(at) = x.position_of(time) else { continue };
            canvas.draw_line("axis", (at, area.bottom), (at, area.bottom + 4.0));
            let anchor = match part {
                0 => Anchor::Start,
                4 => Anchor::End,
                _ => Anchor::Middle,
            };
            let text = written(time, shape);
            canvas.draw_text(at, area.bottom + LINE_HEIGHT + 2.0, anchor, "soft", &text);
        }
        let day = written(self.axis.0, "%Y-%m-%d");
        canvas.draw_axis_label(area, &format!("time (UTC), from {day}"));
    }
}

fn written(at_s: f64, shape: &str) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "since 1970")]
    let nanos = at_s.max(0.0) as u128 * 1_000_000_000;
    WallTime::from_unix_nanos(nanos).format_utc(shape).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_quartiles_and_a_gap_and_a_change_are_marked() {
        let points: Vec<(f64, f64)> = (1..=5).map(|n| (0.5, f64::from(n))).collect();
        let chart = BandChart {
            title: "t".to_owned(),
            axis: (0.0, 120.0),
            bands: vec![Band {
                name: "rate".to_owned(),
                points,
                marks: vec![BandMark { at_s: 60.0, name: "1".to_owned(), hint: "<x>".to_owned() }],
                show: Box::new(|value| value.to_string()),
            }],
            gaps: vec![(30.0, 40.0)],
        };
        assert_eq!(chart.columns(&chart.bands[0]), [(0.5, [1.0, 2.0, 3.0, 4.0, 5.0])]);
        let text = chart.svg().file_with_style();
        for part in ["&lt;x&gt;", "<title>no result</title>", "00:01"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
