//! Which means move data fastest between these two ends: short trials before the test.
//!
//! Which call and which placement win depends on the host: where a packet's protocol work is done,
//! what a wake-up across cores costs, whether caches are shared. So each candidate has a round of
//! its own on fresh connections, the quickest ones a second and longer one, and the cheapest of
//! those that are about as fast is taken. What is between two hosts is the same for all of them:
//! over a long round trip no trial this short would tell them apart, and none is made.
//!
//! Floor of a round, at 64 KiB a packet with segmentation offload: a send call for each 0.5 MiB, a
//! receive call for each 256 KiB, 16 packets a MiB; per byte nothing is copied, so that protocol
//! work of about 5 µs a packet of 64 KiB is what is left (some 90 Gbit/s on one core of 2026).
//! Without offload it is one packet for each 1448 bytes, 1 µs each, and the technique hardly
//! matters. Left out: MSG_ZEROCOPY, which is to be asked for by name (the kernel copies after all
//! over loopback and veth, and tells so only afterwards).

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{
    EndReport, Event, Failure, Fault, Finish, FlowEnd, FlowSide, Means, ReceiveWith, SendWith,
    TcpTest, Trial,
};
use linerate_proto::native::NativeTcpTestRequest;

use super::link::ControlLink;
use crate::context::Context;
use crate::flow::account::{Account, client_side, rate_bps};
use crate::flow::summary::cpu_ns;

/// Length of a first trial.
const TRIAL: Duration = Duration::from_millis(100);
/// The quickest ones are tried again for this long.
const FINAL: Duration = Duration::from_millis(150);
/// Number of means that go into the last rounds.
const FINALISTS: usize = 3;
/// All rounds together take no longer than this, their set-up among it.
const ALL: Duration = Duration::from_secs(4);
/// Over a longer round trip a trial would be spent on its slow start.
const RTT_MAX: Duration = Duration::from_millis(5);
/// Rates within this share of the best are as good as equal: the cheaper one is taken.
const SAME_RATE: f64 = 0.95;

/// Bytes that a pipe holds: sent by one call where pages are spliced.
const SPLICE_BYTES: u32 = 1 << 20;

/// Tries what there is over `link` and gives it back with what to use in the test of `request`.
pub(super) fn choose(
    link: ControlLink,
    request: &TcpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(ControlLink, Means), Failure> {
    let asked = &request.means;
    let info = linerate_sys::tcp::tcp_info(link.net.stream().as_fd());
    let rtt = info.and_then(|info| info.rtt_us).map(|us| Duration::from_micros(us.into()));
    if let Some(rtt) = rtt.filter(|rtt| *rtt > RTT_MAX) {
        let line = format!("round trip of {:.1} ms: too long for trials", rtt.as_secs_f64() * 1e3);
        (context.watch)(&Event::Note(line));
        return Ok((link, Means { mptcp: asked.mptcp, ..between_hosts() }));
    }
    let mut trials = MeansTrials { link, request, rounds: Vec::new(), same_host: false };
    // The plain one comes first: it is what the others are held against, and its answer tells
    // whether both ends are on one host.
    let base = Means { mptcp: asked.mptcp, ..Means::default() };
    trials = trials.with_round(&base, TRIAL, context)?;
    let cores = linerate_sys::sched::allowed_cores();
    for means in candidates(trials.same_host, request.streams, &cores) {
        trials = trials.with_round(&Means { mptcp: asked.mptcp, ..means }, TRIAL, context)?;
    }
    let finalists: Vec<Means> = quickest(&trials.rounds).map(|trial| trial.means.clone()).collect();
    let first = trials.rounds.len();
    for means in &finalists {
        trials = trials.with_round(means, FINAL, context)?;
    }
    let chosen = best_trial(&trials.rounds[first..]).map(|at| first + at);
    let chosen = chosen.or_else(|| best_trial(&trials.rounds)).ok_or_else(|| {
        let reason = "none of them moved a byte";
        Failure::new(Fault::Unreachable, "choose between", "means of moving data", reason)
            .advise("see the trials in the record, or omit --fast")
    })?;
    trials.rounds[chosen].chosen = true;
    let means = trials.rounds[chosen].means.clone();
    account.trials = trials.rounds;
    Ok((trials.link, means))
}

/// The means that cost least where nothing can be tried.
fn between_hosts() -> Means {
    let (send_with, receive_with) = (SendWith::Sendfile, ReceiveWith::Trunc);
    Means { send_with, receive_with, ..Means::default() }
}

/// Processors that the streams of each end are kept on; none where they may move.
#[derive(Default)]
struct EndCpus {
    client: Vec<u32>,
    server: Vec<u32>,
}

/// The means that are worth a trial, beside the plain ones.
fn candidates(same_host: bool, streams: u16, cores: &[u32]) -> Vec<Means> {
    use ReceiveWith::{Read, Splice, Trunc};
    use SendWith::{Sendfile, Vmsplice, Write};
    let means = |send_with, receive_with, cpus: &EndCpus| Means {
        send_with,
        send_bytes: (send_with == Vmsplice).then_some(SPLICE_BYTES),
        receive_with,
        client_cpus: cpus.client.clone(),
        server_cpus: cpus.server.clone(),
        ..Means::default()
    };
    let free = EndCpus::default();
    let mut all: Vec<Means> =
        [(Sendfile, Read), (Vmsplice, Trunc)].map(|(s, r)| means(s, r, &free)).to_vec();
    if !same_host || cores.is_empty() {
        let further = [(Sendfile, Trunc), (Write, Trunc), (Vmsplice, Splice), (Sendfile, Splice)];
        all.extend(further.map(|(s, r)| means(s, r, &free)));
        return all;
    }
    let streams = usize::from(streams);
    let pairs: Vec<u32> = cores.iter().copied().take(streams).collect();
    let shared = EndCpus { client: pairs.clone(), server: pairs };
    all.extend(
        [(Vmsplice, Trunc), (Sendfile, Trunc), (Write, Trunc)].map(|(s, r)| means(s, r, &shared)),
    );
    if cores.len() > 1 {
        let of_each = |side: usize| cores.iter().copied().skip(side).step_by(2).take(streams);
        let apart = EndCpus { client: of_each(0).collect(), server: of_each(1).collect() };
        let further = [(Sendfile, Read), (Vmsplice, Splice), (Write, Trunc)];
        all.extend(further.map(|(s, r)| means(s, r, &apart)));
    }
    all
}

/// The quickest trials, each means once.
fn quickest(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    let mut done: Vec<&Trial> = trials.iter().filter(|trial| trial_goodput(trial) > 0.0).collect();
    done.sort_by(|one, other| trial_goodput(other).total_cmp(&trial_goodput(one)));
    done.into_iter().take(FINALISTS)
}

/// The cheapest of those that are about as fast as the fastest.
fn best_trial(trials: &[Trial]) -> Option<usize> {
    let fastest = trials.iter().map(trial_goodput).reduce(f64::max).filter(|rate| *rate > 0.0)?;
    let cost = |trial: &Trial| trial.cpu_s_per_gb.unwrap_or(f64::INFINITY);
    let near =
        trials.iter().enumerate().filter(|(_, trial)| trial_goodput(trial) >= fastest * SAME_RATE);
    near.min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other))).map(|(at, _)| at)
}

fn trial_goodput(trial: &Trial) -> f64 {
    trial.goodput_bps.unwrap_or(0.0)
}

/// Rounds on one control connection.
struct MeansTrials<'a> {
    link: ControlLink,
    request: &'a TcpTest,
    rounds: Vec<Trial>,
    /// True where both ends run on one kernel, as far as the rounds so far have told.
    same_host: bool,
}

impl MeansTrials<'_> {
    /// With one more round. A stream that fails is a trial that failed; a connection that does is
    /// the end.
    fn with_round(
        self,
        means: &Means,
        span: Duration,
        context: &Context<'_>,
    ) -> Result<Self, Failure> {
        let Self { link, request, mut rounds, .. } = self;
        let asked = of_trial(request, means, span);
        let tool = context.tool.clone();
        let mut silent = Context { tool, stop: context.stop.clone(), watch: &mut |_| {} };
        let mut account = Account::default();
        let link = link.measure(asked, false, &mut silent, &mut account)?;
        if context.stop.is_requested() {
            let reason = "stopped before the test began";
            let object = link.server.to_string();
            return Err(Failure::new(Fault::Unreachable, "try means with", object, reason));
        }
        let failure = account.stream_failure().map(|failure| failure.to_string());
        rounds.push(trial_result(means, span, &account, failure));
        let here = linerate_sys::host::boot_id();
        let same_host = here.is_some() && account.server_host_id == here;
        Ok(Self { link, request, rounds, same_host })
    }
}

/// The request of one round.
fn of_trial(request: &TcpTest, means: &Means, span: Duration) -> NativeTcpTestRequest {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let follow = ALL + request.planned_span().unwrap_or(Duration::ZERO);
    let test = TcpTest {
        finish: Finish::TimeNs(nanos(span)),
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        background: None,
        means: means.clone(),
        ..request.clone()
    };
    let host_id = linerate_sys::host::boot_id();
    NativeTcpTestRequest { test, follow_ns: Some(nanos(follow)), host_id, login: false }
}

/// The record of a round that tried a means.
fn trial_result<'a>(
    means: &Means,
    span: Duration,
    account: &'a Account,
    failure: Option<String>,
) -> Trial {
    // An end receives what the other sends: at the client what comes down, at the server the rest.
    let of = |reports: &'a [EndReport], side| {
        let receives = move |report: &&EndReport| client_side(report.direction) == side;
        reports.iter().filter(receives).map(|report| &report.end)
    };
    let down = of(&account.local, FlowSide::Receiver);
    let received: Vec<&FlowEnd> = down.chain(of(&account.remote, FlowSide::Sender)).collect();
    let all = account.local.iter().chain(&account.remote).map(|report| &report.end);
    let bytes: u64 = received.iter().map(|end| end.bytes_measured).sum();
    let moved: u64 = received.iter().map(|end| end.bytes).sum();
    let longest = received.iter().map(|end| end.span_start_ns + end.span_ns).max().unwrap_or(0);
    let cpu: Option<u64> = all.map(cpu_ns).sum();
    Trial {
        means: means.clone(),
        span_ns: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
        goodput_bps: Some(rate_bps(bytes, longest)).filter(|rate| *rate > 0.0 && failure.is_none()),
        cpu_s_per_gb: cpu.filter(|_| moved > 0).map(|cpu| cpu as f64 / moved as f64),
        chosen: false,
        failure,
    }
}
