//! The grid of a study filled with its figures: per topology, test and parameter the runs that
//! ended well, and what was published for the same place.

use std::collections::BTreeMap;

use linerate_core::record::{Ceiling, Family, MetricId, Record, Stat, Status};
use linerate_core::stats::median;
use linerate_core::study::{
    PublishedAs, PublishedPing, PublishedTcp, StudyPlan, Test, TestKind, Topology, Value,
};
use linerate_core::theory::framing::{Segment, ShapedLink, Transport, shaped_ceiling};
use linerate_core::units::BitRate;

use super::Results;
use crate::number;

/// All figures of a study.
pub(crate) struct Grid<'a> {
    /// The plan.
    pub plan: &'a StudyPlan,
    /// What the figures of the past are called: their year, or `published`.
    pub past: String,
    /// Records of this study, as they came.
    pub records: Vec<&'a Record>,
    /// The one record of each cell that counts.
    pub well: Vec<&'a Record>,
    /// One entry per topology, in the plan's order.
    pub topologies: Vec<Row<'a>>,
}

/// MTU of a link whose plan names none (RFC 894).
const ETHERNET_MTU_BYTES: u32 = 1500;

/// The figures of one topology.
pub(crate) struct Row<'a> {
    /// The plan's topology.
    pub topology: &'a Topology,
    /// Ping tests in the plan's order.
    pub ping: Vec<PingTest<'a>>,
    /// TCP tests in the plan's order.
    pub tcp: Vec<TcpTest<'a>>,
    /// What was published about it.
    pub published: Published<'a>,
}

/// What was published about one topology.
#[derive(Clone, Default)]
pub(crate) struct Published<'a> {
    /// Round-trip times in the order printed.
    pub ping: Vec<&'a PublishedPing>,
    /// Throughput in the order printed.
    pub tcp: Vec<&'a PublishedTcp>,
}

/// One ping test on one topology.
pub(crate) struct PingTest<'a> {
    /// The plan's test.
    pub test: &'a Test,
    /// One entry per payload, in the plan's order.
    pub figures: Vec<PingFigure>,
}

/// One ping test on one topology with one payload.
pub(crate) struct PingFigure {
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Mean round-trip time of each run, in nanoseconds.
    pub means_ns: Vec<f64>,
    /// Pings per second of each run, measured.
    pub pps: Vec<f64>,
    /// Probes of all runs: sent, answered.
    pub probes: Option<(f64, f64)>,
}

/// One TCP test on one topology.
pub(crate) struct TcpTest<'a> {
    /// The plan's test.
    pub test: &'a Test,
    /// One entry per window, in the plan's order.
    pub figures: Vec<TcpFigure>,
}

/// Whether a test varies the window, as those of the published studies do.
pub(crate) fn by_window(test: &Test) -> bool {
    test.parameter().key == "windows_bytes"
}

/// One TCP test on one topology with one value of its parameter.
pub(crate) struct TcpFigure {
    /// The number of the value: window asked for, where the window is varied; 0 is the kernel's
    /// choice.
    pub window_bytes: u64,
    /// The value in headings.
    pub label: String,
    /// Goodput of each run in bit/s, by repetition.
    pub runs_bps: Vec<f64>,
    /// The ceiling that the record of the best run names.
    pub ceiling: Option<Ceiling>,
}

impl<'a> Grid<'a> {
    /// Sorts the records of `results` into the plan's grid.
    pub(crate) fn new(results: &'a Results) -> Self {
        let plan = &results.plan;
        let of_study =
            |record: &&Record| record.cell.as_ref().is_some_and(|cell| cell.study == plan.name);
        let records: Vec<&Record> = results.records.iter().filter(of_study).collect();
        let cells = last_of_each_cell(&records);
        let topologies = plan
            .topologies
            .iter()
            .map(|topology| Row::new(plan, topology, &cells, results))
            .collect();
        let well = cells.values().copied().collect();
        Self { plan, past: past(plan), records, well, topologies }
    }
}

/// Topology, test, parameter, repetition.
type CellKey<'a> = (&'a str, &'a str, u64, u32);

/// The latest record of each cell that ended well: a resumed run may have tried a cell twice.
fn last_of_each_cell<'a>(records: &[&'a Record]) -> BTreeMap<CellKey<'a>, &'a Record> {
    let mut cells: BTreeMap<CellKey<'a>, &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.status == Status::Ok) {
        let Some(cell) = &record.cell else { continue };
        let key = (cell.topology.as_str(), cell.test.as_str(), cell.parameter, cell.repetition);
        let held = cells.entry(key).or_insert(record);
        if held.started_at <= record.started_at {
            *held = record;
        }
    }
    cells
}

/// The last number of four digits in the source that can be a year.
fn past(plan: &StudyPlan) -> String {
    let source = plan.source.as_deref().unwrap_or_default();
    let is_year = |digits: &&str| digits.len() == 4 && ("1970".."2100").contains(digits);
    let mut numbers = source.split(|c: char| !c.is_ascii_digit());
    numbers.rfind(is_year).unwrap_or("published").to_owned()
}

impl<'a> Row<'a> {
    fn new(
        plan: &'a StudyPlan,
        topology: &'a Topology,
        cells: &BTreeMap<CellKey<'a>, &'a Record>,
        results: &'a Results,
    ) -> Self {
        let runs = |test: &Test, parameter: u64| -> Vec<&Record> {
            let mine = |key: &CellKey<'_>| {
                (key.0, key.1, key.2) == (topology.id.as_str(), test.id.as_str(), parameter)
            };
            cells.iter().filter(|(key, _)| mine(key)).map(|(_, record)| *record).collect()
        };
        let (mut ping, mut tcp) = (Vec::new(), Vec::new());
        for test in &plan.tests {
            match &test.kind {
                TestKind::Ping { sizes_bytes, .. } => {
                    let figure = |size: &u32| PingFigure::new(*size, &runs(test, (*size).into()));
                    ping.push(PingTest { test, figures: sizes_bytes.iter().map(figure).collect() });
                }
                TestKind::Tcp(_) | TestKind::Simulate(_) => {
                    let values = test.values().into_iter();
                    let figure = |value: Value| {
                        TcpFigure::new(value.number, &runs(test, value.number))
                            .labelled(test, value)
                    };
                    tcp.push(TcpTest { test, figures: values.map(figure).collect() });
                }
            }
        }
        let published = topology.published.as_ref();
        let published = published.map(|rows| Published::new(rows, results)).unwrap_or_default();
        Self { topology, ping, tcp, published }
    }

    /// The ceiling of a window's runs: that of the slowest link of the plan, or the one that the
    /// record of the best run knew, where the plan limits no link.
    ///
    /// The ends of a path do not see a shaper in its middle; the plan does.
    pub(crate) fn ceiling_bps(&self, figure: &TcpFigure) -> Option<f64> {
        match self.slowest_link(figure) {
            Some(limit) => Some(limit.payload_bps),
            None => figure.ceiling.as_ref()?.value,
        }
    }

    /// Share of that ceiling that the best run reached.
    pub(crate) fn ceiling_share(&self, figure: &TcpFigure) -> Option<f64> {
        Some(figure.best()? / self.ceiling_bps(figure)?)
    }

    /// Whether any bound of TCP is known on this topology.
    pub(crate) fn has_ceiling(&self) -> bool {
        let mut figures = self.tcp.iter().flat_map(|test| test.figures.iter());
        figures.any(|figure| self.ceiling_bps(figure).is_some())
    }

    /// The figure that a record of this topology is a run of.
    pub(crate) fn figure_of(&self, record: &Record) -> Option<&TcpFigure> {
        let cell = record.cell.as_ref()?;
        let test = self.tcp.iter().find(|test| test.test.id == cell.test)?;
        test.figures.iter().find(|figure| figure.window_bytes == cell.parameter)
    }

    /// What the slowest link of the plan leaves of its rate for the packets of the best run.
    pub(crate) fn slowest_link(&self, figure: &TcpFigure) -> Option<PlanLimit> {
        let packet = Packet::of(figure.ceiling.as_ref());
        let limits = self.topology.lab.links.iter().filter_map(|link| {
            let rate: BitRate = link.rate.as_deref()?.parse().ok()?;
            let mtu_bytes = link.mtu_bytes.unwrap_or(ETHERNET_MTU_BYTES).min(packet.bytes);
            let link = ShapedLink { rate, mtu_bytes };
            let ceiling = shaped_ceiling(&link, &packet.segment).ok()?;
            Some(PlanLimit { payload_bps: ceiling.payload_bps, rate, mtu_bytes, packet })
        });
        limits.min_by(|one, other| one.payload_bps.total_cmp(&other.payload_bps))
    }

    /// The lowest published hop counts, which are the same in every row of a topology.
    pub(crate) fn published_hops(&self) -> (Option<u32>, Option<u32>) {
        self.published.tcp.first().map_or((None, None), |row| (row.l2_hops, row.l3_hops))
    }
}

/// The bound that a link of the plan sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanLimit {
    /// Bits per second of TCP payload.
    pub payload_bps: f64,
    /// What the link's shaper is set to.
    pub rate: BitRate,
    /// Length of a full IP packet on it.
    pub mtu_bytes: u32,
    packet: Packet,
}

impl PlanLimit {
    /// IP and TCP headers of a packet.
    pub(crate) const fn header_bytes(&self) -> u32 {
        self.packet.segment.header_bytes()
    }

    /// Whether the headers are those of the runs; else those that Linux sends are taken.
    pub(crate) const fn headers_seen(&self) -> bool {
        self.packet.seen
    }
}

/// The packets of a run.
#[derive(Clone, Copy, Debug)]
struct Packet {
    segment: Segment,
    bytes: u32,
    seen: bool,
}

impl Packet {
    /// As a record's ceiling names them; TCP over IPv4 with timestamps, which Linux sends unless
    /// told otherwise, where there is none.
    fn of(ceiling: Option<&Ceiling>) -> Self {
        let input = |name| Some(ceiling?.input(name)?.value);
        let families = [Family::V4, Family::V6].into_iter();
        let segments = families.flat_map(|family| {
            [Transport::Tcp, Transport::TcpWithTimestamps]
                .map(|transport| Segment { family, transport })
        });
        let header = input("header_bytes");
        let mut fits = segments.filter(|it| header == Some(f64::from(it.header_bytes())));
        let usual = Segment { family: Family::V4, transport: Transport::TcpWithTimestamps };
        match (fits.next(), input("packet_bytes")) {
            (Some(segment), Some(bytes)) => Self { segment, bytes: bytes as u32, seen: true },
            _ => Self { segment: usual, bytes: u32::MAX, seen: false },
        }
    }
}

impl<'a> Published<'a> {
    fn new(rows: &PublishedAs, results: &'a Results) -> Self {
        let ping = results.published.ping.iter().filter(|row| row.test == rows.test).collect();
        let tcp: Vec<&PublishedTcp> =
            results.published.tcp.iter().filter(|row| row.test == rows.test).collect();
        // Without an MTU named, the first one printed is meant.
        let mtu = rows.mtu_bytes.or_else(|| tcp.first().map(|row| row.mtu_bytes));
        Self { ping, tcp: tcp.into_iter().filter(|row| Some(row.mtu_bytes) == mtu).collect() }
    }

    /// Name of the TCP curve, with the MTU where it is not Ethernet's.
    pub(crate) fn tcp_name(&self) -> Option<String> {
        let first = self.tcp.first()?;
        Some(match first.mtu_bytes {
            1500 => first.topology.clone(),
            mtu => format!("{}, MTU {mtu}", first.topology),
        })
    }

    /// Published mean round-trip time of one payload, in nanoseconds.
    pub(crate) fn rtt_ns(&self, payload_bytes: u32) -> Option<f64> {
        let row = self.ping.iter().find(|row| row.payload_bytes == payload_bytes)?;
        // Printed in milliseconds with three decimals: whole microseconds.
        row.rtt_avg_ms.map(|ms| (ms * 1e6).round())
    }

    /// Published pings per second of one payload.
    pub(crate) fn pps(&self, payload_bytes: u32) -> Option<f64> {
        self.ping.iter().find(|row| row.payload_bytes == payload_bytes)?.pings_per_s
    }

    /// Published throughput of one window, in bit/s.
    pub(crate) fn bps(&self, window_bytes: u64) -> Option<f64> {
        let row = self.tcp.iter().find(|row| row.window_bytes == window_bytes)?;
        row.throughput_mbit_s.map(|mbit| (mbit * 1e6).round())
    }

    /// Windows in the order printed.
    pub(crate) fn windows(&self) -> impl Iterator<Item = u64> {
        self.tcp.iter().map(|row| row.window_bytes)
    }
}

impl PingFigure {
    fn new(payload_bytes: u32, runs: &[&Record]) -> Self {
        let all = |metric, stat| -> Vec<f64> {
            runs.iter().filter_map(|run| at(run, metric, stat, payload_bytes)).collect()
        };
        let sent = all(MetricId::Sent, Stat::Value);
        let received = all(MetricId::Received, Stat::Value);
        let told = !sent.is_empty() && sent.len() == received.len();
        Self {
            payload_bytes,
            means_ns: all(MetricId::Rtt, Stat::Mean),
            pps: all(MetricId::Pps, Stat::Value),
            probes: told.then(|| (sent.iter().sum(), received.iter().sum())),
        }
    }

    /// The median over runs of their mean round-trip time.
    pub(crate) fn rtt_ns(&self) -> Option<f64> {
        median(&self.means_ns)
    }

    /// One second over that mean, as the studies of 2000 print pings per second.
    pub(crate) fn pps_from_mean(&self) -> Option<f64> {
        self.rtt_ns().filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns)
    }

    /// The median over runs of the measured pings per second.
    pub(crate) fn pps_measured(&self) -> Option<f64> {
        median(&self.pps)
    }
}

/// The value for one payload; a run of one size may leave the payload out of its rows.
fn at(record: &Record, metric: MetricId, stat: Stat, payload_bytes: u32) -> Option<f64> {
    record.value_at(metric, stat, payload_bytes).or_else(|| {
        let mut rows = record.summary.iter().filter(|row| row.metric == metric && row.stat == stat);
        rows.find(|row| row.payload_bytes.is_none()).map(|row| row.value)
    })
}

impl TcpFigure {
    /// The same under the plan's label, where it is no window.
    fn labelled(self, test: &Test, value: Value) -> Self {
        if by_window(test) { self } else { Self { label: value.label, ..self } }
    }

    fn new(window_bytes: u64, runs: &[&Record]) -> Self {
        let goodput = |run: &Record| run.value(MetricId::Goodput, Stat::Value, None);
        let mut best: Option<(f64, &Record)> = None;
        for run in runs {
            if let Some(bps) = goodput(run).filter(|bps| best.is_none_or(|(most, _)| *bps > most)) {
                best = Some((bps, run));
            }
        }
        Self {
            window_bytes,
            label: number::window(window_bytes),
            runs_bps: runs.iter().filter_map(|run| goodput(run)).collect(),
            ceiling: best.and_then(|(_, run)| run.ceiling.clone()),
        }
    }

    /// The best run: what the studies of 2000 print.
    pub(crate) fn best(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::max)
    }

    /// The worst run.
    pub(crate) fn worst(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::min)
    }

    /// The middle run, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.runs_bps)
    }
}

/// The knee of a throughput curve: the window that the last doubling reached which still gained
/// 10 % or more. There is one only where an earlier doubling gained and a later one no longer
/// does; a flat curve has none, and one that still rises at its end has not shown it yet.
///
/// The rule is linerate's own. The study of 2000 speaks of a knee without a figure (§4.1, §5.1):
/// "marked improvement between the 16k and 32k windows when compared with bigger" ones.
pub(crate) fn knee(points: &[(u64, f64)]) -> Option<u64> {
    let mut points: Vec<(u64, f64)> =
        points.iter().copied().filter(|(window, bps)| *window > 0 && *bps > 0.0).collect();
    points.sort_by_key(|point| point.0);
    let doublings: Vec<(u64, f64)> = points
        .windows(2)
        .filter(|pair| pair[1].0 == 2 * pair[0].0)
        .map(|pair| (pair[1].0, pair[1].1 / pair[0].1 - 1.0))
        .collect();
    let last_gain = doublings.iter().rposition(|(_, gain)| *gain >= 0.1)?;
    (last_gain + 1 < doublings.len()).then(|| doublings[last_gain].0)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{CeilingInput, Direction};

    use super::*;

    #[test]
    fn packets_are_those_of_the_record_or_those_that_linux_sends() {
        let mut ceiling = Ceiling::of_goodput(Direction::Up);
        ceiling.inputs = vec![
            CeilingInput::of("packet_bytes", 1040.0, ""),
            CeilingInput::of("header_bytes", 72.0, ""),
        ];
        // 40 of IPv6, 20 of TCP, 12 of timestamps.
        let seen = Packet::of(Some(&ceiling));
        assert_eq!((seen.bytes, seen.segment.family, seen.seen), (1040, Family::V6, true));
        assert_eq!(seen.segment.transport, Transport::TcpWithTimestamps);
        let usual = Packet::of(None);
        assert_eq!((usual.segment.header_bytes(), usual.seen), (52, false));
    }

    #[test]
    fn the_knee_is_where_doubling_the_window_stops_to_pay() {
        let at = |mbits: [f64; 4]| {
            knee(
                &[16_384, 32_768, 65_536, 131_072]
                    .map(|w: u64| (w, mbits[(w / 16_384).ilog2() as usize])),
            )
        };
        // Published tables of the PREN study: c.2, i.1, e.2 and e.5 bend at 32K; e.3 is the one of
        // the MAN tests that does not (§5.1); localhost does not react to the window (§3.1).
        assert_eq!(at([372.0, 422.0, 445.0, 459.0]), Some(32_768));
        assert_eq!(at([185.0, 247.0, 243.0, 258.0]), Some(32_768));
        assert_eq!(at([93.0, 122.0, 122.0, 122.0]), Some(32_768));
        assert_eq!(at([54.0, 77.0, 80.0, 80.0]), Some(32_768));
        assert_eq!(at([78.0, 79.0, 82.0, 83.0]), None);
        assert_eq!(at([587.0, 586.0, 586.0, 480.0]), None);
        // 3524XL: 335 to 401 is still 20 %.
        assert_eq!(at([247.0, 335.0, 401.0, 413.0]), Some(65_536));
        assert_eq!(at([100.0, 200.0, 400.0, 800.0]), None);
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&[(0, 9.0), (1, 1.0), (2, f64::NAN)]), None);
    }
}
