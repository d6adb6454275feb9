//! A chart of numbered points with their names listed below it: many points, long names.
//!
//! A value that is a range is drawn as what it is: a bar between its ends, a box where both
//! coordinates are ranges. Nothing stands in the middle of a range.

use super::axis::AxisScale;
use super::line::{ChartLayout, draw_axes};
use super::palette::{OPEN, colour_class, light_colour, marker};
use super::{
    Anchor, Area, Axis, Canvas, LINE_HEIGHT, Svg, WIDTH, coordinate_text, fitted, text_width,
};
use crate::escape;

/// Size of the text of a number, and the room that one of its digits takes, user units.
const NUMBER_SIZE: f64 = 11.0;
const DIGIT_WIDTH: f64 = 6.6;

/// Where a number may stand: offsets of its near edge and of its base line from the point, the
/// nearest and most usual first. A negative first offset puts it to the left.
const PLACES: [(f64, f64); 12] = [
    (7.0, 4.0),
    (-7.0, 4.0),
    (5.0, -6.0),
    (-5.0, -6.0),
    (5.0, 14.0),
    (-5.0, 14.0),
    (14.0, -12.0),
    (-14.0, -12.0),
    (14.0, 20.0),
    (-14.0, 20.0),
    (26.0, 4.0),
    (-26.0, 4.0),
];

/// A family of points.
#[derive(Clone, Debug)]
pub(crate) struct ScatterGroup {
    /// Its name in the key.
    pub label: String,
    /// Number of its colour and marker.
    pub style: usize,
}

/// One point, or one range.
#[derive(Clone, Debug)]
pub(crate) struct ScatterPoint {
    /// Beside it, and in the list.
    pub number: usize,
    /// Which group it belongs to.
    pub group: usize,
    /// Lower and upper end; equal for a value.
    pub x: (f64, f64),
    /// Lower and upper end; equal for a value.
    pub y: (f64, f64),
    /// An open marker instead of a full one.
    pub open: bool,
    /// Its name in the list.
    pub label: String,
}

/// A chart of points with ranges, by group.
#[derive(Clone, Debug)]
pub(crate) struct ScatterChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// The description that screen readers get.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Groups of points, in the key's order.
    pub groups: Vec<ScatterGroup>,
    /// In the order of the list.
    pub points: Vec<ScatterPoint>,
}

/// A point with its places: left and right, bottom and top.
struct PlacedPoint<'a> {
    point: &'a ScatterPoint,
    x: (f64, f64),
    y: (f64, f64),
}

impl PlacedPoint<'_> {
    /// The areas that its two markers cover.
    fn marker_boxes(&self) -> [Area; 2] {
        [(self.x.0, self.y.0), (self.x.1, self.y.1)].map(|(x, y)| Area {
            left: x - 5.0,
            top: y - 5.0,
            right: x + 5.0,
            bottom: y + 5.0,
        })
    }

    /// The area that its number would cover at an offset from its right edge, or from its left
    /// edge where `dx` is negative.
    fn number_at(&self, dx: f64, dy: f64, text: &str) -> Area {
        let width = text.len() as f64 * DIGIT_WIDTH;
        let left = if dx > 0.0 { self.x.1 + dx } else { self.x.0 + dx - width };
        let bottom = f64::midpoint(self.y.0, self.y.1) + dy;
        Area { left, top: bottom - 0.75 * NUMBER_SIZE, right: left + width, bottom }
    }
}

impl ScatterChart {
    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let Some(layout) = self.layout() else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        draw_axes(&mut canvas, &layout, &self.x, &self.y);
        let placed = self.placed(&layout);
        for place in &placed {
            self.draw_point(&mut canvas, place);
        }
        draw_numbers(&mut canvas, &layout, &placed);
        let bottom = self.draw_key(&mut canvas, layout.area.bottom + 3.6 * LINE_HEIGHT);
        let bottom = self.draw_list(&mut canvas, &placed, bottom + 0.4 * LINE_HEIGHT);
        canvas.finish(&self.title, &self.description, bottom)
    }

    fn layout(&self) -> Option<ChartLayout> {
        let xs = self.points.iter().flat_map(|point| [point.x.0, point.x.1]);
        let ys = self.points.iter().flat_map(|point| [point.y.0, point.y.1]);
        ChartLayout::around_values([&self.x, &self.y], xs, ys, 12.0)
    }

    fn placed(&self, layout: &ChartLayout) -> Vec<PlacedPoint<'_>> {
        let both = |scale: &AxisScale, (low, high)| {
            Some((scale.position_of(low)?, scale.position_of(high)?))
        };
        let places = self.points.iter().map(|point| {
            let (x, y) = (both(&layout.x, point.x)?, both(&layout.y, point.y)?);
            Some(PlacedPoint { point, x, y })
        });
        places.flatten().collect()
    }

    fn marker_style(&self, point: &ScatterPoint) -> usize {
        let style = self.groups.get(point.group).map_or(0, |group| group.style);
        style + if point.open { OPEN } else { 0 }
    }

    fn draw_point(&self, canvas: &mut Canvas, place: &PlacedPoint<'_>) {
        let style = self.marker_style(place.point);
        let (left, right) = place.x;
        let (bottom, top) = place.y;
        if left != right || bottom != top {
            // A box without width or without height is not drawn (SVG 1.1 §9.2); a path is.
            canvas.push_markup(&format!(
                "<path class=\"s{}\" d=\"M{} {}H{}V{}H{}Z\" fill=\"none\" stroke=\"{}\" \
                 stroke-width=\"1.6\"><title>{}</title></path>",
                colour_class(style),
                coordinate_text(left),
                coordinate_text(bottom),
                coordinate_text(right),
                coordinate_text(top),
                coordinate_text(left),
                light_colour(style),
                escape::xml_escaped(&place.point.label)
            ));
        }
        if left == right {
            canvas.push_markup(&marker(style, (left, bottom)));
            if top != bottom {
                canvas.push_markup(&marker(style, (left, top)));
            }
        }
    }

    fn draw_key(&self, canvas: &mut Canvas, y: f64) -> f64 {
        let mut x = 8.0;
        for (index, group) in self.groups.iter().enumerate() {
            if self.points.iter().any(|point| point.group == index) {
                canvas.push_markup(&marker(group.style, (x, y - 4.5)));
                canvas.draw_text(x + 10.0, y, Anchor::Start, "soft", &group.label);
                x += text_width(&group.label) + 36.0;
            }
        }
        y + LINE_HEIGHT
    }

    fn draw_list(&self, canvas: &mut Canvas, placed: &[PlacedPoint<'_>], from: f64) -> f64 {
        let mut y = from;
        for place in placed {
            canvas.push_markup(&marker(self.marker_style(place.point), (38.0, y - 4.5)));
            canvas.draw_text(24.0, y, Anchor::End, "soft", &place.point.number.to_string());
            let label = fitted(&place.point.label, WIDTH - 60.0);
            canvas.draw_text(50.0, y, Anchor::Start, "name", &label);
            y += LINE_HEIGHT;
        }
        y
    }
}

/// Numbers beside their points, each where it covers the least of what is there already.
fn draw_numbers(canvas: &mut Canvas, layout: &ChartLayout, placed: &[PlacedPoint<'_>]) {
    let mut taken: Vec<Area> = placed.iter().flat_map(PlacedPoint::marker_boxes).collect();
    for place in placed {
        let text = place.point.number.to_string();
        let covers = |at: &Area| {
            let others: f64 = taken.iter().map(|other| overlap(at, other)).sum();
            let inside = overlap(at, &layout.area);
            others + (at.right - at.left) * (at.bottom - at.top) - inside
        };
        let best = PLACES
            .iter()
            .map(|&(dx, dy)| place.number_at(dx, dy, &text))
            .min_by(|a, b| covers(a).total_cmp(&covers(b)));
        let Some(at) = best else { continue };
        canvas.push_markup(&format!(
            "<text class=\"soft\" x=\"{}\" y=\"{}\" font-size=\"{NUMBER_SIZE}\" \
             fill=\"#595959\">{text}</text>",
            coordinate_text(at.left),
            coordinate_text(at.bottom)
        ));
        taken.push(at);
    }
}

/// The area that two rectangles share.
fn overlap(a: &Area, b: &Area) -> f64 {
    let width = a.right.min(b.right) - a.left.max(b.left);
    let height = a.bottom.min(b.bottom) - a.top.max(b.top);
    width.max(0.0) * height.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number;

    type Ends = (f64, f64);

    fn draw_sample(points: &[(Ends, Ends)]) -> String {
        let point = |&(x, y): &(Ends, Ends)| ScatterPoint {
            number: 1,
            group: 0,
            x,
            y,
            open: false,
            label: "a<b".to_owned(),
        };
        let chart = ScatterChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            x: Axis::linear("year", number::short_count),
            y: Axis::logarithmic("rate", number::short_count),
            groups: vec![ScatterGroup { label: "all".to_owned(), style: 0 }],
            points: points.iter().map(point).collect(),
        };
        chart.svg().file_with_style()
    }

    #[test]
    fn a_range_is_a_box_and_a_value_is_a_marker() {
        let text = draw_sample(&[((1999.0, 1999.0), (1e6, 1e6))]);
        // One on the plot, one in the key, one in the list.
        assert_eq!((text.matches("<circle").count(), text.matches("<path").count()), (3, 0));
        let text = draw_sample(&[((1999.0, 1999.0), (1e6, 2e6))]);
        assert_eq!((text.matches("<circle").count(), text.matches("<path").count()), (4, 1));
        let text = draw_sample(&[((1990.0, 1993.0), (1e6, 2e6))]);
        assert_eq!((text.matches("<circle").count(), text.matches("<path").count()), (2, 1));
        assert!(text.contains("a&lt;b") && !text.contains("a<b"));
    }

    #[test]
    fn odd_values_break_nothing() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300];
        for value in odd {
            let text = draw_sample(&[((value, value), (value, value)), ((1.0, 2.0), (3.0, 4.0))]);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
        assert!(draw_sample(&[]).contains("nothing was measured"));
    }

    #[test]
    fn numbers_of_one_place_do_not_cover_each_other() {
        let same = ((2004.0, 2004.0), (4.3e9, 4.3e9));
        let text = draw_sample(&[same, same, same, ((1990.0, 1990.0), (7.8e8, 7.8e8))]);
        let places: Vec<(f64, f64)> = text
            .lines()
            .filter(|line| line.contains("font-size=\"11\""))
            .map(|line| {
                let of = |name: &str| {
                    let value = line.split(name).nth(1).and_then(|rest| rest.split('"').next());
                    value.and_then(|value| value.parse().ok()).expect("a place")
                };
                (of(" x=\""), of(" y=\""))
            })
            .collect();
        assert_eq!(places.len(), 4);
        for (at, a) in places.iter().enumerate() {
            for b in &places[..at] {
                let apart = (a.0 - b.0).abs() >= DIGIT_WIDTH || (a.1 - b.1).abs() >= 8.0;
                assert!(apart, "{places:?}");
            }
        }
    }
}
