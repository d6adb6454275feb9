//! Any bytes as either side of iperf3's control connection, in one piece and in many: no panic, the
//! same events, documents that survive being written again, and errors of one line.

use linerate_proto::iperf3::{
    COOKIE_BYTES, ClientEvent, ClientOrder, Cookie, CounterWidth, Credentials, DatagramHeader,
    Params, Results, ServerEvent, ServerOrder, Users, WireError, from_base64, is_connect_reply,
    to_base64, token_bytes,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let piece = 1 + bytes.len() % 37;
    let whole = client(bytes, bytes.len().max(1));
    assert_eq!(client(bytes, piece), whole);
    let after_cookie = match bytes.split_first_chunk::<COOKIE_BYTES>() {
        Some((cookie, rest)) => {
            if let Ok(read) = Cookie::parse(cookie) {
                assert_eq!(&read.to_bytes(), cookie);
            }
            rest
        }
        None => bytes,
    };
    for bytes in [bytes, after_cookie] {
        let whole = server(bytes, bytes.len().max(1));
        assert_eq!(server(bytes, piece), whole);
    }
    if let Ok(params) = Params::parse(bytes) {
        params_survive(&params);
    }
    if let Ok(results) = Results::parse(bytes) {
        results_survive(&results);
    }
    credentials_survive(bytes);
    assert!(!is_connect_reply(bytes) || bytes.len() == 4);
    for width in [CounterWidth::Bits32, CounterWidth::Bits64] {
        if let Some(header) = DatagramHeader::parse(bytes, width) {
            let mut again = vec![0; width.header_bytes()];
            assert_eq!(header.write(&mut again, width), Some(again.len()));
            assert_eq!(again, bytes[..again.len()]);
        }
    }
}

fn credentials_survive(bytes: &[u8]) {
    assert_eq!(from_base64(&to_base64(bytes)).as_deref(), Some(bytes));
    if let Some(credentials) = Credentials::parse(bytes) {
        let text = credentials.to_text();
        assert_eq!(Credentials::parse(text.as_bytes()).as_ref(), Some(&credentials));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (Users::parse(text), token_bytes(text));
    }
}

fn client(bytes: &[u8], piece: usize) -> (Vec<ClientEvent>, Option<WireError>) {
    let (mut machine, mut events) = (ClientOrder::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        machine.push(piece);
        loop {
            match machine.next_event() {
                Ok(Some(event)) => {
                    if let ClientEvent::Results(results) = &event {
                        results_survive(results);
                    }
                    // The test is over as soon as it runs.
                    if event == ClientEvent::Running {
                        machine.note_test_end();
                    }
                    events.push(event);
                }
                Ok(None) => break,
                Err(error) => return (events, Some(one_line(error))),
            }
        }
    }
    (events, None)
}

fn server(bytes: &[u8], piece: usize) -> (Vec<ServerEvent>, Option<WireError>) {
    let (mut machine, mut events) = (ServerOrder::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        machine.push(piece);
        loop {
            match machine.next_event() {
                Ok(Some(event)) => {
                    match &event {
                        ServerEvent::Params(params) => {
                            params_survive(params);
                            machine.note_accepted();
                            machine.note_running();
                        }
                        ServerEvent::Results(results) => results_survive(results),
                        _ => {}
                    }
                    events.push(event);
                }
                Ok(None) => break,
                Err(error) => return (events, Some(one_line(error))),
            }
        }
    }
    (events, None)
}

fn params_survive(params: &Params) {
    let again = Params::parse(params.to_json().as_bytes());
    assert_eq!(again.as_ref(), Ok(params));
}

fn results_survive(results: &Results) {
    let again = Results::parse(results.to_json().as_bytes()).expect("own text is well formed");
    assert_eq!(again.streams.len(), results.streams.len());
    for (one, other) in results.streams.iter().zip(&again.streams) {
        assert_eq!((one.id, one.bytes, one.packets), (other.id, other.bytes, other.packets));
    }
}

fn one_line(error: WireError) -> WireError {
    let said = error.to_string();
    assert!(!said.contains('\n') && said.len() < 500, "{said}");
    error
}
