//! What SONET/SDH and the plesiochronous hierarchy leave of a line's rate for packets or cells.
//!
//! Left out: virtual concatenation, channelised lines and forward error correction (G.709).
//! Rules: ITU-T G.707 §6 and §11, ANSI T1.105 (SONET/SDH), ITU-T G.704, G.751, G.804, G.832 and
//! ANSI T1.107 (DS1, E1, E3, DS3), IEEE 802.3 clause 50 (10GBASE-W).

/// Frames per second, of SONET/SDH as of a 64 kbit/s channel (ITU-T G.707 §6.2).
pub const FRAMES_PER_S: u32 = 8000;
/// Rows of a SONET frame (ANSI T1.105).
pub const ROWS: u32 = 9;
/// Columns of an STS-1 frame (ANSI T1.105).
pub const STS1_COLUMNS: u32 = 90;
/// Columns of section and line overhead of an STS-1 frame (ANSI T1.105).
pub const STS1_TRANSPORT_COLUMNS: u32 = 3;
/// Columns of fixed stuff of an STS-1 payload (ANSI T1.105; ITU-T G.707 §7.1.3).
pub const STS1_STUFF_COLUMNS: u32 = 2;

/// A SONET line that is one concatenated payload; OC-3N is STM-N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sonet {
    /// 51.84 Mbit/s, STM-0.
    Oc1,
    /// 155.52 Mbit/s, STM-1.
    Oc3,
    /// 622.08 Mbit/s, STM-4.
    Oc12,
    /// 2488.32 Mbit/s, STM-16.
    Oc48,
    /// 9953.28 Mbit/s, STM-64.
    Oc192,
    /// 39813.12 Mbit/s, STM-256.
    Oc768,
}

/// Columns of a SONET frame, by use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Number of all columns.
    pub total: u32,
    /// Section and line overhead, pointers among it.
    pub transport: u32,
    /// Columns of the path overhead.
    pub path: u32,
    /// Columns of fixed stuff.
    pub stuff: u32,
    /// Left for packets or cells.
    pub payload: u32,
}

impl Sonet {
    /// Every line, slowest first.
    pub const ALL: [Self; 6] =
        [Self::Oc1, Self::Oc3, Self::Oc12, Self::Oc48, Self::Oc192, Self::Oc768];

    /// The number N of OC-N.
    pub const fn oc_number(self) -> u32 {
        match self {
            Self::Oc1 => 1,
            Self::Oc3 => 3,
            Self::Oc12 => 12,
            Self::Oc48 => 48,
            Self::Oc192 => 192,
            Self::Oc768 => 768,
        }
    }

    /// Columns of the frame: 90 N, of which 3 N are section and line overhead, one is path
    /// overhead and N/3 − 1 are fixed stuff (2 for N = 1).
    ///
    /// OC-12: 1080, of which 1040 carry payload.
    /// # Source
    /// ANSI T1.105; ITU-T G.707 §6.2 and §11.1.
    pub const fn columns(self) -> Columns {
        let n = self.oc_number();
        let total = STS1_COLUMNS * n;
        let transport = STS1_TRANSPORT_COLUMNS * n;
        let stuff = if n == 1 { STS1_STUFF_COLUMNS } else { n / 3 - 1 };
        Columns { total, transport, path: 1, stuff, payload: total - transport - 1 - stuff }
    }

    /// Rate of the line: 51.84 N Mbit/s.
    ///
    /// OC-12: 622,080,000 bit/s.
    /// # Source
    /// ANSI T1.105; ITU-T G.707 §6.2.
    pub const fn line_bps(self) -> u64 {
        columns_bps(self.columns().total)
    }

    /// Rate of the payload: payload columns × 9 bytes × 8000 frames per second; 49.92 N Mbit/s for
    /// N of 3 and more.
    ///
    /// ```
    /// # use linerate_core::theory::sonet::Sonet;
    /// assert_eq!(Sonet::Oc12.payload_bps(), 599_040_000);
    /// ```
    /// # Source
    /// ANSI T1.105; ITU-T G.707 §6.2 and §11.1.
    pub const fn payload_bps(self) -> u64 {
        columns_bps(self.columns().payload)
    }
}

/// Rate of a number of columns.
const fn columns_bps(columns: u32) -> u64 {
    columns as u64 * (ROWS * 8 * FRAMES_PER_S) as u64
}

/// Line rate of 10GBASE-W, that of OC-192 (IEEE 802.3 §50.1).
pub const WAN_PHY_LINE_BPS: u64 = Sonet::Oc192.line_bps();

/// Rate at which 10GBASE-W takes frames with preamble and gap: the OC-192 payload by 64/66.
///
/// 9,584.64 Mbit/s × 64/66 = 9,294.196 Mbit/s.
/// # Source
/// IEEE 802.3 §50.1 (WAN interface sublayer) and §49.2.4 (64B/66B).
pub fn wan_phy_mac_bps() -> f64 {
    Sonet::Oc192.payload_bps() as f64 * 64.0 / 66.0
}

/// A line of the plesiochronous hierarchy, unchannelised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pdh {
    /// 1.544 Mbit/s; T1.
    Ds1,
    /// 2.048 Mbit/s.
    E1,
    /// 34.368 Mbit/s.
    E3,
    /// 44.736 Mbit/s; T3. Cells in it are found by their header check (ITU-T G.804 §7.3).
    Ds3,
    /// 44.736 Mbit/s with cells in the physical layer convergence protocol (ITU-T G.804 §7.2).
    Ds3Plcp,
}

/// Bits that a line's framing leaves: `payload` of every `total` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFraming {
    /// Bits that the framing leaves.
    pub payload: u32,
    /// Bits of the frame.
    pub total: u32,
    /// Name of the overhead that takes the others.
    pub taker: &'static str,
    /// Standard of the framing.
    pub source: &'static str,
}

impl Pdh {
    /// Every line, slowest first.
    pub const ALL: [Self; 5] = [Self::Ds1, Self::E1, Self::E3, Self::Ds3, Self::Ds3Plcp];

    /// Rate of the line.
    pub const fn line_bps(self) -> u64 {
        match self {
            Self::Ds1 => 1_544_000,
            Self::E1 => 2_048_000,
            Self::E3 => 34_368_000,
            Self::Ds3 | Self::Ds3Plcp => 44_736_000,
        }
    }

    /// Bits that the framing leaves for packets in HDLC.
    pub const fn packet_framing(self) -> LineFraming {
        match self {
            Self::Ds1 => LineFraming {
                payload: 192,
                total: 193,
                taker: "the framing bit",
                source: "ITU-T G.704 §2.1",
            },
            Self::E1 => LineFraming {
                payload: 31,
                total: 32,
                taker: "time slot 0",
                source: "ITU-T G.704 §2.3",
            },
            Self::E3 => LineFraming {
                payload: 1524,
                total: 1536,
                taker: "frame alignment, alarm and national bits",
                source: "ITU-T G.751 (frame at 34,368 kbit/s)",
            },
            Self::Ds3 | Self::Ds3Plcp => LineFraming {
                payload: 84,
                total: 85,
                taker: "one overhead bit before every 84",
                source: "ANSI T1.107; ITU-T G.704 §2.5",
            },
        }
    }

    /// Bits that the framing leaves for cells, their headers counted.
    ///
    /// DS3 with the convergence protocol carries 12 cells each 125 µs: 96,000 cells/s,
    /// 40.704 Mbit/s.
    pub const fn cell_framing(self) -> LineFraming {
        match self {
            Self::E1 => LineFraming {
                payload: 30,
                total: 32,
                taker: "time slots 0 and 16",
                source: "ITU-T G.804 §3.1",
            },
            Self::E3 => LineFraming {
                payload: 530,
                total: 537,
                taker: "7 bytes of overhead in each frame of 537",
                source: "ITU-T G.832 §2.1; G.804 §6.1",
            },
            Self::Ds3Plcp => LineFraming {
                payload: 40_704,
                total: 44_736,
                taker: "DS3 framing and the convergence protocol around 12 cells each 125 us",
                source: "ITU-T G.804 §7.2",
            },
            Self::Ds1 | Self::Ds3 => self.packet_framing(),
        }
    }

    /// Rate left for packets in HDLC.
    ///
    /// DS3: 44,736,000 × 84/85 = 44,209,694 bit/s.
    pub fn packet_bps(self) -> f64 {
        self.packet_framing().payload_bps(self.line_bps())
    }

    /// Rate left for cells, their headers counted.
    pub fn cell_bps(self) -> f64 {
        self.cell_framing().payload_bps(self.line_bps())
    }
}

impl LineFraming {
    fn payload_bps(self, line_bps: u64) -> f64 {
        line_bps as f64 * f64::from(self.payload) / f64::from(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sonet_lines_leave_what_the_standard_says() {
        // 49.92 N Mbit/s; STS-1: 84 columns × 9 × 64 kbit/s.
        let table = [
            (Sonet::Oc1, 51_840_000, 48_384_000),
            (Sonet::Oc3, 155_520_000, 149_760_000),
            (Sonet::Oc12, 622_080_000, 599_040_000),
            (Sonet::Oc48, 2_488_320_000, 2_396_160_000),
            (Sonet::Oc192, 9_953_280_000, 9_584_640_000),
            (Sonet::Oc768, 39_813_120_000, 38_338_560_000),
        ];
        for (line, line_bps, payload_bps) in table {
            assert_eq!(line.line_bps(), line_bps, "{line:?}");
            assert_eq!(line.payload_bps(), payload_bps, "{line:?}");
        }
    }

    #[test]
    fn oc12_gives_40_of_1080_columns_to_overhead() {
        let want = Columns { total: 1080, transport: 36, path: 1, stuff: 3, payload: 1040 };
        assert_eq!(Sonet::Oc12.columns(), want);
    }

    #[test]
    fn the_wan_phy_carries_less_than_ten_gigabit() {
        assert_eq!(WAN_PHY_LINE_BPS, 9_953_280_000);
        // 9,584,640,000 × 64 / 66 by hand.
        assert!((wan_phy_mac_bps() - 9_294_196_363.6).abs() < 0.1);
    }

    #[test]
    fn plesiochronous_lines_leave_what_the_standards_say() {
        let table = [
            (Pdh::Ds1, 1_536_000.0, 1_536_000.0),
            (Pdh::E1, 1_984_000.0, 1_920_000.0),
            // 34.368 × 1524/1536 and × 530/537.
            (Pdh::E3, 34_099_500.0, 33_920_000.0),
            (Pdh::Ds3, 44_209_694.1, 44_209_694.1),
            (Pdh::Ds3Plcp, 44_209_694.1, 40_704_000.0),
        ];
        for (line, packets, cells) in table {
            assert!((line.packet_bps() - packets).abs() < 0.1, "{line:?} {}", line.packet_bps());
            assert!((line.cell_bps() - cells).abs() < 0.1, "{line:?} {}", line.cell_bps());
        }
        // 96,000 cells/s, and 104,268 where the header check finds the cells.
        assert!((Pdh::Ds3Plcp.cell_bps() / 424.0 - 96_000.0).abs() < 1e-6);
        assert!((Pdh::Ds3.cell_bps() / 424.0 - 104_268.1).abs() < 0.1);
    }
}
