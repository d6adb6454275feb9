//! One interface of the tester: what it is, what it sends, what it counts.

use std::net::IpAddr;
use std::time::Duration;

use linerate_core::device::{FrameLoad, FramePace, SendCounts, WhenLate};
use linerate_core::record::{
    BenchFrames, BenchPort, CounterKind, Failure, Fault, GeneratorKind, PortFacts,
};
use linerate_proto::test_frame::{Mac, Neighbours, Tags, address_request, announced_mac};
use linerate_sys::ethtool;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::raw_port::RawPort;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::SinkExpected;

use super::check::PortNow;
use super::counter::{Counted, Counter};
use super::frames::{PortFrameSet, Station};
use super::generator::{Outgoing, PortGenerator};
use super::namespaces::{Namespaces, inside};
use super::neighbours::{self, NeighbourResponder};
use crate::failure::system;

/// How long the device may take to tell its hardware address, and how often it is asked.
const ADDRESS_WAIT: Duration = Duration::from_millis(500);
const ADDRESS_TRIES: u32 = 6;

/// Frames of a probe, and the number of a trial that no counter expects.
const PROBE_FRAMES: u64 = 16;
const PROBE_TRIAL: u32 = u32::MAX;

/// The advice about a veth that refuses frames of a program: the kernel says nothing.
const NEEDS_NAPI: &str = "the veth's other end needs NAPI for them: `ethtool -K NAME gro on` there \
                          gives it one; or --generator packet";

/// One interface of the tester.
pub(super) struct TesterPort {
    /// The laboratory's host that has it.
    pub host: Option<String>,
    pub name: String,
    pub ifindex: u32,
    /// Number of the port, which is the stream of its frames.
    pub stream: u8,
    pub station: Station,
    pub facts: PortFacts,
    /// A link without hardware: whatever is behind it runs on this machine.
    pub is_virtual: bool,
    raw: RawPort,
    neighbours: Neighbours,
    keeper: Option<NeighbourResponder>,
    generator: Option<PortGenerator>,
    counter: Option<Counter>,
}

impl TesterPort {
    /// Looks at an interface; nothing is sent but questions for the device's hardware address.
    pub(super) fn open_interface(
        namespaces: &dyn Namespaces,
        plan: &BenchPort,
        number: usize,
    ) -> Result<Self, Failure> {
        inside(namespaces, plan.host.as_deref(), || Self::open_here(plan, number))?
    }

    fn open_here(plan: &BenchPort, number: usize) -> Result<Self, Failure> {
        let name = &plan.interface;
        let raw = RawPort::open(name).map_err(|error| system(&error))?;
        let mut links = RouteSocket::open().map_err(|error| system(&error))?;
        let link = links.link_by_name(name).map_err(|error| system(&error))?;
        if !link.running {
            return Err(Failure::new(Fault::System, "send frames on", name, "its link is down")
                .advise("set both ends up, and check the cable"));
        }
        let mac = Mac(raw.hardware_address());
        let address = address_of(plan.address.as_deref(), name)?;
        let mut station = Station { mac, address, gateway: None };
        if let Some(gateway) = address_of(plan.gateway.as_deref(), name)? {
            station.gateway = Some(resolve(&raw, &station, gateway, name)?);
        }
        let facts = PortFacts {
            interface: name.clone(),
            driver: link.kind.clone().or_else(|| ethtool::driver(name).ok()),
            // A virtual link has no medium, whatever rate its driver tells.
            speed_bps: match link.kind {
                Some(_) => None,
                None => ethtool::speed_bps(name).ok().flatten(),
            },
            mtu_bytes: link.mtu_bytes,
            hardware_address: mac.to_string(),
            notes: Vec::new(),
        };
        Ok(Self {
            host: plan.host.clone(),
            name: name.clone(),
            ifindex: raw.index(),
            stream: u8::try_from(number).unwrap_or(u8::MAX),
            station,
            facts,
            is_virtual: link.kind.is_some(),
            raw,
            neighbours: Neighbours::default(),
            keeper: None,
            generator: None,
            counter: None,
        })
    }

    /// Answers for the port's hosts from now on, until the port is dropped.
    pub(super) fn answer(
        &mut self,
        namespaces: &dyn Namespaces,
        frames: &BenchFrames,
    ) -> Result<(), Failure> {
        self.neighbours = Neighbours::new(neighbours::stations(&self.station, frames));
        let name = self.name.clone();
        let raw = inside(namespaces, self.host.as_deref(), || RawPort::open(&name))?;
        let raw = raw.map_err(|error| system(&error))?;
        self.keeper =
            Some(NeighbourResponder::start_responding(raw, self.neighbours.clone(), &self.name)?);
        Ok(())
    }

    /// Opens the counter; its kind is the first of `kinds` that works.
    pub(super) fn count_by(
        &mut self,
        namespaces: &dyn Namespaces,
        kinds: &[CounterKind],
    ) -> Result<CounterKind, Failure> {
        let (name, ifindex) = (self.name.clone(), self.ifindex);
        let mut refused = None;
        for kind in kinds {
            let opened =
                inside(namespaces, self.host.as_deref(), || Counter::open(*kind, &name, ifindex))?;
            match opened {
                Ok(counter) => {
                    self.facts.notes.push(counter.method_description().to_owned());
                    self.counter = Some(counter);
                    return Ok(*kind);
                }
                Err(failure) => refused = Some(self.note_failure(failure)),
            }
        }
        Err(refused.unwrap_or_else(|| nothing_left(&self.name, "count frames on")))
    }

    /// Opens the generator; its kind is the first of `kinds` that works.
    pub(super) fn send_by(
        &mut self,
        namespaces: &dyn Namespaces,
        kinds: &[GeneratorKind],
        frame_set: &PortFrameSet,
        cpu: Option<u32>,
    ) -> Result<GeneratorKind, Failure> {
        self.generator = None;
        let mut refused = None;
        for kind in kinds {
            let port = Outgoing {
                ifindex: self.ifindex,
                stream: self.stream,
                trial: 0,
                templates: &frame_set.templates,
                cpu,
            };
            match inside(namespaces, self.host.as_deref(), || PortGenerator::open(*kind, &port))? {
                Ok(generator) => {
                    self.generator = Some(generator);
                    match self.probe_generator(namespaces, *kind)? {
                        None => return Ok(*kind),
                        Some(failure) => refused = Some(self.note_failure(failure)),
                    }
                }
                Err(failure) => refused = Some(self.note_failure(failure)),
            }
        }
        self.generator = None;
        Err(refused.unwrap_or_else(|| nothing_left(&self.name, "send frames on")))
    }

    /// Opens a generator of a kind that worked, for other frames.
    pub(super) fn load_frames(
        &mut self,
        namespaces: &dyn Namespaces,
        kind: GeneratorKind,
        frame_set: &PortFrameSet,
        cpu: Option<u32>,
    ) -> Result<(), Failure> {
        self.generator = None;
        let port = Outgoing {
            ifindex: self.ifindex,
            stream: self.stream,
            trial: 0,
            templates: &frame_set.templates,
            cpu,
        };
        let opened = inside(namespaces, self.host.as_deref(), || PortGenerator::open(kind, &port))?;
        self.generator = Some(opened?);
        Ok(())
    }

    /// Frames that a program in the kernel sends over a veth are refused when the ring of its other
    /// end is full: they reached the device, whose loss they are, as on a wire.
    pub(super) fn refusals_are_losses(&self) -> bool {
        let virtual_link = self.facts.driver.as_deref() == Some("veth");
        virtual_link && matches!(self.generator, Some(PortGenerator::Live(_)))
    }

    /// Why the interface takes no frames now, when it is one that refuses them in silence: asked
    /// after a trial in which it refused some. What it refused was not lost by the device then.
    pub(super) fn closed(
        &mut self,
        namespaces: &dyn Namespaces,
    ) -> Result<Option<Failure>, Failure> {
        self.probe_generator(namespaces, GeneratorKind::Live)
    }

    /// Sends a few frames: why this way does not work here, if it does not. A veth, for one, takes
    /// frames of a program in the kernel only when its other end has NAPI, and says nothing.
    fn probe_generator(
        &mut self,
        namespaces: &dyn Namespaces,
        kind: GeneratorKind,
    ) -> Result<Option<Failure>, Failure> {
        let load = FrameLoad {
            frames: PROBE_FRAMES,
            pace: FramePace::Flood,
            when_late: WhenLate::KeepSchedule,
            burst: 1,
            mix: vec![0],
        };
        let host = self.host.clone();
        let sent = inside(namespaces, host.as_deref(), || {
            self.send_loads(PROBE_TRIAL, std::slice::from_ref(&load), &Stop::new())
        })?;
        let taken: u64 = match sent {
            Ok(parts) => parts.iter().map(|counts| counts.frames).sum(),
            Err(failure) => return Ok(Some(failure)),
        };
        if taken >= PROBE_FRAMES {
            return Ok(None);
        }
        let reason = format!("the interface took {taken} of {PROBE_FRAMES} frames of a probe");
        let failure =
            Failure::new(Fault::System, format!("send frames ({kind})"), &self.name, reason);
        Ok(Some(if self.refusals_are_losses() { failure.advise(NEEDS_NAPI) } else { failure }))
    }

    fn note_failure(&mut self, failure: Failure) -> Failure {
        let line = failure.to_string();
        if !self.facts.notes.contains(&line) {
            self.facts.notes.push(line);
        }
        failure
    }

    /// Sends loads one after another, on a thread inside the port's namespace.
    pub(super) fn send_loads(
        &mut self,
        trial: u32,
        loads: &[FrameLoad],
        halt: &Stop,
    ) -> Result<Vec<SendCounts>, Failure> {
        let Some(generator) = &mut self.generator else {
            return Err(nothing_left(&self.name, "send frames on"));
        };
        generator.begin_trial(trial);
        loads.iter().map(|load| generator.run(load, halt)).collect()
    }

    fn counter(&mut self) -> Result<&mut Counter, Failure> {
        let name = &self.name;
        self.counter.as_mut().ok_or_else(|| nothing_left(name, "count frames on"))
    }

    /// Counts by another counter from now on.
    #[cfg(test)]
    pub(super) fn set_counter(&mut self, counter: Counter) {
        self.counter = Some(counter);
    }

    /// Begins another trial at the counter.
    pub(super) fn begin_counting(&mut self, expected: &SinkExpected) -> Result<(), Failure> {
        self.counter()?.begin_trial(expected)
    }

    /// Different frames that came so far.
    pub(super) fn received_so_far(&mut self) -> Result<u64, Failure> {
        Ok(self.counter()?.frames())
    }

    /// Reads what the port's counter has counted so far.
    pub(super) fn read(&mut self) -> Result<Counted, Failure> {
        self.counter()?.read()
    }

    /// Time of arrival by number of frames from the port `stream`.
    pub(super) fn arrivals(&mut self, stream: u8) -> Result<Vec<Option<u64>>, Failure> {
        Ok(self.counter()?.arrivals(stream))
    }

    /// Sends a frame by which bridges and neighbours learn where this port is.
    pub(super) fn send_learning_frames(&self) -> Result<(), Failure> {
        for frame in neighbours::learning(&self.station, &self.neighbours) {
            self.raw.send_frame(&frame).map_err(|error| system(&error))?;
        }
        Ok(())
    }

    /// The interface as it is now.
    pub(super) fn current_state(&self, namespaces: &dyn Namespaces) -> Result<PortNow, Failure> {
        let ifindex = self.ifindex;
        let link = inside(namespaces, self.host.as_deref(), || {
            RouteSocket::open().and_then(|mut links| links.link_by_index(ifindex))
        })?
        .map_err(|error| system(&error))?;
        Ok(PortNow { name: self.name.clone(), running: link.running, counters: link.counters })
    }
}

fn nothing_left(name: &str, attempt: &str) -> Failure {
    Failure::new(Fault::System, attempt, name, "no generator works on this interface")
}

fn address_of(text: Option<&str>, name: &str) -> Result<Option<IpAddr>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let parsed = text.split('/').next().unwrap_or(text).parse();
    parsed.map(Some).map_err(|_| {
        let reason = "it is no IP address";
        Failure::new(Fault::Usage, "read address of port", format!("{name}: {text}"), reason)
    })
}

/// Asks the device for its hardware address on this port (RFC 826, RFC 4861 §7.2).
fn resolve(raw: &RawPort, own: &Station, gateway: IpAddr, name: &str) -> Result<Mac, Failure> {
    let object = format!("{gateway} on {name}");
    let question = own
        .address
        .and_then(|address| address_request(own.mac, address, gateway, Tags::None))
        .ok_or_else(|| {
            let reason = "the port has no address of the same family";
            Failure::new(Fault::Usage, "ask for hardware address of", &object, reason)
        })?;
    for _ in 0..ADDRESS_TRIES {
        raw.send_frame(&question).map_err(|error| system(&error))?;
        let until = linerate_sys::clock::monotonic();
        while linerate_sys::clock::monotonic().nanos_since(until) < ADDRESS_WAIT.as_nanos() as u64 {
            let frame = raw.receive(ADDRESS_WAIT).map_err(|error| system(&error))?;
            if let Some(mac) = frame.and_then(|frame| announced_mac(&frame, gateway)) {
                return Ok(mac);
            }
        }
    }
    let reason = "no answer within 3 s";
    Err(Failure::new(Fault::Unreachable, "ask for hardware address of", object, reason)
        .advise("check that the device has this address on this port"))
}
