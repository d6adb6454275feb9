//! What a client asks for: the JSON that follows the state `parameter exchange`.

use serde_json::{Map, Value};

use super::json::{self, Object};
use super::{ErrorCode, STREAMS_MAX, WireError};

/// Longest parameters that are read. Servers since 3.18 refuse more than 8 KiB; older clients may
/// send a longer title.
pub const PARAMS_BYTES_MAX: usize = 64 << 10;

const WHAT: &str = "parameters";
/// How the version of a client of this program begins.
pub const CLIENT_NAME: &str = "linerate ";
/// A day: MAX_TIME.
const TIME_MAX_S: u64 = 86_400;
/// MAX_OMIT_TIME.
const OMIT_MAX_S: u64 = 600;
/// MAX_BLOCKSIZE, 1 MiB.
const BLOCK_MAX_BYTES: u64 = 1 << 20;
/// MIN_UDP_BLOCKSIZE and the largest UDP payload over IPv4.
const UDP_BLOCK_BYTES: std::ops::RangeInclusive<u64> = 16..=65_507;
/// MAX_TCP_BUFFER, 512 MiB.
const WINDOW_MAX_BYTES: u64 = 512 << 20;
/// MAX_MSS of the newest versions.
const MSS_MAX_BYTES: u64 = 32_767;
/// MAX_BURST.
const BURST_MAX: u64 = 1000;

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, also where nothing is named.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, which linerate does not speak.
    Sctp,
}

/// The parameters of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// What carries the data.
    pub protocol: Protocol,
    /// Seconds at the start that do not count.
    pub omit_s: u64,
    /// Seconds of sending after those; 0 when bytes or blocks end the test.
    pub time_s: u64,
    /// Bytes of all streams of a direction together; 0 is none.
    pub bytes: u64,
    /// Blocks of all streams of a direction together; 0 is none.
    pub blocks: u64,
    /// Streams in each direction.
    pub parallel: u64,
    /// Bytes of a write, or of a datagram.
    pub block_bytes: Option<u64>,
    /// Segment size.
    pub mss_bytes: Option<u64>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// The server sends.
    pub reverse: bool,
    /// Both ends send.
    pub bidirectional: bool,
    /// Socket buffers.
    pub window_bytes: Option<u64>,
    /// Pace of each stream in bit/s.
    pub rate_bps: Option<u64>,
    /// Datagrams or writes at once within that pace.
    pub burst: Option<u64>,
    /// Rate that the sending kernel holds each stream to, in bit/s (SO_MAX_PACING_RATE).
    pub fq_rate_bps: Option<u64>,
    /// The processor that the server's end runs on.
    pub server_affinity: Option<u64>,
    /// Type of service octet.
    pub tos: Option<u64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Prefix of the client's lines.
    pub title: Option<String>,
    /// A text that goes into the server's JSON.
    pub extra_data: Option<String>,
    /// Send what the server printed with the results.
    pub get_server_output: bool,
    /// Datagrams carry 64-bit numbers.
    pub udp_counters_64bit: bool,
    /// Send by sendfile.
    pub zerocopy: bool,
    /// Encrypted credentials.
    pub auth_token: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
}

/// Parameters outside iperf3's bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} of {value} is outside {bounds}")]
pub struct ParamsError {
    /// The number to answer with.
    pub code: ErrorCode,
    /// The key.
    pub key: &'static str,
    /// What was asked.
    pub value: u64,
    /// What is allowed.
    pub bounds: &'static str,
}

impl Params {
    /// Reads the JSON text.
    /// # Errors
    /// [`WireError::Json`] and [`WireError::Field`]; bounds are a matter of [`Params::check`].
    pub fn parse(text: &[u8]) -> Result<Self, WireError> {
        let map = json::read(WHAT, text)?;
        let object = Object::new(WHAT, &map);
        let protocol = match (object.flag("udp")?, object.flag("sctp")?) {
            (true, _) => Protocol::Udp,
            (_, true) => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Ok(Self {
            protocol,
            omit_s: object.count("omit")?.unwrap_or(0),
            time_s: object.count("time")?.unwrap_or(0),
            bytes: object.count("num")?.unwrap_or(0),
            blocks: object.count("blockcount")?.unwrap_or(0),
            parallel: object.count("parallel")?.unwrap_or(1),
            block_bytes: object.count("len")?.filter(|bytes| *bytes > 0),
            mss_bytes: object.count("MSS")?.filter(|bytes| *bytes > 0),
            nodelay: object.flag("nodelay")?,
            reverse: object.flag("reverse")?,
            bidirectional: object.flag("bidirectional")?,
            window_bytes: object.count("window")?.filter(|bytes| *bytes > 0),
            rate_bps: object.count("bandwidth")?.filter(|rate| *rate > 0),
            burst: object.count("burst")?.filter(|burst| *burst > 0),
            fq_rate_bps: object.count("fqrate")?.filter(|rate| *rate > 0),
            server_affinity: object.count("server_affinity")?,
            tos: object.count("TOS")?,
            congestion: object.text("congestion")?,
            title: object.text("title")?,
            extra_data: object.text("extra_data")?,
            get_server_output: object.flag("get_server_output")?,
            udp_counters_64bit: object.flag("udp_counters_64bit")?,
            zerocopy: object.flag("zerocopy")?,
            auth_token: object.text("authtoken")?,
            client_version: object.text("client_version")?,
        })
    }

    /// The JSON text. Types are those that servers since 3.18 check: true for choices of the test,
    /// 1 for the later switches.
    pub fn to_json(&self) -> String {
        let mut map = Map::new();
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        map.insert(protocol.to_owned(), Value::Bool(true));
        let always = [
            ("omit", self.omit_s),
            ("time", self.time_s),
            ("num", self.bytes),
            ("blockcount", self.blocks),
            ("parallel", self.parallel),
            // The step of iperf3's own pacing, in microseconds; every version sends it.
            ("pacing_timer", 1000),
        ];
        let numbers = [
            ("len", self.block_bytes),
            ("MSS", self.mss_bytes),
            ("window", self.window_bytes),
            ("bandwidth", self.rate_bps),
            ("burst", self.burst),
            ("fqrate", self.fq_rate_bps),
            ("server_affinity", self.server_affinity),
            ("TOS", self.tos),
        ];
        let present = numbers.into_iter().filter_map(|(key, value)| Some((key, value?)));
        for (key, value) in always.into_iter().chain(present) {
            map.insert(key.to_owned(), value.into());
        }
        let choices = [
            ("nodelay", self.nodelay),
            ("reverse", self.reverse),
            ("bidirectional", self.bidirectional),
        ];
        let switches = [
            ("get_server_output", self.get_server_output),
            ("udp_counters_64bit", self.udp_counters_64bit),
            ("zerocopy", self.zerocopy),
        ];
        let choices = choices.map(|(key, on)| (key, on, Value::Bool(true)));
        for (key, on, value) in choices.into_iter().chain(switches.map(|(k, on)| (k, on, 1.into())))
        {
            if on {
                map.insert(key.to_owned(), value);
            }
        }
        let texts = [
            ("congestion", &self.congestion),
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("authtoken", &self.auth_token),
            ("client_version", &self.client_version),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                map.insert(key.to_owned(), text.as_str().into());
            }
        }
        Value::Object(map).to_string()
    }

    /// The number that says best that the server allows no test so long: a client before 3.20 has
    /// words only for the bounds that iperf3 itself has.
    pub fn too_long(&self) -> ErrorCode {
        let knows = self.is_own() || self.is_since(20);
        if knows { ErrorCode::LONGER_THAN_ALLOWED } else { ErrorCode::DURATION }
    }

    /// What is said of a test that has taken as long as it may.
    pub fn expired(&self) -> ErrorCode {
        let knows = self.is_own() || self.is_since(17);
        if knows { ErrorCode::EXPIRED } else { ErrorCode::DURATION }
    }

    /// Whether the client is this program, which ends a test when all has arrived.
    pub fn is_own(&self) -> bool {
        self.client_version.as_ref().is_some_and(|version| version.starts_with(CLIENT_NAME))
    }

    /// Whether what counts is what has come when the client says that the test is over: iperf3's
    /// own client leaves the rest unread.
    pub fn counts_as_it_ended(&self) -> bool {
        self.bytes == 0 && self.blocks == 0 && !self.is_own()
    }

    /// Whether the client is iperf3 of version 3.`minor` or later.
    fn is_since(&self, minor: u32) -> bool {
        let version = self.client_version.as_deref().and_then(|version| version.split_once('.'));
        let Some((major, rest)) = version else { return false };
        let own = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|it| it.parse().ok());
        match major.parse::<u32>() {
            Ok(3) => own.is_some_and(|own: u32| own >= minor),
            Ok(major) => major > 3,
            Err(_) => false,
        }
    }

    /// Holds the values against iperf3's own bounds; a server's limits come on top.
    /// # Errors
    /// The first value out of bounds, with the number that iperf3 has for it.
    pub fn check(&self) -> Result<(), ParamsError> {
        let fail = |code, key, value, bounds| Err(ParamsError { code, key, value, bounds });
        let within = |code, key, value: Option<u64>, low, high, bounds| match value {
            Some(value) if !(low..=high).contains(&value) => fail(code, key, value, bounds),
            _ => Ok(()),
        };
        let streams = u64::from(STREAMS_MAX);
        within(ErrorCode::STREAMS, "parallel", Some(self.parallel), 1, streams, "1 … 128")?;
        within(ErrorCode::DURATION, "time", Some(self.time_s), 0, TIME_MAX_S, "0 … 86400 s")?;
        within(ErrorCode::OMIT, "omit", Some(self.omit_s), 0, OMIT_MAX_S, "0 … 600 s")?;
        let block = self.block_bytes;
        if self.protocol == Protocol::Udp {
            let (low, high) = UDP_BLOCK_BYTES.into_inner();
            within(ErrorCode::UDP_BLOCK, "len", block, low, high, "16 … 65507 bytes")?;
        } else {
            within(ErrorCode::BLOCK, "len", block, 1, BLOCK_MAX_BYTES, "1 byte … 1 MiB")?;
        }
        let (window, mss) = (self.window_bytes, self.mss_bytes);
        within(ErrorCode::BUFFER, "window", window, 1, WINDOW_MAX_BYTES, "1 byte … 512 MiB")?;
        within(ErrorCode::MSS, "MSS", mss, 1, MSS_MAX_BYTES, "1 … 32767 bytes")?;
        within(ErrorCode::BURST, "burst", self.burst, 1, BURST_MAX, "1 … 1000")?;
        within(ErrorCode::TOS, "TOS", self.tos, 0, 255, "0 … 255")?;
        if self.reverse && self.bidirectional {
            return fail(ErrorCode::REVERSE_AND_BOTH, "reverse", 1, "tests that go one way");
        }
        Ok(())
    }
}
