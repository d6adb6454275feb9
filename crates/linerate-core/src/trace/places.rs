//! Where headers are changed and where flows part, by what arrived at each hop.

use crate::record::{ArrivedMarks, Finding, Hop, TraceResult};

/// Least number of distances at which one router answers that make a loop: two can be a router that
/// forwards packets it should have answered.
const ROUND_MIN: usize = 3;

/// The first router to which a packet returns: a loop.
pub fn find_loop(trace: &TraceResult) -> Option<Finding> {
    let routers = trace.hops.iter().filter(|hop| !hop.is_end);
    let seen = |address: &str| {
        let here = |hop: &&Hop| hop.nodes.iter().any(|node| node.address == address);
        routers.clone().filter(here).count()
    };
    let mut each =
        routers.clone().flat_map(|hop| hop.nodes.iter().map(move |node| (hop.ttl, node)));
    let (at, node) = each.find(|(_, node)| seen(&node.address) >= ROUND_MIN)?;
    Some(Finding::Loop { at, address: node.address.clone() })
}

/// Places where DSCP, ECN, addresses or ports change.
pub(super) fn find_changed_marks(trace: &TraceResult) -> Vec<Finding> {
    let (Some(dscp), Some(ecn)) = (trace.dscp_sent, trace.ecn_sent) else { return Vec::new() };
    let mut seen = ArrivedMarks { dscp, ecn, translated: false };
    let mut after = 0;
    let mut found = Vec::new();
    for hop in &trace.hops {
        let Some(here) = hop.arrived else { continue };
        let at = hop.ttl;
        if here.dscp != seen.dscp {
            found.push(Finding::Dscp { after, at, from: seen.dscp, to: here.dscp });
        }
        if here.ecn != seen.ecn {
            found.push(Finding::Ecn { after, at, from: seen.ecn, to: here.ecn });
        }
        if here.translated && !seen.translated {
            found.push(Finding::Translated { after, at });
        }
        (seen, after) = (here, at);
    }
    found
}

/// Runs of hops at which flows meet several routers.
pub(super) fn spread(trace: &TraceResult) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut open: Option<(u8, u8, u16)> = None;
    let mut shared = 0;
    for hop in &trace.hops {
        let width = u16::try_from(hop.nodes.len()).unwrap_or(u16::MAX);
        match (width, open) {
            (0, _) => {}
            (1, Some((after, at, widest))) => {
                found.push(Finding::Spread { after, at, width: widest, until: Some(hop.ttl) });
                open = None;
            }
            (1, None) => {}
            (_, None) => open = Some((shared, hop.ttl, width)),
            (_, Some((after, at, widest))) => open = Some((after, at, widest.max(width))),
        }
        if width == 1 {
            shared = hop.ttl;
        }
    }
    found.extend(open.map(|(after, at, width)| Finding::Spread { after, at, width, until: None }));
    found
}
