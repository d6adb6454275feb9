//! The flags that people use: each acts, or is refused in a line that says why.

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::peer::{Peer, has_iperf3, json};
use crate::support::{command, end_of, free_port, linerate, stderr, stdout, wait_until_listening};

#[test]
fn every_flag_of_a_client_reaches_the_test() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    let document = json(&server.asked(&[
        "--json",
        "--time=1",
        "--omit=2",
        "--interval=0.5",
        "--length=64K",
        "--window=128K",
        "--parallel=2",
        "--reverse",
        "--congestion=reno",
        "--set-mss=1000",
        "--no-delay",
        "--bitrate=20M",
        "--version4",
        "--bind=127.0.0.1",
        "--dscp=cs1",
        "--zerocopy",
        "--connect-timeout=2000",
        "--title=a title",
        "--extra-data=more",
        "--get-server-output",
        "--forceflush",
    ]));
    let start = &document["start"]["test_start"];
    let expected = [
        ("num_streams", 2),
        ("blksize", 65_536),
        ("omit", 2),
        ("duration", 1),
        ("reverse", 1),
        ("tos", 32),
        ("target_bitrate", 20_000_000),
    ];
    for (key, value) in expected {
        assert_eq!(start[key], value, "{key}");
    }
    assert_eq!(document["title"], "a title");
    assert_eq!(document["extra_data"], "more");
    assert_eq!(document["start"]["sock_bufsize"], 131_072);
    assert_eq!(document["end"]["sender_tcp_congestion"], "reno");
    let said = document["server_output_text"].as_str().expect("the server's lines");
    assert!(said.contains("(omitted)"), "{said}");
    let intervals = document["intervals"].as_array().expect("intervals");
    assert_eq!(intervals[0]["streams"].as_array().map(Vec::len), Some(2));

    let output = server.asked(&["--bytes=1M", "--tos=0x20", "--json-stream", "--bidir"]);
    let events: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a document a line"))
        .collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"start"), Some(&"end")));
    let end = &events.last().expect("an end")["data"];
    assert_eq!(end["sum_sent"]["bytes"], 1_048_576);
    let output = server.asked(&["--blockcount=10", "--verbose", "--format=k", "--interval=0"]);
    let said = stdout(&output);
    assert!(said.contains("Cookie: ") && said.contains("Kbits/sec"), "{said}");
    assert!(said.contains("snd_tcp_congestion"), "{said}");
}

#[test]
fn bursts_are_kept_by_both_ends_and_their_sizes_checked() {
    let server = Peer::personality(&[]);
    for flags in [
        &["-b", "8M/10", "-k", "50", "-l", "1000"][..],
        &["-b", "8M/10", "-k", "50", "-l", "1000", "-R"],
        &["-b", "8M/10", "-k", "50", "-l", "1000", "-u"],
        &["-b", "8M/10", "-k", "50", "-l", "1000", "-u", "-R"],
    ] {
        let begin = linerate_sys::clock::monotonic();
        let document = json(&server.asked(&[flags, &["-J"]].concat()));
        let took = linerate_sys::clock::monotonic().duration_since(begin);
        assert_eq!(document["end"]["sum"]["packets"].as_u64().unwrap_or(50), 50);
        // Five bursts of 10 ms, of which the first leaves at once.
        assert!(took > Duration::from_millis(35), "{flags:?}: {took:?}");
    }
    let output = server.asked(&["-b", "8M/1001"]);
    assert!(stderr(&output).contains("invalid burst count"), "{}", stderr(&output));
    if has_iperf3() {
        let output = server.asked_by_iperf3(&["-b", "8M/10", "-k", "50", "-l", "1000"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn lines_carry_the_time_and_a_title_and_a_silent_server_ends_the_test() {
    let server = Peer::personality(&[]);
    let output = server.asked(&[
        "-n100K",
        "--timestamps=%s ",
        "--title=name",
        "--affinity=0",
        "--cntl-ka=10/2/3",
        "--repeating-payload",
        "--debug",
    ]);
    let said = stdout(&output);
    assert!(said.contains("Cookie: "), "{said}");
    for line in said.lines() {
        let (seconds, rest) = line.split_once(' ').expect("a time and a title");
        assert!(seconds.parse::<u64>().is_ok() && rest.starts_with("name:  "), "{line}");
    }
    let said = stdout(&server.asked(&["-n100K", "--timestamps"]));
    assert!(said.lines().all(|line| line.contains(" 20")), "{said}");
    let output = server.asked(&["--timestamps=%!"]);
    assert!(stderr(&output).contains("not a format of strftime"), "{}", stderr(&output));
    let output = server.asked(&["--affinity=1000"]);
    assert!(stderr(&output).contains("unable to set CPU affinity"), "{}", stderr(&output));

    // A server that accepts everything and sends nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port().to_string();
    let mute = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().expect("a control connection");
        control.write_all(&[9, 10]).expect("parameters, streams");
        let (data, _) = listener.accept().expect("a stream");
        control.write_all(&[1, 2]).expect("start, running");
        let _ = control.read_to_end(&mut Vec::new());
        drop(data);
    });
    let flags = ["iperf3", "-c", "127.0.0.1", "-R", "-t60", "--rcv-timeout=300", "-p", &port];
    let output = linerate(&flags);
    assert!(stderr(&output).contains("idle timeout for receiving data"), "{}", stderr(&output));
    mute.join().expect("no panic");
}

#[test]
fn a_server_goes_into_the_background_and_ends_when_nobody_comes() {
    let folder = tempfile::tempdir().expect("a directory");
    let (pid, port) = (folder.path().join("pid"), free_port());
    let pid_path = pid.to_string_lossy();
    let flags =
        ["iperf3", "-s", "-p", &port, "-B", "127.0.0.1", "--daemon", "--pidfile", &pid_path];
    let output = linerate(&[&flags[..], &["--one-off", "--server-max-duration=1"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    wait_until_listening(&port);
    let text = std::fs::read_to_string(&pid).expect("the number was written");
    assert!(text.ends_with('\0') && text.trim_end_matches('\0').parse::<u32>().is_ok(), "{text}");
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "2"]);
    let said = stderr(&output);
    assert!(said.contains("exceeds the server's maximum permitted limit"), "{said}");
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-n", "1K"]);
    assert!(output.status.success(), "{}", stderr(&output));

    let mut server = command(&["iperf3", "-s", "-1", "-p", &free_port(), "--idle-timeout=1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    assert_eq!(end_of(&mut server).and_then(|status| status.code()), Some(0));
}

#[test]
fn clients_of_iperf3_wait_in_the_order_in_which_they_came() {
    let server = Peer::serve(&["--queue-time", "60s"]);
    let client = |bytes: &str| {
        let flags = ["iperf3", "-c", "127.0.0.1", "-p", &server.port, "-n", bytes, "-l", "1000"];
        let mut client = command(&flags);
        client.args(["-b", "800K", "-J"]).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    // 0.5 s each.
    let clients: Vec<Child> = (0..4).map(|_| client("50000")).collect();
    for client in clients {
        let output = client.wait_with_output().expect("ours");
        assert_eq!(json(&output)["end"]["sum_received"]["bytes"], 50_000);
    }
}
