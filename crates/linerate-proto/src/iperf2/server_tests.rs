//! The steps of a server's machine that no simulated client asks for.

use super::super::Iperf2Amount;
use super::*;

fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos(ms * 1_000_000)
}

fn terms() -> Terms {
    let (span_max, interval) = (Duration::from_secs(60), Duration::from_secs(1));
    // The wall clock is 1 s and 3 µs ahead.
    Terms { span_max, interval, wall_offset_ns: 1_000_003_000 }
}

/// What the machine wants, by name, and what it sends.
fn wanted(server: &mut Server) -> (Vec<&'static str>, Vec<u8>) {
    let mut sent = Vec::new();
    let names = std::iter::from_fn(|| server.poll()).map(|output| match output {
        Output::Send(bytes) => {
            sent.extend(bytes);
            "send"
        }
        Output::Decide(_) => "decide",
        Output::Open => "open",
        Output::Begin | Output::Start => "start",
        Output::Sample => "sample",
        Output::Ended => "ended",
        Output::Halt => "halt",
        Output::News(_) => "news",
        Output::Finished => "finished",
        _ => "other",
    });
    (names.collect(), sent)
}

#[test]
fn a_tradeoff_is_answered_and_sends_once_the_client_has_ended() {
    let header = ClientHeader {
        listen_port: 5002,
        ..ClientHeader::new(Mode::TradeOff, Iperf2Amount::Centiseconds(10))
    };
    let mut server = Server::new(at(0));
    let bytes = header.to_bytes();
    server.handle(at(1), Input::Bytes(&bytes[..20]));
    assert!(server.poll().is_none(), "a third of a header");
    server.handle(at(2), Input::Bytes(&bytes[20..]));
    assert_eq!(wanted(&mut server).0, ["decide"]);
    server.handle(at(3), Input::Decided(Ok(terms())));
    let (names, sent) = wanted(&mut server);
    assert_eq!((names, Iperf2Answer::parse(&sent).is_some()), (vec!["send", "open"], true));
    let done = Input::Look(FlowState { done: true, ..FlowState::default() });
    server.handle(at(4), Input::Opened);
    assert_eq!(wanted(&mut server).0, ["start", "start"]);
    server.handle(at(104), done);
    assert_eq!(wanted(&mut server).0, ["sample", "ended", "open"]);
    server.handle(at(105), Input::Opened);
    let done = Input::Look(FlowState { done: true, ..FlowState::default() });
    server.handle(at(205), done);
    assert_eq!(wanted(&mut server).0, ["start", "start", "sample", "ended", "finished"]);
}

#[test]
fn a_request_goes_back_after_its_hold_with_the_times_of_the_wall_clock() {
    // 48 bytes of a request that is held for 5,000 µs.
    let mut request = vec![0; 48];
    request[..8].copy_from_slice(&[0, 0x80, 0, 0, 0, 0, 0, 48]);
    request[44..].copy_from_slice(&5000_u32.to_be_bytes());
    let mut server = Server::new(at(0));
    server.handle(at(1), Input::Bytes(&request));
    server.handle(at(1), Input::Decided(Ok(terms())));
    assert_eq!(wanted(&mut server).0, ["decide"]);
    assert_eq!(server.wait_conditions().wake_at, Some(at(6)));
    server.handle(at(6), Input::Look(FlowState::default()));
    let (names, sent) = wanted(&mut server);
    assert_eq!((names, sent.len()), (vec!["send"], 48));
    // Came 1 ms and left 6 ms after its clock began: 1.001003 s and 1.006003 s.
    assert_eq!(sent[28..44], [0, 0, 0, 1, 0, 0, 3, 235, 0, 0, 0, 1, 0, 0, 23, 115]);
    server.handle(at(7), Input::Closed);
    assert_eq!(wanted(&mut server).0, ["news", "finished"]);
}
