//! From flags to what the arithmetic takes: the layers of the link, and the facts beside them.

use linerate_core::record::{Failure, Fault, IpFamily};
use linerate_core::theory::encapsulation::Encapsulation;
use linerate_core::theory::framing::{SegmentHeaders, Transport};
use linerate_core::theory::ladder::{
    AckPath, Amount, CeilingFacts, FullPacketLengths, Known, LinkFact, PathQuestion, Response,
};
use linerate_core::theory::link::LinkTechnology;
use linerate_core::theory::stack::{LayerRates, StackError, StackPlan, layer_rates};
use linerate_core::theory::window::{scaled_window_max, window_scale};
use linerate_core::units::{BitRate, Bytes, Distance};

use super::flags::{Args, CongestionArg, FlowFlags, PathFlags};

/// Sizes of the transfers whose time is printed by default, bytes.
const TRANSFERS: [Bytes; 3] =
    [Bytes::new(100_000_000), Bytes::new(1_000_000_000), Bytes::new(10_000_000_000)];

/// Link, facts and transfers that the flags give.
pub(super) struct CeilingQuestion {
    plan: StackPlan,
    stack: LayerRates,
    pub(super) facts: CeilingFacts,
    transfers: Vec<Bytes>,
    queue_flows: Option<u64>,
    distance: Option<Distance>,
    measured: Option<BitRate>,
}

impl CeilingQuestion {
    /// # Errors
    /// When the layers do not go together, or a window does not fit its scale.
    pub(super) fn from_flags(args: &Args) -> Result<Self, Failure> {
        let plan = stack_plan(&args.path, &args.flow)?;
        let stack = layers(&plan)?;
        let facts = path_facts(args, &plan, &stack)?;
        if args.wanted.measured.is_some_and(|rate| rate.bits_per_sec() == 0) {
            return Err(usage_failure("--measured 0", "a test that carried nothing has no share"));
        }
        if args.wanted.flows == Some(0) {
            return Err(usage_failure("--flows 0", "0 flows need no queue"));
        }
        Ok(Self {
            plan,
            stack,
            facts,
            transfers: args.wanted.transfer.map_or_else(|| TRANSFERS.to_vec(), |size| vec![size]),
            queue_flows: args.wanted.flows,
            distance: args.path.distance,
            measured: args.wanted.measured,
        })
    }

    pub(super) fn question(&self) -> PathQuestion<'_> {
        PathQuestion {
            plan: &self.plan,
            stack: &self.stack,
            facts: &self.facts,
            transfers: &self.transfers,
            queue_flows: self.queue_flows,
            distance: self.distance,
            measured: self.measured,
        }
    }
}

fn usage_failure(object: impl Into<String>, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::Usage, "use", object, reason)
}

fn stack_plan(path: &PathFlags, flow: &FlowFlags) -> Result<StackPlan, Failure> {
    // The parser asks for one; without it there is nothing to compute.
    let Some((link, named)) = path.link else {
        return Err(usage_failure("--link", "no link is named"));
    };
    let carrier = path.carrier.or(named).unwrap_or_else(|| link.default_carrier());
    let transport = match (flow.udp, flow.no_timestamps) {
        (true, _) => Transport::Udp,
        (false, true) => Transport::Tcp,
        (false, false) => Transport::TcpWithTimestamps,
    };
    let family = if flow.ipv6 { IpFamily::V6 } else { IpFamily::V4 };
    Ok(StackPlan {
        link,
        carrier,
        encapsulations: path.encap.clone(),
        mtu_bytes: path.mtu.unwrap_or_else(|| link.default_mtu_bytes(carrier)),
        segment: SegmentHeaders { family, transport },
    })
}

fn layers(plan: &StackPlan) -> Result<LayerRates, Failure> {
    layer_rates(plan).map_err(|error| {
        let object = match &error {
            StackError::Carrier { .. } => format!("--carrier {}", plan.carrier),
            StackError::Framing(_) | StackError::TooLong { .. } => {
                format!("--link {} --mtu {}", plan.link, plan.mtu_bytes)
            }
            StackError::WifiRate { .. } => format!("--link {}", plan.link),
            _ => "--encap".to_owned(),
        };
        usage_failure(object, error)
    })
}

fn path_facts(args: &Args, plan: &StackPlan, stack: &LayerRates) -> Result<CeilingFacts, Failure> {
    let (flow, bounds) = (&args.flow, &args.bounds);
    let amount = match (args.wanted.transfer, args.wanted.time) {
        (Some(size), _) => Some(Known::new(Amount::Bytes(size), "--transfer")),
        (None, time) => time.map(|time| Known::new(Amount::Time(time), "--time")),
    };
    Ok(CeilingFacts {
        packet: packet(plan, stack),
        flows: flow.parallel,
        link: Some(link_fact(plan, stack)),
        capacity: bounds.capacity.map(|rate| Known::new(rate, "--capacity")),
        sustained: bounds.sustained.map(|rate| Known::new(rate, "--sustained")),
        packet_rate: bounds.pps.map(|rate| Known::new(rate, "--pps")),
        rtt: args.path.rtt.map(|rtt| Known::new(rtt, "--rtt")),
        window: window(flow)?,
        send_buffer: flow.sndbuf.map(|size| Known::new(size, "--sndbuf")),
        loss: bounds.loss.map(|share| Known::new(share, "--loss")),
        response: match flow.congestion {
            CongestionArg::Reno => Response::Reno,
            CongestionArg::Cubic => Response::Cubic,
            CongestionArg::Bbr => Response::Bbr,
        },
        sender_host: bounds.sender_rate.map(|rate| Known::new(rate, "--sender-rate")),
        receiver_host: bounds.receiver_rate.map(|rate| Known::new(rate, "--receiver-rate")),
        amount,
        initial_window: flow.initial_window,
        growth: flow.growth,
        application: bounds.pace.map(|rate| Known::new(rate, "--pace")),
        acks: bounds.reverse_link.map(|link| ack_path(plan, link, bounds.ack_every)).transpose()?,
    })
}

fn packet(plan: &StackPlan, stack: &LayerRates) -> FullPacketLengths {
    // The flow's own packet, inside of every encapsulation.
    let ip_bytes = (stack.ip_bps / (8.0 * stack.packets_per_s)).round() as u32;
    FullPacketLengths { payload_bytes: stack.payload_bytes, ip_bytes, segment: plan.segment }
}

fn link_fact(plan: &StackPlan, stack: &LayerRates) -> LinkFact {
    LinkFact {
        name: plan.link.to_string(),
        line_bps: plan.link.bit_rate().bits_per_sec() as f64,
        ip_bps: stack.ip_bps,
        payload_bps: stack.payload_bps,
        estimate: stack.estimate,
    }
}

/// The window that is given, or the largest that the scale allows.
fn window(flow: &FlowFlags) -> Result<Option<Known<Bytes>>, Failure> {
    let Some(scale) = flow.window_scale else {
        return Ok(flow.window.map(|size| Known::new(size, "--window")));
    };
    let object = format!("--window-scale {scale}");
    let largest = scaled_window_max(scale).map_err(|error| usage_failure(&object, error))?;
    match flow.window {
        None => Ok(Some(Known::new(largest, "--window-scale"))),
        Some(size) if size <= largest => Ok(Some(Known::new(size, "--window"))),
        Some(size) => {
            let needed = window_scale(size).map_or_else(
                |_| "no scale reaches it".to_owned(),
                |scale| format!("it needs a scale of {scale}"),
            );
            let (size, largest) = (size.as_plain_bytes(), largest.as_plain_bytes());
            Err(usage_failure(
                object,
                format!("it allows {largest}, and {size} are asked for; {needed}"),
            ))
        }
    }
}

/// Acknowledgements without data that the way back carries.
fn ack_path(
    plan: &StackPlan,
    link: LinkTechnology,
    segments: u32,
) -> Result<Known<AckPath>, Failure> {
    let carrier =
        if link.supports_carrier(plan.carrier) { plan.carrier } else { link.default_carrier() };
    let mut encapsulations = plan.encapsulations.clone();
    let wireguard =
        |encapsulation: &Encapsulation| matches!(encapsulation, Encapsulation::WireGuard { .. });
    let bytes = match encapsulations.last() {
        // WireGuard pads short packets to a multiple of 16.
        Some(last) if wireguard(last) => plan.segment.header_bytes().next_multiple_of(16),
        _ => plan.segment.header_bytes(),
    };
    encapsulations.push(Encapsulation::Mtu { bytes });
    // UDP's headers are shorter than an acknowledgement, so the plan has a payload.
    let segment = SegmentHeaders { transport: Transport::Udp, ..plan.segment };
    let mtu_bytes = link.default_mtu_bytes(carrier);
    let back = StackPlan { link, carrier, encapsulations, mtu_bytes, segment };
    let acks_per_s = layer_rates(&back)
        .map_err(|error| usage_failure(format!("--reverse-link {link}"), error))?
        .packets_per_s;
    let way = AckPath { acks_per_s, segments_per_ack: f64::from(segments) };
    Ok(Known::new(way, format!("{bytes} bytes each on {link}")))
}
