//! `iperf` as version 2.1.8 has it: `iperf -c host`, `iperf -s`, and both with `-u`.
//!
//! Left out: histograms, isochronous traffic, multicast, daemons, bounce-back as a client; the
//! spread of reads and what the kernel says of connections in enhanced reports.

mod client;
mod enhanced;
mod lines;
mod server;
mod udp_client;
mod udp_lines;
mod udp_server;

use std::net::IpAddr;

use linerate_core::record::{IpFamily, ServerPlan, TcpDirections, Via};
use linerate_engine::foreign::iperf2::TrustedNetwork;

use super::getopt::{self, Flag, ParsedWord};
use super::server_plan;
use crate::exit::Outcome;
use crate::output;

/// Letters that getopt_long would give to long flags without a letter of their own.
const FULL_DUPLEX: char = '\u{1}';
const TRIP_TIMES: char = '\u{2}';

const UDP_REVERSE_TO: char = '\u{4}';
/// Flags that change nothing here.
const IGNORED: char = '\u{5}';
const IGNORED_VALUE: char = '\u{6}';
/// Mark of flags that this program does not implement.
const MISSING: char = '\u{7}';
const MISSING_VALUE: char = '\u{8}';
const BOUNCE_BACK: char = '\u{e}';

const FLAGS: [Flag; 64] = [
    ('c', "client", true),
    ('s', "server", false),
    ('p', "port", true),
    ('t', "time", true),
    ('n', "num", true),
    ('i', "interval", true),
    ('l', "len", true),
    ('w', "window", true),
    ('P', "parallel", true),
    ('R', "reverse", false),
    ('d', "dualtest", false),
    ('r', "tradeoff", false),
    (FULL_DUPLEX, "full-duplex", false),
    (TRIP_TIMES, "trip-times", false),
    ('L', "listenport", true),
    ('f', "format", true),
    ('y', "reportstyle", true),
    ('N', "nodelay", false),
    ('o', "output", true),
    ('M', "mss", true),
    ('B', "bind", true),
    ('Z', "tcp-congestion", true),
    ('Z', "linux-congestion", true),
    ('b', "bandwidth", true),
    ('S', "tos", true),
    ('u', "udp", false),
    ('V', "ipv6_domain", false),
    ('V', "ipv6-domain", false),
    ('e', "enhanced", false),
    ('e', "enhancedreports", false),
    ('v', "version", false),
    ('h', "help", false),
    (UDP_REVERSE_TO, "udp-reverse-to", true),
    (BOUNCE_BACK, "bounceback", false),
    ('x', "reportexclude", true),
    ('m', "print_mss", false),
    ('C', "compatibility", false),
    ('X', "peer-detect", false),
    ('z', "realtime", false),
    ('1', "singleclient", false),
    ('U', "single_udp", false),
    ('T', "ttl", true),
    (IGNORED, "no-connect-sync", false),
    (IGNORED, "tcp-quickack", false),
    (IGNORED, "sum-dstip", false),
    (IGNORED_VALUE, "connect-retries", true),
    (IGNORED_VALUE, "tcp-write-prefetch", true),
    (IGNORED_VALUE, "permit-key-timeout", true),
    ('D', "daemon", false),
    ('F', "fileinput", true),
    ('I', "stdin", false),
    ('H', "ssm-host", true),
    (MISSING, "hide-ips", false),
    (MISSING, "sum-only", false),
    (MISSING, "connect-only", false),
    (MISSING, "no-udp-fin", false),
    (MISSING, "local-only", false),
    (MISSING, "histograms", false),
    (MISSING, "near-congestion", false),
    (MISSING_VALUE, "isochronous", true),
    (MISSING_VALUE, "fq-rate", true),
    (MISSING_VALUE, "permit-key", true),
    (MISSING_VALUE, "txstart-time", true),
    (MISSING_VALUE, "txdelay-time", true),
];

/// Hint that iperf prints after a usage error.
const USAGE_SHORT: &str = "\
Usage: iperf [-s|-c host] [options]
Try `iperf --help' for more information.";

const USAGE: &str = "\
Usage: iperf -s [-u] [-p port] [-w size] [-B address] [-t s] [-P clients] [-i s] [-f kmgKMGaA]
             [-y C] [-e] [--udp-reverse-to network[=rate]]
       iperf -c host [-u] [-p port] [-t s | -n size] [-i s] [-l size] [-w size] [-P n]
             [-R | -d | -r | --full-duplex] [-L port] [-b rate | -b n pps] [-N] [-M bytes]
             [-Z name] [-S tos] [-B address] [-f kmgKMGaA] [-y C] [-V] [-e] [--trip-times]
k, m, g are powers of 1000, K, M, G of 1024. The last of two flags counts.
-u -R is answered to clients of linerate, which prove their address, to this host, and to networks
that --udp-reverse-to names, because one forged datagram asks for it; at most 10m in all, or rate.
Taken without effect: -m -C -X -x -z -1 -U -T --no-connect-sync --tcp-quickack --sum-dstip
--connect-retries --tcp-write-prefetch";

/// Directions of data that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataWays {
    Forward,
    Reverse,
    FullDuplex,
    Dual,
    TradeOff,
}

/// Options of a command line.
#[derive(Clone, Debug, PartialEq)]
struct Iperf2Options {
    /// The server to connect to; none to be one.
    host: Option<String>,
    serves: bool,
    /// Time for which a server listens, and number of clients that it serves.
    serve_for: Option<std::time::Duration>,
    serve_clients: Option<u32>,
    port: u16,
    listen_port: Option<u16>,
    time_s: f64,
    bytes: Option<u64>,
    interval_s: Option<f64>,
    length: Option<u32>,
    window: Option<u64>,
    streams: u16,
    ways: DataWays,
    format: lines::RateFormat,
    csv: bool,
    nodelay: bool,
    mss: Option<u32>,
    bind: Option<IpAddr>,
    congestion_control: Option<String>,
    rate: Option<Iperf2Rate>,
    tos: u8,
    ipv6: bool,
    udp: bool,
    enhanced: bool,
    trip_times: bool,
    /// Networks whose clients may ask for `-u -R` without a check of their address.
    trusted: Vec<TrustedNetwork>,
}

/// Value of `-b`: bits or datagrams per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Iperf2Rate {
    BitsPerSec(u64),
    DatagramsPerSec(f64),
}

impl Iperf2Options {
    /// Format of the rows over UDP.
    const fn row_style(&self) -> udp_lines::Style {
        let (format, enhanced, csv) = (self.format, self.enhanced, self.csv);
        udp_lines::Style { format, enhanced, csv }
    }

    fn server_plan(&self) -> ServerPlan {
        let family = if self.ipv6 { IpFamily::V6 } else { IpFamily::V4 };
        let bind = self.bind.map(|address| address.to_string());
        let server = server_plan(Via::Iperf2, self.host.as_deref(), self.port, Some(family));
        ServerPlan { bind, ..server }
    }

    const fn directions(&self) -> TcpDirections {
        match self.ways {
            DataWays::Reverse => TcpDirections::Down,
            DataWays::FullDuplex => TcpDirections::Both,
            _ => TcpDirections::Up,
        }
    }

    /// Payload of a datagram: with its headers a packet of Ethernet.
    fn datagram_bytes(&self) -> u32 {
        self.length.unwrap_or(if self.ipv6 { 1450 } else { 1470 })
    }

    /// The pace in payload bit/s; none to send as fast as possible.
    fn rate_bps(&self) -> Option<u64> {
        match self.rate? {
            Iperf2Rate::BitsPerSec(rate) => Some(rate).filter(|rate| *rate > 0),
            Iperf2Rate::DatagramsPerSec(count) => {
                Some((count * f64::from(self.datagram_bytes()) * 8.0) as u64)
            }
        }
    }
}

impl Default for Iperf2Options {
    fn default() -> Self {
        Self {
            host: None,
            serves: false,
            serve_for: None,
            serve_clients: None,
            port: 5001,
            listen_port: None,
            time_s: 10.0,
            bytes: None,
            interval_s: None,
            length: None,
            window: None,
            streams: 1,
            ways: DataWays::Forward,
            format: lines::RateFormat::default(),
            csv: false,
            nodelay: false,
            mss: None,
            bind: None,
            congestion_control: None,
            rate: None,
            tos: 0,
            ipv6: false,
            udp: false,
            enhanced: false,
            trip_times: false,
            trusted: Vec::new(),
        }
    }
}

/// Runs the command line.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match read(words) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            output::print_line(&format!(
                "iperf version 2.1.8, by linerate {}",
                env!("CARGO_PKG_VERSION")
            ));
            output::print_line(USAGE);
            return Ok(0);
        }
        Err(mistake) => {
            // The original exits 0 after the same words; a run that fails never does that here.
            output::print_note(&format!("iperf: {mistake}\n{USAGE_SHORT}"));
            return Ok(1);
        }
    };
    let done = match (asked.serves, asked.udp) {
        (true, false) => server::run(&asked),
        (true, true) => udp_server::run(&asked),
        (false, false) => client::run(&asked),
        (false, true) => udp_client::run(&asked),
    };
    Ok(done.map_or_else(
        |failure| {
            output::print_note(&format!("iperf: {failure}"));
            1
        },
        |()| 0,
    ))
}

/// Reads the command line; none when it asks for help or the version.
fn read(words: &[String]) -> Result<Option<Iperf2Options>, String> {
    let mut asked = Iperf2Options::default();
    let (mut time, mut parallel) = (false, None);
    for word in getopt::parse(words, &FLAGS)? {
        let (letter, value) = match word {
            ParsedWord::Flag(letter, value) => (letter, value),
            ParsedWord::Operand(word) => {
                output::print_note(&format!("iperf: ignoring extra argument -- {word}"));
                continue;
            }
        };
        match letter {
            'v' | 'h' => return Ok(None),
            // The first of both decides.
            's' if asked.host.is_some() => continue,
            'c' if asked.serves => continue,
            't' => time = true,
            'P' => parallel = Some(getopt::number(letter, &value)?),
            _ => {}
        }
        set_option(&mut asked, letter, &value)?;
    }
    if !asked.serves && asked.host.is_none() {
        return Err("one of -s and -c is needed".to_owned());
    }
    if asked.serves {
        let span = std::time::Duration::try_from_secs_f64(asked.time_s).ok();
        asked.serve_for = span.filter(|_| time);
        asked.serve_clients = parallel.filter(|clients| *clients > 0);
    }
    Ok(Some(asked))
}

fn set_option(asked: &mut Iperf2Options, letter: char, value: &str) -> Result<(), String> {
    let seconds = || {
        let value: f64 = getopt::number(letter, value)?;
        let fits = (0.001..=1e6).contains(&value);
        if fits { Ok(value) } else { Err(format!("-{letter}: '{value}' is no time for a test")) }
    };
    match letter {
        'c' => asked.host = Some(value.to_owned()),
        's' => asked.serves = true,
        'p' => asked.port = getopt::number(letter, value)?,
        'L' => asked.listen_port = Some(getopt::number(letter, value)?),
        't' => asked.time_s = seconds()?,
        'i' if getopt::number::<f64>(letter, value)? == 0.0 => asked.interval_s = None,
        'i' => asked.interval_s = Some(seconds()?.max(0.01)),
        'n' => asked.bytes = Some(parse_bytes(letter, value)?),
        'l' => {
            let bytes = u32::try_from(parse_bytes(letter, value)?).ok().filter(|bytes| *bytes > 0);
            asked.length = Some(bytes.ok_or("-l: no size of a buffer")?);
        }
        'w' => asked.window = Some(parse_bytes(letter, value)?).filter(|bytes| *bytes > 0),
        'P' => asked.streams = getopt::number(letter, value)?,
        'R' => asked.ways = DataWays::Reverse,
        'd' => asked.ways = DataWays::Dual,
        'r' => asked.ways = DataWays::TradeOff,
        FULL_DUPLEX => asked.ways = DataWays::FullDuplex,
        'f' => {
            let format = value.chars().next().and_then(lines::RateFormat::from_letter);
            asked.format = format.ok_or("-f: one of a, k, m, g, A, K, M, G")?;
        }
        'y' if value.eq_ignore_ascii_case("c") => asked.csv = true,
        'y' => return Err("-y: only C is a style".to_owned()),
        'N' => asked.nodelay = true,
        'M' => asked.mss = Some(getopt::number(letter, value)?),
        'B' => {
            let address = value.split(['%', ':']).next().unwrap_or("").parse();
            let address = address.or_else(|_| value.parse());
            asked.bind = Some(address.map_err(|_| format!("-B: '{value}' is no address"))?);
        }
        'Z' => asked.congestion_control = Some(value.to_owned()),
        'b' => asked.rate = Some(parse_rate(value)?),
        'S' => asked.tos = service_type(value)?,
        'u' => asked.udp = true,
        'e' => asked.enhanced = true,
        TRIP_TIMES => asked.trip_times = true,
        UDP_REVERSE_TO => asked.trusted.push(value.parse()?),
        'o' => return Err("-o: send the output to a file by the shell".to_owned()),
        'D' => return Err("-D: start it in the background by the shell".to_owned()),
        BOUNCE_BACK => {
            return Err(
                "--bounceback: a server answers it, as a client use linerate ping".to_owned()
            );
        }
        'F' | 'I' | 'H' | MISSING | MISSING_VALUE => {
            return Err("an option of iperf that is not here, see --help".to_owned());
        }
        'V' => asked.ipv6 = true,
        _ => {}
    }
    Ok(())
}

/// A number with k, m, g, t for powers of 1000 or K, M, G, T for those of 1024 (iperf 2's manual;
/// 2.1.8 puts 8000 into the header for `-l 8k`).
fn parse_size(text: &str) -> Option<f64> {
    let decimal = text.ends_with(|last: char| last.is_ascii_lowercase());
    getopt::parse_size(text, decimal)
}

fn parse_bytes(letter: char, text: &str) -> Result<u64, String> {
    let value = parse_size(text).filter(|value| *value < 9e18);
    value.map(|value| value as u64).ok_or_else(|| format!("-{letter}: '{text}' is no size"))
}

/// Bits or datagrams a second; 0 is as fast as possible.
fn parse_rate(text: &str) -> Result<Iperf2Rate, String> {
    let wrong = || format!("-b: '{text}' is no rate");
    if let Some(count) = text.strip_suffix("pps") {
        let count = parse_size(count.trim()).filter(|count| (1.0..1e12).contains(count));
        return Ok(Iperf2Rate::DatagramsPerSec(count.ok_or_else(wrong)?));
    }
    let rate = parse_size(text)
        .filter(|rate| *rate < 1e18)
        .map(|rate| Iperf2Rate::BitsPerSec(rate as u64));
    rate.ok_or_else(wrong)
}

/// The octet of the type of service: its number, or the name of a code point, which are the upper
/// six bits of it (RFC 2474, RFC 2597, RFC 3246).
fn service_type(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let digits = |prefix| name.strip_prefix(prefix).and_then(|rest| rest.parse::<u8>().ok());
    let code_point = match (digits("cs"), digits("af")) {
        (Some(class @ 0..=7), _) => Some(class << 3),
        (_, Some(af)) if (1..=4).contains(&(af / 10)) && (1..=3).contains(&(af % 10)) => {
            Some((af / 10) << 3 | (af % 10) << 1)
        }
        _ if name == "ef" => Some(46),
        _ => None,
    };
    let octet = match name.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => name.parse().ok().or_else(|| code_point.map(|point| point << 2)),
    };
    octet.ok_or_else(|| format!("-S: '{text}' is no type of service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_options(line: &str) -> Result<Option<Iperf2Options>, String> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_that_people_write_are_read() {
        let host = Some("h".to_owned());
        let cases = [
            ("-c h", Iperf2Options { host: host.clone(), ..Iperf2Options::default() }),
            ("-c h -i 0", Iperf2Options { host: host.clone(), ..Iperf2Options::default() }),
            (
                "-c h -t30 -i1 -w 512k -P4",
                Iperf2Options {
                    host: host.clone(),
                    time_s: 30.0,
                    interval_s: Some(1.0),
                    window: Some(512_000),
                    streams: 4,
                    ..Iperf2Options::default()
                },
            ),
            (
                "--client h --num 10M --len 8K --bandwidth 20m --reverse",
                Iperf2Options {
                    host: host.clone(),
                    bytes: Some(10_485_760),
                    length: Some(8192),
                    rate: Some(Iperf2Rate::BitsPerSec(20_000_000)),
                    ways: DataWays::Reverse,
                    ..Iperf2Options::default()
                },
            ),
            (
                "-c h -d -L 5002 -S 0x10 -Z reno",
                Iperf2Options {
                    host,
                    ways: DataWays::Dual,
                    listen_port: Some(5002),
                    tos: 16,
                    congestion_control: Some("reno".to_owned()),
                    ..Iperf2Options::default()
                },
            ),
            (
                "-u -c h -b 1K -l 100 -S af41 --trip-times -e",
                Iperf2Options {
                    host: Some("h".to_owned()),
                    udp: true,
                    rate: Some(Iperf2Rate::BitsPerSec(1024)),
                    length: Some(100),
                    // 4 × 8 + 1 × 2 = 34, in the upper six bits.
                    tos: 136,
                    trip_times: true,
                    enhanced: true,
                    ..Iperf2Options::default()
                },
            ),
            (
                "-u -c h -b 10kpps",
                Iperf2Options {
                    host: Some("h".to_owned()),
                    udp: true,
                    rate: Some(Iperf2Rate::DatagramsPerSec(10_000.0)),
                    ..Iperf2Options::default()
                },
            ),
            ("-s -y C", Iperf2Options { serves: true, csv: true, ..Iperf2Options::default() }),
            (
                "-s -c h -t 2 -P 1 -X --no-connect-sync",
                Iperf2Options {
                    serves: true,
                    time_s: 2.0,
                    serve_for: Some(std::time::Duration::from_secs(2)),
                    serve_clients: Some(1),
                    ..Iperf2Options::default()
                },
            ),
            (
                "-c h -t 1 -t 3 --linux-congestion reno --tcp-c cubic more",
                Iperf2Options {
                    host: Some("h".to_owned()),
                    time_s: 3.0,
                    congestion_control: Some("cubic".to_owned()),
                    ..Iperf2Options::default()
                },
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(read_options(line), Ok(Some(expected)), "{line}");
        }
    }

    #[test]
    fn a_rate_in_datagrams_is_that_of_their_payload() {
        let asked = read_options("-u -c h -b 100pps").expect("sound").expect("a test");
        // 100 × 1470 × 8 bit/s: 2.1.8 has 0x11f1c0 in its header.
        assert_eq!(asked.rate_bps(), Some(0x0011_f1c0));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (line, part) in [
            ("", "-s and -c"),
            ("-c h -t 0", "-t"),
            ("-c h -P x", "-P"),
            ("-c h -b 1x", "-b"),
            ("-c h -S af5", "-S"),
            ("-c h -o file", "shell"),
            ("-c h --histograms", "not here"),
            ("-c h --bounceback", "linerate ping"),
            ("-c h --foo", "unrecognized option '--foo'"),
            ("-c h -f z", "-f"),
        ] {
            assert!(read_options(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }
}
