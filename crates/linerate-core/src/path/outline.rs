//! What a path is before it is built, beside its elements: the link that it names, the MTU that is
//! usual there, how much it holds at most, and a line of text about it.
//!
//! Left out: what the elements do with packets.

use std::time::Duration;

use super::facts::{SIDE_QUEUE_PACKETS, named_line, parse_rate};
use super::{DirectionFacts, Limit, PathProblem};
use crate::record::PathPlan;
use crate::units::BitRate;

/// Rate, delay and queue of one direction of a path, from which memory for its packets is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The fastest that its packets ever enter the delay; absent where nothing limits them.
    pub rate: Option<BitRate>,
    /// Longest time that an element delays a packet beside queues.
    pub delay: Duration,
    /// Bytes of IP packets that all queues hold together.
    pub queue_bytes: u64,
    /// The MTU in messages to senders of longer packets; absent where none are sent.
    pub announced_mtu_bytes: Option<u32>,
}

impl PathPlan {
    /// The MTU that is usual for the path's links: 9180 for IP in cells, 4470 for packets on
    /// SONET, 1500 elsewhere; the smaller one of two directions.
    pub fn mtu_bytes_usual(&self) -> u32 {
        let usual = |backward| {
            let line = named_line(&self.direction(backward)).ok().flatten();
            line.map_or(1500, |(link, carrier)| link.default_mtu_bytes(carrier))
        };
        usual(false).min(usual(true))
    }

    /// The loads of the two directions, for packets of up to `mtu_bytes`.
    pub fn direction_loads(&self, mtu_bytes: u32) -> Result<[Load; 2], PathProblem> {
        let [there, back] = self.direction_facts()?;
        Ok([
            self.direction_load(false, &there, mtu_bytes)?,
            self.direction_load(true, &back, mtu_bytes)?,
        ])
    }

    fn direction_load(
        &self,
        backward: bool,
        facts: &DirectionFacts,
        mtu_bytes: u32,
    ) -> Result<Load, PathProblem> {
        let plan = self.direction(backward);
        let steps = plan.steps.iter().map(|step| parse_rate("steps.rate", &step.rate));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let members = plan.trunk.iter().map(|text| parse_rate("trunk", text));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let sum = members.iter().map(|member| member.bits_per_sec()).sum();
        let line = match members.is_empty() {
            true => facts.rate.into_iter().chain(steps).max(),
            false => Some(BitRate::from_bits_per_sec(sum)),
        };
        let shaper = if plan.shaper.is_some() { SIDE_QUEUE_PACKETS } else { 0 };
        let waiting = match facts.buffer {
            Limit::Bytes(bytes) => bytes.saturating_mul(members.len().max(1) as u64),
            Limit::Packets(packets) => packets.saturating_mul(u64::from(mtu_bytes)),
        };
        // A device on the way has a queue of the link's length.
        let queues = if plan.packets_per_sec.is_some() { 2 } else { 1 };
        let shaper_bytes = shaper * u64::from(mtu_bytes);
        Ok(Load {
            rate: line,
            delay: facts.delay,
            queue_bytes: waiting.saturating_mul(queues).saturating_add(shaper_bytes),
            announced_mtu_bytes: plan.mtu_bytes.filter(|_| plan.mtu_silent != Some(true)),
        })
    }

    /// The path in a line: `622.08 Mbit/s oc12 aal5-llcsnap, 22.5 ms, loss 0.1%`; both directions
    /// where they differ.
    pub fn outline(&self) -> String {
        let [there, back] = [self.direction(false), self.direction(true)];
        match (there.outline_one(), back.outline_one()) {
            (there, back) if there == back => there,
            (there, back) => format!("{there} | {back}"),
        }
    }

    fn outline_one(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        match named_line(self) {
            Ok(Some((link, _))) if self.link.is_none() => parts.push(link.bit_rate().to_string()),
            Ok(Some((link, carrier))) => {
                parts.push(format!("{} {link} {carrier}", link.bit_rate()));
            }
            _ if self.trace.is_some() => parts.push("trace".to_owned()),
            _ if !self.trunk.is_empty() => parts.push(format!("trunk {}", self.trunk.join(" + "))),
            _ => {}
        }
        let said = [
            ("", &self.delay),
            ("loss ", &self.loss),
            ("bit errors ", &self.bit_errors),
            ("buffer ", &self.buffer),
            ("duplicates ", &self.duplicate),
            ("corruption ", &self.corrupt),
        ];
        let said = said.iter().filter_map(|(name, text)| Some(format!("{name}{}", text.as_ref()?)));
        parts.extend(said);
        parts.extend(self.outline_flags().into_iter().map(str::to_owned));
        if parts.is_empty() {
            "emulated, as fast as the machine".to_owned()
        } else {
            parts.join(", ")
        }
    }

    /// Names of the keys whose values are too long for a line.
    fn outline_flags(&self) -> Vec<&'static str> {
        let set = [
            ("queue", self.queue.is_some()),
            ("jitter", self.jitter.is_some()),
            ("reordering", self.reorder.is_some()),
            ("burst loss", self.burst_loss.is_some()),
            ("cell loss", self.cell_loss.is_some()),
            ("listed loss", !self.lose.is_empty()),
            ("outages", !self.outages.is_empty()),
            ("steps", !self.steps.is_empty()),
            ("route change", !self.delay_steps.is_empty()),
            ("batches", self.batch.is_some()),
            ("bad trunk member", !self.trunk_loss.is_empty()),
            ("duplex mismatch", self.duplex_mismatch.is_some()),
            ("policer", self.policer.is_some()),
            ("shaper", self.shaper.is_some()),
            ("packet rate", self.packets_per_sec.is_some()),
            ("cross traffic", !self.cross.is_empty()),
            ("half duplex", self.half_duplex == Some(true)),
            ("netem", self.is_netem()),
            ("MTU limit", self.mtu_bytes.is_some()),
            ("black hole", self.mtu_silent == Some(true)),
        ];
        set.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_plan(text: &str) -> PathPlan {
        crate::tree::from_toml(text).expect("a path")
    }

    #[test]
    fn a_link_may_end_in_the_name_of_its_carrier() {
        let short = parse_plan("link = \"oc12-atm\"").direction_facts().expect("a path");
        let long = parse_plan("link = \"oc12\"\ncarrier = \"aal5-llcsnap\"")
            .direction_facts()
            .expect("a path");
        assert_eq!(short, long);
        assert_eq!(parse_plan("link = \"oc12-atm\"").mtu_bytes_usual(), 9180);
        assert_eq!(parse_plan("link = \"oc3-pos\"").mtu_bytes_usual(), 4470);
        assert_eq!(parse_plan("link = \"ds3-atm\"").mtu_bytes_usual(), 9180);
        assert_eq!(parse_plan("rate = \"10 Mbit/s\"").mtu_bytes_usual(), 1500);
        assert_eq!(parse_plan("delay = \"1 ms\"").mtu_bytes_usual(), 1500);
        let wrong = parse_plan("link = \"oc13-atm\"")
            .direction_facts()
            .expect_err("no such link")
            .to_string();
        assert!(wrong.starts_with("link: \"oc13-atm\""), "{wrong}");
    }

    #[test]
    fn the_fastest_of_all_rates_and_all_queues_are_held() {
        let path = "rate = \"10 Mbit/s\"\nbuffer = \"10 kB\"\ndelay = \"20 ms\"\n\
                    steps = [{ at = \"1 s\", rate = \"80 Mbit/s\" }]\npackets_per_s = 100";
        let [there, back] = parse_plan(path).direction_loads(1500).expect("a path");
        assert_eq!(there, back);
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(80_000_000)));
        // 10,000 bytes before the link, and as many before the device.
        assert_eq!((there.queue_bytes, there.delay.as_millis()), (20_000, 20));
        let trunk = "trunk = [\"10 Mbit/s\", \"20 Mbit/s\"]\nbuffer = \"10 kB\"";
        let [there, _] = parse_plan(trunk).direction_loads(1500).expect("a path");
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(30_000_000)));
        assert_eq!(there.queue_bytes, 20_000);
    }

    #[test]
    fn a_path_is_told_in_a_line_and_in_two_halves_where_they_differ() {
        let text = "link = \"oc12-atm\"\ndelay = \"22.5 ms\"\nloss = \"0.1%\"";
        assert_eq!(
            parse_plan(text).outline(),
            "622.08 Mbit/s oc12 aal5-llcsnap, 22.5 ms, loss 0.1%"
        );
        let text = "rate = \"10 Mbit/s\"\nbackward = { delay = \"1 ms\", queue = \"red\" }";
        assert_eq!(parse_plan(text).outline(), "10 Mbit/s | 10 Mbit/s, 1 ms, queue");
        assert_eq!(parse_plan("").outline(), "emulated, as fast as the machine");
    }
}
