//! A server outside this network, by which the page tells which leg of the way is worse: to here,
//! or from here on. Only its name is kept: it is looked up, and the policy asked, for each
//! measurement.

use linerate_core::record::DEFAULT_PORT;

/// Another server of linerate, outside this network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Host and port, `HOST:PORT`.
    host: String,
}

impl Outer {
    /// Reads `HOST`, `HOST:PORT` or `http://HOST:PORT`.
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text}: {why}"));
        let bare = text.strip_prefix("http://").unwrap_or(text);
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        if bare.contains("://") {
            return wrong("a speed test goes over plain HTTP: http://HOST:PORT");
        }
        if bare.starts_with('[') || bare.matches(':').count() > 1 {
            // Content Security Policy Level 3 §2.3.1 has no such source.
            return wrong("the policy of a page cannot name an IPv6 address: give a name");
        }
        let (host, port) = bare.split_once(':').unwrap_or((bare, ""));
        let port = if port.is_empty() { Ok(DEFAULT_PORT) } else { port.parse::<u16>() };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        match port {
            Ok(port) if port > 0 && !host.is_empty() && host.bytes().all(plain) => {
                Ok(Self { host: format!("{}:{port}", host.to_ascii_lowercase()) })
            }
            _ => wrong("a server outside is HOST, HOST:PORT or http://HOST:PORT"),
        }
    }

    /// Host and port of the server, `HOST:PORT`.
    pub fn host_port(&self) -> &str {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_outside_is_a_host_and_a_port() {
        let of = |text: &str| Outer::parse(text).map(|outer| outer.host);
        assert_eq!(of("Out.example"), Ok("out.example:5210".to_owned()));
        assert_eq!(of("http://192.0.2.1:80/"), Ok("192.0.2.1:80".to_owned()));
        for (wrong, word) in [
            ("https://out.example", "plain HTTP"),
            ("[2001:db8::1]:5210", "IPv6"),
            ("2001:db8::1", "IPv6"),
            ("out.example:0", "HOST:PORT"),
            ("out.example:70000", "HOST:PORT"),
            ("out.example/path", "HOST:PORT"),
            ("a;script-src *", "HOST:PORT"),
            ("", "HOST:PORT"),
        ] {
            let said = of(wrong).expect_err(wrong);
            assert!(said.contains(word), "{wrong}: {said}");
        }
    }
}
