//! Command lines as getopt(3) and getopt_long(3) read them: `-l 8192`, `-l8192`, `-ts`, `--time=1`,
//! `--tim 1`, operands anywhere, mistakes in glibc's words. A personality names its flags; what is
//! not among them is a mistake. Flags come in the order of the line, so that the last one wins.

use std::ffi::OsString;

use lexopt::Arg;

/// Value that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// The flag has no value.
    Nothing,
    /// One has to, in the same word or in the next.
    Value,
    /// One may, in the same word: `--timestamps=%s`, `-d4`.
    Maybe,
}

/// A flag of a personality's table.
pub(super) trait Known {
    /// Its letter, where it has one.
    fn letter(&self) -> Option<char>;
    /// Its long name; empty for none.
    fn long_name(&self) -> &str;
    /// Value that the flag takes.
    fn expected_value(&self) -> Takes;
    /// True when another row of the table is the same flag by another name.
    fn is_alias_of(&self, other: &Self) -> bool;
}

/// A flag: its letter, its long name (empty for none), and whether a value follows. Rows with the
/// same letter are one flag with several names.
pub(super) type Flag<T = bool> = (char, &'static str, T);

/// Flags of a letter alone.
pub(super) fn letters<T: Copy>(letters: &[char], takes: T) -> impl Iterator<Item = Flag<T>> {
    letters.iter().map(move |letter| (*letter, "", takes))
}

impl From<bool> for Takes {
    fn from(value: bool) -> Self {
        if value { Self::Value } else { Self::Nothing }
    }
}

impl<T: Copy + Into<Takes>> Known for Flag<T> {
    fn letter(&self) -> Option<char> {
        Some(self.0)
    }

    fn long_name(&self) -> &str {
        self.1
    }

    fn expected_value(&self) -> Takes {
        self.2.into()
    }

    fn is_alias_of(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// One word of the line as the program understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedWord {
    /// A flag by its letter, with its value where it has one.
    Flag(char, String),
    /// Any other word: an operand.
    Operand(String),
}

/// Reads a command line.
/// # Errors
/// The mistake in the words of getopt(3).
pub(super) fn parse<T: Copy + Into<Takes>>(
    words: &[String],
    flags: &[Flag<T>],
) -> Result<Vec<ParsedWord>, String> {
    let word = |part: ParsedArgument<'_, Flag<T>>| match part {
        ParsedArgument::Flag(flag, value) => ParsedWord::Flag(flag.0, value.unwrap_or_default()),
        ParsedArgument::Operand(word) => ParsedWord::Operand(word),
    };
    Ok(scan_words(words, flags)?.into_iter().map(word).collect())
}

/// One word of the line, with its flag's row in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParsedArgument<'a, F> {
    /// A flag, with its value where it has one.
    Flag(&'a F, Option<String>),
    /// Any other word: an operand.
    Operand(String),
}

/// Reads a command line whose flags have rows of their own.
/// # Errors
/// The mistake in the words of getopt(3).
pub(super) fn scan_words<'a, F: Known>(
    words: &[String],
    flags: &'a [F],
) -> Result<Vec<ParsedArgument<'a, F>>, String> {
    let mut line = lexopt::Parser::from_args(words);
    // `-l=5` has the value `=5` for getopt.
    line.set_short_equals(false);
    let mut found = Vec::new();
    while let Some(arg) = line.next().map_err(|error| error.to_string())? {
        let (flag, missing, is_long) = match arg {
            Arg::Value(word) => {
                found.push(ParsedArgument::Operand(lossy_text(word)));
                continue;
            }
            Arg::Short(letter) => {
                let flag = flags.iter().find(|known| known.letter() == Some(letter));
                let flag = flag.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
                (flag, format!("option requires an argument -- '{letter}'"), false)
            }
            Arg::Long(name) => {
                let flag = find_long(name, flags)?;
                (flag, format!("option '--{}' requires an argument", flag.long_name()), true)
            }
        };
        let value = match flag.expected_value() {
            Takes::Value => Some(line.value().map_err(|_| missing)?),
            Takes::Maybe => line.optional_value(),
            Takes::Nothing if is_long && line.optional_value().is_some() => {
                return Err(format!("option '--{}' doesn't allow an argument", flag.long_name()));
            }
            Takes::Nothing => None,
        };
        found.push(ParsedArgument::Flag(flag, value.map(lossy_text)));
    }
    Ok(found)
}

/// The word as text: it was text before, so nothing is lost.
fn lossy_text(word: OsString) -> String {
    word.to_string_lossy().into_owned()
}

/// The flag of a long name, or of its only beginning.
fn find_long<'a, F: Known>(name: &str, flags: &'a [F]) -> Result<&'a F, String> {
    let long = || flags.iter().filter(|known| !known.long_name().is_empty());
    if let Some(exact) = long().find(|known| known.long_name() == name) {
        return Ok(exact);
    }
    let begun: Vec<&F> = long().filter(|known| known.long_name().starts_with(name)).collect();
    match begun[..] {
        [] => Err(format!("unrecognized option '--{name}'")),
        [first, ref others @ ..] if others.iter().all(|other| other.is_alias_of(first)) => {
            Ok(first)
        }
        _ => {
            let all: Vec<String> =
                begun.iter().map(|flag| format!("'--{}'", flag.long_name())).collect();
            Err(format!("option '--{name}' is ambiguous; possibilities: {}", all.join(" ")))
        }
    }
}

/// A size with K, M or G of 1024 and its powers, or k, m, g of 1000 where `decimal`.
pub(super) fn parse_size(text: &str, decimal: bool) -> Option<f64> {
    let (digits, power) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1),
        (at, 'm' | 'M') => (&text[..at], 2),
        (at, 'g' | 'G') => (&text[..at], 3),
        (at, 't' | 'T') => (&text[..at], 4),
        _ => (text, 0),
    };
    let base: f64 = if decimal { 1000.0 } else { 1024.0 };
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| value * base.powi(power))
}

/// A size in whole bytes.
pub(super) fn parse_bytes(flag: char, text: &str) -> Result<u64, String> {
    let value = parse_size(text, false).filter(|value| *value < 9e18);
    value.map(|value| value as u64).ok_or_else(|| format!("-{flag}: '{text}' is no size"))
}

/// Reads a whole number.
pub(super) fn number<T: std::str::FromStr>(flag: char, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("-{flag}: '{text}' is no number of its range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [Flag; 7] = [
        ('t', "", false),
        ('s', "", false),
        ('l', "length", true),
        ('e', "enhanced", false),
        ('b', "bandwidth", true),
        ('b', "banner", true),
        ('i', "linux", false),
    ];

    fn read(line: &str) -> Result<Vec<ParsedWord>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words, &FLAGS)
    }

    fn flag_word(letter: char, value: &str) -> ParsedWord {
        ParsedWord::Flag(letter, value.to_owned())
    }

    #[test]
    fn values_stand_behind_their_letter_or_in_the_next_word() {
        let host = ParsedWord::Operand("host".to_owned());
        let expected = vec![flag_word('t', ""), flag_word('s', ""), flag_word('l', "8192"), host];
        for line in ["-t -s -l 8192 host", "-tsl8192 host", "-ts --length=8192 host"] {
            assert_eq!(read(line), Ok(expected.clone()), "{line}");
        }
        let last = read("host -ts --len 8192").expect("a beginning is enough");
        assert_eq!(last[1..], expected[..3]);
    }

    #[test]
    fn mistakes_are_named_in_the_words_of_glibc() {
        // As iperf3 3.21 with glibc 2.36 printed them for flags of the same kind.
        for (line, said) in [
            ("-x", "invalid option -- 'x'"),
            ("-l", "option requires an argument -- 'l'"),
            ("--len", "option '--length' requires an argument"),
            ("--no", "unrecognized option '--no'"),
            ("--enhanced=1", "option '--enhanced' doesn't allow an argument"),
            ("--l=1", "option '--l' is ambiguous; possibilities: '--length' '--linux'"),
        ] {
            assert_eq!(read(line), Err(said.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_beginning_of_two_names_of_one_flag_is_that_flag() {
        assert_eq!(read("--ban 5 --banner=6"), Ok(vec![flag_word('b', "5"), flag_word('b', "6")]));
    }

    #[test]
    fn a_value_that_may_be_absent_stands_in_the_same_word() {
        struct Debug;
        impl Known for Debug {
            fn letter(&self) -> Option<char> {
                Some('d')
            }
            fn long_name(&self) -> &str {
                "debug"
            }
            fn expected_value(&self) -> Takes {
                Takes::Maybe
            }
            fn is_alias_of(&self, _: &Self) -> bool {
                false
            }
        }
        for (line, value, operands) in [
            (&["-d", "4"][..], None, 1),
            (&["-d4"], Some("4"), 0),
            (&["--debug", "4"], None, 1),
            (&["--debug=4"], Some("4"), 0),
            (&["--deb="], Some(""), 0),
        ] {
            let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            let parts = scan_words(&words, &[Debug]).unwrap_or_else(|said| panic!("{said}"));
            let ParsedArgument::Flag(_, given) = &parts[0] else { panic!("{line:?} has a flag") };
            assert_eq!((given.as_deref(), parts.len()), (value, 1 + operands), "{line:?}");
        }
    }

    #[test]
    fn sizes_have_powers_of_1024_and_rates_of_1000() {
        assert_eq!(parse_bytes('l', "64K"), Ok(65_536));
        assert_eq!(parse_bytes('l', "1.5m"), Ok(1_572_864));
        assert_eq!(parse_size("10m", true), Some(10e6));
        for wrong in ["", "K", "-1", "1e99", "nan", "inf"] {
            assert!(parse_bytes('l', wrong).is_err(), "{wrong}");
        }
    }
}
