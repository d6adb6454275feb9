//! The formulas of queues: their size, their delay, RED, and responsiveness under load.

use std::time::Duration;

use super::parts::{bytes, curve, decades, evenly, mbps, ms, number, symbol};
use super::{Example, Formula, Plot, PlotAxis, Section};
use crate::theory::buffer::{
    aimd_utilization, burst_limited_bps, full_link_bytes, full_utilization_share, queue_delay_s,
};
use crate::theory::loss::{CUBIC_BETA, RENO_BETA};
use crate::theory::red::{
    MARK_MAX, Red, RedError, WEIGHT, average_reached, spread_chance, tc_burst_packets,
};
use crate::theory::responsiveness::{
    LoadedRoundTrips, ResponsivenessError, round_trips_per_minute, round_trips_per_minute_of_mean,
};

pub(super) const SECTION: Section = Section {
    title: "Buffers and queues",
    purpose: "How large a queue has to be, what it costs in delay, what one too small costs in \
              rate, and when RED marks.",
    formulas: &[
        FULL_LINK,
        UTILIZATION,
        FULL_SHARE,
        BURST,
        DELAY,
        RED_AVERAGE,
        RED_MARK,
        RED_SPREAD,
        RED_BURST,
        RPM,
        RPM_OLD,
    ],
};

const FULL_LINK: Formula = Formula {
    id: "full-link-buffer",
    title: "Buffer that keeps a link full",
    formula: "B = C RTT / (8 sqrt(n))",
    symbols: &[
        symbol("B", "buffer", "bytes"),
        symbol("C", "rate of the link", "bit/s"),
        symbol("RTT", "round trip without queues", "s"),
        symbol("n", "long flows that do not lose together", "1"),
    ],
    range: "n = 1 is the rule of one bandwidth-delay product, right for flows that halve their \
            window. The root holds for hundreds of flows and more.",
    source: "C. Villamizar, C. Song, CCR 24(5), 1994; G. Appenzeller, I. Keslassy, N. McKeown, \
             SIGCOMM 2004",
    estimate: true,
    examples: &[
        Example {
            given: "10 Gbit/s, 250 ms, one flow",
            computed: || number(full_link_bytes(mbps(1e4), ms(250.0), 1)) / 1e6,
            expected: 312.5,
            tolerance: 1e-9,
            unit: "MB",
            origin: "10e9 · 0.25 / 8",
        },
        Example {
            given: "10 Gbit/s, 250 ms, 50,000 flows",
            computed: || number(full_link_bytes(mbps(1e4), ms(250.0), 50_000)) / 1e6,
            expected: 1.397_5,
            tolerance: 1e-4,
            unit: "MB",
            origin: "312.5 / 223.607; the paper of 2004 says only 10 Mbit, ours is 11.2",
        },
        Example {
            given: "1 Gbit/s, 21 ms, 100 flows",
            computed: || number(full_link_bytes(mbps(1e3), ms(21.0), 100)) / 1e3,
            expected: 262.5,
            tolerance: 1e-9,
            unit: "kB",
            origin: "2625 / 10",
        },
    ],
    plot: &FLOWS_PLOT,
};

const UTILIZATION: Formula = Formula {
    id: "aimd-utilization",
    title: "Share of a link that one flow uses behind a small buffer",
    formula: "U = ((1 − l²)/2 + ((1 + b)² − 1)/2) / ((1 − l) + ((1 + b)² − 1)/2), l = β (1 + b); \
              1 when l ≥ 1",
    symbols: &[
        symbol("U", "mean share of the link's rate", "1"),
        symbol("b", "buffer over the bandwidth-delay product", "1"),
        symbol("β", "what is kept of the window at a loss: 0.5 Reno, 0.7 CUBIC", "1"),
        symbol("l", "window after a loss, in bandwidth-delay products", "1"),
    ],
    range: "One smooth flow that grows by a segment in each round trip. Not a safe ceiling for \
            senders that do not pace: bursts overflow a small buffer long before. A CUBIC flow \
            without pacing measured 11 % at b = 0.03 and 46 % at b = 0.12.",
    source: "Data over time between two losses: below one bandwidth-delay product the round trip \
             is constant, above it grows with the window",
    estimate: true,
    examples: &[
        Example {
            given: "b 0, β 0.5",
            computed: || number(aimd_utilization(0.0, RENO_BETA)),
            expected: 0.75,
            tolerance: 1e-9,
            unit: "1",
            origin: "the mean of 0.5 and 1",
        },
        Example {
            given: "b 0.25, β 0.5",
            computed: || number(aimd_utilization(0.25, RENO_BETA)),
            expected: 0.8929,
            tolerance: 1e-4,
            unit: "1",
            origin: "l 0.625: (0.3046875 + 0.28125) / (0.375 + 0.28125)",
        },
        Example {
            given: "b 0.5, β 0.5",
            computed: || number(aimd_utilization(0.5, RENO_BETA)),
            expected: 0.9643,
            tolerance: 1e-4,
            unit: "1",
            origin: "l 0.75: (0.21875 + 0.625) / (0.25 + 0.625)",
        },
        Example {
            given: "b 0.1, β 0.7",
            computed: || number(aimd_utilization(0.1, CUBIC_BETA)),
            expected: 0.9210,
            tolerance: 1e-4,
            unit: "1",
            origin: "l 0.77: (0.20355 + 0.105) / (0.23 + 0.105)",
        },
    ],
    plot: &UTILIZATION_PLOT,
};

const FULL_SHARE: Formula = Formula {
    id: "full-utilization-buffer",
    title: "Buffer at which one flow fills a link",
    formula: "b = 1/β − 1",
    symbols: &[
        symbol("b", "buffer over the bandwidth-delay product", "1"),
        symbol("β", "what is kept of the window at a loss", "1"),
    ],
    range: "As above.",
    source: "The formula above at l = 1",
    estimate: true,
    examples: &[
        Example {
            given: "Reno, β 0.5",
            computed: || number(full_utilization_share(RENO_BETA)),
            expected: 1.0,
            tolerance: 1e-9,
            unit: "1",
            origin: "the rule of one bandwidth-delay product",
        },
        Example {
            given: "CUBIC, β 0.7",
            computed: || number(full_utilization_share(CUBIC_BETA)),
            expected: 0.4286,
            tolerance: 1e-4,
            unit: "1",
            origin: "3/7",
        },
    ],
    plot: &UTILIZATION_PLOT,
};

const BURST: Formula = Formula {
    id: "burst-limit",
    title: "Rate of one burst in each round trip",
    formula: "R = 8 L / RTT",
    symbols: &[
        symbol("R", "the most that passes", "bit/s"),
        symbol("L", "what the smallest queue on the path absorbs at once", "bytes"),
        symbol("RTT", "round trip", "s"),
    ],
    range: "Senders that send their window at once, without pacing. The device tests well over a \
            short path.",
    source: "The window formula, with the queue as the window",
    estimate: false,
    examples: &[
        Example {
            given: "1000 packets of 1500 bytes, each 20 ms",
            computed: || number(burst_limited_bps(bytes(1.5e6), ms(20.0))) / 1e6,
            expected: 600.0,
            tolerance: 1e-9,
            unit: "Mbit/s",
            origin: "12 Mbit / 0.02 s",
        },
        Example {
            given: "the same, over 175 ms",
            computed: || number(burst_limited_bps(bytes(1.5e6), ms(175.0))) / 1e6,
            expected: 68.57,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "12 Mbit / 0.175 s",
        },
    ],
    plot: &BURST_PLOT,
};

const DELAY: Formula = Formula {
    id: "queue-delay",
    title: "Delay of a queue",
    formula: "q = 8 B / C",
    symbols: &[
        symbol("q", "time that the last byte waits", "s"),
        symbol("B", "bytes in the queue", "bytes"),
        symbol("C", "rate at which it drains", "bit/s"),
    ],
    range: "One queue, first in first out.",
    source: "The bytes over the rate",
    estimate: false,
    examples: &[Example {
        given: "250 kB, 50 Mbit/s",
        computed: || number(queue_delay_s(bytes(250e3), mbps(50.0))) * 1e3,
        expected: 40.0,
        tolerance: 1e-9,
        unit: "ms",
        origin: "2 Mbit / 50 Mbit/s",
    }],
    plot: &DELAY_PLOT,
};

const RED_AVERAGE: Formula = Formula {
    id: "red-average",
    title: "RED: the averaged queue",
    formula: "a ← a + w (q − a); after n packets from 0: a = q (1 − (1 − w)^n)",
    symbols: &[
        symbol("a", "averaged length", "bytes or packets"),
        symbol("q", "length that a packet finds", "bytes or packets"),
        symbol("w", "weight, 0.002", "1"),
        symbol("n", "packets since the queue stands", "1"),
    ],
    range: "0 < w ≤ 1. Idle times count as packets that found nothing.",
    source: "S. Floyd, V. Jacobson, IEEE/ACM ToN 1(4), 1993, §VI",
    estimate: false,
    examples: &[Example {
        given: "1000 packets, w 0.002",
        computed: || number(average_reached(WEIGHT, 1000)),
        expected: 0.8649,
        tolerance: 1e-4,
        unit: "share of q",
        origin: "1 − 0.998^1000",
    }],
    plot: &AVERAGE_PLOT,
};

const RED_MARK: Formula = Formula {
    id: "red-mark",
    title: "RED: chance of a mark by the average",
    formula: "p_b = p_max (a − min) / (max − min); 0 below min, 1 from max",
    symbols: &[
        symbol("p_b", "chance that a packet is marked or dropped", "1"),
        symbol("p_max", "chance just below max, 0.02", "1"),
        symbol("a", "averaged length", "bytes or packets"),
        symbol("min, max", "thresholds", "bytes or packets"),
    ],
    range: "0 ≤ min < max. The gentle form, which grows on to 2 max, is another.",
    source: "S. Floyd, V. Jacobson, IEEE/ACM ToN 1(4), 1993, §IV",
    estimate: false,
    examples: &[
        Example {
            given: "30 kB, 90 kB, 0.02; average 60 kB",
            computed: || number(mark(60e3)),
            expected: 0.01,
            tolerance: 1e-9,
            unit: "1",
            origin: "0.02 · 30 / 60",
        },
        Example {
            given: "the same; average 90 kB",
            computed: || number(mark(90e3)),
            expected: 1.0,
            tolerance: 0.0,
            unit: "1",
            origin: "everything from max on",
        },
    ],
    plot: &MARK_PLOT,
};

const RED_SPREAD: Formula = Formula {
    id: "red-spread",
    title: "RED: chance of a mark by the packets since the last",
    formula: "p_a = p_b / (1 − k p_b)",
    symbols: &[
        symbol("p_a", "chance that this packet is marked", "1"),
        symbol("p_b", "chance by the average", "1"),
        symbol("k", "packets since the last mark", "1"),
    ],
    range: "k p_b < 1; from there the packet is marked. The gap between marks is even over 1 to \
            1/p_b packets.",
    source: "S. Floyd, V. Jacobson, IEEE/ACM ToN 1(4), 1993, §VII",
    estimate: false,
    examples: &[Example {
        given: "p_b 0.01, 50 packets",
        computed: || number(spread_chance(0.01, 50)),
        expected: 0.02,
        tolerance: 1e-9,
        unit: "1",
        origin: "0.01 / 0.5",
    }],
    plot: &SPREAD_PLOT,
};

const RED_BURST: Formula = Formula {
    id: "red-tc-burst",
    title: "RED in Linux: the burst to tell tc",
    formula: "n = (2 min + max) / (3 avpkt), rounded up",
    symbols: &[
        symbol("n", "burst", "packets"),
        symbol("min, max", "thresholds", "bytes"),
        symbol("avpkt", "mean packet", "bytes"),
    ],
    range: "tc derives the weight from it.",
    source: "tc-red(8)",
    estimate: false,
    examples: &[Example {
        given: "30,000, 90,000 and 1000 bytes",
        computed: || number(tc_burst_packets(30_000, 90_000, 1000).map(|packets| packets as f64)),
        expected: 50.0,
        tolerance: 0.0,
        unit: "packets",
        origin: "150,000 / 3000",
    }],
    plot: &MARK_PLOT,
};

const RPM: Formula = Formula {
    id: "round-trips-per-minute",
    title: "Responsiveness under load",
    formula: "N = (60000 / ((tcp + tls + http) / 3) + 60000 / loaded) / 2",
    symbols: &[
        symbol("N", "round trips per minute", "1/min"),
        symbol("tcp, tls, http", "mean of the smallest 95 % on new connections", "ms"),
        symbol("loaded", "the same on a connection that carries the load", "ms"),
    ],
    range: "Times above 0; without TLS the mean of two. Larger is better; an idle path of 20 ms \
            has 3000.",
    source: "draft-ietf-ippm-responsiveness-09 §5.3.1.1",
    estimate: false,
    examples: &[Example {
        given: "60, 60, 60 and 20 ms",
        computed: || number(round_trips_per_minute(&loaded(60.0))),
        expected: 2000.0,
        tolerance: 1e-9,
        unit: "1/min",
        origin: "(1000 + 3000) / 2",
    }],
    plot: &RPM_PLOT,
};

const RPM_OLD: Formula = Formula {
    id: "round-trips-per-minute-first",
    title: "Responsiveness in the draft's first versions",
    formula: "N = 60000 / (((tcp + tls + http) / 3 + loaded) / 2)",
    symbols: RPM.symbols,
    range: "As above, and never more. Figures of the two cannot be compared.",
    source: "draft-ietf-ippm-responsiveness-01",
    estimate: false,
    examples: &[Example {
        given: "60, 60, 60 and 20 ms",
        computed: || number(round_trips_per_minute_of_mean(&loaded(60.0))),
        expected: 1500.0,
        tolerance: 1e-9,
        unit: "1/min",
        origin: "60000 / 40",
    }],
    plot: &RPM_PLOT,
};

static FLOWS_PLOT: Plot = Plot {
    id: "buffer-by-flows",
    title: "Buffer that keeps a link full",
    x: PlotAxis { label: "long flows", log: true },
    y: PlotAxis { label: "buffer (MB)", log: true },
    curves: || {
        let curve = |(label, rate, rtt): (&str, f64, f64)| {
            curve(label, decades(1.0, 1e5, 30), move |flows| {
                let flows = bytes(flows).count();
                full_link_bytes(mbps(rate), ms(rtt), flows).map(|size| size / 1e6)
            })
        };
        [("1 Gbit/s, 21 ms", 1e3, 21.0), ("10 Gbit/s, 250 ms", 1e4, 250.0)].map(curve).to_vec()
    },
};

static UTILIZATION_PLOT: Plot = Plot {
    id: "utilization-by-buffer",
    title: "Share of a link that one smooth flow uses",
    x: PlotAxis { label: "buffer (bandwidth-delay products)", log: false },
    y: PlotAxis { label: "share of the rate", log: false },
    curves: || {
        let curve = |(label, beta): (&str, f64)| {
            curve(label, evenly(0.0, 1.2, 60), move |share| aimd_utilization(share, beta))
        };
        [("β 0.5", RENO_BETA), ("β 0.7", CUBIC_BETA)].map(curve).to_vec()
    },
};

static BURST_PLOT: Plot = Plot {
    id: "burst-limit-by-rtt",
    title: "One burst in each round trip: packets of 1500 bytes",
    x: PlotAxis { label: "round trip (ms)", log: true },
    y: PlotAxis { label: "rate (Mbit/s)", log: true },
    curves: || {
        let curve = |packets: f64| {
            curve(format!("{packets} packets"), decades(1.0, 500.0, 30), move |rtt| {
                burst_limited_bps(bytes(packets * 1500.0), ms(rtt)).map(|bps| bps / 1e6)
            })
        };
        [100.0, 1000.0, 10_000.0].map(curve).to_vec()
    },
};

static DELAY_PLOT: Plot = Plot {
    id: "delay-by-queue",
    title: "Delay of a queue",
    x: PlotAxis { label: "queue (bytes)", log: true },
    y: PlotAxis { label: "delay (ms)", log: true },
    curves: || {
        let curve = |(label, rate): (&str, f64)| {
            curve(label, decades(1e4, 1e8, 20), move |queue| {
                queue_delay_s(bytes(queue), mbps(rate)).map(|delay_s| delay_s * 1e3)
            })
        };
        [("10 Mbit/s", 10.0), ("100 Mbit/s", 1e2), ("1 Gbit/s", 1e3)].map(curve).to_vec()
    },
};

static AVERAGE_PLOT: Plot = Plot {
    id: "red-average-by-packets",
    title: "RED: how the average follows a standing queue",
    x: PlotAxis { label: "packets", log: false },
    y: PlotAxis { label: "share of the queue", log: false },
    curves: || {
        let curve = |weight: f64| {
            let points = (0..=40).map(|step| f64::from(step) * 50.0);
            curve(format!("w {weight}"), points, move |packets| {
                let packets = u32::try_from(bytes(packets).count()).unwrap_or(u32::MAX);
                average_reached(weight, packets)
            })
        };
        [0.001, WEIGHT, 0.01].map(curve).to_vec()
    },
};

static MARK_PLOT: Plot = Plot {
    id: "red-mark-by-average",
    title: "RED: 30 kB, 90 kB, 0.02",
    x: PlotAxis { label: "averaged queue (kB)", log: false },
    y: PlotAxis { label: "chance of a mark", log: true },
    curves: || vec![curve("p_b", evenly(31.0, 120.0, 178), |average| mark(average * 1e3))],
};

static SPREAD_PLOT: Plot = Plot {
    id: "red-spread-by-count",
    title: "RED: chance by the packets since the last mark",
    x: PlotAxis { label: "packets since the last mark", log: false },
    y: PlotAxis { label: "chance of a mark", log: true },
    curves: || {
        let curve = |chance: f64| {
            let counts = (0..=110).map(f64::from);
            curve(format!("p_b {chance}"), counts, move |count| {
                spread_chance(chance, u32::try_from(bytes(count).count()).unwrap_or(u32::MAX))
            })
        };
        [0.01, 0.02].map(curve).to_vec()
    },
};

static RPM_PLOT: Plot = Plot {
    id: "rpm-by-foreign",
    title: "Responsiveness: 20 ms on the loaded connection",
    x: PlotAxis { label: "round trip of new connections (ms)", log: true },
    y: PlotAxis { label: "round trips per minute", log: true },
    curves: || {
        type Rule = fn(&LoadedRoundTrips) -> Result<f64, ResponsivenessError>;
        let curve = |(label, rule): (&str, Rule)| {
            curve(label, decades(5.0, 2000.0, 40), move |foreign| rule(&loaded(foreign)))
        };
        let rules: [(&str, Rule); 2] = [
            ("of version 09", round_trips_per_minute),
            ("of version 01", round_trips_per_minute_of_mean),
        ];
        rules.map(curve).to_vec()
    },
};

fn mark(average: f64) -> Result<f64, RedError> {
    Red::new(30e3, 90e3, MARK_MAX, WEIGHT)?.mark_chance(average)
}

/// The same round trip for all that new connections do, and 20 ms for the loaded one.
fn loaded(foreign: f64) -> LoadedRoundTrips {
    LoadedRoundTrips {
        tcp_foreign: ms(foreign),
        tls_foreign: Some(ms(foreign)),
        http_foreign: ms(foreign),
        http_loaded: Duration::from_millis(20),
    }
}
