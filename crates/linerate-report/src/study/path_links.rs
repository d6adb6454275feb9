//! The emulated links between a topology's client and its server: what the plan says of them, and
//! the round trip that they make.

use linerate_core::lab::Layout;
use linerate_core::record::PathPlan;
use linerate_core::study::Topology;
use linerate_core::units::parse_span;

use crate::number;

/// The emulated links on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathLinks {
    /// Each in a line, in order.
    pub outlines: Vec<String>,
    /// The propagation of all of them there and back; none where nothing is emulated, and where
    /// nothing is delayed.
    pub rtt_ns: Option<f64>,
}

impl PathLinks {
    /// The links that packets cross from the client to the server.
    pub(crate) fn from_topology(topology: &Topology) -> Self {
        let Ok(layout) = Layout::from_plan(&topology.lab) else { return Self::default() };
        let ends = layout.node_index(&topology.client).zip(layout.address_of(&topology.server));
        if topology.client == topology.server {
            return Self::default();
        }
        let crossings = ends.map(|(from, to)| layout.route_crossings(from, to)).unwrap_or_default();
        let links = crossings.iter().filter_map(|crossing| layout.links.get(crossing.link));
        let paths: Vec<&PathPlan> = links.filter_map(|link| link.path.as_ref()).collect();
        let rtt_ns: f64 = paths.iter().map(|path| propagation_ns(path)).sum();
        Self {
            outlines: paths.iter().map(|path| path.outline()).collect(),
            rtt_ns: (rtt_ns > 0.0).then_some(rtt_ns),
        }
    }

    /// For a heading: the links, and the round trip; none where nothing is emulated.
    pub(crate) fn heading_text(&self) -> Option<String> {
        if self.outlines.is_empty() {
            return None;
        }
        let links = self.outlines.join("; ");
        let rtt = self.rtt_ns.map_or_else(String::new, |ns| {
            format!("; round trip {} ms", number::trimmed(&number::time_in_ms(ns)))
        });
        Some(format!("emulated: {links}{rtt}"))
    }
}

/// The fixed delay of both directions. Jitter and reordering come on top and bound nothing.
fn propagation_ns(path: &PathPlan) -> f64 {
    let delay = |backward| path.direction(backward).delay.and_then(|text| parse_span(&text).ok());
    [false, true].into_iter().filter_map(delay).map(|delay| delay.as_nanos() as f64).sum()
}
