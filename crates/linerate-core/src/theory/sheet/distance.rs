//! The sheet's section on distance and on the length of packets in time.
//!
//! Left out: the rules themselves, which are in `theory::propagation`. Expected values are hand
//! sums.

use std::time::Duration;

use super::plans::{curve, example, logarithmic, symbol};
use super::{Curve, Formula, Plot, Section};
use crate::theory::propagation::{fibre_delay_s, fibre_km, serialisation_s};
use crate::units::{BitRate, Bytes};

pub(super) const SECTION: Section = Section {
    title: "Distance and serialisation",
    purpose: "The part of a delay that no equipment can take away.",
    formulas: &[PROPAGATION, SERIALISATION],
};

const PROPAGATION: Formula = Formula {
    id: "fibre-delay",
    title: "Light in fibre",
    formula: "t = n d / c",
    symbols: &[
        symbol("t", "one way", "s"),
        symbol("n", "group index of the fibre, 1.468", "1"),
        symbol("d", "length of the fibre", "m"),
        symbol("c", "speed of light, 299,792,458", "m/s"),
    ],
    range: "The fibre's length, which is more than that of a line on the map. A measured round \
            trip gives an upper bound of the length, for equipment takes time too: the 21 ms from \
            Stockholm to Luleå of 2004 are 2.14 times what 1000 km of fibre take, so the route was \
            longer or equipment waited; the figure alone does not say which.",
    source: "definition; index of ITU-T G.652 fibre",
    estimate: false,
    examples: &[
        example("1 km", || delay(1.0) * 1e6, 4.8967, "us", "1468 / 299.792458"),
        example("1000 km, there and back", || delay(1000.0) * 2e3, 9.7934, "ms", "2 x 4.8967"),
        example(
            "21 ms, there and back",
            || fibre_km(RTT_2004),
            2144.29,
            "km",
            "21 / 2 / 0.0048967",
        ),
        example(
            "21 ms over that of 1000 km",
            || RTT_2004.as_secs_f64() / (2.0 * delay(1000.0)),
            2.1443,
            "1",
            "21 / 9.7934",
        ),
    ],
    plot: &DISTANCES,
};

const SERIALISATION: Formula = Formula {
    id: "serialisation",
    title: "Time that a packet takes to leave",
    formula: "t = 8 L / R",
    symbols: &[
        symbol("t", "from its first bit to its last", "s"),
        symbol("L", "what the rate counts of it: on Ethernet preamble and gap too", "bytes"),
        symbol("R", "rate", "bit/s"),
    ],
    range: "Each hop that stores a packet before it sends it on adds its own.",
    source: "definition",
    estimate: false,
    examples: &[
        example("1538 bytes, 100 Mbit/s", || leave_us(1538, 100e6), 123.04, "us", "12304 / 100"),
        example("1538 bytes, 1 Gbit/s", || leave_us(1538, 1e9), 12.304, "us", "12304 / 1000"),
        example("9180 bytes, OC-12", || leave_us(9180, 599.04e6), 122.596, "us", "73440 / 599.04"),
    ],
    plot: &LEAVING,
};

const RTT_2004: Duration = Duration::from_millis(21);

fn delay(km: f64) -> f64 {
    fibre_delay_s(km).unwrap_or(f64::NAN)
}

fn leave_us(bytes: u64, bps: f64) -> f64 {
    let rate = BitRate::from_nearest(bps);
    let time = rate.and_then(|rate| serialisation_s(Bytes::new(bytes), rate).ok());
    time.map_or(f64::NAN, |seconds| seconds * 1e6)
}

const DISTANCES: Plot = Plot {
    id: "fibre-rtt",
    title: "Round trip through fibre",
    x: logarithmic("fibre one way, km"),
    y: logarithmic("round trip, ms"),
    curves: distance_curves,
};

fn distance_curves() -> Vec<Curve> {
    let kms = [1.0, 10.0, 100.0, 1000.0, 10_000.0, 20_000.0];
    vec![curve("index 1.468", kms.map(|km| (km, 2e3 * delay(km))).to_vec())]
}

const LEAVING: Plot = Plot {
    id: "serialisation",
    title: "Time that a packet takes to leave",
    x: logarithmic("rate, Mbit/s"),
    y: logarithmic("time, us"),
    curves: leaving_curves,
};

fn leaving_curves() -> Vec<Curve> {
    let rates = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 8e5];
    let at = |bytes: u64| rates.map(|mbps| (mbps, leave_us(bytes, mbps * 1e6))).to_vec();
    [84, 1538, 9038].map(|bytes| curve(&format!("{bytes} bytes"), at(bytes))).to_vec()
}
