//! The sheet's section on tags, labels and tunnels.
//!
//! Left out: the rules themselves, which are in `theory::encapsulation` and `esp`. Expected values
//! are hand sums of the headers' bytes.

use super::plans::{
    TCP_TIMESTAMPS, UDP, curve, example, linear, logarithmic, mtus, payload_mbps, share_by_mtu,
    symbol,
};
use super::{Curve, Formula, Plot, Section};
use crate::record::Family;
use crate::theory::esp::{Cipher, Esp, wireguard_outer_bytes};

pub(super) const SECTION: Section = Section {
    title: "Tags, labels and tunnels",
    purpose: "What encapsulations take of a link, inside its MTU or on top of it.",
    formulas: &[BEYOND, INSIDE, ESP, WIREGUARD, QUIC],
};

const BEYOND: Formula = Formula {
    id: "tags-beyond-mtu",
    title: "Tags and labels beyond the MTU",
    formula: "G = R (M - H) / (M + T + 38)",
    symbols: &[
        symbol("G", "rate of TCP payload", "bit/s"),
        symbol("R", "rate of the link", "bit/s"),
        symbol("M", "MTU, of which nothing is taken", "bytes"),
        symbol("H", "IP and TCP headers", "bytes"),
        symbol("T", "4 for each VLAN tag and MPLS label, 8 for PPPoE on longer frames", "bytes"),
    ],
    range: "Links whose frames may be T bytes longer than M + 18. Frames of M + T + 18 below 64 \
            bytes are padded.",
    source: "IEEE 802.1Q §9; RFC 3032 §2.1; RFC 4638",
    estimate: false,
    examples: &[
        example("1 Gbit/s, one tag", || tcp("vlan"), 939.040, "Mbit/s", "1448/1542"),
        example("1 Gbit/s, two tags", || tcp("qinq"), 936.611, "Mbit/s", "1448/1546"),
        example("1 Gbit/s, two labels", || tcp("mpls:2"), 936.611, "Mbit/s", "1448/1546"),
        example("1 Gbit/s, RFC 4638", || tcp("pppoe-rfc4638"), 936.611, "Mbit/s", "1448/1546"),
    ],
    plot: &SHARES,
};

const INSIDE: Formula = Formula {
    id: "tunnels-inside-mtu",
    title: "Tunnels inside the MTU",
    formula: "G = R (M - E - H) / (M + 38)",
    symbols: &[
        symbol("G", "rate of TCP payload", "bit/s"),
        symbol("R", "rate of the link", "bit/s"),
        symbol("M", "MTU of the link", "bytes"),
        symbol(
            "E",
            "PPPoE 8; IP in IP 20; GRE 24, with a key 28; VXLAN and Geneve 50; over IPv6 \
                     20 more",
            "bytes",
        ),
        symbol("H", "IP and TCP headers of the flow", "bytes"),
    ],
    range: "Tunnels that add no padding, packets that fill them, no fragments. Geneve options come \
            on top.",
    source: "RFC 2516 §7; RFC 2003; RFC 2784; RFC 2890; RFC 7348 §5; RFC 8926 §3",
    estimate: false,
    examples: &[
        example("1 Gbit/s, PPPoE", || tcp("pppoe"), 936.281, "Mbit/s", "1440/1538"),
        example("1 Gbit/s, IP in IP", || tcp("ipip"), 928.479, "Mbit/s", "1428/1538"),
        example("1 Gbit/s, GRE", || tcp("gre"), 925.878, "Mbit/s", "1424/1538"),
        example("1 Gbit/s, GRE with a key", || tcp("gre-key"), 923.277, "Mbit/s", "1420/1538"),
        example("1 Gbit/s, VXLAN", || tcp("vxlan"), 908.973, "Mbit/s", "1398/1538"),
        example("1 Gbit/s, Geneve", || tcp("geneve"), 908.973, "Mbit/s", "1398/1538"),
        example(
            "1 Gbit/s, VXLAN, MTU 1550",
            || payload_mbps("1g - vxlan", 1550, TCP_TIMESTAMPS),
            911.839,
            "Mbit/s",
            "1448/1588",
        ),
    ],
    plot: &SHARES,
};

const ESP: Formula = Formula {
    id: "esp-size",
    title: "Size of an ESP packet",
    formula: "O = 20 + U + 8 + V + ceil((I + 2) / A) A + C",
    symbols: &[
        symbol("O", "packet outside", "bytes"),
        symbol("I", "packet inside", "bytes"),
        symbol("20", "IPv4 header outside; 40 over IPv6", "bytes"),
        symbol("U", "8 with UDP to pass a NAT, else 0", "bytes"),
        symbol("8", "security parameters index and sequence number", "bytes"),
        symbol("V", "initialisation vector: 8 for AES-GCM, 16 for AES-CBC", "bytes"),
        symbol("A", "4 for AES-GCM, 16 for AES-CBC", "bytes"),
        symbol("C", "check value: 16, for SHA-1 12", "bytes"),
    ],
    range: "Tunnel mode. With SHA-1 the longest packet that fits 1500 bytes is 1438 and leaves \
            four of them empty, for one block more would be twelve too long.",
    source: "RFC 4303 §2; RFC 4106; RFC 3602; RFC 2404; RFC 4868; RFC 3948",
    estimate: false,
    examples: &[
        example("1400, AES-GCM", || outer(1400, Cipher::Gcm), 1456.0, "bytes", "20+8+8+1404+16"),
        example("1400, SHA-1", || outer(1400, Cipher::CbcSha1), 1464.0, "bytes", "20+8+16+1408+12"),
        example("1400, SHA-256", || outer(1400, Cipher::CbcSha256), 1468.0, "bytes", "1464 + 4"),
        example("1500, AES-GCM", || outer(1500, Cipher::Gcm), 1556.0, "bytes", "20+8+8+1504+16"),
        example("1500, SHA-1", || outer(1500, Cipher::CbcSha1), 1560.0, "bytes", "20+8+16+1504+12"),
        example("1500, SHA-256", || outer(1500, Cipher::CbcSha256), 1564.0, "bytes", "1560 + 4"),
        example("1 Gbit/s, AES-GCM", || tcp("esp-gcm"), 906.372, "Mbit/s", "1394/1538"),
        example("1 Gbit/s, SHA-1", || tcp("esp-cbc-sha1"), 903.520, "Mbit/s", "1386/1534"),
        example("1 Gbit/s, SHA-256", || tcp("esp-cbc-sha256"), 901.170, "Mbit/s", "1386/1538"),
    ],
    plot: &OVERHEADS,
};

const WIREGUARD: Formula = Formula {
    id: "wireguard-size",
    title: "Size of a WireGuard packet",
    formula: "O = 60 + min(ceil(I / 16) 16, M)",
    symbols: &[
        symbol("O", "packet outside", "bytes"),
        symbol("I", "packet inside", "bytes"),
        symbol("60", "IPv4 20, UDP 8, type and counter 16, tag 16; 80 over IPv6", "bytes"),
        symbol("M", "MTU of the tunnel's interface", "bytes"),
    ],
    range: "Data messages; handshakes and keepalives are not counted.",
    source: "WireGuard paper §5.4.6; Linux drivers/net/wireguard/send.c",
    estimate: false,
    examples: &[
        example("1420 of an MTU of 1420", || wireguard(1420), 1480.0, "bytes", "1420 + 60"),
        example("1300 of an MTU of 1420", || wireguard(1300), 1372.0, "bytes", "1312 + 60"),
        example("1 Gbit/s, MTU 1420", || tcp("wireguard mtu:1420"), 901.186, "Mbit/s", "1368/1518"),
        example("1 Gbit/s, MTU 1440", || tcp("wireguard"), 902.471, "Mbit/s", "1388/1538"),
    ],
    plot: &OVERHEADS,
};

const QUIC: Formula = Formula {
    id: "quic-goodput",
    title: "One QUIC stream",
    formula: "G = R (M - 28 - 29 - D) / (M + 38)",
    symbols: &[
        symbol("G", "rate of stream data", "bit/s"),
        symbol("R", "rate of the link", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("28", "IPv4 and UDP", "bytes"),
        symbol("29", "flags 1, packet number 2, STREAM frame header 10, tag 16", "bytes"),
        symbol("D", "connection ID, 0 to 20", "bytes"),
    ],
    range: "Datagrams that fill the MTU with one STREAM frame that has an offset of 8 bytes and no \
            length; acknowledgements of the other direction not counted.",
    source: "RFC 9000 §17.3.1 and §19.8; RFC 9001 §5.3",
    estimate: false,
    examples: &[example(
        "1 Gbit/s, connection ID of 8",
        || payload_mbps("1g - quic", 1500, UDP),
        933.030,
        "Mbit/s",
        "1435/1538",
    )],
    plot: &SHARES,
};

fn tcp(encapsulations: &str) -> f64 {
    payload_mbps(&format!("1g - {encapsulations}"), 1500, TCP_TIMESTAMPS)
}

const fn esp(cipher: Cipher) -> Esp {
    Esp { cipher, nat_traversal: false, outer: Family::V4 }
}

fn outer(inner_bytes: u32, cipher: Cipher) -> f64 {
    f64::from(esp(cipher).outer_bytes(inner_bytes))
}

fn wireguard(inner_bytes: u32) -> f64 {
    f64::from(wireguard_outer_bytes(inner_bytes, 1420, Family::V4))
}

const SHARES: Plot = Plot {
    id: "tunnel-share",
    title: "What encapsulations leave of an Ethernet link for TCP with timestamps",
    x: logarithmic("MTU of the link, bytes"),
    y: linear("share of the rate, %"),
    curves: share_curves,
};

fn share_curves() -> Vec<Curve> {
    let kinds = [
        ("none", "1g"),
        ("VLAN tag", "1g - vlan"),
        ("PPPoE", "1g - pppoe"),
        ("GRE", "1g - gre"),
        ("VXLAN", "1g - vxlan"),
        ("WireGuard", "1g - wireguard"),
        ("ESP, AES-CBC and SHA-256", "1g - esp-cbc-sha256"),
    ];
    kinds.into_iter().map(|(label, text)| share_by_mtu(label, text, &mtus())).collect()
}

const OVERHEADS: Plot = Plot {
    id: "encrypted-size",
    title: "What encryption adds to a packet",
    x: linear("packet inside, bytes"),
    y: linear("added, bytes"),
    curves: overhead_curves,
};

fn overhead_curves() -> Vec<Curve> {
    let added = |label: &str, outer: &dyn Fn(u32) -> f64| Curve {
        steps: true,
        ..curve(label, (1300..=1420).map(|of| (f64::from(of), outer(of) - f64::from(of))).collect())
    };
    vec![
        added("ESP, AES-GCM", &|inner| outer(inner, Cipher::Gcm)),
        added("ESP, AES-CBC and SHA-1", &|inner| outer(inner, Cipher::CbcSha1)),
        added("ESP, AES-CBC and SHA-256", &|inner| outer(inner, Cipher::CbcSha256)),
        added("WireGuard, MTU 1420", &wireguard),
    ]
}
