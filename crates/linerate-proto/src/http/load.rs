//! HTTP paths of the load streams, and the heads of the responses.

use linerate_core::record::Direction;

use super::Head;
use crate::native::Token;

/// Path of load streams, up to the token.
pub const LOAD_PATH: &str = "/api/v1/load/";

/// A load stream by its path: `/api/v1/load/TOKEN/down/N` or `…/up/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadTarget {
    /// Secret token of the run.
    pub token: Token,
    /// Direction of the data.
    pub direction: Direction,
    /// Number of the stream within the direction.
    pub stream: u16,
}

/// Reason for which a request names no load stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadTargetError {
    /// The path does not have the form of a load stream.
    #[error("there is no such path")]
    Path,
    /// The method does not match the direction: GET for down, POST for up.
    #[error("down is for GET, up for POST")]
    Method,
}

impl LoadTarget {
    /// Parses the path of a request.
    /// # Errors
    /// When path or method are not those of a load stream.
    pub fn from_head(head: &Head) -> Result<Self, LoadTargetError> {
        let rest = head.target_path().strip_prefix(LOAD_PATH).ok_or(LoadTargetError::Path)?;
        let mut parts = rest.split('/');
        let mut next = || parts.next().ok_or(LoadTargetError::Path);
        let (token, direction, stream) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(LoadTargetError::Path);
        }
        let (direction, method) = match direction {
            "down" => (Direction::Down, "GET"),
            "up" => (Direction::Up, "POST"),
            _ => return Err(LoadTargetError::Path),
        };
        let digits =
            (1..=5).contains(&stream.len()) && stream.bytes().all(|byte| byte.is_ascii_digit());
        let stream = stream.parse().ok().filter(|_| digits).ok_or(LoadTargetError::Path)?;
        let token = Token::from_hex(token).ok_or(LoadTargetError::Path)?;
        if head.method != method {
            return Err(LoadTargetError::Method);
        }
        Ok(Self { token, direction, stream })
    }
}

/// Response head of a download stream: no Content-Length, so the body ends with the connection
/// (RFC 9112 §6.3), and neither caches nor proxies may store or compress it. A page of any origin
/// may read it: only an admitted client has the token, and the payload is random.
pub fn load_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\
      Cache-Control: no-store, no-transform\r\nX-Content-Type-Options: nosniff\r\n\
      Cross-Origin-Resource-Policy: same-origin\r\nAccess-Control-Allow-Origin: *\r\n\
      Connection: close\r\n\r\n"
        .to_vec()
}

/// A whole JSON response: status line, fields and `body`, which a page of any origin may read.
pub fn json_response(status: u16, body: &str, closes: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        431 => "Request Header Fields Too Large",
        _ => "Error",
    };
    let connection = if closes { "close" } else { "keep-alive" };
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Access-Control-Allow-Origin: *\r\nConnection: {connection}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

    fn parsed(method: &str, target: &str) -> Result<LoadTarget, LoadTargetError> {
        let (method, target) = (method.to_owned(), target.to_owned());
        LoadTarget::from_head(&Head { method, target, ..Head::default() })
    }

    #[test]
    fn a_path_names_run_direction_and_stream() {
        let token = Token(std::array::from_fn(|at| at as u8));
        let down = parsed("GET", &format!("/api/v1/load/{TOKEN}/down/3?cache=7"));
        assert_eq!(down, Ok(LoadTarget { token, direction: Direction::Down, stream: 3 }));
        let up = parsed("POST", &format!("/api/v1/load/{TOKEN}/up/0"));
        assert_eq!(up, Ok(LoadTarget { token, direction: Direction::Up, stream: 0 }));
    }

    #[test]
    fn what_is_no_stream_is_told_by_path_or_method() {
        for target in ["/api/v1/load/", "/api/v1/load/12/down/0", "/other", "/api/v1/load"] {
            assert_eq!(parsed("GET", target), Err(LoadTargetError::Path), "{target}");
        }
        for rest in ["down", "down/", "down/-1", "down/+1", "down/65536", "down/1/2", "side/1"] {
            let target = format!("/api/v1/load/{TOKEN}/{rest}");
            assert_eq!(parsed("GET", &target), Err(LoadTargetError::Path), "{target}");
        }
        assert_eq!(
            parsed("POST", &format!("/api/v1/load/{TOKEN}/down/0")),
            Err(LoadTargetError::Method)
        );
    }

    #[test]
    fn the_heads_of_answers_are_heads_of_http() {
        let check = |bytes: &[u8], status| {
            let mut fields = [httparse::EMPTY_HEADER; 16];
            let mut response = httparse::Response::new(&mut fields);
            assert!(response.parse(bytes).is_ok_and(|parsed| parsed.is_complete()));
            assert_eq!(response.code, Some(status));
        };
        check(&load_head(), 200);
        check(&json_response(411, "{}", true), 411);
    }
}
