//! Drives a simulation from its begin to its end, in steps, so that it can be looked at and
//! stopped. Results do not depend on the steps.

use std::time::Duration;

use linerate_core::record::SimulatePlan;
use linerate_core::simulate::{FlowPlan, ScenarioError, Simulation, SimulationResult};
use linerate_core::time::MonoTime;
use linerate_sys::stop::Stop;

/// Events between two looks at whether to stop.
const EVENTS_AT_ONCE: u64 = 50_000;

/// A simulation that has ended or was stopped.
#[derive(Clone, Debug)]
pub struct Driven {
    /// The flows, in the order of the results.
    pub flows: Vec<FlowPlan>,
    /// The result of the simulation.
    pub result: SimulationResult,
    /// Payload that each flow had acknowledged when the omitted span was over; empty when nothing
    /// is omitted, or when it was stopped before.
    pub acked_before: Vec<u64>,
    /// False when it was stopped.
    pub finished: bool,
    /// The shortest round trip that its path allows.
    pub rtt_min: Duration,
}

/// Simulates as planned, until its end or until a stop is asked for. Tells `look` of every step.
/// # Errors
/// A plan that cannot be simulated.
pub fn run_simulation(
    plan: &SimulatePlan,
    stop: &Stop,
    with_points: bool,
    look: &mut dyn FnMut(&Simulation),
) -> Result<Driven, ScenarioError> {
    let facts = plan.direction_facts()?;
    let (mut simulation, flows) = plan.start_simulation(with_points)?;
    let (step, end) = (plan.sample_interval(&facts), plan.latest_end());
    let omitted = MonoTime::from_nanos(plan.omit_ns);
    let mut acked_before = Vec::new();
    if plan.omit_ns > 0 {
        run(&mut simulation, omitted.min(end), step, stop, look);
        if simulation.now() >= omitted.min(end) {
            acked_before = simulation.result().flows.iter().map(|flow| flow.acked_bytes).collect();
        }
    }
    let running = run(&mut simulation, end, step, stop, look);
    Ok(Driven {
        flows,
        finished: !running || simulation.now() >= end,
        rtt_min: simulation.rtt_min(),
        result: simulation.result(),
        acked_before,
    })
}

/// Runs the flows until `end`; true where some have not reached their own end.
fn run(
    simulation: &mut Simulation,
    end: MonoTime,
    step: Duration,
    stop: &Stop,
    look: &mut dyn FnMut(&Simulation),
) -> bool {
    let (mut now, mut running) = (simulation.now(), true);
    while running && now < end && !stop.is_requested() {
        now = end.min(now + step);
        running = advance(simulation, now, stop);
        look(simulation);
    }
    running
}

/// Goes on until `end` or until a stop is asked for, after which it does no more than about
/// [`EVENTS_AT_ONCE`].
fn advance(simulation: &mut Simulation, end: MonoTime, stop: &Stop) -> bool {
    let mut step = Duration::from_millis(1);
    let mut running = true;
    while running && simulation.now() < end && !stop.is_requested() {
        let before = simulation.events();
        running = simulation.advance(end.min(simulation.now() + step));
        let events = simulation.events() - before;
        let next = if events > EVENTS_AT_ONCE { step / 2 } else { step * 2 };
        step = next.max(Duration::from_micros(1));
    }
    running
}
