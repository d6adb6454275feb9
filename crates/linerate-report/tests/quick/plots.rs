//! No text of a plot leaves it, is cut or covers another: in every report that tests make, in every
//! plot that they hold and in those of the formulas.

use std::path::Path;

use crate::common::svg_text::faults;
use crate::common::{self, bench, round_trips, wan};
use linerate_core::record::Record;
use linerate_core::study::{PublishedTable, Streams, TableAbout};
use linerate_report::{device, published, record, study};

/// Every plot of the fixtures.
fn plots() -> Vec<(String, String)> {
    let mut long = wan::results();
    for topology in &mut long.plan.topologies {
        topology.title = format!("{}, as far as Seattle and back", topology.title);
    }
    let documents = [
        study::document(&common::as_today()),
        study::document(&common::as_published()),
        study::document(&wan::results()),
        study::document(&long),
        device::document(&bench::on_a_line(3.0), &bench::published()),
        device::document(&bench::as_printed("AGS+", "ip", Streams::Single), &bench::published()),
        record::document(&round_trips::paced()),
        record::document(&round_trips::by_size()),
        record::document(&round_trips::under_load()),
        record::document(&round_trips::traced(1)),
        record::document(&round_trips::traced(30)),
    ];
    let table = PublishedTable::from_csv(
        TableAbout { id: "h", title: "", study: "h", year: 2006, source: "" },
        include_str!("../../../../studies/data/tcp-history.csv"),
    );
    let milestones = published::milestones::svg_files(table.expect("a sound table").milestones());
    let made = documents.iter().flat_map(|document| document.svg_files()).chain(milestones);
    made.chain(stored("tests/golden")).chain(stored("../../docs/theory")).collect()
}

/// The plots that a folder of this repository holds.
fn stored(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let plots = files.filter(|file| file.extension().is_some_and(|ending| ending == "svg"));
    let read = |file: &Path| std::fs::read_to_string(file).expect("a readable plot");
    plots.map(|file| (file.display().to_string(), read(&file))).collect()
}

#[test]
fn no_text_leaves_its_plot_or_covers_another() {
    let plots = plots();
    assert!(plots.len() > 80, "{}", plots.len());
    let bad = |(name, svg): &(String, String)| {
        let faults = faults(svg);
        (!faults.is_empty()).then(|| format!("{name}: {}", faults.join("; ")))
    };
    let bad: Vec<String> = plots.iter().filter_map(bad).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Every plot that a ping can have is there, by its file's name.
#[test]
fn a_ping_has_a_plot_of_all_that_was_stored() {
    let names = |record: &Record| -> Vec<String> {
        let svgs = record::document(record).svg_files();
        svgs.into_iter().map(|(name, _)| name).collect()
    };
    let paced = [
        "delay-over-time.svg",
        "percentiles-over-time.svg",
        "distribution-of-round-trip-times.svg",
        "where-the-round-trip-passed.svg",
    ];
    assert_eq!(names(&round_trips::paced()), paced);
    assert_eq!(names(&round_trips::by_size()), [&paced[2..], &["round-trip-by-size.svg"]].concat());
    assert!(names(&round_trips::under_load()).contains(&paced[0].to_owned()));
}

/// The load lies on the time axis of the delays, and each stroke is a lost probe.
#[test]
fn the_load_and_the_losses_stand_on_the_axis_of_the_delay() {
    let plots = record::document(&round_trips::under_load()).svg_files();
    let (_, svg) = plots.iter().find(|(name, _)| name == "delay-over-time.svg").expect("a plot");
    for part in ["load up", "load, bit/s", "2 lost", "seconds since the load began"] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
}

/// A hop is a whole number, from 1 on.
#[test]
fn ticks_of_hops_are_whole_numbers() {
    for (hops, expected) in [(2, &["1", "2"][..]), (6, &["1", "2", "3", "4", "5", "6"])] {
        let plots = record::document(&round_trips::traced(hops)).svg_files();
        let (_, svg) = plots.first().expect("a plot");
        // Ticks of the axis below are centred on their places.
        let ticks = svg.lines().filter(|line| line.contains("text-anchor=\"middle\""));
        let ticks: Vec<&str> =
            ticks.filter_map(|line| line.split('>').nth(1)?.split('<').next()).collect();
        assert_eq!(ticks, [expected, &["hop"]].concat(), "{svg}");
        assert!(svg.matches("Round trip by hop").count() == 0, "the page has this heading");
    }
}

#[test]
fn no_name_in_a_plot_is_cut() {
    for (name, svg) in plots() {
        let cut: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<text") && line.contains('\u{2026}'))
            .collect();
        assert!(cut.is_empty(), "{name}: {cut:?}");
    }
}

#[test]
fn the_check_finds_what_it_looks_for() {
    let chart = |texts: &str| format!("<svg viewBox=\"0 0 100 50\" width=\"100\">\n{texts}</svg>");
    let text = |x: u32, y: u32, said: &str| {
        format!("<text class=\"name\" x=\"{x}\" y=\"{y}\" text-anchor=\"start\">{said}</text>\n")
    };
    // Eight digits of 13 x 0.636 are 66 wide.
    assert!(faults(&chart(&(text(0, 20, "00000000") + &text(70, 20, "00")))).is_empty());
    assert_eq!(faults(&chart(&(text(0, 20, "00000000") + &text(60, 20, "00")))).len(), 1);
    assert_eq!(faults(&chart(&text(40, 20, "00000000"))).len(), 1);
    assert_eq!(faults(&chart(&text(0, 49, "g"))).len(), 1);
}
