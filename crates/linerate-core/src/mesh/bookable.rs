//! Commands that a plan lets be booked, and what a command line asks for of them.

use std::collections::BTreeSet;

use super::plan::{Agent, MeshPlan, check_command, is_name, no_name, takes_or};
use crate::lab::{Problem, Step};
use crate::schedule::{Class, usual_time_and_class};

/// Commands of one plan.
const COMMANDS_MAX: usize = 20;
/// Shortest and longest slot, seconds.
const TAKES_S: (u64, u64) = (6, 900);
/// The most of an hour that may be given away, seconds.
const SECONDS_MAX: u32 = 1800;

/// A command that a plan lets be booked: one of `[adhoc]`, or of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bookable<'a> {
    /// Its name.
    pub name: &'a str,
    /// The command, with `{to}`.
    pub run: &'a str,
    /// Seconds of its slot.
    pub takes_s: i64,
    /// What may run beside it.
    pub class: Class,
    /// The task's place, where it is one's.
    pub task: Option<usize>,
}

impl Bookable<'_> {
    /// Whether a command that was asked for is this one: the same words, with the agent's name
    /// where this has `{to}`.
    fn is_asked(&self, asked: &[&str], to: &str) -> bool {
        let words = self.run.split_whitespace().map(|word| if word == "{to}" { to } else { word });
        words.eq(asked.iter().copied())
    }
}

const fn clamped_seconds(seconds: u64) -> i64 {
    if seconds > 86_400 { 86_400 } else { seconds.cast_signed() }
}

impl MeshPlan {
    /// Every command that may be booked; none where the plan has no `[adhoc]`.
    pub fn bookable(&self) -> Vec<Bookable<'_>> {
        let Some(adhoc) = &self.adhoc else { return Vec::new() };
        let tasks = self.tasks.iter().enumerate().map(|(at, task)| Bookable {
            name: &task.name,
            run: &task.run,
            takes_s: clamped_seconds(task.takes_s()),
            class: task.effective_class(),
            task: Some(at),
        });
        let commands = adhoc.commands.iter().map(|command| Bookable {
            name: &command.name,
            run: &command.run,
            takes_s: clamped_seconds(takes_or(command.takes, &command.run)),
            class: command
                .class
                .or_else(|| Some(usual_time_and_class(&command.run)?.1))
                .unwrap_or(Class::Exclusive),
            task: None,
        });
        tasks.chain(commands).collect()
    }

    /// The command of a name that may be booked.
    pub fn bookable_of(&self, name: &str) -> Option<Bookable<'_>> {
        self.bookable().into_iter().find(|bookable| bookable.name == name)
    }

    /// What a command line asks for, `tcp south -t5`: the command that may be booked, and the place
    /// of the agent that it goes to.
    /// # Errors
    /// One line with what may be booked.
    pub fn parse_command_line(&self, line: &str) -> Result<(Bookable<'_>, usize), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(to) = words.get(1).and_then(|name| self.agent_index(name)) else {
            return Err(format!(
                "{line:?}: a command is as 'tcp AGENT -t5', to an agent of the plan"
            ));
        };
        let known = self.bookable();
        let name = &self.agents[to].name;
        self.bookable_to(to)?;
        if let Some(found) = known.iter().find(|bookable| bookable.is_asked(&words, name)) {
            return Ok((*found, to));
        }
        let runs: BTreeSet<&str> = known.iter().map(|bookable| bookable.run).collect();
        let runs: Vec<&str> = runs.into_iter().collect();
        Err(match runs.as_slice() {
            [] => "the plan has no [adhoc]: nothing runs beside its calendar".to_owned(),
            runs => format!("{line:?} may not be booked; the plan has: {}", runs.join(", ")),
        })
    }

    /// # Errors
    /// One line, where an agent is not reached by others at a time that its calendar does not have.
    pub fn bookable_to(&self, to: usize) -> Result<(), String> {
        let Agent { name, nat, .. } = &self.agents[to];
        let reason = || format!("{name} is behind NAT: book what it measures itself");
        if nat.is_none() { Ok(()) } else { Err(reason()) }
    }

    /// # Errors
    /// The first thing of `[adhoc]` that does not fit.
    pub(super) fn check_adhoc(&self) -> Result<(), Problem> {
        let Some(adhoc) = &self.adhoc else { return Ok(()) };
        let problem = |path: Vec<Step>, message: String| {
            let mut whole = vec![Step::Key("adhoc")];
            whole.extend(path);
            Err(Problem { path: whole, message })
        };
        if !(1..=SECONDS_MAX).contains(&adhoc.seconds_an_hour) {
            let message = format!("seconds of an hour are 1 to {SECONDS_MAX}");
            return problem(vec![Step::Key("seconds_an_hour")], message);
        }
        if adhoc.commands.len() > COMMANDS_MAX {
            let count = adhoc.commands.len();
            let message = format!("{count} commands; a plan has {COMMANDS_MAX} at most");
            return problem(Vec::new(), message);
        }
        let mut names: BTreeSet<&str> = self.tasks.iter().map(|task| task.name.as_str()).collect();
        for (index, command) in adhoc.commands.iter().enumerate() {
            let at = |key| vec![Step::Key("command"), Step::Index(index), Step::Key(key)];
            if !is_name(&command.name) || !names.insert(&command.name) {
                return problem(at("name"), no_name(&command.name));
            }
            if let Err(message) = check_command(&command.run) {
                return problem(at("run"), message);
            }
            let takes = takes_or(command.takes, &command.run);
            if !(TAKES_S.0..=TAKES_S.1).contains(&takes) || takes > u64::from(adhoc.seconds_an_hour)
            {
                let message = "a slot is 6s to 15m long, and no longer than seconds_an_hour";
                return problem(at("takes"), message.to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\
        [[agent]]\nname = \"a\"\naddress = \"192.0.2.1\"\n\
        [[agent]]\nname = \"b\"\naddress = \"192.0.2.2\"\nport = 6000\n[[task]]\nname = \"delay\"\n\
        run = \"ping {to} -c2\"\nevery = \"1m\"\n";
    const ADHOC: &str = "[adhoc]\nseconds_an_hour = 120\n[[adhoc.command]]\nname = \"burst\"\n\
        run = \"tcp {to} -t5\"\ntakes = \"14s\"\n";

    fn plan_with_lines(more: &str) -> MeshPlan {
        MeshPlan::from_toml(&format!("{PLAN}{more}")).expect("a plan")
    }

    #[test]
    fn what_may_be_booked_is_what_the_plan_has_word_by_word() {
        let with = plan_with_lines(ADHOC);
        let (burst, to) = with.parse_command_line("tcp b -t5").expect("it may");
        assert_eq!(
            (burst.name, burst.takes_s, burst.class, to),
            ("burst", 14, Class::Exclusive, 1)
        );
        assert_eq!(
            with.command_words(burst.name, burst.run, 0, to),
            ["tcp", "192.0.2.2:6000", "-t5"]
        );
        let (delay, to) = with.parse_command_line("ping  a -c2").expect("a task's");
        assert_eq!(
            (delay.name, delay.task, delay.class, to),
            ("delay", Some(0), Class::Background, 0)
        );
        for wrong in
            ["tcp b -t50", "tcp b", "tcp b -t5 -P9", "tcp 192.0.2.2 -t5", "udp b -t5", "tcp"]
        {
            let error = with.parse_command_line(wrong).expect_err(wrong);
            assert!(!error.contains('\n'), "{error}");
        }
        let error = with.parse_command_line("tcp b -t6").expect_err("another time");
        assert!(error.ends_with("the plan has: ping {to} -c2, tcp {to} -t5"), "{error}");
        let error = plan_with_lines("").parse_command_line("ping b -c2").expect_err("nothing may");
        assert!(error.starts_with("the plan has no [adhoc]"), "{error}");
    }

    #[test]
    fn an_allowance_that_makes_no_sense_is_refused_with_its_place() {
        for (from, to, said) in [
            ("120", "0", "15:19: seconds of an hour are 1 to 1800"),
            ("120", "1801", "15:19: seconds of an hour are 1 to 1800"),
            ("120", "13", "19:9: a slot is 6s to 15m"),
            ("\"burst\"", "\"delay\"", "17:8: \"delay\": names differ"),
            ("{to}", "192.0.2.9", "18:7: \"tcp 192.0.2.9 -t5\": a command is tcp"),
            ("takes", "every", "19:1: unknown field"),
        ] {
            let text = format!("{PLAN}{}", ADHOC.replacen(from, to, 1));
            let error = MeshPlan::from_toml(&text).expect_err(to).to_string();
            assert!(error.starts_with(said) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
