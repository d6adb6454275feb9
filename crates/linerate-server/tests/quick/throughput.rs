//! TCP tests over loopback: both ends in this process, real sockets, every count compared.
//! Times are short and bounds wide: these are tests of counting and manners, not of speed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::peers::{HERE, free_port};
use linerate_core::record::{
    CaveatCode, Direction, Event, Fault, Finish, MeasurementEnd, MetricId, Record, RecordStatus,
    ServerPlan, Stat, TcpDirections, TcpPlan, TcpTest, Tool,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_proto::native::{
    Accept, Decoder, FlowSample, Hello, HelloKind, Message, Token, encode,
};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

/// Runs `test` against a server on a free loopback port.
fn with_server(limits: ServerLimits, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        MeasurementServer::bind(&ServeOptions { local, limits, foreign: Foreign::without_ports() })
            .expect("a free port");
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running =
            scope.spawn(|| server.run(&stop, &|entry: &LogEntry<'_>| drop(format!("{entry:?}"))));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(address)));
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn plan(server: SocketAddr) -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(None, server.ip().to_string(), server.port()),
        test: TcpTest {
            finish: Finish::TimeNs(300_000_000),
            interval_ns: 100_000_000,
            congestion_control: Some("cubic".to_owned()),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn measure(plan: &TcpPlan) -> (Record, Vec<Event>) {
    let mut events = Vec::new();
    let record = measure_watched(plan, &Stop::new(), &mut |event| events.push(event.clone()));
    (record, events)
}

fn measure_watched(plan: &TcpPlan, stop: &Stop, watch: &mut dyn FnMut(&Event)) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: stop.clone(), watch };
    throughput::run_tcp(plan, &mut context)
}

fn value(record: &Record, metric: MetricId, direction: Direction) -> f64 {
    let value = record.summary_value(metric, Stat::Value, Some(direction));
    value.unwrap_or_else(|| panic!("no {metric} {direction:?} in {record:#?}"))
}

#[test]
fn a_test_by_bytes_delivers_exactly_those_bytes_in_every_direction() {
    with_server(ServerLimits::default(), |server| {
        let cases = [
            (TcpDirections::Up, 1, Finish::Bytes(10_000_019)),
            (TcpDirections::Down, 3, Finish::Bytes(10_000_019)),
            (TcpDirections::Both, 2, Finish::Buffers(100)),
        ];
        for (directions, streams, finish) in cases {
            let plan = TcpPlan {
                test: TcpTest {
                    directions,
                    streams,
                    finish,
                    buffer_bytes: 65_536,
                    ..plan(server).test
                },
                ..plan(server)
            };
            let (record, _) = measure(&plan);
            assert_eq!(record.failure, None);
            // 100 buffers of 65,536 bytes are 6,553,600 bytes.
            let expected = if streams == 2 { 6_553_600.0 } else { 10_000_019.0 };
            for direction in [Direction::Up, Direction::Down] {
                if record.flows.iter().any(|flow| flow.direction == direction) {
                    assert_eq!(value(&record, MetricId::Bytes, direction), expected);
                    assert_eq!(value(&record, MetricId::BytesSent, direction), expected);
                }
            }
            assert_eq!(record.flows.len(), usize::from(streams) * if streams == 2 { 2 } else { 1 });
        }
    });
}

#[test]
fn the_rate_is_the_bytes_over_the_span_and_the_span_is_the_time_that_was_asked() {
    with_server(ServerLimits::default(), |server| {
        let (record, events) = measure(&plan(server));
        assert_eq!(record.status, RecordStatus::Ok);
        let span = value(&record, MetricId::Span, Direction::Up);
        // The sender's time starts a moment before the receiver's first byte, longer on a busy
        // machine.
        assert!((100e6..=300e6).contains(&span), "{span} ns");
        let bytes = value(&record, MetricId::Bytes, Direction::Up);
        let goodput = value(&record, MetricId::Goodput, Direction::Up);
        assert!((goodput - bytes * 8e9 / span).abs() <= 1e-6 * goodput);
        let rows = events.iter().filter(|event| matches!(event, Event::Interval(_))).count();
        assert!((2..=4).contains(&rows), "{rows} rows in 300 ms of 100 ms intervals");
    });
}

#[test]
fn a_window_is_asked_granted_and_advertised_and_all_three_are_told() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let plan = TcpPlan {
                test: TcpTest { directions, window_bytes: Some(16_384), ..plan(server).test },
                ..plan(server)
            };
            let (record, _) = measure(&plan);
            let flow = &record.flows[0];
            let receiver = flow.receiver.as_ref().expect("both ends report");
            assert_eq!(receiver.rcvbuf_bytes.asked, Some(16_384));
            // The kernel doubles it (socket(7)).
            assert_eq!(receiver.rcvbuf_bytes.got, Some(32_768));
            let advertised = receiver.window_advertised_bytes_max.expect("kernel 6.2 and later");
            assert!((8_192..=32_768).contains(&advertised), "{advertised}");
            let offered = flow.sender.as_ref().expect("both ends report");
            assert!(offered.window_offered_bytes_max.expect("kernel 5.4") <= 32_768);
            let syn = flow.syn.expect("the listener saves it");
            assert!(syn.timestamps && syn.sack_permitted, "{syn:?}");
            assert_eq!(syn.window_scale, Some(0), "a 32 KiB buffer needs no scale");
        }
    });
}

#[test]
fn a_pace_is_kept() {
    with_server(ServerLimits::default(), |server| {
        let pace = BitRate::from_bits_per_sec(40_000_000);
        let finish = Finish::Bytes(3_000_000);
        let plan = TcpPlan {
            test: TcpTest { finish, pace: Some(pace), streams: 2, ..plan(server).test },
            ..plan(server)
        };
        let begin = monotonic();
        let (record, _) = measure(&plan);
        let took = monotonic().duration_since(begin);
        assert_eq!(value(&record, MetricId::Bytes, Direction::Up), 3_000_000.0);
        // Two streams of 40 Mbit/s take 300 ms, but for the buffers that leave at once; a busy
        // machine may wake the senders late, never early.
        assert!(took > Duration::from_millis(250), "{took:?}");
    });
}

#[test]
fn the_omitted_span_does_not_count() {
    with_server(ServerLimits::default(), |server| {
        let plan =
            TcpPlan { test: TcpTest { omit_ns: 200_000_000, ..plan(server).test }, ..plan(server) };
        let (record, events) = measure(&plan);
        let bytes = value(&record, MetricId::Bytes, Direction::Up);
        assert!(bytes < value(&record, MetricId::BytesSent, Direction::Up));
        let omitted = |event: &&Event| matches!(event, Event::Interval(row) if row.omitted);
        assert!(events.iter().filter(omitted).count() >= 1);
        // The sender's bytes and time are those after the omitted span, too.
        let sender = record.flows[0].sender.as_ref().expect("this end");
        assert!(sender.bytes_measured < sender.bytes, "{sender:?}");
        assert!(sender.span_start_ns >= 200_000_000, "{sender:?}");
    });
}

#[test]
fn zero_copy_and_reverse_and_small_segments_are_told_as_they_were() {
    with_server(ServerLimits::default(), |server| {
        let plan = TcpPlan {
            test: TcpTest {
                zero_copy: true,
                mss_bytes: Some(1000),
                directions: TcpDirections::Down,
                ..plan(server).test
            },
            ..plan(server)
        };
        let (record, _) = measure(&plan);
        let sender = record.flows[0].sender.as_ref().expect("the server reports");
        assert_eq!(sender.technique, "sendfile");
        assert_eq!(sender.congestion_control.got.as_deref(), Some("cubic"));
        // 12 bytes of every segment are the timestamp option (RFC 7323 §3.2).
        assert_eq!(sender.tcp_info.and_then(|info| info.snd_mss_bytes), Some(988));
    });
}

#[test]
fn an_unknown_congestion_control_is_one_clear_line() {
    with_server(ServerLimits::default(), |server| {
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            let congestion_control = Some("nosuch".to_owned());
            let (record, _) = measure(&TcpPlan {
                test: TcpTest { directions, congestion_control, ..plan(server).test },
                ..plan(server)
            });
            let failure = record.failure.expect("no kernel has it");
            assert!(failure.to_string().contains("nosuch"), "{failure}");
            assert_eq!(record.status, RecordStatus::Error);
        }
    });
}

#[test]
fn a_second_test_is_refused_while_the_first_runs_and_limits_are_kept() {
    with_server(ServerLimits { streams: 4, ..ServerLimits::default() }, |server| {
        std::thread::scope(|scope| {
            let (stop, (send, rows)) = (Stop::new(), std::sync::mpsc::channel());
            let ask = stop.clone();
            let first = scope.spawn(move || {
                let finish = Finish::TimeNs(60_000_000_000);
                let pace = Some(BitRate::from_bits_per_sec(8_000_000));
                measure_watched(
                    &TcpPlan {
                        test: TcpTest { finish, pace, ..plan(server).test },
                        ..plan(server)
                    },
                    &stop,
                    &mut |event| {
                        if matches!(event, Event::Interval(_)) {
                            let _ = send.send(());
                        }
                    },
                )
            });
            rows.recv().expect("the first has a row");
            let (record, _) = measure(&plan(server));
            ask.request_stop();
            let failure = record.failure.as_ref().expect("the first is running");
            assert_eq!((failure.fault, record.exit_code()), (Fault::PeerRefused, 4));
            assert!(failure.to_string().contains("try again"), "{failure}");
            assert_eq!(first.join().expect("no panic").failure, None);
        });
        let (record, _) =
            measure(&TcpPlan { test: TcpTest { streams: 5, ..plan(server).test }, ..plan(server) });
        let failure = record.failure.expect("5 streams of 4");
        assert!(failure.to_string().contains("the limit is 4"), "{failure}");
    });
}

#[test]
fn garbage_silence_and_half_messages_stop_nobody() {
    with_server(ServerLimits::default(), |server| {
        let connect = || TcpStream::connect(server).expect("the server listens");
        let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
        let mut rude: Vec<TcpStream> = Vec::new();
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0xff; 4096],
            b"LINERATE\x00\x01\x01",
            b"LINERATE\x00\x01\x07\x00\x00\x00\x00\x00",
            b"LINERATE\x00\x01\x01\x00\x00\x00\x00\x00\xff\xff\xff\xff{",
            b"LINERATE\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02[]",
            b"LINERATE\x00\x01\x02\x00\x00\x00\x00\x00aaaaaaaaaaaaaaaa\x00\x00\x01\x00\x00\x00\x00\x00",
        ] {
            let mut stream = connect();
            stream.write_all(bytes).expect("the server reads");
            rude.push(stream);
        }
        let (record, _) = measure(&plan(server));
        assert_eq!(record.failure, None);
        drop((silent, rude));
    });
}

#[test]
fn a_client_that_vanishes_gives_its_place_back() {
    with_server(ServerLimits::default(), |server| {
        let mut stream = TcpStream::connect(server).expect("the server listens");
        stream.write_all(&Hello::new(HelloKind::Control).to_bytes()).expect("sent");
        let plan_request = r#"{"type":"request","directions":"up","streams":1,
            "finish":{"time_ns":60000000000},"omit_ns":0,"interval_ns":1000000000,
            "buffer_bytes":1024,"window_bytes":null,"mss_bytes":null,"nodelay":false,
            "congestion_control":null,"pace_bps":null,"dscp":null,"zero_copy":false}"#;
        let length = u32::try_from(plan_request.len()).expect("short");
        stream.write_all(&length.to_be_bytes()).expect("sent");
        stream.write_all(plan_request.as_bytes()).expect("sent");
        let mut answer = [0; 64];
        stream.read_exact(&mut answer).expect("hello and the start of accept");
        drop(stream);
        let begin = monotonic();
        loop {
            let (record, _) = measure(&plan(server));
            if record.failure.is_none() {
                break;
            }
            assert!(
                monotonic().duration_since(begin) < Duration::from_secs(60),
                "{:?}",
                record.failure
            );
            sleep(Duration::from_millis(50));
        }
    });
}

/// A server that behaves until it has sent `intervals`, then goes away.
fn fake_server(version: u16, intervals: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut control, _) = listener.accept().expect("the client connects");
        let mut hello = [0; 16];
        control.read_exact(&mut hello).expect("a hello");
        let own = Hello { version, kind: HelloKind::Control };
        control.write_all(&own.to_bytes()).expect("sent");
        let mut decoder = Decoder::default();
        let mut bytes = [0; 4096];
        while !matches!(decoder.next_message(), Ok(Some(Message::Request(_)))) {
            match control.read(&mut bytes) {
                Ok(count) if count > 0 => decoder.push(&bytes[..count]),
                _ => return,
            }
        }
        let token = Token([1; 16]).to_hex();
        let accept = Accept {
            token,
            data_port: address.port(),
            udp_ports: Vec::new(),
            host_id: None,
            end: MeasurementEnd::default(),
            features: Vec::new(),
        };
        let send = |control: &mut TcpStream, message: &Message| {
            let _ = control.write_all(&encode(message).expect("short"));
        };
        send(&mut control, &Message::Accept(Box::new(accept)));
        let (data, _) = listener.accept().expect("the data stream");
        send(&mut control, &Message::Ready);
        for tick in 1..=intervals {
            let sample = FlowSample {
                direction: Direction::Up,
                flow: 0,
                t_ns: tick * 100_000_000,
                bytes: tick * 1_000_000,
                retransmits: None,
                cwnd_bytes: None,
                rtt_ns: None,
                send_window_bytes: None,
                receive_window_bytes: None,
                delivery_rate_bps: None,
                rtt_var_ns: None,
                pmtu_bytes: None,
                cpu_ns: None,
                run_queue_wait_ns: None,
                blocked_ns: None,
                asleep_ns: None,
                signals: Vec::new(),
            };
            send(&mut control, &Message::Interval { samples: vec![sample] });
        }
        // A reset takes from a client that waits for a core what it has not read yet.
        sleep(Duration::from_secs(3));
        drop((control, data));
    });
    address
}

#[test]
fn a_server_that_dies_leaves_a_partial_record_with_its_samples() {
    let server = fake_server(1, 3);
    let (record, _) = measure(&TcpPlan {
        test: TcpTest { finish: Finish::TimeNs(5_000_000_000), ..plan(server).test },
        ..plan(server)
    });
    assert_eq!(record.status, RecordStatus::Partial);
    assert_eq!(record.failure.as_ref().map(|failure| failure.fault), Some(Fault::Unreachable));
    // 3 MB in 0.3 s are 80 Mbit/s.
    assert_eq!(value(&record, MetricId::Goodput, Direction::Up), 80e6);
    assert!(record.caveats.iter().any(|caveat| caveat.code == CaveatCode::CutShort));
    assert_eq!(record.exit_code(), 3);
}

#[test]
fn a_server_without_flows_in_the_background_is_told_before_anything_is_measured() {
    let server = fake_server(1, 3);
    let background = Some(BitRate::from_bits_per_sec(1_000_000));
    let (record, _) =
        measure(&TcpPlan { test: TcpTest { background, ..plan(server).test }, ..plan(server) });
    let failure = record.failure.expect("it names no features");
    assert_eq!(failure.fault, Fault::PeerIncompatible);
    assert!(failure.to_string().contains("does not know background"), "{failure}");
    assert_eq!(record.status, RecordStatus::Error);
}

#[test]
fn another_version_of_the_protocol_is_named() {
    let server = fake_server(9, 0);
    let (record, _) = measure(&plan(server));
    let failure = record.failure.expect("version 9");
    assert_eq!(failure.fault, Fault::PeerIncompatible);
    assert!(failure.to_string().contains("version 9"), "{failure}");
}

#[test]
fn a_refused_connection_says_what_to_start() {
    let address = SocketAddr::new(HERE, free_port());
    let (record, _) = measure(&plan(address));
    let failure = record.failure.as_ref().expect("nobody listens");
    assert!(failure.to_string().contains("start `linerate serve`"), "{failure}");
    assert_eq!(record.exit_code(), 3);
}

#[test]
fn an_interrupted_test_keeps_what_it_measured() {
    with_server(ServerLimits::default(), |server| {
        let stop = Stop::new();
        let begin = monotonic();
        let plan = TcpPlan {
            test: TcpTest { finish: Finish::TimeNs(60_000_000_000), ..plan(server).test },
            ..plan(server)
        };
        let record = measure_watched(&plan, &stop, &mut |event| {
            if matches!(event, Event::Interval(_)) {
                stop.request_stop();
            }
        });
        assert!(monotonic().duration_since(begin) < Duration::from_secs(40));
        assert_eq!((record.status, record.exit_code()), (RecordStatus::Interrupted, 130));
        assert!(value(&record, MetricId::Bytes, Direction::Up) > 0.0);
    });
}
