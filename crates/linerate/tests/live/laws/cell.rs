//! What a cell is: who speaks with whom, in which direction, with which flag, over which path; the
//! whole product of them, and a seeded draw from it.

use std::fmt;

use super::path::{Limits, SERVER};

/// Whose protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Native,
    Iperf3,
    Iperf2,
    Nuttcp,
    Ttcp,
}

/// Which program is at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `linerate tcp`, `linerate udp`, `linerate serve`.
    Linerate,
    /// `linerate iperf3` and the like.
    Personality,
    /// Debian's.
    Peer,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Reverse,
    Both,
}

/// The flag that sets a cell apart. All but `Bytes` measure for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Plain,
    /// `-O 1`
    Omit,
    /// `-n`: as much as 40 % of the link carries in 0.8 s; datagrams at that rate.
    Bytes,
    /// `-l`: short ones.
    Length,
    /// `-w 64K`
    Window,
    /// `-b` at 40 % of the link, all streams together.
    Below,
    /// `-b 0`
    Unlimited,
    /// `-b` at four times the link.
    Above,
    /// `-i 0`
    NoInterval,
    /// `-i 0.5`
    HalfSecond,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The server is killed while data flows.
    Kill,
    /// The cable is out before the client starts.
    Unplug,
    /// A firewall drops every packet above 600 bytes.
    Drop,
}

/// One test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) protocol: Protocol,
    pub(crate) client: Program,
    pub(crate) server: Program,
    pub(crate) udp: bool,
    pub(crate) way: Way,
    pub(crate) flag: Flag,
    pub(crate) streams: u16,
    pub(crate) json: bool,
    pub(crate) limits: Limits,
    pub(crate) fault: Fault,
}

const FLAGS: [Flag; 10] = [
    Flag::Plain,
    Flag::Omit,
    Flag::Bytes,
    Flag::Length,
    Flag::Window,
    Flag::Below,
    Flag::Unlimited,
    Flag::Above,
    Flag::NoInterval,
    Flag::HalfSecond,
];

const PROTOCOLS: [Protocol; 5] =
    [Protocol::Native, Protocol::Iperf3, Protocol::Iperf2, Protocol::Nuttcp, Protocol::Ttcp];

/// Paths and how often each is drawn. A deep queue holds the send buffers of eight UDP sockets of
/// the kernel's default size, a shallow one not that of one.
const PATHS: [(usize, Limits); 6] = [
    (6, limits(50, 16_000, DEEP)),
    (4, limits(50, 16_000, SHALLOW)),
    (5, limits(100, 16_000, DEEP)),
    (3, limits(100, 16_000, SHALLOW)),
    (1, limits(10, 8_000, SHALLOW)),
    (1, limits(500, 64_000, DEEP)),
];

const DEEP: u32 = 1_500_000;
const SHALLOW: u32 = 100_000;

const fn limits(mbit: u64, burst_bytes: u32, queue_bytes: u32) -> Limits {
    Limits { rate_bps: mbit * 1_000_000, burst_bytes, queue_bytes }
}

impl Cell {
    /// Whether a queue of the path holds what the sockets hand over before they wait: then it
    /// drops nothing of a sender that leaves its sockets at the kernel's default size.
    pub(crate) fn queue_holds_sockets(&self) -> bool {
        let bytes = f64::from(self.streams) * UDP_SOCKET;
        self.flag != Flag::Window && bytes < 0.9 * f64::from(self.limits.queue_bytes)
    }

    /// Pace of each stream in payload bit/s, where one was asked for or is usual.
    pub(crate) fn pace_bps(&self) -> Option<f64> {
        let share = |part: f64| {
            let all = self.limits.rate_bps as f64 * part;
            Some((all / f64::from(self.streams) / 1e4).round() * 1e4)
        };
        match self.flag {
            Flag::Below => share(0.4),
            Flag::Above => share(4.0),
            Flag::Unlimited => None,
            Flag::Bytes if self.udp => share(0.4),
            _ if self.protocol == Protocol::Ttcp => None,
            _ if self.udp && self.protocol == Protocol::Iperf3 => Some(1_048_576.0),
            // iperf 2 takes its own default for 1M of powers of 1024; nuttcp's is 1,000 kbit/s.
            _ if self.udp && self.protocol == Protocol::Iperf2 => Some(1_048_576.0),
            _ if self.udp => Some(1e6),
            _ => None,
        }
    }

    /// Bytes that the test moves, where that was asked for.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let asked = self.flag == Flag::Bytes || self.protocol == Protocol::Ttcp;
        let bytes = self.limits.rate_bps / 8 * 4 / 10 * 8 / 10;
        // nuttcp sends whole buffers, of 512 KiB where linerate is the sender.
        asked.then_some((bytes >> 19).max(1) << 19)
    }

    /// Seconds that the test measures, where that was asked for.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let long = if self.fault == Fault::None { 1.0 } else { 2.0 };
        self.bytes().is_none().then_some(long)
    }

    /// Datagrams that one packet of the queue may have: our senders join several, and the filter
    /// takes apart what is longer than its bucket only.
    pub(crate) fn joined(&self, by_client: bool) -> u32 {
        let sender = if by_client { self.client } else { self.server };
        let length = if self.flag == Flag::Length { self.length() } else { 1024 };
        if sender == Program::Peer { 1 } else { (self.limits.burst_bytes / length).max(1) }
    }

    /// Whether any end is ours.
    pub(crate) fn is_ours(&self) -> bool {
        self.client != Program::Peer || self.server != Program::Peer
    }

    /// The server's program and flags.
    pub(crate) fn server_command(&self) -> Vec<String> {
        let name = self.protocol.program();
        let words: &[&str] = match (self.protocol, self.server) {
            (_, Program::Linerate) => &["linerate", "serve"],
            (Protocol::Iperf2, program) => &match program {
                Program::Peer => ["iperf", "-s", "-i", "0.5"],
                _ => ["linerate", "iperf", "-s", "-i0.5"],
            },
            (Protocol::Nuttcp, Program::Peer) => &["nuttcp", "-S"],
            (Protocol::Nuttcp, _) => &["linerate", "nuttcp", "-S", "--nofork"],
            (Protocol::Ttcp, _) => &["linerate", "ttcp", "-r", "-s"],
            (_, Program::Peer) => &[name, "-s"],
            (_, Program::Personality) => &["linerate", name, "-s"],
        };
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if self.udp
            && matches!(self.protocol, Protocol::Iperf2 | Protocol::Ttcp)
            && self.server != Program::Linerate
        {
            words.push("-u".to_owned());
        }
        // One datagram asks for all of it, so that a server wants to be told to whom it may send.
        if self.udp && self.protocol == Protocol::Iperf2 && self.server != Program::Peer {
            words.extend(["--udp-reverse-to", "10.77.0.0/24=1G"].map(str::to_owned));
        }
        words
    }

    /// The port that shows that the server listens, and whether it is one of UDP.
    pub(crate) fn port(&self) -> (u16, bool) {
        match self.protocol {
            Protocol::Native => (5210, false),
            Protocol::Iperf3 => (5201, false),
            Protocol::Nuttcp => (5000, false),
            Protocol::Iperf2 | Protocol::Ttcp => (5001, self.udp),
        }
    }

    /// The client's program and flags.
    pub(crate) fn client_command(&self) -> Vec<String> {
        let mut line = Line::default();
        match self.client {
            Program::Linerate => self.own_flags(&mut line),
            program => {
                if program == Program::Personality {
                    line.add("linerate");
                }
                match self.protocol {
                    Protocol::Nuttcp => self.nuttcp_flags(&mut line),
                    Protocol::Ttcp => self.ttcp_flags(&mut line),
                    _ => self.iperf_flags(&mut line),
                }
            }
        }
        line.words
    }

    fn own_flags(&self, line: &mut Line) {
        line.add("linerate").add(if self.udp { "udp" } else { "tcp" }).add(SERVER).add("--no-save");
        if self.protocol != Protocol::Native {
            line.add("--via").add(self.protocol.via());
        }
        if self.json {
            line.add("--json");
        }
        if self.protocol != Protocol::Ttcp {
            self.common_flags(line);
        } else if self.udp {
            line.pair("-b", "20M").pair("-n", &self.bytes().unwrap_or(0).to_string());
        } else {
            line.pair("-n", &self.bytes().unwrap_or(0).to_string());
        }
        match self.way {
            Way::Forward => {}
            Way::Reverse => _ = line.add("-R"),
            Way::Both => _ = line.add("--bidir"),
        }
    }

    /// Flags that linerate, iperf3 and iperf 2 write alike.
    fn common_flags(&self, line: &mut Line) {
        if let Some(seconds) = self.seconds() {
            line.pair("-t", &seconds.to_string());
        }
        if let (Flag::Bytes, Some(bytes)) = (self.flag, self.bytes()) {
            line.pair("-n", &bytes.to_string());
        }
        match self.flag {
            Flag::Omit => _ = line.pair("-O", "1"),
            Flag::Length => _ = line.pair("-l", &self.length().to_string()),
            Flag::Window => _ = line.pair("-w", "64K"),
            Flag::Unlimited => _ = line.pair("-b", "0"),
            Flag::NoInterval => _ = line.pair("-i", "0"),
            Flag::HalfSecond => _ = line.pair("-i", "0.5"),
            Flag::Plain | Flag::Bytes | Flag::Below | Flag::Above => {}
        }
        let paced = matches!(self.flag, Flag::Below | Flag::Above)
            || (self.flag == Flag::Bytes && self.udp);
        if let (true, Some(pace)) = (paced, self.pace_bps()) {
            line.pair("-b", &format!("{pace:.0}"));
        }
        if self.streams > 1 {
            line.pair("-P", &self.streams.to_string());
        }
    }

    fn length(&self) -> u32 {
        if self.udp { 700 } else { 5_000 }
    }

    fn iperf_flags(&self, line: &mut Line) {
        let two = self.protocol == Protocol::Iperf2;
        line.add(self.protocol.program()).pair("-c", SERVER);
        if self.udp {
            line.add("-u");
        }
        if self.json && !two {
            line.add("-J");
        }
        if self.fault != Fault::None && !two {
            line.pair("--connect-timeout", "3000");
        }
        // Lines of other intervals than a second have iperf 2's total for a line of an interval.
        if two && !matches!(self.flag, Flag::HalfSecond | Flag::NoInterval) {
            line.pair("-i", "0.5");
        }
        self.common_flags(line);
        // It refuses a pace of less than a buffer in a second.
        if two && !self.udp && self.flag == Flag::Below {
            line.pair("-l", "8K");
        }
        match (self.way, two) {
            (Way::Forward, _) => {}
            (Way::Reverse, _) => _ = line.add("-R"),
            (Way::Both, true) => _ = line.add("--full-duplex"),
            (Way::Both, false) => _ = line.add("--bidir"),
        }
    }

    fn nuttcp_flags(&self, line: &mut Line) {
        line.add("nuttcp");
        let length = match (self.flag, self.udp) {
            (Flag::Length, _) => self.length(),
            (_, true) => 1024,
            (_, false) => 65_536,
        };
        if self.way == Way::Reverse {
            line.add("-r");
        }
        if self.udp {
            line.add("-u");
        }
        match self.bytes() {
            Some(bytes) => line.add(&format!("-n{}", bytes / u64::from(length))),
            None => line.add(&format!("-T{}", self.seconds().unwrap_or(1.0))),
        };
        match self.flag {
            Flag::Length => _ = line.add(&format!("-l{length}")),
            Flag::Window => _ = line.add("-w64"),
            Flag::Unlimited => _ = line.add("-R0"),
            Flag::HalfSecond => _ = line.add("-i0.5"),
            _ => {}
        }
        let paced = matches!(self.flag, Flag::Below | Flag::Above)
            || (self.flag == Flag::Bytes && self.udp);
        if let (true, Some(pace)) = (paced, self.pace_bps()) {
            line.add(&format!("-R{:.0}", pace / 1e3));
        }
        if self.streams > 1 {
            line.add(&format!("-N{}", self.streams));
        }
        line.add(SERVER);
    }

    fn ttcp_flags(&self, line: &mut Line) {
        line.add("ttcp").add("-t").add("-s");
        let length = match (self.flag, self.udp) {
            (Flag::Length, _) => self.length(),
            (_, true) => 1400,
            (_, false) => 8192,
        };
        if self.udp {
            line.add("-u");
        }
        if self.flag == Flag::Window {
            line.pair("-b", "65536");
        }
        let count = self.bytes().unwrap_or(0) / u64::from(length);
        line.pair("-l", &length.to_string()).pair("-n", &count.to_string()).add(SERVER);
    }
}

/// What a UDP socket of the kernel's default size (net.core.wmem_default, 212,992 bytes) lets into
/// a queue: it is charged 2,304 bytes for a full frame of 1,514, and 1,280 for one of 742.
const UDP_SOCKET: f64 = 212_992.0 / 2_304.0 * 1_514.0;

/// Payload that a UDP socket takes over before it has crossed the path.
pub(crate) const UDP_SEND_BUFFER: f64 = UDP_SOCKET + 65_536.0;

#[derive(Default)]
struct Line {
    words: Vec<String>,
}

impl Line {
    fn add(&mut self, word: &str) -> &mut Self {
        self.words.push(word.to_owned());
        self
    }

    fn pair(&mut self, flag: &str, value: &str) -> &mut Self {
        self.add(flag).add(value)
    }
}

impl Protocol {
    fn program(self) -> &'static str {
        match self {
            Self::Native => "linerate",
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf",
            Self::Nuttcp => "nuttcp",
            Self::Ttcp => "ttcp",
        }
    }

    fn via(self) -> &'static str {
        if self == Self::Iperf2 { "iperf2" } else { self.program() }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { rate_bps, burst_bytes, queue_bytes } = self.limits;
        writeln!(
            f,
            "{:?} {} {:?} {:?} x{}{}: tbf rate {}mbit burst {burst_bytes} limit {queue_bytes}",
            self.protocol,
            if self.udp { "UDP" } else { "TCP" },
            self.way,
            self.flag,
            self.streams,
            if self.fault == Fault::None { String::new() } else { format!(" {:?}", self.fault) },
            rate_bps / 1_000_000,
        )?;
        writeln!(f, "  server: {}", self.server_command().join(" "))?;
        write!(f, "  client: {}", self.client_command().join(" "))
    }
}

/// Every cell but for the paths, each of them drawn from [`PATHS`].
pub(crate) fn product(random: &mut Random) -> Vec<Cell> {
    let mut cells = Vec::new();
    for protocol in PROTOCOLS {
        for client in [Program::Linerate, Program::Personality, Program::Peer] {
            for server in [Program::Linerate, Program::Personality, Program::Peer] {
                add_pair(&mut cells, (protocol, client, server), random);
            }
        }
    }
    cells
}

fn add_pair(
    cells: &mut Vec<Cell>,
    (protocol, client, server): (Protocol, Program, Program),
    random: &mut Random,
) {
    for way in [Way::Forward, Way::Reverse, Way::Both] {
        for udp in [false, true] {
            for flag in FLAGS {
                for streams in [1, 4, 8] {
                    for json in [false, true] {
                        let limits = random.path();
                        let fault = Fault::None;
                        let cell = Cell {
                            protocol,
                            client,
                            server,
                            udp,
                            way,
                            flag,
                            streams,
                            json,
                            limits,
                            fault,
                        };
                        cells.extend(exists(&cell).then_some(cell));
                    }
                }
            }
        }
    }
}

/// Cells in which nothing arrives: every pair whose client is ours, either way, with each fault.
pub(crate) fn faults(random: &mut Random) -> Vec<Cell> {
    let plain = product(random).into_iter().filter(|cell| {
        let plain = cell.flag == Flag::Plain && cell.streams == 1 && !cell.json;
        plain && cell.client != Program::Peer && cell.way != Way::Both
    });
    let limits = limits(50, 16_000, DEEP);
    let cells = plain.flat_map(|cell| {
        [Fault::Kill, Fault::Unplug, Fault::Drop].map(|fault| Cell { fault, limits, ..cell })
    });
    cells.filter(told_to_client).collect()
}

/// ttcp's UDP has no way back by which a sender could learn that nothing arrived. Of a test by
/// bytes that is over before the server dies nothing can be told either.
fn told_to_client(cell: &Cell) -> bool {
    cell.protocol != Protocol::Ttcp || (!cell.udp && cell.fault != Fault::Kill)
}

/// Whether the programs can do what the cell says.
fn exists(cell: &Cell) -> bool {
    use Flag::{Bytes, Length, NoInterval, Omit, Plain, Unlimited, Window};
    let Cell { protocol, client, server, udp, way, flag, streams, json, .. } = *cell;
    // `linerate tcp` has no word for no pace, and neither it nor `linerate udp` for no intervals.
    if client == Program::Linerate && (flag == NoInterval || flag == Unlimited && !udp) {
        return false;
    }
    match protocol {
        // No other program speaks it.
        Protocol::Native => client == Program::Linerate && server == Program::Linerate,
        Protocol::Iperf3 => true,
        // Without -O. Its lines alone are read. It refuses -b 0.
        Protocol::Iperf2 => {
            flag != Omit
                && !(client == Program::Peer && flag == Unlimited)
                && (client == Program::Linerate || !json)
        }
        // One stream over UDP, no --bidir, no -O; -i 0 is what it does anyhow.
        Protocol::Nuttcp => {
            (!udp || streams == 1)
                && way != Way::Both
                && !matches!(flag, Omit | NoInterval)
                && (client == Program::Linerate || !json)
        }
        Protocol::Ttcp => {
            let flags: &[Flag] =
                if client == Program::Linerate { &[Plain] } else { &[Bytes, Length, Window] };
            client != Program::Peer
                && server != Program::Peer
                && way == Way::Forward
                && streams == 1
                && flags.contains(&flag)
                && (client == Program::Linerate || !json)
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same cells for the same seed on any machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).expect("below a usize")
    }

    fn path(&mut self) -> Limits {
        let mut at = self.below(PATHS.iter().map(|(weight, _)| weight).sum());
        for (weight, limits) in PATHS {
            match at.checked_sub(weight) {
                Some(rest) => at = rest,
                None => return limits,
            }
        }
        PATHS[0].1
    }

    /// Draws `count` cells without putting back, as many of each protocol and transport as there
    /// are, so that a small draw has them all.
    pub(crate) fn draw(&mut self, mut cells: Vec<Cell>, count: usize) -> Vec<Cell> {
        for last in (1..cells.len()).rev() {
            cells.swap(last, self.below(last + 1));
        }
        let kinds = PROTOCOLS.iter().flat_map(|protocol| [false, true].map(|udp| (*protocol, udp)));
        let mut piles: Vec<Vec<Cell>> = kinds
            .map(|kind| cells.iter().filter(|it| (it.protocol, it.udp) == kind).copied().collect())
            .collect();
        let mut drawn = Vec::new();
        while drawn.len() < count && piles.iter().any(|pile| !pile.is_empty()) {
            for pile in &mut piles {
                drawn.extend(pile.pop());
            }
        }
        drawn.truncate(count);
        drawn
    }
}
