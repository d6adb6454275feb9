//! The client of the command line of iperf3.

use std::num::NonZeroU64;

use linerate_core::record::{
    Event, Failure, Finish, Record, Status, StreamOpened, TcpDirections, TcpPlan, UdpPlan, Via,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::foreign::iperf3::{Extras, run as measure, run_udp};
use linerate_proto::iperf3::ServerOutput;
use linerate_report::iperf3::{Document, Lines, Role, Sheet, VERSION};
use linerate_sys::clock::wall;
use linerate_sys::stop::Stop;

use super::paper::Paper;
use super::{Args, NO_ROWS_NS, has_rows, pretty, stream_line, surroundings};
use crate::command::measure::tool;
use crate::command::tcp::{family, nanos};
use crate::exit::Outcome;
use crate::output;

/// Measures and prints as iperf3 does; 1 when it fails.
pub(super) fn run(args: &Args, host: &str, paper: &Paper) -> Outcome {
    let plan = match plan(args, host) {
        Ok(plan) => plan,
        Err(reason) => {
            paper.error(&format!("parameter error - {reason}"));
            return Ok(1);
        }
    };
    let udp = args.test.udp.then(|| udp_plan(args, &plan));
    let sheet = match &udp {
        Some(udp) => Sheet::of_udp(Role::Client, udp),
        None => Sheet::new(Role::Client, plan.clone()),
    };
    let login = args.login.login(args.guard.use_pkcs1_padding)?;
    let mut page = Page::new(args, sheet, paper);
    let extras = Extras {
        title: args.test.title.clone(),
        extra_data: args.test.extra_data.clone(),
        server_output: args.test.get_server_output,
        login,
        burst: args.test.bitrate.and_then(|pace| pace.burst).map(u64::from),
        receive_max: Some(args.rcv_timeout),
        ..Extras::default()
    };
    let stop = Stop::on_signals()?;
    let without_reader = stop.clone();
    let mut watch = |event: &Event| {
        page.event(event);
        if output::reader_left() {
            without_reader.ask();
        }
    };
    let mut context = Context { tool: tool(), stop, watch: &mut watch };
    let (record, server_output) = match &udp {
        Some(udp) => run_udp(udp, extras, &mut context),
        None => measure(&plan, extras, &mut context),
    };
    page.end(&record, server_output.as_ref());
    Ok(u8::from(record.failure.is_some()))
}

fn plan(args: &Args, host: &str) -> Result<TcpPlan, String> {
    let test = &args.test;
    // Zero seconds mean no end; a day is the most that iperf3's servers take.
    let time_ns = match nanos(test.time) {
        0 => NO_ROWS_NS,
        time_ns => time_ns,
    };
    let finish = match (test.bytes, test.blockcount) {
        (Some(bytes), _) => Finish::Bytes(bytes),
        (None, Some(blocks)) => Finish::Buffers(blocks),
        (None, None) => Finish::TimeNs(time_ns),
    };
    let length = test.length.unwrap_or(128 << 10);
    Ok(TcpPlan {
        via: Some(Via::Iperf3),
        host: host.to_owned(),
        port: args.port,
        family: family(test.version4, test.version6),
        bind: args.bind.clone(),
        directions: match (test.reverse, test.bidir) {
            (true, _) => TcpDirections::Down,
            (_, true) => TcpDirections::Both,
            _ => TcpDirections::Up,
        },
        streams: test.parallel,
        finish,
        omit_ns: nanos(test.omit),
        interval_ns: match nanos(args.interval) {
            0 => NO_ROWS_NS,
            interval_ns => interval_ns,
        },
        buffer_bytes: u32::try_from(length).map_err(|_| "a block of 4 GiB or more".to_owned())?,
        window_bytes: test.window,
        mss_bytes: test.set_mss,
        nodelay: test.no_delay,
        congestion_control: test.congestion.clone(),
        pace: test.bitrate.map_or(0, |pace| pace.rate_bps).try_into().ok().map(whole),
        dscp: test.tos.or(test.dscp),
        zero_copy: test.zerocopy,
        connect_timeout_ns: nanos(test.connect_timeout),
        ..TcpPlan::default()
    })
}

/// A pace that is one.
fn whole(rate_bps: NonZeroU64) -> BitRate {
    BitRate::from_bits_per_sec(rate_bps.get())
}

/// The same over UDP: datagrams that fit an Ethernet packet and 1 Mbit/s unless told otherwise.
fn udp_plan(args: &Args, plan: &TcpPlan) -> UdpPlan {
    let test = &args.test;
    let size = test.length.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    UdpPlan {
        via: plan.via,
        host: plan.host.clone(),
        port: plan.port,
        family: plan.family,
        bind: plan.bind.clone(),
        directions: plan.directions,
        streams: plan.streams,
        finish: plan.finish,
        omit_ns: plan.omit_ns,
        interval_ns: plan.interval_ns,
        size_bytes: Some(size.unwrap_or(DATAGRAM_BYTES)),
        pace: match test.bitrate {
            None => UdpPlan::default().pace,
            Some(pace) => pace.rate_bps.try_into().ok().map(whole),
        },
        window_bytes: plan.window_bytes,
        dscp: plan.dscp,
        connect_timeout_ns: plan.connect_timeout_ns,
        ..UdpPlan::default()
    }
}

/// Payload of a datagram where `-l` says nothing: it fits a packet of 1500 bytes over IPv6 as well.
const DATAGRAM_BYTES: u32 = 1448;

/// What is printed of a test, in one of three shapes.
struct Page<'a> {
    paper: &'a Paper,
    lines: Option<Lines>,
    document: Document,
    stream: bool,
    cookie_told: bool,
    verbose: bool,
}

impl<'a> Page<'a> {
    fn new(args: &Args, sheet: Sheet, paper: &'a Paper) -> Self {
        let test = &args.test;
        let around = surroundings(test.title.as_ref(), test.extra_data.as_ref(), wall());
        let lines = (!args.json && !args.json_stream)
            .then(|| Lines::new(sheet.clone(), args.format.unwrap_or_default(), args.verbose));
        if let Some(lines) = &lines {
            if args.verbose {
                paper.lines(&format!("{VERSION}\n{}\n", around.system));
                paper.lines(&format!("Time: {}\n", around.time));
            }
            paper.lines(&lines.connecting());
        }
        Self {
            paper,
            lines,
            document: Document::new(sheet, around),
            stream: args.json_stream,
            cookie_told: false,
            verbose: args.verbose,
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Stream(stream) => self.connected(stream),
            Event::Interval(row) if has_rows(&self.document.sheet) => {
                if let Some(lines) = &mut self.lines {
                    self.paper.lines(&lines.row(row));
                }
                if let Some(interval) = self.document.row(row).filter(|_| self.stream) {
                    self.paper.text(&stream_line("interval", &interval));
                }
            }
            _ => {}
        }
    }

    fn connected(&mut self, stream: &StreamOpened) {
        if let Some(lines) = &mut self.lines {
            if let Some(cookie) = &stream.session
                && self.verbose
                && !std::mem::replace(&mut self.cookie_told, true)
            {
                self.paper.lines(&format!("      Cookie: {cookie}\n"));
            }
            self.paper.lines(&lines.stream(stream));
        }
        if let Some(start) = self.document.stream(stream).filter(|_| self.stream) {
            self.paper.text(&stream_line("start", &start));
        }
    }

    fn end(&self, record: &Record, server_output: Option<&ServerOutput>) {
        let measured = !record.flows.is_empty() && record.status != Status::Error;
        let Some(lines) = &self.lines else {
            self.end_document(record, server_output);
            return;
        };
        if measured {
            self.paper.lines(&lines.summary(record));
        }
        match server_output {
            Some(ServerOutput::Text(text)) => {
                self.paper.lines("\nServer output:\n");
                self.paper.lines(text);
                self.paper.lines("\n");
            }
            Some(ServerOutput::Json(json)) => {
                self.paper.lines("\nServer JSON output:\n");
                self.paper.text(&pretty(json));
            }
            None => {}
        }
        match (&record.failure, record.status) {
            (Some(failure), _) => self.paper.error(&said(failure)),
            (None, Status::Interrupted) => {
                self.paper.error("interrupt - the client has terminated");
            }
            _ => self.paper.lines("\niperf Done.\n"),
        }
    }

    fn end_document(&self, record: &Record, server_output: Option<&ServerOutput>) {
        if self.stream {
            if let Some(failure) = &record.failure {
                self.paper.text(&stream_line("error", &said(failure).into()));
            }
            self.paper.text(&stream_line("end", &self.document.end(record)));
            return;
        }
        let mut whole = self.document.whole(record);
        match server_output {
            Some(ServerOutput::Text(text)) => whole["server_output_text"] = text.as_str().into(),
            Some(ServerOutput::Json(json)) => whole["server_output_json"] = json.clone(),
            None => {}
        }
        self.paper.text(&pretty(&whole));
    }
}

/// The line of a failure, as iperf3 begins it.
fn said(failure: &Failure) -> String {
    format!("error - {failure}")
}
