//! How IP packets become cells on a line.
//!
//! Left out: other traffic on the line. AAL5 per ITU-T I.363.5, encapsulations per RFC 2684, rates
//! per ITU-T G.707.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::theory::gcra::{CellRate, aal5_cells};
use crate::units::BitRate;

/// How many cells a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellMapping {
    /// AAL5 with LLC/SNAP, 8 bytes before the packet (RFC 2684 §5.2).
    Llcsnap,
    /// AAL5 with VC multiplexing, nothing before the packet (RFC 2684 §6.1).
    Vcmux,
    /// One cell for each packet, for contracts that count packets.
    Packet,
}

impl CellMapping {
    /// Cells of an IP packet.
    pub const fn cells(self, ip_bytes: u32) -> u32 {
        match self {
            Self::Llcsnap => aal5_cells(ip_bytes, 8),
            Self::Vcmux => aal5_cells(ip_bytes, 0),
            Self::Packet => 1,
        }
    }
}

impl FromStr for CellMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "llcsnap" => Ok(Self::Llcsnap),
            "vcmux" => Ok(Self::Vcmux),
            "packet" => Ok(Self::Packet),
            _ => Err("packets become cells by llcsnap, vcmux or packet".to_owned()),
        }
    }
}

impl fmt::Display for CellMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Llcsnap => "AAL5 with LLC/SNAP",
            Self::Vcmux => "AAL5 with VC multiplexing",
            Self::Packet => "one cell for each packet",
        })
    }
}

/// Payload of a concatenated STS-N, N times 49.92 Mbit/s: 260 of 270 columns (ITU-T G.707 §6).
const STS_PAYLOAD_BPS: u64 = 49_920_000;
/// Payload of an STS-1, bit/s: 84 of 90 columns (ANSI T1.105).
const STS_1_PAYLOAD_BPS: u64 = 48_384_000;

/// Cells per second of a line: a name (`oc3`, `stm1`) or the bit rate of its cells.
/// # Errors
/// One line on what is accepted.
pub fn cell_line(text: &str) -> Result<CellRate, String> {
    let named = match text.to_ascii_lowercase().as_str() {
        "oc1" | "stm0" => Some(STS_1_PAYLOAD_BPS),
        "oc3" | "stm1" => Some(3 * STS_PAYLOAD_BPS),
        "oc12" | "stm4" => Some(12 * STS_PAYLOAD_BPS),
        "oc48" | "stm16" => Some(48 * STS_PAYLOAD_BPS),
        "oc192" | "stm64" => Some(192 * STS_PAYLOAD_BPS),
        _ => None,
    };
    let rate = match named {
        Some(bps) => BitRate::from_bits_per_sec(bps),
        None => text.parse().map_err(|error| {
            format!("{error}; or name a line: oc1, oc3, oc12, oc48, oc192, stm1, stm4, stm16")
        })?,
    };
    CellRate::of_stream(rate).ok_or_else(|| "the line's rate is 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_rates_of_their_payload() {
        // 149.76, 599.04 and 2396.16 Mbit/s over 424 bits.
        for (name, cells) in [("oc3", 353_207.547), ("OC12", 1_412_830.19), ("stm16", 5_651_320.75)]
        {
            let got = cell_line(name).expect(name).per_second();
            assert!((got - cells).abs() < 0.01, "{name}: {got}");
        }
        assert_eq!(cell_line("149.76M"), cell_line("oc3"));
        assert!(cell_line("0").is_err() && cell_line("t3x").is_err());
    }

    #[test]
    fn a_packet_of_40_bytes_takes_two_cells_or_one() {
        assert_eq!(CellMapping::Llcsnap.cells(40), 2);
        assert_eq!(CellMapping::Vcmux.cells(40), 1);
        assert_eq!(CellMapping::Packet.cells(9180), 1);
        assert_eq!("vcmux".parse(), Ok(CellMapping::Vcmux));
        assert!("aal1".parse::<CellMapping>().is_err());
    }
}
