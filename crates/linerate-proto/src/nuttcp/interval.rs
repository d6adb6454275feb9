//! Interval lines of a receiver, written and parsed: MB is 2^20 bytes, Mbps 10^6 bit/s. Over UDP
//! they state the datagrams announced and not received so far; a late datagram counts as lost in
//! one line and is subtracted in the next, which can be negative.

const MB: f64 = 1_048_576.0;

/// Results of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NuttcpInterval {
    /// Payload in MB of 2^20 bytes.
    pub megabytes: f64,
    /// Length of the interval in seconds.
    pub seconds: f64,
    /// Rate in Mbit/s of 10^6.
    pub mbps: f64,
    /// Segments that the transmitter retransmitted, where it is known.
    pub retransmits: Option<u64>,
    /// UDP: datagrams lost, and datagrams announced by the transmitter.
    pub datagrams: Option<(i64, i64)>,
}

impl NuttcpInterval {
    /// An interval of `seconds` with `bytes` of payload.
    pub fn from_bytes(bytes: u64, seconds: f64) -> Self {
        let mbps = if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 };
        Self { megabytes: bytes as f64 / MB, seconds, mbps, ..Self::default() }
    }

    /// The line without its newline, for people or, with `parse`, for programs (`-fparse`).
    pub fn to_line(&self, parse: bool) -> String {
        let Self { megabytes, seconds, mbps, .. } = self;
        let mut line = if parse {
            format!("megabytes={megabytes:.4} real_sec={seconds:.2} rate_Mbps={mbps:.4}")
        } else {
            format!("{megabytes:10.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps")
        };
        if let Some(count) = self.retransmits {
            line += &match parse {
                true => format!(" retrans={count}"),
                false => format!(" {count:5} retrans"),
            };
        }
        if let Some((lost, all)) = self.datagrams {
            let percent = if all > 0 { lost as f64 * 100.0 / all as f64 } else { 0.0 };
            line += &match parse {
                true => format!(" drop={lost} pkt={all} data_loss={percent:.5}"),
                false => format!(" {lost:5} / {all:5} ~drop/pkt {percent:5.2} ~%loss"),
            };
        }
        line
    }

    /// Parses an interval line of either form; `None` for any other line.
    pub fn parse(line: &str) -> Option<Self> {
        // A line of the summary starts with the name of its end.
        if line.starts_with("nuttcp-") {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [megabytes, "MB", "/", seconds, "sec", "=", mbps, "Mbps", rest @ ..] => {
                let mut interval = Self::figures(megabytes, seconds, mbps)?;
                match rest {
                    [lost, "/", all, "~drop/pkt", ..] => {
                        interval.datagrams = lost.parse().ok().zip(all.parse().ok());
                    }
                    [count, "retrans", ..] => interval.retransmits = count.parse().ok(),
                    _ => {}
                }
                Some(interval)
            }
            _ => Self::parse_pairs(&words),
        }
    }

    fn parse_pairs(words: &[&str]) -> Option<Self> {
        let value = |name: &str| {
            let mut pairs = words.iter().filter_map(|word| word.split_once('='));
            pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
        };
        let figures = [value("megabytes")?, value("real_sec")?, value("rate_Mbps")?];
        let [megabytes, seconds, mbps] = figures;
        let whole = |name| value(name)?.parse().ok();
        Some(Self {
            retransmits: value("retrans").and_then(|count| count.parse().ok()),
            datagrams: whole("drop").zip(whole("pkt")),
            ..Self::figures(megabytes, seconds, mbps)?
        })
    }

    fn figures(megabytes: &str, seconds: &str, mbps: &str) -> Option<Self> {
        let amount = |word: &str| word.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
        Some(Self {
            megabytes: amount(megabytes)?,
            seconds: amount(seconds)?,
            mbps: amount(mbps)?,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 6.1.2: TCP with `-i.5`, UDP with `-R5m -i.25`, both with `-fparse`.
    const RECORDED: [(&str, bool); 4] = [
        (" 1458.3125 MB /   0.50 sec = 24391.0554 Mbps     0 retrans", false),
        ("    0.1406 MB /   0.25 sec =    4.6511 Mbps     0 /    18 ~drop/pkt  0.00 ~%loss", false),
        ("megabytes=142.5000 real_sec=0.50 rate_Mbps=2390.6098 retrans=0", true),
        ("megabytes=0.2891 real_sec=0.50 rate_Mbps=4.8493 drop=0 pkt=37 data_loss=0.00000", true),
    ];

    #[test]
    fn recorded_lines_are_read_and_written_to_the_byte() {
        for (line, parse) in RECORDED {
            let interval = NuttcpInterval::parse(line).expect(line);
            assert_eq!(interval.to_line(parse), line);
        }
        let figures = |line| NuttcpInterval::parse(line).expect("an interval");
        assert_eq!(figures(RECORDED[1].0).datagrams, Some((0, 18)));
        assert_eq!(figures(RECORDED[0].0).retransmits, Some(0));
        assert!((figures(RECORDED[3].0).mbps - 4.8493).abs() < 1e-12);
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "nuttcp-r: 0.0095 MB in 1.00 real seconds = 9.72 KB/sec = 0.0797 Mbps",
            "nuttcp-r: megabytes=1.0 real_sec=1.0 rate_Mbps=1.0",
            "DONE",
            "",
            "nan MB / 1 sec = 1 Mbps",
            "-1 MB / 1 sec = 1 Mbps",
        ] {
            assert_eq!(NuttcpInterval::parse(line), None, "{line}");
        }
    }

    #[test]
    fn figures_are_those_of_the_bytes_and_the_time() {
        // 18 datagrams of 8192 bytes: 147,456 × 8 / 0.25 = 4.718592 Mbit/s; 2 of 20 are 10 %.
        let interval = NuttcpInterval {
            datagrams: Some((2, 20)),
            ..NuttcpInterval::from_bytes(147_456, 0.25)
        };
        let line =
            "    0.1406 MB /   0.25 sec =    4.7186 Mbps     2 /    20 ~drop/pkt 10.00 ~%loss";
        assert_eq!(interval.to_line(false), line);
        assert!((NuttcpInterval::from_bytes(1, 0.0).mbps).abs() < 1e-12);
    }
}
