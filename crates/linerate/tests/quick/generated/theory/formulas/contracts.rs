//! Cells and token buckets: what keeps a contract, and which contract given traffic keeps.

use linerate_core::conformance::Envelope;
use linerate_core::theory::gcra::{
    CellRate, Gcra, Sustained, VirtualScheduling, burst_cells, burst_tolerance_ns,
};
use linerate_core::theory::token_bucket::{
    BurstOnLine, Colour, SingleRate, SrTcm, TokenBucket, TrTcm, TwoRate, burst_duration_s,
    envelope_bytes, policed_loss,
};

use super::{Rule, Trace};
use crate::generated::theory::inputs::{Inputs, nearest};

pub(super) const RULES: &[Rule] = &[
    // Time of the nth cell that conforms, of one each cell time.
    ("gcra", |of| {
        let mut meter = VirtualScheduling::new(gcra(of));
        let times = (0_u16..100).filter(|at| meter.arrive(i128::from(*at) * 2));
        times.map(f64::from).nth(of.small("nth") as usize - 1)
    }),
    ("burst-tolerance", |of| {
        let contract = Sustained {
            peak: CellRate::new(of.whole("PCR"), 1)?,
            sustainable: CellRate::new(of.whole("SCR"), 1)?,
            burst_cells: of.whole("MBS"),
        };
        Some(burst_tolerance_ns(&contract).ok()? / 1e9)
    }),
    ("back-to-back-cells", |of| Some(burst_cells(&gcra(of), halves(of, "T")).ok()? as f64)),
    // An increment of 10^6 ticks, a limit of so many increments.
    ("cells-in-a-row", |of| {
        let limit = i128::from(of.whole("increments")) * 1_000_000;
        let line_cell = i128::from(nearest(1e6 / of.number("ratio")));
        Some(burst_cells(&Gcra { increment: 1_000_000, limit }, line_cell).ok()? as f64)
    }),
    ("cells-per-second", |of| Some(CellRate::of_stream(of.rate("R"))?.per_second())),
    ("cell-time", |of| Some(1.0 / CellRate::of_stream(of.rate("R"))?.per_second())),
    ("token-bucket", |of| {
        let mut bucket = TokenBucket::new(of.rate("r"), of.size("b")).ok()?;
        Some(digits(of, |at_ns, bytes| u8::from(bucket.arrive(at_ns, bytes).is_none())))
    }),
    ("single-rate-three-colours", |of| {
        let plan = SingleRate {
            committed: of.rate("CIR"),
            committed_burst: of.size("CBS"),
            excess_burst: of.size("EBS"),
        };
        let mut meter = SrTcm::new(&plan).ok()?;
        Some(digits(of, |at_ns, bytes| digit(meter.arrive(at_ns, bytes, Colour::Green).colour)))
    }),
    ("two-rate-three-colours", |of| {
        let mut meter = two_rate(of)?;
        Some(digits(of, |at_ns, bytes| digit(meter.arrive(at_ns, bytes, Colour::Green).colour)))
    }),
    ("marked-rate", marked_bps),
    ("burst-duration", burst_s),
    ("burst-duration-bits", |of| Some(burst_s(of)? * of.number("C"))),
    ("bucket-envelope", |of| Some(envelope_bytes(of.rate("r"), of.size("b"), of.time("t")))),
    ("bucket-envelope-bits", |of| {
        Some(8.0 * envelope_bytes(of.rate("r"), of.size("b"), of.time("t")))
    }),
    ("smallest-burst", |of| {
        let rate = of.number("r");
        let mut envelope = Envelope::new(&[rate]);
        for at_ns in times_ns(of) {
            envelope.arrive(at_ns as f64, of.number("n"));
        }
        envelope.burst_at(rate)
    }),
    ("policed-loss", |of| policed_loss(of.rate("r"), of.rate("R")).ok()),
];

pub(super) const TRACES: &[Trace] = &[
    // The content of the leaky bucket over cells back to back: filled by cells that conform,
    // drained since.
    ("gcra-content", |_, of| {
        let mut meter = VirtualScheduling::new(gcra(of));
        let (mut content, mut points) = (0.0_f64, vec![(0.0, 0.0)]);
        for at in 0_u16..32 {
            points.push((at.into(), content));
            if meter.arrive(i128::from(at) * 2) {
                content += of.number("I");
                points.push((at.into(), content));
            }
            content = (content - 1.0).max(0.0);
        }
        points
    }),
    // Tokens over 15 s: packets for the first so many quarters of a second, and again from 10 s on.
    ("token-bucket-fill", |_, of| {
        let mut bucket = TokenBucket::new(of.rate("r"), of.size("b")).expect("a bucket");
        let mut points = vec![(0.0, of.number("b"))];
        for step in 0..60_u32 {
            let (at_ns, at_s) = (u64::from(step) * 250_000_000, f64::from(step) / 4.0);
            // A packet of no bytes asks what there is.
            bucket.arrive(at_ns, 0);
            points.push((at_s, bucket.level_bytes()));
            if step < of.small("packets") || step >= 40 {
                bucket.arrive(at_ns, of.small("n"));
                points.push((at_s, bucket.level_bytes()));
            }
        }
        points
    }),
    // The inverse of what a policer lets pass of 1500-byte packets that come each 12 µs for 2 s.
    ("smallest-bursts", |_, of| {
        let mut envelope = Envelope::new(&[]);
        let mut bucket = TokenBucket::new(of.rate("r"), of.size("b")).expect("a bucket");
        for at_ns in (0..2_000_000_000_u64).step_by(12_000) {
            if bucket.arrive(at_ns, 1500).is_none() {
                envelope.arrive(at_ns as f64, 1500.0);
            }
        }
        let shown = envelope.vertices().into_iter();
        let shown = shown.filter(|vertex| (1e6..=2e9).contains(&vertex.rate_bps));
        shown.map(|vertex| (vertex.rate_bps / 1e6, vertex.burst_bytes)).collect()
    }),
];

/// Half cell times, which are whole here.
fn halves(of: &Inputs, symbol: &str) -> i128 {
    i128::from(nearest(of.number(symbol) * 2.0))
}

fn gcra(of: &Inputs) -> Gcra {
    Gcra { increment: halves(of, "I"), limit: halves(of, "L") }
}

fn times_ns(of: &Inputs) -> Vec<u64> {
    let at = |ms: &toml::Value| ms.as_integer().and_then(|ms| u64::try_from(ms).ok());
    of.list("times_ms").iter().map(|ms| at(ms).expect("milliseconds") * 1_000_000).collect()
}

/// A digit for each packet of `n` bytes, as one number: 1, 0, 1 is 101.
fn digits(of: &Inputs, mut digit: impl FnMut(u64, u32) -> u8) -> f64 {
    let times = times_ns(of).into_iter();
    times.fold(0.0, |number, at_ns| number * 10.0 + f64::from(digit(at_ns, of.small("n"))))
}

const fn digit(colour: Colour) -> u8 {
    match colour {
        Colour::Green => 1,
        Colour::Yellow => 2,
        Colour::Red => 3,
    }
}

fn two_rate(of: &Inputs) -> Option<TrTcm> {
    let plan = TwoRate {
        committed: of.rate("CIR"),
        committed_burst: of.size("CBS"),
        peak: of.rate("PIR"),
        peak_burst: of.size("PBS"),
    };
    TrTcm::new(&plan).ok()
}

/// What of a steady stream of 1000-byte packets, of 30 s, a two-rate marker gives one colour.
fn marked_bps(of: &Inputs) -> Option<f64> {
    let colour = match of.text("colour") {
        "green" => Colour::Green,
        "yellow" => Colour::Yellow,
        _ => Colour::Red,
    };
    let mut meter = two_rate(of)?;
    let gap_ns = 8e12 / of.number("offered");
    let packets = nearest(3e10 / gap_ns);
    let at_ns = |index: u64| nearest(index as f64 * gap_ns);
    let marked = (0..packets)
        .filter(|index| meter.arrive(at_ns(*index), 1000, Colour::Green).colour == colour);
    Some(of.number("offered") * marked.count() as f64 / packets as f64)
}

fn burst_s(of: &Inputs) -> Option<f64> {
    let plan = BurstOnLine { burst: of.size("b"), rate: of.rate("r"), line: of.rate("C") };
    burst_duration_s(&plan).ok()
}
