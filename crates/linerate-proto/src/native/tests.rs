//! The wire taken apart and put together, cut at every length, with flipped bits; the machines
//! against the wrong order.

use std::time::Duration;

use linerate_core::record::{
    AccessToken, Direction, Finish, Means, ReceiveWith, SearchNews, SendWith, TcpDirections,
    TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

use super::*;
use crate::dialect::{Input, Machine, Output, TestFailureReason};

/// The client asks for a test.
fn asking(test: TcpTest) -> NativeTcpTestRequest {
    NativeTcpTestRequest { test, ..NativeTcpTestRequest::default() }
}

fn request() -> TcpTest {
    TcpTest {
        directions: TcpDirections::Both,
        streams: 2,
        finish: Finish::TimeNs(1_000_000_000),
        omit_ns: 0,
        interval_ns: 100_000_000,
        buffer_bytes: 65_536,
        window_bytes: Some(16_384),
        mss_bytes: None,
        nodelay: false,
        congestion_control: Some("cubic".to_owned()),
        pace: None,
        dscp: None,
        zero_copy: false,
        read_bytes: None,
        read_pace: None,
        background: None,
        ..TcpTest::default()
    }
}

/// The bytes of spec/native.md, written by hand from its table.
const CONTROL_HELLO: &[u8; 16] = b"LINERATE\x00\x01\x01\x00\x00\x00\x00\x00";

#[test]
fn a_control_hello_has_the_bytes_of_the_specification() {
    let hello = Hello::new(HelloKind::Control);
    assert_eq!(&hello.to_bytes(), CONTROL_HELLO);
    assert_eq!(Hello::parse(CONTROL_HELLO), Ok(hello));
}

#[test]
fn a_data_hello_has_the_bytes_of_the_specification() {
    let hello = DataHello { token: Token([0xab; 16]), stream: 258, direction: Direction::Down };
    let bytes = hello.to_bytes();
    assert_eq!(&bytes[..11], b"LINERATE\x00\x01\x02");
    assert_eq!(bytes[16..32], [0xab; 16]);
    assert_eq!(bytes[32..], [1, 2, 2, 0, 0, 0, 0, 0]);
    let rest = bytes[16..].try_into().expect("24 bytes");
    assert_eq!(DataHello::parse_rest(rest), Ok(hello));
}

#[test]
fn a_flipped_bit_in_a_hello_is_an_error_or_another_version_but_never_the_same_hello() {
    for bit in 0..CONTROL_HELLO.len() * 8 {
        let mut bytes = *CONTROL_HELLO;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let parsed = Hello::parse(&bytes);
        assert_ne!(parsed, Ok(Hello::new(HelloKind::Control)), "bit {bit}");
    }
}

#[test]
fn two_ends_agree_on_the_lower_of_their_newest_versions() {
    let of = |oldest, newest| Versions { oldest, newest };
    // Client, server, and what they speak: the same, one newer on either side, far apart.
    let cases = [
        (of(1, 1), of(1, 1), Some(1)),
        (of(1, 2), of(1, 1), Some(1)),
        (of(1, 1), of(1, 2), Some(1)),
        (of(2, 3), of(1, 2), Some(2)),
        (of(1, 4), of(2, 9), Some(4)),
        (of(3, 4), of(1, 2), None),
        (of(1, 2), of(3, 4), None),
    ];
    for (client, server, spoken) in cases {
        // A server that cannot names its own.
        let answered = server.with_client(client.newest);
        let agreed = client.with_server(answered.clone().unwrap_or(server.newest));
        assert_eq!(agreed.ok(), spoken, "{client:?} and {server:?}");
    }
}

#[test]
fn a_version_that_is_not_spoken_is_named() {
    let error = VERSIONS.with_client(0).expect_err("older than all");
    assert_eq!(error, NativeWireError::Version(0));
    assert!(VERSIONS.with_server(9).expect_err("newer").to_string().contains("version 9"));
}

#[test]
fn a_message_survives_being_cut_at_every_length() {
    let message = Message::Request(asking(request()));
    let bytes = encode(&message).expect("short enough");
    for cut in 0..=bytes.len() {
        let mut decoder = Decoder::default();
        decoder.push(&bytes[..cut]);
        let early = decoder.next_message().expect("a part is no error");
        assert_eq!(early.is_some(), cut == bytes.len(), "cut at {cut}");
        if early.is_none() {
            decoder.push(&bytes[cut..]);
            assert_eq!(decoder.next_message(), Ok(Some(message.clone())), "cut at {cut}");
        }
    }
}

#[test]
fn two_messages_in_one_read_come_out_one_by_one() {
    let mut decoder = Decoder::default();
    decoder.push(&encode(&Message::Ready).expect("short"));
    decoder.push(&encode(&Message::Start).expect("short"));
    assert_eq!(decoder.next_message(), Ok(Some(Message::Ready)));
    assert_eq!(decoder.next_message(), Ok(Some(Message::Start)));
    assert_eq!(decoder.next_message(), Ok(None));
}

#[test]
fn a_length_out_of_bounds_is_refused_before_its_bytes_come() {
    for length in [0_u32, (1 << 20) + 1, u32::MAX] {
        let mut decoder = Decoder::default();
        decoder.push(&length.to_be_bytes());
        assert_eq!(decoder.next_message(), Err(NativeWireError::Length(length as usize)));
    }
}

#[test]
fn flipped_bits_in_a_message_never_panic() {
    let bytes = encode(&Message::Request(asking(request()))).expect("short enough");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let mut decoder = Decoder::default();
        decoder.push(&damaged);
        let _ = decoder.next_message();
    }
}

#[test]
fn a_request_of_the_first_version_is_read_and_a_plain_one_is_written_as_it_was() {
    // As the first release wrote it.
    let json = br#"{"type":"request","directions":"up","streams":1,"finish":{"time_ns":1000000},
        "omit_ns":0,"interval_ns":1000000000,"buffer_bytes":1024,"window_bytes":null,
        "mss_bytes":null,"nodelay":false,"congestion_control":null,"pace_bps":null,"dscp":null,
        "zero_copy":true}"#;
    let mut decoder = Decoder::default();
    decoder.push(&u32::try_from(json.len()).expect("short").to_be_bytes());
    decoder.push(json);
    let Ok(Some(Message::Request(request))) = decoder.next_message() else { panic!("a request") };
    assert_eq!(request.test.send_with(), SendWith::Sendfile);
    assert!(request.test.means.is_default() && request.features().next().is_none());
    let written = encode(&Message::Request(request)).expect("short");
    let text = String::from_utf8_lossy(&written[4..]).into_owned();
    for newer in ["means", "follow_ns", "host_id"] {
        assert!(!text.contains(newer), "{text}");
    }
}

/// What a machine says of a message that is not in order.
fn said_of<M: Machine<PeerFault = NativePeerFault>>(
    mut machine: M,
    message: &Message,
) -> Option<String> {
    let bytes = encode(message).expect("short");
    machine.handle(MonoTime::default(), Input::Bytes(&bytes));
    std::iter::from_fn(|| machine.poll()).find_map(|output| match output {
        Output::Failed(TestFailureReason::Peer(NativePeerFault::Wire(error))) => {
            Some(error.to_string())
        }
        _ => None,
    })
}

fn client() -> NativeClientMachine {
    let interval = Duration::from_secs(1);
    let test = NativeClientTest {
        request: Message::Request(asking(request())),
        span: None,
        interval,
        last: true,
        credentials: None,
    };
    NativeClientMachine::new(MonoTime::default(), test)
}

#[test]
fn a_message_out_of_order_is_named_with_what_was_expected() {
    let server = || NativeServerMachine::new(MonoTime::default());
    let said = said_of(server(), &Message::Start);
    assert_eq!(said.as_deref(), Some("unexpected start while waiting for request"));
    let said = said_of(client(), &Message::Ready);
    assert_eq!(said.as_deref(), Some("unexpected ready while waiting for accept or refuse"));
    // News of a search: before the answer, and never from a client.
    let news = Message::UdpSearch(SearchNews::default());
    assert!(said_of(client(), &news).is_some() && said_of(server(), &news).is_some());
}

#[test]
fn a_request_out_of_bounds_names_the_field() {
    type Spoil = fn(&mut TcpTest);
    let cases: &[(Spoil, &str)] = &[
        (|request| request.streams = 0, "streams"),
        (|request| request.streams = 129, "streams"),
        (|request| request.buffer_bytes = 0, "buffer"),
        (|request| request.interval_ns = 1, "interval"),
        (|request| request.dscp = Some(64), "code point"),
        (|request| request.finish = Finish::TimeNs(0), "time"),
        (|request| request.finish = Finish::Bytes(0), "bytes"),
        (|request| request.pace = Some(BitRate::from_bits_per_sec(0)), "pace"),
        (|request| request.read_bytes = Some(0), "read size"),
        (|request| request.read_bytes = Some((16 << 20) + 1), "read size"),
        (|request| request.means.client_cpus = vec![0; 1025], "processors"),
        (|request| request.means.server_cpus = vec![0; 1025], "processors"),
        (|request| request.means.send_bytes = Some(0), "sending call"),
        (
            |request| {
                request.means.verify_seed = Some(1);
                request.zero_copy = true;
            },
            "check of contents",
        ),
        (
            |request| {
                let receive_with = ReceiveWith::Trunc;
                let verify_seed = Some(1);
                request.means = Means { receive_with, verify_seed, ..Means::default() };
            },
            "check of contents",
        ),
        // The test of these cases goes both ways: nothing goes against it.
        (|request| request.background = Some(BitRate::from_bits_per_sec(1)), "background"),
    ];
    for (spoil, field) in cases {
        let mut spoiled = request();
        spoil(&mut spoiled);
        assert_eq!(spoiled.check().map_err(|error| error.field), Err(*field));
    }
    assert_eq!(asking(request()).check_bounds(), Ok(()));
    let long = NativeTcpTestRequest { follow_ns: Some(u64::MAX), ..asking(request()) };
    assert_eq!(
        long.check_bounds().map_err(|error| error.field),
        Err("time of the rounds that follow")
    );
}

#[test]
fn the_flow_in_the_background_is_one_paced_stream_the_other_way_until_it_is_stopped() {
    let up = TcpTest {
        directions: TcpDirections::Up,
        background: Some(BitRate::from_bits_per_sec(35)),
        ..request()
    };
    assert_eq!(up.check(), Ok(()));
    let flow = up.background().expect("it was asked for");
    assert_eq!((flow.directions, flow.streams), (TcpDirections::Down, 1));
    assert_eq!((flow.pace, flow.window_bytes, flow.background), (up.background, None, None));
    assert_eq!(flow.finish, Finish::TimeNs(u64::MAX));
    let down = TcpTest { directions: TcpDirections::Down, ..up };
    assert_eq!(down.background().map(|flow| flow.directions), Some(TcpDirections::Up));
    assert_eq!(request().background(), None);
}

#[test]
fn a_request_names_what_an_older_server_would_pass_over() {
    let names = |test: &TcpTest| asking(test.clone()).features().collect::<Vec<_>>();
    assert!(names(&request()).is_empty());
    let both = TcpTest {
        directions: TcpDirections::Up,
        read_bytes: Some(1024),
        read_pace: Some(BitRate::from_bits_per_sec(1000)),
        background: Some(BitRate::from_bits_per_sec(1)),
        ..request()
    };
    assert_eq!(names(&both), ["read_bytes", "read_pace", "background"]);
    let means = Means {
        receive_with: ReceiveWith::Trunc,
        verify_seed: Some(1),
        mptcp: true,
        ..Means::default()
    };
    let all = NativeTcpTestRequest { follow_ns: Some(1), ..asking(TcpTest { means, ..request() }) };
    assert_eq!(all.features().collect::<Vec<_>>(), ["means", "verify", "mptcp", "rounds"]);
    assert!(all.features().chain(names(&both)).all(|name| FEATURES.contains(&name)));
    // The client itself reads what comes down.
    let down = TcpTest { directions: TcpDirections::Down, ..both };
    assert_eq!(names(&down), ["background"]);
}

#[test]
fn a_refused_span_is_said_with_its_unit() {
    let wrong = TcpTest { interval_ns: 1_000_000, ..request() };
    let said = wrong.check().expect_err("below 10 ms").to_string();
    assert_eq!(said, "interval of 1ms is outside 10 ms … 1 day");
}

#[test]
fn another_protocols_greeting_is_quoted() {
    let said = NativeWireError::Magic(*b"SSH-2.0-").to_string();
    assert_eq!(said, "not a linerate peer: it begins with \"SSH-2.0-\"");
}

#[test]
fn a_token_survives_hexadecimal_and_nothing_else_does() {
    let token = Token([0x0f; 16]);
    assert_eq!(Token::from_hex(&token.to_hex()), Some(token));
    for wrong in ["", "0f", "zz0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ"]
    {
        assert_eq!(Token::from_hex(wrong), None, "{wrong}");
    }
}

/// Carries messages between both machines until neither has any; what the server says of them.
fn exchanged(
    mut client: NativeClientMachine,
    mut server: NativeServerMachine,
) -> (Vec<&'static str>, Vec<Output<NativeServerMachine>>) {
    let (now, mut names, mut said) = (MonoTime::default(), Vec::new(), Vec::new());
    for _ in 0..8 {
        let sent: Vec<_> = std::iter::from_fn(|| client.poll()).collect();
        for bytes in sent.iter().filter_map(sent_bytes) {
            names.push(name_of(bytes));
            server.handle(now, Input::Bytes(bytes));
        }
        let answers: Vec<_> = std::iter::from_fn(|| server.poll()).collect();
        for bytes in answers.iter().filter_map(sent_bytes) {
            names.push(name_of(bytes));
            client.handle(now, Input::Bytes(bytes));
        }
        said.extend(answers.into_iter().filter(|output| !matches!(output, Output::Send(_))));
    }
    (names, said)
}

fn sent_bytes<M: Machine>(output: &Output<M>) -> Option<&[u8]> {
    match output {
        Output::Send(bytes) => Some(bytes),
        _ => None,
    }
}

fn name_of(bytes: &[u8]) -> &'static str {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    decoder.next_message().expect("ours").expect("whole").name()
}

fn asking_by(credentials: Option<NativeCredentials>) -> NativeClientMachine {
    let request = Message::Request(asking(request()));
    let interval = Duration::from_secs(1);
    let test = NativeClientTest { request, span: None, interval, last: true, credentials };
    NativeClientMachine::new(MonoTime::default(), test)
}

#[test]
fn a_token_is_shown_between_the_request_and_its_answer_where_both_ends_know_how() {
    let challenge = Nonce([7; 32]);
    let credentials = || NativeCredentials {
        token: AccessToken::new("secret").expect("one word"),
        nonce: Nonce([9; 32]),
    };
    let server = || NativeServerMachine::new(MonoTime::default());
    let (names, said) = exchanged(asking_by(Some(credentials())), server().challenging(challenge));
    assert_eq!(names, ["request", "challenge", "proof"]);
    let [Output::News(Message::Proof(proof)), Output::Decide(_)] = &said[..] else {
        panic!("{} outputs", said.len())
    };
    let digest = crate::digest::sha256(b"secret");
    assert_eq!(proof.matching_digest(challenge, [digest].into_iter()), Some(digest));
    // A server that knows no tokens passes the word over; a client without one is not asked.
    for (client, server) in [
        (asking_by(Some(credentials())), server()),
        (asking_by(None), server().challenging(challenge)),
    ] {
        let (names, said) = exchanged(client, server);
        assert_eq!(names, ["request"]);
        assert!(matches!(said[..], [Output::Decide(_)]));
    }
    // Nobody is made to answer twice, and nobody who has nothing to show.
    let challenge = Message::Challenge { nonce: challenge };
    let said = said_of(asking_by(None), &challenge);
    assert_eq!(said.as_deref(), Some("unexpected challenge while waiting for accept or refuse"));
    let mut client = asking_by(Some(credentials()));
    client.handle(MonoTime::default(), Input::Bytes(&encode(&challenge).expect("short")));
    assert!(said_of(client, &challenge).is_some());
}
