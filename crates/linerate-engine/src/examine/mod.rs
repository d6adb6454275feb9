//! The survey of a path: round trips by size, TCP by streams and by window, both ways. What is
//! measured follows the round trip, so that the whole stays within its time (`schedule`); each
//! part is measured by its own engine and is a record inside that of the whole.

mod fold;
mod interventions;
mod path_mtu;
mod probing;
mod schedule;

use std::time::Duration;

use linerate_core::record::{
    Caveat, CaveatCode, DatagramTrain, Direction, Failure, Fault, Finish, Intervention, IpFamily,
    MetricId, PathMtu, PingMode, PingPlan, PingTransport, Plan, ProbePlan, Record, RecordStatus,
    ServerPlan, Stat, TcpDirections, TcpPlan, TcpTest, TestPlan, Via,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, record_id, wall_time};

use crate::address::resolve_server;
use crate::context::Context;
use crate::flow::ceiling::{Sight, replace_ceilings};
use crate::flow::trains;
use crate::rtt;
use crate::throughput;
use fold::summarise_parts;
use probing::{PACED_ROUNDS, PacedRound, Probing};
use schedule::FirstRtts;

/// The settings of an examination: the server, and how thoroughly to test.
#[derive(Clone, Debug, PartialEq)]
struct Examination {
    server: ServerPlan,
    tcp_time: Option<Duration>,
    congestion_control: Option<String>,
    ping_count: u64,
    within: Option<Duration>,
}

impl From<&TestPlan> for Examination {
    fn from(plan: &TestPlan) -> Self {
        Self {
            server: plan.server.clone(),
            tcp_time: plan.tcp_time_ns.map(Duration::from_nanos),
            congestion_control: plan.congestion_control.clone(),
            ping_count: plan.ping_count,
            within: plan.within_ns.map(Duration::from_nanos),
        }
    }
}

/// Surveys a path; `seen` is told of each part. The record has all of them, and what the best of
/// them say for the whole.
pub fn run(
    plan: &TestPlan,
    context: &mut Context<'_>,
    seen: &mut dyn FnMut(&ExaminationEvent<'_>),
) -> Record {
    let begin = monotonic();
    let plan_of_all = Plan::Test(plan.clone());
    let mut record = Record::from_plan(record_id(), context.tool.clone(), plan_of_all, wall_time());
    let examined = Examination::from(plan).run(context, seen);
    (record.parts, record.left_out) = (examined.records, examined.left_out);
    (record.trains, record.path_mtu) = (examined.trains, examined.path_mtu);
    record.interventions = examined.interventions;
    summarise_parts(&mut record);
    record.caveats.extend(examined.caveat);
    if context.stop.is_requested() {
        record.status = RecordStatus::Interrupted;
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// Ping payloads: those of the PREN study of 2000, without the one that fragments at 1500.
pub const SIZES_BYTES: [u32; 5] = [56, 250, 500, 1024, 1460];

/// Windows: those of the PREN study of 2000, and larger ones up to today's defaults. The ones that
/// tell most come first, since the last may find no time.
pub const WINDOWS_BYTES: [u64; 6] = [64 << 10, 512 << 10, 2 << 20, 16 << 10, 128 << 10, 32 << 10];

/// Streams with the kernel's own window, in the order of what they tell.
pub const STREAMS: [u16; 3] = [1, 4, 2];

/// IP bytes for each byte of TCP payload in packets of 1500 bytes with timestamps.
const IP_PER_PAYLOAD: f64 = 1500.0 / 1448.0;

/// Probes of the first look at a path, and the time between them.
const LOOK_PROBES: u64 = 3;
const LOOK_INTERVAL_NS: u64 = 20_000_000;
const LOOK_SIZES: [u32; 2] = [SIZES_BYTES[0], SIZES_BYTES[4]];

/// Probes of a look at a path on which TCP does not come about, the time between them, and the time
/// of all: three seconds show outages that come every second.
const LOOK_AGAIN_PROBES: u64 = 300;
const LOOK_AGAIN_INTERVAL_NS: u64 = 10_000_000;
const LOOK_AGAIN: Duration = Duration::from_secs(4);

/// A survey that has no more time than this leaves out what tells least.
const QUICK: Duration = Duration::from_secs(20);

/// Share of the time left that the trains may take where a longer test of TCP follows, and where
/// there is no time for one.
const TRAINS_SHARES: [f64; 2] = [0.65, 0.95];
/// Share of the time left that the longer test of TCP takes: where the diagnosis is sure, and where
/// changes are to be tried.
const MAIN_SHARES: [f64; 2] = [0.7, 0.35];

/// Probes without load before each TCP test, 10 ms apart.
const IDLE_PROBES: u32 = 8;

/// An event of an examination under way.
#[derive(Debug)]
pub enum ExaminationEvent<'a> {
    /// So many measurements are planned, in about this time.
    Planned(usize, Duration),
    /// The measurement with this number is done.
    Done(usize, &'a Record),
    /// A change that was tried in short runs.
    Tried(&'a Intervention),
}

/// The results of an examination: every measurement, in the order made, and the tests for which no
/// time was left.
#[derive(Clone, Debug, Default, PartialEq)]
struct Examined {
    records: Vec<Record>,
    left_out: Vec<TcpPlan>,
    trains: Vec<DatagramTrain>,
    path_mtu: Vec<PathMtu>,
    interventions: Vec<Intervention>,
    /// Why there are no trains.
    caveat: Option<Caveat>,
}

impl Examination {
    /// Measures what fits into the time, the most telling first; `seen` is told of each record.
    /// Ends at the first failure that the rest would share, or when stopped.
    fn run(
        &self,
        context: &mut Context<'_>,
        seen: &mut dyn FnMut(&ExaminationEvent<'_>),
    ) -> Examined {
        let begin = monotonic();
        // Of a name with several addresses all parts go to the one that takes connections; where
        // none does, the probes say what else is known of it.
        let _ = resolve_server(&self.server);
        let (transport, first) = self.probe_first(context);
        // A peer that does not answer is not asked a thousand times.
        let count = if first.is_some() { self.ping_count } else { LOOK_PROBES };
        let other_family = interventions::other_family(&self.server);
        let first = first.unwrap_or_default();
        let mut run = ExaminationRun { examination: self, begin, first, other_family, seen };
        let mut examined = Examined::default();
        if let Some(record) = run.too_short(Duration::ZERO, context) {
            run.keep_record(&mut examined, record);
            return examined;
        }
        run.tell_plan();
        let ping =
            PingPlan { sizes_bytes: self.ping_sizes().to_vec(), ..self.ping_plan(transport) };
        let ping = run.first.probes(ping, count);
        let record = rtt::run(&ping, context);
        let usable = record.failure.as_ref().is_none_or(|failure| failure.fault != Fault::Usage);
        run.keep_record(&mut examined, record);
        if usable {
            run.all_tcp(context, &mut examined);
        }
        examined
    }

    /// The shortest round trips of a small and a large probe, by ICMP where this user may and the
    /// peer answers, by UDP echo otherwise.
    fn probe_first(&self, context: &Context<'_>) -> (PingTransport, Option<FirstRtts>) {
        for transport in [PingTransport::Icmp, PingTransport::Udp] {
            let plan = PingPlan {
                sizes_bytes: LOOK_SIZES.to_vec(),
                count: Some(LOOK_PROBES),
                interval_ns: LOOK_INTERVAL_NS,
                mode: PingMode::Paced,
                ..self.ping_plan(transport)
            };
            let (tool, stop) = (context.tool.clone(), context.stop.clone());
            let record = rtt::run(&plan, &mut Context { tool, stop, watch: &mut |_| {} });
            let shortest = |size| record.value_at(MetricId::Rtt, Stat::Min, size);
            if let (Some(small), Some(large)) = (shortest(LOOK_SIZES[0]), shortest(LOOK_SIZES[1])) {
                return (
                    transport,
                    Some(FirstRtts { small_ns: small as u64, large_ns: large as u64 }),
                );
            }
        }
        (PingTransport::Icmp, None)
    }

    /// Payloads of the ping: the smallest and the largest alone in a quick survey.
    fn ping_sizes(&self) -> &'static [u32] {
        if self.within.is_some_and(|within| within <= QUICK) { &LOOK_SIZES } else { &SIZES_BYTES }
    }

    fn ping_plan(&self, transport: PingTransport) -> PingPlan {
        PingPlan {
            host: self.server.host.clone(),
            transport,
            port: self.server.port,
            family: self.server.family,
            sizes_bytes: SIZES_BYTES.to_vec(),
            warmup: 1,
            kernel_stamps: false,
            ..PingPlan::default()
        }
    }

    /// Tests with the kernel's window by streams, then with one stream by window.
    fn tcp_plans(&self, first: FirstRtts) -> Vec<TcpPlan> {
        let streams = |&streams: &u16| TcpPlan {
            test: TcpTest { streams, ..TcpTest::default() },
            ..TcpPlan::default()
        };
        let window = |&window: &u64| TcpPlan {
            test: TcpTest { window_bytes: Some(window), ..TcpTest::default() },
            ..TcpPlan::default()
        };
        // One and four streams first: what the path carries, and whether one stream is enough.
        let (few, many) = STREAMS.split_at(2);
        let plans = few.iter().map(streams);
        let plans = plans.chain(WINDOWS_BYTES.iter().map(window)).chain(many.iter().map(streams));
        plans.map(|plan| self.timed_tcp_plan(plan, first)).collect()
    }

    fn timed_tcp_plan(&self, base: TcpPlan, first: FirstRtts) -> TcpPlan {
        let (omit_ns, measured_ns) = first.omitted_and_measured_ns(base.test.window_bytes);
        let measured_ns = self.tcp_time.map_or(measured_ns, saturating_nanos);
        let (omit_ns, measured_ns) = match self.server.via {
            None => (omit_ns, measured_ns),
            // iperf3 omits whole seconds (-O); the others do not know it.
            Some(Via::Iperf3) => (whole_seconds(omit_ns), whole_seconds(measured_ns)),
            Some(_) => (0, measured_ns),
        };
        // The place of a queue is by the difference to the path at rest, by the same clocks and
        // just before.
        let probes = self.server.probes.clone();
        let probes = probes.map(|probes| ProbePlan { idle_count: IDLE_PROBES, ..probes });
        TcpPlan {
            server: ServerPlan { probes, ..self.server.clone() },
            test: TcpTest {
                finish: Finish::TimeNs(measured_ns),
                omit_ns,
                interval_ns: (measured_ns / 10).max(100_000_000),
                congestion_control: self.congestion_control.clone(),
                ..base.test
            },
            ..base
        }
    }
}

const fn whole_seconds(ns: u64) -> u64 {
    ns.div_ceil(1_000_000_000) * 1_000_000_000
}

fn saturating_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// One examination under way.
struct ExaminationRun<'a> {
    examination: &'a Examination,
    begin: MonoTime,
    first: FirstRtts,
    /// An address family of the server that no part has used.
    other_family: Option<IpFamily>,
    seen: &'a mut dyn FnMut(&ExaminationEvent<'_>),
}

impl ExaminationRun<'_> {
    /// The time that both directions of a test take.
    fn test_duration(&self, plan: &TcpPlan) -> Duration {
        let Finish::TimeNs(measured_ns) = plan.test.finish else { return Duration::ZERO };
        self.first.timed_test_duration(plan, measured_ns) * 2
    }

    /// The time that is left once `spent` of it is over, less a reserve of one thirty-second for
    /// hosts that are late; none without a limit.
    fn remaining_time(&self, spent: Duration) -> Option<Duration> {
        let within = self.examination.within?;
        Some((within - within / 32).saturating_sub(spent))
    }

    /// True where a test in both directions fits into the time that is left.
    fn fits_remaining_time(&self, spent: Duration, plan: &TcpPlan) -> bool {
        self.remaining_time(spent).is_none_or(|room| self.test_duration(plan) <= room)
    }

    /// True where tests may be of any length: the user names none, and both ends are linerate.
    fn is_flexible(&self) -> bool {
        self.examination.tcp_time.is_none() && self.examination.server.via.is_none()
    }

    /// The first test, one stream with the kernel's own window: shorter where there is little time.
    fn first_test(&self, spent: Duration) -> Option<TcpPlan> {
        let plan = self.examination.tcp_plans(self.first).into_iter().next()?;
        let room = self.remaining_time(spent).filter(|_| self.is_flexible());
        Some(match room {
            Some(room) => self.first.shortened(plan, room / 2),
            None => plan,
        })
    }

    /// The first test again, for as long as there is time.
    fn main_test(&self, spent: Duration, open: bool) -> Option<TcpPlan> {
        let plan = self.examination.tcp_plans(self.first).into_iter().next()?;
        let room = self.remaining_time(spent).filter(|_| self.is_flexible())?;
        let share = MAIN_SHARES[usize::from(open)];
        self.first.lengthened(&plan, room.mul_f64(share / 2.0))
    }

    /// The round of paced probes that fits into the time with the trains: none where not even the
    /// trains fit, and `Some(None)` for trains alone.
    fn trains_that_fit(
        &self,
        spent: Duration,
        rates: [Option<f64>; 2],
    ) -> Option<Option<PacedRound>> {
        let [one, two, three, few, fewest] = PACED_ROUNDS;
        let rtt = Duration::from_nanos(self.first.small_ns);
        let Some(room) = self.remaining_time(spent) else {
            // Where somebody says how long a test is, a probe is no longer.
            let most = self.examination.tcp_time.map_or(u64::MAX, saturating_nanos);
            let each_ns = one.each_ns().min(most.max(three.each_ns()));
            return Some(Some(one.lasting(each_ns)));
        };
        let [some, most] = TRAINS_SHARES;
        let last = [three, few, fewest].map(|round| (round, most));
        let mut wanted =
            [(one, some), (two, some), (one, most), (two, most)].into_iter().chain(last);
        let fits =
            |paced, share| Probing::session_duration(rates, rtt, paced) <= room.mul_f64(share);
        let paced = wanted.find(|(round, share)| fits(Some(*round), *share));
        match paced {
            Some((round, _)) => Some(Some(round)),
            None => fits(None, most).then_some(None),
        }
    }

    /// The failed record of an examination whose time has no room for a single TCP test once
    /// `spent` of it is over: it would say nothing of what the path carries, and still end well.
    fn too_short(&self, spent: Duration, context: &Context<'_>) -> Option<Record> {
        let first = self.first_test(spent)?;
        if self.fits_remaining_time(spent, &first) {
            return None;
        }
        let least = match self.examination.tcp_time {
            Some(_) => self.test_duration(&first),
            None => self.first.shortest(&first) * 2,
        };
        let least = (spent + least).as_secs_f64() * 32.0 / 31.0;
        let within = self.examination.within.unwrap_or_default().as_secs_f64();
        let mut record =
            Record::from_plan(record_id(), context.tool.clone(), Plan::Tcp(first), wall_time());
        record.status = RecordStatus::Error;
        let reason = format!("no TCP test fits into {within} s");
        let failure = Failure::new(Fault::Usage, "examine", &self.examination.server.host, reason);
        record.failure =
            Some(failure.advise(format!("allow --within {:.0}s or more", least.ceil())));
        Some(record)
    }

    fn tell_plan(&mut self) {
        let pings = self.first.ping_cost(self.examination.ping_sizes().len());
        let mut spent = monotonic().duration_since(self.begin) + pings;
        let mut count = 1;
        let mut add = |spent: &mut Duration, plan: &TcpPlan| {
            *spent += self.test_duration(plan);
            count += 2;
        };
        if let Some(plan) = self.first_test(spent) {
            add(&mut spent, &plan);
        }
        let trains = self.trains_that_fit(spent, [None; 2]);
        if let Some(paced) = trains.filter(|_| self.examination.server.via.is_none()) {
            let rtt = Duration::from_nanos(self.first.small_ns);
            spent += Probing::session_duration([None; 2], rtt, paced);
        }
        if let Some(plan) = self.main_test(spent, false) {
            add(&mut spent, &plan);
        }
        for plan in self.examination.tcp_plans(self.first).iter().skip(1) {
            if self.fits_remaining_time(spent, plan) {
                add(&mut spent, plan);
            }
        }
        (self.seen)(&ExaminationEvent::Planned(count, spent));
    }

    /// Keeps a record and tells of it; whether the rest would share its failure.
    fn keep_record(&mut self, examined: &mut Examined, mut record: Record) -> bool {
        // What limits a path must be found on it, also where a laboratory could tell.
        replace_ceilings(&mut record, Sight::Ends);
        (self.seen)(&ExaminationEvent::Done(examined.records.len() + 1, &record));
        let failed = record.failure.is_some();
        examined.records.push(record);
        failed
    }

    /// Trains of probe datagrams around the rates of the first TCP tests, with the path MTU; that
    /// alone, whatever time is left, where TCP failed.
    fn trains(&mut self, failed: bool, context: &Context<'_>, examined: &mut Examined) {
        let rate = |way| {
            let best = examined.records.iter().rev();
            let goodput =
                |part: &Record| part.summary_value(MetricId::Goodput, Stat::Value, Some(way));
            let rate = best.filter(|part| matches!(part.plan, Plan::Tcp(_))).find_map(goodput)?;
            (rate > 0.0).then_some(rate * IP_PER_PAYLOAD)
        };
        let rates = [rate(Direction::Up), rate(Direction::Down)];
        let missing = |why: String| {
            let detail = format!("no trains of probe datagrams: {why}");
            let advice = "what they tell of buffers, policers and loss is not known";
            Some(Caveat::new(CaveatCode::TrainsMissing, detail, advice))
        };
        let server = &self.examination.server;
        if let Some(via) = server.via {
            examined.caveat = missing(format!("{via} has none; linerate serve has"));
            return;
        }
        let spent = monotonic().duration_since(self.begin);
        let fitting = if failed { Some(None) } else { self.trains_that_fit(spent, rates) };
        let Some(paced) = fitting else {
            examined.caveat = missing("they do not fit into the time; allow more --within".into());
            return;
        };
        let rtt = Duration::from_nanos(self.first.small_ns);
        let planned = Probing::session_duration(rates, rtt, paced) * 2 + Duration::from_secs(5);
        let mut probing = if failed { Probing::mtu_alone() } else { Probing::new(rates, paced) };
        let end = trains::run(server, self.begin, planned, &mut probing, &context.stop);
        (examined.trains, examined.path_mtu) = probing.into_results();
        examined.caveat = end.err().and_then(|failure| missing(failure.to_string()));
    }

    /// Measures TCP, then trains around the rate that it reached, then TCP for longer, and by
    /// streams and windows.
    fn all_tcp(&mut self, context: &mut Context<'_>, examined: &mut Examined) {
        let spent = monotonic().duration_since(self.begin);
        if let Some(record) = self.too_short(spent, context) {
            examined.left_out = self.examination.tcp_plans(self.first);
            self.keep_record(examined, record);
            return;
        }
        let first = self.first_test(spent);
        let failed = first.is_some_and(|plan| self.both_ways(&plan, context, examined));
        // A path that TCP does not pass may let datagrams pass that say why.
        if !context.stop.is_requested() {
            self.trains(failed, context, examined);
        }
        if failed {
            self.look_again(context, examined);
            return;
        }
        let open = self.is_open(examined, context);
        let main = self.main_test(monotonic().duration_since(self.begin), open);
        if main.is_some_and(|plan| self.both_ways(&plan, context, examined)) {
            return;
        }
        self.intervene(context, examined);
        for plan in self.examination.tcp_plans(self.first).into_iter().skip(1) {
            if !self.fits_remaining_time(monotonic().duration_since(self.begin), &plan) {
                examined.left_out.push(plan);
            } else if self.both_ways(&plan, context, examined) {
                return;
            }
        }
    }

    /// Pings for as long as outages take to show, where TCP did not come about.
    fn look_again(&mut self, context: &mut Context<'_>, examined: &mut Examined) {
        let unreachable = |record: &Record| {
            record.failure.as_ref().is_some_and(|failure| failure.fault == Fault::Unreachable)
        };
        let room = self
            .remaining_time(monotonic().duration_since(self.begin))
            .is_none_or(|room| room >= LOOK_AGAIN);
        let answered = self.first != FirstRtts::default();
        let asked = examined.records.iter().any(unreachable) && answered && room;
        if context.stop.is_requested() || !asked {
            return;
        }
        let first = examined.records.iter().find_map(|record| match &record.plan {
            Plan::Ping(plan) => Some(plan.clone()),
            _ => None,
        });
        let Some(first) = first else { return };
        let plan = PingPlan {
            sizes_bytes: vec![LOOK_SIZES[0]],
            count: Some(LOOK_AGAIN_PROBES),
            interval_ns: LOOK_AGAIN_INTERVAL_NS,
            mode: PingMode::Paced,
            deadline_ns: Some(saturating_nanos(LOOK_AGAIN)),
            ..first
        };
        let record = rtt::run(&plan, context);
        self.keep_record(examined, record);
    }

    /// Runs a test in both directions; true where the rest is to be left: it would fail like this
    /// one, or the user wants no more.
    fn both_ways(
        &mut self,
        plan: &TcpPlan,
        context: &mut Context<'_>,
        examined: &mut Examined,
    ) -> bool {
        [TcpDirections::Up, TcpDirections::Down].into_iter().any(|directions| {
            if context.stop.is_requested() {
                return true;
            }
            let test = TcpTest { directions, ..plan.test.clone() };
            let record = throughput::run_tcp(&TcpPlan { test, ..plan.clone() }, context);
            self.keep_record(examined, record)
        })
    }
}

#[cfg(test)]
mod tests;
