//! A template written for this, in the form of psConfig, with each kind of group and test.

use super::*;
use crate::mesh::{MeshCalendar, MeshPlan, Ways};
use crate::schedule::Class;

/// A template of all kinds of groups and tests, with what has no counterpart.
const TEMPLATE: &str = r#"{
  "_meta": { "display-name": "Campus" },
  "archives": { "central": { "archiver": "http", "data": { "_url": "https://ma.example/" } } },
  "addresses": {
    "north": { "address": "192.0.2.1", "host": "north-box", "tags": ["edge"] },
    "north-lat": { "address": "192.0.2.11", "host": "north-box" },
    "south": { "address": "south.example", "labels": { "six": { "address": "2001:db8::2" } } },
    "east": { "address": "192.0.2.3", "tags": ["edge"], "no-agent": true },
    "west": { "address": "192.0.2.4", "disabled": true },
    "lost": { "address": "lost.example" },
    "a:b": { "address": "192.0.2.5" }
  },
  "address-classes": {
    "edges": { "data-source": { "type": "current-config" },
               "match-filter": { "type": "tag", "tag": "edge" } },
    "mine": { "data-source": { "type": "requesting-agent" } }
  },
  "hosts": { "north-box": { "tags": ["x"] } },
  "groups": {
    "all": { "type": "mesh", "addresses": [
      { "name": "north" }, { "name": "north-lat" }, { "name": "south" }, { "name": "west" },
      { "name": "lost" }, { "name": "east" } ],
      "excludes": [ { "local-address": { "name": "east" },
                      "target-addresses": [ { "name": "south" } ] } ] },
    "star": { "type": "disjoint", "unidirectional": true,
      "a-addresses": [ { "name": "a:b" } ], "b-addresses": [ { "class": "edges" } ] },
    "sixes": { "type": "mesh",
      "addresses": [ { "name": "south", "label": "six" }, { "name": "north" } ] },
    "each": { "type": "list", "addresses": [ { "name": "north" } ] }
  },
  "tests": {
    "rate": { "type": "throughput", "spec": { "source": "{% address[0] %}",
      "dest": "{%address[1]%}",
      "duration": "PT20S", "omit": "PT5S", "parallel": 4, "ip-tos": 184, "congestion": "bbr",
      "window-size": 1048576, "flow-label": 7, "link-rtt": "PT0.2S" } },
    "datagrams": { "type": "throughput", "spec": { "dest": "{% address[1] %}", "udp": true,
      "duration": "PT10S", "bandwidth": 50000000, "reverse": true } },
    "delay": { "type": "latencybg", "spec": { "source": "{% address[0] %}",
      "dest": "{% address[1] %}", "packet-interval": 0.1, "packet-count": 600, "flip": "{% flip %}",
      "packet-padding": 0, "bucket-width": 0.001 } },
    "once-delay": { "type": "latency", "spec": { "dest": "{% address[1] %}",
      "packet-timeout": 2 } },
    "trip": { "type": "rtt", "spec": { "dest": "{% address[1] %}", "count": 10, "interval": "PT1S",
      "length": 1000, "ttl": 9, "ip-version": 4 } },
    "way": { "type": "trace", "spec": { "dest": "{% address[1] %}", "hops": 20, "probe-type": "tcp",
      "dest-port": 80, "as": true } },
    "name": { "type": "dns", "spec": { "query": "example" } },
    "fixed": { "type": "rtt", "spec": { "dest": "192.0.2.99" } }
  },
  "schedules": {
    "hours": { "repeat": "PT4H", "sliprand": true, "slip": "PT4H" },
    "minutes": { "repeat": "PT10M" },
    "seconds": { "repeat": "PT1S" },
    "later": { "start": "2026-01-01T00:00:00Z" }
  },
  "tasks": {
    "a-rate": { "group": "all", "test": "rate", "schedule": "hours", "archives": ["central"],
                "tools": ["iperf3"] },
    "b-datagrams": { "group": "star", "test": "datagrams", "schedule": "hours" },
    "c-delay": { "group": "star", "test": "delay" },
    "d-once": { "group": "star", "test": "once-delay" },
    "e-trip": { "group": "star", "test": "trip", "schedule": "seconds" },
    "f-way": { "group": "all", "test": "way", "schedule": "minutes", "priority": 3 },
    "g-six": { "group": "sixes", "test": "once-delay", "schedule": "minutes" },
    "h-name": { "group": "each", "test": "name", "schedule": "hours" },
    "i-list": { "group": "each", "test": "trip", "schedule": "hours" },
    "j-fixed": { "group": "all", "test": "fixed", "schedule": "hours" },
    "k-off": { "group": "all", "test": "rate", "schedule": "hours", "disabled": true },
    "l-later": { "group": "all", "test": "rate", "schedule": "later" }
  }
}"#;

fn known(host: &str, family: Option<IpFamily>) -> Option<IpAddr> {
    match (host, family) {
        ("south.example", None | Some(IpFamily::V4)) => "192.0.2.2".parse().ok(),
        ("south.example", Some(IpFamily::V6)) => "2001:db8::2".parse().ok(),
        _ => None,
    }
}

fn imported() -> (MeshPlan, Vec<String>) {
    let Imported { plan, notes } = from_psconfig(TEMPLATE, "campus", &known).expect("a template");
    assert!(notes.iter().all(|note| plan.contains(&format!("#   {note}\n"))), "{plan}");
    (MeshPlan::from_toml(&plan).unwrap_or_else(|error| panic!("{error}:\n{plan}")), notes)
}

#[test]
fn what_has_a_counterpart_is_in_the_plan() {
    let (plan, notes) = imported();
    MeshCalendar::from_plan(&plan).expect("room for all");
    let task = |name: &str| {
        let found = plan.tasks.iter().find(|task| task.name == name);
        found.unwrap_or_else(|| panic!("no {name}: {notes:#?}"))
    };
    // A traffic class of 184 is EF, 46 (RFC 3246); 4 h; 20 s and 5 s, and 9 s beside.
    let rate = task("a-rate");
    assert_eq!(rate.run, "tcp {to} -t20s -O5s -P4 -w1048576 --dscp=46 -Cbbr");
    let of = |it: &crate::mesh::MeshTask| (it.every.seconds(), it.takes_s(), it.effective_class());
    assert_eq!(of(rate), (14_400, 34, Class::Exclusive));
    let udp = task("b-datagrams");
    assert_eq!(udp.run, "udp {to} -t10s -b50000000 -R");
    assert_eq!(udp.ways, Ways::One);
    // Of each 60 s 52 are probes each 100 ms; the last is waited for 1 s.
    let delay = task("c-delay");
    assert_eq!(delay.run, "stamp {to} -c520 -i100ms");
    assert_eq!(of(delay), (60, 59, Class::Background));
    assert_eq!(task("e-trip").run, "ping {to} -c10 -i1s -s1000 -t9");
    // 10 s of probes, 1 s for the last and 9 s beside.
    assert_eq!(of(task("e-trip")), (21, 20, Class::Background));
    assert_eq!(task("f-way").run, "trace {to} -m20 --tcp=80");
    assert_eq!(task("g-six").run, "stamp {to} -c100 -i100ms -W2s");
    assert_eq!(plan.tasks.len(), 6);
}

#[test]
fn groups_are_who_meets_whom() {
    let (plan, _) = imported();
    let names: Vec<&str> = plan.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["north", "north-lat", "south", "east", "a-b", "south-six"]);
    assert_eq!(plan.agents[0].site, plan.agents[1].site, "one machine");
    assert_eq!(plan.agents[2].address, Some([192, 0, 2, 2].into()));
    let group = |name: &str| plan.groups.iter().find(|group| group.name == name).expect(name);
    assert_eq!(group("all").agents, ["north", "north-lat", "south", "east"]);
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    // Those of one host, and the one that is named.
    let except = [pair("north", "north-lat"), pair("north-lat", "north"), pair("east", "south")];
    assert_eq!(group("all").except, except);
    let star = group("star");
    assert_eq!(star.agents, ["a-b"]);
    let to = vec!["east".to_owned(), "north".to_owned()];
    assert_eq!(star.to.as_ref(), Some(&to));
    let runs = MeshCalendar::from_plan(&plan).expect("room");
    let of = |task: &str| {
        let at = plan.tasks.iter().position(|it| it.name == task).expect(task);
        runs.iter_runs().filter(|run| run.task == at).count()
    };
    // 4 x 3 ordered pairs less 3; one to two.
    assert_eq!((of("a-rate"), of("b-datagrams"), of("g-six")), (9, 2, 2));
}

#[test]
fn what_has_no_counterpart_is_said() {
    let (_, notes) = imported();
    for note in [
        "archives.central: results go to the store of the hub; this is not archived to",
        "addresses.west: left out: it is disabled",
        "addresses.lost: left out: no address is known of \"lost.example\"",
        "addresses.a:b: 192.0.2.5 is called a-b",
        "addresses.east: no-agent true: an agent has to run there to be measured",
        "tests.rate: flow-label 7: has no counterpart",
        "tests.rate: link-rtt \"PT0.2S\": the slot has 9 s beside its run",
        "tests.delay: is without a pause there, and 52 s of each 60 s here",
        "tests.way: as true: has no counterpart",
        "schedules.hours: slip \"PT4H\": the calendar gives each run its second; no run slips",
        "schedules.seconds: repeat PT1S: a pair is measured each 10 s here",
        "tasks.e-trip: a pair is measured each 21 s, for a run has a slot of 20 s",
        "tasks.a-rate: tools [\"iperf3\"]: linerate measures by itself",
        "tasks.d-once: left out: it has no schedule, so it runs once",
        "tasks.h-name: left out: its test is of type \"dns\", which has no counterpart",
        "tasks.i-list: left out: its group is a list, and a run has two agents",
        "tasks.j-fixed: left out: the dest of its rtt test is \"192.0.2.99\", not address[1]",
        "tasks.k-off: left out: it is disabled",
        "tasks.l-later: left out: schedule \"later\" does not repeat",
    ] {
        assert!(notes.iter().any(|it| it == note), "{note} is not in {notes:#?}");
    }
}

#[test]
fn what_is_no_template_is_one_line() {
    for (text, said) in [
        ("{", "its JSON breaks off in line 1, before the template ends"),
        ("{\n\"a\": x}", "its JSON has a mistake in line 2, column 6"),
        ("[]", "a template is a JSON object"),
        ("{\"addresses\": {}}", "a template of psConfig has an object \"groups\""),
        (
            "{\"addresses\": {}, \"groups\": {}, \"tests\": {}, \"tasks\": {\"a\\nb\": {}}}",
            "no task of it can be measured; tasks.a b: left out: it names no group",
        ),
    ] {
        let error = from_psconfig(text, "m", &known).expect_err(text);
        assert!(error.starts_with(said) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn no_text_of_a_template_gets_out_of_its_line() {
    let evil = TEMPLATE
        .replace("\"bbr\"", "\"bbr\\\"\\n[[task]]\"")
        .replace("\"c-delay\"", "\"c\\\"\\n[x]\"")
        .replace("\"flow-label\": 7", "\"flow-label\": \"\\n[x]\"");
    let Imported { plan, .. } = from_psconfig(&evil, "m\"\n", &known).expect("a template");
    let plan = MeshPlan::from_toml(&plan).expect("still a plan");
    assert_eq!((plan.mesh.as_str(), plan.tasks.len()), ("m--", 6));
}

/// The addresses of the example of psConfig's documentation for `default-address-label`: one of
/// three has no address with the label of the group, one has a second address by another label.
const LABELS: &str = r#"{
  "addresses": {
    "thr1": { "address": "192.0.2.1", "labels": { "10g": { "address": "198.51.100.1" } } },
    "thr2": { "address": "192.0.2.2" },
    "thr3": { "address": "192.0.2.3", "labels": { "10g": { "address": "198.51.100.3" },
                                                  "10g-2": { "address": "198.51.100.33" } } }
  },
  "groups": { "g": { "type": "mesh", "default-address-label": "10g", "addresses": [
    { "name": "thr1" }, { "name": "thr2" }, { "name": "thr3" },
    { "name": "thr3", "label": "10g-2" } ] } },
  "tests": { "t": { "type": "throughput",
    "spec": { "dest": "{% address[1] %}", "duration": "PT30S" } } },
  "schedules": { "h4": { "repeat": "PT4H" } },
  "tasks": { "k": { "group": "g", "test": "t", "schedule": "h4" } }
}"#;

#[test]
fn an_address_without_the_label_of_its_group_is_left_out_and_named() {
    let Imported { plan, notes } = from_psconfig(LABELS, "m", &known).expect("a template");
    let why = "left out: it has no address with the label \"10g\", which its group asks for";
    assert!(notes.contains(&format!("addresses.thr2: {why}")), "{notes:#?}");
    let plan = MeshPlan::from_toml(&plan).expect("a plan");
    let addresses: Vec<_> = plan.agents.iter().filter_map(|agent| agent.address).collect();
    let [one, three, second] = [[198, 51, 100, 1], [198, 51, 100, 3], [198, 51, 100, 33]];
    assert_eq!(addresses, [one.into(), three.into(), IpAddr::from(second)]);
    // The first with both addresses of the third, there and back; not the two of one host.
    let calendar = MeshCalendar::from_plan(&plan).expect("room");
    assert_eq!(calendar.iter_runs().count(), 4);
}
