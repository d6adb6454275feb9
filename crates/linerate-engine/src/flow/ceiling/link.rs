//! The rates that the interfaces of both ends tell, each with how it counts a packet.
//!
//! A speed counts everything on the wire; a token bucket filter counts the IP packet and the
//! Ethernet header. An interface that wraps packets tells neither, whatever figure it names: what
//! carries them, and how much is added, is not seen from here.

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, EmulatedPath, KnownPath, MeasurementEnd, PathPlan, Record,
    RecordedInterface,
};
use linerate_core::theory::framing::{
    self, EthernetLink, FramingCeiling, ShapedLink, VLAN_TAG_BYTES,
};
use linerate_core::units::BitRate;

use super::FullPacket;
use super::emulated::Emulated;

/// A packet by which rates are compared before the test's own are known.
const FULL_PACKET_BYTES: u32 = 1500;

/// Kinds of links that put packets into packets of another network, or speak no Ethernet
/// (ip-link(8), `IFLA_INFO_KIND`).
const WRAPPING: [&str; 18] = [
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "gtp",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ppp",
    "sit",
    "tun",
    "vti",
    "vxlan",
    "wireguard",
    "xfrm",
];

/// A rate that an interface tells.
#[derive(Clone, Debug)]
pub(super) struct LinkRate {
    pub(super) bps: u64,
    pub(super) counts: RateLayer,
    pub(super) tags: u8,
    pub(super) source: String,
}

/// The bytes of a packet that a rate counts.
#[derive(Clone, Debug)]
pub(super) enum RateLayer {
    /// Everything on an Ethernet wire.
    Wire,
    /// The IP packet and the Ethernet header.
    Shaped,
    /// The bytes that the line of an emulated path counts, or a link that the user names.
    Emulated(Box<Emulated>),
    /// The IP packet alone.
    Packet,
}

/// The rates of the links of one direction, as the interfaces of both ends tell them.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkRates {
    pub(super) rates: Vec<LinkRate>,
    /// Interfaces that tell none.
    pub(super) unknown: Vec<String>,
    /// Why there is no link at all.
    pub(super) no_link: Option<String>,
}

/// Adds the rates of paths that carry a direction. The devices at their ends, which tell none, are
/// no longer unknown.
pub(super) fn add_paths(
    known: &mut LinkRates,
    paths: &[EmulatedPath],
    direction: Direction,
    flows: usize,
) {
    if known.no_link.is_some() {
        return;
    }
    for path in paths {
        let Some(carrying) = path.carrying(direction) else { continue };
        known.unknown.retain(|unknown| !unknown.contains("(tun)"));
        let plan = path.plan.clone();
        let emulated = Emulated { plan, backward: carrying.backward, flows };
        let Some(bound) = emulated.bound_for_ip_bytes(FULL_PACKET_BYTES) else { continue };
        let bps = bound.packets_per_s * f64::from(bound.line_bytes) * 8.0;
        known.rates.push(LinkRate {
            bps: bound.rate.map_or(bps as u64, |rate| rate.bits_per_sec()),
            counts: RateLayer::Emulated(Box::new(emulated)),
            tags: 0,
            source: format!("laboratory link {}, {}", path.name, bound.what),
        });
    }
}

/// Adds what the user knows of a path. What the interfaces do not tell is no longer unknown then,
/// also where there is no link by itself: the user has the last word.
pub(super) fn add_known(known: &mut LinkRates, path: &KnownPath, flows: usize) {
    let rates = known.rates.len();
    let source = format!("as told by {}", path.source);
    if let Some(capacity) = path.capacity_bps {
        let bps = capacity.bits_per_sec();
        let source = format!("capacity for IP packets, {source}");
        known.rates.push(LinkRate { bps, counts: RateLayer::Packet, tags: 0, source });
    }
    if let Some(link) = &path.link {
        let plan = PathPlan { link: Some(link.clone()), ..PathPlan::default() };
        let emulated = Emulated { plan, backward: false, flows };
        if let Some(rate) =
            emulated.bound_for_ip_bytes(FULL_PACKET_BYTES).and_then(|bound| bound.rate)
        {
            known.rates.push(LinkRate {
                bps: rate.bits_per_sec(),
                counts: RateLayer::Emulated(Box::new(emulated)),
                tags: 0,
                source: format!("{link}, {source}"),
            });
        }
    }
    if known.rates.len() > rates {
        known.unknown.clear();
        known.no_link = None;
    }
}

/// The interface of the end that sends in a direction.
pub(super) fn sender(ends: &[MeasurementEnd], direction: Direction) -> Option<&RecordedInterface> {
    ends.iter().find(|end| end.role == sending_role(direction))?.interface.as_ref()
}

const fn sending_role(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "local",
        Direction::Down => "remote",
    }
}

/// True where the ceiling's rate is that of a token bucket filter at the sending end.
pub(in crate::flow) fn is_shaped(record: &Record, ceiling: &Ceiling, direction: Direction) -> bool {
    let Some(rate) = ceiling.find_input("link_rate_bps") else { return false };
    let senders = record.ends.iter().filter(|end| end.role == sending_role(direction));
    let mut shapers = senders.filter_map(|end| end.interface.as_ref()?.shaper_bps);
    shapers.any(|bps| (bps as f64 - rate.value).abs() < 1.0)
}

/// Negotiated speeds at both ends, a shaper at the sending one.
pub(super) fn interface_rates(ends: &[MeasurementEnd], direction: Direction) -> LinkRates {
    let interfaces: Vec<(&MeasurementEnd, &RecordedInterface)> =
        ends.iter().filter_map(|end| Some((end, end.interface.as_ref()?))).collect();
    let mut known = LinkRates::default();
    if let Some((_, loopback)) = interfaces.iter().find(|(_, it)| is_loopback(it)) {
        known.no_link = Some(format!("{} is loopback, whose packets cross no link", loopback.name));
        return known;
    }
    let mut silent = Vec::new();
    for (end, interface) in &interfaces {
        if wraps_packets(interface) {
            known.unknown.push(format!(
                "the rate and the encapsulation under {}: it wraps packets",
                name_with_kind(interface)
            ));
            continue;
        }
        known.rates.extend(rates_of(end, interface, direction));
        if interface.speed_bps.is_none() && interface.shaper_bps.is_none() {
            silent.push(name_with_kind(interface));
        }
    }
    silent.dedup();
    if !silent.is_empty() {
        let verb = if silent.len() == 1 { "does" } else { "do" };
        let names = silent.join(" and ");
        known.unknown.push(format!("the link's rate: {names} {verb} not report one"));
    } else if interfaces.is_empty() {
        known.unknown.push("the link's rate".to_owned());
    }
    known
}

fn rates_of(
    end: &MeasurementEnd,
    interface: &RecordedInterface,
    direction: Direction,
) -> Vec<LinkRate> {
    let tags = interface.vlan_tags.unwrap_or(0);
    let place = |name: &str| format!("{name} at the {} end", end.role);
    let lowest = interface.lower.as_deref().unwrap_or(&interface.name);
    let speed = interface.speed_bps.map(|bps| LinkRate {
        bps,
        counts: RateLayer::Wire,
        tags,
        source: format!("speed of {}", place(lowest)),
    });
    let shaper = interface.shaper_bps.filter(|_| end.role == sending_role(direction));
    let shaper = shaper.map(|bps| LinkRate {
        bps,
        counts: RateLayer::Shaped,
        tags,
        source: format!("token bucket filter on {}", place(&interface.name)),
    });
    speed.into_iter().chain(shaper).collect()
}

/// A shaper makes a link even of loopback.
fn is_loopback(interface: &RecordedInterface) -> bool {
    interface.kind.as_deref() == Some("loopback") && interface.shaper_bps.is_none()
}

fn wraps_packets(interface: &RecordedInterface) -> bool {
    interface.kind.as_deref().is_some_and(|kind| WRAPPING.contains(&kind))
}

fn name_with_kind(interface: &RecordedInterface) -> String {
    match &interface.kind {
        Some(kind) => format!("{} ({kind})", interface.name),
        None => interface.name.clone(),
    }
}

impl LinkRate {
    /// True where the rate counts more than the IP packets: the bytes around them.
    pub(super) const fn has_frames(&self) -> bool {
        !matches!(self.counts, RateLayer::Packet)
    }

    /// The rate, and the tags that every frame gets.
    pub(super) fn inputs(&self) -> Vec<CeilingInput> {
        let rate = CeilingInput::from_value("link_rate_bps", self.bps as f64, &self.source);
        let tags = (self.tags > 0).then(|| {
            CeilingInput::from_value("vlan_tags", f64::from(self.tags), "of the interface")
        });
        [rate].into_iter().chain(tags).collect()
    }

    /// The rate that the link leaves at each layer for full packets; none for impossible ones.
    ///
    /// The bucket of a shaper does not see the tags of a VLAN: a driver that inserts them itself,
    /// as nearly all do, gets the packet without them (struct sk_buff, vlan_tci).
    pub(super) fn framing(&self, packet: &FullPacket) -> Option<FramingCeiling> {
        let rate = BitRate::from_bits_per_sec(self.bps);
        let mtu_bytes = packet.bytes;
        match &self.counts {
            RateLayer::Emulated(emulated) => return emulated.framing(packet),
            RateLayer::Wire => {
                let link = EthernetLink { rate, mtu_bytes, vlan_tags: self.tags };
                return framing::ceiling(&link, &packet.segment).ok();
            }
            RateLayer::Packet => {
                let frames_per_s = self.bps as f64 / 8.0 / f64::from(mtu_bytes);
                let payload_bytes = packet.segment.payload_bytes(mtu_bytes).ok()?;
                let bps = |bytes: u32| frames_per_s * f64::from(bytes) * 8.0;
                let (payload_bps, ip_bps) = (bps(payload_bytes), bps(mtu_bytes));
                let (frame_bps, wire_bps) = (ip_bps, ip_bps);
                return Some(FramingCeiling {
                    payload_bps,
                    ip_bps,
                    frame_bps,
                    wire_bps,
                    frames_per_s,
                });
            }
            RateLayer::Shaped => {}
        }
        let mut framing =
            framing::shaped_ceiling(&ShapedLink { rate, mtu_bytes }, &packet.segment).ok()?;
        let tags_bps =
            framing.frames_per_s * f64::from(VLAN_TAG_BYTES * u32::from(self.tags)) * 8.0;
        framing.frame_bps += tags_bps;
        framing.wire_bps += tags_bps;
        Some(framing)
    }
}
