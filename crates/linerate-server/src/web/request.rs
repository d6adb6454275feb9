//! What every request has beside it: who asks, and the place of its connection.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};
use linerate_core::policy::Program;
use linerate_proto::digest::sha256;

use super::error::ApiError;
use crate::policy_guard::PolicyClient;

/// Extension of each request: the client's address and port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Extension of each request: the local address that the client connected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local(pub(crate) Option<SocketAddr>);

/// Extension of each request: true where it came over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverTls(pub(crate) bool);

/// The client of a request as the policy sees it, with its bearer token.
pub(crate) fn client_of(peer: SocketAddr, headers: &HeaderMap) -> Result<PolicyClient, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(PolicyClient::without_token(Program::Http, peer.ip()));
    };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| sha256(token.trim().as_bytes()))
    });
    let say = "Authorization: Bearer TOKEN is all that is understood (RFC 6750 section 2.1)";
    let token = Some(token.ok_or_else(|| ApiError::bad_request(say))?);
    Ok(PolicyClient { token, ..PolicyClient::without_token(Program::Http, peer.ip()) })
}

/// The host that a client asked for, as it may stand in a command line.
pub(crate) fn asked_host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte);
    (!host.is_empty() && host.len() <= 255 && host.bytes().all(plain)).then(|| host.to_owned())
}
