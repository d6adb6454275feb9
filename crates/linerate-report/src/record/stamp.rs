//! What STAMP adds to a ping: the round trip without the reflector's time, each direction by
//! itself, and how far the clocks of both ends are to be trusted.

use linerate_core::record::{
    ChangeCause, ClockAgreement, ClockKeeper, DelayChange, Direction, MetricId, Record, Stat,
};
use linerate_core::time::WallTime;

use crate::number;
use crate::one_way::{clock_label, clocks_of, one_way};

/// The metrics that a page defines beside those of every ping.
pub(super) const METRICS: &[MetricId] = &[
    MetricId::RttPath,
    MetricId::Residence,
    MetricId::OneWayDelay,
    MetricId::Pdv,
    MetricId::Ipdv,
    MetricId::JitterRfc3550,
    MetricId::LossOneWay,
];

/// The lines of one size, with times in ms of so many decimals.
pub(super) fn one_way_lines(record: &Record, size: u32, decimals: usize) -> Vec<String> {
    let Some(clocks) = clocks_of(record, size) else { return Vec::new() };
    let view = StampView { record, size, decimals };
    let each = [(Direction::Up, "there"), (Direction::Down, "back ")];
    let directions = each.into_iter().filter_map(|(way, name)| view.direction(way, name, clocks));
    let told = [view.clocks(clocks)].into_iter().chain(changes(&clocks.changes));
    view.path_times().into_iter().chain(directions).chain(told).collect()
}

/// Changes that get a line of their own.
const CHANGES_MAX: usize = 8;

fn changes(changes: &[DelayChange]) -> impl Iterator<Item = String> {
    let more = changes.len().saturating_sub(CHANGES_MAX);
    let more = (more > 0).then(|| format!("{more} more changes are in the record"));
    changes.iter().take(CHANGES_MAX).map(change).chain(more)
}

/// `since 14:02:03 UTC (probe 120) the way there is 3.100 ms longer`.
fn change(change: &DelayChange) -> String {
    let ms = |ns: i64| number::ms_to_microsecond(ns.unsigned_abs() as f64);
    let set = |ns: i64| {
        let side = if ns > 0 { "forward" } else { "back" };
        format!("was set {side} by {} ms", ms(ns))
    };
    let way = |name: &str, ns: i64| {
        let side = if ns > 0 { "longer" } else { "shorter" };
        (ns != 0).then(|| format!("the way {name} is {} ms {side}", ms(ns)))
    };
    let what = match change.cause {
        ChangeCause::LocalClock => format!("this host's clock {}", set(change.back_ns)),
        ChangeCause::RemoteClock => format!("the reflector's clock {}", set(change.there_ns)),
        ChangeCause::Path => {
            let ways = [way("there", change.there_ns), way("back", change.back_ns)];
            ways.into_iter().flatten().collect::<Vec<_>>().join(" and ")
        }
    };
    let at = WallTime::from_unix_nanos(change.at_unix_ns.into()).format_utc("%H:%M:%S UTC");
    let when = if change.cause == ChangeCause::Path { "since" } else { "at" };
    format!("{when} {} (probe {}) {what}", at.unwrap_or_default(), change.probe)
}

struct StampView<'a> {
    record: &'a Record,
    size: u32,
    decimals: usize,
}

impl StampView<'_> {
    fn format_ms(&self, ns: f64) -> String {
        number::ms_exact(ns, self.decimals)
    }

    /// Values joined by slashes, where all of them are there.
    fn slashed(&self, metric: MetricId, stats: &[Stat], way: Option<Direction>) -> Option<String> {
        let value = |stat: &Stat| one_way(self.record, metric, *stat, way, self.size);
        let texts: Option<Vec<String>> =
            stats.iter().map(|stat| value(stat).map(|ns| self.format_ms(ns))).collect();
        texts.map(|texts| texts.join("/"))
    }

    fn path_times(&self) -> Option<String> {
        const STATS: [Stat; 4] = [Stat::Min, Stat::Mean, Stat::Max, Stat::Stddev];
        let of = |metric| {
            let all = self.slashed(metric, &STATS, None);
            let all = all.map(|values| format!("min/avg/max/stddev = {values} ms"));
            let some = || self.slashed(metric, &STATS[..3], None);
            all.or_else(|| some().map(|values| format!("min/avg/max = {values} ms")))
        };
        let residence = one_way(self.record, MetricId::Residence, Stat::Mean, None, self.size);
        let residence = residence.map_or_else(String::new, |ns| {
            format!("; the reflector took {} ms on average", self.format_ms(ns))
        });
        Some(format!("path {}{residence}", of(MetricId::RttPath)?))
    }

    fn direction(&self, way: Direction, name: &str, clocks: &ClockAgreement) -> Option<String> {
        let value = |metric, stat| one_way(self.record, metric, stat, Some(way), self.size);
        let mut parts = Vec::new();
        let median = value(MetricId::OneWayDelay, Stat::P50);
        if median.is_some_and(|ns| clocks.resolves_delay(ns)) {
            let stats = [Stat::Min, Stat::P50, Stat::P99, Stat::Max];
            let delay = self.slashed(MetricId::OneWayDelay, &stats, Some(way))?;
            parts.push(format!("min/median/99 %/max = {delay} ms"));
        }
        for (metric, stat, words) in [
            (MetricId::Pdv, Stat::P99, "99 % above the smallest by at most"),
            (MetricId::Ipdv, Stat::P50, "neighbours differ by"),
            (MetricId::JitterRfc3550, Stat::Value, "jitter"),
        ] {
            parts
                .extend(value(metric, stat).map(|ns| format!("{words} {} ms", self.format_ms(ns))));
        }
        let lost = value(MetricId::LossOneWay, Stat::Value);
        parts.extend(lost.map(|ratio| format!("{} lost", number::percent(ratio))));
        (!parts.is_empty()).then(|| format!("{name} {}", parts.join(", ")))
    }

    fn clocks(&self, clocks: &ClockAgreement) -> String {
        let mut parts = vec![format!("clocks {}", clock_label(clocks, self.decimals))];
        if let Some(drift) = clocks.drift_ns_per_s {
            parts.push(format!("drift of {:.2} ppm taken out", drift / 1e3));
        }
        if let Some(keeper) = clocks.claimed_by.filter(|_| clocks.claimed_error_ns.is_some()) {
            parts.push(format!("this host's error as {} says", name(keeper)));
        }
        if clocks.claim_refuted {
            let claimed = clocks.claimed_error_ns.unwrap_or(0) as f64;
            parts.push(format!("clock claim refuted: ±{} ms was claimed", self.format_ms(claimed)));
        }
        parts.push(
            match (clocks.kernel_stamps, clocks.follow_up) {
                (true, true) => "times by both kernels",
                (true, false) => "T1 and T4 by this kernel, T2 and T3 as the reflector says",
                (false, true) => "T1 and T4 by the program, T3 followed up by the reflector",
                (false, false) => "T1 and T4 by the program, T2 and T3 as the reflector says",
            }
            .to_owned(),
        );
        if clocks.restarts > 0 {
            let times = if clocks.restarts == 1 { "once" } else { "more than once" };
            parts.push(format!(
                "the reflector began its count anew {times}: losses meanwhile have no direction"
            ));
        }
        if !clocks.stateful {
            parts.push("the reflector does not count, so losses have no direction".to_owned());
        }
        parts.join("; ")
    }
}

/// The name of the program, or the kernel, that says how right a clock is.
const fn name(keeper: ClockKeeper) -> &'static str {
    match keeper {
        ClockKeeper::Kernel => "the kernel",
        ClockKeeper::Chronyd => "chronyd",
        ClockKeeper::Ptp4l => "ptp4l",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_with_its_time_and_its_cause() {
        let said = |cause, there_ns, back_ns| {
            // 1,700,000,000 s are 2023-11-14 22:13:20 UTC.
            let at_unix_ns = 1_700_000_000_000_000_000;
            change(&DelayChange { probe: 120, at_unix_ns, cause, there_ns, back_ns })
        };
        assert_eq!(
            said(ChangeCause::Path, 3_100_000, 0),
            "since 22:13:20 UTC (probe 120) the way there is 3.100 ms longer"
        );
        let both = said(ChangeCause::Path, 3_100_000, -200_000);
        assert!(both.ends_with("is 3.100 ms longer and the way back is 0.200 ms shorter"));
        assert_eq!(
            said(ChangeCause::RemoteClock, -40_000_000, 40_000_000),
            "at 22:13:20 UTC (probe 120) the reflector's clock was set back by 40.000 ms"
        );
        let local = said(ChangeCause::LocalClock, -1_000_000, 1_000_000);
        assert!(local.ends_with("this host's clock was set forward by 1.000 ms"), "{local}");
    }
}
