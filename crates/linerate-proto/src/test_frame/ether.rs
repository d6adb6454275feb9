//! The link layer of test frames: Ethernet II, IEEE 802.3 with LLC, and VLAN tags.
//!
//! ```text
//!  0 destination (6)  6 source (6)  12 type or length (2)        IEEE 802.3 §3.1.1
//!    tag: 0x8100 or 0x88a8, then priority (3 bits), drop eligible (1), identifier (12)
//!                                                                IEEE 802.1Q §9.6
//! ```
//!
//! Left out: more than two tags and FCS, which the interface adds.

use super::Mac;

/// Bytes of the frame check sequence, which the interface appends.
pub(super) const FCS_BYTES: u32 = 4;
/// Smallest EtherType; a smaller value is the length of an LLC frame (IEEE 802.3 §3.2.6).
pub(super) const TYPE_MIN: u16 = 0x0600;
/// Most bytes after a length field (IEEE 802.3 §3.2.7).
pub(super) const LENGTH_MAX: u16 = 1500;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const SERVICE_VLAN: u16 = 0x88a8;
pub(super) const IPX: u16 = 0x8137;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const DECNET: u16 = 0x6003;
/// IEEE 802 local experimental EtherType 1 (IEEE 802 §9.2.4).
pub(super) const EXPERIMENTAL: u16 = 0x88b5;
pub(super) const LLDP: u16 = 0x88cc;
pub(super) const SLOW: u16 = 0x8809;

/// LLC with SNAP, unnumbered information (IEEE 802 §9.4).
pub(super) const LLC_SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
/// Organisation and type of AppleTalk's datagrams (Inside AppleTalk, chapter 4).
pub(super) const SNAP_DDP: [u8; 5] = [0x08, 0x00, 0x07, 0x80, 0x9b];
/// Organisation and type of AppleTalk's address resolution.
pub(super) const SNAP_AARP: [u8; 5] = [0x00, 0x00, 0x00, 0x80, 0xf3];

/// A VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// VLAN identifier, 0 (priority only) to 4094.
    pub id: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator: the frame may be dropped first in congestion.
    pub drop_eligible: bool,
}

impl Tag {
    /// A tag of VLAN `id` with priority 0.
    pub const fn from_id(id: u16) -> Self {
        Self { id, priority: 0, drop_eligible: false }
    }

    pub(super) const fn tci_word(self) -> u16 {
        (self.priority as u16) << 13 | (self.drop_eligible as u16) << 12 | self.id & 0x0fff
    }

    pub(super) const fn from_word(word: u16) -> Self {
        Self { id: word & 0x0fff, priority: (word >> 13) as u8, drop_eligible: word & 0x1000 != 0 }
    }
}

/// VLAN tags of a test frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// No VLAN tag.
    #[default]
    None,
    /// One tag of 802.1Q, type 0x8100.
    Single(Tag),
    /// A service tag of 802.1ad, type 0x88a8, and a tag of 802.1Q after it.
    Double {
        /// The service tag, which is the first.
        outer: Tag,
        /// The customer tag.
        inner: Tag,
    },
}

impl Tags {
    /// Bytes of the tags in a frame.
    pub const fn len_bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Single(_) => 4,
            Self::Double { .. } => 8,
        }
    }

    /// The tags, the outer one first.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        let (first, second) = match self {
            Self::None => (None, None),
            Self::Single(tag) => (Some(tag), None),
            Self::Double { outer, inner } => (Some(outer), Some(inner)),
        };
        first.into_iter().chain(second)
    }
}

/// Writes the start of a frame up to its type or length: addresses and tags.
pub(super) fn frame_head(destination: Mac, source: Mac, tags: Tags) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&destination.0);
    bytes.extend_from_slice(&source.0);
    let mut tag = |kind: u16, tag: Tag| {
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&tag.tci_word().to_be_bytes());
    };
    match tags {
        Tags::None => {}
        Tags::Single(only) => tag(VLAN, only),
        Tags::Double { outer, inner } => {
            tag(SERVICE_VLAN, outer);
            tag(VLAN, inner);
        }
    }
    bytes
}

/// Pads a frame with zeros to the shortest length without FCS.
pub(super) fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// A frame parsed up to its type or length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ether<'a> {
    pub(super) source: Mac,
    pub(super) tags: Tags,
    /// Value of the type or length field.
    pub(super) kind: u16,
    /// Bytes after that field, including padding.
    pub(super) body: &'a [u8],
}

impl<'a> Ether<'a> {
    /// Parses a frame; `None` when it is cut, or has three tags or two of the same kind.
    pub(super) fn parse(frame: &'a [u8]) -> Option<Self> {
        let (source, rest) = frame.get(6..)?.split_first_chunk()?;
        let (mut kind, mut body) = split_be_u16(rest)?;
        let mut tags = Tags::None;
        if kind == SERVICE_VLAN {
            let (outer, rest) = split_be_u16(body)?;
            let (VLAN, rest) = split_be_u16(rest)? else { return None };
            let (inner, rest) = split_be_u16(rest)?;
            let (outer, inner) = (Tag::from_word(outer), Tag::from_word(inner));
            tags = Tags::Double { outer, inner };
            (kind, body) = split_be_u16(rest)?;
        } else if kind == VLAN {
            let (tag, rest) = split_be_u16(body)?;
            tags = Tags::Single(Tag::from_word(tag));
            (kind, body) = split_be_u16(rest)?;
        }
        if kind == VLAN || kind == SERVICE_VLAN {
            return None;
        }
        Some(Self { source: Mac(*source), tags, kind, body })
    }

    /// Bytes that the length field covers, if the frame has one.
    pub(super) fn llc_bytes(&self) -> Option<&'a [u8]> {
        (self.kind < TYPE_MIN).then(|| self.body.get(..usize::from(self.kind)))?
    }

    /// Bytes after an LLC and SNAP header of `kind`.
    pub(super) fn snap_payload(&self, kind: [u8; 5]) -> Option<&'a [u8]> {
        self.llc_bytes()?.strip_prefix(&LLC_SNAP)?.strip_prefix(&kind)
    }
}

/// Splits off a 16-bit number in network byte order.
pub(super) fn split_be_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn tagged() -> (Tags, Vec<u8>) {
        let outer = Tag { id: 100, priority: 5, drop_eligible: true };
        let tags = Tags::Double { outer, inner: Tag::from_id(4094) };
        let mut bytes = frame_head(A, B, tags);
        bytes.extend_from_slice(&[0x88, 0xb5, 7]);
        (tags, bytes)
    }

    #[test]
    fn tags_are_laid_out_as_802_1q_says() {
        let (_, bytes) = tagged();
        // Priority 5 is 101, drop eligible 1, identifier 100 is 0x064: 1011 0000 0110 0100.
        assert_eq!(bytes[12..20], [0x88, 0xa8, 0xb0, 0x64, 0x81, 0x00, 0x0f, 0xfe]);
    }

    #[test]
    fn tags_are_read_as_they_are_written() {
        let (tags, bytes) = tagged();
        let ether = Ether::parse(&bytes).expect("a frame");
        assert_eq!((ether.source, ether.tags), (B, tags));
        assert_eq!((ether.kind, ether.body), (0x88b5, &[7][..]));
        assert_eq!(tags.iter().map(|tag| tag.id).collect::<Vec<_>>(), [100, 4094]);
        for cut in 0..22 {
            assert!(Ether::parse(&bytes[..cut]).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn a_length_beyond_the_frame_is_no_llc() {
        let mut bytes = frame_head(A, B, Tags::None);
        bytes.extend_from_slice(&[0, 8, 0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b]);
        assert_eq!(
            Ether::parse(&bytes).and_then(|ether| ether.snap_payload(SNAP_DDP)),
            Some(&[][..])
        );
        bytes[13] = 9;
        assert!(Ether::parse(&bytes).expect("a frame").llc_bytes().is_none());
    }
}
