//! Whether a router's answers are those of a token bucket: so many in a row, then so many a
//! second.
//!
//! Linux limits ICMP errors so for each host that they go to: 1 a second after 6 in a row unless
//! net.ipv4.icmp_ratelimit says otherwise (`inet_peer_xrlim_allow`). Loss strikes at random, a
//! bucket where it is empty; the better explanation wins by its likelihood, each parameter paid
//! for (Schwarz's criterion).

/// Least gain in the log-likelihood of the answers by a bucket, over random loss: 20 to 1.
const BETTER: f64 = 3.0;
/// Least number of probes for a fit.
const PROBES_MIN: usize = 8;
/// Rates that are tried, answers per second, with steps of a tenth.
const RATE_MIN: f64 = 0.05;
const RATE_MAX: f64 = 2000.0;
/// Answers in a row that are tried.
const BURSTS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 15.0, 20.0, 50.0, 100.0];
/// A probe that the model gets wrong is possible all the same.
const ERROR_MIN: f64 = 0.005;

/// A bucket that explains a router's answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplyTokenBucket {
    /// Tokens that come per second.
    pub per_second: f64,
    /// Most tokens in the bucket.
    pub burst: f64,
}

/// The bucket that explains which probes were answered, where one does it better than random loss.
/// Each probe has its time in ns and whether it was answered, in the order sent.
pub fn fit_token_bucket(probes: &[(u64, bool)]) -> Option<ReplyTokenBucket> {
    let all = probes.len();
    let answered = probes.iter().filter(|(_, answered)| *answered).count();
    if all < PROBES_MIN || answered == all || answered == 0 {
        return None;
    }
    let (_, rough) = best_of(probes, candidate_buckets(probes, answered))?;
    let near = (-15..=15).map(|step| ReplyTokenBucket {
        per_second: rough.per_second * (1.0 + f64::from(step) / 100.0),
        ..rough
    });
    let (wrong, bucket) = best_of(probes, near)?;
    let parameters = 2.0;
    let of_bucket = likelihood(wrong, all) - parameters / 2.0 * (all as f64).ln();
    let of_loss = likelihood(all - answered, all) - (all as f64).ln() / 2.0;
    (of_bucket - of_loss > BETTER).then_some(bucket)
}

/// Buckets to try: rates in steps, and those at which all that was answered would be used up.
fn candidate_buckets(
    probes: &[(u64, bool)],
    answered: usize,
) -> impl Iterator<Item = ReplyTokenBucket> {
    let span_s = probes.last().map_or(0, |probe| probe.0) as f64 / 1e9
        - probes.first().map_or(0, |probe| probe.0) as f64 / 1e9;
    let steps: Vec<f64> = std::iter::successors(Some(RATE_MIN), |rate| {
        Some(rate * 1.3).filter(|rate| *rate < RATE_MAX)
    })
    .collect();
    BURSTS.iter().flat_map(move |&burst| {
        let used_up = (answered as f64 - burst) / span_s;
        let used_up = (used_up.is_finite() && used_up > 0.0).then_some(used_up);
        let rates: Vec<f64> = steps.iter().copied().chain(used_up).collect();
        rates.into_iter().map(move |per_second| ReplyTokenBucket { per_second, burst })
    })
}

/// The bucket with the fewest wrong guesses; the middle one of equals in a row.
fn best_of(
    probes: &[(u64, bool)],
    buckets: impl Iterator<Item = ReplyTokenBucket>,
) -> Option<(usize, ReplyTokenBucket)> {
    let tried = buckets.map(|bucket| (wrong_guesses(probes, bucket), bucket));
    let tried: Vec<(usize, ReplyTokenBucket)> = tried.collect();
    let least = tried.iter().map(|(wrong, _)| *wrong).min()?;
    let equals = tried.iter().filter(|(wrong, _)| *wrong == least);
    let first = equals.clone().next()?.1;
    let equals: Vec<_> = equals.filter(|(_, bucket)| bucket.burst == first.burst).collect();
    equals.get(equals.len() / 2).map(|equal| **equal)
}

/// Probes whose fate the bucket gets wrong. Each real answer takes a token.
fn wrong_guesses(probes: &[(u64, bool)], bucket: ReplyTokenBucket) -> usize {
    let mut tokens = bucket.burst;
    let mut before = probes.first().map_or(0, |probe| probe.0);
    let mut wrong = 0;
    for &(at_ns, answered) in probes {
        let passed = at_ns.saturating_sub(before) as f64 / 1e9;
        tokens = (tokens + passed * bucket.per_second).min(bucket.burst);
        before = at_ns.max(before);
        // The router sees the probe at a time of its own: to the nearest probe is near enough.
        let expected = tokens >= 1.0 - (passed * bucket.per_second / 2.0).min(0.25);
        wrong += usize::from(expected != answered);
        if answered {
            tokens = (tokens - 1.0).max(0.0);
        }
    }
    wrong
}

/// Log-likelihood of `part` answers of one kind among `all`, at the share that fits them best.
fn likelihood(part: usize, all: usize) -> f64 {
    let (part, all) = (part as f64, all as f64);
    let share = (part / all).clamp(ERROR_MIN, 1.0 - ERROR_MIN);
    part * share.ln() + (all - part) * (1.0 - share).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Random;

    /// Answers of a bucket to probes every so many ns.
    fn limited(every_ns: u64, count: u64, per_second: f64, burst: f64) -> Vec<(u64, bool)> {
        let mut tokens = burst;
        let mut last = 0;
        let each = (0..count).map(|n| {
            let at = n * every_ns;
            tokens = (tokens + (at - last) as f64 / 1e9 * per_second).min(burst);
            last = at;
            let answered = tokens >= 1.0;
            tokens -= if answered { 1.0 } else { 0.0 };
            (at, answered)
        });
        each.collect()
    }

    #[test]
    fn the_default_limit_of_linux_is_found_with_its_rate() {
        // 1 a second after 6 in a row; probes every 200 ms for 10 s: 6 + 1.2 in the burst, then
        // one in five.
        let found = fit_token_bucket(&limited(200_000_000, 50, 1.0, 6.0)).expect("a bucket");
        assert!((0.8..1.25).contains(&found.per_second), "{found:?}");
        for (rate, burst) in [(10.0, 1.0), (100.0, 10.0), (0.5, 3.0)] {
            let found = fit_token_bucket(&limited(5_000_000, 4000, rate, burst)).expect("a bucket");
            assert!((found.per_second / rate - 1.0).abs() < 0.25, "{rate}: {found:?}");
        }
    }

    #[test]
    fn random_loss_is_no_bucket() {
        for share in [0.01, 0.05, 0.2, 0.5] {
            let accused = (0..50).filter(|&seed| {
                let mut random = Random::new(seed, 0);
                let probes: Vec<(u64, bool)> =
                    (0..200).map(|n| (n * 100_000_000, random.next_uniform() >= share)).collect();
                fit_token_bucket(&probes).is_some()
            });
            let accused = accused.count();
            assert!(accused <= 2, "{share}: {accused} of 50");
        }
    }

    #[test]
    fn all_or_none_says_nothing() {
        let all = |answered| (0..50).map(|n| (n * 1_000_000, answered)).collect::<Vec<_>>();
        assert_eq!(
            (fit_token_bucket(&all(true)), fit_token_bucket(&all(false)), fit_token_bucket(&[])),
            (None, None, None)
        );
    }
}
