//! The page: its files as the program brings them, each packed once.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::content_policy::with_server;
use super::error::ApiError;
use super::state::State;

mod files {
    include!(concat!(env!("OUT_DIR"), "/page_files.rs"));
}

/// Page of a program that was built without the real one.
const FALLBACK: &str = include_str!("fallback.html");
const INDEX: &str = "/index.html";

/// The worker that asks this host by its other address. What it may load is its own matter and not
/// the page's; a policy of content cannot name an IPv6 address (CSP Level 3 §2.3.1), so it names
/// the scheme.
const FAMILIES: &str = "/assets/families.worker";
const FAMILIES_POLICY: &str = "default-src 'none'; connect-src http:";
/// The worker of WebTransport, whose port is another origin: the same.
const DATAGRAMS: &str = "/assets/datagrams.worker";
const DATAGRAMS_POLICY: &str = "default-src 'none'; connect-src https:";

/// A file, plain and packed.
struct File {
    kind: &'static str,
    plain: &'static [u8],
    packed: Vec<u8>,
}

fn page_files() -> &'static HashMap<&'static str, File> {
    static FILES: OnceLock<HashMap<&'static str, File>> = OnceLock::new();
    FILES.get_or_init(|| {
        let fallback = [(INDEX, FALLBACK.as_bytes())];
        let has_index = files::FILES.iter().any(|(path, _)| *path == INDEX);
        let fallback = fallback.into_iter().filter(|_| !has_index);
        let all = files::FILES.iter().copied().chain(fallback);
        all.map(|(path, plain)| {
            (path, File { kind: media_type(path), plain, packed: packed(plain) })
        })
        .collect()
    })
}

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The media type by the end of a name (IANA).
fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// A file of the page; a path without a dot is one of the page's own places.
pub(crate) async fn get_page(
    Shared(state): Shared<Arc<State>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    let place = !path.rsplit('/').next().unwrap_or_default().contains('.');
    let file = page_files().get(if place { INDEX } else { path });
    let Some(file) = file.filter(|_| !path.starts_with("/api/")) else {
        return ApiError::not_found(format!("{path}: there is no such path")).into_response();
    };
    let packs =
        takes_gzip(&headers) && !file.packed.is_empty() && file.packed.len() < file.plain.len();
    let body = if packs { Body::from(file.packed.as_slice()) } else { Body::from(file.plain) };
    let mut response = (StatusCode::OK, body).into_response();
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if packs {
        fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let workers = [(FAMILIES, FAMILIES_POLICY), (DATAGRAMS, DATAGRAMS_POLICY)];
    if let Some((_, policy)) = workers.into_iter().find(|(begin, _)| path.starts_with(begin)) {
        fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    if let Some(outer) = state.outer.get()
        && let Ok(policy) = HeaderValue::from_str(&with_server(outer.host_port()))
    {
        // Workers have a policy of their own; the others are the page's.
        fields.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    }
    // Names of assets change with their contents.
    let asset = path.starts_with("/assets/");
    let keep = if asset { "public, max-age=31536000, immutable" } else { "no-cache" };
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    response
}

/// True where the client accepts gzip (RFC 9110 §12.5.3).
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let takes = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    takes.is_some_and(|value| value.split(',').any(|coding| coding.trim().starts_with("gzip")))
}

/// `GET /robots.txt`: a measurement server is nothing to index.
pub(crate) async fn robots() -> &'static str {
    "User-agent: *\nDisallow: /\n"
}
