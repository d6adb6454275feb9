//! Which tests a server lets in: what a test takes of it, who decides, and what a client that was
//! refused could have instead.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{Finish, TcpTest, UdpTest};
use linerate_core::units::BitRate;
use linerate_proto::native::{Fitting, NativeTcpTestRequest, Nonce, Proof, Refuse, RefuseCode};
use linerate_sys::stop::Stop;

use crate::flow::served::GRACE;

/// A place among the running tests, given back when dropped.
pub struct Permit(
    /// Whatever the admission keeps alive for the test.
    pub Box<dyn Any + Send>,
);

/// The demand of a test on a server: its streams, time and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Streams of all directions, a flow in the background among them.
    pub streams: usize,
    /// How long it is planned to send, where that is known.
    pub planned: Option<Duration>,
    /// The kind of the test.
    pub kind: TestKind,
    /// Highest payload rate of one direction, all its streams together, bit/s; none where it is as
    /// fast as it goes, or not told.
    pub rate_bps: Option<u64>,
    /// Directions; 0 where it is not known.
    pub ways: u8,
    /// Payload of all directions together, where the plan tells it.
    pub bytes: Option<u64>,
}

/// The limits that a server sets for one client; none where the server's own limits hold alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Longest time of sending.
    pub time: Option<Duration>,
    /// Highest rate of one direction, all its streams together.
    pub rate_bps: Option<u64>,
    /// Most streams of both directions.
    pub streams: Option<u16>,
}

impl Demand {
    /// The demand of a test of which nothing else is known.
    pub const fn new(kind: TestKind, streams: usize) -> Self {
        Self { streams, planned: None, kind, rate_bps: None, ways: 0, bytes: None }
    }

    /// The demand of a test over UDP.
    pub(crate) fn of_udp(test: &UdpTest) -> Self {
        let each = test.pace.map(BitRate::bits_per_sec).filter(|bps| *bps > 0);
        let streams = test.places().count();
        let ways = ways_of(streams, test.streams);
        let one = test.datagram_budget().map(|size| size.saturating_mul(test.size_bytes.into()));
        Self {
            planned: test.planned_span(),
            rate_bps: each.map(|bps| bps.saturating_mul(test.streams.into())),
            ways,
            bytes: one.map(|bytes| bytes.saturating_mul(ways.into())),
            ..Self::new(TestKind::Udp, streams)
        }
    }

    /// The demand of a test over TCP.
    pub(crate) fn from_tcp_test(test: &TcpTest) -> Self {
        let streams = test.places().count() + usize::from(test.background.is_some());
        let each = test.pace.map(BitRate::bits_per_sec).filter(|bps| *bps > 0);
        let rate_bps = each.map(|bps| bps.saturating_mul(test.streams.into()));
        // The flow in the background has a direction of its own.
        let beside = test.background().and_then(|test| test.pace).map_or(0, BitRate::bits_per_sec);
        let rate_bps = rate_bps.map(|bps| bps.max(beside));
        let ways = ways_of(test.places().count(), test.streams);
        let one = bytes_of(test).filter(|_| test.background.is_none());
        Self {
            planned: least_span(test),
            rate_bps,
            ways: ways + u8::from(test.background.is_some()),
            bytes: one.map(|bytes| bytes.saturating_mul(ways.into())),
            ..Self::new(TestKind::Tcp, streams)
        }
    }

    /// The demand of a request, and of those that are to follow it in the same place.
    pub(crate) fn of_rounds(request: &NativeTcpTestRequest) -> Self {
        let follow = Duration::from_nanos(request.follow_ns.unwrap_or(0));
        let one = Self::from_tcp_test(&request.test);
        Self { planned: one.planned.map(|span| span + follow), ..one }
    }
}

/// The time that a test sends, or the least that its bytes take at its pace.
pub(crate) fn least_span(test: &TcpTest) -> Option<Duration> {
    let Some(bytes) = bytes_of(test) else { return test.planned_span() };
    let bps = test.pace.filter(|pace| pace.bits_per_sec() > 0)?.bits_per_sec();
    let bps = u128::from(bps) * u128::from(test.streams.max(1));
    let ns = u128::from(bytes) * 8 * 1_000_000_000 / bps;
    Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
}

/// Payload of one direction, where that ends a test.
fn bytes_of(test: &TcpTest) -> Option<u64> {
    match test.finish {
        Finish::TimeNs(_) => None,
        Finish::Bytes(bytes) => Some(bytes),
        Finish::Buffers(count) => Some(count.saturating_mul(test.buffer_bytes.into())),
    }
}

/// Directions of a test with so many streams in each.
fn ways_of(streams: usize, each: u16) -> u8 {
    if streams > usize::from(each) { 2 } else { 1 }
}

/// Decides which tests a server runs.
pub trait Admission: Sync {
    /// A permit for a test, or the reason against it.
    /// # Errors
    /// The answer to send to the client.
    fn admit_test(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse>;

    /// The same for a client that waits for its place and asks again and again: those that have
    /// waited longer come first.
    /// # Errors
    /// As above.
    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.admit_test(demand, peer)
    }

    /// The same for a client whose address nothing proves, as of datagrams without a handshake: its
    /// place is for any client to take whose address is proven, and the flag then asks it to stop.
    /// # Errors
    /// As above.
    fn admit_unproven(&self, demand: &Demand, peer: SocketAddr) -> Result<(Permit, Stop), Refuse> {
        self.admit_test(demand, peer).map(|permit| (permit, Stop::new()))
    }

    /// A client of this program's own protocol answered the challenge: from now on it is asked for
    /// what the token behind its proof may. Nothing happens where tokens make no difference.
    fn log_in(&self, _challenge: Nonce, _proof: &Proof) {}

    /// Longest time a test may send.
    fn duration_max(&self) -> Duration;

    /// The limits that the client is told that asked for more.
    fn allowed(&self) -> Allowed {
        Allowed::default()
    }

    /// The refusal of a test by bytes that takes longer than [`Admission::duration_max`].
    fn overdue(&self) -> String {
        format!("a test sends no longer than {} s", self.duration_max().as_secs_f64())
    }

    /// After its planned end a test may take this much longer: what is on the way arrives, the
    /// last answers are slow.
    fn grace_period(&self) -> Duration {
        GRACE
    }

    /// A client that could be told that the server is busy waits this long for its place before.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// The nearest test to one that was refused that keeps all of the client's limits at once; none
/// where it is not limits of size that refused it.
pub(crate) fn fitting(demand: &Demand, allowed: &Allowed, code: RefuseCode) -> Option<Fitting> {
    let ways = usize::from(demand.ways.max(1));
    let each_way = demand.streams.div_ceil(ways);
    let most = allowed.streams.map(|most| (usize::from(most) / ways).max(1));
    let streams = most.map_or(each_way, |most| each_way.min(most)).max(1);
    let rate = allowed.rate_bps.map(|most| demand.rate_bps.map_or(most, |asked| asked.min(most)));
    let time = allowed.time.map(|most| demand.planned.map_or(most, |asked| asked.min(most)));
    let asks_too_much = streams < each_way
        || allowed.rate_bps.is_some_and(|most| demand.rate_bps.is_none_or(|asked| asked > most))
        || allowed.time.is_some_and(|most| demand.planned.is_some_and(|asked| asked > most));
    (code == RefuseCode::Policy && asks_too_much).then(|| Fitting {
        over_udp: demand.kind == TestKind::Udp,
        both_ways: ways > 1,
        time_ms: time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        stream_bps: rate.map(|rate| rate / streams as u64),
        streams: u16::try_from(streams).unwrap_or(u16::MAX),
    })
}
