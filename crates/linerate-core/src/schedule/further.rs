//! Whether further runs confirm a change: by what the path differs from itself while nothing
//! changes (A/A).
//!
//! A detector that follows thousands of series is wrong now and then; a run that is made because it
//! spoke is not chosen by what it shows. So a change is confirmed where each further run lies on
//! its side, beyond what two runs of the unchanged path differ by, and nearer to the level since
//! than to that before.

/// Values before a change that tell how much a path differs from itself.
const VALUES_MIN: usize = 10;
/// Of these differences so many are below the floor.
const FLOOR_SHARE: f64 = 0.95;

/// What one run differs from the next by, on an unchanged path: of 95 % of neighbours, as the
/// difference of their logarithms. None where too few values tell.
pub fn own_difference(before: &[f64]) -> Option<f64> {
    let known: Vec<f64> =
        before.iter().filter(|before| **before > 0.0).map(|before| before.ln()).collect();
    if known.len() < VALUES_MIN {
        return None;
    }
    let mut apart: Vec<f64> = known.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    apart.sort_unstable_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place of some")]
    let place = (FLOOR_SHARE * apart.len() as f64).ceil() as usize;
    Some(apart[place.clamp(1, apart.len()) - 1])
}

/// True if all of `further`, at least one value, confirm that a level changed from `before` to
/// `after`, by more than the `floor` of [`own_difference`].
pub fn confirms(before: f64, after: f64, floor: f64, further: &[f64]) -> bool {
    let way = after.ln() - before.ln();
    let holds = |value: &f64| {
        let went = value.ln() - before.ln();
        *value > 0.0 && went.abs() > floor && went / way >= 0.5
    };
    !further.is_empty() && further.iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_what_neighbours_differ_by_but_for_the_twentieth() {
        // 19 steps of a factor 1.1 and one of 2: ceil(0.95 * 20) = 19 of the 20 are below it.
        let mut values = vec![100.0];
        for at in 0..20 {
            let last = values[at];
            values.push(if at == 7 {
                last * 2.0
            } else if at % 2 == 0 {
                last * 1.1
            } else {
                last / 1.1
            });
        }
        let floor = own_difference(&values).expect("enough");
        assert!((floor - 1.1_f64.ln()).abs() < 1e-12, "{floor}");
        assert_eq!(own_difference(&values[..9]), None);
        assert_eq!(own_difference(&[5.0; 10]), Some(0.0), "it never differs");
        // Zeros of a loss that was taken down to its floor are none.
        assert_eq!(own_difference(&[0.0; 30]), None);
    }

    #[test]
    fn each_further_run_has_to_lie_beyond_the_floor_and_nearer_to_the_level_since() {
        // The level rose from 10 to 40; 20 is half of the way by its logarithm.
        for (further, floor, wanted) in [
            (&[39.0, 41.0][..], 0.1, true),
            (&[39.0, 21.0], 0.1, true),
            (&[39.0, 19.0], 0.1, false),
            (&[10.0, 10.1], 0.1, false),
            (&[2.5, 2.5], 0.1, false),
            (&[39.0], 0.1, true),
            (&[], 0.1, false),
            (&[0.0], 0.1, false),
            // The path differs from itself by a factor of five.
            (&[39.0, 41.0], 5.0_f64.ln(), false),
            (&[39.0, 51.0], 3.8_f64.ln(), true),
        ] {
            assert_eq!(confirms(10.0, 40.0, floor, further), wanted, "{further:?}, {floor}");
        }
        assert!(confirms(940e6, 95e6, 0.05, &[95e6, 90e6]));
        assert!(!confirms(940e6, 95e6, 0.05, &[95e6, 939e6]));
    }
}
