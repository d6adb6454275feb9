//! Offset of a NIC's PTP hardware clock (PHC) from CLOCK_REALTIME: PTP_SYS_OFFSET_EXTENDED on
//! /dev/ptpN, linux/ptp_clock.h, since Linux 4.20. The clock is read and not set.
//!
//! ```text
//! struct ptp_sys_offset_extended   0  u32 n_samples   4  u32 rsv[3]
//!                                 16  struct ptp_clock_time ts[25][3]: system, card, system
//! struct ptp_clock_time            0  s64 sec   8  u32 nsec  12  u32 reserved
//! ```
//!
//! Each sample reads the NIC's clock between two readings of the system clock; half the time
//! between them bounds the error. Written from the header; not tested on a NIC.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

/// The ioctl number: _IOWR('=', 9, struct ptp_sys_offset_extended).
const PTP_SYS_OFFSET_EXTENDED: libc::c_ulong = 0xc4c0_3d09;
/// Most samples of one call (PTP_MAX_SAMPLES).
const SAMPLES_MAX: usize = 25;
const HEAD_BYTES: usize = 16;
const TIME_BYTES: usize = 16;
const BYTES: usize = HEAD_BYTES + SAMPLES_MAX * 3 * TIME_BYTES;
const NS: i128 = 1_000_000_000;

/// Offset of a NIC's clock from CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDistance {
    /// The NIC's clock minus CLOCK_REALTIME: about 37 s if the NIC has TAI.
    pub offset_ns: i64,
    /// Error of the offset: half of the reading time.
    pub error_ns: u64,
}

impl ClockDistance {
    /// Reads the clock /dev/ptpN 25 times, and uses the reading that took the least time.
    /// # Errors
    /// When there is no such clock, this user may not read it, or its driver does not support it.
    pub fn from_clock(clock: u32) -> Result<Self> {
        let path = format!("/dev/ptp{clock}");
        let failed = |source| Error::new("read the clock", path.clone(), source);
        let file = OpenOptions::new().read(true).open(&path).map_err(failed)?;
        // 64-bit words, so that the kernel's structure is aligned.
        let mut words = [0u64; BYTES / 8];
        words[0] = u64::from_ne_bytes(request_head());
        // SAFETY: the kernel reads and writes struct ptp_sys_offset_extended, 1216 bytes, at
        // `words`, which has as many, is aligned to 8 and outlives the call.
        let done = unsafe {
            libc::ioctl(file.as_raw_fd(), PTP_SYS_OFFSET_EXTENDED as _, words.as_mut_ptr())
        };
        if done < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let none = || failed(io::Error::other("no reading that can be"));
        Self::parse(&bytes).ok_or_else(none)
    }

    /// Parses the kernel's answer and returns its shortest reading; `None` without a valid one.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (count, samples) = bytes.split_at_checked(HEAD_BYTES)?;
        let count = u32::from_ne_bytes(*count.first_chunk()?) as usize;
        let samples = samples.chunks_exact(3 * TIME_BYTES).take(count.min(SAMPLES_MAX));
        let readings = samples.filter_map(|sample| {
            let time = |place: usize| time_ns(&sample[place * TIME_BYTES..]);
            let (before, card, after) = (time(0)?, time(1)?, time(2)?);
            let took = u64::try_from(after - before).ok()?;
            let offset_ns = i64::try_from(card - (before + after).div_euclid(2)).ok()?;
            Some(Self { offset_ns, error_ns: took.div_ceil(2) })
        });
        readings.min_by_key(|reading| reading.error_ns)
    }
}

/// The fields `n_samples` and the first reserved word.
fn request_head() -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&(SAMPLES_MAX as u32).to_ne_bytes());
    head
}

/// Parses a `struct ptp_clock_time`; its seconds are signed, and the ns are added.
fn time_ns(bytes: &[u8]) -> Option<i128> {
    let seconds = i64::from_ne_bytes(*bytes.first_chunk()?);
    let ns = u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    Some(i128::from(seconds) * NS + i128::from(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filled in by a C program with the names of linux/ptp_clock.h (6.1), not by a card:
    /// system 100.999999000, card 138.000002000, system 101.000003000 s: 37.000001 s ahead, read in
    /// 4 us; then 102.500000000, 139.500000700, 102.500000800: 37.0000003 s, in 800 ns.
    const ANSWER: &str = "02000000000000000000000000000000\
        640000000000000018c69a3b00000000 8a00000000000000d007000000000000 \
        6500000000000000b80b000000000000 66000000000000000065cd1d00000000 \
        8b00000000000000bc67cd1d00000000 66000000000000002068cd1d00000000";

    fn answer() -> Vec<u8> {
        let digits: Vec<char> = ANSWER.chars().filter(char::is_ascii_hexdigit).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16);
        digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal")).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_shortest_reading_counts_and_its_window_is_the_error() {
        let both = ClockDistance { offset_ns: 37_000_000_300, error_ns: 400 };
        assert_eq!(ClockDistance::parse(&answer()), Some(both));
        let mut first = answer();
        first[0] = 1;
        let first_only = ClockDistance { offset_ns: 37_000_001_000, error_ns: 2_000 };
        assert_eq!(ClockDistance::parse(&first), Some(first_only));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn what_cannot_be_is_no_reading() {
        let bytes = answer();
        assert_eq!(ClockDistance::parse(&bytes[..63]), None, "cut in the first reading");
        let mut none = bytes.clone();
        none[0] = 0;
        assert_eq!(ClockDistance::parse(&none), None);
        // The system's clock was set back between its two readings.
        let mut back = bytes[..64].to_vec();
        back[48] = 0x63;
        assert_eq!(ClockDistance::parse(&back), None);
        for cut in 0..bytes.len() {
            let _ = ClockDistance::parse(&bytes[..cut]);
        }
    }

    #[test]
    fn a_clock_that_is_not_there_is_an_error_that_names_it() {
        let error = ClockDistance::from_clock(u32::MAX).expect_err("none has that number");
        assert!(error.to_string().contains("/dev/ptp4294967295"), "{error}");
        // The size that is in the number of the call.
        assert_eq!(BYTES, (PTP_SYS_OFFSET_EXTENDED >> 16 & 0x3fff) as usize);
    }
}
