//! Datagrams of forged sources to every UDP port of a server, garbage and beginnings of tests that
//! never go on: all clients that come meanwhile are served. How long it takes them is not judged.
#![cfg(feature = "datagrams")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::record::{
    Event, Failure, Finish, ServerPlan, TcpPlan, TcpTest, Tool, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf2::AddressValidation;
use linerate_engine::foreign::nuttcp::{NuttcpExtras, run_udp};
use linerate_engine::throughput;
use linerate_proto::echo::UdpProbe;
use linerate_proto::iperf2::{ClientHeader, Iperf2Amount, Mode, UdpSender};
use linerate_proto::nuttcp::NuttcpInterval;
use linerate_proto::stamp::ReflectorOptions;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

use crate::peers::{self, HERE};
use crate::web_datagrams;

/// Sources that garbage comes from.
const SOURCES: u8 = 50;
/// How often the sender of garbage catches up with its rate.
const TURN: Duration = Duration::from_millis(10);

/// A server whose UDP ports are these; nobody's address is taken for true, not even the host's own.
fn with_server(test: impl FnOnce(&Ports)) {
    let foreign = [Via::Iperf3, Via::Iperf2, Via::Nuttcp].map(|via| (via, 0)).to_vec();
    let local = SocketAddr::new(HERE, 0);
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::These(foreign) };
    let mut server = MeasurementServer::bind(&options).expect("free ports");
    server.reflect_stamp(0, ReflectorOptions::default()).expect("a free port");
    server.trust_udp(AddressValidation::nobody());
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    server.serve_web(WebOptions { page: false, store: None, tool, origins: Vec::new() });
    let ports = Ports {
        own: server.local_addr().expect("bound").port(),
        stamp: server.stamp_port().expect("bound"),
        quic: server.serve_datagrams(0).expect("a free port").expect("HTTP is answered"),
        nuttcp_data: peers::free_port(),
        others: server.foreign().collect(),
    };
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(&ports));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

struct Ports {
    own: u16,
    stamp: u16,
    /// Of WebTransport.
    quic: u16,
    /// Where a client of nuttcp sends its data: one that the server opens for that alone.
    nuttcp_data: u16,
    others: Vec<(Via, u16)>,
}

impl Ports {
    fn of(&self, via: Via) -> u16 {
        self.others.iter().find(|(spoken, _)| *spoken == via).expect("it is answered").1
    }

    /// nuttcp's data goes to the port that its client names, here that of iperf 2, too.
    fn udp(&self) -> [u16; 6] {
        let others = [self.of(Via::Iperf3), self.of(Via::Iperf2)];
        [self.own, self.stamp, self.quic, self.nuttcp_data, others[0], others[1]]
    }
}

/// What forged sources send: the 5 and 16 bytes that closed a server once, zeros and noise of other
/// sizes, the marks of ttcp and nuttcp, each port's own question, first datagrams of iperf 2 in
/// each mode, and first packets of QUIC.
fn garbage() -> Vec<Vec<u8>> {
    let noise = |length: usize| (0..length).map(|at| (at * 167 + 13) as u8).collect::<Vec<u8>>();
    let zeros = [1, 4, 5, 16, 44].map(|length| vec![0; length]);
    let question = UdpProbe::new(64, 7).expect("long enough").request(1, 1).to_vec();
    let openings = [Mode::Forward, Mode::Reverse, Mode::FullDuplex, Mode::Dual].map(|mode| {
        let header = ClientHeader::new(mode, Iperf2Amount::Centiseconds(6_000));
        let mut sender = UdpSender::new(header);
        let mut datagram = sender.buffer(1470);
        sender.stamp_datagram(&mut datagram, 1_700_000_000_000_000);
        datagram
    });
    let all = zeros.into_iter().chain([5, 12, 44, 100, 1470].map(noise)).chain(openings);
    let marks = [" !\"#", "9876", "BOD0", "BOD1", "EOD0"].map(|mark| mark.as_bytes().to_vec());
    all.chain([question]).chain(marks).chain((0..3).map(|_| first_of_quic())).collect()
}

/// The first packet of a session of WebTransport, which is sent to nobody.
fn first_of_quic() -> Vec<u8> {
    let silent = UdpSocket::bind((HERE, 0)).expect("a free port");
    silent.set_nonblocking(true).expect("a socket");
    let port = silent.local_addr().expect("bound").port();
    let mut packet = vec![0; 2048];
    let mut found = None;
    web_datagrams::in_a_runtime(async {
        let mut connecting = std::pin::pin!(web_datagrams::connect([0; 32], port, "/"));
        while found.is_none() {
            let turn = tokio::time::timeout(TURN, &mut connecting).await;
            assert!(turn.is_err(), "nobody answers");
            found = silent.recv(&mut packet).ok();
        }
    });
    packet.truncate(found.expect("it was sent"));
    packet
}

/// Sends so many datagrams a second to each port until it is to stop; late ones are made up for.
fn flood((ports, per_second): (&[u16], u64), stop: &Stop, sent: &AtomicU64) {
    let sources: Vec<UdpSocket> = (0..SOURCES)
        .map(|host| UdpSocket::bind((Ipv4Addr::new(127, 9, 9, host), 0)).expect("a free port"))
        .collect();
    let kinds = garbage();
    let begin = monotonic();
    let mut count = 0;
    while !stop.is_requested() {
        let due = monotonic().nanos_since(begin) * per_second / 1_000_000_000;
        // The first goes at once.
        while count <= due && !stop.is_requested() {
            let at = usize::try_from(count).expect("it is short");
            // Each kind from each source: their numbers have no common divisor.
            let (source, kind) = (&sources[at % sources.len()], &kinds[at % kinds.len()]);
            for port in ports {
                // A full queue drops it, as a network would.
                let _ = source.send_to(kind, (HERE, *port));
            }
            count += 1;
            sent.store(count, Ordering::Relaxed);
        }
        sleep(TURN);
    }
}

fn of_tcp(via: Option<Via>, port: u16) -> Option<Failure> {
    let plan = TcpPlan {
        server: ServerPlan::new(via, HERE.to_string(), port),
        test: TcpTest { finish: Finish::Bytes(100_000), ..TcpTest::default() },
        ..TcpPlan::default()
    };
    peers::measure(&plan).0.failure
}

fn plan_of_udp(via: Option<Via>, port: u16) -> UdpPlan {
    UdpPlan {
        server: ServerPlan::new(via, HERE.to_string(), port),
        test: UdpTest {
            finish: Finish::Buffers(50),
            size_bytes: Some(1000),
            pace: Some(BitRate::from_bits_per_sec(10_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

fn of_udp(via: Option<Via>, port: u16) -> Option<Failure> {
    let plan = plan_of_udp(via, port);
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut watch = |_: &Event| {};
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    throughput::run_udp(&plan, &mut context).failure
}

fn of_nuttcp(port: u16, data_port: u16) -> Option<Failure> {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let (mut watch, mut told) = (|_: &Event| {}, |_: &NuttcpInterval, _: &str| {});
    let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
    let extras =
        NuttcpExtras { data_port: Some(data_port), ..NuttcpExtras::without_options(&mut told) };
    run_udp(&plan_of_udp(Some(Via::Nuttcp), port), extras, &mut context).0.failure
}

/// A session of WebTransport, which is what a page needs for its datagrams.
fn of_page(ports: &Ports) -> Option<String> {
    let run = web_datagrams::at_rest(SocketAddr::new(HERE, ports.own));
    let mut failure = None;
    web_datagrams::in_a_runtime(async {
        let path = web_datagrams::path(&run);
        failure = web_datagrams::session(&run, ports.quic, &path).await.err();
    });
    failure
}

/// An answer to one of 20 questions: some may find no room beside the garbage.
fn of_answer(port: u16, question: &[u8]) -> bool {
    let socket = UdpSocket::bind((HERE, 0)).expect("a free port");
    socket.connect((HERE, port)).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a time");
    (0..20).any(|_| socket.send(question).is_ok() && socket.recv(&mut [0; 2048]).is_ok())
}

/// The clients of every protocol, one after another; those that were not served.
fn unserved(ports: &Ports) -> Vec<String> {
    let mut failed = Vec::new();
    let mut note = |name: &str, failure: Option<Failure>| {
        failed.extend(failure.map(|failure| format!("{name}: {failure}")));
    };
    note("linerate tcp", of_tcp(None, ports.own));
    note("linerate udp", of_udp(None, ports.own));
    for via in [Via::Iperf3, Via::Iperf2, Via::Nuttcp] {
        note(&format!("{} tcp", via.name()), of_tcp(Some(via), ports.of(via)));
    }
    note("iperf3 udp", of_udp(Some(Via::Iperf3), ports.of(Via::Iperf3)));
    note("iperf2 udp", of_udp(Some(Via::Iperf2), ports.of(Via::Iperf2)));
    for data_port in [ports.nuttcp_data, ports.of(Via::Iperf2)] {
        note(&format!("nuttcp udp to {data_port}"), of_nuttcp(ports.of(Via::Nuttcp), data_port));
    }
    failed.extend(of_page(ports).map(|failure| format!("page: {failure}")));
    let question = UdpProbe::new(64, 7).expect("long enough").request(1, 1).to_vec();
    for (name, port, question) in
        [("echo", ports.own, question), ("stamp", ports.stamp, vec![0; 44])]
    {
        if !of_answer(port, &question) {
            failed.push(format!("{name}: no answer"));
        }
    }
    failed
}

#[test]
fn garbage_of_any_rate_to_every_udp_port_keeps_no_client_out() {
    for per_second in [1, 100, 10_000] {
        with_server(|ports| {
            let (stop, sent) = (Stop::new(), AtomicU64::new(0));
            let udp = ports.udp();
            std::thread::scope(|scope| {
                let garbage = scope.spawn(|| flood((&udp, per_second), &stop, &sent));
                while sent.load(Ordering::Relaxed) == 0 {
                    sleep(TURN);
                }
                let failed = unserved(ports);
                stop.request_stop();
                garbage.join().expect("it only sends");
                let sent = sent.load(Ordering::Relaxed);
                assert!(failed.is_empty(), "{per_second}/s, {sent} sent: {failed:#?}");
            });
        });
    }
}

/// A test that goes on as one of iperf 2 does, with a forged source, is let in: it can be told from
/// a true one by nobody. Whoever proves an address has its place at once.
#[test]
fn a_forged_test_gives_way_to_every_client_that_proves_its_address() {
    with_server(|ports| {
        let stop = Stop::new();
        let udp = ports.of(Via::Iperf2);
        let begin = |host: u8| {
            let source = UdpSocket::bind((IpAddr::from([127, 9, 8, host]), 0)).expect("free");
            source.connect((HERE, udp)).expect("loopback");
            let header = ClientHeader::new(Mode::Forward, Iperf2Amount::Centiseconds(6_000));
            (source, UdpSender::new(header))
        };
        std::thread::scope(|scope| {
            let forging = scope.spawn(|| {
                let mut forged: Vec<_> = (1..=4).map(begin).collect();
                let mut datagram = forged[0].1.buffer(200);
                let mut us = 1_700_000_000_000_000;
                while !stop.is_requested() {
                    for (source, sender) in &mut forged {
                        us += 1;
                        sender.stamp_datagram(&mut datagram, us);
                        let _ = source.send(&datagram);
                    }
                    sleep(Duration::from_millis(2));
                }
            });
            let mut failed = Vec::new();
            for _ in 0..4 {
                // One of them has the place by then, or will while the client is served.
                sleep(Duration::from_millis(100));
                failed.extend(of_tcp(None, ports.own));
                for via in [Via::Iperf3, Via::Iperf2, Via::Nuttcp] {
                    failed.extend(of_tcp(Some(via), ports.of(via)));
                }
            }
            stop.request_stop();
            forging.join().expect("it only sends");
            assert!(failed.is_empty(), "{failed:#?}");
        });
    });
}
