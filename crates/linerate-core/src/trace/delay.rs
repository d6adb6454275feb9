//! What each hop adds to the round trip, and from which hop on it rises under load.
//!
//! A router answers by its processor, so a hop's own round trip is an upper bound of the path to
//! it. A difference is told only where its interval leaves 0 out and it is more than what a hop
//! differs from itself.

use super::round_trips;
use crate::record::{AddedDelay, Direction, Finding, Hop, HopSample, TracePhase, TraceResult};
use crate::stats::{median, median_interval};

/// Confidence of the intervals of both medians: together they hold with 95 % and more.
const CONFIDENCE: f64 = 0.975;
/// A difference counts above so many times the floor.
const FLOORS: f64 = 3.0;
/// Least rise of a round trip under load that counts as a queue.
const RISE_NS_MIN: f64 = 1e6;
/// Rise of a router's answers over the end's, above which the router itself is slow.
const OWN_SLOWNESS: f64 = 1.5;
/// Answers under load that a hop must give.
const LOADED_MIN: usize = 3;

/// Fills in the delay of each hop beyond the one before that answers.
pub(super) fn add_differences(trace: &mut TraceResult) {
    let tick = trace.floor_ns.unwrap_or(0) as f64;
    let mut before: Option<MedianDelay> = None;
    for hop in &mut trace.hops {
        hop.added = None;
        let Some(here) =
            MedianDelay::from_round_trips(&round_trips(&hop.samples, TracePhase::Idle))
        else {
            continue;
        };
        if let Some(before) = before {
            let added = AddedDelay {
                median_ns: here.median - before.median,
                low_ns: here.low - before.high,
                high_ns: here.high - before.low,
            };
            let floor = here.floor.max(before.floor).max(tick);
            let told = added.low_ns > 0.0 && added.median_ns > FLOORS * floor;
            hop.added = told.then_some(added);
        }
        before = Some(here);
    }
}

#[derive(Clone, Copy)]
struct MedianDelay {
    median: f64,
    low: f64,
    high: f64,
    /// Difference between the medians of the two halves of the probes.
    floor: f64,
}

impl MedianDelay {
    fn from_round_trips(round_trips: &[f64]) -> Option<Self> {
        let interval = median_interval(round_trips, CONFIDENCE)?;
        let half = |odd| {
            let each = round_trips.iter().enumerate().filter(|(index, _)| index % 2 == odd);
            median(&each.map(|(_, ns)| *ns).collect::<Vec<_>>())
        };
        let floor = (half(0)? - half(1)?).abs();
        let median = median(round_trips)?;
        Some(Self { median, low: interval.low, high: interval.high, floor })
    }
}

/// The first hop whose round trip rises under load, as all later ones do.
pub(super) fn find_queue(trace: &TraceResult, direction: Direction) -> Option<Finding> {
    let places =
        trace.hops.iter().filter_map(|hop: &Hop| Some((hop.ttl, loaded_rtt_rise(&hop.samples)?)));
    let mut places: Vec<(u8, f64)> = places.collect();
    let end = trace.hops.last().filter(|hop| hop.is_end).map(|hop| hop.ttl);
    if let (Some(end), Some(of_end)) = (end, loaded_rtt_rise(&trace.echoes)) {
        places.retain(|(ttl, _)| *ttl != end);
        places.push((end, of_end));
    }
    let (_, whole) = *places.last()?;
    if whole < RISE_NS_MIN.max(FLOORS * trace.floor_ns.unwrap_or(0) as f64) {
        return None;
    }
    // More than the end: a router that is slow to answer while it forwards.
    places.retain(|(_, rise)| *rise <= OWN_SLOWNESS * whole);
    let late = places.iter().rev().take_while(|(_, rise)| *rise >= whole / 2.0).count();
    let first = places.len() - late;
    let after = if first == 0 { 0 } else { places[first - 1].0 };
    Some(Finding::Queue { after, at: places[first].0, rise_ns: whole, direction })
}

fn loaded_rtt_rise(samples: &[HopSample]) -> Option<f64> {
    let loaded = round_trips(samples, TracePhase::Loaded);
    if loaded.len() < LOADED_MIN {
        return None;
    }
    Some(median(&loaded)? - median(&round_trips(samples, TracePhase::Idle))?)
}
