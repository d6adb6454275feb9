//! What the start of a TCP connection costs: rounds until the window fills the path, and the time
//! of a transfer without loss.
//!
//! Left out: the handshake, loss, a receive window that grows too slowly, an early end of slow
//! start (see [`HYSTART_DELAY_MIN`]), and pacing. Windows grow as real numbers.
//! RFC 5681 §3.1, RFC 6928, RFC 9406.

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Initial window of today, segments (RFC 6928 §2).
pub const INITIAL_WINDOW: u32 = 10;
/// Growth of the window in each round when bytes are counted (RFC 5681 §3.1), as in Linux.
pub const GROWTH_BYTES_COUNTED: f64 = 2.0;
/// Growth when each acknowledgement adds a segment and one answers two (RFC 5681 §3.1 and §4.2).
pub const GROWTH_DELAYED_ACKS: f64 = 1.5;
/// Least rise of a round's smallest round trip that ends slow start (RFC 9406 §4.3
/// MIN_RTT_THRESH); Linux's HyStart has the same.
pub const HYSTART_DELAY_MIN: Duration = Duration::from_millis(4);
/// Rise that always ends it (RFC 9406 §4.3 MAX_RTT_THRESH).
pub const HYSTART_DELAY_MAX: Duration = Duration::from_millis(16);
/// The rise between them, as a part of the round trip (RFC 9406 §4.3 MIN_RTT_DIVISOR).
pub const HYSTART_RTT_DIVISOR: u32 = 8;
/// Round trips that a round must have measured first (RFC 9406 §4.3 N_RTT_SAMPLE).
pub const HYSTART_SAMPLES: u32 = 8;
/// HyStart++ then grows by this much less (RFC 9406 §4.3 CSS_GROWTH_DIVISOR) …
pub const HYSTART_CSS_DIVISOR: u32 = 4;
/// … for this many rounds, and ends slow start when the rise stays (RFC 9406 §4.3 CSS_ROUNDS).
pub const HYSTART_CSS_ROUNDS: u32 = 5;

/// A transfer on an idle path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStart {
    /// Payload bytes of the transfer.
    pub size: Bytes,
    /// Payload rate of the path once the window fills it.
    pub rate: BitRate,
    /// Round trip without queues.
    pub rtt: Duration,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Segments of the first round.
    pub initial_window: u32,
    /// Factor by which the window grows in each round.
    pub growth: f64,
}

/// Rounds and time of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Rounds spent waiting for acknowledgements: until the path is full or the data ends.
    pub rounds: u32,
    /// The window filled the path before the data ended.
    pub filled: bool,
    /// Segments sent in those rounds.
    pub segments_before: f64,
    /// Time from the first byte sent to the last acknowledgement.
    pub time_s: f64,
    /// Size over that time.
    pub mean_bps: f64,
    /// Time that the transfer takes beyond that at the full rate from the start: time − 8 S / C.
    pub waste_s: f64,
}

/// Reason why a transfer cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SlowStartError {
    /// A transfer of 0 bytes.
    #[error("a transfer of 0 bytes takes no time")]
    ZeroSize,
    /// A rate of 0, at which a transfer never ends.
    #[error("at a rate of 0 a transfer never ends")]
    ZeroRate,
    /// A round trip of 0, without rounds to count.
    #[error("with a round trip of 0 there are no rounds to count")]
    ZeroRtt,
    /// Segments of 0 bytes.
    #[error("segments of 0 bytes carry nothing")]
    ZeroMss,
    /// An initial window of 0 segments.
    #[error("with an initial window of 0 a transfer never starts")]
    ZeroInitialWindow,
    /// The window never fills the path.
    #[error("a growth of {growth} in each round is not above 1")]
    NoGrowth {
        /// The factor that was given.
        growth: f64,
    },
    /// The rounds alone take as long.
    #[error("{time_s} s is no more than {rounds} round trips take")]
    TimeTooShort {
        /// The time that was given.
        time_s: f64,
        /// Number of rounds in that time.
        rounds: u32,
    },
}

/// Time and mean rate of a transfer: T = n RTT + (ceil(S / MSS) − sent) 8 MSS / C + RTT.
///
/// n is the smallest with IW gⁿ ≥ C RTT / (8 MSS), or less when the data end before; sent =
/// IW (gⁿ − 1) / (g − 1). 1 MB at 50 Mbit/s and 40 ms with 1448-byte segments, IW 10 and g 2 takes
/// 5 rounds and 328 ms, so 24.37 Mbit/s.
/// # Errors
/// A size, rate, round trip, segment or initial window of 0, a growth not above 1.
/// # Source
/// RFC 5681 §3.1; RFC 6928 for the initial window.
pub fn transfer(start: &SlowStart) -> Result<Transfer, SlowStartError> {
    start.check_inputs()?;
    let to_fill = start.rounds_to_grow(start.path_segments() / start.initial_segments());
    let to_end = start
        .rounds_to_grow(1.0 + start.segments() * (start.growth - 1.0) / start.initial_segments());
    // In the last of those rounds the data end, and nobody waits for the next.
    let rounds = to_fill.min(to_end.saturating_sub(1));
    let segments_before = start.sent_in(rounds);
    let rest_s = (start.segments() - segments_before) * start.segment_s();
    let time_s = f64::from(rounds) * start.rtt_s() + rest_s + start.rtt_s();
    let bits = start.size.count() as f64 * 8.0;
    Ok(Transfer {
        rounds,
        filled: rounds == to_fill,
        segments_before,
        time_s,
        mean_bps: bits / time_s,
        waste_s: time_s - bits / start.rate.bits_per_sec() as f64,
    })
}

/// The payload of whole segments that a transfer has had acknowledged after `time`, the inverse
/// of [`transfer`]; the size in `start` says nothing. 0 before the first answer.
/// # Errors
/// A rate, round trip, segment or initial window of 0, a growth not above 1.
pub fn bytes_within(start: &SlowStart, time: Duration) -> Result<f64, SlowStartError> {
    let start = SlowStart { size: Bytes::new(1), ..*start };
    start.check_inputs()?;
    let sending_s = time.as_secs_f64() - start.rtt_s();
    if sending_s < 0.0 {
        return Ok(0.0);
    }
    let to_fill = start.rounds_to_grow(start.path_segments() / start.initial_segments());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the quotient is not negative, and a cast from f64 stays in the range"
    )]
    let rounds = ((sending_s / start.rtt_s()) as u32).min(to_fill);
    let rest = (sending_s - f64::from(rounds) * start.rtt_s()) / start.segment_s();
    let window = start.initial_segments() * start.growth.powf(f64::from(rounds));
    let last = if rounds == to_fill { rest } else { rest.min(window) };
    Ok((start.sent_in(rounds) + last).floor() * f64::from(start.mss_bytes))
}

/// Time of a transfer, in seconds, whose start is counted as `rounds` lost round trips:
/// T = 8 S / R + n RTT, an upper bound on what slow start costs.
///
/// 1 GB at 451.9 Mbit/s and 12 round trips of 45 ms take 18.24 s, of which 2.96 % is the start.
/// # Errors
/// A rate of 0.
/// # Source
/// The arithmetic behind table 3 of the OC-12 performance study of LBNL and ANL (1999).
pub fn flat_time_s(
    size: Bytes,
    rate: BitRate,
    rtt: Duration,
    rounds: u32,
) -> Result<f64, SlowStartError> {
    if rate.bits_per_sec() == 0 {
        return Err(SlowStartError::ZeroRate);
    }
    let start_s = f64::from(rounds) * rtt.as_secs_f64();
    Ok(size.count() as f64 * 8.0 / rate.bits_per_sec() as f64 + start_s)
}

/// The full rate, in bit/s, that a transfer of [`flat_time_s`] must have had:
/// R = 8 S / (T − n RTT).
/// # Errors
/// A time no longer than the rounds.
pub fn flat_rate_bps(
    size: Bytes,
    time: Duration,
    rtt: Duration,
    rounds: u32,
) -> Result<f64, SlowStartError> {
    let time_s = time.as_secs_f64();
    let sending_s = time_s - f64::from(rounds) * rtt.as_secs_f64();
    if sending_s <= 0.0 {
        return Err(SlowStartError::TimeTooShort { time_s, rounds });
    }
    Ok(size.count() as f64 * 8.0 / sending_s)
}

/// Rise of the round trip that ends slow start early: clamp(RTT / 8, 4 ms, 16 ms). 12.5 ms at
/// 100 ms. A path whose delay varies by more leaves slow start without a loss.
/// # Source
/// RFC 9406 §4.2, §4.3.
pub fn hystart_rise(rtt: Duration) -> Duration {
    (rtt / HYSTART_RTT_DIVISOR).clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX)
}

/// Round trips in which a window grows by `factor`, a real number: ln(factor) / ln(g).
/// # Errors
/// A growth not above 1.
pub fn round_trips_to_grow(factor: f64, growth: f64) -> Result<f64, SlowStartError> {
    if !(growth > 1.0 && growth.is_finite()) {
        return Err(SlowStartError::NoGrowth { growth });
    }
    Ok(factor.ln() / growth.ln())
}

impl SlowStart {
    fn check_inputs(&self) -> Result<(), SlowStartError> {
        if self.size.count() == 0 {
            return Err(SlowStartError::ZeroSize);
        }
        if self.rate.bits_per_sec() == 0 {
            return Err(SlowStartError::ZeroRate);
        }
        if self.rtt.is_zero() {
            return Err(SlowStartError::ZeroRtt);
        }
        if self.mss_bytes == 0 {
            return Err(SlowStartError::ZeroMss);
        }
        if self.initial_window == 0 {
            return Err(SlowStartError::ZeroInitialWindow);
        }
        if !(self.growth > 1.0 && self.growth.is_finite()) {
            return Err(SlowStartError::NoGrowth { growth: self.growth });
        }
        Ok(())
    }

    fn initial_segments(&self) -> f64 {
        f64::from(self.initial_window)
    }

    fn rtt_s(&self) -> f64 {
        self.rtt.as_secs_f64()
    }

    /// Seconds that a full segment takes at the full rate.
    fn segment_s(&self) -> f64 {
        f64::from(self.mss_bytes) * 8.0 / self.rate.bits_per_sec() as f64
    }

    /// Segments that fill the path.
    fn path_segments(&self) -> f64 {
        self.rtt_s() / self.segment_s()
    }

    /// Segments of the transfer.
    fn segments(&self) -> f64 {
        self.size.count().div_ceil(u64::from(self.mss_bytes)) as f64
    }

    /// Segments sent in the first `rounds` rounds.
    fn sent_in(&self, rounds: u32) -> f64 {
        self.initial_segments() * (self.growth.powf(f64::from(rounds)) - 1.0) / (self.growth - 1.0)
    }

    /// The smallest n with gⁿ ≥ `factor`.
    fn rounds_to_grow(&self, factor: f64) -> u32 {
        if factor <= 1.0 {
            return 0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the logarithm is positive, and a cast from f64 stays in the range"
        )]
        let about = (factor.ln() / self.growth.ln()).ceil() as u32;
        // The logarithms round: the power decides.
        let reaches = |rounds: u32| self.growth.powf(f64::from(rounds)) >= factor;
        match about {
            0 => 0,
            n if reaches(n - 1) => n - 1,
            n if reaches(n) => n,
            n => n.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow_start_from(size: u64, rate: &str, rtt_ms: u64, mss_bytes: u32) -> SlowStart {
        SlowStart {
            size: Bytes::new(size),
            rate: rate.parse().expect("a rate"),
            rtt: Duration::from_millis(rtt_ms),
            mss_bytes,
            initial_window: INITIAL_WINDOW,
            growth: GROWTH_BYTES_COUNTED,
        }
    }

    /// `got` rounds to `want`, whose last digit stands for `unit`.
    fn assert_rounds_to(got: f64, want: f64, unit: f64) {
        assert!((got - want).abs() <= unit * 0.501, "got {got}, want {want}");
    }

    fn check_transfer(start: &SlowStart, rounds: u32, time_s: f64, mbps: f64, unit: f64) {
        let got = transfer(start).expect("a possible transfer");
        assert_eq!(got.rounds, rounds, "{start:?}");
        assert_rounds_to(got.time_s, time_s, 1e-4);
        assert_rounds_to(got.mean_bps / 1e6, mbps, unit);
    }

    #[test]
    fn short_transfers_pay_the_round_trips() {
        // By hand for the first: 691 segments, 172.7 fill the path, 10 · 2⁵ = 320 do; 310 sent
        // before, 381 · 1448 · 8 / 50e6 = 88.27 ms after, and 6 round trips of 40 ms.
        check_transfer(&slow_start_from(1_000_000, "50M", 40, 1448), 5, 0.3283, 24.37, 0.01);
        check_transfer(&slow_start_from(100_000, "50M", 40, 1448), 2, 0.1293, 6.19, 0.01);
        check_transfer(&slow_start_from(1_000_000, "1G", 21, 1448), 6, 0.1477, 54.16, 0.01);
        check_transfer(&slow_start_from(100_000_000, "1G", 21, 1448), 8, 0.9595, 833.8, 0.1);
        check_transfer(&slow_start_from(1_000_000_000, "10G", 100, 8948), 11, 1.8535, 4316.2, 0.1);
        check_transfer(&slow_start_from(14_600, "1G", 100, 1460), 0, 0.1001, 1.17, 0.01);
    }

    #[test]
    fn a_transfer_that_ends_in_a_round_does_not_fill_the_path() {
        assert!(!transfer(&slow_start_from(100_000, "50M", 40, 1448)).expect("possible").filled);
        assert!(transfer(&slow_start_from(1_000_000, "50M", 40, 1448)).expect("possible").filled);
        // One segment more than the first window costs another round trip.
        let two = transfer(&slow_start_from(14_601, "1G", 100, 1460)).expect("possible");
        assert_eq!(two.rounds, 1);
        assert_rounds_to(two.time_s, 0.2, 1e-3);
    }

    #[test]
    fn the_table_of_the_oc12_study_comes_out_at_452_megabit() {
        let rtt = Duration::from_millis(45);
        let rate = "451.9M".parse().expect("a rate");
        // Size, seconds printed and their last digit, share printed and its last digit.
        let table = [
            (10_000_000_000, 178.0, 1.0, 0.30, 0.01),
            (1_000_000_000, 18.2, 0.1, 2.9, 0.1),
            (100_000_000, 2.31, 0.01, 23.4, 0.1),
        ];
        for (size, printed_s, unit, printed_share, share_unit) in table {
            let time_s = flat_time_s(Bytes::new(size), rate, rtt, 12).expect("a rate");
            assert_rounds_to(time_s, printed_s, unit);
            // Table 3 prints 2.96 as 2.9: it cuts where it does not round.
            let share = 54.0 / time_s;
            assert!((share - printed_share).abs() < share_unit, "{share} {printed_share}");
        }
    }

    #[test]
    fn the_oc12_study_used_between_451_72_and_452_08_megabit() {
        // What rounds to 178, 18.2 and 2.31 s after 0.54 s: 80e9/176.96 bounds it from above,
        // 8e9/17.71 from below.
        let rtt = Duration::from_millis(45);
        let rate = |size, ms| {
            flat_rate_bps(Bytes::new(size), Duration::from_millis(ms), rtt, 12).expect("long") / 1e6
        };
        assert_rounds_to(rate(10_000_000_000, 177_500), 452.08, 0.01);
        assert_rounds_to(rate(1_000_000_000, 18_250), 451.72, 0.01);
        // The third line allows both: 450.70 to 453.26.
        assert_rounds_to(rate(100_000_000, 2_315), 450.70, 0.01);
        assert_rounds_to(rate(100_000_000, 2_305), 453.26, 0.01);
    }

    #[test]
    fn twelve_round_trips_open_the_window_of_the_oc12_study() {
        // 452 Mbit/s · 45 ms / (8 · 9140) = 278.2 segments from 2, by a half each round: 12.17.
        let rounds = round_trips_to_grow(278.2 / 2.0, GROWTH_DELAYED_ACKS).expect("it grows");
        assert_rounds_to(rounds, 12.17, 0.01);
        // Today's hosts need 5: 10 · 2⁵ = 320.
        let today = transfer(&slow_start_from(1_000_000_000, "452M", 45, 9140)).expect("possible");
        assert_eq!(today.rounds, 5);
    }

    #[test]
    fn slow_start_ends_at_a_rise_of_an_eighth_between_4_and_16_ms() {
        for (rtt_ms, rise_us) in
            [(1, 4_000), (32, 4_000), (100, 12_500), (128, 16_000), (500, 16_000)]
        {
            let rise = hystart_rise(Duration::from_millis(rtt_ms));
            assert_eq!(rise, Duration::from_micros(rise_us), "{rtt_ms} ms");
        }
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let good = slow_start_from(1_000_000, "50M", 40, 1448);
        let cases = [
            (SlowStart { size: Bytes::new(0), ..good }, SlowStartError::ZeroSize),
            (SlowStart { rate: BitRate::default(), ..good }, SlowStartError::ZeroRate),
            (SlowStart { rtt: Duration::ZERO, ..good }, SlowStartError::ZeroRtt),
            (SlowStart { mss_bytes: 0, ..good }, SlowStartError::ZeroMss),
            (SlowStart { initial_window: 0, ..good }, SlowStartError::ZeroInitialWindow),
            (SlowStart { growth: 1.0, ..good }, SlowStartError::NoGrowth { growth: 1.0 }),
            (SlowStart { growth: -2.0, ..good }, SlowStartError::NoGrowth { growth: -2.0 }),
        ];
        for (start, want) in cases {
            assert_eq!(transfer(&start), Err(want));
            assert!(!want.to_string().contains('\n'));
        }
        assert!(transfer(&SlowStart { growth: f64::NAN, ..good }).is_err());
        assert!(transfer(&SlowStart { growth: f64::INFINITY, ..good }).is_err());
        let late = flat_rate_bps(good.size, Duration::from_millis(540), good.rtt, 14);
        let error = late.expect_err("0.56 s of rounds");
        assert_eq!(error.to_string(), "0.54 s is no more than 14 round trips take");
    }

    #[test]
    fn the_smallest_growth_ends_without_a_loop() {
        let slow =
            SlowStart { growth: 1.0 + f64::EPSILON, ..slow_start_from(1 << 40, "800G", 100, 1460) };
        assert!(transfer(&slow).expect("possible").time_s.is_finite());
    }

    proptest! {
        #[test]
        fn bytes_within_a_time_is_the_inverse(
            mbps in 1_u64..100_000,
            rtt_us in 100_u64..500_000,
            mss_bytes in 500_u32..9000,
            initial_window in 1_u32..50,
            growth in 1.2_f64..2.0,
            segments in 1_u64..1_000_000,
        ) {
            let start = SlowStart {
                size: Bytes::new(segments * u64::from(mss_bytes)),
                rate: BitRate::from_bits_per_sec(mbps * 1_000_000),
                rtt: Duration::from_micros(rtt_us),
                mss_bytes,
                initial_window,
                growth,
            };
            let done = transfer(&start)?;
            // A clock of whole nanoseconds may miss the end of the last segment.
            let time = Duration::from_secs_f64(done.time_s) + Duration::from_nanos(2);
            let got = bytes_within(&start, time)? / f64::from(mss_bytes);
            let extra = 4e-9 / start.segment_s() + 1e-6 * segments as f64;
            prop_assert!(got >= segments as f64 - extra, "{got} {segments}");
            prop_assert!(got <= segments as f64 + 1.0 + extra, "{got} {segments}");
        }

        #[test]
        fn more_data_takes_longer_and_a_shorter_path_less(
            size in 1_u64..1_000_000_000,
            more in 1_u64..1_000_000,
            rtt_us in 100_u64..500_000,
            mss_bytes in 500_u32..9000,
        ) {
            let rtt = Duration::from_micros(rtt_us);
            let here = SlowStart { rtt, ..slow_start_from(size, "1G", 1, mss_bytes) };
            let time_s = |start: &SlowStart| transfer(start).map(|transfer| transfer.time_s);
            let here_s = time_s(&here)?;
            let larger_s = time_s(&SlowStart { size: Bytes::new(size + more), ..here })?;
            prop_assert!(larger_s >= here_s);
            let longer_s = time_s(&SlowStart { rtt: rtt * 2, ..here })?;
            prop_assert!(longer_s > here_s);
            prop_assert!(here_s >= size as f64 * 8.0 / 1e9 + rtt.as_secs_f64() * 0.999);
            let flat = flat_time_s(here.size, here.rate, rtt, transfer(&here)?.rounds + 1)?;
            let segment_s = f64::from(mss_bytes) * 8.0 / 1e9;
            prop_assert!(here_s <= flat + segment_s, "the flat sum is an upper bound");
        }
    }
}
