//! Which protocol the first bytes of a connection to the server's port are of.

use std::net::TcpStream;
use std::time::Duration;

use linerate_proto::http::{LOAD_PATH, Start, VISITOR_PATHS, start_of};
use linerate_sys::clock::{monotonic, sleep};

/// Pause between two looks at a line that goes on slowly.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of a request that tell whether it is one of load: the longest method, a space, and the
/// path before the token.
const TELLING: usize = 8 + LOAD_PATH.len();

/// Protocol that a connection's first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// HTTP, a stream of load.
    Load,
    /// HTTP, a speed test of another program.
    Visitor,
    /// HTTP, for any other request.
    Http,
    /// TLS, with HTTP in it.
    Tls,
    /// Neither HTTP nor TLS: a protocol of a measuring program.
    Other,
}

/// Looks at the first bytes without taking them, for at most `within`.
pub(crate) fn detect_protocol(stream: &TcpStream, within: Duration) -> Spoken {
    let until = monotonic() + within;
    let _ = stream.set_read_timeout(Some(within));
    let mut bytes = [0; TELLING];
    let mut seen = 0;
    loop {
        let Ok(count) = stream.peek(&mut bytes) else { return Spoken::Other };
        if count == 0 {
            return Spoken::Other;
        }
        if let Some(spoken) = spoken(&bytes[..count]) {
            return spoken;
        }
        if monotonic() >= until {
            // What cannot be told by then is told by whoever reads the rest.
            let http = start_of(&bytes[..count]) == Start::Http;
            return if http { Spoken::Http } else { Spoken::Other };
        }
        if count == seen {
            sleep(LOOK);
        }
        seen = count;
    }
}

fn spoken(bytes: &[u8]) -> Option<Spoken> {
    // A record of a handshake, and the version that all of them name first (RFC 8446 section 5.1).
    if let [0x16, rest @ ..] = bytes {
        let is_tls = |major: &u8| if *major == 3 { Spoken::Tls } else { Spoken::Other };
        return rest.first().map(is_tls);
    }
    match start_of(bytes) {
        Start::Other => return Some(Spoken::Other),
        Start::Unknown => return None,
        Start::Http => {}
    }
    let path = bytes.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or_default();
    let known = VISITOR_PATHS.iter().map(|path| (path.as_bytes(), Spoken::Visitor));
    let mut known = known.chain([(LOAD_PATH.as_bytes(), Spoken::Load)]);
    if let Some((_, spoken)) = known.clone().find(|(known, _)| path.starts_with(known)) {
        return Some(spoken);
    }
    if known.any(|(known, _)| known.starts_with(path)) { None } else { Some(Spoken::Http) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_told_by_as_few_bytes_as_decide() {
        for (bytes, expected) in [
            (b"LINERATE".as_slice(), Some(Spoken::Other)),
            (b"\x16", None),
            (b"\x16\x03\x01", Some(Spoken::Tls)),
            (b"\x16LINE", Some(Spoken::Other)),
            (b"G", None),
            (b"GET /", None),
            (b"GET /api/v1/lo", None),
            (b"GET /api/v1/load/", Some(Spoken::Load)),
            (b"POST /api/v1/load/00", Some(Spoken::Load)),
            (b"GET / HTTP/1.1", Some(Spoken::Http)),
            (b"GET /__do", None),
            (b"GET /__down?bytes=", Some(Spoken::Visitor)),
            (b"GET /ndt/v7/upload", Some(Spoken::Visitor)),
            (b"GET /throughput/v1", None),
            (b"GET /throughput/v1/d", Some(Spoken::Visitor)),
            (b"POST /backend/empty.php", Some(Spoken::Visitor)),
            (b"GET /updates", Some(Spoken::Http)),
            (b"DELETE /api/v1/runs/", Some(Spoken::Http)),
            (b"GETX", Some(Spoken::Other)),
        ] {
            assert_eq!(spoken(bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}
