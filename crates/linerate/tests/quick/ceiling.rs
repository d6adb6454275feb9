//! `linerate ceiling` as a shell sees it: layers, bounds, needs, tables, plots, and inputs that no
//! path has. Expected figures are hand sums, standards' tables and published figures. Nothing here
//! sends a packet.

use crate::support::{check_wrong_use, ends_with, linerate, stderr};
use serde_json::Value;

/// The path of the OC-12 study of 1999 with a loss and a window.
const OC12: [&str; 12] = [
    "ceiling",
    "--link",
    "oc12",
    "--atm",
    "aal5-llcsnap",
    "--mtu",
    "9180",
    "--rtt",
    "45ms",
    "--loss=1e-4",
    "--window",
    "2MiB",
];

/// The answer to `arguments` as JSON.
fn json(arguments: &[&str]) -> Value {
    let text = ends_with(0, &[&["ceiling"], arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("the answer is JSON")
}

/// `value` is `want`, within 1e-4 of it.
fn close(value: &Value, want: f64, what: &str) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{what}: {value} is no number"));
    assert!((got - want).abs() <= want.abs() * 1e-4, "{what}: {got}, not {want}");
}

/// The rung of a kind.
fn rung<'a>(answer: &'a Value, kind: &str) -> &'a Value {
    let rungs = answer["rungs"].as_array().expect("an array");
    let found = rungs.iter().find(|rung| rung["kind"] == kind);
    found.unwrap_or_else(|| panic!("no rung {kind} in {rungs:?}"))
}

/// The payload of `kind` in Mbit/s with `flags`.
fn check_rung(flags: &[&str], kind: &str, mbps: f64) {
    let answer = json(flags);
    close(&rung(&answer, kind)["payload_bps"], mbps * 1e6, &format!("{flags:?} {kind}"));
}

/// Payload in Mbit/s that framing leaves with `flags`.
fn check_payload(flags: &[&str], mbps: f64) {
    let answer = json(flags);
    close(&answer["limits"]["ceiling_bps"], mbps * 1e6, &format!("{flags:?}"));
}

#[test]
fn the_oc_12_path_descends_from_622_08_to_537_346() {
    let answer = json(&OC12[1..]);
    // SONET leaves 1040 of 1080 columns; cells 48 of 53 bytes; a packet of 9180 bytes fills 192
    // cells (9180 + 8 + 8 + 20 = 9216 bytes); 52 bytes of it are headers.
    let want = [
        (622.08, 1.0, 10_567.384_6),
        (599.04, 0.962_963, 10_176.0),
        (542.526_792, 0.872_117, 9216.0),
        (540.878_491, 0.869_468, 9188.0),
        (540.407_547, 0.868_711, 9180.0),
        (537.346_415, 0.863_790, 9128.0),
    ];
    let layers = answer["layers"].as_array().expect("an array");
    assert_eq!(layers.len(), want.len());
    for (layer, (mbps, share, bytes)) in layers.iter().zip(want) {
        let name = layer["name"].as_str().expect("a name");
        close(&layer["rate_bps"], mbps * 1e6, name);
        close(&layer["line_ratio"], share, name);
        close(&layer["bytes_per_packet"], bytes, name);
        assert!(!layer["rule"].as_str().expect("a rule").is_empty());
        assert!(!layer["source"].as_str().expect("a source").is_empty());
    }
    close(&answer["packets_per_sec"], 7358.49, "packets/s");
    assert_eq!(answer["schema"], "linerate.ceiling/2");
    // Without timestamps 9140 of 9180 bytes are payload: 538.053.
    check_payload(&[&OC12[1..], &["--no-timestamps"]].concat(), 538.053);
}

#[test]
fn the_lowest_rung_binds_and_the_next_is_what_mending_it_gives() {
    let answer = json(&OC12[1..]);
    close(&rung(&answer, "local_link")["payload_bps"], 537.346e6, "link");
    // 2,097,152 × 8 / 0.045 s.
    close(&rung(&answer, "receive_window")["payload_bps"], 372.827e6, "window");
    // 9128 × 8 / 0.045 s = 1.622756 Mbit/s; × sqrt(3/2) / sqrt(1e-4) = 198.746, and with delayed
    // acknowledgements × sqrt(3/4) / sqrt(1e-4) = 140.535. CUBIC's own window, 1.05383 × 0.045^0.75
    // / 1e-3 = 102.96 segments, is below Reno's 122.47, so Reno's rules.
    let loss = rung(&answer, "loss");
    close(&loss["payload_bps"], 198.746e6, "loss");
    close(&loss["low_bps"], 140.535e6, "loss with delayed acknowledgements");
    assert_eq!(loss["estimate"], true);
    let limits = &answer["limits"];
    assert_eq!(limits["binding"], serde_json::json!(["loss"]));
    assert_eq!(limits["without_lowest_rung"], "receive_window");
    close(&limits["without_lowest_bps"], 372.827e6, "without the loss");
    assert!(limits["missing"].as_array().expect("an array").contains(&"send_buffer".into()));
}

#[test]
fn the_text_shows_every_layer_and_says_what_binds() {
    let text = ends_with(0, &OC12);
    for part in [
        "OC-12c (STM-4)  622.080  100.00 %",
        "SONET payload   599.040",
        "cell payload    542.527",
        "IP packets      540.408",
        "TCP payload     537.346",
        "7358.49 packets/s",
        "372.827",
        "140.535 to 198.746  binds, estimate",
        "The limit is the loss: at most 198.75 Mbit/s of payload, by an estimate",
        "it would be 372.83 Mbit/s (receive window)",
        "3022574 bytes in flight",
        "window scale 6",
        "net.ipv4.tcp_wmem = 4096 16384 5037624",
        "net.core.rmem_max = 3022574",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "wider than 100 columns: {line}");
    }
}

#[test]
fn other_congestion_controls_answer_the_same_loss_otherwise() {
    let with = |cc: &str, loss: &str, mbps: f64| {
        let flags = ["--link", "1g", "--rtt", "100ms", "--loss", loss, "--congestion", cc];
        check_rung(&flags, "loss", mbps);
    };
    // 1448 × 8 / 0.1 s = 115,840 bit/s; × 1.224745 / 0.01 = 14.1874.
    with("reno", "1e-4", 14.1874);
    // RFC 8312 §5.1 prints 187 segments for CUBIC here; 187.40 × 115,840.
    with("cubic", "0.01%", 21.7084);
    let flags = ["--link=1g", "--rtt=100ms", "--loss=1e-4", "--congestion", "reno"];
    check_rung(&flags, "loss", 14.1874);
    // 941.482 × (1 - 0.01).
    with("bbr", "1/100", 932.068);
}

#[test]
fn every_bound_that_is_known_becomes_a_rung() {
    let check = |more: &[&str], kind: &str, mbps: f64| {
        check_rung(&[&["--link", "1g", "--rtt", "100ms"], more].concat(), kind, mbps);
    };
    // IP packets of 1500 bytes carry 1448.
    check(&["--capacity", "300M"], "path_capacity", 289.6);
    check(&["--sustained", "30M"], "sustained_rate", 28.96);
    check(&["--pps", "10k"], "packet_rate", 115.84); // 10,000 × 1448 × 8
    check(&["--window", "65536"], "receive_window", 5.242_88);
    // 65535 × 2^7 × 8 / 0.1 s; four connections have four windows.
    check(&["--window-scale", "7"], "receive_window", 671.0784);
    check(&["--window-scale", "7", "-P", "4"], "receive_window", 2684.3136);
    check(&["--sndbuf", "1000000"], "send_buffer", 85.242_88); // 8 × 1,065,536 / 0.1
    check(&["--pace", "20M", "--parallel", "3"], "application", 60.0);
    check(&["--sender-rate", "700M"], "sender_host", 700.0);
    check(&["--receiver-rate", "600M"], "receiver_host", 600.0);
    // Acknowledgements of 52 bytes are frames of 70 and take 90 on the wire: 1388.89 a second,
    // each for two segments of 1448 bytes; without timestamps 84 and 1460.
    check(&["--reverse-link", "1m"], "reverse_path", 32.1778);
    let every = ["--reverse-link", "1m", "--ack-every", "1", "--no-timestamps"];
    check(&every, "reverse_path", 17.381);
}

#[test]
fn a_links_name_may_end_in_its_carrier() {
    for (short, long) in [
        ("--link=oc12-atm", &["--link=oc12", "--carrier=aal5-llcsnap"][..]),
        ("--link=oc3-pos", &["--link=oc3", "--carrier=pos"]),
    ] {
        let text = ends_with(0, &["ceiling", short]);
        assert_eq!(text, ends_with(0, &[&["ceiling"], long].concat()));
    }
    // 540.878 Mbit/s of AAL5 payload: the page of the OC-12 study.
    assert!(ends_with(0, &["ceiling", "--link=oc12-atm"]).contains("540.878"));
}

#[test]
fn a_start_up_bounds_a_short_transfer() {
    // 50 Mbit/s of payload by the pace of a path: IP packets at 50 × 1500/1448 = 51.7956 Mbit/s.
    // 1 MB at 40 ms from 10 segments: 5 rounds, 0.3283 s, 24.37 Mbit/s.
    let path = ["--link", "1g", "--capacity", "51795580", "--rtt", "40ms"];
    let flags = [&path[..], &["--transfer", "1MB"]].concat();
    check_rung(&flags, "start_up", 24.37);
    let answer = json(&flags);
    let took = &answer["transfers"][0];
    assert_eq!((&took["size_bytes"], &took["rounds"]), (&1_000_000.into(), &5.into()));
    close(&took["time_ns"], 0.3283e9, "time");
    assert_eq!(answer["limits"]["binding"], serde_json::json!(["start_up"]));
    // The old growth of 1.5 from 2 segments takes 12 rounds of the OC-12 path, as printed in 1999:
    // floor(log1.5(278 / 2)) at 452 Mbit/s; at 537 Mbit/s 331 segments take a 13th.
    let old = ["--link=oc12", "--atm=aal5-llcsnap", "--rtt=45ms", "--initial-window=2"];
    let answer = json(&[&old[..], &["--growth=1.5", "--transfer=10GB"]].concat());
    assert_eq!(answer["transfers"][0]["rounds"], 13);
    // A minute reaches nearly all: the start costs less than half a second of it.
    let answer = json(&["--link", "1g", "--rtt", "21ms", "--time", "60s"]);
    let mean = rung(&answer, "start_up")["payload_bps"].as_f64().expect("a number");
    assert!((0.99 * 941.482e6..941.482e6).contains(&mean), "{mean}");
    assert_eq!(answer["limits"]["binding"], serde_json::json!(["local_link"]));
}

#[test]
fn filling_a_path_takes_its_bandwidth_delay_product() {
    let flags = ["--link", "10g", "--mtu", "9000", "--rtt", "100ms", "--flows", "10000"];
    let needs = &json(&flags)["needs"];
    // 9,900.420 Mbit/s × 0.1 / 8 = 123.755 MB of payload, × 9000/8948 of IP packets.
    close(&needs["window_bytes"], 123_755_255.0, "window");
    assert_eq!(needs["window_scale"], 11);
    close(&needs["queue_bytes"], 124_474_441.0, "queue");
    close(&needs["queue_shared_bytes"], 1_244_744.0, "queue of 10,000 flows");
    // A segment of 8948 bytes: W = 13,830.5; (1.224745 / W)² = 7.842e-9 and CUBIC's 3.231e-7.
    let budget = |cc: &str| {
        let budgets = needs["loss_budgets"].as_array().expect("an array");
        budgets.iter().find(|budget| budget["response"] == cc).expect("one each")["loss_ratio"]
            .clone()
    };
    close(&budget("reno"), 7.8419e-9, "Reno");
    close(&budget("cubic"), 3.2306e-7, "CUBIC");
    // 100 Gbit/s at 100 ms asks for 1.24 GB, above the largest window of 1.07 GB.
    let answer = json(&["--link", "100g", "--mtu", "9000", "--rtt", "100ms"]);
    assert_eq!(
        (&answer["needs"]["window_scale"], &answer["needs"]["flows_min"]),
        (&Value::Null, &2.into())
    );
    close(&rung(&answer, "receive_window")["payload_bps"], 85_898.035e6, "largest window");
    let text = ends_with(0, &["ceiling", "--link", "100g", "--mtu", "9000", "--rtt", "100ms"]);
    assert!(text.contains("no window scale reaches it; 2 flows do"), "{text}");
}

#[test]
fn encapsulations_and_headers_take_their_bytes() {
    let with = |flags: &[&str], mbps| check_payload(&[&["--link", "1g"], flags].concat(), mbps);
    with(&[], 941.482); // 1448/1538
    with(&["--ipv6"], 928.479); // 1428/1538
    with(&["--udp"], 957.087); // 1472/1538
    with(&["--encap", "vlan"], 939.040); // 1448/1542
    with(&["--encap", "pppoe"], 936.281); // 1440/1538
    with(&["--encap", "vxlan"], 908.973); // 1398/1538
    with(&["--encap", "vlan,vxlan"], 906.615); // 1398/1542
    check_payload(&["--link", "oc48", "--carrier", "pos"], 2363.526); // MTU 4470
    let answer = json(&["--link", "oc48", "--carrier", "pos-stuffed"]);
    assert_eq!((&answer["estimate"], &answer["limits"]["estimate"]), (&true.into(), &true.into()));
}

#[test]
fn a_distance_tells_how_much_of_the_round_trip_is_light() {
    // Light in 1000 km of fibre there and back: 2 × 10^6 m × 1.468 / 299,792,458 m/s = 9.7934 ms.
    let answer = json(&["--link", "1g", "--rtt", "21ms", "--distance", "1000km"]);
    close(&answer["propagation"]["fibre_rtt_ns"], 9.7934e6, "fibre");
    close(&answer["propagation"]["ratio"], 2.1443, "ratio");
    check_wrong_use(
        &["ceiling", "--link", "1g", "--rtt", "6ms", "--distance", "1000km"],
        &["1000 km", "6.671 ms"],
    );
}

#[test]
fn a_measured_rate_is_told_what_it_says() {
    let said = |rate: &str| {
        let answer = json(&[&OC12[1..], &["--measured", rate]].concat());
        answer["measured"]["statement"]["says"].as_str().expect("a statement").to_owned()
    };
    // Path 537.35, loss 140.53 to 198.75 (agrees from 119.45 to 228.56), window 372.83.
    assert_eq!(said("600M"), "above_ceiling");
    assert_eq!(said("520M"), "at_ceiling");
    assert_eq!(said("300M"), "above_expected");
    assert_eq!(said("190M"), "single_factor");
    assert_eq!(said("121M"), "single_factor");
    assert_eq!(said("110M"), "below_expected");
    assert_eq!(said("90M"), "unexplained");
    let text = ends_with(0, &[&OC12[..], &["--measured", "90M"]].concat());
    assert!(text.contains("Measured 90 Mbit/s: 16.7 % of what the path can carry"), "{text}");
    assert!(text.contains("Unexplained"), "{text}");
    // A window of 21,000 bytes at 10 ms gives 16.8 Mbit/s, a policer of 20 gives 19.31.
    let two = ["--link=1g", "--rtt=10ms", "--window=21000", "--sustained=20M", "--measured=16M"];
    let statement = &json(&two)["measured"]["statement"];
    assert_eq!(
        (&statement["says"], &statement["first"], &statement["then"]),
        (&"two_factors".into(), &"receive_window".into(), &"sustained_rate".into())
    );
}

#[test]
fn the_table_of_all_links_is_that_of_rfc_5180() {
    let text = ends_with(0, &["ceiling", "--all-links"]);
    assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    // RFC 5180 appendix A.1, which S. Bradner's table of 1990 begins with.
    for part in ["64        14,880     148,809  1,488,095", "1518         812", "1,190,476,190"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let rates: Value =
        serde_json::from_str(&ends_with(0, &["ceiling", "--all-links", "--json"])).expect("JSON");
    assert_eq!(rates["schema"], "linerate.frame-rates/2");
    let ethernet = rates["ethernet"].as_array().expect("an array");
    assert_eq!(ethernet.len(), 13);
    assert_eq!(ethernet[0]["frames_per_sec"][1], 8445);
    let oc3 = rates["optical"].as_array().expect("an array").iter();
    let oc3 = oc3.clone().find(|line| line["link"] == "oc3").expect("OC-3 is a line");
    // 149.76 Mbit/s / 424 bit = 353,207.55 cells/s, 1500 bytes are 32 of them.
    close(&oc3["cells_per_sec"], 353_207.55, "cells");
    close(&oc3["payload_bps"], 149.76e6, "payload");
    close(&oc3["carriers"][0]["packets_per_sec"][2], 11_037.74, "packets of 1500 bytes");
    // PPP adds 9 bytes: 149.76e6 / (1509 × 8).
    close(&oc3["carriers"][1]["packets_per_sec"][2], 12_405.57, "packets of 1500 bytes");
    let csv = ends_with(0, &["ceiling", "--all-links", "--csv"]);
    assert!(csv.contains("800g,800000000000,ethernet,64,,1190476190\n"), "{csv}");
    // 13 links of 8 sizes, 6 lines of 2 carriers and 5 sizes, and the head.
    assert_eq!(csv.lines().count(), 1 + 13 * 8 + 6 * 2 * 5);
}

#[test]
fn plots_are_written_with_the_asked_point_ringed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_string_lossy().into_owned();
    let output = linerate(&[&OC12[..], &["--svg", &path]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for name in ["rate-by-window.svg", "rate-by-rtt.svg", "rate-by-loss.svg"] {
        let svg = std::fs::read_to_string(directory.path().join(name)).expect("it is written");
        assert!(svg.starts_with("<svg") && svg.contains("r=\"8.5\""), "{name}");
        assert!(stderr(&output).contains(name));
    }
}

#[test]
fn what_no_path_has_is_one_line() {
    let refused = |flags: &[&str], parts: &[&str]| {
        check_wrong_use(&[&["ceiling"], flags].concat(), parts);
    };
    let on = |flags: &[&str], parts: &[&str]| {
        refused(&[&["--link", "1g", "--rtt", "10ms"], flags].concat(), parts);
    };
    refused(&["--link", "oc13"], &["\"oc13\"", "oc12", "oc1"]);
    refused(&["--link", "0"], &["--link", "rate is 0"]);
    refused(&["--link", "1g", "--mtu", "52"], &["52", "no payload"]);
    refused(&["--link", "1g", "--mtu", "70000"], &["65535"]);
    refused(&["--link", "1g", "--rtt", "0"], &["round trip of 0"]);
    refused(&["--link", "1g", "--atm", "aal5-llcsnap"], &["--carrier", "does not run on"]);
    refused(&["--link", "1g-atm"], &["--carrier", "does not run on"]);
    refused(&["--link", "1g", "--window", "1M"], &["--rtt"]);
    refused(&["--link", "1g", "--encap", "pppoa"], &["pppoa", "vlan"]);
    refused(&[], &["--link"]);
    refused(&["--all-links", "--rtt", "1ms"], &["--all-links", "--rtt"]);
    refused(&["--link", "1g", "--csv"], &["--all-links"]);
    on(&["--window-scale", "15"], &["--window-scale 15", "14"]);
    on(&["--window-scale", "3", "--window", "1M"], &["524280 bytes", "scale of 5"]);
    on(&["--window", "1073725441"], &["1,073,725,440"]);
    on(&["--window", "0"], &["window of 0"]);
    on(&["--loss", "1"], &["loss of 1"]);
    on(&["--loss", "0"], &["loss of 0"]);
    on(&["--loss", "0.3", "--congestion", "bbr"], &["0.3", "0.2"]);
    on(&["--capacity", "0"], &["capacity of 0"]);
    on(&["--pps", "0"], &["packet rate of 0"]);
    on(&["--pace", "0"], &["pace of 0"]);
    on(&["--parallel", "0"], &["0 flows"]);
    on(&["--transfer", "0"], &["0 bytes"]);
    on(&["--time", "0"], &["0 s"]);
    on(&["--flows", "0"], &["--flows 0"]);
    on(&["--growth", "1"], &["growth of 1"]);
    on(&["--growth", "nan"], &["growth"]);
    on(&["--initial-window", "0"], &["initial window of 0"]);
    on(&["--measured", "0"], &["--measured 0"]);
    on(&["--distance", "0km"], &["distance of 0"]);
    on(&["--reverse-link", "1m", "--ack-every", "0"], &["acknowledgements of 0"]);
    on(&["--udp", "--window", "1M"], &["--udp", "--window"]);
}
