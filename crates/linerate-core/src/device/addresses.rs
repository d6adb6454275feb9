//! Switches and their address tables: how many addresses, and how fast they are learnt.
//!
//! A trial sends learning frames from so many source addresses at such a rate into one port, then
//! test frames to each of them from another; a third port must stay silent. A frame there was
//! flooded: its address was not known. Addresses of the test ports themselves come on top. Source:
//! RFC 2889 §5.7 and §5.8.

use serde::{Deserialize, Serialize};

use super::search::{Controller, INVALID_MAX, IntegerSearch, Invalid, NextTrial};

/// Most addresses that are tried when the plan has no number of flows.
pub const ADDRESSES_MAX: u32 = 65_536;

/// Rate of learning frames while addresses are counted, frames per second at most: well below any
/// learning rate.
pub const GENTLE_FPS: u64 = 10_000;

/// Share of the largest load to within which the learning rate is found: 1 / 100.
pub const RATE_STEPS: u64 = 100;

/// One trial of a switch's address table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressTrial {
    /// Different source addresses that are sent.
    pub addresses: u64,
    /// Rate of the learning frames, frames per second.
    pub learning_fps: u64,
}

/// Outcome of an address trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressOutcome {
    /// The trial as it was asked for.
    pub trial: AddressTrial,
    /// Test frames received at the port that is to stay silent.
    pub flooded: u64,
    /// Test frames that did not reach the port of their address.
    pub lost: u64,
    /// The reason why the outcome does not count.
    pub invalid: Option<Invalid>,
}

/// Quantity that is searched for, with the other one held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sought {
    Addresses { learning_fps: u64 },
    LearningRate { addresses: u64 },
}

/// A search for the caching capacity or for the learning rate.
#[derive(Clone, Debug)]
pub struct AddressSearch {
    sought: Sought,
    search: IntegerSearch,
    invalid: usize,
}

impl AddressSearch {
    /// The most addresses, up to `max`, that are all known after learning at a rate well below
    /// the learning rate.
    pub fn capacity(max: u64, learning_fps: u64) -> Self {
        let search = IntegerSearch::new(max, 1, None);
        Self { sought: Sought::Addresses { learning_fps }, search, invalid: 0 }
    }

    /// The highest rate, up to `max_fps`, at which `addresses` (no more than the capacity) are all
    /// learnt, to within `resolution_fps`.
    pub fn learning_rate(addresses: u64, max_fps: u64, resolution_fps: u64) -> Self {
        let search = IntegerSearch::new(max_fps, resolution_fps, None);
        Self { sought: Sought::LearningRate { addresses }, search, invalid: 0 }
    }

    /// Largest value that passed: a number of addresses, or a learning rate in frames per second;
    /// `None` when not even the smallest passed.
    pub fn largest_passed(&self) -> Option<u64> {
        Some(self.search.largest_passed()).filter(|found| *found > 0)
    }

    /// The largest that was tried passed: there may be more.
    pub const fn is_at_max(&self) -> bool {
        self.search.is_at_max()
    }
}

impl Controller for AddressSearch {
    type Trial = AddressTrial;
    type Outcome = AddressOutcome;

    fn next(&self) -> NextTrial<AddressTrial> {
        let Some(number) = self.search.next().filter(|_| self.invalid < INVALID_MAX) else {
            return NextTrial::Done;
        };
        NextTrial::Trial(match self.sought {
            Sought::Addresses { learning_fps } => AddressTrial { addresses: number, learning_fps },
            Sought::LearningRate { addresses } => AddressTrial { addresses, learning_fps: number },
        })
    }

    fn add_outcome(&mut self, outcome: AddressOutcome) {
        if outcome.invalid.is_some() {
            self.invalid += 1;
            return;
        }
        self.invalid = 0;
        let number = match self.sought {
            Sought::Addresses { .. } => outcome.trial.addresses,
            Sought::LearningRate { .. } => outcome.trial.learning_fps,
        };
        self.search.add_result(number, outcome.flooded == 0 && outcome.lost == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mut search: AddressSearch, capacity: u64, rate_fps: u64) -> AddressSearch {
        while let Some(trial) = search.next().into_trial() {
            let unknown = trial.addresses.saturating_sub(capacity);
            let late = if trial.learning_fps > rate_fps { 1 } else { 0 };
            let flooded = unknown + late;
            search.add_outcome(AddressOutcome { trial, flooded, lost: 0, invalid: None });
        }
        search
    }

    #[test]
    fn a_planted_table_is_found() {
        let search = run(AddressSearch::capacity(16_384, 50), 8_190, 1_000);
        assert_eq!((search.largest_passed(), search.is_at_max()), (Some(8_190), false));
        let search = run(AddressSearch::capacity(4_096, 50), 8_190, 1_000);
        assert_eq!((search.largest_passed(), search.is_at_max()), (Some(4_096), true));
        assert_eq!(run(AddressSearch::capacity(4_096, 50), 0, 1_000).largest_passed(), None);
    }

    #[test]
    fn a_planted_learning_rate_is_found() {
        let search = run(AddressSearch::learning_rate(1_000, 148_809, 1), 8_190, 23_456);
        assert_eq!(search.largest_passed(), Some(23_456));
        // 148,809 halved until the gap is 100 or less.
        let search = run(AddressSearch::learning_rate(1_000, 148_809, 100), 8_190, 23_456);
        let found = search.largest_passed().expect("a rate");
        assert!((23_357..=23_456).contains(&found), "{found}");
    }

    #[test]
    fn invalid_trials_end_it() {
        let mut search = AddressSearch::capacity(100, 50);
        for _ in 0..INVALID_MAX {
            let trial = search.next().into_trial().expect("a trial");
            let invalid = Some(Invalid::LinkDown);
            search.add_outcome(AddressOutcome { trial, flooded: 0, lost: 0, invalid });
        }
        assert_eq!(search.next(), NextTrial::Done);
    }
}
