//! The path of a cell: two network namespaces of its own, a veth cable between them, a token
//! bucket filter at both egresses, and what the kernel counted of it at both ends.
//!
//! Nothing here asks the program under test: these are the figures it is held to.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_sys::netlink::{QdiscCounters, RouteSocket, Tbf, VethEnd, VethPair};
use linerate_sys::netns::{self, Netns};
use linerate_sys::{clock, sysctl};

/// The client's address.
pub(crate) const CLIENT: &str = "10.77.0.1";
/// The server's address.
pub(crate) const SERVER: &str = "10.77.0.2";
/// Index of the cable's end in the client's namespace, and in the server's.
const INDEX: [u32; 2] = [2, 3];
/// Name of both ends.
const NAME: &str = "cable";
/// Ethernet header without FCS, as the filter counts (linux/if_ether.h, ETH_HLEN).
const ETHERNET: f64 = 14.0;
/// Headers of IPv4 and of TCP with timestamps (RFC 791, RFC 9293, RFC 7323).
const TCP_HEADERS: f64 = 20.0 + 32.0;
/// Headers of IPv4 and UDP.
const UDP_HEADERS: f64 = 20.0 + 8.0;
const MTU: f64 = 1500.0;

/// What limits a path. The same both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Rate of the token bucket filter, in bits of frames without FCS.
    pub(crate) rate_bps: u64,
    /// Depth of its bucket.
    pub(crate) burst_bytes: u32,
    /// Room for frames that wait.
    pub(crate) queue_bytes: u32,
}

impl Limits {
    /// Payload bytes that can arrive in `seconds`: tokens of that time and a full bucket, all in
    /// packets that carry the most payload.
    pub(crate) fn payload(&self, udp: bool, seconds: f64) -> f64 {
        let share = share(udp);
        (self.rate_bps as f64 / 8.0 * seconds.max(0.0) + f64::from(self.burst_bytes)) * share
    }

    /// Payload bit/s of the link in the long run.
    pub(crate) fn ceiling_bps(&self, udp: bool) -> f64 {
        self.rate_bps as f64 * share(udp)
    }
}

/// Payload of the frame that carries the most, over its length.
fn share(udp: bool) -> f64 {
    let headers = if udp { UDP_HEADERS } else { TCP_HEADERS };
    (MTU - headers) / (MTU + ETHERNET)
}

/// Which end of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Where the client runs.
    Client = 0,
    /// Where the server runs.
    Server = 1,
}

/// What the kernel counted at one end since the path was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// The queue before the cable.
    pub(crate) queue: QdiscCounters,
    /// Bytes of frames that came in.
    pub(crate) rx_bytes: u64,
    /// Frames that came in.
    pub(crate) rx_packets: u64,
    /// Datagrams that found no room in their socket.
    pub(crate) socket_drops: u64,
}

/// Two ends and their cable. Dropping it ends what still runs at them.
pub(crate) struct Path {
    ends: [Netns; 2],
}

impl Path {
    /// Makes the path and waits for its carrier.
    pub(crate) fn new(limits: &Limits) -> Self {
        let ends = [Netns::new(), Netns::new()].map(|netns| netns.expect("a namespace"));
        for netns in &ends {
            netns.enter().expect("the namespace");
            // A kernel without IPv6 has no such setting. Nobody is to send by itself.
            let _ = sysctl::write("net/ipv6/conf/default/disable_ipv6", "1");
            let _ = sysctl::write("net/ipv4/tcp_wmem", WMEM);
            // Refused where the host lets namespaces have others only.
            let _ = sysctl::write("net/ipv4/tcp_congestion_control", "cubic");
        }
        let end = |at: usize| VethEnd { name: NAME, index: INDEX[at], netns: ends[at].as_fd() };
        let pair = VethPair { ends: [end(0), end(1)], mtu_bytes: 1500, super_packets: false };
        RouteSocket::open().and_then(|mut it| it.add_veth(&pair)).expect("a veth pair");
        let path = Self { ends };
        for (end, address) in [(End::Client, CLIENT), (End::Server, SERVER)] {
            path.enter(end);
            let mut route = RouteSocket::open().expect("netlink");
            let index = INDEX[end as usize];
            let address = address.parse().expect("an address");
            route.add_address(index, address, 24).expect("an address");
            let (rate_bps, burst_bytes) = (limits.rate_bps, limits.burst_bytes);
            let tbf = Tbf { rate_bps, burst_bytes, limit_bytes: limits.queue_bytes };
            route.set_tbf(index, &tbf).expect("a token bucket filter");
            route.set_up(index).expect("link up");
            let loopback = route.link_by_name("lo").expect("a loopback link");
            route.set_up(loopback.index).expect("link up");
        }
        path.wait_for_carrier();
        path
    }

    fn wait_for_carrier(&self) {
        for end in [End::Client, End::Server] {
            self.enter(end);
            let mut route = RouteSocket::open().expect("netlink");
            for _ in 0..5000 {
                if route.link_by_index(INDEX[end as usize]).expect("a link").running {
                    break;
                }
                clock::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Moves the calling thread to one end; what it starts begins there.
    pub(crate) fn enter(&self, end: End) {
        self.ends[end as usize].enter().expect("the namespace");
    }

    /// Takes the cable out.
    pub(crate) fn unplug(&self) {
        self.enter(End::Server);
        let mut route = RouteSocket::open().expect("netlink");
        route.set_down(INDEX[End::Server as usize]).expect("link down");
    }

    /// Kills every process at one end.
    pub(crate) fn kill_all(&self, end: End) {
        let ids: Vec<u64> = self.ends[end as usize].inode_number().into_iter().collect();
        netns::processes_inside(&ids).iter().for_each(netns::Process::kill);
    }

    /// What was counted at one end.
    pub(crate) fn counted(&self, end: End) -> Counted {
        self.enter(end);
        let mut route = RouteSocket::open().expect("netlink");
        let index = INDEX[end as usize];
        let link = route.link_by_index(index).expect("a link").counters;
        Counted {
            queue: route.root_counters(index).expect("counters").unwrap_or_default(),
            rx_bytes: link.rx_bytes,
            rx_packets: link.rx_packets,
            socket_drops: socket_drops(),
        }
    }

    /// Whether somebody at this end has the port.
    pub(crate) fn has_port(&self, end: End, udp: bool, port: u16) -> bool {
        self.enter(end);
        let (tables, state) =
            if udp { (["udp", "udp6"], " 07 ") } else { (["tcp", "tcp6"], " 0A ") };
        let hex = format!(":{port:04X} ");
        let mut texts = tables.iter().map(|name| format!("/proc/thread-self/net/{name}"));
        texts.any(|name| {
            let table = std::fs::read_to_string(name).unwrap_or_default();
            table.lines().any(|line| line.contains(&hex) && line.contains(state))
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let ids: Vec<u64> =
            self.ends.iter().filter_map(|netns| netns.inode_number().ok()).collect();
        netns::processes_inside(&ids).iter().for_each(netns::Process::kill);
    }
}

/// net.ipv4.tcp_wmem at both ends: a small most, so that what a sender hands over before it
/// crosses the path stays small beside the test.
const WMEM: &str = "4096 16384 262144";

/// Payload that one TCP socket takes over before it has crossed the path. The kernel stops at the
/// most of `tcp_wmem` by memory, whole segments of 64 KiB at a time and the one in work above it.
pub(crate) const SEND_BUFFER: f64 = 262_144.0 + 2.0 * 65_536.0;

/// RcvbufErrors of /proc/net/snmp (proc_pid_net(5)).
fn socket_drops() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("Udp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "RcvbufErrors");
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
