//! Figures that show a cause, in words: the name of each kind, its value and its threshold.
//!
//! Left out: which figures a cause has (`core::explain`).

use linerate_core::record::{Against, Change, FlowSide, IpFamily, Sign, SignKind};

use crate::number;

/// A figure with its unit and its threshold.
pub(crate) fn figure_with_threshold(sign: &Sign) -> String {
    let shown = |value: f64| value_in_words(value, sign.kind.unit().json_symbol());
    let threshold = sign.threshold.map_or_else(String::new, |threshold| {
        let word = match threshold.against {
            Against::AtLeast => "at least",
            Against::AtMost => "at most",
        };
        format!(" ({word} {})", shown(threshold.value))
    });
    format!("{} {}{threshold}", name(&sign.kind), shown(sign.value))
}

/// A value with its unit, by the unit's symbol in JSON.
pub(crate) fn value_in_words(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => number::measured_rate(value),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of bytes"
        )]
        "bytes" => number::buffer(value.max(0.0) as u64),
        "ns" => format!("{} ms", number::ms_of_clock(value, 1)),
        "1" => number::trimmed(&number::significant(value, 3)).to_owned(),
        unit => format!("{} {unit}", number::trimmed(&number::significant(value, 3))),
    }
}

/// An end of a direction.
pub(crate) const fn side_in_words(side: FlowSide) -> &'static str {
    match side {
        FlowSide::Sender => "sender",
        FlowSide::Receiver => "receiver",
    }
}

pub(crate) const fn family_in_words(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

/// The figure that a change gives.
fn rate_with(change: &Change) -> String {
    match change {
        Change::Streams(count) => format!("rate with {count} streams over that with one"),
        Change::CongestionControl(name) => format!("rate with {name} over that without"),
        Change::Pace(pace) => format!("rate paced at {pace} over that without"),
        Change::Segments(bytes) => format!("rate with segments of {bytes} bytes over that"),
        Change::Buffers(bytes) => format!("rate with buffers of {bytes} bytes over that"),
        Change::OtherPort => "rate at another port of the server over that".to_owned(),
        Change::Family(family) => format!("rate over {} over that", family_in_words(*family)),
        Change::Writes(bytes) => format!("rate with writes of {bytes} bytes over that"),
    }
}

macro_rules! names {
    ($($kind:ident = $name:literal;)*) => {
        /// Name of a figure.
        pub(crate) fn name(kind: &SignKind) -> String {
            let of = |interface: &Option<String>| {
                interface.clone().unwrap_or_else(|| "interface".to_owned())
            };
            let fixed = match kind {
                $(SignKind::$kind => $name,)*
                SignKind::InterfaceCarries { interface, side } => {
                    let side = side_in_words(*side);
                    return format!("what {} of the {side} carries", of(interface));
                }
                SignKind::DisciplinePasses { interface, side } => {
                    let (of, side) = (of(interface), side_in_words(*side));
                    return format!("what a queueing discipline on {of} of the {side} lets through");
                }
                SignKind::CpuUsed(side) => return format!("CPU of the {}", side_in_words(*side)),
                SignKind::ThreadComputed(side) => {
                    return format!("time the {}'s thread computed", side_in_words(*side));
                }
                SignKind::ThreadWaited(side) => {
                    let side = side_in_words(*side);
                    return format!("time the {side}'s thread waited for a core");
                }
                SignKind::RateWithChange(change) => return rate_with(change),
            };
            fixed.to_owned()
        }
    };
}

names! {
    RateOverThat = "rate over that";
    RateOverAllowed = "rate over what that allows";
    RateOverPace = "rate over that pace";
    RateOverDelivery = "rate over the highest rate of delivery";
    RateOverLink = "rate over what the link carries";
    RateOverRandomLoss = "rate over what random loss would leave";
    RateSpread = "spread of the rate over its mean";
    PaceAsked = "pace that was asked for";
    ReadPaceAsked = "pace of reading that was asked for";
    PaceAllowed = "pace that the program allows (SO_MAX_PACING_RATE)";
    EthernetCarries = "what Ethernet of that speed carries";
    EthernetCarriesDatagrams = "what Ethernet of that speed carries of these datagrams";
    PayloadArrived = "payload that arrived";
    StillIntervals = "intervals in which nothing moved";
    RoundTripsTaken = "round trips that the transfer took";
    Inflation = "round trip under load over that at rest";
    InflationOverLeast = "round trip under load over the least";
    RoundTripLeast = "round trip at rest, the least";
    RoundTripVaries = "longest over shortest round trip";
    DelayAddedBack = "delay added on the way back";
    DelayAddedForward = "delay added on the way of the data";
    DelayAlwaysAdded = "delay that the queue always adds";
    WindowOffered = "window the receiver offered";
    WindowOfferedNow = "window offered";
    WindowAllows = "the window allows";
    FlightOverThatWindow = "in flight over that window";
    FlightOverWindow = "in flight over the window offered";
    FlightOverCwnd = "in flight over the congestion window";
    FlightOverIt = "in flight over it";
    FlightOverBuffer = "in flight over that buffer";
    WindowVaries = "largest over smallest window";
    IntervalsAtWindow = "intervals whose rate times round trip is that";
    CwndVaries = "largest over smallest congestion window";
    Cwnd = "congestion window";
    CwndAtFirst = "congestion window at first";
    CwndAtLast = "congestion window at last";
    CwndGrowth = "growth of the congestion window";
    RoundsWithoutGrowth = "round trips in which it did not grow";
    SendBufferGranted = "send buffer that the kernel granted";
    SendBufferAllows = "the send buffer allows";
    BufferMemoryUsed = "memory of the buffer in use";
    SendMemoryUsed = "memory of the send buffer in use";
    SenderSlept = "time the sender slept";
    SenderBlocked = "time it was blocked in write()";
    BlockedInWrite = "time blocked in write()";
    ComputedOrWaited = "time its thread computed or waited for a CPU";
    Throttled = "time a CPU quota stopped it";
    SenderWaitedForWindow = "time the sender waited for the receiver's window";
    SenderWaitedForBuffer = "time the sender waited for its buffer";
    BusyEnds = "ends that were busy";
    Unread = "received and not read";
    UnreadOverRoom = "that over the room for it";
    Unsent = "written and not sent";
    SegmentSize = "segment";
    SendQueue = "send queue";
    TimeWithData = "time with something to send, of its life";
    BusyForWindow = "busy time that it waited for the receiver's window";
    BusyForBuffer = "busy time that it waited for its send buffer";
    SegmentsAgain = "segments sent again";
    SegmentsAgainCount = "segments sent again";
    RetransmitsNeedless = "retransmissions not needed";
    RetransmitTimeouts = "retransmission time-outs";
    Timeouts = "time-outs";
    SegmentSizeUsed = "segment size in use";
    MtuProbing = "tcp_mtu_probing";
    DatagramsLost = "datagrams lost";
    DatagramRate = "rate sent";
    ReceivedOverThat = "rate received over that";
    LossyFlows = "flows that lose packets";
    LossyShareLeast = "least share lost of those";
    LosslessFlows = "flows that lose hardly any";
    LossyOverLossless = "rate of the former over the latter";
    ProbesLostMeanwhile = "small probes lost meanwhile";
    ProbeGaps = "stretches without an answer to a probe";
    PingGaps = "stretches without an answer to pings";
    LongestGap = "longest of them";
    GapShare = "of the time";
    PingsLostAtRest = "pings at rest without an answer";
    TrainsLeaveBottleneck = "rate at which trains leave the bottleneck";
    TrainsLeaveSender = "rate at which trains leave the sender";
    ShortTrainRate = "rate of a short train";
    RatePassing = "rate that passes for long";
    RateOfMeter = "rate that probes passed above, without a queue";
    Bucket = "its bucket";
    PacketsLeave = "packets that leave the bottleneck, short or long";
    PacketsForwarded = "packets that a device forwards";
    PacketsAtOnce = "packets that it lets pass at once";
    LargestPassing = "largest packet that passes";
    FlowPackets = "packets of the flow";
    FullSegmentPackets = "packets of a full segment";
    OneFlowOverThat = "rate of one flow over that";
    SeveralFlowsOverThat = "rate of several flows together over that";
    OfferedBelow = "what was offered below that";
    PassedOfIt = "what passed of it";
    DelayOfThose = "delay of those";
    MorePassedOverThat = "what passed of more over that";
    LoadPassed = "load of probes that passed";
    LoadBelow = "load below that";
    DelayOfMost = "delay of all but one in twenty of it";
    WayBackGap = "time between packets of the way back";
    ProbesLostAtAnyLoad = "probes lost at any load";
    LostInARow = "packets lost in a row";
    ProbesLostOfThose = "probes lost of those";
    ProbesLost = "probes lost";
    ProbesLate = "probes that came late";
    PacketsOvertaking = "packets that overtook one";
    ProbesLostBothWays = "probes lost with the other way busy";
    ProbesLostOneWay = "probes lost one way at a time";
    QueueRoom = "room of the queue";
    RoomOverBdp = "that over the bandwidth-delay product";
    EqualRunsApart = "equal runs here, one over another";
    StatedLinkCarries = "what the stated link carries";
}

#[cfg(test)]
mod tests {
    use linerate_core::units::BitRate;

    use super::*;

    #[test]
    fn a_figure_has_its_unit_and_the_threshold_that_it_was_held_against() {
        let carries = SignKind::InterfaceCarries {
            interface: Some("eth0".to_owned()),
            side: FlowSide::Sender,
        };
        let paced = SignKind::RateWithChange(Change::Pace(BitRate::from_bits_per_sec(90_000_000)));
        for (figure, words) in [
            (
                Sign::at_least(SignKind::FlightOverThatWindow, 0.9987, 0.85),
                "in flight over that window 0.999 (at least 0.85)",
            ),
            (
                Sign::figure(SignKind::PacketsForwarded, 2000.0),
                "packets that a device forwards 2000 packets/s",
            ),
            (
                Sign::at_most(SignKind::DelayAddedForward, 2e6, 10e6),
                "delay added on the way of the data 2.0 ms (at most 10.0 ms)",
            ),
            (Sign::figure(carries, 94.1e6), "what eth0 of the sender carries 94.10 Mbit/s"),
            (
                Sign::figure(
                    SignKind::DisciplinePasses { interface: None, side: FlowSide::Receiver },
                    1e7,
                ),
                "what a queueing discipline on interface of the receiver lets through 10.00 Mbit/s",
            ),
            (
                Sign::figure(SignKind::ThreadWaited(FlowSide::Receiver), 0.31),
                "time the receiver's thread waited for a core 0.31",
            ),
            (
                Sign::at_least(paced, 3.0, 1.5),
                "rate paced at 90 Mbit/s over that without 3 (at least 1.5)",
            ),
        ] {
            assert_eq!(figure_with_threshold(&figure), words);
        }
    }
}
