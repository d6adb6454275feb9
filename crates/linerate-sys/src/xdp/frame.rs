//! Code that programs share: the end of a frame, in one buffer or several.

use crate::bpf::{Asm, JumpCondition, JumpLabel, Reg, Size, helper};

/// Length of the first buffer up to which the signature is read without a helper.
const LINEAR_MAX: i32 = 0x3fff;
/// Stack offset at which the helper puts the 16 bytes of the signature.
const SIGNATURE: i16 = -16;
/// An MTU above which drivers use several buffers for a frame: a page less its headroom and tail.
pub(super) const ONE_BUFFER_MTU_BYTES: u32 = 3000;

/// R7 = length, R8 and R9 = the halves of the last 16 bytes, in host order; on to `short` with a
/// frame that has no 16. Expects the context in R6. Uses 16 bytes at the end of the stack.
pub(super) fn signature(asm: &mut Asm, several_buffers: bool, short: JumpLabel) {
    let [slow, have] = [asm.new_label(), asm.new_label()];
    asm.load_memory(Size::Word, Reg::R2, Reg::R6, 0);
    asm.load_memory(Size::Word, Reg::R3, Reg::R6, 4);
    asm.mov(Reg::R4, Reg::R3);
    asm.sub(Reg::R4, Reg::R2);
    asm.mov(Reg::R7, Reg::R4);
    if several_buffers {
        asm.mov(Reg::R1, Reg::R6);
        asm.call_helper(helper::XDP_GET_BUFF_LEN);
        asm.mov(Reg::R7, Reg::R0);
        asm.load_memory(Size::Word, Reg::R2, Reg::R6, 0);
        asm.load_memory(Size::Word, Reg::R3, Reg::R6, 4);
        asm.mov(Reg::R4, Reg::R3);
        asm.sub(Reg::R4, Reg::R2);
        asm.jump_if(JumpCondition::NotEqual, Reg::R4, Reg::R7, slow);
    }
    asm.sub(Reg::R4, 16);
    // A frame below 16 bytes has wrapped round.
    asm.jump_if(
        JumpCondition::Greater,
        Reg::R4,
        LINEAR_MAX,
        if several_buffers { slow } else { short },
    );
    asm.add(Reg::R2, Reg::R4);
    asm.mov(Reg::R5, Reg::R2);
    asm.add(Reg::R5, 16);
    asm.jump_if(
        JumpCondition::Greater,
        Reg::R5,
        Reg::R3,
        if several_buffers { slow } else { short },
    );
    asm.load_memory(Size::Double, Reg::R8, Reg::R2, 0);
    asm.load_memory(Size::Double, Reg::R9, Reg::R2, 8);
    if several_buffers {
        asm.jump_to(have);
        asm.bind_label(slow);
        asm.jump_if(JumpCondition::Less, Reg::R7, 16, short);
        on_stack(asm, 16);
        asm.call_helper(helper::XDP_LOAD_BYTES);
        asm.jump_if(JumpCondition::NotEqual, Reg::R0, 0, short);
        asm.load_memory(Size::Double, Reg::R8, Reg::R10, SIGNATURE);
        asm.load_memory(Size::Double, Reg::R9, Reg::R10, SIGNATURE + 8);
    }
    asm.bind_label(have);
    asm.swap_be(Reg::R8, 64);
    asm.swap_be(Reg::R9, 64);
}

/// Writes R9, 32 bits in network order, over the last 4 bytes of a frame of R7 bytes; on to
/// `failed` when the kernel does not let. Expects the context in R6.
pub(super) fn store_last_word(asm: &mut Asm, failed: JumpLabel) {
    let [slow, done] = [asm.new_label(), asm.new_label()];
    asm.load_memory(Size::Word, Reg::R2, Reg::R6, 0);
    asm.load_memory(Size::Word, Reg::R3, Reg::R6, 4);
    asm.mov(Reg::R4, Reg::R3);
    asm.sub(Reg::R4, Reg::R2);
    asm.jump_if(JumpCondition::NotEqual, Reg::R4, Reg::R7, slow);
    asm.sub(Reg::R4, 4);
    asm.jump_if(JumpCondition::Greater, Reg::R4, LINEAR_MAX, slow);
    asm.add(Reg::R2, Reg::R4);
    asm.mov(Reg::R5, Reg::R2);
    asm.add(Reg::R5, 4);
    asm.jump_if(JumpCondition::Greater, Reg::R5, Reg::R3, slow);
    asm.store_memory(Size::Word, Reg::R2, 0, Reg::R9);
    asm.jump_to(done);
    asm.bind_label(slow);
    asm.store_memory(Size::Word, Reg::R10, SIGNATURE, Reg::R9);
    on_stack(asm, 4);
    asm.call_helper(helper::XDP_STORE_BYTES);
    asm.jump_if(JumpCondition::NotEqual, Reg::R0, 0, failed);
    asm.bind_label(done);
}

/// Arguments of the helpers for the last `bytes` of the frame and the end of the stack.
fn on_stack(asm: &mut Asm, bytes: i32) {
    asm.mov(Reg::R1, Reg::R6);
    asm.mov(Reg::R2, Reg::R7);
    asm.sub(Reg::R2, bytes);
    asm.mov(Reg::R3, Reg::R10);
    asm.add(Reg::R3, i32::from(SIGNATURE));
    asm.mov(Reg::R4, bytes);
}
