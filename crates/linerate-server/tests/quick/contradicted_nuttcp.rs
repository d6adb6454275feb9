//! Ends of nuttcp whose figures cannot be: our client takes no result of them, our server leaves
//! them out and says so. Each plays its protocol by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::record::{
    Event, Finish, Record, RecordStatus, ServerPlan, TcpDirections, TcpPlan, TcpTest, Tool,
    UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::nuttcp::{NuttcpExtras, run, run_udp};
use linerate_proto::nuttcp::NuttcpInterval;
use linerate_server::admission::ServerLimits;
use linerate_sys::stop::Stop;

use crate::nuttcp_udp::wait_until_connected;
use crate::peers::{HERE, free_port, with_server};

/// Nothing here takes as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// Each client sends, or is sent, 20 datagrams or buffers of 1000 bytes.
const COUNT: u64 = 20;
const SIZE: u64 = 1000;
/// 10 TB are none that a test of any pace, port or host could have moved.
const FAR_TOO_MUCH: &str = "10000000.0000 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps";

/// Takes a client up to its answer; its parameters, too.
fn accept(control: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = control.accept().expect("a client");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
    let mut line = String::new();
    for answer in ["HELO nuttcp v6.1.2\n", "OK v6.1.2\n"] {
        line = lines.next().expect("a line").expect("of text");
        stream.write_all(answer.as_bytes()).expect("the client is there");
    }
    (stream, line)
}

/// A client's test with a server that is played beside it: the port of the data, the way to play.
fn with_played(
    play: impl FnOnce(TcpListener) + Send,
    client: impl FnOnce(u16, &mut Context<'_>) -> Record,
) -> Record {
    let control = TcpListener::bind((HERE, 0)).expect("a free port");
    let port = control.local_addr().expect("bound").port();
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut watch = |_: &Event| {};
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    std::thread::scope(|scope| {
        scope.spawn(move || play(control));
        client(port, &mut context)
    })
}

/// The record of a test over TCP; the server says `told` at its end.
fn tcp(directions: TcpDirections, streams: u16, told: &str) -> Record {
    let ports = free_port();
    let listen = |flow| TcpListener::bind((HERE, ports + flow)).expect("a free port");
    let data: Vec<TcpListener> = (0..streams).map(listen).collect();
    let up = directions == TcpDirections::Up;
    let play = |control: TcpListener| {
        let (mut control, _) = accept(&control);
        let take = |listener: TcpListener| listener.accept().expect("a stream").0;
        for mut stream in data.into_iter().map(take).collect::<Vec<_>>() {
            match up {
                true => drop(stream.read_to_end(&mut Vec::new()).expect("data and its end")),
                false => stream.write_all(&[7; (COUNT * SIZE) as usize]).expect("it reads"),
            }
        }
        let at = if up { "nuttcp-r" } else { "nuttcp-t" };
        control.write_all(format!("{at}: {told}\n").as_bytes()).expect("it reads");
    };
    with_played(play, |port, context| {
        let test = TcpTest {
            directions,
            streams,
            finish: Finish::Buffers(COUNT * u64::from(streams)),
            buffer_bytes: SIZE as u32,
            ..TcpTest::default()
        };
        let server = ServerPlan::new(Some(Via::Nuttcp), HERE.to_string(), port);
        let plan = TcpPlan { server, test, ..TcpPlan::default() };
        let mut told = |_: &NuttcpInterval, _: &str| {};
        let extras =
            NuttcpExtras { data_port: Some(ports), ..NuttcpExtras::without_options(&mut told) };
        run(&plan, extras, context).0
    })
}

#[test]
fn what_a_server_has_buffered_is_read_however_long_after_the_time_it_comes() {
    let data = free_port();
    let listener = TcpListener::bind((HERE, data)).expect("a free port");
    let play = |control: TcpListener| {
        let (mut control, _) = accept(&control);
        let (mut stream, _) = listener.accept().expect("a stream");
        stream.write_all(&[7; 1000]).expect("it reads");
        // Longer than other receivers wait.
        linerate_sys::clock::sleep(Duration::from_millis(2700));
        stream.write_all(&[7; 1000]).expect("it reads");
        drop(stream);
        let told = "0.0019 MB in 2.70 real seconds = 1 KB/sec = 0.0059 Mbps";
        control.write_all(format!("nuttcp-t: {told}\n").as_bytes()).expect("it reads");
    };
    let record = with_played(play, |port, context| {
        let finish = Finish::TimeNs(100_000_000);
        let test = TcpTest { directions: TcpDirections::Down, finish, ..TcpTest::default() };
        let server = ServerPlan::new(Some(Via::Nuttcp), HERE.to_string(), port);
        let plan = TcpPlan { server, test, ..TcpPlan::default() };
        let mut told = |_: &NuttcpInterval, _: &str| {};
        let extras =
            NuttcpExtras { data_port: Some(data), ..NuttcpExtras::without_options(&mut told) };
        run(&plan, extras, context).0
    });
    assert_eq!(record.failure, None);
    let received = record.flows[0].receiver.as_ref().expect("this end");
    assert_eq!(received.bytes, 2000);
    assert!(received.span_ns >= 2_500_000_000, "{received:?}");
}

/// That of a test over UDP; the server plays `data` by the client's port, and says `told`.
fn udp(directions: TcpDirections, told: &str, data: impl FnOnce(&UdpSocket, u16) + Send) -> Record {
    let port = free_port();
    let socket = UdpSocket::bind((HERE, port)).expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    let play = |control: TcpListener| {
        let (mut control, asked) = accept(&control);
        let (_, client) = asked.split_once("port = ").expect("a port");
        let digits: String = client.chars().take_while(char::is_ascii_digit).collect();
        data(&socket, digits.parse().expect("a port"));
        // A client may have seen enough before it has read all.
        let _ = control.write_all(told.as_bytes());
    };
    with_played(play, |control, context| {
        let test = UdpTest {
            directions,
            finish: Finish::Buffers(COUNT),
            interval_ns: 1_000_000_000,
            size_bytes: Some(SIZE as u32),
            pace: Some(BitRate::from_bits_per_sec(1_000_000)),
            ..UdpTest::default()
        };
        let server = ServerPlan::new(Some(Via::Nuttcp), HERE.to_string(), control);
        let plan = UdpPlan { server, test, ..UdpPlan::default() };
        let mut told = |_: &NuttcpInterval, _: &str| {};
        let extras =
            NuttcpExtras { data_port: Some(port), ..NuttcpExtras::without_options(&mut told) };
        run_udp(&plan, extras, context).0
    })
}

/// Takes datagrams until the end's first mark.
fn take_all(socket: &UdpSocket, _: u16) {
    let mut bytes = [0; 2048];
    while socket.recv(&mut bytes).expect("datagrams and marks") != 4 || &bytes[..4] != b"EOD0" {}
}

fn check_refused(record: &Record, reason: &str) {
    let failure = record.failure.as_ref().map(ToString::to_string).unwrap_or_default();
    let expected = "the other end's figures contradict this end's: ";
    assert!(failure.contains(expected) && failure.contains(reason), "{reason}: {failure}");
    assert_eq!((record.status, record.exit_code()), (RecordStatus::Error, 3), "{reason}");
}

#[test]
fn a_sum_of_tcp_that_cannot_be_is_no_result_of_one_stream_or_of_many() {
    use TcpDirections::{Down, Up};
    // 20,000 and 40,000 bytes of 2^20.
    let sound = "0.0191 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps";
    let both = "0.0381 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps";
    // More than the streams sent; a gigabyte that is under way nowhere.
    let more = "1.0000 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps";
    let gigabyte = "1024.0000 MB in 0.16 real seconds = 1 KB/sec = 60000 Mbps";
    assert_eq!(tcp(Up, 1, sound).failure, None);
    assert_eq!(tcp(Up, 2, both).failure, None);
    assert_eq!(tcp(Down, 1, sound).failure, None);
    for (directions, streams, told, reason) in [
        (Up, 1, more, "it received 1048576 bytes of 20000 that were sent"),
        (Up, 2, more, "it received 1048576 bytes of 40000 that were sent"),
        (Down, 1, gigabyte, "more than can be under way"),
        (Down, 2, gigabyte, "more than can be under way"),
        (Down, 1, FAR_TOO_MUCH, "more than can be under way"),
    ] {
        check_refused(&tcp(directions, streams, told), reason);
    }
}

#[test]
fn a_receiver_of_datagrams_has_no_more_than_were_sent_and_announced() {
    let of = |told: &str| udp(TcpDirections::Up, told, take_all);
    let sound = "nuttcp-r: 0.0191 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps\n";
    // A path may deliver each twice.
    let twice = "nuttcp-r: 0.0381 MB in 0.16 real seconds = 1 KB/sec = 2.0000 Mbps\n";
    for told in [sound, twice] {
        assert_eq!(of(told).failure, None);
    }
    let row = |lost: i64, all: i64| {
        format!("0.0191 MB / 1.00 sec = 1.0000 Mbps {lost} / {all} ~drop/pkt 0.00 ~%loss\n{sound}")
    };
    assert_eq!(of(&row(1, 20)).failure, None);
    check_refused(&of(&format!("nuttcp-r: {FAR_TOO_MUCH}\n")), "of 20 that were sent");
    check_refused(&of(&row(30, 50)), "it counts 49 datagrams of 20 that were sent");
    check_refused(&of(&row(i64::MAX - 1, i64::MAX)), "datagrams, more than");
}

fn datagram(number: u64) -> Vec<u8> {
    let mut datagram = vec![b'x'; SIZE as usize];
    datagram[24..32].copy_from_slice(&(number * SIZE).to_ne_bytes());
    datagram
}

/// Sends marks around datagrams of these numbers to a port here.
fn send(socket: &UdpSocket, port: u16, numbers: &[u64]) {
    let put = |bytes: &[u8]| {
        socket.send_to(bytes, (HERE, port)).expect("loopback");
    };
    [b"BOD0", b"BOD1"].iter().for_each(|mark| put(*mark));
    numbers.iter().for_each(|number| put(&datagram(*number)));
    [b"EOD0", b"EOD1"].iter().for_each(|mark| put(*mark));
}

#[test]
fn a_sender_of_datagrams_has_sent_no_more_than_its_pace_allows() {
    let numbers: Vec<u64> = (1..=COUNT).collect();
    let of = |told: &str, numbers: &[u64]| {
        udp(TcpDirections::Down, told, |socket, client| {
            send(socket, client, numbers);
            wait_until_connected(client);
        })
    };
    let sound = "nuttcp-t: 0.0191 MB in 0.16 real seconds = 1 KB/sec = 1.0000 Mbps\n";
    assert_eq!(of(sound, &numbers).failure, None);
    let slow = format!("nuttcp-t: {FAR_TOO_MUCH}\n");
    check_refused(&of(&slow, &numbers), "it measured until");
    let fast = slow.replace("1.0000 Mbps", "524288000.0000 Mbps");
    check_refused(&of(&fast, &numbers), "datagrams, more than");
    // A number that jumps by 2^32, whatever the server says of it; the last may stay unread.
    let jump = [&numbers[..10], &[1 << 32], &numbers[10..]].concat();
    check_refused(&of(sound, &jump), "it sent 4294967296 datagrams, more than");
}

#[test]
fn a_number_that_no_client_of_nuttcp_reaches_makes_no_lost_datagrams() {
    with_server(ServerLimits::default(), |server| {
        let port = free_port();
        let mut stream = TcpStream::connect(server.at(Via::Nuttcp)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let line = format!(
            "HELO nuttcp v6.1.2\nbuflen = {SIZE}, nbuf = 10, win = 0, nstream = 1, rate = 1000, \
             port = {port}, trans = 1, braindead = 0, timeout = 0.000000, udp = 1, vers = 6.1.2, \
             interval = 1.000000, reverse = 0, format = 2048\n"
        );
        stream.write_all(line.as_bytes()).expect("open");
        let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
        let answered = lines.any(|line| line.expect("of text").starts_with("OK"));
        assert!(answered, "it serves");
        let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
        // The third is lost.
        send(&socket, port, &[1, 2, 4, 1 << 32, 1 << 54, 5]);
        let said: Vec<String> = lines.map_while(Result::ok).collect();
        assert!(said.concat().contains("nuttcp-r: 0.0057 MB in "), "{said:?}");
        let log = server.log(1).concat();
        assert!(log.contains("6 datagrams received, 0 lost"), "{log}");
        assert!(log.contains("the client's figures contradict these and are left out: "), "{log}");
    });
}
