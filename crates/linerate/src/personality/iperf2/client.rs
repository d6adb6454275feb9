//! `iperf -c`: the plan, and its rows as they come.

use std::sync::{Mutex, PoisonError};

use linerate_core::record::{
    Direction, Event, Failure, Finish, FlowEnd, IntervalRow, Record, StreamOpened, TcpPlan, TcpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf2::{Return, run_with_return};
use linerate_engine::throughput;
use linerate_sys::stop::Stop;

use super::enhanced::{self, SenderCounters};
use super::lines::{self, HEAD, RULER, RateFormat, RowSpan};
use super::{DataWays, Iperf2Options, server};
use crate::command::measure::this_tool;
use crate::output;
use crate::personality::{listening, together};

/// Runs the client and prints its rows.
pub(super) fn run(asked: &Iperf2Options) -> Result<(), Failure> {
    let plan = tcp_plan(asked);
    let stop = listening::until_interrupted()?;
    let printer = Mutex::new(TcpPrinter { asked, streams: Vec::new(), headed: None });
    let mut watch = |event: &Event| lock(&printer).print_event(event);
    let mut context = Context { tool: this_tool(), stop: stop.clone(), watch: &mut watch };
    let record = match asked.ways {
        DataWays::Dual | DataWays::TradeOff => with_return(asked, &plan, &mut context)?,
        _ => throughput::run_tcp(&plan, &mut context),
    };
    lock(&printer).print_summary(&record);
    record.failure.map_or(Ok(()), Err)
}

/// The test there, and the server's connection back.
fn with_return(
    asked: &Iperf2Options,
    plan: &TcpPlan,
    context: &mut Context<'_>,
) -> Result<Record, Failure> {
    let port = asked.listen_port.unwrap_or(asked.port);
    let back = Return { at_once: asked.ways == DataWays::Dual, port };
    let listener = listening::listen(asked.bind, port, asked.window)?;
    let (stop, listening) = (context.stop.clone(), Stop::new());
    let giving_up = listening.clone();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            listening::serve_connections(&listener, &giving_up, Some(1), &|stream, _| {
                server::answer(stream, asked, &stop, "*");
            })
        });
        let record = run_with_return(plan, back, context);
        if record.failure.is_some() || context.stop.is_requested() {
            listening.request_stop();
        }
        // A server that never comes back keeps nobody waiting longer than its own test.
        let deadline = linerate_sys::clock::monotonic() + server::return_span_max(asked);
        while !receiving.is_finished() && linerate_sys::clock::monotonic() < deadline {
            linerate_sys::clock::sleep(std::time::Duration::from_millis(10));
        }
        listening.request_stop();
        let _ = receiving.join();
        Ok(record)
    })
}

fn tcp_plan(asked: &Iperf2Options) -> TcpPlan {
    let streams = u64::from(asked.streams);
    // iperf's -n is of each stream.
    let finish = match asked.bytes {
        Some(bytes) => Finish::Bytes(bytes.saturating_mul(streams)),
        None => Finish::TimeNs((asked.time_s * 1e9) as u64),
    };
    TcpPlan {
        server: asked.server_plan(),
        test: TcpTest {
            directions: asked.directions(),
            streams: asked.streams,
            finish,
            interval_ns: (asked.interval_s.unwrap_or(86_400.0) * 1e9) as u64,
            buffer_bytes: asked.length.unwrap_or(128 << 10),
            window_bytes: asked.window,
            mss_bytes: asked.mss,
            nodelay: asked.nodelay,
            congestion_control: asked.congestion_control.clone(),
            pace: asked.rate_bps().map(BitRate::from_bits_per_sec),
            dscp: Some(asked.tos >> 2).filter(|dscp| *dscp > 0),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

/// Prints a test as it goes.
struct TcpPrinter<'a> {
    asked: &'a Iperf2Options,
    streams: Vec<StreamOpened>,
    /// The head above the last row.
    headed: Option<&'static str>,
}

impl TcpPrinter<'_> {
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
        // Both directions of one connection have one line.
        let same = |other: &StreamOpened| other.local_addr == stream.local_addr;
        let known = self.streams.iter().any(same);
        self.streams.push(stream.clone());
        if self.asked.csv || known {
            return;
        }
        let how = match self.asked.ways {
            DataWays::Reverse => "reverse",
            DataWays::FullDuplex => "full-duplex",
            _ => "",
        };
        let id = (stream.flow + 1).to_string();
        output::print_line(&lines::connected(&id, &stream.local_addr, &stream.remote_addr, how));
    }

    fn print_header(&self, stream: &StreamOpened) {
        if self.asked.csv {
            return;
        }
        let window = match self.asked.ways {
            DataWays::Reverse => stream.rcvbuf_bytes,
            _ => stream.sndbuf_bytes,
        };
        let window = window.map_or_else(|| "-".to_owned(), RateFormat::size_text);
        let host = self.asked.host.as_deref().unwrap_or("");
        let asked = self.asked.window.map(RateFormat::size_text);
        let asked = asked
            .map_or_else(|| "default".to_owned(), |asked| format!("WARNING: requested {asked}"));
        output::print_line(RULER);
        output::print_line(&format!("Client connecting to {host}, TCP port {}", self.asked.port));
        if self.asked.enhanced {
            let length = self.asked.length.unwrap_or(128 << 10);
            output::print_line(&format!("Write buffer size: {length} Byte"));
        }
        output::print_line(&format!("TCP window size: {window} ({asked})"));
        output::print_line(RULER);
    }

    fn interval(&mut self, row: &IntervalRow) {
        let span = RowSpan { begin_s: row.start_ns as f64 / 1e9, end_s: row.end_ns as f64 / 1e9 };
        // With one stream its row is the sum.
        let flow = row.flow.or_else(|| (self.asked.streams == 1).then_some(0));
        self.print_row(row.direction, flow, span, row.bytes, SenderCounters::of_row(row), None);
    }

    /// Prints a row, with the columns of `-e`.
    fn print_row(
        &mut self,
        direction: Direction,
        flow: Option<u16>,
        span: RowSpan,
        bytes: u64,
        sender: SenderCounters,
        reads: Option<u64>,
    ) {
        if self.asked.csv {
            self.csv_row(direction, flow, span, bytes);
            return;
        }
        let sends = direction == Direction::Up;
        let (head, columns) = match (self.asked.enhanced, sends) {
            (false, _) => (HEAD, String::new()),
            (true, true) => {
                let length = self.asked.length.unwrap_or(128 << 10);
                let sender = SenderCounters {
                    cwnd_bytes: sender.cwnd_bytes.filter(|_| flow.is_some()),
                    ..sender
                };
                (enhanced::SENT, enhanced::sender_columns(sender, bytes, length, span.seconds()))
            }
            (true, false) => (enhanced::RECEIVED, enhanced::received(reads)),
        };
        if self.headed.replace(head) != Some(head) {
            output::print_line(head);
        }
        let star = if direction == Direction::Down { "*" } else { "" };
        let id = flow.map_or_else(|| "SUM".to_owned(), |flow| format!("{star}{}", flow + 1));
        let row = lines::transfer_row(&id, span, bytes, self.asked.format);
        output::print_line(&format!("{row}{columns}"));
    }

    fn csv_row(&self, direction: Direction, flow: Option<u16>, span: RowSpan, bytes: u64) {
        let Some(flow) = flow else { return };
        let same = |stream: &&StreamOpened| (stream.direction, stream.flow) == (direction, flow);
        let Some(stream) = self.streams.iter().find(same) else { return };
        // Who sends comes first.
        let (sender, receiver) = match direction {
            Direction::Up => (stream.local_addr.as_str(), stream.remote_addr.as_str()),
            Direction::Down => (stream.remote_addr.as_str(), stream.local_addr.as_str()),
        };
        output::print_line(&lines::csv_row(
            &lines::start_date(span),
            u32::from(flow) + 1,
            sender,
            receiver,
            span,
            bytes,
        ));
    }

    /// The rows of the whole test.
    fn print_summary(&mut self, record: &Record) {
        for direction in [Direction::Up, Direction::Down] {
            let flows = record.flows.iter().filter(|flow| flow.direction == direction);
            let ends: Vec<(u16, &FlowEnd)> = flows
                .filter_map(|flow| {
                    let end = match direction {
                        Direction::Up => flow.sender.as_ref(),
                        Direction::Down => flow.receiver.as_ref(),
                    };
                    end.map(|end| (flow.flow, end))
                })
                .collect();
            for (flow, end) in &ends {
                let span = RowSpan::from_zero(end.span_ns as f64 / 1e9);
                let (sender, reads) = (SenderCounters::of_end(end), Some(end.io_calls));
                // What was still on the way after the test's time is not of its span.
                self.print_row(direction, Some(*flow), span, end.bytes_measured, sender, reads);
            }
            if ends.len() > 1 {
                let each = ends.iter().map(|(_, end)| SenderCounters::of_end(end).retransmits);
                let sender =
                    SenderCounters { retransmits: each.sum(), ..SenderCounters::default() };
                let reads = ends.iter().map(|(_, end)| end.io_calls).sum();
                let (bytes, seconds) = together(ends.iter().map(|(_, end)| *end));
                self.print_row(
                    direction,
                    None,
                    RowSpan::from_zero(seconds),
                    bytes,
                    sender,
                    Some(reads),
                );
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
