//! Return routability check for clients of `-R` over UDP, between linerate and linerate. iperf 2
//! has none: one datagram with a forged source address makes its server flood that address.
//!
//! ```text
//! client                                       server
//!   header, cookie 0 -------------------------->
//!   <------------------------- number 0, cookie        no longer than the request
//!   header, the same cookie ------------------->       the server starts to send
//! ```
//!
//! The cookie comes after all fields that iperf 2 reads, so iperf 2's servers ignore it and send at
//! once: 120 `linerate`, 128 the cookie (8). The answer has number 0, which no data has.

use super::datagram::Stamp;
use super::pattern;

/// Bytes of a datagram that carries a cookie.
pub const PROOF_BYTES: usize = 136;

const MARK_AT: usize = 120;
const MARK: &[u8; 8] = b"linerate";

/// Writes a cookie into a datagram of at least [`PROOF_BYTES`]; 0 requests one.
pub fn put_cookie(datagram: &mut [u8], cookie: u64) {
    let Some(room) = datagram.get_mut(MARK_AT..PROOF_BYTES) else { return };
    room[..8].copy_from_slice(MARK);
    room[8..].copy_from_slice(&cookie.to_be_bytes());
}

/// The cookie in a datagram; `None` where it is too short or has no mark.
pub fn cookie(datagram: &[u8]) -> Option<u64> {
    let (mark, rest) = datagram.get(MARK_AT..)?.split_first_chunk::<8>()?;
    let cookie = rest.first_chunk::<8>()?;
    (mark == MARK).then(|| u64::from_be_bytes(*cookie))
}

/// Builds a server's answer to a client without a cookie.
pub fn cookie_answer(cookie: u64) -> Vec<u8> {
    let mut answer = pattern(PROOF_BYTES);
    Stamp { number: 0, sent_us: 0 }.write(&mut answer);
    put_cookie(&mut answer, cookie);
    answer
}

/// The cookie in a server's answer; `None` for a datagram of data.
pub fn answered_cookie(datagram: &[u8]) -> Option<u64> {
    let numbers = [datagram.get(..4)?, datagram.get(12..16)?];
    cookie(datagram).filter(|_| numbers.concat().iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::super::{ClientHeader, Iperf2Amount, Iperf2DatagramLayout, Mode, UdpSender};
    use super::*;

    #[test]
    fn a_cookie_stands_behind_the_header_also_with_trip_times() {
        let header = ClientHeader::new(Mode::Reverse, Iperf2Amount::Centiseconds(100));
        for trip_times in [None, Some(1_000_000)] {
            let sender = UdpSender::new(ClientHeader { trip_times, ..header });
            assert!(sender.first_bytes().len() <= MARK_AT);
            let mut datagram = sender.buffer(PROOF_BYTES);
            assert_eq!(cookie(&datagram), None, "digits are no cookie");
            put_cookie(&mut datagram, 0x0123_4567_89ab_cdef);
            assert_eq!(cookie(&datagram), Some(0x0123_4567_89ab_cdef));
            assert_eq!(datagram[..sender.first_bytes().len()], sender.first_bytes());
        }
    }

    #[test]
    fn an_answer_is_told_from_data_by_its_number() {
        let answer = cookie_answer(77);
        assert_eq!(
            (answer.len(), Iperf2DatagramLayout::from_first_datagram(&answer)),
            (PROOF_BYTES, Iperf2DatagramLayout::Wide)
        );
        assert_eq!(answered_cookie(&answer), Some(77));
        for length in 0..PROOF_BYTES {
            assert_eq!(answered_cookie(&answer[..length]), None, "{length}");
        }
        let mut data = answer;
        Stamp { number: 1, sent_us: 5 }.write(&mut data);
        assert_eq!((cookie(&data), answered_cookie(&data)), (Some(77), None));
    }
}
