//! Planted mechanisms with random parameters, probed in virtual time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Background, Findings, Overflow, mechanism};
use crate::explain::probing_tests::{Schedule, probe};
use crate::path::Random;
use crate::record::{DatagramTrain, Direction, PathPlan};
use crate::stats::{Z_95, wilson_interval};

/// Mechanisms that are planted.
pub(in crate::explain) const KINDS: [&str; 7] =
    ["bytes", "packets", "policer", "pps", "random", "bursts", "shaper"];

/// A path with this mechanism and random parameters, as TOML.
pub(in crate::explain) fn planted(kind: &str, seed: u64, cross: bool, top_mbps: f64) -> String {
    let mut random = Random::new(seed, 77);
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.next_uniform());
    let mbps = between(10.0, top_mbps);
    let delay_ms = between(5.0, 40.0);
    let mut text = format!("seed = {seed}\ndelay = \"{delay_ms:.2} ms\"\n[forward]\n");
    let _ = writeln!(text, "rate = \"{mbps:.3} Mbit/s\"");
    let deep = (mbps * delay_ms * 2.0 * 125.0).max(150_000.0);
    let share = between(0.15, 0.65);
    let (room, part) = (between(4.0, 50.0), between(0.003, 0.03));
    let key = match kind {
        "bytes" => format!("buffer = \"{:.0} B\"", room * 1500.0),
        "packets" => format!("buffer = \"{room:.0} packets\""),
        "pps" => {
            let pps = share * mbps * 1e6 / 12_000.0;
            format!("packets_per_sec = {pps:.0}\nbuffer = \"{:.0} packets\"", room.max(8.0))
        }
        "policer" | "shaper" => {
            let burst = between(10_000.0, 150_000.0);
            format!(
                "buffer = \"{deep:.0} B\"\n{kind} = {{ rate = \"{:.3} Mbit/s\", \
                 burst = \"{burst:.0} B\" }}",
                mbps * share
            )
        }
        "random" => format!("buffer = \"{deep:.0} B\"\nloss = \"{part:.5}\""),
        _ => format!(
            "buffer = \"{deep:.0} B\"\nburst_loss = {{ ratio = \"{part:.5}\", \
             burst_packets = {:.2} }}",
            between(2.0, 8.0)
        ),
    };
    let _ = writeln!(text, "{key}");
    if cross {
        let _ =
            writeln!(text, "cross = [{{ rate = \"{:.3} Mbit/s\", poisson = true }}]", mbps * 0.2);
    }
    text
}

/// What was found, by the names of what is planted.
fn named(found: &Findings) -> &'static str {
    match (found.background, found.overflow) {
        (Some(Background::Random { .. }), _) => "random",
        (Some(Background::Bursts { .. }), _) => "bursts",
        _ if found.shaper.is_some() => "shaper",
        (_, Some(Overflow::ByteBuffer { .. })) => "bytes",
        (_, Some(Overflow::PacketBuffer { .. })) => "packets",
        (_, Some(Overflow::Policer { .. })) => "policer",
        (_, Some(Overflow::PacketRate { .. })) => "pps",
        _ => "none",
    }
}

/// The size that was found of what was planted, over its own: room, or share of packets.
fn size(kind: &str, text: &str, found: &Findings) -> Option<f64> {
    let path: PathPlan = crate::tree::from_toml(text).expect("a path");
    let path = path.forward.expect("it has one");
    let number = |text: &str| {
        text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).expect("a number")
    };
    let room = || number(path.buffer.as_deref().expect("a buffer"));
    match (kind, found.overflow, found.background) {
        ("bytes", Some(Overflow::ByteBuffer { bytes }), _) => Some(bytes.value / room()),
        ("packets", Some(Overflow::PacketBuffer { packets }), _) => Some(packets.value / room()),
        ("pps", Some(Overflow::PacketRate { packets_per_s, .. }), _) => {
            Some(packets_per_s.value / path.packets_per_sec.expect("a rate") as f64)
        }
        ("policer", Some(Overflow::Policer { rate_bps, .. }), _) => {
            Some(rate_bps.value / 1e6 / number(&path.policer.expect("a policer").rate))
        }
        ("random", _, Some(Background::Random { ratio })) => {
            Some(ratio.value / number(&path.loss.expect("a loss")))
        }
        ("bursts", _, Some(Background::Bursts { ratio, .. })) => {
            Some(ratio.value / number(&path.burst_loss.expect("bursts").ratio))
        }
        _ => {
            let shaper = found.shaper.filter(|_| kind == "shaper")?;
            Some(shaper.rate_bps / 1e6 / number(&path.shaper.expect("a shaper").rate))
        }
    }
}

fn found(text: &str, schedule: Schedule) -> Findings {
    let path: PathPlan = crate::tree::from_toml(text).expect("a path");
    mechanism(&probe(&path, false, schedule), Direction::Up).expect("packets")
}

#[test]
fn each_planted_mechanism_is_found() {
    let mut right = 0;
    let mut said = String::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let text = planted(kind, 11 + number as u64, number % 2 == 0, 20.0);
        let found = found(&text, Schedule::SHORT);
        right += usize::from(named(&found) == kind);
        let _ = writeln!(said, "{kind}: {} {:?} {:?}", named(&found), found.overflow, found.states);
    }
    assert!(right >= 6, "{right} of 7:\n{said}");
}

/// The long trial: `LINERATE_TRIAL_SEED=5 LINERATE_TRIAL_PATHS=40 cargo test --profile demo
/// -p linerate-core --lib mechanism::trial -- --ignored --nocapture`.
#[test]
#[ignore = "nightly: minutes, the whole trial, which prints its table"]
fn the_table_of_planted_and_found_mechanisms() {
    let number = |name, usual| {
        std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok()).unwrap_or(usual)
    };
    let (seed, paths) = (number("LINERATE_TRIAL_SEED", 5), number("LINERATE_TRIAL_PATHS", 40));
    for cross in [false, true] {
        let mut table: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        let (mut right, mut all) = (0, 0);
        let mut sizes = [const { Vec::new() }; KINDS.len()];
        for (row, kind) in KINDS.into_iter().enumerate() {
            for path in 0..paths {
                let text = planted(kind, seed * 100_000 + row as u64 * 1000 + path, cross, 200.0);
                let found = found(&text, Schedule::WHOLE);
                let name = named(&found);
                *table.entry((row, name)).or_default() += 1;
                (right, all) = (right + u64::from(name == kind), all + 1);
                sizes[row].extend(size(kind, &text, &found));
                if name != kind {
                    println!("{kind} is {name}: {}\n  {found:?}", text.replace('\n', "; "));
                }
            }
        }
        let wilson = wilson_interval(right, all, Z_95).expect("trials");
        println!("seed {seed}, other traffic {cross}: {right} of {all}, {wilson:?}");
        for (row, kind) in KINDS.into_iter().enumerate() {
            let cells: Vec<String> = table
                .iter()
                .filter(|((of, _), _)| *of == row)
                .map(|((_, name), count)| format!("{name} {count}"))
                .collect();
            sizes[row].sort_by(f64::total_cmp);
            let of = |share: usize| sizes[row].get(share * sizes[row].len() / 20).copied();
            let spread = [1, 10, 19].map(|share| of(share).unwrap_or(0.0));
            println!("{kind:8} {:40} size over planted {spread:.3?}", cells.join(", "));
        }
        assert!(right as f64 >= 0.9 * all as f64);
    }
}

/// Rates, ways and seeds of the trials of trains alone.
fn trials() -> impl Iterator<Item = (f64, f64, u64)> {
    let rates = [4.0, 10.0, 25.0, 60.0, 150.0].into_iter();
    rates
        .flat_map(|mbps| [5.0, 20.0].map(|ms| (mbps, ms)))
        .flat_map(|(mbps, delay_ms)| (1..=3).map(move |seed| (mbps, delay_ms, seed)))
}

/// What the tail of every train overruns is a queue, however many packets in a row it loses; with
/// the paced probes of a quick survey, which do not fill it, and without any.
#[test]
fn a_queue_that_trains_overrun_at_their_tail_is_no_burst_loss() {
    for (schedule, seeds) in [(Schedule::TRAINS, 1..=3), (Schedule::QUICK, 2..=2)] {
        let (mut right, mut all, mut said) = (0, 0, String::new());
        for (mbps, delay_ms, seed) in trials().filter(|trial| seeds.contains(&trial.2)) {
            for (at, packets) in [20, 35, 50, 62, 80].into_iter().enumerate() {
                let room = match (at + usize::try_from(seed).expect("small")) % 2 {
                    0 => format!("{packets} packets"),
                    _ => format!("{} B", packets * 1500),
                };
                let text = format!(
                    "seed = {seed}\ndelay = \"{delay_ms} ms\"\n[forward]\n\
                     rate = \"{mbps} Mbit/s\"\nbuffer = \"{room}\"\n"
                );
                let found = found(&text, schedule);
                let is_right = is_queue(&found, f64::from(packets));
                (right, all) = (right + u32::from(is_right), all + 1);
                if !is_right {
                    let _ = writeln!(
                        said,
                        "{mbps} {delay_ms} {room} {seed}: lost {} {:?} {:?} {:?}",
                        found.lost, found.overflow, found.background, found.states
                    );
                }
            }
        }
        println!("queues, {schedule:?}: {right} of {all}\n{said}");
        assert!(f64::from(right) >= 0.97 * f64::from(all), "{right} of {all}:\n{said}");
    }
}

/// Whether a queue of so many packets was found, and nothing else; nothing where too few were lost.
fn is_queue(found: &Findings, packets: f64) -> bool {
    match (found.background, found.overflow) {
        (None, Some(Overflow::ByteBuffer { bytes })) => {
            (bytes.value / 1500.0 / packets - 1.0).abs() < 0.1
        }
        (None, Some(Overflow::PacketBuffer { packets: room })) => {
            (room.value / packets - 1.0).abs() < 0.1
        }
        (None, None) => found.lost < super::LOSSES_MIN,
        _ => false,
    }
}

/// Losses in a row that come at any place of a train are bursts (Gilbert and Elliott).
#[test]
fn bursts_of_loss_in_trains_alone_are_still_named() {
    let (mut right, mut all, mut said) = (0, 0, String::new());
    for (mbps, delay_ms, seed) in trials() {
        for (ratio, burst_packets) in [(0.03, 4.0), (0.06, 8.0), (0.1, 13.0)] {
            let text = format!(
                "seed = {seed}\ndelay = \"{delay_ms} ms\"\n[forward]\n\
                 rate = \"{mbps} Mbit/s\"\nbuffer = \"300000 B\"\n\
                 burst_loss = {{ ratio = \"{ratio}\", burst_packets = {burst_packets} }}\n"
            );
            let found = found(&text, Schedule::TRAINS);
            if found.lost < super::LOSSES_MIN {
                continue;
            }
            let is_right = matches!(found.background, Some(Background::Bursts { .. }));
            (right, all) = (right + u32::from(is_right), all + 1);
            if !is_right {
                let _ = writeln!(
                    said,
                    "{mbps} {delay_ms} {ratio} x {burst_packets} {seed}: lost {} {:?} {:?} {:?}",
                    found.lost, found.overflow, found.background, found.states
                );
            }
        }
    }
    println!("bursts: {right} of {all}\n{said}");
    assert!(f64::from(right) >= 0.9 * f64::from(all), "{right} of {all}:\n{said}");
}

/// A queue of `room` packets before a device that takes so many nanoseconds for a packet of that
/// length, which stands still for 2 ms every 97 ms: what comes meanwhile enters the queue at once.
fn beside_pauses(room: usize, takes_ns: fn(u32) -> u64) -> Vec<DatagramTrain> {
    const MS: u64 = 1_000_000;
    // 20 trains of 64 packets back to back, then paced ones at half the rate, nearly all, and more.
    let mut plans: Vec<(u32, u64, u64)> =
        (0..20).map(|train| (if train % 2 == 0 { 1500 } else { 228 }, 4_000, 64)).collect();
    let paced = [(1500, 50), (1500, 90), (228, 50), (1500, 110)];
    plans.extend(paced.map(|(bytes, percent)| {
        let gap = takes_ns(bytes) * 100 / percent;
        (bytes, gap, 600 * MS / gap)
    }));
    let (mut inside, mut now) = (std::collections::VecDeque::new(), 0);
    plans
        .into_iter()
        .map(|(ip_bytes, gap, count)| {
            let started_ns = now;
            let sent_ns: Vec<u64> = (0..count).map(|packet| packet * gap).collect();
            let mut enter = |sent: &u64| {
                let at = started_ns + sent;
                let into = at % (97 * MS);
                let enters = if into < 2 * MS { at - into + 2 * MS } else { at };
                while inside.front().is_some_and(|&leaves| leaves <= enters) {
                    inside.pop_front();
                }
                // One on the device, the others wait.
                let fits = inside.len() <= room;
                fits.then(|| {
                    let leaves = inside.back().map_or(enters, |&last| enters.max(last));
                    let leaves = leaves + takes_ns(ip_bytes);
                    inside.push_back(leaves);
                    (leaves - started_ns + 10 * MS).cast_signed()
                })
            };
            let arrived_ns = sent_ns.iter().map(&mut enter).collect();
            now += sent_ns.last().map_or(0, |last| last + 150 * MS);
            let offered_bps = (gap > 4_000).then(|| f64::from(ip_bytes) * 8e9 / gap as f64);
            DatagramTrain {
                direction: Direction::Up,
                ip_bytes,
                offered_bps,
                started_ns,
                sent_ns,
                arrived_ns,
                socket_drops: Some(0),
            }
        })
        .collect()
}

#[test]
fn a_device_that_stands_still_for_a_moment_is_no_burst_loss() {
    // 100 Mbit/s with 38 bytes of Ethernet: a pause of 2 ms lets 16 long packets in at once.
    let link = |ip_bytes: u32| u64::from(ip_bytes + 38) * 80;
    let trains = beside_pauses(6, link);
    let half = &trains[20];
    assert!(half.arrived_ns.iter().any(Option::is_none), "the plant: losses at half the rate");
    let found = mechanism(&trains, Direction::Up).expect("trains");
    assert_eq!(named(&found), "packets", "{found:?}");
    // 1 % of packets lost before a queue of 40 are lost at random, beside such pauses too.
    let mut lossy = beside_pauses(40, link);
    let packets = lossy.iter_mut().flat_map(|train| &mut train.arrived_ns);
    packets.enumerate().filter(|(at, _)| at % 97 == 0).for_each(|(_, arrived)| *arrived = None);
    assert_eq!(named(&mechanism(&lossy, Direction::Up).expect("trains")), "random");
}

#[test]
fn a_device_that_takes_the_same_time_for_each_packet_is_one_beside_pauses_too() {
    let trains = beside_pauses(16, |_| 500_000);
    let found = mechanism(&trains, Direction::Up).expect("trains");
    let Some(Overflow::PacketRate { packets_per_s, .. }) = found.overflow else {
        panic!("{found:?}");
    };
    assert!((packets_per_s.value / 2000.0 - 1.0).abs() < 0.02, "{packets_per_s:?}");
}

#[test]
fn a_train_of_which_nothing_arrived_is_an_outage_and_no_loss() {
    let mut trains = beside_pauses(10_000, |ip_bytes| u64::from(ip_bytes + 38) * 80);
    trains[5].arrived_ns.fill(None);
    let found = mechanism(&trains, Direction::Up).expect("trains");
    assert_eq!((found.lost, named(&found)), (64, "none"), "{found:?}");
}
