//! One direction of a run: its streams come, move data for a time, and become a record.
//!
//! The client is the other end, so what goes down is what this end's kernel saw acknowledged, and
//! what goes up is what this end read.

use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Event, Failure, Fault, Finish, FlowSide, HostDeltas, MeasurementEnd,
    Plan, Record, ServerPlan, TcpDirections, TcpPlan, TcpTest, Tool, Via,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::http::load_head;
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use linerate_sys::tcp;

use super::arrive::{LoadArrival, LoadRegistry, refuse};
use super::upload::Upload;
use crate::context::Context;
use crate::environment::local_end;
use crate::flow::Sample;
use crate::flow::account::{Account, rate_bps, server_side};
use crate::flow::peer::plain_address;
use crate::flow::record::record_of;
use crate::flow::registry::Registration;
use crate::flow::tcp::endpoint::{Endpoint, StreamId, StreamRules};

/// The first stream of a direction has this long to come.
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// The others have this long after the first: what has not come then is told in the record.
const OTHERS_WITHIN: Duration = Duration::from_secs(3);
/// Time between two samples that are told.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// No two of them are closer: the last one, at the end, is left out rather than that.
const TOLD_APART: Duration = Duration::from_millis(50);
/// The record keeps one delay in so many.
const KEPT_EVERY: u32 = 2;
/// After the planned end a direction may take this much longer: what is on the way arrives.
const GRACE: Duration = Duration::from_secs(12);
/// A client that acknowledges nothing for this long has vanished.
const VANISHED: Duration = Duration::from_millis(8800);
/// Connections of the direction that follows may come early; more than this leave.
const EARLY_MAX: usize = 128;

/// One direction that a run is to move.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Direction of the load.
    pub direction: Direction,
    /// Number of connections.
    pub streams: u16,
    /// How long they move data.
    pub time: Duration,
    /// Time at the begin that does not count: slow start, and streams that begin one after the
    /// other.
    pub omit: Duration,
    /// The rate that all streams together are held to; none is as fast as possible.
    pub pace: Option<BitRate>,
    /// Where the client is.
    pub peer: SocketAddr,
    /// This program, for the record.
    pub tool: Tool,
}

/// How the streams of a direction stand.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSample {
    /// Direction of the load.
    pub direction: Direction,
    /// Time since its begin.
    pub t_ns: u64,
    /// Payload rate of each stream since the sample before, bit/s.
    pub rates_bps: Vec<f64>,
    /// Smoothed round-trip time of each stream, as this end's kernel has it.
    pub rtt_ns: Vec<Option<u64>>,
    /// Segments that this end sent again so far; none where it receives.
    pub retransmits: Option<u64>,
}

/// A run in the registry: its streams arrive here as long as it is there.
#[derive(Debug)]
pub struct LoadRun {
    token: Token,
    registration: Registration<Token, LoadArrival>,
    /// Connections of a direction whose turn is later.
    early: Vec<LoadArrival>,
}

impl LoadRun {
    /// Waits for streams with `token`; `None` when a run has it already.
    pub fn register_token(registry: &LoadRegistry, token: Token) -> Option<Self> {
        Some(Self { token, registration: registry.register(token)?, early: Vec::new() })
    }

    /// Runs one direction to its end, or until `stop` is asked; `told` gets ten samples a second.
    /// There is always a record: where it failed it says why, and keeps what was measured.
    pub fn direction(
        &mut self,
        plan: &LoadPlan,
        stop: &Stop,
        told: &mut dyn FnMut(&LoadSample),
    ) -> Record {
        let mut watch = |_: &Event| {};
        let mut context =
            Context { tool: plan.tool.clone(), stop: stop.clone(), watch: &mut watch };
        let account = Account {
            ends: vec![local_end(Some(plan.peer.ip()))],
            // What the client received is known by acknowledgements alone.
            one_sided: plan.direction == Direction::Down,
            omit_ns: plan.tcp_test().omit_ns,
            ..Account::default()
        };
        let mut own = None;
        let record = record_of(plan.of_record(), account, &mut context, |context, account| {
            self.measure(plan, context, account, told)?;
            own = account.remote.first().map(|report| (report.stolen_ratio, report.deltas.clone()));
            account.stream_failure().map_or(Ok(()), Err)
        });
        // The server's end is this host.
        with_own(record, own, plan)
    }

    fn measure(
        &mut self,
        plan: &LoadPlan,
        context: &mut Context<'_>,
        account: &mut Account,
        told: &mut dyn FnMut(&LoadSample),
    ) -> Result<(), Failure> {
        let arrivals = self.gather(plan, &context.stop)?;
        let program = arrivals.first().and_then(|arrival| arrival.head.user_agent.clone());
        account.ends.push(MeasurementEnd {
            role: "remote".to_owned(),
            address: Some(plan.peer.ip().to_string()),
            version: program,
            ..MeasurementEnd::default()
        });
        let came = arrivals.len();
        let test = plan.tcp_test();
        account.row_ns_min = test.interval_ns / 4;
        let rules = StreamRules {
            content: incompressible_bytes,
            one_sided: plan.direction == Direction::Down,
            steady: true,
            ..StreamRules::OWN
        };
        let mut endpoint = Endpoint::with_rules(test, rules);
        for arrival in arrivals {
            self.add(arrival, &mut endpoint, account);
        }
        let system = |error: linerate_sys::Error| crate::failure::system(&error);
        endpoint.prepare().map_err(system)?;
        account.begin = monotonic();
        endpoint.start_streams(account.begin).map_err(system)?;
        watch_streams(plan, &endpoint, account, &context.stop, told);
        endpoint.halt_streams();
        account.remote = endpoint.finish();
        if plan.direction == Direction::Down {
            let head = load_head().len() as u64;
            let counts = plan.omit.is_zero();
            account.remote.iter_mut().for_each(|report| without_head(report, head, counts));
        }
        missing(plan, came).map_or(Ok(()), Err)
    }

    /// The connections of a direction, by their numbers: all, or those that came in time.
    fn gather(&mut self, plan: &LoadPlan, stop: &Stop) -> Result<Vec<LoadArrival>, Failure> {
        let mut here: Vec<LoadArrival> = Vec::new();
        for arrival in std::mem::take(&mut self.early) {
            self.route_arrival(arrival, plan, &mut here);
        }
        let mut until = monotonic() + if here.is_empty() { FIRST_WITHIN } else { OTHERS_WITHIN };
        while here.len() < usize::from(plan.streams) && monotonic() < until && !stop.is_requested()
        {
            match self.registration.arrivals.recv_timeout(Duration::from_millis(50)) {
                Ok(arrival) => {
                    let first = here.is_empty();
                    self.route_arrival(arrival, plan, &mut here);
                    if first && !here.is_empty() {
                        until = monotonic() + OTHERS_WITHIN;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        here.sort_by_key(|arrival| arrival.target.stream);
        if here.is_empty() {
            let reason = match stop.is_requested() {
                true => "the run was ended".to_owned(),
                false => format!("none came within {} s", FIRST_WITHIN.as_secs()),
            };
            let peer = plain_address(plan.peer);
            return Err(Failure::new(Fault::PeerMisbehaved, "await streams of", peer, reason));
        }
        Ok(here)
    }

    /// A connection to where it belongs: this direction, a later one, or away.
    fn route_arrival(
        &mut self,
        arrival: LoadArrival,
        plan: &LoadPlan,
        here: &mut Vec<LoadArrival>,
    ) {
        let target = arrival.target;
        if target.direction != plan.direction {
            if self.early.len() < EARLY_MAX {
                self.early.push(arrival);
            } else {
                refuse(&arrival.stream, 409, "taken", "too many streams wait for their direction");
            }
        } else if target.stream >= plan.streams {
            let say = format!("stream {} of {}: they count from 0", target.stream, plan.streams);
            refuse(&arrival.stream, 400, "bad_request", &say);
        } else if here.iter().any(|arrival| arrival.target.stream == target.stream) {
            let say = format!("stream {} has a connection already", target.stream);
            refuse(&arrival.stream, 409, "taken", &say);
        } else {
            here.push(arrival);
        }
    }

    /// Gives a connection to the endpoint.
    fn add(&self, arrival: LoadArrival, endpoint: &mut Endpoint, account: &mut Account) {
        let LoadArrival { stream, peer, target, head } = arrival;
        let (direction, flow) = (target.direction, target.stream);
        tcp::notice_vanished_peer(&stream, VANISHED);
        let client_addr = plain_address(peer);
        if let Ok(local) = stream.local_addr() {
            account.connected(direction, flow, &client_addr, local);
        }
        let side = server_side(direction);
        endpoint.add(stream, StreamId { direction, flow, side, client_addr });
        match direction {
            Direction::Down => endpoint.begin_with(load_head()),
            Direction::Up => {
                endpoint.wrapped_in(Box::new(Upload::from_first_head(self.token, &head)))
            }
        }
    }
}

impl Drop for LoadRun {
    /// Connections whose direction never began are told so.
    fn drop(&mut self) {
        let waiting = self.registration.arrivals.try_iter().chain(self.early.drain(..));
        for arrival in waiting {
            refuse(&arrival.stream, 404, "over", "the run is over");
        }
    }
}

impl LoadPlan {
    fn tcp_test(&self) -> TcpTest {
        let each = |rate: BitRate| {
            BitRate::from_bits_per_sec(
                (rate.bits_per_sec() / u64::from(self.streams.max(1))).max(1),
            )
        };
        let (down, pace) = (self.direction == Direction::Down, self.pace.map(each));
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        TcpTest {
            directions: if down { TcpDirections::Down } else { TcpDirections::Up },
            streams: self.streams,
            finish: Finish::TimeNs(ns(self.time.saturating_sub(self.omit))),
            omit_ns: ns(self.omit),
            interval_ns: (TOLD_EVERY * KEPT_EVERY).as_nanos() as u64,
            pace: pace.filter(|_| down),
            read_pace: pace.filter(|_| !down),
            ..TcpTest::default()
        }
    }

    fn of_record(&self) -> Plan {
        Plan::Tcp(TcpPlan {
            server: ServerPlan::new(Some(Via::Http), self.peer.ip().to_string(), self.peer.port()),
            test: self.tcp_test(),
            ..TcpPlan::default()
        })
    }
}

/// Follows the streams until they are done, their time is long over, or somebody stops them.
fn watch_streams(
    plan: &LoadPlan,
    endpoint: &Endpoint,
    account: &mut Account,
    stop: &Stop,
    told: &mut dyn FnMut(&LoadSample),
) {
    let give_up = account.begin + plan.time + GRACE;
    let mut before: Vec<Sample> = Vec::new();
    let mut due = account.begin;
    let mut told_at = account.begin;
    for at in 1.. {
        // After a stall of this thread the next sample is not taken at once: what moves in a few
        // microseconds makes no rate.
        due = (due + TOLD_EVERY).max(told_at + TOLD_APART);
        while monotonic() < due && !endpoint.is_done() {
            sleep(Duration::from_millis(10));
        }
        let now = monotonic();
        let samples = endpoint.sample(now);
        let counted = counted(plan.direction, endpoint, now, &samples);
        if now >= told_at + TOLD_APART {
            told(&told_of(plan.direction, &before, &counted, &samples));
            before.clone_from(&counted);
            told_at = now;
        }
        let over = endpoint.is_done() || now >= give_up || stop.is_requested();
        if at % KEPT_EVERY == 0 || over {
            account.remote_interval(samples, &mut |_| {});
            let known = if plan.direction == Direction::Down { counted } else { Vec::new() };
            account.local_interval(known, &mut |_| {});
        }
        if over {
            return;
        }
    }
}

/// The samples whose bytes arrived as far as this end knows.
fn counted(
    direction: Direction,
    endpoint: &Endpoint,
    now: MonoTime,
    samples: &[Sample],
) -> Vec<Sample> {
    match direction {
        Direction::Down => endpoint.acknowledged(now, load_head().len() as u64),
        Direction::Up => samples.to_vec(),
    }
}

fn told_of(
    direction: Direction,
    before: &[Sample],
    counted: &[Sample],
    samples: &[Sample],
) -> LoadSample {
    let rate = |now: &Sample| {
        let before = before.iter().find(|sample| sample.is_of(now));
        let (t_ns, bytes) = before.map_or((0, 0), |sample| (sample.t_ns, sample.bytes));
        rate_bps(now.bytes.saturating_sub(bytes), now.t_ns.saturating_sub(t_ns))
    };
    let resent = samples.iter().map(|sample| sample.retransmits).sum::<Option<u64>>();
    LoadSample {
        direction,
        t_ns: counted.first().map_or(0, |sample| sample.t_ns),
        rates_bps: counted.iter().map(rate).collect(),
        rtt_ns: samples.iter().map(|sample| sample.rtt_ns).collect(),
        retransmits: resent.filter(|_| server_side(direction) == FlowSide::Sender),
    }
}

/// The head of the answer is no payload; it is within what is measured unless the start is omitted.
const fn without_head(report: &mut EndReport, head: u64, measured: bool) {
    report.end.bytes = report.end.bytes.saturating_sub(head);
    if measured {
        report.end.bytes_measured = report.end.bytes_measured.saturating_sub(head);
    }
}

/// The streams that did not come.
fn missing(plan: &LoadPlan, came: usize) -> Option<Failure> {
    let asked = usize::from(plan.streams);
    (came < asked).then(|| {
        let reason =
            format!("{came} of {asked} came within {} s of the first", OTHERS_WITHIN.as_secs());
        Failure::new(Fault::PeerMisbehaved, "await streams of", plain_address(plan.peer), reason)
            .advise("a browser opens six connections to one host: ask for fewer streams")
    })
}

type Own = (Option<f64>, Option<HostDeltas>);

/// A record's first end is this host, which is the server here: its counters belong to that end.
fn with_own(mut record: Record, own: Option<Own>, plan: &LoadPlan) -> Record {
    let (stolen_ratio, deltas) = own.unwrap_or_default();
    for end in &mut record.ends {
        let here = end.role == "local";
        end.stolen_ratio = stolen_ratio.filter(|_| here);
        end.deltas = deltas.clone().filter(|_| here);
    }
    debug_assert!(plan.streams > 0, "checked by whoever asks");
    record
}

/// Bytes that no proxy on the way can pack: SplitMix64 (Steele, Lea, Flood 2014), from a fixed
/// seed.
pub(super) fn incompressible_bytes(length: usize) -> Vec<u8> {
    let mut state: u64 = 0x6c69_6e65_7261_7465;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| next().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}
