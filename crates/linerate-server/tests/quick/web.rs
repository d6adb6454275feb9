//! HTTP on the server's port, by plain TCP clients over loopback: what a test from a browser is
//! told and counted, and what a client that sends nonsense gets.
#![cfg(feature = "web")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::record::{
    Direction, MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool, Via,
};
use linerate_core::schedule::EventKind;
use linerate_core::time::WallTime;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_store::{HistoryFilter, Store, TAG_PLAN, TAG_SLOT};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};
use serde_json::{Value, json};

/// Nothing here takes as long on a machine that does anything at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const MARK: u8 = 8; // CS1 (RFC 2474 §4.2.2.2).

/// Runs `test` against a server with HTTP on a free loopback port, and a store in a file.
pub(crate) fn with_server(limits: ServerLimits, test: impl FnOnce(SocketAddr, PathBuf)) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("results.db");
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { local, limits, foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let (store_file, origins) = (Some(store.clone()), Vec::new());
    server.serve_web(WebOptions { page: true, store: store_file, tool, origins });
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

/// A connection whose packets are marked, as a network on the way may do.
pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let options = TcpOptions { dscp: Some(MARK), ..TcpOptions::default() };
    let stream = tcp::connect(server, None, &options, PATIENCE).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// An answer: its status, its head, its body.
fn ask(server: SocketAddr, request: &str) -> (u16, String, Vec<u8>) {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).expect("it takes a request");
    let mut bytes = Vec::new();
    // A client that was refused while it wrote may see the connection reset after the answer.
    let _ = stream.read_to_end(&mut bytes);
    split(&bytes)
}

fn split(bytes: &[u8]) -> (u16, String, Vec<u8>) {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    (status, head, bytes.get(end + 4..).unwrap_or_default().to_vec())
}

pub(crate) fn call(server: SocketAddr, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, _, answer) = ask(server, &request);
    (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
}

fn begin(server: SocketAddr, asked: &Value) -> Value {
    let (status, run) = call(server, "POST", "/api/v1/runs", asked);
    assert_eq!(status, 201, "{run}");
    run
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is not in {value}"))
}

/// Every event of a run, to its end: kind and data.
fn events(server: SocketAddr, run: &Value) -> Vec<(String, Value)> {
    let mut stream = connect(server);
    let request = format!("GET {} HTTP/1.1\r\nHost: {server}\r\n\r\n", text(run, "events"));
    stream.write_all(request.as_bytes()).expect("it takes a request");
    let mut found = Vec::new();
    let mut kind = String::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut kind);
        } else if let Some(data) = line.strip_prefix("data: ") {
            found.push((kind.clone(), serde_json::from_str(data).expect("JSON")));
        }
    }
    found
}

fn of_kind<'a>(events: &'a [(String, Value)], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|(it, _)| it == kind).map(|(_, data)| data).collect()
}

/// Fetches a stream to its end; the bytes of its body.
fn fetch(server: SocketAddr, run: &Value, stream: u16) -> u64 {
    let mut connection = connect(server);
    let path = format!("{}/down/{stream}?x=1", text(run, "load"));
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: test/1\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("it takes a request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(connection.read(&mut byte).expect("a head"), 1, "{head:?}");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", head.escape_ascii());
    std::io::copy(&mut connection, &mut std::io::sink()).expect("until its end")
}

/// Sends requests of `length` bytes until the server says that it is over; the bytes that it says
/// it got.
fn push(server: SocketAddr, run: &Value, stream: u16, length: usize) -> u64 {
    let mut connection = connect(server);
    let mut taken = 0;
    loop {
        let head = format!(
            "POST {}/up/{stream} HTTP/1.1\r\nHost: {server}\r\nContent-Length: {length}\r\n\r\n",
            text(run, "load")
        );
        connection.write_all(head.as_bytes()).expect("it takes a head");
        connection.write_all(&vec![7; length]).expect("it takes a body");
        let mut bytes = vec![0; 4096];
        let mut got = 0;
        let answer = loop {
            let count = connection.read(&mut bytes[got..]).expect("an answer");
            got += count;
            let (status, _, body) = split(&bytes[..got]);
            if let Ok(body) = serde_json::from_slice::<Value>(&body) {
                assert_eq!(status, 200, "{body}");
                break body;
            }
            assert!(count > 0, "{}", bytes[..got].escape_ascii());
        };
        taken += answer["bytes"].as_u64().expect("a count");
        if answer["over"] == true {
            return taken;
        }
    }
}

fn stored(path: &Path) -> Vec<Record> {
    let store = Store::open(path).expect("a store");
    let entries = store.list_history(&HistoryFilter::default(), 100).expect("a list");
    entries.iter().map(|entry| store.record(&entry.id).expect("a record")).collect()
}

/// The bytes that counted, all streams together.
fn measured(record: &Record) -> u64 {
    let ends = record.flows.iter().map(|flow| match flow.direction {
        Direction::Down => flow.sender.as_ref(),
        Direction::Up => flow.receiver.as_ref(),
    });
    ends.map(|end| end.expect("this end").bytes).sum()
}

#[test]
fn what_went_down_is_counted_to_the_byte_and_kept_with_what_the_kernel_knew() {
    with_server(ServerLimits::default(), |server, store| {
        let asked = json!({ "streams": 2, "seconds": 1, "directions": ["down"] });
        let run = begin(server, &asked);
        let fetched: u64 = std::thread::scope(|scope| {
            let run = &run;
            let streams = [0, 1].map(|at| scope.spawn(move || fetch(server, run, at)));
            streams.map(|it| it.join().expect("a stream")).iter().sum()
        });
        let events = events(server, &run);
        let part = of_kind(&events, "part")[0];
        assert_eq!(part["bytes"].as_f64(), Some(fetched as f64), "{part}");
        assert_eq!((&part["direction"], &part["status"]), (&json!("down"), &json!("ok")));
        assert!(part["syn"]["dscp"] == MARK && part["rtt_min_us"].is_u64(), "{part}");
        let samples = of_kind(&events, "sample");
        assert!((5..=20).contains(&samples.len()), "ten a second: {}", samples.len());
        assert_eq!(samples[0]["streams"].as_array().map(Vec::len), Some(2));
        assert_eq!(of_kind(&events, "verdict").len(), 1);
        let end = of_kind(&events, "end")[0];
        let records = stored(&store);
        assert_eq!(end["records"], json!([records[0].id.to_string()]));
        let [record] = records.as_slice() else { panic!("one record: {}", records.len()) };
        assert_eq!((record.status, measured(record)), (RecordStatus::Ok, fetched));
        let Plan::Tcp(plan) = &record.plan else { panic!("TCP") };
        assert_eq!(plan.server.via, Some(Via::Http));
        let sender = record.flows[0].sender.as_ref().expect("this end sent");
        let acked = sender.tcp_info.and_then(|info| info.bytes_acked).expect("the kernel tells");
        assert!(acked >= sender.bytes, "the head went, too: {acked} of {}", sender.bytes);
        let goodput = record.summary.iter().find(|row| {
            row.metric == MetricId::Goodput && row.stat == Stat::Value && row.flow.is_none()
        });
        assert!(goodput.is_some_and(|row| row.value > 0.0));
        assert_eq!(record.ends[1].version.as_deref(), Some("test/1"));
    });
}

#[test]
fn what_goes_up_is_counted_by_its_receiver_and_each_request_is_answered() {
    with_server(ServerLimits::default(), |server, store| {
        let asked = json!({ "streams": 2, "seconds": 1, "directions": ["up"] });
        let run = begin(server, &asked);
        let pushed: u64 = std::thread::scope(|scope| {
            let run = &run;
            let streams = [(0, 300_000), (1, 1_234_567)];
            let streams =
                streams.map(|(at, length)| scope.spawn(move || push(server, run, at, length)));
            streams.map(|it| it.join().expect("a stream")).iter().sum()
        });
        let events = events(server, &run);
        assert_eq!(of_kind(&events, "part")[0]["status"], json!("ok"), "{events:?}");
        let records = stored(&store);
        assert_eq!((records.len(), measured(&records[0])), (1, pushed));
    });
}

#[test]
fn both_ways_are_one_run_in_one_place_and_a_second_client_waits_with_a_ticket() {
    with_server(ServerLimits::default(), |server, store| {
        let asked = json!({ "streams": 1, "seconds": 1 });
        let run = begin(server, &asked);
        let (status, busy) = call(server, "POST", "/api/v1/runs", &asked);
        assert_eq!((status, text(&busy, "error")), (429, "busy"), "{busy}");
        assert_eq!(busy["position"], json!(1));
        let ticket = text(&busy, "ticket").to_owned();
        fetch(server, &run, 0);
        push(server, &run, 0, 100_000);
        let deadline = monotonic() + PATIENCE;
        let again = json!({ "streams": 1, "seconds": 1, "ticket": ticket });
        let second = loop {
            let (status, second) = call(server, "POST", "/api/v1/runs", &again);
            if status == 201 {
                break second;
            }
            assert!(monotonic() < deadline, "{second}");
            sleep(Duration::from_millis(50));
        };
        let said = events(server, &run);
        assert_eq!(of_kind(&said, "end")[0]["records"].as_array().map(Vec::len), Some(2));
        assert_eq!(stored(&store).len(), 2);
        let path = format!("/api/v1/runs/{}", text(&second, "run"));
        let (status, _) = call(server, "DELETE", &path, &Value::Null);
        assert_eq!(status, 403, "not without its token");
        let path = format!("{path}?token={}", text(&second, "token"));
        assert_eq!(call(server, "DELETE", &path, &Value::Null).0, 200);
        let ended = events(server, &second);
        assert!(of_kind(&ended, "state").iter().any(|it| it["state"] == "failed"), "{ended:?}");
    });
}

#[test]
fn the_start_of_a_longer_test_does_not_count_and_the_browsers_delays_are_kept() {
    with_server(ServerLimits::default(), |server, store| {
        let run = begin(server, &json!({"streams": 1, "seconds": 4, "directions": ["down"]}));
        let path =
            format!("/api/v1/runs/{}/delays?token={}", text(&run, "run"), text(&run, "token"));
        let wrong = json!({"idle": [[0.5, 20]]});
        assert_eq!(call(server, "POST", &path, &wrong).0, 400, "at rest is before the load");
        // One beside the second that is omitted, three that count.
        let delays = json!({
            "idle": [[-0.3, 22.0], [-0.2, 20.0], [-0.1, 21.0]],
            "down": [[0.5, 900.0], [1.5, 50.0], [2.0, 70.0], [2.5, 60.0]],
        });
        assert_eq!(call(server, "POST", &path, &delays).1["taken"], 7);
        let body = fetch(server, &run, 0);
        let events = events(server, &run);
        let [part] = of_kind(&events, "part")[..] else { panic!("{events:?}") };
        assert_eq!((&part["omitted_s"], &part["bytes_all"]), (&json!(1.0), &json!(body)));
        assert!(part["bytes"].as_u64() < Some(body), "the first second moved something");
        assert!(part["syn"]["mss_bytes"].as_u64() > Some(500), "{part}");
        let seconds = part["seconds"].as_f64().expect("a span");
        assert!(seconds < 3.9, "4 s less the first one: {seconds}");

        let record = stored(&store).pop().expect("it is kept");
        let (idle, loaded) = (MetricId::DelayIdle, MetricId::DelayLoaded);
        assert_eq!(record.summary_value(idle, Stat::P50, None), Some(21e6));
        assert_eq!(record.summary_value(loaded, Stat::P50, Some(Direction::Down)), Some(60e6));
        let loss = record.summary_value(MetricId::DelayLoss, Stat::Value, Some(Direction::Down));
        assert_eq!(loss, None);
        assert_eq!(record.probes.map_or(0, |probes| probes.rtt_ns.len()), 7);
        let late = call(server, "POST", &path, &delays);
        assert_eq!((late.0, &late.1["error"]), (404, &json!("over")));
    });
}

#[test]
fn all_streams_of_a_longer_test_count_the_same_time() {
    with_server(ServerLimits::default(), |server, store| {
        let run = begin(server, &json!({"streams": 2, "seconds": 4, "directions": ["up"]}));
        let taken: u64 = std::thread::scope(|scope| {
            let run = &run;
            let late = || {
                // It begins while the other has moved data for some time.
                sleep(Duration::from_millis(300));
                push(server, run, 1, 200_000)
            };
            let one = scope.spawn(|| push(server, run, 0, 200_000));
            let other = scope.spawn(late);
            [one, other].map(|it| it.join().expect("it ends")).iter().sum()
        });
        let events = events(server, &run);
        let [part] = of_kind(&events, "part")[..] else { panic!("{events:?}") };
        let record = stored(&store).pop().expect("it is kept");
        let spans: Vec<(u64, u64)> = record
            .flows
            .iter()
            .filter_map(|flow| {
                let end = flow.receiver.as_ref()?;
                Some((end.span_start_ns, end.span_ns))
            })
            .collect();
        assert_eq!(spans.len(), 2, "{spans:?}");
        assert_eq!(spans[0].0, spans[1].0, "they begin to count at once");
        assert_eq!(spans[0].0, 1_000_000_000, "behind the first second");
        assert_eq!(spans.iter().map(|it| it.1).max(), Some(3_000_000_000), "{spans:?}");
        assert!(part["bytes"].as_u64() < Some(taken), "{part}, {taken}");
    });
}

#[test]
fn streams_that_do_not_come_are_told_and_the_others_are_measured() {
    with_server(ServerLimits::default(), |server, _| {
        let asked = json!({ "streams": 2, "seconds": 1, "directions": ["down"] });
        let run = begin(server, &asked);
        let fetched = fetch(server, &run, 1);
        let events = events(server, &run);
        let part = of_kind(&events, "part")[0];
        assert_eq!(part["status"], json!("partial"));
        assert!(text(part, "failure").contains("1 of 2 came"), "{part}");
        assert_eq!(part["bytes"].as_f64(), Some(fetched as f64));
    });
}

#[test]
fn events_go_on_where_a_client_left_them() {
    with_server(ServerLimits::default(), |server, _| {
        let asked = json!({ "streams": 1, "seconds": 1, "directions": ["down"] });
        let run = begin(server, &asked);
        fetch(server, &run, 0);
        let all = events(server, &run);
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {server}\r\nLast-Event-ID: {}\r\n\r\n",
            text(&run, "events"),
            all.len() - 2
        );
        let (status, head, body) = ask(server, &request);
        assert_eq!(status, 200);
        assert!(head.to_ascii_lowercase().contains("content-type: text/event-stream"), "{head}");
        let body = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(body.matches("event: ").count(), 1, "the last alone: {body}");
        assert!(body.contains("event: end"), "{body}");
    });
}

#[test]
fn a_page_of_another_site_begins_nothing_and_answers_carry_what_protects_a_visitor() {
    with_server(ServerLimits::default(), |server, _| {
        let request = |origin: &str| {
            format!(
                "POST /api/v1/runs HTTP/1.1\r\nHost: {server}\r\nOrigin: {origin}\r\n\
                 Content-Length: 0\r\n\r\n"
            )
        };
        let (status, _, body) = ask(server, &request("http://example.com"));
        assert_eq!(status, 403, "{}", body.escape_ascii());
        assert_eq!(ask(server, &request(&format!("http://{server}"))).0, 201);
        let page = ask(server, &format!("GET / HTTP/1.1\r\nHost: {server}\r\n\r\n"));
        let head = page.1.to_ascii_lowercase();
        assert_eq!(page.0, 200);
        for field in [
            "content-type: text/html",
            "content-security-policy: default-src 'self'",
            "x-content-type-options: nosniff",
            "cross-origin-opener-policy: same-origin",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(field), "{field} is not in {head}");
        }
        assert!(!head.contains("unsafe-inline"), "{head}");
        let robots = ask(server, &format!("GET /robots.txt HTTP/1.1\r\nHost: {server}\r\n\r\n"));
        assert_eq!(robots.2, b"User-agent: *\nDisallow: /\n");
    });
}

#[test]
fn a_page_of_a_name_that_points_here_reads_nothing() {
    with_server(ServerLimits::default(), |server, store| {
        drop(Store::open(&store).expect("a store"));
        for (host, expected) in [
            (server.to_string(), 200),
            ("localhost:5210".to_owned(), 200),
            ("rebound.example:5210".to_owned(), 421),
        ] {
            for path in ["/", "/api/v1/server", "/api/v1/results", "/metrics"] {
                let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                let (status, head, body) = ask(server, &request);
                assert_eq!(status, expected, "{host}{path}: {head}");
                let body = String::from_utf8_lossy(&body).into_owned();
                let is_line = body.contains("--allow-host rebound.example") && !body.contains('\n');
                assert!(status == 200 || is_line, "{body}");
            }
        }
    });
}

#[test]
fn results_are_listed_page_by_page_and_shown_in_every_form() {
    with_server(ServerLimits::default(), |server, _| {
        let named = |name: &str| {
            let asked = json!({ "streams": 1, "seconds": 1, "directions": ["down"], "name": name });
            let run = begin(server, &asked);
            fetch(server, &run, 0);
            let events = events(server, &run);
            text(of_kind(&events, "part")[0], "record").to_owned()
        };
        let ids = [named("first"), named("second")];
        let get = |path: &str| call(server, "GET", path, &Value::Null);
        let (status, page) = get("/api/v1/results?limit=1&kind=tcp&peer=127.0");
        assert_eq!((status, &page["next"]), (200, &json!(ids[1])), "{page}");
        assert_eq!(page["results"][0]["id"], json!(ids[1]));
        assert!(page["results"][0]["rate_bps"].as_f64().is_some_and(|rate| rate > 0.0));
        let (_, rest) = get(&format!("/api/v1/results?limit=1&before={}", ids[1]));
        assert_eq!((&rest["results"][0]["id"], &rest["next"]), (&json!(ids[0]), &Value::Null));
        let (_, first) = get("/api/v1/results?name=FIRS");
        assert_eq!(first["results"].as_array().map(Vec::len), Some(1), "{first}");
        let path = format!("/api/v1/results/{}", ids[0]);
        let (status, record) = get(&path);
        let record: Record = serde_json::from_value(record).expect("a record");
        assert_eq!((status, record.name.as_deref()), (200, Some("first")));
        let (status, verdict) = get(&format!("{path}/explain"));
        assert!(status == 200 && verdict["headline"].is_string(), "{verdict}");
        let (_, figures) = get(&format!("{path}/figures"));
        assert!(figures[0]["svg"].as_str().is_some_and(|svg| svg.starts_with("<svg")), "{figures}");
        let plain = |path: &str| ask(server, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (status, head, page) = plain(&format!("{path}/report"));
        assert!(status == 200 && head.contains("sandbox"), "{head}");
        assert!(String::from_utf8_lossy(&page).contains("<html"));
        let (status, head, table) = plain(&format!("{path}.csv"));
        assert!(status == 200 && head.contains("text/csv"), "{head}");
        assert!(String::from_utf8_lossy(&table).contains("goodput_bps"));
        let (_, _, metrics) = plain("/metrics");
        let metrics = String::from_utf8_lossy(&metrics).into_owned();
        let goodput = "linerate_goodput_bits_per_second{kind=\"tcp\",peer=\"127.0.0.0/24\"} ";
        assert!(metrics.contains(goodput) && metrics.ends_with("# EOF\n"), "{metrics}");
        let (status, refused) = get("/api/v1/results?since=abc");
        assert_eq!((status, &refused["error"]), (400, &json!("bad_request")), "{refused}");
        assert!(text(&refused, "say").starts_with("since: "), "{refused}");
        let (status, today) = get("/api/v1/results?since=2026-01&until=2999-12-31T23:59:59.999Z");
        assert_eq!((status, today["results"].as_array().map(Vec::len)), (200, Some(2)));
        // As the page promises before a test: the network and not the address, in every form.
        let list = "/api/v1/results".to_owned();
        let forms = ["", "/explain", "/report", "/figures", ".csv"].map(|it| format!("{path}{it}"));
        for form in forms.into_iter().chain([list, "/metrics".to_owned()]) {
            let (status, _, body) = plain(&form);
            let body = String::from_utf8_lossy(&body).into_owned();
            assert!(status == 200 && !body.contains("127.0.0.1"), "{form}: {body}");
        }
        for unknown in ["x", "..%2f..", "01a20b06-5838-7042-bb4f-de6137e4be0f"] {
            assert_eq!(get(&format!("/api/v1/results/{unknown}")).0, 404, "{unknown}");
        }
    });
}

/// A record of task `home` of plan `p`, so many seconds after the begin.
fn of_schedule(n: u8) -> Record {
    let at_s = 1_795_478_400 + u64::from(n);
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(at_s) * 1_000_000_000);
    let id = RecordId::from_parts(at_s * 1000, [n; 10]);
    let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
    record.name = Some("home".to_owned());
    for (key, value) in [(TAG_PLAN, "p".to_owned()), (TAG_SLOT, at_s.to_string())] {
        record.tags.insert(key.to_owned(), value);
    }
    record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, 1e6 * f64::from(n))];
    record
}

#[test]
fn series_of_schedules_are_given_over_http_and_a_scrape_starts_nothing() {
    with_server(ServerLimits::default(), |server, path| {
        let mut store = Store::open(&path).expect("a store");
        store.schedule_opened("p", "plan", 1_795_478_400).expect("opened");
        (1..=3).for_each(|n| store.put_record(&of_schedule(n)).expect("kept"));
        let change = json!({"metric": "rtt_ns", "before": 1e6, "after": 3e6});
        let (at_s, kind) = (1_795_478_403, EventKind::Change);
        store.event_happened("p", "home", at_s, kind, &change).expect("kept");
        let get = |path: &str| call(server, "GET", path, &Value::Null);
        let (status, newest) = get("/api/v1/series");
        assert_eq!(status, 200, "{newest}");
        let series = &newest["series"][0];
        assert_eq!((&series["plan"], &series["task"]), (&json!("p"), &json!("home")), "{newest}");
        assert_eq!(series["value"], json!(3e6), "the newest of three");
        let metric = text(series, "metric").to_owned();
        let (_, whole) =
            get(&format!("/api/v1/series?plan=p&metric={}", metric.replace('/', "%2F")));
        let values: Vec<_> = whole["values"].as_array().expect("a list").iter().collect();
        assert_eq!(values.len(), 3, "{whole}");
        assert_eq!((&values[0]["value"], &values[2]["value"]), (&json!(1e6), &json!(3e6)));
        assert_eq!(whole["events"][0]["kind"], "change", "{whole}");
        let (_, one) = get("/api/v1/series?plan=p&limit=1");
        assert_eq!(one["values"][0]["value"], json!(3e6), "{one}");
        assert_eq!(get("/api/v1/series?plan=q").0, 404);
        let before = std::fs::read(&path).expect("a file");
        for _ in 0..5 {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {server}\r\n\r\n");
            let (status, _, said) = ask(server, &request);
            let said = String::from_utf8_lossy(&said).into_owned();
            assert_eq!(status, 200);
            let labels = format!("{{plan=\"p\",task=\"home\",metric=\"{metric}\"}}");
            assert!(said.contains(&format!("linerate_schedule_value{labels} 3000000\n")), "{said}");
            assert!(said.contains("linerate_tests_running 0\n"), "{said}");
        }
        let (_, list) = get("/api/v1/results");
        assert_eq!(list["results"].as_array().map(Vec::len), Some(3), "nothing was measured");
        assert_eq!(std::fs::read(&path).expect("a file"), before, "nor written");
    });
}

#[test]
fn nonsense_gets_one_answer_that_names_it_and_holds_nothing_up() {
    let hello = Duration::from_secs(1);
    with_server(ServerLimits { hello, ..ServerLimits::default() }, |server, _| {
        let token = "00".repeat(16);
        let load = |method: &str, rest: &str, fields: &str| {
            format!("{method} /api/v1/load/{token}/{rest} HTTP/1.1\r\n{fields}\r\n")
        };
        for (request, status) in [
            (load("GET", "down/0", ""), 404),
            (load("GET", "sideways/0", ""), 404),
            (load("POST", "down/0", ""), 405),
            (load("POST", "up/0", "Transfer-Encoding: chunked\r\n"), 411),
            (load("POST", "up/0", "Content-Length: 1\r\nContent-Length: 2\r\n"), 400),
            (load("GET", "down/0", &format!("X: {}\r\n", "a".repeat(20_000))), 431),
            // Half a head, and nothing more.
            (format!("GET /api/v1/load/{token}/down"), 408),
            ("GET /api/v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 404),
            ("DELETE /api/v1/server HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 405),
            ("GET /api/v1/runs/x/events HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 404),
        ] {
            let (got, head, body) = ask(server, &request);
            assert_eq!(got, status, "{request}: {head}");
            let body: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{head}"));
            assert!(!text(&body, "say").is_empty() && !text(&body, "error").is_empty());
        }
        for body in [
            "{",
            "[]",
            "{\"streams\":\"4\"}",
            "{\"streams\":0}",
            "{\"unknown\":1}",
            "{\"directions\":[\"down\",\"down\"]}",
            "{\"seconds\":100000}",
            "\u{1}",
        ] {
            let request = format!(
                "POST /api/v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let (status, _, answer) = ask(server, &request);
            assert!(matches!(status, 400 | 403), "{body}: {status} {}", answer.escape_ascii());
        }
        let long = "POST /api/v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n";
        let (status, ..) = ask(server, &(long.to_owned() + &" ".repeat(70_000)));
        assert_eq!(status, 413);
        // Silent and half-open connections do not keep the next client waiting.
        let silent: Vec<TcpStream> = (0..20).map(|_| connect(server)).collect();
        for stream in &silent {
            let _ = (&*stream).write_all(b"PO");
        }
        silent[0].shutdown(Shutdown::Write).expect("open");
        let (status, about) = call(server, "GET", "/api/v1/server", &Value::Null);
        assert_eq!((status, &about["running"]), (200, &json!(0)), "{about}");
        assert_eq!(about["client"], json!("127.0.0.0/24"));
    });
}
