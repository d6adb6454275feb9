//! What tests and examples with raw frames share: a cable between two namespaces that have no
//! addresses, and a template of UDP in IPv4.
#![allow(dead_code, reason = "each program uses a part")]

use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use linerate_core::device::{FrameTemplate, HeaderSum, SIGNATURE_BYTES, Varying};
use linerate_sys::netlink::{LinkFacts, RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::{clock, sysctl, userns};

/// No wait takes this long on a working machine; a busy one may take seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Index of the end `left` in its namespace, and of `right` in its.
pub(crate) const LEFT: u32 = 2;
/// See [`LEFT`].
pub(crate) const RIGHT: u32 = 3;

/// Two namespaces and a veth pair whose ends are called `left` and `right`. IPv6 is off, so that
/// nobody sends by itself.
pub(crate) struct Cable {
    /// Where `left` is.
    pub(crate) left: Netns,
    /// Where `right` is.
    pub(crate) right: Netns,
}

impl Cable {
    /// The cable with its carrier, or none where the host does not allow one.
    pub(crate) fn new(mtu_bytes: u32) -> Option<Self> {
        if !userns::may_make_networks() {
            return None;
        }
        let namespace = || Netns::new().expect("a namespace");
        let cable = Self { left: namespace(), right: namespace() };
        for netns in [&cable.left, &cable.right] {
            // A kernel without IPv6 has no such setting.
            inside(netns, || sysctl::write("net/ipv6/conf/default/disable_ipv6", "1").ok());
        }
        let end = |name, index, netns| VethEnd { name, index, netns };
        let ends =
            [end("left", LEFT, cable.left.as_fd()), end("right", RIGHT, cable.right.as_fd())];
        let pair = VethPair { ends, mtu_bytes, super_packets: false };
        RouteSocket::open().and_then(|mut socket| socket.add_veth(&pair)).expect("a veth pair");
        for (netns, index) in [(&cable.left, LEFT), (&cable.right, RIGHT)] {
            inside(netns, || {
                RouteSocket::open().expect("netlink").set_up(index).expect("link up");
            });
        }
        for (netns, index) in [(&cable.left, LEFT), (&cable.right, RIGHT)] {
            let end = clock::monotonic() + PATIENCE;
            while !link(netns, index).running && clock::monotonic() < end {
                clock::sleep(Duration::from_millis(2));
            }
        }
        Some(cable)
    }
}

/// What the kernel says of a link.
pub(crate) fn link(netns: &Netns, index: u32) -> LinkFacts {
    inside(netns, || RouteSocket::open().expect("netlink").link_by_index(index).expect("a link"))
}

/// Runs `work` on a thread in the namespace.
pub(crate) fn inside<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            netns.enter().expect("the namespace");
            work()
        });
        thread.join().expect("the thread ends well")
    })
}

/// The ones' complement sum of bytes from an even offset on, added up word by word.
pub(crate) fn plain_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum over a UDP datagram in IPv4 with its pseudo-header, checksum included: all ones when
/// right (RFC 768).
pub(crate) fn transport_sum(frame: &[u8]) -> u16 {
    let mut covered = frame[26..34].to_vec();
    covered.extend([0, 17]);
    covered.extend(((frame.len() - 34) as u16).to_be_bytes());
    covered.extend(&frame[34..]);
    plain_sum(&covered)
}

/// UDP from 198.18.0.1 to 198.19.0.1, port 9, in frames of `len` bytes without FCS; the source
/// port varies when there are several flows. The destination address of the frame is nobody's.
pub(crate) fn udp_template(len: usize, flows: u32) -> FrameTemplate {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1]);
    bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    let header = !plain_sum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&header.to_be_bytes());
    bytes.extend([0xc0, 0x20, 0, 9, 0, 0, 0, 0]);
    bytes[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
    bytes.resize(len - SIGNATURE_BYTES, 0);
    bytes.resize(len, 0);
    let udp = !transport_sum(&bytes);
    bytes[40..42].copy_from_slice(&udp.to_be_bytes());
    let port = Varying {
        at: 34,
        width: 2,
        base: 0xc020,
        divisor: 1,
        count: flows,
        in_header_sum: false,
        in_transport_sum: true,
    };
    FrameTemplate {
        bytes,
        varying: if flows > 1 { vec![port] } else { Vec::new() },
        flows,
        shuffled: false,
        header_sum: Some(HeaderSum { at: 24 }),
        balance_at: Some(42),
    }
}
