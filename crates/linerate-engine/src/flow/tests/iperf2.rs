//! iperf 2's client and server against each other.

use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{
    CLOSE_TIMEOUT, Client, ClientHeader, ClientTest, FIRST_BYTES, GRACE, Iperf2Amount,
    Iperf2Answer, LEAVE_MAX, Mode, OPENING_MAX, Request, Server, Terms, WIRE_VERSION,
};

use super::world::{Decided, Model, RATE, Sends, VANISHED};
use super::{Rig, Trouble, check_all, count};

const INTERVAL: Duration = Duration::from_millis(100);
/// The longest test that the server runs.
pub(super) const SPAN_MAX: Duration = Duration::from_secs(5);

/// TCP: data that begins with a header, where the client has anything to ask.
struct Iperf2;

/// What each end sends: senders know the end of their test themselves, and a client without a
/// header is the only one.
fn sends(mode: Mode, amount: Iperf2Amount) -> Sends {
    let bytes = match amount {
        Iperf2Amount::Bytes(bytes) => bytes.into(),
        Iperf2Amount::Centiseconds(count) => u64::from(count) * 10 * RATE,
    };
    [(mode != Mode::Reverse).then_some(bytes), (mode != Mode::Forward).then_some(bytes)]
}

fn decide(ask: &Request) -> Decided<Server> {
    let terms = Terms { span_max: SPAN_MAX, interval: INTERVAL, wall_offset_ns: 0 };
    let sends = match ask {
        Request::Header(header) => sends(header.mode, header.amount),
        Request::Plain | Request::Bounce(_) => [Some(u64::MAX), None],
    };
    (Ok(terms), sends)
}

/// The server of the port that iperf 2 and ttcp share.
pub(super) fn server() -> (Server, Model<Server>) {
    let model = Model {
        interval: INTERVAL,
        sends: None,
        closes: true,
        datagrams: false,
        head: Vec::new(),
        decide,
        report: |_| unreachable!("it tells nothing"),
        read: |never| match *never {},
    };
    (Server::new(MonoTime::default()), model)
}

impl Rig for Iperf2 {
    type Client = Client;
    type Server = Server;

    fn client(&self, random: &mut Random) -> (Client, Model<Client>, Duration) {
        let modes = [Mode::Forward, Mode::Reverse, Mode::FullDuplex];
        let mode = modes[count(random, 3) as usize];
        let amount = match random.chance(0.4) {
            true => Iperf2Amount::Bytes(1 + count(random, 2_000_000) as u32),
            false => Iperf2Amount::Centiseconds(50 + count(random, 150) as u32),
        };
        let (span, bytes) = match amount {
            Iperf2Amount::Bytes(bytes) => (None, Some(bytes.into())),
            Iperf2Amount::Centiseconds(count) => (Some(Duration::from_millis(10) * count), None),
        };
        let test = ClientTest { mode, span, bytes, interval: INTERVAL };
        let headed = mode != Mode::Forward || random.chance(0.8);
        let header = ClientHeader::new(mode, amount);
        let model = Model {
            interval: INTERVAL,
            sends: Some(sends(mode, amount)),
            closes: true,
            datagrams: false,
            // Without one, enough digits to tell that none comes.
            head: if headed { header.to_bytes() } else { linerate_proto::iperf2::pattern(255) },
            decide: |never| match *never {},
            report: |_| Iperf2Answer { version: WIRE_VERSION },
            read: |_| None,
        };
        (Client::new(MonoTime::default(), test), model, Duration::from_secs(2))
    }

    fn server(&self) -> (Server, Model<Server>) {
        server()
    }

    fn greeting(&self) -> usize {
        0
    }

    fn server_answers(&self, _: Trouble) -> bool {
        false
    }

    /// The client: what its server does within its own time, or that nothing comes of a host that
    /// is gone, and until the connection is closed. The server: first bytes, streams that open, a
    /// test that may last 5 s, and streams that leave. Both: a second for the delays of the path.
    fn slack(&self) -> (Duration, Duration) {
        let path = Duration::from_secs(1);
        let server = FIRST_BYTES + OPENING_MAX + SPAN_MAX + LEAVE_MAX + path;
        (server.max(GRACE).max(VANISHED) + CLOSE_TIMEOUT + path, server + path)
    }
}

#[test]
fn tcp_tests_end_as_they_should_whatever_happens() {
    check_all(&Iperf2);
}
