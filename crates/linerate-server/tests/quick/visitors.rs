//! Speed tests of other programs over HTTP: requests as their clients send them, observed in
//! Chromium 156 (LibreSpeed 6.2.1's worker, `@m-lab/ndt7` 0.1.4, `@cloudflare/speedtest` 1.14.1)
//! and of msak-client, what they get, and what the server's records say of it.
#![cfg(feature = "web")]

use crate::peers;
mod idle_uploads;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::policy::Policy;
use linerate_core::record::{Direction, MetricId, Plan, Record, Stat, TcpDirections, Tool};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_store::{HistoryFilter, Store};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};
use serde_json::Value;

/// Nothing here takes as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Setting {
    limits: ServerLimits,
    policy: Option<&'static str>,
    origins: Vec<String>,
}

/// Runs `test` against a server on a free loopback port, and a store in a file.
fn with_server(setting: Setting, test: impl FnOnce(SocketAddr, PathBuf)) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("results.db");
    let Setting { limits, policy, origins } = setting;
    // Any other program: visitors are answered where others are.
    let foreign = Foreign::These(vec![(linerate_core::record::Via::Nuttcp, peers::free_port())]);
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut server =
        MeasurementServer::bind(&ServeOptions { local, limits, foreign }).expect("free ports");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store: Some(store.clone()), tool, origins });
    if let Some(policy) = policy {
        server.set_policy(Policy::from_toml(policy).expect("a policy"));
    }
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(address, store));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// From another address of loopback.
fn connect_from(server: SocketAddr, from: [u8; 4]) -> TcpStream {
    let from = std::net::IpAddr::from(from);
    let stream = tcp::connect(server, Some(from), &TcpOptions::default(), PATIENCE);
    let stream = stream.expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// A head up to its empty line, and its status.
fn head_of(stream: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).expect("a head"), 1, "{}", head.escape_ascii());
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    (head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status"), head)
}

fn length_of(head: &str) -> u64 {
    let field = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    field.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// One request on an open connection: status, head, and bytes of the body.
fn ask(stream: &mut TcpStream, request: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    stream.write_all(request.as_bytes()).expect("it takes a head");
    stream.write_all(body).expect("it takes a body");
    let (status, head) = head_of(stream);
    let mut bytes = Vec::new();
    stream.take(length_of(&head)).read_to_end(&mut bytes).expect("a body");
    (status, head, bytes)
}

/// As Chromium sends it for LibreSpeed's worker; with a page where there is one.
fn request(server: SocketAddr, line: &str, origin: Option<&str>, body: usize) -> String {
    let origin = origin.map(|it| format!("Origin: {it}\r\n")).unwrap_or_default();
    let length = match line.starts_with("POST") {
        true => format!("Content-Length: {body}\r\n"),
        false => String::new(),
    };
    format!(
        "{line} HTTP/1.1\r\nHost: {server}\r\nConnection: keep-alive\r\n{length}User-Agent: \
         Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\n{origin}Accept-Encoding: gzip, deflate, \
         br, zstd\r\n\r\n"
    )
}

/// The records of the store, once there are so many.
fn records(store: &Path, count: usize) -> Vec<Record> {
    let until = monotonic() + PATIENCE;
    loop {
        let found = Store::open(store)
            .and_then(|store| store.list_history(&HistoryFilter::default(), 100))
            .map(|rows| rows.into_iter().map(|row| row.id).collect::<Vec<String>>());
        let ids = found.unwrap_or_default();
        if ids.len() >= count || monotonic() >= until {
            let store = Store::open(store).expect("a store");
            return ids.iter().map(|id| store.get(id).expect("it is there")).collect();
        }
        sleep(Duration::from_millis(50));
    }
}

fn value(record: &Record, metric: MetricId) -> f64 {
    let is = |row: &&linerate_core::record::Summary| {
        row.metric == metric && row.stat == Stat::Value && row.flow.is_none()
    };
    record.summary.iter().find(is).map(|row| row.value).expect("it is in the summary")
}

fn of_way(records: &[Record], way: TcpDirections) -> &Record {
    let is = |record: &&Record| matches!(&record.plan, Plan::Tcp(it) if it.test.directions == way);
    records.iter().find(is).expect("a record of this direction")
}

#[test]
fn a_worker_of_librespeed_gets_its_bytes_and_leaves_a_record_of_each_direction() {
    with_server(Setting::default(), |server, store| {
        let mut stream = connect(server);
        let get = |line: &str| request(server, line, None, 0);
        let (status, _, body) =
            ask(&mut stream, &get("GET /backend/getIP.php?isp=true&r=0.1"), b"");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, body["processedString"].as_str()), (200, Some("127.0.0.1")));
        let (status, _, body) = ask(&mut stream, &get("GET /backend/empty.php?r=0.2"), b"");
        assert_eq!((status, body.len()), (200, 0));
        let begin = monotonic();
        let line = "GET /backend/garbage.php?r=0.3&ckSize=4";
        let (status, head, body) = ask(&mut stream, &get(line), b"");
        let down_s = monotonic().duration_since(begin).as_secs_f64();
        assert_eq!((status, body.len()), (200, 4 << 20));
        assert!(head.contains("no-store, no-transform"), "{head}");
        let up = request(server, "POST /backend/empty.php?r=0.4", None, 3_000_000);
        let begin = monotonic();
        let (status, ..) = ask(&mut stream, &up, &vec![7; 3_000_000]);
        let up_s = monotonic().duration_since(begin).as_secs_f64();
        assert_eq!(status, 200);
        drop(stream);
        let records = records(&store, 2);
        let down = of_way(&records, TcpDirections::Down);
        assert_eq!(value(down, MetricId::Bytes), 4_194_304.0, "the head is no payload");
        assert!(value(down, MetricId::Goodput) > 4_194_304.0 * 8.0 / (down_s + 0.1));
        let up = of_way(&records, TcpDirections::Up);
        assert_eq!(value(up, MetricId::Bytes), 3e6);
        assert!(value(up, MetricId::Goodput) > 24e6 / (up_s + 0.1));
        for record in &records {
            assert_eq!(record.name.as_deref(), Some("LibreSpeed"));
            assert!(record.ends[1].version.as_deref().is_some_and(|it| it.starts_with("Mozilla")));
        }
    });
}

#[test]
fn a_download_lasts_until_the_client_has_taken_it() {
    with_server(Setting::default(), |server, store| {
        let mut stream = connect(server);
        // OpenSpeedTest's page asks so; 30 MiB are more than two kernels hold.
        let get = request(server, "GET /downloading?n=0.5", None, 0);
        stream.write_all(get.as_bytes()).expect("it takes a head");
        sleep(Duration::from_millis(600));
        let (_, head) = head_of(&mut stream);
        let mut body = stream.take(length_of(&head));
        assert_eq!(std::io::copy(&mut body, &mut std::io::sink()).expect("all"), 31_457_280);
        drop(body);
        let records = records(&store, 1);
        let rate = value(&records[0], MetricId::Goodput);
        assert_eq!(value(&records[0], MetricId::Bytes), 31_457_280.0);
        // The client took nothing in its first 0.6 s.
        assert!(rate < 31_457_280.0 * 8.0 / 0.6, "{rate}");
        assert_eq!(records[0].name.as_deref(), Some("OpenSpeedTest"));
    });
}

#[test]
fn cloudflares_client_asks_for_sizes_and_reads_the_servers_time() {
    with_server(Setting::default(), |server, store| {
        let mut stream = connect(server);
        for (bytes, expected) in [("0", 0), ("101000", 101_000), ("1001000", 1_001_000)] {
            let line = format!("GET /__down?measId=7&during=download&bytes={bytes}");
            let (status, head, body) = ask(&mut stream, &request(server, &line, None, 0), b"");
            assert_eq!((status, body.len()), (200, expected));
            assert!(head.contains("Server-Timing: cfRequestDuration;dur="), "{head}");
        }
        let up = request(server, "POST /__up?measId=7", None, 101_000);
        assert_eq!(ask(&mut stream, &up, &vec![b'0'; 101_000]).0, 200);
        drop(stream);
        let records = records(&store, 2);
        let down = of_way(&records, TcpDirections::Down);
        assert_eq!(value(down, MetricId::Bytes), 1_102_000.0);
        assert!(down.tags.contains_key("pauses_s"));
    });
}

#[test]
fn pages_of_other_sites_are_answered_only_where_they_are_named() {
    let page = "https://speed.example";
    let origins = vec![page.to_owned()];
    with_server(Setting { origins, ..Setting::default() }, |server, _| {
        let get = |origin| request(server, "GET /__down?bytes=10", Some(origin), 0);
        let (status, head, _) = ask(&mut connect(server), &get(page), b"");
        assert_eq!(status, 200);
        assert!(head.contains("Access-Control-Allow-Origin: https://speed.example\r\n"), "{head}");
        assert!(head.contains("Timing-Allow-Origin: https://speed.example\r\n"), "{head}");
        let may = request(server, "OPTIONS /backend/empty.php?cors=true", Some(page), 0);
        assert_eq!(ask(&mut connect(server), &may, b"").0, 204);
        let own = format!("http://{server}");
        assert_eq!(ask(&mut connect(server), &get(&own), b"").0, 200);
        for other in ["https://evil.example", "null", "http://speed.example"] {
            let (status, head, body) = ask(&mut connect(server), &get(other), b"");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!((status, body["error"].as_str()), (403, Some("policy")), "{other}");
            assert!(!head.contains("Access-Control"), "{head}");
        }
    });
}

/// A WebSocket as `ndt7.js` opens it in Chromium: the key is RFC 6455's example.
fn upgrade(server: SocketAddr, way: &str) -> String {
    format!(
        "GET /ndt/v7/{way}?client_library_name=ndt7-js&client_library_version=0.1.4 HTTP/1.1\r\n\
         Host: {server}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\
         Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
    )
}

/// A frame of a server (RFC 6455 §5.2): first byte and payload.
fn frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame");
    let mut read = |length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).expect("the rest of a frame");
        bytes
    };
    let length = match head[1] {
        126 => read(2),
        127 => read(8),
        short => vec![short],
    };
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    (head[0], read(length))
}

/// A frame of a client, masked with zeros.
fn client_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u64::try_from(payload.len()).expect("small").to_be_bytes();
    [&[first, 0x80 | 127], &length[..], &[0; 4], payload].concat()
}

fn of_a_second() -> Setting {
    let limits = ServerLimits { duration: Duration::from_secs(1), ..ServerLimits::default() };
    Setting { limits, ..Setting::default() }
}

#[test]
fn an_ndt7_download_has_messages_that_grow_and_measurements_and_an_end() {
    with_server(of_a_second(), |server, store| {
        let mut stream = connect(server);
        stream.write_all(upgrade(server, "download").as_bytes()).expect("it takes a head");
        let (status, head) = head_of(&mut stream);
        assert_eq!(status, 101);
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        assert!(head.contains("Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n"), "{head}");
        let begin = monotonic();
        let (mut sizes, mut told, mut total) = (Vec::new(), Vec::<Value>::new(), 0);
        loop {
            match frame(&mut stream) {
                (0x82, payload) => {
                    total += payload.len();
                    sizes.push(payload.len());
                }
                (0x81, payload) => told.push(serde_json::from_slice(&payload).expect("JSON")),
                (0x88, payload) => {
                    assert_eq!(payload, 1000_u16.to_be_bytes());
                    stream.write_all(&client_frame(0x88, &payload)).expect("open");
                    break;
                }
                (first, _) => panic!("frame {first:#x}"),
            }
        }
        let seconds = monotonic().duration_since(begin).as_secs_f64();
        assert_eq!(stream.read(&mut [0]).expect("the server closes"), 0);
        assert_eq!(sizes[0], 1 << 13);
        assert!(sizes.iter().all(|size| size.is_power_of_two() && *size <= 1 << 20));
        assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]));
        let last = told.last().expect("measurements");
        assert!(told.len() >= 3, "4 a second: {}", told.len());
        let acked = last["TCPInfo"]["BytesAcked"].as_u64().expect("a number");
        assert!(acked >= total as u64, "{acked} of {total}");
        assert_eq!(last["AppInfo"]["NumBytes"].as_u64(), Some(total as u64));
        assert!(seconds > 0.9);
        let records = records(&store, 1);
        assert_eq!(value(&records[0], MetricId::Bytes), total as f64, "frames' heads are none");
        let rate = value(&records[0], MetricId::Goodput);
        let client = total as f64 * 8.0 / seconds;
        assert!((rate / client - 1.0).abs() < 0.25, "{rate} by the server, {client} by the client");
        assert_eq!(records[0].flows[0].direction, Direction::Down);
    });
}

#[test]
fn an_ndt7_upload_counts_what_messages_carry_and_answers_a_close() {
    with_server(of_a_second(), |server, store| {
        let mut stream = connect(server);
        stream.write_all(upgrade(server, "upload").as_bytes()).expect("it takes a head");
        assert_eq!(head_of(&mut stream).0, 101);
        for _ in 0..20 {
            stream.write_all(&client_frame(0x82, &vec![1; 1 << 13])).expect("open");
        }
        stream.write_all(&client_frame(0x81, br#"{"Test":"upload"}"#)).expect("open");
        stream.write_all(&client_frame(0x89, b"there?")).expect("open");
        let mut pong = frame(&mut stream);
        while pong.0 == 0x81 {
            pong = frame(&mut stream);
        }
        assert_eq!(pong, (0x8a, b"there?".to_vec()));
        stream.write_all(&client_frame(0x88, &1000_u16.to_be_bytes())).expect("open");
        let mut end = frame(&mut stream);
        while end.0 == 0x81 {
            end = frame(&mut stream);
        }
        assert_eq!(end.0, 0x88);
        let records = records(&store, 1);
        assert_eq!(value(&records[0], MetricId::Bytes), f64::from(20 << 13));
        assert_eq!(records[0].name.as_deref(), Some("ndt7"));
    });
}

#[test]
fn what_is_no_ndt7_is_refused_before_the_upgrade() {
    with_server(Setting::default(), |server, _| {
        let other = upgrade(server, "download").replace("ndt.v7\r\n\r\n", "ndt.v8\r\n\r\n");
        assert_eq!(ask(&mut connect(server), &other, b"").0, 400);
        let plain = request(server, "GET /ndt/v7/upload", None, 0);
        assert_eq!(ask(&mut connect(server), &plain, b"").0, 400);
    });
}

/// As msak-client (m-lab/msak at 772318a) opens it, but for identifiers; the key is RFC 6455's.
fn upgrade_msak(server: SocketAddr, way: &str, options: &str) -> String {
    format!(
        "GET /throughput/v1/{way}?{options}&client_arch=amd64&client_library_name=msak-client&\
         client_library_version=unspecified&client_name=msak-client-go&client_os=linux&\
         client_version=unspecified&mid=d0c265fa-6f60-49fa-a35e-be271f23d4d1&streams=1 HTTP/1.1\r\n\
         Host: {server}\r\nUser-Agent: msak-client-go/unspecified msak-client/unspecified\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: net.measurementlab.throughput.v1\r\nSec-WebSocket-Version: 13\r\n\
         Upgrade: websocket\r\n\r\n"
    )
}

/// Bytes of a frame of the server: a head of 2, 4 or 10 (RFC 6455 section 5.2), and its payload.
fn frame_bytes(payload: usize) -> u64 {
    let head = if payload < 126 { 2 } else { 4 + 6 * usize::from(payload > 0xffff) };
    (head + payload) as u64
}

fn count(told: &Value, layer: &str, name: &str) -> u64 {
    // As msak, which leaves out what is 0.
    told[layer][name].as_u64().unwrap_or(0)
}

#[test]
fn a_throughput1_download_ends_at_its_bytes_and_tells_its_counts_and_the_end() {
    with_server(Setting::default(), |server, store| {
        let mut stream = connect(server);
        let asked = upgrade_msak(server, "download", "bytes=3000000&cc=reno&duration=10000");
        stream.write_all(asked.as_bytes()).expect("it takes a head");
        let (status, head) = head_of(&mut stream);
        assert_eq!(status, 101);
        let protocol = "Sec-WebSocket-Protocol: net.measurementlab.throughput.v1\r\n";
        assert!(head.contains(protocol), "{head}");
        let (mut sizes, mut told) = (Vec::new(), Vec::<Value>::new());
        let (mut application, mut network) = (0, 0);
        let end = loop {
            let (first, payload) = frame(&mut stream);
            match first {
                0x82 => sizes.push(payload.len()),
                0x81 => {
                    let json: Value = serde_json::from_slice(&payload).expect("JSON");
                    // What was sent before this one.
                    assert_eq!(count(&json, "Application", "BytesSent"), application, "{json}");
                    assert_eq!(count(&json, "Network", "BytesSent"), network, "{json}");
                    told.push(json);
                }
                _ => break (first, payload),
            }
            application += payload.len() as u64;
            network += frame_bytes(payload.len());
        };
        let normal = [&1000_u16.to_be_bytes()[..], b"Done sending"].concat();
        assert_eq!(end, (0x88, normal));
        stream.write_all(&client_frame(0x88, &1000_u16.to_be_bytes())).expect("open");
        // As msak's server sends them: 16 of 1 KiB, then 8 of each size.
        let begin: Vec<usize> = [vec![1024; 16], vec![2048; 8], vec![4096; 8]].concat();
        assert_eq!(sizes[..32], begin);
        let load = sizes.iter().sum::<usize>() as u64;
        let texts = application - load;
        assert!(load <= 3_000_000 && load + texts >= 3_000_000, "{load} and {texts}");
        for name in ["CC", "UUID", "LocalAddr", "RemoteAddr"] {
            assert!(told[0][name].is_string(), "{name}: {}", told[0]);
        }
        assert_eq!(told[0]["CC"], "reno");
        assert!(told[0]["TCPInfo"]["BytesAcked"].is_u64() && told[0]["ElapsedTime"].is_u64());
        assert!(told[1..].iter().all(|told| told.get("UUID").is_none()));
        let records = records(&store, 1);
        assert_eq!(value(&records[0], MetricId::Bytes), load as f64);
        assert_eq!(records[0].name.as_deref(), Some("throughput1"));
    });
}

#[test]
fn a_throughput1_upload_takes_messages_in_parts_and_tells_what_it_took() {
    with_server(Setting::default(), |server, store| {
        let mut stream = connect(server);
        let asked = upgrade_msak(server, "upload", "bytes=0&cc=cubic&duration=1500");
        stream.write_all(asked.as_bytes()).expect("it takes a head");
        assert_eq!(head_of(&mut stream).0, 101);
        // 12 KiB in frames of 4 KiB, as msak-client sends them, and a measurement of its.
        let part = vec![1; 4096];
        let text = br#"{"Application":{"BytesSent":12288},"Network":{"BytesSent":12312}}"#;
        for (first, payload) in [(0x02, &part[..]), (0x00, &part), (0x80, &part), (0x81, text)] {
            stream.write_all(&client_frame(first, payload)).expect("open");
        }
        let mut last = Value::Null;
        let end = loop {
            let (first, payload) = frame(&mut stream);
            match first {
                0x81 => last = serde_json::from_slice(&payload).expect("JSON"),
                _ => break first,
            }
        };
        assert_eq!(end, 0x88, "when its time is over");
        let taken = 3 * 4096 + text.len() as u64;
        assert_eq!(count(&last, "Application", "BytesReceived"), taken, "{last}");
        // Heads of these frames have 14 bytes.
        assert_eq!(count(&last, "Network", "BytesReceived"), taken + 4 * 14, "{last}");
        assert!(last["ElapsedTime"].as_u64().is_some_and(|us| us >= 1_500_000), "{last}");
        stream.write_all(&client_frame(0x88, &1000_u16.to_be_bytes())).expect("open");
        drop(stream);
        assert_eq!(value(&records(&store, 1)[0], MetricId::Bytes), 12_288.0);
        let none = upgrade_msak(server, "upload", "duration=1500&cc=vegas");
        let (status, _, body) = ask(&mut connect(server), &none, b"");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let say = body["say"].as_str().unwrap_or_default();
        assert!(status == 400 && say.contains("bbr, cubic or reno"), "{say}");
    });
}

#[test]
fn while_one_tests_others_are_told_when_to_come_back_and_waiting_ones_get_their_turn() {
    let limits = ServerLimits { queue: Duration::from_secs(20), ..ServerLimits::default() };
    for (limits, waits) in [(ServerLimits::default(), false), (limits, true)] {
        with_server(Setting { limits, ..Setting::default() }, |server, _| {
            let mut first = connect(server);
            let get = request(server, "GET /backend/garbage.php?ckSize=1", None, 0);
            assert_eq!(ask(&mut first, &get, b"").0, 200);
            // The place is kept a moment for the next transfer of the same test, on any connection.
            assert_eq!(ask(&mut connect(server), &get, b"").0, 200);
            let (status, head, _) = ask(&mut connect_from(server, [127, 0, 0, 2]), &get, b"");
            assert_eq!(status, if waits { 200 } else { 503 }, "{head}");
            if !waits {
                assert!(head.contains("Retry-After: "), "{head}");
                let mut third = connect_from(server, [127, 0, 0, 3]);
                let (status, ..) = ask(&mut third, &upgrade(server, "download"), b"");
                assert_eq!(status, 503, "no upgrade");
                drop(first);
            }
        });
    }
}

/// No other test of this process has clients of these networks, whose bytes are counted together.
const GUEST: [u8; 4] = [127, 9, 9, 1];
const OTHER_GUEST: [u8; 4] = [127, 9, 8, 1];

/// 16 Mbit/s, two connections and 3 MB a day.
const POLICY: &str = r#"
[[rule]]
name = "guests"
from = ["127.0.0.0/8"]
programs = ["http"]
rate = "16M"
streams = 2
bytes_per_client_per_day = "3 MB"
"#;

#[test]
fn the_policys_rate_bytes_and_streams_hold_for_visitors() {
    with_server(Setting { policy: Some(POLICY), ..Setting::default() }, |server, store| {
        let get = request(server, "GET /backend/garbage.php?ckSize=1", None, 0);
        let begin = monotonic();
        let mut first = connect_from(server, GUEST);
        assert_eq!(ask(&mut first, &get, b"").2.len(), 1 << 20);
        let seconds = monotonic().duration_since(begin).as_secs_f64();
        // 8,388,608 bits at 16 Mbit/s, less the 10 ms that a pace makes up for.
        assert!(seconds > 0.5, "{seconds} s");
        let up = request(server, "POST /backend/empty.php", None, 1_000_000);
        let begin = monotonic();
        assert_eq!(ask(&mut first, &up, &vec![0; 1_000_000]).0, 200);
        let seconds = monotonic().duration_since(begin).as_secs_f64();
        assert!(seconds > 0.48, "{seconds} s");
        let mut second = connect_from(server, GUEST);
        // 3,000,000 - 1,048,576 - 1,000,000 = 951,424 are left.
        second.write_all(get.as_bytes()).expect("it takes a head");
        assert_eq!(head_of(&mut second).0, 200);
        let mut cut = Vec::new();
        second.read_to_end(&mut cut).expect("an early end");
        assert_eq!(cut.len(), 951_424);
        let (status, _, said) = ask(&mut first, &get, b"");
        let said: Value = serde_json::from_slice(&said).expect("JSON");
        assert_eq!((status, said["error"].as_str()), (403, Some("policy")), "{said}");
        drop((first, second));
        let moved: f64 = records(&store, 2).iter().map(|it| value(it, MetricId::Bytes)).sum();
        assert!((moved - 3e6).abs() < 1.0, "{moved} bytes of 3 MB");
    });
}

#[test]
fn a_visitor_has_no_more_connections_than_its_rule_says() {
    with_server(Setting { policy: Some(POLICY), ..Setting::default() }, |server, _| {
        let get = request(server, "GET /__down?bytes=1000", None, 0);
        let mut open: Vec<TcpStream> = (0..3).map(|_| connect_from(server, OTHER_GUEST)).collect();
        let statuses: Vec<u16> = open.iter_mut().map(|it| ask(it, &get, b"").0).collect();
        assert_eq!(statuses, [200, 200, 403]);
    });
}

/// A page that is named runs linerate's own tests and nothing else; another reads why not.
#[test]
fn a_page_of_another_site_runs_tests_where_it_is_named() {
    let page = "http://lan.example:5210";
    let origins = vec![page.to_owned()];
    with_server(Setting { origins, ..Setting::default() }, |server, _| {
        let ask = |line: &str, origin: &str, body: &str| {
            let mut stream = connect(server);
            let fields = format!("Origin: {origin}\r\nContent-Length: {}\r\n", body.len());
            let text = format!("{line} HTTP/1.1\r\nHost: {server}\r\n{fields}\r\n{body}");
            stream.write_all(text.as_bytes()).expect("it takes a request");
            let (status, head) = head_of(&mut stream);
            let mut rest = String::new();
            stream.read_to_string(&mut rest).expect("a body");
            (status, head.to_ascii_lowercase(), rest)
        };
        let readable = format!("access-control-allow-origin: {page}\r\n");
        let asked = r#"{"streams":1,"seconds":1,"directions":["down"]}"#;
        for (line, status) in [("OPTIONS /api/v1/runs", 204), ("GET /api/v1/server", 200)] {
            let (found, fields, _) = ask(line, page, "");
            assert!(found == status && fields.contains(&readable), "{fields}");
        }
        for (line, body) in [("POST /api/v1/measure", "{}"), ("GET /api/v1/results", "")] {
            assert!(!ask(line, page, body).1.contains("access-control"), "{line}");
        }
        let other = "http://evil.example";
        let (status, fields, said) = ask("GET /api/v1/server", other, "");
        assert!(status == 403 && fields.contains("allow-origin: http://evil.example"), "{fields}");
        assert!(said.contains("--allow-origin http://evil.example"), "{said}");
        assert_eq!(ask("POST /api/v1/runs", other, asked).0, 403);
        assert_ne!(ask("OPTIONS /api/v1/runs", other, "").0, 204);
        let (status, fields, _) = ask("POST /api/v1/runs", page, asked);
        assert!(status == 201 && fields.contains(&readable), "{fields}");
    });
}
