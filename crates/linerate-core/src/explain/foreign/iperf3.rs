//! `iperf3 -J` of either end: TCP and UDP, one way and both ways (`--bidir`).
//!
//! The rates of intervals are the only ones it has, so it shows no rate of delivery apart from
//! them. Before 3.10 the sums of both directions have one name, and are added up from the streams
//! here.

use serde_json::Value;

use super::super::evidence::{
    Datagrams, Evidence, HostEvidence, Loss, RateEvidence, RoundTrips, TestOptions, Windows,
};
use super::super::of_record::response;
use super::{Unreadable, median, never_seen, number, positive, quantile, small_count, whole_bytes};
use crate::record::{Direction, SourceNote, Unmeasured};

/// Evidence of each direction; `None` for a document that is none of iperf3.
pub(super) fn read(json: &Value) -> Option<Result<Vec<Evidence>, Unreadable>> {
    let error = json.get("error").and_then(Value::as_str);
    let test = json.get("start").and_then(|start| start.get("test_start"));
    let (Some(test), true) = (test, has_figures(json)) else {
        let is_iperf3 = test.is_some()
            || error.is_some() && (json.get("start").is_some() || json.get("intervals").is_some());
        return is_iperf3.then(|| Err(failed(error.unwrap_or("no interval of it is there"))));
    };
    let protocol = test.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
    let reader = match protocol {
        "TCP" => connection,
        "UDP" => datagrams,
        other => {
            let kind = format!("a result of iperf3 over {other}");
            let advice = "explain reads its tests over TCP and UDP";
            return Some(Err(Unreadable::Other { kind, advice }));
        }
    };
    let ways = test_directions(json, test);
    let finished = |way| finished(reader(&Iperf3Direction { json, test, way }), json);
    Some(Ok(ways.iter().map(finished).collect()))
}

fn has_figures(json: &Value) -> bool {
    let intervals = json.get("intervals").and_then(Value::as_array);
    let sums = ["sum_received", "sum_sent", "sum"];
    intervals.is_some_and(|intervals| !intervals.is_empty())
        || sums.iter().any(|sum| positive(json, &["end", sum, "bytes"]).is_some())
}

/// A test that ended before it measured anything, with what its own words call for.
fn failed(error: &str) -> Unreadable {
    let reason = error.trim().trim_start_matches("error - ").to_owned();
    let has = |text: &str| reason.to_lowercase().contains(text);
    let advice = if has("refused") {
        "start a server there: iperf3 -s, or linerate serve"
    } else if has("no route") || has("unreachable") || has("timed out") {
        "look whether the host answers and its firewall lets the port pass: linerate trace HOST"
    } else if has("busy") {
        "try again when the server's other test has ended"
    } else {
        "run the test again, and look at the server's own output"
    };
    Unreadable::Failed { program: "iperf3", reason, advice }
}

/// The evidence with what the document says of itself.
fn finished(mut evidence: Evidence, json: &Value) -> Evidence {
    let word = |key: &str| json.get(key).and_then(Value::as_str);
    if json.get("rounded") == Some(&Value::Bool(true)) {
        evidence.remarks.push(SourceNote::RoundedFigures);
    }
    if let Some(error) = word("error") {
        let error = error.trim().trim_start_matches("error - ").to_owned();
        evidence.remarks.push(SourceNote::EndedEarly { error: error.clone() });
        evidence.failure = Some(error);
    }
    evidence
}

/// One direction: how its sums are called, and which streams are its own.
struct TestDirection {
    direction: Direction,
    suffix: &'static str,
    /// The value of `sender` that its streams have; all streams where absent.
    sends: Option<bool>,
}

fn test_directions(json: &Value, test: &Value) -> Vec<TestDirection> {
    let reverse = number(test, &["reverse"]) == Some(1.0);
    let intervals = json.get("intervals").and_then(Value::as_array);
    let first = intervals.and_then(|intervals| intervals.first());
    let flags = streams_of(first).filter_map(|stream| stream.get("sender")?.as_bool());
    let flags: Vec<bool> = flags.collect();
    let both = number(test, &["bidir"]) == Some(1.0)
        || first.is_some_and(|interval| interval.get("sum_bidir_reverse").is_some())
        || flags.contains(&true) && flags.contains(&false);
    if both {
        return vec![
            TestDirection { direction: Direction::Up, suffix: "", sends: Some(true) },
            TestDirection {
                direction: Direction::Down,
                suffix: "_bidir_reverse",
                sends: Some(false),
            },
        ];
    }
    let direction = if reverse { Direction::Down } else { Direction::Up };
    vec![TestDirection { direction, suffix: "", sends: None }]
}

fn streams_of(interval: Option<&Value>) -> impl Iterator<Item = &Value> {
    let streams = interval.and_then(|interval| interval.get("streams")).and_then(Value::as_array);
    streams.into_iter().flatten()
}

/// A direction of a document.
struct Iperf3Direction<'a> {
    json: &'a Value,
    test: &'a Value,
    way: &'a TestDirection,
}

impl<'a> Iperf3Direction<'a> {
    fn is_own(&self, stream: &Value) -> bool {
        let sends = stream.get("sender").and_then(Value::as_bool);
        self.way.sends.is_none() || sends.is_none() || sends == self.way.sends
    }

    /// Intervals that were not left out by `-O`.
    fn intervals(&self) -> Vec<&'a Value> {
        let all = self.json.get("intervals").and_then(Value::as_array).into_iter().flatten();
        let omitted = |interval: &&Value| {
            let sum = interval.get("sum").and_then(|sum| sum.get("omitted"));
            sum.and_then(Value::as_bool) == Some(true)
        };
        all.filter(|interval| !omitted(interval)).collect()
    }

    /// The streams of this direction in all intervals after the first fifth.
    fn streams(&self) -> Vec<&'a Value> {
        let intervals = self.intervals();
        let late = intervals.iter().skip(intervals.len() / 5);
        late.flat_map(|interval| streams_of(Some(interval)))
            .filter(|stream| self.is_own(stream))
            .collect()
    }

    /// A figure of a sum at the end: `sum_sent`, `sum_received`, `sum`.
    fn sum(&self, name: &str, key: &str) -> Option<f64> {
        number(self.json, &["end", &format!("{name}{}", self.way.suffix), key])
    }

    /// The same, added up from the streams where both directions share one name.
    fn sum_figure(&self, name: &str, key: &str) -> Option<f64> {
        let one_name = self.way.sends.is_some()
            && self.json.get("end").and_then(|end| end.get("sum_sent_bidir_reverse")).is_none();
        if !one_name {
            return self.sum(name, key);
        }
        let side = name.strip_prefix("sum_")?;
        let side = if side == "sent" { "sender" } else { "receiver" };
        let each: Vec<f64> =
            self.end_streams().filter_map(|stream| number(stream, &[side, key])).collect();
        (!each.is_empty()).then(|| each.iter().sum())
    }

    /// The streams of this direction at the end.
    fn end_streams(&self) -> impl Iterator<Item = &'a Value> {
        let streams =
            self.json.get("end").and_then(|end| end.get("streams")).and_then(Value::as_array);
        let own = |stream: &&Value| {
            let side = ["receiver", "sender"].into_iter().find_map(|side| stream.get(side));
            side.is_none_or(|side| self.is_own(side))
        };
        let own: Vec<&Value> = streams.into_iter().flatten().filter(own).collect();
        own.into_iter()
    }

    fn flow_count(&self) -> u32 {
        positive(self.test, &["num_streams"]).and_then(small_count).unwrap_or(1)
    }

    fn rate_evidence(&self) -> RateEvidence {
        let sum = format!("sum{}", self.way.suffix);
        let bps = |interval: &&Value| {
            number(interval, &[&sum, "bits_per_second"]).or_else(|| {
                let each = streams_of(Some(interval)).filter(|stream| self.is_own(stream));
                let each: Vec<f64> =
                    each.filter_map(|stream| number(stream, &["bits_per_second"])).collect();
                (!each.is_empty()).then(|| each.iter().sum())
            })
        };
        let intervals_bps: Vec<f64> = self.intervals().iter().filter_map(bps).collect();
        let mut late: Vec<f64> =
            intervals_bps.iter().skip(intervals_bps.len() / 5).copied().collect();
        late.sort_by(f64::total_cmp);
        let received = |key: &str| {
            let both = ["sum_received", "sum_sent"].into_iter();
            both.filter_map(|sum| self.sum_figure(sum, key)).find(|value| *value > 0.0)
        };
        // A stream that was cut has no sums.
        let count = intervals_bps.len() as f64;
        let mean = intervals_bps.iter().sum::<f64>() / count.max(1.0);
        RateEvidence {
            mean_bps: received("bits_per_second").or_else(|| (count > 0.0).then_some(mean)),
            steady_bps: quantile(&late, 0.5),
            delivery_bps: None,
            intervals_bps,
            // iperf3's own, or what -i asked for.
            interval_s: number(self.test, &["interval"]).or(Some(1.0)),
            bytes: received("bytes"),
            span_s: received("seconds").or_else(|| number(self.test, &["duration"])),
        }
    }

    fn round_trips(&self, rtt: &[f64]) -> RoundTrips {
        let ends = |key: &str| -> Vec<f64> {
            self.end_streams().filter_map(|stream| positive(stream, &["sender", key])).collect()
        };
        let all = self.intervals();
        let all = all
            .iter()
            .flat_map(|interval| streams_of(Some(interval)))
            .filter(|stream| self.is_own(stream));
        let all = all.filter_map(|stream| positive(stream, &["rtt"]));
        let least = ends("min_rtt").into_iter().chain(all).reduce(f64::min);
        let mean = ends("mean_rtt").into_iter().reduce(f64::max);
        let s = |us: f64| us / 1e6;
        let each = |interval: &&Value| {
            let mut own = streams_of(Some(interval)).filter(|stream| self.is_own(stream));
            own.next().and_then(|stream| positive(stream, &["rtt"])).map_or(0.0, s)
        };
        let one = self.flow_count() == 1;
        RoundTrips {
            base_s: least.map(s),
            base_is_idle: false,
            // Its min_rtt is the least of one sample an interval.
            base_is_loaded: true,
            loaded_s: median(rtt.to_vec()).or(mean).map(s),
            loaded_p95_s: None,
            loaded_p10_s: None,
            intervals_s: self.intervals().iter().filter(|_| one).map(each).collect(),
        }
    }

    /// The sender and the receiver.
    fn host_evidence(&self) -> (HostEvidence, HostEvidence) {
        let asked = positive(self.json, &["start", "sock_bufsize"]).map(whole_bytes);
        // From 3.16 on each stream has a thread, and the figure is that of all.
        let threads = match version(self.json) >= Some((3, 16)) {
            true => f64::from(self.flow_count()),
            false => 1.0,
        };
        let [local, remote] = ["host_total", "remote_total"].map(|end| {
            let percent = number(self.json, &["end", "cpu_utilization_percent", end]);
            let cpu = percent.map(|percent| percent / 100.0 / threads);
            HostEvidence { cpu, buffer_asked_bytes: asked, ..HostEvidence::default() }
        });
        let is_server =
            self.json.get("start").is_some_and(|start| start.get("accepted_connection").is_some());
        match (self.way.direction == Direction::Down) == is_server {
            true => (local, remote),
            false => (remote, local),
        }
    }

    fn test_options(&self) -> TestOptions {
        let flows = f64::from(self.flow_count());
        TestOptions {
            both_ways: self.way.sends.is_some(),
            window_bytes: positive(self.json, &["start", "sock_bufsize"]).map(whole_bytes),
            pace_bps: positive(self.test, &["target_bitrate"]).map(|bps| bps * flows),
            bytes: positive(self.test, &["bytes"]).map(whole_bytes),
            write_bytes: positive(self.test, &["blksize"]).map(whole_bytes),
            ..TestOptions::default()
        }
    }

    /// The test and its hosts, whatever carried the data.
    fn evidence(&self) -> Evidence {
        let (sender, receiver) = self.host_evidence();
        Evidence {
            direction: Some(self.way.direction),
            flows: self.flow_count(),
            loopback: self.loopback(),
            asked: self.test_options(),
            rate: self.rate_evidence(),
            sender,
            receiver,
            ..Evidence::default()
        }
    }

    /// Both ends have one address.
    fn loopback(&self) -> bool {
        let first = self.json.pointer("/start/connected/0");
        let [local, remote] = ["local_host", "remote_host"]
            .map(|end| first.and_then(|connection| connection.get(end)));
        local.is_some() && local == remote
    }
}

fn version(json: &Value) -> Option<(u32, u32)> {
    let text = json.pointer("/start/version")?.as_str()?.strip_prefix("iperf ")?;
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn connection(part: &Iperf3Direction<'_>) -> Evidence {
    let json = part.json;
    let mss = positive(json, &["start", "tcp_mss_default"])
        .or_else(|| positive(json, &["start", "tcp_mss"]));
    let streams = part.streams();
    let each = |key: &str| -> Vec<f64> {
        streams.iter().filter_map(|stream| positive(stream, &[key])).collect()
    };
    let (rtt, cwnd, window) = (each("rtt"), each("snd_cwnd"), each("snd_wnd"));
    let sent = part.sum_figure("sum_sent", "bytes").filter(|bytes| *bytes > 0.0);
    let again = part.sum_figure("sum_sent", "retransmits");
    let segments = sent.zip(mss).map(|(bytes, mss)| bytes / mss);
    let mut sorted = window.clone();
    sorted.sort_by(f64::total_cmp);
    let control = json.get("end").and_then(|end| end.get("sender_tcp_congestion"));
    let control = control.and_then(Value::as_str).map(str::to_owned);
    let mut more = vec![Unmeasured::CpuWaits];
    if window.is_empty() {
        more.push(Unmeasured::WindowOffered);
    }
    if rtt.is_empty() {
        more.push(Unmeasured::RoundTrips);
    }
    Evidence {
        rtt: part.round_trips(&rtt),
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
        mss_bytes: mss.and_then(small_count),
        packet_bytes: mss.and_then(|mss| small_count(mss + 52.0)),
        unseen: never_seen(&more),
        ..part.evidence()
    }
}

fn datagrams(part: &Iperf3Direction<'_>) -> Evidence {
    let figure = |key: &str| {
        let sums = ["sum", "sum_received"].into_iter();
        sums.filter_map(|sum| part.sum(sum, key)).find(|value| *value > 0.0)
    };
    let payload_bytes = positive(part.test, &["blksize"]);
    let sent = figure("packets").unwrap_or(0.0);
    let lost = figure("lost_packets").unwrap_or(0.0);
    let common = part.evidence();
    let mut rate = common.rate;
    let span_s = figure("seconds").or(rate.span_s);
    // Before sum_received there was one sum, of what was sent.
    if part.sum("sum_received", "bits_per_second").is_none_or(|bps| bps <= 0.0) {
        let bytes = payload_bytes.map(|bytes| bytes * (sent - lost)).filter(|bytes| *bytes > 0.0);
        rate.mean_bps = bytes.zip(span_s).map(|(bytes, s)| bytes * 8.0 / s).or(rate.mean_bps);
    }
    let offered = ["sum_sent", "sum"].into_iter();
    let offered = offered.filter_map(|sum| part.sum(sum, "bits_per_second")).find(|bps| *bps > 0.0);
    Evidence {
        rate,
        datagrams: Some(Datagrams { sent, lost, payload_bytes, offered_bps: offered }),
        unseen: vec![Unmeasured::LossMechanism, Unmeasured::CpuWaits],
        ..common
    }
}
