//! Amounts as iperf3 prints them: four places at most, bytes by powers of 1024, bits by powers of
//! 1000. With an upper-case letter of `-f` rates are bytes per second, by powers of 1024.

/// The unit that `-f` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iperf3Unit {
    /// Rates in bytes, not bits.
    bytes: bool,
    /// Thousands (or 1024s) to divide by; chosen by the value when absent.
    power: Option<u8>,
}

const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];

impl Iperf3Unit {
    /// Reads the letter of `-f`: one of `kmgtKMGT`, `a` or `A` to choose by the value.
    pub fn from_letter(letter: &str) -> Option<Self> {
        let mut letters = letter.chars();
        let (first, None) = (letters.next()?, letters.next()) else { return None };
        let power = match first.to_ascii_lowercase() {
            'a' => None,
            'k' => Some(1),
            'm' => Some(2),
            'g' => Some(3),
            't' => Some(4),
            _ => return None,
        };
        Some(Self { bytes: first.is_ascii_uppercase(), power })
    }

    /// A rate of `bps` bits a second, as `35.5 Gbits/sec`.
    pub(super) fn format_rate(self, bps: f64) -> String {
        let printed = match self.bytes {
            true => scaled(bps / 8.0, 1024.0, self.power, "Bytes"),
            false => scaled(bps, 1000.0, self.power, "bits"),
        };
        format!("{printed}/sec")
    }
}

/// An amount of bytes, as `4.13 GBytes`.
pub(super) fn amount(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, None, "Bytes")
}

fn scaled(value: f64, step: f64, power: Option<u8>, noun: &str) -> String {
    let mut power_chosen = 0;
    let mut rest = value;
    while rest >= step && usize::from(power_chosen) + 1 < PREFIXES.len() {
        rest /= step;
        power_chosen += 1;
    }
    let power = power.unwrap_or(power_chosen);
    let value = value / step.powi(i32::from(power));
    // Four places: 9.99, 99.9, 999.
    let decimals = match value {
        small if small < 9.995 => 2,
        medium if medium < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.decimals$} {}{noun}", PREFIXES[usize::from(power)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_rates_are_those_of_iperf3() {
        // As Debian's iperf3 3.12 printed them.
        assert_eq!(amount(0), "0.00 Bytes");
        assert_eq!(amount(131_072), " 128 KBytes");
        assert_eq!(amount(10 << 20), "10.0 MBytes");
        assert_eq!(amount(2_422_210_560), "2.26 GBytes");
        assert_eq!(amount(1014 << 20), "1014 MBytes");
        let unit = Iperf3Unit::default();
        assert_eq!(unit.format_rate(35.5e9), "35.5 Gbits/sec");
        assert_eq!(unit.format_rate(1_048_489.0), "1.05 Mbits/sec");
        assert_eq!(unit.format_rate(478e6), " 478 Mbits/sec");
        assert_eq!(unit.format_rate(0.0), "0.00 bits/sec");
    }

    #[test]
    fn a_letter_fixes_the_power_and_an_upper_case_one_means_bytes() {
        let rate =
            |letter: &str| Iperf3Unit::from_letter(letter).expect("a letter").format_rate(8e6);
        // 8 Mbit/s are 1,000,000 bytes a second: 976.6 KiB, 0.95 MiB.
        assert_eq!(rate("k"), "8000 Kbits/sec");
        assert_eq!(rate("m"), "8.00 Mbits/sec");
        assert_eq!(rate("g"), "0.01 Gbits/sec");
        assert_eq!(rate("K"), " 977 KBytes/sec");
        assert_eq!(rate("M"), "0.95 MBytes/sec");
        assert_eq!(Iperf3Unit::from_letter("x"), None);
        assert_eq!(Iperf3Unit::from_letter("mm"), None);
    }
}
