//! Timing of the generator's program, recorded by itself: `linerate_core::device::SendWatch` as
//! eBPF code.
//!
//! The program also knows how long each call took. A frame whose call took longer than usual
//! reached the device later by up to that difference, and so nearer to the next frame.

use linerate_core::device::{PAUSES_MAX, SUSPECTS_MAX};

use super::{
    AFTER, AWAY, BUSY_UNTIL, COULD_LOSE, LAST, PAUSE, PAUSE_FROM, PAUSES, ROOM, SERVICE, SINCE,
    SINCE_NUMBER, STEADY, STEADY_GAPS, USUAL, imm,
};
use crate::bpf::{Alu, Asm, Condition, MappedArray, Reg, Size};
use crate::xdp::spread::{byte, increment};

/// A frame that took so much longer than usual was held up, by an interrupt for one. Below, times
/// differ from frame to frame.
const HELD_UP_NS: i32 = 1000;

/// Watches the frame that is about to leave. Expects R2 = when it was due, R7 = the state, R8 = its
/// number, R9 = now; keeps these.
pub(super) fn emit(asm: &mut Asm, suspects: &MappedArray) {
    held_up(asm);
    play(asm, suspects);
    pauses(asm);
}

/// R1 = until when a device that just carries the load may be busy: longer by what the frame
/// before took more than usual on its way to it. Keeps R2.
fn held_up(asm: &mut Asm) {
    let [first, usual, soon, done] = [asm.label(), asm.label(), asm.label(), asm.label()];
    asm.load(Size::Double, Reg::R1, Reg::R7, byte(BUSY_UNTIL));
    asm.load(Size::Double, Reg::R4, Reg::R7, byte(LAST));
    asm.jump_if(Condition::Equal, Reg::R4, 0, done);
    asm.load(Size::Double, Reg::R3, Reg::R7, byte(AFTER));
    asm.sub(Reg::R3, Reg::R4);
    asm.load(Size::Double, Reg::R5, Reg::R7, byte(USUAL));
    asm.jump_if(Condition::Equal, Reg::R5, 0, first);
    asm.rsh(Reg::R5, 4);
    asm.mov(Reg::R0, Reg::R5);
    asm.add(Reg::R0, HELD_UP_NS);
    asm.jump_if(Condition::LessOrEqual, Reg::R3, Reg::R0, usual);
    asm.add(Reg::R4, Reg::R3);
    asm.sub(Reg::R4, Reg::R5);
    asm.load(Size::Double, Reg::R0, Reg::R7, byte(SERVICE));
    asm.add(Reg::R4, Reg::R0);
    asm.jump_if(Condition::GreaterOrEqual, Reg::R1, Reg::R4, soon);
    asm.mov(Reg::R1, Reg::R4);
    asm.bind(soon);
    // A time far off counts as twice the usual one.
    asm.lsh(Reg::R5, 1);
    asm.jump_if(Condition::LessOrEqual, Reg::R3, Reg::R5, usual);
    asm.mov(Reg::R3, Reg::R5);
    asm.bind(usual);
    asm.load(Size::Double, Reg::R5, Reg::R7, byte(USUAL));
    asm.mov(Reg::R4, Reg::R5);
    asm.rsh(Reg::R4, 4);
    asm.sub(Reg::R5, Reg::R4);
    asm.add(Reg::R5, Reg::R3);
    asm.store(Size::Double, Reg::R7, byte(USUAL), Reg::R5);
    asm.jump(done);
    asm.bind(first);
    asm.lsh(Reg::R3, 4);
    asm.store(Size::Double, Reg::R7, byte(USUAL), Reg::R3);
    asm.bind(done);
}

/// Plays a device along that just carries the load: what it has no room for could be lost.
/// Keeps R2.
fn play(asm: &mut Asm, suspects: &MappedArray) {
    let [busy, serve, full] = [asm.label(), asm.label(), asm.label()];
    asm.jump_if(Condition::Greater, Reg::R1, Reg::R9, busy);
    asm.mov(Reg::R1, Reg::R9);
    asm.jump(serve);
    asm.bind(busy);
    asm.mov(Reg::R3, Reg::R1);
    asm.sub(Reg::R3, Reg::R9);
    asm.load(Size::Double, Reg::R4, Reg::R7, byte(ROOM));
    asm.jump_if(Condition::LessOrEqual, Reg::R3, Reg::R4, serve);
    increment(asm, Reg::R7, byte(COULD_LOSE));
    asm.store(Size::Double, Reg::R7, byte(BUSY_UNTIL), Reg::R1);
    asm.jump_if(Condition::GreaterOrEqual, Reg::R8, imm(SUSPECTS_MAX), full);
    asm.mov(Reg::R3, Reg::R8);
    asm.rsh(Reg::R3, 6);
    asm.and(Reg::R3, imm(SUSPECTS_MAX / 64 - 1));
    asm.lsh(Reg::R3, 3);
    asm.map_value(Reg::R4, suspects.map(), 0);
    asm.add(Reg::R4, Reg::R3);
    asm.mov(Reg::R5, Reg::R8);
    asm.and(Reg::R5, 63);
    asm.mov(Reg::R0, 1);
    asm.lsh(Reg::R0, Reg::R5);
    asm.load(Size::Double, Reg::R3, Reg::R4, 0);
    asm.alu(Alu::Or, Reg::R3, Reg::R0);
    asm.store(Size::Double, Reg::R4, 0, Reg::R3);
    asm.jump(full);
    asm.bind(serve);
    asm.load(Size::Double, Reg::R3, Reg::R7, byte(SERVICE));
    asm.add(Reg::R1, Reg::R3);
    asm.store(Size::Double, Reg::R7, byte(BUSY_UNTIL), Reg::R1);
    asm.bind(full);
}

/// Ends a stretch at a frame that is late, and not by the pause of the frame before. Keeps R2.
fn pauses(asm: &mut Asm) {
    let [calm, shorter] = [asm.label(), asm.label()];
    asm.mov(Reg::R3, Reg::R9);
    asm.sub(Reg::R3, Reg::R2);
    asm.load(Size::Double, Reg::R4, Reg::R7, byte(PAUSE_FROM));
    asm.jump_if(Condition::Less, Reg::R3, Reg::R4, calm);
    asm.load(Size::Double, Reg::R1, Reg::R7, byte(LAST));
    asm.mov(Reg::R5, Reg::R9);
    asm.sub(Reg::R5, Reg::R1);
    asm.jump_if(Condition::Less, Reg::R5, Reg::R4, calm);
    asm.load(Size::Double, Reg::R5, Reg::R7, byte(SINCE));
    asm.jump_if(Condition::LessOrEqual, Reg::R1, Reg::R5, shorter);
    asm.sub(Reg::R1, Reg::R5);
    asm.load(Size::Double, Reg::R5, Reg::R7, byte(STEADY));
    asm.jump_if(Condition::LessOrEqual, Reg::R1, Reg::R5, shorter);
    asm.store(Size::Double, Reg::R7, byte(STEADY), Reg::R1);
    asm.mov(Reg::R1, Reg::R8);
    asm.load(Size::Double, Reg::R5, Reg::R7, byte(SINCE_NUMBER));
    asm.sub(Reg::R1, Reg::R5);
    asm.sub(Reg::R1, 1);
    asm.store(Size::Double, Reg::R7, byte(STEADY_GAPS), Reg::R1);
    asm.bind(shorter);
    asm.store(Size::Double, Reg::R7, byte(SINCE), Reg::R9);
    asm.store(Size::Double, Reg::R7, byte(SINCE_NUMBER), Reg::R8);
    asm.load(Size::Double, Reg::R1, Reg::R7, byte(AWAY));
    asm.add(Reg::R1, Reg::R3);
    asm.store(Size::Double, Reg::R7, byte(AWAY), Reg::R1);
    asm.load(Size::Double, Reg::R1, Reg::R7, byte(PAUSES));
    asm.jump_if(Condition::GreaterOrEqual, Reg::R1, imm(PAUSES_MAX), calm);
    asm.mov(Reg::R5, Reg::R1);
    asm.and(Reg::R5, imm(PAUSES_MAX - 1));
    asm.lsh(Reg::R5, 4);
    asm.mov(Reg::R4, Reg::R7);
    asm.add(Reg::R4, Reg::R5);
    asm.store(Size::Double, Reg::R4, byte(PAUSE), Reg::R8);
    asm.store(Size::Double, Reg::R4, byte(PAUSE + 1), Reg::R3);
    asm.add(Reg::R1, 1);
    asm.store(Size::Double, Reg::R7, byte(PAUSES), Reg::R1);
    asm.bind(calm);
}
