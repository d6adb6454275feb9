//! Bodies in gzip's format (RFC 1952).

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Its name as an encoding (RFC 9110 §8.4.1.3).
pub(super) const GZIP: &str = "gzip";

/// An answer is a plan at the most.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Packs a body in gzip's format, at its fastest level.
pub(super) fn packed(body: &[u8]) -> Vec<u8> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::fast());
    let done = packing.write_all(body).and_then(|()| packing.finish());
    done.expect("memory takes what is written")
}

/// Unpacks so many bytes at the most; what is longer is an error.
pub(super) fn unpacked(body: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(body).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed_and_no_more_than_is_allowed() {
        let body = vec![b'a'; 100_000];
        let bytes = packed(&body);
        assert!(bytes.len() < 1_000, "{}", bytes.len());
        assert_eq!(unpacked(&bytes, 100_000).ok(), Some(body));
        assert!(
            unpacked(&bytes, 99_999).is_err_and(|error| error.to_string().contains("99999 bytes"))
        );
        assert!(unpacked(b"nothing of the kind", 10).is_err());
    }
}
