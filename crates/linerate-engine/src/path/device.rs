//! The devices at the ends of an emulated path: made, addressed and set up in their namespaces.

use std::net::IpAddr;

use linerate_core::record::Failure;
use linerate_sys::handover_stamps::HandoverStamps;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::tun::Tun;

use super::plan::EmulatedEnd;
use crate::failure::system;
use crate::netns::run_inside;

/// Packets that wait in a device until they are read, instead of 500: what a fast sender of
/// datagrams makes in the milliseconds that the emulator may be kept from its processor.
const QUEUE_PACKETS: u32 = 2000;

/// A device and a socket in its namespace, for its counters.
#[derive(Debug)]
pub(super) struct TunDevice {
    pub(super) tun: Tun,
    pub(super) socket: RouteSocket,
    /// When packets came to the device; absent where the kernel does not tell.
    pub(super) stamps: Option<HandoverStamps>,
}

/// Makes both devices; they take packets from now on.
pub(super) fn make_devices(ends: &[EmulatedEnd<'_>; 2]) -> Result<[TunDevice; 2], Failure> {
    let [one, other] = ends;
    Ok([open_device(one)?, open_device(other)?])
}

fn open_device(end: &EmulatedEnd<'_>) -> Result<TunDevice, Failure> {
    let made = match end.netns {
        Some(netns) => run_inside(netns, &end.name, || configured(end))?,
        None => configured(end),
    };
    made.map_err(|error| {
        let failure = system(&error);
        match (error.call, error.source.kind()) {
            ("open", std::io::ErrorKind::NotFound) => failure.advise(
                "load the module tun; in a container, provide the device \
                                /dev/net/tun",
            ),
            ("make tunnel device", std::io::ErrorKind::ResourceBusy) => {
                failure.advise("that name is in use there: choose another")
            }
            _ => failure,
        }
    })
}

fn configured(end: &EmulatedEnd<'_>) -> linerate_sys::Result<TunDevice> {
    let tun = Tun::create_device(&end.name, end.kind)?;
    let mut socket = RouteSocket::open()?;
    let index = socket.link_by_name(&end.name)?.index;
    socket.set_queue_length(index, QUEUE_PACKETS)?;
    socket.set_mtu(index, end.mtu_bytes)?;
    socket.set_up(index)?;
    for &(address, prefix_len) in &end.addresses {
        add_address(&mut socket, index, address, prefix_len)?;
    }
    // Without them the path carries the same packets, and knows less of its own delay. The first
    // packets, which the host sends for itself, may have none.
    let stamps = HandoverStamps::open(&end.name).ok();
    Ok(TunDevice { tun, socket, stamps })
}

fn add_address(
    socket: &mut RouteSocket,
    index: u32,
    address: IpAddr,
    prefix_len: u8,
) -> linerate_sys::Result<()> {
    let added = socket.add_address(index, address, prefix_len);
    // A kernel without IPv6 gives a path without IPv6.
    let missing =
        address.is_ipv6() && !linerate_sys::sysctl::exists("net/ipv6/conf/all/forwarding");
    if missing { Ok(()) } else { added }
}
