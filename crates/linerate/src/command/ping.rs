//! `linerate ping`: round-trip times to any host by ICMP, or by UDP to `linerate serve`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Fault, MetricId, PingMode, PingPlan, PingTransport, Plan, Record,
};
use linerate_core::time::decimals_of_ms;
use linerate_engine::context::Context;
use linerate_engine::rtt;
use linerate_report::live;
use linerate_sys::stop::Stop;

use super::measure;
use super::round_trip_flags::ProberFlags;
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate ping`. Letters mean what they mean for ping.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets: host names or addresses; with --udp also HOST:PORT. The probes of several go in
    /// turn
    #[arg(required = true, num_args = 1..=64)]
    host: Vec<HostAndPort>,
    /// Payload size in bytes, or a list of sizes to test in turn: 56,250,500,1024,1500
    #[arg(short, long = "size", value_name = "BYTES", value_delimiter = ',', default_value = "56")]
    sizes: Vec<u32>,
    /// Flood: send the next probe as soon as the previous one is answered
    #[arg(short, long)]
    flood: bool,
    /// Flood with this many probes in flight
    #[arg(long, value_name = "N")]
    window: Option<u16>,
    /// Time to live (IPv6: hop limit) of the probes
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Set the don't-fragment flag and do not fragment locally
    #[arg(long)]
    dont_fragment: bool,
    /// Path MTU discovery as in ping(8): do forbids fragmentation, want and dont allow it
    #[arg(short = 'M', long, value_name = "do|want|dont", conflicts_with = "dont_fragment")]
    pmtudisc: Option<Fragmentation>,
    /// Probe with UDP instead of ICMP; the target must run linerate serve
    #[arg(long)]
    udp: bool,
    /// Port of linerate serve, with --udp [default: 5210]
    #[arg(short, long, value_name = "PORT", value_parser = parse_port)]
    port: Option<u16>,
    /// Use kernel timestamps for floods too; slows the flood by a third
    #[arg(long, conflicts_with = "no_kernel_stamps")]
    kernel_stamps: bool,
    /// Send and receive frames past the kernel's IP (AF_XDP): faster floods, without kernel
    /// timestamps. Needs root; with linerate serve --xdp at the other end faster still
    #[arg(long, conflicts_with_all = ["udp", "kernel_stamps"])]
    xdp: bool,
    /// Probes to send first and not count, so that ARP or neighbor discovery is not measured
    #[arg(long, value_name = "N", default_value_t = PingPlan::default().warmup)]
    warmup: u32,
    #[command(flatten)]
    prober: ProberFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Fragmentation {
    Do,
    Want,
    Dont,
}

/// Runs the command. As ping: 0 when anything was answered, 1 when nothing was; of several targets
/// the worst of theirs.
pub(crate) fn run(args: Args) -> Outcome {
    let plans = args.host.iter().map(|host| ping_plan(&args, host));
    let plans = plans.collect::<Result<Vec<PingPlan>, Failure>>()?;
    match &plans[..] {
        [plan] => run_probes(&args.prober, |context| rtt::run(plan, context)),
        _ if args.flood || args.window.is_some() => {
            let reason = "their probes would be in each other's way";
            let failure = Failure::new(Fault::Usage, "flood", "several targets", reason);
            let advice = "linerate compare measures them one after the other, or give -i";
            Err(failure.advise(advice).into())
        }
        plans => several(plans, &args.prober),
    }
}

/// Probes several targets in turn: a line each in the end, and a table of all.
fn several(plans: &[PingPlan], flags: &ProberFlags) -> Outcome {
    let output = &flags.output;
    output.check_files()?;
    let stop = Stop::on_signals()?;
    let mut lines = PingLines::new();
    let mut watch = |index: usize, event: &Event| {
        lines.target.clone_from(&plans[index].host);
        if output.jsonl {
            output::print_line(&measure::event_line_of(&lines.target, event));
        } else if output.shows_live_lines() {
            lines.print_event(event);
            // One line has no room for the state of each.
            lines.standing = None;
        }
        if output::reader_left() {
            stop.request_stop();
        }
    };
    let mut records = rtt::run_several(plans, &measure::this_tool(), &stop, &mut watch);
    records.iter_mut().for_each(|record| output.label_record(record));
    measure::print_all(output, &records);
    if output.shows_live_lines() {
        output::document(&linerate_report::record::table_of_pings(&records));
    }
    if let Some(path) = &output.output {
        measure::write_json(path, &records)?;
    }
    let judged = records.iter().map(|record| {
        flags.assert.judge_record(record, exit_code(record), output.remark_printer())
    });
    Ok(judged.max().unwrap_or(0))
}

/// Runs a measurement with its live lines.
pub(super) fn run_probes(
    flags: &ProberFlags,
    measure: impl FnOnce(&mut Context<'_>) -> Record,
) -> Outcome {
    let mut lines = PingLines::new();
    let bar = lines.bar.clone();
    let measure = |context: &mut Context<'_>| {
        let record = measure(context);
        bar.finish_and_clear();
        record
    };
    let record = measure::run(&flags.output, measure, &mut |event| lines.print_event(event))?;
    Ok(flags.assert.judge_record(&record, exit_code(&record), flags.output.remark_printer()))
}

fn exit_code(record: &Record) -> u8 {
    let answered =
        record.summary.iter().any(|row| row.metric == MetricId::Received && row.value > 0.0);
    match &record.failure {
        Some(failure) => failure.exit_code(),
        None if answered => 0,
        None => 1,
    }
}

fn ping_plan(args: &Args, host: &HostAndPort) -> Result<PingPlan, Failure> {
    if !args.udp {
        host.without_port("ICMP")?;
    }
    let profile = Config::load()?.profile(&host.host, &KnownFlags::default());
    let usual = profile.port.unwrap_or(DEFAULT_PORT);
    let mode = match (args.window, args.flood) {
        (Some(window), _) => PingMode::Window(window),
        (None, true) => PingMode::Flood,
        (None, false) => PingMode::Paced,
    };
    let transport = if args.udp { PingTransport::Udp } else { PingTransport::Icmp };
    let port = host.choose_port(args.port, usual)?;
    let plan = args.prober.ping_plan(profile, transport, port);
    Ok(PingPlan {
        sizes_bytes: args.sizes.clone(),
        mode,
        warmup: args.warmup,
        // Stamps cost a flood a third of its speed, so there they are on request only.
        kernel_stamps: args.kernel_stamps
            || (mode == PingMode::Paced && plan.kernel_stamps && !args.xdp),
        xdp: args.xdp,
        ttl: args.ttl,
        dont_fragment: args.dont_fragment || args.pmtudisc == Some(Fragmentation::Do),
        ..plan
    })
}

/// Lines on the terminal while a ping runs.
struct PingLines {
    target: String,
    /// Decimals of a time in ms that the clock justifies.
    decimals: usize,
    /// The state of a flood and of a ping without end, on standard error when that is a terminal.
    bar: ProgressBar,
    standing: Option<live::PingTotals>,
}

impl PingLines {
    fn new() -> Self {
        let step_ns = rtt::clock_check::calibrate().map_or(1.0, |tick| tick.step_ns);
        Self {
            target: String::new(),
            standing: None,
            decimals: decimals_of_ms(step_ns),
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            ),
        }
    }

    fn print_event(&mut self, event: &Event) {
        match event {
            Event::Plan(Plan::Ping(plan)) => {
                self.target.clone_from(&plan.host);
                self.standing = plan.count.is_none().then(live::PingTotals::default);
            }
            Event::Connected(line) => output::folded(line),
            Event::Reply(reply) => {
                let line = live::reply_line(reply, &self.target, self.decimals);
                // The line of the state stands below those of the probes.
                self.bar.suspend(|| output::print_line(&line));
                if let Some(standing) = &mut self.standing {
                    standing.count_probe(reply);
                    self.bar.set_message(standing.totals_line(self.decimals));
                }
            }
            Event::Progress(progress) => self.bar.set_message(live::progress(progress)),
            Event::Note(line) => output::print_note(line),
            Event::Plan(_)
            | Event::Stream(_)
            | Event::Interval(_)
            | Event::SubInterval(_)
            | Event::BenchTrial(_)
            | Event::BenchStep(_)
            | Event::Caveat(_) => {}
        }
    }
}
