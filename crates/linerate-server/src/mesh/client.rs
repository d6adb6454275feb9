//! What an agent asks over HTTP: one request a connection, over TLS where the hub's address says
//! https. Waits and sizes are limited.

use std::io::{Read, Write};
use std::time::Duration;

use linerate_core::record::DEFAULT_PORT;
use linerate_engine::failure::words_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ask::{Authority, Host, connect};

/// For each read and write: a hub has 30 s for its answer.
const QUIET_MAX: Duration = Duration::from_secs(35);
/// An answer is a plan at the most.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// A hub's address: `https://hub.example:5210`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    secure: bool,
    host: Host,
}

impl std::str::FromStr for HubAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: a hub is https://HOST[:PORT] or http://HOST[:PORT]");
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        let host = Host::parse(rest.trim_end_matches('/'), DEFAULT_PORT).ok_or_else(wrong)?;
        Ok(Self { secure, host })
    }
}

impl std::fmt::Display for HubAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl HubAddress {
    /// Whether it is asked over TLS.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    fn authority(&self) -> String {
        self.host.with_port()
    }
}

/// Why there is no answer that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The hub was not reached, or was broken off: later, again.
    Away(String),
    /// It understood and refused: status and what it said.
    Refused(u16, String),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Away(say) => write!(f, "{say}"),
            Self::Refused(status, say) => write!(f, "{say} (HTTP {status})"),
        }
    }
}

/// A hub that can be asked.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) hub: HubAddress,
    pub(super) authority: Option<Authority>,
}

impl Client {
    /// Gets something.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str, secret: &str) -> Result<T, NoAnswer> {
        self.ask("GET", path, Some(secret), "")
    }

    /// Gives something.
    pub(super) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        secret: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, NoAnswer> {
        let body = serde_json::to_string(body).map_err(|it| NoAnswer::Away(it.to_string()))?;
        self.ask("POST", path, secret, &body)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        secret: Option<&str>,
        body: &str,
    ) -> Result<T, NoAnswer> {
        let away = |reason: String| NoAnswer::Away(format!("{}: {reason}", self.hub));
        let login = secret.map_or_else(String::new, |it| format!("Authorization: Bearer {it}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{login}Content-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.hub.authority(),
            body.len()
        );
        let bytes = self.talk(request.as_bytes()).map_err(|it| away(words_of(&it)))?;
        let (status, body) = parted(&bytes).ok_or_else(|| away("its answer is cut".to_owned()))?;
        if (200..300).contains(&status) {
            return serde_json::from_slice(body)
                .map_err(|error| away(format!("its answer makes no sense: {error}")));
        }
        let said: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let say = said["say"].as_str().unwrap_or("no reason was given").to_owned();
        match status {
            400..500 if status != 408 && status != 429 => Err(NoAnswer::Refused(status, say)),
            _ => Err(away(format!("{say} (HTTP {status})"))),
        }
    }

    fn talk(&self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = connect(&self.hub.host, QUIET_MAX)?;
        match &self.authority {
            None => exchange(&mut stream, request),
            Some(authority) => {
                let mut client = authority.client(&self.hub.host.name)?;
                exchange(&mut rustls::Stream::new(&mut client, &mut stream), request)
            }
        }
    }
}

fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut bytes = Vec::new();
    // A server may close without TLS's farewell once its answer is out: the length tells whether
    // it is whole.
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

/// Status and body of a whole answer (RFC 9112 §4, §6.2); none of one that is cut.
fn parted(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut length = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.next()?.1.trim().parse().ok()?;
    let body = &bytes[end + 4..];
    (body.len() == length).then_some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_has_a_scheme_a_host_and_perhaps_a_port() {
        let of = |text: &str| text.parse::<HubAddress>().map(|it| it.to_string());
        let is = |text: &str| Ok(text.to_owned());
        assert_eq!(of("https://hub.example"), is("https://hub.example:5210"));
        assert_eq!(of("http://192.0.2.1:80/"), is("http://192.0.2.1:80"));
        assert_eq!(of("https://[2001:db8::1]"), is("https://[2001:db8::1]:5210"));
        assert_eq!(of("https://[2001:db8::1]:9"), is("https://[2001:db8::1]:9"));
        for wrong in ["hub", "ftp://hub", "https://", "http://h:x", "http://h/p", "http://a b"] {
            assert!(wrong.parse::<HubAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_none() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nx: y\r\n\r\n{}\n";
        assert_eq!(parted(whole), Some((200, b"{}\n".as_slice())));
        for cut in 0..whole.len() {
            assert_eq!(parted(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(parted(b"HTTP/1.1 200 OK\r\n\r\n{}"), None, "without a length");
    }
}
