//! Scales and ticks: 1-2-5 steps on linear axes, decades or 1-2-5 within them on logarithmic ones.
//!
//! Nothing here panics: domains that are empty, reversed or not finite become a plain one.

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long; only positive values have a place.
    Log,
}

/// A map from values to positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisScale {
    kind: AxisKind,
    domain: (f64, f64),
    range: (f64, f64),
}

impl AxisScale {
    /// A scale from `domain` to `range`; a domain that cannot be used is replaced.
    pub(super) fn new(kind: AxisKind, domain: (f64, f64), range: (f64, f64)) -> Self {
        let usable = |value: f64| value.is_finite() && (kind == AxisKind::Linear || value > 0.0);
        let domain = match domain {
            (lo, hi) if usable(lo) && usable(hi) && lo < hi => (lo, hi),
            (lo, hi) if usable(lo) && usable(hi) && kind == AxisKind::Log => {
                (lo.min(hi) / 2.0, lo.max(hi) * 2.0)
            }
            (lo, hi) if usable(lo) && usable(hi) => (lo.min(hi) - 0.5, lo.max(hi) + 0.5),
            _ if kind == AxisKind::Log => (1.0, 10.0),
            _ => (0.0, 1.0),
        };
        Self { kind, domain, range }
    }

    /// The place of a value, held within the range; none for what has no place.
    pub(super) fn position_of(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.kind == AxisKind::Log && value <= 0.0) {
            return None;
        }
        let (lo, hi) = self.domain;
        // Halves keep the difference of the largest numbers finite.
        let share = match self.kind {
            AxisKind::Linear => (value / 2.0 - lo / 2.0) / (hi / 2.0 - lo / 2.0),
            AxisKind::Log => (value.ln() - lo.ln()) / (hi.ln() - lo.ln()),
        };
        let (start, end) = self.range;
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        // The sum may miss the end by a rounding error.
        Some((start + (end - start) * share).clamp(start.min(end), start.max(end)))
    }

    /// The ends of the domain in use.
    pub(super) const fn domain(&self) -> (f64, f64) {
        self.domain
    }
}

/// Round values at about `target` places from the low to the high end of `domain`, in steps of 1,
/// 2 or 5 times a power of ten; the ends themselves when no step fits.
pub(crate) fn linear_ticks(domain: (f64, f64), target: usize) -> Vec<f64> {
    let (lo, hi) = domain;
    let span = hi - lo;
    if !lo.is_finite() || !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    let step = nice_step(span / target.max(1) as f64);
    let first = (lo / step - 1e-9).ceil();
    let ticks = (0..=4 * target.max(1)).map(|index| (first + index as f64) * step);
    let ticks = ticks.map(|tick| if tick == 0.0 { 0.0 } else { tick });
    ticks.take_while(|&tick| tick.is_finite() && tick <= hi + step * 1e-9).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
fn nice_step(raw: f64) -> f64 {
    let power = 10f64.powi((raw.max(f64::MIN_POSITIVE)).log10().floor() as i32);
    let step = [1.0, 2.0, 5.0].iter().map(|m| m * power).find(|step| *step >= raw * (1.0 - 1e-9));
    step.unwrap_or(10.0 * power)
}

/// Ticks of a logarithmic axis: 1-2-5 within up to three decades, whole decades up to eight, then
/// every second, third, … decade.
pub(crate) fn log_ticks(domain: (f64, f64)) -> Vec<f64> {
    let (lo, hi) = domain;
    if !(lo.is_finite() && hi.is_finite() && lo > 0.0 && hi > lo) {
        return Vec::new();
    }
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let decades = last - first;
    let multiples: &[f64] = if decades <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = usize::try_from(decades / 8 + 1).unwrap_or(1);
    (first..=last)
        .step_by(stride)
        .flat_map(|power| multiples.iter().map(move |m| decimal(*m, power)))
        .filter(|tick| *tick >= lo * (1.0 - 1e-9) && *tick <= hi * (1.0 + 1e-9))
        .collect()
}

/// `multiple × 10^power`, exact where a decimal is: 2e-3 and not 0.002 times a rounded power.
fn decimal(multiple: f64, power: i32) -> f64 {
    format!("{multiple}e{power}").parse().unwrap_or(f64::NAN)
}

/// The domain from the 1-2-5 step below the smallest positive value to that above the largest;
/// none without a positive value.
pub(crate) fn log_domain(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (lo, hi) = extent(values.filter(|value| *value > 0.0))?;
    let power = |value: f64| value.log10().floor() as i32;
    let around = |value: f64| {
        let power = power(value);
        [(1.0, power), (2.0, power), (5.0, power), (1.0, power + 1)].map(|(m, p)| decimal(m, p))
    };
    let below = around(lo).into_iter().rev().find(|step| *step > 0.0 && *step <= lo);
    let above = around(hi).into_iter().find(|step| step.is_finite() && *step >= hi);
    Some((below.unwrap_or(lo), above.unwrap_or(hi)))
}

/// The domain from `floor` or the smallest value, whichever is lower, to the round value at or
/// above the largest; none without a value.
pub fn linear_domain(
    values: impl Iterator<Item = f64>,
    floor: f64,
    target: usize,
) -> Option<(f64, f64)> {
    let (lo, hi) = extent(values)?;
    let lo = lo.min(floor);
    let step = nice_step((hi / 2.0 - lo / 2.0) * 2.0 / target.max(1) as f64);
    let round = |value: f64| if value.is_finite() { Some(value) } else { None };
    let up = round((hi / step - 1e-9).ceil() * step).unwrap_or(hi);
    let down = round((lo / step + 1e-9).floor() * step).unwrap_or(lo);
    Some(if up > down { (down, up) } else { (down, down + 1.0) })
}

/// Smallest and largest finite value.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |seen, value| {
        let (lo, hi) = seen.unwrap_or((value, value));
        Some((lo.min(value), hi.max(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_inside() {
        let cases: &[((f64, f64), usize, &[f64])] = &[
            ((0.0, 100.0), 5, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
            ((0.0, 586.0), 4, &[0.0, 200.0, 400.0]),
            ((-30.0, 100.0), 5, &[0.0, 50.0, 100.0]),
            ((0.13, 0.29), 4, &[0.15, 0.2, 0.25]),
            ((1e6, 1.000_004e6), 4, &[1e6, 1_000_001.0, 1_000_002.0, 1_000_003.0, 1_000_004.0]),
        ];
        for (domain, target, expected) in cases {
            let got = linear_ticks(*domain, *target);
            assert_eq!(got.len(), expected.len(), "{domain:?}: {got:?}");
            for (got, expected) in got.iter().zip(*expected) {
                assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{domain:?}");
            }
        }
    }

    #[test]
    fn log_ticks_thin_out_as_decades_grow() {
        let cases: &[((f64, f64), &[f64])] = &[
            ((10.0, 100.0), &[10.0, 20.0, 50.0, 100.0]),
            ((3.0, 30.0), &[5.0, 10.0, 20.0]),
            ((1.0, 1e4), &[1.0, 10.0, 100.0, 1e3, 1e4]),
            ((1e-3, 2e-3), &[1e-3, 2e-3]),
        ];
        for (domain, expected) in cases {
            assert_eq!(log_ticks(*domain), *expected, "{domain:?}");
        }
        assert!(log_ticks((1e-300, 1e300)).len() <= 10);
    }

    #[test]
    fn no_domain_breaks_a_scale() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1.0, 1e300, f64::MAX, f64::MIN];
        for kind in [AxisKind::Linear, AxisKind::Log] {
            for lo in odd {
                for hi in odd {
                    let scale = AxisScale::new(kind, (lo, hi), (10.0, 90.0));
                    for value in odd {
                        let place = scale.position_of(value);
                        assert!(place.is_none_or(|at| (10.0..=90.0).contains(&at)), "{scale:?}");
                    }
                    assert!(linear_ticks((lo, hi), 5).len() < 30);
                    assert!(log_ticks((lo, hi)).len() < 30);
                }
                let _ = (log_domain(odd.into_iter()), linear_domain(odd.into_iter(), lo, 5));
            }
        }
    }

    #[test]
    fn domains_end_at_round_values() {
        assert_eq!(log_domain([324.0, 90_909.0].into_iter()), Some((200.0, 1e5)));
        assert_eq!(log_domain([0.0, -1.0].into_iter()), None);
        assert_eq!(linear_domain([482.0, 372.0].into_iter(), 0.0, 5), Some((0.0, 500.0)));
        assert_eq!(linear_domain([-12.0, 82.0].into_iter(), 0.0, 5), Some((-20.0, 100.0)));
    }
}
