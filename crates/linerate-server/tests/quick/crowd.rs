//! Many clients of four protocols at once on one server, among connections that say nothing or
//! nonsense: each gets its bytes counted to the byte. And few places for many: each client is told
//! in the way of its protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::peers::{self, bytes, good, logged_bytes, measure, plan, with_server};
use linerate_core::record::{
    Direction, Event, Fault, Finish, ServerPlan, TcpPlan, TcpTest, Tool, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;

/// Clients of each protocol.
const CLIENTS: u64 = 25;
/// Connections of no protocol.
const GARBAGE: usize = 1000;

/// A client that sends an amount of its own, so that the log tells whose bytes were counted.
fn run(which: u64, number: u64, server: &peers::Running<'_>) -> u64 {
    let amount = 65_536 * (1 + which * CLIENTS + number);
    let finish = Finish::Bytes(amount);
    let patient = |via| {
        let mut plan = plan(via, server.port(via));
        plan.server.connect_timeout_ns = 60_000_000_000;
        plan
    };
    let via = |via| TcpPlan {
        test: TcpTest { finish, buffer_bytes: 65_536, ..patient(via).test },
        ..patient(via)
    };
    match (which, number % 2) {
        (0, _) => {
            let mut native = patient(Via::Iperf2);
            (native.server.via, native.server.port) = (None, server.native.port());
            assert_eq!(
                bytes(
                    &good(&TcpPlan { test: TcpTest { finish, ..native.test }, ..native }),
                    Direction::Up
                ),
                amount
            );
        }
        // Every second one of that port is a plain ttcp.
        (1, 0) => {
            let mut stream = TcpStream::connect(server.at(Via::Iperf2)).expect("it listens");
            let buffer = vec![b'x'; usize::try_from(amount).expect("small")];
            stream.write_all(&buffer).expect("it reads");
        }
        (1, _) => assert_eq!(bytes(&good(&via(Via::Iperf2)), Direction::Up), amount),
        (2, _) => assert_eq!(bytes(&good(&via(Via::Iperf3)), Direction::Up), amount),
        _ => assert_eq!(bytes(&good(&via(Via::Nuttcp)), Direction::Up), amount),
    }
    amount
}

/// Silence, half a message and nonsense at each port, in turn. What the server closes is garbage
/// that it has seen through.
fn garbage(number: usize, server: &peers::Running<'_>) -> Option<TcpStream> {
    let ports = [server.at(Via::Iperf2), server.at(Via::Nuttcp), server.at(Via::Iperf3)];
    let to = ports.get(number % 4).copied().unwrap_or(server.native);
    let said: [&[u8]; 5] = [b"", b"\x40\x01", b"HEL", b"LINERATE", b"GET / HTTP/1.1\r\n\r\n"];
    let mut stream = TcpStream::connect(to).ok()?;
    let _ = stream.write_all(said[number / 4 % said.len()]);
    Some(stream)
}

/// The bytes that a line of the log tells, if it is of a test.
fn counted(line: &str) -> Option<u64> {
    (!line.ends_with(" | []")).then(|| logged_bytes(line))
}

#[test]
fn a_hundred_clients_of_four_protocols_are_not_disturbed_by_a_thousand_of_none() {
    // Fewer connections than come: those that say nothing make room.
    let limits = ServerLimits { tests: 128, connections: 400, ..ServerLimits::default() };
    with_server(limits, |server| {
        let mut expected: Vec<u64> = std::thread::scope(|scope| {
            let client = |n| move || run(n % 4, n / 4, server);
            let mut clients: Vec<_> = (0..2 * CLIENTS).map(|n| scope.spawn(client(n))).collect();
            let _silent: Vec<_> = (0..GARBAGE).map(|n| garbage(n, server)).collect();
            clients.extend((2 * CLIENTS..4 * CLIENTS).map(|n| scope.spawn(client(n))));
            clients.into_iter().map(|client| client.join().expect("no panic")).collect()
        });
        expected.sort_unstable();
        let (mut found, deadline) = (Vec::new(), monotonic() + Duration::from_secs(60));
        while found.len() < expected.len() && monotonic() < deadline {
            // Printable nonsense at ttcp's port is a ttcp of a few bytes.
            let log = server.log(1);
            found.extend(log.iter().filter_map(|it| counted(it)).filter(|it| *it >= 65_536));
        }
        found.sort_unstable();
        assert_eq!(found, expected);
    });
}

/// Somebody else's test, until it is told to end.
fn first(server: &peers::Running<'_>, stop: Stop, begun: &dyn Fn()) {
    let mut watch = |event: &Event| {
        if matches!(event, Event::Interval(_)) {
            begun();
        }
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop, watch: &mut watch };
    let plan = TcpPlan {
        server: ServerPlan { via: None, ..plan(Via::Iperf2, server.native.port()).server },
        test: TcpTest {
            finish: Finish::TimeNs(120_000_000_000),
            pace: Some(BitRate::from_bits_per_sec(8_000_000)),
            ..plan(Via::Iperf2, server.native.port()).test
        },
        ..plan(Via::Iperf2, server.native.port())
    };
    assert_eq!(throughput::run_tcp(&plan, &mut context).failure, None);
}

#[test]
fn one_place_is_that_of_all_protocols_and_each_tells_its_clients_in_its_own_way() {
    with_server(ServerLimits::default(), |server| {
        std::thread::scope(|scope| {
            let (stop, (say, begun)) = (Stop::new(), std::sync::mpsc::channel());
            let ask = stop.clone();
            let running =
                scope.spawn(move || first(server, stop, &|| say.send(()).unwrap_or_default()));
            begun.recv().expect("it has a row");
            // iperf3's and the own protocol have a word for it.
            let mut native = plan(Via::Iperf2, server.native.port());
            native.server.via = None;
            for plan in [native, plan(Via::Iperf3, server.port(Via::Iperf3))] {
                let failure = measure(&plan).0.failure.expect("one test is running");
                assert_eq!(failure.fault, Fault::PeerRefused, "{failure}");
            }
            // ttcp has none: the connection ends.
            let mut ttcp = TcpStream::connect(server.at(Via::Iperf2)).expect("it listens");
            ttcp.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
            let _ = ttcp.write_all(&[b' '; 1000]);
            assert!(!matches!(ttcp.read(&mut [0]), Ok(1..)), "nothing is answered");
            // nuttcp's clients wait.
            let finish = Finish::Bytes(65_536);
            let plan = TcpPlan {
                test: TcpTest { finish, ..plan(Via::Nuttcp, server.port(Via::Nuttcp)).test },
                ..plan(Via::Nuttcp, server.port(Via::Nuttcp))
            };
            let waiting = scope.spawn(move || {
                good(&TcpPlan { test: TcpTest { buffer_bytes: 65_536, ..plan.test }, ..plan })
            });
            ask.request_stop();
            running.join().expect("no panic");
            assert_eq!(bytes(&waiting.join().expect("no panic"), Direction::Up), 65_536);
        });
    });
}
