//! Keeps the server's store to what its policy says: a look once a minute, and where something has
//! to go, some hundreds of results at a time with a pause between.

use std::path::Path;
use std::time::Duration;

use linerate_core::policy::Keep;
use linerate_core::record::Failure;
use linerate_sys::clock::{monotonic, sleep, wall};
use linerate_sys::stop::Stop;

use super::state::State;
use crate::store::Store;

/// Between two looks at the store.
const EVERY: Duration = Duration::from_secs(60);
/// Between two looks whether the server ends.
const LOOK: Duration = Duration::from_millis(250);
/// Between two steps; while a test runs, which disks and processors disturb, the longer one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Until `stop`; a policy that came meanwhile holds from the next look on.
pub(super) fn run(state: &State, stop: &Stop) {
    let Some(path) = &state.options.store else { return };
    while !stop.asked() {
        if let Some(keep) = state.gate.guard().policy().and_then(|policy| policy.keep.clone()) {
            tell(&keep, forget(state, path, &keep, stop));
        }
        let until = monotonic() + EVERY;
        while monotonic() < until && !stop.asked() {
            sleep(LOOK);
        }
    }
}

/// How many results went.
fn forget(state: &State, path: &Path, keep: &Keep, stop: &Stop) -> Result<u64, Failure> {
    let mut store = Store::open(path)?;
    let mut results = 0;
    while !stop.asked() {
        let step = store.forget(keep, wall())?;
        results += step.results;
        if !step.more {
            break;
        }
        sleep(if state.gate.running() == 0 { PAUSE.0 } else { PAUSE.1 });
    }
    Ok(results)
}

fn tell(keep: &Keep, forgotten: Result<u64, Failure>) {
    match forgotten {
        Ok(0) => {}
        Ok(results) => tracing::info!("{results} results deleted: the policy keeps them {keep}"),
        Err(failure) => tracing::warn!("no results deleted: {failure}"),
    }
}
