//! A change that the hub's watch found, as it waits to be part of an incident, and as the store
//! keeps it until then.

use linerate_core::mesh::{Member, MeshPlan, Moved, Pair, ordered_pair};
use linerate_core::schedule::LevelChange;
use serde_json::Value;

/// Longest wait for changes that belong together, seconds.
pub(super) const JOIN_S_MAX: i64 = 3600;

/// Result of the further runs that are to confirm a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Further {
    /// Further runs are still to be booked.
    Wanted,
    /// Further runs are booked at these times, and waited for until the last value; all are seconds
    /// since 1970-01-01 UTC.
    Booked(Vec<i64>, i64),
    /// The calendar's own runs come soon enough: those after the first time count, and they are
    /// waited for until the second. Seconds since 1970-01-01 UTC.
    Next(i64, i64),
    /// No further run can be booked, or none brought a result.
    None,
    /// Further runs show the change: it is confirmed.
    Shown,
}

impl Further {
    /// As the store keeps it.
    pub(super) fn read(kept: &Value) -> Self {
        let starts: Option<Vec<i64>> =
            kept["starts"].as_array().map(|all| all.iter().filter_map(Value::as_i64).collect());
        match (starts, kept["after_s"].as_i64(), kept["until_s"].as_i64()) {
            (Some(starts), _, Some(until_s)) => Self::Booked(starts, until_s),
            (_, Some(after_s), Some(until_s)) => Self::Next(after_s, until_s),
            _ => Self::Wanted,
        }
    }

    /// True while results of further runs are still to come.
    pub(super) const fn is_awaited(&self) -> bool {
        matches!(self, Self::Wanted | Self::Booked(..) | Self::Next(..))
    }
}

/// A lasting change in the results of a pair's task.
#[derive(Clone, Debug)]
pub(super) struct DetectedChange {
    /// Numbers of its events in the store.
    pub(super) events: Vec<i64>,
    pub(super) found_s: i64,
    pub(super) period_s: i64,
    pub(super) pair: Pair,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) task: String,
    pub(super) changes: Vec<(String, LevelChange)>,
    pub(super) sentence: String,
    /// Result of the further runs that are to confirm the change.
    pub(super) further: Further,
}

impl DetectedChange {
    pub(super) fn since_s(&self) -> f64 {
        self.changes.iter().map(|(_, change)| change.at_s).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn join_s(&self) -> i64 {
        // A result is here some seconds after its run.
        (self.period_s + 5).min(JOIN_S_MAX)
    }

    pub(super) fn member(&self) -> Member {
        let moved = self.changes.iter().map(|(metric, change)| Moved {
            metric: metric.clone(),
            before: change.before,
            after: change.after,
            since_s: change.at_s,
            between_s: change.between_s,
            back_s: None,
        });
        Member {
            from: self.from.clone(),
            to: Some(self.to.clone()),
            task: Some(self.task.clone()),
            moved: moved.collect(),
            reason: None,
        }
    }
}

/// A change as the store keeps it.
pub(super) fn read(
    plan: &MeshPlan,
    agent: &str,
    event: &linerate_store::ScheduleEvent,
) -> Option<DetectedChange> {
    let (task, peer) = event.task.split_once('/')?;
    let period = plan.tasks.iter().find(|known| known.name == task)?.every.seconds();
    let change = |value: &Value| {
        let number = |key: &str| value[key].as_f64();
        let between = &value["between_s"];
        Some((
            value["metric"].as_str()?.to_owned(),
            LevelChange {
                at_s: number("since_s")?,
                between_s: (between[0].as_f64()?, between[1].as_f64()?),
                before: number("before")?,
                after: number("after")?,
                values: 0,
            },
        ))
    };
    let changes = event.detail["changes"].as_array()?.iter().filter_map(change).collect();
    Some(DetectedChange {
        events: vec![event.id],
        found_s: event.at_s,
        period_s: i64::try_from(period).unwrap_or(i64::MAX / 4),
        pair: ordered_pair(plan.agent_index(agent)?, plan.agent_index(peer)?),
        from: agent.to_owned(),
        to: peer.to_owned(),
        task: task.to_owned(),
        changes,
        sentence: String::new(),
        further: Further::read(&event.detail["further"]),
    })
}
