//! Colours and marker shapes of series, light and dark.

use std::fmt::Write;

use super::coordinate_text;

/// Light and dark stroke of each series.
///
/// The light ones are those of Okabe and Ito, "Color Universal Design" (2008), with orange, sky
/// and pink darkened to a contrast of 3:1 on white (WCAG 2.2 §1.4.11); the dark ones are lightened
/// for a dark ground.
const SERIES: [(&str, &str); 7] = [
    ("#0072b2", "#4fb0f0"),
    ("#d55e00", "#ff8a3d"),
    ("#008a65", "#2fd3a3"),
    ("#b5558e", "#e79cc8"),
    ("#b97f00", "#f0b94a"),
    ("#333333", "#e6e6e6"),
    ("#2f87b8", "#9fd4f5"),
];

/// Added to the number of a series, gives the same colour and shape as an open marker.
pub(crate) const OPEN: usize = SERIES.len();

/// The light colour of a series.
pub(super) const fn light_colour(series: usize) -> &'static str {
    SERIES[series % SERIES.len()].0
}

/// The class of a series.
pub(super) const fn colour_class(series: usize) -> usize {
    series % SERIES.len()
}

/// The style sheet of all charts; the page that holds charts includes it once.
pub(crate) fn style_sheet() -> String {
    let mut out = String::from("@media (prefers-color-scheme:dark){");
    out.push_str("svg text{fill:#f0f0f0}svg text.soft{fill:#b8b8b8}");
    out.push_str("svg .grid{stroke:#3a3a3a}svg .axis{stroke:#9a9a9a}svg .link{stroke:#7a7a7a}");
    out.push_str("svg .ground{fill:#16181c}");
    for (index, (_, dark)) in SERIES.iter().enumerate() {
        let _ = write!(out, "svg .s{index}{{stroke:{dark}}}svg .f{index}{{fill:{dark}}}");
    }
    out.push('}');
    out
}

/// A marker centred on a point: filled shapes for the first seven series, open ones beyond, so
/// that no two of fourteen series look the same.
pub(super) fn marker(series: usize, centre: (f64, f64)) -> String {
    let (x, y) = centre;
    let n = colour_class(series);
    let paint = if (series / SERIES.len()).is_multiple_of(2) {
        format!("class=\"f{n}\" fill=\"{}\"", light_colour(series))
    } else {
        format!(
            "class=\"s{n}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"",
            light_colour(series)
        )
    };
    let corners = |points: &[(f64, f64)]| {
        let points: Vec<String> = points
            .iter()
            .map(|(dx, dy)| format!("{},{}", coordinate_text(x + dx), coordinate_text(y + dy)))
            .collect();
        format!("<polygon {paint} points=\"{}\"/>", points.join(" "))
    };
    match n {
        0 => format!(
            "<circle {paint} cx=\"{}\" cy=\"{}\" r=\"3.8\"/>",
            coordinate_text(x),
            coordinate_text(y)
        ),
        1 => corners(&[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)]),
        2 => corners(&[(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)]),
        3 => corners(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
        4 => corners(&[(0.0, 4.6), (4.4, -3.4), (-4.4, -3.4)]),
        5 => corners(&[(-4.6, -2.0), (4.6, -2.0), (4.6, 2.0), (-4.6, 2.0)]),
        _ => corners(&[(-2.0, -4.6), (2.0, -4.6), (2.0, 4.6), (-2.0, 4.6)]),
    }
}
