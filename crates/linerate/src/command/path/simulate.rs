//! `linerate path simulate`: TCP flows over a path in virtual time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::path::DirectionFacts;
use linerate_core::record::SimulatePlan;
use linerate_core::simulate::{
    FLOWS_WITH_POINTS, RunSummary, SAMPLES, SequencePoint, SimulationReport, Speed, ceiling_bps,
};
use linerate_core::time::MonoTime;
use linerate_engine::simulate::{Driven, run_simulation};
use linerate_report::simulate::{ProgressSample, diagram_files, document};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::simulate_flags::{Args, refused};
use crate::command::flags::span_nanos;
use crate::exit::Outcome;
use crate::{output, paths};

/// Exit code of an interrupted run, as in the table of the manual.
const INTERRUPTED: u8 = 130;
/// Simulation that is run once for each seed.
struct SeedRun<'a> {
    args: &'a Args,
    plan: SimulatePlan,
    facts: [DirectionFacts; 2],
    ceiling_bps: Option<f64>,
}

/// Points and samples of a run, for its diagram.
#[derive(Default)]
struct Drawn {
    points: Vec<Vec<SequencePoint>>,
    samples: Vec<ProgressSample>,
}

/// Runs `linerate path simulate` by its flags.
pub(super) fn run(args: &Args) -> Outcome {
    let task = SeedRun::new(args)?;
    if let Some(folder) = &args.svg {
        paths::make_folder(folder)?;
    }
    let stop = Stop::on_signals()?;
    let begin = clock::monotonic();
    let (runs, drawn) = task.run_all(&stop)?;
    let wall_ns = clock::monotonic().nanos_since(begin);
    let report = task.report(runs, wall_ns);
    if let Some(folder) = &args.svg {
        for (name, svg) in diagram_files(&drawn.points, &drawn.samples, report.ceiling_bps) {
            paths::write(&folder.join(name), &svg)?;
        }
    }
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(&report)?);
    } else {
        output::result(&document(&report), args.amount.detail());
    }
    Ok(exit_code(&report, &stop))
}

/// 1 when a transfer did not end in its time.
fn exit_code(report: &SimulationReport, stop: &Stop) -> u8 {
    match report.runs.iter().all(|run| run.complete) {
        _ if stop.is_requested() => INTERRUPTED,
        true => 0,
        false => 1,
    }
}

impl<'a> SeedRun<'a> {
    fn new(args: &'a Args) -> anyhow::Result<Self> {
        let plan = args.simulation()?;
        let facts = plan.direction_facts().map_err(refused)?;
        let ceiling_bps = ceiling_bps(&facts[0], &plan.tcp_model());
        Ok(Self { args, plan, facts, ceiling_bps })
    }

    fn report(&self, runs: Vec<RunSummary>, wall_ns: u64) -> SimulationReport {
        let wall_s = wall_ns as f64 / 1e9;
        let virtual_s = runs.iter().map(|run| run.span_ns as f64 / 1e9).sum::<f64>();
        let events = runs.iter().map(|run| run.events as f64).sum::<f64>();
        let [there, back] = &self.facts;
        SimulationReport {
            plan: self.plan.path.as_ref().clone(),
            link_bps: there.rate.map(|rate| rate.bits_per_sec() as f64),
            rtt_ns: span_nanos(there.delay + back.delay),
            ceiling_bps: self.ceiling_bps,
            tcp: (&self.plan.tcp_model()).into(),
            flow_count: self.plan.streams as usize,
            flow_bytes: self.plan.flow_bytes(),
            start_spread_ns: self.plan.start_spread_ns,
            runs,
            speed: (wall_ns > 0).then(|| Speed {
                wall_ns,
                simulated_s_per_s: virtual_s / wall_s,
                events_per_s: events / wall_s,
            }),
        }
    }

    fn run_all(&self, stop: &Stop) -> anyhow::Result<(Vec<RunSummary>, Drawn)> {
        let bar = progress_bar(u64::from(self.args.runs));
        let (mut runs, mut drawn) = (Vec::new(), Drawn::default());
        for index in 0..self.args.runs {
            let wanted = (index == 0 && self.args.svg.is_some()).then_some(&mut drawn);
            let mut plan = self.plan.clone();
            plan.repeat(index + 1);
            runs.push(self.run_once(&plan, wanted, stop, &bar)?);
            bar.set_position(u64::from(index + 1) * u64::from(SAMPLES));
            if stop.is_requested() {
                break;
            }
        }
        bar.finish_and_clear();
        Ok((runs, drawn))
    }

    fn run_once(
        &self,
        plan: &SimulatePlan,
        drawn: Option<&mut Drawn>,
        stop: &Stop,
        bar: &ProgressBar,
    ) -> anyhow::Result<RunSummary> {
        let begin = bar.position();
        let mut samples = Vec::new();
        let driven = run_simulation(plan, stop, drawn.is_some(), &mut |simulation| {
            let (now, acked_bytes) = (simulation.now(), simulation.acked_bytes());
            if drawn.is_some() {
                samples.push(ProgressSample { at_ns: now.as_nanos(), acked_bytes });
            }
            let share = self.progress(now, acked_bytes);
            bar.set_position(begin + (share * f64::from(SAMPLES)) as u64);
        });
        let Driven { flows, result, finished, .. } = driven.map_err(refused)?;
        let summary =
            RunSummary::new(plan.random_seed(), &flows, &result, self.ceiling_bps, finished);
        if let Some(drawn) = drawn {
            let points = result.flows.into_iter().map(|flow| flow.points);
            *drawn = Drawn { points: points.take(FLOWS_WITH_POINTS).collect(), samples };
        }
        Ok(summary)
    }

    /// Progress of a run, 0 … 1.
    fn progress(&self, now: MonoTime, acked_bytes: u64) -> f64 {
        let by_time = now.as_nanos() as f64 / self.plan.latest_end().as_nanos().max(1) as f64;
        let all = self.plan.flow_bytes();
        let all = all.map(|bytes| bytes as f64 * f64::from(self.plan.streams));
        all.map_or(by_time, |all| acked_bytes as f64 / all.max(1.0)).clamp(0.0, 1.0)
    }
}

fn progress_bar(runs: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(runs * u64::from(SAMPLES)), target);
    if let Ok(style) = ProgressStyle::with_template("[{wide_bar}] {percent} %  {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
