//! Nothing is lost in counting: of millions of frames into a device that cannot carry them, what
//! was sent is what came and what each place on the way says it dropped, to the frame.
//!
//! Equality alone is judged: how many are dropped, and where, is the machine's business.

use linerate_core::device::{FrameLoad, FramePace, ReceiveCounts, SendCounts, WhenLate};
use linerate_sys::bpf::XdpLink;
use linerate_sys::frame_counter::{CounterOptions, CounterReading, FrameCounter};
use linerate_sys::frame_sender::{FrameSender, SenderOptions};
use linerate_sys::netlink::{LinkCounters, RouteSocket};
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{
    Generator, GeneratorOptions, PlantedCounts, PlantedDevice, PlantedOptions, Sink, SinkExpected,
    SinkOptions, StreamExpected, hold_napi,
};

use super::bench::{FAR, LEFT, NEAR, Path, RIGHT, inside, wait_for};
use super::frames::{TRIAL, ipv4_udp};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// 64 bytes with FCS.
const FRAME_BYTES: u64 = 60;

/// Near - planted device - far, and what keeps the frames going.
struct Bench {
    path: Path,
    device: PlantedDevice,
    _napi: Vec<XdpLink>,
}

impl Bench {
    /// A device that forwards so many frames per second, and loses one in a thousand besides.
    fn new(frames_per_sec: u64) -> Option<Self> {
        let path = Path::new()?;
        let napi = [(&path.near, NEAR), (&path.device, RIGHT)];
        let napi = napi.map(|(netns, at)| inside(netns, || hold_napi(at).expect("a program")));
        let options = PlantedOptions {
            frames_per_sec: Some(frames_per_sec),
            buffer_frames: 64,
            loss_one_in: Some(1000),
            ..PlantedOptions::default()
        };
        let device = inside(&path.device, || PlantedDevice::attach(LEFT, RIGHT, options));
        Some(Self { device: device.expect("a device"), _napi: napi.into(), path })
    }

    /// The interfaces' own counts, from the generator to the counter.
    fn interfaces(&self) -> [LinkCounters; 4] {
        let Path { near, device, far } = &self.path;
        let of = |netns: &Netns, index| {
            inside(netns, || {
                RouteSocket::open().and_then(|mut it| it.link_by_index(index)).expect("a link")
            })
            .counters
        };
        [of(near, NEAR), of(device, LEFT), of(device, RIGHT), of(far, FAR)]
    }
}

fn flood(frames: u64) -> FrameLoad {
    let (pace, when_late) = (FramePace::Flood, WhenLate::KeepSchedule);
    FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] }
}

fn expected(frames: u64) -> SinkExpected {
    let streams = vec![StreamExpected { stream: 0, frames }];
    SinkExpected { trial: TRIAL, streams, own_streams: vec![], shortest: 60, longest: 60 }
}

/// Holds all counts against each other. Frames that a ring between two interfaces had no room for
/// are the sending side's: `refused` at the generator, dropped on transmission at the device.
fn check(
    asked: u64,
    sent: &SendCounts,
    device: PlantedCounts,
    interfaces: [LinkCounters; 4],
    counted: (&ReceiveCounts, u64),
) {
    let [near, left, right, far] = interfaces;
    let (received, counter_dropped) = counted;
    println!(
        "{asked} frames: {} sent, {} refused by the ring; {} dropped by queue, {} by chance, {} \
         at the way out; {} received, {counter_dropped} dropped by the counter",
        sent.frames,
        sent.refused,
        device.dropped_by_queue,
        device.dropped_by_chance,
        right.tx_dropped,
        received.frames
    );
    assert_eq!(sent.frames + sent.refused, asked);
    assert_eq!(sent.bytes, sent.frames * FRAME_BYTES);
    // Into the device.
    assert_eq!(device.frames_in, sent.frames);
    assert_eq!((near.tx_packets, left.rx_packets), (sent.frames, sent.frames));
    assert_eq!((near.tx_errors, left.rx_errors, device.others), (0, 0, 0));
    // Through it.
    let lost = device.dropped_by_queue + device.dropped_by_chance + device.dropped_in_stall;
    assert_eq!(device.frames_in, device.forwarded + lost);
    assert!(device.dropped_by_queue > 0, "it was to be overloaded: {device:?}");
    // Out of it.
    assert_eq!(device.forwarded, far.rx_packets + right.tx_dropped);
    assert_eq!((right.tx_packets, right.tx_errors), (far.rx_packets, 0));
    assert_eq!(received.frames + counter_dropped, far.rx_packets);
    assert_eq!((received.bytes, received.duplicates), (received.frames * FRAME_BYTES, Some(0)));
    assert_eq!((received.reordered, received.wrong_length), (0, 0));
    // And all in one.
    assert_eq!(asked, sent.refused + lost + right.tx_dropped + counter_dropped + received.frames);
}

fn since(now: [LinkCounters; 4], before: [LinkCounters; 4]) -> [LinkCounters; 4] {
    std::array::from_fn(|at| {
        let (now, before) = (now[at], before[at]);
        LinkCounters {
            rx_packets: now.rx_packets - before.rx_packets,
            tx_packets: now.tx_packets - before.tx_packets,
            rx_bytes: now.rx_bytes - before.rx_bytes,
            tx_bytes: now.tx_bytes - before.tx_bytes,
            rx_errors: now.rx_errors - before.rx_errors,
            tx_errors: now.tx_errors - before.tx_errors,
            rx_dropped: now.rx_dropped - before.rx_dropped,
            tx_dropped: now.tx_dropped - before.tx_dropped,
        }
    })
}

#[test]
fn ten_million_live_frames_into_an_overloaded_device_balance_to_the_frame() {
    const FRAMES: u64 = 10_000_000;
    // A generator sends some millions of frames a second; ten times slower is still too much.
    let Some(bench) = Bench::new(200_000) else { return };
    let options = GeneratorOptions::new(NEAR, 0, TRIAL, vec![ipv4_udp(60, MAC)]);
    let mut generator = inside(&bench.path.near, || Generator::open(options).expect("a generator"));
    let mut sink =
        inside(&bench.path.far, || Sink::attach(FAR, SinkOptions::default()).expect("a counter"));
    sink.begin_trial(&expected(FRAMES)).expect("a trial");
    bench.device.begin_trials(TRIAL);
    let before = bench.interfaces();
    let sent = generator.run(&flood(FRAMES), &Stop::new()).expect("a run");
    let way_out = || bench.interfaces()[2].tx_dropped - before[2].tx_dropped;
    wait_for("frames through the device", || {
        let counts = bench.device.counts();
        counts.frames_in == sent.frames && sink.frames() + way_out() == counts.forwarded
    });
    let interfaces = since(bench.interfaces(), before);
    let received = sink.read().streams.remove(0).1;
    check(FRAMES, &sent, bench.device.counts(), interfaces, (&received, 0));
}

#[test]
fn a_million_frames_by_packet_sockets_into_an_overloaded_device_balance_to_the_frame() {
    const FRAMES: u64 = 1_000_000;
    let Some(bench) = Bench::new(50_000) else { return };
    // The counter's own program is no XDP: the way into its interface needs one that passes.
    let _napi = inside(&bench.path.far, || hold_napi(FAR).expect("a program"));
    let templates = vec![ipv4_udp(60, MAC)];
    let options = SenderOptions { ifindex: NEAR, trial: TRIAL, stream: 0, templates, cpu: None };
    let mut sender = inside(&bench.path.near, || FrameSender::open(&options).expect("a sender"));
    let counter = inside(&bench.path.far, || {
        FrameCounter::open(&CounterOptions::of_interface("far"), expected(FRAMES))
    });
    let counter = counter.expect("a counter");
    counter.begin_trial(expected(FRAMES)).expect("a trial");
    bench.device.begin_trials(TRIAL);
    let before = bench.interfaces();
    let sent = sender.run(&flood(FRAMES), &Stop::new()).expect("a run");
    let mut reading = CounterReading::default();
    wait_for("frames through the device", || {
        let counts = bench.device.counts();
        let way_out = bench.interfaces()[2].tx_dropped - before[2].tx_dropped;
        reading = counter.read().expect("counts");
        counts.frames_in == sent.frames && reading.seen + way_out == counts.forwarded
    });
    let interfaces = since(bench.interfaces(), before);
    let received = &reading.streams[0].1;
    assert_eq!(reading.foreign, linerate_core::device::ForeignFrames::default());
    check(FRAMES, &sent, bench.device.counts(), interfaces, (received, reading.ring_dropped));
}
