//! The server of the command line of iperf3.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_core::record::{Event, Failure, Fault, Record};
use linerate_engine::foreign::iperf3::Observer;
use linerate_proto::iperf3::{Cookie, Params, ServerOutput};
use linerate_report::iperf3::{Document, Lines};
use linerate_server::admission::Limits;
use linerate_server::foreign::iperf3::{Iperf3Server, limits, sheet_of};
use linerate_server::listen::LogEntry;
use linerate_sys::clock::wall;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::any_address;

use super::paper::Paper;
use super::{Args, has_rows, pretty, stream_line, surroundings};
use crate::exit::Outcome;

const RULE: &str = "-----------------------------------------------------------\n";

/// Answers iperf3's clients, one test at a time, until it is interrupted.
pub(super) fn run(args: &Args, paper: &Paper) -> Outcome {
    let stop = Stop::on_signals()?;
    linerate_sys::open_files::raise_limit();
    let server = bind(args)?.guarded(args.guard.guard()?);
    let server = server.ending_idle(args.idle_timeout.filter(|_| args.one_off));
    let port = server.local_addr()?.port();
    let quiet = args.json || args.json_stream;
    let tests = AtomicU64::new(0);
    let listening = || {
        let number = tests.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("{RULE}Server listening on {port} (test #{number})\n{RULE}");
        if !quiet {
            paper.lines(&line);
        }
    };
    listening();
    let log = |entry: &LogEntry<'_>| {
        let refused = entry.line.contains("refused");
        if !entry.tested {
            paper.error(&format!("error - {}", entry.line));
        }
        if args.one_off && entry.tested && !refused {
            stop.ask();
        } else if !refused {
            listening();
        }
    };
    let shapes = Shapes {
        json: args.json,
        stream: args.json_stream,
        verbose: args.verbose,
        unit: args.format.unwrap_or_default(),
        title: args.test.title.clone(),
    };
    let observers = || -> Box<dyn Observer> {
        let paper = args.paper().unwrap_or_else(|_| Paper::standard());
        let (shapes, said) = (shapes.clone(), String::new());
        Box::new(Page { shapes, paper, lines: None, document: None, extra_data: None, said })
    };
    server.run(&stop, args.interval.max(MIN_INTERVAL), &observers, &log);
    if !args.one_off {
        paper.error("interrupt - the server has terminated");
    }
    Ok(0)
}

/// Rows more often than this are not taken.
const MIN_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

fn bind(args: &Args) -> Result<Iperf3Server, Failure> {
    let address: Option<IpAddr> = match &args.bind {
        Some(text) => Some(text.parse().map_err(|_| {
            Failure::new(Fault::Usage, "bind", text, "not an IP address")
                .advise("give an address of this host to -B")
        })?),
        None => None,
    };
    let limits = limits();
    let duration = args.server_max_duration.unwrap_or(limits.duration);
    let limits = Limits { duration, ..limits };
    let v6 = !args.test.version4;
    let local = SocketAddr::new(address.unwrap_or_else(|| any_address(v6)), args.port);
    match Iperf3Server::bind(local, limits) {
        Err(failure) if address.is_none() && failure.attempt.starts_with("open TCP socket") => {
            Iperf3Server::bind(SocketAddr::new(any_address(false), args.port), limits)
        }
        result => result,
    }
}

/// How a test is printed.
#[derive(Clone, Debug)]
struct Shapes {
    json: bool,
    stream: bool,
    verbose: bool,
    unit: linerate_report::iperf3::Unit,
    title: Option<String>,
}

/// What is printed of a test at the server.
struct Page {
    shapes: Shapes,
    paper: Paper,
    lines: Option<Lines>,
    document: Option<Document>,
    extra_data: Option<String>,
    /// What was printed, for a client that wants it.
    said: String,
}

impl Page {
    fn print(&mut self, lines: &str) {
        self.said.push_str(lines);
        if !self.shapes.json && !self.shapes.stream {
            self.paper.lines(lines);
        }
    }
}

impl Observer for Page {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Plan(plan) => {
                let Some(sheet) = sheet_of(plan) else { return };
                let lines = Lines::new(sheet.clone(), self.shapes.unit, self.shapes.verbose);
                let accepted = lines.accepted();
                self.lines = Some(lines);
                let title = self.shapes.title.as_ref();
                let around = surroundings(title, self.extra_data.as_ref(), wall());
                self.document = Some(Document::new(sheet, around));
                self.print(&accepted);
            }
            Event::Stream(stream) => {
                let start = self.document.as_mut().and_then(|document| document.stream(stream));
                if let Some(start) = start.filter(|_| self.shapes.stream) {
                    self.paper.text(&stream_line("start", &start));
                }
                if let Some(said) = self.lines.as_mut().map(|lines| lines.stream(stream)) {
                    self.print(&said);
                }
            }
            Event::Interval(row) => {
                let Some(document) = &mut self.document else { return };
                if !has_rows(&document.sheet) {
                    return;
                }
                if let Some(interval) = document.row(row).filter(|_| self.shapes.stream) {
                    self.paper.text(&stream_line("interval", &interval));
                }
                if let Some(said) = self.lines.as_mut().map(|lines| lines.row(row)) {
                    self.print(&said);
                }
            }
            _ => {}
        }
    }

    fn accepted(&mut self, params: &Params, _: SocketAddr, cookie: &Cookie) {
        if self.shapes.verbose {
            self.print(&format!("      Cookie: {}\n", cookie.text()));
        }
        self.extra_data.clone_from(&params.extra_data);
    }

    fn output(&mut self, record: &Record) -> Option<ServerOutput> {
        if self.shapes.json || self.shapes.stream {
            return Some(ServerOutput::Json(self.document.as_ref()?.whole(record)));
        }
        let summary = self.lines.as_ref()?.summary(record);
        Some(ServerOutput::Text(self.said.clone() + &summary))
    }

    fn ended(&mut self, record: &Record) {
        if self.shapes.stream {
            let end = self.document.as_ref().map(|document| document.end(record));
            self.paper.text(&stream_line("end", &end.unwrap_or_default()));
        } else if self.shapes.json {
            let whole = self.document.as_ref().map(|document| document.whole(record));
            self.paper.text(&pretty(&whole.unwrap_or_default()));
        } else if !record.flows.is_empty()
            && let Some(summary) = self.lines.as_ref().map(|lines| lines.summary(record))
        {
            self.print(&summary);
        }
    }
}
