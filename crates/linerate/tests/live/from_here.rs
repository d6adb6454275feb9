//! Measurements from a server to another host: what its policy allows and what it refuses, between
//! two servers on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{Server, linerate, stdout};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Loopback is named, and so allowed; the other network is there to be refused beside it.
const POLICY: &str = "[[rule]]\nname = \"here\"\nfrom = [\"127.0.0.0/8\"]\nresults = true\n\
                      time = \"20s\"\nmeasure_to = [\"127.0.0.0/8\", \"198.51.100.0/24\"]\n";

fn file(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, text).expect("it is written");
    path
}

fn name(path: &std::path::Path) -> &str {
    path.to_str().expect("plain")
}

/// Status and JSON of an answer.
fn ask(port: &str, method: &str, path: &str, fields: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("ours");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, it)| it);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn measure(port: &str, asked: &Value) -> (u16, Value) {
    ask(port, "POST", "/api/v1/measure", "", asked)
}

/// Every event of a run to its end: kind and data.
fn events(port: &str, run: &Value) -> Vec<(String, Value)> {
    let path = run["events"].as_str().unwrap_or_else(|| panic!("no events in {run}"));
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("ours");
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let (mut found, mut kind) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut kind);
        } else if let Some(data) = line.strip_prefix("data: ") {
            found.push((kind.clone(), serde_json::from_str(data).expect("JSON")));
        }
    }
    found
}

fn of<'a>(events: &'a [(String, Value)], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|(it, _)| it == kind).map(|(_, data)| data).collect()
}

/// A server with a policy and a store of its own, and another one to measure to.
fn two(policy: &str) -> (TempDir, Server, Server) {
    let folder = TempDir::new().expect("a folder");
    let path = file(&folder, policy);
    let store = folder.path().join("here.db");
    let here = Server::start(&["--policy", name(&path), "--store", name(&store), "--no-page"]);
    let there = Server::start(&["--no-web"]);
    (folder, here, there)
}

#[test]
fn tcp_to_an_allowed_server_is_live_and_kept_as_any_result() {
    let (_folder, here, there) = two(POLICY);
    let target = format!("127.0.0.1:{}", there.port);
    let asked = json!({"kind": "tcp", "target": target, "seconds": 2, "rate_bps": 20_000_000});
    let (status, run) = measure(&here.port, &asked);
    assert_eq!(status, 201, "{run}");
    assert_eq!(run["target"], "127.0.0.1");
    let events = events(&here.port, &run);
    let samples = of(&events, "sample");
    // Two seconds by lines of 200 ms.
    assert!((8..=11).contains(&samples.len()), "{events:?}");
    let (part, end) = (of(&events, "part"), of(&events, "end"));
    let rate = part[0]["rate_bps"].as_f64().expect("a rate");
    assert!((rate / 20e6 - 1.0).abs() < 0.1, "{rate}");
    let id = end[0]["records"][0].as_str().expect("an identifier");
    let (status, record) =
        ask(&here.port, "GET", &format!("/api/v1/results/{id}"), "", &json!(null));
    assert_eq!((status, &record["plan"]["kind"]), (200, &json!("tcp")), "{record}");
    assert_eq!(record["tags"]["run"], run["run"]);
    let (_, list) = ask(&here.port, "GET", "/api/v1/results", "", &json!(null));
    assert_eq!(list["results"][0]["id"], id);
    let (_, info) = ask(&here.port, "GET", "/api/v1/server", "", &json!(null));
    let targets = &info["measure_from_here"]["targets"];
    assert_eq!(targets, &json!(["127.0.0.0/8", "198.51.100.0/24"]), "{info}");
}

#[test]
fn udp_goes_the_other_way_and_a_ping_has_every_reply() {
    let (_folder, here, there) = two(POLICY);
    let target = format!("127.0.0.1:{}", there.port);
    let asked = json!({"kind": "udp", "target": target, "seconds": 1, "direction": "down"});
    let (status, run) = measure(&here.port, &asked);
    assert_eq!(status, 201, "{run}");
    let told = events(&here.port, &run);
    let part = of(&told, "part");
    // Nobody named a rate: 1 Mbit/s.
    let rate = part[0]["rate_bps"].as_f64().unwrap_or_else(|| panic!("no rate in {told:?}"));
    assert!((rate / 1e6 - 1.0).abs() < 0.1, "{rate}");
    assert_eq!(of(&told, "sample")[0]["direction"], "down");
    let asked = json!({"kind": "ping", "target": "127.0.0.1", "seconds": 1});
    let (status, run) = measure(&here.port, &asked);
    assert_eq!(status, 201, "{run}");
    let told = events(&here.port, &run);
    if let Some(failure) = of(&told, "part")[0]["failure"].as_str() {
        // Without CAP_NET_RAW and outside of net.ipv4.ping_group_range there is no ICMP.
        assert!(failure.contains("ping"), "{failure}");
        println!("skipped: no ICMP socket");
        return;
    }
    assert_eq!(of(&told, "reply").len(), 10, "{told:?}");
}

#[test]
fn a_sweep_has_a_point_for_each_window_and_can_be_ended() {
    let (_folder, here, there) = two(POLICY);
    let target = format!("localhost:{}", there.port);
    let asked = json!({"kind": "sweep", "target": target, "seconds": 1, "rate_bps": 50_000_000});
    let (status, run) = measure(&here.port, &asked);
    assert_eq!(status, 201, "{run}");
    let windows = run["windows_bytes"].as_array().expect("windows").clone();
    assert_eq!((windows[0].as_u64(), windows.len()), (Some(16 << 10), 9));
    // Somebody else waits meanwhile, with a place in the line.
    let ping = json!({"kind": "ping", "target": "127.0.0.1"});
    let (status, busy) = measure(&here.port, &ping);
    assert_eq!((status, &busy["position"]), (429, &json!(1)), "{busy}");
    let id = run["run"].as_str().expect("one");
    let end = |token: &str| {
        ask(&here.port, "DELETE", &format!("/api/v1/runs/{id}?token={token}"), "", &json!(null)).0
    };
    assert_eq!(end("0123"), 403);
    linerate_sys::clock::sleep(Duration::from_millis(2500));
    assert_eq!(end(run["token"].as_str().expect("one")), 200);
    let told = events(&here.port, &run);
    let parts = of(&told, "part");
    assert!((2..=4).contains(&parts.len()), "{told:?}");
    for (part, window) in parts.iter().zip(&windows) {
        assert_eq!(&part["window_bytes"], window);
        assert!(part["rtt_us"].as_f64().is_some_and(|us| us > 0.0), "{part}");
    }
    assert_eq!(of(&told, "state").last().expect("one")["state"], "failed");
}

#[test]
fn what_the_policy_does_not_name_is_refused_before_anything_is_sent() {
    let (_folder, here, _there) = two(POLICY);
    let refused = |asked: Value, words: &str| {
        let (status, said) = measure(&here.port, &asked);
        let say = said["say"].as_str().unwrap_or_default();
        assert!((400..=403).contains(&status) && say.contains(words), "{asked}: {status} {said}");
    };
    let to = |target: &str| json!({"kind": "tcp", "target": target});
    refused(to("192.0.2.1"), "no measurement to 192.0.2.1");
    refused(to("10.0.0.1"), "no public address");
    refused(to("224.0.0.1"), "no public address");
    refused(to("169.254.169.254"), "no measurement to 169.254.169.254");
    refused(to("[::1]:5210"), "no measurement to ::1");
    refused(to("0.0.0.0"), "no measurement to 0.0.0.0");
    // RFC 6761 §6.4: never resolves.
    refused(to("nobody.invalid"), "nobody.invalid");
    refused(to("127.0.0.1:22"), "a port is 1024");
    refused(to("a b"), "target: HOST");
    refused(json!({"kind": "ping", "target": "127.0.0.1:5210"}), "ping has no port");
    refused(json!({"kind": "flood", "target": "127.0.0.1"}), "flood is not known here");
    refused(json!({"kind": "tcp", "target": "127.0.0.1", "seconds": 21}), "1 to 20 s");
    refused(json!({"kind": "sweep", "target": "127.0.0.1", "seconds": 3}), "1 to 2 s");
    refused(json!({"kind": "tcp", "target": "127.0.0.1", "streams": 0}), "1 to");
    let origin = "Origin: http://example.com\r\n";
    let (status, said) = ask(&here.port, "POST", "/api/v1/measure", origin, &to("127.0.0.1"));
    assert!(status == 403 && said["error"] == "policy", "{said}");
}

#[test]
fn a_name_is_looked_up_once_and_only_its_allowed_address_is_measured_to() {
    // localhost is ::1 and 127.0.0.1; the second alone is allowed, and the record has that.
    let (_folder, here, there) = two(POLICY);
    let target = format!("localhost:{}", there.port);
    let asked = json!({"kind": "tcp", "target": target, "seconds": 1, "rate_bps": 1_000_000});
    let (status, run) = measure(&here.port, &asked);
    assert_eq!((status, &run["target"]), (201, &json!("127.0.0.1")), "{run}");
    let told = events(&here.port, &run);
    let id = of(&told, "end")[0]["records"][0].as_str().expect("one").to_owned();
    let (_, record) = ask(&here.port, "GET", &format!("/api/v1/results/{id}"), "", &json!(null));
    assert_eq!(record["plan"]["host"], "127.0.0.1", "an address, which nobody looks up again");
    assert_eq!(record["tags"]["target"], "localhost");
}

#[test]
fn without_a_policy_or_a_line_for_it_a_server_measures_to_nobody() {
    let asked = json!({"kind": "tcp", "target": "127.0.0.1"});
    let open = Server::start(&["--no-save", "--no-page"]);
    let (status, said) = measure(&open.port, &asked);
    let say = said["say"].as_str().unwrap_or_default();
    assert!(status == 403 && say.contains("no policy"), "{said}");
    let (_, info) = ask(&open.port, "GET", "/api/v1/server", "", &json!(null));
    assert_eq!(info["measure_from_here"], false);
    let (_folder, closed, _there) = two("[[rule]]\nname = \"all\"\n");
    let (status, said) = measure(&closed.port, &asked);
    let say = said["say"].as_str().unwrap_or_default();
    assert!(status == 403 && say.contains("measures to nobody from here"), "{said}");
}

#[test]
fn a_token_opens_targets_and_a_rule_s_kinds_and_rate_hold() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let text = "[[token]]\nname = \"noc\"\nsha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177\
                a9cb410ff61f20015ad\"\n[[rule]]\nname = \"noc\"\ntoken = \"noc\"\ntests = [\"udp\"]\n\
                rate = \"2M\"\nmeasure_to = [\"127.0.0.1\"]\n[[rule]]\nname = \"all\"\n";
    let (_folder, here, there) = two(text);
    let target = format!("127.0.0.1:{}", there.port);
    let token = "Authorization: Bearer abc\r\n";
    let with = |fields: &str, kind: &str, rate_bps: u64| {
        let asked = json!({"kind": kind, "target": target, "seconds": 1, "rate_bps": rate_bps});
        ask(&here.port, "POST", "/api/v1/measure", fields, &asked)
    };
    assert_eq!(with("", "udp", 1_000_000).0, 403);
    let (status, said) = with(token, "tcp", 1_000_000);
    assert!(status == 403 && said["say"].as_str().is_some_and(|say| say.contains("no tcp test")));
    let (status, said) = with(token, "udp", 3_000_000);
    assert!(status == 403 && said["say"].as_str().is_some_and(|say| say.contains("2 Mbit/s")));
    let (status, run) = with(token, "udp", 2_000_000);
    assert_eq!(status, 201, "{run}");
    assert!(!of(&events(&here.port, &run), "end").is_empty());
}

#[test]
fn a_light_probe_needs_the_policy_s_word_too_and_keeps_nothing() {
    let (_folder, here, there) = two(POLICY);
    let get = |path: &str, fields: &str| {
        let mut stream =
            TcpStream::connect(format!("127.0.0.1:{}", here.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("ours");
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let tcp = |target: &str| get(&format!("/probe?module=tcp&target={target}"), "");
    let said = tcp(&format!("127.0.0.1:{}", there.port));
    assert!(said.contains("probe_success 1\n") && said.contains("stat=\"connect\""), "{said}");
    // Nobody listens on port 1 of loopback (tcpmux, RFC 1078, is on no machine of today).
    let said = tcp("127.0.0.1:1");
    assert!(said.contains("probe_success 0\n") && !said.contains("rtt_seconds{"), "{said}");
    let said = tcp("192.0.2.1:443");
    assert!(said.starts_with("HTTP/1.1 403") && said.contains("no measurement to"), "{said}");
    let said = get("/probe?target=127.0.0.1", "Sec-Fetch-Site: cross-site\r\n");
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    let said = get("/probe?target=127.0.0.1", "");
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("probe_success "), "{said}");
    assert!(get("/probe", "").starts_with("HTTP/1.1 400"));
    let (_, list) = ask(&here.port, "GET", "/api/v1/results", "", &json!(null));
    assert_eq!(list["results"], json!([]));
}

#[test]
fn explain_says_where_a_server_would_measure_to() {
    let folder = TempDir::new().expect("a folder");
    let path = file(&folder, POLICY);
    let said = |target: &str| {
        let words = ["policy", "explain", name(&path), "--from", "127.0.0.1", "--measure-to"];
        let output = linerate(&[&words[..], &[target]].concat());
        (output.status.code(), stdout(&output))
    };
    let networks = "measures from here to: 127.0.0.0/8, 198.51.100.0/24\n";
    let allowed = format!("allowed (rule \"here\" decides)\n{networks}");
    assert_eq!(said("198.51.100.9"), (Some(0), allowed));
    let (code, text) = said("10.1.2.3");
    assert!(
        code == Some(1) && text.contains("no measurement to 10.1.2.3") && text.contains(networks)
    );
}

#[test]
fn every_path_of_the_api_s_description_answers() {
    let server = Server::start(&["--no-save", "--no-page"]);
    let (status, document) = ask(&server.port, "GET", "/api/v1/openapi.json", "", &json!(null));
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let path = path.replace("{run}", "x").replace("{result}", "x");
        for method in methods.as_object().expect("methods").keys() {
            let (status, said) = ask(&server.port, &method.to_uppercase(), &path, "", &json!({}));
            let say = said["say"].as_str().unwrap_or_default();
            let lost = say.contains("no such path") || status == 405 || status == 0;
            assert!(!lost, "{method} {path}: {status} {said}");
        }
    }
}
