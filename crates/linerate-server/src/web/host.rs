//! Names under which a browser may ask: the server's own, against DNS rebinding. A page of a name
//! that its owner points at this server's address would else read here with its visitor's rights,
//! as a page of this server's own.
//!
//! An address is nobody's name, and a name that the Internet cannot have (one label, `localhost`,
//! RFC 6761; `.local`, RFC 6762; `.home.arpa`, RFC 8375; `.internal`) is no stranger's. Over TLS
//! the certificate is the proof.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};

use super::error::ApiError;

/// Ends of names that the Domain Name System of the Internet does not have.
const NEAR: [&str; 4] = [".localhost", ".local", ".home.arpa", ".internal"];
/// Characters of a name that a refusal repeats (RFC 1035 §2.3.4 allows 255 bytes).
const NAME_MAX: usize = 255;

/// # Errors
/// The refusal, where a request names a host that this server does not answer as.
pub(crate) fn check_host(headers: &HeaderMap, hosts: &[String]) -> Result<(), ApiError> {
    // Without one it is no browser (RFC 9112 §3.2).
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    let host = String::from_utf8_lossy(host.as_bytes());
    let name = name_of(&host);
    if is_own(&name, hosts) {
        return Ok(());
    }
    let name: String = name.escape_default().take(NAME_MAX).collect();
    let say = format!(
        "this server does not answer as {name}: open it by its address, or start it with \
         --allow-host {name}"
    );
    Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "policy", say))
}

/// The name without the port and the root's dot.
fn name_of(host: &str) -> String {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

fn is_own(name: &str, hosts: &[String]) -> bool {
    // An IPv6 address may have a zone behind it (RFC 6874).
    let address = name.split('%').next().unwrap_or(name);
    address.parse::<IpAddr>().is_ok()
        || !name.contains('.')
        || NEAR.iter().any(|end| name.ends_with(end))
        || hosts.iter().any(|host| host == "any" || host.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_near_names_and_those_that_are_listed_are_answered_and_no_others() {
        let listed = ["speed.example".to_owned()];
        for (host, is_answered) in [
            ("127.0.0.1:5210", true),
            ("198.51.100.7", true),
            ("[::1]:5210", true),
            ("[fe80::1%25eth0]:5210", true),
            ("localhost:5210", true),
            ("gateway", true),
            ("nas.local:5210", true),
            ("Speed.example:80", true),
            ("speed.example.", true),
            ("evil.example", false),
            ("evil.speed.example", false),
            ("127.0.0.1.evil.example:5210", false),
            ("localhost.evil.example", false),
            ("evillocal.example", false),
        ] {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().expect("a field"))]);
            let answer = check_host(&headers, &listed);
            assert_eq!(answer.is_ok(), is_answered, "{host}: {answer:?}");
            let any = check_host(&headers, &["any".to_owned()]);
            assert!(any.is_ok(), "{host}");
        }
        assert!(check_host(&HeaderMap::new(), &[]).is_ok(), "no browser");
        // Listed are none, and two.
        let headers = HeaderMap::from_iter([(header::HOST, "b.example".parse().expect("a field"))]);
        assert!(check_host(&headers, &[]).is_err());
        assert!(check_host(&headers, &["a.example".to_owned(), "b.example".to_owned()]).is_ok());
    }
}
