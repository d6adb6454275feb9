//! What the client makes of a search: rows as they come, the result, its ceiling and caveats.

use linerate_core::record::{
    CapacitySearch, Caveat, CaveatCode, Ceiling, Direction, Event, HeaderLayer, MetricId, Record,
    SearchNews, SearchStep, SearchTrial, Stat, SubInterval, Summary,
};
use linerate_core::search::SubIntervals;

/// A sender below this share of what a search offered was itself the limit: less than the row of
/// the table that the rate may have moved by meanwhile.
const OFFERED_KEPT_RATIO: f64 = 0.95;

/// The account of a search for the capacity, from both ends.
#[derive(Debug)]
pub(crate) struct SearchAccount {
    direction: Direction,
    packet_bytes: u32,
    known: SubIntervals,
}

impl SearchAccount {
    /// The account before anything was told.
    pub(crate) fn new(direction: Direction, packet_bytes: u32) -> Self {
        Self { direction, packet_bytes, known: SubIntervals::default() }
    }

    /// Takes what an end told, and tells of every sub-interval that has ended.
    pub(crate) fn take_news(&mut self, news: &SearchNews, watch: &mut dyn FnMut(&Event)) {
        self.known.extend(&news.spans, &news.trials);
        for &span in &news.spans {
            watch(&Event::SubInterval(self.known.joined_sub_interval(span, self.packet_bytes)));
        }
    }

    /// Puts the search and its result in a record.
    pub(crate) fn fill_record(&self, record: &mut Record) {
        let search = self.known.capacity_search(self.direction, self.packet_bytes);
        let n = search.sub_intervals.len() as u64;
        let row = search.best_interval().map(|best| {
            Summary::from_value(MetricId::IpCapacity, Stat::Value, best.ip_bps)
                .with_n(n)
                .in_direction(self.direction)
        });
        record.summary.extend(row);
        record.search = Some(search);
    }
}

/// The ceiling of a goodput as that of the rate of IP packets, which a search finds.
pub(crate) fn ceiling(record: &Record, goodput: Ceiling) -> Ceiling {
    let found = record.summary_value(MetricId::IpCapacity, Stat::Value, goodput.direction);
    let value = goodput.layers.iter().find(|at| at.layer == HeaderLayer::Ip).map(|at| at.bps);
    let share = value.zip(found).map(|(value, found)| found / value);
    Ceiling { metric: MetricId::IpCapacity, layer: HeaderLayer::Ip, value, share, ..goodput }
}

/// The caveats of a search.
pub(crate) fn caveats(search: &CapacitySearch) -> Vec<Caveat> {
    let all = [unfinished(search), not_kept(search)];
    all.into_iter().flatten().collect()
}

/// The rate was still rising fast when the test ended.
fn unfinished(search: &CapacitySearch) -> Option<Caveat> {
    let last = search.trials.last().filter(|last| !last.confirmed)?;
    let length_ns = search.sub_intervals.last()?.span.length_ns;
    let from_ns = last.t_ns.saturating_sub(length_ns);
    let mut late = search.trials.iter().filter(|trial| trial.t_ns >= from_ns);
    let rising = |trial: &SearchTrial| matches!(trial.step, SearchStep::Fast | SearchStep::Up);
    let first = late.next()?;
    let risen = last.row > first.row && rising(first) && late.all(rising);
    risen.then(|| {
        let offered = last.offered_bps as f64 / 1e6;
        Caveat::new(
            CaveatCode::SearchUnfinished,
            format!("the rate was still rising at the end, at {offered:.0} Mbit/s offered"),
            "the path carries this much or more: search for longer (-t)",
        )
    })
}

/// The sender did not send what was to be offered when it mattered.
fn not_kept(search: &CapacitySearch) -> Option<Caveat> {
    let best = search.best_interval()?;
    let sent_bps = sent_bps(search, best)?;
    let ratio = sent_bps / best.offered_bps.filter(|bps| *bps > 0.0)?;
    (ratio < OFFERED_KEPT_RATIO).then(|| {
        Caveat::new(
            CaveatCode::PaceNotKept,
            format!("the sender sent {:.1} % of the rate to offer", ratio * 100.0),
            "the result may be this host's limit, not the path's: use larger datagrams (-l)",
        )
    })
}

/// The rate that was sent during a sub-interval, by the counts at the statuses of its time.
fn sent_bps(search: &CapacitySearch, row: &SubInterval) -> Option<f64> {
    let within = row.span.start_ns()..row.span.end_ns();
    let mut trials = search.trials.iter().filter(|trial| within.contains(&trial.t_ns));
    let first = trials.next()?;
    let last = trials.next_back()?;
    let datagrams = last.sent.saturating_sub(first.sent) as f64;
    let bits = datagrams * f64::from(search.packet_bytes) * 8.0;
    Some(bits * 1e9 / last.t_ns.saturating_sub(first.t_ns).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::SearchSpan;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Two seconds of 20 statuses each, whose steps and counts of what was sent are given.
    fn search(steps: impl Fn(u64) -> (SearchStep, u16), sent_each: u64) -> CapacitySearch {
        let trials: Vec<SearchTrial> = (0..40)
            .map(|at| {
                let (step, row) = steps(at);
                SearchTrial {
                    t_ns: at * SECOND / 20,
                    missed: 0,
                    sequence_errors: 0,
                    delay_ns: Some(0),
                    rtt_ns: Some(1),
                    sent: at * sent_each,
                    step,
                    confirmed: step == SearchStep::Back,
                    row,
                    offered_bps: linerate_core::search::rate_of_row(row).bits_per_sec(),
                }
            })
            .collect();
        let span = |index| SearchSpan {
            index,
            length_ns: SECOND,
            received: 1000,
            ..SearchSpan::default()
        };
        let mut known = SubIntervals::default();
        known.extend(&[span(0), span(1)], &trials);
        known.capacity_search(Direction::Up, 1500)
    }

    fn caveat_codes(search: &CapacitySearch) -> Vec<CaveatCode> {
        caveats(search).into_iter().map(|caveat| caveat.code).collect()
    }

    #[test]
    fn a_rate_that_rises_to_the_end_is_told_and_one_that_was_held_is_not() {
        let rising = |at: u64| (SearchStep::Fast, at as u16 * 10);
        // As fast as the rates are: 12,000 bits a packet, 1/20 s.
        assert_eq!(caveat_codes(&search(rising, 100_000)), [CaveatCode::SearchUnfinished]);
        let held = |at: u64| if at == 35 { (SearchStep::Hold, 340) } else { rising(at) };
        assert_eq!(caveat_codes(&search(held, 100_000)), []);
        let early = |at: u64| if at == 5 { (SearchStep::Hold, 50) } else { rising(at) };
        assert_eq!(caveat_codes(&search(early, 100_000)), [CaveatCode::SearchUnfinished]);
        let at_most = |_| (SearchStep::Fast, 1000);
        assert_eq!(caveat_codes(&search(at_most, 100_000)), [], "no higher rate was allowed");
    }

    #[test]
    fn a_sender_that_lags_behind_what_it_offers_is_told() {
        // 12 Mbit/s of packets of 1500 bytes are 50 in a twentieth of a second.
        let steady = |_| (SearchStep::Hold, 12);
        assert_eq!(caveat_codes(&search(steady, 50)), []);
        assert_eq!(caveat_codes(&search(steady, 48)), []);
        assert_eq!(caveat_codes(&search(steady, 47)), [CaveatCode::PaceNotKept]);
    }
}
