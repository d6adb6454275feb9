//! iperf 2 from either side, live against the `iperf` of this machine, and ttcp as bytes: the
//! bytes that both ends count agree. Rates are not judged.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::peers::{
    HERE, Peer, bytes, free_port, good, lacks, logged_bytes, measure, plan, run, with_server,
};
use linerate_core::record::{
    CaveatCode, Direction, Finish, RecordStatus, TcpDirections, TcpPlan, TcpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_server::admission::ServerLimits;
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, TcpOptions};

/// The byte column of what `-y C` prints, one for each stream; sums of streams (id -1) left out.
fn csv_bytes(printed: &str) -> Vec<u64> {
    let rows = printed.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.len() >= 9 && row[5] != "-1");
    let mut counts: Vec<u64> = rows.filter_map(|row| row[7].parse().ok()).collect();
    counts.sort_unstable();
    counts
}

/// Bytes of each line of the log, sorted.
fn counted(log: &[String]) -> Vec<u64> {
    let mut counts: Vec<u64> = log.iter().map(|line| logged_bytes(line)).collect();
    counts.sort_unstable();
    counts
}

#[test]
fn an_iperf_client_and_our_server_count_the_same_bytes() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        let cases: [(&[&str], usize); 7] = [
            (&["-t", "0.4"], 1),
            (&["-n", "1234567"], 1),
            (&["-n", "1M", "-l", "20"], 1),
            (&["-n", "1234567", "-R"], 1),
            (&["-t", "0.4", "-R"], 1),
            (&["-t", "0.4", "-P", "3"], 3),
            (&["-t", "0.4", "--trip-times"], 1),
        ];
        for (flags, streams) in cases {
            let fixed = ["-c", "127.0.0.1", "-p", &port, "-y", "C"];
            let printed = run("iperf", &[&fixed, flags].concat());
            let log = server.log(streams);
            assert_eq!(counted(&log), csv_bytes(&printed), "{flags:?}: {log:?}");
            assert!(log[0].starts_with("iperf 2."), "{log:?}");
        }
    });
}

#[test]
fn an_iperf_client_gets_its_data_back_at_once_and_afterwards_and_on_the_same_connection() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        for mode in ["-d", "-r", "--full-duplex"] {
            let back = free_port().to_string();
            let fixed = ["-c", "127.0.0.1", "-p", &port, "-t", "0.4", "-y", "C"];
            let flags: &[&str] = match mode {
                "--full-duplex" => &[mode],
                _ => &[mode, "-L", &back],
            };
            let printed = run("iperf", &[&fixed, flags].concat());
            let log = server.log(1);
            assert!(
                log[0].contains("up: 1 stream, ") && log[0].contains("; down: 1 stream, "),
                "{mode}: {log:?}"
            );
            let sum: u64 = csv_bytes(&printed).iter().sum();
            assert_eq!(logged_bytes(&log[0]), sum, "{mode}: {printed}");
        }
    });
}

#[test]
fn our_client_and_an_iperf_server_count_the_same_bytes() {
    if lacks("iperf") {
        return;
    }
    use TcpDirections::{Both, Down, Up};
    let time = Finish::TimeNs(400_000_000);
    let cases = [
        (Up, 1, time),
        (Up, 2, time),
        (Up, 1, Finish::Bytes(1_234_567)),
        (Up, 3, Finish::Bytes(1_000_000)),
        (Down, 1, time),
        (Down, 2, Finish::Bytes(2_000_001)),
        (Both, 1, time),
    ];
    for (directions, streams, finish) in cases {
        let peer = Peer::start("iperf", &["-s", "-y", "C", "-p"]);
        let plan = TcpPlan {
            test: TcpTest { directions, streams, finish, ..plan(Via::Iperf2, peer.port).test },
            ..plan(Via::Iperf2, peer.port)
        };
        let record = good(&plan);
        // The server prints its lines a moment after the connections have ended.
        let both = if directions == Both { 2 } else { 1 };
        let lines = usize::from(streams) * both;
        peer.wait_for(|printed| csv_bytes(printed).len() >= lines);
        let printed = peer.end();
        let of = |direction| match directions {
            Both => bytes(&record, direction),
            Up if direction == Direction::Up => bytes(&record, direction),
            Down if direction == Direction::Down => bytes(&record, direction),
            _ => 0,
        };
        let told: u64 = csv_bytes(&printed).iter().sum();
        let ours: u64 = match directions {
            Up => of(Direction::Up),
            // A test by time reads on for what was still on the way, which is not in its span.
            _ => record
                .flows
                .iter()
                .flat_map(|flow| [&flow.sender, &flow.receiver])
                .flatten()
                .map(|end| end.bytes)
                .sum(),
        };
        assert_eq!(ours, told, "{directions:?} {streams} {finish:?}: {printed}");
        if directions == Up {
            assert_eq!(record.ends[1].version.as_deref(), Some("iperf 2.1.8"));
        }
    }
}

#[test]
fn the_figures_of_a_sender_alone_come_with_a_word_of_warning_and_its_rows_with_its_pace() {
    if lacks("iperf") {
        return;
    }
    let peer = Peer::start("iperf", &["-s", "-p"]);
    let pace = Some(BitRate::from_bits_per_sec(20_000_000));
    let record = good(&TcpPlan {
        test: TcpTest { pace, omit_ns: 100_000_000, ..plan(Via::Iperf2, peer.port).test },
        ..plan(Via::Iperf2, peer.port)
    });
    assert!(record.caveats.iter().any(|caveat| caveat.code == CaveatCode::OneSided));
    let flow = &record.flows[0];
    assert!(flow.receiver.is_none() && flow.sender.as_ref().is_some_and(|end| end.span_ns > 0));
    // 20 Mbit/s for 0.4 s are 1,000,000 bytes. A pace is never beaten but by the write of 128 KiB
    // that is under way at either end; a host that is busy with others may stay below it.
    let counted = bytes(&record, Direction::Up);
    assert!((500_000..=1_000_000 + 2 * 131_072).contains(&counted), "{counted}");
    let rows = record.series.iter().find(|series| series.metric.key() == "goodput_bps");
    assert!(rows.is_some_and(|rows| !rows.values.is_empty()), "{:?}", record.series);
}

#[test]
fn our_client_and_our_server_speak_iperf_2_with_each_other_too() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both] {
            let plan = TcpPlan {
                test: TcpTest { directions, ..plan(Via::Iperf2, server.port(Via::Iperf2)).test },
                ..plan(Via::Iperf2, server.port(Via::Iperf2))
            };
            let record = good(&plan);
            let log = server.log(1);
            let ends = record.flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]);
            let ours: u64 = ends.flatten().map(|end| end.bytes).sum();
            assert_eq!(ours, logged_bytes(&log[0]), "{directions:?}: {log:?}");
        }
    });
}

/// What the 1991 ttcp sends: its pattern, no header (-t -s -l 8192 -n 16).
#[test]
fn a_plain_ttcp_is_counted_to_the_byte() {
    with_server(ServerLimits::default(), |server| {
        let mut stream = TcpStream::connect(server.at(Via::Iperf2)).expect("it listens");
        let buffer: Vec<u8> = (b' '..=b'~').cycle().take(8192).collect();
        for _ in 0..16 {
            stream.write_all(&buffer).expect("it reads");
        }
        drop(stream);
        let log = server.log(1);
        assert!(log[0].starts_with("ttcp or plain data: up: 1 stream, 131.1 kB"), "{log:?}");
    });
}

/// A receiving ttcp: accepts, reads to the end, counts (-r -s).
#[test]
fn our_ttcp_client_sends_the_pattern_and_every_byte_of_it() {
    let listener = TcpListener::bind((HERE, 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).map(|_| all)
    });
    let finish = Finish::Buffers(20);
    let record = good(&TcpPlan {
        test: TcpTest { finish, buffer_bytes: 61_440, ..plan(Via::Ttcp, port).test },
        ..plan(Via::Ttcp, port)
    });
    let all = reader.join().expect("no panic").expect("it reads to the end");
    assert_eq!(all.len(), 20 * 61_440);
    assert_eq!(bytes(&record, Direction::Up), 20 * 61_440);
    // 61,440 is 646 times 95 characters and 70 more: the pattern begins anew with each buffer.
    assert_eq!(&all[..4], b" !\"#");
    assert_eq!(&all[61_438..61_444], b"de !\"#");
    let (record, _) = measure(&TcpPlan {
        test: TcpTest { directions: TcpDirections::Down, ..plan(Via::Ttcp, port).test },
        ..plan(Via::Ttcp, port)
    });
    assert!(record.failure.is_some_and(|failure| failure.to_string().contains("only receives")));
}

/// Bytes of the first client.
const FIRST: usize = 64 << 20;

#[test]
fn another_address_is_sent_away_while_a_test_runs_and_the_same_one_is_not() {
    with_server(ServerLimits::default(), |server| {
        let to = server.at(Via::Iperf2);
        let mut first = TcpStream::connect(to).expect("it listens");
        // Enough to be no header.
        let few = b" !\"#$%&'".repeat(32);
        // More than the buffers of a connection hold: when it is written the server is reading.
        let pattern = few.repeat(FIRST / few.len());
        first.write_all(&pattern).expect("open");
        let mut same = TcpStream::connect(to).expect("it listens");
        same.write_all(&few).expect("open");
        let elsewhere = Some([127, 0, 0, 2].into());
        let wait = Duration::from_secs(5);
        let other = tcp::connect(to, elsewhere, &TcpOptions::default(), wait).expect("it listens");
        (&other).write_all(&few).expect("open");
        let refused = server.log(1);
        assert!(refused[0].contains("1 of 1 tests are running"), "{refused:?}");
        let reset = (&other).read(&mut [0; 1]);
        assert!(!matches!(reset, Ok(count) if count > 0), "{reset:?}");
        drop((first, same));
        assert_eq!(counted(&server.log(2)), [256, FIRST as u64]);
        // Both are over: the place is free.
        let other = tcp::connect(to, elsewhere, &TcpOptions::default(), wait).expect("it listens");
        (&other).write_all(&few).expect("open");
        drop(other);
        assert_eq!(counted(&server.log(1)), [256]);
    });
}

#[test]
fn a_latency_test_gets_every_request_back() {
    if lacks("iperf") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = server.port(Via::Iperf2).to_string();
        for flags in [&[][..], &["-l", "5000"], &["--bounceback-hold", "5"]] {
            let fixed = ["-c", "127.0.0.1", "-p", &port, "--bounceback", "-t", "1"];
            let printed = run("iperf", &[&fixed, flags].concat());
            let log = server.log(1);
            // Ten a second: `10=0.096/0.046/0.441/0.122 ms`; the first is of the setting up.
            let columns = printed.split_whitespace().filter_map(|word| word.split_once('='));
            let told = columns.filter_map(|(count, times)| {
                let mean: f64 = times.split('/').next()?.parse().ok()?;
                Some((count.parse::<u32>().ok()?, mean))
            });
            let (count, mean_ms) = told.max_by_key(|(count, _)| *count).expect("a row of times");
            assert!(count >= 5, "{printed}");
            // A hold is in the time of the round trip.
            let least = if flags.len() == 2 && flags[1] == "5" { 5.0 } else { 0.001 };
            assert!(mean_ms >= least, "{mean_ms}: {printed}");
            assert!(log[0].starts_with("iperf bounce-back: "), "{log:?}");
        }
    });
}

#[test]
fn garbage_and_silence_cost_seconds_and_disturb_nobody() {
    let limits = ServerLimits { tests: 4, ..ServerLimits::default() };
    with_server(limits, |server| {
        let begin = monotonic();
        let to = server.at(Via::Iperf2);
        let mut open = Vec::new();
        for seed in 0..60_u32 {
            let mut stream = TcpStream::connect(to).expect("it listens");
            // A header that asks for more than it brings, an impossible one, half a word, nothing.
            let bytes: &[u8] = match seed % 4 {
                0 => &[0x40, 0x01, 0x01, 0xfe],
                1 => &[0x40, 0x01, 0x00, 0x02, 9, 9, 9, 9],
                2 => &[0x44],
                _ => &[],
            };
            let _ = stream.write_all(bytes);
            open.push(stream);
        }
        let good = good(&plan(Via::Iperf2, to.port()));
        assert!(bytes(&good, Direction::Up) > 0);
        let log = server.log(61);
        // Each costs five seconds at most, all at once.
        assert!(monotonic().nanos_since(begin) < 40_000_000_000);
        let bad = log.iter().filter(|line| line.contains("first bytes of"));
        assert_eq!(bad.count(), 45, "{log:?}");
        let short = log.iter().filter(|line| line.contains("a header of 1 bytes"));
        assert_eq!(short.count(), 15, "{log:?}");
    });
}

#[test]
fn a_server_that_dies_while_it_sends_is_no_end_of_the_test() {
    // Half a second was asked for, or a million bytes: 100,000 bytes, then the end of a process.
    for finish in [Finish::TimeNs(500_000_000), Finish::Bytes(1_000_000)] {
        let listener = TcpListener::bind((HERE, 0)).expect("a free port");
        let plan = plan(Via::Iperf2, listener.local_addr().expect("bound").port());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                // All of the header, so that closing sends an end and no reset.
                let mut header = [0; 4096];
                assert!(stream.read(&mut header).expect("a header") >= 24);
                stream.write_all(&[7; 100_000]).expect("the client is there");
            });
            let (record, _) = measure(&TcpPlan {
                test: TcpTest { directions: TcpDirections::Down, finish, ..plan.test },
                ..plan
            });
            let failure = record.failure.as_ref().expect("its end never came");
            assert!(failure.reason.contains("its streams ended"), "{finish:?}: {failure}");
            assert_eq!((record.status, record.exit_code()), (RecordStatus::Partial, 3));
            assert_eq!(bytes(&record, Direction::Down), 100_000, "what came is kept");
        });
    }
}
