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

use super::spread::{byte, increment};
use crate::Result;
use crate::bpf::{
    Alu, Asm, Condition, DeviceMap, Label, MappedArray, Operand, Program, ProgramOptions, Reg,
    Size, action, helper,
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
        let payload = MappedArray::new("gen_payload", templates.len() * words(longest(templates)))?;
        for (index, template) in templates.iter().enumerate() {
            let first = index * words(longest(templates));
            for (word, chunk) in template.bytes.chunks(8).enumerate() {
                let mut bytes = [0; 8];
                bytes[..chunk.len()].copy_from_slice(chunk);
                payload.set(first + word, u64::from_ne_bytes(bytes));
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
    pub(super) fn program(&self, templates: &[FrameTemplate]) -> Result<Program> {
        let mut builder = Builder::new(self, templates);
        builder.emit();
        Program::load("linerate_gen", &builder.asm, &ProgramOptions { multi_buffer: false })
    }
}

/// Length of the longest template.
pub(super) fn longest(templates: &[FrameTemplate]) -> usize {
    templates.iter().map(|template| template.bytes.len()).max().unwrap_or(0)
}

const fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

pub(super) fn imm(value: usize) -> i32 {
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
    send: Label,
    sent: Label,
    broken: Label,
    drop: Label,
}

impl<'a> Builder<'a> {
    fn new(maps: &'a GeneratorMaps, templates: &'a [FrameTemplate]) -> Self {
        let mut asm = Asm::new();
        let [send, sent, broken, drop] = [asm.label(), asm.label(), asm.label(), asm.label()];
        Self { asm, maps, templates, send, sent, broken, drop }
    }

    fn emit(&mut self) {
        self.pace();
        watch::emit(&mut self.asm, &self.maps.suspects);
        self.schedule();
        self.asm.bind(self.send);
        self.choose();
        for (index, template) in self.templates.iter().enumerate() {
            self.frame(index, template);
        }
        self.finish();
    }

    /// R8 = number, R9 = time; leaves when all are sent or the next is not due.
    fn pace(&mut self) {
        let asm = &mut self.asm;
        let [due, known] = [asm.label(), asm.label()];
        asm.mov(Reg::R6, Reg::R1);
        asm.map_value(Reg::R7, self.maps.state.map(), 0);
        asm.load(Size::Double, Reg::R8, Reg::R7, byte(NEXT));
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(END));
        asm.jump_if(Condition::GreaterOrEqual, Reg::R8, Reg::R1, self.drop);
        asm.call(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        // The first call after a frame tells when that one was through.
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(AFTER));
        asm.jump_if(Condition::NotEqual, Reg::R1, 0, known);
        asm.store(Size::Double, Reg::R7, byte(AFTER), Reg::R9);
        asm.bind(known);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(PACED));
        asm.jump_if(Condition::Equal, Reg::R1, 0, self.send);
        asm.load(Size::Double, Reg::R2, Reg::R7, byte(DUE));
        asm.jump_if(Condition::GreaterOrEqual, Reg::R9, Reg::R2, due);
        asm.mov(Reg::R3, Reg::R2);
        asm.sub(Reg::R3, Reg::R9);
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(SPIN_BELOW));
        asm.jump_if(Condition::GreaterOrEqual, Reg::R3, Reg::R4, self.drop);
        asm.store(Size::Double, Reg::R10, SPINS_LEFT, SPINS);
        let again = asm.here();
        asm.call(helper::KTIME_GET_NS);
        asm.mov(Reg::R9, Reg::R0);
        asm.load(Size::Double, Reg::R2, Reg::R7, byte(DUE));
        asm.jump_if(Condition::GreaterOrEqual, Reg::R9, Reg::R2, due);
        asm.load(Size::Double, Reg::R1, Reg::R10, SPINS_LEFT);
        asm.sub(Reg::R1, 1);
        asm.store(Size::Double, Reg::R10, SPINS_LEFT, Reg::R1);
        asm.jump_if(Condition::NotEqual, Reg::R1, 0, again);
        asm.jump(self.drop);
        asm.bind(due);
    }

    /// Counts what is late and finds when the next is due, to the nanosecond.
    fn schedule(&mut self) {
        let asm = &mut self.asm;
        let [on_time, not_worst, keep, within] =
            [asm.label(), asm.label(), asm.label(), asm.label()];
        asm.mov(Reg::R3, Reg::R9);
        asm.sub(Reg::R3, Reg::R2);
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(LATE_ABOVE));
        asm.jump_if(Condition::LessOrEqual, Reg::R3, Reg::R4, on_time);
        increment(asm, Reg::R7, byte(LATE));
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(WORST));
        asm.jump_if(Condition::LessOrEqual, Reg::R3, Reg::R4, not_worst);
        asm.store(Size::Double, Reg::R7, byte(WORST), Reg::R3);
        asm.bind(not_worst);
        asm.bind(on_time);
        // A burst that is too late moves the schedule when its first frame leaves.
        asm.mov(Reg::R5, Reg::R3);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(BURST_LEFT));
        asm.load(Size::Double, Reg::R3, Reg::R7, byte(BURST));
        asm.jump_if(Condition::NotEqual, Reg::R1, Reg::R3, keep);
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(MOVES_FROM));
        asm.jump_if(Condition::Less, Reg::R5, Reg::R4, keep);
        asm.mov(Reg::R2, Reg::R9);
        asm.store(Size::Double, Reg::R7, byte(DUE), Reg::R2);
        asm.bind(keep);
        asm.sub(Reg::R1, 1);
        asm.store(Size::Double, Reg::R7, byte(BURST_LEFT), Reg::R1);
        asm.jump_if(Condition::NotEqual, Reg::R1, 0, self.send);
        asm.store(Size::Double, Reg::R7, byte(BURST_LEFT), Reg::R3);
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(STEP));
        asm.add(Reg::R2, Reg::R4);
        asm.load(Size::Double, Reg::R3, Reg::R7, byte(DUE_REST));
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(STEP_REST));
        asm.add(Reg::R3, Reg::R4);
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(DIVISOR));
        asm.jump_if(Condition::Less, Reg::R3, Reg::R4, within);
        asm.sub(Reg::R3, Reg::R4);
        asm.add(Reg::R2, 1);
        asm.bind(within);
        asm.store(Size::Double, Reg::R7, byte(DUE_REST), Reg::R3);
        asm.store(Size::Double, Reg::R7, byte(DUE), Reg::R2);
    }

    /// R2 = the template of the frame; goes to it by the jumps at the start of each.
    fn choose(&mut self) {
        if self.templates.len() < 2 {
            return;
        }
        let asm = &mut self.asm;
        let within = asm.label();
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(MIX_AT));
        asm.and(Reg::R1, imm(MIX_MAX - 1));
        asm.mov(Reg::R3, Reg::R7);
        asm.add(Reg::R3, Reg::R1);
        asm.load(Size::Byte, Reg::R2, Reg::R3, byte(MIX));
        asm.add(Reg::R1, 1);
        asm.load(Size::Double, Reg::R3, Reg::R7, byte(MIX_LENGTH));
        asm.jump_if(Condition::Less, Reg::R1, Reg::R3, within);
        asm.mov(Reg::R1, 0);
        asm.bind(within);
        asm.store(Size::Double, Reg::R7, byte(MIX_AT), Reg::R1);
    }

    /// Emits the code that sends frames of one template.
    fn frame(&mut self, index: usize, template: &FrameTemplate) {
        let next = self.asm.label();
        if self.templates.len() > 1 {
            self.asm.jump_if(Condition::NotEqual, Reg::R2, imm(index), next);
        }
        self.length(index, template);
        self.header(template);
        self.flow(template);
        self.signature(template);
        self.balance(template);
        self.asm.mov(Reg::R2, imm(template.bytes.len()));
        self.asm.jump(self.sent);
        self.asm.bind(next);
    }

    /// Gives the frame its length, and with several templates its payload; R1 = its start.
    fn length(&mut self, index: usize, template: &FrameTemplate) {
        let longest = longest(self.templates);
        let length = template.bytes.len();
        let asm = &mut self.asm;
        if length < longest {
            asm.mov(Reg::R1, Reg::R6);
            asm.mov(Reg::R2, imm(length) - imm(longest));
            asm.call(helper::XDP_ADJUST_TAIL);
            asm.jump_if(Condition::NotEqual, Reg::R0, 0, self.broken);
        }
        let restored = template.signature_at().min(HEADER_BYTES);
        if self.templates.len() > 1 && template.signature_at() > restored {
            let first = index * words(longest) * 8 + restored;
            asm.mov(Reg::R1, Reg::R6);
            asm.mov(Reg::R2, imm(restored));
            asm.map_value(Reg::R3, self.maps.payload.map(), imm(first).cast_unsigned());
            asm.mov(Reg::R4, imm(template.signature_at() - restored));
            asm.call(helper::XDP_STORE_BYTES);
            asm.jump_if(Condition::NotEqual, Reg::R0, 0, self.broken);
        }
        asm.load(Size::Word, Reg::R1, Reg::R6, 0);
        asm.load(Size::Word, Reg::R2, Reg::R6, 4);
        asm.mov(Reg::R3, Reg::R1);
        asm.add(Reg::R3, imm(length));
        asm.jump_if(Condition::Greater, Reg::R3, Reg::R2, self.broken);
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
    fn flow(&mut self, template: &FrameTemplate) {
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
            asm.store(size, Reg::R1, offset(usize::from(field.at)), Reg::R4);
        }
        if let Some(sum) = header_sum {
            fold(asm, Reg::R5, Reg::R4);
            asm.alu(Alu::Xor, Reg::R5, 0xffff);
            asm.swap_be(Reg::R5, 16);
            asm.store(Size::Half, Reg::R1, offset(usize::from(sum.at)), Reg::R5);
        }
    }

    /// Stores the signature; R5 = the sum of its words.
    fn signature(&mut self, template: &FrameTemplate) {
        let at = offset(template.signature_at());
        let asm = &mut self.asm;
        asm.load(Size::Double, Reg::R4, Reg::R7, byte(SIGNED));
        asm.mov(Reg::R2, Reg::R8);
        asm.rsh(Reg::R2, 32);
        asm.alu(Alu::Or, Reg::R4, Reg::R2);
        asm.mov32(Reg::R5, Reg::R4);
        asm.mov(Reg::R2, Reg::R4);
        asm.rsh(Reg::R2, 32);
        asm.add(Reg::R5, Reg::R2);
        asm.swap_be(Reg::R4, 64);
        asm.store(Size::Double, Reg::R1, at, Reg::R4);
        asm.mov32(Reg::R2, Reg::R8);
        asm.add(Reg::R5, Reg::R2);
        asm.lsh(Reg::R2, 32);
        asm.mov32(Reg::R4, Reg::R9);
        asm.add(Reg::R5, Reg::R4);
        asm.alu(Alu::Or, Reg::R4, Reg::R2);
        asm.swap_be(Reg::R4, 64);
        asm.store(Size::Double, Reg::R1, at + 8, Reg::R4);
    }

    /// Stores the word that keeps the transport's checksum right: what it was, less what the fields
    /// and the signature have added.
    fn balance(&mut self, template: &FrameTemplate) {
        let Some(at) = template.balance_at.map(usize::from) else { return };
        let asm = &mut self.asm;
        if (template.signature_at() - at) % 2 == 1 {
            // Its bytes lie the other way round in the words of the sum.
            fold(asm, Reg::R5, Reg::R4);
            asm.mov(Reg::R4, Reg::R5);
            asm.lsh(Reg::R4, 8);
            asm.rsh(Reg::R5, 8);
            asm.alu(Alu::Or, Reg::R5, Reg::R4);
            asm.and(Reg::R5, 0xffff);
        }
        asm.add(Reg::R0, Reg::R5);
        fold(asm, Reg::R0, Reg::R4);
        asm.alu(Alu::Xor, Reg::R0, 0xffff);
        let old = u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
        let covered = template.varying.iter().filter(|field| field.in_transport_sum);
        let start =
            u64::from(old) + covered.map(|field| u64::from(field.value_in_flow(0))).sum::<u64>();
        constant(asm, Reg::R4, start);
        asm.add(Reg::R0, Reg::R4);
        fold(asm, Reg::R0, Reg::R4);
        asm.swap_be(Reg::R0, 16);
        asm.store(Size::Half, Reg::R1, offset(at), Reg::R0);
    }

    /// Emits code that counts the frame of R2 bytes and sends it.
    fn finish(&mut self) {
        let asm = &mut self.asm;
        let later = asm.label();
        asm.bind(self.broken);
        increment(asm, Reg::R7, byte(BROKEN));
        asm.bind(self.drop);
        asm.mov(Reg::R0, action::DROP);
        asm.exit();
        asm.bind(self.sent);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(BYTES));
        asm.add(Reg::R1, Reg::R2);
        asm.store(Size::Double, Reg::R7, byte(BYTES), Reg::R1);
        asm.add(Reg::R8, 1);
        asm.store(Size::Double, Reg::R7, byte(NEXT), Reg::R8);
        asm.load(Size::Double, Reg::R1, Reg::R7, byte(FIRST));
        asm.jump_if(Condition::NotEqual, Reg::R1, 0, later);
        asm.store(Size::Double, Reg::R7, byte(FIRST), Reg::R9);
        asm.bind(later);
        asm.store(Size::Double, Reg::R7, byte(LAST), Reg::R9);
        asm.store(Size::Double, Reg::R7, byte(AFTER), 0);
        asm.map(Reg::R1, &self.maps.device);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, 0);
        asm.call(helper::REDIRECT_MAP);
        asm.exit();
    }
}

/// Emits a store of the first 8, 4, 2 or 1 bytes; returns their number.
fn store_constant(asm: &mut Asm, bytes: &[u8], at: i16) -> usize {
    if let Some(word) = bytes.first_chunk::<8>() {
        asm.imm64(Reg::R4, u64::from_ne_bytes(*word));
        asm.store(Size::Double, Reg::R1, at, Reg::R4);
        8
    } else if let Some(word) = bytes.first_chunk::<4>() {
        asm.store(Size::Word, Reg::R1, at, i32::from_ne_bytes(*word));
        4
    } else if let Some(word) = bytes.first_chunk::<2>() {
        asm.store(Size::Half, Reg::R1, at, i32::from(u16::from_ne_bytes(*word)));
        2
    } else {
        asm.store(Size::Byte, Reg::R1, at, i32::from(bytes[0]));
        1
    }
}

/// R3 = the flow, as [`FrameTemplate::flow_of`] has it.
fn flow_number(asm: &mut Asm, template: &FrameTemplate) {
    let flows = u64::from(template.flows.max(1));
    asm.mov(Reg::R3, Reg::R8);
    if template.shuffled {
        asm.imm64(Reg::R4, GOLDEN);
        asm.alu(Alu::Mul, Reg::R3, Reg::R4);
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
        asm.alu(op, dst, Operand::Imm(value));
    } else {
        asm.imm64(Reg::R2, value);
        asm.alu(op, dst, Reg::R2);
    }
}

fn constant(asm: &mut Asm, dst: Reg, value: u64) {
    match i32::try_from(value) {
        Ok(value) => asm.mov(dst, value),
        Err(_) => asm.imm64(dst, value),
    }
}

/// Folds a sum below 2^40 to 16 bits.
fn fold(asm: &mut Asm, sum: Reg, scratch: Reg) {
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
