//! What the questions of a plan ask of a run: figures of the grid, their bounds, and what was
//! published.

use linerate_core::record::{MetricId, Record, Stat};
use linerate_core::study::{
    FigureKind, FigureSetting, FigureStat, Figures, Measured, PublishedItem, Question,
};

use super::StudyResults;
use super::figure::{FlowFigure, by_window};
use super::grid::{Grid, TopologyRow};

/// Answers the questions' requests for figures from a grid.
pub(super) struct GridFacts<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) results: &'a StudyResults,
}

impl<'a> GridFacts<'a> {
    fn topology_row(&self, place: &FigureSetting<'_>) -> Option<&'a TopologyRow<'a>> {
        self.grid.find_topology(&place.topology.id)
    }

    fn flow_figure(
        &self,
        place: &FigureSetting<'_>,
    ) -> Option<(&'a TopologyRow<'a>, &'a FlowFigure<'a>)> {
        let row = self.topology_row(place)?;
        Some((row, row.find_flow_test(&place.test.id)?.figure_at(place.value.number)?))
    }

    /// The runs from which a figure of a question is computed, directly or through other figures;
    /// published and theoretical figures have none.
    pub(super) fn behind(&self, question: &Question, name: &str) -> Vec<&'a Record> {
        let Some(figure) = question.figures.get(name) else { return Vec::new() };
        match &figure.kind {
            FigureKind::Measured(of) => {
                let place = FigureSetting::find_in_plan(self.grid.plan, of);
                place.map(|place| self.measured(&place, of)).unwrap_or_default()
            }
            kind if kind.is_published() => Vec::new(),
            FigureKind::CeilingOf(_) | FigureKind::BoundOf(_) => Vec::new(),
            // The plan's check knows that no figure is made from itself.
            kind => kind.sources().into_iter().flat_map(|of| self.behind(question, of)).collect(),
        }
    }

    /// The runs of a measured figure: the best run alone where the figure is that run's.
    fn measured(&self, place: &FigureSetting<'_>, of: &Measured) -> Vec<&'a Record> {
        let (metric, all) = (of.metric_of(place.test), self.records(place));
        let rate = |run: &&&Record| run_value(run, metric).unwrap_or(f64::NEG_INFINITY);
        let fastest = || all.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
        match (of.stat, metric) {
            (FigureStat::Best, MetricId::Goodput) => fastest().copied().into_iter().collect(),
            _ => all.to_vec(),
        }
    }

    fn records(&self, place: &FigureSetting<'_>) -> &'a [&'a Record] {
        if let Some((_, figure)) = self.flow_figure(place) {
            return &figure.runs;
        }
        let ping = self.topology_row(place).and_then(|row| {
            let mut tests = row.ping.iter();
            tests.find(|ping| ping.test.id == place.test.id)
        });
        let figure = ping.and_then(|test| {
            let mut figures = test.figures.iter();
            figures.find(|figure| u64::from(figure.payload_bytes) == place.value.number)
        });
        figure.map_or(&[], |figure| &figure.runs)
    }
}

impl Figures for GridFacts<'_> {
    fn run_values(&self, place: &FigureSetting<'_>, metric: MetricId) -> Vec<f64> {
        self.records(place).iter().filter_map(|run| run_value(run, metric)).collect()
    }

    fn ceiling_bps(&self, place: &FigureSetting<'_>) -> Option<f64> {
        let (row, figure) = self.flow_figure(place)?;
        row.ceiling_bps(figure)
    }

    fn bound_bps(&self, place: &FigureSetting<'_>) -> Option<f64> {
        let (row, figure) = self.flow_figure(place)?;
        let window = row.window_bound_bps(figure).filter(|_| by_window(place.test));
        window.or_else(|| row.ceiling_bps(figure))
    }

    fn published(&self, item: &str) -> Option<&PublishedItem> {
        self.results.published.items.iter().find(|row| row.item == item)
    }

    fn published_at(&self, place: &FigureSetting<'_>, metric: MetricId) -> Option<f64> {
        let published = &self.topology_row(place)?.published;
        let size = u32::try_from(place.value.number);
        match metric {
            MetricId::Goodput if by_window(place.test) => {
                published.throughput_bps(place.value.number)
            }
            MetricId::Rtt => published.rtt_ns(size.ok()?),
            MetricId::PpsPaper => published.pings_per_second(size.ok()?),
            _ => None,
        }
    }
}

/// A metric of a run: its total, else the mean of its samples, else their median, else the largest.
fn run_value(run: &Record, metric: MetricId) -> Option<f64> {
    let stats = [Stat::Value, Stat::Mean, Stat::P50, Stat::Max, Stat::Min];
    stats.into_iter().find_map(|stat| run.summary_value(metric, stat, None))
}
