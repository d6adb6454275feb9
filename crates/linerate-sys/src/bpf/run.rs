//! Running a program without an interface (BPF_PROG_TEST_RUN): on one frame, and on live frames
//! that it sends on.

use std::io;
use std::os::fd::AsRawFd;

use super::program::XdpProgram;
use super::{Attributes, PROG_TEST_RUN, bpf_syscall};
use crate::{Error, Result};

const FLAG_LIVE_FRAMES: u32 = 1 << 1;
/// Room for a frame that comes out longer than it went in.
const GROWTH_BYTES: usize = 256;

#[repr(C)]
#[derive(Default)]
struct TestRunAttr {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    unused: u32,
}
// SAFETY: integers alone, padding named; the pointers are kept valid by the functions below.
unsafe impl Attributes for TestRunAttr {}

/// Result of running a program once on a test frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// Verdict of the program (see [`super::action`]).
    pub action: u32,
    /// The frame as the program left it.
    pub frame: Vec<u8>,
}

/// Parameters of a run on live frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// Number of times that the program is called.
    pub repeat: u32,
    /// Calls between two flushes to the interface, 1 to 256: frames of one batch leave together.
    pub batch: u32,
}

impl XdpProgram {
    /// Runs the program once on a frame that goes nowhere.
    /// # Errors
    /// For frames below 14 bytes, or without CAP_BPF.
    pub fn test_run(&self, frame: &[u8]) -> Result<TestRun> {
        let mut out = vec![0; frame.len() + GROWTH_BYTES];
        let mut run = self.run_on(frame);
        run.data_out = out.as_mut_ptr() as u64;
        run.data_size_out = u32::try_from(out.len()).unwrap_or(u32::MAX);
        run.repeat = 1;
        // SAFETY: `frame` and `out` live through the call and are as long as told.
        unsafe { bpf_syscall(PROG_TEST_RUN, &mut run) }
            .map_err(|source| Error::new("run", "XDP program", source))?;
        out.truncate(usize::try_from(run.data_size_out).unwrap_or(0));
        Ok(TestRun { action: run.retval, frame: out })
    }

    /// Runs the program on copies of a frame that go where it redirects them. Frames are used
    /// again with whatever was written into them. One call, and with it the calling thread, lasts
    /// until all is done or a signal comes.
    /// # Errors
    /// On kernels before 5.18, for frames above about 3,400 bytes, or without CAP_NET_ADMIN.
    pub fn run_live(&self, frame: &[u8], live: LiveRun) -> Result<()> {
        let mut run = self.run_on(frame);
        run.repeat = live.repeat;
        run.batch_size = live.batch;
        run.flags = FLAG_LIVE_FRAMES;
        // SAFETY: `frame` lives through the call and is as long as told; nothing is written back
        // but the structure itself.
        match unsafe { bpf_syscall(PROG_TEST_RUN, &mut run) } {
            // A signal ended it early; the caller looks at what was done.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            done => done.map(drop).map_err(|source| Error::new("run live", "frames", source)),
        }
    }

    fn run_on(&self, frame: &[u8]) -> TestRunAttr {
        TestRunAttr {
            prog_fd: self.as_raw_fd().cast_unsigned(),
            data_in: frame.as_ptr() as u64,
            data_size_in: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            ..TestRunAttr::default()
        }
    }
}
