//! The endpoint of QUIC: who gets a session, and how packets are paced and limited.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::stop::Stop;
use wtransport::config::{QuicTransportConfig, ServerConfig};
use wtransport::endpoint::endpoint_side;
use wtransport::quinn::VarInt;
use wtransport::quinn::congestion::NewRenoConfig;
use wtransport::{Endpoint, Identity, VarInt as Code};

use super::certificate::Certificate;
use super::port::QuicPort;
use super::session;
use crate::web::state::State;

/// Sessions at once, and handshakes that wait for a place.
const SESSIONS_MAX: usize = 64;
const WAITING_MAX: usize = 256;
/// Time between two looks whether the server is to end, or the certificate to be made anew.
const LOOK: Duration = Duration::from_millis(100);
/// Without a packet for this long a session is over.
const SILENCE_MS: u32 = 10_000;
/// Streams of a session at once, beside those of HTTP/3: rounds.
const STREAMS: u8 = 8;
/// Bytes that a client may send on streams before they are read; the longest message is a report.
const STREAM_WINDOW: u32 = 128 * 1024;
/// Bytes in flight: two seconds of the fastest round, 200 datagrams/s of 1000 bytes. It does not
/// move: a window that shrinks at a loss would hold the next datagrams back, and the sender's own
/// queue would be taken for the path's delay. Their rate is bounded by the round, as that of
/// `linerate udp` is by its plan, and the client sends as much.
const WINDOW_BYTES: u64 = 400_000;
/// Times to probe after which all that was lost would shrink it (RFC 9002 §7.6): longer than a
/// session lives.
const CONGESTION_PERSISTS: u32 = 1000;

/// Serves sessions on a port until `stop`.
pub(in crate::web) fn run(port: &QuicPort, state: &Arc<State>, stop: &Stop) {
    let Some(socket) = port.take_socket() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!("no WebTransport: {error}"),
    };
    runtime.block_on(async {
        match Endpoint::server(config(port.certificate.identity(), Some(socket))) {
            Ok(endpoint) => accept_sessions(&port.certificate, &endpoint, state, stop).await,
            Err(error) => tracing::warn!("no WebTransport: {error}"),
        }
    });
    runtime.shutdown_timeout(LOOK);
}

async fn accept_sessions(
    certificate: &Certificate,
    endpoint: &Endpoint<endpoint_side::Server>,
    state: &Arc<State>,
    stop: &Stop,
) {
    let mut look = tokio::time::interval(LOOK);
    while !stop.is_requested() {
        tokio::select! {
            incoming = endpoint.accept() => {
                let ip = incoming.remote_address().ip().to_canonical();
                if !state.gate.policy_guard().has_rule_for(ip) {
                    incoming.ignore();
                } else if !incoming.remote_address_validated() {
                    incoming.retry();
                } else if endpoint.open_connections() >= SESSIONS_MAX {
                    incoming.refuse();
                } else {
                    tokio::spawn(session::serve_session(incoming, Arc::clone(state)));
                }
            }
            _ = look.tick() => {
                let renewed = certificate.renew_if_due();
                if let Some(error) = renewed.and_then(|identity| {
                    endpoint.reload_config(config(identity, None), false).err()
                }) {
                    tracing::warn!("the certificate of WebTransport stays: {error}");
                }
            }
        }
    }
    endpoint.close(Code::from_u32(0), b"the server ends");
    let _ = tokio::time::timeout(LOOK, endpoint.wait_idle()).await;
}

/// How QUIC is spoken: by this identity, on this socket or the one that there is.
fn config(identity: Identity, socket: Option<UdpSocket>) -> ServerConfig {
    let mut transport = QuicTransportConfig::default();
    let mut window = NewRenoConfig::default();
    window.initial_window(WINDOW_BYTES).loss_reduction_factor(1.0);
    transport
        .congestion_controller_factory(Arc::new(window))
        .persistent_congestion_threshold(CONGESTION_PERSISTS)
        .max_idle_timeout(Some(VarInt::from_u32(SILENCE_MS).into()))
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_concurrent_uni_streams(STREAMS.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window((4 * STREAM_WINDOW).into())
        // A look for the path MTU is a packet that nobody asked for, and the datagrams are short.
        .mtu_discovery_config(None)
        // One packet, one datagram of UDP: what is lost is lost alone.
        .enable_segmentation_offload(false);
    let builder = ServerConfig::builder();
    let builder = match socket {
        Some(socket) => builder.with_bind_socket(socket),
        None => builder.with_bind_default(0),
    };
    let mut config = builder.with_custom_transport(identity, transport).build();
    config.quic_config_mut().max_incoming(WAITING_MAX).migration(false);
    config
}
