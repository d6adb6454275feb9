//! Programs in the receive path of interfaces (XDP) that make a device benchmark: a counter of
//! every frame, a generator, and devices to test.
//!
//! All calls that name an interface look it up in the namespace of the calling thread; afterwards
//! an object works from any thread. Everything ends with its object. Needs CAP_BPF and
//! CAP_NET_ADMIN ([`crate::bpf::available`] tells).

mod echo;
mod forwarder;
mod frame;
mod generator;
mod generator_program;
mod planted;
mod sink;
mod sink_program;
mod spread;

pub use echo::{EchoFilter, EchoReflector};
pub use forwarder::{Router, RouterCounts, Wire};
pub use generator::{Generator, GeneratorOptions, GeneratorWindow, Progress};
pub use planted::{PlantedCounts, PlantedDevice, PlantedOptions, Stall};
pub use sink::{ARRIVALS_DEFAULT, Sink, SinkExpected, SinkOptions, SinkReport, StreamExpected};

use crate::Result;
use crate::bpf::{Asm, AttachMode, ProgramOptions, Reg, XdpLink, XdpProgram, action};

/// Puts a program on an interface that passes every frame: a veth then takes frames by NAPI, and
/// its other end can be the target of live frames and redirections.
/// # Errors
/// When the driver cannot, another program is there, or privileges are absent.
pub fn hold_napi(ifindex: u32) -> Result<XdpLink> {
    let mut asm = Asm::new();
    asm.mov(Reg::R0, action::PASS);
    asm.exit();
    let program = XdpProgram::load("pass", &asm, &ProgramOptions::default())?;
    XdpLink::attach(&program, ifindex, AttachMode::Native)
}
