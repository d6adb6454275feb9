//! `linerate iperf3`: iperf3's command line, with its lines and its document of results, on this
//! program's engine. What is left out is in `refused`, each with its reason.

mod client;
mod daemon;
mod login;
mod number;
mod paper;
mod refused;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{End, Failure, Via};
use linerate_core::time::WallTime;
use linerate_engine::environment::local_end;
use linerate_report::iperf3::{Sheet, Surroundings, Unit, VERSION};
use linerate_sys::sched::{Pinned, cpus_allowed};

use crate::exit::Outcome;
use crate::output;

pub(crate) use login::GuardFlags;
use number::{Pace, dscp, milliseconds, pace, seconds, size, tos};
use paper::Paper;

/// Flags of `linerate iperf3`.
#[derive(Debug, clap::Args)]
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// Measure with the server on this host
    #[arg(short, long, value_name = "HOST", conflicts_with = "server")]
    client: Option<String>,
    /// Be the server
    #[arg(short, long)]
    server: bool,
    /// Port of the server
    #[arg(short, long, value_name = "N", default_value_t = Via::Iperf3.default_port())]
    port: u16,
    /// Unit of rates: k, m, g, t for bits, K, M, G, T for bytes
    #[arg(short, long, value_name = "LETTER", value_parser = unit)]
    format: Option<Unit>,
    /// Seconds between lines; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Local address
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Say more
    #[arg(short = 'V', long)]
    verbose: bool,
    /// Print one JSON document
    #[arg(short = 'J', long)]
    json: bool,
    /// Print one JSON object a line as the test goes on
    #[arg(long)]
    json_stream: bool,
    /// Append everything to this file
    #[arg(long, value_name = "FILE")]
    logfile: Option<PathBuf>,
    /// Write each line at once, as is always done
    #[arg(long)]
    forceflush: bool,
    /// Put the time (UTC) before every line, in a format of strftime
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = STAMP)]
    timestamps: Option<String>,
    /// Run on this processor
    #[arg(short = 'A', long, value_name = "N", value_parser = processor)]
    affinity: Option<u32>,
    /// Write the number of this process to this file
    #[arg(short = 'I', long, value_name = "FILE")]
    pidfile: Option<PathBuf>,
    /// Say more, as -V does
    #[arg(short = 'd', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "4")]
    debug: Option<String>,
    /// Give up when nothing is received for this many milliseconds
    #[arg(long, value_name = "MS", default_value = "120000", value_parser = milliseconds)]
    rcv_timeout: Duration,
    /// Notice a peer that is gone, as is always done
    #[arg(long, value_name = "IDLE/INTERVAL/COUNT", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    cntl_ka: Option<String>,
    /// Print the version
    #[arg(short = 'v', long)]
    version: bool,
    /// Server: end after one test
    #[arg(short = '1', long)]
    one_off: bool,
    /// Server: go into the background
    #[arg(short = 'D', long, requires = "server")]
    daemon: bool,
    /// Server: with -1, end when nobody has come for this many seconds
    #[arg(long, value_name = "SECONDS", requires = "server", value_parser = seconds)]
    idle_timeout: Option<Duration>,
    /// Server: longest test in seconds
    #[arg(long, value_name = "SECONDS", requires = "server", value_parser = seconds)]
    server_max_duration: Option<Duration>,
    #[command(flatten)]
    test: TestFlags,
    #[command(flatten)]
    login: login::LoginFlags,
    #[command(flatten)]
    guard: GuardFlags,
    #[command(flatten)]
    refused: refused::Refused,
}

impl Args {
    /// Where the lines go.
    fn paper(&self) -> Result<Paper, Failure> {
        let title = self.test.title.clone();
        Paper::open(self.logfile.as_deref(), title, self.timestamps.clone())
    }
}

/// How the time stands before a line, unless told otherwise: as the C library has it.
const STAMP: &str = "%a %b %e %H:%M:%S %Y ";

/// Flags of a client's test.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Client")]
struct TestFlags {
    /// Seconds to send for
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = seconds,
          conflicts_with_all = ["bytes", "blockcount"])]
    time: Duration,
    /// Bytes to send instead (64K is 65,536)
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = size,
          conflicts_with = "blockcount")]
    bytes: Option<u64>,
    /// Blocks to send instead
    #[arg(short = 'k', long, value_name = "N", value_parser = size)]
    blockcount: Option<u64>,
    /// Bytes of a block
    #[arg(short = 'l', long, value_name = "SIZE", value_parser = size)]
    length: Option<u64>,
    /// Datagrams instead of a stream of bytes; 1 Mbit/s where -b says nothing
    #[arg(short, long)]
    udp: bool,
    /// Number datagrams in 64 bits, as is always done
    #[arg(long)]
    udp_counters_64bit: bool,
    /// Pace of each stream in bit/s (10M is 10,000,000; 0 is none), and blocks that leave at once
    #[arg(short = 'b', long, value_name = "RATE[/BURST]", value_parser = pace)]
    bitrate: Option<Pace>,
    /// Streams
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    parallel: u16,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both ends send
    #[arg(long)]
    bidir: bool,
    /// Socket buffers
    #[arg(short = 'w', long, value_name = "SIZE", value_parser = size)]
    window: Option<u64>,
    /// Congestion control of the sender
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Maximum segment size
    #[arg(short = 'M', long, value_name = "BYTES")]
    set_mss: Option<u32>,
    /// Do not gather small writes (TCP_NODELAY)
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "version6")]
    version4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    version6: bool,
    /// Type of service octet: 32, 0x20, 040
    #[arg(short = 'S', long, value_name = "N", value_parser = tos, conflicts_with = "dscp")]
    tos: Option<u8>,
    /// Code point: 0 to 63, or a name such as ef, cs1, af11
    #[arg(long, value_name = "N", value_parser = dscp)]
    dscp: Option<u8>,
    /// Send from the page cache without copying
    #[arg(short = 'Z', long)]
    zerocopy: bool,
    /// Leave out these whole seconds at the start
    #[arg(short = 'O', long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    omit: Duration,
    /// Send the same bytes again and again, as is always done
    #[arg(long)]
    repeating_payload: bool,
    /// Put this before every line
    #[arg(short = 'T', long, value_name = "TEXT")]
    title: Option<String>,
    /// A text for both ends' JSON
    #[arg(long, value_name = "TEXT")]
    extra_data: Option<String>,
    /// Print what the server printed, too
    #[arg(long)]
    get_server_output: bool,
    /// Milliseconds to wait for a connection
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = milliseconds)]
    connect_timeout: Duration,
}

/// Runs the command.
pub(crate) fn run(mut args: Args) -> Outcome {
    if args.version {
        output::text(&format!("{VERSION}\n{}\n", system(&local_end(None))));
        return Ok(0);
    }
    let paper = args.paper()?;
    if let Some(reason) = args.refused.reason() {
        paper.error(&format!("parameter error - {reason}"));
        return Ok(1);
    }
    if args.daemon && daemon::leave()? {
        return Ok(0);
    }
    args.verbose |= args.debug.is_some();
    let _held = args.affinity.map(Pinned::to);
    if let Some(path) = &args.pidfile {
        daemon::write_pid(path)?;
    }
    match &args.client {
        Some(host) => client::run(&args, host, &paper),
        None if args.server => server::run(&args, &paper),
        None => {
            paper.error("parameter error - must either be a client (-c) or server (-s)");
            Ok(1)
        }
    }
}

/// A processor of this host.
fn processor(text: &str) -> Result<u32, String> {
    let count = cpus_allowed();
    match text.parse() {
        Ok(number) if number < count => Ok(number),
        Ok(_) => Err(format!("this process has {count} processors")),
        Err(_) if text.contains(',') => Err("a server chooses its processor itself".to_owned()),
        Err(_) => Err(format!("{text} is no number")),
    }
}

fn unit(text: &str) -> Result<Unit, String> {
    Unit::from_letter(text).ok_or_else(|| "one of k, m, g, t, K, M, G, T".to_owned())
}

/// The host in words.
fn system(end: &End) -> String {
    [&end.kernel, &end.cpu_model].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
}

/// What stands in a document beside the test.
fn surroundings(
    title: Option<&String>,
    extra_data: Option<&String>,
    now: WallTime,
) -> Surroundings {
    Surroundings {
        system: system(&local_end(None)),
        time: now.http_date(),
        time_s: now.unix_millis() / 1000,
        title: title.cloned(),
        extra_data: extra_data.cloned(),
    }
}

/// One line of `--json-stream`.
fn stream_line(event: &str, data: &serde_json::Value) -> String {
    format!("{}\n", serde_json::json!({ "event": event, "data": data }))
}

/// A whole document.
fn pretty(document: &serde_json::Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(document).unwrap_or_default())
}

/// Whether rows are wanted, for a sheet whose interval is never.
const fn has_rows(sheet: &Sheet) -> bool {
    sheet.plan.interval_ns < NO_ROWS_NS
}

/// A day: the interval that stands for none.
const NO_ROWS_NS: u64 = 86_400_000_000_000;
