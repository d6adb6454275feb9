//! The sheet's section on figures that others printed, beside ours.
//!
//! Left out: figures of loss, slow start and buffers, which stand with their formulas. Where a
//! printed figure differs, `range` says by how much, which readings fit and what cannot be
//! decided.

use super::plans::{
    TCP, TCP_TIMESTAMPS, curve, example, ip_mbps, layer_mbps, linear, logarithmic, packets_per_s,
    payload_mbps, printed, symbol,
};
use super::{Curve, Formula, Plot, Section};
use crate::theory::atm::{Aal5, CELL_BYTES, CELL_HEADER_BYTES, CELL_PAYLOAD_BYTES, cells};
use crate::theory::framing::{frame_sizes, whole_frame_rate};
use crate::theory::sonet::{Pdh, Sonet};
use crate::units::{BitRate, FrameLen};

pub(super) const SECTION: Section = Section {
    title: "Published figures",
    purpose: "What studies from 1990 to 2004 printed as the most that a link carries, or measured \
              close to it, beside what the formulas give.",
    formulas: &[BRADNER, NAP, OC12_LAYERS, OC12_IP, OC12_NEAR, PREN, SUNET_RATE, SUNET_PACKETS],
};

const BRADNER: Formula = Formula {
    id: "published-bradner-1990",
    title: "Router tests of 1990: frames a second on 10 Mbit/s Ethernet",
    formula: "F = floor(R / (8 (L + 20)))",
    symbols: &[
        symbol("F", "whole frames a second", "1/s"),
        symbol("R", "10 Mbit/s", "bit/s"),
        symbol("L", "frame with its check sequence", "bytes"),
    ],
    range: "All six figures of the printed column of theoretical rates come out to the frame; they \
            were rounded down.",
    source: "S. Bradner, tests of routers and bridges, 1990; RFC 5180 appendix A",
    estimate: false,
    examples: &[
        printed(0.5, "64 bytes", || bradner(64), 14_880.0, "1/s", "printed"),
        printed(0.5, "128 bytes", || bradner(128), 8_445.0, "1/s", "printed"),
        printed(0.5, "256 bytes", || bradner(256), 4_528.0, "1/s", "printed"),
        printed(0.5, "512 bytes", || bradner(512), 2_349.0, "1/s", "printed"),
        printed(0.5, "1024 bytes", || bradner(1024), 1_197.0, "1/s", "printed"),
        printed(0.5, "1518 bytes", || bradner(1518), 812.0, "1/s", "printed"),
    ],
    plot: &FRAMES,
};

const NAP: Formula = Formula {
    id: "published-nap-1995",
    title: "Exchange points of 1995: what DS3 could have carried",
    formula: "in HDLC G = 44.2097 (M - 40) / (M + 7); in cells G = C (M - 40) / (53 k)",
    symbols: &[
        symbol("G", "rate of TCP payload", "Mbit/s"),
        symbol("M", "MTU", "bytes"),
        symbol("C", "cells of the line: 40.704 behind PLCP, 44.2097 by header check", "Mbit/s"),
        symbol("k", "cells of a packet", "1"),
    ],
    range: "The 40 to 41 Mbit/s of goodput measured on the backbone's own DS3 are more than cells \
            leave (36.864 behind PLCP, 40.039 by header check, before any packet header), so the \
            line was not ATM; notes of the meeting call it unchannelised DS3. In HDLC they are 93 to \
            96 % of the 42.83 that an MTU of 1500 allows, and about all of the 40.49 and 40.65 that \
            packets of 552 and 576 bytes allow. The MTU is not in the notes, and neither is whether \
            ttcp's Mbit had 1,000,000 or 1,048,576 bits, with which 40 to 41 would be 41.9 to 43.0; \
            neither can be decided. The 33.6 Mbit/s through the exchange's ATM switch are 96 % of \
            the 35.04 that PLCP leaves at an MTU of 1500.",
    source: "Notes of a NANOG meeting and C. Villamizar's reply, 1995; ITU-T G.704, G.804 §7",
    estimate: false,
    examples: &[
        example(
            "cell payload, PLCP",
            || cell_payload(Pdh::Ds3Plcp),
            36.864,
            "Mbit/s",
            "40.704 x 48/53",
        ),
        example(
            "cell payload, by header check",
            || cell_payload(Pdh::Ds3),
            40.039,
            "Mbit/s",
            "44.2097 x 48/53",
        ),
        example(
            "HDLC, MTU 1500",
            || payload_mbps("ds3", 1500, TCP),
            42.8309,
            "Mbit/s",
            "44.2097 x 1460/1507",
        ),
        example(
            "HDLC, MTU 576",
            || payload_mbps("ds3", 576, TCP),
            40.6456,
            "Mbit/s",
            "44.2097 x 536/583",
        ),
        example(
            "HDLC, MTU 552",
            || payload_mbps("ds3", 552, TCP),
            40.4926,
            "Mbit/s",
            "44.2097 x 512/559",
        ),
        example(
            "PLCP, MTU 1500",
            || payload_mbps("ds3-plcp aal5-llcsnap", 1500, TCP),
            35.04,
            "Mbit/s",
            "40.704 x 1460/1696",
        ),
        example(
            "measured through PLCP",
            || 33.6 / payload_mbps("ds3-plcp aal5-llcsnap", 1500, TCP),
            0.958_90,
            "1",
            "33.6 / 35.04",
        ),
    ],
    plot: &DESCENT,
};

const OC12_LAYERS: Formula = Formula {
    id: "published-oc12-1999-layers",
    title: "OC-12 study of 1999: from the line to the cells' payload",
    formula: "622.08 x 26/27 x 48/53",
    symbols: &[
        symbol("622.08", "rate of the line", "Mbit/s"),
        symbol("26/27", "SONET payload of N = 12: 1040 of 1080 columns", "1"),
        symbol("48/53", "payload of a cell", "1"),
    ],
    range: "The study rounds its percentages before it subtracts: 9.43 % of 599.04 is 56.49, which \
            leaves 542.55, where 5 of 53 bytes is 9.434 % and leaves 542.527. Both are right within \
            what they print: 0.004 % apart.",
    source: "OC-12 study of 1999, §2.0.1 and Figure 4",
    estimate: false,
    examples: &[
        printed(0.0005, "SONET overhead", || 100.0 * sonet_overhead(), 3.704, "%", "printed"),
        printed(
            0.005,
            "after SONET",
            || mbps(Sonet::Oc12.payload_bps()),
            599.04,
            "Mbit/s",
            "printed",
        ),
        printed(0.005, "cell headers", || 100.0 * cell_overhead(), 9.43, "%", "printed"),
        printed(
            0.005,
            "after cell headers, by the study's rounded percentage",
            || 599.04 * (1.0 - 0.0943),
            542.55,
            "Mbit/s",
            "printed",
        ),
        example(
            "after cell headers",
            || layer_mbps(OC12, 9180, "cell payload"),
            542.527_4,
            "Mbit/s",
            "599.04 x 48/53",
        ),
    ],
    plot: &DESCENT,
};

const OC12_IP: Formula = Formula {
    id: "published-oc12-1999-ip",
    title: "OC-12 study of 1999: what is left for IP",
    formula: "printed 542.55 (1 - 0.0009); exactly 542.527 x 9180 / 9216",
    symbols: &[
        symbol("9180", "MTU", "bytes"),
        symbol("9216", "payload of the 192 cells that 9180 + 8 + 8 bytes fill", "bytes"),
        symbol("0.0009", "8 of 9180 bytes, 0.087 %, rounded up", "1"),
    ],
    range: "The study gives AAL5 and SNAP as 16 bytes a packet and their share as less than \
            0.09 %. Sixteen of 9180 bytes are 0.174 %; 0.087 % is eight of them, so one of the two headers \
            is left out of its 542.06. What AAL5 takes is more than either: trailer 8, LLC/SNAP 8 \
            and padding 20 are 36 of 9216 bytes, 0.391 %, and 540.408 Mbit/s are left. The printed \
            542.06 is 0.31 % above that.",
    source: "OC-12 study of 1999, §2.0.1; ITU-T I.363.5 §9.2.1; RFC 2684 §5.1",
    estimate: false,
    examples: &[
        printed(
            0.005,
            "the study's own arithmetic",
            || 542.55 * (1.0 - 0.0009),
            542.06,
            "Mbit/s",
            "printed",
        ),
        example("share of 8 bytes", || 100.0 * 8.0 / 9180.0, 0.087_15, "%", "8 / 9180"),
        example("share of 16 bytes", || 100.0 * 16.0 / 9180.0, 0.174_29, "%", "16 / 9180"),
        example(
            "share of trailer, LLC/SNAP and padding",
            || 100.0 * aal5_share(9180),
            0.390_63,
            "%",
            "36 / 9216",
        ),
        example("left for IP", || ip_mbps(OC12, 9180), 540.408, "Mbit/s", "599.04 x 9180/10176"),
        example(
            "printed over exact",
            || 542.06 / ip_mbps(OC12, 9180),
            1.003_06,
            "1",
            "542.06 / 540.408",
        ),
    ],
    plot: &DESCENT,
};

const OC12_NEAR: Formula = Formula {
    id: "published-oc12-1999-measured",
    title: "OC-12 study of 1999: measured beside possible",
    formula: "572 x 48/53; 1000 (9000 - 52) / 9038",
    symbols: &[
        symbol("572", "cells that the analyser counted, headers included", "Mbit/s"),
        symbol("9038", "bytes on the wire of a packet of 9000 on Ethernet", "bytes"),
    ],
    range: "The analyser's 572 Mbit/s of cells are 518.04 of cell payload and 516.02 of IP at an \
            MTU of 9180. The study prints 527, and says only that it took the ATM overhead off. \
            Neither cell headers nor the missing 27 Mbit/s give it (542.06 less 27 is 515.06), and \
            it is above what is possible from 572; where it comes from cannot be decided. The 515 \
            Mbit/s between local hosts were measured without the shared line, whose limit does not \
            bear on them: they are 95 % of the 540.408 that OC-12 leaves for IP. The 990 Mbit/s \
            that it quotes of Gigabit Ethernet with packets of 9 KB is what TCP with timestamps can \
            have at most at an MTU of 9000. The 131 Mbit/s that it quotes as possible on OC-3 lie \
            between the 128.92 and 134.51 of an MTU of 1500 and of 9180.",
    source: "OC-12 study of 1999, §2.0.1 to §2.0.3 and §6.0",
    estimate: false,
    examples: &[
        example(
            "572 less cell headers",
            || 572.0 * (1.0 - cell_overhead()),
            518.038,
            "Mbit/s",
            "572 x 48/53",
        ),
        example(
            "572, IP of 9180 bytes",
            || 572.0 * ip_mbps(OC12, 9180) / 599.04,
            516.015,
            "Mbit/s",
            "572 x 9180/10176",
        ),
        example(
            "515 of what IP can have",
            || 515.0 / ip_mbps(OC12, 9180),
            0.952_98,
            "1",
            "515 / 540.408",
        ),
        printed(
            0.5,
            "Gigabit Ethernet, MTU 9000",
            || payload_mbps("1g", 9000, TCP_TIMESTAMPS),
            990.0,
            "Mbit/s",
            "printed: 990",
        ),
        example(
            "OC-3, MTU 1500",
            || payload_mbps("oc3 aal5-llcsnap", 1500, TCP),
            128.921,
            "Mbit/s",
            "149.76 x 1460/1696",
        ),
        example(
            "OC-3, MTU 9180",
            || payload_mbps("oc3 aal5-llcsnap", 9180, TCP),
            134.513,
            "Mbit/s",
            "149.76 x 9140/10176",
        ),
    ],
    plot: &DESCENT,
};

const PREN: Formula = Formula {
    id: "published-pren-2000",
    title: "Metropolitan network of 2000: TCP over OC-3 without cells",
    formula: "G = 149.76 (M - 40) / (M + 9)",
    symbols: &[
        symbol("G", "rate of TCP payload", "Mbit/s"),
        symbol("M", "MTU, 1500 here", "bytes"),
    ],
    range: "The study takes SONET's overhead as 6 % from the literature; the line's own is 3.7 %, \
            one of 27 bits, and PPP and TCP/IP take another 3.2 % at an MTU of 1500. Its best flow, \
            122 Mbit/s, is 84 % of the 144.9 that the line allows (the study, of the line's rate: \
            about 80 %). The flows through Fast Ethernet, 84 Mbit/s, are 88 % of its 94.9.",
    source: "PREN study of 2000, §5; RFC 2615",
    estimate: false,
    examples: &[
        example("SONET overhead", || 100.0 * sonet_overhead(), 3.703_70, "%", "1 / 27"),
        example(
            "OC-3, MTU 1500",
            || payload_mbps("oc3", 1500, TCP),
            144.897,
            "Mbit/s",
            "149.76 x 1460/1509",
        ),
        example(
            "best flow",
            || 122.0 / payload_mbps("oc3", 1500, TCP),
            0.841_98,
            "1",
            "122 / 144.897",
        ),
        example(
            "Fast Ethernet",
            || payload_mbps("100m", 1500, TCP),
            94.928,
            "Mbit/s",
            "100 x 1460/1538",
        ),
        example(
            "through Fast Ethernet",
            || 84.0 / payload_mbps("100m", 1500, TCP),
            0.884_88,
            "1",
            "84 / 94.928",
        ),
    ],
    plot: &DESCENT,
};

const SUNET_RATE: Formula = Formula {
    id: "published-gigasunet-2004-rate",
    title: "GigaSunet of 2004: 966.5 Mbit/s on Gigabit Ethernet",
    formula: "G = 1000 (M - 40) / (M + 38)",
    symbols: &[symbol("G", "rate of TCP payload", "Mbit/s"), symbol("M", "MTU", "bytes")],
    range: "966.5 Mbit/s are 1.8 % more than Gigabit Ethernet leaves for TCP at an MTU of 1500 \
            (949.285 without timestamps, 941.482 with them). Four readings. (1) The figure is as \
            ttcp prints it, in units of 1,048,576 bits: then it is 1013.4 Mbit/s, more than the \
            line; impossible. (2) The figure was corrected for that, as the page explains, and \
            ttcp printed 921.73: then 966.5 needs an MTU of at least 2291 (2649 with timestamps), \
            which the page does not mention and its packets a second contradict (next formula). \
            (3) The program at hand printed true 921.7 and was corrected all the same: 97.1 % of \
            949.285, or 97.9 % of 941.482, which would be close to the theoretical maximum, as the \
            page says. (4) ttcp's sender stops its clock when the last write returns, with the \
            socket's buffer still full: 22.3 MB of the 1,249,996,800 bytes in the buffer explain \
            it at 949.285 (32.4 MB at 941.482); but then a longer run gives less, and the page says \
            that it gives the same. (1) is out, (4) fits badly; between (2) and (3) the page does \
            not allow to decide.",
    source: "SUNET, End-to-end performance in GigaSunet, 2004; ttcp.c (outfmt, read_timer)",
    estimate: false,
    examples: &[
        example("MTU 1500", || payload_mbps("1g", 1500, TCP), 949.285, "Mbit/s", "1460/1538"),
        example(
            "MTU 1500, timestamps",
            || payload_mbps("1g", 1500, TCP_TIMESTAMPS),
            941.482,
            "Mbit/s",
            "1448/1538",
        ),
        example(
            "printed over possible",
            || SUNET_MBPS / payload_mbps("1g", 1500, TCP),
            1.018_14,
            "1",
            "966.5 / 949.285",
        ),
        example(
            "(1) units of 1,048,576 bits",
            || SUNET_MBPS * MEBI,
            1013.449,
            "Mbit/s",
            "966.5 x 1.048576",
        ),
        example(
            "(2), (3) before the correction",
            || SUNET_MBPS / MEBI,
            921.726,
            "Mbit/s",
            "966.5 / 1.048576",
        ),
        example(
            "(2) smallest MTU",
            || smallest_mtu(SUNET_MBPS, 40.0),
            2291.0,
            "bytes",
            "(40 + 38 x 0.9665) / 0.0335 = 2290.4",
        ),
        example(
            "(2) smallest MTU, timestamps",
            || smallest_mtu(SUNET_MBPS, 52.0),
            2649.0,
            "bytes",
            "(52 + 38 x 0.9665) / 0.0335 = 2648.6",
        ),
        example(
            "(3) share of possible",
            || SUNET_MBPS / MEBI / payload_mbps("1g", 1500, TCP_TIMESTAMPS),
            0.979_02,
            "1",
            "921.726 / 941.482",
        ),
        example(
            "(4) bytes left in the sender",
            || left_in_sender(payload_mbps("1g", 1500, TCP)) / 1e6,
            22.264,
            "MB",
            "1249.9968 (1 - 949.285 / 966.5)",
        ),
    ],
    plot: &GIGABIT,
};

const SUNET_PACKETS: Formula = Formula {
    id: "published-gigasunet-2004-packets",
    title: "GigaSunet of 2004: about 83,000 packets a second",
    formula: "F = 1e9 / (8 (M + 38))",
    symbols: &[symbol("F", "packets a second", "1/s"), symbol("M", "MTU", "bytes")],
    range: "Gigabit Ethernet carries at most 81,274 packets of 1500 bytes a second. 83,000 is what \
            comes out when the 38 bytes of framing are forgotten (83,333), and also when 966.5 \
            Mbit/s are divided by 1460 or 1448 bytes (82,748; 83,434): all three round to 83,000. It \
            was calculated, not counted, and goes with an MTU of 1500: at the 2291 that 966.5 \
            Mbit/s need, the link carries no more than 53,671. Which of the three sums it was cannot \
            be decided.",
    source: "SUNET, End-to-end performance in GigaSunet, 2004; RFC 5180 appendix A",
    estimate: false,
    examples: &[
        example("at most, MTU 1500", || packets_per_s("1g", 1500), 81_274.38, "1/s", "1e9 / 12304"),
        printed(
            500.0,
            "framing forgotten",
            || 1e9 / (8.0 * 1500.0),
            83_000.0,
            "1/s",
            "printed: about 83000",
        ),
        printed(
            500.0,
            "966.5 Mbit/s by 1460 bytes",
            || SUNET_MBPS * 1e6 / (8.0 * 1460.0),
            83_000.0,
            "1/s",
            "printed: about 83000",
        ),
        printed(
            500.0,
            "966.5 Mbit/s by 1448 bytes",
            || SUNET_MBPS * 1e6 / (8.0 * 1448.0),
            83_000.0,
            "1/s",
            "printed: about 83000",
        ),
        example("at most, MTU 2291", || packets_per_s("1g", 2291), 53_671.1, "1/s", "1e9 / 18632"),
    ],
    plot: &GIGABIT,
};

const OC12: &str = "oc12 aal5-llcsnap";
/// GigaSunet's printed throughput, Mbit/s.
const SUNET_MBPS: f64 = 966.5;
/// Bytes of its test: 20345 buffers of 61440.
const SUNET_BYTES: f64 = 20_345.0 * 61_440.0;
/// Bits that ttcp takes for a Mbit, in millions: 1024 × 1024.
const MEBI: f64 = 1.048_576;

fn bradner(frame_bytes: u32) -> f64 {
    let rate = BitRate::from_bits_per_sec(10_000_000);
    let len = FrameLen::from_bytes(frame_bytes);
    len.map_or(f64::NAN, |len| whole_frame_rate(rate, len) as f64)
}

fn mbps(bps: u64) -> f64 {
    bps as f64 / 1e6
}

fn cell_payload(line: Pdh) -> f64 {
    line.cell_bps() / 1e6 * (1.0 - cell_overhead())
}

/// Share of an OC-12 that its framing takes.
fn sonet_overhead() -> f64 {
    1.0 - Sonet::Oc12.payload_bps() as f64 / Sonet::Oc12.line_bps() as f64
}

/// Share of a cell that is its header.
fn cell_overhead() -> f64 {
    f64::from(CELL_HEADER_BYTES) / f64::from(CELL_BYTES)
}

/// Share of the cells' payload that trailer, LLC/SNAP and padding take.
fn aal5_share(packet_bytes: u32) -> f64 {
    let train = cells(packet_bytes, Aal5::LlcSnap.header_bytes());
    train.map_or(f64::NAN, |train| {
        1.0 - f64::from(packet_bytes) / f64::from(CELL_PAYLOAD_BYTES * train.cells)
    })
}

/// Smallest MTU at which Gigabit Ethernet leaves `mbps` after headers of `headers` bytes.
fn smallest_mtu(mbps: f64, headers: f64) -> f64 {
    let share = mbps / 1000.0;
    ((headers + 38.0 * share) / (1.0 - share)).ceil()
}

/// Bytes still in the sender's buffer when a clock that stops there shows GigaSunet's rate and the
/// path carries `path_mbps`.
fn left_in_sender(path_mbps: f64) -> f64 {
    SUNET_BYTES * (1.0 - path_mbps / SUNET_MBPS)
}

const FRAMES: Plot = Plot {
    id: "published-frames",
    title: "Frames a second of 10 Mbit/s Ethernet, as printed in 1990",
    x: logarithmic("frame, bytes"),
    y: logarithmic("frames a second"),
    curves: frame_curves,
};

fn frame_curves() -> Vec<Curve> {
    let rate = BitRate::from_bits_per_sec(10_000_000);
    let at = |len: FrameLen| (f64::from(len.bytes()), whole_frame_rate(rate, len) as f64);
    let printed =
        [(64, 14_880), (128, 8_445), (256, 4_528), (512, 2_349), (1024, 1_197), (1518, 812)];
    let printed = printed.map(|(bytes, frames)| (f64::from(bytes), f64::from(frames)));
    vec![
        curve(
            "formula",
            frame_sizes().into_iter().filter(|len| len.bytes() <= 1518).map(at).collect(),
        ),
        curve("printed", printed.to_vec()),
    ]
}

const DESCENT: Plot = Plot {
    id: "published-descent",
    title: "From the line to TCP payload, layer by layer",
    x: linear("layer, from the line down"),
    y: linear("share of the line, %"),
    curves: descent_curves,
};

fn descent_curves() -> Vec<Curve> {
    let paths = [
        ("OC-12, ATM, MTU 9180", OC12, 9180),
        ("OC-3, PPP, MTU 1500", "oc3", 1500),
        ("DS3, ATM, PLCP, MTU 1500", "ds3-plcp aal5-llcsnap", 1500),
        ("DS3, HDLC, MTU 1500", "ds3", 1500),
    ];
    paths.map(|(label, text, mtu)| descent(label, text, mtu)).to_vec()
}

/// Shares of the line, layer after layer.
fn descent(label: &str, text: &str, mtu_bytes: u32) -> Curve {
    let stack = super::plans::stacked(text, mtu_bytes, TCP);
    let layers = stack.map(|stack| stack.layers).unwrap_or_default();
    let line = layers.first().map_or(f64::NAN, |layer| layer.bps);
    let points = layers.iter().zip(0_u8..);
    let points = points.map(|(layer, index)| (f64::from(index), 100.0 * layer.bps / line));
    Curve { steps: true, ..curve(label, points.collect()) }
}

const GIGABIT: Plot = Plot {
    id: "published-gigabit",
    title: "TCP over Gigabit Ethernet, and the 966.5 Mbit/s of 2004",
    x: linear("MTU, bytes"),
    y: linear("TCP payload, Mbit/s"),
    curves: gigabit_curves,
};

fn gigabit_curves() -> Vec<Curve> {
    let mtus = || (1000..=4500).step_by(50);
    let at =
        |segment| mtus().map(|mtu| (f64::from(mtu), payload_mbps("1g", mtu, segment))).collect();
    vec![
        curve("without timestamps", at(TCP)),
        curve("with timestamps", at(TCP_TIMESTAMPS)),
        curve("printed", vec![(1000.0, SUNET_MBPS), (4500.0, SUNET_MBPS)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_mtu_reaches_the_rate_and_one_less_does_not() {
        for (headers, segment) in [(40.0, TCP), (52.0, TCP_TIMESTAMPS)] {
            let mtu = BitRate::from_nearest(smallest_mtu(SUNET_MBPS, headers)).expect("an MTU");
            let mtu = u32::try_from(mtu.bits_per_sec()).expect("an MTU");
            assert!(payload_mbps("1g", mtu, segment) >= SUNET_MBPS);
            assert!(payload_mbps("1g", mtu - 1, segment) < SUNET_MBPS);
        }
    }

    #[test]
    fn no_reading_of_the_oc12_figure_with_sixteen_bytes_gives_what_was_printed() {
        // 542.55 × (1 − 16/9180) = 541.60; with eight it is 542.08; with 0.09 % 542.06.
        assert!((542.55 * (1.0 - 16.0 / 9180.0) - 541.60_f64).abs() < 0.005);
        assert!((542.55 * (1.0 - 8.0 / 9180.0) - 542.08_f64).abs() < 0.005);
    }
}
