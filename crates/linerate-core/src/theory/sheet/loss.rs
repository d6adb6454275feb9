//! The formulas of rates under loss, and of the loss that a rate bears.

use super::parts::{curve, decades, evenly, mbps, ms, number, symbol};
use super::{Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::theory::loss::{
    Acks, Path, Pftk, RTO_MIN_LINUX, bbr1_rate, chance_error, cubic_budget, cubic_rate,
    cubic_window, mathis_budget, mathis_rate, pftk_rate, tfrc_rate,
};

pub(super) const SECTION: Section = Section {
    title: "Loss",
    purpose: "What a congestion control keeps of a path that loses segments at random, and how \
              little a path may lose for a wanted rate.",
    formulas: &[
        MATHIS,
        MATHIS_BUDGET,
        PFTK,
        TFRC,
        CUBIC_WINDOW,
        CUBIC_RATE,
        CUBIC_BUDGET,
        BBR,
        CHANCE,
    ],
};

const RATE: Symbol = symbol("R", "rate of payload", "bit/s");
const MSS: Symbol = symbol("MSS", "payload of a full segment", "bytes");
const RTT: Symbol = symbol("RTT", "round trip, queues included", "s");
const P: Symbol = symbol("p", "loss events per segment; losses within a round trip are one", "1");
const B: Symbol = symbol("b", "segments that one acknowledgement answers: 1 or 2", "1");
const T0: Symbol = symbol("T0", "first retransmission timeout", "s");
const CONSTANT: Symbol = symbol("k", "sqrt(3 / 2b): 1.2247 for b = 1, 0.8660 for b = 2", "1");

const MATHIS: Formula = Formula {
    id: "mathis-rate",
    title: "Reno under loss (Mathis)",
    formula: "R = (8 MSS / RTT) · k / sqrt(p)",
    symbols: &[RATE, MSS, RTT, P, CONSTANT],
    range: "0 < p < 1, and good below about 0.01, where timeouts are rare. One long flow whose \
            window no buffer bounds. Two runs differ by chance: see the last formula here.",
    source: "M. Mathis, J. Semke, J. Mahdavi, T. Ott, CCR 27(3), 1997, §2 and table 1",
    estimate: true,
    examples: &[
        Example {
            given: "1460 bytes, 100 ms, 1e-4, b = 1",
            computed: || number(mathis_rate(&LONG, Acks::Every, 1e-4)) / 1e6,
            expected: 14.305,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "116,800 · 1.224745 / 0.01",
        },
        Example {
            given: "1460 bytes, 100 ms, 1e-4, b = 2",
            computed: || number(mathis_rate(&LONG, Acks::EverySecond, 1e-4)) / 1e6,
            expected: 10.115,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "116,800 · 0.866025 / 0.01",
        },
        Example {
            given: "1448 bytes, 40 ms, 1e-3, b = 1",
            computed: || number(mathis_rate(&path(1448, 40.0), Acks::Every, 1e-3)) / 1e6,
            expected: 11.216,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "289,600 · 38.7298",
        },
    ],
    plot: &RATE_PLOT,
};

const MATHIS_BUDGET: Formula = Formula {
    id: "mathis-budget",
    title: "Loss that Reno bears at a rate",
    formula: "p = (8 MSS k / (RTT R))²",
    symbols: &[P, RATE, MSS, RTT, CONSTANT],
    range: "Rates above about one segment in each round trip; below them any loss will do.",
    source: "The formula above, solved for p",
    estimate: true,
    examples: &[
        Example {
            given: "10 Gbit/s, 100 ms, 1448 bytes",
            computed: || number(mathis_budget(&path(1448, 100.0), Acks::Every, mbps(1e4))),
            expected: 2.012_8e-10,
            tolerance: 1e-4,
            unit: "1",
            origin: "86,325.97 segments in flight; 1.5 / 86,325.97²",
        },
        Example {
            given: "10 Gbit/s, 100 ms, 1500 bytes",
            computed: || number(mathis_budget(&path(1500, 100.0), Acks::Every, mbps(1e4))),
            expected: 2.0e-10 * 1.5 / 1.44,
            tolerance: 0.05,
            unit: "1",
            origin: "RFC 8312 §5.2 table 3: 2.0e-10 with k = 1.2 instead of 1.2247",
        },
    ],
    plot: &BUDGET_PLOT,
};

const PFTK: Formula = Formula {
    id: "pftk-rate",
    title: "Reno with timeouts and a largest window (PFTK)",
    formula: "R = 8 MSS · min(W / (MSS RTT), \
              1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32p²)))",
    symbols: &[RATE, MSS, RTT, P, B, T0, symbol("W", "largest window", "bytes")],
    range: "0 < p < 1. Losses within a round trip come together, those of different ones do not.",
    source: "J. Padhye, V. Firoiu, D. Towsley, J. Kurose, SIGCOMM 1998, §2.3",
    estimate: true,
    examples: &[
        Example {
            given: "1460 bytes, 100 ms, 1e-4, b = 2, T0 200 ms",
            computed: || number(pftk_rate(&LONG, &pftk(Acks::EverySecond), 1e-4)) / 1e6,
            expected: 10.111,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "11,680 / (0.1 · 0.0115470 + 0.2 · 0.0259808 · 1e-4)",
        },
        Example {
            given: "1448 bytes, 40 ms, 1e-2, b = 2, T0 200 ms",
            computed: || number(pftk_rate(&path(1448, 40.0), &pftk(Acks::EverySecond), 1e-2)) / 1e6,
            expected: 2.253_7,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "11,584 / (0.04 · 0.1154701 + 0.2 · 0.2598076 · 0.010032)",
        },
    ],
    plot: &RATE_PLOT,
};

const TFRC: Formula = Formula {
    id: "tfrc-rate",
    title: "What a TCP-friendly sender allows itself",
    formula: "R = 8 MSS / (RTT sqrt(2bp/3) + 3 T0 sqrt(3bp/8) p (1 + 32p²))",
    symbols: &[RATE, MSS, RTT, P, B, T0],
    range: "0 < p < 1. PFTK without a window and without its minimum, so that the two part above \
            p = 8 / (27 b).",
    source: "RFC 5348 §3.1, which takes b = 1 and T0 = 4 RTT",
    estimate: true,
    examples: &[Example {
        given: "1460 bytes, 100 ms, 1e-2, b = 1, T0 400 ms",
        computed: || number(tfrc_rate(&LONG, Acks::Every, ms(400.0), 1e-2)) / 1e6,
        expected: 1.312_04,
        tolerance: 1e-4,
        unit: "Mbit/s",
        origin: "116,800 / (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32p²)) = 116,800 / 0.0890218",
    }],
    plot: &RATE_PLOT,
};

const CUBIC_WINDOW: Formula = Formula {
    id: "cubic-window",
    title: "CUBIC's mean window",
    formula: "W = max((C (3 + β) / (4 (1 − β)))^¼ · (RTT / p)^¾, sqrt(3/2) / sqrt(p))",
    symbols: &[
        symbol("W", "mean window", "segments"),
        symbol("C", "0.4", "segments/s³"),
        symbol("β", "what is kept of the window at a loss, 0.7", "1"),
        RTT,
        P,
    ],
    range: "0 < p < 1. Losses at even distances. Reno's window rules above p = 0.548 RTT³: at \
            100 ms above 5.5e-4.",
    source: "RFC 9438 §5; the table of its first edition, RFC 8312 §5.1",
    estimate: true,
    examples: &[
        Example {
            given: "100 ms, 1e-4",
            computed: || cubic_segments(100.0, 1e-4),
            expected: 187.40,
            tolerance: 1e-4,
            unit: "segments",
            origin: "1.05383 · 1000^0.75; RFC 8312 prints 187",
        },
        Example {
            given: "100 ms, 1e-6",
            computed: || cubic_segments(100.0, 1e-6),
            expected: 5926.0,
            tolerance: 1e-4,
            unit: "segments",
            origin: "RFC 8312 §5.1 table 1",
        },
        Example {
            given: "100 ms, 1e-8",
            computed: || cubic_segments(100.0, 1e-8),
            expected: 187_400.0,
            tolerance: 1e-4,
            unit: "segments",
            origin: "RFC 8312 §5.1 table 1",
        },
        Example {
            given: "100 ms, 1e-3",
            computed: || cubic_segments(100.0, 1e-3),
            expected: 38.73,
            tolerance: 1e-4,
            unit: "segments",
            origin: "sqrt(1500); RFC 8312 prints 38, of 1.2 / sqrt(p)",
        },
    ],
    plot: &WINDOW_PLOT,
};

const CUBIC_RATE: Formula = Formula {
    id: "cubic-rate",
    title: "CUBIC under loss",
    formula: "R = 8 MSS W / RTT",
    symbols: &[RATE, MSS, symbol("W", "CUBIC's mean window", "segments"), RTT],
    range: "As the window above. A flow that fills its own queue has a longer round trip.",
    source: "RFC 9438 §5",
    estimate: true,
    examples: &[
        Example {
            given: "1460 bytes, 100 ms, 1e-4",
            computed: || number(cubic_rate(&LONG, 1e-4)) / 1e6,
            expected: 21.888,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "116,800 · 187.40",
        },
        Example {
            given: "8948 bytes, 100 ms, 1e-6",
            computed: || number(cubic_rate(&path(8948, 100.0), 1e-6)) / 1e6,
            expected: 4242.15,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "715,840 · 5926.1",
        },
    ],
    plot: &RATE_PLOT,
};

const CUBIC_BUDGET: Formula = Formula {
    id: "cubic-budget",
    title: "Loss that CUBIC bears at a rate",
    formula: "p = max(RTT (C (3 + β) / (4 (1 − β)))^⅓ / W^(4/3), 3 / (2 W²)), W = R RTT / (8 MSS)",
    symbols: &[P, RTT, symbol("W", "segments in flight at the rate", "segments"), RATE, MSS],
    range: "Rates above about one segment in each round trip.",
    source: "RFC 9438 §5, solved for p; RFC 8312 §5.2 table 3",
    estimate: true,
    examples: &[
        Example {
            given: "10 Gbit/s, 100 ms, 1500 bytes",
            computed: || number(cubic_budget(&path(1500, 100.0), mbps(1e4))),
            expected: 2.9e-8,
            tolerance: 0.02,
            unit: "1",
            origin: "RFC 8312 §5.2 table 3, two digits",
        },
        Example {
            given: "1 Gbit/s, 21 ms, 1448 bytes",
            computed: || number(cubic_budget(&path(1448, 21.0), mbps(1e3))),
            expected: 1.018_8e-6,
            tolerance: 1e-4,
            unit: "1",
            origin: "0.021 · 1.07239 / 1812.85^(4/3)",
        },
    ],
    plot: &BUDGET_PLOT,
};

const BBR: Formula = Formula {
    id: "bbr1-rate",
    title: "BBR version 1 under loss",
    formula: "R = C (1 − p)",
    symbols: &[RATE, symbol("C", "rate of the bottleneck", "bit/s"), P],
    range: "0 ≤ p ≤ 0.2; above, it yields. Version 3 bounds its window when more than 2 % of a \
            round are lost. Its probing costs some percent more.",
    source: "N. Cardwell et al., ACM Queue 14(5), 2016, fig. 8; draft-ietf-ccwg-bbr",
    estimate: true,
    examples: &[Example {
        given: "50 Mbit/s, 1 %",
        computed: || number(bbr1_rate(mbps(50.0), 0.01)) / 1e6,
        expected: 49.5,
        tolerance: 1e-9,
        unit: "Mbit/s",
        origin: "50 · 0.99; a flow measured on Linux 6.18 over 40 ms got 45.2",
    }],
    plot: &BBR_PLOT,
};

const CHANCE: Formula = Formula {
    id: "loss-chance",
    title: "What chance does to a predicted rate",
    formula: "e = 1 / (2 sqrt(k))",
    symbols: &[
        symbol("e", "one standard deviation of the rate, as a share of it", "1"),
        symbol("k", "loss events seen", "1"),
    ],
    range: "Independent losses. With 10 of them a rate 40 % off is nothing unusual.",
    source: "The count of a Poisson process varies by sqrt(k), and the rate goes with its root",
    estimate: false,
    examples: &[Example {
        given: "100 losses",
        computed: || chance_error(100).unwrap_or(f64::NAN),
        expected: 0.05,
        tolerance: 1e-12,
        unit: "1",
        origin: "1 / (2 · 10)",
    }],
    plot: &CHANCE_PLOT,
};

static RATE_PLOT: Plot = Plot {
    id: "rate-by-loss",
    title: "Rate by loss: 1460 bytes, 100 ms",
    x: PlotAxis { label: "loss events per segment", log: true },
    y: PlotAxis { label: "rate (Mbit/s)", log: true },
    curves: || {
        let losses = || decades(1e-7, 0.5, 60);
        let mbit = |bps: f64| bps / 1e6;
        vec![
            curve("Mathis, b = 1", losses(), |p| mathis_rate(&LONG, Acks::Every, p).map(mbit)),
            curve("PFTK, b = 2, T0 200 ms", losses(), |p| {
                pftk_rate(&LONG, &pftk(Acks::EverySecond), p).map(mbit)
            }),
            curve("RFC 5348, T0 400 ms", losses(), |p| {
                tfrc_rate(&LONG, Acks::Every, ms(400.0), p).map(mbit)
            }),
            curve("CUBIC", losses(), |p| cubic_rate(&LONG, p).map(mbit)),
        ]
    },
};

static BUDGET_PLOT: Plot = Plot {
    id: "loss-budget-by-rate",
    title: "Loss that a rate bears: 1448 bytes",
    x: PlotAxis { label: "rate (Mbit/s)", log: true },
    y: PlotAxis { label: "loss events per segment", log: true },
    curves: || {
        let rates = || decades(1.0, 1e5, 40);
        let reno = |rtt: f64| {
            curve(format!("Reno, {rtt} ms"), rates(), move |rate| {
                mathis_budget(&path(1448, rtt), Acks::Every, mbps(rate))
            })
        };
        let cubic = |rtt: f64| {
            curve(format!("CUBIC, {rtt} ms"), rates(), move |rate| {
                cubic_budget(&path(1448, rtt), mbps(rate))
            })
        };
        vec![reno(21.0), cubic(21.0), reno(100.0), cubic(100.0)]
    },
};

static WINDOW_PLOT: Plot = Plot {
    id: "cubic-window-by-loss",
    title: "CUBIC's mean window",
    x: PlotAxis { label: "loss events per segment", log: true },
    y: PlotAxis { label: "window (segments)", log: true },
    curves: || {
        let curve = |rtt: f64| {
            curve(format!("{rtt} ms"), decades(1e-8, 1e-1, 60), move |p| {
                cubic_window(ms(rtt), p).map(|window| window.segments)
            })
        };
        [1.0, 10.0, 100.0].map(curve).to_vec()
    },
};

static BBR_PLOT: Plot = Plot {
    id: "bbr-by-loss",
    title: "BBR version 1 and CUBIC: 50 Mbit/s, 40 ms, 1448 bytes",
    x: PlotAxis { label: "loss", log: false },
    y: PlotAxis { label: "rate (Mbit/s)", log: false },
    curves: || {
        let losses = || evenly(0.0, 0.2, 100);
        vec![
            curve("BBR version 1", losses(), |p| bbr1_rate(mbps(50.0), p).map(|bps| bps / 1e6)),
            curve("CUBIC", losses(), |p| {
                cubic_rate(&path(1448, 40.0), p).map(|bps| (bps / 1e6).min(50.0))
            }),
        ]
    },
};

static CHANCE_PLOT: Plot = Plot {
    id: "chance-by-losses",
    title: "What chance does to a predicted rate",
    x: PlotAxis { label: "loss events seen", log: true },
    y: PlotAxis { label: "one standard deviation, share of the rate", log: true },
    curves: || {
        let events = (0..=14).map(|power| f64::from(1_u32 << power));
        let error = |count: f64| chance_error(super::parts::bytes(count).count()).ok_or("no loss");
        vec![curve("1 / (2 sqrt(k))", events, error)]
    },
};

const LONG: Path = Path { mss_bytes: 1460, rtt: std::time::Duration::from_millis(100) };

fn path(mss_bytes: u32, rtt: f64) -> Path {
    Path { mss_bytes, rtt: ms(rtt) }
}

const fn pftk(acks: Acks) -> Pftk {
    Pftk { acks, rto: RTO_MIN_LINUX, window: None }
}

fn cubic_segments(rtt: f64, p: f64) -> f64 {
    number(cubic_window(ms(rtt), p).map(|window| window.segments))
}
