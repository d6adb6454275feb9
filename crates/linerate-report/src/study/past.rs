//! What was published about a topology of the plan, and what the past is called.

use linerate_core::study::{PublishedAs, PublishedPing, PublishedTcp, StudyPlan};

use super::StudyResults;

/// The figures that were published for one topology.
#[derive(Clone, Default)]
pub(crate) struct Published<'a> {
    /// Round-trip times in the order printed.
    pub ping: Vec<&'a PublishedPing>,
    /// Throughput in the order printed.
    pub tcp: Vec<&'a PublishedTcp>,
}

impl<'a> Published<'a> {
    pub(super) fn new(rows: &PublishedAs, results: &'a StudyResults) -> Self {
        let ping = results.published.ping.iter().filter(|row| row.test == rows.test).collect();
        let tcp: Vec<&PublishedTcp> =
            results.published.tcp.iter().filter(|row| row.test == rows.test).collect();
        // Without an MTU named, the first one printed is meant.
        let mtu = rows.mtu_bytes.or_else(|| tcp.first().map(|row| row.mtu_bytes));
        Self { ping, tcp: tcp.into_iter().filter(|row| Some(row.mtu_bytes) == mtu).collect() }
    }

    /// Name of the TCP curve, with the MTU where it is not Ethernet's.
    pub(crate) fn tcp_name(&self) -> Option<String> {
        let first = self.tcp.first()?;
        Some(match first.mtu_bytes {
            1500 => first.topology.clone(),
            mtu => format!("{}, MTU {mtu}", first.topology),
        })
    }

    /// Published mean round-trip time at one payload length, in nanoseconds.
    pub(crate) fn rtt_ns(&self, payload_bytes: u32) -> Option<f64> {
        let row = self.ping.iter().find(|row| row.payload_bytes == payload_bytes)?;
        // Printed in milliseconds with three decimals: whole microseconds.
        row.rtt_avg_ms.map(|ms| (ms * 1e6).round())
    }

    /// Published pings per second at one payload length.
    pub(crate) fn pings_per_second(&self, payload_bytes: u32) -> Option<f64> {
        self.ping.iter().find(|row| row.payload_bytes == payload_bytes)?.pings_per_s
    }

    /// Published throughput at one window, in bit/s.
    pub(crate) fn throughput_bps(&self, window_bytes: u64) -> Option<f64> {
        let row = self.tcp.iter().find(|row| row.window_bytes == window_bytes)?;
        row.throughput_mbit_s.map(|mbit| (mbit * 1e6).round())
    }

    /// Published windows in the order printed.
    pub(crate) fn windows(&self) -> impl Iterator<Item = u64> {
        self.tcp.iter().map(|row| row.window_bytes)
    }
}

/// Name of the published figures: the last number of four digits in the source that can be a year.
pub(crate) fn name(plan: &StudyPlan) -> String {
    let source = plan.source.as_deref().unwrap_or_default();
    let is_year = |digits: &&str| digits.len() == 4 && ("1970".."2100").contains(digits);
    let mut numbers = source.split(|c: char| !c.is_ascii_digit());
    numbers.rfind(is_year).unwrap_or("published").to_owned()
}
