//! `linerate conform`: whether the traffic of a capture or an interface keeps a contract.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::conformance::{
    CellMapping, ConformPlan, Conformance, Contract, Filter, Layer, PlanError, cell_line,
};
use linerate_core::theory::gcra::CellRate;
use linerate_core::units::parse_span;
use linerate_engine::conform::{self, MeteringLimits, PacketInput};
use linerate_sys::stop::Stop;

use super::measure::DetailFlags;
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate conform`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Capture file to read, pcap or pcapng; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "live", conflicts_with = "live")]
    file: Option<PathBuf>,
    /// Capture on this interface instead, until Ctrl-C, --time or --packets
    #[arg(short = 'i', long, value_name = "INTERFACE")]
    live: Option<String>,
    /// Stop this long after the first packet; with --live, after the start
    #[arg(short, long, value_name = "TIME", value_parser = parse_span)]
    time: Option<Duration>,
    /// Stop after this many metered packets
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Meter ATM cells (GCRA): pcr=RATE,cdvt=TIME[,scr=RATE,mbs=CELLS]; RATE in cells/s, or in
    /// bit/s with that unit
    #[arg(long, value_name = "CONTRACT", value_parser = Contract::parse_gcra)]
    gcra: Vec<Contract>,
    /// Meter with one token bucket: rate=RATE,burst=SIZE
    #[arg(long, value_name = "CONTRACT", value_parser = Contract::token_bucket)]
    token_bucket: Vec<Contract>,
    /// Meter with a single-rate three-color marker (RFC 2697): cir=RATE,cbs=SIZE,ebs=SIZE[,aware];
    /// aware = color-aware mode
    #[arg(long, value_name = "CONTRACT", value_parser = Contract::parse_srtcm)]
    srtcm: Vec<Contract>,
    /// Meter with a two-rate three-color marker (RFC 2698):
    /// cir=RATE,cbs=SIZE,pir=RATE,pbs=SIZE[,aware]; aware = color-aware mode
    #[arg(long, value_name = "CONTRACT", value_parser = Contract::parse_trtcm)]
    trtcm: Vec<Contract>,
    /// Segment packets into ATM cells: llcsnap or vcmux (AAL5), or packet (one cell each)
    #[arg(long, value_name = "HOW", value_parser = str::parse::<CellMapping>)]
    cells: Option<CellMapping>,
    /// Line that sets the spacing of a packet's cells: oc3, oc12, ... or its cell payload bit rate
    #[arg(long, value_name = "LINE", default_value = "oc3", value_parser = cell_line)]
    line: CellRate,
    /// Layer at which bytes are counted
    #[arg(long, value_name = "LAYER", default_value = "ip")]
    layer: CountedLayer,
    /// Meter only packets that match all terms: udp,port=5001,host=10.0.0.1
    #[arg(long, value_name = "TERMS", value_parser = str::parse::<Filter>)]
    only: Option<Filter>,
    /// Print one JSON document
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    amount: DetailFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CountedLayer {
    /// The IP packet
    Ip,
    /// The packet with its link header as captured, as Linux's tbf counts
    Captured,
    /// The Ethernet frame, including FCS
    Frame,
    /// The Ethernet frame with preamble and inter-frame gap
    Wire,
}

/// Runs the command: 0 when all conforms, 1 when something does not, 2 when it cannot be read: a
/// file or an interface is this host's.
pub(crate) fn run(args: Args) -> Outcome {
    let (plan, input) = conform_plan(&args);
    plan.check_contracts().map_err(|error| anyhow::anyhow!(plan_error_line(&error)))?;
    let stop = Stop::on_signals()?;
    let limits = MeteringLimits { time: args.time, packets: args.packets };
    let mut opened = || output::print_note(&format!("capturing on {}", plan.source));
    let found = conform::run(&plan, &input, &limits, &stop, &mut opened)?;
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(&found)?);
    } else {
        let document = linerate_report::conform::document(&found);
        output::result(&document, args.amount.detail());
    }
    if let Some(failure) = &found.failure {
        output::error_line(failure);
    }
    Ok(exit_code(&found))
}

/// The source could not be read to its end.
const CANNOT_READ: u8 = 2;

fn exit_code(found: &Conformance) -> u8 {
    match (&found.failure, found.all_conform()) {
        (Some(_), _) => CANNOT_READ,
        (None, true) => 0,
        (None, false) => 1,
    }
}

fn plan_error_line(error: &PlanError) -> String {
    format!("{error}; see 'linerate conform --help'")
}

fn conform_plan(args: &Args) -> (ConformPlan, PacketInput) {
    let (source, input) = match (&args.live, &args.file) {
        (Some(interface), _) => (interface.clone(), PacketInput::Live(interface.clone())),
        (None, Some(path)) if path.as_os_str() == "-" => {
            ("standard input".to_owned(), PacketInput::Stdin)
        }
        (None, path) => {
            let path = path.clone().unwrap_or_default();
            (path.display().to_string(), PacketInput::File(path))
        }
    };
    let groups = [&args.gcra, &args.token_bucket, &args.srtcm, &args.trtcm];
    let plan = ConformPlan {
        source,
        contracts: groups.into_iter().flatten().copied().collect(),
        layer: match args.layer {
            CountedLayer::Ip => Layer::Ip,
            CountedLayer::Captured => Layer::Captured,
            CountedLayer::Frame => Layer::Frame,
            CountedLayer::Wire => Layer::Wire,
        },
        cells: args.cells,
        line: args.line,
        filter: args.only.clone().unwrap_or_default(),
        mtu_bytes: None,
    };
    (plan, input)
}
