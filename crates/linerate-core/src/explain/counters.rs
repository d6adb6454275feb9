//! The limit of one direction of a flow by what the record states: known bounds, the hosts'
//! accounts, what the sender's kernel waited for, queue and loss.
//!
//! Left out: the diagnosis, which reads none of the bounds; `decision` joins the two.

use super::limitation::{Ground, Limitation};
use crate::record::{
    CaveatCode, Ceiling, Direction, Expected, Flow, FlowEnd, FlowSide, LINK, LimitedBy, MetricId,
    Record, SHARE_MAX, Stat,
};

/// A link counts as full from this share of its ceiling on: TCP's own recovery and the ends of the
/// measured span take the rest.
pub(super) const FULL_FROM: f64 = 0.95;
/// A pace or a window explains a rate from this share of what it allows on.
const EXPLAINS_FROM: f64 = 0.9;
/// The kernel counts what a sender waits for; from this share of its busy time on it is the limit.
const WAITS_FROM: f64 = 0.5;
/// A thread that computes less of the time has some of its core left.
const COMPUTES_FROM: f64 = 0.9;
/// A thread that waits less of the time for a core computes or is blocked for the most part.
const CORE_AWAITED_FROM: f64 = 0.25;
/// From this share of segments or datagrams lost on, loss shapes the rate.
pub(super) const LOSSY_FROM: f64 = 1e-3;
/// A loaded round trip of so many times the idle one, and so much above it, is a queue.
const QUEUE_TIMES: f64 = 2.0;
const QUEUE_NS: f64 = 2e6;

/// A link whose rate is known and that carries all it can.
pub(super) fn full_link(ceiling: &Ceiling) -> Option<Limitation> {
    let ratio = ceiling.share.filter(|share| (FULL_FROM..=SHARE_MAX).contains(share))?;
    Some(Limitation::new(LimitedBy::Link, Ground::LinkFull { ratio }))
}

/// A bound that the measurement passed says nothing of what limited it.
pub(super) fn above_ceiling(ceiling: &Ceiling) -> Option<Limitation> {
    let above = || Limitation::new(LimitedBy::NotKnown, Ground::AboveCeiling);
    ceiling.is_exceeded().then(above)
}

/// The pace or the window that allows hardly more than was measured.
pub(super) fn explained(record: &Record, ceiling: &Ceiling, way: Direction) -> Option<Limitation> {
    let bound = ceiling.expected().filter(|bound| bound.kind != LINK && bound.value > 0.0)?;
    let share = record.summary_value(ceiling.metric, Stat::Value, Some(way))? / bound.value;
    if !(EXPLAINS_FROM..=SHARE_MAX).contains(&share) {
        return None;
    }
    let Expected { kind, value: bps } = bound;
    let rung = ceiling.rungs.iter().find(|rung| rung.kind == kind)?;
    if kind == "application" {
        return Some(Limitation::new(LimitedBy::Pace, Ground::Pace(bps)));
    }
    let input = |name: &str| rung.inputs.iter().find(|input| input.name == name);
    let size = input("window_bytes").or_else(|| input("send_buffer_bytes"));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let bytes = size.map(|size| size.value as u64);
    let ground = Ground::Window { kind: kind.to_owned(), bytes, bps };
    Some(Limitation::new(LimitedBy::Window, ground))
}

/// The end at which a data thread had no core left, or waited for one.
pub(super) fn busy_host(record: &Record, way: Direction) -> Option<Limitation> {
    let has = |code| record.caveats.iter().find(|caveat| caveat.code == code);
    let (bound, waiting) = (has(CaveatCode::CpuBound), has(CaveatCode::RunQueueWait));
    let caveat = bound.or(waiting)?;
    if !record.flows.iter().any(has_counters) {
        // Another program's end has the engine's words alone.
        return Some(Limitation::new(LimitedBy::ThisHost, Ground::Caveat(caveat.clone())));
    }
    let of = |side, ground| Limitation::new(host_of(record, way, side), ground);
    let computed = bound.and_then(|_| busiest(record, way, computed_ns));
    if let Some((side, share)) = computed.filter(|(_, share)| *share >= COMPUTES_FROM) {
        return Some(of(side, Ground::Computed(side, share)));
    }
    let waited = waiting.and_then(|_| busiest(record, way, |end| end.run_queue_wait_ns));
    let (side, share) = waited.filter(|(_, share)| *share >= CORE_AWAITED_FROM)?;
    Some(of(side, Ground::WaitedForCore(side, share)))
}

/// Time that the busiest thread of an end computed or waited for a core, where a caveat says that
/// it was more than usual; 0 where none does.
pub(super) fn host_share(limitation: &Limitation) -> f64 {
    match limitation.ground {
        Ground::Computed(_, share) | Ground::WaitedForCore(_, share) => share,
        _ => 0.0,
    }
}

fn has_counters(flow: &Flow) -> bool {
    let ends = [&flow.sender, &flow.receiver].into_iter().flatten();
    let mut known = ends.map(|end| computed_ns(end).or(end.run_queue_wait_ns));
    known.any(|time| time.is_some())
}

fn computed_ns(end: &FlowEnd) -> Option<u64> {
    Some(end.cpu_user_ns? + end.cpu_system_ns?)
}

/// The side of a direction with the largest share of the time, and that share.
fn busiest(
    record: &Record,
    way: Direction,
    of: fn(&FlowEnd) -> Option<u64>,
) -> Option<(FlowSide, f64)> {
    let share = |side| {
        let flows = record.flows.iter().filter(|flow| flow.direction == way);
        let ends = flows.filter_map(move |flow| match side {
            FlowSide::Sender => flow.sender.as_ref(),
            FlowSide::Receiver => flow.receiver.as_ref(),
        });
        let shares = ends.filter_map(|end| {
            let span = end.span_start_ns + end.span_ns;
            (span > 0).then_some(of(end)? as f64 / span as f64)
        });
        shares.reduce(f64::max)
    };
    let each = [FlowSide::Sender, FlowSide::Receiver].into_iter();
    let each = each.filter_map(|side| Some((side, share(side)?)));
    each.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The receiver's window or the send buffer, where the sender's kernel waited for it during most of
/// its busy time (tcp_info: busy, rwnd_limited, sndbuf_limited).
pub(super) fn waited(record: &Record, way: Direction) -> Option<Limitation> {
    let flows = record.flows.iter().filter(|flow| flow.direction == way);
    let infos = flows.filter_map(|flow| flow.sender.as_ref()?.tcp_info);
    let times = infos.filter_map(|info| {
        Some([info.busy_time_us?, info.rwnd_limited_us?, info.sndbuf_limited_us?])
    });
    let [busy, window, buffer] =
        times.fold([0; 3], |sum, each| [sum[0] + each[0], sum[1] + each[1], sum[2] + each[2]]);
    let share = window.max(buffer) as f64 / busy.max(1) as f64;
    let ground = match window >= buffer {
        true => Ground::WaitedForWindow(share),
        false => Ground::WaitedForBuffer(share),
    };
    (share >= WAITS_FROM).then(|| Limitation::new(LimitedBy::Window, ground))
}

/// Loss that shapes the rate.
pub(super) fn lossy_path(record: &Record, way: Direction) -> Option<Limitation> {
    let ratio = record.summary_value(MetricId::RetransmitRatio, Stat::Value, Some(way))?;
    let lossy = || Limitation::new(LimitedBy::Path, Ground::SentAgain(ratio));
    (ratio >= LOSSY_FROM).then(lossy)
}

/// A round trip that grew under load: the sender fills a queue faster than the path empties it.
pub(super) fn standing_queue(record: &Record, way: Direction) -> Option<Limitation> {
    let RestAndLoad { least_ns, loaded_ns } =
        round_trips(record, way).filter(RestAndLoad::is_queue)?;
    Some(Limitation::new(LimitedBy::Path, Ground::Queue { least_ns, loaded_ns }))
}

/// True of a direction whose round trip grew under load: a queue stood on its path.
pub fn has_queue(record: &Record, way: Direction) -> bool {
    round_trips(record, way).is_some_and(|rtts| rtts.is_queue())
}

/// The round trips of a direction at rest and under load.
struct RestAndLoad {
    least_ns: f64,
    loaded_ns: f64,
}

impl RestAndLoad {
    fn is_queue(&self) -> bool {
        self.loaded_ns >= QUEUE_TIMES * self.least_ns && self.loaded_ns - self.least_ns >= QUEUE_NS
    }
}

/// The round trip at rest and under load: TCP's own, else that of the probes beside the load.
fn round_trips(record: &Record, way: Direction) -> Option<RestAndLoad> {
    let stats = [Stat::Value, Stat::Mean, Stat::Max];
    let loaded =
        stats.into_iter().find_map(|stat| record.summary_value(MetricId::TcpRtt, stat, Some(way)));
    let least = record.summary_value(MetricId::TcpRttMin, Stat::Min, Some(way));
    let (least_ns, loaded_ns) = least.zip(loaded).or_else(|| {
        let loaded = record.summary_value(MetricId::DelayLoaded, Stat::P50, Some(way))?;
        Some((record.summary_value(MetricId::DelayIdle, Stat::P50, None)?, loaded))
    })?;
    Some(RestAndLoad { least_ns, loaded_ns })
}

/// Between two ends on one host there is no path.
pub(super) fn one_host(record: &Record, ceiling: Option<&Ceiling>) -> Option<Limitation> {
    let measured = record.summary_value(MetricId::Goodput, Stat::Value, None).is_some();
    let alone = ceiling.is_some_and(|ceiling| ceiling.no_link.is_some());
    let host = || Limitation::new(LimitedBy::ThisHost, Ground::OneHost);
    (measured && alone).then(host)
}

/// The host of an end of a direction.
pub(super) fn host_of(record: &Record, way: Direction, side: FlowSide) -> LimitedBy {
    let one_host = record.caveats.iter().any(|caveat| caveat.code == CaveatCode::SameHost);
    match (way, side) {
        _ if one_host => LimitedBy::ThisHost,
        (Direction::Up, FlowSide::Sender) | (Direction::Down, FlowSide::Receiver) => {
            LimitedBy::ThisHost
        }
        (Direction::Up, FlowSide::Receiver) | (Direction::Down, FlowSide::Sender) => {
            LimitedBy::OtherEnd
        }
    }
}
