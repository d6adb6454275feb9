//! Extensions (TLVs) after the base packet: flags (1), type (1), length (2), value.
//!
//! # Source
//! RFC 8972 §4. A length that does not fit ends the iteration.

/// Flags of a TLV (RFC 8972 §4).
pub mod flags {
    /// The reflector does not know the type; the sender sets it, a reflector that knows it clears
    /// it.
    pub const UNKNOWN: u8 = 0x80;
    /// The reflector found the TLV malformed.
    pub const MALFORMED: u8 = 0x40;
    /// The reflector found the HMAC of the TLVs wrong.
    pub const INTEGRITY: u8 = 0x20;
}

/// Octets of the header before the value.
pub(super) const HEADER_BYTES: usize = 4;

/// Types of TLVs in RFC 8972.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvKind {
    /// 1, any length: padding without a meaning.
    ExtraPadding,
    /// 2, from 4 octets: ports on arrival.
    Location,
    /// 3, 4 octets: source of clock synchronisation and method of timestamps.
    TimestampInformation,
    /// 4, 4 octets: DSCP and ECN requested and on arrival.
    ClassOfService,
    /// 5, 12 octets: packets sent, received and returned.
    DirectMeasurement,
    /// 6, 4 octets: access networks of 3GPP.
    AccessReport,
    /// 7, 16 octets: departure of the previous reply.
    FollowUp,
    /// 8, 16 octets: HMAC over the sequence number and the TLVs before.
    Hmac,
    /// Any other type.
    Other(u8),
}

impl TlvKind {
    /// Number of the type on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::ExtraPadding => 1,
            Self::Location => 2,
            Self::TimestampInformation => 3,
            Self::ClassOfService => 4,
            Self::DirectMeasurement => 5,
            Self::AccessReport => 6,
            Self::FollowUp => 7,
            Self::Hmac => 8,
            Self::Other(number) => number,
        }
    }

    const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::ExtraPadding,
            2 => Self::Location,
            3 => Self::TimestampInformation,
            4 => Self::ClassOfService,
            5 => Self::DirectMeasurement,
            6 => Self::AccessReport,
            7 => Self::FollowUp,
            8 => Self::Hmac,
            number => Self::Other(number),
        }
    }

    /// True if a value of this type may have `len` octets.
    pub(super) const fn allows_length(self, len: usize) -> bool {
        match self {
            Self::Location => len >= 4,
            Self::TimestampInformation | Self::ClassOfService | Self::AccessReport => len == 4,
            Self::DirectMeasurement => len == 12,
            Self::FollowUp | Self::Hmac => len == 16,
            Self::ExtraPadding | Self::Other(_) => true,
        }
    }
}

/// One TLV in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// Flags of the TLV, as in [`flags`].
    pub flags: u8,
    /// Type of the TLV.
    pub kind: TlvKind,
    /// Offset of the TLV in the iterated octets.
    pub at: usize,
    /// Value of the TLV.
    pub value: &'a [u8],
}

/// Iterator over the TLVs after a base packet.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Tlvs<'a> {
    /// Iterates over `rest`, the octets after the base packet.
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest, at: 0 }
    }

    /// Offset of the next TLV; after the iteration the end, or the offset of a malformed TLV.
    pub(super) const fn next_offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Tlv<'a>;

    fn next(&mut self) -> Option<Tlv<'a>> {
        let ([flags, kind, high, low], _) = self.rest.get(self.at..)?.split_first_chunk()?;
        let start = self.at + HEADER_BYTES;
        let end = start + usize::from(u16::from_be_bytes([*high, *low]));
        let value = self.rest.get(start..end)?;
        let tlv = Tlv { flags: *flags, kind: TlvKind::from_number(*kind), at: self.at, value };
        self.at = end;
        Some(tlv)
    }
}

/// Appends a TLV as a sender does, with the flag for unknown set.
pub(super) fn push(packet: &mut Vec<u8>, kind: TlvKind, value: &[u8]) {
    let len = u16::try_from(value.len()).expect("a datagram's length has 16 bits");
    packet.extend_from_slice(&[flags::UNKNOWN, kind.number()]);
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(value);
}
