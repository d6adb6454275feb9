//! Bytes of a file to text: UTF-8 and UTF-16 with their marks, and what is no text by its first
//! bytes. Shells of Windows write UTF-16 with a byte order mark (`iperf3 -J > FILE` in PowerShell).

use super::Unreadable;

/// First bytes of formats that people hand over in place of a text.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "compressed by gzip", "gzip -dc FILE | linerate explain -"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "zstd -dc FILE | linerate explain -"),
    (b"\xfd7zXZ", "compressed by xz", "xz -dc FILE | linerate explain -"),
    (b"BZh", "compressed by bzip2", "bzip2 -dc FILE | linerate explain -"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it, and explain the files in it"),
    (b"\xd4\xc3\xb2\xa1", CAPTURE, CONFORM),
    (b"\xa1\xb2\xc3\xd4", CAPTURE, CONFORM),
    (b"\x4d\x3c\xb2\xa1", CAPTURE, CONFORM),
    (b"\xa1\xb2\x3c\x4d", CAPTURE, CONFORM),
    (b"\x0a\x0d\x0d\x0a", CAPTURE, CONFORM),
    (b"SQLite format 3", "a database of SQLite", "linerate explain @-1 --store FILE"),
    (b"\x89PNG", "a picture", "explain the output as text: iperf3 -J, ss -tin"),
    (b"\xff\xd8\xff", "a picture", "explain the output as text: iperf3 -J, ss -tin"),
    (b"%PDF", "a PDF document", "explain the output as text: iperf3 -J, ss -tin"),
];
const CAPTURE: &str = "a capture of packets";
const CONFORM: &str =
    "linerate conform FILE meters it against a contract; of a transfer, give the output of ss -tin";

/// The text of a file's bytes.
/// # Errors
/// [`Unreadable::Binary`] for what is no text.
pub fn decode(bytes: &[u8]) -> Result<String, Unreadable> {
    let known = MAGIC.iter().find(|(magic, ..)| bytes.starts_with(magic));
    if let Some((_, kind, advice)) = known {
        return Err(Unreadable::Binary { kind, advice });
    }
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => text_of_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => text_of_utf16(rest, u16::from_be_bytes),
        // Without a mark: ASCII in UTF-16 has a zero in each pair of bytes.
        [first, 0, second, 0, ..] if *first > 0 && *second > 0 => {
            text_of_utf16(bytes, u16::from_le_bytes)
        }
        [0, first, 0, second, ..] if *first > 0 && *second > 0 => {
            text_of_utf16(bytes, u16::from_be_bytes)
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    if text.contains('\0') {
        let advice = "explain the output as text: iperf3 -J, ss -tin";
        return Err(Unreadable::Binary { kind: "a binary file", advice });
    }
    Ok(text)
}

/// The text of 16-bit units in either byte order.
fn text_of_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}
