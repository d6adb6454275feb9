//! Corpora of readers whose formats are few bytes: each made by its own builder or by hand, and
//! whole.

use std::net::SocketAddr;

use linerate_core::record::{
    DatagramCounts, Direction, EndReport, FlowEnd, MeasurementEnd, SearchNews, TraceResult, UdpTest,
};
use linerate_core::search::{DelayRange, StreamCounts};
use linerate_proto::datagrams::{Datagram, DatagramArrival, DatagramRoundRequest, Report};
use linerate_proto::echo::{
    IcmpProbe, PeerTimes, SegmentAddresses, SynProbe, UdpProbe, answer_in_place,
};
use linerate_proto::iperf3::Credentials;
use linerate_proto::meet::{Meet, MeetBody, MeetKey, MeetRole};
use linerate_proto::native::{
    Accept, DataHello, Grant, Hello, HelloKind, Message, NativeDatagramHeader,
    NativeTcpTestRequest, Newest, Nonce, OpeningDatagram, OpeningStep, Refuse, RefuseCode, Token,
    TraceRequest, TrainHeader, TrainPlan, TrainReport, TrainRound, TrainsRequest, UdpSample,
    UdpStatus, encode,
};

use super::folder;

fn from_hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|it| it.to_digit(16)).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, it| byte << 4 | *it as u8)).collect()
}

/// Replies of chronyd 4.3: one that is set by a server, one without.
pub(super) fn chrony() -> Vec<Vec<u8>> {
    let set = "06020000 00210005 00000000 00000000 d4e2baf9 00000000 00000000 0a630d01 0a630d01
        00000000 00000000 00000000 00010000 00090000 00000000 6b0451ca 317103f7 df5502e5 d4a7e9cc
        d89786c5 faa8f739 eece53d7 fa9332ae e0f8e823 de83eefb 06822815";
    let lost = "06020000 00210005 00000000 00000000 83b1a734 00000000 00000000 00000000 00000000
        00000000 00000000 00000000 00000000 00000003 00000000 00000000 00000000 00000000 00000000
        00000000 00000000 00000000 00000000 04800000 04800000 00000000";
    vec![from_hex(set), from_hex(lost)]
}

/// Texts of clients, tokens, and a file of users.
pub(super) fn credentials() -> Vec<Vec<u8>> {
    let client =
        Credentials { user: "u".into(), password: "a secret".into(), time_s: 1_700_000_000 };
    let users = format!("# users\nann,{}\n\nbob, {}\n", "ab".repeat(32), "0".repeat(64));
    vec![client.to_text().into_bytes(), users.into_bytes(), b"YWJj\nZA==".to_vec()]
}

/// Answers to probes of ping and trace, and questions to the echo.
pub(super) fn echoes() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for size in [16, 24, 44, 64] {
        let probe = UdpProbe::new(size, 0xC0FF_EE00).expect("not too short");
        let mut question = probe.asking_times().asking_class(0xB8).request(7, 1).to_vec();
        all.push(question.clone());
        assert!(answer_in_place(&mut question));
        PeerTimes { received_ns: 5, sent_ns: 9 }.write(&mut question);
        all.push(question);
    }
    for (family, reply) in
        [(linerate_core::record::IpFamily::V4, 0), (linerate_core::record::IpFamily::V6, 129)]
    {
        let mut probe = IcmpProbe::new(family, Some(9), 56, 0x0102_0304_0506_0708);
        let mut answer = probe.request(3, 1).to_vec();
        answer[0] = reply;
        all.push(answer);
    }
    let source = SocketAddr::from(([192, 0, 2, 1], 1));
    let destination = SocketAddr::from(([192, 0, 2, 2], 80));
    let ends = SegmentAddresses { source, destination };
    let mut segment = SynProbe::new(7).segment(1, ends, 60);
    segment[13] = 0x12;
    all.push(segment);
    all
}

/// Messages of all three kinds, alone and one after the other.
pub(super) fn meetings() -> Vec<Vec<u8>> {
    let (key, other) = (MeetKey::from_word("word"), Some(SocketAddr::from(([192, 0, 2, 9], 7))));
    let six = Some("[2001:db8::1]:9".parse().expect("an address"));
    let said = [
        (MeetRole::Measures, MeetBody::Ask { cookie: 0, relay: true }),
        (MeetRole::Answers, MeetBody::Ask { cookie: 0, relay: true }),
        (MeetRole::Answers, MeetBody::Told { cookie: 7, other, relayed: false }),
        (MeetRole::Measures, MeetBody::Told { cookie: 7, other: six, relayed: true }),
        (MeetRole::Measures, MeetBody::Hello { heard: true }),
    ];
    let all = said.map(|(role, say)| Meet { key, role, say }.encode().to_vec());
    let mut corpus = all.to_vec();
    // An address of IPv4 in the form of IPv6.
    let mut mapped = all[3].to_vec();
    mapped[40..56].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9]);
    corpus.push(mapped);
    corpus.push(all.concat());
    corpus
}

/// A datagram, an ask and reports of a page's round.
pub(super) fn page_datagrams() -> Vec<Vec<u8>> {
    let seen = (0..9)
        .map(|number| DatagramArrival { number, came_us: 1000 + u64::from(number) })
        .collect();
    let ask = DatagramRoundRequest { round: 1, bytes: 100, count: 3000, interval_us: 5000 };
    vec![
        Datagram { round: 1, number: 7, sent_us: 123_456 }.padded_bytes(40),
        ask.wire_bytes().to_vec(),
        Report { sent: 1, seen }.wire_bytes(),
        Report::default().wire_bytes(),
    ]
}

/// Heads of browsers, of other programs' clients, of streams of load.
pub(super) fn heads() -> Vec<Vec<u8>> {
    let websocket = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ";
    let token = "ab".repeat(16);
    [
        format!("GET /api/v1/load/{token}/down/3 HTTP/1.1\r\nHost: h:5210\r\n\r\n"),
        format!(
            "POST /api/v1/load/{token}/up/0?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\
             Expect: 100-continue\r\nOrigin: https://h\r\nUser-Agent: Mozilla/5.0\r\n\r\nhello"
        ),
        "GET /backend/garbage.php?ckSize=100&cors=true HTTP/1.1\r\nConnection: close\r\n\r\n"
            .into(),
        "OPTIONS /__up HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".into(),
        "GET /__down?bytes=1000000 HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n".into(),
        format!("GET /ndt/v7/download HTTP/1.1\r\n{websocket}net.measurementlab.ndt.v7\r\n\r\n"),
        format!(
            "GET /throughput/v1/upload?mid=1&streams=2&duration=5000&cc=bbr&bytes=9 HTTP/1.1\r\n\
             {websocket}net.measurementlab.throughput.v1\r\n\r\n"
        ),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// Frames of a client, of each width of length.
pub(super) fn frames() -> Vec<Vec<u8>> {
    let mask = [1, 2, 3, 4];
    let short = [&[0x81, 0x80 | 5], &mask[..], b"hello"].concat();
    let middle = [&[0x82, 0x80 | 126, 0, 200], &mask[..], &[7; 200]].concat();
    let long = [&[0x02, 0x80 | 127, 0, 0, 0, 0, 0, 0, 1, 0], &mask[..], &[7; 256]].concat();
    let close = [&[0x88, 0x82], &mask[..], &[3, 0xe8]].concat();
    vec![[&short[..], &middle, &long, &close].concat(), short, middle, long, close]
}

/// Lengths of datagrams: a begin, data, ends.
pub(super) fn lengths() -> Vec<Vec<u8>> {
    let words: [u16; 8] = [4, 8192, 8192, 1472, 4, 4, 0, 5];
    vec![words.iter().flat_map(|word| word.to_be_bytes()).collect(), vec![0; 40], vec![9; 40]]
}

/// Datagrams of the opening, of data, of a search and of trains.
pub(super) fn datagrams() -> Vec<Vec<u8>> {
    let token = Token([0xab; 16]);
    let opening = |step| OpeningDatagram { step, token, stream: 1, direction: Direction::Down };
    let tally = StreamCounts { received: 9, next: 10, reordered: 1, duplicates: 2 };
    let delay = DelayRange { min_ns: 1, mean_ns: 2, max_ns: 3 };
    let status = |newest| UdpStatus { tag: 7, t_ns: 5, number: 1, tally, newest };
    let header = |number| NativeDatagramHeader { number, tag: 0xbeef, stamp_ns: 3 }.to_bytes();
    vec![
        opening(OpeningStep::Hello).to_bytes().to_vec(),
        opening(OpeningStep::Answer(7)).to_bytes().to_vec(),
        status(None).to_bytes().to_vec(),
        status(Some(Newest { stamp_ns: 1, held_ns: 2, delay })).to_bytes().to_vec(),
        Grant { next: 1, limit: 2, most: 3 }.to_bytes(7).to_vec(),
        TrainHeader { round: 1, train: 2, index: 3, tag: 4 }.to_bytes().to_vec(),
        (0..6).flat_map(|number| [&header(number * 3)[..], &[0]].concat()).collect(),
    ]
}

/// The first packets of the captures, as the entry of `decode` has them: the place of the link type
/// in its list, a mark, a length, the bytes.
pub(super) fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for bytes in captures() {
        let (mut parser, mut rest) = (linerate_proto::capture::CaptureParser::new(), &bytes[..]);
        while let Ok(step) = parser.parse_record(rest) {
            let used = match step {
                linerate_proto::capture::CaptureStep::Packet { packet, used } => {
                    let types = super::entries::decode::LINK_TYPES;
                    let link = types.iter().position(|it| *it == packet.link_type.0).unwrap_or(0);
                    let length = packet.original_len.to_le_bytes();
                    all.push([&[link as u8, 0], &length[..], packet.data].concat());
                    used
                }
                linerate_proto::capture::CaptureStep::Passed { used } => used,
                linerate_proto::capture::CaptureStep::Needs { .. } => break,
            };
            rest = &rest[used..];
        }
    }
    all.sort();
    all.dedup();
    assert!(all.len() > 20, "{} packets", all.len());
    all
}

/// The captures, without those of many kilobytes.
pub(super) fn captures() -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder("captures")).expect("the captures are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng"));
    paths.sort();
    let all = paths.iter().map(|path| std::fs::read(path).expect("readable"));
    let corpus: Vec<_> = all.filter(|bytes| bytes.len() <= 8192).collect();
    assert!(corpus.len() >= 10, "{} captures", corpus.len());
    corpus
}

/// Hellos, each message alone, and both sides of a test.
pub(super) fn native() -> Vec<Vec<u8>> {
    let messages = messages();
    let framed = |message: &Message| encode(message).expect("short");
    let mut corpus: Vec<Vec<u8>> = messages.iter().map(framed).collect();
    let of = |names: &[&str]| -> Vec<u8> {
        let found = |name: &&str| messages.iter().find(|it| it.name() == *name).expect("a message");
        names.iter().map(found).flat_map(framed).collect()
    };
    corpus.push(of(&["challenge", "accept", "ready", "interval", "train_report", "result"]));
    corpus.push(of(&["request", "proof", "start", "udp_sent", "train_round", "stop", "bye"]));
    corpus.push(Hello::new(HelloKind::Control).to_bytes().to_vec());
    let hello = DataHello { token: Token([0xab; 16]), stream: 258, direction: Direction::Down };
    corpus.push(hello.to_bytes().to_vec());
    corpus
}

/// One message of each kind, but those without contents.
fn messages() -> Vec<Message> {
    let plan = |direction, count| TrainPlan {
        direction,
        size_bytes: 1200,
        count,
        gap_ns: 1_000_000,
        at_ns: 10,
    };
    let trains = vec![plan(Direction::Up, 50), plan(Direction::Down, 20_000)];
    let accept = Accept {
        token: "ab".repeat(16),
        data_port: 5210,
        udp_ports: vec![1, 2],
        host_id: Some("h".to_owned()),
        end: MeasurementEnd::default(),
        features: vec!["means".to_owned()],
    };
    let sample = UdpSample {
        direction: Direction::Up,
        flow: 0,
        t_ns: 1,
        counts: DatagramCounts::default(),
        cpu_ns: None,
        run_queue_wait_ns: Some(3),
    };
    let trace = TraceRequest {
        count: 10,
        interval_ns: 500_000_000,
        timeout_ns: 1_000_000_000,
        hops_max: 30,
        port: 33_434,
        dscp: None,
        login: false,
    };
    let flow = "{\"type\":\"interval\",\"samples\":[{\"direction\":\"up\",\"flow\":0,\"t_ns\":1,\
                \"bytes\":2,\"retransmits\":3,\"signals\":[1,null]}]}";
    let proof =
        format!("{{\"type\":\"proof\",\"nonce\":\"{}\",\"proof\":\"abcd\"}}", "01".repeat(32));
    let read = |text: &str| linerate_core::tree::from_json(text).expect(text);
    let refuse =
        Refuse { code: RefuseCode::Busy, reason: "r".into(), retry_after_ms: Some(1), fits: None };
    let report = EndReport::from_flow_end(Direction::Down, 1, FlowEnd::default());
    vec![
        Message::Request(NativeTcpTestRequest::default()),
        Message::Accept(Box::new(accept)),
        Message::Refuse(refuse),
        Message::Ready,
        Message::Start,
        read(flow),
        Message::Stop,
        Message::Result { reports: vec![report] },
        udp_request(),
        Message::Challenge { nonce: Nonce([1; 32]) },
        read(&proof),
        Message::UdpInterval { samples: vec![sample] },
        read(
            "{\"type\":\"udp_sent\",\"streams\":[{\"direction\":\"up\",\"flow\":0,\"datagrams\":9,\
              \"measured\":8,\"span_ns\":7}]}",
        ),
        Message::UdpSearch(SearchNews::default()),
        Message::TrainsRequest(TrainsRequest { planned_ns: 1_000_000_000, login: true }),
        Message::TrainRound(TrainRound { round: 0, quiet_ns: 5, trains }),
        Message::TrainReport(TrainReport::from_stamps(0, 1, &[Some(5), None, Some(3), Some(9)])),
        Message::TraceRequest(trace),
        Message::TraceFound { trace: Box::new(TraceResult::default()) },
        Message::Abort { reason: "why".to_owned() },
        Message::Bye,
    ]
}

fn udp_request() -> Message {
    let test = UdpTest {
        directions: linerate_core::record::TcpDirections::Both,
        streams: 2,
        finish: linerate_core::record::Finish::Bytes(10_000),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: 1472,
        pace: None,
        window_bytes: None,
        dscp: None,
        joined: true,
        search: None,
        taken_singly: false,
    };
    Message::UdpRequest { test, login: true }
}
