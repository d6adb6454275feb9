//! What lines and document share: streams with their numbers, times without the omitted span, and
//! the account of each stream at both ends.

use linerate_core::record::{
    Direction, Finish, Flow, FlowEnd, IntervalRow, Record, StreamOpened, TcpDirections, TcpPlan,
};

/// Which end prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that asked for the test.
    Client,
    /// The one that was asked.
    Server,
}

/// A test as it goes on.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Which end prints.
    pub role: Role,
    /// What was asked.
    pub plan: TcpPlan,
    /// The streams so far, in the order in which they were connected.
    pub streams: Vec<StreamOpened>,
}

/// What one end counted of one stream, or of several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) retransmits: Option<u64>,
}

/// Both ends of a stream, or of several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ends {
    pub(super) sender: Option<Count>,
    pub(super) receiver: Option<Count>,
}

impl Count {
    pub(super) fn bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

impl Sheet {
    /// A test without streams so far.
    pub const fn new(role: Role, plan: TcpPlan) -> Self {
        Self { role, plan, streams: Vec::new() }
    }

    /// The directions that the test has.
    pub(super) const fn directions(&self) -> &'static [Direction] {
        match self.plan.directions {
            TcpDirections::Up => &[Direction::Up],
            TcpDirections::Down => &[Direction::Down],
            TcpDirections::Both => &[Direction::Up, Direction::Down],
        }
    }

    /// Whether data goes both ways.
    pub(super) fn is_both(&self) -> bool {
        self.plan.directions == TcpDirections::Both
    }

    /// Whether this end sends in a direction.
    pub(super) fn sends(&self, direction: Direction) -> bool {
        (direction == Direction::Up) == (self.role == Role::Client)
    }

    /// The number that stands for a stream. iperf3 prints descriptors; the first is 5 there.
    pub(super) fn number(&self, direction: Direction, flow: u16) -> u64 {
        let same = |stream: &StreamOpened| stream.direction == direction && stream.flow == flow;
        let at = self.streams.iter().position(same).unwrap_or_else(|| usize::from(flow));
        5 + 2 * at as u64
    }

    /// The number of a row: of its stream, or `None` of the sum of several.
    pub(super) fn number_of(&self, row: &IntervalRow) -> Option<u64> {
        match row.flow {
            Some(flow) => Some(self.number(row.direction, flow)),
            None if self.plan.streams == 1 => Some(self.number(row.direction, 0)),
            None => None,
        }
    }

    /// `[TX-C]` and the like in a test both ways, else nothing.
    pub(super) fn tag(&self, direction: Direction) -> &'static str {
        match (self.is_both(), self.sends(direction), self.role) {
            (false, ..) => "",
            (true, true, Role::Client) => "[TX-C]",
            (true, false, Role::Client) => "[RX-C]",
            (true, true, Role::Server) => "[TX-S]",
            (true, false, Role::Server) => "[RX-S]",
        }
    }

    /// Start and end of a row in seconds: the clock starts anew after the omitted span.
    pub(super) fn seconds_of(&self, row: &IntervalRow) -> (f64, f64) {
        let begin = if row.omitted { 0 } else { self.plan.omit_ns };
        let seconds = |t_ns: u64| t_ns.saturating_sub(begin) as f64 / 1e9;
        (seconds(row.start_ns), seconds(row.end_ns))
    }

    /// The streams of a record, those of a direction.
    pub(super) fn flows<'a>(
        &self,
        record: &'a Record,
        direction: Direction,
    ) -> impl Iterator<Item = &'a Flow> {
        record.flows.iter().filter(move |flow| flow.direction == direction)
    }

    /// Both ends of a stream.
    pub(super) fn ends(&self, flow: &Flow) -> Ends {
        Ends {
            sender: flow.sender.as_ref().map(|end| self.sender(end)),
            receiver: flow.receiver.as_ref().map(|end| Count {
                bytes: self.measured(end),
                seconds: end.span_ns as f64 / 1e9,
                retransmits: None,
            }),
        }
    }

    fn sender(&self, end: &FlowEnd) -> Count {
        // A sender notices its end up to a tenth of a second late when it waits for a full window.
        let span_ns = match self.plan.finish {
            Finish::TimeNs(ns) => end.span_ns.saturating_sub(self.begun_ns(end)).min(ns),
            _ => end.span_ns.saturating_sub(self.begun_ns(end)),
        };
        Count {
            bytes: self.measured(end),
            seconds: span_ns as f64 / 1e9,
            retransmits: end.tcp_info.and_then(|info| info.total_retrans).map(u64::from),
        }
    }

    /// The omitted span where the span of an end holds it.
    const fn begun_ns(&self, end: &FlowEnd) -> u64 {
        if end.span_start_ns == 0 { self.plan.omit_ns } else { 0 }
    }

    /// Bytes without those of the omitted span. What came after the measured one counts.
    const fn measured(&self, end: &FlowEnd) -> u64 {
        if self.plan.omit_ns == 0 { end.bytes } else { end.bytes_measured }
    }

    /// Both ends of all streams of a direction together.
    pub(super) fn sum(&self, record: &Record, direction: Direction) -> Ends {
        let all: Vec<Ends> = self.flows(record, direction).map(|flow| self.ends(flow)).collect();
        Ends {
            sender: together(all.iter().map(|ends| ends.sender)),
            receiver: together(all.iter().map(|ends| ends.receiver)),
        }
    }
}

/// Bytes and retransmits added, over the longest span; `None` when a stream is missing.
fn together(counts: impl Iterator<Item = Option<Count>>) -> Option<Count> {
    let counts: Vec<Count> = counts.collect::<Option<_>>()?;
    (!counts.is_empty()).then(|| Count {
        bytes: counts.iter().map(|count| count.bytes).sum(),
        seconds: counts.iter().map(|count| count.seconds).fold(0.0, f64::max),
        retransmits: counts.iter().map(|count| count.retransmits).sum(),
    })
}
