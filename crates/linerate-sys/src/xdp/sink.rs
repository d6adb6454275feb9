//! The counter: an XDP program that takes every test frame and keeps its number, length, latency
//! and gap.
//!
//! Nothing is sampled. Numbers are remembered in a bitmap (one bit each, 512 Mi at most), so that
//! different frames and copies are exact; times go into histograms (1.6 %) with exact extremes and
//! sums; on demand the arrival of each of the first frames is kept (8 bytes each). Costs about
//! 40 ns a frame (Linux 6.18 guest, 2.4 GHz class). Foreign frames go on to the host.

use std::sync::atomic::{Ordering, fence};

use linerate_core::device::{ForeignFrames, ReceiveCounts};

use super::frame::ONE_BUFFER_MTU_BYTES;
use super::sink_program as program;
use super::sink_program::{FORMER_TRIALS, STREAMS, SinkMaps};
use super::spread;
use crate::bpf::{AttachMode, Counters, XdpLink};
use crate::netlink::RouteSocket;
use crate::{Error, Result, host};

/// Arrivals that suffice for trains and bursts: 1 Mi, 8 MiB.
pub const ARRIVALS_DEFAULT: usize = 1 << 20;
/// Numbers that a counter remembers at most, of all streams: 64 MiB.
const REMEMBERED_MAX: u64 = 512 << 20;
/// No 32-bit trial has this number.
const NO_TRIAL: u64 = 1 << 32;
/// No stream has this slot.
const NO_SLOT: u64 = u64::MAX;

/// Options of a [`Sink`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkOptions {
    /// The point of the receive path at which the counter runs.
    pub mode: AttachMode,
    /// Frames of each stream whose arrival is kept, from number 0; see [`ARRIVALS_DEFAULT`].
    pub arrival_log: usize,
}

/// Expected frames of one stream in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamExpected {
    /// Stream in the signatures, 0 to 15.
    pub stream: u8,
    /// Numbers below this are remembered.
    pub frames: u64,
}

/// The streams and frame lengths to expect in a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkExpected {
    /// In the signature of its frames. Trials of one process share their upper 16 bits, so that
    /// frames left over are recognized.
    pub trial: u32,
    /// Streams that come in here; at most 16.
    pub streams: Vec<StreamExpected>,
    /// Streams that are sent from this interface: they come in here when there is a loop.
    pub own_streams: Vec<u8>,
    /// Length of the shortest frame, without FCS.
    pub shortest: usize,
    /// Length of the longest frame, without FCS.
    pub longest: usize,
}

/// Frames and times that a [`Sink`] has counted in a trial.
#[derive(Clone, Debug, Default)]
pub struct SinkReport {
    /// The streams, as expected.
    pub streams: Vec<(u8, ReceiveCounts)>,
    /// All other frames. Those of another trial and loops end here, the rest went to the host.
    pub foreign: ForeignFrames,
    /// Processors that counted frames. Counts and latencies are exact for any number; with more
    /// than one at once order, loss runs and gaps are nearly so.
    pub cpus: usize,
}

/// A frame counter that runs as an XDP program on an interface, until dropped.
#[derive(Debug)]
pub struct Sink {
    link: XdpLink,
    maps: SinkMaps,
    log_frames: usize,
    streams: Vec<u8>,
    former: Vec<u64>,
    trial: Option<u32>,
}

impl Sink {
    /// Puts a counter on an interface of the calling thread's namespace. Until the first trial
    /// begins all frames go to the host.
    /// # Errors
    /// When another program is on the interface, when the driver cannot, or without CAP_BPF and
    /// CAP_NET_ADMIN.
    pub fn attach(ifindex: u32, options: SinkOptions) -> Result<Self> {
        let link = RouteSocket::open()?.link_by_index(ifindex)?;
        let several = link.mtu_bytes > ONE_BUFFER_MTU_BYTES;
        let maps = SinkMaps::new(possible_cpus(), 1, 1, options.arrival_log, several)?;
        silence(&maps, &[]);
        let link = XdpLink::attach(&maps.program()?, ifindex, options.mode)?;
        let log_frames = options.arrival_log;
        Ok(Self { link, maps, log_frames, streams: Vec::new(), former: Vec::new(), trial: None })
    }

    /// True if the program runs in the driver (native XDP).
    pub const fn is_native(&self) -> bool {
        self.link.is_native()
    }

    /// Begins a trial: all figures start at 0, and frames of the trial before are foreign. Waits
    /// for frames that are being counted, some 10 ms.
    /// # Errors
    /// For more than 16 streams or one above 15, and when the kernel gives no memory.
    pub fn begin_trial(&mut self, expected: &SinkExpected) -> Result<()> {
        check_expected(expected)?;
        if let Some(trial) = self.trial.take() {
            self.former.insert(0, trial.into());
            self.former.truncate(FORMER_TRIALS);
        }
        silence(&self.maps, &self.former);
        let places = BitmapLayout::from_expected(expected);
        if expected.streams.len() > self.maps.slots || places.words > self.maps.bitmap_words {
            let slots = expected.streams.len().max(self.maps.slots);
            let words = places.words.max(self.maps.bitmap_words);
            let several = self.maps.several_buffers;
            let maps = SinkMaps::new(self.maps.cpus, slots, words, self.log_frames, several)?;
            silence(&maps, &self.former);
            self.link.replace(&maps.program()?)?;
            self.maps = maps;
        }
        wait_for_programs();
        self.clear_maps(&places);
        self.expect(expected, &places);
        self.streams = expected.streams.iter().map(|stream| stream.stream).collect();
        fence(Ordering::SeqCst);
        self.maps.control.set_word(program::TRIAL, expected.trial.into());
        self.trial = Some(expected.trial);
        Ok(())
    }

    fn clear_maps(&self, places: &BitmapLayout) {
        let maps = &self.maps;
        maps.counts.clear_words();
        for cpu in 0..maps.cpus {
            for slot in 0..maps.slots {
                let at = maps.slot_at(cpu, slot);
                spread::clear_histogram(&maps.counts, at + program::LATENCY);
                spread::clear_histogram(&maps.counts, at + program::GAP);
            }
        }
        for word in 0..places.words {
            maps.bitmap.set_word(word, 0);
        }
        maps.log.clear_words();
        for slot in 0..STREAMS {
            let at = SinkMaps::order_at(slot);
            maps.control.set_word(at + program::NEXT, 0);
            maps.control.set_word(at + program::ARRIVED, 0);
        }
    }

    fn expect(&self, expected: &SinkExpected, places: &BitmapLayout) {
        let control = &self.maps.control;
        let own = expected.own_streams.iter().fold(0, |mask, stream| mask | 1 << stream);
        control.set_word(program::OWN, own);
        control.set_word(program::SHORTEST, expected.shortest as u64);
        control.set_word(program::LONGEST, expected.longest as u64);
        control.set_word(program::UPPER, u64::from(expected.trial >> 16));
        for stream in 0..STREAMS {
            control.set_word(program::SLOT_OF + stream, NO_SLOT);
        }
        for (slot, stream) in expected.streams.iter().enumerate() {
            control.set_word(program::SLOT_OF + usize::from(stream.stream), slot as u64);
            control.set_word(program::BITS_AT + slot, places.slots[slot].0 as u64 * 8);
            control.set_word(program::REMEMBERED + slot, places.slots[slot].1);
        }
    }

    /// Number of different frames of all streams so far.
    pub fn frames(&self) -> u64 {
        let slots = 0..self.streams.len();
        let of_cpu = |slot| {
            let of_cpu = |cpu| self.maps.counts.get(self.maps.slot_at(cpu, slot) + program::FRAMES);
            (0..self.maps.cpus).map(of_cpu).sum::<u64>()
        };
        slots.map(of_cpu).sum()
    }

    /// Reads the counts and times of the trial so far.
    pub fn read(&self) -> SinkReport {
        let streams = self.streams.iter().enumerate();
        SinkReport {
            streams: streams.map(|(slot, stream)| (*stream, self.received(slot))).collect(),
            foreign: self.foreign(),
            cpus: (0..self.maps.cpus).filter(|cpu| self.has_counted(*cpu)).count(),
        }
    }

    /// Arrival times of a stream's frames on the monotonic clock, indexed by frame number; as many
    /// as the trial expects and the log holds. Empty for a stream that is not expected.
    pub fn arrivals(&self, stream: u8) -> Vec<Option<u64>> {
        let Some(slot) = self.streams.iter().position(|known| *known == stream) else {
            return Vec::new();
        };
        let expected = self.maps.control.get(program::REMEMBERED + slot);
        let kept = self.maps.log_frames.min(usize::try_from(expected).unwrap_or(usize::MAX));
        let first = slot * self.maps.log_frames;
        let times = (first..first + kept).map(|word| self.maps.log.get(word));
        times.map(|ns| (ns > 0).then_some(ns)).collect()
    }

    fn received(&self, slot: usize) -> ReceiveCounts {
        let maps = &self.maps;
        let starts = || (0..maps.cpus).map(|cpu| maps.slot_at(cpu, slot));
        let all = |word: usize| starts().map(move |at| maps.counts.get(at + word));
        let sum = |word| all(word).sum::<u64>();
        let unknown = sum(program::NOT_REMEMBERED) > 0;
        ReceiveCounts {
            frames: sum(program::FRAMES),
            bytes: sum(program::BYTES),
            duplicates: (!unknown).then(|| sum(program::COPIES)),
            reordered: sum(program::REORDERED),
            wrong_length: sum(program::WRONG_LENGTH),
            loss_runs: sum(program::LOSS_RUNS),
            longest_loss_run: all(program::LONGEST_RUN).max().unwrap_or(0),
            first_ns: all(program::FIRST).filter(|ns| *ns > 0).min().unwrap_or(0),
            last_ns: all(program::LAST).max().unwrap_or(0),
            latency: spread::read(&maps.counts, starts().map(|at| at + program::LATENCY)),
            gap: spread::read(&maps.counts, starts().map(|at| at + program::GAP)),
        }
    }

    fn foreign(&self) -> ForeignFrames {
        let rows = (0..self.maps.cpus).map(|cpu| cpu * self.maps.words_per_cpu());
        let rows: Vec<_> = rows.map(|row| Counters::new(&self.maps.counts, row)).collect();
        let sum = |word| rows.iter().map(|row| row.get(word)).sum();
        ForeignFrames {
            arp: sum(program::ARP),
            neighbour_discovery: sum(program::NEIGHBOUR),
            link_control: sum(program::LINK_CONTROL),
            pause: sum(program::PAUSE),
            other_trial: sum(program::OTHER_TRIAL),
            own: sum(program::LOOP),
            other: sum(program::OTHER),
        }
    }

    fn has_counted(&self, cpu: usize) -> bool {
        let mut slots = (0..self.maps.slots).map(|slot| self.maps.slot_at(cpu, slot));
        slots.any(|word| self.maps.counts.get(word + program::FRAMES) > 0)
    }
}

/// Stops counting: frames of all trials are foreign from now on.
fn silence(maps: &SinkMaps, former: &[u64]) {
    maps.control.set_word(program::TRIAL, NO_TRIAL);
    maps.control.set_word(program::UPPER, NO_TRIAL);
    for word in 0..FORMER_TRIALS {
        let trial = former.get(word).copied().unwrap_or(NO_TRIAL);
        maps.control.set_word(program::FORMER + word, trial);
    }
    fence(Ordering::SeqCst);
}

/// Waits until every program that runs now has ended (membarrier(2), which waits for a grace
/// period of the kernel).
fn wait_for_programs() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // A kernel without it leaves a window of some 100 ns, in frames that should not come at all.
    // SAFETY: the call takes two integers and touches no memory.
    let _ = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
}

/// Layout of the bitmap: the range of frame numbers of each slot.
struct BitmapLayout {
    /// First word of each slot and the number of frames that it can hold.
    slots: Vec<(usize, u64)>,
    words: usize,
}

impl BitmapLayout {
    fn from_expected(expected: &SinkExpected) -> Self {
        let mut places = Self { slots: Vec::new(), words: 0 };
        let mut left = REMEMBERED_MAX;
        for stream in &expected.streams {
            let frames = if stream.frames <= left { stream.frames } else { 0 };
            left -= frames;
            places.slots.push((places.words, frames));
            let words = frames.div_ceil(64);
            places.words += usize::try_from(words).expect("at most 8 Mi");
        }
        places
    }
}

fn check_expected(expected: &SinkExpected) -> Result<()> {
    let refused = |reason: &str| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, reason.to_owned());
        Err(Error::new("count frames of trial", expected.trial, source))
    };
    let streams = expected.streams.iter().map(|stream| stream.stream);
    let mut all: Vec<_> = streams.chain(expected.own_streams.iter().copied()).collect();
    if expected.streams.len() > STREAMS || all.iter().any(|stream| usize::from(*stream) >= STREAMS)
    {
        return refused("streams are 0 to 15");
    }
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return refused("a stream is named twice");
    }
    Ok(())
}

/// Processors that may ever be there: numbers of processors are below this.
fn possible_cpus() -> usize {
    let list = host::read_line("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = list.rsplit([',', '-']).next().and_then(|last| last.trim().parse::<usize>().ok());
    last.map_or(1, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_streams_lie_side_by_side_up_to_64_mib() {
        let of = |frames: &[u64]| {
            let streams = (0..).zip(frames);
            let streams =
                streams.map(|(stream, frames)| StreamExpected { stream, frames: *frames });
            BitmapLayout::from_expected(&SinkExpected {
                streams: streams.collect(),
                ..SinkExpected::default()
            })
        };
        let places = of(&[65, 0, 64, 1]);
        assert_eq!((places.slots, places.words), (vec![(0, 65), (2, 0), (2, 64), (3, 1)], 4));
        // The second finds no room and is not remembered; 2^29 numbers are 2^23 words.
        let places = of(&[(1 << 29) - 64, 65, 64]);
        let slots = vec![(0, (1 << 29) - 64), ((1 << 23) - 1, 0), ((1 << 23) - 1, 64)];
        assert_eq!((places.slots, places.words), (slots, 1 << 23));
    }
}
