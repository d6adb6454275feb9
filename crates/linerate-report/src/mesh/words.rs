//! Incidents of a mesh in sentences.

use linerate_core::mesh::{Booking, IncidentKind, Member, Moved, SharedElement, SharedKind};

use crate::schedule::{change_in_words, span_in_words, utc_date_time};

/// Members that a sentence names.
const NAMED: usize = 3;

/// The pairs that were hit, of all pairs: `5 of 5 pairs of agent c`.
fn subject(shared: Option<&SharedElement>, hit: usize, all: usize) -> String {
    let Some(SharedElement { kind, name }) = shared else { return format!("{hit} pairs") };
    match kind {
        SharedKind::Agent => format!("{hit} of {all} pairs of agent {name}"),
        SharedKind::Site => format!("{hit} of {all} pairs of site {name}"),
        SharedKind::Uplink => format!("{hit} of {all} pairs over uplink {name}"),
        SharedKind::Mesh => format!("{hit} of {all} pairs of the mesh"),
        SharedKind::Pair => format!("the pair {name}"),
    }
}

fn listed(members: &[Member], line: impl Fn(&Member) -> String) -> String {
    let named: Vec<String> = members.iter().take(NAMED).map(line).collect();
    let more = members.len() - named.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", named.join("; "))
}

/// `delay a to c`.
fn task_and_path(member: &Member) -> String {
    let task = member.task.as_deref().unwrap_or_default();
    let to = member.to.as_deref().unwrap_or_default();
    format!("{task} {} to {to}", member.from)
}

/// A run that was booked at a time.
pub fn booked(from: &str, booking: &Booking, now_s: i64) -> String {
    let Booking { task, start_s, takes_s, .. } = booking;
    let (name, to) = task.split_once('/').unwrap_or((task, "?"));
    let (at, wait) = (utc_date_time(*start_s as f64), span_in_words(start_s - now_s));
    format!("booked: {name} {from} to {to} begins {at} UTC, in {wait}, and takes {takes_s} s")
}

/// A lasting change of pairs.
pub fn change_sentence(
    mesh: &str,
    shared: Option<&SharedElement>,
    counts: (usize, usize),
    members: &[Member],
    confirmed: bool,
) -> String {
    let further = if confirmed { "confirmed" } else { "not confirmed" };
    let moves = members.iter().flat_map(|member| &member.moved);
    let since = moves.map(|moved| moved.since_s).fold(f64::INFINITY, f64::min);
    let one = |moved: &Moved| change_in_words(&moved.metric, moved.before, moved.after);
    let each = |member: &Member| {
        let moves: Vec<String> = member.moved.iter().map(one).collect();
        format!("{}: {}", task_and_path(member), moves.join(", "))
    };
    let together = if counts.0 > 1 { " changed together" } else { " changed" };
    format!(
        "{mesh}: {}{together}, since {} UTC: {}; {further} by further runs",
        subject(shared, counts.0, counts.1),
        utc_date_time(since),
        listed(members, each)
    )
}

/// Why a change is dropped: further runs say otherwise.
pub fn dropped_sentence(mesh: &str, member: &Member) -> String {
    let each = |moved: &Moved| change_in_words(&moved.metric, moved.before, moved.after);
    let moves: Vec<String> = member.moved.iter().map(each).collect();
    let moves = moves.join(", ");
    format!("{mesh}: {}: {moves}: dropped, for further runs did not show it", task_and_path(member))
}

/// No data from agents or from pairs, since a time.
pub fn no_data_sentence(
    mesh: &str,
    shared: Option<&SharedElement>,
    counts: (usize, usize),
    members: &[Member],
    since_s: f64,
) -> String {
    let since = utc_date_time(since_s);
    if members.iter().all(|member| member.to.is_none()) {
        let names: Vec<&str> = members.iter().map(|member| member.from.as_str()).collect();
        let (agents, names) = (if names.len() > 1 { "agents" } else { "agent" }, names.join(", "));
        let place = match shared {
            Some(SharedElement { kind: SharedKind::Site, name }) => {
                format!(" (all of site {name})")
            }
            Some(SharedElement { kind: SharedKind::Uplink, name }) => {
                format!(" (all of uplink {name})")
            }
            _ => String::new(),
        };
        return format!(
            "{mesh}: no data from {agents} {names}{place}, not heard since {since} UTC"
        );
    }
    let each = |member: &Member| {
        let why = member.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("{}{why}", task_and_path(member))
    };
    let members = listed(members, each);
    format!(
        "{mesh}: no data from {}, since {since} UTC: {members}",
        subject(shared, counts.0, counts.1)
    )
}

/// The end of an alert in a sentence.
pub fn over_sentence(
    mesh: &str,
    kind: IncidentKind,
    shared: Option<&SharedElement>,
    counts: (usize, usize),
    members: &[Member],
) -> String {
    let of_agents = members.iter().all(|member| member.to.is_none());
    let names = || members.iter().map(|member| member.from.clone()).collect::<Vec<_>>().join(", ");
    let what =
        if of_agents { format!("agent {}", names()) } else { subject(shared, counts.0, counts.1) };
    match kind {
        IncidentKind::Change => format!("{mesh}: {what}: the levels are back"),
        IncidentKind::NoData => format!("{mesh}: {what}: results are back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(from: &str, to: Option<&str>, moved: Vec<Moved>) -> Member {
        let task = to.map(|_| "delay".to_owned());
        let (from, to) = (from.to_owned(), to.map(str::to_owned));
        Member { from, to, task, moved, reason: None }
    }

    #[test]
    fn pairs_that_changed_together_are_named_by_what_they_share_and_no_more_than_three() {
        let rose = Moved {
            metric: "rtt_ns".to_owned(),
            before: 10e6,
            after: 25e6,
            since_s: 1_795_478_400.0,
            between_s: (0.0, 0.0),
            back_s: None,
        };
        let uplink = SharedElement { kind: SharedKind::Uplink, name: "isp".to_owned() };
        let of = |from: &str| member(from, Some("c"), vec![rose.clone()]);
        let members = ["a", "b", "d", "e"].map(of);
        let sentence = change_sentence("m", Some(&uplink), (4, 5), &members, false);
        let each = |from: &str| {
            format!("delay {from} to c: round trip rose from 10.00 ms to 25.00 ms (+150 %)")
        };
        let wanted = format!(
            "m: 4 of 5 pairs over uplink isp changed together, since 2026-11-24 00:00:00 UTC: {}; \
             {}; {}; and 1 more; not confirmed by further runs",
            each("a"),
            each("b"),
            each("d")
        );
        assert_eq!(sentence, wanted);
        let one = SharedElement { kind: SharedKind::Pair, name: "a and c".to_owned() };
        let sentence = change_sentence("m", Some(&one), (1, 1), &members[..1], true);
        assert!(sentence.ends_with("(+150 %); confirmed by further runs"), "{sentence}");
        assert!(sentence.starts_with("m: the pair a and c changed, since"), "{sentence}");
        let over = over_sentence("m", IncidentKind::Change, Some(&uplink), (4, 5), &members);
        assert_eq!(over, "m: 4 of 5 pairs over uplink isp: the levels are back");
    }

    #[test]
    fn agents_and_pairs_without_data_say_since_when_and_why() {
        let rack = SharedElement { kind: SharedKind::Site, name: "rack".to_owned() };
        let agents = ["e", "f"].map(|name| member(name, None, Vec::new()));
        let at = 1_795_478_400.0;
        assert_eq!(
            no_data_sentence("m", Some(&rack), (2, 2), &agents, at),
            "m: no data from agents e, f (all of site rack), not heard since 2026-11-24 00:00:00 \
             UTC"
        );
        let over = over_sentence("m", IncidentKind::NoData, None, (1, 1), &agents[..1]);
        assert_eq!(over, "m: agent e: results are back");
        let mut pair = member("a", Some("c"), Vec::new());
        pair.reason = Some("refused".to_owned());
        let one = SharedElement { kind: SharedKind::Agent, name: "c".to_owned() };
        assert_eq!(
            no_data_sentence("m", Some(&one), (2, 3), &[pair], at),
            "m: no data from 2 of 3 pairs of agent c, since 2026-11-24 00:00:00 UTC: delay a to c \
             (refused)"
        );
    }
}
