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
    Alu, Asm, DeviceMap, JumpCondition, JumpLabel, MappedArray, ProgramOptions, Reg, Size,
    XdpProgram, action, helper,
};
use crate::xdp::frame;
use crate::xdp::spread::{byte_offset, increment};

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

    pub(super) fn program(&self, options: &PlantedOptions) -> Result<XdpProgram> {
        let mut builder = PlantedProgramBuilder::new(self, options);
        builder.emit_program();
        XdpProgram::load("linerate_plant", &builder.asm, &ProgramOptions::default())
    }
}

/// Registers: R6 the context, R7 the state, R8 the finish, R9 the time since the start in ps.
struct PlantedProgramBuilder<'a> {
    asm: Asm,
    maps: &'a PlantedMaps,
    options: &'a PlantedOptions,
    other: JumpLabel,
    full: JumpLabel,
    by_chance: JumpLabel,
    drop: JumpLabel,
    out: JumpLabel,
}

impl<'a> PlantedProgramBuilder<'a> {
    fn new(maps: &'a PlantedMaps, options: &'a PlantedOptions) -> Self {
        let mut asm = Asm::new();
        let [other, full, by_chance, drop, out] =
            [asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label()];
        Self { asm, maps, options, other, full, by_chance, drop, out }
    }

    fn emit_program(&mut self) {
        self.asm.mov(Reg::R6, Reg::R1);
        frame::signature(&mut self.asm, true, self.other);
        self.recognize();
        self.chance();
        self.emit_admission();
        self.emit_service_start();
        self.finish();
        self.emit_stamp_delay();
        self.emit_exits();
    }

    /// Frames of other trials go through as they are. Length and stamp go to the stack.
    fn recognize(&mut self) {
        let asm = &mut self.asm;
        asm.store_memory(Size::Double, Reg::R10, LENGTH, Reg::R7);
        asm.mov32(Reg::R9, Reg::R9);
        asm.store_memory(Size::Double, Reg::R10, STAMP, Reg::R9);
        asm.map_value(Reg::R7, self.maps.state.bpf_map(), 0);
        asm.rsh(Reg::R8, 48);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(UPPER));
        asm.jump_if(JumpCondition::NotEqual, Reg::R8, Reg::R1, self.other);
        increment(asm, Reg::R7, byte_offset(IN));
    }

    /// Xorshift with the shifts 13, 7, 17 (Marsaglia 2003); the high half decides.
    fn chance(&mut self) {
        let Some(one_in) = self.options.loss_one_in else { return };
        let asm = &mut self.asm;
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(RANDOM));
        for (shift, by) in [(Alu::Lsh, 13), (Alu::Rsh, 7), (Alu::Lsh, 17)] {
            asm.mov(Reg::R2, Reg::R1);
            asm.alu_op(shift, Reg::R2, by);
            asm.alu_op(Alu::Xor, Reg::R1, Reg::R2);
        }
        asm.store_memory(Size::Double, Reg::R7, byte_offset(RANDOM), Reg::R1);
        asm.rsh(Reg::R1, 32);
        asm.load_imm64(Reg::R2, one_in.into());
        asm.alu_op(Alu::Mul, Reg::R1, Reg::R2);
        asm.rsh(Reg::R1, 32);
        asm.jump_if(JumpCondition::Equal, Reg::R1, 0, self.by_chance);
    }

    /// R9 = now; drops the frame if the buffer is full.
    fn emit_admission(&mut self) {
        let mask = self.ring_mask();
        let buffer = i32::try_from(self.options.buffer_frames).expect("checked: at most 65536");
        let asm = &mut self.asm;
        asm.call_helper(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(BEGAN));
        asm.sub(Reg::R9, Reg::R1);
        asm.alu_op(Alu::Mul, Reg::R9, 1000);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(ADMITTED));
        asm.sub(Reg::R1, buffer);
        asm.and(Reg::R1, mask);
        asm.lsh(Reg::R1, 3);
        asm.map_value(Reg::R2, self.maps.ring.bpf_map(), 0);
        asm.add(Reg::R2, Reg::R1);
        asm.load_memory(Size::Double, Reg::R1, Reg::R2, 0);
        asm.jump_if(JumpCondition::Greater, Reg::R1, Reg::R9, self.full);
    }

    /// R8 = start of the frame's service: after the frame before it, and not during a stall.
    fn emit_service_start(&mut self) {
        let asm = &mut self.asm;
        let [idle, counted, running] = [asm.new_label(), asm.new_label(), asm.new_label()];
        asm.load_memory(Size::Double, Reg::R8, Reg::R7, byte_offset(FREE_AT));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, Reg::R9, idle);
        asm.mov(Reg::R8, Reg::R9);
        asm.bind_label(idle);
        if let Some([every, stall_at, _]) = self.options.stall_ps() {
            asm.load_imm64(Reg::R2, every);
            asm.mov(Reg::R3, Reg::R8);
            asm.alu_op(Alu::Mod, Reg::R3, Reg::R2);
            asm.load_imm64(Reg::R4, stall_at);
            asm.jump_if(JumpCondition::Less, Reg::R3, Reg::R4, running);
            asm.add(Reg::R8, Reg::R2);
            asm.sub(Reg::R8, Reg::R3);
        }
        asm.bind_label(running);
        asm.store_memory(Size::Double, Reg::R10, START, Reg::R8);
        asm.mov(Reg::R1, Reg::R8);
        asm.sub(Reg::R1, Reg::R9);
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, byte_offset(WAIT_MAX));
        asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R2, counted);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(WAIT_MAX), Reg::R1);
        asm.bind_label(counted);
    }

    /// R8 = end of the frame's service; the frame takes its place in the buffer.
    fn finish(&mut self) {
        let mask = self.ring_mask();
        let asm = &mut self.asm;
        let per_frame = self.options.frames_per_sec.map_or(0, |rate| PS_PER_SEC / rate);
        asm.load_imm64(Reg::R1, per_frame);
        if let Some(rate) = self.options.bytes_per_sec {
            let longer = asm.new_label();
            let overhead = i32::try_from(self.options.frame_overhead_bytes).expect("checked");
            asm.load_memory(Size::Double, Reg::R2, Reg::R10, LENGTH);
            asm.add(Reg::R2, overhead);
            asm.load_imm64(Reg::R3, PS_PER_SEC);
            asm.alu_op(Alu::Mul, Reg::R2, Reg::R3);
            asm.load_imm64(Reg::R3, rate);
            asm.alu_op(Alu::Div, Reg::R2, Reg::R3);
            asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R1, Reg::R2, longer);
            asm.mov(Reg::R1, Reg::R2);
            asm.bind_label(longer);
        }
        if let Some([every, stall_at, length]) = self.options.stall_ps() {
            let whole = asm.new_label();
            asm.mov(Reg::R2, Reg::R8);
            asm.load_imm64(Reg::R3, every);
            asm.alu_op(Alu::Mod, Reg::R2, Reg::R3);
            asm.add(Reg::R2, Reg::R1);
            asm.load_imm64(Reg::R3, stall_at);
            asm.jump_if(JumpCondition::LessOrEqual, Reg::R2, Reg::R3, whole);
            asm.load_imm64(Reg::R3, length);
            asm.add(Reg::R8, Reg::R3);
            asm.bind_label(whole);
        }
        asm.add(Reg::R8, Reg::R1);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(FREE_AT), Reg::R8);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(ADMITTED));
        asm.mov(Reg::R3, Reg::R1);
        asm.add(Reg::R3, 1);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(ADMITTED), Reg::R3);
        asm.and(Reg::R1, mask);
        asm.lsh(Reg::R1, 3);
        asm.map_value(Reg::R2, self.maps.ring.bpf_map(), 0);
        asm.add(Reg::R2, Reg::R1);
        asm.store_memory(Size::Double, Reg::R2, 0, Reg::R8);
    }

    /// Moves the stamp back by the time that the device would have taken.
    fn emit_stamp_delay(&mut self) {
        let asm = &mut self.asm;
        increment(asm, Reg::R7, byte_offset(FORWARDED));
        if !self.options.store_and_forward {
            asm.load_memory(Size::Double, Reg::R8, Reg::R10, START);
        }
        asm.sub(Reg::R8, Reg::R9);
        asm.alu_op(Alu::Div, Reg::R8, 1000);
        asm.load_imm64(Reg::R1, self.options.latency_ns());
        asm.add(Reg::R8, Reg::R1);
        asm.load_memory(Size::Double, Reg::R9, Reg::R10, STAMP);
        asm.sub(Reg::R9, Reg::R8);
        asm.mov32(Reg::R9, Reg::R9);
        asm.swap_be(Reg::R9, 32);
        asm.load_memory(Size::Double, Reg::R7, Reg::R10, LENGTH);
        frame::store_last_word(asm, self.out);
    }

    fn emit_exits(&mut self) {
        let asm = &mut self.asm;
        asm.bind_label(self.out);
        asm.load_map(Reg::R1, &self.maps.device);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, 0);
        asm.call_helper(helper::REDIRECT_MAP);
        asm.exit();
        asm.bind_label(self.other);
        asm.map_value(Reg::R7, self.maps.state.bpf_map(), 0);
        increment(asm, Reg::R7, byte_offset(OTHERS));
        asm.jump_to(self.out);
        // The kernel refuses code that nothing leads to.
        if self.options.loss_one_in.is_some() {
            asm.bind_label(self.by_chance);
            increment(asm, Reg::R7, byte_offset(BY_CHANCE));
            asm.jump_to(self.drop);
        }
        asm.bind_label(self.full);
        let running = asm.new_label();
        if let Some([every, stall_at, _]) = self.options.stall_ps() {
            asm.load_imm64(Reg::R2, every);
            asm.alu_op(Alu::Mod, Reg::R9, Reg::R2);
            asm.load_imm64(Reg::R2, stall_at);
            asm.jump_if(JumpCondition::Less, Reg::R9, Reg::R2, running);
            increment(asm, Reg::R7, byte_offset(IN_STALL));
            asm.jump_to(self.drop);
        }
        asm.bind_label(running);
        increment(asm, Reg::R7, byte_offset(BY_QUEUE));
        asm.bind_label(self.drop);
        asm.mov(Reg::R0, action::DROP);
        asm.exit();
    }

    fn ring_mask(&self) -> i32 {
        let ring = self.options.buffer_frames.next_power_of_two();
        i32::try_from(ring - 1).expect("checked: at most 65536")
    }
}
