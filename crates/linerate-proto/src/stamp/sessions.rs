//! Memory of a reflector: a counter for each session, and a rate limit for each source. Both are
//! bounded under any attack, and a sender gets replies even when its session has no place.
//!
//! Sessions of few packets are easily forged in great numbers. They have a small separate table, in
//! which a new session replaces the oldest one without a further packet; sessions with more packets
//! move to the large table.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::time::MonoTime;

/// Most established sessions at one time.
pub const SESSIONS_MAX: usize = 10_000;
/// Most new sessions at one time: less than half of the capacity of a table of 2048 buckets, so
/// that it rehashes in place and never grows.
const NEWCOMERS_MAX: usize = 800;
/// Packets after which a session is established.
const GOES_ON: u32 = 3;
/// Silence after which a session is over (REFWAIT of RFC 5357 §4.2).
const IDLE: Duration = Duration::from_secs(900);
/// Silence after which a session is removed from a full table.
const IDLE_CROWDED: Duration = Duration::from_secs(60);
/// Shortest time between two searches of a full table for idle sessions: 10,000 entries take some
/// 0.1 ms.
const SEARCH_EVERY: Duration = Duration::from_secs(1);
/// Number of rate limits; sources share them by a keyed hash.
const ALLOWANCES: usize = 4096;

/// Identity of a session, which has a separate counter: one counter for all would look like loss to
/// each (observed with twampy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Destination address of its packets.
    pub local: IpAddr,
    /// Session identifier (RFC 8972 §3).
    pub ssid: u16,
}

/// The state of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// Sequence number of the next reply.
    pub(super) next: u32,
    pub(super) received: u32,
    /// Sequence and departure of the last reply whose departure is known.
    pub(super) follow_up: Option<(u32, u64)>,
    last: MonoTime,
}

/// Packets in the current second of the sources that share a rate limit.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    since: MonoTime,
    taken: u32,
}

/// Sessions by a keyed 64-bit hash of their identity: among 10,000 sessions two collide in one of
/// 10^11 tables, and whole identities would take twice the memory.
#[derive(Debug)]
pub(super) struct Sessions {
    secret: RandomState,
    going_on: HashMap<u64, Session>,
    searched: Option<MonoTime>,
    newcomers: HashMap<u64, Session>,
    /// New sessions in order of age, with the packets that each had when it was queued; some have
    /// been removed since.
    order: VecDeque<(u64, u32)>,
    allowances: Box<[Allowance]>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            secret: RandomState::new(),
            going_on: HashMap::new(),
            searched: None,
            newcomers: HashMap::new(),
            order: VecDeque::new(),
            allowances: vec![Allowance::default(); ALLOWANCES].into(),
        }
    }
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.going_on.len() + self.newcomers.len()
    }

    /// Octets of memory of both tables.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        // A table has room for 8/7 of its capacity, and an octet beside each entry (hashbrown).
        let entries = (self.going_on.capacity() + self.newcomers.capacity()) * 8 / 7;
        entries * (size_of::<(u64, Session)>() + 1)
            + self.order.capacity() * size_of::<(u64, u32)>()
            + self.allowances.len() * size_of::<Allowance>()
    }

    /// The session of a packet with number `sequence`; sequence 0 starts a new one.
    pub(super) fn get_or_start(
        &mut self,
        id: SessionId,
        sequence: u32,
        now: MonoTime,
    ) -> &mut Session {
        let key = self.secret.hash_one(id);
        if let Some(session) = self.newcomers.get(&key).copied()
            && session.received >= GOES_ON
            && self.makes_room(now)
        {
            self.newcomers.remove(&key);
            self.going_on.insert(key, session);
            // After many insertions and removals the table may have grown.
            self.going_on.shrink_to(SESSIONS_MAX);
        }
        let session = if self.going_on.contains_key(&key) {
            self.going_on.entry(key).or_default()
        } else {
            self.newcomer(key)
        };
        if sequence == 0 || now.duration_since(session.last) > IDLE {
            *session = Session::default();
        }
        session.last = now;
        session
    }

    pub(super) fn find_session(&mut self, id: &SessionId) -> Option<&mut Session> {
        let key = self.secret.hash_one(id);
        self.going_on.get_mut(&key).or_else(|| self.newcomers.get_mut(&key))
    }

    /// Counts a packet of a source; false above its limit of `per_second`.
    pub(super) fn allow_packet(&mut self, source: IpAddr, per_second: u32, now: MonoTime) -> bool {
        let place = self.secret.hash_one(source) as usize % ALLOWANCES;
        let allowance = &mut self.allowances[place];
        if now.duration_since(allowance.since) >= Duration::from_secs(1) {
            *allowance = Allowance { since: now, taken: 0 };
        }
        allowance.taken = allowance.taken.saturating_add(1);
        allowance.taken <= per_second
    }

    fn newcomer(&mut self, key: u64) -> &mut Session {
        if !self.newcomers.contains_key(&key) {
            self.order.push_back((key, 1));
            // Sessions that were established meanwhile are still in the queue.
            while self.order.len() > NEWCOMERS_MAX {
                self.remove_oldest_newcomer();
            }
        }
        self.newcomers.entry(key).or_default()
    }

    /// Removes the oldest new session, or moves it to the end of the queue if a packet of it has
    /// arrived since it was queued.
    fn remove_oldest_newcomer(&mut self) {
        let Some((oldest, before)) = self.order.pop_front() else { return };
        match self.newcomers.get(&oldest) {
            Some(session) if session.received > before => {
                self.order.push_back((oldest, session.received));
            }
            _ => drop(self.newcomers.remove(&oldest)),
        }
    }

    /// Removes idle sessions from a full table; true if one more session has a place.
    fn makes_room(&mut self, now: MonoTime) -> bool {
        let may_search = self.searched.is_none_or(|last| now.duration_since(last) >= SEARCH_EVERY);
        if self.going_on.len() >= SESSIONS_MAX && may_search {
            self.searched = Some(now);
            self.going_on.retain(|_, session| now.duration_since(session.last) <= IDLE_CROWDED);
        }
        self.going_on.len() < SESSIONS_MAX
    }
}
