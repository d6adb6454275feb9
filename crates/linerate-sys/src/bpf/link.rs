//! XDP programs attached to interfaces (BPF_LINK_CREATE), as long as the descriptor is held.
//!
//! A process that is killed leaves nothing behind. A program that somebody else has put on the
//! interface is left alone: the kernel says EBUSY.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::program::XdpProgram;
use super::{Attributes, LINK_CREATE, LINK_UPDATE, bpf_fd, bpf_syscall};
use crate::{Error, Result};

const ATTACH_XDP: u32 = 37;
const FLAG_SKB_MODE: u32 = 1 << 1;
const FLAG_DRIVER_MODE: u32 = 1 << 2;

#[repr(C)]
#[derive(Default)]
struct CreateLink {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}
// SAFETY: integers alone, no padding and no pointers.
unsafe impl Attributes for CreateLink {}

#[repr(C)]
#[derive(Default)]
struct UpdateLink {
    link_fd: u32,
    new_prog_fd: u32,
    flags: u32,
    old_prog_fd: u32,
}
// SAFETY: integers alone, no padding and no pointers.
unsafe impl Attributes for UpdateLink {}

/// The point of the receive path at which an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, or after it if the driver has no native XDP.
    #[default]
    Best,
    /// In the driver, before the kernel makes a socket buffer of the frame.
    Native,
    /// After the driver, on socket buffers: any interface, slower, and frames that come by
    /// redirection into a veth without NAPI do not get there.
    Generic,
}

/// An XDP program attached to an interface; dropping this detaches it.
#[derive(Debug)]
pub struct XdpLink {
    fd: OwnedFd,
    native: bool,
}

impl XdpLink {
    /// Puts a program on an interface of the calling thread's namespace.
    /// # Errors
    /// When another program is there, when the driver cannot (in [`AttachMode::Native`]), when the
    /// MTU is too large for its native mode, or without CAP_NET_ADMIN.
    pub fn attach(program: &XdpProgram, ifindex: u32, mode: AttachMode) -> Result<Self> {
        let failed = |source| Error::new("attach XDP program to interface", ifindex, source);
        if mode == AttachMode::Generic {
            return Self::create(program, ifindex, false).map_err(failed);
        }
        match Self::create(program, ifindex, true) {
            Err(error) if mode == AttachMode::Best && lacks_native_mode(&error) => {
                Self::create(program, ifindex, false).map_err(failed)
            }
            attached => attached.map_err(failed),
        }
    }

    /// True if the program runs in the driver (native XDP).
    pub const fn is_native(&self) -> bool {
        self.native
    }

    /// Replaces the attached program without a gap: no frame passes between the two.
    /// # Errors
    /// When the interface no longer exists.
    pub fn replace(&self, program: &XdpProgram) -> Result<()> {
        let mut update = UpdateLink {
            link_fd: self.fd.as_raw_fd().cast_unsigned(),
            new_prog_fd: program.as_raw_fd().cast_unsigned(),
            ..UpdateLink::default()
        };
        // SAFETY: nothing in it is a pointer.
        let done = unsafe { bpf_syscall(LINK_UPDATE, &mut update) };
        done.map(drop).map_err(|source| Error::new("replace", "XDP program", source))
    }

    fn create(program: &XdpProgram, ifindex: u32, native: bool) -> io::Result<Self> {
        let mut create = CreateLink {
            prog_fd: program.as_raw_fd().cast_unsigned(),
            target_ifindex: ifindex,
            attach_type: ATTACH_XDP,
            flags: if native { FLAG_DRIVER_MODE } else { FLAG_SKB_MODE },
        };
        // SAFETY: nothing in it is a pointer, and the command makes a descriptor.
        let fd = unsafe { bpf_fd(LINK_CREATE, &mut create) }?;
        Ok(Self { fd, native })
    }
}

/// The driver has no native mode, or none for this MTU or these offloads.
fn lacks_native_mode(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE))
}
