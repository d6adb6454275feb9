//! nuttcp from either side, live against the `nuttcp` of this machine: the bytes that both ends
//! count agree, as far as its four digits of a megabyte go. Rates are not judged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::peers::{
    HERE, Peer, bytes, free_port, good, lacks, logged_bytes, measure, plan, run, with_server,
};
use linerate_core::record::{
    Direction, Finish, RecordStatus, TcpDirections, TcpPlan, TcpTest, Tool, Via,
};
use linerate_engine::context::Context;
use linerate_engine::foreign::nuttcp::{self, NuttcpExtras};
use linerate_proto::nuttcp::NuttcpInterval;
use linerate_server::admission::ServerLimits;
use linerate_sys::clock::sleep;
use linerate_sys::stop::Stop;

/// The megabytes of the last result line that nuttcp printed, in bytes.
fn told(printed: &str) -> f64 {
    let lines = printed.lines().rev().filter(|line| line.contains(" Mbps"));
    let word = lines.into_iter().next().and_then(|line| line.split_whitespace().next());
    let megabytes: f64 = word.and_then(|word| word.parse().ok()).expect("megabytes come first");
    megabytes * 1_048_576.0
}

/// Half a unit of nuttcp's last digit is 52.4 bytes.
fn check(ours: u64, told: f64, what: &str) {
    assert!((ours as f64 - told).abs() <= 53.0, "{what}: {ours} bytes, nuttcp says {told}");
}

#[test]
fn a_nuttcp_client_and_our_server_count_the_same_bytes() {
    if lacks("nuttcp") {
        return;
    }
    with_server(ServerLimits::default(), |server| {
        let port = format!("-P{}", server.port(Via::Nuttcp));
        let cases: [&[&str]; 12] = [
            &["-T0.5"],
            &["-T0.5", "-i.1"],
            &["-T0.5", "-r"],
            &["-T0.5", "-N3"],
            &["-T0.5", "-r", "-N2"],
            &["-T0.5", "-r", "-F"],
            &["-T0.5", "-F"],
            &["-n100", "-l8192"],
            &["-n100", "-l8192", "-r"],
            &["-T0.5", "-w64k"],
            &["-T0.5", "-R20m", "-r"],
            &["-T0.5", "-R20m", "-N2"],
        ];
        for flags in cases {
            let data = format!("-p{}", free_port());
            let printed = run(
                "nuttcp",
                &[&[port.as_str(), data.as_str()], flags, &["127.0.0.1"][..]].concat(),
            );
            let log = server.log(1);
            assert!(log[0].starts_with("nuttcp 6."), "{flags:?}: {log:?}");
            check(logged_bytes(&log[0]), told(&printed), &format!("{flags:?}"));
            let rows = printed.lines().filter(|line| line.contains(" MB / ")).count();
            assert_eq!(rows > 1, flags.contains(&"-i.1"), "{flags:?}: {printed}");
        }
    });
}

#[test]
fn our_client_and_a_nuttcp_server_count_the_same_bytes() {
    if lacks("nuttcp") {
        return;
    }
    use TcpDirections::{Both, Down, Up};
    let time = Finish::TimeNs(500_000_000);
    let cases = [
        (Up, 1, time),
        (Up, 3, time),
        (Down, 1, time),
        (Down, 2, time),
        (Up, 1, Finish::Bytes(10 << 20)),
        (Down, 1, Finish::Bytes(10 << 20)),
        (Up, 2, Finish::Buffers(100)),
    ];
    for (directions, streams, finish) in cases {
        // One that does not fork is deaf for a moment after each test.
        let peer = Peer::start("nuttcp", &["-S", "--nofork", "-P"]);
        let plan = TcpPlan {
            test: TcpTest { directions, streams, finish, ..plan(Via::Nuttcp, peer.port).test },
            ..plan(Via::Nuttcp, peer.port)
        };
        let plan = TcpPlan { test: TcpTest { buffer_bytes: 65_536, ..plan.test }, ..plan };
        let record = good(&plan);
        assert_eq!(record.ends[1].version.as_deref(), Some("nuttcp 6.1.2"));
        let direction = if directions == Up { Direction::Up } else { Direction::Down };
        assert!(bytes(&record, direction) > 0);
        // With one stream the server's count stands beside ours; what it sent is what came.
        if let [flow] = record.flows.as_slice() {
            let count =
                |end: &Option<linerate_core::record::FlowEnd>| end.as_ref().map(|e| e.bytes);
            assert!(count(&flow.sender).is_some());
            assert_eq!(count(&flow.sender), count(&flow.receiver), "{directions:?} {finish:?}");
        }
        let whole = match finish {
            Finish::Bytes(bytes) => Some(bytes),
            Finish::Buffers(count) => Some(count * 65_536),
            Finish::TimeNs(_) => None,
        };
        assert!(whole.is_none_or(|whole| bytes(&record, direction) == whole), "{finish:?}");
    }
    let (record, _) = measure(&TcpPlan {
        test: TcpTest { directions: Both, ..plan(Via::Nuttcp, free_port()).test },
        ..plan(Via::Nuttcp, free_port())
    });
    assert!(record.failure.is_some_and(|failure| failure.to_string().contains("one way")));
}

#[test]
fn our_client_and_our_server_speak_nuttcp_with_each_other_too() {
    with_server(ServerLimits::default(), |server| {
        for (directions, direction) in
            [(TcpDirections::Up, Direction::Up), (TcpDirections::Down, Direction::Down)]
        {
            let test = TcpTest {
                directions,
                streams: 2,
                finish: Finish::Buffers(64),
                buffer_bytes: 65_536,
                ..TcpTest::default()
            };
            let plan = TcpPlan { test, ..plan(Via::Nuttcp, server.port(Via::Nuttcp)) };
            let mut told = |_: &NuttcpInterval, _: &str| {};
            let extras = NuttcpExtras {
                data_port: Some(free_port()),
                ..NuttcpExtras::without_options(&mut told)
            };
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
            let (record, summary) = nuttcp::run(&plan, extras, &mut context);
            assert_eq!(record.failure, None);
            let sent = 64 * 65_536;
            assert_eq!(bytes(&record, direction), sent);
            assert_eq!(summary.and_then(|told| told.payload_bytes(sent)), Some(sent));
            let log = server.log(1);
            assert!(
                log[0].starts_with("nuttcp 7.0.1: ")
                    && log[0].contains(": 2 streams, 4.194 MB in "),
                "{log:?}"
            );
        }
    });
}

#[test]
fn a_server_that_dies_while_it_sends_is_no_end_of_the_test() {
    let data = TcpListener::bind((HERE, 0)).expect("a free port");
    let control = TcpListener::bind((HERE, 0)).expect("a free port");
    let data_port = data.local_addr().expect("bound").port();
    let plan = plan(Via::Nuttcp, control.local_addr().expect("bound").port());
    let plan = TcpPlan { test: TcpTest { directions: TcpDirections::Down, ..plan.test }, ..plan };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut control, _) = control.accept().expect("a client");
            let mut lines = BufReader::new(control.try_clone().expect("a handle")).lines();
            for answer in ["HELO nuttcp v6.1.2\n", "OK v6.1.2\n"] {
                lines.next().expect("a line").expect("of text");
                control.write_all(answer.as_bytes()).expect("the client is there");
            }
            let (mut data, _) = data.accept().expect("a stream");
            data.write_all(&[7; 100_000]).expect("the client is there");
            // All that the kernel says for a process that was killed is that both are at their end.
        });
        let mut told = |_: &NuttcpInterval, _: &str| {};
        let extras =
            NuttcpExtras { data_port: Some(data_port), ..NuttcpExtras::without_options(&mut told) };
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
        let (record, summary) = nuttcp::run(&plan, extras, &mut context);
        assert_eq!(summary, None);
        let failure = record.failure.as_ref().expect("its end never came");
        assert!(failure.to_string().contains("closed the control connection"), "{failure}");
        assert_eq!((record.status, record.exit_code()), (RecordStatus::Partial, 3));
        assert_eq!(bytes(&record, Direction::Down), 100_000, "what came is kept");
    });
}

/// A client that reaches the answer, as bytes: 6.1.2's lines.
fn ask(stream: &mut TcpStream, changes: &[(&str, &str)]) -> String {
    let line = "buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = \
        5101, trans = 1, braindead = 0, timeout = 1.000000, udp = 0, vers = 6.1.2, interval = \
        0.000000, reverse = 0, format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , \
        multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n";
    let line = changes.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
    stream.write_all(format!("HELO nuttcp v6.1.2\n{line}").as_bytes()).expect("open");
    let mut said = Vec::new();
    let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        said.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&said);
        if text.contains("\nOK") || text.ends_with("KO\n") && text.matches("KO\n").count() == 2 {
            break;
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// A client may send as soon as the kernel has its streams, long before the server takes them all:
/// what waits at the start of the test took that time to come.
#[test]
fn what_came_before_the_server_began_has_its_time() {
    with_server(ServerLimits::default(), |server| {
        let mut control = TcpStream::connect(server.at(Via::Nuttcp)).expect("it listens");
        let first = free_port();
        let port = format!("port = {first}");
        let changes = [("port = 5101", port.as_str()), ("nstream = 1", "nstream = 2")];
        assert!(ask(&mut control, &changes).contains("\nOK"));
        let send = |port: u16| {
            let mut stream = TcpStream::connect((HERE, port)).expect("the server listens");
            stream.write_all(&[7; 40_000]).expect("it fits into a window");
            stream
        };
        let early = send(first);
        sleep(Duration::from_millis(500));
        let late = send(first + 1);
        drop((early, late));
        let mut said = String::new();
        control.read_to_string(&mut said).expect("the server's figures");
        let line = said.lines().find(|line| line.contains(" real seconds"));
        let line = line.unwrap_or_else(|| panic!("no result: {said}"));
        assert!(line.contains(": 0.0763 MB in "), "80,000 bytes are 0.0763 MB: {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let seconds: f64 = words[4].parse().expect("seconds");
        assert!((0.49..5.0).contains(&seconds), "{line}");
        assert_eq!(server.log(1).len(), 1);
    });
}

#[test]
fn what_is_not_served_is_refused_in_words() {
    with_server(ServerLimits::default(), |server| {
        let cases: [(&[(&str, &str)], &str); 5] = [
            (&[("_NULL_", "elsewhere")], "a third party is not served"),
            (&[("port = 5101", "port = 22")], "data port 22 is below 1024"),
            (&[("buflen = 65536", "buflen = 0")], ""),
            (&[("trans = 1", "trans = 0"), ("timeout = 1.0", "timeout = 0.0")], "time of"),
            (&[("nstream = 1", "nstream = 4000")], ""),
        ];
        for (changes, reason) in cases {
            let mut stream = TcpStream::connect(server.at(Via::Nuttcp)).expect("it listens");
            let said = ask(&mut stream, changes);
            assert!(!said.contains("\nOK"), "{changes:?}: {said}");
            assert!(said.contains(reason), "{changes:?}: {said}");
            assert_eq!(server.log(1).len(), 1);
        }
    });
}

#[test]
fn a_client_that_comes_while_another_measures_waits_for_its_place() {
    with_server(ServerLimits::default(), |server| {
        let to = server.at(Via::Nuttcp);
        let mut first = TcpStream::connect(to).expect("it listens");
        let port = format!("port = {}", free_port());
        assert!(ask(&mut first, &[("port = 5101", &port)]).contains("\nOK"));
        let second = std::thread::spawn(move || {
            let mut second = TcpStream::connect(to).expect("it listens");
            let port = format!("port = {}", free_port());
            (ask(&mut second, &[("port = 5101", &port)]), second)
        });
        sleep(Duration::from_millis(300));
        assert!(!second.is_finished(), "one test is running");
        // The first leaves without having opened its streams.
        drop(first);
        let (said, second) = second.join().expect("no panic");
        assert!(said.contains("\nOK"), "{said}");
        drop(second);
        assert_eq!(server.log(2).len(), 2);
    });
}
