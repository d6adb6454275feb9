//! CoDel: drops, or marks, when packets have waited too long for too long (RFC 8289 §5).
//!
//! Sojourn time is measured when a packet leaves the queue for the line.

use super::queue::{Fifo, Queue};
use super::{Backlog, Ecn, Limit, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;
use std::time::Duration;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSettings {
    /// Standing delay that is acceptable; 5 ms in RFC 8289 §4.4.
    pub target: Duration,
    /// Time for an end host to react; 100 ms in RFC 8289 §4.3.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// A backlog of one packet of this length is never a standing queue (RFC 8289 §5.3).
    pub mtu_bytes: u32,
}

impl CodelSettings {
    /// The values of RFC 8289 §4.
    pub const STANDARD: Self = Self {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: false,
        mtu_bytes: 1514,
    };
}

/// The control state of one queue (RFC 8289 §5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    first_above: Option<MonoTime>,
    drop_next: MonoTime,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// The packet for the line at `now`, after what CoDel drops before it (RFC 8289 §5.5).
    pub(super) fn get(
        &mut self,
        settings: &CodelSettings,
        fifo: &mut Fifo,
        now: MonoTime,
        out: &mut Outlet,
    ) -> Option<Packet> {
        let (mut packet, mut late) = self.next(settings, fifo, now);
        if self.dropping {
            if !late {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let first = packet?;
                self.count += 1;
                if let Some(marked) = refuse(settings, first, now, out) {
                    self.drop_next += self.spacing(settings);
                    return Some(marked);
                }
                (packet, late) = self.next(settings, fifo, now);
                if late {
                    self.drop_next += self.spacing(settings);
                } else {
                    self.dropping = false;
                }
            }
        } else if late {
            let first = packet?;
            packet = refuse(settings, first, now, out);
            if packet.is_none() {
                (packet, _) = self.next(settings, fifo, now);
            }
            self.begin_dropping(settings, now);
        }
        packet
    }

    /// Enters the dropping state, from the last rate if that was a short while ago.
    fn begin_dropping(&mut self, settings: &CodelSettings, now: MonoTime) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now.duration_since(self.drop_next) < settings.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + self.spacing(settings);
    }

    /// The control law: interval / sqrt(count).
    fn spacing(&self, settings: &CodelSettings) -> Duration {
        settings.interval.div_f64(f64::from(self.count.max(1)).sqrt())
    }

    /// The oldest packet, and whether its delay has been above the target for an interval.
    fn next(
        &mut self,
        settings: &CodelSettings,
        fifo: &mut Fifo,
        now: MonoTime,
    ) -> (Option<Packet>, bool) {
        let Some((came, packet)) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let short = now.duration_since(came) < settings.target
            || fifo.backlog().bytes <= u64::from(settings.mtu_bytes);
        if short {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + settings.interval);
        (Some(packet), now >= first_above)
    }
}

/// Marks the packet, or loses it.
fn refuse(
    settings: &CodelSettings,
    mut packet: Packet,
    now: MonoTime,
    out: &mut Outlet,
) -> Option<Packet> {
    if settings.ecn && packet.ecn.may_be_marked() {
        packet.ecn = Ecn::Experienced;
        return Some(packet);
    }
    out.record_loss(now, packet, PathLossCause::QueueEarly);
    None
}

/// A CoDel queue.
#[derive(Debug)]
pub struct Codel {
    settings: CodelSettings,
    limit: Limit,
    fifo: Fifo,
    control: Control,
}

impl Codel {
    /// An empty queue that holds `limit` at the most.
    pub fn new(settings: CodelSettings, limit: Limit) -> Self {
        Self { settings, limit, fifo: Fifo::default(), control: Control::default() }
    }
}

impl Queue for Codel {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.limit.admits(self.fifo.backlog(), &packet) {
            self.fifo.push(at, packet);
        } else {
            out.record_loss(at, packet, PathLossCause::QueueFull);
        }
    }

    fn get(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        self.control.get(&self.settings, &mut self.fifo, at, out)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, time_at_ns};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue that stands at 50 ms: a packet comes and one goes each millisecond.
    fn drops_of_a_standing_queue(ms: u64) -> Vec<u64> {
        let mut codel = Codel::new(CodelSettings::STANDARD, Limit::Packets(10_000));
        let mut out = Outlet::default();
        for _ in 0..50 {
            codel.enqueue(time_at_ns(0), packet(1500), &mut out);
        }
        for now in 1..ms {
            codel.enqueue(time_at_ns(now * MS), packet(1500), &mut out);
            let lost = out.lost.len();
            let _ = codel.get(time_at_ns(now * MS), &mut out);
            // Keeps the queue standing: what was dropped is put back.
            for _ in lost..out.lost.len() {
                codel.enqueue(time_at_ns(now * MS), packet(1500), &mut out);
            }
        }
        out.lost.iter().map(|lost| lost.at.as_nanos() / MS).collect()
    }

    #[test]
    fn drops_come_after_an_interval_and_then_ever_closer() {
        // Above the target from 5 ms on, so the first drop is an interval later, at 105 ms; then
        // after 100/sqrt(1), 100/sqrt(2), 100/sqrt(3) ms … (RFC 8289 §5.2), to the next whole ms.
        let drops = drops_of_a_standing_queue(500);
        assert_eq!(drops[..5], [105, 205, 276, 334, 384]);
    }

    #[test]
    fn a_queue_below_the_target_is_left_alone() {
        let mut codel = Codel::new(CodelSettings::STANDARD, Limit::Packets(10_000));
        let mut out = Outlet::default();
        for now in 0..10_000 {
            codel.enqueue(time_at_ns(now * MS), packet(1500), &mut out);
            codel.enqueue(time_at_ns(now * MS), packet(1500), &mut out);
            assert!(codel.get(time_at_ns(now * MS + 4 * MS), &mut out).is_some());
            assert!(codel.get(time_at_ns(now * MS + 4 * MS), &mut out).is_some());
        }
        assert!(out.lost.is_empty());
    }
}
