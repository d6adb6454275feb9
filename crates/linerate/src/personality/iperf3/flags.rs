//! The flags of iperf3 3.21 (and of builds with SCTP and multipath TCP) as a table: what getopt
//! reads, what help and man page say, and at which end each belongs.

use super::super::getopt::{Known, Takes};

/// End at which a flag is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagSide {
    /// For a client or a server.
    Both,
    /// For a server only, with `-s`.
    Server,
    /// For a client only, with `-c`.
    Client,
}

/// A flag of iperf3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    letter: Option<char>,
    long: &'static str,
    /// Name of its value: empty for none; with `=` before it the value may be left out.
    value: &'static str,
    /// End that the flag belongs to.
    pub(super) side: FlagSide,
    /// One line; another name of a flag has none.
    help: &'static str,
    /// Name of the flag in the program, its long name.
    pub(super) name: &'static str,
}

impl Known for Flag {
    fn letter(&self) -> Option<char> {
        self.letter
    }

    fn long_name(&self) -> &str {
        self.long
    }

    fn expected_value(&self) -> Takes {
        match self.value.chars().next() {
            None => Takes::Nothing,
            Some('=') => Takes::Maybe,
            Some(_) => Takes::Value,
        }
    }

    fn is_alias_of(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn flag_row(
    letter: Option<char>,
    long: &'static str,
    value: &'static str,
    side: FlagSide,
    help: &'static str,
) -> Flag {
    Flag { letter, long, value, side, help, name: long }
}

const fn other_name(
    letter: Option<char>,
    long: &'static str,
    name: &'static str,
    value: &'static str,
    side: FlagSide,
) -> Flag {
    Flag { letter, long, value, side, help: "", name }
}

use FlagSide::{Both, Client, Server};

/// Every flag, in the order of the help.
pub(super) const FLAGS: &[Flag] = &[
    flag_row(Some('p'), "port", "N", Both, "Server port"),
    flag_row(
        Some('f'),
        "format",
        "LETTER",
        Both,
        "Unit of rates: k, m, g, t bits; K, M, G, T bytes",
    ),
    flag_row(
        Some('i'),
        "interval",
        "SECONDS",
        Both,
        "Seconds between reports, 0.1 to 60; 0 for one",
    ),
    flag_row(Some('I'), "pidfile", "FILE", Both, "Write the process ID to a file"),
    flag_row(Some('F'), "file", "FILE", Both, "Send a file, or write received data to it"),
    flag_row(Some('A'), "affinity", "N[,M]", Both, "Pin to CPU N, and the server to CPU M"),
    flag_row(Some('B'), "bind", "ADDRESS[%DEVICE]", Both, "Local address and interface to bind to"),
    flag_row(None, "bind-dev", "DEVICE", Both, "Bind to this interface (SO_BINDTODEVICE)"),
    flag_row(Some('V'), "verbose", "", Both, "Print more details"),
    flag_row(Some('J'), "json", "", Both, "Print one JSON document"),
    flag_row(None, "json-stream", "", Both, "Print one JSON object per line during the test"),
    flag_row(None, "json-stream-full-output", "", Both, "Print the document, too"),
    flag_row(None, "logfile", "FILE", Both, "Append all output to this file"),
    flag_row(None, "forceflush", "", Both, "Accepted; each line is always flushed"),
    flag_row(
        None,
        "timestamps",
        "=FORMAT",
        Both,
        "Prefix lines with the time (UTC), as strftime(3)",
    ),
    flag_row(None, "rcv-timeout", "MS", Both, "Give up after this long without data"),
    flag_row(None, "snd-timeout", "MS", Both, "Accepted; a lost peer is always detected"),
    flag_row(None, "cntl-ka", "=IDLE/INTERVAL/COUNT", Both, "Accepted; keepalive is always on"),
    flag_row(Some('m'), "mptcp", "", Both, "Multipath TCP (RFC 8684)"),
    flag_row(None, "debug", "=LEVEL", Both, "Print more details, like -V"),
    other_name(Some('d'), "", "debug", "", Both),
    flag_row(Some('v'), "version", "", Both, "Print the version"),
    flag_row(Some('h'), "help", "", Both, "Print this help"),
    // '-s' and '-c' themselves exclude each other with a message of their own.
    flag_row(Some('s'), "server", "", Both, "Run as server"),
    flag_row(Some('D'), "daemon", "", Server, "Run in the background"),
    flag_row(Some('1'), "one-off", "", Server, "Exit after one test"),
    flag_row(None, "server-bitrate-limit", "RATE[/SECONDS]", Server, "Maximum rate of tests"),
    flag_row(None, "idle-timeout", "SECONDS", Server, "With -1, exit if idle this long"),
    flag_row(None, "server-max-duration", "SECONDS", Server, "Maximum duration of a test"),
    flag_row(
        None,
        "rsa-private-key-path",
        "FILE",
        Server,
        "RSA private key to decrypt credentials",
    ),
    flag_row(None, "authorized-users-path", "FILE", Server, "User file: NAME,SHA-256 per line"),
    flag_row(None, "time-skew-threshold", "SECONDS", Server, "Maximum clock difference, 10"),
    flag_row(None, "use-pkcs1-padding", "", Both, "RSA padding before 3.17; servers accept both"),
    flag_row(Some('c'), "client", "HOST[%DEVICE]", Both, "Run as client of this server"),
    flag_row(Some('u'), "udp", "", Client, "Use UDP; 1 Mbit/s unless -b is given"),
    flag_row(None, "connect-timeout", "MS", Client, "Connection timeout"),
    flag_row(
        Some('b'),
        "bitrate",
        "RATE[/BURST]",
        Client,
        "Rate per stream in bit/s; 0 = unlimited",
    ),
    other_name(None, "bandwidth", "bitrate", "RATE[/BURST]", Client),
    flag_row(None, "pacing-timer", "MICROSECONDS", Client, "Accepted; pacing needs no timer step"),
    flag_row(None, "fq-rate", "RATE", Client, "Rate per stream, paced by the kernel, in bit/s"),
    other_name(None, "no-fq-socket-pacing", "no-fq-socket-pacing", "", Client),
    flag_row(Some('t'), "time", "SECONDS", Client, "Test duration, 10; 0 = until Ctrl-C"),
    flag_row(Some('n'), "bytes", "SIZE", Client, "Bytes to send instead of -t (64K = 65,536)"),
    flag_row(Some('k'), "blockcount", "N", Client, "Blocks to send instead of -t"),
    flag_row(Some('l'), "length", "SIZE", Client, "Block size; 128K, UDP: one packet"),
    flag_row(None, "cport", "PORT", Both, "First local port of the client's streams"),
    flag_row(Some('P'), "parallel", "N", Client, "Number of parallel streams, at most 128"),
    flag_row(Some('R'), "reverse", "", Client, "Reverse: the server sends"),
    flag_row(None, "bidir", "", Client, "Bidirectional: both ends send"),
    flag_row(Some('w'), "window", "SIZE", Client, "Socket buffer size"),
    flag_row(Some('C'), "congestion", "NAME", Client, "Congestion control of the sender"),
    other_name(None, "linux-congestion", "congestion", "NAME", Client),
    flag_row(Some('M'), "set-mss", "BYTES", Client, "Maximum segment size"),
    flag_row(Some('N'), "no-delay", "", Client, "Disable Nagle's algorithm (TCP_NODELAY)"),
    flag_row(Some('4'), "version4", "", Both, "Use IPv4"),
    flag_row(Some('6'), "version6", "", Both, "Use IPv6"),
    flag_row(Some('S'), "tos", "N", Client, "Type of service octet: 32, 0x20, 040"),
    flag_row(None, "dscp", "N", Client, "Code point: 0 to 63, or a name such as ef, cs1, af11"),
    flag_row(Some('L'), "flowlabel", "N", Client, "IPv6 flow label"),
    flag_row(Some('Z'), "zerocopy", "", Client, "Send from the page cache without copying"),
    flag_row(None, "skip-rx-copy", "", Client, "Accepted; data is not copied where that is faster"),
    flag_row(Some('O'), "omit", "SECONDS", Client, "Omit these seconds at the start"),
    flag_row(Some('T'), "title", "TEXT", Client, "Prefix every line with this"),
    flag_row(None, "extra-data", "TEXT", Client, "Text to include in the JSON of both ends"),
    flag_row(None, "get-server-output", "", Client, "Print the server's output, too"),
    flag_row(None, "udp-counters-64bit", "", Client, "Accepted; datagrams are numbered in 64 bits"),
    flag_row(None, "gsro", "", Client, "Accepted; GSO and GRO are used if available"),
    flag_row(None, "repeating-payload", "", Client, "Accepted; payload always repeats"),
    flag_row(None, "dont-fragment", "", Client, "Set the don't-fragment flag (IPv4)"),
    flag_row(None, "username", "NAME", Client, "User name; password: IPERF3_PASSWORD or prompt"),
    flag_row(None, "rsa-public-key-path", "FILE", Client, "RSA public key of the server"),
    other_name(None, "sctp", "sctp", "", Client),
    other_name(None, "nstreams", "nstreams", "N", Client),
    other_name(Some('X'), "xbind", "xbind", "ADDRESS", Both),
];

/// The help of a side under its heading.
const SECTIONS: [(&str, FlagSide); 3] =
    [("Server or client:", Both), ("Server:", Server), ("Client:", Client)];

/// Hint that iperf3 prints after a usage error.
pub(super) const HINT: &str =
    "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.";

/// The answer to `--help`.
pub(super) fn help_text() -> String {
    let mut text = "Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] \
                    [-v|--version]\n"
        .to_owned();
    for (heading, side) in SECTIONS {
        text.push_str(&format!("\n{heading}\n"));
        for flag in FLAGS.iter().filter(|flag| flag.side == side && !flag.help.is_empty()) {
            let letter =
                flag.letter.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
            let value = match flag.expected_value() {
                Takes::Nothing => String::new(),
                Takes::Value => format!(" {}", flag.value),
                Takes::Maybe => format!("[{}]", flag.value),
            };
            let name = format!("{letter}--{}{value}", flag.long);
            text.push_str(&format!("  {name:<40} {}\n", flag.help));
        }
    }
    text
}

/// The command with its flags, for the man page and for completions.
pub(crate) fn described(command: clap::Command) -> clap::Command {
    let mut fresh = clap::Command::new("iperf3").disable_version_flag(true);
    if let Some(about) = command.get_about() {
        fresh = fresh.about(about.clone());
    }
    for flag in FLAGS.iter().filter(|flag| !flag.help.is_empty() && flag.name != "help") {
        let mut argument = clap::Arg::new(flag.name).long(flag.long).help(flag.help);
        if let Some(letter) = flag.letter {
            argument = argument.short(letter);
        }
        argument = match flag.expected_value() {
            Takes::Nothing => argument.action(clap::ArgAction::SetTrue),
            Takes::Value => argument.value_name(flag.value),
            Takes::Maybe => {
                let name = flag.value.trim_start_matches('=');
                argument.value_name(name).num_args(0..=1).require_equals(true)
            }
        };
        let others = FLAGS.iter().filter(|other| other.help.is_empty() && other.name == flag.name);
        for other in others.filter(|other| !other.long.is_empty()) {
            argument = argument.visible_alias(other.long);
        }
        fresh = match flag.side {
            Both => fresh.arg(argument),
            Server => fresh.arg(argument.help_heading("Server")),
            Client => fresh.arg(argument.help_heading("Client")),
        };
    }
    fresh
}
