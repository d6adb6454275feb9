//! What a hub makes of an agent's beat: whether it is the one that may run, or a second program
//! with the same secret.
//!
//! Of two programs the one that was started more often, of the same agent's store, is the newer: a
//! restart after a kill is let in at once. Two that were started equally often, one from a copy of
//! the other's store, are told apart by what they drew; the one that is there keeps its place for
//! as long as it beats.

use super::message::Beat;

/// An agent that was not heard for so long is silent: three beats, seconds.
pub const SILENT_S: i64 = 30;

/// What is known of an agent by its beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The last beat, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// Of the program that may run.
    pub instance: String,
    /// How often the agent was started.
    pub starts: u64,
    /// The plan that it has.
    pub revision: u64,
    /// Results that it keeps.
    pub waiting: u64,
    /// How far its clock is ahead, seconds.
    pub ahead_s: Option<f64>,
    /// When a second program was refused last.
    pub double_s: Option<i64>,
}

/// Whether a program may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the agent.
    Live,
    /// Another one is.
    Double,
}

/// What is known after a beat, and whether its program may run.
pub fn judge_beat(known: Option<&Seen>, beat: &Beat, now_s: i64) -> (Seen, Standing) {
    if let Some(known) = known {
        let heard = now_s - known.at_s <= SILENT_S;
        let newer = beat.starts > known.starts;
        if heard && !newer && beat.instance != known.instance {
            return (Seen { double_s: Some(now_s), ..known.clone() }, Standing::Double);
        }
    }
    let seen = Seen {
        at_s: now_s,
        instance: beat.instance.clone(),
        starts: beat.starts,
        revision: beat.revision,
        waiting: beat.waiting,
        ahead_s: beat.ahead_s,
        double_s: known.and_then(|known| known.double_s),
    };
    (seen, Standing::Live)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::VERSION;

    fn test_beat(instance: &str, starts: u64) -> Beat {
        let instance = instance.to_owned();
        Beat { v: VERSION, instance, starts, revision: 1, waiting: 0, ahead_s: None }
    }

    #[test]
    fn a_restart_is_let_in_and_of_two_from_one_store_the_first_stays() {
        let (seen, standing) = judge_beat(None, &test_beat("x", 1), 100);
        assert_eq!(standing, Standing::Live);
        // Killed, and back a second later.
        let (seen, standing) = judge_beat(Some(&seen), &test_beat("y", 2), 101);
        assert_eq!((standing, seen.starts, seen.at_s), (Standing::Live, 2, 101));
        // From a copy of the store, started as often; and the one before, which was not killed.
        for other in [test_beat("z", 2), test_beat("x", 1)] {
            let (held, standing) = judge_beat(Some(&seen), &other, 110);
            assert_eq!((standing, held.at_s, held.double_s), (Standing::Double, 101, Some(110)));
        }
        assert_eq!(judge_beat(Some(&seen), &test_beat("y", 2), 111).1, Standing::Live);
        // Where the first is gone the other may run.
        assert_eq!(judge_beat(Some(&seen), &test_beat("z", 2), 101 + SILENT_S).1, Standing::Double);
        assert_eq!(judge_beat(Some(&seen), &test_beat("z", 2), 102 + SILENT_S).1, Standing::Live);
    }
}
