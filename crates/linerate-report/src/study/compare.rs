//! The table of the PREN study's §5.1 for any study: delay, throughput at one window, what is lost
//! of localhost's and of the bare cable's, and the hops; now, and as published.

use linerate_core::record::PathPlan;
use linerate_core::study::{StudyPlan, Topology};
use linerate_core::theory::link::LinkTechnology;

use super::figure::{FlowKind, FlowTest, by_window, of_devices};
use super::grid::{Grid, TopologyRow};
use crate::number;

/// Payload length in bytes whose round-trip time counts as that of a full segment.
const FULL_PAYLOAD: u32 = 1460;

/// Window in bytes at which topologies are compared, as in the PREN study.
const USUAL_WINDOW: u64 = 32_768;

/// The topologies that others are compared with, and one representative of each kind, as indexes
/// into the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Client and server are one host; of several such topologies, one whose loopback has
    /// Ethernet's MTU.
    pub localhost: Option<usize>,
    /// Two hosts joined by a cable alone.
    pub bare: Option<usize>,
    /// Switches but no router between the hosts.
    pub switched: Option<usize>,
    /// Routers between the hosts, and no rate limit.
    pub routed: Option<usize>,
    /// Routers without a rate limit, with the largest number of filter rules.
    pub filtered: Option<usize>,
    /// A link of limited rate between the hosts.
    pub limited: Option<usize>,
}

impl Roles {
    /// True if there is a topology to compare with and the tests vary the window, for which the
    /// table of §5.1 has columns.
    pub(crate) fn compare(&self, plan: &StudyPlan) -> bool {
        let mut flows = plan.tests.iter().filter(|test| FlowKind::from_test(test).is_some());
        let fits = flows.next().is_none_or(by_window);
        let paths = plan.tests.iter().any(|test| !of_devices(test));
        fits && paths && (self.localhost.is_some() || self.bare.is_some())
    }

    /// Finds the topology of each kind by hosts, hops, rates and filters in the plan, not by its
    /// name.
    pub(crate) fn new(plan: &StudyPlan) -> Self {
        let all = || plan.topologies.iter().enumerate();
        let first = |fits: &dyn Fn(&Topology) -> bool| {
            all().find(|(_, topology)| fits(topology)).map(|(index, _)| index)
        };
        let free =
            |t: &Topology| t.client != t.server && limited_rate(t).is_none() && !is_emulated(t);
        let routed = first(&|t| free(t) && t.l3_hops > 0);
        let filters = all().filter(|(_, t)| free(t) && t.l3_hops > 0);
        let most = filters.max_by_key(|(_, topology)| filter_rules(topology));
        Self {
            localhost: first(&|t| is_localhost(t) && ethernet_mtu(t))
                .or_else(|| first(&is_localhost)),
            bare: first(&|t| free(t) && t.l2_hops == 0 && t.l3_hops == 0),
            switched: first(&|t| free(t) && t.l2_hops > 0 && t.l3_hops == 0),
            routed,
            filtered: most
                .filter(|(index, topology)| filter_rules(topology) > 0 && Some(*index) != routed)
                .map(|(index, _)| index),
            limited: first(&|t| limited_rate(t).is_some()),
        }
    }
}

/// True if client and server are the same host.
pub(crate) fn is_localhost(topology: &Topology) -> bool {
    topology.client == topology.server
}

fn ethernet_mtu(topology: &Topology) -> bool {
    let host = topology.lab.hosts.iter().find(|host| host.name == topology.client);
    let published = topology.published.as_ref().and_then(|rows| rows.mtu_bytes);
    [host.and_then(|host| host.loopback_mtu_bytes), published].contains(&Some(1500))
}

/// Filter rules on all routers of a topology.
pub(crate) fn filter_rules(topology: &Topology) -> u32 {
    topology.lab.routers.iter().map(|router| router.filters).fold(0, u32::saturating_add)
}

/// The rate of the first link whose rate the plan limits, as its kind of link names it.
pub(crate) fn limited_rate(topology: &Topology) -> Option<String> {
    topology.lab.links.iter().find_map(|link| match (&link.rate, &link.path) {
        (Some(rate), _) => Some(rate.clone()),
        (None, Some(path)) => path_rate(path),
        (None, None) => None,
    })
}

fn path_rate(path: &PathPlan) -> Option<String> {
    let forward = path.direction(false);
    let named = forward.link.as_deref().and_then(|link| link.parse::<LinkTechnology>().ok());
    let facts = || path.direction_facts().ok()?.first()?.rate;
    named.map(LinkTechnology::bit_rate).or_else(facts).map(|rate| rate.to_string())
}

/// True if a link is emulated, whether or not its rate is limited; such a path cannot stand for a
/// cable.
fn is_emulated(topology: &Topology) -> bool {
    topology.lab.links.iter().any(|link| link.path.is_some())
}

/// The figures of one topology, either measured now or published.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TopologyFigures {
    /// Mean round-trip time in nanoseconds.
    pub rtt_ns: Option<f64>,
    /// Payload length with which that round-trip time was measured.
    pub payload_bytes: Option<u32>,
    /// Best throughput in bit/s.
    pub bps: Option<f64>,
    /// Number of switches and number of routers between the hosts.
    pub hops: (Option<u32>, Option<u32>),
    /// True if a ping run was limited by the measuring host.
    pub rtt_spoilt: bool,
    /// True if the run with the best throughput was limited by the measuring host.
    pub bps_spoilt: bool,
}

/// The figures of the comparison table of §5.1.
pub(crate) struct TopologyComparison {
    /// Value of the varied parameter in the throughput column; a window of 0 is the kernel's
    /// choice.
    pub value: u64,
    /// The parameter and its value in words: `64K window`, `streams 4`.
    pub setting: String,
    /// Payload length of the delay column.
    pub payload_bytes: u32,
    /// Figures measured now, one for each topology of the plan.
    pub now: Vec<TopologyFigures>,
    /// Published figures, one for each topology of the plan.
    pub past: Vec<TopologyFigures>,
    /// The topologies that others are compared with.
    pub roles: Roles,
}

impl TopologyComparison {
    /// The figures of the first ping and the first TCP test in the grid.
    pub(crate) fn new(grid: &Grid<'_>) -> Self {
        let value = reference_value(grid);
        let is_window = first_flow_test(grid).is_none_or(|test| by_window(test.test));
        let published = is_window.then_some(value);
        let payload_bytes = reference_payload(grid);
        let rows = || grid.topologies.iter();
        Self {
            value,
            setting: setting(grid, value),
            payload_bytes,
            now: rows().map(|row| measured_figures(row, value, payload_bytes)).collect(),
            past: rows().map(|row| published_figures(row, published, payload_bytes)).collect(),
            roles: Roles::new(grid.plan),
        }
    }

    /// The setting in a sentence: `a 64K window`, `streams 4`.
    pub(crate) fn setting_in_words(&self) -> String {
        let article = if self.setting.ends_with(" window") { "a " } else { "" };
        format!("{article}{}", self.setting)
    }

    /// Throughput that a topology loses against localhost: 1 minus its share.
    pub(crate) fn loss_of_localhost(
        &self,
        points: &[TopologyFigures],
        index: usize,
    ) -> Option<f64> {
        throughput_loss(points, index, self.roles.localhost)
    }

    /// True if this host limited the run of the topology or of the one it is compared with.
    pub(crate) fn is_share_spoilt(&self, index: usize, reference: Option<usize>) -> bool {
        self.is_spoilt(Some(index)) || self.is_spoilt(reference)
    }

    /// True if this host limited the run of the topology.
    pub(crate) fn is_spoilt(&self, index: Option<usize>) -> bool {
        index.and_then(|index| self.now.get(index)).is_some_and(|point| point.bps_spoilt)
    }

    /// Throughput that a topology loses against the bare cable: 1 minus its share.
    pub(crate) fn loss_of_bare(&self, points: &[TopologyFigures], index: usize) -> Option<f64> {
        throughput_loss(points, index, self.roles.bare)
    }
}

fn throughput_loss(
    points: &[TopologyFigures],
    index: usize,
    reference: Option<usize>,
) -> Option<f64> {
    let whole = points.get(reference?)?.bps.filter(|bps| *bps > 0.0)?;
    Some(1.0 - points.get(index)?.bps? / whole)
}

fn first_flow_test<'a, 'b>(grid: &'b Grid<'a>) -> Option<&'b FlowTest<'a>> {
    grid.topologies.first().and_then(|row| row.flows.first())
}

fn reference_value(grid: &Grid<'_>) -> u64 {
    let figures = first_flow_test(grid).map_or(&[][..], |test| &test.figures);
    let values: Vec<u64> = figures.iter().map(|figure| figure.number).collect();
    let usual = values.contains(&USUAL_WINDOW);
    if usual { USUAL_WINDOW } else { values.first().copied().unwrap_or(0) }
}

fn setting(grid: &Grid<'_>, value: u64) -> String {
    match first_flow_test(grid) {
        Some(test) if !by_window(test.test) => {
            let label =
                test.figure_at(value).map_or_else(String::new, |figure| figure.label.clone());
            format!("{} {label}", test.test.parameter().name)
        }
        _ => format!("{} window", number::window(value)),
    }
}

fn reference_payload(grid: &Grid<'_>) -> u32 {
    let test = grid.topologies.first().and_then(|row| row.ping.first());
    let sizes: Vec<u32> = test
        .map(|test| test.figures.iter().map(|figure| figure.payload_bytes).collect())
        .unwrap_or_default();
    if sizes.contains(&FULL_PAYLOAD) { FULL_PAYLOAD } else { sizes.last().copied().unwrap_or(0) }
}

fn measured_figures(
    row: &TopologyRow<'_>,
    window_bytes: u64,
    payload_bytes: u32,
) -> TopologyFigures {
    let rtts = row.ping.first().map(|test| {
        test.figures.iter().map(|figure| (figure.payload_bytes, figure.rtt_ns())).collect()
    });
    let (payload_bytes, rtt_ns) = at_or_above(rtts.unwrap_or_default(), payload_bytes);
    let figure = row.flows.first().and_then(|test| test.figure_at(window_bytes));
    let mut pings = row.ping.iter().take(1).flat_map(|test| &test.figures);
    TopologyFigures {
        rtt_ns,
        payload_bytes,
        bps: figure.and_then(|figure| figure.best_bps()),
        hops: (Some(row.topology.l2_hops), Some(row.topology.l3_hops)),
        rtt_spoilt: pings
            .any(|ping| Some(ping.payload_bytes) == payload_bytes && ping.any_spoilt()),
        bps_spoilt: figure.is_some_and(|figure| figure.best_spoilt),
    }
}

fn published_figures(
    row: &TopologyRow<'_>,
    window_bytes: Option<u64>,
    payload_bytes: u32,
) -> TopologyFigures {
    let published = &row.published;
    let sizes = published.ping.iter().map(|figure| figure.payload_bytes);
    let rtts = sizes.map(|size| (size, published.rtt_ns(size))).collect();
    let (payload_bytes, rtt_ns) = at_or_above(rtts, payload_bytes);
    let bps = window_bytes.and_then(|bytes| published.throughput_bps(bytes));
    let hops = row.published_hops();
    TopologyFigures { rtt_ns, payload_bytes, bps, hops, ..TopologyFigures::default() }
}

/// Round-trip time at `payload`, or at the next larger payload length that has a figure: the PREN
/// study's §5.1 takes topology i.1 at 1500 bytes, since it was not measured at 1460.
fn at_or_above(mut rtts: Vec<(u32, Option<f64>)>, payload: u32) -> (Option<u32>, Option<f64>) {
    rtts.sort_by_key(|(size, _)| *size);
    let found = rtts.into_iter().find(|(size, rtt)| *size >= payload && rtt.is_some());
    found.map_or((None, None), |(size, rtt)| (Some(size), rtt))
}
