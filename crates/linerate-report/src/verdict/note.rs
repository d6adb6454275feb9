//! Remarks of a verdict in words: notes, harmless figures, what was not measured, the test that
//! decides, the next limit, the criteria of a goal.
//!
//! Left out: when they are made (`core::explain`).

use linerate_core::record::{
    Change, CriterionKind, DecidingTest, FlowSide, Handshake, Harmless, LossShift, NextBound, Note,
    ScaleLoss, SocketNote, SourceNote, Unmeasured,
};

use super::sign::{family_in_words, side_in_words};

/// A note as a sentence.
pub(crate) fn note_sentence(note: &Note) -> String {
    match note {
        Note::Spoilt(caveat) => caveat.detail.clone(),
        Note::OneHostIdle { cpu_most } => one_host_idle(*cpu_most),
        Note::CloseLimits { next } => {
            format!("two limits lie close together: {} is next", next_bound_name(*next))
        }
        Note::WindowScaleLost(place) => format!(
            "both hosts scale windows, and this connection does not: {}",
            place_of_loss(*place)
        ),
        Note::WindowRewritten { advertised_bytes, offered_bytes } => format!(
            "the receiver advertised {advertised_bytes:.0} bytes, and the sender was offered \
             {offered_bytes:.0}"
        ),
        Note::ScalingOff(side) => format!(
            "tcp_window_scaling is 0 at the {}: no window is above 65,535 bytes",
            side_in_words(*side)
        ),
        Note::SlowerEthernet { mbits_per_s } => format!(
            "this is what {mbits_per_s} Mbit/s Ethernet carries: where more was ordered, look at \
             the speed that each port of the path negotiated"
        ),
        Note::SackLost { removed_from } => sack_lost(*removed_from),
        Note::SegmentsMadeSmall { mss_bytes } => format!(
            "segments are of {mss_bytes} bytes though larger packets pass: a device rewrites the \
             MSS of SYN segments, and another forwards so many packets a second"
        ),
        Note::RateRose { change, factor, losses } => rate_rose(change, *factor, *losses),
        Note::RateStayed(change) => rate_stayed(change),
        Note::Socket(note) => of_socket(*note).to_owned(),
        Note::Source(note) => of_source(note),
        Note::OneHost => "both ends run on this host: there is no path".to_owned(),
        Note::PathNotMeasured => "what the path itself carries was not measured".to_owned(),
        Note::UnreadAtReceiver => "the receiver's socket held data that nobody read".to_owned(),
        Note::HeldForTcp => "probes of UDP pass above this rate: it is held for TCP".to_owned(),
        Note::PingsOfEitherWay => {
            "pings do not show which way loses them: it is one way or both".to_owned()
        }
        Note::QueueOfOthers => {
            "the rate falls as the round trip grows, by a queue that others fill: the window is \
             the limit all the while"
                .to_owned()
        }
    }
}

fn one_host_idle(cpu_most: Option<f64>) -> String {
    match cpu_most {
        Some(most) => format!(
            "both ends run on this host, so there is no path, and the CPU of no end that is known \
             is its limit ({:.0} %)",
            most * 100.0
        ),
        None => {
            "both ends run on this host, so there is no path, and the CPU time that they took is \
             not known"
                .to_owned()
        }
    }
}

fn sack_lost(removed_from: Option<Handshake>) -> String {
    let removed = match removed_from {
        Some(Handshake::Syn) => ": it was removed from the SYN between them",
        Some(Handshake::SynAck) => ": it was removed from the SYN-ACK between them",
        None => "",
    };
    format!("both hosts offer SACK, and this connection does not have it{removed}")
}

const fn of_socket(note: SocketNote) -> &'static str {
    match note {
        SocketNote::NotReadHere => "the program on this host does not read what has arrived",
        SocketNote::WindowClosed => {
            "the receiver's window is closed, and this host probes it (persist timer): its program \
             does not read what has arrived"
        }
        SocketNote::MayReadLate => {
            "a program that reads late offers a small window too: ss -tin at the receiver tells \
             (Recv-Q)"
        }
        SocketNote::NothingToSend => {
            "the program had nothing more to send: the network does not limit this connection"
        }
    }
}

/// Connections of a socket list that a note names.
const NAMED_MAX: usize = 5;

/// A note on the file or the output that a result of another program came in.
fn of_source(note: &SourceNote) -> String {
    match note {
        SourceNote::EndedEarly { error } => format!("the test ended early: {error}"),
        SourceNote::DocumentsLeftOut { count, why } => {
            let why = why.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            format!("{count} further document(s) of the file are left out{why}")
        }
        SourceNote::FileGoesOn { fault } => format!("the file does not end there: {fault}"),
        SourceNote::SmallConnections(names) => {
            let listed = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
            let more = match names.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            format!("below 1 % of the bytes, and left out: {listed}{more}")
        }
        SourceNote::RoundedFigures => {
            "the figures of the text are rounded to three digits".to_owned()
        }
        SourceNote::RateWhileInFlight => {
            "the rate is that over the time in which data was in flight: since when the connection \
             is open is not in the output"
                .to_owned()
        }
        SourceNote::AgeNotKnown => {
            "no rate: since when the connection is open is not in the output; twice the same \
             command, a known time apart, shows one"
                .to_owned()
        }
    }
}

const fn place_of_loss(place: ScaleLoss) -> &'static str {
    match place {
        ScaleLoss::RemovedFrom(Handshake::Syn) => "it was removed from the SYN between the hosts",
        ScaleLoss::RemovedFrom(Handshake::SynAck) => {
            "it was removed from the SYN-ACK between the hosts"
        }
        ScaleLoss::BeforeSynArrived => "the SYN arrived without it",
        ScaleLoss::AfterSynArrived => "the SYN arrived with it: it was lost from the SYN-ACK",
        ScaleLoss::NotKnown => "it was lost on the way",
    }
}

/// Meaning of a change with which the rate rose.
fn rate_rose(change: &Change, factor: f64, losses: LossShift) -> String {
    let times =
        if factor >= 9.95 { format!("{factor:.0} times") } else { format!("{factor:.1} times") };
    match (change, losses) {
        (Change::Streams(count), _) => {
            format!("with {count} streams {times} the rate: a limit per flow, not the link")
        }
        (Change::CongestionControl(name), LossShift::Same) => format!(
            "with {name} {times} the rate, and no more was lost: losses that the congestion \
             control answers, and not its own queue"
        ),
        (Change::CongestionControl(name), LossShift::More) => {
            format!("with {name} {times} the rate, and more was lost: it does not answer losses")
        }
        (Change::CongestionControl(name), LossShift::Unclear) => {
            format!("with {name} {times} the rate: losses that the congestion control answers")
        }
        (Change::Pace(_), _) => {
            format!("paced below the bottleneck {times} the rate: bursts overran it")
        }
        (Change::Segments(bytes), _) => {
            format!("with segments of {bytes} bytes {times} the rate: large ones do not pass")
        }
        (Change::Buffers(_), _) => {
            format!("with larger buffers {times} the rate: a buffer held it")
        }
        (Change::OtherPort, _) => format!(
            "at another port of the server {times} the rate: a device on the way holds this port \
             back, and neither the ends nor the link do"
        ),
        (Change::Family(family), _) => format!(
            "over {} {times} the rate: the limit lies on the other family's path, and not at an end",
            family_in_words(*family)
        ),
        (Change::Writes(bytes), _) => format!(
            "with writes of {bytes} bytes {times} the rate: the sender's calls cost what its \
             bytes do not"
        ),
    }
}

/// Meaning of a change with which the rate stayed.
fn rate_stayed(change: &Change) -> String {
    match change {
        Change::Streams(count) => {
            format!("with {count} streams the same rate: the limit is shared by all flows")
        }
        Change::CongestionControl(name) => {
            format!("with {name} the same rate: it is not how losses are answered")
        }
        Change::Pace(_) => {
            "paced below the bottleneck the same rate: it is not the bursts".to_owned()
        }
        Change::Segments(_) => "with smaller segments the same rate".to_owned(),
        Change::Buffers(_) => "with larger buffers the same rate: it is not a buffer".to_owned(),
        Change::OtherPort => {
            "at another port of the server the same rate: no device treats this port apart"
                .to_owned()
        }
        Change::Family(family) => {
            format!("over {} the same rate: no path of one family alone", family_in_words(*family))
        }
        Change::Writes(_) => {
            "with fewer, larger writes the same rate: it is not the number of calls".to_owned()
        }
    }
}

/// A figure that limits nothing.
pub(crate) fn harmless(seen: Harmless) -> String {
    match seen {
        Harmless::OutOfOrder(ratio) => {
            format!("{:.1} % of the segments came out of order, and it cost nothing", ratio * 100.0)
        }
        Harmless::NoRetransmit => "no segment was sent again".to_owned(),
        Harmless::RetransmitsOfFullPath { count, ratio } => format!(
            "{count:.0} segments sent again ({:.2} %): the path was full all the same",
            ratio * 100.0
        ),
        Harmless::FewRetransmits { count, ratio } => {
            format!("{count:.0} segments sent again ({:.2} %): too few to matter", ratio * 100.0)
        }
        Harmless::Jitter(spread_s) => {
            format!("delay varies by {:.1} ms at rest, and it cost nothing", spread_s * 1e3)
        }
        Harmless::WindowUsed(share) => {
            format!("{:.0} % of the window offered was in flight", share * 100.0)
        }
        Harmless::Cpu(share) if share < 0.01 => "less than 1 % of a core".to_owned(),
        Harmless::Cpu(share) => format!("{:.0} % of a core", share * 100.0),
    }
}

/// A quantity that was not measured.
pub(crate) const fn unmeasured(quantity: Unmeasured) -> &'static str {
    match quantity {
        Unmeasured::RoundTripAtRest => "round trip before the load",
        Unmeasured::RoundTrips => "round trips",
        Unmeasured::RoundTripsUnderLoad => "round trips under load",
        Unmeasured::WindowOffered => "window that the receiver offered",
        Unmeasured::WindowOfferedBySs => {
            "window that the receiver offered (ss of iproute2 5.4 and later)"
        }
        Unmeasured::Windows => "windows",
        Unmeasured::SendBufferInUse => "send buffer in use",
        Unmeasured::Cpu(FlowSide::Sender) => "CPU of the sender",
        Unmeasured::Cpu(FlowSide::Receiver) => "CPU of the receiver",
        Unmeasured::BothCpus => "CPU of both hosts",
        Unmeasured::CpuWaits => "CPU waits of both hosts",
        Unmeasured::SegmentsAgain => "segments sent again",
        Unmeasured::LossMechanism => "what lies behind losses",
        Unmeasured::OtherEnd => "the other end",
        Unmeasured::OtherMoments => "any but this moment",
    }
}

/// The test that decides, with the line to type where there is one.
pub(crate) const fn deciding_test(test: DecidingTest) -> &'static str {
    match test {
        DecidingTest::QuietHost => "the same test again on a quiet host",
        DecidingTest::AnotherHost => "the same test from another host",
        DecidingTest::OneWay => {
            "the same test with the other way idle: linerate tcp HOST, without --bidir"
        }
        DecidingTest::ProbeTrains => "trains of UDP probes: linerate test HOST",
        DecidingTest::PacketSizes => {
            "packets of all sizes both ways: linerate test HOST (path MTU)"
        }
        DecidingTest::LosslessRate => "the rate up to which all arrive: linerate test HOST",
        DecidingTest::BothHosts => {
            "linerate tcp HOST: both hosts' CPUs, buffers and queues beside the transfer"
        }
        DecidingTest::ReceiversResult => "the result of the receiving end: how many were lost",
        DecidingTest::SsAtSender => "ss -tin at the sender, while data flows",
        DecidingTest::SsWithMemory => {
            "ss -tinm at the sender, while data flows: skmem has the memory in use (w) and the \
             send buffer (tb)"
        }
        DecidingTest::SsAtBothEnds => "ss -tinm several times while data flows, at both ends",
    }
}

/// A bound that is met next.
pub const fn next_bound_name(bound: NextBound) -> &'static str {
    match bound {
        NextBound::EndLink => "the link of an end",
        NextBound::PathLink => "the narrowest link of the path",
        NextBound::RegulatedRate => "the rate that a policer or shaper lets through",
        NextBound::PacketRate => "the packets per second of a device",
        NextBound::ReceiveWindow => "the receive window",
        NextBound::SendBuffer => "the send buffer",
        NextBound::Loss => "loss",
        NextBound::SendingHost => "the sending host",
        NextBound::ReceivingHost => "the receiving host",
        NextBound::StartUp => "the start",
        NextBound::Pace => "the pace asked for",
        NextBound::WayBack => "the way back",
        NextBound::ModelWindow => "the window",
        NextBound::ModelTraffic => "other traffic on the narrowest link",
        NextBound::ModelBuffer => "the narrowest link and its buffer",
    }
}

/// A criterion of a goal.
pub(crate) const fn criterion(kind: CriterionKind) -> &'static str {
    match kind {
        CriterionKind::PathPayload => "payload that the path carries",
        CriterionKind::TransferRate => "rate of the transfer",
        CriterionKind::PacketsBetweenLosses => "packets between two losses",
        CriterionKind::WindowOfEnds => "window that the ends can open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_its_figures_and_the_place_where_something_was_lost() {
        let rose = |change, factor, losses| Note::RateRose { change, factor, losses };
        let bbr = Change::CongestionControl("bbr".to_owned());
        for (value, words) in [
            (
                Note::OneHostIdle { cpu_most: Some(0.09) },
                "both ends run on this host, so there is no path, and the CPU of no end that is known \
                 is its limit (9 %)",
            ),
            (
                Note::CloseLimits { next: NextBound::SendBuffer },
                "two limits lie close together: the send buffer is next",
            ),
            (
                Note::WindowScaleLost(ScaleLoss::RemovedFrom(Handshake::SynAck)),
                "both hosts scale windows, and this connection does not: it was removed from the \
                 SYN-ACK between the hosts",
            ),
            (
                rose(bbr, 9.96, LossShift::Same),
                "with bbr 10 times the rate, and no more was lost: losses that the congestion control \
                 answers, and not its own queue",
            ),
            (
                rose(Change::Streams(4), 3.96, LossShift::Unclear),
                "with 4 streams 4.0 times the rate: a limit per flow, not the link",
            ),
            (
                Note::Source(SourceNote::SmallConnections(vec!["a to b".to_owned(); 7])),
                "below 1 % of the bytes, and left out: a to b; a to b; a to b; a to b; a to b; and 2 \
                 more",
            ),
        ] {
            assert_eq!(note_sentence(&value), words);
        }
    }

    #[test]
    fn a_figure_that_limits_nothing_says_so() {
        assert_eq!(harmless(Harmless::Cpu(0.009)), "less than 1 % of a core");
        assert_eq!(harmless(Harmless::Cpu(0.02)), "2 % of a core");
        assert_eq!(
            harmless(Harmless::FewRetransmits { count: 3.0, ratio: 5e-5 }),
            "3 segments sent again (0.01 %): too few to matter"
        );
    }
}
