//! Any bytes as either side of nuttcp's control connection, in one piece and in many: no panic, the
//! same events, parameters that survive being written again, errors of one line; and as datagrams.

use linerate_proto::nuttcp::{
    ClientEvent, ClientMachine, Interval, LineError, Lines, Parameters, ServerEvent, ServerMachine,
    Summary, UdpReceiver, Version, WIRE_VERSION,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let piece = 1 + bytes.len() % 37;
    assert_eq!(client(bytes, bytes.len().max(1)), client(bytes, piece));
    assert_eq!(server(bytes, bytes.len().max(1)), server(bytes, piece));
    let mut receiver = UdpReceiver::default();
    for datagram in bytes.chunks(piece) {
        receiver.take(datagram, datagram.len());
    }
    assert!(receiver.bytes <= bytes.len() as u64);
    let _ = receiver.lost(piece as u32);
}

fn client(bytes: &[u8], piece: usize) -> (Vec<ClientEvent>, Option<LineError>) {
    let (mut lines, mut machine) = (Lines::default(), ClientMachine::default());
    let (mut events, mut summary) = (Vec::new(), Summary::default());
    for piece in bytes.chunks(piece) {
        lines.push(piece);
        loop {
            let event = match lines.next_line() {
                Ok(None) => break,
                Ok(Some(line)) => {
                    summary.read(&line);
                    if let Some(interval) = Interval::parse(&line) {
                        assert!(!interval.to_line(false).contains('\n'));
                    }
                    machine.handle(line)
                }
                Err(error) => Err(error),
            };
            match event {
                Ok(event) => events.push(event),
                Err(error) => return (events, Some(one_line(error))),
            }
        }
    }
    let _ = summary.bytes(0).and_then(|bytes| summary.span_ns(bytes));
    let _ = machine.closed();
    (events, None)
}

fn server(bytes: &[u8], piece: usize) -> (Vec<ServerEvent>, Option<LineError>) {
    let (mut lines, mut machine) = (Lines::default(), ServerMachine::default());
    let mut events = Vec::new();
    for piece in bytes.chunks(piece) {
        lines.push(piece);
        loop {
            let event = match lines.next_line() {
                Ok(None) => break,
                Ok(Some(line)) => machine.handle(&line),
                Err(error) => Err(error),
            };
            match event {
                Ok(event) => {
                    if let ServerEvent::Requested(parameters) = &event {
                        survives(parameters);
                    }
                    events.push(event);
                }
                Err(error) => return (events, Some(one_line(error))),
            }
        }
    }
    (events, None)
}

/// What is read is within bounds, and its line says the same again.
fn survives(parameters: &Parameters) {
    assert!((1..=128).contains(&parameters.nstream) && parameters.buflen >= 1);
    assert!(parameters.timeout_s.is_finite() && parameters.pace_bps().is_none_or(|bps| bps > 0));
    let line = parameters.to_line(WIRE_VERSION);
    let again = Parameters::parse(line.trim_end()).expect("its own line");
    // Nuttcp before 3.4.1 turns nothing round, and its line does not say so.
    let flip = parameters.flip && parameters.version >= Version(3, 4, 1);
    assert_eq!((again.nbuf, again.port, again.flip), (parameters.nbuf, parameters.port, flip));
}

fn one_line(error: LineError) -> LineError {
    assert!(!error.to_string().contains('\n'));
    error
}
