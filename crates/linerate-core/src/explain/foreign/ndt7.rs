//! The result of an ndt7 server (ndt-server, `data.NDT7Result`): its samples of TCP_INFO.
//!
//! A download is what the server sent. Its advice to add busy, window-limited and buffer-limited
//! time is not followed: the kernel counts the last two within the first.

use serde_json::Value;

use super::super::evidence::{Evidence, Loss, RateEvidence, RoundTrips, Windows};
use super::{median, never_seen, number, positive, small_count};
use crate::record::{Direction, Unmeasured};
use crate::theory::ladder::Response;

pub(super) fn read(json: &Value) -> Option<Vec<Evidence>> {
    let down = json.get("Download").filter(|value| value.is_object());
    let found: Vec<Evidence> = down.into_iter().filter_map(download).collect();
    (!found.is_empty()).then_some(found)
}

fn download(test: &Value) -> Option<Evidence> {
    let samples = test.get("ServerMeasurements")?.as_array()?;
    let infos: Vec<&Value> = samples.iter().filter_map(|sample| sample.get("TCPInfo")).collect();
    let last = infos.last()?;
    let late = || infos.iter().skip(infos.len() / 5);
    let of = |key: &str| -> Vec<f64> { late().filter_map(|info| positive(info, &[key])).collect() };
    let mss = positive(last, &["SndMSS"]);
    let span_s = positive(last, &["ElapsedTime"]).map(|us| us / 1e6);
    let bytes = positive(last, &["BytesAcked"]);
    let mean_bps = bytes.zip(span_s).map(|(bytes, s)| bytes * 8.0 / s);
    let cwnd = |mss: f64| median(of("SndCwnd")).map(|segments| segments * mss);
    let sent = number(last, &["BytesSent"]).zip(number(last, &["BytesRetrans"]));
    let busy = positive(last, &["BusyTime"]);
    let share = |key: &str| Some(number(last, &[key])? / busy?);
    Some(Evidence {
        direction: Some(Direction::Down),
        flows: 1,
        rate: RateEvidence {
            mean_bps,
            steady_bps: mean_bps,
            delivery_bps: median(of("DeliveryRate")).map(|rate| rate * 8.0),
            bytes,
            span_s,
            ..RateEvidence::default()
        },
        rtt: RoundTrips {
            base_s: positive(last, &["MinRTT"]).map(|us| us / 1e6),
            loaded_s: median(of("RTT")).map(|us| us / 1e6),
            ..RoundTrips::default()
        },
        window: Windows {
            offered_bytes: median(of("SndWnd")),
            cwnd_bytes: mss.and_then(cwnd),
            window_limited: share("RWndLimited"),
            buffer_limited: share("SndBufLimited"),
            ..Windows::default()
        },
        loss: Loss {
            retransmits: number(last, &["TotalRetrans"]),
            ratio: sent.filter(|counts| counts.0 > 0.0).map(|(sent, again)| again / sent),
            // The specification asks for BBR where the kernel has it.
            response: Some(Response::Bbr),
            ..Loss::default()
        },
        mss_bytes: mss.and_then(small_count),
        packet_bytes: positive(last, &["PMTU"]).and_then(small_count),
        unseen: never_seen(&[Unmeasured::BothCpus]),
        ..Evidence::default()
    })
}
