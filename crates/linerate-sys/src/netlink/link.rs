//! Links: veth pairs, bridges, their state and counters (rtnetlink(7), RTM_*LINK).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage, Stats64,
};

use super::socket::{Attempt, RouteSocket};
use crate::Result;

/// State and counters of a link, from the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFacts {
    /// Index in its namespace.
    pub index: u32,
    /// Name in its namespace.
    pub name: String,
    /// MTU: the largest IP packet.
    pub mtu_bytes: u32,
    /// Kind: `loopback`, `veth`, `bridge`, …; absent for hardware.
    pub kind: Option<String>,
    /// Index of the lower link in the same namespace, such as that under a VLAN; of a veth, its
    /// peer.
    pub lower_index: Option<u32>,
    /// True if the link is set up (IFF_UP).
    pub up: bool,
    /// True if the link is up with a carrier and an active queueing discipline (IFF_RUNNING).
    pub running: bool,
    /// True with a carrier, as the driver reports it; absent while the link is down.
    pub carrier: Option<bool>,
    /// Count of carrier changes since the link was created: if it has grown, the cable was
    /// unplugged meanwhile.
    pub carrier_changes: Option<u32>,
    /// True in promiscuous mode, for any reason.
    pub promiscuous: bool,
    /// MAC address of the link.
    pub mac: Option<[u8; 6]>,
    /// Counters since the link was created.
    pub counters: LinkCounters,
    /// Errors by kind.
    pub errors: LinkErrors,
}

/// Errors of a link by kind, as struct rtnl_link_stats64 and /sys/class/net/*/statistics name them.
pub type LinkErrors = [(&'static str, u64); 7];

/// Counters of a link (struct rtnl_link_stats64). Bytes are frames without FCS, counted where the
/// packet enters or leaves the link, after the queueing discipline; retransmits count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received; a segmentation super-packet counts once.
    pub rx_packets: u64,
    /// Packets sent; a segmentation super-packet counts once.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets to be sent that were dropped.
    pub tx_dropped: u64,
    /// Count of receive errors.
    pub rx_errors: u64,
    /// Count of send errors.
    pub tx_errors: u64,
}

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Name of the interface, at most 15 bytes (IFNAMSIZ).
    pub name: &'a str,
    /// Index of the interface, free in its namespace. If both ends have the same index, the kernel
    /// delays the carrier event by up to a second (linkwatch_urgent_event in
    /// net/core/link_watch.c).
    pub index: u32,
    /// Network namespace of the interface.
    pub netns: BorrowedFd<'a>,
}

/// A veth pair between two namespaces.
#[derive(Clone, Copy, Debug)]
pub struct VethPair<'a> {
    /// Both ends of the pair.
    pub ends: [VethEnd<'a>; 2],
    /// MTU of both ends.
    pub mtu_bytes: u32,
    /// False to segment super-packets before the pair, so that every segment is one packet.
    pub super_packets: bool,
}

impl RouteSocket {
    /// Creates a veth pair with its ends in two namespaces; the caller's namespace is not used.
    /// # Errors
    /// Without CAP_NET_ADMIN in both namespaces, or when a name is taken.
    pub fn add_veth(&mut self, pair: &VethPair<'_>) -> Result<()> {
        let [left, right] = pair.ends;
        let mut message = LinkMessage::default();
        message.header.index = left.index;
        message.attributes = end_attributes(&left, pair);
        let mut peer = LinkMessage::default();
        peer.header.index = right.index;
        peer.attributes = end_attributes(&right, pair);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let attempt = Attempt { call: "make veth pair", object: &left.name };
        self.create(message, &attempt)
    }

    /// Creates a learning bridge without spanning tree and multicast snooping.
    /// # Errors
    /// Without CAP_NET_ADMIN, or when the name is taken.
    pub fn add_bridge(&mut self, name: &str, index: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)])),
            ]),
        ];
        self.create(message, &Attempt { call: "make bridge", object: &name })
    }

    /// Adds a link to a bridge as a port.
    /// # Errors
    /// When either does not exist, or without CAP_NET_ADMIN.
    pub fn set_master(&mut self, port: u32, bridge: u32) -> Result<()> {
        let change = vec![LinkAttribute::Controller(bridge)];
        self.set_attributes(
            port,
            change,
            &Attempt { call: "add port to bridge, link", object: &port },
        )
    }

    /// Sets the MTU of a link.
    /// # Errors
    /// When the link does not allow that size, or without CAP_NET_ADMIN.
    pub fn set_mtu(&mut self, index: u32, mtu_bytes: u32) -> Result<()> {
        let change = vec![LinkAttribute::Mtu(mtu_bytes)];
        self.set_attributes(index, change, &Attempt { call: "set MTU of link", object: &index })
    }

    /// Sets the queue length of a link in packets (txqueuelen).
    /// # Errors
    /// When the link does not exist, or without CAP_NET_ADMIN.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<()> {
        let change = vec![LinkAttribute::TxQueueLen(packets)];
        self.set_attributes(
            index,
            change,
            &Attempt { call: "set queue length of link", object: &index },
        )
    }

    /// Sets a link up.
    /// # Errors
    /// When it does not exist, or without CAP_NET_ADMIN.
    pub fn set_up(&mut self, index: u32) -> Result<()> {
        let attempt = Attempt { call: "set up link", object: &index };
        self.set_state(index, LinkFlags::Up, &attempt)
    }

    /// Sets a link down.
    /// # Errors
    /// When it does not exist, or without CAP_NET_ADMIN.
    pub fn set_down(&mut self, index: u32) -> Result<()> {
        let attempt = Attempt { call: "set down link", object: &index };
        self.set_state(index, LinkFlags::empty(), &attempt)
    }

    fn set_state(&mut self, index: u32, state: LinkFlags, attempt: &Attempt<'_>) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = state;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message), 0, attempt)
    }

    /// State and counters of the link with this index.
    /// # Errors
    /// When there is none.
    pub fn link_by_index(&mut self, index: u32) -> Result<LinkFacts> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.query_link(message, &Attempt { call: "look up link", object: &index })
    }

    /// State and counters of the link with this name.
    /// # Errors
    /// When there is none.
    pub fn link_by_name(&mut self, name: &str) -> Result<LinkFacts> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        self.query_link(message, &Attempt { call: "look up link", object: &name })
    }

    /// State and counters of every link of the namespace.
    /// # Errors
    /// When the kernel does not answer.
    pub fn list_links(&mut self) -> Result<Vec<LinkFacts>> {
        let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let replies = self.dump_objects(message, &Attempt { call: "list", object: &"links" })?;
        Ok(replies.iter().filter_map(facts_of_reply).collect())
    }

    fn query_link(&mut self, message: LinkMessage, attempt: &Attempt<'_>) -> Result<LinkFacts> {
        let replies = self.get(RouteNetlinkMessage::GetLink(message), attempt)?;
        let facts = replies.iter().find_map(facts_of_reply);
        facts.ok_or_else(|| attempt.failed(io::Error::other("no answer that could be read")))
    }

    fn create(&mut self, message: LinkMessage, attempt: &Attempt<'_>) -> Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewLink(message), flags, attempt)
    }

    fn set_attributes(
        &mut self,
        index: u32,
        attributes: Vec<LinkAttribute>,
        attempt: &Attempt<'_>,
    ) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = attributes;
        self.change(RouteNetlinkMessage::SetLink(message), 0, attempt)
    }
}

fn end_attributes(end: &VethEnd<'_>, pair: &VethPair<'_>) -> Vec<LinkAttribute> {
    let mut attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Mtu(pair.mtu_bytes),
        LinkAttribute::NetNsFd(end.netns.as_raw_fd()),
    ];
    if !pair.super_packets {
        // One segment a packet: the stack segments super-packets of every protocol before the link.
        attributes.push(LinkAttribute::GsoMaxSegs(1));
    }
    attributes
}

fn facts_of_reply(reply: &RouteNetlinkMessage) -> Option<LinkFacts> {
    match reply {
        RouteNetlinkMessage::NewLink(message) => Some(link_facts(message)),
        _ => None,
    }
}

fn link_facts(message: &LinkMessage) -> LinkFacts {
    let mut facts = LinkFacts {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        running: message.header.flags.contains(LinkFlags::Running),
        ..LinkFacts::default()
    };
    if message.header.link_layer_type == LinkLayerType::Loopback {
        facts.kind = Some("loopback".to_owned());
    }
    // The index of a link in another namespace has no meaning in this one.
    let is_foreign = |attribute: &LinkAttribute| matches!(attribute, LinkAttribute::LinkNetNsId(_));
    let elsewhere = message.attributes.iter().any(is_foreign);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Link(index) if !elsewhere => facts.lower_index = Some(*index),
            LinkAttribute::IfName(name) => facts.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => facts.mtu_bytes = *mtu,
            // A link that is down has a carrier attribute of 0 even with a carrier.
            LinkAttribute::Carrier(carrier) if facts.up => facts.carrier = Some(*carrier != 0),
            LinkAttribute::CarrierChanges(count) => facts.carrier_changes = Some(*count),
            LinkAttribute::Promiscuity(count) => facts.promiscuous = *count > 0,
            LinkAttribute::Address(bytes) => facts.mac = bytes.as_slice().try_into().ok(),
            LinkAttribute::Stats64(stats) => {
                facts.counters = counters(stats);
                facts.errors = errors(stats);
            }
            LinkAttribute::LinkInfo(infos) => {
                let kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
                facts.kind = facts.kind.or(kind);
            }
            _ => {}
        }
    }
    facts
}

fn counters(stats: &Stats64) -> LinkCounters {
    LinkCounters {
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_dropped: stats.rx_dropped,
        tx_dropped: stats.tx_dropped,
        rx_errors: stats.rx_errors,
        tx_errors: stats.tx_errors,
    }
}

fn errors(stats: &Stats64) -> LinkErrors {
    [
        ("rx_crc_errors", stats.rx_crc_errors),
        ("rx_frame_errors", stats.rx_frame_errors),
        ("rx_fifo_errors", stats.rx_fifo_errors),
        ("rx_missed_errors", stats.rx_missed_errors),
        ("rx_over_errors", stats.rx_over_errors),
        ("collisions", stats.collisions),
        ("tx_carrier_errors", stats.tx_carrier_errors),
    ]
}
