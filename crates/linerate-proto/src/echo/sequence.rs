//! Extends the 16-bit sequence number of ICMP to the 64-bit sequence of the probe.

/// The largest probe sequence not above `newest` whose low 16 bits are `low`, or `None` when no
/// such probe was sent yet. Correct as long as an answer arrives within 65536 probes.
#[inline]
pub const fn extend(low: u16, newest: u64) -> Option<u64> {
    let back = (newest as u16).wrapping_sub(low);
    newest.checked_sub(back as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_over_the_wrap() {
        assert_eq!(extend(65535, 65536), Some(65535));
        assert_eq!(extend(0, 65536), Some(65536));
        assert_eq!(extend(1, 65536), Some(1));
        assert_eq!(extend(0xFFF0, 0x5_0003), Some(0x4_FFF0));
        assert_eq!(extend(7, 7), Some(7));
    }

    #[test]
    fn a_number_that_was_not_sent_is_none() {
        assert_eq!(extend(1, 0), None);
        assert_eq!(extend(65535, 10), None);
    }
}
