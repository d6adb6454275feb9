//! Beats: what agents say every ten seconds, and what they are told.
//!
//! Beats that come while others are judged wait, and are judged together by whoever of them is
//! next: the store is opened and written once for all of them, so that ten thousand agents cost a
//! hub some writes a second and not a thousand. A beat that comes alone does not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linerate_core::mesh::{Beat, BeatAnswer, Standing, judge_beat};
use linerate_core::record::{Failure, Fault};
use linerate_store::HubStore;
use linerate_sys::clock::realtime_ns;

use super::clock::now_s;

/// Seconds after its begin for which a booking is still sent to its agent: one that was away then
/// reports that the run was missed.
const BOOKED_S: i64 = 86_400;

type Said = Result<BeatAnswer, Failure>;

/// A beat of an agent.
#[derive(Clone, Debug)]
pub(super) struct ReceivedBeat {
    pub(super) agent: String,
    pub(super) beat: Beat,
    /// Arrival of the beat, nanoseconds since 1970-01-01 UTC.
    pub(super) at_ns: u64,
}

/// A beat that waits, and the place for its answer.
#[derive(Debug)]
struct QueuedBeat {
    heard: ReceivedBeat,
    answer: Arc<OnceLock<Said>>,
}

/// Beats that a hub has received and not yet answered; those that wait are answered together.
#[derive(Debug, Default)]
pub(super) struct Beats {
    waiting: Mutex<Vec<QueuedBeat>>,
    judging: Mutex<()>,
}

impl Beats {
    /// Answer to a beat of an agent of a mesh; the answer tells it the revision of the mesh's plan.
    /// # Errors
    /// When the store cannot be opened, read or written.
    pub(super) fn answer(
        &self,
        heard: ReceivedBeat,
        mesh: &str,
        revision: u64,
        open: impl FnOnce() -> Result<Box<dyn HubStore>, Failure>,
    ) -> Said {
        let answer = Arc::new(OnceLock::new());
        let agent = heard.agent.clone();
        let one = QueuedBeat { heard, answer: Arc::clone(&answer) };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        let _one = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.get().is_none() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let all = std::mem::take(&mut *waiting);
            drop(waiting);
            let (all, places): (Vec<ReceivedBeat>, Vec<_>) =
                all.into_iter().map(|one| (one.heard, one.answer)).unzip();
            let said = open().and_then(|mut store| judged(&mut *store, mesh, revision, &all));
            for (at, place) in places.iter().enumerate() {
                // Each is judged once.
                let _ = place
                    .set(said.as_ref().map(|answers| answers[at].clone()).map_err(Clone::clone));
            }
        }
        let gone = || Err(Failure::new(Fault::System, "judge beat of", agent, "it was not judged"));
        answer.get().cloned().unwrap_or_else(gone)
    }

    /// Answers to beats that arrived together, in their order.
    /// # Errors
    /// As [`Beats::answer`].
    #[cfg(feature = "scale")]
    pub(super) fn answers(
        &self,
        all: &[ReceivedBeat],
        mesh: &str,
        revision: u64,
        open: impl FnOnce() -> Result<Box<dyn HubStore>, Failure>,
    ) -> Result<Vec<BeatAnswer>, Failure> {
        let _one = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        judged(&mut *open()?, mesh, revision, all)
    }
}

/// Answers to some beats, in their order, by one access to the store.
fn judged(
    store: &mut dyn HubStore,
    mesh: &str,
    revision: u64,
    all: &[ReceivedBeat],
) -> Result<Vec<BeatAnswer>, Failure> {
    let now_s = now_s();
    let agents: BTreeSet<&str> = all.iter().map(|one| one.agent.as_str()).collect();
    let mut known = store.last_seen(mesh, &agents)?;
    let mut seen_now = BTreeMap::new();
    let mut doubles = Vec::with_capacity(all.len());
    for ReceivedBeat { agent, beat, .. } in all {
        let (seen, standing) = judge_beat(known.get(agent), beat, now_s);
        known.insert(agent.clone(), seen.clone());
        seen_now.insert(agent.clone(), seen);
        doubles.push(standing == Standing::Double);
    }
    store.keep_beats(mesh, &seen_now)?;
    let bookings = store.bookings_open(mesh, &agents, now_s - BOOKED_S)?;
    let runs = store.runs_of(mesh, &agents)?;
    let end_ns = realtime_ns();
    let answer = |one: &ReceivedBeat, double: bool| {
        // The middle of the time that it was here: an agent takes it for the middle of its round
        // trip (RFC 5905 §8).
        #[allow(clippy::cast_precision_loss, reason = "to the microsecond")]
        let wall_s = one.at_ns.midpoint(end_ns) as f64 / 1e9;
        BeatAnswer {
            revision,
            wall_s,
            double,
            bookings: bookings.get(&one.agent).cloned().unwrap_or_default(),
            runs: runs.get(&one.agent).copied(),
        }
    };
    Ok(all.iter().zip(doubles).map(|(one, double)| answer(one, double)).collect())
}
