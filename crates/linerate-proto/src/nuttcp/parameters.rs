//! The line with the parameters of a test: `name = value` pairs in a fixed order.
//!
//! A server reads the first 13 by position, later ones by name. It needs every field of its
//! version, and reads beyond the end of the line where one is missing. So the line is written for
//! the version of the server, and for none newer than [`super::WIRE_VERSION`].

use std::fmt::Write as _;
use std::time::Duration;

use super::{NuttcpVersion, WIRE_VERSION};

/// Value of `rate` for no limit, in kbit/s.
pub const UNLIMITED: u64 = 4_294_967_295;
/// Value of `nbuf` for a test without an amount.
pub const UNTIL_TIMEOUT: u64 = 2_147_483_647;
/// Port of the first data stream, from nuttcp 5.5 on.
pub const PORT: u16 = 5101;

/// Shortest interval for which lines are sent.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Parameters of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Bytes of one write.
    pub buflen: u32,
    /// Sum of the buffers of all streams, or [`UNTIL_TIMEOUT`].
    pub nbuf: u64,
    /// Bytes of the socket buffers; 0 for the kernel's default.
    pub window: u64,
    /// Number of streams.
    pub nstream: u16,
    /// Rate of all streams together in kbit/s, or [`UNLIMITED`].
    pub rate: u64,
    /// `rate` is in packets per second.
    pub rate_pps: bool,
    /// `rate` limits every write and not only the average.
    pub instant: bool,
    /// Port of the first data stream; further streams have the next ports.
    pub port: u16,
    /// True if the client transmits.
    pub client_sends: bool,
    /// The receiver connects instead of the transmitter (`-F`).
    pub flip: bool,
    /// Seconds after which the transmitter ends; 0 for none.
    pub timeout_s: f64,
    /// Data goes over UDP.
    pub udp: bool,
    /// Version of the sender of the line.
    pub version: NuttcpVersion,
    /// Seconds between interval lines; 0 for none.
    pub interval_s: f64,
    /// Format of the server's lines, in nuttcp's bits.
    pub format: u32,
    /// Maximum segment size; 0 for the kernel's default.
    pub mss: u32,
    /// Type of service octet.
    pub tos: u8,
    /// Socket option TCP_NODELAY.
    pub nodelay: bool,
    /// Jitter that a UDP receiver reports, in nuttcp's bits; 0 for none.
    pub jitter: u8,
    /// One-way delay that a UDP receiver reports, in nuttcp's bits; 0 for none.
    pub delay: u8,
    /// Requested feature that is not supported: a third party, multicast or traceroute.
    pub beyond: Option<&'static str>,
}

/// Bit of `format`: report a round-trip time.
pub(super) const FORMAT_RTT: u32 = 0x800;
/// Bit of `format`: `name=value` pairs for programs.
pub const FORMAT_PARSE: u32 = 0x40;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            buflen: 65_536,
            nbuf: UNTIL_TIMEOUT,
            window: 0,
            nstream: 1,
            rate: UNLIMITED,
            rate_pps: false,
            instant: false,
            port: PORT,
            client_sends: true,
            flip: false,
            timeout_s: 10.0,
            udp: false,
            version: WIRE_VERSION,
            interval_s: 0.0,
            format: FORMAT_RTT,
            mss: 0,
            tos: 0,
            nodelay: false,
            jitter: 0,
            delay: 0,
            beyond: None,
        }
    }
}

/// Reason for which parameters are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// A required field is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// A value is no number, or out of range.
    #[error("{0} of {1} is outside {2}")]
    Range(&'static str, String, &'static str),
}

impl Parameters {
    /// The line for a server of `version`, with its newline.
    pub fn to_line(&self, version: NuttcpVersion) -> String {
        let flag = u8::from;
        let mut line = format!(
            "buflen = {}, nbuf = {}, win = {}, nstream = {}, rate = {}, port = {}, trans = {}, \
             braindead = 0, timeout = {:.6}, udp = {}, vers = {}",
            self.buflen,
            self.nbuf,
            self.window,
            self.nstream,
            self.rate,
            self.port,
            flag(self.client_sends),
            self.timeout_s,
            flag(self.udp),
            self.version,
        );
        // Only the fields that the server's version has.
        let known = version.min(self.version);
        let later: [(NuttcpVersion, String); 15] = [
            (NuttcpVersion(3, 3, 2), format!("interval = {:.6}", self.interval_s)),
            (NuttcpVersion(3, 4, 1), format!("reverse = {}", flag(self.flip))),
            (NuttcpVersion(3, 5, 1), format!("format = {}", self.format)),
            (NuttcpVersion(3, 6, 1), format!("traceroute = 0, irate = {}", flag(self.instant))),
            (NuttcpVersion(5, 0, 1), "thirdparty = _NULL_ ".to_owned()),
            (NuttcpVersion(5, 1, 1), "multicast = 0 ".to_owned()),
            (NuttcpVersion(5, 2, 1), format!("datamss = {} ", self.mss)),
            (NuttcpVersion(5, 3, 1), format!("tos = {:X} ", self.tos)),
            (
                NuttcpVersion(5, 5, 1),
                format!("nbuf_bytes = 0 , rate_pps = {} ", flag(self.rate_pps)),
            ),
            (NuttcpVersion(5, 5, 1), format!("nodelay = {}", flag(self.nodelay))),
            (NuttcpVersion(6, 2, 1), "ssm = 0 ".to_owned()),
            (NuttcpVersion(6, 2, 6), "affinity = -1 ".to_owned()),
            (NuttcpVersion(6, 2, 7), "maxburst = 1 ".to_owned()),
            (NuttcpVersion(7, 0, 1), format!("do_jitter = {} ", self.jitter)),
            (NuttcpVersion(7, 0, 1), format!("do_owd = {}", self.delay)),
        ];
        for (_, text) in later.iter().filter(|(since, _)| known >= *since) {
            // Writing to a string cannot fail.
            let _ = write!(line, ", {text}");
        }
        line.push('\n');
        line
    }

    /// Parses a line of any version: fields are found by name, and absent ones have the value for
    /// "not set".
    /// # Errors
    /// [`ParametersError`].
    pub fn parse(line: &str) -> Result<Self, ParametersError> {
        let field = |name: &str| {
            let mut pairs = line.split(',').filter_map(|pair| pair.split_once('='));
            pairs.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
        };
        let needed = |name: &'static str| field(name).ok_or(ParametersError::Missing(name));
        let flag = |name| field(name).is_some_and(|value| value != "0" && !value.is_empty());
        let count = |name, most| match field(name) {
            Some(value) => number(name, value, 0, most),
            None => Ok(0),
        };
        let version = NuttcpVersion::parse(needed("vers")?);
        let version = version.ok_or(ParametersError::Missing("vers"))?;
        let tos = u8::from_str_radix(field("tos").unwrap_or("0"), 16);
        let third = field("thirdparty").is_some_and(|name| name != "_NULL_");
        let beyond = [
            (third, "a third party"),
            (flag("multicast"), "multicast"),
            (flag("traceroute"), "traceroute"),
        ];
        let parameters = Self {
            buflen: narrow(number("buflen", needed("buflen")?, 1, 16 << 20)?),
            nbuf: number("nbuf", needed("nbuf")?, 0, i64::MAX as u64)?,
            window: number("win", needed("win")?, 0, 2 << 30)?,
            nstream: narrow(number("nstream", needed("nstream")?, 1, 128)?),
            rate: number("rate", needed("rate")?, 0, u64::MAX)?,
            rate_pps: flag("rate_pps"),
            instant: flag("irate"),
            port: narrow(number("port", needed("port")?, 1, 65_535)?),
            client_sends: needed("trans")? != "0",
            flip: flag("reverse"),
            timeout_s: seconds("timeout", needed("timeout")?)?,
            udp: flag("udp"),
            version,
            interval_s: seconds("interval", field("interval").unwrap_or("0"))?,
            format: narrow(count("format", u32::MAX.into())?),
            mss: narrow(count("datamss", 65_535)?),
            tos: tos.map_err(|_| range_error("tos", field("tos").unwrap_or(""), "0 … FF"))?,
            nodelay: flag("nodelay"),
            jitter: narrow(count("do_jitter", 15)?),
            delay: narrow(count("do_owd", 7)?),
            beyond: beyond.into_iter().find_map(|(asked, name)| asked.then_some(name)),
        };
        // The port of the last stream must be valid, too.
        let last = u32::from(parameters.port) + u32::from(parameters.nstream) - 1;
        if last > 65_535 {
            return Err(range_error("port of the last stream", &last.to_string(), "1 … 65535"));
        }
        Ok(parameters)
    }

    /// The line in which a server repeats the parameters.
    pub fn about_line(&self) -> String {
        let Self { buflen, nstream, port, .. } = self;
        let mode = if self.udp { "udp" } else { "tcp" };
        match self.format & FORMAT_PARSE {
            0 => format!("buflen={buflen}, nstream={nstream}, port={port} {mode}"),
            _ => format!("buflen={buflen} nstream={nstream} port={port} mode={mode}"),
        }
    }

    /// Time between interval lines; `None` where it is 0 or too short.
    pub fn interval(&self) -> Option<Duration> {
        let interval = Duration::try_from_secs_f64(self.interval_s).ok();
        interval.filter(|interval| *interval >= INTERVAL_MIN)
    }

    /// True if lines are `name=value` pairs for programs.
    pub const fn parses(&self) -> bool {
        self.format & FORMAT_PARSE != 0
    }

    /// Time between two datagrams of any stream at the rate of all streams, in milliseconds.
    pub fn gap_ms(&self) -> Option<f64> {
        let bps = self.pace_bps()?.saturating_mul(self.nstream.into());
        Some(f64::from(self.buflen) * 8e3 / bps as f64)
    }

    /// Rate of each stream in bit/s; `None` where there is no limit.
    pub fn pace_bps(&self) -> Option<u64> {
        let all = match self.rate {
            0 | UNLIMITED => return None,
            rate if self.rate_pps => rate.saturating_mul(u64::from(self.buflen) * 8),
            rate => rate.saturating_mul(1000),
        };
        Some((all / u64::from(self.nstream.max(1))).max(1))
    }
}

fn range_error(name: &'static str, value: &str, bounds: &'static str) -> ParametersError {
    ParametersError::Range(name, value.chars().take(20).collect(), bounds)
}

fn number(name: &'static str, text: &str, least: u64, most: u64) -> Result<u64, ParametersError> {
    // nuttcp prints some unsigned values as signed.
    let value = text.parse::<u64>().or_else(|_| text.parse::<i64>().map(|_| 0));
    let value = value.map_err(|_| range_error(name, text, "numbers"))?;
    let fits = (least..=most).contains(&value);
    if fits { Ok(value) } else { Err(range_error(name, text, "what a test may have")) }
}

/// Converts a number whose range has been checked.
fn narrow<T: TryFrom<u64> + Default>(value: u64) -> T {
    T::try_from(value).unwrap_or_default()
}

fn seconds(name: &'static str, text: &str) -> Result<f64, ParametersError> {
    let value: f64 = text.parse().map_err(|_| range_error(name, text, "numbers"))?;
    let fits = (0.0..=86_400.0).contains(&value);
    if fits { Ok(value) } else { Err(range_error(name, text, "0 … 86400 s")) }
}
