//! The client of the command line of iperf3.

use std::num::NonZeroU64;
use std::time::Duration;

use linerate_core::record::{
    Event, Failure, FailureCode, Finish, Means, Record, RecordStatus, ServerPlan, StreamOpened,
    TcpDirections, TcpPlan, TcpTest, UdpPlan, UdpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf3::{Extras, run as measure, run_udp};
use linerate_proto::iperf3::ServerOutput;
use linerate_report::iperf3::{
    ENDLESS_NS, Iperf3Document, Iperf3Lines, Iperf3Role, Sheet, VERSION, line_of, pretty,
};
use linerate_sys::clock::wall_time;
use linerate_sys::stop::Stop;

use super::asked::Iperf3Options;
use super::paper::Paper;
use super::said::failure_text;
use super::{NO_ROWS_NS, login, surroundings};
use crate::command::flags::{family, span_nanos};
use crate::command::measure::this_tool;
use crate::output;

/// Measures and prints as iperf3 does; 1 when it fails.
pub(super) fn run(asked: &Iperf3Options, host: &str, paper: &Paper) -> Result<u8, Failure> {
    let plan = tcp_plan(asked, host);
    let udp = asked.udp.then(|| udp_plan(asked, &plan));
    let sheet = match &udp {
        Some(udp) => Sheet::of_udp(Iperf3Role::Client, udp),
        None => Sheet::new(Iperf3Role::Client, plan.clone()),
    };
    let login = login::client_login(asked)?;
    let mut page = ClientPage::new(asked, sheet, paper);
    let extras = Extras {
        title: asked.title.clone(),
        extra_data: asked.extra_data.clone(),
        server_output: asked.get_server_output,
        login,
        burst: asked.pace.and_then(|pace| pace.burst),
        fq_rate_bps: asked.fq_rate_bps,
        receive_max: Some(asked.rcv_timeout.unwrap_or(RECEIVE_MAX)),
        local_port: asked.client_port,
        device: asked.device.clone(),
        server_affinity: asked.server_affinity,
    };
    let stop = Stop::on_signals().map_err(|error| linerate_engine::failure::system(&error))?;
    let signal = stop.clone();
    let without_reader = stop.clone();
    let mut watch = |event: &Event| {
        page.print_event(event);
        if output::reader_left() {
            without_reader.request_stop();
        }
    };
    let mut context = Context { tool: this_tool(), stop, watch: &mut watch };
    let (record, server_output) = match &udp {
        Some(udp) => run_udp(udp, extras, &mut context),
        None => measure(&plan, extras, &mut context),
    };
    let error = failure_line(&record, &signal);
    page.print_summary(&record, server_output.as_ref(), error.as_deref());
    Ok(u8::from(record.failure.is_some()))
}

/// Nothing has to be received for this long: `--rcv-timeout`'s own default.
const RECEIVE_MAX: Duration = Duration::from_secs(120);
/// Time to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a block without `-l`.
const BLOCK_BYTES: u32 = 128 << 10;

fn tcp_plan(asked: &Iperf3Options, host: &str) -> TcpPlan {
    let finish = match (asked.bytes, asked.blocks) {
        (0, 0) => Finish::TimeNs(match asked.time_s {
            Some(0) => ENDLESS_NS,
            time_s => time_s.unwrap_or(10) * 1_000_000_000,
        }),
        (0, blocks) => Finish::Buffers(blocks),
        (bytes, _) => Finish::Bytes(bytes),
    };
    TcpPlan {
        server: ServerPlan {
            family: family(asked.ipv4, asked.ipv6),
            bind: asked.bind.clone(),
            connect_timeout_ns: span_nanos(asked.connect_timeout.unwrap_or(CONNECT_MAX)),
            ..ServerPlan::new(Some(Via::Iperf3), host, asked.port)
        },
        test: TcpTest {
            directions: match (asked.reverse, asked.bidir) {
                (true, _) => TcpDirections::Down,
                (_, true) => TcpDirections::Both,
                _ => TcpDirections::Up,
            },
            streams: asked.streams,
            finish,
            omit_ns: asked.omit_s * 1_000_000_000,
            interval_ns: match span_nanos(asked.interval) {
                0 => NO_ROWS_NS,
                interval_ns => interval_ns,
            },
            buffer_bytes: asked.length_bytes.unwrap_or(BLOCK_BYTES),
            window_bytes: asked.window_bytes,
            mss_bytes: asked.mss_bytes,
            nodelay: asked.no_delay,
            congestion_control: asked.congestion.clone(),
            pace: asked.pace.map_or(0, |pace| pace.rate_bps).try_into().ok().map(pace_of),
            dscp: (asked.tos >> 2 > 0).then_some(asked.tos >> 2),
            zero_copy: asked.zerocopy,
            means: Means { mptcp: asked.mptcp, ..Means::default() },
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

/// The pace as a bit rate.
fn pace_of(rate_bps: NonZeroU64) -> BitRate {
    BitRate::from_bits_per_sec(rate_bps.get())
}

/// The plan over UDP: datagrams that fit an Ethernet packet and 1 Mbit/s by default.
fn udp_plan(asked: &Iperf3Options, plan: &TcpPlan) -> UdpPlan {
    UdpPlan {
        server: plan.server.clone(),
        test: UdpTest {
            directions: plan.test.directions,
            streams: plan.test.streams,
            finish: plan.test.finish,
            omit_ns: plan.test.omit_ns,
            interval_ns: plan.test.interval_ns,
            size_bytes: Some(asked.length_bytes.unwrap_or(DATAGRAM_BYTES)),
            pace: match asked.pace {
                None => UdpPlan::default().test.pace,
                Some(pace) => pace.rate_bps.try_into().ok().map(pace_of),
            },
            window_bytes: plan.test.window_bytes,
            dscp: plan.test.dscp,
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// Payload of a datagram without `-l`: it fits a packet of 1500 bytes over IPv6 as well.
const DATAGRAM_BYTES: u32 = 1448;

/// The last line of a test that failed or was interrupted.
fn failure_line(record: &Record, stop: &Stop) -> Option<String> {
    match (&record.failure, record.status) {
        (Some(failure), _) => Some(failure_text(failure)),
        (None, RecordStatus::Interrupted) => {
            Some(format!("interrupt - the client has terminated by signal {}", name(stop)))
        }
        _ => None,
    }
}

/// `Interrupt(2)`, as strsignal(3) has it.
pub(super) fn name(stop: &Stop) -> String {
    match stop.signal() {
        Some(signal @ 15) => format!("Terminated({signal})"),
        signal => format!("Interrupt({})", signal.unwrap_or(2)),
    }
}

/// Output of a test, in one of three forms.
struct ClientPage<'a> {
    paper: &'a Paper,
    lines: Option<Iperf3Lines>,
    document: Iperf3Document,
    stream: bool,
    /// The document as well as its lines.
    full: bool,
    /// A stream is there, and the server with it.
    connected: bool,
    /// The line of `-V` with the time.
    time: Option<String>,
}

impl<'a> ClientPage<'a> {
    fn new(asked: &Iperf3Options, sheet: Sheet, paper: &'a Paper) -> Self {
        let around = surroundings(wall_time());
        let lines = (!asked.json).then(|| {
            Iperf3Lines::new(sheet.clone(), asked.unit.unwrap_or_default(), asked.verbose)
        });
        if asked.verbose && lines.is_some() {
            paper.write_lines(&format!("{VERSION}\n{}\n", around.system));
        }
        let time = asked.verbose.then(|| format!("Time: {}\n", around.time));
        let mut document = Iperf3Document::new(sheet, around);
        document.title.clone_from(&asked.title);
        document.extra_data.clone_from(&asked.extra_data);
        Self {
            paper,
            lines,
            document,
            stream: asked.json_stream,
            full: asked.full_output,
            connected: false,
            time,
        }
    }

    fn print_event(&mut self, event: &Event) {
        match event {
            Event::Stream(stream) => self.connected(stream),
            Event::Interval(row) => {
                if let Some(lines) = &mut self.lines {
                    self.paper.write_lines(&lines.interval_lines(row));
                }
                if let Some(interval) = self.document.add_interval_row(row).filter(|_| self.stream)
                {
                    self.paper.write_text(&line_of("interval", &interval));
                }
            }
            _ => {}
        }
    }

    fn connected(&mut self, stream: &StreamOpened) {
        if let Some(lines) = &mut self.lines {
            if !std::mem::replace(&mut self.connected, true) {
                let session = self.time.as_ref().map(|_| lines.session(stream));
                let time = self.time.clone().unwrap_or_default();
                let told = time + &lines.connecting() + &session.unwrap_or_default();
                self.paper.write_lines(&told);
            }
            self.paper.write_lines(&lines.stream(stream));
        }
        if let Some(start) = self.document.stream(stream).filter(|_| self.stream) {
            self.paper.write_text(&line_of("start", &start));
        }
    }

    fn print_summary(
        &self,
        record: &Record,
        server_output: Option<&ServerOutput>,
        error: Option<&str>,
    ) {
        let Some(lines) = &self.lines else {
            self.end_document(record, server_output, error);
            return;
        };
        if !record.flows.is_empty() {
            self.paper.write_lines(&lines.summary(record));
        }
        match server_output {
            Some(ServerOutput::Text(text)) => {
                self.paper.write_lines("\nServer output:\n");
                self.paper.write_lines(text);
                self.paper.write_lines("\n");
            }
            Some(ServerOutput::Json(json)) => {
                self.paper.write_lines("\nServer JSON output:\n");
                self.paper.write_text(&pretty(json));
            }
            None => {}
        }
        match (error, &record.failure) {
            (Some(error), Some(failure)) => {
                if matches!(failure.code, Some(FailureCode::Peer(_))) {
                    self.paper.write_error(&format!("SERVER ERROR - {error}"));
                }
                self.paper.write_error(&format!("error - {error}"));
            }
            (Some(error), None) => self.paper.write_error(error),
            _ => self.paper.write_lines("\niperf Done.\n"),
        }
    }

    fn end_document(
        &self,
        record: &Record,
        server_output: Option<&ServerOutput>,
        error: Option<&str>,
    ) {
        let output = match server_output {
            Some(ServerOutput::Text(text)) => Some(("server_output_text", text.as_str().into())),
            Some(ServerOutput::Json(json)) => Some(("server_output_json", json.clone())),
            None => None,
        };
        if self.stream {
            if let Some(error) = error {
                self.paper.write_text(&line_of("error", &error.into()));
            }
            if let Some((key, output)) = &output {
                self.paper.write_text(&line_of(key, output));
            }
            self.paper.write_text(&line_of("end", &self.document.end_object(record)));
            if !self.full {
                return;
            }
        }
        let mut whole = self.document.complete_json(record, error);
        if let Some((key, output)) = output {
            whole[key] = output;
        }
        self.paper.write_text(&pretty(&whole));
    }
}
