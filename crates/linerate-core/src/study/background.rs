//! The flow that a study sends against its test: at a rate, or at a share of the slowest link.
//!
//! # Source
//! The share is of the frames that a shaped link or an emulated path of the plan carries
//! (`theory::framing`, `path::packet_rate_bound`), filled by full packets of TCP with timestamps
//! over IPv4. Acknowledgements of the test come on top.

use serde::{Deserialize, Serialize};

use super::Topology;
use crate::lab::LinkPlan;
use crate::record::IpFamily;
use crate::theory::framing::{SegmentHeaders, ShapedLink, Transport, shaped_ceiling};
use crate::units::BitRate;

/// A flow from the server to the client while a test runs: one of the two keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BackgroundFlow {
    /// Payload rate as text with a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Share of the topology's slowest link, above 0 and up to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
}

impl BackgroundFlow {
    /// Payload rate of the flow on `topology`.
    /// # Errors
    /// A fault of its keys, or that no link of the topology has a rate to take a share of.
    pub fn rate_on(&self, topology: &Topology) -> Result<BitRate, String> {
        match (&self.rate, self.utilisation) {
            (Some(text), None) => {
                let rate: BitRate = text.parse().map_err(|error| format!("{error}"))?;
                if rate.bits_per_sec() == 0 {
                    return Err("a background of 0 bit/s; leave it out".to_owned());
                }
                Ok(rate)
            }
            (None, Some(share)) if share > 0.0 && share <= 1.0 => {
                let limit = slowest_payload_bps(topology).ok_or_else(|| {
                    format!("no link of topology '{}' has a rate to take a share of", topology.id)
                })?;
                BitRate::from_nearest(limit * share)
                    .filter(|rate| rate.bits_per_sec() > 0)
                    .ok_or_else(|| "a share below 1 bit/s".to_owned())
            }
            (None, Some(share)) => Err(format!("a utilisation of {share}; above 0, at most 1")),
            _ => Err("a background has either a rate or a utilisation".to_owned()),
        }
    }
}

/// Payload bits per second that the slowest link with a rate carries, of its two directions the
/// slower one.
fn slowest_payload_bps(topology: &Topology) -> Option<f64> {
    let links = topology.lab.links.iter();
    links.flat_map(|link| [shaped_bps(link), emulated_bps(link)]).flatten().reduce(f64::min)
}

/// The segments that fill a link: what Linux sends.
const SEGMENT: SegmentHeaders =
    SegmentHeaders { family: IpFamily::V4, transport: Transport::TcpWithTimestamps };

fn shaped_bps(link: &LinkPlan) -> Option<f64> {
    let shaped =
        ShapedLink { rate: link.bit_rate().ok().flatten()?, mtu_bytes: link.effective_mtu() };
    Some(shaped_ceiling(&shaped, &SEGMENT).ok()?.payload_bps)
}

fn emulated_bps(link: &LinkPlan) -> Option<f64> {
    let path = link.path.as_ref()?;
    let payload_bytes = link.effective_mtu().checked_sub(SEGMENT.header_bytes())?;
    let bounds = [false, true]
        .map(|backward| path.packet_rate_bound(backward, link.effective_mtu(), 1).ok().flatten());
    let packets_per_s = bounds.into_iter().flatten().map(|bound| bound.packets_per_s);
    packets_per_s.reduce(f64::min).map(|rate| rate * f64::from(payload_bytes) * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(link: &str) -> Topology {
        let text = format!(
            "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
             link = [{{ ends = [\"a\", \"b\"]{link} }}]"
        );
        Topology::from_lab(&text, "a", "b")
    }

    #[test]
    fn a_share_is_of_the_payload_that_the_slowest_link_carries() {
        let half = BackgroundFlow { utilisation: Some(0.5), rate: None };
        // 44.736 Mbit/s x 1448 / 1514 = 42.785818 Mbit/s of payload; half of it.
        let ds3 = topology(", rate = \"44.736 Mbit/s\"");
        let rate = half.rate_on(&ds3).expect("a link with a rate").bits_per_sec();
        assert_eq!(rate, 21_392_909);
        // Ethernet counts preamble, gap, header and FCS: 1448 of 1538 bytes.
        let path = topology(", path = { rate = \"44.736 Mbit/s\", delay = \"10 ms\" }");
        let rate = half.rate_on(&path).expect("a path with a rate").bits_per_sec();
        assert_eq!(rate, 21_059_079, "44.736 Mbit/s x 1448 / 1538 / 2");
        let unlimited = half.rate_on(&topology("")).expect_err("as fast as the machine");
        assert!(unlimited.contains("topology 't'"), "{unlimited}");
    }

    #[test]
    fn a_rate_is_taken_as_it_is_and_the_two_keys_exclude_each_other() {
        let any = topology("");
        let rate = |text: &str| BackgroundFlow { rate: Some(text.to_owned()), utilisation: None };
        let expected = BitRate::from_bits_per_sec(31_000_000);
        assert_eq!(rate("31 Mbit/s").rate_on(&any), Ok(expected));
        assert!(rate("0 bit/s").rate_on(&any).is_err());
        assert!(rate("31 parsecs").rate_on(&any).is_err());
        let both = BackgroundFlow { utilisation: Some(0.5), ..rate("1 Mbit/s") };
        assert!(both.rate_on(&any).is_err());
        assert!(BackgroundFlow::default().rate_on(&any).is_err());
        for share in [0.0, -0.1, 1.01, f64::NAN] {
            let share = BackgroundFlow { utilisation: Some(share), rate: None };
            assert!(share.rate_on(&any).is_err(), "{share:?}");
        }
    }
}
