//! A straight line through points by least squares, with the interval of its slope.
//!
//! Left out: weights and errors in x. The interval takes the errors of y as independent, normal and
//! equally wide; with few points it is Student's and wide.
//!
//! # Source
//! N. Draper, H. Smith, "Applied Regression Analysis", 3rd ed., §1.2 to §1.4.

use super::{Interval, Z_95};

/// A line y = intercept + slope · x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineFit {
    /// Units of y per unit of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Two-sided interval of 95 % of the slope; `None` with two points, which any line fits.
    pub slope_95: Option<Interval>,
    /// Number of points fitted.
    pub n: usize,
}

impl LineFit {
    /// The line with the least sum of squares of the differences in y.
    ///
    /// With means mx and my: slope = Σ(x−mx)(y−my) / Σ(x−mx)², intercept = my − slope · mx, and the
    /// interval is slope ± t(0.975, n−2) · √(rest / (n−2) / Σ(x−mx)²), where rest is the sum of
    /// squares. `None` with fewer than two different x, and for a value that is not finite.
    pub fn from_points(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
        if points.len() < 2 || !finite {
            return None;
        }
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let sxx: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let sxy: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        if sxx <= 0.0 {
            return None;
        }
        let slope = sxy / sxx;
        let intercept = mean_y - slope * mean_x;
        let rest: f64 = points.iter().map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
        let slope_95 = (points.len() > 2).then(|| {
            let half = student_975(points.len() - 2) * (rest / (n - 2.0) / sxx).sqrt();
            Interval { low: slope - half, high: slope + half }
        });
        Some(Self { slope, intercept, slope_95, n: points.len() })
    }
}

/// 97.5th percentile of Student's t with 1 to 30 degrees of freedom (Draper and Smith, table of t).
const STUDENT_975: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687,
    2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

/// 97.5th percentile of Student's t; beyond the table the first terms of its series in 1/ν
/// (Abramowitz and Stegun 26.7.5), which are good to 1e-4 there.
fn student_975(freedom: usize) -> f64 {
    if let Some(value) = freedom.checked_sub(1).and_then(|at| STUDENT_975.get(at)) {
        return *value;
    }
    let (z, v) = (Z_95, freedom as f64);
    z + (z.powi(3) + z) / (4.0 * v)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_within(got: f64, expected: f64, within: f64) {
        assert!((got - expected).abs() <= within, "{got} is not {expected}");
    }

    #[test]
    fn a_regression_by_hand_comes_out() {
        // x: 1 2 3 4 5, mean 3, Σ(x−3)² = 10. y: 2 4 5 4 5, mean 4.
        // Σ(x−3)(y−4) = (−2)(−2) + (−1)(0) + 0 + (1)(0) + (2)(1) = 6: slope 0.6, intercept 2.2.
        // ŷ: 2.8 3.4 4.0 4.6 5.2; Σ(y−ŷ)² = 0.64 + 0.36 + 1 + 0.36 + 0.04 = 2.4.
        // √(2.4 / 3 / 10) = 0.282843; t(0.975, 3) = 3.1824: 0.6 ± 0.900119.
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let fit = LineFit::from_points(&points).expect("five points");
        assert_within(fit.slope, 0.6, 1e-12);
        assert_within(fit.intercept, 2.2, 1e-12);
        let interval = fit.slope_95.expect("more than two points");
        assert_within(interval.low, 0.6 - 0.900_119, 1e-5);
        assert_within(interval.high, 0.6 + 0.900_119, 1e-5);
    }

    #[test]
    fn an_exact_line_has_no_width_and_two_points_no_interval() {
        let line = |x: f64| (x, 500.0 + 15.0 * x);
        let fit =
            LineFit::from_points(&[line(10.0), line(100.0), line(1000.0)]).expect("three points");
        assert_within(fit.slope, 15.0, 1e-9);
        assert_within(fit.intercept, 500.0, 1e-6);
        let interval = fit.slope_95.expect("three points");
        assert_within(interval.high - interval.low, 0.0, 1e-6);
        assert_eq!(LineFit::from_points(&[line(1.0), line(2.0)]).expect("two").slope_95, None);
    }

    #[test]
    fn what_fixes_no_line_gives_none() {
        assert_eq!(LineFit::from_points(&[]), None);
        assert_eq!(LineFit::from_points(&[(1.0, 1.0)]), None);
        assert_eq!(LineFit::from_points(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(LineFit::from_points(&[(1.0, 1.0), (2.0, f64::NAN)]), None);
    }

    #[test]
    fn percentiles_beyond_the_table_are_those_of_printed_ones() {
        // Printed tables of t: 2.0211 at 40, 1.9840 at 100, and the normal 1.95996 without end.
        for (freedom, expected) in [(40, 2.0211), (100, 1.9840), (1_000_000, 1.959_97)] {
            assert_within(student_975(freedom), expected, 1e-4);
        }
        assert_within(student_975(30), 2.0423, 0.0);
    }
}
