//! TLS for the page and the API, by a certificate that the operator has or that an authority gives
//! ([`super::acme`]).
//!
//! Load stays outside: its streams are read and written by the kernel's sockets alone, whose
//! counters the result is, and the cost of a cipher would be taken for a limit of the path. HTTP/2
//! is offered for the clients that test over it (`quality`); its streams share one connection, so
//! they are one flow.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use linerate_core::record::{Failure, Fault};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Protocols in the order of ALPN's choice (RFC 7301): clients of networkQuality speak both, and
/// test over HTTP/2 alone.
pub(crate) const HTTP2: &[u8] = b"h2";
/// An authority asks whether this server has a name (RFC 8737 §4).
pub(crate) const ACME: &[u8] = b"acme-tls/1";
const PROTOCOLS: [&[u8]; 3] = [HTTP2, b"http/1.1", ACME];

/// A certificate and its key, as they were read last.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    shown: Arc<ShownCertificates>,
    config: Arc<ServerConfig>,
}

/// Certificates that a client is shown.
#[derive(Debug, Default)]
struct ShownCertificates {
    /// None before an authority has given the first.
    certificate: RwLock<Option<Arc<CertifiedKey>>>,
    /// Certificates that prove a name to an ACME authority, by name.
    proofs: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for ShownCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == ACME)) {
            let proofs = self.proofs.read().unwrap_or_else(PoisonError::into_inner);
            return proofs.get(&hello.server_name()?.to_ascii_lowercase()).cloned();
        }
        self.certificate.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's first, and the key of that, both as PEM.
    /// # Errors
    /// When a file is not there or not PEM, or the key is that of another certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let tls = Self::without(certificate, key)?;
        tls.reload()?;
        Ok(tls)
    }

    /// One whose files are not read yet, and may not be there: until [`Tls::reload`] no handshake
    /// succeeds.
    pub(super) fn without(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let shown = Arc::new(ShownCertificates::default());
        // RFC 8446 alone: every browser has had it since 2020.
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| Failure::new(Fault::System, "begin", "TLS", error))?;
        let shows: Arc<dyn ResolvesServerCert> = Arc::clone(&shown) as _;
        let mut config = config.with_no_client_auth().with_cert_resolver(shows);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { certificate, key, shown, config: Arc::new(config) })
    }

    /// Reads the files again; connections from now on have what they say.
    /// # Errors
    /// As [`Tls::read`]; what was read before stays in force.
    pub fn reload(&self) -> Result<(), Failure> {
        let new = certified(&self.certificate, &self.key)?;
        *self.shown.certificate.write().unwrap_or_else(PoisonError::into_inner) = Some(new);
        Ok(())
    }

    /// Shows a certificate to an authority that asks for a name; none of what was shown before.
    pub(super) fn set_proofs(&self, proofs: HashMap<String, Arc<CertifiedKey>>) {
        *self.shown.proofs.write().unwrap_or_else(PoisonError::into_inner) = proofs;
    }

    /// The files: the chain and its key.
    pub(super) fn certificate_files(&self) -> (&Path, &Path) {
        (&self.certificate, &self.key)
    }

    /// Configuration of a TLS handshake.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

/// The cryptographic library behind TLS.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn certified(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, Failure> {
    let failed = |file: &Path, reason: &dyn std::fmt::Display| {
        Failure::new(Fault::Usage, "take for TLS", file.display().to_string(), reason)
            .advise("--tls-cert takes a chain and --tls-key its key, both as PEM")
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, &error))?;
    let certified = CertifiedKey::from_der(chain, secret, &provider());
    certified.map(Arc::new).map_err(|error| failed(certificate, &error))
}
