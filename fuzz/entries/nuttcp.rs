//! Any bytes as either side of nuttcp's control connection, in one piece and in many: no panic, the
//! same events, parameters that survive being written again, errors of one line; and as datagrams.

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::dialect::{Input, Machine, Output, TestFailureReason};
use linerate_proto::nuttcp::{
    ClientNews, LineError, NuttcpClientMachine, NuttcpClientTest, NuttcpPeerFault,
    NuttcpServerMachine, NuttcpUdpReceiver, NuttcpVersion, Parameters, UdpMark, WIRE_VERSION,
    announced, is_swapped, sent_us,
};

const NOW: MonoTime = MonoTime::from_nanos(0);

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let piece = 1 + bytes.len() % 37;
    assert_eq!(client(bytes, bytes.len().max(1)), client(bytes, piece));
    assert_eq!(server(bytes, bytes.len().max(1)), server(bytes, piece));
    let mut receiver = NuttcpUdpReceiver::default();
    for datagram in bytes.chunks(piece) {
        if let Some(mark) = receiver.count_datagram(datagram, datagram.len()) {
            assert_eq!(UdpMark::parse(datagram), Some(mark));
        }
        let swapped = is_swapped(datagram, datagram.len());
        let _ = (announced(datagram, datagram.len(), swapped), sent_us(datagram));
    }
    assert!(receiver.bytes <= bytes.len() as u64);
    let _ = receiver.lost_datagrams(piece as u32);
}

/// What a client makes of what its server sends: the news, and how it ends.
fn client(
    bytes: &[u8],
    piece: usize,
) -> (Vec<ClientNews>, Option<TestFailureReason<NuttcpPeerFault>>) {
    let test = NuttcpClientTest {
        parameters: Parameters::default(),
        span: None,
        interval: Duration::from_secs(1),
    };
    let mut machine = NuttcpClientMachine::new(NOW, test);
    let (mut news, mut end) = (Vec::new(), None);
    feed(&mut machine, bytes, piece, |output| match output {
        Output::News(ClientNews::Interval(interval, line)) => {
            assert!(!interval.to_line(false).contains('\n'));
            news.push(ClientNews::Interval(interval, line));
        }
        Output::News(other) => news.push(other),
        Output::Failed(reason) => end = Some(reason),
        _ => {}
    });
    if let Some(TestFailureReason::Peer(NuttcpPeerFault::Line(error))) = &end {
        one_line(error);
    }
    (news, end)
}

/// What a server makes of what its client sends: what it is asked for, and how it ends.
fn server(
    bytes: &[u8],
    piece: usize,
) -> (Option<Parameters>, Option<TestFailureReason<LineError>>) {
    let (mut asked, mut end) = (None, None);
    feed(&mut NuttcpServerMachine::new(NOW), bytes, piece, |output| match output {
        Output::Decide(parameters) => {
            survives(&parameters);
            asked = Some(*parameters);
        }
        Output::Failed(reason) => end = Some(reason),
        _ => {}
    });
    if let Some(TestFailureReason::Peer(error)) = &end {
        one_line(error);
    }
    (asked, end)
}

fn feed<M: Machine>(machine: &mut M, bytes: &[u8], piece: usize, mut each: impl FnMut(Output<M>)) {
    for piece in bytes.chunks(piece) {
        if machine.wait_conditions().reads {
            machine.handle(NOW, Input::Bytes(piece));
        }
        while let Some(output) = machine.poll() {
            each(output);
        }
    }
    machine.handle(NOW, Input::Closed);
    while let Some(output) = machine.poll() {
        each(output);
    }
}

/// What is read is within bounds, and its line says the same again.
fn survives(parameters: &Parameters) {
    assert!((1..=128).contains(&parameters.nstream) && parameters.buflen >= 1);
    assert!(parameters.timeout_s.is_finite() && parameters.pace_bps().is_none_or(|bps| bps > 0));
    let line = parameters.to_line(WIRE_VERSION);
    let again = Parameters::parse(line.trim_end()).expect("its own line");
    // Nuttcp before 3.4.1 turns nothing round, and its line does not say so.
    let flip = parameters.flip && parameters.version >= NuttcpVersion(3, 4, 1);
    assert_eq!((again.nbuf, again.port, again.flip), (parameters.nbuf, parameters.port, flip));
}

fn one_line(error: &LineError) {
    assert!(!error.to_string().contains('\n'));
}
