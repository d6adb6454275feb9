//! Keeps the server's store to what its policy says: a look once a minute, and where something has
//! to go, some hundreds of results at a time with a pause between.

use std::path::Path;
use std::time::Duration;

use linerate_core::policy::Keep;
use linerate_core::record::Failure;
use linerate_store::Store;
use linerate_sys::clock::{monotonic, sleep, wall_time};
use linerate_sys::stop::Stop;

use super::state::State;

/// Between two looks at the store.
const EVERY: Duration = Duration::from_secs(60);
/// Between two looks whether the server ends.
const LOOK: Duration = Duration::from_millis(250);
/// Between two steps; while a test runs, which disks and processors disturb, the longer one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Until `stop`; a policy that came meanwhile holds from the next look on.
pub(super) fn run(state: &State, stop: &Stop) {
    let Some(path) = &state.options.store else { return };
    while !stop.is_requested() {
        if let Some(keep) =
            state.gate.policy_guard().policy().and_then(|policy| policy.keep.clone())
        {
            log_deleted(&keep, forget(state, path, &keep, stop));
        }
        sleep_or_stop(EVERY, stop);
    }
}

/// Sleeps until the time is over or the server ends.
fn sleep_or_stop(span: Duration, stop: &Stop) {
    let until = monotonic() + span;
    while monotonic() < until && !stop.is_requested() {
        sleep(LOOK);
    }
}

/// How many results went.
fn forget(state: &State, path: &Path, keep: &Keep, stop: &Stop) -> Result<u64, Failure> {
    let mut store = Store::open(path)?;
    let mut results = 0;
    while !stop.is_requested() {
        let step = store.forget(keep, wall_time())?;
        results += step.results;
        if !step.more {
            break;
        }
        sleep(if state.gate.running() == 0 { PAUSE.0 } else { PAUSE.1 });
    }
    Ok(results)
}

fn log_deleted(keep: &Keep, forgotten: Result<u64, Failure>) {
    match forgotten {
        Ok(0) => {}
        Ok(results) => tracing::info!("{results} results deleted: the policy keeps them {keep}"),
        Err(failure) => tracing::warn!("no results deleted: {failure}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_server_ends_the_wait_and_so_does_its_time() {
        let stop = Stop::new();
        stop.request_stop();
        let begin = monotonic();
        sleep_or_stop(EVERY, &stop);
        assert!(monotonic().duration_since(begin) < EVERY, "a server that ends waits for nothing");
        // Nobody asked: it comes back by itself.
        let (told, returned) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            sleep_or_stop(Duration::ZERO, &Stop::new());
            told.send(())
        });
        returned.recv_timeout(EVERY).expect("its time is over");
    }
}
