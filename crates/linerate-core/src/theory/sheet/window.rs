//! The formulas of windows: what one allows, what a path needs, and where one flow ends.

use super::parts::{bytes, curve, decades, mbps, ms, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::theory::window::{
    bdp_bytes, single_flow_rate_max, window_for, window_rate, window_scale,
};

pub(super) const SECTION: Section = Section {
    title: "Windows",
    purpose: "How fast a window of unacknowledged bytes lets a connection be, and how large it has \
              to be to fill a path.",
    formulas: &[WINDOW_RATE, BDP, SCALE, SINGLE_FLOW],
};

const RTT: Symbol = symbol("RTT", "round trip, queues included", "s");
const WINDOW: Symbol = symbol("W", "the smaller of both buffers and the receive window", "bytes");

const WINDOW_RATE: Formula = Formula {
    id: "window-rate",
    title: "Rate that a window allows",
    formula: "R = 8 W / RTT",
    symbols: &[symbol("R", "rate of payload", "bit/s"), WINDOW, RTT],
    range: "Any window and any round trip above 0. Says nothing of links, losses or start-up. A \
            socket buffer advertises less than its size: Linux keeps part of it.",
    source: "RFC 6349 §3.3.1",
    estimate: false,
    examples: &[
        Example {
            given: "16 kB, 5 ms",
            computed: || number(window_rate(bytes(16e3), ms(5.0))) / 1e6,
            expected: 25.6,
            tolerance: 1e-9,
            unit: "Mbit/s",
            origin: "RFC 6349 §3.3.1",
        },
        Example {
            given: "65,535 bytes, 21 ms",
            computed: || number(window_rate(bytes(65_535.0), ms(21.0))) / 1e6,
            expected: 24.966,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "524,280 bit / 0.021 s",
        },
        Example {
            given: "65,536 bytes, 100 ms",
            computed: || number(window_rate(bytes(65_536.0), ms(100.0))) / 1e6,
            expected: 5.242_88,
            tolerance: 1e-9,
            unit: "Mbit/s",
            origin: "524,288 bit / 0.1 s",
        },
        Example {
            given: "3 MiB, half of Linux's 6 MiB, 100 ms",
            computed: || number(window_rate(bytes(3_145_728.0), ms(100.0))) / 1e6,
            expected: 251.658,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "25,165,824 bit / 0.1 s",
        },
        Example {
            given: "4 MiB, 175 ms, San Jose to Luleå",
            computed: || number(window_rate(bytes(4_194_304.0), ms(175.0))) / 1e6,
            expected: 191.740,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "33,554,432 bit / 0.175 s",
        },
    ],
    plot: &RATE_PLOT,
};

const BDP: Formula = Formula {
    id: "bandwidth-delay-product",
    title: "Bytes in flight that fill a path",
    formula: "W = C RTT / 8",
    symbols: &[
        symbol("W", "window, and each socket buffer at least", "bytes"),
        symbol("C", "rate of the path", "bit/s"),
        RTT,
    ],
    range: "Any path. A window of this size fills the path while nothing is lost; a flow that \
            halves its window needs as much again in the queue.",
    source: "RFC 6349 §3.3.1; RFC 7323 §1.1",
    estimate: false,
    examples: &[
        Example {
            given: "T3, 44.21 Mbit/s, 25 ms",
            computed: || window_bytes(44.21, 25.0),
            expected: 138_157.0,
            tolerance: 1e-9,
            unit: "bytes",
            origin: "RFC 6349 §3.3.1, about 138 KB",
        },
        Example {
            given: "1 Gbit/s, 21 ms",
            computed: || bdp(1e3, 21.0),
            expected: 2_625_000.0,
            tolerance: 1e-9,
            unit: "bytes",
            origin: "1e9 · 0.021 / 8",
        },
        Example {
            given: "10 Gbit/s, 100 ms",
            computed: || bdp(1e4, 100.0),
            expected: 125_000_000.0,
            tolerance: 1e-9,
            unit: "bytes",
            origin: "10e9 · 0.1 / 8",
        },
        Example {
            given: "OC-12 after SONET, 599.04 Mbit/s, 45 ms",
            computed: || bdp(599.04, 45.0),
            expected: 3_369_600.0,
            tolerance: 1e-9,
            unit: "bytes",
            origin: "599.04e6 · 0.045 / 8",
        },
    ],
    plot: &NEED_PLOT,
};

const SCALE: Formula = Formula {
    id: "window-scale",
    title: "Window scale",
    formula: "s = the least whole number with 65535 · 2^s ≥ W",
    symbols: &[symbol("s", "shift that both ends agree on in the SYN", "1"), WINDOW],
    range: "s from 0 to 14. No window is larger than 65535 · 2^14 = 1,073,725,440 bytes.",
    source: "RFC 7323 §2.2, §2.3",
    estimate: false,
    examples: &[
        Example {
            given: "2,625,000 bytes, 1 Gbit/s at 21 ms",
            computed: || scale(2_625_000.0),
            expected: 6.0,
            tolerance: 0.0,
            unit: "1",
            origin: "65535 · 2^5 = 2,097,120 is too small, · 2^6 = 4,194,240 is not",
        },
        Example {
            given: "125,000,000 bytes, 10 Gbit/s at 100 ms",
            computed: || scale(125e6),
            expected: 11.0,
            tolerance: 0.0,
            unit: "1",
            origin: "65535 · 2^10 = 67,107,840 is too small, · 2^11 = 134,215,680 is not",
        },
        Example {
            given: "1,073,725,440 bytes",
            computed: || scale(1_073_725_440.0),
            expected: 14.0,
            tolerance: 0.0,
            unit: "1",
            origin: "RFC 7323 §2.3: 65535 · 2^14 is the largest window",
        },
    ],
    plot: &SCALE_PLOT,
};

const SINGLE_FLOW: Formula = Formula {
    id: "single-flow-limit",
    title: "Where one connection ends",
    formula: "R = 8 · 65535 · 2^14 / RTT",
    symbols: &[symbol("R", "the most that one TCP connection carries", "bit/s"), RTT],
    range: "Any host and any buffers. 100 Gbit/s over 100 ms would need a scale of 15, so it takes \
            two connections.",
    source: "RFC 7323 §2.3",
    estimate: false,
    examples: &[Example {
        given: "100 ms",
        computed: || number(single_flow_rate_max(ms(100.0))) / 1e9,
        expected: 85.898,
        tolerance: 1e-4,
        unit: "Gbit/s",
        origin: "8 · 1,073,725,440 / 0.1",
    }],
    plot: &NEED_PLOT,
};

static RATE_PLOT: Plot = Plot {
    id: "rate-by-window",
    title: "Rate that a window allows",
    x: PlotAxis { label: "window (bytes)", log: true },
    y: PlotAxis { label: "rate (Mbit/s)", log: true },
    curves: || {
        let curve = |rtt: f64| {
            curve(format!("{rtt} ms"), decades(16e3, 1.074e9, 24), |window| {
                window_rate(bytes(window), ms(rtt)).map(|bps| bps / 1e6)
            })
        };
        [1.0, 10.0, 21.0, 100.0, 175.0].map(curve).to_vec()
    },
};

static NEED_PLOT: Plot = Plot {
    id: "window-by-rtt",
    title: "Window that fills a path, up to the largest there is",
    x: PlotAxis { label: "round trip (ms)", log: true },
    y: PlotAxis { label: "window (bytes)", log: true },
    curves: || {
        let curve = |(label, rate): (&str, f64)| {
            curve(label, decades(0.1, 1000.0, 40), |rtt| {
                window_for(mbps(rate), ms(rtt)).map(|window| window.count() as f64)
            })
        };
        [("100 Mbit/s", 1e2), ("1 Gbit/s", 1e3), ("10 Gbit/s", 1e4), ("100 Gbit/s", 1e5)]
            .map(curve)
            .to_vec()
    },
};

static SCALE_PLOT: Plot = Plot {
    id: "scale-by-window",
    title: "Window scale",
    x: PlotAxis { label: "window (bytes)", log: true },
    y: PlotAxis { label: "scale", log: false },
    curves: || {
        let steps = curve("scale", decades(32e3, 1.073e9, 120), |window| {
            window_scale(bytes(window)).map(f64::from)
        });
        vec![Curve { steps: true, ..steps }]
    },
};

fn bdp(rate: f64, rtt: f64) -> f64 {
    number(bdp_bytes(mbps(rate), ms(rtt)).map(|bytes| bytes.count() as f64))
}

fn window_bytes(rate: f64, rtt: f64) -> f64 {
    number(window_for(mbps(rate), ms(rtt)).map(|bytes| bytes.count() as f64))
}

fn scale(window: f64) -> f64 {
    number(window_scale(bytes(window)).map(f64::from))
}
