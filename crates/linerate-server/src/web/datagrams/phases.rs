//! Which load went on beside a round of datagrams: what records keep of each.
//!
//! A round says nothing of the load, for its ask may come before the first byte of it or after. By
//! its planned time it is told: of the load that has the most of it.

use linerate_core::record::{Direction, PageDatagrams, ProbePhase};
use linerate_core::time::MonoTime;

use super::round_result::RoundResult;

/// A direction that was measured, and the span of its load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSpan {
    pub(crate) direction: Direction,
    pub(crate) begin: MonoTime,
    pub(crate) end: MonoTime,
}

impl LoadSpan {
    /// Overlap of a round's planned time with the load, in nanoseconds.
    fn overlap_ns(&self, round: &RoundResult) -> u64 {
        let (begin, end) = round.planned;
        end.min(self.end).nanos_since(begin.max(self.begin))
    }
}

/// Counts of datagrams at rest and during each load. Of several rounds at rest the first counts, of
/// several during a load the one that overlaps it longest.
pub(crate) fn by_phase(rounds: &[RoundResult], loads: &[LoadSpan]) -> Vec<PageDatagrams> {
    let beside = |round: &RoundResult, load: &LoadSpan| {
        let most = loads.iter().map(|other| other.overlap_ns(round)).max();
        load.overlap_ns(round) > 0 && most == Some(load.overlap_ns(round))
    };
    let at_rest = |round: &&RoundResult| {
        let before = loads.first().is_none_or(|first| round.planned.0 < first.begin);
        before && !loads.iter().any(|load| load.overlap_ns(round) > 0)
    };
    let idle = rounds.iter().find(at_rest).map(|round| round_datagrams(round, ProbePhase::Idle));
    let loaded = loads.iter().filter_map(|load| {
        let phase = match load.direction {
            Direction::Down => ProbePhase::Down,
            Direction::Up => ProbePhase::Up,
        };
        let of = rounds.iter().filter(|round| beside(round, load));
        Some(round_datagrams(of.max_by_key(|round| load.overlap_ns(round))?, phase))
    });
    idle.into_iter().chain(loaded).flatten().collect()
}

fn round_datagrams(round: &RoundResult, phase: ProbePhase) -> [PageDatagrams; 2] {
    [
        round.down.to_page_datagrams(phase, Direction::Down),
        round.up.to_page_datagrams(phase, Direction::Up),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::datagrams::fate::OneWayCounts;

    fn time_at_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * 1_000_000)
    }

    /// A round that is planned from one time to another, and lost so many.
    fn planned_round(begin: u64, end: u64, lost: u64) -> RoundResult {
        let fate = OneWayCounts { lost, sent: 100, ..OneWayCounts::from_arrivals(0, &[]) };
        RoundResult::from_counts(fate, (time_at_ms(begin), time_at_ms(end)))
    }

    #[test]
    fn a_round_is_of_the_load_that_has_the_most_of_its_time() {
        let load = |direction, begin, end| LoadSpan {
            direction,
            begin: time_at_ms(begin),
            end: time_at_ms(end),
        };
        let loads = [load(Direction::Down, 7_000, 9_000), load(Direction::Up, 9_300, 11_500)];
        // At rest; asked for 50 ms before the first byte down; 900 of 1000 ms beside the load up.
        let rounds = [
            planned_round(1_000, 6_000, 1),
            planned_round(6_950, 7_950, 2),
            planned_round(8_900, 10_200, 3),
        ];
        let found = by_phase(&rounds, &loads);
        let lost: Vec<_> = found
            .iter()
            .map(|datagrams| (datagrams.phase, datagrams.direction, datagrams.lost))
            .collect();
        let (down, up) = (Direction::Down, Direction::Up);
        let expected = [
            (ProbePhase::Idle, down, 1),
            (ProbePhase::Idle, up, 1),
            (ProbePhase::Down, down, 2),
            (ProbePhase::Down, up, 2),
            (ProbePhase::Up, down, 3),
            (ProbePhase::Up, up, 3),
        ];
        assert_eq!(lost, expected);
    }

    #[test]
    fn a_round_between_two_loads_or_behind_them_is_of_none() {
        let loads = [LoadSpan {
            direction: Direction::Down,
            begin: time_at_ms(1_000),
            end: time_at_ms(3_000),
        }];
        assert!(
            by_phase(&[planned_round(3_000, 4_000, 1), planned_round(5_000, 6_000, 1)], &loads)
                .is_empty()
        );
        // Without any load all is at rest.
        assert_eq!(by_phase(&[planned_round(1, 2, 7)], &[]).len(), 2);
    }
}
