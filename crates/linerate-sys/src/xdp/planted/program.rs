//! The program of a planted device: a queue in virtual time, loss and stalls.
//!
//! ```text
//! state  0 in   1 forwarded   2 dropped by queue   3 by chance   4 in a stall   5 longest wait ps
//!        6 admitted   7 free at ps   8 began ns   9 random   10 upper half of trials   11 others
//! ring   finish times of the last admitted frames, ps
//! ```
//! # Source
//! A queue of one server, first come first served: a frame starts at max(arrival, finish of the
//! one before). Of B places one is free at an arrival iff the frame admitted B before has left.

use super::PlantedOptions;
use crate::Result;
use crate::bpf::{
    Alu, Asm, Condition, DeviceMap, Label, MappedArray, Program, ProgramOptions, Reg, Size, action,
    helper,
};
use crate::xdp::frame;
use crate::xdp::spread::{byte, increment};

pub(super) const IN: usize = 0;
pub(super) const FORWARDED: usize = 1;
pub(super) const BY_QUEUE: usize = 2;
pub(super) const BY_CHANCE: usize = 3;
pub(super) const IN_STALL: usize = 4;
pub(super) const WAIT_MAX: usize = 5;
pub(super) const ADMITTED: usize = 6;
pub(super) const FREE_AT: usize = 7;
pub(super) const BEGAN: usize = 8;
pub(super) const RANDOM: usize = 9;
pub(super) const UPPER: usize = 10;
pub(super) const OTHERS: usize = 11;
pub(super) const STATE_WORDS: usize = 12;

const PS_PER_SEC: u64 = 1_000_000_000_000;
const LENGTH: i16 = -24;
const STAMP: i16 = -32;
const START: i16 = -40;

/// The memory that the program and the process share.
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
        let mut builder = Builder::new(self, options);
        builder.emit();
        Program::load("linerate_plant", &builder.asm, &ProgramOptions::default())
    }
}

/// Registers: R6 the context, R7 the state, R8 the finish, R9 the time since the start in ps.
struct Builder<'a> {
    asm: Asm,
    maps: &'a PlantedMaps,
    options: &'a PlantedOptions,
    other: Label,
    full: Label,
    by_chance: Label,
    drop: Label,
    out: Label,
}

impl<'a> Builder<'a> {
    fn new(maps: &'a PlantedMaps, options: &'a PlantedOptions) -> Self {
        let mut asm = Asm::new();
        let [other, full, by_chance, drop, out] =
            [asm.label(), asm.label(), asm.label(), asm.label(), asm.label()];
        Self { asm, maps, options, other, full, by_chance, drop, out }
    }

    fn emit(&mut self) {
        self.asm.mov(Reg::R6, Reg::R1);
        frame::signature(&mut self.asm, true, self.other);
        self.recognize();
        self.chance();
        self.admit();
        self.start();
        self.finish();
        self.delay();
        self.ends();
    }

    /// Frames of other trials go through as they are. Length and stamp go to the stack.
    fn recognize(&mut self) {
        let asm = &mut self.asm;
        asm.store(Size::Double, Reg::R10, LENGTH, Reg::R7);
        asm.mov32(Reg::R9, Reg::R9);
        asm.store(Size::Double, Reg::R10, STAMP, Reg::R9);
        asm.map_value(Reg::R7, self.maps.state.map(), 0);
        asm.rsh(Reg::R8, 48);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(UPPER));
        asm.jump_if(Condition::NotEqual, Reg::R8, Reg::R1, self.other);
        increment(asm, Reg::R7, byte(IN));
    }

    /// Xorshift with the shifts 13, 7, 17 (Marsaglia 2003); the high half decides.
    fn chance(&mut self) {
        let Some(one_in) = self.options.loss_one_in else { return };
        let asm = &mut self.asm;
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(RANDOM));
        for (shift, by) in [(Alu::Lsh, 13), (Alu::Rsh, 7), (Alu::Lsh, 17)] {
            asm.mov(Reg::R2, Reg::R1);
            asm.alu(shift, Reg::R2, by);
            asm.alu(Alu::Xor, Reg::R1, Reg::R2);
        }
        asm.store(Size::Double, Reg::R7, byte(RANDOM), Reg::R1);
        asm.rsh(Reg::R1, 32);
        asm.imm64(Reg::R2, one_in.into());
        asm.alu(Alu::Mul, Reg::R1, Reg::R2);
        asm.rsh(Reg::R1, 32);
        asm.jump_if(Condition::Equal, Reg::R1, 0, self.by_chance);
    }

    /// R9 = now; drops the frame if the buffer is full.
    fn admit(&mut self) {
        let mask = self.mask();
        let buffer = i32::try_from(self.options.buffer_frames).expect("checked: at most 65536");
        let asm = &mut self.asm;
        asm.call(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(BEGAN));
        asm.sub(Reg::R9, Reg::R1);
        asm.alu(Alu::Mul, Reg::R9, 1000);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(ADMITTED));
        asm.sub(Reg::R1, buffer);
        asm.and(Reg::R1, mask);
        asm.lsh(Reg::R1, 3);
        asm.map_value(Reg::R2, self.maps.ring.map(), 0);
        asm.add(Reg::R2, Reg::R1);
        asm.load(Size::Double, Reg::R1, Reg::R2, 0);
        asm.jump_if(Condition::Greater, Reg::R1, Reg::R9, self.full);
    }

    /// R8 = start of the frame's service: after the frame before it, and not during a stall.
    fn start(&mut self) {
        let asm = &mut self.asm;
        let [idle, counted, running] = [asm.label(), asm.label(), asm.label()];
        asm.load(Size::Double, Reg::R8, Reg::R7, byte(FREE_AT));
        asm.jump_if(Condition::GreaterOrEqual, Reg::R8, Reg::R9, idle);
        asm.mov(Reg::R8, Reg::R9);
        asm.bind(idle);
        if let Some([every, stall_at, _]) = self.options.stall_ps() {
            asm.imm64(Reg::R2, every);
            asm.mov(Reg::R3, Reg::R8);
            asm.alu(Alu::Mod, Reg::R3, Reg::R2);
            asm.imm64(Reg::R4, stall_at);
            asm.jump_if(Condition::Less, Reg::R3, Reg::R4, running);
            asm.add(Reg::R8, Reg::R2);
            asm.sub(Reg::R8, Reg::R3);
        }
        asm.bind(running);
        asm.store(Size::Double, Reg::R10, START, Reg::R8);
        asm.mov(Reg::R1, Reg::R8);
        asm.sub(Reg::R1, Reg::R9);
        asm.load(Size::Double, Reg::R2, Reg::R7, byte(WAIT_MAX));
        asm.jump_if(Condition::LessOrEqual, Reg::R1, Reg::R2, counted);
        asm.store(Size::Double, Reg::R7, byte(WAIT_MAX), Reg::R1);
        asm.bind(counted);
    }

    /// R8 = end of the frame's service; the frame takes its place in the buffer.
    fn finish(&mut self) {
        let mask = self.mask();
        let asm = &mut self.asm;
        let per_frame = self.options.frames_per_sec.map_or(0, |rate| PS_PER_SEC / rate);
        asm.imm64(Reg::R1, per_frame);
        if let Some(rate) = self.options.bytes_per_sec {
            let longer = asm.label();
            let overhead = i32::try_from(self.options.frame_overhead_bytes).expect("checked");
            asm.load(Size::Double, Reg::R2, Reg::R10, LENGTH);
            asm.add(Reg::R2, overhead);
            asm.imm64(Reg::R3, PS_PER_SEC);
            asm.alu(Alu::Mul, Reg::R2, Reg::R3);
            asm.imm64(Reg::R3, rate);
            asm.alu(Alu::Div, Reg::R2, Reg::R3);
            asm.jump_if(Condition::GreaterOrEqual, Reg::R1, Reg::R2, longer);
            asm.mov(Reg::R1, Reg::R2);
            asm.bind(longer);
        }
        if let Some([every, stall_at, length]) = self.options.stall_ps() {
            let whole = asm.label();
            asm.mov(Reg::R2, Reg::R8);
            asm.imm64(Reg::R3, every);
            asm.alu(Alu::Mod, Reg::R2, Reg::R3);
            asm.add(Reg::R2, Reg::R1);
            asm.imm64(Reg::R3, stall_at);
            asm.jump_if(Condition::LessOrEqual, Reg::R2, Reg::R3, whole);
            asm.imm64(Reg::R3, length);
            asm.add(Reg::R8, Reg::R3);
            asm.bind(whole);
        }
        asm.add(Reg::R8, Reg::R1);
        asm.store(Size::Double, Reg::R7, byte(FREE_AT), Reg::R8);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(ADMITTED));
        asm.mov(Reg::R3, Reg::R1);
        asm.add(Reg::R3, 1);
        asm.store(Size::Double, Reg::R7, byte(ADMITTED), Reg::R3);
        asm.and(Reg::R1, mask);
        asm.lsh(Reg::R1, 3);
        asm.map_value(Reg::R2, self.maps.ring.map(), 0);
        asm.add(Reg::R2, Reg::R1);
        asm.store(Size::Double, Reg::R2, 0, Reg::R8);
    }

    /// Moves the stamp back by the time that the device would have taken.
    fn delay(&mut self) {
        let asm = &mut self.asm;
        increment(asm, Reg::R7, byte(FORWARDED));
        if !self.options.store_and_forward {
            asm.load(Size::Double, Reg::R8, Reg::R10, START);
        }
        asm.sub(Reg::R8, Reg::R9);
        asm.alu(Alu::Div, Reg::R8, 1000);
        asm.imm64(Reg::R1, self.options.latency_ns());
        asm.add(Reg::R8, Reg::R1);
        asm.load(Size::Double, Reg::R9, Reg::R10, STAMP);
        asm.sub(Reg::R9, Reg::R8);
        asm.mov32(Reg::R9, Reg::R9);
        asm.swap_be(Reg::R9, 32);
        asm.load(Size::Double, Reg::R7, Reg::R10, LENGTH);
        frame::store_last_word(asm, self.out);
    }

    fn ends(&mut self) {
        let asm = &mut self.asm;
        asm.bind(self.out);
        asm.map(Reg::R1, &self.maps.device);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, 0);
        asm.call(helper::REDIRECT_MAP);
        asm.exit();
        asm.bind(self.other);
        asm.map_value(Reg::R7, self.maps.state.map(), 0);
        increment(asm, Reg::R7, byte(OTHERS));
        asm.jump(self.out);
        // The kernel refuses code that nothing leads to.
        if self.options.loss_one_in.is_some() {
            asm.bind(self.by_chance);
            increment(asm, Reg::R7, byte(BY_CHANCE));
            asm.jump(self.drop);
        }
        asm.bind(self.full);
        let running = asm.label();
        if let Some([every, stall_at, _]) = self.options.stall_ps() {
            asm.imm64(Reg::R2, every);
            asm.alu(Alu::Mod, Reg::R9, Reg::R2);
            asm.imm64(Reg::R2, stall_at);
            asm.jump_if(Condition::Less, Reg::R9, Reg::R2, running);
            increment(asm, Reg::R7, byte(IN_STALL));
            asm.jump(self.drop);
        }
        asm.bind(running);
        increment(asm, Reg::R7, byte(BY_QUEUE));
        asm.bind(self.drop);
        asm.mov(Reg::R0, action::DROP);
        asm.exit();
    }

    fn mask(&self) -> i32 {
        let ring = self.options.buffer_frames.next_power_of_two();
        i32::try_from(ring - 1).expect("checked: at most 65536")
    }
}
