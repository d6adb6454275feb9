//! `linerate tcp`: throughput of TCP to a server.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Family, Fault, Finish, Means, ReceiveWith, SendWith,
    TcpDirections, TcpPlan, TcpTest, Via,
};
use linerate_core::units::{BitRate, Bytes, parse_span};
use linerate_engine::flow::tcp;

use crate::command::measure::{self, Output};
use crate::exit::Outcome;
use crate::live::TcpLines;

/// Flags of `linerate tcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server: host name or address; it runs linerate serve, or the program given by --via
    host: String,
    /// Server port [default: 5210, or the usual port of the --via program]
    #[arg(short, long)]
    port: Option<u16>,
    /// Test against a server of another program: iperf3, iperf2, nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Test duration
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = parse_span,
          conflicts_with_all = ["bytes", "blocks"])]
    time: Duration,
    /// Send this many bytes per direction instead of for --time (64K = 65,536; 1GB = 10^9)
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blocks")]
    bytes: Option<Bytes>,
    /// Send this many buffers of --length per direction instead of for --time
    #[arg(short = 'k', long, value_name = "N")]
    blocks: Option<u64>,
    /// Buffer size of one write()
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "512K")]
    length: Bytes,
    /// Socket buffer size at both ends [default: kernel autotuning]
    #[arg(short = 'w', long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Number of parallel streams per direction, one thread each
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    parallel: u16,
    /// Reverse: the server sends, the client receives
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Bidirectional: both ends send at the same time
    #[arg(long)]
    bidir: bool,
    /// Congestion control of the sender: cubic, reno, bbr, ... [default: the kernel's]
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// TCP maximum segment size (MSS) in bytes
    #[arg(short = 'M', long, value_name = "BYTES")]
    set_mss: Option<u32>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Omit this long at the start from the result, to skip slow start
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    omit: Duration,
    /// Time between interval reports
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Pace each stream at this payload rate in bit/s (100M = 10^8) [default: unlimited]
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Local address to bind to
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Differentiated services code point (DSCP), 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Send from the page cache without copying (sendfile); same as --send-with sendfile
    #[arg(short = 'Z', long)]
    zerocopy: bool,
    /// Find the fastest send and receive calls and CPU placement by trials first, two seconds in
    /// all
    #[arg(long, conflicts_with_all = ["send_with", "receive_with", "affinity", "verify", "zerocopy",
          "read_size", "via"])]
    fast: bool,
    /// System call of the sender: write, sendfile, vmsplice, zerocopy (MSG_ZEROCOPY) [default:
    /// write]
    #[arg(long, value_name = "CALL", conflicts_with = "zerocopy")]
    send_with: Option<SendWith>,
    /// System call of the receiver: read, trunc (MSG_TRUNC: discard in the kernel), splice (to
    /// /dev/null) [default: read]
    #[arg(long, value_name = "CALL")]
    receive_with: Option<ReceiveWith>,
    /// Pin data threads to CPUs: CLIENT or CLIENT,SERVER, each a CPU or a range (0-3)
    #[arg(short = 'A', long, value_name = "CPUS")]
    affinity: Option<Affinity>,
    /// Send a test pattern and verify every received byte
    #[arg(long, conflicts_with_all = ["zerocopy", "via"])]
    verify: bool,
    /// Use Multipath TCP (RFC 8684) if both kernels support it
    #[arg(long, conflicts_with = "via")]
    mptcp: bool,
    /// Buffer size of one read(); small reads cause more ACKs [default: 512K]
    #[arg(long, value_name = "SIZE")]
    read_size: Option<Bytes>,
    /// Send background traffic at this payload rate in the opposite direction
    #[arg(long, value_name = "RATE", conflicts_with = "bidir")]
    background: Option<BitRate>,
    /// Give up connecting to the server after this long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    connect_timeout: Duration,
    /// Retry for this long while the server is busy
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    wait: Duration,
    /// Show every stream even if there are more than 16
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = plan(&args)?;
    let mut lines = TcpLines::new(&args.output, args.parallel, args.verbose);
    let record = measure::run(
        &args.output,
        |context| measure::while_busy(context, args.wait, |context| tcp::run(&plan, context)),
        &mut |event: &Event| lines.event(event),
    )?;
    Ok(record.exit_code())
}

fn read_bytes(args: &Args) -> Result<Option<u32>, Failure> {
    let Some(size) = args.read_size else { return Ok(None) };
    u32::try_from(size.count()).map(Some).map_err(|_| {
        let reason = "reads of 4 GiB or more";
        Failure::new(Fault::Usage, "use", "--read-size", reason).advise("at most 16M")
    })
}

fn plan(args: &Args) -> Result<TcpPlan, Failure> {
    let buffer_bytes = u32::try_from(args.length.count()).map_err(|_| {
        Failure::new(Fault::Usage, "use", "-l", "a buffer of 4 GiB or more").advise("at most 16M")
    })?;
    Ok(TcpPlan {
        via: args.via,
        host: args.host.clone(),
        port: args.port.unwrap_or_else(|| args.via.map_or(DEFAULT_PORT, Via::default_port)),
        family: family(args.ipv4, args.ipv6),
        bind: args.bind.clone(),
        fast: args.fast,
        connect_timeout_ns: nanos(args.connect_timeout),
        test: TcpTest {
            directions: directions(args.reverse, args.bidir),
            streams: args.parallel,
            finish: finish(args.bytes, args.blocks, args.time),
            omit_ns: nanos(args.omit),
            interval_ns: nanos(args.interval),
            buffer_bytes,
            window_bytes: args.window.map(Bytes::count),
            mss_bytes: args.set_mss,
            nodelay: args.no_delay,
            congestion_control: args.congestion.clone(),
            pace: args.bitrate,
            dscp: args.dscp,
            zero_copy: args.zerocopy,
            read_bytes: read_bytes(args)?,
            background: args.background,
            means: means(args),
        },
    })
}

/// The directions that two flags stand for.
pub(crate) const fn directions(reverse: bool, both: bool) -> TcpDirections {
    match (reverse, both) {
        (true, _) => TcpDirections::Down,
        (_, true) => TcpDirections::Both,
        _ => TcpDirections::Up,
    }
}

/// The end of a test: by bytes, else by buffers, else by time.
pub(super) fn finish(bytes: Option<Bytes>, buffers: Option<u64>, time: Duration) -> Finish {
    match (bytes, buffers) {
        (Some(bytes), _) => Finish::Bytes(bytes.count()),
        (None, Some(count)) => Finish::Buffers(count),
        (None, None) => Finish::TimeNs(nanos(time)),
    }
}

fn means(args: &Args) -> Means {
    let random = || u32::from_ne_bytes(linerate_sys::clock::random_bytes());
    let affinity = args.affinity.clone().unwrap_or_default();
    Means {
        send_with: args.send_with.unwrap_or_default(),
        send_bytes: None,
        receive_with: args.receive_with.unwrap_or_default(),
        client_cpus: affinity.client,
        server_cpus: affinity.server,
        verify_seed: args.verify.then(random),
        mptcp: args.mptcp,
    }
}

/// Processors of both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Affinity {
    client: Vec<u32>,
    server: Vec<u32>,
}

impl std::str::FromStr for Affinity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (client, server) = text.split_once(',').unwrap_or((text, ""));
        Ok(Self { client: cpus(client)?, server: cpus(server)? })
    }
}

/// A processor or a range of them; none when empty.
fn cpus(text: &str) -> Result<Vec<u32>, String> {
    /// Linux counts to 8192 (CONFIG_NR_CPUS).
    const CPU_MAX: u32 = 8191;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|cpu| *cpu <= CPU_MAX);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok((first..=last).collect()),
        _ => Err(format!("{text:?} is not a CPU or a range of CPUs, such as 2 or 0-3")),
    }
}

/// The address family that the flags leave.
pub(crate) const fn family(ipv4: bool, ipv6: bool) -> Option<Family> {
    match (ipv4, ipv6) {
        (true, _) => Some(Family::V4),
        (_, true) => Some(Family::V6),
        _ => None,
    }
}

/// A span in nanoseconds; longer than 584 years is held there.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_those_of_the_client_and_after_a_comma_those_of_the_server() {
        let of = |text: &str| text.parse::<Affinity>();
        let (one, none) = (vec![1], Vec::new());
        assert_eq!(of("1"), Ok(Affinity { client: one.clone(), server: none.clone() }));
        assert_eq!(of(",1"), Ok(Affinity { client: none, server: one.clone() }));
        assert_eq!(of("1,0-2"), Ok(Affinity { client: one, server: vec![0, 1, 2] }));
        for wrong in ["a", "3-1", "1,2,3", "8192", "0-"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
