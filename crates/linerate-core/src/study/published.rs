//! Figures that were published before, read from the tables in `studies/data`.

use serde::Deserialize;

use super::PublishedAs;

/// The ping and TCP figures of one published study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedFigures {
    /// Round-trip times by payload.
    pub ping: Vec<PublishedPing>,
    /// Throughput by window.
    pub tcp: Vec<PublishedTcp>,
}

/// One published ping figure; null where the study printed none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PublishedPing {
    /// Identifier of the topology in that study.
    pub test: String,
    /// Name of the topology in that study.
    pub topology: String,
    /// Class of the topology in that study.
    pub class: String,
    /// Switches on the way.
    pub l2_hops: Option<u32>,
    /// Routers on the way.
    pub l3_hops: Option<u32>,
    /// Ping payload.
    pub payload_bytes: u32,
    /// Mean round-trip time as printed.
    pub rtt_avg_ms: Option<f64>,
    /// Pings per second as printed: 1000 over the mean, cut to a whole number.
    pub pings_per_s: Option<f64>,
}

/// One published TCP figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PublishedTcp {
    /// Identifier of the topology in that study.
    pub test: String,
    /// Name of the topology in that study.
    pub topology: String,
    /// Class of the topology in that study.
    pub class: String,
    /// Switches on the way.
    pub l2_hops: Option<u32>,
    /// Routers on the way.
    pub l3_hops: Option<u32>,
    /// MTU of the links.
    pub mtu_bytes: u32,
    /// Receive window asked for.
    pub window_bytes: u64,
    /// Best of several runs, as the tool of that study printed it.
    pub throughput_mbit_s: Option<f64>,
}

/// A published table that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read published figures: {0}")]
pub struct PublishedError(#[from] csv::Error);

impl PublishedFigures {
    /// Reads the two tables of a study; either may be empty text.
    /// # Errors
    /// [`PublishedError`] with the line that does not fit.
    pub fn from_csv(ping: &str, tcp: &str) -> Result<Self, PublishedError> {
        Ok(Self { ping: rows(ping)?, tcp: rows(tcp)? })
    }

    /// The ping row that belongs beside a topology's payload size. The tables of 2000 do not vary
    /// the MTU of pings, so `mtu_bytes` does not select here.
    pub fn ping_row(&self, of: &PublishedAs, payload_bytes: u32) -> Option<&PublishedPing> {
        self.ping.iter().find(|row| row.test == of.test && row.payload_bytes == payload_bytes)
    }

    /// The TCP row that belongs beside a topology's window.
    pub fn tcp_row(&self, of: &PublishedAs, window_bytes: u64) -> Option<&PublishedTcp> {
        self.tcp
            .iter()
            .filter(|row| of.mtu_bytes.is_none_or(|mtu| mtu == row.mtu_bytes))
            .find(|row| row.test == of.test && row.window_bytes == window_bytes)
    }
}

fn rows<T: serde::de::DeserializeOwned>(text: &str) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = include_str!("../../../../studies/data/pren-2000-ping.csv");
    const TCP: &str = include_str!("../../../../studies/data/pren-2000-ttcp.csv");

    fn figures() -> PublishedFigures {
        PublishedFigures::from_csv(PING, TCP).expect("the shipped tables are sound")
    }

    fn of(test: &str, mtu_bytes: Option<u32>) -> PublishedAs {
        PublishedAs { test: test.to_owned(), mtu_bytes }
    }

    #[test]
    fn tcp_rows_are_those_of_the_printed_tables() {
        // PREN study 2000, TCP tables: test, MTU, window, best of several runs in Mbit/s.
        let printed: &[(&str, Option<u32>, u64, f64)] = &[
            ("c.1", Some(1500), 131_072, 480.0),
            ("c.1", Some(16_384), 16_384, 1302.0),
            ("c.2", None, 32_768, 422.0),
            ("c.3", None, 65_536, 415.0),
            ("i.1", None, 131_072, 258.0),
            ("e.2", None, 16_384, 93.0),
            ("e.2", None, 131_072, 122.0),
        ];
        for &(test, mtu_bytes, window, expected) in printed {
            let figures = figures();
            let row = figures.tcp_row(&of(test, mtu_bytes), window).expect("a printed row");
            assert_eq!(row.throughput_mbit_s, Some(expected), "{test} {window}");
        }
    }

    #[test]
    fn ping_rows_are_those_of_the_printed_tables() {
        // PREN study 2000, ping tables: test, payload, mean in ms, pings per second.
        let printed: &[(&str, u32, f64, f64)] = &[
            ("c.1", 56, 0.011, 90_909.0),
            ("c.2", 1500, 0.157, 6369.0),
            ("c.3", 1024, 0.359, 2785.0),
            ("e.2", 56, 0.667, 1499.0),
            ("e.2", 1500, 1.590, 628.0),
        ];
        for &(test, payload, avg_ms, pings) in printed {
            let figures = figures();
            let row = figures.ping_row(&of(test, None), payload).expect("a printed row");
            assert_eq!((row.rtt_avg_ms, row.pings_per_s), (Some(avg_ms), Some(pings)), "{test}");
        }
    }

    #[test]
    fn a_figure_that_was_not_printed_is_absent_and_not_zero() {
        let figures = figures();
        let row = figures.ping_row(&of("c.3", None), 1500).expect("the row has a place");
        assert_eq!((row.rtt_avg_ms, row.pings_per_s), (None, None));
        let row = figures.ping_row(&of("e.1", None), 56).expect("a printed row");
        assert_eq!((row.l2_hops, row.l3_hops), (None, None));
        assert_eq!(figures.ping_row(&of("c.2", None), 57), None);
        assert_eq!(figures.tcp_row(&of("c.2", Some(9000)), 32_768), None);
    }

    #[test]
    fn a_spoilt_table_is_refused_with_its_line() {
        let spoilt = PING.replacen("0.011", "fast", 1);
        let error = PublishedFigures::from_csv(&spoilt, TCP).expect_err("not a number");
        assert!(error.to_string().contains("line: 2"), "{error}");
    }
}
