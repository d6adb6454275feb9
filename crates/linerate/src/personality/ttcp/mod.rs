//! `ttcp` as the 1991 version has it: `ttcp -t -s host`, `ttcp -r -s`, over UDP with `-u`.
//!
//! Both ends work as with `-s` whatever is said: the pattern is sent, what comes is discarded;
//! standard input and output carry no data.

mod lines;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_core::record::{
    Failure, Fault, Finish, FlowEnd, IpFamily, Record, TcpPlan, TcpTest, UdpPlan, UdpTest, Via,
};
use linerate_engine::context::Context;
use linerate_engine::foreign::ttcp::TtcpUdpListener;
use linerate_engine::foreign::{ServedEvent, Serving, iperf2};
use linerate_engine::throughput;
use linerate_sys::stop::Stop;

use super::getopt::{self, ParsedWord, letters};
use super::{listening, server_plan};
use crate::command::measure::this_tool;
use crate::exit::Outcome;
use crate::output;

const PLAIN: [char; 11] = ['t', 'r', 's', 'u', 'v', 'd', 'B', 'D', 'T', '4', '6'];
const VALUED: [char; 8] = ['b', 'w', 'f', 'l', 'n', 'p', 'A', 'O'];

const USAGE: &str = "\
Usage: ttcp -t [-u] [-s] [-l bytes] [-n buffers] [-p port] [-b bytes] [-D] [-f kmgKMG] [-v]
                    [-4 | -6] host
       ttcp -r [-u] [-s] [-l bytes] [-p port] [-b bytes] [-f kmgKMG] [-v] [-4 | -6]
-s is always on: the pattern is sent and what comes is discarded
-w is -b under another name; -d, -B, -T are taken and change nothing; -A and -O are printed";

/// ttcp makes its datagrams longer than its marks.
const UDP_LENGTH_MIN: u32 = 5;

/// Options of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TtcpOptions {
    transmit: bool,
    udp: bool,
    /// Without it ttcp would read standard input, or write to standard output.
    sink: bool,
    family: Option<IpFamily>,
    length: u32,
    count: u64,
    port: u16,
    socket_buffer: Option<u64>,
    nodelay: bool,
    unit: char,
    verbose: bool,
    align: (u32, u32),
    host: Option<String>,
}

impl Default for TtcpOptions {
    fn default() -> Self {
        Self {
            transmit: false,
            udp: false,
            sink: false,
            family: None,
            length: 8192,
            count: 2048,
            port: 5001,
            socket_buffer: None,
            nodelay: false,
            unit: 'K',
            verbose: false,
            align: (16_384, 0),
            host: None,
        }
    }
}

/// Runs the command line.
pub(super) fn run(words: &[String]) -> Outcome {
    let asked = match read(words) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            output::print_line(USAGE);
            return Ok(0);
        }
        Err(mistake) => {
            output::print_note(&format!("ttcp: {mistake}\n{USAGE}"));
            return Ok(1);
        }
    };
    if !asked.sink {
        output::print_note(&format!(
            "{}: as with -s: no data of standard streams",
            lines::name(&asked)
        ));
    }
    output::print_note(&lines::header_line(&asked));
    let done = match (asked.transmit, asked.udp) {
        (true, false) => transmit(&asked),
        (true, true) => transmit_udp(&asked),
        (false, false) => receive(&asked),
        (false, true) => receive_udp(&asked),
    };
    match done {
        Ok(end) => {
            lines::result(&asked, &end).iter().for_each(|line| output::print_line(line));
            Ok(0)
        }
        Err(failure) => {
            output::print_note(&format!("{}: {failure}", lines::name(&asked)));
            Ok(1)
        }
    }
}

/// Reads the command line; none when it asks for help.
fn read(words: &[String]) -> Result<Option<TtcpOptions>, String> {
    let mut asked = TtcpOptions::default();
    let flags = letters(&PLAIN, false).chain(letters(&VALUED, true)).chain([('h', "help", false)]);
    for word in getopt::parse(words, &flags.collect::<Vec<_>>())? {
        let ParsedWord::Flag(letter, value) = word else {
            let ParsedWord::Operand(host) = word else { continue };
            asked.host = Some(host);
            continue;
        };
        let size = |value: &str| getopt::parse_bytes(letter, value);
        match letter {
            't' => asked.transmit = true,
            'r' => asked.transmit = false,
            'u' => asked.udp = true,
            's' => asked.sink = true,
            '4' => asked.family = Some(IpFamily::V4),
            '6' => asked.family = Some(IpFamily::V6),
            'v' => asked.verbose = true,
            'D' => asked.nodelay = true,
            'b' | 'w' => asked.socket_buffer = Some(size(&value)?).filter(|bytes| *bytes > 0),
            'l' => {
                let bytes = u32::try_from(size(&value)?).ok().filter(|bytes| *bytes > 0);
                asked.length = bytes.ok_or("-l: a buffer of no or too many bytes")?;
            }
            'n' => asked.count = getopt::number(letter, &value)?,
            'p' => asked.port = getopt::number(letter, &value)?,
            'A' => asked.align.0 = getopt::number(letter, &value)?,
            'O' => asked.align.1 = getopt::number(letter, &value)?,
            'f' => {
                let unit = value.chars().next().filter(|unit| "kmgKMG".contains(*unit));
                asked.unit = unit.ok_or("-f: one of k, m, g, K, M, G")?;
            }
            'h' => return Ok(None),
            _ => {}
        }
    }
    if asked.udp {
        asked.length = asked.length.max(UDP_LENGTH_MIN);
    }
    match (asked.transmit, &asked.host) {
        (true, None) => Err("-t needs a host".to_owned()),
        (false, Some(host)) => Err(format!("-r takes no host, and got '{host}'")),
        _ => Ok(Some(asked)),
    }
}

fn transmit(asked: &TtcpOptions) -> Result<FlowEnd, Failure> {
    let plan = TcpPlan {
        server: server_plan(Via::Ttcp, asked.host.as_deref(), asked.port, asked.family),
        test: TcpTest {
            finish: Finish::Buffers(asked.count),
            buffer_bytes: asked.length,
            window_bytes: asked.socket_buffer,
            nodelay: asked.nodelay,
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    };
    let mut context =
        Context { tool: this_tool(), stop: listening::until_interrupted()?, watch: &mut |_| {} };
    sender_of(throughput::run_tcp(&plan, &mut context))
}

/// As fast as possible: ttcp has no pace.
fn transmit_udp(asked: &TtcpOptions) -> Result<FlowEnd, Failure> {
    let plan = UdpPlan {
        server: server_plan(Via::Ttcp, asked.host.as_deref(), asked.port, asked.family),
        test: UdpTest {
            finish: Finish::Buffers(asked.count),
            size_bytes: Some(asked.length),
            window_bytes: asked.socket_buffer,
            pace: None,
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    };
    let mut context =
        Context { tool: this_tool(), stop: listening::until_interrupted()?, watch: &mut |_| {} };
    sender_of(throughput::run_udp(&plan, &mut context))
}

fn sender_of(record: Record) -> Result<FlowEnd, Failure> {
    let sender = record.flows.into_iter().find_map(|flow| flow.sender);
    match (record.failure, sender) {
        (None, Some(end)) => Ok(end),
        (Some(failure), _) => Err(failure),
        (None, None) => Err(nothing()),
    }
}

fn receive_udp(asked: &TtcpOptions) -> Result<FlowEnd, Failure> {
    let stop: Stop = listening::until_interrupted()?;
    let bind =
        |address| TtcpUdpListener::bind(SocketAddr::new(address, asked.port), asked.socket_buffer);
    let listener = match unspecified_address(asked.family) {
        Some(address) => bind(address),
        // A host without IPv6 has IPv4 alone.
        None => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into())),
    }?;
    let (peer, end, ended) = listener.receive(&stop)?;
    let from = peer.ip().to_canonical();
    output::print_note(&format!("ttcp-r: {} from {from}", if ended { "ended" } else { "silence" }));
    Ok(end)
}

/// Address on which a receiver of one family listens.
fn unspecified_address(family: Option<IpFamily>) -> Option<IpAddr> {
    family.map(|family| match family {
        IpFamily::V4 => Ipv4Addr::UNSPECIFIED.into(),
        IpFamily::V6 => Ipv6Addr::UNSPECIFIED.into(),
    })
}

fn receive(asked: &TtcpOptions) -> Result<FlowEnd, Failure> {
    let stop = listening::until_interrupted()?;
    let listener =
        listening::listen(unspecified_address(asked.family), asked.port, asked.socket_buffer)?;
    let result = std::sync::Mutex::new(Err(nothing()));
    listening::serve_connections(&listener, &stop, Some(1), &|stream, peer| {
        output::print_note(&format!("ttcp-r: accept from {}", peer.ip()));
        let mut end = None;
        let mut watch = |seen: &ServedEvent<'_>| {
            if let ServedEvent::Done(reports) = seen {
                end = reports.first().map(|report| report.end.clone());
            }
        };
        let mut serving = Serving {
            admission: &listening::AdmitEveryone,
            stop: &stop,
            interval: std::time::Duration::from_secs(1),
            watch: &mut watch,
        };
        let served = iperf2::serve_connection(stream, &mut serving);
        let served = served.and_then(|_| end.ok_or_else(nothing));
        *result.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = served;
    })?;
    result.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn nothing() -> Failure {
    Failure::new(Fault::Unreachable, "move data with", "the other end", "nothing was measured")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_options(line: &str) -> Result<Option<TtcpOptions>, String> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_line_of_a_study_is_read() {
        // GigaSunet, 2002: ttcp -t -s -f m -l 61440 -n 20345.
        let expected = TtcpOptions {
            transmit: true,
            sink: true,
            length: 61_440,
            count: 20_345,
            unit: 'm',
            host: Some("host".to_owned()),
            ..TtcpOptions::default()
        };
        assert_eq!(read_options("-t -s -f m -l 61440 -n 20345 host"), Ok(Some(expected)));
        assert_eq!(
            read_options("-s -t -f m -l 61440 -n 20345 host"),
            read_options("-tsfm -l61440 -n20345 host")
        );
        let listening = TtcpOptions {
            sink: true,
            socket_buffer: Some(65_536),
            port: 5010,
            ..TtcpOptions::default()
        };
        assert_eq!(read_options("-r -s -b 64k -p 5010"), Ok(Some(listening.clone())));
        assert_eq!(read_options("-r -s -w 64k -p 5010"), Ok(Some(listening)));
        // Both ends of another study: ttcp -f m -r -s -b 16384, ttcp -f m -t -s ADDRESS.
        let receiver = TtcpOptions {
            sink: true,
            socket_buffer: Some(16_384),
            unit: 'm',
            ..TtcpOptions::default()
        };
        assert_eq!(read_options("-f m -r -s -b 16384"), Ok(Some(receiver)));
        let sender = TtcpOptions {
            transmit: true,
            sink: true,
            unit: 'm',
            host: Some("10.0.0.1".to_owned()),
            ..TtcpOptions::default()
        };
        assert_eq!(read_options("-f m -t -s 10.0.0.1"), Ok(Some(sender)));
    }

    #[test]
    fn every_flag_of_the_1991_version_is_taken() {
        let all = "-t -s -u -v -d -D -B -T -b 32768 -l 1 -n 10 -p 5010 -A 4096 -O 8 -f M -6 host";
        let expected = TtcpOptions {
            transmit: true,
            udp: true,
            sink: true,
            family: Some(IpFamily::V6),
            length: UDP_LENGTH_MIN,
            count: 10,
            port: 5010,
            socket_buffer: Some(32_768),
            nodelay: true,
            unit: 'M',
            verbose: true,
            align: (4096, 8),
            host: Some("host".to_owned()),
        };
        assert_eq!(read_options(all), Ok(Some(expected)));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (line, part) in [
            ("-t", "needs a host"),
            ("-r host", "takes no host"),
            ("-t -l 0 host", "-l"),
            ("-t -f x host", "-f"),
            ("-t -p 70000 host", "-p"),
            ("-z", "invalid option"),
        ] {
            assert!(read_options(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }
}
