//! Words for what a record holds: ends, directions, ceilings, caveats. Used by text and HTML.

use linerate_core::record::{
    Caveat, CaveatCode, Ceiling, CeilingInput, Direction, End, Finish, Interface, Layer, PingMode,
    PingTransport, Record, TcpDirections,
};

use crate::number;

/// What data does, seen from the client.
pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
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

/// How probes leave.
pub(crate) fn ping_mode(mode: PingMode, interval_ns: u64) -> String {
    match mode {
        PingMode::Paced => format!("one every {}", number::seconds(interval_ns as f64)),
        PingMode::Flood => "flood (stop and wait)".to_owned(),
        PingMode::Window(probes) => format!("flood with {probes} in flight"),
    }
}

/// How probes travel.
pub(crate) const fn transport(transport: PingTransport) -> &'static str {
    match transport {
        PingTransport::Icmp => "ICMP echo",
        PingTransport::Udp => "UDP echo",
    }
}

/// `1 stream`, `2 streams`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// One end of the path in one line; empty when nothing is known.
pub(crate) fn end(end: &End) -> String {
    let mut parts = Vec::new();
    parts.extend(end.kernel.clone());
    parts.extend(end.cpu_model.clone());
    parts.extend(end.cpus.map(|cpus| counted(cpus.into(), "CPU")));
    parts.extend(end.congestion_control_default.as_ref().map(|name| format!("default {name}")));
    parts.extend(end.clocksource.as_ref().map(|name| format!("clock {name}")));
    parts.extend(end.interface.as_ref().map(interface));
    parts.extend(end.version.as_ref().map(|version| format!("linerate {version}")));
    parts.join(", ")
}

fn interface(interface: &Interface) -> String {
    let mut text = format!("via {}", interface.name);
    let mut facts = Vec::new();
    facts.extend(interface.kind.clone().filter(|kind| *kind != interface.name));
    facts.extend(interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    facts.extend(interface.speed_bps.map(|bps| number::rate(bps as f64)));
    facts.extend(interface.shaper_bps.map(|bps| format!("shaped to {}", number::rate(bps as f64))));
    if !facts.is_empty() {
        text.push_str(&format!(" ({})", facts.join(", ")));
    }
    text
}

/// The layer of a rate.
pub(crate) const fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Payload => "payload",
        Layer::Ip => "IP packets",
        Layer::Frame => "frames",
        Layer::Wire => "on the wire",
    }
}

/// The ceiling in one line, with the share reached or the inputs that are not known.
pub(crate) fn ceiling(ceiling: &Ceiling) -> String {
    let inputs: Vec<String> = ceiling.inputs.iter().map(ceiling_input).collect();
    let inputs =
        if inputs.is_empty() { String::new() } else { format!(" ({})", inputs.join("; ")) };
    let Some(value) = ceiling.value else {
        let unknown = match ceiling.unknown.as_slice() {
            [] => "an input".to_owned(),
            names => names.join("; "),
        };
        return format!("ceiling unknown{inputs}, for want of {unknown}");
    };
    let value = match ceiling.metric.row().unit {
        "bit/s" => number::rate(value),
        unit => format!("{} {unit}", number::significant(value, 5)),
    };
    let reached = number::or_dash(ceiling.share, number::percent);
    format!("ceiling {value} {}{inputs}: reached {reached}", layer(ceiling.layer))
}

fn ceiling_input(input: &CeilingInput) -> String {
    let value = input.value;
    let from = if input.source.is_empty() { String::new() } else { format!(", {}", input.source) };
    match input.name.as_str() {
        "mtu_bytes" => format!("MTU {value}"),
        "tcp_header_bytes" if value == 20.0 => "TCP without options".to_owned(),
        "tcp_header_bytes" if value == 32.0 => "TCP with timestamps".to_owned(),
        "tcp_header_bytes" => format!("TCP header of {value} bytes"),
        "packet_bytes" => format!("packets of {value} bytes"),
        "header_bytes" => format!("headers of {value} bytes{from}"),
        name if name.ends_with("_bps") => format!("{}{from}", number::rate(value)),
        name => match name.strip_suffix("_bytes") {
            Some(name) => format!("{} {value} bytes", name.replace('_', " ")),
            None => format!("{} {value}", name.replace('_', " ")),
        },
    }
}

/// The code of a caveat as it is stored.
pub(crate) fn caveat_code(code: CaveatCode) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{code:?}"),
    }
}

/// True when the instrument or its host shaped the number: such a caveat comes before the number.
pub(crate) const fn is_own_limit(code: CaveatCode) -> bool {
    matches!(
        code,
        CaveatCode::CpuBound
            | CaveatCode::RunQueueWait
            | CaveatCode::ReceiveDrops
            | CaveatCode::LateSends
            | CaveatCode::CoarseClock
            | CaveatCode::PaceNotKept
    )
}

/// The caveats about the instrument itself, then all others.
pub(crate) fn caveats(record: &Record) -> (Vec<&Caveat>, Vec<&Caveat>) {
    record.caveats.iter().partition(|caveat| is_own_limit(caveat.code))
}

/// Text broken into lines of at most `width` columns where there is a space to break at; every
/// line starts with `indent` spaces and is ended.
pub(crate) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
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
    use linerate_core::record::MetricId;

    use super::*;

    #[test]
    fn a_ceiling_names_its_inputs_and_the_share() {
        // 1500 - 52 bytes of 1538 on the wire: 1448/1538 of 1 Gbit/s is 941.48 Mbit/s.
        let input = |name: &str, value: f64, source: &str| CeilingInput {
            name: name.to_owned(),
            value,
            source: source.to_owned(),
        };
        let mut it = Ceiling {
            metric: MetricId::Goodput,
            layer: Layer::Payload,
            value: Some(941_482_444.7),
            inputs: vec![
                input("link_rate_bps", 1e9, "speed of eth0"),
                input("packet_bytes", 1500.0, "the sender's segments"),
                input("header_bytes", 52.0, "IP and TCP with timestamps"),
            ],
            unknown: vec![],
            share: Some(0.991),
        };
        assert_eq!(
            ceiling(&it),
            "ceiling 941.48 Mbit/s payload (1 Gbit/s, speed of eth0; packets of 1500 bytes; headers \
             of 52 bytes, IP and TCP with timestamps): reached 99.1 %"
        );
        it.value = None;
        it.inputs.clear();
        it.unknown = vec!["the rate of the link".to_owned()];
        assert_eq!(ceiling(&it), "ceiling unknown, for want of the rate of the link");
    }

    #[test]
    fn long_text_is_broken_at_spaces_and_loses_nothing() {
        assert_eq!(wrapped("aa bb cc", 2, 7), "  aa bb\n  cc\n");
        assert_eq!(wrapped("aaaaaaaaaa b", 0, 4), "aaaaaaaaaa\nb\n");
        assert_eq!(wrapped("", 2, 7), "  \n");
    }

    #[test]
    fn words_are_listed_as_in_a_sentence() {
        let words = |n: usize| ["a", "b", "c"][..n].iter().map(|w| (*w).to_owned()).collect();
        let listed_of = |n| listed(&Vec::<String>::from_iter::<Vec<String>>(words(n)));
        assert_eq!([listed_of(1), listed_of(2), listed_of(3)], ["a", "a and b", "a, b and c"]);
    }
}
