//! What a reflector remembers: a counter for each session, and an allowance for each source.
//! Both are bounded, whoever sends what.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::time::MonoTime;

/// Sessions at once, and sources at once.
pub const SESSIONS_MAX: usize = 10_000;
/// A session without packets for so long is over (REFWAIT of RFC 5357 §4.2).
const IDLE: Duration = Duration::from_secs(900);
/// Where there is no room, one without packets for so long makes some.
const IDLE_CROWDED: Duration = Duration::from_secs(60);
/// A full table is searched for idle ones at most so often: 10,000 entries take some 0.1 ms.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

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

/// Packets of one source in the running second.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    since: MonoTime,
    taken: u32,
}

/// Why nobody new has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: HashMap<SessionId, Session>,
    searched: Searched,
    sources: HashMap<IpAddr, Source>,
    sources_searched: Searched,
}

/// When a table was last searched for what is idle.
#[derive(Debug, Default)]
struct Searched(Option<MonoTime>);

impl Searched {
    fn may_again(&mut self, now: MonoTime) -> bool {
        let may = self.0.is_none_or(|last| now.since(last) >= SEARCH_EVERY);
        if may {
            self.0 = Some(now);
        }
        may
    }
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The session of a packet with number `sequence`: a new one also where the sender begins anew.
    pub(super) fn enter(
        &mut self,
        id: SessionId,
        sequence: u32,
        now: MonoTime,
    ) -> Result<&mut Session, Full> {
        if !self.sessions.contains_key(&id) {
            self.make_room(now)?;
        }
        let session = self.sessions.entry(id).or_default();
        if sequence == 0 || now.since(session.last) > IDLE {
            *session = Session::default();
        }
        session.last = now;
        Ok(session)
    }

    pub(super) fn find(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id)
    }

    /// Takes one packet from a source's allowance of `per_second`.
    pub(super) fn allow(&mut self, source: IpAddr, per_second: u32, now: MonoTime) -> bool {
        if !self.sources.contains_key(&source) && self.sources.len() >= SESSIONS_MAX {
            let second = Duration::from_secs(1);
            if !self.sources_searched.may_again(now) {
                return false;
            }
            self.sources.retain(|_, source| now.since(source.since) < second);
            if self.sources.len() >= SESSIONS_MAX {
                return false;
            }
        }
        let source = self.sources.entry(source).or_default();
        if now.since(source.since) >= Duration::from_secs(1) {
            *source = Source { since: now, taken: 0 };
        }
        source.taken = source.taken.saturating_add(1);
        source.taken <= per_second
    }

    fn make_room(&mut self, now: MonoTime) -> Result<(), Full> {
        if self.sessions.len() < SESSIONS_MAX {
            return Ok(());
        }
        if self.searched.may_again(now) {
            self.sessions.retain(|_, session| now.since(session.last) <= IDLE_CROWDED);
        }
        if self.sessions.len() < SESSIONS_MAX { Ok(()) } else { Err(Full) }
    }
}
