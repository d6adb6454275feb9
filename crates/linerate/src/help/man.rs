//! Man pages: clap's, with the sections that man-pages(7) asks for.

use std::io::{self, Write};

use clap::Command;

use super::{all_pages, find_page, under_headings};
use crate::codes::CODES;

/// Files of the program, by the XDG Base Directory Specification.
pub(crate) const FILES: [(&str, &str); 3] = [
    (
        "~/.local/share/linerate/results.db",
        "The store of results, an SQLite database; in $XDG_DATA_HOME/linerate where that is set.",
    ),
    ("~/.local/share/linerate/reports/", "Reports of studies and benchmarks."),
    (
        "~/.config/linerate/config.toml",
        "Hosts by name with what is known of the paths to them; in $XDG_CONFIG_HOME/linerate where \
         that is set.",
    ),
];

/// Variables that the program reads.
pub(crate) const ENVIRONMENT: [(&str, &str); 7] = [
    ("LINERATE_STORE", "The store to use, as --store names one."),
    ("LINERATE_STAMP_KEY", "Key of linerate stamp, where no --key names a file."),
    ("LINERATE_CONFIG", "The configuration file, instead of ~/.config/linerate/config.toml."),
    ("XDG_CONFIG_HOME", "The directory that holds linerate's, instead of ~/.config."),
    ("XDG_DATA_HOME", "The directory that holds linerate's, instead of ~/.local/share."),
    ("NO_COLOR", "Set to anything: no colours, unless --color always is given (no-color.org)."),
    ("COLUMNS", "Columns that text output may take, instead of those of the terminal."),
];

/// Writes the page of a command, which has its full name.
pub(crate) fn write(path: &str, command: Command, out: &mut dyn Write) -> io::Result<()> {
    let man = clap_mangen::Man::new(under_headings(command))
        .source(format!("linerate {}", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    man.render_subcommands_section(out)?;
    sections(path, out)
}

fn sections(path: &str, out: &mut dyn Write) -> io::Result<()> {
    let page = find_page(path);
    writeln!(out, ".SH EXAMPLES")?;
    for (line, what) in page.examples {
        writeln!(out, ".TP\n{}\n.nf\n{}\n.fi", quoted(&sentence(what)), quoted(line))?;
    }
    writeln!(out, ".SH \"EXIT STATUS\"")?;
    for (code, meaning, advice) in CODES {
        let both = format!("{meaning} {advice}");
        writeln!(out, ".TP\n.B {code}\n{}", quoted(both.trim_end()))?;
    }
    for (heading, rows) in [("FILES", &FILES[..]), ("ENVIRONMENT", &ENVIRONMENT[..])] {
        writeln!(out, ".SH {heading}")?;
        for (name, what) in rows {
            writeln!(out, ".TP\n.B {}\n{}", quoted(name), quoted(what))?;
        }
    }
    writeln!(out, ".SH \"SEE ALSO\"\n{}", see_also(path))
}

/// Pages that the page names, the command above and those below it; the program's page at last.
fn see_also(path: &str) -> String {
    let named = find_page(path).see.iter().map(|name| name.replace(' ', "-"));
    let own = path.replace("linerate ", "");
    let below = all_pages().map(|page| page.command).filter(|name| {
        let parent = name.rsplit_once(' ').map_or("", |(parent, _)| parent);
        let root = path == "linerate";
        !name.is_empty() && if root { parent.is_empty() } else { parent == own }
    });
    let above = own.rsplit_once(' ').map(|(parent, _)| parent.to_owned());
    let ours = |name: String| format!("linerate-{}", name.replace(' ', "-"));
    let named = named.map(|name| if name.ends_with(')') { name } else { ours(name) });
    let mut all: Vec<String> = named.chain(above.map(ours)).collect();
    all.extend(below.map(|name| ours(name.to_owned())));
    if path != "linerate" {
        all.push("linerate".to_owned());
    }
    let with_section = |name: String| match name.split_once('(') {
        Some((name, section)) => format!("\\fB{}\\fR({section}", quoted(name)),
        None => format!("\\fB{}\\fR(1)", quoted(&name)),
    };
    all.into_iter().map(with_section).collect::<Vec<_>>().join(",\n")
}

/// A sentence for a page, from the text behind a `#` in help.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}:", letters.as_str())
}

/// Text that roff takes as it is (groff_man_style(7), "Portability").
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga");
    let text = text.replace('~', "\\(ti").replace('^', "\\(ha");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
