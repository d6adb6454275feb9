//! The sheet's section on access lines: cable, VDSL2, ADSL, shapers and Wi-Fi.
//!
//! Left out: the rules themselves, which are in `theory::access`, `atm` and `wifi`. Expected values
//! are hand sums with the overheads that tc-cake(8) lists.

use super::plans::{
    TCP_TIMESTAMPS, curve, example, ip_mbps, linear, logarithmic, mtus, share_by_mtu, stacked,
    symbol,
};
use super::{Curve, Formula, Plot, Section};

pub(super) const SECTION: Section = Section {
    title: "Access lines and Wi-Fi",
    purpose: "What the framing of cable, DSL and Wi-Fi leaves of the rate that the line is sold or \
              synchronised with.",
    formulas: &[DOCSIS, VDSL2, ADSL, SHAPER, WIFI_LEGACY, WIFI],
};

const DOCSIS: Formula = Formula {
    id: "docsis",
    title: "Cable modem",
    formula: "G = R (M - H) / max(64, M + 18)",
    symbols: &[
        symbol("G", "rate of TCP payload", "bit/s"),
        symbol("R", "provisioned rate", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("H", "IP and TCP headers", "bytes"),
        symbol("18", "Ethernet header and check sequence", "bytes"),
    ],
    range: "Lines whose modem's token bucket is the bottleneck, after its burst is spent. Headers \
            of the cable itself are not counted by it.",
    source: "CableLabs DOCSIS MULPI annex C (maximum sustained traffic rate); tc-cake(8)",
    estimate: false,
    examples: &[example(
        "MTU 1500, timestamps",
        || share("docsis:100m", 1500),
        0.953_89,
        "1",
        "1448/1518",
    )],
    plot: &SHARES,
};

const VDSL2: Formula = Formula {
    id: "vdsl2",
    title: "VDSL2",
    formula: "G = R x 64/65 x (M - P - H) / (M + 22)",
    symbols: &[
        symbol("G", "rate of TCP payload", "bit/s"),
        symbol("R", "synchronised rate", "bit/s"),
        symbol("M", "MTU of the Ethernet on the line", "bytes"),
        symbol("P", "8 with PPPoE, else 0", "bytes"),
        symbol("H", "IP and TCP headers", "bytes"),
        symbol("22", "Ethernet 14, check sequence 4, fragment framing 4", "bytes"),
    ],
    range: "Packet transfer mode without a VLAN tag, which takes 4 more.",
    source: "IEEE 802.3 §61.3; ITU-T G.993.2 annex K; tc-cake(8)",
    estimate: false,
    examples: &[
        example("bridged", || share("vdsl2:100m", 1500), 0.936_74, "1", "1448/1522 x 64/65"),
        example(
            "PPPoE",
            || share("vdsl2:100m ptm-pppoe", 1500),
            0.931_57,
            "1",
            "1440/1522 x 64/65",
        ),
    ],
    plot: &SHARES,
};

const ADSL: Formula = Formula {
    id: "adsl",
    title: "ADSL",
    formula: "I = R n / (53 ceil((n + E) / 48))",
    symbols: &[
        symbol("I", "rate of IP packets", "bit/s"),
        symbol("R", "synchronised rate", "bit/s"),
        symbol("n", "IP packet", "bytes"),
        symbol(
            "E",
            "trailer counted: IPoA 8 (VC) or 16 (LLC), PPPoA 10 or 14, bridged 24 or 32, \
                     PPPoE 32 or 40",
            "bytes",
        ),
    ],
    range: "AAL5 without the check sequence of the Ethernet frames it carries, which is usual.",
    source: "RFC 2684; RFC 2364; RFC 2516; ITU-T I.363.5; tc-cake(8)",
    estimate: false,
    examples: &[
        example(
            "PPPoE, LLC: 1492 bytes",
            || ip("pppoe-llcsnap", 1500),
            0.879_72,
            "1",
            "1492/1696: 32 cells",
        ),
        example(
            "PPPoA, VC: 1478 bytes",
            || ip("pppoa-vcmux", 1478),
            0.899_57,
            "1",
            "1478/1643: exactly 31 cells",
        ),
        example(
            "PPPoA, VC: 1500 bytes",
            || ip("pppoa-vcmux", 1500),
            0.884_43,
            "1",
            "1500/1696: 32 cells",
        ),
        example(
            "bridged, LLC: 1500 bytes",
            || ip("bridged-llcsnap", 1500),
            0.884_43,
            "1",
            "1532 + 4 of padding: 32 cells",
        ),
        example(
            "IPoA, VC: 1480 bytes",
            || ip("ipoa-vcmux", 1480),
            0.900_79,
            "1",
            "1480/1643: exactly 31 cells",
        ),
    ],
    plot: &SHARES,
};

const SHAPER: Formula = Formula {
    id: "linux-shaper",
    title: "A Linux shaper",
    formula: "G = R (M - H) / (M + 14)",
    symbols: &[
        symbol("G", "rate of TCP payload", "bit/s"),
        symbol("R", "rate of tbf or htb", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("H", "IP and TCP headers", "bytes"),
        symbol("14", "Ethernet header; check sequence, preamble and gap are not counted", "bytes"),
    ],
    range: "Ethernet interfaces without a stab or an overhead option, after the burst. A VLAN tag \
            that the interface inserts itself is not counted by the shaper, one in the packet is.",
    source: "Linux net/sched/sch_tbf.c and net/core/dev.c (qdisc_pkt_len_init)",
    estimate: false,
    examples: &[example(
        "MTU 1500, timestamps",
        || share("shaped:100m", 1500),
        0.956_407,
        "1",
        "1448/1514",
    )],
    plot: &SHARES,
};

const WIFI_LEGACY: Formula = Formula {
    id: "wifi-legacy",
    title: "802.11a and g, one frame at a time",
    formula: "I = 8 n / (34 + 67.5 + t(n + 36) + 16 + t(14)); t(b) = 20 + 4 ceil((8 b + 22) / s)",
    symbols: &[
        symbol("I", "rate of IP packets in one direction", "Mbit/s"),
        symbol("n", "IP packet", "bytes"),
        symbol("34, 67.5, 16", "DIFS, average backoff, SIFS", "us"),
        symbol("t(b)", "time of a frame of b bytes", "us"),
        symbol(
            "s",
            "data bits of a symbol, 216 at 54 Mbit/s; 96 or less for the acknowledgement",
            "bits",
        ),
        symbol("36", "MAC header 24, LLC/SNAP 8, check sequence 4", "bytes"),
    ],
    range: "One station alone, no retry, no protection of older stations, timing of 802.11a. The \
            acknowledgements of TCP take airtime too: of the 30.5 Mbit/s below 22 to 25 are left.",
    source: "IEEE 802.11 §10.3 and §17",
    estimate: true,
    examples: &[example(
        "1500 bytes at 54 Mbit/s",
        || ip_mbps("wifi-legacy:54m", 1500),
        30.4956,
        "Mbit/s",
        "12000 / (34 + 67.5 + 248 + 16 + 28)",
    )],
    plot: &WIFI_RATES,
};

const WIFI: Formula = Formula {
    id: "wifi",
    title: "Wi-Fi with aggregated frames",
    formula: "I = 0.625 R",
    symbols: &[symbol("I", "rate of IP packets", "bit/s"), symbol("R", "physical rate", "bit/s")],
    range: "A rule of thumb: 0.55 to 0.70 is usual of one station that is alone on a channel of \
            802.11n or later. It says nothing of a busy channel.",
    source: "rule of thumb",
    estimate: true,
    examples: &[example(
        "866.7 Mbit/s",
        || ip_mbps("wifi:866.7m", 1500),
        541.6875,
        "Mbit/s",
        "five eighths",
    )],
    plot: &WIFI_RATES,
};

/// Share of the line that TCP with timestamps gets.
fn share(text: &str, mtu_bytes: u32) -> f64 {
    stacked(text, mtu_bytes, TCP_TIMESTAMPS).map_or(f64::NAN, |stack| stack.payload_bps / 1e8)
}

/// Share of an ADSL line that IP packets get.
fn ip(carrier: &str, mtu_bytes: u32) -> f64 {
    ip_mbps(&format!("adsl:100m {carrier}"), mtu_bytes) / 100.0
}

const SHARES: Plot = Plot {
    id: "access-share",
    title: "What access lines leave of their rate for TCP with timestamps",
    x: logarithmic("MTU, bytes"),
    y: linear("share of the rate, %"),
    curves: share_curves,
};

fn share_curves() -> Vec<Curve> {
    let kinds = [
        ("Linux shaper", "shaped:100m"),
        ("cable modem", "docsis:100m"),
        ("VDSL2, bridged", "vdsl2:100m"),
        ("VDSL2, PPPoE", "vdsl2:100m ptm-pppoe"),
        ("ADSL, PPPoA", "adsl:100m pppoa-vcmux"),
        ("ADSL, PPPoE", "adsl:100m pppoe-llcsnap"),
    ];
    let mtus: Vec<u32> = mtus().into_iter().filter(|mtu| *mtu <= 1500).collect();
    kinds.into_iter().map(|(label, text)| share_by_mtu(label, text, &mtus)).collect()
}

const WIFI_RATES: Plot = Plot {
    id: "wifi-rates",
    title: "Wi-Fi by physical rate, 1500 bytes",
    x: logarithmic("physical rate, Mbit/s"),
    y: logarithmic("IP, Mbit/s"),
    curves: wifi_curves,
};

fn wifi_curves() -> Vec<Curve> {
    let at = |kind: &str, rates: &[u32]| {
        let point = |rate: u32| (f64::from(rate), ip_mbps(&format!("{kind}:{rate}m"), 1500));
        rates.iter().map(|rate| point(*rate)).collect()
    };
    vec![
        curve("one frame at a time", at("wifi-legacy", &[6, 9, 12, 18, 24, 36, 48, 54])),
        curve("aggregated", at("wifi", &[20, 65, 150, 433, 867, 1200, 2400])),
    ]
}
