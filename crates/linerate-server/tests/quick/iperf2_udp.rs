//! UDP of iperf 2 from either side, live against the `iperf` of this machine, and as bytes in the
//! manner of 2.0.5; ttcp's UDP as bytes. What both ends count agrees.

use std::net::UdpSocket;
use std::time::Duration;

use crate::peers::{self, HERE, Peer, lacks, run, with_server, with_server_trusting};
use linerate_core::record::{
    Direction, Event, Finish, Record, ServerPlan, TcpDirections, Tool, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf2::AddressValidation;
use linerate_engine::throughput;
use linerate_proto::iperf2::{ClientHeader, Iperf2Amount, Mode, UdpReport, UdpSender};
use linerate_server::admission::ServerLimits;
use linerate_sys::stop::Stop;

fn plan(port: u16) -> UdpPlan {
    UdpPlan {
        server: ServerPlan::new(Some(Via::Iperf2), HERE.to_string(), port),
        test: UdpTest {
            finish: Finish::TimeNs(400_000_000),
            interval_ns: 100_000_000,
            size_bytes: Some(1000),
            pace: Some(BitRate::from_bits_per_sec(20_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

fn measure(plan: &UdpPlan) -> Record {
    let mut watch = |_: &Event| {};
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    throughput::run_udp(plan, &mut context)
}

/// The datagrams that each end of a stream counted.
fn counts(record: &Record) -> Vec<(u64, u64, u64)> {
    let flows = record.flows.iter().filter_map(|flow| {
        let sent = flow.sender.as_ref()?.sent_datagrams.as_ref()?.count;
        let received = &flow.receiver.as_ref()?.received_datagrams.as_ref()?.all;
        Some((sent, received.received, received.lost))
    });
    flows.collect()
}

/// Lost and total of the rows that `iperf` prints: `0/449 (0%)`.
fn shares(printed: &str) -> Vec<(u64, u64)> {
    let words = printed.split_whitespace().filter_map(|word| word.split_once('/'));
    words.filter_map(|(lost, all)| Some((lost.parse().ok()?, all.parse().ok()?))).collect()
}

#[test]
fn an_iperf_server_reports_every_datagram_that_we_sent() {
    if lacks("iperf") {
        return;
    }
    // 50 datagrams: however late iperf reads, its socket has room for 92 of 1000 bytes
    // (net.core.rmem_default, 212,992 bytes, of which each takes 2304).
    let pace = Some(BitRate::from_bits_per_sec(1_000_000));
    for finish in [Finish::TimeNs(400_000_000), Finish::Buffers(50)] {
        let peer = Peer::start_udp("iperf", &["-s", "-u", "-p"]);
        let record = measure(&UdpPlan {
            test: UdpTest { finish, pace, ..plan(peer.port).test },
            ..plan(peer.port)
        });
        assert_eq!(record.failure, None);
        let counts = counts(&record);
        assert_eq!(counts.len(), 1, "{record:#?}");
        peer.wait_for(|printed| !shares(printed).is_empty());
        let printed = peer.end();
        // The end counts as a datagram.
        let told: u64 = shares(&printed).iter().map(|(_, all)| all - 1).max().unwrap_or(0);
        let (sent, received, lost) = counts[0];
        assert_eq!((sent, received + lost), (told, sent), "{printed}");
        assert_eq!(lost, 0, "{printed}");
    }
}

#[test]
fn an_iperf_client_reads_our_report() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        for (flags, streams) in [(&["-t", "0.4"][..], 1), (&["-n", "20000", "-P", "2"], 2)] {
            let fixed = ["-u", "-c", "127.0.0.1", "-p", &port, "-b", "10M"];
            let printed = run("iperf", &[&fixed, flags].concat());
            assert_eq!(printed.matches("Server Report:").count(), streams, "{printed}");
            assert!(!printed.contains("WARNING"), "{printed}");
            let log = server.log(streams);
            for (lost, all) in shares(&printed).into_iter().filter(|(_, all)| *all > 0) {
                let said = format!("{lost} of {all} datagrams lost");
                assert!(log.iter().any(|line| line.contains(&said)), "{said}: {log:?}");
            }
        }
    });
}

fn socket(server: &peers::Running<'_>) -> UdpSocket {
    let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
    socket.connect(server.at(Via::Iperf2)).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
    socket
}

/// A datagram of 2.0.5: the number in 32 bits, the time, no header.
fn old(number: i32) -> Vec<u8> {
    let mut datagram = vec![b'0'; 400];
    datagram[..36].fill(0);
    datagram[..4].copy_from_slice(&number.to_be_bytes());
    datagram[4..8].copy_from_slice(&1000_u32.to_be_bytes());
    datagram[8..12].copy_from_slice(&(number.unsigned_abs() * 1000).to_be_bytes());
    datagram
}

#[test]
fn a_client_of_2_0_5_gets_the_report_that_it_can_read() {
    with_server(ServerLimits::default(), |server| {
        let client = socket(server);
        for number in (0..50).filter(|number| ![7, 8, 30].contains(number)) {
            client.send(&old(number)).expect("loopback");
        }
        let mut answer = [0; 256];
        for _ in 0..2 {
            client.send(&old(-50)).expect("loopback");
            let length = client.recv(&mut answer).expect("a report");
            // 12 bytes of a datagram and 40 of the report, nothing more.
            assert_eq!(length, 52);
        }
        let report = UdpReport::parse(&answer[..52]).expect("a report");
        // 47 came, and the end.
        assert_eq!((report.datagrams, report.lost, report.bytes), (50, 3, 48 * 400));
        let log = server.log(1);
        assert!(log[0].contains("3 of 50 datagrams lost"), "{log:?}");
    });
}

#[test]
fn a_ttcp_is_counted_between_its_marks_and_gets_no_answer() {
    with_server(ServerLimits::default(), |server| {
        let client = socket(server);
        let buffer: Vec<u8> = (b' '..=b'~').cycle().take(1024).collect();
        client.send(&buffer[..4]).expect("loopback");
        for _ in 0..100 {
            client.send(&buffer).expect("loopback");
        }
        for _ in 0..5 {
            client.send(&buffer[..4]).expect("loopback");
        }
        let log = server.log(1);
        assert!(log[0].starts_with("ttcp UDP: 102.4 kB"), "{log:?}");
        client.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        assert!(client.recv(&mut [0; 64]).is_err());
    });
}

#[test]
fn nobody_gets_more_than_he_sent_and_silence_ends_a_test() {
    with_server(ServerLimits::default(), |server| {
        let client = socket(server);
        // The end of nothing, again and again: 3 × 16 bytes do not earn 52.
        for _ in 0..3 {
            client.send(&old(-1)[..16]).expect("loopback");
        }
        client.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        assert!(client.recv(&mut [0; 256]).is_err());
        let log = server.log(1);
        assert!(log[0].contains("16 B"), "what comes behind the end is the end: {log:?}");
        let silent = socket(server);
        for number in 0..3 {
            silent.send(&old(number)).expect("loopback");
        }
        let log = server.log(1);
        assert!(log[0].contains("without an end"), "{log:?}");
    });
}

#[test]
fn ends_that_are_said_again_earn_no_more_than_they_bring() {
    with_server(ServerLimits::default(), |server| {
        let client = socket(server);
        for number in 0..3 {
            client.send(&old(number)).expect("loopback");
        }
        for _ in 0..100 {
            client.send(&old(-3)[..12]).expect("loopback");
        }
        // 1200 bytes and 100 ends of 12 are 2400: 46 reports of 52 at most.
        client.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        let reports = std::iter::from_fn(|| client.recv(&mut [0; 256]).ok()).count();
        assert!((1..=46).contains(&reports), "{reports}");
    });
}

/// Bytes that come to a socket until it is silent for a moment.
fn taken(socket: &UdpSocket) -> usize {
    socket.set_read_timeout(Some(Duration::from_millis(400))).expect("a time-out");
    std::iter::from_fn(|| socket.recv(&mut [0; 2048]).ok()).sum()
}

#[test]
fn one_datagram_makes_nobody_a_target() {
    with_server_trusting(AddressValidation::nobody(), ServerLimits::default(), |server| {
        for mode in [Mode::Reverse, Mode::FullDuplex, Mode::Dual, Mode::TradeOff] {
            let (client, target) = (socket(server), UdpSocket::bind((HERE, 0)).expect("free"));
            let header = ClientHeader {
                listen_port: target.local_addr().expect("bound").port(),
                rate_bps: 100_000_000_000,
                ..ClientHeader::new(mode, Iperf2Amount::Centiseconds(6_000))
            };
            let mut sender = UdpSender::new(header);
            let mut datagram = sender.buffer(1470);
            sender.stamp_datagram(&mut datagram, 1);
            client.send(&datagram).expect("loopback");
            let (here, there) = (taken(&client), taken(&target));
            assert_eq!((here, there), (0, 0), "{mode:?}");
            if mode == Mode::Reverse {
                assert!(server.log(1)[0].contains("--udp-reverse-to"));
            }
        }
    });
}

#[test]
fn who_proves_no_address_is_sent_three_times_what_came_and_no_more() {
    with_server_trusting(AddressValidation::nobody(), ServerLimits::default(), |server| {
        for mode in [Mode::FullDuplex, Mode::Dual, Mode::TradeOff] {
            let (client, target) = (socket(server), UdpSocket::bind((HERE, 0)).expect("free"));
            let header = ClientHeader {
                listen_port: target.local_addr().expect("bound").port(),
                rate_bps: 100_000_000_000,
                ..ClientHeader::new(mode, Iperf2Amount::Centiseconds(6_000))
            };
            let mut sender = UdpSender::new(header);
            let mut datagram = sender.buffer(1470);
            for _ in 0..20 {
                sender.stamp_datagram(&mut datagram, 1);
                client.send(&datagram).expect("loopback");
            }
            sender.stamp_end(&mut datagram, 1);
            client.send(&datagram).expect("loopback");
            let all = taken(&target) + taken(&client);
            // 3 × 21 datagrams less 6: 57 of data, then 3 ends, which nobody answers; on a stream
            // of its own another one before, and its report has 128 bytes.
            let datagrams = if mode == Mode::FullDuplex { 57 + 3 } else { 1 + 57 + 3 };
            assert_eq!(all, datagrams * 1470 + 128, "{mode:?}");
            server.log(1);
        }
    });
}

#[test]
fn an_iperf_that_sends_itself_is_sent_data_without_proof_and_for_r_its_network_is_named() {
    if lacks("iperf") {
        return;
    }
    // 50 datagrams, in these tests: where a busy host holds iperf up, 92 of 1000 bytes fill the
    // buffer of its socket (212,992 bytes, each takes 2304).
    let fixed = ["-u", "-c", "127.0.0.1", "-b", "10M", "-n", "50000", "-l", "1000", "-y", "C"];
    with_server_trusting(AddressValidation::nobody(), ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        for mode in ["--full-duplex", "-d", "-r"] {
            let back = peers::free_port().to_string();
            let mut flags = vec!["-p", &port, mode];
            if mode != "--full-duplex" {
                flags.extend(["-L", &back]);
            }
            let printed = run("iperf", &[&fixed[..], &flags].concat());
            assert!(csv(&printed).contains(&(51_000, 51)), "{mode}: {printed}");
            server.log(1);
        }
    });
    let trust =
        AddressValidation::nobody().with_networks(&["127.0.0.0/8=2M".parse().expect("a network")]);
    with_server_trusting(trust, ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        run("iperf", &[&fixed[..], &["-p", &port, "-R"]].concat());
        let log = server.log(1);
        // 50 datagrams at 2 Mbit/s, the network's rate and not the 10 asked, take 0.196 s from the
        // first to the last; a busy host is later, never earlier.
        let (_, rest) = log[0].split_once("sent 51.00 kB in ").expect("what was sent");
        let span_s: f64 = rest.split(' ').next().and_then(|it| it.parse().ok()).expect("a span");
        assert!((0.18..30.0).contains(&span_s), "{log:?}");
    });
}

#[test]
fn our_client_proves_its_address_and_is_sent_what_it_asks() {
    with_server_trusting(AddressValidation::nobody(), ServerLimits::default(), |server| {
        for (streams, size) in [(1, 1000), (3, 1000), (2, 64)] {
            let plan = UdpPlan {
                test: UdpTest {
                    directions: TcpDirections::Down,
                    streams,
                    size_bytes: Some(size),
                    finish: Finish::Buffers(100 * u64::from(streams)),
                    ..plan(server.port(Via::Iperf2)).test
                },
                ..plan(server.port(Via::Iperf2))
            };
            let record = measure(&plan);
            assert_eq!(record.failure, None, "{streams} of {size}");
            let all = vec![(Some(101), Some(101)); usize::from(streams)];
            assert_eq!(ends(&record, Direction::Down), all);
            server.log(streams.into());
        }
    });
}

#[test]
fn a_server_that_is_not_there_leaves_what_was_sent() {
    let silent = UdpSocket::bind((HERE, 0)).expect("a free port");
    let port = silent.local_addr().expect("bound").port();
    let record = measure(&UdpPlan {
        test: UdpTest { finish: Finish::Buffers(200), ..plan(port).test },
        ..plan(port)
    });
    let said = record.failure.expect("nobody reports").to_string();
    assert!(said.contains("no report came"), "{said}");
    let sent = record.flows[0].sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    assert_eq!(sent.map(|sent| sent.count), Some(200));
    let directions = TcpDirections::Down;
    let record =
        measure(&UdpPlan { test: UdpTest { directions, ..plan(port).test }, ..plan(port) });
    let said = record.failure.expect("nobody sends").to_string();
    assert!(said.contains("no data came"), "{said}");
}

/// The datagrams of a direction: those that its sender counted and those that its receiver did.
fn ends(record: &Record, direction: Direction) -> Vec<(Option<u64>, Option<u64>)> {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction);
    let both = flows.map(|flow| {
        let sent = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
        let received = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
        (sent.map(|it| it.count), received.map(|it| it.all.received))
    });
    both.collect()
}

/// Bytes and datagrams of the rows that `-y C` prints; datagrams are -1 in those of senders.
fn csv(printed: &str) -> Vec<(u64, i64)> {
    let rows = printed.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.len() >= 12);
    let counts = rows.filter_map(|row| Some((row[7].parse().ok()?, row[11].parse().ok()?)));
    let mut counts: Vec<(u64, i64)> = counts.collect();
    counts.sort_unstable();
    counts
}

#[test]
fn an_iperf_server_that_sends_is_counted_to_the_last_datagram() {
    if lacks("iperf") {
        return;
    }
    use TcpDirections::{Both, Down};
    // 2.1.8 misses streams that open while another does; they are asked for again.
    for (directions, streams) in [(Down, 1), (Down, 2), (Both, 1)] {
        let peer = Peer::start_udp("iperf", &["-s", "-u", "-y", "C", "-p"]);
        let finish = Finish::Buffers(50 * u64::from(streams));
        let record = measure(&UdpPlan {
            test: UdpTest { directions, streams, finish, ..plan(peer.port).test },
            ..plan(peer.port)
        });
        assert_eq!(record.failure, None, "{directions:?}");
        // 50 of data and the end, in each stream.
        let all = vec![(Some(51), Some(51)); usize::from(streams)];
        assert_eq!(ends(&record, Direction::Down), all, "{directions:?} {streams}");
        let rows = usize::from(streams) * if directions == Both { 2 } else { 1 };
        peer.wait_for(|printed| csv(printed).len() >= rows);
        let printed = peer.end();
        let rows = csv(&printed);
        assert!(rows.contains(&(51_000, -1)), "what it sent: {printed}");
        if directions == Both {
            assert_eq!(ends(&record, Direction::Up), [(Some(50), None)]);
            assert!(rows.contains(&(51_000, 51)), "what it took: {printed}");
        }
    }
}

#[test]
fn an_iperf_client_gets_what_it_asked_a_server_to_send() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        for mode in ["-R", "--full-duplex", "-d", "-r", "-R --trip-times"] {
            let back = peers::free_port().to_string();
            let fixed = ["-u", "-c", "127.0.0.1", "-p", &port, "-b", "10M", "-n", "50000"];
            let mut flags: Vec<&str> = mode.split(' ').collect();
            if matches!(mode, "-d" | "-r") {
                flags.extend(["-L", &back]);
            }
            let printed = run("iperf", &[&fixed[..], &["-l", "1000", "-y", "C"], &flags].concat());
            let log = server.log(1);
            let sent = "sent 51.00 kB in ";
            assert!(log.iter().any(|line| line.contains(sent)), "{mode}: {log:?}");
            let rows = csv(&printed);
            // With trip times 2.1.8 takes the first one for a header alone, and for lost, from its
            // own server too.
            let bytes = if mode.contains("trip") { 50_000 } else { 51_000 };
            assert!(rows.contains(&(bytes, 51)), "{mode}: {printed}");
            let both_report = matches!(mode, "-d" | "-r");
            let reported = log.iter().any(|line| line.contains(", 0 of 51 lost"));
            assert_eq!(reported, both_report, "{mode}: {log:?}");
            let received = log.iter().any(|line| line.contains(": 51.00 kB in "));
            assert_eq!(received, !mode.starts_with("-R"), "{mode}: {log:?}");
        }
    });
}

#[test]
fn our_client_and_our_server_send_both_ways_over_udp_too() {
    with_server(ServerLimits::default(), |server| {
        use TcpDirections::{Both, Down, Up};
        for (directions, streams) in [(Up, 2), (Down, 3), (Both, 2)] {
            let finish = Finish::Buffers(100 * u64::from(streams));
            let port = server.port(Via::Iperf2);
            let record = measure(&UdpPlan {
                test: UdpTest { directions, streams, finish, ..plan(port).test },
                ..plan(port)
            });
            assert_eq!(record.failure, None, "{directions:?}");
            let downs = ends(&record, Direction::Down);
            assert!(downs.iter().all(|ends| *ends == (Some(101), Some(101))), "{downs:?}");
            let log = server.log(streams.into());
            assert_eq!(log.len(), usize::from(streams), "{log:?}");
        }
    });
}

#[test]
fn trip_times_are_the_delays_that_both_ends_tell() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        let fixed = ["-u", "-c", "127.0.0.1", "-p", &port, "-b", "10M", "-n", "100000"];
        let printed = run("iperf", &[&fixed[..], &["-l", "1000", "-e", "--trip-times"]].concat());
        let log = server.log(1);
        // `0.019/0.002/0.048/0.006 ms` of the report, `one-way 2 to 48 us, 19 in the mean`.
        let (_, rest) = printed.rsplit_once("%) ").unwrap_or_else(|| panic!("{printed}"));
        let delays = rest.split(' ').next().unwrap_or("").split('/');
        let delays: Vec<f64> = delays.filter_map(|delay| delay.parse().ok()).collect();
        let [mean, min, max, _] = delays[..] else { panic!("{printed}") };
        let us = |ms: f64| (ms * 1000.0).round();
        let said = format!("one-way {} to {} us, ", us(min), us(max));
        let (_, rest) = log[0].split_once(&said).unwrap_or_else(|| panic!("{said}: {log:?}"));
        let told: f64 = rest.split(' ').next().and_then(|word| word.parse().ok()).expect("a mean");
        // Both round to whole microseconds.
        assert!((told - mean * 1000.0).abs() < 1.5, "{mean} ms: {log:?}");
    });
}
