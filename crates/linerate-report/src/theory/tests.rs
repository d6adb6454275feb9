//! The page and its plots, of a sample sheet and of the sheet that ships.

use linerate_core::study::TableAbout;
use linerate_core::theory::sheet::{Curve, Example, Plot, PlotAxis, SHEET, Symbol};

use super::*;

/// A plot may not be larger than this; the page shows dozens.
const PLOT_BYTES_MAX: usize = 15_000;

const PLOT: Plot = Plot {
    id: "rate-by-rtt",
    title: "Rate by round-trip time",
    x: PlotAxis { label: "RTT, ms", log: true },
    y: PlotAxis { label: "rate, bit/s", log: true },
    curves: || {
        let curve = |bytes: f64| Curve {
            label: format!("{bytes} bytes"),
            points: (0..500)
                .map(|at| f64::from(at).mul_add(0.2, 1.0))
                .map(|ms| (ms, bytes * 8e3 / ms))
                .collect(),
            steps: false,
        };
        vec![curve(65_535.0), curve(1_048_576.0)]
    },
};

const fn formula(id: &'static str, estimate: bool) -> Formula {
    Formula {
        id,
        title: "Rate of a window_size",
        formula: "R = 8 W / RTT\n  = W | RTT",
        symbols: &[Symbol { symbol: "|W|", meaning: "window | scaled", unit: "byte" }],
        range: "RTT > 0; no loss, <nothing> else",
        source: "RFC 6349 §3.3",
        estimate,
        examples: &[Example {
            given: "65535 bytes, 21 ms",
            computed: || 65_535.0 * 8.0 / 0.021,
            expected: 24_965_714.3,
            tolerance: 1e-6,
            unit: "bit/s",
            origin: "hand sum",
        }],
        plot: &PLOT,
    }
}

const SAMPLE: &[Section] = &[Section {
    title: "Windows & round trips (TCP)",
    purpose: "What a window lets through.",
    formulas: &[formula("window-rate", false), formula("window-again", true)],
}];

#[test]
fn an_entry_has_formula_symbols_range_source_examples_and_plot() {
    let page = page(SAMPLE, &[]);
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
}

#[test]
fn a_shared_plot_is_shown_once_and_linked_after() {
    let page = page(SAMPLE, &[]);
    assert_eq!(page.matches("![").count(), 1);
    assert!(page.contains("Plot: [Rate by round-trip time](#window-rate)"), "{page}");
    assert_eq!(plots(SAMPLE).len(), 1);
}

#[test]
fn an_estimate_says_so_and_others_do_not() {
    assert_eq!(page(SAMPLE, &[]).matches("**An estimate**").count(), 1);
}

#[track_caller]
fn check_plots(sheet: &[Section]) {
    for (name, svg) in plots(sheet) {
        assert!(svg.len() <= PLOT_BYTES_MAX, "{name}: {} bytes", svg.len());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        let stem = name.strip_suffix(".svg").expect("a plot is an SVG file");
        assert!(is_slug(stem), "{name}");
    }
    assert_eq!(plots(sheet), plots(sheet), "the same plots each time");
}

/// Lower case, words joined by hyphens.
fn is_slug(id: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    id.split('-').all(word)
}

#[test]
fn plots_are_small_and_the_same_each_time() {
    check_plots(SAMPLE);
    let (_, svg) = &plots(SAMPLE)[0];
    assert!(svg.contains("65535 bytes") && svg.contains("RTT, ms"));
}

#[test]
fn names_on_the_shipped_plots_fit() {
    // As wide as text is taken to be: 71 characters over a chart, 25 beside it.
    for plot in formulas(SHEET).map(|formula| formula.plot) {
        let title = plot.title.chars().count();
        assert!(title <= 71, "{}: its title has {title} characters, at most 71", plot.id);
        for curve in (plot.curves)() {
            let label = curve.label.chars().count();
            assert!(label <= 25, "{}: '{}' has {label}, at most 25", plot.id, curve.label);
        }
    }
}

#[test]
fn the_shipped_sheet_makes_a_sound_page() {
    check_plots(SHEET);
    let page = page(SHEET, &[]);
    let mut ids: Vec<&str> = formulas(SHEET).map(|formula| formula.id).collect();
    assert!(ids.iter().all(|id| is_slug(id)), "{ids:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an anchor names one formula");
    for id in ids {
        assert_eq!(page.matches(&format!("<a name=\"{id}\"></a>")).count(), 1, "{id}");
    }
    for (name, _) in plots(SHEET) {
        assert_eq!(page.matches(&format!("](theory/{name})")).count(), 1, "{name}");
    }
}

#[test]
fn plots_of_one_name_are_one_plot() {
    let mut seen: Vec<(&str, Vec<Curve>)> = Vec::new();
    for plot in formulas(SHEET).map(|formula| formula.plot) {
        let curves = (plot.curves)();
        match seen.iter().find(|(id, _)| *id == plot.id) {
            Some((id, other)) => assert_eq!(*other, curves, "two plots are called {id}"),
            None => seen.push((plot.id, curves)),
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
