//! TLS to the database, over which passwords and results go: its certificate has to name the host
//! and to come from a known authority, or the connection is none.
//!
//! # Source
//! PostgreSQL's manual 34.19 (`sslmode`, `sslrootcert`) and RFC 5929 §4 (`tls-server-end-point`, by
//! which a password's proof is good for this connection alone).

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_lc_rs::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry as known;
use x509_parser::prelude::FromDer;

use linerate_outbound::Authority;

/// Name of the protocol (RFC 7301), which PostgreSQL 17 wants where TLS begins without a question.
const PROTOCOL: &[u8] = b"postgresql";

/// TLS options taken out of a connection URI, and the remaining URI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TlsUriOptions {
    /// The address, with what is left of its options.
    pub(super) rest: String,
    /// `sslmode`: how TLS is asked for and checked.
    pub(super) mode: Option<String>,
    /// `sslrootcert`: a file, or `system` for this host's authorities.
    pub(super) authority: Option<String>,
}

impl TlsUriOptions {
    /// Takes `sslmode` and `sslrootcert` out of a connection's URI.
    pub(super) fn from_uri(text: &str) -> Self {
        let (mut mode, mut authority) = (None, None);
        let Some((place, options)) = text.split_once('?') else {
            return Self { rest: text.to_owned(), mode, authority };
        };
        let mut left = Vec::new();
        for option in options.split('&') {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => {
                    authority = Some(decoded(value)).filter(|file| !file.is_empty())
                }
                _ => left.push(option),
            }
        }
        let mark = if left.is_empty() { "" } else { "?" };
        Self { rest: format!("{place}{mark}{}", left.join("&")), mode, authority }
    }
}

/// A value of an URI, of which `%2F` is a slash (RFC 3986 §2.1).
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// TLS connector that checks each host's certificate against the host's name.
#[derive(Clone, Debug)]
pub(super) struct PostgresTls(Arc<ClientConfig>);

impl PostgresTls {
    /// Believes a file's authorities, or this host's.
    /// # Errors
    /// One line, where there are none.
    pub(super) fn read(authority: Option<&str>) -> Result<Self, String> {
        let file = authority.filter(|file| *file != "system").map(Path::new);
        let found = Authority::read(file).map_err(|failure| {
            let advice = "name whose certificate vouches for the database's: sslrootcert=FILE";
            failure.advise(advice).to_string()
        });
        let mut config = found?.config();
        config.alpn_protocols = vec![PROTOCOL.to_owned()];
        Ok(Self(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = Secured<S>;
    type TlsConnect = TlsTo;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsTo, InvalidDnsNameError> {
        Ok(TlsTo(Arc::clone(&self.0), ServerName::try_from(host.to_owned())?))
    }
}

/// TLS connector for one host, whose name its certificate must have.
#[derive(Debug)]
pub(super) struct TlsTo(Arc<ClientConfig>, ServerName<'static>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsTo {
    type Stream = Secured<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = TlsConnector::from(self.0);
            connector.connect(self.1, stream).await.map(Secured)
        })
    }
}

/// A connection over TLS.
#[derive(Debug)]
pub(super) struct Secured<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secured<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates().unwrap_or_default();
        let end_point = certificates.first().and_then(|certificate| end_point(certificate));
        end_point.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// The digest of a certificate by the hash of its own signature, where that is a strong one
/// (RFC 5929 §4.1: SHA-256 in place of MD5 and SHA-1); none where the signature does not say.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, read) = X509Certificate::from_der(certificate).ok()?;
    let signature = &read.signature_algorithm.algorithm;
    let by = |algorithm: &'static Algorithm, of: &[&known::Oid<'_>]| {
        of.contains(&signature).then_some(algorithm)
    };
    let algorithm = by(
        &SHA256,
        &[
            &known::OID_PKCS1_SHA256WITHRSA,
            &known::OID_SIG_ECDSA_WITH_SHA256,
            &known::OID_PKCS1_SHA1WITHRSA,
        ],
    )
    .or_else(|| by(&SHA384, &[&known::OID_PKCS1_SHA384WITHRSA, &known::OID_SIG_ECDSA_WITH_SHA384]))
    .or_else(|| {
        by(&SHA512, &[&known::OID_PKCS1_SHA512WITHRSA, &known::OID_SIG_ECDSA_WITH_SHA512])
    })?;
    Some(digest(algorithm, certificate).as_ref().to_owned())
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
