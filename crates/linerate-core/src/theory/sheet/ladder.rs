//! The formulas of the ladder: what binds when several things bound a transfer, and the bounds
//! that no other section has.

use std::time::Duration;

use super::parts::{curve, decades, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::record::Family;
use crate::theory::framing::{Segment, Transport};
use crate::theory::ladder::{AckPath, Facts, Known, Ladder, Packet, RungKind, by_loss, climb};
use crate::units::{BitRate, Bytes, Fraction, PacketRate};

pub(super) const SECTION: Section = Section {
    title: "What binds",
    purpose: "Several things bound a transfer at once, each on its own. The least of them is what \
              to expect, and the next is what mending it gives.",
    formulas: &[LEAST, PACKET_RATE, SEND_BUFFER, REVERSE_PATH],
};

const PAYLOAD: Symbol = symbol("L", "payload of a full packet", "bytes");
const RATE: Symbol = symbol("R", "rate of payload", "bit/s");

const LEAST: Formula = Formula {
    id: "least-bound",
    title: "The least of all bounds",
    formula: "R = min(R1, R2, …)",
    symbols: &[RATE, symbol("Ri", "each bound, all flows together", "bit/s")],
    range: "Bounds that do not change each other: a loss that the flow's own queue makes is not \
            one of them. Two within a quarter of each other both show in a measurement.",
    source: "M. Mathis et al., CCR 27(3), 1997: a rate below a known bound has another cause",
    estimate: false,
    examples: &[
        Example {
            given: "537.346 Mbit/s of link, 2 MiB of window and 45 ms",
            computed: || expected(&oc12(None)),
            expected: 372.827,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "2,097,152 · 8 / 0.045, less than the link",
        },
        Example {
            given: "the same with a loss of 1 in 10,000, segments of 9128 bytes, CUBIC",
            computed: || expected(&oc12(Some(1e-4))),
            expected: 198.746,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "9128 · 8 / 0.045 · 1.224745 / 0.01, less than the window",
        },
    ],
    plot: &LEAST_PLOT,
};

const PACKET_RATE: Formula = Formula {
    id: "packet-rate-bound",
    title: "A device that forwards so many packets",
    formula: "R = 8 L P",
    symbols: &[RATE, PAYLOAD, symbol("P", "packets forwarded", "1/s")],
    range: "Full packets; a device that is slower with more filters or routes has another P.",
    source: "RFC 2544 §26.1",
    estimate: false,
    examples: &[Example {
        given: "10,000 packets/s of 1448 bytes of payload",
        computed: || {
            let rate = PacketRate::from_per_sec(10_000.0).map(|rate| Known::new(rate, ""));
            of(RungKind::PacketRate, &Facts { packet_rate: rate, ..ethernet() })
        },
        expected: 115.84,
        tolerance: 1e-9,
        unit: "Mbit/s",
        origin: "10,000 · 1448 · 8",
    }],
    plot: &PACKETS_PLOT,
};

const SEND_BUFFER: Formula = Formula {
    id: "send-buffer-bound",
    title: "Rate that a send buffer allows",
    formula: "0.6 · 8 B / RTT ≤ R ≤ 8 (B + 65,536) / RTT",
    symbols: &[
        RATE,
        symbol("B", "limit of the send buffer in the kernel", "bytes"),
        symbol("RTT", "round trip", "s"),
    ],
    range: "Linux, whose limit counts the bookkeeping of every segment: 0.63 to 0.77 of it was \
            data before write() had to wait, more with longer segments. A sender that does not \
            pace adds a super-packet of 64 KiB to a buffer that is not yet full.",
    source: "socket(7), SO_SNDBUF; the share is a cautious one of those measured on Linux 6.18",
    estimate: true,
    examples: &[Example {
        given: "1,000,000 bytes, 100 ms",
        computed: || {
            let buffer = Some(Known::new(Bytes::new(1_000_000), ""));
            of(RungKind::SendBuffer, &Facts { send_buffer: buffer, ..ethernet() })
        },
        expected: 85.242_88,
        tolerance: 1e-9,
        unit: "Mbit/s",
        origin: "the upper end: 8 · 1,065,536 / 0.1",
    }],
    plot: &BUFFER_PLOT,
};

const REVERSE_PATH: Formula = Formula {
    id: "reverse-path-bound",
    title: "A way back that carries so many acknowledgements",
    formula: "R = 8 L b A / a",
    symbols: &[
        RATE,
        PAYLOAD,
        symbol("b", "segments that one acknowledgement answers", "1"),
        symbol("A", "rate of the way back", "bit/s"),
        symbol("a", "bits that an acknowledgement takes of it", "bit"),
    ],
    range: "A way back that carries nothing else. Receivers that gather segments answer far more \
            than two.",
    source: "RFC 3449 §3.1",
    estimate: false,
    examples: &[Example {
        given: "1 Mbit/s of Ethernet, 90 bytes an acknowledgement, two segments of 1448 bytes",
        computed: || reverse(1e6),
        expected: 32.177_8,
        tolerance: 1e-4,
        unit: "Mbit/s",
        origin: "1e6 / 720 · 2 · 1448 · 8",
    }],
    plot: &REVERSE_PLOT,
};

fn segment() -> Segment {
    Segment { family: Family::V4, transport: Transport::TcpWithTimestamps }
}

/// Packets of 1500 bytes and a round trip of 100 ms.
fn ethernet() -> Facts {
    Facts {
        rtt: Some(Known::new(Duration::from_millis(100), "")),
        ..Facts::of(Packet { payload_bytes: 1448, ip_bytes: 1500, segment: segment() })
    }
}

/// The OC-12 path: its ceiling as a capacity of IP packets, 2 MiB and 45 ms.
fn oc12(loss: Option<f64>) -> Facts {
    Facts {
        capacity: Some(Known::new(BitRate::from_bits_per_sec(540_407_547), "")),
        rtt: Some(Known::new(Duration::from_millis(45), "")),
        window: Some(Known::new(Bytes::new(2 << 20), "")),
        loss: loss.and_then(Fraction::from_value).map(|share| Known::new(share, "")),
        ..Facts::of(Packet { payload_bytes: 9128, ip_bytes: 9180, segment: segment() })
    }
}

fn ladder(facts: &Facts) -> Option<Ladder> {
    climb(facts).ok()
}

/// Mbit/s; not a number when there is none, so that an example fails.
fn expected(facts: &Facts) -> f64 {
    ladder(facts).and_then(|it| it.expected_bps()).map_or(f64::NAN, |bps| bps / 1e6)
}

fn of(kind: RungKind, facts: &Facts) -> f64 {
    let bps = ladder(facts).and_then(|it| it.rung(kind).map(|rung| rung.payload_bps));
    bps.map_or(f64::NAN, |bps| bps / 1e6)
}

fn reverse(back_bps: f64) -> f64 {
    let way = AckPath { acks_per_s: back_bps / 720.0, segments_per_ack: 2.0 };
    of(RungKind::ReversePath, &Facts { acks: Some(Known::new(way, "")), ..ethernet() })
}

const LEAST_PLOT: Plot = Plot {
    id: "least-bound",
    title: "Expected rate by loss: 540.4 Mbit/s of IP, 45 ms, window 2 MiB",
    x: PlotAxis { label: "loss events per packet", log: true },
    y: PlotAxis { label: "payload, Mbit/s", log: true },
    curves: || {
        let sweep = by_loss(&oc12(None)).ok().flatten();
        let curves = sweep.map_or_else(Vec::new, |sweep| sweep.curves);
        let mbps = |(x, bps): (f64, f64)| (x, bps / 1e6);
        let scaled =
            |curve: Curve| Curve { points: curve.points.into_iter().map(mbps).collect(), ..curve };
        curves.into_iter().map(scaled).collect()
    },
};

const PACKETS_PLOT: Plot = Plot {
    id: "packet-rate-bound",
    title: "Rate by packets forwarded",
    x: PlotAxis { label: "packets/s", log: true },
    y: PlotAxis { label: "payload, Mbit/s", log: true },
    curves: || {
        let of_payload = |payload_bytes: u32, label: &str| {
            curve(label, decades(1e3, 1e7, 40), |per_s| {
                let packet =
                    Packet { payload_bytes, ip_bytes: payload_bytes + 52, segment: segment() };
                let rate = PacketRate::from_per_sec(per_s).map(|rate| Known::new(rate, ""));
                let facts = Facts { packet_rate: rate, ..Facts::of(packet) };
                Ok::<f64, ()>(of(RungKind::PacketRate, &facts))
            })
        };
        vec![of_payload(484, "MTU 536"), of_payload(1448, "MTU 1500"), of_payload(8948, "MTU 9000")]
    },
};

const BUFFER_PLOT: Plot = Plot {
    id: "send-buffer-bound",
    title: "Rate by send buffer",
    x: PlotAxis { label: "limit of the buffer, bytes", log: true },
    y: PlotAxis { label: "payload, Mbit/s", log: true },
    curves: || {
        let at = |ms: u64| {
            curve(format!("{ms} ms"), decades(1e4, 1e8, 40), |bytes| {
                let buffer = Some(Known::new(super::parts::bytes(bytes), ""));
                let rtt = Some(Known::new(Duration::from_millis(ms), ""));
                let facts = Facts { send_buffer: buffer, rtt, ..ethernet() };
                Ok::<f64, ()>(of(RungKind::SendBuffer, &facts))
            })
        };
        vec![at(1), at(10), at(100)]
    },
};

const REVERSE_PLOT: Plot = Plot {
    id: "reverse-path-bound",
    title: "Rate by the way back: 90 bytes an ACK, two segments of 1448 bytes",
    x: PlotAxis { label: "way back, bit/s", log: true },
    y: PlotAxis { label: "payload, Mbit/s", log: true },
    curves: || vec![curve("payload", decades(1e4, 1e9, 40), |bps| Ok::<f64, ()>(reverse(bps)))],
};
