//! TLS for the page and the API, by a certificate that the operator has.
//!
//! Load stays outside: its streams are read and written by the kernel's sockets alone, whose
//! counters the result is, and the cost of a cipher would be taken for a limit of the path. HTTP/2
//! is offered for the clients that test over it (`quality`); its streams share one connection, so
//! they are one flow.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use linerate_core::record::{Failure, Fault};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What is agreed on by ALPN (RFC 7301), the first that the client speaks, too: clients of
/// networkQuality speak both, and test over HTTP/2 alone.
pub(crate) const HTTP2: &[u8] = b"h2";
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];

/// A certificate and its key, as they were read last.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a chain of certificates, the server's first, and the key of that, both as PEM.
    /// # Errors
    /// When a file is not there or not PEM, or the key is that of another certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let config = RwLock::new(config(certificate, key)?);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), config })
    }

    /// Reads the files again; connections from now on have what they say.
    /// # Errors
    /// As [`Tls::read`]; what was read before stays in force.
    pub fn reload(&self) -> Result<(), Failure> {
        let new = config(&self.certificate, &self.key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// What a handshake goes by.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let failed = |file: &Path, reason: &dyn std::fmt::Display| {
        Failure::new(Fault::Usage, "take for TLS", file.display().to_string(), reason)
            .advise("--tls-cert takes a chain and --tls-key its key, both as PEM")
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    // RFC 8446 alone: every browser has had it since 2020.
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|it| it.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| failed(certificate, &error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}
