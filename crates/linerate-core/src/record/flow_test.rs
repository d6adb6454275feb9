//! A flow test as both of its ends have to know it: who sends, how much, until when, and how.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Direction, Finish, Means, ReceiveWith, SearchPlan, SendWith, TcpDirections};
use crate::units::{BitRate, print_span};

/// Smallest payload of a datagram: the number and time that it carries (spec/udp-throughput.md).
const DATAGRAM_BYTES_MIN: u64 = 16;
/// Largest payload of a datagram (65,535 less the headers of IPv4 and UDP; RFC 768, RFC 791).
const DATAGRAM_BYTES_MAX: u64 = 65_507;
const DAY_NS: u64 = 86_400_000_000_000;
/// Processors that a test may name for one end.
const CPUS_MAX: usize = 1024;

/// A TCP test, as both of its ends have to know it: what a plan holds and a client asks a server
/// for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpTest {
    /// Directions of the data.
    pub directions: TcpDirections,
    /// Connections in each direction, 1 … 128.
    pub streams: u16,
    /// Time or amount of data that ends the test.
    pub finish: Finish,
    /// Span at the start that is left out of the result.
    pub omit_ns: u64,
    /// Length of a reporting interval, at least 10 ms.
    pub interval_ns: u64,
    /// Bytes given to one write(), 1 … 16 MiB.
    pub buffer_bytes: u32,
    /// Socket buffer to ask for at both ends (SO_SNDBUF and SO_RCVBUF); null leaves the kernel's
    /// autotuning on.
    pub window_bytes: Option<u64>,
    /// Maximum segment size to ask for.
    pub mss_bytes: Option<u32>,
    /// Set TCP_NODELAY.
    pub nodelay: bool,
    /// Congestion control to ask for at the sending end.
    pub congestion_control: Option<String>,
    /// Pace of each stream in payload bit/s; null is as fast as possible.
    #[serde(rename = "pace_bps")]
    pub pace: Option<BitRate>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// Code points that the streams of each direction have in turn, in place of `dscp`; empty
    /// where all have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscps: Vec<u8>,
    /// Send from the page cache (sendfile) instead of copying: as `means.send_with` sendfile.
    pub zero_copy: bool,
    /// Bytes that one read() may take; null is the program's own choice, which wakes up rarely.
    #[serde(default)]
    pub read_bytes: Option<u32>,
    /// Pace at which each receiving stream is read, in payload bit/s: an application slower than
    /// the path; null is as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "read_pace_bps")]
    pub read_pace: Option<BitRate>,
    /// Payload bit/s of a flow that goes against the test's direction while it runs; null is none.
    #[serde(default, rename = "background_bps")]
    pub background: Option<BitRate>,
    /// Streams go to a port of the server that it opens for this test alone, and not to that of the
    /// control connection.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub other_port: bool,
    /// Calls and cores with which both ends move data; absent is by default.
    #[serde(default, skip_serializing_if = "Means::is_default")]
    pub means: Means,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_usual(other_port: &bool) -> bool {
    !*other_port
}

/// The plainest test: one stream to the server for ten seconds, by the kernel's defaults.
impl Default for TcpTest {
    fn default() -> Self {
        Self {
            directions: TcpDirections::Up,
            streams: 1,
            finish: Finish::TimeNs(10_000_000_000),
            omit_ns: 0,
            interval_ns: 1_000_000_000,
            buffer_bytes: 512 << 10,
            window_bytes: None,
            mss_bytes: None,
            nodelay: false,
            congestion_control: None,
            pace: None,
            dscp: None,
            dscps: Vec::new(),
            zero_copy: false,
            read_bytes: None,
            read_pace: None,
            background: None,
            other_port: false,
            means: Means::default(),
        }
    }
}

/// A UDP test, as both of its ends have to know it. `Size` is `Option<u32>` in a plan, until the
/// path to the server tells how long a datagram may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpTest<Size = u32> {
    /// Directions of the data.
    pub directions: TcpDirections,
    /// Streams in each direction, 1 … 128.
    pub streams: u16,
    /// Time or amount of data that ends the test. Bytes are rounded up to whole datagrams; a buffer
    /// is a datagram.
    pub finish: Finish,
    /// Datagrams sent within this span at the start are left out of the result.
    pub omit_ns: u64,
    /// Length of a reporting interval, at least 10 ms.
    pub interval_ns: u64,
    /// Payload of a datagram, 16 … 65507; null until the address is known, then the most that a
    /// packet of 1500 bytes carries, or the most that one of the route does where that is less.
    pub size_bytes: Size,
    /// Pace of each stream in payload bit/s; null is as fast as possible.
    #[serde(rename = "pace_bps")]
    pub pace: Option<BitRate>,
    /// Socket buffers to ask for at both ends; null is as much as the host gives, up to 32 MiB, for
    /// a receiver and the kernel's default for a sender.
    pub window_bytes: Option<u64>,
    /// Differentiated services code point, 0 … 63.
    pub dscp: Option<u8>,
    /// Datagrams may be handed to the kernel, and taken from it, several in one buffer
    /// (UDP_SEGMENT, UDP_GRO).
    pub joined: bool,
    /// Search for the capacity at the IP layer instead of keeping a pace, which is null in a plan
    /// then, and the pace to begin with in a request; one stream, one direction, and `interval_ns`
    /// is the length of a sub-interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// The receiver takes each alone all the same: what is sent joined is split at the latest
    /// in the receiver's kernel. Older ends do not know it.
    #[serde(default)]
    pub taken_singly: bool,
}

/// One stream to the server at 1 Mbit/s for ten seconds.
impl Default for UdpTest<Option<u32>> {
    fn default() -> Self {
        Self {
            directions: TcpDirections::Up,
            streams: 1,
            finish: Finish::TimeNs(10_000_000_000),
            omit_ns: 0,
            interval_ns: 1_000_000_000,
            size_bytes: None,
            pace: Some(BitRate::from_bits_per_sec(1_000_000)),
            window_bytes: None,
            dscp: None,
            joined: true,
            search: None,
            taken_singly: false,
        }
    }
}

impl<Size> UdpTest<Size> {
    /// The same test with datagrams of this size.
    pub fn with_size<Other>(self, size_bytes: Other) -> UdpTest<Other> {
        UdpTest {
            directions: self.directions,
            streams: self.streams,
            finish: self.finish,
            omit_ns: self.omit_ns,
            interval_ns: self.interval_ns,
            size_bytes,
            pace: self.pace,
            window_bytes: self.window_bytes,
            dscp: self.dscp,
            joined: self.joined,
            search: self.search,
            taken_singly: self.taken_singly,
        }
    }
}

/// A test that none can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} of {value} is outside {bounds}")]
pub struct TestError {
    /// Name of the field.
    pub field: &'static str,
    /// The value that was asked for, with its unit.
    pub value: String,
    /// The values that are allowed.
    pub bounds: &'static str,
}

impl TcpTest {
    /// Holds every field against what a test can be; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), TestError> {
        within("streams", self.streams.into(), 1, 128, "1 … 128")?;
        within("buffer", self.buffer_bytes.into(), 1, 16 << 20, "1 byte … 16 MiB")?;
        within("interval", self.interval_ns, 10_000_000, DAY_NS, "10 ms … 1 day")?;
        within("omitted span", self.omit_ns, 0, 600_000_000_000, "0 … 600 s")?;
        within("window", self.window_bytes.unwrap_or(1), 1, 2 << 30, "1 byte … 2 GiB")?;
        within("segment size", self.mss_bytes.unwrap_or(536).into(), 48, 65_495, "48 … 65495")?;
        within("code points", self.dscps.len() as u64, 0, 128, "at most 128")?;
        for &dscp in self.dscps.iter().chain(&self.dscp) {
            within("code point", dscp.into(), 0, 63, "0 … 63")?;
        }
        within("read size", self.read_bytes.unwrap_or(1).into(), 1, 16 << 20, "1 byte … 16 MiB")?;
        check_rate("read pace", self.read_pace)?;
        check_rate("background", self.background)?;
        if self.background.is_some() && self.directions == TcpDirections::Both {
            let value = "a test both ways".to_owned();
            let bounds = "a test with one direction";
            return Err(TestError { field: "background", value, bounds });
        }
        self.check_means()?;
        check_rate("pace", self.pace)?;
        check_finish(self.finish, "buffers")
    }

    fn check_means(&self) -> Result<(), TestError> {
        let error = |field, value: String, bounds| Err(TestError { field, value, bounds });
        let cpus = self.means.client_cpus.len().max(self.means.server_cpus.len());
        if cpus > CPUS_MAX {
            return error("processors", cpus.to_string(), "at most 1024");
        }
        let call = self.send_bytes();
        if !(1..=16 << 20).contains(&call) {
            return error("sending call", call.to_string(), "1 byte … 16 MiB");
        }
        let (send, receive) = (self.send_with(), self.means.receive_with);
        let plain = send == SendWith::Write && receive == ReceiveWith::Read;
        if self.means.verify_seed.is_some() && !plain {
            let value = format!("{send} and {receive}");
            return error("check of contents", value, "write and read, which touch every byte");
        }
        Ok(())
    }

    /// The code point of a stream by its number within its direction.
    pub fn dscp_of(&self, stream: u16) -> Option<u8> {
        let place = usize::from(stream).checked_rem(self.dscps.len());
        place.map(|place| self.dscps[place]).or(self.dscp)
    }

    /// Bytes of one sending call.
    pub fn send_bytes(&self) -> u32 {
        self.means.send_bytes.unwrap_or(self.buffer_bytes)
    }

    /// Call with which the sending end hands over its bytes.
    pub const fn send_with(&self) -> SendWith {
        if self.zero_copy { SendWith::Sendfile } else { self.means.send_with }
    }

    /// The directions that the test has.
    pub const fn each_direction(&self) -> &'static [Direction] {
        self.directions.each_direction()
    }

    /// Every stream of the test, by direction and number within it.
    pub fn places(&self) -> impl Iterator<Item = (Direction, u16)> + use<> {
        places(self.directions, self.streams)
    }

    /// Planned time of sending, where time ends the test.
    pub const fn planned_span(&self) -> Option<Duration> {
        match self.finish {
            Finish::TimeNs(ns) => Some(Duration::from_nanos(ns.saturating_add(self.omit_ns))),
            Finish::Bytes(_) | Finish::Buffers(_) => None,
        }
    }

    /// The test that the flow in the background is by itself: one stream against the direction of
    /// the test, paced, with buffers of the kernel's choice, that goes on until it is stopped.
    pub fn background(&self) -> Option<Self> {
        let pace = Some(self.background?);
        let directions = match self.directions {
            TcpDirections::Up => TcpDirections::Down,
            TcpDirections::Down => TcpDirections::Up,
            TcpDirections::Both => return None,
        };
        Some(Self {
            directions,
            streams: 1,
            finish: Finish::TimeNs(u64::MAX),
            window_bytes: None,
            mss_bytes: None,
            pace,
            zero_copy: false,
            read_bytes: None,
            read_pace: None,
            background: None,
            means: Means::default(),
            ..self.clone()
        })
    }

    /// Bytes that each direction sends, where that ends the test.
    pub const fn byte_budget(&self) -> Option<u64> {
        match self.finish {
            Finish::TimeNs(_) => None,
            Finish::Bytes(bytes) => Some(bytes),
            Finish::Buffers(count) => Some(count.saturating_mul(self.buffer_bytes as u64)),
        }
    }
}

impl UdpTest {
    /// Holds every field against what a test can be; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), TestError> {
        let size = u64::from(self.size_bytes);
        within("streams", self.streams.into(), 1, 128, "1 … 128")?;
        within("datagram size", size, DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX, "16 … 65507 bytes")?;
        within("interval", self.interval_ns, 10_000_000, DAY_NS, "10 ms … 1 day")?;
        within("omitted span", self.omit_ns, 0, 600_000_000_000, "0 … 600 s")?;
        within("window", self.window_bytes.unwrap_or(1), 1, 2 << 30, "1 byte … 2 GiB")?;
        within("code point", self.dscp.unwrap_or(0).into(), 0, 63, "0 … 63")?;
        check_rate("pace", self.pace)?;
        if let Some(search) = &self.search {
            self.check_search(search)?;
        }
        check_finish(self.finish, "datagrams")
    }

    /// A search is one stream that is sent for a time, in sub-intervals of several statuses.
    fn check_search(&self, search: &SearchPlan) -> Result<(), TestError> {
        let error = |field, value: String, bounds| Err(TestError { field, value, bounds });
        let span = |ns| print_span(Duration::from_nanos(ns));
        let one_way = self.directions != TcpDirections::Both;
        let Finish::TimeNs(time_ns) = self.finish else {
            return error("end of a search", "an amount".to_owned(), "a time");
        };
        if self.streams != 1 || !one_way {
            return error("streams of a search", "several".to_owned(), "one, in one direction");
        }
        if self.omit_ns > 0 {
            return error("omitted span of a search", span(self.omit_ns), "0 s");
        }
        if !(5_000_000..=250_000_000).contains(&search.feedback_ns) {
            return error("feedback interval", span(search.feedback_ns), "5 ms … 250 ms");
        }
        if self.interval_ns < search.feedback_ns.saturating_mul(2) || self.interval_ns > time_ns {
            let bounds = "two feedback intervals … the time of the test";
            return error("sub-interval", span(self.interval_ns), bounds);
        }
        if search.delay_low_ns == 0 || search.delay_low_ns > search.delay_high_ns {
            return error("low delay", span(search.delay_low_ns), "above 0, up to the high one");
        }
        if search.congested_after == 0 || search.fast_rows == 0 {
            return error("statuses and rows of a search", "0".to_owned(), "1 or more");
        }
        Ok(())
    }

    /// The directions that the test has.
    pub const fn each_direction(&self) -> &'static [Direction] {
        self.directions.each_direction()
    }

    /// Every stream of the test, by direction and number within it. A server of the native protocol
    /// gives each a port in this order.
    pub fn places(&self) -> impl Iterator<Item = (Direction, u16)> + use<> {
        places(self.directions, self.streams)
    }

    /// Datagrams that each direction sends, where that ends the test: whole ones, as many as the
    /// bytes need.
    pub fn datagram_budget(&self) -> Option<u64> {
        match self.finish {
            Finish::TimeNs(_) => None,
            Finish::Bytes(bytes) => Some(bytes.div_ceil(u64::from(self.size_bytes.max(1)))),
            Finish::Buffers(count) => Some(count),
        }
    }

    /// Planned time of sending: from the plan, or the time that the pace takes for the datagrams;
    /// none where nothing bounds it.
    pub fn planned_span(&self) -> Option<Duration> {
        let Some(datagrams) = self.datagram_budget() else {
            let Finish::TimeNs(ns) = self.finish else { return None };
            return Some(Duration::from_nanos(ns.saturating_add(self.omit_ns)));
        };
        let pace = u128::from(self.pace?.bits_per_sec().max(1)) * u128::from(self.streams.max(1));
        let bits = u128::from(datagrams) * u128::from(self.size_bytes) * 8;
        let ns = u64::try_from(bits * 1_000_000_000 / pace).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(ns.saturating_add(self.omit_ns)))
    }
}

fn within(
    field: &'static str,
    value: u64,
    low: u64,
    high: u64,
    bounds: &'static str,
) -> Result<(), TestError> {
    let spans = ["interval", "omitted span", "time"];
    let text = match spans.contains(&field) {
        true => print_span(Duration::from_nanos(value)),
        false => value.to_string(),
    };
    let fits = (low..=high).contains(&value);
    if fits { Ok(()) } else { Err(TestError { field, value: text, bounds }) }
}

fn check_rate(field: &'static str, rate: Option<BitRate>) -> Result<(), TestError> {
    let value = rate.map_or(1, BitRate::bits_per_sec);
    within(field, value, 1, u64::MAX, "1 bit/s … 18 Ebit/s")
}

fn check_finish(finish: Finish, units: &'static str) -> Result<(), TestError> {
    match finish {
        Finish::TimeNs(ns) => within("time", ns, 1_000_000, DAY_NS, "1 ms … 1 day"),
        Finish::Bytes(bytes) => within("bytes", bytes, 1, 1 << 60, "1 byte … 1 EiB"),
        Finish::Buffers(count) => within(units, count, 1, 1 << 44, "1 … 2^44"),
    }
}

fn places(directions: TcpDirections, streams: u16) -> impl Iterator<Item = (Direction, u16)> {
    let directions = directions.each_direction().iter();
    directions.flat_map(move |&direction| (0..streams).map(move |stream| (direction, stream)))
}
