//! Token buckets: which packets keep to a rate and a burst, with one, two or three colours.
//!
//! Tokens are counted in 8·10^9ths of a byte, what 1 bit/s brings in a nanosecond, so that no
//! rounding builds up. Left out: what is then done to a packet (drop, mark, delay).
//! Rules: RFC 2697 §3, RFC 2698 §3; a bucket of one rate is also that of RFC 2212's TSpec.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Tokens of a byte: 1 bit/s for 8·10^9 ns.
const PER_BYTE: i128 = 8_000_000_000;

/// Colour that a meter gives a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    /// Within the committed rate and burst.
    Green,
    /// Above them, within the excess burst or the peak rate.
    Yellow,
    /// Above both rates or bursts.
    Red,
}

/// Reason why parameters are no bucket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BucketError {
    /// A rate at which no tokens ever come.
    #[error("the rate is 0: no token would ever come")]
    ZeroRate,
    /// No packet ever fits.
    #[error("the burst is 0 bytes: no packet would ever fit")]
    ZeroBurst,
    /// A peak rate (PIR) below the committed one (CIR).
    #[error("the peak rate ({peak}) is below the committed rate ({committed})")]
    PeakBelowCommitted {
        /// Peak information rate (PIR).
        peak: BitRate,
        /// Committed information rate (CIR).
        committed: BitRate,
    },
    /// A burst on a line that is not faster than the bucket fills.
    #[error("the line ({line}) is not faster than the bucket fills ({rate}): the burst has no end")]
    EndlessBurst {
        /// Rate of the line.
        line: BitRate,
        /// Rate of the bucket.
        rate: BitRate,
    },
}

/// A full bucket with its tokens.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    level: i128,
    depth: i128,
}

impl Tokens {
    fn full_bucket(burst: Bytes) -> Self {
        let depth = i128::from(burst.count()) * PER_BYTE;
        Self { level: depth, depth }
    }

    /// Adds tokens and returns those that the bucket does not hold.
    fn add(&mut self, tokens: i128) -> i128 {
        let level = self.level.saturating_add(tokens);
        self.level = level.min(self.depth);
        level - self.level
    }

    /// Tokens that a packet of `bytes` lacks; it fits at 0 and below.
    fn missing_tokens(&self, bytes: u32) -> i128 {
        i128::from(bytes) * PER_BYTE - self.level
    }

    fn remove_tokens(&mut self, bytes: u32) {
        self.level -= i128::from(bytes) * PER_BYTE;
    }

    fn tokens_in_bytes(&self) -> f64 {
        self.level as f64 / PER_BYTE as f64
    }
}

/// The time between arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Since(Option<u64>);

/// Tokens that `bps` brings in `step` nanoseconds.
const fn brought(step: i128, bps: i128) -> i128 {
    step.saturating_mul(bps)
}

impl Since {
    /// Nanoseconds since the last arrival; 0 at the first and when time goes back.
    fn elapsed_ns(&mut self, at_ns: u64) -> i128 {
        let last = self.0.unwrap_or(at_ns);
        self.0 = Some(last.max(at_ns));
        i128::from(at_ns.saturating_sub(last))
    }
}

/// Bytes, rounded up, that are missing from a bucket for a packet that does not conform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingBytes(pub u64);

fn missing(lack: i128) -> Option<MissingBytes> {
    let bytes = (lack + PER_BYTE - 1).max(0) / PER_BYTE;
    (lack > 0).then(|| MissingBytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

/// A bucket of one rate and one burst, full at the first packet.
///
/// ```
/// # use linerate_core::theory::token_bucket::TokenBucket;
/// let (rate, burst) = ("8k".parse().expect("a rate"), "3000".parse().expect("a size"));
/// let mut bucket = TokenBucket::new(rate, burst).expect("neither is 0");
/// assert!((0..2).all(|_| bucket.arrive(0, 1500).is_none()));
/// assert_eq!(bucket.arrive(0, 1500).map(|missing| missing.0), Some(1500));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate_bps: i128,
    tokens: Tokens,
    since: Since,
}

impl TokenBucket {
    /// A full bucket.
    /// # Errors
    /// When the rate or the burst is 0.
    pub fn new(rate: BitRate, burst: Bytes) -> Result<Self, BucketError> {
        check_rate(rate)?;
        if burst.count() == 0 {
            return Err(BucketError::ZeroBurst);
        }
        let rate_bps = rate.bits_per_sec().into();
        Ok(Self { rate_bps, tokens: Tokens::full_bucket(burst), since: Since::default() })
    }

    /// Takes the tokens of a packet that arrives and conforms (`None`); otherwise the bytes
    /// missing.
    pub fn arrive(&mut self, at_ns: u64, bytes: u32) -> Option<MissingBytes> {
        self.tokens.add(brought(self.since.elapsed_ns(at_ns), self.rate_bps));
        let lack = self.tokens.missing_tokens(bytes);
        if lack <= 0 {
            self.tokens.remove_tokens(bytes);
        }
        missing(lack)
    }

    /// The first whole nanosecond, at `at_ns` or later, at which a packet conforms when no other
    /// comes before it; `None` when it is longer than the burst and never will.
    ///
    /// 8 kbit/s and an empty bucket: 1500 bytes conform after 1.5 s.
    pub fn conforms_at_ns(&self, at_ns: u64, bytes: u32) -> Option<u64> {
        if i128::from(bytes) * PER_BYTE > self.tokens.depth {
            return None;
        }
        let last = self.since.0.unwrap_or(at_ns);
        let wait = self.tokens.missing_tokens(bytes).max(0);
        let wait = u64::try_from((wait + self.rate_bps - 1) / self.rate_bps).ok()?;
        Some(last.saturating_add(wait).max(at_ns))
    }

    /// Tokens left after the last arrival, in bytes.
    pub fn level_bytes(&self) -> f64 {
        self.tokens.tokens_in_bytes()
    }
}

/// A colour, with the bytes that a packet which is not green lacks in the bucket that made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Colour of the packet.
    pub colour: Colour,
    /// Bytes missing from the bucket that decided; `None` for green, and where the packet arrived
    /// with its colour.
    pub missing: Option<MissingBytes>,
}

const fn marked(colour: Colour, missing: Option<MissingBytes>) -> Marked {
    Marked { colour, missing }
}

/// Parameters of the single-rate three-colour marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleRate {
    /// Committed information rate (CIR).
    pub committed: BitRate,
    /// Committed burst size (CBS).
    pub committed_burst: Bytes,
    /// Excess burst size (EBS).
    pub excess_burst: Bytes,
}

/// The single-rate three-colour marker: tokens that the committed bucket cannot hold fill the
/// excess bucket. Bytes are those of IP packets, headers included (RFC 2697 §2).
#[derive(Clone, Copy, Debug)]
pub struct SrTcm {
    rate_bps: i128,
    committed: Tokens,
    excess: Tokens,
    since: Since,
}

impl SrTcm {
    /// A marker with both buckets full.
    pub fn new(plan: &SingleRate) -> Result<Self, BucketError> {
        check_rate(plan.committed)?;
        if plan.committed_burst.count() == 0 && plan.excess_burst.count() == 0 {
            return Err(BucketError::ZeroBurst);
        }
        Ok(Self {
            rate_bps: plan.committed.bits_per_sec().into(),
            committed: Tokens::full_bucket(plan.committed_burst),
            excess: Tokens::full_bucket(plan.excess_burst),
            since: Since::default(),
        })
    }

    /// Marks a packet; `was` is its colour on arrival, green for a colour-blind marker.
    /// # Source
    /// RFC 2697 §3.
    pub fn arrive(&mut self, at_ns: u64, bytes: u32, was: Colour) -> Marked {
        let over = self.committed.add(brought(self.since.elapsed_ns(at_ns), self.rate_bps));
        self.excess.add(over);
        let committed_lack = self.committed.missing_tokens(bytes);
        let excess_lack = self.excess.missing_tokens(bytes);
        if was == Colour::Green && committed_lack <= 0 {
            self.committed.remove_tokens(bytes);
            return marked(Colour::Green, None);
        }
        let from_committed = if was == Colour::Green { missing(committed_lack) } else { None };
        if was != Colour::Red && excess_lack <= 0 {
            self.excess.remove_tokens(bytes);
            return marked(Colour::Yellow, from_committed);
        }
        marked(Colour::Red, if was == Colour::Red { None } else { missing(excess_lack) })
    }
}

/// Parameters of the two-rate three-colour marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoRate {
    /// Committed information rate (CIR).
    pub committed: BitRate,
    /// Committed burst size (CBS).
    pub committed_burst: Bytes,
    /// Peak information rate (PIR).
    pub peak: BitRate,
    /// Peak burst size (PBS).
    pub peak_burst: Bytes,
}

/// The two-rate three-colour marker. Bytes are those of IP packets, headers included
/// (RFC 2698 §2).
#[derive(Clone, Copy, Debug)]
pub struct TrTcm {
    committed_bps: i128,
    peak_bps: i128,
    committed: Tokens,
    peak: Tokens,
    since: Since,
}

impl TrTcm {
    /// A marker with both buckets full.
    pub fn new(plan: &TwoRate) -> Result<Self, BucketError> {
        check_rate(plan.committed)?;
        if plan.committed_burst.count() == 0 || plan.peak_burst.count() == 0 {
            return Err(BucketError::ZeroBurst);
        }
        if plan.peak < plan.committed {
            let TwoRate { peak, committed, .. } = *plan;
            return Err(BucketError::PeakBelowCommitted { peak, committed });
        }
        Ok(Self {
            committed_bps: plan.committed.bits_per_sec().into(),
            peak_bps: plan.peak.bits_per_sec().into(),
            committed: Tokens::full_bucket(plan.committed_burst),
            peak: Tokens::full_bucket(plan.peak_burst),
            since: Since::default(),
        })
    }

    /// Marks a packet; `was` is its colour on arrival, green for a colour-blind marker.
    /// # Source
    /// RFC 2698 §3.
    pub fn arrive(&mut self, at_ns: u64, bytes: u32, was: Colour) -> Marked {
        let step = self.since.elapsed_ns(at_ns);
        self.committed.add(brought(step, self.committed_bps));
        self.peak.add(brought(step, self.peak_bps));
        let peak_lack = self.peak.missing_tokens(bytes);
        if was == Colour::Red || peak_lack > 0 {
            return marked(Colour::Red, if was == Colour::Red { None } else { missing(peak_lack) });
        }
        self.peak.remove_tokens(bytes);
        let committed_lack = self.committed.missing_tokens(bytes);
        if was == Colour::Yellow || committed_lack > 0 {
            let lack = if was == Colour::Yellow { None } else { missing(committed_lack) };
            return marked(Colour::Yellow, lack);
        }
        self.committed.remove_tokens(bytes);
        marked(Colour::Green, None)
    }
}

const fn check_rate(rate: BitRate) -> Result<(), BucketError> {
    match rate.bits_per_sec() {
        0 => Err(BucketError::ZeroRate),
        _ => Ok(()),
    }
}

/// A burst at the rate of the line through a full bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOnLine {
    /// Depth of the bucket.
    pub burst: Bytes,
    /// Rate of the bucket.
    pub rate: BitRate,
    /// Rate of the line.
    pub line: BitRate,
}

/// Time for which a full bucket lets traffic pass at the line's rate, in seconds: t = 8 b / (C -
/// r). 1 MB at 100 Mbit/s lasts 8.889 ms on a line of 1 Gbit/s, and 8.889 Mbit pass meanwhile.
pub fn burst_duration_s(plan: &BurstOnLine) -> Result<f64, BucketError> {
    let BurstOnLine { burst, rate, line } = *plan;
    if line <= rate {
        return Err(BucketError::EndlessBurst { line, rate });
    }
    let spare = line.bits_per_sec() - rate.bits_per_sec();
    Ok(8.0 * burst.count() as f64 / spare as f64)
}

/// The most bytes that a bucket lets pass in any window of `span`: b + r t / 8.
/// # Source
/// RFC 2212, Policing.
pub fn envelope_bytes(rate: BitRate, burst: Bytes, span: Duration) -> f64 {
    burst.count() as f64 + rate.bits_per_sec() as f64 * span.as_secs_f64() / 8.0
}

/// The share of a steady stream that a policer drops in the long run: 1 - r / R, and 0 when the
/// stream R is not above the rate r. 1.3 times the rate loses 23.08 %.
/// # Errors
/// When the offered rate is 0.
pub fn policed_loss(rate: BitRate, offered: BitRate) -> Result<f64, BucketError> {
    check_rate(offered)?;
    Ok((1.0 - rate.bits_per_sec() as f64 / offered.bits_per_sec() as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_rate(text: &str) -> BitRate {
        text.parse().expect("a rate")
    }

    /// Packets of 1500 bytes at these times in ms; one letter a packet.
    fn check_colours(times_ms: &[u64], mut mark: impl FnMut(u64, u32) -> Colour, colours: &str) {
        let letter = |colour| match colour {
            Colour::Green => 'G',
            Colour::Yellow => 'Y',
            Colour::Red => 'R',
        };
        let got: String = times_ms.iter().map(|ms| letter(mark(ms * 1_000_000, 1500))).collect();
        assert_eq!(got, colours);
    }

    fn srtcm_marker() -> SrTcm {
        let (committed_burst, excess_burst) = (Bytes::new(3000), Bytes::new(1500));
        let plan = SingleRate { committed: parse_rate("8k"), committed_burst, excess_burst };
        SrTcm::new(&plan).expect("a marker")
    }

    fn trtcm_marker() -> TrTcm {
        let plan = TwoRate {
            committed: parse_rate("8k"),
            committed_burst: Bytes::new(1500),
            peak: parse_rate("16k"),
            peak_burst: Bytes::new(3000),
        };
        TrTcm::new(&plan).expect("a marker")
    }

    #[test]
    fn one_bucket_lets_its_burst_pass_and_then_its_rate() {
        // 1000 bytes a second: empty at 0, 1000 at 1 s, 1500 at 1.5 s, 1500 again at 3 s.
        let mut bucket = TokenBucket::new(parse_rate("8k"), Bytes::new(3000)).expect("a bucket");
        let mark = |at, bytes| match bucket.arrive(at, bytes) {
            None => Colour::Green,
            Some(_) => Colour::Red,
        };
        check_colours(&[0, 0, 0, 1000, 1500, 3000], mark, "GGRRGG");
    }

    #[test]
    fn a_bucket_tells_when_a_packet_will_conform_and_it_does_then_and_not_before() {
        // 3 bytes a second: 1500 after 500 s, and a third of a nanosecond is a whole one.
        for (bps, bytes, ready) in [(24, 1500, 500_000_000_000), (24_000_000_000, 1, 1)] {
            let burst = Bytes::new(1500);
            let mut bucket = TokenBucket::new(BitRate::from_bits_per_sec(bps), burst).expect("one");
            assert_eq!(bucket.conforms_at_ns(7, bytes), Some(7), "it is full");
            assert_eq!(bucket.arrive(0, 1500), None);
            assert_eq!(bucket.conforms_at_ns(0, bytes), Some(ready));
            assert!(bucket.arrive(ready - 1, bytes).is_some());
            assert_eq!(bucket.conforms_at_ns(ready - 1, bytes), Some(ready));
            assert_eq!(bucket.arrive(ready, bytes), None);
            assert_eq!(bucket.conforms_at_ns(0, 1501), None, "longer than the bucket is deep");
        }
    }

    #[test]
    fn a_packet_that_does_not_conform_says_what_is_missing() {
        let mut bucket = TokenBucket::new(parse_rate("8k"), Bytes::new(1500)).expect("a bucket");
        assert_eq!(bucket.arrive(0, 1500), None);
        assert_eq!(bucket.arrive(1_000_000_000, 1500), Some(MissingBytes(500)));
        // One nanosecond before the last token is complete.
        assert_eq!(bucket.arrive(1_499_999_999, 1500), Some(MissingBytes(1)));
        assert_eq!(bucket.arrive(1_500_000_000, 1500), None);
        assert!(bucket.level_bytes().abs() < 1e-12);
        assert_eq!(bucket.arrive(0, 0), None, "time that goes back brings no tokens");
    }

    #[test]
    fn a_single_rate_marks_green_then_yellow_then_red() {
        // CBS 3000 takes two, EBS 1500 one; 1.5 s bring 1500 to the committed bucket, twice.
        let mut meter = srtcm_marker();
        let mark = |at, bytes| meter.arrive(at, bytes, Colour::Green).colour;
        check_colours(&[0, 0, 0, 0, 1500, 3000], mark, "GGYRGG");
    }

    #[test]
    fn tokens_that_the_committed_bucket_cannot_hold_fill_the_excess_bucket() {
        // Empty at 0; 4.5 s bring 4500 bytes: 3000 to the one, then 1500 to the other.
        let mut meter = srtcm_marker();
        let mark = |at, bytes| meter.arrive(at, bytes, Colour::Green).colour;
        check_colours(&[0, 0, 0, 4500, 4500, 4500, 4500], mark, "GGYGGYR");
    }

    #[test]
    fn a_colour_aware_single_rate_marker_never_improves_a_colour() {
        let mut meter = srtcm_marker();
        assert_eq!(meter.arrive(0, 1500, Colour::Red), marked(Colour::Red, None));
        assert_eq!(meter.arrive(0, 1500, Colour::Yellow), marked(Colour::Yellow, None));
        // The excess bucket is empty: yellow turns red, green is still green.
        let lacks = Some(MissingBytes(1500));
        assert_eq!(meter.arrive(0, 1500, Colour::Yellow), marked(Colour::Red, lacks));
        assert_eq!(meter.arrive(0, 1500, Colour::Green).colour, Colour::Green);
    }

    #[test]
    fn two_rates_mark_by_peak_first() {
        // At 0: G empties CBS, Y empties PBS, R. 0.75 s: CBS 750 and PBS 1500, Y. 1.5 s: both 1500.
        let mut meter = trtcm_marker();
        let mark = |at, bytes| meter.arrive(at, bytes, Colour::Green).colour;
        check_colours(&[0, 0, 0, 750, 1500], mark, "GYRYG");
    }

    #[test]
    fn a_colour_aware_two_rate_marker_never_improves_a_colour() {
        let mut meter = trtcm_marker();
        assert_eq!(meter.arrive(0, 1500, Colour::Red), marked(Colour::Red, None));
        assert_eq!(meter.arrive(0, 1500, Colour::Yellow), marked(Colour::Yellow, None));
        // The yellow packet took no committed tokens.
        assert_eq!(meter.arrive(0, 1500, Colour::Green), marked(Colour::Green, None));
        let lacks = Some(MissingBytes(1500));
        assert_eq!(meter.arrive(0, 1500, Colour::Green), marked(Colour::Red, lacks));
    }

    #[test]
    fn a_burst_lasts_until_the_line_has_drained_the_bucket() {
        let (burst, line) = (Bytes::new(1_000_000), parse_rate("1G"));
        let plan = BurstOnLine { burst, rate: parse_rate("100M"), line };
        let seconds = burst_duration_s(&plan).expect("it ends");
        // 8e6 / 9e8 s, and 1e9 bit/s for so long.
        assert!((seconds - 8.889e-3).abs() < 1e-6);
        assert!((seconds * 1e9 - 8.889e6).abs() < 1e3);
        let span = Duration::from_nanos(8_888_889);
        assert!((envelope_bytes(parse_rate("100M"), burst, span) * 8.0 - 8.889e6).abs() < 1e3);
    }

    #[test]
    fn a_policer_drops_what_is_above_its_rate() {
        let loss = policed_loss(parse_rate("10M"), parse_rate("13M")).expect("a rate");
        assert!((loss - 0.2308).abs() < 5e-5);
        assert_eq!(policed_loss(parse_rate("10M"), parse_rate("9M")), Ok(0.0));
        // And so does the bucket: 1000 bytes each 8 ms / 1.3 for 100 s.
        let mut bucket = TokenBucket::new(parse_rate("1M"), Bytes::new(10_000)).expect("a bucket");
        let count = 16_250;
        let dropped =
            (0..count).filter(|n| bucket.arrive(n * 8_000_000 * 10 / 13, 1000).is_some()).count();
        assert!((dropped as f64 / count as f64 - 0.2308).abs() < 1e-3, "{dropped}");
    }

    #[test]
    fn impossible_buckets_are_refused_in_one_line() {
        let (zero, burst) = (BitRate::from_bits_per_sec(0), Bytes::new(1500));
        assert_eq!(TokenBucket::new(zero, burst).map(drop), Err(BucketError::ZeroRate));
        let none = TokenBucket::new(parse_rate("8k"), Bytes::new(0)).map(drop);
        assert_eq!(none, Err(BucketError::ZeroBurst));
        let (committed, peak) = (parse_rate("16k"), parse_rate("8k"));
        let plan = TwoRate { committed, committed_burst: burst, peak, peak_burst: burst };
        let error = TrTcm::new(&plan).map(drop).expect_err("below").to_string();
        let words = "the peak rate (8 kbit/s) is below the committed rate (16 kbit/s)";
        assert_eq!(error, words);
        let plan = BurstOnLine { burst, rate: parse_rate("1G"), line: parse_rate("1G") };
        assert!(burst_duration_s(&plan).is_err());
        assert_eq!(policed_loss(parse_rate("1G"), zero), Err(BucketError::ZeroRate));
    }

    proptest! {
        #[test]
        fn no_bucket_lets_more_pass_than_burst_and_rate(
            packets in prop::collection::vec((0_u64..5_000_000, 1_u32..9000), 1..200),
            bps in 1_u64..100_000_000, burst in 1_u64..100_000,
        ) {
            let rate = BitRate::from_bits_per_sec(bps);
            let mut bucket = TokenBucket::new(rate, Bytes::new(burst)).expect("a bucket");
            let (mut at, mut passed) = (0, 0_u64);
            for (gap, bytes) in packets {
                at += gap;
                if bucket.arrive(at, bytes).is_none() {
                    passed += u64::from(bytes);
                }
                let most = envelope_bytes(rate, Bytes::new(burst), Duration::from_nanos(at));
                prop_assert!(passed as f64 <= most * (1.0 + 1e-12));
            }
        }

        #[test]
        fn no_marker_overflows(times: Vec<u64>, bytes: u32, bps in 1_u64.., burst in 1_u64..) {
            let (rate, burst) = (BitRate::from_bits_per_sec(bps), Bytes::new(burst));
            let (committed, committed_burst) = (rate, burst);
            let plan = SingleRate { committed, committed_burst, excess_burst: burst };
            let mut single = SrTcm::new(&plan).expect("a marker");
            let plan = TwoRate { committed, committed_burst, peak: rate, peak_burst: burst };
            let mut double = TrTcm::new(&plan).expect("a marker");
            for at in times {
                single.arrive(at, bytes, Colour::Green);
                double.arrive(at, bytes, Colour::Yellow);
            }
        }
    }
}
