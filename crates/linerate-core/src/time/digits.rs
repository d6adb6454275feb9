//! How many digits of a time the clock that read it justifies. Finding the step is not done here.

/// Decimals of a figure in ms that the step justifies: 6 at 1 ns, 5 at 10 ns, 3 at 1 µs.
pub fn decimals_of_ms(step_ns: f64) -> usize {
    // A tenth of a decade of leave, so that a measured 9.9 ns counts as 10.
    let decades = step_ns.max(1.0).log10() + 0.1;
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].iter().filter(|coarser| decades < **coarser).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_follow_the_step() {
        let cases = [(1.0, 6), (1.9, 6), (9.9, 5), (10.04, 5), (69.8, 5), (100.0, 4), (4e6, 0)];
        for (step, decimals) in cases {
            assert_eq!(decimals_of_ms(step), decimals, "{step} ns");
        }
    }
}
