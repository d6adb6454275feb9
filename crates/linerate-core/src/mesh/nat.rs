//! Agents behind NAT: they reach others and are reached by nobody, but for STAMP of two of them,
//! who meet at a third (`spec/meet.md`).

use std::net::SocketAddr;

use super::calendar::{MeshCalendar, MeshRun};
use super::plan::{Agent, MeshPlan, MeshTask, Met, TO};
use crate::record::DEFAULT_PORT;
use crate::schedule::{Calendar, RepeatedRun};

/// How a run gets from one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReachMethod {
    /// By its address.
    Direct,
    /// Both are behind NAT.
    Meet(MeetAt),
}

/// Where two agents behind NAT meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeetAt {
    /// The third, with the port of its `linerate serve --meet`.
    pub third: SocketAddr,
    /// What both say there.
    pub word: String,
}

impl MeetAt {
    fn command_flags(&self) -> [String; 2] {
        [format!("--meet={}", self.third), format!("--word={}", self.word)]
    }
}

/// True for a `stamp` command: the only measurement between two agents behind NAT.
fn is_stamp(run: &str) -> bool {
    run.split_whitespace().next() == Some("stamp")
}

impl MeshPlan {
    /// How agent `from` reaches agent `to` with the command `name`, whose line is `run`; none where
    /// it does not.
    pub(super) fn reach_method(
        &self,
        name: &str,
        run: &str,
        from: usize,
        to: usize,
    ) -> Option<ReachMethod> {
        let (from, to) = (&self.agents[from], &self.agents[to]);
        if to.nat.is_none() {
            return Some(ReachMethod::Direct);
        }
        let third = from.nat.as_ref()?;
        let third = &self.agents[self.agent_index(third)?];
        let third = SocketAddr::new(third.address?, third.port.unwrap_or(DEFAULT_PORT));
        // Who knows the plan knows the word, and nobody else does.
        let word = format!("{}/{name}/{}/{}", self.secret, from.name, to.name);
        is_stamp(run).then_some(ReachMethod::Meet(MeetAt { third, word }))
    }

    /// The words of the command `name`, whose line is `run`, from one agent to another that it
    /// reaches.
    pub fn command_words(&self, name: &str, run: &str, from: usize, to: usize) -> Vec<String> {
        let target = match self.reach_method(name, run, from, to) {
            Some(ReachMethod::Meet(at)) => at.command_flags().to_vec(),
            Some(ReachMethod::Direct) | None => vec![self.agents[to].target(run)],
        };
        let words = run.split_whitespace();
        words
            .flat_map(|word| if word == TO { target.clone() } else { vec![word.to_owned()] })
            .collect()
    }

    /// Pairs of a task of which one does not reach the other.
    pub(super) fn unreachable_pairs(&self, task: &MeshTask, met: &Met) -> Vec<(usize, usize)> {
        let members = || met.from.iter().chain(met.to.iter().flatten()).copied();
        let mut apart = Vec::new();
        let behind = |at: &usize| self.agents[*at].nat.is_some();
        let meet = is_stamp(&task.run);
        for to in members().filter(behind) {
            let away = members().filter(|from| *from != to && !(meet && behind(from)));
            apart.extend(away.map(|from| (from, to)));
        }
        apart
    }

    /// # Errors
    /// What is wrong with an agent's address or its NAT.
    pub(super) fn check_nat(&self, agent: &Agent) -> Result<(), (&'static str, String)> {
        match (&agent.nat, agent.address) {
            (None, Some(_)) => Ok(()),
            (None, None) => Err(("name", "an agent has an address, or nat = \"AGENT\"".to_owned())),
            (Some(_), Some(_)) => {
                Err(("address", "behind NAT nobody reaches it: leave the address out".to_owned()))
            }
            (Some(third), None) => {
                let open =
                    self.agent_index(third).is_some_and(|at| self.agents[at].address.is_some());
                let reason = || format!("{third:?}: it meets others at an agent with an address");
                if open { Ok(()) } else { Err(("nat", reason())) }
            }
        }
    }
}

impl MeshCalendar {
    /// Where an agent has to be met by others behind NAT, and when: a task of the calendar for
    /// each.
    pub fn meetings(&self, plan: &MeshPlan, agent: usize) -> (Vec<MeetAt>, Calendar) {
        let met = |run: MeshRun| {
            let task = &plan.tasks[run.task];
            match plan.reach_method(&task.name, &task.run, run.from, run.to) {
                Some(ReachMethod::Meet(at)) => {
                    let MeshRun { period_s, offset_s, takes_s, .. } = run;
                    Some((
                        at,
                        (task.effective_class(), RepeatedRun { period_s, offset_s, takes_s }),
                    ))
                }
                _ => None,
            }
        };
        let behind = plan.agents[agent].nat.is_some();
        let (places, times): (Vec<_>, Vec<_>) =
            self.iter_runs().filter(|run| behind && run.to == agent).filter_map(met).unzip();
        (places, Calendar::placed(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\
        [[agent]]\nname = \"t\"\naddress = \"192.0.2.1\"\nport = 6000\n\
        [[agent]]\nname = \"a\"\nnat = \"t\"\n[[agent]]\nname = \"b\"\nnat = \"t\"\n\
        [[task]]\nname = \"delay\"\nrun = \"stamp {to} -c9\"\nevery = \"1m\"\n\
        [[task]]\nname = \"rate\"\nrun = \"tcp {to} -t5\"\nevery = \"10m\"\ntakes = \"14s\"\n";

    fn task_pairs(calendar: &MeshCalendar, task: usize) -> Vec<(usize, usize)> {
        let runs = calendar.iter_runs().filter(|run| run.task == task);
        let mut pairs: Vec<_> = runs.map(|run| (run.from, run.to)).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn nobody_measures_an_agent_behind_nat_but_by_stamp_another_behind_nat() {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        assert_eq!(task_pairs(&calendar, 0), [(1, 0), (1, 2), (2, 0), (2, 1)]);
        assert_eq!(task_pairs(&calendar, 1), [(1, 0), (2, 0)]);
        let one = PLAN.replace("every = \"10m\"", "every = \"10m\"\nways = \"one\"");
        let one = MeshPlan::from_toml(&one).expect("a plan");
        let calendar = MeshCalendar::from_plan(&one).expect("room");
        assert_eq!(task_pairs(&calendar, 1), [(1, 0), (2, 0)], "the one that can measures");
    }

    #[test]
    fn both_say_one_word_at_the_third_and_the_measured_one_knows_when() {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let plan = MeshPlan { secret: "5ec".to_owned(), ..plan };
        let words = plan.command_words("delay", "stamp {to} -c9", 1, 2);
        assert_eq!(words, ["stamp", "--meet=192.0.2.1:6000", "--word=5ec/delay/a/b", "-c9"]);
        assert_eq!(
            plan.command_words("delay", "stamp {to} -c9", 1, 0),
            ["stamp", "192.0.2.1", "-c9"]
        );
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        let run = calendar.iter_runs().find(|run| (run.task, run.from, run.to) == (0, 1, 2));
        let offset_s = run.expect("a meets b").offset_s;
        let (places, times) = calendar.meetings(&plan, 2);
        let third = "192.0.2.1:6000".parse().expect("an address");
        assert_eq!(places, [MeetAt { third, word: "5ec/delay/a/b".to_owned() }]);
        let slots: Vec<i64> = times.slots_between(0, 120).iter().map(|slot| slot.start_s).collect();
        assert_eq!(slots, [offset_s, offset_s + 60]);
        assert!(calendar.meetings(&plan, 0).0.is_empty());
    }

    #[test]
    fn an_agent_has_an_address_or_is_behind_nat_with_a_third_that_has_one() {
        for (from, to, said) in [
            ("nat = \"t\"", "nat = \"b\"", "9:7: \"b\": it meets others at an agent"),
            ("nat = \"t\"", "nat = \"x\"", "9:7: \"x\": it meets others at an agent"),
            ("nat = \"t\"", "nat = \"t\"\naddress = \"10.0.0.1\"", "10:11: behind NAT nobody"),
            ("nat = \"t\"", "site = \"s\"", "8:8: an agent has an address, or nat"),
        ] {
            let error = MeshPlan::from_toml(&PLAN.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.starts_with(said) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
