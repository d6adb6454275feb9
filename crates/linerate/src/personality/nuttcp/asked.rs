//! The command line of nuttcp: its flags with their units.

use linerate_core::record::IpFamily;

use linerate_proto::nuttcp::{IN_ORDER, MOST};

use crate::personality::getopt::{self, Flag, ParsedWord, Takes, letters};

const NO_FORK: char = '\u{1}';
const IGNORED: char = '\u{2}';
const IGNORED_VALUE: char = '\u{3}';

/// The flags of nuttcp; most take their value in the same word.
fn flag_table() -> Vec<Flag<Takes>> {
    let plain = ['t', 'r', '1', 'F', 'D', 'b', '4', '6', 'B', 'd', 's', 'V'];
    let valued = ['T', 'n', 'l', 'N', 'i', 'P', 'p', 'w', 'R', 'f', 'M', 'c', 'I', 'x'];
    let long = [
        ('h', "help", Takes::Nothing),
        (NO_FORK, "nofork", Takes::Nothing),
        (IGNORED, "no3rdparty", Takes::Nothing),
        (IGNORED, "single-threaded", Takes::Nothing),
        (IGNORED, "disable-v4-mapped", Takes::Nothing),
        (IGNORED, "enable-v4-mapped", Takes::Nothing),
        (IGNORED_VALUE, "idle-data-timeout", Takes::Value),
    ];
    let plain = letters(&plain, Takes::Nothing).chain(letters(&valued, Takes::Value));
    let maybe = ['S', 'v', 'u', 'j', 'o', 'a', 'm'];
    plain.chain(letters(&maybe, Takes::Maybe)).chain(long).collect()
}

pub(super) const USAGE: &str = "\
Usage: nuttcp [-t | -r] [-u] [-T s] [-n buffers] [-l bytes] [-N streams] [-i s] [-w KB]
              [-R[i]rate] [-p port] [-P port] [-D] [-M bytes] [-c dscp] [-fparse] [-f-drops]
              [-f-percentloss] [-f-retrans] [-f-rtt] [-j[m][a][x][o]] [-o[m][a][x]] [-4 | -6]
              [-v] host
       nuttcp -S | -1 [-P port] [--nofork]
       nuttcp -V
-j and -o (jitter, one-way delay over UDP) are what a receiving server tells: nuttcp 7.0.1 or newer
taken without effect: -F (over TCP the client always connects), -a -b -B -d -I -xP -xc
--no3rdparty --single-threaded --idle-data-timeout; not here: third parties, multicast, -xt, -s";

/// Options of a command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NuttcpOptions {
    pub(super) receives: bool,
    pub(super) serves: bool,
    pub(super) once: bool,
    pub(super) port: u16,
    pub(super) time_s: f64,
    pub(super) amount: Option<SendAmount>,
    pub(super) udp: bool,
    /// Columns of jitter and of one-way delays to show, 0 for none.
    pub(super) jitter: u8,
    pub(super) delay: u8,
    /// None for the usual one of TCP, or of the route over UDP.
    pub(super) length: Option<u32>,
    pub(super) streams: u16,
    pub(super) interval_s: Option<f64>,
    pub(super) window: Option<u64>,
    /// None for the usual one: no limit over TCP, 1 Mbit/s over UDP.
    pub(super) rate: Option<SendRate>,
    /// The pace is kept from write to write.
    pub(super) instant: bool,
    pub(super) data_port: Option<u16>,
    pub(super) family: Option<IpFamily>,
    pub(super) nodelay: bool,
    pub(super) mss: Option<u32>,
    pub(super) dscp: Option<u8>,
    pub(super) parse: bool,
    pub(super) hidden: HiddenColumns,
    pub(super) host: Option<String>,
}

impl Default for NuttcpOptions {
    fn default() -> Self {
        Self {
            receives: false,
            serves: false,
            once: false,
            port: 5000,
            time_s: 10.0,
            amount: None,
            udp: false,
            jitter: 0,
            delay: 0,
            length: None,
            streams: 1,
            interval_s: None,
            window: None,
            rate: None,
            instant: false,
            data_port: None,
            family: None,
            nodelay: false,
            mss: None,
            dscp: None,
            parse: false,
            hidden: HiddenColumns::default(),
            host: None,
        }
    }
}

/// Rate of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SendRate {
    Unlimited,
    /// Rate of all streams together.
    BitsPerSecond(u64),
    PacketsPerSecond(u64),
}

/// Amount of data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendAmount {
    Buffers(u64),
    /// Whole buffers are sent.
    Bytes(u64),
}

/// Parts of the last line that are not wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HiddenColumns {
    pub(super) drops: bool,
    pub(super) percent: bool,
    pub(super) retransmits: bool,
    pub(super) rtt: bool,
}

/// Bytes of a write over TCP.
pub(super) const TCP_LENGTH: u32 = 65_536;
/// Bit/s of a test over UDP.
const UDP_RATE_BPS: u64 = 1_000_000;

impl NuttcpOptions {
    /// Bit/s of all streams with buffers of `length`; none for no limit.
    pub(super) fn rate_bps(&self, length: u32) -> Option<u64> {
        match self.rate {
            Some(SendRate::Unlimited) => None,
            Some(SendRate::BitsPerSecond(bps)) => Some(bps),
            Some(SendRate::PacketsPerSecond(count)) => {
                Some(count.saturating_mul(u64::from(length) * 8))
            }
            None => self.udp.then_some(UDP_RATE_BPS),
        }
    }
}

/// Request of a command line: help, version or a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NuttcpRequest {
    Help,
    Version,
    Test(Box<NuttcpOptions>),
}

/// Reads the command line.
pub(super) fn read(words: &[String]) -> Result<NuttcpRequest, String> {
    let mut asked = NuttcpOptions::default();
    for word in getopt::parse(words, &flag_table())? {
        match word {
            ParsedWord::Operand(host) => asked.host = Some(host),
            ParsedWord::Flag('h', _) => return Ok(NuttcpRequest::Help),
            ParsedWord::Flag('V', _) => return Ok(NuttcpRequest::Version),
            ParsedWord::Flag(letter, value) => set_option(&mut asked, letter, &value)?,
        }
    }
    match (asked.serves, &asked.host) {
        (true, Some(host)) => Err(format!("a server takes no host, and got '{host}'")),
        (false, None) => Err("a host is needed, or -S".to_owned()),
        _ => Ok(NuttcpRequest::Test(Box::new(asked))),
    }
}

/// Columns that `-jmax` or `-oa` shows: least, mean, most, and for jitter whether neighbours alone
/// count.
fn columns_shown(value: &str, usual: u8) -> u8 {
    let of = |letter, bit| if value.contains(letter) { bit } else { 0 };
    let three = of('m', 1) | of('a', 2) | of('x', 4);
    if three == 0 { usual } else { three }
}

fn set_option(asked: &mut NuttcpOptions, letter: char, value: &str) -> Result<(), String> {
    let seconds = || {
        let time = value.trim_end_matches('s');
        let (digits, factor) = match (time.strip_suffix('m'), time.strip_suffix('h')) {
            (Some(minutes), _) => (minutes, 60.0),
            (_, Some(hours)) => (hours, 3600.0),
            (None, None) => (time, 1.0),
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
        // With a unit behind it -n is bytes.
        'n' if value.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            asked.amount = Some(SendAmount::Bytes(getopt::parse_bytes(letter, value)?));
        }
        'n' => asked.amount = Some(SendAmount::Buffers(getopt::number(letter, value)?)),
        'l' => {
            let bytes = u32::try_from(getopt::parse_bytes(letter, value)?).ok();
            let bytes = bytes.filter(|bytes| *bytes > 0).ok_or("-l: no size of a buffer")?;
            asked.length = Some(bytes);
        }
        'N' => asked.streams = getopt::number(letter, value)?,
        'P' => asked.port = getopt::number(letter, value)?,
        // KB where no unit is named.
        'w' => {
            let bare = value.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = getopt::parse_bytes(letter, value)?;
            asked.window = Some(if bare { bytes.saturating_mul(1024) } else { bytes });
        }
        // kbit/s where no unit is named.
        'R' => {
            let rest = value.strip_prefix('i');
            asked.instant = rest.is_some();
            asked.rate = Some(parse_rate(rest.unwrap_or(value))?);
        }
        'f' => format_option(asked, value)?,
        'p' => asked.data_port = Some(getopt::number(letter, value)?),
        '4' => asked.family = Some(IpFamily::V4),
        '6' => asked.family = Some(IpFamily::V6),
        'u' => {
            asked.udp = true;
            if value == "u" {
                asked.rate = Some(SendRate::Unlimited);
            }
        }
        'D' => asked.nodelay = true,
        'M' => asked.mss = Some(getopt::number(letter, value)?),
        'c' => {
            let class: u8 = getopt::number(letter, value)?;
            asked.dscp = Some(class).filter(|class| *class < 64);
            asked.dscp.ok_or("-c: a code point is 0 to 63")?;
        }
        _ => take_newer(asked, letter, value)?,
    }
    Ok(())
}

/// Flags of nuttcp 7 and 8, and those that are not here.
fn take_newer(asked: &mut NuttcpOptions, letter: char, value: &str) -> Result<(), String> {
    match letter {
        'j' => {
            let in_order = if value.contains('o') { IN_ORDER } else { 0 };
            (asked.udp, asked.jitter) = (true, columns_shown(value, MOST) | in_order);
        }
        'o' => asked.delay = columns_shown(value, 2),
        'x' if value.starts_with('t') => return Err("-xt: use traceroute itself".to_owned()),
        'm' => return Err("-m: multicast is not here".to_owned()),
        's' => return Err("-s: no data of standard streams, leave it out".to_owned()),
        _ => {}
    }
    Ok(())
}

/// A word of `-f`.
fn format_option(asked: &mut NuttcpOptions, value: &str) -> Result<(), String> {
    match value {
        "parse" => asked.parse = true,
        "-drops" => asked.hidden.drops = true,
        "-percentloss" => asked.hidden.percent = true,
        "-retrans" => asked.hidden.retransmits = true,
        "-rtt" => asked.hidden.rtt = true,
        "-beta" | "-cwnd" => {}
        other => return Err(format!("-f{other}: this format is not here, see -h")),
    }
    Ok(())
}

/// A rate: kbit/s where no unit is named, packets a second with a `p` behind, `u` or 0 for none.
fn parse_rate(text: &str) -> Result<SendRate, String> {
    if text == "u" || text == "0" {
        return Ok(SendRate::Unlimited);
    }
    let wrong = || format!("-R: '{text}' is no rate");
    let (number, packets) = match text.strip_suffix(['p', 'P']) {
        Some(number) => (number, true),
        None => (text, false),
    };
    let bare = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let factor = if bare && !packets { 1000.0 } else { 1.0 };
    let value = getopt::parse_size(number, true).map(|value| value * factor);
    let value = value.filter(|value| (1.0..1e18).contains(value)).ok_or_else(wrong)? as u64;
    Ok(if packets { SendRate::PacketsPerSecond(value) } else { SendRate::BitsPerSecond(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_options(line: &str) -> Result<Option<NuttcpOptions>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words).map(|wanted| match wanted {
            NuttcpRequest::Test(asked) => Some(*asked),
            NuttcpRequest::Help | NuttcpRequest::Version => None,
        })
    }

    #[test]
    fn command_lines_that_people_write_are_read() {
        let host = Some("h".to_owned());
        let cases = [
            ("h", NuttcpOptions { host: host.clone(), ..NuttcpOptions::default() }),
            (
                "-r -T30 -i1 -w2m -N4 h",
                NuttcpOptions {
                    receives: true,
                    time_s: 30.0,
                    interval_s: Some(1.0),
                    window: Some(2 << 20),
                    streams: 4,
                    host: host.clone(),
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-w64 -R50m -n100 -l8192 -fparse h",
                NuttcpOptions {
                    window: Some(65_536),
                    rate: Some(SendRate::BitsPerSecond(50_000_000)),
                    amount: Some(SendAmount::Buffers(100)),
                    length: Some(8192),
                    parse: true,
                    host: host.clone(),
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-T2m -R500 h",
                NuttcpOptions {
                    time_s: 120.0,
                    rate: Some(SendRate::BitsPerSecond(500_000)),
                    host: host.clone(),
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-u -Ri9.5m -l1400 -i1 -p5200 -r -F -f-drops h",
                NuttcpOptions {
                    udp: true,
                    receives: true,
                    instant: true,
                    rate: Some(SendRate::BitsPerSecond(9_500_000)),
                    length: Some(1400),
                    interval_s: Some(1.0),
                    data_port: Some(5200),
                    hidden: HiddenColumns { drops: true, ..HiddenColumns::default() },
                    host: host.clone(),
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-u -R500p -n1m -4 h",
                NuttcpOptions {
                    udp: true,
                    rate: Some(SendRate::PacketsPerSecond(500)),
                    amount: Some(SendAmount::Bytes(1 << 20)),
                    family: Some(IpFamily::V4),
                    host,
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-j -o -T 2 -T5 -R10m -xP1 -I x -a h",
                NuttcpOptions {
                    udp: true,
                    jitter: 4,
                    delay: 2,
                    time_s: 5.0,
                    rate: Some(SendRate::BitsPerSecond(10_000_000)),
                    host: Some("h".to_owned()),
                    ..NuttcpOptions::default()
                },
            ),
            (
                "-jmao -uu h",
                NuttcpOptions {
                    udp: true,
                    jitter: 1 | 2 | 8,
                    rate: Some(SendRate::Unlimited),
                    host: Some("h".to_owned()),
                    ..NuttcpOptions::default()
                },
            ),
            ("-S -P5100", NuttcpOptions { serves: true, port: 5100, ..NuttcpOptions::default() }),
        ];
        for (line, expected) in cases {
            assert_eq!(read_options(line), Ok(Some(expected)), "{line}");
        }
    }

    #[test]
    fn a_rate_is_that_of_all_streams_in_bits() {
        let rate = |line| read_options(line).expect("well-formed").expect("no help").rate_bps(1000);
        assert_eq!(rate("h"), None);
        assert_eq!(rate("-u h"), Some(1_000_000));
        assert_eq!(rate("-u -Ru h"), None);
        // 500 a second of 8000 bits.
        assert_eq!(rate("-u -R500p h"), Some(4_000_000));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (line, part) in [
            ("", "host is needed"),
            ("-S h", "takes no host"),
            ("-u -Rip h", "-R"),
            ("-frunningtotal h", "-frunningtotal"),
            ("-T0 h", "-T"),
            ("-R-1 h", "-R"),
            ("-fxml h", "-fxml"),
            ("-c64 h", "-c"),
            ("-xt h", "traceroute"),
            ("-s h", "-s"),
        ] {
            assert!(read_options(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }
}
