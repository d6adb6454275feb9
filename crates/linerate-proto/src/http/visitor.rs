//! Requests of speed tests of other programs, as their clients send them without a change.
//!
//! Paths and queries: LibreSpeed's `speedtest_worker.js` and its PHP files, OpenSpeedTest's page
//! and the files of its nginx, `@cloudflare/speedtest`, ndt7 (`ndt7-protocol.md` of
//! m-lab/ndt-server) and throughput1 (m-lab/msak). Left out: their pages, telemetry, and places of
//! addresses.

use linerate_core::record::Direction;

use super::head::{Head, value_of};
use super::throughput1::{THROUGHPUT1_PROTOCOL, Throughput1};

/// Longest body that one request may ask for, bytes; the time of a transfer ends it before.
pub const VISITOR_BYTES_MAX: u64 = 10_000_000_000;
/// LibreSpeed counts in these, bytes.
const CHUNK: u64 = 1 << 20;
/// LibreSpeed's own bounds: chunks without `ckSize`, and at most.
const CHUNKS_USUAL: u64 = 4;
const CHUNKS_MAX: u64 = 1024;
/// The file that OpenSpeedTest's page fetches is of 30 MiB.
const FILE: u64 = 30 << 20;

/// How the paths of visitors begin.
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

/// Whose client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visitor {
    /// LibreSpeed, by its worker or command line.
    LibreSpeed,
    /// OpenSpeedTest.
    OpenSpeedTest,
    /// Cloudflare's speed test.
    Cloudflare,
    /// M-Lab's ndt7.
    Ndt7,
    /// The test of M-Lab's that follows it.
    Throughput1,
    /// Apple's networkQuality and other clients of draft-ietf-ippm-responsiveness, over HTTP/2.
    NetworkQuality,
}

impl Visitor {
    /// As its makers write it.
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

/// What a request of a visitor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// So many bytes.
    Down(u64),
    /// Its body is taken.
    Up,
    /// The client's own address.
    Address,
    /// A browser asks whether a page from elsewhere may ask (Fetch, CORS preflight).
    May,
    /// Load over a WebSocket.
    Ndt7(Direction),
    /// The same, as throughput1 has it.
    Throughput1(Direction, Throughput1),
}

/// One request of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitorTarget {
    /// Whose.
    pub visitor: Visitor,
    /// What for.
    pub wish: Wish,
}

/// Why a request is none of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAVisitor {
    /// The path is nobody's.
    #[error("there is no such path")]
    Path,
    /// The method is another.
    #[error("not with this method")]
    Method,
    /// A number of the query is none, or too large.
    #[error("the query asks for no number of bytes up to {VISITOR_BYTES_MAX}")]
    Bytes,
    /// No WebSocket of ndt7.
    #[error("ndt7 is a WebSocket with the protocol net.measurementlab.ndt.v7")]
    NoWebSocket,
    /// No WebSocket of throughput1, or with options that it does not have.
    #[error(
        "throughput1 is a WebSocket with the protocol net.measurementlab.throughput.v1; its query \
         has mid and streams, whole numbers as duration (ms) and bytes, and bbr, cubic or reno as cc"
    )]
    NoThroughput1,
}

/// The subprotocol of ndt7.
pub const NDT7_PROTOCOL: &str = "net.measurementlab.ndt.v7";

impl VisitorTarget {
    /// What a request is for.
    /// # Errors
    /// Why it is none of a visitor.
    pub fn of(head: &Head) -> Result<Self, NotAVisitor> {
        use Visitor::{Cloudflare, LibreSpeed, Ndt7, OpenSpeedTest, Throughput1 as Msak};
        let (path, query) = (head.path(), head.query());
        let down = |bytes: Option<u64>| bytes.map(Wish::Down).ok_or(NotAVisitor::Bytes);
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
                (LibreSpeed, down(chunks.map(|it| it.clamp(1, CHUNKS_MAX) * CHUNK))?)
            }
            "/empty" => (LibreSpeed, Wish::Up),
            "/getIP" => (LibreSpeed, Wish::Address),
            _ if file != path => return Err(NotAVisitor::Path),
            "/downloading" => (OpenSpeedTest, Wish::Down(FILE)),
            "/upload" => (OpenSpeedTest, Wish::Up),
            "/__down" => {
                let bytes = number("bytes", 0).filter(|it| *it <= VISITOR_BYTES_MAX);
                (Cloudflare, down(bytes)?)
            }
            "/__up" => (Cloudflare, Wish::Up),
            "/ndt/v7/download" => (Ndt7, Wish::Ndt7(Direction::Down)),
            "/ndt/v7/upload" => (Ndt7, Wish::Ndt7(Direction::Up)),
            "/throughput/v1/download" => (Msak, throughput1(head, Direction::Down)?),
            "/throughput/v1/upload" => (Msak, throughput1(head, Direction::Up)?),
            _ => return Err(NotAVisitor::Path),
        };
        match (head.method.as_str(), wish) {
            ("OPTIONS", _) => return Ok(Self { visitor, wish: Wish::May }),
            ("GET", Wish::Ndt7(_)) if !head.offers_websocket(NDT7_PROTOCOL) => {
                return Err(NotAVisitor::NoWebSocket);
            }
            ("GET", _) | ("POST", Wish::Up) => {}
            _ => return Err(NotAVisitor::Method),
        }
        Ok(Self { visitor, wish })
    }
}

fn throughput1(head: &Head, direction: Direction) -> Result<Wish, NotAVisitor> {
    let asked = Throughput1::of(head.query());
    let asked = asked.filter(|_| head.offers_websocket(THROUGHPUT1_PROTOCOL));
    match asked {
        Some(asked) => Ok(Wish::Throughput1(direction, asked)),
        // A preflight has neither.
        None if head.method == "OPTIONS" => Ok(Wish::May),
        None => Err(NotAVisitor::NoThroughput1),
    }
}

/// An answer to a visitor, without its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitorAnswer<'a> {
    /// Of HTTP.
    pub status: u16,
    /// Type of the body.
    pub kind: &'a str,
    /// Bytes of the body.
    pub length: u64,
    /// The connection ends behind it.
    pub closes: bool,
    /// The page that may read it, where a page of a browser asked (Fetch, CORS protocol).
    pub origin: Option<&'a str>,
    /// Time after which to ask again, seconds.
    pub retry_after_s: Option<u64>,
}

impl VisitorAnswer<'_> {
    /// Its head.
    pub fn head(&self) -> Vec<u8> {
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
        let retry = retry_after_s.map(|it| format!("Retry-After: {it}\r\n")).unwrap_or_default();
        let page = origin.map(page_may_read).unwrap_or_default();
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\n{length}{retry}{page}\
             Cache-Control: no-store, no-transform\r\nX-Content-Type-Options: nosniff\r\n\
             Server-Timing: cfRequestDuration;dur=0\r\nConnection: {connection}\r\n\r\n"
        )
        .into_bytes()
    }
}

/// What lets a page of this origin read an answer and its times.
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

    fn of(method: &str, target: &str) -> Result<Wish, NotAVisitor> {
        let head = Head { method: method.to_owned(), target: target.to_owned(), ..Head::default() };
        VisitorTarget::of(&head).map(|it| it.wish)
    }

    #[test]
    fn requests_of_the_programs_are_told_by_path_query_and_method() {
        // As speedtest_worker.js 5.4 sends them: url + url_sep + "r=" + Math.random() + "&ckSize=".
        let garbage = "/backend/garbage.php?r=0.42&ckSize=100";
        assert_eq!(of("GET", garbage), Ok(Wish::Down(104_857_600)));
        assert_eq!(of("GET", "/backend/garbage.php"), Ok(Wish::Down(4 << 20)));
        assert_eq!(of("GET", "/backend/garbage.php?ckSize=9999"), Ok(Wish::Down(1 << 30)));
        assert_eq!(of("POST", "/backend/empty.php?r=0.1"), Ok(Wish::Up));
        assert_eq!(of("OPTIONS", "/backend/empty.php?cors=true"), Ok(Wish::May));
        assert_eq!(of("GET", "/backend/getIP.php?isp=true"), Ok(Wish::Address));
        assert_eq!(of("GET", "/downloading?n=0.1"), Ok(Wish::Down(31_457_280)));
        assert_eq!(of("POST", "/upload?n=0.1"), Ok(Wish::Up));
        assert_eq!(of("GET", "/__down?measId=7&bytes=101000"), Ok(Wish::Down(101_000)));
        assert_eq!(of("POST", "/__up?measId=7"), Ok(Wish::Up));
        // As the servers in Go and Rust have them.
        assert_eq!(of("GET", "/garbage?ckSize=1"), Ok(Wish::Down(1 << 20)));
        assert_eq!(of("GET", "/backend/empty"), Ok(Wish::Up));
        assert_eq!(of("GET", "/getIP"), Ok(Wish::Address));
    }

    #[test]
    fn what_is_none_of_theirs_is_told_why() {
        for (method, target, expected) in [
            ("GET", "/backend/other.php", NotAVisitor::Path),
            ("GET", "/downloading/more", NotAVisitor::Path),
            ("GET", "/backend/downloading", NotAVisitor::Path),
            ("GET", "/upload.php", NotAVisitor::Path),
            ("GET", "/__down?bytes=-1", NotAVisitor::Bytes),
            ("GET", "/__down?bytes=10000000001", NotAVisitor::Bytes),
            ("GET", "/backend/garbage.php?ckSize=x", NotAVisitor::Bytes),
            ("POST", "/__down?bytes=1", NotAVisitor::Method),
            ("DELETE", "/upload", NotAVisitor::Method),
            ("GET", "/ndt/v7/download", NotAVisitor::NoWebSocket),
            ("GET", "/throughput/v1/download?mid=a&streams=1", NotAVisitor::NoThroughput1),
            ("GET", "/throughput/v1/latency", NotAVisitor::Path),
        ] {
            assert_eq!(of(method, target), Err(expected), "{method} {target}");
        }
    }

    fn fields(answer: &VisitorAnswer<'_>) -> Vec<(String, String)> {
        let bytes = answer.head();
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut fields);
        assert!(response.parse(&bytes).is_ok_and(|parsed| parsed.is_complete()));
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        response.headers.iter().map(|it| (it.name.to_owned(), text(it.value))).collect()
    }

    #[test]
    fn an_answer_is_for_the_page_that_asked_and_for_no_other() {
        let answer = VisitorAnswer { status: 200, length: 7, ..VisitorAnswer::default() };
        let has = |of: &[(String, String)], name: &str| {
            of.iter().find(|it| it.0 == name).map(|it| it.1.clone())
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
