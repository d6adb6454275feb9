//! Rounds out of results that were measured earlier, each by itself.
//!
//! The samples of a result are cut into blocks that follow each other. The first result gives two
//! blocks to each round, one of its first half and one of its second, so that what it drifts by
//! within half its length is part of the floor. What changed between two results is not: only
//! measuring in turn takes that out.

use super::ROUNDS_MIN;
use crate::record::{MetricId, Plan, Record, Series, Stat, Summary};
use crate::stats::median;

/// Most rounds: as many as a comparison in turn has.
const ROUNDS_MAX: usize = 16;

/// A result whose samples do not make the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// Index of the result, from 0.
    pub index: usize,
    /// Metric whose samples are too few.
    pub metric: MetricId,
    /// Number of its samples.
    pub has: usize,
    /// Number of samples that the rounds take.
    pub needs: usize,
}

/// The parts of a comparison of `records`: round by round one of each, then another one of the
/// first. They have the summary of their block alone. The results are all pings, or all flow tests.
/// # Errors
/// When a result has too few samples.
pub fn rounds_of(records: &[Record]) -> Result<Vec<Record>, TooFew> {
    let (metric, stat) = compared_by(records);
    let samples: Vec<Samples<'_>> =
        records.iter().map(|record| Samples::from_record(record, metric)).collect();
    let mut rounds = ROUNDS_MAX;
    for (index, samples) in samples.iter().enumerate() {
        // The first one gives two blocks to each round.
        let each = if index == 0 { 2 } else { 1 };
        let (has, needs) = (samples.sample_count(), each * ROUNDS_MIN as usize);
        if has < needs {
            return Err(TooFew { index, metric, has, needs });
        }
        rounds = rounds.min(has / each);
    }
    let first = samples[0].blocks(2 * rounds);
    let others: Vec<Vec<f64>> = samples[1..].iter().map(|samples| samples.blocks(rounds)).collect();
    let part = |record: &Record, value: f64| {
        let (tool, plan) = (record.tool.clone(), record.plan.clone());
        let mut part = Record::from_plan(record.id, tool, plan, record.started_at);
        part.summary = vec![Summary::from_value(metric, stat, value)];
        part
    };
    let mut parts = Vec::new();
    for round in 0..rounds {
        parts.push(part(&records[0], first[round]));
        let other = records[1..].iter().zip(&others);
        parts.extend(other.map(|(record, blocks)| part(record, blocks[round])));
        parts.push(part(&records[0], first[rounds + round]));
    }
    Ok(parts)
}

/// The kernel's round trip where all have samples of it, else that of the program; the goodput of
/// flow tests.
fn compared_by(records: &[Record]) -> (MetricId, Stat) {
    let pings = records.iter().all(|record| matches!(record.plan, Plan::Ping(_)));
    let kernel =
        |record: &Record| Samples::from_record(record, MetricId::RttKernel).sample_count() > 0;
    match pings {
        true if records.iter().all(kernel) => (MetricId::RttKernel, Stat::P50),
        true => (MetricId::Rtt, Stat::P50),
        false => (MetricId::Goodput, Stat::Value),
    }
}

/// The samples of a result, in order of time.
enum Samples<'a> {
    /// Single values, of which a block has the median.
    Single(Vec<f64>),
    /// Means over intervals of every stream, of which a block has the mean, summed over streams.
    Intervals { streams: Vec<&'a Series>, from_ns: u64 },
}

impl<'a> Samples<'a> {
    fn from_record(record: &'a Record, metric: MetricId) -> Self {
        let first = record.series.iter().find(|series| series.metric == metric);
        let same = |series: &&Series| {
            first.is_some_and(|first| {
                series.metric == metric
                    && series.direction == first.direction
                    && series.payload_bytes == first.payload_bytes
            })
        };
        let series: Vec<&Series> = record.series.iter().filter(same).collect();
        if metric == MetricId::Goodput {
            let from_ns = match &record.plan {
                Plan::Tcp(plan) => plan.test.omit_ns,
                Plan::Udp(plan) => plan.test.omit_ns,
                _ => 0,
            };
            return Self::Intervals { streams: series, from_ns };
        }
        Self::Single(
            series.iter().flat_map(|series| &series.values).filter_map(|value| *value).collect(),
        )
    }

    fn sample_count(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            // A block has an interval of every stream.
            Self::Intervals { streams, from_ns } => {
                streams.iter().map(|series| intervals(series, *from_ns).count()).min().unwrap_or(0)
            }
        }
    }

    /// A value of each of `count` blocks; there are at least as many samples.
    fn blocks(&self, count: usize) -> Vec<f64> {
        let range =
            |length: usize, block: usize| (block * length / count)..((block + 1) * length / count);
        match self {
            Self::Single(values) => (0..count)
                .map(|block| median(&values[range(values.len(), block)]).unwrap_or_default())
                .collect(),
            Self::Intervals { streams, from_ns } => {
                let mut sums = vec![0.0; count];
                for stream in streams {
                    let intervals: Vec<(f64, f64)> = intervals(stream, *from_ns).collect();
                    for (block, sum) in sums.iter_mut().enumerate() {
                        let part = &intervals[range(intervals.len(), block)];
                        let length: f64 = part.iter().map(|(length, _)| length).sum();
                        let moved: f64 = part.iter().map(|(length, rate)| length * rate).sum();
                        *sum += moved / length;
                    }
                }
                sums
            }
        }
    }
}

/// Length and value of the intervals that begin after `from_ns`.
fn intervals(series: &Series, from_ns: u64) -> impl Iterator<Item = (f64, f64)> {
    let begins = std::iter::once(0).chain(series.t_ns.iter().copied());
    let each = begins.zip(&series.t_ns).zip(&series.values);
    each.filter_map(move |((begin, end), value)| {
        let length = end.checked_sub(begin).filter(|length| *length > 0 && begin >= from_ns)?;
        Some((length as f64, (*value)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Comparison, Verdict};
    use crate::record::{
        ComparePlan, ComparisonCandidate, Direction, FlowSide, PingPlan, RecordId, TcpPlan,
        TcpTest, Tool,
    };
    use crate::time::WallTime;

    fn record(plan: Plan, series: Vec<Series>) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record { series, ..Record::from_plan(id, tool, plan, at) }
    }

    fn ping_record(metric: MetricId, values: &[Option<f64>]) -> Record {
        let series = Series {
            metric,
            direction: None,
            flow: None,
            side: None,
            payload_bytes: Some(56),
            t_ns: (1..=values.len() as u64).collect(),
            values: values.to_vec(),
        };
        record(Plan::Ping(PingPlan::default()), vec![series])
    }

    /// Two streams with these goodputs in successive intervals of 100 ms, the first 200 ms omitted.
    fn tcp_record(rates: &[f64]) -> Record {
        let series = |flow| Series {
            metric: MetricId::Goodput,
            direction: Some(Direction::Up),
            flow: Some(flow),
            side: Some(FlowSide::Receiver),
            payload_bytes: None,
            t_ns: (1..=rates.len() as u64).map(|n| n * 100_000_000).collect(),
            values: rates.iter().map(|rate| Some(*rate)).collect(),
        };
        let test = TcpTest { omit_ns: 200_000_000, ..TcpTest::default() };
        let plan = Plan::Tcp(TcpPlan { test, ..TcpPlan::default() });
        record(plan, vec![series(0), series(1)])
    }

    fn compared(records: &[Record]) -> Comparison {
        let candidates = records
            .iter()
            .map(|record| ComparisonCandidate::new("x", record.plan.clone()))
            .collect();
        let plan = ComparePlan { candidates, rounds: 0, seed: 0 };
        let mut whole = record(Plan::Compare(plan), Vec::new());
        whole.parts = rounds_of(records).expect("enough samples");
        Comparison::from_record(&whole).expect("a comparison")
    }

    #[test]
    fn blocks_have_medians_and_the_first_result_stands_beside_itself() {
        // Of 1 … 24 twelve blocks are pairs: medians 1.5, 3.5 … 23.5. The second half is 12 above
        // the first, which is drift and so the floor; a lost probe is no sample.
        let drifting: Vec<_> = (1..=24).map(|n| Some(f64::from(n))).collect();
        let mut other: Vec<_> = (0..6).map(|n| Some(f64::from(2 * n) + 1.5 + 13.0)).collect();
        other.insert(3, None);
        let [a, b] = [ping_record(MetricId::Rtt, &drifting), ping_record(MetricId::Rtt, &other)];
        let found = compared(&[a.clone(), b]);
        assert_eq!((found.rounds, found.floor), (6, Some(12.0)));
        assert_eq!(found.candidates[0].value, Some(6.5));
        assert_eq!(found.candidates[1].difference.map(|difference| difference.median), Some(13.0));
        assert_eq!(found.candidates[1].verdict, Verdict::Higher);
        let near: Vec<_> = other.iter().flatten().map(|value| Some(value - 2.0)).collect();
        let found = compared(&[a, ping_record(MetricId::Rtt, &near)]);
        assert_eq!(found.candidates[1].verdict, Verdict::NotDistinguishable);
    }

    #[test]
    fn goodput_is_summed_over_streams_after_the_omitted_span() {
        // The two omitted intervals are far off. 12 others: a block each for a and again.
        let a: Vec<f64> = [9e9, 9e9].into_iter().chain((0..12).map(|_| 100.0)).collect();
        let b: Vec<f64> = [0.0, 0.0].into_iter().chain((0..12).map(|_| 300.0)).collect();
        let found = compared(&[tcp_record(&a), tcp_record(&b)]);
        assert_eq!((found.metric, found.stat), (MetricId::Goodput, Stat::Value));
        let values = found.candidates.iter().map(|compared| compared.value);
        assert_eq!(values.collect::<Vec<_>>(), [Some(200.0), Some(600.0)]);
    }

    #[test]
    fn a_result_with_too_few_samples_is_named() {
        let many: Vec<_> = (0..50).map(|n| Some(f64::from(n))).collect();
        let ping = |count: usize| ping_record(MetricId::RttKernel, &many[..count]);
        let error = |records: &[Record]| rounds_of(records).expect_err("too few");
        let metric = MetricId::RttKernel;
        assert_eq!(error(&[ping(11), ping(50)]), TooFew { index: 0, metric, has: 11, needs: 12 });
        assert_eq!(error(&[ping(50), ping(5)]), TooFew { index: 1, metric, has: 5, needs: 6 });
        assert_eq!(rounds_of(&[ping(50), ping(50)]).map(|parts| parts.len()), Ok(16 * 3));
        let none = record(Plan::Ping(PingPlan::default()), Vec::new());
        let metric = MetricId::Rtt;
        assert_eq!(error(&[ping(50), none]), TooFew { index: 0, metric, has: 0, needs: 12 });
    }
}
