//! Signatures of plans in a program that was built without cryptography: none is made or believed.

use std::path::Path;

use linerate_core::mesh::SignedPlan;
use linerate_core::record::{BuildPart, Failure};

/// A key that signs plans: there is none.
#[derive(Debug)]
pub enum SigningKey {}

impl SigningKey {
    /// Refuses.
    /// # Errors
    /// Always.
    pub fn create_key_file(path: &Path) -> Result<Self, Failure> {
        Err(refused("make the key", path))
    }

    /// Refuses.
    /// # Errors
    /// Always.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Err(refused("sign a plan by the key", path))
    }

    /// The public key; a build without signatures never has one.
    pub const fn public(&self) -> String {
        match *self {}
    }

    /// Signs a plan; a build without signatures never has a key for it.
    pub const fn sign_plan(&self, _: &str) -> SignedPlan {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cryptography_no_key_is_made_or_read_and_the_line_names_the_file() {
        let file = Path::new("FILE");
        for refusal in [SigningKey::create_key_file(file).err(), SigningKey::read(file).err()] {
            let refusal = refusal.expect("refused");
            let said = refusal.to_string();
            assert_eq!(refusal.exit_code(), 2, "{said}");
            let end = BuildPart::PlanSignatures.refusal();
            assert!(said.contains("FILE") && said.ends_with(&end), "{said}");
        }
        assert!(!file.exists(), "a key that cannot be made leaves no file");
    }

    #[test]
    fn a_plan_whose_signature_cannot_be_checked_is_not_believed() {
        let [text, key, signature] = ["mesh = \"m\"", "3d40", "00"].map(str::to_owned);
        let refused = verify(&SignedPlan { text, key, signature });
        assert_eq!(refused, Err(BuildPart::PlanSignatures.refusal()));
    }
}
