//! Words for what a record holds: ends, directions, caveats. Used by text and HTML.

use linerate_core::record::{
    Calibration, Caveat, CaveatCode, Direction, Finish, HeaderLayer, MeasurementEnd, MetricId,
    PingMode, PingTransport, Record, RecordedInterface, Stat, Summary, TcpDirections,
};

use crate::{escape, number};

/// Which figure of a round trip one is, and by which clock, behind it.
pub(crate) fn of_clock(row: &Summary) -> &'static str {
    match (row.metric, row.stat) {
        (MetricId::RttKernel, _) => " (median, kernel's clock)",
        (_, Stat::P50) => " (median)",
        _ => " (mean)",
    }
}

/// Direction of the data, seen from the client.
pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
    }
}

/// `up` is from the client to the server.
pub(crate) const fn up_or_down(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// The same as the first word of a line.
pub(crate) const fn way_capital(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "Up",
        Direction::Down => "Down",
    }
}

/// The ways of a whole test.
pub(crate) const fn directions(directions: TcpDirections) -> &'static str {
    match directions {
        TcpDirections::Up => "client to server",
        TcpDirections::Down => "server to client",
        TcpDirections::Both => "both ways at once",
    }
}

/// The directions that a test has.
pub(crate) const fn each_direction(directions: TcpDirections) -> &'static [Direction] {
    match directions {
        TcpDirections::Up => &[Direction::Up],
        TcpDirections::Down => &[Direction::Down],
        TcpDirections::Both => &[Direction::Up, Direction::Down],
    }
}

/// When a test was to end.
pub(crate) fn finish(finish: Finish) -> String {
    match finish {
        Finish::TimeNs(ns) => number::seconds(ns as f64),
        Finish::Bytes(bytes) => number::amount(bytes),
        Finish::Buffers(buffers) => format!("{buffers} buffers"),
    }
}

/// The way in which probes are paced: at an interval, after each answer, or with a number in
/// flight.
pub(crate) fn ping_mode(mode: PingMode, interval_ns: u64) -> String {
    match mode {
        PingMode::Paced => format!("one every {}", number::seconds(interval_ns as f64)),
        PingMode::Flood => "flood (stop and wait)".to_owned(),
        PingMode::Window(probes) => format!("flood with {probes} in flight"),
    }
}

/// The protocol that carries the probes.
pub(crate) const fn transport(transport: PingTransport) -> &'static str {
    match transport {
        PingTransport::Icmp => "ICMP echo",
        PingTransport::Udp => "UDP echo",
        PingTransport::Stamp => "STAMP",
        PingTransport::Tcp => "TCP handshake",
        PingTransport::WebSocket => "WebSocket messages of a browser",
    }
}

/// A class of service by its usual name: `BE`, `CS1`, `EF`, `AF41`, else `DSCP 1` (RFC 2474 §4.2.2,
/// RFC 2597 §6, RFC 3246 §2.7).
pub(crate) fn class_name(dscp: u8) -> String {
    let (class, precedence) = (dscp >> 3, dscp & 0b111);
    match (class, precedence) {
        (0, 0) => "BE".to_owned(),
        (5, 6) => "EF".to_owned(),
        (_, 0) => format!("CS{class}"),
        (1..=4, 2 | 4 | 6) => format!("AF{class}{}", precedence / 2),
        _ => format!("DSCP {dscp}"),
    }
}

/// `1 stream`, `2 streams`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = match noun.ends_with("ch") {
        _ if count == 1 => "",
        true => "es",
        false => "s",
    };
    format!("{count} {noun}{ending}")
}

/// One end of the path in one line; empty when nothing is known.
pub(crate) fn end_in_words(end: &MeasurementEnd) -> String {
    let mut parts = Vec::new();
    parts.extend(end.kernel.clone());
    parts.extend(end.cpu_model.clone());
    parts.extend(end.cpus.map(|cpus| counted(cpus.into(), "CPU")));
    parts.extend(end.congestion_control_default.as_ref().map(|name| format!("default {name}")));
    parts.extend(end.clocksource.as_ref().map(|name| format!("clock {name}")));
    parts.extend(end.interface.as_ref().map(interface));
    // Another program's version has that program's name before it.
    let version = |version: &String| match version.contains(' ') {
        true => version.clone(),
        false => format!("linerate {version}"),
    };
    parts.extend(end.version.as_ref().map(version));
    parts.join(", ")
}

/// The time that a host adds to the delays it measures.
pub fn calibration(found: &Calibration, tick_ns: Option<f64>) -> String {
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let mut parts = Vec::new();
    parts.extend(tick_ns.map(|ns| format!("clock steps by {ns:.0} ns")));
    parts.push(format!("a reading takes {:.0} ns", found.reading_ns));
    parts.extend(found.floor_ns.map(|floor| {
        let stddev = found.floor_stddev_ns.map(|ns| format!("stddev {}", us(ns)));
        let difference = found.floor_difference_ns.map(|ns| format!("A/A {}", us(ns)));
        let beside: Vec<String> = stddev.into_iter().chain(difference).collect();
        format!("an echo on loopback {} us ({})", us(floor), beside.join(", "))
    }));
    parts.extend(found.oversleep_ns.map(|ns| format!("a sleep ends {} us late", us(ns as f64))));
    parts.join(", ")
}

fn interface(interface: &RecordedInterface) -> String {
    let mut text = format!("via {}", interface.name);
    let mut facts = Vec::new();
    facts.extend(interface.kind.clone().filter(|kind| *kind != interface.name));
    facts.extend(interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    facts.extend(interface.vlan_tags.filter(|tags| *tags > 0).map(|tags| {
        let under = interface.lower.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        format!("{}{under}", counted(tags.into(), "VLAN tag"))
    }));
    facts.extend(interface.speed_bps.map(|bps| number::rate_with_unit(bps as f64)));
    facts.extend(
        interface.shaper_bps.map(|bps| format!("shaped to {}", number::rate_with_unit(bps as f64))),
    );
    if !facts.is_empty() {
        text.push_str(&format!(" ({})", facts.join(", ")));
    }
    text
}

/// The layer of a rate.
pub(crate) const fn layer_name(layer: HeaderLayer) -> &'static str {
    match layer {
        HeaderLayer::Payload => "payload",
        HeaderLayer::Ip => "IP packets",
        HeaderLayer::Frame => "frames",
        HeaderLayer::Wire => "on the wire",
    }
}

/// True when the instrument or its host shaped the number: such a caveat comes before the number.
pub(crate) const fn is_own_limit(code: CaveatCode) -> bool {
    matches!(
        code,
        CaveatCode::CpuBound
            | CaveatCode::RunQueueWait
            | CaveatCode::ReceiveDrops
            | CaveatCode::OwnInterfaceDrops
            | CaveatCode::LateSends
            | CaveatCode::CoarseClock
            | CaveatCode::PaceNotKept
            | CaveatCode::EmulatorLate
            | CaveatCode::TesterLimited
    )
}

/// The caveats about the instrument itself, then all others.
pub(crate) fn caveats(record: &Record) -> (Vec<&Caveat>, Vec<&Caveat>) {
    // An emulator's slips within its tolerance limit nothing.
    let slipped =
        |code| code == CaveatCode::EmulatorLate && !record.paths.iter().any(|path| path.late);
    let own = |caveat: &&Caveat| is_own_limit(caveat.code) && !slipped(caveat.code);
    record.caveats.iter().partition(own)
}

/// Units that stay beside their number at the end of a line.
const UNITS: &[&str] = &[
    "%", "ms", "s", "ns", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "bytes", "bit/s",
    "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "s/GB", "dB",
];

/// The words of a text, a number with its unit as one.
pub(crate) fn unparted(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut end = text.find(' ').unwrap_or(text.len());
        let is_digit = |c: char| c.is_ascii_digit();
        if let Some(after) = text.get(end + 1..).filter(|_| text[..end].ends_with(is_digit)) {
            let next = after.split(' ').next().unwrap_or_default();
            if UNITS.contains(&next.trim_end_matches([',', ';', '.', ')', ':'])) {
                end += 1 + next.len();
            }
        }
        rest = text.get(end + 1..);
        Some(&text[..end])
    })
}

/// Text broken into lines of at most `width` columns where there is a space to break at; every
/// line starts with `indent` spaces and is ended.
pub(crate) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in unparted(text) {
        let longer = indent + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && longer > width {
            out.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + &format!("{:indent$}{line}\n", "")
}

/// A line as it fits a terminal, ended: what does not fit goes on below, set in.
pub fn folded(text: &str, width: Option<usize>) -> String {
    let lines = wrapped(&escape::without_controls(text), 2, width.unwrap_or(usize::MAX));
    lines.get(2..).unwrap_or_default().to_owned()
}

/// Remarks are broken at this width, or at the terminal's where that is less.
pub(crate) const COLUMNS: usize = 100;

/// Words joined as in a sentence: `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_spaces_and_loses_nothing() {
        assert_eq!(wrapped("aa bb cc", 2, 7), "  aa bb\n  cc\n");
        assert_eq!(wrapped("aaaaaaaaaa b", 0, 4), "aaaaaaaaaa\nb\n");
        assert_eq!(wrapped("", 2, 7), "  \n");
        assert_eq!(wrapped("took 12 ms, 3 %", 0, 8), "took\n12 ms,\n3 %\n");
    }

    #[test]
    fn words_are_listed_as_in_a_sentence() {
        let words = |n: usize| ["a", "b", "c"][..n].iter().map(|w| (*w).to_owned()).collect();
        let listed_of = |n| listed(&Vec::<String>::from_iter::<Vec<String>>(words(n)));
        assert_eq!([listed_of(1), listed_of(2), listed_of(3)], ["a", "a and b", "a, b and c"]);
    }
}
