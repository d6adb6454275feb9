//! eBPF by the bare system call (bpf(2)): objects, programs, maps, links to interfaces, runs.
//!
//! Programs are written in C (`bpf/` of this crate), compiled when they change, not when linerate
//! is built, checked by the kernel, and talk to this process through arrays that are mapped into
//! it. Leaves out every program type but XDP. Offsets and numbers are those of linux/bpf.h.

mod link;
mod map;
mod object;
mod program;
mod run;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use link::{AttachMode, XdpLink};
pub use map::{Constants, Counters, DeviceMap, Map, MappedArray};
pub use object::{Code, Place};
pub use program::{Program, ProgramOptions};
pub use run::{LiveRun, TestRun};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const MAP_FREEZE: libc::c_int = 22;
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
unsafe fn bpf<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_int> {
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
/// As for [`bpf`], and the command is one that makes a descriptor.
unsafe fn bpf_fd<A: Attributes>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for the addresses.
    let fd = unsafe { bpf(command, attributes) }?;
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

/// Whether the kernel and the privileges of this process allow programs on interfaces: `Ok` or
/// what is missing.
/// # Errors
/// The reason: CAP_BPF and CAP_NET_ADMIN absent, or a kernel without XDP.
pub fn available() -> crate::Result<()> {
    Program::pass("probe").map(drop)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Says why a test did nothing.
    #[allow(clippy::print_stdout, reason = "skipped tests say so")]
    pub(crate) fn skipped(reason: &crate::Error) {
        println!("skipped: {reason}");
    }

    /// A program of the tests.
    pub(crate) const fn code<'a>(program: &'a str, names: &'a [(&'a str, Place<'a>)]) -> Code<'a> {
        Code { object: include_bytes!("../../bpf/tests.o"), program, names }
    }

    #[test]
    fn a_program_sees_and_changes_the_frame() {
        if let Err(reason) = available() {
            skipped(&reason);
            return;
        }
        let mut frame = [0; 64];
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        let program = Program::load("touch", &code("touch", &[]), &ProgramOptions::default());
        let done = program.expect("accepted").test_run(&frame).expect("a run");
        frame[13] = 0x07;
        // XDP_TX of enum xdp_action.
        assert_eq!(done, TestRun { action: 3, frame: frame.to_vec() });
    }

    #[test]
    fn arrays_and_constants_are_shared_with_programs() {
        if let Err(reason) = available() {
            skipped(&reason);
            return;
        }
        let array = MappedArray::new("shared", 3).expect("an array");
        let plan = Constants::new("plan", &[7, 0b011]).expect("constants");
        array.set(2, 0b100);
        let names = [("words", Place::Value(array.map())), ("plan", Place::Value(plan.map()))];
        let program = Program::load("share", &code("share", &names), &ProgramOptions::default());
        let before = program.expect("accepted").test_run(&[0; 14]).expect("a run").action;
        assert_eq!((before, array.get(0), array.get(1)), (0b100, 0, 0x0123_4567_89ab_cdef));
        assert_eq!(array.get(2), 0b111);
        array.clear();
        assert_eq!((array.get(1), array.get(2)), (0, 0));
    }
}
