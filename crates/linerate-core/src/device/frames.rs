//! Test frames: their signature, what differs from frame to frame, and the counts of both ends.
//!
//! Lengths here are those of the bytes that a program hands over, without FCS.

use super::send_timing::SendTiming;
use crate::stats::LogHistogram;

/// Length of the signature, the last bytes of each test frame before the FCS.
///
/// It is at the end so that a device that adds or removes a tag, or another header, leaves it where
/// it is looked for.
pub const SIGNATURE_BYTES: usize = 16;

/// Signature that marks a frame as one of a trial. On the wire, in network byte order: trial (32
/// bits), stream (8), sequence (56), stamp (32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Chosen anew for each trial, so that frames left over from another are recognized.
    pub trial: u32,
    /// Number of the generator that sent it.
    pub stream: u8,
    /// Number of the frame in the stream, from 0; 56 bits.
    pub sequence: u64,
    /// The low 32 bits of the monotonic clock in ns just before it was sent; differences are good
    /// up to 4.29 s.
    pub stamp: u32,
}

impl Signature {
    /// The bytes at the end of the frame.
    pub fn to_bytes(self) -> [u8; SIGNATURE_BYTES] {
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes[..4].copy_from_slice(&self.trial.to_be_bytes());
        let numbered = u64::from(self.stream) << 56 | self.sequence & (u64::MAX >> 8);
        bytes[4..12].copy_from_slice(&numbered.to_be_bytes());
        bytes[12..].copy_from_slice(&self.stamp.to_be_bytes());
        bytes
    }

    /// Reads the last bytes of `frame`; `None` when it is shorter. The caller compares the trial.
    pub fn at_end_of(frame: &[u8]) -> Option<Self> {
        let bytes: &[u8; SIGNATURE_BYTES] = frame.last_chunk()?;
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let numbered = u64::from(word(4)) << 32 | u64::from(word(8));
        Some(Self {
            trial: word(0),
            stream: bytes[4],
            sequence: numbered & (u64::MAX >> 8),
            stamp: word(12),
        })
    }
}

/// A frame to send repeatedly, with the fields that differ from one to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTemplate {
    /// Bytes from destination address to the end of the signature's place, without FCS. Checksums
    /// in it are right for all varying fields at their `base` and a signature of zeros.
    pub bytes: Vec<u8>,
    /// Fields that take another value with each flow; at most [`FrameTemplate::VARYING_MAX`].
    pub varying: Vec<Varying>,
    /// Different flows that the fields together go through; 1 for one.
    pub flows: u32,
    /// Flows in a pseudo-random order (RFC 4814) instead of one after another.
    pub shuffled: bool,
    /// Place of the network header's checksum, when a varying field is under it.
    pub header_sum: Option<HeaderSum>,
    /// Place of a 16-bit word of the payload, at an even distance from the start of the bytes that
    /// the transport checksum covers, that takes up all differences so that the checksum in `bytes`
    /// stays right (RFC 1624).
    pub balance_at: Option<u16>,
}

impl FrameTemplate {
    /// Most varying fields of a template.
    pub const VARYING_MAX: usize = 4;

    /// Offset of the signature in the frame.
    pub const fn signature_at(&self) -> usize {
        self.bytes.len().saturating_sub(SIGNATURE_BYTES)
    }

    /// The flow of the frame with number `sequence`.
    ///
    /// Shuffled, it is the high half of a multiplicative hash (Knuth's 64-bit constant of the
    /// golden ratio) scaled to the flows: cheap enough for every frame, even over many frames.
    #[expect(clippy::cast_possible_truncation, reason = "both are below `flows`, which is a u32")]
    pub const fn flow_of(&self, sequence: u64) -> u32 {
        let flows = if self.flows == 0 { 1 } else { self.flows as u64 };
        if self.shuffled {
            let hash = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            ((hash * flows) >> 32) as u32
        } else {
            (sequence % flows) as u32
        }
    }
}

/// A field that differs from flow to flow: base + (flow / divisor) mod count, in network byte
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varying {
    /// Offset of the field in the frame.
    pub at: u16,
    /// Width in bytes, 2 or 4; even offsets only within the bytes that a checksum covers.
    pub width: u8,
    /// Value of flow 0.
    pub base: u32,
    /// Flows that share a value before it moves on; 1 or more.
    pub divisor: u32,
    /// Different values; 1 or more.
    pub count: u32,
    /// The field is under the checksum of the network header.
    pub in_header_sum: bool,
    /// The field is under the checksum of the transport (the pseudo-header included).
    pub in_transport_sum: bool,
}

impl Varying {
    /// The value in frames of `flow`.
    pub const fn value_in_flow(&self, flow: u32) -> u32 {
        let divisor = if self.divisor == 0 { 1 } else { self.divisor };
        let count = if self.count == 0 { 1 } else { self.count };
        self.base.wrapping_add((flow / divisor) % count)
    }
}

/// Place of a network header's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderSum {
    /// Offset of the checksum in the frame.
    pub at: u16,
}

/// Times at which a generator sends its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePace {
    /// Frames as fast as the generator can send.
    Flood,
    /// Frame n is due n / `frames_per_sec` after the start, to the nanosecond.
    Rate {
        /// Rate in frames per second, above 0.
        frames_per_sec: u64,
    },
}

/// Schedule of a generator that is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenLate {
    /// Each frame keeps its own due time: what is late leaves at once, and the mean rate is kept.
    #[default]
    KeepSchedule,
    /// The schedule moves by the delay: no two frames are closer than asked for.
    KeepGap,
    /// A delay that is no pause ([`super::WatchRule`]) is made up for, beyond it the schedule
    /// moves: small delays do not add up, and no pause makes a bunch that is longer than it.
    Steady,
}

impl WhenLate {
    /// The delay from which on the schedule moves, ns, where `pause_ns` is a pause.
    pub const fn moves_from_ns(self, pause_ns: u64) -> u64 {
        match self {
            Self::KeepSchedule => u64::MAX,
            Self::KeepGap => 0,
            Self::Steady => pause_ns,
        }
    }
}

/// Frames that one generator sends in one trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLoad {
    /// Number of frames to send.
    pub frames: u64,
    /// Times at which frames are due.
    pub pace: FramePace,
    /// Schedule of the frames after a late one.
    pub when_late: WhenLate,
    /// Frames that leave back to back at each due time (RFC 2544 §21); 1 for an even gap. Due
    /// times are `burst` times as far apart, so that the mean rate stays.
    pub burst: u32,
    /// Order of the templates: frame n is of entry n mod length. One entry of 0 for a single
    /// template.
    pub mix: Vec<u8>,
}

/// Counts and times of the frames that one generator sent.
#[derive(Clone, Debug, Default)]
pub struct SendCounts {
    /// Frames handed to the interface and taken by it.
    pub frames: u64,
    /// Bytes of the frames, without FCS.
    pub bytes: u64,
    /// Frames that the interface or its driver refused.
    pub refused: u64,
    /// Monotonic clock at the first frame.
    pub first_ns: u64,
    /// Monotonic clock at the last frame.
    pub last_ns: u64,
    /// Frames that left more than one gap (or 10 us, if that is more) after they were due.
    pub late: u64,
    /// The worst of them.
    pub worst_late_ns: u64,
    /// Send timing: pauses of the sender, and frames so close together that even a device which
    /// carries the load may have lost them.
    pub timing: SendTiming,
}

impl SendCounts {
    /// Frames per second from the first to the last: n frames span n - 1 gaps.
    pub fn frames_per_sec(&self) -> Option<f64> {
        let span = self.last_ns.checked_sub(self.first_ns).filter(|span| *span > 0)?;
        (self.frames > 1).then(|| (self.frames - 1) as f64 * 1e9 / span as f64)
    }
}

/// Histogram of times of very many frames, with the exact extremes.
#[derive(Clone, Debug, Default)]
pub struct TimeHistogram {
    /// Distribution of the times, in the resolution of the counter (1.6 % or better).
    pub bins: LogHistogram,
    /// Smallest time, exact, ns.
    pub min_ns: u64,
    /// Largest time, exact, ns.
    pub max_ns: u64,
    /// Sum of all times, exact, ns.
    pub sum_ns: u64,
}

/// Counts and times of one stream at its counter.
#[derive(Clone, Debug, Default)]
pub struct ReceiveCounts {
    /// Different frames of the stream: copies are not in it where they are known.
    pub frames: u64,
    /// Bytes of the frames, without FCS.
    pub bytes: u64,
    /// Copies of frames that had arrived before; `None` when numbers were too many to remember.
    pub duplicates: Option<u64>,
    /// Frames with a number below the largest so far (RFC 4737 §3.3), copies left out.
    pub reordered: u64,
    /// Frames that are shorter or longer than any that was sent.
    pub wrong_length: u64,
    /// Jumps of the number by more than one at arrival: the runs of frames that were missing then.
    pub loss_runs: u64,
    /// The longest of them.
    pub longest_loss_run: u64,
    /// Monotonic clock at the first frame.
    pub first_ns: u64,
    /// Monotonic clock at the last frame.
    pub last_ns: u64,
    /// Arrival less stamp, of every frame.
    pub latency: TimeHistogram,
    /// Arrival less the arrival before.
    pub gap: TimeHistogram,
}

impl ReceiveCounts {
    /// Frames per second from the first to the last arrival.
    pub fn frames_per_sec(&self) -> Option<f64> {
        let span = self.last_ns.checked_sub(self.first_ns).filter(|span| *span > 0)?;
        (self.frames > 1).then(|| (self.frames - 1) as f64 * 1e9 / span as f64)
    }
}

/// Frames at a counter that are not of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignFrames {
    /// ARP requests and replies (EtherType 0x0806).
    pub arp: u64,
    /// Neighbour and router discovery (ICMPv6 types 133 to 137) and multicast listener reports.
    pub neighbour_discovery: u64,
    /// Spanning tree and other frames to 01:80:c2:00:00:0x, LLDP and slow protocols among them.
    pub link_control: u64,
    /// MAC control: PAUSE (IEEE 802.3 annex 31B) and priority flow control (EtherType 0x8808).
    pub pause: u64,
    /// Test frames of another trial, or of this program elsewhere.
    pub other_trial: u64,
    /// Test frames of this trial that arrive at the port that sent them: a loop.
    pub own: u64,
    /// Frames of any other kind.
    pub other: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_as_it_was_written() {
        let signature = Signature {
            trial: 0x0102_0304,
            stream: 5,
            sequence: 0x06_0708_090a_0b0c,
            stamp: 0x0d0e_0f10,
        };
        let bytes = signature.to_bytes();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let frame: Vec<u8> = [0; 44].into_iter().chain(bytes).collect();
        assert_eq!(Signature::at_end_of(&frame), Some(signature));
        assert_eq!(Signature::at_end_of(&bytes[1..]), None);
    }

    #[test]
    fn fields_of_a_template_go_through_all_flows() {
        // 6 flows: the last byte of an address goes through 3 values, a port through 2.
        let field = |divisor, count| Varying {
            at: 0,
            width: 2,
            base: 10,
            divisor,
            count,
            in_header_sum: false,
            in_transport_sum: false,
        };
        let values: Vec<_> = (0..6)
            .map(|flow| (field(1, 3).value_in_flow(flow), field(3, 2).value_in_flow(flow)))
            .collect();
        assert_eq!(values, [(10, 10), (11, 10), (12, 10), (10, 11), (11, 11), (12, 11)]);
    }

    #[test]
    fn shuffled_flows_come_up_equally_often() {
        let template = FrameTemplate {
            bytes: vec![0; 60],
            varying: Vec::new(),
            flows: 7,
            shuffled: true,
            header_sum: None,
            balance_at: None,
        };
        let mut counts = [0_u32; 7];
        for sequence in 0..70_000 {
            counts[template.flow_of(sequence) as usize] += 1;
        }
        // 10,000 each; the golden ratio spreads them to within a few.
        assert!(counts.iter().all(|count| (9_990..=10_010).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_rate_is_of_gaps_and_not_of_frames() {
        let sent =
            SendCounts { frames: 11, first_ns: 5, last_ns: 10_000_005, ..SendCounts::default() };
        assert_eq!(sent.frames_per_sec(), Some(1000.0));
        assert_eq!(SendCounts { frames: 1, ..sent }.frames_per_sec(), None);
    }
}
