//! The grid of a study filled with its figures: per topology, test and parameter the runs that
//! ended well, and what was published for the same place.

use std::collections::BTreeMap;

use linerate_core::record::{Record, RecordStatus};
use linerate_core::study::{PublishedRouter, StudyPlan, Test, TestKind, Topology, Value};

use super::StudyResults;
use super::figure::{FlowFigure, FlowKind, FlowTest, PingFigure, PingTest, by_window, of_devices};
use super::limit::{PlanLimit, slowest_link};
use super::past::{self, Published};
use super::path_links::PathLinks;
use crate::device::suite::{Suite, plain_name};

/// The records of a study run sorted into the cells of its plan, with the figures of each topology.
pub(crate) struct Grid<'a> {
    /// The study's plan, which gives the order of topologies and tests.
    pub plan: &'a StudyPlan,
    /// Name of the published figures: their year, or `published`.
    pub past: String,
    /// Records of this study in the order in which they were stored.
    pub records: Vec<&'a Record>,
    /// For each cell the latest record that ended well.
    pub well: Vec<&'a Record>,
    /// The figures of each topology, in the plan's order.
    pub topologies: Vec<TopologyRow<'a>>,
    /// Published frame rates of routers.
    pub routers: &'a [PublishedRouter],
}

/// The figures of one topology, measured and published.
pub(crate) struct TopologyRow<'a> {
    /// The topology as the plan describes it.
    pub topology: &'a Topology,
    /// The emulated links between its client and its server.
    pub way: PathLinks,
    /// Ping tests in the plan's order.
    pub ping: Vec<PingTest<'a>>,
    /// Throughput tests in the plan's order.
    pub flows: Vec<FlowTest<'a>>,
    /// The published figures of this topology.
    pub published: Published<'a>,
}

impl<'a> Grid<'a> {
    /// Sorts the records of `results` into the plan's grid.
    pub(crate) fn new(results: &'a StudyResults) -> Self {
        let plan = &results.plan;
        let of_study =
            |record: &&Record| record.cell.as_ref().is_some_and(|cell| cell.study == plan.name);
        let records: Vec<&Record> = results.records.iter().filter(of_study).collect();
        let cells = last_of_each_cell(&records);
        let row = |topology| TopologyRow::new(plan, topology, &cells, results);
        let topologies = plan.topologies.iter().map(row).collect();
        let well = cells.values().copied().collect();
        let routers = &results.published.routers;
        Self { plan, past: past::name(plan), records, well, topologies, routers }
    }

    /// The benchmark records that count; a device has the title of its topology.
    pub(crate) fn bench_suite(&self) -> Suite<'a> {
        Suite::new(self.well.iter().copied(), |record| {
            let row = record.cell.as_ref().and_then(|cell| self.find_topology(&cell.topology));
            row.map_or_else(|| plain_name(record), |row| row.topology.title.clone())
        })
    }

    /// The topologies that have tests of their path, not only tests of a device.
    pub(crate) fn path_topologies(&self) -> impl Iterator<Item = &TopologyRow<'a>> {
        let of_paths = |row: &&TopologyRow<'_>| {
            let mut tests = self.plan.tests.iter().filter(|test| test.is_on(&row.topology.id));
            // A topology without a test keeps its empty section.
            tests.clone().next().is_none() || tests.any(|test| !of_devices(test))
        };
        self.topologies.iter().filter(of_paths)
    }

    /// The figures of the topology with an identifier.
    pub(crate) fn find_topology(&self, topology: &str) -> Option<&TopologyRow<'a>> {
        self.topologies.iter().find(|row| row.topology.id == topology)
    }

    /// The throughput tests of the plan.
    pub(crate) fn flow_tests(&self) -> impl Iterator<Item = &'a Test> {
        self.plan
            .tests
            .iter()
            .filter(|test| !matches!(test.kind, TestKind::Ping { .. } | TestKind::Bench(_)))
    }
}

/// Topology, test, value of the parameter, and repetition of a cell.
type CellKey<'a> = (&'a str, &'a str, u64, u32);

/// For each cell the latest record that ended well; a resumed run may have measured a cell twice.
fn last_of_each_cell<'a>(records: &[&'a Record]) -> BTreeMap<CellKey<'a>, &'a Record> {
    let mut cells: BTreeMap<CellKey<'a>, &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.status == RecordStatus::Ok) {
        let Some(cell) = &record.cell else { continue };
        let key = (cell.topology.as_str(), cell.test.as_str(), cell.parameter, cell.repetition);
        let held = cells.entry(key).or_insert(record);
        if held.started_at <= record.started_at {
            *held = record;
        }
    }
    cells
}

impl<'a> TopologyRow<'a> {
    fn new(
        plan: &'a StudyPlan,
        topology: &'a Topology,
        cells: &BTreeMap<CellKey<'a>, &'a Record>,
        results: &'a StudyResults,
    ) -> Self {
        let runs = |test: &'a Test, parameter: u64| -> Vec<&'a Record> {
            let first = (topology.id.as_str(), test.id.as_str(), parameter, 0);
            let last = (topology.id.as_str(), test.id.as_str(), parameter, u32::MAX);
            cells.range(first..=last).map(|(_, record)| *record).collect()
        };
        let (mut ping, mut flows) = (Vec::new(), Vec::new());
        for test in plan.tests.iter().filter(|test| test.is_on(&topology.id)) {
            if let TestKind::Ping { sizes_bytes, .. } = &test.kind {
                let figure = |size: &u32| PingFigure::new(*size, runs(test, (*size).into()));
                ping.push(PingTest { test, figures: sizes_bytes.iter().map(figure).collect() });
            } else if FlowKind::from_test(test).is_some() {
                let figure = |value: Value| {
                    let runs = runs(test, value.number);
                    FlowFigure::new(test, value, runs)
                };
                let figures = test.values().into_iter().map(figure).collect();
                flows.push(FlowTest { test, figures });
            }
        }
        let published = topology.published.as_ref();
        let published = published.map(|rows| Published::new(rows, results)).unwrap_or_default();
        Self { topology, way: PathLinks::from_topology(topology), ping, flows, published }
    }

    /// The throughput test with an identifier.
    pub(crate) fn find_flow_test(&self, test: &str) -> Option<&FlowTest<'a>> {
        self.flows.iter().find(|flow| flow.test.id == test)
    }

    /// The ceiling of the runs: that of the slowest link in the plan, or where the plan limits no
    /// link, the one in the record of the best run.
    ///
    /// The hosts at the ends of a path cannot see a shaper in its middle; the plan names it.
    pub(crate) fn ceiling_bps(&self, figure: &FlowFigure<'_>) -> Option<f64> {
        match self.slowest_link(figure) {
            Some(limit) => Some(limit.payload_bps),
            None => figure.ceiling.as_ref()?.value,
        }
    }

    /// Goodput of the best run as share of `ceiling_bps`.
    pub(crate) fn ceiling_share(&self, figure: &FlowFigure<'_>) -> Option<f64> {
        Some(figure.best_bps()? / self.ceiling_bps(figure)?)
    }

    /// The largest rate that the window allows over the emulated round trip, at most the ceiling.
    /// `None` without an emulated round trip, since the plan then does not tell the delay.
    pub(crate) fn window_bound_bps(&self, figure: &FlowFigure<'_>) -> Option<f64> {
        let rtt_ns = self.way.rtt_ns?;
        figure.best_bps()?;
        let bps = figure.window_bytes()? * 8e9 / rtt_ns;
        Some(self.ceiling_bps(figure).map_or(bps, |ceiling| bps.min(ceiling)))
    }

    /// Goodput of the best run as share of `window_bound_bps`.
    pub(crate) fn window_bound_share(&self, figure: &FlowFigure<'_>) -> Option<f64> {
        Some(figure.best_bps()? / self.window_bound_bps(figure)?)
    }

    /// True if the window bound applies to a test: it varies the window and the round trip is
    /// emulated.
    pub(crate) fn has_window_bound(&self, test: &FlowTest<'_>) -> bool {
        by_window(test.test) && self.way.rtt_ns.is_some()
    }

    /// The figure whose runs include a record of this topology.
    pub(crate) fn figure_of(&self, record: &Record) -> Option<&FlowFigure<'a>> {
        let cell = record.cell.as_ref()?;
        self.find_flow_test(&cell.test)?.figure_at(cell.parameter)
    }

    /// The bound by the slowest link in the plan for the packets of the best run.
    pub(crate) fn slowest_link(&self, figure: &FlowFigure<'_>) -> Option<PlanLimit> {
        slowest_link(self.topology, figure.ceiling.as_ref())
    }

    /// The lowest published numbers of switches and routers, which are the same in every row of a
    /// topology.
    pub(crate) fn published_hops(&self) -> (Option<u32>, Option<u32>) {
        self.published.tcp.first().map_or((None, None), |row| (row.l2_hops, row.l3_hops))
    }
}
