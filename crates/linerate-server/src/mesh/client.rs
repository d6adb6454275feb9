//! What an agent asks over HTTP: one request a connection, over TLS where the hub's address says
//! https. Waits and sizes are limited.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::record::{DEFAULT_PORT, Failure, Fault};
use linerate_engine::failure::words_of;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// For each read and write: a hub has 30 s for its answer.
const QUIET_MAX: Duration = Duration::from_secs(35);
/// An answer is a plan at the most.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Where systems keep the certificates of authorities: Debian, Fedora.
const AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// A hub's address: `https://hub.example:5210`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    secure: bool,
    host: String,
    port: u16,
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
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(wrong());
        }
        let port = port.map_or(Ok(DEFAULT_PORT), |text| text.parse().map_err(|_| wrong()))?;
        Ok(Self { secure, host: host.to_owned(), port })
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
        let (host, port) = (&self.host, self.port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// Who is believed about a hub's certificate.
#[derive(Clone, Debug)]
pub struct Authority(Arc<ClientConfig>);

impl Authority {
    /// The authorities of a file (PEM), or those of this host.
    /// # Errors
    /// When the file cannot be read or has none.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let usual = || AUTHORITIES.iter().map(Path::new).find(|path| path.exists());
        let path = file.or_else(usual).unwrap_or_else(|| Path::new(AUTHORITIES[0]));
        let failed = |reason: &dyn std::fmt::Display| {
            let object = path.display().to_string();
            Failure::new(Fault::Usage, "read authorities", object, reason)
                .advise("--ca FILE names the certificate (PEM) that vouches for the hub's")
        };
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| failed(&error))?;
            // This host's bundle may have one of a kind that is not understood.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err(failed(&"it has no certificate of an authority"));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| failed(&error))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(Arc::new(config)))
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
        let mut stream = self.connect()?;
        match &self.authority {
            None => exchange(&mut stream, request),
            Some(Authority(config)) => {
                let name = ServerName::try_from(self.hub.host.clone());
                let name = name.map_err(std::io::Error::other)?;
                let client = ClientConnection::new(Arc::clone(config), name);
                let mut client = client.map_err(std::io::Error::other)?;
                exchange(&mut rustls::Stream::new(&mut client, &mut stream), request)
            }
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("it has no address");
        for address in (self.hub.host.as_str(), self.hub.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(QUIET_MAX))?;
                    stream.set_write_timeout(Some(QUIET_MAX))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
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
