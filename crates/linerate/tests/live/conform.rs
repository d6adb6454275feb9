//! `linerate conform` as a program: contracts held against captures and live traffic.
//!
//! Captures are made here byte by byte, so that lengths and times are known. The live tests need
//! the privilege to make network namespaces; they say so and pass when it is absent.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_engine::lab::Lab;
use linerate_sys::netlink::{RouteSocket, Tbf};
use linerate_sys::{clock, userns};
use serde_json::Value;

use crate::support::{
    self, check_wrong_use, end_of, ends_with, interrupt, linerate, stderr, stdout,
};

/// A capture with nanoseconds in the order of this host (pcap, magic a1b23c4d, link type 101: raw
/// IP). Times in ns; lengths of IPv4 packets, of which only the headers are captured.
fn capture(packets: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        bytes.extend(word.to_ne_bytes());
    }
    for (at_ns, length) in packets {
        let header = udp_header(*length);
        let seconds = u32::try_from(at_ns / 1_000_000_000).unwrap();
        let below = u32::try_from(at_ns % 1_000_000_000).unwrap();
        for word in [seconds, below, header.len() as u32, *length] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(header);
    }
    bytes
}

/// IPv4 and UDP headers of a packet of `length` bytes from 10.0.0.1:1000 to 10.0.0.2:5001
/// (RFC 791 §3.1, RFC 768); checksums are 0.
fn udp_header(length: u32) -> Vec<u8> {
    let length = u16::try_from(length).unwrap();
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    for word in [1000, 5001, length - 20, 0] {
        header.extend(word.to_be_bytes());
    }
    header
}

/// A capture in a file of its own.
fn file(name: &str, bytes: &[u8]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conform");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_600_000_000 * SECOND;

/// Packets of 1500 bytes at these milliseconds.
fn at_ms(times: &[u64]) -> Vec<u8> {
    let packets: Vec<_> = times.iter().map(|ms| (START + ms * 1_000_000, 1500)).collect();
    capture(&packets)
}

fn json(code: i32, arguments: &[&str]) -> Value {
    let all = [&["conform", "--json"], arguments].concat();
    serde_json::from_str(&ends_with(code, &all)).unwrap()
}

/// Packets by colour of the only contract.
fn colours(found: &Value) -> [u64; 3] {
    let result = &found["contracts"][0];
    ["green", "yellow", "red"].map(|name| result[name]["packets"].as_u64().unwrap_or(0))
}

#[test]
fn the_worked_examples_of_three_meters_come_out_of_a_capture() {
    // 8 kbit/s brings 1000 bytes a second; sums as in the tests of the meters.
    let one = file("one.pcap", &at_ms(&[0, 0, 0, 1000, 1500, 3000]));
    let found = json(1, &[&one, "--token-bucket", "rate=8k,burst=3000"]);
    assert_eq!(colours(&found), [4, 0, 2]);
    let first = &found["contracts"][0]["first"];
    assert_eq!((first["packet"].as_u64(), first["at_ns"].as_u64()), (Some(3), Some(0)));
    assert_eq!(first["lack"]["missing_bytes"].as_u64(), Some(1500));
    assert_eq!(found["contracts"][0]["needed"][0]["value"].as_f64(), Some(6000.0));
    assert_eq!(colours(&json(0, &[&one, "--token-bucket", "rate=8k,burst=6000"])), [6, 0, 0]);
    let single = file("single.pcap", &at_ms(&[0, 0, 0, 0, 1500, 3000]));
    let found = json(1, &[&single, "--srtcm", "cir=8k,cbs=3000,ebs=1500"]);
    assert_eq!(colours(&found), [4, 1, 1]);
    let double = file("double.pcap", &at_ms(&[0, 0, 0, 750, 1500]));
    let found = json(1, &[&double, "--trtcm", "cir=8k,cbs=1500,pir=16k,pbs=3000"]);
    assert_eq!(colours(&found), [2, 2, 1]);
    // Without the packets that were red, yellow ones remain: within the contract.
    let kept = file("kept.pcap", &at_ms(&[0, 0, 750, 1500]));
    let found = json(0, &[&kept, "--trtcm", "cir=8k,cbs=1500,pir=16k,pbs=3000"]);
    assert_eq!(colours(&found), [2, 2, 0]);
}

#[test]
fn packets_become_cells_on_a_line() {
    // 1500 bytes are 32 cells with LLC/SNAP; at half an OC-3 without tolerance each other one is
    // early. 40 bytes are two cells, or one with VC multiplexing.
    let path = file("cells.pcap", &capture(&[(START, 1500), (START + SECOND, 40)]));
    let contract = ["--gcra", "pcr=74.88Mbit/s,cdvt=0s"];
    let found =
        json(1, &[&[path.as_str(), "--cells", "llcsnap", "--line", "oc3"][..], &contract].concat());
    assert_eq!(found["total"]["cells"].as_u64(), Some(34));
    assert_eq!(found["contracts"][0]["cells_outside"].as_u64(), Some(17));
    let needed = found["contracts"][0]["needed"][0]["value"].as_f64().unwrap();
    // The last of 32 cells comes at 31 T where 62 T are asked, T = 2831.197 ns.
    assert!((needed - 31.0 * 2831.197).abs() < 1.0, "{needed}");
    let found = json(1, &[&[path.as_str(), "--cells", "vcmux"][..], &contract].concat());
    assert_eq!(found["total"]["cells"].as_u64(), Some(33));
    let tolerant = ["--gcra", "pcr=74.88Mbit/s,cdvt=88us"];
    json(0, &[&[path.as_str(), "--cells", "llcsnap"][..], &tolerant].concat());
    // One packet a second and two at most in a row.
    let path = file("rows.pcap", &at_ms(&[0, 1, 2, 2000]));
    let found = json(1, &[&path, "--cells", "packet", "--gcra", "pcr=1000,cdvt=1ms,scr=1,mbs=2"]);
    assert_eq!(colours(&found), [3, 0, 1]);
}

#[test]
fn layers_count_what_their_name_says() {
    // Raw IP of 1480 and 20 bytes: in Ethernet 1498 and 64 with FCS, 20 more on the wire.
    let path = file("layers.pcap", &capture(&[(START, 1480), (START + SECOND, 28)]));
    let bytes = |layer: &str| json(0, &[&path, "--layer", layer])["total"]["bytes"].as_u64();
    assert_eq!(bytes("ip"), Some(1508));
    assert_eq!(bytes("captured"), Some(1508));
    assert_eq!(bytes("frame"), Some(1498 + 64));
    assert_eq!(bytes("wire"), Some(1518 + 84));
}

#[test]
fn a_filter_and_limits_choose_the_packets() {
    let path = file("limits.pcap", &at_ms(&[0, 100, 200, 300, 400]));
    let packets = |flags: &[&str]| {
        let found = json(0, &[&[path.as_str()], flags].concat());
        (found["total"]["packets"].as_u64().unwrap(), found["ended"].as_str().unwrap().to_owned())
    };
    let complete = |count| (count, "complete".to_owned());
    let limit = |count| (count, "limit".to_owned());
    assert_eq!(packets(&["--only", "udp,port=5001,host=10.0.0.0/24"]), complete(5));
    assert_eq!(packets(&["--only", "tcp"]), complete(0));
    assert_eq!(packets(&["--packets", "2"]), limit(2));
    assert_eq!(packets(&["--time", "250ms"]), limit(3));
}

#[test]
fn the_text_says_what_was_outside_and_what_would_do() {
    let path = file("text.pcap", &at_ms(&[0, 0, 0, 1000, 1500, 3000]));
    let fixed = ["conform", &path, "--token-bucket", "rate=8k,burst=3000"];
    let text = ends_with(1, &[&fixed[..], &["--verbose"]].concat());
    for part in [
        "6 packets, 9.000 kB in 3.000 s",
        "token bucket: 8 kbit/s, burst 3000 bytes",
        "first outside: packet 3 of 1500 bytes, 0 s after the first: 1500 bytes of tokens missing",
        "longest run outside: 2 packets, 3.000 kB, from packet 3 on, in 1.000 s",
        "all of it at 8 kbit/s needs BURST 6000 bytes; 3000 bytes is too little",
        "2 of 6 packets outside the contract",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let verdict = "2 of 6 packets outside the contract, 33.3 % of the bytes \u{b7} ";
    let answer = ends_with(1, &[&fixed[..], &["--quiet"]].concat());
    assert!(answer.starts_with(verdict) && answer.ends_with(" \u{b7} bad\n"), "{answer}");
    let brief = ends_with(1, &fixed);
    assert!(brief.starts_with(&answer) && brief.lines().count() <= 7, "{brief}");
}

#[test]
fn a_capture_comes_from_standard_input_too() {
    let mut child = support::command(&["conform", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&at_ms(&[0, 1, 2])).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["total"]["packets"].as_u64(), Some(3));
}

#[test]
fn what_cannot_be_read_ends_with_2_and_keeps_what_was_read() {
    let cannot = |path: &str, words: &str| {
        let output = linerate(&["conform", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        let line = stderr(&output);
        assert!(line.lines().count() == 1 && line.contains(words), "{line}");
        stdout(&output)
    };
    assert_eq!(cannot("/nonexistent.pcap", "no such file"), "");
    assert_eq!(cannot(&file("text.txt", b"no capture at all"), "expected a pcap"), "");
    let mut bytes = at_ms(&[0, 1, 2]);
    bytes.truncate(bytes.len() - 5);
    let text = cannot(&file("cut.pcap", &bytes), "the capture is cut");
    assert!(text.contains("2 packets"), "{text}");
}

#[test]
fn wrong_use_is_one_line_and_ends_with_2() {
    check_wrong_use(&["conform"], &["FILE"]);
    check_wrong_use(&["conform", "x.pcap", "--live", "lo"], &["--live"]);
    let contract = |flag: &str, text: &str, words: &str| {
        check_wrong_use(&["conform", "x.pcap", flag, text], &[words]);
    };
    contract("--token-bucket", "rate=0,burst=1500", "the rate is 0");
    contract("--token-bucket", "rate=8k", "burst is missing");
    contract("--srtcm", "cir=8k,cbs=0,ebs=0", "the burst is 0 bytes");
    contract("--trtcm", "cir=8k,cbs=1,pir=4k,pbs=1", "is below the committed rate");
    contract("--gcra", "pcr=0", "is not a cell rate");
    contract("--gcra", "pcr=100,scr=200,mbs=2", "is above the peak rate");
    contract("--gcra", "pcr=100", "--cells llcsnap");
    contract("--cells", "aal1", "llcsnap, vcmux or packet");
    contract("--line", "oc", "is not a link");
    contract("--only", "vlan=1", "no term of a filter");
    contract("--layer", "payload", "wire");
}

/// A cable whose end at `a` has a token bucket, and the interface at `b`.
struct Planted {
    lab: Lab,
    interface: String,
}

impl Planted {
    fn build(tbf: &Tbf) -> Option<Self> {
        if !userns::may_make_networks() {
            println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
            return None;
        }
        let plan = "host = [{ name = \"a\" }, { name = \"b\" }]\n\
                    link = [{ ends = [\"a\", \"b\"], offload = false }]";
        let lab = Lab::build_from_plan(&LabPlan::from_toml(plan, "test.toml").unwrap()).unwrap();
        let cable = || {
            let links = RouteSocket::open().unwrap().list_links().unwrap();
            links.into_iter().find(|link| link.name != "lo").unwrap()
        };
        let near = lab.run_on("a", cable).unwrap();
        let set = || RouteSocket::open().unwrap().set_tbf(near.index, tbf).unwrap();
        lab.run_on("a", set).unwrap();
        let interface = lab.run_on("b", cable).unwrap().name;
        Some(Self { lab, interface })
    }

    /// Starts the program at `b`; returns once it captures.
    fn conform(&self, flags: &[&str]) -> Child {
        let start = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
            command.args(["conform", "--live", &self.interface]).args(flags);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut child = self.lab.run_on("b", start).unwrap();
        let mut first = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut first).unwrap();
        assert!(first.starts_with("capturing on"), "{first}");
        child
    }

    /// Keeps datagrams waiting at `a` for `span`: the socket blocks while the bucket is full.
    fn udp(&self, span: Duration) {
        let to = self.lab.address_of("b").unwrap();
        let sink = self.lab.run_on("b", || UdpSocket::bind((to, 5001)).unwrap()).unwrap();
        let send = || {
            let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
            let end = clock::monotonic() + span;
            while clock::monotonic() < end {
                socket.send_to(&[0; 1400], (to, 5001)).unwrap();
            }
        };
        self.lab.run_on("a", send).unwrap();
        drop(sink);
    }

    /// Keeps a TCP stream full from `a` to `b` for `span`.
    fn tcp(&self, span: Duration) {
        let to = self.lab.address_of("b").unwrap();
        let listener = self.lab.run_on("b", || TcpListener::bind((to, 5001)).unwrap()).unwrap();
        let send = move || {
            let mut stream = TcpStream::connect((to, 5001)).unwrap();
            let end = clock::monotonic() + span;
            while clock::monotonic() < end {
                stream.write_all(&[0; 16_384]).unwrap();
            }
        };
        let sender = self.lab.spawn_on("a", send).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).unwrap() > 0 {}
        sender.join().unwrap();
    }
}

/// What a live bucket lets pass keeps a contract of its rate and burst and breaks one of half its
/// rate, whatever stops the laboratory meanwhile: a pause makes the bucket lose tokens. That rate
/// and burst come out of a full stream, within 1 and 5 %, is held without a clock
/// (`conformance::stretch`).
fn check_bucket(tbf: &Tbf, traffic: impl Fn(&Planted, Duration)) {
    let Some(planted) = Planted::build(tbf) else { return };
    let measured = |rate_bps: u64| {
        // The margin of 5 % is for the time from the bucket to the capture.
        let burst_bytes = u64::from(tbf.burst_bytes) * 105 / 100;
        let contract = format!("rate={rate_bps},burst={burst_bytes}");
        let flags = ["--time", "2s", "--layer", "captured", "--only", "in", "--json"];
        let child = planted.conform(&[&flags[..], &["--token-bucket", &contract]].concat());
        traffic(&planted, Duration::from_millis(1500));
        child.wait_with_output().unwrap()
    };
    let kept = measured(tbf.rate_bps * 105 / 100);
    let found: Value = serde_json::from_slice(&kept.stdout).unwrap();
    assert_eq!(found["unused"]["joined"].as_u64(), Some(0), "offload is off");
    assert_eq!(kept.status.code(), Some(0), "{tbf:?}: {found}");
    assert_eq!(measured(tbf.rate_bps / 2).status.code(), Some(1), "{tbf:?}");
}

#[test]
fn live_datagrams_keep_the_contract_of_the_bucket_that_passed_them() {
    let tbf = Tbf { rate_bps: 23_000_000, burst_bytes: 70_000, limit_bytes: 1_000_000 };
    check_bucket(&tbf, Planted::udp);
}

#[test]
fn a_live_tcp_stream_keeps_the_contract_of_the_bucket_that_passed_it() {
    let tbf = Tbf { rate_bps: 40_000_000, burst_bytes: 150_000, limit_bytes: 400_000 };
    check_bucket(&tbf, Planted::tcp);
}

#[test]
fn an_interrupted_capture_prints_what_it_has() {
    let tbf = Tbf { rate_bps: 10_000_000, burst_bytes: 20_000, limit_bytes: 100_000 };
    let Some(planted) = Planted::build(&tbf) else { return };
    // The Ethernet header is 14 bytes; the bucket counts it.
    let flags = ["--layer", "captured", "--only", "udp", "--token-bucket", "rate=10M,burst=22000"];
    let mut child = planted.conform(&flags);
    planted.udp(Duration::from_millis(300));
    // The kernel hands blocks over after 10 ms.
    clock::sleep(Duration::from_millis(100));
    interrupt(&child);
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(0));
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("every packet keeps the contract \u{b7} "), "{text}");
}

#[test]
fn an_interface_that_is_not_there_cannot_be_read() {
    let output = linerate(&["conform", "--live", "nonexistent0"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}
