//! eBPF by the bare system call (bpf(2)): an assembler, programs, maps, links to interfaces, runs.
//!
//! No compiler, no object files, no type information: programs are written with [`Asm`], checked
//! by the kernel, and talk to this process through arrays that are mapped into it. Leaves out every
//! program type but XDP. Offsets and numbers are those of linux/bpf.h.

mod asm;
mod link;
mod map;
mod program;
mod run;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use asm::{Alu, Asm, Instruction, JumpCondition, JumpLabel, Operand, Reg, Size};
pub use link::{AttachMode, XdpLink};
pub use map::{Counters, DeviceMap, Map, MappedArray, SocketMap};
pub use program::{ProgramOptions, XdpProgram};
pub use run::{LiveRun, TestRun};

/// Numbers of kernel functions that programs call (enum bpf_func_id).
pub mod helper {
    /// Monotonic clock in ns.
    pub const KTIME_GET_NS: i32 = 5;
    /// Number of the processor.
    pub const GET_SMP_PROCESSOR_ID: i32 = 8;
    /// Sends the frame out of an interface of the same namespace.
    pub const REDIRECT: i32 = 23;
    /// Sends the frame out of an interface in a map.
    pub const REDIRECT_MAP: i32 = 51;
    /// Makes the frame longer or shorter at its end.
    pub const XDP_ADJUST_TAIL: i32 = 65;
    /// Looks up route and neighbour.
    pub const FIB_LOOKUP: i32 = 69;
    /// Length of a frame of several buffers.
    pub const XDP_GET_BUFF_LEN: i32 = 188;
    /// Reads from a frame of several buffers.
    pub const XDP_LOAD_BYTES: i32 = 189;
    /// Writes into a frame of several buffers.
    pub const XDP_STORE_BYTES: i32 = 190;
}

/// Verdicts of an XDP program (enum xdp_action).
pub mod action {
    /// The frame is dropped.
    pub const DROP: i32 = 1;
    /// The frame goes on to the kernel's network stack.
    pub const PASS: i32 = 2;
    /// The frame is sent back out of the interface on which it came in.
    pub const TX: i32 = 3;
    /// The frame is sent out of another interface.
    pub const REDIRECT: i32 = 4;
}

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;

/// The structures of union bpf_attr: plain integers without padding that matters, all of them
/// zero where unused.
///
/// # Safety
/// Every bit pattern is valid, and pointers in it stay valid through the call.
unsafe trait Attributes {}

/// bpf(2) with one member of union bpf_attr; the kernel may write back into it.
///
/// # Safety
/// Addresses in `attributes` point to memory that the command may read or write as the manual
/// page says, for as long as the call takes.
unsafe fn bpf_syscall<A: Attributes>(
    command: libc::c_int,
    attributes: &mut A,
) -> io::Result<libc::c_int> {
    let size = size_of::<A>();
    // SAFETY: `attributes` is borrowed for writing and `size` bytes long; what it points to is
    // vouched for by the caller.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(libc::c_int::try_from(done).unwrap_or(libc::c_int::MAX))
}

/// A command that answers with a new descriptor.
///
/// # Safety
/// As for [`bpf_syscall`], and the command is one that makes a descriptor.
unsafe fn bpf_fd<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for the addresses.
    let fd = unsafe { bpf_syscall(command, attributes) }?;
    // SAFETY: the kernel has just made this descriptor for the caller, who owns it alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The name of a program or map as the kernel wants it: 15 bytes and a zero.
fn object_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let fit = |byte: u8| if byte.is_ascii_alphanumeric() { byte } else { b'_' };
    for (to, from) in bytes[..15].iter_mut().zip(name.bytes()) {
        *to = fit(from);
    }
    bytes
}

/// Checks that the kernel and the privileges of this process allow XDP programs.
/// # Errors
/// The reason: CAP_BPF and CAP_NET_ADMIN absent, or a kernel without XDP.
pub fn available() -> crate::Result<()> {
    let mut asm = Asm::new();
    asm.mov(Reg::R0, action::PASS);
    asm.exit();
    XdpProgram::load("probe", &asm, &ProgramOptions::default()).map(drop)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Says why a test did nothing.
    #[allow(clippy::print_stdout, reason = "skipped tests say so")]
    pub(crate) fn skipped(reason: &crate::Error) {
        println!("skipped: {reason}");
    }

    fn action_of(build: impl FnOnce(&mut Asm), frame: &[u8]) -> Option<TestRun> {
        if let Err(reason) = available() {
            skipped(&reason);
            return None;
        }
        let mut asm = Asm::new();
        build(&mut asm);
        let program = XdpProgram::load("test", &asm, &ProgramOptions::default()).expect("accepted");
        Some(program.test_run(frame).expect("a run"))
    }

    #[test]
    fn a_program_sees_and_changes_the_frame() {
        let mut frame = [0; 64];
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        let done = action_of(
            |asm| {
                let short = asm.new_label();
                asm.load_memory(Size::Word, Reg::R2, Reg::R1, 0);
                asm.load_memory(Size::Word, Reg::R3, Reg::R1, 4);
                asm.mov(Reg::R4, Reg::R2);
                asm.add(Reg::R4, 14);
                asm.jump_if(JumpCondition::Greater, Reg::R4, Reg::R3, short);
                asm.load_memory(Size::Half, Reg::R5, Reg::R2, 12);
                asm.swap_be(Reg::R5, 16);
                asm.add(Reg::R5, 1);
                asm.swap_be(Reg::R5, 16);
                asm.store_memory(Size::Half, Reg::R2, 12, Reg::R5);
                asm.mov(Reg::R0, action::TX);
                asm.exit();
                asm.bind_label(short);
                asm.mov(Reg::R0, action::DROP);
                asm.exit();
            },
            &frame,
        );
        let Some(done) = done else { return };
        frame[13] = 0x07;
        assert_eq!(done, TestRun { action: action::TX.cast_unsigned(), frame: frame.to_vec() });
    }

    #[test]
    fn arrays_are_shared_with_programs() {
        if let Err(reason) = available() {
            skipped(&reason);
            return;
        }
        let array = MappedArray::new("shared", 3).expect("an array");
        array.set_word(2, 0b100);
        let mut asm = Asm::new();
        asm.map_value(Reg::R1, array.bpf_map(), 8);
        asm.load_imm64(Reg::R2, 0x0123_4567_89ab_cdef);
        asm.store_memory(Size::Double, Reg::R1, 0, Reg::R2);
        asm.mov(Reg::R2, 0b011);
        asm.atomic_fetch_or(Reg::R1, 8, Reg::R2);
        asm.mov(Reg::R0, Reg::R2);
        asm.exit();
        let program =
            XdpProgram::load("share", &asm, &ProgramOptions::default()).expect("accepted");
        let before = program.test_run(&[0; 14]).expect("a run").action;
        assert_eq!((before, array.get(0), array.get(1)), (0b100, 0, 0x0123_4567_89ab_cdef));
        assert_eq!(array.get(2), 0b111);
        array.clear_words();
        assert_eq!((array.get(1), array.get(2)), (0, 0));
    }
}
