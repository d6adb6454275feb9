//! The sheet's section on Ethernet: frames a second and what TCP gets.
//!
//! Left out: the rules themselves, which are in `theory::framing`. Expected values are those of
//! RFC 5180, RFC 6349 and hand sums.

use super::plans::{
    TCP, TCP_TIMESTAMPS, TCP6_TIMESTAMPS, UDP, curve, example, linear, logarithmic, mtus,
    payload_mbps, symbol,
};
use super::{Curve, Formula, Plot, Section};
use crate::theory::framing::{Segment, frame_rate, whole_frame_rate, wire_bytes};
use crate::units::{BitRate, FrameLen};

pub(super) const SECTION: Section = Section {
    title: "Ethernet",
    purpose: "How many frames a link carries in a second, and what is left for TCP and UDP.",
    formulas: &[FRAME_RATE, GOODPUT],
};

const FRAME_RATE: Formula = Formula {
    id: "frame-rate",
    title: "Frames that fill a link",
    formula: "F = R / (8 (L + 20))",
    symbols: &[
        symbol("F", "frames a second; whole ones by rounding down", "1/s"),
        symbol("R", "rate of the link", "bit/s"),
        symbol("L", "frame from destination address to check sequence, 64 or more", "bytes"),
        symbol("20", "preamble and start delimiter 8, gap 12", "bytes"),
    ],
    range: "Full duplex, any rate from 10 Mbit/s to 800 Gbit/s. Coding, lanes and forward error \
            correction are below this rate and take nothing from it.",
    source: "RFC 5180 appendix A; IEEE 802.3 §3.1.1 and §4.4.2",
    estimate: false,
    examples: &[
        example("10 Mbit/s, 64 bytes", || frames(10.0, 64), 14_880.95, "1/s", RFC_5180),
        example("10 Mbit/s, 1518 bytes", || frames(10.0, 1518), 812.744, "1/s", RFC_5180),
        example("100 Mbit/s, 64 bytes", || frames(100.0, 64), 148_809.52, "1/s", RFC_5180),
        example("100 Mbit/s, 1518 bytes", || frames(100.0, 1518), 8_127.438, "1/s", RFC_6349),
        example("1 Gbit/s, 64 bytes", || frames(1e3, 64), 1_488_095.24, "1/s", RFC_5180),
        example("1 Gbit/s, 1518 bytes", || frames(1e3, 1518), 81_274.382, "1/s", RFC_5180),
        example("2.5 Gbit/s, 64 bytes", || frames(2.5e3, 64), 3_720_238.10, "1/s", "2.5e9 / 672"),
        example("10 Gbit/s, 64 bytes", || frames(1e4, 64), 14_880_952.38, "1/s", RFC_5180),
        example("10 Gbit/s, 1518 bytes", || frames(1e4, 1518), 812_743.82, "1/s", RFC_5180),
        example("25 Gbit/s, 64 bytes", || frames(2.5e4, 64), 37_202_380.95, "1/s", "25e9 / 672"),
        example("100 Gbit/s, 64 bytes", || frames(1e5, 64), 148_809_523.8, "1/s", "100e9 / 672"),
        example(
            "400 Gbit/s, 1518 bytes",
            || frames(4e5, 1518),
            32_509_752.9,
            "1/s",
            "400e9 / 12304",
        ),
        example("800 Gbit/s, 64 bytes", || frames(8e5, 64), 1_190_476_190.5, "1/s", "800e9 / 672"),
    ],
    plot: &FRAMES,
};

const GOODPUT: Formula = Formula {
    id: "ethernet-goodput",
    title: "TCP and UDP over Ethernet",
    formula: "G = R (M - H) / (max(64, M + 18) + 20)",
    symbols: &[
        symbol("G", "rate of the payload", "bit/s"),
        symbol("R", "rate of the link", "bit/s"),
        symbol("M", "MTU", "bytes"),
        symbol(
            "H",
            "IPv4 and TCP 40, with timestamps 52; IPv6 60 and 72; IPv4 and UDP 28",
            "bytes",
        ),
        symbol("18", "Ethernet header 14, check sequence 4", "bytes"),
    ],
    range: "Back-to-back full packets of one flow, full duplex. Selective acknowledgements go the \
            other way and cost the data nothing.",
    source: "IEEE 802.3 §3.1.1; RFC 791, 8200, 9293, 7323 appendix A, 768; RFC 6349",
    estimate: false,
    examples: &[
        example("100 Mbit/s", || payload_mbps("100m", 1500, TCP), 94.928, "Mbit/s", RFC_6349),
        example("1 Gbit/s", || payload_mbps("1g", 1500, TCP), 949.285, "Mbit/s", "1460/1538"),
        example("1 Gbit/s, timestamps", || stamped("1g", 1500), 941.482, "Mbit/s", "1448/1538"),
        example(
            "1 Gbit/s, IPv6, timestamps",
            || payload_mbps("1g", 1500, TCP6_TIMESTAMPS),
            928.479,
            "Mbit/s",
            "1428/1538",
        ),
        example("1 Gbit/s, UDP", || payload_mbps("1g", 1500, UDP), 957.087, "Mbit/s", "1472/1538"),
        example("1 Gbit/s, MTU 9000", || stamped("1g", 9000), 990.042, "Mbit/s", "8948/9038"),
        example("10 Gbit/s", || stamped("10g", 1500), 9_414.82, "Mbit/s", "1448/1538"),
        example("25 Gbit/s", || stamped("25g", 1500), 23_537.06, "Mbit/s", "1448/1538"),
        example("400 Gbit/s", || stamped("400g", 1500), 376_593.0, "Mbit/s", "1448/1538"),
        example("800 Gbit/s, MTU 9000", || stamped("800g", 9000), 792_033.6, "Mbit/s", "8948/9038"),
    ],
    plot: &SHARES,
};

const RFC_5180: &str = "RFC 5180 appendix A, which prints the whole frames";
const RFC_6349: &str = "RFC 6349: 8127 frames/s, 94.9 Mbit/s";

fn frames(mbps: f64, frame_bytes: u32) -> f64 {
    let rate = BitRate::from_nearest(mbps * 1e6);
    let len = FrameLen::from_bytes(frame_bytes).ok();
    rate.zip(len).map_or(f64::NAN, |(rate, len)| frame_rate(rate, len).per_sec())
}

fn stamped(link: &str, mtu_bytes: u32) -> f64 {
    payload_mbps(link, mtu_bytes, TCP_TIMESTAMPS)
}

const FRAMES: Plot = Plot {
    id: "frame-rates",
    title: "Frames that fill a link",
    x: logarithmic("frame, bytes"),
    y: logarithmic("frames a second"),
    curves: frame_curves,
};

fn frame_curves() -> Vec<Curve> {
    let rates = [
        ("10 Mbit/s", 10),
        ("100 Mbit/s", 100),
        ("1 Gbit/s", 1_000),
        ("10 Gbit/s", 10_000),
        ("100 Gbit/s", 100_000),
        ("800 Gbit/s", 800_000),
    ];
    let at = |mbps: u64| {
        let rate = BitRate::from_bits_per_sec(mbps * 1_000_000);
        let lens = (64..=9242).step_by(34).filter_map(|bytes| FrameLen::from_bytes(bytes).ok());
        lens.map(|len| (f64::from(len.bytes()), whole_frame_rate(rate, len) as f64)).collect()
    };
    rates.into_iter().map(|(label, mbps)| curve(label, at(mbps))).collect()
}

const SHARES: Plot = Plot {
    id: "ethernet-share",
    title: "What Ethernet leaves of a link's rate",
    x: logarithmic("MTU, bytes"),
    y: linear("share of the rate, %"),
    curves: share_curves,
};

fn share_curves() -> Vec<Curve> {
    let of = |segment: Segment| {
        let share = |mtu: u32| {
            let payload = segment.payload_bytes(mtu).ok()?;
            let wire = wire_bytes(crate::theory::framing::frame_bytes(mtu, 0));
            Some((f64::from(mtu), 100.0 * f64::from(payload) / f64::from(wire)))
        };
        mtus().into_iter().filter_map(share).collect()
    };
    vec![
        curve("UDP over IPv4", of(UDP)),
        curve("TCP over IPv4", of(TCP)),
        curve("TCP over IPv4, timestamps", of(TCP_TIMESTAMPS)),
        curve("TCP over IPv6, timestamps", of(TCP6_TIMESTAMPS)),
    ]
}
