//! From a path as data to the two directions of an emulator.

use linerate_core::path::{Load, PathProblem};
use linerate_core::record::{Failure, Fault, PathPlan};
use linerate_sys::clock;

use super::plan::EmulatedDirection;

/// The two directions of a path whose schedules begin now, for packets of up to `mtu_bytes`.
/// `name` is what messages call it.
/// # Errors
/// The first key that cannot be built, with the reason.
pub fn directions(
    plan: &PathPlan,
    mtu_bytes: u32,
    name: &str,
) -> Result<[EmulatedDirection; 2], Failure> {
    let failed = |problem: PathProblem| Failure::new(Fault::Usage, "build path", name, problem);
    let [load, load_back] = plan.direction_loads(mtu_bytes).map_err(failed)?;
    let [forward, backward] = plan.build_pipelines(clock::monotonic()).map_err(failed)?;
    let direction = |pipeline, load: Load| EmulatedDirection {
        pipeline,
        rate: load.rate,
        delay_max: load.delay,
        queue_bytes: load.queue_bytes,
        announced_mtu_bytes: load.announced_mtu_bytes,
        quantum: None,
    };
    Ok([direction(forward, load), direction(backward, load_back)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_room_for_its_queue_in_packets_and_for_what_travels() {
        let plan: PathPlan = linerate_core::tree::from_json(
            r#"{ "rate": "100 Mbit/s", "delay": "10 ms", "buffer": "100 packets" }"#,
        )
        .unwrap();
        let [direction, _] = directions(&plan, 1500, "a path").unwrap();
        // 10^8 x 0.01 / 8, and 100 packets.
        assert_eq!(direction.held_bytes_max(), 125_000 + 100 * 1500);
    }
}
