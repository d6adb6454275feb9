//! Figures that were published before, read from the tables in `studies/data`.

use serde::Deserialize;

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
}

fn rows<T: serde::de::DeserializeOwned>(text: &str) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}
