//! What is left of a link's rate at each layer, from the line down to the payload, for
//! back-to-back full packets of one flow.
//!
//! Left out: acknowledgements, retransmissions, and everything between two full packets. Each
//! layer's own rule is in the file of its name (`sonet`, `atm`, `ppp`, `framing`, `access`,
//! `wifi`, `encapsulation`, `esp`); the form is that of Figure 4 of the OC-12 study of 1999.

use thiserror::Error;

use super::carrier::Carrier;
use super::encapsulation::Encapsulation;
use super::framing::{FramingError, PACKET_MAX_BYTES, SegmentHeaders, Transport};
use super::link::LinkTechnology;
use crate::record::IpFamily;

mod line;

use line::{LayerBytes, carrier_rows};

/// Encapsulations that are taken at most.
pub const ENCAPSULATIONS_MAX: usize = 16;
/// VLAN tags of one Ethernet frame at most (IEEE 802.1ad).
pub const VLAN_TAGS_MAX: u8 = 2;

/// Link, encapsulations and packets of which the layers are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPlan {
    /// The link that carries the packets.
    pub link: LinkTechnology,
    /// Link-layer protocol that carries packets on it.
    pub carrier: Carrier,
    /// Encapsulations of the packets, outermost first.
    pub encapsulations: Vec<Encapsulation>,
    /// Longest packet on the link. Tunnels and PPPoE take their bytes from it; tags, labels and
    /// `pppoe-rfc4638` outside of every tunnel come on top.
    pub mtu_bytes: u32,
    /// IP and transport headers of the flow.
    pub segment: SegmentHeaders,
}

/// Rates at each layer of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerRates {
    /// Layers from the line's rate down to the payload; no layer has more than the one before it.
    pub layers: Vec<StackLayer>,
    /// Full packets per second.
    pub packets_per_s: f64,
    /// Payload of a packet.
    pub payload_bytes: u32,
    /// Rate of the payload.
    pub payload_bps: f64,
    /// Rate of the flow's own IP packets, inside of every encapsulation.
    pub ip_bps: f64,
    /// True when any layer is an estimate.
    pub estimate: bool,
}

/// One layer of the link.
#[derive(Clone, Debug, PartialEq)]
pub struct StackLayer {
    /// Name of the layer whose bytes the rate counts: `SONET payload`.
    pub name: String,
    /// Rate at the layer, bit/s.
    pub bps: f64,
    /// Bytes of the layer for each full packet of the flow.
    pub bytes_per_packet: f64,
    /// Part of the layer before that was taken: `5 of every 53 bytes: cell header`.
    pub rule: String,
    /// Standard of the rule.
    pub source: &'static str,
    /// True when the rule is an estimate.
    pub estimate: bool,
}

/// Reason why the layers cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StackError {
    /// Rate of 0, or headers that leave no payload.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// The carrier does not run on the link.
    #[error("{carrier} does not run on {link}; the link's own is {}", .link.default_carrier())]
    Carrier {
        /// The link that was given.
        link: LinkTechnology,
        /// The link-layer protocol that was given.
        carrier: Carrier,
    },
    /// A tag or PPPoE without Ethernet around it.
    #[error("{encapsulation} needs an Ethernet frame right outside of it, and there is none")]
    NoFrame {
        /// The encapsulation that was given.
        encapsulation: Encapsulation,
    },
    /// More tags than 802.1ad allows.
    #[error("{tags} VLAN tags on one frame are more than {VLAN_TAGS_MAX}")]
    TooManyTags {
        /// Number of tags in the frame.
        tags: u32,
    },
    /// More encapsulations than anybody has.
    #[error("{count} encapsulations are more than {ENCAPSULATIONS_MAX}")]
    TooManyEncapsulations {
        /// Number of the encapsulations given.
        count: usize,
    },
    /// A number in the encapsulation that its standard does not allow.
    #[error("{encapsulation} is not possible: its number is out of range")]
    Impossible {
        /// The encapsulation that was given.
        encapsulation: Encapsulation,
    },
    /// No packet fits into the encapsulation.
    #[error("{encapsulation} does not fit into the {room_bytes} bytes that are left of the MTU")]
    NoRoom {
        /// The encapsulation that was given.
        encapsulation: Encapsulation,
        /// Bytes of the MTU that are left for it.
        room_bytes: u32,
    },
    /// QUIC with something inside, or over TCP.
    #[error("quic comes last and needs UDP: give it as the last encapsulation of a UDP flow")]
    Quic,
    /// Longer than the carrier can frame.
    #[error("{carrier} carries packets of at most {max_bytes} bytes, and this one has {bytes}")]
    TooLong {
        /// The link-layer protocol that was given.
        carrier: Carrier,
        /// Length of the packet with tags and labels.
        bytes: u32,
        /// Longest packet of that protocol.
        max_bytes: u32,
    },
    /// Not one of the eight rates.
    #[error(
        "802.11a and g know 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s, and {link} is none of them"
    )]
    WifiRate {
        /// The link that was given.
        link: LinkTechnology,
    },
}

/// Rates at each layer of a link for a flow of full packets.
///
/// packets/s = line rate / (8 × bytes that a packet takes of the line); each layer is packets/s
/// times its own bytes of a packet.
///
/// ```
/// # use linerate_core::record::IpFamily;
/// # use linerate_core::theory::framing::{SegmentHeaders, Transport};
/// # use linerate_core::theory::stack::{StackPlan, layer_rates};
/// let plan = StackPlan {
///     link: "oc12".parse()?,
///     carrier: "aal5-llcsnap".parse()?,
///     encapsulations: Vec::new(),
///     mtu_bytes: 9180,
///     segment: SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp },
/// };
/// let stack = layer_rates(&plan)?;
/// let mbps: Vec<String> =
///     stack.layers.iter().map(|layer| format!("{:.2}", layer.bps / 1e6)).collect();
/// assert_eq!(mbps, ["622.08", "599.04", "542.53", "540.88", "540.41", "538.05"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Errors
/// [`StackError`]: a rate of 0, an MTU that the headers fill, and layers that do not go together.
/// # Source
/// That of each layer.
pub fn layer_rates(plan: &StackPlan) -> Result<LayerRates, StackError> {
    let rate_bps = plan.link.bit_rate().bits_per_sec();
    if rate_bps == 0 {
        return Err(FramingError::ZeroRate.into());
    }
    if !plan.link.supports_carrier(plan.carrier) {
        return Err(StackError::Carrier { link: plan.link, carrier: plan.carrier });
    }
    let wraps = ordered_encapsulations(plan)?;
    let sizes = stack_sizes(plan, &wraps)?;
    let mut rows = carrier_rows(plan.link, plan.carrier, sizes.outside)?;
    rows.extend(wrap_rows(&wraps, &sizes));
    if let Some(last) = rows.last_mut() {
        "IP packets".clone_into(&mut last.name);
    }
    rows.extend(payload_rows(plan.segment, &wraps, &sizes));
    Ok(from_rows(rate_bps as f64, rows, &sizes))
}

/// The encapsulations, that of the carrier among them, in a possible order.
fn ordered_encapsulations(plan: &StackPlan) -> Result<Vec<Encapsulation>, StackError> {
    let count = plan.encapsulations.len();
    if count > ENCAPSULATIONS_MAX {
        return Err(StackError::TooManyEncapsulations { count });
    }
    // The carrier's own PPPoE is inside of the frame's tags.
    let tagged = plan.encapsulations.iter().take_while(|wrap| wrap.vlan_tags() > 0).count();
    let mut wraps = plan.encapsulations.clone();
    if plan.carrier.is_pppoe() {
        wraps.insert(tagged, Encapsulation::Pppoe);
    }
    check_order(plan, &wraps)?;
    Ok(wraps)
}

fn check_order(plan: &StackPlan, wraps: &[Encapsulation]) -> Result<(), StackError> {
    // Tags of the Ethernet frame that is open at this place, if one is.
    let bridged = plan.carrier.is_bridged() && !is_wifi(plan.link);
    let mut frame_tags = bridged.then_some(0_u32);
    for (index, wrap) in wraps.iter().enumerate() {
        let encapsulation = *wrap;
        if !encapsulation.is_possible() {
            return Err(StackError::Impossible { encapsulation });
        }
        let is_quic = matches!(encapsulation, Encapsulation::Quic { .. });
        if is_quic && (index + 1 < wraps.len() || plan.segment.transport != Transport::Udp) {
            return Err(StackError::Quic);
        }
        if encapsulation.needs_frame() && frame_tags.is_none() {
            return Err(StackError::NoFrame { encapsulation });
        }
        frame_tags = match encapsulation {
            Encapsulation::Vlan | Encapsulation::Qinq => {
                frame_tags.map(|tags| tags + u32::from(encapsulation.vlan_tags()))
            }
            Encapsulation::Mtu { .. } => frame_tags,
            _ => encapsulation.carries_frame().then_some(0),
        };
        if let Some(tags) = frame_tags.filter(|tags| *tags > u32::from(VLAN_TAGS_MAX)) {
            return Err(StackError::TooManyTags { tags });
        }
    }
    Ok(())
}

const fn is_wifi(link: LinkTechnology) -> bool {
    matches!(link, LinkTechnology::Wifi(_) | LinkTechnology::WifiLegacy(_))
}

/// One full packet, in bytes at each place.
struct StackSizes {
    /// Bytes that the link-layer protocol carries.
    outside: u32,
    /// Bytes just inside of each encapsulation.
    inside: Vec<u32>,
    /// The flow's own IP packet.
    packet: u32,
    /// Payload of TCP or UDP.
    datagram: u32,
    /// Payload of the flow.
    payload: u32,
}

fn stack_sizes(plan: &StackPlan, wraps: &[Encapsulation]) -> Result<StackSizes, StackError> {
    let room = inner_max_lengths(plan.mtu_bytes, wraps)?;
    let packet = room.last().copied().unwrap_or(plan.mtu_bytes);
    let datagram = plan.segment.payload_bytes(packet)?;
    let mut inside = vec![packet; wraps.len()];
    let mut outside = packet;
    for index in (0..wraps.len()).rev() {
        inside[index] = outside;
        // An `mtu` right inside of a tunnel is the MTU of the tunnel's interface.
        let narrower = wraps[index + 1..].iter().take_while(|wrap| is_mtu(**wrap)).count();
        outside = wraps[index].outer_bytes(outside, room[index + narrower]);
    }
    let payload = match wraps.last() {
        Some(quic @ Encapsulation::Quic { .. }) => {
            let left = datagram.checked_sub(quic.fixed_bytes()).filter(|left| *left > 0);
            left.ok_or(StackError::NoRoom { encapsulation: *quic, room_bytes: datagram })?
        }
        _ => datagram,
    };
    Ok(StackSizes { outside, inside, packet, datagram, payload })
}

const fn is_mtu(wrap: Encapsulation) -> bool {
    matches!(wrap, Encapsulation::Mtu { .. })
}

/// The longest packet inside of each encapsulation.
fn inner_max_lengths(mtu_bytes: u32, wraps: &[Encapsulation]) -> Result<Vec<u32>, StackError> {
    if mtu_bytes > PACKET_MAX_BYTES {
        return Err(FramingError::MtuTooLarge { mtu_bytes }.into());
    }
    let mut room_bytes = mtu_bytes;
    let mut within_mtu = false;
    let mut rooms = Vec::with_capacity(wraps.len());
    for encapsulation in wraps.iter().copied() {
        within_mtu |= !encapsulation.is_beyond_mtu();
        if within_mtu {
            room_bytes = encapsulation
                .inner_max_bytes(room_bytes)
                .ok_or(StackError::NoRoom { encapsulation, room_bytes })?;
        }
        rooms.push(room_bytes);
    }
    Ok(rooms)
}

fn wrap_rows(wraps: &[Encapsulation], sizes: &StackSizes) -> Vec<LayerBytes> {
    let mut outside = sizes.outside;
    let mut rows = Vec::new();
    for (wrap, inside) in wraps.iter().zip(&sizes.inside) {
        if !matches!(wrap, Encapsulation::Quic { .. } | Encapsulation::Mtu { .. }) {
            let taken = outside - inside;
            rows.push(LayerBytes {
                name: format!("inside {}", wrap.display_title()),
                bytes: f64::from(*inside),
                rule: format!("{taken} of {outside} bytes: {}", wrap.headers_in_words()),
                source: wrap.source(),
                estimate: false,
            });
        }
        outside = *inside;
    }
    rows
}

fn payload_rows(
    segment: SegmentHeaders,
    wraps: &[Encapsulation],
    sizes: &StackSizes,
) -> Vec<LayerBytes> {
    let ip = match segment.family {
        IpFamily::V4 => "IPv4 20",
        IpFamily::V6 => "IPv6 40",
    };
    let (name, headers, source) = match segment.transport {
        Transport::Tcp => ("TCP payload", "TCP 20", "RFC 9293 §3.1"),
        Transport::TcpWithTimestamps => {
            ("TCP payload", "TCP 20, timestamps 12", "RFC 9293 §3.1; RFC 7323 appendix A")
        }
        Transport::Udp => ("UDP payload", "UDP 8", "RFC 768"),
    };
    let taken = sizes.packet - sizes.datagram;
    let mut rows = vec![LayerBytes {
        name: name.to_owned(),
        bytes: f64::from(sizes.datagram),
        rule: format!("{taken} of {} bytes: {ip}, {headers}", sizes.packet),
        source,
        estimate: false,
    }];
    if let Some(quic @ Encapsulation::Quic { .. }) = wraps.last() {
        rows.push(LayerBytes {
            name: "QUIC stream".to_owned(),
            bytes: f64::from(sizes.payload),
            rule: format!(
                "{} of {} bytes: {}",
                quic.fixed_bytes(),
                sizes.datagram,
                quic.headers_in_words()
            ),
            source: quic.source(),
            estimate: false,
        });
    }
    rows
}

/// Stack of rows whose first is the line.
fn from_rows(line_bps: f64, rows: Vec<LayerBytes>, sizes: &StackSizes) -> LayerRates {
    let line_bytes = rows.first().map_or(1.0, |row| row.bytes);
    let share = |bytes: f64| line_bps * (bytes / line_bytes);
    let layers: Vec<StackLayer> = rows
        .into_iter()
        .map(|row| StackLayer {
            bps: share(row.bytes),
            bytes_per_packet: row.bytes,
            name: row.name,
            rule: row.rule,
            source: row.source,
            estimate: row.estimate,
        })
        .collect();
    LayerRates {
        packets_per_s: line_bps / (8.0 * line_bytes),
        payload_bytes: sizes.payload,
        payload_bps: share(f64::from(sizes.payload)),
        ip_bps: share(f64::from(sizes.packet)),
        estimate: layers.iter().any(|layer| layer.estimate),
        layers,
    }
}

#[cfg(test)]
mod tests;
