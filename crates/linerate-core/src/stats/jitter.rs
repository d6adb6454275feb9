//! The smoothed interarrival jitter of RTP, which iperf and many tools print as "jitter".

/// Interarrival jitter over packets in the order of arrival, duplicates left out.
///
/// J += (|D| − J) / 16, where D is the difference of two successive arrivals' transit times.
/// # Source
/// RFC 3550 §6.4.1 and appendix A.8.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JitterRfc3550 {
    last_transit_ns: Option<i64>,
    jitter_ns: Option<f64>,
}

impl JitterRfc3550 {
    /// Takes in the transit time of the next packet to arrive. It may be a one-way delay between
    /// clocks that differ, and then negative: only differences count.
    pub fn record(&mut self, transit_ns: i64) {
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            let distance = transit_ns.abs_diff(last) as f64;
            let jitter = self.jitter_ns.unwrap_or(0.0);
            self.jitter_ns = Some(jitter + (distance - jitter) / 16.0);
        }
    }

    /// The jitter in nanoseconds; `None` below two packets.
    pub const fn jitter_ns(&self) -> Option<f64> {
        self.jitter_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_has_no_jitter() {
        let mut jitter = JitterRfc3550::default();
        assert_eq!(jitter.jitter_ns(), None);
        jitter.record(5);
        assert_eq!(jitter.jitter_ns(), None);
        jitter.record(5);
        assert_eq!(jitter.jitter_ns(), Some(0.0));
    }

    #[test]
    fn a_steady_alternation_converges_to_its_step() {
        // |D| is always 160, so J tends to 160: after n steps 160 (1 - (15/16)^n).
        let mut jitter = JitterRfc3550::default();
        for turn in 0..=100 {
            jitter.record(if turn % 2 == 0 { -80 } else { 80 });
        }
        let expected = 160.0 * (1.0 - (15.0_f64 / 16.0).powi(100));
        assert!((jitter.jitter_ns().expect("101 packets") - expected).abs() < 1e-9);
    }

    #[test]
    fn extreme_clocks_do_not_overflow() {
        let mut jitter = JitterRfc3550::default();
        jitter.record(i64::MIN);
        jitter.record(i64::MAX);
        assert!(jitter.jitter_ns().expect("two packets") > 1e18);
    }
}
