//! How large a queue has to be, what a flow keeps of a link behind a smaller one, and the delay
//! that a full one adds.
//!
//! Left out: active queue management (`red`), and bursts of unpaced senders, which lose far more in
//! a small queue than the smooth flow of [`aimd_utilization`].

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Reason why a buffer cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BufferError {
    /// A rate of 0, at which a queue never drains.
    #[error("at a rate of 0 a queue never drains")]
    ZeroRate,
    /// A round trip of 0, by which nothing can be divided.
    #[error("a round trip of 0 sets no bound on bursts")]
    ZeroRtt,
    /// No flow that fills the buffer.
    #[error("0 flows need no buffer")]
    ZeroFlows,
    /// A share that gives no size.
    #[error("a buffer of {share} bandwidth-delay products is not a size")]
    NotASize {
        /// The size asked for.
        share: f64,
    },
    /// A flow keeps part of its window.
    #[error("a flow that keeps {beta} of its window at a loss is not above 0 and below 1")]
    BetaOutOfRange {
        /// The factor that was given.
        beta: f64,
    },
    /// Not between an empty and a full link.
    #[error("a utilisation of {utilization} is not from {least}, which no buffer gives, to 1")]
    UtilizationOutOfRange {
        /// The share asked for.
        utilization: f64,
        /// The share without a buffer.
        least: f64,
    },
}

/// Buffer in bytes that keeps a link full: C RTT / (8 sqrt(n)) for n flows that do not lose
/// together; C RTT / 8 for one.
///
/// 10 Gbit/s, 250 ms and 50,000 flows: 1.398 MB instead of 312.5 MB.
/// # Errors
/// 0 flows.
/// # Source
/// C. Villamizar, C. Song, "High performance TCP in ANSNET", CCR 24(5), 1994, for one flow;
/// G. Appenzeller, I. Keslassy, N. McKeown, "Sizing router buffers", SIGCOMM 2004, for many.
pub fn full_link_bytes(rate: BitRate, rtt: Duration, flows: u64) -> Result<f64, BufferError> {
    if flows == 0 {
        return Err(BufferError::ZeroFlows);
    }
    Ok(rate.bits_per_sec() as f64 * rtt.as_secs_f64() / 8.0 / (flows as f64).sqrt())
}

/// Share of a link that one smooth flow uses which adds a segment in each round trip and keeps
/// `beta` of its window at a loss, behind a buffer of `share` bandwidth-delay products:
/// U = ((1 − l²)/2 + ((1 + b)² − 1)/2) / ((1 − l) + ((1 + b)² − 1)/2) with l = β (1 + b), and 1
/// when l ≥ 1.
///
/// An upper bound for real senders: bursts lose more in a small buffer. β = 0.5 without a buffer:
/// 75 %.
/// # Errors
/// A size below 0 or not finite, β not above 0 and below 1.
/// # Source
/// The area under the sawtooth between l and 1 + b, whose round trip is 1 below 1 and the window
/// above it.
pub fn aimd_utilization(share: f64, beta: f64) -> Result<f64, BufferError> {
    let beta = checked_beta(beta)?;
    if !(share >= 0.0 && share.is_finite()) {
        return Err(BufferError::NotASize { share });
    }
    let low = beta * (1.0 + share);
    if low >= 1.0 {
        return Ok(1.0);
    }
    let queue = share * (2.0 + share) / 2.0;
    Ok(((1.0 - low * low) / 2.0 + queue) / (1.0 - low + queue))
}

/// The smallest buffer, in bandwidth-delay products, at which [`aimd_utilization`] is 1:
/// b = 1/β − 1. One for Reno, 0.4286 for CUBIC.
/// # Errors
/// β not above 0 and below 1.
pub fn full_utilization_share(beta: f64) -> Result<f64, BufferError> {
    Ok(1.0 / checked_beta(beta)? - 1.0)
}

/// The smallest buffer, in bandwidth-delay products, at which [`aimd_utilization`] is
/// `utilization`.
/// # Errors
/// β not above 0 and below 1, a utilisation above 1 or below what no buffer gives, (1 + β)/2.
pub fn share_for_utilization(utilization: f64, beta: f64) -> Result<f64, BufferError> {
    let full = full_utilization_share(beta)?;
    let least = aimd_utilization(0.0, beta)?;
    if !(least..=1.0).contains(&utilization) {
        return Err(BufferError::UtilizationOutOfRange { utilization, least });
    }
    // The utilisation grows with the buffer. 100 halvings reach the nearest f64.
    let (mut low, mut high) = (0.0, full);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if aimd_utilization(middle, beta)? < utilization {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

/// Seconds that a queue adds to the round trip while it stands: 8 B / C.
/// # Errors
/// A rate of 0.
pub fn queue_delay_s(queue: Bytes, rate: BitRate) -> Result<f64, BufferError> {
    if rate.bits_per_sec() == 0 {
        return Err(BufferError::ZeroRate);
    }
    Ok(queue.count() as f64 * 8.0 / rate.bits_per_sec() as f64)
}

/// Bytes of a queue that adds `delay`: C q / 8.
pub fn queue_bytes(delay: Duration, rate: BitRate) -> f64 {
    rate.bits_per_sec() as f64 * delay.as_secs_f64() / 8.0
}

/// The most that passes, in bit/s, when a device on the path absorbs one burst in each round trip
/// and loses what is above it: 8 burst / RTT.
///
/// A queue of 1000 packets of 1500 bytes passes 600 Mbit/s when it drains each 20 ms, and
/// 68.57 Mbit/s of a sender that sends its window at once each 175 ms.
/// # Errors
/// A round trip of 0.
pub fn burst_limited_bps(burst: Bytes, rtt: Duration) -> Result<f64, BufferError> {
    if rtt.is_zero() {
        return Err(BufferError::ZeroRtt);
    }
    Ok(burst.count() as f64 * 8.0 / rtt.as_secs_f64())
}

fn checked_beta(beta: f64) -> Result<f64, BufferError> {
    if beta > 0.0 && beta < 1.0 { Ok(beta) } else { Err(BufferError::BetaOutOfRange { beta }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_rate(text: &str) -> BitRate {
        text.parse().expect("a rate")
    }

    /// `got` rounds to `want`, whose last digit stands for `unit`.
    fn assert_rounds_to(got: Result<f64, BufferError>, want: f64, unit: f64) {
        let got = got.expect("a possible buffer");
        assert!((got - want).abs() <= unit * 0.501, "got {got}, want {want}");
    }

    #[test]
    fn many_flows_need_a_smaller_buffer() {
        // 10e9 · 0.25 / 8 = 312.5 MB, over sqrt(50,000) = 223.607.
        let rtt = Duration::from_millis(250);
        assert_rounds_to(full_link_bytes(parse_rate("10G"), rtt, 1), 312.5e6, 1e-3);
        assert_rounds_to(full_link_bytes(parse_rate("10G"), rtt, 50_000), 1.398e6, 1e3);
        let rtt = Duration::from_millis(21);
        assert_rounds_to(full_link_bytes(parse_rate("1G"), rtt, 1), 2.625e6, 1e-3);
        assert_rounds_to(full_link_bytes(parse_rate("1G"), rtt, 100), 262.5e3, 1e-3);
    }

    #[test]
    fn a_smooth_flow_fills_a_link_behind_a_large_enough_buffer() {
        // By hand for b = 0.5, β = 0.5: l = 0.75, ((1 − 0.5625)/2 + 0.625) / (0.25 + 0.625).
        let table = [(0.0, 0.75), (0.1, 0.8176), (0.25, 0.8929), (0.5, 0.9643), (1.0, 1.0)];
        for (share, want) in table {
            assert_rounds_to(aimd_utilization(share, 0.5), want, 1e-4);
        }
        for (share, want) in [(0.0, 0.85), (0.1, 0.9210), (0.25, 0.9808), (0.4286, 1.0)] {
            assert_rounds_to(aimd_utilization(share, 0.7), want, 1e-4);
        }
        assert_rounds_to(full_utilization_share(0.5), 1.0, 1e-12);
        assert_rounds_to(full_utilization_share(0.7), 0.4286, 1e-4);
        assert_eq!(aimd_utilization(0.0, 0.5), Ok(0.75));
        assert_eq!(aimd_utilization(5.0, 0.5), Ok(1.0));
    }

    #[test]
    fn one_burst_in_each_round_trip_is_slower_than_its_queue_drains() {
        let burst = Bytes::new(1000 * 1500);
        assert_rounds_to(burst_limited_bps(burst, Duration::from_millis(20)), 600e6, 1.0);
        assert_rounds_to(burst_limited_bps(burst, Duration::from_millis(175)), 68.57e6, 1e4);
    }

    #[test]
    fn a_full_queue_adds_its_length_over_the_rate() {
        // 250,000 bytes at 50 Mbit/s: 40 ms.
        assert_rounds_to(queue_delay_s(Bytes::new(250_000), parse_rate("50M")), 0.04, 1e-12);
        assert!(
            (queue_bytes(Duration::from_millis(40), parse_rate("50M")) - 250_000.0).abs() < 1e-6
        );
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let cases = [
            (full_link_bytes(parse_rate("1G"), Duration::ZERO, 0), BufferError::ZeroFlows),
            (queue_delay_s(Bytes::new(1), parse_rate("0")), BufferError::ZeroRate),
            (burst_limited_bps(Bytes::new(1), Duration::ZERO), BufferError::ZeroRtt),
            (aimd_utilization(-0.1, 0.5), BufferError::NotASize { share: -0.1 }),
            (aimd_utilization(0.1, 1.0), BufferError::BetaOutOfRange { beta: 1.0 }),
            (full_utilization_share(0.0), BufferError::BetaOutOfRange { beta: 0.0 }),
            (
                share_for_utilization(0.5, 0.5),
                BufferError::UtilizationOutOfRange { utilization: 0.5, least: 0.75 },
            ),
        ];
        for (got, want) in cases {
            assert_eq!(got, Err(want));
            assert!(!want.to_string().contains('\n'));
        }
        assert!(aimd_utilization(f64::NAN, 0.5).is_err());
        assert!(aimd_utilization(0.1, f64::NAN).is_err());
        assert!(share_for_utilization(f64::NAN, 0.5).is_err());
        let error = share_for_utilization(0.5, 0.5).expect_err("too little");
        let text = "a utilisation of 0.5 is not from 0.75, which no buffer gives, to 1";
        assert_eq!(error.to_string(), text);
    }

    proptest! {
        #[test]
        fn the_buffer_for_a_utilisation_is_the_inverse(
            part in 0.001_f64..0.99,
            beta in 0.1_f64..0.95,
        ) {
            let share = part * full_utilization_share(beta)?;
            let back = share_for_utilization(aimd_utilization(share, beta)?, beta)?;
            // Near the full link the utilisation is flat: a bit of it is a root of b.
            prop_assert!((back - share).abs() < 1e-5 * (1.0 + share), "{back} {share}");
        }

        #[test]
        fn a_larger_buffer_and_a_smaller_backoff_never_use_less(
            share in 0.0_f64..3.0,
            more in 0.0_f64..1.0,
            beta in 0.1_f64..0.9,
        ) {
            let here = aimd_utilization(share, beta)?;
            prop_assert!((0.5..=1.0).contains(&here), "{here}");
            prop_assert!(aimd_utilization(share + more, beta)? >= here - 1e-12);
            prop_assert!(aimd_utilization(share, beta + 0.05)? >= here - 1e-12);
        }

        #[test]
        fn a_queue_and_its_delay_are_inverses(ms in 0_u64..10_000, mbps in 1_u64..100_000) {
            let rate = BitRate::from_bits_per_sec(mbps * 1_000_000);
            let bytes = queue_bytes(Duration::from_millis(ms), rate);
            // A megabit per second is 125 bytes per millisecond.
            let whole = ms * mbps * 125;
            prop_assert!((bytes - whole as f64).abs() <= 1e-9 * whole as f64);
            let back = queue_delay_s(Bytes::new(whole), rate)?;
            prop_assert!((back - ms as f64 / 1e3).abs() < 1e-9);
        }
    }
}
