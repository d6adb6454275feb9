//! Reports of device benchmarks, held against hand-made records and the printed tables of 1990.

use crate::common::{
    self,
    bench::{self, as_printed, full, on_a_line},
};
use linerate_core::record::{self, BenchResult, Plan, Record};
use linerate_core::study::{FramesSweep, Measure, Streams, Test, TestKind};
use linerate_report::study::{self, StudyResults};
use linerate_report::{device as report, record as single};

/// Whether a text has a part, wherever its lines are broken.
fn has(text: &str, part: &str) {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(text).contains(&flat(part)), "no {part:?} in:\n{text}");
}

/// Whether a line has exactly these cells.
fn has_row(text: &str, cells: &str) {
    let wanted: Vec<&str> = cells.split_whitespace().collect();
    let found = text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == wanted);
    assert!(found, "no row {cells:?} in:\n{text}");
}

#[test]
fn one_record_tells_every_test_and_what_limits() {
    let text = single::document(&full()).text(None);
    has(&text, "bench of east, west: IPv4/UDP frames of 64 bytes, single stream");
    has(
        &text,
        "tester alone: 4800000 frames/s, median delay 1.504 \u{b5}s over a cable of its own",
    );
    has(&text, "medium: none (virtual links), so there is no theoretical rate");
    assert!(!text.contains("of\ntheoretical") && !text.contains("theoretical  "), "{text}");
    has_row(&text, "strict 150000 3.13 % 150000 151000 12 45.0 s 3.3e-7");
    has_row(&text, "typical 820000 17.1 % 820000 824000 12 45.0 s \u{2014}");
    has(&text, "strict is 18.3 % of typical: frames are lost below the typical load 0.05");
    has_row(&text, "all 4500000 700000 84.4 % 4500000 3800000");
    has_row(&text, "820000 2.688 2.88 3.328 4.224 39.94 39.94 37.25");
    has_row(&text, "tester alone \u{2014} 1.504 \u{2014} \u{2014} \u{2014} \u{2014} \u{2014}");
    has_row(&text, "frames 256 250 262 6 3");
    has(
        &text,
        "implied buffer time 64.00 \u{b5}s, corrected 50.88 \u{b5}s: 203.5 frames (RFC 9004)",
    );
    has(&text, "last loss after median 1.200 ms of 3, 900.0 \u{b5}s to 1.500 ms");
    has(&text, "by stamps: 12.10 ms");
    has(&text, "4096 addresses remembered at once");
    has(&text, "head-of-line blocking: no, 0 % lost towards the free output");
    has(&text, "backpressure: no, 33.3 % lost towards the overloaded output");
    has(&text, "100 of 49200000 frames in 4 runs, the longest 70; 3 errored seconds");
    has(&text, "the loss ratio is below 2.5e-6 with 95 %");
    has(&text, "the worst second, number 7, lost 0.00850 %");
    has(&text, "frames were lost to the end of the trial, after 5.000 ms");
    has(&text, "900000 frames/s, 12.5 % of the best rate is left: it collapses");
    has(&text, "20 repetitions: typical 2.88, worst case 39.90, PDV 37.20 \u{b5}s (RFC 8219)");
    has(&text, "not as ordered");
    has(&text, "1 of 5 trials do not count");
    has(&text, "the generator sent less than it was asked for (480000 of 500000 frames left)");
    let first = text.lines().next().expect("a headline");
    let expected = "820000 64-byte frames per second \u{b7} limited by the device: it stalls, 0.05 \
                    per second: 150000 without a single loss, flooded it passes only 700000 \
                    \u{b7} ";
    assert!(first.starts_with(expected), "{first}");
}

/// The headline of a record with one change to what it found, without its quality and identifier.
fn headline(change: impl FnOnce(&mut BenchResult)) -> String {
    let mut record = full();
    let result = record.bench.as_mut().expect("it has one");
    result.goals.remove(0);
    result.stalls_per_sec = None;
    result.flood = None;
    change(result);
    let text = single::document(&record).text(None);
    let mut parts: Vec<&str> = text.lines().next().expect("a line").split(" \u{b7} ").collect();
    parts.truncate(parts.len() - 2);
    parts.join("; ")
}

#[test]
fn the_headline_names_what_limits() {
    let rate = "820000 64-byte frames per second";
    assert_eq!(headline(|_| {}), format!("{rate}; limited by the device"));
    assert_eq!(
        headline(|result| result.goals[0].tester_limited = true),
        format!(
            "Limited by this host: {rate} or more; the tester alone does no more than 4800000 per \
             second"
        )
    );
    assert_eq!(
        headline(|result| result.theoretical_fps = Some(820_100.0)),
        format!("{rate}; limited by the link: all that it carries")
    );
    assert_eq!(headline(|result| result.goals.clear()), "no throughput was asked for");
    assert_eq!(headline(|result| *result = BenchResult::default()), "nothing was measured");
}

#[test]
fn a_run_prints_the_figures_of_1990_where_they_are_measured_again() {
    let records = as_printed("cisco AGS+", "ip", Streams::Single);
    let text = report::document(&records, &bench::published()).text(None);
    has(&text, "AGS: IPv4/UDP, single stream");
    // bradner-1990-routers.csv: cisco AGS+, ip, between cards; 0, 1 and 10 filters.
    has_row(&text, "64 14880 14489 14488 14488 14488 14488");
    has_row(&text, "256 4528 4494 4493 4493 4494 4494");
    has_row(&text, "1518 812 812 811 811 812 812");
    // 14488 of 14880.95 is 97.36 %, 811 of 812.744 is 99.785 %.
    has_row(&text, "AGS 97.4 % 98.6 % 99.2 % 99.6 % 99.7 % 99.8 %");
    has(&text, "Beside the devices of 1990: ip, single stream");
    has_row(&text, "cisco AGS+, between cards 14488 8324 4493 2340 1194 811");
    has_row(&text, "BBN T20, within a card 4315 4339 4493 2340 1194 811");
    // 4315 of 14880.95, 811 of 812.744 as above.
    has_row(&text, "BBN T20, within a card 29.0 % 51.4 % 99.2 % 99.6 % 99.7 % 99.8 %");
    assert!(!text.contains("no medium: virtual"), "{text}");
}

#[test]
fn dual_streams_stand_beside_dual_streams_with_the_figures_of_one_input() {
    let records = as_printed("cisco AGS+", "ip", Streams::Dual);
    let printed = bench::published();
    let row = printed.iter().find(|row| {
        row.device == "cisco AGS+"
            && row.streams == Streams::Dual
            && row.stream == 1
            && row.cards == linerate_core::study::Cards::Between
            && row.frame_bytes == 64
    });
    let row = row.expect("he printed it");
    let flood = row.flood_rate_fps.expect("printed");
    let text = report::document(&records, &printed).text(None);
    has(&text, "AGS: IPv4/UDP, dual stream");
    has_row(&text, &format!("64 14880 14489 \u{2014} {flood}"));
    has(&text, "dual: both inputs at the rate at once, both outputs counted");
    has(&text, "Beside the devices of 1990: ip, dual stream");
    has(&text, "flood rate, frames/s");
    has_row(&text, "cisco AGS+, between cards, stream 2 9700 8340 4498 2341 1195 812");
}

#[test]
fn the_cost_of_a_filter_is_the_slope_of_its_line() {
    let text = report::document(&on_a_line(0.0), &[]).text(None);
    has(&text, "router: IPv4/UDP, single stream: cost of a filter");
    has_row(&text, "64 typical 10 to 1000 15 15 to 15 2000 6");
    // Two runs at each of 10, 100 and 1000 filters, 100 ns above and below the line: the slope
    // stays, the squares of the rest are 6 x 100^2, and with x̄ = 370 Σ(x−x̄)² = 2 (360² + 270² +
    // 630²) = 1,198,800. √(60,000 / 4 / 1,198,800) = 0.11186, times t(0.975, 4) = 2.7764: 0.31056.
    let text = report::document(&on_a_line(100.0), &[]).text(None);
    has_row(&text, "64 typical 10 to 1000 15 14.69 to 15.31 2000 6");
    has(&text, "medians of 2 repetitions");
    // A column for each list of filters, each its median: 1e9 / (2000 ± 100) are 476,190 and
    // 526,315.8, whose mean is 501,253.
    has(&text, "501253");
}

#[test]
fn without_a_medium_no_figure_is_a_share_of_a_theory() {
    let text = report::document(&on_a_line(0.0), &bench::published()).text(None);
    has(&text, "no medium: virtual links have no theoretical rate");
    assert!(!text.contains("typical of"), "{text}");
    has_row(&text, "router \u{2014} \u{2014} \u{2014} \u{2014} \u{2014} \u{2014}");
}

#[test]
fn every_trial_is_a_row() {
    let csv = report::trials_csv(&[full()]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let head = reader.headers().expect("a head").clone();
    let at = |name: &str| head.iter().position(|it| it == name).expect(name);
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 5);
    let last = &rows[4];
    let cells =
        ["trial", "intended_frames_per_sec", "sent", "received", "lost", "duplicates", "invalid"];
    let got: Vec<&str> = cells.iter().map(|name| &last[at(name)]).collect();
    assert_eq!(got, ["5", "875000", "875000", "874999", "1", "0", ""]);
    assert_eq!(&rows[2][at("invalid")], "generator_short");
    assert_eq!(&rows[2][at("invalid_detail")], "480000 of 500000 frames left");
    assert_eq!(&rows[2][at("interface_sent")], "", "absent is empty");
    let names = ["topology", "protocol", "frame_bytes", "filters", "seed"];
    let got: Vec<&str> = names.iter().map(|name| &last[at(name)]).collect();
    assert_eq!(got, ["router-10", "udp4", "64", "10", "1"]);
}

#[test]
fn a_page_has_its_figures_its_diagrams_and_no_outside_request() {
    let page = single::document(&full()).html();
    for part in [
        "<div class=\"figure\">820000</div>",
        "Loss by load",
        "Search with frames of 64 bytes",
        "Latency at the throughput",
        "throughput, typical",
        "MLRsearch",
    ] {
        has(&page, part);
    }
    assert!(!page.contains("http") || !page.contains("src="), "no outside request");
    let page =
        report::document(&as_printed("cisco AGS+", "ip", Streams::Single), &bench::published());
    let page = page.html();
    has(&page, "Frame rate by length");
    has(&page, "<tr class=\"published\"><th scope=\"row\">BBN T20, within a card</th>");
    let markdown = report::document(&on_a_line(0.0), &[]).markdown();
    has(&markdown, "| 64 | typical | 10 to 1000 | 15 | 15 to 15 | 2000 | 6 |");
}

/// A study whose records are of benchmarks, on two topologies of the plan.
fn results() -> StudyResults {
    let mut plan = common::plan();
    plan.name = "bradner".to_owned();
    plan.title = "Routers".to_owned();
    plan.topologies.truncate(2);
    for (topology, (id, title)) in
        plan.topologies.iter_mut().zip([("AGS", "a router"), ("AGS-10", "a router, 10 filters")])
    {
        (topology.id, topology.title) = (id.to_owned(), title.to_owned());
        topology.published = None;
    }
    plan.tests = vec![Test {
        id: "bench".to_owned(),
        on: None,
        kind: TestKind::Bench(FramesSweep {
            frame_sizes: Some(vec![64, 128, 256, 512, 1024, 1518]),
            measures: vec![Measure(record::BenchTest::Flood)],
            ..FramesSweep::default()
        }),
        repetitions: 1,
    }];
    let kept = |record: &Record| match &record.plan {
        Plan::Bench(plan) => plan.filters != Some(1),
        _ => false,
    };
    let mut records = as_printed("cisco AGS+", "ip", Streams::Single);
    records.retain(kept);
    for record in &mut records {
        let Plan::Bench(plan) = &record.plan else { continue };
        let size = plan.frames.size_bytes;
        let cell = record.cell.as_mut().expect("it has one");
        cell.parameter = size.into();
    }
    StudyResults { plan, run: "run-1".to_owned(), records, published: bench::figures() }
}

#[test]
fn a_study_of_benchmarks_that_all_failed_does_not_speak_of_tcp() {
    let failed = StudyResults { records: vec![], ..results() };
    let text = study::document(&failed).text(None);
    has(&text, "No benchmark of this study has ended well yet.");
}

#[test]
fn the_report_of_a_study_has_its_benchmarks_under_the_topologies_titles() {
    let results = results();
    let text = study::document(&results).text(None);
    has(&text, "a router: IPv4/UDP, single stream");
    has_row(&text, "64 14880 14489 14488 14488 14488");
    has_row(&text, "a router 14488 8324 4493 2340 1194 811");
    has(&text, "With frames of 64 bytes a router passes 14488 frames/s.");
    assert!(!text.contains("0 switches"), "no empty section of a topology: {text}");
    let page = study::document(&results).html();
    has(&page, "1990: 14488, 97.4\u{a0}% of the theoretical rate");
    has(&page, "Throughput by frame length");
    assert!(!page.contains("All figures by topology"));
    has(&study::document(&results).markdown(), "## Beside the devices of 1990: ip, single stream");
    has(&study::csv(&results), "throughput_strict_frames_per_sec,value,14488,frames/s,frame");
    let names: Vec<String> =
        study::document(&results).svg_files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["bench-throughput.svg"]);
}

#[test]
fn diagrams_and_texts_are_the_same_as_before() {
    let accept = std::env::var_os("LINERATE_ACCEPT").is_some();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let printed = as_printed("cisco AGS+", "ip", Streams::Single);
    let mut files = report::document(&[full()], &[]).svg_files();
    files.extend(report::document(&printed, &[]).svg_files());
    files.push(("bench.txt".to_owned(), single::document(&full()).text(None)));
    let whole = report::document(&printed, &bench::published()).text(None);
    files.push(("bench-1990.txt".to_owned(), whole));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "bench-loss.svg",
            "bench-latency.svg",
            "bench-latency-spread.svg",
            "bench-search-1.svg",
            "bench-throughput.svg",
            "bench.txt",
            "bench-1990.txt",
        ]
    );
    for (name, text) in &files {
        let file = folder.join(name);
        if accept {
            std::fs::write(&file, text).expect("the golden file can be written");
        }
        let golden = std::fs::read_to_string(&file)
            .unwrap_or_else(|_| panic!("{name} is new: accept it with LINERATE_ACCEPT=1"));
        assert!(golden == *text, "{name} changed: look at it, then accept with LINERATE_ACCEPT=1");
    }
}
