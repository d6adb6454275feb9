//! Authorities whose certificates this program believes when it is the client of TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_core::record::{Failure, Fault};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Files with the certificates of authorities: Debian's, Fedora's.
const AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Authorities that vouch for another end's certificate.
#[derive(Clone, Debug)]
pub struct Authority(Arc<ClientConfig>);

impl Authority {
    /// The authorities of a file (PEM), or those of this host: of `SSL_CERT_FILE` (OpenSSL's
    /// SSL_CTX_load_verify_locations(3)) where that is set.
    /// # Errors
    /// When the file cannot be read or has none.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let usual = || AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists());
        let named = || std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let path = file.map(Path::to_owned).or_else(named).or_else(usual);
        let path = path.unwrap_or_else(|| PathBuf::from(AUTHORITIES[0]));
        let failed = |reason: &dyn std::fmt::Display| {
            let object = path.display().to_string();
            Failure::new(Fault::Usage, "read authorities", object, reason)
                .advise("name whose certificate vouches for the other end's: --ca, SSL_CERT_FILE")
        };
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(&path).map_err(|error| failed(&error))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| failed(&error))?;
            // This host's bundle may have one of a kind that is not understood.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err(failed(&"it has no certificate of an authority"));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| failed(&error))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// The configuration of TLS, for clients that bring their own connection.
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.0)
    }

    /// A client that asks a host of a name.
    /// # Errors
    /// When the name is no host's.
    pub fn client(&self, name: &str) -> std::io::Result<ClientConnection> {
        let name = ServerName::try_from(name.to_owned()).map_err(std::io::Error::other)?;
        ClientConnection::new(Arc::clone(&self.0), name).map_err(std::io::Error::other)
    }
}
