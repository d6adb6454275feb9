//! ttcp from the transmitter's side (spec/ttcp.md): the other end says nothing. Its receiver is
//! served with iperf 2's port.

mod tcp_client;
mod udp_client;
mod udp_receiver;

pub(crate) use tcp_client::measure;
pub(crate) use udp_client::measure_udp;
#[cfg(test)]
pub(crate) use udp_receiver::SILENCE_MAX;
pub use udp_receiver::TtcpUdpListener;

use std::io;

use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep};

use crate::flow::Net;

/// A test without a control connection: the clock alone.
struct Alone;

impl Net for Alone {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn wait(&mut self, until: MonoTime, _: bool) {
        sleep(until.duration_since(monotonic()));
    }
}
