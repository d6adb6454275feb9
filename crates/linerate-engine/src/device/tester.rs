//! The tester: its ports with generators and counters, opened as planned.

use linerate_core::device::{ForeignFrames, SendCounts};
use linerate_core::record::{
    BenchFrames, BenchPlan, BenchTimes, BenchTrial, CounterKind, Failure, Fault, GeneratorKind,
    PortFacts,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::monotonic;
use linerate_sys::sched;
use linerate_sys::xdp::{SinkExpected, StreamExpected};

use super::check::PortNow;
use super::frames::{self, PortFrameSet, Station};
use super::namespaces::Namespaces;
use super::port::TesterPort;
use super::setup::{FramePattern, SenderResult, TrialAbort};
use crate::context::Context;

/// Frames of a number that is remembered; a flood has no number.
const REMEMBERED: u64 = 1 << 28;

/// Foreign frames and own drops of each port's counter.
type ForeignAndDrops = Vec<(ForeignFrames, u64)>;

/// The tester, ready for trials.
pub(super) struct BenchTester<'a, 'b> {
    pub namespaces: &'a dyn Namespaces,
    pub context: &'a mut Context<'b>,
    pub ports: Vec<TesterPort>,
    /// Ports that send in a trial, unless it says otherwise.
    pub senders: Vec<usize>,
    pub times: BenchTimes,
    pub frames: BenchFrames,
    pub began: MonoTime,
    /// The upper half is the same in all trials of this tester.
    pub trial_number: u32,
    pub trials: Vec<BenchTrial>,
    pub generator: GeneratorKind,
    pub counter: CounterKind,
    /// Mixes of the ports' templates.
    pub mixes: Vec<Vec<u8>>,
    /// Shortest and longest frame without FCS.
    pub lengths: (usize, usize),
    /// Which frames the generators have, where they are not the plan's.
    pub loaded: Option<FramePattern>,
}

impl<'a, 'b> BenchTester<'a, 'b> {
    /// Opens all ports. Nothing is sent but questions for hardware addresses.
    pub(super) fn open_ports(
        plan: &BenchPlan,
        namespaces: &'a dyn Namespaces,
        context: &'a mut Context<'b>,
    ) -> Result<Self, Failure> {
        let opened = plan.ports.iter().enumerate();
        let opened =
            opened.map(|(number, port)| TesterPort::open_interface(namespaces, port, number));
        let mut ports: Vec<TesterPort> = opened.collect::<Result<_, _>>()?;
        check_mtu(&plan.frames, &ports)?;
        let counters = plan.counter.map_or_else(|| COUNTERS.to_vec(), |kind| vec![kind]);
        let mut counter = CounterKind::Xdp;
        for port in &mut ports {
            counter = port.count_by(namespaces, &counters)?;
            port.answer(namespaces, &plan.frames)?;
        }
        let senders = (0..plan.way.senders(ports.len())).collect();
        let mut tester = Self {
            namespaces,
            context,
            ports,
            senders,
            times: plan.times.clone(),
            frames: plan.frames.clone(),
            began: monotonic(),
            trial_number: (plan.seed as u32) << 16,
            trials: Vec::new(),
            generator: GeneratorKind::Packet,
            counter,
            mixes: Vec::new(),
            lengths: (0, 0),
            loaded: None,
        };
        tester.open_generators(plan.generator)?;
        namespaces.trials_begin(tester.trial_number);
        Ok(tester)
    }

    fn open_generators(&mut self, kind: Option<GeneratorKind>) -> Result<(), Failure> {
        let kinds = kind.map_or_else(|| GENERATORS.to_vec(), |kind| vec![kind]);
        let stations: Vec<Station> = self.ports.iter().map(|port| port.station.clone()).collect();
        for at in 0..self.ports.len() {
            let frame_set = self.frames_of(at, &stations)?;
            let cpu = cpu_of(at, self.senders.len());
            self.generator = self.ports[at].send_by(self.namespaces, &kinds, &frame_set, cpu)?;
            self.note_lengths(at, frame_set);
        }
        Ok(())
    }

    fn note_lengths(&mut self, at: usize, frame_set: PortFrameSet) {
        if self.mixes.len() <= at {
            self.mixes.resize(at + 1, Vec::new());
        }
        self.mixes[at] = frame_set.mix;
        let (shortest, longest) = frame_set.lengths;
        let (least, most) = self.lengths;
        self.lengths = (if least == 0 { shortest } else { least.min(shortest) }, most.max(longest));
    }

    /// Gives the senders of a trial its frames: the plan's own, or those of a pattern.
    pub(super) fn load_pattern(
        &mut self,
        pattern: Option<&FramePattern>,
        senders: &[usize],
    ) -> Result<(), Failure> {
        if self.loaded.as_ref() == pattern {
            return Ok(());
        }
        let stations: Vec<Station> = self.ports.iter().map(|port| port.station.clone()).collect();
        for at in 0..self.ports.len() {
            // A pattern is for the senders alone; the plan's own frames are given back to all.
            if pattern.is_some() && !senders.contains(&at) {
                continue;
            }
            let frame_set = match pattern {
                None => self.frames_of(at, &stations)?,
                Some(pattern) => frames_of_pattern(&self.frames, pattern, at, &stations)?,
            };
            let cpu = cpu_of(at, senders.len());
            self.ports[at].load_frames(self.namespaces, self.generator, &frame_set, cpu)?;
            self.note_lengths(at, frame_set);
        }
        self.loaded = pattern.cloned();
        Ok(())
    }

    /// The frames that a port sends: to the next of two, to every other in a mesh.
    fn frames_of(&self, at: usize, stations: &[Station]) -> Result<PortFrameSet, Failure> {
        let others: Vec<&Station> = if self.senders.len() > 2 {
            stations
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|station| station.1)
                .collect()
        } else {
            vec![&stations[usize::from(at == 0)]]
        };
        frames::frame_set(&self.frames, &stations[at], &others)
    }

    /// Sets all counters to 0 for a trial.
    pub(super) fn counters_begin(&mut self, frames: u64) -> Result<(), Failure> {
        let frames = frames.min(REMEMBERED);
        let streams: Vec<u8> = self.ports.iter().map(|port| port.stream).collect();
        for port in &mut self.ports {
            let others = streams.iter().filter(|stream| **stream != port.stream);
            let expected = SinkExpected {
                trial: self.trial_number,
                streams: others.map(|&stream| StreamExpected { stream, frames }).collect(),
                own_streams: vec![port.stream],
                shortest: self.lengths.0,
                longest: self.lengths.1,
            };
            port.begin_counting(&expected)?;
        }
        Ok(())
    }

    /// Every link is up.
    pub(super) fn links_are_up(&mut self) -> Result<Vec<PortNow>, Failure> {
        let now = self.facts_now()?;
        match now.iter().find(|port| !port.running) {
            None => Ok(now),
            Some(port) => Err(Failure::new(
                Fault::Unreachable,
                "send frames on",
                &port.name,
                "its link is down",
            )
            .advise("check that the cable is connected and the device is on")),
        }
    }

    /// The interfaces as they are now.
    pub(super) fn facts_now(&self) -> Result<Vec<PortNow>, Failure> {
        self.ports.iter().map(|port| port.current_state(self.namespaces)).collect()
    }

    /// Bridges and neighbours learn where the ports are.
    pub(super) fn send_learning_frames(&self) -> Result<(), Failure> {
        self.ports.iter().try_for_each(TesterPort::send_learning_frames)
    }

    /// Reads each port's counter: the counts of the senders' frames, and beside them the foreign
    /// frames and those that the counter itself dropped.
    pub(super) fn read_results(
        &mut self,
        senders: &[usize],
        sent: Vec<SendCounts>,
        arrivals: bool,
    ) -> Result<(Vec<SenderResult>, ForeignAndDrops), TrialAbort> {
        let mut results: Vec<SenderResult> =
            sent.into_iter().map(|sent| SenderResult { sent, ..SenderResult::default() }).collect();
        let mut beside = Vec::new();
        for at in 0..self.ports.len() {
            let counted = self.ports[at].read()?;
            beside.push((counted.foreign, counted.dropped));
            for (stream, received) in counted.streams {
                let Some(result) = senders.iter().position(|sender| *sender == usize::from(stream))
                else {
                    continue;
                };
                // What was lost while the sender was away is told from the rest by its numbers.
                let lost = results[result].sent.frames > received.frames;
                let watched = &results[result].sent.timing;
                let look = arrivals || lost && (watched.could_lose, watched.away_ns) != (0, 0);
                if look && received.frames > 0 {
                    let came = self.ports[at].arrivals(stream)?;
                    join_arrivals(&mut results[result].arrivals, came);
                }
                results[result].received.push((at, received));
            }
        }
        Ok((results, beside))
    }

    /// The interface facts of each port, in the order of the ports.
    pub(super) fn port_facts(&self) -> Vec<PortFacts> {
        self.ports.iter().map(|port| port.facts.clone()).collect()
    }
}

/// Frames of one sender may come out at several ports, each at one of them.
fn join_arrivals(all: &mut Vec<Option<u64>>, came: Vec<Option<u64>>) {
    if all.is_empty() {
        *all = came;
    } else {
        all.iter_mut().zip(came).for_each(|(one, other)| *one = one.or(other));
    }
}

/// Generators share the first processors; the others are left to the device.
fn cpu_of(at: usize, senders: usize) -> Option<u32> {
    let cores = sched::allowed_cores();
    let own = cores.get(at.min(cores.len().saturating_sub(1))).copied();
    if senders > 1 { own } else { cores.first().copied() }
}

/// Frames of a port in a pattern.
fn frames_of_pattern(
    frames: &BenchFrames,
    pattern: &FramePattern,
    at: usize,
    stations: &[Station],
) -> Result<PortFrameSet, Failure> {
    match pattern {
        FramePattern::Learning(learnt, to) => frames::learning(frames, *learnt, &stations[*to]),
        FramePattern::Learnt(learnt) => frames::learnt(frames, *learnt, &stations[at]),
        FramePattern::Towards(outputs) => {
            let others = outputs.get(at).into_iter().flatten();
            let others: Vec<&Station> = others.map(|other| &stations[*other]).collect();
            frames::frame_set(frames, &stations[at], &others)
        }
    }
}

const COUNTERS: [CounterKind; 2] = [CounterKind::Xdp, CounterKind::Packet];
const GENERATORS: [GeneratorKind; 3] =
    [GeneratorKind::Live, GeneratorKind::Xdp, GeneratorKind::Packet];

/// Header of Ethernet and FCS, which the MTU does not count; and a VLAN tag.
const ETHERNET_BYTES: u32 = 18;
const TAG_BYTES: u32 = 4;

fn check_mtu(plan: &BenchFrames, ports: &[TesterPort]) -> Result<(), Failure> {
    let tags = u32::try_from(plan.vlans.len()).unwrap_or(0) * TAG_BYTES;
    let longest = frames::longest_bytes(plan)?;
    let needed = longest.saturating_sub(ETHERNET_BYTES + tags);
    let Some(port) = ports.iter().find(|port| port.facts.mtu_bytes < needed) else {
        return Ok(());
    };
    let reason = format!("frames of {longest} bytes need an MTU of {needed}");
    let object = format!("{}, whose MTU is {}", port.name, port.facts.mtu_bytes);
    Err(Failure::new(Fault::Usage, "send frames on", object, reason)
        .advise("raise the MTU, on the device too, or omit this frame size"))
}
