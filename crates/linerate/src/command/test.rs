//! `linerate test`: examines a path.

use std::time::Duration;

use linerate_core::record::{DEFAULT_PORT, Event, Record, Status};
use linerate_core::units::parse_span;
use linerate_engine::context::Context;
use linerate_engine::examine::Examination;
use linerate_sys::stop::Stop;

use super::measure::{self, Output};
use super::tcp::family;
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or address of a host that runs linerate serve
    host: String,
    /// Port of the server
    #[arg(short, long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Time of each TCP test
    #[arg(short = 't', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    time: Duration,
    /// Probes of each size
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Congestion control of the senders: cubic, reno, bbr, ...
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let examination = Examination {
        host: args.host.clone(),
        port: args.port,
        family: family(args.ipv4, args.ipv6),
        tcp_time: args.time,
        congestion_control: args.congestion.clone(),
        ping_count: args.count,
    };
    let stop = Stop::on_signals()?;
    let without_reader = stop.clone();
    let total = examination.plans().len();
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
    let mut done = |count: usize, record: &Record| {
        if flags.live() && record.status != Status::Error {
            let line = linerate_report::examination::line(record);
            output::note(&format!("{count}/{total} {line}"));
        }
    };
    let mut records = examination.run(&mut context, &mut done);
    for record in &mut records {
        flags.label(record);
        flags.keep(record);
    }
    print(flags, &records)?;
    Ok(exit_code(&records))
}

fn print(flags: &Output, records: &[Record]) -> anyhow::Result<()> {
    if flags.json {
        output::line(&serde_json::to_string_pretty(records)?);
    } else if flags.jsonl {
        for record in records {
            output::line(&measure::record_line(record));
        }
    } else if records.iter().any(|record| record.status != Status::Error) {
        output::text(&linerate_report::examination::text(records));
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
