//! What lines and document share: streams with their numbers, times without the omitted span, and
//! the account of each stream at both ends.

use linerate_core::record::{
    Direction, Flow, FlowEnd, IntervalRow, Record, StreamOpened, TcpDirections, TcpPlan, TcpTest,
    UdpPlan,
};

/// The time of a test that ends by Ctrl-C alone (`-t 0`): a nanosecond less than a day, which is
/// the most that iperf3's servers take.
pub const ENDLESS_NS: u64 = 86_400_000_000_000 - 1;

/// The end of the test that prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iperf3Role {
    /// The one that asked for the test.
    Client,
    /// The one that was asked.
    Server,
}

/// A test as it goes on.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The end of the test that prints.
    pub role: Iperf3Role,
    /// The plan. A UDP test fills in the settings that it shares with TCP; its blocks are
    /// datagrams.
    pub plan: TcpPlan,
    /// True for a test over UDP.
    pub udp: bool,
    /// The streams so far, in the order in which they were connected.
    pub streams: Vec<StreamOpened>,
    /// Where the clock started anew: the start of the first row after the omitted span, which a
    /// busy host ends late.
    pub(super) counted_from_ns: Option<u64>,
}

/// The counts of one end for one stream or for several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EndCounts {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) retransmits: Option<u64>,
    /// Datagrams, where there are any.
    pub(super) datagrams: Option<DatagramSums>,
}

/// Datagrams of a row or of a whole test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DatagramSums {
    /// Datagrams received plus datagrams lost: iperf3's total.
    pub(super) total: u64,
    pub(super) lost: i64,
    pub(super) reordered: u64,
    pub(super) jitter_ms: f64,
}

impl DatagramSums {
    pub(super) fn lost_percent(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.total as f64 }
    }

    fn combined_with(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            lost: self.lost + other.lost,
            reordered: self.reordered + other.reordered,
            jitter_ms: self.jitter_ms + other.jitter_ms,
        }
    }
}

/// Both ends of a stream, or of several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BothEndCounts {
    pub(super) sender: Option<EndCounts>,
    pub(super) receiver: Option<EndCounts>,
}

impl EndCounts {
    pub(super) fn average_bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

impl Sheet {
    /// A test without streams so far.
    pub const fn new(role: Iperf3Role, plan: TcpPlan) -> Self {
        Self { role, plan, udp: false, streams: Vec::new(), counted_from_ns: None }
    }

    /// A test over UDP without streams so far.
    pub fn of_udp(role: Iperf3Role, plan: &UdpPlan) -> Self {
        let plan = TcpPlan {
            server: plan.server.clone(),
            test: TcpTest {
                directions: plan.test.directions,
                streams: plan.test.streams,
                finish: plan.test.finish,
                omit_ns: plan.test.omit_ns,
                interval_ns: plan.test.interval_ns,
                buffer_bytes: plan.test.size_bytes.unwrap_or(1),
                window_bytes: plan.test.window_bytes,
                pace: plan.test.pace,
                dscp: plan.test.dscp,
                ..TcpTest::default()
            },
            ..TcpPlan::default()
        };
        Self { udp: true, ..Self::new(role, plan) }
    }

    /// The datagrams of a row: those that were sent, or what became of them.
    pub(super) fn datagrams_of(&self, row: &IntervalRow) -> Option<DatagramSums> {
        let known = row.datagrams.filter(|_| !self.is_sending(row.direction));
        match known {
            Some(it) => Some(DatagramSums {
                total: (it.received.cast_signed() + it.lost).max(0).cast_unsigned(),
                lost: it.lost,
                reordered: it.reordered,
                jitter_ms: it.jitter_ns.unwrap_or(0) as f64 / 1e6,
            }),
            None if self.udp => {
                Some(DatagramSums { total: self.datagrams(row.bytes), ..DatagramSums::default() })
            }
            None => None,
        }
    }

    /// Datagrams of so many bytes.
    pub(super) fn datagrams(&self, bytes: u64) -> u64 {
        bytes / u64::from(self.plan.test.buffer_bytes.max(1))
    }

    /// The directions that the test has.
    pub(super) const fn directions(&self) -> &'static [Direction] {
        match self.plan.test.directions {
            TcpDirections::Up => &[Direction::Up],
            TcpDirections::Down => &[Direction::Down],
            TcpDirections::Both => &[Direction::Up, Direction::Down],
        }
    }

    /// True if data flows in both directions.
    pub(super) fn is_both(&self) -> bool {
        self.plan.test.directions == TcpDirections::Both
    }

    /// True if this end sends data in a direction.
    pub(super) fn is_sending(&self, direction: Direction) -> bool {
        (direction == Direction::Up) == (self.role == Iperf3Role::Client)
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
            None if self.plan.test.streams == 1 => Some(self.number(row.direction, 0)),
            None => None,
        }
    }

    /// `[TX-C]` and the like in a test both ways, else nothing.
    pub(super) fn role_tag(&self, direction: Direction) -> &'static str {
        match (self.is_both(), self.is_sending(direction), self.role) {
            (false, ..) => "",
            (true, true, Iperf3Role::Client) => "[TX-C]",
            (true, false, Iperf3Role::Client) => "[RX-C]",
            (true, true, Iperf3Role::Server) => "[TX-S]",
            (true, false, Iperf3Role::Server) => "[RX-S]",
        }
    }

    /// Takes note of a row before it is printed.
    pub(super) fn note_interval_row(&mut self, row: &IntervalRow) {
        if self.plan.test.omit_ns > 0 && !row.omitted {
            self.counted_from_ns.get_or_insert(row.start_ns);
        }
    }

    /// Start and end of a row in seconds: the clock starts anew after the omitted span.
    pub(super) fn seconds_of(&self, row: &IntervalRow) -> (f64, f64) {
        let begin = self.counted_from_ns.filter(|_| !row.omitted).unwrap_or(0);
        let seconds = |t_ns: u64| t_ns.saturating_sub(begin) as f64 / 1e9;
        (seconds(row.start_ns), seconds(row.end_ns))
    }

    /// The streams of a record, those of a direction.
    pub(super) fn flows_in_direction<'a>(
        &self,
        record: &'a Record,
        direction: Direction,
    ) -> impl Iterator<Item = &'a Flow> {
        record.flows.iter().filter(move |flow| flow.direction == direction)
    }

    /// Both ends of a stream: bytes of the measured span, and that.
    pub(super) fn counts_of_flow(&self, flow: &Flow) -> BothEndCounts {
        let count = |end: &FlowEnd| EndCounts {
            bytes: end.bytes_measured,
            seconds: end.span_ns as f64 / 1e9,
            retransmits: None,
            datagrams: None,
        };
        BothEndCounts {
            sender: flow.sender.as_ref().map(|end| EndCounts {
                retransmits: end.tcp_info.and_then(|info| info.total_retrans).map(u64::from),
                datagrams: end.sent_datagrams.as_ref().map(|datagrams| DatagramSums {
                    total: datagrams.measured,
                    ..DatagramSums::default()
                }),
                ..count(end)
            }),
            receiver: flow.receiver.as_ref().map(|end| EndCounts {
                datagrams: end.received_datagrams.as_ref().map(|datagrams| DatagramSums {
                    total: datagrams.measured.received + datagrams.measured.lost,
                    lost: datagrams.measured.lost.cast_signed(),
                    reordered: datagrams.measured.reordered,
                    jitter_ms: datagrams.delay.and_then(|delay| delay.jitter_ns).unwrap_or(0)
                        as f64
                        / 1e6,
                }),
                ..count(end)
            }),
        }
    }

    /// Processor time for the program and in the kernel, in percent of the test, at this end or at
    /// the other.
    pub(super) fn cpu_percent(&self, record: &Record, here: bool) -> Option<(f64, f64)> {
        let ends = record.flows.iter().map(|flow| match self.is_sending(flow.direction) == here {
            true => flow.sender.as_ref(),
            false => flow.receiver.as_ref(),
        });
        let ends: Option<Vec<&FlowEnd>> = ends.collect();
        let ends = ends.filter(|ends| !ends.is_empty())?;
        let span = ends.iter().map(|end| end.span_start_ns + end.span_ns).max()?;
        let sum = |pick: fn(&FlowEnd) -> Option<u64>| -> Option<f64> {
            let ns = ends.iter().map(|end| pick(end)).sum::<Option<u64>>()?;
            (span > 0).then(|| ns as f64 * 100.0 / span as f64)
        };
        Some((sum(|end| end.cpu_user_ns)?, sum(|end| end.cpu_system_ns)?))
    }

    /// Both ends of all streams of a direction together.
    pub(super) fn sum(&self, record: &Record, direction: Direction) -> BothEndCounts {
        let all: Vec<BothEndCounts> = self
            .flows_in_direction(record, direction)
            .map(|flow| self.counts_of_flow(flow))
            .collect();
        BothEndCounts {
            sender: together(all.iter().map(|ends| ends.sender)),
            receiver: together(all.iter().map(|ends| ends.receiver)),
        }
    }
}

/// Bytes and retransmits added, over the longest span; `None` when a stream is missing.
fn together(counts: impl Iterator<Item = Option<EndCounts>>) -> Option<EndCounts> {
    let counts: Vec<EndCounts> = counts.collect::<Option<_>>()?;
    (!counts.is_empty()).then(|| EndCounts {
        bytes: counts.iter().map(|count| count.bytes).sum(),
        seconds: counts.iter().map(|count| count.seconds).fold(0.0, f64::max),
        retransmits: counts.iter().map(|count| count.retransmits).sum(),
        datagrams: counts
            .iter()
            .filter_map(|count| count.datagrams)
            .reduce(DatagramSums::combined_with)
            .map(
                // iperf3 gives the mean of the streams' jitters.
                |all| DatagramSums { jitter_ms: all.jitter_ms / counts.len() as f64, ..all },
            ),
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Finish, Plan, RecordId, SentDatagrams, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    #[test]
    fn bytes_of_each_end_are_divided_by_the_time_that_goes_with_them() {
        // 50 Mbit/s for 2 s after 2 s that are omitted; the server goes on sending until it hears
        // of the end, 0.1 s later.
        let end = |bytes_measured, span_ns| FlowEnd {
            bytes: 25_000_000,
            bytes_measured,
            span_start_ns: 2_000_000_000,
            span_ns,
            sent_datagrams: Some(SentDatagrams::default()),
            ..FlowEnd::default()
        };
        let flow = Flow {
            flow: 0,
            direction: Direction::Down,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: Some(end(13_125_000, 2_100_000_000)),
            receiver: Some(end(12_500_000, 2_000_000_000)),
            syn: None,
        };
        let finish = Finish::TimeNs(2_000_000_000);
        let plan = TcpPlan {
            test: TcpTest { finish, omit_ns: 2_000_000_000, ..TcpTest::default() },
            ..TcpPlan::default()
        };
        let tool = Tool { name: String::new(), version: String::new() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let begin = Record::from_plan(id, tool, Plan::Tcp(plan.clone()), at);
        let record = Record { flows: vec![flow], ..begin };
        for udp in [false, true] {
            let sheet = Sheet { udp, ..Sheet::new(Iperf3Role::Client, plan.clone()) };
            let sum = sheet.sum(&record, Direction::Down);
            let rates = [sum.sender, sum.receiver].map(|count| count.expect("both").average_bps());
            assert_eq!(rates, [50e6, 50e6], "udp {udp}");
        }
    }
}
