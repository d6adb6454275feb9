//! The head of an HTTP/1 request: the request line and the fields, up to the empty line.

/// Bytes of the longest head that is read: twice the default of common servers, because other
/// programs on the same host name may have set large cookies.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most fields of a head.
const FIELDS_MAX: usize = 64;
/// Most characters of a field that are kept for the record.
const KEPT_MAX: usize = 200;

/// Methods of requests (RFC 9110 §9.3, RFC 5789), each with the space that follows it.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
];

/// Protocol of a connection by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A request of HTTP/1.
    Http,
    /// Too few bytes to decide.
    Unknown,
    /// Another protocol than HTTP/1.
    Other,
}

/// Decides by the first bytes of a connection if its client speaks HTTP/1.
pub fn start_of(bytes: &[u8]) -> Start {
    if METHODS.iter().any(|method| bytes.starts_with(method)) {
        return Start::Http;
    }
    let may_become = METHODS.iter().any(|method| method.starts_with(bytes));
    if may_become { Start::Unknown } else { Start::Other }
}

/// Reason for which a head is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The head is longer than [`HEAD_BYTES_MAX`] bytes.
    #[error("a head of more than {HEAD_BYTES_MAX} bytes")]
    TooLong,
    /// The bytes are no head of HTTP/1.
    #[error("no head of HTTP/1: {0}")]
    Malformed(String),
    /// Content-Length is no number, or two differ (RFC 9112 §6.3: request smuggling or a fault).
    #[error("Content-Length that is no number, or more than one")]
    Length,
    /// The body is chunked, and the framing of chunks would count as payload.
    #[error("a body without Content-Length")]
    Chunked,
}

/// A parsed request head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The method, as sent.
    pub method: String,
    /// Request target: path and query.
    pub target: String,
    /// Bytes of the head, including its empty line.
    pub head_bytes: usize,
    /// Bytes of the body, from Content-Length.
    pub body_bytes: u64,
    /// The client waits for "100 Continue" before its body (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// The client keeps the connection after the answer (RFC 9112 §9.3).
    pub keeps_alive: bool,
    /// The User-Agent field, cut to 200 characters.
    pub user_agent: Option<String>,
    /// The Host field in lower case (RFC 9110 §7.2).
    pub host: String,
    /// The Origin field in lower case: the page on whose behalf a browser asks (RFC 6454 §7).
    pub origin: Option<String>,
    /// Sec-WebSocket-Key of a request for a WebSocket (RFC 6455 §4.1).
    pub websocket_key: Option<String>,
    /// Sec-WebSocket-Protocol: the subprotocols that the client offers, as sent.
    pub websocket_protocols: String,
}

impl Head {
    /// Parses the head at the start of `bytes`; `None` while its empty line has not arrived.
    /// # Errors
    /// When the bytes cannot become a head, or the head does not state the length of its body.
    /// # Source
    /// RFC 9112 §2 to §6; httparse splits lines and fields.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
        let head_bytes = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => {
                return Err(HeadError::TooLong);
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(HeadError::Malformed(error.to_string())),
        };
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            head_bytes,
            keeps_alive: request.version == Some(1),
            ..Self::default()
        };
        let mut length = None;
        for field in request.headers.iter() {
            head.add_field(field.name, field.value, &mut length)?;
        }
        head.body_bytes = length.unwrap_or(0);
        Ok(Some(head))
    }

    /// Adds one field; fields that this program does not use are ignored.
    fn add_field(
        &mut self,
        name: &str,
        value: &[u8],
        length: &mut Option<u64>,
    ) -> Result<(), HeadError> {
        let text = String::from_utf8_lossy(value);
        let text = text.trim();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("content-length") {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|_| digits).ok_or(HeadError::Length)?;
            if length.replace(number).is_some_and(|before| before != number) {
                return Err(HeadError::Length);
            }
        } else if is("transfer-encoding") {
            return Err(HeadError::Chunked);
        } else if is("expect") {
            self.expects_continue = text.eq_ignore_ascii_case("100-continue");
        } else if is("connection") {
            let has =
                |word: &str| text.split(',').any(|option| option.trim().eq_ignore_ascii_case(word));
            self.keeps_alive = !has("close") && (self.keeps_alive || has("keep-alive"));
        } else if is("user-agent") {
            self.user_agent = Some(text.chars().take(KEPT_MAX).collect());
        } else if is("host") {
            self.host = text.to_ascii_lowercase();
        } else if is("origin") {
            self.origin =
                Some(text.chars().take(KEPT_MAX).collect::<String>().to_ascii_lowercase());
        } else if is("sec-websocket-key") {
            self.websocket_key = Some(text.to_owned());
        } else if is("sec-websocket-protocol") {
            if !self.websocket_protocols.is_empty() {
                self.websocket_protocols.push(',');
            }
            self.websocket_protocols.push_str(text);
        }
        Ok(())
    }

    /// True if the request's origin may use this server: a page of the same host, an origin in
    /// `allowed` (`https://example.org`, or `any`), or no origin, as from clients that are no
    /// browsers.
    pub fn may_ask(&self, allowed: &[String]) -> bool {
        let Some(origin) = &self.origin else { return true };
        let authority =
            origin.split_once("://").filter(|parts| matches!(parts.0, "http" | "https"));
        let own = authority.is_some_and(|(_, host)| !host.is_empty() && host == self.host);
        own || allowed.iter().any(|page| page == "any" || page.eq_ignore_ascii_case(origin))
    }

    /// The path without its query.
    pub fn target_path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }

    /// The query after the path, without the question mark; empty where there is none.
    pub fn query_string(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// True if the request asks for a WebSocket and offers this subprotocol.
    pub fn offers_websocket(&self, protocol: &str) -> bool {
        let mut offered = self.websocket_protocols.split(',');
        self.websocket_key.is_some() && offered.any(|offer| offer.trim() == protocol)
    }
}

/// The first value of the parameter `name` in a query.
pub(super) fn value_of<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    parameters.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What curl 8.14 sends for `curl -d @file`, by its own trace.
    const POST: &[u8] = b"POST /api/v1/load/00/up/3?x=1 HTTP/1.1\r\nHost: 192.0.2.1:5210\r\n\
        User-Agent: curl/8.14.1\r\nAccept: */*\r\nContent-Length: 2000000\r\n\
        Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\n\r\nbody";

    #[test]
    fn a_head_is_taken_once_it_is_whole_and_its_body_stays() {
        for cut in 0..POST.len() - 4 {
            assert_eq!(Head::parse(&POST[..cut]), Ok(None), "{cut} bytes");
        }
        let head = Head::parse(POST).expect("a head").expect("whole");
        assert_eq!((head.method.as_str(), head.target_path()), ("POST", "/api/v1/load/00/up/3"));
        assert_eq!((head.body_bytes, head.expects_continue), (2_000_000, true));
        assert_eq!((head.keeps_alive, head.head_bytes), (true, POST.len() - 4));
        assert_eq!(head.user_agent.as_deref(), Some("curl/8.14.1"));
    }

    #[test]
    fn lengths_that_say_two_things_are_refused() {
        let with =
            |fields: &str| Head::parse(format!("POST / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        assert!(with("Content-Length: 5\r\nContent-Length: 5\r\n").is_ok());
        for fields in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: -5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Content-Length:\r\n",
        ] {
            assert_eq!(with(fields), Err(HeadError::Length), "{fields}");
        }
        let both = with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
        assert_eq!(both, Err(HeadError::Chunked));
    }

    #[test]
    fn garbage_and_endless_heads_are_told_from_unfinished_ones() {
        assert!(matches!(Head::parse(b"\x16\x03\x01\x02\x00"), Err(HeadError::Malformed(_))));
        let endless = [b"GET /".as_slice(), &[b'a'; HEAD_BYTES_MAX]].concat();
        assert_eq!(Head::parse(&endless), Err(HeadError::TooLong));
        assert_eq!(start_of(b"GE"), Start::Unknown);
        assert_eq!(start_of(b"GET /"), Start::Http);
        assert_eq!(start_of(b"LINERATE"), Start::Other);
        assert_eq!(start_of(b"\x16\x03"), Start::Other);
    }

    #[test]
    fn a_page_of_another_site_asks_only_where_it_is_allowed() {
        let of = |origin: Option<&str>, allowed: &[&str]| {
            let origin = origin.map(|page| format!("Origin: {page}\r\n")).unwrap_or_default();
            let text = format!("GET / HTTP/1.1\r\nHost: T.example:5210\r\n{origin}\r\n");
            let head = Head::parse(text.as_bytes()).expect("a head").expect("whole");
            head.may_ask(&allowed.iter().map(|page| (*page).to_owned()).collect::<Vec<_>>())
        };
        assert!(of(None, &[]) && of(Some("http://t.example:5210"), &[]));
        for origin in ["http://t.example", "https://evil.example", "null", "file://t.example:5210"]
        {
            assert!(!of(Some(origin), &[]), "{origin}");
            assert!(of(Some(origin), &["any"]), "{origin}");
        }
        assert!(of(Some("https://speed.example"), &["https://Speed.example"]));
        assert!(!of(Some("http://speed.example"), &["https://speed.example"]), "another scheme");
    }

    #[test]
    fn a_connection_lives_on_by_the_rules_of_its_version() {
        let of = |version: &str, field: &str| {
            let text = format!("GET / HTTP/{version}\r\n{field}\r\n");
            Head::parse(text.as_bytes()).ok().flatten().map(|head| head.keeps_alive)
        };
        // RFC 9112 §9.3.
        assert_eq!(of("1.1", ""), Some(true));
        assert_eq!(of("1.1", "Connection: Close\r\n"), Some(false));
        assert_eq!(of("1.0", ""), Some(false));
        assert_eq!(of("1.0", "Connection: keep-alive\r\n"), Some(true));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_as_a_head_or_an_error(bytes in proptest::collection::vec(0_u8.., 0..400)) {
            let _ = Head::parse(&bytes);
            let _ = start_of(&bytes);
        }
    }
}
