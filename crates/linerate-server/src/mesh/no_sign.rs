//! Signatures of plans in a program that was built without cryptography: none is made or believed.

use std::path::Path;

use linerate_core::mesh::SignedPlan;
use linerate_core::record::{BuildPart, Failure};

/// A key that signs plans: there is none.
#[derive(Debug)]
pub enum SigningKey {}

impl SigningKey {
    /// # Errors
    /// Always.
    pub fn make(path: &Path) -> Result<Self, Failure> {
        Err(refused("make the key", path))
    }

    /// # Errors
    /// Always.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Err(refused("sign a plan by the key", path))
    }

    /// The public key.
    pub const fn public(&self) -> String {
        match *self {}
    }

    /// Signs a plan.
    pub const fn sign(&self, _: &str) -> SignedPlan {
        match *self {}
    }
}

/// # Errors
/// Always: a signature that cannot be checked is none.
pub(crate) fn verify(_: &SignedPlan) -> Result<(), String> {
    Err(BuildPart::PlanSignatures.refusal())
}

fn refused(attempt: &str, path: &Path) -> Failure {
    Failure::not_built(attempt, path.display().to_string(), BuildPart::PlanSignatures)
}
