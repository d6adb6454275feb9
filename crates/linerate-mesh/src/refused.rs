//! Reasons for which a hub does not answer an agent as it wishes.

use linerate_core::record::Failure;

/// Why an agent is not answered as it wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubRefusal {
    /// The message cannot be read, or contradicts the plan.
    Bad(String),
    /// It is not known here.
    Unknown(String),
    /// The hub could not.
    System(String),
}

impl From<Failure> for HubRefusal {
    fn from(failure: Failure) -> Self {
        Self::System(failure.to_string())
    }
}
