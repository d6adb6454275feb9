//! Clients whose figures cannot be: the server says so in its log and believes none of them. Each
//! plays its protocol by hand.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::record::Via;
use linerate_proto::iperf2::{ClientHeader, Iperf2Amount, Mode, Stamp, UdpSender};
use linerate_proto::iperf3::{Cookie, Params, Results, StreamResult, frame_json};
use linerate_server::admission::ServerLimits;

use crate::peers::{HERE, Running, with_server};

/// Nothing here takes as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client of iperf3 sends, or is sent, before it ends the test.
const BYTES: usize = 10_000;

/// A test of 10,000 bytes by an iperf3 client that says of them what it is given.
fn of_iperf3(server: &Running<'_>, reverse: bool, told: StreamResult, cpu_percent: f64) -> String {
    let cookie = Cookie::from_random([7; 36]);
    let mut control = TcpStream::connect(server.at(Via::Iperf3)).expect("the server listens");
    control.set_read_timeout(Some(PATIENCE)).expect("a time");
    // A test by bytes counts what came, whenever its end is read.
    let (time_s, bytes) = if reverse { (5, 0) } else { (0, BYTES as u64) };
    let params = Params { parallel: 1, time_s, bytes, reverse, ..Params::default() };
    let params = Params { rate_bps: Some(80_000), block_bytes: Some(1000), ..params };
    control.write_all(&cookie.to_bytes()).expect("sent");
    control.write_all(&frame_json(&params.to_json())).expect("sent");
    let mut states = [0; 2];
    control.read_exact(&mut states).expect("parameter exchange, create streams");
    assert_eq!(states, [9, 10]);
    let mut data = TcpStream::connect(server.at(Via::Iperf3)).expect("the server listens");
    data.set_read_timeout(Some(PATIENCE)).expect("a time");
    data.write_all(&cookie.to_bytes()).expect("sent");
    control.read_exact(&mut states).expect("test start, test running");
    assert_eq!(states, [1, 2]);
    match reverse {
        true => data.read_exact(&mut [0; 1000]).expect("data"),
        false => data.write_all(&[0; BYTES]).expect("sent"),
    }
    control.write_all(&[4]).expect("test end");
    control.read_exact(&mut states[..1]).expect("exchange results");
    assert_eq!(states[0], 13);
    let results = Results {
        streams: vec![StreamResult { id: 1, start_s: Some(0.0), ..told }],
        cpu_user_percent: cpu_percent,
        ..Results::default()
    };
    control.write_all(&frame_json(&results.to_json())).expect("sent");
    let mut length = [0; 4];
    control.read_exact(&mut length).expect("a length");
    let mut own = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut own).expect("the server's results");
    let own = Results::parse(&own).expect("results");
    let stream = own.stream(1).expect("the stream");
    // Whatever a client says, the server tells what it counted itself.
    let span_s = stream.span_s().expect("a time");
    assert!(stream.bytes <= 10_000_000 && span_s < PATIENCE.as_secs_f64(), "{own:?}");
    control.read_exact(&mut states[..1]).expect("display results");
    control.write_all(&[16]).expect("done");
    server.log(1).concat()
}

#[test]
fn figures_of_iperf3s_clients_that_cannot_be_are_left_out_and_said_to_be() {
    with_server(ServerLimits::default(), |server| {
        let end_s = |end_s| StreamResult { end_s: Some(end_s), ..StreamResult::default() };
        let sound = StreamResult { bytes: BYTES as u64, ..end_s(0.01) };
        let said = of_iperf3(server, false, sound, 3.0);
        assert!(said.contains("iperf3: 1 stream, up: 10.00 kB"), "{said}");
        let cases = [
            // It received 10 TB of what a pace of 80 kbit/s lets through.
            (true, StreamResult { bytes: 10_000_000_000_000, ..end_s(1.0) }, 0.0, "it received"),
            (true, end_s(1e30), 0.0, "it measured until"),
            (false, StreamResult { bytes: 10_000_000_000_000, ..end_s(1.0) }, 0.0, "it sent"),
            (false, StreamResult { bytes: BYTES as u64, ..end_s(1.0) }, 1e30, "it spent"),
        ];
        for (reverse, told, cpu_percent, reason) in cases {
            let said = of_iperf3(server, reverse, told, cpu_percent);
            let expected = "the other end's figures contradict this end's: ";
            assert!(said.contains(expected) && said.contains(reason), "{reason}: {said}");
        }
    });
}

#[test]
fn a_number_that_no_client_of_iperf2_reaches_makes_no_lost_datagrams() {
    with_server(ServerLimits::default(), |server| {
        let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
        socket.connect(server.at(Via::Iperf2)).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
        let header = ClientHeader::new(Mode::Forward, Iperf2Amount::Centiseconds(100));
        let mut datagram = UdpSender::new(header).buffer(200);
        let mut send = |number| {
            Stamp { number, sent_us: 1_700_000_000_000_000 }.write(&mut datagram);
            socket.send(&datagram).expect("sent");
        };
        [1, 2, 3, 4, 1 << 60, i64::MIN].into_iter().for_each(&mut send);
        // The end comes until it is answered, as of iperf 2.
        let answered = (0..300).any(|_| {
            send(-5);
            socket.recv(&mut [0; 2048]).is_ok()
        });
        assert!(answered, "the server reports");
        let said = server.log(1).concat();
        assert!(said.contains(", 0 of 5 datagrams lost"), "{said}");
    });
}
