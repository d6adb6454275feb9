//! The certificate by which a page knows this host: its own, valid for fewer than the 14 days that
//! a browser takes by its hash alone (WebTransport §3.3, `serverCertificateHashes`: X.509v3, ECDSA
//! on P-256), and made anew in time.

use std::sync::{Mutex, PoisonError};

use linerate_core::record::{Failure, Fault};
use linerate_proto::digest::sha256;
use linerate_sys::clock::wall_time;
use wtransport::Identity;
use wtransport::tls::self_signed::time::{Duration, OffsetDateTime};

/// It is valid from before now, for browsers whose clock is behind, and so long in all.
const BEFORE: Duration = Duration::hours(24);
const VALID: Duration = Duration::days(13);
/// After this it is made anew.
const RENEW_AFTER_MS: u64 = 5 * 24 * 3600 * 1000;

/// A certificate with its key.
#[derive(Debug)]
pub(super) struct Certificate(Mutex<Made>);

#[derive(Debug)]
struct Made {
    identity: Identity,
    /// When, in milliseconds since 1970.
    at_ms: u64,
}

impl Certificate {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self(Mutex::new(generate_identity()?)))
    }

    pub(super) fn identity(&self) -> Identity {
        self.lock().identity.clone_identity()
    }

    /// SHA-256 of what it is in DER, in hexadecimal digits.
    pub(super) fn sha256(&self) -> String {
        let made = self.lock();
        let chain = made.identity.certificate_chain().as_slice();
        let digest = sha256(chain.first().map_or(&[][..], |own| own.der()));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The new one, where it was time for one.
    pub(super) fn renew_if_due(&self) -> Option<Identity> {
        // A clock that was set back by as much makes it useless, too.
        if wall_time().unix_millis().abs_diff(self.lock().at_ms) < RENEW_AFTER_MS {
            return None;
        }
        match generate_identity() {
            Ok(made) => *self.lock() = made,
            Err(failure) => {
                tracing::warn!("{failure}");
                return None;
            }
        }
        Some(self.identity())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn generate_identity() -> Result<Made, Failure> {
    let at_ms = wall_time().unix_millis();
    let failed = |reason: &dyn std::fmt::Display| {
        Failure::new(Fault::System, "make", "a certificate for WebTransport", reason)
    };
    let now = OffsetDateTime::from_unix_timestamp((at_ms / 1000) as i64);
    let begin = now.map_err(|error| failed(&error))? - BEFORE;
    let identity = Identity::self_signed_builder()
        .subject_alt_names(["localhost"])
        .not_before(begin)
        .offset_from_not_before(VALID)
        .build()
        .map_err(|error| failed(&error))?;
    Ok(Made { identity, at_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_anew_before_it_ends() {
        let certificate = Certificate::new().expect("a certificate");
        let first = certificate.sha256();
        assert_eq!(first.len(), 64);
        assert!(certificate.renew_if_due().is_none());
        assert_eq!(certificate.sha256(), first);
        certificate.lock().at_ms -= RENEW_AFTER_MS;
        assert!(certificate.renew_if_due().is_some());
        assert_ne!(certificate.sha256(), first);
        assert!(BEFORE + Duration::milliseconds(RENEW_AFTER_MS as i64) < VALID);
        assert!(VALID < Duration::days(14));
    }
}
