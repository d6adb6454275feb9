//! The wire with bytes recorded from iperf3 3.12 (testdata/iperf3), and the machines in and out of
//! order. Cut and damaged bytes are in tests/quick/corpora/iperf3.rs.

use super::*;

const TCP_CLIENT: &[u8] = include_bytes!("../../../../testdata/iperf3/tcp-client.bin");
const TCP_SERVER: &[u8] = include_bytes!("../../../../testdata/iperf3/tcp-server.bin");
const REVERSE_CLIENT: &[u8] = include_bytes!("../../../../testdata/iperf3/reverse-client.bin");
const REVERSE_SERVER: &[u8] = include_bytes!("../../../../testdata/iperf3/reverse-server.bin");
const BOTH_CLIENT: &[u8] = include_bytes!("../../../../testdata/iperf3/both-client.bin");
const BOTH_SERVER: &[u8] = include_bytes!("../../../../testdata/iperf3/both-server.bin");
const UDP_CLIENT: &[u8] = include_bytes!("../../../../testdata/iperf3/udp-client.bin");
const UDP_SERVER: &[u8] = include_bytes!("../../../../testdata/iperf3/udp-server.bin");

/// What a server makes of a client's recorded bytes.
fn served(bytes: &[u8]) -> (Params, Results) {
    let (cookie, rest) = bytes.split_first_chunk().expect("a cookie");
    Cookie::parse(cookie).expect("as recorded");
    let mut machine = ServerOrder::default();
    machine.push(rest);
    let Ok(Some(ServerEvent::Params(params))) = machine.next_event() else { panic!("params") };
    machine.note_accepted();
    machine.note_running();
    assert_eq!(machine.next_event(), Ok(Some(ServerEvent::Ended)));
    let Ok(Some(ServerEvent::Results(results))) = machine.next_event() else { panic!("results") };
    assert_eq!(machine.next_event(), Ok(Some(ServerEvent::Finished)));
    assert_eq!(machine.next_event(), Ok(None));
    (*params, *results)
}

/// What a client makes of a server's recorded bytes.
fn asked(bytes: &[u8]) -> Results {
    let mut machine = ClientOrder::default();
    machine.push(bytes);
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::SendParams)));
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::CreateStreams)));
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::Starting)));
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::Running)));
    machine.note_test_end();
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::SendResults)));
    let Ok(Some(ClientEvent::Results(results))) = machine.next_event() else { panic!("results") };
    assert_eq!(machine.next_event(), Ok(Some(ClientEvent::Finished)));
    *results
}

#[test]
fn recorded_parameters_are_those_of_the_flags() {
    let (params, _) = served(TCP_CLIENT);
    let expected = Params {
        time_s: 1,
        parallel: 1,
        block_bytes: Some(1000),
        rate_bps: Some(10_000_000),
        congestion: Some("cubic".to_owned()),
        client_version: Some("3.12".to_owned()),
        ..Params::default()
    };
    assert_eq!(params, expected);
    let (params, _) = served(REVERSE_CLIENT);
    assert_eq!((params.bytes, params.parallel, params.reverse), (1 << 20, 2, true));
    assert_eq!((params.window_bytes, params.mss_bytes), (Some(65_536), Some(1000)));
    assert_eq!((params.nodelay, params.zerocopy, params.tos), (true, true, Some(32)));
    let (params, _) = served(BOTH_CLIENT);
    assert_eq!((params.blocks, params.bidirectional), (3, true));
    assert_eq!(params.title.as_deref(), Some("a title"));
    assert_eq!(params.extra_data.as_deref(), Some("more"));
    assert!(params.get_server_output);
    let (params, _) = served(UDP_CLIENT);
    assert_eq!((params.protocol, params.udp_counters_64bit), (Protocol::Udp, true));
}

#[test]
fn recorded_results_are_read_stream_by_stream() {
    let (_, client) = served(TCP_CLIENT);
    let server = asked(TCP_SERVER);
    // What was on the way at the end counts on one side only.
    assert_eq!((client.streams[0].bytes, server.streams[0].bytes), (1_249_000, 1_233_000));
    assert_eq!(client.streams[0].retransmits, Some(0));
    // Version 3.12 writes -1 as 2^64 - 1.
    assert_eq!(server.streams[0].retransmits, None);
    assert_eq!(client.sender_has_retransmits, Some(true));
    assert_eq!(server.congestion_used.as_deref(), Some("cubic"));
    let server = asked(REVERSE_SERVER);
    assert_eq!(server.streams.iter().map(|stream| stream.id).collect::<Vec<_>>(), [1, 3]);
    let (_, client) = served(UDP_CLIENT);
    assert_eq!((client.streams[0].packets, client.streams[0].bytes), (125, 125_000));
    let server = asked(UDP_SERVER);
    assert_eq!((server.streams[0].packets, server.streams[0].lost), (125, 0));
    assert!(server.streams[0].jitter_s > 0.0);
    assert_eq!(server.sender_has_retransmits, None);
}

#[test]
fn what_the_server_printed_comes_with_its_results() {
    let results = asked(BOTH_SERVER);
    let Some(ServerOutput::Text(text)) = results.server_output else { panic!("no text") };
    assert!(text.starts_with("Accepted connection from 127.0.0.1"), "{text}");
    let span = results.streams[1].span_s().expect("both times are there");
    assert!((span - 0.039_492).abs() < 1e-9);
}

#[test]
fn own_parameters_have_the_types_that_servers_check() {
    let params = Params {
        parallel: 2,
        time_s: 3,
        nodelay: true,
        reverse: true,
        get_server_output: true,
        ..Params::default()
    };
    // Keys in alphabetical order; 3.18 and later insist on true and 1 as they stand here.
    let expected = r#"{"blockcount":0,"get_server_output":1,"nodelay":true,"num":0,"omit":0,"#
        .to_owned()
        + r#""pacing_timer":1000,"parallel":2,"reverse":true,"tcp":true,"time":3}"#;
    assert_eq!(params.to_json(), expected);
    assert_eq!(frame_json("{}"), [0, 0, 0, 2, b'{', b'}']);
}

#[test]
fn streams_are_numbered_1_3_4_5() {
    let ids: Vec<u32> = (0..5).map(stream_id).collect();
    assert_eq!(ids, [1, 3, 4, 5, 6]);
}

#[test]
fn parameters_out_of_bounds_have_the_number_that_iperf3_has_for_them() {
    let base = || Params { parallel: 1, time_s: 10, ..Params::default() };
    let udp = || Params { protocol: Protocol::Udp, ..base() };
    let cases = [
        (Params { parallel: 0, ..base() }, 6),
        (Params { parallel: 129, ..base() }, 6),
        (Params { time_s: 86_401, ..base() }, 5),
        (Params { omit_s: 601, ..base() }, 12),
        (Params { block_bytes: Some((1 << 20) + 1), ..base() }, 7),
        (Params { block_bytes: Some(15), ..udp() }, 20),
        (Params { block_bytes: Some(65_508), ..udp() }, 20),
        (Params { window_bytes: Some((512 << 20) + 1), ..base() }, 8),
        (Params { mss_bytes: Some(32_768), ..base() }, 10),
        (Params { tos: Some(256), ..base() }, 21),
        (Params { burst: Some(1001), ..base() }, 15),
        (Params { reverse: true, bidirectional: true, ..base() }, 25),
    ];
    for (params, number) in cases {
        let error = params.check_bounds().expect_err("out of bounds");
        assert_eq!(error.code.0, number, "{error}");
    }
    assert_eq!(base().check_bounds(), Ok(()));
}

#[test]
fn a_key_of_another_type_is_named() {
    let error = Params::parse(br#"{"tcp":true,"parallel":"many"}"#).expect_err("a text");
    assert_eq!(error.to_string(), "malformed parameters: parallel is a text");
    let error = Params::parse(br#"{"tcp":true,"time":-1}"#).expect_err("below zero");
    assert_eq!(error.to_string(), "malformed parameters: time is -1");
    let error = Results::parse(br#"{"streams":{}}"#).expect_err("no list");
    assert_eq!(error.to_string(), "malformed results: streams is an object");
    let many = format!("{{\"streams\":[{}{{}}]}}", "{},".repeat(256));
    assert!(Results::parse(many.as_bytes()).is_err(), "257 streams");
    // Keys that nobody knows are left alone.
    assert!(Params::parse(br#"{"tcp":true,"mptcp":true,"new":[1]}"#).is_ok());
}

#[test]
fn a_length_out_of_bounds_is_refused_before_its_bytes_come() {
    for length in [0, 65_537, u32::MAX] {
        let mut machine = ServerOrder::default();
        machine.push(&length.to_be_bytes());
        let error = machine.next_event().expect_err("out of bounds");
        assert!(matches!(error, WireError::Length { bytes_max: PARAMS_BYTES_MAX, .. }), "{error}");
    }
}

#[test]
fn a_server_error_brings_its_numbers_or_not() {
    // Number 134 and errno 2, big-endian, as spec/iperf3.md has them.
    let bytes = [0xfe, 0, 0, 0, 134, 0, 0, 0, 2];
    assert_eq!(server_error(ErrorCode::CONGESTION, 2), bytes);
    let mut machine = ClientOrder::default();
    machine.push(&bytes);
    let failed = ClientEvent::Failed(Some((ErrorCode::CONGESTION, 2)));
    assert_eq!(machine.next_event(), Ok(Some(failed)));
    let mut machine = ClientOrder::default();
    machine.push(&bytes[..1]);
    assert_eq!(machine.next_event(), Ok(None));
    assert_eq!(machine.event_on_close(), Some(ClientEvent::Failed(None)));
}

#[test]
fn a_busy_server_is_understood_at_every_stage() {
    for before in [&[][..], &[9], &[9, 10], &[9, 10, 1], &[9, 10, 1, 2]] {
        let mut machine = ClientOrder::default();
        machine.push(before);
        before.iter().for_each(|_| assert!(matches!(machine.next_event(), Ok(Some(_)))));
        machine.push(&[0xff]);
        assert_eq!(machine.next_event(), Ok(Some(ClientEvent::Denied)));
        machine.push(&[9]);
        assert!(machine.next_event().is_err(), "nothing is in order after the end");
    }
}

#[test]
fn a_byte_out_of_order_is_named_with_what_was_expected() {
    let mut client = ClientOrder::default();
    client.push(&[13]);
    let error = client.next_event().expect_err("out of order");
    let said = "unexpected exchange results while waiting for parameter exchange";
    assert_eq!(error.to_string(), said);
    let mut client = ClientOrder::default();
    client.push(&[3]);
    assert_eq!(client.next_event(), Err(WireError::State(3)));
    let mut server = ServerOrder::default();
    server.push(&frame_json("{\"tcp\":true}"));
    server.push(&[4]);
    assert!(matches!(server.next_event(), Ok(Some(ServerEvent::Params(_)))));
    let error = server.next_event().expect_err("no streams yet").to_string();
    assert_eq!(error, "unexpected test end while waiting for the data streams");
}

#[test]
fn another_protocols_greeting_is_quoted() {
    let bytes: &[u8; COOKIE_BYTES] = b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n";
    let error = Cookie::parse(bytes).expect_err("no cookie");
    assert_eq!(error.to_string(), "not an iperf3 peer: it begins with \"GET / HT\"");
    let cookie = Cookie::from_random([0xff; 36]);
    assert_eq!(cookie.printable_text(), "7".repeat(36));
    assert_eq!(Cookie::parse(&cookie.to_bytes()), Ok(cookie));
}

#[test]
fn a_cookie_may_have_a_character_in_place_of_the_zero_byte() {
    // iperf3 compares 37 bytes and looks at none of them; Python's clients send 37 characters.
    let bytes = b"0123456789abcdef-0123456789abcdef-xyz";
    let cookie = Cookie::parse(bytes).expect("37 characters");
    assert_eq!((&cookie.to_bytes(), cookie.printable_text().as_bytes()), (bytes, &bytes[..]));
    let mut zero = *bytes;
    zero[36] = 0;
    let ends = Cookie::parse(&zero).expect("36 characters and a zero byte");
    assert_eq!((ends.printable_text().as_bytes(), ends == cookie), (&bytes[..36], false));
    for (at, byte) in [(36, 7), (36, b' '), (35, 0), (0, 0x80)] {
        let mut wrong = *bytes;
        wrong[at] = byte;
        assert!(Cookie::parse(&wrong).is_err(), "{byte} at {at}");
    }
}

#[test]
fn parameters_of_the_newest_client_are_read_whatever_it_adds() {
    // What 3.21 sends with every flag that this end does not know (iperf_api.c, send_parameters).
    let text = br#"{"udp":true,"omit":1,"server_affinity":0,"time":2,"num":0,"blockcount":0,
        "parallel":3,"reverse":true,"mptcp":true,"len":1448,"bandwidth":50000000,
        "fqrate":20000000,"pacing_timer":1000,"gso":1,"gso_dg_size":1448,"gso_bf_size":65160,
        "gro":1,"gro_bf_size":65536,"flowlabel":7,"extra_data":"more","congestion_used":"cubic",
        "repeating_payload":1,"dont_fragment":1,"skip_rx_copy":1,"client_version":"3.21"}"#;
    let params = Params::parse(text).expect("sound parameters");
    let expected = Params {
        protocol: Protocol::Udp,
        omit_s: 1,
        time_s: 2,
        parallel: 3,
        reverse: true,
        block_bytes: Some(1448),
        rate_bps: Some(50_000_000),
        fq_rate_bps: Some(20_000_000),
        server_affinity: Some(0),
        extra_data: Some("more".to_owned()),
        client_version: Some("3.21".to_owned()),
        ..Params::default()
    };
    assert_eq!((params.check_bounds(), &params), (Ok(()), &expected));
    assert_eq!(Params::parse(expected.to_json().as_bytes()), Ok(expected));
}

#[test]
fn a_test_that_is_too_long_is_refused_by_a_number_that_the_client_knows() {
    for (version, too_long) in [
        (None, 100),
        (Some("3.1.3"), 100),
        // Debian 12 has this one: "test authorization failed".
        (Some("3.12"), 142),
        // "server test duration expired".
        (Some("3.17"), 160),
        (Some("3.19.1"), 160),
        (Some("3.20"), 37),
        (Some("3.21+"), 37),
        (Some("4.0"), 37),
        (Some("linerate 0.1.0"), 37),
        (Some("riperf3 0.9.1"), 100),
        (Some("three"), 100),
    ] {
        let client_version = version.map(str::to_owned);
        let params = Params { client_version, ..Params::default() };
        assert_eq!(params.too_long().0, too_long, "{version:?}");
    }
    assert!(ErrorCode(37).to_string().contains("does not allow"), "{}", ErrorCode(37));
}

#[test]
fn datagrams_are_those_that_were_recorded() {
    // The head of the second datagram of `iperf3 -u --udp-counters-64bit`, version 3.12.
    let head = [0, 0, 0x62, 0x42, 0, 0, 0xcb, 0xb7, 0, 0, 0, 0, 0, 0, 0, 2];
    let header = DatagramHeader::parse(&head, CounterWidth::Bits64).expect("long enough");
    assert_eq!((header.seconds, header.microseconds, header.sequence), (0x6242, 0xcbb7, 2));
    let mut again = [0; 16];
    assert_eq!(header.write(&mut again, CounterWidth::Bits64), Some(16));
    assert_eq!(again, head);
    let narrow = DatagramHeader { sequence: (1 << 32) + 7, ..header };
    assert_eq!(narrow.write(&mut again, CounterWidth::Bits32), Some(12));
    let read = DatagramHeader::parse(&again, CounterWidth::Bits32).expect("long enough");
    assert_eq!(read.sequence, 7);
    assert_eq!(DatagramHeader::parse(&head[..11], CounterWidth::Bits32), None);
    assert_eq!(header.write(&mut [0; 15], CounterWidth::Bits64), None);
}

#[test]
fn a_server_error_without_the_kernels_number_still_has_iperf3s() {
    // What 3.12 says to a client whose user it does not know: 9, then -2 and 142, and no more.
    for (bytes, expected) in [
        (&[9, 0xfe, 0, 0, 0, 142][..], Some((ErrorCode::AUTHENTICATION, 0))),
        (&[9, 0xfe, 0, 0], None),
    ] {
        let mut machine = ClientOrder::default();
        machine.push(bytes);
        assert_eq!(machine.next_event(), Ok(Some(ClientEvent::SendParams)));
        assert_eq!(machine.next_event(), Ok(None));
        assert_eq!(machine.event_on_close(), Some(ClientEvent::Failed(expected)));
    }
}

#[test]
fn answers_of_old_and_new_servers_open_a_stream() {
    let answers: [&[u8]; 4] =
        [b"6789", b"9876", &[0xb1, 0x68, 0xde, 0x3a], &[0x3a, 0xde, 0x68, 0xb1]];
    answers.iter().for_each(|word| assert!(is_connect_reply(word), "{word:?}"));
    for other in [&b"6788"[..], b"678", b"67890", &[0; 1000]] {
        assert!(!is_connect_reply(other));
    }
    assert_eq!((CONNECT_REQUEST, CONNECT_REPLY), (*b"9876", *b"6789"));
}
