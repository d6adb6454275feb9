//! The figures of one value of a test on one topology: every run that ended well, and statistics
//! over these runs.
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

/// A ping test on one topology, with a figure for each payload length.
pub(crate) struct PingTest<'a> {
    /// The test as the plan describes it.
    pub test: &'a Test,
    /// A figure for each payload length, in the plan's order.
    pub figures: Vec<PingFigure<'a>>,
}

/// The runs of a ping test on one topology with one payload length.
pub(crate) struct PingFigure<'a> {
    /// Length of the payload in bytes.
    pub payload_bytes: u32,
    /// The runs that ended well.
    pub runs: Vec<&'a Record>,
    /// Mean round-trip time of each run, in nanoseconds.
    pub means_ns: Vec<f64>,
    /// Pings per second of each run, measured.
    pub pps: Vec<f64>,
    /// Probes sent and probes answered, summed over the runs.
    pub probes: Option<(f64, f64)>,
}

/// A throughput test on one topology, with a figure for each value of its parameter.
pub(crate) struct FlowTest<'a> {
    /// The test as the plan describes it.
    pub test: &'a Test,
    /// A figure for each value of the parameter, in the plan's order.
    pub figures: Vec<FlowFigure<'a>>,
}

/// The runs of a throughput test on one topology with one value of its parameter.
pub(crate) struct FlowFigure<'a> {
    /// The value as the number by which cells are found.
    pub number: u64,
    /// The value as headings print it.
    pub label: String,
    /// The runs that ended well, by repetition.
    pub runs: Vec<&'a Record>,
    /// Goodput of each of these runs in bit/s.
    pub runs_bps: Vec<f64>,
    /// The ceiling in the record of the best run.
    pub ceiling: Option<Ceiling>,
    /// True if this host limited the best run.
    pub best_spoilt: bool,
}

/// Transport protocol of a throughput test, and whether it is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    /// TCP of the hosts' kernels.
    Tcp,
    /// TCP of a model, in virtual time.
    Simulated,
    /// UDP of the hosts' kernels.
    Udp,
}

impl FlowKind {
    /// The kind of a throughput test; `None` for a test of round trips.
    pub(crate) const fn from_test(test: &Test) -> Option<Self> {
        match test.kind {
            TestKind::Ping { .. } | TestKind::Bench(_) => None,
            TestKind::Tcp(_) => Some(Self::Tcp),
            TestKind::Simulate(_) => Some(Self::Simulated),
            TestKind::Udp(_) => Some(Self::Udp),
        }
    }

    /// The word for headings; figures of a model are always called simulated.
    pub(crate) const fn heading_word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Simulated => "simulated",
            Self::Udp => "udp",
        }
    }

    /// The word for the beginning of a sentence.
    pub(crate) const fn sentence_word(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Simulated => "simulated TCP",
            Self::Udp => "UDP",
        }
    }

    /// The title of a throughput plot.
    pub(crate) const fn plot_title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP throughput",
            Self::Simulated => "Simulated TCP throughput",
            Self::Udp => "UDP throughput",
        }
    }
}

/// True if a test is a benchmark of a device, not of a path.
pub(crate) const fn of_devices(test: &Test) -> bool {
    matches!(test.kind, TestKind::Bench(_))
}

/// True if a test varies the window.
pub(crate) fn by_window(test: &Test) -> bool {
    test.parameter().key == "windows_bytes"
}

impl<'a> FlowTest<'a> {
    /// The largest number of runs with one value of the parameter.
    pub(crate) fn runs_most(&self) -> usize {
        self.figures.iter().map(|figure| figure.runs_bps.len()).max().unwrap_or(0)
    }

    /// The figure at one value of the parameter.
    pub(crate) fn figure_at(&self, number: u64) -> Option<&FlowFigure<'a>> {
        self.figures.iter().find(|figure| figure.number == number)
    }

    /// The kind of the test.
    pub(crate) fn flow_kind(&self) -> FlowKind {
        FlowKind::from_test(self.test).unwrap_or(FlowKind::Tcp)
    }
}

impl<'a> PingFigure<'a> {
    pub(super) fn new(payload_bytes: u32, runs: Vec<&'a Record>) -> Self {
        let all = |metric, stat| -> Vec<f64> {
            runs.iter()
                .filter_map(|run| value_for_payload(run, metric, stat, payload_bytes))
                .collect()
        };
        let sent = all(MetricId::Sent, Stat::Value);
        let received = all(MetricId::Received, Stat::Value);
        let is_counted = !sent.is_empty() && sent.len() == received.len();
        let (means_ns, pps) = (all(MetricId::Rtt, Stat::Mean), all(MetricId::Pps, Stat::Value));
        Self {
            payload_bytes,
            means_ns,
            pps,
            runs,
            probes: is_counted.then(|| (sent.iter().sum(), received.iter().sum())),
        }
    }

    /// The median over runs of their mean round-trip time.
    pub(crate) fn rtt_ns(&self) -> Option<f64> {
        median(&self.means_ns)
    }

    /// True if this host limited any of the runs.
    pub(crate) fn any_spoilt(&self) -> bool {
        self.runs.iter().any(|run| is_spoilt(run))
    }

    /// One second divided by the mean round trip, as the studies of 2000 print pings per second.
    pub(crate) fn pps_from_mean(&self) -> Option<f64> {
        self.rtt_ns().filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns)
    }

    /// The median over runs of the measured pings per second.
    pub(crate) fn pps_measured(&self) -> Option<f64> {
        median(&self.pps)
    }
}

/// A metric at one payload length; a record of one payload length may leave the length out of its
/// rows.
fn value_for_payload(
    record: &Record,
    metric: MetricId,
    stat: Stat,
    payload_bytes: u32,
) -> Option<f64> {
    record.value_at(metric, stat, payload_bytes).or_else(|| {
        let mut rows = record.summary.iter().filter(|row| row.metric == metric && row.stat == stat);
        rows.find(|row| row.payload_bytes.is_none()).map(|row| row.value)
    })
}

/// Data packets that entered the emulated paths of some runs, and packets lost there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathCount {
    /// Packets that entered the paths.
    pub taken: u64,
    /// Packets of these that the paths lost.
    pub lost: u64,
}

impl<'a> FlowFigure<'a> {
    pub(super) fn new(test: &Test, value: Value, runs: Vec<&'a Record>) -> Self {
        let goodput = |run: &Record| run.summary_value(MetricId::Goodput, Stat::Value, None);
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

    /// Goodput of the best run, which the studies of 2000 print.
    pub(crate) fn best_bps(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::max)
    }

    /// True if this host limited any of the runs.
    pub(crate) fn any_spoilt(&self) -> bool {
        self.runs.iter().any(|run| is_spoilt(run))
    }

    /// Goodput of the worst run.
    pub(crate) fn worst_bps(&self) -> Option<f64> {
        self.runs_bps.iter().copied().reduce(f64::min)
    }

    /// Median goodput of the runs; of an even number the mean of the two in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.runs_bps)
    }

    /// Mean and sample standard deviation of the runs' goodput; `None` for a single run.
    pub(crate) fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let mut moments = Moments::default();
        self.runs_bps.iter().for_each(|bps| moments.record(*bps));
        Some((moments.mean()?, moments.stddev()?))
    }

    /// The median over the runs of a metric of the whole measurement.
    pub(crate) fn middle(&self, metric: MetricId) -> Option<f64> {
        let values =
            self.runs.iter().filter_map(|run| run.summary_value(metric, Stat::Value, None));
        median(&values.collect::<Vec<f64>>())
    }

    /// Data packets that the emulated paths of all runs took and lost; `None` if no path was
    /// emulated.
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

    /// The largest window that receivers advertised in any run, summed over the streams; the window
    /// of the plan where no record states one.
    pub(crate) fn window_bytes(&self) -> Option<f64> {
        let rungs = self.runs.iter().filter_map(|run| run.ceiling.as_ref());
        let rungs = rungs.flat_map(|ceiling| &ceiling.rungs);
        let rungs = rungs.filter(|rung| rung.kind == "receive_window");
        let seen = rungs.flat_map(|rung| &rung.inputs).filter(|input| input.name == "window_bytes");
        let seen = seen.map(|input| input.value).reduce(f64::max);
        let streams = self.runs.first().map_or(1.0, |run| streams(&run.plan));
        seen.or_else(|| (self.number > 0).then_some(self.number as f64 * streams))
    }

    /// The median duration of the transfers; `None` if runs end by time, not by bytes.
    pub(crate) fn transfer_ns(&self) -> Option<f64> {
        let time = |run: &&Record| {
            let by_bytes = match &run.plan {
                Plan::Tcp(plan) => matches!(plan.test.finish, Finish::Bytes(_)),
                Plan::Simulate(plan) => matches!(plan.finish, Finish::Bytes(_)),
                _ => false,
            };
            let value = |metric| run.summary_value(metric, Stat::Value, None);
            value(MetricId::Transfer).or_else(|| value(MetricId::Span)).filter(|_| by_bytes)
        };
        median(&self.runs.iter().filter_map(time).collect::<Vec<f64>>())
    }
}

/// Number of connections in a run.
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
pub(crate) fn knee_window(points: &[(u64, f64)]) -> Option<u64> {
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
            knee_window(
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
        assert_eq!(knee_window(&[]), None);
        assert_eq!(knee_window(&[(0, 9.0), (1, 1.0), (2, f64::NAN)]), None);
    }
}
