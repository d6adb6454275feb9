//! Which pages may ask: this server's own, and of others those that `--allow-origin` names. These
//! may run the tests of a browser and nothing else (Fetch §3.2, CORS).
//!
//! The tests of other programs are not here: they have paths and checks of their own (`http_load`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use super::host;
use super::request::OverTls;
use super::state::State;

/// Paths that a page of another site may request: the server's limits, runs and their parts.
const SERVER: &str = "/api/v1/server";
const RUNS: &str = "/api/v1/runs";
const ECHO: &str = "/api/v1/echo";
/// Paths that agents of a mesh request, each with a secret that no page has.
const AGENTS: &str = "/api/v1/mesh/";

/// CORS headers for a page of another site: methods, fields, and seconds that a browser may cache
/// them.
const MAY_USE: [(HeaderName, &str); 3] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
    (header::ACCESS_CONTROL_MAX_AGE, "600"),
];

/// Lets a request through, or refuses it in words.
pub(crate) async fn check_origin(
    Shared(state): Shared<Arc<State>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let over_tls = request.extensions().get::<OverTls>().is_some_and(|over_tls| over_tls.0);
    let hosts = state.hosts.get().map_or(&[][..], Vec::as_slice);
    let is_proven = over_tls || path.starts_with(AGENTS);
    if let Some(error) = host::check_host(request.headers(), hosts).err().filter(|_| !is_proven) {
        return error.into_response();
    }
    let Some(origin) = guest_origin(path, request.headers()).cloned() else {
        return match same_origin(method, request.headers()) {
            Ok(()) => next.run(request).await,
            Err(error) => error.into_response(),
        };
    };
    let response = if !is_named(&origin, &state.options.origins) {
        match refusal(method, path, request.headers()) {
            // What its page may not read, it gets as any client does.
            None => return next.run(request).await,
            Some(error) => error.into_response(),
        }
    } else if *method == Method::OPTIONS {
        let mut response = StatusCode::NO_CONTENT.into_response();
        for (name, value) in MAY_USE {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    } else {
        next.run(request).await
    };
    readable(response, origin)
}

/// The origin of a page of another site that asks for what belongs to tests.
fn guest_origin<'a>(path: &str, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    let of_runs =
        path.strip_prefix(RUNS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let for_guests = of_runs || path == SERVER || path == ECHO;
    headers.get(header::ORIGIN).filter(|origin| for_guests && !is_own(origin, headers))
}

/// True for an origin among these (`https://example.org`), or where they have `any`.
fn is_named(origin: &HeaderValue, origins: &[String]) -> bool {
    let origin = lowercase_text(origin);
    origins.iter().any(|known| known == "any" || known.eq_ignore_ascii_case(&origin))
}

/// Refusal of a page whose origin is not allowed. Its first request gets one that the page may
/// read.
fn refusal(method: &Method, path: &str, headers: &HeaderMap) -> Option<ApiError> {
    let origin = headers.get(header::ORIGIN).map(lowercase_text).unwrap_or_default();
    let host = headers.get(header::HOST).map(lowercase_text).unwrap_or_default();
    if *method != Method::GET || path != SERVER {
        return same_origin(method, headers).err();
    }
    let say = format!(
        "a page of {origin} may not test against {host}: its operator allows that by linerate serve \
         --allow-origin {origin}"
    );
    Some(ApiError::forbidden(say))
}

/// Lets the page of this origin read an answer.
fn readable(mut response: Response, origin: HeaderValue) -> Response {
    let fields = response.headers_mut();
    fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    fields.append(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// Requests that change something, or that upgrade, are taken from a page of this server or from no
/// page at all: another site's page cannot begin a test in its visitor's name.
fn same_origin(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if reads && !headers.contains_key(header::UPGRADE) {
        return Ok(());
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    if is_own(origin, headers) {
        return Ok(());
    }
    let host = headers.get(header::HOST).map(lowercase_text).unwrap_or_default();
    let origin = lowercase_text(origin);
    let say = format!("a page of {origin} may not ask this of {host}: open this server's own page");
    Err(ApiError::forbidden(say))
}

/// True for a page whose origin is the requested host.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(lowercase_text).unwrap_or_default();
    lowercase_text(origin).split_once("://").is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https") && !host.is_empty() && authority == host
    })
}

fn lowercase_text(value: &HeaderValue) -> String {
    value.to_str().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("192.0.2.1:5210"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).expect("plain"));
        }
        headers
    }

    #[test]
    fn what_changes_something_comes_from_the_servers_own_page_or_from_none() {
        let check = |method: Method, origin: Option<&str>, expected: bool| {
            let found = same_origin(&method, &headers(origin)).is_ok();
            assert_eq!(found, expected, "{method} {origin:?}");
        };
        check(Method::POST, None, true);
        check(Method::POST, Some("http://192.0.2.1:5210"), true);
        check(Method::POST, Some("https://192.0.2.1:5210"), true);
        check(Method::POST, Some("http://192.0.2.1"), false);
        check(Method::POST, Some("http://example.com"), false);
        check(Method::DELETE, Some("null"), false);
        check(Method::GET, Some("http://example.com"), true);
    }

    #[test]
    fn a_page_of_another_site_is_a_guest_of_tests_alone() {
        let other = headers(Some("http://lan.example:5210"));
        for path in [SERVER, RUNS, ECHO, "/api/v1/runs/1/events"] {
            assert!(guest_origin(path, &other).is_some(), "{path}");
        }
        for path in ["/", "/api/v1/measure", "/api/v1/results", "/api/v1/runsome", "/metrics"] {
            assert!(guest_origin(path, &other).is_none(), "{path}");
        }
        assert!(guest_origin(RUNS, &headers(None)).is_none(), "no page");
        assert!(
            guest_origin(RUNS, &headers(Some("http://192.0.2.1:5210"))).is_none(),
            "its own page"
        );
    }

    #[test]
    fn an_origin_is_named_whole_or_by_any() {
        let named = |origin: &'static str, origins: &[&str]| {
            let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
            is_named(&HeaderValue::from_static(origin), &origins)
        };
        assert!(named("http://lan.example:5210", &["http://lan.example:5210"]));
        assert!(named("null", &["any"]));
        assert!(!named("http://lan.example", &["http://lan.example:5210"]));
        assert!(!named("https://lan.example:5210", &["http://lan.example:5210"]));
        assert!(!named("http://lan.example:5210", &[]));
    }
}
