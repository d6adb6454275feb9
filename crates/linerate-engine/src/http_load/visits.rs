//! The tests of visitors that run: which connections are one test, and what it may do.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linerate_core::record::{Direction, Record, Tool};
use linerate_core::time::{MonoTime, WallTime};
use linerate_proto::http::Visitor;
use linerate_sys::clock::{monotonic, wall_time};
use linerate_sys::stop::Stop;

use super::transfer::{Pace, TransferBounds};
use super::visit_account::{ConnectionTraffic, DirectionTraffic, VisitEnds};
use crate::flow::admission::Admission;
use crate::flow::budget::Budget;
use crate::served::{DirectionTotals, LogText, line_of};

/// Longest time of one address's tests: then others have their turn.
pub(super) const TEST: Duration = Duration::from_secs(120);
/// Longest time in which one request moves data.
const TRANSFER: Duration = Duration::from_secs(30);

/// The tests of visitors that run now, by their clients.
#[derive(Debug, Default)]
pub struct Visits(Mutex<HashMap<(IpAddr, Visitor), Weak<Visit>>>);

/// The limits of one client, beside what the gate decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitCaps {
    /// Rate of one direction, all connections together.
    pub rate_bps: Option<u64>,
    /// Payload of both directions together.
    pub bytes: Option<u64>,
    /// Most connections at once.
    pub streams: Option<u16>,
}

/// The settings by which a visitor is served.
#[derive(Clone, Copy)]
pub struct VisitServing<'a> {
    /// Decides which tests may run.
    pub admission: &'a dyn Admission,
    /// The limits of this client.
    pub caps: VisitCaps,
    /// Pages of other sites that may ask, by their origins; `any` is each.
    pub origins: &'a [String],
    /// The visits that run, of all clients.
    pub visits: &'a Visits,
    /// This program, for records.
    pub tool: &'a Tool,
    /// Set when the server is to end.
    pub stop: &'a Stop,
}

/// The log text and the record of a test that is over.
#[derive(Debug)]
pub struct VisitEnd {
    /// The text for the log.
    pub text: LogText,
    /// A record for each direction in which data moved.
    pub records: Vec<Record>,
}

/// A test of one client.
#[derive(Debug)]
pub(super) struct Visit {
    visitor: Visitor,
    ends: VisitEnds,
    begin: (MonoTime, WallTime),
    caps: VisitCaps,
    budget: Budget,
    paces: [Option<Pace>; 2],
    /// When each direction began.
    begun: [OnceLock<MonoTime>; 2],
    ways: Mutex<[DirectionTraffic; 2]>,
}

pub(super) const fn place_of(direction: Direction) -> usize {
    match direction {
        Direction::Up => 0,
        Direction::Down => 1,
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Visits {
    /// The test that a client's connection belongs to: one that runs, or a new one.
    pub(super) fn join_or_create(
        &self,
        visitor: Visitor,
        peer: SocketAddr,
        server: SocketAddr,
        agent: Option<&str>,
        serving: &VisitServing<'_>,
    ) -> Arc<Visit> {
        let mut open = lock_ignoring_poison(&self.0);
        open.retain(|_, visit| visit.strong_count() > 0);
        let key = (peer.ip(), visitor);
        open.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let (tool, agent) = (serving.tool.clone(), agent.map(str::to_owned));
            let ends = VisitEnds { peer, server, agent, name: visitor.name(), tool };
            let visit = Arc::new(Visit::new(visitor, ends, serving.caps));
            open.insert(key, Arc::downgrade(&visit));
            visit
        })
    }
}

impl Visit {
    fn new(visitor: Visitor, ends: VisitEnds, caps: VisitCaps) -> Self {
        let pace = || caps.rate_bps.map(Pace::from_bits_per_sec);
        let (budget, paces) = (Budget::from_amount(caps.bytes), [pace(), pace()]);
        let (begin, begun, ways) =
            ((monotonic(), wall_time()), Default::default(), Mutex::default());
        Self { visitor, ends, begin, caps, budget, paces, begun, ways }
    }

    /// Why it may not go on, if so, and the time after which another may begin.
    pub(super) fn is_over(&self, connections: usize) -> Option<(String, Option<u64>)> {
        if monotonic() >= self.begin.0 + TEST {
            let say =
                format!("this address has tested for {} s: others have a turn", TEST.as_secs());
            return Some((say, Some(5000)));
        }
        let has_left = self.budget.take_up_to(1) == 1;
        self.budget.give_back(usize::from(has_left));
        if !has_left {
            return Some(("today's bytes are used up".to_owned(), None));
        }
        let most = self.caps.streams.filter(|most| connections > usize::from(*most));
        most.map(|most| (format!("{connections} connections; the limit is {most}"), None))
    }

    /// The bounds of a transfer that begins now; none where the direction has had its time.
    pub(super) fn bounds<'a>(
        &'a self,
        direction: Direction,
        longest: Duration,
        stop: &'a Stop,
    ) -> Option<TransferBounds<'a>> {
        let (at, now) = (place_of(direction), monotonic());
        let over = *self.begun[at].get_or_init(|| now) + longest;
        let until = (now + TRANSFER).min(over).min(self.begin.0 + TEST);
        let (pace, budget) = (self.paces[at].as_ref(), self.budget.clone());
        (now < over).then_some(TransferBounds { stop, until, pace, budget })
    }

    /// Takes as much of `wanted` as the client's bytes and its pace allow at once.
    pub(super) fn take_allowed_bytes(&self, direction: Direction, wanted: usize) -> usize {
        let piece = self.paces[place_of(direction)].as_ref().map_or(wanted, Pace::bytes_per_call);
        self.budget.take_up_to(wanted.min(piece))
    }

    /// Gives back what was drawn and did not move.
    pub(super) fn give_back(&self, bytes: usize) {
        self.budget.give_back(bytes);
    }

    /// When so many bytes may have moved, where a rule has a rate.
    pub(super) fn reserve_slot(
        &self,
        direction: Direction,
        bytes: usize,
        now: MonoTime,
    ) -> Option<MonoTime> {
        self.paces[place_of(direction)].as_ref().map(|pace| pace.reserve_slot(bytes, now))
    }

    /// Takes what a connection moved; at the last one, what there is of the test.
    pub(super) fn end_connection(
        visit: Arc<Self>,
        moved: [ConnectionTraffic; 2],
    ) -> Option<VisitEnd> {
        let mut ways = lock_ignoring_poison(&visit.ways);
        for (way, moved) in ways.iter_mut().zip(moved) {
            way.add(moved);
        }
        drop(ways);
        Arc::into_inner(visit).and_then(Self::finish_test)
    }

    fn finish_test(self) -> Option<VisitEnd> {
        let [up, down] = self.ways.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ways = [(Direction::Up, up), (Direction::Down, down)];
        let totals = ways.iter().filter_map(|(direction, way)| {
            let (streams, bytes, span_ns) = way.totals()?;
            Some(DirectionTotals::from_transfer(*direction, streams, bytes, span_ns))
        });
        let totals: Vec<_> = totals.collect();
        let records: Vec<Record> = ways
            .iter()
            .filter_map(|(direction, way)| way.record(*direction, &self.ends, self.begin))
            .collect();
        let line = format!("{}: {}", self.visitor.name(), line_of(&totals));
        let text = LogText { line, ways: totals };
        (!records.is_empty()).then_some(VisitEnd { text, records })
    }
}
