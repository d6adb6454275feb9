//! The one table of causes: what can limit a result, and where its rule, remedy, planted case,
//! innocent twin and manual row are. A tidy test holds that each row is whole.
//!
//! Left out: signs and thresholds (`explain`), sentences (`linerate-report`).

use serde::{Deserialize, Serialize};

/// A cell of the table of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseCell {
    /// Name of a function, a recipe, a test or a row.
    Named(&'static str),
    /// Another row's or a caveat's: a function of `explain` or a caveat that tells it instead
    /// (`caveat::fragmented`), and the reason.
    ByAnother(&'static str, &'static str),
    /// No function, and the reason.
    Lacking(&'static str),
}

/// A row of the table of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The cause of the row.
    pub cause: Cause,
    /// Name of the cause in a sentence: `the receive window`.
    pub name: &'static str,
    /// Function that names it: module and name in `explain`.
    pub rule: CauseCell,
    /// Function that gives the remedies: module and name in `explain`.
    pub remedy: CauseCell,
    /// Recipe of `studies/bank`, or test, that plants it.
    pub planted: CauseCell,
    /// Recipe of `studies/bank/innocent.toml`, or test, that shows the sign without the cause.
    pub innocent: CauseCell,
    /// First cell of its row of signs in `docs/diagnosis.md`.
    pub heading: CauseCell,
}

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,
       $rule:expr, $remedy:expr, $planted:expr, $innocent:expr, $heading:expr;)*) => {
        /// Limit of a result: of the rate of a transfer, or of its delay under load.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum Cause {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Cause {
            /// Name of the cause in a sentence.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        /// Every cause, in the order of the enum.
        pub const CAUSES: &[CauseRow] = &[
            $(CauseRow {
                cause: Cause::$variant,
                name: $name,
                rule: $rule,
                remedy: $remedy,
                planted: $planted,
                innocent: $innocent,
                heading: $heading,
            },)*
        ];
    };
}

use CauseCell::{ByAnother, Lacking, Named};

const SLOW_OR_FELL_BACK: CauseCell = ByAnother(
    "path::fall_back",
    "no figure tells a link that fell back from a slow one: the link is named, and a note beside it \
     says which Ethernet carries that rate",
);
const FRAGMENTS: CauseCell =
    ByAnother("caveat::fragmented", "the test itself tells of fragments; no rule weighs them");
const LONG_BY_WINDOW: CauseCell = ByAnother(
    "ends::receive_window",
    "a long round trip limits by a window, a buffer or the start, which are named",
);
const LONG_REMEDY: CauseCell = ByAnother("remedy::receive_window", "a larger window fills it");
const LONG_PLANTED: CauseCell =
    Lacking("its planted cases are those of the window, the buffer and the start");
const LINK_PLANTED: CauseCell = Lacking("its planted cases are those of the link: slow-link");
const FRAGMENTS_PLANTED: CauseCell =
    Lacking("no case of the bank has fragments: a test of the caveat has");
const NAMED_BY_ANOTHER: CauseCell =
    Lacking("no row of its own: the rule that names it instead has one");

causes! {
    /// The receiver's window: its buffer, its limits, or a window scale that was lost.
    ReceiveWindow = "the receive window",
        Named("ends::receive_window"), Named("remedy::receive_window"),
        Named("receive-buffer"), Named("long-path"), Named("receive window");
    /// The sender's buffer.
    SendBuffer = "the send buffer",
        Named("ends::send_buffer"), Named("remedy::send_buffer"),
        Named("send-buffer"), Named("long-path"), Named("send buffer");
    /// The application writes less than the path would carry.
    SendingApplication = "the sending application",
        Named("ends::idle_sender"), Named("ends::own_pace"),
        Named("paced-application"), Named("small-writes"), Named("sending application");
    /// The sender's CPU: quota, other work, small writes.
    SendingHost = "the sending host",
        Named("ends::busy_host"), Named("remedy::for_host"),
        Named("sender-quota"), Named("small-writes"), Named("sending, receiving host");
    /// The application reads late.
    ReceivingApplication = "the receiving application",
        Named("ends::whose_window"), Named("remedy::reader"),
        Named("slow-reader"), Named("small-reads"), Named("receiving application, receiving host");
    /// The receiver's CPU: quota, other work, small reads.
    ReceivingHost = "the receiving host",
        Named("ends::busy_host"), Named("remedy::for_host"),
        Named("receiver-quota"), Named("small-reads"), Named("sending, receiving host");
    /// The rate of a link: the result is all that the path can carry.
    Link = "the bottleneck link",
        Named("trains::full_link"), Lacking("the path gives all that it can"),
        Named("slow-link"),
        Named("a_queue_at_less_than_the_path_s_rate_or_behind_a_full_window_is_no_full_link"),
        Named("bottleneck link");
    /// A link slower than its ends allow: a negotiation that fell back, a slow segment.
    LinkFallback = "a link that fell back to a lower rate",
        SLOW_OR_FELL_BACK, SLOW_OR_FELL_BACK, LINK_PLANTED, Named("fast-ethernet"),
        NAMED_BY_ANOTHER;
    /// A duplex mismatch: loss where both directions are active.
    DuplexMismatch = "a duplex mismatch",
        Named("unlike::duplex_mismatch"), Named("unlike::duplex_mismatch"),
        Named("duplex-mismatch"), Named("loss-the-other-way"), Named("duplex mismatch");
    /// A shaper: a queue in front of a rate below the link's.
    Shaper = "a shaper",
        Named("trains::shaper"), Named("remedy::own_shaper"),
        Named("shaper"), Named("ample-access-rate"), Named("shaper");
    /// A policer: loss without a queue above a rate below the link's.
    Policer = "a policer",
        Named("trains::policer"), Named("remedy::policer"),
        Named("policer"), Named("udp-policed"), Named("policer");
    /// Packets per second that a device forwards.
    PacketRate = "the packets per second of a device",
        Named("trains::packet_rate"), Named("trains::counted"),
        Named("packet-rate"), Named("ample-packet-rate"), Named("packet rate");
    /// Loss that does not depend on the load.
    RandomLoss = "random loss",
        Named("trains::random"), Named("remedy::random_loss"),
        Named("random-loss"), Named("loss-under-bbr"), Named("random loss");
    /// Other traffic on the bottleneck.
    OtherTraffic = "other traffic",
        Named("trains::shared_load"), Named("trains::others"),
        Named("cross-traffic"), Named("light-cross-traffic"), Named("other traffic");
    /// A buffer of the path too small for the bursts of the sender.
    SmallBuffer = "a small buffer",
        Named("trains::small_buffer"), Named("remedy::bursts"),
        Named("few-packets-of-buffer"), Named("short-path"), Named("small buffer");
    /// A standing queue: the rate is reached, the delay under load is not.
    StandingQueue = "a standing queue",
        Named("latency::latency"), Named("remedy::standing_queue"),
        Named("deep-buffer"), Named("codel"), Named("standing queue (delay)");
    /// The start: the transfer ends before the window has grown.
    StartUp = "the start",
        Named("ends::start_up"), Named("remedy::start_up"),
        Named("small-object"), Named("long-path"), Named("start");
    /// Reordering that is taken for loss.
    Reordering = "reordering",
        Named("path::reordering"), Named("remedy::reordering"),
        Named("reordering-without-sack"), Named("mild-reordering"), Named("reordering");
    /// One of several parallel paths or trunk members.
    UnequalPaths = "unequal parallel paths",
        Named("trains::unequal_paths"), Named("members::bad_member"),
        Named("trunk"), Named("parallel-streams"), Named("unequal paths");
    /// The way back of the acknowledgments.
    AckPath = "the way back of acknowledgments",
        Named("path::ack_path"), Named("remedy::ack_path"),
        Named("thin-way-back"), Named("slow-way-back"), Named("way back");
    /// Packets above some size vanish without a message.
    MtuBlackHole = "an MTU black hole",
        Named("trains::black_hole"), Named("remedy::black_hole"),
        Named("black-hole"), Named("back-black-hole"), Named("MTU black hole");
    /// Fragments: the path's MTU is below the packets of its ends.
    TunnelMtu = "the MTU of a tunnel",
        FRAGMENTS, FRAGMENTS, FRAGMENTS_PLANTED, Named("mtu-1400"), NAMED_BY_ANOTHER;
    /// Segmentation offload or a driver.
    Offload = "an offload or driver fault",
        Named("path::starved"), Named("changes::line_of"),
        Lacking("no emulator breaks an offload: it is one of a list"), Named("offload-off"),
        Named("segments of 1200 bytes");
    /// The delay itself: nothing else is at fault.
    LongDelay = "the round trip itself",
        LONG_BY_WINDOW, LONG_REMEDY, LONG_PLANTED, Named("long-path"), NAMED_BY_ANOTHER;
    /// Interruptions of the path and the time-outs that follow them.
    Outages = "outages",
        Named("path::outages"), Named("remedy::outages"), Named("outages"),
        Named("probes_that_are_refused_while_data_flows_are_no_outage"), Named("outages");
    /// The congestion window, which grows no more without a loss: the congestion control holds it,
    /// or a setting of the route does.
    CongestionControl = "the congestion control",
        Named("ends::clamped_window"), Named("ends::clamped_window"),
        Named("a_full_window_that_does_not_grow_without_a_loss_is_clamped"), Named("plain"),
        Named("held window");
    /// A middlebox that changes options or splits the connection.
    Middlebox = "a middlebox",
        Named("ends::changed_window"), Named("remedy::receive_window"),
        Named("window-scale-stripped"), Named("timestamps-stripped"), Named("middlebox");
    /// One address family has a worse path than the other.
    AddressFamily = "the address family",
        Named("interventions::cause_shown"), Named("changes::line_of"),
        Named("another_family_parts_the_ends_from_the_path"),
        Named("equal_runs_of_an_innocent_path_are_hardly_ever_a_cause"),
        Named("the other address family");
    /// The tester itself: its CPU, its clock, its emulator.
    Tester = "the tester itself",
        Named("gate::failure_verdict"),
        Lacking("another host has to measure, as the deciding test says"),
        Named("over_loopback_the_tester_is_the_limit_unless_no_known_end_computes"),
        Named("over_loopback_a_pace_that_was_kept_is_the_limit"), Named("tester itself");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_one_row_and_a_name_of_its_own() {
        for (row, place) in CAUSES.iter().zip(0_usize..) {
            assert_eq!(row.cause as usize, place, "{:?}", row.cause);
            assert_eq!(row.cause.name(), row.name);
            let same = CAUSES.iter().filter(|other| other.name == row.name).count();
            assert_eq!(same, 1, "{}", row.name);
        }
    }
}
