//! Access lines: what the meter of a cable modem counts and what the framing of a VDSL2 line
//! takes. The cells of an ADSL line are in `atm`.
//!
//! Left out: physical-layer coding below the rate that the modem tells, and cable's own headers,
//! which its meter does not count. Rules: IEEE 802.3 §61.3 (64/65 coding), ITU-T G.993.2 annex K
//! (packets on VDSL2), CableLabs DOCSIS MULPI annex C (what the rate counts), tc-cake(8).

use super::framing::{FCS_BYTES, FRAME_MIN_BYTES, HEADER_BYTES};

/// Bytes of a codeword that carry data, of [`PTM_CODE_BYTES`] (IEEE 802.3 §61.3.3.1).
pub const PTM_DATA_BYTES: u32 = 64;
/// A codeword with its synchronisation byte (IEEE 802.3 §61.3.3.1).
pub const PTM_CODE_BYTES: u32 = 65;
/// Start byte, end byte and check sequence of a fragment: 1 + 1 + 2 (IEEE 802.3 §61.3.3).
pub const PTM_FRAME_BYTES: u32 = 4;

/// Bytes of a packet on a VDSL2 line before 64/65 coding: Ethernet header, FCS and fragment
/// framing around it; 1522 for 1500.
/// # Source
/// IEEE 802.3 §61.3.3; tc-cake(8), `bridged-ptm`.
pub const fn ptm_bytes(packet_bytes: u32) -> u32 {
    docsis_bytes(packet_bytes).saturating_add(PTM_FRAME_BYTES)
}

/// Bytes after 64/65 coding, on average over many packets.
pub fn ptm_line_bytes(packet_bytes: u32) -> f64 {
    f64::from(ptm_bytes(packet_bytes)) * f64::from(PTM_CODE_BYTES) / f64::from(PTM_DATA_BYTES)
}

/// Bytes that a cable modem's rate counts of a packet: the Ethernet frame with its FCS, at least
/// 64; 1518 for 1500.
/// # Source
/// CableLabs DOCSIS MULPI annex C; tc-cake(8), `docsis`.
pub const fn docsis_bytes(packet_bytes: u32) -> u32 {
    let bytes = packet_bytes.saturating_add(HEADER_BYTES + FCS_BYTES);
    if bytes < FRAME_MIN_BYTES { FRAME_MIN_BYTES } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `got` is within 1e-4 of `want`.
    fn assert_near(got: f64, want: f64) {
        assert!(((got - want) / want).abs() < 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn a_cable_modem_counts_the_frame_with_its_check_sequence() {
        assert_near(1448.0 / f64::from(docsis_bytes(1500)), 0.953_89); // 1448/1518
        assert_eq!(docsis_bytes(20), 64);
    }

    #[test]
    fn a_vdsl2_line_takes_22_bytes_and_one_in_65() {
        assert_near(1448.0 / ptm_line_bytes(1500), 0.936_74); // 1448/1522 × 64/65
        assert_near(1440.0 / ptm_line_bytes(1492 + 8), 0.931_57); // PPPoE: 1440/1522 × 64/65
    }
}
