//! UDP echo of linerate: a probe that `linerate serve` sends back. Layout in `spec/udp-echo.md`.
//!
//! ```text
//!  0  "LRE"           magic
//!  3  'q' or 'r'      question or response: a response is never answered, so two responders
//!                     cannot keep each other busy (the echo loop of RFC 862)
//!  4  run cookie      32 bits, random for each run and size
//!  8  sequence        64 bits
//! 16  T1              the prober's monotonic clock in ns, when the probe has room for it
//! 24  filler; 16 octets of 0 ask for the responder's times:
//! 24  T2             arrival of the question, by the responder's CLOCK_REALTIME in ns
//! 32  T3             departure of the answer, by the same clock
//! 40  1 asks for the traffic class as well, where the times are asked for; else filler
//! 41  traffic class requested for the answer
//! 42  1 where the responder fills in octet 43
//! 43  traffic class with which the question arrived
//! 44  filler
//! ```

const MAGIC: [u8; 3] = *b"LRE";
const QUESTION: u8 = b'q';
const RESPONSE: u8 = b'r';

/// Octets of the smallest probe: magic, cookie and sequence.
pub const UDP_ECHO_BYTES_MIN: usize = 16;

/// Octets of the responder's times T2 and T3.
const TIMES: std::ops::Range<usize> = 24..40;

/// Octets of the smallest probe with room for the responder's times.
pub const UDP_ECHO_TIMES_BYTES: usize = TIMES.end;

/// Octets of the traffic classes.
const CLASSES: std::ops::Range<usize> = 40..44;

/// Octets of the smallest probe with room for times and traffic classes.
pub const UDP_ECHO_CLASSES_BYTES: usize = CLASSES.end;

/// Octets of the UDP header (RFC 768).
pub const UDP_HEADER_BYTES: usize = 8;

/// The UDP probe of one run, with one size and one cookie.
#[derive(Clone, Debug)]
pub struct UdpProbe {
    datagram: Vec<u8>,
    cookie: u32,
}

impl UdpProbe {
    /// A probe of `payload_bytes` octets, or `None` below [`UDP_ECHO_BYTES_MIN`].
    pub fn new(payload_bytes: usize, cookie: u32) -> Option<Self> {
        if payload_bytes < UDP_ECHO_BYTES_MIN {
            return None;
        }
        let mut datagram: Vec<u8> = (0..=255u8).cycle().take(payload_bytes).collect();
        datagram[..3].copy_from_slice(&MAGIC);
        datagram[3] = QUESTION;
        datagram[4..8].copy_from_slice(&cookie.to_be_bytes());
        Some(Self { datagram, cookie })
    }

    /// The same probe with a request for the responder's times, where it has room for them.
    #[must_use]
    pub fn asking_times(mut self) -> Self {
        if let Some(room) = self.datagram.get_mut(TIMES) {
            room.fill(0);
        }
        self
    }

    /// The same probe with a request for the traffic class with which it arrives, and for the
    /// traffic class `of_answer` in the answer, where it has room for them.
    #[must_use]
    pub fn asking_class(mut self, of_answer: u8) -> Self {
        if let Some(room) = self.datagram.get_mut(CLASSES) {
            room.copy_from_slice(&[1, of_answer, 0, 0]);
        }
        self
    }

    /// The datagram for probe `sequence`, sent at `t1_ns`.
    #[inline]
    pub fn request(&mut self, sequence: u64, t1_ns: u64) -> &[u8] {
        self.datagram[8..16].copy_from_slice(&sequence.to_be_bytes());
        if let Some(room) = self.datagram.get_mut(16..24) {
            room.copy_from_slice(&t1_ns.to_be_bytes());
        }
        &self.datagram
    }

    /// Sequence of the probe that `datagram` answers; `None` when it answers no probe of this run.
    #[inline]
    pub fn answered(&self, datagram: &[u8]) -> Option<u64> {
        let answer = read_answer(datagram)?;
        let ours = answer.cookie == self.cookie && datagram.len() == self.datagram.len();
        ours.then_some(answer.sequence)
    }
}

/// Run and probe that a responder's datagram answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpAnswer {
    /// Random number of the run.
    pub cookie: u32,
    /// Sequence number of the probe.
    pub sequence: u64,
}

/// Parses an answer; `None` for any other datagram.
#[inline]
pub fn read_answer(datagram: &[u8]) -> Option<UdpAnswer> {
    let (head, _) = datagram.split_first_chunk::<UDP_ECHO_BYTES_MIN>()?;
    let (words, _) = head.as_chunks::<4>();
    let (long_words, _) = head.as_chunks::<8>();
    (head[..3] == MAGIC && head[3] == RESPONSE).then(|| UdpAnswer {
        cookie: u32::from_be_bytes(words[1]),
        sequence: u64::from_be_bytes(long_words[1]),
    })
}

/// Arrival and departure of a question at the responder, by its CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerTimes {
    /// T2: arrival of the question.
    pub received_ns: u64,
    /// T3: time just before the answer was sent.
    pub sent_ns: u64,
}

impl PeerTimes {
    /// The times in an answer to a question that asked for them; `None` where the responder does
    /// not support them and returned zeros.
    pub fn from_answer(datagram: &[u8]) -> Option<Self> {
        let (words, _) = datagram.get(TIMES)?.as_chunks::<8>();
        let [received_ns, sent_ns] = [0, 1].map(|place| u64::from_be_bytes(words[place]));
        (received_ns != 0 && sent_ns >= received_ns).then_some(Self { received_ns, sent_ns })
    }

    /// True if a question asks for the responder's times: their octets are 0.
    #[inline]
    pub fn are_requested(datagram: &[u8]) -> bool {
        datagram.get(TIMES).is_some_and(|room| room.iter().all(|octet| *octet == 0))
    }

    /// Writes the times into an answer whose question asked for them.
    pub fn write(self, datagram: &mut [u8]) {
        if let Some(room) = datagram.get_mut(TIMES) {
            room[..8].copy_from_slice(&self.received_ns.to_be_bytes());
            room[8..].copy_from_slice(&self.sent_ns.to_be_bytes());
        }
    }
}

/// Traffic class that a question requests for its answer.
#[inline]
pub fn class_asked(datagram: &[u8]) -> Option<u8> {
    let classes = datagram.get(CLASSES).filter(|classes| classes[0] == 1);
    classes.filter(|_| PeerTimes::are_requested(datagram)).map(|classes| classes[1])
}

/// Writes the traffic class with which a question arrived into its answer.
pub fn write_class(datagram: &mut [u8], of_question: u8) {
    if let Some(room) = datagram.get_mut(CLASSES) {
        room[2..].copy_from_slice(&[1, of_question]);
    }
}

/// Traffic class with which a question arrived at the responder, from its answer; `None` where the
/// responder left it out.
pub fn class_of_question(datagram: &[u8]) -> Option<u8> {
    let classes = datagram.get(CLASSES)?;
    (classes[0] == 1 && classes[2] == 1).then(|| classes[3])
}

/// Turns a question into its answer in place; the length stays, so nothing is amplified.
/// False when the datagram is no question and must not be answered.
#[inline]
pub fn answer_in_place(datagram: &mut [u8]) -> bool {
    if datagram.len() < UDP_ECHO_BYTES_MIN || datagram[..3] != MAGIC || datagram[3] != QUESTION {
        return false;
    }
    datagram[3] = RESPONSE;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_layout_of_the_specification() {
        let mut probe = UdpProbe::new(25, 0x0A0B_0C0D).expect("room enough");
        let datagram = probe.request(0x0102, 3);
        let expected = [
            b'L', b'R', b'E', b'q', 0x0A, 0x0B, 0x0C, 0x0D, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0,
            0, 0, 3, 24,
        ];
        assert_eq!(datagram, expected);
    }

    #[test]
    fn an_answer_differs_in_one_octet_and_is_never_answered() {
        for size in [16, 20, 24, 56, 1500] {
            let mut probe = UdpProbe::new(size, 7).expect("room enough");
            let question = probe.request(70_000, 3).to_vec();
            assert_eq!(probe.answered(&question), None, "a question is no answer");
            let mut datagram = question.clone();
            assert!(answer_in_place(&mut datagram));
            let changed = question.iter().zip(&datagram).filter(|(a, b)| a != b).count();
            assert_eq!((datagram.len(), changed), (size, 1));
            assert_eq!(probe.answered(&datagram), Some(70_000));
            assert!(!answer_in_place(&mut datagram), "no loop between responders");
        }
    }

    #[test]
    fn a_traffic_class_comes_only_where_it_was_asked_for() {
        let times = UdpProbe::new(44, 7).expect("room enough").asking_times();
        let plain = times.clone().request(1, 2).to_vec();
        assert_eq!((class_asked(&plain), class_of_question(&plain)), (None, None), "filler");
        let mut probe = times.asking_class(0xb9);
        let mut datagram = probe.request(1, 2).to_vec();
        assert_eq!(datagram[40..], [1, 0xb9, 0, 0]);
        assert_eq!(class_asked(&datagram), Some(0xb9));
        assert!(answer_in_place(&mut datagram));
        assert_eq!(class_of_question(&datagram), None, "a responder that does not know it");
        write_class(&mut datagram, 3);
        assert_eq!(
            (datagram[40..].to_vec(), class_of_question(&datagram)),
            (vec![1, 0xb9, 1, 3], Some(3))
        );
        PeerTimes { received_ns: 1, sent_ns: 2 }.write(&mut datagram);
        assert_eq!(class_asked(&datagram), None, "an answer asks for nothing");
        let mut short = UdpProbe::new(43, 7).expect("room enough").asking_times().asking_class(1);
        assert_eq!(class_asked(short.request(1, 2)), None);
    }

    #[test]
    fn times_come_only_where_they_were_asked_for() {
        let mut plain = UdpProbe::new(40, 7).expect("room enough");
        assert!(!PeerTimes::are_requested(plain.request(1, 2)), "filler asks for nothing");
        let mut short = UdpProbe::new(39, 7).expect("room enough").asking_times();
        assert!(!PeerTimes::are_requested(short.request(1, 2)));
        let mut probe = UdpProbe::new(40, 7).expect("room enough").asking_times();
        let mut datagram = probe.request(1, 2).to_vec();
        assert!(PeerTimes::are_requested(&datagram));
        assert!(answer_in_place(&mut datagram));
        assert_eq!(PeerTimes::from_answer(&datagram), None, "a responder that does not know them");
        let times = PeerTimes { received_ns: 0x0102_0304_0506_0708, sent_ns: u64::MAX };
        times.write(&mut datagram);
        assert_eq!(
            datagram[24..],
            [1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 255, 255, 255, 255, 255]
        );
        assert_eq!(
            (PeerTimes::from_answer(&datagram), probe.answered(&datagram)),
            (Some(times), Some(1))
        );
        for len in 0..40 {
            assert_eq!(PeerTimes::from_answer(&datagram[..len]), None, "length {len}");
        }
    }

    #[test]
    fn foreign_cut_and_flipped_datagrams_are_left_alone() {
        assert!(UdpProbe::new(15, 0).is_none());
        let mut probe = UdpProbe::new(16, 7).expect("room enough");
        let question = probe.request(1, 0).to_vec();
        for len in 0..question.len() {
            assert!(!answer_in_place(&mut question[..len].to_vec()), "length {len}");
        }
        for bit in 0..32 {
            let mut datagram = question.clone();
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(!answer_in_place(&mut datagram), "bit {bit}");
        }
        let mut answer = question;
        assert!(answer_in_place(&mut answer));
        for bit in 0..64 {
            let mut datagram = answer.clone();
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(probe.answered(&datagram), None, "bit {bit}");
        }
    }
}
