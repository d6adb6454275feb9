//! `ss -ti` of iproute2: two lines of words for each socket, or one (`-O`): one moment, and the
//! sums since the connection was opened.
//!
//! The rate is that of acknowledged bytes: over the age of the connection where it shows, else over
//! the time in which data was in flight. A socket that never received was opened `lastrcv` ago, one
//! that never sent `lastsnd` ago: the kernel sets both when the connection comes about
//! (tcp_finish_connect).

use super::super::evidence::{
    Agreed, Evidence, Loss, RateEvidence, RoundTrips, SocketMoment, Syn, Windows,
};
use super::super::of_record::response;
use super::{never_seen, small_count};
use crate::record::{SourceNote, Unmeasured};

/// Sockets of an output, in its order. Of one that it has more than once the last is taken.
pub(super) fn read(text: &str) -> Vec<Evidence> {
    let mut found: Vec<Evidence> = Vec::new();
    for socket in entries(text).iter().filter_map(|entry| socket(entry)) {
        let same = |known: &&mut Evidence| {
            known.connection.is_some() && known.connection == socket.connection
        };
        match found.iter_mut().find(same) {
            Some(known) => *known = socket,
            None => found.push(socket),
        }
    }
    found
}

/// True for a text with lines of `ss` or `netstat` for TCP, with or without `-i`.
pub(super) fn is_output(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        addresses(&words).is_some() || line.contains("Local Address:Port")
    })
}

/// The words of each socket.
fn entries(text: &str) -> Vec<Vec<&str>> {
    let mut entries: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let carries = words.iter().any(|word| word.starts_with("rtt:"));
        match (addresses(&words).is_some(), entries.last_mut()) {
            (true, _) => entries.push(words),
            (false, Some(last)) if !last.iter().any(|word| word.starts_with("rtt:")) => {
                last.extend(words);
            }
            // A line of figures alone, as people cut it out.
            (false, _) if carries => entries.push(words),
            (false, _) => {}
        }
    }
    entries
}

/// Receive queue, send queue and both addresses, after which the rest comes.
struct SocketHead<'a> {
    queues: [f64; 2],
    ends: [&'a str; 2],
}

fn addresses<'a>(words: &[&'a str]) -> Option<SocketHead<'a>> {
    let number = |word: &&str| word.parse::<f64>().ok().filter(|value| *value >= 0.0);
    let is_end = |word: &str| {
        let port = word.rsplit_once(':').map(|(host, port)| (!host.is_empty(), port));
        port.is_some_and(|(host, port)| {
            host && (port == "*" || port.parse::<u16>().is_ok() || is_service(port))
        })
    };
    let found = words.windows(4).take(3).find_map(|four| match four {
        [receive, send, local, remote] if is_end(local) && is_end(remote) => {
            Some((number(receive)?, number(send)?, *local, *remote))
        }
        _ => None,
    })?;
    Some(SocketHead { queues: [found.0, found.1], ends: [found.2, found.3] })
}

/// A name of a port, as ss prints it without -n.
fn is_service(port: &str) -> bool {
    port.starts_with(|c: char| c.is_ascii_lowercase())
        && port.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The words behind a socket's addresses.
struct SocketWords<'a>(&'a [&'a str]);

impl SocketWords<'_> {
    fn has_word(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn text_after(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
    }

    /// The number at the beginning of a value.
    fn figure_after(&self, name: &str) -> Option<f64> {
        leading(self.text_after(name)?)
    }

    /// Value in milliseconds, as seconds.
    fn seconds_after(&self, name: &str) -> Option<f64> {
        self.figure_after(name).map(|ms| ms / 1e3)
    }

    /// The word after a name, as rates are printed: `10.4Mbps`, and `7200320bps/5000000bps` for a
    /// pace with its limit.
    fn rates_after(&self, name: &str) -> Option<(f64, Option<f64>)> {
        let place = self.0.iter().position(|word| *word == name)?;
        let mut rates = self.0.get(place + 1)?.split('/');
        let bps = |text: &str| scaled(text.strip_suffix("bps")?);
        Some((bps(rates.next()?)?, rates.next().and_then(bps)))
    }

    /// A figure of `skmem:(r0,rb131072,t0,...)`.
    fn memory(&self, name: &str) -> Option<f64> {
        let list = self.text_after("skmem")?.trim_start_matches('(').trim_end_matches(')');
        list.split(',').find_map(|part| part.strip_prefix(name)?.parse().ok())
    }
}

fn socket(words: &[&str]) -> Option<Evidence> {
    let head = addresses(words);
    let words = SocketWords(words);
    let mss = words.figure_after("mss")?;
    let moment = moment(&words, head.as_ref());
    let options = Agreed {
        timestamps: words.has_word("ts"),
        sack: words.has_word("sack"),
        window_scale: words.text_after("wscale").is_some(),
    };
    let has_options = options != Agreed::default();
    let receives = moment.received_bytes > moment.acknowledged_bytes;
    let mut unseen =
        never_seen(&[Unmeasured::BothCpus, Unmeasured::OtherEnd, Unmeasured::OtherMoments]);
    if words.figure_after("snd_wnd").is_none() && !receives && !moment.persist_timer {
        unseen.push(Unmeasured::WindowOfferedBySs);
    }
    let (rate, remark) = rate_since_open(&moment);
    Some(Evidence {
        connection: head.map(|head| both_addresses(&head, receives)),
        flows: 1,
        rate,
        rtt: RoundTrips {
            base_s: words.seconds_after("minrtt"),
            loaded_s: words.seconds_after("rtt"),
            ..RoundTrips::default()
        },
        window: windows(&words, mss, &moment),
        loss: losses_told(&words),
        syn: Syn { sender_agreed: has_options.then_some(options), ..Syn::default() },
        mss_bytes: small_count(mss),
        packet_bytes: words.figure_after("pmtu").and_then(small_count),
        moment: Some(moment),
        remarks: remark.into_iter().collect(),
        unseen,
        ..Evidence::default()
    })
}

/// Both addresses, the sender's first.
fn both_addresses(head: &SocketHead<'_>, receives: bool) -> String {
    let [local, remote] = head.ends;
    match receives {
        true => format!("{remote} to {local}, seen at the receiver"),
        false => format!("{local} to {remote}"),
    }
}

fn moment(words: &SocketWords<'_>, head: Option<&SocketHead<'_>>) -> SocketMoment {
    let acknowledged = words.figure_after("bytes_acked").unwrap_or(0.0);
    let received = words.figure_after("bytes_received").unwrap_or(0.0);
    // The SYN counts as a byte acknowledged.
    let age_s = match (received == 0.0, acknowledged <= 1.0) {
        (true, _) => words.seconds_after("lastrcv"),
        (false, true) => words.seconds_after("lastsnd"),
        (false, false) => None,
    };
    let timer = words.0.iter().any(|word| word.starts_with("timer:(persist"));
    // Without -o the timer is not printed: one that backs off while nothing is in flight probes a
    // closed window.
    let unsent = words.figure_after("notsent").filter(|bytes| *bytes > 0.0);
    let backs_off = words.figure_after("backoff").is_some_and(|times| times > 0.0);
    let probes = backs_off && unsent.is_some() && unsent == head.map(|head| head.queues[1]);
    SocketMoment {
        persist_timer: timer || probes,
        send_queue_bytes: head.map(|head| head.queues[1]),
        receive_queue_bytes: head.map(|head| head.queues[0]),
        receive_room_bytes: words.memory("rb").or_else(|| words.figure_after("rcv_ssthresh")),
        received_bytes: received,
        acknowledged_bytes: acknowledged,
        busy_s: words.seconds_after("busy"),
        age_s: age_s.filter(|age| *age > 0.0),
        application_limited: words.has_word("app_limited"),
        delivery_bps: words.rates_after("delivery_rate").map(|(bps, _)| bps),
        pace_max_bps: words.rates_after("pacing_rate").and_then(|(_, most)| most),
    }
}

/// The rate since the connection was opened, and what it is where that is not known.
fn rate_since_open(moment: &SocketMoment) -> (RateEvidence, Option<SourceNote>) {
    let receives = moment.received_bytes > moment.acknowledged_bytes;
    let bytes = moment.received_bytes.max(moment.acknowledged_bytes);
    let busy_s = moment.busy_s.filter(|_| !receives);
    let span_s = moment.age_s.or(busy_s).filter(|span| *span > 0.0);
    let remark = match (moment.age_s, busy_s, span_s) {
        (None, Some(_), Some(_)) => Some(SourceNote::RateWhileInFlight),
        (_, _, None) => Some(SourceNote::AgeNotKnown),
        _ => None,
    };
    let mean_bps = span_s.map(|span| bytes * 8.0 / span);
    let rate = RateEvidence { mean_bps, bytes: Some(bytes), span_s, ..RateEvidence::default() };
    (rate, remark)
}

fn windows(words: &SocketWords<'_>, mss: f64, moment: &SocketMoment) -> Windows {
    let busy_s = moment.busy_s.filter(|busy| *busy > 0.0);
    // The kernel leaves a time out that is 0.
    let limited = |name: &str| Some(words.seconds_after(name).unwrap_or(0.0) / busy_s?);
    let unsent = words.figure_after("notsent").unwrap_or(0.0);
    // Written less not sent is exact; segments in flight may be short ones.
    let by_queue = moment.send_queue_bytes.filter(|queue| *queue > 0.0);
    let by_queue = by_queue.map(|queue| (queue - unsent).max(0.0));
    let by_segments = words.figure_after("unacked").unwrap_or(0.0) * mss;
    Windows {
        // A window of 0 is not printed.
        offered_bytes: words
            .figure_after("snd_wnd")
            .or_else(|| moment.persist_timer.then_some(0.0)),
        cwnd_bytes: words.figure_after("cwnd").map(|segments| segments * mss),
        flight_bytes: Some(by_queue.unwrap_or(by_segments)),
        left_slow_start: Some(words.text_after("ssthresh").is_some()),
        unsent_bytes: Some(unsent),
        receive_queue_bytes: moment.receive_queue_bytes,
        window_limited: limited("rwnd_limited"),
        buffer_limited: limited("sndbuf_limited"),
        application_limited: Some(f64::from(u8::from(moment.application_limited))),
        send_buffer_bytes: words.memory("tb"),
        send_memory_bytes: words.memory("w"),
        ..Windows::default()
    }
}

/// Segments that were sent again, and the congestion control.
fn losses_told(words: &SocketWords<'_>) -> Loss {
    let again = words
        .text_after("retrans")
        .and_then(|text| leading(text.rsplit('/').next()?))
        .unwrap_or(0.0);
    let sent = words.figure_after("data_segs_out").or_else(|| words.figure_after("segs_out"));
    let control =
        words.0.iter().find(|word| response(word).is_some()).map(|name| (*name).to_owned());
    Loss {
        retransmits: Some(again),
        ratio: sent.filter(|sent| *sent > 0.0).map(|sent| again / sent),
        needless: words.figure_after("dsack_dups"),
        response: control.as_deref().and_then(response),
        control,
        ..Loss::default()
    }
}

/// The number at the beginning of a text.
fn leading(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// A number with K, M or G of iproute2, which are decimal there.
fn scaled(text: &str) -> Option<f64> {
    let factor = match text.chars().last()? {
        'K' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        _ => return text.parse().ok(),
    };
    Some(text[..text.len() - 1].parse::<f64>().ok()? * factor)
}
