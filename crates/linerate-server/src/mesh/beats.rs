//! Beats: what agents say every ten seconds, and what they are told.
//!
//! Beats that come while others are judged wait, and are judged together by whoever of them is
//! next: the store is opened and written once for all of them, so that ten thousand agents cost a
//! hub some writes a second and not a thousand. A beat that comes alone does not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linerate_core::mesh::{Beat, BeatAnswer, Standing, judge};
use linerate_core::record::Failure;
use linerate_sys::clock::realtime_ns;

use super::hub::{Hub, NAME_MAX, Refused, now_s};

/// An agent is told of bookings for so long after their begin, seconds: one that was away says then
/// that it did not run.
const BOOKED_S: i64 = 86_400;

type Said = Result<BeatAnswer, Refused>;

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

impl Hub {
    /// An agent is there.
    /// # Errors
    /// When the store cannot be read or written.
    pub fn beat(&self, agent: &str, beat: &Beat) -> Result<BeatAnswer, Refused> {
        if beat.instance.len() > NAME_MAX || beat.instance.contains(char::is_control) {
            return Err(Refused::Bad("instance: some hexadecimal digits".to_owned()));
        }
        let answer = Arc::new(OnceLock::new());
        let one =
            Waiting { agent: agent.to_owned(), beat: beat.clone(), answer: Arc::clone(&answer) };
        let beats = &self.beats;
        beats.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        let _one = beats.judging.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.get().is_none() {
            let all =
                std::mem::take(&mut *beats.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            self.judge_all(&all);
        }
        let gone = || Err(Refused::System("the beat was not judged".to_owned()));
        answer.get().cloned().unwrap_or_else(gone)
    }

    fn judge_all(&self, all: &[Waiting]) {
        let said = self.judged(all);
        for (at, one) in all.iter().enumerate() {
            let answer = said.as_ref().map(|said| said[at].clone());
            // Each has one beat, and is judged once.
            let _ = one.answer.set(answer.map_err(|failure| failure.clone().into()));
        }
    }

    /// What each is answered, in their order.
    fn judged(&self, all: &[Waiting]) -> Result<Vec<BeatAnswer>, Failure> {
        let (mesh, revision, _) = self.about();
        let mut store = self.store()?;
        let agents: BTreeSet<&str> = all.iter().map(|one| one.agent.as_str()).collect();
        let mut known = store.last_seen(&mesh, &agents)?;
        let mut heard = BTreeMap::new();
        let mut doubles = Vec::with_capacity(all.len());
        for Waiting { agent, beat, .. } in all {
            let (seen, standing) = judge(known.get(agent), beat, now_s());
            known.insert(agent.clone(), seen.clone());
            heard.insert(agent.clone(), seen);
            doubles.push(standing == Standing::Double);
        }
        store.saw(&mesh, &heard)?;
        let bookings = store.bookings_open(&mesh, &agents, now_s() - BOOKED_S)?;
        let runs = store.runs_of(&mesh, &agents)?;
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
}
