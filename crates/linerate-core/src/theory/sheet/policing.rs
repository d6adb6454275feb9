//! The formulas of traffic contracts: cells here, token buckets in `bucket`.

use super::bucket::{
    BURST_DURATION, ENVELOPE, POLICED_LOSS, SINGLE_RATE, SMALLEST_BURST, TOKEN_BUCKET, TWO_RATE,
};
use super::parts::{bytes, curve, decades, evenly, mbps, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section};
use crate::theory::gcra::{
    CellRate, Gcra, Sustained, VirtualScheduling, burst_cells, burst_tolerance_ns,
};

pub(super) const SECTION: Section = Section {
    title: "Traffic contracts",
    purpose: "Which cells and packets keep a contract, how much a contract lets pass at once, and \
              which contract given traffic would keep.",
    formulas: &[
        GCRA,
        BURST_TOLERANCE,
        BACK_TO_BACK,
        CELL_TIME,
        TOKEN_BUCKET,
        SINGLE_RATE,
        TWO_RATE,
        BURST_DURATION,
        ENVELOPE,
        SMALLEST_BURST,
        POLICED_LOSS,
    ],
};

const GCRA: Formula = Formula {
    id: "gcra",
    title: "Generic cell rate algorithm",
    formula: "a cell at t conforms when t ≥ TAT − L; then TAT = max(t, TAT) + I",
    symbols: &[
        symbol("t", "arrival of the cell", "s"),
        symbol("TAT", "theoretical arrival time, that of the first cell at first", "s"),
        symbol("I", "increment, 1 / PCR or 1 / SCR", "s"),
        symbol("L", "limit: CDVT with PCR, BT + CDVT with SCR", "s"),
    ],
    range: "A cell that does not conform leaves TAT as it was. The leaky bucket form (content X, \
            limit L, drained by 1 a second, I a cell) gives the same answers, and so does a token \
            bucket of rate 1 / I and depth L + I in cells of I. Times are counted in whole ticks, \
            so that the forms agree exactly.",
    source: "ITU-T I.371; ATM Forum Traffic Management 4.0",
    estimate: false,
    examples: &[
        gcra_example(
            "I 4.5, L 0.5, cells at 0, 1, 2 …: the fourth that conforms",
            || conforming(9, 1, 4),
            13.0,
            "1000100001000100: 0, 4 ≥ 4.5 − 0.5, 9 ≥ 9 − 0.5, 13 ≥ 13.5 − 0.5",
        ),
        gcra_example(
            "I 4.5, L 3.5, cells at 0, 1, 2 …: the fourth that conforms",
            || conforming(9, 7, 4),
            10.0,
            "1100001000100001: TAT 4.5, 9, 13.5",
        ),
        gcra_example(
            "I 4.5, L 7, cells at 0, 1, 2 …: the fourth that conforms",
            || conforming(9, 14, 4),
            7.0,
            "1110000100010000: TAT 13.5 after three",
        ),
        gcra_example(
            "I 10, L 15, cells at 0, 1, 2 …: the fourth that conforms",
            || conforming(20, 30, 4),
            15.0,
            "1100010000000001: TAT 30 after three",
        ),
    ],
    plot: &GCRA_PLOT,
};

const fn gcra_example(
    given: &'static str,
    computed: fn() -> f64,
    expected: f64,
    origin: &'static str,
) -> Example {
    Example { given, computed, expected, tolerance: 0.0, unit: "cell times", origin }
}

/// Time of the `nth` cell that conforms, of one each cell time; increment and limit in halves.
fn conforming(increment: i128, limit: i128, nth: usize) -> f64 {
    let mut meter = VirtualScheduling::new(Gcra { increment, limit });
    let times = (0_u16..100).filter(|at| meter.arrive(i128::from(*at) * 2));
    times.map(f64::from).nth(nth - 1).unwrap_or(f64::NAN)
}

const GCRA_PLOT: Plot = Plot {
    id: "gcra-content",
    title: "Cells back to back, I = 4.5 cell times: what the leaky bucket holds",
    x: PlotAxis { label: "time, cell times", log: false },
    y: PlotAxis { label: "content behind the cell, cell times", log: false },
    curves: || {
        let limits = [("L = 0.5", 1), ("L = 3.5", 7), ("L = 7", 14)];
        limits.map(|(label, limit)| gcra_content(label, limit)).to_vec()
    },
};

/// The content of the bucket over cells back to back: filled by cells that conform, drained since.
fn gcra_content(label: &str, limit: i128) -> Curve {
    let mut meter = VirtualScheduling::new(Gcra { increment: 9, limit });
    let (mut content, mut points) = (0.0_f64, vec![(0.0, 0.0)]);
    for at in 0_u16..32 {
        points.push((at.into(), content));
        if meter.arrive(i128::from(at) * 2) {
            content += 4.5;
            points.push((at.into(), content));
        }
        content = (content - 1.0).max(0.0);
    }
    Curve { label: label.to_owned(), points, steps: false }
}

const BURST_TOLERANCE: Formula = Formula {
    id: "burst-tolerance",
    title: "Burst tolerance",
    formula: "BT = (MBS − 1) (1/SCR − 1/PCR)",
    symbols: &[
        symbol("BT", "limit of the GCRA whose increment is 1/SCR", "s"),
        symbol("MBS", "largest burst at the peak rate", "cells"),
        symbol("SCR", "sustainable cell rate", "cells/s"),
        symbol("PCR", "peak cell rate, not below SCR", "cells/s"),
    ],
    range: "CDVT comes on top of it. Rounded up to a tick, so that a burst of MBS cells at PCR \
            just conforms.",
    source: "ITU-T I.371 §5.4.2; ATM Forum Traffic Management 4.0",
    estimate: false,
    examples: &[Example {
        given: "PCR 1000, SCR 250 cells/s, MBS 32 cells",
        computed: || tolerance_ms(32.0),
        expected: 93.0,
        tolerance: 1e-12,
        unit: "ms",
        origin: "31 · (4 ms − 1 ms)",
    }],
    plot: &TOLERANCE_PLOT,
};

fn cells(per_s: u64) -> Option<CellRate> {
    CellRate::new(per_s, 1)
}

/// BT for PCR 1000 and SCR 250 cells/s, ms.
fn tolerance_ms(burst: f64) -> f64 {
    let Some((peak, sustainable)) = cells(1000).zip(cells(250)) else { return f64::NAN };
    let burst_cells = bytes(burst).count();
    number(burst_tolerance_ns(&Sustained { peak, sustainable, burst_cells })) / 1e6
}

const TOLERANCE_PLOT: Plot = Plot {
    id: "burst-tolerance",
    title: "Burst tolerance for PCR 1000 and SCR 250 cells/s",
    x: PlotAxis { label: "MBS, cells", log: false },
    y: PlotAxis { label: "BT, ms", log: false },
    curves: || {
        let tolerance = |burst| Ok::<f64, ()>(tolerance_ms(burst));
        vec![curve("BT", evenly(1.0, 64.0, 63), tolerance)]
    },
};

const BACK_TO_BACK: Formula = Formula {
    id: "back-to-back-cells",
    title: "Cells that pass back to back",
    formula: "N = 1 + floor(L / (I − T))",
    symbols: &[
        symbol("N", "cells in a row that conform", "cells"),
        symbol("L", "limit of the GCRA", "s"),
        symbol("I", "its increment", "s"),
        symbol("T", "time from one cell to the next, below I", "s"),
    ],
    range: "After a pause long enough for TAT to pass. From T = I on every cell conforms.",
    source: "ITU-T I.371; ATM Forum Traffic Management 4.0",
    estimate: false,
    examples: &[
        Example {
            given: "I 4.5, L 7, T 1",
            computed: || in_a_row(9, 14, 2),
            expected: 3.0,
            tolerance: 0.0,
            unit: "cells",
            origin: "1 + floor(7 / 3.5)",
        },
        Example {
            given: "I 4 ms, L 93 ms, T 1 ms",
            computed: || in_a_row(4, 93, 1),
            expected: 32.0,
            tolerance: 0.0,
            unit: "cells",
            origin: "1 + floor(93 / 3)",
        },
    ],
    plot: &ROW_PLOT,
};

fn in_a_row(increment: i128, limit: i128, line_cell: i128) -> f64 {
    number(burst_cells(&Gcra { increment, limit }, line_cell).map(|cells| cells as f64))
}

const ROW_PLOT: Plot = Plot {
    id: "back-to-back-cells",
    title: "Cells in a row that conform, by how fast they come",
    x: PlotAxis { label: "rate of the burst over the contract's rate", log: true },
    y: PlotAxis { label: "cells", log: true },
    curves: || {
        let row = |increments: i128| {
            move |ratio: f64| {
                // An increment of 10^6 ticks; a limit of so many increments.
                let line_cell = i128::from(bytes(1e6 / ratio).count());
                let rule = Gcra { increment: 1_000_000, limit: increments * 1_000_000 };
                burst_cells(&rule, line_cell).map(|cells| cells as f64)
            }
        };
        let ratios = || decades(1.05, 100.0, 200);
        [1, 10, 100].map(|n| curve(format!("L = {n} I"), ratios(), row(n))).to_vec()
    },
};

const CELL_TIME: Formula = Formula {
    id: "cell-time",
    title: "Cells per second and the time of a cell",
    formula: "f = R / 424, T = 1 / f",
    symbols: &[
        symbol("f", "cells per second", "cells/s"),
        symbol("T", "time of a cell", "s"),
        symbol(
            "R",
            "rate of whole cells: the payload of the line, headers of cells included",
            "bit/s",
        ),
    ],
    range: "Cells of 53 bytes back to back.",
    source: "ITU-T I.361 §2, I.432; G.707 for the payload of an OC-3",
    estimate: false,
    examples: &[
        Example {
            given: "OC-3, payload 149.76 Mbit/s",
            computed: || cells_per_s(149.76),
            expected: 353_207.55,
            tolerance: 1e-7,
            unit: "cells/s",
            origin: "149,760,000 / 424",
        },
        Example {
            given: "OC-3, payload 149.76 Mbit/s",
            computed: || 1e6 / cells_per_s(149.76),
            expected: 2.8312,
            tolerance: 1e-5,
            unit: "µs",
            origin: "424 / 149.76",
        },
    ],
    plot: &CELL_PLOT,
};

fn cells_per_s(rate: f64) -> f64 {
    CellRate::of_stream(mbps(rate)).map_or(f64::NAN, CellRate::per_second)
}

const CELL_PLOT: Plot = Plot {
    id: "cell-time",
    title: "Time of a cell, from DS1 to OC-192",
    x: PlotAxis { label: "rate of cells, Mbit/s", log: true },
    y: PlotAxis { label: "time of a cell, µs", log: true },
    curves: || {
        let time = |rate| Ok::<f64, ()>(1e6 / cells_per_s(rate));
        vec![curve("424 bits", decades(1.0, 1e4, 80), time)]
    },
};
