//! What two hosts with a path between them are, and what is measured over it.
//!
//! The sender `a` and the receiver `b` have a router each; the emulated path is between the
//! routers, so that neither host sees more of it than of any other path. Rivals are further hosts
//! behind the same routers.

use serde::{Deserialize, Serialize};

use crate::lab::{HostPlan, HostTcp, LabPlan, LinkPlan, RouterPlan};
use crate::record::{
    DEFAULT_PORT, Finish, Means, PathPlan, ProbePlan, ServerPlan, TcpDirections, TcpPlan, TcpTest,
    TestPlan,
};
use crate::units::BitRate;

/// Probes beside the load, and before it: those of `linerate tcp`.
const PROBE_INTERVAL_NS: u64 = 20_000_000;
const IDLE_PROBES: u32 = 20;
/// Probes of each size of a whole test, as many as it has by itself.
const PINGS: u64 = 1000;
/// Ten samples a second.
const SAMPLE_INTERVAL_NS: u64 = 100_000_000;
/// The CPU that data threads share with other work, where there is such work.
pub const BUSY_CPU: u32 = 0;

/// A path with its two hosts, and the test over it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// The path between the routers.
    pub path: PathPlan,
    /// TCP of the host that sends.
    pub sender: HostTcp,
    /// TCP of the host that receives.
    pub receiver: HostTcp,
    /// The link from the sender to its router.
    pub sender_link: Access,
    /// The link from the receiver to its router.
    pub receiver_link: Access,
    /// Largest IP packet of all links; 1500 when absent.
    pub mtu_bytes: Option<u32>,
    /// Parameters of the test.
    pub test: TestKeys,
    /// Commands that are run on hosts before the test.
    #[serde(rename = "command")]
    pub commands: Vec<HostCommand>,
    /// Other TCP flows over the same path.
    #[serde(rename = "rival")]
    pub rivals: Vec<Rival>,
    /// Shares of the CPU that hosts have.
    pub cpu: Vec<CpuShare>,
}

/// A link between a host and its router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Rate of the link, by the token bucket of both ends; as fast as the machine when absent.
    pub rate: Option<String>,
    /// Largest IP packet of the link.
    pub mtu_bytes: Option<u32>,
    /// Segmentation offload at both ends; on when absent.
    pub offload: Option<bool>,
}

/// Parameters of a test besides its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestKeys {
    /// Number of connections at once.
    pub streams: Option<u16>,
    /// Data in both directions at once.
    pub both_directions: bool,
    /// Bytes to send, instead of a time.
    pub bytes: Option<u64>,
    /// Socket buffer to ask for at both ends.
    pub window_bytes: Option<u64>,
    /// Maximum segment size to ask for.
    pub mss_bytes: Option<u32>,
    /// Pace of each stream.
    pub pace_bps: Option<u64>,
    /// Bytes given to one write().
    pub write_bytes: Option<u32>,
    /// Bytes that one read() may take.
    pub read_bytes: Option<u32>,
    /// Pace of the reads of each stream.
    pub read_pace_bps: Option<u64>,
    /// Nagle's algorithm is off (TCP_NODELAY).
    pub nodelay: bool,
    /// Rate of a flow against the test's direction.
    pub background_bps: Option<u64>,
}

/// A node of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The host that sends.
    Sender,
    /// Router beside the sender.
    SenderRouter,
    /// The router of the host that receives.
    ReceiverRouter,
    /// The host that receives.
    Receiver,
}

impl Place {
    /// Name of the node in the laboratory.
    pub const fn node_name(self) -> &'static str {
        match self {
            Self::Sender => "a",
            Self::SenderRouter => "r1",
            Self::ReceiverRouter => "r2",
            Self::Receiver => "b",
        }
    }
}

/// A command of the shell on one node, for settings without a key of their own: rules of a
/// middlebox, a queue discipline of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCommand {
    /// Host on which the command runs.
    pub on: Place,
    /// Command line, which `sh -c` runs.
    pub run: String,
}

/// A TCP flow between other hosts, over the same path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// Number of competing streams.
    #[serde(default = "one_stream")]
    pub streams: u16,
    /// Congestion control of those streams.
    pub congestion: String,
    /// Against the direction of the test.
    #[serde(default)]
    pub backward: bool,
    /// Seconds of each flow, with as long a pause after it; all the time when absent.
    #[serde(default)]
    pub on_s: Option<f64>,
}

const fn one_stream() -> u16 {
    1
}

/// Share of the CPU that the threads of a host get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuShare {
    /// The host whose threads are limited.
    pub on: Place,
    /// A quota in percent of one CPU, by a control group; none when absent.
    #[serde(default)]
    pub quota_percent: Option<f64>,
    /// Number of threads of other work on the CPU to which the host's data thread is pinned.
    #[serde(default)]
    pub busy_threads: u32,
}

impl Setting {
    /// The laboratory to build.
    pub fn lab_plan(&self) -> LabPlan {
        let host = |place: Place, tcp: &HostTcp| HostPlan {
            name: place.node_name().to_owned(),
            tcp: tcp.clone(),
            ..HostPlan::default()
        };
        let mut hosts =
            vec![host(Place::Sender, &self.sender), host(Place::Receiver, &self.receiver)];
        let mut links = vec![
            self.link_plan(["a", "r1"], &self.sender_link),
            LinkPlan {
                path: Some(self.path.clone()),
                ..self.link_plan(["r1", "r2"], &Access::default())
            },
            self.link_plan(["r2", "b"], &self.receiver_link),
        ];
        if !self.rivals.is_empty() {
            for ends in [["c", "r1"], ["r2", "d"]] {
                let name = if ends[0] == "c" { "c" } else { "d" };
                hosts.push(HostPlan { name: name.to_owned(), ..HostPlan::default() });
                links.push(self.link_plan(ends, &Access::default()));
            }
        }
        let router = |name: &str| RouterPlan { name: name.to_owned(), ..RouterPlan::default() };
        LabPlan {
            name: Some("bank".to_owned()),
            hosts,
            routers: vec![router("r1"), router("r2")],
            links,
            ..LabPlan::default()
        }
    }

    fn link_plan(&self, ends: [&str; 2], access: &Access) -> LinkPlan {
        LinkPlan {
            ends: ends.map(str::to_owned),
            mtu_bytes: access.mtu_bytes.or(self.mtu_bytes),
            rate: access.rate.clone(),
            offload: access.offload,
            path: None,
        }
    }

    /// Plan of `linerate test` towards the receiver at `host`.
    pub fn test_plan(&self, host: &str, congestion: &str, within_ns: u64) -> TestPlan {
        TestPlan {
            server: probed(host),
            tcp_time_ns: None,
            congestion_control: Some(congestion.to_owned()),
            ping_count: PINGS,
            within_ns: Some(within_ns),
            goal: None,
        }
    }

    /// The test from the sender to the receiver at `host`.
    pub fn tcp_plan(&self, host: &str, congestion: &str, time_ns: u64) -> TcpPlan {
        let keys = &self.test;
        let rate = |bps: Option<u64>| bps.map(BitRate::from_bits_per_sec);
        let plain = TcpTest::default();
        let both = keys.both_directions;
        let kept_on = |place: Place| {
            let busy = self.cpu.iter().any(|share| share.on == place && share.busy_threads > 0);
            if busy { vec![BUSY_CPU] } else { Vec::new() }
        };
        TcpPlan {
            server: probed(host),
            test: TcpTest {
                directions: if both { TcpDirections::Both } else { TcpDirections::Up },
                streams: keys.streams.unwrap_or(1),
                finish: keys.bytes.map_or(Finish::TimeNs(time_ns), Finish::Bytes),
                interval_ns: SAMPLE_INTERVAL_NS,
                buffer_bytes: keys.write_bytes.unwrap_or(plain.buffer_bytes),
                window_bytes: keys.window_bytes,
                mss_bytes: keys.mss_bytes,
                nodelay: keys.nodelay,
                congestion_control: Some(congestion.to_owned()),
                pace: rate(keys.pace_bps),
                read_bytes: keys.read_bytes,
                read_pace: rate(keys.read_pace_bps),
                background: rate(keys.background_bps),
                means: Means {
                    client_cpus: kept_on(Place::Sender),
                    server_cpus: kept_on(Place::Receiver),
                    ..Means::default()
                },
                ..plain
            },
            fast: false,
        }
    }
}

/// The receiver, with the probes that measure the delay under load.
fn probed(host: &str) -> ServerPlan {
    let probes = ProbePlan {
        interval_ns: PROBE_INTERVAL_NS,
        idle_count: IDLE_PROBES,
        ..ProbePlan::default()
    };
    ServerPlan { probes: Some(probes), ..ServerPlan::new(None, host.to_owned(), DEFAULT_PORT) }
}
