//! What `linerate ping` prints while it runs: a line for each probe, the state of a flood. The
//! summary is the record's text, which `linerate report` prints too. Pure: values in, text out.

use linerate_core::record::{PingProgress, PingReply};

/// The line of one probe, its time in ms with this many decimals.
pub(crate) fn reply(reply: &PingReply, from: &str, decimals: usize) -> String {
    let ttl = reply.ttl.map_or_else(String::new, |ttl| format!(" ttl={ttl}"));
    let probe = format!("{} bytes from {from}: seq={}{ttl}", reply.payload_bytes, reply.sequence);
    match reply.rtt_ns {
        Some(rtt_ns) => format!("{probe} time={:.decimals$} ms", rtt_ns as f64 / 1e6),
        None if reply.duplicate => format!("{probe} again (DUP)"),
        None => {
            format!("{} bytes to {from}: seq={} no answer", reply.payload_bytes, reply.sequence)
        }
    }
}

/// The state of a flood, on one line that the next one covers.
pub(crate) fn progress(progress: &PingProgress) -> String {
    let of = progress.count.map_or_else(String::new, |count| format!(" of {count}"));
    let seconds = progress.elapsed_ns as f64 / 1e9;
    let rate = if seconds > 0.0 { progress.answered as f64 / seconds } else { 0.0 };
    let open = progress.sent.saturating_sub(progress.answered);
    format!(
        "{} bytes: {}{of} answered, {open} open or lost, {rate:.0}/s, {seconds:.1} s ",
        progress.payload_bytes, progress.answered
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_probes_name_what_happened() {
        let answered = PingReply {
            sequence: 7,
            payload_bytes: 56,
            rtt_ns: Some(6_412),
            ttl: Some(64),
            duplicate: false,
        };
        let cases = [
            (answered.clone(), "56 bytes from h: seq=7 ttl=64 time=0.006412 ms"),
            (
                PingReply { rtt_ns: None, duplicate: true, ..answered.clone() },
                "56 bytes from h: seq=7 ttl=64 again (DUP)",
            ),
            (PingReply { rtt_ns: None, ttl: None, ..answered }, "56 bytes to h: seq=7 no answer"),
        ];
        for (event, line) in cases {
            assert_eq!(reply(&event, "h", 6), line);
        }
    }

    #[test]
    fn progress_names_the_rate_so_far() {
        let state = PingProgress {
            payload_bytes: 56,
            sent: 1001,
            answered: 1000,
            count: Some(10_000),
            elapsed_ns: 500_000_000,
        };
        let line = "56 bytes: 1000 of 10000 answered, 1 open or lost, 2000/s, 0.5 s ";
        assert_eq!(progress(&state), line);
    }
}
