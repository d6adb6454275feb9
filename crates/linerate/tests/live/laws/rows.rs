//! What the programs print, as rows: a span of time, bytes, a rate, losses, each with the error
//! that its digits leave. The lines of iperf3, iperf 2, nuttcp and ttcp; `json` has the documents.

use super::cell::{Cell, Program, Protocol, Way};

/// Which way data went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// From the client to the server.
    Up,
    Down,
}

/// Which end counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// Who printed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Printer {
    Client,
    Server,
}

/// A printed figure and how far its digits may be from what was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Figure {
    pub(crate) fn new(value: f64, error: f64) -> Self {
        Self { value, error }
    }

    pub(crate) fn low(self) -> f64 {
        (self.value - self.error).max(0.0)
    }

    pub(crate) fn high(self) -> f64 {
        self.value + self.error
    }

    /// A number as printed, in units of `unit`: half of its last digit is not known.
    fn read(word: &str, unit: f64) -> Option<Self> {
        let value: f64 = word.parse().ok().filter(|value: &f64| value.is_finite())?;
        let digits = word.split_once('.').map_or(0, |(_, after)| after.len());
        let step = 10_f64.powi(-i32::try_from(digits).ok()?);
        Some(Self { value: value * unit, error: 0.5 * step * unit })
    }
}

/// One line or object.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) printer: Printer,
    pub(crate) direction: Direction,
    pub(crate) side: Side,
    /// None is the sum, also that of the only stream.
    pub(crate) stream: Option<String>,
    /// A part of the test; the whole of it otherwise.
    pub(crate) is_interval: bool,
    /// It belongs to the span that `-O` leaves out.
    pub(crate) omitted: bool,
    pub(crate) start: f64,
    /// Seconds; none where the line has none.
    pub(crate) seconds: Option<Figure>,
    pub(crate) bytes: Option<Figure>,
    pub(crate) rate_bps: Option<Figure>,
    /// Lost, and all.
    pub(crate) lost: Option<(i64, i64)>,
    /// The line, for the message.
    pub(crate) text: String,
}

/// Rows of what one program of a cell printed as text.
pub(crate) fn of_text(cell: &Cell, printer: Printer, text: &str) -> Vec<Row> {
    let program = match printer {
        Printer::Client => cell.client,
        Printer::Server => cell.server,
    };
    match (cell.protocol, program) {
        (_, Program::Linerate) => own(cell, printer, text),
        (Protocol::Iperf3 | Protocol::Iperf2, _) => iperf(cell, printer, text),
        (Protocol::Nuttcp, _) => nuttcp(cell, printer, text),
        (Protocol::Ttcp, _) => ttcp(printer, text),
        (Protocol::Native, _) => Vec::new(),
    }
}

/// The direction of a test that has one.
pub(crate) fn only_direction(way: Way) -> Direction {
    if way == Way::Reverse { Direction::Down } else { Direction::Up }
}

/// Which side an end is on, for data in `direction`.
fn side_of(printer: Printer, direction: Direction) -> Side {
    let sends = (printer == Printer::Client) == (direction == Direction::Up);
    if sends { Side::Sender } else { Side::Receiver }
}

/// `[  5][TX-C]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec  0.005 ms  0/1727 (0%)  sender`
fn iperf(cell: &Cell, printer: Printer, text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut of_server = false;
    for line in text.lines() {
        of_server |= line.contains("Server Report");
        let Some(row) = iperf_line(cell, printer, line, of_server) else { continue };
        of_server = of_server && line.contains("[ ID]");
        rows.push(row);
    }
    if cell.protocol == Protocol::Iperf2 {
        tell_totals(&mut rows);
    }
    // The sum of one stream is that stream.
    if cell.streams == 1 {
        rows.iter_mut().for_each(|row| row.stream = None);
    }
    rows
}

/// iperf 2 writes the whole like an interval: it is the last line of a stream that begins at 0.
fn tell_totals(rows: &mut [Row]) {
    for at in 0..rows.len() {
        let row = &rows[at];
        let same = |it: &Row| {
            (&it.stream, it.direction, it.side) == (&row.stream, row.direction, row.side)
        };
        let another = rows[at + 1..].iter().any(|it| same(it) && it.start == 0.0);
        rows[at].is_interval = rows[at].start > 0.0 || another;
    }
}

fn iperf_line(cell: &Cell, printer: Printer, line: &str, of_server: bool) -> Option<Row> {
    let (tags, rest) = line.split_at(line.rfind(']')? + 1);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (from, to) = words.first()?.split_once('-')?;
    let (from, to) = (Figure::read(from, 1.0)?, Figure::read(to, 1.0)?);
    if words.get(1) != Some(&"sec") {
        return None;
    }
    let bytes = Figure::read(words.get(2)?, byte_unit(words.get(3)?)?)?;
    let rate = Figure::read(words.get(4)?, bit_unit(words.get(5)?)?)?;
    let two = cell.protocol == Protocol::Iperf2;
    // With --full-duplex its sum is that of both directions.
    if two && cell.way == Way::Both && tags.contains("SUM") {
        return None;
    }
    let named = words.iter().find_map(|word| match *word {
        "sender" => Some(Side::Sender),
        "receiver" => Some(Side::Receiver),
        _ => None,
    });
    let direction = match tags {
        _ if tags.contains("TX-C") || tags.contains("RX-S") => Direction::Up,
        _ if tags.contains("RX-C") || tags.contains("TX-S") => Direction::Down,
        _ if two && cell.way == Way::Both => {
            if tags.contains('*') {
                Direction::Down
            } else {
                Direction::Up
            }
        }
        _ => only_direction(cell.way),
    };
    let side = match named {
        Some(side) => side,
        None if of_server => Side::Receiver,
        None => side_of(printer, direction),
    };
    let ids = tags.replace("[SUM]", "");
    let id = ids.split(['[', ']', ' ', '*']).find(|part| part.parse::<u32>().is_ok());
    Some(Row {
        printer,
        direction,
        side,
        stream: id.map(str::to_owned),
        is_interval: named.is_none(),
        omitted: line.contains("(omitted)"),
        start: from.value,
        seconds: Some(Figure::new(to.value - from.value, from.error + to.error)),
        bytes: Some(bytes),
        rate_bps: Some(rate),
        lost: lost_of(&words),
        text: line.trim_end().to_owned(),
    })
}

/// `0/1727` among the words.
fn lost_of(words: &[&str]) -> Option<(i64, i64)> {
    words.iter().skip(6).find_map(|word| {
        let (lost, all) = word.split_once('/')?;
        Some((lost.parse().ok()?, all.parse().ok()?))
    })
}

/// iperf's bytes are powers of 1024, its bits of 1000 (iperf 2 and 3, -f).
fn byte_unit(word: &str) -> Option<f64> {
    Some(match word {
        "Bytes" => 1.0,
        "KBytes" => 1024.0,
        "MBytes" => 1_048_576.0,
        "GBytes" => 1_073_741_824.0,
        _ => return None,
    })
}

fn bit_unit(word: &str) -> Option<f64> {
    Some(match word {
        "bits/sec" | "bit/s" => 1.0,
        "Kbits/sec" | "kbit/s" => 1e3,
        "Mbits/sec" | "Mbit/s" => 1e6,
        "Gbits/sec" | "Gbit/s" => 1e9,
        "Tbits/sec" | "Tbit/s" => 1e12,
        _ => return None,
    })
}

/// `   12.1875 MB /   1.08 sec =   94.2352 Mbps 0 %TX 5 %RX 0 / 2435 drop/pkt`: what the receiver
/// counted; a MB is 2^20 bytes.
fn nuttcp(cell: &Cell, printer: Printer, text: &str) -> Vec<Row> {
    let direction = only_direction(cell.way);
    let mut start = 0.0;
    let mut rows = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [bytes, "MB", "/", seconds, "sec", "=", rate, "Mbps", rest @ ..] = &words[..] else {
            continue;
        };
        let is_interval = !rest.contains(&"%TX");
        let seconds = Figure::read(seconds, 1.0);
        let drops = match rest {
            [lost, "/", all, ..] => lost.parse().ok().zip(all.parse().ok()),
            [_, "%TX", _, "%RX", lost, "/", all, ..] => lost.parse().ok().zip(all.parse().ok()),
            _ => None,
        };
        rows.push(Row {
            printer,
            direction,
            side: Side::Receiver,
            stream: None,
            is_interval,
            omitted: false,
            start: if is_interval { start } else { 0.0 },
            seconds,
            bytes: Figure::read(bytes, 1_048_576.0),
            rate_bps: Figure::read(rate, 1e6),
            lost: drops,
            text: line.trim_end().to_owned(),
        });
        start += seconds.map_or(0.0, |seconds| seconds.value);
    }
    rows
}

/// `ttcp-t: 8192000 bytes in 0.68 real seconds = 11679.39 KB/sec +++`
fn ttcp(printer: Printer, text: &str) -> Vec<Row> {
    let lines = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, bytes, "bytes", "in", seconds, "real", "seconds", "=", rate, "KB/sec", ..] =
            &words[..]
        else {
            return None;
        };
        Some(Row {
            printer,
            direction: Direction::Up,
            side: side_of(printer, Direction::Up),
            stream: None,
            is_interval: false,
            omitted: false,
            start: 0.0,
            seconds: Figure::read(seconds, 1.0),
            bytes: Figure::read(bytes, 1.0),
            rate_bps: Figure::read(rate, 8.0 * 1024.0),
            lost: None,
            text: line.to_owned(),
        })
    });
    lines.collect()
}

/// `all up    0.00-0.50 s           5.88 MB   94.06 Mbit/s`, and the summary's
/// `  sum     12.20 MB  96.61 Mbit/s` or, of datagrams, its last column. Both are what arrived.
fn own(cell: &Cell, printer: Printer, text: &str) -> Vec<Row> {
    let mut direction = Direction::Up;
    let mut rows = Vec::new();
    // Where what arrived is told at the end alone, intervals show what was sent: of datagrams with
    // these programs (docs/manual/other-programs.md and iperf3.md), on its way up.
    let sent = cell.udp && !matches!(cell.protocol, Protocol::Native | Protocol::Nuttcp);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["client", "to", "server"] => direction = Direction::Up,
            ["server", "to", "client"] => direction = Direction::Down,
            _ => {}
        }
        let up = words.get(1) == Some(&"up");
        let side = if sent && up { Side::Sender } else { Side::Receiver };
        rows.extend(own_interval(printer, side, &words, line));
        rows.extend(own_total(printer, direction, &words, line));
    }
    rows
}

fn own_interval(printer: Printer, side: Side, words: &[&str], line: &str) -> Option<Row> {
    let [stream, way @ ("up" | "down"), span, "s", bytes, byte_unit, rate, unit, ..] = words else {
        return None;
    };
    let (from, to) = span.split_once('-')?;
    let (from, to) = (Figure::read(from, 1.0)?, Figure::read(to, 1.0)?);
    let direction = if *way == "up" { Direction::Up } else { Direction::Down };
    Some(Row {
        printer,
        direction,
        side,
        stream: (*stream != "all").then(|| (*stream).to_owned()),
        is_interval: true,
        omitted: line.contains("omitted"),
        start: from.value,
        seconds: Some(Figure::new(to.value - from.value, from.error + to.error)),
        bytes: Figure::read(bytes, own_byte_unit(byte_unit)?),
        rate_bps: Figure::read(rate, bit_unit(unit)?),
        lost: None,
        text: line.trim_end().to_owned(),
    })
}

/// A line of the table of streams: no span stands in it, but one goodput.
fn own_total(printer: Printer, direction: Direction, words: &[&str], line: &str) -> Option<Row> {
    let first = words.first().filter(|word| **word == "sum" || word.parse::<u16>().is_ok())?;
    let at = words.iter().position(|word| bit_unit(word).is_some()).filter(|at| *at >= 3)?;
    if words.get(1)?.contains('-') || words.get(1) == Some(&"UDP") || words.contains(&"up") {
        return None;
    }
    Some(Row {
        printer,
        direction,
        side: Side::Receiver,
        stream: (*first != "sum").then(|| (*first).to_owned()),
        is_interval: false,
        omitted: false,
        start: 0.0,
        seconds: None,
        bytes: None,
        rate_bps: Figure::read(words[at - 1], bit_unit(words[at])?),
        lost: None,
        text: line.trim_end().to_owned(),
    })
}

fn own_byte_unit(word: &str) -> Option<f64> {
    Some(match word {
        "B" | "bytes" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    })
}
