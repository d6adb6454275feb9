//! Reasons for which a hub does not answer an agent as it wishes.

use linerate_core::record::Failure;

/// Reason for which a hub refuses an agent's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubRefusal {
    /// The message cannot be read, or contradicts the plan.
    Bad(String),
    /// The agent, or its token, is not known here.
    Unknown(String),
    /// The hub itself failed, for example at its store.
    System(String),
}

impl From<Failure> for HubRefusal {
    fn from(failure: Failure) -> Self {
        Self::System(failure.to_string())
    }
}
