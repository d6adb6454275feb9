//! Agents and pairs of a mesh that bring no data, and since when, as the hub's matrix shows it.
//! Incidents of that are in `incidents`.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::{
    Cell, Incident, IncidentKind, Matrix, Member, MeshPlan, SILENT_S, SharedElement, SharedKind,
};

use super::found::JOIN_S_MAX;

/// Seconds that silence has to last before it counts: an agent reaches a hub that is back within a
/// minute.
const HOLD_S: i64 = 90;
/// Seconds that silence of a pair has to last where its agent still has results to deliver.
const DELIVERS_S: i64 = 900;

/// Something that brings no data: an agent, or a task from one agent to another.
pub(super) type Dark = (String, Option<(String, String)>);

/// A pair that brings no data, or an agent.
#[derive(Clone, Debug)]
pub(super) struct Darkness {
    pub(super) member: Member,
    pub(super) since_s: f64,
    /// Seconds that the silence has to last before it is an incident.
    pub(super) wait_s: i64,
}

/// Agents that are silent after they were heard once, and pairs without data whose agents both
/// are heard.
pub(super) fn find_silent_members(plan: &MeshPlan, matrix: &Matrix) -> BTreeMap<Dark, Darkness> {
    let silent = |at: usize| matrix.agents[at].heard_s_ago.is_some_and(|ago| ago > SILENT_S);
    let mut found = BTreeMap::new();
    for (at, row) in matrix.agents.iter().enumerate().filter(|(at, _)| silent(*at)) {
        let since_s = (matrix.now_s - matrix.agents[at].heard_s_ago.unwrap_or(0)) as f64;
        let member = Member { from: row.name.clone(), ..Member::default() };
        let darkness = Darkness { member, since_s, wait_s: HOLD_S };
        found.insert((row.name.clone(), None), darkness);
    }
    let unexplained = matrix.cells.iter().filter(|cell| {
        let heard = matrix.agents[cell.from].heard_s_ago.is_some();
        cell.no_data && heard && !silent(cell.from) && !silent(cell.to)
    });
    for cell in unexplained {
        let (from, to) = (&matrix.agents[cell.from], &matrix.agents[cell.to]);
        let task = matrix.tasks[cell.task].clone();
        let period = plan.tasks[cell.task].every.seconds();
        let period = i64::try_from(period).unwrap_or(JOIN_S_MAX).min(JOIN_S_MAX);
        let delivers = from.waiting.is_some_and(|waiting| waiting > 0);
        let wait_s = HOLD_S + if delivers { period.max(DELIVERS_S) } else { period };
        let member = Member {
            from: from.name.clone(),
            to: Some(to.name.clone()),
            task: Some(task),
            reason: cell.reason.clone(),
            ..Member::default()
        };
        let since_s = (matrix.now_s - cell.age_s.unwrap_or(0)) as f64;
        found.insert(key_of(&member), Darkness { member, since_s, wait_s });
    }
    found
}

pub(super) fn key_of(member: &Member) -> Dark {
    (member.from.clone(), member.to.clone().zip(member.task.clone()))
}

/// True where each agent and pair of an incident has data again, or is no longer in the plan.
pub(super) fn is_light(incident: &Incident, matrix: &Matrix) -> bool {
    let place = |name: &str| matrix.agents.iter().position(|agent| agent.name == name);
    let is_dark = |member: &Member| {
        let Some(from) = place(&member.from) else { return false };
        let Some((to, task)) = member.to.as_deref().zip(member.task.as_ref()) else {
            return matrix.agents[from].heard_s_ago.is_none_or(|ago| ago > SILENT_S);
        };
        let task = matrix.tasks.iter().position(|known| known == task);
        let is_it =
            |cell: &&Cell| (Some(cell.task), cell.from, Some(cell.to)) == (task, from, place(to));
        matrix.cells.iter().find(is_it).is_some_and(|cell| cell.no_data)
    };
    incident.kind == IncidentKind::NoData && !incident.members.iter().any(is_dark)
}

/// Groups silent agents by site or uplink where all agents of that place are silent; the others
/// stand alone.
pub(super) fn by_place<'a>(
    plan: &MeshPlan,
    mut names: BTreeSet<&'a str>,
) -> Vec<(Option<SharedElement>, Vec<&'a str>)> {
    let mut parts = Vec::new();
    let sites =
        plan.agents.iter().filter_map(|agent| Some((SharedKind::Site, agent.site.as_ref()?)));
    let uplinks =
        plan.agents.iter().filter_map(|agent| Some((SharedKind::Uplink, agent.uplink.as_ref()?)));
    for (kind, name) in sites.chain(uplinks).collect::<BTreeSet<_>>() {
        let of = |agent: &&linerate_core::mesh::Agent| {
            let place = if kind == SharedKind::Site { &agent.site } else { &agent.uplink };
            place.as_ref() == Some(name)
        };
        let all: Vec<&str> =
            plan.agents.iter().filter(of).map(|agent| agent.name.as_str()).collect();
        if all.len() >= 2 && all.iter().all(|name| names.contains(name)) {
            let mine: Vec<&str> = names.iter().copied().filter(|name| all.contains(name)).collect();
            names.retain(|name| !all.contains(name));
            parts.push((Some(SharedElement { kind, name: name.clone() }), mine));
        }
    }
    parts.extend(names.into_iter().map(|name| (None, vec![name])));
    parts
}
