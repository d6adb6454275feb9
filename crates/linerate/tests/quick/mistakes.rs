//! Command lines as people type them: what is meant is understood, what is unclear is asked back in
//! one line, and a mistake is no result.

use crate::support::{check_wrong_use, ends_with, linerate, stderr, stdout};

/// A store of a test's own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn store(&self) -> String {
        self.0.path().join("store.db").to_string_lossy().into_owned()
    }
}

#[test]
fn a_number_without_a_unit_is_asked_back_where_no_habit_says_what_it_is() {
    let path = |flags: &[&'static str]| [&["path", "simulate"][..], flags].concat();
    let ceiling = |flags: &[&'static str]| [&["ceiling", "--link", "1g"][..], flags].concat();
    for (line, answer) in [
        (path(&["--rate", "10M", "--delay", "10"]), "10ms or 10s?"),
        (path(&["--rate", "50", "--delay", "1ms"]), "50M (Mbit/s) or 50bps?"),
        (path(&["--rate", "50M", "--jitter", "0.5"]), "0.5ms or 0.5s?"),
        (ceiling(&["--rtt", "21"]), "21ms or 21s?"),
        (ceiling(&["--rtt", "21ms", "--capacity", "100"]), "100M (Mbit/s) or 100bps?"),
        (vec!["ceiling", "--link", "100"], "100M (Mbit/s) or 100bps?"),
        (vec!["udp", "h", "--search", "--search-with", "low=30"], "30ms or 30s?"),
        (vec!["tcp", "h", "--capacity", "50"], "50M (Mbit/s) or 50bps?"),
    ] {
        check_wrong_use(&line, &[answer]);
    }
    // Each of the two is understood, and so is zero.
    for rtt in ["21ms", "21s"] {
        ends_with(0, &ceiling(&["--rtt"]).into_iter().chain([rtt]).collect::<Vec<_>>());
    }
    ends_with(0, &path(&["--rate", "50M", "--delay", "0", "--bytes", "1M"]));
    ends_with(0, &path(&["--rate", "50kbps", "--delay", "1ms", "--bytes", "1K"]));
}

#[test]
fn the_habits_of_ping_and_iperf3_keep_their_meaning() {
    let json = |flags: &[&str]| -> serde_json::Value {
        // Nobody listens on port 1: the plan is in the record all the same.
        let fixed = ["127.0.0.1", "-p", "1", "--json", "--no-save"];
        let command = flags[0];
        let line = [&[command][..], &fixed, &flags[1..]].concat();
        serde_json::from_str(&stdout(&linerate(&line))).expect("a record")
    };
    let plan = json(&["tcp", "-t", "10", "-i", "1", "-b", "50M"])["plan"].clone();
    assert_eq!(plan["finish"]["time_ns"], 10_000_000_000_u64);
    assert_eq!(
        (&plan["interval_ns"], &plan["pace_bps"]),
        (&1_000_000_000.into(), &50_000_000.into())
    );
    let plan = json(&["udp", "-b", "500"])["plan"].clone();
    assert_eq!(plan["pace_bps"], 500, "bit/s, as for iperf3");
}

#[test]
fn code_points_have_their_names() {
    let dscp = |name: &str| {
        let line = ["tcp", "127.0.0.1", "-p", "1", "--json", "--no-save", "--dscp", name];
        let record: serde_json::Value =
            serde_json::from_str(&stdout(&linerate(&line))).expect("a record");
        record["plan"]["dscp"].clone()
    };
    // RFC 3246 §2.7, 2597 §6, 2474 §4.2.2, 8622 §2.
    for (name, point) in [("EF", 46), ("af41", 34), ("CS1", 8), ("le", 1), ("46", 46)] {
        assert_eq!(dscp(name), point, "{name}");
    }
    check_wrong_use(&["ping", "127.0.0.1", "--dscp", "af44"], &["0 to 63", "EF", "AF43"]);
}

#[test]
fn the_address_of_a_page_is_understood_as_its_host() {
    let line = ["tcp", "http://127.0.0.1:1/", "--json", "--no-save"];
    let record: serde_json::Value =
        serde_json::from_str(&stdout(&linerate(&line))).expect("a record");
    assert_eq!(
        (&record["plan"]["host"], &record["plan"]["port"]),
        (&"127.0.0.1".into(), &1.into())
    );
}

#[test]
fn a_ping_of_no_probes_is_refused() {
    check_wrong_use(&["ping", "127.0.0.1", "-c", "0"], &["--count", "0"]);
}

#[test]
fn a_number_that_cannot_be_is_refused_by_the_command_that_was_typed() {
    let here = "127.0.0.1:1";
    for (line, reason) in [
        (&["rrul", here, "-t", "0"][..], "time of 0s"),
        (&["rrul", here, "--probes", "0"], "0 is not in 1 to 250"),
        (&["rrul", here, "-t", "-1"], "no flag here takes the negative number -1"),
        (&["rrul", here, "-t=-1"], "it is negative"),
        (&["tcp", here, "-t", "0"], "time of 0s"),
        (&["tcp", here, "-P", "0"], "streams of 0"),
        (&["tcp", here, "-P", "x"], "it is no whole number"),
        (&["tcp", here, "-k", "99999999999999999999"], "it is too large"),
        (&["tcp", here, "-p", "0"], "a port is 1 to 65535"),
        (&["tcp", here, "--connect-timeout", "0"], "it is no time at all"),
        (&["tcp", here, "--capacity", "0"], "such a path carries nothing"),
        (&["tcp", here, "--via", "iperf3", "-i", "0"], "interval of 0s"),
        (&["tcp", here, "--via", "nuttcp", "-l", "0"], "buffer of 0"),
        (&["udp", here, "-P", "0"], "streams of 0"),
        (&["udp", here, "--via", "iperf3", "-t", "0"], "time of 0s"),
        (&["test", here, "-t", "0"], "time of 0s"),
        (&["test", here, "-t", "9e9"], "is not a time span"),
        (&["stamp", "127.0.0.1", "-c", "0"], "leave it out to send until Ctrl-C"),
        (&["stamp", "127.0.0.1", "-p", "0"], "a port is 1 to 65535"),
        (&["ping", "127.0.0.1", "-c", "x"], "it is a number from 1"),
        (&["ping", "127.0.0.1", "--udp", "-p", "0"], "a port is 1 to 65535"),
        (&["path", "simulate", "--rate", "1M", "--bytes", "0"], "there is nothing to send"),
        (&["path", "simulate", "--rate", "1M", "--flows", "0"], "0 is not in 1 to 100000"),
    ] {
        let words = line.iter().take(2).filter(|word| word.chars().all(char::is_alphabetic));
        let command = words.copied().collect::<Vec<_>>().join(" ");
        check_wrong_use(line, &[reason, &format!("see 'linerate {command} --help'")]);
    }
}

#[test]
fn a_name_that_no_result_has_is_told_whether_it_is_a_file() {
    let place = Place::new();
    let (empty, store) = (place.0.path().join("none.db"), place.store());
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--store", &store]);
    let folder = place.0.path().to_string_lossy();
    let file = place.0.path().join("a.txt");
    std::fs::write(&file, "no result").expect("it is ours");
    let file = file.to_string_lossy();
    let nowhere = "no such file, and no stored result of this name";
    for (words, answer) in [
        (&["explain", "nosuch.json"][..], nowhere),
        (&["explain", "nosuch"], nowhere),
        (&["explain", "a/b"], nowhere),
        (&["explain", "@-9"], "there are fewer records"),
        (&["diff", "nosuch.json", "@-1"], nowhere),
        (&["diff", "@-1", "a/b"], nowhere),
        (&["diff", &file, "@-1"], "it is a file, and results of the store are read here"),
        (&["diff", "nosuch", "@-1"], "no result has this name"),
        (&["report", "nosuch.json"], nowhere),
        (&["report", &folder], "it is a folder"),
        (&["compare", "@nosuch.json", "@-1"], nowhere),
        (&["history", "--keep", "nosuch.json"], nowhere),
    ] {
        let line = [words, &["--store", &store]].concat();
        check_wrong_use(&line, &[answer, "linerate history"]);
    }
    check_wrong_use(&["explain", &folder], &["it is a folder; name a file in it"]);
    let hosts = ["compare", "nosuch.json", "127.0.0.1"];
    check_wrong_use(&hosts, &["nosuch.json: it is a file, not a host", "@NAME"]);
    // Without a store there is no result of any name.
    let mut command = crate::support::command(&["explain", "nosuch.json"]);
    let output = command.env("XDG_DATA_HOME", &empty).output().expect("the program starts");
    assert!(stderr(&output).contains(nowhere), "{}", stderr(&output));
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_told_with_what_to_do() {
    let place = Place::new();
    let folder = place.0.path().to_string_lossy();
    let missing = place.0.path().join("none").to_string_lossy().into_owned();
    let below = place.0.path().join("none/file").to_string_lossy().into_owned();
    let store = place.store();
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--store", &store]);
    let there = "no such file or directory; name a file that is there";
    let folder_given = "is a directory; name a file in it";
    let unwritable = "is a directory; name a file that this user may write";
    let no_place = format!("make {missing} first");
    let here = "127.0.0.1:1";
    for (line, answer) in [
        (&["tcp", here, "--token-file", &missing][..], there),
        (&["udp", here, "--token-file", &folder], folder_given),
        (&["stamp", "127.0.0.1", "--key", &missing], there),
        (&["policy", "check", &missing], there),
        (&["schedule", "check", &missing], there),
        (&["schedule", "run", &folder], folder_given),
        (&["study", "run", &folder], folder_given),
        (&["path", "simulate", "--plan", &missing], there),
        (&["mesh", "check", &folder], folder_given),
        (&["tcp", here, "-o", &folder], unwritable),
        (&["rrul", here, "-o", &below], &no_place),
        (&["rrul", here, "--flent", &below], &no_place),
        (&["report", "--html", &folder, "--store", &store], unwritable),
        (&["export", "--format", "csv", "-o", &folder, "--store", &store], unwritable),
    ] {
        check_wrong_use(line, &[answer]);
    }
    // A test that did not begin has nothing for flent, and its own code.
    let flent = place.0.path().join("a.flent.gz").to_string_lossy().into_owned();
    let output = linerate(&["rrul", here, "--flent", &flent, "--no-save"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

#[test]
fn no_directory_is_made_for_an_output_whose_own_is_not_there() {
    let place = Place::new();
    let missing = place.0.path().join("none").to_string_lossy().into_owned();
    let below = place.0.path().join("none/x").to_string_lossy().into_owned();
    let store = place.store();
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--store", &store]);
    let here = "127.0.0.1:1";
    let serve = ["serve", "-p", "0", "--stamp-port", "none", "--foreign", "none"];
    let [opened, written, made] = ["open store", "write", "make directory"];
    for (attempt, line) in [
        (opened, &["ping", "127.0.0.1", "-c", "1", "--store", &below][..]),
        (opened, &["ping", "127.0.0.1", "127.0.0.2", "-c", "1", "--store", &below]),
        (opened, &["tcp", here, "--store", &below]),
        (opened, &["udp", here, "--store", &below]),
        (opened, &["rrul", here, "--store", &below]),
        (opened, &["test", here, "--store", &below]),
        (opened, &["trace", "127.0.0.1", "--store", &below]),
        (opened, &["compare", "127.0.0.1", "127.0.0.2", "--store", &below]),
        (opened, &["study", "run", "pren", "--store", &below]),
        (opened, &["bench", "--demo", "--store", &below]),
        (opened, &[&serve[..], &["--store", &below]].concat()),
        (opened, &["agent", "--join", "https://127.0.0.1:1", "--store", &below]),
        (written, &["tcp", here, "-o", &below]),
        (written, &["test", here, "--save-path", &below]),
        (written, &["rrul", here, "--flent", &below]),
        (written, &["bench", "--demo", "-o", &below, "--store", &store]),
        (written, &["report", "--html", &below, "--store", &store]),
        (written, &["report", "--md", &below, "--store", &store]),
        (written, &["report", "--csv", &below, "--store", &store]),
        (written, &["export", "-o", &below, "--store", &store]),
        (written, &["lab", "bank", "run", "--report", &below]),
        (written, &["path", "run", "--rate", "1M", "--svg", &below]),
        (made, &["export", "--format", "flent", "-o", &below, "--store", &store]),
        (made, &["lab", "bank", "run", "--save", &below]),
        (made, &["study", "run", "pren", "--report", &below, "--store", &store]),
        (made, &["bench", "--demo", "--report", &below, "--store", &store]),
        (made, &["path", "simulate", "--rate", "1M", "--bytes", "1K", "--svg", &below]),
        (made, &[&serve[..], &["--acme", "a.example.org", "--acme-folder", &below]].concat()),
    ] {
        let object = format!("{attempt} {below}: no such file or directory");
        check_wrong_use(line, &[&object, &format!("make {missing} first")]);
        assert!(!std::path::Path::new(&missing).exists(), "{line:?} made {missing}");
    }
    // The charts come after what is printed.
    for line in [&["study", "milestones"][..], &["ceiling", "--link", "1g", "--rtt", "21ms"]] {
        let output = linerate(&[line, &["--svg", &below]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("make {missing} first")), "{}", stderr(&output));
    }
    check_wrong_use(&["mesh", "key", &below], &["make key", "in a directory that is"]);
    // A result that is not kept asks for no place, and the directory of this user's is made.
    let kept = linerate(&["ping", "127.0.0.1", "-c", "1", "--no-save", "--store", &below]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    let mut command = crate::support::command(&["ping", "127.0.0.1", "-c", "1", "-q"]);
    let own = command.env("XDG_DATA_HOME", place.0.path().join("own")).output();
    assert!(own.is_ok_and(|it| it.status.success()), "the usual place");
    assert!(place.0.path().join("own/linerate/results.db").exists(), "it was made");
}

#[test]
fn a_command_that_makes_no_sense_is_no_result() {
    let place = Place::new();
    let store = place.store();
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "--name", "good", "-q", "--store", &store]);
    let line = |flags: &[&str]| linerate(&[flags, &["--store", &store]].concat());
    for flags in [
        &["rrul", "127.0.0.1", "-t", "0"][..],
        &["compare", "--tcp", "127.0.0.1,streams=0", "127.0.0.1"],
        &["tcp", "127.0.0.1", "-P", "0"],
        &["ping", "127.0.0.1", "-s", "70000"],
    ] {
        let output = line(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stderr(&output));
    }
    // A host that does not answer is a result.
    let refused = line(&["tcp", "127.0.0.1", "-p", "1"]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    let listed = ends_with(0, &["history", "--json", "--store", &store]);
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).expect("an array");
    let names: Vec<_> = listed.iter().map(|it| (&it["kind"], &it["status"])).collect();
    assert_eq!(names, [(&"tcp".into(), &"error".into()), (&"ping".into(), &"ok".into())]);
}

#[test]
fn history_is_filtered_by_every_kind_that_it_lists() {
    let place = Place::new();
    let store = place.store();
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--store", &store]);
    for kind in linerate_core::record::Plan::KINDS.into_iter().chain(["study"]) {
        ends_with(0, &["history", "--kind", kind, "--store", &store]);
    }
    check_wrong_use(&["history", "--kind", "stamp"], &["linerate stamp are of kind ping"]);
    check_wrong_use(&["history", "--kind", "rrul"], &["linerate rrul are of kind tcp"]);
    check_wrong_use(&["history", "--kind", "x"], &["trace", "compare"]);
}

#[test]
fn each_line_of_an_export_says_what_was_measured_to_whom_and_which_way() {
    let place = Place::new();
    let store = place.store();
    ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--store", &store]);
    let csv = ends_with(0, &["export", "--format", "csv", "--store", &store]);
    let mut lines = csv.lines();
    assert!(lines.next().is_some_and(|head| head.ends_with(",kind,host,directions")), "{csv}");
    assert!(lines.all(|line| line.ends_with(",ping,127.0.0.1,")), "{csv}");
}

#[test]
fn a_quiet_result_breaks_between_words() {
    let mut command = crate::support::command(&["ping", "127.0.0.1", "-c", "1", "-q", "--no-save"]);
    let narrow = command.env("COLUMNS", "40").output().expect("the program starts");
    let text = stdout(&narrow);
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    let wide = ends_with(0, &["ping", "127.0.0.1", "-c", "1", "-q", "--no-save"]);
    assert_eq!(wide.lines().count(), 1, "a pipe has it in one line: {wide}");
}

#[test]
fn pages_that_mistakes_point_to_are_in_the_program() {
    let place = Place::new();
    let plan = place.0.path().join("plan.toml");
    std::fs::write(&plan, "nothing = 1\n").expect("it is ours");
    let plan = plan.to_string_lossy();
    for line in [&["schedule", "check", &*plan][..], &["mesh", "check", &*plan]] {
        let said = stderr(&linerate(line));
        let (_, rest) = said.split_once("linerate help ").expect(&said);
        let topic = rest.split(' ').next().unwrap_or_default();
        assert!(ends_with(0, &["help", topic]).starts_with("# "), "{said}");
    }
    assert!(ends_with(0, &["help", "config"]).contains("[hosts."));
}
