//! `linerate udp` against `linerate serve` over loopback, both as a shell starts them: every flag
//! reaches the plan and the sockets, counts close, the exit codes are those of the manual. Rates
//! are not judged: the machine is busy with other tests.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Output, Stdio};

use crate::support::{Server, command, end_of, interrupt, linerate, stderr};
use serde_json::Value;

impl Server {
    /// Runs `linerate udp` against it, keeping nothing.
    fn udp(&self, flags: &[&str]) -> Output {
        udp(&[&["127.0.0.1", "--no-save", "--port", &self.port], flags].concat())
    }

    /// The record of a test that ends well.
    fn udp_record(&self, flags: &[&str]) -> Value {
        let output = self.udp(&[flags, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("--json prints one document")
    }
}

fn udp(arguments: &[&str]) -> Output {
    linerate(&[&["udp"], arguments].concat())
}

/// The value of a whole-test summary row.
fn value(record: &Value, metric: &str, direction: &str) -> f64 {
    let rows = record["summary"].as_array().expect("a summary");
    let row = rows.iter().find(|row| {
        row["metric"] == metric && row["direction"] == direction && row["flow"].is_null()
    });
    row.and_then(|row| row["value"].as_f64()).unwrap_or(f64::NAN)
}

/// Sent is received and lost, by the words of both ends, for every stream.
fn check_closed(record: &Value) {
    let flows = record["flows"].as_array().expect("flows");
    assert!(!flows.is_empty());
    for flow in flows {
        let (sender, receiver) =
            (&flow["sender"]["sent_datagrams"], &flow["receiver"]["received_datagrams"]);
        for (own, span) in [("count", "all"), ("measured", "measured")] {
            let tally = &receiver[span];
            let number = |value: &Value| value.as_u64().expect("a count");
            assert_eq!(number(&sender[own]), number(&tally["sent"]), "{flow}");
            let closed = number(&tally["received"]) + number(&tally["lost"]);
            assert_eq!(number(&tally["sent"]), closed, "{flow}");
            assert!(number(&tally["lost_here"]) <= number(&tally["lost"]), "{flow}");
        }
    }
}

#[test]
fn every_shaping_flag_reaches_the_plan_and_the_sockets() {
    let record = Server::start(&[]).udp_record(&[
        "--time=400ms",
        "--omit=100ms",
        "--interval=100ms",
        "--length=1000",
        "--window=128K",
        "--parallel=2",
        "--reverse",
        "--bitrate=8M",
        "--ipv4",
        "--bind=127.0.0.1",
        "--dscp=8",
        "--no-join",
        "--cpu=0",
        "--connect-timeout=2s",
        "--wait=1s",
    ]);
    let plan = &record["plan"];
    assert_eq!(plan["kind"], "udp");
    assert_eq!(plan["finish"]["time_ns"], 400_000_000);
    assert_eq!(plan["omit_ns"], 100_000_000);
    assert_eq!(plan["interval_ns"], 100_000_000);
    assert_eq!(plan["size_bytes"], 1000);
    assert_eq!(plan["window_bytes"], 131_072);
    assert_eq!(plan["streams"], 2);
    assert_eq!(plan["directions"], "down");
    assert_eq!(plan["pace_bps"], 8_000_000);
    assert_eq!(plan["family"], "v4");
    assert_eq!(plan["bind"], "127.0.0.1");
    assert_eq!(plan["dscp"], 8);
    assert_eq!(plan["joined"], false);
    assert_eq!(plan["cpu"], 0);
    assert_eq!(plan["connect_timeout_ns"], 2_000_000_000_u64);

    let flows = record["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert_eq!(flow["direction"], "down");
        assert_eq!(flow["sender"]["technique"], "sendmmsg");
        assert_eq!(flow["receiver"]["technique"], "recvmmsg");
        // The kernel doubles what is asked (socket(7)).
        assert_eq!(flow["receiver"]["rcvbuf_bytes"]["got"], 262_144);
        let received = &flow["receiver"]["received_datagrams"];
        assert!(received["all"]["received"].as_u64() > received["measured"]["received"].as_u64());
    }
    // The first thread is held to processor 0, the other to the next where there is one.
    assert_eq!(flows[0]["receiver"]["last_cpu"], 0);
    check_closed(&record);
}

#[test]
fn an_amount_arrives_in_whole_datagrams_in_both_directions_and_on_all_streams() {
    // 1,000,000 bytes are 1000 datagrams; 3 streams share them.
    let flags = ["--bytes=999001", "--length=1000", "--bidir", "--parallel=3", "--bitrate=40M"];
    let record = Server::start(&[]).udp_record(&flags);
    for direction in ["up", "down"] {
        assert_eq!(value(&record, "datagrams_sent", direction), 1000.0);
    }
    assert_eq!(record["flows"].as_array().map(Vec::len), Some(6));
    check_closed(&record);
    let record = Server::start(&[]).udp_record(&["--blocks=77", "--bitrate=10M", "--reverse"]);
    assert_eq!(value(&record, "datagrams_sent", "down"), 77.0);
    // The most of a packet of 1500 bytes: 1500 - 20 - 8.
    assert_eq!(record["plan"]["size_bytes"], 1472);
}

#[test]
fn the_shortest_and_the_longest_datagrams_travel() {
    let server = Server::start(&[]);
    for (length, count) in [("16", 400.0), ("65507", 40.0)] {
        let blocks = format!("--blocks={count}");
        for rate in ["--bitrate=100M", "--bitrate=0"] {
            let record = server.udp_record(&["--length", length, &blocks, rate]);
            assert_eq!(value(&record, "datagrams_sent", "up"), count, "{length} bytes");
            check_closed(&record);
        }
    }
}

#[test]
fn datagrams_that_are_handed_over_joined_are_counted_one_by_one_and_the_record_says_so() {
    // 34 datagrams of 500 bytes leave together at 400 Mbit/s: those of 340 µs.
    let flags = ["--blocks=20000", "--length=500", "--bitrate=400M"];
    let server = Server::start(&[]);
    let record = server.udp_record(&flags);
    let sender = &record["flows"][0]["sender"];
    assert_eq!(sender["technique"], "sendmmsg, joined");
    assert_eq!(sender["sent_datagrams"]["joined_max"], 34);
    assert_eq!(sender["sent_datagrams"]["pace"]["batch"], 34);
    let received = &record["flows"][0]["receiver"]["received_datagrams"];
    assert!(received["joined"].as_u64() > Some(0), "{received}");
    check_closed(&record);
    let codes: Vec<&Value> =
        record["caveats"].as_array().expect("a list").iter().map(|it| &it["code"]).collect();
    assert!(codes.contains(&&Value::from("uncut_datagrams")), "{codes:?}");
    assert_eq!(sender["sent_datagrams"]["pace"]["paced_by"], "user-space", "loopback has no fq");
    let record = server.udp_record(&[&flags[..], &["--take-singly"]].concat());
    let flow = &record["flows"][0];
    assert_eq!(record["plan"]["taken_singly"], true);
    assert_eq!(flow["sender"]["sent_datagrams"]["joined_max"], 34, "sent as before");
    assert_eq!(flow["receiver"]["received_datagrams"]["joined"], 0, "and taken one by one");
    assert_eq!(flow["receiver"]["technique"], "recvmmsg");
    check_closed(&record);
    let record = server.udp_record(&[&flags[..], &["--no-join"]].concat());
    let received = &record["flows"][0]["receiver"]["received_datagrams"];
    assert_eq!(received["joined"], 0);
    assert_eq!(record["flows"][0]["sender"]["sent_datagrams"]["joined"], 0);
    check_closed(&record);
}

#[test]
fn as_fast_as_possible_counts_close_whatever_is_lost() {
    let record = Server::start(&[]).udp_record(&["--bitrate=0", "--time=300ms", "--length=64"]);
    check_closed(&record);
    assert!(record["plan"]["pace_bps"].is_null());
    let sent = &record["flows"][0]["sender"]["sent_datagrams"];
    assert!(sent["held_ns"].as_u64().is_some() && sent["pace"].is_null(), "{sent}");
    assert!(value(&record, "datagrams_received", "up") > 0.0);
    assert!(value(&record, "busiest_ms_ratio", "up").is_nan(), "no pace was asked for");
}

#[test]
fn intervals_close_and_their_rows_add_up() {
    let flags = ["--time=500ms", "--interval=100ms", "--bitrate=20M", "--jsonl"];
    let output = Server::start(&[]).udp(&flags);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert_eq!(lines[0]["event"], "plan");
    let rows = lines.iter().filter(|line| line["event"] == "interval");
    let mut sums = [0_i64; 3];
    let mut count = 0;
    for row in rows {
        let datagrams = &row["data"]["datagrams"];
        let number = |key: &str| datagrams[key].as_i64().expect("a count");
        let names = ["sent", "received", "lost"];
        sums.iter_mut().zip(names).for_each(|(sum, name)| *sum += number(name));
        assert_eq!(sums[0], sums[1] + sums[2] + number("in_flight"), "{row}");
        count += 1;
    }
    assert!((4..=8).contains(&count), "{count} rows of 100 ms in 500 ms");
    let last = lines.last().expect("several lines");
    assert_eq!(last["event"], "record");
    check_closed(&last["data"]);
}

/// What was printed, without the places where lines are broken.
fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn people_get_lines_with_jitter_and_loss_and_a_table() {
    let server = Server::start(&[]);
    let output = server.udp(&["--time=1s", "--interval=100ms", "--bitrate=5M", "--verbose"]);
    let text = words(&output);
    for part in ["lost/sent", "jitter", "all up", "goodput", "busiest ms", "datagram per call"] {
        assert!(text.contains(part), "'{part}' is not in {text}");
    }
    let quiet = server.udp(&["--time=100ms", "--quiet"]);
    let text = String::from_utf8_lossy(&quiet.stdout).into_owned();
    assert!(
        text.contains("to 127.0.0.1, 0 of ") && text.contains("no ceiling (loopback)"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn above_16_streams_the_sum_alone_is_shown_unless_every_stream_is_asked_for() {
    let server = Server::start(&[]);
    let flags = ["--time=1s", "--interval=100ms", "--parallel=17", "--bitrate=500K"];
    for (further, single) in [(&[][..], false), (&["--verbose"][..], true)] {
        let output = server.udp(&[&flags[..], further].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = |begin: &str| text.lines().any(|it| it.trim_start().starts_with(begin));
        assert_eq!((lines("all up"), lines("16 up")), (true, single), "{text}");
        assert_eq!(text.contains("sum of 17"), single, "{text}");
    }
}

#[test]
fn a_result_is_named_tagged_stored_and_written_to_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let server = Server::start(&[]);
    let flags = ["udp", "127.0.0.1", "--port", &server.port, "--blocks=5", "--name=first"];
    let (store, file) = (at("db"), at("record.json"));
    let kept = ["--tag=site=b", "--store", &store, "--output", &file];
    let output = linerate(&[&flags[..], &kept].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let written = std::fs::read_to_string(&file).expect("the file was written");
    let written: Value = serde_json::from_str(&written).expect("as JSON");
    assert_eq!(written["tags"]["site"], "b");
    let listed = linerate(&["history", "--store", &store]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("first") && listed.contains("udp"), "{listed}");
}

#[test]
fn impossible_datagrams_are_wrong_use() {
    let server = Server::start(&[]);
    for length in ["15", "65508", "8G"] {
        let output = server.udp(&["--length", length]);
        assert_eq!(output.status.code(), Some(2), "{length}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}

#[test]
fn a_dead_port_exits_3_and_a_test_above_the_limits_4() {
    // Port 1 (tcpmux) of loopback is nobody's.
    let output = udp(&["127.0.0.1", "--port", "1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("linerate serve"), "{}", stderr(&output));
    let server = Server::start(&["--max-streams=2"]);
    let output = server.udp(&["--parallel=3"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("3 streams; the limit is 2"), "{}", stderr(&output));
}

/// A test of 30 s whose first interval has passed, and what it goes on to say.
fn begin_long_test(
    server: &Server,
    further: &[&str],
) -> (Child, impl Iterator<Item = Value> + use<>) {
    let mut child = command(&["udp", "127.0.0.1", "--port", &server.port])
        .args(["--time=30s", "--interval=100ms", "--bitrate=2M", "--jsonl", "--no-save"])
        .args(further)
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
fn an_interrupted_test_exits_130_and_its_record_closes() {
    let server = Server::start(&[]);
    for further in [&[][..], &["--reverse"]] {
        let (mut child, lines) = begin_long_test(&server, further);
        interrupt(&child);
        let last = lines.last().expect("the record comes last");
        assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(130));
        assert_eq!(last["data"]["status"], "interrupted");
        check_closed(&last["data"]);
    }
}

#[test]
fn a_server_that_dies_leaves_a_record_of_what_came_before_and_exit_code_3() {
    let mut server = Server::start(&[]);
    let (mut child, lines) = begin_long_test(&server, &[]);
    server.child.kill().expect("the server runs");
    let last = lines.last().expect("the record comes last");
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(3));
    assert_eq!(last["data"]["failure"]["fault"], "unreachable");
    assert_eq!(last["data"]["status"], "partial");
    assert!(value(&last["data"], "datagrams_received", "up") > 0.0);
}

/// Sends a signal by name.
fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_client_that_falls_silent_gives_its_place_back_within_five_seconds() {
    let server = Server::start(&[]);
    for further in [&[][..], &["--reverse"]] {
        let (mut child, _lines) = begin_long_test(&server, further);
        // Stopped, it keeps its connection and says nothing.
        signal(&child, "STOP");
        let begin = linerate_sys::clock::monotonic();
        let output = server.udp(&["--blocks=5", "--wait=20s"]);
        let waited = linerate_sys::clock::monotonic().duration_since(begin);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // 4 s of silence, the look of the waiting one every 0.5 s, and its own test, and twice as
        // much on a busy machine.
        assert!(waited.as_secs_f64() < 10.0, "{waited:?}");
        signal(&child, "CONT");
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// UDP ports of a process: the sockets among its descriptors, looked up in the kernel's table
/// (proc_net(5): the second field is the local address, the tenth the socket's number).
fn udp_ports(process: &Child) -> Vec<u16> {
    let directory = format!("/proc/{}/fd", process.id());
    let links = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let own: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = std::fs::read_to_string("/proc/net/udp").expect("Linux has it");
    let ports = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let socket = format!("socket:[{}]", fields.get(9)?);
        let port = u16::from_str_radix(fields.get(1)?.split_once(':')?.1, 16).ok()?;
        own.contains(&socket).then_some(port)
    });
    ports.collect()
}

#[test]
fn strays_on_the_ports_of_a_stream_change_nothing() {
    let server = Server::start(&[]);
    let flags = ["--time=1500ms", "--interval=100ms", "--bitrate=2M"];
    let mut child = command(&["udp", "127.0.0.1", "--port", &server.port, "--no-save"])
        .args(flags)
        .arg("--json")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Everything under the sun at every port that may be the test's, from another address.
    let stranger = UdpSocket::bind("127.0.0.9:0").expect("an address of loopback");
    let rude: [&[u8]; 5] = [&[], &[1], &[0xff; 15], &[0; 16], &[0xff; 1472]];
    while child.try_wait().expect("it is ours").is_none() {
        for port in [&server.child, &child].into_iter().flat_map(udp_ports) {
            for datagram in rude {
                let _ = stranger.send_to(datagram, ("127.0.0.1", port));
            }
        }
        linerate_sys::clock::sleep(std::time::Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(record["status"], "ok", "{}", record["failure"]);
    check_closed(&record);
    assert_eq!(value(&record, "datagrams_lost", "up"), 0.0);
}

#[test]
fn ipv6_is_used_when_asked() {
    if UdpSocket::bind("[::1]:0").is_err() {
        println!("skipped: this host has no IPv6 loopback");
        return;
    }
    let output = udp(&["::1", "--ipv6", "--port", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("[::1]:1"), "{}", stderr(&output));
}

#[test]
fn a_told_capacity_bounds_datagrams_and_an_assertion_is_held_against_them() {
    let server = Server::start(&[]);
    let fixed = ["udp", "127.0.0.1", "--port", &server.port, "--blocks=5", "--no-save", "--json"];
    let told = ["--capacity=100M", "--link=1g", "--assert=ceiling <= 98.2 Mbit/s and loss < 2"];
    let output = linerate(&[&fixed[..], &told].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
    // 1472 of 1500 bytes of an IP packet: 98.13 Mbit/s.
    let ceiling = record["ceiling"]["value"].as_f64().expect("it was told");
    assert!((ceiling / (100e6 * 1472.0 / 1500.0) - 1.0).abs() < 1e-9, "{ceiling}");
}
