//! Authorities in a program that was built without TLS: none is believed.

use std::path::Path;

use linerate_core::record::{BuildPart, Failure};

/// Authorities that vouch for another end's certificate: there are none.
#[derive(Clone, Debug)]
pub enum Authority {}

impl Authority {
    /// # Errors
    /// Always.
    pub fn read(_: Option<&Path>) -> Result<Self, Failure> {
        Err(Failure::not_built("check the certificate of", "another end", BuildPart::Tls))
    }
}
