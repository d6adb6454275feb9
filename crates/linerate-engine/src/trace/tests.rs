//! A trace over a simulated chain in virtual time: what is planted is found.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use linerate_core::path::Random;
use linerate_core::record::{
    ArrivedMarks, Direction, Failure, Finding, TracePhase, TracePlan, TraceResult,
};
use linerate_core::trace::fill_findings;

use super::network::{Network, Said, TraceAnswer, TraceProbe};
use super::survey::TraceSurvey;

/// What a hop does beside forwarding.
#[derive(Clone)]
struct SimHop {
    /// Routers that flows are spread over.
    width: u16,
    /// Answers a second and in a row; none without a limit.
    limit: Option<(f64, f64)>,
    /// Share of packets lost on the link to here, there and back together.
    loss: f64,
    /// MTU of the link to here, and whether the router before tells of larger packets.
    mtu: Option<(u32, bool)>,
    /// DSCP and ECN that leave the router before.
    remark: Option<(u8, u8)>,
    silent: bool,
}

const PLAIN: SimHop =
    SimHop { width: 1, limit: None, loss: 0.0, mtu: None, remark: None, silent: false };

/// A chain of hops, the last of which is the end.
struct Chain {
    hops: Vec<SimHop>,
    random: Random,
    now_ns: u64,
    /// Answers under way by time of arrival.
    under_way: BTreeMap<(u64, u16), TraceAnswer>,
    /// Tokens of each limited router, and when they were counted.
    tokens: HashMap<IpAddr, (f64, u64)>,
    seed: u64,
    /// MTU of this host's interface, and the longest packet that it sends.
    link_bytes: (u32, u32),
    /// This host stands still for so long each time that so much has passed.
    stops: Option<Stop>,
}

/// Stops of the host, in ns: how far apart, how long, and when the next comes.
struct Stop {
    every_ns: u64,
    span_ns: u64,
    next_ns: u64,
}

impl Chain {
    fn new(seed: u64, hops: Vec<SimHop>) -> Self {
        let random = Random::new(seed, 0);
        let (under_way, tokens) = (BTreeMap::new(), HashMap::new());
        let link_bytes = (1500, 1500);
        Self { hops, random, now_ns: 0, under_way, tokens, seed, link_bytes, stops: None }
    }

    /// Whoever waits until a time comes back behind a stop that falls into it.
    fn wait_until(&mut self, then_ns: u64) {
        self.now_ns = self.now_ns.max(then_ns);
        if let Some(stop) = &mut self.stops
            && self.now_ns >= stop.next_ns
        {
            self.now_ns += stop.span_ns;
            stop.next_ns = self.now_ns + stop.every_ns;
        }
    }

    /// The router of a flow at a distance: a hash of both that a seed changes.
    fn address(&self, index: usize, flow: u16) -> IpAddr {
        let width = self.hops[index].width;
        let which = Random::new(self.seed ^ u64::from(flow) << 16, index as u64).next_uniform();
        let which = (which * f64::from(width)) as u8;
        Ipv4Addr::new(10, 0, index as u8 + 1, which + 1).into()
    }

    fn may_answer(&mut self, from: IpAddr, limit: Option<(f64, f64)>) -> bool {
        let Some((per_second, burst)) = limit else { return true };
        let (tokens, then) = self.tokens.get(&from).copied().unwrap_or((burst, self.now_ns));
        let passed = (self.now_ns - then) as f64 / 1e9;
        let tokens = (tokens + passed * per_second).min(burst);
        let answers = tokens >= 1.0;
        self.tokens.insert(from, (tokens - f64::from(u8::from(answers)), self.now_ns));
        answers
    }

    /// Where a probe ends, what is said of it, and how it arrived there.
    fn fate(&mut self, probe: &TraceProbe) -> Option<(usize, Said, ArrivedMarks)> {
        let mut marks =
            ArrivedMarks { dscp: probe.tos >> 2, ecn: probe.tos & 3, translated: false };
        let last = self.hops.len() - 1;
        for index in 0..=last {
            let hop = self.hops[index].clone();
            if self.random.next_uniform() < hop.loss {
                return None;
            }
            if let Some((mtu, told)) = hop.mtu.filter(|(mtu, _)| probe.bytes > *mtu) {
                let before = index.checked_sub(1)?;
                return told.then_some((before, Said::TooBig(mtu), marks));
            }
            if let Some((dscp, ecn)) = hop.remark {
                (marks.dscp, marks.ecn) = (dscp, ecn);
            }
            if index == last {
                return Some((index, Said::Reached, marks));
            }
            if usize::from(probe.ttl) == index + 1 {
                return Some((index, Said::Exceeded, marks));
            }
        }
        None
    }
}

impl Network for Chain {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn send_probe(&mut self, probe: &TraceProbe) -> Result<bool, Failure> {
        if probe.bytes > self.link_bytes.1 {
            return Ok(false);
        }
        let Some((index, said, marks)) = self.fate(probe) else { return Ok(true) };
        let from = self.address(index, probe.flow);
        let limit = self.hops[index].limit.filter(|_| !probe.echo);
        if self.hops[index].silent || !self.may_answer(from, limit) {
            return Ok(true);
        }
        let rtt_ns =
            (index as u64 + 1) * 1_000_000 + (self.random.next_uniform() * 50_000.0) as u64;
        let arrived = (!probe.echo).then_some(marks);
        let number = probe.number;
        let answer = TraceAnswer { number, from, said, rtt_ns, arrived, labels: Vec::new() };
        self.under_way.insert((self.now_ns + rtt_ns, number), answer);
        Ok(true)
    }

    fn answers(&mut self, until_ns: u64) -> Vec<TraceAnswer> {
        let due = self.under_way.first_key_value().map(|(key, _)| *key);
        let Some(due) = due.filter(|(at_ns, _)| *at_ns <= until_ns) else {
            self.wait_until(until_ns);
            return Vec::new();
        };
        self.wait_until(due.0);
        self.under_way.remove(&due).into_iter().collect()
    }

    fn source_port(&mut self, flow: u16) -> Option<u16> {
        Some(40_000 + flow)
    }

    fn stopped(&self) -> bool {
        false
    }

    fn reads_quotes(&self) -> bool {
        true
    }

    fn has_echo(&self) -> bool {
        true
    }

    fn link_mtu(&self) -> u32 {
        self.link_bytes.0
    }
}

fn traced(chain: Chain, plan: &TracePlan) -> TraceResult {
    let target = chain.address(chain.hops.len() - 1, 0);
    let mut survey = TraceSurvey::new(chain, plan, target);
    survey.find_hops().expect("found");
    survey.rounds(plan.count, TracePhase::Idle, || false).expect("measured");
    if plan.paths {
        survey.find_paths().expect("found");
    }
    survey.read_marks().expect("read");
    if plan.mtu {
        survey.find_sizes().expect("found");
    }
    fill_findings(&mut survey.trace, None);
    survey.trace
}

/// Six routers and the end with the default limits of Linux, one of which is changed.
fn linux(at: usize, change: impl Fn(&mut SimHop)) -> Vec<SimHop> {
    let limit = Some((1.0, 6.0));
    let mut hops = vec![SimHop { limit, ..PLAIN }; 7];
    change(&mut hops[at - 1]);
    hops
}

fn losses(trace: &TraceResult) -> usize {
    trace.findings.iter().filter(|it| matches!(it, Finding::Loss { .. })).count()
}

#[test]
fn all_next_hops_of_four_are_found_in_95_of_100_traces() {
    let plan = TracePlan { count: 3, mtu: false, ..TracePlan::default() };
    let found = (0..100).filter(|&seed| {
        let trace = traced(Chain::new(seed, linux(3, |hop| hop.width = 4)), &plan);
        trace.hops[2].nodes.len() == 4
    });
    let found = found.count();
    assert!(found >= 95, "{found} of 100");
}

#[test]
fn flows_that_part_and_meet_are_told_so() {
    let plan = TracePlan { count: 3, mtu: false, ..TracePlan::default() };
    let trace = traced(Chain::new(7, linux(3, |hop| hop.width = 2)), &plan);
    let spread = Finding::Spread { after: 2, at: 3, width: 2, until: Some(4) };
    assert!(trace.findings.contains(&spread), "{:?}", trace.findings);
    // One router at a hop needs six flows to be called alone.
    assert!(trace.hops[0].nodes[0].flows.len() >= 6, "{:?}", trace.hops[0].nodes);
}

#[test]
fn routers_as_linux_limits_them_are_accused_of_no_loss() {
    let plan = TracePlan { count: 40, interval_ns: 100_000_000, ..TracePlan::default() };
    for seed in 0..50 {
        let trace = traced(Chain::new(seed, linux(1, |_| {})), &plan);
        assert_eq!(losses(&trace), 0, "seed {seed}: {:?}", trace.findings);
        assert!(trace.reached && trace.hops.len() == 7);
        let limited = trace.findings.iter().filter(|it| matches!(it, Finding::RateLimited { .. }));
        assert_eq!(limited.count(), 7, "seed {seed}");
    }
}

/// Routers that answer 11 a second after 6 in a row (net.ipv4.icmp_ratelimit = 91), 10 rounds a
/// second, 3 % lost at hop 3; the host stands still for 0.9 s of every 1.9, so that 9 rounds would
/// have to be caught up with at once.
#[test]
fn rounds_that_are_late_are_put_off_and_no_bucket_is_emptied() {
    let plan = TracePlan { count: 2000, interval_ns: 100_000_000, ..TracePlan::default() };
    let plan = TracePlan { paths: false, mtu: false, ..plan };
    for seed in 0..5 {
        let mut hops = vec![SimHop { limit: Some((11.0, 6.0)), ..PLAIN }; 7];
        hops[2].loss = 0.03;
        let stops =
            Some(Stop { every_ns: 1_000_000_000, span_ns: 900_000_000, next_ns: 1_000_000_000 });
        let trace = traced(Chain { stops, ..Chain::new(seed, hops) }, &plan);
        // All rounds are sent, in 200 s of their own; each of them has a stop.
        let sent = trace.hops[0].samples.iter().filter(|it| it.phase == TracePhase::Idle).count();
        assert_eq!(sent, 2000);
        assert!((150..250).contains(&trace.late_rounds), "{}", trace.late_rounds);
        let found = trace.findings.first();
        assert!(matches!(found, Some(Finding::Loss { after: 2, at: 3, .. })), "{seed}: {found:?}");
        assert_eq!(losses(&trace), 1, "{:?}", trace.findings);
        // Routers before the loss answered every probe that they got.
        let silent = trace.hops[0].samples.iter().filter(|it| it.rtt_ns.is_none()).count();
        assert_eq!(silent, 0);
    }
}

#[test]
fn one_percent_at_hop_3_is_named() {
    let plan = TracePlan { count: 1000, interval_ns: 20_000_000, ..TracePlan::default() };
    let plan = TracePlan { paths: false, mtu: false, ..plan };
    let found = (0..20).filter(|&seed| {
        let mut hops = vec![PLAIN; 7];
        hops[2].loss = 0.01;
        let trace = traced(Chain::new(seed, hops), &plan);
        matches!(trace.findings.first(), Some(Finding::Loss { after: 2, at: 3, .. }))
    });
    let found = found.count();
    assert!(found >= 19, "{found} of 20");
}

#[test]
fn a_black_hole_and_a_router_that_tells_are_placed_with_their_sizes() {
    let plan = TracePlan { count: 2, paths: false, ..TracePlan::default() };
    for told in [true, false] {
        let trace = traced(Chain::new(1, linux(4, |hop| hop.mtu = Some((1400, told)))), &plan);
        let [limit] = trace.size_limits[..] else { panic!("{told}: {:?}", trace.size_limits) };
        assert_eq!((limit.after, limit.at, limit.reported), (3, 4, told));
        assert_eq!((limit.bytes, trace.mtu_bytes), (1400, Some(1400)), "{told}");
        assert_eq!((trace.hops[2].mtu_bytes, trace.hops[5].mtu_bytes), (Some(1500), Some(1400)));
    }
    let trace = traced(Chain::new(1, linux(1, |_| {})), &plan);
    assert_eq!((trace.size_limits.len(), trace.mtu_bytes), (0, Some(1500)));
}

#[test]
fn what_this_host_does_not_send_vanishes_nowhere() {
    // The MTU of loopback is 65536; the length of an IPv4 packet has 16 bits (RFC 791).
    let plan = TracePlan { count: 2, paths: false, ..TracePlan::default() };
    for (link_bytes, largest) in [((65_536, 65_535), 65_535), ((9000, 1400), 1400)] {
        let chain = Chain { link_bytes, ..Chain::new(1, linux(1, |_| {})) };
        let trace = traced(chain, &plan);
        assert_eq!((&trace.size_limits[..], trace.mtu_bytes), (&[][..], Some(largest)));
    }
    // One that is sent and does not come to hop 1 does vanish there.
    let chain = Chain::new(1, linux(1, |hop| hop.mtu = Some((1500, false))));
    let trace = traced(Chain { link_bytes: (9000, 9000), ..chain }, &plan);
    let [limit] = trace.size_limits[..] else { panic!("{:?}", trace.size_limits) };
    assert_eq!((limit.after, limit.at, limit.bytes, limit.reported), (0, 1, 1500, false));
}

#[test]
fn cleared_marks_are_placed() {
    let plan = TracePlan { count: 2, paths: false, mtu: false, ..TracePlan::default() };
    let trace = traced(Chain::new(1, linux(5, |hop| hop.remark = Some((0, 0)))), &plan);
    for finding in [
        Finding::Dscp { after: 4, at: 5, from: 10, to: 0 },
        Finding::Ecn { after: 4, at: 5, from: 2, to: 0 },
    ] {
        assert!(trace.findings.contains(&finding), "{:?}", trace.findings);
    }
}

#[test]
fn a_silent_router_is_a_gap_and_a_silent_end_is_not_reached() {
    let plan = TracePlan { count: 2, paths: false, mtu: false, ..TracePlan::default() };
    let trace = traced(Chain::new(1, linux(3, |hop| hop.silent = true)), &plan);
    assert!(trace.reached && trace.hops[2].nodes.is_empty() && trace.hops.len() == 7);
    let trace = traced(Chain::new(1, linux(7, |hop| hop.silent = true)), &plan);
    assert!(!trace.reached && trace.hops.len() == 6);
    assert_eq!(losses(&trace), 0);
}

#[test]
fn the_hop_of_the_queue_is_that_whose_link_delays() {
    // The rounds' answers are shifted as a queue of 30 ms on the link to hop 4 would.
    let plan = TracePlan { count: 10, paths: false, mtu: false, ..TracePlan::default() };
    for at in 1..=7 {
        let chain = Chain::new(at, vec![PLAIN; 7]);
        let target = chain.address(6, 0);
        let mut survey = TraceSurvey::new(chain, &plan, target);
        survey.find_hops().expect("found");
        survey.rounds(10, TracePhase::Idle, || false).expect("measured");
        survey.rounds(10, TracePhase::Loaded, || false).expect("measured");
        let mut trace = survey.trace;
        let queued = |it: &mut linerate_core::record::HopSample| {
            if it.phase == TracePhase::Loaded {
                it.rtt_ns = it.rtt_ns.map(|ns| ns + 30_000_000);
            }
        };
        trace
            .hops
            .iter_mut()
            .skip(at as usize - 1)
            .flat_map(|hop| &mut hop.samples)
            .for_each(queued);
        trace.echoes.iter_mut().for_each(queued);
        fill_findings(&mut trace, Some(Direction::Up));
        let first = trace.findings.first();
        assert!(
            matches!(first, Some(Finding::Queue { after, at: found, .. })
                if (u64::from(*after), u64::from(*found)) == (at - 1, at)),
            "{at}: {first:?}"
        );
    }
}
