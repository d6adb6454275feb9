//! What a reflector remembers: a counter for each session, and an allowance for each source.
//! Both are bounded, whoever sends what, and neither keeps a sender without an answer.
//!
//! A session of few packets is one of many that anybody can make up with forged sources. Such ones
//! have a small table of their own, in which each newcomer takes the place of the oldest of which
//! no further packet came; those that go on stay.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::time::MonoTime;

/// Sessions at once that go on.
pub const SESSIONS_MAX: usize = 10_000;
/// Sessions at once that have just begun: less than half of what their table of 2048 buckets has
/// room for, so that it makes room for one more within itself and never grows.
const NEWCOMERS_MAX: usize = 800;
/// Packets after which a session is one that goes on.
const GOES_ON: u32 = 3;
/// A session without packets for so long is over (REFWAIT of RFC 5357 §4.2).
const IDLE: Duration = Duration::from_secs(900);
/// Where there is no room, one without packets for so long makes some.
const IDLE_CROWDED: Duration = Duration::from_secs(60);
/// A full table is searched for idle ones at most so often: 10,000 entries take some 0.1 ms.
const SEARCH_EVERY: Duration = Duration::from_secs(1);
/// Allowances; sources share them by a hash that nobody outside knows.
const ALLOWANCES: usize = 4096;

/// Whose counter it is. A counter for all would look like loss to each (seen with twampy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// The sender.
    pub source: SocketAddr,
    /// The address that it sends to.
    pub local: IpAddr,
    /// RFC 8972 §3.
    pub ssid: u16,
}

/// The state of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// Number of the next reply.
    pub(super) next: u32,
    pub(super) received: u32,
    /// Number of the last reply of which it is known when it left.
    pub(super) follow_up: Option<(u32, u64)>,
    last: MonoTime,
}

/// Packets of the sources of one allowance in the running second.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    since: MonoTime,
    taken: u32,
}

/// Sessions by a hash of their identity: 64 bits with a secret, since 10,000 of them are the same
/// by chance once in 10^11 tables, and an identity in whole would take twice the memory.
#[derive(Debug)]
pub(super) struct Sessions {
    secret: RandomState,
    going_on: HashMap<u64, Session>,
    searched: Option<MonoTime>,
    newcomers: HashMap<u64, Session>,
    /// Newcomers in their order, and some that have left since; with the packets that each had when
    /// it got its place in it.
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

    /// Octets of memory that all this takes.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        // A table has room for 8/7 of its capacity, and an octet beside each entry (hashbrown).
        let entries = (self.going_on.capacity() + self.newcomers.capacity()) * 8 / 7;
        entries * (size_of::<(u64, Session)>() + 1)
            + self.order.capacity() * size_of::<(u64, u32)>()
            + self.allowances.len() * size_of::<Allowance>()
    }

    /// The session of a packet with number `sequence`: a new one also where the sender begins anew.
    pub(super) fn enter(&mut self, id: SessionId, sequence: u32, now: MonoTime) -> &mut Session {
        let key = self.secret.hash_one(id);
        if let Some(session) = self.newcomers.get(&key).copied()
            && session.received >= GOES_ON
            && self.makes_room(now)
        {
            self.newcomers.remove(&key);
            self.going_on.insert(key, session);
            // After many came and went it may have grown to make room for one more.
            self.going_on.shrink_to(SESSIONS_MAX);
        }
        let session = if self.going_on.contains_key(&key) {
            self.going_on.entry(key).or_default()
        } else {
            self.newcomer(key)
        };
        if sequence == 0 || now.since(session.last) > IDLE {
            *session = Session::default();
        }
        session.last = now;
        session
    }

    pub(super) fn find(&mut self, id: &SessionId) -> Option<&mut Session> {
        let key = self.secret.hash_one(id);
        self.going_on.get_mut(&key).or_else(|| self.newcomers.get_mut(&key))
    }

    /// Takes one packet from a source's allowance of `per_second`.
    pub(super) fn allow(&mut self, source: IpAddr, per_second: u32, now: MonoTime) -> bool {
        let place = self.secret.hash_one(source) as usize % ALLOWANCES;
        let allowance = &mut self.allowances[place];
        if now.since(allowance.since) >= Duration::from_secs(1) {
            *allowance = Allowance { since: now, taken: 0 };
        }
        allowance.taken = allowance.taken.saturating_add(1);
        allowance.taken <= per_second
    }

    fn newcomer(&mut self, key: u64) -> &mut Session {
        if !self.newcomers.contains_key(&key) {
            self.order.push_back((key, 1));
            // Those that went on are in the order, too, until their turn comes.
            while self.order.len() > NEWCOMERS_MAX {
                self.next_in_order_leaves();
            }
        }
        self.newcomers.entry(key).or_default()
    }

    /// The oldest newcomer leaves, or goes to the end of the order where a packet of it came since
    /// it got its place: each goes there once at most until its next packet.
    fn next_in_order_leaves(&mut self) {
        let Some((oldest, before)) = self.order.pop_front() else { return };
        match self.newcomers.get(&oldest) {
            Some(session) if session.received > before => {
                self.order.push_back((oldest, session.received));
            }
            _ => drop(self.newcomers.remove(&oldest)),
        }
    }

    /// Whether one more session may go on.
    fn makes_room(&mut self, now: MonoTime) -> bool {
        let may_search = self.searched.is_none_or(|last| now.since(last) >= SEARCH_EVERY);
        if self.going_on.len() >= SESSIONS_MAX && may_search {
            self.searched = Some(now);
            self.going_on.retain(|_, session| now.since(session.last) <= IDLE_CROWDED);
        }
        self.going_on.len() < SESSIONS_MAX
    }
}
