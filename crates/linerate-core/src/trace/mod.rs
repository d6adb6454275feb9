//! What the probes of a trace say of the path: where packets are lost, where the queue stands,
//! who limits answers, how much each link adds.
//!
//! Routers answer when they like, so a hop proves nothing by silence: whatever is charged to a
//! place must show at all later places too.

pub mod bucket;
mod delay;
mod flow_loss;
mod loss;
pub mod places;
pub mod stopping;
#[cfg(test)]
mod tests;
mod witness;

use crate::record::{Direction, Finding, HopSample, TracePhase, TraceResult};

/// Fills in a trace's findings from its samples, in place of earlier ones. `load` is the direction
/// of the load, where there was one. Findings are in the order in which a reader wants them: loss
/// and queue first.
pub fn fill_findings(trace: &mut TraceResult, load: Option<Direction>) {
    delay::add_differences(trace);
    let (losses, limited) = loss::find_losses(trace);
    let mut findings: Vec<Finding> = places::find_loop(trace).into_iter().collect();
    findings.extend(losses);
    findings.extend(load.and_then(|direction| delay::find_queue(trace, direction)));
    findings.extend(trace.size_limits.iter().copied().map(Finding::Mtu));
    findings.extend(places::find_changed_marks(trace));
    findings.extend(places::spread(trace));
    findings.extend(limited);
    trace.findings = findings;
}

/// The round trips of a phase, in the order sent.
pub fn round_trips(samples: &[HopSample], phase: TracePhase) -> Vec<f64> {
    let of_phase = samples.iter().filter(|sample| sample.phase == phase);
    of_phase.filter_map(|sample| sample.rtt_ns).map(|ns| ns as f64).collect()
}
