//! One decision for one record: headline, explanation, report, list and difference of every stored
//! record name the same limit and the same trust.

use std::path::PathBuf;

use crate::common;
use linerate_core::explain::{Decision, decide};
use linerate_core::record::{LimitedBy, Plan, Quality, Record, ServerPlan, TestPlan};
use linerate_report::history::HistoryLine;
use linerate_report::{Headline, diff, explain, record};

/// Every record of a folder of `testdata`: a file each, a line each, or within a case of the bank.
fn records(folder: &str) -> Vec<(String, Record)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder);
    let files = std::fs::read_dir(root).expect("a folder");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.iter().flat_map(|file| in_file(file)).collect()
}

fn in_file(file: &std::path::Path) -> Vec<(String, Record)> {
    let text = std::fs::read_to_string(file).expect("text");
    let name = file.display().to_string();
    if let Ok(record) = Record::from_json(&text) {
        return vec![(name, record)];
    }
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let inner = value.get("record").cloned().unwrap_or(value);
        let record = Record::from_json(&inner.to_string()).ok()?;
        Some((format!("{name}:{}", index + 1), record))
    });
    lines.collect()
}

/// Surveys of the parts that a survey of loopback had, and of each transfer as the only one.
fn surveys(all: &[(String, Record)]) -> Vec<(String, Record)> {
    let parts = all.iter().filter(|(name, _)| name.contains("test.jsonl"));
    let parts: Vec<Record> = parts.map(|(_, record)| record.clone()).collect();
    let of = |name: &str, parts: Vec<Record>| {
        let plan = TestPlan {
            server: ServerPlan::default(),
            tcp_time_ns: None,
            congestion_control: None,
            ping_count: 1000,
            within_ns: None,
            goal: None,
        };
        let record =
            Record { plan: Plan::Test(plan), ..common::bare_record(0, parts[0].plan.clone()) };
        (format!("a survey of {name}"), Record { parts, ..record })
    };
    let transfers = all.iter().filter(|(name, _)| name.contains("explain/records"));
    let alone = transfers.map(|(name, record)| of(name, vec![record.clone()]));
    std::iter::once(of("loopback", parts)).chain(alone).collect()
}

/// A page's words: markup removed, spaces as one.
fn plain(page: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in page.chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    let out = out.replace("&#39;", "'").replace("&quot;", "\"").replace("&lt;", "<");
    let out = out.replace("&gt;", ">").replace("&amp;", "&").replace('\u{a0}', " ");
    out.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// The limit and the trust as a line has them.
fn answer(headline: &Headline) -> Vec<String> {
    let limit = &headline.limit;
    let said = match (limit.by, &limit.sentence) {
        (_, Some(sentence)) => sentence.text.clone(),
        (LimitedBy::Nothing, None) => limit.evidence.clone(),
        (by, None) if by.is_host() => limit.evidence.clone(),
        _ => limit.to_string(),
    };
    let trust = match headline.doubt.as_str() {
        "" => headline.quality.to_string(),
        doubt => format!("{}: {doubt}", headline.quality),
    };
    [said, trust].map(|text| text.split_whitespace().collect::<Vec<&str>>().join(" ")).into()
}

fn check(name: &str, record: &Record) {
    let decision = decide(record);
    let headline = Headline::from_record(record);
    assert_eq!(headline.limit.by, decision.limitation.by, "{name}");
    assert_eq!(headline.quality, decision.quality, "{name}");
    assert!(decision.quality == Quality::Good || decision.doubt.is_some(), "{name}");
    let words = answer(&headline);
    let own = record::document(record);
    let with_verdicts = explain::before(&decision.verdicts, record::document(record));
    let mut texts = vec![
        ("terminal", own.text(None)),
        ("markdown", own.markdown().replace('\\', "")),
        ("page", with_verdicts.html()),
        ("difference", diff::document(record, record).text(None)),
    ];
    if !decision.verdicts.is_empty() {
        texts.push(("explanation", explain::of_record(record, &decision).text(None)));
        verdicts_agree(name, &decision);
    }
    for (what, text) in &texts {
        let text = if *what == "page" { plain(text) } else { plain_text(text) };
        for words in &words {
            assert!(text.contains(words.as_str()), "{name}, {what}: no {words:?} in\n{text}");
        }
        let host = decision.limitation.by == LimitedBy::ThisHost;
        let host = host || decision.other.as_ref().is_some_and(|it| it.by == LimitedBy::ThisHost);
        assert!(host || !text.to_lowercase().contains("limited by this host"), "{name}, {what}");
    }
    let line = HistoryLine::from_record(record);
    assert_eq!(line.limited_by, Some(decision.limitation.by.json_key()), "{name}");
    assert_eq!(line.quality, Some(decision.quality.to_string()), "{name}");
}

fn plain_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// The diagnosis of each way names what the answer names.
fn verdicts_agree(name: &str, decision: &Decision) {
    let limits = [Some(&decision.limitation), decision.other.as_ref()].into_iter().flatten();
    for limit in limits {
        let mut of_way = decision.verdicts.iter().filter(|verdict| {
            limit.way.is_none_or(|way| verdict.direction.is_none_or(|of| of == way))
        });
        let found = of_way.find(|verdict| verdict.limited_by == limit.by);
        let verdict = found.unwrap_or_else(|| panic!("{name}: {limit:?}, {:?}", decision.verdicts));
        assert_eq!(verdict.quality, Some(decision.quality), "{name}");
        let said = linerate_report::verdict::cause_with_proof(verdict);
        let open = said.starts_with("undetermined: nothing") || said.starts_with("no verdict");
        let unknown = matches!(limit.by, LimitedBy::NotKnown | LimitedBy::Nothing);
        assert!(unknown || !open, "{name}: {:?} beside {said:?}", limit.by);
        assert!(!unknown || verdict.cause.is_none(), "{name}: {:?} beside {said:?}", limit.by);
    }
}

#[test]
fn whoever_prints_a_record_names_its_one_limit_and_its_one_trust() {
    let folders = ["records", "explain/records", "screens", "bank"];
    let mut all: Vec<(String, Record)> = folders.into_iter().flat_map(records).collect();
    all.extend(surveys(&all));
    let kinds: std::collections::BTreeSet<&str> =
        all.iter().map(|(_, record)| record.plan.kind_name()).collect();
    for kind in ["tcp", "udp", "ping", "bench", "simulate", "test"] {
        assert!(kinds.contains(kind), "{kind} is not among {kinds:?}");
    }
    for (name, record) in &all {
        check(name, record);
        for part in &record.parts {
            check(&format!("a part of {name}"), part);
        }
        // The same with a host that waited for most of the time, and with a virtual machine's loss.
        if matches!(record.plan, Plan::Tcp(_)) && name.contains("explain/records") {
            for busy in disturbed(record) {
                check(&format!("{name}, disturbed"), &busy);
            }
        }
    }
}

/// The record of the same path on hosts that had no CPU for the test, and on one whose own host
/// took its time.
fn disturbed(record: &Record) -> [Record; 3] {
    use linerate_core::record::{Caveat, CaveatCode};
    let mut waiting = record.clone();
    for flow in &mut waiting.flows {
        for end in flow.sender.iter_mut() {
            end.run_queue_wait_ns = Some((end.span_start_ns + end.span_ns) * 73 / 100);
        }
    }
    let wait = "a sender thread waited 73 % of the time for a core";
    waiting.caveats.push(Caveat::new(CaveatCode::RunQueueWait, wait, "stop other work"));
    let mut stolen = record.clone();
    let steal = "the hypervisor took 4.4 % of its CPU time";
    stolen.caveats.push(Caveat::new(CaveatCode::StolenTime, steal, "repeat"));
    let mut late = waiting.clone();
    late.paths.iter_mut().for_each(|path| path.late = true);
    late.caveats.push(Caveat::new(CaveatCode::EmulatorLate, "the path fell behind", "repeat"));
    [waiting, stolen, late]
}
