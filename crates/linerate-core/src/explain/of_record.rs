//! From a record to evidence, one direction at a time.
//!
//! Read: plan, ends, flows, series, probes, summary, caveats. Never read: what an emulator was
//! asked to do (`paths`, but whether it fell behind; `ceiling`), and names of studies and cells.

use super::evidence::{
    EachFlow, Evidence, HostEvidence, Loss, ProbesSeen, RateEvidence, RoundTrips, TestOptions,
    Together, Windows,
};
use super::handshake;
use super::mechanism::{held_s, mechanism};
use crate::record::{
    Caveat, CaveatCode, Direction, Finish, Flow, FlowEnd, FlowSide, MeasurementEnd, MetricId, Plan,
    Probes, Record, Series, Stat, TcpDirections, TcpInfo, TcpTest, Unmeasured,
};
use crate::theory::ladder::Response;

/// Samples within this share of the span count as the start.
const START_SHARE: f64 = 0.2;
/// Stretches without an answered probe of this length are gaps, in nanoseconds.
const GAP_NS: i64 = 100_000_000;
/// Fewer lost probes in a row are losses: beside a slow load there is one in a second or more, and
/// a full queue drops two of them as it drops data.
const GAP_PROBES: usize = 4;

/// Evidence of each direction of a TCP record that has a flow in it.
pub fn directions(record: &Record) -> Vec<Evidence> {
    let Plan::Tcp(plan) = &record.plan else { return Vec::new() };
    let ways = [Direction::Up, Direction::Down].into_iter();
    let asked = |way: &Direction| match plan.test.directions {
        TcpDirections::Up => *way == Direction::Up,
        TcpDirections::Down => *way == Direction::Down,
        TcpDirections::Both => true,
    };
    ways.filter(asked).map(|way| direction_evidence(record, &plan.test, way)).collect()
}

fn direction_evidence(record: &Record, test: &TcpTest, way: Direction) -> Evidence {
    let flows: Vec<&Flow> = record.flows.iter().filter(|flow| flow.direction == way).collect();
    let series = DirectionSeries { record, way };
    let (sender, receiver) = host_evidence(record, &flows, way);
    let first = flows.first().copied();
    let sent = first.and_then(|flow| flow.sender.as_ref());
    let info = sent.and_then(|end| end.tcp_info);
    let mss_bytes =
        info.and_then(|info| info.snd_mss_bytes).or_else(|| sent.and_then(|end| end.mss_bytes.got));
    let mut evidence = Evidence {
        direction: Some(way),
        flows: u32::from(test.streams),
        spoilt: spoilt(record),
        loopback: loopback(record),
        failure: record.failure.as_ref().map(ToString::to_string),
        asked: test_options(test),
        rate: rate_evidence(&series),
        rtt: round_trips(&series),
        window: windows(&series, &flows),
        loss: loss_evidence(&series, &flows),
        sender,
        receiver,
        syn: handshake::syn_evidence(record, first, way),
        probes: probes(record, way),
        mss_bytes,
        packet_bytes: info.and_then(|info| info.pmtu_bytes),
        stated_bps: None,
        trains: None,
        mtu: None,
        capacity_bps: None,
        sustained_bps: None,
        interventions: Vec::new(),
        together: None,
        pings: None,
        each: flow_rates(&series, &flows),
        back_held_s: None,
        ..Evidence::default()
    };
    evidence.unseen = unmeasured(&evidence);
    evidence
}

/// Adds what a survey found of the path beside its transfers.
pub(super) fn with_path(mut evidence: Evidence, whole: &Record) -> Evidence {
    let Some(way) = evidence.direction else { return evidence };
    let back = if way == Direction::Up { Direction::Down } else { Direction::Up };
    evidence.trains = mechanism(&whole.trains, way);
    evidence.back_held_s = held_s(&whole.trains, back);
    evidence.pings = super::pings::of_record(whole);
    evidence.mtu = whole.path_mtu.iter().find(|mtu| mtu.direction == way).copied();
    let tried = whole.interventions.iter().filter(|made| made.direction == way);
    evidence.interventions = tried.cloned().collect();
    if let Some(found) = &evidence.trains {
        let first = found.capacity.first().filter(|capacity| !capacity.at_least);
        evidence.capacity_bps = first.map(|capacity| capacity.bps);
        evidence.sustained_bps = found.sustained_bps;
    }
    evidence.together = whole.parts.iter().filter_map(|part| together(part, way)).max_by(by_rate);
    evidence
}

fn by_rate(one: &Together, other: &Together) -> std::cmp::Ordering {
    one.bps.total_cmp(&other.bps)
}

/// Rate that several flows of a part reached with the kernel's own windows.
fn together(part: &Record, way: Direction) -> Option<Together> {
    let Plan::Tcp(plan) = &part.plan else { return None };
    let many = plan.test.streams > 1 && plan.test.window_bytes.is_none();
    let bps = part.summary_value(MetricId::Goodput, Stat::Value, Some(way)).filter(|_| many)?;
    Some(Together { flows: u32::from(plan.test.streams), bps })
}

/// Both ends are this host, and nothing lies between them.
fn loopback(record: &Record) -> bool {
    let interfaces = record.ends.iter().filter_map(|end| end.interface.as_ref());
    interfaces.filter_map(|interface| interface.kind.as_deref()).any(|kind| kind == "loopback")
}

/// Caveat for which the tester itself spoilt the measurement.
fn spoilt(record: &Record) -> Option<Caveat> {
    let spoils = |code| {
        matches!(
            code,
            CaveatCode::StolenTime | CaveatCode::ClockStepped | CaveatCode::TesterLimited
        )
    };
    // Of an emulated path only whether it was the one that was asked for, by its own account.
    let late = record.paths.iter().any(|path| path.late);
    record
        .caveats
        .iter()
        .find(|caveat| spoils(caveat.code) || (late && caveat.code == CaveatCode::EmulatorLate))
        .cloned()
}

fn test_options(test: &TcpTest) -> TestOptions {
    let flows = f64::from(test.streams);
    TestOptions {
        both_ways: test.directions == TcpDirections::Both,
        window_bytes: test.window_bytes,
        pace_bps: test.pace.map(|pace| pace.bits_per_sec() as f64 * flows),
        read_pace_bps: test.read_pace.map(|pace| pace.bits_per_sec() as f64 * flows),
        mss_bytes: test.mss_bytes,
        bytes: match test.finish {
            Finish::Bytes(bytes) => Some(bytes),
            _ => None,
        },
        write_bytes: Some(u64::from(test.buffer_bytes)),
        read_bytes: test.read_bytes.map(u64::from),
    }
}

/// The series of one direction.
struct DirectionSeries<'a> {
    record: &'a Record,
    way: Direction,
}

impl<'a> DirectionSeries<'a> {
    /// Series by the key of the metric, so that metrics of newer records are read where they are.
    fn matching_series(&self, key: &'a str, side: FlowSide) -> impl Iterator<Item = &'a Series> {
        let way = self.way;
        self.record.series.iter().filter(move |series| {
            series.metric.key() == key
                && series.direction == Some(way)
                && series.side.is_none_or(|own| own == side)
        })
    }

    /// Samples of all flows once the start was over, in no order.
    fn steady(&self, key: &'a str, side: FlowSide) -> Vec<f64> {
        let mut values = Vec::new();
        for series in self.matching_series(key, side) {
            let end = series.t_ns.last().copied().unwrap_or(0) as f64;
            let points = series.t_ns.iter().zip(&series.values);
            let late = points.filter(|(t_ns, _)| **t_ns as f64 > START_SHARE * end);
            values.extend(late.filter_map(|(_, value)| *value));
        }
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, key: &'a str, side: FlowSide) -> Option<f64> {
        quantile(&self.steady(key, side), 0.5)
    }

    fn last_value_sum(&self, key: &'a str, side: FlowSide) -> Option<f64> {
        let last = |series: &Series| series.values.iter().rev().find_map(|value| *value);
        self.matching_series(key, side).filter_map(last).reduce(|sum, value| sum + value)
    }

    fn summary_value(&self, metric: MetricId, stat: Stat) -> Option<f64> {
        self.record.summary_value(metric, stat, Some(self.way))
    }
}

/// Quantile of sorted values, by nearest rank.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length that is an index"
    )]
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied()
}

fn rate_evidence(of: &DirectionSeries<'_>) -> RateEvidence {
    let mut sum: Vec<f64> = Vec::new();
    for series in of.matching_series("goodput_bps", FlowSide::Receiver) {
        // A last interval that is too short to stand beside the others has no value.
        for (index, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            match sum.get_mut(index) {
                Some(all) => *all += value,
                None => sum.push(*value),
            }
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length that is an index"
    )]
    let start = (sum.len() as f64 * START_SHARE).ceil() as usize;
    let mut late: Vec<f64> = sum.iter().skip(start).copied().collect();
    late.sort_by(f64::total_cmp);
    let delivery = of.steady("delivery_rate_bps", FlowSide::Sender);
    RateEvidence {
        mean_bps: of.summary_value(MetricId::Goodput, Stat::Value),
        steady_bps: steady(&late),
        intervals_bps: sum,
        interval_s: interval_s(of),
        delivery_bps: quantile(&delivery, 0.9),
        bytes: of.summary_value(MetricId::Bytes, Stat::Value),
        span_s: of.summary_value(MetricId::Span, Stat::Value).map(|ns| ns / 1e9),
    }
}

/// Length of an interval: the median time from one to the next.
fn interval_s(of: &DirectionSeries<'_>) -> Option<f64> {
    let series = of.matching_series("goodput_bps", FlowSide::Receiver).next()?;
    let mut steps: Vec<f64> =
        series.t_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
    steps.sort_by(f64::total_cmp);
    quantile(&steps, 0.5)
}

/// Each of several flows, where all of them told what they sent and how long it took.
fn flow_rates(of: &DirectionSeries<'_>, flows: &[&Flow]) -> Vec<EachFlow> {
    let one = |flow: &&Flow| {
        let info = flow.sender.as_ref()?.tcp_info?;
        let receiver = flow.receiver.as_ref()?;
        let of_flow = |series: &&Series| series.flow == Some(flow.flow);
        let rtt = of.matching_series("tcp_rtt_ns", FlowSide::Sender).find(of_flow)?;
        let start = (rtt.values.len() as f64 * START_SHARE).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let mut late: Vec<f64> =
            rtt.values.iter().skip(start as usize).flatten().copied().collect();
        late.sort_by(f64::total_cmp);
        Some(EachFlow {
            bps: receiver.bytes_measured as f64 * 8e9 / receiver.span_ns.max(1) as f64,
            sent: f64::from(info.data_segs_out?),
            again: f64::from(info.total_retrans?),
            rtt_s: quantile(&late, 0.5)? / 1e9,
        })
    };
    match flows {
        [_] => Vec::new(),
        flows => flows.iter().map(one).collect::<Option<_>>().unwrap_or_default(),
    }
}

/// The rate once the start was over: the median interval; the mean where data comes in pieces, as
/// it does to an application that waits for a lost segment.
fn steady(sorted: &[f64]) -> Option<f64> {
    let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
    Some(quantile(sorted, 0.5)?.max(mean))
}

fn round_trips(of: &DirectionSeries<'_>) -> RoundTrips {
    let s = |ns: f64| ns / 1e9;
    let idle = [
        of.record.summary_value(MetricId::DelayIdle, Stat::Min, None),
        of.record.summary_value(MetricId::IdleRtt, Stat::Min, None),
    ];
    let idle = idle.into_iter().flatten().filter(|ns| *ns > 0.0).reduce(f64::min);
    let under = of.summary_value(MetricId::TcpRttMin, Stat::Min);
    let base = [idle, under].into_iter().flatten().reduce(f64::min);
    let loaded = of.steady("tcp_rtt_ns", FlowSide::Sender);
    let probes = of.summary_value(MetricId::DelayLoaded, Stat::P50);
    RoundTrips {
        base_s: base.map(s),
        base_is_idle: idle.is_some(),
        base_is_loaded: false,
        loaded_s: quantile(&loaded, 0.5).or(probes).map(s),
        loaded_p95_s: quantile(&loaded, 0.95).map(s),
        loaded_p10_s: quantile(&loaded, 0.1).map(s),
        intervals_s: Vec::new(),
    }
}

fn windows(of: &DirectionSeries<'_>, flows: &[&Flow]) -> Windows {
    let sent = || flows.iter().filter_map(|flow| flow.sender.as_ref());
    let received = || flows.iter().filter_map(|flow| flow.receiver.as_ref());
    let infos = || sent().filter_map(|end| end.tcp_info);
    let offered = of.steady("send_window_bytes", FlowSide::Sender);
    let share = |part: fn(&TcpInfo) -> Option<u64>| {
        let sums = infos().filter_map(|info| Some((part(&info)?, info.busy_time_us?)));
        let (part, busy) = sums.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (busy > 0).then(|| part as f64 / busy as f64)
    };
    let most = |values: &mut dyn Iterator<Item = u64>| values.max().map(|bytes| bytes as f64);
    let flags = of.steady("application_limited", FlowSide::Sender);
    let cwnds = of.steady("cwnd_bytes", FlowSide::Sender);
    let cwnd = of.matching_series("cwnd_bytes", FlowSide::Sender).next();
    let ends = cwnd.and_then(|series| {
        let mut values = series.values.iter().filter_map(|value| *value);
        let first = values.next()?;
        Some((first, values.next_back().unwrap_or(first)))
    });
    Windows {
        offered_bytes: quantile(&offered, 0.5),
        offered_range: offered.first().copied().zip(offered.last().copied()),
        offered_max_bytes: most(&mut sent().filter_map(|end| end.window_offered_bytes_max)),
        advertised_max_bytes: most(
            &mut received().filter_map(|end| end.window_advertised_bytes_max),
        ),
        cwnd_bytes: quantile(&cwnds, 0.5),
        cwnd_ends: ends,
        cwnd_range: cwnds.first().copied().zip(cwnds.last().copied()),
        left_slow_start: infos()
            .next()
            .and_then(|info| info.snd_ssthresh)
            .map(|bytes| bytes < 0x7fff_ffff),
        initial_segments: sent().find_map(|end| end.initial_window_segments),
        flight_bytes: of.median("unacked_bytes", FlowSide::Sender),
        send_buffer_bytes: of
            .median("send_buffer_bytes", FlowSide::Sender)
            .or_else(|| most(&mut sent().filter_map(|end| end.sndbuf_bytes.got))),
        send_memory_bytes: of.median("send_memory_bytes", FlowSide::Sender),
        send_queue_max_bytes: most(&mut sent().filter_map(|end| end.send_queue_bytes_max)),
        unsent_bytes: of.median("unsent_bytes", FlowSide::Sender),
        receive_queue_bytes: of.median("receive_queue_bytes", FlowSide::Receiver),
        receive_buffer_bytes: of
            .median("receive_buffer_bytes", FlowSide::Receiver)
            .or_else(|| most(&mut received().filter_map(|end| end.rcvbuf_bytes.got))),
        window_limited: share(|info| info.rwnd_limited_us),
        buffer_limited: share(|info| info.sndbuf_limited_us),
        application_limited: (!flags.is_empty())
            .then(|| flags.iter().sum::<f64>() / flags.len() as f64),
    }
}

fn loss_evidence(of: &DirectionSeries<'_>, flows: &[&Flow]) -> Loss {
    let sent = || flows.iter().filter_map(|flow| flow.sender.as_ref());
    let infos = || sent().filter_map(|end| end.tcp_info);
    let sum = |pick: &dyn Fn(&TcpInfo) -> Option<u64>| {
        infos()
            .filter_map(|info| pick(&info))
            .reduce(|all, one| all + one)
            .map(|segments| segments as f64)
    };
    let received =
        || flows.iter().filter_map(|flow| flow.receiver.as_ref()).filter_map(|end| end.tcp_info);
    let out_of_order = received().filter_map(|info| info.rcv_ooopack).map(f64::from);
    let arrived = received().filter_map(|info| info.data_segs_in).map(f64::from);
    let (out_of_order, arrived) =
        (out_of_order.reduce(|all, one| all + one), arrived.reduce(|all, one| all + one));
    let control = sent().find_map(|end| end.congestion_control.got.clone());
    let span_ns = of.summary_value(MetricId::Span, Stat::Value);
    let timeout_ns = of.last_value_sum("timeout_ns", FlowSide::Sender);
    let delivered = sum(&|info| info.delivered.map(u64::from));
    let marked = sum(&|info| info.delivered_ce.map(u64::from));
    let bytes = infos().filter_map(|info| Some((info.bytes_sent?, info.bytes_retrans?)));
    Loss {
        retransmits: of.summary_value(MetricId::Retransmits, Stat::Value),
        ratio: of.summary_value(MetricId::RetransmitRatio, Stat::Value),
        needless: sum(&|info| info.dsack_dups.map(u64::from)),
        reordered_events: sum(&|info| info.reord_seen.map(u64::from)),
        out_of_order: out_of_order
            .zip(arrived)
            .filter(|counts| counts.1 > 0.0)
            .map(|counts| counts.0 / counts.1),
        events: events(of),
        timeouts: sum(&|info| info.total_rto.map(u64::from)),
        timeout_share: timeout_ns.zip(span_ns).map(|(part, all)| part / all),
        marked: marked
            .zip(delivered)
            .filter(|counts| counts.1 > 0.0)
            .map(|counts| counts.0 / counts.1),
        bytes_sent: bytes.reduce(|all, one| (all.0 + one.0, all.1 + one.1)),
        response: control.as_deref().and_then(response),
        control,
    }
}

/// Changes of the slow-start threshold from one sample to the next, the first included.
fn events(of: &DirectionSeries<'_>) -> Option<f64> {
    let mut all = of.matching_series("ssthresh_bytes", FlowSide::Sender).peekable();
    all.peek()?;
    let changes = |series: &Series| {
        let values: Vec<f64> = series.values.iter().filter_map(|value| *value).collect();
        values.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64
    };
    Some(all.map(changes).sum())
}

/// Response of a congestion control to losses; `None` for one that is not known.
pub(super) fn response(control: &str) -> Option<Response> {
    match control {
        "cubic" => Some(Response::Cubic),
        "reno" => Some(Response::Reno),
        control if control.starts_with("bbr") => Some(Response::Bbr),
        _ => None,
    }
}

fn host_evidence(record: &Record, flows: &[&Flow], way: Direction) -> (HostEvidence, HostEvidence) {
    let of = |side: FlowSide| {
        let local = (way == Direction::Up) == (side == FlowSide::Sender);
        let role = if local { "local" } else { "remote" };
        let end = record.ends.iter().find(|end| end.role == role);
        let ends = flows.iter().filter_map(|flow| match side {
            FlowSide::Sender => flow.sender.as_ref(),
            FlowSide::Receiver => flow.receiver.as_ref(),
        });
        let ends: Vec<&FlowEnd> = ends.collect();
        let series = DirectionSeries { record, way };
        let base = end.map_or_else(HostEvidence::default, |end| settings(end, side));
        HostEvidence {
            blocked: series.median("blocked_ratio", side),
            asleep: series.median("asleep_ratio", side),
            ..with_usage(base, &ends, side)
        }
    };
    (of(FlowSide::Sender), of(FlowSide::Receiver))
}

fn settings(end: &MeasurementEnd, side: FlowSide) -> HostEvidence {
    let tcp = end.tcp.clone().unwrap_or_default();
    let interface = end.interface.clone().unwrap_or_default();
    // Virtual interfaces report a speed that no packet has.
    let fiction = matches!(interface.kind.as_deref(), Some("veth" | "tun" | "tap" | "loopback"));
    let (tcp_mem_bytes, core_max_bytes) = match side {
        FlowSide::Sender => (end.tcp_wmem_bytes, end.wmem_max_bytes),
        FlowSide::Receiver => (end.tcp_rmem_bytes, end.rmem_max_bytes),
    };
    HostEvidence {
        tcp_mem_bytes,
        core_max_bytes,
        window_scaling: tcp.window_scaling.map(|value| value != 0),
        sack: tcp.sack.map(|value| value != 0),
        timestamps: tcp.timestamps.map(|value| value != 0),
        mtu_probing: tcp.mtu_probing,
        no_metrics_save: tcp.no_metrics_save.map(|value| value != 0),
        interface: Some(interface.name).filter(|name| !name.is_empty()),
        speed_bps: interface.speed_bps.filter(|_| !fiction).map(|bps| bps as f64),
        shaper_bps: interface.shaper_bps.map(|bps| bps as f64),
        mtu_bytes: interface.mtu_bytes,
        ..HostEvidence::default()
    }
}

fn with_usage(base: HostEvidence, ends: &[&FlowEnd], side: FlowSide) -> HostEvidence {
    let worst = |of: &dyn Fn(&FlowEnd) -> Option<u64>| {
        let shares = ends.iter().filter_map(|end| {
            let span = end.span_start_ns + end.span_ns;
            (span > 0).then_some(of(end)? as f64 / span as f64)
        });
        shares.reduce(f64::max)
    };
    let calls: Vec<f64> = ends
        .iter()
        .filter(|end| end.span_ns > 0 && end.io_calls > 0)
        .map(|end| end.io_calls as f64 / (end.span_ns as f64 / 1e9))
        .collect();
    let asked = ends.iter().find_map(|end| match side {
        FlowSide::Sender => end.sndbuf_bytes.asked,
        FlowSide::Receiver => end.rcvbuf_bytes.asked,
    });
    HostEvidence {
        cpu: worst(&|end| Some(end.cpu_user_ns? + end.cpu_system_ns?)),
        waited: worst(&|end| end.run_queue_wait_ns),
        calls_per_s: calls.into_iter().reduce(f64::max),
        buffer_asked_bytes: asked,
        ..base
    }
}

fn probes(record: &Record, way: Direction) -> ProbesSeen {
    let s = |metric, stat, of| record.summary_value(metric, stat, of).map(|ns| ns / 1e9);
    let there = s(MetricId::AddedThere, Stat::Value, Some(way));
    let back = s(MetricId::AddedBack, Stat::Value, Some(way));
    let (added_forward_s, added_back_s) =
        if way == Direction::Up { (there, back) } else { (back, there) };
    let idle_min = s(MetricId::DelayIdle, Stat::Min, None);
    let idle_p99 = s(MetricId::DelayIdle, Stat::P99, None);
    let probes = record.probes.as_deref();
    let phase = match way {
        Direction::Up => [crate::record::ProbePhase::Up, crate::record::ProbePhase::Both],
        Direction::Down => [crate::record::ProbePhase::Down, crate::record::ProbePhase::Both],
    };
    let places: Vec<usize> =
        probes.map_or_else(Vec::new, |probes| probes.sent_in(|at| phase.contains(&at)).collect());
    let idle = |probes: &Probes| {
        let all: Vec<_> = probes.round_trips(true).collect();
        let lost = all.iter().filter(|rtt| rtt.is_none()).count();
        // TCP sends lost messages again and tells nobody.
        let tells = probes.transport != crate::record::PingTransport::WebSocket;
        (tells && all.len() >= 10).then(|| lost as f64 / all.len() as f64)
    };
    ProbesSeen {
        idle_s: s(MetricId::DelayIdle, Stat::P50, None),
        idle_spread_s: idle_p99.zip(idle_min).map(|(high, low)| high - low),
        loaded_s: s(MetricId::DelayLoaded, Stat::P50, Some(way)),
        added_forward_s,
        added_back_s,
        added_here_s: s(MetricId::AddedHere, Stat::Value, Some(way))
            .filter(|_| way == Direction::Up),
        lost: record.summary_value(MetricId::DelayLoss, Stat::Value, Some(way)),
        sent: probes.map(|_| places.len() as u64),
        gaps: probes.and_then(|probes| probe_gaps(probes, &places)),
        lost_idle: probes.and_then(idle),
    }
}

/// Stretches of lost probes, of those long enough, and the longest in seconds.
fn probe_gaps(probes: &Probes, places: &[usize]) -> Option<(u64, f64)> {
    let first = *places.first()?;
    let (mut count, mut longest) = (0, 0);
    let mut begun: Option<(i64, usize)> = None;
    let mut before = probes.sent_ns[first];
    for &place in places {
        let at = probes.sent_ns[place];
        match (probes.rtt_ns[place], begun) {
            (None, None) => begun = Some((at, 1)),
            (None, Some((from, lost))) => begun = Some((from, lost + 1)),
            (Some(_), Some((from, lost))) => {
                let length = before - from;
                if length >= GAP_NS && lost >= GAP_PROBES {
                    count += 1;
                    longest = longest.max(length);
                }
                begun = None;
            }
            (Some(_), None) => {}
        }
        before = at;
    }
    Some((count, longest as f64 / 1e9))
}

/// Quantities that were not measured.
fn unmeasured(evidence: &Evidence) -> Vec<Unmeasured> {
    let seen = [
        (evidence.rtt.base_is_idle, Unmeasured::RoundTripAtRest),
        (evidence.window.offered_bytes.is_some(), Unmeasured::WindowOffered),
        (evidence.sender.cpu.is_some(), Unmeasured::Cpu(FlowSide::Sender)),
        (evidence.receiver.cpu.is_some(), Unmeasured::Cpu(FlowSide::Receiver)),
        (evidence.loss.ratio.is_some(), Unmeasured::SegmentsAgain),
    ];
    seen.into_iter().filter(|(seen, _)| !seen).map(|(_, quantity)| quantity).collect()
}
