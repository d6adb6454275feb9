//! Beats: what agents say every ten seconds, and what they are told.
//!
//! Beats that come while others are judged wait, and are judged together by whoever of them is
//! next: the store is opened and written once for all of them, so that ten thousand agents cost a
//! hub some writes a second and not a thousand. A beat that comes alone does not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linerate_core::mesh::{Beat, BeatAnswer, Standing, judge};
use linerate_core::record::{Failure, Fault};
use linerate_sys::clock::realtime_ns;

use crate::store::HubStore;

/// An agent is told of bookings for so long after their begin, seconds: one that was away says then
/// that it did not run.
const BOOKED_S: i64 = 86_400;

type Said = Result<BeatAnswer, Failure>;

/// A beat that is to be judged, and where its answer comes.
#[derive(Debug)]
struct Waiting {
    agent: String,
    beat: Beat,
    answer: Arc<OnceLock<Said>>,
}

/// Beats of a hub.
#[derive(Debug, Default)]
pub(super) struct Beats {
    waiting: Mutex<Vec<Waiting>>,
    judging: Mutex<()>,
}

impl Beats {
    /// What an agent of a mesh is answered, whose plan has a revision.
    /// # Errors
    /// When the store cannot be opened, read or written.
    pub(super) fn answer(
        &self,
        (agent, beat): (&str, &Beat),
        (mesh, revision): (&str, u64),
        open: impl FnOnce() -> Result<Box<dyn HubStore>, Failure>,
    ) -> Said {
        let answer = Arc::new(OnceLock::new());
        let one =
            Waiting { agent: agent.to_owned(), beat: beat.clone(), answer: Arc::clone(&answer) };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        let _one = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.get().is_none() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let all = std::mem::take(&mut *waiting);
            drop(waiting);
            let said = open().and_then(|mut store| judged(&mut *store, (mesh, revision), &all));
            for (at, one) in all.iter().enumerate() {
                // Each is judged once.
                let _ =
                    one.answer.set(said.as_ref().map(|it| it[at].clone()).map_err(Clone::clone));
            }
        }
        let gone = || Err(Failure::new(Fault::System, "judge beat of", agent, "it was not judged"));
        answer.get().cloned().unwrap_or_else(gone)
    }
}

/// What each is answered, in their order.
fn judged(
    store: &mut dyn HubStore,
    (mesh, revision): (&str, u64),
    all: &[Waiting],
) -> Result<Vec<BeatAnswer>, Failure> {
    let now_s = i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(i64::MAX);
    let agents: BTreeSet<&str> = all.iter().map(|one| one.agent.as_str()).collect();
    let mut known = store.last_seen(mesh, &agents)?;
    let mut heard = BTreeMap::new();
    let mut doubles = Vec::with_capacity(all.len());
    for Waiting { agent, beat, .. } in all {
        let (seen, standing) = judge(known.get(agent), beat, now_s);
        known.insert(agent.clone(), seen.clone());
        heard.insert(agent.clone(), seen);
        doubles.push(standing == Standing::Double);
    }
    store.saw(mesh, &heard)?;
    let bookings = store.bookings_open(mesh, &agents, now_s - BOOKED_S)?;
    let runs = store.runs_of(mesh, &agents)?;
    #[allow(clippy::cast_precision_loss, reason = "to the microsecond")]
    let wall_s = realtime_ns() as f64 / 1e9;
    let answer = |(one, double): (&Waiting, bool)| BeatAnswer {
        revision,
        wall_s,
        double,
        bookings: bookings.get(&one.agent).cloned().unwrap_or_default(),
        runs: runs.get(&one.agent).copied(),
    };
    Ok(all.iter().zip(doubles).map(answer).collect())
}
