//! The laws. Each takes the rows of a cell and what the kernel counted, and says what is broken.
//!
//! A busy host must not break them, so nearly all are upper bounds that the link alone sets. Where
//! a program that had no processor may honestly be late, the time for which this host kept its
//! threads waiting meanwhile (`stall`) is granted.

use super::cell::{Cell, Fault, Flag, Program, Protocol, UDP_SEND_BUFFER, Way};
use super::path::{Counted, SEND_BUFFER};
use super::rows::{Direction, Figure, Printer, Row, Side};
use super::run::Outcome;

/// Share that rounding of the shaper's own rate and of programs' clocks may add. The kernel holds
/// the rate in whole bytes per second.
const SLACK: f64 = 0.002;
/// An interval ends when the thread that ends it runs: two hand-overs between threads of a
/// machine with something else to do.
const INTERVAL_SLACK: f64 = 0.030;

/// Rows that end so close to the whole leave no time for a row of the rest.
const NO_TIME: f64 = 0.001;

const ADD_UP: &str = "L2 intervals add up";
const LOSSES: &str = "L3 losses are drops";

/// Which law, and what broke it.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) law: &'static str,
    pub(crate) what: String,
    /// Printed and counted by programs that are not ours.
    pub(crate) foreign: bool,
}

/// Everything that a law may look at.
pub(crate) struct Case<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) outcome: &'a Outcome,
    pub(crate) rows: &'a [Row],
    /// Longest time for which a thread of this host that was due waited during the cell, in s.
    pub(crate) stall: f64,
}

/// Every law that the cell breaks.
pub(crate) fn judge(case: &Case<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    if case.cell.fault != Fault::None {
        nothing_received_is_no_success(case, &mut found);
        return found;
    }
    it_ends_well(case, &mut found);
    for row in case.rows {
        no_rate_above_the_path(case, row, &mut found);
        rate_times_time_is_bytes(case, row, &mut found);
        time_is_that_of_the_test(case, row, &mut found);
        bytes_crossed_the_interface(case, row, &mut found);
        losses_are_drops(case, row, &mut found);
        pace_is_kept(case, row, &mut found);
    }
    for direction in [Direction::Up, Direction::Down] {
        prefixes_fit_the_path(case, direction, &mut found);
        sender_has_what_the_receiver_got(case, direction, &mut found);
        intervals_make_the_whole(case, direction, &mut found);
    }
    found
}

impl Case<'_> {
    /// Whether nothing of ours has a part in the row. The losses that `iperf -s` makes of its own
    /// while it opens a socket for each of several streams are not ours, who only tells them.
    fn foreign(&self, law: &str, row: &Row) -> bool {
        let counter_is_client = (row.side == Side::Sender) == (row.direction == Direction::Up);
        let of = |client: bool| if client { self.cell.client } else { self.cell.server };
        let printed = of(row.printer == Printer::Client);
        let retold = law == LOSSES && self.cell.protocol == Protocol::Iperf2;
        (printed == Program::Peer || retold) && of(counter_is_client) == Program::Peer
    }

    fn break_row(&self, found: &mut Vec<Violation>, law: &'static str, row: &Row, why: &str) {
        let who = match row.printer {
            Printer::Client => "client",
            Printer::Server => "server",
        };
        let what = format!("{why}\n    {who} printed: {}", row.text);
        found.push(Violation { law, what, foreign: self.foreign(law, row) });
    }

    /// What was counted at the end that sends, and at the one that receives.
    fn ends(&self, direction: Direction) -> (&Counted, &Counted) {
        let [client, server] = &self.outcome.counted;
        match direction {
            Direction::Up => (client, server),
            Direction::Down => (server, client),
        }
    }

    /// Payload that senders may have handed over and that has not crossed the path.
    fn buffered(&self) -> f64 {
        let one = if self.cell.udp { UDP_SEND_BUFFER } else { SEND_BUFFER };
        f64::from(self.cell.streams) * one
    }

    /// Payload that may be between the two ends.
    fn under_way(&self) -> f64 {
        self.buffered() + f64::from(self.cell.limits.queue_bytes)
    }

    /// Payload between the omitted span's end at one end and at the other: what is on the way, and
    /// what the path carries meanwhile. Each end has its own clock, and a thread that may be late.
    fn between_omissions(&self) -> f64 {
        if self.cell.flag != Flag::Omit {
            return 0.0;
        }
        let late = INTERVAL_SLACK + 2.0 * self.stall;
        self.under_way() + self.cell.limits.payload(self.cell.udp, late)
    }

    /// Seconds that the link needs for what waits before it, and for the stalls.
    fn late(&self) -> f64 {
        let queued = f64::from(self.cell.limits.queue_bytes) + self.buffered();
        queued / self.cell.limits.ceiling_bps(self.cell.udp) * 8.0 + self.stall
    }

    /// See [`Cell::joined`].
    fn joined(&self, row: &Row) -> f64 {
        f64::from(self.cell.joined(row.direction == Direction::Up))
    }

    /// Payload bytes that may be counted on a side in `seconds`.
    fn bound(&self, row: &Row, seconds: f64) -> f64 {
        let path = self.cell.limits.payload(self.cell.udp, seconds) * (1.0 + SLACK);
        if row.side == Side::Receiver {
            return path;
        }
        let (own, _) = self.ends(row.direction);
        // A queue that cannot hold what the sockets let through drops, and that was sent too.
        let dropped = if self.cell.udp && !self.cell.queue_holds_sockets() {
            f64::from(own.queue.drops) * 1472.0 * self.joined(row)
        } else {
            0.0
        };
        path + self.buffered() + dropped
    }
}

/// L0: a test over a sound path ends by itself, well, and with a figure.
fn it_ends_well(case: &Case<'_>, found: &mut Vec<Violation>) {
    let Outcome { code, hung, client, client_errors, .. } = case.outcome;
    let both_ours = case.cell.client == Program::Peer && case.cell.server == Program::Peer;
    let mut say = |what: String| {
        found.push(Violation { law: "L0 ends well", what, foreign: both_ours });
    };
    if *hung {
        say("the client did not end".to_owned());
    } else if *code != Some(0) {
        let in_document = client.lines().find(|line| line.contains("\"error\""));
        let said = [client_errors.trim_end(), in_document.unwrap_or("").trim()].concat();
        say(format!("the client ended with {code:?}: {said}"));
    } else if !is_one_sided(case.cell)
        && !case.rows.iter().any(|row| {
            row.printer == Printer::Client && row.rate_bps.is_some_and(|rate| rate.value > 0.0)
        })
    {
        say("the client printed no rate".to_owned());
    }
}

/// What arrives of datagrams of ttcp, only the other end can say.
fn is_one_sided(cell: &Cell) -> bool {
    cell.protocol == Protocol::Ttcp && cell.udp && cell.client == Program::Linerate
}

/// L1: no printed rate above what the path can carry in that time.
fn no_rate_above_the_path(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let Some(rate) = row.rate_bps else { return };
    let planned = case.cell.seconds().unwrap_or(0.0);
    let seconds = row.seconds.map_or(planned, |seconds| seconds.high());
    if seconds <= 0.0 || row.seconds.is_none() && planned <= 0.0 {
        return;
    }
    // A thread that was kept waiting finds more in its socket than came in the interval.
    let late = if row.is_interval { INTERVAL_SLACK + 2.0 * case.stall } else { case.stall };
    let bound = case.bound(row, seconds + late) * 8.0 / seconds;
    if rate.low() > bound {
        let why = format!(
            "{:.2} Mbit/s in {seconds:.3} s; the link's ceiling is {:.2}, with burst{} {:.2}",
            rate.value / 1e6,
            case.cell.limits.ceiling_bps(case.cell.udp) / 1e6,
            if row.side == Side::Sender { " and buffers" } else { "" },
            bound / 1e6,
        );
        case.break_row(found, "L1 rate of the path", row, &why);
    }
}

/// L1 again, of the sum of the first intervals: an interval may bring what another was late with,
/// all of them together may not.
fn prefixes_fit_the_path(case: &Case<'_>, direction: Direction, found: &mut Vec<Violation>) {
    for printer in [Printer::Client, Printer::Server] {
        for side in [Side::Sender, Side::Receiver] {
            let rows = counted_rows(case, (printer, direction, side), true);
            let Some(first) = rows.first() else { continue };
            let mut bytes = 0.0;
            for row in &rows {
                let (Some(seconds), Some(got)) = (row.seconds, row.bytes) else { break };
                bytes += got.low();
                let end = row.start + seconds.high() - first.start;
                let bound = case.bound(row, end + case.stall + INTERVAL_SLACK);
                if bytes > bound {
                    let why = format!("{bytes:.0} bytes by {end:.3} s, at most {bound:.0} fit");
                    case.break_row(found, "L1 intervals add up", row, &why);
                    break;
                }
            }
        }
    }
}

/// Rows of sums, or of the only stream, that count.
fn counted_rows<'a>(
    case: &'a Case<'_>,
    (printer, direction, side): (Printer, Direction, Side),
    is_interval: bool,
) -> Vec<&'a Row> {
    let of = |row: &&Row| {
        (row.printer, row.direction, row.side) == (printer, direction, side)
            && row.is_interval == is_interval
            && row.stream.is_none()
            && !row.omitted
    };
    case.rows.iter().filter(of).collect()
}

/// L2: rate, time and bytes of a row are of the same thing.
fn rate_times_time_is_bytes(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let (Some(rate), Some(seconds), Some(bytes)) = (row.rate_bps, row.seconds, row.bytes) else {
        return;
    };
    let low = rate.low() * seconds.low() * (1.0 - SLACK / 2.0);
    let high = rate.high() * seconds.high() * (1.0 + SLACK / 2.0);
    if bytes.high() * 8.0 < low || bytes.low() * 8.0 > high {
        let why = format!("{:.0} bit are not {low:.0} to {high:.0}", bytes.value * 8.0);
        case.break_row(found, "L2 rate x time = bytes", row, &why);
    }
}

/// L2: the time of a row is within the test: not longer than the client ran, and what was planned
/// with the time that the path needs for what still waits.
fn time_is_that_of_the_test(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let Some(seconds) = row.seconds else { return };
    let ran = case.outcome.seconds;
    if seconds.low() > ran + case.stall {
        let why = format!("{:.3} s of a client that ran for {ran:.3} s", seconds.value);
        case.break_row(found, "L2 time of the test", row, &why);
    }
    let Some(planned) = case.cell.seconds().filter(|_| !row.is_interval) else { return };
    // Sockets whose buffers grew hold more than most: what was taken must cross the path too.
    let streams = if row.stream.is_some() { f64::from(case.cell.streams) } else { 1.0 };
    let taken = row.bytes.map_or(0.0, |bytes| bytes.value * 8.0) * streams;
    let crossing = taken / case.cell.limits.ceiling_bps(case.cell.udp) + case.stall;
    let most = crossing.max(planned + 2.0 * case.late()) + 0.5;
    // A stream of several may have nothing to send or read at the end.
    let short = row.stream.is_none() && seconds.high() < 0.9 * planned - case.stall;
    if seconds.low() > most || short {
        let why = format!("{:.3} s of {planned} s, at most {most:.3}", seconds.value);
        case.break_row(found, "L2 time of the test", row, &why);
    }
}

/// L2: what arrived came over the interface, and what was sent went into the queue.
fn bytes_crossed_the_interface(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let Some(bytes) = row.bytes.filter(|_| !row.is_interval) else { return };
    let (own, far) = case.ends(row.direction);
    let (bound, where_to) = match row.side {
        Side::Receiver => (far.rx_bytes as f64, "came in"),
        Side::Sender => {
            let dropped = f64::from(own.queue.drops) * 1514.0 * case.joined(row);
            let sent = own.queue.bytes as f64 + dropped;
            (sent + case.buffered(), "went out, were dropped or could wait")
        }
    };
    if bytes.low() > bound {
        let why = format!("{:.0} bytes, of which {bound:.0} {where_to}", bytes.value);
        case.break_row(found, "L2 bytes crossed", row, &why);
    }
}

/// L2: nobody receives what was not sent.
fn sender_has_what_the_receiver_got(
    case: &Case<'_>,
    direction: Direction,
    found: &mut Vec<Violation>,
) {
    for printer in [Printer::Client, Printer::Server] {
        let whole = |side| counted_rows(case, (printer, direction, side), false);
        let (senders, receivers) = (whole(Side::Sender), whole(Side::Receiver));
        let (Some(sent), Some(got)) = (senders.first(), receivers.first()) else { continue };
        let (Some(sent), Some(bytes)) = (sent.bytes, got.bytes) else { continue };
        // What was on the way when the omitted span ended was sent before it and arrives after.
        if bytes.low() > sent.high() + case.between_omissions() {
            let why = format!("{:.0} received of {:.0} sent", bytes.value, sent.value);
            case.break_row(found, "L2 sent before received", got, &why);
        }
    }
}

/// L2: intervals are the parts of the whole, to the byte as far as digits show.
fn intervals_make_the_whole(case: &Case<'_>, direction: Direction, found: &mut Vec<Violation>) {
    for printer in [Printer::Client, Printer::Server] {
        for side in [Side::Sender, Side::Receiver] {
            let parts = counted_rows(case, (printer, direction, side), true);
            let whole = counted_rows(case, (printer, direction, side), false);
            let Some(total) = whole.iter().find(|row| row.bytes.is_some()) else { continue };
            let Some(bytes) = total.bytes.filter(|_| !parts.is_empty()) else { continue };
            let all = parts.iter().filter_map(|row| row.bytes);
            let (low, high) =
                all.fold((0.0, 0.0), |(low, high), it| (low + it.low(), high + it.high()));
            let untold = parts.iter().any(|row| row.bytes.is_none());
            // Of datagrams those count that were sent after the omitted span, and a row has those
            // that came in its time: what was under way when the span ended is between them.
            let between = if case.cell.udp { case.between_omissions() } else { 0.0 };
            let most = high + between + untold_rest(case, &parts, total);
            if low > bytes.high() + between || (most < bytes.low() && !untold) {
                let why = format!(
                    "intervals of {:.0} bytes ± {:.0}, {:.0} in all",
                    (low + high) / 2.0,
                    (high - low) / 2.0,
                    bytes.value
                );
                case.break_row(found, ADD_UP, total, &why);
            }
        }
    }
}

/// Lines of intervals of iperf 2 and nuttcp leave out the rest after the last whole one, also
/// between two of their own: what the path carries in the time that lies between the printed ends.
fn untold_rest(case: &Case<'_>, parts: &[&Row], total: &Row) -> f64 {
    let Some(seconds) = total.seconds else { return 0.0 };
    if !matches!(case.cell.protocol, Protocol::Iperf2 | Protocol::Nuttcp) {
        return 0.0;
    }
    let told = parts.iter().filter_map(|row| row.seconds).map(Figure::low).sum::<f64>();
    let left = (seconds.high() - told).max(0.0);
    let rest = match tells_rest(case.cell, total) {
        true if left > NO_TIME => 0.0,
        // What came before a late row and was counted after it.
        true => case.bound(total, INTERVAL_SLACK + case.stall),
        false => case.bound(total, left + case.stall),
    };
    rest + said_ends(case.cell, total)
}

/// A client of iperf 2 counts the datagram that says the end of each stream in its whole alone.
fn said_ends(cell: &Cell, total: &Row) -> f64 {
    let sends = total.printer == Printer::Client && total.side == Side::Sender;
    match cell.protocol == Protocol::Iperf2 && cell.udp && sends {
        true => f64::from(cell.streams) * 1470.0,
        false => 0.0,
    }
}

/// Whether the rows have that rest too, as ours do. The end that receives words nuttcp's.
fn tells_rest(cell: &Cell, row: &Row) -> bool {
    let nuttcp = cell.protocol == Protocol::Nuttcp;
    let by_client = match nuttcp {
        true => row.direction == Direction::Down,
        false => row.printer == Printer::Client,
    };
    let program = if by_client { cell.client } else { cell.server };
    program != Program::Peer
}

/// L3: what is called lost was dropped somewhere, and the sender's own queue is not the path.
fn losses_are_drops(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let Some((lost, all)) = row.lost.filter(|_| case.cell.udp && !row.is_interval) else { return };
    let (own, far) = case.ends(row.direction);
    let (joined, lost_count) = (case.joined(row), lost as f64);
    let dropped = f64::from(own.queue.drops) * joined + far.socket_drops as f64;
    if lost_count > dropped {
        let why = format!("{lost} lost of {all}; the kernel dropped {dropped}");
        case.break_row(found, LOSSES, row, &why);
    }
    let handed = (own.queue.packets + u64::from(own.queue.drops)) as f64 * joined;
    let waiting = f64::from(case.cell.streams) * 2.0;
    if all as f64 - waiting > handed {
        let why = format!("{all} datagrams, of which {handed} went into the queue");
        case.break_row(found, "L3 sent went out", row, &why);
    }
}

/// L4: a pace is kept to 1 %, or the output says that it was not. More only by what became due
/// while the first datagram waited for a CPU; less only where the host was idle.
fn pace_is_kept(case: &Case<'_>, row: &Row, found: &mut Vec<Violation>) {
    let cell = case.cell;
    let asked = matches!(cell.flag, Flag::Below | Flag::Bytes) && !row.is_interval;
    let (Some(pace), Some(bytes), Some(seconds)) = (cell.pace_bps(), row.bytes, row.seconds) else {
        return;
    };
    if !asked || row.side != Side::Sender || cell.protocol == Protocol::Ttcp {
        return;
    }
    let streams = if row.stream.is_some() { 1.0 } else { f64::from(cell.streams) };
    let pace = pace * streams / 8.0;
    // A buffer in work for each stream, of TCP 128 KiB in iperf and 512 KiB of our own.
    let buffer = if cell.udp { 2.0 * 1472.0 } else { 2.0 * 524_288.0 };
    let most = pace * 1.01 * (seconds.high() + case.stall) + buffer * streams;
    if bytes.low() > most {
        let why = format!("{:.0} bytes, the pace allows {most:.0}", bytes.value);
        case.break_row(found, "L4 pace exceeded", row, &why);
    }
    let said =
        case.outcome.client.contains("pace_not_kept") || case.outcome.client.contains("asked pace");
    let (Some(planned), true) = (cell.seconds(), case.stall < 0.010 && !said) else { return };
    // Both ways each end's time begins and ends with the other's word.
    let slack = if cell.way == Way::Forward { 0.010 } else { 0.030 };
    let least = pace * (planned - slack - case.stall) * 0.99 - buffer * streams;
    if bytes.high() < least {
        let why = format!("{:.0} bytes, the pace wants {least:.0}", bytes.value);
        case.break_row(found, "L4 pace not kept", row, &why);
    }
}

/// L5: where no data can have arrived, or the server died, the client does not exit 0.
fn nothing_received_is_no_success(case: &Case<'_>, found: &mut Vec<Violation>) {
    let Outcome { code, hung, .. } = case.outcome;
    let what = if *hung {
        format!("the client hung for {:.0} s", case.outcome.seconds)
    } else if *code == Some(0) {
        "the client ended with 0".to_owned()
    } else {
        return;
    };
    let tail: Vec<&str> = case.outcome.client.lines().rev().take(4).collect();
    let what = format!("{what}: {} {}", tail.join(" | "), case.outcome.client_errors.trim_end());
    found.push(Violation { law: "L5 nothing is no success", what, foreign: false });
}
