//! A visitor whose requests share a connection, as HTTP/2 has it: who moves the bytes asks here how
//! many may go and tells how many went.
//!
//! Requests on one connection are one flow of the record, however many they are. Whatever runs at
//! once in one direction is one transfer, from the begin of the first to the end of the last. What
//! goes down counts as far as the client's kernel acknowledged it, less the share of frames and
//! records. Left out: frames and TLS themselves, which are the server's.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::Direction;
use linerate_core::time::MonoTime;
use linerate_proto::http::Visitor;
use linerate_proto::native::{Refuse, RefuseCode};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, tcp_info};

use super::transfer::{Track, content};
use super::visit_account::ConnectionTraffic;
use super::visits::{Visit, VisitEnd, VisitServing, place_of};
use crate::flow::admission::{Demand, Permit};
use crate::flow::moved;

/// The time that a test is expected to take, for those that wait.
const PLANNED: Duration = Duration::from_secs(20);
/// After a transfer the next one has this long to begin in the same place.
const LINGER: Duration = Duration::from_secs(2);
/// A transfer whose time is over has this long to end. One whose client grants it no window
/// (RFC 9113 §5.2) would never.
const OVERDUE: Duration = Duration::from_secs(10);
/// Time between two points of the account.
const POINT_EVERY: Duration = Duration::from_millis(200);
/// The time of sending that may wait unsent in the socket, in ns. Unsent bytes delay the answers to
/// probes of the same connection (draft-ietf-ippm-responsiveness, on end systems); the bounds are
/// what a wake-up is worth and a probe is not.
const UNSENT_NS: u64 = 5_000_000;
const UNSENT_BYTES: (u64, u64) = (16 << 10, 4 << 20);
const UNSENT_AT_FIRST: i32 = 128 << 10;
/// Bytes of one call.
const PIECE: usize = 64 << 10;
/// Payload of the largest frame (RFC 9113 §4.2), and what is around it: its head (§4.1), and twice
/// what TLS 1.3 adds to a record (RFC 8446 §5.2: head, type, tag of AES-GCM), for frame and head do
/// not fit into one.
const FRAME: u128 = 16_384;
const AROUND: u128 = 9 + 2 * (5 + 1 + 16);

/// A connection of a visitor.
pub struct Guest {
    wire: TcpStream,
    peer: SocketAddr,
    held: OnceLock<Held>,
    ways: [Mutex<Under>; 2],
    legs: AtomicUsize,
    /// When the last transfer ended.
    ended: Mutex<Option<MonoTime>>,
    /// When the time of the last one to begin is over.
    until: Mutex<MonoTime>,
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest").field("peer", &self.peer).finish_non_exhaustive()
    }
}

struct Held {
    visit: Arc<Visit>,
    /// Requests of several tasks share it.
    _permit: Mutex<Permit>,
}

/// The transfers that are under way in one direction.
#[derive(Debug, Default)]
struct Under {
    legs: usize,
    begin: MonoTime,
    /// Bytes that the kernel had acknowledged before.
    before: u64,
    bytes: u64,
    points: Vec<(MonoTime, u64)>,
    moved: ConnectionTraffic,
}

/// One request that moves load; it ends when dropped.
#[derive(Debug)]
pub struct Leg {
    guest: Arc<Guest>,
    direction: Direction,
    until: MonoTime,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guest {
    /// The guest of a connection; `wire` is its socket, which is looked at and never read or
    /// written.
    pub fn new(wire: TcpStream, peer: SocketAddr) -> Arc<Self> {
        let (held, ways, legs, ended, until) = Default::default();
        Arc::new(Self { wire, peer, held, ways, legs, ended, until })
    }

    /// Begins a transfer of at most `most`, behind the same gate as every other test.
    /// # Errors
    /// The answer to the client.
    pub fn begin_transfer(
        self: &Arc<Self>,
        direction: Direction,
        most: Duration,
        agent: Option<&str>,
        serving: &VisitServing<'_>,
    ) -> Result<Leg, Refuse> {
        let refuse =
            |code, reason, retry_after_ms| Refuse { retry_after_ms, ..Refuse::new(code, reason) };
        let held = self.join_visit(agent, serving)?;
        match held.visit.is_over(Arc::strong_count(&held.visit)) {
            None => {}
            Some((say, None)) => return Err(refuse(RefuseCode::Policy, say, None)),
            Some((say, ms)) => return Err(refuse(RefuseCode::Busy, say, ms)),
        }
        let longest = serving.admission.duration_max();
        let Some(bounds) = held.visit.bounds(direction, longest, serving.stop) else {
            let say = format!("this direction has had its {} s", longest.as_secs_f64());
            return Err(refuse(RefuseCode::Limit, say, None));
        };
        let now = monotonic();
        let until = bounds.until.min(now + most);
        let mut under = lock_ignoring_poison(&self.ways[place_of(direction)]);
        if under.legs == 0 {
            (under.begin, under.before, under.bytes) = (now, self.acknowledged(), 0);
            if direction == Direction::Down {
                tcp::set_unsent_low_water(&self.wire, UNSENT_AT_FIRST);
            }
        }
        under.legs += 1;
        drop(under);
        let mut last = lock_ignoring_poison(&self.until);
        *last = until.max(*last);
        drop(last);
        self.legs.fetch_add(1, Ordering::AcqRel);
        Ok(Leg { guest: Arc::clone(self), direction, until })
    }

    fn join_visit(&self, agent: Option<&str>, serving: &VisitServing<'_>) -> Result<&Held, Refuse> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let planned = Some(PLANNED.min(serving.admission.duration_max()));
        let rate_bps = serving.caps.rate_bps;
        let demand = Demand { planned, rate_bps, ..Demand::new(TestKind::Tcp, 1) };
        let permit = serving.admission.admit_test(&demand, self.peer)?;
        let server = self.wire.local_addr().unwrap_or(self.peer);
        let visitor = Visitor::NetworkQuality;
        let visit = serving.visits.join_or_create(visitor, self.peer, server, agent, serving);
        Ok(self.held.get_or_init(|| Held { visit, _permit: Mutex::new(permit) }))
    }

    /// True where it keeps a place without a transfer.
    pub fn is_idle(&self) -> bool {
        let ended = *lock_ignoring_poison(&self.ended);
        self.legs.load(Ordering::Acquire) == 0
            && ended.is_some_and(|ended| monotonic() >= ended + LINGER)
    }

    /// True where it keeps a place with transfers that should have ended.
    pub fn is_overdue(&self) -> bool {
        self.legs.load(Ordering::Acquire) > 0
            && monotonic() >= *lock_ignoring_poison(&self.until) + OVERDUE
    }

    /// True where it has moved any load.
    pub fn has_begun(&self) -> bool {
        self.held.get().is_some()
    }

    /// Gives the place back once nobody else knows the connection; what there is of the test where
    /// this was its last.
    pub fn leave_visit(guest: Arc<Self>) -> Option<VisitEnd> {
        let Self { wire, peer, held, ways, .. } = Arc::into_inner(guest)?;
        let Held { visit, _permit } = held.into_inner()?;
        let (info, syn) = (tcp_info(wire.as_fd()), tcp::saved_syn(wire.as_fd()));
        let moved = ways.map(|under| {
            let mut moved = under.into_inner().unwrap_or_else(PoisonError::into_inner).moved;
            (moved.client, moved.info, moved.syn) = (Some(peer), info, syn);
            moved
        });
        Visit::end_connection(visit, moved)
    }

    fn acknowledged(&self) -> u64 {
        tcp_info(self.wire.as_fd()).and_then(|info| info.bytes_acked).unwrap_or(0)
    }

    /// Payload of a direction that arrived.
    fn arrived(&self, direction: Direction, under: &Under) -> u64 {
        match direction {
            Direction::Up => under.bytes,
            Direction::Down => {
                payload_of(self.acknowledged().saturating_sub(under.before)).min(under.bytes)
            }
        }
    }

    fn end_transfer(&self, direction: Direction) {
        let mut under = lock_ignoring_poison(&self.ways[place_of(direction)]);
        under.legs = under.legs.saturating_sub(1);
        if under.legs == 0 {
            let bytes = self.arrived(direction, &under);
            let points = std::mem::take(&mut under.points);
            let track = Track { begin: under.begin, end: monotonic(), bytes, points };
            moved::add_client_bytes(&self.peer.to_string(), bytes);
            under.moved.add(track);
        }
        drop(under);
        *lock_ignoring_poison(&self.ended) = Some(monotonic());
        self.legs.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Payload in so many bytes of the connection, all of them full frames.
fn payload_of(wire_bytes: u64) -> u64 {
    u64::try_from(u128::from(wire_bytes) * FRAME / (FRAME + AROUND)).unwrap_or(u64::MAX)
}

/// Bytes that may wait unsent where so many went in a span.
fn unsent(bytes: u64, span: Duration) -> i32 {
    let share = u128::from(bytes) * u128::from(UNSENT_NS) / span.as_nanos().max(1);
    let (least, most) = UNSENT_BYTES;
    let share = u64::try_from(share).unwrap_or(most).clamp(least, most);
    i32::try_from(share).unwrap_or(UNSENT_AT_FIRST)
}

impl Leg {
    /// The most bytes that may move now; 0 when its time or the client's bytes are over.
    pub fn take_allowed_bytes(&self) -> usize {
        let Some(held) = self.guest.held.get() else { return 0 };
        if monotonic() >= self.until {
            return 0;
        }
        held.visit.take_allowed_bytes(self.direction, PIECE)
    }

    /// Gives back what was drawn and did not move.
    pub fn give_back(&self, bytes: usize) {
        if let Some(held) = self.guest.held.get() {
            held.visit.give_back(bytes);
        }
    }

    /// How long who moves them waits before, to keep the rate that its rule allows.
    pub fn pacing_delay(&self, bytes: usize) -> Duration {
        let now = monotonic();
        let held = self.guest.held.get();
        held.and_then(|held| held.visit.reserve_slot(self.direction, bytes, now))
            .map_or(Duration::ZERO, |slot| slot.duration_since(now))
    }

    /// Counts what was moved.
    pub fn count_moved_bytes(&self, bytes: usize) {
        let mut under = lock_ignoring_poison(&self.guest.ways[place_of(self.direction)]);
        under.bytes += bytes as u64;
        let now = monotonic();
        let (last, before) = under.points.last().copied().unwrap_or((under.begin, 0));
        if now >= last + POINT_EVERY {
            let arrived = self.guest.arrived(self.direction, &under);
            under.points.push((now, arrived));
            if self.direction == Direction::Down {
                let unsent = unsent(arrived.saturating_sub(before), now.duration_since(last));
                tcp::set_unsent_low_water(&self.guest.wire, unsent);
            }
        }
    }

    /// Until when it may move.
    pub const fn transfer_deadline(&self) -> MonoTime {
        self.until
    }

    /// A number of bytes that nothing on the way can compress.
    pub fn incompressible_bytes(bytes: usize) -> &'static [u8] {
        let all = content();
        &all[..bytes.min(all.len())]
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        self.guest.end_transfer(self.direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_records_are_no_payload() {
        // A frame of 16,384 bytes has 9 + 2 * 22 = 53 around it.
        assert_eq!(payload_of(16_437), 16_384);
        assert_eq!(payload_of(1_643_700_000), 1_638_400_000);
        assert_eq!(payload_of(0), 0);
    }

    #[test]
    fn five_milliseconds_of_the_rate_may_wait_unsent() {
        let second = Duration::from_secs(1);
        // 100 Mbit/s are 12.5 MB a second, and 62,500 bytes in 5 ms.
        assert_eq!(unsent(12_500_000, second), 62_500);
        assert_eq!(unsent(2_500_000, second / 5), 62_500);
        assert_eq!((unsent(0, second), unsent(u64::MAX, second)), (16 << 10, 4 << 20));
    }
}
