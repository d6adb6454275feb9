//! What iperf3 3.21 says of a failure, which scripts look for; its own words where it has none.

use linerate_core::record::{Failure, FailureCode};

/// Message of a client that reached no server.
const CONNECT: &str = "unable to connect to server - server may have stopped running or use a \
                       different port, firewall issue, etc.";
/// A congestion control that the kernel does not have.
const CONGESTION: &str = "unable to set TCP_CONGESTION: Supplied congestion control algorithm not \
                          supported on this host";

/// Operations on files that the command line names.
pub(super) const LOG_FILE: &str = "open log file";
pub(super) const PROCESS_FILE: &str = "write the process number to";

/// The failure in iperf3's words.
pub(super) fn failure_text(failure: &Failure) -> String {
    if failure.is_busy() {
        return "the server is busy running a test. try again later".to_owned();
    }
    let reason = capital(&failure.reason);
    let Some(code) = failure.code else {
        return match failure.attempt.as_str() {
            LOG_FILE => format!("unable to open log file: {reason}"),
            PROCESS_FILE => format!("unable to write PID file: {reason}"),
            _ => failure.to_string(),
        };
    };
    match code {
        FailureCode::Connect | FailureCode::OpenSocket => format!("{CONNECT}: {reason}"),
        FailureCode::CongestionControl => CONGESTION.to_owned(),
        FailureCode::BindDevice => {
            "Unable to bind-to-device (check perror, maybe permissions?)".to_owned()
        }
        FailureCode::Listen => format!("unable to start listener for connections: {reason}"),
        FailureCode::Aborted => "the client has terminated".to_owned(),
        FailureCode::Interrupted => "the server has terminated".to_owned(),
        FailureCode::NoData => "idle timeout for receiving data".to_owned(),
        FailureCode::Closed => "control socket has closed unexpectedly".to_owned(),
        // Of a store, which iperf3 has none of.
        FailureCode::NoRoom | FailureCode::NoResult => failure.to_string(),
        FailureCode::Peer(number) => {
            of_code(number).map_or_else(|| failure.to_string(), str::to_owned)
        }
    }
}

/// The line of a server about a client that it could not serve.
pub(super) fn of_server(failure: &Failure) -> String {
    match failure.code {
        Some(FailureCode::Aborted) => failure_text(failure),
        _ => format!("error - {failure}"),
    }
}

/// iperf3's words for a number that a server sent.
const fn of_code(code: i16) -> Option<&'static str> {
    Some(match code {
        5 => "test duration valid values are 0 to 86400 seconds",
        6 => "number of parallel streams too large (maximum = 128)",
        7 => "block size too large (maximum = 1048576 bytes)",
        8 => "socket buffer size too large (maximum = 536870912 bytes)",
        13 => "an option you are trying to set is not implemented yet",
        20 => "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)",
        27 => "total required bandwidth is larger than server limit",
        37 => "client's requested duration exceeds the server's maximum permitted limit",
        109 => "control socket has closed unexpectedly",
        119 => "the client has terminated",
        120 => "the server has terminated",
        121 => "the server is busy running a test. try again later",
        134 => CONGESTION,
        141 => "socket buffer size not set correctly",
        142 => "test authorization failed",
        144 => "idle timeout for receiving data",
        160 => "server test duration expired",
        _ => return None,
    })
}

/// The C library begins its reasons with a capital letter.
fn capital(reason: &str) -> String {
    let mut letters = reason.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::Fault;

    use super::*;

    #[test]
    fn failures_are_told_in_the_words_that_scripts_look_for() {
        let refused =
            Failure::new(Fault::Unreachable, "connect", "[::1]:5201", "connection refused")
                .with_code(FailureCode::Connect);
        // As iperf3 3.21 printed them on 2026-11-22.
        assert_eq!(
            failure_text(&refused),
            "unable to connect to server - server may have stopped running or use a different \
             port, firewall issue, etc.: Connection refused"
        );
        let busy = Failure::new(Fault::PeerRefused, "ask for a test with", "h", "it is busy")
            .retry_after(1000);
        assert_eq!(failure_text(&busy), "the server is busy running a test. try again later");
        let login = "the server gave up: it asks for a user (error 142)";
        let login = Failure::new(Fault::PeerRefused, "test with", "h", login)
            .with_code(FailureCode::Peer(142));
        assert_eq!(failure_text(&login), "test authorization failed");
        let other = Failure::new(Fault::System, "do", "it", "no").advise("try");
        assert_eq!(failure_text(&other), other.to_string());
    }
}
