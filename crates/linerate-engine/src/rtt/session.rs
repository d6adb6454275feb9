//! One ping from plan to record: socket, clock, stamps and warm-up first, then each size.

mod notes;

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Caveat, CaveatCode, Event, Failure, Fault, IpFamily, MeasurementEnd, MetricId, PingMode,
    PingPlan, PingTransport, Record, RecordStatus, ServerPlan, StampPlan, WaitMode,
};
use linerate_core::time::MonoTime;
use linerate_core::units::print_span;
use linerate_proto::echo::EchoTrackerLimits;
use linerate_proto::stamp::{StampKey, StampProbe};
use linerate_sys::echo_socket::EchoKind;
use linerate_sys::{clock, sched, timestamps};

use super::civil_time::CivilTime;
use super::collector::{Collector, SampleRetention, Telling, Wishes};
use super::drive::{ProbePace, ProbeRun, ProbeRunEnd, ProbeRunRules, Sink, drive_probes};
use super::fragments::{self, OnPath};
use super::one_way::OneWayEnds;
use super::outcome::{PingOutcome, summary_rows};
use super::socket_wire::{AnswerWaitMode, SocketWire, StampSession};
use super::tick::Tick;
use super::wire::{SendStamp, Wire};
use super::{clock_check, meet, real_time, target};
use crate::address::{resolve, resolve_server};
use crate::context::Context;
use crate::environment;
use crate::path::witness::{self, PathWitness};

/// Remembered probes: at 150,000/s the smallest covers 0.4 s, the largest 7 s.
const REMEMBERED_MIN: u64 = 1 << 16;
const REMEMBERED_MAX: u64 = 1 << 20;
/// Largest payload of an IP packet: 65535 less the IPv4 header; the transport header is ours.
const PAYLOAD_BYTES_MAX: u32 = 65_535 - 20 - 8;
/// The kernel's own floor for pacing is its timer, some µs; below this it is a flood.
const INTERVAL_NS_MIN: u64 = 10_000;
/// A flood asks again at once for this long, then sleeps: a wake-up costs 12 µs and more, which
/// matters less above 1 ms.
const SPIN_NS: u64 = 1_000_000;
/// Send stamps come by interrupt context within this long after the last answer.
const LAST_STAMPS: Duration = Duration::from_millis(5);
/// Size of warm-up probes: the classic ping's.
const WARMUP_BYTES: u32 = 56;

/// Measures into `record`.
/// # Errors
/// What ended it early; `record` keeps what came before.
pub(crate) fn measure(
    plan: &PingPlan,
    key: Option<StampKey>,
    context: &mut Context<'_>,
    record: &mut Record,
) -> Result<(), Failure> {
    check_plan(plan)?;
    let peer = resolve_peer(plan)?;
    let (kind, socket) = target::open_echo_socket(plan, peer)?;
    let mut wire = SocketWire::new(socket, kind, peer, waiting(plan));
    if let Some(ecn) = plan.ecn {
        wire.use_class(plan.dscp.unwrap_or(0) << 2 | ecn.codepoint_bits())?;
    }
    if let Some(stamp) = &plan.stamp {
        wire.speak_stamp(stamp_session(*stamp, key)?);
    }
    let _turn = plan.real_time.then(|| real_time::enter_real_time(waiting(plan))).transpose()?;
    let witness = PathWitness::begin_watching(peer.ip());
    let _slack = sched::ShortSlack::shorten_slack();
    let tick = clock_check::calibrate();
    record.ends = record_ends(&wire, peer, tick);
    let started = clock::monotonic();
    let mut session =
        PingSession { plan, peer, kind, wire, started, stamps: false, context, record };
    session.tell_target();
    session.note_setting();
    let outcome = session.prepare().and_then(|()| session.all_sizes(tick));
    session.record_paths(witness);
    outcome
}

/// The peer. A server that echoes UDP takes TCP on that port too, which shows the address of its
/// name that it answers at.
fn resolve_peer(plan: &PingPlan) -> Result<SocketAddr, Failure> {
    let server = ServerPlan {
        family: plan.family,
        connect_timeout_ns: plan.timeout_ns,
        ..ServerPlan::new(None, plan.host.clone(), plan.port)
    };
    let shown = (plan.transport == PingTransport::Udp).then(|| resolve_server(&server).ok());
    let first = || resolve(&plan.host, plan.port, plan.family);
    shown.flatten().map_or_else(first, Ok)
}

struct PingSession<'a, 'c> {
    plan: &'a PingPlan,
    peer: SocketAddr,
    kind: EchoKind,
    wire: SocketWire,
    started: MonoTime,
    stamps: bool,
    context: &'a mut Context<'c>,
    record: &'a mut Record,
}

impl PingSession<'_, '_> {
    fn caveat(&mut self, caveat: Caveat) {
        (self.context.watch)(&Event::Caveat(caveat.clone()));
        self.record.caveats.push(caveat);
    }

    /// Keeps what the emulated paths on the way did meanwhile.
    fn record_paths(&mut self, witness: PathWitness) {
        self.record.paths = witness.collect_paths();
        for caveat in witness::caveats(&self.record.paths).collect::<Vec<_>>() {
            self.caveat(caveat);
        }
    }

    fn tell_target(&mut self) {
        let sizes: Vec<String> = self.plan.sizes_bytes.iter().map(u32::to_string).collect();
        let line = format!(
            "{} {} ({}): {} bytes of payload, {}, {}",
            if self.plan.stamp.is_some() { "STAMP" } else { "PING" },
            self.plan.host,
            self.target_name(),
            sizes.join(", "),
            match &self.plan.stamp {
                Some(stamp) => meet::describe_session(*stamp),
                None => kind_words(self.kind).to_owned(),
            },
            mode_words(self.plan),
        );
        (self.context.watch)(&Event::Connected(line));
    }

    fn target_name(&self) -> String {
        match self.kind {
            EchoKind::Udp => self.peer.to_string(),
            _ => self.peer.ip().to_string(),
        }
    }

    /// Notes the settings that are known before the first probe and colour every figure.
    fn note_setting(&mut self) {
        if let PingMode::Window(window) = self.plan.mode
            && window > 1
        {
            self.caveat(Caveat::new(
                CaveatCode::SelfLoad,
                format!("{window} probes are in flight at once: times include their own queue"),
                "compare with one probe in flight (-f) for the delay of the path alone",
            ));
        }
        if self.is_own_peer() {
            let how = match self.plan.transport {
                PingTransport::Icmp | PingTransport::Tcp => {
                    "an echo is answered inside the send call"
                }
                PingTransport::Udp | PingTransport::Stamp | PingTransport::WebSocket => {
                    "the one that answers shares its cores with the prober"
                }
            };
            self.caveat(Caveat::new(
                CaveatCode::SameHost,
                format!("the target is this host: {how}"),
                "ping another host to measure a path",
            ));
        }
    }

    fn clock_step_ns(&self) -> u64 {
        let step = self.record.ends.first().and_then(|end| end.clock_tick_ns);
        step.map_or(1, |ns| ns.ceil() as u64)
    }

    fn is_own_peer(&self) -> bool {
        let target = self.peer.ip();
        // The kernel takes the address 0 for this host.
        let own = target.is_loopback() || target.is_unspecified();
        own || self.wire.socket().local_address() == Some(target)
    }

    /// Starts stamps and sends the warm-up, which also shows whether stamps come.
    fn prepare(&mut self) -> Result<(), Failure> {
        if self.plan.kernel_stamps {
            self.wire.start_stamps(true)?;
            clock::sleep(timestamps::START_DELAY);
            self.stamps = true;
        }
        self.take_notes();
        if self.plan.warmup == 0 {
            return Ok(());
        }
        let least = if self.plan.stamp.is_some() { u32::MAX } else { WARMUP_BYTES };
        let size = self.plan.sizes_bytes.first().map_or(least, |size| *size.min(&least));
        let mut pairs = 0;
        let mut answered = 0;
        for _ in 0..self.plan.warmup {
            let (run, paired) = self.one_run(size, Some(1), Telling::Nothing, |collector| {
                collector.book.as_ref().map_or(0, |book| book.paired)
            })?;
            if let ProbeRunEnd::Failed(failure) = run.ended {
                return Err(failure);
            }
            pairs += paired;
            answered += run.counts.answered;
            // A silent target costs one time-out here, not one for each.
            if run.counts.answered == 0 {
                break;
            }
        }
        if self.stamps && answered > 0 && pairs == 0 {
            self.without_stamps(&format!("none of {answered} warm-up probes had a usable pair"));
        }
        Ok(())
    }

    fn take_notes(&mut self) {
        let paced = self.plan.mode == PingMode::Paced;
        self.wire.take_notes(self.stamps || paced || self.plan.ecn.is_some());
    }

    fn without_stamps(&mut self, seen: &str) {
        self.stamps = false;
        self.wire.stop_stamps();
        self.take_notes();
        self.caveat(Caveat::new(
            CaveatCode::StampsMissing,
            format!("no kernel timestamps: {seen}"),
            "times are the program's own; check `ethtool -T` of the interface",
        ));
    }

    fn all_sizes(&mut self, tick: Option<Tick>) -> Result<(), Failure> {
        let mut late_sends = 0;
        let mut sent = 0;
        let mut lost = 0;
        let mut unsent = 0;
        for size in self.plan.sizes_bytes.clone() {
            self.note_fragments(size);
            let run = self.measure_size(size)?;
            late_sends += run.late_sends;
            sent += run.counts.sent;
            lost += run.counts.lost;
            unsent += run.unsent;
            match run.ended {
                ProbeRunEnd::Complete | ProbeRunEnd::Deadline => {}
                ProbeRunEnd::Stopped => break,
                ProbeRunEnd::Failed(failure) => return Err(failure),
            }
        }
        self.note_late_sends(late_sends, sent);
        self.note_drops(lost);
        self.note_clock(tick);
        self.note_unsent(unsent, sent)?;
        self.verdict_on_silence()
    }

    /// Measures one size, from the probes to the rows of the record.
    fn measure_size(&mut self, size: u32) -> Result<ProbeRun, Failure> {
        let telling = match self.plan.mode {
            PingMode::Paced => Telling::EachProbe,
            PingMode::Flood | PingMode::Window(_) => Telling::Progress,
        };
        let (run, mut outcome) = self.one_run(size, self.plan.count, telling, |collector| {
            PingOutcome::from_collector(collector, size)
        })?;
        self.note_end(size, &run, outcome.kept_short);
        if self.stamps {
            self.note_missing_stamps(size, run.counts.answered, &outcome);
            self.note_broken_splits(size, &outcome);
        }
        self.record.clocks.extend(outcome.clocks.take());
        self.record
            .summary
            .extend(summary_rows(&outcome, &run).into_iter().map(|r| r.at_payload(size)));
        let distributions = outcome.distributions.into_iter();
        self.record.distributions.extend(distributions.map(|d| d.at_payload(size)));
        self.record.series.extend(outcome.series);
        self.record.outages.extend(outcome.outages);
        self.note_marks(size, outcome.marked, run.counts.answered);
        Ok(run)
    }

    /// Sends one run of probes; `take` picks from the collector what is wanted of it.
    fn one_run<T>(
        &mut self,
        payload_bytes: u32,
        count: Option<u64>,
        telling: Telling,
        take: impl FnOnce(&Collector<'_>) -> T,
    ) -> Result<(ProbeRun, T), Failure> {
        let warmup = telling == Telling::Nothing;
        self.wire.prepare_run(payload_bytes, u64::from_ne_bytes(clock::random_bytes()))?;
        let wishes = Wishes {
            payload_bytes,
            count,
            telling,
            stamps: self.stamps,
            keep: match self.plan.mode {
                _ if warmup => SampleRetention::Nothing,
                _ if self.plan.keep_samples => SampleRetention::All,
                PingMode::Paced => SampleRetention::Some,
                PingMode::Flood | PingMode::Window(_) => SampleRetention::Nothing,
            },
            four_times: self.wire.first_on_wire().filter(|_| !warmup).map(|first_on_wire| {
                OneWayEnds {
                    first_on_wire,
                    one_clock: self.is_own_peer(),
                    clock_step_ns: self.clock_step_ns(),
                    local_error: CivilTime::ask_clock_keepers().largest_error(),
                }
            }),
            started: self.started,
        };
        let rules = self.run_rules(count, warmup);
        let mut collector = Collector::new(wishes, self.context.watch);
        let run = drive_probes(&mut self.wire, &rules, &self.context.stop, &mut collector);
        let last_pairs = collector.book.as_ref().map_or(0, |book| book.paired);
        if self.stamps && last_pairs < run.counts.answered {
            clock::sleep(LAST_STAMPS);
            self.wire.stamps(&mut |sequence, stamp| match stamp {
                SendStamp::Queued(at_ns) => collector.queued(sequence, at_ns),
                SendStamp::Left(at_ns) => collector.departed(sequence, at_ns),
            });
        }
        let taken = take(&collector);
        Ok((run, taken))
    }

    fn run_rules(&self, count: Option<u64>, warmup: bool) -> ProbeRunRules<'static> {
        let pace = match (self.plan.mode, self.plan.poisson_seed) {
            _ if warmup => ProbePace::Window(1),
            (PingMode::Paced, Some(seed)) => {
                ProbePace::Poisson { mean_ns: self.plan.interval_ns, seed }
            }
            (PingMode::Paced, None) => ProbePace::Every(self.plan.interval_ns),
            (PingMode::Flood, _) => ProbePace::Window(1),
            (PingMode::Window(window), _) => ProbePace::Window(u64::from(window)),
        };
        let deadline = self.plan.deadline_ns.filter(|_| !warmup);
        let deadline = deadline.map(|span| clock::monotonic() + Duration::from_nanos(span));
        let limits = EchoTrackerLimits {
            timeout_ns: self.plan.timeout_ns,
            capacity: if warmup { 1 << 4 } else { remembered(self.plan) as usize },
        };
        ProbeRunRules { pace, count, deadline, limits, spacing: None }
    }

    fn note_fragments(&mut self, payload_bytes: u32) {
        let Some(mtu_bytes) = self.wire.socket().mtu_bytes() else { return };
        let family = if self.peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        let count = fragments::fragment_count(OnPath { family, payload_bytes, mtu_bytes });
        if count > 1 && !self.plan.dont_fragment {
            self.caveat(Caveat::new(
                CaveatCode::Fragmented,
                format!(
                    "a payload of {payload_bytes} bytes travels as {count} packets: the path's \
                     MTU is {mtu_bytes} bytes"
                ),
                "compare with sizes that are not fragmented, or forbid it with --dont-fragment",
            ));
        }
    }

    fn note_end(&mut self, size: u32, run: &ProbeRun, kept_short: Option<u64>) {
        let cut = matches!(run.ended, ProbeRunEnd::Stopped | ProbeRunEnd::Deadline);
        if cut && let Some(count) = self.plan.count {
            self.caveat(Caveat::new(
                CaveatCode::CutShort,
                format!("{} of {count} probes of {size} bytes were settled", run.counts.sent),
                "run again without interrupting, or with a longer -w",
            ));
            if run.ended == ProbeRunEnd::Stopped {
                self.record.status = RecordStatus::Interrupted;
            }
        }
        if let Some(kept) = kept_short {
            self.caveat(Caveat::new(
                CaveatCode::CutShort,
                format!("only the first {kept} samples of {size} bytes are stored in order"),
                "the distribution has all of them",
            ));
        }
    }

    /// No answer at all with a reason from the network is a failure; without one it is a result.
    fn verdict_on_silence(&mut self) -> Result<(), Failure> {
        let mut received = self.record.summary.iter().filter(|r| r.metric == MetricId::Received);
        if received.any(|row| row.value > 0.0) {
            return Ok(());
        }
        match &self.wire.troubles().last {
            Some(words) => Err(Failure::new(Fault::Unreachable, "ping", self.target_name(), words)
                .advise("is the host up? `ip route get` and traceroute show the way to it")),
            None => Ok(()),
        }
    }
}

/// The session of a STAMP plan.
fn stamp_session(plan: StampPlan, key: Option<StampKey>) -> Result<StampSession, Failure> {
    if plan.authenticated != key.is_some() {
        let reason = if plan.authenticated { "it is not here" } else { "the plan has none" };
        return Err(Failure::new(Fault::Usage, "use", "the key of STAMP", reason)
            .advise("name its file by --key"));
    }
    // Not 0, which is no identifier.
    let ssid = u16::from_ne_bytes(clock::random_bytes()).max(1);
    Ok(StampSession { key, ssid, reply_dscp: plan.reply_dscp, next: 0 })
}

fn check_plan(plan: &PingPlan) -> Result<(), Failure> {
    let refuse = |object: &str, reason: String, advice: &str| {
        Err(Failure::new(Fault::Usage, "read", object, reason).advise(advice))
    };
    if plan.sizes_bytes.is_empty() {
        return refuse("size", "no size is given".to_owned(), "give -s 56");
    }
    if let Some(size) = plan.sizes_bytes.iter().find(|size| **size > PAYLOAD_BYTES_MAX) {
        let reason = format!("{size} bytes do not fit in an IP packet");
        return refuse("size", reason, &format!("give at most {PAYLOAD_BYTES_MAX}"));
    }
    let bare = plan.stamp.map_or(0, |stamp| StampProbe::least_bytes(stamp.authenticated) as u32);
    if let Some(size) = plan.sizes_bytes.iter().find(|size| **size < bare) {
        let reason = format!("{size} bytes have no room for a STAMP packet of {bare}");
        return refuse("size", reason, &format!("give {bare} or more"));
    }
    if plan.mode == PingMode::Window(0) {
        return refuse("window", "0 probes may never be sent".to_owned(), "give 1 or more");
    }
    if plan.count == Some(0) {
        return refuse("count", "there is nothing to send".to_owned(), "give -c 1 or more");
    }
    if plan.mode == PingMode::Paced && plan.interval_ns < INTERVAL_NS_MIN {
        let reason = "below 10 µs the pace cannot be kept".to_owned();
        return refuse("interval", reason, "flood by -f, or give a longer -i");
    }
    if plan.deadline_ns == Some(0) {
        let reason = "nothing is sent in no time".to_owned();
        return refuse("deadline", reason, "give a longer -w, or none");
    }
    if plan.timeout_ns == 0 {
        return refuse("timeout", "no answer comes in no time".to_owned(), "give -W 1");
    }
    if plan.dscp.is_some_and(|dscp| dscp > 63) {
        return refuse("dscp", "it has 6 bits".to_owned(), "give 0 to 63");
    }
    if plan.mode == PingMode::Paced && plan.timeout_ns / plan.interval_ns >= REMEMBERED_MAX / 2 {
        let reason = "too many probes would be in flight within one timeout".to_owned();
        return refuse("interval", reason, "give a longer -i or a shorter -W");
    }
    Ok(())
}

/// Probes to remember: those that can be under way, twice over for late answers.
fn remembered(plan: &PingPlan) -> u64 {
    let under_way = match plan.mode {
        PingMode::Paced => plan.timeout_ns / plan.interval_ns,
        PingMode::Flood => 1,
        PingMode::Window(window) => u64::from(window),
    };
    let asked = plan.count.unwrap_or(REMEMBERED_MIN).clamp(16, REMEMBERED_MIN);
    under_way.saturating_mul(2).max(asked).min(REMEMBERED_MAX)
}

fn waiting(plan: &PingPlan) -> AnswerWaitMode {
    match (plan.wait, plan.mode) {
        (WaitMode::Spin, _) => AnswerWaitMode::Spin,
        (WaitMode::Auto, PingMode::Flood | PingMode::Window(_)) if sched::cpus_allowed() > 1 => {
            AnswerWaitMode::SpinThenSleep(SPIN_NS)
        }
        (WaitMode::Auto | WaitMode::Block, _) => AnswerWaitMode::Sleep,
    }
}

const fn kind_words(kind: EchoKind) -> &'static str {
    match kind {
        EchoKind::IcmpDatagram => "ICMP datagram socket",
        EchoKind::IcmpRaw => "ICMP raw socket",
        EchoKind::IcmpXdp => "ICMP by AF_XDP",
        EchoKind::Udp => "UDP echo",
    }
}

fn mode_words(plan: &PingPlan) -> String {
    let wait = match waiting(plan) {
        AnswerWaitMode::Spin => "spinning",
        AnswerWaitMode::SpinThenSleep(_) => "spinning up to 1 ms",
        AnswerWaitMode::Sleep => "sleeping",
    };
    let mode = match plan.mode {
        PingMode::Paced => {
            let interval = print_span(Duration::from_nanos(plan.interval_ns));
            let each = if plan.poisson_seed.is_some() { "on average one" } else { "one" };
            format!("open loop: {each} every {interval}")
        }
        PingMode::Flood | PingMode::Window(1) => "closed loop: stop and wait".to_owned(),
        PingMode::Window(window) => format!("closed loop: {window} in flight"),
    };
    let transport = match plan.transport {
        PingTransport::Icmp if plan.xdp => "answered by the peer's kernel or its XDP",
        PingTransport::Icmp | PingTransport::Tcp => "answered by the peer's kernel",
        PingTransport::Udp | PingTransport::WebSocket => "answered by linerate serve",
        PingTransport::Stamp => "answered by a reflector",
    };
    format!("{mode}, {wait}, {transport}")
}

fn record_ends(wire: &SocketWire, peer: SocketAddr, tick: Option<Tick>) -> Vec<MeasurementEnd> {
    let local = MeasurementEnd {
        address: wire.socket().local_address().map(|address| address.to_string()),
        clock_tick_ns: tick.map(|tick| tick.step_ns),
        ..environment::local_end(Some(peer.ip()))
    };
    let remote = MeasurementEnd {
        role: "remote".to_owned(),
        address: Some(peer.ip().to_string()),
        ..MeasurementEnd::default()
    };
    vec![local, remote]
}
