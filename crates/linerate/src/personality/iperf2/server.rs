//! `iperf -s`: a line for each stream, its rows, and a line for what went wrong.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure};
use linerate_engine::flow::Sample;
use linerate_engine::foreign::{ServedEvent, Serving, iperf2};
use linerate_sys::stop::Stop;

use super::Iperf2Options;
use super::enhanced::{self, SenderCounters};
use super::lines::{self, HEAD, RULER, RateFormat, RowSpan};
use crate::output;
use crate::personality::listening;

/// Serves until the user stops it.
pub(super) fn run(asked: &Iperf2Options) -> Result<(), Failure> {
    let listener = listening::listen(asked.bind, asked.port, asked.window)?;
    let stop = listening::until_interrupted()?;
    if !asked.csv {
        output::print_line(RULER);
        let port = listener.local_addr().map_or(asked.port, |address| address.port());
        output::print_line(&format!("Server listening on TCP port {port}"));
        let window = asked.window.unwrap_or(128 << 10);
        let asked = if asked.window.is_some() { "requested" } else { "default" };
        output::print_line(&format!(
            "TCP window size: {} ({asked})",
            RateFormat::size_text(window)
        ));
        output::print_line(RULER);
    }
    listening::within(asked.serve_for, &stop, &|| false, || {
        let most = asked.serve_clients;
        listening::serve_connections(&listener, &stop, most, &|stream, _| {
            answer(stream, asked, &stop, "")
        })
    })
}

/// Longest time of a connection back.
pub(super) fn return_span_max(asked: &Iperf2Options) -> Duration {
    Duration::try_from_secs_f64(asked.time_s).unwrap_or_default() + Duration::from_secs(15)
}

/// Serves one connection; `star` is printed before its number.
pub(super) fn answer(stream: TcpStream, asked: &Iperf2Options, stop: &Stop, star: &str) {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let mut client = TcpServerClient {
        asked,
        number,
        star,
        streams: Vec::new(),
        before: Vec::new(),
        headed: None,
    };
    let interval = asked.interval_s.map(Duration::try_from_secs_f64).and_then(Result::ok);
    let mut watch = |seen: &ServedEvent<'_>| client.show_event(seen);
    let mut serving = Serving {
        admission: &listening::AdmitEveryone,
        stop,
        interval: interval.unwrap_or(Duration::from_secs(86_400)),
        watch: &mut watch,
    };
    if let Err(failure) = iperf2::serve_connection(stream, &mut serving) {
        output::print_note(&format!("iperf: {failure}"));
    }
}

/// One client, as its rows are printed.
struct TcpServerClient<'a> {
    asked: &'a Iperf2Options,
    number: u32,
    star: &'a str,
    /// Direction, own address, the client's.
    streams: Vec<(Direction, String, String)>,
    before: Vec<Sample>,
    /// The head above the last row.
    headed: Option<&'static str>,
}

impl TcpServerClient<'_> {
    fn show_event(&mut self, seen: &ServedEvent<'_>) {
        match seen {
            ServedEvent::Stream(socket, direction, _) => {
                let text = |address: std::io::Result<std::net::SocketAddr>| {
                    address.map_or_else(
                        |_| String::new(),
                        |address| {
                            let plain = address.ip().to_canonical();
                            std::net::SocketAddr::new(plain, address.port()).to_string()
                        },
                    )
                };
                let (local, remote) = (text(socket.local_addr()), text(socket.peer_addr()));
                let known = self.streams.iter().any(|(_, other, _)| *other == local);
                if !self.asked.csv && !known {
                    let id = self.stream_id(*direction);
                    output::print_line(&lines::connected(&id, &local, &remote, ""));
                }
                self.streams.push((*direction, local, remote));
            }
            ServedEvent::Interval(samples) if self.asked.interval_s.is_some() => {
                self.interval(samples)
            }
            ServedEvent::Interval(_) => {}
            ServedEvent::Done(reports) => {
                reports.iter().for_each(|report| self.show_report(report))
            }
            ServedEvent::Bounced(done) => {
                output::print_line(&format!("[{:>3}] {done}", self.number))
            }
        }
    }

    fn stream_id(&self, direction: Direction) -> String {
        let star = if direction == Direction::Down { "*" } else { self.star };
        format!("{star}{}", self.number)
    }

    fn interval(&mut self, samples: &[Sample]) {
        for sample in samples {
            let before = self.before(sample.direction).cloned();
            let (t_ns, bytes) =
                before.as_ref().map_or((0, 0), |before| (before.t_ns, before.bytes));
            let span = RowSpan { begin_s: t_ns as f64 / 1e9, end_s: sample.t_ns as f64 / 1e9 };
            // After a late row the next has what a short one would have.
            if span.seconds() * 2.0 < self.asked.interval_s.unwrap_or(0.0) {
                continue;
            }
            let sender = SenderCounters::of_sample(sample, before.as_ref());
            self.print_row(
                sample.direction,
                span,
                sample.bytes.saturating_sub(bytes),
                sender,
                None,
            );
            self.before.retain(|other| other.direction != sample.direction);
            self.before.push(sample.clone());
        }
    }

    /// The sample of the last row of a direction.
    fn before(&self, direction: Direction) -> Option<&Sample> {
        self.before.iter().find(|other| other.direction == direction)
    }

    /// Prints the row of the data after the last interval, and that of the whole test.
    fn show_report(&mut self, report: &EndReport) {
        let end = &report.end;
        let before = self.before(report.direction);
        let (told_ns, told_bytes) = before.map_or((0, 0), |sample| (sample.t_ns, sample.bytes));
        // A row may end a moment after the last byte; a rest without a time has no row.
        let ended = end.span_ns.max(told_ns) as f64 / 1e9;
        let rest = end.bytes.saturating_sub(told_bytes);
        let last = SenderCounters::of_end(end);
        if let Some(before) =
            self.before(report.direction).filter(|_| rest > 0 && end.span_ns > told_ns)
        {
            let sent_again = before.retransmits.unwrap_or(0);
            let retransmits = last.retransmits.map(|all| all.saturating_sub(sent_again));
            let sender = SenderCounters { retransmits, ..last };
            let span = RowSpan { begin_s: told_ns as f64 / 1e9, end_s: ended };
            self.print_row(report.direction, span, rest, sender, None);
        }
        let span = RowSpan::from_zero(ended);
        self.print_row(report.direction, span, end.bytes, last, Some(end.io_calls));
        self.before.retain(|other| other.direction != report.direction);
    }

    /// Prints a row, with the columns of `-e`.
    fn print_row(
        &mut self,
        direction: Direction,
        span: RowSpan,
        bytes: u64,
        sender: SenderCounters,
        reads: Option<u64>,
    ) {
        let stream = self.streams.iter().find(|(way, ..)| *way == direction);
        match stream.filter(|_| self.asked.csv) {
            Some((_, local, remote)) => {
                // Who sends comes first.
                let (sender, receiver) = match direction {
                    Direction::Up => (remote, local),
                    Direction::Down => (local, remote),
                };
                output::print_line(&lines::csv_row(
                    &lines::start_date(span),
                    self.number,
                    sender,
                    receiver,
                    span,
                    bytes,
                ));
            }
            None => {
                // The server of a client that sends is the receiver.
                let (head, columns) = match (self.asked.enhanced, direction) {
                    (false, _) => (HEAD, String::new()),
                    (true, Direction::Up) => (enhanced::RECEIVED, enhanced::received(reads)),
                    (true, Direction::Down) => {
                        let length = self.asked.length.unwrap_or(128 << 10);
                        (
                            enhanced::SENT,
                            enhanced::sender_columns(sender, bytes, length, span.seconds()),
                        )
                    }
                };
                if self.headed.replace(head) != Some(head) {
                    output::print_line(head);
                }
                let row =
                    lines::transfer_row(&self.stream_id(direction), span, bytes, self.asked.format);
                output::print_line(&format!("{row}{columns}"));
            }
        }
    }
}
