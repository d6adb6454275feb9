//! throughput1 of M-Lab: the options of a client's request, and the measurement messages.
//!
//! Source: m-lab/msak at 772318a, `pkg/throughput1/spec`, `model` and `internal/handler`; its
//! client and server as observed with each other. Load messages grow as ndt7's do, from 1 KiB on.

use linerate_core::record::TcpInfo;
use serde::Serialize;

use super::head::value_of;
use super::ndt7::KernelInfo;

/// WebSocket subprotocol of throughput1.
pub const THROUGHPUT1_PROTOCOL: &str = "net.measurementlab.throughput.v1";
/// Bytes of the first load message.
pub const THROUGHPUT1_MESSAGE_BYTES: u64 = 1 << 10;
/// Duration of a test by default, and at most; milliseconds.
const DURATION_MS: (u64, u64) = (5_000, 25_000);
/// Congestion controls that M-Lab's server accepts.
const CONGESTION: [&str; 3] = ["bbr", "cubic", "reno"];

/// Options in the query of a throughput1 client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput1 {
    /// Duration of the load, milliseconds.
    pub duration_ms: u64,
    /// Amount of bytes that ends the test earlier.
    pub bytes: Option<u64>,
    /// Congestion control that the server is to use.
    pub congestion: Option<&'static str>,
}

impl Throughput1 {
    /// Parses a query; `None` where it is not one of throughput1.
    pub(super) fn from_query(query: &str) -> Option<Self> {
        let option = |name| value_of(query, name).filter(|value| !value.is_empty());
        // The measurement's name and its number of streams must be there, and are not used.
        option("mid")?;
        option("streams")?;
        let number = |name| option(name).map(str::parse::<u64>).transpose().ok();
        let duration_ms = number("duration")?.unwrap_or(DURATION_MS.0).min(DURATION_MS.1);
        let bytes = number("bytes")?.filter(|bytes| *bytes > 0);
        let known = |name: &str| CONGESTION.into_iter().find(|known| *known == name);
        let congestion = match option("cc") {
            Some(name) => Some(known(name)?),
            None => None,
        };
        Some(Self { duration_ms, bytes, congestion })
    }
}

/// Bytes that an end sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ByteCounters {
    /// Bytes sent since the handshake.
    pub bytes_sent: u64,
    /// Bytes received since the handshake.
    pub bytes_received: u64,
}

/// Bytes of the messages' payload, and with their frame heads.
#[derive(Clone, Copy, Debug)]
pub struct LayerCounters {
    /// Payload of the WebSocket messages.
    pub application: ByteCounters,
    /// Payload and frame heads of the WebSocket messages.
    pub network: ByteCounters,
}

/// Facts of the connection that the server sends once, with its first measurement.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionFacts<'a> {
    /// Congestion control in use.
    #[serde(rename = "CC", skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Unique name of the test.
    #[serde(rename = "UUID")]
    pub uuid: &'a str,
    /// Address and port of the server.
    #[serde(rename = "LocalAddr")]
    pub local: &'a str,
    /// Address and port of the client.
    #[serde(rename = "RemoteAddr")]
    pub remote: &'a str,
}

/// A measurement message of the server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct WireMeasurement<'a> {
    #[serde(flatten)]
    who: Option<ConnectionFacts<'a>>,
    /// Payload of the WebSocket messages.
    application: ByteCounters,
    /// Payload and frame heads of the WebSocket messages.
    network: ByteCounters,
    /// Time since the handshake, µs.
    elapsed_time: u64,
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    tcp_info: Option<KernelInfo>,
}

impl<'a> WireMeasurement<'a> {
    /// Measurement with the counters read now, `elapsed_time` µs after the handshake.
    pub fn new(
        who: Option<ConnectionFacts<'a>>,
        counters: LayerCounters,
        elapsed_time: u64,
        info: Option<&TcpInfo>,
    ) -> Self {
        let LayerCounters { application, network } = counters;
        let tcp_info = info.map(|info| KernelInfo::from_tcp_info(info, elapsed_time));
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
        assert_eq!(Throughput1::from_query(ASKED), Some(all));
        let usual = Throughput1 { duration_ms: 5000, bytes: None, congestion: None };
        for query in ["mid=a&streams=2", "mid=a&streams=2&bytes=0&duration=&cc="] {
            assert_eq!(Throughput1::from_query(query), Some(usual), "{query}");
        }
        let longest = Throughput1::from_query("mid=a&streams=2&duration=3600000")
            .map(|test| test.duration_ms);
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
            assert_eq!(Throughput1::from_query(query), None, "{query}");
        }
    }

    #[test]
    fn names_are_those_of_msaks_server_and_the_ends_are_told_once() {
        let info =
            TcpInfo { rtt_us: Some(513), bytes_received: Some(605_060), ..TcpInfo::default() };
        let counts = |sent, received| ByteCounters { bytes_sent: sent, bytes_received: received };
        let both =
            LayerCounters { application: counts(1122, 589_824), network: counts(1126, 604_528) };
        let congestion = Some("reno".to_owned());
        let who = ConnectionFacts { congestion, uuid: "u", local: "127.0.0.1:8080", remote: "a:1" };
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
