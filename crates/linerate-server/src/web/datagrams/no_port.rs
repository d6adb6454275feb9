//! The port of QUIC in a program that was built without WebTransport: there is none.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_core::record::{BuildPart, Failure};
use linerate_sys::stop::Stop;
use serde::Serialize;

use crate::web::run::BrowserRun;
use crate::web::state::State;

/// Address of a test's datagrams, which a build without WebTransport does not have.
#[derive(Debug, Serialize)]
pub(crate) enum WebTransportAddress {}

/// A port that cannot be bound.
#[derive(Debug)]
pub(crate) enum QuicPort {}

impl QuicPort {
    /// Refuses: this build answers no datagrams of browsers.
    /// # Errors
    /// Always.
    pub(crate) fn bind(_: SocketAddr) -> Result<Self, Failure> {
        let attempt = "answer datagrams of browsers by";
        Err(Failure::not_built(attempt, "--quic-port", BuildPart::WebTransport))
    }

    pub(crate) const fn number(&self) -> u16 {
        match *self {}
    }

    pub(crate) const fn session_address(&self, _: &BrowserRun) -> WebTransportAddress {
        match *self {}
    }
}

pub(in crate::web) const fn run(port: &QuicPort, _: &Arc<State>, _: &Stop) {
    match *port {}
}
