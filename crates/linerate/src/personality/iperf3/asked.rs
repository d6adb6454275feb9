//! What a command line of iperf3 asks for: its flags read in the order of the line, the last one
//! wins; its bounds and the words of its mistakes (iperf3 3.21).

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::Via;
use linerate_report::iperf3::Iperf3Unit;

use super::super::getopt::{ParsedArgument, scan_words};
use super::flags::{FLAGS, Flag, FlagSide};
use super::number::{any_base, integer, octet_of_dscp, parse_rate, parse_real, parse_size};

/// A day: the longest test, and the longest time that anything may take.
const TIME_MAX_S: i64 = 86_400;
/// The longest omitted span.
const OMIT_MAX_S: i64 = 600;
/// The largest block of TCP.
const BLOCK_MAX_BYTES: f64 = 1_048_576.0;
/// The smallest and the largest datagram.
const DATAGRAM_BYTES: std::ops::RangeInclusive<f64> = 16.0..=65_507.0;
/// The largest socket buffer.
const WINDOW_MAX_BYTES: f64 = 536_870_912.0;
/// Largest segment that `-M` may set.
const MSS_MAX_BYTES: i64 = 32_767;
/// Blocks of a burst.
const BURST_MAX: i64 = 1000;
/// Streams in a direction.
const STREAMS_MAX: i64 = 128;
/// Format of the time before a line, unless the user gives another: the C library's own.
const STAMP: &str = "%a %b %e %H:%M:%S %Y ";

/// A command line that iperf3 would not take either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A flag that is none, in getopt's words.
    Flag(String),
    /// A value or a combination, in iperf3's words.
    Parameter(String),
}

/// Task of the program: client, server, version or help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramRole {
    /// Measure with the server on this host.
    Client(String),
    /// Run as the server.
    Server,
    /// Print the version only.
    Version,
    /// Print the help only.
    Help,
}

/// A pace and how unevenly it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaceOption {
    /// Bit/s; 0 is none.
    pub(super) rate_bps: u64,
    /// Blocks that leave at once; none is an even pace.
    pub(super) burst: Option<u64>,
}

/// A command line as it was meant.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of iperf3")]
pub(super) struct Iperf3Options {
    pub(super) role: Option<ProgramRole>,
    pub(super) port: u16,
    pub(super) unit: Option<Iperf3Unit>,
    pub(super) interval: Duration,
    pub(super) bind: Option<String>,
    pub(super) device: Option<String>,
    pub(super) verbose: bool,
    pub(super) json: bool,
    pub(super) json_stream: bool,
    pub(super) full_output: bool,
    pub(super) logfile: Option<PathBuf>,
    pub(super) timestamps: Option<String>,
    pub(super) pidfile: Option<PathBuf>,
    file: Option<PathBuf>,
    pub(super) affinity: Option<u32>,
    pub(super) server_affinity: Option<u32>,
    pub(super) rcv_timeout: Option<Duration>,
    pub(super) daemon: bool,
    pub(super) one_off: bool,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) server_max_duration: Option<Duration>,
    rate_limit: bool,
    pub(super) private_key: Option<PathBuf>,
    pub(super) users: Option<PathBuf>,
    pub(super) skew_s: Option<u64>,
    pub(super) pkcs1_padding: bool,
    pub(super) username: Option<String>,
    pub(super) public_key: Option<PathBuf>,
    pub(super) udp: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) pace: Option<PaceOption>,
    pub(super) fq_rate_bps: Option<u64>,
    pub(super) time_s: Option<u64>,
    pub(super) bytes: u64,
    pub(super) blocks: u64,
    pub(super) length_bytes: Option<u32>,
    pub(super) client_port: Option<u16>,
    pub(super) streams: u16,
    pub(super) reverse: bool,
    pub(super) bidir: bool,
    pub(super) window_bytes: Option<u64>,
    pub(super) congestion: Option<String>,
    pub(super) mss_bytes: Option<u32>,
    pub(super) no_delay: bool,
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
    pub(super) tos: u8,
    flow_label: Option<i64>,
    pub(super) zerocopy: bool,
    pub(super) omit_s: u64,
    pub(super) title: Option<String>,
    pub(super) extra_data: Option<String>,
    pub(super) get_server_output: bool,
    dont_fragment: bool,
    pub(super) mptcp: bool,
    /// Warnings that iperf3 prints.
    pub(super) warnings: Vec<String>,
}

impl Iperf3Options {
    /// Reads a command line; words that are no flags are left alone, as iperf3 does.
    pub(super) fn read(words: &[String]) -> Result<Self, Mistake> {
        let parts = read_flags(words)?;
        let port = Via::Iperf3.default_port();
        let interval = Duration::from_secs(1);
        let mut asked = Self { port, interval, streams: 1, ..Self::default() };
        let (mut of_client, mut of_server) = (false, false);
        let mut length = 0.0;
        for (flag, value) in &parts {
            if matches!(flag.name, "version" | "help") {
                let role =
                    if flag.name == "help" { ProgramRole::Help } else { ProgramRole::Version };
                return Ok(Self { role: Some(role), ..asked });
            }
            asked.set_option(flag.name, value, &mut length).map_err(Mistake::Parameter)?;
            let with_comma = flag.name == "affinity" && value.contains(',');
            of_client |= flag.side == FlagSide::Client || with_comma;
            of_server |= flag.side == FlagSide::Server;
        }
        asked
            .check_options(of_client, of_server, length)
            .map_err(|said| Mistake::Parameter(said.into()))?;
        Ok(asked)
    }

    /// Sets the option of one flag.
    fn set_option(&mut self, name: &str, value: &str, length: &mut f64) -> Result<(), String> {
        let text = || Some(value.to_owned());
        let path = || Some(PathBuf::from(value));
        match name {
            "port" => self.port = parse_port(value)?,
            "cport" => self.client_port = Some(parse_port(value)?),
            "client" | "server" => self.take_role(name, value)?,
            "bind" => (self.bind, self.device) = with_device(value, self.device.take()),
            "bind-dev" => self.device = text(),
            "verbose" | "debug" => self.verbose = true,
            "json" => self.json = true,
            "json-stream" => (self.json, self.json_stream) = (true, true),
            "json-stream-full-output" => self.full_output = true,
            "logfile" => self.logfile = path(),
            "timestamps" if value.is_empty() => self.timestamps = Some(STAMP.to_owned()),
            "timestamps" => self.timestamps = text(),
            "pidfile" => self.pidfile = path(),
            "file" => self.file = path(),
            "mptcp" => self.mptcp = true,
            "daemon" => self.daemon = true,
            "one-off" => self.one_off = true,
            "rsa-private-key-path" => self.private_key = path(),
            "authorized-users-path" => self.users = path(),
            "use-pkcs1-padding" => self.pkcs1_padding = true,
            "username" => self.username = text(),
            "rsa-public-key-path" => self.public_key = path(),
            "udp" => self.udp = true,
            "congestion" => self.congestion = text(),
            "no-delay" => self.no_delay = true,
            "version4" => (self.ipv4, self.ipv6) = (true, false),
            "version6" => (self.ipv4, self.ipv6) = (false, true),
            "zerocopy" => self.zerocopy = true,
            "title" => self.title = text(),
            "extra-data" => self.extra_data = text(),
            "get-server-output" => self.get_server_output = true,
            "dont-fragment" => self.dont_fragment = true,
            "reverse" | "bidir" if self.reverse != (name == "reverse") && self.one_way_is_set() => {
                return Err("cannot be both reverse and bidirectional".to_owned());
            }
            "reverse" => self.reverse = true,
            "bidir" => self.bidir = true,
            "sctp" | "nstreams" | "xbind" => {
                return Err(format!(
                    "an option you are trying to set is not implemented yet: --{name}, SCTP"
                ));
            }
            _ => return self.take_number(name, value, length),
        }
        Ok(())
    }

    const fn one_way_is_set(&self) -> bool {
        self.reverse || self.bidir
    }

    fn take_role(&mut self, name: &str, value: &str) -> Result<(), String> {
        let role = match (name, &self.role) {
            ("client", Some(ProgramRole::Server)) | ("server", Some(ProgramRole::Client(_))) => {
                return Err("cannot be both server and client".to_owned());
            }
            ("client", _) => {
                let (host, device) = with_device(value, self.device.take());
                self.device = device;
                ProgramRole::Client(host.unwrap_or_default())
            }
            _ => ProgramRole::Server,
        };
        self.role = Some(role);
        Ok(())
    }

    /// Sets the option of a flag whose value is a number.
    fn take_number(&mut self, name: &str, value: &str, length: &mut f64) -> Result<(), String> {
        match name {
            "format" => self.unit = Some(parse_unit(value)?),
            "interval" => self.interval = interval(value)?,
            "affinity" => (self.affinity, self.server_affinity) = processors(value)?,
            "bitrate" => self.pace = Some(parse_pace(value)?),
            "fq-rate" => {
                self.fq_rate_bps = Some(parse_rate(value)? as u64).filter(|rate| *rate > 0)
            }
            "server-bitrate-limit" => self.rate_limit = rate_limit(value)?,
            "bytes" => self.bytes = parse_size(value)? as u64,
            "blockcount" => self.blocks = parse_size(value)? as u64,
            "length" => *length = parse_size(value)?,
            "parallel" => {
                let said = "number of parallel streams too large (maximum = 128)";
                let streams = Some(integer(value)).filter(|count| *count <= STREAMS_MAX);
                self.streams = u16::try_from(streams.ok_or(said)?).unwrap_or(1).max(1);
            }
            "window" => self.window_bytes = window(value)?,
            "set-mss" => {
                let bytes = Some(integer(value)).filter(|bytes| *bytes <= MSS_MAX_BYTES);
                let bytes = bytes.ok_or("TCP MSS too large (maximum = 32767 bytes)")?;
                self.mss_bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            "tos" => {
                let octet = any_base(value).and_then(|octet| u8::try_from(octet).ok());
                self.tos = octet.ok_or(TOS)?;
            }
            "dscp" => self.tos = octet_of_dscp(value).ok_or(TOS)?,
            "flowlabel" => {
                let label = any_base(value).filter(|label| (1..=0xf_ffff).contains(label));
                self.flow_label = Some(label.ok_or("unable to set IPv6 flow label")?);
            }
            _ => self.take_time(name, value)?,
        }
        Ok(())
    }

    /// Sets the option of a flag whose value is a time; the other flags change nothing in this
    /// program.
    fn take_time(&mut self, name: &str, value: &str) -> Result<(), String> {
        let within = |most: i64, said: &str| match integer(value) {
            number @ 0.. if number <= most => Ok(number.unsigned_abs()),
            _ => Err(said.to_owned()),
        };
        match name {
            "time" => self.time_s = Some(within(TIME_MAX_S, DURATION)?),
            "server-max-duration" => {
                let seconds = within(TIME_MAX_S, DURATION)?;
                self.server_max_duration = (seconds > 0).then(|| Duration::from_secs(seconds));
            }
            "idle-timeout" => {
                let said = "idle timeout parameter is not positive or larger than allowed limit";
                let seconds = within(TIME_MAX_S, said)?;
                let seconds = Some(seconds).filter(|seconds| *seconds > 0).ok_or(said)?;
                self.idle_timeout = Some(Duration::from_secs(seconds));
            }
            "omit" => {
                self.omit_s = within(OMIT_MAX_S, "bogus value for --omit (maximum = 600 seconds)")?;
            }
            "rcv-timeout" => {
                let said = "receive timeout value is incorrect or not in range";
                let ms = within(TIME_MAX_S * 1000, said)?;
                let ms = Some(ms).filter(|ms| *ms >= 100).ok_or(said)?;
                self.rcv_timeout = Some(Duration::from_millis(ms));
            }
            "snd-timeout" => {
                within(TIME_MAX_S * 1000, "send timeout value is incorrect or not in range")?;
            }
            "cntl-ka" => keepalive(value)?,
            "time-skew-threshold" => {
                let seconds = u64::try_from(integer(value)).ok().filter(|seconds| *seconds > 0);
                self.skew_s = Some(seconds.ok_or("skew threshold must be a positive number")?);
            }
            "connect-timeout" => {
                self.connect_timeout = Some(Duration::from_millis(parse_size(value)? as u64));
            }
            "pacing-timer" => {
                parse_size(value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the flags go together, in the order in which iperf3 does.
    fn check_options(
        &mut self,
        of_client: bool,
        of_server: bool,
        length: f64,
    ) -> Result<(), &'static str> {
        let is_client = matches!(self.role, Some(ProgramRole::Client(_)));
        let is_server = self.role == Some(ProgramRole::Server);
        let key_and_name = (self.username.is_some(), self.public_key.is_some());
        let key_and_users = (self.private_key.is_some(), self.users.is_some());
        let sends = !self.reverse && !self.bidir;
        if is_client && (of_server || key_and_users.1 || self.skew_s.is_some()) {
            return Err("some option you are trying to set is server only");
        }
        if is_server && of_client {
            return Err("some option you are trying to set is client only");
        }
        if is_client && key_and_name.0 != key_and_name.1 {
            return Err(
                "you must specify a username, password, and path to a valid RSA public key",
            );
        }
        if is_client && self.rcv_timeout.is_some() && sends {
            return Err("client receive timeout is valid only in receiving mode");
        }
        if is_server && key_and_users.0 != key_and_users.1 {
            return Err(
                "you must specify a path to a valid RSA private key and a user credential \
                        file",
            );
        }
        if self.file.is_some() && self.udp {
            return Err("cannot transfer file using UDP");
        }
        self.check_length(length)?;
        let ends = [self.time_s.is_some(), self.bytes > 0, self.blocks > 0];
        if ends.into_iter().filter(|given| *given).count() > 1 {
            return Err("only one test end condition (-t, -n, -k) may be specified");
        }
        if let Some(left_out) = self.left_out(length) {
            return Err(left_out);
        }
        if self.role.is_none() {
            return Err("must either be a client (-c) or server (-s)");
        }
        if self.json && self.unit.is_some() {
            self.warnings.push("Report format (-f) flag ignored with JSON output (-J)".to_owned());
        }
        Ok(())
    }

    /// Feature that this program lacks, in the words that iperf3 has for a flag of another build.
    fn left_out(&self, length: f64) -> Option<&'static str> {
        // The kernel forbids fragments of what fits a link's packet anyway.
        let large = self.udp && length > 1472.0;
        match () {
            () if self.file.is_some() => {
                Some("an option you are trying to set is not implemented yet: --file")
            }
            () if self.flow_label.is_some() => {
                Some("an option you are trying to set is not implemented yet: --flowlabel")
            }
            () if self.rate_limit => Some(
                "an option you are trying to set is not implemented yet: \
                      --server-bitrate-limit",
            ),
            () if self.dont_fragment && large => Some(
                "an option you are trying to set is not implemented yet: --dont-fragment \
                      with datagrams above 1472 bytes",
            ),
            () => None,
        }
    }

    fn check_length(&mut self, length: f64) -> Result<(), &'static str> {
        if length > BLOCK_MAX_BYTES || (!self.udp && length < 0.0) {
            return Err("block size too large (maximum = 1048576 bytes)");
        }
        if self.udp && length > 0.0 && !DATAGRAM_BYTES.contains(&length) {
            return Err("block size invalid (minimum = 16 bytes, maximum = 65507 bytes)");
        }
        self.length_bytes = (length >= 1.0).then_some(length as u32);
        Ok(())
    }
}

const DURATION: &str = "test duration valid values are 0 to 86400 seconds";
const TOS: &str = "bad TOS value (must be between 0 and 255 inclusive)";

/// The flags of a line with their values; those that are missing are empty.
fn read_flags(words: &[String]) -> Result<Vec<(&'static Flag, String)>, Mistake> {
    let parts = scan_words(words, FLAGS).map_err(Mistake::Flag)?;
    let flag = |part| match part {
        ParsedArgument::Flag(flag, value) => Some((flag, value.unwrap_or_default())),
        ParsedArgument::Operand(_) => None,
    };
    Ok(parts.into_iter().filter_map(flag).collect())
}

/// `ADDRESS%DEVICE`; the percent sign of a link-local address (RFC 4007) names its zone and stays.
fn with_device(text: &str, device: Option<String>) -> (Option<String>, Option<String>) {
    match text.split_once('%') {
        Some((host, _)) if is_link_local(host) => (Some(text.to_owned()), device),
        Some((host, device)) => (Some(host.to_owned()), Some(device.to_owned())),
        None => (Some(text.to_owned()), device),
    }
}

fn is_link_local(host: &str) -> bool {
    host.parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local())
}

fn parse_port(text: &str) -> Result<u16, String> {
    let number = u16::try_from(integer(text)).ok().filter(|port| *port > 0);
    number.ok_or_else(|| "port number must be between 1 and 65535 inclusive".to_owned())
}

fn parse_unit(text: &str) -> Result<Iperf3Unit, String> {
    let first = text.get(..1).filter(|letter| !letter.eq_ignore_ascii_case("a"));
    first
        .and_then(Iperf3Unit::from_letter)
        .ok_or_else(|| "bad format specifier (valid formats are in the set [kmgtKMGT])".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = parse_real(text);
    if seconds != 0.0 && !(0.1..=60.0).contains(&seconds) {
        return Err("invalid report interval (min = 0.1, max = 60 seconds)".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// `10M`, `1G/32`: bit/s, and the blocks of a burst.
fn parse_pace(text: &str) -> Result<PaceOption, String> {
    let (rate_text, burst) = split_at_slash(text);
    let burst = burst.map(|burst| match integer(burst) {
        count @ 1..=BURST_MAX => Ok(count.unsigned_abs()),
        _ => Err(format!("invalid burst count (maximum = {BURST_MAX})")),
    });
    Ok(PaceOption { burst: burst.transpose()?, rate_bps: parse_rate(rate_text)? as u64 })
}

/// `100M`, `100M/10`: bit/s, and the seconds that they are averaged over; whether it is a limit.
fn rate_limit(text: &str) -> Result<bool, String> {
    let (rate_text, over) = split_at_slash(text);
    let over = over.map_or(5.0, parse_real);
    if over != 0.0 && !(0.1..=60.0).contains(&over) {
        return Err("invalid time interval for calculating average data rate".to_owned());
    }
    Ok(parse_rate(rate_text)? > 0.0)
}

fn split_at_slash(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn window(text: &str) -> Result<Option<u64>, String> {
    let bytes = parse_size(text)?;
    if bytes > WINDOW_MAX_BYTES {
        return Err(format!("socket buffer size too large (maximum = {WINDOW_MAX_BYTES} bytes)"));
    }
    Ok((bytes >= 1.0).then_some(bytes as u64))
}

fn processors(text: &str) -> Result<(Option<u32>, Option<u32>), String> {
    let valid = |number: Option<i64>| match number {
        Some(number @ 0..=1024) => Ok(u32::try_from(number).ok()),
        _ => Err("unable to set CPU affinity".to_owned()),
    };
    let server = text.split_once(',').map(|(_, behind)| valid(Some(integer(behind))));
    Ok((valid(any_base(text))?, server.transpose()?.flatten()))
}

/// Checks the keepalive times: keepalive is always on, with the kernel's times.
fn keepalive(text: &str) -> Result<(), String> {
    let mut parts = text.split('/').map(integer);
    let mut next = || parts.next().unwrap_or(0);
    let (idle, interval, count) = (next(), next(), next());
    if idle != 0 && idle <= count.saturating_mul(interval) {
        return Err("control connection Keepalive period should be larger than the full retry \
                    period (interval * count)"
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Iperf3Options, Mistake> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Iperf3Options::read(&words)
    }

    #[test]
    fn the_last_flag_wins_and_beginnings_and_other_names_are_flags() {
        let asked = read(
            "-c a -t 3 -l 1K --time=5 --len 2K -b 1M --bandwidth 7M/3 -C x \
                          --linux-congestion y --rev -i 2 --int 0.5 stray -c b -4 -6",
        )
        .expect("iperf3 takes it");
        assert_eq!(asked.role, Some(ProgramRole::Client("b".to_owned())));
        assert_eq!((asked.time_s, asked.length_bytes), (Some(5), Some(2048)));
        assert_eq!(asked.pace, Some(PaceOption { rate_bps: 7_000_000, burst: Some(3) }));
        assert_eq!(asked.congestion.as_deref(), Some("y"));
        assert!(asked.reverse && asked.ipv6 && !asked.ipv4);
        assert_eq!(asked.interval, Duration::from_millis(500));
    }

    #[test]
    fn a_device_stands_behind_a_percent_sign_and_a_zone_stays_where_it_is() {
        for (line, host, device) in [
            ("-c h%eth0", "h", Some("eth0")),
            ("-c fe80::1%eth0", "fe80::1%eth0", None),
            ("--bind-dev lo -c h", "h", Some("lo")),
        ] {
            let asked = read(line).expect("iperf3 takes it");
            assert_eq!(asked.role, Some(ProgramRole::Client(host.to_owned())), "{line}");
            assert_eq!(asked.device.as_deref(), device, "{line}");
        }
        let asked = read("-s -B 10.0.0.1%eth1").expect("iperf3 takes it");
        assert_eq!(
            (asked.bind.as_deref(), asked.device.as_deref()),
            (Some("10.0.0.1"), Some("eth1"))
        );
    }

    #[test]
    fn help_and_version_end_the_line() {
        assert_eq!(read("-c h -v -p 0").map(|asked| asked.role), Ok(Some(ProgramRole::Version)));
        assert_eq!(read("--he").map(|asked| asked.role), Ok(Some(ProgramRole::Help)));
    }
}
