//! What `-e` adds to the rows of a TCP test: writes, segments sent again, congestion window,
//! round-trip time and network power of a sender, reads of a receiver.
//!
//! Writes are counted in buffers of `-l`; how long each read was is not kept, so the spread of
//! reads is left out, and their number stands in the row of the whole test alone.

use linerate_core::record::{FlowEnd, IntervalRow};
use linerate_engine::flow::Sample;

/// Above the rows of a sender.
pub(super) const SENT: &str = "[ ID] Interval            Transfer    Bandwidth       Write/Err  \
    Rtry     Cwnd/RTT(var)        NetPwr";
/// Above the rows of a receiver.
pub(super) const RECEIVED: &str = "[ ID] Interval            Transfer    Bandwidth       Reads";

/// Counters of the kernel's TCP_INFO of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderCounters {
    pub(super) retransmits: Option<u64>,
    pub(super) cwnd_bytes: Option<u64>,
    pub(super) rtt_us: Option<u64>,
    pub(super) rtt_var_us: Option<u64>,
}

impl SenderCounters {
    /// Counters in an interval's row.
    pub(super) fn of_row(row: &IntervalRow) -> Self {
        Self {
            retransmits: row.retransmits,
            cwnd_bytes: row.cwnd_bytes,
            rtt_us: row.rtt_ns.map(|ns| ns / 1000),
            rtt_var_us: row.rtt_var_ns.map(|ns| ns / 1000),
        }
    }

    /// Counters of a server's interval, from its sample and the sample `before`.
    pub(super) fn of_sample(sample: &Sample, before: Option<&Sample>) -> Self {
        let before = before.and_then(|before| before.retransmits).unwrap_or(0);
        Self {
            retransmits: sample.retransmits.map(|all| all.saturating_sub(before)),
            cwnd_bytes: sample.cwnd_bytes,
            rtt_us: sample.rtt_ns.map(|ns| ns / 1000),
            rtt_var_us: sample.rtt_var_ns.map(|ns| ns / 1000),
        }
    }

    /// Counters of the whole test.
    pub(super) fn of_end(end: &FlowEnd) -> Self {
        let info = end.tcp_info.as_ref();
        Self {
            retransmits: info.and_then(|info| info.total_retrans).map(u64::from),
            cwnd_bytes: info.and_then(linerate_core::record::TcpInfo::cwnd_bytes),
            rtt_us: info.and_then(|info| info.rtt_us).map(u64::from),
            rtt_var_us: info.and_then(|info| info.rttvar_us).map(u64::from),
        }
    }
}

/// The columns of a sender behind those of any row; a sum of streams has no window.
pub(super) fn sender_columns(of: SenderCounters, bytes: u64, length: u32, seconds: f64) -> String {
    let writes = format!("{}/0", bytes.div_ceil(u64::from(length.max(1))));
    let retransmits = of.retransmits.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let mut columns = format!("  {writes:<10} {retransmits:>4}");
    if let (Some(cwnd), Some(rtt_us)) = (of.cwnd_bytes, of.rtt_us) {
        let variance = of.rtt_var_us.unwrap_or(0);
        // Bytes a second over the seconds of a round trip, in millions.
        let power = bytes as f64 / seconds.max(1e-9) / rtt_us.max(1) as f64;
        columns += &format!(" {:>8}K/{rtt_us}({variance}) us  {power:.0}", cwnd / 1024);
    }
    columns
}

/// The column of a receiver.
pub(super) fn received(reads: Option<u64>) -> String {
    format!("  {}", reads.map_or_else(|| "-".to_owned(), |count| count.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_original() {
        // iperf 2.1.8 -e -b 50M -t 1: 51 writes of 128 KiB in 1.0313 s, as far as that is
        // printed; cwnd 1151K, RTT 225 us, variance 260.
        let of = SenderCounters {
            retransmits: Some(0),
            cwnd_bytes: Some(1151 << 10),
            rtt_us: Some(225),
            rtt_var_us: Some(260),
        };
        let bytes = 51 * 131_072;
        let columns = sender_columns(of, bytes, 131_072, 1.03128);
        assert_eq!(columns, "  51/0          0     1151K/225(260) us  28809");
        let sum = SenderCounters { retransmits: Some(0), ..SenderCounters::default() };
        assert_eq!(sender_columns(sum, 2 * bytes, 131_072, 1.0), "  102/0         0");
        assert_eq!(sender_columns(SenderCounters::default(), 1, 0, 0.0), "  1/0           -");
        assert_eq!((received(Some(55)), received(None)), ("  55".to_owned(), "  -".to_owned()));
    }
}
