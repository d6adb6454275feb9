//! Results of other programs: live ones, and figures as public threads have them.

use super::super::judge_direction;
use super::*;
use crate::record::{Cause, Confidence, Outcome};

fn verdict(text: &str) -> crate::record::LimitVerdict {
    let Ok(ResultSource::Foreign(found)) = read_source(text) else {
        panic!("no known result: {text}")
    };
    judge_direction(&found.evidence[found.main])
}

#[test]
fn a_socket_of_ss_is_explained_by_its_window() {
    // A window of 65,535 bytes over 40 ms; words in the order of iproute2 6.1.
    let line = "\t cubic rto:240 rtt:40.2/0.3 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:210 \
                ssthresh:180 bytes_sent:32000000 bytes_acked:31934465 segs_out:22100 \
                data_segs_out:22098 send 60Mbps lastsnd:1 pacing_rate 72Mbps delivery_rate \
                13.0Mbps delivered:22053 busy:20000ms rwnd_limited:19600ms(98.0%) unacked:45 \
                rcv_space:14480 minrtt:40.1 snd_wnd:65535";
    let found = verdict(&format!("ESTAB 0 0 10.0.0.1:4 10.0.0.2:5\n{line}\n"));
    assert_eq!(found.cause, Some(Cause::ReceiveWindow));
    assert!(found.unseen.contains(&Unmeasured::OtherEnd));
}

#[test]
fn a_socket_that_has_sent_nothing_has_no_share_sent_again() {
    let ratio = |segments| {
        let line = format!("\t cubic rtt:40/0.3 mss:1448 cwnd:10 {segments} bytes_received:9000");
        let text = format!("ESTAB 0 0 10.0.0.1:4 10.0.0.2:5\n{line}\n");
        let Ok(ResultSource::Foreign(found)) = read_source(&text) else {
            panic!("no result: {text}")
        };
        found.evidence[found.main].loss.ratio
    };
    assert_eq!(ratio("segs_out:0 data_segs_out:0"), None);
    assert_eq!(ratio("retrans:0/3 data_segs_out:12"), Some(0.25));
}

#[test]
fn a_download_of_ndt7_with_a_standing_queue_filled_its_link() {
    let info = |ms: u32, acked: u64| {
        format!(
            "{{\"TCPInfo\":{{\"RTT\":90000,\"MinRTT\":20000,\"SndMSS\":1448,\"SndCwnd\":400,\
             \"BytesAcked\":{acked},\"BytesSent\":{acked},\"BytesRetrans\":1000,\
             \"DeliveryRate\":6250000,\"TotalRetrans\":1,\"BusyTime\":{ms}000,\"RWndLimited\":0,\
             \"SndBufLimited\":0,\"ElapsedTime\":{ms}000}}}}"
        )
    };
    let samples: Vec<String> =
        (1..=10u32).map(|n| info(n * 1000, u64::from(n) * 6_000_000)).collect();
    let text = format!("{{\"Download\":{{\"ServerMeasurements\":[{}]}}}}", samples.join(","));
    let found = verdict(&text);
    assert_eq!((found.outcome, found.cause), (Outcome::AtCeiling, Some(Cause::Link)));
}

/// iperf3's `min_rtt` is the least of one sample an interval, all of them under load: a queue may
/// have stood all the while, so there is no delay at rest, and a full window is not certain.
#[test]
fn round_trips_of_iperf3_show_no_path_at_rest() {
    let window = verdict(include_str!("../../../../../testdata/iperf3/window.json"));
    assert_eq!(window.cause, Some(Cause::ReceiveWindow));
    assert_eq!(window.confidence, Some(Confidence::Medium));
    assert_eq!(window.latency, None);
}

/// An even rate with many losses and an even round trip: a policer's, or a full link's whose queue
/// of 40 ms stood in all ten samples of the round trip, the first of them after a second of load.
#[test]
fn a_round_trip_that_was_sampled_under_load_shows_no_policer() {
    let stream = serde_json::json!({ "bits_per_second": 20e6, "rtt": 40_000, "retransmits": 100 });
    let interval = serde_json::json!({ "streams": [stream], "sum": { "bits_per_second": 20e6 } });
    let sender = serde_json::json!({
        "bytes": 25e6, "retransmits": 1000, "min_rtt": 40_000, "mean_rtt": 40_000,
        "max_rtt": 40_000
    });
    let text = serde_json::json!({
        "start": {
            "version": "iperf 3.12", "tcp_mss_default": 1448,
            "test_start": { "protocol": "TCP", "num_streams": 1, "duration": 10, "reverse": 0 }
        },
        "intervals": vec![interval; 10],
        "end": {
            "streams": [{ "sender": sender }],
            "sum_sent": { "bytes": 25e6, "retransmits": 1000 },
            "sum_received": { "bytes": 25e6, "bits_per_second": 20e6, "seconds": 10 },
            "sender_tcp_congestion": "cubic"
        }
    });
    let Ok(ResultSource::Foreign(found)) = read_source(&text.to_string()) else {
        panic!("no known result: {text}")
    };
    let evidence = &found.evidence[found.main];
    let verdict = judge_direction(evidence);
    assert_eq!((verdict.cause, verdict.outcome), (None, Outcome::Undetermined));
    let between = [Cause::Link, Cause::Policer];
    assert!(between.iter().all(|cause| verdict.between.contains(cause)), "{verdict:?}");
    // With the same round trip at rest there is no queue, and one cause is left.
    let mut at_rest = evidence.clone();
    at_rest.rtt.base_is_loaded = false;
    assert_eq!(judge_direction(&at_rest).cause, Some(Cause::Policer));
}

#[test]
fn what_is_no_result_is_none() {
    for text in ["", "{}", "[1]", "hello", "{\"start\":{}}"] {
        assert!(read_source(text).is_err(), "{text}");
    }
}

/// What a public thread printed of an `iperf3` run.
struct Thread {
    url: &'static str,
    /// Mbit/s of the intervals.
    mbit: &'static [f64],
    retransmits: f64,
    /// First and last congestion window, bytes.
    cwnd: Option<[f64; 2]>,
    rtt_us: Option<f64>,
    window: Option<f64>,
    /// `-b`, bit/s.
    pace: Option<f64>,
    mss: f64,
}

const NOTHING: Thread = Thread {
    url: "",
    mbit: &[],
    retransmits: 0.0,
    cwnd: None,
    rtt_us: None,
    window: None,
    pace: None,
    mss: 1448.0,
};

/// Figures alone, read off the threads; those of whole runs are given as equal intervals.
const THREADS: &[Thread] = &[
    Thread {
        url: "https://github.com/esnet/iperf/issues/703",
        mbit: &[0.694, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        retransmits: 5.0,
        cwnd: Some([1444.0, 1444.0]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/72",
        mbit: &[640.0, 0.0, 10.5, 0.0, 10.5, 10.5, 10.5, 10.5, 0.0],
        retransmits: 15.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/198",
        mbit: &[398.0, 94.4, 94.4, 105.0, 94.4, 83.9, 94.4, 94.4, 94.4, 94.4],
        cwnd: Some([841_728.0, 841_728.0]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/145",
        mbit: &[377.0, 210.0, 2140.0, 2790.0, 2740.0, 2950.0, 2990.0, 2940.0, 3160.0, 3210.0],
        cwnd: Some([44.9e6, 45.0e6]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/394",
        mbit: &[9300.0; 10],
        retransmits: 1245.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/perfsonar/pscheduler/issues/582",
        mbit: &[508.0; 10],
        retransmits: 128.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/1207",
        mbit: &[1001.8; 5],
        retransmits: 55.0,
        cwnd: Some([536_940.0, 536_940.0]),
        rtt_us: Some(4053.0),
        window: Some(3_145_728.0),
        mss: 8949.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/angt/glorytun/issues/59",
        mbit: &[5.6, 6.18, 6.18, 7.67, 7.72, 8.41],
        retransmits: 15.0,
        cwnd: Some([66_300.0, 108_732.0]),
        rtt_us: Some(93_887.0),
        mss: 1326.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/1088",
        mbit: &[12_800.0; 20],
        retransmits: 114.0,
        cwnd: Some([971_608.0, 971_608.0]),
        rtt_us: Some(648.0),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/408",
        mbit: &[3140.0, 3290.0, 3330.0, 3320.0, 3300.0, 3310.0, 3350.0, 3350.0, 3340.0, 3330.0],
        ..NOTHING
    },
    Thread {
        // The author of the thread shows the window and names it.
        url: "https://github.com/esnet/iperf/issues/249",
        mbit: &[29.0, 28.2, 29.0, 28.8],
        cwnd: Some([524_288.0, 524_288.0]),
        window: Some(33_280.0),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/970",
        mbit: &[0.0; 10],
        cwnd: Some([34_714.0, 34_714.0]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/rcmcdonald91/pfSense-pkg-WireGuard/issues/93",
        mbit: &[66.2, 29.2, 0.0, 0.0, 0.0, 0.0, 5.59, 89.3, 0.0, 0.0],
        retransmits: 82.0,
        cwnd: Some([44_954.0, 1444.0]),
        mss: 1460.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/333",
        mbit: &[3.10, 2.58, 2.58, 2.06, 2.58, 2.58, 2.58, 2.58, 2.58, 2.06],
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/1288",
        mbit: &[888.0, 941.0, 941.0, 942.0, 942.0],
        cwnd: Some([2.67e6, 2.71e6]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/808",
        mbit: &[1.70, 1.05, 1.05, 1.05, 1.05, 1.05, 0.0],
        cwnd: Some([78_234.0, 78_234.0]),
        pace: Some(1e6),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/esnet/iperf/issues/687",
        mbit: &[20.1, 6.41, 0.0, 6.57, 6.35, 6.51],
        retransmits: 44.0,
        cwnd: Some([388_096.0, 95_539.0]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/yggdrasil-network/yggdrasil-go/issues/943",
        mbit: &[
            169.0, 168.0, 31.4, 94.4, 199.0, 220.0, 231.0, 136.0, 105.0, 21.0, 52.4, 157.0, 115.0,
            126.0,
        ],
        retransmits: 194.0,
        cwnd: Some([1.43e6, 847_872.0]),
        ..NOTHING
    },
    Thread {
        url: "https://github.com/cilium/cilium/issues/28413",
        mbit: &[2260.0, 2240.0],
        retransmits: 1392.0,
        cwnd: Some([892_928.0, 845_824.0]),
        mss: 1380.0,
        ..NOTHING
    },
    Thread {
        url: "https://github.com/intrig-unicamp/mininet-wifi/issues/353",
        mbit: &[63.9, 63.1],
        cwnd: Some([331_776.0, 636_928.0]),
        ..NOTHING
    },
];

impl Thread {
    /// As `iperf3 -J` prints it.
    fn json(&self) -> String {
        let count = self.mbit.len() as f64;
        let bytes: f64 = self.mbit.iter().map(|mbit| mbit * 1e6 / 8.0).sum();
        let interval = |(index, mbit): (usize, &f64)| {
            let mut stream = serde_json::json!({ "bits_per_second": mbit * 1e6 });
            if let Some([first, last]) = self.cwnd {
                stream["snd_cwnd"] = if index == 0 { first } else { last }.into();
            }
            for (key, value) in [("rtt", self.rtt_us), ("snd_wnd", self.window)] {
                if let Some(value) = value {
                    stream[key] = value.into();
                }
            }
            let sum = serde_json::json!({ "bits_per_second": mbit * 1e6 });
            serde_json::json!({ "streams": [stream], "sum": sum })
        };
        let intervals: Vec<_> = self.mbit.iter().enumerate().map(interval).collect();
        let test = serde_json::json!({
            "protocol": "TCP", "num_streams": 1, "reverse": 0,
            "target_bitrate": self.pace.unwrap_or(0.0)
        });
        let sent = serde_json::json!({ "bytes": bytes, "retransmits": self.retransmits });
        let received = serde_json::json!({
            "bytes": bytes, "bits_per_second": bytes * 8.0 / count, "seconds": count
        });
        serde_json::json!({
            "start": { "tcp_mss_default": self.mss, "test_start": test },
            "intervals": intervals,
            "end": { "sum_sent": sent, "sum_received": received }
        })
        .to_string()
    }
}

#[test]
fn what_public_threads_asked_about_gets_a_cause_or_a_short_list() {
    let mut answered = 0;
    for thread in THREADS {
        let found = verdict(&thread.json());
        let says = found.cause.is_some() || !found.between.is_empty();
        answered += usize::from(says);
        assert!(found.deciding_test.is_some() || found.cause.is_some(), "{}", thread.url);
    }
    // Five have nothing but rates, or hardly lost anything.
    assert_eq!((answered, THREADS.len()), (15, 20));
    let of = |number: &str| {
        let found = THREADS.iter().find(|thread| thread.url.ends_with(number));
        verdict(&found.expect("it is there").json())
    };
    // What the people of the threads found out.
    assert_eq!(of("iperf/issues/249").between.first(), Some(&Cause::ReceiveWindow));
    assert!(of("iperf/issues/1288").between.contains(&Cause::Link));
    assert_eq!(of("iperf/issues/808").cause, Some(Cause::SendingApplication));
    assert!(of("WireGuard/issues/93").between.contains(&Cause::MtuBlackHole));
    let starved = verdict(&THREADS[0].json());
    assert!(starved.between.contains(&Cause::MtuBlackHole));
    let window = verdict(&THREADS[2].json());
    assert_eq!(window.between.first(), Some(&Cause::ReceiveWindow));
}
