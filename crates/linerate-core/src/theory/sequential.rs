//! The loss that a path may have to reach a target, and the sequential test that decides with as
//! few packets as it can: RFC 8337 and Wald's sequential probability ratio test.
//!
//! Left out: bursts and queues of the target (RFC 8337 §8). Packets are taken to be lost
//! independently of each other.

use std::time::Duration;

use thiserror::Error;

use crate::units::BitRate;

/// Loss of a path that fails, over the target's loss (RFC 8337 §7.2).
pub const FAIL_FACTOR: f64 = 4.0;

/// Rate and round trip that a path is to carry (RFC 8337).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Rate of a bulk transfer.
    pub rate: BitRate,
    /// Round trip of the whole path.
    pub rtt: Duration,
    /// Largest IP packet of the path.
    pub mtu_bytes: u32,
    /// Bytes of headers in a packet.
    pub header_bytes: u32,
}

/// Chances of a wrong decision of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Risk {
    /// Chance to fail a path that has the target's run length, α.
    pub false_fail: f64,
    /// Chance to pass a path that has a quarter of it, β.
    pub false_pass: f64,
}

impl Risk {
    /// 5 % each, as in the example of RFC 8337 §7.2.
    pub const FIVE_PERCENT: Self = Self { false_fail: 0.05, false_pass: 0.05 };
}

/// Decision after the packets so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SprtDecision {
    /// The path loses little enough.
    Pass,
    /// The path loses too much.
    Fail,
    /// Too early for a decision: send more.
    GoOn,
}

/// Reason why a test cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SequentialError {
    /// Any path has it.
    #[error("a target rate of 0 asks nothing of a path")]
    ZeroRate,
    /// A round trip of 0, with which no packet is in flight.
    #[error("with a round trip of 0 nothing is in flight")]
    ZeroRtt,
    /// An MTU in which no payload fits.
    #[error("an MTU of {mtu_bytes} bytes leaves no payload after {header_bytes} bytes of headers")]
    MtuTooSmall {
        /// The MTU that was given.
        mtu_bytes: u32,
        /// Bytes of the headers.
        header_bytes: u32,
    },
    /// A path four times as bad would lose all.
    #[error("a run of {run_length} packets between losses is not above 4, so no test tells")]
    RunTooShort {
        /// The packets between losses.
        run_length: f64,
    },
    /// Not a chance, or no better than a coin.
    #[error("a risk of {risk} is not above 0 and below 0.5")]
    RiskOutOfRange {
        /// The chance that was given.
        risk: f64,
    },
    /// The counters contradict each other.
    #[error("{lost} packets were lost of {sent} sent")]
    MoreLost {
        /// Number of packets sent.
        sent: u64,
        /// Number of packets lost.
        lost: u64,
    },
}

/// Packets in flight at the target: W = ceil(R RTT / (8 (MTU − overhead))). 2.5 Mbit/s, 50 ms,
/// 1500 and 64 bytes: 11.
/// # Errors
/// A rate or round trip of 0, an MTU that the headers fill.
/// # Source
/// RFC 8337 §5.2.
pub fn target_window_packets(target: &Target) -> Result<f64, SequentialError> {
    Ok(target.bdp_packets()?.ceil())
}

/// Packets between two losses that Reno needs to hold the target: 3 W². The example above: 363.
/// # Errors
/// As [`target_window_packets`].
/// # Source
/// RFC 8337 §5.2. A window that swings between W and 2 W, and grows by one segment in every second
/// round trip for delayed acknowledgements, sends 1.5 W in each of 2 W rounds.
pub fn target_run_packets(target: &Target) -> Result<f64, SequentialError> {
    Ok(3.0 * target_window_packets(target)?.powi(2))
}

/// Packets between two losses by the older rule of pathdiag: (BDP / (0.7 MSS))². 1 Gbit/s, 21 ms
/// and 1448 bytes: 6.707 million.
/// # Errors
/// As [`target_window_packets`].
/// # Source
/// M. Mathis et al., "Pathdiag: automated TCP diagnosis", PAM 2008.
pub fn pathdiag_run_packets(target: &Target) -> Result<f64, SequentialError> {
    Ok((target.bdp_packets()? / 0.7).powi(2))
}

/// The rate, in bit/s, that a run of packets between two losses allows:
/// R = 8 (MTU − overhead) sqrt(run / 3) / RTT, the inverse of [`target_run_packets`] without its
/// rounding up.
/// # Errors
/// A round trip of 0, an MTU that the headers fill; the rate in `target` says nothing.
pub fn rate_for_run_bps(target: &Target, run_packets: f64) -> Result<f64, SequentialError> {
    let unit = Target { rate: BitRate::from_bits_per_sec(1), ..*target };
    Ok((run_packets / 3.0).sqrt() / unit.bdp_packets()?)
}

/// Wald's test of a run length, as packets are counted: p0 = 1/run, p1 = 4/run,
/// k = ln(p1 (1 − p0) / (p0 (1 − p1))), s = ln((1 − p0) / (1 − p1)) / k,
/// h1 = ln((1 − α)/β) / k, h2 = ln((1 − β)/α) / k. Pass at lost ≤ s n − h1, fail at
/// lost ≥ s n + h2.
///
/// The first decision stays: what is counted after it is another test.
///
/// ```
/// # use linerate_core::theory::sequential::{Risk, Sprt, SprtDecision};
/// let mut test = Sprt::new(363.0, Risk::FIVE_PERCENT).expect("a possible test");
/// assert_eq!(test.count_packets(353, 0), Ok(SprtDecision::GoOn));
/// assert_eq!(test.count_packets(1, 0), Ok(SprtDecision::Pass));
/// ```
/// # Source
/// RFC 8337 §7.2; A. Wald, "Sequential tests of statistical hypotheses", 1945.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprt {
    /// Losses per packet on the line between both decisions.
    slope: f64,
    /// Losses by which a pass lies below the line.
    pass_below: f64,
    /// Losses by which a fail lies above it.
    fail_above: f64,
    sent: u64,
    lost: u64,
    decision: SprtDecision,
}

impl Sprt {
    /// A test for `run_packets` between two losses.
    /// # Errors
    /// A run not above 4, a risk not above 0 and below 0.5.
    pub fn new(run_packets: f64, risk: Risk) -> Result<Self, SequentialError> {
        if !(run_packets > FAIL_FACTOR && run_packets.is_finite()) {
            return Err(SequentialError::RunTooShort { run_length: run_packets });
        }
        let (alpha, beta) = (checked_risk(risk.false_fail)?, checked_risk(risk.false_pass)?);
        let (p0, p1) = (1.0 / run_packets, FAIL_FACTOR / run_packets);
        // ln_1p keeps the digits of a long run.
        let survival = (-p0).ln_1p() - (-p1).ln_1p();
        let scale = FAIL_FACTOR.ln() + survival;
        Ok(Self {
            slope: survival / scale,
            pass_below: ((1.0 - alpha) / beta).ln() / scale,
            fail_above: ((1.0 - beta) / alpha).ln() / scale,
            sent: 0,
            lost: 0,
            decision: SprtDecision::GoOn,
        })
    }

    /// Counts `lost` of `sent` further packets and returns the decision. After a
    /// decision nothing is counted.
    pub fn count_packets(&mut self, sent: u64, lost: u64) -> Result<SprtDecision, SequentialError> {
        if lost > sent {
            return Err(SequentialError::MoreLost { sent, lost });
        }
        if self.decision == SprtDecision::GoOn {
            self.sent = self.sent.saturating_add(sent);
            self.lost = self.lost.saturating_add(lost);
            self.decision = self.decide(self.sent, self.lost);
        }
        Ok(self.decision)
    }

    /// Decision after the packets so far.
    pub const fn decision(&self) -> SprtDecision {
        self.decision
    }

    /// Packets counted until the decision.
    pub const fn packets_sent(&self) -> u64 {
        self.sent
    }

    /// Losses counted until the decision.
    pub const fn packets_lost(&self) -> u64 {
        self.lost
    }

    /// Losses per packet on the line between both decisions, s.
    pub const fn loss_slope(&self) -> f64 {
        self.slope
    }

    /// Losses by which a pass lies below the line, h1.
    pub const fn pass_below(&self) -> f64 {
        self.pass_below
    }

    /// Losses by which a fail lies above the line, h2.
    pub const fn fail_above(&self) -> f64 {
        self.fail_above
    }

    /// The most losses in `sent` packets that pass; `None` while none would.
    pub fn pass_at_most(&self, sent: u64) -> Option<u64> {
        let line = self.losses_on_line(sent) - self.pass_below;
        (line >= 0.0).then(|| as_count(line.floor()))
    }

    /// The least losses in `sent` packets that fail, which may be more than were sent.
    pub fn fail_at_least(&self, sent: u64) -> u64 {
        as_count((self.losses_on_line(sent) + self.fail_above).ceil())
    }

    /// Packets after which `lost` losses pass, the inverse of [`Self::pass_at_most`].
    pub fn packets_to_pass(&self, lost: u64) -> u64 {
        as_count(((lost as f64 + self.pass_below) / self.slope).ceil())
    }

    fn decide(&self, sent: u64, lost: u64) -> SprtDecision {
        if self.pass_at_most(sent).is_some_and(|most| lost <= most) {
            SprtDecision::Pass
        } else if lost >= self.fail_at_least(sent) {
            SprtDecision::Fail
        } else {
            SprtDecision::GoOn
        }
    }

    fn losses_on_line(&self, sent: u64) -> f64 {
        self.slope * sent as f64
    }
}

impl Target {
    /// Packets in flight, not rounded.
    fn bdp_packets(&self) -> Result<f64, SequentialError> {
        let Self { mtu_bytes, header_bytes, .. } = *self;
        if self.rate.bits_per_sec() == 0 {
            return Err(SequentialError::ZeroRate);
        }
        if self.rtt.is_zero() {
            return Err(SequentialError::ZeroRtt);
        }
        let payload = mtu_bytes.checked_sub(header_bytes).filter(|bytes| *bytes > 0);
        let payload = payload.ok_or(SequentialError::MtuTooSmall { mtu_bytes, header_bytes })?;
        let bits = self.rate.bits_per_sec() as f64 * self.rtt.as_secs_f64();
        Ok(bits / (f64::from(payload) * 8.0))
    }
}

fn checked_risk(risk: f64) -> Result<f64, SequentialError> {
    if risk > 0.0 && risk < 0.5 { Ok(risk) } else { Err(SequentialError::RiskOutOfRange { risk }) }
}

fn as_count(count: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are not negative, and a cast from f64 stays in the range"
    )]
    let count = count as u64;
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(rate: &str, rtt_ms: u64, mtu_bytes: u32, header_bytes: u32) -> Target {
        let rate = rate.parse().expect("a rate");
        Target { rate, rtt: Duration::from_millis(rtt_ms), mtu_bytes, header_bytes }
    }

    fn test_of(run_packets: f64) -> Sprt {
        Sprt::new(run_packets, Risk::FIVE_PERCENT).expect("a possible test")
    }

    #[test]
    fn the_example_of_rfc_8337_comes_out() {
        // RFC 8337 §9: 2.5 Mbit/s, 50 ms, 1500 and 64 bytes give 11 packets and a run of 363.
        // 125,000 bit / 11,488 bit = 10.88.
        let example = target("2.5M", 50, 1500, 64);
        assert_eq!(target_window_packets(&example), Ok(11.0));
        assert_eq!(target_run_packets(&example), Ok(363.0));
    }

    #[test]
    fn the_rule_of_pathdiag_comes_out_by_hand() {
        // 2,625,000 / (0.7 · 1448) = 2589.78; squared 6.7070e6.
        let run = pathdiag_run_packets(&target("1G", 21, 1500, 52)).expect("possible");
        assert!((run - 6.707e6).abs() < 0.0005e6, "{run}");
    }

    #[test]
    fn the_lines_of_the_test_come_out_by_hand() {
        // p0 = 1/363, p1 = 4/363: k = ln 4 + ln((362/363)/(359/363)) = 1.3862944 + 0.0083217
        // = 1.3946161; s = 0.0083217/k; h = ln 19/k = 2.9444390/k.
        let test = test_of(363.0);
        assert!((test.loss_slope() - 0.005_967_1).abs() < 5e-8, "{test:?}");
        assert!((test.pass_below() - 2.111_29).abs() < 1e-5, "{test:?}");
        assert!((test.fail_above() - 2.111_29).abs() < 1e-5, "{test:?}");
        assert_eq!(test.packets_to_pass(0), 354);
        assert_eq!(test.pass_at_most(353), None);
        assert_eq!(test.pass_at_most(354), Some(0));
        assert_eq!((test.pass_at_most(1000), test.fail_at_least(1000)), (Some(3), 9));
        assert_eq!((test.pass_at_most(2000), test.fail_at_least(2000)), (Some(9), 15));
    }

    #[test]
    fn the_test_says_pass_fail_or_go_on_and_stays_with_it() {
        let mut test = test_of(363.0);
        assert_eq!(test.count_packets(353, 0), Ok(SprtDecision::GoOn));
        assert_eq!(test.count_packets(1, 0), Ok(SprtDecision::Pass));
        assert_eq!(test.count_packets(100, 100), Ok(SprtDecision::Pass));
        assert_eq!(
            (test.packets_sent(), test.packets_lost(), test.decision()),
            (354, 0, SprtDecision::Pass)
        );

        let mut test = test_of(363.0);
        assert_eq!(test.count_packets(2, 2), Ok(SprtDecision::GoOn));
        // 2.111 + 3 · 0.006 = 2.13: three lost fail.
        assert_eq!(test.count_packets(1, 1), Ok(SprtDecision::Fail));

        let mut test = test_of(363.0);
        assert_eq!(test.count_packets(1000, 4), Ok(SprtDecision::GoOn));
        assert_eq!(test.count_packets(0, 0), Ok(SprtDecision::GoOn));
    }

    #[test]
    fn the_test_is_wrong_no_more_often_than_it_says() {
        // Losses of a linear congruential generator (Knuth, MMIX), 2000 paths at p0 and at p1.
        let wrong = |p: f64, verdict: SprtDecision| {
            let mut state = 1_u64;
            (0..2000)
                .filter(|_| {
                    let mut test = test_of(50.0);
                    while test.decision() == SprtDecision::GoOn {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let lost = ((state >> 11) as f64 / (1_u64 << 53) as f64) < p;
                        test.count_packets(1, u64::from(lost)).expect("one of one");
                    }
                    test.decision() == verdict
                })
                .count()
        };
        // 5 % of 2000 is 100; Wald's lines err on the safe side, and three deviations are 30.
        assert!(wrong(1.0 / 50.0, SprtDecision::Fail) < 130);
        assert!(wrong(4.0 / 50.0, SprtDecision::Pass) < 130);
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let good = target("1G", 21, 1500, 52);
        let cases = [
            (target("0", 21, 1500, 52), SequentialError::ZeroRate),
            (target("1G", 0, 1500, 52), SequentialError::ZeroRtt),
            (
                target("1G", 21, 52, 52),
                SequentialError::MtuTooSmall { mtu_bytes: 52, header_bytes: 52 },
            ),
        ];
        for (target, want) in cases {
            assert_eq!(target_run_packets(&target), Err(want));
            assert_eq!(pathdiag_run_packets(&target), Err(want));
            assert!(!want.to_string().contains('\n'));
        }
        assert!(rate_for_run_bps(&Target { rtt: Duration::ZERO, ..good }, 10.0).is_err());
        assert!(Sprt::new(4.0, Risk::FIVE_PERCENT).is_err());
        assert!(Sprt::new(f64::NAN, Risk::FIVE_PERCENT).is_err());
        let coin = Risk { false_fail: 0.5, ..Risk::FIVE_PERCENT };
        let error = Sprt::new(363.0, coin).expect_err("a coin");
        assert_eq!(error.to_string(), "a risk of 0.5 is not above 0 and below 0.5");
        let error = test_of(363.0).count_packets(1, 2).expect_err("more lost than sent");
        assert_eq!(error.to_string(), "2 packets were lost of 1 sent");
    }

    proptest! {
        #[test]
        fn the_rate_for_a_run_is_the_inverse(
            mbps in 1_u64..100_000,
            rtt_us in 100_u64..500_000,
        ) {
            let target = Target {
                rate: BitRate::from_bits_per_sec(mbps * 1_000_000),
                rtt: Duration::from_micros(rtt_us),
                mtu_bytes: 1500,
                header_bytes: 52,
            };
            let back = rate_for_run_bps(&target, target_run_packets(&target)?)?;
            let packet_bps = 1448.0 * 8.0 / target.rtt.as_secs_f64();
            let wanted = target.rate.bits_per_sec() as f64;
            prop_assert!(back >= wanted * (1.0 - 1e-9));
            prop_assert!(back <= wanted + packet_bps * 1.001);
        }

        #[test]
        fn pass_and_fail_never_meet(
            run in 5.0_f64..1e9,
            sent in 0_u64..1_000_000_000,
            lost in 0_u64..100,
        ) {
            let test = test_of(run);
            let fail = test.fail_at_least(sent);
            prop_assert!(test.pass_at_most(sent).is_none_or(|most| most < fail));
            let enough = test.packets_to_pass(lost);
            prop_assert!(test.pass_at_most(enough + 1).is_some_and(|most| most >= lost));
            prop_assert!(test.pass_at_most(enough - 1).is_none_or(|most| most < lost));
        }
    }
}
