//! What a plan says in figures, before anything is built: rates, delays, room, and what cannot be.
//!
//! Left out: the elements (`build`), and what a whole path holds at most (`outline`).

use std::time::Duration;

use super::{Framing, Limit, Spread};
use crate::record::{JitterPlan, PathPlan};
use crate::theory::carrier::Carrier;
use crate::theory::link::LinkTechnology;
use crate::units::{BitRate, Bytes, Fraction, parse_span};

/// Packets that wait in a shaper, which has a queue of its own.
pub(super) const SIDE_QUEUE_PACKETS: u64 = 1000;
/// Least buffer of a link whose plan names none, in packets.
const BUFFER_PACKETS_MIN: u64 = 100;
/// Packets are counted as full ones of Ethernet where a buffer's room is converted.
pub(super) const PACKET_BYTES: u64 = 1500;
/// Longest delay: the Earth to the Moon and back takes 2.6 s; longer ones are mistakes.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// A plan that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct PathProblem {
    /// The key, with the direction when it is that of one: `backward.loss`.
    pub key: String,
    /// The problem, and a value that would be right.
    pub reason: String,
}

pub(super) fn problem(key: &str, reason: impl ToString) -> PathProblem {
    PathProblem { key: key.to_owned(), reason: reason.to_string() }
}

/// Rate, delay and buffer of one direction of a path, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionFacts {
    /// Rate of the link's clock; absent where a trace, or nothing, limits it.
    pub rate: Option<BitRate>,
    /// Bytes of a packet that the link's rate counts.
    pub framing: Framing,
    /// One-way delay, jitter at its most.
    pub delay: Duration,
    /// Room before the link.
    pub buffer: Limit,
}

impl PathPlan {
    /// Rates, delays and buffers of the two directions.
    /// # Errors
    /// The first key that cannot be built, with the reason.
    pub fn direction_facts(&self) -> Result<[DirectionFacts; 2], PathProblem> {
        self.check_nesting()?;
        let plans = [self.direction(false), self.direction(true)];
        let delay = |index: usize| -> Result<Duration, PathProblem> {
            longest_delay(&plans[index]).map_err(|problem| self.placed(problem, index == 1))
        };
        let delays = [delay(0)?, delay(1)?];
        let rtt = delays[0] + delays[1];
        let facts = |index: usize| {
            let plan = &plans[index];
            let line = line_rate(plan)?;
            Ok(DirectionFacts {
                rate: line.map(|(rate, _)| rate),
                framing: line.map_or(Framing::ETHERNET, |(_, framing)| framing),
                delay: delays[index],
                buffer: buffer(plan, line.map(|(rate, _)| rate), rtt)?,
            })
        };
        let placed = |index: usize| {
            facts(index).map_err(|problem: PathProblem| self.placed(problem, index == 1))
        };
        Ok([placed(0)?, placed(1)?])
    }

    fn check_nesting(&self) -> Result<(), PathProblem> {
        for (name, direction) in [("forward", &self.forward), ("backward", &self.backward)] {
            let Some(direction) = direction else { continue };
            if direction.forward.is_some() || direction.backward.is_some() {
                return Err(problem(name, "a direction has no directions of its own"));
            }
            if direction.seed.is_some() {
                return Err(problem(&format!("{name}.seed"), "the seed belongs to the whole path"));
            }
            if direction.duplex_mismatch.is_some() {
                let reason = "it belongs to the whole path";
                return Err(problem(&format!("{name}.duplex_mismatch"), reason));
            }
            if direction.emulator.is_some() {
                let reason = "one emulator carries the whole path";
                return Err(problem(&format!("{name}.emulator"), reason));
            }
        }
        Ok(())
    }

    /// Names the direction where the plan has keys for it.
    pub(super) fn placed(&self, mut problem: PathProblem, backward: bool) -> PathProblem {
        let (name, own) =
            if backward { ("backward", &self.backward) } else { ("forward", &self.forward) };
        if own.is_some() {
            problem.key = format!("{name}.{}", problem.key);
        }
        problem
    }
}

pub(super) fn parse_rate(key: &str, text: &str) -> Result<BitRate, PathProblem> {
    let rate: BitRate = text.parse().map_err(|error| problem(key, error))?;
    if rate.bits_per_sec() == 0 {
        return Err(problem(key, "a rate of 0 carries nothing; leave the key out for no limit"));
    }
    Ok(rate)
}

pub(super) fn parse_delay(key: &str, text: &str) -> Result<Duration, PathProblem> {
    let span = parse_span(text).map_err(|error| problem(key, error))?;
    if span > DELAY_MAX {
        let reason = format!("{text} is above {} s", DELAY_MAX.as_secs());
        return Err(problem(key, reason));
    }
    Ok(span)
}

pub(super) fn parse_time(key: &str, text: &str) -> Result<Duration, PathProblem> {
    parse_span(text).map_err(|error| problem(key, error))
}

pub(super) fn parse_share(key: &str, text: &str) -> Result<f64, PathProblem> {
    text.parse().map(Fraction::as_f64).map_err(|error| problem(key, error))
}

/// Rate and framing of the link; `None` where nothing or a trace limits.
fn line_rate(plan: &PathPlan) -> Result<Option<(BitRate, Framing)>, PathProblem> {
    let lines = [
        ("link", plan.link.is_some()),
        ("rate", plan.rate.is_some()),
        ("trace", plan.trace.is_some()),
        ("trunk", !plan.trunk.is_empty()),
    ];
    let mut set = lines.iter().filter(|(_, set)| *set).map(|(key, _)| *key);
    let first = set.next();
    if let (Some(first), Some(second)) = (first, set.next()) {
        return Err(problem(second, format!("there is `{first}` already; only one of them")));
    }
    if let Some(text) = &plan.rate {
        return with_carrier(LinkTechnology::Ethernet(parse_rate("rate", text)?), plan).map(Some);
    }
    if plan.link.is_some() {
        let (link, _) = named_line(plan)?.expect("the plan names a link");
        return with_carrier(link, plan).map(Some);
    }
    if let Some(text) = plan.trunk.first() {
        return Ok(Some((parse_rate("trunk", text)?, Framing::ETHERNET)));
    }
    if plan.carrier.is_some() {
        return Err(problem("carrier", "it needs a `link` that it runs on"));
    }
    Ok(None)
}

fn with_carrier(link: LinkTechnology, plan: &PathPlan) -> Result<(BitRate, Framing), PathProblem> {
    let carrier = carrier(link, plan)?;
    let found = Framing::from_link(link, carrier).filter(|(rate, _)| rate.bits_per_sec() > 0);
    found.ok_or_else(|| {
        let reason = format!("{} does not run on {link} here", carrier.name());
        problem(if plan.carrier.is_some() { "carrier" } else { "link" }, reason)
    })
}

fn longest_delay(plan: &PathPlan) -> Result<Duration, PathProblem> {
    let mut sum = Duration::ZERO;
    if let Some(text) = &plan.delay {
        sum += parse_delay("delay", text)?;
    }
    for step in &plan.delay_steps {
        sum = sum.max(parse_delay("delay_steps.delay", &step.delay)?);
    }
    if let Some(text) = &plan.batch {
        sum += parse_delay("batch", text)?;
    }
    if let Some(jitter) = &plan.jitter {
        sum += match spread(jitter)? {
            Spread::Uniform { most } => most,
            // Beyond 20 means lies 2e-9 of an exponential.
            Spread::Exponential { mean } => mean * 20,
            Spread::Some { extra, .. } => extra,
        };
    }
    if let Some(reorder) = &plan.reorder {
        sum += parse_delay("reorder.extra", &reorder.extra)?;
    }
    Ok(sum)
}

pub(super) fn spread(jitter: &JitterPlan) -> Result<Spread, PathProblem> {
    match (&jitter.most, &jitter.mean) {
        (Some(most), None) => Ok(Spread::Uniform { most: parse_delay("jitter.most", most)? }),
        (None, Some(mean)) => Ok(Spread::Exponential { mean: parse_delay("jitter.mean", mean)? }),
        _ => Err(problem("jitter", "it needs one of `most` (even) and `mean` (exponential)")),
    }
}

/// Room before the link.
fn buffer(plan: &PathPlan, rate: Option<BitRate>, rtt: Duration) -> Result<Limit, PathProblem> {
    let too_large = || problem("buffer", "it does not fit into memory");
    let of_span = |span| {
        let rate = rate.ok_or_else(|| problem("buffer", "a time or BDP needs a rate"))?;
        rate.bytes_in(span).map(Bytes::count).ok_or_else(too_large)
    };
    let Some(text) = plan.buffer.as_deref().map(str::trim) else {
        let Some(rate) = rate else { return Ok(Limit::Packets(SIDE_QUEUE_PACKETS)) };
        let product = rate.bytes_in(rtt).ok_or_else(too_large)?.count();
        return Ok(Limit::Bytes(product.max(BUFFER_PACKETS_MIN * PACKET_BYTES)));
    };
    let accepted = "write for example 250 kB, 100 packets, 20 ms or 1 BDP";
    let number = |unit: &str| text.strip_suffix(unit).map(str::trim);
    if let Some(count) = number("packets").or_else(|| number("packet")) {
        let count = count.parse::<u64>().map_err(|_| problem("buffer", accepted))?;
        return Ok(Limit::Packets(count));
    }
    if let Some(count) = number("BDP").or_else(|| number("bdp")) {
        let count: f64 = count.parse().map_err(|_| problem("buffer", accepted))?;
        if !(0.0..=1000.0).contains(&count) {
            return Err(problem("buffer", "more than 1000 BDP, or less than none"));
        }
        if rtt.is_zero() {
            return Err(problem("buffer", "a BDP needs a delay; without one it is 0 bytes"));
        }
        return Ok(Limit::Bytes(of_span(rtt.mul_f64(count))?));
    }
    if text.ends_with('s') && !text.ends_with("bytes") {
        return Ok(Limit::Bytes(of_span(parse_delay("buffer", text)?)?));
    }
    let bytes: Bytes = text.parse().map_err(|_| problem("buffer", accepted))?;
    Ok(Limit::Bytes(bytes.count()))
}

/// Short names of a carrier at the end of a link's name: `oc12-atm`.
const SUFFIXES: [(&str, &str); 4] =
    [("-atm", "aal5-llcsnap"), ("-pos", "pos"), ("-hdlc", "hdlc"), ("-ppp", "hdlc")];

/// The plan's link and its link-layer protocol; an Ethernet link where it gives a rate alone.
pub(super) fn named_line(
    plan: &PathPlan,
) -> Result<Option<(LinkTechnology, Carrier)>, PathProblem> {
    let link = match (&plan.link, &plan.rate) {
        (Some(text), _) => link_of(text)?,
        (None, Some(text)) => LinkTechnology::Ethernet(parse_rate("rate", text)?),
        (None, None) => return Ok(None),
    };
    Ok(Some((link, carrier(link, plan)?)))
}

/// Carrier of packets on a link: from the plan's key, else from the suffix of the link's name, else
/// the usual one.
pub(super) fn carrier(link: LinkTechnology, plan: &PathPlan) -> Result<Carrier, PathProblem> {
    let short = plan.link.as_deref().and_then(|text| Some(split_carrier(text)?.1));
    match plan.carrier.as_deref().or(short) {
        Some(text) => text.parse().map_err(|error| problem("carrier", error)),
        None => Ok(link.default_carrier()),
    }
}

fn link_of(text: &str) -> Result<LinkTechnology, PathProblem> {
    let whole = text.parse::<LinkTechnology>();
    let short = || split_carrier(text).and_then(|(name, _)| name.parse().ok());
    whole.or_else(|error| short().ok_or_else(|| problem("link", error)))
}

/// A link by its name, with the carrier that the name ends in: `oc12` and none, `oc12-atm` and
/// AAL5 with LLC/SNAP. None where it is no link.
pub fn link_and_carrier(text: &str) -> Option<(LinkTechnology, Option<Carrier>)> {
    let link = link_of(text).ok()?;
    let short = text.parse::<LinkTechnology>().is_err().then(|| split_carrier(text)).flatten();
    Some((link, short.and_then(|(_, carrier)| carrier.parse().ok())))
}

/// A link's name and the carrier that it ends in.
fn split_carrier(text: &str) -> Option<(&str, &'static str)> {
    let text = text.trim();
    let (suffix, carrier) = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    Some((&text[..text.len() - suffix.len()], carrier))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_plan(text: &str) -> PathPlan {
        crate::tree::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn an_oc_12_with_cells_has_its_payload_rate_and_a_bandwidth_delay_product_of_buffer() {
        let plan = parse_plan("link = \"oc12\"\ncarrier = \"aal5-llcsnap\"\ndelay = \"22.5 ms\"");
        let [there, back] = plan.direction_facts().expect("sound");
        assert_eq!(there, back);
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(599_040_000)));
        // 599.04 Mbit/s x 45 ms / 8 = 3,369,600 bytes.
        assert_eq!(there.buffer, Limit::Bytes(3_369_600));
        // Half of that under way, all of it waiting.
        let [load, _] = plan.direction_loads(9180).expect("sound");
        assert_eq!(
            load.rate.and_then(|rate| rate.bytes_in(load.delay)),
            Some(Bytes::new(1_684_800))
        );
        assert_eq!(load.queue_bytes, 3_369_600);
    }

    #[test]
    fn a_direction_overrides_the_keys_of_both() {
        let plan = parse_plan(
            "rate = \"10M\"\ndelay = \"5 ms\"\nloss = \"1%\"\n\
             backward = { rate = \"1M\", loss = \"0\", buffer = \"10 packets\" }",
        );
        let [there, back] = plan.direction_facts().expect("sound");
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(10_000_000)));
        assert_eq!(back.rate, Some(BitRate::from_bits_per_sec(1_000_000)));
        assert_eq!((there.delay, back.delay), (back.delay, Duration::from_millis(5)));
        assert_eq!(back.buffer, Limit::Packets(10));
        assert_eq!(plan.direction(true).loss.as_deref(), Some("0"));
    }
}
