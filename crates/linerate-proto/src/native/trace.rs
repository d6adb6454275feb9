//! A client's request to trace the path from the server to it (spec/native.md, "The path back").
//! The destination is always the address of the client's connection. Left out: the trace itself.

use std::time::Duration;

use linerate_core::record::TestError;
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

const MILLISECOND_NS: u64 = 1_000_000;

/// Parameters of a UDP trace from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// Number of rounds.
    pub count: u32,
    /// Time between the starts of two rounds.
    pub interval_ns: u64,
    /// Time-out of a probe.
    pub timeout_ns: u64,
    /// Largest time to live.
    pub hops_max: u8,
    /// UDP destination port of the probes.
    pub port: u16,
    /// Differentiated services code point of the probes, 0 … 63.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// True if the client will log in with a token.
    #[serde(default, skip_serializing_if = "super::message::is_false")]
    pub login: bool,
}

impl TraceRequest {
    /// Most rounds of a trace.
    pub const COUNT_MAX: u32 = 20;
    /// Most probes that a server sends for a request.
    pub const PROBES_MAX: u32 = 1000;
    /// Time after which a server ends a trace and sends the hops found so far.
    pub const SPAN_MAX: Duration = Duration::from_secs(20);
    const HOPS_MAX: u8 = 30;
    const INTERVAL_NS_MIN: u64 = 50 * MILLISECOND_NS;
    const ROUNDS_NS_MAX: u64 = 10_000 * MILLISECOND_NS;
    const TIMEOUT_NS_MAX: u64 = 2000 * MILLISECOND_NS;

    /// The same request with every field reduced to the bounds of the protocol.
    #[must_use]
    pub fn within_bounds(self) -> Self {
        let interval_ns = self.interval_ns.clamp(Self::INTERVAL_NS_MIN, Self::ROUNDS_NS_MAX);
        let fits = (Self::ROUNDS_NS_MAX / interval_ns) as u32;
        Self {
            count: self.count.clamp(1, Self::COUNT_MAX.min(fits)),
            interval_ns,
            timeout_ns: self.timeout_ns.clamp(MILLISECOND_NS, Self::TIMEOUT_NS_MAX),
            hops_max: self.hops_max.clamp(1, Self::HOPS_MAX),
            ..self
        }
    }

    /// Checks every field against the bounds of the protocol.
    /// # Errors
    /// The first field out of bounds.
    pub fn check_bounds(&self) -> Result<(), TestError> {
        let within = |field, value: u64, least: u64, most: u64, bounds| {
            let outside = !(least..=most).contains(&value);
            let error = TestError { field, value: value.to_string(), bounds };
            if outside { Err(error) } else { Ok(()) }
        };
        within("rounds", self.count.into(), 1, Self::COUNT_MAX.into(), "1 … 20")?;
        within("hops", self.hops_max.into(), 1, Self::HOPS_MAX.into(), "1 … 30")?;
        within("DSCP", self.dscp.unwrap_or(0).into(), 0, 63, "0 … 63")?;
        within("port", self.port.into(), 1, u16::MAX.into(), "1 … 65535")?;
        let span = |field, ns: u64, least, most, bounds| {
            let error = TestError { field, value: print_span(Duration::from_nanos(ns)), bounds };
            if (least..=most).contains(&ns) { Ok(()) } else { Err(error) }
        };
        let timeout = self.timeout_ns;
        span("wait for an answer", timeout, MILLISECOND_NS, Self::TIMEOUT_NS_MAX, "1 ms … 2 s")?;
        let interval = self.interval_ns;
        let (least, most) = (Self::INTERVAL_NS_MIN, Self::ROUNDS_NS_MAX);
        span("time between rounds", interval, least, most, "50 ms … 10 s")?;
        let all = interval.saturating_mul(self.count.into());
        span("time of all rounds", all, least, most, "50 ms … 10 s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const ASKED: TraceRequest = TraceRequest {
        count: 10,
        interval_ns: SECOND_NS / 2,
        timeout_ns: SECOND_NS,
        hops_max: 30,
        port: 33_434,
        dscp: None,
        login: false,
    };

    #[test]
    fn a_trace_costs_a_server_a_bounded_amount() {
        assert_eq!(ASKED.check_bounds(), Ok(()));
        let refused = |request: TraceRequest| request.check_bounds().map_err(|error| error.field);
        assert_eq!(refused(TraceRequest { count: 21, ..ASKED }), Err("rounds"));
        assert_eq!(refused(TraceRequest { count: 0, ..ASKED }), Err("rounds"));
        assert_eq!(refused(TraceRequest { hops_max: 31, ..ASKED }), Err("hops"));
        assert_eq!(refused(TraceRequest { dscp: Some(64), ..ASKED }), Err("DSCP"));
        assert_eq!(refused(TraceRequest { port: 0, ..ASKED }), Err("port"));
        let slow = TraceRequest { timeout_ns: 3 * SECOND_NS, ..ASKED };
        assert_eq!(refused(slow), Err("wait for an answer"));
        let flood = TraceRequest { interval_ns: 1, ..ASKED };
        assert_eq!(refused(flood), Err("time between rounds"));
        // 20 rounds, one a second: 20 s.
        let long = TraceRequest { count: 20, interval_ns: SECOND_NS, ..ASKED };
        assert_eq!(refused(long), Err("time of all rounds"));
        let wrapped = TraceRequest { interval_ns: u64::MAX, ..ASKED };
        assert_eq!(refused(wrapped), Err("time between rounds"));
    }

    #[test]
    fn whatever_a_user_wants_a_client_asks_for_what_servers_do() {
        for count in [0, 1, 10, 1000, u32::MAX] {
            for ns in [0, 1, SECOND_NS / 50, SECOND_NS, 60 * SECOND_NS, u64::MAX] {
                let wanted =
                    TraceRequest { count, interval_ns: ns, timeout_ns: ns, hops_max: 255, ..ASKED };
                assert_eq!(wanted.within_bounds().check_bounds(), Ok(()), "{wanted:?}");
            }
        }
        assert_eq!(ASKED.within_bounds(), ASKED);
    }
}
