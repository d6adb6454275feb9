//! A WebSocket that sends short messages back at once: delay as a browser sees it, at rest and
//! beside load.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::{Extension, extract};

use super::places::HttpConnectionSlot;

/// Longest message that comes back; a longer one ends the connection.
const MESSAGE_BYTES_MAX: usize = 64;
/// A client that says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// No connection lives longer.
const LIFE: Duration = Duration::from_secs(900);

/// `GET /api/v1/echo`: a WebSocket that sends each message back.
pub(crate) async fn get_echo(
    Extension(place): Extension<HttpConnectionSlot>,
    upgrade: Result<WebSocketUpgrade, extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, super::error::ApiError> {
    let upgrade =
        upgrade.map_err(|error| super::error::ApiError::bad_request(error.to_string()))?;
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .max_write_buffer_size(16 * 1024)
        .write_buffer_size(0);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let _ = tokio::time::timeout(LIFE, send_back(socket)).await;
        drop(place);
    }))
}

async fn send_back(mut socket: WebSocket) {
    while let Ok(Some(Ok(message))) = tokio::time::timeout(SILENCE, socket.recv()).await {
        let sent = match message {
            Message::Binary(_) | Message::Text(_) => socket.send(message).await,
            Message::Close(_) => return,
            // Answered by the library.
            Message::Ping(_) | Message::Pong(_) => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}
