//! The clock of a simulation: packets, timers and the two directions of the path.
//!
//! The two ends see nothing of each other for as long as the path delays every packet, so each is
//! run that far ahead of the other, a flight at a time and without a queue of events; a direction
//! then takes a whole flight element by element. Paths without delay, and directions that share a
//! medium, go event by event ([`Simulation::advance_by_event`]); both give the same result.

use std::time::Duration;

use super::direction::{Acks, Direction, FLOWS_MAX, parts_of, tag_of};
use super::flow::{FlowPlan, FlowResult, TcpModel};
use super::receiver::{Ack, Receiver};
use super::sender::Sender;
use super::timers::Timers;
use crate::path::{Ecn, Packet, Pipeline};
use crate::time::MonoTime;

/// Length of a selective block in an acknowledgement (RFC 2018 §3).
const BLOCK_BYTES: u32 = 8;

/// TCP flows over one path.
#[derive(Debug)]
pub struct Simulation {
    senders: Vec<Sender>,
    receivers: Vec<End>,
    forward: Direction,
    backward: Direction,
    acks: Acks,
    /// Starts and retransmission timers.
    send_timers: Timers,
    ack_timers: Timers,
    started: Vec<bool>,
    /// Flows that have not reached their end.
    running: usize,
    /// The senders have done all up to here, and the receivers, too.
    now: MonoTime,
    events: u64,
}

/// A receiving end.
#[derive(Debug)]
struct End {
    receiver: Receiver,
    tcp: TcpModel,
    hash: u32,
}

/// What a simulation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationResult {
    /// One result a flow, in the order of the plans.
    pub flows: Vec<FlowResult>,
    /// Virtual time that passed: until the end asked for, or until the last flow had reached its
    /// own.
    pub span: Duration,
    /// Packets delivered and timers run.
    pub events: u64,
    /// Data packets lost on the way there, by any cause.
    pub lost_forward: u64,
    /// Acknowledgements lost on the way back.
    pub lost_backward: u64,
}

impl Simulation {
    /// Most flows of one simulation.
    pub const FLOWS_MAX: usize = FLOWS_MAX;

    /// Flows from one end of the path to the other; acknowledgements take `backward`. A path must
    /// have a rate or a delay in one direction: over one that has neither, a flow without an end
    /// sends for ever at one point in time.
    ///
    /// # Panics
    /// With more flows than [`Simulation::FLOWS_MAX`].
    pub fn new(flows: &[FlowPlan], forward: Pipeline, backward: Pipeline) -> Self {
        assert!(flows.len() <= FLOWS_MAX, "{} flows are too many", flows.len());
        let end =
            |plan: &FlowPlan| End { receiver: Receiver::default(), tcp: plan.tcp, hash: plan.hash };
        let mut send_timers = Timers::new(flows.len());
        for (index, plan) in flows.iter().enumerate() {
            send_timers.set(index, plan.start);
        }
        Self {
            senders: flows.iter().map(|plan| Sender::new(*plan)).collect(),
            receivers: flows.iter().map(end).collect(),
            forward: Direction::new(forward),
            backward: Direction::new(backward),
            acks: Acks::default(),
            send_timers,
            ack_timers: Timers::new(flows.len()),
            started: vec![false; flows.len()],
            running: flows.len(),
            now: MonoTime::default(),
            events: 0,
        }
    }

    /// Runs until `end`, or until every flow has reached its own.
    pub fn run(mut self, end: MonoTime) -> SimulationResult {
        self.advance(end);
        self.result()
    }

    /// Goes on until `end`; whether flows are left that have not reached their own.
    pub fn advance(&mut self, end: MonoTime) -> bool {
        let [forward, backward] = [&self.forward, &self.backward].map(Direction::pipeline);
        let [there, back] = [forward.transit_min(), backward.transit_min()];
        if forward.is_shared() || backward.is_shared() || (there + back).is_zero() {
            return self.advance_by_event(end);
        }
        self.run_senders(self.now);
        while self.running > 0 && self.now < end {
            self.forward.run_ahead(self.now, |_| {});
            let received = (self.now + there).min(end);
            self.run_receivers(received);
            let acks = &mut self.acks;
            self.backward.run_ahead(received, |tag| _ = acks.take(tag));
            self.now = (received + back).min(end);
            self.run_senders(self.now);
            self.skip_idle_time(end);
        }
        self.running > 0
    }

    /// The same, every event by itself: the plain way, that works on every path.
    pub fn advance_by_event(&mut self, end: MonoTime) -> bool {
        while self.running > 0 {
            let Some(now) = self.next().filter(|next| *next <= end) else {
                self.now = end;
                break;
            };
            self.now = now;
            self.forward.run(now, |_| {});
            self.run_receivers(now);
            let acks = &mut self.acks;
            self.backward.run(now, |tag| _ = acks.take(tag));
            self.run_senders(now);
        }
        self.running > 0
    }

    /// Virtual time so far.
    pub const fn now(&self) -> MonoTime {
        self.now
    }

    /// Packets delivered and timers run so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Payload of all flows that was acknowledged so far.
    pub fn acked_bytes(&self) -> u64 {
        self.senders.iter().map(Sender::acked_bytes).sum()
    }

    /// What it gave so far.
    pub fn result(&self) -> SimulationResult {
        SimulationResult {
            span: self.now.since(MonoTime::default()),
            events: self.events,
            flows: self.senders.iter().map(Sender::result).collect(),
            lost_forward: self.forward.lost,
            lost_backward: self.backward.lost,
        }
    }

    fn next(&self) -> Option<MonoTime> {
        let timers = [self.send_timers.next(), self.ack_timers.next()];
        let directions = [self.forward.next(), self.backward.next()];
        timers.into_iter().chain(directions).flatten().min()
    }

    /// While nothing is under way nothing has to be done until just before the next timer.
    fn skip_idle_time(&mut self, end: MonoTime) {
        if self.running == 0 || self.forward.has_entries() {
            return;
        }
        let next =
            self.next().map_or(end, |next| MonoTime::from_nanos(next.nanos().saturating_sub(1)));
        self.now = self.now.max(next.min(end));
    }

    /// Hands over data and runs the timers of receivers, in order of time, up to `until`.
    fn run_receivers(&mut self, until: MonoTime) {
        loop {
            let timer = self.ack_timers.next().filter(|at| *at <= until);
            match self.forward.front().copied().filter(|front| front.at <= until) {
                Some(front) if timer.is_none_or(|timer| front.at <= timer) => {
                    self.forward.pop();
                    self.deliver_data(front.at, front.packet.tag);
                }
                _ if timer.is_some() => self.run_ack_timer(),
                _ => return,
            }
        }
    }

    fn deliver_data(&mut self, at: MonoTime, tag: u64) {
        self.events += 1;
        let (index, number) = parts_of(tag);
        let End { receiver, tcp, .. } = &mut self.receivers[index];
        if let Some(ack) = receiver.take(at, number, tcp) {
            self.send_ack(at, index, ack);
        } else if let Some(due) = receiver.ack_due {
            self.ack_timers.set(index, due);
        }
    }

    fn run_ack_timer(&mut self) {
        let Some((at, index)) = self.ack_timers.pop() else { return };
        let receiver = &mut self.receivers[index].receiver;
        match receiver.ack_due {
            Some(due) if due <= at => {
                self.events += 1;
                let ack = receiver.acknowledge();
                self.send_ack(at, index, ack);
            }
            Some(due) => self.ack_timers.set(index, due),
            None => {}
        }
    }

    fn send_ack(&mut self, at: MonoTime, index: usize, ack: Ack) {
        let End { tcp, hash, .. } = &self.receivers[index];
        let blocks = ack.blocks.iter().filter(|(from, to)| from < to).count();
        let blocks = u32::try_from(blocks).expect("at most three");
        let option = if blocks > 0 { 4 + BLOCK_BYTES * blocks } else { 0 };
        let (bytes, hash) = (tcp.header_bytes + option, *hash);
        let tag = self.acks.put(index, ack);
        self.backward.send(at, packet(bytes, hash, tag));
    }

    /// Hands over acknowledgements and runs the timers of senders, in order of time, up to `until`
    /// or the end of the last flow.
    fn run_senders(&mut self, until: MonoTime) {
        while self.running > 0 {
            let timer = self.send_timers.next().filter(|at| *at <= until);
            match self.backward.front().copied().filter(|front| front.at <= until) {
                Some(front) if timer.is_none_or(|timer| front.at <= timer) => {
                    self.backward.pop();
                    self.deliver_ack(front.at, front.packet.tag);
                }
                _ if timer.is_some() => self.run_send_timer(),
                _ => return,
            }
        }
    }

    fn deliver_ack(&mut self, at: MonoTime, tag: u64) {
        self.events += 1;
        let Some((index, ack)) = self.acks.take(tag) else { return };
        let sender = &mut self.senders[index];
        let was_finished = sender.is_finished();
        sender.acknowledge(at, &ack);
        if sender.is_finished() && !was_finished {
            self.running -= 1;
            self.now = if self.running == 0 { at } else { self.now };
        }
        self.send_data(at, index);
    }

    fn run_send_timer(&mut self) {
        let Some((at, index)) = self.send_timers.pop() else { return };
        let sender = &mut self.senders[index];
        if !std::mem::replace(&mut self.started[index], true) {
            self.events += 1;
        } else if sender.rto_due.is_some_and(|due| due <= at) {
            self.events += 1;
            sender.on_timeout(at);
        }
        self.send_data(at, index);
    }

    fn send_data(&mut self, at: MonoTime, index: usize) {
        let sender = &mut self.senders[index];
        let plan = sender.plan();
        let (bytes, hash) = (plan.tcp.mss_bytes + plan.tcp.header_bytes, plan.hash);
        while let Some(number) = sender.send(at) {
            self.forward.send(at, packet(bytes, hash, tag_of(index, number)));
        }
        if let Some(due) = sender.rto_due {
            self.send_timers.set(index, due);
        }
    }
}

const fn packet(ip_bytes: u32, flow: u32, tag: u64) -> Packet {
    Packet {
        number: 0,
        ip_bytes,
        flow,
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        corrupted: false,
        tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Bernoulli, Delay, Element, Framing, Limit, Link, Random, TailDrop};
    use crate::simulate::{CongestionControl, Recovery, TcpModel};
    use crate::units::BitRate;

    /// A path of a rate (of payload and headers), a round trip and a buffer.
    #[derive(Clone, Copy)]
    struct Path {
        rate_bps: u64,
        rtt: Duration,
        buffer_packets: u64,
        loss: f64,
    }

    fn run(path: Path, flows: &[FlowPlan], seconds: u64) -> SimulationResult {
        let delay = || -> Box<dyn Element> { Box::new(Delay::new(path.rtt / 2)) };
        let rate = BitRate::from_bits_per_sec(path.rate_bps);
        let queue = TailDrop::new(Limit::Packets(path.buffer_packets));
        let loss = Bernoulli::new(path.loss, Random::new(1, 0));
        let forward = Pipeline::new(vec![
            Box::new(loss),
            Box::new(Link::new(rate, Framing::Ip, queue)),
            delay(),
        ]);
        let end = MonoTime::default() + Duration::from_secs(seconds);
        Simulation::new(flows, forward, Pipeline::new(vec![delay()])).run(end)
    }

    fn flow(tcp: TcpModel, bytes: Option<u64>) -> FlowPlan {
        FlowPlan { tcp, start: MonoTime::default(), bytes, hash: 0, points_every: None }
    }

    /// No headers, acknowledgements of every segment at once: the model of the formulas.
    fn plain(mss_bytes: u32) -> TcpModel {
        TcpModel { mss_bytes, header_bytes: 0, ack_every: 1, hystart: false, ..TcpModel::TODAY }
    }

    const FAST: Path = Path {
        rate_bps: 1_000_000_000,
        rtt: Duration::from_millis(21),
        buffer_packets: 100_000,
        loss: 0.0,
    };

    #[test]
    fn a_transfer_without_loss_takes_the_time_of_the_formula() {
        // Rounds until the window covers the path, then the rest at the link's rate, then one
        // round trip: 1 MB at 50 Mbit/s and 40 ms 0.3283 s, 100 kB 0.1293 s, 1 MB at 1 Gbit/s
        // and 21 ms 0.1477 s. The formula lets the last round begin when the first segment of the
        // one before is acknowledged; here segments leave as they are acknowledged: within 4 %.
        let slow = Path { rate_bps: 50_000_000, rtt: Duration::from_millis(40), ..FAST };
        for (path, bytes, seconds) in
            [(slow, 1_000_000, 0.3283), (slow, 100_000, 0.1293), (FAST, 1_000_000, 0.1477)]
        {
            let result = run(path, &[flow(plain(1448), Some(bytes))], 10);
            let took = result.flows[0].finished_after.expect("it ends").as_secs_f64();
            assert!((took / seconds - 1.0).abs() < 0.04, "{bytes}: {took}, formula {seconds}");
            assert_eq!(result.flows[0].retransmitted, 0);
        }
    }

    #[test]
    fn a_window_bounds_the_rate() {
        // 65,160 bytes (45 segments) each 21 ms and the 11.6 µs that a segment takes: 24.81 Mbit/s.
        let tcp = TcpModel { window_bytes: 65_535, ..plain(1448) };
        let result = run(FAST, &[flow(tcp, None)], 20);
        let rate = result.flows[0].acked_bytes as f64 * 8.0 / 20.0 / 1e6;
        assert!((rate / 24.81 - 1.0).abs() < 0.01, "{rate}");
    }

    /// Rate of a long Reno flow under random loss, beside the formula of Mathis et al. 1997.
    fn mathis_share(recovery: Recovery, loss: f64) -> f64 {
        let congestion_control = CongestionControl::RENO;
        let tcp = TcpModel { congestion_control, recovery, growth_per_ack: 1, ..plain(1448) };
        let path = Path { loss, ..FAST };
        let result = run(path, &[flow(tcp, None)], 200);
        let rate = result.flows[0].acked_bytes as f64 * 8.0 / 200.0;
        rate / (1448.0 * 8.0 / 0.021 * 1.5_f64.sqrt() / loss.sqrt())
    }

    #[test]
    fn reno_under_random_loss_keeps_to_the_square_root_rule() {
        // C = sqrt(3/2) holds for periodic loss; under independent loss it is about 1.31 for the
        // window average and less with the time lost in recovery (Mathis 1997 §3): within 15 %.
        for loss in [1e-3, 1e-4] {
            let share = mathis_share(Recovery::Sack, loss);
            assert!((0.85..1.15).contains(&share), "{loss}: {share}");
        }
    }

    #[test]
    fn two_flows_share_a_link_and_fill_it() {
        let tcp = TcpModel { congestion_control: CongestionControl::RENO, ..plain(1448) };
        let path = Path { rate_bps: 50_000_000, buffer_packets: 100, ..FAST };
        let flows = [flow(tcp, None), FlowPlan { hash: 1, ..flow(tcp, None) }];
        let result = run(path, &flows, 120);
        let rates: Vec<f64> =
            result.flows.iter().map(|flow| flow.acked_bytes as f64 * 8.0 / 120e6).collect();
        let sum: f64 = rates.iter().sum();
        assert!((48.0..=50.0).contains(&sum), "{rates:?}");
        assert!(rates.iter().all(|&rate| rate > 15.0), "{rates:?}");
    }

    #[test]
    fn a_transfer_with_losses_ends_with_every_recovery() {
        for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let tcp = TcpModel { recovery, ..plain(1448) };
            let path = Path { loss: 0.02, ..FAST };
            let result = run(path, &[flow(tcp, Some(3_000_000))], 600);
            let flow = &result.flows[0];
            assert!(flow.finished_after.is_some(), "{recovery:?}: {flow:?}");
            assert!(flow.retransmitted >= result.lost_forward, "{recovery:?}: {result:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_result() {
        let path = Path { loss: 0.001, ..FAST };
        let once = || run(path, &[flow(plain(1448), None)], 30);
        assert_eq!(once(), once());
    }
}
