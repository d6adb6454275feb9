//! Random times of sending, as OWAMP draws them (RFC 4656 §5): exponential spans between packets,
//! in whole numbers, so that whoever has the 16 bytes of the session's identifier has the same
//! times to the last bit, on any machine.
//!
//! The draw is algorithm S of Knuth, The Art of Computer Programming 2, §3.4.1, in 32 bits before
//! and 32 behind the point; its uniform numbers are AES-128 in counter mode (§5.2).

mod aes128;

pub use aes128::Aes128;

/// Q\[k\] = ln 2 / 1! + … + (ln 2)^k / k!, for k from 1, times 2^32, rounded; the last one is not
/// reached by 32 bits.
const Q: [u64; 11] = [
    0xb172_17f8,
    0xeef1_93f7,
    0xfd27_1862,
    0xff9d_6dd0,
    0xfff4_cfd0,
    0xfffe_e819,
    0xffff_e7ff,
    0xffff_fe2b,
    0xffff_ffe0,
    0xffff_fffe,
    0x1_0000_0000,
];
const LN_2: u64 = Q[0];

/// The spans between the packets of one session.
///
/// ```
/// use linerate_core::poisson::Schedule;
/// let mut schedule = Schedule::new(0x2872_9793_03ab_47ee_ac02_8dab_3829_dab2_u128.to_be_bytes());
/// // 0x6d27e540 / 2^32 of a mean of 1 s.
/// assert_eq!(schedule.span_ns(1_000_000_000), 426_390_007);
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    cipher: Aes128,
    /// Uniform numbers taken; a block has four.
    taken: u128,
    block: [u8; 16],
}

impl Schedule {
    /// The schedule of a session with this identifier (SID), which is the key.
    pub fn new(sid: [u8; 16]) -> Self {
        Self { cipher: Aes128::new(sid), taken: 0, block: [0; 16] }
    }

    /// The schedule of the identifier that is this number: eight bytes of zeros, then the seed in
    /// network byte order.
    pub fn from_seed(seed: u64) -> Self {
        Self::new(u128::from(seed).to_be_bytes())
    }

    /// The next span of a schedule with that mean, in ns, rounded down.
    #[allow(clippy::cast_possible_truncation, reason = "limited just before")]
    pub fn span_ns(&mut self, mean_ns: u64) -> u64 {
        let span = (u128::from(self.exponential()) * u128::from(mean_ns)) >> 32;
        span.min(u128::from(u64::MAX)) as u64
    }

    /// The next number of an exponential distribution with mean 1, times 2^32.
    pub fn exponential(&mut self) -> u64 {
        let u = self.uniform();
        // S1: the leading ones are counted, and shifted out with the zero behind them.
        let ones = u64::from(u.leading_ones());
        if ones == 32 {
            // No zero was found: §5.1 prescribes this value.
            return 32 * LN_2;
        }
        let rest = u64::from(u << ones << 1);
        // S2.
        if rest < LN_2 {
            return ones * LN_2 + rest;
        }
        // S3: rest is below 2^32, which is the last of Q.
        let more = Q.iter().take_while(|q| rest >= **q).count();
        let least = (0..=more).map(|_| self.uniform()).min().unwrap_or(0);
        // S4: at most 32 × 0.7 × 2^32, whatever is shifted out.
        let sum = u128::from(ones) << 32 | u128::from(least);
        u64::try_from((sum * u128::from(LN_2)) >> 32).unwrap_or(u64::MAX)
    }

    /// The next 32 bits: a counter from 0 goes up by one each, is encrypted at every fourth, and
    /// the block's four quartets follow each other.
    fn uniform(&mut self) -> u32 {
        let quartet = (self.taken % 4) as usize * 4;
        if quartet == 0 {
            self.block = self.cipher.encrypt(self.taken.to_be_bytes());
        }
        self.taken += 1;
        self.block[quartet..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libowamp 3.5 draws them (`owtvec`).
    #[test]
    fn single_draws_are_those_of_libowamp() {
        let sid = 0x2872_9793_03ab_47ee_ac02_8dab_3829_dab2_u128;
        let mut schedule = Schedule::new(sid.to_be_bytes());
        let drawn: Vec<u64> = (0..1_000).map(|_| schedule.exponential()).collect();
        assert_eq!(drawn[0], 0x6d27_e540);
        assert_eq!(drawn[9], 0x4_f9d8_5ec8);
        assert_eq!(drawn[99], 0x2_1fc1_33c5);
        assert_eq!(drawn[999], 0x2_4fe2_d8a8);
        assert_eq!(drawn[..10].iter().sum::<u64>(), 0xd_65c2_252a);
        assert_eq!(drawn.iter().sum::<u64>(), 0x3eb_7d73_5c01);
    }

    /// The first of the four of the RFC; the other three came out as well (Linux 6.18,
    /// 2026-11-25), and take as long each.
    #[test]
    fn the_sum_of_rfc_4656_appendix_b_comes_out_to_the_last_bit() {
        let sid = 0x2872_9793_03ab_47ee_ac02_8dab_3829_dab2_u128;
        let mut schedule = Schedule::new(sid.to_be_bytes());
        let sum: u64 = (0..1_000_000).map(|_| schedule.exponential()).sum();
        assert_eq!(sum, 0x000f_4479_bd31_7381, "{sum:016x}");
    }

    #[test]
    fn the_table_is_that_of_its_formula() {
        // In double precision, good to 2^-53: half a unit of 2^-32 is far above it.
        let (mut term, mut sum) = (1.0, 0.0);
        for (k, q) in Q.iter().enumerate() {
            term *= std::f64::consts::LN_2 / (k + 1) as f64;
            sum += term;
            let exact = sum * 4_294_967_296.0;
            assert!((exact - *q as f64).abs() <= 0.5 + 1e-5, "Q[{}] {q:x} {exact}", k + 1);
        }
    }

    #[test]
    fn a_seed_is_the_identifier_of_that_number_and_the_mean_scales() {
        let mut by_seed = Schedule::from_seed(0x0102_0304_0506_0708);
        let mut by_sid = Schedule::new([0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for mean_ns in [1, 10_000, 1_000_000_000, u64::MAX] {
            let exponential = by_sid.exponential();
            let span_ns = by_seed.span_ns(mean_ns);
            // A u64 times 2^-32: the product by whole numbers of 128 bits, its fraction dropped.
            let exact = u128::from(exponential) * u128::from(mean_ns) / (1 << 32);
            assert_eq!(u128::from(span_ns), exact.min(u128::from(u64::MAX)), "{mean_ns}");
        }
        assert_ne!(Schedule::from_seed(1).exponential(), Schedule::from_seed(2).exponential());
    }

    /// Kolmogorov's distance to 1 − e^−x over 20,000 draws: above 1.95 / √n once in a thousand
    /// (the seed is fixed, so that this test never wavers).
    #[test]
    fn spans_are_exponential() {
        let mut schedule = Schedule::from_seed(7);
        let n = 20_000;
        let mut drawn: Vec<f64> =
            (0..n).map(|_| schedule.exponential() as f64 / 4_294_967_296.0).collect();
        drawn.sort_by(f64::total_cmp);
        let far = drawn.iter().enumerate().map(|(place, x)| {
            let law = 1.0 - (-x).exp();
            let (below, above) = (place as f64 / f64::from(n), (place + 1) as f64 / f64::from(n));
            (law - below).abs().max((above - law).abs())
        });
        assert!(far.fold(0.0, f64::max) < 1.95 / f64::from(n).sqrt());
    }
}
