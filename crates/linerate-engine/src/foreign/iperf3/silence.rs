//! How long nothing has come from the other end, for a test that receives.

use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;

/// What has come and when it was last more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    max: Option<Duration>,
    seen: (u64, MonoTime),
}

impl Silence {
    /// From `begin` on; a test gives up after `max`.
    pub(super) const fn since(begin: MonoTime, max: Option<Duration>) -> Self {
        Self { max, seen: (0, begin) }
    }

    /// How long it has been silent, where `received` is all that came by `now`.
    pub(super) fn look(&mut self, received: u64, now: MonoTime) -> Duration {
        if received != self.seen.0 {
            self.seen = (received, now);
        }
        now.since(self.seen.1)
    }

    /// The failure of a test with `peer` that was silent for too long.
    pub(super) fn check(&self, silent: Duration, peer: &str) -> Result<(), Failure> {
        match self.max.filter(|max| silent >= *max) {
            Some(max) => {
                let reason = format!("nothing came for {} ms", max.as_millis());
                Err(Failure::new(Fault::Unreachable, "receive from", peer, reason)
                    .advise("the results so far are kept"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_from_the_last_byte() {
        let at = |ms: u64| MonoTime::from_nanos(ms * 1_000_000);
        let mut silence = Silence::since(at(0), Some(Duration::from_millis(100)));
        let seen = [(0, 50), (10, 60), (10, 159), (11, 160), (11, 260)];
        let silent = seen.map(|(bytes, ms)| silence.look(bytes, at(ms)));
        assert_eq!(silent.map(|span| span.as_millis()), [50, 0, 99, 0, 100]);
        assert!(silence.check(silent[2], "a peer").is_ok());
        let failure = silence.check(silent[4], "a peer").expect_err("100 ms are over");
        assert!(failure.to_string().contains("nothing came for 100 ms"), "{failure}");
        assert!(Silence::since(at(0), None).check(Duration::MAX, "a peer").is_ok());
    }
}
