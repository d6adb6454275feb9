//! WebSockets (RFC 6455) as far as load over them needs: the response to the handshake, heads of
//! frames. Left out: fragmented messages from this end, extensions, the UTF-8 check of text.

/// Suffix of the key before hashing (RFC 6455 §1.3).
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Opcode of a frame (RFC 6455 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Continuation of a fragmented message.
    More = 0,
    /// Text in UTF-8.
    Text = 1,
    /// Binary data, such as load.
    Binary = 2,
    /// Close of the WebSocket.
    Close = 8,
    /// Keepalive request to the other end.
    Ping = 9,
    /// Answer to a ping.
    Pong = 10,
}

impl Opcode {
    const ALL: [Self; 6] =
        [Self::More, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong];

    /// True for control frames, which are short and carry no load (RFC 6455 §5.5).
    pub const fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// A parsed head of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Kind of the frame.
    pub opcode: Opcode,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Masking key of the payload.
    pub mask: [u8; 4],
    /// Length of the head itself.
    pub head_bytes: usize,
}

/// Reason for which bytes are no frame of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Reserved bits or an unknown opcode (RFC 6455 §5.2).
    #[error("a frame of an unknown kind")]
    Kind,
    /// No masking key, which every frame of a client has (RFC 6455 §5.1).
    #[error("a frame without a mask")]
    Unmasked,
    /// Payload longer than allowed: 125 bytes in a control frame (RFC 6455 §5.5), else the limit
    /// passed to [`FrameHead::parse`].
    #[error("a frame that is too long")]
    Long,
}

/// Bytes of the longest head of a frame.
pub const FRAME_HEAD_BYTES_MAX: usize = 14;

impl FrameHead {
    /// Parses the head at the start of a client's bytes; `None` while it is incomplete.
    /// # Errors
    /// When the bytes cannot become a frame with a payload of at most `longest` bytes.
    pub fn parse(bytes: &[u8], longest: u64) -> Result<Option<Self>, FrameError> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let is = |opcode: &&Opcode| **opcode as u8 == first & 0x0f;
        let opcode = *Opcode::ALL.iter().find(is).ok_or(FrameError::Kind)?;
        if first & 0x70 != 0 || (opcode.is_control() && first & 0x80 == 0) {
            return Err(FrameError::Kind);
        }
        if second & 0x80 == 0 {
            return Err(FrameError::Unmasked);
        }
        let (width, short) = match second & 0x7f {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        let Some((length, rest)) = rest.split_at_checked(width) else { return Ok(None) };
        let long = length.iter().fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
        let payload_bytes = if width == 0 { short } else { long };
        if payload_bytes > if opcode.is_control() { 125 } else { longest } {
            return Err(FrameError::Long);
        }
        let Some(mask) = rest.first_chunk::<4>() else { return Ok(None) };
        Ok(Some(Self { opcode, payload_bytes, mask: *mask, head_bytes: 2 + width + 4 }))
    }
}

/// Head of a server's frame that holds a whole message, without a mask.
pub fn message_head(opcode: Opcode, payload_bytes: u64) -> Vec<u8> {
    let mut head = vec![0x80 | opcode as u8];
    match payload_bytes {
        short @ 0..=125 => head.push(short as u8),
        middle @ 126..=0xffff => {
            head.push(126);
            head.extend((middle as u16).to_be_bytes());
        }
        long => {
            head.push(127);
            head.extend(long.to_be_bytes());
        }
    }
    head
}

/// Response to a client's handshake with `key`, which selects the subprotocol `protocol`.
pub fn switching(key: &str, protocol: &str) -> Vec<u8> {
    let accept = accept_of(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    )
    .into_bytes()
}

/// Value of Sec-WebSocket-Accept for a client's key (RFC 6455 §4.2.2).
fn accept_of(key: &str) -> String {
    base64(&sha1_digest(format!("{key}{KEY_SUFFIX}").as_bytes()))
}

/// Base64 with padding (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        let digit = |n: usize| char::from(DIGITS[(word >> (18 - 6 * n) & 63) as usize]);
        let shown = chunk.len() + 1;
        (0..4).map(|n| if n < shown { digit(n) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// SHA-1 digest of a message (RFC 3174 §6.1).
fn sha1_digest(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0_u32];
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        }
        for at in 16..80 {
            let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
            words[at] = mixed.rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (f, k) = match at / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e);
            (e, d, c, b) = (d, c, b.rotate_left(30), a);
            a = next.wrapping_add(k).wrapping_add(*word);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_of_the_rfc_is_answered_as_there() {
        // RFC 6455 §1.3.
        assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        // RFC 4648 §10.
        let coded = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(coded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn digests_are_those_of_the_standard_whatever_the_padding() {
        let hex = |text: &str| {
            sha1_digest(text.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        // FIPS 180-4's examples of one block and of two, and of no message.
        assert_eq!(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(two), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    #[test]
    fn frames_of_clients_are_read_in_each_of_their_three_lengths() {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        // RFC 6455 §5.7: a masked "Hello".
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let read = |bytes: &[u8]| FrameHead::parse(bytes, 1 << 24);
        for cut in 0..6 {
            assert_eq!(read(&hello[..cut]), Ok(None), "{cut} bytes");
        }
        let head = FrameHead { opcode: Opcode::Text, payload_bytes: 5, mask, head_bytes: 6 };
        assert_eq!(read(&hello), Ok(Some(head)));
        let middle = [&[0x82, 0xfe, 0x01, 0x00], &mask[..]].concat();
        assert_eq!(read(&middle).map(|head| head.map(|head| head.payload_bytes)), Ok(Some(256)));
        let long = [&[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0], &mask[..]].concat();
        assert_eq!(read(&long).map(|head| head.map(|head| head.payload_bytes)), Ok(Some(65_536)));
    }

    #[test]
    fn frames_that_no_client_may_send_are_refused() {
        let read = |bytes: &[u8]| FrameHead::parse(bytes, 1 << 24);
        assert_eq!(read(&[0x81, 0x05]), Err(FrameError::Unmasked));
        assert_eq!(read(&[0x83, 0x80]), Err(FrameError::Kind));
        assert_eq!(read(&[0xc2, 0x80]), Err(FrameError::Kind), "a reserved bit");
        assert_eq!(read(&[0x09, 0x80]), Err(FrameError::Kind), "a ping in parts");
        assert_eq!(read(&[0x89, 0xfe, 0, 126]), Err(FrameError::Long), "a ping of 126 bytes");
        let endless = [0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(read(&endless), Err(FrameError::Long));
    }

    #[test]
    fn heads_of_messages_have_the_lengths_of_the_rfc() {
        // RFC 6455 §5.7.
        assert_eq!(message_head(Opcode::Text, 5), [0x81, 0x05]);
        assert_eq!(message_head(Opcode::Binary, 256), [0x82, 0x7e, 0x01, 0x00]);
        let long = [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
        assert_eq!(message_head(Opcode::Binary, 65_536), long);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_as_a_frame_or_an_error(bytes in proptest::collection::vec(0_u8.., 0..20)) {
            if let Ok(Some(head)) = FrameHead::parse(&bytes, 1 << 24) {
                assert!(head.head_bytes <= bytes.len() && head.payload_bytes <= 1 << 24);
            }
        }
    }
}
