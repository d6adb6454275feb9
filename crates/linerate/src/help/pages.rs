//! A page for each command: the flags that `-h` shows, examples, related pages. Help, man pages and
//! the test that parses every example read this table.

use super::nested_pages::{
    CHECK, POLICY, POLICY_CHECK, POLICY_EXPLAIN, POLICY_PRUNE, POLICY_TOKEN, RUN, SCHEDULE, STATUS,
};
use super::page::HelpPage;

/// All pages except those of nested commands.
pub(crate) const PAGES: &[HelpPage] = &[
    HelpPage {
        command: "",
        shown: &[],
        examples: &[
            ("linerate serve", "on host B: what tests are made against"),
            ("linerate test B", "survey the path from here to B"),
            ("linerate tcp B", "10 s of TCP to B"),
            ("linerate bench --demo", "benchmark a virtual router on this host"),
        ],
        see: &["ip(8)", "tcp(7)", "iperf3(1)", "ping(8)"],
    },
    HelpPage {
        command: "tcp",
        shown: &[
            "port",
            "via",
            "time",
            "parallel",
            "reverse",
            "bidir",
            "bitrate",
            "window",
            "congestion",
            "omit",
            "json",
            "quiet",
        ],
        examples: &[
            ("linerate tcp B", "10 s from here to B, where linerate serve runs"),
            ("linerate tcp B -R -t 30 -O 2", "30 s from B to here, slow start left out"),
            ("linerate tcp B -P 4 -C cubic -w 4M", "4 streams, congestion control, window"),
            ("linerate tcp B -n 1GB --json", "send 10^9 bytes, print the record"),
            ("linerate tcp B --via iperf3", "to a server of iperf3"),
            ("linerate tcp B --probes 100 --probe-dscp 46", "delay under load, of class EF"),
            ("linerate tcp B --link 1g", "with the ceiling of 1 Gbit/s Ethernet"),
            ("linerate tcp [2001:db8::1]:5210 --dscp 46", "an address with a port; marked EF"),
        ],
        see: &["serve", "udp", "test", "ceiling", "tcp(7)", "iperf3(1)"],
    },
    HelpPage {
        command: "udp",
        shown: &[
            "port", "via", "bitrate", "time", "length", "parallel", "reverse", "bidir", "search",
            "window", "json", "quiet",
        ],
        examples: &[
            ("linerate udp B -b 100M", "10 s at 100 Mbit/s: loss, jitter, goodput"),
            ("linerate udp B --search", "search for the capacity (RFC 9097)"),
            ("linerate udp B -R -b 1G -l 1400", "from B to here, datagrams of 1400 bytes"),
            ("linerate udp B -b 64k -l 160 --dscp 46 -t 60", "as a call with G.711 does"),
        ],
        see: &["serve", "tcp", "ping", "udp(7)", "iperf3(1)"],
    },
    HelpPage {
        command: "rrul",
        shown: &["port", "time", "idle", "probes", "congestion", "flent", "json", "quiet"],
        examples: &[
            ("linerate rrul B", "5 s at rest, 60 s loaded both ways: how late, and whose queue"),
            ("linerate rrul B -t 20s --flent b.flent.gz", "20 s of load, a file for flent"),
        ],
        see: &["tcp", "test", "serve", "export"],
    },
    HelpPage {
        command: "ping",
        shown: &[
            "count",
            "interval",
            "size",
            "flood",
            "deadline",
            "timeout",
            "bind",
            "dont-fragment",
            "dscp",
            "udp",
            "json",
            "quiet",
        ],
        examples: &[
            ("linerate ping HOST -c 10", "ten probes, one a second"),
            ("linerate ping HOST -f -c 10000", "flood: each as the last is answered"),
            ("linerate ping HOST -s 56,1472 -c 5", "two sizes in turn"),
            ("linerate ping HOST -s 1472 -M do -c 3", "does a packet of 1500 bytes pass whole?"),
            ("linerate ping B --udp -c 100 -i 10ms", "by UDP, to linerate serve"),
        ],
        see: &["stamp", "test", "serve", "ping(8)", "icmp(7)"],
    },
    HelpPage {
        command: "stamp",
        shown: &[
            "port", "count", "interval", "rate", "poisson", "size", "key", "deadline", "bind",
            "dscp", "json", "quiet",
        ],
        examples: &[
            ("linerate stamp ROUTER -c 100 -i 100ms", "delay and loss of each direction"),
            ("linerate stamp B --rate 50 --poisson", "50 a second at random times"),
            ("linerate stamp B --key FILE", "signed packets, as serve --stamp-key"),
            ("linerate stamp B:8620 -s 72,1472 -c 50", "another port, two sizes"),
        ],
        see: &["ping", "serve", "udp(7)"],
    },
    HelpPage {
        command: "trace",
        shown: &[
            "count", "interval", "timeout", "max-hops", "load", "reverse", "time", "icmp", "tcp",
            "bind", "json", "quiet",
        ],
        examples: &[
            ("linerate trace HOST", "hops, paths, sizes; needs no privilege"),
            ("linerate trace HOST -c 1000 -i 20ms", "where one packet in a hundred is lost"),
            ("linerate trace B --load", "where the queue stands; B runs linerate serve"),
            ("linerate trace B --load -R", "the same for the way back"),
            ("linerate trace B --back", "the way back too, as B traces it"),
            ("linerate trace HOST --tcp", "as a browser's connections travel; as root"),
            ("linerate trace HOST --flows 16", "which of several routers side by side loses"),
        ],
        see: &["ping", "test", "serve", "icmp(7)", "ip(7)"],
    },
    HelpPage {
        command: "serve",
        shown: &[
            "port",
            "bind",
            "one-off",
            "max-tests",
            "max-streams",
            "max-duration",
            "foreign",
            "log-level",
            "log",
        ],
        examples: &[
            ("linerate serve", "answer linerate, iperf3, iperf 2, nuttcp, ttcp"),
            ("linerate serve -p 6000 --foreign none", "another port, linerate alone"),
            ("linerate serve -B 192.0.2.1 --max-duration 60s", "one address, a minute a test"),
            ("linerate serve -1", "one test, then end"),
            ("linerate serve --stamp-port 8620", "reflect STAMP without a privilege"),
            ("linerate serve --policy policy.toml", "whom to let in: linerate policy"),
            ("linerate serve --log json", "an object a line for each test"),
        ],
        see: &["tcp", "udp", "test", "stamp", "policy", "doctor", "iperf3(1)"],
    },
    HelpPage {
        command: "test",
        shown: &["port", "time", "within", "count", "congestion", "json", "quiet", "name"],
        examples: &[
            ("linerate test B", "survey the path in 35 s"),
            ("linerate test B -t 5s", "5 s a TCP test, however long it takes"),
            ("linerate test B --within 15s --json", "what fits in 15 s, as JSON"),
            ("linerate test B --save-path b.toml", "the path as probed, to emulate it"),
        ],
        see: &["tcp", "udp", "ping", "serve"],
    },
    HelpPage {
        command: "bench",
        shown: &[
            "demo", "device", "tests", "sizes", "quick", "rfc2544", "dual", "filters", "study",
            "dry-run", "report",
        ],
        examples: &[
            ("linerate bench eth1 eth2 --quick", "a device between two interfaces"),
            ("linerate bench --demo", "a virtual router, about a minute"),
            ("linerate bench --device bridge --quick", "the kernel's bridge on this host"),
            ("linerate bench eth1 eth2 --sizes 64,1518 --dual", "two sizes, both directions"),
            ("linerate bench eth1 eth2 --rfc2544 --dry-run", "what RFC 2544 takes, not run"),
            ("linerate bench --resume", "go on with the last run that was stopped"),
        ],
        see: &["study", "report", "doctor", "ethtool(8)"],
    },
    HelpPage {
        command: "conform",
        shown: &[],
        examples: &[
            ("linerate conform FILE.pcap --token-bucket rate=10M,burst=20kB", "a capture"),
            ("linerate conform -i eth0 -t 10s --token-bucket rate=1M,burst=3000", "live"),
            ("linerate conform FILE.pcap --gcra pcr=1000,cdvt=1ms --cells llcsnap", "ATM cells"),
        ],
        see: &["ceiling", "bench", "tcpdump(1)", "pcap(3PCAP)"],
    },
    HelpPage {
        command: "ceiling",
        shown: &[
            "link",
            "encap",
            "rtt",
            "window",
            "loss",
            "congestion",
            "parallel",
            "transfer",
            "measured",
            "all-links",
            "json",
        ],
        examples: &[
            ("linerate ceiling --link 1g --rtt 21ms", "what TCP can reach, and with which window"),
            ("linerate ceiling --link oc12 --carrier aal5-llcsnap --rtt 45ms", "an OC-12 with ATM"),
            ("linerate ceiling --link 10g --encap vlan,vxlan --mtu 9000", "encapsulations"),
            ("linerate ceiling --all-links", "frame rates of all speeds"),
        ],
        see: &["tcp", "path simulate", "study published"],
    },
    HelpPage {
        command: "lab",
        shown: &[],
        examples: &[
            ("linerate lab run cable --on a -- ping -c 1 10.0.1.2", "a command in a network"),
            ("linerate lab check cable", "the map of a built-in topology"),
        ],
        see: &["study", "path run", "ip-netns(8)"],
    },
    HelpPage {
        command: "lab run",
        shown: &[],
        examples: &[
            ("linerate lab run router", "keep it until Ctrl-C"),
            ("linerate lab run cable --on a -- linerate ping 10.0.1.2 -c 3", "run and remove"),
        ],
        see: &["path run", "study run", "ip-netns(8)"],
    },
    HelpPage {
        command: "lab shell",
        shown: &[],
        examples: &[
            ("linerate lab shell a", "a shell on host a"),
            ("linerate lab shell a -- ip route", "one command there"),
        ],
        see: &["ip-netns(8)"],
    },
    HelpPage {
        command: "lab check",
        shown: &[],
        examples: &[
            ("linerate lab check oc3", "a built-in topology"),
            ("linerate lab check my.toml", "your own"),
        ],
        see: &["study check"],
    },
    HelpPage {
        command: "lab bank",
        shown: &[],
        examples: &[
            ("linerate lab bank list", "the scenarios, with the values drawn for them"),
            ("linerate lab bank run --only loss", "measure and score some of them"),
        ],
        see: &["explain", "lab"],
    },
    HelpPage {
        command: "lab bank list",
        shown: &[],
        examples: &[
            ("linerate lab bank list --only policer", "by name, family or cause"),
            ("linerate lab bank list --half other --seed 7", "one half, with other values"),
        ],
        see: &["lab bank run"],
    },
    HelpPage {
        command: "lab bank run",
        shown: &[],
        examples: &[
            ("linerate lab bank run --only loss --report loss.html", "a page of these paths"),
            ("linerate lab bank run --half development --save DIR", "keep the cases for replay"),
        ],
        see: &["explain", "lab bank replay"],
    },
    HelpPage {
        command: "lab bank replay",
        shown: &[],
        examples: &[
            ("linerate lab bank replay DIR", "score stored cases again"),
            ("linerate lab bank replay DIR --markdown", "the scores as Markdown"),
        ],
        see: &["explain", "lab bank run"],
    },
    HelpPage {
        command: "path",
        shown: &[],
        examples: &[
            ("linerate path run --rate 50M --delay 10ms", "between two interfaces, live"),
            ("linerate path simulate --rate 50M --delay 10ms", "TCP over it, in virtual time"),
        ],
        see: &["lab", "ceiling", "tc-netem(8)"],
    },
    HelpPage {
        command: "path run",
        shown: &[
            "plan", "rate", "link", "delay", "jitter", "loss", "buffer", "queue", "ends", "time",
        ],
        examples: &[
            ("linerate path run --rate 50M --delay 10ms", "until Ctrl-C"),
            ("linerate path run --rate 50M -- ping -c 4 198.18.0.1", "run and remove"),
            ("linerate path run --link oc12-atm --delay 22.5ms --loss 1e-4", "a lossy OC-12"),
            ("linerate path run --rate 1G --ends a:eth9,b:eth9", "between two ip netns"),
        ],
        see: &["path simulate", "lab run", "tc-netem(8)", "ip-netns(8)"],
    },
    HelpPage {
        command: "path simulate",
        shown: &[
            "plan",
            "rate",
            "link",
            "delay",
            "loss",
            "buffer",
            "queue",
            "flows",
            "time",
            "tcp",
            "congestion",
            "svg",
        ],
        examples: &[
            ("linerate path simulate --rate 10G --delay 50ms -t 20s", "one flow"),
            ("linerate path simulate --link oc12 --delay 22.5ms --tcp 1999", "as in 1999"),
            ("linerate path simulate --rate 1G --delay 5ms --flows 10 --runs 20", "20 seeds"),
        ],
        see: &["path run", "ceiling"],
    },
    HelpPage {
        command: "path check",
        shown: &[],
        examples: &[
            ("linerate path check", "a million packets a check"),
            ("linerate path check -c 10000 --seed 7", "fewer, of another seed"),
        ],
        see: &["path run"],
    },
    HelpPage {
        command: "study",
        shown: &[],
        examples: &[
            ("linerate study list", "what there is"),
            ("linerate study run pren --report DIR", "measure, write the report"),
        ],
        see: &["lab", "bench", "report"],
    },
    HelpPage {
        command: "study list",
        shown: &[],
        examples: &[
            ("linerate study list", "built-in studies and stored runs"),
            ("linerate study list --store FILE.db", "runs of another store"),
        ],
        see: &["history"],
    },
    HelpPage {
        command: "study show",
        shown: &[],
        examples: &[
            ("linerate study show pren", "its measurements and duration"),
            ("linerate study show pren --toml", "its file, to begin your own with"),
        ],
        see: &["study run"],
    },
    HelpPage {
        command: "study check",
        shown: &[],
        examples: &[
            ("linerate study check my.toml", "before a night's run"),
            ("linerate study check studies/nap.toml", "one of the source tree"),
        ],
        see: &["study run"],
    },
    HelpPage {
        command: "study run",
        shown: &[],
        examples: &[
            ("linerate study run pren --report DIR", "measure, write the report"),
            ("linerate study run --resume", "go on where the last run stopped"),
            ("linerate study run oc12 --repetitions 1", "a first look"),
        ],
        see: &["study list", "report", "lab run"],
    },
    HelpPage {
        command: "study published",
        shown: &[],
        examples: &[
            ("linerate study published", "tables of 1990 to 2004"),
            ("linerate study published pren --csv", "those of one study"),
        ],
        see: &["ceiling"],
    },
    HelpPage {
        command: "study milestones",
        shown: &[],
        examples: &[
            ("linerate study milestones --mine", "with your best TCP result"),
            ("linerate study milestones --add lab=9.4G --svg DIR", "with another's figure"),
        ],
        see: &["history"],
    },
    HelpPage {
        command: "report",
        shown: &[],
        examples: &[
            ("linerate report", "the newest result"),
            ("linerate report @-2 --html page.html", "the one before, as a page"),
            ("linerate report --run last --all DIR", "a study's run in all formats"),
        ],
        see: &["history", "study run"],
    },
    SCHEDULE,
    CHECK,
    RUN,
    STATUS,
    HelpPage {
        command: "history",
        shown: &[
            "limit", "kind", "host", "name", "tag", "since", "until", "failed", "study", "run",
            "all", "json", "csv", "store",
        ],
        examples: &[
            ("linerate history", "the newest 20 results"),
            ("linerate history --kind udp --host B --since 2d", "UDP with B, two days"),
            ("linerate history -n 5 --failed", "the newest 5 that did not end well"),
            ("linerate history --csv", "for a spreadsheet"),
        ],
        see: &["report", "diff", "export"],
    },
    HelpPage {
        command: "compare",
        shown: &["tcp", "reverse", "udp", "rounds", "count", "size", "within", "json"],
        examples: &[
            ("linerate compare 10.0.0.1 10.0.0.2", "which answers sooner, and by how much"),
            ("linerate compare --tcp b,cc=cubic b,cc=bbr", "two congestion controls on one path"),
            ("linerate compare b b,dscp=46", "does the path favour expedited forwarding?"),
            ("linerate compare b,family=4 b,family=6", "IPv4 and IPv6"),
            (
                "linerate compare --lab switch router filters",
                "what forwarding costs on this machine",
            ),
            ("linerate compare @-2 @-1", "two stored results, by their samples"),
            ("linerate compare --tcp -R b b,streams=4", "one stream and four, from the server"),
        ],
        see: &["ping", "tcp", "diff"],
    },
    HelpPage {
        command: "explain",
        shown: &[],
        examples: &[
            ("linerate explain", "the newest result: what limited it, what to do"),
            ("linerate explain before --json", "a result by its --name, for a script"),
            (
                "linerate explain --target 1G@21ms",
                "would this path carry that, as part of a longer one?",
            ),
            ("linerate explain result.json", "a record in a file"),
        ],
        see: &["report", "tcp", "test"],
    },
    HelpPage {
        command: "diff",
        shown: &[],
        examples: &[
            ("linerate diff", "the newest result with the one before"),
            ("linerate diff @-3 @-1", "two of the last three"),
            ("linerate diff before after", "results by their --name"),
        ],
        see: &["history", "report"],
    },
    HelpPage {
        command: "export",
        shown: &[],
        examples: &[
            ("linerate export --kind tcp -o tcp.json", "whole records of TCP"),
            ("linerate export --since 30d --format csv", "a month as CSV"),
            ("linerate export --format flent -n 1 -o .", "the newest result as a file of flent"),
        ],
        see: &["history", "report"],
    },
    HelpPage {
        command: "doctor",
        shown: &[],
        examples: &[
            ("linerate doctor", "what is off, and the line that mends it"),
            ("linerate doctor --json", "for a program"),
        ],
        see: &["serve", "bench", "sysctl(8)", "ethtool(8)"],
    },
    POLICY,
    POLICY_CHECK,
    POLICY_EXPLAIN,
    POLICY_PRUNE,
    POLICY_TOKEN,
    HelpPage {
        command: "doctor clock",
        shown: &[],
        examples: &[
            ("linerate doctor clock", "steps, cost of a reading, late sleeps"),
            ("linerate doctor clock --json", "for a program"),
        ],
        see: &["ping", "compare", "clock_gettime(2)"],
    },
    HelpPage {
        command: "generate",
        shown: &[],
        examples: &[
            ("linerate generate completions bash > /etc/bash_completion.d/linerate", "bash"),
            ("linerate generate man /usr/local/share/man/man1", "man pages"),
        ],
        see: &[],
    },
    HelpPage {
        command: "generate completions",
        shown: &[],
        examples: &[
            ("linerate generate completions bash > /etc/bash_completion.d/linerate", "bash"),
            ("linerate generate completions zsh > ~/.zfunc/_linerate", "zsh"),
            (
                "linerate generate completions fish > ~/.config/fish/completions/linerate.fish",
                "fish",
            ),
        ],
        see: &["bash(1)"],
    },
    HelpPage {
        command: "generate man",
        shown: &[],
        examples: &[
            ("linerate generate man /usr/local/share/man/man1", "for all users"),
            ("linerate generate man ~/.local/share/man/man1", "for this user"),
        ],
        see: &["man(1)"],
    },
    HelpPage {
        command: "generate schema",
        shown: &[],
        examples: &[
            ("linerate generate schema", "of a record"),
            ("linerate generate schema study", "of a study's file"),
        ],
        see: &["report"],
    },
    HelpPage {
        command: "generate flags",
        shown: &[],
        examples: &[
            ("linerate generate flags", "every long flag with its text"),
            ("linerate generate flags | grep window", "those that speak of windows"),
        ],
        see: &[],
    },
    HelpPage {
        command: "iperf3",
        shown: &[],
        examples: &[
            ("linerate iperf3 -c B", "iperf3's words and output"),
            ("linerate iperf3 -s", "its server"),
            ("linerate iperf3 -c B -u -b 100M -J", "UDP, its JSON"),
        ],
        see: &["tcp", "udp", "iperf3(1)"],
    },
    HelpPage {
        command: "iperf",
        shown: &[],
        examples: &[
            ("linerate iperf -c B", "iperf 2's words and output"),
            ("linerate iperf -s -u", "its server, UDP"),
        ],
        see: &["tcp", "udp", "iperf(1)"],
    },
    HelpPage {
        command: "nuttcp",
        shown: &[],
        examples: &[
            ("linerate nuttcp B", "nuttcp's words and output"),
            ("linerate nuttcp -S", "its server"),
        ],
        see: &["tcp", "udp", "nuttcp(8)"],
    },
    HelpPage {
        command: "ttcp",
        shown: &[],
        examples: &[
            ("linerate ttcp -r -s", "receive and discard"),
            ("linerate ttcp -t -s B", "send a pattern to B"),
        ],
        see: &["tcp"],
    },
];
