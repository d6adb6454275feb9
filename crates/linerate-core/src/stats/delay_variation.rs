//! Delay variation in its two forms.
//!
//! # Source
//! RFC 5481 §4: IPDV takes the previous packet as reference (the selection function of RFC 3393
//! for consecutive packets), PDV the fastest packet of the interval.

/// One packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// Number of the packet, in the order of sending from 0.
    pub sequence: u64,
    /// Time of arrival, since any fixed point.
    pub received_ns: u64,
    /// Delay of the packet: one way or round trip. Negative when two clocks disagree.
    pub delay_ns: i64,
}

/// Difference of a packet's delay from that of the packet sent just before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipdv {
    /// Sequence number of the later of the two.
    pub sequence: u64,
    /// Delay of the later minus delay of the earlier.
    pub ns: i64,
}

/// IPDV of every pair of consecutive sequence numbers that both arrived; undefined, and left out,
/// where either was lost. `packets` are in rising order of sequence number, without duplicates.
pub fn ipdv_of_packets(packets: &[PacketArrival]) -> Vec<Ipdv> {
    packets
        .windows(2)
        .filter(|pair| pair[0].sequence.checked_add(1) == Some(pair[1].sequence))
        .map(|pair| Ipdv {
            sequence: pair[1].sequence,
            ns: pair[1].delay_ns.saturating_sub(pair[0].delay_ns),
        })
        .collect()
}

/// PDV of every packet: its delay above the smallest, in the order given. Empty without packets.
pub fn pdv_of_packets(packets: &[PacketArrival]) -> Vec<u64> {
    let fastest = packets.iter().map(|packet| packet.delay_ns).min();
    fastest.map_or_else(Vec::new, |fastest| {
        packets.iter().map(|packet| packet.delay_ns.abs_diff(fastest)).collect()
    })
}
