//! TLS in a program that was built without it: no certificate can be shown.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use linerate_core::record::{BuildPart, Failure};

use super::connection::HttpService;
use super::places::HttpConnectionSlot;

/// A certificate and its key: there is none.
#[derive(Debug)]
pub enum Tls {}

/// Configuration of a TLS handshake, which a build without TLS does not have.
#[derive(Debug)]
pub(crate) enum ServerConfig {}

impl Tls {
    /// Refuses: this build answers nothing over TLS.
    /// # Errors
    /// Always.
    pub fn read(_: &Path, _: &Path) -> Result<Self, Failure> {
        Err(Failure::not_built("answer over TLS by", "--tls-cert", BuildPart::Tls))
    }

    /// Reads the certificate again.
    /// # Errors
    /// Never: there is none.
    pub const fn reload(&self) -> Result<(), Failure> {
        match *self {}
    }

    pub(crate) const fn config(&self) -> Arc<ServerConfig> {
        match *self {}
    }
}

pub(super) fn serve_tls(
    _: &HttpService,
    _: TcpStream,
    _: SocketAddr,
    tls: Arc<ServerConfig>,
    _: HttpConnectionSlot,
) {
    match *tls {}
}
