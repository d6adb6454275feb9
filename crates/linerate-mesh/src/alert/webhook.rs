//! A web hook: the alert's JSON by POST. 2xx takes it.
//!
//! `Idempotency-Key` has the alert's identifier as a string of structured fields
//! (draft-ietf-httpapi-idempotency-key-header §2), the document has it as `id`.

use std::path::Path;

use linerate_outbound::post::{post_body, url_host};
use linerate_store::DueAlert;

/// Posts an alert, as JSON, to a URL; any answer but a status of 200 to 299 is an error.
pub(super) fn post_alert(
    url: &str,
    alert: &DueAlert,
    authority: Option<&Path>,
) -> Result<(), String> {
    let key = format!("\"{}\"", alert.id);
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", &key)];
    match post_body(url, &headers, alert.json.as_bytes(), authority)? {
        200..300 => Ok(()),
        status => Err(format!("{}: HTTP {status}", url_host(url)?)),
    }
}
