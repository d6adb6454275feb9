//! `linerate tcp`: throughput of TCP to a server.

use linerate_core::record::{Failure, Fault, Means, ReceiveWith, SendWith, TcpPlan, TcpTest};
use linerate_core::units::{BitRate, Bytes};
use linerate_engine::throughput;

use super::flags::{FlowTestFlags, span_nanos};
use crate::exit::Outcome;
use crate::live::TcpLines;

/// Flags of `linerate tcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flow: FlowTestFlags,
    /// Buffer size of one write()
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "512K")]
    length: Bytes,
    /// Congestion control of the sender: cubic, reno, bbr, ... [default: the kernel's]
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// TCP maximum segment size (MSS) in bytes
    #[arg(short = 'M', long, value_name = "BYTES")]
    set_mss: Option<u32>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// Pace each stream at this payload rate in bit/s (100M = 10^8) [default: unlimited]
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
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
    /// Read each stream at this payload rate, as an application slower than the path [default:
    /// unlimited]
    #[arg(long, value_name = "RATE")]
    read_pace: Option<BitRate>,
    /// Send background traffic at this payload rate in the opposite direction
    #[arg(long, value_name = "RATE", conflicts_with = "bidir")]
    background: Option<BitRate>,
}

/// Runs `linerate tcp` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = tcp_plan(&args)?;
    let flow = &args.flow;
    let mut lines = TcpLines::new(&flow.output, flow.parallel);
    flow.run(|context| throughput::run_tcp(&plan, context), &mut |event| lines.print_event(event))
}

/// A size that goes into one call.
fn call_bytes(flag: &str, size: Bytes) -> Result<u32, Failure> {
    u32::try_from(size.count()).map_err(|_| {
        Failure::new(Fault::Usage, "use", flag, "a buffer of 4 GiB or more").advise("at most 16M")
    })
}

fn tcp_plan(args: &Args) -> Result<TcpPlan, Failure> {
    let flow = &args.flow;
    Ok(TcpPlan {
        server: flow.server(args.bitrate)?,
        test: TcpTest {
            directions: flow.directions(),
            streams: flow.parallel,
            finish: flow.finish(),
            omit_ns: span_nanos(flow.omit),
            interval_ns: span_nanos(flow.interval),
            buffer_bytes: call_bytes("-l", args.length)?,
            window_bytes: flow.window_bytes(),
            mss_bytes: args.set_mss,
            nodelay: args.no_delay,
            congestion_control: args.congestion.clone(),
            pace: args.bitrate,
            dscp: flow.dscp,
            dscps: Vec::new(),
            zero_copy: args.zerocopy,
            read_bytes: args.read_size.map(|size| call_bytes("--read-size", size)).transpose()?,
            read_pace: args.read_pace,
            background: args.background,
            other_port: false,
            means: means_of_flags(args),
        },
        fast: args.fast,
    })
}

fn means_of_flags(args: &Args) -> Means {
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
        Ok(Self { client: parse_cpus(client)?, server: parse_cpus(server)? })
    }
}

/// A processor or a range of them; none when empty.
fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
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
