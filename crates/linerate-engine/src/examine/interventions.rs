//! Short runs with one thing changed, where the diagnosis so far is not sure: which change is the
//! diagnosis's choice, and it says when its runs are clear.

use std::time::Duration;

use linerate_core::explain::{Choices, is_clear, next_change};
use linerate_core::record::{
    Change, Confidence, Direction, Finish, Intervention, InterventionEnd, IpFamily, MetricId, Plan,
    Record, ServerPlan, ShortRun, Stat, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, record_id, wall_time};
use linerate_sys::host;

use super::{ExaminationEvent, ExaminationRun, Examined, QUICK};
use crate::address::resolve;
use crate::context::Context;
use crate::throughput;

/// Measured time of a short run: this, or so many round trips where they take longer.
const MEASURED_NS: u64 = 600_000_000;
const MEASURED_ROUND_TRIPS: u64 = 4;
/// Runs of each kind: fewest and most.
const PAIRS_MIN: u32 = 2;
const PAIRS_MAX: usize = 4;
/// Changes tried in each direction.
const CHANGES_MAX: usize = 4;

impl ExaminationRun<'_> {
    /// True where there is a change to try: for a cause that is not sure, or for its remedy.
    pub(super) fn is_open(&self, examined: &mut Examined, context: &Context<'_>) -> bool {
        let ways = [Direction::Up, Direction::Down].into_iter();
        ways.filter_map(|way| self.next(way, examined, context)).count() > 0
    }

    /// Tries changes in each direction while there is time for them; a direction in which nothing
    /// is sure comes before the remedies of another.
    pub(super) fn intervene(&mut self, context: &mut Context<'_>, examined: &mut Examined) {
        let quick = self.examination.within.is_some_and(|within| within <= QUICK);
        let most = if quick { 1 } else { CHANGES_MAX };
        for sure in [false, true] {
            for way in [Direction::Up, Direction::Down] {
                let others = self.others(way, sure, examined, context);
                let room = self.remaining_time(monotonic().duration_since(self.begin));
                let share = room.map(|room| if others { room / 2 } else { room });
                let begun = monotonic();
                for _ in 0..most {
                    let next = self.next(way, examined, context);
                    let next = next.filter(|(_, of)| (*of == Some(Confidence::High)) == sure);
                    let Some((change, _)) = next else { break };
                    if quick && !examined.interventions.is_empty() {
                        return;
                    }
                    if !self.try_one(way, change, begun, share, context, examined) {
                        break;
                    }
                }
            }
        }
    }

    /// True where the other direction is still to come and has as much need of the time.
    fn others(
        &self,
        way: Direction,
        sure: bool,
        examined: &mut Examined,
        context: &Context<'_>,
    ) -> bool {
        way == Direction::Up
            && self
                .next(Direction::Down, examined, context)
                .is_some_and(|(_, of)| (of == Some(Confidence::High)) == sure)
    }

    /// The change that the diagnosis of everything measured so far proposes next for a direction,
    /// with its confidence in the cause.
    fn next(
        &self,
        way: Direction,
        examined: &mut Examined,
        context: &Context<'_>,
    ) -> Option<(Change, Option<Confidence>)> {
        let plan = Plan::Tcp(TcpPlan::default());
        let mut record = Record::from_plan(record_id(), context.tool.clone(), plan, wall_time());
        record.parts = std::mem::take(&mut examined.records);
        record.trains = std::mem::take(&mut examined.trains);
        record.path_mtu = std::mem::take(&mut examined.path_mtu);
        record.interventions = std::mem::take(&mut examined.interventions);
        // The other end's list is not known: it refuses what it does not have.
        let names = host::read_line("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let names = names.filter(|_| way == Direction::Up);
        let names: Option<Vec<String>> =
            names.map(|names| names.split_whitespace().map(str::to_owned).collect());
        let choices = Choices {
            controls: names.as_deref(),
            other_port: self.examination.server.via.is_none(),
            other_family: self.other_family,
        };
        let next = next_change(&record, way, choices);
        examined.records = record.parts;
        examined.trains = record.trains;
        examined.path_mtu = record.path_mtu;
        examined.interventions = record.interventions;
        next
    }

    /// Tries one change; false where there is no time for two runs of each kind.
    fn try_one(
        &mut self,
        way: Direction,
        change: Change,
        begun: MonoTime,
        room: Option<Duration>,
        context: &mut Context<'_>,
        examined: &mut Examined,
    ) -> bool {
        let Some(plain) = self.short_test_plan(way) else { return false };
        let left = |now: MonoTime| room.map(|room| room.saturating_sub(now.duration_since(begun)));
        let Finish::TimeNs(measured_ns) = plain.test.finish else { return false };
        let pair = self.first.timed_test_duration(&plain, measured_ns) * 2;
        if left(monotonic()).is_some_and(|left| left < pair * PAIRS_MIN) {
            return false;
        }
        let plain = beside(plain, &change);
        let with = changed(plain.clone(), &change);
        let mut made = Intervention {
            direction: way,
            change,
            plain: Vec::new(),
            changed: Vec::new(),
            ended: InterventionEnd::Runs,
        };
        while made.changed.len() < PAIRS_MAX {
            if left(monotonic()).is_some_and(|left| left < pair) || context.stop.is_requested() {
                made.ended = InterventionEnd::Time;
                break;
            }
            let Some(before) = short_run(&plain, way, context) else {
                made.ended = InterventionEnd::Failed;
                break;
            };
            let Some(after) = short_run(&with, way, context) else {
                made.ended = InterventionEnd::Failed;
                break;
            };
            made.plain.push(before);
            made.changed.push(after);
            if is_clear(&made.plain, &made.changed) {
                made.ended = InterventionEnd::Clear;
                break;
            }
        }
        (self.seen)(&ExaminationEvent::Tried(&made));
        examined.interventions.push(made);
        !context.stop.is_requested()
    }

    /// The plan of a short run: one stream with the kernel's own window, no longer than it takes to
    /// see its rate.
    fn short_test_plan(&self, way: Direction) -> Option<TcpPlan> {
        let plan = self.examination.tcp_plans(self.first).into_iter().next()?;
        let directions = match way {
            Direction::Up => TcpDirections::Up,
            Direction::Down => TcpDirections::Down,
        };
        let measured_ns = MEASURED_NS.max(MEASURED_ROUND_TRIPS * self.first.small_ns);
        let finish = match plan.test.finish {
            Finish::TimeNs(ns) if self.is_flexible() => Finish::TimeNs(ns.min(measured_ns)),
            finish => finish,
        };
        let server = ServerPlan { probes: None, ..plan.server.clone() };
        Some(TcpPlan { server, test: TcpTest { directions, finish, ..plan.test.clone() }, ..plan })
    }
}

/// The plan of the runs that a change is compared with. Buffers and segments that are asked for
/// need a listener of their own: so that the port is no second thing that differs, the runs without
/// have one as well.
fn beside(plain: TcpPlan, change: &Change) -> TcpPlan {
    let other_port = matches!(change, Change::Segments(_) | Change::Buffers(_));
    TcpPlan { test: TcpTest { other_port, ..plain.test }, ..plain }
}

/// The test with one thing changed.
fn changed(plan: TcpPlan, change: &Change) -> TcpPlan {
    let test = plan.test;
    let test = match change {
        Change::Streams(streams) => TcpTest { streams: *streams, ..test },
        Change::CongestionControl(name) => {
            TcpTest { congestion_control: Some(name.clone()), ..test }
        }
        Change::Pace(pace) => TcpTest { pace: Some(*pace), ..test },
        Change::Segments(bytes) => TcpTest { mss_bytes: Some(*bytes), ..test },
        Change::Buffers(bytes) => TcpTest { window_bytes: Some(*bytes), ..test },
        Change::OtherPort => TcpTest { other_port: true, ..test },
        Change::Writes(bytes) => TcpTest { buffer_bytes: *bytes, ..test },
        Change::Family(family) => {
            let server = ServerPlan { family: Some(*family), ..plan.server };
            return TcpPlan { server, test, ..plan };
        }
    };
    TcpPlan { test, ..plan }
}

/// The family that a server has too, where its name has one address of each and the user left the
/// choice.
pub(super) fn other_family(server: &ServerPlan) -> Option<IpFamily> {
    if server.family.is_some() {
        return None;
    }
    let used = resolve(&server.host, server.port, None).ok()?;
    let other = if used.is_ipv4() { IpFamily::V6 } else { IpFamily::V4 };
    resolve(&server.host, server.port, Some(other)).ok().map(|_| other)
}

/// Runs a plan once and gives its figures; none where it failed.
fn short_run(plan: &TcpPlan, way: Direction, context: &mut Context<'_>) -> Option<ShortRun> {
    let (tool, stop) = (context.tool.clone(), context.stop.clone());
    let record = throughput::run_tcp(plan, &mut Context { tool, stop, watch: &mut |_| {} });
    if record.failure.is_some() {
        return None;
    }
    Some(ShortRun {
        goodput_bps: record.summary_value(MetricId::Goodput, Stat::Value, Some(way))?,
        retransmit_ratio: record.summary_value(MetricId::RetransmitRatio, Stat::Value, Some(way)),
        rtt_ns: record.summary_value(MetricId::TcpRtt, Stat::P50, Some(way)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_another_family_only_by_name_and_where_nobody_chose() {
        let of = |host: &str, family| {
            other_family(&ServerPlan { family, ..ServerPlan::new(None, host, 5210) })
        };
        assert_eq!(of("127.0.0.1", None), None);
        assert_eq!(of("::1", None), None);
        assert_eq!(of("localhost", Some(IpFamily::V4)), None);
    }

    #[test]
    fn a_change_is_the_only_thing_that_differs() {
        let plain = TcpPlan::default();
        let fast = linerate_core::units::BitRate::from_nearest(1e6).expect("a rate");
        let changes = [
            Change::Streams(4),
            Change::CongestionControl("bbr".to_owned()),
            Change::Pace(fast),
            Change::Segments(1200),
            Change::Buffers(1 << 20),
            Change::OtherPort,
            Change::Family(IpFamily::V6),
            Change::Writes(1 << 20),
        ];
        // Fields of the plan, those of its parts by name.
        let fields = |plan: &TcpPlan| {
            let value = linerate_core::tree::to_value(plan).expect("a plan");
            let part = |name: &str| value[name].as_object().cloned().unwrap_or_default();
            let mut fields = part("server");
            fields.extend(value.as_object().cloned().expect("fields"));
            fields.extend(part("test"));
            fields.retain(|_, value| !value.is_object());
            fields
        };
        for change in changes {
            let base = beside(plain.clone(), &change);
            let (with, without) = (fields(&changed(base.clone(), &change)), fields(&base));
            let apart = with.iter().filter(|(key, value)| without.get(*key) != Some(value)).count();
            assert_eq!(apart, 1, "{change:?}");
        }
    }
}
