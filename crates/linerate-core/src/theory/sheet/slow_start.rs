//! The formulas of start-up: rounds, the time of a short transfer, and what the start wastes.

use super::parts::{bytes, curve, decades, evenly, mbps, ms, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::theory::slow_start::{
    GROWTH_BYTES_COUNTED, GROWTH_DELAYED_ACKS, INITIAL_WINDOW, SlowStart, SlowStartError, Transfer,
    bytes_within, flat_rate_bps, flat_time_s, hystart_rise, round_trips_to_grow, transfer,
};

pub(super) const SECTION: Section = Section {
    title: "Start-up",
    purpose: "How long slow start takes to fill a path, and what it costs a transfer. Also the \
              slow-start table of the OC-12 study, with the rate that it must have used.",
    formulas: &[ROUNDS, HYSTART, TRANSFER, WITHIN, FLAT, FLAT_RATE],
};

const SIZE: Symbol = symbol("S", "payload of the transfer", "bytes");
const RATE: Symbol = symbol("C", "payload that the path carries once it is full", "bit/s");
const RTT: Symbol = symbol("RTT", "round trip without queues", "s");
const MSS: Symbol = symbol("MSS", "payload of a full segment", "bytes");
const FIRST: Symbol = symbol("IW", "initial window: 10 (RFC 6928), before 2 to 4", "segments");
const GROWTH: Symbol =
    symbol("g", "growth in a round: 2 with bytes counted, 1.5 with delayed acknowledgements", "1");

const ROUNDS: Formula = Formula {
    id: "slow-start-rounds",
    title: "Round trips until the path is full",
    formula: "n = ln(C RTT / (8 MSS IW)) / ln(g)",
    symbols: &[symbol("n", "round trips", "1"), RATE, RTT, MSS, FIRST, GROWTH],
    range: "Without loss and without an early end: HyStart leaves slow start when the round trip \
            rises by an eighth (at least 4 ms, at most 16 ms; RFC 9406 §4.3).",
    source: "RFC 5681 §3.1; RFC 6928 §2",
    estimate: false,
    examples: &[
        Example {
            given: "OC-12 study: 452 Mbit/s, 45 ms, 9140 bytes, IW 2, g 1.5",
            computed: || number(round_trips_to_grow(278.2 / 2.0, GROWTH_DELAYED_ACKS)).floor(),
            expected: 12.0,
            tolerance: 0.0,
            unit: "round trips",
            origin: "the study's trace shows 12; ln(278.2 / 2) / ln(1.5) = 12.17",
        },
        Example {
            given: "the same path today: IW 10, g 2",
            computed: || number(transfer(&on(1e9, 452.0, 45.0, 9140)).map(|t| f64::from(t.rounds))),
            expected: 5.0,
            tolerance: 0.0,
            unit: "round trips",
            origin: "10 · 2^4 = 160 segments are fewer than 278, 320 are not",
        },
    ],
    plot: &ROUNDS_PLOT,
};

const HYSTART: Formula = Formula {
    id: "hystart-rise",
    title: "Rise of the round trip that ends slow start early",
    formula: "η = min(max(RTT / 8, 4 ms), 16 ms)",
    symbols: &[
        symbol("η", "rise of a round's smallest round trip over that of the round before", "s"),
        RTT,
    ],
    range: "After 8 measured round trips in a round. A path whose delay varies by more ends slow \
            start without a loss, and the transfer then grows slowly. HyStart++ first goes on for 5 \
            rounds with a quarter of the growth.",
    source: "RFC 9406 §4.2, §4.3; Linux's HyStart has the same bounds",
    estimate: false,
    examples: &[
        Example {
            given: "21 ms",
            computed: || hystart_rise(ms(21.0)).as_secs_f64() * 1e3,
            expected: 4.0,
            tolerance: 1e-9,
            unit: "ms",
            origin: "21 / 8 = 2.6 is below the least",
        },
        Example {
            given: "100 ms",
            computed: || hystart_rise(ms(100.0)).as_secs_f64() * 1e3,
            expected: 12.5,
            tolerance: 1e-9,
            unit: "ms",
            origin: "100 / 8",
        },
    ],
    plot: &RISE_PLOT,
};

const TRANSFER: Formula = Formula {
    id: "transfer-time",
    title: "Time of a transfer from an idle start",
    formula: "T = n RTT + (ceil(S / MSS) − IW (g^n − 1) / (g − 1)) · 8 MSS / C + RTT",
    symbols: &[
        symbol("T", "first byte sent to last acknowledgement", "s"),
        symbol("n", "rounds until IW g^n fills the path or the data end", "1"),
        SIZE,
        RATE,
        RTT,
        MSS,
        FIRST,
        GROWTH,
    ],
    range: "Without loss, handshake and pacing; a receive window that keeps up.",
    source: "RFC 5681 §3.1; RFC 6928 §2",
    estimate: false,
    examples: &[
        Example {
            given: "1 MB, 50 Mbit/s, 40 ms, 1448 bytes",
            computed: || time(&on(1e6, 50.0, 40.0, 1448)),
            expected: 0.328_27,
            tolerance: 1e-4,
            unit: "s",
            origin: "5 rounds, 310 of 691 segments before: 0.2 + 381 · 231.68 µs + 0.04",
        },
        Example {
            given: "100 kB, 50 Mbit/s, 40 ms, 1448 bytes",
            computed: || time(&on(1e5, 50.0, 40.0, 1448)),
            expected: 0.129_27,
            tolerance: 1e-4,
            unit: "s",
            origin: "2 rounds, 30 of 70 segments before: 0.08 + 40 · 231.68 µs + 0.04",
        },
        Example {
            given: "100 MB, 1 Gbit/s, 21 ms, 1448 bytes",
            computed: || time(&on(1e8, 1e3, 21.0, 1448)),
            expected: 0.959_46,
            tolerance: 1e-4,
            unit: "s",
            origin: "8 rounds, 2550 of 69,061 segments before: 0.168 + 66,511 · 11.584 µs + 0.021",
        },
        Example {
            given: "14,600 bytes, 1 Gbit/s, 100 ms, 1460 bytes",
            computed: || time(&on(14_600.0, 1e3, 100.0, 1460)),
            expected: 0.100_12,
            tolerance: 1e-4,
            unit: "s",
            origin: "one window of 10 segments: 10 · 11.68 µs + 0.1",
        },
    ],
    plot: &MEAN_PLOT,
};

const WITHIN: Formula = Formula {
    id: "bytes-within",
    title: "What is through after a time",
    formula: "S = MSS · floor(IW (g^n − 1) / (g − 1) + (T − (n + 1) RTT) C / (8 MSS))",
    symbols: &[
        SIZE,
        symbol("T", "time since the first byte", "s"),
        symbol("n", "whole round trips in T − RTT, at most until the path is full", "1"),
        RATE,
        RTT,
        MSS,
        FIRST,
        GROWTH,
    ],
    range: "As the time of a transfer, of which it is the inverse. In a round that does not fill \
            the path no more than the window is through.",
    source: "The formula above, solved for S",
    estimate: false,
    examples: &[Example {
        given: "0.3283 s, 50 Mbit/s, 40 ms, 1448 bytes",
        computed: || number(bytes_within(&on(1.0, 50.0, 40.0, 1448), ms(328.3))),
        expected: 1_000_568.0,
        tolerance: 1e-9,
        unit: "bytes",
        origin: "691 segments of 1448, which carry the 1 MB of the example above",
    }],
    plot: &MEAN_PLOT,
};

const FLAT: Formula = Formula {
    id: "flat-start-cost",
    title: "Start-up counted as lost round trips",
    formula: "T = 8 S / R + n RTT",
    symbols: &[
        symbol("T", "time of the transfer", "s"),
        SIZE,
        symbol("R", "rate once the path is full", "bit/s"),
        symbol("n", "round trips of slow start", "1"),
        RTT,
    ],
    range: "An upper bound: what is sent in those rounds counts for nothing. The OC-12 study's \
            table is this with n = 12 and 45 ms. Its shares are of the whole time (0.54 / 2.31 is \
            23.4 %, the gain without slow start would be 0.54 / 1.77 = 30.5 %), and the middle one \
            is cut where the others are rounded: 2.96 % is printed as 2.9 %.",
    source: "Table 3 of the OC-12 performance study of LBNL and ANL (1999)",
    estimate: false,
    examples: &[
        Example {
            given: "10 GB, 451.9 Mbit/s, 12 · 45 ms",
            computed: || flat(1e10),
            expected: 178.0,
            tolerance: 0.5 / 178.0,
            unit: "s",
            origin: "table 3",
        },
        Example {
            given: "1 GB, the same",
            computed: || flat(1e9),
            expected: 18.2,
            tolerance: 0.05 / 18.2,
            unit: "s",
            origin: "table 3",
        },
        Example {
            given: "100 MB, the same",
            computed: || flat(1e8),
            expected: 2.31,
            tolerance: 0.005 / 2.31,
            unit: "s",
            origin: "table 3",
        },
        Example {
            given: "share of the start in 10 GB",
            computed: || 54.0 / flat(1e10),
            expected: 0.30,
            tolerance: 0.005 / 0.30,
            unit: "%",
            origin: "table 3",
        },
        Example {
            given: "share of the start in 1 GB, cut to one decimal",
            computed: || (540.0 / flat(1e9)).floor() / 10.0,
            expected: 2.9,
            tolerance: 1e-9,
            unit: "%",
            origin: "table 3; 2.96 before the cut",
        },
        Example {
            given: "share of the start in 100 MB",
            computed: || 54.0 / flat(1e8),
            expected: 23.4,
            tolerance: 0.05 / 23.4,
            unit: "%",
            origin: "table 3",
        },
    ],
    plot: &WASTE_PLOT,
};

const FLAT_RATE: Formula = Formula {
    id: "flat-start-rate",
    title: "The rate behind a transfer time",
    formula: "R = 8 S / (T − n RTT)",
    symbols: &[
        symbol("R", "rate once the path is full", "bit/s"),
        SIZE,
        symbol("T", "time of the transfer", "s"),
        symbol("n", "round trips of slow start", "1"),
        RTT,
    ],
    range: "Times above n RTT. All three lines of the OC-12 study's table round as printed for R \
            from 451.72 to 452.08 Mbit/s, with decimal sizes. That is 84 % of the 538.05 Mbit/s \
            that ATM and TCP/IP leave of the link (9140 bytes in 192 cells of 53 at 599.04 \
            Mbit/s), so it must be a rate that was measured; the study does not say which.",
    source: "The formula above, solved for R",
    estimate: false,
    examples: &[
        Example {
            given: "1 GB in 18.25 s, 12 · 45 ms: the least R that prints 18.2 s",
            computed: || number(flat_rate_bps(bytes(1e9), ms(18_250.0), ms(45.0), 12)) / 1e6,
            expected: 451.72,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "8e9 / 17.71",
        },
        Example {
            given: "10 GB in 177.5 s: the most R that prints 178 s",
            computed: || number(flat_rate_bps(bytes(1e10), ms(177_500.0), ms(45.0), 12)) / 1e6,
            expected: 452.08,
            tolerance: 1e-4,
            unit: "Mbit/s",
            origin: "80e9 / 176.96",
        },
    ],
    plot: &WASTE_PLOT,
};

static ROUNDS_PLOT: Plot = Plot {
    id: "rounds-by-bdp",
    title: "Round trips until the path is full",
    x: PlotAxis { label: "segments in flight that fill the path", log: true },
    y: PlotAxis { label: "round trips", log: false },
    curves: || {
        let curve = |(label, first, growth): (&str, f64, f64)| {
            curve(label, decades(10.0, 1e5, 40), move |segments| {
                round_trips_to_grow(segments / first, growth)
            })
        };
        [
            ("IW 10, g 2", 10.0, GROWTH_BYTES_COUNTED),
            ("IW 2, g 2", 2.0, GROWTH_BYTES_COUNTED),
            ("IW 2, g 1.5", 2.0, GROWTH_DELAYED_ACKS),
        ]
        .map(curve)
        .to_vec()
    },
};

static RISE_PLOT: Plot = Plot {
    id: "hystart-rise-by-rtt",
    title: "Rise of the round trip that ends slow start early",
    x: PlotAxis { label: "round trip (ms)", log: false },
    y: PlotAxis { label: "rise (ms)", log: false },
    curves: || {
        let rise = |rtt: f64| -> Result<f64, SlowStartError> {
            Ok(hystart_rise(ms(rtt)).as_secs_f64() * 1e3)
        };
        vec![curve("RFC 9406", evenly(0.0, 200.0, 50), rise)]
    },
};

static MEAN_PLOT: Plot = Plot {
    id: "mean-rate-by-size",
    title: "Mean rate of a transfer, share of the full rate: 1448 bytes, IW 10, g 2",
    x: PlotAxis { label: "size (bytes)", log: true },
    y: PlotAxis { label: "share of the full rate", log: false },
    curves: || {
        let curve = |(label, rate, rtt): (&str, f64, f64)| {
            curve(label, decades(1e4, 1e11, 70), move |size| {
                transfer(&on(size, rate, rtt, 1448)).map(|t| t.mean_bps / (rate * 1e6))
            })
        };
        [
            ("50 Mbit/s, 40 ms", 50.0, 40.0),
            ("1 Gbit/s, 21 ms", 1e3, 21.0),
            ("10 Gbit/s, 100 ms", 1e4, 100.0),
        ]
        .map(curve)
        .to_vec()
    },
};

static WASTE_PLOT: Plot = Plot {
    id: "start-share-by-size",
    title: "Share of the start in a transfer: 451.9 Mbit/s, 45 ms",
    x: PlotAxis { label: "size (bytes)", log: true },
    y: PlotAxis { label: "share of the time (%)", log: false },
    curves: || {
        let sizes = || decades(1e7, 1e11, 40);
        vec![
            curve("12 round trips", sizes(), |size| flat_of(size).map(|time_s| 54.0 / time_s)),
            waste("counted, IW 2, g 1.5", 2, GROWTH_DELAYED_ACKS),
            waste("counted, IW 10, g 2", INITIAL_WINDOW, GROWTH_BYTES_COUNTED),
        ]
    },
};

fn waste(label: &str, initial_window: u32, growth: f64) -> Curve {
    curve(label, decades(1e7, 1e11, 40), |size| {
        let start = SlowStart { initial_window, growth, ..on(size, 451.9, 45.0, 9140) };
        transfer(&start).map(|Transfer { waste_s, time_s, .. }| 100.0 * waste_s / time_s)
    })
}

fn on(size: f64, rate: f64, rtt: f64, mss_bytes: u32) -> SlowStart {
    SlowStart {
        size: bytes(size),
        rate: mbps(rate),
        rtt: ms(rtt),
        mss_bytes,
        initial_window: INITIAL_WINDOW,
        growth: GROWTH_BYTES_COUNTED,
    }
}

fn time(start: &SlowStart) -> f64 {
    number(transfer(start).map(|transfer| transfer.time_s))
}

fn flat_of(size: f64) -> Result<f64, SlowStartError> {
    flat_time_s(bytes(size), mbps(451.9), ms(45.0), 12)
}

fn flat(size: f64) -> f64 {
    number(flat_of(size))
}
