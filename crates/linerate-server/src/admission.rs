//! Which tests a server runs: so many at once, so long, so wide.
//!
//! A throughput test that shares a host with another measures neither; so one at a time is the
//! default, and the answer to the next client says when to come back.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linerate_core::policy::{Policy, Program, TokenDigest};
use linerate_core::time::MonoTime;
use linerate_engine::flow::admission::{Admission, Allowed, Demand, Permit};
use linerate_proto::native::{Nonce, Proof, Refuse, RefuseCode};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::stop::Stop;

use crate::policy_guard::{PolicyClient, PolicyGuard, PolicyTerms, Reservation};

/// Limits of a server on tests and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Tests that run at once; further clients wait or are refused.
    pub tests: usize,
    /// Streams of one test, both directions and a flow in the background together.
    pub streams: u16,
    /// Time that a test may send.
    pub duration: Duration,
    /// Connections at once that ask, wait or measure.
    pub connections: usize,
    /// A client of iperf3 waits this long for its place before it is told that all are taken.
    pub queue: Duration,
    /// A connection has this long to say what it is.
    pub hello: Duration,
    /// A test may take this much longer than it is planned to send.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            tests: 1,
            streams: 128,
            duration: Duration::from_secs(3600),
            connections: 1024,
            queue: Duration::ZERO,
            hello: Duration::from_secs(5),
            grace: Duration::from_secs(10),
        }
    }
}

/// A gate for one client of a program.
#[derive(Debug)]
pub struct Of<'a> {
    gate: &'a Gate,
    program: Program,
    client: IpAddr,
    /// Token that the client proved to have; none inside for one that the policy does not know.
    shown: OnceLock<Option<TokenDigest>>,
}

impl Of<'_> {
    fn client(&self) -> PolicyClient {
        let token = self.shown.get().copied().flatten();
        PolicyClient { token, ..PolicyClient::without_token(self.program, self.client) }
    }

    fn check_policy(&self, demand: &Demand) -> Result<Option<Reservation>, Refuse> {
        let unknown = self.shown.get().is_some_and(Option::is_none);
        let terms = self.gate.default_terms();
        self.gate.guard.check_demand(demand, &self.client(), terms).map_err(
            |refuse| match unknown {
                true => Refuse {
                    reason: format!("{}; the token shown is not known, or expired", refuse.reason),
                    ..refuse
                },
                false => refuse,
            },
        )
    }
}

impl Admission for Of<'_> {
    fn admit_test(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        let reservation = self.check_policy(demand)?;
        Ok(Permit(Box::new((self.gate.admit_test(demand, peer)?, reservation))))
    }

    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        let reservation = self.check_policy(demand)?;
        Ok(Permit(Box::new((self.gate.admit_in_turn(demand, peer)?, reservation))))
    }

    fn allowed(&self) -> Allowed {
        self.gate.guard.allowed(&self.client()).map(|(_, allowed)| allowed).unwrap_or_default()
    }

    fn overdue(&self) -> String {
        self.gate.overdue(&self.client())
    }

    fn log_in(&self, challenge: Nonce, proof: &Proof) {
        let _ = self.shown.set(self.gate.guard.token_behind(challenge, proof));
    }

    fn duration_max(&self) -> Duration {
        self.gate
            .guard
            .time_of(&self.client())
            .map_or(self.gate.limits.duration, |time| time.min(self.gate.limits.duration))
    }

    fn grace_period(&self) -> Duration {
        self.gate.grace_period()
    }

    fn patience(&self) -> Duration {
        self.gate.patience()
    }
}

/// Counts running tests against the limits.
#[derive(Debug)]
pub struct Gate {
    limits: ServerLimits,
    places: Arc<Mutex<Vec<RunningTest>>>,
    /// Places of tests whose streams only their address ties together, those of proven addresses
    /// apart from the others.
    addresses: Mutex<HashMap<(Program, IpAddr, bool), Weak<TestPlace>>>,
    serial: AtomicU64,
    /// Clients that wait for their place, in order, and until when each has to have asked again.
    line: Mutex<Vec<InLine>>,
    /// The operator's rules for clients, and the bytes that each client moved today.
    guard: PolicyGuard,
}

/// A test that has a place at the gate.
#[derive(Debug)]
struct RunningTest {
    serial: u64,
    /// When it is planned to end, on the monotonic clock.
    end_ns: u64,
    /// Nothing proves its client's address: asked once a client takes the place whose address is.
    unproven: Option<Stop>,
}

/// A waiting client that has not asked again within this has left. A busy machine asks late.
const ASKS_WITHIN: Duration = Duration::from_secs(2);
/// The same for one that is told when to ask, over connections of its own.
const ASKS_BY_TICKET_WITHIN: Duration = Duration::from_secs(6);
/// Such a client is told to ask again after this at the latest.
const ASK_AGAIN_MS: u64 = 2000;
/// Clients that may wait, and those of one address, behind which an office may be.
const LINE_MAX: usize = 256;
const LINE_OF_ONE_MAX: usize = 200;
/// Clients of one address that may hold a ticket without having shown it yet.
const LINE_UNSHOWN_MAX: usize = 32;

/// Identity of a client that waits; several clients may share an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    Address(SocketAddr),
    Ticket(u64),
}

/// A client that is to wait where there is no place for it.
#[derive(Clone, Copy, Debug)]
struct Wait {
    who: Waiter,
    from: IpAddr,
    /// It asks again within this.
    within: Duration,
}

/// A client that waits.
#[derive(Clone, Copy, Debug)]
struct InLine {
    who: Waiter,
    from: IpAddr,
    /// It has asked again by then, or left.
    until: MonoTime,
    /// It has asked again once, or its connection is open. Who only takes tickets, by any number of
    /// requests, does not wait, and nobody waits behind it.
    returned: bool,
}

/// Why a client has to wait, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionWait {
    /// The refusal that is sent to the client.
    pub refuse: Refuse,
    /// Its place in the line, from 1, and what it shows to keep that; none where it may not wait.
    pub place: Option<(usize, u64)>,
}

impl Gate {
    /// A gate with nobody inside.
    pub fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            places: Arc::default(),
            addresses: Mutex::default(),
            serial: AtomicU64::new(0),
            line: Mutex::default(),
            guard: PolicyGuard::default(),
        }
    }

    /// From now on this decides who is let in; tests that run go on.
    pub fn set_policy(&self, policy: Policy) {
        self.guard.set_policy(policy);
    }

    /// Whom the operator lets in.
    pub(crate) const fn policy_guard(&self) -> &PolicyGuard {
        &self.guard
    }

    /// The same gate for clients of a program.
    pub const fn for_client(&self, program: Program, client: IpAddr) -> Of<'_> {
        Of { gate: self, program, client, shown: OnceLock::new() }
    }

    /// Clients that wait before this one: all of them where it does not wait. One that waits is
    /// put in the line, or leaves it where it gets in.
    fn enter_behind(
        &self,
        demand: &Demand,
        waits: Option<Wait>,
        unproven: Option<Stop>,
    ) -> Result<TestPlace, (Refuse, Option<usize>)> {
        let now = monotonic();
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.retain(|client| now < client.until);
        let place = line.iter().position(|client| waits.is_some_and(|wait| wait.who == client.who));
        let before = &line[..place.unwrap_or(line.len())];
        let ahead = before.iter().filter(|client| client.returned).count();
        let entered = self.take_test_place(demand, ahead, unproven);
        let stands = match (&entered, place, waits) {
            (Ok(_), Some(place), _) => {
                line.remove(place);
                None
            }
            (Err(_), Some(place), Some(wait)) => {
                line[place] = wait.in_line(now, true);
                Some(place)
            }
            (Err(_), None, Some(wait)) if has_room(&line, wait.from) => {
                let returned = matches!(wait.who, Waiter::Address(_));
                line.push(wait.in_line(now, returned));
                Some(line.len() - 1)
            }
            _ => None,
        };
        entered.map_err(|refuse| (refuse, stands))
    }

    /// A place for a client that is known by the ticket that it got when it asked before.
    /// # Errors
    /// Why there is none, and where the client stands in the line.
    pub fn admit_by_ticket(
        &self,
        demand: &Demand,
        ticket: Option<u64>,
        client: &PolicyClient,
    ) -> Result<Permit, AdmissionWait> {
        let never = |refuse| AdmissionWait { refuse, place: None };
        let reservation =
            self.guard.check_demand(demand, client, self.default_terms()).map_err(never)?;
        self.check_limits(demand).map_err(never)?;
        let ticket = ticket.unwrap_or_else(|| u64::from_le_bytes(random_bytes()));
        let (who, from) = (Waiter::Ticket(ticket), client.address);
        let waits = Wait { who, from, within: ASKS_BY_TICKET_WITHIN };
        match self.enter_behind(demand, Some(waits), None) {
            Ok(inside) => Ok(Permit(Box::new((inside, reservation)))),
            Err((refuse, place)) => {
                let soon = refuse.retry_after_ms.map(|ms| ms.min(ASK_AGAIN_MS));
                let refuse = Refuse { retry_after_ms: soon, ..refuse };
                Err(AdmissionWait { refuse, place: place.map(|place| (place + 1, ticket)) })
            }
        }
    }

    /// Terms of a test that shares no place, from a client with a proven address.
    const fn default_terms(&self) -> PolicyTerms {
        PolicyTerms { duration_max: self.limits.duration, is_proven: true, joins: false }
    }

    /// Message for a client whose test takes longer than the server or its rule allows.
    fn overdue(&self, client: &PolicyClient) -> String {
        let most = self.limits.duration;
        let by_rule =
            self.guard.allowed(client).and_then(|(rule, allowed)| Some((rule, allowed.time?)));
        match by_rule.filter(|(_, time)| *time < most) {
            Some((rule, time)) => {
                format!("rule {rule:?}: a test sends no longer than {} s", time.as_secs_f64())
            }
            None => format!("a test sends no longer than {} s", most.as_secs_f64()),
        }
    }

    /// Clients that wait for a place.
    pub fn waiting(&self) -> usize {
        let now = monotonic();
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.iter().filter(|client| now < client.until).count()
    }

    /// Number of tests that run now.
    pub fn running(&self) -> usize {
        self.places().len()
    }

    fn places(&self) -> MutexGuard<'_, Vec<RunningTest>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_limits(&self, demand: &Demand) -> Result<(), Refuse> {
        let streams = demand.streams;
        if streams > usize::from(self.limits.streams) {
            let limit = self.limits.streams;
            return Err(refuse_limit(format!("{streams} streams; the limit is {limit}")));
        }
        if let Some(planned) = demand.planned.filter(|planned| *planned > self.limits.duration) {
            let (asked, limit) = (planned.as_secs_f64(), self.limits.duration.as_secs_f64());
            return Err(refuse_limit(format!("{asked} s of sending; the limit is {limit} s")));
        }
        Ok(())
    }

    /// A place beside those that others wait for, or the time until the first running test is
    /// planned to end. Where all are taken, a client with a proven address gets that of one
    /// without.
    fn take_test_place(
        &self,
        demand: &Demand,
        ahead: usize,
        unproven: Option<Stop>,
    ) -> Result<TestPlace, Refuse> {
        let limit = self.limits.tests;
        let now = monotonic().as_nanos();
        let mut places = self.places();
        let gives_way = |place: &RunningTest| unproven.is_none() && place.unproven.is_some();
        let running = places.iter().filter(|place| !gives_way(place)).count();
        if running + ahead >= limit {
            let stay = places.iter().filter(|place| !gives_way(place));
            let next = stay.map(|place| place.end_ns.saturating_sub(now)).min();
            let reason = match ahead {
                0 => format!("{running} of {limit} tests are running"),
                _ => format!("{running} of {limit} tests are running, {ahead} wait"),
            };
            let retry_after_ms = Some((next.unwrap_or(0) / 1_000_000).max(1000));
            return Err(Refuse { retry_after_ms, ..Refuse::new(RefuseCode::Busy, reason) });
        }
        if places.len() >= limit
            && let Some(at) = places.iter().rposition(gives_way)
        {
            let left = places.remove(at);
            left.unproven.iter().for_each(Stop::request_stop);
        }
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let span = demand.planned.unwrap_or(Duration::from_secs(10));
        let end_ns = now + u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1);
        places.push(RunningTest { serial, end_ns, unproven: unproven.clone() });
        Ok(TestPlace { serial, places: self.places.clone(), stop: unproven.unwrap_or_default() })
    }
}

impl Gate {
    /// The same gate for protocols whose streams nothing ties together: those from one address at
    /// one time are one test and take one place, as many as a test may have.
    pub const fn by_address(&self) -> ByAddress<'_> {
        ByAddress { gate: self, program: Program::Iperf2, client: None }
    }

    /// The same for a client of a program whose address is known before it asks.
    pub const fn by_address_of(&self, program: Program, client: IpAddr) -> ByAddress<'_> {
        ByAddress { gate: self, program, client: Some(client) }
    }
}

/// A gate that gives one place to each address.
#[derive(Debug)]
pub struct ByAddress<'a> {
    gate: &'a Gate,
    program: Program,
    client: Option<IpAddr>,
}

impl ByAddress<'_> {
    fn request_permit(
        &self,
        demand: &Demand,
        peer: SocketAddr,
        waits: Option<Wait>,
        is_proven: bool,
    ) -> Result<(Permit, Stop), Refuse> {
        let Self { gate, program, .. } = *self;
        let mut addresses = gate.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.retain(|_, place| place.strong_count() > 0);
        let key = (program, peer.ip(), is_proven);
        // What gave way is nobody's.
        let shared = addresses.get(&key).and_then(Weak::upgrade);
        let shared = shared.filter(|place| !place.stop.is_requested());
        // All requests of a browser's test keep to one rate; streams of iperf 2 have one each.
        let joins = shared.is_some() && program == Program::Http;
        let terms = PolicyTerms { is_proven, joins, ..gate.default_terms() };
        let reservation = gate.guard.check_demand(
            demand,
            &PolicyClient::without_token(program, peer.ip()),
            terms,
        )?;
        gate.check_limits(demand)?;
        if let Some(place) = shared {
            // One count is the lookup's own.
            if Arc::strong_count(&place) > usize::from(gate.limits.streams) {
                let limit = gate.limits.streams;
                return Err(refuse_limit(format!("{limit} streams are open; that is the limit")));
            }
            let stop = place.stop.clone();
            return Ok((Permit(Box::new((place, reservation))), stop));
        }
        let unproven = (!is_proven).then(Stop::new);
        let entered = gate.enter_behind(demand, waits, unproven);
        let place = Arc::new(entered.map_err(|(refuse, _)| refuse)?);
        addresses.insert(key, Arc::downgrade(&place));
        let stop = place.stop.clone();
        Ok((Permit(Box::new((place, reservation))), stop))
    }
}

impl Admission for ByAddress<'_> {
    fn admit_test(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.request_permit(demand, peer, None, true).map(|(permit, _)| permit)
    }

    fn admit_unproven(&self, demand: &Demand, peer: SocketAddr) -> Result<(Permit, Stop), Refuse> {
        self.request_permit(demand, peer, None, false)
    }

    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.request_permit(demand, peer, Some(Wait::from_peer(peer)), true)
            .map(|(permit, _)| permit)
    }

    fn duration_max(&self) -> Duration {
        let guard = &self.gate.guard;
        let time = self.client.map_or_else(
            || guard.time_min(),
            |client| guard.time_of(&PolicyClient::without_token(self.program, client)),
        );
        time.map_or(self.gate.limits.duration, |time| time.min(self.gate.limits.duration))
    }

    fn patience(&self) -> Duration {
        self.gate.patience()
    }
}

impl Admission for Gate {
    fn admit_test(&self, demand: &Demand, _peer: SocketAddr) -> Result<Permit, Refuse> {
        self.check_limits(demand)?;
        let entered = self.enter_behind(demand, None, None).map_err(|(refuse, _)| refuse)?;
        Ok(Permit(Box::new(entered)))
    }

    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.check_limits(demand)?;
        let waits = Some(Wait::from_peer(peer));
        let entered = self.enter_behind(demand, waits, None).map_err(|(refuse, _)| refuse)?;
        Ok(Permit(Box::new(entered)))
    }

    fn duration_max(&self) -> Duration {
        self.limits.duration
    }

    fn grace_period(&self) -> Duration {
        self.limits.grace
    }

    fn patience(&self) -> Duration {
        self.limits.queue
    }
}

/// One running test; leaves when dropped.
#[derive(Debug)]
struct TestPlace {
    serial: u64,
    places: Arc<Mutex<Vec<RunningTest>>>,
    /// Asked once its place is another's.
    stop: Stop,
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| place.serial != self.serial);
    }
}

impl Wait {
    /// One whose connection is open.
    const fn from_peer(peer: SocketAddr) -> Self {
        Self { who: Waiter::Address(peer), from: peer.ip(), within: ASKS_WITHIN }
    }

    fn in_line(self, now: MonoTime, returned: bool) -> InLine {
        let Self { who, from, within } = self;
        InLine { who, from, until: now + within, returned }
    }
}

/// True where one more client of an address may wait.
fn has_room(line: &[InLine], from: IpAddr) -> bool {
    let own = || line.iter().filter(|client| client.from == from);
    line.len() < LINE_MAX
        && own().count() < LINE_OF_ONE_MAX
        && own().filter(|client| !client.returned).count() < LINE_UNSHOWN_MAX
}

fn refuse_limit(reason: String) -> Refuse {
    Refuse::new(RefuseCode::Limit, reason)
}

#[cfg(test)]
mod tests;
