//! What was measured in a few words, and what it is of its ceiling.

use linerate_core::record::{
    CaveatCode, Ceiling, Direction, MetWay, MetricId, NatMeeting, PingPlan, Plan, Record, Stat,
    TcpDirections, UdpPlan,
};
use linerate_core::time::decimals_of_ms;

use crate::device::limit as device;
use crate::one_way;
use crate::{delay, number, words};

/// The measured result in words, by the kind of the test.
pub(super) fn measured_result(record: &Record) -> String {
    match &record.plan {
        // Streams of several classes are there for what they do to the delay.
        Plan::Tcp(plan) if !plan.test.dscps.is_empty() => {
            let rates = goodput_text(record, plan.test.directions);
            match delay::added_under_load(record) {
                Some(added) => format!("{added}, {rates}"),
                None => rates,
            }
        }
        Plan::Tcp(plan) => goodput_text(record, plan.test.directions),
        Plan::Udp(plan) => datagrams(record, plan),
        Plan::Test(_) => goodput_text(record, TcpDirections::Both),
        // They have headlines of their own.
        Plan::Compare(_) | Plan::Trace(_) => String::new(),
        Plan::Ping(plan) => ping_result(record, plan),
        Plan::Simulate(_) => {
            let goodput = record.summary_value(MetricId::Goodput, Stat::Value, Some(Direction::Up));
            goodput.map_or_else(
                || "nothing was simulated".to_owned(),
                |bps| format!("{} by the model", number::measured_rate(bps)),
            )
        }
        Plan::Bench(plan) => device::result(record, plan),
    }
}

/// The directions of a flow test; none for other measurements.
pub(super) fn directions(plan: &Plan) -> &'static [Direction] {
    match plan {
        Plan::Tcp(plan) => words::each_direction(plan.test.directions),
        Plan::Udp(plan) => words::each_direction(plan.test.directions),
        Plan::Simulate(_) => &[Direction::Up],
        Plan::Test(_) => words::each_direction(TcpDirections::Both),
        Plan::Ping(_) | Plan::Bench(_) | Plan::Compare(_) | Plan::Trace(_) => &[],
    }
}

/// The other end, as the user knows it.
fn other_end_name(record: &Record) -> &str {
    record.plan.host_names().next().unwrap_or_default()
}

fn goodput_text(record: &Record, ways: TcpDirections) -> String {
    let host = other_end_name(record);
    let each = words::each_direction(ways).iter().filter_map(|&way| {
        let bps = record.summary_value(MetricId::Goodput, Stat::Value, Some(way))?;
        Some((bps, way))
    });
    let each: Vec<(f64, Direction)> = each.collect();
    if !each.is_empty() {
        return rates_with_host(host, &each);
    }
    let one_sided = record.caveats.iter().any(|caveat| caveat.code == CaveatCode::OneSided);
    let sent = record.summary_value(MetricId::SendRate, Stat::Value, Some(Direction::Up));
    match sent.filter(|_| one_sided) {
        Some(bps) => {
            format!("{} sent to {host}, what arrived is not known", number::measured_rate(bps))
        }
        None => format!("nothing was measured with {host}"),
    }
}

/// `94.10 Mbit/s to b`, and of both directions `94.10 Mbit/s up, 93.80 Mbit/s down with b`.
fn rates_with_host(host: &str, rates: &[(f64, Direction)]) -> String {
    if let [(bps, way)] = rates {
        return format!("{} {} {host}", number::measured_rate(*bps), toward(*way));
    }
    let each = rates
        .iter()
        .map(|(bps, way)| format!("{} {}", number::measured_rate(*bps), words::up_or_down(*way)));
    format!("{} with {host}", each.collect::<Vec<String>>().join(", "))
}

/// `to` or `from` the other end.
pub(super) const fn toward(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "to",
        Direction::Down => "from",
    }
}

fn datagrams(record: &Record, plan: &UdpPlan) -> String {
    let host = other_end_name(record);
    if plan.test.search.is_some() {
        let Some((found, best)) =
            record.search.as_ref().and_then(|search| Some((search, search.best_interval()?)))
        else {
            return format!("no sub-interval was measured with {host}");
        };
        let unfinished = [CaveatCode::SearchUnfinished, CaveatCode::PaceNotKept];
        let more = record.caveats.iter().any(|caveat| unfinished.contains(&caveat.code));
        let more = if more { " or more" } else { "" };
        let rate = number::measured_rate(best.ip_bps);
        return format!("{rate}{more} of IP packets {} {host}", toward(found.direction));
    }
    let rates = goodput_text(record, plan.test.directions);
    let losses = words::each_direction(plan.test.directions).iter().filter_map(|&way| {
        let count = |metric| record.summary_value(metric, Stat::Value, Some(way));
        let ratio = count(MetricId::DatagramLossRatio)?;
        let received = count(MetricId::DatagramsReceived);
        let all = received.map(|received| received + count(MetricId::DatagramsLost).unwrap_or(0.0));
        Some(loss_text(ratio, all))
    });
    let losses: Vec<String> = losses.collect();
    match losses.is_empty() {
        true => rates,
        false => format!("{rates}, {} lost", words::listed(&losses)),
    }
}

/// A loss with no more digits than its count has: none, or some of few, as it was counted.
fn loss_text(ratio: f64, all: Option<f64>) -> String {
    match all {
        Some(all) if ratio == 0.0 => format!("0 of {all:.0}"),
        Some(all) if all < 1000.0 => format!("{:.0} of {all:.0}", ratio * all),
        _ => number::percent(ratio),
    }
}

/// The typical round trip of each size, and how many of all probes were lost.
fn ping_result(record: &Record, plan: &PingPlan) -> String {
    let at = |metric, stat, size| {
        // Another size's figure is none of this one.
        let only =
            || record.summary_value(metric, stat, None).filter(|_| plan.sizes_bytes.len() == 1);
        record.value_at(metric, stat, size).or_else(only)
    };
    let step = record.ends.first().and_then(|end| end.clock_tick_ns).unwrap_or(1.0);
    let sizes = plan.sizes_bytes.as_slice();
    let typical = sizes.iter().filter_map(|&size| {
        let ns = record.typical_round_trip(Some(size))?.value;
        let ms = number::ms_of_clock(ns, decimals_of_ms(step));
        Some((ms, if sizes.len() > 1 { format!(" of {size} bytes") } else { String::new() }))
    });
    let typical: Vec<(String, String)> = typical.collect();
    let all = |metric| {
        let counts = sizes.iter().filter_map(|&size| at(metric, Stat::Value, size));
        counts.reduce(|one, other| one + other)
    };
    let lost = all(MetricId::Sent).map_or_else(String::new, |sent| {
        let lost = sent - all(MetricId::Received).unwrap_or(0.0);
        format!(", {lost:.0} of {sent:.0} lost")
    });
    let host = nat_peer_text(record, plan).unwrap_or_else(|| other_end_name(record).to_owned());
    let clock = record.typical_round_trip(sizes.first().copied()).map_or("", words::of_clock);
    match typical.as_slice() {
        [] => format!("no answer from {host}{lost}"),
        [(ms, of)] => {
            format!("RTT {ms} ms{clock} to {host}{of}{}{lost}", each_way(record, plan))
        }
        [(first, of), .., (last, of_last)] => {
            let of_last = of_last.trim_end_matches(" bytes");
            format!("RTT {first} ms{clock} to {host}{of} and {last} ms{of_last}{lost}")
        }
    }
}

/// Whom a measurement is of, where both ends are behind NAT.
fn nat_peer_text(record: &Record, plan: &PingPlan) -> Option<String> {
    let NatMeeting { at, way, .. } = plan.stamp?.met?;
    Some(match way {
        MetWay::Hole => format!("{}, through a punched hole", other_end_name(record)),
        MetWay::Relay => format!("a host behind NAT, passed on by {}", at.ip()),
    })
}

/// The typical delays of both directions, where a size has them.
fn each_way(record: &Record, plan: &PingPlan) -> String {
    let step = record.ends.first().and_then(|end| end.clock_tick_ns).unwrap_or(1.0);
    let size = plan.sizes_bytes.first();
    size.map_or_else(String::new, |&size| one_way::each_way(record, size, decimals_of_ms(step)))
}

/// The best rates of a test of several parts.
pub(super) fn of_best(best: &[(&Record, Direction)]) -> Option<String> {
    let host = best.iter().find_map(|(part, _)| match &part.plan {
        Plan::Tcp(plan) => Some(plan.server.host.as_str()),
        _ => None,
    })?;
    let each = best.iter().filter_map(|(part, way)| {
        Some((part.summary_value(MetricId::Goodput, Stat::Value, Some(*way))?, *way))
    });
    Some(rates_with_host(host, &each.collect::<Vec<_>>()))
}

/// The typical round trip of a ping's first size.
pub(super) fn round_trip(record: &Record) -> Option<String> {
    let Plan::Ping(plan) = &record.plan else { return None };
    let row = record.typical_round_trip(Some(*plan.sizes_bytes.first()?))?;
    Some(format!("RTT {} ms{}", number::ms_of_clock(row.value, 6), words::of_clock(row)))
}

/// The share of the ceiling, the smaller one of both directions, and the same in words; where a
/// ceiling is not known, what `guessed` says.
pub(super) fn ceiling(
    record: &Record,
    guessed: impl Fn(Direction) -> Option<String>,
) -> (Option<f64>, String) {
    let found = directions(&record.plan).iter().map(|&way| record.ceiling_of(way));
    let found: Vec<&Ceiling> = found.flatten().collect();
    let shares = found.iter().filter_map(|ceiling| ceiling.share);
    let least = shares.reduce(f64::min);
    let each = directions(&record.plan).iter().filter_map(|&way| {
        let ceiling = record.ceiling_of(way)?;
        let unknown = ceiling.no_link.is_none() && ceiling.value.is_none();
        let guessed = unknown.then(|| guessed(way)).flatten();
        guessed.or_else(|| of_ceiling(ceiling))
    });
    let each: Vec<String> = each.collect();
    let text = match each.as_slice() {
        [one, other] if one == other => one.clone(),
        each => each.join(" and "),
    };
    (least, text)
}

fn of_ceiling(ceiling: &Ceiling) -> Option<String> {
    if ceiling.no_link.is_some() {
        return Some("no ceiling (loopback)".to_owned());
    }
    let Some(value) = ceiling.value else { return Some("ceiling not known".to_owned()) };
    let bound = number::measured_rate(value);
    Some(match ceiling.share {
        Some(share) => format!("{} of the ceiling {bound}", number::percent(share)),
        None => format!("ceiling {bound}"),
    })
}
