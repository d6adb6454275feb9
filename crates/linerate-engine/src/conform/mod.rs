//! Holds the packets of a capture or an interface to traffic contracts.
//!
//! Packets go one by one from the source through [`meter::Metering`] to the analysis of the core;
//! nothing is kept of them. Left out: writing captures, and cells of a real ATM interface (cells
//! are made from the packets' lengths).

mod file;
mod live;
mod meter;

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::conformance::{ConformPlan, Conformance};
use linerate_core::record::{Failure, Fault};
use linerate_sys::stop::Stop;

use meter::Metering;

/// Where packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketInput {
    /// A capture file, by its path.
    File(PathBuf),
    /// A capture on standard input.
    Stdin,
    /// An interface of this host.
    Live(String),
}

/// Where a run ends before its source does.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeteringLimits {
    /// After this much time since the first metered packet; of an interface, since the start.
    pub time: Option<Duration>,
    /// After so many metered packets.
    pub packets: Option<u64>,
}

/// Meters all packets of `input` until it ends, a limit is reached or `stop` is asked. A source
/// that fails on its way gives what was found before, with the failure in it. `opened` is called
/// once an interface is being captured.
/// # Errors
/// When the plan is impossible or the source cannot be opened.
pub fn run(
    plan: &ConformPlan,
    input: &PacketInput,
    limits: &MeteringLimits,
    stop: &Stop,
    opened: &mut dyn FnMut(),
) -> Result<Conformance, Failure> {
    let mut plan = plan.clone();
    if let PacketInput::Live(interface) = input {
        plan.mtu_bytes = plan.mtu_bytes.or_else(|| live::mtu_bytes(interface));
    }
    let metering = Metering::new(&plan, limits)
        .map_err(|error| Failure::new(Fault::Usage, "meter", &plan.source, error))?;
    match input {
        PacketInput::File(path) => file::meter_file(metering, path, stop),
        PacketInput::Stdin => file::meter_stdin(metering, stop),
        PacketInput::Live(interface) => live::run(metering, interface, limits, stop, opened),
    }
}
