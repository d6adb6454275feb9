//! The server of the command line of iperf3.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::record::{Event, Failure, FailureCode, Fault, Record};
use linerate_engine::foreign::iperf3::Observer;
use linerate_proto::iperf3::{Cookie, Params, ServerOutput};
use linerate_report::iperf3::{Iperf3Document, Iperf3Lines, line_of, pretty};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::iperf3::{Iperf3Server, limits, sheet_of};
use linerate_server::listen::{ClientTestEnd, LogEntry};
use linerate_sys::clock::wall_time;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::any_address;
use tracing::level_filters::LevelFilter;

use super::asked::Iperf3Options;
use super::client::name;
use super::paper::Paper;
use super::said::{failure_text, of_server};
use super::{NO_ROWS_NS, login, surroundings};

const RULE: &str = "-----------------------------------------------------------\n";

/// Answers iperf3's clients, one test at a time, until it is interrupted.
pub(super) fn run(args: &Iperf3Options, paper: &Paper) -> Result<u8, Failure> {
    let stop = Stop::on_signals().map_err(|error| linerate_engine::failure::system(&error))?;
    linerate_sys::open_files::raise_limit();
    let server = bind_server(args)?.guarded(login::login_guard(args)?);
    let server = server.ending_idle(args.idle_timeout.filter(|_| args.one_off));
    let port = server.local_addr()?.port();
    let quiet = args.json;
    let tests = AtomicU64::new(0);
    let listening = || {
        let number = tests.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("{RULE}Server listening on {port} (test #{number})\n{RULE}");
        if !quiet {
            paper.write_lines(&line);
        }
    };
    listening();
    crate::log::install_logger(LevelFilter::WARN, crate::log::Form::Text);
    let log = |entry: &LogEntry<'_>| {
        match entry.ending {
            ClientTestEnd::Refused => return,
            ClientTestEnd::Tested if args.one_off => return stop.request_stop(),
            ClientTestEnd::Failed(failure) if !stop.is_requested() => {
                paper.write_error(&of_server(failure))
            }
            ClientTestEnd::Tested | ClientTestEnd::Failed(_) => {}
        }
        listening();
    };
    let shapes = Shapes {
        json: args.json,
        stream: args.json_stream,
        verbose: args.verbose,
        unit: args.unit.unwrap_or_default(),
        full: args.full_output,
    };
    let observers = || -> Box<dyn Observer> {
        let paper = args.open_output().unwrap_or_else(|_| Paper::standard());
        let (shapes, said, of_client) = (shapes.clone(), String::new(), (None, None));
        Box::new(ServerPage { shapes, paper, lines: None, document: None, of_client, said })
    };
    let interval = if args.interval.is_zero() { NO_ROWS } else { args.interval };
    server.run(&stop, interval, &observers, &log);
    if stop.signal().is_some() {
        paper.write_error(&format!(
            "interrupt - the server has terminated by signal {}",
            name(&stop)
        ));
    }
    Ok(0)
}

/// The interval without rows: a day.
const NO_ROWS: Duration = Duration::from_nanos(NO_ROWS_NS);

fn bind_server(args: &Iperf3Options) -> Result<Iperf3Server, Failure> {
    let address: Option<IpAddr> = match &args.bind {
        Some(text) => Some(text.parse().map_err(|_| {
            Failure::new(Fault::Usage, "bind", text, "not an IP address")
                .advise("give an address of this host to -B")
                .with_code(FailureCode::Listen)
        })?),
        None => None,
    };
    let limits = limits();
    let duration = args.server_max_duration.unwrap_or(limits.duration);
    let limits = ServerLimits { duration, ..limits };
    let v6 = !args.ipv4;
    let local = SocketAddr::new(address.unwrap_or_else(|| any_address(v6)), args.port);
    match Iperf3Server::bind(local, limits) {
        Err(Failure { code: Some(FailureCode::OpenSocket), .. }) if address.is_none() => {
            Iperf3Server::bind(SocketAddr::new(any_address(false), args.port), limits)
        }
        result => result,
    }
}

/// Forms in which a test is printed.
#[derive(Clone, Debug)]
struct Shapes {
    json: bool,
    stream: bool,
    verbose: bool,
    unit: linerate_report::iperf3::Iperf3Unit,
    full: bool,
}

/// Output of a test at the server.
struct ServerPage {
    shapes: Shapes,
    paper: Paper,
    lines: Option<Iperf3Lines>,
    document: Option<Iperf3Document>,
    /// Title and text that the client gave.
    of_client: (Option<String>, Option<String>),
    /// Printed lines, for a client that asks for the server's output.
    said: String,
}

impl ServerPage {
    fn print_lines(&mut self, lines: &str) {
        self.said.push_str(lines);
        if !self.shapes.json && !self.shapes.stream {
            self.paper.write_lines(lines);
        }
    }
}

impl Observer for ServerPage {
    fn event_seen(&mut self, event: &Event) {
        match event {
            Event::Plan(plan) => {
                let Some(sheet) = sheet_of(plan) else { return };
                let lines = Iperf3Lines::new(sheet.clone(), self.shapes.unit, self.shapes.verbose);
                let accepted = lines.accepted();
                self.lines = Some(lines);
                let mut document = Iperf3Document::new(sheet, surroundings(wall_time()));
                (document.title, document.extra_data) = std::mem::take(&mut self.of_client);
                self.document = Some(document);
                self.print_lines(&accepted);
            }
            Event::Stream(stream) => {
                let start = self.document.as_mut().and_then(|document| document.stream(stream));
                if let Some(start) = start.filter(|_| self.shapes.stream) {
                    self.paper.write_text(&line_of("start", &start));
                }
                if let Some(said) = self.lines.as_mut().map(|lines| lines.stream(stream)) {
                    self.print_lines(&said);
                }
            }
            Event::Interval(row) => {
                let Some(document) = &mut self.document else { return };
                if let Some(interval) =
                    document.add_interval_row(row).filter(|_| self.shapes.stream)
                {
                    self.paper.write_text(&line_of("interval", &interval));
                }
                if let Some(said) = self.lines.as_mut().map(|lines| lines.interval_lines(row)) {
                    self.print_lines(&said);
                }
            }
            _ => {}
        }
    }

    fn accepted(&mut self, params: &Params, _: SocketAddr, cookie: &Cookie) {
        if self.shapes.verbose {
            self.print_lines(&format!("      Cookie: {}\n", cookie.printable_text()));
        }
        self.of_client = (params.title.clone(), params.extra_data.clone());
    }

    fn output(&mut self, record: &Record) -> Option<ServerOutput> {
        if self.shapes.json || self.shapes.stream {
            return Some(ServerOutput::Json(self.document.as_ref()?.complete_json(record, None)));
        }
        let summary = self.lines.as_ref()?.summary(record);
        Some(ServerOutput::Text(self.said.clone() + &summary))
    }

    fn test_ended(&mut self, record: &Record) {
        let error = record.failure.as_ref().map(failure_text);
        let Some(document) = &self.document else { return };
        if self.shapes.stream {
            if let Some(error) = &error {
                self.paper.write_text(&line_of("error", &error.as_str().into()));
            }
            self.paper.write_text(&line_of("end", &document.end_object(record)));
        }
        if self.shapes.json && (!self.shapes.stream || self.shapes.full) {
            self.paper.write_text(&pretty(&document.complete_json(record, error.as_deref())));
        }
        if !record.flows.is_empty()
            && let Some(summary) = self.lines.as_ref().map(|lines| lines.summary(record))
        {
            self.print_lines(&summary);
        }
    }
}
