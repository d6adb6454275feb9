//! Which pairs run at once: each pair in one round, and no two of a round with anything in common.
//!
//! Without anything shared this is the circle method (round robin; Kirkman 1847): one agent stands
//! still, the others go round, and n agents meet in n - 1 rounds, n where n is odd, which is the
//! least possible. Where the agents of one group meet those of another, the smaller one goes round
//! the larger, which has as many rounds as members (Kőnig 1916: the edges of a bipartite graph need
//! as many colours as its largest degree). Shared sites and uplinks are further things that a run
//! occupies; then each pair takes the first round in which all of them are free, the most occupied
//! first.

use std::collections::BTreeSet;

/// Who meets whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Agents.
    pub from: Vec<u32>,
    /// Those that they meet; each other where nothing is said.
    pub to: Option<Vec<u32>>,
    /// Sources with destinations that they do not measure.
    pub except: BTreeSet<(u32, u32)>,
}

/// Runs that occupy agents and what they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rounds {
    /// Source and destination of each run, by round.
    pub rounds: Vec<Vec<(u32, u32)>>,
    /// The least number of rounds that any order could have.
    pub least: usize,
}

/// The rounds of all pairs that meet, in one or both ways. `occupies` gives what a run of two of
/// them occupies beside both, by numbers below `shared`.
pub(super) fn rounds(
    meeting: &Meeting,
    both_ways: bool,
    shared: usize,
    occupies: &dyn Fn(u32, u32) -> Vec<usize>,
) -> Rounds {
    let order = order_rounds(meeting, both_ways);
    let agents = meeting.from.iter().chain(meeting.to.iter().flatten()).copied().max();
    let agents = agents.map_or(0, |most| most as usize + 1);
    let mut loads = vec![0_usize; agents + shared];
    for (from, to) in order.iter().flatten() {
        things(*from, *to, agents, occupies).for_each(|thing| loads[thing] += 1);
    }
    let most = loads.iter().copied().max().unwrap_or(0);
    // An odd number of agents, all of whom meet, has one who waits in each round.
    let whole = meeting.to.is_none() && meeting.except.is_empty();
    let least = if whole { most.max(order.len()) } else { most };
    let shares = loads[agents..].iter().any(|load| *load > 0);
    if shares || overlaps(meeting) {
        let rounds = fitted(&order.concat(), agents, &loads, occupies);
        return Rounds { rounds, least };
    }
    Rounds { rounds: order, least }
}

/// Each pair once, in rounds of those that have no agent in common; where two groups have agents in
/// common, a round may have one twice.
fn order_rounds(meeting: &Meeting, both_ways: bool) -> Vec<Vec<(u32, u32)>> {
    let members = &meeting.from;
    let pick = |round: &Vec<(usize, usize)>, to: &[u32]| -> Vec<(u32, u32)> {
        round.iter().map(|(a, b)| (members[*a], to[*b])).collect()
    };
    let mut order: Vec<Vec<(u32, u32)>> = match &meeting.to {
        None => circle(members.len()).iter().map(|round| pick(round, members)).collect(),
        Some(to) => across(members.len(), to.len()).iter().map(|round| pick(round, to)).collect(),
    };
    let excepted = |pair: &(u32, u32)| meeting.except.contains(pair);
    let back = |pair: (u32, u32)| (pair.1, pair.0);
    if both_ways {
        let second: Vec<_> =
            order.iter().map(|round| round.iter().copied().map(back).collect()).collect();
        order.extend(second);
    } else if meeting.to.is_none() {
        // Which of two measures is free, so the other does where this one may not.
        let turn = |pair: &mut (u32, u32)| {
            if excepted(pair) {
                *pair = back(*pair);
            }
        };
        order.iter_mut().flatten().for_each(turn);
    }
    if overlaps(meeting) {
        let mut seen = BTreeSet::new();
        for round in &mut order {
            round.retain(|pair| pair.0 != pair.1 && seen.insert(*pair));
        }
    }
    if !meeting.except.is_empty() {
        order.iter_mut().for_each(|round| round.retain(|pair| !excepted(pair)));
    }
    order.retain(|round| !round.is_empty());
    order
}

/// All that a run occupies: both agents, and what is shared behind them.
fn things(
    from: u32,
    to: u32,
    agents: usize,
    occupies: &dyn Fn(u32, u32) -> Vec<usize>,
) -> impl Iterator<Item = usize> {
    let shared = occupies(from, to).into_iter().map(move |thing| agents + thing);
    [from as usize, to as usize].into_iter().chain(shared)
}

/// Whether two groups that meet have agents in common.
fn overlaps(meeting: &Meeting) -> bool {
    let from: BTreeSet<u32> = meeting.from.iter().copied().collect();
    meeting.to.iter().flatten().any(|to| from.contains(to))
}

/// Places in one group with places in another by round, each pair once.
fn across(from: usize, to: usize) -> Vec<Vec<(usize, usize)>> {
    let (fewer, more) = (from.min(to), from.max(to));
    let turned = |few: usize, many: usize| if from <= to { (few, many) } else { (many, few) };
    let round = |at: usize| (0..fewer).map(|i| turned(i, (i + at) % more)).collect();
    if fewer == 0 { Vec::new() } else { (0..more).map(round).collect() }
}

/// Pairs of places by round, each pair once.
fn circle(count: usize) -> Vec<Vec<(usize, usize)>> {
    if count < 2 {
        return Vec::new();
    }
    // An odd count has one who waits in each round.
    let seats = count + count % 2;
    let moving = seats - 1;
    let round = |at: usize| {
        let first = (seats - 1, at);
        let others = (1..seats / 2).map(|i| ((at + i) % moving, (at + moving - i) % moving));
        let pairs = std::iter::once(first).chain(others);
        pairs.filter(|(a, b)| *a < count && *b < count).collect()
    };
    (0..moving).map(round).collect()
}

/// Each pair in the first round where all that it occupies is free.
fn fitted(
    pairs: &[(u32, u32)],
    agents: usize,
    loads: &[usize],
    occupies: &dyn Fn(u32, u32) -> Vec<usize>,
) -> Vec<Vec<(u32, u32)>> {
    let mut taken: Vec<Vec<u64>> = vec![Vec::new(); loads.len()];
    let mut order: Vec<(usize, usize)> = pairs
        .iter()
        .enumerate()
        .map(|(at, pair)| {
            let most = occupies(pair.0, pair.1).iter().map(|thing| loads[agents + thing]).max();
            (most.unwrap_or(0), at)
        })
        .collect();
    order.sort_by_key(|(load, at)| (std::cmp::Reverse(*load), *at));
    let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
    for (_, at) in order {
        let things: Vec<usize> = things(pairs[at].0, pairs[at].1, agents, occupies).collect();
        let round = first_free(&things, &taken);
        for thing in things {
            let words = &mut taken[thing];
            if words.len() <= round / 64 {
                words.resize(round / 64 + 1, 0);
            }
            words[round / 64] |= 1 << (round % 64);
        }
        if rounds.len() <= round {
            rounds.resize(round + 1, Vec::new());
        }
        rounds[round].push(pairs[at]);
    }
    rounds
}

fn first_free(things: &[usize], taken: &[Vec<u64>]) -> usize {
    let word = |at: usize| {
        let of = |thing: &usize| taken[*thing].get(at).copied().unwrap_or(0);
        things.iter().map(of).fold(0, |all, it| all | it)
    };
    let mut at = 0;
    while word(at) == u64::MAX {
        at += 1;
    }
    at * 64 + word(at).trailing_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_mesh(count: u32) -> Meeting {
        Meeting { from: (0..count).collect(), ..Meeting::default() }
    }

    fn assert_all_pairs(rounds: &Rounds, count: u32, ways: usize) {
        let mut pairs = BTreeSet::new();
        for round in &rounds.rounds {
            let mut busy = BTreeSet::new();
            for (from, to) in round {
                assert!(busy.insert(*from) && busy.insert(*to), "{from} or {to} is busy twice");
                assert!(pairs.insert((*from, *to)), "{from} to {to} twice");
            }
        }
        let count = count as usize;
        assert_eq!(pairs.len(), count * (count - 1) / 2 * ways);
    }

    #[test]
    fn a_round_robin_has_the_least_number_of_rounds() {
        // n agents: n - 1 rounds, n where n is odd; 999 for 1,000 agents with 499,500 pairs.
        for (count, expected) in [(2, 1), (3, 3), (4, 3), (7, 7), (8, 7), (1000, 999)] {
            let one = rounds(&full_mesh(count), false, 0, &|_, _| Vec::new());
            assert_eq!((one.rounds.len(), one.least), (expected, expected));
            assert_all_pairs(&one, count, 1);
            let both = rounds(&full_mesh(count), true, 0, &|_, _| Vec::new());
            assert_eq!((both.rounds.len(), both.least), (2 * expected, 2 * expected));
            assert_all_pairs(&both, count, 2);
        }
    }

    #[test]
    fn pairs_that_share_an_uplink_run_one_after_another() {
        // Agents 0, 1, 2 behind one uplink, 3, 4, 5 free: 9 of the 15 pairs use it.
        let behind = |a: u32| a < 3;
        let uses = |a: u32, b: u32| if behind(a) == behind(b) { Vec::new() } else { vec![0] };
        let found = rounds(&full_mesh(6), false, 1, &uses);
        assert_eq!((found.rounds.len(), found.least), (9, 9));
        assert_all_pairs(&found, 6, 1);
        for round in &found.rounds {
            assert!(round.iter().filter(|(a, b)| !uses(*a, *b).is_empty()).count() <= 1);
        }
    }

    fn meets_twice(round: &[(u32, u32)]) -> bool {
        let mut busy = BTreeSet::new();
        !round.iter().all(|(from, to)| busy.insert(*from) && busy.insert(*to))
    }

    #[test]
    fn two_groups_meet_in_as_many_rounds_as_the_larger_has_members() {
        let none = |_, _| Vec::new();
        for (from, to, expected) in [(1, 5, 5), (3, 4, 4), (4, 3, 4), (2, 2, 2)] {
            let meeting = Meeting {
                from: (0..from).collect(),
                to: Some((from..from + to).collect()),
                except: BTreeSet::new(),
            };
            for (both, laps) in [(false, 1), (true, 2)] {
                let found = rounds(&meeting, both, 0, &none);
                assert_eq!((found.rounds.len(), found.least), (laps * expected, laps * expected));
                assert!(found.rounds.iter().all(|round| !meets_twice(round)));
                let all: BTreeSet<_> = found.rounds.concat().into_iter().collect();
                assert_eq!(all.len(), (from * to) as usize * laps, "each pair, and once");
                let starts = |(a, b): &(u32, u32)| (*a < from && *b >= from) || both;
                assert!(all.iter().all(starts), "{all:?}");
            }
        }
        // 1 and 2 are in both groups: 0-1, 0-2, 0-3, 1-2, 1-3, 2-1, 2-3, and 1 is in five of them.
        let meeting = Meeting {
            from: vec![0, 1, 2],
            to: Some(vec![1, 2, 3]),
            except: BTreeSet::from([(1, 3)]),
        };
        let found = rounds(&meeting, false, 0, &none);
        assert!(found.rounds.iter().all(|round| !meets_twice(round)), "{found:?}");
        let mut all = found.rounds.concat();
        all.sort_unstable();
        assert_eq!(all, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 1), (2, 3)], "and not 1-3");
        assert_eq!(found.least, 4, "2 is in four of them");
    }

    #[test]
    fn a_pair_that_is_excepted_is_measured_the_other_way_or_not_at_all() {
        let none = |_, _| Vec::new();
        let of = |except: &[(u32, u32)], both| {
            let except = except.iter().copied().collect();
            let meeting = Meeting { except, ..full_mesh(3) };
            let mut all = rounds(&meeting, both, 0, &none).rounds.concat();
            all.sort_unstable();
            all
        };
        assert_eq!(of(&[(0, 1)], true), [(0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
        let one_way = of(&[(0, 1), (2, 1)], false);
        assert!(one_way.contains(&(1, 0)) && one_way.contains(&(1, 2)), "{one_way:?}");
        assert_eq!(of(&[(0, 1), (1, 0)], false).len(), 2);
    }
}
