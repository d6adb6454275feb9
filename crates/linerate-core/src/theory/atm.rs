//! Packets in ATM cells by adaptation layer 5: cells, padding and what is left.
//!
//! Left out: other adaptation layers, operation cells and the cell rate of a contract (GCRA).
//! Rules: ITU-T I.361 (cell), I.363.5 (AAL5), RFC 2684 (LLC/SNAP, VC multiplexing, bridged),
//! RFC 2364 (PPP), RFC 2516 (PPPoE).

/// A cell, bytes (ITU-T I.361 §2.1).
pub const CELL_BYTES: u32 = 53;
/// Header of a cell, bytes (ITU-T I.361 §2.1).
pub const CELL_HEADER_BYTES: u32 = 5;
/// Payload of a cell, bytes (ITU-T I.361 §2.1).
pub const CELL_PAYLOAD_BYTES: u32 = CELL_BYTES - CELL_HEADER_BYTES;
/// Trailer of an AAL5 frame, bytes (ITU-T I.363.5 §9.2.1).
pub const AAL5_TRAILER_BYTES: u32 = 8;
/// Longest payload of an AAL5 frame, bytes (ITU-T I.363.5 §9.2.1: a length of 16 bits).
pub const AAL5_PAYLOAD_MAX_BYTES: u32 = 65_535;
/// MTU of IP over AAL5 unless agreed otherwise, bytes (RFC 2225 §7).
pub const IP_MTU_BYTES: u32 = 9180;

/// Encapsulation between the AAL5 frame and the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aal5 {
    /// IP with LLC and SNAP headers: AA AA 03, OUI, type (RFC 2684 §5.1).
    LlcSnap,
    /// IP alone (RFC 2684 §6.1).
    VcMux,
    /// PPP alone (RFC 2364 §5).
    PppVcMux,
    /// PPP with LLC and NLPID: FE FE 03 CF (RFC 2364 §6).
    PppLlc,
    /// Ethernet frames without FCS behind two bytes (RFC 2684 §6.2).
    BridgedVcMux,
    /// Ethernet frames without FCS behind LLC, SNAP and two bytes (RFC 2684 §5.2).
    BridgedLlcSnap,
    /// PPPoE in [`Aal5::BridgedVcMux`].
    PppoeVcMux,
    /// PPPoE in [`Aal5::BridgedLlcSnap`].
    PppoeLlcSnap,
}

impl Aal5 {
    /// All mappings, in order.
    pub const ALL: [Self; 8] = [
        Self::LlcSnap,
        Self::VcMux,
        Self::PppVcMux,
        Self::PppLlc,
        Self::BridgedVcMux,
        Self::BridgedLlcSnap,
        Self::PppoeVcMux,
        Self::PppoeLlcSnap,
    ];

    /// Bytes before the packet in the AAL5 frame; PPPoE's eight are not among them, for they are
    /// inside the Ethernet payload.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::VcMux => 0,
            Self::LlcSnap => 8,
            Self::PppVcMux => 2,
            Self::PppLlc => 4 + 2,
            Self::BridgedVcMux | Self::PppoeVcMux => 2 + 14,
            Self::BridgedLlcSnap | Self::PppoeLlcSnap => 8 + 2 + 14,
        }
    }

    /// True when an Ethernet frame is carried, so that VLAN tags and PPPoE fit in.
    pub const fn is_bridged(self) -> bool {
        matches!(
            self,
            Self::BridgedVcMux | Self::BridgedLlcSnap | Self::PppoeVcMux | Self::PppoeLlcSnap
        )
    }

    /// True when PPPoE takes eight bytes of the Ethernet payload.
    pub const fn is_pppoe(self) -> bool {
        matches!(self, Self::PppoeVcMux | Self::PppoeLlcSnap)
    }

    /// The header's parts, in words.
    pub const fn header_words(self) -> &'static str {
        match self {
            Self::VcMux => "nothing: the circuit itself says that it carries IP",
            Self::LlcSnap => "LLC 3 and SNAP 5",
            Self::PppVcMux => "PPP protocol field",
            Self::PppLlc => "LLC 3, NLPID 1 and PPP protocol field 2",
            Self::BridgedVcMux | Self::PppoeVcMux => "padding 2 and Ethernet header 14",
            Self::BridgedLlcSnap | Self::PppoeLlcSnap => {
                "LLC 3, SNAP 5, padding 2 and Ethernet header 14"
            }
        }
    }
}

/// A packet in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellTrain {
    /// Number of cells in the train.
    pub cells: u32,
    /// Bytes that fill the last cell up.
    pub padding_bytes: u32,
    /// Bytes of all cells, headers counted.
    pub wire_bytes: u32,
}

/// The cells of a packet of `packet_bytes` bytes: cells = ceil((n + E + 8) / 48).
///
/// `header_bytes` is E, what stands before the packet ([`Aal5::header_bytes`]). `None` when the
/// packet with its header is longer than an AAL5 frame.
///
/// ```
/// # use linerate_core::theory::atm::{Aal5, cell_train};
/// let train = cell_train(9180, Aal5::LlcSnap.header_bytes()).expect("it fits");
/// assert_eq!((train.cells, train.padding_bytes, train.wire_bytes), (192, 20, 10_176));
/// ```
/// # Source
/// ITU-T I.363.5 §9.2.1; RFC 2684.
pub const fn cell_train(packet_bytes: u32, header_bytes: u32) -> Option<CellTrain> {
    let Some(framed) = packet_bytes.checked_add(header_bytes) else { return None };
    if framed > AAL5_PAYLOAD_MAX_BYTES {
        return None;
    }
    let filled = framed + AAL5_TRAILER_BYTES;
    let cells = filled.div_ceil(CELL_PAYLOAD_BYTES);
    Some(CellTrain {
        cells,
        padding_bytes: cells * CELL_PAYLOAD_BYTES - filled,
        wire_bytes: cells * CELL_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// IP bytes, cells with LLC/SNAP, padding, bytes of the cells, share of IP in them.
    fn check_cells(packet: u32, want: (u32, u32, u32), share: f64) {
        let train = cell_train(packet, Aal5::LlcSnap.header_bytes()).expect("it fits");
        assert_eq!((train.cells, train.padding_bytes, train.wire_bytes), want, "{packet}");
        let got = f64::from(packet) / f64::from(train.wire_bytes);
        assert!((got - share).abs() < 0.000_051, "{packet}: {got}");
    }

    #[test]
    fn packets_fill_the_cells_that_a_hand_sum_gives() {
        check_cells(40, (2, 40, 106), 0.3774); // 40 + 16 = 56, 96 of two cells
        check_cells(576, (13, 32, 689), 0.8360);
        check_cells(1492, (32, 28, 1696), 0.8797);
        check_cells(1500, (32, 20, 1696), 0.8844);
        check_cells(4470, (94, 26, 4982), 0.8972);
        check_cells(9180, (192, 20, 10_176), 0.9021);
    }

    #[test]
    fn a_bare_acknowledgement_fits_one_cell_only_without_llc() {
        let train = cell_train(40, Aal5::VcMux.header_bytes()).expect("it fits");
        assert_eq!((train.cells, train.padding_bytes), (1, 0));
    }

    #[test]
    fn access_mappings_cost_what_tc_cake_lists() {
        // tc-cake(8): the overhead of each keyword, trailer counted, and PPPoE's 8 where named.
        let total = |mapping: Aal5| {
            let pppoe = if mapping.is_pppoe() { 8 } else { 0 };
            mapping.header_bytes() + AAL5_TRAILER_BYTES + pppoe
        };
        let want = [16, 8, 10, 14, 24, 32, 32, 40];
        assert_eq!(Aal5::ALL.map(total), want);
    }

    #[test]
    fn a_frame_ends_at_65535_bytes() {
        assert!(cell_train(65_527, 8).is_some());
        assert_eq!(cell_train(65_528, 8), None);
        assert_eq!(cell_train(u32::MAX, 8), None);
    }

    proptest! {
        #[test]
        fn cells_hold_the_packet_and_waste_less_than_one(
            packet in 0_u32..66_000, mapping in 0_usize..8,
        ) {
            let header = Aal5::ALL[mapping].header_bytes();
            if let Some(train) = cell_train(packet, header) {
                prop_assert!(train.padding_bytes < CELL_PAYLOAD_BYTES);
                let filled = packet + header + AAL5_TRAILER_BYTES + train.padding_bytes;
                prop_assert_eq!(filled, train.cells * CELL_PAYLOAD_BYTES);
            }
        }
    }
}
