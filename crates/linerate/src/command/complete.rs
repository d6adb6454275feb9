//! Completion scripts: clap_complete's, in which arguments that name something of the user's own
//! (a host, a result, a run, a study) ask the program for it when TAB is pressed.
//!
//! An asked program answers at once or with nothing: a store that another process holds, or a slow
//! file system, must not stop somebody's typing. A busy host's wait for a processor is neither.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use linerate_core::record::{ReceiveWith, SendWith, Via};
use linerate_engine::study::SHIPPED;
use linerate_store::{CompletionKind, HistoryFilter, Store, default_path};
use linerate_sys::thread;

use super::lab;
use crate::config::Config;

/// Kind of candidates that a completion script asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CandidateKind {
    /// Hosts of the configuration and of the history.
    Hosts,
    /// The newest results: `@-1` ..., identifiers, names.
    Results,
    /// Names of results.
    Names,
    /// Study runs.
    Runs,
    /// Studies: built in, and those that have runs.
    Studies,
}

/// Looks at whoever reads the candidates: a shell gets none once so many found it waiting for a
/// file or another process, 0.3 s in all.
const LOOKS_MAX: usize = 15;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Results that are offered by `@-N` and by their IDs.
const RESULTS: usize = 9;

/// The candidates as text, one a line, some with a tab and a description; none when they cannot be
/// read.
pub(crate) fn candidates(what: CandidateKind) -> String {
    let found = in_time(move || candidates_of(what)).unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    for (word, about) in found {
        // A shell splits and expands what it is offered: only words that stay as they are.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:@%/+,".contains(c);
        if word.is_empty() || !word.chars().all(is_plain) {
            continue;
        }
        let about: String = about.chars().filter(|c| !c.is_control()).collect();
        lines.push(if about.is_empty() { word } else { format!("{word}\t{about}") });
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The result of `read`; nothing where it waits for too long, but for a processor.
fn in_time<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (id_sender, id) = mpsc::channel();
    let (sender, receiver) = mpsc::channel();
    // It ends with the process.
    std::thread::spawn(move || {
        let _ = id_sender.send(thread::current_id());
        let _ = sender.send(read());
    });
    let reader = id.recv().ok()?;
    let mut looks_left = LOOKS_MAX;
    while looks_left > 0 {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(found) => return Some(found),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                looks_left -= usize::from(!thread::is_runnable(reader));
            }
        }
    }
    None
}

/// Candidates with their descriptions.
fn candidates_of(what: CandidateKind) -> Vec<(String, String)> {
    let store = default_path().and_then(|path| Store::open_for_lookup(&path)).ok();
    let known = |what| {
        store.as_ref().and_then(|store| store.completion_words(what).ok()).unwrap_or_default()
    };
    let mut words = match what {
        CandidateKind::Results => {
            let mut words = store.as_ref().map(results).unwrap_or_default();
            words.extend(without_descriptions(known(CompletionKind::Names)));
            words
        }
        CandidateKind::Hosts => {
            let config = Config::load().unwrap_or_default();
            let mut words = without_descriptions(config.host_names().map(str::to_owned).collect());
            words.extend(without_descriptions(known(CompletionKind::Hosts)));
            words
        }
        CandidateKind::Names => without_descriptions(known(CompletionKind::Names)),
        CandidateKind::Runs => without_descriptions(known(CompletionKind::Runs)),
        CandidateKind::Studies => {
            let mut words =
                without_descriptions(SHIPPED.iter().map(|study| study.name.to_owned()).collect());
            words.extend(without_descriptions(known(CompletionKind::Studies)));
            words
        }
    };
    let mut seen = std::collections::BTreeSet::new();
    words.retain(|(word, _)| seen.insert(word.clone()));
    words
}

fn without_descriptions(words: Vec<String>) -> Vec<(String, String)> {
    words.into_iter().map(|word| (word, String::new())).collect()
}

/// `@-1  tcp to b, 2026-11-22T10:00:00Z`, then the same by their IDs, as short as they stay apart.
fn results(store: &Store) -> Vec<(String, String)> {
    let entries = store.list_history(&HistoryFilter::default(), RESULTS).unwrap_or_default();
    let about = |entry: &linerate_store::HistoryEntry| {
        let of = entry.study.clone().filter(|_| entry.is_run());
        let host = entry.host.as_ref().map(|host| format!(" to {host}"));
        let at = crate::columns::to_the_second(&entry.started_at);
        format!("{}{}, {at}", of.as_ref().unwrap_or(&entry.kind), host.unwrap_or_default())
    };
    let ids = entries.iter().map(|entry| entry.id.as_str());
    let len = crate::columns::short_id_len(ids);
    let back = (1..).zip(&entries).map(|(back, entry)| (format!("@-{back}"), about(entry)));
    let id =
        |entry: &linerate_store::HistoryEntry| entry.id.get(..len).unwrap_or(&entry.id).to_owned();
    back.chain(entries.iter().map(|entry| (id(entry), about(entry)))).collect()
}

/// The script of a shell for the whole command.
pub(crate) fn script(shell: Shell, command: clap::Command) -> String {
    let mut script = Vec::new();
    let mut command = with_values(command, "");
    clap_complete::generate(shell, &mut command, "linerate", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => bash_script(&script),
        Shell::Zsh => zsh_script(&script),
        Shell::Fish => fish_script(&script),
        _ => ASKED.iter().fold(script.into_owned(), |script, (mark, _)| script.replace(mark, "")),
    }
}

/// Placeholders of candidates in a script, which asks for them by these names.
const ASKED: [(&str, &str); 5] = [
    ("ASK-HOSTS", "hosts"),
    ("ASK-RESULTS", "results"),
    ("ASK-NAMES", "names"),
    ("ASK-RUNS", "runs"),
    ("ASK-STUDIES", "studies"),
];

/// The bash script. bash splits words at `@`, `:` and `=`, too (COMP_WORDBREAKS, bash(1)), which
/// results and addresses have: the words are taken from the line, and the part of the last one that
/// bash has already is cut from the candidates.
fn bash_script(script: &str) -> String {
    let asking = ASKED.iter().fold(script.to_owned(), |script, (mark, what)| {
        script.replace(mark, &format!("$(_linerate_candidates {what})"))
    });
    asking.replace("complete -F _linerate ", "complete -F _linerate_words ")
        + r#"
_linerate_candidates() {
    command linerate generate candidates "$1" 2>/dev/null | cut -f 1
}

_linerate_words() {
    local line=${COMP_LINE:0:COMP_POINT} COMP_WORDS COMP_CWORD word
    read -ra COMP_WORDS <<<"$line"
    case $line in *[[:space:]]) COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    word=${COMP_WORDS[COMP_CWORD]}
    COMP_WORDS[0]=$1
    _linerate "$1" "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
    COMPREPLY=("${COMPREPLY[@]#"${word%"$2"}"}")
}
"#
}

/// The zsh script, in which candidates have descriptions and keep their order.
fn zsh_script(script: &str) -> String {
    let asking = ASKED.iter().fold(script.to_owned(), |script, (mark, what)| {
        script.replace(&format!("({mark})"), &format!("{{_linerate_candidates {what}}}"))
    });
    let function = r#"autoload -U is-at-least

_linerate_candidates() {
    local -a lines
    lines=("${(@f)$(command linerate generate candidates $1 2>/dev/null)}")
    lines=("${(@)lines//:/\\:}")
    lines=("${(@)${(@)lines:#}/$'\t'/:}")
    _describe -V $1 lines
}
"#;
    asking.replacen("autoload -U is-at-least\n", function, 1)
}

/// clap_complete's script for fish has the values of flags alone: those of arguments follow it.
fn fish_script(script: &str) -> String {
    let ask = |what: &str| format!("(command linerate generate candidates {what} 2>/dev/null)");
    let mut asking = ASKED.iter().fold(script.to_owned(), |script, (mark, what)| {
        script.replace(&format!("{mark}\\t''"), &ask(what)).replace(mark, &ask(what))
    });
    let studies: Vec<&str> = SHIPPED.iter().map(|study| study.name).collect();
    let mut offer = |command: &str, what: &str| {
        let when = format!("__fish_linerate_using_subcommand {command}");
        asking.push_str(&format!("complete -c linerate -n \"{when}\" -k -a \"{what}\"\n"));
    };
    ["tcp", "udp", "ping", "test", "rrul"].iter().for_each(|command| offer(command, &ask("hosts")));
    ["report", "diff"].iter().for_each(|command| offer(command, &ask("results")));
    offer("study; and __fish_seen_subcommand_from run show", &studies.join(" "));
    asking
}

/// The command with the values that a shell may offer where the program itself takes more: names
/// beside files, names of the user's results.
fn with_values(command: clap::Command, path: &str) -> clap::Command {
    let own = path.to_owned();
    let command = command.mut_args(|arg| match values(&own, arg.get_id().as_str()) {
        Some(values) => {
            let hint = ValueHint::Other;
            arg.value_parser(PossibleValuesParser::new(values)).value_hint(hint)
        }
        None => arg,
    });
    let children: Vec<String> =
        command.get_subcommands().map(|child| child.get_name().to_owned()).collect();
    children.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |child| with_values(child, &path))
    })
}

/// The values of an argument by the name of its command and its own.
fn values(command: &str, argument: &str) -> Option<Vec<&'static str>> {
    let vias = [Via::Iperf3, Via::Iperf2, Via::Nuttcp, Via::Ttcp].map(Via::name);
    Some(match (command, argument) {
        ("tcp" | "udp" | "ping" | "test" | "rrul" | "history" | "export", "host") => {
            vec!["ASK-HOSTS"]
        }
        ("report" | "diff", "id" | "first" | "second") => vec!["ASK-RESULTS"],
        ("history" | "export", "name") => vec!["ASK-NAMES"],
        ("history" | "export" | "report", "run") | ("study run" | "bench", "resume") => {
            vec!["ASK-RUNS"]
        }
        ("history" | "export", "study") => vec!["ASK-STUDIES"],
        ("study run" | "study show", "study" | "name") | ("bench", "plan" | "study") => {
            SHIPPED.iter().map(|study| study.name).collect()
        }
        ("tcp" | "udp", "via") => vias.to_vec(),
        ("tcp", "send_with") => SendWith::ALL.iter().map(|with| with.name()).collect(),
        ("tcp", "receive_with") => ReceiveWith::ALL.iter().map(|with| with.name()).collect(),
        ("tcp" | "test" | "rrul", "congestion") => vec!["bbr", "cubic", "reno"],
        ("lab run" | "lab check", "plan") => lab::SHIPPED.map(|(name, _)| name).to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_waits_is_left_behind_and_one_that_computes_is_not() {
        let (word, words) = mpsc::channel::<()>();
        assert_eq!(in_time(move || words.recv()), None);
        drop(word);
        // Longer than all looks take, on a busy host too.
        let computes = || {
            let begin = linerate_sys::clock::monotonic();
            let span = LOOK_EVERY * 2 * LOOKS_MAX as u32;
            while linerate_sys::clock::monotonic().duration_since(begin) < span {}
        };
        assert_eq!(in_time(computes), Some(()));
    }
}
