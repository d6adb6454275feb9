//! A hub's answer over HTTP, taken apart (RFC 9112 §4, §6.2; RFC 9110 §8.4). Left out: bodies in
//! chunks, which a hub does not send.

use linerate_proto::http::three_digits;

use super::pack::GZIP;

/// An HTTP answer of a hub: status and whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HubAnswer<'a> {
    pub(super) status: u16,
    /// The body is in gzip's format.
    pub(super) is_packed: bool,
    pub(super) body: &'a [u8],
}

impl<'a> HubAnswer<'a> {
    /// Reads an answer; none where it is cut short, or has no Content-Length.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = three_digits(lines.next()?.strip_prefix("HTTP/1.1 ")?)?;
        let fields: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
        let field = |of: &str| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(of));
            found.map(|(_, value)| value.trim())
        };
        let length = field("content-length")?;
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        let length: usize = length.parse().ok().filter(|_| is_number)?;
        let is_packed =
            field("content-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case(GZIP));
        let body = &bytes[end + 4..];
        (body.len() == length).then_some(Self { status, is_packed, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_anywhere_is_none() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nx: y\r\n\r\n{}\n";
        let body = b"{}\n".as_slice();
        let expected = HubAnswer { status: 200, is_packed: false, body };
        assert_eq!(HubAnswer::parse(whole), Some(expected));
        for cut in 0..whole.len() {
            assert_eq!(HubAnswer::parse(&whole[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn an_answer_without_a_length_or_with_signs_for_digits_is_none() {
        for wrong in [
            &b"HTTP/1.1 200 OK\r\n\r\n{}"[..],
            b"HTTP/1.1 +20 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
        ] {
            assert_eq!(HubAnswer::parse(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
