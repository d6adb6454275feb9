//! `iperf -u -s`: a line for each client, its rows, and a line for what went wrong.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_core::time::MonoTime;
use linerate_engine::foreign::iperf2::{
    AddressValidation, UdpCounted, UdpMoved, UdpPort, UdpSeen, UdpSentBack, UdpServing,
};
use linerate_proto::iperf2::{ClientHeader, Mode, UdpReport};
use linerate_sys::clock::monotonic;

use super::Iperf2Options;
use super::lines::{self, RULER, RateFormat, RowSpan};
use super::udp_lines::{Received, Style, csv_received, csv_sent};
use crate::output;
use crate::personality::listening;

/// Time for which a client that was served may repeat the end of its stream.
const ENDED: Duration = Duration::from_millis(500);

/// Serves until the user stops it.
pub(super) fn run(asked: &Iperf2Options) -> Result<(), Failure> {
    let listener = UdpPort::bind(listen_address(asked, asked.port), asked.window)?;
    let stop = listening::until_interrupted()?;
    if !asked.csv {
        output::print_line(RULER);
        let port = listener.local_address().map_or(asked.port, |address| address.port());
        output::print_line(&format!("Server listening on UDP port {port}"));
        let buffer = listener.buffer_bytes().map_or_else(|| "-".to_owned(), RateFormat::size_text);
        let how = if asked.window.is_some() { "requested" } else { "default" };
        output::print_line(&format!("UDP buffer size: {buffer} ({how})"));
        output::print_line(RULER);
    }
    let printer = UdpServerPrinter::new(asked, "");
    // A client whose report is lost says its end again.
    let over = || {
        let (clients, last) = *printer.done.lock().unwrap_or_else(PoisonError::into_inner);
        let all = asked.serve_clients.is_some_and(|most| clients >= most);
        all && last.is_some_and(|last| monotonic().duration_since(last) >= ENDED)
    };
    listening::within(asked.serve_for, &stop, &over, || {
        listener.run(&UdpServing {
            admission: &listening::AdmitEveryone,
            stop: &stop,
            watch: &|peer, seen| printer.show_event(peer, seen),
            interval: interval(asked),
            aside: &|_, _| false,
            trust: &AddressValidation::default().with_networks(&asked.trusted),
            sends_anywhere: true,
        });
    });
    Ok(())
}

/// Address to listen on: all addresses, or the one of `-B`.
pub(super) fn listen_address(asked: &Iperf2Options, port: u16) -> SocketAddr {
    let any = if std::path::Path::new("/proc/net/if_inet6").exists() {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    SocketAddr::new(asked.bind.unwrap_or(any), port)
}

/// Interval between two rows.
pub(super) fn interval(asked: &Iperf2Options) -> Option<Duration> {
    asked.interval_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Prints the rows of clients, each under its number.
pub(super) struct UdpServerPrinter<'a> {
    asked: &'a Iperf2Options,
    /// Star before the numbers of some clients.
    star: &'static str,
    clients: Mutex<UdpServerClients>,
    /// Clients that were served to their end, and when the last was.
    done: Mutex<(u32, Option<MonoTime>)>,
}

#[derive(Default)]
struct UdpServerClients {
    last_number: u32,
    by_address: HashMap<SocketAddr, UdpServerClient>,
    headed: Option<bool>,
}

/// A client as it was at the last row.
struct UdpServerClient {
    number: u32,
    local: String,
    mode: Mode,
    span_s: f64,
    received: UdpReport,
    sent: UdpSentBack,
}

impl<'a> UdpServerPrinter<'a> {
    pub(super) fn new(asked: &'a Iperf2Options, star: &'static str) -> Self {
        Self { asked, star, clients: Mutex::default(), done: Mutex::default() }
    }

    pub(super) fn show_event(&self, peer: SocketAddr, seen: &UdpSeen<'_>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            UdpSeen::Begin(local, header) => self.begin_client(&mut clients, peer, *local, *header),
            UdpSeen::Interval(moved) => self.interval(&mut clients, peer, moved),
            UdpSeen::Done(moved) => self.show_end(&mut clients, peer, moved),
            UdpSeen::Failed(failure) => output::print_note(&format!("iperf: {peer}: {failure}")),
        }
    }

    fn begin_client(
        &self,
        clients: &mut UdpServerClients,
        peer: SocketAddr,
        local: Option<SocketAddr>,
        header: Option<&ClientHeader>,
    ) {
        clients.last_number += 1;
        let number = clients.last_number;
        let local = local.map_or_else(String::new, |local| local.to_string());
        let mode = header.map_or(Mode::Forward, |header| header.mode);
        if !self.asked.csv {
            let mut how = match mode {
                Mode::Reverse => "reverse) (no-udp-fin".to_owned(),
                Mode::FullDuplex => "full-duplex) (no-udp-fin".to_owned(),
                _ => String::new(),
            };
            if header.is_some_and(|header| header.trip_times.is_some()) {
                let between = if how.is_empty() { "" } else { ") (" };
                how.push_str(&format!("{between}trip-times"));
            }
            let id = format!("{}{number}", self.star);
            output::print_line(&lines::connected(&id, &local, &peer.to_string(), &how));
        }
        let (received, sent) = (UdpReport::default(), UdpSentBack::default());
        let client = UdpServerClient { number, local, mode, span_s: 0.0, received, sent };
        clients.by_address.insert(peer, client);
    }

    fn interval(&self, clients: &mut UdpServerClients, peer: SocketAddr, moved: &UdpMoved) {
        let UdpServerClients { by_address, headed, .. } = clients;
        let Some(client) = by_address.get_mut(&peer) else { return };
        let span = RowSpan { begin_s: client.span_s, end_s: moved.span_ns as f64 / 1e9 };
        if let Some(UdpCounted::Iperf(now)) = moved.received {
            let mut lines = ClientLines { printer: self, peer, client, headed };
            lines.received(span, &Received::between(&client.received, &now));
            client.received = now;
        }
        if let Some(now) = moved.sent {
            let bytes = now.bytes.saturating_sub(client.sent.bytes);
            let datagrams = now.datagrams.saturating_sub(client.sent.datagrams);
            let mut lines = ClientLines { printer: self, peer, client, headed };
            lines.print_sent(span, bytes, datagrams, false);
            client.sent = now;
        }
        client.span_s = span.end_s;
    }

    fn show_end(&self, clients: &mut UdpServerClients, peer: SocketAddr, moved: &UdpMoved) {
        let UdpServerClients { by_address, headed, .. } = clients;
        let Some(client) = by_address.remove(&peer) else { return };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done = (done.0 + 1, Some(monotonic()));
        drop(done);
        let mut lines = ClientLines { printer: self, peer, client: &client, headed };
        // A busy host's last row may end after the last datagram: then the rest has no time.
        let told_s = client.span_s;
        let has_rest = |end_s: f64| told_s > 0.0 && end_s > told_s;
        let span = RowSpan::from_zero(moved.span_ns as f64 / 1e9);
        match moved.received {
            Some(UdpCounted::Iperf(counts)) => {
                let rest = Received::between(&client.received, &counts);
                if has_rest(span.end_s) && rest.total > 0 {
                    lines.received(RowSpan { begin_s: told_s, ..span }, &rest);
                }
                lines.received(span, &Received::from_report(&counts));
            }
            Some(UdpCounted::Ttcp { bytes, datagrams }) => {
                lines.print_sent(span, bytes, datagrams, true);
            }
            None => {}
        }
        let Some(sent) = moved.sent else { return };
        let span = RowSpan::from_zero(sent.span_ns as f64 / 1e9);
        let rest_bytes = sent.bytes.saturating_sub(client.sent.bytes);
        let rest_datagrams = sent.datagrams.saturating_sub(client.sent.datagrams);
        if has_rest(span.end_s) && rest_bytes > 0 {
            let rest_span = RowSpan { begin_s: told_s, ..span };
            lines.print_sent(rest_span, rest_bytes, rest_datagrams, false);
        }
        lines.print_sent(span, sent.bytes, sent.datagrams, true);
        if self.asked.csv {
            return;
        }
        output::print_line(&format!("[{:>3}] Sent {} datagrams", client.number, sent.datagrams));
        if sent.contradicted {
            let left_out = "its report contradicts what was sent and is left out";
            output::print_note(&format!("[{:>3}] {left_out}", client.number));
        }
        if let Some(report) = &sent.report {
            output::print_line(&format!("[{:>3}] Server Report:", client.number));
            *lines.headed = None;
            let span = RowSpan::from_zero(report.span_us as f64 / 1e6);
            lines.received(span, &Received::from_report(report));
        }
    }
}

/// The rows of one client.
struct ClientLines<'a> {
    printer: &'a UdpServerPrinter<'a>,
    peer: SocketAddr,
    client: &'a UdpServerClient,
    headed: &'a mut Option<bool>,
}

impl ClientLines<'_> {
    fn headed_style(&mut self, received: bool) -> Style {
        let style = self.printer.asked.row_style();
        if !style.csv && self.headed.replace(received) != Some(received) {
            output::print_line(style.header_line(received));
        }
        style
    }

    fn received(&mut self, span: RowSpan, of: &Received) {
        let style = self.headed_style(true);
        if style.csv {
            // Who sends comes first.
            let peer = self.peer.to_string();
            let row = lines::csv_row(
                &lines::start_date(span),
                self.client.number,
                &peer,
                &self.client.local,
                span,
                of.bytes,
            );
            output::print_line(&csv_received(row, of));
            return;
        }
        let id = format!("{}{}", self.printer.star, self.client.number);
        style.received(&id, span, of).iter().for_each(|line| output::print_line(line));
    }

    fn print_sent(&mut self, span: RowSpan, bytes: u64, datagrams: u64, whole: bool) {
        let style = self.headed_style(false);
        if style.csv {
            let peer = self.peer.to_string();
            let row = lines::csv_row(
                &lines::start_date(span),
                self.client.number,
                &self.client.local,
                &peer,
                span,
                bytes,
            );
            output::print_line(&csv_sent(row, (!whole).then_some(datagrams)));
            return;
        }
        // The other of two ways has a star.
        let star = if self.client.mode == Mode::Reverse { self.printer.star } else { "*" };
        let id = format!("{star}{}", self.client.number);
        output::print_line(&style.sent_row(&id, span, bytes, datagrams));
    }
}
