//! ACME in a program that was built without it: no authority is asked.

use std::path::Path;

use linerate_core::record::{BuildPart, Failure};
use linerate_sys::stop::Stop;

use super::Tls;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Keeper of a certificate from an authority, which a build without TLS does not have.
#[derive(Debug)]
pub enum Acme {}

impl Acme {
    /// Refuses: this build asks no authority for certificates.
    /// # Errors
    /// Always.
    pub fn new(
        _: &[String],
        _: &str,
        _: Option<&str>,
        _: &Path,
        _: Option<&Path>,
    ) -> Result<Self, Failure> {
        Err(Failure::not_built("order a certificate by", "--acme", BuildPart::Acme))
    }

    /// # Errors
    /// Never: there is none.
    pub const fn load_tls(&self) -> Result<Tls, Failure> {
        match *self {}
    }

    /// Keeps the certificate valid.
    pub const fn renew_until_stop(&self, _: &Tls, _: &Stop) {
        match *self {}
    }
}
