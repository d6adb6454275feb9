//! Lines as nuttcp 6.1.2 sent them, both machines in and out of order, lines without end.

use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;

use super::*;
use crate::dialect::{FlowState, Input, Machine, Output, TestFailureReason};

/// Recorded from Debian's nuttcp 6.1.2: `nuttcp -T1 127.0.0.1`.
const RECORDED: &str = "\
    buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = 5001, \
    trans = 1, braindead = 0, timeout = 1.000000, udp = 0, vers = 6.1.2, interval = \
    0.000000, reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , \
    multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n";

fn recorded() -> Parameters {
    let version = NuttcpVersion(6, 1, 2);
    Parameters { port: 5001, timeout_s: 1.0, version, ..Parameters::default() }
}

#[test]
fn recorded_parameters_are_read_and_written_to_the_byte() {
    assert_eq!(Parameters::parse(RECORDED), Ok(recorded()));
    assert_eq!(recorded().to_line(WIRE_VERSION), RECORDED);
}

#[test]
fn the_flags_of_recorded_lines_are_read() {
    // -u -r -T1 -R5m, then -w64k -R10m -r, then -n100 -l8192 -N2 (values of those fields).
    let line = RECORDED.replace("rate = 4294967295", "rate = 5000").replace("udp = 0", "udp = 1");
    let read = Parameters::parse(&line.replace("trans = 1", "trans = 0")).expect("well-formed");
    assert_eq!((read.udp, read.client_sends, read.pace_bps()), (true, false, Some(5_000_000)));
    let line = RECORDED.replace("win = 0", "win = 65536").replace("reverse = 0", "reverse = 1");
    let read = Parameters::parse(&line).expect("well-formed");
    assert_eq!((read.window, read.flip, read.pace_bps()), (65_536, true, None));
    let line =
        RECORDED.replace("nbuf = 2147483647", "nbuf = 100").replace("nstream = 1", "nstream = 2");
    let read = Parameters::parse(&line).expect("well-formed");
    assert_eq!((read.nbuf, read.nstream), (100, 2));
    // The pace is that of all streams.
    let line = line.replace("rate = 4294967295", "rate = 10000");
    assert_eq!(Parameters::parse(&line).map(|read| read.pace_bps()), Ok(Some(5_000_000)));
}

#[test]
fn a_line_for_an_older_server_ends_with_what_it_knows() {
    let line = recorded().to_line(NuttcpVersion(3, 4, 1));
    assert!(line.ends_with("interval = 0.000000, reverse = 0\n"), "{line}");
    assert!(recorded().to_line(NuttcpVersion(3, 3, 1)).ends_with("vers = 6.1.2\n"));
    // Fields of 6.2.1 and later are not sent: the version that is named has none of them.
    assert_eq!(recorded().to_line(NuttcpVersion(8, 2, 2)), RECORDED);
}

#[test]
fn parameters_that_cannot_be_are_named() {
    let cases = [
        ("buflen = 65536", "buflen = 0", "buflen"),
        ("buflen = 65536", "buflen = 999999999999", "buflen"),
        ("nstream = 1", "nstream = 129", "nstream"),
        ("nstream = 1", "nstream = -1", "nstream"),
        ("port = 5001", "port = 70000", "port"),
        ("port = 5001", "port = 0", "port"),
        ("timeout = 1.000000", "timeout = NaN", "timeout"),
        ("timeout = 1.000000", "timeout = 1e300", "timeout"),
        ("tos = 0 ", "tos = 1FF ", "tos"),
    ];
    for (from, to, name) in cases {
        let error = Parameters::parse(&RECORDED.replacen(from, to, 1)).expect_err(to);
        assert!(error.to_string().starts_with(name), "{to}: {error}");
    }
    let line =
        RECORDED.replace("port = 5001", "port = 65535").replace("nstream = 1", "nstream = 2");
    assert!(Parameters::parse(&line).is_err(), "the second stream has no port");
    assert_eq!(Parameters::parse("buflen = 1"), Err(ParametersError::Missing("vers")));
}

#[test]
fn a_line_cut_anywhere_or_with_a_flipped_bit_never_panics() {
    for cut in 0..RECORDED.len() {
        let _ = Parameters::parse(&RECORDED[..cut]);
    }
    for bit in 0..RECORDED.len() * 8 {
        let mut damaged = RECORDED.as_bytes().to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let _ = Parameters::parse(&String::from_utf8_lossy(&damaged));
    }
}

#[test]
fn what_is_not_served_is_named() {
    let line = RECORDED.replace("_NULL_", "elsewhere");
    assert_eq!(Parameters::parse(&line).map(|read| read.beyond), Ok(Some("a third party")));
    let line = RECORDED.replace("multicast = 0", "multicast = 4");
    assert_eq!(Parameters::parse(&line).map(|read| read.beyond), Ok(Some("multicast")));
}

#[test]
fn lines_come_out_one_by_one_however_they_are_cut() {
    let text = b"HELO nuttcp v6.1.2\r\nOK\n\nrest";
    for cut in 0..text.len() {
        let mut lines = Lines::default();
        lines.push(&text[..cut]);
        let mut all = Vec::new();
        while let Ok(Some(line)) = lines.next_line() {
            all.push(line);
        }
        lines.push(&text[cut..]);
        while let Ok(Some(line)) = lines.next_line() {
            all.push(line);
        }
        assert_eq!(all, ["HELO nuttcp v6.1.2", "OK", ""], "cut at {cut}");
    }
}

#[test]
fn a_line_without_end_is_refused_once_it_is_too_long() {
    let mut lines = Lines::default();
    lines.push(&[b'a'; LINE_BYTES_MAX]);
    assert_eq!(lines.next_line(), Ok(None));
    lines.push(b"a");
    assert_eq!(lines.next_line(), Err(LineError::TooLong));
}

fn client() -> NuttcpClientMachine {
    let interval = Duration::from_secs(1);
    let mut client = NuttcpClientMachine::new(
        NOW,
        NuttcpClientTest { parameters: recorded(), span: None, interval },
    );
    assert_eq!(sent(&mut client).0, "HELO nuttcp v7.0.1\n");
    client
}

const NOW: MonoTime = MonoTime::from_nanos(0);

/// What a machine sends, and what else it wants.
fn sent<M: Machine>(machine: &mut M) -> (String, Vec<Output<M>>) {
    let (mut text, mut rest) = (String::new(), Vec::new());
    while let Some(output) = machine.poll() {
        match output {
            Output::Send(bytes) => text += &String::from_utf8_lossy(&bytes),
            other => rest.push(other),
        }
    }
    (text, rest)
}

/// The same after it has read this.
fn reads<M: Machine>(machine: &mut M, text: &str) -> (String, Vec<Output<M>>) {
    machine.handle(NOW, Input::Bytes(text.as_bytes()));
    sent(machine)
}

/// Why a machine gave up.
fn fault<M: Machine>(outputs: Vec<Output<M>>) -> Option<M::PeerFault> {
    outputs.into_iter().find_map(|output| match output {
        Output::Failed(TestFailureReason::Peer(fault)) => Some(fault),
        _ => None,
    })
}

#[test]
fn a_test_runs_through_both_machines() {
    let (mut client, mut server) = (client(), NuttcpServerMachine::new(NOW));
    let (hello, _) = reads(&mut server, "HELO nuttcp v8.2.2\n");
    assert_eq!(hello, "HELO nuttcp v7.0.1\n");
    let (parameters, news) = reads(&mut client, &hello);
    assert!(matches!(news[..], [Output::News(ClientNews::Greeted(NuttcpVersion(7, 0, 1)))]));
    assert_eq!(parameters, RECORDED);
    let (_, asks) = reads(&mut server, &parameters);
    let [Output::Decide(asked)] = &asks[..] else { panic!("{} outputs", asks.len()) };
    assert_eq!(**asked, recorded());
    let second = Duration::from_secs(1);
    let terms = NuttcpServerTerms { open_max: second, span_max: second, interval: second };
    server.handle(NOW, Input::Decided(Ok(terms)));
    let (accept, _) = sent(&mut server);
    assert_eq!(accept, "OK v7.0.1\n");
    assert!(matches!(reads(&mut client, &accept).1[..], [Output::Open]));
    let news = reads(&mut client, "nuttcp-r: accept from 127.0.0.1\n").1;
    assert!(news.is_empty());
    let line = " 1458.3125 MB /   0.50 sec = 24391.0554 Mbps     0 retrans";
    let news = reads(&mut client, &format!("{line}\nDONE\n")).1;
    let [Output::News(ClientNews::Interval(interval, told))] = &news[..] else { panic!("{line}") };
    assert_eq!((interval.retransmits, told.as_str()), (Some(0), line));
}

#[test]
fn a_refusal_is_told_with_its_reason_also_without_its_end() {
    let (mut refused, mut server) = (client(), NuttcpServerMachine::new(NOW));
    reads(&mut server, RECORDED);
    let reason = "one test is running";
    let failure = Failure::new(Fault::PeerRefused, "serve", "a client", reason);
    server.handle(NOW, Input::GiveUp(&failure));
    let (lines, _) = sent(&mut server);
    reads(&mut refused, "HELO nuttcp v6.1.2\n");
    let told = fault(reads(&mut refused, &lines).1);
    let reason = "nuttcp-r: v7.0.1: Error: one test is running".to_owned();
    assert_eq!(told, Some(NuttcpPeerFault::Refused(reason)));
    let mut cut = client();
    reads(&mut cut, "HELO nuttcp v6.1.2\nKO\nbind: address in use\n");
    cut.handle(NOW, Input::Closed);
    let reason = "bind: address in use".to_owned();
    assert_eq!(fault(sent(&mut cut).1), Some(NuttcpPeerFault::Refused(reason)));
}

#[test]
fn a_line_out_of_order_is_quoted() {
    let error = fault(reads(&mut NuttcpServerMachine::new(NOW), "GET / HTTP/1.1\n").1)
        .expect("no greeting");
    assert_eq!(error.to_string(), "\"GET / HTTP/1.1\" came while waiting for HELO");
    let twice = "HELO nuttcp v6.1.2\nHELO nuttcp v6.1.2\n";
    let error = fault(reads(&mut NuttcpServerMachine::new(NOW), twice).1).expect("one greeting");
    assert!(error.to_string().ends_with("came while waiting for parameters"), "{error}");
    let told = fault(reads(&mut client(), "SSH-2.0-x\n").1);
    let Some(NuttcpPeerFault::Line(error)) = told else { panic!("{told:?}") };
    assert!(error.to_string().contains("SSH-2.0-x"), "{error}");
}

#[test]
fn an_endless_refusal_ends() {
    let mut client = client();
    reads(&mut client, "HELO nuttcp v6.1.2\nKO\n");
    let line = "x".repeat(1000) + "\n";
    let told = (0..20).find_map(|_| fault(reads(&mut client, &line).1));
    assert!(matches!(told, Some(NuttcpPeerFault::Refused(_))), "{told:?}");
}

/// Recorded from `nuttcp -S` of 6.1.2 after `-r -T1`.
const SUMMARY: [&str; 4] = [
    "nuttcp-t: 2805.8892 MB in 1.00 real seconds = 2873046.67 KB/sec = 23535.9983 Mbps",
    "nuttcp-t: 2805.8892 MB in 0.22 CPU seconds = 12809537.71 KB/cpu sec",
    "nuttcp-t: retrans = 0",
    "nuttcp-t: 44895 I/O calls, msec/call = 0.02, calls/sec = 44892.13",
];

#[test]
fn a_recorded_summary_is_read() {
    let mut summary = NuttcpSummary::default();
    SUMMARY.iter().for_each(|line| summary.read(line));
    assert_eq!(summary.megabytes, Some(2805.8892));
    assert_eq!(summary.mbps, Some(23_535.998_3));
    assert_eq!((summary.calls, summary.retransmits), (Some(44_895), Some(0)));
    // 2805.8892 × 2^20 = 2,942,188,074; bytes that round to the figure are taken for it.
    assert_eq!(summary.payload_bytes(2_942_188_100), Some(2_942_188_100));
    assert_eq!(summary.payload_bytes(2_942_188_200), Some(2_942_188_074));
    // 2,942,188,074 × 8 / 23535.9983e6 = 1.000064 s.
    let span = summary.span_ns(2_942_188_074).expect("a rate");
    assert!((1_000_060_000..1_000_070_000).contains(&span), "{span}");
}

#[test]
fn a_server_of_7_0_1_finds_every_field_that_its_version_looks_for() {
    // nuttcp 8.2.2 looks for these, and dies where one is missing.
    let parameters = Parameters {
        version: WIRE_VERSION,
        jitter: 4,
        delay: 2,
        udp: true,
        rate: 10_000,
        ..recorded()
    };
    let line = parameters.to_line(NuttcpVersion(8, 2, 2));
    for field in
        [", ssm = 0", ", affinity = -1", ", maxburst = 1", ", do_jitter = 4", ", do_owd = 2"]
    {
        assert!(line.contains(field), "{field}: {line}");
    }
    let read = Parameters::parse(&line).expect("its own line");
    assert_eq!((read.jitter, read.delay), (4, 2));
    // 65,536 bytes at 10 Mbit/s.
    assert_eq!(read.gap_ms(), Some(52.4288));
    assert!(!parameters.to_line(NuttcpVersion(6, 1, 2)).contains("ssm"));
    assert!(Parameters::parse(&line.replace("do_jitter = 4", "do_jitter = 99")).is_err());
}

#[test]
fn times_are_told_between_the_real_seconds_and_the_processor_s() {
    let mut arrivals = NuttcpArrivals::from_gap_ms(Some(1.0));
    for ms in [1_u64, 2, 4] {
        arrivals.record(ms * 1_000_000, true, Some(ms * 1000 - 250));
    }
    let report = NuttcpServerReport { arrivals: Some(arrivals), ..NuttcpServerReport::default() };
    let parameters = Parameters { jitter: 4, delay: 2, ..recorded() };
    let text = report_lines(NuttcpRole::Receiver, &parameters, &report);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("real seconds") && lines[4].contains("CPU seconds"), "{text}");
    assert!(lines[2].ends_with("max-jitter = 1.0000 ms"), "{text}");
    assert!(lines[3].ends_with("avg-OWD = 0.2500 ms, max-OWD = 0.2500 ms"), "{text}");
    let mut summary = NuttcpSummary::default();
    lines.iter().for_each(|line| summary.read(line));
    assert_eq!(summary.jitter.map(|jitter| (jitter.least_ms, jitter.most_ms)), Some((0.0, 1.0)));
    assert_eq!(summary.delay.map(|delay| delay.mean_ms), Some(0.25));
    let silent = report_lines(NuttcpRole::Receiver, &recorded(), &report);
    assert!(!silent.contains("jitter") && !silent.contains("OWD"), "not asked for: {silent}");
}

#[test]
fn a_summary_is_made_in_the_words_of_the_recorded_one() {
    let report = NuttcpServerReport {
        about: vec!["accept from 127.0.0.1".to_owned()],
        // 100 buffers of 8192 bytes, as in the recorded run of -n100 -l8192: 0.78125 MB.
        bytes: 819_200,
        seconds: 0.5,
        cpu_s: (0.1, 0.15),
        calls: 100,
        retransmits: Some(3),
        ..NuttcpServerReport::default()
    };
    let text = report_lines(NuttcpRole::Transmitter, &recorded(), &report);
    // 800 KB in 0.5 s; 819,200 × 8 / 0.5 = 13.1072 Mbit/s; 800 KB / 0.25 s; 0.5 s / 100.
    let expected = [
        "nuttcp-t: v7.0.1: socket",
        "nuttcp-t: accept from 127.0.0.1",
        "nuttcp-t: 0.7812 MB in 0.50 real seconds = 1600.00 KB/sec = 13.1072 Mbps",
        "nuttcp-t: 0.7812 MB in 0.25 CPU seconds = 3200.00 KB/cpu sec",
        "nuttcp-t: retrans = 3",
        "nuttcp-t: 100 I/O calls, msec/call = 5.00, calls/sec = 200.00",
    ];
    assert_eq!(text.lines().take(6).collect::<Vec<_>>(), expected);
    let mut read = NuttcpSummary::default();
    text.lines().for_each(|line| read.read(line));
    assert_eq!(read.payload_bytes(819_200), Some(819_200));
    let parse = Parameters { format: 0x840, ..recorded() };
    let text = report_lines(NuttcpRole::Transmitter, &parse, &report);
    assert!(text.contains("megabytes=0.7812 real_seconds=0.50 rate_KBps=1600.00"), "{text}");
    let mut read = NuttcpSummary::default();
    text.lines().for_each(|line| read.read(line));
    assert_eq!(
        (read.payload_bytes(819_200), read.calls, read.retransmits),
        (Some(819_200), Some(100), Some(3))
    );
    assert_eq!((read.seconds, read.cpu_seconds, read.mbps), (Some(0.5), Some(0.25), Some(13.1072)));
}

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../../../testdata/nuttcp/", $name)).as_slice()
    };
}

fn lines_of(bytes: &[u8]) -> Vec<String> {
    let mut lines = Lines::default();
    lines.push(bytes);
    std::iter::from_fn(|| lines.next_line().expect("short lines")).collect()
}

/// Datagrams of a file, each behind its length.
fn datagrams_of(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut datagrams = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (datagram, rest) = rest.split_at(u16::from_be_bytes(*length).into());
        datagrams.push(datagram);
        bytes = rest;
    }
    datagrams
}

#[test]
fn a_recorded_udp_test_is_counted_by_its_marks_and_announcements() {
    let mut receiver = NuttcpUdpReceiver::default();
    let mut marks = Vec::new();
    for datagram in datagrams_of(recorded!("udp-interval-datagrams.bin")) {
        marks.extend(receiver.count_datagram(datagram, datagram.len()));
    }
    use UdpMark::{Begin, End, Ready};
    assert_eq!(marks, [Ready, Begin, End(0), End(1), End(2), End(3), End(4)]);
    // -n10 -l64.
    assert_eq!((receiver.datagrams, receiver.bytes), (10, 640));
    assert_eq!((receiver.announced, receiver.lost_datagrams(64)), (Some(640), Some(0)));
}

#[test]
fn datagrams_of_a_test_without_intervals_announce_nothing() {
    let datagrams = datagrams_of(recorded!("udp-reverse-datagrams.bin"));
    let data: Vec<_> = datagrams.iter().filter(|datagram| datagram.len() == 64).collect();
    assert_eq!(data.len(), 10);
    // The pattern goes on where the count would be: "89:;<=>?".
    assert!(data.iter().all(|datagram| datagram[24..32] == *b"89:;<=>?"));
}

#[test]
fn recorded_servers_tell_intervals_and_a_summary() {
    let cases: [(&[u8], usize, u64, u64); 4] = [
        (recorded!("udp-interval-server.bin"), 2, 640, 14),
        (recorded!("udp-parse-server.bin"), 1, 256, 8),
        (recorded!("udp-reverse-server.bin"), 0, 640, 17),
        // 11.9375 MB are 191 buffers of 65,536 bytes.
        (recorded!("parse-interval-server.bin"), 2, 191 * 65_536, 192),
    ];
    for (bytes, intervals, told, calls) in cases {
        let mut client = client();
        client.handle(NOW, Input::Bytes(bytes));
        let news = sent(&mut client).1.into_iter();
        let is_interval =
            |it: &Output<NuttcpClientMachine>| matches!(it, Output::News(ClientNews::Interval(..)));
        let found = news.filter(is_interval).count();
        // The server has closed behind it, and the streams have ended.
        client.handle(NOW, Input::Opened);
        client.handle(NOW, Input::Closed);
        client.handle(NOW, Input::Look(FlowState { done: true, ..FlowState::default() }));
        let summary = sent(&mut client).1.into_iter().find_map(|output| match output {
            Output::Peer(summary) => Some(*summary),
            _ => None,
        });
        let summary = summary.expect("a summary");
        assert_eq!(
            (found, summary.payload_bytes(told), summary.calls),
            (intervals, Some(told), Some(calls))
        );
        assert!(summary.cpu_seconds.is_some() && summary.seconds.is_some());
    }
}

#[test]
fn a_client_before_the_greeting_asks_at_once() {
    let [line] = <[String; 1]>::try_from(lines_of(recorded!("old-client.bin"))).expect("one line");
    let asks = reads(&mut NuttcpServerMachine::new(NOW), &format!("{line}\n")).1;
    let [Output::Decide(asked)] = &asks[..] else { panic!("{} outputs", asks.len()) };
    assert_eq!((asked.version, asked.nbuf, asked.port), (NuttcpVersion(2, 2, 1), 2048, 5001));
    assert_eq!((asked.interval_s, asked.flip, asked.format), (0.0, false, 0));
    // Said again to a server of that version it has no field that it does not know.
    assert_eq!(asked.to_line(NuttcpVersion(2, 2, 1)).trim_end(), line);
}

#[test]
fn parameters_of_a_recorded_udp_client_are_written_to_the_byte() {
    let bytes = recorded!("udp-interval-client.bin");
    let line = lines_of(bytes).pop().expect("parameters");
    let asked = Parameters::parse(&line).expect("well-formed");
    assert_eq!((asked.udp, asked.buflen, asked.nbuf, asked.pace_bps()), (true, 64, 10, Some(8000)));
    assert!((asked.interval_s - 0.3).abs() < 1e-9);
    assert_eq!(asked.to_line(WIRE_VERSION).trim_end(), line);
}
