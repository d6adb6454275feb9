//! UDP tests of the server on loopback: the shortest and longest datagrams, and clients that break
//! the rules, word by word.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::record::{
    Direction, Finish, Record, ServerPlan, TcpDirections, Tool, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_proto::native::{
    Accept, Decoder, Grant, Hello, HelloKind, Message, NativeDatagramHeader, OPENING_BYTES,
    OpeningDatagram, OpeningStep, Token, encode,
};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

fn run(plan: &UdpPlan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    throughput::run_udp(plan, &mut context)
}

fn udp(test: UdpTest) -> Message {
    Message::UdpRequest { test, login: false }
}

/// Runs a server on loopback and gives the work its address.
fn with_server<T: Send>(work: impl FnOnce(SocketAddr) -> T + Send) -> T {
    with_server_at(IpAddr::from([127, 0, 0, 1]), work)
}

fn with_server_at<T: Send>(address: IpAddr, work: impl FnOnce(SocketAddr) -> T + Send) -> T {
    crate::turn::take();
    let local = SocketAddr::new(address, 0);
    let server = MeasurementServer::bind(&ServeOptions {
        local,
        limits: ServerLimits::default(),
        foreign: Foreign::without_ports(),
    })
    .expect("binds");
    let stop = Stop::new();
    let address = server.local_addr().expect("bound");
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop, &|_| {}));
        let _ends = AskOnDrop(&stop);
        work(address)
    })
}

fn loopback(server: SocketAddr) -> UdpPlan {
    UdpPlan {
        server: ServerPlan::new(None, server.ip().to_string(), server.port()),
        test: UdpTest {
            finish: Finish::Buffers(10),
            pace: Some(BitRate::from_bits_per_sec(10_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

#[test]
fn the_shortest_and_the_longest_datagrams_travel_over_ipv6_both_ways_paced_or_not() {
    let v6 = IpAddr::from(std::net::Ipv6Addr::LOCALHOST);
    if UdpSocket::bind((v6, 0)).is_err() {
        println!("skipped: this host has no IPv6 loopback");
        return;
    }
    with_server_at(v6, |server| {
        for (size, count) in [(16, 400), (65_507, 40)] {
            for pace in [Some(BitRate::from_bits_per_sec(100_000_000)), None] {
                let plan = UdpPlan {
                    test: UdpTest {
                        directions: TcpDirections::Both,
                        finish: Finish::Buffers(count),
                        size_bytes: Some(size),
                        pace,
                        ..loopback(server).test
                    },
                    ..loopback(server)
                };
                let record = run(&plan);
                assert_eq!(record.failure, None, "{size} bytes");
                for flow in &record.flows {
                    let receiver = flow.receiver.as_ref().expect("it reports");
                    let datagrams = receiver.received_datagrams.as_ref().expect("it received");
                    let all = &datagrams.all;
                    assert_eq!((all.sent, all.received + all.lost), (Some(count), count));
                    assert_eq!((datagrams.strays, datagrams.size_bytes), (0, size));
                }
            }
        }
    });
}

/// An answer has come by then, however busy the machine is.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// What has not come by then does not come.
const SILENCE: Duration = Duration::from_millis(300);

/// A client that speaks the control protocol word by word.
struct RawClient {
    control: TcpStream,
    decoder: Decoder,
    server: SocketAddr,
}

impl RawClient {
    fn connect(server: SocketAddr) -> Self {
        let mut control = TcpStream::connect(server).expect("the server listens");
        control.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        control.write_all(&Hello::new(HelloKind::Control).to_bytes()).expect("sent");
        let mut hello = [0; 16];
        control.read_exact(&mut hello).expect("the server's hello");
        Self { control, decoder: Decoder::default(), server }
    }

    fn send(&mut self, message: &Message) {
        self.control.write_all(&encode(message).expect("short")).expect("sent");
    }

    /// The next message; none when the server has closed.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.decoder.next_message().expect("sound messages") {
                return Some(message);
            }
            let mut bytes = [0; 4096];
            match self.control.read(&mut bytes).expect("an answer within 10 s") {
                0 => return None,
                count => self.decoder.push(&bytes[..count]),
            }
        }
    }

    /// Asks for a test whose data the server sends, and gives what opens its only stream.
    fn ask(&mut self) -> (Accept, OpeningDatagram, UdpSocket) {
        self.send(&udp(request()));
        let Some(Message::Accept(accept)) = self.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening = OpeningDatagram {
            step: OpeningStep::Hello,
            token,
            stream: 0,
            direction: Direction::Down,
        };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((self.server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
        (*accept, opening, socket)
    }
}

fn request() -> UdpTest {
    UdpTest {
        directions: TcpDirections::Down,
        streams: 1,
        finish: Finish::TimeNs(30_000_000_000),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: 1000,
        pace: Some(BitRate::from_bits_per_sec(10_000_000)),
        window_bytes: None,
        dscp: None,
        joined: true,
        search: None,
        taken_singly: false,
    }
}

#[test]
fn nothing_is_sent_to_an_address_that_has_not_said_the_token_and_its_number_back() {
    with_server(|server| {
        let mut client = RawClient::connect(server);
        let (_, opening, socket) = client.ask();
        let mut answer = [0; 2048];
        let other = OpeningDatagram { token: Token([7; 16]), ..opening };
        let elsewhere = OpeningDatagram { stream: 1, ..opening };
        let early = OpeningDatagram { step: OpeningStep::Answer(5), ..opening };
        for wrong in [other, elsewhere, early] {
            socket.send(&wrong.to_bytes()).expect("sent");
        }
        for wrong in [&[0; 16][..], &[0xff; 2000], &opening.to_bytes()[..47]] {
            socket.send(wrong).expect("sent");
        }
        socket.set_read_timeout(Some(SILENCE)).expect("a time-out");
        assert!(socket.recv(&mut answer).is_err(), "no answer to any of those");
        socket.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
        socket.send(&opening.to_bytes()).expect("sent");
        let len = socket.recv(&mut answer).expect("a challenge");
        assert_eq!(len, OPENING_BYTES, "no longer than what asked for it");
        let challenge = OpeningDatagram::parse(&answer[..len]).expect("a challenge");
        let OpeningStep::Challenge(nonce) = challenge.step else { panic!("{challenge:?}") };
        // The number said back from another address, and another number from this one.
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let right = OpeningDatagram { step: OpeningStep::Answer(nonce), ..opening };
        let port = socket.peer_addr().expect("connected");
        stranger.send_to(&right.to_bytes(), port).expect("sent");
        let wrong = OpeningDatagram { step: OpeningStep::Answer(nonce ^ 1), ..opening };
        socket.send(&wrong.to_bytes()).expect("sent");
        client.control.set_read_timeout(Some(SILENCE)).expect("a time-out");
        let mut bytes = [0; 64];
        assert!(client.control.read(&mut bytes).is_err(), "the stream is not open");
        client.control.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
        socket.send(&right.to_bytes()).expect("sent");
        assert_eq!(client.next(), Some(Message::Ready));
        socket.set_read_timeout(Some(SILENCE)).expect("a time-out");
        assert!(socket.recv(&mut answer).is_err(), "and nothing before the start");
        socket.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
        client.send(&Message::Start);
        assert_eq!(socket.recv(&mut answer).expect("data"), 1000);
    });
}

/// How long after `from` the server has a place for another test.
fn place_after(server: SocketAddr, from: linerate_core::time::MonoTime) -> Duration {
    loop {
        let record = run(&loopback(server));
        if record.failure.is_none() {
            return monotonic().duration_since(from);
        }
        assert!(monotonic().duration_since(from) < Duration::from_secs(20), "{:?}", record.failure);
        linerate_sys::clock::sleep(Duration::from_millis(50));
    }
}

/// The place is free again after this: 4 s of patience and the test that finds out, which a busy
/// machine makes longer. One that is kept is kept for 30 s.
const FREE_WITHIN: Duration = Duration::from_secs(20);

#[test]
fn a_client_that_opens_no_stream_or_never_starts_or_leaves_holds_no_place_for_long() {
    with_server(|server| {
        let begin = monotonic();
        let mut mute = RawClient::connect(server);
        let _kept = mute.ask();
        let patience = place_after(server, begin);
        assert!(patience < FREE_WITHIN, "it opened no stream");
        let Some(Message::Abort { reason }) = mute.next() else { panic!("it is told why") };
        assert!(reason.contains("the UDP streams"), "{reason}");

        let begin = monotonic();
        let mut slow = RawClient::connect(server);
        let (_, opening, socket) = slow.ask();
        open(&socket, opening);
        assert_eq!(slow.next(), Some(Message::Ready));
        assert!(place_after(server, begin) < FREE_WITHIN, "it never started");

        // Sooner than after the patience with those that stay, by the same clock on the same
        // machine, which has five tries.
        let freed_at_once = (0..5).any(|_| {
            let begin = monotonic();
            let mut gone = RawClient::connect(server);
            let _kept = gone.ask();
            drop(gone);
            place_after(server, begin) < patience
        });
        assert!(freed_at_once, "it closed");
    });
}

fn open(socket: &UdpSocket, opening: OpeningDatagram) {
    let mut answer = [0; 64];
    socket.send(&opening.to_bytes()).expect("sent");
    let len = socket.recv(&mut answer).expect("a challenge");
    let challenge = OpeningDatagram::parse(&answer[..len]).expect("a challenge");
    let OpeningStep::Challenge(nonce) = challenge.step else { panic!("{challenge:?}") };
    let step = OpeningStep::Answer(nonce);
    socket.send(&OpeningDatagram { step, ..opening }.to_bytes()).expect("sent");
}

#[test]
fn a_server_stops_sending_to_a_client_that_shows_no_sign_of_life() {
    with_server(|server| {
        let mut client = RawClient::connect(server);
        let (_, opening, socket) = client.ask();
        open(&socket, opening);
        assert_eq!(client.next(), Some(Message::Ready));
        client.send(&Message::Start);
        let begin = monotonic();
        // The control connection stays, and is read by nobody.
        assert!(place_after(server, begin) < FREE_WITHIN);
        let mut datagram = [0; 2048];
        socket.set_read_timeout(Some(SILENCE)).expect("a time-out");
        while socket.recv(&mut datagram).is_ok() {}
        assert!(socket.recv(&mut datagram).is_err(), "nothing more comes");
    });
}

#[test]
fn a_sender_without_a_pace_goes_as_far_as_it_was_granted_and_tries_again_after_a_while() {
    with_server(|server| {
        let mut client = RawClient::connect(server);
        // Few and short enough for the room that any socket has.
        let fast =
            UdpTest { pace: None, finish: Finish::Buffers(150), size_bytes: 100, ..request() };
        client.send(&udp(fast));
        let Some(Message::Accept(accept)) = client.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening = OpeningDatagram {
            step: OpeningStep::Hello,
            token,
            stream: 0,
            direction: Direction::Down,
        };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        open(&socket, opening);
        assert_eq!(client.next(), Some(Message::Ready));
        let tag = linerate_proto::native::stream_tag(token, Direction::Down, 0);
        let grant = |next, limit| {
            socket.send(&Grant { next, limit, most: limit }.to_bytes(tag)).expect("sent")
        };
        grant(0, 50);
        client.send(&Message::Start);
        let mut datagram = [0; 2048];
        let mut next = || {
            let len = socket.recv(&mut datagram).expect("data within 10 s");
            NativeDatagramHeader::parse(&datagram[..len]).expect("a header")
        };
        let heads: Vec<NativeDatagramHeader> = (0..51).map(|_| next()).collect();
        assert!(heads.iter().zip(0..).all(|(head, number)| head.number == number), "{heads:?}");
        // By the sender's own clock: 50 at once, then the patience of 50 ms.
        let waited_ns = heads[50].stamp_ns - heads[49].stamp_ns;
        assert!(waited_ns >= 50_000_000, "{waited_ns} ns");
        assert_eq!(heads[0].stamp_ns, heads[49].stamp_ns, "what is granted leaves in one call");
        grant(51, 1000);
        let rest = std::iter::from_fn(|| Some(next())).take_while(|head| head.number != 149);
        assert_eq!(rest.count(), 149 - 51);
    });
}

#[test]
fn requests_out_of_bounds_are_refused_and_messages_out_of_order_end_the_test() {
    with_server(|server| {
        for spoilt in [
            UdpTest { size_bytes: 4_000_000_000, ..request() },
            UdpTest { size_bytes: 0, ..request() },
            UdpTest { streams: u16::MAX, ..request() },
            UdpTest { finish: Finish::Bytes(u64::MAX), ..request() },
        ] {
            let mut client = RawClient::connect(server);
            client.send(&udp(spoilt));
            assert!(matches!(client.next(), Some(Message::Refuse(_))));
        }
        for message in [Message::Start, Message::UdpSent { streams: Vec::new() }] {
            let mut client = RawClient::connect(server);
            let _kept = client.ask();
            client.send(&message);
            assert!(matches!(client.next(), Some(Message::Abort { .. })), "{message:?}");
            assert_eq!(client.next(), None, "and a close");
        }
        assert!(place_after(server, monotonic()) < FREE_WITHIN);
    });
}

#[test]
fn short_giant_and_foreign_datagrams_on_an_open_stream_are_strays() {
    with_server(|server| {
        let mut client = RawClient::connect(server);
        let up = UdpTest {
            directions: TcpDirections::Up,
            finish: Finish::Buffers(10),
            size_bytes: 100,
            ..request()
        };
        client.send(&udp(up));
        let Some(Message::Accept(accept)) = client.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening = OpeningDatagram {
            step: OpeningStep::Hello,
            token,
            stream: 0,
            direction: Direction::Up,
        };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        open(&socket, opening);
        assert_eq!(client.next(), Some(Message::Ready));
        client.send(&Message::Start);
        let tag = linerate_proto::native::stream_tag(token, Direction::Up, 0);
        let header = |number, tag| {
            let header = NativeDatagramHeader { number, tag, stamp_ns: 0 };
            let mut datagram = header.to_bytes().to_vec();
            datagram.resize(100, 0);
            datagram
        };
        // Two that count, of ten told; and six that do not: wrong tag, too short, too long, a
        // number that no stream reaches, empty, shorter than a header.
        let giant = [header(2, tag), vec![0; 60_000]].concat();
        let strays: [&[u8]; 6] =
            [&header(2, !tag), &header(2, tag)[..99], &giant, &header(1 << 50, tag), &[], &[1; 15]];
        for datagram in [&header(0, tag)[..], &header(5, tag)].into_iter().chain(strays) {
            socket.send(datagram).expect("sent");
        }
        let sent = linerate_core::record::DatagramsSent {
            direction: Direction::Up,
            flow: 0,
            datagrams: 10,
            measured: 10,
            span_ns: 1_000_000,
        };
        client.send(&Message::UdpSent { streams: vec![sent] });
        let reports = loop {
            match client.next() {
                Some(Message::Result { reports }) => break reports,
                Some(Message::UdpInterval { .. }) => {}
                other => panic!("{other:?}"),
            }
        };
        let received = reports[0].end.received_datagrams.as_ref().expect("it received");
        assert_eq!(received.strays, 6, "{received:?}");
        assert_eq!((received.all.received, received.all.lost), (2, 8));
    });
}

/// What a client says that it sent, after two datagrams of 100 bytes: the server's account of them.
fn account_of(server: SocketAddr, told: (u64, u64, u64)) -> linerate_core::record::FlowEnd {
    let mut client = RawClient::connect(server);
    let finish = Finish::Buffers(10);
    let up = UdpTest { directions: TcpDirections::Up, finish, size_bytes: 100, ..request() };
    let up = UdpTest { interval_ns: 50_000_000, ..up };
    client.send(&udp(up));
    let Some(Message::Accept(accept)) = client.next() else { panic!("the server accepts") };
    let token = Token::from_hex(&accept.token).expect("32 digits");
    let direction = Direction::Up;
    let opening = OpeningDatagram { step: OpeningStep::Hello, token, stream: 0, direction };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect((server.ip(), accept.udp_ports[0])).expect("loopback");
    socket.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
    open(&socket, opening);
    assert_eq!(client.next(), Some(Message::Ready));
    client.send(&Message::Start);
    let tag = linerate_proto::native::stream_tag(token, direction, 0);
    for number in [0, 1] {
        let mut datagram = NativeDatagramHeader { number, tag, stamp_ns: 0 }.to_bytes().to_vec();
        datagram.resize(100, 0);
        socket.send(&datagram).expect("sent");
    }
    // Each interval has the count: both are there before the client says what it sent.
    let both = |samples: &[linerate_proto::native::UdpSample]| {
        samples.iter().any(|sample| sample.counts.datagrams == 2)
    };
    loop {
        match client.next() {
            Some(Message::UdpInterval { samples }) if both(&samples) => break,
            Some(Message::UdpInterval { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let (datagrams, measured, span_ns) = told;
    let flow = 0;
    let sent =
        linerate_core::record::DatagramsSent { direction, flow, datagrams, measured, span_ns };
    client.send(&Message::UdpSent { streams: vec![sent] });
    loop {
        match client.next() {
            Some(Message::Result { mut reports }) => break reports.remove(0).end,
            Some(Message::UdpInterval { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_a_client_cannot_have_sent_is_no_loss_and_takes_no_time() {
    with_server(|server| {
        let sound = account_of(server, (3, 3, 1_000_000));
        let of = |end: &linerate_core::record::FlowEnd| {
            let datagrams = end.received_datagrams.clone().expect("it received");
            (datagrams.all.received, datagrams.all.lost)
        };
        assert_eq!(of(&sound), (2, 1));
        for told in [(u64::MAX, u64::MAX, 1_000_000), (2, 2, u64::MAX), (2, 3, 1_000_000)] {
            let end = account_of(server, told);
            assert_eq!(of(&end), (2, 0), "{told:?}");
            let span = Duration::from_nanos(end.span_ns);
            assert!(span < ANSWER_WITHIN, "{told:?}: {span:?}");
        }
    });
}
