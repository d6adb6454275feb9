//! The program of the counter: what happens to each frame, and where its figures are.
//!
//! ```text
//! control  0 trial   1 own streams (bits)   2 shortest   3 longest   4 upper half of the trial
//!          8 ... 23  slot of stream 0 ... 15
//!         24 ... 39  first byte in the bitmap of slot 0 ... 15
//!         40 ... 55  frames of the slot that the bitmap remembers
//!         56 ... 71  former trials
//!         72 ...     slot 0: next number, last arrival; slot 1: ...
//! counts   a row for each processor: seven words for foreign frames, then for each slot
//!          0 frames  1 bytes  2 copies  3 reordered  4 wrong length  5 loss runs  6 longest
//!          7 first  8 last  9 not remembered  10 latency  10 + WORDS gap
//! ```
//! Each processor counts in a row of its own, so that no count is lost; the order of numbers and
//! the last arrival are one for all, so that they are exact when one NAPI serves the interface.

use super::frame;
use super::spread::{self, byte_offset, increment};
use crate::bpf::{
    Alu, Asm, JumpCondition, JumpLabel, MappedArray, ProgramOptions, Reg, Size, XdpProgram, action,
    helper,
};
use crate::{Error, Result};

/// Largest number of streams that a counter tells apart.
pub(super) const STREAMS: usize = 16;

pub(super) const TRIAL: usize = 0;
pub(super) const OWN: usize = 1;
pub(super) const SHORTEST: usize = 2;
pub(super) const LONGEST: usize = 3;
pub(super) const UPPER: usize = 4;
pub(super) const SLOT_OF: usize = 8;
pub(super) const BITS_AT: usize = SLOT_OF + STREAMS;
pub(super) const REMEMBERED: usize = BITS_AT + STREAMS;
pub(super) const FORMER: usize = REMEMBERED + STREAMS;
pub(super) const FORMER_TRIALS: usize = 16;
pub(super) const ORDER: usize = FORMER + FORMER_TRIALS;
pub(super) const NEXT: usize = 0;
pub(super) const ARRIVED: usize = 1;
const ORDER_WORDS: usize = 2;
pub(super) const CONTROL_WORDS: usize = ORDER + STREAMS * ORDER_WORDS;

pub(super) const FRAMES: usize = 0;
pub(super) const BYTES: usize = 1;
pub(super) const COPIES: usize = 2;
pub(super) const REORDERED: usize = 3;
pub(super) const WRONG_LENGTH: usize = 4;
pub(super) const LOSS_RUNS: usize = 5;
pub(super) const LONGEST_RUN: usize = 6;
pub(super) const FIRST: usize = 7;
pub(super) const LAST: usize = 8;
pub(super) const NOT_REMEMBERED: usize = 9;
pub(super) const LATENCY: usize = 10;
pub(super) const GAP: usize = LATENCY + spread::WORDS;
pub(super) const SLOT_WORDS: usize = GAP + spread::WORDS;

pub(super) const ARP: usize = 0;
pub(super) const NEIGHBOUR: usize = 1;
pub(super) const LINK_CONTROL: usize = 2;
pub(super) const OTHER_TRIAL: usize = 3;
pub(super) const LOOP: usize = 4;
pub(super) const OTHER: usize = 5;
pub(super) const PAUSE: usize = 6;
pub(super) const FOREIGN_WORDS: usize = 7;

/// The memory that program and process share.
#[derive(Debug)]
pub(super) struct SinkMaps {
    pub(super) control: MappedArray,
    pub(super) counts: MappedArray,
    pub(super) bitmap: MappedArray,
    pub(super) log: MappedArray,
    pub(super) cpus: usize,
    pub(super) slots: usize,
    pub(super) bitmap_words: usize,
    /// Number of arrivals that the log keeps per slot.
    pub(super) log_frames: usize,
    /// True if frames may come in several buffers.
    pub(super) several_buffers: bool,
}

impl SinkMaps {
    pub(super) fn new(
        cpus: usize,
        slots: usize,
        bitmap_words: usize,
        log_frames: usize,
        several_buffers: bool,
    ) -> Result<Self> {
        let row = FOREIGN_WORDS + slots * SLOT_WORDS;
        Ok(Self {
            control: MappedArray::new("sink_control", CONTROL_WORDS)?,
            counts: MappedArray::new("sink_counts", cpus * row)?,
            bitmap: MappedArray::new("sink_bitmap", bitmap_words)?,
            log: MappedArray::new("sink_log", log_frames * slots)?,
            cpus,
            slots,
            bitmap_words: bitmap_words.max(1),
            log_frames,
            several_buffers,
        })
    }

    /// Number of words per processor.
    pub(super) const fn words_per_cpu(&self) -> usize {
        FOREIGN_WORDS + self.slots * SLOT_WORDS
    }

    /// First word of a slot in the row of a processor.
    pub(super) const fn slot_at(&self, cpu: usize, slot: usize) -> usize {
        cpu * self.words_per_cpu() + FOREIGN_WORDS + slot * SLOT_WORDS
    }

    /// First word of a slot's order of numbers.
    pub(super) const fn order_at(slot: usize) -> usize {
        ORDER + slot * ORDER_WORDS
    }

    /// Loads the program that counts here.
    pub(super) fn program(&self) -> Result<XdpProgram> {
        let sizes =
            [self.cpus * self.words_per_cpu() * 8, self.bitmap_words * 8, self.log_frames * 8];
        if sizes.iter().any(|bytes| i32::try_from(*bytes).is_err()) {
            let source = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
            return Err(Error::new("make a counter of bytes", sizes[0], source));
        }
        let mut builder = SinkProgramBuilder::new(self);
        builder.emit_program();
        let options = ProgramOptions { multi_buffer: self.several_buffers };
        XdpProgram::load("linerate_sink", &builder.asm, &options)
    }
}

fn imm_from_usize(value: usize) -> i32 {
    i32::try_from(value).expect("checked before the program is built")
}

/// On the stack, below 16 bytes for the signature.
const SLOT: i16 = -24;
const LENGTH: i16 = -32;

/// Registers: R6 the context, then the time of arrival; R7 the length, then the slot's counters;
/// R8 and R9 the halves of the signature, then number and stamp.
struct SinkProgramBuilder<'a> {
    asm: Asm,
    maps: &'a SinkMaps,
    signed: JumpLabel,
    plain: JumpLabel,
    foreign: JumpLabel,
    copy: JumpLabel,
    not_remembered: JumpLabel,
    count: JumpLabel,
    drop: JumpLabel,
}

impl<'a> SinkProgramBuilder<'a> {
    fn new(maps: &'a SinkMaps) -> Self {
        let mut asm = Asm::new();
        let mut label = || asm.new_label();
        let [signed, plain, foreign, copy, not_remembered, count, drop] =
            [label(), label(), label(), label(), label(), label(), label()];
        Self { asm, maps, signed, plain, foreign, copy, not_remembered, count, drop }
    }

    fn emit_program(&mut self) {
        self.asm.mov(Reg::R6, Reg::R1);
        frame::signature(&mut self.asm, self.maps.several_buffers, self.plain);
        self.stream();
        self.arrival();
        self.remember();
        self.count_frame();
        self.emit_order();
        self.emit_times();
        self.emit_log();
        self.asm.bind_label(self.drop);
        self.asm.mov(Reg::R0, action::DROP);
        self.asm.exit();
        self.copies();
        self.classify_signed();
        self.classify_plain();
        self.count_foreign();
    }

    /// Leaves unless the frame is of the trial and of a stream that is expected; slot and length
    /// go to the stack, R8 = number, R9 = stamp.
    fn stream(&mut self) {
        let asm = &mut self.asm;
        asm.map_value(Reg::R1, self.maps.control.bpf_map(), 0);
        asm.mov(Reg::R2, Reg::R8);
        asm.rsh(Reg::R2, 32);
        asm.load_memory(Size::Double, Reg::R3, Reg::R1, byte_offset(TRIAL));
        asm.jump_if(JumpCondition::NotEqual, Reg::R2, Reg::R3, self.signed);
        asm.mov(Reg::R4, Reg::R8);
        asm.rsh(Reg::R4, 24);
        asm.and(Reg::R4, 0xff);
        let [known, ours] = [asm.new_label(), asm.new_label()];
        asm.jump_if(JumpCondition::Less, Reg::R4, imm_from_usize(STREAMS), known);
        asm.mov(Reg::R9, imm_from_usize(OTHER_TRIAL));
        asm.jump_to(self.foreign);
        asm.bind_label(known);
        asm.load_memory(Size::Double, Reg::R5, Reg::R1, byte_offset(OWN));
        asm.rsh(Reg::R5, Reg::R4);
        asm.and(Reg::R5, 1);
        asm.jump_if(JumpCondition::Equal, Reg::R5, 0, ours);
        asm.mov(Reg::R9, imm_from_usize(LOOP));
        asm.jump_to(self.foreign);
        asm.bind_label(ours);
        asm.lsh(Reg::R4, 3);
        asm.add(Reg::R1, Reg::R4);
        asm.load_memory(Size::Double, Reg::R5, Reg::R1, byte_offset(SLOT_OF));
        let expected = asm.new_label();
        asm.jump_if(JumpCondition::Less, Reg::R5, imm_from_usize(self.maps.slots), expected);
        asm.mov(Reg::R9, imm_from_usize(OTHER_TRIAL));
        asm.jump_to(self.foreign);
        asm.bind_label(expected);
        asm.store_memory(Size::Double, Reg::R10, SLOT, Reg::R5);
        asm.store_memory(Size::Double, Reg::R10, LENGTH, Reg::R7);
        asm.and(Reg::R8, 0x00ff_ffff);
        asm.lsh(Reg::R8, 32);
        asm.mov(Reg::R2, Reg::R9);
        asm.rsh(Reg::R2, 32);
        asm.alu_op(Alu::Or, Reg::R8, Reg::R2);
        asm.mov32(Reg::R9, Reg::R9);
    }

    /// R6 = time, R7 = counters of the slot in the row of this processor.
    fn arrival(&mut self) {
        let asm = &mut self.asm;
        asm.call_helper(helper::KTIME_GET_NS);
        asm.mov(Reg::R6, Reg::R0);
        asm.call_helper(helper::GET_SMP_PROCESSOR_ID);
        asm.jump_if(
            JumpCondition::GreaterOrEqual,
            Reg::R0,
            imm_from_usize(self.maps.cpus),
            self.drop,
        );
        asm.alu_op(Alu::Mul, Reg::R0, imm_from_usize(self.maps.words_per_cpu() * 8));
        asm.load_memory(Size::Double, Reg::R1, Reg::R10, SLOT);
        asm.alu_op(Alu::Mul, Reg::R1, imm_from_usize(SLOT_WORDS * 8));
        asm.add(Reg::R0, Reg::R1);
        asm.map_value(Reg::R7, self.maps.counts.bpf_map(), 0);
        asm.add(Reg::R7, Reg::R0);
        asm.add(Reg::R7, imm_from_usize(FOREIGN_WORDS * 8));
    }

    /// Sets the bit of the frame's number; a bit already set means a duplicate.
    fn remember(&mut self) {
        let asm = &mut self.asm;
        let last = imm_from_usize(self.maps.bitmap_words * 8) - 8;
        asm.map_value(Reg::R1, self.maps.control.bpf_map(), 0);
        asm.load_memory(Size::Double, Reg::R2, Reg::R10, SLOT);
        asm.lsh(Reg::R2, 3);
        asm.add(Reg::R1, Reg::R2);
        asm.load_memory(Size::Double, Reg::R3, Reg::R1, byte_offset(REMEMBERED));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, Reg::R3, self.not_remembered);
        asm.load_memory(Size::Double, Reg::R4, Reg::R1, byte_offset(BITS_AT));
        asm.mov(Reg::R3, Reg::R8);
        asm.rsh(Reg::R3, 6);
        asm.lsh(Reg::R3, 3);
        asm.add(Reg::R4, Reg::R3);
        asm.and(Reg::R4, -8);
        asm.jump_if(JumpCondition::Greater, Reg::R4, last, self.not_remembered);
        asm.map_value(Reg::R1, self.maps.bitmap.bpf_map(), 0);
        asm.add(Reg::R1, Reg::R4);
        asm.mov(Reg::R2, 1);
        asm.mov(Reg::R3, Reg::R8);
        asm.and(Reg::R3, 63);
        asm.lsh(Reg::R2, Reg::R3);
        asm.mov(Reg::R3, Reg::R2);
        asm.atomic_fetch_or(Reg::R1, 0, Reg::R2);
        asm.jump_if(JumpCondition::AnyBit, Reg::R2, Reg::R3, self.copy);
        asm.bind_label(self.count);
    }

    fn count_frame(&mut self) {
        let asm = &mut self.asm;
        increment(asm, Reg::R7, byte_offset(FRAMES));
        asm.load_memory(Size::Double, Reg::R1, Reg::R10, LENGTH);
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, byte_offset(BYTES));
        asm.add(Reg::R2, Reg::R1);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(BYTES), Reg::R2);
        let [wrong, right, later] = [asm.new_label(), asm.new_label(), asm.new_label()];
        asm.map_value(Reg::R3, self.maps.control.bpf_map(), 0);
        asm.load_memory(Size::Double, Reg::R2, Reg::R3, byte_offset(SHORTEST));
        asm.jump_if(JumpCondition::Less, Reg::R1, Reg::R2, wrong);
        asm.load_memory(Size::Double, Reg::R2, Reg::R3, byte_offset(LONGEST));
        asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R2, right);
        asm.bind_label(wrong);
        increment(asm, Reg::R7, byte_offset(WRONG_LENGTH));
        asm.bind_label(right);
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, byte_offset(FIRST));
        asm.jump_if(JumpCondition::NotEqual, Reg::R2, 0, later);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(FIRST), Reg::R6);
        asm.bind_label(later);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(LAST), Reg::R6);
    }

    /// RFC 4737 §3.3: a frame is reordered when its number is below the next expected.
    fn emit_order(&mut self) {
        let asm = &mut self.asm;
        let [forward, done, in_order, not_longest] =
            [asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label()];
        order_of_slot(asm, self.maps);
        asm.load_memory(Size::Double, Reg::R2, Reg::R1, byte_offset(NEXT));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, Reg::R2, forward);
        increment(asm, Reg::R7, byte_offset(REORDERED));
        asm.jump_to(done);
        asm.bind_label(forward);
        asm.jump_if(JumpCondition::Equal, Reg::R8, Reg::R2, in_order);
        increment(asm, Reg::R7, byte_offset(LOSS_RUNS));
        asm.mov(Reg::R3, Reg::R8);
        asm.sub(Reg::R3, Reg::R2);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(LONGEST_RUN));
        asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R4, not_longest);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(LONGEST_RUN), Reg::R3);
        asm.bind_label(not_longest);
        asm.bind_label(in_order);
        asm.mov(Reg::R3, Reg::R8);
        asm.add(Reg::R3, 1);
        asm.store_memory(Size::Double, Reg::R1, byte_offset(NEXT), Reg::R3);
        asm.bind_label(done);
    }

    fn emit_times(&mut self) {
        let asm = &mut self.asm;
        let [first, not_before] = [asm.new_label(), asm.new_label()];
        order_of_slot(asm, self.maps);
        asm.load_memory(Size::Double, Reg::R2, Reg::R1, byte_offset(ARRIVED));
        asm.store_memory(Size::Double, Reg::R1, byte_offset(ARRIVED), Reg::R6);
        asm.jump_if(JumpCondition::Equal, Reg::R2, 0, first);
        asm.mov(Reg::R1, Reg::R6);
        // Another processor may have read its clock later and come here earlier.
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R1, Reg::R2, not_before);
        asm.mov(Reg::R1, Reg::R2);
        asm.bind_label(not_before);
        asm.sub(Reg::R1, Reg::R2);
        spread::emit_histogram(asm, byte_offset(GAP));
        asm.bind_label(first);
        asm.mov(Reg::R1, Reg::R6);
        asm.sub(Reg::R1, Reg::R9);
        asm.mov32(Reg::R1, Reg::R1);
        spread::emit_histogram(asm, byte_offset(LATENCY));
    }

    fn emit_log(&mut self) {
        if self.maps.log_frames == 0 {
            return;
        }
        let asm = &mut self.asm;
        let frames = imm_from_usize(self.maps.log_frames);
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, frames, self.drop);
        asm.load_memory(Size::Double, Reg::R2, Reg::R10, SLOT);
        asm.alu_op(Alu::Mul, Reg::R2, frames);
        asm.add(Reg::R2, Reg::R8);
        asm.lsh(Reg::R2, 3);
        asm.map_value(Reg::R1, self.maps.log.bpf_map(), 0);
        asm.add(Reg::R1, Reg::R2);
        asm.store_memory(Size::Double, Reg::R1, 0, Reg::R6);
    }

    fn copies(&mut self) {
        self.asm.bind_label(self.copy);
        increment(&mut self.asm, Reg::R7, byte_offset(COPIES));
        self.asm.jump_to(self.drop);
        self.asm.bind_label(self.not_remembered);
        increment(&mut self.asm, Reg::R7, byte_offset(NOT_REMEMBERED));
        self.asm.jump_to(self.count);
    }

    /// R8 holds a signature of no current trial: perhaps of another.
    fn classify_signed(&mut self) {
        let asm = &mut self.asm;
        let other = asm.new_label();
        asm.bind_label(self.signed);
        asm.map_value(Reg::R1, self.maps.control.bpf_map(), 0);
        asm.mov(Reg::R2, Reg::R8);
        asm.rsh(Reg::R2, 32);
        for word in 0..FORMER_TRIALS {
            asm.load_memory(Size::Double, Reg::R3, Reg::R1, byte_offset(FORMER + word));
            asm.jump_if(JumpCondition::Equal, Reg::R2, Reg::R3, other);
        }
        asm.rsh(Reg::R2, 16);
        asm.load_memory(Size::Double, Reg::R3, Reg::R1, byte_offset(UPPER));
        asm.jump_if(JumpCondition::NotEqual, Reg::R2, Reg::R3, self.plain);
        asm.bind_label(other);
        asm.mov(Reg::R9, imm_from_usize(OTHER_TRIAL));
        asm.jump_to(self.foreign);
    }

    /// R9 = the kind of a frame without signature.
    fn classify_plain(&mut self) {
        let asm = &mut self.asm;
        let [not_group, ipv6, check] = [asm.new_label(), asm.new_label(), asm.new_label()];
        asm.bind_label(self.plain);
        asm.mov(Reg::R9, imm_from_usize(OTHER));
        asm.load_memory(Size::Word, Reg::R2, Reg::R6, 0);
        asm.load_memory(Size::Word, Reg::R3, Reg::R6, 4);
        asm.mov(Reg::R4, Reg::R2);
        asm.add(Reg::R4, 14);
        asm.jump_if(JumpCondition::Greater, Reg::R4, Reg::R3, self.foreign);
        // MAC control, whichever address it is to.
        let not_pause = asm.new_label();
        asm.load_memory(Size::Half, Reg::R4, Reg::R2, 12);
        asm.swap_be(Reg::R4, 16);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 0x8808, not_pause);
        asm.mov(Reg::R9, imm_from_usize(PAUSE));
        asm.jump_to(self.foreign);
        asm.bind_label(not_pause);
        // 01:80:c2:00:00:0x
        asm.load_memory(Size::Word, Reg::R4, Reg::R2, 0);
        asm.swap_be(Reg::R4, 32);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 0x0180_c200, not_group);
        asm.load_memory(Size::Half, Reg::R4, Reg::R2, 4);
        asm.swap_be(Reg::R4, 16);
        asm.jump_if(JumpCondition::Greater, Reg::R4, 0x000f, not_group);
        asm.mov(Reg::R9, imm_from_usize(LINK_CONTROL));
        asm.jump_to(self.foreign);
        asm.bind_label(not_group);
        asm.load_memory(Size::Half, Reg::R4, Reg::R2, 12);
        asm.swap_be(Reg::R4, 16);
        asm.jump_if(JumpCondition::Equal, Reg::R4, 0x86dd, ipv6);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 0x0806, self.foreign);
        asm.mov(Reg::R9, imm_from_usize(ARP));
        asm.jump_to(self.foreign);
        // IPv6: ICMPv6 at once, or behind one hop-by-hop header of 8 bytes (listener reports).
        asm.bind_label(ipv6);
        let plain = asm.new_label();
        asm.mov(Reg::R4, Reg::R2);
        asm.add(Reg::R4, 63);
        asm.jump_if(JumpCondition::Greater, Reg::R4, Reg::R3, self.foreign);
        asm.load_memory(Size::Byte, Reg::R5, Reg::R2, 62);
        asm.load_memory(Size::Byte, Reg::R4, Reg::R2, 20);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 0, plain);
        asm.load_memory(Size::Byte, Reg::R4, Reg::R2, 54);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 58, self.foreign);
        asm.jump_to(check);
        asm.bind_label(plain);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, 58, self.foreign);
        asm.load_memory(Size::Byte, Reg::R5, Reg::R2, 54);
        asm.bind_label(check);
        let yes = asm.new_label();
        asm.jump_if(JumpCondition::Equal, Reg::R5, 143, yes);
        asm.jump_if(JumpCondition::Less, Reg::R5, 130, self.foreign);
        asm.jump_if(JumpCondition::Greater, Reg::R5, 137, self.foreign);
        asm.bind_label(yes);
        asm.mov(Reg::R9, imm_from_usize(NEIGHBOUR));
    }

    /// Counts kind R9. Test frames of other trials and loops end here, the rest is for the host.
    fn count_foreign(&mut self) {
        let asm = &mut self.asm;
        let pass = asm.new_label();
        asm.bind_label(self.foreign);
        asm.call_helper(helper::GET_SMP_PROCESSOR_ID);
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R0, imm_from_usize(self.maps.cpus), pass);
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R9, imm_from_usize(FOREIGN_WORDS), pass);
        asm.alu_op(Alu::Mul, Reg::R0, imm_from_usize(self.maps.words_per_cpu() * 8));
        asm.mov(Reg::R2, Reg::R9);
        asm.lsh(Reg::R2, 3);
        asm.add(Reg::R0, Reg::R2);
        asm.map_value(Reg::R1, self.maps.counts.bpf_map(), 0);
        asm.add(Reg::R1, Reg::R0);
        increment(asm, Reg::R1, 0);
        asm.jump_if(JumpCondition::Equal, Reg::R9, imm_from_usize(OTHER_TRIAL), self.drop);
        asm.jump_if(JumpCondition::Equal, Reg::R9, imm_from_usize(LOOP), self.drop);
        asm.bind_label(pass);
        asm.mov(Reg::R0, action::PASS);
        asm.exit();
    }
}

/// R1 = what is kept of the slot's order. Changes R2.
fn order_of_slot(asm: &mut Asm, maps: &SinkMaps) {
    asm.map_value(Reg::R1, maps.control.bpf_map(), 0);
    asm.load_memory(Size::Double, Reg::R2, Reg::R10, SLOT);
    asm.alu_op(Alu::Mul, Reg::R2, imm_from_usize(ORDER_WORDS * 8));
    asm.add(Reg::R1, Reg::R2);
    asm.add(Reg::R1, imm_from_usize(ORDER * 8));
}
