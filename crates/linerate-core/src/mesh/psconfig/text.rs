//! A plan's file as it is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Characters of a name of a plan.
const NAME_MAX: usize = 40;

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImportedAgent {
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) site: Option<String>,
}

/// Who meets whom, by place among the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImportedMembers {
    pub(super) from: Vec<usize>,
    pub(super) to: Option<Vec<usize>>,
    pub(super) except: BTreeSet<(usize, usize)>,
    /// Those of `from` measure, and are not measured.
    pub(super) one_way: bool,
}

/// Agents by one name.
#[derive(Clone, Debug)]
pub(super) struct ImportedGroup {
    pub(super) name: String,
    pub(super) met: ImportedMembers,
}

/// A measurement between them.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) command: String,
    pub(super) every_s: u64,
    pub(super) takes_s: Option<u64>,
}

/// A name as plans have them: letters, digits, `-`, `_` and `.`, forty at the most.
pub(super) fn name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(NAME_MAX).collect();
    if name.is_empty() { "psconfig".to_owned() } else { name }
}

/// The name, with a number behind it where it is taken.
pub(super) fn unused<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let numbered = |count: usize| {
        let end = format!("-{count}");
        let room = name.len().min(NAME_MAX - end.len());
        format!("{}{end}", &name[..room])
    };
    let mut names = std::iter::once(name.to_owned()).chain((2..).map(numbered));
    names.find(|name| !known.contains(&name.as_str())).expect("numbers do not end")
}

/// The file. All names are plain (`name`), and commands are made of numbers and such names, so
/// that nothing has to be escaped.
pub(super) fn plan_toml(
    mesh: &str,
    agents: &[ImportedAgent],
    groups: &[ImportedGroup],
    tasks: &[Task],
    notes: &[String],
) -> String {
    let mut text = String::from("# From a template of psConfig. What has no counterpart:\n");
    for note in notes {
        let _ = writeln!(text, "#   {note}");
    }
    if notes.is_empty() {
        text.push_str("#   nothing\n");
    }
    let _ = write!(text, "mesh = \"{mesh}\"\nrevision = 1\nmargin = \"2s\"\n");
    for ImportedAgent { name, address, site } in agents {
        let _ = write!(text, "\n[[agent]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        site.iter().for_each(|site| {
            let _ = writeln!(text, "site = \"{site}\"");
        });
    }
    for ImportedGroup { name, met } in groups {
        let list = |of: &[usize]| {
            let names: Vec<String> =
                of.iter().map(|at| format!("\"{}\"", agents[*at].name)).collect();
            names.join(", ")
        };
        let _ = write!(text, "\n[[group]]\nname = \"{name}\"\nagents = [{}]\n", list(&met.from));
        if let Some(to) = &met.to {
            let _ = writeln!(text, "to = [{}]", list(to));
        }
        if !met.except.is_empty() {
            let pairs = met.except.iter().map(|(from, to)| format!("[{}]", list(&[*from, *to])));
            let _ = writeln!(text, "except = [{}]", pairs.collect::<Vec<_>>().join(", "));
        }
    }
    for Task { name, group, command, every_s, takes_s } in tasks {
        let _ = write!(
            text,
            "\n[[task]]\nname = \"{name}\"\ngroup = \"{group}\"\nrun = \"{command}\"\n\
             every = \"{every_s}s\"\n"
        );
        takes_s.iter().for_each(|takes| {
            let _ = writeln!(text, "takes = \"{takes}s\"");
        });
        let one_way = groups.iter().any(|it| it.name == *group && it.met.one_way);
        if one_way {
            text.push_str("ways = \"one\"\n");
        }
    }
    text
}
