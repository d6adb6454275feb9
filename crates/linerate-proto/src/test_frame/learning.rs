//! Learning frames, by which a bridge learns the ports of a stream's destinations (RFC 2544 §23):
//! one from each destination address, sent on the port where the stream is to arrive. Routers learn
//! from [`Neighbours::announcements`].
//!
//! [`Neighbours::announcements`]: super::Neighbours::announcements

use super::{Field, Mac, TestFrame, ether};

impl TestFrame {
    /// One broadcast frame from each destination MAC address, with the tags of the stream,
    /// EtherType 0x88b5 and zeros to the shortest length, which a counter assigns to trial 0. None
    /// when the destination is a group address, which no bridge learns.
    pub fn learning_frames(&self) -> impl Iterator<Item = Vec<u8>> {
        let varying = self.flows.vary.iter().find(|vary| vary.field == Field::DestinationMac);
        let stations = varying.map_or(1, |vary| vary.count.min(self.flows.count));
        let stations = if self.destination.is_group() { 0 } else { stations };
        let (first, tags) = (self.destination, self.tags);
        (0..stations).map(move |index| {
            let mut bytes = ether::frame_head(Mac::BROADCAST, first.plus_offset(index), tags);
            bytes.extend_from_slice(&ether::EXPERIMENTAL.to_be_bytes());
            bytes.resize(60 + tags.len_bytes() as usize, 0);
            bytes
        })
    }
}
