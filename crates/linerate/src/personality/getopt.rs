//! Command lines as getopt(3) and getopt_long(3) read them: `-l 8192`, `-l8192`, `-ts`, `--time=1`,
//! operands anywhere. A personality names its flags; what is not among them is a mistake.

/// A flag: its letter, its long name (empty for none), and whether a value follows.
pub(super) type Flag = (char, &'static str, bool);

/// One word of the line as the program understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A flag by its letter, with its value where it has one.
    Flag(char, String),
    /// Anything else.
    Operand(String),
}

/// Reads a command line.
/// # Errors
/// The mistake in the words of getopt(3).
pub(super) fn parse(words: &[String], flags: &[Flag]) -> Result<Vec<Word>, String> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            found.extend(rest.by_ref().cloned().map(Word::Operand));
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            let &(letter, _, takes) = named(name, flags)?;
            let value = match (takes, value) {
                (true, Some(value)) => value.to_owned(),
                (true, None) => needs(&format!("--{name}"), rest.next())?,
                (false, None) => String::new(),
                (false, Some(_)) => return Err(format!("option '--{name}' allows no argument")),
            };
            found.push(Word::Flag(letter, value));
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            short(letters, flags, &mut rest, &mut found)?;
        } else {
            found.push(Word::Operand(word.clone()));
        }
    }
    Ok(found)
}

/// Letters behind one dash.
fn short<'a>(
    letters: &str,
    flags: &[Flag],
    rest: &mut impl Iterator<Item = &'a String>,
    found: &mut Vec<Word>,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let flag = flags.iter().find(|(known, ..)| *known == letter);
        let &(_, _, takes) = flag.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        if takes {
            let behind = &letters[at + letter.len_utf8()..];
            let value = match behind {
                "" => needs(&format!("-{letter}"), rest.next())?,
                value => value.to_owned(),
            };
            found.push(Word::Flag(letter, value));
            return Ok(());
        }
        found.push(Word::Flag(letter, String::new()));
    }
    Ok(())
}

/// The flag of a long name, or of its only beginning.
fn named<'a>(name: &str, flags: &'a [Flag]) -> Result<&'a Flag, String> {
    let long = || flags.iter().filter(|(_, long, _)| !long.is_empty());
    if let Some(exact) = long().find(|(_, long, _)| *long == name) {
        return Ok(exact);
    }
    let mut begun = long().filter(|(_, long, _)| long.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!("option '--{name}' is ambiguous")),
        (None, _) => Err(format!("unrecognized option '--{name}'")),
    }
}

fn needs(name: &str, value: Option<&String>) -> Result<String, String> {
    value.cloned().ok_or_else(|| format!("option requires an argument -- '{name}'"))
}

/// A size with K, M or G of 1024 and its powers, or k, m, g of 1000 where `decimal`.
pub(super) fn size(text: &str, decimal: bool) -> Option<f64> {
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
pub(super) fn bytes(flag: char, text: &str) -> Result<u64, String> {
    let value = size(text, false).filter(|value| *value < 9e18);
    value.map(|value| value as u64).ok_or_else(|| format!("-{flag}: '{text}' is no size"))
}

/// A whole number.
pub(super) fn number<T: std::str::FromStr>(flag: char, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("-{flag}: '{text}' is no number of its range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [Flag; 4] =
        [('t', "", false), ('s', "", false), ('l', "length", true), ('e', "enhanced", false)];

    fn read(line: &str) -> Result<Vec<Word>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words, &FLAGS)
    }

    fn flag(letter: char, value: &str) -> Word {
        Word::Flag(letter, value.to_owned())
    }

    #[test]
    fn values_stand_behind_their_letter_or_in_the_next_word() {
        let host = Word::Operand("host".to_owned());
        let expected = vec![flag('t', ""), flag('s', ""), flag('l', "8192"), host];
        for line in ["-t -s -l 8192 host", "-tsl8192 host", "-ts --length=8192 host"] {
            assert_eq!(read(line), Ok(expected.clone()), "{line}");
        }
        let last = read("host -ts --len 8192").expect("a beginning is enough");
        assert_eq!(last[1..], expected[..3]);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("-x", "invalid option -- 'x'"),
            ("-l", "requires an argument -- '-l'"),
            ("--no", "unrecognized option '--no'"),
            ("--enhanced=1", "allows no argument"),
        ] {
            assert!(read(line).is_err_and(|said| said.contains(part)), "{line}");
        }
    }

    #[test]
    fn sizes_have_powers_of_1024_and_rates_of_1000() {
        assert_eq!(bytes('l', "64K"), Ok(65_536));
        assert_eq!(bytes('l', "1.5m"), Ok(1_572_864));
        assert_eq!(size("10m", true), Some(10e6));
        for wrong in ["", "K", "-1", "1e99", "nan", "inf"] {
            assert!(bytes('l', wrong).is_err(), "{wrong}");
        }
    }
}
