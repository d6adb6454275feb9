//! Wi-Fi, roughly: one exchange of 802.11a counted out, and a rule of thumb for what came later.
//!
//! Left out: everything that makes Wi-Fi what it is: other stations, retries, rate control,
//! protection, the acknowledgements that TCP sends back on the same air. Every figure is an
//! estimate. Rules: IEEE 802.11 §10.3 (access), §17 (OFDM).

/// Share of the physical rate that aggregated frames leave for packets: the middle of 0.55 to 0.70,
/// which single stations on a channel reach with 802.11n and later.
pub const AGGREGATED_SHARE: f64 = 0.625;

/// The rates of 802.11a and 802.11g, Mbit/s, with data bits of a symbol (IEEE 802.11 §17.3.2.2).
const OFDM_RATES: [(u64, u32); 8] =
    [(6, 24), (9, 36), (12, 48), (18, 72), (24, 96), (36, 144), (48, 192), (54, 216)];

/// SIFS, µs (IEEE 802.11 §17.4.4).
const SIFS_US: f64 = 16.0;
/// Slot, µs (IEEE 802.11 §17.4.4).
const SLOT_US: f64 = 9.0;
/// Slots that a station waits on average after success: half of CWmin of 15.
const BACKOFF_SLOTS: f64 = 7.5;
/// Preamble and signal field, µs (IEEE 802.11 §17.3.2).
const PREAMBLE_US: f64 = 20.0;
/// Symbol, µs (IEEE 802.11 §17.3.2).
const SYMBOL_US: f64 = 4.0;
/// Service field and tail, bits (IEEE 802.11 §17.3.2).
const SERVICE_TAIL_BITS: u32 = 16 + 6;
/// MAC header of a data frame, bytes (IEEE 802.11 §9.3.2).
pub const MAC_HEADER_BYTES: u32 = 24;
/// LLC and SNAP, bytes (IEEE 802.2; RFC 1042).
pub const LLC_SNAP_BYTES: u32 = 8;
/// Frame check sequence, bytes (IEEE 802.11 §9.2.4.8).
pub const FCS_BYTES: u32 = 4;
/// Acknowledgement frame, bytes (IEEE 802.11 §9.3.1.4).
const ACK_BYTES: u32 = 14;
/// Longest packet: an MSDU of 2304 less LLC and SNAP, bytes (IEEE 802.11 §9.2.4.7).
pub const MTU_MAX_BYTES: u32 = 2304 - LLC_SNAP_BYTES;

/// One frame and its acknowledgement on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Bytes of the frame: MAC header, LLC/SNAP, packet and FCS.
    pub frame_bytes: u32,
    /// Symbols of the frame.
    pub symbols: u32,
    /// Time from the end of one acknowledgement to the end of the next, µs.
    pub cycle_us: f64,
}

/// The exchange of a packet by 802.11a without aggregation; `None` for a rate (Mbit/s) that is
/// not one of its eight.
///
/// 1500 bytes at 54 Mbit/s: 57 symbols, 34 + 67.5 + 248 + 16 + 28 = 393.5 µs, 30.50 Mbit/s of
/// packets.
/// # Source
/// IEEE 802.11 §10.3 and §17.
pub fn exchange(packet_bytes: u32, rate_mbps: u64) -> Option<Exchange> {
    let bits_of = |mbps| OFDM_RATES.iter().find(|(rate, _)| *rate == mbps).map(|row| row.1);
    let symbol_bits = bits_of(rate_mbps)?;
    // The acknowledgement goes at the highest mandatory rate that is not above the frame's.
    let ack_mbps = [24, 12, 6].into_iter().find(|mandatory| *mandatory <= rate_mbps)?;
    let frame_bytes = packet_bytes.checked_add(MAC_HEADER_BYTES + LLC_SNAP_BYTES + FCS_BYTES)?;
    let symbols = symbols(frame_bytes, symbol_bits)?;
    let ack_symbols = self::symbols(ACK_BYTES, bits_of(ack_mbps)?)?;
    let frame_us = |symbols: u32| PREAMBLE_US + SYMBOL_US * f64::from(symbols);
    let wait_us = SIFS_US + (2.0 + BACKOFF_SLOTS) * SLOT_US;
    let cycle_us = wait_us + frame_us(symbols) + SIFS_US + frame_us(ack_symbols);
    Some(Exchange { frame_bytes, symbols, cycle_us })
}

/// Symbols that carry a frame, service field and tail; `None` when its bits do not fit 32 bits.
fn symbols(frame_bytes: u32, symbol_bits: u32) -> Option<u32> {
    let bits = frame_bytes.checked_mul(8)?.checked_add(SERVICE_TAIL_BITS)?;
    Some(bits.div_ceil(symbol_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_54_megabit_takes_393_and_a_half_microseconds() {
        let exchange = exchange(1500, 54).expect("a rate of 802.11a");
        assert_eq!((exchange.frame_bytes, exchange.symbols), (1536, 57)); // 12,310 bits / 216
        // DIFS 34, backoff 67.5, frame 248, SIFS 16, acknowledgement 28.
        assert!((exchange.cycle_us - 393.5).abs() < 1e-9, "{}", exchange.cycle_us);
        assert!((12_000.0 / exchange.cycle_us - 30.50).abs() < 0.005);
    }

    #[test]
    fn only_the_eight_rates_of_the_standard_are_known() {
        let known = |mbps| exchange(1500, mbps).is_some();
        assert_eq!((0..=100).filter(|mbps| known(*mbps)).count(), 8);
        assert!(!known(u64::MAX));
        assert!(exchange(u32::MAX, 54).is_none());
    }

    #[test]
    fn slow_frames_are_acknowledged_at_a_slow_rate() {
        // 9 Mbit/s: 342 symbols of 36 bits; acknowledged at 6 Mbit/s in 6 symbols:
        // 34 + 67.5 + 20 + 4 × 342 + 16 + 20 + 4 × 6 = 1549.5 µs.
        let exchange = exchange(1500, 9).expect("a rate of 802.11a");
        assert!((exchange.cycle_us - 1549.5).abs() < 1e-9, "{}", exchange.cycle_us);
    }
}
