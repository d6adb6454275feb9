//! `iperf3 -J`, one client's result: TCP, both with and without `--bidir`'s second half left out.

use serde_json::Value;

use super::super::evidence::{Asked, Evidence, Host, Loss, Rate, RoundTrips, Windows};
use super::super::of_record::response;
use super::{median, never_seen, number, positive, quantile, small, whole};
use crate::record::Direction;

pub(super) fn read(json: &Value) -> Option<Vec<Evidence>> {
    let test = json.get("start")?.get("test_start")?;
    if test.get("protocol")?.as_str()? != "TCP" {
        return None;
    }
    let reverse = number(test, &["reverse"]) == Some(1.0);
    Some(vec![one(json, test, reverse)])
}

fn one(json: &Value, test: &Value, reverse: bool) -> Evidence {
    let flows = positive(test, &["num_streams"]).and_then(small).unwrap_or(1);
    let mss = positive(json, &["start", "tcp_mss_default"])
        .or_else(|| positive(json, &["start", "tcp_mss"]));
    let streams = streams(json);
    let of = |key: &str| -> Vec<f64> {
        streams.iter().filter_map(|stream| positive(stream, &[key])).collect()
    };
    let (rtt, cwnd, window) = (of("rtt"), of("snd_cwnd"), of("snd_wnd"));
    let least = ends(json, "min_rtt").into_iter().chain(rtt.iter().copied()).reduce(f64::min);
    let mean_rtt = ends(json, "mean_rtt").into_iter().reduce(f64::max);
    let s = |us: f64| us / 1e6;
    let sent = positive(json, &["end", "sum_sent", "bytes"]);
    let again = number(json, &["end", "sum_sent", "retransmits"]);
    let segments = sent.zip(mss).map(|(bytes, mss)| bytes / mss);
    let mut sorted = window.clone();
    sorted.sort_by(f64::total_cmp);
    let asked = positive(json, &["start", "sock_bufsize"]).map(whole);
    let control = json.get("end").and_then(|end| end.get("sender_tcp_congestion"));
    let control = control.and_then(Value::as_str).map(str::to_owned);
    let [local, remote] = ["host_total", "remote_total"].map(|end| host(json, end, asked));
    let (sender, receiver) = if reverse { (remote, local) } else { (local, remote) };
    let mut more = vec!["CPU waits of both hosts"];
    if window.is_empty() {
        more.push("window that the receiver offered");
    }
    if rtt.is_empty() {
        more.push("round trips");
    }
    Evidence {
        direction: Some(if reverse { Direction::Down } else { Direction::Up }),
        flows,
        failure: json.get("error").and_then(Value::as_str).map(str::to_owned),
        asked: Asked {
            window_bytes: asked,
            pace_bps: positive(test, &["target_bitrate"]).map(|bps| bps * f64::from(flows)),
            bytes: positive(test, &["bytes"]).map(whole),
            write_bytes: positive(test, &["blksize"]).map(whole),
            ..Asked::default()
        },
        rate: rate(json),
        rtt: RoundTrips {
            base_s: least.map(s),
            base_is_idle: false,
            loaded_s: median(rtt).or(mean_rtt).map(s),
            loaded_p95_s: None,
            loaded_p10_s: None,
        },
        window: Windows {
            offered_bytes: median(window),
            offered_range: sorted.first().copied().zip(sorted.last().copied()),
            cwnd_ends: cwnd.first().copied().zip(cwnd.last().copied()),
            cwnd_bytes: median(cwnd),
            ..Windows::default()
        },
        loss: Loss {
            retransmits: again,
            ratio: again.zip(segments).map(|(again, all)| again / all.max(1.0)),
            response: control.as_deref().and_then(response),
            control,
            ..Loss::default()
        },
        sender,
        receiver,
        mss_bytes: mss.and_then(small),
        packet_bytes: mss.and_then(|mss| small(mss + 52.0)),
        unseen: never_seen(&more),
        ..Evidence::default()
    }
}

/// An end by its name in the document.
fn host(json: &Value, end: &str, asked: Option<u64>) -> Host {
    let percent = number(json, &["end", "cpu_utilization_percent", end]);
    let cpu = percent.map(|percent| percent / 100.0);
    Host { cpu, buffer_asked_bytes: asked, ..Host::default() }
}

/// The streams of all intervals after the first fifth.
fn streams(json: &Value) -> Vec<&Value> {
    let Some(intervals) = json.get("intervals").and_then(Value::as_array) else {
        return Vec::new();
    };
    let late = intervals.iter().skip(intervals.len() / 5);
    late.filter_map(|interval| interval.get("streams")?.as_array()).flatten().collect()
}

/// A figure of the senders of all streams at the end.
fn ends(json: &Value, key: &str) -> Vec<f64> {
    let streams = json.get("end").and_then(|end| end.get("streams")).and_then(Value::as_array);
    streams.into_iter().flatten().filter_map(|it| positive(it, &["sender", key])).collect()
}

fn rate(json: &Value) -> Rate {
    let intervals = json.get("intervals").and_then(Value::as_array);
    let sums = intervals.into_iter().flatten();
    let intervals_bps: Vec<f64> =
        sums.filter_map(|interval| number(interval, &["sum", "bits_per_second"])).collect();
    let received = |key: &str| number(json, &["end", "sum_received", key]);
    let mut late: Vec<f64> = intervals_bps.iter().skip(intervals_bps.len() / 5).copied().collect();
    late.sort_by(f64::total_cmp);
    Rate {
        mean_bps: received("bits_per_second"),
        steady_bps: quantile(&late, 0.5),
        delivery_bps: quantile(&late, 0.9),
        intervals_bps,
        // iperf3's own, or what -i asked for.
        interval_s: number(json, &["start", "test_start", "interval"]).or(Some(1.0)),
        bytes: received("bytes"),
        span_s: received("seconds"),
    }
}
