//! `linerate test`: examines a path.

use std::time::Duration;

use linerate_core::record::{DEFAULT_PORT, Event, Record, ServerPlan, Status};
use linerate_core::units::parse_span;
use linerate_engine::context::Context;
use linerate_engine::examine::{Examination, Examined, Seen};
use linerate_sys::stop::Stop;

use super::flags::FamilyFlags;
use super::measure::{self, Output};
use super::target::Target;
use crate::exit::Outcome;
use crate::output;

/// Nobody waits longer for a first look at a path.
const WITHIN: Duration = Duration::from_secs(35);

/// Flags of `linerate test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server: a host that runs linerate serve, as HOST or HOST:PORT
    host: Target,
    /// Server port [default: 5210]
    #[arg(short, long)]
    port: Option<u16>,
    /// Measured time of each TCP test, slow start excluded [default: 1s, or five round trips if
    /// longer]
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_span)]
    time: Option<Duration>,
    /// Finish within this time; tests that do not fit are skipped and listed [default: 35s,
    /// unlimited with -t]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    within: Option<Duration>,
    /// Maximum probes per packet size; fewer if they do not fit in a second
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Congestion control of the sender: cubic, reno, bbr, ... [default: the kernel's]
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    #[command(flatten)]
    family: FamilyFlags,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let examination = Examination {
        server: ServerPlan {
            family: args.family.family(),
            ..ServerPlan::new(None, &args.host.host, args.host.port(args.port, DEFAULT_PORT)?)
        },
        tcp_time: args.time,
        within: args.within.or_else(|| args.time.is_none().then_some(WITHIN)),
        congestion_control: args.congestion.clone(),
        ping_count: args.count,
    };
    args.output.check_file()?;
    let stop = Stop::on_signals()?;
    let without_reader = stop.clone();
    let flags = &args.output;
    let mut watch = |event: &Event| {
        if flags.jsonl {
            output::line(&serde_json::to_string(event).unwrap_or_default());
        }
        if output::reader_left() {
            without_reader.ask();
        }
    };
    let mut context = Context { tool: measure::tool(), stop, watch: &mut watch };
    let mut total = 0;
    let mut seen = |seen: &Seen<'_>| match seen {
        Seen::Planned(count, span) => {
            total = *count;
            if flags.live() {
                let seconds = span.as_secs_f64();
                output::note(&format!("{count} measurements in about {seconds:.0} s"));
            }
        }
        Seen::Done(count, record) if flags.live() && record.status != Status::Error => {
            let line = linerate_report::examination::line(record);
            output::note(&format!("{count}/{} {line}", total.max(*count)));
        }
        Seen::Done(..) => {}
    };
    let mut examined = examination.run(&mut context, &mut seen);
    for record in &mut examined.records {
        flags.label(record);
        flags.keep(record);
    }
    let records = &examined.records;
    print(flags, &examined)?;
    Ok(exit_code(records))
}

fn print(flags: &Output, examined: &Examined) -> anyhow::Result<()> {
    let records = &examined.records;
    if flags.json {
        output::line(&serde_json::to_string_pretty(records)?);
    } else if flags.jsonl {
        for record in records {
            output::line(&measure::record_line(record));
        }
    } else if records.iter().any(|record| record.status != Status::Error) {
        let document = linerate_report::examination::document(records, &examined.left_out);
        output::result(&document, flags.amount.detail());
    }
    if let Some(path) = &flags.output {
        measure::write_json(path, &records)?;
    }
    for failure in records.iter().filter_map(|record| record.failure.as_ref()) {
        output::error_line(&failure.to_string());
    }
    Ok(())
}

/// That of the first failure; 5 when other parts were measured.
fn exit_code(records: &[Record]) -> u8 {
    let codes: Vec<u8> = records.iter().map(Record::exit_code).collect();
    match codes.iter().find(|code| **code != 0) {
        Some(code) if codes.iter().all(|code| *code != 0) || *code == 130 => *code,
        Some(_) => 5,
        None => 0,
    }
}
