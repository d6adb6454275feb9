//! `iperf` as version 2.1.8 has it: `iperf -c host`, `iperf -s`.
//!
//! Left out: enhanced reports (`-e` is taken and adds no columns), UDP, histograms, isochronous
//! traffic, multicast, daemons.

mod client;
mod lines;
mod server;

use std::net::IpAddr;

use super::getopt::{self, Flag, Word};
use crate::exit::Outcome;
use crate::output;

/// Letters that getopt_long would give to long flags without a letter of their own.
const FULL_DUPLEX: char = '\u{1}';
const TRIP_TIMES: char = '\u{2}';

const FLAGS: [Flag; 30] = [
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
    ('M', "mss", true),
    ('B', "bind", true),
    ('Z', "linux-congestion", true),
    ('b', "bandwidth", true),
    ('S', "tos", true),
    ('u', "udp", false),
    ('V', "ipv6_domain", false),
    ('e', "enhanced", false),
    ('m', "print_mss", false),
    ('C', "compatibility", false),
    ('v', "version", false),
    ('h', "help", false),
];

const USAGE: &str = "\
Usage: linerate iperf -s [-p port] [-w size] [-B address] [-i s] [-f kmgKMGaA] [-y C]
       linerate iperf -c host [-p port] [-t s | -n size] [-i s] [-l size] [-w size] [-P n]
             [-R | -d | -r | --full-duplex] [-L port] [-b rate] [-N] [-M bytes] [-Z name] [-S tos]
             [-B address] [-f kmgKMGaA] [-y C] [-V]
taken without effect: -e -m -C --trip-times; not here: -u and the rest of iperf's flags";

/// Which ways a client asks data to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ways {
    Forward,
    Reverse,
    FullDuplex,
    Dual,
    TradeOff,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    /// The server to connect to; none to be one.
    host: Option<String>,
    serves: bool,
    port: u16,
    listen_port: Option<u16>,
    time_s: f64,
    bytes: Option<u64>,
    interval_s: Option<f64>,
    length: u32,
    window: Option<u64>,
    streams: u16,
    ways: Ways,
    format: lines::Format,
    csv: bool,
    nodelay: bool,
    mss: Option<u32>,
    bind: Option<IpAddr>,
    congestion_control: Option<String>,
    rate_bps: Option<u64>,
    tos: u8,
    ipv6: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            host: None,
            serves: false,
            port: 5001,
            listen_port: None,
            time_s: 10.0,
            bytes: None,
            interval_s: None,
            length: 128 << 10,
            window: None,
            streams: 1,
            ways: Ways::Forward,
            format: lines::Format::default(),
            csv: false,
            nodelay: false,
            mss: None,
            bind: None,
            congestion_control: None,
            rate_bps: None,
            tos: 0,
            ipv6: false,
        }
    }
}

/// Runs the command line.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match read(words) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            output::line(&format!(
                "iperf version 2.1.8, by linerate {}",
                env!("CARGO_PKG_VERSION")
            ));
            output::line(USAGE);
            return Ok(0);
        }
        Err(mistake) => return Err(super::mistake("iperf", &mistake).into()),
    };
    let done = if asked.serves { server::run(&asked) } else { client::run(&asked) };
    Ok(done.map_or_else(
        |failure| {
            output::note(&format!("iperf: {failure}"));
            1
        },
        |()| 0,
    ))
}

/// The command line; none when it asks for help or the version.
fn read(words: &[String]) -> Result<Option<Asked>, String> {
    let mut asked = Asked::default();
    for word in getopt::parse(words, &FLAGS)? {
        let (letter, value) = match word {
            Word::Flag(letter, value) => (letter, value),
            Word::Operand(word) => return Err(format!("ignoring extra argument -- {word}")),
        };
        if matches!(letter, 'v' | 'h') {
            return Ok(None);
        }
        take(&mut asked, letter, &value)?;
    }
    if asked.serves == asked.host.is_some() {
        return Err("one of -s and -c is needed".to_owned());
    }
    Ok(Some(asked))
}

fn take(asked: &mut Asked, letter: char, value: &str) -> Result<(), String> {
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
        'i' => asked.interval_s = Some(seconds()?.max(0.01)),
        'n' => asked.bytes = Some(getopt::bytes(letter, value)?),
        'l' => {
            let bytes = u32::try_from(getopt::bytes(letter, value)?).ok();
            asked.length = bytes.filter(|bytes| *bytes > 0).ok_or("-l: no size of a buffer")?;
        }
        'w' => asked.window = Some(getopt::bytes(letter, value)?).filter(|bytes| *bytes > 0),
        'P' => asked.streams = getopt::number(letter, value)?,
        'R' => asked.ways = Ways::Reverse,
        'd' => asked.ways = Ways::Dual,
        'r' => asked.ways = Ways::TradeOff,
        FULL_DUPLEX => asked.ways = Ways::FullDuplex,
        'f' => {
            let format = value.chars().next().and_then(lines::Format::of);
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
        'b' => {
            let rate = getopt::size(value, true).filter(|rate| (1.0..1e18).contains(rate));
            asked.rate_bps = Some(rate.ok_or_else(|| format!("-b: '{value}' is no rate"))? as u64);
        }
        'S' => {
            let parsed = value
                .strip_prefix("0x")
                .map_or_else(|| value.parse().ok(), |digits| u8::from_str_radix(digits, 16).ok());
            asked.tos = parsed.ok_or_else(|| format!("-S: '{value}' is no type of service"))?;
        }
        'u' => return Err("-u: use linerate udp".to_owned()),
        'V' => asked.ipv6 = true,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Option<Asked>, String> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_that_people_write_are_read() {
        let host = Some("h".to_owned());
        let cases = [
            ("-c h", Asked { host: host.clone(), ..Asked::default() }),
            (
                "-c h -t30 -i1 -w 512k -P4",
                Asked {
                    host: host.clone(),
                    time_s: 30.0,
                    interval_s: Some(1.0),
                    window: Some(524_288),
                    streams: 4,
                    ..Asked::default()
                },
            ),
            (
                "--client h --num 10M --len 8K --bandwidth 20m --reverse",
                Asked {
                    host: host.clone(),
                    bytes: Some(10_485_760),
                    length: 8192,
                    rate_bps: Some(20_000_000),
                    ways: Ways::Reverse,
                    ..Asked::default()
                },
            ),
            (
                "-c h -d -L 5002 -S 0x10 -Z reno",
                Asked {
                    host,
                    ways: Ways::Dual,
                    listen_port: Some(5002),
                    tos: 16,
                    congestion_control: Some("reno".to_owned()),
                    ..Asked::default()
                },
            ),
            ("-s -y C", Asked { serves: true, csv: true, ..Asked::default() }),
        ];
        for (line, expected) in cases {
            assert_eq!(asked(line), Ok(Some(expected)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (line, part) in [
            ("", "-s and -c"),
            ("-s -c h", "-s and -c"),
            ("-c h -t 0", "-t"),
            ("-c h -P x", "-P"),
            ("-c h -u", "linerate udp"),
            ("-c h more", "extra argument"),
            ("-c h --histograms", "unrecognized"),
            ("-c h -f z", "-f"),
        ] {
            assert!(asked(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }
}
