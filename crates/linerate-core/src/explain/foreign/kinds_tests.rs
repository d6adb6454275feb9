//! Kinds of files as people have them, and what is said of each: see testdata/foreign.

use super::super::judge_direction;
use super::*;
use crate::record::{
    Cause, Direction, LimitVerdict, Note, Outcome, PathAdvice, Remedy, RemedyLine, SourceNote,
};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../../../testdata/foreign/", $name))
    };
}

fn results(text: &str) -> ForeignResults {
    match read_source(text) {
        Ok(ResultSource::Foreign(found)) => found,
        other => panic!("{other:?} of {}", text.chars().take(80).collect::<String>()),
    }
}

fn main_verdict(text: &str) -> LimitVerdict {
    let found = results(text);
    judge_direction(&found.evidence[found.main])
}

#[test]
fn each_planted_limit_of_a_socket_is_named_and_none_is_a_full_link() {
    use Cause::{
        Link, OtherTraffic, ReceiveWindow, ReceivingApplication, SendBuffer, SendingApplication,
        Shaper,
    };
    let cases: &[(&str, Option<Cause>, &[Cause])] = &[
        (file!("ss-paced.txt"), Some(SendingApplication), &[]),
        (file!("ss-paced-bbr.txt"), Some(SendingApplication), &[]),
        (file!("ss-closed.txt"), Some(ReceivingApplication), &[]),
        (file!("ss-unread.txt"), Some(ReceivingApplication), &[]),
        (file!("ss-unread-memory.txt"), Some(ReceivingApplication), &[]),
        (file!("ss-typed.txt"), Some(SendingApplication), &[]),
        (file!("ss-window.txt"), Some(ReceiveWindow), &[]),
        (file!("ss-tiny.txt"), Some(ReceiveWindow), &[]),
        (file!("ss-maxpace.txt"), Some(SendingApplication), &[]),
        // Without the memory of the socket a short buffer looks like a program with little to send.
        (file!("ss-sndbuf.txt"), None, &[SendBuffer, SendingApplication]),
        (file!("ss-sndbuf-memory.txt"), Some(SendBuffer), &[]),
        // A moment does not tell whose queue it is.
        (file!("ss-full.txt"), None, &[Link, Shaper, OtherTraffic]),
        (file!("ss-full-bbr.txt"), None, &[Link, Shaper, OtherTraffic]),
    ];
    for (text, cause, between) in cases {
        let verdict = main_verdict(text);
        assert_eq!((verdict.cause, &*verdict.between), (*cause, *between), "{text}{verdict:#?}");
        assert_ne!(verdict.outcome, Outcome::AtCeiling, "{text}");
        // A shaper would be set to a rate that nothing says of the path.
        let shapes = |line: &RemedyLine| {
            matches!(line.remedy, Remedy::OnPath(PathAdvice::ManageQueue { .. }))
        };
        assert!(!verdict.remedy.iter().any(shapes), "{text}");
        assert!(cause.is_some() || verdict.deciding_test.is_some(), "{text}");
    }
}

#[test]
fn an_idle_socket_whose_buffer_held_it_before_is_not_said_to_want_no_more() {
    let idle = |held_ms: u32| {
        main_verdict(&format!(
            "ESTAB 0 0 10.0.0.1:4 10.0.0.2:5\n\t cubic rtt:40/0.3 mss:1448 cwnd:100 \
             bytes_acked:9000001 lastrcv:6000 busy:5000ms sndbuf_limited:{held_ms}ms minrtt:40\n"
        ))
    };
    // 8 % of its busy time, and 12 %.
    assert_eq!(idle(400).cause, Some(Cause::SendingApplication));
    let held = idle(600);
    let between = vec![Cause::SendBuffer, Cause::SendingApplication];
    assert_eq!((held.cause, held.between), (None, between));
}

#[test]
fn a_window_that_is_full_while_more_waits_is_the_limit_without_the_kernel_s_word() {
    let at = |segments: u32| {
        let queue = segments * 1448 + 9000;
        main_verdict(&format!(
            "ESTAB 0 {queue} 10.0.0.1:4 10.0.0.2:5\n\t cubic rtt:40/0.3 mss:1448 cwnd:210 \
             bytes_acked:9000001 busy:5000ms unacked:{segments} notsent:9000 minrtt:40 \
             snd_wnd:65535\n"
        ))
    };
    // 45 segments are 65,160 bytes of 65,535; 20 are less than half of them.
    assert_eq!(at(45).cause, Some(Cause::ReceiveWindow));
    assert_eq!(at(20).cause, None);
}

#[test]
fn the_rate_of_a_socket_is_over_its_life_where_its_counters_tell_that() {
    // It never received, so it was opened lastrcv ago: 2,500,001 bytes in 4.016 s.
    let paced = main_verdict(file!("ss-paced.txt"));
    let rate = paced.measured_bps.expect("a rate");
    assert!((rate - 2_500_001.0 * 8.0 / 4.016).abs() < 1.0, "{rate}");
    // It received too: 433 bytes over the 564 ms in which they were in flight, and that is said.
    let typed = main_verdict(file!("ss-typed.txt"));
    assert!((typed.measured_bps.expect("a rate") - 433.0 * 8.0 / 0.564).abs() < 1.0);
    let note = Note::Source(SourceNote::RateWhileInFlight);
    assert!(typed.notes.contains(&note), "{:?}", typed.notes);
}

#[test]
fn sockets_have_their_addresses_and_the_headline_is_of_that_which_moved_most() {
    for text in [file!("ss-iperf3.txt"), file!("ss-iperf3-oneline.txt")] {
        let found = results(text);
        let names: Vec<_> = found.evidence.iter().filter_map(|it| it.connection.clone()).collect();
        let [one, two] = ["198.18.0.1:32920", "198.18.0.1:32922"];
        assert_eq!(
            names,
            [format!("{one} to 198.18.0.2:5201"), format!("{two} to 198.18.0.2:5201")]
        );
        assert_eq!(found.main, 0);
        // The control connection sent 165 bytes.
        let left = vec!["198.18.0.1:32908 to 198.18.0.2:5201".to_owned()];
        assert_eq!(found.evidence[0].remarks, [SourceNote::SmallConnections(left)]);
    }
}

#[test]
fn words_of_sockets_are_found_in_any_form_of_the_output() {
    let window = file!("ss-window.txt");
    let figures = window.lines().nth(2).expect("figures").trim();
    let v6 = "ESTAB 0 251672 [2001:db8::1]:49062 [2001:db8::2]:5403 users:((\"a b\",pid=1,fd=3))";
    for text in [
        format!("{v6}\n\t{figures}\n"),
        format!("{v6} {figures}\n"),
        // `state established` leaves the first column out, -H the head.
        format!("0 251672 192.0.2.1%eth0:49062 192.0.2.2:http\n\t {figures}\n"),
        window.replace('\n', "\r\n"),
        // The same connection again, later: the last counts.
        format!("{}{window}", window.replace("notsent:171192", "notsent:1")),
    ] {
        let found = results(&text);
        assert_eq!((found.program, found.evidence.len()), ("ss", 1), "{text}");
        assert_eq!(found.evidence[0].window.unsent_bytes, Some(171_192.0));
        assert_eq!(judge_direction(&found.evidence[0]).cause, Some(Cause::ReceiveWindow), "{text}");
    }
}

/// iperf3 at a window of 84,224 bytes: a queue of others makes 56 ms of 40.
fn at_its_window() -> String {
    let interval = |second: u32| {
        let rtt_us = 40_000.0 + f64::from(second.min(8)) * 2_000.0;
        let bps = 84_224.0 * 8.0 / (rtt_us / 1e6);
        let sum = serde_json::json!({ "bits_per_second": bps, "bytes": bps / 8.0 });
        let stream = serde_json::json!({
            "socket": 5, "bits_per_second": bps, "rtt": rtt_us, "snd_wnd": 84_224,
            "snd_cwnd": 300_000, "retransmits": 0,
        });
        serde_json::json!({ "streams": [stream], "sum": sum })
    };
    let intervals: Vec<_> = (0..10).map(interval).collect();
    serde_json::json!({
        "start": { "version": "iperf 3.16", "tcp_mss_default": 1448,
                   "test_start": { "protocol": "TCP", "num_streams": 1, "reverse": 0 } },
        "intervals": intervals,
        "end": { "sum_sent": { "bytes": 17.0e6, "retransmits": 0, "seconds": 10.0 },
                 "sum_received": { "bytes": 17.0e6, "bits_per_second": 13.6e6, "seconds": 10.0 } }
    })
    .to_string()
}

#[test]
fn a_flow_at_its_window_is_not_a_full_link_when_others_fill_the_queue() {
    for text in [at_its_window().as_str(), file!("iperf3-window.json")] {
        let verdict = main_verdict(text);
        assert_eq!(verdict.cause, Some(Cause::ReceiveWindow), "{verdict:#?}");
        assert_eq!(verdict.ceiling_bps, None);
    }
    // Without the window, or with one round trip all the while, nothing tells whose queue it is.
    let unseen = at_its_window().replace("snd_wnd", "x");
    let verdict = main_verdict(&unseen);
    assert_eq!((verdict.outcome, verdict.cause), (Outcome::Undetermined, None));
    assert!(verdict.between.contains(&Cause::Link) && verdict.deciding_test.is_some());
}

#[test]
fn both_ways_of_a_document_and_of_its_text_are_read() {
    for text in [file!("iperf3-bidir.json"), file!("iperf3-bidir.txt")] {
        let found = results(text);
        let ways: Vec<_> = found.evidence.iter().map(|it| it.direction).collect();
        assert_eq!(ways, [Some(Direction::Up), Some(Direction::Down)]);
        assert!(found.evidence.iter().all(|it| it.asked.both_ways && it.flows == 1));
    }
    let found = results(file!("iperf3-bidir.txt"));
    // As the rows of its receivers say: 8.51 and 9.05 Mbit/s, 0 and 26 segments sent again.
    let figures = found.evidence.iter().map(|it| (it.rate.mean_bps, it.loss.retransmits));
    let figures: Vec<_> = figures.collect();
    assert_eq!(figures, [(Some(8.51e6), Some(0.0)), (Some(9.05e6), Some(26.0))]);
    // Before 3.10 both directions had one name for their sums.
    let mut old: Value = serde_json::from_str(file!("iperf3-bidir.json")).expect("a document");
    let end = old["end"].as_object_mut().expect("an end");
    end.retain(|key, _| !key.contains("bidir_reverse"));
    for interval in old["intervals"].as_array_mut().expect("intervals") {
        interval.as_object_mut().expect("one").remove("sum_bidir_reverse");
    }
    let (new, old) = (results(file!("iperf3-bidir.json")), results(&old.to_string()));
    for (new, old) in new.evidence.iter().zip(&old.evidence) {
        assert_eq!(new.direction, old.direction);
        assert_eq!(new.loss.retransmits, old.loss.retransmits);
        let [new, old] = [new, old].map(|it| it.rate.mean_bps.expect("a rate"));
        assert!((new / old - 1.0).abs() < 0.001, "{new} {old}");
    }
}

#[test]
fn datagrams_above_the_link_show_what_it_carries() {
    // 1,448 bytes of 1,514 on Ethernet of 10 Mbit/s: 9.564 Mbit/s.
    let verdict = main_verdict(file!("iperf3-udp.json"));
    assert_eq!((verdict.outcome, verdict.cause), (Outcome::AtCeiling, Some(Cause::Link)));
    let ceiling = verdict.ceiling_bps.expect("a ceiling");
    assert!((ceiling - 10e6 * 1448.0 / 1514.0).abs() < 1.0, "{ceiling}");
    // The text does not say how long datagrams are.
    for text in [file!("iperf3-udp.txt"), file!("nuttcp-udp.txt")] {
        let verdict = main_verdict(text);
        assert!(verdict.cause.is_none() && verdict.between.contains(&Cause::Link), "{verdict:#?}");
    }
    // A sum of what was sent, in versions before sum_received: 3,343 of 6,905 arrived.
    let old = file!("iperf3-udp.json").replace("sum_received", "x").replace("sum_sent", "y");
    let rate = main_verdict(&old).measured_bps.expect("a rate");
    assert!((rate - 3343.0 * 1448.0 * 8.0 / 4.068_192).abs() < 1000.0, "{rate}");
}

#[test]
fn text_of_programs_is_read_to_its_last_figure() {
    let mean = |text: &str| main_verdict(text).measured_bps.expect("a rate");
    assert_eq!(mean(file!("iperf3-tcp.txt")), 9.27e6);
    assert_eq!(mean(file!("iperf2-enhanced.txt")), 9.32e6);
    assert_eq!(mean(file!("iperf2.csv")), 9_279_327.0);
    assert_eq!(mean(file!("nuttcp.txt")), 9_324_800.0);
    // With -f M both programs count bytes by 1024 (iperf 3.12, units.c): 1.11 x 8 x 1024 x 1024.
    let bytes = file!("iperf3-tcp.txt").replace("9.27 Mbits/sec", "1.11 MBytes/sec");
    assert!((mean(&bytes) - 9_311_354.88).abs() < 0.01);
    let enhanced = results(file!("iperf2-enhanced.txt"));
    let evidence = &enhanced.evidence[0];
    assert_eq!((evidence.mss_bytes, evidence.rate.intervals_bps.len()), (Some(1448), 5));
    // 62K and 67K; the median of 33.123, 39.534, 49.046 and 50.958 ms, the first fifth left out.
    assert_eq!(evidence.window.cwnd_ends, Some((62.0 * 1024.0, 67.0 * 1024.0)));
    assert!((33e-3..51e-3).contains(&evidence.rtt.loaded_s.expect("round trips")));
    // A server's output has each test, and the last is what people look for.
    let server = results(file!("iperf3-server.txt"));
    assert_eq!(
        (server.evidence.len(), server.evidence[server.main].rate.mean_bps),
        (7, Some(9.27e6))
    );
    assert_eq!(server.evidence[server.main].connection.as_deref(), Some("result 5 of 5"));
}

/// Events of `--json-stream` as iperf3 3.17 prints them, from a document.
fn stream(document: &str) -> String {
    let document: Value = serde_json::from_str(document).expect("a document");
    let event = |name: &str, data: &Value| {
        format!("{}\n", serde_json::json!({ "event": name, "data": data }))
    };
    let intervals = document["intervals"].as_array().expect("intervals").iter();
    let intervals: String = intervals.map(|it| event("interval", it)).collect();
    format!("{}{intervals}{}", event("start", &document["start"]), event("end", &document["end"]))
}

#[test]
fn a_document_says_the_same_in_whatever_it_is_wrapped() {
    let text = file!("iperf3-window.json");
    let known = main_verdict(text);
    let units = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    };
    let marked = format!("\u{feff}{text}");
    let wrapped: &[(&str, Vec<u8>)] = &[
        ("UTF-8 with a mark", marked.clone().into_bytes()),
        ("UTF-16 little-endian", units(&marked, u16::to_le_bytes)),
        ("UTF-16 big-endian", units(&marked, u16::to_be_bytes)),
        ("UTF-16 without a mark", units(text, u16::to_le_bytes)),
        ("CRLF", text.replace('\n', "\r\n").into_bytes()),
        ("a line before", format!("warning: JSON data length overflow\n{text}").into_bytes()),
        ("a line behind", format!("{text}iperf3: interrupt - the client has terminated\n").into()),
        ("a prompt around", format!("$ iperf3 -J -c B\n{text}$ exit\n").into_bytes()),
        ("events", stream(text).into_bytes()),
        ("events and the document", format!("{}{text}", stream(text)).into_bytes()),
        ("numbers that do not exist", text.replace("\"max_rtt\": 64101", "\"x\": -nan").into()),
        ("an array", format!("[{text}]").into_bytes()),
        ("Latin-1 in a line", [b"f\xfcr B\n".to_vec(), text.as_bytes().to_vec()].concat()),
    ];
    for (kind, bytes) in wrapped {
        let verdict = main_verdict(&decode(bytes).expect("a text"));
        assert_eq!(verdict, known, "{kind}");
    }
    // Events that were cut have no sums: the rate is the mean of the intervals.
    let cut: String = stream(text).lines().take(9).map(|line| format!("{line}\n")).collect();
    let found = results(&cut);
    assert_eq!(found.evidence[0].rate.intervals_bps.len(), 8);
    assert_eq!(main_verdict(&cut).cause, Some(Cause::ReceiveWindow));
}

#[test]
fn of_several_documents_each_is_read_and_the_last_is_the_headline() {
    let (first, second) = (at_its_window(), file!("iperf3-window.json"));
    for text in [format!("{first}\n{second}"), format!("{first}{second}")] {
        let found = results(&text);
        let names: Vec<_> =
            found.evidence.iter().filter_map(|it| it.connection.as_deref()).collect();
        assert_eq!(found.main, 1);
        assert_eq!(names[0], "result 1 of 2");
        assert!(names[1].starts_with("result 2 of 2, Fri, 27 Nov 2026"), "{names:?}");
    }
    // What broke off is said, and does not hide what is whole.
    let half = &second[..second.len() / 2];
    let verdict = main_verdict(&format!("{first}\n{half}"));
    let goes_on = |note: &Note| match note {
        Note::Source(SourceNote::FileGoesOn { fault }) => fault.contains("breaks off"),
        _ => false,
    };
    assert!(verdict.notes.iter().any(goes_on), "{:?}", verdict.notes);
}

#[test]
fn what_is_no_result_is_named_with_what_to_do() {
    let window = file!("iperf3-window.json");
    let cut = &window[..window.len() / 2];
    let cut_line = cut.lines().count();
    let cases: &[(&[u8], String, &str)] = &[
        (b"", "it is empty".into(), "explain reads"),
        (b" \r\n", "it is empty".into(), "explain reads"),
        (b"hello", "it is no result that is known".into(), "explain reads"),
        (
            b"{\"a\": 1}",
            "it is no result that is known: a JSON document with the keys \"a\"".into(),
            "explain reads",
        ),
        (
            file!("iperf3-refused.json").as_bytes(),
            "iperf3 measured nothing: unable to connect to server: Connection refused".into(),
            "iperf3 -s",
        ),
        (
            b"{\"start\": {}, \"intervals\": [], \"error\": \"error - No route to host\"}",
            "iperf3 measured nothing: No route to host".into(),
            "linerate trace HOST",
        ),
        (
            cut.as_bytes(),
            format!("its JSON breaks off in line {cut_line}, before the document ends"),
            "--json-stream",
        ),
        (b"{\"start\": x}", "its JSON has a mistake in line 1, column 11".into(), "--logfile"),
        (b"\x1f\x8b\x08\0", "it is compressed by gzip, not a text".into(), "gzip -dc"),
        (
            b"\x0a\x0d\x0d\x0a\x1c",
            "it is a capture of packets, not a text".into(),
            "linerate conform",
        ),
        (b"SQLite format 3\0", "it is a database of SQLite, not a text".into(), "--store"),
        (b"\x7fELF\x02\x01\0\0", "it is a binary file, not a text".into(), "as text"),
        (
            b"64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.1 ms",
            "it is the output of ping: round trips, no transfer".into(),
            "linerate test",
        ),
        (
            b"ESTAB 0 0 192.0.2.1:22 192.0.2.2:49724\n",
            "it is a list of sockets without what TCP knows of them".into(),
            "ss -tin",
        ),
        (
            b"{\"fio version\": \"fio-3.36\", \"jobs\": []}",
            "it is a result of fio, which measures disks".into(),
            "linerate test",
        ),
        (
            b"{\"addresses\": {}, \"groups\": {}, \"tasks\": {}}",
            "it is a template of psConfig".into(),
            "linerate mesh import",
        ),
        (
            b"{\"schema\": \"linerate.bench/1\"}",
            "it is a document of linerate (linerate.bench/1), no record".into(),
            "linerate test",
        ),
    ];
    for (bytes, reason, advice) in cases {
        let found = decode(bytes).and_then(|text| read_source(&text));
        let error = found.expect_err(reason);
        assert_eq!(error.to_string(), *reason);
        assert!(error.advice().contains(advice), "{reason}: {}", error.advice());
    }
}

#[test]
fn no_cut_and_no_damaged_file_ends_the_program() {
    let files = [
        file!("ss-iperf3.txt"),
        file!("ss-sndbuf-memory.txt"),
        file!("ss-iperf3-oneline.txt"),
        file!("iperf3-bidir.json"),
        file!("iperf3-udp.json"),
        file!("iperf3-bidir.txt"),
        file!("iperf3-udp.txt"),
        file!("iperf3-server.txt"),
        file!("iperf2-enhanced.txt"),
        file!("iperf2.csv"),
        file!("nuttcp-udp.txt"),
    ];
    let explained = |bytes: &[u8]| {
        if let Ok(ResultSource::Foreign(found)) = decode(bytes).and_then(|text| read_source(&text))
        {
            assert!(found.main < found.evidence.len());
            found.evidence.iter().for_each(|it| drop(judge_direction(it)));
        }
    };
    for text in files {
        let step = 1 + text.len() / 60;
        for at in (0..text.len()).step_by(step) {
            explained(&text.as_bytes()[..at]);
            // A letter of two bytes, a digit less, a number too large.
            for other in ["\u{fc}", "", "9e999", "-"] {
                let damaged =
                    [&text.as_bytes()[..at], other.as_bytes(), &text.as_bytes()[at + 1..]];
                explained(&damaged.concat());
            }
        }
    }
}
