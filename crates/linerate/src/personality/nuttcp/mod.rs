//! `nuttcp` as 6.1.2 has it: `nuttcp host`, `nuttcp -r host`, `nuttcp -S`.
//!
//! Left out: UDP, third parties, multicast, traceroute, the lines of `-v` but for the result.

mod lines;

use std::sync::Mutex;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Finish, Record, TcpDirections, TcpPlan, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::Serving;
use linerate_engine::foreign::nuttcp::{self, DataPorts};
use linerate_engine::throughput;

use super::getopt::{self, Flag, Word};
use super::listening;
use crate::command::measure::tool;
use crate::exit::Outcome;
use crate::output;

const NO_FORK: char = '\u{1}';

const FLAGS: [Flag; 23] = [
    ('t', "", false),
    ('r', "", false),
    ('S', "", false),
    ('1', "", false),
    ('F', "", false),
    ('T', "", true),
    ('n', "", true),
    ('l', "", true),
    ('N', "", true),
    ('i', "", true),
    ('P', "", true),
    ('p', "", true),
    ('w', "", true),
    ('R', "", true),
    ('f', "", true),
    ('D', "", false),
    ('M', "", true),
    ('c', "", true),
    ('v', "", false),
    ('b', "", false),
    ('u', "", false),
    ('h', "help", false),
    (NO_FORK, "nofork", false),
];

const USAGE: &str = "\
Usage: linerate nuttcp [-t | -r] [-T s] [-n buffers] [-l bytes] [-N streams] [-i s] [-w KB] [-R rate]
              [-P port] [-D] [-M bytes] [-c dscp] [-fparse] [-v] host
       linerate nuttcp -S | -1 [-P port] [--nofork]
taken without effect: -F (the client always connects), -b, -p; not here: -u and third parties";

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    receives: bool,
    serves: bool,
    once: bool,
    port: u16,
    time_s: f64,
    buffers: Option<u64>,
    length: u32,
    streams: u16,
    interval_s: Option<f64>,
    window: Option<u64>,
    rate_bps: Option<u64>,
    nodelay: bool,
    mss: Option<u32>,
    dscp: Option<u8>,
    parse: bool,
    host: Option<String>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            receives: false,
            serves: false,
            once: false,
            port: 5000,
            time_s: 10.0,
            buffers: None,
            length: 65_536,
            streams: 1,
            interval_s: None,
            window: None,
            rate_bps: None,
            nodelay: false,
            mss: None,
            dscp: None,
            parse: false,
            host: None,
        }
    }
}

/// Runs the command line.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match read(words) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            output::line(USAGE);
            return Ok(0);
        }
        Err(mistake) => return Err(super::mistake("nuttcp", &mistake).into()),
    };
    let done = if asked.serves { serve(&asked) } else { measure(&asked) };
    Ok(done.map_or_else(
        |failure| {
            output::note(&format!("nuttcp: {failure}"));
            1
        },
        |()| 0,
    ))
}

/// The command line; none when it asks for help.
fn read(words: &[String]) -> Result<Option<Asked>, String> {
    let mut asked = Asked::default();
    for word in getopt::parse(words, &FLAGS)? {
        match word {
            Word::Operand(host) => asked.host = Some(host),
            Word::Flag('h', _) => return Ok(None),
            Word::Flag(letter, value) => take(&mut asked, letter, &value)?,
        }
    }
    match (asked.serves, &asked.host) {
        (true, Some(host)) => Err(format!("a server takes no host, and got '{host}'")),
        (false, None) => Err("a host is needed, or -S".to_owned()),
        _ => Ok(Some(asked)),
    }
}

fn take(asked: &mut Asked, letter: char, value: &str) -> Result<(), String> {
    let seconds = || {
        let time = value.trim_end_matches('s');
        let (digits, factor) = match time.strip_suffix('m') {
            Some(minutes) => (minutes, 60.0),
            None => (time, 1.0),
        };
        let time: f64 = getopt::number(letter, digits)?;
        let fits = (0.001..=1e6).contains(&(time * factor));
        if fits { Ok(time * factor) } else { Err(format!("-{letter}: '{value}' is no time")) }
    };
    match letter {
        't' => asked.receives = false,
        'r' => asked.receives = true,
        'S' => asked.serves = true,
        '1' => (asked.serves, asked.once) = (true, true),
        'T' => asked.time_s = seconds()?,
        'i' => asked.interval_s = Some(seconds()?.max(0.01)),
        // With a unit behind it -n is bytes; whole buffers are sent.
        'n' if value.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            let bytes = getopt::bytes(letter, value)?;
            asked.buffers = Some(bytes.div_ceil(asked.length.into()));
        }
        'n' => asked.buffers = Some(getopt::number(letter, value)?),
        'l' => {
            let bytes = u32::try_from(getopt::bytes(letter, value)?).ok();
            asked.length = bytes.filter(|bytes| *bytes > 0).ok_or("-l: no size of a buffer")?;
        }
        'N' => asked.streams = getopt::number(letter, value)?,
        'P' => asked.port = getopt::number(letter, value)?,
        // KB where no unit is named.
        'w' => {
            let bare = value.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = getopt::bytes(letter, value)?;
            asked.window = Some(if bare { bytes.saturating_mul(1024) } else { bytes });
        }
        // kbit/s where no unit is named.
        'R' => asked.rate_bps = rate(value)?,
        'f' => match value {
            "parse" => asked.parse = true,
            other => return Err(format!("-f{other}: only -fparse is understood")),
        },
        'D' => asked.nodelay = true,
        'M' => asked.mss = Some(getopt::number(letter, value)?),
        'c' => {
            let class: u8 = getopt::number(letter, value)?;
            asked.dscp = Some(class).filter(|class| *class < 64);
            asked.dscp.ok_or("-c: a code point is 0 to 63")?;
        }
        'u' => return Err("-u: use linerate udp".to_owned()),
        _ => {}
    }
    Ok(())
}

/// A rate in bit/s; none for no limit.
fn rate(text: &str) -> Result<Option<u64>, String> {
    if text == "u" || text == "0" {
        return Ok(None);
    }
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = getopt::size(text, true).map(|value| if bare { value * 1000.0 } else { value });
    let value = value.filter(|value| (1.0..1e18).contains(value));
    value.map(|value| Some(value as u64)).ok_or_else(|| format!("-R: '{text}' is no rate"))
}

fn measure(asked: &Asked) -> Result<(), Failure> {
    let plan = plan(asked);
    let stop = listening::until_interrupted()?;
    let rows = Mutex::new(0_u32);
    let mut watch = |event: &Event| {
        if let (Event::Interval(row), Some(_)) = (event, asked.interval_s)
            && row.flow.is_none()
        {
            *rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            output::line(&lines::interval(row, asked.parse));
        }
    };
    let mut context = Context { tool: tool(), stop, watch: &mut watch };
    let record: Record = throughput::run(&plan, &mut context);
    if let Some(failure) = record.failure {
        return Err(failure);
    }
    let direction = if asked.receives { Direction::Down } else { Direction::Up };
    if *rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner) > 0 {
        output::line("");
    }
    output::line(&lines::result(&record, direction, asked.parse));
    Ok(())
}

fn plan(asked: &Asked) -> TcpPlan {
    let time = Finish::TimeNs((asked.time_s * 1e9) as u64);
    // The rate is that of all streams.
    let pace = asked.rate_bps.map(|rate| (rate / u64::from(asked.streams.max(1))).max(1));
    TcpPlan {
        via: Some(Via::Nuttcp),
        host: asked.host.clone().unwrap_or_default(),
        port: asked.port,
        directions: if asked.receives { TcpDirections::Down } else { TcpDirections::Up },
        streams: asked.streams,
        finish: asked.buffers.map_or(time, Finish::Buffers),
        interval_ns: (asked.interval_s.unwrap_or(86_400.0) * 1e9) as u64,
        buffer_bytes: asked.length,
        window_bytes: asked.window,
        mss_bytes: asked.mss,
        nodelay: asked.nodelay,
        pace: pace.map(BitRate::from_bits_per_sec),
        dscp: asked.dscp,
        ..TcpPlan::default()
    }
}

fn serve(asked: &Asked) -> Result<(), Failure> {
    let listener = listening::listen(None, asked.port, None)?;
    let stop = listening::until_interrupted()?;
    let ports = DataPorts::beside(vec![asked.port]);
    listening::serve(&listener, &stop, asked.once, &|stream, peer| {
        let mut serving = Serving {
            admission: &listening::Everybody,
            stop: &stop,
            interval: Duration::from_secs(1),
            watch: &mut |_| {},
        };
        match nuttcp::serve(stream, &ports, &mut serving) {
            Ok(line) => output::note(&format!("{peer}: {line}")),
            Err(failure) => output::note(&format!("nuttcp: {failure}")),
        }
    })
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
            ("h", Asked { host: host.clone(), ..Asked::default() }),
            (
                "-r -T30 -i1 -w2m -N4 h",
                Asked {
                    receives: true,
                    time_s: 30.0,
                    interval_s: Some(1.0),
                    window: Some(2 << 20),
                    streams: 4,
                    host: host.clone(),
                    ..Asked::default()
                },
            ),
            (
                "-w64 -R50m -n100 -l8192 -fparse h",
                Asked {
                    window: Some(65_536),
                    rate_bps: Some(50_000_000),
                    buffers: Some(100),
                    length: 8192,
                    parse: true,
                    host: host.clone(),
                    ..Asked::default()
                },
            ),
            (
                "-T2m -R500 h",
                Asked { time_s: 120.0, rate_bps: Some(500_000), host, ..Asked::default() },
            ),
            ("-S -P5100", Asked { serves: true, port: 5100, ..Asked::default() }),
        ];
        for (line, expected) in cases {
            assert_eq!(asked(line), Ok(Some(expected)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (line, part) in [
            ("", "host is needed"),
            ("-S h", "takes no host"),
            ("-u h", "linerate udp"),
            ("-T0 h", "-T"),
            ("-R-1 h", "-R"),
            ("-fxml h", "-fxml"),
            ("-c64 h", "-c"),
        ] {
            assert!(asked(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }
}
