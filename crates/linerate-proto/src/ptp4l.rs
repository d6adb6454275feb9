//! The requests for ptp4l's state, and its answers: management messages of PTP (IEEE
//! 1588-2008 §15), as ptp4l 3.1.1 has them on its local sockets. Integers are big-endian.
//!
//! | from | | bytes |
//! |---|---|---|
//! | 0 | message type 0xd in the low half, version 2 in the low half | 2 |
//! | 2 | length of all | 2 |
//! | 30 | sequence number, of the request and of its answer | 2 |
//! | 34 | port that is asked: all ones for any | 10 |
//! | 46 | action in the low half: 0 get, 2 response | 1 |
//! | 48 | 1: management; 2 + length of the data; identifier | 6 |
//! | 54 | data: below | |
//!
//! | identifier | data: from its start, bytes in brackets |
//! |---|---|
//! | 0x2001 current data set | 0 steps from the grandmaster (2), 2 offset from the master (8), |
//! | | 10 mean path delay (8), both in 2^-16 ns |
//! | 0x2002 parent data set | of the grandmaster: 19 class (1), 20 accuracy (1), 24 identity (8) |
//! | 0x2003 time properties | 0 UTC offset (2), 2 flags (1), 3 source of time (1) |
//! | 0xc004 port properties | of linuxptp alone: 0 port (10), 10 state (1), 11 timestamps (1), |
//! | | 12 name of the interface (1 + length) |
//!
//! The other data sets repeat these or hold the configuration. No request changes ptp4l's state.

/// Bytes of a request.
pub const QUESTION_BYTES: usize = 54;
/// Bytes of the longest answer: one whose interface has a name of 255 bytes.
pub const ANSWER_BYTES_MAX: usize = 512;
/// Answers of one round that are read: more than a clock has ports.
pub const ANSWERS_MAX: usize = 64;

const VERSION: u8 = 2;
const MANAGEMENT: u8 = 0xd;
const RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
/// The controlField of management messages, and their logMessageInterval 0x7f: not periodic.
const CONTROL: [u8; 2] = [4, 0x7f];

/// Data set that a management request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptp4lDataSet {
    /// Steps to the grandmaster, and the offset from the master.
    Current,
    /// Identity, class and accuracy of the grandmaster.
    Parent,
    /// Time scale, and whether it is traceable to a primary reference.
    TimeProperties,
    /// State and timestamps of each port: one answer a port.
    Ports,
}

impl Ptp4lDataSet {
    /// All four data sets.
    pub const ALL: [Self; 4] = [Self::Current, Self::Parent, Self::TimeProperties, Self::Ports];

    const fn identifier(self) -> u16 {
        match self {
            Self::Current => 0x2001,
            Self::Parent => 0x2002,
            Self::TimeProperties => 0x2003,
            Self::Ports => 0xc004,
        }
    }

    /// Builds the request for this data set with this sequence number.
    pub fn request_bytes(self, number: u16) -> [u8; QUESTION_BYTES] {
        let mut bytes = [0; QUESTION_BYTES];
        let mut put = |at: usize, these: &[u8]| bytes[at..at + these.len()].copy_from_slice(these);
        put(0, &[MANAGEMENT, VERSION, 0, QUESTION_BYTES as u8]);
        put(30, &number.to_be_bytes());
        put(32, &CONTROL);
        put(34, &[0xff; 10]);
        put(48, &TLV_MANAGEMENT.to_be_bytes());
        put(50, &2u16.to_be_bytes());
        put(52, &self.identifier().to_be_bytes());
        bytes
    }
}

/// State of ptp4l, from its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ptp4l {
    /// Offset from the master, and the path to it.
    pub current: Option<Current>,
    /// The clock at the root of the PTP domain.
    pub grandmaster: Option<Grandmaster>,
    /// Time scale and traceability of the grandmaster's time.
    pub time: Option<TimeProperties>,
    /// The port that follows a master, or else the first that answered.
    pub port: Option<Port>,
}

/// The current data set (§15.5.3.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Current {
    /// Clocks on the path to the grandmaster (stepsRemoved): 0 is the grandmaster itself, 1 is a
    /// clock next to it.
    pub steps: u16,
    /// Offset of this clock from the master's: this clock's time minus the master's.
    pub offset_ns: f64,
    /// Mean of the path delays to the master and from it.
    pub path_delay_ns: f64,
}

/// The grandmaster, of the parent data set (§15.5.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grandmaster {
    /// Clock identity (EUI-64).
    pub identity: [u8; 8],
    /// The clockClass: 6 is locked to a primary reference, 7 in holdover, 248 the default.
    pub class: u8,
    /// The clockAccuracy: code of the clock's largest error (table 6).
    pub accuracy: u8,
}

/// Time properties (§15.5.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeProperties {
    /// The time is traceable to a primary reference.
    pub traceable: bool,
    /// The time scale is TAI, not UTC.
    pub tai: bool,
    /// The offset between TAI and UTC is known.
    pub utc_offset_valid: bool,
}

/// One PTP port of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// State of the PTP port.
    pub state: PortState,
    /// Source of the packets' timestamps.
    pub stamping: Stamping,
}

/// State of a port (§8.2.5.3.1), as far as it bears on the clock's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// The port distributes time to other clocks.
    Master,
    /// The port has a master, but the clock is not yet synchronised to it.
    Uncalibrated,
    /// The clock is synchronised to the port's master.
    Slave,
    /// Any other state of the standard.
    Other,
}

/// Source of a port's packet timestamps; ptp4l synchronises the clock that this source reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamping {
    /// The kernel: ptp4l synchronises the system clock.
    Software,
    /// The NIC: ptp4l synchronises the NIC's clock, and another program, such as phc2sys, the
    /// system clock.
    Hardware,
}

impl Ptp4l {
    /// Adds the answer to the question of that number; any other bytes change nothing and return
    /// `false`.
    pub fn add_answer(&mut self, bytes: &[u8], question: Ptp4lDataSet, number: u16) -> bool {
        self.parse_answer(bytes, question, number).is_some()
    }

    fn parse_answer(&mut self, bytes: &[u8], question: Ptp4lDataSet, number: u16) -> Option<()> {
        let data = data_set(bytes, question, number)?;
        match question {
            Ptp4lDataSet::Current => self.current = Some(Current::parse(data)?),
            Ptp4lDataSet::Parent => self.grandmaster = Some(Grandmaster::parse(data)?),
            Ptp4lDataSet::TimeProperties => self.time = Some(TimeProperties::parse(data)?),
            Ptp4lDataSet::Ports => {
                let port = Port::parse(data)?;
                if self.port.is_none() || port.state == PortState::Slave {
                    self.port = Some(port);
                }
            }
        }
        Some(())
    }

    /// True once every data set has been answered.
    pub const fn is_complete(&self) -> bool {
        let has_clocks = self.current.is_some() && self.grandmaster.is_some();
        has_clocks && self.time.is_some() && self.port.is_some()
    }

    /// True if ptp4l synchronises this host's system clock to a master.
    pub fn keeps_civil_time(&self) -> bool {
        let port = Port { state: PortState::Slave, stamping: Stamping::Software };
        self.port == Some(port)
    }

    /// Upper bound of the system clock's error, rounded up: offset + path delay (the most that
    /// asymmetry of the two directions can add) + the grandmaster's accuracy.
    ///
    /// `None` where ptp4l does not synchronise the system clock, where the time is not traceable
    /// to a primary reference, where the grandmaster does not state its accuracy, and behind
    /// boundary clocks, whose error ptp4l does not know.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and 64 bits of 2^-16 ns are below 2^48 ns"
    )]
    pub fn error_ns(&self) -> Option<u64> {
        let (current, time) = (self.current?, self.time?);
        let utc = !time.tai || time.utc_offset_valid;
        let known = self.keeps_civil_time() && time.traceable && utc && current.steps == 1;
        let measured = current.offset_ns.abs() + current.path_delay_ns.abs();
        let accuracy_ns = self.grandmaster?.accuracy_ns().filter(|_| known)?;
        Some((measured.ceil() as u64).saturating_add(accuracy_ns))
    }
}

/// The data set in an answer; `None` unless it answers that question with that number.
fn data_set(bytes: &[u8], question: Ptp4lDataSet, number: u16) -> Option<&[u8]> {
    let length = usize::from(u16_at(bytes, 2)?);
    let bytes = bytes.get(..length)?;
    let kind = bytes.first()? & 0xf == MANAGEMENT && bytes.get(1)? & 0xf == VERSION;
    let ours = u16_at(bytes, 30)? == number && bytes.get(46)? & 0xf == RESPONSE;
    let value = bytes.get(52..)?.get(..usize::from(u16_at(bytes, 50)?))?;
    let asked = u16_at(bytes, 48)? == TLV_MANAGEMENT && u16_at(value, 0)? == question.identifier();
    (kind && ours && asked).then(|| &value[2..])
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Current {
    fn parse(data: &[u8]) -> Option<Self> {
        let scaled = |at: usize| {
            let bits = i64::from_be_bytes(*data.get(at..)?.first_chunk()?);
            Some(bits as f64 / 65_536.0)
        };
        Some(Self { steps: u16_at(data, 0)?, offset_ns: scaled(2)?, path_delay_ns: scaled(10)? })
    }
}

impl Grandmaster {
    fn parse(data: &[u8]) -> Option<Self> {
        let identity = *data.get(24..)?.first_chunk()?;
        Some(Self { identity, class: data[19], accuracy: data[20] })
    }

    /// Largest error of the clock (table 6); `None` where it is unknown or above 10 s.
    pub const fn accuracy_ns(&self) -> Option<u64> {
        Some(match self.accuracy {
            0x20 => 25,
            0x21 => 100,
            0x22 => 250,
            0x23 => 1_000,
            0x24 => 2_500,
            0x25 => 10_000,
            0x26 => 25_000,
            0x27 => 100_000,
            0x28 => 250_000,
            0x29 => 1_000_000,
            0x2a => 2_500_000,
            0x2b => 10_000_000,
            0x2c => 25_000_000,
            0x2d => 100_000_000,
            0x2e => 250_000_000,
            0x2f => 1_000_000_000,
            0x30 => 10_000_000_000,
            _ => return None,
        })
    }
}

/// The clock identity as linuxptp prints it: `daf88f.fffe.d49f20`.
impl std::fmt::Display for Grandmaster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, byte) in self.identity.iter().enumerate() {
            write!(f, "{}{byte:02x}", if place == 3 || place == 5 { "." } else { "" })?;
        }
        Ok(())
    }
}

impl TimeProperties {
    fn parse(data: &[u8]) -> Option<Self> {
        let flags = *data.get(2)?;
        let has = |bit: u8| flags >> bit & 1 == 1;
        Some(Self { traceable: has(4), tai: has(3), utc_offset_valid: has(2) })
    }
}

impl Port {
    fn parse(data: &[u8]) -> Option<Self> {
        let state = match data.get(10)? {
            6 => PortState::Master,
            8 => PortState::Uncalibrated,
            9 => PortState::Slave,
            _ => PortState::Other,
        };
        // linuxptp's enum: 0 software, 1 hardware, 2 hardware of an older interface, 3 and 4
        // hardware that writes the time into the packet.
        let stamping = match data.get(11)? {
            0 => Stamping::Software,
            1..=4 => Stamping::Hardware,
            _ => return None,
        };
        Some(Self { state, stamping })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of a real ptp4l (testdata/ptp4l).
    fn recorded(recording: &str) -> Ptp4l {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptp4l");
        let mut all = Ptp4l::default();
        for (question, name) in
            Ptp4lDataSet::ALL.into_iter().zip(["current", "parent", "time", "ports"])
        {
            let path = folder.join(format!("{recording}-{name}.bin"));
            let bytes = std::fs::read(path).expect("recorded");
            let number = u16_at(&bytes, 30).expect("whole");
            assert!(!all.add_answer(&bytes, question, number ^ 1), "of another question");
            assert!(all.add_answer(&bytes, question, number), "{recording} {name}");
        }
        all
    }

    /// pmc printed of it: stepsRemoved 1, offsetFromMaster 288.0, meanPathDelay 2186.0 a second
    /// after the recording (−277 and 2331); ClockClass 6, ClockAccuracy 0x23,
    /// daf88f.fffe.d49f20; currentUtcOffsetValid 1, ptpTimescale 0, timeTraceable 1; SLAVE,
    /// SOFTWARE.
    #[test]
    fn a_slave_of_a_traceable_master_says_what_pmc_printed() {
        let found = recorded("slave");
        let expected = Current { steps: 1, offset_ns: -277.0, path_delay_ns: 2_331.0 };
        assert_eq!(found.current, Some(expected));
        let grandmaster = found.grandmaster.expect("it has one");
        assert_eq!((grandmaster.class, grandmaster.accuracy), (6, 0x23));
        assert_eq!(grandmaster.to_string(), "daf88f.fffe.d49f20");
        let time = TimeProperties { traceable: true, tai: false, utc_offset_valid: true };
        assert_eq!(found.time, Some(time));
        let port = Port { state: PortState::Slave, stamping: Stamping::Software };
        assert_eq!(found.port, Some(port));
        // 277 + 2331 + 1000 ns.
        assert_eq!(found.error_ns(), Some(3_608));
    }

    #[test]
    fn a_free_running_master_proves_nothing() {
        let found = recorded("free");
        let expected = Current { steps: 1, offset_ns: -758.0, path_delay_ns: 1_940.0 };
        assert_eq!(found.current, Some(expected));
        assert_eq!(found.grandmaster.map(|clock| (clock.class, clock.accuracy)), Some((248, 0xfe)));
        assert!(found.time.is_some_and(|time| !time.traceable));
        assert_eq!(found.port.map(|port| port.state), Some(PortState::Uncalibrated));
        assert_eq!(found.error_ns(), None);
        let followed = Ptp4l { port: recorded("slave").port, ..found };
        assert!(followed.keeps_civil_time(), "even when its clock follows it");
        assert_eq!(followed.error_ns(), None);
        let master = recorded("master");
        assert_eq!(master.port.map(|port| port.state), Some(PortState::Master));
        assert!(!master.keeps_civil_time() && master.error_ns().is_none());
    }

    #[test]
    fn each_thing_that_makes_the_error_unknown_does() {
        let good = recorded("slave");
        let current = good.current.expect("there");
        let time = good.time.expect("there");
        let port = good.port.expect("there");
        let grandmaster = good.grandmaster.expect("there");
        let cases = [
            ("card", Ptp4l { port: Some(Port { stamping: Stamping::Hardware, ..port }), ..good }),
            ("other port", Ptp4l { port: Some(Port { state: PortState::Other, ..port }), ..good }),
            ("far", Ptp4l { current: Some(Current { steps: 2, ..current }), ..good }),
            ("own", Ptp4l { time: Some(TimeProperties { traceable: false, ..time }), ..good }),
            (
                "TAI less what",
                Ptp4l {
                    time: Some(TimeProperties { tai: true, utc_offset_valid: false, ..time }),
                    ..good
                },
            ),
            (
                "how right",
                Ptp4l { grandmaster: Some(Grandmaster { accuracy: 0xfe, ..grandmaster }), ..good },
            ),
            ("nothing", Ptp4l::default()),
        ];
        for (why, changed) in cases {
            assert_eq!(changed.error_ns(), None, "{why}");
        }
        let tai = Some(TimeProperties { tai: true, ..time });
        assert_eq!(Ptp4l { time: tai, ..good }.error_ns(), good.error_ns(), "with its UTC offset");
    }

    /// What `pmc -z -u -b 0` 3.1.1 sends for `GET CURRENT_DATA_SET`, but for the identity of the
    /// port that asks, its process's number, at 28, and the number.
    #[test]
    fn a_question_has_the_bytes_of_pmc() {
        let bytes = Ptp4lDataSet::Current.request_bytes(0x0102);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (zeros, all) = ("0".repeat(52), "f".repeat(20));
        assert_eq!(hex, format!("0d020036{zeros}0102047f{all}00000000000100022001"));
    }

    #[test]
    fn the_port_that_follows_is_the_one_that_counts() {
        let mut all = recorded("master");
        let mut slave = recorded("slave");
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptp4l");
        for (into, file) in [(&mut all, "slave"), (&mut slave, "master")] {
            let bytes = std::fs::read(folder.join(format!("{file}-ports.bin"))).expect("recorded");
            assert!(into.add_answer(
                &bytes,
                Ptp4lDataSet::Ports,
                u16_at(&bytes, 30).expect("whole")
            ));
            assert_eq!(into.port.map(|port| port.state), Some(PortState::Slave));
        }
    }
}
