//! The pages of commands that have commands of their own, in the table of all.

use super::page::HelpPage;

pub(super) const SCHEDULE: HelpPage = HelpPage {
    command: "schedule",
    shown: &[],
    examples: &[
        ("linerate schedule check my.toml", "what the day will be, and the month's volume"),
        ("linerate schedule run my.toml", "measure until Ctrl-C or SIGTERM"),
    ],
    see: &["history", "explain", "serve"],
};

pub(super) const CHECK: HelpPage = HelpPage {
    command: "schedule check",
    shown: &[],
    examples: &[
        ("linerate schedule check my.toml", "the runs of 24 h and the volume of 31 days"),
        ("linerate schedule check my.toml --json", "for other programs"),
        ("linerate schedule check my.toml --all", "each run, however many"),
    ],
    see: &["schedule run"],
};

pub(super) const RUN: HelpPage = HelpPage {
    command: "schedule run",
    shown: &[],
    examples: &[
        ("linerate schedule run my.toml", "measure until Ctrl-C or SIGTERM"),
        ("linerate schedule run my.toml --for 10m --store try.db", "try a plan"),
    ],
    see: &["schedule check", "schedule status"],
};

pub(super) const STATUS: HelpPage = HelpPage {
    command: "schedule status",
    shown: &[],
    examples: &[
        ("linerate schedule status my.toml", "the last 24 h; exit code 1: in alert"),
        ("linerate schedule status home --last 30d --html home.html", "a month as a page"),
        ("linerate schedule status home --json", "every value, for other programs"),
    ],
    see: &["schedule run", "history", "explain"],
};

pub(super) const POLICY: HelpPage = HelpPage {
    command: "policy",
    shown: &[],
    examples: &[
        ("linerate policy check policy.toml", "would a server start with it"),
        ("linerate policy explain policy.toml --from 192.0.2.7", "which rule decides"),
    ],
    see: &["serve"],
};

pub(super) const POLICY_CHECK: HelpPage = HelpPage {
    command: "policy check",
    shown: &[],
    examples: &[
        ("linerate policy check policy.toml", "exit code 0, or the line that is wrong"),
        ("linerate policy check /etc/linerate/policy.toml", "that of the system service"),
    ],
    see: &["policy explain", "serve"],
};

pub(super) const POLICY_PRUNE: HelpPage = HelpPage {
    command: "policy prune",
    shown: &[],
    examples: &[
        ("linerate policy prune policy.toml --dry-run", "how many results would go"),
        (
            "linerate policy prune policy.toml --store /var/lib/linerate-serve/results.db",
            "a server's",
        ),
    ],
    see: &["policy check", "history"],
};

pub(super) const POLICY_EXPLAIN: HelpPage = HelpPage {
    command: "policy explain",
    shown: &[],
    examples: &[
        ("linerate policy explain policy.toml --from 192.0.2.7", "which rule decides"),
        (
            "linerate policy explain policy.toml --from 192.0.2.7 --measure-to 198.51.100.1",
            "may it measure from here to there",
        ),
        (
            "linerate policy explain policy.toml --from 192.0.2.7 --test udp --rate 1G",
            "and a flood",
        ),
    ],
    see: &["policy check", "serve"],
};

pub(super) const POLICY_TOKEN: HelpPage = HelpPage {
    command: "policy token",
    shown: &[],
    examples: &[
        ("linerate policy token --name noc", "a secret, and the lines of the policy for it"),
        ("linerate policy token --name guest --expires 2027-01-31", "for a time"),
    ],
    see: &["policy check", "serve"],
};
