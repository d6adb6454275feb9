//! What a person sees on a terminal, as reviewed snapshots: live lines and results at 60, 80 and
//! 120 columns, with colours and without, brief, in one line and whole. No line is wider than its
//! terminal, no word is broken, and a result takes seven lines at most.

use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_core::conformance::Conformance;
use linerate_core::record::{
    Ceiling, CeilingInput, DatagramRow, Direction, IntervalRow, PathPlan, PingReply, Plan, Record,
    SearchSpan, ServerPlan, SubInterval, TestPlan,
};
use linerate_core::simulate::{RunSummary, SimulationReport, TcpSummary};
use linerate_report::live::{self, Rows};
use linerate_report::{Detail, Document, Screen, conform, examination, folded, record, simulate};

/// The most lines of a result where nobody asks for more: the answer, which is broken at 60 and 80
/// columns, and six.
const LINES_MAX: usize = 8;

const WIDTHS: [usize; 3] = [60, 80, 120];

fn file(folder: &str, name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(folder).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn stored(name: &str) -> Record {
    Record::from_json(&file("testdata/screens", name)).expect("a record")
}

/// The words of a text, wherever its lines are broken.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Every screen of a result under the live lines that led to it.
fn check(name: &str, document: &Document, live: &dyn Fn(Option<usize>) -> String) {
    let on = |width, detail, colour| document.render_on_screen(&Screen { width, colour, detail });
    let mut out = String::new();
    let unbroken = on(None, Detail::Brief, false);
    for width in WIDTHS {
        let brief = on(Some(width), Detail::Brief, false);
        let whole = on(Some(width), Detail::Full, false);
        let rows = live(Some(width));
        for (what, text) in [("live", &rows), ("result", &brief), ("everything (-v)", &whole)] {
            for line in text.lines() {
                let wide = line.chars().count();
                let alone = line.split_whitespace().count() == 1;
                assert!(wide <= width || alone, "{name}, {what} at {width}: {wide}: {line}");
            }
            if what != "everything (-v)" || width == 80 {
                let _ = write!(out, "==== {what}, {width} columns\n{text}");
            }
        }
        assert_eq!(words(&brief), words(&unbroken), "{name} at {width}");
        let fits = width < 80 || brief.lines().count() <= LINES_MAX;
        assert!(fits, "{name} at {width}:\n{brief}");
    }
    let coloured = on(Some(80), Detail::Brief, true).replace('\u{1b}', "^[");
    let _ = write!(out, "==== result with colours, 80 columns\n{coloured}");
    let answer = on(None, Detail::Answer, false);
    assert_eq!(answer.lines().count(), 1, "{answer}");
    // A terminal would break it within words.
    let narrow = on(Some(80), Detail::Answer, false);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert_eq!(words(&narrow), words(&answer));
    let _ = write!(out, "==== one line (-q)\n{answer}");
    golden(name, &out);
}

fn golden(name: &str, text: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/screens");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("LINERATE_ACCEPT").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder for the screens");
        std::fs::write(&path, text).expect("the screen can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} changed: look at it, then accept with LINERATE_ACCEPT=1\n{text}"
    );
}

const S: u64 = 1_000_000_000;

fn row(flow: Option<u16>, second: u64, bytes: u64) -> IntervalRow {
    IntervalRow {
        start_ns: second * S,
        end_ns: (second + 1) * S,
        direction: Direction::Up,
        flow,
        bytes,
        goodput_bps: bytes as f64 * 8.0,
        retransmits: Some(second),
        cwnd_bytes: Some(1_047_552 * (second + 1)),
        rtt_ns: Some(188_000 * (second + 1)),
        rtt_var_ns: None,
        send_window_bytes: None,
        pmtu_bytes: None,
        omitted: second == 0,
        datagrams: None,
    }
}

fn tcp_rows(width: Option<usize>) -> String {
    let mut rows = Rows::tcp(width);
    let down = IntervalRow { direction: Direction::Down, omitted: true, ..row(Some(15), 12345, 7) };
    let all = [row(None, 0, 2_276_980_000), row(None, 1, 2_100_000_000), down];
    let lines = all.iter().map(|it| rows.interval(it) + "\n");
    folded("1 stream to 127.0.0.1:6311", width) + &lines.collect::<String>()
}

fn udp_rows(width: Option<usize>) -> String {
    let mut rows = Rows::udp(width);
    let of = |datagrams| IntervalRow { datagrams: Some(datagrams), ..row(None, 1, 24_860_000) };
    let clean = DatagramRow { sent: 16_890, received: 16_890, ..DatagramRow::default() };
    let lossy = DatagramRow {
        lost: 1234,
        lost_here: 7,
        reordered: 12,
        duplicates: 1,
        jitter_ns: Some(1_234_567),
        ..clean
    };
    let none = IntervalRow { datagrams: None, ..row(None, 2, 0) };
    [of(clean), of(lossy), none].iter().map(|it| rows.interval(it) + "\n").collect()
}

fn search_rows(width: Option<usize>) -> String {
    let mut rows = Rows::search(width);
    let of = |index: u32, ip_bps| SubInterval {
        span: SearchSpan {
            index,
            length_ns: S,
            delay_min_ns: Some(0),
            delay_max_ns: Some(27_000_000),
            ..SearchSpan::default()
        },
        ip_bps,
        loss_ratio: Some(0.0123),
        offered_bps: Some(95_280_000.0),
        rtt_min_ns: Some(21_000_000),
        rtt_max_ns: Some(46_000_000),
    };
    [of(0, 56_680_000.0), of(1, 149_690_000.0)]
        .iter()
        .map(|it| rows.sub_interval(it) + "\n")
        .collect()
}

fn ping_lines(width: Option<usize>) -> String {
    let reply = PingReply {
        sequence: 0,
        payload_bytes: 56,
        rtt_ns: Some(42_935),
        ttl: Some(64),
        duplicate: false,
    };
    let lost = PingReply { sequence: 1, rtt_ns: None, ttl: None, ..reply.clone() };
    let first = "PING 127.0.0.1 (127.0.0.1): 56 bytes of payload, ICMP raw socket, open loop: one \
                 every 200ms, sleeping, answered by the peer's kernel";
    let lines = [reply, lost].map(|it| live::reply_line(&it, "127.0.0.1", 5));
    format!("{}{}\n", folded(first, width), lines.join("\n"))
}

fn nothing(_: Option<usize>) -> String {
    String::new()
}

/// The record over a gigabit link, as ethtool tells it.
fn over_a_gigabit(mut record: Record, bps: f64) -> Record {
    // 1448 of 1538 bytes (RFC 894, IEEE 802.3) of 1 Gbit/s.
    let value = 941_482_444.7;
    record.caveats.clear();
    record.ceiling = Some(Ceiling {
        value: Some(value),
        inputs: vec![
            CeilingInput::from_value("link_rate_bps", 1e9, "speed of eth0 at the local end"),
            CeilingInput::from_value("packet_bytes", 1500.0, "the MTU of eth0"),
        ],
        share: Some(bps / value),
        ..Ceiling::of_goodput(Direction::Up)
    });
    record
}

#[test]
fn tcp_that_the_host_limits() {
    check("tcp", &record::document(&stored("tcp.json")), &tcp_rows);
}

#[test]
fn tcp_that_fills_its_link() {
    let mut full = over_a_gigabit(stored("tcp.json"), 936e6);
    full.summary[0].value = 936e6;
    check("tcp-full-link", &record::document(&full), &nothing);
}

#[test]
fn tcp_over_a_link_of_unknown_rate() {
    let mut unknown = over_a_gigabit(stored("tcp.json"), 936e6);
    let missing = vec!["the link's rate".to_owned()];
    unknown.ceiling = Some(Ceiling { unknown: missing, ..Ceiling::of_goodput(Direction::Up) });
    check("tcp-unknown-link", &record::document(&unknown), &nothing);
}

#[test]
fn udp_at_its_pace() {
    check("udp", &record::document(&stored("udp.json")), &udp_rows);
}

#[test]
fn a_search_that_the_host_limits() {
    check("udp-search", &record::document(&stored("search.json")), &search_rows);
}

#[test]
fn pings_of_loopback() {
    check("ping", &record::document(&stored("ping.json")), &ping_lines);
}

#[test]
fn a_test_of_several_parts() {
    let parts: Vec<Record> = file("testdata/screens", "test.jsonl")
        .lines()
        .map(|line| Record::from_json(line).expect("a part"))
        .collect();
    let lines: Vec<String> = parts.iter().map(examination::result_line).collect();
    let shown = |width| {
        let numbered = (1..).zip(&lines);
        numbered.map(|(at, line)| folded(&format!("{at}/{} {line}", lines.len()), width)).collect()
    };
    let mut whole = parts[0].clone();
    whole.plan = Plan::Test(TestPlan {
        server: ServerPlan::default(),
        tcp_time_ns: None,
        congestion_control: None,
        ping_count: 1000,
        within_ns: None,
        goal: None,
    });
    whole.parts = parts;
    check("test", &record::document(&whole), &shown);
}

#[test]
fn a_capture_that_breaks_its_contract() {
    let found: Conformance =
        serde_json::from_str(&file("testdata/screens", "conform.json")).expect("a result");
    check("conform", &conform::document(&found), &nothing);
}

#[test]
fn a_flow_that_is_simulated() {
    check("simulate", &simulate::document(&simulated()), &nothing);
}

/// As `linerate path simulate --rate 50M --delay 10ms -t 5` printed it.
fn simulated() -> SimulationReport {
    let run = RunSummary {
        seed: 1,
        complete: true,
        span_ns: 5 * S,
        goodput_bps: 46_460_000.0,
        share_of_ceiling: Some(0.987),
        fairness: None,
        transfer_ns: None,
        segments_sent: 20_222,
        retransmitted: 11,
        recoveries: 2,
        timeouts: 0,
        lost_forward: 11,
        lost_backward: 0,
        events: 30_370,
        flows: Vec::new(),
    };
    SimulationReport {
        plan: PathPlan::default(),
        link_bps: Some(50e6),
        rtt_ns: 20_000_000,
        ceiling_bps: Some(47_070_000.0),
        tcp: TcpSummary {
            congestion_control: "cubic",
            recovery: "rack",
            mss_bytes: 1448,
            header_bytes: 52,
            initial_window: 10,
            hystart: true,
            bytes_counted: true,
            window_bytes: 1_073_741_824,
            ack_every: 2,
            segmentation_offload: true,
            rto_min_ns: 200_000_000,
        },
        flow_count: 1,
        flow_bytes: None,
        start_spread_ns: 0,
        runs: vec![run],
        speed: None,
    }
}
