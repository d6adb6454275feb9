//! Signatures of plans in a program that was built without cryptography: none is made or believed.

use std::path::Path;

use linerate_core::mesh::SignedPlan;
use linerate_core::record::Failure;

use crate::not_built::not_built;

/// A key that signs plans: there is none.
#[derive(Debug)]
pub enum SigningKey {}

impl SigningKey {
    /// # Errors
    /// Always.
    pub fn make(_: &Path) -> Result<Self, Failure> {
        Err(not_built("sign plans"))
    }

    /// # Errors
    /// Always.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Self::make(path)
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
pub(super) fn verify(_: &SignedPlan) -> Result<(), String> {
    Err(not_built("check the signature of a plan").to_string())
}
