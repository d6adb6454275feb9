//! A mail by SMTP (RFC 5321) to a relay that takes it without login and encryption: the mail
//! server of this host or site, which has queue, keys and names. It goes to one address.
//!
//! The text is base64 (RFC 2045 §6.8), so that no line is too long and no byte is lost; the
//! `Message-ID` is made of the alert's identifier, by which a second copy can be told.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::time::WallTime;
use linerate_engine::failure::words_of;
use linerate_outbound::{Host, connect};
use linerate_proto::iperf3::to_base64;
use linerate_store::DueAlert;
use linerate_sys::clock::monotonic;

use super::TAKES;
use super::reply::SmtpReply;

/// Host of the mail relay where a plan names none.
pub(super) const RELAY: &str = "localhost";
/// Port of an SMTP relay where none is given (RFC 5321 §4.5.4.2).
const PORT: u16 = 25;
/// Longest wait for the connection, and for each write and read.
const QUIET: Duration = Duration::from_secs(30);
/// Characters of a subject that are kept.
const SUBJECT_MAX: usize = 150;
/// Characters of a line of base64 (RFC 2045 §6.8).
const COLUMNS: usize = 76;

/// Sender, recipient and relay of an alert's mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MailRoute {
    pub(super) to: String,
    pub(super) from: String,
    pub(super) relay: String,
}

/// Checks that a relay is HOST or HOST:PORT.
pub(super) fn check_relay(relay: &str) -> Result<(), String> {
    let wrong = || format!("{relay:?}: a relay is HOST or HOST:PORT");
    Host::parse(relay, PORT).map(drop).ok_or_else(wrong)
}

/// Sends an alert as a mail by its route's relay.
pub(super) fn send_mail(way: &MailRoute, alert: &DueAlert) -> Result<(), String> {
    let host = Host::parse(&way.relay, PORT).ok_or("the relay is none")?;
    let failed = |reason: String| format!("{}: {reason}", way.relay);
    let stream = connect(&host, QUIET).map_err(|error| failed(words_of(&error)))?;
    run_smtp_dialog(stream, way, alert).map_err(failed)
}

fn run_smtp_dialog(stream: TcpStream, way: &MailRoute, alert: &DueAlert) -> Result<(), String> {
    let until = monotonic() + TAKES;
    let words = |error: std::io::Error| words_of(&error);
    let mut reader = BufReader::new(stream.try_clone().map_err(words)?);
    let mut stream = stream;
    let mut say = |line: &str, wanted: &[u16]| {
        if !line.is_empty() {
            stream.write_all(line.as_bytes()).map_err(words)?;
        }
        let SmtpReply { code, text } =
            SmtpReply::read(&mut reader).map_err(|error| match error.kind() {
                // Its own words.
                std::io::ErrorKind::Other => error.to_string(),
                _ => words_of(&error),
            })?;
        if monotonic() >= until {
            return Err("it took too long".to_owned());
        }
        match wanted.contains(&code) {
            true => Ok(()),
            false => Err(format!("{code} {text}")),
        }
    };
    say("", &[220])?;
    let here = way.from.split_once('@').map_or("localhost", |(_, host)| host);
    // A relay that knows no extensions has the older greeting (RFC 5321 §3.2).
    if say(&format!("EHLO {here}\r\n"), &[250]).is_err() {
        say(&format!("HELO {here}\r\n"), &[250])?;
    }
    say(&format!("MAIL FROM:<{}>\r\n", way.from), &[250])?;
    say(&format!("RCPT TO:<{}>\r\n", way.to), &[250, 251])?;
    say("DATA\r\n", &[354])?;
    say(&format!("{}\r\n.\r\n", message(way, alert)), &[250])?;
    // It is the relay's from here on, whatever it says to this.
    let _ = say("QUIT\r\n", &[221]);
    Ok(())
}

/// The mail (RFC 5322), whose lines end with CRLF and begin with no dot.
fn message(way: &MailRoute, alert: &DueAlert) -> String {
    let host = way.from.split_once('@').map_or("localhost", |(_, host)| host);
    let at = WallTime::from_unix_nanos(u128::try_from(alert.at_s).unwrap_or(0) * 1_000_000_000);
    let date = at.format_utc("%a, %d %b %Y %H:%M:%S +0000").unwrap_or_default();
    let pretty = serde_json::from_str::<serde_json::Value>(&alert.json)
        .and_then(|value| serde_json::to_string_pretty(&value));
    let json = pretty.unwrap_or_else(|_| alert.json.clone());
    let text = format!("{}\r\n\r\n{}\r\n", alert.sentence, json.replace('\n', "\r\n"));
    let coded = to_base64(text.as_bytes());
    let lines: Vec<&str> = (0..coded.len().div_ceil(COLUMNS))
        .map(|at| &coded[at * COLUMNS..coded.len().min((at + 1) * COLUMNS)])
        .collect();
    format!(
        "Date: {date}\r\nFrom: linerate <{}>\r\nTo: <{}>\r\nSubject: {}\r\n\
         Message-ID: <{}@{host}>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
        way.from,
        way.to,
        subject(&alert.sentence),
        alert.id,
        lines.join("\r\n")
    )
}

/// A sentence as a mail's subject: encoded words (RFC 2047 §2) of 75 characters where it is not
/// ASCII.
fn subject(sentence: &str) -> String {
    let mut plain = sentence.chars().filter(|c| !c.is_control());
    let mut text: String = plain.by_ref().take(SUBJECT_MAX).collect();
    if plain.next().is_some() {
        text.push_str(" ...");
    }
    if text.is_ascii() {
        return text;
    }
    let mut words: Vec<String> = vec![String::new()];
    for c in text.chars() {
        // 45 bytes are 60 characters of base64 between `=?UTF-8?B?` and `?=`.
        if words.last().is_some_and(|word| word.len() + c.len_utf8() > 45) {
            words.push(String::new());
        }
        words.last_mut().into_iter().for_each(|word| word.push(c));
    }
    let coded = words.iter().map(|word| format!("=?UTF-8?B?{}?=", to_base64(word.as_bytes())));
    coded.collect::<Vec<_>>().join("\r\n ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_plain_or_encoded_and_has_no_line_of_its_own() {
        assert_eq!(subject("m: slow\r\nBcc: x@y"), "m: slowBcc: x@y");
        // RFC 2047 §2: 75 characters at most. `Zürich` in UTF-8 is 5a c3 bc 72 69 63 68.
        assert_eq!(subject("Zürich"), "=?UTF-8?B?WsO8cmljaA==?=");
        let long = subject(&"ü".repeat(400));
        assert!(long.split("\r\n ").all(|word| word.len() <= 75) && long.len() > 75, "{long}");
    }
}
