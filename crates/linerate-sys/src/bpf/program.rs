//! Loading XDP programs (BPF_PROG_LOAD); the verifier's reasons are in the error.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::asm::Asm;
use super::{Attributes, PROG_LOAD, bpf_fd, object_name};
use crate::{Error, Result};

const TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const FLAG_XDP_HAS_FRAGS: u32 = 1 << 5;
/// Some helpers (route lookup) are for programs under the GPL alone.
const LICENSE: &CStr = c"Dual MIT/GPL";
/// Size of the buffer for the verifier's log, whose last lines give the reason of a refusal.
const LOG_BYTES: usize = 1 << 20;
/// Number of the log's last lines that an error quotes.
const LOG_LINES: usize = 4;

#[repr(C)]
#[derive(Default)]
struct ProgramLoadAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}
// SAFETY: integers alone, no padding; the pointers are kept valid by `XdpProgram::load`.
unsafe impl Attributes for ProgramLoadAttr {}

/// Options for loading a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The program accepts frames of several buffers, as interfaces with an MTU above a page need.
    pub multi_buffer: bool,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self { multi_buffer: true }
    }
}

/// An XDP program in the kernel; it goes with its last descriptor and link.
#[derive(Debug)]
pub struct XdpProgram {
    fd: OwnedFd,
}

impl XdpProgram {
    /// Has the kernel check and translate a program. Its maps may be closed afterwards.
    /// # Errors
    /// When the verifier refuses it (its last lines are in the error), without CAP_BPF and
    /// CAP_NET_ADMIN, or on a kernel without XDP.
    pub fn load(name: &str, asm: &Asm, options: &ProgramOptions) -> Result<Self> {
        let first = try_load(name, asm, options, None);
        let refused = match first {
            Ok(fd) => return Ok(Self { fd }),
            Err(error) => error,
        };
        let failed = |source| Error::new("load XDP program", name, source);
        if !matches!(refused.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::E2BIG)) {
            return Err(failed(refused));
        }
        let mut log = vec![0; LOG_BYTES];
        match try_load(name, asm, options, Some(&mut log)) {
            Ok(fd) => Ok(Self { fd }),
            Err(_) => Err(failed(explained(refused, &log))),
        }
    }
}

impl AsRawFd for XdpProgram {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn try_load(
    name: &str,
    asm: &Asm,
    options: &ProgramOptions,
    log: Option<&mut [u8]>,
) -> io::Result<OwnedFd> {
    let code = asm.finish();
    let mut load = ProgramLoadAttr {
        prog_type: TYPE_XDP,
        insn_cnt: u32::try_from(code.len()).unwrap_or(u32::MAX),
        insns: code.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        prog_flags: if options.multi_buffer { FLAG_XDP_HAS_FRAGS } else { 0 },
        prog_name: object_name(name),
        expected_attach_type: ATTACH_XDP,
        ..ProgramLoadAttr::default()
    };
    if let Some(log) = log {
        load.log_level = 1;
        load.log_size = u32::try_from(log.len()).unwrap_or(u32::MAX);
        load.log_buf = log.as_mut_ptr() as u64;
    }
    // SAFETY: `code`, the licence and `log` live through the call; the kernel reads `insn_cnt`
    // instructions and writes at most `log_size` bytes.
    unsafe { bpf_fd(PROG_LOAD, &mut load) }
}

fn explained(refused: io::Error, log: &[u8]) -> io::Error {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    if lines.is_empty() {
        return refused;
    }
    let last = lines[lines.len().saturating_sub(LOG_LINES)..].join(" | ");
    io::Error::new(refused.kind(), format!("{refused}; the verifier says: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{Reg, available};

    #[test]
    fn the_reason_of_the_verifier_is_in_the_error() {
        if let Err(reason) = available() {
            crate::bpf::tests::skipped(&reason);
            return;
        }
        let mut asm = Asm::new();
        // R0 is not set when the program ends.
        asm.exit();
        let error =
            XdpProgram::load("wrong", &asm, &ProgramOptions::default()).expect_err("refused");
        assert!(error.to_string().contains("R0 !read_ok"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        let mut asm = Asm::new();
        asm.mov(Reg::R0, 2);
        asm.exit();
        XdpProgram::load("right", &asm, &ProgramOptions::default()).expect("accepted");
    }
}
