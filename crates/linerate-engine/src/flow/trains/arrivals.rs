//! What came of a round's trains: the time of the first arrival of each packet.

use linerate_core::record::Direction;
use linerate_proto::native::{ROUND_PACKETS_MAX, TrainHeader, TrainReport, TrainRound};

/// Datagrams of the next round that came before its message did: no more are kept.
const EARLY_MAX: usize = ROUND_PACKETS_MAX as usize;

/// One datagram that came.
#[derive(Clone, Copy, Debug)]
struct Came {
    header: TrainHeader,
    at_ns: u64,
    drops: Option<u32>,
}

/// The packets of trains that arrive, round by round.
#[derive(Debug)]
pub(super) struct TrainArrivals {
    tag: u16,
    /// Rounds that were begun.
    begun: u16,
    early: Vec<Came>,
    round: Option<ReceivingRound>,
}

/// The trains of the round that is open.
#[derive(Debug)]
struct ReceivingRound {
    number: u16,
    /// Stamps of the packets of each train; none of trains of the other direction.
    trains: Vec<Vec<Option<u64>>>,
    missing: usize,
    /// The socket's count of drops before it, and as the last packet of each train came.
    drops_before: Option<u32>,
    drops: Vec<u32>,
}

impl TrainArrivals {
    /// The arrivals of the session with this tag.
    pub(super) const fn new(tag: u16) -> Self {
        Self { tag, begun: 0, early: Vec::new(), round: None }
    }

    /// Begins to take what comes of a round in `direction`; `drops` is the socket's count so far.
    pub(super) fn begin_round(
        &mut self,
        round: &TrainRound,
        direction: Direction,
        drops: Option<u32>,
    ) {
        let own = |of: Direction| if of == direction { usize::MAX } else { 0 };
        let stamps = round.trains.iter();
        let stamps = stamps.map(|plan| vec![None; own(plan.direction).min(plan.count as usize)]);
        let trains: Vec<Vec<Option<u64>>> = stamps.collect();
        self.round = Some(ReceivingRound {
            number: round.round,
            missing: trains.iter().map(Vec::len).sum(),
            drops: vec![0; trains.len()],
            trains,
            drops_before: drops,
        });
        self.begun = round.round + 1;
        for came in std::mem::take(&mut self.early) {
            self.note_arrival(came);
        }
    }

    /// Takes a datagram; whether it is one of these trains.
    pub(super) fn take_datagram(
        &mut self,
        datagram: &[u8],
        at_ns: u64,
        drops: Option<u32>,
    ) -> bool {
        let header = TrainHeader::parse(datagram).filter(|header| header.tag == self.tag);
        header.is_some_and(|header| self.note_arrival(Came { header, at_ns, drops }))
    }

    fn note_arrival(&mut self, came: Came) -> bool {
        let TrainHeader { round: number, train, index, .. } = came.header;
        if number >= self.begun && self.early.len() < EARLY_MAX {
            self.early.push(came);
            return true;
        }
        let Some(round) = self.round.as_mut().filter(|round| round.number == number) else {
            return false;
        };
        let Some(stamp) = round.trains.get_mut(usize::from(train)) else { return false };
        let Some(stamp) = stamp.get_mut(index as usize) else { return false };
        // Of copies the first counts.
        if stamp.is_none() {
            *stamp = Some(came.at_ns);
            round.missing -= 1;
        }
        let drops = &mut round.drops[usize::from(train)];
        *drops = came.drops.unwrap_or(0).max(*drops);
        true
    }

    /// True where everything has come.
    pub(super) fn is_complete(&self) -> bool {
        self.round.as_ref().is_none_or(|round| round.missing == 0)
    }

    /// Ends the round: a report for each train of its direction; `drops` is the socket's count now.
    pub(super) fn end_round(&mut self, drops: Option<u32>) -> Vec<TrainReport> {
        let Some(round) = self.round.take() else { return Vec::new() };
        let own = || (0..).zip(&round.trains).filter(|(_, stamps)| !stamps.is_empty());
        let last = own().map(|(train, _)| train).last();
        let mut before = round.drops_before.unwrap_or(0);
        let mut report = |train: u16, stamps: &[Option<u64>]| {
            let seen = round.drops[usize::from(train)];
            // What was dropped behind the last arrival belongs to the last train at the latest.
            let now = if last == Some(train) { drops.unwrap_or(seen) } else { seen };
            let here = now.saturating_sub(before);
            before = now.max(before);
            let known = drops.is_some() && round.drops_before.is_some();
            let socket_drops = known.then_some(here.into());
            TrainReport { socket_drops, ..TrainReport::from_stamps(round.number, train, stamps) }
        };
        own().map(|(train, stamps)| report(train, stamps)).collect()
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::native::TrainPlan;

    use super::*;

    const TAG: u16 = 77;

    fn train_round(number: u16) -> TrainRound {
        let plan =
            |direction, count| TrainPlan { direction, size_bytes: 100, count, gap_ns: 0, at_ns: 0 };
        let trains = vec![plan(Direction::Up, 3), plan(Direction::Down, 9), plan(Direction::Up, 2)];
        TrainRound { round: number, quiet_ns: 0, trains }
    }

    fn datagram(round: u16, train: u16, index: u32) -> [u8; 16] {
        TrainHeader { round, train, index, tag: TAG }.to_bytes()
    }

    #[test]
    fn every_packet_has_its_fate_and_the_first_copy_counts() {
        let mut arrivals = TrainArrivals::new(TAG);
        // The path may be quicker than the message.
        assert!(arrivals.take_datagram(&datagram(0, 0, 1), 1_000, Some(0)));
        arrivals.begin_round(&train_round(0), Direction::Up, Some(4));
        assert!(arrivals.take_datagram(&datagram(0, 0, 1), 9_000, Some(4)));
        assert!(arrivals.take_datagram(&datagram(0, 2, 0), 1_500, Some(6)));
        assert!(!arrivals.take_datagram(&datagram(0, 1, 0), 1_600, None), "the other direction");
        assert!(!arrivals.take_datagram(&datagram(0, 2, 2), 1_600, None), "beyond its train");
        let stray = TrainHeader { round: 0, train: 0, index: 0, tag: TAG + 1 }.to_bytes();
        assert!(!arrivals.take_datagram(&stray, 1_600, None), "of another session");
        assert!(!arrivals.is_complete());
        let reports = arrivals.end_round(Some(7));
        assert_eq!(reports.len(), 2);
        assert_eq!((reports[0].train, reports[1].train), (0, 2));
        assert_eq!(reports[0].stamps(), [None, Some(1_000), None]);
        assert_eq!(reports[1].stamps(), [Some(1_500), None]);
        // 4 before it; 6 as the last of the second train came, 7 at the end.
        assert_eq!((reports[0].socket_drops, reports[1].socket_drops), (Some(0), Some(3)));
        assert!(!arrivals.take_datagram(&datagram(0, 0, 0), 2_000, None), "it is over");
    }

    #[test]
    fn a_round_is_complete_when_the_last_packet_came() {
        let mut arrivals = TrainArrivals::new(TAG);
        arrivals.begin_round(&train_round(3), Direction::Up, None);
        for (train, index) in [(0, 0), (0, 1), (0, 2), (2, 0)] {
            arrivals.take_datagram(&datagram(3, train, index), 1, None);
            assert!(!arrivals.is_complete());
        }
        arrivals.take_datagram(&datagram(3, 2, 1), 1, None);
        assert!(arrivals.is_complete());
        assert_eq!(arrivals.end_round(None)[0].socket_drops, None);
    }
}
