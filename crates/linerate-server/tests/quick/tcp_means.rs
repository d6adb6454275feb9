//! The ways of moving TCP data over loopback, both ends in this process: every one delivers the
//! same bytes, both ends say what they did, planted damage is found. Rates are not judged.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

use linerate_core::record::{
    CaveatCode, Contents, Direction, Fault, Finish, Flow, FlowEnd, Means, MetricId, ReceiveWith,
    Record, SendWith, ServerPlan, Stat, TcpDirections, TcpPlan, TcpTest, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;

/// Runs `test` against a server on a free port of `host`.
fn with_server(host: &str, limits: ServerLimits, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::new(host.parse().expect("an address"), 0);
    let options = ServeOptions { local, limits, foreign: Foreign::without_ports() };
    let server = MeasurementServer::bind(&options).expect("a free port");
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running =
            scope.spawn(|| server.run(&stop, &|entry: &LogEntry<'_>| drop(format!("{entry:?}"))));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(address)));
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// 40 buffers of 65,536 bytes: 2,621,440 in each direction.
const AMOUNT: f64 = 2_621_440.0;

fn plan(server: SocketAddr, means: Means) -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(None, server.ip().to_string(), server.port()),
        test: TcpTest {
            finish: Finish::Buffers(40),
            buffer_bytes: 65_536,
            congestion_control: Some("cubic".to_owned()),
            means,
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn measure(plan: &TcpPlan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    throughput::run_tcp(plan, &mut context)
}

fn good(plan: &TcpPlan) -> Record {
    let record = measure(plan);
    assert_eq!(record.failure, None, "{plan:?}");
    record
}

fn bytes(record: &Record, direction: Direction) -> f64 {
    let found = record.summary_value(MetricId::Bytes, Stat::Value, Some(direction));
    found.unwrap_or_else(|| panic!("no bytes {direction:?} in {record:#?}"))
}

fn ends(flow: &Flow) -> (&FlowEnd, &FlowEnd) {
    let told = "both ends report";
    (flow.sender.as_ref().expect(told), flow.receiver.as_ref().expect(told))
}

#[test]
fn every_way_of_moving_data_delivers_every_byte_and_says_what_it_did_with_them() {
    use Contents::{Copied, Untouched};
    let sends = [
        (SendWith::Write, "write", Copied),
        (SendWith::Sendfile, "sendfile", Untouched),
        (SendWith::Vmsplice, "vmsplice", Untouched),
    ];
    let receives = [
        (ReceiveWith::Read, "read", Copied),
        (ReceiveWith::Trunc, "trunc", Untouched),
        (ReceiveWith::Splice, "splice", Untouched),
    ];
    for host in ["127.0.0.1", "::1"] {
        with_server(host, ServerLimits::default(), |server| {
            for ((send_with, sent, left), (receive_with, taken, came)) in
                sends.iter().flat_map(|send| receives.map(|receive| (*send, receive)))
            {
                let means = Means { send_with, receive_with, ..Means::default() };
                let directions = TcpDirections::Both;
                let record = good(&TcpPlan {
                    test: TcpTest { directions, streams: 2, ..plan(server, means.clone()).test },
                    ..plan(server, means)
                });
                assert_eq!(bytes(&record, Direction::Up), AMOUNT, "{sent} to {taken}");
                assert_eq!(bytes(&record, Direction::Down), AMOUNT, "{sent} to {taken}");
                for (sender, receiver) in record.flows.iter().map(ends) {
                    assert_eq!((sender.technique.as_str(), sender.contents), (sent, Some(left)));
                    assert!(receiver.technique.starts_with(taken), "{}", receiver.technique);
                    assert_eq!(receiver.contents, Some(came));
                    assert!(!sender.cpus_seen.is_empty() && !receiver.cpus_seen.is_empty());
                    assert_eq!((sender.pinned_cpu, receiver.pinned_cpu), (None, None));
                }
            }
        });
    }
}

#[test]
fn data_threads_stay_on_the_processors_that_were_asked_for() {
    let cpu = linerate_sys::sched::allowed_cpus()[0];
    with_server("127.0.0.1", ServerLimits::default(), |server| {
        let (client_cpus, server_cpus) = (vec![cpu], vec![cpu]);
        let means = Means { client_cpus, server_cpus, ..Means::default() };
        let record = good(&TcpPlan {
            test: TcpTest { streams: 3, ..plan(server, means.clone()).test },
            ..plan(server, means)
        });
        for (sender, receiver) in record.flows.iter().map(ends) {
            for end in [sender, receiver] {
                assert_eq!((end.pinned_cpu, end.cpus_seen.as_slice()), (Some(cpu), &[cpu][..]));
            }
        }
        // A processor that no machine has leaves the thread free, and the record says so.
        let means = Means { client_cpus: vec![8191], ..Means::default() };
        let record = good(&plan(server, means));
        assert_eq!(ends(&record.flows[0]).0.pinned_cpu, None);
    });
}

#[test]
fn zerocopy_over_loopback_is_told_as_the_copy_that_it_was() {
    with_server("127.0.0.1", ServerLimits::default(), |server| {
        let means = Means { send_with: SendWith::Zerocopy, ..Means::default() };
        let record = good(&plan(server, means));
        assert_eq!(bytes(&record, Direction::Up), AMOUNT);
        let (sender, _) = ends(&record.flows[0]);
        let sends = sender.zero_copy_sends.expect("the kernel tells");
        assert!(sends.completed >= 1 && sends.copied == sends.completed, "{sends:?}");
        assert_eq!(sender.contents, Some(Contents::Copied));
        let caveat = |code| record.caveats.iter().find(|caveat| caveat.code == code);
        let caveat = caveat(CaveatCode::ZeroCopyCopied).expect("it was a copy");
        assert!(caveat.detail.contains("after all"), "{caveat}");
    });
}

#[test]
fn trials_choose_once_and_leave_the_counts_of_the_test_alone() {
    with_server("127.0.0.1", ServerLimits { tests: 1, ..ServerLimits::default() }, |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let plan = TcpPlan {
                fast: true,
                test: TcpTest { directions, ..plan(server, Means::default()).test },
                ..plan(server, Means::default())
            };
            let record = good(&plan);
            assert_eq!(record.summary_value(MetricId::Bytes, Stat::Value, None), Some(AMOUNT));
            let chosen: Vec<_> = record.trials.iter().filter(|trial| trial.chosen).collect();
            let [chosen] = chosen.as_slice() else { panic!("one: {:#?}", record.trials) };
            assert_ne!(chosen.means.send_with, SendWith::Zerocopy);
            assert!(chosen.goodput_bps.is_some_and(|rate| rate > 0.0));
            let (sender, receiver) = ends(&record.flows[0]);
            assert_eq!(sender.technique, chosen.means.send_with.name());
            assert!(receiver.technique.starts_with(chosen.means.receive_with.name()));
            let (client, server) = match directions {
                TcpDirections::Down => (receiver, sender),
                _ => (sender, receiver),
            };
            assert_eq!(client.pinned_cpu, chosen.means.client_cpus.first().copied());
            assert_eq!(server.pinned_cpu, chosen.means.server_cpus.first().copied());
        }
        // The place is free again.
        good(&plan(server, Means::default()));
    });
}

#[test]
fn a_clean_path_is_verified_to_the_last_byte() {
    with_server("::1", ServerLimits::default(), |server| {
        let means = Means { verify_seed: Some(9), ..Means::default() };
        let directions = TcpDirections::Both;
        let record = good(&TcpPlan {
            test: TcpTest { streams: 2, directions, ..plan(server, means.clone()).test },
            ..plan(server, means)
        });
        for direction in [Direction::Up, Direction::Down] {
            let flows = record.flows.iter().filter(|flow| flow.direction == direction);
            let found = flows.map(|flow| ends(flow).1.verified.expect("asked for"));
            let sums = found.fold((0, 0), |sum, one| (sum.0 + one.bytes, sum.1 + one.wrong_bytes));
            assert_eq!(sums, (AMOUNT as u64, 0));
        }
        assert_eq!(ends(&record.flows[0]).1.contents, Some(Contents::Checked));
    });
}

/// Bytes of a data connection before its payload: its hello.
const HELLO_BYTES: u64 = 40;

/// Passes connections on to `server` from the same port of another loopback address. Of every data
/// connection it changes one bit of the payload byte at `offset` from the client.
fn meddler(server: SocketAddr, offset: u64) -> SocketAddr {
    let here = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 77).into(), server.port());
    let listener = TcpListener::bind(here).expect("the port is free there");
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(onward) = TcpStream::connect(server) else { return };
            let back = (onward.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
            std::thread::spawn(move || pass_on(client, onward, Some(HELLO_BYTES + offset)));
            std::thread::spawn(move || pass_on(back.0, back.1, None));
        }
    });
    here
}

/// Passes bytes on; where asked and the connection is one of data, the one at `place` is changed.
fn pass_on(mut from: TcpStream, mut to: TcpStream, place: Option<u64>) {
    let (mut bytes, mut at, mut is_data) = (vec![0; 65_536], 0, false);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        // The kind is the byte at 10 of a hello, 2 for data; hellos are written whole.
        is_data |= at == 0 && count > 10 && bytes[10] == 2;
        let within = place.and_then(|place| usize::try_from(place.checked_sub(at)?).ok());
        if let Some(within) = within.filter(|within| is_data && *within < count) {
            bytes[within] ^= 0x10;
        }
        at += count as u64;
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn a_bit_that_a_relay_changed_is_found_at_its_offset_and_fails_the_test() {
    with_server("127.0.0.1", ServerLimits::default(), |server| {
        let relay = meddler(server, 1_234_567);
        let means = Means { verify_seed: Some(77), ..Means::default() };
        let record = measure(&plan(relay, means));
        let found = ends(&record.flows[0]).1.verified.expect("asked for");
        assert_eq!((found.bytes, found.wrong_bytes), (AMOUNT as u64, 1));
        assert_eq!(found.first_wrong_offset, Some(1_234_567));
        let failure = record.failure.as_ref().expect("the contents are wrong");
        assert_eq!(failure.fault, Fault::Corrupted);
        assert!(failure.to_string().contains("offset 1234567"), "{failure}");
        assert_ne!(record.exit_code(), 0);
        // Nobody looks without being asked.
        assert_eq!(measure(&plan(relay, Means::default())).failure, None);
    });
}

#[test]
fn multipath_tcp_is_used_or_its_absence_is_told() {
    with_server("127.0.0.1", ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let means = Means { mptcp: true, ..Means::default() };
            let record = good(&TcpPlan {
                test: TcpTest { directions, streams: 2, ..plan(server, means.clone()).test },
                ..plan(server, means)
            });
            assert_eq!(record.summary_value(MetricId::Bytes, Stat::Value, None), Some(AMOUNT));
            let has = linerate_sys::tcp::has_multipath();
            for (sender, receiver) in record.flows.iter().map(ends) {
                for end in [sender, receiver] {
                    let mptcp = end.mptcp.as_ref().expect("asked for");
                    assert_eq!(mptcp.used, has, "{mptcp:?}");
                }
            }
            let told = |caveat: &linerate_core::record::Caveat| {
                caveat.code == CaveatCode::MultipathNotUsed
            };
            assert_eq!(record.caveats.iter().any(told), !has);
        }
    });
}
