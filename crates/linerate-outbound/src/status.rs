//! The status of an answer of HTTP (RFC 9112 §4), past those that say that another follows (1xx).
//! The rest of the answer is not read.

use linerate_proto::http::three_digits;

/// The last status of what came; none while it has not come whole, or where it is none of HTTP.
pub(super) fn status(bytes: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = &*text;
    loop {
        let (line, _) = rest.split_once("\r\n")?;
        let code = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "))?;
        let status = three_digits(code)?;
        if !(100..200).contains(&status) {
            return Some(status);
        }
        // From the end of its line on: it may have no fields.
        (_, rest) = rest[line.len()..].split_once("\r\n\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_past_interim_answers_and_cut_anywhere_is_none_or_the_same() {
        let whole = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
            HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(status(whole), Some(204));
        for cut in 0..whole.len() {
            assert!(matches!(status(&whole[..cut]), None | Some(204)), "{cut}");
        }
        assert_eq!(status(b"HTTP/1.0 500 Oh\r\n"), Some(500));
        assert_eq!(status(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), Some(200));
        for wrong in ["SSH-2.0-x\r\n", "HTTP/1.1 +20 Oh\r\n", "HTTP/1.1 20\r\n"] {
            assert_eq!(status(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
