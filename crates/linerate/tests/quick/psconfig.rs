//! `linerate mesh import`: a template of psConfig in, a plan out that `mesh check` takes.

use crate::support::{check_wrong_use, linerate, stderr, stdout};

/// Three hosts that measure each other, and one of them all others' delay, with what has no
/// counterpart.
const TEMPLATE: &str = r#"{
  "archives": { "ma": { "archiver": "http", "data": {} } },
  "addresses": {
    "a": { "address": "192.0.2.1" }, "b": { "address": "192.0.2.2" },
    "c": { "address": "2001:db8::3" }
  },
  "groups": {
    "all": { "type": "mesh", "addresses": [ { "name": "a" }, { "name": "b" }, { "name": "c" } ] },
    "star": { "type": "disjoint", "a-addresses": [ { "name": "a" } ],
              "b-addresses": [ { "name": "b" }, { "name": "c" } ] }
  },
  "tests": {
    "rate": { "type": "throughput", "spec": { "source": "{% address[0] %}",
              "dest": "{% address[1] %}", "duration": "PT20S" } },
    "delay": { "type": "latencybg", "spec": { "dest": "{% address[1] %}" } },
    "name": { "type": "dns", "spec": {} }
  },
  "schedules": { "hourly": { "repeat": "PT1H" } },
  "tasks": {
    "rate": { "group": "all", "test": "rate", "schedule": "hourly", "archives": [ "ma" ] },
    "delay": { "group": "star", "test": "delay" },
    "name": { "group": "all", "test": "name", "schedule": "hourly" }
  }
}"#;

#[test]
fn a_template_becomes_a_plan_that_is_checked_and_what_is_left_out_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let template = path("campus.json");
    std::fs::write(&template, TEMPLATE).expect("room");
    let output = linerate(&["mesh", "import", &template]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (plan, said) = (stdout(&output), stderr(&output));
    for line in [
        "archives.ma: results go to the store of the hub; this is not archived to",
        "tasks.name: left out: its test is of type \"dns\", which has no counterpart",
    ] {
        assert!(said.contains(line) && plan.contains(line), "{line}: {said}{plan}");
    }
    assert!(plan.contains("mesh = \"campus\"\n"), "{plan}");
    let file = path("campus.toml");
    std::fs::write(&file, &plan).expect("room");
    let output = linerate(&["mesh", "check", &file, "--all"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let checked = stdout(&output);
    let runs = |task: &str| checked.lines().filter(|line| line.starts_with(task)).count();
    // Each of three measures two; one and two measure each other.
    assert_eq!((runs("rate +"), runs("delay +")), (6, 4), "{checked}");
    let named = linerate(&["mesh", "import", &template, "--name", "other"]);
    assert!(stdout(&named).contains("mesh = \"other\"\n"));
}

#[test]
fn what_is_no_template_or_has_no_room_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("t.json").display().to_string();
    std::fs::write(&path, "{}").expect("room");
    let says = ["import template", "a template of psConfig has an object \"addresses\""];
    check_wrong_use(&["mesh", "import", &path], &says);
    check_wrong_use(&["mesh", "import", "/nonexistent/t.json"], &["/nonexistent/t.json"]);
    // Six runs of 29 s, which exclude each other, do not go into two minutes.
    let full = TEMPLATE.replace("PT1H", "PT2M");
    std::fs::write(&path, full).expect("room");
    let output = linerate(&["mesh", "import", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("every = \"120s\""), "the plan is there to be changed");
    let said = stderr(&output);
    assert!(said.contains("have room in a period of 120 s"), "{said}");
}
