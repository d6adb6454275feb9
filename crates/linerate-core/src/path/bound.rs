//! The most packets a second that a path lets through, for packets of one length.
//!
//! Left out: policers and shapers, whose bursts go beyond their rates; cross traffic, loss and a
//! shared medium, which take from it; traces.

use super::Framing;
use super::PathProblem;
use super::facts::{named_line, parse_rate, problem};
use crate::record::{KnownPath, PathPlan};
use crate::theory::framing::{FramingCeiling, GAP_BYTES, PREAMBLE_BYTES};
use crate::units::BitRate;

/// A bound of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Packets of the given length in a second.
    pub packets_per_s: f64,
    /// The rate that bounds, as its link counts; absent where a device counts packets.
    pub rate: Option<BitRate>,
    /// Bytes that a packet takes on that link; those of the IP packet where there is none.
    pub line_bytes: u32,
    /// Name of the bound: `oc12 aal5-llcsnap`, `trunk`, `packets a second`.
    pub what: String,
}

impl Bound {
    /// Rates at each layer for packets of the given length, which carry so much payload. On lines
    /// without frames of Ethernet the frame is all that the packet takes there.
    pub fn framing(&self, ip_bytes: u32, payload_bytes: u32) -> FramingCeiling {
        let bps = |bytes: u32| self.packets_per_s * f64::from(bytes) * 8.0;
        let around = if self.what.ends_with("ethernet") { PREAMBLE_BYTES + GAP_BYTES } else { 0 };
        FramingCeiling {
            payload_bps: bps(payload_bytes),
            ip_bps: bps(ip_bytes),
            frame_bps: bps(self.line_bytes - around),
            wire_bps: bps(self.line_bytes),
            frames_per_s: self.packets_per_s,
        }
    }
}

impl KnownPath {
    /// Packets of `ip_bytes` that the link and the capacity of the plan carry in a second; `None`
    /// where it has neither.
    ///
    /// 100 Mbit/s Ethernet carries 10^8 / (8 x 84) = 148,809 frames of 64 bytes, packets of 46.
    pub fn packets_per_s(&self, ip_bytes: u32) -> Option<f64> {
        let plan = PathPlan { link: self.link.clone(), ..PathPlan::default() };
        let link = plan
            .packet_rate_bound(false, ip_bytes, 1)
            .ok()
            .flatten()
            .map(|bound| bound.packets_per_s);
        let packet_bits = f64::from(ip_bytes.max(1)) * 8.0;
        let capacity = self.capacity_bps.map(|rate| rate.bits_per_sec() as f64 / packet_bits);
        link.into_iter().chain(capacity).reduce(f64::min)
    }
}

impl PathPlan {
    /// The lowest bound of `flows` streams of packets of `ip_bytes` in one direction; `None` where
    /// no element of the path has a rate.
    ///
    /// packets/s = rate / (8 × bytes on the line): 1 Gbit/s Ethernet and 1500 bytes give
    /// 10^9 / (8 × 1538) = 81,274.
    /// # Errors
    /// The first key that cannot be built, with the reason.
    pub fn packet_rate_bound(
        &self,
        backward: bool,
        ip_bytes: u32,
        flows: usize,
    ) -> Result<Option<Bound>, PathProblem> {
        let plan = self.direction(backward);
        let facts = self.direction_facts()?[usize::from(backward)];
        let line = match plan.trunk.is_empty() {
            true => facts.rate.map(|rate| (rate, facts.framing)),
            false => Some((trunk_rate(&plan, flows)?, Framing::ETHERNET)),
        };
        let steps = plan.steps.iter().map(|step| parse_rate("steps.rate", &step.rate));
        let fastest = steps.collect::<Result<Vec<_>, _>>()?.into_iter().max();
        let line = line.map(|(rate, framing)| {
            let rate = fastest.map_or(rate, |step| step.max(rate));
            let line_bytes = framing.line_bytes(ip_bytes);
            Bound {
                packets_per_s: rate.bits_per_sec() as f64 / 8.0 / f64::from(line_bytes),
                rate: Some(rate),
                line_bytes,
                what: line_name(&plan),
            }
        });
        let device = plan.packets_per_sec.map(|packets_per_s| Bound {
            packets_per_s: packets_per_s as f64,
            rate: None,
            line_bytes: ip_bytes,
            what: "packets a second".to_owned(),
        });
        let bounds = line.into_iter().chain(device);
        Ok(bounds.min_by(|one, other| one.packets_per_s.total_cmp(&other.packets_per_s)))
    }
}

/// A single flow has one member at most.
fn trunk_rate(plan: &PathPlan, flows: usize) -> Result<BitRate, PathProblem> {
    let members = plan.trunk.iter().map(|text| parse_rate("trunk", text));
    let mut members = members.collect::<Result<Vec<_>, _>>()?;
    members.sort_unstable_by(|one, other| other.cmp(one));
    let sum = members.iter().take(flows.max(1)).map(|member| member.bits_per_sec()).sum();
    if sum == 0 {
        Err(problem("trunk", "it has no member"))
    } else {
        Ok(BitRate::from_bits_per_sec(sum))
    }
}

fn line_name(plan: &PathPlan) -> String {
    if !plan.trunk.is_empty() {
        return "trunk".to_owned();
    }
    match named_line(plan) {
        Ok(Some((link, carrier))) if plan.link.is_some() => format!("{link} {carrier}"),
        _ => "ethernet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_bound(text: &str, ip_bytes: u32, flows: usize, packets_per_s: f64, what: &str) {
        let plan: PathPlan = crate::tree::from_toml(text).expect("a path");
        let bound = plan
            .packet_rate_bound(false, ip_bytes, flows)
            .expect("it can be built")
            .expect("a bound");
        let error = (bound.packets_per_s / packets_per_s - 1.0).abs();
        assert!(error < 1e-6, "{text}: {} and not {packets_per_s}", bound.packets_per_s);
        assert_eq!(bound.what, what);
    }

    #[test]
    fn what_a_user_told_bounds_frames_by_link_and_by_capacity() {
        let told = |link: Option<&str>, capacity: Option<u64>| KnownPath {
            link: link.map(str::to_owned),
            capacity_bps: capacity.map(BitRate::from_bits_per_sec),
            source: String::new(),
        };
        let whole = |known: KnownPath, bytes| known.packets_per_s(bytes).map(f64::floor);
        // RFC 5180 appendix A: at 100 Mbit/s 148,809 frames of 64 bytes, 8,127 of 1518.
        assert_eq!(whole(told(Some("100m"), None), 46), Some(148_809.0));
        assert_eq!(whole(told(Some("100m"), None), 1500), Some(8_127.0));
        // 12 Mbit/s of packets of 1500 bytes are 1,000 of them.
        assert_eq!(whole(told(Some("100m"), Some(12_000_000)), 1500), Some(1000.0));
        assert_eq!(whole(told(None, None), 1500), None);
    }

    #[test]
    fn full_packets_a_second_are_those_of_the_framing() {
        assert_bound("rate = \"1 Gbit/s\"", 1500, 1, 1e9 / (8.0 * 1538.0), "ethernet");
        // SONET leaves 260/270 of 622.08 Mbit/s less its path overhead: 149.76 x 4 = 599.04.
        let atm = 599.04e6 / (8.0 * 192.0 * 53.0);
        assert_bound("link = \"oc12-atm\"", 9180, 1, atm, "oc12 aal5-llcsnap");
        assert_bound(
            "rate = \"1 Gbit/s\"\npackets_per_s = 1000",
            1500,
            1,
            1000.0,
            "packets a second",
        );
        let steps = "rate = \"1 Mbit/s\"\nsteps = [{ at = \"1 s\", rate = \"10 Mbit/s\" }]";
        assert_bound(steps, 1500, 1, 1e7 / (8.0 * 1538.0), "ethernet");
    }

    #[test]
    fn one_flow_has_the_fastest_member_of_a_trunk_and_two_have_both() {
        let trunk = "trunk = [\"10 Mbit/s\", \"30 Mbit/s\"]";
        assert_bound(trunk, 1500, 1, 3e7 / (8.0 * 1538.0), "trunk");
        assert_bound(trunk, 1500, 5, 4e7 / (8.0 * 1538.0), "trunk");
    }

    #[test]
    fn a_path_without_a_rate_has_no_bound() {
        let plan: PathPlan = crate::tree::from_toml("delay = \"1 ms\"").expect("a path");
        assert_eq!(plan.packet_rate_bound(true, 1500, 1), Ok(None));
    }
}
