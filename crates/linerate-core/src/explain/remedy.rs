//! What to type, at which end, computed from this path.
//!
//! Buffers are twice the bandwidth-delay product, because Linux offers about half of tcp_rmem as a
//! window (tcp_adv_win_scale, tcp(7)) and keeps bookkeeping beside the payload in tcp_wmem.

use super::evidence::{Evidence, HostEvidence};
use crate::record::{At, Cause, Confidence, RemedyLine, Verdict};
use crate::units::BitRate;

/// The rate that buffers are computed for where nothing tells how much the path carries.
const GOAL_BPS: f64 = 1e9;

/// The rate that remedies of windows aim at, and whether it is known rather than supposed.
pub(super) fn goal_bps(evidence: &Evidence) -> (f64, bool) {
    let speeds = [evidence.sender.speed_bps, evidence.receiver.speed_bps, evidence.stated_bps];
    let link = speeds.into_iter().flatten().reduce(f64::min);
    let capacity = evidence.capacity_bps.or(link);
    let far = evidence.steady_bps().unwrap_or(0.0) * 2.0;
    (capacity.unwrap_or_else(|| GOAL_BPS.max(far)), capacity.is_some())
}

/// A buffer for twice the BDP at the goal, rounded up to whole MiB.
fn needed_bytes(evidence: &Evidence) -> Option<(u64, f64)> {
    let (bps, _) = goal_bps(evidence);
    let needed = 2.0 * evidence.bdp_bytes(bps)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 stays in the range"
    )]
    let mib = (needed / 1_048_576.0).ceil().clamp(1.0, 2047.0) as u64;
    Some((mib << 20, bps))
}

fn buffer_lines(
    evidence: &Evidence,
    host: &HostEvidence,
    at: At,
    name: &str,
    core: &str,
) -> Vec<RemedyLine> {
    let Some((needed, bps)) = needed_bytes(evidence) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(asked) = evidence.asked.window_bytes.or(host.buffer_asked_bytes) {
        let text = format!(
            "leave out -w (--window): it fixes the buffer at {asked} bytes and turns the kernel's \
             own tuning off"
        );
        lines.push(RemedyLine::advice(At::Test, text));
        if host.core_max_bytes.is_some_and(|most| most < needed) {
            let text = format!("sysctl -w net.core.{core}={needed}  # only to keep -w");
            lines.push(RemedyLine::command(at, text));
        }
    }
    let [least, default, most] = host.tcp_mem_bytes.unwrap_or([4096, 131_072, 0]);
    if most < needed {
        let text = format!("sysctl -w net.ipv4.{name}=\"{least} {default} {needed}\"");
        lines.push(RemedyLine::command(at, text));
        let has = if most > 0 { format!(", and has {most}") } else { String::new() };
        let rate = BitRate::from_nearest(bps).unwrap_or_default();
        let why = format!("{rate} over this round trip needs {needed} bytes there{has}");
        lines.push(RemedyLine::advice(at, why));
    }
    lines
}

/// For a receive window.
pub(super) fn receive_window(evidence: &Evidence) -> Vec<RemedyLine> {
    let ends = [(&evidence.sender, At::Sender), (&evidence.receiver, At::Receiver)];
    let off = ends.into_iter().find(|(host, _)| host.window_scaling == Some(false));
    if let Some((_, at)) = off {
        return vec![RemedyLine::command(at, "sysctl -w net.ipv4.tcp_window_scaling=1")];
    }
    if evidence.scale_agreed() == Some(false) {
        let text = "let the device keep the window scale option of SYN segments (RFC 7323 §2.2)";
        return vec![RemedyLine::advice(At::Path, text)];
    }
    buffer_lines(evidence, &evidence.receiver, At::Receiver, "tcp_rmem", "rmem_max")
}

/// For a send buffer.
pub(super) fn send_buffer(evidence: &Evidence) -> Vec<RemedyLine> {
    buffer_lines(evidence, &evidence.sender, At::Sender, "tcp_wmem", "wmem_max")
}

/// For a cause that was found by trying.
pub(super) fn for_cause(cause: Cause, evidence: &Evidence) -> Vec<RemedyLine> {
    match cause {
        Cause::ReceiveWindow => receive_window(evidence),
        Cause::SendBuffer => send_buffer(evidence),
        Cause::RandomLoss => random_loss(),
        Cause::SmallBuffer => bursts(),
        Cause::MtuBlackHole => black_hole(),
        Cause::ReceivingHost => for_host(At::Receiver),
        Cause::SendingHost => for_host(At::Sender),
        Cause::Outages => outages(),
        Cause::Reordering => reordering(),
        _ => Vec::new(),
    }
}

/// For losses that no load makes.
pub(super) fn random_loss() -> Vec<RemedyLine> {
    let text =
        "find what damages packets: counters of FCS and FEC errors hop by hop, optics, radio";
    vec![
        RemedyLine::advice(At::Path, text),
        RemedyLine::command(At::Sender, "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
    ]
}

/// For bursts that a queue has no room for.
pub(super) fn bursts() -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(At::Sender, "sysctl -w net.core.default_qdisc=fq"),
        RemedyLine::command(At::Sender, "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
    ]
}

/// For a meter that lets `bps` of payload through, in IP packets of `ip_bps`.
pub(super) fn policer(evidence: &Evidence, bps: f64, ip_bps: f64) -> Vec<RemedyLine> {
    let interface = evidence.sender.interface.as_deref().unwrap_or("DEV");
    let rate = tc_rate(bps * 0.95);
    let pace = format!("tc qdisc replace dev {interface} root fq maxrate {rate}");
    let needs = evidence.bdp_bytes(ip_bps).unwrap_or(0.0);
    let asks = format!(
        "ask for the contract's rate and burst: a burst of {needs:.0} bytes lets one flow fill it"
    );
    vec![RemedyLine::command(At::Sender, pace), RemedyLine::advice(At::Path, asks)]
}

/// For a host that can do no more.
pub(super) fn for_host(at: At) -> Vec<RemedyLine> {
    let lines = ["cpupower frequency-set -g performance", "linerate doctor"];
    let mut lines: Vec<_> = lines.map(|text| RemedyLine::command(at, text)).into();
    let text = "give the program a CPU of its own, apart from the one of the card's interrupts; \
                lift its CPU quota; use larger reads and writes, more streams (-P)";
    lines.push(RemedyLine::advice(at, text));
    lines
}

/// For an application that reads late.
pub(super) fn reader() -> Vec<RemedyLine> {
    let text = "let the receiving application read sooner or more at once";
    vec![RemedyLine::advice(At::Receiver, text)]
}

/// For a transfer that is all start.
pub(super) fn start_up() -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(At::Sender, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0"),
        RemedyLine::command(At::Sender, "ip tcp_metrics flush"),
        RemedyLine::advice(At::Test, "test longer (-t 30), or leave the start out (-O 3)"),
        RemedyLine::advice(At::Sender, "keep connections open; move more in each"),
    ]
}

/// For a queueing discipline of the sender's own.
pub(super) fn own_shaper(evidence: &Evidence) -> Vec<RemedyLine> {
    let interface = evidence.sender.interface.as_deref().unwrap_or("DEV");
    vec![RemedyLine::command(At::Sender, format!("tc qdisc replace dev {interface} root fq_codel"))]
}

/// For packets that vanish above a size.
pub(super) fn black_hole() -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(At::Sender, "sysctl -w net.ipv4.tcp_mtu_probing=1"),
        RemedyLine::advice(
            At::Path,
            "let ICMP type 3 code 4 and ICMPv6 type 2 pass, or clamp the MSS of SYN segments to \
             the smallest MTU less 40 (IPv6 less 60)",
        ),
    ]
}

/// Remedy for interruptions of the path.
pub(super) fn outages() -> Vec<RemedyLine> {
    let text = "find what interrupts the path: roaming, power saving, a route that flaps, a cable";
    vec![RemedyLine::advice(At::Path, text)]
}

/// For a way back that is too thin.
pub(super) fn ack_path() -> Vec<RemedyLine> {
    let text =
        "look at the way back of the data's path: its rate, its queue, and what else fills it";
    vec![RemedyLine::advice(At::Path, text)]
}

/// Remedy for reordering on the path.
pub(super) fn reordering() -> Vec<RemedyLine> {
    let text = "share load over paths by flow (addresses and ports), not by packet";
    vec![RemedyLine::advice(At::Path, text)]
}

/// For a queue that stands: a shaper below the bottleneck's rate moves it to where it is managed. A
/// figure is given only where the bottleneck's rate is known.
pub(super) fn standing_queue(evidence: &Evidence, verdict: &Verdict) -> Vec<RemedyLine> {
    let full = matches!(verdict.cause, Some(Cause::Link | Cause::LinkFallback | Cause::Shaper))
        && verdict.confidence >= Some(Confidence::Medium);
    let payload = evidence.steady_bps().filter(|_| full);
    let wire = payload.map(|bps| bps / PAYLOAD_OF_WIRE);
    let rate = match wire.or(evidence.capacity_bps) {
        Some(bps) => format!("{} (0.95 of its rate)", tc_rate(0.95 * bps)),
        None => "0.95 of its rate, once that is known".to_owned(),
    };
    let text = format!("at the bottleneck: CAKE or FQ-CoDel, shaped to {rate}");
    vec![RemedyLine::advice(At::Path, text)]
}

/// Payload over frame of a full segment of 1500 bytes with timestamps.
const PAYLOAD_OF_WIRE: f64 = 1448.0 / 1514.0;

/// A rate as tc(8) reads it, in as many digits as a measured rate has: `53.2kbit`, `93542kbit`.
pub(super) fn tc_rate(bps: f64) -> String {
    let kbit = bps / 1e3;
    if kbit < 1e3 { format!("{kbit:.1}kbit") } else { format!("{kbit:.0}kbit") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::evidence::{RateEvidence, RoundTrips};
    use crate::record::Outcome;

    fn filled(bps: f64) -> Evidence {
        Evidence {
            rate: RateEvidence { steady_bps: Some(bps), ..RateEvidence::default() },
            rtt: RoundTrips { base_s: Some(0.6), ..RoundTrips::default() },
            ..Evidence::default()
        }
    }

    #[test]
    fn a_rate_to_type_has_the_digits_that_were_measured() {
        let link = Verdict {
            cause: Some(Cause::Link),
            confidence: Some(Confidence::Medium),
            ..Verdict::of(None, Outcome::AtCeiling)
        };
        // 53,550 of payload in segments of 1448 bytes are 53,550 × 1514 / 1448 = 55,990.8 in
        // frames; 0.95 of that is 53,191.3. So with 489,650 and 794,750.
        let rates = [(53.55e3, "53.2kbit"), (489.65e3, "486.4kbit"), (794.75e3, "789.4kbit")];
        for (payload, told) in rates {
            let text = &standing_queue(&filled(payload), &link)[0].text;
            assert!(text.contains(&format!("shaped to {told} ")), "{text}");
        }
        let open = Verdict::of(None, Outcome::Undetermined);
        let text = &standing_queue(&filled(53.55e3), &open)[0].text;
        assert!(text.contains("0.95 of its rate") && !text.contains("bit"), "{text}");
        // tcp_rmem for 831 kbit/s: nothing is rounded to whole Mbit/s.
        let evidence = Evidence { capacity_bps: Some(831e3), ..filled(400e3) };
        let why = receive_window(&evidence).pop().expect("a reason").text;
        assert!(why.starts_with("831 kbit/s over this round trip needs "), "{why}");
    }
}
