//! How many flows show all next hops of a balancer that spreads them evenly (Veitch, Augustin,
//! Teixeira, Friedman: "Failure Control in Multipath Route Tracing", Infocom 2009).

/// Largest probability that a hop is missed.
pub const FAILURE: f64 = 0.05;

/// Flows that must have been seen where `known` next hops are: were there one more, that many
/// would have missed one with a probability of at most `failure`.
///
/// With K = known + 1 next hops, n flows miss at least one with
/// sum over i of (-1)^(i+1) C(K, i) (1 - i/K)^n (inclusion and exclusion).
pub fn flows_needed(known: usize, failure: f64) -> u16 {
    let least = u16::try_from(known + 1).unwrap_or(u16::MAX);
    (least..u16::MAX).find(|&flows| misses(known + 1, flows) <= failure).unwrap_or(u16::MAX)
}

fn misses(next_hops: usize, flows: u16) -> f64 {
    let all = next_hops as f64;
    let mut choose = 1.0;
    let mut sum = 0.0;
    for missed in 1..=next_hops {
        choose *= (all - missed as f64 + 1.0) / missed as f64;
        let sign = if missed % 2 == 1 { 1.0 } else { -1.0 };
        sum += sign * choose * (1.0 - missed as f64 / all).powi(i32::from(flows));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_paper() {
        // Table of the paper for 95 %: 6, 11, 16, 21, 27, 33, 38, 44, 51, 57.
        let needed: Vec<u16> = (1..=10).map(|known| flows_needed(known, FAILURE)).collect();
        assert_eq!(needed, [6, 11, 16, 21, 27, 33, 38, 44, 51, 57]);
    }
}
