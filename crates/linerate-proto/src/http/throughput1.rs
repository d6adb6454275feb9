//! throughput1 of M-Lab: what a client asks for, and what either end tells the other.
//!
//! Source: m-lab/msak at 772318a, `pkg/throughput1/spec`, `model` and `internal/handler`; its
//! client and server as observed with each other. Messages of load grow as ndt7's, from 1 KiB on.

use linerate_core::record::TcpInfo;
use serde::Serialize;

use super::head::value_of;
use super::ndt7::KernelInfo;

/// The subprotocol.
pub const THROUGHPUT1_PROTOCOL: &str = "net.measurementlab.throughput.v1";
/// The first message of load, bytes.
pub const THROUGHPUT1_MESSAGE_BYTES: u64 = 1 << 10;
/// A test lasts so long where its client does not say, and at most; milliseconds.
const DURATION_MS: (u64, u64) = (5_000, 25_000);
/// Names of congestion control that the server of M-Lab takes.
const CONGESTION: [&str; 3] = ["bbr", "cubic", "reno"];

/// What a client of throughput1 asks for in its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput1 {
    /// Time of the load, milliseconds.
    pub duration_ms: u64,
    /// It ends after so many bytes, too.
    pub bytes: Option<u64>,
    /// Congestion control of the server's end.
    pub congestion: Option<&'static str>,
}

impl Throughput1 {
    /// Reads a query; none where it is not one of such a test.
    pub(super) fn of(query: &str) -> Option<Self> {
        let said = |name| value_of(query, name).filter(|value| !value.is_empty());
        // Who measures, and by how many streams: neither changes anything here.
        said("mid")?;
        said("streams")?;
        let number = |name| said(name).map(str::parse::<u64>).transpose().ok();
        let duration_ms = number("duration")?.unwrap_or(DURATION_MS.0).min(DURATION_MS.1);
        let bytes = number("bytes")?.filter(|bytes| *bytes > 0);
        let known = |name: &str| CONGESTION.into_iter().find(|known| *known == name);
        let congestion = match said("cc") {
            Some(name) => Some(known(name)?),
            None => None,
        };
        Some(Self { duration_ms, bytes, congestion })
    }
}

/// Bytes that an end sent and took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ByteCounters {
    /// Bytes.
    pub bytes_sent: u64,
    /// Bytes.
    pub bytes_received: u64,
}

/// What the server tells once, with its first measurement.
#[derive(Clone, Debug, Serialize)]
pub struct WhoMeasures<'a> {
    /// Congestion control in use.
    #[serde(rename = "CC", skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The test.
    #[serde(rename = "UUID")]
    pub uuid: &'a str,
    /// Its own address and port.
    #[serde(rename = "LocalAddr")]
    pub local: &'a str,
    /// The client's.
    #[serde(rename = "RemoteAddr")]
    pub remote: &'a str,
}

/// A measurement of the server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct WireMeasurement<'a> {
    #[serde(flatten)]
    who: Option<WhoMeasures<'a>>,
    /// What messages carried.
    application: ByteCounters,
    /// The same with their frames.
    network: ByteCounters,
    /// Since the handshake, µs.
    elapsed_time: u64,
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    tcp_info: Option<KernelInfo>,
}

impl<'a> WireMeasurement<'a> {
    /// Of now.
    pub fn new(
        who: Option<WhoMeasures<'a>>,
        (application, network): (ByteCounters, ByteCounters),
        elapsed_time: u64,
        info: Option<&TcpInfo>,
    ) -> Self {
        let tcp_info = info.map(|info| KernelInfo::of(info, elapsed_time));
        Self { who, application, network, elapsed_time, tcp_info }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As msak-client of that commit asks, but for the identifier.
    const ASKED: &str = "bytes=3000000&cc=reno&client_arch=amd64&client_library_name=msak-client&\
        client_library_version=unspecified&client_name=msak-client-go&client_os=linux&\
        client_version=unspecified&duration=1500&mid=d0c265fa-6f60-49fa-a35e-be271f23d4d1&\
        streams=1";

    #[test]
    fn a_query_says_how_long_and_how_much() {
        let reno = Some("reno");
        let all = Throughput1 { duration_ms: 1500, bytes: Some(3_000_000), congestion: reno };
        assert_eq!(Throughput1::of(ASKED), Some(all));
        let usual = Throughput1 { duration_ms: 5000, bytes: None, congestion: None };
        for query in ["mid=a&streams=2", "mid=a&streams=2&bytes=0&duration=&cc="] {
            assert_eq!(Throughput1::of(query), Some(usual), "{query}");
        }
        let longest = Throughput1::of("mid=a&streams=2&duration=3600000").map(|it| it.duration_ms);
        assert_eq!(longest, Some(25_000));
    }

    #[test]
    fn what_msaks_server_refuses_is_none() {
        for query in [
            "",
            "streams=2",
            "mid=a",
            "mid=&streams=2",
            "mid=a&streams=2&duration=5s",
            "mid=a&streams=2&duration=-1",
            "mid=a&streams=2&bytes=many",
            "mid=a&streams=2&cc=vegas",
        ] {
            assert_eq!(Throughput1::of(query), None, "{query}");
        }
    }

    #[test]
    fn names_are_those_of_msaks_server_and_the_ends_are_told_once() {
        let info =
            TcpInfo { rtt_us: Some(513), bytes_received: Some(605_060), ..TcpInfo::default() };
        let counts = |sent, received| ByteCounters { bytes_sent: sent, bytes_received: received };
        let both = (counts(1122, 589_824), counts(1126, 604_528));
        let congestion = Some("reno".to_owned());
        let who = WhoMeasures { congestion, uuid: "u", local: "127.0.0.1:8080", remote: "a:1" };
        let first = WireMeasurement::new(Some(who), both, 367_155, Some(&info));
        let first = linerate_core::tree::to_value(first).expect("JSON");
        for name in ["CC", "UUID", "LocalAddr", "RemoteAddr"] {
            assert!(first[name].is_string(), "{name}: {first}");
        }
        let next =
            linerate_core::tree::to_value(WireMeasurement::new(None, both, 367_155, Some(&info)));
        let next = next.expect("JSON");
        // As recorded, less what it is left out of TCPInfo here.
        assert_eq!(
            next["Application"],
            serde_json::json!({"BytesSent": 1122, "BytesReceived": 589_824})
        );
        assert_eq!(next["Network"]["BytesReceived"], 604_528);
        assert_eq!((&next["ElapsedTime"], &next["TCPInfo"]["RTT"]), (&367_155.into(), &513.into()));
        assert_eq!(next["TCPInfo"]["BytesReceived"], 605_060);
        assert!(next.get("CC").is_none() && next.get("UUID").is_none());
    }
}
