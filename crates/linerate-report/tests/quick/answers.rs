//! The report of a study that is not PREN: emulated paths, several tests, questions with answers.
//! Every expected figure is a sum by hand over the figures in `common/wan.rs`.

use crate::common::wan;
use linerate_core::record::{Failure, Fault, RecordStatus};
use linerate_core::study::PublishedFigures;
use linerate_report::study::{self, StudyResults};
use linerate_report::summary_sentence;

/// The cells of the first line that starts with `name` after `section`.
fn line_of(text: &str, section: &str, name: &str) -> Vec<String> {
    let after = text.split(section).nth(1).unwrap_or_else(|| panic!("no {section} in {text}"));
    let line = after.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} after {section}: {text}"));
    let rest = line.trim_start().strip_prefix(name).expect("it starts with it");
    rest.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

/// The answer under a question.
fn answer(text: &str, ask: &str) -> String {
    let after = text.split(ask).nth(1).unwrap_or_else(|| panic!("no {ask} in {text}"));
    let lines = after.lines().skip(1).take_while(|line| line.starts_with("    "));
    lines.map(str::trim).collect::<Vec<&str>>().join(" ")
}

fn without(results: &StudyResults, test: &str, parameter: u64) -> StudyResults {
    let mut left = results.clone();
    left.records.retain(|record| {
        let cell = record.cell.as_ref().expect("every record has one");
        cell.test != test || cell.parameter != parameter
    });
    left
}

#[test]
fn a_test_has_its_values_across_and_what_bounds_them() {
    let text = study::document(&wan::results()).text(None);
    let section = "\n1 Gbit/s, 21 ms (emulated: 1 Gbit/s, 10.5 ms, buffer 1 BDP; round trip 21 ms)";
    let row = |name: &str| line_of(&text, section, name);
    assert_eq!(row("tcp/window"), ["16K", "64K", "1M", "8M", "auto"]);
    assert_eq!(row("Mbit/s best of 3"), ["7.100", "30.10", "481.0", "940.0", "940.5"]);
    assert_eq!(row("median"), ["7.000", "30.00", "480.0", "935.0", "940.0"]);
    assert_eq!(row("min\u{2013}max")[3], "930.0\u{2013}940.0");
    // 930, 935 and 940 have a mean of 935 and a deviation of 5.
    assert_eq!(row("mean \u{b1} std")[3], "935.0 \u{b1} 5");
    // 18,824 x 8 / 0.021 = 7.171 Mbit/s, 80,480: 30.66, 1,309,920: 499.0; 5,242,880: above 941.5.
    let bounds = ["7.171", "30.66", "499.0", "941.5", "941.5"];
    assert_eq!(row("window/RTT bound"), bounds);
    // 7.1 / 7.17105 and 940 / 941.4824.
    let shares = row("best, of bound");
    assert_eq!([shares[0].as_str(), shares[3].as_str()], ["99.0 %", "99.8 %"]);
    assert_eq!(row("best, of ceiling")[0], "0.754 %");
    assert_eq!(row("segments retransmitted")[0], "0");
    assert_eq!(row("lost on the path")[0], "0");
}

#[test]
fn what_the_emulator_lost_is_counted_over_all_runs() {
    let text = study::document(&wan::results()).text(None);
    let row = |name: &str| line_of(&text, "\nthe same, 1 packet", name);
    assert_eq!(row("segments retransmitted"), ["42"; 5]);
    // 10 of 100,000 in each of three runs.
    assert_eq!(row("lost on the path"), ["30 (0.01 %)"; 5]);
}

#[test]
fn datagrams_that_were_lost_stand_under_what_arrived() {
    let text = study::document(&wan::results()).text(None);
    let row = |name: &str| line_of(&text, "udp/rate (datagrams)", name);
    assert_eq!(row("Mbit/s"), ["500.0", "930.0"]);
    assert_eq!(row("datagrams lost"), ["0 %", "5.00 %"]);
    assert_eq!(row("lost at the receiver, count"), ["0", "7"]);
    assert!(text.contains("UDP: ceiling 941.48 Mbit/s"), "{text}");
}

#[test]
fn a_test_stands_where_the_plan_has_it_and_a_model_is_told_as_one() {
    let text = study::document(&wan::results()).text(None);
    let wan = text.split("\n1 Gbit/s, 21 ms (").nth(1).and_then(|it| it.split("\nthe same").next());
    let wan = wan.expect("two topologies");
    assert!(wan.contains("tcp/streams (flows)") && !wan.contains("SACK"), "{wan}");
    let rest = text.split("\nthe same, 1 packet").nth(1).expect("two topologies");
    assert!(rest.contains("tcp/SACK"), "{rest}");
    assert_eq!(
        line_of(&text, "\nthe same, 1 packet", "simulated/recovery (model)"),
        ["reno", "sack"]
    );
    assert!(rest.contains("simulated TCP: ceiling 941.48 Mbit/s"), "{rest}");
    assert!(text.contains("TCP of 1999 simulated in virtual time, 1 run by recovery"), "{text}");
    let simulated = |name: &str| name.contains("recovery") || name.contains("model");
    for (name, svg) in
        study::document(&wan::results()).svg_files().iter().filter(|it| simulated(&it.0))
    {
        assert!(svg.contains("imulated"), "{name}");
    }
}

#[test]
fn without_a_localhost_each_test_is_laid_across_the_topologies() {
    let text = study::document(&wan::results()).text(None);
    for word in ["localhost", "no switch", "hops", "Delay, throughput, loss"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let row = |name: &str| line_of(&text, "By topology", name);
    assert_eq!(row("1 Gbit/s, 21 ms")[3], "940.0 (99.8 %)");
    // 110 / 941.4824.
    assert_eq!(row("the same, 1 packet in 10,000 lost")[3], "110.0 (11.7 %)");
    assert_eq!(text.matches("tcp/streams").count(), 1, "one topology has it: no table across");
}

#[test]
fn questions_are_answered_by_the_figures_of_the_run() {
    let text = study::document(&wan::results()).text(None);
    // 935 of 941.4824 is 99.3 %; 935 / 7 is 133.6.
    assert_eq!(
        answer(&text, "holds a bandwidth-delay product?"),
        "Yes: 935 Mbit/s of a ceiling of 941.48 Mbit/s, 99.3 %; 134 times what 16 KiB gives. In \
         2004: 966.5 Mbit/s."
    );
    assert_eq!(
        answer(&text, "Is a small window the whole limit?"),
        "Yes: 7.1 Mbit/s of 7.17 Mbit/s, 99.0 %. Nothing else holds it back."
    );
    // 100 of 935; the table has 0.0001.
    assert_eq!(
        answer(&text, "enough to degrade it?"),
        "Yes: 10.7 % are left, 42 segments sent again; the study says that 0.01 % is enough."
    );
    assert_eq!(
        answer(&text, "Does SACK help?"),
        "Faster with SACK: 100 Mbit/s; leaving it out changes it by \u{2212}50 Mbit/s."
    );
    assert_eq!(answer(&text, "Does the model agree?"), "No: The model has 1.60 times the rate.");
}

#[test]
fn the_run_closes_with_the_answer_to_the_first_question() {
    let sentence = summary_sentence(&wan::results());
    assert!(sentence.starts_with("Does one flow fill the gigabit"), "{sentence}");
    assert!(
        sentence.ends_with(
            "product? Yes: 935 Mbit/s of a ceiling of 941.48 Mbit/s, 99.3 %; \
                                134 times what 16 KiB gives. In 2004: 966.5 Mbit/s."
        ),
        "{sentence}"
    );
    let mut unasked = wan::results();
    unasked.plan.questions.clear();
    assert_eq!(
        summary_sentence(&unasked),
        "The best run over 'the same, 1 packet in 10,000 lost' carried 160 Mbit/s, that over '1 \
         Gbit/s, 21 ms' 940.5 Mbit/s."
    );
}

#[test]
fn a_question_whose_figures_are_missing_says_which() {
    let half = without(&wan::results(), "window", 8_388_608);
    let text = study::document(&half).text(None);
    assert_eq!(
        answer(&text, "holds a bandwidth-delay product?"),
        "Not answered: no result of 1 Gbit/s, 21 ms: window 8 MiB."
    );
    assert_eq!(
        answer(&text, "enough to degrade it?"),
        "Not answered: no result of the same, 1 packet in 10,000 lost: window 8 MiB."
    );
    assert!(answer(&text, "Is a small window the whole limit?").starts_with("Yes: "));
    let unpublished = StudyResults { published: PublishedFigures::default(), ..wan::results() };
    assert_eq!(
        answer(&study::document(&unpublished).text(None), "holds a bandwidth-delay product?"),
        "Not answered: nothing is published as 'throughput'."
    );
}

#[test]
fn a_run_that_failed_answers_nothing() {
    let mut results = wan::results();
    for record in &mut results.records {
        if record.cell.as_ref().is_some_and(|cell| cell.parameter == 16_384) {
            record.status = RecordStatus::Error;
            let id = record.id.to_string();
            let reason = format!("{id} was late");
            record.failure = Some(Failure::new(Fault::System, "emulate path", "a eth0", reason));
        }
    }
    let text = study::document(&results).text(None);
    assert_eq!(
        answer(&text, "Is a small window the whole limit?"),
        "Not answered: no result of 1 Gbit/s, 21 ms: window 16 KiB."
    );
    // Six runs failed alike, each with a figure of its own.
    let line = "6 runs of '1 Gbit/s, 21 ms' (window) and 'the same, 1 packet in 10,000 lost' \
                (window): for example, emulate path a eth0: ";
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains(line), "{text}");
    assert_eq!(flat.matches("was late").count(), 1, "{text}");
}

#[test]
fn published_items_stand_beside_todays_figures() {
    let text = study::document(&wan::results()).text(None);
    let row = |name: &str| line_of(&text, "Published figures", name);
    assert_eq!(
        row("throughput"),
        ["966.5 Mbit/s", "935 Mbit/s", "1 Gbit/s, 21 ms: window 8 MiB", "1"]
    );
    // Nothing measured is a share: the loss has no figure of its own beside it.
    assert_eq!(row("fragile loss"), ["0.01 %", "\u{2014}", "\u{2014}", "3"]);
}

#[test]
fn answers_are_rows_of_the_long_table() {
    let csv = study::csv(&wan::results());
    let has = |line: &str| assert!(csv.lines().any(|it| it == line), "{line} is not in {csv}");
    has("gigasunet,run-1,,question,1,,answer,yes,1,1,,,,");
    has("gigasunet,run-1,,question,1,,large,figure,935000000,bit/s,,,,");
    has("gigasunet,run-1,,question,3,,answer,yes,1,1,,,,");
    has("gigasunet,run-1,,question,5,,answer,yes,0,1,,,,");
    has("gigasunet,run-1,,question,3,,again,figure,42,segments,,,,");
    assert!(!csv.contains(",question,4,,answer,"), "what is told is neither yes nor no");
    let mut keys: Vec<Vec<&str>> =
        csv.lines().skip(1).map(|line| line.splitn(9, ',').take(8).collect()).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all);
}

#[test]
fn every_form_has_the_questions_and_the_page_has_their_figures_in_large() {
    let results = wan::results();
    let markdown = study::document(&results).markdown();
    assert!(markdown.contains("## Questions of the study"), "{markdown}");
    assert!(markdown.contains("**Does SACK help?**\n\nFaster with SACK: 100 Mbit/s"), "{markdown}");
    let html = study::document(&results).html();
    assert!(html.contains("<dd><strong>Yes</strong>: 935\u{a0}Mbit/s of a ceiling"), "{html}");
    // The share decides the first question.
    // A rate of then is not the past of a share.
    let of = "of the ceiling: 1\u{a0}Gbit/s, 21\u{a0}ms: window 8\u{a0}MiB";
    let figure = format!("<span class=\"figure\">99.3 %</span> <span class=\"past\">{of}</span>");
    assert!(html.contains(&figure), "{html}");
}

#[test]
fn files_have_small_letters_and_no_two_have_one_name() {
    let mut results = wan::results();
    let mut again = results.plan.tests[2].clone();
    again.id = "SACK".to_owned();
    results.plan.tests.push(again);
    let svgs = study::document(&results).svg_files();
    let names: Vec<&str> = svgs.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "throughput-by-window-now.svg",
        "throughput-by-streams-now.svg",
        "throughput-by-sack.svg",
        "simulated-throughput-by-recovery.svg",
        "udp-throughput-by-rate-now.svg",
        "throughput-by-sack-sack.svg",
        "time-sequence-model-wan-loss.svg",
        "time-sequence-model-wan-loss-start.svg",
        "repetitions.svg",
        "repetitions-sack.svg",
    ];
    assert_eq!(names, expected);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    assert!(names.iter().all(|name| name.chars().all(fits)), "{names:?}");
}

#[test]
fn the_bound_of_the_window_is_drawn_once_for_paths_that_share_it() {
    let svgs = study::document(&wan::results()).svg_files();
    let (_, window) = &svgs[0];
    assert_eq!(window.matches("stroke-dasharray=\"5 4\"").count(), 1, "{window}");
    assert!(window.contains(">window over RTT: 1 Gbit/s, 21 ms</text>"), "{window}");
}

#[test]
fn texts_from_a_plan_stay_text() {
    let mut results = wan::results();
    let hostile = "<script>alert(1)</script> \u{1b}[31m*a*|_b_";
    results.plan.questions[0].ask = hostile.to_owned();
    let title = results.plan.questions[3].figures.get_mut("with").expect("it is in the plan");
    title.title = Some(hostile.to_owned());
    results.plan.topologies[0].title = hostile.to_owned();
    let (html, text) = (study::document(&results).html(), study::document(&results).text(None));
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
    assert!(!text.contains('\u{1b}'));
    let markdown = study::document(&results).markdown();
    assert!(!markdown.replace("\\<", "").contains('<') && !markdown.contains('\u{1b}'));
    assert!(markdown.contains("\\*a\\*\\|\\_b\\_"), "{markdown}");
    for (name, svg) in study::document(&results).svg_files() {
        assert!(!svg.contains("<script"), "{name}");
    }
    assert!(study::csv(&results).lines().count() > 20);
}

#[test]
fn a_study_without_results_has_no_answers_and_still_renders() {
    let empty = StudyResults { records: vec![], ..wan::results() };
    let text = study::document(&empty).text(None);
    assert!(answer(&text, "Does SACK help?").starts_with("Not answered: no result of"), "{text}");
    assert!(study::document(&empty).html().starts_with("<!DOCTYPE html>"));
    assert!(!study::csv(&empty).contains(",answer,yes,"));
    for (name, svg) in study::document(&empty).svg_files() {
        assert!(svg.contains("nothing was measured"), "{name}");
    }
}

#[test]
fn pages_are_written_for_the_eye() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("the scratch folder can be written");
    };
    write("answers.html", study::document(&wan::results()).html());
    write("answers.txt", study::document(&wan::results()).text(None));
}
