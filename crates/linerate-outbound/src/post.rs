//! A body handed on by HTTP's POST (RFC 9110), over TLS where the address says https. Redirections
//! are not followed.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use linerate_core::record::BuildPart;
use linerate_core::time::MonoTime;
use linerate_sys::clock::monotonic;
use linerate_sys::words_of;

use super::status::status;
use super::{Host, connect};

/// For the connection, and for each write and read.
const QUIET: Duration = Duration::from_secs(15);
/// For all of an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Bytes that are read of an answer: its status is enough.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Parts of an address `https://HOST[:PORT]/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    secure: bool,
    host: Host,
    path: String,
}

fn parsed(url: &str) -> Result<Address, String> {
    let wrong = || format!("{url:?}: an address is https://HOST[:PORT]/PATH");
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (secure, port) = match scheme {
        "https" => (true, 443),
        "http" => (false, 80),
        _ => return Err(wrong()),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = Host::parse(host, port).ok_or_else(wrong)?;
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Address { secure, host, path })
}

/// Checks that a body can be posted to an address.
/// # Errors
/// One line where the address is none, or needs TLS and this program has none.
pub fn check_url(url: &str) -> Result<(), String> {
    usable(url, cfg!(feature = "tls"))
}

/// The same in a program with TLS or without.
fn usable(url: &str, has_tls: bool) -> Result<(), String> {
    let address = parsed(url)?;
    match address.secure && !has_tls {
        true => Err(format!("{url:?}: {}", BuildPart::Tls.refusal())),
        false => Ok(()),
    }
}

/// The host of an address, as it is shown.
/// # Errors
/// One line where the address is none.
pub fn url_host(url: &str) -> Result<String, String> {
    parsed(url).map(|address| address.host.to_string())
}

/// Posts a body with these headers, over TLS to who shows a certificate of this host's authorities,
/// or of a file's; the status of the answer.
/// # Errors
/// One line where no answer came.
pub fn post_body(
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    authority: Option<&Path>,
) -> Result<u16, String> {
    let address = parsed(url)?;
    let at = address.host.to_string();
    let headers: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {at}\r\nUser-Agent: linerate/{}\r\n{}\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        address.path,
        env!("CARGO_PKG_VERSION"),
        headers.concat(),
        body.len(),
    );
    let request = [head.as_bytes(), body].concat();
    connect_and_send(&address, &request, authority).map_err(|error| format!("{at}: {error}"))
}

fn connect_and_send(
    address: &Address,
    request: &[u8],
    authority: Option<&Path>,
) -> Result<u16, String> {
    let words = |error: std::io::Error| words_of(&error);
    let mut stream = connect(&address.host, QUIET).map_err(words)?;
    let until = monotonic() + ANSWER_WITHIN;
    if !address.secure {
        return send_and_read_status(&mut stream, request, until);
    }
    #[cfg(feature = "tls")]
    {
        let authority = super::Authority::read(authority).map_err(|error| error.to_string())?;
        let mut client = authority.client(&address.host.name).map_err(words)?;
        send_and_read_status(&mut rustls::Stream::new(&mut client, &mut stream), request, until)
    }
    #[cfg(not(feature = "tls"))]
    {
        let _ = authority;
        Err(BuildPart::Tls.refusal())
    }
}

/// Sends a request and reads as far as the status of the answer.
fn send_and_read_status(
    stream: &mut (impl Read + Write),
    request: &[u8],
    until: MonoTime,
) -> Result<u16, String> {
    let words = |error: std::io::Error| words_of(&error);
    stream.write_all(request).and_then(|()| stream.flush()).map_err(words)?;
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES_MAX && monotonic() < until {
        let mut part = [0; 1024];
        let count = match stream.read(&mut part) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // TLS that ends without its farewell.
            Err(error) if bytes.is_empty() => return Err(words(error)),
            Err(_) | Ok(0) => break,
            Ok(count) => count,
        };
        bytes.extend_from_slice(&part[..count]);
        match status(&bytes) {
            Some(100..200) | None => {}
            Some(status) => return Ok(status),
        }
    }
    Err("no answer of HTTP came".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_what_is_none_is_refused() {
        let of = |url: &str| {
            parsed(url).map(|address| (address.secure, address.host.to_string(), address.path)).ok()
        };
        let is = |secure, host: &str, path: &str| Some((secure, host.to_owned(), path.to_owned()));
        assert_eq!(of("https://hooks.example/a/b?c=d"), is(true, "hooks.example", "/a/b?c=d"));
        assert_eq!(of("https://hooks.example:8443"), is(true, "hooks.example:8443", "/"));
        assert_eq!(of("http://[2001:db8::1]:80/x#y"), is(false, "[2001:db8::1]", "/x"));
        assert_eq!(of("http://h?q"), is(false, "h", "/?q"));
        for wrong in ["h", "ftp://h", "https://", "http://h:x/", "http://a b/"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn without_tls_an_address_of_https_is_refused_in_a_line_and_one_of_http_is_not() {
        let expected = "\"https://h/\": this program was built without TLS; use the program of a \
                        package, or build all of it: ./dev build full";
        assert_eq!(usable("https://h/", false), Err(expected.to_owned()));
        assert_eq!([usable("http://h/", false), usable("https://h/", true)], [Ok(()), Ok(())]);
    }
}
