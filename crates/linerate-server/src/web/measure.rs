//! What a run does: a thread of its own takes the directions in turn through the engine, keeps each
//! record, and says what happens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::explain::explain;
use linerate_core::record::{
    Cause, Direction, Flow, LimitVerdict, MetricId, Outcome, Plan, Record, RecordStatus, Stat,
    Summary, TcpDirections, TcpInfo,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_engine::flow::admission::Permit;
use linerate_engine::http_load::{LoadPlan, LoadRun, LoadSample, add_datagrams, add_delays};
use linerate_report::verdict::{cause_with_proof, evidence, next_bound_name, remedy};
use linerate_store::Store;
use linerate_sys::clock::{monotonic, sleep};
use serde_json::{Value, json};

use super::address::without_address;
use super::datagrams::phases::{LoadSpan, by_phase};
use super::run::BrowserRun;
use super::state::State;

/// The span at the begin of a direction that does not count, and the shortest test that has one.
const OMITTED: Duration = Duration::from_secs(1);
const OMITS_FROM_S: u64 = 4;
/// A run without load, for datagrams alone, ends by the page's word or after this.
const REST_WITHIN: Duration = Duration::from_secs(20);
/// After the last direction the page has this long to say what it measured.
const DELAYS_WITHIN: Duration = Duration::from_secs(2);
/// A round of datagrams that is under way has this long after the last direction: it waits a second
/// for late ones.
const ROUND_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A run, and what it shares with others.
struct BrowserRunWorker<'a> {
    run: &'a BrowserRun,
    state: &'a State,
}

impl BrowserRunWorker<'_> {
    /// Takes every direction in turn; the place at the gate is given back at the end.
    fn measure(&self, mut load: LoadRun, permit: Permit) {
        let Self { run, .. } = self;
        if run.asked.directions.is_empty() {
            drop(load);
            return self.wait_without_load();
        }
        run.push_state("idle", "the path is at rest; waiting for the first stream");
        let mut records = Vec::new();
        let mut loads = Vec::new();
        for direction in &run.asked.directions {
            if run.stop.is_requested() {
                break;
            }
            let (record, begin) = self.measure_direction(&mut load, *direction);
            let failed = record.status == RecordStatus::Error;
            records.push(record);
            loads.push(LoadSpan { direction: *direction, begin, end: monotonic() });
            if failed {
                break;
            }
        }
        // Who waits need not wait for what is left to be told.
        drop(load);
        drop(permit);
        self.add_delays(&mut records, &loads);
        self.add_datagrams(&mut records, &loads);
        let ids = self.store_records(&records);
        if let Some(said) = verdicts_said(&records, run.asked.host.as_deref()) {
            run.push_event("verdict", &said);
        }
        let failure = records.iter().find_map(|record| record.failure.as_ref());
        match failure {
            Some(failure) => run.push_state("failed", &failure.to_string()),
            None if run.stop.is_requested() => {
                run.push_state("failed", "the run was ended before its time")
            }
            None => run.push_state("done", "every direction was measured"),
        }
        run.push_event("end", &json!({ "records": ids }));
    }

    /// Keeps the place while datagrams are measured and nothing else.
    fn wait_without_load(&self) {
        let Self { run, .. } = self;
        run.push_state("idle", "the path is at rest; no load was asked for");
        let until = monotonic() + REST_WITHIN;
        while !run.stop.is_requested() && monotonic() < until {
            sleep(LOOK);
        }
        run.push_state("done", "no load was asked for");
        run.push_event("end", &json!({ "records": [] }));
    }

    /// Adds what the page measured to the records, once it says so.
    fn add_delays(&self, records: &mut [Record], loads: &[LoadSpan]) {
        let until = monotonic() + DELAYS_WITHIN;
        let whole = records.iter().all(|record| record.failure.is_none());
        while whole
            && self.run.delays().is_none()
            && monotonic() < until
            && !self.run.stop.is_requested()
        {
            sleep(LOOK);
        }
        let Some(delays) = self.run.delays() else { return };
        let Some(first) = loads.first() else { return };
        for (record, load) in records.iter_mut().zip(loads) {
            let after_s = load.begin.nanos_since(first.begin) as f64 / 1e9;
            add_delays(record, &delays.for_direction(load.direction, after_s));
        }
    }

    /// Adds what became of the page's datagrams to the records, once their last round is told.
    fn add_datagrams(&self, records: &mut [Record], loads: &[LoadSpan]) {
        let until = monotonic() + ROUND_WITHIN;
        while self.run.rounds().is_none() && monotonic() < until && !self.run.stop.is_requested() {
            sleep(LOOK);
        }
        let rounds = self.run.rounds_so_far();
        let all = by_phase(&rounds, loads);
        records.iter_mut().for_each(|record| add_datagrams(record, all.clone()));
    }

    /// Moves one direction; its record, and when its load began.
    fn measure_direction(&self, load: &mut LoadRun, direction: Direction) -> (Record, MonoTime) {
        let Self { run, state } = self;
        let (name, say) = match direction {
            Direction::Down => ("down", "from this server to the browser"),
            Direction::Up => ("up", "from the browser to this server"),
        };
        run.push_state(name, say);
        let plan = LoadPlan {
            direction,
            streams: run.asked.streams,
            time: Duration::from_secs(run.asked.seconds),
            omit: omitted(run.asked.seconds),
            pace: run.asked.rate_bps.map(BitRate::from_bits_per_sec),
            peer: run.peer,
            tool: state.options.tool.clone(),
        };
        let mut begin = monotonic();
        let mut first = true;
        let mut told = |sample: &LoadSample| {
            if std::mem::take(&mut first) {
                begin = MonoTime::from_nanos(monotonic().as_nanos().saturating_sub(sample.t_ns));
            }
            run.push_event("sample", &sample_said(sample));
        };
        let mut record = load.direction(&plan, &run.stop, &mut told);
        record.name.clone_from(&run.asked.name);
        record.tags.insert("run".to_owned(), run.id.clone());
        without_address(&mut record, run.peer.ip());
        run.push_event("part", &part_said(&record, direction));
        log_direction(&record, direction, run.peer);
        (record, begin)
    }

    /// Puts the records into the store; their identifiers, kept or not.
    fn store_records(&self, records: &[Record]) -> Vec<String> {
        let Self { run, state } = self;
        if let Some(path) = &state.options.store {
            let kept = Store::open(path).and_then(|mut store| {
                records.iter().try_for_each(|record| store.put_record(record))
            });
            if let Err(failure) = kept {
                tracing::warn!(peer = %run.peer, "not kept: {failure}");
                run.push_state("done", &format!("the result is not kept: {failure}"));
            }
        }
        records.iter().map(|record| record.id.to_string()).collect()
    }
}

/// Time at the start of a direction that is left out of its result: slow start and the opening of
/// the streams are no small share of a few seconds. A short test is counted whole.
const fn omitted(seconds: u64) -> Duration {
    if seconds >= OMITS_FROM_S { OMITTED } else { Duration::ZERO }
}

/// Starts the thread of a run.
pub(crate) fn start_run_thread(
    run: &Arc<BrowserRun>,
    state: &Arc<State>,
    load: LoadRun,
    permit: Permit,
) -> std::io::Result<()> {
    let (run, state) = (Arc::clone(run), Arc::clone(state));
    let work = move || {
        BrowserRunWorker { run: &run, state: &state }.measure(load, permit);
        run.mark_ended();
    };
    std::thread::Builder::new().name("linerate-run".to_owned()).spawn(work).map(drop)
}

/// A line of the server's log for a direction.
fn log_direction(record: &Record, direction: Direction, peer: SocketAddr) {
    let way = if direction == Direction::Down { "down" } else { "up" };
    let rate = figure(record, MetricId::Goodput).unwrap_or(0.0);
    let bytes = figure(record, MetricId::Bytes).unwrap_or(0.0);
    match &record.failure {
        None => tracing::info!(%peer, "http: {way}: {bytes:.0} B, {:.3} Mbit/s", rate / 1e6),
        Some(failure) => tracing::warn!(%peer, "http: {way}: {failure}"),
    }
}

/// A figure of a record's summary, all streams together.
fn figure(record: &Record, metric: MetricId) -> Option<f64> {
    let is = |row: &&Summary| row.metric == metric && row.stat == Stat::Value && row.flow.is_none();
    record.summary.iter().find(is).map(|row| row.value)
}

fn sample_said(sample: &LoadSample) -> Value {
    let LoadSample { direction, t_ns, rates_bps, rtt_ns, retransmits } = sample;
    let rounded: Vec<f64> = rates_bps.iter().map(|rate| rate.round()).collect();
    let rtt_us: Option<Vec<u64>> = rtt_ns.iter().map(|ns| ns.map(|ns| ns / 1000)).collect();
    json!({
        "direction": direction,
        "t_s": (*t_ns as f64 / 1e6).round() / 1e3,
        "rate_bps": rounded.iter().sum::<f64>(),
        "streams": rounded,
        "rtt_us": rtt_us,
        "retransmits": retransmits,
    })
}

fn part_said(record: &Record, direction: Direction) -> Value {
    let seconds = figure(record, MetricId::Span).map(|ns| ns / 1e9);
    let verdict = explain(record).into_iter().next();
    let limited = verdict.as_ref().filter(|verdict| verdict.cause.is_some()).map(|verdict| {
        let (cause, confidence) = (verdict.cause, verdict.confidence);
        json!({ "cause": cause, "confidence": confidence, "say": cause_with_proof(verdict) })
    });
    json!({
        "direction": direction,
        "rate_bps": figure(record, MetricId::Goodput),
        "bytes": figure(record, MetricId::Bytes),
        "bytes_all": all_bytes(record),
        "seconds": seconds,
        "omitted_s": omitted_s(record),
        "syn": record.flows.iter().find_map(|flow| flow.syn),
        "rtt_min_us": own_info(record).filter_map(|info| info.min_rtt_us).min(),
        "ecn": ecn_said(record),
        "record": record.id.to_string(),
        "status": record.status,
        "client_limited": client_limits(verdict.as_ref()),
        "limited_by": limited,
        "failure": record.failure.as_ref().map(ToString::to_string),
    })
}

/// `TCP_INFO` of this host's end of each connection, as it was at the end.
fn own_info(record: &Record) -> impl Iterator<Item = &TcpInfo> {
    let down =
        matches!(&record.plan, Plan::Tcp(plan) if plan.test.directions == TcpDirections::Down);
    let ends = record.flows.iter().filter_map(move |flow| match down {
        true => flow.sender.as_ref(),
        false => flow.receiver.as_ref(),
    });
    ends.filter_map(|end| end.tcp_info.as_ref())
}

/// ECN of a test's connections as JSON: `negotiated`, and `seen` where a packet from the browser
/// carried it (`tcpi_options`: TCPI_OPT_ECN is 8, TCPI_OPT_ECN_SEEN 16). None where the kernel
/// tells nothing.
fn ecn_said(record: &Record) -> Option<Value> {
    let options: Vec<u8> = own_info(record).filter_map(|info| info.options).collect();
    let any = |bit: u8| options.iter().any(|set| set & bit != 0);
    (!options.is_empty()).then(|| json!({ "negotiated": any(8), "seen": any(16) }))
}

/// Payload of the whole direction, with what the omitted span moved.
fn all_bytes(record: &Record) -> u64 {
    let known = |flow: &Flow| flow.receiver.as_ref().or(flow.sender.as_ref()).map(|end| end.bytes);
    record.flows.iter().filter_map(known).sum()
}

fn omitted_s(record: &Record) -> f64 {
    match &record.plan {
        Plan::Tcp(plan) => plan.test.omit_ns as f64 / 1e9,
        _ => 0.0,
    }
}

/// True where the verdict of the direction names the browser's host as the limit.
fn client_limits(verdict: Option<&LimitVerdict>) -> bool {
    verdict.and_then(|verdict| verdict.cause.zip(verdict.direction)).is_some_and(|cause| {
        matches!(
            cause,
            (
                Cause::ReceiveWindow | Cause::ReceivingHost | Cause::ReceivingApplication,
                Direction::Down
            ) | (Cause::SendingHost | Cause::SendingApplication, Direction::Up)
        )
    })
}

/// The verdict of a run: that of the direction that is limited, else the first.
fn telling(records: &[Record]) -> Option<LimitVerdict> {
    let verdicts: Vec<LimitVerdict> = records.iter().flat_map(explain).collect();
    let limited = verdicts.iter().find(|verdict| verdict.outcome == Outcome::Limited);
    limited.or_else(|| verdicts.first()).cloned()
}

/// The verdict of a run; beside it that of each direction, where there are several.
pub(crate) fn verdicts_said(records: &[Record], host: Option<&str>) -> Option<Value> {
    let mut said = verdict_said(&telling(records)?, host);
    let ways = records.iter().flat_map(explain).map(|verdict| verdict_said(&verdict, None));
    let ways: Vec<Value> = ways.collect();
    if ways.len() > 1 {
        said["ways"] = ways.into();
    }
    Some(said)
}

fn verdict_said(verdict: &LimitVerdict, host: Option<&str>) -> Value {
    let remedies: Vec<String> = verdict.remedy.iter().map(remedy::action_with_place).collect();
    let next = verdict
        .next
        .as_ref()
        .map(|limit| json!({ "rate_bps": limit.bps, "say": next_bound_name(limit.bound) }));
    json!({
        "outcome": verdict.outcome,
        "direction": verdict.direction,
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "limited_by": verdict.limited_by,
        "quality": verdict.quality,
        "headline": cause_with_proof(verdict),
        "evidence": evidence(verdict),
        "remedy": remedies,
        "next_limit": next,
        "commands": commands(host),
    })
}

/// Command lines that measure the same path from the client's host without a browser.
fn commands(host: Option<&str>) -> Vec<String> {
    let Some(host) = host else { return Vec::new() };
    let host = host.strip_suffix(":5210").unwrap_or(host);
    ["test", "tcp", "tcp -R"]
        .map(|verb| match verb.split_once(' ') {
            Some((verb, flag)) => format!("linerate {verb} {host} {flag}"),
            None => format!("linerate {verb} {host}"),
        })
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_names_the_host_as_the_browser_reached_it() {
        assert_eq!(commands(Some("192.0.2.1:5210"))[2], "linerate tcp 192.0.2.1 -R");
        assert_eq!(commands(Some("[2001:db8::1]:80"))[1], "linerate tcp [2001:db8::1]:80");
    }

    /// Results of live paths whose cause is known: see testdata/explain.
    #[test]
    fn the_page_is_told_the_limit_and_the_trust_that_the_headline_has() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/records");
        for file in std::fs::read_dir(folder).expect("a folder") {
            let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
            let record = Record::from_json(&text).expect("a record");
            let headline = linerate_report::Headline::from_record(&record);
            let verdict = telling(std::slice::from_ref(&record)).expect("a transfer has one");
            let said = verdict_said(&verdict, None);
            assert_eq!(said["limited_by"], headline.limit.by.json_key(), "{said}");
            assert_eq!(said["quality"], headline.quality.to_string(), "{said}");
            let named = part_said(&record, Direction::Up)["limited_by"]["cause"].clone();
            assert_eq!(named, said["cause"], "{said}");
        }
    }
}
