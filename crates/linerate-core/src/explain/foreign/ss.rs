//! `ss -ti` of iproute2: a line of words for each socket, one moment and the sums until then.

use super::super::evidence::{Agreed, Evidence, Loss, Rate, RoundTrips, Syn, Windows};
use super::super::of_record::response;
use super::{never_seen, small};

/// Sockets that sent anything.
pub(super) fn read(text: &str) -> Vec<Evidence> {
    let lines = text.lines().map(str::trim);
    let sockets = lines.filter(|line| line.contains(" rtt:") && line.contains(" cwnd:"));
    sockets.filter_map(socket).collect()
}

fn socket(line: &str) -> Option<Evidence> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let text =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let value = |name: &str| text(name)?.split(['/', 'm', '(']).next()?.parse::<f64>().ok();
    let rate = |name: &str| {
        let place = words.iter().position(|word| *word == name)?;
        words.get(place + 1)?.strip_suffix("bps").and_then(scaled)
    };
    let mss = value("mss")?;
    let delivery = rate("delivery_rate");
    let options = Agreed {
        timestamps: words.contains(&"ts"),
        sack: words.contains(&"sack"),
        window_scale: text("wscale").is_some(),
    };
    let again = text("retrans").and_then(|it| it.rsplit('/').next()?.parse::<f64>().ok());
    let sent = value("data_segs_out").or_else(|| value("segs_out"));
    let control = words.iter().find(|word| response(word).is_some()).map(|it| (*it).to_owned());
    let limited = |name: &str| Some(value(name)? / value("busy").filter(|busy| *busy > 0.0)?);
    Some(Evidence {
        flows: 1,
        rate: Rate {
            mean_bps: delivery,
            steady_bps: delivery,
            delivery_bps: delivery,
            bytes: value("bytes_acked"),
            ..Rate::default()
        },
        rtt: RoundTrips {
            base_s: value("minrtt").map(|ms| ms / 1e3),
            loaded_s: value("rtt").map(|ms| ms / 1e3),
            ..RoundTrips::default()
        },
        window: Windows {
            offered_bytes: value("snd_wnd"),
            cwnd_bytes: value("cwnd").map(|segments| segments * mss),
            flight_bytes: value("unacked").map(|segments| segments * mss),
            left_slow_start: Some(text("ssthresh").is_some()),
            unsent_bytes: value("notsent"),
            window_limited: limited("rwnd_limited"),
            buffer_limited: limited("sndbuf_limited"),
            application_limited: Some(f64::from(u8::from(words.contains(&"app_limited")))),
            ..Windows::default()
        },
        loss: Loss {
            retransmits: again.or(Some(0.0)),
            ratio: sent.filter(|sent| *sent > 0.0).map(|sent| again.unwrap_or(0.0) / sent),
            needless: value("dsack_dups"),
            response: control.as_deref().and_then(response),
            control,
            ..Loss::default()
        },
        syn: Syn { sender_agreed: Some(options), ..Syn::default() },
        mss_bytes: small(mss),
        packet_bytes: value("pmtu").and_then(small),
        unseen: never_seen(&["CPU of both hosts", "the other end"]),
        ..Evidence::default()
    })
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
