//! The runs of a server, by their identifiers; those that are over stay for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_sys::clock::monotonic;

use super::error::ApiError;
use super::run::BrowserRun;

/// Events of a run that is over are kept for this long.
const KEPT: Duration = Duration::from_secs(600);
/// Runs whose events are kept.
const RUNS_MAX: usize = 256;
/// Runs by their identifiers.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<HashMap<String, Arc<BrowserRun>>>);

impl Runs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<BrowserRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a run; the oldest that are over leave.
    pub(crate) fn add(&self, run: &Arc<BrowserRun>) {
        let now = monotonic();
        let mut runs = self.lock();
        runs.retain(|_, run| run.over_since(now).is_none_or(|ago| ago < KEPT));
        while runs.len() >= RUNS_MAX {
            let over = runs.values().filter_map(|arc| Some((arc.over_since(now)?, arc.id.clone())));
            let Some((_, oldest)) = over.max() else { break };
            runs.remove(&oldest);
        }
        runs.insert(run.id.clone(), Arc::clone(run));
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<BrowserRun>, ApiError> {
        let say = || format!("{id}: there is no such run; its events are kept for 10 minutes");
        self.lock().get(id).cloned().ok_or_else(|| ApiError::not_found(say()))
    }

    /// Ends every run as soon as it can be.
    pub(crate) fn end_all(&self) {
        self.lock().values().for_each(|run| run.stop.request_stop());
    }

    pub(crate) fn all_over(&self) -> bool {
        self.lock().values().all(|run| run.is_over())
    }
}
