//! A path as the kernel's netem would be told of it (tc-netem(8), net/sched/sch_netem.c).
//!
//! netem is one queue that delays, loses and spaces packets, so only some keys of a path have a
//! meaning for it; any other is refused, and nothing is put in the place of what was asked. Left
//! out: correlations, slots and tables of distributions. It counts a frame on the line as long as
//! it is: the least length of Ethernet is not in it.

use std::time::Duration;

use super::facts::{PathProblem, parse_delay, parse_share, problem, spread};
use super::{DirectionFacts, Framing, Limit, Spread};
use crate::record::{Datapath, PathPlan, QueuePlan};
use crate::theory::atm::{AAL5_TRAILER_BYTES, CELL_BYTES, CELL_PAYLOAD_BYTES};
use crate::theory::framing::HEADER_BYTES;

/// Least packets that netem holds: tc's default.
const LIMIT_PACKETS_MIN: u64 = 1000;
/// Rate whose packets a direction without a rate holds for its delay.
const RATE_MAX_BPS: u64 = 10_000_000_000;
/// netem takes twice the jitter as 32 bits of nanoseconds.
const JITTER_MAX: Duration = Duration::from_secs(2);

/// Parameters of netem for one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Netem {
    /// Delay of every packet; with jitter the mean.
    pub latency: Duration,
    /// Packets are this much earlier or later at the most, evenly.
    pub jitter: Duration,
    /// Share of packets lost.
    pub loss: f64,
    /// Share of packets sent twice.
    pub duplicate: f64,
    /// Share of packets with a changed bit.
    pub corrupt: f64,
    /// Packets that it holds, under way and waiting.
    pub limit_packets: u32,
    /// The line that packets are sent on; none is as fast as the machine.
    pub rate: Option<NetemRate>,
    /// Seed of its losses and damage, for kernels that take one (Linux 6.7).
    pub seed: u64,
}

/// The line of a netem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetemRate {
    /// Whole bytes in a second.
    pub bytes_per_s: u64,
    /// Bytes that a packet takes besides its frame without check sequence.
    pub packet_overhead_bytes: i32,
    /// Payload of a cell; 0 where there are none.
    pub cell_bytes: u32,
    /// Header of a cell.
    pub cell_overhead_bytes: i32,
}

impl PathPlan {
    /// True when the kernel's netem is to carry the path.
    pub fn is_netem(&self) -> bool {
        self.emulator == Some(Datapath::Netem)
    }

    /// Both directions for netem, for packets of up to `mtu_bytes`.
    /// # Errors
    /// The first key that cannot be built, or that netem does not know.
    pub fn netem_settings(&self, mtu_bytes: u32) -> Result<[Netem; 2], PathProblem> {
        let facts = self.direction_facts()?;
        let one = |backward: bool| {
            let plan = self.direction(backward);
            direction_netem(&plan, &facts[usize::from(backward)], mtu_bytes)
                .map_err(|problem| self.placed(problem, backward))
        };
        Ok([one(false)?, one(true)?])
    }
}

fn direction_netem(
    plan: &PathPlan,
    facts: &DirectionFacts,
    mtu_bytes: u32,
) -> Result<Netem, PathProblem> {
    if let Some(key) = beyond_netem(plan) {
        let reason = "netem does not know it: leave it out, or leave out `emulator`";
        return Err(problem(key, reason));
    }
    let optional = |key: &str, text: &Option<String>| match text {
        Some(text) => parse_share(key, text),
        None => Ok(0.0),
    };
    let delay =
        plan.delay.as_deref().map_or(Ok(Duration::ZERO), |text| parse_delay("delay", text))?;
    let jitter = half_spread(plan)?;
    Ok(Netem {
        latency: delay + jitter,
        jitter,
        loss: optional("loss", &plan.loss)?,
        duplicate: optional("duplicate", &plan.duplicate)?,
        corrupt: optional("corrupt", &plan.corrupt)?,
        limit_packets: netem_limit(facts, mtu_bytes),
        rate: facts.rate.map(|rate| netem_rate(rate.bits_per_sec() / 8, facts.framing)),
        seed: plan.seed.unwrap_or(1),
    })
}

/// The first key of the plan that netem has nothing for.
fn beyond_netem(plan: &PathPlan) -> Option<&'static str> {
    // All keys by name, so that a new one has to find its place here.
    let PathPlan {
        seed: _,
        emulator: _,
        forward: _,
        backward: _,
        link: _,
        carrier: _,
        rate: _,
        buffer: _,
        delay: _,
        jitter: _,
        loss: _,
        duplicate: _,
        corrupt: _,
        steps,
        trace,
        trunk,
        trunk_loss,
        half_duplex,
        duplex_mismatch,
        queue,
        ecn,
        delay_steps,
        batch,
        reorder,
        burst_loss,
        bit_errors,
        cell_loss,
        lose,
        outages,
        mtu_bytes,
        mtu_silent,
        policer,
        shaper,
        packets_per_sec,
        cross,
    } = plan;
    let set = [
        ("steps", !steps.is_empty()),
        ("trace", trace.is_some()),
        ("trunk", !trunk.is_empty()),
        ("trunk_loss", !trunk_loss.is_empty()),
        ("half_duplex", *half_duplex == Some(true)),
        ("duplex_mismatch", duplex_mismatch.is_some()),
        ("queue", queue.is_some_and(|queue| queue != QueuePlan::Tail)),
        ("ecn", *ecn == Some(true)),
        ("delay_steps", !delay_steps.is_empty()),
        ("batch", batch.is_some()),
        ("reorder", reorder.is_some()),
        ("burst_loss", burst_loss.is_some()),
        ("bit_errors", bit_errors.is_some()),
        ("cell_loss", cell_loss.is_some()),
        ("lose", !lose.is_empty()),
        ("outages", !outages.is_empty()),
        ("mtu_bytes", mtu_bytes.is_some()),
        ("mtu_silent", mtu_silent.is_some()),
        ("policer", policer.is_some()),
        ("shaper", shaper.is_some()),
        ("packets_per_sec", packets_per_sec.is_some()),
        ("cross", !cross.is_empty()),
    ];
    set.into_iter().find(|(_, set)| *set).map(|(key, _)| key)
}

/// Half of an even jitter from 0: netem has it around its delay.
fn half_spread(plan: &PathPlan) -> Result<Duration, PathProblem> {
    let Some(jitter) = &plan.jitter else { return Ok(Duration::ZERO) };
    let Spread::Uniform { most } = spread(jitter)? else {
        return Err(problem("jitter.mean", "netem has an even jitter: give `most`"));
    };
    if !jitter.reorder {
        let reason =
            "netem's jitter reorders packets: set `reorder = true`, or leave out `emulator`";
        return Err(problem("jitter", reason));
    }
    if most > 2 * JITTER_MAX {
        return Err(problem("jitter.most", "more than the 4 s that netem can do"));
    }
    Ok(most / 2)
}

/// Packets under way and waiting; they are counted as full ones.
fn netem_limit(facts: &DirectionFacts, mtu_bytes: u32) -> u32 {
    let full = u128::from(mtu_bytes.max(1));
    let bps = facts.rate.map_or(RATE_MAX_BPS, |rate| rate.bits_per_sec());
    let under_way = u128::from(bps) * facts.delay.as_nanos() / 8_000_000_000;
    let packets = match facts.buffer {
        Limit::Packets(packets) => under_way.div_ceil(full) + u128::from(packets),
        Limit::Bytes(bytes) => (under_way + u128::from(bytes)).div_ceil(full),
    };
    let least = if facts.rate.is_none() { LIMIT_PACKETS_MIN } else { 1 };
    u32::try_from(packets.max(u128::from(least))).unwrap_or(u32::MAX)
}

fn netem_rate(bytes_per_s: u64, framing: Framing) -> NetemRate {
    // netem sees the packet with its Ethernet header.
    let besides = |bytes: u32| bytes.cast_signed() - HEADER_BYTES.cast_signed();
    let (packet_overhead_bytes, cells) = match framing {
        Framing::Ip => (besides(0), false),
        Framing::Frame { header_bytes, outside_bytes, .. } => {
            (besides(header_bytes + outside_bytes), false)
        }
        Framing::Aal5 { header_bytes } => (besides(header_bytes + AAL5_TRAILER_BYTES), true),
    };
    NetemRate {
        bytes_per_s,
        packet_overhead_bytes,
        cell_bytes: if cells { CELL_PAYLOAD_BYTES } else { 0 },
        cell_overhead_bytes: if cells {
            (CELL_BYTES - CELL_PAYLOAD_BYTES).cast_signed()
        } else {
            0
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_plan(text: &str) -> PathPlan {
        crate::tree::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_gigabit_of_21_ms_is_latency_line_and_room_for_both_products() {
        let text =
            "emulator = \"netem\"\nrate = \"1 Gbit/s\"\ndelay = \"10.5 ms\"\nloss = \"1e-4\"";
        let [there, back] = parse_plan(text).netem_settings(1500).expect("netem can");
        assert_eq!(there, back);
        assert_eq!((there.latency, there.jitter), (Duration::from_micros(10_500), Duration::ZERO));
        assert!((there.loss - 1e-4).abs() < 1e-12 && there.duplicate == 0.0 && there.seed == 1);
        // 10^9 / 8; 18 + 20 bytes of Ethernet around the packet, 14 of them seen.
        let line = NetemRate {
            bytes_per_s: 125_000_000,
            packet_overhead_bytes: 24,
            cell_bytes: 0,
            cell_overhead_bytes: 0,
        };
        assert_eq!(there.rate, Some(line));
        // (1,312,500 under way + 2,625,000 waiting) / 1500.
        assert_eq!(there.limit_packets, 2625);
    }

    #[test]
    fn cells_are_counted_as_the_path_counts_them() {
        let [there, _] = parse_plan("link = \"oc12-atm\"").netem_settings(9180).expect("netem can");
        let line = there.rate.expect("a line");
        assert_eq!((line.cell_bytes, line.cell_overhead_bytes), (48, 5));
        // What netem does: a frame of 9194 and the overhead, in whole cells: 9196 in 192.
        let bytes = 9194 + line.packet_overhead_bytes;
        assert_eq!(bytes, 9196);
        let framing = Framing::Aal5 { header_bytes: 8 };
        assert_eq!(bytes.cast_unsigned().div_ceil(48) * 53, framing.line_bytes(9180));
        assert_eq!(line.bytes_per_s, 599_040_000 / 8);
    }

    #[test]
    fn jitter_is_around_the_delay_and_a_buffer_in_packets_is_one() {
        let text = "delay = \"10 ms\"\njitter = { most = \"4 ms\", reorder = true }\n\
                    rate = \"12 Mbit/s\"\nbuffer = \"100 packets\"";
        let [there, _] = parse_plan(text).netem_settings(1500).expect("netem can");
        assert_eq!((there.latency.as_millis(), there.jitter.as_millis()), (12, 2));
        // 12 Mbit/s x 14 ms = 21,000 bytes, 14 packets.
        assert_eq!(there.limit_packets, 114);
        let [free, _] = parse_plan("delay = \"10 ms\"").netem_settings(1500).expect("netem can");
        // 10 Gbit/s x 10 ms = 12.5 MB, 8334 packets, and 1000.
        assert_eq!((free.rate, free.limit_packets), (None, 9334));
    }

    #[test]
    fn what_netem_does_not_know_is_refused_by_its_key() {
        let cases = [
            ("rate = \"1M\"\nqueue = \"red\"", "queue: netem does not know it"),
            ("burst_loss = { ratio = \"1%\", burst_packets = 4 }", "burst_loss: netem does not"),
            ("backward = { mtu_bytes = 1400 }", "backward.mtu_bytes: netem does not know it"),
            ("jitter = { most = \"1 ms\" }", "jitter: netem's jitter reorders packets"),
            ("jitter = { mean = \"1 ms\" }", "jitter.mean: netem has an even jitter"),
            ("jitter = { most = \"5 s\", reorder = true }", "jitter.most: more than the 4 s"),
        ];
        for (text, begin) in cases {
            let line = parse_plan(text).netem_settings(1500).expect_err(text).to_string();
            assert!(line.starts_with(begin), "{line}");
        }
    }
}
