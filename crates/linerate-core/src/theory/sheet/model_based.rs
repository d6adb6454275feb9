//! The formulas of RFC 6349 and RFC 8337: metrics of a transfer, the loss that a target allows,
//! and the sequential test.

use super::parts::{bytes, curve, decades, evenly, mbps, ms, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::theory::rfc6349::{buffer_delay, efficiency, ideal_transfer_s, transfer_time_ratio};
use crate::theory::sequential::{
    Risk, SequentialError, Sprt, Target, pathdiag_run_packets, target_run_packets,
    target_window_packets,
};

pub(super) const SECTION: Section = Section {
    title: "Metrics of RFC 6349 and targets of RFC 8337",
    purpose: "How far a transfer stayed behind its ideal, how rarely a path has to lose to reach a \
              target, and when enough packets were sent to say so.",
    formulas: &[IDEAL, RATIO, EFFICIENCY, BUFFER_DELAY, WINDOW, RUN, PATHDIAG, SPRT, SPRT_PASS],
};

const IDEAL: Formula = Formula {
    id: "ideal-transfer-time",
    title: "Ideal time of a transfer",
    formula: "T = 8 S / R",
    symbols: &[
        symbol("T", "ideal time", "s"),
        symbol("S", "payload", "bytes"),
        symbol("R", "payload that the link carries", "bit/s"),
    ],
    range: "Without start-up, loss and windows that are too small.",
    source: "RFC 6349 §4.1.2",
    estimate: false,
    examples: &[
        Example {
            given: "five times 100 MB over 500 Mbit/s",
            computed: || number(ideal_transfer_s(bytes(5e8), 500e6)),
            expected: 8.0,
            tolerance: 1e-9,
            unit: "s",
            origin: "RFC 6349 §4.1.2",
        },
        Example {
            given: "100 MB over 94.9285 Mbit/s, 100 Mbit/s Ethernet",
            computed: || number(ideal_transfer_s(bytes(1e8), 94.9285e6)),
            expected: 8.4274,
            tolerance: 1e-5,
            unit: "s",
            origin: "800 / 94.9285",
        },
    ],
    plot: &RATIO_PLOT,
};

const RATIO: Formula = Formula {
    id: "transfer-time-ratio",
    title: "Transfer time ratio",
    formula: "r = T_actual / T_ideal",
    symbols: &[
        symbol("r", "ratio, 1 at best", "1"),
        symbol("T_actual", "time of the transfer", "s"),
        symbol("T_ideal", "ideal time", "s"),
    ],
    range: "Any times above 0.",
    source: "RFC 6349 §4.1",
    estimate: false,
    examples: &[
        Example {
            given: "12 s for 8 s",
            computed: || number(transfer_time_ratio(ms(12e3), ms(8e3))),
            expected: 1.5,
            tolerance: 1e-9,
            unit: "1",
            origin: "RFC 6349 §4.1.2",
        },
        Example {
            given: "15 s for 8.4274 s",
            computed: || number(transfer_time_ratio(ms(15e3), ms(8427.4))),
            expected: 1.7799,
            tolerance: 1e-4,
            unit: "1",
            origin: "15 / 8.4274",
        },
    ],
    plot: &RATIO_PLOT,
};

const EFFICIENCY: Formula = Formula {
    id: "tcp-efficiency",
    title: "TCP efficiency",
    formula: "e = (sent − again) / sent",
    symbols: &[
        symbol("e", "share of the bytes that were not sent again", "1"),
        symbol("sent", "bytes sent, first and again", "bytes"),
        symbol("again", "bytes sent again", "bytes"),
    ],
    range: "again ≤ sent. The RFC cuts its example to 98.03 %.",
    source: "RFC 6349 §4.2",
    estimate: false,
    examples: &[Example {
        given: "102,000 sent, 2,000 of them again",
        computed: || number(efficiency(bytes(102e3), bytes(2e3))) * 100.0,
        expected: 98.0392,
        tolerance: 1e-6,
        unit: "%",
        origin: "RFC 6349 §4.2.1: 100 / 102",
    }],
    plot: &EFFICIENCY_PLOT,
};

const BUFFER_DELAY: Formula = Formula {
    id: "buffer-delay",
    title: "Buffer delay",
    formula: "d = (RTT_mean − RTT_base) / RTT_base",
    symbols: &[
        symbol("d", "rise of the round trip, share of the base", "1"),
        symbol("RTT_mean", "mean round trip during the transfer", "s"),
        symbol("RTT_base", "smallest round trip without load", "s"),
    ],
    range: "Bases above 0. A short base makes a small queue look large: print the milliseconds \
            too.",
    source: "RFC 6349 §4.3",
    estimate: false,
    examples: &[Example {
        given: "25 ms to 32 ms",
        computed: || number(buffer_delay(ms(32.0), ms(25.0))) * 100.0,
        expected: 28.0,
        tolerance: 1e-9,
        unit: "%",
        origin: "RFC 6349 §4.3.1",
    }],
    plot: &BUFFER_DELAY_PLOT,
};

const TARGET: [Symbol; 4] = [
    symbol("R", "target rate", "bit/s"),
    symbol("RTT", "round trip of the whole path", "s"),
    symbol("MTU", "largest IP packet", "bytes"),
    symbol("H", "headers in it", "bytes"),
];

const WINDOW: Formula = Formula {
    id: "target-window",
    title: "Window of a target",
    formula: "W = ceil(R RTT / (8 (MTU − H)))",
    symbols: &[
        symbol("W", "packets in flight", "packets"),
        TARGET[0],
        TARGET[1],
        TARGET[2],
        TARGET[3],
    ],
    range: "MTU above the headers.",
    source: "RFC 8337 §5.2",
    estimate: false,
    examples: &[Example {
        given: "2.5 Mbit/s, 50 ms, 1500 and 64 bytes",
        computed: || number(target_window_packets(&VIDEO)),
        expected: 11.0,
        tolerance: 0.0,
        unit: "packets",
        origin: "RFC 8337 §9; 125,000 / 11,488 = 10.88",
    }],
    plot: &RUN_PLOT,
};

const RUN: Formula = Formula {
    id: "target-run",
    title: "Packets between two losses for a target",
    formula: "L = 3 W²",
    symbols: &[
        symbol("L", "run length: packets from one loss to the next", "packets"),
        symbol("W", "window of the target", "packets"),
    ],
    range: "Reno with delayed acknowledgements, the most careful of today's controls. CUBIC bears \
            more on long paths.",
    source: "RFC 8337 §5.2: 1.5 W on average in 2 W round trips",
    estimate: false,
    examples: &[Example {
        given: "2.5 Mbit/s, 50 ms, 1500 and 64 bytes",
        computed: || number(target_run_packets(&VIDEO)),
        expected: 363.0,
        tolerance: 0.0,
        unit: "packets",
        origin: "RFC 8337 §9",
    }],
    plot: &RUN_PLOT,
};

const PATHDIAG: Formula = Formula {
    id: "pathdiag-run",
    title: "Packets between two losses by pathdiag",
    formula: "L = (R RTT / (8 · 0.7 (MTU − H)))²",
    symbols: &[symbol("L", "run length", "packets"), TARGET[0], TARGET[1], TARGET[2], TARGET[3]],
    range: "The older rule, two thirds of the one above.",
    source: "M. Mathis et al., PAM 2008",
    estimate: false,
    examples: &[Example {
        given: "1 Gbit/s, 21 ms, 1500 and 52 bytes",
        computed: || number(pathdiag_run_packets(&target(1e3, 21.0))),
        expected: 6.707e6,
        tolerance: 1e-4,
        unit: "packets",
        origin: "(2,625,000 / (0.7 · 1448))²",
    }],
    plot: &RUN_PLOT,
};

const SPRT: Formula = Formula {
    id: "sequential-test",
    title: "Pass, fail or go on",
    formula: "pass: x ≤ s n − h1; fail: x ≥ s n + h2; \
              k = ln(p1 (1 − p0) / (p0 (1 − p1))), s = ln((1 − p0) / (1 − p1)) / k, \
              h1 = ln((1 − α) / β) / k, h2 = ln((1 − β) / α) / k",
    symbols: &[
        symbol("n", "packets sent", "packets"),
        symbol("x", "packets lost", "packets"),
        symbol("p0", "1/L, what the target allows", "1"),
        symbol("p1", "4/L, what it surely does not", "1"),
        symbol("α", "chance to fail a path at p0", "1"),
        symbol("β", "chance to pass a path at p1", "1"),
    ],
    range: "L above 4, α and β below 0.5. Packets lost independently; bursts make it fail too \
            early.",
    source: "RFC 8337 §7.2; A. Wald, 1945",
    estimate: false,
    examples: &[
        Example {
            given: "s, L 363, α = β = 0.05",
            computed: || number(test().map(|test| test.slope())),
            expected: 0.005_967_1,
            tolerance: 1e-5,
            unit: "1",
            origin: "ln(362/359) / (ln 4 + ln(362/359)) = 0.0083217 / 1.3946161",
        },
        Example {
            given: "h1 = h2, the same",
            computed: || number(test().map(|test| test.pass_below())),
            expected: 2.111_29,
            tolerance: 1e-5,
            unit: "packets",
            origin: "ln 19 / 1.3946161",
        },
        Example {
            given: "most losses that pass in 1000 packets",
            computed: || number(test().map(|test| most(&test, 1000))),
            expected: 3.0,
            tolerance: 0.0,
            unit: "packets",
            origin: "5.967 − 2.111 = 3.86",
        },
        Example {
            given: "least losses that fail in 1000 packets",
            computed: || number(test().map(|test| test.fail_at_least(1000) as f64)),
            expected: 9.0,
            tolerance: 0.0,
            unit: "packets",
            origin: "5.967 + 2.111 = 8.08",
        },
    ],
    plot: &SPRT_PLOT,
};

const SPRT_PASS: Formula = Formula {
    id: "packets-to-pass",
    title: "Packets until a path can pass",
    formula: "n = ceil((x + h1) / s)",
    symbols: &[
        symbol("n", "packets sent", "packets"),
        symbol("x", "packets lost", "packets"),
        symbol("s, h1", "of the test above", "1"),
    ],
    range: "As the test.",
    source: "The test above, solved for n",
    estimate: false,
    examples: &[Example {
        given: "no loss, L 363, α = β = 0.05",
        computed: || number(test().map(|test| test.packets_to_pass(0) as f64)),
        expected: 354.0,
        tolerance: 0.0,
        unit: "packets",
        origin: "2.11129 / 0.0059671 = 353.8",
    }],
    plot: &SPRT_PLOT,
};

static RATIO_PLOT: Plot = Plot {
    id: "transfer-time-ratio-by-rate",
    title: "Transfer time ratio: 100 MB over 100 Mbit/s Ethernet",
    x: PlotAxis { label: "mean rate (Mbit/s)", log: false },
    y: PlotAxis { label: "actual over ideal time", log: false },
    curves: || {
        let ratio = |rate: f64| -> Result<f64, crate::theory::rfc6349::MetricError> {
            let ideal_s = ideal_transfer_s(bytes(1e8), 94.9285e6)?;
            transfer_time_ratio(ms(800e3 / rate), ms(ideal_s * 1e3))
        };
        vec![curve("ratio", evenly(10.0, 94.9285, 60), ratio)]
    },
};

static EFFICIENCY_PLOT: Plot = Plot {
    id: "efficiency-by-retransmission",
    title: "TCP efficiency of 1,000,000 bytes sent",
    x: PlotAxis { label: "bytes sent again", log: false },
    y: PlotAxis { label: "efficiency (%)", log: false },
    curves: || {
        vec![curve("efficiency", evenly(0.0, 1e5, 20), |again| {
            efficiency(bytes(1e6), bytes(again)).map(|share| share * 100.0)
        })]
    },
};

static BUFFER_DELAY_PLOT: Plot = Plot {
    id: "buffer-delay-by-rtt",
    title: "Buffer delay",
    x: PlotAxis { label: "mean round trip (ms)", log: false },
    y: PlotAxis { label: "rise (% of the base)", log: false },
    curves: || {
        let curve = |base: f64| {
            curve(format!("base {base} ms"), evenly(base, 100.0, 30), move |mean| {
                buffer_delay(ms(mean), ms(base)).map(|rise| rise * 100.0)
            })
        };
        [10.0, 25.0, 50.0].map(curve).to_vec()
    },
};

static RUN_PLOT: Plot = Plot {
    id: "run-by-target",
    title: "Packets between two losses for a target: 1500 and 52 bytes",
    x: PlotAxis { label: "target rate (Mbit/s)", log: true },
    y: PlotAxis { label: "packets between losses", log: true },
    curves: || {
        let rates = || decades(10.0, 1e4, 30);
        let run = |rtt: f64| {
            curve(format!("RFC 8337, {rtt} ms"), rates(), move |rate| {
                target_run_packets(&target(rate, rtt))
            })
        };
        let older =
            curve("pathdiag, 21 ms", rates(), |rate| pathdiag_run_packets(&target(rate, 21.0)));
        vec![run(21.0), older, run(100.0)]
    },
};

static SPRT_PLOT: Plot = Plot {
    id: "sequential-test-lines",
    title: "Pass, fail or go on: one loss in 363, 5 % each",
    x: PlotAxis { label: "packets sent", log: false },
    y: PlotAxis { label: "packets lost", log: false },
    curves: || {
        let line = |label: &str, offset: fn(&Sprt) -> f64| -> Curve {
            let sent = evenly(0.0, 2000.0, 40);
            let lost = |sent: f64| test().map(|test| test.slope() * sent + offset(&test));
            let mut line = curve(label, sent, lost);
            line.points.retain(|(_, lost)| *lost >= 0.0);
            line
        };
        vec![
            line("fail above", |test| test.fail_above()),
            line("pass below", |test| -test.pass_below()),
        ]
    },
};

const VIDEO: Target = Target {
    rate: crate::units::BitRate::from_bits_per_sec(2_500_000),
    rtt: std::time::Duration::from_millis(50),
    mtu_bytes: 1500,
    header_bytes: 64,
};

fn target(rate: f64, rtt: f64) -> Target {
    Target { rate: mbps(rate), rtt: ms(rtt), mtu_bytes: 1500, header_bytes: 52 }
}

fn test() -> Result<Sprt, SequentialError> {
    Sprt::new(363.0, Risk::FIVE_PERCENT)
}

fn most(test: &Sprt, sent: u64) -> f64 {
    test.pass_at_most(sent).map_or(f64::NAN, |most| most as f64)
}
