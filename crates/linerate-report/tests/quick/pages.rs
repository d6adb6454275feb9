//! What a reader sees first of a report: the pages of small results as they were reviewed, and the
//! order in which they speak. Drawings are held by the tests of plots; here their names stand.

use std::path::Path;

use crate::common::{self, bench, wan};
use linerate_report::{Detail, Screen, device, study};

/// A page without its style sheet, drawings by their titles alone.
fn bare(html: &str) -> String {
    let (_, body) = html.split_once("<body>\n").expect("a page has a body");
    let mut out = String::new();
    for (at, part) in body.split("<svg ").enumerate() {
        let rest = match part.split_once("</svg>") {
            Some((drawing, rest)) if at > 0 => {
                let title = drawing.split("<title>").nth(1).and_then(|it| it.split('<').next());
                out.push_str(&format!("[plot: {}]", title.expect("a drawing has a title")));
                rest
            }
            _ => part,
        };
        out.push_str(rest);
    }
    out
}

#[track_caller]
fn holds(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LINERATE_ACCEPT").is_some() {
        std::fs::write(&file, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&file)
        .unwrap_or_else(|_| panic!("{name} is new: accept it with LINERATE_ACCEPT=1"));
    assert!(golden == text, "{name} changed: look at it, then accept with LINERATE_ACCEPT=1");
}

#[test]
fn pages_are_those_that_were_reviewed() {
    holds("page-answers.html", &bare(&study::document(&wan::results()).html()));
    holds("page-spoilt.html", &bare(&study::document(&wan::spoilt()).html()));
    holds("page-study.html", &bare(&study::document(&common::as_published()).html()));
    let bench = device::document(&bench::on_a_line(3.0), &bench::published());
    holds("page-bench.html", &bare(&bench.html()));
}

#[test]
fn what_a_run_ends_with_is_that_which_was_reviewed() {
    holds("screen-80.txt", &study::document(&wan::spoilt()).keep_leading_sections().text(Some(80)));
    holds(
        "screen-120.txt",
        &study::document(&wan::spoilt()).keep_leading_sections().text(Some(120)),
    );
    // Verdicts are green, those that rest on spoilt runs yellow, missing and unfit ones red.
    let mut results = wan::spoilt();
    results.records.retain(|record| record.cell.as_ref().is_none_or(|cell| cell.test != "model"));
    let screen = Screen { width: Some(80), colour: true, detail: Detail::Full };
    holds(
        "screen-80-colour.txt",
        &study::document(&results).keep_leading_sections().render_on_screen(&screen),
    );
}

#[test]
fn a_page_says_what_limited_it_then_the_answers_then_plots_then_tables() {
    let html = study::document(&wan::spoilt()).html();
    let (_, body) = html.split_once("<body>").expect("a body");
    let at = |word: &str| body.find(word).unwrap_or_else(|| panic!("no {word}"));
    let order =
        ["Limited by this host", "class=\"answer ", "<svg ", "<table", "How it was measured"];
    let places = order.map(at);
    assert!(places.is_sorted(), "{order:?} at {places:?}");
}

#[test]
fn what_rests_on_a_spoilt_run_is_marked_everywhere_and_nothing_else() {
    let results = wan::spoilt();
    let document = study::document(&results);
    let text = document.text(None);
    let count = "limited by this host: 2 of 39 runs (an own interface dropped in 1, waited for a \
                 CPU in 1): figures marked * rest on them; all others on the 37 that it did not \
                 limit";
    assert!(text.contains(count), "{text}");
    // The best of the largest window is spoilt, that of the smallest is not; medians rest on all.
    let unbroken = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let flat = unbroken(&text);
    assert!(flat.contains("Mbit/s best of 3 7.100 30.10 481.0 940.0* 940.5"), "{text}");
    assert!(flat.contains("median 7.000* 30.00 480.0 935.0* 940.0"), "{text}");
    // The answer is by the median of both, and so is the sentence that ends the report.
    let said = "Yes: 935 Mbit/s* of a ceiling of 941.48 Mbit/s, 99.3 %*; (not fit to report) times \
                what 16 KiB";
    assert!(flat.contains(said), "{text}");
    assert!(unbroken(&linerate_report::summary_sentence(&results)).contains(said));
    assert!(document.html().contains("<span class=\"figure\">99.3 %*</span>"));
    assert!(flat.contains("* limited by this host: 2 of 6 runs ("), "{text}");
    // This host limited a run of the base: 110 of 935 Mbit/s say nothing of the lost packets.
    let open = "Not answered: (not fit to report) are left, 42 segments sent again; ";
    assert!(flat.contains(open) && !document.html().contains("10.7 %"), "{text}");
    let clean = study::document(&wan::results());
    assert!(!clean.text(None).contains("limited by this host"));
    assert!(!clean.html().contains("class=\"why\""));
}
