//! Requests of iperf 2's latency test over TCP (`--bounceback`), big-endian; the server sends each
//! back with its own times in it, cut or filled to the length of a reply.
//!
//! ```text
//!  0 flags 00800000 | 4 bytes of a request | 8 number | 12 flags (2), service type (2) | 16 time
//! 20 client's time | 28 server received | 36 server sent (seconds, microseconds each)
//! 44 hold, us | 48 round trip | 52 client's time of reading | 60 bytes of a reply (2.2)
//! ```
//!
//! Observed on 2.1.8 and 2.2.

use super::read_be_u32;

/// First word of every request.
const BOUNCE_BACK: u32 = 0x0080_0000;
/// Bytes of the fields that every request has: up to and including the hold.
const BOUNCE_BYTES_MIN: usize = 48;
/// Flag: the request states the length of its reply.
const REPLY_TOLD: u16 = 0x0800;
/// Flag: the last request, which gets no reply.
const STOP: u16 = 0x1000;
const SERVER_RECEIVED: usize = 28;
const SERVER_SENT: usize = 36;

/// A request of the latency test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounce {
    /// Bytes of the request.
    pub request_bytes: u32,
    /// Bytes of the reply.
    pub reply_bytes: u32,
    /// Time between request and reply that the server waits, in microseconds.
    pub hold_us: u32,
    /// The last request, which gets no reply.
    pub last: bool,
}

impl Bounce {
    /// Parses a request; `None` where the bytes are none, or too short for their fields.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |offset| read_be_u32(bytes, offset);
        if at(0)? != BOUNCE_BACK {
            return None;
        }
        let (request_bytes, hold_us) = (at(4)?, at(44)?);
        let flags = (at(12)? >> 16) as u16;
        let reply_bytes = match flags & REPLY_TOLD {
            0 => request_bytes,
            _ => at(60)?,
        };
        let fits = request_bytes as usize >= BOUNCE_BYTES_MIN && reply_bytes > 0;
        fits.then_some(Self { request_bytes, reply_bytes, hold_us, last: flags & STOP != 0 })
    }

    /// Writes the server's times, of its wall clock in microseconds, into a request sent back.
    pub fn write_server_times(bytes: &mut [u8], received_us: u64, sent_us: u64) {
        for (at, us) in [(SERVER_RECEIVED, received_us), (SERVER_SENT, sent_us)] {
            let Some(field) = bytes.get_mut(at..at + 8) else { return };
            field[..4].copy_from_slice(&((us / 1_000_000) as u32).to_be_bytes());
            field[4..].copy_from_slice(&((us % 1_000_000) as u32).to_be_bytes());
        }
    }
}

/// True if the first word of a connection is that of a latency test.
pub(super) const fn is_bounce(flags: u32) -> bool {
    flags == BOUNCE_BACK
}

#[cfg(test)]
mod tests {
    use super::super::{Opening, opening};
    use super::*;

    /// The beginnings of `iperf -c --bounceback` 2.1.8, `--bounceback-hold 2` of it, and
    /// `--bounceback-reply 60` of 2.2, as they came.
    const RECORDED: [(&str, u32, u32, u32); 3] = [
        (
            "00800000000000640000000180005a5a000000006b036bda00097807ffffffffffffffff\
             ffffffffffffffff000000005a5a5a5a5a5a5a5a5a5a5a5a30313233",
            100,
            100,
            0,
        ),
        (
            "00800000000000640000000180005a5a000000006b036bda000b026effffffffffffffff\
             ffffffffffffffff000007d05a5a5a5a5a5a5a5a5a5a5a5a30313233",
            100,
            100,
            2000,
        ),
        (
            "008000000000006400000001 88005a5a000000006b036bdb0000b834ffffffffffffffff\
             ffffffffffffffff000000005a5a5a5a5a5a5a5a5a5a5a5a0000003c",
            100,
            60,
            0,
        ),
    ];

    fn bytes_from_hex(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    #[test]
    fn recorded_requests_are_read_and_cut_ones_are_not() {
        for (hex, request_bytes, reply_bytes, hold_us) in RECORDED {
            let request = bytes_from_hex(hex);
            let expected = Bounce { request_bytes, reply_bytes, hold_us, last: false };
            assert_eq!(Bounce::parse(&request), Some(expected));
            assert_eq!(opening(&request), Ok(Opening::Bounce(expected)));
            let least = if reply_bytes == request_bytes { BOUNCE_BYTES_MIN } else { 64 };
            for length in 0..least {
                assert_eq!(Bounce::parse(&request[..length]), None, "{length}");
            }
            for bit in 0..request.len() * 8 {
                let mut damaged = request.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = (Bounce::parse(&damaged), opening(&damaged));
            }
        }
    }

    #[test]
    fn a_reply_has_the_server_s_times_and_leaves_the_client_s_alone() {
        let mut request = bytes_from_hex(RECORDED[0].0);
        let before = request.clone();
        Bounce::write_server_times(&mut request, 1_000_002, 3_000_004);
        assert_eq!(request[..28], before[..28]);
        assert_eq!(request[28..44], [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        assert_eq!(request[44..], before[44..]);
        Bounce::write_server_times(&mut [0; 30], u64::MAX, 0);
    }
}
