//! What a page's style promises, seen without a browser: text that can be read in light and in
//! dark, and nothing wider than a phone.

/// The style that every page carries.
const CSS: &str = include_str!("../../src/document/page.css");

/// The colours named in the first `:root{...}` after `from`.
fn colours(from: &str) -> Vec<(String, [f64; 3])> {
    let start = CSS.find(from).expect(from);
    let rest = &CSS[start..];
    let body = &rest[rest.find(":root{").expect("colours")..];
    let body = &body[..body.find('}').expect("an end")];
    let named = body.split("--").skip(1).filter_map(|pair| pair.split_once(":#"));
    let channel = |hex: &str, at: usize| {
        let byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits");
        f64::from(byte) / 255.0
    };
    named.map(|(name, hex)| (name.to_owned(), [0, 2, 4].map(|at| channel(hex, at)))).collect()
}

/// Contrast of two colours, 1 to 21 (WCAG 2.2, definitions of contrast ratio and relative
/// luminance).
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let luminance = |colour: [f64; 3]| {
        let linear = colour.map(|c| match c <= 0.04045 {
            true => c / 12.92,
            false => ((c + 0.055) / 1.055).powf(2.4),
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn contrast_is_that_of_the_definition() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    // #777777 on white is just below 4.5, #767676 just above (WCAG's own example of a limit).
    let grey = |byte: u8| [f64::from(byte) / 255.0; 3];
    assert!(contrast(grey(0x77), [1.0; 3]) < 4.5 && contrast(grey(0x76), [1.0; 3]) > 4.5);
}

#[test]
fn every_text_has_a_contrast_of_four_and_a_half_in_light_and_in_dark() {
    for from in [":root{color-scheme", "@media (prefers-color-scheme:dark)"] {
        let colours = colours(from);
        let of = |name: &str| {
            let found = colours.iter().find(|(known, _)| known == name);
            found.unwrap_or_else(|| panic!("--{name} after {from}")).1
        };
        // Text, and the grounds that it stands on.
        for (text, grounds) in [
            ("ink", &["ground", "box", "warn"][..]),
            ("soft", &["ground", "box"]),
            ("good", &["ground", "box"]),
            ("bad", &["ground", "box"]),
            ("doubt", &["ground", "box", "warn"]),
        ] {
            for ground in grounds {
                let contrast = contrast(of(text), of(ground));
                assert!(contrast >= 4.5, "{from}: {text} on {ground} has {contrast:.2}");
            }
        }
    }
}

/// Widths that an element insists on, in px: of 16 px a rem.
fn fixed_widths() -> Vec<f64> {
    let properties = ["{width:", ";width:", "min-width:"];
    let found = properties.iter().flat_map(|property| CSS.match_indices(property));
    let values = found.map(|(at, property)| &CSS[at + property.len()..]);
    let number = |text: &str, unit: &str| text.split_once(unit)?.0.parse::<f64>().ok();
    values
        .filter_map(|text| {
            let value = text.split([';', '}', ')']).next()?;
            number(value, "rem").map(|rem| rem * 16.0).or_else(|| number(value, "px"))
        })
        .collect()
}

#[test]
fn a_phone_of_420_px_shows_a_page_without_scrolling_but_for_wide_tables() {
    let widths = fixed_widths();
    assert!(!widths.is_empty(), "the reader of widths finds none");
    assert!(widths.iter().all(|px| *px <= 420.0), "{widths:?}");
    // Columns of a grid are at most as wide as the page.
    for (at, _) in CSS.match_indices("minmax(") {
        assert!(CSS[at..].starts_with("minmax(min(100%,"), "{}", &CSS[at..at + 40]);
    }
    // Tables that are wider scroll in a frame whose edge is shaded, and plots shrink.
    for part in [".scroll{overflow-x:auto", "@media (max-width:40rem)", "svg{", "width:100%"] {
        assert!(CSS.contains(part), "{part}");
    }
}
