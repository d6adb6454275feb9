//! How evenly streams shared a link.

/// Jain's fairness index (Σx)² / (n Σx²): 1 when all are equal, k/n when k of n share evenly and
/// the others have nothing. `None` for no values, when all are 0 (nothing was shared), and when a
/// value is negative or not finite.
///
/// ```
/// # use linerate_core::stats::jain_index;
/// assert_eq!(jain_index(&[5.0, 5.0, 0.0, 0.0]), Some(0.5));
/// ```
/// # Source
/// R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for resource
/// allocation in shared computer systems", DEC-TR-301 (1984); RFC 5166 §2.3.1.
pub fn jain_index(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| !value.is_finite() || *value < 0.0) {
        return None;
    }
    // Scaled by the largest value, so that no square overflows or vanishes.
    let max = values.iter().copied().fold(0.0, f64::max);
    if max == 0.0 {
        return None;
    }
    let sum: f64 = values.iter().map(|value| value / max).sum();
    let squares: f64 = values.iter().map(|value| (value / max).powi(2)).sum();
    Some(sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_index_is_the_share_of_those_who_have() {
        // DEC-TR-301 §2: twenty dollars, one each to 20 of 100 people, is 20 % fair.
        let mut dollars = [0.0; 100];
        dollars[..20].fill(1.0);
        let index = jain_index(&dollars).expect("something was shared");
        assert!((index - 0.2).abs() < 1e-15, "{index}");
    }

    #[test]
    fn hand_sums_come_out() {
        // (1 + 2 + 3)² / (3 * (1 + 4 + 9)) = 36/42.
        let index = jain_index(&[1.0, 2.0, 3.0]).expect("something was shared");
        assert!((index - 36.0 / 42.0).abs() < 1e-15, "{index}");
        assert_eq!(jain_index(&[9.4e8]), Some(1.0));
    }

    #[test]
    fn nothing_shared_has_no_fairness() {
        for values in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(jain_index(values), None, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn the_index_lies_between_one_nth_and_1(
            values in prop::collection::vec(0.0_f64..1e300, 1..20),
        ) {
            if let Some(index) = jain_index(&values) {
                prop_assert!(index >= 1.0 / values.len() as f64 - 1e-12 && index <= 1.0 + 1e-12);
            }
        }
    }
}
