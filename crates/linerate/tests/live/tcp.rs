//! `linerate tcp` against `linerate serve` over loopback, both as a shell starts them: every flag
//! reaches the plan and the sockets, the exit codes are those of the manual. Rates are not judged:
//! the machine is busy with other tests.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Output, Stdio};

use crate::support::{
    self, Server, command, end_of, ends_with, interrupt, linerate, served_port, stderr, stdout,
};
use serde_json::Value;

impl Server {
    /// Runs `linerate tcp` against it, keeping nothing.
    fn tcp(&self, flags: &[&str]) -> Output {
        tcp(&[&["127.0.0.1", "--no-save", "--port", &self.port], flags].concat())
    }

    /// The record of a test that ends well.
    fn record(&self, flags: &[&str]) -> Value {
        let output = self.tcp(&[flags, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("--json prints one document")
    }
}

fn tcp(arguments: &[&str]) -> Output {
    linerate(&[&["tcp"], arguments].concat())
}

/// The value of a whole-test summary row.
fn value(record: &Value, metric: &str, direction: &str) -> f64 {
    let rows = record["summary"].as_array().expect("a summary");
    let row = rows.iter().find(|row| {
        row["metric"] == metric && row["direction"] == direction && row["flow"].is_null()
    });
    row.and_then(|row| row["value"].as_f64()).unwrap_or(f64::NAN)
}

#[test]
fn every_shaping_flag_reaches_the_plan_and_the_sockets() {
    let record = Server::start(&[]).record(&[
        "--time=400ms",
        "--omit=100ms",
        "--interval=100ms",
        "--length=64K",
        "--window=128K",
        "--parallel=2",
        "--reverse",
        "--congestion=reno",
        "--set-mss=1000",
        "--no-delay",
        "--bitrate=80M",
        "--ipv4",
        "--bind=127.0.0.1",
        "--dscp=8",
        "--connect-timeout=2s",
        "--wait=1s",
    ]);
    let plan = &record["plan"];
    assert_eq!(plan["finish"]["time_ns"], 400_000_000);
    assert_eq!(plan["omit_ns"], 100_000_000);
    assert_eq!(plan["interval_ns"], 100_000_000);
    assert_eq!(plan["buffer_bytes"], 65_536);
    assert_eq!(plan["window_bytes"], 131_072);
    assert_eq!(plan["streams"], 2);
    assert_eq!(plan["directions"], "down");
    assert_eq!(plan["congestion_control"], "reno");
    assert_eq!(plan["mss_bytes"], 1000);
    assert_eq!(plan["nodelay"], true);
    assert_eq!(plan["pace_bps"], 80_000_000);
    assert_eq!(plan["family"], "v4");
    assert_eq!(plan["bind"], "127.0.0.1");
    assert_eq!(plan["dscp"], 8);
    assert_eq!(plan["connect_timeout_ns"], 2_000_000_000_u64);

    let flows = record["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert_eq!(flow["direction"], "down");
        let sender = &flow["sender"];
        assert_eq!(sender["congestion_control"]["got"], "reno");
        assert_eq!(sender["nodelay"], true);
        // The kernel doubles what is asked (socket(7)).
        assert_eq!(flow["receiver"]["rcvbuf_bytes"]["got"], 262_144);
        // The segment size counts 12 bytes of timestamps in (RFC 9293 §3.7.1, RFC 6691).
        assert!([988, 1000].contains(&sender["mss_bytes"]["got"].as_i64().unwrap_or(0)));
    }
}

#[test]
fn an_amount_in_bytes_arrives_to_the_byte_in_both_directions() {
    let record = Server::start(&[]).record(&["--bytes", "1M", "--bidir", "--zerocopy"]);
    assert_eq!(record["plan"]["zero_copy"], true);
    for direction in ["up", "down"] {
        assert_eq!(value(&record, "payload_bytes", direction), 1_048_576.0);
    }
}

#[test]
fn the_flags_of_moving_data_reach_the_plan_and_both_ends() {
    let server = Server::start(&[]);
    let flags = ["--bytes=1M", "--send-with=vmsplice", "--receive-with=splice", "--affinity=0,0"];
    let record = server.record(&flags);
    let means = &record["plan"]["means"];
    assert_eq!(
        (&means["send_with"], &means["receive_with"]),
        (&"vmsplice".into(), &"splice".into())
    );
    let flow = &record["flows"][0];
    assert_eq!(flow["sender"]["technique"], "vmsplice");
    assert_eq!(flow["receiver"]["contents"], "untouched");
    for end in ["sender", "receiver"] {
        assert_eq!(flow[end]["pinned_cpu"], means["client_cpus"][0]);
    }
    assert_eq!(value(&record, "payload_bytes", "up"), 1_048_576.0);

    let record = server.record(&["--bytes=1M", "--fast", "-P", "2"]);
    assert_eq!(record["plan"]["fast"], true);
    let trials = record["trials"].as_array().expect("trials");
    assert_eq!(trials.iter().filter(|trial| trial["chosen"] == true).count(), 1);

    let record = server.record(&["--bytes=1M", "--verify", "--mptcp", "--reverse"]);
    let receiver = &record["flows"][0]["receiver"];
    assert_eq!(receiver["verified"]["bytes"], 1_048_576);
    assert_eq!(receiver["verified"]["wrong_bytes"], 0);
    assert!(receiver["mptcp"]["used"].is_boolean());
    assert!(record["plan"]["means"]["verify_seed"].is_u64());

    for wrong in [
        &["--fast", "--verify"][..],
        &["--fast", "--via", "iperf3"],
        &["--verify", "--send-with", "sendfile"],
        &["--mptcp", "--via", "iperf2"],
        &["--affinity", "1-0"],
        &["--receive-with", "mmap"],
    ] {
        assert_eq!(server.tcp(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_receiver_that_reads_at_a_pace_gets_no_more() {
    // 1 MB at 8 Mbit/s takes a second; the first read of 10 ms is free.
    let flags = ["--read-pace", "8M", "--bytes", "1000000"];
    let record = Server::start(&[]).record(&flags);
    assert_eq!(record["plan"]["read_pace_bps"], 8_000_000);
    let rate = value(&record, "goodput_bps", "up");
    assert!((4e6..=8.2e6).contains(&rate), "{rate} bit/s");
}

#[test]
fn a_flow_in_the_background_and_small_reads_are_in_the_record_and_beside_the_result() {
    let flags = ["--bytes", "4375000", "--background", "20M", "--read-size", "4K"];
    let record = Server::start(&[]).record(&[&flags[..], &["--bitrate", "50M"]].concat());
    assert_eq!(record["plan"]["background_bps"], 20_000_000);
    assert_eq!(record["plan"]["read_bytes"], 4096);
    let rate = value(&record, "background_bps", "down");
    // A busy machine makes it late, and nothing makes it much faster.
    assert!((0.4..=1.2).contains(&(rate / 20e6)), "{rate} bit/s");
    assert_eq!(record["flows"].as_array().map(Vec::len), Some(1));
    assert_eq!(record["background"]["direction"], "down");
    // 4,375,000 bytes in reads of 4096 at most: 1068.1.
    let calls = record["flows"][0]["receiver"]["io_calls"].as_u64();
    assert!(calls.is_some_and(|calls| calls >= 1069), "{calls:?}");
    assert!(value(&record, "return_segments", "up") > 0.0);
}

/// When each probe of a kind was sent, from the test's start.
fn sent_ns(probes: &Value) -> Vec<i64> {
    serde_json::from_value(probes["sent_ns"].clone()).expect("a list of times")
}

#[test]
fn probes_go_beside_the_load_with_a_class_of_their_own_unless_they_are_off() {
    let server = Server::start(&[]);
    let record = server.record(&["-t", "1", "-b", "50M", "--probes=100", "--probe-dscp=46"]);
    let plan = &record["plan"]["probes"];
    assert_eq!((&plan["interval_ns"], &plan["dscp"]), (&10_000_000.into(), &46.into()));
    let probes = &record["probes"];
    assert_eq!((&probes["transport"], &probes["dscp"]), (&"udp".into(), &46.into()));
    assert_eq!((&probes["silent"], &probes["phases"][1]["phase"]), (&Value::Null, &"up".into()));
    let sent = sent_ns(probes);
    assert_eq!(probes["rtt_ns"].as_array().map(Vec::len), Some(sent.len()));
    let idle = sent.iter().filter(|at| **at < 0).count();
    assert!(idle >= 20 && sent.len() > idle, "{idle} of {}", sent.len());
    assert!(value(&record, "delay_loaded_ns", "up") > 0.0);
    assert!(value(&record, "responsiveness_rpm", "up") > 0.0);

    let record = server.record(&["-t", "300ms", "-b", "50M", "--probe-dscp=46,0"]);
    let other = &record["probes_beside"][0];
    assert_eq!((&record["probes"]["dscp"], &other["dscp"]), (&46.into(), &0.into()));
    assert_eq!((&other["silent"], &other["phases"][1]["phase"]), (&Value::Null, &"up".into()));
    assert_eq!(record["plan"]["probes"]["interval_ns"], 40_000_000, "50 a second in all");

    let record = server.record(&["-t", "300ms", "-b", "50M", "--probe-ecn", "--probe-dscp=10"]);
    let first = &record["probes"];
    assert_eq!((&first["ecn"], &first["ecn_there"][25]), (&0.into(), &0.into()));
    for (kind, field) in [(0, 2), (1, 1)] {
        // Nothing marks or clears on loopback, neither there nor back.
        let probes = &record["probes_beside"][kind];
        assert_eq!((&probes["dscp"], &probes["ecn"]), (&10.into(), &field.into()));
        for way in ["ecn_there", "ecn_back"] {
            let seen = probes[way].as_array().expect("a column");
            assert!(!seen.is_empty() && seen.iter().all(|it| *it == field), "{way} {seen:?}");
        }
    }

    let record = server.record(&["-t", "600ms", "-b", "50M", "-i", "100ms", "--rpm"]);
    let new = &record["probes_beside"][0];
    assert_eq!((&new["transport"], &new["silent"]), (&"tcp".into(), &Value::Null));
    let (count, ran) = (new["rtt_ns"].as_array().map_or(0, Vec::len), sent_ns(new));
    let beside = ran.get(5..).expect("5 before the load");
    let apart = |pair: &[i64]| pair[1] - pair[0] >= 100_000_000;
    assert!(count == ran.len() && beside.len() >= 3, "{count} of {ran:?}");
    assert!(beside.windows(2).all(apart), "10 a second at most: {ran:?}");
    for metric in ["delay_handshake_ns", "responsiveness_new_rpm", "responsiveness_loaded_rpm"] {
        let rows = record["summary"].as_array().expect("a summary");
        assert!(rows.iter().any(|row| row["metric"] == metric), "{metric}");
    }

    let record = server.record(&["-t", "200ms", "--probes=off"]);
    assert_eq!((&record["plan"]["probes"], &record["probes"]), (&Value::Null, &Value::Null));
    assert!(value(&record, "delay_loaded_ns", "up").is_nan());
}

#[test]
fn an_amount_in_buffers_is_their_number_times_their_length() {
    let record = Server::start(&[]).record(&["--blocks", "10", "--length", "1000"]);
    assert_eq!(value(&record, "payload_bytes", "up"), 10_000.0);
}

#[test]
fn lines_of_json_end_with_the_record_and_a_file_holds_the_same() {
    let file = tempfile::NamedTempFile::new().expect("a file for the record");
    let path = file.path().to_string_lossy().into_owned();
    let flags = ["--bytes=64K", "--jsonl", "--name=first", "--tag=site=b", "--output", &path];
    let output = Server::start(&[]).tcp(&flags);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert_eq!(lines[0]["event"], "plan");
    let last = lines.last().expect("several lines");
    assert_eq!(last["event"], "record");
    assert_eq!(last["data"]["name"], "first");
    assert_eq!(last["data"]["tags"]["site"], "b");
    let stored = std::fs::read_to_string(&path).expect("the file was written");
    let stored: Value = serde_json::from_str(&stored).expect("as JSON");
    assert_eq!(stored, last["data"]);
}

#[test]
fn a_result_is_kept_in_the_store_that_is_named_unless_told_otherwise() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let server = Server::start(&[]);
    let flags = ["127.0.0.1", "--port", &server.port, "--bytes=1K"];
    let answers =
        [&["--name=kept", "--store", &store][..], &["--no-save", "--name=lost"]].map(|further| {
            let mut tcp = command(&[&["tcp"], &flags[..], further, &["-q"]].concat());
            let output = tcp.env("LINERATE_STORE", &store).output().expect("the program starts");
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            stdout(&output)
        });
    let listed = ends_with(0, &["history", "--store", &store]);
    assert!(listed.contains("kept") && !listed.contains("lost"), "{listed}");
    // Only what is kept has an identifier to find it by.
    let id = listed.split_whitespace().last().expect("an identifier");
    assert!(answers[0].trim_end().ends_with(id), "{} {id}", answers[0]);
    let last = answers[1].trim_end().rsplit(" \u{b7} ").next().expect("words");
    assert!(last.starts_with("good") || last.starts_with("doubtful"), "{last}");
}

#[test]
fn quiet_prints_the_result_without_the_lines_of_intervals() {
    let server = Server::start(&[]);
    let count = |flags: &[&str]| {
        let output = server.tcp(&[&["--time=1s", "--interval=100ms"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).lines().count() + stderr(&output).lines().count()
    };
    assert!(count(&["--quiet"]) < count(&[]));
}

#[test]
fn above_16_streams_the_sum_alone_is_shown_unless_every_stream_is_asked_for() {
    let server = Server::start(&[]);
    let lines = |flags: &[&str]| -> (usize, usize) {
        let output = server.tcp(&[&["--time=1s", "--interval=100ms"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let count =
            |begin: &str| text.lines().filter(|line| line.trim_start().starts_with(begin)).count();
        (count("all up"), count("16 up"))
    };
    let (sums, singles) = lines(&["--parallel=17"]);
    assert!(sums >= 1 && singles == 0, "{sums} sums, {singles} lines of the last stream");
    let (sums, singles) = lines(&["--parallel=17", "--verbose"]);
    assert!(sums >= 1 && singles >= 1, "{sums} sums, {singles} lines of the last stream");
    let output = server.tcp(&["--parallel=17", "--bytes=2M", "--verbose"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in ["slowest (", "fastest (", "sum of 17"] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn the_text_says_that_no_link_bounds_loopback_and_how_near_the_pace_is() {
    let output = Server::start(&[]).tcp(&["--time=300ms", "--bitrate=8M", "--verbose"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("no ceiling by a link: lo is loopback"), "{text}");
    assert!(text.contains("expected at most 8 Mbit/s by the pace: "), "{text}");
    assert!(text.contains("no ceiling (loopback)"), "{text}");
}

#[test]
fn a_narrow_terminal_gets_a_narrow_table_that_says_what_it_left_out() {
    let server = Server::start(&[]);
    let flags = ["tcp", "127.0.0.1", "--no-save", "--port", &server.port, "--bytes=64K", "-v"];
    let output = command(&flags).env("COLUMNS", "80").output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, table) = text.split_once("client to server\n").expect("its heading");
    let width = table.lines().take(3).map(|line| line.chars().count()).max();
    assert!(width.is_some_and(|width| width <= 80), "{text}");
    assert!(table.contains("left out at this width: "), "{text}");
}

#[test]
fn a_refused_connection_exits_3_and_says_what_to_start() {
    // Port 1 (tcpmux) of loopback is nobody's.
    let output = tcp(&["127.0.0.1", "--port", "1"]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty(), "no table of nothing");
    for part in ["connect", "127.0.0.1:1", "refused", "linerate serve"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn an_unknown_host_exits_2_and_names_it() {
    // RFC 6761 §6.4: names under .invalid never resolve.
    let output = tcp(&["no-such-host.invalid"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-host.invalid"));
}

#[test]
fn a_test_above_the_limits_of_the_server_exits_4_and_names_the_limit() {
    let server = Server::start(&["--max-streams=2", "--max-duration=1s", "--max-tests=1"]);
    let refused = |flags: &[&str], limit: &str| {
        let output = server.tcp(flags);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains(limit), "{}", stderr(&output));
    };
    refused(&["--parallel=3", "--time=100ms"], "2");
    refused(&["--time=5s"], "1 s");
    assert_eq!(server.tcp(&["--time=100ms"]).status.code(), Some(0), "and goes on serving");
}

#[test]
fn a_server_of_one_test_ends_after_it() {
    let mut server = Server::start(&["--one-off"]);
    assert_eq!(server.tcp(&["--bytes=1K"]).status.code(), Some(0));
    let status = end_of(&mut server.child).expect("it ends in time");
    assert_eq!(status.code(), Some(0));
}

/// A test of 30 s whose first interval has passed, and what it goes on to say.
fn begin_long_test(server: &Server) -> (Child, impl Iterator<Item = Value> + use<>) {
    let mut child = command(&["tcp", "127.0.0.1", "--port", &server.port])
        .args(["--time=30s", "--interval=100ms", "--bitrate=10M", "--jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let mut lines = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .map(|line| serde_json::from_str::<Value>(&line).expect("one object a line"));
    let begun = lines.any(|line| line["event"] == "interval");
    assert!(begun, "an interval passed");
    (child, lines)
}

#[test]
fn a_busy_server_is_told_from_a_dead_one_and_wait_waits_for_it() {
    let server = Server::start(&[]);
    let (mut first, _lines) = begin_long_test(&server);
    let output = server.tcp(&["--bytes=1K"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let _ = first.kill();
    let _ = first.wait();
    let output = server.tcp(&["--bytes=1K", "--wait=20s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn an_interrupted_test_exits_130_and_its_record_keeps_what_was_measured() {
    let server = Server::start(&[]);
    let (mut child, lines) = begin_long_test(&server);
    interrupt(&child);
    let last = lines.last().expect("the record comes last");
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(130));
    assert_eq!(last["event"], "record");
    assert_eq!(last["data"]["status"], "interrupted");
    assert!(value(&last["data"], "payload_bytes", "up") > 0.0);
}

#[test]
fn a_server_that_dies_leaves_a_record_of_what_came_before_and_exit_code_3() {
    let mut server = Server::start(&[]);
    let (mut child, lines) = begin_long_test(&server);
    server.child.kill().expect("the server runs");
    let last = lines.last().expect("the record comes last");
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(3));
    assert_eq!(last["event"], "record");
    assert_eq!(last["data"]["failure"]["fault"], "unreachable");
    assert!(!last["data"]["series"].as_array().expect("series").is_empty());
}

#[test]
fn ipv6_is_used_when_asked() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this host has no IPv6 loopback");
        return;
    }
    let output = tcp(&["::1", "--ipv6", "--port", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("[::1]:1"), "{}", stderr(&output));
}

/// What a server says on standard error after it serves until it ends with its first test.
fn logged_by(flags: &[&str]) -> String {
    let mut serve = command(&["serve", "-p", "0", "-B", "127.0.0.1", "--foreign", "none", "-1"]);
    let mut child = serve.args(flags).stderr(Stdio::piped()).spawn().expect("it starts");
    let pipe = child.stderr.take().expect("standard error is a pipe");
    let mut lines = BufReader::new(pipe).lines();
    let port = served_port(&mut lines);
    ends_with(0, &["tcp", "127.0.0.1", "--port", &port, "--bytes=1K", "--no-save"]);
    let rest: String = lines.map(|line| line.expect("what it logs") + "\n").collect();
    assert!(end_of(&mut child).is_some_and(|end| end.success()), "{rest}");
    rest
}

#[test]
fn serve_logs_tests_and_with_log_level_debug_its_decisions() {
    let lines = |log: &str, part: &str| log.lines().filter(|line| line.contains(part)).count();
    let usual = logged_by(&[]);
    assert_eq!((lines(&usual, " tcp up: "), lines(&usual, "debug:")), (1, 0), "{usual}");
    let debug = logged_by(&["--log-level", "debug"]);
    assert_eq!((lines(&debug, " tcp up: "), lines(&debug, "admitted with 1 streams")), (1, 1));
    // The control connection and its stream.
    assert_eq!(lines(&debug, " connected"), 2, "{debug}");
    assert_eq!(lines(&debug, "trace:"), 0, "{debug}");
    let errors = logged_by(&["--log-level", "error"]);
    assert_eq!(lines(&errors, " tcp up: "), 0, "{errors}");
}

/// The first line of what the port of a server answers to a request of HTTP.
fn answered_by(flags: &[&str], path: &str) -> String {
    let server = Server::start(flags);
    let port: u16 = server.port.parse().expect("a port");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it is open");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[test]
#[cfg(feature = "web")]
fn serve_answers_a_browser_on_its_port_unless_it_is_told_not_to() {
    let (api, ok) = ("/api/v1/server", "HTTP/1.1 200 OK");
    assert_eq!((answered_by(&[], "/"), answered_by(&[], api)), (ok.to_owned(), ok.to_owned()));
    let no_page = answered_by(&["--no-page", "--no-save"], "/");
    assert_eq!(no_page, "HTTP/1.1 404 Not Found");
    assert_eq!(answered_by(&["--no-page", "--no-save"], api), ok);
    assert!(!answered_by(&["--no-web"], api).starts_with("HTTP/"));
}

#[test]
fn serve_logs_json_for_programs() {
    let log = logged_by(&["--log", "json"]);
    let last = log.lines().last().expect("a line of the test");
    let object: Value = serde_json::from_str(last).expect("a JSON object");
    assert_eq!(object["level"], "info");
    assert!(object["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{last}");
    let way = &object["ways"][0];
    assert_eq!((&way["direction"], &way["bytes"]), (&"up".into(), &1024.into()), "{last}");
}

/// Loopback's packets of 65,535 bytes with headers of 52 on Ethernet: 65,483 of 65,573.
const LOOPBACK_SHARE: f64 = 65_483.0 / 65_573.0;

#[test]
fn the_ceiling_can_be_told_and_is_told_by_whom() {
    let server = Server::start(&[]);
    let ceiling = |record: &Value| record["ceiling"]["value"].as_f64().expect("it was told");
    let link = server.record(&["--bytes=1M", "--link=10g"]);
    assert!((ceiling(&link) / (1e10 * LOOPBACK_SHARE) - 1.0).abs() < 1e-3, "{}", link["ceiling"]);
    assert_eq!(link["ceiling"]["inputs"][0]["source"], "10g, as told by --link");
    assert_eq!(link["plan"]["known"]["link"], "10g");
    let capacity = server.record(&["--bytes=1M", "--capacity=5G"]);
    let inputs = &capacity["ceiling"]["inputs"];
    let source = inputs[0]["source"].as_str().expect("a source");
    assert_eq!(source, "capacity for IP packets, as told by --capacity");
    let told = capacity["ceiling"]["layers"].as_array().expect("layers");
    assert_eq!(
        told.iter()
            .filter(|at| at["layer"] == "ip")
            .map(|at| at["bps"].as_f64())
            .collect::<Vec<_>>(),
        [Some(5e9)]
    );
    let row = |metric: &str, stat: &str| {
        let rows = link["summary"].as_array().expect("a summary").iter();
        let mut rows = rows.filter(|row| row["metric"] == metric && row["stat"] == stat);
        rows.next().and_then(|row| row["value"].as_f64())
    };
    assert!(row("idle_rtt_ns", "min").is_some_and(|ns| ns > 0.0), "{}", link["summary"]);
    assert!(row("loaded_rtt_ns", "p50").is_some_and(|ns| ns > 0.0), "{}", link["summary"]);
    support::check_wrong_use(&["tcp", "127.0.0.1", "--link=oc13"], &["--link", "near it: oc1"]);
}

#[test]
fn an_assertion_decides_the_exit_code_and_says_both_values() {
    let server = Server::start(&[]);
    let met = server.tcp(&["--bytes=1M", "--assert=goodput > 1 kbit/s and idle_rtt < 10 s"]);
    assert_eq!(met.status.code(), Some(0), "{}", stderr(&met));
    let said = stdout(&met);
    assert!(said.contains("assertion met up: goodput > 1 kbit/s"), "{said}");
    let flags = ["--bytes=1M", "--assert=goodput < 1 kbit/s", "--assert=goodput >= 0.9 * ceiling"];
    let not_met = server.tcp(&[&flags[..], &["--json"]].concat());
    assert_eq!(not_met.status.code(), Some(7), "{}", stderr(&not_met));
    let said = stderr(&not_met);
    assert_eq!(said.matches("assertion NOT met up").count(), 2, "{said}");
    assert!(said.contains("the ceiling is not known: lo is loopback"), "{said}");
    assert!(serde_json::from_slice::<Value>(&not_met.stdout).is_ok(), "one document");
    support::check_wrong_use(&["tcp", "127.0.0.1", "--assert=goodput"], &["compares nothing"]);
}

#[test]
fn a_host_of_the_configuration_file_has_its_address_port_link_and_labels() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.toml");
    let text = format!(
        "[hosts.b]\naddress = \"127.0.0.1\"\nport = {}\nlink = \"1g\"\ntags = {{ site = \"x\" }}\n",
        server.port
    );
    std::fs::write(&path, text).expect("room");
    let of = |arguments: &[&str]| {
        command(arguments).env("LINERATE_CONFIG", &path).output().expect("the program starts")
    };
    let output = of(&["tcp", "b", "--bytes=1M", "--no-save", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(record["plan"]["profile"], "b");
    assert_eq!(record["plan"]["host"], "127.0.0.1");
    assert_eq!(record["tags"]["site"], "x");
    let source = record["ceiling"]["inputs"][0]["source"].as_str().expect("a source");
    assert!(source.starts_with("1g, as told by hosts.b of "), "{source}");
    std::fs::write(&path, "[hosts.b]\nadress = \"127.0.0.1\"\n").expect("room");
    let output = of(&["tcp", "b"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("line 2: unknown key adress; address is near it"));
}
