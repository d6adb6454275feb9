//! Lines, cells, Ethernet, encapsulations, access lines and distance.

use linerate_core::record::IpFamily;
use linerate_core::theory::atm::cell_train;
use linerate_core::theory::esp::{Cipher, Esp, wireguard_outer_bytes};
use linerate_core::theory::framing::{
    SegmentHeaders, Transport, frame_bytes, frame_rate, whole_frame_rate, wire_bytes,
};
use linerate_core::theory::ppp::Stuffing;
use linerate_core::theory::propagation::{fibre_delay_s, fibre_km, serialisation_s};
use linerate_core::theory::sonet::{Pdh, Sonet, wan_phy_mac_bps};
use linerate_core::theory::stack::{LayerRates, StackPlan, layer_rates};
use linerate_core::units::FrameLen;

use super::{Rule, Trace};
use crate::generated::theory::inputs::Inputs;

pub(super) const RULES: &[Rule] = &[
    ("sonet-payload", |of| Some(sonet(of.text("line"))?.payload_bps() as f64)),
    ("pdh-payload", |of| Some(pdh(of.text("line"))?.packet_bps())),
    ("pdh-cells", |of| Some(pdh(of.text("line"))?.cell_bps())),
    ("pdh-cells-per-second", |of| Some(pdh(of.text("line"))?.cell_bps() / 424.0)),
    ("wan-phy", |_| Some(wan_phy_mac_bps())),
    ("aal5-cells", |of| Some(f64::from(cell_train(of.small("n"), of.small("E"))?.cells))),
    ("share-in-cells", |of| {
        let train = cell_train(of.small("n"), of.small("E"))?;
        Some(of.number("n") / f64::from(train.wire_bytes))
    }),
    ("share-in-ppp", |of| {
        let frame = f64::from(Stuffing::Octets.frame_bytes());
        Some(of.number("n") / (of.number("n") + frame))
    }),
    ("hdlc-stuffing", |of| {
        let octets = of.text("framing") == "octets";
        let stuffing = if octets { Stuffing::Octets } else { Stuffing::Bits };
        Some(stuffing.expected_bytes(of.small("n")))
    }),
    ("frame-rate", |of| Some(frame_rate(of.rate("R"), length(of)?).per_sec())),
    ("whole-frame-rate", |of| Some(whole_frame_rate(of.rate("R"), length(of)?) as f64)),
    ("ethernet-share", |of| {
        let mtu_bytes = of.small("M");
        let payload = segment(of).payload_bytes(mtu_bytes).ok()?;
        Some(f64::from(payload) / f64::from(wire_bytes(frame_bytes(mtu_bytes, 0))))
    }),
    ("payload-rate", |of| Some(stacked(of)?.payload_bps)),
    ("payload-share", |of| {
        let stack = stacked(of)?;
        Some(stack.payload_bps / stack.layers.first()?.bps)
    }),
    ("ip-rate", |of| Some(stacked(of)?.ip_bps)),
    ("ip-share", |of| {
        let stack = stacked(of)?;
        Some(stack.ip_bps / stack.layers.first()?.bps)
    }),
    ("packet-rate", |of| Some(stacked(of)?.packets_per_s)),
    ("layer-rate", |of| {
        let layers = stacked(of)?.layers;
        Some(layers.iter().find(|layer| layer.name == of.text("layer"))?.bps)
    }),
    ("esp-size", |of| Some(f64::from(esp(of).outer_bytes(of.small("I"))))),
    ("esp-overhead", |of| Some(f64::from(esp(of).outer_bytes(of.small("I"))) - of.number("I"))),
    ("wireguard-size", |of| Some(wireguard(of))),
    ("wireguard-overhead", |of| Some(wireguard(of) - of.number("I"))),
    ("wifi-rate", |of| {
        let link = format!("{}:{}m", of.text("kind"), of.number("R") / 1e6);
        Some(stack_of(&link, of.small("M"), TCP)?.ip_bps)
    }),
    ("fibre-delay", |of| fibre_delay_s(km(of)).ok()),
    ("fibre-round-trip", |of| Some(2.0 * fibre_delay_s(km(of)).ok()?)),
    ("fibre-length", |of| Some(fibre_km(of.time("RTT")) * 1e3)),
    ("fibre-round-trips", |of| Some(of.number("RTT") / (2.0 * fibre_delay_s(km(of)).ok()?))),
    ("serialisation", |of| serialisation_s(of.size("L"), of.rate("R")).ok()),
];

pub(super) const TRACES: &[Trace] = &[
    ("line-share", |_, of| {
        line_shares(of, |line| match (sonet(line), pdh(line)) {
            (Some(line), _) => Some((line.line_bps(), line.payload_bps() as f64)),
            (_, Some(line)) => Some((line.line_bps(), line.packet_bps())),
            _ => None,
        })
    }),
    ("line-share-of-cells", |_, of| {
        line_shares(of, |line| pdh(line).map(|line| (line.line_bps(), line.cell_bps())))
    }),
    // From the line down, each layer's share of the line.
    ("layer-shares", |_, of| {
        let layers = stacked(of).map(|stack| stack.layers).unwrap_or_default();
        let share = |bps: f64| 100.0 * bps / layers[0].bps;
        let points = layers.iter().zip(0_u8..);
        points.map(|(layer, index)| (f64::from(index), share(layer.bps))).collect()
    }),
];

/// Rate of each line in Mbit/s, and the share of it that is left, in percent.
fn line_shares(of: &Inputs, rates: fn(&str) -> Option<(u64, f64)>) -> Vec<(f64, f64)> {
    let point = |line: &toml::Value| {
        let (line_bps, left_bps) = rates(line.as_str()?)?;
        let line_bps = line_bps as f64;
        Some((line_bps / 1e6, 100.0 * left_bps / line_bps))
    };
    of.list("lines").iter().filter_map(point).collect()
}

/// `OC-12`.
pub(super) fn sonet(name: &str) -> Option<Sonet> {
    Sonet::ALL.into_iter().find(|line| format!("OC-{}", line.oc_number()) == name)
}

pub(super) fn pdh(name: &str) -> Option<Pdh> {
    Some(match name {
        "DS1" => Pdh::Ds1,
        "E1" => Pdh::E1,
        "E3" => Pdh::E3,
        "DS3" => Pdh::Ds3,
        "DS3 PLCP" => Pdh::Ds3Plcp,
        _ => return None,
    })
}

const TCP: SegmentHeaders = SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp };

/// The segment with `H` bytes of headers: TCP over IPv4 when nothing is said.
fn segment(of: &Inputs) -> SegmentHeaders {
    let (family, transport) = match if of.has("H") { of.small("H") } else { 40 } {
        28 => (IpFamily::V4, Transport::Udp),
        40 => (IpFamily::V4, Transport::Tcp),
        52 => (IpFamily::V4, Transport::TcpWithTimestamps),
        72 => (IpFamily::V6, Transport::TcpWithTimestamps),
        other => panic!("no segment has {other} bytes of headers"),
    };
    SegmentHeaders { family, transport }
}

fn stacked(of: &Inputs) -> Option<LayerRates> {
    stack_of(of.text("link"), of.small("M"), segment(of))
}

/// The stack of `link carrier encapsulation…`; `-` is the link's own carrier.
fn stack_of(text: &str, mtu_bytes: u32, segment: SegmentHeaders) -> Option<LayerRates> {
    let mut words = text.split_whitespace();
    let link: linerate_core::theory::link::LinkTechnology = words.next()?.parse().expect("a link");
    let carrier = match words.next() {
        None | Some("-") => link.default_carrier(),
        Some(carrier) => carrier.parse().expect("a carrier"),
    };
    let encapsulations = words.map(|word| word.parse().expect("an encapsulation")).collect();
    layer_rates(&StackPlan { link, carrier, encapsulations, mtu_bytes, segment }).ok()
}

fn length(of: &Inputs) -> Option<FrameLen> {
    FrameLen::from_bytes(of.small("L")).ok()
}

fn esp(of: &Inputs) -> Esp {
    let cipher = match of.text("cipher") {
        "AES-GCM" => Cipher::Gcm,
        "SHA-1" => Cipher::CbcSha1,
        "SHA-256" => Cipher::CbcSha256,
        other => panic!("no cipher is called {other}"),
    };
    Esp { cipher, nat_traversal: false, outer: IpFamily::V4 }
}

fn wireguard(of: &Inputs) -> f64 {
    f64::from(wireguard_outer_bytes(of.small("I"), of.small("M"), IpFamily::V4))
}

fn km(of: &Inputs) -> f64 {
    of.number("d") / 1e3
}
