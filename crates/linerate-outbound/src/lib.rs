//! Connections that this program opens by itself, other than to measure: a host and its port, with
//! limits, TLS where it is built in, and a body by HTTP's POST. Alerts, exports, certificates, the
//! hub's database and the hub of an agent are reached by it.

#[cfg(feature = "tls")]
mod authority;
#[cfg(not(feature = "tls"))]
#[path = "no_authority.rs"]
mod authority;
#[cfg(all(test, feature = "tls"))]
#[path = "no_authority.rs"]
#[allow(dead_code, unreachable_pub, reason = "its refusals alone are tested")]
mod no_authority;
pub mod post;
mod status;

pub use authority::Authority;

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A connection is there within this.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A host by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name or address, without the brackets of an IPv6 address.
    pub name: String,
    /// The port, the usual one where none was given.
    pub port: u16,
    usual: u16,
}

impl Host {
    /// Reads `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`; nothing where the text is none of them.
    pub fn parse(text: &str, usual: u16) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, Some(port.strip_prefix(':')?)),
            None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            return None;
        }
        let port = port.map_or(Some(usual), |text| text.parse().ok())?;
        Some(Self { name: name.to_owned(), port, usual })
    }

    /// With its port, as `Host:` of HTTP may have it always.
    pub fn with_port(&self) -> String {
        let (name, port) = (&self.name, self.port);
        if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.port == self.usual, self.name.contains(':')) {
            (false, _) => write!(f, "{}", self.with_port()),
            (true, true) => write!(f, "[{}]", self.name),
            (true, false) => write!(f, "{}", self.name),
        }
    }
}

/// Connects to one of the host's addresses; each read and write takes so long at most.
/// # Errors
/// When the host has no address, or none that answers.
pub fn connect(host: &Host, quiet: Duration) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("it has no address");
    for address in (host.name.as_str(), host.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(stream) => {
                stream.set_read_timeout(Some(quiet))?;
                stream.set_write_timeout(Some(quiet))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
