//! Speed and pace of the generator and the counter, on a veth pair between two namespaces:
//! `cargo run --release -p linerate-sys --example frames`. Needs root.
#![allow(clippy::print_stdout, reason = "it is a program that prints figures")]

use std::os::fd::AsFd;

use linerate_core::bench::{FrameLoad, FrameTemplate, Pace, Received, Sent, WhenLate};
use linerate_sys::netlink::{RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{
    Expected, Generator, GeneratorOptions, Sink, SinkOptions, StreamExpected, hold_napi,
};
use linerate_sys::{Result, clock};

const TRIAL: u32 = 0x4c52_0001;

fn main() -> Result<()> {
    let near = Netns::new()?;
    let far = Netns::new()?;
    near.enter()?;
    let end = |name, index, netns| VethEnd { name, index, netns };
    let ends = [end("near", 2, near.as_fd()), end("far", 3, far.as_fd())];
    let pair = VethPair { ends, mtu_bytes: 1500, super_packets: false };
    RouteSocket::open()?.add_veth(&pair)?;
    RouteSocket::open()?.set_up(2)?;
    far.enter()?;
    RouteSocket::open()?.set_up(3)?;
    let mut sink = Sink::attach(3, SinkOptions::default())?;
    near.enter()?;
    let _napi = hold_napi(2)?;
    println!(
        "bytes, rate, batch: sent and taken; rate error; gap p1 p50 p90 p99 p99.9 max; latency p50 p99"
    );
    let seconds = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(1.0);
    for (length, rate, batch) in plan() {
        run(&mut sink, length, rate, batch, seconds)?;
    }
    Ok(())
}

fn plan() -> Vec<(usize, u64, Option<u32>)> {
    let mut plan = vec![];
    for batch in [1, 2, 4, 8, 64, 128, 256] {
        plan.push((60, 0, Some(batch)));
    }
    plan.extend([(508, 0, None), (1514, 0, None)]);
    let rates = [1_000, 10_000, 100_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000];
    plan.extend(rates.map(|rate| (60, rate, None)));
    plan
}

fn run(sink: &mut Sink, length: usize, rate: u64, batch: Option<u32>, seconds: f64) -> Result<()> {
    let frames = (if rate == 0 { 5_000_000.0 } else { rate as f64 } * seconds) as u64;
    sink.begin(&Expected {
        trial: TRIAL,
        streams: vec![StreamExpected { stream: 0, frames }],
        own_streams: Vec::new(),
        shortest: length,
        longest: length,
    })?;
    let mut options = GeneratorOptions::new(2, 0, TRIAL, vec![template(length)]);
    options.batch = batch;
    options.cpu = Some(0);
    let mut generator = Generator::open(options)?;
    let pace = if rate == 0 { Pace::Flood } else { Pace::Rate { frames_per_sec: rate } };
    let when_late = WhenLate::KeepSchedule;
    let load = FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] };
    let start = clock::monotonic();
    let me = linerate_sys::thread::id();
    let ran = |before| linerate_sys::thread::schedule_of(me).map_or(0, |it| it.0) - before;
    let before = ran(0);
    let sent = generator.run(&load, &Stop::new())?;
    let wall = clock::monotonic().since(start).as_secs_f64();
    let ran = ran(before);
    println!("{:.3} M frames per second of processor time", sent.frames as f64 * 1e3 / ran as f64);
    let report = sink.read();
    let received = &report.streams[0].1;
    line(length, rate, batch, &sent, received);
    if sent.frames != received.frames || received.duplicates != Some(0) {
        println!(
            "    sent {} refused {} received {} copies {:?} held {} in {wall:.3} s, {:?}",
            sent.frames,
            sent.refused,
            received.frames,
            received.duplicates,
            generator.is_held(),
            report.foreign
        );
    }
    Ok(())
}

fn line(length: usize, rate: u64, batch: Option<u32>, sent: &Sent, received: &Received) {
    let achieved = sent.frames_per_sec().unwrap_or(0.0);
    let error = if rate == 0 { 0.0 } else { achieved / rate as f64 - 1.0 };
    let gap = |share| received.gap.bins.quantile(share).unwrap_or(0);
    let latency = |share| received.latency.bins.quantile(share).unwrap_or(0);
    println!(
        "{:5} {rate:8} {:>4}: {:.3} M {:5.1} % late {} worst {}; {error:+.1e}; {} {} {} {} {} {}; {} {}",
        length + 4,
        batch.map_or_else(|| "-".to_owned(), |it| it.to_string()),
        achieved / 1e6,
        100.0 * received.frames as f64 / (sent.frames + sent.refused) as f64,
        sent.late,
        sent.worst_late_ns,
        gap(0.01),
        gap(0.5),
        gap(0.9),
        gap(0.99),
        gap(0.999),
        received.gap.max_ns,
        latency(0.5),
        latency(0.99),
    );
}

/// An IPv4/UDP frame without a checksum in the transport.
fn template(length: usize) -> FrameTemplate {
    let mut bytes = vec![0; length];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    FrameTemplate {
        bytes,
        varying: Vec::new(),
        flows: 1,
        shuffled: false,
        header_sum: None,
        balance_at: Some(42),
    }
}
