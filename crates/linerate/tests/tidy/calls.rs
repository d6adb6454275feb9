//! Calls that only some places may make: clocks, sleeps, prints, I/O, `unsafe` (ARCHITECTURE,
//! "Invariants"). Code under `#[cfg(test)]` and test programs are left to clippy.

use crate::source::{Source, has_word};
use crate::tree::in_crate;

/// Words that are barred outside of `allowed`, and what to do instead.
struct Bar {
    words: &'static [&'static str],
    /// Starts of paths that may use them.
    allowed: &'static [&'static str],
    /// Starts of paths that are held to it; empty means all.
    held: &'static [&'static str],
    instead: &'static str,
}

const PURE: &[&str] =
    &["crates/linerate-core/src/", "crates/linerate-proto/src/", "crates/linerate-report/src/"];

const BARS: &[Bar] = &[
    Bar {
        words: &["Instant", "SystemTime", "UNIX_EPOCH", "clock_gettime"],
        allowed: &["crates/linerate-sys/src/"],
        held: &[],
        instead: "take a MonoTime or WallTime from linerate_sys::clock, or as an argument",
    },
    Bar {
        words: &["thread::sleep", "nanosleep", "park_timeout"],
        allowed: &["crates/linerate-sys/src/"],
        held: &[],
        instead: "use linerate_sys::clock::sleep_until",
    },
    Bar {
        words: &["print!", "println!", "eprint!", "eprintln!", "io::stdout", "io::stderr"],
        // Build scripts speak to cargo so.
        allowed: &[
            "crates/linerate/src/output.rs",
            "crates/linerate/build.rs",
            "crates/linerate-server/build.rs",
        ],
        held: &[],
        instead: "return the text; the program prints it with crate::output",
    },
    Bar {
        words: &[
            "std::fs",
            "std::env",
            "std::process",
            "std::thread",
            "thread::spawn",
            "thread::scope",
            "File",
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "Command",
        ],
        allowed: &[],
        held: PURE,
        instead: "this crate does no I/O: take the bytes, give the bytes, let the caller move them",
    },
    Bar {
        words: &["unsafe", "unsafe_code"],
        allowed: &["crates/linerate-sys/src/"],
        held: &[],
        instead: "put the call into linerate-sys behind a safe, typed face",
    },
    Bar {
        words: &["process::exit", "process::abort"],
        allowed: &["crates/linerate-sys/src/"],
        held: &[],
        instead: "return an Outcome, so that laboratories are taken down and records are kept",
    },
];

/// Barred calls of one file.
pub(crate) fn check(source: &Source) -> Vec<String> {
    let path = &source.path;
    let starts = |list: &[&str]| list.iter().any(|start| path.starts_with(start));
    let bars =
        BARS.iter().filter(|bar| !starts(bar.allowed) && (bar.held.is_empty() || starts(bar.held)));
    let mut wrong = Vec::new();
    for bar in bars {
        for (number, line) in source.product_lines() {
            for word in bar.words.iter().filter(|word| is_use(line, word)) {
                wrong.push(format!("{path}:{number}: {word} is barred here; {}", bar.instead));
            }
        }
    }
    wrong
}

/// Decisions by the text of a failure: texts are for people, and reworded.
pub(crate) fn read_texts(source: &Source) -> Vec<String> {
    let texts = ["reason", "attempt", "next_step", "advice", "failure.to_string()"];
    let looks = ["contains(", "starts_with(", "ends_with("];
    let all = || texts.iter().flat_map(|text| looks.map(|look| format!("{text}.{look}")));
    let reads = |line: &str| all().any(|read| has_word(line, &read));
    let lines = source.product_lines().filter(|(_, line)| reads(line));
    lines
        .map(|(number, _)| {
            let path = &source.path;
            format!("{path}:{number}: decides by words for people; give the failure a FailureCode")
        })
        .collect()
}

/// A lint level is not a use of what it forbids.
fn is_use(line: &str, word: &str) -> bool {
    has_word(line, word) && !line.trim_start().starts_with("#![forbid(")
}

/// Every `unsafe` of linerate-sys with no `SAFETY:` or `# Safety` in the comment before it.
pub(crate) fn unexplained_unsafe(source: &Source) -> Vec<String> {
    if !in_crate(&source.path, "linerate-sys") {
        return Vec::new();
    }
    let comments: Vec<&str> = source.comments.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let uses = (0..code.len()).filter(|at| has_word(code[*at], "unsafe"));
    uses.filter(|at| !is_explained(&code, &comments, *at))
        .map(|at| {
            format!(
                "{}:{}: unsafe without a reason; say before it in a // SAFETY: line who keeps it \
                 sound",
                source.path,
                at + 1
            )
        })
        .collect()
}

/// Whether the comment lines right above the statement of line `at` give the reason. Lines of the
/// same statement and attributes may lie between.
fn is_explained(code: &[&str], comments: &[&str], at: usize) -> bool {
    let gives = |comment: &str| comment.contains("SAFETY:") || comment.contains("# Safety");
    if gives(comments[at]) {
        return true;
    }
    for above in (0..at).rev().take(30) {
        if gives(comments[above]) {
            return true;
        }
        let line = code[above].trim();
        let ends_a_statement = line.ends_with([';', '{', '}']);
        if ends_a_statement || (line.is_empty() && comments[above].trim().is_empty()) {
            return false;
        }
    }
    false
}

fn found(path: &str, text: &str) -> usize {
    check(&Source::new(path, text)).len()
}

#[test]
fn a_decision_by_the_text_of_a_failure_is_found() {
    let wrong = |text: &str| read_texts(&Source::new("crates/linerate/src/a.rs", text)).len();
    assert_eq!(wrong("fn a() -> bool {\n    failure.reason.starts_with(\"nothing\")\n}\n"), 1);
    assert_eq!(wrong("fn a() -> bool {\n    reason.contains(\"closed\")\n}\n"), 1);
    assert_eq!(wrong("fn a() -> bool {\n    line.contains(\"closed\")\n}\n"), 0);
    let test = "#[cfg(test)]\nmod tests {\n    fn a() { assert!(reason.contains(\"x\")) }\n}\n";
    assert_eq!(wrong(test), 0);
}

#[test]
fn a_clock_read_outside_sys_is_found() {
    let text = "fn a() { let t = std::time::Instant::now(); }";
    assert_eq!(found("crates/linerate-engine/src/a.rs", text), 1);
    assert_eq!(found("crates/linerate-sys/src/a.rs", text), 0);
    assert_eq!(found("crates/linerate-engine/src/a.rs", "// no Instant\nlet a = \"Instant\";"), 0);
}

#[test]
fn a_print_or_an_exit_outside_its_place_is_found() {
    assert_eq!(found("crates/linerate-engine/src/a.rs", "fn a() { println!(\"\"); }"), 1);
    assert_eq!(found("crates/linerate/src/command/a.rs", "fn a() { std::io::stdout(); }"), 1);
    assert_eq!(found("crates/linerate/src/output.rs", "fn a() { std::io::stdout(); }"), 0);
    assert_eq!(found("crates/linerate/src/a.rs", "fn a() { std::process::exit(1); }"), 1);
    assert_eq!(found("crates/linerate/src/a.rs", "child.stdout(Stdio::null());"), 0);
}

#[test]
fn input_and_output_in_a_pure_crate_are_found() {
    for text in ["use std::fs;", "std::thread::spawn(f);", "let s: TcpStream;"] {
        assert!(found("crates/linerate-report/src/a.rs", text) >= 1, "{text}");
        assert_eq!(found("crates/linerate-engine/src/a.rs", text), 0, "{text}");
    }
    assert_eq!(found("crates/linerate-core/src/a.rs", "thread::sleep(x);"), 1);
    assert_eq!(found("crates/linerate-core/src/a.rs", "#[cfg(test)]\nuse std::fs;"), 0);
}

#[test]
fn an_unsafe_block_outside_sys_or_without_a_reason_is_found() {
    assert_eq!(found("crates/linerate-engine/src/a.rs", "unsafe { a() }"), 1);
    assert_eq!(found("crates/linerate-core/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
    let bare =
        |text: &str| unexplained_unsafe(&Source::new("crates/linerate-sys/src/a.rs", text)).len();
    assert_eq!(bare("fn a() {\n    let x =\n        unsafe { b() };\n}"), 1);
    assert_eq!(
        bare("fn a() {\n    // SAFETY: b lives.\n    let x =\n        unsafe { b() };\n}"),
        0
    );
    assert_eq!(bare("// SAFETY: old.\nlet x = 1;\nunsafe { b() };"), 1);
    assert_eq!(bare("/// # Safety\n/// Mind it.\n#[inline]\nunsafe fn a() {}"), 0);
}
