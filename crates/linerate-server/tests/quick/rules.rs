//! Rules of a policy against clients of every protocol: what a client is told, in its program's own
//! way, when its test is longer, faster or more than it may; and tests at once.

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Output};
use std::time::Duration;

use linerate_core::policy::{Policy, Program};
use linerate_core::record::{Finish, Record, ServerPlan, TcpDirections, TcpPlan, TcpTest, Via};
use linerate_core::units::BitRate;
use linerate_engine::flow::admission::{Admission, Demand, Permit};
use linerate_server::admission::{Gate, ServerLimits};
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;

use crate::peers::{self, HERE, lacks, text};

/// Runs `test` against a server with this policy: its own port, and that of a program.
fn with_policy(policy: &str, test: impl FnOnce(u16, &dyn Fn(Via) -> u16)) {
    let foreign = [Via::Iperf3, Via::Iperf2, Via::Nuttcp].map(|via| (via, 0)).to_vec();
    let local = SocketAddr::new(HERE, 0);
    let limits = ServerLimits { tests: 20, ..ServerLimits::default() };
    let options = ServeOptions { local, limits, foreign: Foreign::These(foreign) };
    let server = MeasurementServer::bind(&options).expect("free ports");
    server.set_policy(Policy::from_toml(policy).expect("a policy"));
    let own = server.local_addr().expect("bound").port();
    let ports: Vec<(Via, u16)> = server.foreign().collect();
    let port = |via| ports.iter().find(|(it, _)| *it == via).expect("it is answered").1;
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(own, &port));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A test by more bytes than any path moves while it may run, in a direction, at a pace.
fn endless(port: u16, directions: TcpDirections, pace_bps: Option<u64>) -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(None, HERE.to_string(), port),
        test: TcpTest {
            finish: Finish::Bytes(1 << 50),
            directions,
            pace: pace_bps.map(BitRate::from_bits_per_sec),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn why(record: &Record) -> String {
    record.failure.as_ref().map_or_else(|| "no failure".to_owned(), ToString::to_string)
}

fn iperf3(port: u16, flags: &[&str]) -> Output {
    let port = port.to_string();
    let fixed = ["-c", "127.0.0.1", "-p", &port];
    Command::new("iperf3").args([&fixed[..], flags].concat()).output().expect("it starts")
}

const ONE_SECOND: &str = "[[rule]]\nname = \"guests\"\ntime = \"1s\"\n";

#[test]
fn a_test_by_bytes_ends_at_the_longest_time_with_the_words_of_the_rule_whoever_sends() {
    with_policy(ONE_SECOND, |own, port| {
        for directions in [TcpDirections::Up, TcpDirections::Down, TcpDirections::Both] {
            let said = why(&peers::measure(&endless(own, directions, None)).0);
            let expected = "rule \"guests\": a test sends no longer than 1 s";
            assert!(said.contains(expected), "{directions:?}: {said}");
        }
        // 100 MB at 40 Mbit/s take 20 s, which can be said at once.
        let plan = endless(own, TcpDirections::Up, Some(40_000_000));
        let test = TcpTest { finish: Finish::Bytes(100_000_000), ..plan.test.clone() };
        let said = why(&peers::measure(&TcpPlan { test, ..plan }).0);
        assert!(said.contains("20 s of sending; the limit is 1 s"), "{said}");
        // nuttcp hears nothing while it sends, and says itself that its stream was closed.
        for (via, ways) in [
            (Via::Nuttcp, &[TcpDirections::Down][..]),
            (Via::Iperf3, &[TcpDirections::Up, TcpDirections::Down]),
        ] {
            for directions in ways.iter().copied() {
                let plan = endless(port(via), directions, None);
                let server = ServerPlan::new(Some(via), HERE.to_string(), port(via));
                let said = why(&peers::measure(&TcpPlan { server, ..plan }).0);
                assert!(said.contains("longer than"), "{} {directions:?}: {said}", via.name());
            }
        }
        if lacks("iperf3") {
            return;
        }
        for flags in [&["-n", "1T"][..], &["-n", "1T", "-R"], &["-k", "100M", "-P", "2"]] {
            let output = iperf3(port(Via::Iperf3), flags);
            let said = text(&output);
            assert!(!output.status.success(), "{flags:?}: {said}");
            // By its version: "server test duration expired" since 3.17.
            let ends = ["test duration", "test authorization failed"];
            assert!(ends.iter().any(|words| said.contains(words)), "{flags:?}: {said}");
            assert!(!said.contains("reset by peer"), "{flags:?}: {said}");
        }
    });
}

#[test]
fn iperf3_is_told_which_limit_it_is() {
    if lacks("iperf3") {
        return;
    }
    let guests = "[[rule]]\nname = \"guests\"\ntests = [\"tcp\"]\nrate = \"50M\"\ntime = \"3s\"\n\
                  streams = 4\nbytes_per_client_per_day = \"20 MB\"\n";
    with_policy(guests, |_, port| {
        // The words of iperf_error.c (3.12) for 27, 6 and 142: none of its own names a time but the
        // maximum of the program, 86400 s.
        for (flags, words) in [
            (&["-t", "1"][..], "total required bandwidth is larger than server limit"),
            (&["-t", "1", "-b", "60M"], "total required bandwidth is larger than server limit"),
            (&["-t", "1", "-b", "20M", "-P", "3"], "total required bandwidth is larger"),
            (&["-t", "9", "-b", "1M"], "test authorization failed"),
            (&["-t", "1", "-b", "1M", "-P", "5"], "number of parallel streams too large"),
            (&["-t", "1", "-b", "1M", "-u"], "test authorization failed"),
        ] {
            let said = text(&iperf3(port(Via::Iperf3), flags));
            assert!(said.contains(words), "{flags:?}: {said}");
        }
        let output = iperf3(port(Via::Iperf3), &["-t", "1", "-b", "10M", "-P", "4"]);
        assert!(output.status.success(), "{}", text(&output));
    });
}

#[test]
fn our_client_gets_all_limits_at_once_as_a_line_that_is_let_in() {
    let guests = "[[rule]]\nname = \"guests\"\nrate = \"50M\"\ntime = \"1s\"\nstreams = 4\n";
    with_policy(guests, |own, _| {
        let plan = endless(own, TcpDirections::Up, None);
        let test = TcpTest { streams: 8, finish: Finish::TimeNs(20_000_000_000), ..plan.test };
        let plan = TcpPlan { test, ..plan };
        let failure = peers::measure(&plan).0.failure.expect("more than it may");
        let said = failure.to_string();
        for limit in ["8 streams; the limit is 4", "20 s of sending; the limit is 1 s", "50 Mbit/s"]
        {
            assert!(said.contains(limit), "{said}");
        }
        // 50 Mbit/s over 4 streams.
        let line = format!("linerate tcp 127.0.0.1 -p {own} -t 1s -b 12500k -P 4");
        assert!(said.contains(&line), "{said}");
        let test = TcpTest {
            streams: 4,
            finish: Finish::TimeNs(1_000_000_000),
            pace: Some(BitRate::from_bits_per_sec(12_500_000)),
            ..plan.test.clone()
        };
        let said = why(&peers::measure(&TcpPlan { test, ..plan }).0);
        assert_eq!(said, "no failure");
    });
}

/// 12 tests at once had 48 streams, 480 Mbit/s and 170 MB by a rule of 4, 50 Mbit/s and 20 MB.
#[test]
fn tests_at_once_of_one_client_keep_to_one_rule_whatever_their_programs() {
    let guests = "[[rule]]\nname = \"guests\"\nstreams = 4\nrate = \"50M\"\n\
                  bytes_per_client_per_day = \"20 MB\"\n";
    let gate = Gate::new(ServerLimits { tests: 20, ..ServerLimits::default() });
    gate.set_policy(Policy::from_toml(guests).expect("a policy"));
    let programs = [Program::Linerate, Program::Iperf3, Program::Nuttcp];
    let ask = |at: usize, host: IpAddr| -> Option<Permit> {
        let demand = Demand {
            planned: Some(Duration::from_secs(3)),
            rate_bps: Some(10_000_000),
            ways: 1,
            ..Demand::new(linerate_core::policy::TestKind::Tcp, 1)
        };
        let peer = SocketAddr::new(host, 1);
        match at % 4 {
            3 => gate.by_address().admit_test(&demand, peer).ok(),
            program => gate.for_client(programs[program], host).admit_test(&demand, peer).ok(),
        }
    };
    let host = IpAddr::from([192, 0, 2, 1]);
    let let_in: Vec<Permit> = (0..12).filter_map(|at| ask(at, host)).collect();
    // 10 Mbit/s for 3 s are 3.75 MB: 4 streams, 40 Mbit/s, 15 MB; the fifth would be a stream more.
    assert_eq!((let_in.len(), gate.running()), (4, 4));
    // Another host of the same network: a fifth 3.75 MB fit into 20 MB, a sixth do not.
    let near = IpAddr::from([192, 0, 2, 2]);
    let fifth = ask(0, near);
    assert!(fifth.is_some() && ask(1, near).is_none());
    drop(let_in);
    let again: Vec<Permit> = (0..12).filter_map(|at| ask(at, host)).collect();
    assert_eq!(again.len(), 4, "what was not used came back");
}
