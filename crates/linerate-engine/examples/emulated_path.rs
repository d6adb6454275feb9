//! Two hosts with an emulated path between them, for `bench/path`: 10.9.0.1 and 10.9.0.2.
//!
//!     emulated_path RATE_BPS DELAY_US QUEUE_BYTES MTU_BYTES [QUANTUM_US [ordinary]]
//!
//! Rate 0 is no line, delay 0 no delay, both in each direction; a quantum of `-` is the usual one.
//! Prints the files of the two namespaces (for nsenter(1)) in one line, waits for the end of its
//! input, and prints a line of JSON on how it went.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use linerate_core::path::{Delay, Element, Framing, Limit, Pipeline, QueuedLink, TailDrop};
use linerate_core::units::BitRate;
use linerate_engine::path::{
    DirectionReport, EmulatedDirection, EmulatedEnd, Emulator, EmulatorPlan,
};
use linerate_sys::netns::Netns;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [rate, delay, queue, mtu, rest @ ..] = &args[..] else {
        return Err("emulated_path RATE_BPS DELAY_US QUEUE_BYTES MTU_BYTES [QUANTUM_US]".into());
    };
    let (rate, delay) = (rate.parse()?, Duration::from_micros(delay.parse()?));
    let (queue, mtu_bytes) = (queue.parse()?, mtu.parse()?);
    let quantum = rest.first().and_then(|text| text.parse().ok()).map(Duration::from_micros);
    let hosts = [Netns::new()?, Netns::new()?];
    let end = |host: usize| EmulatedEnd {
        mtu_bytes,
        addresses: vec![([10, 9, 0, host as u8 + 1].into(), 24)],
        ..EmulatedEnd::new(Some(&hosts[host]), "path0")
    };
    let direction = || EmulatedDirection { quantum, ..direction(rate, delay, queue) };
    let mut plan = EmulatorPlan::new([end(0), end(1)], [direction(), direction()]);
    plan.real_time = rest.get(1).is_none_or(|word| word != "ordinary");
    let emulator = Emulator::start(plan)?;
    let pid = std::process::id();
    let [one, two] = hosts.each_ref().map(|host| host.as_fd().as_raw_fd());
    let mut output = File::options().write(true).open("/dev/stdout")?;
    writeln!(output, "/proc/{pid}/fd/{one} /proc/{pid}/fd/{two}")?;
    std::io::read_to_string(std::io::stdin())?;
    let report = emulator.stop();
    let share = report.cpu.map(|cpu| cpu.as_secs_f64() / report.ran.as_secs_f64());
    let [forward, backward] = report.directions.each_ref().map(direction_json);
    let line = json!({
        "forward": forward, "backward": backward, "cpu_share": share,
        "cpu_s": report.cpu.map(|cpu| cpu.as_secs_f64()),
        "run_queue_wait_s": report.run_queue_wait.map(|wait| wait.as_secs_f64()),
        "real_time": report.real_time, "locked": report.locked,
        "memory_bytes": report.memory_bytes, "faults": report.faults(),
    });
    writeln!(output, "{line}")?;
    Ok(())
}

fn direction(rate_bps: u64, delay: Duration, queue_bytes: u64) -> EmulatedDirection {
    let rate = (rate_bps > 0).then(|| BitRate::from_bits_per_sec(rate_bps));
    let mut elements: Vec<Box<dyn Element>> = Vec::new();
    if let Some(rate) = rate {
        elements.push(Box::new(QueuedLink::new(
            rate,
            Framing::ETHERNET,
            TailDrop::new(Limit::Bytes(queue_bytes)),
        )));
    }
    if !delay.is_zero() {
        elements.push(Box::new(Delay::new(delay)));
    }
    let pipeline = Pipeline::new(elements);
    EmulatedDirection {
        pipeline,
        rate,
        delay_max: delay,
        queue_bytes,
        ..EmulatedDirection::default()
    }
}

fn direction_json(direction: &DirectionReport) -> Value {
    let counters = &direction.counters;
    let lateness_us = |share| Some(direction.lateness_ns.quantile(share)? as f64 / 1e3);
    json!({
        "taken_packets": counters.taken_packets, "delivered_packets": counters.delivered_packets,
        "delivered_bytes": counters.delivered_bytes, "lost_packets": counters.lost_packets(),
        "reads": counters.reads, "writes": counters.writes, "late_packets": counters.late_packets,
        "unread_packets": direction.unread_packets, "quantum_us": direction.quantum.as_micros(),
        "lateness_p50_us": lateness_us(0.5), "lateness_p99_us": lateness_us(0.99),
        "lateness_max_us": counters.lateness_max_ns as f64 / 1e3,
    })
}
