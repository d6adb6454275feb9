//! How IP packets become cells on a line.
//!
//! Left out: other traffic on the line. The rules stand in `theory::atm` and `theory::link`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::theory::atm::{self, AAL5_TRAILER_BYTES, Aal5, CELL_PAYLOAD_BYTES};
use crate::theory::gcra::{CELL_BITS, CellRate};
use crate::theory::link::LinkTechnology;
use crate::theory::name::ParseNameError;
use crate::theory::sonet::LineFraming;

/// Number of cells that a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CellMapping {
    /// AAL5 with LLC/SNAP, 8 bytes before the packet (RFC 2684 §5.1).
    Llcsnap,
    /// AAL5 with VC multiplexing, nothing before the packet (RFC 2684 §6.1).
    Vcmux,
    /// One cell for each packet, for contracts that count packets.
    Packet,
}

impl CellMapping {
    /// Cells of an IP packet.
    pub const fn cells_per_packet(self, ip_bytes: u32) -> u32 {
        match self {
            Self::Llcsnap => aal5_cells(ip_bytes, Aal5::LlcSnap.header_bytes()),
            Self::Vcmux => aal5_cells(ip_bytes, Aal5::VcMux.header_bytes()),
            Self::Packet => 1,
        }
    }
}

/// Cells of a packet; one that offload made longer than an AAL5 frame counts as if there were no
/// longest.
const fn aal5_cells(ip_bytes: u32, header_bytes: u32) -> u32 {
    match atm::cell_train(ip_bytes, header_bytes) {
        Some(train) => train.cells,
        None => {
            ip_bytes.saturating_add(header_bytes + AAL5_TRAILER_BYTES).div_ceil(CELL_PAYLOAD_BYTES)
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

/// Cells per second of a line by its name (`oc3`, `stm1`, `ds3`), or of the bit rate of its cells.
/// # Errors
/// One line on what is accepted.
pub fn cell_line(text: &str) -> Result<CellRate, String> {
    let link: LinkTechnology = text.parse().map_err(|error: ParseNameError| error.to_string())?;
    let rate = match link {
        LinkTechnology::Sonet(line) => CellRate::new(line.payload_bps(), CELL_BITS),
        LinkTechnology::Pdh(line) => {
            let LineFraming { payload, total, .. } = line.cell_framing();
            CellRate::new(line.line_bps() * u64::from(payload), CELL_BITS * u64::from(total))
        }
        LinkTechnology::Ethernet(rate) | LinkTechnology::Adsl(rate) => CellRate::of_stream(rate),
        LinkTechnology::WanPhy
        | LinkTechnology::Docsis(_)
        | LinkTechnology::Vdsl2(_)
        | LinkTechnology::Shaped(_)
        | LinkTechnology::Wifi(_)
        | LinkTechnology::WifiLegacy(_) => {
            return Err(format!(
                "no cells run on {link}; write a SONET, SDH or PDH line, adsl:RATE or the bit rate of the cells"
            ));
        }
    };
    rate.ok_or_else(|| "the line's rate is 0".to_owned())
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
        // DS3 without PLCP: 44,736,000 × 84/85 / 424.
        assert!((cell_line("ds3").expect("ds3").per_second() - 104_268.147).abs() < 0.01);
        assert!(cell_line("wifi:54m").is_err());
        assert!(cell_line("0").is_err() && cell_line("t3x").is_err());
    }

    #[test]
    fn a_packet_of_40_bytes_takes_two_cells_or_one() {
        // (40 + 8 + 8) / 48 = 1.17; without LLC/SNAP 48 / 48 = 1.
        assert_eq!(CellMapping::Llcsnap.cells_per_packet(40), 2);
        assert_eq!(CellMapping::Vcmux.cells_per_packet(41), 2);
        assert_eq!(CellMapping::Llcsnap.cells_per_packet(9180), 192);
        // Beyond an AAL5 frame: (100,000 + 16) / 48 = 2083.7.
        assert_eq!(CellMapping::Llcsnap.cells_per_packet(100_000), 2084);
        assert!(CellMapping::Vcmux.cells_per_packet(u32::MAX) > 0);
        assert_eq!(CellMapping::Vcmux.cells_per_packet(40), 1);
        assert_eq!(CellMapping::Packet.cells_per_packet(9180), 1);
        assert_eq!("vcmux".parse(), Ok(CellMapping::Vcmux));
        assert!("aal1".parse::<CellMapping>().is_err());
    }
}
