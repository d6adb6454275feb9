//! The lines of ttcp, with its units: K, M and G are powers of 1024 also of bits, and a second has
//! 1024 of the milliseconds in `msec/call`. A line more says both figures.

use linerate_core::record::FlowEnd;

use super::TtcpOptions;

/// Name of the program in its lines: `ttcp-t` or `ttcp-r`.
pub(super) const fn name(asked: &TtcpOptions) -> &'static str {
    if asked.transmit { "ttcp-t" } else { "ttcp-r" }
}

/// The line before the test.
pub(super) fn header_line(asked: &TtcpOptions) -> String {
    let buffer = asked.socket_buffer.map_or_else(String::new, |n| format!(", sockbufsize={n}"));
    let host = asked.host.as_ref().map_or_else(String::new, |host| format!("  -> {host}"));
    let (modulus, offset) = asked.align;
    let protocol = if asked.udp { "udp" } else { "tcp" };
    format!(
        "{}: buflen={}, nbuf={}, align={modulus}/{offset}, port={}{buffer}  {protocol}{host}",
        name(asked),
        asked.length,
        asked.count,
        asked.port,
    )
}

/// The lines after the test.
pub(super) fn result(asked: &TtcpOptions, end: &FlowEnd) -> Vec<String> {
    let at = name(asked);
    let bytes = end.bytes as f64;
    // A transfer of no time at all would have no rate: ttcp takes a tenth of a millisecond.
    let real = (end.span_ns as f64 / 1e9).max(0.0001);
    let (user, system) = (seconds(end.cpu_user_ns), seconds(end.cpu_system_ns));
    let cpu = (user + system).max(0.0001);
    let calls = end.io_calls as f64;
    let per_call = 1024.0 * real / calls.max(1.0);
    let mut lines = vec![format!(
        "{at}: {bytes:.0} bytes in {real:.2} real seconds = {}/sec +++",
        amount(bytes / real, asked.unit)
    )];
    if asked.verbose {
        let rate = amount(bytes / cpu, asked.unit);
        lines.push(format!("{at}: {bytes:.0} bytes in {cpu:.2} CPU seconds = {rate}/cpu sec"));
    }
    lines.push(format!(
        "{at}: {calls:.0} I/O calls, msec/call = {per_call:.2}, calls/sec = {:.2}",
        calls / real
    ));
    let whole = real as u64;
    lines.push(format!(
        "{at}: {user:.1}user {system:.1}sys {}:{:02}real {:.0}% 0i+0d 0maxrss 0+0pf 0+0csw",
        whole / 60,
        whole % 60,
        100.0 * cpu / real
    ));
    lines.push(unit_note(at, asked.unit, bytes / real, per_call));
    lines
}

/// Note on the units, with both figures in powers of 1000.
fn unit_note(at: &str, unit: char, bytes_per_s: f64, per_call: f64) -> String {
    let (of, power) = unit_scale(unit);
    let units = (1..power).fold("1024".to_owned(), |units, _| units + "*1024");
    format!(
        "{at}: note: {of} is {units} here and a second has 1024 msec; of powers of 1000 the rate is \
         {:.2} Mbit/s and a call takes {:.3} ms",
        bytes_per_s * 8e-6,
        per_call / 1.024
    )
}

/// An amount of bytes in a unit of ttcp.
fn amount(bytes: f64, unit: char) -> String {
    let (of, power) = unit_scale(unit);
    let bits = if unit.is_lowercase() { 8.0 } else { 1.0 };
    format!("{:.2} {of}", bytes * bits / 1024_f64.powi(power))
}

const fn unit_scale(unit: char) -> (&'static str, i32) {
    match unit {
        'k' => ("Kbit", 1),
        'm' => ("Mbit", 2),
        'g' => ("Gbit", 3),
        'M' => ("MB", 2),
        'G' => ("GB", 3),
        _ => ("KB", 1),
    }
}

fn seconds(ns: Option<u64>) -> f64 {
    ns.unwrap_or(0) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rate(unit: char, rate: &str, units: &str) {
        let asked = TtcpOptions {
            transmit: true,
            unit,
            host: Some("h".to_owned()),
            ..TtcpOptions::default()
        };
        let end = FlowEnd {
            bytes: 16_777_216,
            span_ns: 1_440_000_000,
            io_calls: 2048,
            cpu_user_ns: Some(0),
            cpu_system_ns: Some(120_000_000),
            ..FlowEnd::default()
        };
        let lines = result(&asked, &end);
        let first = format!("ttcp-t: 16777216 bytes in 1.44 real seconds = {rate}/sec +++");
        assert_eq!(lines[0], first);
        // The original's line for the same run has 0.72 and 1422.22.
        assert_eq!(lines[1], "ttcp-t: 2048 I/O calls, msec/call = 0.72, calls/sec = 1422.22");
        assert!(lines[2].starts_with("ttcp-t: 0.0user 0.1sys 0:01real 8% "), "{}", lines[2]);
        // 16,777,216 × 8 / 1.44 = 93,206,756; 1.44 s / 2048 = 0.703 ms.
        assert!(lines[3].contains(&format!("note: {units} here")), "{}", lines[3]);
        assert!(
            lines[3].contains("rate is 93.21 Mbit/s and a call takes 0.703 ms"),
            "{}",
            lines[3]
        );
    }

    #[test]
    fn rates_have_the_units_of_ttcp_and_the_note_has_both() {
        // 16 MiB in 1.44 s, as the manual page of the original shows it in KB.
        check_rate('K', "11377.78 KB", "KB is 1024");
        // 11377.78 / 1024; × 8; / 1024 of that.
        check_rate('M', "11.11 MB", "MB is 1024*1024");
        check_rate('m', "88.89 Mbit", "Mbit is 1024*1024");
        check_rate('k', "91022.22 Kbit", "Kbit is 1024");
        check_rate('g', "0.09 Gbit", "Gbit is 1024*1024*1024");
        check_rate('G', "0.01 GB", "GB is 1024*1024*1024");
    }

    #[test]
    fn the_head_has_the_columns_of_the_original() {
        let asked = TtcpOptions {
            transmit: true,
            socket_buffer: Some(32_768),
            host: Some("host".to_owned()),
            ..TtcpOptions::default()
        };
        assert_eq!(
            header_line(&asked),
            "ttcp-t: buflen=8192, nbuf=2048, align=16384/0, port=5001, sockbufsize=32768  tcp  -> host"
        );
    }
}
