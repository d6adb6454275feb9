//! Text of iperf3 and of iperf 2, and iperf 2's CSV (`-y C`), as documents of `iperf3 -J`.
//!
//! Observed with iperf 3.7 to 3.21 and iperf 2.1.8. Bytes are printed in units of 1024, rates in
//! units of 1000, both to three digits. `-e` of iperf 2 adds writes, retries, window, round trip:
//! `[  1] 0.0-1.0 sec  2.50 MBytes  21.0 Mbits/sec  20/0  1  1151K/1119(1725) us  2343`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The tests of a text; `None` where no row of a test is in it.
pub(super) fn read(text: &str) -> Option<Vec<Value>> {
    let mut tests: Vec<TextReport> = vec![TextReport::default()];
    for line in text.lines() {
        let row = IperfRow::from_text(line).or_else(|| IperfRow::from_csv(line));
        let begins = ["Connecting to host", "Accepted connection from", "Client connecting to"];
        let has_rows = tests.last().is_some_and(|test| !test.rows.is_empty());
        let opens = line.contains(" local ") && line.contains(" connected ");
        if has_rows && (opens || begins.iter().any(|word| line.starts_with(word))) {
            tests.push(TextReport::default());
        }
        let Some(test) = tests.last_mut() else { continue };
        match row {
            Some(row) => test.rows.push(row),
            None => test.take_other_line(line),
        }
    }
    tests.retain(|test| !test.rows.is_empty());
    let documents: Vec<Value> = tests.iter().map(TextReport::document).collect();
    (!documents.is_empty()).then_some(documents)
}

/// A test of a text.
#[derive(Default)]
struct TextReport {
    rows: Vec<IperfRow>,
    reverse: bool,
    udp: bool,
    /// Both addresses of the first connection.
    ends: Option<(String, String)>,
    mss: Option<f64>,
    payload: Option<f64>,
    error: Option<String>,
}

impl TextReport {
    /// Takes a line beside the rows: addresses, segment size, direction, error.
    fn take_other_line(&mut self, line: &str) {
        self.reverse |= line.starts_with("Reverse mode");
        self.udp |= line.contains("Datagrams") || line.contains("UDP port");
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let after = |name: &str| {
            let place = words.iter().position(|word| *word == name)?;
            words.get(place + 1).map(|word| word.split('%').next().unwrap_or(word).to_owned())
        };
        if line.contains(" connected ") && self.ends.is_none() {
            self.ends = after("local").zip(after("to").or_else(|| after("with")));
            let sizes = line.split_once("icwnd/mss/irtt=").map(|(_, sizes)| sizes);
            self.mss = sizes.and_then(|sizes| sizes.split('/').nth(1)?.parse().ok());
        }
        if line.starts_with("Sending ") && line.contains("byte datagrams") {
            self.payload = after("Sending").and_then(|word| word.parse().ok());
        }
        if let Some((_, error)) = line.split_once("iperf3: error - ") {
            self.error = Some(error.to_owned());
        }
    }

    fn document(&self) -> Value {
        let both = self.rows.iter().any(|row| row.down == Some(true))
            && self.rows.iter().any(|row| row.down == Some(false));
        let udp = self.udp || self.rows.iter().any(|row| row.datagrams.is_some());
        let streams: std::collections::BTreeSet<&str> =
            self.rows.iter().filter(|row| !row.is_sum()).map(|row| row.id.as_str()).collect();
        let ways: &[bool] = if both { &[false, true] } else { &[self.reverse] };
        let flows = (streams.len() / ways.len()).max(1);
        let mut intervals: BTreeMap<u64, Value> = BTreeMap::new();
        let mut end = json!({});
        for down in ways {
            let rows: Vec<&IperfRow> =
                self.rows.iter().filter(|row| !both || row.down == Some(*down)).collect();
            let suffix = if both && *down { "_bidir_reverse" } else { "" };
            let (between, totals) = intervals_and_totals(&rows);
            for (from, interval) in by_interval(&between, *down) {
                let known = intervals.entry(from).or_insert_with(|| json!({ "streams": [] }));
                extend(&mut known["streams"], interval.streams);
                known[format!("sum{suffix}")] = interval.sum;
            }
            for (name, sum) in sums_of_test(&totals, udp) {
                end[format!("{name}{suffix}")] = sum;
            }
        }
        let (local, remote) = self.ends.clone().unwrap_or_default();
        let mut start = json!({
            "test_start": {
                "protocol": if udp { "UDP" } else { "TCP" }, "num_streams": flows,
                "reverse": u8::from(self.reverse), "bidir": u8::from(both),
                "blksize": self.payload,
            },
        });
        if !local.is_empty() {
            start["connected"] = json!([{ "local_host": local, "remote_host": remote }]);
        }
        if let Some(mss) = self.mss {
            start["tcp_mss_default"] = mss.into();
        }
        let intervals: Vec<Value> = intervals.into_values().collect();
        let mut document = json!({ "start": start, "intervals": intervals, "end": end });
        // Read by the same reader as a document of iperf3, which has no such key.
        document["rounded"] = true.into();
        if let Some(error) = &self.error {
            document["error"] = error.as_str().into();
        }
        document
    }
}

fn extend(list: &mut Value, more: Vec<Value>) {
    if let Some(list) = list.as_array_mut() {
        list.extend(more);
    }
}

/// Rows of intervals, and those of the whole test.
fn intervals_and_totals<'a>(rows: &[&'a IperfRow]) -> (Vec<&'a IperfRow>, Vec<&'a IperfRow>) {
    let is_total = |row: &IperfRow| {
        let others = rows.iter().filter(|other| other.id == row.id && other.ends.is_none());
        let (mut last, mut count) = (0.0_f64, 0);
        for other in others {
            (last, count) = (last.max(other.to), count + 1);
        }
        // Without a word of whose it is, the row from 0 to the end is the total.
        row.ends.is_some() || row.from == 0.0 && row.to >= last && count > 1
    };
    let (totals, between): (Vec<&IperfRow>, Vec<&IperfRow>) =
        rows.iter().partition(|row| is_total(row));
    match totals.is_empty() {
        true => (between.clone(), between),
        false => (between, totals),
    }
}

struct TextInterval {
    streams: Vec<Value>,
    sum: Value,
}

/// Rows by the beginning of their interval, in milliseconds.
fn by_interval(rows: &[&IperfRow], down: bool) -> BTreeMap<u64, TextInterval> {
    let mut by_start: BTreeMap<u64, Vec<&IperfRow>> = BTreeMap::new();
    for row in rows {
        by_start.entry(super::whole_bytes(row.from * 1e3)).or_default().push(row);
    }
    let interval = |rows: Vec<&IperfRow>| {
        let streams = rows.iter().filter(|row| !row.is_sum());
        let streams: Vec<Value> = streams.map(|row| row.stream(!down)).collect();
        TextInterval { sum: add_up(&rows), streams }
    };
    by_start.into_iter().map(|(from, rows)| (from, interval(rows))).collect()
}

/// The row of the sum, or the sum of the rows.
fn add_up(rows: &[&IperfRow]) -> Value {
    let sums: Vec<&&IperfRow> = rows.iter().filter(|row| row.is_sum()).collect();
    let rows: Vec<&&IperfRow> = if sums.is_empty() { rows.iter().collect() } else { sums };
    let add = |value: fn(&IperfRow) -> Option<f64>| -> Option<f64> {
        rows.iter().filter_map(|row| value(row)).reduce(|a, b| a + b)
    };
    json!({
        "seconds": rows.iter().map(|row| row.to - row.from).fold(0.0, f64::max),
        "bytes": add(|row| Some(row.bytes)), "bits_per_second": add(|row| Some(row.bps)),
        "retransmits": add(|row| row.again),
        "lost_packets": add(|row| Some(row.datagrams?.0)),
        "packets": add(|row| Some(row.datagrams?.1)),
        "omitted": rows.iter().all(|row| row.omitted),
    })
}

/// Sums of the whole test, of sent and of received data, by their names in iperf3's JSON.
fn sums_of_test(totals: &[&IperfRow], udp: bool) -> Vec<(&'static str, Value)> {
    let side = |end: Option<TextEnd>| -> Vec<&IperfRow> {
        totals.iter().copied().filter(|row| row.ends == end).collect()
    };
    let (sent, received, plain) =
        (side(Some(TextEnd::Sender)), side(Some(TextEnd::Receiver)), side(None));
    let mut found = Vec::new();
    for (name, rows) in [("sum_sent", sent), ("sum_received", received)] {
        if !rows.is_empty() {
            found.push((name, add_up(&rows)));
        }
    }
    if found.is_empty() && !plain.is_empty() {
        // Of iperf 2 the last row of a stream is the receiver's, where there was one.
        let mut last: BTreeMap<&str, &IperfRow> = BTreeMap::new();
        for row in plain {
            last.insert(&row.id, row);
        }
        let sum = add_up(&last.into_values().collect::<Vec<_>>());
        found
            .push((if udp && sum["packets"].is_null() { "sum_sent" } else { "sum_received" }, sum));
    }
    if udp {
        let sum = found.iter().rev().find(|(_, sum)| !sum["packets"].is_null());
        found.extend(sum.map(|(_, sum)| ("sum", sum.clone())).into_iter().collect::<Vec<_>>());
    }
    found
}

/// Whose figures a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextEnd {
    Sender,
    Receiver,
}

/// A row of figures.
struct IperfRow {
    /// The number in brackets, or `SUM`.
    id: String,
    /// From server to client, where the row says so.
    down: Option<bool>,
    from: f64,
    to: f64,
    bytes: f64,
    bps: f64,
    again: Option<f64>,
    cwnd: Option<f64>,
    rtt_us: Option<f64>,
    /// Datagrams lost, and datagrams sent.
    datagrams: Option<(f64, f64)>,
    ends: Option<TextEnd>,
    omitted: bool,
}

impl IperfRow {
    fn is_sum(&self) -> bool {
        self.id == "SUM"
    }

    fn stream(&self, sends: bool) -> Value {
        let mut stream = json!({
            "socket": self.id, "bytes": self.bytes, "bits_per_second": self.bps, "sender": sends,
        });
        let figures = [("snd_cwnd", self.cwnd), ("rtt", self.rtt_us), ("retransmits", self.again)];
        for (key, value) in figures {
            if let Some(value) = value {
                stream[key] = value.into();
            }
        }
        stream
    }

    /// `[  5][TX-C]   0.00-1.00   sec  6.00 MBytes  50.3 Mbits/sec    0   1.12 MBytes`.
    fn from_text(line: &str) -> Option<Self> {
        let (id, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
        let (role, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((role, rest)) => (Some(role), rest),
            None => (None, rest),
        };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let [span, "sec", amount, unit, rate, rate_unit, more @ ..] = words.as_slice() else {
            return None;
        };
        let (from, to) = span.split_once('-')?;
        let down = role.and_then(|role| match role {
            "TX-C" | "RX-S" => Some(false),
            "RX-C" | "TX-S" => Some(true),
            _ => None,
        });
        let mut row = Self {
            id: id.trim().trim_start_matches('*').to_owned(),
            down,
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            bytes: amount.parse::<f64>().ok()? * unit_bytes(unit)?,
            bps: rate.parse::<f64>().ok()? * unit_bps(rate_unit)?,
            again: None,
            cwnd: None,
            rtt_us: None,
            datagrams: None,
            ends: None,
            omitted: more.contains(&"(omitted)"),
        };
        row.add(more);
        Some(row)
    }

    /// The columns behind the rate.
    fn add(&mut self, more: &[&str]) {
        self.ends = more.iter().find_map(|word| match *word {
            "sender" => Some(TextEnd::Sender),
            "receiver" => Some(TextEnd::Receiver),
            _ => None,
        });
        let pair = |word: &str| -> Option<(f64, f64)> {
            let (a, b) = word.split_once('/')?;
            Some((a.parse().ok()?, b.parse().ok()?))
        };
        match more {
            // Jitter, then lost of all.
            [_, "ms", rest @ ..] => self.datagrams = rest.first().and_then(|word| pair(word)),
            // -e of iperf 2: writes/errors, retries, window/round trip(its variation).
            [writes, retries, window, "us", ..] if writes.contains('/') => {
                self.again = retries.parse().ok();
                let (cwnd, rtt) = window.split_once('/').unwrap_or((window, ""));
                self.cwnd = cwnd.strip_suffix('K').and_then(|digits| digits.parse::<f64>().ok());
                self.cwnd = self.cwnd.map(|kilo| kilo * 1024.0);
                self.rtt_us = rtt.split('(').next().and_then(|digits| digits.parse().ok());
            }
            [again, size, unit, ..] if unit_bytes(unit).is_some() => {
                self.again = again.parse().ok();
                let size = size.parse::<f64>().ok().zip(unit_bytes(unit));
                self.cwnd = size.map(|(size, unit)| size * unit);
            }
            [again, "sender", ..] => self.again = again.parse().ok(),
            _ => {}
        }
    }

    /// `20261127144720,127.0.0.1,44280,127.0.0.1,5462,1,0.0-1.0,2621500,20972000`, and for
    /// datagrams jitter, lost, all, percent and those out of order.
    fn from_csv(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split(',').collect();
        let [time, _, _, _, _, id, span, bytes, bps, more @ ..] = fields.as_slice() else {
            return None;
        };
        let (from, to) = span.split_once('-')?;
        let is_time = time.len() >= 14 && time.bytes().take(14).all(|byte| byte.is_ascii_digit());
        let number = |text: Option<&&str>| text.and_then(|text| text.parse::<f64>().ok());
        is_time.then_some(())?;
        Some(Self {
            id: if *id == "-1" { "SUM".to_owned() } else { (*id).to_owned() },
            down: None,
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            bytes: bytes.parse().ok()?,
            bps: bps.parse().ok()?,
            again: None,
            cwnd: None,
            rtt_us: None,
            datagrams: number(more.get(1)).zip(number(more.get(2))),
            ends: None,
            omitted: false,
        })
    }
}

/// Bytes of a unit, of 1024.
fn unit_bytes(unit: &str) -> Option<f64> {
    let prefix = unit.strip_suffix("Bytes").or_else(|| unit.strip_suffix("Byte"))?;
    power_of_prefix(prefix).map(|power| 1024_f64.powi(power))
}

/// Bits per second of a unit: of 1000 for bits, of 1024 for bytes.
fn unit_bps(unit: &str) -> Option<f64> {
    let unit = unit.strip_suffix("/sec")?;
    match unit.strip_suffix("bits") {
        Some(prefix) => power_of_prefix(prefix).map(|power| 1000_f64.powi(power)),
        None => unit_bytes(unit).map(|bytes| bytes * 8.0),
    }
}

/// The power of 1000 or 1024 that a prefix stands for.
fn power_of_prefix(prefix: &str) -> Option<i32> {
    ["", "K", "M", "G", "T"].iter().position(|unit| *unit == prefix)?.try_into().ok()
}
