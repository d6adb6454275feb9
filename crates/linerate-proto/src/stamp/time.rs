//! Timestamps of 8 octets in both formats, and their error estimate.
//!
//! Times here are nanoseconds since 1970 in UTC, as the kernel's CLOCK_REALTIME gives them.

/// Seconds from 1900, the epoch of NTP, to 1970 (RFC 5905 §6).
const NTP_BEFORE_UNIX_S: u64 = 2_208_988_800;
const NS: u64 = 1_000_000_000;

/// Format of a timestamp, by the Z bit of the error estimate. It does not state the time scale: a
/// PTP clock may show TAI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1900 and a binary fraction, 32 bits each.
    #[default]
    Ntp,
    /// Low 32 bits of the seconds since 1970, and nanoseconds.
    Ptp,
}

impl TimeFormat {
    /// Encodes a time in nanoseconds since 1970.
    pub const fn encode(self, unix_ns: u64) -> [u8; 8] {
        let (seconds, ns) = (unix_ns / NS, unix_ns % NS);
        let (high, low) = match self {
            // Rounded to the nearest 0.23 ns; 999,999,999 ns is still below one second.
            Self::Ntp => (seconds + NTP_BEFORE_UNIX_S, ((ns << 32) + NS / 2) / NS),
            Self::Ptp => (seconds, ns),
        };
        ((high as u32 as u64) << 32 | low).to_be_bytes()
    }

    /// Decodes a time; of the eras of the 32-bit seconds the one nearest to `near_ns` is taken, so
    /// that the wrap of 2036 does no harm. `None` where all bits are 0 (no time), and for
    /// nanoseconds of a second or more.
    pub const fn decode(self, octets: [u8; 8], near_ns: u64) -> Option<u64> {
        let bits = u64::from_be_bytes(octets);
        if bits == 0 {
            return None;
        }
        let (shift_s, ns) = match self {
            Self::Ntp => (NTP_BEFORE_UNIX_S, ((bits & 0xFFFF_FFFF) * NS + (1 << 31)) >> 32),
            Self::Ptp => (0, bits & 0xFFFF_FFFF),
        };
        if ns > NS || (ns == NS && matches!(self, Self::Ptp)) {
            return None;
        }
        let near_s = near_ns / NS + shift_s;
        let ahead_s = ((bits >> 32) as u32).wrapping_sub(near_s as u32).cast_signed();
        let Some(seconds) = near_s.checked_add_signed(ahead_s as i64) else { return None };
        let Some(seconds) = seconds.checked_sub(shift_s) else { return None };
        match seconds.checked_mul(NS) {
            Some(whole_ns) => whole_ns.checked_add(ns),
            None => None,
        }
    }
}

/// Error estimate of a timestamp by its sender (RFC 4656 §4.1.2): S (1 bit), Z (1), Scale (6),
/// Multiplier (8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// S: the clock is synchronised to an external source.
    pub synchronised: bool,
    /// Z: format of the timestamps in the packet.
    pub format: TimeFormat,
    /// Binary exponent.
    pub scale: u8,
    /// Mantissa; 0 is not allowed and counts as unknown.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The smallest estimate that is not below `error_ns`.
    pub fn from_error_ns(error_ns: u64, synchronised: bool, format: TimeFormat) -> Self {
        let units = u128::from(error_ns.max(1)) << 32;
        let multiplier = |scale: u8| units.div_ceil(u128::from(NS) << scale);
        let scale = (0..63).find(|scale| multiplier(*scale) <= 255).unwrap_or(63);
        let multiplier = multiplier(scale).min(255) as u8;
        Self { synchronised, format, scale, multiplier }
    }

    /// The error in ns, rounded up: Multiplier × 2^(Scale − 32) s. `None` when the multiplier is 0.
    pub fn error_ns(self) -> Option<u64> {
        let units = (u128::from(self.multiplier) * u128::from(NS)) << self.scale;
        let ns = units.div_ceil(1 << 32);
        (self.multiplier != 0).then(|| u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// The two octets on the wire.
    pub const fn octets(self) -> [u8; 2] {
        let synchronised = if self.synchronised { 0x80 } else { 0 };
        let format = if matches!(self.format, TimeFormat::Ptp) { 0x40 } else { 0 };
        [synchronised | format | self.scale & 0x3F, self.multiplier]
    }

    /// Parses two octets, of which all values are valid.
    pub const fn read(octets: [u8; 2]) -> Self {
        Self {
            synchronised: octets[0] & 0x80 != 0,
            format: if octets[0] & 0x40 != 0 { TimeFormat::Ptp } else { TimeFormat::Ntp },
            scale: octets[0] & 0x3F,
            multiplier: octets[1],
        }
    }
}
