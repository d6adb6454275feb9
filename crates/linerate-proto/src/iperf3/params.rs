//! Parameters of a test: the client's JSON after the state `parameter exchange`.

use serde_json::{Map, Value};

use super::json::{self, Object};
use super::{ErrorCode, STREAMS_MAX, WireError};

/// Bytes of the longest parameters that are read. Servers since 3.18 refuse more than 8 KiB; older
/// clients may send a longer title.
pub const PARAMS_BYTES_MAX: usize = 64 << 10;

const WHAT: &str = "parameters";
/// Prefix of `client_version` that marks a client of this program.
pub const CLIENT_NAME: &str = "linerate ";
/// Longest test in seconds: a day (MAX_TIME).
const TIME_MAX_S: u64 = 86_400;
/// Longest omitted time in seconds (MAX_OMIT_TIME).
const OMIT_MAX_S: u64 = 600;
/// Bytes of the largest block, 1 MiB (MAX_BLOCKSIZE).
const BLOCK_MAX_BYTES: u64 = 1 << 20;
/// Bytes of a UDP block: MIN_UDP_BLOCKSIZE to the largest UDP payload over IPv4.
const UDP_BLOCK_BYTES: std::ops::RangeInclusive<u64> = 16..=65_507;
/// Bytes of the largest socket buffer, 512 MiB (MAX_TCP_BUFFER).
const WINDOW_MAX_BYTES: u64 = 512 << 20;
/// Bytes of the largest segment in the newest versions (MAX_MSS).
const MSS_MAX_BYTES: u64 = 32_767;
/// Largest burst in datagrams or writes (MAX_BURST).
const BURST_MAX: u64 = 1000;

/// Transport protocol of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, the default.
    #[default]
    Tcp,
    /// UDP, with `udp`.
    Udp,
    /// SCTP, which linerate does not speak.
    Sctp,
}

/// The parameters of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Transport protocol of the data.
    pub protocol: Protocol,
    /// Omitted seconds at the start (`-O`).
    pub omit_s: u64,
    /// Seconds of sending after the omitted ones; 0 when bytes or blocks end the test.
    pub time_s: u64,
    /// Sum of the bytes of all streams of a direction that ends the test; 0 is no limit.
    pub bytes: u64,
    /// Sum of the blocks of all streams of a direction that ends the test; 0 is no limit.
    pub blocks: u64,
    /// Streams in each direction.
    pub parallel: u64,
    /// Bytes of a write, or of a datagram.
    pub block_bytes: Option<u64>,
    /// TCP maximum segment size.
    pub mss_bytes: Option<u64>,
    /// Socket option TCP_NODELAY.
    pub nodelay: bool,
    /// The server sends (`-R`).
    pub reverse: bool,
    /// Both ends send (`--bidir`).
    pub bidirectional: bool,
    /// Bytes of the socket buffers (`-w`).
    pub window_bytes: Option<u64>,
    /// Pace of each stream in bit/s.
    pub rate_bps: Option<u64>,
    /// Datagrams or writes in one burst within that pace.
    pub burst: Option<u64>,
    /// Rate to which the sender's kernel paces each stream, in bit/s (SO_MAX_PACING_RATE).
    pub fq_rate_bps: Option<u64>,
    /// Processor to which the server is to bind (`-A`).
    pub server_affinity: Option<u64>,
    /// Type of service octet.
    pub tos: Option<u64>,
    /// TCP congestion control (`-C`).
    pub congestion: Option<String>,
    /// Prefix of the client's printed lines (`-T`).
    pub title: Option<String>,
    /// Text that the server adds to its JSON (`--extra-data`).
    pub extra_data: Option<String>,
    /// The server sends its printed output with the results.
    pub get_server_output: bool,
    /// Datagrams carry 64-bit numbers.
    pub udp_counters_64bit: bool,
    /// Send by sendfile(2) (`-Z`).
    pub zerocopy: bool,
    /// Encrypted credentials, in base64.
    pub auth_token: Option<String>,
    /// Version of the client.
    pub client_version: Option<String>,
}

/// Parameters outside iperf3's bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} of {value} is outside {bounds}")]
pub struct ParamsError {
    /// iperf3's number for the error.
    pub code: ErrorCode,
    /// JSON key of the parameter.
    pub key: &'static str,
    /// Value of the parameter.
    pub value: u64,
    /// Text of the allowed range.
    pub bounds: &'static str,
}

impl Params {
    /// Parses the JSON text.
    /// # Errors
    /// [`WireError::Json`] and [`WireError::Field`]; [`Params::check_bounds`] checks the bounds.
    pub fn parse(text: &[u8]) -> Result<Self, WireError> {
        let map = json::read(WHAT, text)?;
        let object = Object::new(WHAT, &map);
        let protocol = match (object.flag_field("udp")?, object.flag_field("sctp")?) {
            (true, _) => Protocol::Udp,
            (_, true) => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Ok(Self {
            protocol,
            omit_s: object.count_field("omit")?.unwrap_or(0),
            time_s: object.count_field("time")?.unwrap_or(0),
            bytes: object.count_field("num")?.unwrap_or(0),
            blocks: object.count_field("blockcount")?.unwrap_or(0),
            parallel: object.count_field("parallel")?.unwrap_or(1),
            block_bytes: object.count_field("len")?.filter(|bytes| *bytes > 0),
            mss_bytes: object.count_field("MSS")?.filter(|bytes| *bytes > 0),
            nodelay: object.flag_field("nodelay")?,
            reverse: object.flag_field("reverse")?,
            bidirectional: object.flag_field("bidirectional")?,
            window_bytes: object.count_field("window")?.filter(|bytes| *bytes > 0),
            rate_bps: object.count_field("bandwidth")?.filter(|rate| *rate > 0),
            burst: object.count_field("burst")?.filter(|burst| *burst > 0),
            fq_rate_bps: object.count_field("fqrate")?.filter(|rate| *rate > 0),
            server_affinity: object.count_field("server_affinity")?,
            tos: object.count_field("TOS")?,
            congestion: object.text_field("congestion")?,
            title: object.text_field("title")?,
            extra_data: object.text_field("extra_data")?,
            get_server_output: object.flag_field("get_server_output")?,
            udp_counters_64bit: object.flag_field("udp_counters_64bit")?,
            zerocopy: object.flag_field("zerocopy")?,
            auth_token: object.text_field("authtoken")?,
            client_version: object.text_field("client_version")?,
        })
    }

    /// The JSON text. Servers since 3.18 check the types: true for the first flags, 1 for the later
    /// ones.
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

    /// iperf3's number for a test longer than the server allows: of those that the client knows,
    /// the nearest whose text is true. That of iperf3's own limit names the 86400 s of the client.
    pub fn too_long(&self) -> ErrorCode {
        let knows = self.is_own() || self.is_since(20);
        if knows { ErrorCode::LONGER_THAN_ALLOWED } else { self.expired() }
    }

    /// iperf3's number for a test that the server ends because it took too long, by the same rule:
    /// 142 is known since 3.2.
    pub fn expired(&self) -> ErrorCode {
        if self.is_own() || self.is_since(17) {
            ErrorCode::EXPIRED
        } else if self.is_since(2) {
            ErrorCode::AUTHENTICATION
        } else {
            ErrorCode::NEW_TEST
        }
    }

    /// True if the client is this program, which ends a test when all data has arrived.
    pub fn is_own(&self) -> bool {
        self.client_version.as_ref().is_some_and(|version| version.starts_with(CLIENT_NAME))
    }

    /// True if bytes count only until the client's `test end`: iperf3's own client leaves later
    /// bytes unread.
    pub fn counts_as_it_ended(&self) -> bool {
        self.bytes == 0 && self.blocks == 0 && !self.is_own()
    }

    /// True if the client is iperf3 3.`minor` or later.
    fn is_since(&self, minor: u32) -> bool {
        let version = self.client_version.as_deref().and_then(|version| version.split_once('.'));
        let Some((major, rest)) = version else { return false };
        let own = rest.split(|c: char| !c.is_ascii_digit()).next();
        let own = own.and_then(|digits| digits.parse().ok());
        match major.parse::<u32>() {
            Ok(3) => own.is_some_and(|own: u32| own >= minor),
            Ok(major) => major > 3,
            Err(_) => false,
        }
    }

    /// Checks the values against iperf3's bounds; a server may have lower limits.
    /// # Errors
    /// The first value out of bounds, with iperf3's number for it.
    pub fn check_bounds(&self) -> Result<(), ParamsError> {
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
