//! The generic cell rate algorithm: which cells of an ATM connection keep its traffic contract.
//!
//! Time is counted in whole ticks, so that both forms of the algorithm agree exactly. [`Scale`]
//! makes ticks of which a cell time, an increment and a nanosecond are whole multiples.
//! Left out: the CLP bit, frame discard and how packets become cells (`atm`). Rules: ITU-T I.371
//! and ATM Forum Traffic Management 4.0 (af-tm-0056).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use super::atm::CELL_BYTES;
use crate::units::BitRate;

/// Bits of a cell (ITU-T I.361 §2.1).
pub const CELL_BITS: u64 = CELL_BYTES as u64 * 8;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The rule: one cell each `increment` on average, and at most `limit` early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gcra {
    /// I, ticks: the reciprocal of the rate.
    pub increment: i128,
    /// L, ticks: the tolerance.
    pub limit: i128,
}

/// The virtual scheduling form: a theoretical arrival time (TAT) for the next cell.
///
/// ```
/// # use linerate_core::theory::gcra::{Gcra, VirtualScheduling};
/// // GCRA(4.5, 0.5) in ticks of one half: of cells back to back each fourth or fifth conforms.
/// let mut meter = VirtualScheduling::new(Gcra { increment: 9, limit: 1 });
/// let kept: Vec<i128> = (0..16).filter(|at| meter.arrive(at * 2)).collect();
/// assert_eq!(kept, [0, 4, 9, 13]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct VirtualScheduling {
    rule: Gcra,
    theoretical: Option<i128>,
}

impl VirtualScheduling {
    /// A meter before the first cell.
    pub const fn new(rule: Gcra) -> Self {
        Self { rule, theoretical: None }
    }

    /// Ticks by which a cell at `at` is before the earliest time that conforms; it conforms at 0
    /// and below.
    #[inline]
    pub fn ticks_early(&self, at: i128) -> i128 {
        self.theoretical.map_or(0, |theoretical| theoretical - self.rule.limit - at)
    }

    /// Counts a cell that conforms.
    #[inline]
    pub fn accept(&mut self, at: i128) {
        let from = self.theoretical.map_or(at, |theoretical| theoretical.max(at));
        self.theoretical = Some(from + self.rule.increment);
    }

    /// Takes the cell at `at`, and is true when it conforms; one that does not leaves the state as
    /// it was.
    pub fn arrive(&mut self, at: i128) -> bool {
        let conforms = self.ticks_early(at) <= 0;
        if conforms {
            self.accept(at);
        }
        conforms
    }
}

/// The leaky bucket form: a content that drains by one each tick, and the last conformance time.
#[derive(Clone, Copy, Debug)]
pub struct LeakyBucket {
    rule: Gcra,
    content: i128,
    last: Option<i128>,
}

impl LeakyBucket {
    /// An empty bucket.
    pub const fn new(rule: Gcra) -> Self {
        Self { rule, content: 0, last: None }
    }

    /// Takes the cell at `at`, and is true when it conforms; one that does not leaves the state as
    /// it was.
    pub fn arrive(&mut self, at: i128) -> bool {
        let drained = self.last.map_or(0, |last| (self.content - (at - last)).max(0));
        let conforms = drained <= self.rule.limit;
        if conforms {
            self.content = drained + self.rule.increment;
            self.last = Some(at);
        }
        conforms
    }
}

/// A rate of cells as a fraction, so that 149.76 Mbit/s of cells is 18,720,000 in 53 s exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRate {
    cells: u64,
    seconds: u64,
}

impl CellRate {
    /// `cells` in `seconds`; `None` when either is 0.
    pub const fn new(cells: u64, seconds: u64) -> Option<Self> {
        if cells == 0 || seconds == 0 {
            return None;
        }
        let common = divisor(cells, seconds);
        Some(Self { cells: cells / common, seconds: seconds / common })
    }

    /// The cells that a stream of `rate` carries, headers included; `None` for a rate of 0.
    pub const fn of_stream(rate: BitRate) -> Option<Self> {
        Self::new(rate.bits_per_sec(), CELL_BITS)
    }

    /// Cells in a second.
    pub fn per_second(self) -> f64 {
        self.cells as f64 / self.seconds as f64
    }

    /// Time of one cell, T = 1 / rate, in nanoseconds.
    pub fn cell_time_ns(self) -> f64 {
        self.seconds as f64 * 1e9 / self.cells as f64
    }
}

/// Places after the point that a cell rate may have.
const DECIMALS_MAX: usize = 6;

impl FromStr for CellRate {
    type Err = ContractError;

    /// Reads `353207.55` or `353207.55 cells/s`, and a bit rate of cells such as `149.76 Mbit/s`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ContractError::NoCellRate(text.chars().take(40).collect());
        let plain = text.trim().trim_end_matches("cells/s").trim_end();
        if let Some(rate) = decimal_cells(plain) {
            return rate.ok_or_else(refuse);
        }
        let has_unit = text.contains("bit") || text.ends_with("bps") || text.ends_with("b/s");
        let rate: Option<BitRate> = text.parse().ok().filter(|_| has_unit);
        rate.and_then(Self::of_stream).ok_or_else(refuse)
    }
}

/// Digits with at most one point as a rate; `None` when the text is something else.
fn decimal_cells(text: &str) -> Option<Option<CellRate>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DECIMALS_MAX {
        return Some(None);
    }
    let seconds = fraction.bytes().fold(1, |scale: u64, _| scale * 10);
    let cells = format!("{whole}{fraction}").parse().ok();
    Some(cells.and_then(|cells| CellRate::new(cells, seconds)))
}

impl fmt::Display for CellRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.per_second());
        write!(f, "{} cells/s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Greatest common divisor of two numbers above 0.
const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reason why parameters are no traffic contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContractError {
    /// Not a rate of cells.
    #[error(
        "{0:?} is not a cell rate: write cells per second with at most {DECIMALS_MAX} decimals, or \
         a bit rate such as 149.76 Mbit/s; a rate of 0 is none"
    )]
    NoCellRate(String),
    /// A sustainable rate (SCR) above the peak rate (PCR).
    #[error("the sustainable rate ({scr}) is above the peak rate ({pcr})")]
    SustainableAbovePeak {
        /// Sustainable cell rate (SCR).
        scr: CellRate,
        /// Peak cell rate (PCR).
        pcr: CellRate,
    },
    /// A burst of no cells.
    #[error("the largest burst is 0 cells; one cell is the least")]
    NoBurst,
    /// A burst at a rate that is not above the one that it exceeds.
    #[error("cells come no faster than the contract allows, so that a burst has no end")]
    EndlessBurst,
    /// Rates and a tolerance with too many digits for the arithmetic.
    #[error("the rates and the tolerance together need too many digits; round them")]
    TooFine,
}

/// Ticks in which an increment, the cell time of the line and a nanosecond are whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Ticks of a nanosecond.
    pub per_ns: i128,
    /// The increment I = 1 / rate.
    pub increment: i128,
    /// Time of a cell on the line.
    pub line_cell: i128,
}

/// Bits of the times that are exact: up to 2^53 ns (104 days) after the first packet.
const SPAN_BITS: u32 = 53;
/// Times, increments and limits stay below 2^124 ticks, so that sums of them fit 127 bits.
const TICK_BITS: u32 = 124;

impl Scale {
    /// The scale for cells of `rate` that arrive over a line of `line`.
    /// # Errors
    /// When 104 days of such ticks do not fit 124 bits.
    pub fn new(rate: CellRate, line: CellRate) -> Result<Self, ContractError> {
        let common = divisor(rate.cells, line.cells);
        let (of_rate, of_line) = (i128::from(rate.cells / common), i128::from(line.cells));
        let per_ns = of_rate
            .checked_mul(of_line)
            .filter(|ticks| *ticks < 1 << (TICK_BITS - SPAN_BITS))
            .ok_or(ContractError::TooFine)?;
        let cell = |rate: CellRate| {
            let ticks = i128::from(rate.seconds).checked_mul(NANOS_PER_SECOND)?;
            ticks
                .checked_mul(per_ns / i128::from(rate.cells))
                .filter(|ticks| *ticks < 1 << TICK_BITS)
        };
        let (increment, line_cell) = cell(rate).zip(cell(line)).ok_or(ContractError::TooFine)?;
        Ok(Self { per_ns, increment, line_cell })
    }

    /// A span in ticks.
    /// # Errors
    /// When it does not fit.
    pub fn ticks_of_span(&self, span: Duration) -> Result<i128, ContractError> {
        let ns = i128::try_from(span.as_nanos()).map_err(|_| ContractError::TooFine)?;
        ns.checked_mul(self.per_ns)
            .filter(|ticks| *ticks < 1 << TICK_BITS)
            .ok_or(ContractError::TooFine)
    }

    /// The burst tolerance in ticks of the scale of its sustainable rate, rounded up to a tick, so
    /// that a burst of just the largest size conforms.
    /// # Errors
    /// As [`burst_tolerance_ns`], and when it does not fit.
    pub fn burst_tolerance(&self, burst: &Sustained) -> Result<i128, ContractError> {
        burst_tolerance_ns(burst)?;
        let cells = i128::from(burst.burst_cells) - 1;
        let peak_cell = i128::from(burst.peak.seconds) * NANOS_PER_SECOND;
        let sustained = cells.checked_mul(self.increment);
        let at_peak = peak_cell
            .checked_mul(self.per_ns)
            .and_then(|ticks| ticks.checked_mul(cells))
            .map(|ticks| ticks / i128::from(burst.peak.cells));
        let between = sustained.zip(at_peak).map(|(sustained, at_peak)| sustained - at_peak);
        between.filter(|ticks| *ticks < 1 << TICK_BITS).ok_or(ContractError::TooFine)
    }

    /// A number of ticks in nanoseconds.
    pub fn ticks_to_nanos(&self, ticks: i128) -> f64 {
        ticks as f64 / self.per_ns as f64
    }
}

/// A burst of at most `cells` at the peak rate within a sustainable rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sustained {
    /// Peak cell rate (PCR).
    pub peak: CellRate,
    /// Sustainable cell rate (SCR).
    pub sustainable: CellRate,
    /// Maximum burst size (MBS), cells.
    pub burst_cells: u64,
}

/// Burst tolerance in nanoseconds, BT = (MBS - 1)(1/SCR - 1/PCR): the limit of the GCRA whose
/// increment is 1/SCR. PCR 1000, SCR 250 cells/s and an MBS of 32 cells need 93 ms.
/// # Errors
/// When SCR is above PCR, or the burst has no cell.
/// # Source
/// ITU-T I.371 §5.4.2; ATM Forum Traffic Management 4.0.
pub fn burst_tolerance_ns(burst: &Sustained) -> Result<f64, ContractError> {
    if burst.sustainable.cell_time_ns() < burst.peak.cell_time_ns() {
        let (scr, pcr) = (burst.sustainable, burst.peak);
        return Err(ContractError::SustainableAbovePeak { scr, pcr });
    }
    let between = burst.burst_cells.checked_sub(1).ok_or(ContractError::NoBurst)?;
    Ok(between as f64 * (burst.sustainable.cell_time_ns() - burst.peak.cell_time_ns()))
}

/// Cells that pass back to back through a GCRA on a line: N = 1 + floor(L / (I - T)), where T is
/// the time of a cell on the line. GCRA(4.5, 7) lets 3 cells pass when T is 1.
/// # Errors
/// When T is not below I: such cells conform for ever.
/// # Source
/// ITU-T I.371; ATM Forum Traffic Management 4.0.
pub fn burst_cells(rule: &Gcra, line_cell: i128) -> Result<u64, ContractError> {
    let gain = rule.increment - line_cell;
    if gain <= 0 {
        return Err(ContractError::EndlessBurst);
    }
    u64::try_from(1 + rule.limit / gain).map_err(|_| ContractError::TooFine)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::theory::token_bucket::TokenBucket;
    use crate::units::Bytes;

    /// Both forms on cells at 0, 1, … 15; times in halves.
    fn check_both_forms(increment: i128, limit: i128, kept: &str) {
        let rule = Gcra { increment, limit };
        let mut scheduling = VirtualScheduling::new(rule);
        let mut bucket = LeakyBucket::new(rule);
        let mark = |kept| if kept { '1' } else { '0' };
        let by_time: String = (0..16).map(|at| mark(scheduling.arrive(at * 2))).collect();
        let by_content: String = (0..16).map(|at| mark(bucket.arrive(at * 2))).collect();
        assert_eq!(by_time, kept, "GCRA({increment}/2, {limit}/2)");
        assert_eq!(by_content, kept, "GCRA({increment}/2, {limit}/2)");
    }

    #[test]
    fn cells_back_to_back_pass_as_in_the_figures_of_the_standard() {
        // ATM Forum Traffic Management 4.0, T = 4.5 cell times; the last one by hand:
        // TAT 10, 20, then 20 - 15 = 5 is the next time, 30 - 15 = 15 the one after it.
        check_both_forms(9, 1, "1000100001000100");
        check_both_forms(9, 3, "1001000010001000");
        check_both_forms(9, 7, "1100001000100001");
        check_both_forms(9, 14, "1110000100010000");
        check_both_forms(20, 30, "1100010000000001");
    }

    /// Numbers without a pattern (SplitMix64), the same in every run.
    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        (1_u64..).map(move |index| {
            let mut z = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
    }

    #[test]
    fn both_forms_agree_on_a_million_random_arrivals() {
        let rules = [(9, 1), (9, 14), (1000, 0), (1000, 7_001), (977, 31_000)];
        for (index, (increment, limit)) in rules.into_iter().enumerate() {
            let rule = Gcra { increment, limit };
            let mut scheduling = VirtualScheduling::new(rule);
            let mut bucket = LeakyBucket::new(rule);
            let (mut at, mut kept) = (0, 0);
            for number in numbers(index as u64).take(200_000) {
                // Gaps from none to four increments, a mean of three quarters of one.
                let span = increment * [1, 1, 1, 4][(number >> 62) as usize];
                at += i128::from(number % 1_000_003) * span / 1_000_003 / 2;
                let conforms = scheduling.arrive(at);
                assert_eq!(conforms, bucket.arrive(at), "seed {index} at {at}");
                kept += u32::from(conforms);
            }
            assert!((1_000..199_000).contains(&kept), "both answers occur: {kept}");
        }
    }

    #[test]
    fn a_gcra_is_a_token_bucket_of_depth_l_plus_i() {
        // Cells of 1 byte at 8 bit/s: a token a second, a depth of (L + I) / I tokens.
        for (depth, seed) in [(1, 1), (3, 2), (32, 3)] {
            let second = 1_000_000_000;
            let rule = Gcra { increment: second, limit: second * (depth - 1) };
            let mut cells = VirtualScheduling::new(rule);
            let rate = BitRate::from_bits_per_sec(8);
            let burst = Bytes::new(u64::try_from(depth).expect("small"));
            let mut bucket = TokenBucket::new(rate, burst).expect("a bucket");
            let mut at = 0;
            for number in numbers(seed).take(100_000) {
                at += number % 1_500_000_000;
                assert_eq!(cells.arrive(at.into()), bucket.arrive(at, 1).is_none(), "{at}");
            }
        }
    }

    #[test]
    fn the_burst_tolerance_lets_the_burst_pass_and_no_cell_more() {
        let rate = |cells| CellRate::new(cells, 1).expect("a rate");
        let burst = Sustained { peak: rate(1000), sustainable: rate(250), burst_cells: 32 };
        // 31 * (4 ms - 1 ms).
        assert_eq!(burst_tolerance_ns(&burst), Ok(93e6));
        // In ms: 1 + floor(93 / (4 - 1)) = 32.
        assert_eq!(burst_cells(&Gcra { increment: 4, limit: 93 }, 1), Ok(32));
        // In ticks of a line of 353,207.55 cells/s: 31 * 3 ms.
        let scale = Scale::new(burst.sustainable, "149.76 Mbit/s".parse().expect("a rate"));
        let scale = scale.expect("a scale");
        let limit = scale.burst_tolerance(&burst).expect("it fits");
        assert_eq!(limit, scale.ticks_of_span(Duration::from_millis(93)).expect("it fits"));
        let mut meter = VirtualScheduling::new(Gcra { increment: 4, limit: 93 });
        assert_eq!((0..40).take_while(|&at| meter.arrive(at)).count(), 32);
    }

    #[test]
    fn an_oc_3_carries_353_207_cells_each_second() {
        let oc3: CellRate = "149.76 Mbit/s".parse().expect("a rate");
        assert!((oc3.per_second() - 353_207.55).abs() < 0.005);
        assert!((oc3.cell_time_ns() - 2_831.2).abs() < 0.05);
        assert_eq!(oc3, CellRate::new(18_720_000, 53).expect("a rate"));
        let plain: CellRate = "353207.550 cells/s".parse().expect("a rate");
        assert_eq!(Some(plain), CellRate::new(35_320_755, 100));
        // Full rate with no tolerance, cells exactly one cell time apart, conforms.
        let scale = Scale::new(oc3, oc3).expect("a scale");
        let mut meter = VirtualScheduling::new(Gcra { increment: scale.increment, limit: 0 });
        assert!((0..1000).all(|index| meter.arrive(index * scale.line_cell)));
    }

    #[test]
    fn impossible_contracts_are_refused_in_one_line() {
        let rate = |cells| CellRate::new(cells, 1).expect("a rate");
        let sustained =
            |peak, sustainable, burst_cells| Sustained { peak, sustainable, burst_cells };
        let error = burst_tolerance_ns(&sustained(rate(250), rate(1000), 32)).expect_err("above");
        assert_eq!(
            error.to_string(),
            "the sustainable rate (1000 cells/s) is above the peak rate (250 cells/s)"
        );
        let none = burst_tolerance_ns(&sustained(rate(1000), rate(250), 0));
        assert_eq!(none, Err(ContractError::NoBurst));
        assert_eq!(
            burst_cells(&Gcra { increment: 4, limit: 1 }, 4),
            Err(ContractError::EndlessBurst)
        );
        for text in ["", "0", "0.0", "-1", "10M", "x", "0 bit/s", "1.2345678", "1 packets/s"] {
            let error = text.parse::<CellRate>().expect_err(text).to_string();
            assert!(error.contains("is not a cell rate") && !error.contains('\n'), "{error}");
        }
        let huge = CellRate::new(u64::MAX, 1).expect("a rate");
        let other = CellRate::new(u64::MAX - 1, 1).expect("a rate");
        assert_eq!(Scale::new(huge, other), Err(ContractError::TooFine));
    }

    proptest! {
        #[test]
        fn no_rate_panics(a: u64, b: u64, c: u64, d: u64, ns: u64, text in "[0-9.a-z/ ]{0,20}") {
            let _ = text.parse::<CellRate>();
            let rates = CellRate::new(a, b).zip(CellRate::new(c, d));
            if let Some((scale, (rate, line))) =
                rates.and_then(|rates| Scale::new(rates.0, rates.1).ok().zip(Some(rates)))
            {
                let _ = scale.ticks_of_span(Duration::from_nanos(ns));
                let (peak, sustainable) = (line, rate);
                let _ = scale.burst_tolerance(&Sustained { peak, sustainable, burst_cells: ns });
            }
        }
    }
}
