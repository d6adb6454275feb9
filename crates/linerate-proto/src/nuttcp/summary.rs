//! Summary lines of a server's result, written and parsed. MB is 2^20 bytes, KB 2^10, Mbps 10^6
//! bit/s.

use std::fmt::Write as _;

use super::parameters::{FORMAT_PARSE, Parameters};
use super::{NuttcpArrivals, NuttcpTimeSpread, Timed, WIRE_VERSION};

const MB: f64 = 1_048_576.0;

/// Role of the end that sends the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NuttcpRole {
    /// The end received the data (`nuttcp-r`).
    Receiver,
    /// The end transmitted the data (`nuttcp-t`).
    Transmitter,
}

impl NuttcpRole {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Receiver => "nuttcp-r",
            Self::Transmitter => "nuttcp-t",
        }
    }
}

/// Results of a test at the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NuttcpServerReport {
    /// Lines before the result, on the connection and its windows.
    pub about: Vec<String>,
    /// Payload bytes of all streams.
    pub bytes: u64,
    /// Time of the transfer in seconds.
    pub seconds: f64,
    /// Processor seconds of user and system.
    pub cpu_s: (f64, f64),
    /// Number of read() or write() calls.
    pub calls: u64,
    /// Retransmitted segments, where this end transmitted and the kernel counts them.
    pub retransmits: Option<u64>,
    /// Jitter and delay, where the client requested them.
    pub arrivals: Option<NuttcpArrivals>,
    /// Failure of a stream, as text.
    pub failure: Option<String>,
}

/// All lines of a summary, as 6.1.2 prints them.
pub(super) fn report_lines(
    role: NuttcpRole,
    parameters: &Parameters,
    report: &NuttcpServerReport,
) -> String {
    let at = role.prefix();
    let parse = parameters.format & FORMAT_PARSE != 0;
    let mb = report.bytes as f64 / MB;
    let per = |amount: f64, seconds: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let kb_s = per(mb * 1024.0, report.seconds);
    let mbps = per(report.bytes as f64 * 8e-6, report.seconds);
    let cpu = report.cpu_s.0 + report.cpu_s.1;
    let (kb_cpu, calls_s) = (per(mb * 1024.0, cpu), per(report.calls as f64, report.seconds));
    let msec = per(report.seconds * 1000.0, report.calls as f64);
    let seconds = report.seconds;
    let mut lines: Vec<String> =
        [format!("v{WIRE_VERSION}: socket")].into_iter().chain(report.about.clone()).collect();
    let calls = report.calls;
    if parse {
        lines.push(format!(
            "megabytes={mb:.4} real_seconds={seconds:.2} rate_KBps={kb_s:.2} rate_Mbps={mbps:.4}"
        ));
        lines.extend(time_lines(parameters, report));
        lines.push(format!("megabytes={mb:.4} cpu_seconds={cpu:.2} KB_per_cpu_second={kb_cpu:.2}"));
        lines.extend(report.retransmits.map(|count| format!("retrans={count}")));
        lines.push(format!("io_calls={calls} msec_per_call={msec:.2} calls_per_sec={calls_s:.2}"));
    } else {
        lines.push(format!(
            "{mb:.4} MB in {seconds:.2} real seconds = {kb_s:.2} KB/sec = {mbps:.4} Mbps"
        ));
        lines.extend(time_lines(parameters, report));
        lines.push(format!("{mb:.4} MB in {cpu:.2} CPU seconds = {kb_cpu:.2} KB/cpu sec"));
        lines.extend(report.retransmits.map(|count| format!("retrans = {count}")));
        lines.push(format!("{calls} I/O calls, msec/call = {msec:.2}, calls/sec = {calls_s:.2}"));
    }
    lines.push(usage_line(parse, report, cpu));
    let mut text = String::new();
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{at}: {line}");
    }
    text
}

/// Lines of jitter and delay, those that the client requested.
fn time_lines(parameters: &Parameters, report: &NuttcpServerReport) -> Vec<String> {
    let parse = parameters.format & FORMAT_PARSE != 0;
    let Some(arrivals) = report.arrivals else { return Vec::new() };
    let both = [
        (parameters.jitter, arrivals.jitter, Timed::Jitter),
        (parameters.delay, arrivals.delay, Timed::Delay),
    ];
    let told = both.into_iter().filter(|(asked, spread, _)| *asked > 0 && spread.n > 0);
    told.map(|(_, spread, of)| spread.to_line(of, parse)).collect()
}

/// Line of processor time in the format of csh's `time`; memory and context switches are 0.
fn usage_line(parse: bool, report: &NuttcpServerReport, cpu: f64) -> String {
    let (user, system) = report.cpu_s;
    let whole = report.seconds as u64;
    let elapsed = format!("{}:{:02}", whole / 60, whole % 60);
    let share = if report.seconds > 0.0 { 100.0 * cpu / report.seconds } else { 0.0 };
    if parse {
        format!(
            "stats=cpu user={user:.1} system={system:.1} elapsed={elapsed} cpu={share:.0}% \
             memory=0i+0d-0maxrss io=0+0pf swaps=0+0csw"
        )
    } else {
        format!("{user:.1}user {system:.1}sys {elapsed}real {share:.0}% 0i+0d 0maxrss 0+0pf 0+0csw")
    }
}

/// Figures of a server's summary, as a client parsed them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NuttcpSummary {
    /// Payload in MB of 2^20 bytes, with four decimals.
    pub megabytes: Option<f64>,
    /// Rate in Mbit/s of 10^6, with four decimals.
    pub mbps: Option<f64>,
    /// Time of the transfer in seconds, with two decimals.
    pub seconds: Option<f64>,
    /// Processor seconds of user and system, with two decimals.
    pub cpu_seconds: Option<f64>,
    /// Number of read() or write() calls.
    pub calls: Option<u64>,
    /// Number of retransmitted segments.
    pub retransmits: Option<u64>,
    /// Jitter at a receiver, by nuttcp's definition.
    pub jitter: Option<NuttcpTimeSpread>,
    /// One-way delays to a receiver.
    pub delay: Option<NuttcpTimeSpread>,
}

impl NuttcpSummary {
    /// Adds the figures of a line of either form; any other line changes nothing.
    pub fn read(&mut self, line: &str) {
        let Some((_, text)) = line.split_once(": ") else { return };
        match NuttcpTimeSpread::parse(text) {
            Some((Timed::Jitter, spread)) => self.jitter = Some(spread),
            Some((Timed::Delay, spread)) => self.delay = Some(spread),
            None => {}
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [megabytes, "MB", "in", seconds, "real", "seconds", rest @ ..] => {
                self.megabytes = amount(megabytes);
                self.seconds = amount(seconds);
                self.mbps = rest.iter().rev().nth(1).and_then(|word| amount(word));
            }
            [_, "MB", "in", seconds, "CPU", ..] => self.cpu_seconds = amount(seconds),
            [calls, "I/O", "calls,", ..] => self.calls = calls.parse().ok(),
            ["retrans", "=", count, ..] => self.retransmits = count.parse().ok(),
            _ => words.iter().for_each(|word| self.read_pair(word)),
        }
    }

    fn read_pair(&mut self, word: &str) {
        match word.split_once('=') {
            Some(("megabytes", value)) => self.megabytes = amount(value),
            Some(("real_seconds", value)) => self.seconds = amount(value),
            Some(("rate_Mbps", value)) => self.mbps = amount(value),
            Some(("cpu_seconds", value)) => self.cpu_seconds = amount(value),
            Some(("io_calls", value)) => self.calls = value.parse().ok(),
            Some(("retrans", value)) => self.retransmits = value.parse().ok(),
            _ => {}
        }
    }

    /// Payload bytes: `known`, if the summary's MB is that number rounded, else the summary's.
    pub fn payload_bytes(&self, known: u64) -> Option<u64> {
        let megabytes = self.megabytes?;
        // Half a unit of the last digit is 0.00005 MB, 52.4 bytes.
        let same = (known as f64 / MB - megabytes).abs() <= 0.000_051;
        Some(if same { known } else { (megabytes * MB).round() as u64 })
    }

    /// Time of `bytes` in nanoseconds by the rate, which has more digits than the seconds.
    pub fn span_ns(&self, bytes: u64) -> Option<u64> {
        let mbps = self.mbps.filter(|mbps| *mbps > 0.0)?;
        Some((bytes as f64 * 8000.0 / mbps).round() as u64)
    }
}

fn amount(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}
