//! One counter or another, behind one face.

use linerate_core::device::{ForeignFrames, ReceiveCounts};
use linerate_core::record::{CounterKind, Failure};
use linerate_sys::bpf::AttachMode;
use linerate_sys::frame_counter::{CounterOptions, FrameCounter};
use linerate_sys::xdp::{Sink, SinkExpected, SinkOptions};

use crate::failure::system;

/// The counter of a port's frames: by XDP, or by a packet socket.
pub(super) enum Counter {
    Xdp(Box<Sink>),
    Packet(Box<FrameCounter>),
}

/// The counts of one port's counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// The counts of each sending port's frames, by its number.
    pub streams: Vec<(u8, ReceiveCounts)>,
    /// Frames that are not of the trial.
    pub foreign: ForeignFrames,
    /// Frames that the counter itself dropped.
    pub dropped: u64,
}

/// Frames whose time of arrival is kept, from the first.
pub(super) const ARRIVALS_MAX: usize = 1 << 20;

impl Counter {
    /// Opens a counter of this kind, on a thread inside the port's namespace.
    pub(super) fn open(kind: CounterKind, name: &str, ifindex: u32) -> Result<Self, Failure> {
        match kind {
            CounterKind::Xdp => {
                let options = SinkOptions { mode: AttachMode::Best, arrival_log: ARRIVALS_MAX };
                Sink::attach(ifindex, options)
                    .map(|sink| Self::Xdp(Box::new(sink)))
                    .map_err(|error| system(&error))
            }
            CounterKind::Packet => {
                let options = CounterOptions::of_interface(name);
                let expected = SinkExpected::default();
                let counter = FrameCounter::open(&options, expected);
                counter
                    .map(|counter| Self::Packet(Box::new(counter)))
                    .map_err(|error| system(&error))
            }
        }
    }

    /// How it counts, in words.
    pub(super) fn method_description(&self) -> &'static str {
        match self {
            Self::Xdp(it) if it.is_native() => "counted by XDP in the driver",
            Self::Xdp(_) => "counted by XDP behind the driver (generic)",
            Self::Packet(_) => "counted by a packet socket",
        }
    }

    /// Begins another trial: all counts 0.
    pub(super) fn begin_trial(&mut self, expected: &SinkExpected) -> Result<(), Failure> {
        let begun = match self {
            Self::Xdp(it) => it.begin_trial(expected),
            Self::Packet(it) => it.begin_trial(expected.clone()),
        };
        begun.map_err(|error| system(&error))
    }

    /// Different frames so far; cheap.
    pub(super) fn frames(&self) -> u64 {
        match self {
            Self::Xdp(it) => it.frames(),
            Self::Packet(it) => it.frames(),
        }
    }

    /// Reads the counts so far.
    pub(super) fn read(&self) -> Result<Counted, Failure> {
        match self {
            Self::Xdp(it) => {
                let report = it.read();
                Ok(Counted { streams: report.streams, foreign: report.foreign, dropped: 0 })
            }
            Self::Packet(it) => {
                let report = it.read().map_err(|error| system(&error))?;
                let dropped = report.ring_dropped;
                Ok(Counted { streams: report.streams, foreign: report.foreign, dropped })
            }
        }
    }

    /// Time of arrival by number.
    pub(super) fn arrivals(&self, stream: u8) -> Vec<Option<u64>> {
        match self {
            Self::Xdp(it) => it.arrivals(stream),
            // Times of single frames are not kept there.
            Self::Packet(_) => Vec::new(),
        }
    }
}
