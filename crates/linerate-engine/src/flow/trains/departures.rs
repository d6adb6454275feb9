//! Which datagram of a round leaves when: the trains of one direction, in order of time.

use linerate_core::record::Direction;
use linerate_proto::native::{TrainPlan, TrainRound};

/// One datagram that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueDatagram {
    /// After the round begins.
    pub(super) at_ns: u64,
    /// Place of its train in the round.
    pub(super) train: u16,
    /// Index of the datagram in its train.
    pub(super) index: u32,
    /// The length of its payload.
    pub(super) size_bytes: u32,
}

/// The datagrams of a round that are left to send.
#[derive(Clone, Debug)]
pub(super) struct Departures {
    /// Trains that are not through, with the next packet of each.
    trains: Vec<(u16, TrainPlan, u32)>,
}

impl Departures {
    /// The trains of one direction.
    pub(super) fn new(round: &TrainRound, direction: Direction) -> Self {
        let numbered = (0..).zip(&round.trains);
        let own = numbered.filter(|(_, plan)| plan.direction == direction);
        Self { trains: own.map(|(train, plan)| (train, *plan, 0)).collect() }
    }

    /// The datagram that is due next.
    pub(super) fn next(&self) -> Option<DueDatagram> {
        let datagram = |train: u16, plan: TrainPlan, index: u32| DueDatagram {
            at_ns: plan.at_ns + plan.gap_ns * u64::from(index),
            train,
            index,
            size_bytes: plan.size_bytes,
        };
        let due = self.trains.iter().map(|&(train, plan, index)| datagram(train, plan, index));
        due.min_by_key(|due| due.at_ns)
    }

    /// Notes that a datagram has left.
    pub(super) fn note_departure(&mut self, due: DueDatagram) {
        if let Some(train) = self.trains.iter_mut().find(|(train, ..)| *train == due.train) {
            train.2 = due.index + 1;
        }
        self.trains.retain(|(_, plan, next)| *next < plan.count);
    }

    /// No more of its train can be sent.
    pub(super) fn end_train(&mut self, due: DueDatagram) {
        self.trains.retain(|(train, ..)| *train != due.train);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_of_time_and_one_direction_alone() {
        let plan = |direction, count, gap_ns, at_ns| TrainPlan {
            direction,
            size_bytes: 100,
            count,
            gap_ns,
            at_ns,
        };
        let (up, down) = (Direction::Up, Direction::Down);
        let trains = vec![plan(up, 3, 10, 0), plan(down, 9, 1, 0), plan(up, 2, 0, 15)];
        let mut left = Departures::new(&TrainRound { round: 0, quiet_ns: 0, trains }, up);
        let mut order = Vec::new();
        while let Some(due) = left.next() {
            order.push((due.at_ns, due.train, due.index));
            left.note_departure(due);
        }
        assert_eq!(order, [(0, 0, 0), (10, 0, 1), (15, 2, 0), (15, 2, 1), (20, 0, 2)]);
    }

    #[test]
    fn a_train_that_cannot_be_sent_is_left_out() {
        let plan =
            TrainPlan { direction: Direction::Up, size_bytes: 9000, count: 3, gap_ns: 1, at_ns: 0 };
        let small = TrainPlan { size_bytes: 100, count: 1, at_ns: 9, ..plan };
        let round = TrainRound { round: 0, quiet_ns: 0, trains: vec![plan, small] };
        let mut left = Departures::new(&round, Direction::Up);
        left.end_train(left.next().expect("the first"));
        let next = left.next().expect("the other train");
        assert_eq!((next.train, next.size_bytes), (1, 100));
        left.note_departure(next);
        assert_eq!(left.next(), None);
    }
}
