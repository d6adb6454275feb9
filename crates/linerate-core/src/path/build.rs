//! From a plan to the two pipelines that it describes.

use std::time::Duration;

use super::facts::{
    DirectionFacts, PACKET_BYTES, PathProblem, SIDE_QUEUE_PACKETS, parse_delay, parse_rate,
    parse_share, parse_time, problem, spread,
};
use super::{
    Arrivals, Batch, Bernoulli, BitErrors, Bucket, BurstLoss, BurstLossSettings, CellLoss,
    CellLossSettings, Codel, CodelSettings, Corruption, CrossEnd, CrossSettings, CrossTraffic,
    Delay, DualPi2, DualPi2Settings, DuplexMismatch, Duplication, Element, FqCodel, Framing,
    HalfDuplexMedium, Jitter, Limit, ListedLoss, MtuLimit, Outages, Pipeline, Policer, Queue,
    QueuedLink, Random, Red, RedSettings, Spread, TailDrop, TokenBucketShaper, Trace, TraceLink,
    Trunk,
};
use crate::record::{BucketPlan, CrossPlan, PathEnd, PathPlan, QueuePlan};
use crate::theory::red;
use crate::time::MonoTime;
use crate::units::{BitRate, Bytes};

impl PathPlan {
    /// The pipelines of the two directions, whose schedules begin at `start`.
    /// # Errors
    /// The first key that cannot be built, with the reason.
    pub fn build_pipelines(&self, start: MonoTime) -> Result<[Pipeline; 2], PathProblem> {
        let [there, back] = self.direction_facts()?;
        let shared = SharedLink::default();
        let forward = PathBuilder::new(self, false, &there, start, &shared).build_pipeline();
        let backward = PathBuilder::new(self, true, &back, start, &shared).build_pipeline();
        Ok([
            forward.map_err(|problem| self.placed(problem, false))?,
            backward.map_err(|problem| self.placed(problem, true))?,
        ])
    }
}

/// Smallest MTU of a link: every link carries packets of this length (RFC 791 §3.2).
const MTU_BYTES_MIN: u32 = 68;
/// Largest early chance of a drop, as Floyd advised later (1997, "RED: discussions of setting
/// parameters").
const RED_CHANCE_MAX: f64 = 0.1;

/// State that the two directions share.
#[derive(Default)]
struct SharedLink {
    medium: HalfDuplexMedium,
    mismatch: DuplexMismatch,
}

/// Collects the elements of one direction in the order in which a packet meets them.
struct PathBuilder<'a> {
    plan: PathPlan,
    facts: &'a DirectionFacts,
    start: MonoTime,
    shared: &'a SharedLink,
    backward: bool,
    seed: u64,
    /// Streams of randomness: those of the two directions do not meet.
    stream: u64,
    elements: Vec<Box<dyn Element>>,
}

impl<'a> PathBuilder<'a> {
    fn new(
        plan: &PathPlan,
        backward: bool,
        facts: &'a DirectionFacts,
        start: MonoTime,
        shared: &'a SharedLink,
    ) -> Self {
        Self {
            plan: plan.direction(backward),
            facts,
            start,
            shared,
            backward,
            seed: plan.seed.unwrap_or(1),
            stream: if backward { 1000 } else { 0 },
            elements: Vec::new(),
        }
    }

    fn build_pipeline(mut self) -> Result<Pipeline, PathProblem> {
        self.contract()?;
        self.cross_traffic()?;
        self.add_link()?;
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

    /// Adds the elements before the link: outages, MTU, policers and shapers.
    fn contract(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if !plan.outages.is_empty() {
            let spans = plan.outages.iter().map(|outage| {
                Ok((
                    parse_time("outages.from", &outage.from)?,
                    parse_time("outages.to", &outage.to)?,
                ))
            });
            let spans = spans.collect::<Result<Vec<_>, PathProblem>>()?;
            if spans.iter().any(|(from, to)| to <= from) {
                return Err(problem("outages", "an outage ends before it begins"));
            }
            self.push(Outages::new(self.start, &spans));
        }
        if plan.mtu_silent.is_some() && plan.mtu_bytes.is_none() {
            return Err(problem("mtu_silent", "it needs `mtu_bytes`"));
        }
        if let Some(mtu_bytes) = plan.mtu_bytes {
            if !(MTU_BYTES_MIN..=65_535).contains(&mtu_bytes) {
                let reason = format!("{mtu_bytes} is not {MTU_BYTES_MIN} to 65535 bytes");
                return Err(problem("mtu_bytes", reason));
            }
            self.push(MtuLimit::new(mtu_bytes));
        }
        if let Some(policer) = &plan.policer {
            let element = Policer::new(bucket("policer", policer)?);
            self.push(element.map_err(|error| problem("policer", error))?);
        }
        if let Some(shaper) = &plan.shaper {
            let queue = TailDrop::new(Limit::Packets(SIDE_QUEUE_PACKETS));
            let element = TokenBucketShaper::new(bucket("shaper", shaper)?, queue);
            self.push(element.map_err(|error| problem("shaper", error))?);
        }
        if let Some(packets_per_sec) = plan.packets_per_sec {
            if packets_per_sec == 0 {
                return Err(problem("packets_per_sec", "0 carries nothing"));
            }
            let queue = TailDrop::new(self.facts.buffer);
            self.push(QueuedLink::of_packets(packets_per_sec, queue));
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

    fn add_link(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.trace {
            let trace = Trace::from_text(text).map_err(|error| problem("trace", error))?;
            let queue = self.build_queue()?;
            self.push(TraceLink::new(trace, queue, self.start));
        } else if !plan.trunk.is_empty() {
            let mut members: Vec<Box<dyn Element>> = Vec::new();
            for text in &plan.trunk {
                let rate = parse_rate("trunk", text)?;
                members.push(Box::new(QueuedLink::new(
                    rate,
                    Framing::ETHERNET,
                    self.build_queue()?,
                )));
            }
            let loss = self.trunk_loss(members.len())?;
            self.push(Trunk::new(members).with_loss(loss));
        } else if let Some(rate) = self.facts.rate {
            let mut link = QueuedLink::new(rate, self.facts.framing, self.build_queue()?);
            link = link.with_steps(self.rate_steps()?);
            if plan.half_duplex == Some(true) {
                link = link.on_medium(self.shared.medium.clone());
            }
            if let Some(half) = plan.duplex_mismatch {
                let is_half = (half == PathEnd::Second) == self.backward;
                link =
                    link.in_mismatch(self.shared.mismatch.duplex_end(is_half, rate.bits_per_sec()));
            }
            self.push(link);
        }
        self.check_line()?;
        if !self.plan.cross.is_empty() {
            self.push(CrossEnd);
        }
        Ok(())
    }

    /// Checks the keys that only a line with a rate can have.
    fn check_line(&self) -> Result<(), PathProblem> {
        let plan = &self.plan;
        let clocked = plan.trace.is_none() && plan.trunk.is_empty() && self.facts.rate.is_some();
        if plan.half_duplex == Some(true) && !clocked {
            return Err(problem("half_duplex", "it needs a rate to share"));
        }
        if plan.duplex_mismatch.is_some() && (!clocked || plan.half_duplex == Some(true)) {
            return Err(problem("duplex_mismatch", "it needs a rate, and no `half_duplex`"));
        }
        if plan.trunk_loss.len() > plan.trunk.len() {
            let reason = format!("the trunk has {} members", plan.trunk.len());
            return Err(problem("trunk_loss", reason));
        }
        Ok(())
    }

    fn trunk_loss(&mut self, members: usize) -> Result<Vec<Bernoulli>, PathProblem> {
        let texts = self.plan.trunk_loss.clone();
        let loss = texts.iter().take(members).map(|text| {
            let share = parse_share("trunk_loss", text)?;
            Ok(Bernoulli::new(share, self.random()))
        });
        loss.collect()
    }

    fn rate_steps(&self) -> Result<Vec<(MonoTime, BitRate)>, PathProblem> {
        let step = |step: &crate::record::RateStep| {
            let at = self.start + parse_time("steps.at", &step.at)?;
            Ok((at, parse_rate("steps.rate", &step.rate)?))
        };
        self.plan.steps.iter().map(step).collect()
    }

    fn build_queue(&mut self) -> Result<Box<dyn Queue>, PathProblem> {
        let limit = self.facts.buffer;
        let ecn = self.plan.ecn.unwrap_or(false);
        let codel = CodelSettings { ecn, ..CodelSettings::STANDARD };
        Ok(match self.plan.queue.unwrap_or(QueuePlan::Tail) {
            QueuePlan::Tail => Box::new(TailDrop::new(limit)),
            QueuePlan::Codel => Box::new(Codel::new(codel, limit)),
            QueuePlan::FqCodel => Box::new(FqCodel::new(codel, limit)),
            QueuePlan::Cake => Box::new(FqCodel::new(codel, limit).fair_to_hosts()),
            // Its queues are told apart by ECN: it marks whatever the plan says.
            QueuePlan::Dualpi2 => Box::new(DualPi2::new(DualPi2Settings::STANDARD, limit)),
            QueuePlan::Red => {
                let settings = self.red_settings(ecn)?;
                let random = self.random();
                Box::new(Red::new(settings, limit, random))
            }
        })
    }

    fn red_settings(&self, ecn: bool) -> Result<RedSettings, PathProblem> {
        let room = match self.facts.buffer {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => (packets * PACKET_BYTES) as f64,
        };
        let rate = self.facts.rate.map_or(1, BitRate::bits_per_sec);
        let law = red::RedParameters::new(room / 6.0, room / 2.0, RED_CHANCE_MAX, red::WEIGHT);
        let law = law.map_err(|error| problem("buffer", format!("RED: {error}")))?;
        Ok(RedSettings { law, ecn, packet_time_ns: PACKET_BYTES * 8 * 1_000_000_000 / rate })
    }

    fn damage(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.bit_errors {
            let ratio = parse_share("bit_errors", text)?;
            let random = self.random();
            self.push(BitErrors::new(ratio, self.facts.framing, random));
        }
        if let Some(cells) = &plan.cell_loss {
            let Framing::Aal5 { header_bytes } = self.facts.framing else {
                return Err(problem("cell_loss", "the link carries no cells: set its `carrier`"));
            };
            let probability = parse_share("cell_loss.probability", &cells.probability)?;
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
            let (loss, random) = (parse_share("loss", text)?, self.random());
            self.push(Bernoulli::new(loss, random));
        }
        if let Some(burst) = &plan.burst_loss {
            let ratio = parse_share("burst_loss.ratio", &burst.ratio)?;
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
            let (probability, random) = (parse_share("duplicate", text)?, self.random());
            self.push(Duplication::new(probability, random));
        }
        if let Some(text) = &plan.corrupt {
            let (probability, random) = (parse_share("corrupt", text)?, self.random());
            self.push(Corruption::new(probability, random));
        }
        Ok(())
    }

    fn delays(&mut self) -> Result<(), PathProblem> {
        let plan = self.plan.clone();
        if let Some(text) = &plan.batch {
            let period = parse_delay("batch", text)?;
            if period.is_zero() {
                return Err(problem("batch", "0 holds nothing; leave the key out"));
            }
            self.push(Batch::new(self.start, period));
        }
        if plan.delay.is_some() || !plan.delay_steps.is_empty() {
            let first = plan
                .delay
                .as_deref()
                .map_or(Ok(Duration::ZERO), |delay| parse_delay("delay", delay))?;
            let steps = plan.delay_steps.iter().map(|step| {
                let at = self.start + parse_time("delay_steps.at", &step.at)?;
                Ok((at, parse_delay("delay_steps.delay", &step.delay)?))
            });
            let steps = steps.collect::<Result<Vec<_>, PathProblem>>()?;
            self.push(Delay::new(first).with_steps(steps));
        }
        if let Some(jitter) = &plan.jitter {
            let (spread, random) = (spread(jitter)?, self.random());
            self.push(Jitter::new(spread, !jitter.reorder, random));
        }
        if let Some(reorder) = &plan.reorder {
            let share = parse_share("reorder.share", &reorder.share)?;
            let spread =
                Spread::Some { share, extra: parse_delay("reorder.extra", &reorder.extra)? };
            let random = self.random();
            self.push(Jitter::new(spread, false, random));
        }
        Ok(())
    }
}

fn bucket(key: &str, plan: &BucketPlan) -> Result<Bucket, PathProblem> {
    let rate = parse_rate(&format!("{key}.rate"), &plan.rate)?;
    let burst: Bytes =
        plan.burst.parse().map_err(|error| problem(&format!("{key}.burst"), error))?;
    Ok(Bucket { rate, burst, framing: Framing::Ip })
}

fn cross_settings(plan: &CrossPlan) -> Result<CrossSettings, PathProblem> {
    let rate = parse_rate("cross.rate", &plan.rate)?;
    let ip_bytes = plan.packet_bytes.unwrap_or(1500);
    if !(28..=65_535).contains(&ip_bytes) {
        return Err(problem("cross.packet_bytes", "an IP packet has 28 to 65535 bytes"));
    }
    let ns = u128::from(ip_bytes) * 8 * 1_000_000_000 / u128::from(rate.bits_per_sec());
    let gap = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    let arrivals = match (&plan.on, &plan.off, plan.poisson) {
        (None, None, false) => Arrivals::Constant { gap },
        (None, None, true) => Arrivals::Poisson { gap },
        (Some(on), Some(off), false) => Arrivals::OnOff {
            gap,
            on: parse_delay("cross.on", on)?,
            off: parse_delay("cross.off", off)?,
        },
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
    use super::super::testing::{numbers, packet, time_at_ns};
    use super::*;

    fn parse_plan(text: &str) -> PathPlan {
        crate::tree::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(text: &str) -> String {
        parse_plan(text).build_pipelines(time_at_ns(0)).expect_err(text).to_string()
    }

    #[test]
    fn packets_come_out_after_their_time_on_the_line_and_on_the_way() {
        // 1538 bytes at 12.304 Mbit/s: 1 ms each; then 5 ms.
        let plan = parse_plan("rate = \"12.304M\"\ndelay = \"5ms\"\nlose = [1]");
        let [mut there, _] = plan.build_pipelines(time_at_ns(0)).expect("sound");
        let mut out = Outlet::default();
        for _ in 0..3 {
            there.receive(time_at_ns(0), packet(1500), &mut out);
        }
        there.release(time_at_ns(u64::MAX), &mut out);
        assert_eq!(numbers(&out.departures), [0, 2]);
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos()).collect();
        assert_eq!(times, [6_000_000, 8_000_000]);
    }

    #[test]
    fn an_empty_plan_lets_everything_through_at_once() {
        let [mut there, _] = parse_plan("").build_pipelines(time_at_ns(0)).expect("sound");
        let mut out = Outlet::default();
        there.receive(time_at_ns(7), packet(1500), &mut out);
        assert_eq!(out.departures.len(), 1);
        assert_eq!(out.departures[0].at, time_at_ns(7));
    }

    #[test]
    fn one_seed_makes_the_same_decisions_and_another_makes_others() {
        let lost = |seed| {
            let plan = parse_plan(&format!("seed = {seed}\nloss = \"10%\"\ncorrupt = \"10%\""));
            let [mut there, _] = plan.build_pipelines(time_at_ns(0)).expect("sound");
            let mut out = Outlet::default();
            for number in 0..1000 {
                there.receive(time_at_ns(number), packet(100), &mut out);
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
            (
                "policer = { rate = \"1M\", burst = \"0\" }",
                "policer: the burst is 0 bytes: no packet would ever fit",
            ),
            (
                "rate = \"1M\"\nbuffer = \"0 packets\"\nqueue = \"red\"",
                "buffer: RED: thresholds 0 and 0 are not 0 or more and one above the other",
            ),
            ("mtu_bytes = 67", "mtu_bytes: 67 is not 68 to 65535 bytes"),
            ("mtu_silent = true", "mtu_silent: it needs `mtu_bytes`"),
            ("half_duplex = true", "half_duplex: it needs a rate to share"),
            (
                "duplex_mismatch = \"first\"",
                "duplex_mismatch: it needs a rate, and no `half_duplex`",
            ),
            ("trunk_loss = [\"1%\"]", "trunk_loss: the trunk has 0 members"),
            ("batch = \"0 ms\"", "batch: 0 holds nothing; leave the key out"),
            (
                "forward = { duplex_mismatch = \"first\" }",
                "forward.duplex_mismatch: it belongs to the whole path",
            ),
            (
                "backward = { burst_loss = { ratio = \"1%\", burst_packets = 0.5 } }",
                "backward.burst_loss: a burst has one packet or more, and some packet gets through",
            ),
            (
                "forward = { emulator = \"netem\" }",
                "forward.emulator: one emulator carries the whole path",
            ),
            ("forward = { seed = 1 }", "forward.seed: the seed belongs to the whole path"),
        ];
        for (text, message) in cases {
            assert_eq!(refused(text), message, "{text}");
        }
    }
}
