//! The delay under load, beside the rate: a queue never explains a low rate by itself.

use super::evidence::Evidence;
use crate::record::{Cause, Latency};

/// Delay that the load may add before it has a name, in seconds.
const ADDED_S: f64 = 0.1;
/// Or so many times the round trip at rest, when it adds at least [`NOTICED_S`].
const TIMES: f64 = 2.0;
const NOTICED_S: f64 = 0.03;

/// The round trip at rest and under load, and what delays it.
pub(super) fn latency(evidence: &Evidence) -> Option<Latency> {
    let probes = &evidence.probes;
    let at_rest = evidence.rtt.base_s.filter(|_| !evidence.rtt.base_is_loaded);
    let idle = probes.idle_s.or(at_rest)?;
    let loaded = probes.loaded_s.or(evidence.rtt.loaded_s)?;
    let added = loaded - idle;
    // One moment of a socket does not tell whose queue its last round trips met.
    let is_load = evidence.moment.is_none();
    let bad = is_load && (added >= ADDED_S || loaded >= TIMES * idle && added >= NOTICED_S);
    let back = probes.added_back_s.unwrap_or(0.0);
    let forward = probes.added_forward_s.unwrap_or(added);
    let cause = match bad {
        false => None,
        true if back > 2.0 * forward => Some(Cause::AckPath),
        true => Some(Cause::StandingQueue),
    };
    Some(Latency { cause, idle_ns: idle * 1e9, loaded_ns: loaded * 1e9 })
}
