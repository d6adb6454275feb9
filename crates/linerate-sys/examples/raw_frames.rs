//! How fast and how evenly frames leave by each way, on a veth pair between two namespaces that it
//! makes: Mfps at full speed, and the gaps of paced frames as the packet ring at the other end
//! sees them.
//!
//! ```text
//! cargo run --release -p linerate-sys --example raw_frames
//! raw_frames send INTERFACE packet|xdp|live COUNT BYTES   (FCS included; of the own namespace)
//! raw_frames count INTERFACE COUNT BYTES                  (until its input ends)
//! raw_frames bytes BYTES                                  (of one frame, for another sender)
//! ```
//!
//! At full speed nobody looks at the other end, which drops the frames; its interface counts them.
//! Live frames need a counter at the other end of a veth pair: such a pair takes them only then.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "../tests/live/support/mod.rs"]
mod support;

use std::io::Read;
use std::time::Duration;

use linerate_core::device::{
    FrameLoad, FramePace, ReceiveCounts, SIGNATURE_BYTES, SendCounts, Signature, WhenLate,
};
use linerate_sys::frame_counter::{CounterOptions, FrameCounter, SinkExpected, StreamExpected};
use linerate_sys::frame_sender::{FrameSender, SenderOptions};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{self, Sink, SinkOptions};
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
            let mut generator = Generator::open(way, index(interface)?, number(bytes) - FCS)?;
            let sent = generator.run(&flood(number(count) as u64))?;
            println!("{} {} {:.4}", sent.frames, sent.refused, mfps(&sent));
            Ok(())
        }
        ["count", interface, count, bytes] => count_frames(interface, number(count), number(bytes)),
        ["bytes", bytes] => {
            let mut frame = udp_template(number(bytes) - FCS, 1).bytes;
            let signature = Signature { trial: TRIAL, stream: 1, sequence: 0, stamp: 0 };
            let at = frame.len() - SIGNATURE_BYTES;
            frame[at..].copy_from_slice(&signature.to_bytes());
            println!(
                "{}",
                frame.iter().map(|it| format!("{it:#04x}")).collect::<Vec<_>>().join(",")
            );
            Ok(())
        }
        _ => {
            println!("raw_frames [send INTERFACE packet|xdp|live COUNT BYTES]");
            Ok(())
        }
    }
}

fn number(word: &str) -> usize {
    word.parse().expect("a number")
}

fn index(interface: &str) -> Result<u32> {
    Ok(RouteSocket::open()?.link_by_name(interface)?.index)
}

/// Counts by the program in the driver until the input ends, then prints different frames and
/// copies. The frames of `bytes` are copies but for the first.
fn count_frames(interface: &str, frames: usize, bytes: usize) -> Result<()> {
    let mut sink = Sink::attach(index(interface)?, SinkOptions::default())?;
    sink.begin_trial(&SinkExpected {
        trial: TRIAL,
        streams: vec![StreamExpected { stream: 1, frames: frames as u64 }],
        own_streams: Vec::new(),
        shortest: bytes - FCS,
        longest: bytes - FCS,
    })?;
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let report = sink.read();
    let (_, received) = &report.streams[0];
    println!("{} {}", received.frames, received.duplicates.expect("so few are remembered"));
    Ok(())
}

/// One way to send.
enum Generator {
    Packet(FrameSender),
    Xdp(XdpSender),
    Live(xdp::Generator),
}

impl Generator {
    fn open(way: &str, ifindex: u32, len: usize) -> Result<Self> {
        let templates = vec![udp_template(len, 1)];
        let cpu = sched::allowed_cpus().first().copied();
        let options = SenderOptions { ifindex, trial: TRIAL, stream: 1, templates, cpu };
        Ok(match way {
            "xdp" => Self::Xdp(XdpSender::open(&options, XdpOptions::default())?),
            "live" => {
                let SenderOptions { ifindex, trial, stream, templates, cpu } = options;
                let options = xdp::GeneratorOptions::new(ifindex, stream, trial, templates);
                Self::Live(xdp::Generator::open(xdp::GeneratorOptions { cpu, ..options })?)
            }
            _ => Self::Packet(FrameSender::open(&options)?),
        })
    }

    fn run(&mut self, load: &FrameLoad) -> Result<SendCounts> {
        match self {
            Self::Packet(sender) => sender.run(load, &Stop::new()),
            Self::Xdp(sender) => sender.run(load, &Stop::new()),
            Self::Live(sender) => sender.run(load, &Stop::new()),
        }
    }

    fn begin(&mut self) {
        match self {
            Self::Packet(sender) => sender.begin_trial(TRIAL),
            Self::Xdp(sender) => sender.begin_trial(TRIAL),
            Self::Live(sender) => sender.begin_trial(TRIAL),
        }
    }
}

fn flood(frames: u64) -> FrameLoad {
    let (pace, when_late) = (FramePace::Flood, WhenLate::KeepSchedule);
    FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] }
}

fn mfps(sent: &SendCounts) -> f64 {
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
        SinkExpected { trial: TRIAL, streams, own_streams: Vec::new(), shortest: 60, longest: 60 };
    let options = CounterOptions {
        cpu: sched::allowed_cpus().last().copied(),
        ..CounterOptions::of_interface("right")
    };
    let counter = inside(&cable.right, || FrameCounter::open(&options, expected))?;
    generator.begin();
    let pace = FramePace::Rate { frames_per_sec };
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

fn gaps(received: &ReceiveCounts) -> String {
    let quantile = |share| received.gap.bins.quantile(share).unwrap_or(0);
    let [p1, p50, p90, p99, p999] = [0.01, 0.5, 0.9, 0.99, 0.999].map(quantile);
    format!("{p1:>8} {p50:>8} {p90:>8} {p99:>8} {p999:>9}")
}
