//! Puts linerate's own server on the server host of every laboratory.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use linerate_core::record::{DEFAULT_PORT, Failure};
use linerate_engine::study::Laboratory;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;

/// A measurer whose laboratories have linerate's server.
pub(crate) fn laboratory(stop: &Stop) -> Laboratory {
    Laboratory::new(crate::command::measure::this_tool(), stop.clone(), Arc::new(serve_until_stop))
}

/// Answers until it is stopped. Laboratories have IPv4 addresses on every host.
pub(crate) fn serve_until_stop(stop: &Stop, ready: &dyn Fn(Result<(), Failure>)) {
    let local = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DEFAULT_PORT);
    match MeasurementServer::bind(&ServeOptions {
        local,
        limits: ServerLimits::default(),
        foreign: Foreign::without_ports(),
    }) {
        Ok(server) => {
            ready(Ok(()));
            // What clients do is in their records.
            server.run(stop, &|_| {});
        }
        Err(failure) => ready(Err(failure)),
    }
}
