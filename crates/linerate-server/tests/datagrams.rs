//! UDP tests between the engine and the server: over emulated paths whose planted losses, copies
//! and delays are counted to the last datagram, and against clients that break the rules.
//!
//! Laboratories need the privilege to make network namespaces and /dev/net/tun; they say so and
//! pass when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CaveatCode, DatagramTally, Direction, Finish, MetricId, Record, Stat, Status, TcpDirections,
    Tool, UdpPlan,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::datagram;
use linerate_engine::lab::Lab;
use linerate_proto::native::{
    Accept, DatagramHeader, Decoder, Grant, Hello, HelloKind, Message, OPENING_BYTES, Opening,
    OpeningStep, Token, UdpRequest, encode,
};
use linerate_server::admission::Limits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{ServeOptions, Server};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;
use linerate_sys::userns;

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2));

/// Two hosts with a cable between them.
fn cable() -> Option<Lab> {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let text = "host = [{ name = \"a\" }, { name = \"b\" }]\nlink = [{ ends = [\"a\", \"b\"] }]\n";
    let plan = LabPlan::from_toml(text, "test.toml").expect("a plan");
    Some(Lab::build(&plan).expect("the laboratory stands"))
}

/// Two hosts with a path between them; small packets keep IPv6 and its own packets away.
fn lab(path: &str) -> Option<Lab> {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if std::fs::metadata("/dev/net/tun").is_err() {
        println!("skipped: there is no /dev/net/tun");
        return None;
    }
    let text = format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"b\"], mtu_bytes = 1000, path = {{ {path} }} }}]\n"
    );
    let plan = LabPlan::from_toml(&text, "test.toml").expect("a plan");
    Some(Lab::build(&plan).expect("the laboratory stands"))
}

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ask();
    }
}

fn run(plan: &UdpPlan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    datagram::run(plan, &mut context)
}

/// Serves on host `b` and measures from host `a`.
fn measure_in(lab: &Lab, plan: &UdpPlan) -> Record {
    measure_at(lab, ADDRESS, plan)
}

fn measure_at(lab: &Lab, address: IpAddr, plan: &UdpPlan) -> Record {
    let options = ServeOptions {
        local: SocketAddr::new(address, 0),
        limits: Limits::default(),
        foreign: Foreign::none(),
    };
    let server = lab.run_on("b", || Server::bind(&options)).expect("runs").expect("binds");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let port = server.local_addr().expect("bound").port();
        let plan = UdpPlan { host: address.to_string(), port, ..plan.clone() };
        lab.run_on("a", move || run(&plan)).expect("the host runs it")
    })
}

/// 2000 datagrams of 500 bytes in 0.4 s: nothing else goes their way meanwhile, so the packets of a
/// direction with numbers from 100 to 1900 are all of the test's data.
fn plan(directions: TcpDirections) -> UdpPlan {
    UdpPlan {
        directions,
        finish: Finish::Buffers(2000),
        size_bytes: Some(500),
        pace: Some(BitRate::from_bits_per_sec(20_000_000)),
        ..UdpPlan::default()
    }
}

/// The tally of the only stream, whose end was a good one and whose account is closed.
fn tally(record: &Record) -> DatagramTally {
    assert_eq!(record.failure, None);
    assert_eq!(record.status, Status::Ok);
    let flow = &record.flows[0];
    let sender = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    let receiver = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
    let (sender, receiver) = (sender.expect("both report"), receiver.expect("both report"));
    assert_eq!(receiver.all.sent, Some(sender.count), "by the words of both ends");
    assert_eq!(sender.count, receiver.all.received + receiver.all.lost);
    assert_eq!(receiver.strays, 0);
    receiver.all
}

#[test]
fn planted_losses_are_counted_exactly_as_the_path_counts_them_in_both_directions() {
    let lose = "lose = [100, 101, 102, 500, 777, 1200, 1900]";
    let Some(lab) = lab(&format!("delay = \"2 ms\", {lose}")) else { return };
    // The list is of the path's life, so each direction sees it once.
    for (directions, way) in
        [(TcpDirections::Up, Direction::Up), (TcpDirections::Down, Direction::Down)]
    {
        let record = measure_in(&lab, &plan(directions));
        let tally = tally(&record);
        assert_eq!((tally.sent, tally.lost), (Some(2000), 7), "{way:?}");
        assert_eq!((tally.lost_here, tally.duplicates, tally.reordered), (0, 0, 0));
        let path = record.paths[0].carrying(way).expect("the direction that carries data");
        assert_eq!(path.lost_packets(), 7, "the path's own count");
        assert_eq!(record.value(MetricId::DatagramsLost, Stat::Value, Some(way)), Some(7.0));
    }
}

#[test]
fn planted_copies_are_duplicates_and_no_gain() {
    let Some(lab) = lab("delay = \"1 ms\", duplicate = \"100%\"") else { return };
    let record = measure_in(&lab, &plan(TcpDirections::Up));
    let tally = tally(&record);
    assert_eq!((tally.sent, tally.lost, tally.duplicates), (Some(2000), 0, 2000));
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    assert_eq!(path.copied_packets, path.taken_packets);
    let bytes = record.value(MetricId::Bytes, Stat::Value, Some(Direction::Up));
    assert_eq!(bytes, Some(1_000_000.0), "2000 of 500 bytes, each once");
}

#[test]
fn planted_delays_reorder_and_lose_nothing() {
    let path = "delay = \"1 ms\", reorder = { share = \"5%\", extra = \"2 ms\" }";
    let Some(lab) = lab(path) else { return };
    let record = measure_in(&lab, &plan(TcpDirections::Up));
    let tally = tally(&record);
    assert_eq!((tally.lost, tally.duplicates), (0, 0));
    // 5 % of 2000 are 100 with a deviation of 10; each is overtaken by those of 2 ms behind it.
    // The last few may have nobody behind them.
    assert!((20..=200).contains(&tally.reordered), "{tally:?}");
    let delay = record.flows[0]
        .receiver
        .as_ref()
        .and_then(|end| end.received_datagrams.as_ref().and_then(|datagrams| datagrams.delay));
    let delay = delay.expect("2000 arrivals");
    assert_eq!(delay.n, 2000);
    // One in twenty is 2 ms above the smallest, so the 99th percentile is, and the median is not.
    assert!(delay.pdv_p99_ns >= Some(1_900_000), "{delay:?}");
    assert!(delay.pdv_p50_ns < Some(1_900_000), "{delay:?}");
}

#[test]
fn a_bottleneck_bounds_what_arrives_and_its_drops_are_the_paths() {
    let path = "rate = \"10 Mbit/s\", delay = \"1 ms\", buffer = \"20 packets\"";
    let Some(lab) = lab(path) else { return };
    let plan = UdpPlan {
        finish: Finish::TimeNs(1_000_000_000),
        size_bytes: Some(972),
        pace: Some(BitRate::from_bits_per_sec(20_000_000)),
        ..UdpPlan::default()
    };
    let record = measure_in(&lab, &plan);
    let tally = tally(&record);
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    let queue = path.lost.iter().find(|loss| loss.cause == "queue_full").map(|it| it.packets);
    // The control connection may lose packets of its own at the full queue.
    let control = queue.expect("twice the rate overflows it") - tally.lost;
    assert!(control < 20, "{control} beside {}", tally.lost);
    assert_eq!(tally.lost_here, 0);
    // Ethernet takes 18 + 20 bytes more than the packet of 1000: 972 of 1038, 9.364 Mbit/s.
    let ceiling = record.ceiling.as_ref().expect("the path tells its rate");
    let value = ceiling.value.expect("and its framing");
    assert!((value - 10e6 * 972.0 / 1038.0).abs() < 1.0, "{value}");
    let goodput = record.value(MetricId::Goodput, Stat::Value, Some(Direction::Up));
    assert!(goodput.is_some_and(|bps| bps <= value * 1.01), "{goodput:?}");
}

#[test]
fn datagrams_are_joined_as_long_as_each_fits_a_packet_and_travel_as_fragments_beyond() {
    let Some(lab) = cable() else { return };
    let v6: IpAddr = "fd00:0:0:1::2".parse().expect("an address");
    // 1500 less 20 + 8, and less 40 + 8.
    for (address, usual) in [(ADDRESS, 1472), (v6, 1452)] {
        let paced = UdpPlan {
            finish: Finish::Buffers(600),
            pace: Some(BitRate::from_bits_per_sec(400_000_000)),
            ..UdpPlan::default()
        };
        let record = measure_at(&lab, address, &paced);
        let tally = tally(&record);
        assert_eq!((tally.sent, tally.lost), (Some(600), 0));
        let sent = |record: &Record| {
            let sender = record.flows[0].sender.as_ref().expect("it reports");
            sender.sent_datagrams.clone().expect("it sent")
        };
        assert_eq!(sent(&record).size_bytes, usual);
        // 400 Mbit/s for 340 µs are 17,000 bytes: 11 of either size.
        assert_eq!(sent(&record).joined_max, 11, "{address}");
        let longer = UdpPlan { size_bytes: Some(usual + 1), ..paced };
        let record = measure_at(&lab, address, &longer);
        assert_eq!(record.failure, None);
        assert_eq!(sent(&record).joined, 0, "{address}");
        let codes: Vec<CaveatCode> = record.caveats.iter().map(|caveat| caveat.code).collect();
        assert!(codes.contains(&CaveatCode::Fragmented), "{codes:?}");
    }
}

/// Runs a server on loopback and gives the work its address.
fn with_server<T: Send>(work: impl FnOnce(SocketAddr) -> T + Send) -> T {
    with_server_at(IpAddr::from([127, 0, 0, 1]), work)
}

fn with_server_at<T: Send>(address: IpAddr, work: impl FnOnce(SocketAddr) -> T + Send) -> T {
    let local = SocketAddr::new(address, 0);
    let server =
        Server::bind(&ServeOptions { local, limits: Limits::default(), foreign: Foreign::none() })
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
        host: server.ip().to_string(),
        port: server.port(),
        finish: Finish::Buffers(10),
        pace: Some(BitRate::from_bits_per_sec(10_000_000)),
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
                    directions: TcpDirections::Both,
                    finish: Finish::Buffers(count),
                    size_bytes: Some(size),
                    pace,
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
    fn ask(&mut self) -> (Accept, Opening, UdpSocket) {
        self.send(&Message::UdpRequest(request()));
        let Some(Message::Accept(accept)) = self.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening =
            Opening { step: OpeningStep::Hello, token, stream: 0, direction: Direction::Down };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((self.server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(ANSWER_WITHIN)).expect("a time-out");
        (*accept, opening, socket)
    }
}

fn request() -> UdpRequest {
    UdpRequest {
        directions: TcpDirections::Down,
        streams: 1,
        finish: Finish::TimeNs(30_000_000_000),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: 1000,
        pace_bps: Some(10_000_000),
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
        let other = Opening { token: Token([7; 16]), ..opening };
        let elsewhere = Opening { stream: 1, ..opening };
        let early = Opening { step: OpeningStep::Answer(5), ..opening };
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
        let challenge = Opening::parse(&answer[..len]).expect("a challenge");
        let OpeningStep::Challenge(nonce) = challenge.step else { panic!("{challenge:?}") };
        // The number said back from another address, and another number from this one.
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let right = Opening { step: OpeningStep::Answer(nonce), ..opening };
        let port = socket.peer_addr().expect("connected");
        stranger.send_to(&right.to_bytes(), port).expect("sent");
        let wrong = Opening { step: OpeningStep::Answer(nonce ^ 1), ..opening };
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
            return monotonic().since(from);
        }
        assert!(monotonic().since(from) < Duration::from_secs(20), "{:?}", record.failure);
        linerate_sys::clock::sleep(Duration::from_millis(50));
    }
}

/// The place is free again after this: 4 s of patience, the test that finds out, and as much again
/// on a busy machine. One that is kept is kept for 30 s.
const FREE_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn a_client_that_opens_no_stream_or_never_starts_or_leaves_holds_no_place_for_long() {
    with_server(|server| {
        let begin = monotonic();
        let mut mute = RawClient::connect(server);
        let _kept = mute.ask();
        assert!(place_after(server, begin) < FREE_WITHIN, "it opened no stream");
        let Some(Message::Abort { reason }) = mute.next() else { panic!("it is told why") };
        assert!(reason.contains("the UDP streams"), "{reason}");

        let begin = monotonic();
        let mut slow = RawClient::connect(server);
        let (_, opening, socket) = slow.ask();
        open(&socket, opening);
        assert_eq!(slow.next(), Some(Message::Ready));
        assert!(place_after(server, begin) < FREE_WITHIN, "it never started");

        // Sooner than after the patience with those that stay; a busy machine has five tries.
        let freed_at_once = (0..5).any(|_| {
            let begin = monotonic();
            let mut gone = RawClient::connect(server);
            let _kept = gone.ask();
            drop(gone);
            place_after(server, begin) < Duration::from_secs(3)
        });
        assert!(freed_at_once, "it closed");
    });
}

fn open(socket: &UdpSocket, opening: Opening) {
    let mut answer = [0; 64];
    socket.send(&opening.to_bytes()).expect("sent");
    let len = socket.recv(&mut answer).expect("a challenge");
    let challenge = Opening::parse(&answer[..len]).expect("a challenge");
    let OpeningStep::Challenge(nonce) = challenge.step else { panic!("{challenge:?}") };
    let step = OpeningStep::Answer(nonce);
    socket.send(&Opening { step, ..opening }.to_bytes()).expect("sent");
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
        let fast = UdpRequest {
            pace_bps: None,
            finish: Finish::Buffers(150),
            size_bytes: 100,
            ..request()
        };
        client.send(&Message::UdpRequest(fast));
        let Some(Message::Accept(accept)) = client.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening =
            Opening { step: OpeningStep::Hello, token, stream: 0, direction: Direction::Down };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
        open(&socket, opening);
        assert_eq!(client.next(), Some(Message::Ready));
        let tag = linerate_proto::native::stream_tag(token, Direction::Down, 0);
        let grant = |next, limit| socket.send(&Grant { next, limit }.to_bytes(tag)).expect("sent");
        grant(0, 50);
        client.send(&Message::Start);
        let mut datagram = [0; 2048];
        let mut next = || {
            let len = socket.recv(&mut datagram).expect("data within 10 s");
            DatagramHeader::parse(&datagram[..len]).expect("a header")
        };
        let heads: Vec<DatagramHeader> = (0..51).map(|_| next()).collect();
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
            UdpRequest { size_bytes: 4_000_000_000, ..request() },
            UdpRequest { size_bytes: 0, ..request() },
            UdpRequest { streams: u16::MAX, ..request() },
            UdpRequest { finish: Finish::Bytes(u64::MAX), ..request() },
        ] {
            let mut client = RawClient::connect(server);
            client.send(&Message::UdpRequest(spoilt));
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
        let up = UdpRequest {
            directions: TcpDirections::Up,
            finish: Finish::Buffers(10),
            size_bytes: 100,
            ..request()
        };
        client.send(&Message::UdpRequest(up));
        let Some(Message::Accept(accept)) = client.next() else { panic!("the server accepts") };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let opening =
            Opening { step: OpeningStep::Hello, token, stream: 0, direction: Direction::Up };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect((server.ip(), accept.udp_ports[0])).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        open(&socket, opening);
        assert_eq!(client.next(), Some(Message::Ready));
        client.send(&Message::Start);
        let tag = linerate_proto::native::stream_tag(token, Direction::Up, 0);
        let header = |number, tag| {
            let header = DatagramHeader { number, tag, stamp_ns: 0 };
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
        let sent = linerate_proto::native::UdpSent {
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
