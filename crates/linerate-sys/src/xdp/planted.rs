//! A device whose capacity, buffer, loss, stalls and latency are known: the truth that a search is
//! tried on.
//!
//! It forwards from one interface out of another, in one direction. XDP cannot hold a frame, so
//! waiting is told to the counter instead: the stamp goes back by the time that a real device would
//! have taken. State is one for the interface: frames are to come by one NAPI (a veth with one
//! queue). Frames of other trials and foreign ones go through untouched and are not counted.
//! Checksums of the transport are not mended for the stamp.

mod program;

use std::time::Duration;

use self::program::PlantedMaps;
use crate::bpf::{AttachMode, XdpLink};
use crate::{Error, Result, clock};

/// Largest buffer of a planted device, in frames.
const BUFFER_MAX: u32 = 1 << 16;
/// More overhead than any medium has.
const OVERHEAD_MAX_BYTES: u32 = 1 << 16;

/// A time without service at the end of every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From the end of one to the end of the next; the first period starts with
    /// [`PlantedDevice::begin_trials`].
    pub every: Duration,
    /// Length of each stall.
    pub length: Duration,
}

/// Properties of a [`PlantedDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedOptions {
    /// Frames that it forwards per second; none for no such limit. The service time is rounded
    /// down to a picosecond.
    pub frames_per_sec: Option<u64>,
    /// Bytes that it forwards per second, overhead included; none for no such limit. With both
    /// limits the longer service time counts.
    pub bytes_per_sec: Option<u64>,
    /// Added to the length of each frame (without FCS): 24 for Ethernet's preamble, FCS and gap.
    pub frame_overhead_bytes: u32,
    /// Frames that it holds, the one in service included: one is admitted iff fewer are there.
    pub buffer_frames: u32,
    /// One frame in this many is lost, before the queue.
    pub loss_one_in: Option<u32>,
    /// Seed of the generator that chooses the lost frames.
    pub seed: u64,
    /// Periodic time without service, in which frames wait as long as the buffer has room.
    pub stall: Option<Stall>,
    /// Added to the latency of each frame.
    pub latency: Duration,
    /// The service time is part of the latency; otherwise frames leave while they come in.
    pub store_and_forward: bool,
    /// The point of the receive path at which the device runs.
    pub mode: AttachMode,
}

impl Default for PlantedOptions {
    fn default() -> Self {
        Self {
            frames_per_sec: None,
            bytes_per_sec: None,
            frame_overhead_bytes: 0,
            buffer_frames: 256,
            loss_one_in: None,
            seed: 1,
            stall: None,
            latency: Duration::ZERO,
            store_and_forward: false,
            mode: AttachMode::Best,
        }
    }
}

impl PlantedOptions {
    /// Period, start of the stall in it, and its length, in ps.
    pub(super) fn stall_ps(&self) -> Option<[u64; 3]> {
        let ps = |span: Duration| u64::try_from(span.as_nanos() * 1000).unwrap_or(u64::MAX);
        self.stall.map(|stall| {
            let start = stall.every.saturating_sub(stall.length);
            [ps(stall.every), ps(start), ps(stall.length)]
        })
    }

    pub(super) fn latency_ns(&self) -> u64 {
        u64::try_from(self.latency.as_nanos()).unwrap_or(u64::MAX)
    }

    fn check_bounds(&self) -> std::result::Result<(), &'static str> {
        if self.frames_per_sec == Some(0) || self.bytes_per_sec == Some(0) {
            return Err("a capacity of 0");
        }
        if self.buffer_frames == 0 || self.buffer_frames > BUFFER_MAX {
            return Err("a buffer of no or more than 65,536 frames");
        }
        if self.loss_one_in == Some(0) || self.frame_overhead_bytes > OVERHEAD_MAX_BYTES {
            return Err("loss of one in 0, or an overhead above 65,536 bytes");
        }
        if self.stall.is_some_and(|stall| {
            stall.length >= stall.every || stall.every > Duration::from_secs(86_400)
        }) {
            return Err("a stall that never ends, or a period above a day");
        }
        Ok(())
    }
}

/// Frame counts of a [`PlantedDevice`]: `frames_in` is the sum of the four counts that follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlantedCounts {
    /// Frames received.
    pub frames_in: u64,
    /// Frames forwarded.
    pub forwarded: u64,
    /// Frames dropped because the buffer was full, outside stalls.
    pub dropped_by_queue: u64,
    /// Frames dropped by random loss.
    pub dropped_by_chance: u64,
    /// Frames dropped because the buffer was full during a stall.
    pub dropped_in_stall: u64,
    /// Longest wait for service.
    pub waited_max: Duration,
    /// Frames that were not of the trials and went through.
    pub others: u64,
}

/// A simulated device with known faults on an interface; dropping this removes it.
#[derive(Debug)]
pub struct PlantedDevice {
    link: XdpLink,
    maps: PlantedMaps,
    seed: u64,
}

impl PlantedDevice {
    /// Puts a device between two interfaces of the calling thread's namespace: what comes in on
    /// `from` goes out of `to`. The other end of a veth `to` needs NAPI ([`super::hold_napi`] or a
    /// counter).
    /// # Errors
    /// For options that make no device, when an interface does not exist, another program is on
    /// it, or privileges are absent.
    pub fn attach(from: u32, to: u32, options: PlantedOptions) -> Result<Self> {
        options.check_bounds().map_err(|reason| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, reason);
            Error::new("plant a device on interface", from, source)
        })?;
        let maps = PlantedMaps::new(to, options.buffer_frames)?;
        maps.state.set_word(program::UPPER, u64::MAX);
        let link = XdpLink::attach(&maps.program(&options)?, from, options.mode)?;
        Ok(Self { link, maps, seed: options.seed })
    }

    /// Starts anew for the trials that share the upper 16 bits of `trial`: counts are 0, the queue
    /// is empty, the same frames are lost as at the last beginning. Nothing is to be on its way.
    pub fn begin_trials(&self, trial: u32) {
        let state = &self.maps.state;
        state.set_word(program::UPPER, u64::MAX);
        self.maps.ring.clear_words();
        for word in 0..program::STATE_WORDS {
            if word != program::UPPER {
                state.set_word(word, 0);
            }
        }
        state.set_word(program::RANDOM, scattered(self.seed));
        state.set_word(program::BEGAN, clock::monotonic().as_nanos());
        state.set_word(program::UPPER, u64::from(trial >> 16));
    }

    /// Frame counts since the trial began.
    pub fn counts(&self) -> PlantedCounts {
        let get = |word| self.maps.state.get(word);
        PlantedCounts {
            frames_in: get(program::IN),
            forwarded: get(program::FORWARDED),
            dropped_by_queue: get(program::BY_QUEUE),
            dropped_by_chance: get(program::BY_CHANCE),
            dropped_in_stall: get(program::IN_STALL),
            waited_max: Duration::from_nanos(get(program::WAIT_MAX) / 1000),
            others: get(program::OTHERS),
        }
    }

    /// True if the program runs in the driver (native XDP).
    pub const fn is_native(&self) -> bool {
        self.link.is_native()
    }
}

/// A state for the random numbers whose bits are well mixed even for small seeds; never 0 but for
/// one seed in 2^64, which gets another (SplitMix64 by Steele, Lea and Flood 2014).
const fn scattered(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    if bits == 0 { 1 } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_scattered_as_published() {
        // First outputs of SplitMix64 with seeds 0 and 1234567 (the generator's public test
        // vectors).
        assert_eq!(scattered(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(scattered(1_234_567), 6_457_827_717_110_365_317);
    }
}
