//! `iperf -u -c`: the plan, its rows as they come, and the server's report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Finish, FlowEnd, IntervalRow, Record, StreamOpened, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf2::{
    AddressValidation, Return, UdpExtras, UdpPort, UdpSeen, UdpServing, run_udp,
};
use linerate_proto::iperf2::UdpReport;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

use super::lines::{self, RULER, RateFormat, RowSpan};
use super::udp_lines::{Received, csv_received, csv_sent};
use super::{DataWays, Iperf2Options, server, udp_server};
use crate::command::measure::this_tool;
use crate::output;
use crate::personality::listening::{AdmitEveryone, until_interrupted};
use crate::personality::together;

/// Interval at which the client looks for the end of the server's stream.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the client and prints its rows.
pub(super) fn run(asked: &Iperf2Options) -> Result<(), Failure> {
    let plan = udp_plan(asked);
    let stop = until_interrupted()?;
    let printer = Mutex::new(UdpClientPrinter { asked, streams: Vec::new(), headed: None });
    let mut watch = |event: &Event| lock(&printer).print_event(event);
    let mut context = Context { tool: this_tool(), stop: stop.clone(), watch: &mut watch };
    let trip_times = asked.trip_times;
    let (record, reports) = match asked.ways {
        DataWays::Dual | DataWays::TradeOff => with_return(asked, &plan, &mut context)?,
        _ => run_udp(&plan, UdpExtras { back: None, trip_times }, &mut context),
    };
    lock(&printer).print_summary(&record, &reports);
    record.failure.map_or(Ok(()), Err)
}

/// The test there, and the server's stream back.
fn with_return(
    asked: &Iperf2Options,
    plan: &UdpPlan,
    context: &mut Context<'_>,
) -> Result<(Record, Vec<UdpReport>), Failure> {
    let port = asked.listen_port.unwrap_or(asked.port);
    let back = Some(Return { at_once: asked.ways == DataWays::Dual, port });
    let listener = UdpPort::bind(udp_server::listen_address(asked, port), asked.window)?;
    let (listening, finished) = (Stop::new(), AtomicBool::new(false));
    let printer = udp_server::UdpServerPrinter::new(asked, "*");
    let watch = |peer, seen: &UdpSeen<'_>| {
        printer.show_event(peer, seen);
        if matches!(seen, UdpSeen::Done(_) | UdpSeen::Failed(_)) {
            finished.store(true, Ordering::Release);
        }
    };
    let serving = UdpServing {
        admission: &AdmitEveryone,
        stop: &listening,
        watch: &watch,
        interval: udp_server::interval(asked),
        aside: &|_, _| false,
        trust: &AddressValidation::default(),
        sends_anywhere: false,
    };
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| listener.run(&serving));
        let extras = UdpExtras { back, trip_times: asked.trip_times };
        let done = run_udp(plan, extras, context);
        // A server that never comes back keeps nobody waiting longer than its own test.
        let deadline = monotonic() + server::return_span_max(asked);
        let over = || finished.load(Ordering::Acquire) || context.stop.is_requested();
        while done.0.failure.is_none() && !over() && monotonic() < deadline {
            sleep(LOOK);
        }
        // A server that missed the report says its end again.
        sleep(LOOK * 10);
        listening.request_stop();
        let _ = receiving.join();
        Ok(done)
    })
}

fn udp_plan(asked: &Iperf2Options) -> UdpPlan {
    let streams = u64::from(asked.streams);
    // iperf's -n is of each stream.
    let finish = match asked.bytes {
        Some(bytes) => {
            let each = bytes.div_ceil(asked.datagram_bytes().into());
            Finish::Buffers(each.saturating_mul(streams))
        }
        None => Finish::TimeNs((asked.time_s * 1e9) as u64),
    };
    let pace = match asked.rate {
        // 1 Mbit/s of 2^20, as the original has it.
        None => Some(1 << 20),
        Some(_) => asked.rate_bps(),
    };
    UdpPlan {
        server: asked.server_plan(),
        test: UdpTest {
            directions: asked.directions(),
            streams: asked.streams,
            finish,
            interval_ns: (asked.interval_s.unwrap_or(86_400.0) * 1e9) as u64,
            size_bytes: Some(asked.datagram_bytes()),
            pace: pace.map(BitRate::from_bits_per_sec),
            window_bytes: asked.window,
            dscp: Some(asked.tos >> 2).filter(|dscp| *dscp > 0),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// Prints a test as it goes.
struct UdpClientPrinter<'a> {
    asked: &'a Iperf2Options,
    streams: Vec<StreamOpened>,
    /// True when the last rows were a receiver's, false when a sender's; none before the first.
    headed: Option<bool>,
}

/// Counts of a row: sent datagrams or received ones.
enum UdpRow {
    /// Bytes and datagrams, and whether it is of the whole test.
    Sent(u64, u64, bool),
    Received(Received),
}

impl UdpClientPrinter<'_> {
    fn print_event(&mut self, event: &Event) {
        match event {
            Event::Stream(stream) => self.stream(stream),
            Event::Interval(row) if self.asked.interval_s.is_some() => self.interval(row),
            _ => {}
        }
    }

    fn stream(&mut self, stream: &StreamOpened) {
        if self.streams.is_empty() {
            self.print_header(stream);
        }
        // Both directions of one stream have one line.
        let known = self.streams.iter().any(|other| other.local_addr == stream.local_addr);
        self.streams.push(stream.clone());
        if self.asked.csv || known {
            return;
        }
        let mut how = match self.asked.ways {
            DataWays::Reverse => "reverse".to_owned(),
            DataWays::FullDuplex => "full-duplex) (no-udp-fin".to_owned(),
            _ => String::new(),
        };
        if self.asked.trip_times {
            let between = if how.is_empty() { "" } else { ") (" };
            how.push_str(&format!("{between}trip-times"));
        }
        let id = (stream.flow + 1).to_string();
        output::print_line(&lines::connected(&id, &stream.local_addr, &stream.remote_addr, &how));
    }

    fn print_header(&self, stream: &StreamOpened) {
        if self.asked.csv {
            return;
        }
        let (asked, size) = (self.asked, self.asked.datagram_bytes());
        let gap_us = udp_plan(asked)
            .test
            .pace
            .map(|pace| f64::from(size) * 8e6 / pace.bits_per_sec() as f64);
        let gap = gap_us.map_or_else(
            || "as fast as possible".to_owned(),
            |us| format!("IPG target: {us:.2} us"),
        );
        let buffer = stream.sndbuf_bytes.map_or_else(|| "-".to_owned(), RateFormat::size_text);
        let how = if asked.window.is_some() { "requested" } else { "default" };
        output::print_line(RULER);
        let host = asked.host.as_deref().unwrap_or("");
        output::print_line(&format!("Client connecting to {host}, UDP port {}", asked.port));
        output::print_line(&format!("Sending {size} byte datagrams, {gap}"));
        output::print_line(&format!("UDP buffer size: {buffer} ({how})"));
        output::print_line(RULER);
    }

    fn interval(&mut self, row: &IntervalRow) {
        let span = RowSpan { begin_s: row.start_ns as f64 / 1e9, end_s: row.end_ns as f64 / 1e9 };
        // With one stream its row is the sum.
        let flow = row.flow.or_else(|| (self.asked.streams == 1).then_some(0));
        let what = match row.datagrams {
            None => {
                let datagrams = row.bytes / u64::from(self.asked.datagram_bytes());
                UdpRow::Sent(row.bytes, datagrams, false)
            }
            Some(counts) => UdpRow::Received(Received {
                bytes: row.bytes,
                lost: counts.lost,
                total: counts.received.saturating_add_signed(counts.lost),
                out_of_order: counts.reordered + counts.duplicates,
                jitter_ms: counts.jitter_ns.unwrap_or(0) as f64 / 1e6,
                transit: None,
            }),
        };
        self.print_row(row.direction, flow, span, &what);
    }

    fn print_row(&mut self, direction: Direction, flow: Option<u16>, span: RowSpan, what: &UdpRow) {
        if self.asked.csv {
            self.csv_row(direction, flow, span, what);
            return;
        }
        let received = matches!(what, UdpRow::Received(_));
        let style = self.asked.row_style();
        if self.headed.replace(received) != Some(received) {
            output::print_line(style.header_line(received));
        }
        let star = if direction == Direction::Down { "*" } else { "" };
        let id = flow.map_or_else(|| "SUM".to_owned(), |flow| format!("{star}{}", flow + 1));
        match what {
            UdpRow::Sent(bytes, datagrams, _) => {
                output::print_line(&style.sent_row(&id, span, *bytes, *datagrams));
            }
            UdpRow::Received(received) => {
                style
                    .received(&id, span, received)
                    .iter()
                    .for_each(|line| output::print_line(line));
            }
        }
    }

    fn csv_row(&self, direction: Direction, flow: Option<u16>, span: RowSpan, what: &UdpRow) {
        let Some(flow) = flow else { return };
        let same = |stream: &&StreamOpened| (stream.direction, stream.flow) == (direction, flow);
        let Some(stream) = self.streams.iter().find(same) else { return };
        // Who sends comes first.
        let (sender, receiver) = match direction {
            Direction::Up => (stream.local_addr.as_str(), stream.remote_addr.as_str()),
            Direction::Down => (stream.remote_addr.as_str(), stream.local_addr.as_str()),
        };
        let (date, id) = (lines::start_date(span), u32::from(flow) + 1);
        let row = |bytes| lines::csv_row(&date, id, sender, receiver, span, bytes);
        output::print_line(&match what {
            UdpRow::Sent(bytes, datagrams, whole) => {
                csv_sent(row(*bytes), (!whole).then_some(*datagrams))
            }
            UdpRow::Received(received) => csv_received(row(received.bytes), received),
        });
    }

    /// The rows of the whole test, and the server's reports.
    fn print_summary(&mut self, record: &Record, reports: &[UdpReport]) {
        let sent = self.print_sent(record);
        for (report, flow) in reports.iter().zip(1..) {
            self.server_report(report, flow);
        }
        self.received(record);
        if sent.len() > 1 && !self.asked.csv {
            let count: u64 = sent.iter().sum();
            output::print_line(&format!("[SUM-{}] Sent {count} datagrams", sent.len()));
        }
    }

    /// Datagrams of each sending stream, the end among them: it is as long as the others.
    fn print_sent(&mut self, record: &Record) -> Vec<u64> {
        let ends = flow_ends(record, Direction::Up);
        let size = u64::from(self.asked.datagram_bytes());
        let mut all = Vec::new();
        for (flow, end) in &ends {
            let Some(sent) = &end.sent_datagrams else { continue };
            let count = sent.count + 1;
            let span = RowSpan::from_zero(end.span_ns as f64 / 1e9);
            self.print_row(
                Direction::Up,
                Some(*flow),
                span,
                &UdpRow::Sent(count * size, count, true),
            );
            if !self.asked.csv {
                output::print_line(&format!("[{:>3}] Sent {count} datagrams", flow + 1));
            }
            all.push(count);
        }
        if all.len() > 1 {
            let count: u64 = all.iter().sum();
            let row = UdpRow::Sent(count * size, count, true);
            self.print_row(Direction::Up, None, RowSpan::from_zero(whole_s(&ends)), &row);
        }
        all
    }

    fn received(&mut self, record: &Record) {
        let ends = flow_ends(record, Direction::Down);
        let (mut sum, mut streams) = (Received::default(), 0);
        for (flow, end) in &ends {
            let Some(received) = &end.received_datagrams else { continue };
            let tally = received.all;
            let jitter_ns = received.delay.and_then(|delay| delay.jitter_ns).unwrap_or(0);
            let one = Received {
                bytes: end.bytes,
                lost: i64::try_from(tally.lost).unwrap_or(i64::MAX),
                total: tally.received + tally.lost,
                out_of_order: tally.reordered + tally.duplicates,
                jitter_ms: jitter_ns as f64 / 1e6,
                transit: None,
            };
            let span = RowSpan::from_zero(end.span_ns as f64 / 1e9);
            self.print_row(Direction::Down, Some(*flow), span, &UdpRow::Received(one));
            streams += 1;
            sum = Received {
                bytes: sum.bytes + one.bytes,
                lost: sum.lost + one.lost,
                total: sum.total + one.total,
                out_of_order: sum.out_of_order + one.out_of_order,
                jitter_ms: sum.jitter_ms.max(one.jitter_ms),
                transit: None,
            };
        }
        if streams > 1 {
            let span = RowSpan::from_zero(whole_s(&ends));
            self.print_row(Direction::Down, None, span, &UdpRow::Received(sum));
        }
    }

    fn server_report(&mut self, report: &UdpReport, flow: u16) {
        if self.asked.csv {
            return;
        }
        let style = self.asked.row_style();
        output::print_line(&format!("[{flow:>3}] Server Report:"));
        output::print_line(style.header_line(true));
        let span = RowSpan::from_zero(report.span_us as f64 / 1e6);
        let rows = style.received(&flow.to_string(), span, &Received::from_report(report));
        rows.iter().for_each(|line| output::print_line(line));
        self.headed = Some(true);
    }
}

/// This end of every stream of a direction.
fn flow_ends(record: &Record, direction: Direction) -> Vec<(u16, &FlowEnd)> {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction);
    let ends = flows.filter_map(|flow| {
        let end = match direction {
            Direction::Up => flow.sender.as_ref(),
            Direction::Down => flow.receiver.as_ref(),
        };
        end.map(|end| (flow.flow, end))
    });
    ends.collect()
}

/// From the first stream's begin to the last one's end: a server that is busy begins to send them
/// one after another.
fn whole_s(ends: &[(u16, &FlowEnd)]) -> f64 {
    together(ends.iter().map(|(_, end)| *end)).1
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_begin_apart_are_together_from_the_first_begin_to_the_last_end() {
        let end = |span_start_ns, span_ns| FlowEnd { span_start_ns, span_ns, ..FlowEnd::default() };
        let ends = [end(20_000_000, 1_000_000_000), end(1_500_000_000, 1_020_000_000)];
        let ends = [(0, &ends[0]), (1, &ends[1])];
        // From 20 ms to 2.52 s.
        assert!((whole_s(&ends) - 2.5).abs() < 1e-9);
    }
}
