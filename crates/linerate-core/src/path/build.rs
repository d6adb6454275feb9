//! From a plan to the two pipelines that it describes, and what they may need of memory.

use std::time::Duration;

use super::plan::{BucketPlan, CrossPlan, JitterPlan, PathPlan, QueuePlan};
use super::{
    Arrivals, Bernoulli, BitErrors, Bucket, BurstLoss, BurstLossSettings, CellLoss,
    CellLossSettings, Codel, CodelSettings, Corruption, CrossEnd, CrossSettings, CrossTraffic,
    Delay, Duplication, Element, FqCodel, Framing, Jitter, Limit, Link, ListedLoss, Medium,
    MtuLimit, Outages, PacketRate, Pipeline, Policer, Queue, Random, Red, RedSettings, Shaper,
    Spread, TailDrop, Trace, TraceLink, Trunk,
};
use crate::theory::link;
use crate::time::MonoTime;
use crate::units::{BitRate, Bytes, Fraction, parse_span};

/// Queues of policed and shaped traffic and of devices, which have no rate to fill: packets.
const SIDE_QUEUE_PACKETS: u64 = 1000;
/// The least room that a link has when the plan does not say.
const BUFFER_PACKETS_MIN: u64 = 100;
/// Packets are counted as full ones of Ethernet where a buffer's room is converted.
const PACKET_BYTES: u64 = 1500;
/// Longest delay: the Earth to the Moon and back takes 2.6 s; longer ones are mistakes.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// A plan that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct PathProblem {
    /// The key, with the direction when it is that of one: `backward.loss`.
    pub key: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

pub(super) fn problem(key: &str, reason: impl ToString) -> PathProblem {
    PathProblem { key: key.to_owned(), reason: reason.to_string() }
}

/// What a path is, in figures, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionFacts {
    /// Rate of the link's clock; absent where a trace, or nothing, limits it.
    pub rate: Option<BitRate>,
    /// What the link's rate counts.
    pub framing: Framing,
    /// One-way delay, jitter at its most.
    pub delay: Duration,
    /// Room before the link.
    pub buffer: Limit,
}

impl DirectionFacts {
    /// Bytes of packets that may be under way at once, at `rate_max` where no link limits them.
    pub fn bytes_max(&self, rate_max: BitRate) -> Option<u64> {
        let rate = self.rate.unwrap_or(rate_max);
        let flying = rate.bytes_in(self.delay)?.count();
        let waiting = match self.buffer {
            Limit::Bytes(bytes) => bytes,
            // A packet of an emulated device may be as long as IP lets it.
            Limit::Packets(packets) => packets.checked_mul(9216)?,
        };
        flying.checked_add(waiting)
    }
}

impl PathPlan {
    /// The pipelines of the two directions, whose schedules begin at `start`.
    /// # Errors
    /// The first key that cannot be built, with the reason.
    pub fn build(&self, start: MonoTime) -> Result<[Pipeline; 2], PathProblem> {
        let [there, back] = self.facts()?;
        let medium = Medium::default();
        let forward = Builder::new(self, false, &there, start, &medium).build();
        let backward = Builder::new(self, true, &back, start, &medium).build();
        Ok([
            forward.map_err(|problem| self.placed(problem, false))?,
            backward.map_err(|problem| self.placed(problem, true))?,
        ])
    }

    /// Rates, delays and buffers of the two directions.
    /// # Errors
    /// The first key that cannot be built, with the reason.
    pub fn facts(&self) -> Result<[DirectionFacts; 2], PathProblem> {
        self.check_nesting()?;
        let plans = [self.direction(false), self.direction(true)];
        let delay = |index: usize| -> Result<Duration, PathProblem> {
            longest_delay(&plans[index]).map_err(|problem| self.placed(problem, index == 1))
        };
        let delays = [delay(0)?, delay(1)?];
        let rtt = delays[0] + delays[1];
        let facts = |index: usize| {
            let plan = &plans[index];
            let line = line(plan)?;
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
        }
        Ok(())
    }

    /// Names the direction where the plan has keys for it.
    fn placed(&self, mut problem: PathProblem, backward: bool) -> PathProblem {
        let (name, own) =
            if backward { ("backward", &self.backward) } else { ("forward", &self.forward) };
        if own.is_some() {
            problem.key = format!("{name}.{}", problem.key);
        }
        problem
    }
}

pub(super) fn rate(key: &str, text: &str) -> Result<BitRate, PathProblem> {
    let rate: BitRate = text.parse().map_err(|error| problem(key, error))?;
    if rate.bits_per_sec() == 0 {
        return Err(problem(key, "a rate of 0 carries nothing; leave the key out for no limit"));
    }
    Ok(rate)
}

fn span(key: &str, text: &str) -> Result<Duration, PathProblem> {
    let span = parse_span(text).map_err(|error| problem(key, error))?;
    if span > DELAY_MAX {
        let reason = format!("{text} is above {} s", DELAY_MAX.as_secs());
        return Err(problem(key, reason));
    }
    Ok(span)
}

fn time(key: &str, text: &str) -> Result<Duration, PathProblem> {
    parse_span(text).map_err(|error| problem(key, error))
}

fn share(key: &str, text: &str) -> Result<f64, PathProblem> {
    text.parse().map(Fraction::value).map_err(|error| problem(key, error))
}

/// Rate and framing of the link; `None` where nothing or a trace limits.
fn line(plan: &PathPlan) -> Result<Option<(BitRate, Framing)>, PathProblem> {
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
        return with_carrier(link::Link::Ethernet(rate("rate", text)?), plan).map(Some);
    }
    if plan.link.is_some() {
        let (link, _) = super::outline::named_line(plan)?.expect("the plan names a link");
        return with_carrier(link, plan).map(Some);
    }
    if let Some(text) = plan.trunk.first() {
        return Ok(Some((rate("trunk", text)?, Framing::ETHERNET)));
    }
    if plan.carrier.is_some() {
        return Err(problem("carrier", "it needs a `link` that it runs on"));
    }
    Ok(None)
}

fn with_carrier(link: link::Link, plan: &PathPlan) -> Result<(BitRate, Framing), PathProblem> {
    let carrier = super::outline::carrier(link, plan)?;
    let found = Framing::of(link, carrier).filter(|(rate, _)| rate.bits_per_sec() > 0);
    found.ok_or_else(|| {
        let reason = format!("{} does not run on {link} here", carrier.name());
        problem(if plan.carrier.is_some() { "carrier" } else { "link" }, reason)
    })
}

fn longest_delay(plan: &PathPlan) -> Result<Duration, PathProblem> {
    let mut sum = Duration::ZERO;
    if let Some(text) = &plan.delay {
        sum += span("delay", text)?;
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
        sum += span("reorder.extra", &reorder.extra)?;
    }
    Ok(sum)
}

fn spread(jitter: &JitterPlan) -> Result<Spread, PathProblem> {
    match (&jitter.most, &jitter.mean) {
        (Some(most), None) => Ok(Spread::Uniform { most: span("jitter.most", most)? }),
        (None, Some(mean)) => Ok(Spread::Exponential { mean: span("jitter.mean", mean)? }),
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
        return Ok(Limit::Bytes(of_span(span("buffer", text)?)?));
    }
    let bytes: Bytes = text.parse().map_err(|_| problem("buffer", accepted))?;
    Ok(Limit::Bytes(bytes.count()))
}

/// Collects the elements of one direction in the order in which a packet meets them.
struct Builder<'a> {
    plan: PathPlan,
    facts: &'a DirectionFacts,
    start: MonoTime,
    medium: &'a Medium,
    seed: u64,
    /// Streams of randomness: those of the two directions do not meet.
    stream: u64,
    elements: Vec<Box<dyn Element>>,
}

impl<'a> Builder<'a> {
    fn new(
        plan: &PathPlan,
        backward: bool,
        facts: &'a DirectionFacts,
        start: MonoTime,
        medium: &'a Medium,
    ) -> Self {
        Self {
            plan: plan.direction(backward),
            facts,
            start,
            medium,
            seed: plan.seed.unwrap_or(1),
            stream: if backward { 1000 } else { 0 },
            elements: Vec::new(),
        }
    }

    fn build(mut self) -> Result<Pipeline, PathProblem> {
        self.contract()?;
        self.cross_traffic()?;
        self.link()?;
        self.damage()?;
        self.random_loss()?;
        self.delays()?;
        Ok(Pipeline::new(self.elements))
    }

    fn push(&mut self, element: impl Element + 'static) {
        self.elements.push(Box::new(element));
    }

    fn random(&mut self) -> Random {
        self.stream += 1;
        Random::new(self.seed, self.stream)
    }

    /// What stands before the link.
    fn contract(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if !plan.outages.is_empty() {
            let spans = plan.outages.iter().map(|outage| {
                Ok((time("outages.from", &outage.from)?, time("outages.to", &outage.to)?))
            });
            let spans = spans.collect::<Result<Vec<_>, PathProblem>>()?;
            if spans.iter().any(|(from, to)| to <= from) {
                return Err(problem("outages", "an outage ends before it begins"));
            }
            self.push(Outages::new(self.start, &spans));
        }
        if let Some(mtu_bytes) = plan.mtu_bytes {
            self.push(MtuLimit::new(mtu_bytes));
        }
        if let Some(policer) = &plan.policer {
            self.push(Policer::new(bucket("policer", policer)?, self.start));
        }
        if let Some(shaper) = &plan.shaper {
            let queue = TailDrop::new(Limit::Packets(SIDE_QUEUE_PACKETS));
            self.push(Shaper::new(bucket("shaper", shaper)?, queue, self.start));
        }
        if let Some(packets_per_s) = plan.packets_per_s {
            if packets_per_s == 0 {
                return Err(problem("packets_per_s", "0 carries nothing"));
            }
            let queue = TailDrop::new(self.facts.buffer);
            self.push(PacketRate::new(packets_per_s, queue));
        }
        Ok(())
    }

    fn cross_traffic(&mut self) -> Result<(), PathProblem> {
        for cross in self.plan.cross.clone() {
            let settings = cross_settings(&cross)?;
            let random = self.random();
            self.push(CrossTraffic::new(settings, self.start, random));
        }
        Ok(())
    }

    fn link(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.trace {
            let trace = Trace::from_text(text).map_err(|error| problem("trace", error))?;
            let queue = self.queue();
            self.push(TraceLink::new(trace, queue, self.start));
        } else if !plan.trunk.is_empty() {
            let mut members: Vec<Box<dyn Element>> = Vec::new();
            for text in &plan.trunk {
                let rate = rate("trunk", text)?;
                members.push(Box::new(Link::new(rate, Framing::ETHERNET, self.queue())));
            }
            self.push(Trunk::new(members));
        } else if let Some(rate) = self.facts.rate {
            let mut link = Link::new(rate, self.facts.framing, self.queue());
            link = link.with_steps(self.steps()?);
            if plan.half_duplex == Some(true) {
                link = link.on_medium(self.medium.clone());
            }
            self.push(link);
        } else if plan.half_duplex == Some(true) {
            return Err(problem("half_duplex", "it needs a rate to share"));
        }
        if !self.plan.cross.is_empty() {
            self.push(CrossEnd);
        }
        Ok(())
    }

    fn steps(&self) -> Result<Vec<(MonoTime, BitRate)>, PathProblem> {
        let step = |step: &super::plan::RateStep| {
            let at = self.start + time("steps.at", &step.at)?;
            Ok((at, rate("steps.rate", &step.rate)?))
        };
        self.plan.steps.iter().map(step).collect()
    }

    fn queue(&mut self) -> Box<dyn Queue> {
        let limit = self.facts.buffer;
        let ecn = self.plan.ecn.unwrap_or(false);
        let codel = CodelSettings { ecn, ..CodelSettings::STANDARD };
        match self.plan.queue.unwrap_or(QueuePlan::Tail) {
            QueuePlan::Tail => Box::new(TailDrop::new(limit)),
            QueuePlan::Codel => Box::new(Codel::new(codel, limit)),
            QueuePlan::FqCodel => Box::new(FqCodel::new(codel, limit)),
            QueuePlan::Red => {
                let settings = self.red_settings(ecn);
                let random = self.random();
                Box::new(Red::new(settings, limit, random))
            }
        }
    }

    fn red_settings(&self, ecn: bool) -> RedSettings {
        let room = match self.facts.buffer {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => (packets * PACKET_BYTES) as f64,
        };
        let rate = self.facts.rate.map_or(1, BitRate::bits_per_sec);
        RedSettings {
            min_bytes: room / 6.0,
            max_bytes: room / 2.0,
            max_probability: 0.1,
            weight: 0.002,
            ecn,
            packet_time_ns: PACKET_BYTES * 8 * 1_000_000_000 / rate,
        }
    }

    fn damage(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.bit_errors {
            let ratio = share("bit_errors", text)?;
            let random = self.random();
            self.push(BitErrors::new(ratio, self.facts.framing, random));
        }
        if let Some(cells) = &plan.cell_loss {
            let Framing::Aal5 { header_bytes } = self.facts.framing else {
                return Err(problem("cell_loss", "the link carries no cells: set its `carrier`"));
            };
            let probability = share("cell_loss.probability", &cells.probability)?;
            let settings =
                CellLossSettings { probability, burst_cells: cells.burst_cells, header_bytes };
            let random = self.random();
            self.push(CellLoss::new(settings, random));
        }
        Ok(())
    }

    fn random_loss(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.loss {
            let (loss, random) = (share("loss", text)?, self.random());
            self.push(Bernoulli::new(loss, random));
        }
        if let Some(burst) = &plan.burst_loss {
            let ratio = share("burst_loss.ratio", &burst.ratio)?;
            if burst.burst_packets < 1.0 || !burst.burst_packets.is_finite() || ratio >= 1.0 {
                let reason = "a burst has one packet or more, and some packet gets through";
                return Err(problem("burst_loss", reason));
            }
            let to_good = 1.0 / burst.burst_packets;
            let to_bad = ratio * to_good / (1.0 - ratio);
            let settings = BurstLossSettings { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
            let random = self.random();
            self.push(BurstLoss::new(settings, random));
        }
        if !plan.lose.is_empty() {
            self.push(ListedLoss::new(plan.lose.clone()));
        }
        if let Some(text) = &plan.duplicate {
            let (probability, random) = (share("duplicate", text)?, self.random());
            self.push(Duplication::new(probability, random));
        }
        if let Some(text) = &plan.corrupt {
            let (probability, random) = (share("corrupt", text)?, self.random());
            self.push(Corruption::new(probability, random));
        }
        Ok(())
    }

    fn delays(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.delay {
            self.push(Delay::new(span("delay", text)?));
        }
        if let Some(jitter) = &plan.jitter {
            let (spread, random) = (spread(jitter)?, self.random());
            self.push(Jitter::new(spread, !jitter.reorder, random));
        }
        if let Some(reorder) = &plan.reorder {
            let share = share("reorder.share", &reorder.share)?;
            let spread = Spread::Some { share, extra: span("reorder.extra", &reorder.extra)? };
            let random = self.random();
            self.push(Jitter::new(spread, false, random));
        }
        Ok(())
    }
}

fn bucket(key: &str, plan: &BucketPlan) -> Result<Bucket, PathProblem> {
    let rate = rate(&format!("{key}.rate"), &plan.rate)?;
    let burst: Bytes =
        plan.burst.parse().map_err(|error| problem(&format!("{key}.burst"), error))?;
    Ok(Bucket { rate, burst_bytes: burst.count(), framing: Framing::Ip })
}

fn cross_settings(plan: &CrossPlan) -> Result<CrossSettings, PathProblem> {
    let rate = rate("cross.rate", &plan.rate)?;
    let ip_bytes = plan.packet_bytes.unwrap_or(1500);
    if !(28..=65_535).contains(&ip_bytes) {
        return Err(problem("cross.packet_bytes", "an IP packet has 28 to 65535 bytes"));
    }
    let ns = u128::from(ip_bytes) * 8 * 1_000_000_000 / u128::from(rate.bits_per_sec());
    let gap = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    let arrivals = match (&plan.on, &plan.off, plan.poisson) {
        (None, None, false) => Arrivals::Constant { gap },
        (None, None, true) => Arrivals::Poisson { gap },
        (Some(on), Some(off), false) => {
            Arrivals::OnOff { gap, on: span("cross.on", on)?, off: span("cross.off", off)? }
        }
        _ => {
            let reason = "`on` and `off` belong together, and not with `poisson`";
            return Err(problem("cross", reason));
        }
    };
    Ok(CrossSettings { ip_bytes, arrivals, flow: plan.flow })
}

#[cfg(test)]
mod tests {
    use super::super::Outlet;
    use super::super::testing::{at, numbers, packet};
    use super::*;

    fn plan(text: &str) -> PathPlan {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(text: &str) -> String {
        plan(text).build(at(0)).expect_err(text).to_string()
    }

    #[test]
    fn an_oc_12_with_cells_has_its_payload_rate_and_a_bandwidth_delay_product_of_buffer() {
        let plan = plan("link = \"oc12\"\ncarrier = \"aal5-llcsnap\"\ndelay = \"22.5 ms\"");
        let [there, back] = plan.facts().expect("sound");
        assert_eq!(there, back);
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(599_040_000)));
        // 599.04 Mbit/s x 45 ms / 8 = 3,369,600 bytes.
        assert_eq!(there.buffer, Limit::Bytes(3_369_600));
        // Half of that under way, all of it waiting.
        assert_eq!(there.bytes_max(BitRate::from_bits_per_sec(1)), Some(1_684_800 + 3_369_600));
    }

    #[test]
    fn a_direction_overrides_the_keys_of_both() {
        let plan = plan(
            "rate = \"10M\"\ndelay = \"5 ms\"\nloss = \"1%\"\n\
             backward = { rate = \"1M\", loss = \"0\", buffer = \"10 packets\" }",
        );
        let [there, back] = plan.facts().expect("sound");
        assert_eq!(there.rate, Some(BitRate::from_bits_per_sec(10_000_000)));
        assert_eq!(back.rate, Some(BitRate::from_bits_per_sec(1_000_000)));
        assert_eq!((there.delay, back.delay), (back.delay, Duration::from_millis(5)));
        assert_eq!(back.buffer, Limit::Packets(10));
        assert_eq!(plan.direction(true).loss.as_deref(), Some("0"));
    }

    #[test]
    fn packets_come_out_after_their_time_on_the_line_and_on_the_way() {
        // 1538 bytes at 12.304 Mbit/s: 1 ms each; then 5 ms.
        let plan = plan("rate = \"12.304M\"\ndelay = \"5ms\"\nlose = [1]");
        let [mut there, _] = plan.build(at(0)).expect("sound");
        let mut out = Outlet::default();
        for _ in 0..3 {
            there.take(at(0), packet(1500), &mut out);
        }
        there.due(at(u64::MAX), &mut out);
        assert_eq!(numbers(&out.departures), [0, 2]);
        let times: Vec<_> = out.departures.iter().map(|left| left.at.nanos()).collect();
        assert_eq!(times, [6_000_000, 8_000_000]);
    }

    #[test]
    fn an_empty_plan_lets_everything_through_at_once() {
        let [mut there, _] = plan("").build(at(0)).expect("sound");
        let mut out = Outlet::default();
        there.take(at(7), packet(1500), &mut out);
        assert_eq!(out.departures.len(), 1);
        assert_eq!(out.departures[0].at, at(7));
    }

    #[test]
    fn one_seed_makes_the_same_decisions_and_another_makes_others() {
        let lost = |seed| {
            let plan = plan(&format!("seed = {seed}\nloss = \"10%\"\ncorrupt = \"10%\""));
            let [mut there, _] = plan.build(at(0)).expect("sound");
            let mut out = Outlet::default();
            for number in 0..1000 {
                there.take(at(number), packet(100), &mut out);
            }
            out.lost.iter().map(|lost| lost.packet.number).collect::<Vec<_>>()
        };
        assert_eq!(lost(5), lost(5));
        assert_ne!(lost(5), lost(6));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let cases = [
            ("rate = \"0\"", "rate: a rate of 0 carries nothing; leave the key out for no limit"),
            ("rate = \"1M\"\nlink = \"1g\"", "rate: there is `link` already; only one of them"),
            ("carrier = \"pos\"", "carrier: it needs a `link` that it runs on"),
            ("link = \"1g\"\ncarrier = \"pos\"", "carrier: pos does not run on 1g here"),
            ("delay = \"2m\"", "delay: 2m is above 60 s"),
            (
                "rate = \"1M\"\nbuffer = \"1 BDP\"",
                "buffer: a BDP needs a delay; without one it is 0 bytes",
            ),
            (
                "rate = \"1M\"\nbuffer = \"some\"",
                "buffer: write for example 250 kB, 100 packets, 20 ms or 1 BDP",
            ),
            (
                "rate = \"1M\"\ncell_loss = { probability = \"1e-4\" }",
                "cell_loss: the link carries no cells: set its `carrier`",
            ),
            ("half_duplex = true", "half_duplex: it needs a rate to share"),
            (
                "backward = { burst_loss = { ratio = \"1%\", burst_packets = 0.5 } }",
                "backward.burst_loss: a burst has one packet or more, and some packet gets through",
            ),
            ("forward = { seed = 1 }", "forward.seed: the seed belongs to the whole path"),
        ];
        for (text, message) in cases {
            assert_eq!(refused(text), message, "{text}");
        }
    }
}
