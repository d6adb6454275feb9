//! Requests of other programs' speed tests, whose clients (visitors) work unmodified.
//!
//! Paths and queries: LibreSpeed's `speedtest_worker.js` and its PHP files, OpenSpeedTest's page
//! and the files of its nginx, `@cloudflare/speedtest`, ndt7 (`ndt7-protocol.md` of
//! m-lab/ndt-server) and throughput1 (m-lab/msak). Left out: their pages, telemetry, and the
//! geolocation of addresses.

use linerate_core::record::Direction;

use super::head::{Head, value_of};
use super::throughput1::{THROUGHPUT1_PROTOCOL, Throughput1};

/// Bytes of the longest body that one request may ask for; the time limit of a transfer usually
/// ends it before.
pub const VISITOR_BYTES_MAX: u64 = 10_000_000_000;
/// Bytes of LibreSpeed's chunk, its unit of sizes.
const CHUNK: u64 = 1 << 20;
/// LibreSpeed's chunks of a download without `ckSize`, and at most.
const CHUNKS_USUAL: u64 = 4;
const CHUNKS_MAX: u64 = 1024;
/// Bytes of the file that OpenSpeedTest's page downloads: 30 MiB.
const FILE: u64 = 30 << 20;

/// Prefixes of the paths that visitors request.
pub const VISITOR_PATHS: [&str; 10] = [
    "/backend/",
    "/garbage",
    "/empty",
    "/getIP",
    "/downloading",
    "/upload",
    "/ndt/v7/",
    "/throughput/v1/",
    "/__down",
    "/__up",
];

/// Speed test whose client sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visitor {
    /// LibreSpeed, by its worker or command line.
    LibreSpeed,
    /// OpenSpeedTest, by its page.
    OpenSpeedTest,
    /// Cloudflare's speed test.
    Cloudflare,
    /// M-Lab's ndt7, over a WebSocket.
    Ndt7,
    /// M-Lab's throughput1, the successor of ndt7.
    Throughput1,
    /// Apple's networkQuality and other clients of draft-ietf-ippm-responsiveness, over HTTP/2.
    NetworkQuality,
}

impl Visitor {
    /// Name of the speed test as its makers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LibreSpeed => "LibreSpeed",
            Self::OpenSpeedTest => "OpenSpeedTest",
            Self::Cloudflare => "Cloudflare's speed test",
            Self::Ndt7 => "ndt7",
            Self::Throughput1 => "throughput1",
            Self::NetworkQuality => "networkQuality",
        }
    }
}

/// Service that a visitor's request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitorRequest {
    /// A response with a body of this many bytes.
    Down(u64),
    /// An upload, whose body is counted and discarded.
    Up,
    /// The client's address, in the response.
    Address,
    /// A CORS preflight: a browser asks if a page of another origin may send requests (Fetch).
    May,
    /// Load over a WebSocket of ndt7.
    Ndt7(Direction),
    /// Load over a WebSocket of throughput1.
    Throughput1(Direction, Throughput1),
}

/// A visitor's request: its program and the service it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitorTarget {
    /// Speed test of the client.
    pub visitor: Visitor,
    /// Service that is asked for.
    pub wish: VisitorRequest,
}

/// Reason for which a request is none of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VisitorTargetError {
    /// No speed test has this path.
    #[error("there is no such path")]
    Path,
    /// The path has no such method.
    #[error("not with this method")]
    Method,
    /// A number in the query is invalid or too large.
    #[error("the query asks for no number of bytes up to {VISITOR_BYTES_MAX}")]
    Bytes,
    /// The request does not offer a WebSocket with ndt7's subprotocol.
    #[error("ndt7 is a WebSocket with the protocol net.measurementlab.ndt.v7")]
    NoWebSocket,
    /// The request does not offer a WebSocket with throughput1's subprotocol, or has unknown
    /// options.
    #[error(
        "throughput1 is a WebSocket with the protocol net.measurementlab.throughput.v1; its query \
         has mid and streams, whole numbers as duration (ms) and bytes, and bbr, cubic or reno as cc"
    )]
    NoThroughput1,
}

/// WebSocket subprotocol of ndt7.
pub const NDT7_PROTOCOL: &str = "net.measurementlab.ndt.v7";

impl VisitorTarget {
    /// Parses path, query and method of a request.
    /// # Errors
    /// When they are not those of a speed test.
    pub fn from_head(head: &Head) -> Result<Self, VisitorTargetError> {
        use Visitor::{Cloudflare, LibreSpeed, Ndt7, OpenSpeedTest, Throughput1 as Msak};
        let (path, query) = (head.target_path(), head.query_string());
        let down =
            |bytes: Option<u64>| bytes.map(VisitorRequest::Down).ok_or(VisitorTargetError::Bytes);
        let number = |name: &str, usual: u64| match value_of(query, name) {
            Some(text) => text.parse().ok(),
            None => Some(usual),
        };
        // LibreSpeed's servers in Go and Rust have the same files without their suffix, and without
        // the folder.
        let file = path.strip_prefix("/backend").unwrap_or(path);
        let file = file.strip_suffix(".php").unwrap_or(file);
        let (visitor, wish) = match file {
            "/garbage" => {
                let chunks = number("ckSize", CHUNKS_USUAL);
                (LibreSpeed, down(chunks.map(|chunks| chunks.clamp(1, CHUNKS_MAX) * CHUNK))?)
            }
            "/empty" => (LibreSpeed, VisitorRequest::Up),
            "/getIP" => (LibreSpeed, VisitorRequest::Address),
            _ if file != path => return Err(VisitorTargetError::Path),
            "/downloading" => (OpenSpeedTest, VisitorRequest::Down(FILE)),
            "/upload" => (OpenSpeedTest, VisitorRequest::Up),
            "/__down" => {
                let bytes = number("bytes", 0).filter(|bytes| *bytes <= VISITOR_BYTES_MAX);
                (Cloudflare, down(bytes)?)
            }
            "/__up" => (Cloudflare, VisitorRequest::Up),
            "/ndt/v7/download" => (Ndt7, VisitorRequest::Ndt7(Direction::Down)),
            "/ndt/v7/upload" => (Ndt7, VisitorRequest::Ndt7(Direction::Up)),
            "/throughput/v1/download" => (Msak, throughput1(head, Direction::Down)?),
            "/throughput/v1/upload" => (Msak, throughput1(head, Direction::Up)?),
            _ => return Err(VisitorTargetError::Path),
        };
        match (head.method.as_str(), wish) {
            ("OPTIONS", _) => return Ok(Self { visitor, wish: VisitorRequest::May }),
            ("GET", VisitorRequest::Ndt7(_)) if !head.offers_websocket(NDT7_PROTOCOL) => {
                return Err(VisitorTargetError::NoWebSocket);
            }
            ("GET", _) | ("POST", VisitorRequest::Up) => {}
            _ => return Err(VisitorTargetError::Method),
        }
        Ok(Self { visitor, wish })
    }
}

fn throughput1(head: &Head, direction: Direction) -> Result<VisitorRequest, VisitorTargetError> {
    let asked = Throughput1::from_query(head.query_string());
    let asked = asked.filter(|_| head.offers_websocket(THROUGHPUT1_PROTOCOL));
    match asked {
        Some(asked) => Ok(VisitorRequest::Throughput1(direction, asked)),
        // A preflight has neither query nor WebSocket fields.
        None if head.method == "OPTIONS" => Ok(VisitorRequest::May),
        None => Err(VisitorTargetError::NoThroughput1),
    }
}

/// A response to a visitor, without its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitorAnswer<'a> {
    /// HTTP status code.
    pub status: u16,
    /// Media type of the body (Content-Type).
    pub kind: &'a str,
    /// Bytes of the body (Content-Length).
    pub length: u64,
    /// The server closes the connection after the response.
    pub closes: bool,
    /// Origin of the page that may read the response, where a browser asked (Fetch, CORS protocol).
    pub origin: Option<&'a str>,
    /// Time after which to ask again, seconds.
    pub retry_after_s: Option<u64>,
}

impl VisitorAnswer<'_> {
    /// Status line and fields, with the empty line.
    pub fn head_bytes(&self) -> Vec<u8> {
        let Self { status, kind, length, closes, origin, retry_after_s } = self;
        let reason = match status {
            200 => "OK",
            204 => "No Content",
            400 => "Bad Request",
            403 => "Forbidden",
            405 => "Method Not Allowed",
            411 => "Length Required",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let connection = if *closes { "close" } else { "keep-alive" };
        // RFC 9110 §8.6: no length where there can be no body.
        let length =
            if *status == 204 { String::new() } else { format!("Content-Length: {length}\r\n") };
        let retry =
            retry_after_s.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
        let page = origin.map(page_may_read).unwrap_or_default();
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\n{length}{retry}{page}\
             Cache-Control: no-store, no-transform\r\nX-Content-Type-Options: nosniff\r\n\
             Server-Timing: cfRequestDuration;dur=0\r\nConnection: {connection}\r\n\r\n"
        )
        .into_bytes()
    }
}

/// Fields that let a page of this origin read a response and its timing (CORS,
/// Timing-Allow-Origin).
fn page_may_read(origin: &str) -> String {
    format!(
        "Access-Control-Allow-Origin: {origin}\r\nVary: Origin\r\n\
         Access-Control-Allow-Methods: GET, POST\r\n\
         Access-Control-Allow-Headers: Content-Type, Content-Encoding\r\n\
         Access-Control-Expose-Headers: Server-Timing\r\nTiming-Allow-Origin: {origin}\r\n\
         Cross-Origin-Resource-Policy: cross-origin\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: &str, target: &str) -> Result<VisitorRequest, VisitorTargetError> {
        let head = Head { method: method.to_owned(), target: target.to_owned(), ..Head::default() };
        VisitorTarget::from_head(&head).map(|target| target.wish)
    }

    #[test]
    fn requests_of_the_programs_are_told_by_path_query_and_method() {
        // As speedtest_worker.js 5.4 sends them: url + url_sep + "r=" + Math.random() + "&ckSize=".
        let garbage = "/backend/garbage.php?r=0.42&ckSize=100";
        assert_eq!(parsed("GET", garbage), Ok(VisitorRequest::Down(104_857_600)));
        assert_eq!(parsed("GET", "/backend/garbage.php"), Ok(VisitorRequest::Down(4 << 20)));
        assert_eq!(
            parsed("GET", "/backend/garbage.php?ckSize=9999"),
            Ok(VisitorRequest::Down(1 << 30))
        );
        assert_eq!(parsed("POST", "/backend/empty.php?r=0.1"), Ok(VisitorRequest::Up));
        assert_eq!(parsed("OPTIONS", "/backend/empty.php?cors=true"), Ok(VisitorRequest::May));
        assert_eq!(parsed("GET", "/backend/getIP.php?isp=true"), Ok(VisitorRequest::Address));
        assert_eq!(parsed("GET", "/downloading?n=0.1"), Ok(VisitorRequest::Down(31_457_280)));
        assert_eq!(parsed("POST", "/upload?n=0.1"), Ok(VisitorRequest::Up));
        assert_eq!(
            parsed("GET", "/__down?measId=7&bytes=101000"),
            Ok(VisitorRequest::Down(101_000))
        );
        assert_eq!(parsed("POST", "/__up?measId=7"), Ok(VisitorRequest::Up));
        // As the servers in Go and Rust have them.
        assert_eq!(parsed("GET", "/garbage?ckSize=1"), Ok(VisitorRequest::Down(1 << 20)));
        assert_eq!(parsed("GET", "/backend/empty"), Ok(VisitorRequest::Up));
        assert_eq!(parsed("GET", "/getIP"), Ok(VisitorRequest::Address));
    }

    #[test]
    fn what_is_none_of_theirs_is_told_why() {
        for (method, target, expected) in [
            ("GET", "/backend/other.php", VisitorTargetError::Path),
            ("GET", "/downloading/more", VisitorTargetError::Path),
            ("GET", "/backend/downloading", VisitorTargetError::Path),
            ("GET", "/upload.php", VisitorTargetError::Path),
            ("GET", "/__down?bytes=-1", VisitorTargetError::Bytes),
            ("GET", "/__down?bytes=10000000001", VisitorTargetError::Bytes),
            ("GET", "/backend/garbage.php?ckSize=x", VisitorTargetError::Bytes),
            ("POST", "/__down?bytes=1", VisitorTargetError::Method),
            ("DELETE", "/upload", VisitorTargetError::Method),
            ("GET", "/ndt/v7/download", VisitorTargetError::NoWebSocket),
            ("GET", "/throughput/v1/download?mid=a&streams=1", VisitorTargetError::NoThroughput1),
            ("GET", "/throughput/v1/latency", VisitorTargetError::Path),
        ] {
            assert_eq!(parsed(method, target), Err(expected), "{method} {target}");
        }
    }

    fn fields(answer: &VisitorAnswer<'_>) -> Vec<(String, String)> {
        let bytes = answer.head_bytes();
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut fields);
        assert!(response.parse(&bytes).is_ok_and(|parsed| parsed.is_complete()));
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        response.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect()
    }

    #[test]
    fn an_answer_is_for_the_page_that_asked_and_for_no_other() {
        let answer = VisitorAnswer { status: 200, length: 7, ..VisitorAnswer::default() };
        let has = |of: &[(String, String)], name: &str| {
            of.iter().find(|field| field.0 == name).map(|field| field.1.clone())
        };
        let plain = fields(&answer);
        assert_eq!(has(&plain, "Content-Length").as_deref(), Some("7"));
        assert_eq!(has(&plain, "Access-Control-Allow-Origin"), None);
        let page = fields(&VisitorAnswer { origin: Some("https://a.example"), ..answer });
        for name in ["Access-Control-Allow-Origin", "Timing-Allow-Origin"] {
            assert_eq!(has(&page, name).as_deref(), Some("https://a.example"), "{name}");
        }
        let busy = VisitorAnswer { status: 503, retry_after_s: Some(4), ..answer };
        assert_eq!(has(&fields(&busy), "Retry-After").as_deref(), Some("4"));
        let empty = fields(&VisitorAnswer { status: 204, ..answer });
        assert_eq!(has(&empty, "Content-Length"), None);
    }
}
