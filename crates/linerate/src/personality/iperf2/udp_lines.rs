//! The rows of iperf 2.1.8 over UDP: what was sent, and what was received with its jitter and
//! losses. Enhanced rows (`-e`) end with datagrams a second; how they are read and the "network
//! power" of the original are left out.

use linerate_proto::iperf2::{Transit, UdpReport};

use super::lines::{self, RateFormat, RowSpan};

/// Above the rows of a receiver.
const RECEIVED: &str =
    "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams";
const RECEIVED_ENHANCED: &str = "[ ID] Interval            Transfer     Bandwidth        Jitter   \
    Lost/Total  Latency avg/min/max/stdev PPS";
/// Above those of a sender.
const SENT_ENHANCED: &str = "[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS";

/// Datagrams that a receiver counted in a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Received {
    pub(super) bytes: u64,
    pub(super) lost: i64,
    /// Datagrams received and lost together.
    pub(super) total: u64,
    pub(super) out_of_order: u64,
    pub(super) jitter_ms: f64,
    pub(super) transit: Option<Transit>,
}

impl Received {
    /// Counts of a receiver's report.
    pub(super) fn from_report(report: &UdpReport) -> Self {
        Self {
            bytes: report.bytes,
            lost: i64::try_from(report.lost).unwrap_or(i64::MAX),
            total: report.datagrams,
            out_of_order: report.out_of_order,
            jitter_ms: report.jitter_us as f64 / 1e3,
            transit: report.transit,
        }
    }

    /// Counts between two reports on one stream.
    pub(super) fn between(before: &UdpReport, now: &UdpReport) -> Self {
        let transit = None;
        Self {
            bytes: now.bytes.saturating_sub(before.bytes),
            lost: now.lost.cast_signed().saturating_sub(before.lost.cast_signed()),
            total: now.datagrams.saturating_sub(before.datagrams),
            out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
            transit,
            ..Self::from_report(now)
        }
    }

    fn loss_column(&self) -> String {
        let ratio = if self.total == 0 { 0.0 } else { self.lost as f64 / self.total as f64 };
        format!("{}/{} ({}%)", self.lost, self.total, two_digits(ratio * 100.0))
    }
}

/// Format of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) format: RateFormat,
    pub(super) enhanced: bool,
    pub(super) csv: bool,
}

impl Style {
    pub(super) const fn header_line(self, received: bool) -> &'static str {
        match (received, self.enhanced) {
            (true, false) => RECEIVED,
            (true, true) => RECEIVED_ENHANCED,
            (false, false) => lines::HEAD,
            (false, true) => SENT_ENHANCED,
        }
    }

    /// The rows of a receiver: a second one where datagrams came out of order.
    pub(super) fn received(self, id: &str, span: RowSpan, of: &Received) -> Vec<String> {
        let row = lines::transfer_row(id, span, of.bytes, self.format);
        let mut row = format!("{row}  {:6.3} ms {}", of.jitter_ms, of.loss_column());
        if self.enhanced {
            let rate = per_second(of.total.saturating_add_signed(-of.lost), span);
            row.push_str(&format!(" {} ms {rate:.0} pps", latency(of.transit)));
        }
        let mut rows = vec![row];
        if of.out_of_order > 0 {
            let RowSpan { begin_s: begin, end_s: end } = span;
            let count = of.out_of_order;
            let line = format!("{begin:.4}-{end:.4} sec  {count} datagrams received out-of-order");
            rows.push(format!("[{id:>3}] {line}"));
        }
        rows
    }

    /// The row of a sender.
    pub(super) fn sent_row(self, id: &str, span: RowSpan, bytes: u64, datagrams: u64) -> String {
        let row = lines::transfer_row(id, span, bytes, self.format);
        if !self.enhanced {
            return row;
        }
        let writes = format!("{datagrams}/0");
        format!("{row}  {writes:<8} {:4.0} pps", per_second(datagrams, span))
    }
}

/// Datagrams that a receiver's row of `-y C` counts.
pub(super) fn csv_received(row: String, of: &Received) -> String {
    let percent = if of.total == 0 { 0.0 } else { of.lost as f64 * 100.0 / of.total as f64 };
    let (jitter, lost, total, late) = (of.jitter_ms, of.lost, of.total, of.out_of_order);
    format!("{row},{jitter:.3},{lost},{total},{percent:.3},{late}")
}

/// The columns of a sender's row of `-y C`, with no losses: in the row of the whole test no count
/// either.
pub(super) fn csv_sent(row: String, datagrams: Option<u64>) -> String {
    match datagrams {
        Some(count) => format!("{row},0.000,0,{count},0.000,0"),
        None => format!("{row},0.000,0,-1,-0.000,0"),
    }
}

fn per_second(count: u64, span: RowSpan) -> f64 {
    if span.seconds() > 0.0 { count as f64 / span.seconds() } else { 0.0 }
}

/// Mean, least, most and deviation in milliseconds.
fn latency(transit: Option<Transit>) -> String {
    let Some(transit) = transit else { return "-/-/-/-".to_owned() };
    let deviation = transit.deviation_us().unwrap_or(0.0);
    let times = [transit.mean_us, transit.min_us as f64, transit.max_us as f64, deviation];
    times.map(|us| format!("{:.3}", us / 1e3)).join("/")
}

/// Two digits that matter, as `%.2g` has them below a hundred.
fn two_digits(percent: f64) -> String {
    if percent.abs() >= 9.95 {
        return format!("{percent:.0}");
    }
    if percent == 0.0 {
        return "0".to_owned();
    }
    let places = (1.0 - percent.abs().log10().floor()).clamp(1.0, 9.0) as usize;
    let text = format!("{percent:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { format: RateFormat::AUTO, enhanced: false, csv: false };

    #[test]
    fn rows_are_those_of_the_original() {
        // Debian's iperf 2.1.8 -u -b 1M -t 0.5 -P 2, server: 48 and 49 datagrams of 1470 bytes.
        let late = Received {
            bytes: 49 * 1470,
            total: 48,
            out_of_order: 1,
            jitter_ms: 0.004,
            ..Received::default()
        };
        assert_eq!(
            PLAIN.received("1", RowSpan::from_zero(0.5161), &late),
            [
                "[  1] 0.0000-0.5161 sec  70.3 KBytes  1.12 Mbits/sec   0.004 ms 0/48 (0%)",
                "[  1] 0.0000-0.5161 sec  1 datagrams received out-of-order",
            ]
        );
        let lost = Received {
            bytes: 47 * 1470,
            lost: 1,
            total: 48,
            jitter_ms: 0.001,
            ..Received::default()
        };
        assert_eq!(
            PLAIN.received("2", RowSpan::from_zero(0.5048), &lost),
            ["[  2] 0.0000-0.5048 sec  67.5 KBytes  1.09 Mbits/sec   0.001 ms 1/48 (2.1%)"]
        );
        let columns = csv_received("row".to_owned(), &lost);
        assert_eq!(columns, "row,0.001,1,48,2.083,0");
        let sent = PLAIN.sent_row("1", RowSpan::from_zero(0.516), 48 * 1470, 48);
        assert_eq!(sent, "[  1] 0.0000-0.5160 sec  68.9 KBytes  1.09 Mbits/sec");
        assert_eq!(csv_sent("row".to_owned(), Some(19)), "row,0.000,0,19,0.000,0");
        assert_eq!(csv_sent("row".to_owned(), None), "row,0.000,0,-1,-0.000,0");
    }

    #[test]
    fn enhanced_rows_begin_like_those_of_the_original() {
        // iperf 2.1.8 -u -e --trip-times, server: 48 delays, 928 us in all, 1442.666666 squares.
        // It goes on with `48/0(0) pkts 7072`.
        let transit = Transit {
            n: 48,
            min_us: 2,
            max_us: 48,
            mean_us: 928.0 / 48.0,
            squares_us2: 1_442.666_666,
        };
        let received = Received {
            bytes: 48 * 1470,
            total: 48,
            jitter_ms: 0.002,
            transit: Some(transit),
            ..Received::default()
        };
        let style = Style { enhanced: true, ..PLAIN };
        let row = "[  1] 0.0000-0.5160 sec  68.9 KBytes  1.09 Mbits/sec   0.002 ms 0/48 (0%) \
            0.019/0.002/0.048/0.006 ms 93 pps";
        assert_eq!(style.received("1", RowSpan::from_zero(0.516), &received), [row]);
        let sent = style.sent_row("1", RowSpan::from_zero(0.516), 48 * 1470, 49);
        let row = "[  1] 0.0000-0.5160 sec  68.9 KBytes  1.09 Mbits/sec  49/0       95 pps";
        assert_eq!(sent, row);
    }

    #[test]
    fn shares_have_two_digits() {
        // As printf's %.2g, but for 100, where that has 1e+02.
        let cases = [
            (0.0, "0"),
            (2.0833, "2.1"),
            (5.0, "5"),
            (0.0567, "0.057"),
            (12.34, "12"),
            (9.96, "10"),
            (100.0, "100"),
        ];
        for (percent, expected) in cases {
            assert_eq!(two_digits(percent), expected);
        }
    }
}
