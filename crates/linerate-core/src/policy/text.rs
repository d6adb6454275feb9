//! The policy file: TOML, every key checked.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::prefix::Prefix;
use crate::lab::{line_and_column, one_line};
use crate::schedule::Span;
use crate::time::WallTime;
use crate::units::{BitRate, Bytes, parse_span, print_span};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// SHA-256 of a token.
pub type TokenDigest = [u8; 32];

/// Rules of one file.
const RULES_MAX: usize = 1000;

/// Rules of a server's policy, as in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Bytes of payload that all tests of a day (UTC) may move, both directions together.
    #[serde(default, deserialize_with = "deserialize_bytes")]
    pub bytes_per_day: Option<Bytes>,
    /// Limits of the server's store; absent: it keeps everything.
    #[serde(default)]
    pub keep: Option<Keep>,
    /// Clients that are known by a token.
    #[serde(default, rename = "token")]
    pub tokens: Vec<TokenRow>,
    /// Rules in their order: the first whose clients match decides.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Limits of the single results in a store: each limit that is given holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// Results that are no older.
    #[serde(default)]
    pub time: Option<Span>,
    /// Largest number of results.
    #[serde(default)]
    pub count: Option<u64>,
    /// Largest sum of the records' bytes.
    #[serde(default, deserialize_with = "deserialize_bytes")]
    pub bytes: Option<Bytes>,
}

impl Keep {
    /// Age up to which results are kept, whatever the limits: others of the same test may still
    /// follow.
    pub const AT_LEAST: Duration = Duration::from_secs(3600);

    fn check_limits(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err("keep: it has time, count or bytes".to_owned());
        }
        match self.time.filter(|time| time.0 < Self::AT_LEAST) {
            Some(_) => Err("time: results are kept for 1h at least".to_owned()),
            None => Ok(()),
        }
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = self.time.map(|time| match (time.seconds() / DAY_S, time.seconds() % DAY_S) {
            (days, 0) => format!("for {days} d"),
            _ => format!("for {}", print_span(time.0)),
        });
        let count = self.count.map(|count| format!("{count} at most"));
        let bytes = self.bytes.map(|bytes| format!("{} of records at most", bytes.transferred()));
        let all: Vec<String> = [time, count, bytes].into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}

/// A token by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRow {
    /// Name of the token's client in rules.
    pub name: String,
    /// SHA-256 of the token.
    #[serde(deserialize_with = "digest")]
    pub sha256: TokenDigest,
    /// Time from which the token is refused.
    #[serde(default, deserialize_with = "time_of_day")]
    pub expires: Option<WallTime>,
}

/// Kind of a test, as far as a policy tells tests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestKind {
    /// Transfer of data over TCP.
    Tcp,
    /// Data over UDP, trains of datagrams among it.
    Udp,
    /// The path back to the client, hop by hop.
    Trace,
}

impl TestKind {
    /// The word for it in a policy.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Trace => "trace",
        }
    }
}

/// Program of a client, by its protocol; ttcp shares iperf 2's port and no byte distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The client of this program.
    Linerate,
    /// iperf 3.
    Iperf3,
    /// iperf 2 and ttcp.
    Iperf2,
    /// The client of nuttcp.
    Nuttcp,
    /// Browsers and other clients of HTTP.
    Http,
}

impl Program {
    /// The word for it in a policy.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf2",
            Self::Nuttcp => "nuttcp",
            Self::Http => "http",
        }
    }
}

/// Limits of some clients. A key that is absent sets no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the rule in refusals.
    pub name: String,
    /// Networks of its clients; empty: everybody.
    #[serde(default)]
    pub from: Vec<Prefix>,
    /// Token that the rule's clients show.
    #[serde(default)]
    pub token: Option<String>,
    /// Kinds of tests; absent: all.
    #[serde(default)]
    pub tests: Option<Vec<TestKind>>,
    /// Programs whose tests are allowed; absent: all.
    #[serde(default)]
    pub programs: Option<Vec<Program>>,
    /// Highest rate of one direction, all streams together.
    #[serde(default, deserialize_with = "deserialize_rate")]
    pub rate: Option<BitRate>,
    /// Longest time that a test may send.
    #[serde(default, deserialize_with = "deserialize_span")]
    pub time: Option<Duration>,
    /// Most streams of a test.
    #[serde(default)]
    pub streams: Option<u16>,
    /// Bytes of payload a day (UTC) for each client network (/24, /64).
    #[serde(default, deserialize_with = "deserialize_bytes")]
    pub bytes_per_client_per_day: Option<Bytes>,
    /// Networks that the server may measure to when these clients ask; empty: none.
    #[serde(default)]
    pub measure_to: Vec<Prefix>,
    /// True when they may list stored results.
    #[serde(default)]
    pub results: bool,
}

impl Policy {
    /// Reads and checks a policy.
    /// # Errors
    /// One line that begins with the line of the text: the key, what is wrong, what is allowed.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let policy: Self = crate::tree::from_toml(text).map_err(|error| {
            let offset = error.offset().unwrap_or(0);
            problem_with_line(text, offset, &one_line(error.message()))
        })?;
        policy.check_rules(text)?;
        Ok(policy)
    }

    fn check_rules(&self, text: &str) -> Result<(), String> {
        if self.rules.is_empty() || self.rules.len() > RULES_MAX {
            let count = self.rules.len();
            return Err(format!("line 1: {count} [[rule]]s; a policy has 1 to {RULES_MAX}"));
        }
        if let Some(Err(say)) = self.keep.as_ref().map(Keep::check_limits) {
            return Err(problem_with_line(text, text.find("[keep]").unwrap_or(0), &say));
        }
        let mut seen: Vec<&str> = Vec::new();
        let names = self
            .tokens
            .iter()
            .map(|token| &token.name)
            .chain(self.rules.iter().map(|rule| &rule.name));
        for (at, name) in names.enumerate() {
            if at == self.tokens.len() {
                seen.clear();
            }
            if name.is_empty() || seen.contains(&name.as_str()) {
                let say = format!("name {name:?}: names differ and are not empty");
                return Err(problem_with_line(text, last_line_with(text, name), &say));
            }
            seen.push(name);
        }
        for rule in &self.rules {
            let Some(token) = &rule.token else { continue };
            if !self.tokens.iter().any(|row| row.name == *token) {
                let known: Vec<&str> =
                    self.tokens.iter().map(|token| token.name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let say =
                    format!("token {token:?}: there is no [[token]] of that name, but {known}");
                return Err(problem_with_line(text, last_line_with(text, token), &say));
            }
        }
        Ok(())
    }
}

/// Offset of the last occurrence of a quoted word.
fn last_line_with(text: &str, word: &str) -> usize {
    text.rfind(&format!("\"{word}\"")).unwrap_or(0)
}

/// `line 5: rate: the problem`, with the key of that line.
fn problem_with_line(text: &str, offset: usize, say: &str) -> String {
    let (number, _) = line_and_column(text, offset);
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !key.is_empty() && key.chars().all(plain) && !say.starts_with(key) {
        true => format!("line {number}: {key}: {say}"),
        false => format!("line {number}: {say}"),
    }
}

/// A digest of 64 hexadecimal digits.
/// # Errors
/// One line with what it is.
pub fn parse_digest(text: &str) -> Result<TokenDigest, String> {
    let wrong = || "sha256 is 64 hexadecimal digits, as linerate policy token prints them";
    let digits: Vec<u32> =
        text.chars().map(|c| c.to_digit(16).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    let mut digest = [0; 32];
    if digits.len() != 2 * digest.len() {
        return Err(wrong().to_owned());
    }
    for (byte, pair) in digest.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::try_from(pair[0] * 16 + pair[1]).unwrap_or(0);
    }
    Ok(digest)
}

fn digest<'de, D: Deserializer<'de>>(from: D) -> Result<TokenDigest, D::Error> {
    parse_digest(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn time_of_day<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WallTime>, D::Error> {
    let text = String::deserialize(from)?;
    // No word that depends on today: a policy says the same on every day.
    let dated = text.starts_with(|c: char| c.is_ascii_digit()) && text.len() >= "2000-07-01".len();
    let wrong = || D::Error::custom(format!("{text:?} is no time; write 2027-01-31"));
    if !dated {
        return Err(wrong());
    }
    WallTime::from_user_text(&text, WallTime::from_unix_nanos(0)).map(Some).map_err(|_| wrong())
}

fn deserialize_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}

fn deserialize_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BitRate>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}

fn deserialize_span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parse_span(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}
