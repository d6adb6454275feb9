//! The figures of one value of a test on one topology: every run that ended well, and what is made
//! of them.
//!
//! # Source
//! Best, median, least and most of the runs as they are; mean and deviation as the OC-12 study of
//! 1999 prints its bulk runs.

use linerate_core::record::{
    Ceiling, Direction, EmulatedPath, Finish, MetricId, Plan, Record, Stat,
};
use linerate_core::stats::{Moments, median};
use linerate_core::study::{Test, TestKind, Value};

use super::spoilt::is_spoilt;
use crate::number;

/// One ping test on one topology.
pub(crate) struct PingTest<'a> {
    /// The plan's test.
    pub test: &'a Test,
    /// One entry per payload, in the plan's order.
    pub figures: Vec<PingFigure<'a>>,
}

/// One ping test on one topology with one payload.
pub(crate) struct PingFigure<'a> {
    /// Payload bytes.
    pub payload_bytes: u32,
    /// The runs that ended well.
    pub runs: Vec<&'a Record>,
    /// Mean round-trip time of each run, in nanoseconds.
    pub means_ns: Vec<f64>,
    /// Pings per second of each run, measured.
    pub pps: Vec<f64>,
    /// Probes of all runs: sent, answered.
    pub probes: Option<(f64, f64)>,
}

/// One throughput test on one topology.
pub(crate) struct FlowTest<'a> {
    /// The plan's test.
    pub test: &'a Test,
    /// One entry per value, in the plan's order.
    pub figures: Vec<FlowFigure<'a>>,
}

/// One throughput test on one topology with one value of its parameter.
pub(crate) struct FlowFigure<'a> {
    /// The number that stands for the value in cells.
    pub number: u64,
    /// The value in headings.
    pub label: String,
    /// The runs that ended well, by repetition.
    pub runs: Vec<&'a Record>,
    /// Goodput of each of them in bit/s.
    pub runs_bps: Vec<f64>,
    /// The ceiling that the record of the best run names.
    pub ceiling: Option<Ceiling>,
    /// Whether this host limited the best run.
    pub best_spoilt: bool,
}

/// What carries the bytes of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    /// TCP of the hosts.
    Tcp,
    /// TCP of a model, in virtual time.
    Simulated,
    /// UDP of the hosts.
    Udp,
}

impl FlowKind {
    /// The kind of a throughput test; `None` for a test of round trips.
    pub(crate) const fn of(test: &Test) -> Option<Self> {
        match test.kind {
            TestKind::Ping { .. } | TestKind::Bench(_) => None,
            TestKind::Tcp(_) => Some(Self::Tcp),
            TestKind::Simulate(_) => Some(Self::Simulated),
            TestKind::Udp(_) => Some(Self::Udp),
        }
    }

    /// In headings: a model is told as one wherever its figures are.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Simulated => "simulated",
            Self::Udp => "udp",
        }
    }

    /// At the head of a sentence.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Simulated => "simulated TCP",
            Self::Udp => "UDP",
        }
    }

    /// Over a plot.
    pub(crate) const fn plot_title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP throughput",
            Self::Simulated => "Simulated TCP throughput",
            Self::Udp => "UDP throughput",
        }
    }
}

/// Whether a test is a benchmark of devices.
pub(crate) const fn of_devices(test: &Test) -> bool {
    matches!(test.kind, TestKind::Bench(_))
}

/// Whether a test varies the window.
pub(crate) fn by_window(test: &Test) -> bool {
    test.parameter().key == "windows_bytes"
}

impl<'a> FlowTest<'a> {
    /// The most runs that one value has.
    pub(crate) fn runs_most(&self) -> usize {
        self.figures.iter().map(|figure| figure.runs_bps.len()).max().unwrap_or(0)
    }

    /// The figure of one value.
    pub(crate) fn at(&self, number: u64) -> Option<&FlowFigure<'a>> {
        self.figures.iter().find(|figure| figure.number == number)
    }

    /// The words of its kind.
    pub(crate) fn kind(&self) -> FlowKind {
        FlowKind::of(self.test).unwrap_or(FlowKind::Tcp)
    }
}

impl<'a> PingFigure<'a> {
    pub(super) fn new(payload_bytes: u32, runs: Vec<&'a Record>) -> Self {
        let all = |metric, stat| -> Vec<f64> {
            runs.iter().filter_map(|run| at(run, metric, stat, payload_bytes)).collect()
        };
        let sent = all(MetricId::Sent, Stat::Value);
        let received = all(MetricId::Received, Stat::Value);
        let told = !sent.is_empty() && sent.len() == received.len();
        let (means_ns, pps) = (all(MetricId::Rtt, Stat::Mean), all(MetricId::Pps, Stat::Value));
        Self {
            payload_bytes,
            means_ns,
            pps,
            runs,
            probes: told.then(|| (sent.iter().sum(), received.iter().sum())),
        }
    }

    /// The median over runs of their mean round-trip time.
    pub(crate) fn rtt_ns(&self) -> Option<f64> {
        median(&self.means_ns)
    }

    /// Whether this host limited any of the runs.
    pub(crate) fn any_spoilt(&self) -> bool {
        self.runs.iter().any(|run| is_spoilt(run))
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

/// What the emulated paths of runs did to the packets that carried the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathCount {
    /// Packets that came to the paths.
    pub taken: u64,
    /// Those of them that were lost.
    pub lost: u64,
}

impl<'a> FlowFigure<'a> {
    pub(super) fn new(test: &Test, value: Value, runs: Vec<&'a Record>) -> Self {
        let goodput = |run: &Record| run.value(MetricId::Goodput, Stat::Value, None);
        let mut best: Option<(f64, &Record)> = None;
        for run in &runs {
            if let Some(bps) = goodput(run).filter(|bps| best.is_none_or(|(most, _)| *bps > most)) {
                best = Some((bps, run));
            }
        }
        let label = if by_window(test) { number::window(value.number) } else { value.label };
        Self {
            number: value.number,
            label,
            runs_bps: runs.iter().filter_map(|run| goodput(run)).collect(),
            ceiling: best.and_then(|(_, run)| run.ceiling.clone()),
            best_spoilt: best.is_some_and(|(_, run)| is_spoilt(run)),
            runs,
        }
    }

    /// The best run: what the studies of 2000 print.
    pub(crate) fn best(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::max)
    }

    /// Whether this host limited any of the runs.
    pub(crate) fn any_spoilt(&self) -> bool {
        self.runs.iter().any(|run| is_spoilt(run))
    }

    /// The worst run.
    pub(crate) fn worst(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::min)
    }

    /// The middle run, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.runs_bps)
    }

    /// Mean and sample standard deviation; none of a single run.
    pub(crate) fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let mut moments = Moments::default();
        self.runs_bps.iter().for_each(|bps| moments.record(*bps));
        Some((moments.mean()?, moments.stddev()?))
    }

    /// The median over runs of a metric of the whole measurement.
    pub(crate) fn middle(&self, metric: MetricId) -> Option<f64> {
        let values = self.runs.iter().filter_map(|run| run.value(metric, Stat::Value, None));
        median(&values.collect::<Vec<f64>>())
    }

    /// What the emulator counted of the data's packets, in all runs; none where no path was there.
    pub(crate) fn on_paths(&self) -> Option<PathCount> {
        let carrying = self.runs.iter().flat_map(|run| {
            let way = run.flows.first().map_or(Direction::Up, |flow| flow.direction);
            run.paths.iter().filter_map(move |path: &EmulatedPath| path.carrying(way))
        });
        carrying.fold(None, |sum, path| {
            let PathCount { taken, lost } = sum.unwrap_or_default();
            let lost = lost.saturating_add(path.lost_packets());
            Some(PathCount { taken: taken.saturating_add(path.taken_packets), lost })
        })
    }

    /// The largest window that the receivers advertised in any run, all streams together; the one
    /// asked for where no record tells.
    pub(crate) fn window_bytes(&self) -> Option<f64> {
        let rungs = self.runs.iter().filter_map(|run| run.ceiling.as_ref());
        let rungs = rungs.flat_map(|ceiling| &ceiling.rungs);
        let rungs = rungs.filter(|rung| rung.kind == "receive_window");
        let seen = rungs.flat_map(|rung| &rung.inputs).filter(|it| it.name == "window_bytes");
        let seen = seen.map(|input| input.value).reduce(f64::max);
        let streams = self.runs.first().map_or(1.0, |run| streams(&run.plan));
        seen.or_else(|| (self.number > 0).then_some(self.number as f64 * streams))
    }

    /// The median time of the runs' transfers; none where a run ends by time.
    pub(crate) fn transfer_ns(&self) -> Option<f64> {
        let time = |run: &&Record| {
            let by_bytes = match &run.plan {
                Plan::Tcp(plan) => matches!(plan.test.finish, Finish::Bytes(_)),
                Plan::Simulate(plan) => matches!(plan.finish, Finish::Bytes(_)),
                _ => false,
            };
            let value = |metric| run.value(metric, Stat::Value, None);
            value(MetricId::Transfer).or_else(|| value(MetricId::Span)).filter(|_| by_bytes)
        };
        median(&self.runs.iter().filter_map(time).collect::<Vec<f64>>())
    }
}

/// Connections of a run.
fn streams(plan: &Plan) -> f64 {
    match plan {
        Plan::Tcp(plan) => f64::from(plan.test.streams),
        Plan::Simulate(plan) => f64::from(plan.streams),
        _ => 1.0,
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
    use super::*;

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
