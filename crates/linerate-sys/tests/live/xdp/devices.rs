//! Devices between generator and counter: what they do to frames, and that no count is lost.

use std::net::Ipv4Addr;
use std::time::Duration;

use linerate_core::device::{FrameLoad, FramePace, ReceiveCounts, SendCounts, WhenLate};
use linerate_sys::bpf::{AttachMode, XdpLink};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{
    Generator, GeneratorOptions, PlantedDevice, PlantedOptions, Router, Sink, SinkExpected,
    SinkOptions, Stall, StreamExpected, Wire, hold_napi,
};
use linerate_sys::{clock, sysctl};

use super::bench::{
    FAR, FAR_ADDR, LEFT, LEFT_ADDR, NEAR, NEAR_ADDR, Path, RIGHT, RIGHT_ADDR, inside, wait_for,
};
use super::frames::{TRIAL, ipv4_udp, varied};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A generator and a counter with room for a device between them.
struct Test {
    path: Path,
    generator: Generator,
    sink: Sink,
    _napi: Vec<XdpLink>,
}

impl Test {
    fn new(mac: impl FnOnce(&Path) -> [u8; 6]) -> Option<Self> {
        let path = Path::new()?;
        let napi = vec![inside(&path.near, || hold_napi(NEAR).expect("a program"))];
        let template = varied(ipv4_udp(60, mac(&path)), 35, false);
        let mut options = GeneratorOptions::new(NEAR, 0, TRIAL, vec![template]);
        // One by one, so that the same few buffers are used again and again.
        options.batch = Some(1);
        let generator = inside(&path.near, || Generator::open(options).expect("a generator"));
        let sink =
            inside(&path.far, || Sink::attach(FAR, SinkOptions::default()).expect("a counter"));
        Some(Self { path, generator, sink, _napi: napi })
    }

    fn device<T: Send>(&self, make: impl FnOnce() -> T + Send) -> T {
        inside(&self.path.device, make)
    }

    fn begin(&mut self, frames: u64) {
        self.generator.begin_trial(TRIAL);
        let streams = vec![StreamExpected { stream: 0, frames }];
        let trial =
            SinkExpected { trial: TRIAL, streams, own_streams: vec![], shortest: 60, longest: 60 };
        self.sink.begin_trial(&trial).expect("a trial");
    }

    fn send(&mut self, frames: u64, pace: FramePace) -> SendCounts {
        let when_late = WhenLate::KeepSchedule;
        let load = FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] };
        self.generator.run(&load, &Stop::new()).expect("sent")
    }

    fn received(&self) -> ReceiveCounts {
        self.sink.read().streams[0].1.clone()
    }
}

/// Addresses, routes and forwarding for a router in the middle.
fn make_router(path: &Path) {
    let address = |netns: &Netns, index, address: Ipv4Addr| {
        inside(netns, || {
            let mut socket = RouteSocket::open().expect("netlink");
            socket.add_address(index, address.into(), 24).expect("an address");
        });
    };
    address(&path.near, NEAR, NEAR_ADDR);
    address(&path.device, LEFT, LEFT_ADDR);
    address(&path.device, RIGHT, RIGHT_ADDR);
    address(&path.far, FAR, FAR_ADDR);
    inside(&path.device, || {
        sysctl::write("net/ipv4/ip_forward", "1").expect("a namespace of one's own");
        let mut socket = RouteSocket::open().expect("netlink");
        let [networks, gateways] =
            [[[198, 18], [198, 19]].map(|[a, b]| Ipv4Addr::new(a, b, 0, 0)), [NEAR_ADDR, FAR_ADDR]];
        for (network, gateway) in networks.into_iter().zip(gateways) {
            socket.add_route(network.into(), 16, gateway.into()).expect("a route");
        }
    });
}

/// The hardware address of `left`: that of its EUI-64 link-local address (RFC 4291 appendix A).
fn mac_of_left(path: &Path) -> [u8; 6] {
    inside(&path.device, || {
        sysctl::write("net/ipv6/conf/left/disable_ipv6", "0").expect("a namespace of one's own");
        let mut mac = None;
        wait_for("a link-local address", || {
            let text = std::fs::read_to_string("/proc/thread-self/net/if_inet6").expect("IPv6");
            let line = text.lines().find(|it| it.ends_with(" left") && it.starts_with("fe80"));
            let id = line.and_then(|it| u64::from_str_radix(&it[16..32], 16).ok());
            mac = id.map(u64::to_be_bytes).map(|it| [it[0] ^ 2, it[1], it[2], it[5], it[6], it[7]]);
            mac.is_some()
        });
        mac.expect("found")
    })
}

/// Rounds through a router that writes another hop count and other addresses into each frame:
/// were a frame used again as it is, the router would not take it, or its hop count would end.
fn check_rewriting(test: &mut Test) {
    test.begin(2000);
    // The first frames may wait until neighbours are known.
    test.send(1, FramePace::Flood);
    wait_for("the first frame", || test.sink.frames() == 1);
    for round in 1..=8 {
        let sent = test.send(200, FramePace::Flood);
        assert_eq!((sent.frames, sent.refused), (200, 0));
        wait_for("a round", || test.sink.frames() == 1 + 200 * round);
    }
    let received = test.received();
    assert_eq!((received.duplicates, received.wrong_length), (Some(0), 0));
}

#[test]
fn frames_are_right_again_after_a_router_of_the_kernel() {
    let Some(mut test) = Test::new(mac_of_left) else { return };
    make_router(&test.path);
    let _napi = [LEFT, RIGHT].map(|port| test.device(|| hold_napi(port).expect("a program")));
    check_rewriting(&mut test);
}

#[test]
fn frames_are_right_again_after_a_router_in_xdp() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    make_router(&test.path);
    let router = test.device(|| Router::attach(&[LEFT, RIGHT], AttachMode::Native));
    let router = router.expect("a router");
    assert!(router.is_native());
    // Until the kernel knows its neighbour it gets the frames, which are not to its address.
    test.device(|| {
        let socket = std::net::UdpSocket::bind((RIGHT_ADDR, 0)).expect("a socket");
        socket.send_to(b"who has", (FAR_ADDR, 9)).expect("a route");
    });
    wait_for("an answer", || {
        test.begin(1);
        test.send(1, FramePace::Flood);
        clock::sleep(Duration::from_millis(10));
        test.sink.frames() == 1
    });
    let before = router.counts();
    check_rewriting(&mut test);
    let after = router.counts();
    assert_eq!(after.forwarded - before.forwarded, 1601);
    assert_eq!(after.frames_in, after.forwarded + after.passed);
}

#[test]
fn copies_of_a_broken_wire_are_counted_as_copies() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    let wire = test.device(|| Wire::doubling(LEFT, RIGHT, AttachMode::Native)).expect("a wire");
    let _napi = test.device(|| hold_napi(RIGHT)).expect("a program");
    test.begin(500);
    for round in 1..=5 {
        test.send(100, FramePace::Flood);
        wait_for("copies", || test.received().duplicates == Some(100 * round));
    }
    let received = test.received();
    assert_eq!((received.frames, received.bytes, wire.frames()), (500, 500 * 60, 500));
}

/// A planted device, with NAPI at its other port.
fn plant(test: &Test, options: PlantedOptions) -> (PlantedDevice, XdpLink) {
    test.device(|| {
        let device = PlantedDevice::attach(LEFT, RIGHT, options).expect("a device");
        (device, hold_napi(RIGHT).expect("a program"))
    })
}

#[test]
fn a_full_buffer_drops_exactly_what_has_no_place() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    for buffer_frames in [1, 50, 64] {
        // A frame of 60 bytes takes a minute.
        let options =
            PlantedOptions { bytes_per_sec: Some(1), buffer_frames, ..PlantedOptions::default() };
        let (device, _napi) = plant(&test, options);
        test.begin(200);
        device.begin_trials(TRIAL);
        test.send(200, FramePace::Flood);
        wait_for("frames through", || device.counts().frames_in == 200);
        let counts = device.counts();
        assert_eq!(counts.forwarded, u64::from(buffer_frames));
        assert_eq!(counts.dropped_by_queue, 200 - counts.forwarded);
        wait_for("frames", || test.sink.frames() == counts.forwarded);
        // The last one waits for those before it, less the time since the first came.
        let longest = Duration::from_secs(60) * (buffer_frames - 1);
        assert!(counts.waited_max <= longest);
        assert!(counts.waited_max + Duration::from_secs(60) > longest);
    }
}

#[test]
fn loss_by_chance_is_as_planted_and_the_same_again() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    let options = PlantedOptions { loss_one_in: Some(10), seed: 42, ..PlantedOptions::default() };
    let (device, _napi) = plant(&test, options);
    let mut dropped = Vec::new();
    for _ in 0..2 {
        test.begin(4000);
        device.begin_trials(TRIAL);
        for round in 1..=20 {
            test.send(200, FramePace::Flood);
            wait_for("a round", || device.counts().frames_in == 200 * round);
            wait_for("its frames", || test.sink.frames() == device.counts().forwarded);
        }
        let counts = device.counts();
        assert_eq!(counts.forwarded + counts.dropped_by_chance, 4000);
        dropped.push(counts.dropped_by_chance);
    }
    // 400 expected, standard deviation sqrt(4000 x 0.1 x 0.9) = 19; five of them.
    assert!((305..=495).contains(&dropped[0]), "{dropped:?}");
    assert_eq!(dropped[0], dropped[1]);
}

#[test]
fn in_a_stall_frames_wait_while_there_is_room() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    // From one millisecond after the beginning on nothing is served for an hour.
    let hour = Duration::from_secs(3600);
    let stall = Stall { every: hour, length: hour - Duration::from_millis(1) };
    let options =
        PlantedOptions { buffer_frames: 64, stall: Some(stall), ..PlantedOptions::default() };
    let (device, _napi) = plant(&test, options);
    test.begin(200);
    device.begin_trials(TRIAL);
    clock::sleep(Duration::from_millis(2));
    test.send(200, FramePace::Flood);
    wait_for("frames through", || device.counts().frames_in == 200);
    let counts = device.counts();
    assert_eq!((counts.forwarded, counts.dropped_in_stall), (64, 136));
    assert!(counts.waited_max > Duration::from_secs(3500) && counts.waited_max < hour);
}

#[test]
fn no_more_than_the_planted_capacity_gets_through() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    let options = PlantedOptions {
        frames_per_sec: Some(20_000),
        buffer_frames: 64,
        ..PlantedOptions::default()
    };
    let (device, _napi) = plant(&test, options);
    test.begin(10_000);
    device.begin_trials(TRIAL);
    let start = clock::monotonic();
    let sent = test.send(10_000, FramePace::Rate { frames_per_sec: 100_000 });
    wait_for("frames through", || device.counts().frames_in == sent.frames);
    let took = clock::monotonic().duration_since(start).as_secs_f64();
    let counts = device.counts();
    assert_eq!(counts.frames_in, counts.forwarded + counts.dropped_by_queue);
    assert!(counts.forwarded as f64 <= took * 20_000.0 + 65.0, "{counts:?} in {took} s");
    assert!(counts.forwarded >= 64, "{counts:?}");
    wait_for("what got through", || test.sink.frames() == counts.forwarded);
    // 63 frames before it at most, of 50 us each.
    assert!(counts.waited_max <= Duration::from_micros(63 * 50), "{counts:?}");
}

#[test]
fn planted_latency_is_seen_by_the_counter() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    let fixed = Duration::from_millis(700);
    // A frame is served in 100 ms.
    let options = PlantedOptions {
        frames_per_sec: Some(10),
        buffer_frames: 256,
        latency: fixed,
        store_and_forward: true,
        ..PlantedOptions::default()
    };
    for (store_and_forward, service_ms) in [(true, 100), (false, 0)] {
        let (device, _napi) = plant(&test, PlantedOptions { store_and_forward, ..options });
        test.begin(20);
        device.begin_trials(TRIAL);
        test.send(20, FramePace::Flood);
        wait_for("frames", || test.sink.frames() == 20);
        let latency = test.received().latency;
        let waited = device.counts().waited_max;
        let shortest = fixed + Duration::from_millis(service_ms);
        assert!(u128::from(latency.min_ns) >= shortest.as_nanos(), "{latency:?}");
        let longest = u128::from(latency.max_ns);
        assert!(longest >= (shortest + waited).as_nanos(), "{waited:?}");
        // On an idle machine the rest is microseconds; no machine takes ten seconds.
        assert!(longest < (shortest + waited + Duration::from_secs(10)).as_nanos());
    }
}

#[test]
fn frames_of_others_go_through_a_planted_device_untouched() {
    let Some(mut test) = Test::new(|_| MAC) else { return };
    let options = PlantedOptions {
        loss_one_in: Some(1),
        latency: Duration::from_secs(1),
        ..PlantedOptions::default()
    };
    let (device, _napi) = plant(&test, options);
    device.begin_trials(TRIAL ^ 0x8000_0000);
    test.begin(100);
    test.send(100, FramePace::Flood);
    wait_for("all frames", || test.sink.frames() == 100);
    let counts = device.counts();
    assert_eq!((counts.frames_in, counts.others), (0, 100));
    device.begin_trials(TRIAL);
    test.send(100, FramePace::Flood);
    wait_for("none of them", || device.counts().dropped_by_chance == 100);
    assert_eq!(test.sink.frames(), 100);
}
