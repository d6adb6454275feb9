//! The rows of published tables, one type for each kind of table. An absent figure is `None`.

use serde::Serialize;

use super::Printed;
use crate::record::IpFamily;
use crate::theory::framing::{SegmentHeaders, Transport};

/// One published ping figure; null where the study printed none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedPing {
    /// Identifier of the topology in that study.
    pub test: String,
    /// Name of the topology in that study.
    pub topology: String,
    /// Class of the topology in that study.
    pub class: String,
    /// Switches on the way.
    pub l2_hops: Option<u32>,
    /// Routers on the way.
    pub l3_hops: Option<u32>,
    /// Ping payload.
    pub payload_bytes: u32,
    /// Mean round-trip time as printed.
    pub rtt_avg_ms: Option<f64>,
    /// Pings per second as printed: 1000 over the mean, cut to a whole number.
    pub pings_per_s: Option<f64>,
}

/// One published TCP figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedTcp {
    /// Identifier of the topology in that study.
    pub test: String,
    /// Name of the topology in that study.
    pub topology: String,
    /// Class of the topology in that study.
    pub class: String,
    /// Switches on the way.
    pub l2_hops: Option<u32>,
    /// Routers on the way.
    pub l3_hops: Option<u32>,
    /// MTU of the links.
    pub mtu_bytes: u32,
    /// Receive window asked for.
    pub window_bytes: u64,
    /// Best of several runs, as the tool of that study printed it.
    pub throughput_mbit_s: Option<f64>,
}

/// Frame rates of one router, protocol and frame length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublishedRouter {
    /// The device that was tested.
    pub device: String,
    /// Protocol that it forwarded: `ip`, `bridge`, `decnet`, `appletalk2`, `ipx`.
    pub protocol: String,
    /// Cards of input and output: one or two.
    pub cards: Cards,
    /// Streams offered at once: one or two.
    pub streams: Streams,
    /// Which of the streams this row is about, counted from 1.
    pub stream: u32,
    /// Filters that were set in the router.
    pub filters: u32,
    /// Length of a frame with its FCS.
    pub frame_bytes: u32,
    /// Rate that the link carries, as the study says it.
    pub theoretical_fps: Option<u64>,
    /// The highest rate that the generator offered.
    pub offered_max_fps: Option<u64>,
    /// The highest rate that passed without loss.
    pub max_rate_fps: Option<u64>,
    /// Rate that came through when the highest was offered.
    pub flood_rate_fps: Option<u64>,
}

/// Where input and output of a router were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cards {
    /// On the same card.
    Within,
    /// On two cards.
    Between,
}

/// How many streams were offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// One.
    Single,
    /// Two at once, each on its own ports.
    Dual,
}

/// One figure with a name, as a text printed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedItem {
    /// Its name in the table.
    pub item: String,
    /// The figure.
    pub value: Option<Printed>,
    /// Its unit.
    pub unit: String,
    /// Remark of the text about it.
    pub note: Option<String>,
}

/// A TCP throughput that was remarkable in its year.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Milestone {
    /// When; a range where the text gives the years around it only.
    pub year: Printed,
    /// Site that reached it, or the two sites of the path.
    pub label: String,
    /// Whose table it is from.
    pub set: MilestoneSet,
    /// TCP throughput in Mbit/s.
    pub rate_mbit_s: Printed,
    /// MTU of the path where the source tells it.
    pub mtu_bytes: Option<u32>,
    /// Payload of a full packet where the source tells it.
    pub payload_bytes: Option<u32>,
    /// Packets per second where the source tells them.
    pub packets_per_s: Option<f64>,
    /// Over what.
    pub network: String,
    /// Where the figures stand.
    pub source: String,
}

/// Whose milestone it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MilestoneSet {
    /// The history in the OC-12 study of 1999.
    Paper,
    /// After it.
    Later,
    /// The reader's own.
    Own,
}

/// Packets per second of a milestone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PacketsPerSecond {
    /// At the lower end of the rate.
    pub low: f64,
    /// At the upper end.
    pub high: f64,
    /// True where it was computed from the rate and the size of a packet, false where printed.
    pub derived: bool,
}

impl Milestone {
    /// Payload of a full packet: as told, else the MTU less 40 bytes of IPv4 and TCP headers
    /// without options. `None` where neither is known.
    pub fn packet_payload_bytes(&self) -> Option<u32> {
        const PLAIN: SegmentHeaders =
            SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp };
        self.payload_bytes.or_else(|| PLAIN.payload_bytes(self.mtu_bytes?).ok())
    }

    /// Packets per second: as printed, else rate / (8 × payload of a full packet).
    ///
    /// `None` without a packet size, which is never guessed, and for a rate with one end only.
    /// 2380 Mbit/s in packets of 8948 bytes are 33,247 packets/s.
    pub fn packets(&self) -> Option<PacketsPerSecond> {
        if let Some(printed) = self.packets_per_s {
            return Some(PacketsPerSecond { low: printed, high: printed, derived: false });
        }
        let bits = f64::from(self.packet_payload_bytes().filter(|bytes| *bytes > 0)?) * 8.0;
        let (low, high) = (self.rate_mbit_s.lower_end()?, self.rate_mbit_s.upper_end()?);
        Some(PacketsPerSecond { low: low * 1e6 / bits, high: high * 1e6 / bits, derived: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milestone(rate: &str, mtu_bytes: Option<u32>, payload_bytes: Option<u32>) -> Milestone {
        Milestone {
            year: "1999".parse().expect("a year"),
            label: String::new(),
            set: MilestoneSet::Own,
            rate_mbit_s: rate.parse().expect("a rate"),
            mtu_bytes,
            payload_bytes,
            packets_per_s: None,
            network: String::new(),
            source: String::new(),
        }
    }

    #[test]
    fn packets_follow_from_the_rate_and_the_payload() {
        // 400e6 and 513e6 over 8 x (9180 - 40); 2380e6 over 8 x 8948.
        let packets = milestone("400-513", Some(9180), None).packets().expect("a known size");
        assert!((packets.low - 5_470.459_5).abs() < 1e-3, "{packets:?}");
        assert!((packets.high - 7_015.864_3).abs() < 1e-3, "{packets:?}");
        let packets = milestone("2380", Some(9000), Some(8948)).packets().expect("a known size");
        assert!((packets.low - 33_247.65).abs() < 0.01, "{packets:?}");
        assert!(packets.derived && packets.low == packets.high);
    }

    #[test]
    fn a_printed_packet_rate_is_not_derived() {
        let mut gigasunet = milestone("966.5", Some(1500), None);
        gigasunet.packets_per_s = Some(83_000.0);
        let packets = gigasunet.packets().expect("printed");
        assert_eq!((packets.low, packets.high, packets.derived), (83_000.0, 83_000.0, false));
    }

    #[test]
    fn without_a_packet_size_there_is_no_packet_rate() {
        assert_eq!(milestone("780", None, None).packets(), None);
        assert_eq!(milestone("<780", Some(1500), None).packets(), None);
        assert_eq!(milestone("780", Some(40), None).packets(), None);
        assert_eq!(milestone("780", None, Some(0)).packets(), None);
    }
}
