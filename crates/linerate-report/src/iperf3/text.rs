//! The lines of a test in iperf3's shape.

use linerate_core::record::{Direction, Finish, IntervalRow, Record, StreamOpened, TcpPlan};

use super::sheet::{BothEndCounts, DatagramSums, ENDLESS_NS, EndCounts, Iperf3Role, Sheet};
use super::unit::{Iperf3Unit, amount};

macro_rules! separator {
    () => {
        "- - - - - - - - - - - - - - - - - - - - - - - - -"
    };
}

/// The version that `-v` prints and `-J` carries, that of `linerate_proto::iperf3::VERSION`.
/// Scripts choose by its first two words which features they use.
pub const VERSION: &str = concat!("iperf 3.21 (linerate ", env!("CARGO_PKG_VERSION"), ")");

/// The line between sections.
pub const SEPARATOR: &str = separator!();

/// Prints a test line by line; each call gives the lines that are due, each with its end.
#[derive(Clone, Debug)]
pub struct Iperf3Lines {
    /// The test so far.
    pub sheet: Sheet,
    unit: Iperf3Unit,
    verbose: bool,
    headed: bool,
}

impl Iperf3Lines {
    /// Lines of a test whose streams are not yet connected.
    pub const fn new(sheet: Sheet, unit: Iperf3Unit, verbose: bool) -> Self {
        Self { sheet, unit, verbose, headed: false }
    }

    /// `Connecting to host 127.0.0.1, port 5201`.
    pub fn connecting(&self) -> String {
        let plan = &self.sheet.plan;
        let mut lines =
            format!("Connecting to host {}, port {}\n", plan.server.host, plan.server.port);
        if plan.test.directions == linerate_core::record::TcpDirections::Down {
            lines.push_str(&format!("Reverse mode, remote host {} is sending\n", plan.server.host));
        }
        lines
    }

    /// The lines that `-V` prints of a test once its server is connected.
    pub fn session(&self, stream: &StreamOpened) -> String {
        let plan = &self.sheet.plan;
        let cookie = stream.session.as_ref().map(|cookie| format!("      Cookie: {cookie}\n"));
        let mss =
            stream.mss_bytes.filter(|_| !self.sheet.udp).map(|mss| match plan.test.mss_bytes {
                Some(asked) => format!("      TCP MSS: {asked}\n"),
                None => format!("      TCP MSS: {mss} (default)\n"),
            });
        let pace =
            plan.test.pace.map(|pace| format!("      Target Bitrate: {}\n", pace.bits_per_sec()));
        [cookie, mss, pace].into_iter().flatten().collect()
    }

    /// `Accepted connection from 127.0.0.1, port 45644`.
    pub fn accepted(&self) -> String {
        let plan = &self.sheet.plan;
        format!("Accepted connection from {}, port {}\n", plan.server.host, plan.server.port)
    }

    /// A connected stream, and after the last one what starts.
    pub fn stream(&mut self, stream: &StreamOpened) -> String {
        self.sheet.streams.push(stream.clone());
        let number = self.sheet.number(stream.direction, stream.flow);
        let (local, local_port) = host_and_port(&stream.local_addr);
        let (remote, remote_port) = host_and_port(&stream.remote_addr);
        let mut lines = format!(
            "[{number:3}] local {local} port {local_port} connected to {remote} port {remote_port}\n"
        );
        let all = usize::from(self.sheet.plan.test.streams) * self.sheet.directions().len();
        if self.verbose && self.sheet.streams.len() == all {
            let protocol = if self.sheet.udp { "UDP" } else { "TCP" };
            lines.push_str(&starting(&self.sheet.plan, protocol));
        }
        lines
    }

    /// An interval of a stream, or the sum of several.
    pub fn interval_lines(&mut self, row: &IntervalRow) -> String {
        self.sheet.note_interval_row(row);
        let mut lines = String::new();
        if !self.headed {
            self.headed = true;
            lines.push_str(&self.column_heads(true));
        }
        let sheet = &self.sheet;
        let number = sheet.number_of(row);
        let count = EndCounts {
            bytes: row.bytes,
            seconds: (row.end_ns - row.start_ns) as f64 / 1e9,
            retransmits: row.retransmits.filter(|_| sheet.is_sending(row.direction)),
            datagrams: sheet.datagrams_of(row),
        };
        let (start, end) = sheet.seconds_of(row);
        lines.push_str(&self.line_start(number, row.direction, start, end, &count));
        if let Some(datagrams) = count.datagrams {
            lines.push_str(&match sheet.is_sending(row.direction) {
                true if sheet.is_both() => format!("            {}  ", datagrams.total),
                true => format!("  {}  ", datagrams.total),
                false => jitter_and_loss(&datagrams),
            });
            lines.push_str(self.end_of(row));
            return lines;
        }
        match (count.retransmits, row.cwnd_bytes.filter(|_| number.is_some())) {
            (Some(retransmits), Some(cwnd)) => {
                lines.push_str(&format!("  {retransmits:3}   {}       ", amount(cwnd)));
            }
            (Some(retransmits), None) => lines.push_str(&format!("  {retransmits:3}             ")),
            (None, _) => lines.push_str(&" ".repeat(18)),
        }
        lines.push_str(self.end_of(row));
        lines
    }

    /// The end of a row's line, and the line after the sum of several.
    fn end_of(&self, row: &IntervalRow) -> &'static str {
        let last = self.sheet.directions().last() == Some(&row.direction);
        match (row.omitted, last && self.sheet.number_of(row).is_none()) {
            (false, false) => "\n",
            (true, false) => "(omitted)\n",
            (false, true) => concat!("\n", separator!(), "\n"),
            (true, true) => concat!("(omitted)\n", separator!(), "\n"),
        }
    }

    /// The summary of a test that ended.
    pub fn summary(&self, record: &Record) -> String {
        let several = self.sheet.plan.test.streams > 1;
        let mut lines = String::new();
        // After a sum of intervals the line is there already.
        if !several || !self.headed {
            lines.push_str(&format!("{SEPARATOR}\n"));
        }
        if self.verbose {
            lines.push_str("Test Complete. Summary Results:\n");
        }
        lines.push_str(&self.column_heads(false));
        for &direction in self.sheet.directions() {
            for flow in self.sheet.flows_in_direction(record, direction) {
                let number = self.sheet.number(direction, flow.flow);
                let ends = self.sheet.counts_of_flow(flow);
                lines.push_str(&self.sender_receiver_lines(Some(number), direction, ends));
            }
            if several {
                let sum = self.sheet.sum(record, direction);
                lines.push_str(&self.sender_receiver_lines(None, direction, sum));
            }
            if self.verbose {
                lines.push_str(&self.details(record, direction));
            }
        }
        lines
    }

    /// The lines of the sender and of the receiver; a server knows the other end's, too, but prints
    /// its own alone, as iperf3's does.
    fn sender_receiver_lines(
        &self,
        number: Option<u64>,
        direction: Direction,
        ends: BothEndCounts,
    ) -> String {
        let own = |sends: bool| {
            self.sheet.role == Iperf3Role::Client || self.sheet.is_sending(direction) == sends
        };
        let line = |count: EndCounts, word: &str| {
            let start = self.line_start(number, direction, 0.0, count.seconds, &count);
            let retransmits = match (count.datagrams, count.retransmits) {
                (Some(datagrams), _) => jitter_and_loss(&datagrams),
                (None, Some(retransmits)) => format!("  {retransmits:3}             "),
                (None, None) => " ".repeat(18),
            };
            format!("{start}{retransmits}{word}\n")
        };
        let sender = ends.sender.filter(|_| own(true)).map(|count| line(count, "sender"));
        let receiver = ends.receiver.filter(|_| own(false)).map(|count| line(count, "receiver"));
        sender.into_iter().chain(receiver).collect()
    }

    /// `[  5]   0.00-1.00   sec  4.13 GBytes  35.5 Gbits/sec`.
    fn line_start(
        &self,
        number: Option<u64>,
        direction: Direction,
        start_s: f64,
        end_s: f64,
        count: &EndCounts,
    ) -> String {
        let number = number.map_or_else(|| "SUM".to_owned(), |number| format!("{number:3}"));
        let tag = self.sheet.role_tag(direction);
        let (bytes, rate) = (amount(count.bytes), self.unit.format_rate(count.average_bps()));
        format!("[{number}]{tag} {start_s:6.2}-{end_s:<6.2} sec  {bytes}  {rate}")
    }

    fn column_heads(&self, intervals: bool) -> String {
        let role = if self.sheet.is_both() { "[Role]" } else { "" };
        let mut sends = self.sheet.directions().iter().map(|way| self.sheet.is_sending(*way));
        if self.sheet.udp {
            let lost = "         Jitter    Lost/Total Datagrams";
            let sent = "         Total Datagrams";
            let only = intervals && !self.sheet.is_both() && sends.any(|sends| sends);
            let columns = if only { sent } else { lost };
            return format!("[ ID]{role} Interval           Transfer     Bitrate{columns}\n");
        }
        let columns = match (intervals, sends.any(|sends| sends)) {
            (true, true) => "         Retr  Cwnd",
            (true, false) => "",
            (false, any) if any || self.sheet.role == Iperf3Role::Client => "         Retr",
            (false, _) => "",
        };
        format!("[ ID]{role} Interval           Transfer     Bitrate{columns}\n")
    }

    /// Processor time and congestion controls of both ends, under `-V`.
    fn details(&self, record: &Record, direction: Direction) -> String {
        let Some(flow) = self.sheet.flows_in_direction(record, direction).next() else {
            return String::new();
        };
        let name = |end: &Option<linerate_core::record::FlowEnd>| {
            end.as_ref().and_then(|end| end.congestion_control.got.clone())
        };
        let line = |side: &str, name: Option<String>| {
            name.map(|name| format!("{side}_tcp_congestion {name}\n")).unwrap_or_default()
        };
        let mut lines = self.cpu_line(record, direction).unwrap_or_default();
        if !self.sheet.udp {
            lines += &(line("snd", name(&flow.sender)) + &line("rcv", name(&flow.receiver)));
        }
        lines
    }

    /// `CPU Utilization: local/sender 95.4% (94.6%u/0.8%s), remote/receiver 0.0% (0.0%u/0.0%s)`,
    /// where both ends told of it, for what this end sends.
    fn cpu_line(&self, record: &Record, direction: Direction) -> Option<String> {
        if !self.sheet.is_sending(direction) {
            return None;
        }
        let share = |place: &str, role: &str, here: bool| {
            let (user, system) = self.sheet.cpu_percent(record, here)?;
            let total = user + system;
            Some(format!("{place}/{role} {total:.1}% ({user:.1}%u/{system:.1}%s)"))
        };
        let (here, there) = (share("local", "sender", true)?, share("remote", "receiver", false)?);
        Some(format!("CPU Utilization: {here}, {there}\n"))
    }
}

/// `  0.005 ms  0/4 (0%)  `.
fn jitter_and_loss(datagrams: &DatagramSums) -> String {
    let percent = datagrams.lost_percent();
    // Two places that count: 0, 0.012, 1.5, 73, 100.
    let percent = match percent {
        0.0 => "0".to_owned(),
        large if large >= 9.95 => format!("{large:.0}"),
        small => {
            let places = 1 - small.abs().log10().floor() as i32;
            let places = usize::try_from(places).unwrap_or(0).min(9);
            format!("{small:.places$}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    let DatagramSums { jitter_ms, lost, total, .. } = datagrams;
    format!("  {jitter_ms:5.3} ms  {lost}/{total} ({percent}%)  ")
}

/// The line of `-V` before a test starts.
fn starting(plan: &TcpPlan, protocol: &str) -> String {
    let amount = match plan.test.finish {
        Finish::TimeNs(ENDLESS_NS) => "0 second test".to_owned(),
        Finish::TimeNs(ns) => format!("{} second test", ns as f64 / 1e9),
        Finish::Bytes(bytes) => format!("{bytes} bytes to send"),
        Finish::Buffers(blocks) => format!("{blocks} blocks to send"),
    };
    format!(
        "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {amount}, \
         tos {}\n",
        protocol,
        plan.test.streams,
        plan.test.buffer_bytes,
        plan.test.omit_ns / 1_000_000_000,
        plan.test.dscp.map_or(0, |dscp| u32::from(dscp) << 2),
    )
}

/// Host and port of an address; brackets are for other places.
pub(super) fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (host.trim_matches(['[', ']']), port)
}
