//! A chart of what a search did: a point a trial at its load, its result by colour and shape, and
//! lines across at what was found.

use super::line::{ChartLayout, draw_axes, move_apart};
use super::palette::{light_colour, marker};
use super::{Anchor, Axis, Canvas, LINE_HEIGHT, Svg, WIDTH, coordinate_text, fitted, text_width};
use crate::escape;

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No frame was lost.
    Clean,
    /// Some frames were lost.
    Lossy,
    /// It does not count.
    Void,
}

impl Mark {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Clean, "nothing lost"), (Self::Lossy, "lost"), (Self::Void, "does not count")];

    /// Green triangles, red squares, grey bars: told apart without colours too.
    const fn marker_style(self) -> usize {
        match self {
            Self::Clean => 2,
            Self::Lossy => 1,
            Self::Void => 5,
        }
    }
}

/// One trial of a search.
#[derive(Clone, Debug)]
pub(crate) struct TracePoint {
    /// Place in the units of both axes.
    pub at: (f64, f64),
    /// Outcome of the trial.
    pub mark: Mark,
    /// Shown when a pointer rests on it.
    pub hint: String,
}

/// A chart of a search's trials in their order.
#[derive(Clone, Debug)]
pub(crate) struct TraceChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// The description that screen readers get.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// In the order in which they were made, joined by a thin line.
    pub points: Vec<TracePoint>,
    /// Lines across, with their names.
    pub across: Vec<(String, f64)>,
}

impl TraceChart {
    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let Some(layout) = self.layout() else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        draw_axes(&mut canvas, &layout, &self.x, &self.y);
        self.draw_across(&mut canvas, &layout);
        self.draw_points(&mut canvas, &layout);
        let bottom = layout.area.bottom + 3.4 * LINE_HEIGHT;
        self.draw_key(&mut canvas, bottom);
        canvas.finish(&self.title, &self.description, bottom + LINE_HEIGHT)
    }

    fn layout(&self) -> Option<ChartLayout> {
        let points = || self.points.iter().map(|point| point.at);
        let across = self.across.iter().map(|(_, value)| *value);
        let named = self.across.iter().map(|(name, _)| text_width(name));
        let right = (named.fold(0.0, f64::max) + 16.0).clamp(16.0, 200.0);
        let (xs, ys) = (points().map(|at| at.0), points().map(|at| at.1));
        ChartLayout::around_values([&self.x, &self.y], xs, ys.chain(across), right)
    }

    fn draw_across(&self, canvas: &mut Canvas, layout: &ChartLayout) {
        let area = layout.area;
        let mut lines: Vec<(&str, f64)> = self
            .across
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), layout.y.position_of(*value)?)))
            .collect();
        lines.sort_by(|a, b| a.1.total_cmp(&b.1));
        let wanted: Vec<f64> = lines.iter().map(|line| line.1).collect();
        let places = move_apart(&wanted, LINE_HEIGHT, area.top, area.bottom);
        for ((name, y), place) in lines.into_iter().zip(places) {
            canvas.push_markup(&format!(
                "<path class=\"s0\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" \
                 stroke-dasharray=\"5 4\" d=\"M{} {}H{}\"/>",
                light_colour(0),
                coordinate_text(area.left),
                coordinate_text(y),
                coordinate_text(area.right)
            ));
            let name = fitted(name, WIDTH - area.right - 10.0);
            canvas.draw_text(area.right + 8.0, place + 4.5, Anchor::Start, "name", &name);
        }
    }

    fn draw_points(&self, canvas: &mut Canvas, layout: &ChartLayout) {
        let place = |point: &TracePoint| {
            Some((layout.x.position_of(point.at.0)?, layout.y.position_of(point.at.1)?))
        };
        let places: Vec<_> =
            self.points.iter().filter_map(|point| Some((point, place(point)?))).collect();
        for pair in places.windows(2) {
            canvas.draw_line("link", pair[0].1, pair[1].1);
        }
        for (point, at) in places {
            let shape = marker(point.mark.marker_style(), at);
            let hint = escape::xml_escaped(&point.hint);
            canvas.push_markup(&format!("<g><title>{hint}</title>{shape}</g>"));
        }
    }

    /// The marks that the chart has, under it.
    fn draw_key(&self, canvas: &mut Canvas, y: f64) {
        let mut x = 8.0;
        for (mark, name) in Mark::ALL {
            if !self.points.iter().any(|point| point.mark == mark) {
                continue;
            }
            canvas.push_markup(&marker(mark.marker_style(), (x, y - 4.5)));
            canvas.draw_text(x + 10.0, y, Anchor::Start, "name", name);
            x += text_width(name) + 34.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number;

    fn sample_chart(points: Vec<TracePoint>) -> TraceChart {
        TraceChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            x: Axis::linear("trial", number::short_count),
            y: Axis::linear("frames/s", number::short_count),
            points,
            across: vec![("a<b".to_owned(), 5.0)],
        }
    }

    #[test]
    fn every_trial_has_a_mark_and_nothing_breaks() {
        let point = |at, mark| TracePoint { at, mark, hint: "<1>".to_owned() };
        let text = sample_chart(vec![
            point((1.0, 10.0), Mark::Lossy),
            point((2.0, 5.0), Mark::Clean),
            point((3.0, f64::NAN), Mark::Clean),
            point((4.0, 7.0), Mark::Void),
        ])
        .svg()
        .file_with_style();
        assert_eq!(text.matches("<g><title>&lt;1&gt;</title>").count(), 3, "{text}");
        for part in ["nothing lost", "does not count", "a&lt;b"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("NaN"));
        assert!(sample_chart(vec![]).svg().file_with_style().contains("nothing was measured"));
    }
}
