//! Packets of an interface as they pass.

use linerate_core::conformance::Conformance;
use linerate_core::record::{Failure, Fault};
use linerate_sys::stop::Stop;

use super::Limits;
use super::meter::Metering;

pub(super) fn run(
    _metering: Metering,
    interface: &str,
    _limits: &Limits,
    _stop: &Stop,
) -> Result<Conformance, Failure> {
    Err(Failure::new(Fault::System, "capture on", interface, "not there yet"))
}
