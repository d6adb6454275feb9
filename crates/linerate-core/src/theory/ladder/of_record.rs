//! Facts from a measured record: what both kernels saw of the flows of its first direction.
//!
//! Left out: the link, which the caller knows from interfaces and shapers, the send buffer where
//! the kernel tunes it by itself, and loss where the congestion control is none of the known.

use std::time::Duration;

use super::facts::{Amount, Facts, Known, LinkFact, Packet, Response};
use crate::record::{Family, Finish, Flow, Plan, Record, TcpInfo, TcpPlan};
use crate::theory::framing::{Segment, Transport};
use crate::units::{Bytes, Fraction};

/// Bit of `tcpi_options` for timestamps (Linux tcp.h, TCPI_OPT_TIMESTAMPS).
const OPTION_TIMESTAMPS: u8 = 1;

/// What a record of TCP tells; `None` when it holds no flow whose segments are known.
///
/// The round trip is the smallest that a sender saw. The window is the mean over the flows of the
/// largest that each was offered. Losses are segments sent again less those that came twice, so
/// that several losses of one event count more than once.
pub fn facts_of(record: &Record, link: Option<LinkFact>) -> Option<Facts> {
    let Plan::Tcp(plan) = &record.plan else { return None };
    let direction = record.flows.first()?.direction;
    let flows: Vec<&Flow> =
        record.flows.iter().filter(|flow| flow.direction == direction).collect();
    let packet = packet(flows.first()?)?;
    let (response, answers) = response(&flows);
    Some(Facts {
        flows: u32::try_from(flows.len()).ok()?,
        link,
        rtt: rtt(&flows),
        window: window(&flows),
        send_buffer: send_buffer(&flows),
        loss: loss(&flows).filter(|_| answers),
        response,
        amount: amount(plan),
        application: plan.pace.map(|rate| Known::new(rate, "the pace of the test")),
        ..Facts::of(packet)
    })
}

fn infos<'a>(flows: &[&'a Flow]) -> impl Iterator<Item = &'a TcpInfo> {
    flows.iter().filter_map(|flow| flow.sender.as_ref()?.tcp_info.as_ref())
}

fn packet(flow: &Flow) -> Option<Packet> {
    let info = flow.sender.as_ref()?.tcp_info?;
    let transport = match info.options? & OPTION_TIMESTAMPS {
        0 => Transport::Tcp,
        _ => Transport::TcpWithTimestamps,
    };
    let family = if flow.server_addr.starts_with('[') { Family::V6 } else { Family::V4 };
    let segment = Segment { family, transport };
    let payload_bytes = info.snd_mss_bytes.filter(|bytes| *bytes > 0)?;
    let ip_bytes = payload_bytes.checked_add(segment.header_bytes())?;
    Some(Packet { payload_bytes, ip_bytes, segment })
}

fn rtt(flows: &[&Flow]) -> Option<Known<Duration>> {
    let us = infos(flows).filter_map(|info| info.min_rtt_us).filter(|us| *us > 0).min()?;
    Some(Known::new(Duration::from_micros(us.into()), "smallest of the senders"))
}

fn window(flows: &[&Flow]) -> Option<Known<Bytes>> {
    let offered = flows.iter().map(|flow| {
        let sender = flow.sender.as_ref().and_then(|end| end.window_offered_bytes_max);
        sender.or_else(|| flow.receiver.as_ref()?.window_advertised_bytes_max)
    });
    let offered: Option<Vec<u64>> = offered.collect();
    let mean = mean(&offered?)?;
    Some(Known::new(Bytes::new(mean), "largest that was advertised"))
}

/// The send buffer where it was asked for; the kernel does not tune such a one.
fn send_buffer(flows: &[&Flow]) -> Option<Known<Bytes>> {
    let fixed = flows.iter().map(|flow| {
        let buffer = &flow.sender.as_ref()?.sndbuf_bytes;
        buffer.asked.and(buffer.got)
    });
    let fixed: Option<Vec<u64>> = fixed.collect();
    let mean = mean(&fixed?)?;
    Some(Known::new(Bytes::new(mean), "SO_SNDBUF"))
}

/// `None` of nothing, and for 0.
fn mean(values: &[u64]) -> Option<u64> {
    let sum: u64 = values.iter().fold(0, |sum, value| sum.saturating_add(*value));
    sum.checked_div(values.len() as u64).filter(|mean| *mean > 0)
}

fn loss(flows: &[&Flow]) -> Option<Known<Fraction>> {
    let (mut lost, mut sent) = (0_u64, 0_u64);
    for info in infos(flows) {
        let twice = info.dsack_dups.unwrap_or(0);
        lost += u64::from(info.total_retrans?.saturating_sub(twice));
        sent += u64::from(info.data_segs_out?);
    }
    if lost == 0 || lost >= sent {
        return None;
    }
    let share = Fraction::from_value(lost as f64 / sent as f64)?;
    Some(Known::new(share, format!("{lost} of {sent} segments sent again")))
}

/// The congestion control of all flows, and whether its answer to loss is known.
fn response(flows: &[&Flow]) -> (Response, bool) {
    let name = |flow: &&Flow| flow.sender.as_ref()?.congestion_control.got.clone();
    let mut names: Vec<String> = flows.iter().filter_map(name).collect();
    names.dedup();
    match names.as_slice() {
        [one] => match one.as_str() {
            "reno" => (Response::Reno, true),
            "cubic" => (Response::Cubic, true),
            "bbr" => (Response::Bbr, true),
            _ => (Response::default(), false),
        },
        _ => (Response::default(), false),
    }
}

/// How much was sent, where the start of it was counted.
fn amount(plan: &TcpPlan) -> Option<Known<Amount>> {
    let amount = match plan.finish {
        _ if plan.omit_ns > 0 => return None,
        Finish::TimeNs(ns) => Amount::Time(Duration::from_nanos(ns)),
        Finish::Bytes(bytes) => Amount::Bytes(Bytes::new(bytes)),
        Finish::Buffers(count) => {
            Amount::Bytes(Bytes::new(count.checked_mul(plan.buffer_bytes.into())?))
        }
    };
    Some(Known::new(amount, "the plan"))
}

#[cfg(test)]
mod tests {
    use super::super::{RungKind, climb};
    use super::*;
    use crate::record::{Asked, Direction, FlowEnd, RecordId, Tool};
    use crate::time::WallTime;

    fn flow(window_bytes: u64) -> Flow {
        let info = TcpInfo {
            options: Some(OPTION_TIMESTAMPS),
            snd_mss_bytes: Some(1448),
            min_rtt_us: Some(40_000),
            total_retrans: Some(12),
            dsack_dups: Some(2),
            data_segs_out: Some(10_000),
            ..TcpInfo::default()
        };
        let sender = FlowEnd {
            window_offered_bytes_max: Some(window_bytes),
            congestion_control: Asked { asked: None, got: Some("reno".to_owned()) },
            sndbuf_bytes: Asked { asked: None, got: Some(87_040) },
            tcp_info: Some(info),
            ..FlowEnd::default()
        };
        Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: "192.0.2.1:5210".to_owned(),
            sender: Some(sender),
            receiver: None,
            syn: None,
        }
    }

    fn record(flows: Vec<Flow>) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let plan = Plan::Tcp(TcpPlan::default());
        let record = Record::begin(id, tool, plan, WallTime::from_unix_nanos(0));
        Record { flows, ..record }
    }

    #[test]
    fn a_record_becomes_a_ladder() {
        let facts = facts_of(&record(vec![flow(60_000), flow(80_000)]), None).expect("two flows");
        assert_eq!((facts.flows, facts.packet.ip_bytes), (2, 1500));
        let ladder = climb(&facts).expect("possible facts");
        let mbps = |kind| ladder.rung(kind).map(|rung| rung.payload_bps / 1e6);
        // 2 × 70,000 × 8 / 0.04 s.
        assert!((mbps(RungKind::ReceiveWindow).expect("a window") - 28.0).abs() < 1e-6);
        // 20 of 20,000: 2 × 1448 × 8 / 0.04 × 1.224745 / sqrt(1e-3) = 22.4325 Mbit/s.
        assert!((mbps(RungKind::Loss).expect("a loss") - 22.4325).abs() < 1e-3);
        // The kernel tunes the send buffer, and without a link no start is known.
        assert_eq!((mbps(RungKind::SendBuffer), mbps(RungKind::StartUp)), (None, None));
    }

    #[test]
    fn an_unknown_congestion_control_has_no_rung() {
        let mut one = flow(60_000);
        let sender = one.sender.as_mut().expect("it has one");
        sender.congestion_control.got = Some("vegas".to_owned());
        let facts = facts_of(&record(vec![one]), None).expect("a flow");
        assert_eq!(facts.loss, None);
    }

    #[test]
    fn a_record_without_flows_tells_nothing() {
        assert_eq!(facts_of(&record(vec![]), None), None);
    }
}
