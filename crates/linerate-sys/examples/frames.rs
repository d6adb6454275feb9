//! Speed and pace of the generator and the counter, and a planted capacity, on veth pairs between
//! namespaces:
//!
//!     frames [SECONDS [BATCH ...]]
//!
//! With batches, full rate with each of them and nothing else.
//! Prints a line for each run: frames sent a second, in real time and of processor time; what
//! arrived; late frames; the error of the rate; gaps and latencies at the counter. Needs root.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use linerate_core::device::Varying;
use linerate_core::device::{
    FrameLoad, FramePace, FrameTemplate, HeaderSum, ReceiveCounts, SendCounts, WhenLate,
};
use linerate_sys::netlink::{RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::thread;
use linerate_sys::xdp::{
    Generator, GeneratorOptions, PlantedDevice, PlantedOptions, Sink, SinkExpected, SinkOptions,
    StreamExpected, hold_napi,
};

const TRIAL: u32 = 0x4c52_0001;
const NEAR: u32 = 2;
const FAR: u32 = 3;
const FLOOD: u64 = 0;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(1.0), |it| it.parse())?;
    let mut output = File::options().append(true).open("/dev/stdout")?;
    let [near, device, far] = [Netns::new()?, Netns::new()?, Netns::new()?];
    cable([(&near, "near", NEAR), (&far, "far", FAR)])?;
    cable([(&near, "other", 4), (&device, "left", 4)])?;
    cable([(&device, "right", 5), (&far, "end", 5)])?;
    far.enter()?;
    let mut sink = Sink::attach(FAR, SinkOptions::default())?;
    let mut end = Sink::attach(5, SinkOptions::default())?;
    near.enter()?;
    let _napi = [hold_napi(NEAR)?, hold_napi(4)?];
    writeln!(
        output,
        "bytes rate batch fields: M/s, M per processor second, arrived, late (worst), \
        rate error; gap p1 p50 p90 p99 p99.9 max; latency p50 p99"
    )?;
    let batches = std::env::args().skip(2).map(|it| it.parse().map(Some));
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    let asked: Vec<_> = batches.iter().map(|batch| Plan::flood(60, *batch)).collect();
    for plan in if asked.is_empty() { plans() } else { asked.clone() } {
        writeln!(output, "{}", plan.run(&mut sink, NEAR, seconds)?)?;
    }
    if !asked.is_empty() {
        return Ok(());
    }
    for capacity in [2_000, 100_000, 500_000, 1_000_000] {
        near.enter()?;
        device.enter()?;
        let options =
            PlantedOptions { frames_per_sec: Some(capacity), ..PlantedOptions::default() };
        let planted = PlantedDevice::attach(4, 5, options)?;
        let _napi = hold_napi(5)?;
        planted.begin_trials(TRIAL);
        near.enter()?;
        let plan = Plan { rate: capacity * 5 / 4, ..Plan::flood(60, None) };
        writeln!(output, "planted {capacity}: {}", plan.run(&mut end, 4, seconds)?)?;
        writeln!(output, "    {:?}", planted.counts())?;
    }
    Ok(())
}

fn cable(ends: [(&Netns, &str, u32); 2]) -> Result<(), Box<dyn Error>> {
    let [left, right] =
        ends.map(|(netns, name, index)| VethEnd { name, index, netns: netns.as_fd() });
    let pair = VethPair { ends: [left, right], mtu_bytes: 1500, super_packets: false };
    RouteSocket::open()?.add_veth(&pair)?;
    for (netns, _, index) in ends {
        netns.enter()?;
        RouteSocket::open()?.set_up(index)?;
    }
    Ok(())
}

/// One run.
#[derive(Clone, Copy)]
struct Plan {
    length: usize,
    rate: u64,
    batch: Option<u32>,
    fields: bool,
}

fn plans() -> Vec<Plan> {
    let batches = [1, 2, 4, 8, 64, 128, 256].map(Some);
    let mut plans: Vec<_> = batches.map(|batch| Plan::flood(60, batch)).into();
    plans.extend([508, 1514].map(|length| Plan::flood(length, None)));
    plans.push(Plan { fields: true, ..Plan::flood(60, None) });
    let rates = [1_000, 10_000, 100_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000];
    plans.extend(rates.map(|rate| Plan { rate, ..Plan::flood(60, None) }));
    plans
}

impl Plan {
    const fn flood(length: usize, batch: Option<u32>) -> Self {
        Self { length, rate: FLOOD, batch, fields: false }
    }

    /// Runs it from `ifindex` of this namespace.
    fn run(self, sink: &mut Sink, ifindex: u32, seconds: f64) -> Result<String, Box<dyn Error>> {
        let rate = if self.rate == FLOOD { 5_000_000 } else { self.rate };
        let frames = (rate as f64 * seconds) as u64;
        sink.begin_trial(&SinkExpected {
            trial: TRIAL,
            streams: vec![StreamExpected { stream: 0, frames }],
            own_streams: Vec::new(),
            shortest: self.length,
            longest: self.length,
        })?;
        let mut options = GeneratorOptions::new(ifindex, 0, TRIAL, vec![self.template()]);
        options.batch = self.batch;
        options.cpu = Some(0);
        let mut generator = Generator::open(options)?;
        let pace = match self.rate {
            FLOOD => FramePace::Flood,
            frames_per_sec => FramePace::Rate { frames_per_sec },
        };
        let when_late = WhenLate::KeepSchedule;
        let load = FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] };
        let busy = || thread::schedule_of(thread::current_id()).map_or(0, |it| it.0);
        let before = busy();
        let sent = generator.run(&load, &Stop::new())?;
        let busy_ns = busy() - before;
        let report = sink.read();
        Ok(self.line(&sent, &report.streams[0].1, busy_ns))
    }

    fn line(self, sent: &SendCounts, received: &ReceiveCounts, busy_ns: u64) -> String {
        let achieved = sent.frames_per_sec().unwrap_or(0.0);
        let error = if self.rate == FLOOD { 0.0 } else { achieved / self.rate as f64 - 1.0 };
        let gap = |share| received.gap.bins.quantile(share).unwrap_or(0);
        let latency = |share| received.latency.bins.quantile(share).unwrap_or(0);
        let gaps = [0.01, 0.5, 0.9, 0.99, 0.999].map(gap);
        format!(
            "{:4} {:8} {:>3} {}: {:.3} {:.3} {}/{} (refused {}, copies {:?}) {} ({}) {error:+.1e}; \
             {gaps:?} {}; {} {}",
            self.length + 4,
            self.rate,
            self.batch.unwrap_or(0),
            u8::from(self.fields),
            achieved / 1e6,
            sent.frames as f64 * 1e3 / busy_ns as f64,
            received.frames,
            sent.frames,
            sent.refused,
            received.duplicates,
            sent.late,
            sent.worst_late_ns,
            received.gap.max_ns,
            latency(0.5),
            latency(0.99),
        )
    }

    /// An IPv4/UDP frame; with fields, of many flows. Its checksums are not those of a real one,
    /// but they are computed.
    fn template(self) -> FrameTemplate {
        let mut bytes = vec![0; self.length];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        let field = |at, width, divisor, count| Varying {
            at,
            width,
            base: 1,
            divisor,
            count,
            in_header_sum: width == 4,
            in_transport_sum: true,
        };
        let fields = vec![field(26, 4, 1, 250), field(30, 4, 250, 40), field(34, 2, 1, 1000)];
        FrameTemplate {
            bytes,
            varying: if self.fields { fields } else { Vec::new() },
            flows: 1_000_000,
            shuffled: self.fields,
            header_sum: Some(HeaderSum { at: 24 }),
            balance_at: Some(42),
        }
    }
}
