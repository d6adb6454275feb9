//! Virtual hosts and routers at a port of the tester: they answer address resolution (ARP,
//! neighbour discovery, AARP, RIP of IPX), announce themselves, and refresh a device's tables
//! during a trial (RFC 2544 §23 and §25).
//!
//! Left out: answers to echo requests, and routing protocols of IP; routes are configured by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::appletalk::{self, Aarp};
use super::arp;
use super::ether::Ether;
use super::ipx::IpxRouter;
use super::ndp::{self, Neighbour};
use super::{AppleTalkAddress, DecNetAddress, Mac, Tags, decnet};

/// Most announcements in one call of [`Neighbours::keep_alives`]; more hosts announce in turn.
pub const ANNOUNCEMENTS_MAX: u32 = 64;
/// Seconds between two hellos of a DECnet node. Routers remove it after three missing ones.
const HELLO_S: u16 = 10;
/// Time between two updates of IPX routes. Routers remove them after three missing ones.
const UPDATE: Duration = Duration::from_secs(60);

/// Virtual hosts with consecutive addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualHostRange {
    /// Address of the first host; of IPv6 the low 32 bits are incremented.
    pub first: IpAddr,
    /// Number of hosts.
    pub count: u32,
    /// MAC address of the first host.
    pub mac: Mac,
    /// True if each host has its own MAC address, incremented with its IP address; else all have
    /// one.
    pub own_macs: bool,
}

impl VirtualHostRange {
    /// A single host.
    pub const fn single_host(address: IpAddr, mac: Mac) -> Self {
        Self { first: address, count: 1, mac, own_macs: false }
    }

    /// MAC address of the host with this IP address, if it is one of these hosts.
    pub fn mac_of(&self, address: IpAddr) -> Option<Mac> {
        let index = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().checked_sub(first.to_bits())?
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                u32::try_from(address.to_bits().checked_sub(first.to_bits())?).ok()?
            }
            _ => return None,
        };
        (index < self.count).then(|| self.host_mac(index))
    }

    const fn host_mac(&self, index: u32) -> Mac {
        self.mac.plus_offset(if self.own_macs { index } else { 0 })
    }

    /// ARP or neighbour announcement of host `index`.
    fn announcement(&self, index: u32, tags: Tags) -> Vec<u8> {
        match self.first {
            IpAddr::V4(first) => {
                let address = Ipv4Addr::from_bits(first.to_bits().wrapping_add(index));
                arp::request((self.host_mac(index), address), address, tags)
            }
            IpAddr::V6(first) => {
                let address = Ipv6Addr::from_bits(first.to_bits().wrapping_add(index.into()));
                ndp::announcement(self.host_mac(index), address, tags)
            }
        }
    }
}

/// Virtual stations at a port of the tester.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stations {
    /// VLAN tags of unsolicited frames; an answer has those of its request.
    pub tags: Tags,
    /// Hosts of IPv4 and IPv6.
    pub hosts: Vec<VirtualHostRange>,
    /// Interval of each host's announcements; none when `None`.
    pub announce_every: Option<Duration>,
    /// End nodes of DECnet, whose MAC addresses are derived from these addresses.
    pub decnet: Vec<DecNetAddress>,
    /// Nodes of AppleTalk.
    pub appletalk: Vec<(Mac, AppleTalkAddress)>,
    /// An IPX router.
    pub ipx: Option<IpxRouter>,
}

/// State of a port's virtual stations during a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    stations: Stations,
    due: Due,
}

/// Times of the next frames; at once when `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Due {
    hello: Option<MonoTime>,
    update: Option<MonoTime>,
    announcement: Option<MonoTime>,
    /// Index of the host that announces itself next.
    host: u64,
}

impl Neighbours {
    /// State of stations that have sent no frame yet.
    pub fn new(stations: Stations) -> Self {
        Self { stations, due: Due::default() }
    }

    /// Answer to a received frame, if it is a request to one of these stations.
    pub fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let ether = Ether::parse(frame)?;
        if let Some(arp) = arp::parse(&ether) {
            let mac = self.mac_of(arp::requested(&arp)?.into())?;
            // A host's announcement can come back through the device; it is no request.
            return (arp.sender_mac != mac.0).then(|| arp::reply_frame(&arp, mac, ether.tags));
        }
        if let Some(asked) = Neighbour::parse(&ether) {
            let mac = self.mac_of(asked.requested()?.into())?;
            let answer = || ndp::solicited_advertisement(&asked, &ether, mac);
            return (ether.source != mac).then(answer);
        }
        if let Some(aarp) = Aarp::parse(&ether) {
            return self.answer_aarp(&aarp, ether.tags);
        }
        self.stations.ipx.as_ref()?.answer(&ether)
    }

    fn answer_aarp(&self, asked: &Aarp, tags: Tags) -> Option<Vec<u8>> {
        let is_question = matches!(asked.function, appletalk::REQUEST | appletalk::PROBE);
        let nodes = self.stations.appletalk.iter().filter(|_| is_question);
        let source = *nodes.copied().find(|node| node.1 == asked.destination.1).as_ref()?;
        if source.0 == asked.source.0 {
            return None;
        }
        let answer = Aarp { function: appletalk::RESPONSE, source, destination: asked.source };
        Some(answer.frame_bytes(asked.source.0, tags))
    }

    fn mac_of(&self, address: IpAddr) -> Option<Mac> {
        self.stations.hosts.iter().find_map(|hosts| hosts.mac_of(address))
    }

    /// Frames due at `now`: hellos, updates of routes, announcements. The first call returns one of
    /// each. At most [`ANNOUNCEMENTS_MAX`] hosts announce themselves in one call.
    pub fn keep_alives(&mut self, now: MonoTime) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let hello = Duration::from_secs(HELLO_S.into());
        if !self.stations.decnet.is_empty() && is_due(&mut self.due.hello, now, hello) {
            let nodes = self.stations.decnet.iter();
            frames.extend(
                nodes.map(|node| decnet::endnode_hello(*node, None, HELLO_S, self.stations.tags)),
            );
        }
        if let Some(router) = &self.stations.ipx
            && is_due(&mut self.due.update, now, UPDATE)
        {
            frames.push(router.update(self.stations.tags));
        }
        let hosts = self.hosts_count();
        if let Some(every) = self.stations.announce_every.filter(|_| hosts > 0) {
            // The hosts announce in turn, all of them within `every`.
            let turns = hosts.div_ceil(ANNOUNCEMENTS_MAX.into());
            let turns = u32::try_from(turns).unwrap_or(u32::MAX);
            if is_due(&mut self.due.announcement, now, every / turns) {
                for _ in 0..hosts.min(ANNOUNCEMENTS_MAX.into()) {
                    frames.extend(self.announcement(self.due.host % hosts));
                    self.due.host = (self.due.host + 1) % hosts;
                }
            }
        }
        frames
    }

    /// One announcement of every station, for a device that is to learn all of them before a trial
    /// (RFC 2544 §23).
    pub fn announcements(&self) -> impl Iterator<Item = Vec<u8>> {
        let hosts = self.stations.hosts.iter();
        let hosts = hosts.flat_map(|hosts| {
            (0..hosts.count).map(|index| hosts.announcement(index, self.stations.tags))
        });
        let nodes = self.stations.decnet.iter();
        let nodes =
            nodes.map(|node| decnet::endnode_hello(*node, None, HELLO_S, self.stations.tags));
        let nodes = nodes.chain(
            self.stations
                .appletalk
                .iter()
                .map(|(mac, node)| appletalk::probe_frame(*mac, *node, self.stations.tags)),
        );
        hosts
            .chain(nodes)
            .chain(self.stations.ipx.iter().map(|router| router.update(self.stations.tags)))
    }

    fn hosts_count(&self) -> u64 {
        self.stations.hosts.iter().map(|hosts| u64::from(hosts.count)).sum()
    }

    fn announcement(&self, mut number: u64) -> Option<Vec<u8>> {
        for hosts in &self.stations.hosts {
            match u32::try_from(number) {
                Ok(index) if index < hosts.count => {
                    return Some(hosts.announcement(index, self.stations.tags));
                }
                _ => number = number.checked_sub(hosts.count.into())?,
            }
        }
        None
    }
}

/// True if `due` has passed, which is then set to the next time. Missed times are skipped.
fn is_due(due: &mut Option<MonoTime>, now: MonoTime, every: Duration) -> bool {
    let is_due = due.is_none_or(|due| due <= now);
    if is_due {
        *due = Some(now + every);
    }
    is_due
}

/// Request for the MAC address of `target`, such as a router. `None` for addresses of different IP
/// versions.
pub fn address_request(mac: Mac, address: IpAddr, target: IpAddr, tags: Tags) -> Option<Vec<u8>> {
    match (address, target) {
        (IpAddr::V4(address), IpAddr::V4(target)) => {
            Some(arp::request((mac, address), target, tags))
        }
        (IpAddr::V6(address), IpAddr::V6(target)) => {
            Some(ndp::request((mac, address), target, tags))
        }
        _ => None,
    }
}

/// MAC address of `target`, if a frame announces it.
pub fn announced_mac(frame: &[u8], target: IpAddr) -> Option<Mac> {
    let ether = Ether::parse(frame)?;
    match target {
        IpAddr::V4(target) => arp::owner_mac(&arp::parse(&ether)?, target),
        IpAddr::V6(target) => Neighbour::parse(&ether)?.owner_mac(target),
    }
}
