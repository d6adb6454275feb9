//! What the connections of a visit moved one way, and the record of it.
//!
//! Such a test has pauses of the client's between its transfers, which are no time of the path, so
//! the record's clock runs only while a transfer is under way: bytes over its span are the rate at
//! which data moved. The pauses are told beside it (tag `pauses_s`).

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Finish, FlowEnd, MeasurementEnd, Plan, Record, ServerPlan, SynOptions,
    TcpDirections, TcpInfo, TcpPlan, TcpTest, Tool, Via,
};
use linerate_core::time::{MonoTime, WallTime};
use linerate_sys::clock::record_id;

use super::transfer::Track;
use crate::environment::local_end;
use crate::flow::Sample;
use crate::flow::account::Account;
use crate::flow::fold::fill_record;
use crate::flow::peer::plain_address;

/// Transfers of a connection, and connections of a visit, that are told apart; those beyond count
/// with the last.
const SPANS_MAX: usize = 4096;
const CONNECTIONS_MAX: usize = 256;
/// Time between two samples of the record.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
const SAMPLES_MAX: u64 = 1000;

/// Where and to whom a visit is.
#[derive(Clone, Debug)]
pub(super) struct VisitEnds {
    pub(super) peer: SocketAddr,
    pub(super) server: SocketAddr,
    /// The program of the client, as it says.
    pub(super) agent: Option<String>,
    /// The name of the record.
    pub(super) name: &'static str,
    pub(super) tool: Tool,
}

/// The bytes that one connection moved in one direction, over time.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionTraffic {
    pub(super) client: Option<SocketAddr>,
    pub(super) bytes: u64,
    /// Begin and end of each transfer.
    spans: Vec<(MonoTime, MonoTime)>,
    /// Bytes so far, in the order of time.
    points: Vec<(MonoTime, u64)>,
    /// The kernel's account at the end, and what the SYN offered.
    pub(super) info: Option<TcpInfo>,
    pub(super) syn: Option<SynOptions>,
}

impl ConnectionTraffic {
    /// Adds a transfer that follows those before.
    pub(super) fn add(&mut self, track: Track) {
        let Track { begin, end, bytes, points } = track;
        let before = self.bytes;
        self.bytes += bytes;
        let is_full = self.spans.len() >= SPANS_MAX;
        match self.spans.last_mut().filter(|_| is_full) {
            Some(last) => last.1 = last.1.max(end),
            None => self.spans.push((begin, end)),
        }
        let within = points.into_iter().map(|(at, bytes)| (at, before + bytes));
        if self.points.len() < 4 * SPANS_MAX {
            self.points.push((begin, before));
            self.points.extend(within);
            self.points.push((end, self.bytes));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes by a time, on a straight line between two points.
    fn bytes_by(&self, at: MonoTime) -> u64 {
        let after = self.points.partition_point(|point| point.0 <= at);
        let Some(&before) = self.points[..after].last() else { return 0 };
        let Some(&next) = self.points.get(after) else { return before.1 };
        let (span, part) = (next.0.nanos_since(before.0), at.nanos_since(before.0));
        let grown = u128::from(next.1.saturating_sub(before.1));
        before.1 + u64::try_from(grown * u128::from(part) / u128::from(span.max(1))).unwrap_or(0)
    }
}

/// The bytes of one direction, connection by connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectionTraffic(Vec<ConnectionTraffic>);

impl DirectionTraffic {
    pub(super) fn add(&mut self, moved: ConnectionTraffic) {
        if moved.is_empty() {
            return;
        }
        let is_full = self.0.len() >= CONNECTIONS_MAX;
        match self.0.last_mut().filter(|_| is_full) {
            Some(last) => {
                last.bytes += moved.bytes;
                let room = (2 * SPANS_MAX).saturating_sub(last.spans.len());
                last.spans.extend(moved.spans.into_iter().take(room));
            }
            None => self.0.push(moved),
        }
    }

    /// Connections, bytes and time of all transfers; none where nothing moved.
    pub(super) fn totals(&self) -> Option<(usize, u64, u64)> {
        let bytes = self.0.iter().map(|moved| moved.bytes).sum();
        (bytes > 0).then(|| (self.0.len(), bytes, self.busy_clock().busy_ns()))
    }

    fn busy_clock(&self) -> BusyClock {
        BusyClock::from_spans(self.0.iter().flat_map(|moved| moved.spans.iter().copied()).collect())
    }

    /// The record of it; none where nothing moved.
    pub(super) fn record(
        &self,
        direction: Direction,
        ends: &VisitEnds,
        began: (MonoTime, WallTime),
    ) -> Option<Record> {
        let (streams, _, busy_ns) = self.totals()?;
        let clock = self.busy_clock();
        let (first, last) = clock.total_span()?;
        let test = TcpTest {
            directions: match direction {
                Direction::Down => TcpDirections::Down,
                Direction::Up => TcpDirections::Up,
            },
            streams: u16::try_from(streams).unwrap_or(u16::MAX),
            finish: Finish::TimeNs(busy_ns),
            interval_ns: SAMPLE_EVERY.as_nanos() as u64,
            ..TcpTest::default()
        };
        let account = self.account(direction, ends, &clock);
        let client = ends.peer;
        let server = ServerPlan::new(Some(Via::Http), client.ip().to_string(), client.port());
        let plan = Plan::Tcp(TcpPlan { server, test, ..TcpPlan::default() });
        let since = u128::from(first.nanos_since(began.0));
        let wall = WallTime::from_unix_nanos(u128::from(began.1.unix_millis()) * 1_000_000 + since);
        let mut record = Record::from_plan(record_id(), ends.tool.clone(), plan, wall);
        record.name = Some(ends.name.to_owned());
        fill_record(&mut record, &account);
        record.duration_ns = last.nanos_since(first);
        let pauses = record.duration_ns.saturating_sub(busy_ns);
        record.tags.insert("pauses_s".to_owned(), format!("{:.3}", pauses as f64 / 1e9));
        Some(record)
    }

    fn account(&self, direction: Direction, ends: &VisitEnds, clock: &BusyClock) -> Account {
        let remote = MeasurementEnd {
            role: "remote".to_owned(),
            address: Some(ends.peer.ip().to_string()),
            version: ends.agent.clone(),
            ..MeasurementEnd::default()
        };
        let mut account = Account {
            ends: vec![local_end(Some(ends.peer.ip())), remote],
            one_sided: direction == Direction::Down,
            row_ns_min: SAMPLE_EVERY.as_nanos() as u64 / 4,
            ..Account::default()
        };
        for (flow, moved) in (0..).zip(&self.0) {
            let client = plain_address(moved.client.unwrap_or(ends.peer));
            account.connected(direction, flow, &client, ends.server);
            account.remote.push(report(direction, flow, moved, clock));
        }
        let samples = self.samples(direction, clock);
        if direction == Direction::Down {
            account.local_samples.clone_from(&samples);
        }
        account.remote_samples = samples;
        account
    }

    /// Bytes of every connection at the same times.
    fn samples(&self, direction: Direction, clock: &BusyClock) -> Vec<Vec<Sample>> {
        let (every, busy) = (SAMPLE_EVERY.as_nanos() as u64, clock.busy_ns());
        let times = (1..=(busy / every).min(SAMPLES_MAX)).map(|at| at * every);
        let at_time = |t_ns: u64| {
            let at = clock.time_of(t_ns);
            let sample = |flow: u16, moved: &ConnectionTraffic| Sample {
                bytes: moved.bytes_by(at),
                ..Sample::empty_at(direction, flow, t_ns)
            };
            (0..).zip(&self.0).map(|(flow, moved)| sample(flow, moved)).collect()
        };
        times.map(at_time).collect()
    }
}

fn report(
    direction: Direction,
    flow: u16,
    moved: &ConnectionTraffic,
    clock: &BusyClock,
) -> EndReport {
    let begin = moved.spans.iter().map(|span| span.0).min().unwrap_or_default();
    let end = moved.spans.iter().map(|span| span.1).max().unwrap_or_default();
    let (from, to) = (clock.busy_by(begin), clock.busy_by(end));
    let end = FlowEnd {
        bytes: moved.bytes,
        bytes_measured: moved.bytes,
        span_start_ns: from,
        span_ns: (to - from).max(1),
        tcp_info: moved.info,
        nodelay: true,
        technique: if direction == Direction::Down { "write" } else { "trunc" }.to_owned(),
        ..FlowEnd::default()
    };
    EndReport { syn: moved.syn, ..EndReport::from_flow_end(direction, flow, end) }
}

/// A clock that runs while at least one transfer is under way.
struct BusyClock(Vec<(MonoTime, MonoTime)>);

impl BusyClock {
    fn from_spans(mut spans: Vec<(MonoTime, MonoTime)>) -> Self {
        spans.sort();
        let mut all: Vec<(MonoTime, MonoTime)> = Vec::new();
        for (begin, end) in spans {
            match all.last_mut().filter(|last| begin <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => all.push((begin, end)),
            }
        }
        Self(all)
    }

    fn total_span(&self) -> Option<(MonoTime, MonoTime)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    fn busy_ns(&self) -> u64 {
        self.0.iter().map(|(begin, end)| end.nanos_since(*begin)).sum()
    }

    /// Time within the spans up to `at`, in ns.
    fn busy_by(&self, at: MonoTime) -> u64 {
        let before = self.0.iter().take_while(|span| span.0 < at);
        before.map(|(begin, end)| at.min(*end).nanos_since(*begin)).sum()
    }

    /// When it shows this.
    fn time_of(&self, busy_ns: u64) -> MonoTime {
        let mut left = busy_ns;
        for (begin, end) in &self.0 {
            let span = end.nanos_since(*begin);
            if left <= span {
                return *begin + Duration::from_nanos(left);
            }
            left -= span;
        }
        self.0.last().map(|span| span.1).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{MetricId, Stat};

    use super::*;

    fn time_at_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    fn track_between(begin: u64, end: u64, bytes: u64) -> Track {
        Track { begin: time_at_ms(begin), end: time_at_ms(end), bytes, points: Vec::new() }
    }

    fn sample_direction() -> DirectionTraffic {
        let mut first = ConnectionTraffic::default();
        first.add(track_between(0, 400, 1_000_000));
        first.add(track_between(1400, 1600, 1_500_000));
        let mut second = ConnectionTraffic::default();
        second.add(track_between(200, 600, 500_000));
        let mut way = DirectionTraffic::default();
        way.add(first);
        way.add(second);
        way.add(ConnectionTraffic::default());
        way
    }

    #[test]
    fn pauses_between_transfers_are_no_time_of_the_path() {
        // 0 to 600 ms and 1400 to 1600 ms: 3 MB in 0.8 s are 30 Mbit/s.
        assert_eq!(sample_direction().totals(), Some((2, 3_000_000, 800_000_000)));
        assert_eq!(DirectionTraffic::default().totals(), None);
        let clock = sample_direction().busy_clock();
        assert_eq!(clock.busy_by(time_at_ms(1500)), 700_000_000);
        assert_eq!(clock.busy_by(time_at_ms(1000)), 600_000_000);
        assert_eq!(clock.time_of(700_000_000), time_at_ms(1500));
    }

    #[test]
    fn the_record_has_the_rate_while_data_moved_and_tells_the_pauses() {
        let peer = SocketAddr::from(([192, 0, 2, 7], 40_000));
        let server = SocketAddr::from(([192, 0, 2, 1], 5210));
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let agent = Some("a browser/1".to_owned());
        let ends = VisitEnds { peer, server, agent, name: "LibreSpeed", tool };
        let began = (time_at_ms(0), WallTime::from_unix_nanos(1_800_000_000_000_000_000));
        for direction in [Direction::Down, Direction::Up] {
            let record = sample_direction().record(direction, &ends, began).expect("data moved");
            let value = |metric| {
                let is = |row: &&linerate_core::record::Summary| {
                    row.metric == metric && row.stat == Stat::Value && row.flow.is_none()
                };
                record.summary.iter().find(is).map(|row| row.value)
            };
            assert_eq!(value(MetricId::Goodput), Some(30e6));
            assert_eq!(value(MetricId::Bytes), Some(3e6));
            assert_eq!(record.tags["pauses_s"], "0.800");
            assert_eq!(record.duration_ns, 1_600_000_000);
            let series =
                record.series.iter().find(|series| series.flow == Some(0)).expect("a series");
            // 0 to 200 ms: half of 1 MB, 20 Mbit/s.
            assert_eq!((series.t_ns[0], series.values[0]), (200_000_000, Some(20e6)));
            assert_eq!(series.t_ns.len(), 4);
            assert_eq!(record.ends[1].version.as_deref(), Some("a browser/1"));
        }
    }

    #[test]
    fn a_client_of_endless_small_transfers_takes_no_endless_room() {
        let mut moved = ConnectionTraffic::default();
        (0..20_000).for_each(|index| moved.add(track_between(2 * index, 2 * index + 1, 1)));
        assert_eq!((moved.bytes, moved.spans.len()), (20_000, SPANS_MAX));
        assert!(moved.points.len() < 5 * SPANS_MAX);
        let mut way = DirectionTraffic::default();
        (0..1000).for_each(|_| way.add(moved.clone()));
        assert_eq!(
            way.totals().map(|totals| (totals.0, totals.1)),
            Some((CONNECTIONS_MAX, 20_000_000))
        );
    }
}
