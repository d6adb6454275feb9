//! An assembler for eBPF: instructions with labels (RFC 9669).
//!
//! ```text
//! 0  u8 opcode    1  u4 destination, u4 source    2  i16 offset    4  i32 immediate
//! ```
//! Leaves out what the programs of this crate do not use: calls between functions, atomic
//! operations but fetch-or and add, and legacy packet loads.

use std::os::fd::{AsRawFd, RawFd};

use super::map::Map;

/// A register of the eBPF machine. R0 holds results, R1 to R5 arguments (lost in calls), R6 to R9
/// are kept, R10 is the end of the stack frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "their numbers are their names")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// 4 bytes.
    Word = 0x00,
    /// 2 bytes.
    Half = 0x08,
    /// 1 byte.
    Byte = 0x10,
    /// 8 bytes.
    Double = 0x18,
}

/// The second operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value of a register.
    Reg(Reg),
    /// A constant, sign-extended to 64 bits.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

impl From<i32> for Operand {
    fn from(imm: i32) -> Self {
        Self::Imm(imm)
    }
}

/// An arithmetic operation on 64 bits, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "their names say what they do")]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
    Mov = 0xb0,
}

/// A comparison that decides a jump; unsigned except `SignedLess`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "their names say what they ask")]
pub enum JumpCondition {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    AnyBit = 0x40,
    NotEqual = 0x50,
    Less = 0xa0,
    LessOrEqual = 0xb0,
    SignedLess = 0xc0,
}

/// A jump target in the program (see [`Asm::bind_label`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpLabel(usize);

/// One instruction as the kernel takes it (struct bpf_insn).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    opcode: u8,
    regs: u8,
    offset: i16,
    imm: i32,
}

const CLASS_LD: u8 = 0x00;
const CLASS_LDX: u8 = 0x01;
const CLASS_ST: u8 = 0x02;
const CLASS_STX: u8 = 0x03;
const CLASS_JMP: u8 = 0x05;
const CLASS_ALU32: u8 = 0x04;
const CLASS_ALU64: u8 = 0x07;
const MODE_MEM: u8 = 0x60;
const MODE_ATOMIC: u8 = 0xc0;
const SOURCE_REG: u8 = 0x08;
const JUMP_ALWAYS: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const BYTE_SWAP_TO_BE: u8 = 0xdc;
const ATOMIC_ADD: i32 = 0x00;
const ATOMIC_FETCH_OR: i32 = 0x41;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

/// An eBPF program that is being assembled.
#[derive(Clone, Debug, Default)]
pub struct Asm {
    code: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, JumpLabel)>,
}

impl Asm {
    /// A program without instructions.
    pub fn new() -> Self {
        Self::default()
    }

    /// A label for a place that comes later or is bound at once with [`Asm::bind_label`].
    pub fn new_label(&mut self) -> JumpLabel {
        self.labels.push(None);
        JumpLabel(self.labels.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind_label(&mut self, label: JumpLabel) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Makes a label that is bound to the next instruction.
    pub fn label_here(&mut self) -> JumpLabel {
        let label = self.new_label();
        self.bind_label(label);
        label
    }

    /// `dst = dst op src` on 64 bits.
    pub fn alu_op(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) {
        self.with_operand(CLASS_ALU64 | op as u8, dst, 0, src.into());
    }

    /// `dst = src`.
    pub fn mov(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::Mov, dst, src);
    }

    /// `dst = dst + src`.
    pub fn add(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::Add, dst, src);
    }

    /// `dst = dst - src`.
    pub fn sub(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::Sub, dst, src);
    }

    /// `dst = dst and src`.
    pub fn and(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::And, dst, src);
    }

    /// `dst = dst << src`.
    pub fn lsh(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::Lsh, dst, src);
    }

    /// `dst = dst >> src`, zeros coming in.
    pub fn rsh(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.alu_op(Alu::Rsh, dst, src);
    }

    /// `dst` = the low 32 bits of `src`.
    pub fn mov32(&mut self, dst: Reg, src: Reg) {
        self.push(CLASS_ALU32 | Alu::Mov as u8 | SOURCE_REG, dst, src, 0, 0);
    }

    /// `dst` = a constant of 64 bits; two instructions.
    pub fn load_imm64(&mut self, dst: Reg, value: u64) {
        let [low, high] = halves(value);
        self.push_wide(dst, 0, low, high);
    }

    /// `dst` = a map, for helpers. The map is to be open until the program is loaded.
    pub fn load_map(&mut self, dst: Reg, map: &impl AsRawFd) {
        self.push_wide(dst, PSEUDO_MAP_FD, map.as_raw_fd(), 0);
    }

    /// `dst` = the address of byte `offset` of the only element of an array. The map is to be open
    /// until the program is loaded.
    pub fn map_value(&mut self, dst: Reg, map: &Map, offset: u32) {
        let fd: RawFd = map.as_raw_fd();
        self.push_wide(dst, PSEUDO_MAP_VALUE, fd, offset.cast_signed());
    }

    /// `dst` = memory at `base + offset`, zeros above.
    pub fn load_memory(&mut self, size: Size, dst: Reg, base: Reg, offset: i16) {
        self.push(CLASS_LDX | MODE_MEM | size as u8, dst, base, offset, 0);
    }

    /// Memory at `base + offset` = `src`.
    pub fn store_memory(&mut self, size: Size, base: Reg, offset: i16, src: impl Into<Operand>) {
        match src.into() {
            Operand::Reg(src) => self.push(CLASS_STX | MODE_MEM | size as u8, base, src, offset, 0),
            Operand::Imm(imm) => {
                self.push(CLASS_ST | MODE_MEM | size as u8, base, Reg::R0, offset, imm);
            }
        }
    }

    /// Adds `src` to the 64 bits at `base + offset`, in one step for all processors.
    pub fn atomic_add(&mut self, base: Reg, offset: i16, src: Reg) {
        let opcode = CLASS_STX | MODE_ATOMIC | Size::Double as u8;
        self.push(opcode, base, src, offset, ATOMIC_ADD);
    }

    /// Sets the bits of `src` in the 64 bits at `base + offset`, in one step for all processors;
    /// `src` then holds what was there.
    pub fn atomic_fetch_or(&mut self, base: Reg, offset: i16, src: Reg) {
        let opcode = CLASS_STX | MODE_ATOMIC | Size::Double as u8;
        self.push(opcode, base, src, offset, ATOMIC_FETCH_OR);
    }

    /// Turns the low `bits` (16, 32 or 64) of `dst` into or out of network byte order; zeros above.
    pub fn swap_be(&mut self, dst: Reg, bits: i32) {
        self.push(BYTE_SWAP_TO_BE, dst, Reg::R0, 0, bits);
    }

    /// Jumps to the label.
    pub fn jump_to(&mut self, to: JumpLabel) {
        self.jumps.push((self.code.len(), to));
        self.push(CLASS_JMP | JUMP_ALWAYS, Reg::R0, Reg::R0, 0, 0);
    }

    /// Jumps to the label if `dst condition src` holds.
    pub fn jump_if(
        &mut self,
        condition: JumpCondition,
        dst: Reg,
        src: impl Into<Operand>,
        to: JumpLabel,
    ) {
        self.jumps.push((self.code.len(), to));
        self.with_operand(CLASS_JMP | condition as u8, dst, 0, src.into());
    }

    /// Calls a function of the kernel (see [`super::helper`]).
    pub fn call_helper(&mut self, helper: i32) {
        self.push(CLASS_JMP | CALL, Reg::R0, Reg::R0, 0, helper);
    }

    /// Ends the program; R0 is its result.
    pub fn exit(&mut self) {
        self.push(CLASS_JMP | EXIT, Reg::R0, Reg::R0, 0, 0);
    }

    /// Number of instructions emitted so far.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// True before the first instruction is emitted.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// The instructions with all jumps resolved.
    /// # Panics
    /// When a label was never bound, or lies more than 32,767 instructions away: mistakes of the
    /// program text, not of its input.
    pub fn finish(&self) -> Vec<Instruction> {
        let mut code = self.code.clone();
        for (at, label) in &self.jumps {
            let target = self.labels[label.0].expect("every label is bound");
            let distance = target.cast_signed() - at.cast_signed() - 1;
            code[*at].offset = i16::try_from(distance).expect("programs are shorter than 32 Ki");
        }
        code
    }

    fn with_operand(&mut self, opcode: u8, dst: Reg, offset: i16, src: Operand) {
        match src {
            Operand::Reg(src) => self.push(opcode | SOURCE_REG, dst, src, offset, 0),
            Operand::Imm(imm) => self.push(opcode, dst, Reg::R0, offset, imm),
        }
    }

    fn push_wide(&mut self, dst: Reg, source: u8, low: i32, high: i32) {
        let opcode = CLASS_LD | Size::Double as u8;
        self.code.push(Instruction {
            opcode,
            regs: register_byte(dst as u8, source),
            offset: 0,
            imm: low,
        });
        self.code.push(Instruction { imm: high, ..Instruction::default() });
    }

    fn push(&mut self, opcode: u8, dst: Reg, src: Reg, offset: i16, imm: i32) {
        self.code.push(Instruction {
            opcode,
            regs: register_byte(dst as u8, src as u8),
            offset,
            imm,
        });
    }
}

const fn register_byte(dst: u8, src: u8) -> u8 {
    if cfg!(target_endian = "little") { dst | src << 4 } else { dst << 4 | src }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are what is asked for")]
const fn halves(value: u64) -> [i32; 2] {
    [(value as u32).cast_signed(), ((value >> 32) as u32).cast_signed()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded_program(asm: &Asm) -> Vec<[u8; 8]> {
        let one = |it: &Instruction| {
            let [o0, o1] = it.offset.to_le_bytes();
            let [i0, i1, i2, i3] = it.imm.to_le_bytes();
            [it.opcode, it.regs, o0, o1, i0, i1, i2, i3]
        };
        asm.finish().iter().map(one).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_standard_says() {
        // RFC 9669 §3 to §5: classes, sources, codes; the bytes put together by hand.
        let mut asm = Asm::new();
        asm.mov(Reg::R1, -2);
        asm.add(Reg::R1, Reg::R2);
        asm.load_memory(Size::Half, Reg::R3, Reg::R4, -6);
        asm.store_memory(Size::Double, Reg::R10, -8, Reg::R5);
        asm.load_imm64(Reg::R6, 0x1122_3344_5566_7788);
        asm.swap_be(Reg::R7, 16);
        asm.atomic_fetch_or(Reg::R1, 0, Reg::R2);
        asm.call_helper(5);
        asm.exit();
        let expected = [
            [0xb7, 0x01, 0, 0, 0xfe, 0xff, 0xff, 0xff],
            [0x0f, 0x21, 0, 0, 0, 0, 0, 0],
            [0x69, 0x43, 0xfa, 0xff, 0, 0, 0, 0],
            [0x7b, 0x5a, 0xf8, 0xff, 0, 0, 0, 0],
            [0x18, 0x06, 0, 0, 0x88, 0x77, 0x66, 0x55],
            [0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11],
            [0xdc, 0x07, 0, 0, 16, 0, 0, 0],
            [0xdb, 0x21, 0, 0, 0x41, 0, 0, 0],
            [0x85, 0, 0, 0, 5, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(encoded_program(&asm), expected);
    }

    #[test]
    fn a_jump_counts_from_the_instruction_after_it() {
        let mut asm = Asm::new();
        let start = asm.label_here();
        let end = asm.new_label();
        asm.jump_if(JumpCondition::Equal, Reg::R0, 0, end);
        asm.jump_to(start);
        asm.bind_label(end);
        asm.exit();
        let offsets: Vec<_> = asm.finish().iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [1, -2, 0]);
    }
}
