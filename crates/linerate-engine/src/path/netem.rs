//! A path that the kernel's netem carries: the counters of its two disciplines, and whether this
//! kernel has one at all.
//!
//! netem tells how many packets left, were dropped and wait; neither why nor how late. Left out:
//! putting it on a link (`lab`).

use std::time::Duration;

use linerate_core::path::{Backlog, Netem, PathLossCause};
use linerate_core::record::{Failure, Fault};
use linerate_sys::netlink::{QdiscCounters, RouteSocket};
use linerate_sys::netns::Netns;

use super::{Counters, DirectionCounters};
use crate::netns::run_inside;

/// Ethernet header, which the kernel counts with a packet.
const ETHERNET_HEADER_BYTES: u64 = 14;
/// Index of the loopback link in every namespace (net/core/dev.c).
const LOOPBACK: u32 = 1;

/// Tries netem in a namespace made for it.
/// # Errors
/// When this kernel has none, or without the privilege to try.
pub fn check_netem_support(name: &str) -> Result<(), Failure> {
    let failed = |error: &linerate_sys::Error| {
        Failure::new(
            Fault::System,
            "emulate with netem",
            name,
            crate::failure::words_of(&error.source),
        )
    };
    let netns = Netns::new().map_err(|error| failed(&error))?;
    let plain = Netem {
        latency: Duration::from_millis(1),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        limit_packets: 1,
        rate: None,
        seed: 1,
    };
    let tried = run_inside(&netns, name, || RouteSocket::open()?.set_netem(LOOPBACK, &plain))?;
    tried.map_err(|error| match error.source.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::Unsupported => {
            Failure::new(Fault::System, "emulate with netem", name, "this kernel has no netem")
                .advise("load sch_netem (CONFIG_NET_SCH_NETEM), or omit `emulator`")
        }
        _ => failed(&error),
    })
}

/// The two disciplines of a link, each at the end where its direction begins.
#[derive(Debug)]
pub struct NetemLink {
    ends: [(RouteSocket, u32); 2],
    /// The counters that the kernel told last.
    told: Counters,
}

impl NetemLink {
    /// The link by a socket in the namespace of each end and the index of the interface there.
    pub fn new(ends: [(RouteSocket, u32); 2]) -> Self {
        Self { ends, told: Counters::default() }
    }

    /// Reads the path's counters; none when the kernel does not tell any more.
    pub(super) fn counters(&mut self) -> Option<Counters> {
        for ((socket, index), told) in self.ends.iter_mut().zip(&mut self.told) {
            *told = direction(&socket.root_counters(*index).ok().flatten()?);
        }
        Some(self.told.clone())
    }

    /// The counters that the kernel told last.
    pub(super) fn last_counters(&self) -> Counters {
        self.told.clone()
    }
}

fn direction(counters: &QdiscCounters) -> DirectionCounters {
    let ip_bytes = |bytes: u64, packets: u64| bytes.saturating_sub(packets * ETHERNET_HEADER_BYTES);
    let (drops, queued) = (u64::from(counters.drops), u64::from(counters.queued_packets));
    let delivered_bytes = ip_bytes(counters.bytes, counters.packets);
    let queued_bytes = ip_bytes(counters.queued_bytes.into(), queued);
    DirectionCounters {
        taken_packets: counters.packets + drops + queued,
        // Those of dropped packets are not counted.
        taken_bytes: delivered_bytes + queued_bytes,
        delivered_packets: counters.packets,
        delivered_bytes,
        lost: if drops > 0 { vec![(PathLossCause::Untold, drops)] } else { Vec::new() },
        queued: Backlog { packets: queued, bytes: queued_bytes },
        ..DirectionCounters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_of_ip_packets_and_what_was_dropped_was_taken() {
        let counters = QdiscCounters {
            packets: 10,
            bytes: 10 * 1514,
            drops: 3,
            queued_packets: 2,
            queued_bytes: 2 * 1514,
            ..QdiscCounters::default()
        };
        let told = direction(&counters);
        assert_eq!((told.taken_packets, told.delivered_packets, told.lost_packets()), (15, 10, 3));
        assert_eq!((told.delivered_bytes, told.queued.bytes), (15_000, 3000));
    }
}
