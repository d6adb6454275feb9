//! By which certificate `linerate serve` speaks TLS: files of the operator's, or what an authority
//! gives by ACME.

use std::path::PathBuf;
#[cfg(feature = "web")]
use std::sync::Arc;

#[cfg(feature = "web")]
use linerate_core::record::Failure;
#[cfg(feature = "web")]
use linerate_server::web::{Acme, LETS_ENCRYPT, Tls};
#[cfg(feature = "web")]
use linerate_store::default_path;
#[cfg(feature = "web")]
use linerate_sys::stop::Stop;

#[cfg(feature = "web")]
use crate::paths;

/// Whose certificate clients see.
#[derive(Debug, clap::Args)]
pub(super) struct CertificateFlags {
    /// Answer the page and the API over TLS, too, on the same port, by the chain of certificates in
    /// this file (PEM); SIGHUP reads it again. Speed tests stay on plain HTTP
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "no_web")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Answer over TLS as NAME, by a certificate that is ordered by ACME and renewed; port 443 of
    /// NAME has to lead here, and the authority's terms are agreed to
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tls_cert", "no_web"])]
    acme: Vec<String>,
    /// Directory of the authority [default: Let's Encrypt's]
    #[arg(long, value_name = "URL", requires = "acme")]
    acme_directory: Option<String>,
    /// Where the authority writes to before a certificate ends
    #[arg(long, value_name = "MAIL", requires = "acme")]
    acme_contact: Option<String>,
    /// Keep account, certificate and key in this folder [default: acme, beside the store]
    #[arg(long, value_name = "DIRECTORY", requires = "acme")]
    acme_folder: Option<PathBuf>,
    /// Whose certificates the authority's own connection is checked by (PEM) [default: this host's]
    #[arg(long, value_name = "FILE", requires = "acme")]
    acme_ca: Option<PathBuf>,
}

impl CertificateFlags {
    /// True when it names files that SIGHUP reads again.
    pub(super) const fn is_reread(&self) -> bool {
        self.tls_cert.is_some()
    }
}

/// The TLS configuration, and the ACME client that renews its certificate.
#[cfg(feature = "web")]
pub(super) struct ServerCertificate {
    pub(super) tls: Arc<Tls>,
    acme: Option<Acme>,
}

#[cfg(feature = "web")]
impl ServerCertificate {
    /// The certificate of the flags; none where they ask for no TLS.
    pub(super) fn read(flags: &CertificateFlags) -> Result<Option<Self>, Failure> {
        if let Some((certificate, key)) = flags.tls_cert.as_deref().zip(flags.tls_key.as_deref()) {
            let tls = Arc::new(Tls::read(certificate, key)?);
            return Ok(Some(Self { tls, acme: None }));
        }
        if flags.acme.is_empty() {
            return Ok(None);
        }
        let folder = match &flags.acme_folder {
            Some(folder) => paths::make_folder(folder).map(|()| folder.clone())?,
            None => default_path()?.with_file_name("acme"),
        };
        let directory = flags.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT);
        let (contact, authority) = (flags.acme_contact.as_deref(), flags.acme_ca.as_deref());
        let acme = Acme::new(&flags.acme, directory, contact, &folder, authority)?;
        Ok(Some(Self { tls: Arc::new(acme.load_tls()?), acme: Some(acme) }))
    }

    /// Keeps it valid until `stop`, where it is this program's to do.
    pub(super) fn keep_valid(&self, stop: &Stop) {
        self.acme.iter().for_each(|acme| acme.renew_until_stop(&self.tls, stop));
    }

    /// Reads the operator's files again. Files that are not valid any more change nothing.
    pub(super) fn read_again(&self) {
        match self.acme.is_none().then(|| self.tls.reload()) {
            None => {}
            Some(Ok(())) => tracing::info!("the certificate was read again"),
            Some(Err(failure)) => tracing::error!("the certificate stays as it was: {failure}"),
        }
    }
}
