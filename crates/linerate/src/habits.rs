//! Flags that users of iperf3, iperf 2, nuttcp and ping type by habit. One that means the same as
//! a flag of ours is read as that flag; any other is answered with ours, or with where to look.
//!
//! They come into play only when clap refuses a flag, so that no accepted command line changes its
//! meaning. Whole command lines of other programs are `linerate iperf3 ...` and its like.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Translation of a flag of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Flag without effect: the program does so in any case.
    Dropped,
    /// Its value is an argument here: `-c HOST`.
    Argument,
    /// Ours without a value.
    Flag(&'static str),
    /// Ours with its value.
    Value(&'static str),
    /// The whole octet of IP's type of service, of which ours takes the upper six bits.
    TypeOfService,
    /// The flag to use instead.
    Hint(&'static str),
}

use Habit::{Argument, Dropped, Flag, Hint, TypeOfService, Value};

/// A command, the other programs' names of a flag, and the translation.
type Row = (&'static str, &'static [&'static str], Habit);

const FLOW: &str = "tcp udp";

/// The table; the first row that fits counts. A row may be for several commands.
const HABITS: &[Row] = &[
    ("linerate", &["-c", "--client"], Hint("as in: linerate tcp HOST, linerate udp HOST")),
    ("linerate", &["-s", "--server"], Hint("the server is 'linerate serve'")),
    ("linerate", &["-u", "--udp"], Hint("UDP is a command: linerate udp HOST")),
    // iperf3 and iperf 2.
    (FLOW, &["-c", "--client"], Argument),
    ("tcp", &["-u", "--udp"], Hint("UDP is a command: linerate udp HOST")),
    ("udp", &["-u", "--udp"], Dropped),
    (FLOW, &["-s", "--server"], Hint("the server is 'linerate serve'")),
    (FLOW, &["-V", "-e", "--enhanced"], Flag("--verbose")),
    (FLOW, &["-S", "--tos"], TypeOfService),
    (FLOW, &["-T", "--title"], Value("--name")),
    (FLOW, &["--bandwidth"], Value("--bitrate")),
    (FLOW, &["--len"], Value("--length")),
    (FLOW, &["--num"], Value("--bytes")),
    (FLOW, &["--nodelay"], Flag("--no-delay")),
    (FLOW, &["--mss"], Value("--set-mss")),
    (FLOW, &["--linux-congestion"], Value("--congestion")),
    (FLOW, &["--json-stream"], Flag("--jsonl")),
    (FLOW, &["--get-server-output", "--forceflush", "--udp-counters-64bit"], Dropped),
    (FLOW, &["-d", "--dualtest", "--full-duplex"], Hint("both directions at once: --bidir")),
    (FLOW, &["-r", "--tradeoff"], Hint("one direction after the other: run it again with -R")),
    (
        FLOW,
        &["-f", "--format"],
        Hint("rates have the unit that fits them, always of 1000; --json has bit/s"),
    ),
    (
        FLOW,
        &["-y", "--reportstyle"],
        Hint("values for programs: --json, or 'linerate report ID --csv FILE'"),
    ),
    (FLOW, &["-F", "--file"], Hint("data is made, not read; -Z sends from the page cache")),
    (
        FLOW,
        &["-X", "--xbind", "--bind-dev", "--cport"],
        Hint("-B takes the local address; 'linerate iperf3' knows that flag"),
    ),
    (FLOW, &["--timestamps"], Hint("for the time of each line, pipe it through ts (moreutils)")),
    (FLOW, &["--logfile"], Hint("send the output to a file by the shell, or use -o FILE")),
    (FLOW, &["--fq-rate"], Hint("-b paces each stream")),
    (FLOW, &["--rcv-timeout", "--snd-timeout"], Hint("--connect-timeout limits connecting")),
    (FLOW, &["-D", "--daemon"], Hint("the server is 'linerate serve'; a service manager keeps it")),
    ("udp", &["-C", "-M", "-N", "-Z"], Hint("that flag is of TCP: linerate tcp HOST")),
    // Their servers.
    ("serve", &["-s", "--server"], Dropped),
    ("serve", &["-u", "--udp"], Dropped),
    ("serve", &["-V", "--verbose", "-d", "--debug"], Value("--log-level=debug")),
    (
        "serve",
        &["-D", "--daemon", "-I", "--pidfile"],
        Hint("it stays in the foreground; a service manager, or '&', keeps it"),
    ),
    (
        "serve",
        &["-f", "--format", "-i", "--interval"],
        Hint("the client prints intervals; the server logs one line a test"),
    ),
    ("serve", &["--logfile"], Hint("the log is standard error: 2> FILE")),
    (
        "serve",
        &["--idle-timeout", "--server-bitrate-limit", "--server-max-duration"],
        Hint("--max-duration limits a test; 'linerate iperf3 -s' knows that flag"),
    ),
    // ping(8).
    ("ping", &["-n"], Dropped),
    ("ping", &["-O"], Dropped),
    ("ping", &["-3"], Dropped),
    ("ping", &["-A"], Flag("--flood")),
    ("ping", &["-Q"], TypeOfService),
    ("ping", &["-D"], Hint("for the time of each line, pipe it through ts (moreutils)")),
    ("ping", &["-V"], Hint("as in: linerate --version")),
    ("ping", &["-l"], Hint("this many probes in flight: --window N")),
    (
        "ping",
        &["-a", "-b", "-d", "-U", "-R", "-r", "-L", "-T", "-m", "-S", "-N", "-H", "-C", "-e", "-F"],
        Hint("only ping(8) has that flag"),
    ),
];

/// Reads a command line, with flags of other programs as ours where they mean the same.
/// # Errors
/// What clap refuses, and the line that tells our flag where clap knows nothing better.
pub(crate) fn read<T>(
    mut words: Vec<OsString>,
    parse: impl Fn(&[OsString]) -> Result<T, clap::Error>,
    asked: impl Fn(&[OsString]) -> String,
) -> Result<T, (clap::Error, Option<String>)> {
    // Each round takes one foreign flag away.
    for _ in 0..=words.len() {
        let error = match parse(&words) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let command = asked(&words);
        let Some((flag, habit)) = unknown(&error).and_then(|flag| {
            let habit = habit_of(command.rsplit(' ').next().unwrap_or_default(), &flag)?;
            Some((flag, habit))
        }) else {
            return Err((error, None));
        };
        match rewritten(&words, &flag, habit) {
            Ok(next) => words = next,
            Err(hint) => {
                let short = command.strip_prefix("linerate ").unwrap_or(&command);
                let said = match habit {
                    Hint(_) => format!("{short} has no {flag}: {hint}"),
                    _ => format!("{short} {flag}: {hint}"),
                };
                let line = format!("{said}; see '{command} --help'");
                return Err((error, Some(line)));
            }
        }
    }
    parse(&words).map_err(|error| (error, None))
}

/// Name of a flag that clap does not know.
fn unknown(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => {
            Some(flag.split('=').next().unwrap_or(flag).to_owned())
        }
        _ => None,
    }
}

fn habit_of(command: &str, flag: &str) -> Option<Habit> {
    let mut rows = HABITS.iter();
    let row = rows.find(|(commands, flags, _)| {
        commands.split(' ').any(|known| known == command) && flags.contains(&flag)
    });
    row.map(|(_, _, habit)| *habit)
}

/// The command line with one flag in our words.
/// # Errors
/// The hint where it has none.
fn rewritten(words: &[OsString], flag: &str, habit: Habit) -> Result<Vec<OsString>, String> {
    if let Hint(hint) = habit {
        return Err(hint.to_owned());
    }
    let lost = || "write it apart from other flags".to_owned();
    let (at, before, attached) = place_of_flag(words, flag).ok_or_else(lost)?;
    let takes_value = matches!(habit, Argument | TypeOfService)
        || matches!(habit, Value(ours) if !ours.contains('='));
    let mut rest = words[at + 1..].iter().cloned();
    // What is attached to a letter without a value are further letters.
    let further = (!takes_value && !attached.is_empty()).then(|| format!("-{attached}"));
    let value = match (takes_value, attached.is_empty()) {
        (false, _) => None,
        (true, false) => Some(OsString::from(attached)),
        (true, true) => Some(rest.next().ok_or("it needs a value")?),
    };
    let ours = match (habit, value) {
        (Argument, Some(value)) => vec![value],
        (Flag(ours) | Value(ours), None) => vec![ours.into()],
        (Value(ours), Some(value)) => vec![ours.into(), value],
        (TypeOfService, Some(value)) => {
            vec!["--dscp".into(), dscp_from_octet(&value.to_string_lossy())?.into()]
        }
        _ => Vec::new(),
    };
    let before = (!before.is_empty()).then(|| OsString::from(format!("-{before}")));
    let head = words[..at].iter().cloned().chain(before).chain(ours);
    Ok(head.chain(further.map(OsString::from)).chain(rest).collect())
}

/// Place of a flag: the index of its word, the letters before it, and the value attached to it.
fn place_of_flag(words: &[OsString], flag: &str) -> Option<(usize, String, String)> {
    let place_in = |at: usize, word: &OsString| {
        let word = word.to_str()?;
        if flag.starts_with("--") {
            let attached = word.strip_prefix(flag)?;
            let value = attached.strip_prefix('=').unwrap_or(attached);
            (attached.is_empty() || attached.starts_with('='))
                .then(|| (at, "".into(), value.into()))
        } else {
            let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
            let (before, attached) = letters.split_once(flag.strip_prefix('-')?)?;
            Some((at, before.to_owned(), attached.to_owned()))
        }
    };
    let mut places = words.iter().enumerate().skip(1).take_while(|(_, word)| *word != "--");
    places.find_map(|(at, word)| place_in(at, word))
}

/// The code point of an octet as iperf3 and ping read it: decimal, `0x` hexadecimal, `0` octal.
fn dscp_from_octet(text: &str) -> Result<String, String> {
    let number = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hex), _) => u8::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u8::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    match number {
        Ok(octet) if octet & 3 == 0 => Ok((octet >> 2).to_string()),
        Ok(octet) => Err(format!(
            "its two lowest bits are ECN, which the kernel sets; --dscp {} is the rest",
            octet >> 2
        )),
        Err(_) => Err(format!("{text:?} is no octet; --dscp takes 0 to 63")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::LinerateCli;

    fn understood(line: &str) -> Result<String, String> {
        let words = std::iter::once("linerate").chain(line.split(' ')).map(OsString::from);
        let asked = |words: &[OsString]| crate::help::command_path(&LinerateCli::command(), words);
        let read = read(words.collect(), |words| LinerateCli::try_parse_from(words), asked);
        read.map(|cli| format!("{cli:?}"))
            .map_err(|(error, hint)| hint.unwrap_or_else(|| error.to_string()))
    }

    #[test]
    fn a_flag_that_means_the_same_is_read_as_ours() {
        for (theirs, ours) in [
            ("tcp -c h", "tcp h"),
            ("tcp --client=h -t 5", "tcp h -t 5"),
            ("tcp -ch -P2", "tcp h -P2"),
            ("tcp -RVc h", "tcp -R --verbose h"),
            ("tcp -c h -V -i 2", "tcp h --verbose -i 2"),
            // The octet 0xb8 is 184, expedited forwarding: 46 (RFC 3246).
            ("tcp h -S 184", "tcp h --dscp 46"),
            ("tcp h -S 0xb8", "tcp h --dscp 46"),
            ("tcp h --tos=0270", "tcp h --dscp 46"),
            ("ping h -Q 0x20", "ping h --dscp 8"),
            ("tcp h -T night", "tcp h --name night"),
            ("tcp h --title=night", "tcp h --name night"),
            ("tcp h --json-stream", "tcp h --jsonl"),
            ("udp -u -c h -b 10M", "udp h -b 10M"),
            ("udp h --bandwidth 5M", "udp h -b 5M"),
            ("ping -n -O -c 3 h", "ping -c 3 h"),
            ("ping -nc 3 h", "ping -c 3 h"),
            ("ping -A h", "ping -f h"),
            ("serve -s -u", "serve"),
            ("serve -V", "serve --log-level=debug"),
        ] {
            assert_eq!(understood(theirs), understood(ours), "{theirs}");
            assert!(understood(ours).is_ok(), "{ours}");
        }
    }

    #[test]
    fn any_other_is_answered_with_ours() {
        for (theirs, ours) in [
            ("-c h", "linerate tcp HOST"),
            ("-s", "linerate serve"),
            ("tcp -u h", "linerate udp HOST"),
            ("tcp -c h -u", "linerate udp HOST"),
            ("tcp h -f m", "--json has bit/s"),
            ("tcp h -d", "--bidir"),
            ("tcp h -S 185", "--dscp 46"),
            ("tcp h -S 300", "0 to 63"),
            ("tcp h -S", "tcp -S: it needs a value"),
            ("tcp -s", "linerate serve"),
            ("udp h -C cubic", "linerate tcp HOST"),
            ("ping h -D", "through ts"),
            ("ping h -l 3", "--window"),
            ("serve -D", "service manager"),
        ] {
            let line = understood(theirs).expect_err(theirs);
            assert!(line.contains(ours), "{theirs}: {line}");
            assert!(line.contains("--help'") && line.lines().count() == 1, "{theirs}: {line}");
        }
    }

    #[test]
    fn a_flag_of_nobody_is_what_clap_says_and_values_stay_values() {
        assert!(understood("tcp h --no-such").expect_err("nobody's").contains("--no-such"));
        assert!(understood("report -c 1").expect_err("nobody's").contains("-c"));
    }

    #[test]
    fn no_habit_is_a_flag_of_ours() {
        let root = LinerateCli::command();
        for (commands, flags, habit) in HABITS {
            for name in commands.split(' ').filter(|name| *name != "linerate") {
                let command = root.find_subcommand(name).expect("a command");
                let has = |flag: &str| {
                    let mut all = command.get_arguments();
                    all.any(|arg| match flag.strip_prefix("--") {
                        Some(long) => arg.get_long() == Some(long),
                        None => {
                            let letters = arg.get_short_and_visible_aliases().unwrap_or_default();
                            letters.contains(&flag.chars().nth(1).unwrap_or_default())
                        }
                    })
                };
                if let Flag(ours) | Value(ours) = habit {
                    let ours = ours.split('=').next().unwrap_or(ours);
                    // --set-mss, --no-delay are of TCP.
                    assert!(name == "udp" || has(ours), "{name} has no {ours}");
                }
                let idle = |flag: &&&str| name == "tcp" || **flag != "-u";
                let known: Vec<_> = flags.iter().filter(idle).filter(|flag| has(flag)).collect();
                assert!(known.is_empty(), "{name} has {known:?} itself: the row never counts");
            }
        }
    }
}
