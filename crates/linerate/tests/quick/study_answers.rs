//! A study that asks, from its file to the last line of its run: simulated, so that no packet is
//! sent and every machine gives the same figures.

use crate::support::ends_with;

/// A gigabit over 21 ms by a model of today, with figures published of the study of that name.
const STUDY: &str = r#"
name = "gigasunet"
title = "One gigabit over 21 ms in virtual time"
source = "SUNET, End-to-end performance, 2004"
[[topology]]
id = "wan"
title = "1 Gbit/s, 21 ms"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], path = { rate = "1 Gbit/s", delay = "10.5 ms", buffer = "1 BDP" } }]
[[test]]
id = "window"
kind = "simulate"
windows_bytes = [65536, 8388608]
seconds = 3.0
omit_seconds = 2.0
repetitions = 1
[[question]]
ask = "Does one flow fill the gigabit once the window holds a bandwidth-delay product?"
figure.large = { topology = "wan", test = "window", value = 8388608 }
figure.share = { share_of_ceiling = "large" }
figure.then = { published = "throughput" }
yes_when = "share >= 0.98"
answer = "{share} of the ceiling. In 2004: {then}."
[[question]]
ask = "Is a small window the whole limit?"
figure.small = { topology = "wan", test = "window", value = 65536 }
figure.share = { share_of_bound = "small" }
yes_when = "share >= 0.95 and share <= 1.01"
answer = "{small}."
no = "It is not."
"#;

#[test]
fn a_run_ends_with_the_answer_to_the_first_question() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("study.toml"), STUDY).expect("write the study");
    let (file, store, report) = (path("study.toml"), path("db"), path("pages"));
    let text = ends_with(0, &["study", "run", &file, "--store", &store, "--report", &report]);
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains("report: ") && flat.ends_with("In 2004: 966.5 Mbit/s."), "{text}");
    let last = flat.rsplit("index.html ").next().expect("the report's path stands before it");
    assert!(last.starts_with("Does one flow fill the gigabit"), "{last}");
    assert!(last.contains("product? Yes: "), "{last}");
    // 65,536 x 8 / 0.021 = 24.97 Mbit/s; 45 whole segments of 1448 bytes are less by a little.
    assert!(flat.contains("Is a small window the whole limit? Yes: 24."), "{text}");
    // A run ends with what was asked; the tables are in its report.
    let text = ends_with(0, &["report", "--run", "last", "--store", &store]);
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains("throughput 966.5 Mbit/s 941."), "{text}");
    assert!(flat.contains("simulated/window") && flat.contains("window/RTT bound 24.97"), "{text}");
    let page = std::fs::read_to_string(path("pages/index.html")).expect("the page");
    assert!(
        page.contains("Questions of the study") && page.contains("Published figures"),
        "{page}"
    );
}
