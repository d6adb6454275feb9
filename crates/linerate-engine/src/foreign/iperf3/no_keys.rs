//! The keys of a build without RSA (feature `rsa`): none can be had, and asking for one says so.

use std::path::Path;

use linerate_core::record::Failure;

use super::key_file::{Padding, wrong};

/// There is no such key.
#[derive(Clone, Debug)]
pub(super) enum PublicKey {}

/// There is no such key.
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
    wrong(attempt, path, "this build has no RSA")
        .advise("build it with the feature rsa, which is on by default")
}
