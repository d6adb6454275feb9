//! The UDP port of QUIC, its certificate, and what a page is told of them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use serde::Serialize;

use super::certificate::Certificate;
use crate::web::run::BrowserRun;

/// Where a browser opens its session; the query shows of which test it is.
pub(super) const PATH: &str = "/api/v1/datagrams";

/// Where the datagrams of a test go, for its page.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "DatagramsAt"))]
pub(crate) struct WebTransportAddress {
    /// UDP port of the host that the page is from.
    port: u16,
    /// Path and query of the session.
    path: String,
    /// SHA-256 of the certificate, hexadecimal, for `serverCertificateHashes`.
    certificate_sha256: String,
}

/// A bound UDP socket, and what is needed to speak QUIC on it.
#[derive(Debug)]
pub(crate) struct QuicPort {
    socket: Mutex<Option<UdpSocket>>,
    address: SocketAddr,
    pub(super) certificate: Certificate,
}

impl QuicPort {
    /// Binds to `address`; nothing is answered until it is served.
    /// # Errors
    /// When the address is not this host's, or another program has the port.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Fault::System, "bind UDP", address.to_string(), words_of(&error))
                .advise("choose another port with --quic-port, or leave it out")
        };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let certificate = Certificate::new()?;
        Ok(Self { socket: Mutex::new(Some(socket)), address, certificate })
    }

    /// Number of the UDP port that is bound.
    pub(crate) const fn number(&self) -> u16 {
        self.address.port()
    }

    /// Where the page of a run opens its session.
    pub(crate) fn session_address(&self, run: &BrowserRun) -> WebTransportAddress {
        WebTransportAddress {
            port: self.number(),
            path: format!("{PATH}?run={}&token={}", run.id, run.token.to_hex()),
            certificate_sha256: self.certificate.sha256(),
        }
    }

    /// The socket, for who serves it: once.
    pub(super) fn take_socket(&self) -> Option<UdpSocket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
