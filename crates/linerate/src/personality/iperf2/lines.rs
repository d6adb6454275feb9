//! The lines of iperf 2.1.8. Amounts of bytes are powers of 1024, rates in bits powers of 1000.

/// A ruler above and below the head.
pub(super) const RULER: &str = "------------------------------------------------------------";
/// Line above the rows.
pub(super) const HEAD: &str = "[ ID] Interval       Transfer     Bandwidth";

/// Unit and scale of rates by `-f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateFormat {
    /// Powers of the unit; none to fit each figure.
    power: Option<i32>,
    bits: bool,
}

impl Default for RateFormat {
    fn default() -> Self {
        Self::AUTO
    }
}

impl RateFormat {
    /// A unit that fits each figure, in bits.
    pub(super) const AUTO: Self = Self { power: None, bits: true };

    /// Format for the letter that `-f` takes.
    pub(super) fn from_letter(letter: char) -> Option<Self> {
        let power = match letter.to_ascii_lowercase() {
            'a' => None,
            'b' => Some(0),
            'k' => Some(1),
            'm' => Some(2),
            'g' => Some(3),
            _ => return None,
        };
        Some(Self { power, bits: letter.is_lowercase() })
    }

    fn transfer(self, bytes: f64) -> String {
        scaled(bytes, self.power, 1024.0, "Byte")
    }

    fn rate_text(self, bytes_per_s: f64) -> String {
        match self.bits {
            true => scaled(bytes_per_s * 8.0, self.power, 1000.0, "bit"),
            false => scaled(bytes_per_s, self.power, 1024.0, "Byte"),
        }
    }

    /// A buffer's size, as the head has it.
    pub(super) fn size_text(bytes: u64) -> String {
        scaled(bytes as f64, None, 1024.0, "Byte")
    }
}

/// Three digits and a unit, as iperf's own formatter has them.
fn scaled(value: f64, power: Option<i32>, base: f64, unit: &str) -> String {
    const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];
    let fits = || (0..4).find(|power| value < base.powi(power + 1)).unwrap_or(4);
    let power = power.unwrap_or_else(fits);
    let value = value / base.powi(power);
    let digits = match value {
        value if value < 9.995 => format!("{value:4.2}"),
        value if value < 99.95 => format!("{value:4.1}"),
        _ => format!("{value:4.0}"),
    };
    let prefix = usize::try_from(power).ok().and_then(|power| PREFIXES.get(power));
    format!("{digits} {}{unit}", prefix.unwrap_or(&""))
}

/// Begin and end of a row, in seconds since the start of the test.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSpan {
    pub(super) begin_s: f64,
    pub(super) end_s: f64,
}

impl RowSpan {
    /// The span of a whole test.
    pub(super) const fn from_zero(end_s: f64) -> Self {
        Self { begin_s: 0.0, end_s }
    }

    pub(super) fn seconds(self) -> f64 {
        self.end_s - self.begin_s
    }
}

/// One row: `[  1] 0.0000-1.0012 sec  3.77 GBytes  32.4 Gbits/sec`.
pub(super) fn transfer_row(id: &str, span: RowSpan, bytes: u64, format: RateFormat) -> String {
    let seconds = span.seconds();
    let rate = if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
    let RowSpan { begin_s, end_s } = span;
    format!(
        "[{id:>3}] {begin_s:.4}-{end_s:.4} sec  {}s  {}s/sec",
        format.transfer(bytes as f64),
        format.rate_text(rate)
    )
}

/// The local date at the beginning of a row of `-y C` that ends now.
pub(super) fn start_date(span: RowSpan) -> String {
    let now = linerate_sys::clock::wall_time();
    let ahead_ms = linerate_sys::local_time::offset_seconds(now) * 1000;
    let span_ms = (span.seconds() * 1e3) as u64;
    let begin_ms = now.unix_millis().saturating_sub(span_ms).saturating_add_signed(ahead_ms);
    let local = linerate_core::time::WallTime::from_unix_nanos(u128::from(begin_ms) * 1_000_000);
    local.format_utc("%Y%m%d%H%M%S").unwrap_or_default()
}

/// A row of `-y C`: the date, bytes and bit/s with the addresses, the sender's first.
pub(super) fn csv_row(
    date: &str,
    id: u32,
    sender: &str,
    receiver: &str,
    span: RowSpan,
    bytes: u64,
) -> String {
    let both = |address: &str| match address.rsplit_once(':') {
        Some((host, port)) => format!("{},{port}", host.trim_matches(['[', ']'])),
        None => format!("{address},0"),
    };
    let seconds = span.seconds();
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let RowSpan { begin_s, end_s } = span;
    // Some rows of iperf 2.1.8 have the epoch's first second for a date; 2.0 and 2.2 the day's.
    format!(
        "{date},{},{},{id},{begin_s:.1}-{end_s:.1},{bytes},{rate:.0}",
        both(sender),
        both(receiver)
    )
}

/// The line of a stream that is there.
pub(super) fn connected(id: &str, local: &str, remote: &str, how: &str) -> String {
    let both = |address: &str| match address.rsplit_once(':') {
        Some((host, port)) => format!("{} port {port}", host.trim_matches(['[', ']'])),
        None => address.to_owned(),
    };
    let how = if how.is_empty() { String::new() } else { format!(" ({how})") };
    format!("[{id:>3}] local {} connected with {}{how}", both(local), both(remote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_original() {
        // Debian's iperf 2.1.8 -t1 -i 0.5 printed these rows for the bytes and spans of its own
        // -y C: 60 bytes in 0.6009 s, 16 MiB in 1.8031 s, 768 KiB in 1.0659 s.
        let cases = [
            (60, 0.6009, "[  1] 0.0000-0.6009 sec  60.0 Bytes   799 bits/sec"),
            (16_777_216, 1.8031, "[  1] 0.0000-1.8031 sec  16.0 MBytes  74.4 Mbits/sec"),
            (786_432, 1.0659, "[  1] 0.0000-1.0659 sec   768 KBytes  5.90 Mbits/sec"),
            (100_000, 0.0003, "[  1] 0.0000-0.0003 sec  97.7 KBytes  2.67 Gbits/sec"),
        ];
        for (bytes, end, expected) in cases {
            assert_eq!(
                transfer_row("1", RowSpan::from_zero(end), bytes, RateFormat::default()),
                expected
            );
        }
    }

    #[test]
    fn a_format_fixes_the_unit_of_both_columns() {
        // 2564 MBytes in 1.0134 s are 21224 Mbit/s: printed so by -f m.
        let format = RateFormat::from_letter('m').expect("a unit");
        let line = transfer_row("1", RowSpan::from_zero(1.0134), 2564 << 20, format);
        assert_eq!(line, "[  1] 0.0000-1.0134 sec  2564 MBytes  21224 Mbits/sec");
        let format = RateFormat::from_letter('M').expect("a unit");
        assert!(
            transfer_row("1", RowSpan::from_zero(2.0), 20 << 20, format)
                .ends_with("20.0 MBytes  10.0 MBytes/sec")
        );
        assert_eq!(RateFormat::from_letter('z'), None);
    }

    #[test]
    fn dates_have_fourteen_digits_of_this_century() {
        let (now, hour_ago) =
            (start_date(RowSpan::from_zero(0.0)), start_date(RowSpan::from_zero(3600.0)));
        assert_eq!((now.len(), hour_ago.len()), (14, 14));
        assert!(hour_ago < now && now.as_str() > "2024", "{hour_ago} {now}");
    }

    #[test]
    fn comma_separated_rows_have_the_columns_of_the_original() {
        let (sender, receiver) = ("127.0.0.1:55434", "127.0.0.1:7799");
        let line =
            csv_row("20221103221147", 1, sender, receiver, RowSpan::from_zero(1.0), 2_711_224_380);
        assert_eq!(
            line,
            "20221103221147,127.0.0.1,55434,127.0.0.1,7799,1,0.0-1.0,2711224380,21689795040"
        );
        let line = connected("1", "[::1]:1", "[::1]:2", "reverse");
        assert_eq!(line, "[  1] local ::1 port 1 connected with ::1 port 2 (reverse)");
    }
}
