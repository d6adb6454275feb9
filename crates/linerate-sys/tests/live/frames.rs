//! Test frames over a veth pair between two namespaces that the test makes: what each generator
//! says it sent is what the counter sees, number by number, with right sums; what the tester loses
//! by itself is told apart.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::print_stdout, reason = "skipped tests say so")]

use std::time::Duration;

use crate::support::{
    Cable, LEFT, PATIENCE, RIGHT, inside, link, plain_sum, transport_sum, udp_template,
};
use linerate_core::device::{FrameLoad, FramePace, ReceiveCounts, SendCounts, Signature, WhenLate};
use linerate_core::time::MonoTime;
use linerate_sys::frame_counter::{
    CounterOptions, CounterReading, FrameCounter, SinkExpected, StreamExpected,
};
use linerate_sys::frame_sender::{FrameSender, SenderOptions, Window};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::packet_capture::{CaptureOptions, PacketCapture};
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{Sink, SinkOptions};
use linerate_sys::xdp_socket::{XdpMode, XdpOptions, XdpSender};
use linerate_sys::{Result, clock};

const TRIAL: u32 = 0x4c52_0001;
const STREAM: u8 = 3;

fn cable(mtu_bytes: u32) -> Option<Cable> {
    let cable = Cable::new(mtu_bytes);
    if cable.is_none() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
    }
    cable
}

fn options(templates: &[usize], flows: u32) -> SenderOptions {
    let templates = templates.iter().map(|len| udp_template(*len, flows)).collect();
    SenderOptions { ifindex: LEFT, trial: TRIAL, stream: STREAM, templates, cpu: None }
}

fn expected(frames: u64) -> SinkExpected {
    SinkExpected {
        trial: TRIAL,
        streams: vec![StreamExpected { stream: STREAM, frames }],
        own_streams: Vec::new(),
        shortest: 60,
        longest: 1514,
    }
}

const fn flood(frames: u64) -> FrameLoad {
    let (pace, when_late) = (FramePace::Flood, WhenLate::KeepSchedule);
    FrameLoad { frames, pace, when_late, burst: 1, mix: Vec::new() }
}

fn load(frames: u64, mix: &[u8]) -> FrameLoad {
    FrameLoad { mix: mix.to_vec(), ..flood(frames) }
}

/// One way to send.
enum Way {
    Packet(FrameSender),
    Xdp(XdpSender),
}

impl Way {
    fn both(options: &SenderOptions) -> [Self; 2] {
        let packet = FrameSender::open(options).expect("a packet socket");
        [Self::Packet(packet), Self::Xdp(xdp(options).expect("an AF_XDP socket"))]
    }

    fn run(&mut self, load: &FrameLoad, window: Window) -> SendCounts {
        let stop = Stop::new();
        match self {
            Self::Packet(sender) => sender.run_within(load, &stop, window),
            Self::Xdp(sender) => sender.run_within(load, &stop, window),
        }
        .expect("frames leave")
    }

    fn begin(&mut self, trial: u32) {
        match self {
            Self::Packet(sender) => sender.begin_trial(trial),
            Self::Xdp(sender) => sender.begin_trial(trial),
        }
    }
}

fn xdp(options: &SenderOptions) -> Result<XdpSender> {
    XdpSender::open(options, XdpOptions::default())
}

fn counter(cable: &Cable, ring_bytes: usize, expected: SinkExpected) -> FrameCounter {
    inside(&cable.right, || {
        let options = CounterOptions { ring_bytes, ..CounterOptions::of_interface("right") };
        FrameCounter::open(&options, expected).expect("a counter")
    })
}

/// Reads when as many frames as `frames` were counted, or patience is over.
fn settled(counter: &FrameCounter, frames: u64) -> CounterReading {
    let end = clock::monotonic() + PATIENCE;
    while counter.frames() < frames && clock::monotonic() < end {
        clock::sleep(Duration::from_millis(2));
    }
    counter.read().expect("the link stays up")
}

#[test]
fn every_frame_of_both_ways_arrives_once_and_in_order() {
    let Some(cable) = cable(1500) else { return };
    let ways = inside(&cable.left, || Way::both(&options(&[60, 590, 1514], 7)));
    let counter = counter(&cable, 64 << 20, expected(10_000));
    for (index, mut way) in ways.into_iter().enumerate() {
        let trial = TRIAL + index as u32;
        counter.begin_trial(SinkExpected { trial, ..expected(10_000) }).expect("a counter");
        way.begin(trial);
        let before = link(&cable.right, RIGHT).counters.rx_packets;
        // IMIX of 7 : 4 : 1, 12 frames of 4294 bytes together; 833 whole rounds and 4 of 60.
        let mix = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2];
        let sent = way.run(&load(10_000, &mix), Window::default());
        let bytes = 833 * (7 * 60 + 4 * 590 + 1514) + 4 * 60;
        assert_eq!((sent.frames, sent.bytes, sent.refused), (10_000, bytes, 0));
        let reading = settled(&counter, 10_000);
        assert_eq!(reading.ring_dropped, 0, "a ring of 64 MiB holds them all");
        let (stream, received) = &reading.streams[0];
        assert_eq!(*stream, STREAM);
        assert_eq!((received.frames, received.bytes), (10_000, bytes));
        assert_eq!((received.duplicates, received.reordered), (Some(0), 0));
        assert_eq!((received.loss_runs, received.wrong_length), (0, 0));
        assert_eq!(received.latency.bins.count(), 10_000);
        assert_eq!(received.gap.bins.count(), 9_999);
        assert_eq!(received.gap.sum_ns, received.last_ns - received.first_ns);
        assert!(received.last_ns >= sent.first_ns && received.first_ns <= sent.last_ns + 1_000_000);
        assert_eq!(reading.foreign, linerate_core::device::ForeignFrames::default());
        let counted = link(&cable.right, RIGHT).counters.rx_packets - before;
        assert_eq!(counted, 10_000, "the interface's own count");
    }
}

#[test]
fn sums_and_numbers_of_every_frame_are_right_on_the_wire() {
    let Some(cable) = cable(1500) else { return };
    let ways = inside(&cable.left, || Way::both(&options(&[60, 61, 1514], 1000)));
    for mut way in ways {
        let mut capture = inside(&cable.right, || {
            let mut options = CaptureOptions::of_interface("right");
            options.promiscuous = true;
            PacketCapture::open(&options).expect("a capture")
        });
        way.run(&load(3000, &[0, 1, 2]), Window::default());
        let mut next = 0;
        let end = clock::monotonic() + PATIENCE;
        while next < 3000 && clock::monotonic() < end {
            let taken = capture.take_packets(Duration::from_millis(100), |packet| {
                let frame = packet.data;
                assert_eq!(plain_sum(&frame[14..34]), 0xffff, "IPv4, frame {next}");
                assert_eq!(transport_sum(frame), 0xffff, "UDP, frame {next}");
                let signature = Signature::at_end_of(frame).expect("long enough");
                assert_eq!((signature.trial, signature.stream), (TRIAL, STREAM));
                assert_eq!(signature.sequence, next);
                assert_eq!(frame.len(), [60, 61, 1514][(next % 3) as usize]);
                let port = u16::from_be_bytes([frame[34], frame[35]]);
                assert_eq!(u64::from(port), 0xc020 + next % 1000);
                next += 1;
            });
            taken.expect("the link stays up");
        }
        assert_eq!(next, 3000);
    }
}

#[test]
fn a_pace_is_kept_by_schedule_and_no_frame_leaves_before_it_is_due() {
    let Some(cable) = cable(1500) else { return };
    let mut ways = inside(&cable.left, || Way::both(&options(&[60], 1)));
    let counter = counter(&cable, 64 << 20, expected(200));
    for way in &mut ways {
        counter.begin_trial(expected(200)).expect("a counter");
        way.begin(TRIAL);
        let pace = FramePace::Rate { frames_per_sec: 2_000 };
        let start = clock::monotonic() + Duration::from_millis(20);
        let window = Window { start: Some(start), deadline: None };
        let sent = way.run(&FrameLoad { pace, ..load(200, &[0]) }, window);
        assert_eq!(sent.frames, 200);
        // Frame 199 is due 199 gaps of 500 us after the start; a busy machine makes it later.
        assert!(sent.first_ns >= start.as_nanos());
        assert!(sent.last_ns >= start.as_nanos() + 199 * 500_000, "{sent:?}");
        let reading = settled(&counter, 200);
        let received = &reading.streams[0].1;
        assert_eq!(received.frames, 200);
        assert!(received.first_ns >= start.as_nanos(), "{} {start:?}", received.first_ns);
    }
}

#[test]
fn numbers_go_on_in_a_trial_and_begin_anew_in_another() {
    let Some(cable) = cable(1500) else { return };
    let mut ways = inside(&cable.left, || Way::both(&options(&[60], 1)));
    for way in &mut ways {
        let counter = counter(&cable, 8 << 20, expected(300));
        way.run(&load(100, &[0]), Window::default());
        way.run(&load(200, &[0]), Window::default());
        let reading = settled(&counter, 300);
        let received = &reading.streams[0].1;
        assert_eq!((received.frames, received.duplicates), (300, Some(0)));
        assert_eq!(received.longest_loss_run, 0);
        // The same numbers in the same trial are copies; in another they are of another trial.
        way.begin(TRIAL);
        way.run(&load(100, &[0]), Window::default());
        way.begin(TRIAL + 7);
        way.run(&load(50, &[0]), Window::default());
        let end = clock::monotonic() + PATIENCE;
        let mut reading = counter.read().expect("counts");
        while reading.foreign.other_trial < 50 && clock::monotonic() < end {
            reading = counter.read().expect("counts");
        }
        let received = &reading.streams[0].1;
        assert_eq!((received.frames, received.duplicates), (300, Some(100)));
        assert_eq!(reading.foreign.other_trial, 50);
        way.begin(TRIAL);
    }
}

#[test]
fn a_full_ring_is_the_counters_own_loss() {
    let Some(cable) = cable(1500) else { return };
    let mut sender =
        inside(&cable.left, || FrameSender::open(&options(&[1514], 1))).expect("a sender");
    // Two blocks of 256 KiB hold some 330 frames of 1,514 bytes.
    let counter = counter(&cable, 1, expected(1_000_000));
    let (mut frames, end) = (0, clock::monotonic() + PATIENCE);
    loop {
        frames += sender.run(&load(2000, &[0]), &Stop::new()).expect("frames leave").frames;
        let reading = counter.read().expect("counts");
        let received = &reading.streams[0].1;
        // What came and what was dropped is all that was sent: the tester's loss explains all.
        assert_eq!(received.frames + reading.ring_dropped, frames);
        assert_eq!(reading.seen, frames);
        if reading.ring_dropped > 0 {
            assert!(received.loss_runs > 0 || received.frames < frames);
            return;
        }
        assert!(clock::monotonic() < end, "the ring never fills");
    }
}

#[test]
fn a_loop_shows_as_own_frames() {
    let Some(cable) = cable(1500) else { return };
    let mut sender =
        inside(&cable.left, || FrameSender::open(&options(&[60], 1))).expect("a sender");
    let own = SinkExpected { streams: Vec::new(), own_streams: vec![STREAM], ..expected(0) };
    let counter = counter(&cable, 8 << 20, own);
    sender.run(&load(40, &[0]), &Stop::new()).expect("frames leave");
    let reading = counter.read().expect("counts");
    assert_eq!(reading.foreign.own, 40);
    assert!(reading.streams.is_empty());
}

#[test]
fn a_wish_to_stop_and_a_deadline_end_a_run() {
    let Some(cable) = cable(1500) else { return };
    let mut sender =
        inside(&cable.left, || FrameSender::open(&options(&[60], 1))).expect("a sender");
    let stop = Stop::new();
    stop.request_stop();
    let sent = sender.run(&load(100, &[0]), &stop).expect("nothing leaves");
    assert_eq!(sent.frames, 0);
    let deadline = Some(clock::monotonic() + Duration::from_millis(5));
    let window = Window { start: None, deadline };
    let sent = sender.run_within(&load(u64::MAX, &[0]), &Stop::new(), window);
    let sent = sent.expect("frames leave");
    assert_eq!(sender.progress().frames(), sent.frames);
    // Due after the deadline: none leaves.
    let window = Window { start: Some(MonoTime::from_nanos(u64::MAX)), deadline };
    let sent = sender.run_within(&load(5, &[0]), &Stop::new(), window).expect("nothing leaves");
    assert_eq!(sent.frames, 0);
}

#[test]
fn what_cannot_be_sent_is_said_in_one_line() {
    let Some(cable) = cable(9000) else { return };
    inside(&cable.left, || {
        let text = |error: linerate_sys::Error| error.to_string();
        let long = options(&[9015], 1);
        let expected = "send frames without FCS of 9015 bytes on left: its MTU of 9000 allows \
                        9014; `ip link set dev left mtu 9001` allows this length";
        assert_eq!(FrameSender::open(&long).map(drop).map_err(text), Err(expected.to_owned()));
        let jumbo = options(&[9014], 1);
        let expected = "send by AF_XDP frames of 9014 bytes: a place for a frame has 4096 bytes; \
                        a packet socket sends longer ones";
        assert_eq!(xdp(&jumbo).map(drop).map_err(text), Err(expected.to_owned()));
        let mut sender = FrameSender::open(&jumbo).expect("a sender");
        assert_eq!(sender.run(&load(10, &[0]), &Stop::new()).expect("frames leave").frames, 10);
        let error = sender.run(&load(10, &[1]), &Stop::new()).expect_err("one template");
        assert_eq!(error.to_string(), "send 10 frames: template 1 of 1");
        let missing = SenderOptions { ifindex: 77, ..options(&[60], 1) };
        assert!(FrameSender::open(&missing).is_err());
        let first = xdp(&options(&[60], 1)).expect("a socket");
        assert_eq!(first.xdp_mode(), XdpMode::Copy, "veth has no zero-copy");
        let error = xdp(&options(&[60], 1)).map(drop).map_err(text);
        let expected = "open AF_XDP socket on left: queue 0: another AF_XDP socket has it";
        assert_eq!(error, Err(expected.to_owned()));
    });
}

#[test]
fn a_counter_whose_link_went_down_says_so_until_the_next_trial() {
    let Some(cable) = cable(1500) else { return };
    let counter = counter(&cable, 1, expected(1));
    let set = |up: bool| {
        inside(&cable.right, || {
            let mut socket = RouteSocket::open().expect("netlink");
            let changed = if up { socket.set_up(RIGHT) } else { socket.set_down(RIGHT) };
            changed.expect("the link is there");
        });
    };
    set(false);
    let down = "capture on interface right: Network is down (os error 100)";
    for _ in 0..2 {
        let error = counter.read().expect_err("the link is down").to_string();
        assert_eq!(error, down);
    }
    set(true);
    counter.begin_trial(expected(1)).expect("a trial");
    assert_eq!(counter.read().expect("the link is up").ring_dropped, 0);
}

#[test]
fn frames_without_a_carrier_are_refused_and_counted() {
    let Some(cable) = cable(1500) else { return };
    let ways = inside(&cable.left, || Way::both(&options(&[60], 1)));
    inside(&cable.right, || {
        let mut socket = RouteSocket::open().expect("netlink");
        socket.set_down(RIGHT).expect("link down");
    });
    for mut way in ways {
        let sent = way.run(&load(100, &[0]), Window::default());
        assert_eq!((sent.frames, sent.refused), (0, 100));
    }
}

/// A load in which every count has its share: 0 to 9 come, 10 to 14 find the link down, 15 to 24
/// come; then 0 to 11, of which 0 to 9 are copies and 10 and 11 late.
fn disorder(cable: &Cable, sender: &mut FrameSender, trial: u32) {
    let set = |up: bool| {
        inside(&cable.left, || {
            let mut socket = RouteSocket::open().expect("netlink");
            let changed = if up { socket.set_up(LEFT) } else { socket.set_down(LEFT) };
            changed.expect("the link is there");
        });
        let end = clock::monotonic() + PATIENCE;
        while link(&cable.left, LEFT).running != up && clock::monotonic() < end {
            clock::sleep(Duration::from_millis(2));
        }
    };
    let mut run = |frames: u64| {
        let sent = sender.run(&load(frames, &[0]), &Stop::new());
        sent.map(|it| (it.frames, it.refused)).map_err(|error| error.to_string())
    };
    assert_eq!(run(10), Ok((10, 0)));
    set(false);
    let down = "send frames on left: Network is down (os error 100)";
    assert_eq!(run(5), Err(down.to_owned()));
    set(true);
    assert_eq!(run(10), Ok((10, 0)));
    sender.begin_trial(trial);
    let sent = sender.run(&load(12, &[0]), &Stop::new()).expect("frames leave");
    assert_eq!(sent.frames, 12);
}

#[test]
fn both_counters_tell_the_same_of_the_same_frames() {
    let Some(cable) = cable(1500) else { return };
    if let Err(error) = linerate_sys::bpf::available() {
        println!("skipped: {error}");
        return;
    }
    let mut sender =
        inside(&cable.left, || FrameSender::open(&options(&[60], 1))).expect("a sender");
    let expected = expected(100);
    let plain = {
        let counter = counter(&cable, 8 << 20, expected.clone());
        disorder(&cable, &mut sender, TRIAL);
        settled(&counter, 22).streams.remove(0).1
    };
    assert_eq!((plain.frames, plain.bytes, plain.duplicates), (22, 22 * 60, Some(10)));
    assert_eq!((plain.reordered, plain.loss_runs, plain.longest_loss_run), (2, 1, 5));
    let fast = {
        let mut sink = inside(&cable.right, || {
            let options = SinkOptions::default();
            Sink::attach(RIGHT, options).expect("XDP on veth")
        });
        sink.begin_trial(&expected).expect("a trial");
        sender.begin_trial(TRIAL);
        disorder(&cable, &mut sender, TRIAL);
        let end = clock::monotonic() + PATIENCE;
        while sink.frames() < 22 && clock::monotonic() < end {
            clock::sleep(Duration::from_millis(2));
        }
        clock::sleep(Duration::from_millis(20));
        sink.read().streams.remove(0).1
    };
    let counts = |it: &ReceiveCounts| {
        let runs = (it.loss_runs, it.longest_loss_run);
        (it.frames, it.bytes, it.duplicates, it.reordered, runs, it.wrong_length)
    };
    assert_eq!(counts(&fast), counts(&plain));
}
