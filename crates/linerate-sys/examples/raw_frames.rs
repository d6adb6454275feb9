//! How fast and how evenly frames leave by each way, on a veth pair between two namespaces that it
//! makes: Mfps at full speed, and the gaps of paced frames as the packet ring at the other end
//! sees them.
//!
//! ```text
//! cargo run --release -p linerate-sys --example raw_frames
//! raw_frames send INTERFACE packet|xdp COUNT BYTES     (FCS included; of the own namespace)
//! ```
//!
//! At full speed nobody looks at the other end, which drops the frames; its interface counts them.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use linerate_core::bench::{FrameLoad, Pace, Received, Sent, WhenLate};
use linerate_sys::frame_counter::{CounterOptions, Expected, FrameCounter, StreamExpected};
use linerate_sys::frame_sender::{FrameSender, SenderOptions};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::stop::Stop;
use linerate_sys::xdp_socket::{XdpOptions, XdpSender};
use linerate_sys::{Result, clock, sched};
use support::{Cable, LEFT, RIGHT, inside, link, udp_template};

const TRIAL: u32 = 0x4c52_0001;
const FCS: usize = 4;
const PACES: [u64; 3] = [10_000, 100_000, 500_000];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words.as_slice() {
        [] => show(),
        ["send", interface, way, count, bytes] => {
            let ifindex = RouteSocket::open()?.link_by_name(interface)?.index;
            let bytes: usize = bytes.parse().expect("a length in bytes");
            let mut generator = Generator::open(way, ifindex, bytes - FCS)?;
            let sent = generator.run(&flood(count.parse().expect("a number of frames")))?;
            println!("{} {} {:.4}", sent.frames, sent.refused, mfps(&sent));
            Ok(())
        }
        _ => {
            println!("raw_frames [send INTERFACE packet|xdp COUNT BYTES]");
            Ok(())
        }
    }
}

/// One way to send.
enum Generator {
    Packet(FrameSender),
    Xdp(XdpSender),
}

impl Generator {
    fn open(way: &str, ifindex: u32, len: usize) -> Result<Self> {
        let templates = vec![udp_template(len, 1)];
        let cpu = sched::cpus().first().copied();
        let options = SenderOptions { ifindex, trial: TRIAL, stream: 1, templates, cpu };
        Ok(match way {
            "xdp" => Self::Xdp(XdpSender::open(&options, XdpOptions::default())?),
            _ => Self::Packet(FrameSender::open(&options)?),
        })
    }

    fn run(&mut self, load: &FrameLoad) -> Result<Sent> {
        match self {
            Self::Packet(sender) => sender.run(load, &Stop::new()),
            Self::Xdp(sender) => sender.run(load, &Stop::new()),
        }
    }

    fn begin(&mut self) {
        match self {
            Self::Packet(sender) => sender.begin(TRIAL),
            Self::Xdp(sender) => sender.begin(TRIAL),
        }
    }
}

fn flood(frames: u64) -> FrameLoad {
    let (pace, when_late) = (Pace::Flood, WhenLate::KeepSchedule);
    FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] }
}

fn mfps(sent: &Sent) -> f64 {
    sent.frames_per_sec().unwrap_or(f64::NAN) / 1e6
}

fn show() -> Result<()> {
    let Some(cable) = Cable::new(1500) else {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return Ok(());
    };
    println!("{:<8} {:>6} {:>8} {:>12} {:>12}", "way", "bytes", "Mfps", "sent", "counted");
    for bytes in [64, 512, 1518] {
        for way in ["packet", "xdp"] {
            let mut generator = inside(&cable.left, || Generator::open(way, LEFT, bytes - FCS))?;
            generator.run(&flood(100_000))?;
            let before = link(&cable.right, RIGHT).counters.rx_packets;
            let sent = generator.run(&flood(1_000_000))?;
            let counted = link(&cable.right, RIGHT).counters.rx_packets - before;
            let rate = mfps(&sent);
            println!("{way:<8} {bytes:>6} {rate:>8.3} {:>12} {counted:>12}", sent.frames);
        }
    }
    println!("\ngaps in ns at the other end, frames of 64 bytes");
    println!(
        "{:<8} {:>8} {:>12} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "way", "frames/s", "achieved", "late", "p1", "p50", "p90", "p99", "p99.9"
    );
    for frames_per_sec in PACES {
        for way in ["packet", "xdp"] {
            let mut generator = inside(&cable.left, || Generator::open(way, LEFT, 60))?;
            pace(&cable, way, &mut generator, frames_per_sec)?;
        }
    }
    Ok(())
}

fn pace(cable: &Cable, way: &str, generator: &mut Generator, frames_per_sec: u64) -> Result<()> {
    // Two seconds.
    let frames = 2 * frames_per_sec;
    let streams = vec![StreamExpected { stream: 1, frames }];
    let expected =
        Expected { trial: TRIAL, streams, own_streams: Vec::new(), shortest: 60, longest: 60 };
    let options = CounterOptions {
        cpu: sched::cpus().last().copied(),
        ..CounterOptions::of_interface("right")
    };
    let counter = inside(&cable.right, || FrameCounter::open(&options, expected))?;
    generator.begin();
    let pace = Pace::Rate { frames_per_sec };
    let sent = generator.run(&FrameLoad { pace, ..flood(frames) })?;
    clock::sleep(Duration::from_millis(50));
    let reading = counter.read()?;
    let received = &reading.streams[0].1;
    let achieved = received.frames_per_sec().unwrap_or(f64::NAN);
    println!(
        "{way:<8} {frames_per_sec:>8} {achieved:>12.2} {:>6} {} {}",
        sent.late,
        gaps(received),
        if reading.ring_dropped > 0 { "ring overflowed" } else { "" }
    );
    Ok(())
}

fn gaps(received: &Received) -> String {
    let quantile = |share| received.gap.bins.quantile(share).unwrap_or(0);
    let [p1, p50, p90, p99, p999] = [0.01, 0.5, 0.9, 0.99, 0.999].map(quantile);
    format!("{p1:>8} {p50:>8} {p90:>8} {p99:>8} {p999:>9}")
}
