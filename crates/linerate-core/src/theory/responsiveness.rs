//! Responsiveness under load: round trips per minute.
//!
//! Left out: how the load is made and when it is stable. draft-ietf-ippm-responsiveness-09
//! §5.3.1, and the formula of its first versions.

use std::time::Duration;

use thiserror::Error;

/// Share of the samples, the smallest, that the trimmed mean keeps, percent
/// (draft-ietf-ippm-responsiveness, TMP).
pub const TRIMMED_MEAN_PERCENT: usize = 95;
/// A minute in milliseconds, which is divided by the round trip.
const MINUTE_MS: f64 = 60_000.0;

/// Mean round trips under load: of new ("foreign") connections and of the loaded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedRoundTrips {
    /// TCP handshake of a new connection.
    pub tcp_foreign: Duration,
    /// TLS handshake of a new connection, for one round trip; none without TLS.
    pub tls_foreign: Option<Duration>,
    /// Request on a new connection.
    pub http_foreign: Duration,
    /// Request on a connection that carries the load.
    pub http_loaded: Duration,
}

/// Reason why responsiveness cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponsivenessError {
    /// A round trip of 0, whose count would be infinite.
    #[error("a round trip of 0 gives no count of round trips per minute")]
    ZeroRoundTrip,
    /// No samples, of which none would be left.
    #[error("no round trip was measured")]
    NoSamples,
}

/// Round trips per minute: the mean of 60000 / mean(tcp, tls, http of new connections) and
/// 60000 / http of the loaded one, in milliseconds.
///
/// 60 ms for each new connection's and 20 ms for the loaded: (1000 + 3000) / 2 = 2000.
/// # Errors
/// A round trip of 0.
/// # Source
/// draft-ietf-ippm-responsiveness-09 §5.3.1.1, and its form without TLS.
pub fn round_trips_per_minute(times: &LoadedRoundTrips) -> Result<f64, ResponsivenessError> {
    let (foreign_ms, loaded_ms) = times.means_ms()?;
    Ok(f64::midpoint(MINUTE_MS / foreign_ms, MINUTE_MS / loaded_ms))
}

/// Round trips per minute of the draft's first versions: 60000 / (mean of the two means). Never
/// above [`round_trips_per_minute`]; the example there gives 1500.
/// # Errors
/// A round trip of 0.
/// # Source
/// draft-ietf-ippm-responsiveness-01.
pub fn round_trips_per_minute_of_mean(
    times: &LoadedRoundTrips,
) -> Result<f64, ResponsivenessError> {
    let (foreign_ms, loaded_ms) = times.means_ms()?;
    Ok(MINUTE_MS / f64::midpoint(foreign_ms, loaded_ms))
}

/// Mean of the smallest 95 % of the samples; at least one is kept. Sorts them.
/// # Errors
/// No samples.
/// # Source
/// draft-ietf-ippm-responsiveness-09 §5.3.1: a trimmed mean of one side.
pub fn trimmed_mean(samples: &mut [Duration]) -> Result<Duration, ResponsivenessError> {
    samples.sort_unstable();
    let kept = (samples.len() * TRIMMED_MEAN_PERCENT / 100).max(samples.len().min(1));
    let total: Duration = samples[..kept].iter().sum();
    match u32::try_from(kept) {
        Ok(0) => Err(ResponsivenessError::NoSamples),
        Ok(kept) => Ok(total / kept),
        Err(_) => Ok(Duration::from_secs_f64(total.as_secs_f64() / kept as f64)),
    }
}

impl LoadedRoundTrips {
    /// Means of the new connections and of the loaded one, in milliseconds.
    fn means_ms(&self) -> Result<(f64, f64), ResponsivenessError> {
        let foreign = [Some(self.tcp_foreign), self.tls_foreign, Some(self.http_foreign)];
        let present = || foreign.iter().flatten();
        if present().any(Duration::is_zero) || self.http_loaded.is_zero() {
            return Err(ResponsivenessError::ZeroRoundTrip);
        }
        let foreign_ms = present().map(Duration::as_secs_f64).sum::<f64>() * 1e3;
        Ok((foreign_ms / present().count() as f64, self.http_loaded.as_secs_f64() * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loaded_round_trips(tcp: u64, tls: Option<u64>, http: u64, loaded: u64) -> LoadedRoundTrips {
        LoadedRoundTrips {
            tcp_foreign: Duration::from_millis(tcp),
            tls_foreign: tls.map(Duration::from_millis),
            http_foreign: Duration::from_millis(http),
            http_loaded: Duration::from_millis(loaded),
        }
    }

    #[test]
    fn both_formulas_come_out_by_hand() {
        // 60000/60 = 1000 and 60000/20 = 3000; 60000/40 = 1500.
        let example = loaded_round_trips(60, Some(60), 60, 20);
        let got = round_trips_per_minute(&example).expect("possible");
        assert!((got - 2000.0).abs() < 1e-9, "{got}");
        let got = round_trips_per_minute_of_mean(&example).expect("possible");
        assert!((got - 1500.0).abs() < 1e-9, "{got}");
    }

    #[test]
    fn without_tls_two_times_are_averaged() {
        // 60000/((20 + 40)/2) = 2000 and 60000/60 = 1000.
        let got = round_trips_per_minute(&loaded_round_trips(20, None, 40, 60)).expect("possible");
        assert!((got - 1500.0).abs() < 1e-9, "{got}");
    }

    #[test]
    fn the_largest_twentieth_does_not_count() {
        // 19 of 1 to 19 ms kept, one of 1 s dropped: the mean is 10.
        let mut samples: Vec<_> = (1..20).map(Duration::from_millis).collect();
        samples.insert(3, Duration::from_secs(1));
        assert_eq!(trimmed_mean(&mut samples), Ok(Duration::from_millis(10)));
        let mut one = [Duration::from_millis(7)];
        assert_eq!(trimmed_mean(&mut one), Ok(Duration::from_millis(7)));
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let error = Err(ResponsivenessError::ZeroRoundTrip);
        assert_eq!(round_trips_per_minute(&loaded_round_trips(0, None, 1, 1)), error);
        assert_eq!(round_trips_per_minute(&loaded_round_trips(1, Some(0), 1, 1)), error);
        assert_eq!(round_trips_per_minute_of_mean(&loaded_round_trips(1, None, 1, 0)), error);
        assert_eq!(trimmed_mean(&mut []), Err(ResponsivenessError::NoSamples));
        let text = ResponsivenessError::ZeroRoundTrip.to_string();
        assert_eq!(text, "a round trip of 0 gives no count of round trips per minute");
    }

    proptest! {
        #[test]
        fn longer_round_trips_give_fewer_and_the_old_formula_no_more(
            ms in [1_u64..2000, 1..2000, 1..2000, 1..2000],
            more in 1_u64..100,
        ) {
            let [tcp, tls, http, loaded] = ms;
            let here = loaded_round_trips(tcp, Some(tls), http, loaded);
            let rpm = round_trips_per_minute(&here)?;
            let longer_handshake = loaded_round_trips(tcp + more, Some(tls), http, loaded);
            let slower = round_trips_per_minute(&longer_handshake)?;
            let longer_queue = loaded_round_trips(tcp, Some(tls), http, loaded + more);
            let fuller = round_trips_per_minute(&longer_queue)?;
            prop_assert!(slower < rpm && fuller < rpm);
            prop_assert!(round_trips_per_minute_of_mean(&here)? <= rpm * (1.0 + 1e-12));
        }
    }
}
