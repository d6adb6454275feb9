//! `linerate doctor`: what this host can tell, and what stands in the way of a measurement, each
//! with the line that mends it. Nothing is changed.

mod check;
mod checks;
mod civil_time;
mod facts;
mod network;
mod stamping;

use linerate_core::time::decimals_of_ms;
use linerate_engine::rtt::clock_check::{self, ClockCheckExtent, ClockReport};
use linerate_report::{Block, Document, Fact, calibration};
use linerate_sys::stop::Stop;

use self::check::{HostCheck, State};
use self::facts::HostFacts;
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Option<DoctorCommand>,
    /// Print one JSON document
    #[arg(short = 'J', long, global = true)]
    json: bool,
}

/// A part of the examination, in full.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum DoctorCommand {
    /// Find what this host adds to the delays it measures, in a second
    ///
    /// Find what this host adds to the delays it measures, in a second: step and cost of the clock,
    /// late sleeps, stolen time, echo on loopback, kernel timestamps.
    Clock,
}

/// Flags of `linerate calibrate`, the former name of `doctor clock`.
#[derive(Debug, clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Print one JSON document
    #[arg(short = 'J', long)]
    json: bool,
}

/// Delays that this host adds: the clock test, in a second.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Outcome {
    run(Args { part: Some(DoctorCommand::Clock), json: args.json })
}

/// Exit code of a host that spoils measurements.
const UNFIT: u8 = 1;

/// Runs the command: 0 when nothing is worse than doubtful, 1 when something spoils measurements.
pub(crate) fn run(args: Args) -> Outcome {
    let stop = Stop::on_signals()?;
    let extent =
        if args.part.is_some() { ClockCheckExtent::Whole } else { ClockCheckExtent::Short };
    let clock = clock_check::examine(extent, &stop);
    let checks = if args.part.is_none() { checks(&clock) } else { Vec::new() };
    let bad = checks.iter().any(|check| check.state == State::Bad);
    let code = if bad { UNFIT } else { 0 };
    if args.json {
        let document = serde_json::json!({
            "version": crate::VERSION, "clock": clock, "checks": checks,
        });
        output::print_line(&format!("{document:#}"));
        return Ok(code);
    }
    let found: Vec<Block> = match args.part {
        Some(DoctorCommand::Clock) => {
            let line = Block::Text(calibration(&clock.calibration(), clock.tick_ns));
            let facts = [line, Block::Facts(clock_facts(&clock))].into_iter();
            let civil_time = civil_time::blocks(&civil_time::query_services());
            facts.chain(civil_time).chain(stamping::blocks(&stamping::interfaces())).collect()
        }
        None => checks::tables(&checks).into_iter().map(Block::Table).collect(),
    };
    let sentence = Block::Text(sentence(&clock));
    output::document(&Document::default().with_section(found.into_iter().chain([sentence])));
    Ok(code)
}

/// All checks: program, clock, and the facts of this host.
fn checks(clock: &ClockReport) -> Vec<HostCheck> {
    let version = HostCheck::with_ok_state("linerate", crate::VERSION);
    let all =
        [version, clock_verdict(clock), civil_time(clock), checks::stolen(clock.stolen_ratio)];
    all.into_iter().chain(checks::all_checks(&HostFacts::gather())).collect()
}

/// The clock in one line: fit for microseconds or not.
fn clock_verdict(clock: &ClockReport) -> HostCheck {
    let source = clock.clocksource.as_deref().unwrap_or("unknown source");
    let step = clock.tick_ns.map_or_else(|| "?".to_owned(), |step| format!("{step:.0}"));
    let found = format!("{source}, step {step} ns, a reading {:.0} ns", clock.reading_ns);
    let good = clock.vdso && clock.tick_ns.is_some_and(|step| step < 1000.0);
    let remedy = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
    HostCheck::with_ok_state("clock", found).or_warn(good, remedy)
}

/// Civil time, which one-way delays between hosts rest on.
fn civil_time(clock: &ClockReport) -> HostCheck {
    HostCheck::with_ok_state("civil time", civil_clock_state(clock))
        .or_warn(clock.synchronised != Some(false), "timedatectl set-ntp true")
}

/// Resolution of the figures that are printed on this host, in a sentence.
fn sentence(clock: &ClockReport) -> String {
    let Some(step_ns) = clock.tick_ns else {
        return "the clock's step could not be found; figures are printed as read".to_owned();
    };
    let unit_ns = 10f64.powi(6 - i32::try_from(decimals_of_ms(step_ns)).unwrap_or(6));
    format!("figures on this host are printed no finer than {unit_ns:.0} ns")
}

/// The whole clock test.
fn clock_facts(clock: &ClockReport) -> Vec<Fact> {
    let whole = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let steps = [clock.step_p50_ns, clock.step_p99_ns, clock.step_p9999_ns, clock.step_max_ns];
    let late = format!(
        "{} us (p50), {} us (p99); {} us with a timer slack of 1 ns",
        micros(clock.oversleep_p50_ns),
        micros(clock.oversleep_p99_ns),
        micros(clock.oversleep_short_p50_ns)
    );
    let source = clock.clocksource.clone().unwrap_or_else(|| "unknown".to_owned());
    let rows = [
        ("clock source", source),
        ("claimed resolution", format!("{} ns", clock.claimed_resolution_ns)),
        ("smallest step", format!("{} ns", whole(clock.step_min_ns))),
        ("steps 50/99/99.99/100 %", format!("{} ns", steps.map(whole).join("/"))),
        ("true step", true_step(clock)),
        ("cost of a reading", reading_cost(clock)),
        ("100 calls in microseconds", classic(clock)),
        ("a sleep of 100 us ends late", late),
        ("stolen time", stolen(clock)),
        ("echo on 127.0.0.1", echo_floor(clock)),
        ("half of them to the other", difference(clock)),
        ("kernel timestamps", stamps(clock)),
        ("civil time", civil_clock_state(clock)),
    ];
    rows.map(|(label, text)| Fact::new(label, 27, text)).into()
}

fn true_step(clock: &ClockReport) -> String {
    match (clock.tick_ns, clock.tick_score) {
        (Some(step_ns), Some(_)) if step_ns < 2.0 => {
            "1 ns or finer: readings fall on every whole ns".to_owned()
        }
        (Some(step_ns), Some(score)) => format!("{step_ns:.2} ns (clarity {score:.2})"),
        _ => "too few readings differ".to_owned(),
    }
}

fn reading_cost(clock: &ClockReport) -> String {
    let way = if clock.vdso { "vDSO" } else { "system call" };
    format!("{:.0} ns by {way}; a system call {:.0} ns", clock.reading_ns, clock.syscall_ns)
}

fn classic(clock: &ClockReport) -> String {
    let spread = clock.classic;
    format!(
        "{}/{:.2}/{} us apart (min/avg/max), {} within one microsecond",
        spread.min_us, spread.mean_us, spread.max_us, spread.zeros
    )
}

fn micros(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3))
}

fn stolen(clock: &ClockReport) -> String {
    format!(
        "{:.2} % in {} gaps over 1 us, {} over 10 us, longest {:.0} us",
        clock.stolen_ratio * 100.0,
        clock.gaps,
        clock.gaps_long,
        clock.gap_max_ns as f64 / 1e3
    )
}

fn echo_floor(clock: &ClockReport) -> String {
    match (&clock.floor, &clock.floor_missing) {
        (Some(floor), _) => format!(
            "min {:.2} us, median {:.2} us, stddev {:.2} us, {:.0}/s: the host's own share",
            floor.min_ns / 1e3,
            floor.p50_ns / 1e3,
            floor.stddev_ns / 1e3,
            floor.pings_per_s
        ),
        (None, Some(reason)) => format!("not measured: {reason}"),
        (None, None) => "not measured".to_owned(),
    }
}

/// The A/A floor of comparisons.
fn difference(clock: &ClockReport) -> String {
    let difference = clock.floor.and_then(|floor| floor.difference_ns);
    difference.map_or_else(
        || "not measured".to_owned(),
        |ns| {
            format!("differs by at most {:.3} us (A/A, 95 %): smaller ones mean nothing", ns / 1e3)
        },
    )
}

fn stamps(clock: &ClockReport) -> String {
    let Some(stamps) = clock.stamps else { return "not measured".to_owned() };
    format!(
        "of {} echoes {} have a pair, {} also that before the queueing discipline",
        stamps.answered, stamps.paired, stamps.split
    )
}

fn civil_clock_state(clock: &ClockReport) -> String {
    match (clock.synchronised, clock.error_max_us) {
        (Some(true), Some(error_us)) => {
            format!("synchronised to {error_us} us, as far as the kernel was told")
        }
        (Some(false), _) => "not synchronised, as far as the kernel was told".to_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tick_ns: Option<f64>) -> ClockReport {
        ClockReport {
            clocksource: Some("tsc".to_owned()),
            claimed_resolution_ns: 1,
            step_min_ns: Some(20),
            step_p50_ns: Some(30),
            step_p99_ns: Some(31),
            step_p9999_ns: Some(190),
            step_max_ns: Some(38_000),
            tick_ns,
            tick_score: tick_ns.map(|_| 0.99),
            reading_ns: 25.2,
            syscall_ns: 250.4,
            vdso: true,
            classic: clock_check::CallTimeSpread { min_us: 0, mean_us: 0.03, max_us: 1, zeros: 97 },
            oversleep_p50_ns: Some(73_000),
            oversleep_p99_ns: Some(90_000),
            oversleep_short_p50_ns: Some(22_000),
            stolen_ratio: 0.0091,
            gaps: 900,
            gaps_long: 380,
            gap_max_ns: 235_000,
            floor: None,
            floor_missing: Some("no socket".to_owned()),
            stamps: Some(clock_check::StampHealth { answered: 50, paired: 50, split: 49 }),
            synchronised: Some(false),
            error_max_us: Some(16_000_000),
        }
    }

    #[test]
    fn the_sentence_rounds_the_step_to_a_decade() {
        let last = |tick| sentence(&report(tick));
        assert!(last(Some(10.04)).ends_with("no finer than 10 ns"));
        assert!(last(Some(9.98)).ends_with("no finer than 10 ns"));
        assert!(last(Some(1.0)).ends_with("no finer than 1 ns"));
        assert!(last(None).contains("could not be found"));
    }

    #[test]
    fn the_table_says_what_is_missing_and_why() {
        let facts = Block::Facts(clock_facts(&report(Some(10.04))));
        let text = Document::default().with_section([facts]).text(None);
        assert!(text.contains("claimed resolution           1 ns\n"), "{text}");
        assert!(text.contains("true step                    10.04 ns (clarity 0.99)\n"), "{text}");
        assert!(text.contains("steps 50/99/99.99/100 %      30/31/190/38000 ns\n"), "{text}");
        assert!(text.contains("echo on 127.0.0.1            not measured: no socket\n"), "{text}");
        assert!(text.contains("kernel timestamps            of 50 echoes 50 have a pair, 49 also"));
        assert!(text.contains("stolen time                  0.91 % in 900 gaps"), "{text}");
    }

    #[test]
    fn a_clock_read_by_system_call_is_a_warning() {
        let slow = ClockReport { vdso: false, ..report(Some(10.0)) };
        assert_eq!(clock_verdict(&slow).state, State::Warn);
        assert_eq!(clock_verdict(&report(Some(10.0))).state, State::Ok);
        assert_eq!(civil_time(&slow).state, State::Warn);
    }
}
