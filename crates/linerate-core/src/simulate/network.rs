//! The clock of a simulation: packets, timers and the two directions of the path.
//!
//! The two ends see nothing of each other for as long as the path delays every packet, so each is
//! run that far ahead of the other, a flight at a time and without a queue of events; a direction
//! then takes a whole flight element by element. Paths without delay, and directions that share a
//! medium, go event by event ([`Simulation::advance_by_event`]); both give the same result.

use std::time::Duration;

use super::TcpModel;
use super::direction::{
    AcksOnPath, DirectionResult, DirectionState, FLOWS_MAX, parts_of, tag_of_sent,
};
use super::flow::{FlowPlan, FlowResult};
use super::receiver::{Ack, BLOCKS, TcpReceiver};
use super::sender::TcpSender;
use super::timers::Timers;
use crate::path::{Ecn, Packet, Pipeline};
use crate::time::MonoTime;

/// Length of a selective block in an acknowledgement (RFC 2018 §3).
const BLOCK_BYTES: u32 = 8;

/// TCP flows over one path.
#[derive(Debug)]
pub struct Simulation {
    senders: Vec<TcpSender>,
    receivers: Vec<ReceivingEnd>,
    forward: DirectionState,
    backward: DirectionState,
    acks: AcksOnPath,
    /// Starts and retransmission timers.
    send_timers: Timers,
    ack_timers: Timers,
    started: Vec<bool>,
    /// Flows that have not reached their end.
    running: usize,
    /// The senders have done all up to here.
    now: MonoTime,
    /// The receivers have done all up to here.
    received: MonoTime,
    events: u64,
}

/// A receiving end: TCP and the receiver's state.
#[derive(Debug)]
struct ReceivingEnd {
    receiver: TcpReceiver,
    tcp: TcpModel,
    hash: u32,
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationResult {
    /// Results of the flows, in the order of the plans.
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
    /// Results of the two directions of the path, that of the data first.
    pub directions: [DirectionResult; 2],
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
        let end = |plan: &FlowPlan| ReceivingEnd {
            receiver: TcpReceiver::default(),
            tcp: plan.tcp,
            hash: plan.hash,
        };
        let mut send_timers = Timers::new(flows.len());
        for (index, plan) in flows.iter().enumerate() {
            send_timers.set_due_time(index, plan.start);
        }
        Self {
            senders: flows.iter().map(|plan| TcpSender::new(*plan)).collect(),
            receivers: flows.iter().map(end).collect(),
            forward: DirectionState::new(forward),
            backward: DirectionState::new(backward),
            acks: AcksOnPath::default(),
            send_timers,
            ack_timers: Timers::new(flows.len()),
            started: vec![false; flows.len()],
            running: flows.len(),
            now: MonoTime::default(),
            received: MonoTime::default(),
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
        let [forward, backward] = [&self.forward, &self.backward].map(DirectionState::pipeline);
        let [there, back] = [forward.transit_min(), backward.transit_min()];
        if forward.is_shared() || backward.is_shared() || (there + back).is_zero() {
            return self.advance_by_event(end);
        }
        self.run_senders(self.now);
        while self.running > 0 && self.now.min(self.received) < end {
            self.forward.run_ahead(self.now, |_| {});
            self.received = (self.now + there).min(end);
            self.run_receivers(self.received);
            let acks = &mut self.acks;
            self.backward.run_ahead(self.received, |tag| _ = acks.remove(tag));
            self.now = (self.received + back).min(end);
            self.run_senders(self.now);
            self.skip_idle_time(end);
        }
        self.running > 0
    }

    /// Advances event by event: the plain way, that works on every path.
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
            self.backward.run(now, |tag| _ = acks.remove(tag));
            self.run_senders(now);
        }
        self.running > 0
    }

    /// The shortest time in which a packet and its acknowledgement can cross the path.
    pub fn rtt_min(&self) -> Duration {
        self.forward.pipeline().transit_min() + self.backward.pipeline().transit_min()
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
        self.senders.iter().map(TcpSender::acked_bytes).sum()
    }

    /// Result up to now.
    pub fn result(&self) -> SimulationResult {
        SimulationResult {
            span: self.now.duration_since(MonoTime::default()),
            events: self.events,
            flows: self.senders.iter().map(TcpSender::result).collect(),
            lost_forward: self.forward.done.lost_packets(),
            lost_backward: self.backward.done.lost_packets(),
            directions: [self.forward.done.clone(), self.backward.done.clone()],
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
            self.next().map_or(end, |next| MonoTime::from_nanos(next.as_nanos().saturating_sub(1)));
        self.now = self.now.max(next.min(end));
    }

    /// Hands over data and runs the timers of receivers, in order of time, up to `until`.
    fn run_receivers(&mut self, until: MonoTime) {
        loop {
            let timer = self.ack_timers.next().filter(|at| *at <= until);
            match self.forward.next_departure().copied().filter(|front| front.at <= until) {
                Some(front) if timer.is_none_or(|timer| front.at <= timer) => {
                    self.forward.pop();
                    // The checksum is wrong: the receiver's kernel drops it unseen.
                    if !front.packet.corrupted {
                        self.deliver_data(front.at, front.packet.tag);
                    }
                }
                _ if timer.is_some() => self.run_ack_timer(),
                _ => return,
            }
        }
    }

    fn deliver_data(&mut self, at: MonoTime, tag: u64) {
        self.events += 1;
        let (index, sent) = parts_of(tag);
        let ReceivingEnd { receiver, tcp, .. } = &mut self.receivers[index];
        if let Some(ack) = receiver.receive(at, sent, tcp) {
            self.send_ack(at, index, ack);
        } else if let Some(due) = receiver.ack_due {
            self.ack_timers.set_due_time(index, due);
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
            Some(due) => self.ack_timers.set_due_time(index, due),
            None => {}
        }
    }

    fn send_ack(&mut self, at: MonoTime, index: usize, ack: Ack) {
        let ReceivingEnd { tcp, hash, .. } = &self.receivers[index];
        let blocks = ack.blocks.iter().filter(|(from, to)| from < to).count();
        // The duplicate is told in the first block (RFC 2883).
        let blocks = (blocks + usize::from(ack.duplicate.is_some())).min(BLOCKS);
        let blocks = u32::try_from(blocks).expect("at most three");
        let option = if blocks > 0 { 4 + BLOCK_BYTES * blocks } else { 0 };
        let (bytes, hash) = (tcp.header_bytes + option, *hash);
        let tag = self.acks.insert(index, ack);
        self.backward.send(at, packet(bytes, hash, tag));
    }

    /// Hands over acknowledgements and runs the timers of senders, in order of time, up to `until`
    /// or the end of the last flow.
    fn run_senders(&mut self, until: MonoTime) {
        while self.running > 0 {
            let timer = self.send_timers.next().filter(|at| *at <= until);
            match self.backward.next_departure().copied().filter(|front| front.at <= until) {
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
        let Some((index, ack)) = self.acks.remove(tag) else { return };
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
        } else if sender.next_event_time().is_some_and(|due| due <= at) {
            self.events += 1;
            sender.on_timer(at);
        }
        self.send_data(at, index);
    }

    fn send_data(&mut self, at: MonoTime, index: usize) {
        let sender = &mut self.senders[index];
        let plan = sender.flow_plan();
        let (bytes, hash) = (plan.tcp.mss_bytes + plan.tcp.header_bytes, plan.hash);
        while let Some(sent) = sender.send_segment(at) {
            self.forward.send(at, packet(bytes, hash, tag_of_sent(index, sent)));
        }
        if let Some(due) = sender.next_event_time() {
            self.send_timers.set_due_time(index, due);
        }
    }
}

const fn packet(ip_bytes: u32, flow: u32, tag: u64) -> Packet {
    Packet {
        number: 0,
        ip_bytes,
        flow,
        hosts: [0, 1],
        ecn: Ecn::NotCapable,
        dont_fragment: true,
        corrupted: false,
        tag,
    }
}
