//! Texts and pages of single results, held against hand-made records.

use crate::common;
use linerate_core::record::{
    Asked, Caveat, CaveatCode, Ceiling, DEFAULT_PORT, Direction, Failure, Fault, Flow, FlowEnd,
    MetricId, PingMode, PingPlan, Plan, Record, RecordStatus, ServerPlan, Stat, Summary,
    TcpDirections, TcpInfo, TcpPlan, TcpTest,
};
use linerate_report::{csv, record};

fn tcp_plan() -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(None, "10.0.0.2", DEFAULT_PORT),
        test: TcpTest {
            streams: 2,
            window_bytes: Some(32_768),
            congestion_control: Some("reno".to_owned()),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn flow(number: u16, direction: Direction) -> Flow {
    let info = TcpInfo {
        rtt_us: Some(412),
        total_retrans: Some(3),
        snd_cwnd: Some(32),
        snd_mss_bytes: Some(1448),
        ..TcpInfo::default()
    };
    let sender = FlowEnd {
        congestion_control: Asked { asked: Some("reno".to_owned()), got: Some("cubic".to_owned()) },
        tcp_info: Some(info),
        ..FlowEnd::default()
    };
    // 590,000,000 bytes in 10 s are 472 Mbit/s.
    let receiver = FlowEnd {
        bytes_measured: 590_000_000,
        span_ns: 10_000_000_000,
        rcvbuf_bytes: Asked { asked: Some(32_768), got: Some(65_536) },
        window_advertised_bytes_max: Some(46_720),
        ..FlowEnd::default()
    };
    Flow {
        flow: number,
        direction,
        client_addr: "10.0.0.1:40000".to_owned(),
        server_addr: "10.0.0.2:5210".to_owned(),
        sender: Some(sender),
        receiver: Some(receiver),
        syn: None,
    }
}

fn tcp_record() -> Record {
    let mut record = common::bare_record(0, Plan::Tcp(tcp_plan()));
    record.duration_ns = 10_020_000_000;
    record.flows = vec![flow(0, Direction::Up), flow(1, Direction::Up)];
    let row =
        |metric, stat, value| Summary::from_value(metric, stat, value).in_direction(Direction::Up);
    record.summary = vec![
        row(MetricId::Goodput, Stat::Value, 933_000_000.0),
        row(MetricId::Bytes, Stat::Value, 1_180_000_000.0),
        row(MetricId::Retransmits, Stat::Value, 6.0),
        row(MetricId::CpuSender, Stat::Value, 0.312),
        row(MetricId::CpuShareSender, Stat::Max, 0.29),
    ];
    record.ceiling = Some(Ceiling {
        value: Some(941_482_444.7),
        share: Some(0.991),
        ..Ceiling::of_goodput(Direction::Up)
    });
    record.series = vec![common::intervals(Direction::Up, 933e6)];
    record
}

#[test]
fn a_tcp_text_tells_asked_and_got_and_how_near_the_ceiling_is() {
    let text = record::document(&tcp_record()).text(None);
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in:\n{text}");
    has("TCP with 10.0.0.2 port 5210: client to server, 2 streams, 10.0 s, writes of 512 KiB");
    has("472.0 Mbit/s");
    has("933.0 Mbit/s");
    has("32 KiB/64 KiB/46720 bytes");
    has("reno/cubic");
    // 32 segments of 1448 bytes are 46,336 bytes: 45.25 times 1024.
    has("45.25 KiB");
    has("CPU: sender 0.312 s/GB (busiest thread 29 % of a core), receiver \u{2014}");
    has("ceiling 941.48 Mbit/s payload: reached 99.1 %");
    let first = "933.0 Mbit/s to 10.0.0.2 \u{b7} 99.1 % of the ceiling 941.5 Mbit/s \u{b7} \
                limited by \
                 the link: it is full \u{b7} good \u{b7} ";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn the_instruments_own_limit_comes_before_any_number() {
    let mut record = tcp_record();
    let busy = "a sender thread used 99 % of a core";
    record.caveats = vec![
        Caveat::new(CaveatCode::SameHost, "both ends run on one kernel", "mind it"),
        Caveat::new(CaveatCode::CpuBound, busy, "try -P 2"),
    ];
    let text = record::document(&record).text(None);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at("  this host: a sender thread") < at("933.0 Mbit/s  "));
    // A link that was full clears the host.
    assert!(text.starts_with("933.0 Mbit/s to 10.0.0.2 \u{b7} "), "{text}");
    let unbound = Record { ceiling: None, ..record.clone() };
    let first = "Limited by this host: 933.0 Mbit/s to 10.0.0.2 \u{b7} a sender thread used 99 % \
                 of a core \u{b7} doubtful \u{b7} ";
    assert!(record::document(&unbound).text(None).starts_with(first), "{text}");
    assert!(at("note: both ends run on one kernel; mind it") > at("933.0 Mbit/s  "));
    let page = record::document(&record).html();
    assert!(page.find(busy) < page.find("933.0"), "the page keeps the same order");
}

#[test]
fn a_failed_test_says_so_and_keeps_what_it_has() {
    let mut record = common::bare_record(0, Plan::Tcp(tcp_plan()));
    record.status = RecordStatus::Error;
    record.failure = Some(
        Failure::new(Fault::Unreachable, "connect", "10.0.0.2:5210", "connection refused")
            .advise("start `linerate serve` there"),
    );
    let text = record::document(&record).text(None);
    let line = "  failed: connect 10.0.0.2:5210: connection refused; start `linerate serve` there";
    assert!(text.lines().any(|it| it == line), "{text}");
    let first = "nothing was measured with 10.0.0.2 \u{b7} bad: connect 10.0.0.2:5210: connection \
                 refused; start `linerate serve` there";
    assert!(text.starts_with(first), "{text}");
    assert!(!text.contains(" 0 bit/s"), "what is absent is not 0: {text}");
    assert!(record::document(&record).html().contains("connection refused"));

    let mut partial = tcp_record();
    partial.status = RecordStatus::Partial;
    partial.failure = record.failure;
    assert!(record::document(&partial).text(None).contains("ended early: connect"));
    let first = "933.0 Mbit/s to 10.0.0.2 \u{b7} 99.1 % of the ceiling 941.5 Mbit/s \u{b7} \
                limited by \
                 the link: it is full \u{b7} doubtful: ended early: connection refused \u{b7} ";
    assert!(record::document(&partial).text(None).starts_with(first));
}

#[test]
fn both_directions_have_their_own_table() {
    let mut record = tcp_record();
    record.plan = Plan::Tcp(TcpPlan {
        test: TcpTest { directions: TcpDirections::Both, ..tcp_plan().test },
        ..tcp_plan()
    });
    record.flows.push(flow(0, Direction::Down));
    let down =
        Summary::from_value(MetricId::Goodput, Stat::Value, 472e6).in_direction(Direction::Down);
    record.summary.push(down);
    record.ceiling = None;
    let text = record::document(&record).text(None);
    assert!(text.contains("\nclient to server\n") && text.contains("\nserver to client\n"));
    let first =
        "933.0 Mbit/s up, 472.0 Mbit/s down with 10.0.0.2 \u{b7} limit not known \u{b7} good";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn a_page_of_one_result_has_its_answer_before_host_and_kernel() {
    let html = record::document(&tcp_record()).html();
    let (_, body) = html.split_once("<body>").expect("a body");
    let at = |word: &str| body.find(word).unwrap_or_else(|| panic!("no {word} in {body}"));
    let places = ["<h1>", "class=\"sentence\"", "class=\"lead\"", "<table"].map(at);
    assert!(places.is_sorted(), "{places:?}");
}

fn ping_record() -> Record {
    let plan = PingPlan {
        host: "10.0.0.2".to_owned(),
        sizes_bytes: vec![56, 1460],
        count: Some(10_000),
        mode: PingMode::Flood,
        ..PingPlan::default()
    };
    let mut record = common::bare_record(0, Plan::Ping(plan));
    for (size, mean) in [(56, 6_412.0), (1460, 145_000.0)] {
        record.summary.extend(common::ping_summary(size, mean));
        record.distributions.push(common::distribution(size, mean as u64));
    }
    record
}

#[test]
fn a_ping_text_has_a_column_for_each_size() {
    let text = record::document(&ping_record()).text(None);
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in:\n{text}");
    has("ping of 10.0.0.2 by ICMP echo: 56 and 1460 bytes of payload, 10000 probes of each size");
    has("  payload, bytes        56      1460\n");
    // 0.9 and 3 times the means, to the nanosecond where no step of the clock is known.
    has("  min, ms         0.005771  0.130500\n");
    has("  max, ms         0.019236  0.435000\n");
    // 1000/0.006412 is 155957.58 and 1000/0.145 is 6896.55, which the study cuts to 6896.
    has("  1000/avg          155957      6896\n");
    has("  sent               10000     10000\n");
    // 0.98 times the means.
    let first = "RTT 0.00628 ms (median) to 10.0.0.2 of 56 bytes and 0.142 ms of 1460, \
                 0 of 20000 lost \u{b7} ";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn only_a_flood_has_a_rate_of_pings() {
    // A paced ping's rate is the one that was asked for.
    let mut record = ping_record();
    assert!(record::document(&record).html().contains("pings per second"));
    let Plan::Ping(plan) = &mut record.plan else { panic!("it is a ping plan") };
    plan.mode = PingMode::Paced;
    let page = record::document(&record).html();
    assert!(!page.contains("pings per second") && !page.contains("1000/avg"), "{page}");
}

#[test]
fn each_direction_stands_beside_its_own_ceiling() {
    let mut record = tcp_record();
    record.plan = Plan::Tcp(TcpPlan {
        test: TcpTest { directions: TcpDirections::Both, ..tcp_plan().test },
        ..tcp_plan()
    });
    record.flows.push(flow(0, Direction::Down));
    let down =
        Summary::from_value(MetricId::Goodput, Stat::Value, 472e6).in_direction(Direction::Down);
    record.summary.push(down);
    let unknown = vec!["the link's rate: eth0 (veth) does not report one".to_owned()];
    record.ceiling_reverse = Some(Ceiling { unknown, ..Ceiling::of_goodput(Direction::Down) });
    let text = record::document(&record).text(None);
    let (up, down) = text.split_once("\nserver to client\n").expect("both have a heading");
    assert!(up.contains("ceiling 941.48 Mbit/s payload: reached 99.1 %"), "{text}");
    assert!(down.contains("ceiling unknown, for want of the link's rate: eth0 (veth)"), "{text}");
    let shares = " \u{b7} 99.1 % of the ceiling 941.5 Mbit/s and ceiling not known \u{b7} ";
    assert!(text.lines().next().is_some_and(|line| line.contains(shares)), "{text}");
    let page = record::document(&record).html();
    assert!(page.contains("of the ceiling 941.48") && page.contains("no ceiling is known"));
    let csv = csv::record(&record);
    assert!(csv.contains(",payload,,,the link's rate: eth0 (veth) does not report one"), "{csv}");
}

#[test]
fn more_than_the_ceiling_is_never_a_share_in_silence() {
    let mut record = tcp_record();
    if let Some(ceiling) = &mut record.ceiling {
        ceiling.share = Some(1.07);
    }
    let text = record::document(&record).text(None);
    assert!(text.contains(": 107 % of it was measured, so one of the two is wrong"), "{text}");
    assert!(
        text.lines().next().is_some_and(|line| line.contains("107 % of the ceiling")),
        "{text}"
    );
    // A bound that is wrong says nothing of what limited the result.
    assert!(text.contains("limit not known: more than the ceiling allows was measured"), "{text}");
    assert!(record::document(&record).html().contains("one of the two is wrong"));
}

#[test]
fn many_streams_are_shown_by_their_ends_and_their_sum() {
    let mut record = tcp_record();
    record.flows = (0..17).map(|number| flow(number, Direction::Up)).collect();
    // 200,000,000 bytes in 10 s are 160 Mbit/s.
    if let Some(receiver) = &mut record.flows[3].receiver {
        receiver.bytes_measured = 200_000_000;
    }
    let text = record::document(&record).text(None);
    let line = |begin: &str| text.lines().find(|line| line.trim_start().starts_with(begin));
    assert!(line("slowest (3)").is_some_and(|line| line.contains("160.0 Mbit/s")), "{text}");
    assert!(line("fastest (").is_some_and(|line| line.contains("472.0 Mbit/s")), "{text}");
    assert!(line("sum of 17").is_some_and(|line| line.contains("933.0 Mbit/s")), "{text}");
    assert!(line("16 ").is_none(), "{text}");
}

#[test]
fn lost_probes_are_counted_in_the_headline() {
    let mut record = ping_record();
    let received = |row: &&mut Summary| row.metric == MetricId::Received;
    record.summary.iter_mut().find(received).expect("a row of it").value = 9_999.0;
    let text = record::document(&record).text(None);
    assert!(text.lines().next().is_some_and(|line| line.contains(", 1 of 20000 lost")), "{text}");
    record.summary.clear();
    assert!(record::document(&record).text(None).starts_with("no answer from 10.0.0.2 \u{b7} "));
}

#[test]
fn a_name_from_outside_reaches_neither_terminal_nor_page_as_a_command() {
    let mut record = tcp_record();
    let Plan::Tcp(plan) = &mut record.plan else { panic!("it is a TCP plan") };
    plan.server.host = "\u{1b}[2Jhost<img>".to_owned();
    assert!(!record::document(&record).text(None).contains('\u{1b}'));
    let page = record::document(&record).html();
    assert!(!page.contains("<img>") && !page.contains('\u{1b}'));
}

#[test]
fn lines_of_values_have_keys_and_units_from_the_metric_table() {
    let csv = csv::record(&tcp_record());
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 6);
    let goodput =
        ",goodput_bps,value,up,,,,933000000,bit/s,payload,941482444.7,0.991,,tcp,10.0.0.2,up";
    assert!(lines[1].ends_with(goodput), "{}", lines[1]);
    assert!(lines[3].ends_with(",segments,,,,,tcp,10.0.0.2,up"), "{}", lines[3]);
}

#[test]
fn pages_of_single_results_are_written_for_the_eye() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, record) in [("tcp", tcp_record()), ("ping", ping_record())] {
        let page = record::document(&record).html();
        assert!(page.contains("<svg") && !page.contains("<script") && !page.contains("src="));
        std::fs::write(folder.join(format!("{name}.html")), page).expect("a scratch folder");
        std::fs::write(folder.join(format!("{name}.txt")), record::document(&record).text(None))
            .expect("as well");
    }
}
