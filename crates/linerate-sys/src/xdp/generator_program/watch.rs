//! Timing of the generator's program, recorded by itself: `linerate_core::device::SendWatch` as
//! eBPF code.
//!
//! The program also knows how long each call took. A frame whose call took longer than usual
//! reached the device later by up to that difference, and so nearer to the next frame.

use linerate_core::device::{PAUSES_MAX, SUSPECTS_MAX};

use super::{
    AFTER, AWAY, BUSY_UNTIL, COULD_LOSE, LAST, PAUSE, PAUSE_FROM, PAUSES, ROOM, SERVICE, SINCE,
    SINCE_NUMBER, STEADY, STEADY_GAPS, USUAL, imm_from_usize,
};
use crate::bpf::{Alu, Asm, JumpCondition, MappedArray, Reg, Size};
use crate::xdp::spread::{byte_offset, increment};

/// A frame that took so much longer than usual was held up, by an interrupt for one. Below, times
/// differ from frame to frame.
const HELD_UP_NS: i32 = 1000;

/// Watches the frame that is about to leave. Expects R2 = when it was due, R7 = the state, R8 = its
/// number, R9 = now; keeps these.
pub(super) fn emit_watch(asm: &mut Asm, suspects: &MappedArray) {
    held_up(asm);
    emit_played_device(asm, suspects);
    pauses(asm);
}

/// R1 = until when a device that just carries the load may be busy: longer by what the frame
/// before took more than usual on its way to it. Keeps R2.
fn held_up(asm: &mut Asm) {
    let [first, usual, soon, done] =
        [asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label()];
    asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(BUSY_UNTIL));
    asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(LAST));
    asm.jump_if(JumpCondition::Equal, Reg::R4, 0, done);
    asm.load_memory(Size::Double, Reg::R3, Reg::R7, byte_offset(AFTER));
    asm.sub(Reg::R3, Reg::R4);
    asm.load_memory(Size::Double, Reg::R5, Reg::R7, byte_offset(USUAL));
    asm.jump_if(JumpCondition::Equal, Reg::R5, 0, first);
    asm.rsh(Reg::R5, 4);
    asm.mov(Reg::R0, Reg::R5);
    asm.add(Reg::R0, HELD_UP_NS);
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R0, usual);
    asm.add(Reg::R4, Reg::R3);
    asm.sub(Reg::R4, Reg::R5);
    asm.load_memory(Size::Double, Reg::R0, Reg::R7, byte_offset(SERVICE));
    asm.add(Reg::R4, Reg::R0);
    asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R1, Reg::R4, soon);
    asm.mov(Reg::R1, Reg::R4);
    asm.bind_label(soon);
    // A time far off counts as twice the usual one.
    asm.lsh(Reg::R5, 1);
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R5, usual);
    asm.mov(Reg::R3, Reg::R5);
    asm.bind_label(usual);
    asm.load_memory(Size::Double, Reg::R5, Reg::R7, byte_offset(USUAL));
    asm.mov(Reg::R4, Reg::R5);
    asm.rsh(Reg::R4, 4);
    asm.sub(Reg::R5, Reg::R4);
    asm.add(Reg::R5, Reg::R3);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(USUAL), Reg::R5);
    asm.jump_to(done);
    asm.bind_label(first);
    asm.lsh(Reg::R3, 4);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(USUAL), Reg::R3);
    asm.bind_label(done);
}

/// Plays a device along that just carries the load: what it has no room for could be lost.
/// Keeps R2.
fn emit_played_device(asm: &mut Asm, suspects: &MappedArray) {
    let [busy, serve, full] = [asm.new_label(), asm.new_label(), asm.new_label()];
    asm.jump_if(JumpCondition::Greater, Reg::R1, Reg::R9, busy);
    asm.mov(Reg::R1, Reg::R9);
    asm.jump_to(serve);
    asm.bind_label(busy);
    asm.mov(Reg::R3, Reg::R1);
    asm.sub(Reg::R3, Reg::R9);
    asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(ROOM));
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R4, serve);
    increment(asm, Reg::R7, byte_offset(COULD_LOSE));
    asm.store_memory(Size::Double, Reg::R7, byte_offset(BUSY_UNTIL), Reg::R1);
    asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, imm_from_usize(SUSPECTS_MAX), full);
    asm.mov(Reg::R3, Reg::R8);
    asm.rsh(Reg::R3, 6);
    asm.and(Reg::R3, imm_from_usize(SUSPECTS_MAX / 64 - 1));
    asm.lsh(Reg::R3, 3);
    asm.map_value(Reg::R4, suspects.bpf_map(), 0);
    asm.add(Reg::R4, Reg::R3);
    asm.mov(Reg::R5, Reg::R8);
    asm.and(Reg::R5, 63);
    asm.mov(Reg::R0, 1);
    asm.lsh(Reg::R0, Reg::R5);
    asm.load_memory(Size::Double, Reg::R3, Reg::R4, 0);
    asm.alu_op(Alu::Or, Reg::R3, Reg::R0);
    asm.store_memory(Size::Double, Reg::R4, 0, Reg::R3);
    asm.jump_to(full);
    asm.bind_label(serve);
    asm.load_memory(Size::Double, Reg::R3, Reg::R7, byte_offset(SERVICE));
    asm.add(Reg::R1, Reg::R3);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(BUSY_UNTIL), Reg::R1);
    asm.bind_label(full);
}

/// Ends a stretch at a frame that is late, and not by the pause of the frame before. Keeps R2.
fn pauses(asm: &mut Asm) {
    let [calm, shorter] = [asm.new_label(), asm.new_label()];
    asm.mov(Reg::R3, Reg::R9);
    asm.sub(Reg::R3, Reg::R2);
    asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(PAUSE_FROM));
    asm.jump_if(JumpCondition::Less, Reg::R3, Reg::R4, calm);
    asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(LAST));
    asm.mov(Reg::R5, Reg::R9);
    asm.sub(Reg::R5, Reg::R1);
    asm.jump_if(JumpCondition::Less, Reg::R5, Reg::R4, calm);
    asm.load_memory(Size::Double, Reg::R5, Reg::R7, byte_offset(SINCE));
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R5, shorter);
    asm.sub(Reg::R1, Reg::R5);
    asm.load_memory(Size::Double, Reg::R5, Reg::R7, byte_offset(STEADY));
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R5, shorter);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(STEADY), Reg::R1);
    asm.mov(Reg::R1, Reg::R8);
    asm.load_memory(Size::Double, Reg::R5, Reg::R7, byte_offset(SINCE_NUMBER));
    asm.sub(Reg::R1, Reg::R5);
    asm.sub(Reg::R1, 1);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(STEADY_GAPS), Reg::R1);
    asm.bind_label(shorter);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(SINCE), Reg::R9);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(SINCE_NUMBER), Reg::R8);
    asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(AWAY));
    asm.add(Reg::R1, Reg::R3);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(AWAY), Reg::R1);
    asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(PAUSES));
    asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R1, imm_from_usize(PAUSES_MAX), calm);
    asm.mov(Reg::R5, Reg::R1);
    asm.and(Reg::R5, imm_from_usize(PAUSES_MAX - 1));
    asm.lsh(Reg::R5, 4);
    asm.mov(Reg::R4, Reg::R7);
    asm.add(Reg::R4, Reg::R5);
    asm.store_memory(Size::Double, Reg::R4, byte_offset(PAUSE), Reg::R8);
    asm.store_memory(Size::Double, Reg::R4, byte_offset(PAUSE + 1), Reg::R3);
    asm.add(Reg::R1, 1);
    asm.store_memory(Size::Double, Reg::R7, byte_offset(PAUSES), Reg::R1);
    asm.bind_label(calm);
}
