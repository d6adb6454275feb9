//! The document of a path's ceiling: layers, bounds, what filling the path takes, times of
//! transfers.
//!
//! One unit of rate is used throughout, chosen by the line. Estimates say so where they stand.

use linerate_core::record::{CeilingInput, IpFamily};
use linerate_core::theory::ladder::{
    CeilingRung, LossBudget, MeasuredShare, Needs, PathCeiling, Propagation, Response, RungKind,
    Statement, TransferTime,
};

use crate::document::{Align, Block, Document, Fact, ReportSection, ReportTable};
use crate::number::{self, NONE, or_dash};
use crate::words;

/// The page of a ceiling: rates by layer, rungs, the lowest of them in a sentence, and the inputs
/// that are missing.
pub fn document(ceiling: &PathCeiling) -> Document {
    let unit = RateUnit::for_line_rate(ceiling.layers.first().map_or(0.0, |line| line.rate_bps));
    let measured = ceiling.measured.as_ref().map(|measured| measured_words(ceiling, measured));
    let said = std::iter::once(verdict(ceiling)).chain(measured).chain(missing(ceiling));
    let mut sections = vec![layers(ceiling, unit), rungs_section(ceiling, unit), paragraphs(said)];
    sections.extend(ceiling.needs.as_ref().map(needed));
    sections.extend((!ceiling.transfers.is_empty()).then(|| transfers(ceiling, unit)));
    sections.extend(
        ceiling.propagation.as_ref().map(|propagation| paragraphs([light_in_fibre(propagation)])),
    );
    Document { title: title_line(ceiling), sections, ..Document::default() }
}

fn paragraphs(texts: impl IntoIterator<Item = String>) -> ReportSection {
    ReportSection::after_blank_line("", texts.into_iter().map(Block::Text))
}

/// The unit of a table of rates.
#[derive(Clone, Copy)]
struct RateUnit {
    name: &'static str,
    bps: f64,
}

impl RateUnit {
    fn for_line_rate(line_bps: f64) -> Self {
        match line_bps {
            slow if slow < 1e6 => Self { name: "kbit/s", bps: 1e3 },
            fast if fast >= 100e9 => Self { name: "Gbit/s", bps: 1e9 },
            _ => Self { name: "Mbit/s", bps: 1e6 },
        }
    }

    fn format_bps(self, bps: f64) -> String {
        format!("{:.3}", bps / self.bps)
    }
}

fn title_line(ceiling: &PathCeiling) -> String {
    let asked = &ceiling.asked;
    let mut text = format!("{}, {}", asked.link_title, asked.carrier_title);
    if !asked.encapsulations.is_empty() {
        text.push_str(&format!(", packets in {}", asked.encapsulations.join(", ")));
    }
    let transport = match asked.transport.as_str() {
        "udp" => "UDP",
        "tcp_with_timestamps" => "TCP with timestamps",
        _ => "TCP",
    };
    let family = match asked.family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    };
    text.push_str(&format!(", MTU {}; {transport} over {family}", asked.mtu_bytes));
    text.push_str(&format!(", {}", words::counted(asked.flows.into(), "flow")));
    text + &asked
        .congestion_control
        .map_or_else(String::new, |congestion| format!(", {}", response(congestion)))
}

const fn response(response: Response) -> &'static str {
    match response {
        Response::Reno => "Reno",
        Response::Cubic => "CUBIC",
        Response::Bbr => "BBR",
    }
}

fn layers(ceiling: &PathCeiling, unit: RateUnit) -> ReportSection {
    let title = format!(
        "Capacity by layer, full packets back to back: {:.2} packets/s, {} bytes of payload each",
        ceiling.packets_per_s, ceiling.payload_bytes
    );
    let rows = ceiling.layers.iter().map(|layer| {
        let estimate = if layer.estimate { " (estimate)" } else { "" };
        [
            layer.name.clone(),
            unit.format_bps(layer.rate_bps),
            format!("{:.2} %", layer.line_ratio * 100.0),
            decimals(layer.bytes_per_packet),
            format!("{}{estimate}", layer.rule),
        ]
    });
    let names = ["layer", unit.name, "of line", "bytes/packet", "overhead"];
    ReportSection::after_blank_line(title, [Block::Table(explained(&names).with_rows(rows))])
}

/// An empty table whose last column explains the row.
fn explained(names: &[&str]) -> ReportTable {
    let align = |at| match at {
        0 => Align::Left,
        _ if at + 1 == names.len() => Align::Prose,
        _ => Align::Right,
    };
    ReportTable::from_columns(names.iter().enumerate().map(|(at, name)| (*name, align(at))))
}

/// A number of bytes: whole where it is, two decimals where it is not.
fn decimals(bytes: f64) -> String {
    let text = format!("{bytes:.2}");
    text.strip_suffix(".00").map_or_else(|| text.clone(), str::to_owned)
}

fn rungs_section(ceiling: &PathCeiling, unit: RateUnit) -> ReportSection {
    let rows = ceiling.rungs.rungs.iter().map(|rung| {
        let inputs: Vec<String> = rung.inputs.iter().filter_map(input_text).collect();
        [
            rung_name(rung.kind).to_owned(),
            rate_range(rung, unit),
            binding_mark(ceiling, rung),
            format!("{}; {}", rung.formula, inputs.join(", ")),
        ]
    });
    let table = explained(&["bound", unit.name, "", "formula; inputs"]).with_rows(rows);
    ReportSection::after_blank_line(
        format!("Bounds, in {} of payload", unit.name),
        [Block::Table(table)],
    )
}

fn rate_range(rung: &CeilingRung, unit: RateUnit) -> String {
    let high = unit.format_bps(rung.payload_bps);
    rung.low_bps.map_or_else(|| high.clone(), |low| format!("{} to {high}", unit.format_bps(low)))
}

fn binding_mark(ceiling: &PathCeiling, rung: &CeilingRung) -> String {
    let place = match ceiling.limits.binding.iter().position(|kind| *kind == rung.kind) {
        Some(0) => "binds",
        Some(_) => "then",
        None => "",
    };
    match (place, rung.estimate) {
        ("", true) => "estimate".to_owned(),
        (place, true) => format!("{place}, estimate"),
        (place, false) => place.to_owned(),
    }
}

/// The name of a rung.
pub(crate) const fn rung_name(kind: RungKind) -> &'static str {
    match kind {
        RungKind::LocalLink => "link",
        RungKind::PathCapacity => "path capacity",
        RungKind::SustainedRate => "sustained rate",
        RungKind::PacketRate => "packet rate",
        RungKind::ReceiveWindow => "receive window",
        RungKind::SendBuffer => "send buffer",
        RungKind::Loss => "loss",
        RungKind::SenderHost => "sending host",
        RungKind::ReceiverHost => "receiving host",
        RungKind::StartUp => "start-up",
        RungKind::Application => "application",
        RungKind::ReversePath => "way back of ACKs",
    }
}

/// An input in words; none for what the formula says already.
fn input_text(input: &CeilingInput) -> Option<String> {
    let value = input.value;
    let from = if input.source.is_empty() { String::new() } else { format!(" ({})", input.source) };
    let text = match input.name.as_str() {
        "payload_bytes" | "mss_bytes" => format!("payload {value} bytes"),
        "ip_bytes" => format!("IP packet {value} bytes"),
        "window_bytes" => format!("window {}{from}", number::memory(value as u64)),
        "send_buffer_bytes" => format!("buffer {}{from}", number::memory(value as u64)),
        "transfer_bytes" => format!("S {}{from}", number::amount(value as u64)),
        "rtt_ns" => format!("RTT {}{from}", milliseconds(value)),
        "time_ns" => format!("{}{from}", number::seconds(value)),
        "loss_ratio" => format!("p {}{from}", scientific(value)),
        "line_rate_bps" | "ip_rate_bps" | "payload_rate_bps" => {
            format!("{}{from}", number::rate_with_unit(value))
        }
        "packets_per_s" => format!("{value} packets/s{from}"),
        "acks_per_s" => format!("{value:.0} ACKs/s{from}"),
        "segments_per_ack" => format!("{value} segments per ACK"),
        "initial_window_segments" => format!("first window {value} segments"),
        "growth" => format!("growth {value} a round trip"),
        "flows" => format!("{value} flows"),
        other => format!("{} {value}{from}", other.replace('_', " ")),
    };
    Some(text)
}

fn milliseconds(ns: f64) -> String {
    if ns >= 1e9 { number::seconds(ns) } else { format!("{} ms", number::short_time(ns / 1e6)) }
}

/// Four decimals; three digits with an exponent below a hundredth.
fn scientific(value: f64) -> String {
    let trimmed = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if value >= 0.01 {
        return trimmed(&format!("{value:.4}"));
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", trimmed(digits))
}

fn verdict(ceiling: &PathCeiling) -> String {
    let limits = &ceiling.limits;
    let ([first, then @ ..], Some(path)) = (limits.binding.as_slice(), limits.ceiling_bps) else {
        return "Nothing bounds the transfer that is known.".to_owned();
    };
    let lowest = ceiling.rungs.rung_of_kind(*first);
    let lowest_bps = lowest.map_or(path, |rung| rung.payload_bps);
    let estimate = if limits.estimate { ", by an estimate" } else { "" };
    let mut text = format!("The limit is the {}", rung_name(*first));
    let without = match then {
        [] => "Without that limit",
        [then, ..] => {
            text.push_str(&format!(", then the {}", rung_name(*then)));
            "Without the first"
        }
    };
    let rate = number::rate_with_unit(lowest_bps);
    text.push_str(&format!(": at most {rate} of payload{estimate}"));
    if lowest_bps < path {
        text.push_str(&format!(
            ", {} of the {} that the path can carry",
            number::percent(lowest_bps / path),
            number::rate_with_unit(path)
        ));
    }
    text.push('.');
    if let Some((bps, rung)) = limits.without_lowest_bps.zip(limits.without_lowest_rung) {
        text.push_str(&format!(
            " {without} it would be {} ({}).",
            number::rate_with_unit(bps),
            rung_name(rung)
        ));
    }
    text
}

fn measured_words(ceiling: &PathCeiling, measured: &MeasuredShare) -> String {
    let mut text = format!("Measured {}", number::rate_with_unit(measured.goodput_bps));
    if let Some(ratio) = measured.ceiling_ratio {
        text.push_str(&format!(": {} of what the path can carry", number::percent(ratio)));
    }
    if let Some((ratio, bps)) = measured.expected_ratio.zip(ceiling.limits.expected_bps) {
        let (ratio, bps) = (number::percent(ratio), number::rate_with_unit(bps));
        text.push_str(&format!(", {ratio} of the {bps} to expect"));
    }
    text.push_str(". ");
    text + &measured.statement.as_ref().map_or_else(String::new, statement)
}

/// The sentence that a measured rate leads to.
pub(crate) fn statement(statement: &Statement) -> String {
    match statement {
        Statement::AboveCeiling { rung } => format!(
            "That is more than the {} allows: an input is wrong, or the test was so short that a \
             burst carried it.",
            rung_name(*rung)
        ),
        Statement::AtCeiling { rung } => {
            format!("The path is full: the {} is reached.", rung_name(*rung))
        }
        Statement::SingleFactor { rung } => {
            format!("As expected: the {} explains it alone.", rung_name(*rung))
        }
        Statement::TwoFactors { first, then } => format!(
            "As expected: the {}, then the {}; fixing the first alone gives at most the second.",
            rung_name(*first),
            rung_name(*then)
        ),
        Statement::AboveExpected { rung } => format!(
            "That is more than the {} allows: an input of it is too pessimistic.",
            rung_name(*rung)
        ),
        Statement::BelowExpected { rung } => {
            format!(
                "The {} explains most of it; up to a quarter is missing besides.",
                rung_name(*rung)
            )
        }
        Statement::Unexplained { ruled_out } => {
            let names: Vec<String> =
                ruled_out.iter().map(|rung_kind| rung_name(*rung_kind).to_owned()).collect();
            let ruled_out = match names.as_slice() {
                [] => String::new(),
                names => format!(" Ruled out: {}.", words::listed(names)),
            };
            format!(
                "Unexplained: every bound here allows more, so the cause is another: an end, the \
                 application, or an input.{ruled_out}"
            )
        }
    }
}

fn missing(ceiling: &PathCeiling) -> Option<String> {
    let names: Vec<String> =
        ceiling.limits.missing.iter().map(|rung_kind| rung_name(*rung_kind).to_owned()).collect();
    let text = || format!("Not known, and so without a bound: {}.", words::listed(&names));
    (!names.is_empty()).then(text)
}

fn needed(needs: &Needs) -> ReportSection {
    let mut facts = Vec::new();
    if let Some(window) = needs.window_bytes {
        let scale = needs.window_scale.map_or_else(
            || {
                let flows = needs.flows_min.unwrap_or(1);
                format!("no window scale reaches it; {flows} flows do")
            },
            |scale| format!("window scale {scale}"),
        );
        let window = words::counted(window, "byte");
        facts.push(padded_fact("window", format!("{window} in flight each flow; {scale}")));
    }
    facts.extend(labelled("Linux", sockets(needs)));
    let bytes = words::counted(needs.queue_bytes, "byte");
    let mut queue = format!("{bytes} at the bottleneck for one flow");
    if let Some((flows, bytes)) = needs.queue_flows.zip(needs.queue_shared_bytes) {
        queue.push_str(&format!(", {bytes} for {flows} that do not lose together"));
    }
    facts.push(padded_fact("queue", queue));
    facts.extend(labelled("loss at most", needs.loss_budgets.iter().map(loss_budget).collect()));
    let title =
        format!("To fill the path with {} of payload", number::rate_with_unit(needs.payload_bps));
    ReportSection::after_blank_line(title, [Block::Facts(facts)])
}

fn padded_fact(label: &str, text: String) -> Fact {
    Fact::new(label, 16, text)
}

/// Facts of which the first alone has the label.
fn labelled(label: &'static str, texts: Vec<String>) -> impl Iterator<Item = Fact> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    texts.into_iter().zip(labels).map(|(text, label)| padded_fact(label, text))
}

/// The largest value that the kernel takes in these sysctls: they are of type int.
const SYSCTL_MAX: u64 = 2_147_483_647;
/// Largest limit of the receive buffer that kernels up to 6.15 set by themselves, 6 MiB, and of the
/// send buffer, 4 MiB (Linux Documentation/networking/ip-sysctl, tcp_rmem and tcp_wmem).
const TCP_RMEM_MAX: u64 = 6 << 20;
const TCP_WMEM_MAX: u64 = 4 << 20;
/// Bytes that kernels set for rmem_max and wmem_max (Linux net/core/sock.c, 256 packets of 832
/// bytes).
const CORE_MEM_MAX: u64 = 212_992;

/// The limits of socket buffers that Linux's own are too small for.
fn sockets(needs: &Needs) -> Vec<String> {
    let (Some(receive), Some(send)) = (needs.receive_buffer_bytes, needs.send_buffer_bytes) else {
        return Vec::new();
    };
    if receive.max(send) > SYSCTL_MAX {
        return vec!["needs larger buffers than its sysctls can hold; use more flows".to_owned()];
    }
    // The kernel doubles what SO_RCVBUF and SO_SNDBUF ask for (socket(7)).
    let asked = |bytes: u64| bytes.div_ceil(2);
    let core = |name: &str, bytes: u64| {
        format!("net.core.{name} = {} for programs that set a size", asked(bytes))
    };
    let lines = [
        (receive > TCP_RMEM_MAX, format!("net.ipv4.tcp_rmem = 4096 131072 {receive}")),
        (send > TCP_WMEM_MAX, format!("net.ipv4.tcp_wmem = 4096 16384 {send}")),
        (asked(receive) > CORE_MEM_MAX, core("rmem_max", receive)),
        (asked(send) > CORE_MEM_MAX, core("wmem_max", send)),
    ];
    let needed = lines.into_iter().filter(|(is_needed, _)| *is_needed);
    let needed: Vec<String> = needed.map(|(_, line)| line).collect();
    match needed.as_slice() {
        [] => vec!["its usual limits of socket buffers suffice".to_owned()],
        _ => needed,
    }
}

fn loss_budget(budget: &LossBudget) -> String {
    let ratio = scientific(budget.loss_ratio);
    let range = budget
        .low_ratio
        .map_or_else(|| ratio.clone(), |low| format!("{} to {ratio}", scientific(low)));
    let name = response(budget.response);
    let between = number::seconds(budget.seconds_between * 1e9);
    match budget.response {
        Response::Bbr => {
            format!("{name} {range} (version 3 yields above it, version 1 above 0.2), estimate")
        }
        _ => format!("{name} {range}, one in {between}, estimate"),
    }
}

fn transfers(ceiling: &PathCeiling, unit: RateUnit) -> ReportSection {
    let steady = ceiling.rungs.steady_bps().map_or_else(|| NONE.to_owned(), number::rate_with_unit);
    let start_share = |it: &TransferTime| it.start_ns.map(|start| start / it.time_ns);
    let table = ReportTable::from_rows(
        &ceiling.transfers,
        &[
            ("size", &|time| number::amount(time.size_bytes)),
            ("time", &|time| number::seconds(time.time_ns)),
            (unit.name, &|time| unit.format_bps(time.mean_bps)),
            ("start costs", &|time| or_dash(time.start_ns, number::seconds)),
            ("of time", &|time| or_dash(start_share(time), number::percent)),
            ("rounds", &|time| or_dash(time.rounds, |rounds| rounds.to_string())),
        ],
    );
    ReportSection::after_blank_line(
        format!("Transfers at {steady} once started"),
        [Block::Table(table)],
    )
}

fn light_in_fibre(propagation: &Propagation) -> String {
    let km = |metres: f64| number::significant(metres / 1e3, 4);
    let least = milliseconds_of_light(propagation.fibre_rtt_ns);
    let distance = km(propagation.distance_m as f64);
    let ratio = number::significant(propagation.ratio, 3);
    if propagation.ratio < 1.0 {
        return format!(
            "The round trip is {ratio} of the {least} that light needs in {distance} km of fibre: \
             the path is shorter, or not of fibre."
        );
    }
    format!(
        "The round trip is {ratio} times the {least} that light needs in {distance} km of fibre; \
         it is that of {} km of fibre each way.",
        km(propagation.fibre_m)
    )
}

fn milliseconds_of_light(ns: f64) -> String {
    format!("{} ms", number::significant(ns / 1e6, 3))
}
