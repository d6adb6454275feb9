//! What an address that proved nothing gets over UDP, whose sources anybody can forge: bytes out
//! per byte in, port by port, and nothing at all outside the policy.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_core::policy::Policy;
use linerate_core::record::Via;
use linerate_proto::echo::UdpProbe;
use linerate_proto::stamp::ReflectorOptions;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;

/// Answers come at once over loopback; after this silence none is to come.
const SILENCE: Duration = Duration::from_millis(400);
/// Datagrams of one kind.
const COUNT: usize = 20;

/// Where a server answers UDP.
struct Ports {
    own: SocketAddr,
    stamp: SocketAddr,
    others: Vec<(Via, SocketAddr)>,
}

fn with_server(policy: Option<&str>, test: impl FnOnce(&Ports)) {
    let foreign = [Via::Iperf3, Via::Iperf2, Via::Nuttcp].map(|via| (via, 0)).to_vec();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::These(foreign) };
    let mut server = MeasurementServer::bind(&options).expect("free ports");
    server.reflect_stamp(0, ReflectorOptions::default()).expect("a free port");
    if let Some(policy) = policy {
        server.set_policy(Policy::from_toml(policy).expect("a policy"));
    }
    let at = |port| SocketAddr::new(local.ip(), port);
    let ports = Ports {
        own: server.local_addr().expect("bound"),
        stamp: at(server.stamp_port().expect("bound")),
        others: server.foreign().map(|(via, port)| (via, at(port))).collect(),
    };
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(&ports));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Bytes of UDP payload that come back for datagrams sent from an address.
fn bytes_back(from: [u8; 4], to: SocketAddr, datagram: &[u8]) -> usize {
    let socket = UdpSocket::bind((IpAddr::from(from), 0)).expect("a free port");
    socket.set_read_timeout(Some(SILENCE)).expect("a time");
    for _ in 0..COUNT {
        // A port that nobody holds answers by ICMP, which the next call tells.
        let _ = socket.send_to(datagram, to);
    }
    let mut back = 0;
    let mut bytes = [0; 65_536];
    while let Ok((count, _)) = socket.recv_from(&mut bytes) {
        back += count;
    }
    back
}

fn echo_question(bytes: usize) -> Vec<u8> {
    UdpProbe::new(bytes, 7).expect("long enough").request(1, 1).to_vec()
}

/// What forged sources would send: zeros and noise of many sizes, and each port's own questions.
fn datagrams() -> Vec<Vec<u8>> {
    let noise = |length: usize| (0..length).map(|at| (at * 167 + 13) as u8).collect::<Vec<u8>>();
    let sizes = [1, 4, 12, 44, 100, 1470];
    let zeros = sizes.iter().map(|length| vec![0; *length]);
    zeros.chain(sizes.map(noise)).chain([echo_question(16), echo_question(1400)]).collect()
}

#[test]
fn nothing_that_is_sent_without_proof_comes_back_larger() {
    with_server(None, |ports| {
        let others = ports.others.iter().map(|(via, at)| (via.name(), *at));
        for (name, to) in others.chain([("linerate", ports.own)]) {
            for datagram in datagrams() {
                let back = bytes_back([127, 0, 0, 1], to, &datagram);
                let sent = COUNT * datagram.len();
                println!("{name}: {sent} bytes in, {back} out");
                assert!(back <= sent, "{name}: {back} bytes for {sent}: {datagram:?}");
            }
        }
        let echoed = bytes_back([127, 0, 0, 1], ports.own, &echo_question(1400));
        assert_eq!(echoed, COUNT * 1400, "it does answer what it is for");
    });
}

#[test]
fn stamp_answers_as_much_as_it_was_asked_and_what_is_too_short_for_that_not_at_all() {
    with_server(None, |ports| {
        for length in [41, 43, 44, 100, 1400] {
            let back = bytes_back([127, 0, 0, 1], ports.stamp, &vec![0; length]);
            assert_eq!(back, COUNT * length, "{length} bytes");
        }
        // RFC 8762 §4.6 would have 44 bytes for 14.
        for length in [1, 13, 14, 40] {
            assert_eq!(bytes_back([127, 0, 0, 1], ports.stamp, &vec![0; length]), 0, "{length}");
        }
    });
}

#[test]
fn a_source_outside_the_policy_gets_no_answer_over_udp() {
    let policy = "[[rule]]\nname = \"ours\"\nfrom = [\"127.0.7.0/24\"]\n";
    with_server(Some(policy), |ports| {
        for (to, datagram) in [(ports.own, echo_question(100)), (ports.stamp, vec![0; 100])] {
            assert_eq!(bytes_back([127, 0, 7, 1], to, &datagram), COUNT * 100, "{to}");
            assert_eq!(bytes_back([127, 0, 8, 1], to, &datagram), 0, "{to}");
        }
    });
}
