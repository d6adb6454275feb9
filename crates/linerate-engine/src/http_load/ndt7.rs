//! One test of ndt7 (ndt7-protocol.md 0.11 of m-lab/ndt-server) or of throughput1 (m-lab/msak) over
//! a WebSocket whose handshake is done: messages of load one way, measurements the other.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::Direction;
use linerate_core::time::MonoTime;
use linerate_core::tree;
use linerate_proto::http::{
    AppInfo, ByteCounters, ConnectionFacts, ConnectionInfo, FRAME_HEAD_BYTES_MAX, FrameHead,
    LayerCounters, Measurement, NDT7_MESSAGE_BYTES, NDT7_MESSAGE_BYTES_MAX, NDT7_PROTOCOL, Opcode,
    THROUGHPUT1_MESSAGE_BYTES, THROUGHPUT1_PROTOCOL, Throughput1, WireMeasurement, message_head,
    next_message_bytes,
};
use linerate_sys::clock::{monotonic, record_id, sleep};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, tcp_info};

use super::transfer::{HttpTransfer, Track};

/// A sender goes on for this long.
const SEND: Duration = Duration::from_secs(10);
/// Either end may cut the test then.
const LONGEST: Duration = Duration::from_secs(13);
/// Time between two measurements.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// A client has this long to answer the end.
const LEAVE: Duration = Duration::from_secs(2);
/// An upload without load for this long, before the first and after it, is no test any more and
/// gives its place back: else sockets that nobody uses would hold it.
const BEGIN_WITHIN: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(5);
/// Pause between two looks at a frame that is not whole.
const LOOK: Duration = Duration::from_millis(1);
/// Payload of a control frame at most (RFC 6455 §5.5).
const CONTROL_BYTES_MAX: usize = 125;
/// "Normal closure" (RFC 6455 §7.4.1), and "policy violation".
const NORMAL: u16 = 1000;
const WRONG: u16 = 1008;

/// Places of what was sent and of what was taken.
const SENT: usize = 0;
const TAKEN: usize = 1;

/// Which of the two tests it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Ndt7,
    Throughput1(Throughput1),
}

impl Script {
    pub(super) const fn protocol(self) -> &'static str {
        match self {
            Self::Ndt7 => NDT7_PROTOCOL,
            Self::Throughput1(_) => THROUGHPUT1_PROTOCOL,
        }
    }

    /// Time of a sender, and after which the test is cut.
    pub(super) const fn time_limits(self) -> (Duration, Duration) {
        match self {
            Self::Ndt7 => (SEND, LONGEST),
            Self::Throughput1(asked) => {
                let time = Duration::from_millis(asked.duration_ms);
                (time, time)
            }
        }
    }

    const fn first_message_bytes(self) -> u64 {
        match self {
            Self::Ndt7 => NDT7_MESSAGE_BYTES.0,
            Self::Throughput1(_) => THROUGHPUT1_MESSAGE_BYTES,
        }
    }

    const fn bytes_max(self) -> u64 {
        match self {
            Self::Throughput1(Throughput1 { bytes: Some(bytes), .. }) => bytes,
            _ => u64::MAX,
        }
    }

    /// The text beside the code of a normal end.
    const fn farewell(self) -> &'static [u8] {
        match self {
            Self::Ndt7 => b"",
            Self::Throughput1(_) => b"Done sending",
        }
    }
}

/// The next part of the client's stream of frames.
enum Ndt7Incoming {
    /// A part of a message of load.
    Load,
    /// The close frame of the client.
    End,
    /// A frame that is neither load nor close.
    Other,
    Nothing,
}

/// A test that runs.
#[derive(Debug)]
pub(super) struct Test<'a> {
    transfer: HttpTransfer<'a>,
    script: Script,
    direction: Direction,
    told: MonoTime,
    /// Measurements, and what frames add to all messages: sent and taken.
    texts: [u64; 2],
    frames: [u64; 2],
    has_said_who: bool,
    /// Bytes that are to come of the client's frame, and whether they count.
    left: u64,
    counts: bool,
    /// The end was said: nothing may follow it (RFC 6455 §5.5.1).
    closed: bool,
    ends: [String; 3],
}

impl<'a> Test<'a> {
    pub(super) fn new(
        transfer: HttpTransfer<'a>,
        script: Script,
        direction: Direction,
        peer: SocketAddr,
    ) -> Self {
        let server =
            transfer.stream.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let ends = [peer.to_string(), server, record_id().to_string()];
        let (told, left, counts, closed) = (monotonic(), 0, false, false);
        let (texts, frames, has_said_who) = ([0; 2], [0; 2], false);
        Self {
            transfer,
            script,
            direction,
            told,
            texts,
            frames,
            has_said_who,
            left,
            counts,
            closed,
            ends,
        }
    }

    /// Runs the test to its end; what it moved until the client had it, and whether something else
    /// than the client's leave ended it.
    pub(super) fn run(mut self) -> (Track, io::Result<()>) {
        let ended = match self.direction {
            Direction::Down => self.run_download(),
            Direction::Up => self.run_upload(),
        };
        if self.direction == Direction::Down {
            self.await_delivery();
        }
        let track = self.transfer.finish_track();
        let end = match ended {
            Ok(true) => Ok(()),
            Ok(false) => self.end_test(),
            Err(error) => Err(error),
        };
        (track, end)
    }

    /// Waits until the client has what was sent, and reads what it says meanwhile.
    fn await_delivery(&mut self) {
        let stream = self.transfer.stream;
        let mut gone = false;
        // Frames without end do not hold the place.
        let until = monotonic() + LEAVE;
        let waits = || readable(&stream, Duration::ZERO).unwrap_or(false) && monotonic() < until;
        while !gone && self.left == 0 && waits() {
            gone = !matches!(
                self.next(Duration::ZERO),
                Ok(Ndt7Incoming::Other | Ndt7Incoming::Nothing)
            );
        }
        let stopped = || self.transfer.is_stopped();
        self.transfer.await_delivery(|| gone || stopped());
    }

    /// Says the end, and waits for the client's.
    fn end_test(&mut self) -> io::Result<()> {
        self.send_measurement()?;
        self.send_close(NORMAL)?;
        let until = monotonic() + LEAVE;
        while monotonic() < until && !matches!(self.next(LEAVE)?, Ndt7Incoming::End) {}
        Ok(())
    }

    /// Runs the download; true where the client ended it.
    fn run_download(&mut self) -> io::Result<bool> {
        let (mut size, (time, _)) = (self.script.first_message_bytes(), self.script.time_limits());
        while self.transfer.elapsed() < time && !self.transfer.is_over() {
            size = size.min(self.script.bytes_max().saturating_sub(self.application().bytes_sent));
            if size == 0 {
                return Ok(false);
            }
            let head = message_head(Opcode::Binary, size);
            self.transfer.send_aside(&head)?;
            self.frames[SENT] += head.len() as u64;
            if !self.transfer.send_message(usize::try_from(size).unwrap_or(0))? {
                // A message that the budget cut has no end to come: nothing may follow it.
                return Ok(true);
            }
            size = next_message_bytes(size, self.transfer.sent);
            self.tell_in_time()?;
            match self.next(Duration::ZERO)? {
                Ndt7Incoming::End => return Ok(true),
                Ndt7Incoming::Load => {
                    self.send_close(WRONG)?;
                    return Err(io::Error::other("load from the client of a download"));
                }
                Ndt7Incoming::Other | Ndt7Incoming::Nothing => {}
            }
        }
        Ok(false)
    }

    fn run_upload(&mut self) -> io::Result<bool> {
        let mut patience_ends = monotonic() + BEGIN_WITHIN;
        while !self.transfer.is_over() && self.network().bytes_received < self.script.bytes_max() {
            self.tell_in_time()?;
            match self.next(TOLD_EVERY / 5)? {
                Ndt7Incoming::End => return Ok(true),
                Ndt7Incoming::Load => patience_ends = monotonic() + SILENCE,
                Ndt7Incoming::Other | Ndt7Incoming::Nothing => {}
            }
            if monotonic() >= patience_ends {
                self.send_close(WRONG)?;
                return Err(io::Error::other("no load from the client of an upload"));
            }
        }
        Ok(false)
    }

    /// Reads the next part that the client sends, if it does within this time.
    fn next(&mut self, within: Duration) -> io::Result<Ndt7Incoming> {
        let stream = self.transfer.stream;
        if !readable(&stream, within)? {
            return Ok(Ndt7Incoming::Nothing);
        }
        if self.left == 0 {
            let mut bytes = [0; FRAME_HEAD_BYTES_MAX + CONTROL_BYTES_MAX];
            let count = stream.peek(&mut bytes)?;
            let parsed = FrameHead::parse(&bytes[..count], NDT7_MESSAGE_BYTES_MAX);
            let head = parsed.map_err(io::Error::other)?;
            let Some(head) = head.filter(|head| is_whole(head, count)) else {
                if count > 0 {
                    sleep(LOOK);
                }
                return Ok(if count == 0 { Ndt7Incoming::End } else { Ndt7Incoming::Nothing });
            };
            let _ = stream.set_read_timeout(Some(LEAVE));
            let mut reader = stream;
            io::Read::read_exact(&mut reader, &mut bytes[..head.head_bytes])?;
            self.frames[TAKEN] += head.head_bytes as u64;
            match head.opcode {
                Opcode::Binary => self.counts = true,
                Opcode::Text => self.counts = false,
                Opcode::More => {}
                Opcode::Close | Opcode::Ping | Opcode::Pong => return self.control(head),
            }
            self.left = head.payload_bytes;
            return Ok(if self.counts && self.left == 0 {
                Ndt7Incoming::Load
            } else {
                Ndt7Incoming::Other
            });
        }
        let count = match self.counts {
            true => self.transfer.take_some(self.left)?,
            false => self.transfer.take_aside(self.left)?,
        };
        self.texts[TAKEN] += if self.counts { 0 } else { count };
        self.left -= count;
        Ok(match count {
            0 => Ndt7Incoming::End,
            _ if self.counts => Ndt7Incoming::Load,
            _ => Ndt7Incoming::Other,
        })
    }

    fn control(&mut self, head: FrameHead) -> io::Result<Ndt7Incoming> {
        let mut payload = vec![0; usize::try_from(head.payload_bytes).unwrap_or(0)];
        let mut stream = self.transfer.stream;
        io::Read::read_exact(&mut stream, &mut payload)?;
        self.frames[TAKEN] += head.payload_bytes;
        for (byte, mask) in payload.iter_mut().zip(head.mask.iter().cycle()) {
            *byte ^= mask;
        }
        match head.opcode {
            Opcode::Close => {
                // One that has left does not read the answer.
                if !self.closed {
                    let _ = self.message(Opcode::Close, &payload);
                }
                Ok(Ndt7Incoming::End)
            }
            Opcode::Ping if !self.closed => {
                self.message(Opcode::Pong, &payload).map(|()| Ndt7Incoming::Other)
            }
            _ => Ok(Ndt7Incoming::Other),
        }
    }

    fn send_close(&mut self, code: u16) -> io::Result<()> {
        let say = if code == NORMAL { self.script.farewell() } else { b"" };
        self.message(Opcode::Close, &[&code.to_be_bytes(), say].concat())
    }

    /// Bytes that messages carried, without the frames around them.
    const fn application(&self) -> ByteCounters {
        ByteCounters {
            bytes_sent: self.transfer.sent + self.texts[SENT],
            bytes_received: self.transfer.taken + self.texts[TAKEN],
        }
    }

    /// The same with their frames.
    const fn network(&self) -> ByteCounters {
        let ByteCounters { bytes_sent, bytes_received } = self.application();
        ByteCounters {
            bytes_sent: bytes_sent + self.frames[SENT],
            bytes_received: bytes_received + self.frames[TAKEN],
        }
    }

    fn tell_in_time(&mut self) -> io::Result<()> {
        if monotonic() < self.told + TOLD_EVERY {
            return Ok(());
        }
        self.send_measurement()
    }

    fn send_measurement(&mut self) -> io::Result<()> {
        self.told = monotonic();
        let elapsed = self.transfer.elapsed();
        let elapsed_time = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let text = match self.script {
            Script::Ndt7 => self.measurement(elapsed_time),
            Script::Throughput1(_) => self.wire_measurement(elapsed_time),
        };
        self.message(Opcode::Text, text.map_err(io::Error::other)?.as_bytes())
    }

    fn measurement(&self, elapsed_time: u64) -> Result<String, tree::Error> {
        let num_bytes = self.transfer.sent + self.transfer.taken;
        let app = AppInfo { elapsed_time, num_bytes };
        let [client, server, uuid] = &self.ends;
        let ends = ConnectionInfo { client, server, uuid };
        let info = tcp_info(self.transfer.stream.as_fd());
        tree::to_json(&Measurement::new(self.direction, app, ends, info.as_ref()))
    }

    fn wire_measurement(&mut self, elapsed_time: u64) -> Result<String, tree::Error> {
        let socket = self.transfer.stream.as_fd();
        let counts = LayerCounters { application: self.application(), network: self.network() };
        let info = tcp_info(socket);
        let is_first = !std::mem::replace(&mut self.has_said_who, true);
        let [remote, local, uuid] = &self.ends;
        let congestion = tcp::congestion_control(socket);
        let who = is_first.then(|| ConnectionFacts { congestion, uuid, local, remote });
        tree::to_json(&WireMeasurement::new(who, counts, elapsed_time, info.as_ref()))
    }

    fn message(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        self.closed |= opcode == Opcode::Close;
        let head = message_head(opcode, payload.len() as u64);
        let (texts, others) = match opcode {
            Opcode::Text => (payload.len(), head.len()),
            _ => (0, head.len() + payload.len()),
        };
        self.texts[SENT] += texts as u64;
        self.frames[SENT] += others as u64;
        let bytes = [&head, payload].concat();
        self.transfer.send_aside(&bytes)
    }
}

/// True where enough of a frame is there to take it: of load its head. A control frame is taken
/// whole, so that one that comes byte by byte keeps nobody beyond the time of the test.
fn is_whole(head: &FrameHead, count: usize) -> bool {
    let payload = usize::try_from(head.payload_bytes).unwrap_or(usize::MAX);
    !head.opcode.is_control() || count >= head.head_bytes.saturating_add(payload)
}
