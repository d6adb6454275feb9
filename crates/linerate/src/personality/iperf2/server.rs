//! `iperf -s`: a line for each stream, its rows, and a line for what went wrong.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure};
use linerate_engine::flow::Sample;
use linerate_engine::foreign::{Seen, Serving, iperf2};
use linerate_sys::stop::Stop;

use super::Iperf2Options;
use super::enhanced::{self, Sender};
use super::lines::{self, Format, HEAD, RULER, RowSpan};
use crate::output;
use crate::personality::listening;

/// Serves until the user stops it.
pub(super) fn run(asked: &Iperf2Options) -> Result<(), Failure> {
    let listener = listening::listen(asked.bind, asked.port, asked.window)?;
    let stop = listening::until_interrupted()?;
    if !asked.csv {
        output::line(RULER);
        let port = listener.local_addr().map_or(asked.port, |address| address.port());
        output::line(&format!("Server listening on TCP port {port}"));
        let window = asked.window.unwrap_or(128 << 10);
        let asked = if asked.window.is_some() { "requested" } else { "default" };
        output::line(&format!("TCP window size: {} ({asked})", Format::size(window)));
        output::line(RULER);
    }
    listening::within(asked.serve_for, &stop, &|| false, || {
        let most = asked.serve_clients;
        listening::serve(&listener, &stop, most, &|stream, _| answer(stream, asked, &stop, ""))
    })
}

/// Longest time of a connection back.
pub(super) fn span(asked: &Iperf2Options) -> Duration {
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
    let mut watch = |seen: &Seen<'_>| client.show_event(seen);
    let mut serving = Serving {
        admission: &listening::Everybody,
        stop,
        interval: interval.unwrap_or(Duration::from_secs(86_400)),
        watch: &mut watch,
    };
    if let Err(failure) = iperf2::serve(stream, &mut serving) {
        output::note(&format!("iperf: {failure}"));
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
    fn show_event(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Stream(socket, direction, _) => {
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
                    let id = self.id(*direction);
                    output::line(&lines::connected(&id, &local, &remote, ""));
                }
                self.streams.push((*direction, local, remote));
            }
            Seen::Interval(samples) if self.asked.interval_s.is_some() => self.interval(samples),
            Seen::Interval(_) => {}
            Seen::Done(reports) => reports.iter().for_each(|report| self.show_report(report)),
            Seen::Bounced(done) => output::line(&format!("[{:>3}] {done}", self.number)),
        }
    }

    fn id(&self, direction: Direction) -> String {
        let star = if direction == Direction::Down { "*" } else { self.star };
        format!("{star}{}", self.number)
    }

    fn interval(&mut self, samples: &[Sample]) {
        let mut rows = Vec::new();
        for sample in samples {
            let same = |other: &&Sample| other.direction == sample.direction;
            let before = self.before.iter().find(same);
            let (t_ns, bytes) = before.map_or((0, 0), |before| (before.t_ns, before.bytes));
            let span = RowSpan { begin_s: t_ns as f64 / 1e9, end_s: sample.t_ns as f64 / 1e9 };
            // The rest after the last whole interval has no row.
            if span.seconds() * 2.0 < self.asked.interval_s.unwrap_or(0.0) {
                continue;
            }
            let sender = Sender::of_sample(sample, before);
            rows.push((sample.direction, span, sample.bytes.saturating_sub(bytes), sender));
        }
        for (direction, span, bytes, sender) in rows {
            self.row(direction, span, bytes, sender, None);
        }
        self.before = samples.to_vec();
    }

    fn show_report(&mut self, report: &EndReport) {
        let span = RowSpan::from_zero(report.end.span_ns as f64 / 1e9);
        let (sender, reads) = (Sender::of_end(&report.end), Some(report.end.io_calls));
        self.row(report.direction, span, report.end.bytes, sender, reads);
    }

    /// Prints a row, with the columns of `-e`.
    fn row(
        &mut self,
        direction: Direction,
        span: RowSpan,
        bytes: u64,
        sender: Sender,
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
                output::line(&lines::csv(
                    &lines::date(span),
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
                        (enhanced::SENT, enhanced::sent(sender, bytes, length, span.seconds()))
                    }
                };
                if self.headed.replace(head) != Some(head) {
                    output::line(head);
                }
                let row = lines::row(&self.id(direction), span, bytes, self.asked.format);
                output::line(&format!("{row}{columns}"));
            }
        }
    }
}
