//! How many frames a second a medium carries, and when a result is the tester's own.
//!
//! Left out: half duplex with carrier extension, PAUSE and energy-efficient Ethernet, which break
//! these figures. Sources: RFC 5180 appendix A (Ethernet), RFC 2544 appendix B (Token Ring, FDDI),
//! RFC 2684 over AAL5 (ATM).

use crate::theory::{atm, framing};
use crate::units::{BitRate, FrameLen};

/// Overhead of a Token Ring frame beyond its length, bytes, as fits RFC 2544 appendix B.
pub const TOKEN_RING_OVERHEAD_BYTES: u32 = 17;
/// Bytes that FDDI adds to a frame.
pub const FDDI_OVERHEAD_BYTES: u32 = 18;
/// Bit rate of FDDI (ANSI X3.148), bit/s.
pub const FDDI_BPS: u64 = 100_000_000;
/// LLC/SNAP header before a packet in AAL5 (RFC 2684 §5.1), bytes.
const LLC_SNAP_BYTES: u32 = 8;
/// Share of the tester's own ceiling above which a result may be the tester's.
pub const TESTER_SHARE_MAX: f64 = 0.9;
/// Share of line rate of the line-rate test (RFC 8239 §2.2): two clocks may be 200 ppm apart.
pub const LINE_RATE_SHARE: f64 = 0.9998;

/// Link between tester and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Full-duplex Ethernet at a bit rate.
    Ethernet(BitRate),
    /// Token Ring at 4 or 16 Mbit/s.
    TokenRing(BitRate),
    /// FDDI at 100 Mbit/s.
    Fddi,
    /// IP packets with LLC/SNAP over AAL5, on a line that carries cells at such a bit rate
    /// (149.76 Mbit/s for OC-3c).
    Atm(BitRate),
    /// A virtual link: as fast as the machine.
    Software,
}

impl Medium {
    /// Frames of `len`, FCS included, that fill the medium, per second; `None` where there is no
    /// such limit.
    ///
    /// bit rate / (8 (N + overhead)); for ATM cells per second over cells per packet of N - 18
    /// bytes.
    pub fn frames_per_s(self, len: FrameLen) -> Option<f64> {
        let over =
            |rate: BitRate, bytes: u32| rate.bits_per_sec() as f64 / (f64::from(bytes) * 8.0);
        match self {
            Self::Ethernet(rate) => Some(framing::frame_rate(rate, len).per_sec()),
            Self::TokenRing(rate) => Some(over(rate, len.bytes() + TOKEN_RING_OVERHEAD_BYTES)),
            Self::Fddi => {
                let rate = BitRate::from_bits_per_sec(FDDI_BPS);
                Some(over(rate, len.bytes() + FDDI_OVERHEAD_BYTES))
            }
            Self::Atm(rate) => {
                let packet = len.bytes() - framing::HEADER_BYTES - framing::FCS_BYTES;
                Some(over(rate, atm::cell_train(packet, LLC_SNAP_BYTES)?.wire_bytes))
            }
            Self::Software => None,
        }
    }

    /// Largest load to offer: the frame rate in whole frames, rounded down.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are not negative and far below 2^53"
    )]
    pub fn whole_frames_per_s(self, len: FrameLen) -> Option<u64> {
        match self {
            Self::Ethernet(rate) => Some(framing::whole_frame_rate(rate, len)),
            _ => self.frames_per_s(len).map(|rate| rate.floor() as u64),
        }
    }

    /// Share of the medium that a rate of frames takes: against the exact limit, not the rounded
    /// one.
    pub fn utilization(self, fps: f64, len: FrameLen) -> Option<f64> {
        self.frames_per_s(len).map(|limit| fps / limit)
    }
}

/// True when a result may be the tester's limit and not the device's: it is above 90 % of the rate
/// that the tester reached without the device.
pub fn is_tester_limited(result_fps: f64, tester_fps: f64) -> bool {
    result_fps > TESTER_SHARE_MAX * tester_fps
}

/// Loss ratio of a perfect device at a full line when the tester's clock is so much faster than
/// the device's: d / (1 + d). 100 ppm give 1e-4.
pub fn loss_by_clock(ppm: f64) -> f64 {
    let fast = (ppm / 1e6).max(0.0);
    fast / (1.0 + fast)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 8] = [64, 128, 256, 512, 768, 1024, 1280, 1518];

    fn assert_frame_rates(medium: Medium, expected: [u64; 8]) {
        for (bytes, expected) in SIZES.into_iter().zip(expected) {
            let len = FrameLen::from_bytes(bytes).expect("a frame");
            assert_eq!(medium.whole_frames_per_s(len), Some(expected), "{medium:?} {bytes}");
        }
    }

    fn parse_rate(text: &str) -> BitRate {
        text.parse().expect("a rate")
    }

    #[test]
    fn theoretical_rates_of_the_tables_come_out() {
        // RFC 5180 appendix A; 768 bytes by hand: 10^7 / (8 * 788) = 1586.29.
        let ethernet = |text| Medium::Ethernet(parse_rate(text));
        assert_frame_rates(ethernet("10M"), [14_880, 8_445, 4_528, 2_349, 1_586, 1_197, 961, 812]);
        assert_frame_rates(
            ethernet("100M"),
            [148_809, 84_459, 45_289, 23_496, 15_862, 11_973, 9_615, 8_127],
        );
        assert_frame_rates(
            ethernet("1G"),
            [1_488_095, 844_594, 452_898, 234_962, 158_629, 119_731, 96_153, 81_274],
        );
        assert_frame_rates(
            ethernet("2.5G"),
            [3_720_238, 2_111_486, 1_132_246, 587_406, 396_573, 299_329, 240_384, 203_185],
        );
        assert_frame_rates(
            ethernet("10G"),
            [14_880_952, 8_445_945, 4_528_985, 2_349_624, 1_586_294, 1_197_318, 961_538, 812_743],
        );
        assert_frame_rates(
            ethernet("100G"),
            [
                148_809_523,
                84_459_459,
                45_289_855,
                23_496_240,
                15_862_944,
                11_973_180,
                9_615_384,
                8_127_438,
            ],
        );
        // RFC 2544 appendix B.
        assert_frame_rates(
            Medium::TokenRing(parse_rate("16M")),
            [24_691, 13_793, 7_326, 3_780, 2_547, 1_921, 1_542, 1_302],
        );
        assert_frame_rates(
            Medium::Fddi,
            [152_439, 85_616, 45_620, 23_584, 15_903, 11_996, 9_630, 8_138],
        );
    }

    #[test]
    fn atm_goes_in_steps_of_cells() {
        // 64 bytes of frame: 46 of packet + 8 + 8 = 62: 2 cells; 149.76 Mbit/s / 848 bits.
        let atm = Medium::Atm(parse_rate("149.76M"));
        let whole = |bytes| atm.whole_frames_per_s(FrameLen::from_bytes(bytes).expect("a frame"));
        assert_eq!(whole(64), Some(176_603));
        // 1518: 1500 + 16 = 1516: 32 cells of 424 bits.
        assert_eq!(whole(1518), Some(11_037));
        // 1514 of frame: 1512 bytes, 32 cells as well.
        assert_eq!(whole(1514), Some(11_037));
    }

    #[test]
    fn a_virtual_link_has_no_theoretical_rate() {
        assert_eq!(Medium::Software.frames_per_s(FrameLen::MIN), None);
        assert_eq!(Medium::Software.utilization(1e6, FrameLen::MIN), None);
    }

    #[test]
    fn results_near_the_testers_ceiling_are_flagged() {
        assert!(is_tester_limited(901.0, 1000.0));
        assert!(!is_tester_limited(900.0, 1000.0));
    }

    #[test]
    fn a_fast_clock_loses_frames_on_a_perfect_device() {
        assert!((loss_by_clock(100.0) - 1e-4).abs() < 2e-8);
        assert_eq!(loss_by_clock(-50.0), 0.0);
    }

    #[test]
    fn shares_are_of_the_exact_rate() {
        let share = Medium::Ethernet(parse_rate("1G")).utilization(1_488_095.0, FrameLen::MIN);
        // 1488095 / 1488095.238.
        assert!((share.expect("Ethernet") - (1.0 - 1.6e-7)).abs() < 1e-8);
    }
}
