//! The one line that sets a test up: `name = value` pairs in a fixed order.
//!
//! The first 13 are read by their place, later ones by name; a server of some version needs every
//! field that this version has, and reads beyond the line's end where one is missing. So a line is
//! made for the version of the server, and none is newer than [`super::WIRE_VERSION`].

use std::fmt::Write as _;
use std::time::Duration;

use super::{Version, WIRE_VERSION};

/// A pace of no limit, in kbit/s.
pub const UNLIMITED: u64 = 4_294_967_295;
/// As many buffers as the time allows.
pub const UNTIL_TIMEOUT: u64 = 2_147_483_647;
/// Port of the first data stream, from nuttcp 5.5 on.
pub const PORT: u16 = 5101;

/// Intervals that are no shorter than this are told.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// A test.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Bytes of one write.
    pub buflen: u32,
    /// Buffers of all streams together, or [`UNTIL_TIMEOUT`].
    pub nbuf: u64,
    /// Socket buffers; 0 leaves them alone.
    pub window: u64,
    /// Streams.
    pub nstream: u16,
    /// kbit/s of all streams together, or [`UNLIMITED`].
    pub rate: u64,
    /// `rate` is in packets per second.
    pub rate_pps: bool,
    /// `rate` holds from write to write and not on the average.
    pub instant: bool,
    /// Port of the first data stream; the next has the next.
    pub port: u16,
    /// The client transmits.
    pub client_sends: bool,
    /// The receiver connects instead of the transmitter (`-F`).
    pub flip: bool,
    /// Seconds after which the transmitter ends; 0 for none.
    pub timeout_s: f64,
    /// Data goes over UDP.
    pub udp: bool,
    /// The sender of the line.
    pub version: Version,
    /// Seconds between interval lines; 0 for none.
    pub interval_s: f64,
    /// What the server's lines are to look like: bits of nuttcp's own.
    pub format: u32,
    /// Segment size to ask for; 0 for none.
    pub mss: u32,
    /// Type of service.
    pub tos: u8,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// The receiver tells its jitter over UDP: bits of nuttcp's own, 0 for none.
    pub jitter: u8,
    /// The same of one-way delays.
    pub delay: u8,
    /// Things asked for that are not served: a third party, multicast, traceroute.
    pub beyond: Option<&'static str>,
}

/// `format`: a round-trip time is wanted.
pub(super) const FORMAT_RTT: u32 = 0x800;
/// `format`: `name=value` instead of words.
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

/// Parameters that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// A field that every line has is not there.
    #[error("no {0}")]
    Missing(&'static str),
    /// A value that is no number, or outside what a test may have.
    #[error("{0} of {1} is outside {2}")]
    Range(&'static str, String, &'static str),
}

impl Parameters {
    /// The line for a server of `version`, with its end.
    pub fn to_line(&self, version: Version) -> String {
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
        // Nobody looks for a field that the version of the other does not have.
        let known = version.min(self.version);
        let later: [(Version, String); 15] = [
            (Version(3, 3, 2), format!("interval = {:.6}", self.interval_s)),
            (Version(3, 4, 1), format!("reverse = {}", flag(self.flip))),
            (Version(3, 5, 1), format!("format = {}", self.format)),
            (Version(3, 6, 1), format!("traceroute = 0, irate = {}", flag(self.instant))),
            (Version(5, 0, 1), "thirdparty = _NULL_ ".to_owned()),
            (Version(5, 1, 1), "multicast = 0 ".to_owned()),
            (Version(5, 2, 1), format!("datamss = {} ", self.mss)),
            (Version(5, 3, 1), format!("tos = {:X} ", self.tos)),
            (Version(5, 5, 1), format!("nbuf_bytes = 0 , rate_pps = {} ", flag(self.rate_pps))),
            (Version(5, 5, 1), format!("nodelay = {}", flag(self.nodelay))),
            (Version(6, 2, 1), "ssm = 0 ".to_owned()),
            (Version(6, 2, 6), "affinity = -1 ".to_owned()),
            (Version(6, 2, 7), "maxburst = 1 ".to_owned()),
            (Version(7, 0, 1), format!("do_jitter = {} ", self.jitter)),
            (Version(7, 0, 1), format!("do_owd = {}", self.delay)),
        ];
        for (_, text) in later.iter().filter(|(since, _)| known >= *since) {
            // Writing to a string cannot fail.
            let _ = write!(line, ", {text}");
        }
        line.push('\n');
        line
    }

    /// Reads a line, whatever its version: fields are found by name, absent ones have the value
    /// that means nothing.
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
        let version = Version::parse(needed("vers")?);
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
            tos: tos.map_err(|_| range("tos", field("tos").unwrap_or(""), "0 … FF"))?,
            nodelay: flag("nodelay"),
            jitter: narrow(count("do_jitter", 15)?),
            delay: narrow(count("do_owd", 7)?),
            beyond: beyond.into_iter().find_map(|(asked, name)| asked.then_some(name)),
        };
        // The last stream's port is one, too.
        let last = u32::from(parameters.port) + u32::from(parameters.nstream) - 1;
        if last > 65_535 {
            return Err(range("port of the last stream", &last.to_string(), "1 … 65535"));
        }
        Ok(parameters)
    }

    /// The line in which a server repeats them.
    pub fn about(&self) -> String {
        let Self { buflen, nstream, port, .. } = self;
        let mode = if self.udp { "udp" } else { "tcp" };
        match self.format & FORMAT_PARSE {
            0 => format!("buflen={buflen}, nstream={nstream}, port={port} {mode}"),
            _ => format!("buflen={buflen} nstream={nstream} port={port} mode={mode}"),
        }
    }

    /// Time between interval lines; none where it is too short for any.
    pub fn interval(&self) -> Option<Duration> {
        let interval = Duration::try_from_secs_f64(self.interval_s).ok();
        interval.filter(|interval| *interval >= INTERVAL_MIN)
    }

    /// Lines are for programs.
    pub const fn parses(&self) -> bool {
        self.format & FORMAT_PARSE != 0
    }

    /// Time between two datagrams of all streams by the pace, in milliseconds.
    pub fn gap_ms(&self) -> Option<f64> {
        let bps = self.pace_bps()?.saturating_mul(self.nstream.into());
        Some(f64::from(self.buflen) * 8e3 / bps as f64)
    }

    /// Bits per second of each stream; none where there is no limit.
    pub fn pace_bps(&self) -> Option<u64> {
        let all = match self.rate {
            0 | UNLIMITED => return None,
            rate if self.rate_pps => rate.saturating_mul(u64::from(self.buflen) * 8),
            rate => rate.saturating_mul(1000),
        };
        Some((all / u64::from(self.nstream.max(1))).max(1))
    }
}

fn range(name: &'static str, value: &str, bounds: &'static str) -> ParametersError {
    ParametersError::Range(name, value.chars().take(20).collect(), bounds)
}

fn number(name: &'static str, text: &str, least: u64, most: u64) -> Result<u64, ParametersError> {
    // nuttcp prints some of them signed.
    let value = text.parse::<u64>().or_else(|_| text.parse::<i64>().map(|_| 0));
    let value = value.map_err(|_| range(name, text, "numbers"))?;
    let fits = (least..=most).contains(&value);
    if fits { Ok(value) } else { Err(range(name, text, "what a test may have")) }
}

/// A number that was held against a bound before.
fn narrow<T: TryFrom<u64> + Default>(value: u64) -> T {
    T::try_from(value).unwrap_or_default()
}

fn seconds(name: &'static str, text: &str) -> Result<f64, ParametersError> {
    let value: f64 = text.parse().map_err(|_| range(name, text, "numbers"))?;
    let fits = (0.0..=86_400.0).contains(&value);
    if fits { Ok(value) } else { Err(range(name, text, "0 … 86400 s")) }
}
