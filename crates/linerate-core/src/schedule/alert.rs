//! Who hears of an alert: a command of this host, a web hook, people by mail.

use serde::Deserialize;

use crate::lab::{Problem, Step};

/// Who hears of an alert; one output at least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// A command line for `sh -c`; it gets the alert as JSON on its standard input, and as
    /// `LINERATE_ALERT` in one sentence.
    #[serde(default)]
    pub command: Option<String>,
    /// `https://HOST[:PORT]/PATH`: the alert's JSON is posted there.
    #[serde(default)]
    pub webhook: Option<String>,
    /// Addresses that get a mail.
    #[serde(default)]
    pub mail: Vec<String>,
    /// The sender of mails.
    #[serde(default)]
    pub mail_from: Option<String>,
    /// `HOST[:PORT]` that takes mails, by SMTP without login; this host's port 25 where nothing is
    /// said.
    #[serde(default)]
    pub relay: Option<String>,
}

impl Alert {
    /// # Errors
    /// The first key that makes no sense.
    pub(crate) fn check_outputs(&self) -> Result<(), Problem> {
        let refuse = |key, message: String| {
            Err(Problem { path: vec![Step::Key("alert"), Step::Key(key)], message })
        };
        if self.command.is_none() && self.webhook.is_none() && self.mail.is_empty() {
            return refuse("command", "an alert has a command, a webhook or mail".to_owned());
        }
        if let Some(text) = self.webhook.as_ref().filter(|text| !is_web(text)) {
            return refuse("webhook", format!("{text:?}: http://HOST/PATH or https://HOST/PATH"));
        }
        if let Some(text) = self.mail.iter().find(|text| !is_mailbox(text)) {
            return refuse("mail", format!("{text:?}: an address is NAME@HOST"));
        }
        match &self.mail_from {
            None if !self.mail.is_empty() => {
                refuse("mail", "say the sender: mail_from = \"linerate@HOST\"".to_owned())
            }
            Some(text) if !is_mailbox(text) => {
                refuse("mail_from", format!("{text:?}: an address is NAME@HOST"))
            }
            _ => Ok(()),
        }
    }
}

/// What may stand in a request line: no blank and no control character.
fn is_web(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    plain && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// What may stand between `<` and `>` of a command of SMTP (RFC 5321 §4.1.2), quoted names left
/// out.
fn is_mailbox(text: &str) -> bool {
    let plain = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"<>()[]\\,;:\"@".contains(&byte);
        !part.is_empty() && part.bytes().all(fits)
    };
    text.split_once('@').is_some_and(|(name, host)| plain(name) && plain(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_goes_somewhere_and_no_address_smuggles_a_line() {
        let of = |text: &str| {
            let alert: Alert = crate::tree::from_toml(text).expect("TOML");
            alert.check_outputs().map_err(|problem| problem.message)
        };
        let from = "mail_from = \"l@example.net\"\n";
        for good in [
            "command = \"x\"",
            "webhook = \"https://hooks.example/a?b\"",
            "webhook = \"http://[::1]:80/\"",
            &format!("{from}mail = [\"ops+net@example.net\", \"a@b\"]"),
        ] {
            assert_eq!(of(good), Ok(()), "{good}");
        }
        for (wrong, said) in [
            ("", "a command, a webhook or mail"),
            ("relay = \"h\"", "a command, a webhook or mail"),
            ("webhook = \"ftp://h/\"", "https://HOST/PATH"),
            ("webhook = \"https:///x\"", "https://HOST/PATH"),
            ("webhook = \"http://h/ HTTP/1.1\"", "https://HOST/PATH"),
            ("webhook = \"http://h/\\r\\nX: y\"", "https://HOST/PATH"),
            ("mail = [\"a@b\"]", "mail_from"),
            (&format!("{from}mail = [\"ops\"]"), "NAME@HOST"),
            (&format!("{from}mail = [\"a@b>\\r\\nRCPT TO:<c@d\"]"), "NAME@HOST"),
            ("command = \"x\"\nmail_from = \"a b@c\"", "NAME@HOST"),
        ] {
            assert!(of(wrong).expect_err(wrong).contains(said), "{wrong}");
        }
    }
}
