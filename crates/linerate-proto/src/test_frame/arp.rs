//! ARP for IPv4 on Ethernet (RFC 826, RFC 5227).

use std::net::Ipv4Addr;

use etherparse::{ArpEthIpv4Packet, ArpOperation, ArpPacketSlice};

use super::ether::{self, ARP, Ether};
use super::{Mac, Tags};

pub(super) fn parse(ether: &Ether<'_>) -> Option<ArpEthIpv4Packet> {
    let packet = (ether.kind == ARP).then(|| ArpPacketSlice::from_slice(ether.body).ok())??;
    packet.to_packet().try_eth_ipv4().ok()
}

/// Target address of a request, which may be a probe (sender 0.0.0.0).
pub(super) fn requested(arp: &ArpEthIpv4Packet) -> Option<Ipv4Addr> {
    (arp.operation == ArpOperation::REQUEST).then(|| arp.target_ipv4_addr())
}

/// MAC address of `address`, if it is the sender of this request or reply.
pub(super) fn owner_mac(arp: &ArpEthIpv4Packet, address: Ipv4Addr) -> Option<Mac> {
    let is_known = matches!(arp.operation, ArpOperation::REQUEST | ArpOperation::REPLY);
    let sender = Mac(arp.sender_mac);
    (is_known && arp.sender_ipv4_addr() == address && !sender.is_group()).then_some(sender)
}

/// Reply of the host `mac` to the sender of a request.
pub(super) fn reply_frame(request: &ArpEthIpv4Packet, mac: Mac, tags: Tags) -> Vec<u8> {
    let reply = ArpEthIpv4Packet {
        operation: ArpOperation::REPLY,
        sender_mac: mac.0,
        sender_ipv4: request.target_ipv4,
        target_mac: request.sender_mac,
        target_ipv4: request.sender_ipv4,
    };
    arp_frame(&reply, Mac(request.sender_mac), tags)
}

/// Broadcast request for the MAC address of `target`. A request for the sender's own address is an
/// announcement (RFC 5227 §1.1).
pub(super) fn request(sender: (Mac, Ipv4Addr), target: Ipv4Addr, tags: Tags) -> Vec<u8> {
    let request = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: sender.0.0,
        sender_ipv4: sender.1.octets(),
        target_mac: Mac::default().0,
        target_ipv4: target.octets(),
    };
    arp_frame(&request, Mac::BROADCAST, tags)
}

fn arp_frame(arp: &ArpEthIpv4Packet, to: Mac, tags: Tags) -> Vec<u8> {
    let mut bytes = ether::frame_head(to, Mac(arp.sender_mac), tags);
    bytes.extend_from_slice(&ARP.to_be_bytes());
    bytes.extend_from_slice(&arp.to_bytes());
    ether::padded(bytes)
}
