//! Assertions by hand, and any text at all.

use proptest::prelude::*;

use super::*;
use crate::record::{Ceiling, PingPlan, Plan, Record, RecordId, Summary, TcpPlan, Tool};
use crate::time::WallTime;

fn record(plan: Plan, rows: &[(MetricId, Stat, f64)]) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let id = RecordId::from_parts(0, [0; 10]);
    let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0));
    record.summary =
        rows.iter().map(|(id, stat, value)| Summary::from_value(*id, *stat, *value)).collect();
    record
}

/// 941.48 Mbit/s up over a gigabit link, of which the ceiling is 941.48.
fn tcp() -> Record {
    let rows = [
        (MetricId::Goodput, Stat::Value, 900e6),
        (MetricId::LoadedRtt, Stat::P50, 12e6),
        (MetricId::LoadedRtt, Stat::P95, 40e6),
        (MetricId::Retransmits, Stat::Value, 7.0),
        (MetricId::RetransmitRatio, Stat::Value, 0.002),
    ];
    let mut record = record(Plan::Tcp(TcpPlan::default()), &rows);
    for row in &mut record.summary {
        *row = row.clone().in_direction(Direction::Up);
    }
    let ceiling = Ceiling { value: Some(941.48e6), ..Ceiling::of_goodput(Direction::Up) };
    record.ceiling = Some(ceiling);
    record
}

fn judged(text: &str, record: &Record) -> Judged {
    text.parse::<Assertion>().unwrap_or_else(|error| panic!("{text}: {error}")).judge_record(record)
}

#[test]
fn arithmetic_comparisons_and_words_are_as_in_school() {
    // By hand from the rows above: 900 / 941.48 = 0.956.
    for (text, met) in [
        ("goodput >= 0.9 * ceiling", true),
        ("goodput >= 0.96*ceiling", false),
        ("goodput_bps > 899.9 Mbit/s", true),
        ("goodput / ceiling >= 95 %", true),
        ("goodput / ceiling >= 0.96", false),
        ("goodput >= 1 Gbit/s - 100Mbps", true),
        ("ceiling - goodput < 41 Mbit/s", false),
        ("loaded_rtt <= 12 ms", true),
        ("loaded_rtt.p95 <= 12 ms", false),
        ("loaded_rtt.p95 <= 2 * 20 ms", true),
        ("loaded_rtt.up.p95 == 0.04 s", true),
        ("retransmits <= 7 and retransmit_ratio < 1%", true),
        ("retransmits < 7 or retransmit_ratio < 1%", true),
        // "and" binds closer.
        ("retransmits == 7 or retransmits == 8 and goodput < 1 bit/s", true),
        ("(retransmits == 7 or retransmits == 8) and goodput < 1 bit/s", false),
        ("retransmits - 2 - 3 == 2", true),
        ("retransmits - (2 - 3) == 8", true),
        ("-retransmits != 7", true),
        ("retransmits < 1e1 and retransmits > 1e-3", true),
    ] {
        assert_eq!(judged(text, &tcp()).met, met, "{text}");
    }
}

#[test]
fn both_values_are_told_with_their_unit() {
    let judged = judged("goodput >= 0.9 * ceiling", &tcp());
    let (left, sign, right) = &judged.comparisons[0];
    assert_eq!(
        (left.text.as_str(), *sign, right.text.as_str()),
        ("goodput", ">=", "0.9 * ceiling")
    );
    assert_eq!((left.value, left.unit), (Some(900e6), "bit/s"));
    assert!(right.value.is_some_and(|value| (value / 847.332e6 - 1.0).abs() < 1e-12));
}

#[test]
fn what_is_missing_is_not_met_and_named() {
    let mut unknown = tcp();
    let ceiling = unknown.ceiling.as_mut().expect("given above");
    (ceiling.value, ceiling.unknown) =
        (None, vec!["the link's rate: veth0 does not report one".to_owned()]);
    let judged_one = judged("goodput >= 0.9 * ceiling", &unknown);
    assert!(!judged_one.met);
    assert!(judged_one.missing[0].contains("veth0 does not report"), "{judged_one:?}");
    assert!(judged_one.missing[0].contains("--link"), "{judged_one:?}");
    let not_there = judged("pdv.p99 < 1 ms or jitter < 1 ms", &tcp());
    assert!(!not_there.met);
    assert_eq!(not_there.missing, ["the result has no pdv.p99", "the result has no jitter"]);
    // What is not there is not below anything either.
    assert!(!judged("pdv.p99 != 1 ms", &tcp()).met);
    assert!(judged("goodput > 1 bit/s or jitter < 1 ms", &tcp()).met);
}

#[test]
fn a_test_of_both_directions_has_to_hold_in_each() {
    let mut both = tcp();
    let Plan::Tcp(plan) = &mut both.plan else { panic!("made above") };
    plan.test.directions = crate::record::TcpDirections::Both;
    let row = |bps| {
        Summary::from_value(MetricId::Goodput, Stat::Value, bps).in_direction(Direction::Down)
    };
    both.summary.push(row(100e6));
    let down = judged("goodput >= 500 Mbit/s", &both);
    assert_eq!((down.met, down.direction), (false, Some(Direction::Down)));
    assert_eq!(down.comparisons[0].0.value, Some(100e6));
    assert!(judged("goodput.up >= 500 Mbit/s and goodput.down >= 100 Mbit/s", &both).met);
}

#[test]
fn a_ping_is_held_to_its_own_loss_and_mean() {
    let rows = [(MetricId::LossRatio, Stat::Value, 0.1), (MetricId::Rtt, Stat::Mean, 5e6)];
    let ping = record(Plan::Ping(PingPlan::default()), &rows);
    assert!(judged("loss <= 10 % and rtt <= 5 ms", &ping).met);
    assert!(!judged("loss == 0", &ping).met);
}

#[test]
fn mistakes_are_one_line_that_says_what_to_write() {
    for (text, part) in [
        ("", "ends too early"),
        ("goodput", "compares nothing"),
        ("goodput >=", "ends too early"),
        ("goodput = 1 Mbit/s", "write =="),
        ("goodput >= 100", "10 bit/s"),
        ("loaded_rtt <= 10", "10 ms"),
        ("goodput >= 10 ms", "a time"),
        ("goodput * ceiling > 1", "nothing has"),
        ("goodputt > 1 bit/s", "near it: goodput"),
        ("goodput > 0.9 * ceeling", "near it: ceiling"),
        ("zzz > 1", "linerate help metrics"),
        ("goodput.p42 > 1 bit/s", "p95"),
        ("(goodput > 1 bit/s", ") is missing"),
        ("goodput > 1 bit/s)", "what is"),
        ("goodput > 1 bit/s and 3", "joins comparisons"),
        ("(goodput > 1 bit/s) + 1 > 2", "needs quantities"),
        ("goodput > 1 furlong", "furlong"),
        ("1..2 > 1", "not a number"),
        ("@ > 1", "'@'"),
    ] {
        let error = text.parse::<Assertion>().expect_err(text);
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
    let deep = format!("{}1 > 0", "(".repeat(400));
    assert!(deep.parse::<Assertion>().expect_err("deep").contains("deeper"));
    assert!("1+".repeat(600).parse::<Assertion>().expect_err("long").contains("at most"));
}

#[test]
fn every_metric_has_a_name_and_its_short_name_means_it() {
    for row in crate::record::METRICS {
        let unit = match row.unit {
            "bit/s" | "ns" | "bytes" | "frames/s" | "s/GB" => row.unit,
            _ => "",
        };
        let text = format!("{} >= 0 {unit}", row.id);
        assert!(text.parse::<Assertion>().is_ok(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = text.parse::<Assertion>();
    }

    #[test]
    fn no_text_of_the_grammars_words_panics(words in proptest::collection::vec(
        prop_oneof![
            Just("goodput"), Just("ceiling"), Just("loss"), Just("."), Just("p95"), Just("1"),
            Just("2.5"), Just("e"), Just("Mbit/s"), Just("ms"), Just("%"), Just("("), Just(")"),
            Just("+"), Just("-"), Just("*"), Just("/"), Just(">="), Just("<"), Just("=="),
            Just("and"), Just("or"), Just(" "), Just("µ"), Just("é")
        ], 0..40)) {
        if let Ok(assertion) = words.concat().parse::<Assertion>() {
            let _ = assertion.judge_record(&tcp());
        }
        if let Ok(assertion) = words.join(" ").parse::<Assertion>() {
            let judged = assertion.judge_record(&tcp());
            prop_assert!(!judged.comparisons.is_empty());
        }
    }
}
