//! Whom a server lets in: the policy file, its command, and what clients are told.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::{Server, check_wrong_use, linerate, stderr, stdout};
use linerate_sys::clock;
use tempfile::TempDir;

const LAN: &str = "[[rule]]\nname = \"lan\"\nfrom = [\"127.0.0.0/8\"]\n";

fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, text).expect("it is written");
    (folder, path)
}

fn name(path: &std::path::Path) -> &str {
    path.to_str().expect("plain")
}

/// Status and body of an answer.
fn http(port: &str, head: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("ours");
    let mut request = format!("{head}\r\nHost: 127.0.0.1\r\n");
    if !body.is_empty() {
        let _ = write!(request, "Content-Length: {}\r\n", body.len());
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    // It may answer before it has read all.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    (status, answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, it)| it.to_owned()))
}

#[test]
fn a_bad_policy_is_refused_with_its_line_and_key_by_check_and_serve() {
    let (_folder, path) = file("[[rule]]\nname = \"a\"\nrate = \"fast\"\n");
    for words in [&["policy", "check"][..], &["serve", "--bind", "127.0.0.1", "--policy"]] {
        let output = linerate(&[words, &[name(&path)]].concat());
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("policy.toml") && said.contains("line 3: rate: "), "{said}");
    }
    check_wrong_use(&["serve", "--policy", "x", "--open"], &["--policy", "--open"]);
}

#[test]
fn a_public_address_is_not_served_without_a_policy() {
    let output = linerate(&["serve", "--bind", "8.8.8.8"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("8.8.8.8 is a public address") && said.contains("--policy FILE"),
        "{said}"
    );
    // Asked for, it goes on, and fails because the address is not this host's.
    let said = stderr(&linerate(&["serve", "--bind", "8.8.8.8", "--open"]));
    assert!(!said.contains("public address"), "{said}");
}

#[test]
fn explain_names_the_rule_and_a_token_opens_what_is_closed_without() {
    let made = linerate(&["policy", "token", "--name", "noc", "--expires", "2999-01-31"]);
    let row = stdout(&made);
    let (_, secret) = stderr(&made)
        .trim_end()
        .rsplit_once(' ')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("a token");
    assert_eq!(secret.len(), 64);
    assert!(!row.contains(&secret), "only the hash is for the file");
    let rules = "[[rule]]\nname = \"known\"\ntoken = \"noc\"\n[[rule]]\nname = \"all\"\n\
                 rate = \"10M\"\ntime = \"5s\"\nstreams = 2\nprograms = [\"http\"]\n";
    let (_folder, path) = file(&format!("{row}{rules}"));
    let ask = |flags: &[&str]| {
        let words = ["policy", "explain", name(&path), "--from", "192.0.2.7"];
        let output = linerate(&[&words, flags].concat());
        (output.status.code(), stdout(&output))
    };
    assert_eq!(
        ask(&["--token", &secret, "--test", "udp", "--rate", "5G"]),
        (Some(0), "allowed (rule \"known\" decides)\n".to_owned())
    );
    let usual = ["--program", "http", "--rate", "10M", "--time", "5s", "--streams", "2"];
    assert_eq!(ask(&usual).0, Some(0));
    for (flags, why) in [
        (&["--program", "iperf3"][..], "no test by iperf3; allowed: http"),
        (&["--program", "http", "--time", "6s"], "6 s of sending; the limit is 5 s"),
        (&["--program", "http", "--time", "5s", "--streams", "3"], "3 streams; the limit is 2"),
        (&["--program", "http", "--time", "5s", "--rate", "11M"], "the limit is 10 Mbit/s"),
        (&["--token", "wrong", "--program", "http", "--time", "5s"], "name a rate"),
    ] {
        let (code, said) = ask(flags);
        assert!(code == Some(1) && said.contains(why), "{flags:?}: {said}");
    }
}

#[test]
fn a_policy_governs_tests_and_lists_and_a_new_one_replaces_it() {
    let text = "[[rule]]\nname = \"lan\"\ntime = \"3s\"\nrate = \"50M\"\n\
                bytes_per_client_per_day = \"1 MB\"\n";
    let (_folder, path) = file(text);
    let server = Server::start(&["--policy", name(&path), "--no-save", "--no-page"]);
    let target = format!("127.0.0.1:{}", server.port);
    let tcp = |flags: &[&str]| {
        let output = linerate(&[&["tcp", &target, "--no-save"], flags].concat());
        (output.status.code(), stderr(&output))
    };
    let (code, said) = tcp(&["-t", "1s"]);
    assert!(code != Some(0) && said.contains("the limit is 50 Mbit/s"), "{said}");
    let info = || http(&server.port, "GET /api/v1/server HTTP/1.1", b"").1;
    assert!(info().contains("\"bytes\":1000000,\"rate_bps\":50000000"), "{}", info());
    // 20 Mbit/s for a second are 2.5 MB, more than there are.
    let (code, said) = tcp(&["-t", "1s", "-b", "20M"]);
    assert!(code != Some(0) && said.contains("it may move 2.500 MB"), "{said}");
    let (code, said) = tcp(&["-n", "1000000", "-b", "20M"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = tcp(&["-n", "1000", "-b", "20M"]);
    assert!(code != Some(0) && said.contains("used up; it renews at 00:00 UTC"), "{said}");
    assert!(info().contains("\"bytes\":0,"), "{}", info());
    let (status, said) = http(
        &server.port,
        "POST /api/v1/runs HTTP/1.1",
        b"{\"streams\":1,\"seconds\":1,\"directions\":[\"down\"]}",
    );
    assert!(status == 403 && said.contains("used up"), "{said}");
    let (status, said) = http(&server.port, "GET /api/v1/results HTTP/1.1", b"");
    assert!(status == 403 && said.contains("no list of results"), "{said}");
    let hang_up = || {
        let id = server.child.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &id]).status();
        assert!(sent.expect("kill is there").success());
        clock::sleep(Duration::from_secs(2));
    };
    std::fs::write(&path, "nonsense").expect("it is written");
    hang_up();
    assert!(info().contains("\"rate_bps\":50000000"), "a bad one changes nothing");
    std::fs::write(&path, LAN).expect("it is written");
    hang_up();
    let end = clock::monotonic() + Duration::from_secs(20);
    while !info().contains("\"rate_bps\":null") {
        assert!(clock::monotonic() < end, "{}", info());
        clock::sleep(Duration::from_millis(100));
    }
    assert_eq!(tcp(&["-t", "1s"]).0, Some(0));
}

#[test]
fn every_bad_request_is_told_in_json_and_plain_words() {
    let server = Server::start(&["--no-save", "--no-page"]);
    let long = vec![b' '; 100_000];
    for (head, body, status, words) in [
        ("GET /api/v1/results?limit=abc HTTP/1.1", &b""[..], 400, "limit: a whole number"),
        ("POST /api/v1/runs HTTP/1.1", b"{", 400, "no JSON object"),
        ("POST /api/v1/runs HTTP/1.1", b"[]", 400, ""),
        ("POST /api/v1/runs HTTP/1.1", b"{\"streams\":\"4\"}", 400, "a whole number is expected"),
        ("POST /api/v1/runs HTTP/1.1", b"{\"x\":1}", 400, "x is not known here; known: streams"),
        ("POST /api/v1/runs HTTP/1.1", b"{\"streams\":-1}", 400, "a whole number is expected"),
        ("POST /api/v1/runs HTTP/1.1", b"{\"streams\":0}", 403, "a test has 1 to"),
        ("POST /api/v1/runs HTTP/1.1", b"\xff\xfe", 400, ""),
        ("POST /api/v1/runs HTTP/1.1", &long, 413, "64 KiB"),
        ("PUT /api/v1/runs HTTP/1.1", b"", 405, "not with this method"),
        ("GET /api/v1/nothing HTTP/1.1", b"", 404, "no such path"),
        ("GET /api/v1/results/%FF HTTP/1.1", b"", 400, ""),
        ("GET /api/v1/results/x HTTP/1.1", b"", 404, ""),
        ("DELETE /api/v1/runs/x?token=%FF HTTP/1.1", b"", 404, ""),
        ("GET /api/v1/echo HTTP/1.1", b"", 400, ""),
        ("GET /api/v1/server HTTP/1.1\r\nAuthorization: Basic x", b"", 400, "Bearer TOKEN"),
    ] {
        let (got, said) = http(&server.port, head, body);
        assert_eq!(got, status, "{head}: {said}");
        let json: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let say = json["say"].as_str().unwrap_or_default();
        assert!(
            json["error"].is_string() && !say.is_empty() && say.contains(words),
            "{head}: {said}"
        );
        for phrase in ["serde", "deserialize", "struct ", "u16", "invalid type"] {
            assert!(!said.contains(phrase), "{head}: {said}");
        }
    }
    assert_eq!(http(&server.port, "GET /api/v1/server HTTP/1.1", b"").0, 200, "it goes on");
}

#[test]
fn what_a_policy_keeps_is_told_and_the_rest_of_a_store_goes_but_what_was_asked_to_stay() {
    let (folder, path) = file(&format!("[keep]\ntime = \"90d\"\ncount = 2\n{LAN}"));
    let store = folder.path().join("results.db");
    let on = |words: &[&str]| {
        let output = linerate(&[words, &["--store", name(&store)]].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let flags = ["--policy", name(&path), "--store", name(&store), "--no-page"];
    let server = Server::start(&flags);
    let target = format!("127.0.0.1:{}", server.port);
    for _ in 0..2 {
        on(&["tcp", &target, "-t", "100ms", "-q"]);
    }
    let said = on(&["policy", "prune", name(&path), "--dry-run"]);
    // Both began within the hour.
    assert!(
        said.contains(": 0 results would go") && said.contains("for 90 d, 2 at most"),
        "{said}"
    );
    assert!(on(&["history", "--keep", "@-2"]).ends_with(" stays\n"));
    let json = on(&["history", "--json", "--tag", "keep=yes"]);
    assert_eq!(json.matches("\"id\"").count(), 1, "{json}");
    assert!(on(&["history", "--unkeep", "@-2"]).ends_with(" goes with the others\n"));
    assert!(on(&["policy", "prune", name(&path)]).contains(": 0 results deleted"));
    let told = |words: &[&str]| stdout(&linerate(&[&["policy"], words].concat()));
    assert!(told(&["check", name(&path)]).contains("; results are kept for 90 d, 2 at most\n"));
    let ask = ["explain", name(&path), "--from", "127.0.0.1", "--test", "results"];
    assert!(told(&ask).ends_with("results are kept: for 90 d, 2 at most\n"));
    let (_, info) = http(&server.port, "GET /api/v1/server HTTP/1.1", b"");
    let kept = "\"results_kept\":{\"seconds\":7776000,\"count\":2,\"bytes\":null}";
    assert!(info.contains(kept), "{info}");
    let (_folder, without) = file(LAN);
    check_wrong_use(&["policy", "prune", name(&without)], &["no [keep]"]);
}

#[test]
fn serve_takes_origins_of_pages_and_nothing_else_with_allow_origin() {
    for wrong in ["speed.example", "https://speed.example/page", "*"] {
        let output = linerate(&["serve", "--allow-origin", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains("an origin is https://HOST"), "{}", stderr(&output));
    }
}

#[test]
fn serve_takes_a_server_outside_with_outer_and_tells_its_page() {
    let (_folder, path) = file(LAN);
    let ask = |outer: &str| linerate(&["serve", "--policy", name(&path), "--outer", outer]);
    for (wrong, why) in [("https://out.example", "plain HTTP"), ("[2001:db8::1]", "IPv6")] {
        let output = ask(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    check_wrong_use(&["serve", "--outer", "out.example"], &["--policy"]);
    let server = Server::start(&["--policy", name(&path), "--outer", "Out.example"]);
    let (_, info) = http(&server.port, "GET /api/v1/server HTTP/1.1", b"");
    assert!(info.contains("\"outer\":\"out.example:5210\""), "{info}");
}

#[test]
fn a_token_opens_tcp_udp_a_test_and_the_path_back_and_nobody_else_gets_in() {
    // printf correct-horse | sha256sum
    let digest = "9dca666eb54730714630d1519264a7bf1eeaad00b8f2edc90d3ecbfad928d163";
    let row = format!("[[token]]\nname = \"noc\"\nsha256 = \"{digest}\"\n");
    let (_folder, path) = file(&format!("{row}[[rule]]\nname = \"noc\"\ntoken = \"noc\"\n"));
    let (_other, token) = file("correct-horse\n");
    let (_third, wrong) = file("battery-staple\n");
    let server = Server::start(&["--policy", name(&path), "--no-save", "--no-web"]);
    let target = format!("127.0.0.1:{}", server.port);
    let other = format!("{target},dscp=8");
    let run = |words: &[&str]| {
        let output = linerate(words);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    for words in [
        &["tcp", &target, "-t", "200ms"][..],
        &["tcp", &target, "-t", "200ms", "-R", "-P", "2", "--fast"],
        &["udp", &target, "-t", "200ms", "-b", "1M"],
        &["rrul", &target, "-t", "1s", "--idle", "100ms"],
        &["compare", "--tcp", "--rounds", "6", "--within", "4s", &target, &other],
        &["test", &target, "--within", "5s", "--time", "200ms", "--count", "5"],
    ] {
        let asked = |flags: &[&str]| run(&[words, &["--no-save"], flags].concat());
        let (code, _, said) = asked(&["--token-file", name(&token)]);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        if words[0] == "test" {
            continue;
        }
        let (code, _, said) = asked(&[]);
        assert_eq!(code, Some(4), "{words:?}: {said}");
        let reason = "no rule of this server's policy has clients of 127.0.0.1";
        assert!(said.contains(reason) && !said.contains("the token shown"), "{said}");
        let (code, _, said) = asked(&["--token-file", name(&wrong)]);
        assert_eq!(code, Some(4), "{words:?}: {said}");
        assert!(said.contains(reason) && said.contains("the token shown is not known"), "{said}");
    }
    // What is stored of it does not have the token.
    let (code, json, _) =
        run(&["tcp", &target, "-t", "100ms", "--no-save", "--json", "--token-file", name(&token)]);
    assert!(code == Some(0) && !json.contains("horse") && json.contains("\"plan\""), "{json}");
    let back = |flags: &[&str]| {
        let port = server.port.clone();
        let words = ["trace", "127.0.0.1", "-p", &port, "-c", "2", "--no-mtu", "--no-save"];
        run(&[&words[..], &["--no-paths", "--json"], flags].concat())
    };
    let (_, json, said) = back(&["--token-file", name(&token)]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    assert!(found["trace"]["back"]["hops"].is_array(), "{json} {said}");
    let (_, json, _) = back(&[]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    let refused = found["trace"]["back_refused"].as_str().unwrap_or_default();
    assert!(refused.contains("no rule of this server's policy"), "{json}");
}

#[test]
fn a_file_without_a_token_is_refused_before_anything_is_sent() {
    let (_folder, empty) = file("\n");
    let asked = ["tcp", "192.0.2.1", "--token-file"];
    check_wrong_use(&[&asked[..], &[name(&empty)]].concat(), &["policy.toml", "not one word"]);
    check_wrong_use(&[&asked[..], &["/none"]].concat(), &["read token /none"]);
    let via = [&asked[..], &[name(&empty), "--via", "iperf3"]].concat();
    check_wrong_use(&via, &["only servers of linerate know such tokens"]);
    let probed = ["compare", "192.0.2.1", "192.0.2.2", "--token-file", name(&empty)];
    check_wrong_use(&probed, &["only servers of TCP tests ask for one"]);
}
