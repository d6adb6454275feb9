//! Probes beside a throughput test: some before the load, then one after another through it, from a
//! thread of their own, so that no wait of a data stream holds them up.
//!
//! Beside the load they take no more than a hundredth of what it moves. UDP echo where linerate
//! serve answers, else ICMP echo. Whatever becomes of the probes, the test goes on: probes that
//! nobody answers are told in one line of its record.

mod handshakes;
mod kept;
mod share;
mod sums;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{
    Direction, Failure, Fault, PingMode, PingPlan, PingTransport, ProbeKind, ProbePhase, ProbePlan,
    ProbeSpan, Probes, ServerPlan, TcpDirections,
};
use linerate_core::time::MonoTime;
use linerate_proto::echo::{EchoTrackerLimits, UDP_ECHO_CLASSES_BYTES};
use linerate_sys::stop::Stop;
use linerate_sys::{clock, sched, timestamps};

use self::handshakes::Handshakes;
use self::kept::Kept;
use self::share::ProbeShare;
pub(crate) use self::sums::add;
use crate::address::resolve;
use crate::flow::peer::bind_address;
use crate::flow::samples::Sample;
use crate::rtt::{
    AnswerWaitMode, ProbePace, ProbeRunEnd, ProbeRunRules, SocketWire, Spacing, drive_probes,
    open_socket,
};

/// Probes before the load are this far apart: twenty of them take a fifth of a second.
pub(crate) const IDLE_INTERVAL_NS: u64 = 10_000_000;
/// New connections come no faster than this, and few of them without load: the server has a thread
/// for each while it lasts.
const HANDSHAKE_INTERVAL_NS: u64 = 100_000_000;
const IDLE_HANDSHAKES: u32 = 5;
/// However long the round trip, a test waits for its load no longer than this.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// An answer that takes longer is none. Queues of seconds exist (30 kB before 56 kbit/s are 4.3 s,
/// RFC 8290 §1 names others); a threshold below them would call their delay a loss.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// A connection that takes longer did not come about.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Probes that can be on their way in that time at 1000/s, and more.
const REMEMBERED: usize = 1 << 15;
/// Octets of a probe: room for the times and the traffic class of the other end.
const PAYLOAD_BYTES: u32 = UDP_ECHO_CLASSES_BYTES as u32;
/// Probes of one test that are kept: at 50/s those of more than half an hour.
const KEPT_MAX: usize = 100_000;

/// Probes of one kind under way.
#[derive(Debug)]
struct Prober {
    record: Probes,
    idle: Kept,
    loaded: Option<JoinHandle<(Kept, Option<Failure>)>>,
    stop: Stop,
    share: Arc<ProbeShare>,
}

/// All probes of a test under way: those that its summary is of, and those beside them.
#[derive(Debug)]
pub(crate) struct Probers {
    first: Prober,
    beside: Vec<Prober>,
}

/// The notice to the user that probes before the load take a second or more.
pub(crate) fn long_rest(server: &ServerPlan) -> Option<String> {
    let plan = server.probes.as_ref()?;
    let interval_ns = plan.idle_interval_ns.unwrap_or(IDLE_INTERVAL_NS);
    let span = Duration::from_nanos(interval_ns.saturating_mul(plan.idle_count.into()));
    let seconds = span.as_secs_f64();
    (seconds >= 1.0).then(|| format!("probing the path without load for {seconds} s"))
}

/// Sends the probes before the load, and begins with those beside it, where any are planned.
/// Probes of several kinds go at the same time also before it.
pub(crate) fn begin_probing(
    server: &ServerPlan,
    load_dscp: Option<u8>,
    stop: &Stop,
) -> Option<Probers> {
    let plan = server.probes.as_ref()?;
    let first = ProbeKind { dscp: plan.dscp, ecn: plan.ecn, transport: None };
    let of = |kind: ProbeKind| {
        let kind = ProbeKind { dscp: kind.dscp.or(load_dscp), ..kind };
        Prober::of_kind(server, plan, kind, stop)
    };
    std::thread::scope(|scope| {
        let beside: Vec<_> =
            plan.beside.iter().map(|&kind| scope.spawn(move || of(kind))).collect();
        let first = of(first);
        let beside = beside.into_iter().filter_map(|prober| prober.join().ok()).collect();
        Some(Probers { first, beside })
    })
}

impl Probers {
    /// Learns what the load moved so far, from the client's samples or the server's.
    pub(crate) fn learn_load_rate(&self, samples: &[Sample], of_client: bool) {
        for prober in [&self.first].into_iter().chain(&self.beside) {
            prober.share.learn_load_rate(samples, of_client, prober.record.payload_bytes);
        }
    }

    /// Ends them beside a load that began at a time: the first kind, and the others.
    pub(crate) fn finish_probes(self, begin: MonoTime) -> (Probes, Vec<Probes>) {
        // None goes on while another is waited for.
        [&self.first].into_iter().chain(&self.beside).for_each(|prober| prober.stop.request_stop());
        let beside = self.beside.into_iter().map(|prober| prober.finish_record(begin)).collect();
        (self.first.finish_record(begin), beside)
    }
}

impl Prober {
    /// Begins with those of one kind, by the first transport that is answered where it is open.
    fn of_kind(server: &ServerPlan, plan: &ProbePlan, kind: ProbeKind, stop: &Stop) -> Self {
        let transports: &[PingTransport] = match (kind.transport, server.via) {
            (Some(PingTransport::Icmp), _) | (None, Some(_)) => &[PingTransport::Icmp],
            (Some(PingTransport::Tcp), _) => &[PingTransport::Tcp],
            (Some(_), _) => &[PingTransport::Udp],
            (None, None) => &[PingTransport::Udp, PingTransport::Icmp],
        };
        let (&first, others) = transports.split_first().expect("none is empty");
        let begin = |transport| {
            Self::begin_at_rest(
                server,
                plan,
                ProbeKind { transport: Some(transport), ..kind },
                stop,
            )
        };
        let prober = begin(first);
        if prober.record.silent.is_none() {
            return prober;
        }
        // Of two ways that both fail the first one's reason says more.
        let other =
            others.iter().map(|&it| begin(it)).find(|prober| prober.record.silent.is_none());
        other.unwrap_or(prober)
    }

    /// Probes the path at rest; where that works, a thread goes on.
    fn begin_at_rest(server: &ServerPlan, plan: &ProbePlan, kind: ProbeKind, stop: &Stop) -> Self {
        let transport = kind.transport.unwrap_or(PingTransport::Udp);
        let ping = PingPlan {
            host: server.host.clone(),
            transport,
            port: server.port,
            family: server.family,
            bind: server.bind.clone(),
            sizes_bytes: vec![PAYLOAD_BYTES],
            mode: PingMode::Flood,
            dscp: kind.dscp,
            ..PingPlan::default()
        };
        let record = Probes::new(transport, server.host.clone(), PAYLOAD_BYTES);
        let record = Probes { dscp: kind.dscp, ecn: kind.ecn, ..record };
        let mut prober = Self {
            record,
            idle: Kept::new(KEPT_MAX),
            loaded: None,
            stop: Stop::new(),
            share: Arc::default(),
        };
        let started = resolve(&server.host, server.port, server.family)
            .and_then(|peer| prober.start_probing(&ping, peer, plan, stop));
        if let Err(failure) = started {
            let Failure { attempt, object, reason, .. } = failure;
            prober.record.silent = Some(format!("no probes: {attempt} {object}: {reason}"));
        }
        prober
    }

    fn start_probing(
        &mut self,
        ping: &PingPlan,
        peer: SocketAddr,
        plan: &ProbePlan,
        stop: &Stop,
    ) -> Result<(), Failure> {
        self.record.target = match ping.transport {
            PingTransport::Udp
            | PingTransport::Stamp
            | PingTransport::Tcp
            | PingTransport::WebSocket => peer.to_string(),
            PingTransport::Icmp => peer.ip().to_string(),
        };
        if ping.transport == PingTransport::Tcp {
            return self.start_handshakes(ping, peer, plan, stop);
        }
        let (kind, socket) = open_socket(ping, peer)?;
        let mut wire = SocketWire::new(socket, kind, peer, AnswerWaitMode::Sleep);
        wire.ask_peer_times(true);
        wire.use_class(self.record.dscp.unwrap_or(0) << 2 | self.record.ecn.unwrap_or(0))?;
        // A kernel without stamps leaves the program's own times.
        if wire.start_stamps(true).is_ok() {
            wire.take_notes(true);
            clock::sleep(timestamps::START_DELAY);
        } else {
            wire.stop_stamps();
        }
        let name = || u64::from_ne_bytes(clock::random_bytes());
        wire.prepare_run(PAYLOAD_BYTES, name())?;
        let limits = EchoTrackerLimits { timeout_ns: TIMEOUT_NS, capacity: REMEMBERED };
        if plan.idle_count > 0 {
            let interval_ns = plan.idle_interval_ns.unwrap_or(IDLE_INTERVAL_NS);
            let all = Duration::from_nanos(interval_ns.saturating_mul(plan.idle_count.into()));
            let rules = ProbeRunRules {
                pace: ProbePace::Every(interval_ns),
                count: Some(plan.idle_count.into()),
                deadline: Some(clock::monotonic() + all.max(IDLE_MAX)),
                limits,
                spacing: None,
            };
            let run = drive_probes(&mut wire, &rules, stop, &mut self.idle);
            if let ProbeRunEnd::Failed(failure) = run.ended {
                return Err(failure);
            }
            if !self.idle.has_answers() {
                let silent = self.nobody_answers(self.idle.probe_count(), Some(&wire));
                self.record.silent = Some(silent);
                return Ok(());
            }
            wire.prepare_run(PAYLOAD_BYTES, name())?;
        }
        let (stop, share, pace) =
            (self.stop.clone(), Arc::clone(&self.share), ProbePace::Every(plan.interval_ns));
        let run = move || {
            let spacing = || share.interval_ns();
            let spacing: Option<Spacing<'_>> = Some(&spacing);
            let rules = ProbeRunRules { pace, count: None, deadline: None, limits, spacing };
            let _slack = sched::ShortSlack::shorten_slack();
            let mut kept = Kept::new(KEPT_MAX);
            let run = drive_probes(&mut wire, &rules, &stop, &mut kept);
            kept.settle(clock::monotonic());
            let failure = match run.ended {
                ProbeRunEnd::Failed(failure) => Some(failure),
                _ => None,
            };
            (kept, failure)
        };
        self.spawn_thread(run)
    }

    /// The same with handshakes.
    fn start_handshakes(
        &mut self,
        ping: &PingPlan,
        peer: SocketAddr,
        plan: &ProbePlan,
        stop: &Stop,
    ) -> Result<(), Failure> {
        self.record.payload_bytes = 0;
        let interval = Duration::from_nanos(plan.interval_ns.max(HANDSHAKE_INTERVAL_NS));
        let local = bind_address(ping.bind.as_deref())?;
        let handshakes = Handshakes { peer, local, interval, timeout: HANDSHAKE_TIMEOUT };
        let idle = Handshakes { interval: Duration::from_nanos(IDLE_INTERVAL_NS), ..handshakes };
        let until = clock::monotonic() + IDLE_MAX;
        idle.run(Some(plan.idle_count.min(IDLE_HANDSHAKES)), Some(until), stop, &mut self.idle)?;
        let stop = self.stop.clone();
        let run = move || {
            let mut kept = Kept::new(KEPT_MAX);
            let failure = handshakes.run(None, None, &stop, &mut kept).err();
            kept.settle(clock::monotonic());
            (kept, failure)
        };
        self.spawn_thread(run)
    }

    /// Goes on in a thread.
    fn spawn_thread(
        &mut self,
        run: impl FnOnce() -> (Kept, Option<Failure>) + Send + 'static,
    ) -> Result<(), Failure> {
        let thread = std::thread::Builder::new().name("linerate-probe".to_owned()).spawn(run);
        let thread = thread
            .map_err(|error| Failure::new(Fault::System, "start thread for", "probes", error));
        self.loaded = Some(thread?);
        Ok(())
    }

    /// Why none was answered, in words that fit a line.
    fn nobody_answers(&self, count: usize, wire: Option<&SocketWire>) -> String {
        if let Some(reason) = wire.and_then(|wire| wire.troubles().last.clone()) {
            return format!("no probe to {} was answered: {reason}", self.record.target);
        }
        let echo = match self.record.transport {
            PingTransport::Udp => "UDP",
            PingTransport::Icmp => "ICMP",
            PingTransport::Stamp => "STAMP",
            PingTransport::Tcp => "TCP handshake",
            PingTransport::WebSocket => "WebSocket",
        };
        format!("none of {count} probes by {echo} echo to {} was answered", self.record.target)
    }

    /// Ends the probes beside a load that began at a time.
    fn finish_record(mut self, begin: MonoTime) -> Probes {
        self.stop.request_stop();
        let loaded = self.loaded.take().and_then(|thread| thread.join().ok());
        let (loaded, failure) = loaded.unwrap_or_else(|| (Kept::new(0), None));
        let mut record = self.record.clone();
        record.phases.extend(self.idle.time_span(begin).map(|(from_ns, to_ns)| ProbeSpan {
            phase: ProbePhase::Idle,
            from_ns,
            to_ns,
        }));
        let answered = self.idle.has_answers() || loaded.has_answers();
        self.idle.fill_record(begin, &mut record);
        loaded.fill_record(begin, &mut record);
        if record.ecn.is_none() {
            // Nobody looks for marks of what cannot be marked.
            (record.ecn_there, record.ecn_back) = (Vec::new(), Vec::new());
        }
        kept::leave_out_unknown(&mut record);
        if !answered && record.silent.is_none() {
            let count = record.sent_ns.len();
            let reason = failure.map(|failure| failure.reason);
            record.silent = Some(reason.unwrap_or_else(|| self.nobody_answers(count, None)));
        }
        record
    }
}

/// The phase of a load that goes in these directions.
pub(super) fn phase_of(directions: TcpDirections) -> ProbePhase {
    match directions.each_direction() {
        [Direction::Up] => ProbePhase::Up,
        [Direction::Down] => ProbePhase::Down,
        _ => ProbePhase::Both,
    }
}
