//! The path emulator between two hosts in network namespaces: what the path is asked to be is what
//! their sockets see.
//!
//! Needs the privilege to make network namespaces and /dev/net/tun; says so and passes when they
//! are absent. Upper bounds of time are those of a busy machine; lower bounds are exact.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_core::path::{
    Bernoulli, Delay, Duplication, Element, Framing, Limit, MtuLimit, Outlet, Packet,
    PathLossCause, Pipeline, QueuedLink, Random, TailDrop,
};
use linerate_core::record::Fault;
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_engine::path::{
    EmulatedDirection, EmulatedEnd, Emulator, EmulatorPlan, EmulatorReport,
};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::netns::Netns;
use linerate_sys::tun::TunKind;
use linerate_sys::{clock, sysctl, userns};

/// No step of a test takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(20);
const ONE: &str = "10.9.0.1";
const TWO: &str = "10.9.0.2";
const TWO_IPV6: &str = "fd09::2";

/// Two hosts in namespaces of their own, without a link between them.
struct Hosts([Netns; 2]);

impl Hosts {
    fn new() -> Option<Self> {
        crate::turn::take();
        if !userns::may_make_networks() {
            println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed");
            return None;
        }
        if !Path::new("/dev/net/tun").exists() {
            println!("skipped: there is no /dev/net/tun");
            return None;
        }
        Some(Self([Netns::new().unwrap(), Netns::new().unwrap()]))
    }

    /// Runs `work` in a host.
    fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = || {
                self.0[host].enter().unwrap();
                work()
            };
            scope.spawn(inside).join().unwrap()
        })
    }

    fn ends(&self, mtu_bytes: u32) -> [EmulatedEnd<'_>; 2] {
        let end = |netns, name, [ipv4, ipv6]: [&str; 2]| EmulatedEnd {
            mtu_bytes,
            addresses: vec![
                (ipv4.parse::<IpAddr>().unwrap(), 24),
                (ipv6.parse::<IpAddr>().unwrap(), 64),
            ],
            ..EmulatedEnd::new(Some(netns), name)
        };
        [end(&self.0[0], "path0", [ONE, "fd09::1"]), end(&self.0[1], "path1", [TWO, TWO_IPV6])]
    }

    fn start(&self, mtu_bytes: u32, directions: [EmulatedDirection; 2]) -> Emulator {
        Emulator::start(EmulatorPlan::new(self.ends(mtu_bytes), directions)).unwrap()
    }

    /// A socket in each host: `one` knows where `two` is.
    fn datagrams(&self) -> (UdpSocket, UdpSocket) {
        let bind = |address: &str| {
            let socket = UdpSocket::bind((address, 7000)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        };
        let (one, two) = (self.on(0, || bind(ONE)), self.on(1, || bind(TWO)));
        one.connect((TWO, 7000)).unwrap();
        two.connect((ONE, 7000)).unwrap();
        (one, two)
    }

    /// Sends `bytes` by TCP from the first host to the second, checks every byte, and tells how
    /// long it took from the connection to the last byte.
    fn transfer(&self, bytes: usize) -> Duration {
        self.transfer_to(TWO, bytes)
    }

    fn transfer_to(&self, two: &str, bytes: usize) -> Duration {
        let listener = self.on(1, || TcpListener::bind((two, 0)).unwrap());
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| self.on(0, || send_pattern(address, bytes)));
            let (mut stream, _) = listener.accept().unwrap();
            let start = clock::monotonic();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            let took = clock::monotonic().duration_since(start);
            sender.join().unwrap();
            assert!(received == pattern(bytes), "{} bytes of {bytes}, or changed", received.len());
            took
        })
    }
}

fn send_pattern(address: SocketAddr, bytes: usize) {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&pattern(bytes)).unwrap();
}

/// Bytes in which no two places near each other are alike.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn direction(elements: Vec<Box<dyn Element>>) -> EmulatedDirection {
    EmulatedDirection {
        pipeline: Pipeline::new(elements),
        rate: Some(BitRate::from_bits_per_sec(1_000_000_000)),
        delay_max: Duration::from_millis(20),
        queue_bytes: 1_000_000,
        ..EmulatedDirection::default()
    }
}

fn delay(span: Duration) -> EmulatedDirection {
    direction(vec![Box::new(Delay::new(span))])
}

fn link(rate_bps: u64, queue_bytes: u64) -> Box<dyn Element> {
    let rate = BitRate::from_bits_per_sec(rate_bps);
    Box::new(QueuedLink::new(rate, Framing::ETHERNET, TailDrop::new(Limit::Bytes(queue_bytes))))
}

/// Everything that was taken was delivered or is accounted for.
fn assert_complete(report: &EmulatorReport) {
    assert_eq!(report.failure, None);
    for direction in &report.directions {
        let counters = &direction.counters;
        let known = counters.delivered_packets + counters.lost_packets();
        let waiting: u64 = counters.backlog.iter().map(|one| one.packets).sum();
        let all = counters.taken_packets + counters.copied_packets;
        assert!(all >= known, "{counters:?}");
        // Those on the lines are in no queue.
        assert!(all - known <= waiting + 2, "{counters:?}");
        assert_eq!((counters.no_room_packets, counters.orphaned_packets), (0, 0));
        assert_eq!(direction.lateness_ns.count(), counters.delivered_packets);
    }
}

#[test]
fn a_datagram_takes_the_delay_of_each_direction() {
    let Some(hosts) = Hosts::new() else { return };
    let [there, back] = [Duration::from_millis(10), Duration::from_millis(5)];
    let emulator = hosts.start(1500, [delay(there), delay(back)]);
    let (one, two) = hosts.datagrams();
    let mut shortest = PATIENCE;
    for _ in 0..20 {
        let start = clock::monotonic();
        one.send(b"there").unwrap();
        let mut buffer = [0; 16];
        let length = two.recv(&mut buffer).unwrap();
        assert!(clock::monotonic().duration_since(start) >= there);
        two.send(&buffer[..length]).unwrap();
        assert_eq!(one.recv(&mut buffer).unwrap(), 5);
        let took = clock::monotonic().duration_since(start);
        assert!(took >= there + back, "{took:?}");
        shortest = shortest.min(took);
    }
    // 15 ms and what the machine adds, to the least of twenty no second delay: a tenth of it on an
    // idle one.
    assert!(shortest < 2 * (there + back), "{shortest:?}");
    assert!(emulator.is_running());
    let report = emulator.stop();
    assert_complete(&report);
    assert!(report.directions[0].counters.delivered_packets >= 20);
}

#[test]
fn a_transfer_takes_the_time_of_the_line_and_arrives_unchanged() {
    let Some(hosts) = Hosts::new() else { return };
    let forward =
        direction(vec![link(80_000_000, 200_000), Box::new(Delay::new(Duration::from_millis(2)))]);
    let emulator = hosts.start(1500, [forward, delay(Duration::from_millis(2))]);
    let bytes = 4_000_000;
    let took = hosts.transfer(bytes);
    // 1448 bytes of payload in 1538 on the line: 4 MB are 2763 packets, 4,249,494 bytes, 0.425 s
    // at 80 Mbit/s; what left before the connection was accepted is less than a packet.
    assert!(took > Duration::from_millis(424), "{took:?}");
    // A busy machine makes it longer; at 1 Mbit/s it would be 34 s.
    assert!(took < Duration::from_secs(20), "{took:?}");
    let report = emulator.stop();
    assert_complete(&report);
    let counters = &report.directions[0].counters;
    assert!(counters.reads < counters.taken_packets, "no super-packets: {counters:?}");
    assert!(counters.delivered_bytes >= 4_000_000 + 2763 * 52);
}

#[test]
fn lost_segments_of_super_packets_are_sent_again_and_all_bytes_arrive() {
    let Some(hosts) = Hosts::new() else { return };
    let lossy = |stream| {
        let loss = Bernoulli::new(0.01, Random::new(1, stream));
        direction(vec![link(200_000_000, 500_000), Box::new(loss)])
    };
    let emulator = hosts.start(1500, [lossy(0), lossy(1)]);
    hosts.transfer(6_000_000);
    let report = emulator.stop();
    assert_complete(&report);
    // 4144 packets and more at 1 %: 41 lost, standard deviation 6.4; five of them below is 9.
    let lost = report.directions[0].counters.lost_to(PathLossCause::Random);
    assert!(lost > 9, "{lost}");
}

#[test]
fn an_empty_path_carries_super_packets_whole() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator = hosts.start(9000, [direction(Vec::new()), direction(Vec::new())]);
    hosts.transfer(50_000_000);
    let counters = emulator.counters();
    let report = emulator.stop();
    assert_complete(&report);
    let forward = &report.directions[0].counters;
    assert_eq!(forward.reads, forward.writes);
    assert!(forward.taken_packets > 2 * forward.reads, "{forward:?}");
    assert!(counters[0].taken_packets <= forward.taken_packets);
}

#[test]
fn ethernet_devices_and_both_protocols_go_through_a_line_that_cuts_super_packets() {
    let Some(hosts) = Hosts::new() else { return };
    for kind in [TunKind::Ip, TunKind::Ethernet] {
        let line = || direction(vec![link(500_000_000, 1_000_000)]);
        let mut plan = EmulatorPlan::new(hosts.ends(1500), [line(), line()]);
        for end in &mut plan.ends {
            end.kind = kind;
        }
        let emulator = Emulator::start(plan).unwrap();
        hosts.transfer(3_000_000);
        if sysctl::exists("net/ipv6/conf/all/forwarding") {
            hosts.transfer_to(TWO_IPV6, 3_000_000);
        }
        let report = emulator.stop();
        assert_complete(&report);
        let counters = &report.directions[0].counters;
        assert!(counters.reads < counters.taken_packets, "{kind:?}: {counters:?}");
        assert!(counters.writes > counters.reads, "nothing was cut: {kind:?}: {counters:?}");
    }
}

/// Damages every packet of more than 500 bytes.
struct Noise;

impl Element for Noise {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let corrupted = packet.ip_bytes > 500;
        out.forward(at, Packet { corrupted, ..packet });
    }
}

/// Keeps the emulator's thread from its work for 5 ms at every packet, as another program on its
/// processor would.
struct Hog;

impl Element for Hog {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        clock::sleep(Duration::from_millis(5));
        out.forward(at, packet);
    }
}

#[test]
fn a_path_held_back_by_other_work_says_for_how_long_and_is_invalid() {
    let Some(hosts) = Hosts::new() else { return };
    let late = || direction(vec![Box::new(Hog), Box::new(Delay::new(Duration::from_millis(1)))]);
    let mut emulator = hosts.start(1500, [late(), direction(Vec::new())]);
    let (one, two) = hosts.datagrams();
    let before = emulator.snapshot();
    for _ in 0..20 {
        one.send(b"there").unwrap();
        two.recv(&mut [0; 16]).unwrap();
    }
    let after = emulator.snapshot();
    let report = emulator.stop();
    assert_complete(&report);
    // 20 stops of 5 ms and what a sleep is late; other packets of the hosts have more.
    let stops = report.stops.within(report.ran);
    assert!(stops.count >= 20 && stops.total_ns >= 100_000_000, "{stops:?}");
    assert!(stops.longest_ns >= 5_000_000 && stops.share <= 1.0, "{stops:?}");
    let faults = report.faults();
    assert!(faults[0].starts_with("the emulator stalled for "), "{faults:?}");
    // It waits for the next packet in its turn, and is at work all the time.
    let busy = (after.busy - before.busy).as_secs_f64();
    assert!(busy >= 0.1 && report.busy >= after.busy, "{busy}");
    // What came before a measurement is not its own.
    let own = after.stops.difference_since(&before.stops).within(report.ran);
    assert!(own.count >= 20 && own.count <= stops.count, "{own:?}");
    assert_eq!(after.stops.difference_since(&after.stops).within(report.ran).count, 0);
}

/// Keeps the thread from its work for 80 ms at the first packet of more than 500 bytes.
struct HogOnce(bool);

impl Element for HogOnce {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if packet.ip_bytes > 500 && std::mem::replace(&mut self.0, false) {
            clock::sleep(Duration::from_millis(80));
        }
        out.forward(at, packet);
    }
}

#[test]
fn packets_that_wait_to_be_read_are_late() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator =
        hosts.start(1500, [direction(vec![Box::new(HogOnce(true))]), direction(Vec::new())]);
    let (one, two) = hosts.datagrams();
    let mut buffer = [0; 2000];
    one.send(b"neighbours know each other").unwrap();
    two.recv(&mut buffer).unwrap();
    one.send(&pattern(1000)).unwrap();
    for _ in 0..10 {
        one.send(b"it waits").unwrap();
    }
    for _ in 0..11 {
        two.recv(&mut buffer).unwrap();
    }
    let report = emulator.stop();
    assert_complete(&report);
    // Of the packets behind the long one all wait, but for the time that it took to send them.
    let forward = &report.directions[0];
    let bins = forward.lateness_ns.bin_counts().filter(|(lateness, _)| *lateness > 40_000_000);
    let late: u64 = bins.map(|(_, count)| count).sum();
    assert!(late >= 10, "{late} late: {:?}", forward.lateness_ns.quantile(0.5));
    assert!(forward.counters.late_packets >= 10, "{:?}", forward.counters);
    assert!(report.stops.within(report.ran).share <= 1.0);
}

#[test]
fn a_sleeping_emulator_that_wakes_late_has_stood_still() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator = hosts.start(1500, [direction(Vec::new()), direction(Vec::new())]);
    // Packets of another process: this one stands still.
    let mut ping = Command::new("ping");
    ping.args(["-q", "-i", "0.02", "-c", "50", TWO]).stdout(std::process::Stdio::null());
    let Ok(mut ping) = hosts.on(0, || ping.spawn()) else {
        println!("skipped: no program ping");
        return;
    };
    let me = std::process::id();
    let stop = format!("sleep 0.3; kill -STOP {me}; sleep 0.15; kill -CONT {me}");
    assert!(Command::new("sh").args(["-c", &stop]).status().unwrap().success());
    assert!(ping.wait().unwrap().success());
    let report = emulator.stop();
    let stops = report.stops.within(report.ran);
    // The first of a packet each 20 ms came at most that long after the begin of the stop, and as
    // much for a busy host.
    assert!(stops.longest_ns >= 100_000_000, "{stops:?}");
    assert!(report.directions[0].counters.late_packets >= 1, "{report:?}");
    assert!(!report.faults().is_empty(), "{stops:?}");
}

#[test]
fn a_damaged_packet_is_found_by_the_checksum_of_the_host() {
    let Some(hosts) = Hosts::new() else { return };
    let noise = direction(vec![Box::new(Noise)]);
    let emulator = hosts.start(1500, [noise, direction(Vec::new())]);
    let (one, two) = hosts.datagrams();
    for length in [1000, 1001, 1400] {
        one.send(&vec![7; length]).unwrap();
    }
    one.send(b"short").unwrap();
    let mut buffer = [0; 2000];
    assert_eq!(two.recv(&mut buffer).unwrap(), 5, "a damaged datagram was taken for good");
    let report = emulator.stop();
    assert_complete(&report);
    assert_eq!(report.directions[0].counters.corrupted_packets, 3);
}

#[test]
fn a_copy_that_leaves_after_its_original_has_its_bytes_too() {
    let Some(hosts) = Hosts::new() else { return };
    let twice = Duplication::new(1.0, Random::new(1, 0));
    let elements: Vec<Box<dyn Element>> = vec![Box::new(twice), link(1_000_000, 100_000)];
    let emulator = hosts.start(1500, [direction(elements), direction(Vec::new())]);
    let (one, two) = hosts.datagrams();
    let mut buffer = [0; 2000];
    for length in [100, 1400] {
        one.send(&pattern(length)).unwrap();
        for _ in 0..2 {
            let got = two.recv(&mut buffer).unwrap();
            assert!(buffer[..got] == pattern(length), "{got} bytes of {length}");
        }
    }
    let report = emulator.stop();
    assert_complete(&report);
    assert!(report.directions[0].counters.copied_packets >= 2);
}

/// A direction that carries 1300 bytes, and tells senders or does not.
fn narrow(told: bool) -> EmulatedDirection {
    let announced_mtu_bytes = told.then_some(1300);
    EmulatedDirection { announced_mtu_bytes, ..direction(vec![Box::new(MtuLimit::new(1300))]) }
}

#[test]
fn a_sender_of_packets_that_are_too_long_learns_the_mtu_of_the_path() {
    let Some(hosts) = Hosts::new() else { return };
    for kind in [TunKind::Ip, TunKind::Ethernet] {
        let mut plan = EmulatorPlan::new(hosts.ends(1500), [narrow(true), direction(Vec::new())]);
        for end in &mut plan.ends {
            end.kind = kind;
        }
        let emulator = Emulator::start(plan).unwrap();
        // Segments of 1448 bytes, until the first message.
        hosts.transfer(1_000_000);
        let counters = emulator.counters();
        assert!(counters[0].lost_to(PathLossCause::TooLong) > 0, "{kind:?}: {counters:?}");
        if sysctl::exists("net/ipv6/conf/all/forwarding") {
            hosts.transfer_to(TWO_IPV6, 1_000_000);
        }
        // 1272 bytes and 28 of headers pass, one more does not; Linux sets DF and keeps the MTU.
        let (one, two) = hosts.datagrams();
        assert_eq!(one.send(&pattern(1272)).unwrap(), 1272);
        assert_eq!(two.recv(&mut [0; 2000]).unwrap(), 1272);
        let report = emulator.stop();
        assert_complete(&report);
        let told = report.directions.each_ref().map(|one| one.counters.icmp_messages);
        let lost = report.directions[0].counters.lost_to(PathLossCause::TooLong);
        // One for each that was lost, of which a flow's first window is ten (RFC 6928): fewer than
        // may be sent at once.
        assert!(told == [lost, 0], "{kind:?}: {lost} lost, {told:?}");
    }
}

#[test]
fn ping_tells_what_the_path_told_it() {
    let Some(hosts) = Hosts::new() else { return };
    let directions = [narrow(true), direction(Vec::new())];
    let _emulator = hosts.start(1500, directions);
    let ping = |size: &str| {
        let mut command = Command::new("ping");
        command.args(["-M", "do", "-c", "1", "-W", "5", "-s", size, TWO]);
        hosts.on(0, || command.output())
    };
    let Ok(output) = ping("1273") else {
        println!("skipped: no program ping");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(2) {
        println!("skipped: ping: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Frag needed and DF set (mtu = 1300)"), "{text}");
    assert_eq!(ping("1272").unwrap().status.code(), Some(0));
}

#[test]
fn without_messages_a_transfer_never_gets_through_a_narrow_path() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator = hosts.start(1500, [narrow(false), direction(Vec::new())]);
    let listener = hosts.on(1, || TcpListener::bind((TWO, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    hosts.on(0, || {
        // The handshake is short; the first full segment is not.
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.write_all(&pattern(14_480)).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let error = peer.read(&mut [0; 100]).expect_err("a black hole");
        assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock), "{error}");
    });
    let report = emulator.stop();
    assert_complete(&report);
    let counters = &report.directions[0].counters;
    // Ten segments, and some of them again.
    assert!(counters.lost_to(PathLossCause::TooLong) >= 10, "{counters:?}");
    assert_eq!(counters.icmp_messages, 0);
}

#[test]
fn with_the_emulator_the_devices_go_and_nothing_passes() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator = hosts.start(1500, [direction(Vec::new()), direction(Vec::new())]);
    let links = |host| hosts.on(host, || RouteSocket::open().unwrap().list_links().unwrap().len());
    assert_eq!((links(0), links(1)), (2, 2));
    drop(emulator);
    assert_eq!((links(0), links(1)), (1, 1));
}

#[test]
fn a_vanished_interface_ends_the_path_with_a_line_that_names_it() {
    let Some(hosts) = Hosts::new() else { return };
    let emulator = hosts.start(1500, [direction(Vec::new()), direction(Vec::new())]);
    let delete = || Command::new("ip").args(["link", "delete", "path1"]).status();
    let Ok(status) = hosts.on(1, delete) else {
        println!("skipped: ip(8) is needed to delete a link");
        return;
    };
    assert!(status.success());
    let end = clock::monotonic() + PATIENCE;
    while emulator.is_running() && clock::monotonic() < end {
        clock::sleep(Duration::from_millis(1));
    }
    let report = emulator.stop();
    let failure = report.failure.as_ref().expect("it cannot go on").to_string();
    assert!(failure.starts_with("emulate path on path1: the interface vanished;"), "{failure}");
    assert_eq!(report.faults()[0], failure);
}

#[test]
fn a_name_that_is_taken_and_a_path_too_large_are_refused_before_anything_is_made() {
    let Some(hosts) = Hosts::new() else { return };
    let [mut one, mut two] = hosts.ends(1500);
    two.name = "lo".to_owned();
    let plain = || [direction(Vec::new()), direction(Vec::new())];
    let plan = EmulatorPlan::new([one.clone(), two.clone()], plain());
    let failure = Emulator::start(plan).expect_err("lo is there");
    assert_eq!(failure.fault, Fault::System);
    assert!(failure.to_string().starts_with("make tunnel device lo: "), "{failure}");
    two.name = "path1".to_owned();
    one.mtu_bytes = 20;
    let failure = Emulator::start(EmulatorPlan::new([one, two], plain())).expect_err("MTU 20");
    assert_eq!(failure.fault, Fault::Usage);
    let links = |host| hosts.on(host, || RouteSocket::open().unwrap().list_links().unwrap().len());
    assert_eq!((links(0), links(1)), (1, 1));
}
