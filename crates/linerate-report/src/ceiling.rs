//! Words for ceilings: the bound of the link with its layer, inputs and the share reached, the
//! same bound at other layers, the further bounds, the smallest of them. What is unknown is named.

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, HeaderLayer, LINK, MetricId, Record, Rung, SHARE_MAX, Stat,
};

use crate::{number, words};

/// A bound this many times above the smallest one is left to the JSON.
const FAR: f64 = 10.0;
/// And so is one this many times above what was measured.
const FAR_ABOVE_MEASURED: f64 = 100.0;

/// The goodput of a whole direction, or what else its ceiling bounds.
pub(crate) fn measured(record: &Record, direction: Direction) -> Option<f64> {
    let bounded = record.ceiling_of(direction).map_or(MetricId::Goodput, |ceiling| ceiling.metric);
    record.summary_value(bounded, Stat::Value, Some(direction))
}

/// Everything about a ceiling, one remark each, beginning with the link.
pub(crate) fn remark_lines(ceiling: &Ceiling, measured: Option<f64>) -> Vec<String> {
    let mut out = vec![summary_line(ceiling)];
    out.extend(other_layers(ceiling));
    let near = |rung: &&Rung| rung.value.is_none_or(|value| is_near(ceiling, value, measured));
    let rungs = ceiling.rungs.iter().filter(near);
    let rungs: Vec<String> = rungs.map(|rung| rung_with_inputs(ceiling, rung)).collect();
    if !rungs.is_empty() {
        out.push(format!("further bounds: {}", rungs.join("; ")));
    }
    out.extend(expected(ceiling, measured));
    out
}

/// The ceiling in one line, with the share reached or the inputs that are not known.
pub(crate) fn summary_line(ceiling: &Ceiling) -> String {
    let mut text = value_with_inputs(ceiling);
    if ceiling.value.is_none() {
        return text;
    }
    let share = number::or_dash(ceiling.share, number::percent);
    if ceiling.is_exceeded() {
        text.push_str(&format!(": {share} of it was measured, so one of the two is wrong"));
    } else {
        text.push_str(&format!(": reached {share}"));
    }
    if !ceiling.unknown.is_empty() {
        text.push_str(&format!("; not known: {}", ceiling.unknown.join("; ")));
    }
    text
}

/// The ceiling with its layer and inputs, or what is missing; without what was measured.
pub(crate) fn value_with_inputs(ceiling: &Ceiling) -> String {
    if let Some(why) = &ceiling.no_link {
        return format!("no ceiling by a link: {why}");
    }
    let inputs = in_brackets(&ceiling.inputs);
    match ceiling.value {
        Some(value) => {
            format!(
                "ceiling {} {}{inputs}",
                value_with_unit(ceiling, value),
                words::layer_name(ceiling.layer)
            )
        }
        None => format!("ceiling unknown{inputs}, for want of {}", unknown(&ceiling.unknown)),
    }
}

/// The share of the ceiling for a narrow place: `99.1 % of the ceiling 941.48 Mbit/s`, or why
/// there is none.
pub(crate) fn brief_share(ceiling: Option<&Ceiling>) -> String {
    let Some(ceiling) = ceiling else { return "no ceiling was computed".to_owned() };
    match (ceiling.value, ceiling.share) {
        _ if ceiling.no_link.is_some() => "no link bounds loopback".to_owned(),
        (Some(value), Some(share)) => {
            let percent = number::percent(share);
            let wrong = if ceiling.is_exceeded() { ": one of the two is wrong" } else { "" };
            format!("{percent} of the ceiling {}{wrong}", value_with_unit(ceiling, value))
        }
        (Some(value), None) => format!("ceiling {}", value_with_unit(ceiling, value)),
        (None, _) => "no ceiling is known for this path".to_owned(),
    }
}

/// The same bound with the headers that other layers count in.
fn other_layers(ceiling: &Ceiling) -> Option<String> {
    let others = ceiling.layers.iter().filter(|at| at.layer != ceiling.layer);
    let each: Vec<String> = others
        .map(|at| {
            let layer = match at.layer {
                HeaderLayer::Payload => "of payload",
                HeaderLayer::Ip => "of IP packets",
                HeaderLayer::Frame => "of frames",
                HeaderLayer::Wire => "on the wire",
            };
            format!("{} {layer}", number::rate_with_unit(at.bps))
        })
        .collect();
    (!each.is_empty()).then(|| format!("that is {}", words::listed(&each)))
}

/// True if a further bound is printed. A window over the microseconds of a laboratory's cable
/// allows terabits per second, which is no useful bound.
fn is_near(ceiling: &Ceiling, value: f64, measured: Option<f64>) -> bool {
    let least = ceiling.expected().map_or(f64::INFINITY, |bound| bound.value);
    value <= FAR * least && measured.is_none_or(|measured| value <= FAR_ABOVE_MEASURED * measured)
}

fn rung_with_inputs(ceiling: &Ceiling, rung: &Rung) -> String {
    let name = spoken(&rung.kind);
    let inputs = in_brackets(&rung.inputs);
    match rung.value {
        Some(value) => format!("{name} {}{inputs}", value_with_unit(ceiling, value)),
        None => format!("{name} unknown{inputs}, for want of {}", unknown(&rung.unknown)),
    }
}

/// The smallest bound, where it is not the link.
pub(crate) fn expected(ceiling: &Ceiling, measured: Option<f64>) -> Option<String> {
    let bound = ceiling.expected().filter(|bound| bound.kind != LINK)?;
    if !is_near(ceiling, bound.value, measured) {
        return None;
    }
    let name = spoken(bound.kind);
    let mut text =
        format!("expected at most {} by the {name}", value_with_unit(ceiling, bound.value));
    if let Some(measured) = measured.filter(|_| bound.value > 0.0) {
        let share = number::percent(measured / bound.value);
        text.push_str(&if measured > bound.value * SHARE_MAX {
            format!(": {share} of it was measured, so one of the two is wrong")
        } else {
            format!(": reached {share}")
        });
    }
    Some(text)
}

/// A rung's kind in words.
pub(crate) fn spoken(kind: &str) -> String {
    match kind {
        LINK => "link".to_owned(),
        "application" => "pace".to_owned(),
        kind => kind.replace('_', " "),
    }
}

fn value_with_unit(ceiling: &Ceiling, value: f64) -> String {
    match ceiling.metric.table_row().unit {
        "bit/s" => number::rate_with_unit(value),
        unit => format!("{} {unit}", number::significant(value, 5)),
    }
}

fn unknown(names: &[String]) -> String {
    if names.is_empty() { "an input".to_owned() } else { names.join("; ") }
}

/// The inputs that a ceiling lacks, and the way in which the user can supply them.
pub(crate) fn wanting(names: &[String]) -> String {
    format!("not known for want of {}; --link 1g or --capacity RATE gives it", unknown(names))
}

pub(crate) fn in_brackets(inputs: &[CeilingInput]) -> String {
    let each: Vec<String> = inputs.iter().map(input_text).collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join("; ")) }
}

fn input_text(input: &CeilingInput) -> String {
    let value = input.value;
    let from = if input.source.is_empty() { String::new() } else { format!(", {}", input.source) };
    let spaced = if input.source.is_empty() { "" } else { &format!(" {}", input.source) };
    match input.name.as_str() {
        "mtu_bytes" => format!("MTU {value}{spaced}"),
        "vlan_tags" if value == 1.0 => "one VLAN tag".to_owned(),
        "vlan_tags" => format!("{value} VLAN tags"),
        "streams" => words::counted(value as u64, "stream"),
        "pace_bps" => format!("{} a stream", number::rate_with_unit(value)),
        "window_bytes" | "send_buffer_bytes" => format!("{}{from}", number::memory(value as u64)),
        "rtt_min_ns" => format!("smallest round trip {} ms", number::ms_to_microsecond(value)),
        "tcp_header_bytes" if value == 20.0 => "TCP without options".to_owned(),
        "tcp_header_bytes" if value == 32.0 => "TCP with timestamps".to_owned(),
        "tcp_header_bytes" => format!("TCP header of {value} bytes"),
        "packet_bytes" => format!("packets of {value} bytes{from}"),
        "header_bytes" => format!("headers of {value} bytes{from}"),
        name if name.ends_with("_bps") => format!("{}{from}", number::rate_with_unit(value)),
        name => match name.strip_suffix("_bytes") {
            Some(name) => format!("{} {value} bytes", name.replace('_', " ")),
            None => format!("{} {value}", name.replace('_', " ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::LayerRate;

    use super::*;

    fn gigabit() -> Ceiling {
        // 1500 - 52 bytes of 1538 on the wire: 1448/1538 of 1 Gbit/s is 941.48 Mbit/s.
        Ceiling {
            value: Some(941_482_444.7),
            inputs: vec![
                CeilingInput::from_value("link_rate_bps", 1e9, "speed of eth0"),
                CeilingInput::from_value("packet_bytes", 1500.0, "the MTU of eth0"),
                CeilingInput::from_value("header_bytes", 52.0, "IP and TCP with timestamps"),
            ],
            share: Some(0.991),
            ..Ceiling::of_goodput(Direction::Up)
        }
    }

    fn window(value: Option<f64>) -> Rung {
        Rung {
            kind: "receive_window".to_owned(),
            value,
            inputs: vec![
                CeilingInput::from_value("window_bytes", 65_536.0, "largest receive window seen"),
                CeilingInput::from_value("rtt_min_ns", 10e6, ""),
            ],
            unknown: Vec::new(),
            source: String::new(),
        }
    }

    #[test]
    fn a_ceiling_names_its_inputs_and_the_share() {
        assert_eq!(
            summary_line(&gigabit()),
            "ceiling 941.48 Mbit/s payload (1 Gbit/s, speed of eth0; packets of 1500 bytes, the \
             MTU of eth0; headers of 52 bytes, IP and TCP with timestamps): reached 99.1 %"
        );
        let bare = Ceiling { value: None, inputs: Vec::new(), ..gigabit() };
        let unknown = vec!["the rate of the link".to_owned()];
        let text = summary_line(&Ceiling { unknown: unknown.clone(), ..bare });
        assert_eq!(text, "ceiling unknown, for want of the rate of the link");
        let text = summary_line(&Ceiling { unknown, ..gigabit() });
        assert!(text.ends_with("reached 99.1 %; not known: the rate of the link"), "{text}");
    }

    #[test]
    fn more_than_the_ceiling_is_never_told_as_reached() {
        let above = Ceiling { share: Some(1.07), ..gigabit() };
        let text = summary_line(&above);
        assert!(text.ends_with("107 % of it was measured, so one of the two is wrong"), "{text}");
        assert!(brief_share(Some(&above)).ends_with("one of the two is wrong"));
    }

    #[test]
    fn loopback_and_the_unknown_say_so_in_brief_too() {
        let why = Some("lo is loopback, whose packets cross no link".to_owned());
        let loopback = Ceiling { no_link: why, ..Ceiling::of_goodput(Direction::Up) };
        assert_eq!(
            summary_line(&loopback),
            "no ceiling by a link: lo is loopback, whose packets cross no link"
        );
        assert_eq!(brief_share(Some(&loopback)), "no link bounds loopback");
        assert_eq!(brief_share(Some(&gigabit())), "99.1 % of the ceiling 941.48 Mbit/s");
        let unknown = Ceiling::of_goodput(Direction::Up);
        assert_eq!(brief_share(Some(&unknown)), "no ceiling is known for this path");
    }

    #[test]
    fn the_smallest_bound_is_expected_with_its_name() {
        // 65,536 bytes over 10 ms are 52.43 Mbit/s; 50 of them are 95.4 %.
        let mut ceiling = gigabit();
        ceiling.layers = vec![
            LayerRate { layer: HeaderLayer::Payload, bps: 941_482_444.7 },
            LayerRate { layer: HeaderLayer::Wire, bps: 1e9 },
        ];
        ceiling.rungs = vec![window(Some(52_428_800.0))];
        let lines = remark_lines(&ceiling, Some(50e6));
        assert_eq!(
            lines[1..],
            [
                "that is 1 Gbit/s on the wire",
                "further bounds: receive window 52.43 Mbit/s (64 KiB, largest receive window seen; \
                 smallest round trip 10.000 ms)",
                "expected at most 52.43 Mbit/s by the receive window: reached 95.4 %",
            ]
        );
        ceiling.rungs = vec![window(Some(9.5e9))];
        assert_eq!(remark_lines(&ceiling, None).len(), 2, "ten times the link is left out");
        let loopback = Ceiling { value: None, rungs: vec![window(Some(60e9))], ..gigabit() };
        assert_eq!(remark_lines(&loopback, Some(1e9)).len(), 3, "60 times what was measured");
        assert_eq!(remark_lines(&loopback, Some(0.5e9)).len(), 1, "120 times");
        assert!(expected(&ceiling, Some(50e6)).is_none(), "the link is the smallest");
        ceiling.rungs = vec![Rung { unknown: vec!["the window".to_owned()], ..window(None) }];
        assert!(rung_with_inputs(&ceiling, &ceiling.rungs[0]).ends_with("for want of the window"));
    }
}
