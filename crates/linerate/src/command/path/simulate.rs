//! `linerate path simulate`: TCP flows over a path in virtual time.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::path::{DirectionFacts, PathPlan, Random};
use linerate_core::record::{Failure, Fault};
use linerate_core::simulate::{
    FlowPlan, Point, RunSummary, Simulation, SimulationReport, Speed, TcpModel, ceiling_bps,
};
use linerate_core::time::MonoTime;
use linerate_core::units::Bytes;
use linerate_engine::failure::words_of;
use linerate_report::simulate::{Sample, plots, text};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::simulate_flags::{Args, check_bounds, usage};
use crate::exit::Outcome;
use crate::output;

/// Samples of a run, for progress and the diagram of goodput.
const SAMPLES: u32 = 400;
/// Flows whose points are kept for the diagrams.
const FLOWS_DRAWN: usize = 8;
/// Events between two looks at whether to stop.
const EVENTS_AT_ONCE: u64 = 50_000;
/// Exit code of an interrupted run, as in the table of the manual.
const INTERRUPTED: u8 = 130;
/// Stream of the seed for what belongs to flows; those of the path are counted from 1 and 1001.
const FLOW_STREAM: u64 = 1_000_000;

/// What is run once for each seed.
struct Task<'a> {
    args: &'a Args,
    plan: PathPlan,
    tcp: TcpModel,
    end: Duration,
    spread: Duration,
    ceiling_bps: Option<f64>,
    rtt: Duration,
}

/// What a run gave beside its summary.
#[derive(Default)]
struct Drawn {
    points: Vec<Vec<Point>>,
    samples: Vec<Sample>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Outcome {
    let plan = args.path.plan()?;
    let facts = plan.facts().map_err(|problem| usage("simulate", "the path", problem))?;
    check_bounds(&facts, &plan)?;
    let task = Task::new(args, plan, &facts)?;
    if let Some(folder) = &args.svg {
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let stop = Stop::on_signals()?;
    let begin = clock::monotonic();
    let (runs, drawn) = task.run_all(&stop)?;
    let wall_ns = clock::monotonic().nanos_since(begin);
    let report = task.report(facts[0].rate.map(|rate| rate.bits_per_sec() as f64), runs, wall_ns);
    if let Some(folder) = &args.svg {
        for (name, svg) in plots(&drawn.points, &drawn.samples, report.ceiling_bps) {
            let path = folder.join(name);
            std::fs::write(&path, svg).map_err(|error| cannot_write(&path, &error))?;
        }
    }
    if args.json {
        output::line(&serde_json::to_string_pretty(&report)?);
    } else {
        output::text(&text(&report));
    }
    Ok(exit_code(&report, &stop))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Fault::System, "write", path.display().to_string(), words_of(error))
}

/// 1 when a transfer did not end in its time.
fn exit_code(report: &SimulationReport, stop: &Stop) -> u8 {
    match report.runs.iter().all(|run| run.complete) {
        _ if stop.asked() => INTERRUPTED,
        true => 0,
        false => 1,
    }
}

impl<'a> Task<'a> {
    fn new(args: &'a Args, plan: PathPlan, facts: &[DirectionFacts; 2]) -> anyhow::Result<Self> {
        let tcp = args.tcp(&plan)?;
        let rtt = facts[0].delay + facts[1].delay;
        let several = if args.flows > 1 { rtt } else { Duration::ZERO };
        let spread = args.start_spread.unwrap_or(several);
        let ceiling_bps = ceiling_bps(&facts[0], &tcp);
        Ok(Self { args, plan, tcp, end: args.end(), spread, ceiling_bps, rtt })
    }

    fn report(
        &self,
        link_bps: Option<f64>,
        runs: Vec<RunSummary>,
        wall_ns: u64,
    ) -> SimulationReport {
        let wall_s = wall_ns as f64 / 1e9;
        let virtual_s = runs.iter().map(|run| run.span_ns as f64 / 1e9).sum::<f64>();
        let events = runs.iter().map(|run| run.events as f64).sum::<f64>();
        SimulationReport {
            plan: self.plan.clone(),
            link_bps,
            rtt_ns: nanos(self.rtt),
            ceiling_bps: self.ceiling_bps,
            tcp: (&self.tcp).into(),
            flow_count: self.args.flows as usize,
            flow_bytes: self.args.bytes.map(Bytes::count),
            start_spread_ns: nanos(self.spread),
            runs,
            speed: (wall_ns > 0).then(|| Speed {
                wall_ns,
                simulated_s_per_s: virtual_s / wall_s,
                events_per_s: events / wall_s,
            }),
        }
    }

    fn run_all(&self, stop: &Stop) -> anyhow::Result<(Vec<RunSummary>, Drawn)> {
        let first = self.plan.seed.unwrap_or(1);
        let bar = progress_bar(u64::from(self.args.runs));
        let (mut runs, mut drawn) = (Vec::new(), Drawn::default());
        for index in 0..u64::from(self.args.runs) {
            let wanted = (index == 0).then_some(&mut drawn);
            runs.push(self.run_once(first.wrapping_add(index), wanted, stop, &bar)?);
            bar.set_position((index + 1) * u64::from(SAMPLES));
            if stop.asked() {
                break;
            }
        }
        bar.finish_and_clear();
        Ok((runs, drawn))
    }

    fn run_once(
        &self,
        seed: u64,
        mut drawn: Option<&mut Drawn>,
        stop: &Stop,
        bar: &ProgressBar,
    ) -> anyhow::Result<RunSummary> {
        let plan = PathPlan { seed: Some(seed), ..self.plan.clone() };
        let built = plan.build(MonoTime::default());
        let [forward, backward] = built.map_err(|error| usage("simulate", "the path", error))?;
        let flows = self.flows(seed, drawn.is_some() && self.args.svg.is_some());
        let mut simulation = Simulation::new(&flows, forward, backward);
        let step = self.step();
        let end = MonoTime::default() + self.end;
        let begin = bar.position();
        let (mut now, mut running) = (MonoTime::default(), true);
        while running && now < end && !stop.asked() {
            now = end.min(now + step);
            running = advance(&mut simulation, now, stop);
            let acked_bytes = simulation.acked_bytes();
            if let Some(drawn) = drawn.as_deref_mut().filter(|_| self.args.svg.is_some()) {
                drawn.samples.push(Sample { at_ns: simulation.now().nanos(), acked_bytes });
            }
            let share = self.progress(now, acked_bytes);
            bar.set_position(begin + (share * f64::from(SAMPLES)) as u64);
        }
        let mut result = simulation.result();
        let finished = !running || simulation.now() >= end;
        let summary = RunSummary::new(seed, &flows, &result, self.ceiling_bps, finished);
        if let Some(drawn) = drawn {
            let points = result.flows.iter_mut().map(|flow| std::mem::take(&mut flow.points));
            drawn.points = points.take(FLOWS_DRAWN).collect();
        }
        Ok(summary)
    }

    /// How far a run is, 0 … 1.
    fn progress(&self, now: MonoTime, acked_bytes: u64) -> f64 {
        let by_time = now.nanos() as f64 / nanos(self.end).max(1) as f64;
        let all = self.args.bytes.map(|bytes| bytes.count() as f64 * f64::from(self.args.flows));
        all.map_or(by_time, |all| acked_bytes as f64 / all.max(1.0)).clamp(0.0, 1.0)
    }

    /// From sample to sample: a part of the run, or of a transfer at the ceiling's rate.
    fn step(&self) -> Duration {
        let all_bits = self.args.bytes.map(|bytes| bytes.count() as f64 * 8.0);
        let transfer_s = match (all_bits, self.ceiling_bps) {
            (Some(bits), Some(bps)) => bits * f64::from(self.args.flows) / bps,
            (Some(_), None) => 60.0,
            (None, _) => self.end.as_secs_f64(),
        };
        let step_s = (transfer_s + self.rtt.as_secs_f64() * 8.0) / f64::from(SAMPLES);
        Duration::from_secs_f64(step_s.clamp(1e-6, 3600.0)).min(self.end)
    }

    fn flows(&self, seed: u64, with_points: bool) -> Vec<FlowPlan> {
        let mut random = Random::new(seed, FLOW_STREAM);
        let flow = |index: u32| FlowPlan {
            tcp: self.tcp,
            start: MonoTime::default() + self.spread.mul_f64(random.unit()),
            bytes: self.args.bytes.map(Bytes::count),
            hash: (random.unit() * f64::from(u32::MAX)) as u32,
            points_every: (with_points && (index as usize) < FLOWS_DRAWN).then(|| self.step() / 4),
        };
        (0..self.args.flows).map(flow).collect()
    }
}

/// Goes on until `end` or until a stop is asked for, after which it does no more than about
/// [`EVENTS_AT_ONCE`]. Results do not depend on the steps.
fn advance(simulation: &mut Simulation, end: MonoTime, stop: &Stop) -> bool {
    let mut step = Duration::from_millis(1);
    let mut running = true;
    while running && simulation.now() < end && !stop.asked() {
        let before = simulation.events();
        running = simulation.advance(end.min(simulation.now() + step));
        let events = simulation.events() - before;
        let next = if events > EVENTS_AT_ONCE { step / 2 } else { step * 2 };
        step = next.max(Duration::from_micros(1));
    }
    running
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn progress_bar(runs: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(runs * u64::from(SAMPLES)), target);
    if let Ok(style) = ProgressStyle::with_template("[{wide_bar}] {percent} %  {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
