//! Round trips by payload size: what a byte costs, the link rate that this means, and what
//! fragments add.
//!
//! The smallest round trip of each size is fitted, for it has the least of queues and of this host
//! in it. Each byte of an echo crosses every link twice, so a slope of s ns per byte is as much as
//! one link of 16 / s Gbit/s, or as several faster ones one after the other.
//!
//! # Source
//! V. Jacobson, "pathchar", 1997; A. Downey, "Using pathchar to estimate Internet link
//! characteristics", SIGCOMM 1999, §3.

use linerate_core::record::{MetricId, PingPlan, Record, Stat};
use linerate_core::stats::LineFit;

use super::ping_split::value_for_payload;
use crate::number;

/// Sizes that a fit takes at the least: with fewer the slope has no interval.
const SIZES_MIN: usize = 3;

/// Bits of a byte that go there and come back.
const BITS_BOTH_WAYS: f64 = 16.0;

/// The smallest round trip of each payload size of a ping, and the line through them.
pub(super) struct BySize {
    /// Sizes with their smallest round trips in ns.
    pub(super) least: Vec<(u32, f64)>,
    /// The line through those that travel as one packet.
    pub(super) fit: LineFit,
    /// The largest payload that does, where the MTU is known.
    pub(super) whole_bytes: Option<u32>,
}

impl BySize {
    /// None of fewer than three sizes that travel as one packet.
    pub(super) fn from_record(record: &Record, plan: &PingPlan) -> Option<Self> {
        let least = plan.sizes_bytes.iter();
        let least = least.filter_map(|&size| {
            Some((size, value_for_payload(record, MetricId::Rtt, Stat::Min, size)?))
        });
        let mut least: Vec<(u32, f64)> = least.collect();
        least.sort_by_key(|(size, _)| *size);
        least.dedup_by_key(|(size, _)| *size);
        let whole_bytes = whole_bytes(record);
        let whole = least.iter().filter(|(size, _)| whole_bytes.is_none_or(|most| *size <= most));
        let points: Vec<(f64, f64)> = whole.map(|(size, ns)| (f64::from(*size), *ns)).collect();
        let fit = LineFit::from_points(&points).filter(|fit| fit.n >= SIZES_MIN)?;
        Some(Self { least, fit, whole_bytes })
    }

    /// The fitted line at a size, in ns.
    pub(super) fn fitted_ns_at(&self, size: u32) -> f64 {
        self.fit.intercept + self.fit.slope * f64::from(size)
    }

    /// The smallest size that travels in fragments, and by how many ns it is above the line.
    pub(super) fn fragment_step(&self) -> Option<(u32, f64)> {
        let most = self.whole_bytes?;
        let (size, ns) = self.least.iter().find(|(size, _)| *size > most)?;
        Some((*size, ns - self.fitted_ns_at(*size)))
    }

    /// `0.14 ns per byte (95 %: 0.083 to 0.19), as one link of 85 to 193 Gbit/s each way; as
    /// fragments 1500 bytes take 4.7 µs more`
    pub(super) fn fit_in_words(&self) -> String {
        let of = |value: f64| number::significant(value, 2);
        let mut text = format!("{} ns per byte", of(self.fit.slope));
        if let Some(interval) = self.fit.slope_95 {
            text.push_str(&format!(" (95 %: {} to {})", of(interval.low), of(interval.high)));
            // The rates that both ends of the interval mean.
            let gbit = |slope: f64| of(BITS_BOTH_WAYS / slope);
            text.push_str(&match interval.low > 0.0 {
                true => {
                    let (low, high) = (gbit(interval.high), gbit(interval.low));
                    let rates = if low == high { low } else { format!("{low} to {high}") };
                    format!(", as one link of {rates} Gbit/s each way")
                }
                false => ": not told apart from 0".to_owned(),
            });
        }
        if let Some((size, ns)) = self.fragment_step() {
            let step = format!("{} \u{b5}s", of(ns / 1e3));
            text.push_str(&format!("; as fragments {size} bytes take {step} more"));
        }
        text
    }
}

/// The largest payload that leaves this host as one packet: its interface's MTU less the headers of
/// IP (20 or 40 bytes) and of ICMP or UDP (8).
fn whole_bytes(record: &Record) -> Option<u32> {
    let end = record.ends.first()?;
    let mtu_bytes = end.interface.as_ref()?.mtu_bytes?;
    let is_v6 = end.address.as_ref()?.contains(':');
    mtu_bytes.checked_sub(if is_v6 { 48 } else { 28 })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{MeasurementEnd, Plan, RecordId, RecordedInterface, Summary, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(address: &str, least: &[(u32, f64)]) -> (Record, PingPlan) {
        let sizes_bytes = least.iter().map(|(size, _)| *size).collect();
        let plan = PingPlan { sizes_bytes, ..PingPlan::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Ping(plan.clone()), at);
        let interface = RecordedInterface { mtu_bytes: Some(1500), ..RecordedInterface::default() };
        let (address, interface) = (Some(address.to_owned()), Some(interface));
        record.ends = vec![MeasurementEnd { address, interface, ..MeasurementEnd::default() }];
        let row = |&(size, ns): &(u32, f64)| {
            Summary::from_value(MetricId::Rtt, Stat::Min, ns).at_payload(size)
        };
        record.summary = least.iter().map(row).collect();
        (record, plan)
    }

    /// A link of 1 Gbit/s each way: 8 ns a byte there and 8 back. Two packets of 1500 bytes take
    /// 7.5 us more than the line, which goes on to 10 000 + 16 * 1500 = 34 000.
    #[test]
    fn sixteen_ns_per_byte_are_a_link_of_1_gbit_each_way() {
        let line = |size: u32| (size, 10_000.0 + 16.0 * f64::from(size));
        let sizes = [56, 500, 1000, 1472].map(line);
        let (record, plan) = record("10.0.0.1", &[&sizes[..], &[(1500, 41_500.0)]].concat());
        let found = BySize::from_record(&record, &plan).expect("five sizes");
        assert_eq!(found.whole_bytes, Some(1472));
        assert!((found.fit.slope - 16.0).abs() < 1e-9);
        let (size, ns) = found.fragment_step().expect("a size in fragments");
        assert!(size == 1500 && (ns - 7_500.0).abs() < 1e-6, "{size} {ns}");
        let words = "16 ns per byte (95 %: 16 to 16), as one link of 1.0 Gbit/s each way; as \
                     fragments 1500 bytes take 7.5 \u{b5}s more";
        assert_eq!(found.fit_in_words(), words);
    }

    /// Of IPv6 with its 40 bytes 1453 do not fit any more, and then three sizes are left of four.
    #[test]
    fn headers_are_those_of_the_family_and_two_sizes_are_no_line() {
        let least = [(100, 1e4), (700, 2e4), (1452, 3e4), (1453, 9e4)];
        let (six, plan) = record("fd00::1", &least);
        let found = BySize::from_record(&six, &plan).expect("three whole sizes");
        assert_eq!((found.whole_bytes, found.fit.n), (Some(1452), 3));
        let (few, plan) = record("fd00::1", &least[1..]);
        assert!(BySize::from_record(&few, &plan).is_none());
    }

    #[test]
    fn a_slope_within_its_error_is_no_rate() {
        let (record, plan) = record("10.0.0.1", &[(56, 100.0), (500, 300.0), (1000, 150.0)]);
        let words = BySize::from_record(&record, &plan).expect("three sizes").fit_in_words();
        assert!(words.ends_with(": not told apart from 0") && !words.contains("bit/s"), "{words}");
    }
}
