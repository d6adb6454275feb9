//! UDP of nuttcp from either side, live against the `nuttcp` of this machine, and as bytes. Both
//! ends count the same datagrams. Tests end by counts; rates and numbers of rows are not judged.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use crate::peers::{self, HERE, Peer, free_port, lacks, logged, logged_bytes, with_server};
use linerate_core::record::{
    Event, Finish, Record, ServerPlan, TcpDirections, Tool, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::nuttcp::{NuttcpExtras, run_udp};
use linerate_proto::nuttcp::{NuttcpInterval, NuttcpSummary};
use linerate_server::admission::ServerLimits;
use linerate_sys::stop::Stop;

const MB: f64 = 1_048_576.0;

/// The megabytes, lost and all datagrams of nuttcp's last line.
fn told(printed: &str) -> (f64, u64, u64) {
    let line = printed.lines().rfind(|line| line.contains(" drop/pkt")).expect(printed);
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "drop/pkt").expect("just seen");
    let count = |at: usize| words[at].parse().expect(line);
    (words[0].parse().expect(line), count(at - 3), count(at - 1))
}

#[test]
fn a_nuttcp_client_and_our_server_count_the_same_datagrams() {
    if lacks("nuttcp") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = format!("-P{}", server.port(Via::Nuttcp));
        let shared = format!("-p{}", server.port(Via::Iperf2));
        let own = format!("-p{}", free_port());
        let cases: [(&str, &[&str], u64, u64); 7] = [
            (&own, &["-n200", "-l1000", "-R10m"], 200, 1000),
            (&own, &["-n200", "-l1000", "-R10m", "-r"], 200, 1000),
            (&own, &["-n200", "-l1000", "-Ri10m", "-i.05"], 200, 1000),
            (&own, &["-n300", "-l1000", "-R10m", "-N3", "-i1"], 300, 1000),
            (&own, &["-n200", "-l20", "-R1m"], 200, 20),
            // The port that iperf 2 and ttcp have.
            (&shared, &["-n200", "-l1000", "-R10m"], 200, 1000),
            (&shared, &["-n100", "-l1400", "-R500p", "-i.1", "-w64k"], 100, 1400),
        ];
        for (data, flags, count, length) in cases {
            let fixed = [port.as_str(), data, "-u"];
            let printed = peers::run("nuttcp", &[&fixed, flags, &["127.0.0.1"][..]].concat());
            let log = server.log(1);
            assert_eq!(logged_bytes(&log[0]), count * length, "{flags:?}: {log:?}\n{printed}");
            let verb = if flags.contains(&"-r") { "sent" } else { "received" };
            assert!(log[0].contains(&format!(" {count} datagrams {verb}")), "{log:?}");
            let (megabytes, lost, all) = told(&printed);
            // It counts from its megabytes, whose last digit is 105 bytes.
            let exact = all == count || length < 105 && all.abs_diff(count) <= 105 / length;
            assert!(lost == 0 && exact, "{flags:?}: {printed}");
            let sent = (count * length) as f64 / MB;
            assert!((megabytes - sent).abs() <= 0.000_051, "{flags:?}: {printed}");
        }
        let reverse = [port.as_str(), &own, "-u", "-r", "-N2", "127.0.0.1"];
        let refused =
            std::process::Command::new("nuttcp").args(reverse).output().expect("it starts");
        let said = peers::text(&refused);
        assert!(said.contains("UDP to the client in several streams is not served"), "{said}");
    });
}

fn plan(port: u16) -> UdpPlan {
    UdpPlan {
        server: ServerPlan::new(Some(Via::Nuttcp), HERE.to_string(), port),
        test: UdpTest {
            finish: Finish::Buffers(200),
            interval_ns: 100_000_000,
            size_bytes: Some(1000),
            pace: Some(BitRate::from_bits_per_sec(5_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// The record and summary of a test, and the intervals that the server told.
fn measure(plan: &UdpPlan, data_port: u16) -> (Record, Option<NuttcpSummary>, Vec<NuttcpInterval>) {
    let mut intervals = Vec::new();
    let mut told = |interval: &NuttcpInterval, _: &str| intervals.push(*interval);
    let extras = NuttcpExtras {
        data_port: Some(data_port),
        intervals: true,
        ..NuttcpExtras::without_options(&mut told)
    };
    let mut watch = |_: &Event| {};
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let (record, summary) = run_udp(plan, extras, &mut context);
    (record, summary, intervals)
}

/// Sent, received and lost of the only stream.
fn counts(record: &Record) -> (u64, u64, u64) {
    let [flow] = record.flows.as_slice() else { panic!("{record:#?}") };
    let sender = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    let receiver = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
    let (sent, received) = (sender.expect("it told"), receiver.expect("it told"));
    (sent.count, received.all.received, received.all.lost)
}

#[test]
fn our_client_and_a_nuttcp_server_count_the_same_datagrams() {
    if lacks("nuttcp") {
        return;
    }
    use TcpDirections::{Down, Up};
    // As many as nuttcp's receive buffer has room for (net.core.rmem_default, 212,992 bytes; a
    // datagram takes 2304, one of 20 bytes 768), however late it reads.
    for (directions, finish, size, count) in [
        (Up, Finish::Buffers(80), 1000, 80),
        (Down, Finish::Buffers(200), 1000, 200),
        (Up, Finish::Bytes(100_000), 1400, 72),
        (Down, Finish::Buffers(100), 8192, 100),
        (Up, Finish::Buffers(200), 20, 200),
    ] {
        let peer = Peer::start("nuttcp", &["-S", "--nofork", "-P"]);
        let plan = UdpPlan {
            test: UdpTest { directions, finish, size_bytes: Some(size), ..plan(peer.port).test },
            ..plan(peer.port)
        };
        let (record, summary, _) = measure(&plan, free_port());
        assert_eq!(record.failure, None);
        assert_eq!(record.ends[1].version.as_deref(), Some("nuttcp 6.1.2"));
        assert_eq!(counts(&record), (count, count, 0), "{directions:?} {finish:?}");
        let told = summary.expect("a summary").payload_bytes(count * u64::from(size));
        assert_eq!(told, Some(count * u64::from(size)));
        // Datagrams of nuttcp carry no time that could be believed.
        let received =
            record.flows[0].receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
        assert!(received.is_some_and(|it| it.delay.is_none()));
    }
}

#[test]
fn intervals_that_a_server_tells_add_up_to_no_more_than_the_whole() {
    if lacks("nuttcp") {
        return;
    }
    let peer = Peer::start("nuttcp", &["-S", "--nofork", "-P"]);
    // 80 × 8000 bit at 0.64 Mbit/s take a second, and its receive buffer has room for all of them.
    let (pace, finish) = (Some(BitRate::from_bits_per_sec(640_000)), Finish::Buffers(80));
    let (record, _, intervals) = measure(
        &UdpPlan { test: UdpTest { pace, finish, ..plan(peer.port).test }, ..plan(peer.port) },
        free_port(),
    );
    assert_eq!(record.failure, None);
    let told = intervals.iter().filter_map(|interval| interval.datagrams);
    let (lost, all) = told.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    // All but what came after the last of them.
    assert!(lost == 0 && (40..=80).contains(&all), "{intervals:?}");
}

#[test]
fn our_client_and_our_server_speak_nuttcp_over_udp_too() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let plan = UdpPlan {
                test: UdpTest { directions, ..plan(server.port(Via::Nuttcp)).test },
                ..plan(server.port(Via::Nuttcp))
            };
            let (record, _, _) = measure(&plan, free_port());
            assert_eq!(record.failure, None);
            assert_eq!(counts(&record), (200, 200, 0), "{directions:?}");
            assert_eq!(logged_bytes(&server.log(1)[0]), 200_000);
        }
        for (plan, part) in [
            (
                UdpPlan {
                    test: UdpTest { directions: TcpDirections::Both, ..plan(1).test },
                    ..plan(1)
                },
                "one way",
            ),
            (UdpPlan { test: UdpTest { streams: 2, ..plan(1).test }, ..plan(1) }, "one count"),
            (
                UdpPlan { test: UdpTest { omit_ns: 1_000_000, ..plan(1).test }, ..plan(1) },
                "from the start",
            ),
        ] {
            let (record, _, _) = measure(&plan, 1);
            let said = record.failure.expect("refused").to_string();
            assert!(said.contains(part), "{said}");
        }
    });
}

/// A client of UDP as bytes, up to the server's answer.
fn ask(server: &peers::Running<'_>, port: u16, interval: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.at(Via::Nuttcp)).expect("it listens");
    let line = format!(
        "HELO nuttcp v6.1.2\nbuflen = 100, nbuf = 10, win = 0, nstream = 1, rate = 1000, port = \
         {port}, trans = 1, braindead = 0, timeout = 0.000000, udp = 1, vers = 6.1.2, interval = \
         {interval}, reverse = 0, format = 2048\n"
    );
    stream.write_all(line.as_bytes()).expect("open");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("\nOK v7.0.1\n") {
        let mut bytes = [0; 256];
        let count = stream.read(&mut bytes).expect("an answer");
        assert!(count > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&bytes[..count]);
    }
    stream
}

fn data(number: u64, swapped: bool) -> Vec<u8> {
    let mut datagram = vec![b'x'; 100];
    let sent = number * 100;
    let sent = if swapped { sent.swap_bytes() } else { sent };
    datagram[24..32].copy_from_slice(&sent.to_ne_bytes());
    datagram
}

fn rest(mut stream: TcpStream) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("a summary and the end");
    said
}

#[test]
fn marks_may_be_lost_and_counts_may_have_the_other_byte_order() {
    with_server(ServerLimits::default(), |server| {
        for swapped in [false, true] {
            let port = free_port();
            let stream = ask(server, port, "1.000000");
            let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
            socket.connect((HERE, port)).expect("loopback");
            // No begin; the third of ten is lost, the ninth comes before the eighth.
            for number in [1, 2, 4, 5, 6, 7, 9, 8, 10] {
                socket.send(&data(number, swapped)).expect("the port is open");
            }
            socket.send(b"EOD3").expect("the port is open");
            let said = rest(stream);
            // 900 bytes of 1,048,576.
            assert!(said.starts_with("nuttcp-r: v7.0.1") || said.contains("DONE\n"), "{said}");
            assert!(said.contains("nuttcp-r: 0.0009 MB in "), "{said}");
            let log = server.log(1);
            assert!(log[0].contains("UDP: 900 B, "), "{log:?}");
            assert!(logged(&log[0]).0.ends_with("9 datagrams received, 1 lost"), "{log:?}");
        }
    });
}

#[test]
fn without_an_end_the_test_is_over_when_the_client_closes_its_half() {
    with_server(ServerLimits::default(), |server| {
        let port = free_port();
        let stream = ask(server, port, "0.000000");
        let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
        socket.connect((HERE, port)).expect("loopback");
        for datagram in [b"BOD0".to_vec(), b"BOD1".to_vec(), data(1, false), data(2, false)] {
            socket.send(&datagram).expect("the port is open");
        }
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let said = rest(stream);
        assert!(said.contains("nuttcp-r: 0.0002 MB in "), "{said}");
        let log = server.log(1);
        assert!(logged(&log[0]).0.ends_with("2 datagrams received, without an end"), "{log:?}");
        // The same where nothing came, as behind a filter.
        let stream = ask(server, free_port(), "0.000000");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let said = rest(stream);
        assert!(said.contains("nuttcp-r: 0.0000 MB in 0."), "{said}");
        let log = server.log(1);
        assert!(logged(&log[0]).0.ends_with("UDP: no datagram came"), "{log:?}");
    });
}

/// Waits until the socket at a port has its peer.
pub(crate) fn wait_until_connected(port: u16) {
    let shown = format!(":{port:04X}");
    // Local address, remote address, state; 01 is connected.
    let connected = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|local| local.ends_with(&shown)) && fields.get(3) == Some(&"01")
    };
    for _ in 0..1000 {
        let table = std::fs::read_to_string("/proc/net/udp").expect("Linux has it");
        if table.lines().any(connected) {
            return;
        }
        linerate_sys::clock::sleep(Duration::from_millis(10));
    }
    panic!("nobody took the stream to port {port}");
}

#[test]
fn datagrams_of_others_are_not_counted() {
    with_server(ServerLimits::default(), |server| {
        // At a port of its own each stream is heard from its first sender alone.
        let port = free_port();
        let stream = ask(server, port, "0.000000");
        let (client, other) = (UdpSocket::bind((HERE, 0)), UdpSocket::bind((HERE, 0)));
        let (client, other) = (client.expect("a free port"), other.expect("a free port"));
        client.send_to(b"BOD0", (HERE, port)).expect("the port is open");
        wait_until_connected(port);
        for number in 1..=5 {
            let _ = other.send_to(&data(number, false), (HERE, port));
            client.send_to(&data(number, false), (HERE, port)).expect("the port is open");
        }
        client.send_to(b"EOD1", (HERE, port)).expect("the port is open");
        drop(rest(stream));
        let log = server.log(1);
        assert!(log[0].contains("UDP: 500 B"), "{log:?}");
    });
}
