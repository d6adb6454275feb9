//! Rows of the JSON documents: linerate's record, and the one of `iperf3 -J`. Their figures are
//! exact to a microsecond and a byte.

use serde_json::Value;

use super::cell::{Cell, Way};
use super::rows::{Direction, Figure, Printer, Row, Side};

/// Times are printed to the microsecond at least; float32 of older keys has seven digits.
const TIME_ERROR: f64 = 2e-6;
const SHARE: f64 = 1e-6;

/// Rows of a client's document.
pub(crate) fn rows(cell: &Cell, document: &Value) -> Vec<Row> {
    match document.get("schema") {
        Some(_) => {
            let mut rows = record(cell, document);
            // The series of one stream are those of the test, and none of a sum is made.
            let only = |row: &&mut Row| row.is_interval && cell.streams == 1;
            rows.iter_mut().filter(only).for_each(|row| row.stream = None);
            rows
        }
        None => iperf3(cell, document),
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

fn exact(value: f64, error: f64) -> Figure {
    Figure::new(value, error.max(value.abs() * SHARE))
}

fn iperf3(cell: &Cell, document: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    let empty = Vec::new();
    for interval in document["intervals"].as_array().unwrap_or(&empty) {
        for (key, value) in interval.as_object().into_iter().flatten() {
            match value.as_array() {
                Some(streams) => {
                    rows.extend(streams.iter().filter_map(|it| part(cell, it, key, true)))
                }
                None => rows.extend(part(cell, value, key, true)),
            }
        }
    }
    let end = &document["end"];
    for stream in end["streams"].as_array().unwrap_or(&empty) {
        for key in ["sender", "receiver", "udp"] {
            rows.extend(stream.get(key).and_then(|it| part(cell, it, key, false)));
        }
    }
    for (key, value) in end.as_object().into_iter().flatten() {
        // `sum` of UDP has the bytes of the sender and the losses of the receiver.
        if key.starts_with("sum") {
            rows.extend(part(cell, value, key, false));
        }
    }
    rows
}

fn part(cell: &Cell, value: &Value, key: &str, is_interval: bool) -> Option<Row> {
    // `sender` says whether the client, who wrote this, is the one that sends; but the sums of one
    // direction always say true.
    let sends = value.get("sender").and_then(Value::as_bool)?;
    let up = match cell.way {
        // Of datagrams `sender` says which end counted.
        Way::Both if key.starts_with("sum") => !key.ends_with("bidir_reverse"),
        Way::Both => sends,
        way => way == Way::Forward,
    };
    let side = match key {
        // Of datagrams these have the sender's bytes, and what the receiver lost.
        "udp" | "sum" | "sum_bidir_reverse" if !is_interval => Side::Sender,
        _ if key.starts_with("sum_sent") || key == "sender" => Side::Sender,
        _ if key.starts_with("sum_received") || key == "receiver" => Side::Receiver,
        _ if up => Side::Sender,
        _ => Side::Receiver,
    };
    // The time of `sum` is the receiver's in 3.12, so its rate is of two things.
    let mixed = !is_interval
        && key.starts_with("sum")
        && !key.contains("sent")
        && !key.contains("received");
    let sum = key.starts_with("sum");
    let lost = value.get("lost_packets").and_then(Value::as_i64);
    let all = value.get("packets").and_then(Value::as_i64);
    Some(Row {
        printer: Printer::Client,
        direction: if up { Direction::Up } else { Direction::Down },
        side,
        stream: (!sum).then(|| value["socket"].to_string()),
        is_interval,
        omitted: value["omitted"].as_bool().unwrap_or(false),
        start: number(value, "start").unwrap_or(0.0),
        // `seconds` of a receiver is its sender's in 3.12; its rate goes by `end`.
        seconds: number(value, "end")
            .zip(number(value, "start"))
            .map(|(end, start)| exact(end - start, TIME_ERROR)),
        bytes: number(value, "bytes").map(|bytes| exact(bytes, 0.5)),
        rate_bps: number(value, "bits_per_second").filter(|_| !mixed).map(|rate| exact(rate, 1.0)),
        lost: lost.zip(all),
        text: format!("{key}: {value}"),
    })
}

fn direction(value: &Value) -> Option<Direction> {
    match value["direction"].as_str()? {
        "up" => Some(Direction::Up),
        "down" => Some(Direction::Down),
        _ => None,
    }
}

fn record(cell: &Cell, document: &Value) -> Vec<Row> {
    let empty = Vec::new();
    let list = |key: &str| document[key].as_array().unwrap_or(&empty);
    let mut rows = Vec::new();
    for series in list("series").iter().filter(|it| it["metric"] == "goodput_bps") {
        rows.extend(series_rows(cell, series));
    }
    for flow in list("flows") {
        for (key, side) in [("sender", Side::Sender), ("receiver", Side::Receiver)] {
            rows.extend(flow_end(flow, key, side));
        }
    }
    // The result of a direction: a rate whose span is that of the plan.
    let sums = list("summary").iter().filter(|it| it["flow"].is_null());
    for sum in sums.filter(|it| it["metric"] == "goodput_bps" && it["stat"] == "value") {
        let Some(direction) = direction(sum) else { continue };
        let rate = number(sum, "value");
        rows.push(Row {
            seconds: None,
            bytes: None,
            rate_bps: rate.map(|rate| exact(rate, 1.0)),
            text: sum.to_string(),
            ..empty_row(direction, Side::Receiver)
        });
    }
    rows
}

fn empty_row(direction: Direction, side: Side) -> Row {
    Row {
        printer: Printer::Client,
        direction,
        side,
        stream: None,
        is_interval: false,
        omitted: false,
        start: 0.0,
        seconds: None,
        bytes: None,
        rate_bps: None,
        lost: None,
        text: String::new(),
    }
}

/// Rates of intervals, and their ends since the start of the test.
fn series_rows(cell: &Cell, series: &Value) -> Vec<Row> {
    let Some(direction) = direction(series) else { return Vec::new() };
    let side = if series["side"] == "sender" { Side::Sender } else { Side::Receiver };
    let empty = Vec::new();
    let numbers = |key: &str| series[key].as_array().unwrap_or(&empty).iter().map(Value::as_f64);
    let omit = if cell.flag == super::cell::Flag::Omit { 1.0 } else { 0.0 };
    let mut start = 0.0;
    let mut rows = Vec::new();
    for (end, rate) in numbers("t_ns").zip(numbers("values")) {
        let Some(end) = end else { continue };
        let end = end / 1e9;
        let rate_bps = rate.map(|rate| exact(rate, 1.0));
        rows.push(Row {
            stream: series["flow"].as_u64().map(|flow| flow.to_string()),
            is_interval: true,
            omitted: end <= omit + 0.05,
            start,
            seconds: Some(exact(end - start, TIME_ERROR)),
            rate_bps,
            bytes: rate_bps.map(|it| Figure::new(it.value * (end - start) / 8.0, 1.0)),
            text: format!("{} flow {} {start}-{end} s: {rate:?}", series["side"], series["flow"]),
            ..empty_row(direction, side)
        });
        start = end;
    }
    rows
}

fn flow_end(flow: &Value, key: &str, side: Side) -> Option<Row> {
    let end = flow.get(key).filter(|end| !end.is_null())?;
    let seconds = number(end, "span_ns").map(|span| exact(span / 1e9, TIME_ERROR));
    let bytes = number(end, "bytes_measured").map(|bytes| exact(bytes, 0.5));
    let measured = &end["received_datagrams"]["measured"];
    let lost = measured["lost"].as_i64().zip(measured["sent"].as_i64());
    let rate = seconds.zip(bytes).filter(|(seconds, _)| seconds.value > 0.0);
    Some(Row {
        stream: Some(flow["flow"].to_string()),
        start: number(end, "span_start_ns").unwrap_or(0.0) / 1e9,
        seconds,
        bytes,
        rate_bps: rate.map(|(seconds, bytes)| exact(bytes.value * 8.0 / seconds.value, 1.0)),
        lost,
        text: format!("flow {} {key}: {}", flow["flow"], cut(end)),
        ..empty_row(direction(flow)?, side)
    })
}

/// The first part of an object's text.
fn cut(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}
