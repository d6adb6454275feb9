//! The sheet that the repository holds, and the page that is made of it.

use std::collections::BTreeSet;

use linerate_core::study::{PublishedTable, TableAbout};
use linerate_engine::study::TABLES;

use super::page::{formulas, page, plots};
use super::sheet::{Section, sheet};

/// A plot may not be larger than this; the page shows dozens.
const PLOT_BYTES_MAX: usize = 15_000;

const SAMPLE: &str = r#"
title = "Windows & round trips (TCP)"
purpose = "What a window lets through."
[[formula]]
id = "window-rate"
title = "Rate of a window_size"
formula = "R = 8 W / RTT\n  = W | RTT"
symbols = [["|W|", "window | scaled", "byte"]]
range = "RTT > 0; no loss, <nothing> else"
source = "RFC 6349 §3.3"
plot = "rate-by-rtt"
[[formula.example]]
given = "65535 bytes, 21 ms"
inputs = { W = 65535, RTT = "21 ms" }
expected = 24965714.3
unit = "bit/s"
origin = "hand sum"
[[formula]]
id = "window-again"
title = "The same"
formula = "R"
symbols = []
range = "any"
source = "any"
estimate = true
plot = "rate-by-rtt"
compute = "window-rate"
[[formula.example]]
given = "1250 bytes, 1 s: 10 kbit/s, printed as 10"
inputs = { W = 1256, RTT = "1 s" }
expected = 10
rounded_by = 0.5
unit = "kbit/s"
origin = "hand sum"
[[plot]]
id = "rate-by-rtt"
title = "Rate by round-trip time"
x = { label = "RTT, ms", log = true, unit = "ms" }
y = { label = "rate, Mbit/s", unit = "Mbit/s" }
along = { input = "RTT", every = [[1, 101, 1]] }
compute = "window-rate"
curves = [{ label = "65535 bytes", inputs = { W = 65535 } }]
"#;

fn sample() -> Vec<Section> {
    vec![toml::from_str(SAMPLE).expect("a sound section")]
}

#[test]
fn every_example_comes_out() {
    for formula in formulas(&sheet()) {
        assert!(!formula.examples.is_empty(), "{} has no example", formula.id);
        for example in &formula.examples {
            let got = formula.computed(example);
            assert!(example.agrees(got), "{}: computed {got}: {example:?}", formula.id);
        }
    }
}

#[test]
fn an_example_that_is_off_by_more_than_its_tolerance_does_not_agree() {
    let sample = sample();
    let [first, second] = &sample[0].formulas[..] else { panic!("two formulas") };
    let (example, rounded) = (&first.examples[0], &second.examples[0]);
    assert!((first.computed(example) - 24_965_714.285_7).abs() < 1e-3);
    assert!(example.agrees(24_965_714.3 * 1.000_099) && !example.agrees(24_965_714.3 * 1.000_101));
    assert!((second.computed(rounded) - 10.048).abs() < 1e-9);
    assert!(rounded.agrees(9.5) && rounded.agrees(10.5) && !rounded.agrees(10.51));
    assert!(!rounded.agrees(f64::NAN));
}

#[test]
fn every_plot_has_a_curve_of_finite_points() {
    for plot in sheet().iter().flat_map(|section| &section.plots) {
        let curves = plot.curves();
        assert!(!curves.is_empty(), "{}: no curve", plot.id);
        for curve in curves {
            assert!(curve.points.len() > 1, "{}: {}", plot.id, curve.label);
            let finite = curve.points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
            assert!(finite, "{}: {}", plot.id, curve.label);
        }
    }
}

#[test]
fn an_entry_has_formula_symbols_range_source_examples_and_plot() {
    let page = page(&sample(), &[]);
    for part in [
        "# Theory\n",
        "- [Windows & round trips (TCP)](#windows--round-trips-tcp)\n  - \
         [Rate of a window\\_size](#window-rate)\n",
        "\n## Windows & round trips (TCP)\n\nWhat a window lets through.\n",
        "<a name=\"window-rate\"></a>\n### Rate of a window\\_size\n",
        "```text\nR = 8 W / RTT\n  = W | RTT\n```\n",
        "| `\\|W\\|` | window \\| scaled | byte |\n",
        "**Range**: RTT > 0; no loss, \\<nothing> else\n",
        "**Source**: RFC 6349 §3.3\n",
        "| 65535 bytes, 21 ms | 24,965,714.3 | 24,965,714.3 | bit/s | hand sum |\n",
        "![Rate by round-trip time](theory/rate-by-rtt.svg)\n",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    assert_eq!(page.matches("**An estimate**").count(), 1);
}

#[test]
fn a_shared_plot_is_shown_once_and_linked_after() {
    let page = page(&sample(), &[]);
    assert_eq!(page.matches("![").count(), 1);
    assert!(page.contains("Plot: [Rate by round-trip time](#window-rate)"), "{page}");
    let (_, svg) = &plots(&sample())[0];
    assert!(svg.contains("65535 bytes") && svg.contains("RTT, ms"));
}

/// Lower case, words joined by hyphens.
fn is_slug(id: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    id.split('-').all(word)
}

#[test]
fn plots_are_small_and_their_names_fit() {
    let sheet = sheet();
    for (name, svg) in plots(&sheet) {
        assert!(svg.len() <= PLOT_BYTES_MAX, "{name}: {} bytes", svg.len());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
    // As wide as text is taken to be: 71 characters over a chart, 25 beside it.
    for plot in sheet.iter().flat_map(|section| &section.plots) {
        assert!(is_slug(&plot.id), "{}", plot.id);
        let title = plot.title.chars().count();
        assert!(title <= 71, "{}: its title has {title} characters, at most 71", plot.id);
        for curve in plot.curves() {
            let label = curve.label.chars().count();
            assert!(label <= 25, "{}: '{}' has {label}, at most 25", plot.id, curve.label);
        }
    }
}

#[test]
fn names_of_formulas_and_plots_are_names_of_one() {
    let sheet = sheet();
    let ids: Vec<&str> = formulas(&sheet).map(|formula| formula.id.as_str()).collect();
    assert!(ids.iter().all(|id| is_slug(id)), "{ids:?}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    let page = page(&sheet, &[]);
    for id in ids {
        assert_eq!(page.matches(&format!("<a name=\"{id}\"></a>")).count(), 1, "{id}");
    }
    for (name, _) in plots(&sheet) {
        assert_eq!(page.matches(&format!("](theory/{name})")).count(), 1, "{name}");
    }
}

#[test]
fn every_formula_that_a_figure_points_to_is_in_the_sheet() {
    let sheet = sheet();
    for shipped in TABLES {
        let table = shipped.read().expect("a published table");
        for named in (0..table.cells.len()).filter_map(|at| table.theory(at)?.formula) {
            let known = formulas(&sheet).any(|formula| formula.id == named);
            assert!(known, "{}: {named}", shipped.about.id);
        }
    }
}

#[test]
fn published_figures_stand_beside_theory_with_the_reason_for_a_difference() {
    let about = TableAbout { id: "gigasunet-2004", title: "", study: "", year: 2004, source: "S" };
    let text = "item,value,unit,note\nrtt,21,ms,\nthroughput,966.5,Mbit/s,\n";
    let table = PublishedTable::from_csv(about, text).expect("a sound table");
    let page = page(&[], &[table]);
    assert!(page.contains("- [Published tables beside theory](#published-tables-beside-theory)\n"));
    let row = "| throughput | 966.5 | 949.285 | Mbit/s | 102 % of it | TCP over IPv4";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("\n- throughput: either the packets were longer"), "{page}");
    assert!(!page.contains("| rtt |"), "{page}");
}
