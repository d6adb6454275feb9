//! Lines and documents beside those of Debian's iperf3 3.12.

use linerate_core::record::*;
use linerate_core::time::WallTime;

use super::*;

fn sheet(role: Iperf3Role, directions: TcpDirections, streams: u16) -> Sheet {
    let finish = Finish::TimeNs(2_000_000_000);
    let plan = TcpPlan {
        server: ServerPlan::new(None, "127.0.0.1", 5299),
        test: TcpTest { directions, streams, finish, ..TcpTest::default() },
        ..TcpPlan::default()
    };
    Sheet::new(role, plan)
}

fn stream(direction: Direction, flow: u16, port: u16) -> StreamOpened {
    StreamOpened {
        direction,
        flow,
        local_addr: format!("127.0.0.1:{port}"),
        remote_addr: "127.0.0.1:5299".to_owned(),
        mss_bytes: Some(32_768),
        sndbuf_bytes: Some(16_384),
        rcvbuf_bytes: Some(131_072),
        session: Some("cookie".to_owned()),
    }
}

fn row(direction: Direction, flow: Option<u16>, bytes: u64) -> IntervalRow {
    IntervalRow {
        start_ns: 0,
        end_ns: 1_000_000_000,
        direction,
        flow,
        bytes,
        goodput_bps: bytes as f64 * 8.0,
        retransmits: Some(4),
        cwnd_bytes: Some(1_835_008),
        rtt_ns: Some(33_000),
        rtt_var_ns: Some(8_000),
        send_window_bytes: Some(32_900_096),
        pmtu_bytes: Some(65_535),
        omitted: false,
        datagrams: None,
    }
}

fn record(sheet: &Sheet, flows: Vec<Flow>) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let id = RecordId::from_parts(0, [0; 10]);
    let plan = Plan::Tcp(sheet.plan.clone());
    Record { flows, ..Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0)) }
}

fn flow(direction: Direction, flow: u16, bytes: u64) -> Flow {
    let end = |retransmits: Option<u32>| FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: 2_000_000_000,
        cpu_user_ns: Some(100_000_000),
        cpu_system_ns: Some(300_000_000),
        congestion_control: Asked { asked: None, got: Some("cubic".to_owned()) },
        tcp_info: retransmits
            .map(|count| TcpInfo { total_retrans: Some(count), ..TcpInfo::default() }),
        ..FlowEnd::default()
    };
    Flow {
        flow,
        direction,
        client_addr: String::new(),
        server_addr: String::new(),
        sender: Some(end(Some(4))),
        receiver: Some(end(None)),
        syn: None,
    }
}

#[test]
fn a_client_that_sends_prints_the_lines_of_iperf3() {
    let sheet = sheet(Iperf3Role::Client, TcpDirections::Up, 1);
    let mut lines = Iperf3Lines::new(sheet, Iperf3Unit::default(), false);
    let mut said = lines.connecting();
    said += &lines.stream(&stream(Direction::Up, 0, 45_660));
    // 4.13 GiB in a second are 35.5 Gbit/s; 8.05 GiB in two are 34.6.
    said += &lines.interval_lines(&row(Direction::Up, None, 4_434_553_733));
    let record = record(&lines.sheet, vec![flow(Direction::Up, 0, 8_643_621_683)]);
    said += &lines.summary(&record);
    let expected = "Connecting to host 127.0.0.1, port 5299
[  5] local 127.0.0.1 port 45660 connected to 127.0.0.1 port 5299
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  4.13 GBytes  35.5 Gbits/sec    4   1.75 MBytes       
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  8.05 GBytes  34.6 Gbits/sec    4             sender
[  5]   0.00-2.00   sec  8.05 GBytes  34.6 Gbits/sec                  receiver
";
    assert_eq!(said, expected);
}

#[test]
fn a_server_prints_its_own_side_with_sums_and_roles() {
    let sheet = sheet(Iperf3Role::Server, TcpDirections::Both, 2);
    let mut lines = Iperf3Lines::new(sheet, Iperf3Unit::default(), false);
    let mut said = lines.accepted();
    for (direction, flow) in [(Direction::Up, 0), (Direction::Up, 1), (Direction::Down, 0)] {
        lines.stream(&stream(direction, flow, 5299));
    }
    for (direction, flow) in [(Direction::Up, Some(1)), (Direction::Up, None)] {
        said += &lines.interval_lines(&row(direction, flow, 339_738_624));
    }
    said += &lines.interval_lines(&row(Direction::Down, None, 645 << 20));
    let expected = "Accepted connection from 127.0.0.1, port 5299
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  7][RX-S]   0.00-1.00   sec   324 MBytes  2.72 Gbits/sec                  
[SUM][RX-S]   0.00-1.00   sec   324 MBytes  2.72 Gbits/sec                  
[SUM][TX-S]   0.00-1.00   sec   645 MBytes  5.41 Gbits/sec    4             
- - - - - - - - - - - - - - - - - - - - - - - - -
";
    assert_eq!(said, expected);
    let flows = vec![flow(Direction::Up, 0, 1 << 30), flow(Direction::Down, 0, 1 << 30)];
    let record = record(&lines.sheet, flows);
    let expected = "[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][RX-S]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec                  receiver
[SUM][RX-S]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec                  receiver
[  9][TX-S]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec    4             sender
[SUM][TX-S]   0.00-2.00   sec  1.00 GBytes  4.29 Gbits/sec    4             sender
";
    assert_eq!(lines.summary(&record), expected);
}

#[test]
fn the_clock_starts_anew_after_the_omitted_span() {
    let mut sheet = sheet(Iperf3Role::Client, TcpDirections::Down, 1);
    sheet.plan.test.omit_ns = 1_000_000_000;
    let mut lines = Iperf3Lines::new(sheet, Iperf3Unit::default(), false);
    lines.stream(&stream(Direction::Down, 0, 1));
    let omitted = IntervalRow { omitted: true, ..row(Direction::Down, None, 1 << 20) };
    let said = lines.interval_lines(&omitted);
    assert!(
        said.ends_with("0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  (omitted)\n"),
        "{said}"
    );
    // A busy host ended it 30 ms late, and no time is left out between the rows.
    let next = |start_ms: u64| IntervalRow {
        start_ns: start_ms * 1_000_000,
        end_ns: (start_ms + 1000) * 1_000_000,
        ..row(Direction::Down, None, 1 << 20)
    };
    assert!(lines.interval_lines(&next(1030)).starts_with("[  5]   0.00-1.00   sec"));
    assert!(lines.interval_lines(&next(2030)).starts_with("[  5]   1.00-2.00   sec"));
}

/// Every key of `theirs` is in `ours`, with a value of the same type or null.
fn assert_has_keys(ours: &serde_json::Value, theirs: &serde_json::Value, path: &str) {
    use serde_json::Value::{Array, Bool, Null, Number, Object, String};
    match (ours, theirs) {
        (Object(ours), Object(theirs)) => {
            for (key, value) in theirs {
                let path = format!("{path}.{key}");
                let own = ours.get(key).unwrap_or_else(|| panic!("{path} is missing"));
                assert_has_keys(own, value, &path);
            }
        }
        (Array(ours), Array(theirs)) => {
            for (own, value) in ours.iter().zip(theirs) {
                assert_has_keys(own, value, path);
            }
        }
        (Null, _) | (Number(_), Number(_)) | (String(_), String(_)) | (Bool(_), Bool(_)) => {}
        (own, value) => panic!("{path} is {own}, where iperf3 has {value}"),
    }
}

/// The documents of `iperf3 -J`, version 3.12.
const DOCUMENTS: [(TcpDirections, &str); 3] = [
    (TcpDirections::Up, include_str!("../../../../testdata/iperf3/tcp.json")),
    (TcpDirections::Down, include_str!("../../../../testdata/iperf3/reverse.json")),
    (TcpDirections::Both, include_str!("../../../../testdata/iperf3/both.json")),
];

#[test]
fn the_document_has_every_key_of_iperf3() {
    for (directions, theirs) in DOCUMENTS {
        let sheet = sheet(Iperf3Role::Client, directions, 1);
        let mut document = Iperf3Document::new(sheet, Surroundings::default());
        let ways = document.sheet.directions();
        for &direction in ways {
            document.stream(&stream(direction, 0, 1));
        }
        for &direction in ways {
            document.add_interval_row(&row(direction, None, 1 << 20));
        }
        let flows = ways.iter().map(|&direction| flow(direction, 0, 1 << 20)).collect();
        let whole = document.complete_json(&record(&document.sheet, flows), None);
        let theirs = linerate_core::tree::from_json(theirs).expect("a document");
        assert_has_keys(&whole, &theirs, "");
        assert_eq!(whole["intervals"].as_array().map(Vec::len), Some(1));
        // 1 MiB in two seconds is 4,194,304 bit/s.
        assert_eq!(whole["end"]["sum_received"]["bits_per_second"], 4_194_304.0);
        assert_eq!(whole["end"]["cpu_utilization_percent"]["host_total"], 20.0 * ways.len() as f64);
    }
}

#[test]
fn a_udp_test_prints_datagrams_as_iperf3_does() {
    let plan = UdpPlan {
        test: UdpTest {
            size_bytes: Some(32_768),
            finish: Finish::TimeNs(1_000_000_000),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    };
    // 4 datagrams of 32 KiB in a second are 1.05 Mbit/s.
    let sent = IntervalRow { retransmits: None, ..row(Direction::Up, None, 131_072) };
    let mut lines =
        Iperf3Lines::new(Sheet::of_udp(Iperf3Role::Client, &plan), Iperf3Unit::default(), false);
    let expected = "[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  4  
";
    assert_eq!(lines.interval_lines(&sent), expected);
    let datagrams =
        DatagramRow { received: 3, lost: 1, jitter_ns: Some(4600), ..DatagramRow::default() };
    let came = IntervalRow { datagrams: Some(datagrams), ..sent };
    let mut server =
        Iperf3Lines::new(Sheet::of_udp(Iperf3Role::Server, &plan), Iperf3Unit::default(), false);
    let expected =
        "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.005 ms  1/4 (25%)  
";
    assert_eq!(server.interval_lines(&came), expected);
    let tally = DatagramTally { sent: Some(4), received: 3, lost: 1, ..DatagramTally::default() };
    let end = FlowEnd {
        bytes: 131_072,
        bytes_measured: 131_072,
        span_ns: 1_000_000_000,
        cpu_user_ns: Some(0),
        cpu_system_ns: Some(0),
        ..FlowEnd::default()
    };
    let sent = SentDatagrams { count: 4, measured: 4, ..SentDatagrams::default() };
    let received =
        ReceivedDatagrams { all: tally, measured: tally, ..ReceivedDatagrams::default() };
    let sender = FlowEnd { sent_datagrams: Some(sent), ..end.clone() };
    let (bytes, received_datagrams) = (98_304, Some(received));
    let receiver = FlowEnd { bytes, bytes_measured: bytes, received_datagrams, ..end };
    let flow = Flow { sender: Some(sender), receiver: Some(receiver), ..flow(Direction::Up, 0, 0) };
    let record = record(&lines.sheet, vec![flow]);
    let expected = "- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.000 ms  0/4 (0%)  sender
[  5]   0.00-1.00   sec  96.0 KBytes   786 Kbits/sec  0.000 ms  1/4 (25%)  receiver
";
    assert_eq!(lines.summary(&record), expected);
    let sheet = Sheet::of_udp(Iperf3Role::Client, &plan);
    let mut document = Iperf3Document::new(sheet, Surroundings::default());
    document.stream(&stream(Direction::Up, 0, 1));
    document.add_interval_row(&row(Direction::Up, None, 131_072));
    let theirs = include_str!("../../../../testdata/iperf3/udp.json");
    let theirs = linerate_core::tree::from_json(theirs).expect("a document");
    let whole = document.complete_json(&record, None);
    assert_has_keys(&whole, &theirs, "");
    assert_eq!(whole["end"]["sum"]["lost_percent"], 25.0);
    assert_eq!(whole["intervals"][0]["sum"]["packets"], 4);
}

/// The keys of a printed document, each with the tabs before it.
fn keys_of(printed: &str) -> Vec<(usize, &str)> {
    let key = |line: &'_ str| {
        let text = line.trim_start_matches('\t');
        let name = text.strip_prefix('"')?.split_once("\":").map(|(name, _)| name.len())?;
        Some((line.len() - text.len(), name))
    };
    printed
        .lines()
        .filter_map(|line| {
            let (tabs, length) = key(line)?;
            Some((tabs, &line[tabs + 1..=tabs + length]))
        })
        .collect()
}

/// A whole test of a second in each direction.
fn document_of(directions: TcpDirections, udp: bool) -> serde_json::Value {
    let sheet = Sheet { udp, ..sheet(Iperf3Role::Client, directions, 1) };
    let mut document = Iperf3Document::new(sheet, Surroundings::default());
    let ways = document.sheet.directions();
    for &direction in ways {
        document.stream(&stream(direction, 0, 1));
    }
    for &direction in ways {
        let datagrams = udp.then(DatagramRow::default);
        document.add_interval_row(&IntervalRow { datagrams, ..row(direction, None, 1 << 20) });
    }
    let datagrams = |flow: Flow| match udp {
        true => Flow {
            sender: flow
                .sender
                .map(|end| FlowEnd { sent_datagrams: Some(SentDatagrams::default()), ..end }),
            receiver: flow.receiver.map(|end| FlowEnd {
                received_datagrams: Some(ReceivedDatagrams::default()),
                ..end
            }),
            ..flow
        },
        false => flow,
    };
    let flows = ways.iter().map(|&direction| datagrams(flow(direction, 0, 1 << 20))).collect();
    document.complete_json(&record(&document.sheet, flows), None)
}

#[test]
fn the_document_has_the_keys_of_3_21_in_their_order() {
    use TcpDirections::{Both, Down, Up};
    let theirs = [
        (Up, false, include_str!("../../../../testdata/iperf3/tcp-3.21.json")),
        (Down, false, include_str!("../../../../testdata/iperf3/reverse-3.21.json")),
        (Both, false, include_str!("../../../../testdata/iperf3/both-3.21.json")),
        (Up, true, include_str!("../../../../testdata/iperf3/udp-3.21.json")),
        (Down, true, include_str!("../../../../testdata/iperf3/udp-reverse-3.21.json")),
        (Both, true, include_str!("../../../../testdata/iperf3/udp-both-3.21.json")),
    ];
    for (directions, udp, theirs) in theirs {
        let ours = pretty(&document_of(directions, udp));
        assert_eq!(keys_of(&ours), keys_of(theirs), "{directions:?}, UDP {udp}");
    }
}

#[test]
fn a_printer_of_documents_gives_back_what_iperf3_printed() {
    let theirs = include_str!("../../../../testdata/iperf3/udp-both-3.21.json");
    let document: serde_json::Value = serde_json::from_str(theirs).expect("a document");
    // Digits of fractions are the C library's there and Rust's shortest here.
    let plain = |text: &str| -> String {
        let fraction = |line: &str| match line.split_once(':') {
            Some((key, value)) if value.contains('.') && !value.contains('"') => {
                let value: f64 = value.trim().trim_end_matches(',').parse().unwrap_or(f64::NAN);
                format!("{key}:{value:.12e}\n")
            }
            _ => format!("{line}\n"),
        };
        text.lines().map(fraction).collect()
    };
    assert_eq!(plain(&pretty(&document)), plain(theirs));
}

#[test]
fn a_test_that_found_no_server_tells_of_itself_and_why() {
    let sheet = sheet(Iperf3Role::Client, TcpDirections::Up, 1);
    let document = Iperf3Document::new(sheet, Surroundings::default());
    let whole = document.complete_json(&record(&document.sheet, Vec::new()), Some("no server"));
    // The keys of iperf3 3.21 after a refused connection.
    let expected = [
        (1, "start"),
        (2, "connected"),
        (2, "version"),
        (2, "system_info"),
        (1, "intervals"),
        (1, "end"),
        (1, "error"),
    ];
    assert_eq!(keys_of(&pretty(&whole)), expected);
}

#[test]
fn an_end_that_told_nothing_has_no_key() {
    let sheet = sheet(Iperf3Role::Client, TcpDirections::Up, 1);
    let document = Iperf3Document::new(sheet, Surroundings::default());
    let half = Flow { receiver: None, ..flow(Direction::Up, 0, 1000) };
    let end = document.end_object(&record(&document.sheet, vec![half]));
    assert_eq!(end["sum_sent"]["bytes"], 1000);
    assert!(end.get("sum_received").is_none(), "{end}");
    assert!(end["streams"][0].get("receiver").is_none(), "{end}");
}

#[test]
fn a_verbose_client_tells_of_session_and_processors_as_3_21_does() {
    let sheet = sheet(Iperf3Role::Client, TcpDirections::Up, 1);
    let mut lines = Iperf3Lines::new(sheet, Iperf3Unit::default(), true);
    let opened = stream(Direction::Up, 0, 45_660);
    assert_eq!(lines.session(&opened), "      Cookie: cookie\n      TCP MSS: 32768 (default)\n");
    lines.stream(&opened);
    let record = record(&lines.sheet, vec![flow(Direction::Up, 0, 1 << 20)]);
    let said = lines.summary(&record);
    // 0.1 s and 0.3 s of two.
    let expected = "CPU Utilization: local/sender 20.0% (5.0%u/15.0%s), remote/receiver 20.0% \
                    (5.0%u/15.0%s)\nsnd_tcp_congestion cubic\nrcv_tcp_congestion cubic\n";
    assert!(said.ends_with(expected), "{said}");
}
