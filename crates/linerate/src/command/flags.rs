//! The flags that several commands share, and what they fill in of a plan.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Finish, IpFamily, Record, ServerPlan, TcpDirections, Via,
};
use linerate_core::units::{BitRate, Bytes, parse_dscp, parse_span};
use linerate_engine::context::Context;
use linerate_sys::clock::{monotonic, sleep};

use super::access::AccessFlags;
use super::assert::AssertFlags;
use super::measure::{self, OutputFlags};
use super::probes::ProbeFlags;
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;

/// A time in which something can happen.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    if span.is_zero() { Err("it is no time at all".to_owned()) } else { Ok(span) }
}

/// Only one address family.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct FamilyFlags {
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
}

impl FamilyFlags {
    pub(super) const fn family(self) -> Option<IpFamily> {
        family(self.ipv4, self.ipv6)
    }
}

/// Flags of a flow test, over TCP or UDP.
#[derive(Debug, clap::Args)]
pub(super) struct FlowTestFlags {
    /// Server: host name or address, as HOST or HOST:PORT
    ///
    /// It runs linerate serve, or the program given by --via. An IPv6 address with a port is
    /// [ADDRESS]:PORT.
    host: HostAndPort,
    /// Server port [default: 5210, or the usual port of the --via program]
    #[arg(short, long, value_parser = parse_port)]
    port: Option<u16>,
    /// Test against a server of another program: iperf3, iperf2, nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Test duration
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = parse_span,
          conflicts_with_all = ["bytes", "blocks"])]
    time: Duration,
    /// Send this many bytes per direction instead of for --time (64K = 65,536; 1GB = 10^9); UDP
    /// sends whole datagrams
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blocks")]
    bytes: Option<Bytes>,
    /// Send this many buffers of --length, over UDP datagrams, per direction instead of for --time
    #[arg(short = 'k', long, value_name = "N")]
    blocks: Option<u64>,
    /// Socket buffer size at both ends [default: TCP: kernel autotuning; UDP: the kernel's default
    /// for the sender, up to 32 MiB for the receiver]
    #[arg(short = 'w', long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Number of parallel streams per direction, one thread each
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    pub(super) parallel: u16,
    /// Reverse: the server sends, the client receives
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Bidirectional: both ends send at the same time
    #[arg(long)]
    bidir: bool,
    /// Omit this long at the start from the result, to skip slow start
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    pub(super) omit: Duration,
    /// Time between interval reports
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    pub(super) interval: Duration,
    #[command(flatten)]
    family: FamilyFlags,
    /// Local address to bind to
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Differentiated services code point (DSCP): 0 to 63, EF, AF41, CS1, LE, VA
    #[arg(long, value_name = "N", value_parser = parse_dscp)]
    pub(super) dscp: Option<u8>,
    /// Give up connecting to the server after this long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = some_time)]
    connect_timeout: Duration,
    /// Retry for this long while the server is busy
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    wait: Duration,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    probes: ProbeFlags,
    #[command(flatten)]
    known: KnownFlags,
    #[command(flatten)]
    assert: AssertFlags,
    #[command(flatten)]
    pub(super) output: OutputFlags,
}

impl FlowTestFlags {
    /// The server of a test with a pace for each stream, if any.
    pub(super) fn server(&self, pace: Option<BitRate>) -> Result<ServerPlan, Failure> {
        let profile = Config::load()?.profile(&self.host.host, &self.known);
        let usual = self.via.map_or(DEFAULT_PORT, Via::default_port);
        // The file's port is that of linerate serve.
        let usual = profile.port.filter(|_| self.via.is_none()).unwrap_or(usual);
        let port = self.host.choose_port(self.port, usual)?;
        let server = ServerPlan {
            family: self.family.family(),
            bind: self.bind.clone(),
            connect_timeout_ns: span_nanos(self.connect_timeout),
            profile: profile.name,
            known: profile.known,
            token: self.access.read_access_token(self.via)?,
            ..ServerPlan::new(self.via, profile.host, port)
        };
        let load = pace.map(|rate| rate.bits_per_sec() as f64 * f64::from(self.parallel));
        let probes = self.probes.probe_plan(&server, load, self.finish());
        Ok(ServerPlan { probes, ..server })
    }

    pub(super) const fn directions(&self) -> TcpDirections {
        match (self.reverse, self.bidir) {
            (true, _) => TcpDirections::Down,
            (_, true) => TcpDirections::Both,
            _ => TcpDirections::Up,
        }
    }

    pub(super) fn finish(&self) -> Finish {
        match (self.bytes, self.blocks) {
            (Some(bytes), _) => Finish::Bytes(bytes.count()),
            (None, Some(count)) => Finish::Buffers(count),
            (None, None) => Finish::TimeNs(span_nanos(self.time)),
        }
    }

    pub(super) fn window_bytes(&self) -> Option<u64> {
        self.window.map(Bytes::count)
    }

    /// Measures, and again while the server is busy and `--wait` lasts.
    pub(super) fn run(
        &self,
        mut measure: impl FnMut(&mut Context<'_>) -> Record,
        live: &mut dyn FnMut(&Event),
    ) -> Outcome {
        let until = monotonic() + self.wait;
        let patiently = |context: &mut Context<'_>| {
            loop {
                let record = measure(context);
                let busy = record.failure.as_ref().is_some_and(Failure::is_busy);
                if !busy || context.stop.is_requested() || monotonic() >= until {
                    return record;
                }
                sleep(Duration::from_millis(500));
            }
        };
        let record = measure::run(&self.output, patiently, live)?;
        Ok(self.assert.judge_record(&record, record.exit_code(), self.output.remark_printer()))
    }
}

/// The address family that two flags leave.
pub(crate) const fn family(ipv4: bool, ipv6: bool) -> Option<IpFamily> {
    match (ipv4, ipv6) {
        (true, _) => Some(IpFamily::V4),
        (_, true) => Some(IpFamily::V6),
        _ => None,
    }
}

/// A span in nanoseconds; longer than 584 years is held there.
pub(crate) fn span_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
