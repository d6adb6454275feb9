//! The formulas of token buckets: what they let pass, colours, and the smallest bucket for traffic.

use std::time::Duration;

use super::parts::{bytes, curve, decades, evenly, mbps, number, symbol};
use super::{Curve, Example, Formula, Plot, PlotAxis, Symbol};
use crate::conformance::Envelope;
use crate::theory::token_bucket::{
    BucketError, BurstOnLine, Colour, SingleRate, SrTcm, TokenBucket, TrTcm, TwoRate,
    burst_duration_s, envelope_bytes, policed_loss,
};
use crate::units::{BitRate, Bytes};

const RATE: Symbol = symbol("r", "rate at which tokens come", "bit/s");
const DEPTH: Symbol = symbol("b", "depth of the bucket", "bytes");

pub(super) const TOKEN_BUCKET: Formula = Formula {
    id: "token-bucket",
    title: "Token bucket",
    formula: "tokens = min(b, tokens + r Δt / 8); a packet of n bytes conforms when n ≤ tokens, \
              and takes n",
    symbols: &[
        RATE,
        DEPTH,
        symbol("Δt", "time since the last packet", "s"),
        symbol("n", "length of the packet at the layer that counts", "bytes"),
    ],
    range: "The bucket is full at the first packet. A packet that does not conform takes nothing. \
            Tokens are counted exactly.",
    source: "RFC 2212, Policing; the meters of RFC 2697 and RFC 2698 are made of it",
    estimate: false,
    examples: &[Example {
        given: "8 kbit/s, 3000 bytes; 1500 bytes at 0, 0, 0, 1, 1.5 and 3 s: packets that conform",
        computed: || {
            let bucket = TokenBucket::new(BitRate::from_bits_per_sec(8000), Bytes::new(3000));
            let Ok(mut bucket) = bucket else { return f64::NAN };
            let times = [0, 0, 0, 1000, 1500, 3000];
            digits(&times.map(|ms| u8::from(bucket.arrive(ms * 1_000_000, 1500).is_none())))
        },
        expected: 110_011.0,
        tolerance: 0.0,
        unit: "1 for each that does, 0 for the others",
        origin: "1000 bytes a second: 0 after two, 1000 at 1 s, 1500 at 1.5 s, 1500 at 3 s",
    }],
    plot: &TOKENS_PLOT,
};

/// Digits as one number: 1, 0, 1 is 101.
fn digits(digits: &[u8]) -> f64 {
    digits.iter().fold(0.0, |number, digit| number * 10.0 + f64::from(*digit))
}

const TOKENS_PLOT: Plot = Plot {
    id: "token-bucket-fill",
    title: "Tokens: 8 kbit/s, depth 3000 bytes; 500 bytes each 0.25 s",
    x: PlotAxis { label: "time, s", log: false },
    y: PlotAxis { label: "tokens, bytes", log: false },
    curves: || {
        let bursts = [("16 kbit/s without end", 60), ("16 kbit/s, then a pause", 12)];
        bursts.map(|(label, count)| tokens_left(label, count)).to_vec()
    },
};

/// Tokens over 15 s: packets for the first `count` quarters of a second, and again from 10 s on.
fn tokens_left(label: &str, count: u64) -> Curve {
    let mut points = vec![(0.0, 3000.0)];
    let bucket = TokenBucket::new(BitRate::from_bits_per_sec(8000), Bytes::new(3000));
    if let Ok(mut bucket) = bucket {
        for step in 0..60_u64 {
            let at_ns = step * 250_000_000;
            // A packet of no bytes asks what there is.
            bucket.arrive(at_ns, 0);
            points.push((step as f64 / 4.0, bucket.level_bytes()));
            if step < count || step >= 40 {
                bucket.arrive(at_ns, 500);
                points.push((step as f64 / 4.0, bucket.level_bytes()));
            }
        }
    }
    Curve { label: label.to_owned(), points, steps: false }
}

const COMMITTED: Symbol = symbol("CIR, CBS", "committed rate and burst", "bit/s, bytes");

pub(super) const SINGLE_RATE: Formula = Formula {
    id: "single-rate-three-colours",
    title: "Single-rate three-colour marker",
    formula: "green when n ≤ Tc, and Tc loses n; else yellow when n ≤ Te, and Te loses n; else \
              red. Tokens come at CIR to Tc up to CBS, what is over to Te up to EBS",
    symbols: &[
        COMMITTED,
        symbol("EBS", "excess burst", "bytes"),
        symbol("Tc, Te", "tokens, CBS and EBS at first", "bytes"),
        symbol("n", "length of the IP packet", "bytes"),
    ],
    range: "Colour-aware, a packet is at best of the colour with which it came: the drop \
            precedence of its assured forwarding code point here. CBS or EBS is above 0.",
    source: "RFC 2697 §2 and §3",
    estimate: false,
    examples: &[Example {
        given: "CIR 8 kbit/s, CBS 3000, EBS 1500; 1500 bytes four times at 0, at 1.5 and 3 s",
        computed: || {
            let plan = SingleRate {
                committed: BitRate::from_bits_per_sec(8000),
                committed_burst: Bytes::new(3000),
                excess_burst: Bytes::new(1500),
            };
            let Ok(mut meter) = SrTcm::new(&plan) else { return f64::NAN };
            let mark = |ms: u64| meter.arrive(ms * 1_000_000, 1500, Colour::Green).colour;
            digits(&[0, 0, 0, 0, 1500, 3000].map(mark).map(colour_digit))
        },
        expected: 112_311.0,
        tolerance: 0.0,
        unit: "1 green, 2 yellow, 3 red",
        origin: "CBS takes two, EBS one, then none; 1.5 s bring 1500 to Tc",
    }],
    plot: &COLOURS_PLOT,
};

const fn colour_digit(colour: Colour) -> u8 {
    match colour {
        Colour::Green => 1,
        Colour::Yellow => 2,
        Colour::Red => 3,
    }
}

pub(super) const TWO_RATE: Formula = Formula {
    id: "two-rate-three-colours",
    title: "Two-rate three-colour marker",
    formula: "red when n > Tp; else yellow when n > Tc, and Tp loses n; else green, and both lose \
              n. Tokens come at PIR to Tp up to PBS and at CIR to Tc up to CBS",
    symbols: &[
        COMMITTED,
        symbol("PIR, PBS", "peak rate, not below CIR, and its burst", "bit/s, bytes"),
        symbol("Tc, Tp", "tokens, CBS and PBS at first", "bytes"),
        symbol("n", "length of the IP packet", "bytes"),
    ],
    range: "Colour-aware as the single-rate marker. All four parameters are above 0.",
    source: "RFC 2698 §2 and §3",
    estimate: false,
    examples: &[Example {
        given: "CIR 8, PIR 16 kbit/s, CBS 1500, PBS 3000; 1500 bytes three times at 0, at 0.75 \
                and 1.5 s",
        computed: || {
            let plan = TwoRate {
                committed: BitRate::from_bits_per_sec(8000),
                committed_burst: Bytes::new(1500),
                peak: BitRate::from_bits_per_sec(16_000),
                peak_burst: Bytes::new(3000),
            };
            let Ok(mut meter) = TrTcm::new(&plan) else { return f64::NAN };
            let mark = |ms: u64| meter.arrive(ms * 1_000_000, 1500, Colour::Green).colour;
            digits(&[0, 0, 0, 750, 1500].map(mark).map(colour_digit))
        },
        expected: 12_321.0,
        tolerance: 0.0,
        unit: "1 green, 2 yellow, 3 red",
        origin: "CBS takes one, PBS two; 0.75 s bring 750 and 1500 bytes, as much again later",
    }],
    plot: &COLOURS_PLOT,
};

const COLOURS_PLOT: Plot = Plot {
    id: "colours-by-rate",
    title: "Colours of a steady stream: CIR 10, PIR 20 Mbit/s; 1000 bytes, 30 s",
    x: PlotAxis { label: "offered, Mbit/s", log: false },
    y: PlotAxis { label: "marked, Mbit/s", log: false },
    curves: || {
        let rates = || evenly(1.0, 40.0, 39);
        let colours = [("green", 0), ("yellow", 1), ("red", 2)];
        colours
            .map(|(name, index)| {
                curve(name, rates(), move |rate| two_rate_share(rate).map(|all| all[index]))
            })
            .to_vec()
    },
};

/// Mbit/s of each colour of a steady stream through a two-rate marker.
fn two_rate_share(rate: f64) -> Result<[f64; 3], BucketError> {
    let plan = TwoRate {
        committed: mbps(10.0),
        committed_burst: Bytes::new(30_000),
        peak: mbps(20.0),
        peak_burst: Bytes::new(30_000),
    };
    let mut meter = TrTcm::new(&plan)?;
    let (gap_ns, mut counts) = (8000.0 / rate * 1e3, [0.0; 3]);
    let packets = bytes(3e9 / gap_ns).count();
    for index in 0..packets {
        let at_ns = bytes(index as f64 * gap_ns).count();
        let mark = meter.arrive(at_ns, 1000, Colour::Green);
        counts[usize::from(colour_digit(mark.colour)) - 1] += rate / packets as f64;
    }
    Ok(counts)
}

pub(super) const BURST_DURATION: Formula = Formula {
    id: "burst-duration",
    title: "How long a full bucket lets the line's rate pass",
    formula: "t = 8 b / (C − r)",
    symbols: &[
        symbol("t", "time", "s"),
        DEPTH,
        symbol("C", "rate of the line, above r", "bit/s"),
        RATE,
    ],
    range: "A stream; packets end it up to one packet earlier.",
    source: "RFC 2212, Policing: where C t meets 8 b + r t",
    estimate: false,
    examples: &[
        Example {
            given: "1 MB, 100 Mbit/s, a line of 1 Gbit/s",
            computed: || duration_ms(1e6, 1000.0),
            expected: 8.889,
            tolerance: 1e-4,
            unit: "ms",
            origin: "8e6 / 9e8",
        },
        Example {
            given: "1 MB, 100 Mbit/s, a line of 1 Gbit/s: what passes meanwhile",
            computed: || duration_ms(1e6, 1000.0),
            expected: 8.889,
            tolerance: 1e-4,
            unit: "Mbit",
            origin: "8.889 ms · 1 Gbit/s",
        },
    ],
    plot: &DURATION_PLOT,
};

/// For a bucket of 100 Mbit/s, ms.
fn duration_ms(burst: f64, line: f64) -> f64 {
    let plan = BurstOnLine { burst: bytes(burst), rate: mbps(100.0), line: mbps(line) };
    number(burst_duration_s(&plan)) * 1e3
}

const DURATION_PLOT: Plot = Plot {
    id: "burst-duration",
    title: "How long a burst lasts behind a bucket of 100 Mbit/s",
    x: PlotAxis { label: "rate of the line, Mbit/s", log: true },
    y: PlotAxis { label: "time, ms", log: true },
    curves: || {
        let sizes = [("64 kB", 64e3), ("256 kB", 256e3), ("1 MB", 1e6)];
        let lines = || decades(110.0, 1e5, 90);
        let duration = |size| move |line| Ok::<f64, ()>(duration_ms(size, line));
        sizes.map(|(name, size)| curve(name, lines(), duration(size))).to_vec()
    },
};

pub(super) const ENVELOPE: Formula = Formula {
    id: "bucket-envelope",
    title: "The most that passes a token bucket",
    formula: "A(t) ≤ b + r t / 8",
    symbols: &[symbol("A(t)", "bytes in any window of length t", "bytes"), DEPTH, RATE],
    range: "For every window, wherever it starts; reached when something always waits.",
    source: "RFC 2212, Policing; R. Cruz, IEEE Trans. Information Theory 37(1), 1991, §II",
    estimate: false,
    examples: &[Example {
        given: "1 MB, 100 Mbit/s, 8.889 ms",
        computed: || {
            let span = Duration::from_nanos(8_888_889);
            envelope_bytes(mbps(100.0), bytes(1e6), span) * 8.0 / 1e6
        },
        expected: 8.889,
        tolerance: 1e-4,
        unit: "Mbit",
        origin: "8 + 0.8889, the line's 8.889 ms at 1 Gbit/s",
    }],
    plot: &ENVELOPE_PLOT,
};

const ENVELOPE_PLOT: Plot = Plot {
    id: "bucket-envelope",
    title: "The most that passes buckets of 100 Mbit/s",
    x: PlotAxis { label: "window, ms", log: false },
    y: PlotAxis { label: "bytes, MB", log: false },
    curves: || {
        let passes = |size: f64| {
            move |ms: f64| {
                let span = Duration::from_secs_f64(ms / 1e3);
                Ok::<f64, ()>(envelope_bytes(mbps(100.0), bytes(size), span) / 1e6)
            }
        };
        let windows = || evenly(0.0, 100.0, 50);
        let sizes = [("64 kB", 64e3), ("256 kB", 256e3), ("1 MB", 1e6)];
        sizes.map(|(name, size)| curve(name, windows(), passes(size))).to_vec()
    },
};

pub(super) const SMALLEST_BURST: Formula = Formula {
    id: "smallest-burst",
    title: "The smallest bucket for given traffic",
    formula: "b(r) = max over s ≤ t of A(s, t) − r (t − s) / 8",
    symbols: &[
        symbol("b(r)", "depth of the smallest bucket of rate r", "bytes"),
        symbol("A(s, t)", "bytes that came from s to t, both moments included", "bytes"),
        RATE,
    ],
    range: "Computed as the fullest that a queue served at r ever gets, one queue a rate, in one \
            pass and constant memory. It falls with r and is convex. Below the mean rate it grows \
            with the length of the capture. A token bucket on the way shows as a corner: its rate \
            is where the curve turns flat, its depth the height there.",
    source: "R. Cruz, IEEE Trans. Information Theory 37(1), 1991, §II",
    estimate: false,
    examples: &[Example {
        given: "two packets of 1500 bytes 1 s apart, 8 kbit/s",
        computed: || {
            let mut envelope = Envelope::new(&[8e3]);
            envelope.arrive(0.0, 1500.0);
            envelope.arrive(1e9, 1500.0);
            envelope.burst_at(8e3).unwrap_or(f64::NAN)
        },
        expected: 2000.0,
        tolerance: 1e-12,
        unit: "bytes",
        origin: "1500 − 1000 + 1500",
    }],
    plot: &SMALLEST_PLOT,
};

const SMALLEST_PLOT: Plot = Plot {
    id: "smallest-burst",
    title: "Smallest bucket for 2 s of a full 1 Gbit/s link behind a policer",
    x: PlotAxis { label: "rate of the bucket, Mbit/s", log: true },
    y: PlotAxis { label: "smallest burst, bytes", log: true },
    curves: || {
        let policers = [("10 Mbit/s, 64 kB", 10.0, 64e3), ("30 Mbit/s, 256 kB", 30.0, 256e3)];
        policers.map(|(name, rate, burst)| smallest_bursts(name, rate, burst)).to_vec()
    },
};

/// The inverse of what a policer lets pass of 1500-byte packets that come each 12 µs for 2 s.
fn smallest_bursts(name: &str, rate: f64, burst: f64) -> Curve {
    let mut envelope = Envelope::new(&[]);
    if let Ok(mut bucket) = TokenBucket::new(mbps(rate), bytes(burst)) {
        for at_ns in (0..2_000_000_000_u64).step_by(12_000) {
            if bucket.arrive(at_ns, 1500).is_none() {
                envelope.arrive(at_ns as f64, 1500.0);
            }
        }
    }
    let shown = envelope.vertices().into_iter();
    let shown = shown.filter(|vertex| (1e6..=2e9).contains(&vertex.rate_bps));
    let points = shown.map(|vertex| (vertex.rate_bps / 1e6, vertex.burst_bytes)).collect();
    Curve { label: name.to_owned(), points, steps: false }
}

pub(super) const POLICED_LOSS: Formula = Formula {
    id: "policed-loss",
    title: "What a policer drops of a steady stream",
    formula: "p = 1 − r / R, 0 when R ≤ r",
    symbols: &[
        symbol("p", "share dropped in the long run", "1"),
        symbol("r", "rate of the policer", "bit/s"),
        symbol("R", "offered rate at the same layer", "bit/s"),
    ],
    range: "A stream that does not slow down when it loses. The first burst passes whole.",
    source: "What is offered less what tokens come for",
    estimate: false,
    examples: &[Example {
        given: "1.3 times the rate",
        computed: || number(policed_loss(mbps(10.0), mbps(13.0))) * 100.0,
        expected: 23.08,
        tolerance: 2e-4,
        unit: "%",
        origin: "1 − 1 / 1.3; a policer of a laboratory dropped 22 to 23 %",
    }],
    plot: &POLICED_PLOT,
};

const POLICED_PLOT: Plot = Plot {
    id: "policed-loss",
    title: "What a policer drops of a steady stream",
    x: PlotAxis { label: "offered rate over the policer's", log: false },
    y: PlotAxis { label: "dropped, %", log: false },
    curves: || {
        let loss = |ratio: f64| policed_loss(mbps(10.0), mbps(10.0 * ratio)).map(|p| p * 100.0);
        vec![curve("1 − r / R", evenly(0.5, 5.0, 90), loss)]
    },
};
