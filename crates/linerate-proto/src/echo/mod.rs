//! Round-trip probes: their payload, their sequence numbers, and the fate of each.
//!
//! No sockets here: `linerate-engine` sends and receives.

mod icmp_probe;
mod marks;
mod sequence;
mod syn_probe;
mod tracker;
mod udp;

pub use icmp_probe::IcmpProbe;
pub use marks::{MARKS_BYTES, Marks};
pub use sequence::extend;
pub use syn_probe::{SegmentAddresses, SynProbe};
pub use tracker::{Counts, EchoAnswerKind, EchoTrackerLimits, Tracker};
pub use udp::{
    PeerTimes, UDP_ECHO_BYTES_MIN, UDP_ECHO_CLASSES_BYTES, UDP_ECHO_TIMES_BYTES, UDP_HEADER_BYTES,
    UdpAnswer, UdpProbe, answer_in_place, class_asked, class_of_question, read_answer, write_class,
};
