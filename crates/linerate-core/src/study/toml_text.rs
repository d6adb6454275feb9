//! From the text of a study file to a plan, with the place of whatever does not fit.
//!
//! Reading the file is the caller's; this gives line and column, both counted from 1, the column
//! in characters.

use std::fmt;

use serde::Deserialize;

use super::test::TestTable;
use super::{StudyPlan, Test};
use crate::lab::{Problem, Step, line_and_column, one_line, place_of};

/// A study file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFileError {
    /// Line and column, where the text has a place for it.
    pub place: Option<(usize, usize)>,
    /// The fault, on one line.
    pub reason: String,
}

impl fmt::Display for PlanFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{line}:{column}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for PlanFileError {}

impl StudyPlan {
    /// Reads and checks a study.
    /// # Errors
    /// Text that is no TOML, an unknown or missing key, or a plan that
    /// [`StudyPlan::check_runnable`] refuses.
    pub fn from_toml(text: &str) -> Result<Self, PlanFileError> {
        if let Some(error) = test_error(text) {
            return Err(error);
        }
        let plan: Self = crate::tree::from_toml(text).map_err(|error| PlanFileError {
            place: error.offset().map(|offset| line_and_column(text, offset)),
            reason: one_line(error.message()),
        })?;
        plan.check_runnable().map_err(|problem: Problem| PlanFileError {
            place: place_of(text, &problem).map(|offset| line_and_column(text, offset)),
            reason: one_line(&problem.message),
        })?;
        Ok(plan)
    }

    /// The plan as TOML text.
    /// # Errors
    /// A number beyond what TOML can hold (a window of 2^63 bytes).
    pub fn to_toml(&self) -> Result<String, PlanFileError> {
        crate::tree::to_toml(self)
            .map_err(|error| PlanFileError { place: None, reason: one_line(&error.to_string()) })
    }
}

/// A key of a test that its kind does not have, or with a value that does not fit: a place that a
/// flattened table does not keep.
fn test_error(text: &str) -> Option<PlanFileError> {
    #[derive(Deserialize)]
    struct Tests {
        #[serde(default)]
        test: Vec<TestTable>,
    }
    let tests = crate::tree::from_toml::<Tests>(text).ok()?.test;
    tests.into_iter().enumerate().find_map(|(index, table)| {
        let fault = Test::try_from(table).err()?;
        let message = fault.to_string();
        let (key, is_value) = fault.key?;
        let path = vec![Step::Key("test"), Step::Index(index), Step::Named(key.clone())];
        let value = place_of(text, &Problem { path, message: message.clone() });
        let place = match is_value {
            true => value,
            false => value.and_then(|value| text.get(..value)?.rfind(&key)),
        };
        let place = place.map(|offset| line_and_column(text, offset));
        Some(PlanFileError { place, reason: one_line(&message) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingMode, Plan, SendWith};
    use crate::units::BitRate;

    const GOOD: &str = r#"name = "s"
title = "t"

[[topology]]
id = "a"
title = "A"
class = "c"
client = "h"
server = "h"
[[topology.lab.host]]
name = "h"

[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56]
count = 10
repetitions = 1
"#;

    fn place_of_needle(text: &str, needle: &str) -> (usize, usize) {
        line_and_column(text, text.find(needle).expect("the needle is in the text"))
    }

    #[track_caller]
    fn check_fault(text: &str, expected_place: Option<(usize, usize)>, expected_words: &[&str]) {
        let error = StudyPlan::from_toml(text).expect_err("the text does not fit");
        assert_eq!(error.place, expected_place, "{error}");
        for word in expected_words {
            assert!(error.reason.contains(word), "'{word}' is not in: {error}");
        }
        assert!(!error.to_string().contains('\n'), "{error}");
    }

    #[test]
    fn a_good_file_survives_the_way_to_toml_and_back() {
        let plan = StudyPlan::from_toml(GOOD).expect("a good file");
        let again = StudyPlan::from_toml(&plan.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(plan));
    }

    #[test]
    fn bad_toml_is_shown_by_line_and_column() {
        let text = GOOD.replace("title = \"A\"", "title = A");
        // The bare word stands in line 6, after `title = `: column 9.
        check_fault(&text, Some((6, 9)), &[]);
    }

    #[test]
    fn an_unknown_key_is_named_at_every_level() {
        let top = GOOD.replace("title = \"t\"", "titel = \"t\"");
        check_fault(&top, Some((2, 1)), &["titel"]);
        let topology = GOOD.replace("client = ", "clyent = ");
        check_fault(&topology, Some(place_of_needle(&topology, "clyent")), &["clyent"]);
        let lab = GOOD.replace("name = \"h\"", "name = \"h\"\nloopback_mtu = 1500");
        check_fault(&lab, Some(place_of_needle(&lab, "loopback_mtu")), &["loopback_mtu"]);
        let test = GOOD.replace("count = 10", "count = 10\ncounts = 10");
        check_fault(&test, Some(place_of_needle(&test, "counts")), &["counts"]);
    }

    #[test]
    fn a_key_of_the_other_kind_is_refused_at_its_test() {
        let text = GOOD.replace("count = 10", "count = 10\nseconds = 1.0");
        check_fault(
            &text,
            Some(place_of_needle(&text, "seconds")),
            &["'ping'", "no key 'seconds'"],
        );
        let text = GOOD.replace("count = 10\n", "");
        check_fault(
            &text,
            Some(place_of_needle(&text, "[[test]]")),
            &["'ping'", "missing", "count"],
        );
    }

    #[test]
    fn a_plan_that_cannot_be_run_is_shown_where_it_goes_wrong() {
        let text = GOOD.replace("server = \"h\"", "server = \"x\"");
        check_fault(&text, Some(place_of_needle(&text, "\"x\"")), &["server 'x'", "topology 'a'"]);
        let text = GOOD.replace("count = 10", "count = 0");
        check_fault(&text, Some((17, 9)), &["'ping'", "count is 0"]);
        let text = GOOD.replace("sizes_bytes = [56]", "sizes_bytes = [56, 65508]");
        check_fault(&text, Some(place_of_needle(&text, "65508")), &["65508"]);
        let text = GOOD.replace("id = \"ping\"", "id = \"p g\"");
        check_fault(&text, Some(place_of_needle(&text, "\"p g\"")), &["'p g'"]);
        // A problem of the laboratory within the study.
        let text = GOOD.replace("name = \"h\"", "name = \"h\"\nloopback_mtu_bytes = 5");
        check_fault(&text, Some(place_of_needle(&text, "5")), &["MTU"]);
    }

    #[test]
    fn a_missing_key_and_a_wrong_type_are_named() {
        let text = GOOD.replace("class = \"c\"\n", "");
        check_fault(&text, Some(place_of_needle(&text, "[[topology]]")), &["class"]);
        let text = GOOD.replace("repetitions = 1", "repetitions = \"one\"");
        check_fault(&text, Some(place_of_needle(&text, "\"one\"")), &["string"]);
    }

    /// The good file with a TCP test at its end.
    fn with_tcp(keys: &str) -> String {
        format!("{GOOD}\n[[test]]\nid = \"tcp\"\nkind = \"tcp\"\nrepetitions = 1\n{keys}\n")
    }

    #[test]
    fn every_key_of_a_tcp_test_survives_the_way_to_toml_and_back() {
        let text = with_tcp(
            "windows_bytes = [0, 16384]\nstreams = [2]\nread_bytes = [1024]\nsack = [false]\n\
             congestion_controls = [\"reno\"]\nseconds = 1.5\nomit_seconds = 0.5\n\
             background = { rate = \"31 Mbit/s\" }",
        );
        let plan = StudyPlan::from_toml(&text).expect("a good file");
        let again = StudyPlan::from_toml(&plan.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(plan));
    }

    #[test]
    fn every_option_of_a_plan_is_a_key_of_its_tests() {
        let udp = "\n[[test]]\nid = \"udp\"\nkind = \"udp\"\nrepetitions = 1\n\
                   rates = [\"max\"]\nseconds = 1.0\njoined = false\ndscp = 8\n";
        let tcp = "streams = [2]\nseconds = 1.0\nnodelay = true\nmss_bytes = 1400\ndscp = 46\n\
                   pace_bps = 1000000\nbuffer_bytes = 4096\nmeans = { send_with = \"vmsplice\" }";
        let ping = GOOD.replace("count = 10", "count = 10\nwarmup = 7\nmode = \"paced\"");
        let text = with_tcp(tcp).replace(GOOD, &ping) + udp;
        let plan = StudyPlan::from_toml(&text).expect("a good file");
        let plans: Vec<Plan> = plan.cell_plans().into_iter().map(|cell| cell.plan).collect();
        let [Plan::Ping(ping), Plan::Tcp(tcp), Plan::Udp(udp)] = plans.as_slice() else {
            panic!("a cell of each: {plans:?}");
        };
        assert_eq!((ping.warmup, ping.mode, ping.count), (7, PingMode::Paced, Some(10)));
        assert_eq!((tcp.test.nodelay, tcp.test.mss_bytes, tcp.test.streams), (true, Some(1400), 2));
        assert_eq!((tcp.test.dscp, tcp.test.buffer_bytes), (Some(46), 4096));
        assert_eq!(tcp.test.pace.map(BitRate::bits_per_sec), Some(1_000_000));
        assert_eq!(tcp.test.means.send_with, SendWith::Vmsplice);
        assert_eq!((udp.test.joined, udp.test.dscp, udp.test.pace), (false, Some(8), None));
        let again = StudyPlan::from_toml(&plan.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(plan));
    }

    #[test]
    fn an_option_of_a_plan_is_refused_where_it_stands() {
        let tcp = |key: &str| with_tcp(&format!("streams = [1]\nseconds = 1.0\n{key}"));
        let text = tcp("no_delay = true");
        check_fault(
            &text,
            Some(place_of_needle(&text, "no_delay")),
            &["'tcp'", "no key 'no_delay'"],
        );
        let text = tcp("nodelay = \"on\"");
        check_fault(
            &text,
            Some(place_of_needle(&text, "\"on\"")),
            &["'tcp'", "nodelay", "boolean"],
        );
        let text = tcp("mss_bytes = 7");
        check_fault(&text, Some(place_of_needle(&text, "7\n")), &["'tcp'", "segment size of 7"]);
        // What the lists and spans of a test set has no second name.
        let text = tcp("interval_ns = 1");
        check_fault(
            &text,
            Some(place_of_needle(&text, "interval_ns")),
            &["'tcp'", "no key 'interval_ns'"],
        );
        assert!(StudyPlan::from_toml(&tcp("nodelay = false")).is_ok(), "as it is without");
        let text = GOOD.replace("count = 10", "count = 10\nhost = \"h\"");
        check_fault(&text, Some(place_of_needle(&text, "host = ")), &["'ping'", "no key 'host'"]);
    }

    /// The good file with a second topology that a model can stand for, and a test on it.
    fn with_simulate(keys: &str) -> String {
        let topology = "[[topology]]\nid = \"wan\"\ntitle = \"W\"\nclass = \"c\"\nclient = \"h\"\n\
                        server = \"g\"\nlab.host = [{ name = \"h\" }, { name = \"g\" }]\n\
                        lab.link = [{ ends = [\"h\", \"g\"], path = { link = \"oc12-atm\", \
                        delay = \"22.5 ms\" } }]\n";
        let test = "[[test]]\nid = \"virtual\"\nkind = \"simulate\"\nrepetitions = 2\n";
        format!("{GOOD}\n{topology}\n{test}{keys}\n")
    }

    #[test]
    fn every_key_of_a_simulated_test_survives_the_way_to_toml_and_back() {
        let text = with_simulate(
            "on = [\"wan\"]\ntcp = \"1999\"\nrecoveries = [\"reno\", \"newreno\", \"sack\"]\n\
             windows_bytes = [2000000]\nstreams = [4]\nseconds = 10.0\nomit_seconds = 1.0\n\
             congestion_control = \"reno\"\ninitial_window = 4\nmss_bytes = 1448\nhystart = false\n\
             start_spread_seconds = 0.5\nbackground = { utilisation = 0.5 }",
        );
        let plan = StudyPlan::from_toml(&text).expect("a good file");
        let again = StudyPlan::from_toml(&plan.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(plan));
    }

    #[test]
    fn what_a_model_cannot_do_is_shown_where_it_stands() {
        let simulate = |keys: &str| with_simulate(&format!("on = [\"wan\"]\n{keys}"));
        let one = "windows_bytes = [0]\nseconds = 1.0\n";
        let text = simulate(&format!("{one}congestion_control = \"vegas\""));
        check_fault(
            &text,
            Some(place_of_needle(&text, "\"vegas\"")),
            &["'virtual'", "`reno`, `cubic` and `bbr`"],
        );
        let text = simulate(&format!("{one}read_bytes = [1024]"));
        check_fault(
            &text,
            Some(place_of_needle(&text, "[1024]")),
            &["'virtual'", "no key 'read_bytes'"],
        );
        let text = simulate("recoveries = [\"sack\", \"fack\"]\nseconds = 1.0");
        check_fault(&text, Some(place_of_needle(&text, "\"fack\"")), &["fack", "newreno"]);
        let text = simulate("recoveries = [\"sack\"]\nsack = [true]\nseconds = 1.0");
        check_fault(&text, Some(place_of_needle(&text, "[true]")), &["give one of them"]);
        let text = simulate(&format!("{one}tcp = \"2001\""));
        check_fault(&text, Some(place_of_needle(&text, "\"2001\"")), &["2001", "1999"]);
        let text = simulate(&format!("{one}initial_window = 0"));
        let zero = place_of_needle(&text, "initial_window");
        check_fault(&text, Some((zero.0, zero.1 + 17)), &["initial_window of 0"]);
        let text = simulate("transfer_bytes = [1000]\nomit_seconds = 0.5");
        check_fault(&text, Some(place_of_needle(&text, "0.5\n")), &["timed whole"]);
        let text = simulate(&format!("{one}mss_bytes = 65484"));
        check_fault(&text, Some(place_of_needle(&text, "[\"wan\"]")), &["segments of 65484 bytes"]);
        // On all topologies, of which one is a host alone.
        let text = with_simulate(one);
        let words = ["'virtual'", "topology 'a'", "measures itself"];
        check_fault(&text, Some(place_of_needle(&text, "[[test]]\nid = \"virtual\"")), &words);
    }

    #[test]
    fn keys_of_a_model_belong_to_no_live_test() {
        let text = with_tcp("streams = [1]\nseconds = 1.0\nrecoveries = [\"sack\"]");
        check_fault(
            &text,
            Some(place_of_needle(&text, "recoveries")),
            &["'tcp'", "no key 'recoveries'"],
        );
        let text = GOOD.replace("count = 10", "count = 10\ntcp = \"1999\"");
        check_fault(&text, Some(place_of_needle(&text, "tcp = ")), &["ping has no key 'tcp'"]);
        let one = "on = [\"wan\"]\nwindows_bytes = [0]\nseconds = 1.0\n";
        let text = with_simulate(&format!("{one}nodelay = true"));
        check_fault(
            &text,
            Some(place_of_needle(&text, "true")),
            &["simulate has no key 'nodelay'"],
        );
    }

    #[test]
    fn the_topologies_of_a_test_are_those_of_the_study() {
        let text = GOOD.replace("count = 10", "count = 10\non = [\"a\", \"b\"]");
        check_fault(&text, Some(place_of_needle(&text, "\"b\"")), &["'ping'", "no topology 'b'"]);
        let text = GOOD.replace("count = 10", "count = 10\non = [\"a\", \"a\"]");
        check_fault(&text, Some(place_of_needle(&text, "\"a\"]")), &["'a' is there twice"]);
        let text = GOOD.replace("count = 10", "count = 10\non = []");
        check_fault(&text, Some(place_of_needle(&text, "[]")), &["on is empty"]);
        let elsewhere = with_simulate("on = [\"wan\"]\nwindows_bytes = [0]\nseconds = 1.0");
        let text = elsewhere.replace("count = 10", "count = 10\non = [\"wan\"]");
        check_fault(&text, Some(place_of_needle(&text, "\"a\"")), &["no test is on topology 'a'"]);
    }

    #[test]
    fn what_a_tcp_test_cannot_have_is_shown_where_it_stands() {
        let second_list = "streams = [1, 2]\nread_bytes = [1, 2]\nseconds = 1.0";
        let text = with_tcp(second_list);
        check_fault(
            &text,
            Some(place_of_needle(&text, "[1, 2]\nseconds")),
            &["'tcp'", "streams and read_bytes"],
        );
        let text = with_tcp("streams = [1, 129]\nseconds = 1.0");
        check_fault(&text, Some(place_of_needle(&text, "129")), &["'tcp'", "the most is 128"]);
        let text = with_tcp("streams = [1]\nseconds = 1.0\nbackground = { rate = \"1 parsec\" }");
        check_fault(&text, Some(place_of_needle(&text, "{ rate")), &["'tcp'", "parsec"]);
        let text = with_tcp("streams = [1]\nseconds = 1.0\nbackground = { speed = \"1M\" }");
        check_fault(&text, Some(place_of_needle(&text, "speed")), &["speed"]);
        let text = with_tcp("stream = [1]\nseconds = 1.0");
        check_fault(&text, Some(place_of_needle(&text, "stream = ")), &["stream"]);
        let text = with_tcp("streams = [1]");
        check_fault(
            &text,
            Some(place_of_needle(&text, "[[test]]\nid = \"tcp\"")),
            &["it has no end"],
        );
    }

    #[test]
    fn a_setting_of_a_host_is_shown_where_it_stands() {
        let tcp = |keys: &str| GOOD.replace("name = \"h\"", &format!("name = \"h\"\ntcp.{keys}"));
        let text = tcp("initial_window = 0");
        check_fault(
            &text,
            Some(place_of_needle(&text, "0\n")),
            &["topology 'a'", "initial_window of 0"],
        );
        let text = tcp("sock = false");
        check_fault(&text, Some(place_of_needle(&text, "sock")), &["sock", "sack"]);
        assert!(StudyPlan::from_toml(&tcp("sack = false")).is_ok());
    }
}
