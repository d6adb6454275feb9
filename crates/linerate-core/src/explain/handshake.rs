//! The options of SYN and SYN-ACK as one end sent them, beside what the other got.
//!
//! Sent: a client's SYN has what its kernel's settings say, the segment size that it advertised
//! (tcpi_advmss), and its window scale where one was agreed (tcpi_rcv_wscale). A server's SYN-ACK
//! has what its connection has: a server answers an option that it accepts, and has it in force
//! since then (RFC 7323 §2.2 and §3.2, RFC 2018 §2, RFC 3168 §6.1.1).
//! Arrived: the SYN that the server's kernel saved (TCP_SAVED_SYN); of the SYN-ACK what the client
//! has in force, and the segment size that it sends where nothing else made that small. None of it
//! needs a privilege. Left out: options of data segments; a larger size on the SYN-ACK than was
//! sent, which no counter tells.

use super::evidence::{Agreed, Syn};
use crate::record::{
    Direction, Flow, FlowEnd, Handshake, OptionChange, Record, SynOptions, TcpInfo, TcpOption,
};

/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE and TCPI_OPT_ECN of linux/tcp.h.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const ECN: u8 = 8;
/// Bytes of each segment that timestamps take (RFC 7323 appendix A).
const TIMESTAMP_BYTES: u32 = 12;
/// The kernel sends no segment of more than half of the window; no window of so many segments
/// makes one small.
const WINDOW_SEGMENTS: u64 = 4;

/// Options of a segment, each where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SegmentOptions {
    mss: Option<u32>,
    scales: Option<bool>,
    /// Window scale shift, where the segment has the option.
    shift: Option<u32>,
    sack: Option<bool>,
    timestamps: Option<bool>,
    ecn: Option<bool>,
}

/// TCP options that both ends agreed on when the first connection of a direction opened, and
/// changes to them on the way.
pub(super) fn syn_evidence(record: &Record, flow: Option<&Flow>, way: Direction) -> Syn {
    let (sender, receiver) =
        (flow.and_then(|flow| flow.sender.as_ref()), flow.and_then(|flow| flow.receiver.as_ref()));
    let agreed = |end: Option<&FlowEnd>| {
        let options = end?.tcp_info?.options?;
        Some(Agreed {
            timestamps: options & TIMESTAMPS != 0,
            sack: options & SACK != 0,
            window_scale: options & WINDOW_SCALE != 0,
        })
    };
    let (client, server) =
        if way == Direction::Up { (sender, receiver) } else { (receiver, sender) };
    let arrived = flow.and_then(|flow| flow.syn);
    Syn {
        arrived,
        client_sends: way == Direction::Up,
        sender_agreed: agreed(sender),
        receiver_agreed: agreed(receiver),
        changes: changes(record, arrived, client, server),
    }
}

fn changes(
    record: &Record,
    arrived: Option<SynOptions>,
    client: Option<&FlowEnd>,
    server: Option<&FlowEnd>,
) -> Vec<OptionChange> {
    let info = |end: Option<&FlowEnd>| end.and_then(|end| end.tcp_info);
    let mut changes = Vec::new();
    if let Some(arrived) = arrived {
        changes.extend(changed_options(
            Handshake::Syn,
            syn_sent(record, info(client)),
            options_of_syn(arrived),
        ));
    }
    if let Some((client_info, server_info)) = info(client).zip(info(server)) {
        let (sent, got) =
            (syn_ack_sent(server_info), syn_ack_received(record, client, client_info));
        let got = SegmentOptions {
            mss: got.mss.filter(|mss| sent.mss.is_some_and(|offered| *mss < offered)),
            ..got
        };
        changes.extend(changed_options(Handshake::SynAck, sent, got));
    }
    changes
}

/// Options that the client's kernel puts on a SYN.
fn syn_sent(record: &Record, info: Option<TcpInfo>) -> SegmentOptions {
    let end = record.ends.iter().find(|end| end.role == "local");
    let tcp = end.and_then(|end| end.tcp.clone()).unwrap_or_default();
    let on = |setting: Option<u64>| setting.map(|value| value != 0);
    let scales =
        info.and_then(|info| info.options).is_some_and(|options| options & WINDOW_SCALE != 0);
    SegmentOptions {
        mss: info.and_then(advertised),
        scales: on(tcp.window_scaling),
        shift: info.and_then(|info| info.rcv_wscale).filter(|_| scales).map(u32::from),
        sack: on(tcp.sack),
        timestamps: on(tcp.timestamps),
        // A route may ask for ECN where the setting does not: only that it was asked for is known.
        ecn: tcp.ecn.filter(|setting| matches!(setting, 1 | 3)).map(|_| true),
    }
}

/// The segment size on the SYN or SYN-ACK of this end: the kernel takes what timestamps need off
/// its figure once they are agreed, and they are no part of what was sent.
fn advertised(info: TcpInfo) -> Option<u32> {
    let timestamps = info.options? & TIMESTAMPS != 0;
    Some(info.advmss_bytes? + if timestamps { TIMESTAMP_BYTES } else { 0 })
}

fn options_of_syn(arrived: SynOptions) -> SegmentOptions {
    SegmentOptions {
        mss: arrived.mss_bytes.map(u32::from),
        scales: Some(arrived.window_scale.is_some()),
        shift: arrived.window_scale.map(u32::from),
        sack: Some(arrived.sack_permitted),
        timestamps: Some(arrived.timestamps),
        ecn: Some(arrived.ecn),
    }
}

/// Options of the server's SYN-ACK, inferred from those it has in force since.
fn syn_ack_sent(info: TcpInfo) -> SegmentOptions {
    let has = |bit: u8| info.options.map(|options| options & bit != 0);
    SegmentOptions {
        mss: advertised(info),
        scales: has(WINDOW_SCALE),
        shift: info.rcv_wscale.filter(|_| has(WINDOW_SCALE) == Some(true)).map(u32::from),
        sack: has(SACK),
        timestamps: has(TIMESTAMPS),
        ecn: has(ECN),
    }
}

/// Options of the SYN-ACK as the client received it.
fn syn_ack_received(record: &Record, client: Option<&FlowEnd>, info: TcpInfo) -> SegmentOptions {
    let has = |bit: u8| info.options.map(|options| options & bit != 0);
    let own = record.ends.iter().find(|end| end.role == "local").and_then(|end| end.tcp.as_ref());
    SegmentOptions {
        mss: own
            .filter(|tcp| tcp.mtu_probing.is_none_or(|setting| setting == 0))
            .and_then(|_| peer_mss(client?, info)),
        scales: has(WINDOW_SCALE),
        shift: info.snd_wscale.filter(|_| has(WINDOW_SCALE) == Some(true)).map(u32::from),
        sack: has(SACK),
        timestamps: has(TIMESTAMPS),
        ecn: has(ECN),
    }
}

/// The segment size that a peer told, where that is what holds this end's segments: neither its
/// user, nor a small window, nor the MTU that it knows of the path.
fn peer_mss(end: &FlowEnd, info: TcpInfo) -> Option<u32> {
    let timestamps = info.options? & TIMESTAMPS != 0;
    let mss = info.snd_mss_bytes? + if timestamps { TIMESTAMP_BYTES } else { 0 };
    let window = end.window_offered_bytes_max?;
    // 60 bytes of headers are those of IPv6, and the kernel may know of more.
    let by_path = info.pmtu_bytes?.saturating_sub(80);
    let free = end.mss_bytes.asked.is_none() && window >= WINDOW_SEGMENTS * u64::from(mss);
    (free && mss < by_path).then_some(mss)
}

/// Options that certainly arrived otherwise than they were sent.
fn changed_options(
    segment: Handshake,
    sent: SegmentOptions,
    arrived: SegmentOptions,
) -> Vec<OptionChange> {
    let gone = |option: TcpOption, sent: Option<bool>, arrived: Option<bool>, value| {
        (sent == Some(true) && arrived == Some(false)).then_some(OptionChange {
            segment,
            option,
            sent: value,
            arrived: None,
        })
    };
    let changed = |option, sent: Option<u32>, arrived: Option<u32>| {
        let (sent, arrived) = sent.zip(arrived).filter(|(sent, arrived)| sent != arrived)?;
        Some(OptionChange { segment, option, sent: Some(sent), arrived: Some(arrived) })
    };
    let scales = (sent.scales, arrived.scales);
    let found = [
        changed(TcpOption::Mss, sent.mss, arrived.mss),
        gone(TcpOption::WindowScale, scales.0, scales.1, sent.shift),
        changed(TcpOption::WindowScale, sent.shift, arrived.shift),
        gone(TcpOption::Sack, sent.sack, arrived.sack, None),
        gone(TcpOption::Timestamps, sent.timestamps, arrived.timestamps, None),
        gone(TcpOption::Ecn, sent.ecn, arrived.ecn, None),
    ];
    found.into_iter().flatten().collect()
}
