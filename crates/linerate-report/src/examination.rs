//! The examination of a path as a page of text: round trips by size, TCP by window and by streams,
//! the ceiling of each direction and how far below it the best result is. Naming the cause has its
//! place at the end.

use linerate_core::record::{Ceiling, Direction, MetricId, Plan, Record, SHARE_MAX, Stat, TcpPlan};

use crate::table::Table;
use crate::{ceiling, escape, number, words};

/// Everything that the records of one examination say.
pub fn text(records: &[Record]) -> String {
    let mut out = String::new();
    if let Some(table) = round_trips(records) {
        out.push_str(&format!("Round trips by payload\n{}\n", table.text(2)));
    }
    let windows = by(records, |plan| plan.window_bytes);
    if !windows.is_empty() {
        let heads = windows.iter().map(|row| number::window(row.parameter)).collect();
        out.push_str(&format!("TCP by window, one stream\n{}\n", rates(heads, &windows).text(2)));
    }
    let streams = by(records, |plan| plan.window_bytes.is_none().then_some(plan.streams.into()));
    if !streams.is_empty() {
        let heads = streams.iter().map(|row| row.parameter.to_string()).collect();
        let table = rates(heads, &streams).text(2);
        out.push_str(&format!("TCP by streams, the kernel's own window\n{table}\n"));
    }
    out.push_str(&conclusion(records));
    out
}

/// One measurement in a line, for the reader who watches.
pub fn line(record: &Record) -> String {
    if let Some(failure) = &record.failure {
        return failure.to_string();
    }
    match &record.plan {
        Plan::Ping(plan) => {
            let size = plan.sizes_bytes.first().copied().unwrap_or_default();
            let mean = record.value_at(MetricId::Rtt, Stat::Mean, size);
            format!("round trip of {size} bytes: {} ms", number::or_dash(mean, number::ms))
        }
        Plan::Udp(_) => {
            let goodput = record.value(MetricId::Goodput, Stat::Value, None);
            format!("UDP: {}", number::or_dash(goodput, number::rate))
        }
        Plan::Bench(plan) => crate::bench::limit::sentence(record, plan),
        Plan::Tcp(_) | Plan::Simulate(_) => {
            let goodput = record.value(MetricId::Goodput, Stat::Value, None);
            format!("TCP, {}: {}", setting(record), number::or_dash(goodput, number::rate))
        }
    }
}

fn round_trips(records: &[Record]) -> Option<Table> {
    let is_ping = |record: &&Record| matches!(record.plan, Plan::Ping(_));
    let record = records.iter().find(is_ping).filter(|record| !record.summary.is_empty())?;
    let Plan::Ping(plan) = &record.plan else { return None };
    let head = plan.sizes_bytes.iter().map(ToString::to_string);
    let mut table = Table::new(std::iter::once("payload bytes".to_owned()).chain(head));
    let mut row = |name: &str, metric, stat, show: fn(f64) -> String| {
        let value = |&size: &u32| number::or_dash(record.value_at(metric, stat, size), show);
        let cells = plan.sizes_bytes.iter().map(value);
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("min ms", MetricId::Rtt, Stat::Min, number::ms);
    row("mean ms", MetricId::Rtt, Stat::Mean, number::ms);
    row("p99 ms", MetricId::Rtt, Stat::P99, number::ms);
    row("loss", MetricId::LossRatio, Stat::Value, number::percent);
    Some(table)
}

/// Both directions of one value of the varied parameter.
struct Pair {
    parameter: u64,
    up: Way,
    down: Way,
}

/// Goodput in one direction, and the share of its ceiling.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    bps: Option<f64>,
    share: Option<f64>,
}

/// The TCP results by a parameter, in the order measured; `None` leaves a record out.
fn by(records: &[Record], parameter: impl Fn(&TcpPlan) -> Option<u64>) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for record in records {
        let Plan::Tcp(plan) = &record.plan else { continue };
        let Some(parameter) = parameter(plan) else { continue };
        let index = pairs.iter().position(|pair| pair.parameter == parameter);
        let index = index.unwrap_or_else(|| {
            pairs.push(Pair { parameter, up: Way::default(), down: Way::default() });
            pairs.len() - 1
        });
        let pair = &mut pairs[index];
        for (way, direction) in [(&mut pair.up, Direction::Up), (&mut pair.down, Direction::Down)] {
            if way.bps.is_none() {
                let share = record.ceiling_of(direction).and_then(|ceiling| ceiling.share);
                *way = Way { bps: ceiling::measured(record, direction), share };
            }
        }
    }
    pairs
}

fn rates(heads: Vec<String>, pairs: &[Pair]) -> Table {
    let mut table = Table::new(std::iter::once("Mbit/s".to_owned()).chain(heads));
    for (name, pick) in [("up", (|pair| pair.up) as fn(&Pair) -> Way), ("down", |pair| pair.down)] {
        let bps = pairs.iter().map(|pair| number::or_dash(pick(pair).bps, number::mbit));
        table.row(std::iter::once(name.to_owned()).chain(bps));
        if pairs.iter().any(|pair| pick(pair).share.is_some()) {
            let share = pairs.iter().map(|pair| number::or_dash(pick(pair).share, number::percent));
            table.row(std::iter::once("  of its ceiling".to_owned()).chain(share));
        }
    }
    table
}

/// For each direction the best result, its ceiling, and how far apart they are.
fn conclusion(records: &[Record]) -> String {
    let ways = [("Up", Direction::Up), ("Down", Direction::Down)];
    let each: Vec<String> =
        ways.into_iter().filter_map(|(name, way)| best(records, name, way)).collect();
    if each.is_empty() {
        return "No TCP test gave a result.\n".to_owned();
    }
    each.concat() + "Limited by: not examined by this version.\n"
}

fn best(records: &[Record], name: &str, direction: Direction) -> Option<String> {
    let results = records.iter();
    let results = results.filter_map(|it| Some((it, ceiling::measured(it, direction)?)));
    let (record, bps) = results.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let rate = number::rate(bps);
    let mut out = format!("{name}: best {rate} of TCP payload ({})\n", setting(record));
    let known = record.ceiling_of(direction);
    let lines = known.map(|known| against(known, bps)).unwrap_or_default();
    lines.iter().for_each(|line| out.push_str(&words::remark(&escape::line(line), None)));
    Some(out)
}

/// The bounds of the best result, and how far below them it is.
fn against(known: &Ceiling, bps: f64) -> Vec<String> {
    let mut link = ceiling::bound(known);
    if let Some(value) = known.value {
        let gap = 1.0 - bps / value;
        link.push_str(&match gap {
            _ if bps > value * SHARE_MAX => format!(
                "; the best result is {} above it, so one of the two is wrong",
                number::percent(-gap)
            ),
            _ => format!("; the best result is {} below it", number::percent(gap.max(0.0))),
        });
        if !known.unknown.is_empty() {
            link.push_str(&format!("; not known: {}", known.unknown.join("; ")));
        }
    }
    std::iter::once(link).chain(ceiling::expected(known, Some(bps))).collect()
}

fn setting(record: &Record) -> String {
    let Plan::Tcp(plan) = &record.plan else { return String::new() };
    let window = plan.window_bytes.map_or_else(
        || "the kernel's own window".to_owned(),
        |bytes| format!("a window of {}", number::window(bytes)),
    );
    let streams = if plan.streams == 1 { "1 stream" } else { &format!("{} streams", plan.streams) };
    let control = record.flows.first().and_then(|flow| flow.sender.as_ref());
    let control = control.and_then(|end| end.congestion_control.got.as_deref());
    let direction = record.flows.first().map_or("", |flow| match flow.direction {
        Direction::Up => ", up",
        Direction::Down => ", down",
    });
    let control = control.map_or_else(String::new, |name| format!(", {name}"));
    format!("{streams}, {window}{control}{direction}")
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Ceiling, CeilingInput, PingPlan, RecordId, Summary, TcpDirections, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;

    fn record(plan: Plan) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        Record::begin(id, tool, plan, WallTime::from_unix_nanos(0))
    }

    fn tcp(window_bytes: Option<u64>, directions: TcpDirections, bps: f64) -> Record {
        let mut record =
            record(Plan::Tcp(TcpPlan { window_bytes, directions, ..TcpPlan::default() }));
        let direction = match directions {
            TcpDirections::Down => Direction::Down,
            _ => Direction::Up,
        };
        let row = Summary::of(MetricId::Goodput, Stat::Value, bps).in_direction(direction);
        record.summary = vec![row];
        record
    }

    #[test]
    fn the_gap_is_one_minus_best_over_ceiling() {
        let mut best = tcp(None, TcpDirections::Up, 847.3e6);
        best.ceiling = Some(Ceiling {
            value: Some(941.48e6),
            inputs: vec![CeilingInput {
                name: "link_rate_bps".to_owned(),
                value: 1e9,
                source: "speed of eth0 at the local end".to_owned(),
            }],
            share: None,
            ..Ceiling::of_goodput(Direction::Up)
        });
        let text = text(&[tcp(Some(16_384), TcpDirections::Down, 100e6), best]);
        // 1 − 847.3 / 941.48 = 0.10003.
        assert!(text.contains("10.0 % below it"), "{text}");
        let line = line(&tcp(Some(16_384), TcpDirections::Down, 100e6));
        assert!(line.starts_with("TCP, 1 stream, a window of 16K"), "{line}");
        assert!(line.ends_with("100 Mbit/s"), "{line}");
        assert!(text.contains("1 Gbit/s, speed of eth0"), "{text}");
        assert!(text.contains("16K"), "{text}");
        assert!(text.contains("Up: best 847.3 Mbit/s") && text.contains("Down: best 100 Mbit/s"));
    }

    #[test]
    fn each_direction_has_its_share_and_says_what_is_not_known() {
        let mut up = tcp(Some(65_536), TcpDirections::Up, 50e6);
        up.ceiling = Some(Ceiling {
            value: Some(100e6),
            share: Some(0.5),
            ..Ceiling::of_goodput(Direction::Up)
        });
        let mut down = tcp(Some(65_536), TcpDirections::Down, 40e6);
        down.ceiling = Some(Ceiling {
            unknown: vec!["the link's rate: wg0 tells none".to_owned()],
            ..Ceiling::of_goodput(Direction::Down)
        });
        let records = [up, down];
        let text = text(&records);
        assert_eq!(text.matches("of its ceiling").count(), 1, "{text}");
        assert!(text.contains("50.0 %") && text.contains("for want of the link's rate"), "{text}");
        // 150 of 100 Mbit/s.
        let above = against(records[0].ceiling.as_ref().expect("given above"), 150e6);
        assert!(above[0].ends_with("50.0 % above it, so one of the two is wrong"), "{above:?}");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let text = text(&[tcp(Some(65_536), TcpDirections::Up, 5e6)]);
        let down = text.lines().find(|line| line.trim_start().starts_with("down"));
        assert!(down.is_some_and(|line| line.contains(number::NONE)), "{text}");
    }

    #[test]
    fn round_trips_stand_by_size() {
        let mut ping =
            record(Plan::Ping(PingPlan { sizes_bytes: vec![56], ..PingPlan::default() }));
        ping.summary = vec![Summary::of(MetricId::Rtt, Stat::Min, 6412.0).at_payload(56)];
        let text = text(&[ping]);
        assert!(text.contains("0.00641"), "{text}");
        assert!(text.contains("No TCP test gave a result."), "{text}");
    }
}
