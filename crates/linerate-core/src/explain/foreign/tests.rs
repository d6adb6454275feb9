//! Results of other programs: live ones, and figures as public threads have them.

use super::super::judge;
use super::*;
use crate::record::{Cause, Outcome};

fn verdict(text: &str) -> crate::record::Verdict {
    let (_, found) = foreign(text).expect("a known result");
    judge(found.first().expect("one direction"))
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
    assert!(found.unseen.iter().any(|what| what == "the other end"));
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

#[test]
fn what_is_no_result_is_none() {
    for text in ["", "{}", "[1]", "hello", "{\"start\":{}}"] {
        assert!(foreign(text).is_none(), "{text}");
    }
}
