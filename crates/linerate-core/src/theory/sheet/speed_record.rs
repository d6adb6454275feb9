//! The formula of the Internet2 Land Speed Record.

use super::parts::{bytes, curve, decades, mbps, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Section, Symbol};
use crate::theory::speed_record::{
    distance_for_score_km, rate_for_score_bps, score_tbm_per_s, transfer_s,
};

pub(super) const SECTION: Section = Section {
    title: "Land speed record",
    purpose: "What a transfer scored in the contest of Internet2, and what a score says of rate \
              and distance.",
    formulas: &[SCORE, DISTANCE, TIME],
};

const RATE: Symbol = symbol("R", "mean rate of the transfer", "bit/s");
const KM: Symbol = symbol("d", "distance along the network", "m");
const POINTS: Symbol = symbol("P", "score", "bit·m/s");

const SCORE: Formula = Formula {
    id: "speed-record-score",
    title: "Score",
    formula: "P = R d",
    symbols: &[POINTS, RATE, KM],
    range: "Any rate and distance. The announced rates have three digits, the distances are \
            rounded, and so a score computed from them may be off by some tenths of a percent.",
    source: "Internet2 Land Speed Record; announcements of 2003 to 2007",
    estimate: false,
    examples: &[
        Example {
            given: "2003: 2.38 Gbit/s, 10,037 km",
            computed: || score(2.38, 10_037.0),
            expected: 23_888.06,
            tolerance: 1e-6,
            unit: "Tbit·m/s",
            origin: "the entry of Caltech, CERN and SLAC itself",
        },
        Example {
            given: "April 2004: 6.25 Gbit/s, 10,949 km",
            computed: || score(6.25, 10_949.0),
            expected: 68_431.0,
            tolerance: 1e-4,
            unit: "Tbit·m/s",
            origin: "announced",
        },
        Example {
            given: "April 2004, SUNET and Sprint: 4.23 Gbit/s, about 16,250 km",
            computed: || score(4.23, 16_250.0),
            expected: 68_900.0,
            tolerance: 0.2 / 68.9,
            unit: "Tbit·m/s",
            origin: "SUNET gave 68.7 to 69.1 Pbit·m/s",
        },
        Example {
            given: "1 September 2004: 6.63 Gbit/s, about 15,766 km",
            computed: || score(6.63, 15_766.0),
            expected: 104_500.0,
            tolerance: 1e-3,
            unit: "Tbit·m/s",
            origin: "announced as more than 104.5 Pbit·m/s",
        },
        Example {
            given: "2005: 7.21 Gbit/s, 30,000 km",
            computed: || score(7.21, 30_000.0),
            expected: 216_300.0,
            tolerance: 1e-6,
            unit: "Tbit·m/s",
            origin: "announced",
        },
        Example {
            given: "last of IPv4: 8.80 Gbit/s, 30,000 km",
            computed: || score(8.80, 30_000.0),
            expected: 264_147.0,
            tolerance: 1e-3,
            unit: "Tbit·m/s",
            origin: "announced; the exact rate was 8.8049 Gbit/s",
        },
        Example {
            given: "last of IPv6: 9.08 Gbit/s, 30,000 km",
            computed: || score(9.08, 30_000.0),
            expected: 272_400.0,
            tolerance: 1e-6,
            unit: "Tbit·m/s",
            origin: "announced",
        },
    ],
    plot: &PLOT,
};

const DISTANCE: Formula = Formula {
    id: "speed-record-distance",
    title: "Distance that a score implies",
    formula: "d = P / R",
    symbols: &[KM, POINTS, RATE],
    range: "As the score.",
    source: "The formula above, solved for d",
    estimate: false,
    examples: &[Example {
        given: "30 September 2004, SUNET and Sprint: 124,900 Tbit·m/s at 4.31 Gbit/s",
        computed: || number(distance_for_score_km(124_900.0, mbps(4310.0))),
        expected: 29_000.0,
        tolerance: 1e-3,
        unit: "km",
        origin: "announced as nearly 29,000 km",
    }],
    plot: &PLOT,
};

const TIME: Formula = Formula {
    id: "speed-record-time",
    title: "Time of a transfer at its mean rate",
    formula: "T = 8 S / R",
    symbols: &[symbol("T", "time", "s"), symbol("S", "bytes moved", "bytes"), RATE],
    range: "Any rate above 0.",
    source: "The bits over the rate",
    estimate: false,
    examples: &[
        Example {
            given: "30 September 2004: 1830 GB at 4.31 Gbit/s",
            computed: || number(transfer_s(bytes(1.83e12), mbps(4310.0))) / 60.0,
            expected: 56.6,
            tolerance: 1e-3,
            unit: "min",
            origin: "14.64e12 / 4.31e9 = 3396.8 s; announced as about 60 minutes",
        },
        Example {
            given: "April 2004: 840 GB at 4.23 Gbit/s",
            computed: || number(transfer_s(bytes(8.4e11), mbps(4230.0))) / 60.0,
            expected: 26.5,
            tolerance: 1e-3,
            unit: "min",
            origin: "6.72e12 / 4.23e9 = 1588.7 s",
        },
    ],
    plot: &PLOT,
};

static PLOT: Plot = Plot {
    id: "speed-records",
    title: "Land speed records: rate and distance of equal scores",
    x: PlotAxis { label: "distance (km)", log: true },
    y: PlotAxis { label: "rate (Gbit/s)", log: true },
    curves: || {
        let equal = |score: f64| {
            curve(format!("{score} Tbit·m/s"), decades(5_000.0, 35_000.0, 20), move |km| {
                rate_for_score_bps(score, km).map(|bps| bps / 1e9)
            })
        };
        let records = Curve {
            label: "records of 2003 to 2007".to_owned(),
            points: vec![
                (10_037.0, 2.38),
                (10_949.0, 6.25),
                (16_250.0, 4.23),
                (15_766.0, 6.63),
                (28_980.0, 4.31),
                (30_000.0, 7.21),
                (30_000.0, 8.80),
                (30_000.0, 9.08),
            ],
            steps: false,
        };
        vec![equal(23_888.0), equal(124_900.0), equal(272_400.0), records]
    },
};

fn score(gbps: f64, km: f64) -> f64 {
    number(score_tbm_per_s(mbps(gbps * 1e3), km))
}
