//! Any bytes as either side of the native protocol, in one piece and in many: no panic, the same
//! messages and the same end, messages that survive being written again, requests within bounds.

use std::time::Duration;

use linerate_core::record::{AccessToken, Direction};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{Input, Machine, Output};
use linerate_proto::native::{
    Accept, DataHello, Decoder, Hello, Message, NativeClientMachine, NativeClientTest,
    NativeCredentials, NativeServerMachine, NativeServerTerms, NativeTcpTestRequest,
    NativeWireError, Nonce, Token, TrainReport, encode,
};

const NOW: MonoTime = MonoTime::from_nanos(0);

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    hellos(bytes);
    let piece = 1 + bytes.len() % 37;
    let whole = messages(bytes, bytes.len().max(1));
    assert_eq!(messages(bytes, piece), whole);
    if whole.0.is_empty() && bytes.len() > 64 {
        return;
    }
    for piece in [piece, bytes.len()] {
        client(bytes, piece);
        server(bytes, piece);
    }
}

fn hellos(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk() else { return };
    match Hello::parse(head) {
        Ok(hello) => {
            let again = Hello::parse(&hello.to_bytes()).map(|it| it.kind);
            assert_eq!(again, Ok(hello.kind));
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    for rest in [bytes.first_chunk(), rest.first_chunk()].into_iter().flatten() {
        if let Ok(hello) = DataHello::parse_rest(rest) {
            assert_eq!(hello.to_bytes().last_chunk(), Some(rest));
        }
    }
    if let Some(token) = std::str::from_utf8(head).ok().and_then(Token::from_hex) {
        assert_eq!(token.to_hex().as_bytes(), head.to_ascii_lowercase());
    }
}

/// The messages of a stream, and what ends it.
fn messages(bytes: &[u8], piece: usize) -> (Vec<Message>, Option<NativeWireError>) {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => {
                    survives(&message);
                    within_bounds(&message);
                    messages.push(message);
                }
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

fn survives(message: &Message) {
    // A number may be longer when it is written again, and the message too long for it.
    let Ok(bytes) = encode(message) else { return };
    let mut decoder = Decoder::default();
    decoder.push(&bytes);
    assert_eq!(decoder.next_message().as_ref(), Ok(&Some(message.clone())));
}

/// What a server holds against the bounds of the protocol is good to compute with, or refused.
fn within_bounds(message: &Message) {
    let refused = match message {
        Message::Request(request) => {
            let _ = request.features().count();
            request.check_bounds().err()
        }
        Message::UdpRequest { test, .. } => test.check().err(),
        Message::TrainsRequest(request) => request.check_bounds().err(),
        Message::TrainRound(round) => match round.check_bounds() {
            Ok(()) => {
                let ends = [Direction::Up, Direction::Down].map(|it| round.last_packet_time(it));
                assert!(ends.iter().all(|end| *end <= Duration::from_secs(30)));
                None
            }
            Err(error) => Some(error),
        },
        Message::Proof(proof) => {
            assert_eq!(proof.matching_digest(Nonce([9; 32]), [[0; 32]].into_iter()), None);
            None
        }
        Message::TrainReport(report) => {
            let stamps = report.stamps();
            let again = TrainReport::from_stamps(report.round, report.train, &stamps);
            assert_eq!(again.stamps(), stamps);
            None
        }
        Message::TraceRequest(request) => {
            assert_eq!(request.within_bounds().port, request.port);
            request.check_bounds().err()
        }
        _ => None,
    };
    if let Some(error) = refused {
        assert!(!error.to_string().contains('\n'));
    }
}

/// What a client does with what its server sends.
fn client(bytes: &[u8], piece: usize) {
    let token = AccessToken::new("a-token-of-a-user").expect("a token");
    let test = NativeClientTest {
        request: Message::Request(NativeTcpTestRequest::default()),
        span: None,
        interval: Duration::from_secs(1),
        last: true,
        credentials: Some(NativeCredentials { token, nonce: Nonce([7; 32]) }),
    };
    let mut machine = NativeClientMachine::new(NOW, test);
    feed(&mut machine, bytes, piece, |_| Ok(()));
}

/// What a server does with what its client sends.
fn server(bytes: &[u8], piece: usize) {
    let mut machine = NativeServerMachine::new(NOW).challenging(Nonce([9; 32]));
    feed(&mut machine, bytes, piece, |_| {
        let accept = Accept {
            token: Token([0xab; 16]).to_hex(),
            data_port: 5210,
            udp_ports: Vec::new(),
            host_id: None,
            end: linerate_core::record::MeasurementEnd::default(),
            features: Vec::new(),
        };
        Ok(NativeServerTerms {
            accept: Box::new(accept),
            interval: Duration::from_secs(1),
            span_max: Duration::from_secs(10),
            stall_after: None,
            end: Duration::from_secs(20),
            step: Duration::from_secs(5),
            streams: "the data streams",
            overdue: None,
        })
    });
}

/// Hands a machine the bytes and does at once what it wants; after its end it wants nothing.
fn feed<M: Machine>(
    machine: &mut M,
    bytes: &[u8],
    piece: usize,
    decide: impl Fn(&M::Request) -> Result<M::Terms, M::Refusal>,
) {
    let mut ended = false;
    for piece in bytes.chunks(piece.max(1)) {
        if machine.wait_conditions().reads {
            assert!(!ended);
            machine.handle(NOW, Input::Bytes(piece));
        }
        while let Some(output) = machine.poll() {
            assert!(!ended);
            match output {
                Output::Decide(request) => machine.handle(NOW, Input::Decided(decide(&request))),
                Output::Open => machine.handle(NOW, Input::Opened),
                Output::Failed(_) | Output::Finished => ended = true,
                _ => {}
            }
        }
    }
}
