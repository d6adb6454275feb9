//! The limit of an agent's spool, and a disk without room.
//!
//! A full disk takes no note that something was deleted, so that a reserve lies beside the store,
//! which goes first; then the spool is made smaller than it is, and its pages are used again.

use std::io::Write;
use std::path::{Path, PathBuf};

use linerate_core::record::Failure;
use linerate_core::units::Bytes;
use linerate_store::Store;

/// Results that are made smaller, or dropped, at once.
const AT_ONCE: usize = 20;
/// Room for the log of a transaction.
const RESERVE_BYTES: usize = 4 << 20;

/// Results of an agent that its hub does not have yet, within a limit of bytes.
#[derive(Debug)]
pub(super) struct Spool {
    /// The schedule whose runs it has.
    schedule: String,
    limit: u64,
    reserve: PathBuf,
}

/// Counts of results that were dropped from a full spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// Results without their samples.
    pub(super) thinned: usize,
    /// Results as a whole.
    pub(super) results: usize,
}

impl Dropped {
    /// In words; none where nothing was.
    pub(super) fn drop_message(self) -> Option<String> {
        let Self { thinned, results } = self;
        let parts = [(thinned, "the samples of"), (results, "the whole of")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{what} {count} results"))
            .collect();
        let said = format!("the spool is full: dropped {}, the oldest first", parts.join(" and "));
        (!parts.is_empty()).then_some(said)
    }
}

impl Spool {
    /// The spool of an agent's schedule in a store.
    pub(super) fn new(schedule: String, limit: Bytes, store: &Path) -> Self {
        let mut reserve = store.as_os_str().to_owned();
        reserve.push(".reserve");
        Self { schedule, limit: limit.count(), reserve: PathBuf::from(reserve) }
    }

    /// Makes the reserve, where there is none and room for it.
    pub(super) fn reserves(&self) {
        if self.reserve.exists() {
            return;
        }
        let made = std::fs::File::create(&self.reserve).and_then(|mut file| {
            // Zeros, which no file system keeps as a hole when they are written.
            file.write_all(&vec![0; RESERVE_BYTES])?;
            file.sync_all()
        });
        if made.is_err() {
            let _ = std::fs::remove_file(&self.reserve);
        }
    }

    /// Drops what is beyond the limit, and a tenth more, so that it is not done for each result.
    pub(super) fn enforce_limit(&self, store: &mut Store) -> Result<Dropped, Failure> {
        let used = store.used_bytes()?;
        if used <= self.limit { Ok(Dropped::default()) } else { self.shrink(store, self.limit) }
    }

    /// The disk has no room: what was kept for that is free.
    pub(super) fn gives_reserve(&self) {
        let _ = std::fs::remove_file(&self.reserve);
    }

    /// The disk has no room: makes some, within the file.
    pub(super) fn makes_room(&self, store: &mut Store) -> Result<Dropped, Failure> {
        self.gives_reserve();
        let used = store.used_bytes()?;
        self.shrink(store, used)
    }

    fn shrink(&self, store: &mut Store, from: u64) -> Result<Dropped, Failure> {
        let goal = from - from / 10;
        let mut dropped = Dropped::default();
        while store.used_bytes()? > goal {
            let thinned = store.spool_thins(&self.schedule, AT_ONCE)?;
            dropped.thinned += thinned;
            if thinned == 0 {
                let results = store.spool_drops(&self.schedule, AT_ONCE)?;
                dropped.results += results;
                if results == 0 {
                    break;
                }
            }
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests;
