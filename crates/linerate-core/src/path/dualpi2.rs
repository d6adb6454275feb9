//! DualPI2: a queue for L4S beside the classic one, whose marks are coupled to the classic drops
//! (RFC 9332 appendix A).
//!
//! The classic queue is under a proportional-integral controller: its base chance p' is squared for
//! classic packets and multiplied by the coupling for those of L4S. Packets of L4S are marked also
//! when they waited longer than a step. The scheduler is Linux's: nine bytes of L4S for one of the
//! classic queue where both wait (tc-dualpi2(8), c_protection).

use std::time::Duration;

use super::queue::{Fifo, Queue};
use super::{Backlog, Ecn, Limit, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Settings {
    /// Delay that the classic queue is steered to.
    pub target: Duration,
    /// Time between two steps of the controller.
    pub update: Duration,
    /// Integral gain per step, in 1/s.
    pub alpha_hz: f64,
    /// Proportional gain per step, in 1/s.
    pub beta_hz: f64,
    /// Chance of a mark of L4S over the root of that of a classic drop.
    pub coupling: f64,
    /// Packets of L4S that waited this long are marked.
    pub step: Duration,
}

impl DualPi2Settings {
    /// The values of RFC 9332 figure 2 for its target of 15 ms and longest round trip of 100 ms:
    /// alpha = 0.1 * update / rtt², beta = 0.3 / rtt, update = the smaller of the target and a
    /// third of the round trip; k = 2. The step is that of tc-dualpi2(8) in place of a ramp.
    pub const STANDARD: Self = Self {
        target: Duration::from_millis(15),
        update: Duration::from_millis(15),
        alpha_hz: 0.15,
        beta_hz: 3.0,
        coupling: 2.0,
        step: Duration::from_millis(1),
    };
}

/// Shares of the scheduler where both queues wait.
const WEIGHT_LOW: i64 = 9;
const WEIGHT_CLASSIC: i64 = 1;

/// A queue with the sum of its marking probabilities: a mark is due each time the sum passes 1 (RFC
/// 9332 figure 5, recur), evenly spaced instead of at random.
#[derive(Debug, Default)]
struct SideQueue {
    fifo: Fifo,
    sum: f64,
}

impl SideQueue {
    fn recurs(&mut self, chance: f64) -> bool {
        self.sum += chance;
        let full = self.sum > 1.0;
        if full {
            self.sum -= 1.0;
        }
        full
    }
}

/// A DualPI2 queue.
#[derive(Debug)]
pub struct DualPi2 {
    settings: DualPi2Settings,
    limit: Limit,
    low: SideQueue,
    classic: SideQueue,
    /// Base probability p' of the PI controller.
    base: f64,
    /// Delay of the classic queue at the last step.
    previous_s: f64,
    next_update: MonoTime,
    /// Scheduler's credit: above 0 it is the classic queue's turn.
    credit: i64,
}

impl DualPi2 {
    /// Empty queues that hold `limit` together.
    pub fn new(settings: DualPi2Settings, limit: Limit) -> Self {
        Self {
            settings,
            limit,
            low: SideQueue::default(),
            classic: SideQueue::default(),
            base: 0.0,
            previous_s: 0.0,
            next_update: MonoTime::default() + settings.update,
            credit: 0,
        }
    }

    /// Takes the controller's steps up to `now` (figure 6).
    fn advance(&mut self, now: MonoTime) {
        let DualPi2Settings { target, update, alpha_hz, beta_hz, .. } = self.settings;
        while self.next_update <= now {
            let at = self.next_update;
            let waited_s = self
                .classic
                .fifo
                .oldest()
                .map_or(0.0, |came| at.duration_since(came).as_secs_f64());
            let above = alpha_hz * (waited_s - target.as_secs_f64());
            let growth = beta_hz * (waited_s - self.previous_s);
            self.base = (self.base + above + growth).clamp(0.0, 1.0);
            self.previous_s = waited_s;
            self.next_update += update;
            if self.base == 0.0 && self.classic.fifo.is_empty() {
                // Nothing changes until a packet comes.
                let update_ns = u64::try_from(update.as_nanos()).expect("milliseconds");
                let steps = now.nanos_since(self.next_update) / update_ns;
                self.next_update += Duration::from_nanos(steps * update_ns);
            }
        }
    }

    /// The chance of a mark of L4S by the coupling.
    fn coupled(&self) -> f64 {
        self.settings.coupling * self.base
    }

    /// True when L4S is served next; none where nothing waits.
    fn l4s_is_next(&self) -> Option<bool> {
        match (self.low.fifo.is_empty(), self.classic.fifo.is_empty()) {
            (true, true) => None,
            (false, false) => Some(self.credit <= 0),
            (_, classic_empty) => Some(classic_empty),
        }
    }

    fn get_low(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        let (came, mut packet) = self.low.fifo.pop()?;
        if !self.classic.fifo.is_empty() {
            self.credit += WEIGHT_CLASSIC * i64::from(packet.ip_bytes);
        }
        let coupled = self.coupled();
        // Overload: marks alone say nothing any more (A.2).
        if coupled >= 1.0 && self.low.recurs(self.base * self.base) {
            out.record_loss(at, packet, PathLossCause::QueueEarly);
            return None;
        }
        // One packet alone is no queue, however slow the line (Th_len).
        let late = at.duration_since(came) >= self.settings.step && !self.low.fifo.is_empty();
        if late || coupled >= 1.0 || self.low.recurs(coupled) {
            packet.ecn = Ecn::Experienced;
        }
        Some(packet)
    }

    fn get_classic(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        let (_, mut packet) = self.classic.fifo.pop()?;
        if !self.low.fifo.is_empty() {
            self.credit -= WEIGHT_LOW * i64::from(packet.ip_bytes);
        }
        if self.classic.recurs(self.base * self.base) {
            if !packet.ecn.may_be_marked() {
                out.record_loss(at, packet, PathLossCause::QueueEarly);
                return None;
            }
            packet.ecn = Ecn::Experienced;
        }
        Some(packet)
    }
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        self.advance(at);
        if !self.limit.admits(self.backlog(), &packet) {
            out.record_loss(at, packet, PathLossCause::QueueFull);
            return;
        }
        match packet.ecn {
            Ecn::Capable1 | Ecn::Experienced => self.low.fifo.push(at, packet),
            Ecn::NotCapable | Ecn::Capable0 => self.classic.fifo.push(at, packet),
        }
    }

    fn get(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        self.advance(at);
        while let Some(low) = self.l4s_is_next() {
            let packet = if low { self.get_low(at, out) } else { self.get_classic(at, out) };
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low.fifo.backlog(), self.classic.fifo.backlog());
        Backlog { packets: low.packets + classic.packets, bytes: low.bytes + classic.bytes }
    }

    fn pass_through(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) -> Option<Packet> {
        self.enqueue(at, packet, out);
        self.get(at, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, time_at_ns};
    use super::*;

    const US: u64 = 1000;
    const MS: u64 = 1_000_000;

    fn standard_queue() -> DualPi2 {
        DualPi2::new(DualPi2Settings::STANDARD, Limit::Packets(1_000_000))
    }

    fn packet_with_ecn(ecn: Ecn) -> Packet {
        Packet { ecn, ..packet(1500) }
    }

    #[test]
    fn the_gains_are_those_of_the_target_and_the_longest_round_trip() {
        let DualPi2Settings { target, update, alpha_hz, beta_hz, coupling, .. } =
            DualPi2Settings::STANDARD;
        let rtt_s = 0.1;
        assert_eq!(update.as_secs_f64(), target.as_secs_f64().min(rtt_s / 3.0));
        assert!((alpha_hz - 0.1 * update.as_secs_f64() / (rtt_s * rtt_s)).abs() < 1e-12);
        assert!((beta_hz - 0.3 / rtt_s).abs() < 1e-12);
        assert_eq!(coupling, 2.0);
    }

    #[test]
    fn the_base_chance_follows_the_delay_and_its_growth() {
        let mut queue = standard_queue();
        let mut out = Outlet::default();
        // One packet stands from 0 on: it waited 15 ms at 15 ms, so 0.15 * 0 + 3 * 0.015 = 0.045;
        // at 30 ms 0.15 * 0.015 + 3 * 0.015 = 0.04725 more; at 45 ms 0.15 * 0.03 + 0.045.
        queue.enqueue(time_at_ns(0), packet_with_ecn(Ecn::NotCapable), &mut out);
        for (ms, expected) in [(14, 0.0), (15, 0.045), (30, 0.09225), (45, 0.14175)] {
            queue.advance(time_at_ns(ms * MS));
            assert!((queue.base - expected).abs() < 1e-12, "{ms}: {}", queue.base);
        }
        // Gone: at 60 ms 0.15 * -0.015 + 3 * -0.045 = -0.13725 is left of it 0.0045, and then
        // 0.00225 less at each step.
        assert!(queue.get(time_at_ns(46 * MS), &mut out).is_some());
        for (ms, expected) in [(60, 0.0045), (75, 0.00225), (90, 0.0), (3_600_000, 0.0)] {
            queue.advance(time_at_ns(ms * MS));
            assert!((queue.base - expected).abs() < 1e-12, "{ms}: {}", queue.base);
        }
        assert!(queue.next_update > time_at_ns(3_600_000 * MS));
    }

    /// Marked, and lost, of 10,000 packets that wait for nothing under a base chance.
    fn events(base: f64, ecn: Ecn) -> (usize, usize) {
        let mut queue = standard_queue();
        queue.base = base;
        let mut out = Outlet::default();
        let passed = (0..10_000)
            .filter_map(|_| queue.pass_through(time_at_ns(0), packet_with_ecn(ecn), &mut out));
        let marked = passed.filter(|packet| packet.ecn == Ecn::Experienced).count();
        (marked, out.lost.len())
    }

    #[test]
    fn marks_are_coupled_to_drops_by_a_square() {
        // p_CL = 2 * 0.1, p_C = 0.1²; sums of rounded shares may be one short.
        let close = |got: usize, expected: usize| got.abs_diff(expected) <= 1;
        let (marked, lost) = events(0.1, Ecn::Capable1);
        assert!(close(marked, 2000) && lost == 0, "{marked} {lost}");
        let (marked, lost) = events(0.1, Ecn::Capable0);
        assert!(close(marked, 100) && lost == 0, "{marked} {lost}");
        let (marked, lost) = events(0.1, Ecn::NotCapable);
        assert!(marked == 0 && close(lost, 100), "{marked} {lost}");
        // Above 1 / k all that pass are marked, and as many are lost as of the classic ones.
        let (marked, lost) = events(0.6, Ecn::Capable1);
        assert!(close(lost, 3600) && marked + lost == 10_000, "{marked} {lost}");
    }

    #[test]
    fn packets_of_l4s_are_marked_from_a_millisecond_on() {
        for (us, expected) in [(999, Ecn::Capable1), (1000, Ecn::Experienced)] {
            let mut queue = standard_queue();
            let mut out = Outlet::default();
            for _ in 0..2 {
                queue.enqueue(time_at_ns(0), packet_with_ecn(Ecn::Capable1), &mut out);
            }
            let first = queue.get(time_at_ns(us * US), &mut out).expect("two wait");
            assert_eq!(first.ecn, expected, "{us}");
            // The last one has none behind it.
            let last = queue.get(time_at_ns(2000 * US), &mut out).expect("one waits");
            assert_eq!(last.ecn, Ecn::Capable1);
        }
    }

    #[test]
    fn l4s_goes_first_and_the_classic_queue_keeps_a_tenth() {
        let mut queue = standard_queue();
        let mut out = Outlet::default();
        for ecn in [Ecn::NotCapable, Ecn::Capable1] {
            (0..1000).for_each(|_| queue.enqueue(time_at_ns(0), packet_with_ecn(ecn), &mut out));
        }
        let taken: Vec<Packet> =
            (0..1000).filter_map(|_| queue.get(time_at_ns(0), &mut out)).collect();
        assert_eq!(taken[0].ecn, Ecn::Capable1);
        let classic = taken.iter().filter(|packet| packet.ecn == Ecn::NotCapable).count();
        assert!(classic.abs_diff(100) <= 1, "{classic}");
    }
}
