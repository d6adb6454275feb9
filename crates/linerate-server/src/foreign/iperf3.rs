//! Clients of iperf3: a connection begins with a cookie, which makes it a stream of a test that
//! waits for it or else the control connection of a new one.
//!
//! iperf3's own server turns away every second connection at once; here a client that cannot be
//! let in is told so after its parameters.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::record::{Failure, Tool};
use linerate_engine::foreign::iperf3::{Arrival, House, Registry, Silent, read_cookie, serve};
use linerate_engine::throughput::Admission;
use linerate_sys::stop::Stop;

/// Time between the samples of a test.
const INTERVAL: Duration = Duration::from_secs(1);

/// What the connections of iperf3's clients share.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    registry: Registry,
    serial: AtomicU64,
}

impl Clients {
    /// The place of a connection in the order of arrival; asked before threads can mix it up.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Serves a connection; the line is for the log, none for a data stream.
    pub(crate) fn answer(
        &self,
        (stream, peer, serial): (TcpStream, SocketAddr, u64),
        admission: &dyn Admission,
        stop: &Stop,
    ) -> Result<Option<String>, Failure> {
        let cookie = read_cookie(&stream, peer)?;
        let arrival = Arrival { stream, peer, serial };
        let Err(arrival) = self.registry.deliver(&cookie, arrival) else { return Ok(None) };
        let tool =
            Tool { name: "linerate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let house = House { registry: &self.registry, admission, stop, tool, interval: INTERVAL };
        serve(arrival, cookie, &house, &mut Silent).map(Some)
    }
}
