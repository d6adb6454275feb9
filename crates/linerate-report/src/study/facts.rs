//! What the questions of a plan ask of a run: figures of the grid, their bounds, and what was
//! published.

use linerate_core::record::{MetricId, Record, Stat};
use linerate_core::study::{
    FigureKind, FigureStat, Figures, Measured, PublishedItem, Question, Setting,
};

use super::Results;
use super::figure::{FlowFigure, by_window};
use super::grid::{Grid, Row};

/// Answers the questions' requests for figures from a grid.
pub(super) struct Facts<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) results: &'a Results,
}

impl<'a> Facts<'a> {
    fn row(&self, place: &Setting<'_>) -> Option<&'a Row<'a>> {
        self.grid.row(&place.topology.id)
    }

    fn flow(&self, place: &Setting<'_>) -> Option<(&'a Row<'a>, &'a FlowFigure<'a>)> {
        let row = self.row(place)?;
        Some((row, row.flow(&place.test.id)?.at(place.value.number)?))
    }

    /// The runs from which a figure of a question is computed, directly or through other figures;
    /// published and theoretical figures have none.
    pub(super) fn behind(&self, question: &Question, name: &str) -> Vec<&'a Record> {
        let Some(figure) = question.figures.get(name) else { return Vec::new() };
        match &figure.kind {
            FigureKind::Measured(of) => {
                let place = Setting::find(self.grid.plan, of);
                place.map(|place| self.measured(&place, of)).unwrap_or_default()
            }
            kind if kind.is_published() => Vec::new(),
            FigureKind::CeilingOf(_) | FigureKind::BoundOf(_) => Vec::new(),
            // The plan's check knows that no figure is made from itself.
            kind => kind.sources().into_iter().flat_map(|of| self.behind(question, of)).collect(),
        }
    }

    /// The runs of a measured figure: the best run alone where the figure is that run's.
    fn measured(&self, place: &Setting<'_>, of: &Measured) -> Vec<&'a Record> {
        let (metric, all) = (of.metric_of(place.test), self.records(place));
        let rate = |run: &&&Record| value(run, metric).unwrap_or(f64::NEG_INFINITY);
        let fastest = || all.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
        match (of.stat, metric) {
            (FigureStat::Best, MetricId::Goodput) => fastest().copied().into_iter().collect(),
            _ => all.to_vec(),
        }
    }

    fn records(&self, place: &Setting<'_>) -> &'a [&'a Record] {
        if let Some((_, figure)) = self.flow(place) {
            return &figure.runs;
        }
        let ping = self.row(place).and_then(|row| {
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

impl Figures for Facts<'_> {
    fn runs(&self, place: &Setting<'_>, metric: MetricId) -> Vec<f64> {
        self.records(place).iter().filter_map(|run| value(run, metric)).collect()
    }

    fn ceiling_bps(&self, place: &Setting<'_>) -> Option<f64> {
        let (row, figure) = self.flow(place)?;
        row.ceiling_bps(figure)
    }

    fn bound_bps(&self, place: &Setting<'_>) -> Option<f64> {
        let (row, figure) = self.flow(place)?;
        let window = row.window_bound_bps(figure).filter(|_| by_window(place.test));
        window.or_else(|| row.ceiling_bps(figure))
    }

    fn published(&self, item: &str) -> Option<&PublishedItem> {
        self.results.published.items.iter().find(|row| row.item == item)
    }

    fn published_at(&self, place: &Setting<'_>, metric: MetricId) -> Option<f64> {
        let published = &self.row(place)?.published;
        let size = u32::try_from(place.value.number);
        match metric {
            MetricId::Goodput if by_window(place.test) => published.bps(place.value.number),
            MetricId::Rtt => published.rtt_ns(size.ok()?),
            MetricId::PpsPaper => published.pps(size.ok()?),
            _ => None,
        }
    }
}

/// A metric of a run: its total, else the mean of its samples, else their median, else the largest.
fn value(run: &Record, metric: MetricId) -> Option<f64> {
    let stats = [Stat::Value, Stat::Mean, Stat::P50, Stat::Max, Stat::Min];
    stats.into_iter().find_map(|stat| run.value(metric, stat, None))
}
