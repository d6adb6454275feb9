//! Frames by which a bridge learns where the stations of a stream are (RFC 2544 §23): from each
//! destination of the stream, out of the port where it is to arrive. Routers learn from
//! [`Neighbours::announcements`].
//!
//! [`Neighbours::announcements`]: super::Neighbours::announcements

use super::{Field, Mac, TestFrame, ether};

impl TestFrame {
    /// One frame from each different destination hardware address, to all stations, with the tags
    /// of the stream, EtherType 0x88b5 and zeros to the shortest length. To a counter it is of
    /// trial 0. None when the destination is a group, which no bridge learns.
    pub fn learning_frames(&self) -> impl Iterator<Item = Vec<u8>> {
        let varying = self.flows.vary.iter().find(|it| it.field == Field::DestinationMac);
        let stations = varying.map_or(1, |it| it.count.min(self.flows.count));
        let stations = if self.destination.is_group() { 0 } else { stations };
        let (first, tags) = (self.destination, self.tags);
        (0..stations).map(move |index| {
            let mut bytes = ether::head(Mac::BROADCAST, first.plus(index), tags);
            bytes.extend_from_slice(&ether::EXPERIMENTAL.to_be_bytes());
            bytes.resize(60 + tags.bytes() as usize, 0);
            bytes
        })
    }
}
