//! One session: it shows the token of a running test, and then has a few rounds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::policy::Program;
use linerate_proto::native::Token;
use linerate_sys::clock::monotonic;
use wtransport::endpoint::{IncomingSession, SessionRequest};
use wtransport::{Connection, VarInt};

use super::port::PATH;
use super::round::{self, DatagramRounds};
use crate::policy_guard::PolicyClient;
use crate::web::run::BrowserRun;
use crate::web::state::State;

/// From the first packet to the request of a session.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// No session lives longer: the longest test has two directions of 60 s.
const LIFE: Duration = Duration::from_secs(180);
/// Between two looks whether the test is over.
const LOOK: Duration = Duration::from_millis(250);
/// The last round may be told this long after the test.
const AFTER: Duration = Duration::from_secs(12);
/// Bytes around a datagram: IPv6, UDP, QUIC and HTTP/3 (RFC 9000 §17.3, RFC 9297 §2.1).
const AROUND_BYTES: u64 = 40 + 8 + 30;

/// Serves one connection from its handshake on.
pub(super) async fn serve_session(incoming: IncomingSession, state: Arc<State>) {
    let peer = incoming.remote_address();
    let request = tokio::time::timeout(HANDSHAKE_WITHIN, incoming).await;
    let request = match request {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return tracing::debug!(%peer, "WebTransport: {error}"),
        Err(_) => return tracing::debug!(%peer, "WebTransport: no handshake in time"),
    };
    let Some(run) = run_of(&state, &request) else {
        tracing::debug!(%peer, "WebTransport: no token of a test that runs");
        return request.forbidden().await;
    };
    if !run.take_session() {
        tracing::debug!(%peer, "WebTransport: a test has few sessions");
        return request.too_many_requests().await;
    }
    match request.accept().await {
        Ok(connection) => {
            let connection = Arc::new(connection);
            let rounds = run_session(&connection, peer, &state, &run);
            let _ = tokio::time::timeout(LIFE, rounds).await;
            connection.close(VarInt::from_u32(0), b"over");
        }
        Err(error) => tracing::debug!(%peer, "WebTransport: {error}"),
    }
}

/// The running test whose token the path shows.
fn run_of(state: &State, request: &SessionRequest) -> Option<Arc<BrowserRun>> {
    let (id, token) = parse_session_path(request.path())?;
    let run = state.runs.get(id).ok()?;
    (run.token == token && !run.is_over()).then_some(run)
}

/// Identifier and token in `PATH?run=ID&token=TOKEN`.
fn parse_session_path(path: &str) -> Option<(&str, Token)> {
    let query = path.strip_prefix(PATH)?.strip_prefix("?run=")?;
    let (id, token) = query.split_once("&token=")?;
    Some((id, Token::from_hex(token)?))
}

/// Takes datagrams, and rounds, until the client leaves or the test has been over for a while.
async fn run_session(
    connection: &Arc<Connection>,
    peer: SocketAddr,
    state: &Arc<State>,
    run: &Arc<BrowserRun>,
) {
    let rounds = Arc::new(DatagramRounds::new());
    let mut look = tokio::time::interval(LOOK);
    let mut over = None;
    loop {
        tokio::select! {
            datagram = connection.receive_datagram() => match datagram {
                Ok(datagram) => {
                    rounds.take_datagram(&datagram);
                    charge(state, peer, datagram.len());
                }
                Err(_) => return,
            },
            stream = connection.accept_bi() => match stream {
                Ok((send, recv)) => {
                    let (connection, rounds) = (Arc::clone(connection), Arc::clone(&rounds));
                    let (state, run) = (Arc::clone(state), Arc::clone(run));
                    tokio::spawn(async move {
                        handle_round(&connection, send, recv, &rounds, peer, &state, &run).await;
                    });
                }
                Err(_) => return,
            },
            _ = look.tick() => {
                over = over.or_else(|| run.is_over().then(monotonic));
                let left = over.is_some_and(|since| monotonic().duration_since(since) > AFTER);
                if left || state.ends.is_requested() {
                    return;
                }
            }
        }
    }
}

/// Counts a datagram to its client's bytes of the day.
fn charge(state: &State, peer: SocketAddr, bytes: usize) {
    state.gate.policy_guard().charge(peer.ip().to_canonical(), bytes as u64 + AROUND_BYTES);
}

/// One round, and what there is to say of it.
async fn handle_round(
    connection: &Connection,
    send: wtransport::SendStream,
    recv: wtransport::RecvStream,
    rounds: &DatagramRounds,
    peer: SocketAddr,
    state: &State,
    run: &BrowserRun,
) {
    let client = PolicyClient::without_token(Program::Http, run.peer.ip());
    let rate_bps = state.gate.policy_guard().allowance(&client).rate_bps;
    // The record waits for it, also where it comes to nothing.
    let _open = run.open_round();
    match round::serve_round(connection, send, recv, rounds, rate_bps).await {
        Ok(result) => {
            state
                .gate
                .policy_guard()
                .charge(peer.ip().to_canonical(), result.bytes_down(AROUND_BYTES));
            let text = linerate_core::tree::to_value(result).unwrap_or_default();
            tracing::info!(%peer, "http: datagrams: {text}");
            run.push_event("datagrams", &text);
            run.take_round(result);
        }
        Err(reason) => tracing::debug!(%peer, "WebTransport: no round: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_shows_a_run_and_its_token_or_nothing() {
        let token = "00112233445566778899aabbccddeeff";
        let path = format!("{PATH}?run=abc&token={token}");
        let (id, read) = parse_session_path(&path).expect("both");
        assert_eq!((id, read.to_hex()), ("abc", token.to_owned()));
        for wrong in ["", PATH, "/?run=abc&token=00", &path[..path.len() - 1], &path[1..]] {
            assert!(parse_session_path(wrong).is_none(), "{wrong}");
        }
    }
}
