//! The document of `-J` and the lines of `--json-stream`, with iperf3's keys.

use linerate_core::record::{
    Direction, Flow, FlowEnd, FlowSide, IntervalRow, MetricId, Record, StreamOpened, TcpDirections,
};
use serde_json::{Map, Value, json};

use super::sheet::{BothEndCounts, DatagramSums, ENDLESS_NS, EndCounts, Iperf3Role, Sheet};
use super::text::{VERSION, host_and_port};

/// A day in nanoseconds: an interval as long as that stands for `-i 0`, none.
const DAY_NS: u64 = 86_400_000_000_000;

/// A document that grows with the test.
#[derive(Clone, Debug)]
pub struct Iperf3Document {
    /// The test so far.
    pub sheet: Sheet,
    /// Kernel and machine, as `uname -a` has them.
    system: String,
    /// Start: civil time in words, and milliseconds since 1970.
    started: (String, u64),
    /// The prefix that `-T` gives.
    pub title: Option<String>,
    /// The text that `--extra-data` gives.
    pub extra_data: Option<String>,
    intervals: Vec<Value>,
    /// Rows of the interval that is not complete.
    rows: Vec<IntervalRow>,
}

/// Facts of the host and of the start that the document has beside the test.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Kernel and machine, as `uname -a` has them.
    pub system: String,
    /// Civil time of the start in words.
    pub time: String,
    /// The same in milliseconds since 1970.
    pub time_ms: u64,
}

impl Iperf3Document {
    /// A document of a test whose streams are not yet connected.
    pub fn new(sheet: Sheet, surroundings: Surroundings) -> Self {
        let Surroundings { system, time, time_ms } = surroundings;
        Self {
            sheet,
            system,
            started: (time, time_ms),
            title: None,
            extra_data: None,
            intervals: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// A stream is connected; gives the start once it was the last.
    pub fn stream(&mut self, stream: &StreamOpened) -> Option<Value> {
        self.sheet.streams.push(stream.clone());
        let all = usize::from(self.sheet.plan.test.streams) * self.sheet.directions().len();
        (self.sheet.streams.len() == all).then(|| self.start_object())
    }

    /// A row has come; gives the interval once it is complete.
    pub fn add_interval_row(&mut self, row: &IntervalRow) -> Option<Value> {
        self.sheet.note_interval_row(row);
        self.rows.push(row.clone());
        let last = self.sheet.directions().last();
        if row.flow.is_some() || last != Some(&row.direction) {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        let interval = self.interval(&rows);
        self.intervals.push(interval.clone());
        Some(interval)
    }

    /// The whole document, with why it did not come to its end.
    pub fn complete_json(&self, record: &Record, error: Option<&str>) -> Value {
        let mut whole = json!({
            "start": self.start_object(),
            "intervals": self.intervals,
            "end": self.end_object(record),
        });
        if let Some(title) = &self.title {
            whole["title"] = title.as_str().into();
        }
        if let Some(extra_data) = &self.extra_data {
            whole["extra_data"] = extra_data.as_str().into();
        }
        if let Some(error) = error {
            whole["error"] = error.into();
        }
        whole
    }

    /// The content of the key `start`.
    pub fn start_object(&self) -> Value {
        let plan = &self.sheet.plan;
        let first = self.sheet.streams.first();
        let connected: Vec<Value> =
            self.sheet.streams.iter().map(|stream| self.connected(stream)).collect();
        let mut start = json!({
            "connected": connected,
            "version": VERSION,
            "system_info": self.system,
        });
        // Without a connection iperf3 tells of itself alone.
        let Some(first) = first else { return start };
        let (time, time_ms) = &self.started;
        start["timestamp"] =
            json!({ "time": time, "timesecs": time_ms / 1000, "timemillisecs": time_ms });
        start["cookie"] = first.session.clone().into();
        start["target_bitrate"] = plan.test.pace.map_or(0, |pace| pace.bits_per_sec()).into();
        start["fq_rate"] = 0.into();
        start["sock_bufsize"] = plan.test.window_bytes.unwrap_or(0).into();
        start["sndbuf_actual"] = first.sndbuf_bytes.into();
        start["rcvbuf_actual"] = first.rcvbuf_bytes.into();
        start["test_start"] = self.test_start();
        if self.sheet.udp {
            return self.with_host(start);
        }
        let mss = if plan.test.mss_bytes.is_some() { "tcp_mss" } else { "tcp_mss_default" };
        start[mss] = first.mss_bytes.into();
        self.with_host(start)
    }

    fn with_host(&self, mut start: Value) -> Value {
        let plan = &self.sheet.plan;
        let host = json!({ "host": plan.server.host, "port": plan.server.port });
        match self.sheet.role {
            Iperf3Role::Client => start["connecting_to"] = host,
            Iperf3Role::Server => start["accepted_connection"] = host,
        }
        start
    }

    fn connected(&self, stream: &StreamOpened) -> Value {
        let (local, local_port) = host_and_port(&stream.local_addr);
        let (remote, remote_port) = host_and_port(&stream.remote_addr);
        let port = |text: &str| text.parse::<u16>().unwrap_or(0);
        json!({
            "socket": self.sheet.number(stream.direction, stream.flow),
            "local_host": local,
            "local_port": port(local_port),
            "remote_host": remote,
            "remote_port": port(remote_port),
        })
    }

    fn test_start(&self) -> Value {
        use linerate_core::record::Finish;
        let plan = &self.sheet.plan;
        let test = &plan.test;
        let (time_ns, bytes, blocks) = match test.finish {
            Finish::TimeNs(ENDLESS_NS) => (0, 0, 0),
            Finish::TimeNs(ns) => (ns, 0, 0),
            Finish::Bytes(bytes) => (0, bytes, 0),
            Finish::Buffers(blocks) => (0, 0, blocks),
        };
        json!({
            "protocol": if self.sheet.udp { "UDP" } else { "TCP" },
            "num_streams": test.streams,
            "blksize": test.buffer_bytes,
            "omit": test.omit_ns / 1_000_000_000,
            "duration": time_ns.div_ceil(1_000_000_000),
            "bytes": bytes,
            "blocks": blocks,
            "reverse": u8::from(test.directions == TcpDirections::Down),
            "bidir": u8::from(test.directions == TcpDirections::Both),
            "tos": test.dscp.map_or(0, |dscp| u32::from(dscp) << 2),
            "target_bitrate": test.pace.map_or(0, |pace| pace.bits_per_sec()),
            "fqrate": 0,
            // A day stands for none.
            "interval": if test.interval_ns < DAY_NS { test.interval_ns as f64 / 1e9 } else { 0.0 },
            // Datagrams are joined and parted where the kernel can, without being asked.
            "gso": 0,
            "gro": 0,
        })
    }

    fn interval(&self, rows: &[IntervalRow]) -> Value {
        let several = self.sheet.plan.test.streams > 1;
        let streams: Vec<Value> = rows
            .iter()
            .filter(|row| !several || row.flow.is_some())
            .map(|row| self.interval_stream(row))
            .collect();
        let mut interval = json!({ "streams": streams });
        for row in rows.iter().filter(|row| row.flow.is_none()) {
            interval[self.sum_key("sum", row.direction)] = self.interval_sum(row);
        }
        interval
    }

    fn interval_sum(&self, row: &IntervalRow) -> Value {
        let (start, end) = self.sheet.seconds_of(row);
        let sends = self.sheet.is_sending(row.direction);
        let mut sum = json!({
            "start": start,
            "end": end,
            "seconds": end - start,
            "bytes": row.bytes,
            "bits_per_second": row.goodput_bps,
            "omitted": row.omitted,
            "sender": sends,
        });
        match self.sheet.datagrams_of(row) {
            Some(datagrams) if sends => sum["packets"] = datagrams.total.into(),
            Some(datagrams) => with_datagrams(&mut sum, &datagrams),
            None if sends => sum["retransmits"] = row.retransmits.into(),
            None => {}
        }
        sum
    }

    fn interval_stream(&self, row: &IntervalRow) -> Value {
        let mut stream = self.interval_sum(row);
        stream["socket"] = self.sheet.number_of(row).into();
        if self.sheet.is_sending(row.direction) && !self.sheet.udp {
            let micros = |ns: Option<u64>| ns.map(|ns| ns / 1000);
            stream["snd_cwnd"] = row.cwnd_bytes.into();
            stream["snd_wnd"] = row.send_window_bytes.into();
            stream["rtt"] = micros(row.rtt_ns).into();
            stream["rttvar"] = micros(row.rtt_var_ns).into();
            stream["pmtu"] = row.pmtu_bytes.into();
            stream["reorder"] = Value::Null;
        }
        stream
    }

    /// `sum` for the direction of a client that sends, `sum_bidir_reverse` for the way back.
    fn sum_key(&self, key: &str, direction: Direction) -> String {
        match direction {
            Direction::Down if self.sheet.is_both() => format!("{key}_bidir_reverse"),
            _ => key.to_owned(),
        }
    }

    /// The content of the key `end`; empty where no stream was measured.
    pub fn end_object(&self, record: &Record) -> Value {
        let mut end = Map::new();
        if record.flows.is_empty() {
            return Value::Object(end);
        }
        let streams: Vec<Value> =
            record.flows.iter().map(|flow| self.end_stream(record, flow)).collect();
        end.insert("streams".to_owned(), streams.into());
        for &direction in self.sheet.directions() {
            let sum = self.sheet.sum(record, direction);
            let sums = if self.sheet.udp {
                self.udp_sums(direction, sum)
            } else {
                self.tcp_sums(direction, sum)
            };
            let known = sums.into_iter().filter_map(|(key, value)| Some((key, value?)));
            end.extend(known.map(|(key, value)| (self.sum_key(key, direction), value)));
        }
        end.insert("cpu_utilization_percent".to_owned(), self.cpu_utilization(record));
        if self.sheet.udp {
            return Value::Object(end);
        }
        let first = record.flows.first();
        let name = |end: Option<&FlowEnd>| end.and_then(|end| end.congestion_control.got.clone());
        let sender = name(first.and_then(|flow| flow.sender.as_ref()));
        let receiver = name(first.and_then(|flow| flow.receiver.as_ref()));
        for (key, name) in
            [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)]
        {
            end.extend(name.map(|name| (key.to_owned(), name.into())));
        }
        Value::Object(end)
    }

    /// Both ends of a direction, those that told.
    fn tcp_sums(
        &self,
        direction: Direction,
        sum: BothEndCounts,
    ) -> Vec<(&'static str, Option<Value>)> {
        let sends = self.sheet.is_sending(direction);
        let value = |count: EndCounts| {
            let mut value = count_json(&count);
            value["sender"] = sends.into();
            value
        };
        let sent = sum.sender.map(|count| {
            let mut value = value(count);
            value["retransmits"] = count.retransmits.into();
            value
        });
        vec![("sum_sent", sent), ("sum_received", sum.receiver.map(value))]
    }

    /// The same over UDP; `sum` is one account of both: bytes of the sender, the receiver's losses.
    fn udp_sums(
        &self,
        direction: Direction,
        sum: BothEndCounts,
    ) -> Vec<(&'static str, Option<Value>)> {
        let value = |count: EndCounts, sender: bool| {
            let mut value = count_json(&count);
            value["sender"] = sender.into();
            value
        };
        let both = both_ends(&sum);
        vec![
            ("sum", both.map(|count| value(count, self.sheet.is_sending(direction)))),
            ("sum_sent", sum.sender.map(|count| value(count, true))),
            ("sum_received", sum.receiver.map(|count| value(count, false))),
        ]
    }

    fn end_stream(&self, record: &Record, flow: &Flow) -> Value {
        let ends = self.sheet.counts_of_flow(flow);
        let number = self.sheet.number(flow.direction, flow.flow);
        let sends = self.sheet.is_sending(flow.direction);
        let with_place = |count: EndCounts| {
            let mut value = count_json(&count);
            value["socket"] = number.into();
            value["sender"] = sends.into();
            value
        };
        if self.sheet.udp {
            let lost = ends.receiver.and_then(|count| count.datagrams);
            let Some(count) = both_ends(&ends) else { return json!({}) };
            let mut value = with_place(count);
            if let Some(datagrams) = lost {
                value["out_of_order"] = datagrams.reordered.into();
            }
            return json!({ "udp": value });
        }
        let mut stream = json!({});
        if let Some(receiver) = ends.receiver {
            stream["receiver"] = with_place(receiver);
        }
        if let Some(count) = ends.sender {
            let mut sender = with_place(count);
            sender["retransmits"] = count.retransmits.into();
            let cwnd = levels(record, MetricId::Cwnd, flow);
            let window = levels(record, MetricId::SendWindow, flow);
            let rtt = levels(record, MetricId::TcpRtt, flow);
            let max = |values: &[f64]| values.iter().copied().reduce(f64::max);
            let whole = |value: Option<f64>, unit: f64| value.map(|value| (value / unit) as u64);
            let mean = (!rtt.is_empty()).then(|| rtt.iter().sum::<f64>() / rtt.len() as f64);
            sender["max_snd_cwnd"] = whole(max(&cwnd), 1.0).into();
            sender["max_snd_wnd"] = whole(max(&window), 1.0).into();
            sender["max_rtt"] = whole(max(&rtt), 1000.0).into();
            sender["min_rtt"] = whole(rtt.iter().copied().reduce(f64::min), 1000.0).into();
            sender["mean_rtt"] = whole(mean, 1000.0).into();
            let info = flow.sender.as_ref().and_then(|end| end.tcp_info);
            sender["reorder"] = info.and_then(|info| info.reordering).into();
            stream["sender"] = sender;
        }
        stream
    }

    fn cpu_utilization(&self, record: &Record) -> Value {
        let mut cpu = Map::new();
        for (whose, sends) in [("host", true), ("remote", false)] {
            let shares = self.sheet.cpu_percent(record, sends);
            let parts = [
                ("total", shares.map(|(user, system)| user + system)),
                ("user", shares.map(|(user, _)| user)),
                ("system", shares.map(|(_, system)| system)),
            ];
            for (part, value) in parts {
                cpu.insert(format!("{whose}_{part}"), value.into());
            }
        }
        Value::Object(cpu)
    }
}

/// One account of both ends of a UDP stream: bytes of the sender, losses of the receiver.
fn both_ends(ends: &BothEndCounts) -> Option<EndCounts> {
    let lost = ends.receiver.and_then(|count| count.datagrams);
    let count = ends.sender.or(ends.receiver)?;
    Some(EndCounts { datagrams: lost.or(count.datagrams), ..count })
}

fn with_datagrams(value: &mut Value, datagrams: &DatagramSums) {
    value["jitter_ms"] = datagrams.jitter_ms.into();
    value["lost_packets"] = datagrams.lost.into();
    value["packets"] = datagrams.total.into();
    value["lost_percent"] = datagrams.lost_percent().into();
}

fn count_json(count: &EndCounts) -> Value {
    let mut value = json!({
        "start": 0,
        "end": count.seconds,
        "seconds": count.seconds,
        "bytes": count.bytes,
        "bits_per_second": count.average_bps(),
    });
    if let Some(datagrams) = &count.datagrams {
        with_datagrams(&mut value, datagrams);
    }
    value
}

/// The samples of a metric at a stream's sender.
fn levels(record: &Record, metric: MetricId, flow: &Flow) -> Vec<f64> {
    let same = record.series.iter().find(|series| {
        series.metric == metric
            && series.direction == Some(flow.direction)
            && series.flow == Some(flow.flow)
            && series.side == Some(FlowSide::Sender)
    });
    same.map(|series| series.values.iter().flatten().copied().collect()).unwrap_or_default()
}
