//! Replies of a mail server (RFC 5321 §4.2).

use std::io::{self, BufRead, Read};

use linerate_proto::http::three_digits;

/// Octets of a line of a reply (RFC 5321 §4.5.3.1.5), and lines of a reply that are read.
const LINE_BYTES_MAX: u64 = 1024;
const LINES_MAX: usize = 100;

/// A reply: its code and the text of its last line, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SmtpReply {
    pub(super) code: u16,
    pub(super) text: String,
}

impl SmtpReply {
    /// Reads a reply of one line or several (RFC 5321 §4.2.1), and nothing behind it.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        for _ in 0..LINES_MAX {
            let mut line = Vec::new();
            Read::take(&mut *reader, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            let line = String::from_utf8_lossy(&line);
            let Some(line) = line.strip_suffix('\n') else {
                return Err(io::Error::other("its answer is cut"));
            };
            let none = || io::Error::other("it does not speak SMTP");
            let code = three_digits(line).ok_or_else(none)?;
            if line.as_bytes().get(3) != Some(&b'-') {
                let text = line.chars().skip(4).filter(|c| !c.is_control()).collect();
                return Ok(Self { code, text });
            }
        }
        Err(io::Error::other("its answer has no end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_several_lines_ends_with_the_one_without_a_dash() {
        // RFC 5321 §4.2.1 and appendix D.1.
        let of = |text: &str| SmtpReply::read(&mut text.as_bytes()).ok();
        let is = |code, text: &str| Some(SmtpReply { code, text: text.to_owned() });
        assert_eq!(
            of("250-foo.com greets bar.com\r\n250-8BITMIME\r\n250 HELP\r\n"),
            is(250, "HELP")
        );
        assert_eq!(of("354\r\n"), is(354, ""));
        let endless = "250-a\r\n".repeat(200);
        for wrong in ["", "25", "+25 OK\r\n", "250-a\r\n", "SSH-2.0\r\n", &endless] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(of(&"2".repeat(5000)), None, "a line has an end");
    }
}
