//! The sheet's section on SONET/SDH, older lines, ATM cells and PPP.
//!
//! Left out: the rules themselves, which are in `theory::sonet`, `atm` and `ppp`. Expected values
//! are the standards' own rates and hand sums.

use super::plans::{
    TCP, TCP_TIMESTAMPS, curve, example, ip_mbps, linear, logarithmic, packets_per_s, payload_mbps,
    symbol,
};
use super::{Curve, Formula, Plot, Section};
use crate::theory::atm::{Aal5, cells};
use crate::theory::ppp::Stuffing;
use crate::theory::sonet::{Pdh, Sonet, wan_phy_mac_bps};

pub(super) const SECTION: Section = Section {
    title: "SONET/SDH, ATM and PPP",
    purpose: "What the framing of a line, the headers of its cells and the frames of PPP leave for \
              packets.",
    formulas: &[SONET, PDH, WAN_PHY, CELLS, ATM, POS, STUFFING],
};

const SONET: Formula = Formula {
    id: "sonet-payload",
    title: "Payload of a SONET/SDH line",
    formula: "C = (90 N - 3 N - 1 - S) x 9 x 8 x 8000; S = N/3 - 1, and 2 for N = 1",
    symbols: &[
        symbol("C", "rate left for packets or cells", "bit/s"),
        symbol("N", "the N of OC-N; STM-M is OC-3M", "1"),
        symbol("S", "columns of fixed stuff in the payload", "columns"),
    ],
    range: "OC-1, 3, 12, 48, 192 and 768 as one concatenated payload. Says nothing of virtual \
            concatenation, of channelised lines and of forward error correction. For N of 3 and \
            more it is 49.92 N Mbit/s: 26 of every 27 bits.",
    source: "ITU-T G.707 §6.2 and §11.1; ANSI T1.105",
    estimate: false,
    examples: &[
        example("OC-1", || mbps(Sonet::Oc1), 48.384, "Mbit/s", "84 columns x 0.576"),
        example("OC-3", || mbps(Sonet::Oc3), 149.76, "Mbit/s", "ITU-T G.707: C-4, 149.760"),
        example("OC-12", || mbps(Sonet::Oc12), 599.04, "Mbit/s", "ITU-T G.707: C-4-4c, 599.040"),
        example("OC-48", || mbps(Sonet::Oc48), 2396.16, "Mbit/s", "ITU-T G.707: C-4-16c"),
        example("OC-192", || mbps(Sonet::Oc192), 9584.64, "Mbit/s", "ITU-T G.707: C-4-64c"),
        example("OC-768", || mbps(Sonet::Oc768), 38_338.56, "Mbit/s", "ITU-T G.707: C-4-256c"),
    ],
    plot: &LINES,
};

const PDH: Formula = Formula {
    id: "pdh-payload",
    title: "Payload of DS1, E1, E3 and DS3",
    formula: "C = R x k / n",
    symbols: &[
        symbol("C", "rate left for packets in HDLC, or for cells with their headers", "bit/s"),
        symbol("R", "rate of the line", "bit/s"),
        symbol(
            "k / n",
            "DS1 192/193; E1 31/32, cells 30/32; E3 1524/1536, cells 530/537; DS3 \
                         84/85, cells in PLCP 96,000 of 424 bits a second",
            "1",
        ),
    ],
    range: "Unchannelised lines. DS3 carries cells either behind the convergence protocol (PLCP), \
            which most equipment of the 1990s did, or delineated by their header check.",
    source: "ITU-T G.704 §2, G.751, G.804 §2, §3, §6 and §7, G.832 §2.1; ANSI T1.107",
    estimate: false,
    examples: &[
        example("DS1", || Pdh::Ds1.packet_bps() / 1e6, 1.536, "Mbit/s", "24 x 64 kbit/s"),
        example("E1", || Pdh::E1.packet_bps() / 1e6, 1.984, "Mbit/s", "31 x 64 kbit/s"),
        example("E1, cells", || Pdh::E1.cell_bps() / 1e6, 1.92, "Mbit/s", "30 x 64 kbit/s"),
        example("E3", || Pdh::E3.packet_bps() / 1e6, 34.0995, "Mbit/s", "34.368 x 1524/1536"),
        example("E3, cells", || Pdh::E3.cell_bps() / 1e6, 33.92, "Mbit/s", "530 x 64 kbit/s"),
        example("DS3", || Pdh::Ds3.packet_bps() / 1e6, 44.2097, "Mbit/s", "44.736 x 84/85"),
        example(
            "DS3, cells in PLCP",
            || Pdh::Ds3Plcp.cell_bps() / 424.0,
            96_000.0,
            "cells/s",
            "ITU-T G.804 §7.2: 12 cells each 125 us",
        ),
        example(
            "DS3, cells by header check",
            || Pdh::Ds3.cell_bps() / 424.0,
            104_268.1,
            "cells/s",
            "44,209,694 / 424",
        ),
    ],
    plot: &LINES,
};

const WAN_PHY: Formula = Formula {
    id: "wan-phy",
    title: "Ethernet in OC-192: 10GBASE-W",
    formula: "R = C x 64 / 66",
    symbols: &[
        symbol("R", "rate of Ethernet frames with preamble and gap", "bit/s"),
        symbol("C", "payload of OC-192, 9584.64 Mbit/s", "bit/s"),
    ],
    range: "10GBASE-W alone; 10GBASE-R codes beyond its 10 Gbit/s and loses nothing of them.",
    source: "IEEE 802.3 §49.2.4 and §50.1",
    estimate: false,
    examples: &[example(
        "10GBASE-W",
        || wan_phy_mac_bps() / 1e6,
        9294.20,
        "Mbit/s",
        "9584.64 x 64 / 66",
    )],
    plot: &LINES,
};

const CELLS: Formula = Formula {
    id: "aal5-cells",
    title: "Cells of a packet",
    formula: "k = ceil((n + E + 8) / 48)",
    symbols: &[
        symbol("k", "cells, of 53 bytes each", "1"),
        symbol("n", "IP packet", "bytes"),
        symbol("E", "what stands before it: 8 with LLC/SNAP, 0 with VC multiplexing", "bytes"),
        symbol("8", "AAL5 trailer", "bytes"),
    ],
    range: "Packets that with E are no longer than 65535 bytes. The last cell is padded, so that \
            the share of a packet moves in steps of 48 bytes.",
    source: "ITU-T I.363.5 §9.2.1; RFC 2684 §5.1 and §6.1",
    estimate: false,
    examples: &[
        example("40 bytes, LLC/SNAP", || snap(40), 2.0, "cells", "(40 + 16) / 48 = 1.2"),
        example("40 bytes, VC multiplexing", || count(40, Aal5::VcMux), 1.0, "cells", "48 / 48"),
        example("576 bytes, LLC/SNAP", || snap(576), 13.0, "cells", "592 / 48 = 12.3"),
        example("1492 bytes, LLC/SNAP", || snap(1492), 32.0, "cells", "1508 / 48 = 31.4"),
        example("1500 bytes, LLC/SNAP", || snap(1500), 32.0, "cells", "1516 / 48 = 31.6"),
        example("4470 bytes, LLC/SNAP", || snap(4470), 94.0, "cells", "4486 / 48 = 93.5"),
        example("9180 bytes, LLC/SNAP", || snap(9180), 192.0, "cells", "9196 / 48 = 191.6"),
    ],
    plot: &SHARE_OF_CELLS,
};

const ATM: Formula = Formula {
    id: "atm-rate",
    title: "TCP over ATM",
    formula: "R = C (M - H) / (53 k)",
    symbols: &[
        symbol("R", "rate of TCP payload", "bit/s"),
        symbol("C", "payload of the line", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("H", "IP and TCP headers: 40, or 52 with timestamps", "bytes"),
        symbol("k", "cells of a packet of M bytes", "1"),
    ],
    range: "Back-to-back full packets, no cell lost, no shaping below the line's rate.",
    source: "as of the formulas above",
    estimate: false,
    examples: &[
        example("OC-3, MTU 1500", || packets_per_s(OC3, 1500), 11_037.74, "packets/s", BY_HAND),
        example("OC-3, MTU 1500, IP", || ip_mbps(OC3, 1500), 132.453, "Mbit/s", BY_HAND),
        example("OC-3, MTU 1500", || payload_mbps(OC3, 1500, TCP), 128.921, "Mbit/s", BY_HAND),
        example("OC-3, MTU 9180", || payload_mbps(OC3, 9180, TCP), 134.513, "Mbit/s", BY_HAND),
        example("OC-12, MTU 1500", || payload_mbps(OC12, 1500, TCP), 515.683, "Mbit/s", BY_HAND),
        example("OC-12, MTU 9180, IP", || ip_mbps(OC12, 9180), 540.408, "Mbit/s", BY_HAND),
        example("OC-12, MTU 9180", || payload_mbps(OC12, 9180, TCP), 538.053, "Mbit/s", BY_HAND),
        example(
            "OC-12, MTU 9180, timestamps",
            || payload_mbps(OC12, 9180, TCP_TIMESTAMPS),
            537.346,
            "Mbit/s",
            BY_HAND,
        ),
    ],
    plot: &SHARE_OF_CELLS,
};

const POS: Formula = Formula {
    id: "pos-rate",
    title: "TCP over PPP on SONET/SDH",
    formula: "R = C (M - H) / (M + 9)",
    symbols: &[
        symbol("R", "rate of TCP payload", "bit/s"),
        symbol("C", "payload of the line", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("H", "IP and TCP headers: 40, or 52 with timestamps", "bytes"),
        symbol("9", "flag, address, control, protocol 2, check sequence 4", "bytes"),
    ],
    range: "Back-to-back full packets, one flag between two of them, no byte that needs escaping: \
            the best case. The next formula says what escaping costs on random content.",
    source: "RFC 1662 §3; RFC 2615",
    estimate: false,
    examples: &[
        example("OC-12, MTU 1500", || packets_per_s("oc12", 1500), 49_622.3, "packets/s", BY_HAND),
        example("OC-12, MTU 1500, IP", || ip_mbps("oc12", 1500), 595.467, "Mbit/s", BY_HAND),
        example(
            "OC-12, MTU 1500, timestamps",
            || payload_mbps("oc12", 1500, TCP_TIMESTAMPS),
            574.824,
            "Mbit/s",
            BY_HAND,
        ),
        example(
            "OC-48, MTU 4470, timestamps",
            || payload_mbps("oc48", 4470, TCP_TIMESTAMPS),
            2363.526,
            "Mbit/s",
            BY_HAND,
        ),
        example(
            "OC-192, MTU 1500, timestamps",
            || payload_mbps("oc192", 1500, TCP_TIMESTAMPS),
            9197.189,
            "Mbit/s",
            BY_HAND,
        ),
    ],
    plot: &SHARE_OF_CELLS,
};

const STUFFING: Formula = Formula {
    id: "hdlc-stuffing",
    title: "Bytes that stuffing adds",
    formula: "octets: s = 2/256 (n + 4); bits: s = (n + 2) / 62",
    symbols: &[
        symbol("s", "bytes added to a packet on average", "bytes"),
        symbol("n", "packet", "bytes"),
        symbol("4, 2", "check sequence of 32 bits on SONET, of 16 elsewhere", "bytes"),
    ],
    range: "Random content. Real content needs less or much more: on SONET nothing, or as many \
            bytes again; on bit-stuffed lines nothing, or a fifth. Scrambling happens after \
            stuffing and changes none of it.",
    source: "RFC 1662 §4.2 and §5.2",
    estimate: true,
    examples: &[
        example(
            "1500 bytes on SONET",
            || Stuffing::Octets.expected_bytes(1500),
            11.75,
            "bytes",
            "1504 / 128",
        ),
        example(
            "1500 bytes on DS3",
            || Stuffing::Bits.expected_bytes(1500),
            24.2258,
            "bytes",
            "1502 / 62; five ones are met every 2^6 - 2 bits",
        ),
        example(
            "OC-12, MTU 1500, IP",
            || ip_mbps("oc12 pos-stuffed", 1500),
            590.866,
            "Mbit/s",
            "599.04 x 1500 / 1520.75",
        ),
    ],
    plot: &STUFFED,
};

const OC3: &str = "oc3 aal5-llcsnap";
const OC12: &str = "oc12 aal5-llcsnap";
const BY_HAND: &str = "hand sum with the formula's own terms";

fn mbps(line: Sonet) -> f64 {
    line.payload_bps() as f64 / 1e6
}

fn snap(packet_bytes: u32) -> f64 {
    count(packet_bytes, Aal5::LlcSnap)
}

fn count(packet_bytes: u32, mapping: Aal5) -> f64 {
    cells(packet_bytes, mapping.header_bytes()).map_or(f64::NAN, |train| f64::from(train.cells))
}

const LINES: Plot = Plot {
    id: "line-payload",
    title: "What framing leaves of a line",
    x: logarithmic("rate of the line, Mbit/s"),
    y: linear("left for packets or cells, %"),
    curves: line_curves,
};

fn line_curves() -> Vec<Curve> {
    let share = |line: f64, payload: f64| (line / 1e6, 100.0 * payload / line);
    let sonet = Sonet::ALL.map(|line| share(line.line_bps() as f64, line.payload_bps() as f64));
    let of = |rate: fn(Pdh) -> f64, lines: &[Pdh]| {
        lines.iter().map(|line| share(line.line_bps() as f64, rate(*line))).collect()
    };
    let lines = [Pdh::Ds1, Pdh::E1, Pdh::E3, Pdh::Ds3];
    let cells = [Pdh::Ds1, Pdh::E1, Pdh::E3, Pdh::Ds3Plcp];
    vec![
        curve("SONET/SDH", sonet.to_vec()),
        curve("DS1, E1, E3, DS3: packets", of(Pdh::packet_bps, &lines)),
        curve("DS1, E1, E3, PLCP: cells", of(Pdh::cell_bps, &cells)),
    ]
}

const SHARE_OF_CELLS: Plot = Plot {
    id: "packets-on-sonet",
    title: "What cells and PPP leave of a SONET payload for IP",
    x: logarithmic("IP packet, bytes"),
    y: linear("share of the payload, %"),
    curves: cell_curves,
};

fn cell_curves() -> Vec<Curve> {
    let sizes = || (40..9216_u32).filter(|size| *size < 1000 || size % 8 == 0);
    let in_cells = |mapping: Aal5| {
        let share = |size: u32| {
            let train = cells(size, mapping.header_bytes())?;
            Some((f64::from(size), 100.0 * f64::from(size) / f64::from(train.wire_bytes)))
        };
        sizes().filter_map(share).collect()
    };
    let frame = f64::from(Stuffing::Octets.frame_bytes());
    let ppp = |size: u32| (f64::from(size), 100.0 * f64::from(size) / (f64::from(size) + frame));
    vec![
        curve("PPP, nothing stuffed", sizes().map(ppp).collect()),
        curve("cells, VC multiplexing", in_cells(Aal5::VcMux)),
        curve("cells, LLC/SNAP", in_cells(Aal5::LlcSnap)),
    ]
}

const STUFFED: Plot = Plot {
    id: "stuffing",
    title: "Bytes that stuffing adds to random content",
    x: linear("packet, bytes"),
    y: linear("added, bytes"),
    curves: stuffing_curves,
};

fn stuffing_curves() -> Vec<Curve> {
    let added = |stuffing: Stuffing| {
        let sizes = (0..=9000).step_by(500);
        sizes.map(|size| (f64::from(size), stuffing.expected_bytes(size))).collect()
    };
    vec![
        curve("bits (DS1 to DS3)", added(Stuffing::Bits)),
        curve("octets (SONET/SDH)", added(Stuffing::Octets)),
    ]
}
