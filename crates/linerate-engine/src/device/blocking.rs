//! Whether one full output holds up frames to another, or pushes back on the senders (RFC 2889
//! §5.5).
//!
//! With three ports, the first sends half of its frames to the second and half to the third, the
//! second all of its own to the third, which is so offered half as much again as it can carry.
//! With four, the sending ports are the first two, the third is free and the fourth is full.

use linerate_core::record::{
    BenchPlan, BenchTest, Congestion, Failure, Fault, LoadPoint, PortCounts,
};

use super::setup::{FramePattern, TestSetup, TrialAbort, TrialCounts, TrialSpec};

/// The free output's load and loss, and what they say.
pub(super) fn blocking(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    fps: f64,
) -> Result<(LoadPoint, Congestion), TrialAbort> {
    let ports = setup.port_names().len();
    if ports < 3 {
        let reason = "the senders, the congested and the uncongested port make three ports or four";
        let object = format!("{ports} ports");
        return Err(Failure::new(Fault::Usage, "look for blocking on", object, reason).into());
    }
    let (free, full) = if ports == 3 { (1, 2) } else { (2, 3) };
    let load = fps.max(2.0) as u64;
    let spec = TrialSpec {
        senders: Some(vec![0, 1]),
        pattern: Some(FramePattern::Towards(vec![vec![free, full], vec![full]])),
        outputs: Some(vec![free, full]),
        may_fall_short: true,
        ..TrialSpec::new(BenchTest::Blocking, Some(load), plan.times.trial_ns)
    };
    let outcome = setup.run_trial(&spec)?;
    let each = (u128::from(load) * u128::from(plan.times.trial_ns) / 1_000_000_000) as u64;
    let sent = |sender: usize| outcome.results.get(sender).map_or(0, |result| result.sent.frames);
    // The first sender's frames go to the two outputs in turn.
    let to_free = PortCounts {
        intended: each.div_ceil(2),
        sent: sent(0).div_ceil(2),
        received: received_at(&outcome, free),
    };
    let to_full = PortCounts {
        intended: each / 2 + each,
        sent: sent(0) / 2 + sent(1),
        received: received_at(&outcome, full),
    };
    let congestion = Congestion::from_counts(to_free, to_full, each);
    Ok((free_output(&outcome, to_free, congestion.free_loss_ratio), congestion))
}

/// Load and loss of the free output: every other frame of the first sender is for it.
fn free_output(outcome: &TrialCounts, counts: PortCounts, loss_ratio: f64) -> LoadPoint {
    let offered_fps = outcome.trial.ports.first().map_or(0.0, |port| port.offered_fps) / 2.0;
    LoadPoint {
        intended_fps: outcome.trial.intended_fps.map(|fps| fps / 2.0),
        offered_fps,
        forwarded_fps: offered_fps * (1.0 - loss_ratio),
        loss_ratio,
        sent: counts.sent,
        received: counts.received,
    }
}

fn received_at(outcome: &TrialCounts, output: usize) -> u64 {
    let received = outcome.results.iter().flat_map(|result| &result.received);
    received.filter(|(port, _)| *port == output).map(|(_, it)| it.frames).sum()
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Simulated, bench_plan};
    use super::*;

    fn simulate_blocking(held_up_every: Option<u64>, ports: usize) -> (LoadPoint, Congestion) {
        let device = Device { held_up_every, ..Device::default() };
        let mut setup = Simulated { ports, ..Simulated::new(device) };
        blocking(&mut setup, &bench_plan(1_000_000_000), 1000.0).unwrap()
    }

    #[test]
    fn frames_lost_at_the_free_output_are_blocking_at_the_head_of_the_line() {
        for ports in [3, 4] {
            // Half of 1000 frames go to the free output; every tenth is lost there.
            let (free, congestion) = simulate_blocking(Some(10), ports);
            assert_eq!((free.sent, free.received), (500, 450));
            assert!((free.loss_ratio - 0.1).abs() < 1e-9);
            assert!(congestion.has_head_of_line_blocking);
        }
    }

    #[test]
    fn a_free_output_that_loses_nothing_is_not_blocked() {
        let (free, congestion) = simulate_blocking(None, 3);
        assert_eq!((free.sent, free.received), (500, 500));
        assert!(!congestion.has_head_of_line_blocking);
    }
}
