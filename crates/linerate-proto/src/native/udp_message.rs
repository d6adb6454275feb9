//! Control messages of a UDP test. Fields are added, never renamed; unknown ones are ignored.

use std::time::Duration;

use linerate_core::record::{DatagramCounts, Direction, Finish, SearchPlan, TcpDirections};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

use super::RequestError;
use super::udp::DATAGRAM_HEADER_BYTES;

/// Largest payload of a datagram (65,535 less the headers of IPv4 and UDP; RFC 768, RFC 791).
pub const DATAGRAM_BYTES_MAX: u32 = 65_507;

const DAY_NS: u64 = 86_400_000_000_000;

/// The UDP test that a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpRequest {
    /// Which ways data goes.
    pub directions: TcpDirections,
    /// Streams in each direction, 1 … 128.
    pub streams: u16,
    /// When senders end.
    pub finish: Finish,
    /// Datagrams sent within this span at the start do not count.
    pub omit_ns: u64,
    /// Between interval messages, at least 10 ms.
    pub interval_ns: u64,
    /// Payload of each datagram, 16 … 65507.
    pub size_bytes: u32,
    /// Pace of each stream in payload bit/s.
    pub pace_bps: Option<u64>,
    /// Socket buffers to ask for.
    pub window_bytes: Option<u64>,
    /// Code point of sent packets.
    pub dscp: Option<u8>,
    /// Datagrams may be handed over joined.
    pub joined: bool,
    /// Search for the capacity; `pace_bps` is the pace to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// The receiver takes each by itself all the same; older ends do not know it.
    #[serde(default)]
    pub taken_singly: bool,
}

impl UdpRequest {
    /// Holds every field against the bounds of the protocol; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), RequestError> {
        let within = |field, value: u64, low: u64, high: u64, bounds| {
            let spans = ["interval", "omitted span", "time"];
            let text = match spans.contains(&field) {
                true => print_span(Duration::from_nanos(value)),
                false => value.to_string(),
            };
            let fits = (low..=high).contains(&value);
            if fits { Ok(()) } else { Err(RequestError { field, value: text, bounds }) }
        };
        let least = DATAGRAM_HEADER_BYTES as u64;
        let size = u64::from(self.size_bytes);
        within("streams", self.streams.into(), 1, 128, "1 … 128")?;
        within("datagram size", size, least, DATAGRAM_BYTES_MAX.into(), "16 … 65507 bytes")?;
        within("interval", self.interval_ns, 10_000_000, DAY_NS, "10 ms … 1 day")?;
        within("omitted span", self.omit_ns, 0, 600_000_000_000, "0 … 600 s")?;
        within("window", self.window_bytes.unwrap_or(1), 1, 2 << 30, "1 byte … 2 GiB")?;
        within("code point", self.dscp.unwrap_or(0).into(), 0, 63, "0 … 63")?;
        within("pace", self.pace_bps.unwrap_or(1), 1, u64::MAX, "1 bit/s … 18 Ebit/s")?;
        if let Some(search) = &self.search {
            self.check_search(search)?;
        }
        match self.finish {
            Finish::TimeNs(ns) => within("time", ns, 1_000_000, DAY_NS, "1 ms … 1 day"),
            Finish::Bytes(bytes) => within("bytes", bytes, 1, 1 << 60, "1 byte … 1 EiB"),
            Finish::Buffers(count) => within("datagrams", count, 1, 1 << 44, "1 … 2^44"),
        }
    }

    /// A search is one stream that is sent for a time, in sub-intervals of several statuses.
    fn check_search(&self, search: &SearchPlan) -> Result<(), RequestError> {
        let error = |field, value: String, bounds| Err(RequestError { field, value, bounds });
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
        match self.directions {
            TcpDirections::Up => &[Direction::Up],
            TcpDirections::Down => &[Direction::Down],
            TcpDirections::Both => &[Direction::Up, Direction::Down],
        }
    }

    /// Every stream of the test, by direction and number within it. A server gives each a port in
    /// this order.
    pub fn places(&self) -> impl Iterator<Item = (Direction, u16)> + use<> {
        let streams = self.streams;
        let directions = self.each_direction().iter();
        directions.flat_map(move |&direction| (0..streams).map(move |stream| (direction, stream)))
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

    /// How long senders are planned to send: told by the plan, or what the pace takes for the
    /// datagrams; none where nothing bounds it.
    pub fn planned_span(&self) -> Option<Duration> {
        let Some(datagrams) = self.datagram_budget() else {
            let Finish::TimeNs(ns) = self.finish else { return None };
            return Some(Duration::from_nanos(ns.saturating_add(self.omit_ns)));
        };
        let pace = u128::from(self.pace_bps?.max(1)) * u128::from(self.streams.max(1));
        let bits = u128::from(datagrams) * u128::from(self.size_bytes) * 8;
        let ns = u64::try_from(bits * 1_000_000_000 / pace).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(ns.saturating_add(self.omit_ns)))
    }
}

/// [`DatagramCounts`] of one stream, with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSample {
    /// Which way the stream's data goes.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// What was counted.
    pub counts: DatagramCounts,
    /// Processor time of the stream's data thread so far.
    pub cpu_ns: Option<u64>,
    /// Time so far that this thread waited for a processor.
    pub run_queue_wait_ns: Option<u64>,
}
