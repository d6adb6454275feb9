//! What a planted device keeps; its program is `bpf/planted.c`: a queue in virtual time, loss and
//! stalls.
//!
//! ```text
//! state  0 in   1 forwarded   2 dropped by queue   3 by chance   4 in a stall   5 longest wait ps
//!        6 admitted   7 free at ps   8 began ns   9 random   10 upper half of trials   11 others
//! ring   finish times of the last admitted frames, ps
//! ```

use super::planted::PlantedOptions;
use crate::Result;
use crate::bpf::{Code, Constants, DeviceMap, MappedArray, Place, Program, ProgramOptions};

pub(super) const IN: usize = 0;
pub(super) const FORWARDED: usize = 1;
pub(super) const BY_QUEUE: usize = 2;
pub(super) const BY_CHANCE: usize = 3;
pub(super) const IN_STALL: usize = 4;
pub(super) const WAIT_MAX: usize = 5;
pub(super) const BEGAN: usize = 8;
pub(super) const RANDOM: usize = 9;
pub(super) const UPPER: usize = 10;
pub(super) const OTHERS: usize = 11;
pub(super) const STATE_WORDS: usize = 12;

const PS_PER_SEC: u64 = 1_000_000_000_000;

/// What program and process share.
#[derive(Debug)]
pub(super) struct PlantedMaps {
    pub(super) state: MappedArray,
    pub(super) ring: MappedArray,
    device: DeviceMap,
}

impl PlantedMaps {
    pub(super) fn new(to: u32, buffer_frames: u32) -> Result<Self> {
        let ring = buffer_frames.next_power_of_two() as usize;
        Ok(Self {
            state: MappedArray::new("planted_state", STATE_WORDS)?,
            ring: MappedArray::new("planted_ring", ring)?,
            device: DeviceMap::new(&[to])?,
        })
    }

    pub(super) fn program(&self, options: &PlantedOptions) -> Result<Program> {
        let [every, stall_at, stall] = options.stall_ps().unwrap_or_default();
        let buffer = options.buffer_frames;
        let plan = [
            u64::from(buffer.next_power_of_two() - 1),
            buffer.into(),
            options.loss_one_in.unwrap_or(0).into(),
            options.frames_per_sec.map_or(0, |rate| PS_PER_SEC / rate),
            options.frame_overhead_bytes.into(),
            options.bytes_per_sec.unwrap_or(0),
            every,
            stall_at,
            stall,
            options.store_and_forward.into(),
            options.latency_ns(),
        ];
        let plan = Constants::new("planted_plan", &plan)?;
        let code = Code {
            object: include_bytes!("../../bpf/planted.o"),
            program: "plant",
            names: &[
                ("plan", Place::Value(plan.map())),
                ("state", Place::Value(self.state.map())),
                ("ring", Place::Value(self.ring.map())),
                ("devices", Place::Map(&self.device)),
            ],
        };
        Program::load("linerate_plant", &code, &ProgramOptions::default())
    }
}
