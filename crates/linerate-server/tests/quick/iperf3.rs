//! Clients of iperf3 at this server over loopback, both ends of this program: counts agree to the
//! byte, and hostile, slow and vanished clients cost nobody else anything.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Fault, Finish, MetricId, Plan, Record, ServerPlan, Stat, TcpDirections,
    TcpPlan, TcpTest, Tool, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf3::{Extras, run};
use linerate_engine::throughput::{run_tcp, run_udp};
use linerate_proto::iperf3::{Cookie, Params, Protocol, frame_json};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

/// A place that is not free by then is kept: the limits of a test are 10 s and more.
const GIVE_BACK_MAX: Duration = Duration::from_secs(9);

/// Runs `test` against a server whose port for iperf3 is free.
fn with_server(limits: ServerLimits, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { local, limits, foreign: Foreign::These(vec![(Via::Iperf3, 0)]) };
    let server = MeasurementServer::bind(&options).expect("free ports");
    let (_, port) = server.foreign().next().expect("one other program is answered");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running =
            scope.spawn(|| server.run(&stop, &|entry: &LogEntry<'_>| drop(format!("{entry:?}"))));
        let address = SocketAddr::new(local.ip(), port);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(address)));
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn plan(server: SocketAddr, test: TcpTest) -> TcpPlan {
    let server = ServerPlan::new(Some(Via::Iperf3), server.ip().to_string(), server.port());
    TcpPlan { server, test, ..TcpPlan::default() }
}

fn tcp_test() -> TcpTest {
    TcpTest {
        finish: Finish::TimeNs(400_000_000),
        interval_ns: 100_000_000,
        buffer_bytes: 128 << 10,
        congestion_control: Some("cubic".to_owned()),
        ..TcpTest::default()
    }
}

fn measure(server: SocketAddr, test: TcpTest) -> (Record, Vec<Event>) {
    let mut events = Vec::new();
    let mut watch = |event: &Event| events.push(event.clone());
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let record = run_tcp(&plan(server, test), &mut context);
    (record, events)
}

fn value(record: &Record, metric: MetricId, direction: Direction) -> f64 {
    let value = record.summary_value(metric, Stat::Value, Some(direction));
    value.unwrap_or_else(|| panic!("no {metric} {direction:?} in {record:#?}"))
}

/// Both ends count the same bytes of every stream. Where the client's time ends a test the server
/// counts what it sent until it hears of that, and the client reads on until nothing comes.
fn assert_agreed(record: &Record) {
    assert_eq!(record.failure, None);
    let Plan::Tcp(plan) = &record.plan else { panic!("TCP") };
    for flow in &record.flows {
        let (sent, received) = (flow.sender.as_ref(), flow.receiver.as_ref());
        let (sent, received) = (sent.expect("told"), received.expect("told"));
        let known = match (plan.test.finish, flow.direction) {
            (Finish::TimeNs(_), Direction::Down) => received.bytes_measured..=received.bytes,
            _ => received.bytes..=received.bytes,
        };
        let place = format!("{:?} stream {}", flow.direction, flow.flow);
        assert!(known.contains(&sent.bytes), "{place}: {} of {known:?}", sent.bytes);
    }
}

#[test]
fn both_ends_count_the_same_bytes_in_every_direction() {
    with_server(ServerLimits::default(), |server| {
        let ways = [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both];
        let ends = [Finish::TimeNs(400_000_000), Finish::Bytes(5_000_011), Finish::Buffers(30)];
        for (directions, finish) in
            ways.into_iter().zip(ends).chain(ways.into_iter().zip([ends[2]; 3]))
        {
            for streams in [1, 3] {
                let (record, _) =
                    measure(server, TcpTest { directions, finish, streams, ..tcp_test() });
                assert_agreed(&record);
                let ways = if directions == TcpDirections::Both { 2 } else { 1 };
                assert_eq!(record.flows.len(), usize::from(streams) * ways);
            }
        }
    });
}

#[test]
fn a_client_sends_an_amount_in_whole_blocks_and_a_server_to_the_byte() {
    with_server(ServerLimits::default(), |server| {
        // 7,000,003 bytes are 53.4 blocks of 128 KiB; iperf3's own client sends 54.
        for (directions, direction, bytes) in [
            (TcpDirections::Up, Direction::Up, 54.0 * 131_072.0),
            (TcpDirections::Down, Direction::Down, 7_000_003.0),
        ] {
            let finish = Finish::Bytes(7_000_003);
            let (record, _) =
                measure(server, TcpTest { directions, finish, streams: 2, ..tcp_test() });
            assert_eq!(value(&record, MetricId::Bytes, direction), bytes);
        }
    });
}

#[test]
fn a_paced_test_has_rows_and_takes_its_time() {
    with_server(ServerLimits::default(), |server| {
        let pace = Some(BitRate::from_bits_per_sec(80_000_000));
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            // 31 blocks of 128 KiB.
            let finish = Finish::Bytes(4_063_232);
            let begin = monotonic();
            let (record, events) =
                measure(server, TcpTest { directions, finish, pace, ..tcp_test() });
            let took = monotonic().duration_since(begin);
            assert_agreed(&record);
            let rows = events.iter().filter(|event| matches!(event, Event::Interval(_))).count();
            assert!(rows > 0, "intervals of 100 ms");
            let streams = events.iter().filter(|event| matches!(event, Event::Stream(_))).count();
            assert_eq!(streams, 1);
            let direction = record.flows[0].direction;
            assert_eq!(value(&record, MetricId::Bytes, direction), 4_063_232.0);
            // 4 MB at 80 Mbit/s are 400 ms, but for the buffers that leave at once. A busy machine
            // may wake the sender late, never early.
            assert!(took > Duration::from_millis(350), "{took:?}");
        }
    });
}

#[test]
fn options_reach_both_ends() {
    with_server(ServerLimits::default(), |server| {
        let test = TcpTest {
            window_bytes: Some(65_536),
            nodelay: true,
            mss_bytes: Some(1000),
            congestion_control: Some("reno".to_owned()),
            directions: TcpDirections::Down,
            zero_copy: true,
            ..tcp_test()
        };
        let (record, _) = measure(server, test);
        assert_agreed(&record);
        let flow = &record.flows[0];
        let receiver = flow.receiver.as_ref().expect("this end");
        // The kernel doubles what is asked (socket(7)).
        assert_eq!(receiver.rcvbuf_bytes.got, Some(131_072));
        let sender = flow.sender.as_ref().expect("the server tells");
        assert_eq!(sender.congestion_control.got.as_deref(), Some("reno"));
        let info = sender.tcp_info.expect("retransmits are told");
        assert!(info.total_retrans.is_some() && info.snd_mss_bytes.is_none());
    });
}

#[test]
fn the_omitted_seconds_do_not_count() {
    with_server(ServerLimits::default(), |server| {
        let finish = Finish::TimeNs(1_000_000_000);
        let pace = Some(BitRate::from_bits_per_sec(80_000_000));
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let test = TcpTest { directions, omit_ns: 1_000_000_000, finish, pace, ..tcp_test() };
            let (record, events) = measure(server, test);
            assert_eq!(record.failure, None);
            // 80 Mbit/s for one second are 10 MB, for both seconds 20 MB. On a busy machine some
            // of either second may be late; half a second is half of the one that counts.
            let bytes = value(&record, MetricId::Bytes, record.flows[0].direction);
            assert!((5e6..=15e6).contains(&bytes), "{directions:?} {bytes}");
            let is_omitted = |event: &Event| matches!(event, Event::Interval(row) if row.omitted);
            assert!(events.iter().any(is_omitted));
        }
        let (record, _) = measure(server, TcpTest { omit_ns: 500_000_000, ..tcp_test() });
        let failure = record.failure.expect("half a second");
        assert_eq!(failure.fault, Fault::Usage);
        assert!(failure.to_string().contains("whole seconds"), "{failure}");
    });
}

#[test]
fn where_the_first_second_of_datagrams_is_omitted_none_is_lost_at_its_end() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let finish = Finish::TimeNs(1_000_000_000);
            let pace = Some(BitRate::from_bits_per_sec(1_000_000));
            let test = UdpTest { directions, finish, streams: 8, pace, ..udp_test() };
            let test = UdpTest { omit_ns: 1_000_000_000, ..test };
            let (record, _) = measure_udp(server, test);
            assert_eq!(record.failure, None, "{directions:?}");
            for flow in &record.flows {
                let end = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
                let it = end.expect("a receiver").measured;
                // What the sockets of a loopback hold is never lost, wherever the span begins.
                assert_eq!((it.lost, it.sent), (0, Some(it.received)), "{directions:?} {it:?}");
                assert!(it.received > 0, "{directions:?}");
            }
        }
    });
}

#[test]
fn a_second_client_is_denied_while_the_first_runs() {
    with_server(ServerLimits::default(), |server| {
        std::thread::scope(|scope| {
            let (stop, (send, streams)) = (Stop::new(), std::sync::mpsc::channel());
            let ask = stop.clone();
            let first = scope.spawn(move || {
                let finish = Finish::TimeNs(60_000_000_000);
                let pace = Some(BitRate::from_bits_per_sec(8_000_000));
                let mut watch = |event: &Event| {
                    if matches!(event, Event::Interval(_)) {
                        let _ = send.send(());
                    }
                };
                let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
                let mut context = Context { tool, stop, watch: &mut watch };
                run_tcp(&plan(server, TcpTest { finish, pace, ..tcp_test() }), &mut context)
            });
            streams.recv().expect("the first has a row");
            let (record, _) = measure(server, tcp_test());
            ask.request_stop();
            let failure = record.failure.as_ref().expect("the first is running");
            assert_eq!((failure.fault, record.exit_code()), (Fault::PeerRefused, 4));
            assert!(failure.to_string().contains("busy"), "{failure}");
            assert_eq!(first.join().expect("no panic").failure, None);
        });
    });
}

#[test]
fn several_clients_run_at_once_where_the_server_allows_them() {
    with_server(ServerLimits { tests: 4, ..ServerLimits::default() }, |server| {
        let pace = Some(BitRate::from_bits_per_sec(20_000_000));
        std::thread::scope(|scope| {
            let ways = [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both];
            let tests: Vec<_> = ways
                .into_iter()
                .map(|directions| TcpTest { directions, pace, streams: 2, ..tcp_test() })
                .map(|test| scope.spawn(move || measure(server, test).0))
                .collect();
            tests.into_iter().for_each(|test| assert_agreed(&test.join().expect("no panic")));
        });
    });
}

/// Opens a control connection with a cookie.
fn control(server: SocketAddr, seed: u8) -> (TcpStream, Cookie) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    let cookie = Cookie::from_random([seed; 36]);
    stream.write_all(&cookie.to_bytes()).expect("sent");
    (stream, cookie)
}

#[test]
fn garbage_silence_and_half_messages_stop_nobody() {
    with_server(ServerLimits::default(), |server| {
        let silent: Vec<TcpStream> =
            (0..20).map(|_| TcpStream::connect(server).expect("the server listens")).collect();
        let mut rude = Vec::new();
        let many = frame_json("{\"tcp\":true,\"parallel\":500}");
        for (bytes, seed) in [
            (&b"\xff\xff\xff\xff{"[..], 1),
            (b"\x00\x00\x00\x02[]", 2),
            (b"\x00\x00\x00\x10{\"tcp\":true", 3),
            (&[0xff; 4096], 4),
            (&many, 5),
        ] {
            let (mut stream, _) = control(server, seed);
            stream.write_all(bytes).expect("the server reads");
            rude.push(stream);
        }
        let mut http = TcpStream::connect(server).expect("the server listens");
        http.write_all(b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n").expect("sent");
        let (record, _) = measure(server, tcp_test());
        assert_agreed(&record);
        let mut answer = Vec::new();
        let _ = http.read_to_end(&mut answer);
        assert_eq!(answer, b"", "no cookie, no answer");
        // Parameter exchange, then server error with iperf3's number for too many streams.
        let last = rude.last_mut().expect("there are five");
        let mut answer = [0; 10];
        last.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, [9, 0xfe, 0, 0, 0, 6, 0, 0, 0, 0]);
        drop((silent, rude));
    });
}

#[test]
fn a_test_that_this_server_does_not_do_is_answered_by_its_number() {
    with_server(ServerLimits::default(), |server| {
        let (mut stream, _) = control(server, 1);
        stream.write_all(&frame_json("{\"sctp\":true,\"time\":1}")).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer and the end");
        // 13: not implemented.
        assert_eq!(answer, [9, 0xfe, 0, 0, 0, 13, 0, 0, 0, 0]);
    });
}

#[test]
fn a_cookie_is_that_of_one_test_alone() {
    with_server(ServerLimits { tests: 3, ..ServerLimits::default() }, |server| {
        let params = frame_json(&Params { parallel: 1, time_s: 60, ..Params::default() }.to_json());
        let ask = |stream: &mut TcpStream| {
            stream.write_all(&params).expect("sent");
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).expect("two states");
            answer
        };
        // Both are taken for control connections while nobody waits for streams.
        let (mut first, cookie) = control(server, 1);
        let (mut second, _) = control(server, 1);
        let mut exchange = [0; 1];
        for stream in [&first, &second] {
            assert_eq!(stream.peek(&mut exchange).ok(), Some(1), "parameter exchange");
        }
        assert_eq!(ask(&mut first), [9, 10], "create streams");
        assert_eq!(ask(&mut second), [9, 0xfe], "server error");
        let mut data = TcpStream::connect(server).expect("the server listens");
        data.write_all(&cookie.to_bytes()).expect("sent");
        let mut answer = [0; 2];
        first.read_exact(&mut answer).expect("test start, test running");
        assert_eq!(answer, [1, 2]);
        // Nor while the test runs with all its streams.
        let (mut third, _) = control(server, 1);
        assert_eq!(ask(&mut third), [9, 0xfe], "server error");
        let (mut other, _) = control(server, 2);
        assert_eq!(ask(&mut other), [9, 10], "another cookie is another test");
    });
}

#[test]
fn a_test_beyond_the_limits_is_refused_for_what_is_beyond() {
    let duration = Duration::from_secs(60);
    with_server(ServerLimits { duration, streams: 4, ..ServerLimits::default() }, |server| {
        // 142: not allowed; 37: the server allows none so long, since 3.20; 6: streams.
        for (parameters, code) in [
            ("{\"tcp\":true,\"time\":61,\"client_version\":\"3.12\"}", 142),
            ("{\"tcp\":true,\"time\":61,\"client_version\":\"3.21\"}", 37),
            ("{\"udp\":true,\"time\":60,\"omit\":1,\"client_version\":\"3.21\"}", 37),
            ("{\"tcp\":true,\"time\":1,\"parallel\":3,\"bidirectional\":true}", 6),
        ] {
            let (mut stream, _) = control(server, 1);
            stream.write_all(&frame_json(parameters)).expect("sent");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("an answer and the end");
            assert_eq!(answer, [9, 0xfe, 0, 0, 0, code, 0, 0, 0, 0], "{parameters}");
        }
    });
}

#[test]
fn the_kernel_holds_a_server_to_the_rate_that_a_client_asks_for() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Down, TcpDirections::Up] {
            let test = TcpTest { directions, finish: Finish::TimeNs(1_000_000_000), ..tcp_test() };
            let extras = Extras { fq_rate_bps: Some(20_000_000), ..Extras::default() };
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
            let (record, _) = run(&plan(server, test), extras, &mut context);
            assert_eq!(record.failure, None);
            // The first window of 10 segments leaves at once: over loopback 5 Mbit. Unpaced there
            // are 1 Gbit/s and more.
            let rate = value(&record, MetricId::Goodput, record.flows[0].direction);
            assert!(rate < 40e6, "{directions:?} {rate}");
        }
    });
}

#[test]
fn a_test_by_time_ends_with_a_whole_block() {
    with_server(ServerLimits::default(), |server| {
        // 50 Mbit/s are 2.5 MB in 400 ms, 19.07 blocks: servers since 3.16 count whole ones only.
        let pace = Some(BitRate::from_bits_per_sec(50_000_000));
        for streams in [1, 3] {
            let (record, _) = measure(server, TcpTest { pace, streams, ..tcp_test() });
            assert_agreed(&record);
            for flow in &record.flows {
                let sent = flow.sender.as_ref().expect("this end").bytes;
                assert_eq!(sent % (128 << 10), 0, "{sent} bytes in blocks of 128 KiB");
            }
        }
    });
}

#[test]
fn a_senders_bytes_and_their_time_belong_together() {
    with_server(ServerLimits::default(), |server| {
        let finish = Finish::TimeNs(1_000_000_000);
        let pace = Some(BitRate::from_bits_per_sec(80_000_000));
        let omit_ns = 1_000_000_000;
        for directions in [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both] {
            let (record, _) =
                measure(server, TcpTest { directions, omit_ns, finish, pace, ..tcp_test() });
            assert_eq!(record.failure, None);
            for flow in &record.flows {
                for end in [&flow.sender, &flow.receiver] {
                    let end = end.as_ref().expect("both ends tell");
                    let rate = end.bytes_measured as f64 * 8e9 / end.span_ns as f64;
                    // A busy machine may send late and make up for half a second of it within the
                    // span, but what was sent before, two times as much in all, never counts.
                    assert!(rate < 120e6, "{:?}: {rate} bit/s of {end:?}", flow.direction);
                }
            }
        }
    });
}

#[test]
fn a_client_that_vanishes_at_any_stage_gives_its_place_back() {
    with_server(ServerLimits::default(), |server| {
        let params = Params { parallel: 1, time_s: 60, ..Params::default() };
        for stage in 0..3_u8 {
            let (mut stream, cookie) = control(server, stage);
            stream.write_all(&frame_json(&params.to_json())).expect("sent");
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).expect("parameter exchange, create streams");
            assert_eq!(answer, [9, 10]);
            let data = (stage > 0).then(|| {
                let mut data = TcpStream::connect(server).expect("the server listens");
                data.write_all(&cookie.to_bytes()).expect("sent");
                stream.read_exact(&mut answer).expect("test start, test running");
                assert_eq!(answer, [1, 2]);
                data.write_all(&[0; 1000]).expect("payload");
                data
            });
            if stage == 2 {
                stream.write_all(&[4]).expect("test end");
            }
            drop((stream, data));
            let begin = monotonic();
            loop {
                let (record, _) = measure(server, tcp_test());
                if record.failure.is_none() {
                    break;
                }
                let waited = monotonic().duration_since(begin);
                assert!(waited < GIVE_BACK_MAX, "stage {stage}: {:?}", record.failure);
                sleep(Duration::from_millis(50));
            }
        }
    });
}

/// Datagrams of a test in each direction.
const DATAGRAMS: u64 = 150;

fn udp_test() -> UdpTest<Option<u32>> {
    UdpTest {
        // All fit in a receive buffer of the kernel's default size, whoever reads them late.
        finish: Finish::Buffers(DATAGRAMS),
        interval_ns: 50_000_000,
        size_bytes: Some(200),
        pace: Some(BitRate::from_bits_per_sec(800_000)),
        ..UdpTest::default()
    }
}

fn measure_udp(server: SocketAddr, test: UdpTest<Option<u32>>) -> (Record, Vec<Event>) {
    let mut events = Vec::new();
    let mut watch = |event: &Event| events.push(event.clone());
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let server = ServerPlan::new(Some(Via::Iperf3), server.ip().to_string(), server.port());
    let plan = UdpPlan { server, test, ..UdpPlan::default() };
    let record = run_udp(&plan, &mut context);
    (record, events)
}

/// Every stream lost nothing, and both ends count the same datagrams.
fn assert_agreed_udp(record: &Record) {
    assert_eq!(record.failure, None);
    let mut counted = [0; 2];
    for flow in &record.flows {
        let sender = flow.sender.as_ref().expect("told");
        let receiver = flow.receiver.as_ref().expect("told");
        assert_eq!(sender.bytes, receiver.bytes, "{:?} stream {}", flow.direction, flow.flow);
        let received = receiver.received_datagrams.as_ref().expect("counted");
        assert_eq!((received.all.lost, received.all.sent), (0, Some(received.all.received)));
        counted[usize::from(flow.direction == Direction::Down)] += received.all.received;
    }
    let has = |direction| record.flows.iter().any(|flow| flow.direction == direction);
    let expected = [Direction::Up, Direction::Down].map(|it| u64::from(has(it)) * DATAGRAMS);
    assert_eq!(counted, expected);
}

#[test]
fn datagrams_are_counted_alike_in_every_direction() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both] {
            for streams in [1, 3] {
                let test = UdpTest { directions, streams, ..udp_test() };
                let (record, events) = measure_udp(server, test);
                assert_agreed_udp(&record);
                let ways = if directions == TcpDirections::Both { 2 } else { 1 };
                assert_eq!(record.flows.len(), usize::from(streams) * ways);
                assert!(events.iter().any(|event| matches!(event, Event::Interval(_))));
            }
        }
    });
}

#[test]
fn an_amount_of_datagrams_is_sent_to_the_last_one() {
    with_server(ServerLimits::default(), |server| {
        let test = UdpTest { finish: Finish::Buffers(151), streams: 2, ..udp_test() };
        let (record, _) = measure_udp(server, test);
        assert_eq!(record.failure, None);
        assert_eq!(value(&record, MetricId::DatagramsReceived, Direction::Up), 151.0);
        assert_eq!(value(&record, MetricId::DatagramsLost, Direction::Up), 0.0);
    });
}

#[test]
fn several_udp_clients_of_one_address_run_at_once() {
    with_server(ServerLimits { tests: 4, ..ServerLimits::default() }, |server| {
        std::thread::scope(|scope| {
            let ways = [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both];
            let tests: Vec<_> = ways
                .into_iter()
                .map(|directions| UdpTest { directions, streams: 2, ..udp_test() })
                .map(|test| scope.spawn(move || measure_udp(server, test).0))
                .collect();
            tests.into_iter().for_each(|test| assert_agreed_udp(&test.join().expect("no panic")));
        });
    });
}

#[test]
fn an_address_that_no_test_knows_gets_no_datagram() {
    with_server(ServerLimits::default(), |server| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let timeout = Duration::from_millis(300);
        socket.set_read_timeout(Some(timeout)).expect("a time-out");
        for bytes in [&b"9876"[..], b"6789", &[0xff; 1000], b""] {
            socket.send_to(bytes, server).expect("sent");
        }
        assert!(socket.recv(&mut [0; 64]).is_err(), "nothing comes back");
        assert_agreed_udp(&measure_udp(server, udp_test()).0);
    });
}

#[test]
fn a_udp_client_that_vanishes_gives_its_place_back() {
    with_server(ServerLimits::default(), |server| {
        let params = Params {
            protocol: Protocol::Udp,
            parallel: 1,
            time_s: 60,
            block_bytes: Some(1000),
            ..Params::default()
        };
        for stage in 0..2_u8 {
            let (mut stream, _) = control(server, stage);
            stream.write_all(&frame_json(&params.to_json())).expect("sent");
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).expect("parameter exchange, create streams");
            let data = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
            if stage == 1 {
                data.send_to(b"9876", server).expect("sent");
                let mut reply = [0; 4];
                let (_, from) = data.recv_from(&mut reply).expect("an answer");
                assert_eq!((&reply, from), (b"6789", server));
                stream.read_exact(&mut answer).expect("test start, test running");
                assert_eq!(answer, [1, 2]);
            }
            drop((stream, data));
            let begin = monotonic();
            loop {
                let (record, _) = measure_udp(server, udp_test());
                if record.failure.is_none() {
                    break;
                }
                let waited = monotonic().duration_since(begin);
                assert!(waited < GIVE_BACK_MAX, "stage {stage}: {:?}", record.failure);
                sleep(Duration::from_millis(50));
            }
        }
    });
}
