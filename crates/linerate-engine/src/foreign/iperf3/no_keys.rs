//! The keys of a build without RSA (feature `rsa`): none can be had, and asking for one says so.

use std::path::Path;

use linerate_core::record::{BuildPart, Failure};

use super::key_file::Padding;

/// Stands for the private key in programs without RSA: there is none.
#[derive(Clone, Debug)]
pub(super) enum PublicKey {}

/// Stands for the public key in programs without RSA: there is none.
#[derive(Debug)]
pub(super) enum PrivateKey {}

impl PublicKey {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Err(absent("read the public key in", path))
    }

    pub(super) fn encrypt(&self, _: &[u8], _: Padding) -> Option<Vec<u8>> {
        match *self {}
    }
}

impl PrivateKey {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Err(absent("read the private key in", path))
    }

    pub(super) fn decrypt(&self, _: &[u8], _: Padding) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// Never called: whoever has a digest to compare has a private key.
pub(super) fn sha256(_: &[u8]) -> Vec<u8> {
    Vec::new()
}

fn absent(attempt: &str, path: &Path) -> Failure {
    Failure::not_built(attempt, path.display().to_string(), BuildPart::Rsa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_users_are_refused_with_the_part_that_is_missing_and_where_it_is() {
        let file = Path::new("FILE");
        for refusal in [PublicKey::read(file).err(), PrivateKey::read(file).err()] {
            let refusal = refusal.expect("there is no RSA");
            assert_eq!(refusal.exit_code(), 2);
            let said = refusal.to_string();
            assert!(said.contains("FILE: ") && said.ends_with(&BuildPart::Rsa.refusal()), "{said}");
        }
    }
}
