//! Pings on the kernel: loopback, and a cable between two namespaces with an MTU of 1500.
//!
//! ICMP needs a socket that not every user may open, cables need the privilege to make network
//! namespaces; what is missing is said and passed over. Times are judged by what must hold on any
//! host, never by their size.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CaveatCode, Event, Fault, MetricId, PingMode, PingPlan, PingTransport, Record, RecordStatus,
    Stat, Tool, WaitMode,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::rtt;
use linerate_engine::rtt::respond::UdpResponder;
use linerate_sys::stop::Stop;
use linerate_sys::{sysctl, userns};

const CABLE: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"] }]
"#;

const ROUTER: &str = r#"
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r" }]
link = [{ ends = ["a", "r"] }, { ends = ["r", "b"] }]
"#;

fn flood(host: &str, count: u64) -> PingPlan {
    PingPlan {
        host: host.to_owned(),
        mode: PingMode::Flood,
        count: Some(count),
        kernel_stamps: false,
        timeout_ns: 2_000_000_000,
        ..PingPlan::default()
    }
}

fn run(plan: &PingPlan) -> Record {
    run_watched(plan, &mut |_| {})
}

fn run_watched(plan: &PingPlan, watch: &mut dyn FnMut(&Event)) -> Record {
    crate::turn::take();
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    rtt::run(plan, &mut Context { tool, stop: Stop::new(), watch })
}

/// The record of an ICMP ping, or none where no ICMP socket may be opened.
fn icmp(plan: &PingPlan) -> Option<Record> {
    let record = run(plan);
    match &record.failure {
        Some(failure) if failure.attempt.starts_with("open ICMP socket") => {
            assert_eq!(failure.exit_code(), 2);
            let advice = failure.next_step.as_deref().unwrap();
            assert!(advice.contains("ping_group_range") && advice.contains("setcap"), "{advice}");
            println!("skipped: {failure}");
            None
        }
        _ => Some(record),
    }
}

/// A laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    Some(Lab::build_from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap())
}

/// Pings from `a`.
fn from_a(lab: &Lab, plan: &PingPlan) -> Record {
    lab.run_on("a", || run(plan)).unwrap()
}

fn value(record: &Record, metric: MetricId, size: u32) -> f64 {
    record.value_at(metric, Stat::Value, size).unwrap()
}

fn has(record: &Record, code: CaveatCode) -> bool {
    record.caveats.iter().any(|caveat| caveat.code == code)
}

/// All of `count` probes of `size` were answered, once and in order, and the record says so
/// consistently.
fn check_lossless(record: &Record, count: u64, size: u32) {
    assert_eq!((record.status, &record.failure), (RecordStatus::Ok, &None));
    let expected = count as f64;
    for (metric, total) in [
        (MetricId::Sent, expected),
        (MetricId::Received, expected),
        (MetricId::LossRatio, 0.0),
        (MetricId::Duplicates, 0.0),
        (MetricId::Reordered, 0.0),
        (MetricId::Late, 0.0),
    ] {
        assert!((value(record, metric, size) - total).abs() < 1e-9, "{metric}");
    }
    let rtt = |stat| record.value_at(MetricId::Rtt, stat, size).unwrap();
    let rising = [Stat::Min, Stat::P50, Stat::P90, Stat::P95, Stat::P99, Stat::P999, Stat::Max];
    for pair in rising.windows(2) {
        assert!(rtt(pair[0]) <= rtt(pair[1]), "{pair:?}");
    }
    assert!(rtt(Stat::Min) > 0.0);
    let paper = value(record, MetricId::PpsPaper, size) * rtt(Stat::Mean);
    assert!((paper - 1e9).abs() < 1.0, "1000/avg is by the mean");
    let mut distributions = record.distributions.iter();
    let distribution =
        distributions.find(|d| d.metric == MetricId::Rtt && d.payload_bytes == Some(size)).unwrap();
    assert!(distribution.exact);
    assert_eq!(distribution.count(), count);
    assert_eq!(distribution.values[0] as f64, rtt(Stat::Min));
}

#[test]
fn two_thousand_pings_on_loopback_are_all_answered_in_both_families() {
    for host in ["127.0.0.1", "::1"] {
        if host == "::1" && UdpSocket::bind("[::1]:0").is_err() {
            println!("skipped: no IPv6 on this host");
            continue;
        }
        let Some(record) = icmp(&flood(host, 2000)) else { return };
        check_lossless(&record, 2000, 56);
        assert!(has(&record, CaveatCode::SameHost));
        assert!(!has(&record, CaveatCode::SelfLoad));
        assert_eq!(record.ends[0].address.as_deref(), Some(host));
    }
}

#[test]
fn every_size_from_nothing_to_the_largest_is_measured_by_itself() {
    let sizes = [0, 1, 8, 23, 24, 56, 1472, 9000, 65_507];
    let plan = PingPlan { sizes_bytes: sizes.to_vec(), ..flood("127.0.0.1", 20) };
    let Some(record) = icmp(&plan) else { return };
    for size in sizes {
        check_lossless(&record, 20, size);
    }
}

/// 16 bits of sequence number come round at 65536; a size without room for more must not take
/// the second round for duplicates.
#[test]
fn more_than_65536_small_probes_have_no_false_duplicates() {
    let plan = PingPlan { sizes_bytes: vec![8], ..flood("127.0.0.1", 70_000) };
    let Some(record) = icmp(&plan) else { return };
    check_lossless(&record, 70_000, 8);
}

#[test]
fn a_window_is_told_as_load_of_its_own() {
    let plan = PingPlan { mode: PingMode::Window(16), ..flood("127.0.0.1", 2000) };
    let Some(record) = icmp(&plan) else { return };
    check_lossless(&record, 2000, 56);
    assert!(has(&record, CaveatCode::SelfLoad));
}

#[test]
fn a_paced_ping_tells_each_answer_and_keeps_its_samples_when_asked() {
    let plan = PingPlan {
        mode: PingMode::Paced,
        interval_ns: 2_000_000,
        keep_samples: true,
        ..flood("127.0.0.1", 25)
    };
    if icmp(&flood("127.0.0.1", 1)).is_none() {
        return;
    }
    let mut replies = Vec::new();
    let record = run_watched(&plan, &mut |event| {
        if let Event::Reply(reply) = event {
            replies.push((reply.sequence, reply.rtt_ns, reply.ttl));
        }
    });
    check_lossless(&record, 25, 56);
    assert_eq!(replies.len(), 25);
    assert!(replies.iter().all(|(_, rtt, ttl)| rtt.is_some() && *ttl == Some(64)), "{replies:?}");
    let series = record.series.iter().find(|series| series.metric == MetricId::Rtt).unwrap();
    let told: Vec<Option<f64>> =
        replies.iter().map(|(_, rtt, _)| rtt.map(|ns| ns as f64)).collect();
    assert_eq!(series.values, told);
    assert!(series.t_ns.windows(2).all(|pair| pair[1] > pair[0]));
}

#[test]
fn a_deadline_ends_an_endless_ping() {
    let plan = PingPlan { count: None, deadline_ns: Some(50_000_000), ..flood("127.0.0.1", 1) };
    let Some(record) = icmp(&plan) else { return };
    assert_eq!((record.status, &record.failure), (RecordStatus::Ok, &None));
    assert!(value(&record, MetricId::Received, 56) > 0.0);
    assert!(record.duration_ns < 10_000_000_000);
}

/// A responder on a thread of its own; asking `stop` ends it.
fn responder(address: SocketAddr) -> (SocketAddr, Stop, JoinHandle<()>) {
    let responder = UdpResponder::bind(address).unwrap();
    let address = responder.local_address().unwrap();
    let stop = Stop::new();
    let flag = stop.clone();
    (address, stop, std::thread::spawn(move || responder.run(&flag)))
}

fn udp(host: &str, port: u16, count: u64) -> PingPlan {
    PingPlan { transport: PingTransport::Udp, port, ..flood(host, count) }
}

#[test]
fn udp_echo_on_loopback_is_lossless_by_spinning_and_by_sleeping() {
    let (address, stop, thread) = responder((Ipv4Addr::UNSPECIFIED, 0).into());
    for wait in [WaitMode::Auto, WaitMode::Block] {
        let sizes_bytes = vec![16, 56, 1500];
        let plan = PingPlan { wait, sizes_bytes, ..udp("127.0.0.1", address.port(), 500) };
        let record = run(&plan);
        for size in [16, 56, 1500] {
            check_lossless(&record, 500, size);
        }
    }
    stop.request_stop();
    thread.join().unwrap();
}

#[test]
fn a_udp_probe_without_room_for_its_number_is_wrong_use() {
    let record = run(&PingPlan { sizes_bytes: vec![15], ..udp("127.0.0.1", 9, 1) });
    let failure = record.failure.unwrap();
    assert_eq!((record.status, failure.fault), (RecordStatus::Error, Fault::Usage));
    assert!(failure.to_string().contains("16"), "{failure}");
}

#[test]
fn a_port_where_nobody_answers_is_a_failure_that_says_what_to_start() {
    // Port 1 of loopback (tcpmux): the kernel gives it to nobody who asks for any port.
    let record = run(&udp("127.0.0.1", 1, 3));
    let failure = record.failure.unwrap();
    assert_eq!((record.status, failure.exit_code()), (RecordStatus::Error, 3));
    assert!(failure.to_string().contains("linerate serve"), "{failure}");
}

#[test]
fn the_responder_answers_nothing_but_questions_and_no_more_than_allowed() {
    let responder = UdpResponder::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let responder = responder.answering_at_most(5);
    let address = responder.local_address().unwrap();
    let stop = Stop::new();
    let flag = stop.clone();
    let thread = std::thread::spawn(move || responder.run(&flag));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let question = |sequence: u8| {
        let mut datagram = *b"LREq....\0\0\0\0\0\0\0\0 and some filler";
        datagram[15] = sequence;
        datagram
    };
    let mut answer = question(0);
    answer[3] = b'r';
    for stray in [&b"GET / HTTP/1.1\r\n\r\n"[..], &answer, &question(0)[..15], b""] {
        client.send(stray).unwrap();
    }
    for sequence in 1..=20 {
        client.send(&question(sequence)).unwrap();
    }
    let mut answers = Vec::new();
    let mut buffer = [0; 2048];
    while let Ok(len) = client.recv(&mut buffer) {
        assert_eq!((len, buffer[3]), (question(0).len(), b'r'));
        answers.push(buffer[15]);
    }
    // Two seconds may have been touched, no more.
    assert!((5..=10).contains(&answers.len()), "{answers:?}");
    assert_eq!(answers[..5], [1, 2, 3, 4, 5]);
    stop.request_stop();
    thread.join().unwrap();
}

#[test]
fn wrong_plans_and_names_are_failures_with_code_2() {
    let good = flood("127.0.0.1", 1);
    let cases = [
        PingPlan { sizes_bytes: vec![], ..good.clone() },
        PingPlan { sizes_bytes: vec![65_508], ..good.clone() },
        PingPlan { count: Some(0), ..good.clone() },
        PingPlan { mode: PingMode::Window(0), ..good.clone() },
        PingPlan { mode: PingMode::Paced, interval_ns: 0, ..good.clone() },
        PingPlan { timeout_ns: 0, ..good.clone() },
        PingPlan { dscp: Some(64), ..good.clone() },
        PingPlan { host: "nobody.invalid".to_owned(), ..good.clone() },
        PingPlan { bind: Some("192.0.2.1".to_owned()), ..good },
    ];
    for plan in cases {
        let record = run(&plan);
        let failure = record.failure.unwrap_or_else(|| panic!("no failure for {plan:?}"));
        assert_eq!((record.status, failure.exit_code()), (RecordStatus::Error, 2), "{failure}");
        assert!(failure.next_step.is_some(), "{failure}");
    }
}

#[test]
fn a_payload_of_1500_on_an_mtu_of_1500_travels_as_two_packets() {
    let Some(lab) = lab(CABLE) else { return };
    let plan = PingPlan { sizes_bytes: vec![1472, 1500], ..flood("10.0.1.2", 200) };
    let before = lab.counters("a", "eth0").unwrap().tx_packets;
    let record = from_a(&lab, &plan);
    let after = lab.counters("a", "eth0").unwrap().tx_packets;
    check_lossless(&record, 200, 1472);
    check_lossless(&record, 200, 1500);
    let told: Vec<&str> = record
        .caveats
        .iter()
        .filter(|caveat| caveat.code == CaveatCode::Fragmented)
        .map(|caveat| caveat.detail.as_str())
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    for part in ["1500 bytes", "2 packets", "MTU is 1500"] {
        assert!(told[0].contains(part), "{told:?}");
    }
    // 200 whole ones, 200 pairs, 2 of warm-up; a few more for address resolution.
    assert!((602..620).contains(&(after - before)), "{}", after - before);
    assert!(!has(&record, CaveatCode::SameHost));
    assert_eq!(record.ends[0].interface.as_ref().unwrap().mtu_bytes, Some(1500));
}

#[test]
fn a_probe_that_must_not_be_cut_and_does_not_fit_is_wrong_use() {
    let Some(lab) = lab(CABLE) else { return };
    let plan = PingPlan { sizes_bytes: vec![1500], dont_fragment: true, ..flood("10.0.1.2", 3) };
    let record = from_a(&lab, &plan);
    let failure = record.failure.unwrap();
    assert_eq!((record.status, failure.exit_code()), (RecordStatus::Error, 2), "{failure}");
    let fits = PingPlan { sizes_bytes: vec![1472], ..plan };
    check_lossless(&from_a(&lab, &fits), 3, 1472);
}

/// Of every probe with all stamps the parts make the program's round trip, to the ns.
fn check_split(record: &Record) {
    let values = |metric| {
        let series = record.series.iter().find(|series| series.metric == metric);
        series.map_or_else(Vec::new, |series| series.values.clone())
    };
    let whole = values(MetricId::Rtt);
    let parts =
        [MetricId::RttSend, MetricId::RttQueue, MetricId::RttKernel, MetricId::RttWake].map(values);
    let mut split = 0;
    for (place, rtt) in whole.iter().enumerate() {
        let own: Option<Vec<f64>> =
            parts.iter().map(|part| part.get(place).copied().flatten()).collect();
        let (Some(own), Some(rtt)) = (own, rtt) else { continue };
        assert!(own.iter().all(|part| *part >= 0.0), "{place}: {own:?}");
        let gap_ns = own.iter().sum::<f64>() - rtt;
        assert!(gap_ns.abs() < 0.5, "{place}: {own:?} of {rtt}");
        split += 1;
    }
    assert!(split > 400, "{split} of {} are split", whole.len());
}

#[test]
fn kernel_stamps_lie_inside_the_programs_own_round_trip() {
    let Some(lab) = lab(CABLE) else { return };
    let (address, stop, thread) =
        lab.run_on("b", || responder((Ipv4Addr::UNSPECIFIED, 0).into())).unwrap();
    let stamped = |plan: PingPlan| PingPlan { kernel_stamps: true, keep_samples: true, ..plan };
    for plan in [
        stamped(flood("10.0.1.2", 500)),
        stamped(PingPlan { mode: PingMode::Window(8), ..flood("10.0.1.2", 500) }),
        stamped(udp("10.0.1.2", address.port(), 500)),
    ] {
        let record = from_a(&lab, &plan);
        check_lossless(&record, 500, 56);
        let series = |metric| record.series.iter().find(|series| series.metric == metric);
        let Some(kernel) = series(MetricId::RttKernel) else {
            assert!(has(&record, CaveatCode::StampsMissing), "absent stamps are told");
            println!("skipped: this kernel gives no stamps on veth");
            continue;
        };
        let own = series(MetricId::Rtt).unwrap();
        let pairs = kernel.values.iter().zip(&own.values);
        let both: Vec<(f64, f64)> = pairs.filter_map(|(k, o)| Some(((*k)?, (*o)?))).collect();
        assert!(both.iter().all(|(kernel, own)| *kernel > 0.0 && *kernel <= own + 1000.0));
        let missing = 500 - both.len();
        assert_eq!(missing > 0, has(&record, CaveatCode::StampsMissing), "{missing} missing");
        assert!(both.len() > 400, "{} of 500 have stamps", both.len());
        check_split(&record);
    }
    stop.request_stop();
    thread.join().unwrap();
}

#[test]
fn the_datagram_socket_is_taken_where_the_group_may_open_it() {
    let Some(lab) = lab(CABLE) else { return };
    let line = |range: &str| {
        lab.run_on("a", || {
            sysctl::write("net/ipv4/ping_group_range", range).unwrap();
            let mut line = String::new();
            let record = run_watched(&flood("10.0.1.2", 300), &mut |event| {
                if let Event::Connected(text) = event {
                    line.clone_from(text);
                }
            });
            check_lossless(&record, 300, 56);
            line
        })
        .unwrap()
    };
    assert!(line("0 2147483647").contains("ICMP datagram socket"));
    assert!(line("1 0").contains("ICMP raw socket"));
}

#[test]
fn an_address_without_a_route_is_unreachable_and_exits_3() {
    let Some(lab) = lab(CABLE) else { return };
    let record = from_a(&lab, &flood("203.0.113.1", 1));
    let failure = record.failure.unwrap();
    assert_eq!((record.status, failure.exit_code()), (RecordStatus::Error, 3), "{failure}");
    assert!(failure.to_string().contains("ip route"), "{failure}");
}

#[test]
fn a_router_that_drops_a_probe_by_its_ttl_is_named() {
    let Some(lab) = lab(ROUTER) else { return };
    let target: IpAddr = lab.address_of("b").unwrap();
    let whole = flood(&target.to_string(), 50);
    check_lossless(&from_a(&lab, &whole), 50, 56);
    let short = PingPlan { ttl: Some(1), timeout_ns: 50_000_000, count: Some(2), ..whole };
    let record = from_a(&lab, &short);
    let failure = record.failure.as_ref().unwrap();
    assert_eq!((record.status, failure.exit_code()), (RecordStatus::Error, 3), "{failure}");
    assert!(failure.to_string().contains("time to live exceeded"), "{failure}");
    assert!((value(&record, MetricId::LossRatio, 56) - 1.0).abs() < 1e-9);
}

#[test]
fn a_host_that_is_silent_is_a_result_with_all_lost() {
    let Some(lab) = lab(CABLE) else { return };
    lab.run_on("b", || sysctl::write("net/ipv4/icmp_echo_ignore_all", "1").unwrap()).unwrap();
    let plan = PingPlan { timeout_ns: 20_000_000, ..flood("10.0.1.2", 3) };
    let record = from_a(&lab, &plan);
    assert_eq!((record.status, &record.failure), (RecordStatus::Ok, &None));
    assert!((value(&record, MetricId::LossRatio, 56) - 1.0).abs() < 1e-9);
    assert!((value(&record, MetricId::Received, 56)).abs() < 1e-9);
    assert!(record.value_at(MetricId::Rtt, Stat::Mean, 56).is_none(), "absent is not 0");
}
