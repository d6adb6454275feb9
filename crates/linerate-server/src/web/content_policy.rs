//! What pages of this server may load, and from where (Content Security Policy Level 3).

/// No script and no style but the page's own files; drawings may have data of their own.
pub(crate) const CONTENT_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The same with another server, `HOST:PORT`, that the page may ask, and load nothing from.
pub(crate) fn with_server(host: &str) -> String {
    let own = "connect-src 'self'";
    CONTENT_POLICY.replace(own, &format!("{own} http://{host} ws://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_ask_another_server_and_load_nothing_from_it() {
        let policy = with_server("out.example:5210");
        let to = "connect-src 'self' http://out.example:5210 ws://out.example:5210;";
        assert!(policy.contains(to), "{policy}");
        assert_eq!(policy.matches("out.example").count(), 2, "{policy}");
    }
}
