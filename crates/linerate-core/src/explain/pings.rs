//! A path on which TCP does not come about, by pings: is it out at times, or does it lose at rest?

use super::candidate::{Candidate, share_of};
use super::evidence::{Evidence, Pings};
use super::remedy;
use crate::record::{Cause, Confidence, MetricId, Note, Plan, Record, Series, Sign, SignKind};

/// A stretch without an answer that is an outage, in nanoseconds.
const OUTAGE_NS: u64 = 200_000_000;
/// Outages together, of the time.
const OUT_SHARE: f64 = 0.03;
/// Pings that say anything.
const SENT_MIN: u64 = 40;
/// Share of them lost that keeps a connection from coming about: a SYN and its answer are lost as
/// often, and repeated a few times only.
const LOSES: f64 = 0.3;

/// The last series of pings in a survey, of its smallest size.
pub(super) fn of_record(whole: &Record) -> Option<Pings> {
    let pings = whole.parts.iter().rev().filter(|part| matches!(part.plan, Plan::Ping(_)));
    let mut series = pings.filter_map(|part| {
        part.series.iter().find(|series| series.metric == MetricId::Rtt && series.t_ns.len() > 1)
    });
    series.next().map(of_series)
}

fn of_series(series: &Series) -> Pings {
    let (first, last) = (series.t_ns[0], series.t_ns[series.t_ns.len() - 1]);
    let mut pings = Pings {
        sent: series.values.len() as u64,
        lost: series.values.iter().filter(|value| value.is_none()).count() as u64,
        span_s: last.saturating_sub(first) as f64 / 1e9,
        ..Pings::default()
    };
    let answered = series.t_ns.iter().zip(&series.values).filter(|(_, value)| value.is_some());
    let times: Vec<u64> = answered.map(|(at, _)| *at).collect();
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        if gap >= OUTAGE_NS {
            pings.outages += 1;
            let gap_s = gap as f64 / 1e9;
            pings.outage_s = (pings.outage_s.0.max(gap_s), pings.outage_s.1 + gap_s);
        }
    }
    pings
}

/// TCP did not come about: the path is out at times, and whole between.
pub(super) fn outages(evidence: &Evidence) -> Option<Candidate> {
    let pings = failed(evidence).filter(|pings| pings.outages > 0)?;
    let (longest, all) = pings.outage_s;
    let out = share_of(Some(all), Some(pings.span_s)).filter(|out| *out >= OUT_SHARE)?;
    // What is lost evenly leaves no long stretch by chance: half of the losses lie in them.
    let within = out * pings.sent as f64;
    if within < 0.5 * pings.lost as f64 {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::PingGaps, pings.outages as f64, 1.0),
        Sign::at_least(SignKind::LongestGap, longest * 1e9, OUTAGE_NS as f64),
        Sign::at_least(SignKind::GapShare, out, OUT_SHARE),
    ];
    Some(Candidate::new(Cause::Outages, Confidence::Medium, signs).mended_by(remedy::outages()))
}

/// TCP did not come about: so many packets are lost at rest.
pub(super) fn lossy_pings(evidence: &Evidence) -> Option<Candidate> {
    let pings = failed(evidence).filter(|pings| pings.outages == 0 && pings.lost < pings.sent)?;
    let lost = share_of(Some(pings.lost as f64), Some(pings.sent as f64))?;
    if lost < LOSES {
        return None;
    }
    let signs = vec![Sign::at_least(SignKind::PingsLostAtRest, lost, LOSES)];
    let mut candidate = Candidate::new(Cause::RandomLoss, Confidence::Medium, signs);
    candidate.notes.push(Note::PingsOfEitherWay);
    Some(candidate.mended_by(remedy::random_loss()))
}

fn failed(evidence: &Evidence) -> Option<Pings> {
    evidence.failure.as_ref()?;
    evidence.pings.filter(|pings| pings.sent >= SENT_MIN)
}

#[cfg(test)]
mod tests {
    use super::super::judge_direction;
    use super::*;
    use crate::record::{Direction, PingPlan, RecordId, Tool};
    use crate::time::WallTime;

    /// So many pings, 10 ms apart, of which those are answered.
    fn series(count: u64, answered: impl Fn(u64) -> bool) -> Series {
        Series {
            metric: MetricId::Rtt,
            direction: None,
            flow: None,
            side: None,
            payload_bytes: Some(56),
            t_ns: (0..count).map(|at| at * 10_000_000).collect(),
            values: (0..count).map(|at| answered(at).then_some(4e7)).collect(),
        }
    }

    fn pinged(answered: impl Fn(u64) -> bool) -> Evidence {
        Evidence {
            direction: Some(Direction::Up),
            failure: Some("connect: timed out".to_owned()),
            pings: Some(of_series(&series(300, answered))),
            ..Evidence::default()
        }
    }

    #[test]
    fn the_last_pings_of_a_survey_that_are_a_series_count_from_the_first_to_the_last() {
        let record = |series| {
            let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
            let (id, at) = (RecordId::from_parts(1, [0; 10]), WallTime::from_unix_nanos(0));
            let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
            record.series = series;
            record
        };
        let mut whole = record(Vec::new());
        whole.parts = [10, 300, 1].map(|count| record(vec![series(count, |at| at > 0)])).to_vec();
        let pings = of_record(&whole).expect("two of them");
        // 299 gaps of 10 ms.
        assert_eq!((pings.sent, pings.lost, pings.span_s), (300, 1, 2.99));
    }

    #[test]
    fn a_path_that_is_out_half_of_each_second_is_named_where_tcp_cannot_connect() {
        let verdict = judge_direction(&pinged(|at| at % 100 < 50));
        assert_eq!(verdict.cause, Some(Cause::Outages));
        // The same share lost evenly is loss, and one lost ping nothing.
        let evenly = judge_direction(&pinged(|at| at % 2 == 0));
        assert_eq!(evenly.cause, Some(Cause::RandomLoss));
        assert_eq!(judge_direction(&pinged(|at| at != 100)).cause, None);
    }
}
