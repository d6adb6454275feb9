//! `linerate tcp`: throughput of TCP to a server.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Family, Fault, Finish, Means, ReceiveWith, SendWith,
    TcpDirections, TcpPlan, Via,
};
use linerate_core::units::{BitRate, Bytes, parse_span};
use linerate_engine::throughput;

use crate::command::measure::{self, Output};
use crate::exit::Outcome;
use crate::live::TcpLines;

/// Flags of `linerate tcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or address of a host that runs linerate serve, or with --via another program
    host: String,
    /// Port of the server: 5210, or the usual one of the program that --via names
    #[arg(short, long)]
    port: Option<u16>,
    /// Whose protocol the server speaks: iperf3, iperf2, nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Send for this long
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = parse_span,
          conflicts_with_all = ["bytes", "blocks"])]
    time: Duration,
    /// Send this many bytes in each direction instead (64K is 65,536; 1GB is 10^9)
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blocks")]
    bytes: Option<Bytes>,
    /// Send this many buffers in each direction instead
    #[arg(short = 'k', long, value_name = "N")]
    blocks: Option<u64>,
    /// Bytes given to one write()
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "512K")]
    length: Bytes,
    /// Socket buffers at both ends; the kernel's autotuning when absent
    #[arg(short = 'w', long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Connections in each direction, each on a thread of its own
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    parallel: u16,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both ends send at once
    #[arg(long)]
    bidir: bool,
    /// Congestion control of the sender: cubic, reno, bbr, ...
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Maximum segment size in bytes
    #[arg(short = 'M', long, value_name = "BYTES")]
    set_mss: Option<u32>,
    /// Do not gather small writes (TCP_NODELAY)
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Leave out this long at the start
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    omit: Duration,
    /// Time between lines
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Pace of each stream in payload bit/s (100M is 100,000,000 bit/s)
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Send from the page cache without copying (sendfile)
    #[arg(short = 'Z', long)]
    zerocopy: bool,
    /// Choose how data is moved, and on which cores, from trials of two seconds in all
    #[arg(long, conflicts_with_all = ["send_with", "receive_with", "affinity", "verify", "zerocopy",
          "read_size", "via"])]
    fast: bool,
    /// How the sender hands over its bytes: write, sendfile, vmsplice, zerocopy
    #[arg(long, value_name = "CALL", conflicts_with = "zerocopy")]
    send_with: Option<SendWith>,
    /// How the receiver takes them: read, trunc (the kernel drops them), splice (to /dev/null)
    #[arg(long, value_name = "CALL")]
    receive_with: Option<ReceiveWith>,
    /// Processors of the data threads: CLIENT or CLIENT,SERVER, each one or a range (0-3)
    #[arg(short = 'A', long, value_name = "CPUS")]
    affinity: Option<Affinity>,
    /// Send a pattern and hold every received byte against it
    #[arg(long, conflicts_with_all = ["zerocopy", "via"])]
    verify: bool,
    /// Multipath TCP at both ends, where the kernels have it
    #[arg(long, conflicts_with = "via")]
    mptcp: bool,
    /// Bytes that one read() takes; small reads make more traffic on the way back
    #[arg(long, value_name = "SIZE")]
    read_size: Option<Bytes>,
    /// Meanwhile send payload at this rate against the test's direction, on another stream
    #[arg(long, value_name = "RATE", conflicts_with = "bidir")]
    background: Option<BitRate>,
    /// How long to wait for the server to answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    connect_timeout: Duration,
    /// When the server is busy, go on asking for this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    wait: Duration,
    /// Show every stream, also when there are more than 16
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = plan(&args)?;
    let mut lines = TcpLines::new(&args.output, args.parallel, args.verbose);
    let until = linerate_sys::clock::monotonic() + args.wait;
    let record = measure::run(
        &args.output,
        |context| {
            loop {
                let record = throughput::run(&plan, context);
                let busy = record.failure.as_ref().is_some_and(Failure::is_busy);
                if !busy || context.stop.asked() || linerate_sys::clock::monotonic() >= until {
                    return record;
                }
                linerate_sys::clock::sleep(Duration::from_millis(500));
            }
        },
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
    let finish = match (args.bytes, args.blocks) {
        (Some(bytes), _) => Finish::Bytes(bytes.count()),
        (None, Some(count)) => Finish::Buffers(count),
        (None, None) => Finish::TimeNs(nanos(args.time)),
    };
    Ok(TcpPlan {
        via: args.via,
        host: args.host.clone(),
        port: args.port.unwrap_or_else(|| args.via.map_or(DEFAULT_PORT, Via::default_port)),
        family: family(args.ipv4, args.ipv6),
        bind: args.bind.clone(),
        directions: match (args.reverse, args.bidir) {
            (true, _) => TcpDirections::Down,
            (_, true) => TcpDirections::Both,
            _ => TcpDirections::Up,
        },
        streams: args.parallel,
        finish,
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
        fast: args.fast,
        connect_timeout_ns: nanos(args.connect_timeout),
    })
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
        _ => Err(format!("{text:?} is no processor and no range of them, such as 2 or 0-3")),
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
