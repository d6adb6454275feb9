//! The token bucket filter at the root of a link (tc-tbf(8); layouts in linux/pkt_sched.h).
//!
//! ```text
//! TCA_TBF_PARMS (1), struct tc_tbf_qopt, 36 bytes, host order
//!   0  tc_ratespec rate        12  tc_ratespec peakrate (zero: none)
//!  24  u32 limit (bytes)       28  u32 buffer (ticks)     32  u32 mtu (ticks of the peak rate)
//! struct tc_ratespec
//!   0  u8 cell_log  1  u8 linklayer  2  u16 overhead  4  i16 cell_align  6  u16 mpu
//!   8  u32 rate (bytes/s)
//! TCA_TBF_RATE64 (4)  u64 bytes/s      TCA_TBF_BURST (6)  u32 bytes
//! ```
//! The bucket counts frames without preamble, FCS and gap. A super-packet larger than the burst
//! is cut into its segments, each held against the bucket (net/sched/sch_tbf.c).

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE, Nla, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};

use super::socket::{Attempt, RouteSocket};
use crate::Result;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Link layer Ethernet, with which the kernel computes lengths itself and needs no rate table.
const TC_LINKLAYER_ETHERNET: u8 = 1;
const PARMS_BYTES: usize = 36;
/// A tick of the packet scheduler: 1 << PSCHED_SHIFT nanoseconds (net/pkt_sched.h).
const TICK_NS: u128 = 64;

/// Parameters of a token bucket filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tbf {
    /// Rate of tokens, in bit/s of frames without FCS; the kernel rounds to whole bytes per second.
    pub rate_bps: u64,
    /// Depth of the bucket in bytes.
    pub burst_bytes: u32,
    /// Limit of the queue of packets that wait for tokens; further packets are dropped.
    pub limit_bytes: u32,
}

/// Counters of a queueing discipline since it was created. Bytes are frames without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of the packets sent.
    pub bytes: u64,
    /// Packets dropped for any reason, modulo 2^32 as in the kernel.
    pub drops: u32,
    /// Times that a packet had to wait for the discipline's rate.
    pub overlimits: u32,
    /// Times that the driver returned a packet.
    pub requeues: u32,
    /// Packets currently queued.
    pub queued_packets: u32,
    /// Bytes of the queued packets.
    pub queued_bytes: u32,
}

/// Attribute TCA_STATS_PKT64: packets in 64 bits (linux/gen_stats.h).
const TCA_STATS_PKT64: u16 = 8;

impl RouteSocket {
    /// Counters of the root queueing discipline of a link; `None` when there is none.
    /// # Errors
    /// When the kernel does not answer.
    pub fn root_counters(&mut self, index: u32) -> Result<Option<QdiscCounters>> {
        let message = TcMessage::with_index(index.cast_signed());
        let attempt = Attempt { call: "list queueing disciplines of link", object: &index };
        let replies =
            self.dump_objects(RouteNetlinkMessage::GetQueueDiscipline(message), &attempt)?;
        let found = replies.iter().find_map(|reply| root_of(reply, index));
        Ok(found.map(counters_of))
    }

    /// Kinds of all queueing disciplines of a link, including child disciplines.
    /// # Errors
    /// When the kernel does not answer.
    pub fn disciplines(&mut self, index: u32) -> Result<Vec<String>> {
        let message = TcMessage::with_index(index.cast_signed());
        let attempt = Attempt { call: "list queueing disciplines of link", object: &index };
        let replies =
            self.dump_objects(RouteNetlinkMessage::GetQueueDiscipline(message), &attempt)?;
        let of_link = replies.into_iter().filter_map(|reply| match reply {
            RouteNetlinkMessage::NewQueueDiscipline(qdisc) => Some(qdisc),
            _ => None,
        });
        let of_link = of_link.filter(|qdisc| qdisc.header.index == index.cast_signed());
        let attributes = of_link.flat_map(|qdisc| qdisc.attributes);
        let kinds = attributes.filter_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind),
            _ => None,
        });
        Ok(kinds.collect())
    }

    /// Sets a token bucket filter as the root queueing discipline of a link, replacing the current
    /// one.
    /// # Errors
    /// When the kernel has no tbf, or without CAP_NET_ADMIN.
    pub fn set_tbf(&mut self, index: u32, tbf: &Tbf) -> Result<()> {
        let mut message = TcMessage::with_index(index.cast_signed());
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes =
            vec![TcAttribute::Kind("tbf".to_owned()), TcAttribute::Options(options(tbf))];
        let attempt = Attempt { call: "set token bucket filter of link", object: &index };
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), flags, &attempt)
    }

    /// Parameters of the token bucket filter at the root of a link; `None` for another discipline.
    /// # Errors
    /// When the kernel does not answer.
    pub fn root_tbf(&mut self, index: u32) -> Result<Option<Tbf>> {
        let message = TcMessage::with_index(index.cast_signed());
        let attempt = Attempt { call: "list queueing disciplines of link", object: &index };
        let replies =
            self.dump_objects(RouteNetlinkMessage::GetQueueDiscipline(message), &attempt)?;
        Ok(replies.iter().find_map(|reply| root_tbf_of(reply, index)))
    }
}

/// The message, if it is about the root queueing discipline of a link.
fn root_of(reply: &RouteNetlinkMessage, index: u32) -> Option<&TcMessage> {
    let RouteNetlinkMessage::NewQueueDiscipline(qdisc) = reply else { return None };
    let at_root = qdisc.header.parent == TcHandle::ROOT;
    (qdisc.header.index == index.cast_signed() && at_root).then_some(qdisc)
}

fn counters_of(qdisc: &TcMessage) -> QdiscCounters {
    let mut counters = QdiscCounters::default();
    let stats = qdisc.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    });
    for one in stats.flatten() {
        match one {
            TcStats2::Basic(basic) => {
                counters.bytes = basic.bytes;
                counters.packets = counters.packets.max(basic.packets.into());
            }
            TcStats2::Queue(queue) => {
                counters.drops = queue.drops;
                (counters.overlimits, counters.requeues) = (queue.overlimits, queue.requeues);
                (counters.queued_packets, counters.queued_bytes) = (queue.qlen, queue.backlog);
            }
            TcStats2::Other(nla) if nla.kind() == TCA_STATS_PKT64 => {
                let mut value = vec![0; nla.value_len()];
                nla.emit_value(&mut value);
                if let Ok(packets) = value.try_into() {
                    counters.packets = u64::from_ne_bytes(packets);
                }
            }
            _ => {}
        }
    }
    counters
}

fn root_tbf_of(reply: &RouteNetlinkMessage, index: u32) -> Option<Tbf> {
    let qdisc = root_of(reply, index)?;
    let is_tbf = |attribute: &TcAttribute| matches!(attribute, TcAttribute::Kind(k) if k == "tbf");
    if !qdisc.attributes.iter().any(is_tbf) {
        return None;
    }
    qdisc.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => from_bytes(&inner_bytes(options)?),
        _ => None,
    })
}

fn options(tbf: &Tbf) -> Vec<TcOption> {
    let bytes_per_sec = tbf.rate_bps / 8;
    let mut parms = [0; PARMS_BYTES];
    parms[1] = TC_LINKLAYER_ETHERNET;
    let rate32 = u32::try_from(bytes_per_sec).unwrap_or(u32::MAX);
    parms[8..12].copy_from_slice(&rate32.to_ne_bytes());
    parms[24..28].copy_from_slice(&tbf.limit_bytes.to_ne_bytes());
    let nla = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
    vec![
        nla(TCA_TBF_PARMS, &parms),
        nla(TCA_TBF_BURST, &tbf.burst_bytes.to_ne_bytes()),
        nla(TCA_TBF_RATE64, &bytes_per_sec.to_ne_bytes()),
    ]
}

/// Attributes inside TCA_OPTIONS. For an unknown discipline the decoder returns TCA_OPTIONS as the
/// only option.
fn inner_bytes(options: &[TcOption]) -> Option<Vec<u8>> {
    let whole = options.first()?;
    let mut value = vec![0; whole.value_len()];
    whole.emit_value(&mut value);
    Some(value)
}

/// Parses the kernel's attributes, in which the burst is in ticks.
fn from_bytes(attributes: &[u8]) -> Option<Tbf> {
    let parms: [u8; PARMS_BYTES] = value_of(attributes, TCA_TBF_PARMS)?.try_into().ok()?;
    let word =
        |at: usize| u32::from_ne_bytes([parms[at], parms[at + 1], parms[at + 2], parms[at + 3]]);
    let rate64 = value_of(attributes, TCA_TBF_RATE64)
        .and_then(|value| value.try_into().ok())
        .map(u64::from_ne_bytes);
    let bytes_per_sec = rate64.unwrap_or_else(|| u64::from(word(8)));
    let burst_ns = u128::from(word(28)) * TICK_NS;
    let burst = burst_ns * u128::from(bytes_per_sec) / 1_000_000_000;
    Some(Tbf {
        rate_bps: bytes_per_sec.saturating_mul(8),
        burst_bytes: u32::try_from(burst).unwrap_or(u32::MAX),
        limit_bytes: word(24),
    })
}

fn value_of(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut nlas = NlasIterator::new(attributes).map_while(|nla| nla.ok());
    nlas.find(|nla| nla.kind() == kind).map(|nla| nla.value().to_vec())
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;

    use super::*;

    fn bytes_of(tbf: &Tbf) -> Vec<u8> {
        let options = options(tbf);
        let mut bytes = vec![0; options.as_slice().buffer_len()];
        options.as_slice().emit(&mut bytes);
        bytes
    }

    #[test]
    fn the_rate_is_sent_in_bytes_per_second_at_its_place() {
        // 155.52 Mbit/s is 19_440_000 bytes/s.
        let tbf = Tbf { rate_bps: 155_520_000, burst_bytes: 20_000, limit_bytes: 1_000_000 };
        let bytes = bytes_of(&tbf);
        let parms = value_of(&bytes, TCA_TBF_PARMS).unwrap();
        assert_eq!(parms.len(), 36);
        assert_eq!(parms[8..12], 19_440_000_u32.to_ne_bytes());
        assert_eq!(parms[24..28], 1_000_000_u32.to_ne_bytes());
        assert_eq!(value_of(&bytes, TCA_TBF_BURST).unwrap(), 20_000_u32.to_ne_bytes());
        assert_eq!(value_of(&bytes, TCA_TBF_RATE64).unwrap(), 19_440_000_u64.to_ne_bytes());
    }

    #[test]
    fn a_dump_of_the_kernel_is_read() {
        // Linux 6.18, `rate 155.52mbit burst 77760 limit 972000`, without the rate's 64-bit form.
        let dump = [
            40, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 128, 161, 40, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 224, 212, 14, 0, 35, 244, 0, 0, 0, 0, 0, 0,
        ];
        let tbf = from_bytes(&dump).unwrap();
        assert_eq!((tbf.rate_bps, tbf.limit_bytes), (155_520_000, 972_000));
        // 0xf423 ticks of 64 ns are 3.999936 ms: 77_758 whole bytes at 19_440_000 a second.
        assert_eq!(tbf.burst_bytes, 77_758);
    }

    #[test]
    fn a_rate_above_32_bits_of_bytes_is_read_from_its_64_bit_form() {
        // 100 Gbit/s is 12.5e9 bytes/s, more than 2^32.
        let tbf = Tbf { rate_bps: 100_000_000_000, burst_bytes: 1, limit_bytes: 1 };
        assert_eq!(from_bytes(&bytes_of(&tbf)).unwrap().rate_bps, 100_000_000_000);
    }

    #[test]
    fn attributes_cut_anywhere_are_no_tbf_and_no_panic() {
        let tbf = Tbf { rate_bps: 8000, burst_bytes: 1, limit_bytes: 1 };
        let bytes = bytes_of(&tbf);
        for length in 0..4 + PARMS_BYTES {
            assert_eq!(from_bytes(&bytes[..length]), None, "{length} bytes");
        }
    }
}
