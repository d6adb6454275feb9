//! The counter, with frames that are sent one by one.

use std::net::UdpSocket;

use linerate_core::device::{ForeignFrames, Signature};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::xdp::{Sink, SinkExpected, SinkOptions, StreamExpected, hold_napi};
use linerate_sys::{bpf::XdpLink, clock};

use super::bench::{Cable, FAR, FAR_ADDR, Injector, NEAR, NEAR_ADDR, inside, wait_for};
use super::frames::{TRIAL, signed};

/// A counter at the far end, what sends to it, and what keeps the near end awake.
fn counter(cable: &Cable, arrival_log: usize) -> (Sink, Injector, XdpLink) {
    let napi = inside(&cable.near, || hold_napi(NEAR).expect("a program on a veth"));
    let options = SinkOptions { arrival_log, ..SinkOptions::default() };
    let sink = inside(&cable.far, || Sink::attach(FAR, options).expect("a counter"));
    (sink, Injector::new(&cable.near, NEAR), napi)
}

fn expected(trial: u32, streams: &[(u8, u64)]) -> SinkExpected {
    let streams =
        streams.iter().map(|(stream, frames)| StreamExpected { stream: *stream, frames: *frames });
    SinkExpected {
        trial,
        streams: streams.collect(),
        own_streams: vec![1],
        shortest: 60,
        longest: 64,
    }
}

fn foreign_frames(foreign: ForeignFrames) -> u64 {
    let ForeignFrames { arp, neighbour_discovery, link_control, pause, other_trial, own, other } =
        foreign;
    arp + neighbour_discovery + link_control + pause + other_trial + own + other
}

#[test]
fn numbers_copies_order_and_lengths_are_told_apart() {
    let Some(cable) = Cable::new(1500) else { return };
    let (mut sink, injector, _napi) = counter(&cable, 8);
    sink.begin_trial(&expected(TRIAL, &[(3, 10), (0, 4)])).expect("a trial");
    let before = clock::monotonic().as_nanos();
    // 3 is missing when 4 comes, and is late; 6 and 7 never come; 4 comes twice.
    for number in [0, 1, 2, 4, 3, 5, 4, 8] {
        injector.send(&signed(TRIAL, 3, number, 60));
    }
    injector.send(&signed(TRIAL, 0, 0, 64));
    injector.send(&signed(TRIAL, 0, 1, 68));
    injector.send(&signed(TRIAL, 0, 2, 56));
    wait_for("ten different frames", || sink.frames() == 10);
    let report = sink.read();
    assert_eq!(report.streams.iter().map(|it| it.0).collect::<Vec<_>>(), [3, 0]);
    let [third, first] = [&report.streams[0].1, &report.streams[1].1];
    assert_eq!((third.frames, third.bytes, third.duplicates), (7, 7 * 60, Some(1)));
    // Runs before 4 (one frame) and before 8 (two frames).
    assert_eq!((third.reordered, third.loss_runs, third.longest_loss_run), (1, 2, 2));
    assert_eq!((third.wrong_length, first.wrong_length), (0, 2));
    assert_eq!((first.frames, first.bytes), (3, 64 + 68 + 56));
    assert_eq!((third.gap.bins.count(), third.latency.bins.count()), (6, 7));
    assert!(before < third.first_ns && third.first_ns < third.last_ns);
    assert_eq!(third.gap.sum_ns, third.last_ns - third.first_ns);
    let arrivals = sink.arrivals(3);
    let known: Vec<_> = arrivals.iter().map(Option::is_some).collect();
    // The log has eight places.
    assert_eq!(known, [true, true, true, true, true, true, false, false]);
    assert_eq!(arrivals[0], Some(third.first_ns));
    assert!(arrivals[3] > arrivals[4]);
    assert_eq!(sink.arrivals(7), []);
    // Of stream 0 there are four numbers.
    injector.send(&signed(TRIAL, 0, 4, 60));
    wait_for("one more", || sink.frames() == 11);
    assert_eq!(sink.read().streams[1].1.duplicates, None);
    assert_eq!(foreign_frames(sink.read().foreign), 0);
}

#[test]
fn foreign_frames_are_told_apart() {
    let Some(cable) = Cable::new(1500) else { return };
    let (mut sink, injector, _napi) = counter(&cable, 0);
    sink.begin_trial(&expected(0x7777_0001, &[(0, 4)])).expect("a trial of another process");
    sink.begin_trial(&expected(TRIAL, &[(0, 4)])).expect("a trial");
    let typed = |ether_type: u16, length: usize| {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
        frame
    };
    let to = |mut frame: Vec<u8>, last: u8| {
        frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, last]);
        frame
    };
    let icmpv6 = |hop_by_hop: bool, kind: u8| {
        let mut frame = typed(0x86dd, 90);
        frame[20] = if hop_by_hop { 0 } else { 58 };
        frame[54] = if hop_by_hop { 58 } else { kind };
        frame[62] = if hop_by_hop { kind } else { 0 };
        frame
    };
    let frames = [
        typed(0x0806, 42),
        typed(0x0806, 60),
        icmpv6(false, 133),
        icmpv6(false, 135),
        icmpv6(true, 143),
        to(typed(0x0026, 60), 0x00),
        to(typed(0x88cc, 60), 0x0e),
        to(typed(0x8809, 60), 0x02),
        to(typed(0x8808, 60), 0x01),
        typed(0x8808, 60),
        // A stale one of this process, one of the former trial, an unknown stream.
        signed(TRIAL + 1, 0, 0, 60),
        signed(0x7777_0001, 0, 0, 60),
        signed(TRIAL, 2, 0, 60),
        signed(TRIAL, 1, 0, 60),
        // An echo request, a group that bridges forward, an IPv4 frame, a very short one.
        icmpv6(false, 128),
        to(typed(0x88b5, 60), 0x10),
        typed(0x0800, 60),
        typed(0x0800, 14),
    ];
    for frame in &frames {
        injector.send(frame);
    }
    wait_for("all frames", || foreign_frames(sink.read().foreign) == frames.len() as u64);
    let foreign = ForeignFrames {
        arp: 2,
        neighbour_discovery: 3,
        link_control: 3,
        pause: 2,
        other_trial: 3,
        own: 1,
        other: 4,
    };
    assert_eq!((sink.read().foreign, sink.frames()), (foreign, 0));
}

#[test]
fn a_new_trial_starts_at_nothing_and_may_be_larger() {
    let Some(cable) = Cable::new(1500) else { return };
    let (mut sink, injector, _napi) = counter(&cable, 4);
    for (turn, frames) in [(0_u32, 3_u64), (1, 1_000_000), (2, 3)] {
        let trial = TRIAL + turn;
        sink.begin_trial(&expected(trial, &[(0, frames)])).expect("a trial");
        assert_eq!((sink.frames(), foreign_frames(sink.read().foreign)), (0, 0));
        injector.send(&signed(trial, 0, 2, 60));
        injector.send(&signed(trial, 0, frames - 1, 60));
        injector.send(&signed(TRIAL.wrapping_sub(1), 0, 0, 60));
        wait_for("a stale frame", || sink.read().foreign.other_trial == 1);
        let received = &sink.read().streams[0].1;
        let copies = u64::from(frames == 3);
        assert_eq!((received.frames, received.duplicates), (2 - copies, Some(copies)));
        assert_eq!(sink.arrivals(0).iter().filter(|it| it.is_some()).count(), 1);
    }
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let Some(cable) = Cable::new(1500) else { return };
    let (mut sink, _injector, _napi) = counter(&cable, 0);
    assert!(sink.begin_trial(&expected(TRIAL, &[(16, 1)])).is_err(), "streams end at 15");
    assert!(sink.begin_trial(&expected(TRIAL, &[(1, 1)])).is_err(), "stream 1 is sent from there");
    let second = inside(&cable.far, || Sink::attach(FAR, SinkOptions::default()));
    assert!(second.expect_err("one is there").to_string().contains("busy"));
}

#[test]
fn frames_of_several_buffers_are_counted() {
    let Some(cable) = Cable::new(9216) else { return };
    for (netns, index, address) in [(&cable.near, NEAR, NEAR_ADDR), (&cable.far, FAR, FAR_ADDR)] {
        inside(netns, || {
            let mut socket = RouteSocket::open().expect("netlink");
            socket.add_address(index, address.into(), 16).expect("an address");
        });
    }
    let (mut sink, _injector, _napi) = counter(&cable, 0);
    let mut trial = expected(TRIAL, &[(0, 1000)]);
    trial.longest = 9230;
    sink.begin_trial(&trial).expect("a trial");
    let socket = inside(&cable.near, || UdpSocket::bind((NEAR_ADDR, 0)).expect("a socket"));
    socket.connect((FAR_ADDR, 9)).expect("a route");
    let mut bytes = 0;
    for (number, payload) in (0_u64..).zip([18, 1472, 4000, 8000, 9188]) {
        let mut data = vec![0; payload];
        let signature = Signature { trial: TRIAL, stream: 0, sequence: number, stamp: 0 };
        data[payload - 16..].copy_from_slice(&signature.to_bytes());
        socket.send(&data).expect("sent");
        bytes += 14 + 20 + 8 + payload as u64;
    }
    // Neighbours are asked before the first frame, and answered by the host behind the counter.
    wait_for("five frames", || sink.frames() == 5);
    let report = sink.read();
    let received = &report.streams[0].1;
    assert_eq!((received.bytes, received.wrong_length), (bytes, 0));
    assert!(report.foreign.arp > 0);
}
