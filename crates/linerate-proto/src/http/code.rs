//! Three-digit codes at the start of a response: HTTP's status (RFC 9112 §4) and SMTP's reply (RFC
//! 5321 §4.2). Rust's parser of numbers also accepts a sign; here only digits are.

/// The three-digit code at the start of a line.
pub fn three_digits(line: &str) -> Option<u16> {
    let code = line.get(..3).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_three_digits_and_nothing_else() {
        for (line, code) in [("250 OK", Some(250)), ("250", Some(250)), ("007-x", Some(7))] {
            assert_eq!(three_digits(line), code, "{line}");
        }
        for wrong in ["", "25", "+25 OK", "-25 OK", " 25", "2 5", "25\u{0662}"] {
            assert_eq!(three_digits(wrong), None, "{wrong}");
        }
    }
}
