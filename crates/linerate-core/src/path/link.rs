//! A link: a queue that ends, and a line that sends one packet after another at its rate; or a
//! device that takes the same time for every packet, however long.

use std::sync::{Arc, Mutex, PoisonError};

use super::queue::Queue;
use super::{Backlog, DuplexEnd, Element, Framing, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;
use crate::units::BitRate;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A line with a rate and a queue before it. The packet that is being sent does not count as
/// waiting.
pub struct QueuedLink {
    line: LineClock,
    queue: Box<dyn Queue>,
    sending: Option<FrameOnLine>,
    /// Further rates with their times, the earliest last.
    steps: Vec<(MonoTime, BitRate)>,
    medium: Option<HalfDuplexMedium>,
    mismatch: Option<DuplexEnd>,
}

/// The medium that two directions of a half-duplex link share: only one of them sends at a time.
/// The direction that is asked first after the medium is free has it, so each direction's turn is a
/// packet long when both are asked often.
#[derive(Clone, Debug, Default)]
pub struct HalfDuplexMedium(Arc<Mutex<MonoTime>>);

impl HalfDuplexMedium {
    /// Begins at `at` or when the medium is free, and occupies it until the time from
    /// `send`.
    fn occupy(&self, at: MonoTime, send: impl FnOnce(MonoTime) -> MonoTime) -> MonoTime {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *free = send(at.max(*free));
        *free
    }
}

/// The packet on the line and the time at which its last bit leaves.
#[derive(Clone, Copy, Debug)]
struct FrameOnLine {
    packet: Packet,
    until: MonoTime,
    /// The frame collides, and arrives damaged.
    collides: bool,
}

impl QueuedLink {
    /// A line of `rate`, which must not be 0, that counts the bytes of `framing`.
    pub fn new(rate: BitRate, framing: Framing, queue: impl Queue + 'static) -> Self {
        Self::from_line(LineClock::new(rate, framing), Box::new(queue))
    }

    /// A device that handles `packets_per_s`, which must not be 0, however long they are.
    pub fn of_packets(packets_per_s: u64, queue: impl Queue + 'static) -> Self {
        Self::from_line(
            LineClock { per_s: packets_per_s, framing: None, remainder: 0 },
            Box::new(queue),
        )
    }

    fn from_line(line: LineClock, queue: Box<dyn Queue>) -> Self {
        Self { line, queue, sending: None, steps: Vec::new(), medium: None, mismatch: None }
    }

    /// The same link with other rates, none of them 0, from given times on. A packet that is being
    /// sent keeps its rate.
    pub fn with_steps(mut self, mut steps: Vec<(MonoTime, BitRate)>) -> Self {
        steps.sort_unstable_by_key(|&(from, _)| std::cmp::Reverse(from));
        self.steps = steps;
        self
    }

    /// The same link on a medium that another link shares.
    pub fn on_medium(mut self, medium: HalfDuplexMedium) -> Self {
        self.medium = Some(medium);
        self
    }

    /// The same link as one end of a duplex mismatch.
    pub fn in_mismatch(mut self, end: DuplexEnd) -> Self {
        self.mismatch = Some(end);
        self
    }

    fn start_sending(&mut self, at: MonoTime, packet: Packet) {
        while let Some(&(_, rate)) = self.steps.last().filter(|(from, _)| *from <= at) {
            self.line.set_rate(rate);
            self.steps.pop();
        }
        let line = &mut self.line;
        let mut send = |begin| line.transmit_end(begin, &packet);
        let (until, collides) = match (&self.medium, &self.mismatch) {
            (Some(medium), _) => (medium.occupy(at, send), false),
            (None, Some(end)) => end.send_frame(at, send),
            (None, None) => (send(at), false),
        };
        self.sending = Some(FrameOnLine { packet, until, collides });
    }
}

impl Element for QueuedLink {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.sending.is_some() {
            self.queue.enqueue(at, packet, out);
        } else if let Some(packet) = self.queue.pass_through(at, packet, out) {
            self.line.clear_remainder();
            self.start_sending(at, packet);
        }
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while let Some(sending) = self.sending.filter(|sending| sending.until <= now) {
            let hit = self.mismatch.as_ref().is_some_and(DuplexEnd::was_hit);
            if sending.collides || hit {
                out.record_loss(sending.until, sending.packet, PathLossCause::Damaged);
            } else {
                out.forward(sending.until, sending.packet);
            }
            self.sending = None;
            if let Some(packet) = self.queue.get(sending.until, out) {
                self.start_sending(sending.until, packet);
            }
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.sending.map(|sending| sending.until)
    }

    fn is_shared(&self) -> bool {
        self.medium.is_some() || self.mismatch.is_some()
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        self.queue.backlog()
    }
}

/// A line's clock: how long each packet takes on it.
#[derive(Clone, Copy, Debug)]
struct LineClock {
    /// Bits, or packets, in a second.
    per_s: u64,
    /// Bytes of a packet that the rate counts; none counts packets.
    framing: Option<Framing>,
    /// Remainder of the last division, in bits or packets times 10^9: the clock is exact over any
    /// number of packets sent back to back.
    remainder: u64,
}

impl LineClock {
    const fn new(rate: BitRate, framing: Framing) -> Self {
        Self { per_s: rate.bits_per_sec(), framing: Some(framing), remainder: 0 }
    }

    /// Time at which the last bit leaves of a packet that begins at `at`.
    const fn transmit_end(&mut self, at: MonoTime, packet: &Packet) -> MonoTime {
        let units = match self.framing {
            Some(framing) => framing.line_bytes(packet.ip_bytes) as u64 * 8,
            None => 1,
        };
        // At most 64 KiB in cells: 6 * 10^5 bits * 10^9 < 2^50.
        let work = units * NANOS_PER_SECOND + self.remainder;
        self.remainder = work % self.per_s;
        MonoTime::from_nanos(at.as_nanos().saturating_add(work / self.per_s))
    }

    /// Clears the remainder after an idle time: the next packet does not begin back to back.
    const fn clear_remainder(&mut self) {
        self.remainder = 0;
    }

    /// Another rate from the next packet on.
    const fn set_rate(&mut self, rate: BitRate) {
        self.per_s = rate.bits_per_sec();
        self.remainder = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{packet, send_packets, time_at_ns};
    use super::*;
    use crate::path::{Delay, Limit, PathLossCause, Pipeline, TailDrop};

    #[test]
    fn a_million_packets_back_to_back_take_their_time_to_the_nanosecond() {
        // 10^6 x 1538 x 8 bits at 622.08 Mbit/s: 19.778806584… s.
        let rate = BitRate::from_bits_per_sec(622_080_000);
        let mut link =
            QueuedLink::new(rate, Framing::ETHERNET, TailDrop::new(Limit::Packets(1_000_000)));
        let mut out = Outlet::default();
        for _ in 0..1_000_000 {
            link.receive(time_at_ns(0), packet(1500), &mut out);
        }
        link.release(time_at_ns(u64::MAX), &mut out);
        assert_eq!(out.departures.len(), 1_000_000);
        let bits: u128 = 1_000_000 * 1538 * 8;
        let expected = bits * 1_000_000_000 / 622_080_000;
        assert_eq!(u128::from(out.departures[999_999].at.as_nanos()), expected);
    }

    #[test]
    fn a_device_that_counts_packets_passes_long_and_short_ones_at_one_rate() {
        for ip_bytes in [64, 9000] {
            // 3000 packets/s offered at 10,000: one second's worth leaves in one second.
            let queue = TailDrop::new(Limit::Packets(8));
            let out =
                send_packets(&mut QueuedLink::of_packets(3000, queue), 10_000, ip_bytes, 100_000);
            let second = |left: &&super::super::Departure| left.at.as_nanos() <= 1_000_000_000;
            assert_eq!(out.departures.iter().filter(second).count(), 3000);
            // The first 9 find room, so 9 more than the rate were taken by then.
            assert_eq!(out.departures.len() + out.lost.len(), 10_000);
        }
    }

    #[test]
    fn a_full_queue_drops_the_last_to_come() {
        let rate = BitRate::from_bits_per_sec(1_000_000);
        let mut link = QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Bytes(3000)));
        let mut out = Outlet::default();
        for number in 0..5 {
            link.receive(time_at_ns(0), Packet { number, ..packet(1500) }, &mut out);
        }
        // One on the line, two in the queue, two lost.
        assert_eq!(out.lost.iter().map(|lost| lost.packet.number).collect::<Vec<_>>(), [3, 4]);
        assert!(out.lost.iter().all(|lost| lost.cause == PathLossCause::QueueFull));
        link.release(time_at_ns(u64::MAX), &mut out);
        // 12,000 bits at 1 Mbit/s: 12 ms each.
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos()).collect();
        assert_eq!(times, [12_000_000, 24_000_000, 36_000_000]);
    }

    #[test]
    fn a_pipeline_gives_exact_times_however_late_it_is_asked() {
        let rate = BitRate::from_bits_per_sec(12_000_000);
        let elements: [Box<dyn Element>; 2] = [
            Box::new(QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(10)))),
            Box::new(Delay::new(Duration::from_millis(5))),
        ];
        let mut pipeline = Pipeline::new(elements.into());
        let mut out = Outlet::default();
        for _ in 0..3 {
            pipeline.receive(time_at_ns(0), packet(1500), &mut out);
        }
        assert_eq!(pipeline.next(), Some(time_at_ns(1_000_000)));
        assert_eq!(pipeline.next_departure(), Some(time_at_ns(6_000_000)));
        pipeline.release(time_at_ns(60_000_000_000), &mut out);
        // 1 ms each on the line, then 5 ms.
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos()).collect();
        assert_eq!(times, [6_000_000, 7_000_000, 8_000_000]);
        assert_eq!(pipeline.next(), None);
    }

    #[test]
    fn a_rate_that_steps_down_holds_from_the_next_packet_on() {
        let rate = BitRate::from_bits_per_sec(12_000_000);
        let slow = BitRate::from_bits_per_sec(6_000_000);
        let link = QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(10)));
        let mut link = link.with_steps(vec![(time_at_ns(1_500_000), slow)]);
        let mut out = Outlet::default();
        for _ in 0..4 {
            link.receive(time_at_ns(0), packet(1500), &mut out);
        }
        link.release(time_at_ns(u64::MAX), &mut out);
        // 1 ms each until the packet that begins at 2 ms; then 2 ms each.
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos() / 1000).collect();
        assert_eq!(times, [1000, 2000, 4000, 6000]);
    }

    #[test]
    fn two_directions_of_one_medium_never_send_at_once() {
        let medium = HalfDuplexMedium::default();
        let side = || {
            let rate = BitRate::from_bits_per_sec(12_000_000);
            let queue = TailDrop::new(Limit::Packets(1000));
            QueuedLink::new(rate, Framing::Ip, queue).on_medium(medium.clone())
        };
        let (mut there, mut back) = (side(), side());
        let (mut out_there, mut out_back) = (Outlet::default(), Outlet::default());
        for _ in 0..100 {
            there.receive(time_at_ns(0), packet(1500), &mut out_there);
            back.receive(time_at_ns(0), packet(1500), &mut out_back);
        }
        for now in 0..300 {
            there.release(time_at_ns(now * 1_000_000), &mut out_there);
            back.release(time_at_ns(now * 1_000_000), &mut out_back);
        }
        let mut times: Vec<_> = out_there.departures.iter().chain(&out_back.departures).collect();
        times.sort_by_key(|left| left.at);
        // 200 packets of 1 ms each, none beside another.
        let times: Vec<_> = times.iter().map(|left| left.at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, (1..=200).collect::<Vec<_>>());
    }
}
