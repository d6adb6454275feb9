//! The data streams of a test at the server: which arrived connection is which stream.
//!
//! Nothing but the order of arrival tells: first those on which the server receives, then those on
//! which it sends.

use std::net::TcpStream;

use linerate_core::record::{Direction, Failure, Side, StreamOpened, TcpTest};
use linerate_proto::iperf3::Cookie;
use linerate_sys::tcp::{self, TcpOptions};

use super::client::server_side;
use super::registry::Arrival;
use super::report::Place;
use crate::throughput::control::plain;
use crate::throughput::endpoint::{Endpoint, socket_options};

/// Sorts the connections of a test into their places and sets their options.
pub(super) fn take_streams(
    endpoint: &mut Endpoint,
    request: &TcpTest,
    places: &[Place],
    mut arrivals: Vec<Arrival>,
) -> Result<(), Failure> {
    arrivals.sort_by_key(|arrival| arrival.serial);
    for (place, arrival) in places.iter().zip(arrivals) {
        let side = server_side(place.direction);
        let options = match side {
            Side::Sender => socket_options(request),
            Side::Receiver => TcpOptions { congestion_control: None, ..socket_options(request) },
        };
        let options = TcpOptions { mss_bytes: None, ..options };
        tcp::adjust(&arrival.stream, &options).map_err(|error| {
            crate::failure::system(&error).advise("see what this host allows by sysctl")
        })?;
        let client_addr = plain(arrival.peer);
        endpoint.add(arrival.stream, (place.direction, place.flow, side), client_addr);
    }
    Ok(())
}

/// What is told of a stream when it is connected.
pub(super) fn opened(
    stream: &TcpStream,
    (direction, flow): (Direction, u16),
    cookie: &Cookie,
) -> StreamOpened {
    let (sndbuf_bytes, rcvbuf_bytes) = tcp::buffers(stream);
    let address = |address: std::io::Result<std::net::SocketAddr>| {
        address.map_or_else(|_| String::new(), plain)
    };
    StreamOpened {
        direction,
        flow,
        local_addr: address(stream.local_addr()),
        remote_addr: address(stream.peer_addr()),
        mss_bytes: tcp::mss(std::os::fd::AsFd::as_fd(stream)),
        sndbuf_bytes,
        rcvbuf_bytes,
        session: Some(cookie.text()),
    }
}
