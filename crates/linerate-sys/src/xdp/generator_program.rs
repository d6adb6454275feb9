//! The program of the generator: makes each live frame anew and sends it when it is due.
//!
//! Frames come back from the other end with whatever was written into them, so the first 128 bytes
//! are stored anew each time (all of them where templates differ in length), then the fields of the
//! flow, their checksums and the signature. Stores are constants of the program: nothing is looked
//! up per frame but the state below.
//!
//! ```text
//! state  0 next number   1 end   2 paced   3 due ns   4 remainder of due   5 step ns
//!        6 remainder of step   7 divisor of remainders   8 moves from  9 burst   10 left of burst
//!       11 late above   12 late   13 worst   14 bytes   15 first   16 last   17 spin below
//!       18 place in mix   19 length of mix   20 trial, stream   21 broken   22 call after a frame
//!       23 service ns   24 room ns   25 busy until   26 could lose   27 pause from   28 pauses
//!       29 away ns   30 stretch since   31 its first number   32 longest stretch   33 its gaps
//!       34 usual time of a frame ns x 16   35 ... mix, bytes   163 ... pauses, number and delay
//! ```
//! Words 22 to 34, the pauses and a bit a frame are those of [`watch`].
//! # Source
//! RFC 1624 §3 (eqn. 3): HC' = ~(~HC + ~m + m') in one's complement, where a value of 32 bits may
//! stand for the sum of its halves, because 2^16 is 1 modulo 65535.

mod watch;

use linerate_core::device::{FrameTemplate, PAUSES_MAX, SUSPECTS_MAX, Varying};

use super::spread::{byte_offset, increment};
use crate::Result;
use crate::bpf::{
    Alu, Asm, DeviceMap, JumpCondition, JumpLabel, MappedArray, Operand, ProgramOptions, Reg, Size,
    XdpProgram, action, helper,
};

pub(super) const NEXT: usize = 0;
pub(super) const END: usize = 1;
pub(super) const PACED: usize = 2;
pub(super) const DUE: usize = 3;
pub(super) const DUE_REST: usize = 4;
pub(super) const STEP: usize = 5;
pub(super) const STEP_REST: usize = 6;
pub(super) const DIVISOR: usize = 7;
pub(super) const MOVES_FROM: usize = 8;
pub(super) const BURST: usize = 9;
pub(super) const BURST_LEFT: usize = 10;
pub(super) const LATE_ABOVE: usize = 11;
pub(super) const LATE: usize = 12;
pub(super) const WORST: usize = 13;
pub(super) const BYTES: usize = 14;
pub(super) const FIRST: usize = 15;
pub(super) const LAST: usize = 16;
pub(super) const SPIN_BELOW: usize = 17;
pub(super) const MIX_AT: usize = 18;
pub(super) const MIX_LENGTH: usize = 19;
pub(super) const SIGNED: usize = 20;
pub(super) const BROKEN: usize = 21;
pub(super) const AFTER: usize = 22;
pub(super) const SERVICE: usize = 23;
pub(super) const ROOM: usize = 24;
pub(super) const BUSY_UNTIL: usize = 25;
pub(super) const COULD_LOSE: usize = 26;
pub(super) const PAUSE_FROM: usize = 27;
pub(super) const PAUSES: usize = 28;
pub(super) const AWAY: usize = 29;
pub(super) const SINCE: usize = 30;
pub(super) const SINCE_NUMBER: usize = 31;
pub(super) const STEADY: usize = 32;
pub(super) const STEADY_GAPS: usize = 33;
pub(super) const USUAL: usize = 34;
pub(super) const MIX: usize = 35;
/// Entries of a mix at most; one byte each.
pub(super) const MIX_MAX: usize = 1024;
/// Words per pause: number of the frame and its delay.
pub(super) const PAUSE: usize = MIX + MIX_MAX / 8;
pub(super) const STATE_WORDS: usize = PAUSE + 2 * PAUSES_MAX;

/// Bytes at the start that are stored one by one: every header that devices rewrite.
const HEADER_BYTES: usize = 128;
/// Looks at the clock while waiting inside the program, each about 25 ns.
const SPINS: i32 = 96;
/// Place of their count on the stack.
const SPINS_LEFT: i16 = -8;
/// The constant of [`FrameTemplate::flow_of`].
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The memory that the program and the process share.
#[derive(Debug)]
pub(super) struct GeneratorMaps {
    pub(super) state: MappedArray,
    /// One bit per frame, set if the frame may have been lost.
    pub(super) suspects: MappedArray,
    payload: MappedArray,
    device: DeviceMap,
}

impl GeneratorMaps {
    pub(super) fn new(ifindex: u32, templates: &[FrameTemplate]) -> Result<Self> {
        let payload =
            MappedArray::new("gen_payload", templates.len() * words_for_bytes(longest(templates)))?;
        for (index, template) in templates.iter().enumerate() {
            let first = index * words_for_bytes(longest(templates));
            for (word, chunk) in template.bytes.chunks(8).enumerate() {
                let mut bytes = [0; 8];
                bytes[..chunk.len()].copy_from_slice(chunk);
                payload.set_word(first + word, u64::from_ne_bytes(bytes));
            }
        }
        Ok(Self {
            state: MappedArray::new("gen_state", STATE_WORDS)?,
            suspects: MappedArray::new("gen_suspects", SUSPECTS_MAX / 64)?,
            payload,
            device: DeviceMap::new(&[ifindex])?,
        })
    }

    /// Loads the program that sends these templates.
    pub(super) fn program(&self, templates: &[FrameTemplate]) -> Result<XdpProgram> {
        let mut builder = Builder::new(self, templates);
        builder.emit_program();
        XdpProgram::load("linerate_gen", &builder.asm, &ProgramOptions { multi_buffer: false })
    }
}

/// Length of the longest template.
pub(super) fn longest(templates: &[FrameTemplate]) -> usize {
    templates.iter().map(|template| template.bytes.len()).max().unwrap_or(0)
}

const fn words_for_bytes(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

pub(super) fn imm_from_usize(value: usize) -> i32 {
    i32::try_from(value).expect("frames are shorter than 64 KiB")
}

fn offset(value: usize) -> i16 {
    i16::try_from(value).expect("live frames are shorter than 4 KiB")
}

/// Registers: R6 the context, R7 the state, R8 the number, R9 the time.
struct Builder<'a> {
    asm: Asm,
    maps: &'a GeneratorMaps,
    templates: &'a [FrameTemplate],
    send: JumpLabel,
    sent: JumpLabel,
    broken: JumpLabel,
    drop: JumpLabel,
}

impl<'a> Builder<'a> {
    fn new(maps: &'a GeneratorMaps, templates: &'a [FrameTemplate]) -> Self {
        let mut asm = Asm::new();
        let [send, sent, broken, drop] =
            [asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label()];
        Self { asm, maps, templates, send, sent, broken, drop }
    }

    fn emit_program(&mut self) {
        self.emit_pacing();
        watch::emit_watch(&mut self.asm, &self.maps.suspects);
        self.schedule();
        self.asm.bind_label(self.send);
        self.choose();
        for (index, template) in self.templates.iter().enumerate() {
            self.emit_frame(index, template);
        }
        self.finish();
    }

    /// R8 = number, R9 = time; leaves when all are sent or the next is not due.
    fn emit_pacing(&mut self) {
        let asm = &mut self.asm;
        let [due, known] = [asm.new_label(), asm.new_label()];
        asm.mov(Reg::R6, Reg::R1);
        asm.map_value(Reg::R7, self.maps.state.bpf_map(), 0);
        asm.load_memory(Size::Double, Reg::R8, Reg::R7, byte_offset(NEXT));
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(END));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R8, Reg::R1, self.drop);
        asm.call_helper(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        // The first call after a frame tells when that one was through.
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(AFTER));
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0, known);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(AFTER), Reg::R9);
        asm.bind_label(known);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(PACED));
        asm.jump_if(JumpCondition::Equal, Reg::R1, 0, self.send);
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, byte_offset(DUE));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R9, Reg::R2, due);
        asm.mov(Reg::R3, Reg::R2);
        asm.sub(Reg::R3, Reg::R9);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(SPIN_BELOW));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R3, Reg::R4, self.drop);
        asm.store_memory(Size::Double, Reg::R10, SPINS_LEFT, SPINS);
        let again = asm.label_here();
        asm.call_helper(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        asm.load_memory(Size::Double, Reg::R2, Reg::R7, byte_offset(DUE));
        asm.jump_if(JumpCondition::GreaterOrEqual, Reg::R9, Reg::R2, due);
        asm.load_memory(Size::Double, Reg::R1, Reg::R10, SPINS_LEFT);
        asm.sub(Reg::R1, 1);
        asm.store_memory(Size::Double, Reg::R10, SPINS_LEFT, Reg::R1);
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0, again);
        asm.jump_to(self.drop);
        asm.bind_label(due);
    }

    /// Counts what is late and finds when the next is due, to the nanosecond.
    fn schedule(&mut self) {
        let asm = &mut self.asm;
        let [on_time, not_worst, keep, within] =
            [asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label()];
        asm.mov(Reg::R3, Reg::R9);
        asm.sub(Reg::R3, Reg::R2);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(LATE_ABOVE));
        asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R4, on_time);
        increment(asm, Reg::R7, byte_offset(LATE));
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(WORST));
        asm.jump_if(JumpCondition::LessOrEqual, Reg::R3, Reg::R4, not_worst);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(WORST), Reg::R3);
        asm.bind_label(not_worst);
        asm.bind_label(on_time);
        // A burst that is too late moves the schedule when its first frame leaves.
        asm.mov(Reg::R5, Reg::R3);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(BURST_LEFT));
        asm.load_memory(Size::Double, Reg::R3, Reg::R7, byte_offset(BURST));
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, Reg::R3, keep);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(MOVES_FROM));
        asm.jump_if(JumpCondition::Less, Reg::R5, Reg::R4, keep);
        asm.mov(Reg::R2, Reg::R9);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(DUE), Reg::R2);
        asm.bind_label(keep);
        asm.sub(Reg::R1, 1);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(BURST_LEFT), Reg::R1);
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0, self.send);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(BURST_LEFT), Reg::R3);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(STEP));
        asm.add(Reg::R2, Reg::R4);
        asm.load_memory(Size::Double, Reg::R3, Reg::R7, byte_offset(DUE_REST));
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(STEP_REST));
        asm.add(Reg::R3, Reg::R4);
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(DIVISOR));
        asm.jump_if(JumpCondition::Less, Reg::R3, Reg::R4, within);
        asm.sub(Reg::R3, Reg::R4);
        asm.add(Reg::R2, 1);
        asm.bind_label(within);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(DUE_REST), Reg::R3);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(DUE), Reg::R2);
    }

    /// R2 = the template of the frame; goes to it by the jumps at the start of each.
    fn choose(&mut self) {
        if self.templates.len() < 2 {
            return;
        }
        let asm = &mut self.asm;
        let within = asm.new_label();
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(MIX_AT));
        asm.and(Reg::R1, imm_from_usize(MIX_MAX - 1));
        asm.mov(Reg::R3, Reg::R7);
        asm.add(Reg::R3, Reg::R1);
        asm.load_memory(Size::Byte, Reg::R2, Reg::R3, byte_offset(MIX));
        asm.add(Reg::R1, 1);
        asm.load_memory(Size::Double, Reg::R3, Reg::R7, byte_offset(MIX_LENGTH));
        asm.jump_if(JumpCondition::Less, Reg::R1, Reg::R3, within);
        asm.mov(Reg::R1, 0);
        asm.bind_label(within);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(MIX_AT), Reg::R1);
    }

    /// Emits the code that sends frames of one template.
    fn emit_frame(&mut self, index: usize, template: &FrameTemplate) {
        let next = self.asm.new_label();
        if self.templates.len() > 1 {
            self.asm.jump_if(JumpCondition::NotEqual, Reg::R2, imm_from_usize(index), next);
        }
        self.length(index, template);
        self.header(template);
        self.emit_flow_fields(template);
        self.signature(template);
        self.balance(template);
        self.asm.mov(Reg::R2, imm_from_usize(template.bytes.len()));
        self.asm.jump_to(self.sent);
        self.asm.bind_label(next);
    }

    /// Gives the frame its length, and with several templates its payload; R1 = its start.
    fn length(&mut self, index: usize, template: &FrameTemplate) {
        let longest = longest(self.templates);
        let length = template.bytes.len();
        let asm = &mut self.asm;
        if length < longest {
            asm.mov(Reg::R1, Reg::R6);
            asm.mov(Reg::R2, imm_from_usize(length) - imm_from_usize(longest));
            asm.call_helper(helper::XDP_ADJUST_TAIL);
            asm.jump_if(JumpCondition::NotEqual, Reg::R0, 0, self.broken);
        }
        let restored = template.signature_at().min(HEADER_BYTES);
        if self.templates.len() > 1 && template.signature_at() > restored {
            let first = index * words_for_bytes(longest) * 8 + restored;
            asm.mov(Reg::R1, Reg::R6);
            asm.mov(Reg::R2, imm_from_usize(restored));
            asm.map_value(
                Reg::R3,
                self.maps.payload.bpf_map(),
                imm_from_usize(first).cast_unsigned(),
            );
            asm.mov(Reg::R4, imm_from_usize(template.signature_at() - restored));
            asm.call_helper(helper::XDP_STORE_BYTES);
            asm.jump_if(JumpCondition::NotEqual, Reg::R0, 0, self.broken);
        }
        asm.load_memory(Size::Word, Reg::R1, Reg::R6, 0);
        asm.load_memory(Size::Word, Reg::R2, Reg::R6, 4);
        asm.mov(Reg::R3, Reg::R1);
        asm.add(Reg::R3, imm_from_usize(length));
        asm.jump_if(JumpCondition::Greater, Reg::R3, Reg::R2, self.broken);
    }

    fn header(&mut self, template: &FrameTemplate) {
        let restored = template.signature_at().min(HEADER_BYTES);
        let mut at = 0;
        while at < restored {
            let rest = &template.bytes[at..restored];
            at += store_constant(&mut self.asm, rest, offset(at));
        }
    }

    /// Stores the fields of the flow and the header's checksum; R0 = what they add to the sum of
    /// the transport.
    fn emit_flow_fields(&mut self, template: &FrameTemplate) {
        let asm = &mut self.asm;
        asm.mov(Reg::R0, 0);
        if template.varying.is_empty() {
            return;
        }
        flow_number(asm, template);
        let header_sum = template.header_sum.filter(|_| any_in_header(template));
        if let Some(sum) = header_sum {
            let at = usize::from(sum.at);
            let old = u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
            let covered = template.varying.iter().filter(|field| field.in_header_sum);
            let start = u64::from(!old)
                + covered.map(|field| not_words(field.value_in_flow(0))).sum::<u64>();
            constant(asm, Reg::R5, start);
        }
        for field in &template.varying {
            field_value(asm, field);
            if header_sum.is_some() && field.in_header_sum {
                asm.add(Reg::R5, Reg::R4);
            }
            if field.in_transport_sum {
                asm.add(Reg::R0, Reg::R4);
            }
            let (bits, size) = if field.width == 2 { (16, Size::Half) } else { (32, Size::Word) };
            asm.swap_be(Reg::R4, bits);
            asm.store_memory(size, Reg::R1, offset(usize::from(field.at)), Reg::R4);
        }
        if let Some(sum) = header_sum {
            emit_fold(asm, Reg::R5, Reg::R4);
            asm.alu_op(Alu::Xor, Reg::R5, 0xffff);
            asm.swap_be(Reg::R5, 16);
            asm.store_memory(Size::Half, Reg::R1, offset(usize::from(sum.at)), Reg::R5);
        }
    }

    /// Stores the signature; R5 = the sum of its words.
    fn signature(&mut self, template: &FrameTemplate) {
        let at = offset(template.signature_at());
        let asm = &mut self.asm;
        asm.load_memory(Size::Double, Reg::R4, Reg::R7, byte_offset(SIGNED));
        asm.mov(Reg::R2, Reg::R8);
        asm.rsh(Reg::R2, 32);
        asm.alu_op(Alu::Or, Reg::R4, Reg::R2);
        asm.mov32(Reg::R5, Reg::R4);
        asm.mov(Reg::R2, Reg::R4);
        asm.rsh(Reg::R2, 32);
        asm.add(Reg::R5, Reg::R2);
        asm.swap_be(Reg::R4, 64);
        asm.store_memory(Size::Double, Reg::R1, at, Reg::R4);
        asm.mov32(Reg::R2, Reg::R8);
        asm.add(Reg::R5, Reg::R2);
        asm.lsh(Reg::R2, 32);
        asm.mov32(Reg::R4, Reg::R9);
        asm.add(Reg::R5, Reg::R4);
        asm.alu_op(Alu::Or, Reg::R4, Reg::R2);
        asm.swap_be(Reg::R4, 64);
        asm.store_memory(Size::Double, Reg::R1, at + 8, Reg::R4);
    }

    /// Stores the word that keeps the transport's checksum right: what it was, less what the fields
    /// and the signature have added.
    fn balance(&mut self, template: &FrameTemplate) {
        let Some(at) = template.balance_at.map(usize::from) else { return };
        let asm = &mut self.asm;
        if (template.signature_at() - at) % 2 == 1 {
            // Its bytes lie the other way round in the words of the sum.
            emit_fold(asm, Reg::R5, Reg::R4);
            asm.mov(Reg::R4, Reg::R5);
            asm.lsh(Reg::R4, 8);
            asm.rsh(Reg::R5, 8);
            asm.alu_op(Alu::Or, Reg::R5, Reg::R4);
            asm.and(Reg::R5, 0xffff);
        }
        asm.add(Reg::R0, Reg::R5);
        emit_fold(asm, Reg::R0, Reg::R4);
        asm.alu_op(Alu::Xor, Reg::R0, 0xffff);
        let old = u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
        let covered = template.varying.iter().filter(|field| field.in_transport_sum);
        let start =
            u64::from(old) + covered.map(|field| u64::from(field.value_in_flow(0))).sum::<u64>();
        constant(asm, Reg::R4, start);
        asm.add(Reg::R0, Reg::R4);
        emit_fold(asm, Reg::R0, Reg::R4);
        asm.swap_be(Reg::R0, 16);
        asm.store_memory(Size::Half, Reg::R1, offset(at), Reg::R0);
    }

    /// Emits code that counts the frame of R2 bytes and sends it.
    fn finish(&mut self) {
        let asm = &mut self.asm;
        let later = asm.new_label();
        asm.bind_label(self.broken);
        increment(asm, Reg::R7, byte_offset(BROKEN));
        asm.bind_label(self.drop);
        asm.mov(Reg::R0, action::DROP);
        asm.exit();
        asm.bind_label(self.sent);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(BYTES));
        asm.add(Reg::R1, Reg::R2);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(BYTES), Reg::R1);
        asm.add(Reg::R8, 1);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(NEXT), Reg::R8);
        asm.load_memory(Size::Double, Reg::R1, Reg::R7, byte_offset(FIRST));
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0, later);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(FIRST), Reg::R9);
        asm.bind_label(later);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(LAST), Reg::R9);
        asm.store_memory(Size::Double, Reg::R7, byte_offset(AFTER), 0);
        asm.load_map(Reg::R1, &self.maps.device);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, 0);
        asm.call_helper(helper::REDIRECT_MAP);
        asm.exit();
    }
}

/// Emits a store of the first 8, 4, 2 or 1 bytes; returns their number.
fn store_constant(asm: &mut Asm, bytes: &[u8], at: i16) -> usize {
    if let Some(word) = bytes.first_chunk::<8>() {
        asm.load_imm64(Reg::R4, u64::from_ne_bytes(*word));
        asm.store_memory(Size::Double, Reg::R1, at, Reg::R4);
        8
    } else if let Some(word) = bytes.first_chunk::<4>() {
        asm.store_memory(Size::Word, Reg::R1, at, i32::from_ne_bytes(*word));
        4
    } else if let Some(word) = bytes.first_chunk::<2>() {
        asm.store_memory(Size::Half, Reg::R1, at, i32::from(u16::from_ne_bytes(*word)));
        2
    } else {
        asm.store_memory(Size::Byte, Reg::R1, at, i32::from(bytes[0]));
        1
    }
}

/// R3 = the flow, as [`FrameTemplate::flow_of`] has it.
fn flow_number(asm: &mut Asm, template: &FrameTemplate) {
    let flows = u64::from(template.flows.max(1));
    asm.mov(Reg::R3, Reg::R8);
    if template.shuffled {
        asm.load_imm64(Reg::R4, GOLDEN);
        asm.alu_op(Alu::Mul, Reg::R3, Reg::R4);
        asm.rsh(Reg::R3, 32);
        with_constant(asm, Alu::Mul, Reg::R3, flows);
        asm.rsh(Reg::R3, 32);
    } else {
        with_constant(asm, Alu::Mod, Reg::R3, flows);
    }
}

/// R4 = the value of a field in frames of flow R3.
fn field_value(asm: &mut Asm, field: &Varying) {
    asm.mov(Reg::R4, Reg::R3);
    if field.divisor > 1 {
        with_constant(asm, Alu::Div, Reg::R4, field.divisor.into());
    }
    with_constant(asm, Alu::Mod, Reg::R4, field.count.max(1).into());
    with_constant(asm, Alu::Add, Reg::R4, field.base.into());
    if field.width == 2 {
        asm.and(Reg::R4, 0xffff);
    } else {
        asm.mov32(Reg::R4, Reg::R4);
    }
}

/// `dst = dst op value`, through R2 where the value has more than 31 bits.
fn with_constant(asm: &mut Asm, op: Alu, dst: Reg, value: u64) {
    if let Ok(value) = i32::try_from(value) {
        asm.alu_op(op, dst, Operand::Imm(value));
    } else {
        asm.load_imm64(Reg::R2, value);
        asm.alu_op(op, dst, Reg::R2);
    }
}

fn constant(asm: &mut Asm, dst: Reg, value: u64) {
    match i32::try_from(value) {
        Ok(value) => asm.mov(dst, value),
        Err(_) => asm.load_imm64(dst, value),
    }
}

/// Folds a sum below 2^40 to 16 bits.
fn emit_fold(asm: &mut Asm, sum: Reg, scratch: Reg) {
    for _ in 0..3 {
        asm.mov(scratch, sum);
        asm.rsh(scratch, 16);
        asm.and(sum, 0xffff);
        asm.add(sum, scratch);
    }
}

fn any_in_header(template: &FrameTemplate) -> bool {
    template.varying.iter().any(|field| field.in_header_sum)
}

/// Sum of the complements of a value's two words.
fn not_words(value: u32) -> u64 {
    let [high, low] = [value >> 16, value & 0xffff];
    u64::from(!high & 0xffff) + u64::from(!low & 0xffff)
}
