//! From a template of perfSONAR's psConfig to a plan of a mesh.
//!
//! Read are `addresses`, `hosts`, `groups` (mesh and disjoint), `tests` (throughput, latency,
//! latencybg, rtt, trace), `schedules` and `tasks`. Whatever has no counterpart here is named, one
//! line each, with its place in the template; a task without one is left out, with its reason.
//! Left out: `includes`, address classes by anything but a tag, and groups of type `list`, whose
//! tests have one participant.
//!
//! # Source
//! The schema of psConfig 5.2 (perfsonar/psconfig, doc/psconfig-schema.json) and pScheduler's
//! schemas of those five tests (perfsonar/pscheduler, pscheduler-test-*/validate.py).

mod command;
mod hosts;
mod span;
mod text;

use std::net::IpAddr;

use serde_json::{Map, Value};

use self::command::{ImportedCommand, run};
use self::hosts::Hosts;
use self::text::{ImportedGroup, ImportedMembers, Task, name};
use super::plan::TAKES_S;
use crate::record::IpFamily;
use crate::schedule::usual_time_and_class;

/// Bytes of a template; those in use have some hundred kilobytes.
pub const TEMPLATE_MAX: usize = 16 << 20;
/// Shortest and longest time between two runs of a pair, seconds.
const EVERY_S: (u64, u64) = (10, 7 * 86_400);

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The plan's file (TOML), with the notes at its head.
    pub plan: String,
    /// What has no counterpart: its place in the template, and what is done instead.
    pub notes: Vec<String>,
}

/// Finds the address of a host's name in a family.
pub type Lookup<'a> = &'a dyn Fn(&str, Option<IpFamily>) -> Option<IpAddr>;

/// A plan of the name `mesh` from a template's text.
/// # Errors
/// One line when the text is no template, or when nothing of it can be measured.
pub fn from_psconfig(text: &str, mesh: &str, lookup: Lookup<'_>) -> Result<Imported, String> {
    if text.len() > TEMPLATE_MAX {
        return Err(format!("{} bytes; a template has {TEMPLATE_MAX} at most", text.len()));
    }
    let template: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.is_eof() {
            true => format!("its JSON breaks off in line {line}, before the template ends"),
            false => format!("its JSON has a mistake in line {line}, column {column}"),
        }
    })?;
    let Some(template) = template.as_object() else {
        return Err("a template is a JSON object".to_owned());
    };
    for key in ["addresses", "groups", "tests", "tasks"] {
        if !template.get(key).is_some_and(Value::is_object) {
            return Err(format!("a template of psConfig has an object {key:?}"));
        }
    }
    let mut import = Import {
        template,
        hosts: Hosts::from_template(template, lookup),
        notes: Notes::default(),
        groups: Vec::new(),
        tasks: Vec::new(),
    };
    import.around();
    for (key, task) in object(template, "tasks") {
        import.import_task(key, task);
    }
    let Import { hosts, mut notes, groups, tasks, .. } = import;
    if tasks.is_empty() {
        let why = notes.0.last().map_or_else(String::new, |note| format!("; {note}"));
        return Err(format!("no task of it can be measured{why}"));
    }
    hosts.unused(&mut notes);
    let plan = text::plan_toml(&name(mesh), &hosts.agents, &groups, &tasks, &notes.0);
    Ok(Imported { plan, notes: notes.0 })
}

/// What is said of a template.
#[derive(Debug, Default)]
struct Notes(Vec<String>);

impl Notes {
    /// Keys may hold anything, and a note is one line.
    fn add_note(&mut self, place: &str, what: &str) {
        let line: String = format!("{place}: {what}")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if !self.0.contains(&line) {
            self.0.push(line);
        }
    }
}

/// The members of an object of a template.
fn object<'a>(of: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let members = of.get(key).and_then(Value::as_object).into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value))
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

/// A template being read.
struct Import<'a> {
    template: &'a Map<String, Value>,
    hosts: Hosts<'a>,
    notes: Notes,
    groups: Vec<ImportedGroup>,
    tasks: Vec<Task>,
}

impl Import<'_> {
    /// What stands beside tasks.
    fn around(&mut self) {
        let known = ["addresses", "hosts", "groups", "tests", "schedules", "tasks", "subtasks"];
        for (key, value) in self.template {
            let what = match key.as_str() {
                "archives" => "results go to the store of the hub; this is not archived to",
                "contexts" => "agents run in the name space that they were started in",
                "includes" => "not read: import each of them",
                key if known.contains(&key) || ["_meta", "address-classes"].contains(&key) => "",
                _ => "unknown to psConfig's schema, and left out",
            };
            if what.is_empty() {
                continue;
            }
            match value.as_object() {
                Some(members) if key != "_meta" => {
                    members
                        .keys()
                        .for_each(|member| self.notes.add_note(&format!("{key}.{member}"), what));
                }
                _ => self.notes.add_note(key, what),
            }
        }
    }

    fn find_entry(&self, of: &str, key: &str) -> Option<&Value> {
        self.template.get(of)?.get(key)
    }

    fn import_task(&mut self, key: &str, task: &Value) {
        let place = format!("tasks.{key}");
        if let Err(why) = self.try_task(key, &place, task) {
            self.notes.add_note(&place, &format!("left out: {why}"));
        }
    }

    fn try_task(&mut self, key: &str, place: &str, task: &Value) -> Result<(), String> {
        if is_true(task, "disabled") {
            return Err("it is disabled".to_owned());
        }
        let word = |of: &str| task.get(of).and_then(Value::as_str).map(str::to_owned);
        let named = |of: &str| word(of).ok_or_else(|| format!("it names no {of}"));
        let (group, test) = (named("group")?, named("test")?);
        let lost = |of: &str, it: &str| format!("there is no {of} {it:?}");
        let found = self.find_entry("tests", &test).cloned().ok_or_else(|| lost("test", &test))?;
        let mut run = run(&format!("tests.{test}"), &found, &mut self.notes)?;
        self.schedule(&mut run, place, word("schedule").as_deref())?;
        self.beside(place, task);
        let family = run.family;
        let spec =
            self.find_entry("groups", &group).cloned().ok_or_else(|| lost("group", &group))?;
        let met = self.hosts.group_members(&group, &spec, family, &mut self.notes)?;
        let group = self.group_name(&group, met);
        let known = self.tasks.iter().map(|task| task.name.as_str());
        let name = text::unused(&name(key), known);
        if name != key {
            self.notes.add_note(place, &format!("is called {name}"));
        }
        let ImportedCommand { command, every_s, takes_s, .. } = run;
        let slot_s = takes_s
            .or_else(|| usual_time_and_class(&command).map(|(takes, _)| takes))
            .unwrap_or(60);
        if slot_s > TAKES_S.1 {
            return Err(format!(
                "a run of it takes {slot_s} s, and a slot {} s at most",
                TAKES_S.1
            ));
        }
        // A shorter run has the shortest slot.
        let takes_s = takes_s.map(|takes| takes.max(TAKES_S.0));
        let slot_s = slot_s.max(TAKES_S.0);
        let every_s = every_s.unwrap_or(EVERY_S.1);
        if slot_s >= every_s {
            let what = format!("a pair is measured each {} s", slot_s + 1);
            self.notes.add_note(place, &format!("{what}, for a run has a slot of {slot_s} s"));
        }
        let every_s = every_s.max(slot_s + 1);
        self.tasks.push(Task { name, group, command, every_s, takes_s });
        Ok(())
    }

    /// How often a task runs.
    fn schedule(
        &mut self,
        run: &mut ImportedCommand,
        place: &str,
        name: Option<&str>,
    ) -> Result<(), String> {
        let Some(name) = name else {
            let once = || "it has no schedule, so it runs once".to_owned();
            return run.every_s.map(drop).ok_or_else(once);
        };
        if run.every_s.is_some() {
            self.notes
                .add_note(place, &format!("runs without a pause; schedule {name} is not heeded"));
            return Ok(());
        }
        let found = self.find_entry("schedules", name).cloned();
        let found = found.ok_or_else(|| format!("there is no schedule {name:?}"))?;
        let at = format!("schedules.{name}");
        let said = found.get("repeat").and_then(Value::as_str);
        let said = said.ok_or_else(|| format!("schedule {name:?} does not repeat"))?;
        let every_s =
            span::seconds(said).ok_or_else(|| format!("{at}: {said:?} is no duration"))?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let every = every_s.round().clamp(0.0, 1e9) as u64;
        let kept = every.clamp(EVERY_S.0, EVERY_S.1);
        if kept != every {
            self.notes
                .add_note(&at, &format!("repeat {said}: a pair is measured each {kept} s here"));
        }
        for (key, value) in found.as_object().into_iter().flatten() {
            let what = match key.as_str() {
                "repeat" | "_meta" => continue,
                "slip" | "sliprand" => "the calendar gives each run its second; no run slips",
                "start" => "a plan is in force at once, or by its key from",
                "until" | "max-runs" => "runs go on until a later revision of the plan",
                _ => "has no counterpart",
            };
            self.notes.add_note(&at, &format!("{key} {value}: {what}"));
        }
        run.every_s = Some(kept);
        Ok(())
    }

    /// What else a task says.
    fn beside(&mut self, place: &str, task: &Value) {
        for (key, value) in task.as_object().into_iter().flatten() {
            let what = match key.as_str() {
                "group" | "test" | "schedule" | "_meta" | "disabled" | "archives" => continue,
                "scheduled-by" if value.as_u64() == Some(0) => continue,
                "scheduled-by" => "the source measures, whoever scheduled it there",
                "tools" => "linerate measures by itself",
                "subtasks" => "each of them is to be a task of its own",
                "priority" => "the calendar leaves no two runs to choose between",
                _ => "has no counterpart",
            };
            self.notes.add_note(place, &format!("{key} {value}: {what}"));
        }
    }

    /// The group of these members, which other tasks may have named before.
    fn group_name(&mut self, key: &str, met: ImportedMembers) -> String {
        let same = |group: &&ImportedGroup| group.met == met;
        if let Some(group) = self.groups.iter().find(same) {
            return group.name.clone();
        }
        let known = self.groups.iter().map(|group| group.name.as_str());
        let name = text::unused(&name(key), known);
        self.groups.push(ImportedGroup { name: name.clone(), met });
        name
    }
}

#[cfg(test)]
mod tests;
