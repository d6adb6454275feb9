//! Many clients of four protocols at once on one server, among connections that say nothing or
//! nonsense: each gets its bytes counted to the byte.

mod peers;

use std::io::Write;
use std::net::TcpStream;

use linerate_core::record::{Direction, Finish, TcpPlan, Via};
use linerate_server::admission::Limits;
use peers::{bytes, good, logged_bytes, plan, with_server};

/// Clients of each protocol.
const CLIENTS: u64 = 15;
/// Connections of no protocol.
const GARBAGE: u32 = 300;

/// A client that sends an amount of its own, so that the log tells whose bytes were counted.
fn run(which: u64, number: u64, server: &peers::Running<'_>) -> u64 {
    let amount = 65_536 * (1 + which * CLIENTS + number);
    let finish = Finish::Bytes(amount);
    match which {
        0 => {
            let native = TcpPlan { via: None, ..plan(Via::Iperf2, server.native.port()) };
            assert_eq!(bytes(&good(&TcpPlan { finish, ..native }), Direction::Up), amount);
        }
        1 => {
            let mut stream = TcpStream::connect(server.at(Via::Iperf2)).expect("it listens");
            let buffer = vec![b'x'; usize::try_from(amount).expect("small")];
            stream.write_all(&buffer).expect("it reads");
        }
        2 => {
            let plan = plan(Via::Iperf2, server.port(Via::Iperf2));
            assert_eq!(bytes(&good(&TcpPlan { finish, ..plan }), Direction::Up), amount);
        }
        _ => {
            let plan = plan(Via::Nuttcp, server.port(Via::Nuttcp));
            let plan = TcpPlan { finish, buffer_bytes: 65_536, ..plan };
            assert_eq!(bytes(&good(&plan), Direction::Up), amount);
        }
    }
    amount
}

#[test]
fn sixty_clients_of_four_protocols_are_not_disturbed_by_garbage() {
    let limits = Limits { tests: 128, connections: 4096, ..Limits::default() };
    with_server(limits, |server| {
        let mut garbage = Vec::new();
        let mut expected: Vec<u64> = std::thread::scope(|scope| {
            let clients: Vec<_> =
                (0..4 * CLIENTS).map(|n| scope.spawn(move || run(n % 4, n / 4, server))).collect();
            for n in 0..GARBAGE {
                let to = if n % 2 == 0 { Via::Iperf2 } else { Via::Nuttcp };
                let mut stream = TcpStream::connect(server.at(to)).expect("it listens");
                let _ = stream.write_all([&b""[..], b"\x40\x01", b"HEL"][n as usize % 3]);
                garbage.push(stream);
            }
            clients.into_iter().map(|client| client.join().expect("no panic")).collect()
        });
        let log = server.log(expected.len() + garbage.len());
        let mut counted: Vec<u64> = log
            .iter()
            .filter(|line| line.contains(" bytes"))
            .filter_map(|line| match line.contains(" bytes in ") {
                true => Some(logged_bytes(line)),
                // `1 stream, 65536 bytes` of the native protocol.
                false => line.split(", ").nth(1)?.split(' ').next()?.parse().ok(),
            })
            .collect();
        counted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(counted, expected, "{log:?}");
    });
}
