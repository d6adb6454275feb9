//! The commands by what they are for: `linerate -h` lists them so.

/// The groups that `-h` puts on one line each.
const MORE_DELAY: &str = "Delay by standard probes";
const THEORY: &str = "Theory, contracts, comparing, writing";
const THIS_HOST: &str = "Hosts and this program";
const OTHER_PROGRAMS: &str = "Other programs' command lines";

/// True when `-h` puts this group on one line.
pub(super) fn is_in_line(group: &str) -> bool {
    [MORE_DELAY, THEORY, THIS_HOST, OTHER_PROGRAMS].contains(&group)
}

/// The commands, grouped by their purpose.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Between two hosts", &["serve", "test", "tcp", "udp", "ping", "trace", "compare"]),
    (MORE_DELAY, &["rrul", "stamp"]),
    ("A router, switch or bridge", &["bench"]),
    ("Emulated paths and networks", &["path", "lab", "study"]),
    ("Over months", &["schedule"]),
    ("Results", &["explain", "history", "report"]),
    (THEORY, &["ceiling", "conform", "diff", "export"]),
    (THIS_HOST, &["doctor", "policy", "mesh", "agent", "config", "generate"]),
    (OTHER_PROGRAMS, &["iperf3", "iperf", "nuttcp", "ttcp"]),
];
